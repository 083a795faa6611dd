"""The tests of node-postgres (pg, pg-cursor, pg-pool, pg-query-stream), as a suite of drivers.py: its repository has them, its packages do not."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

#: What the tests need beside the repository; its packages are those of the same release.
PACKAGES = ["pg@8.23.1", "pg-cursor@2.22.0", "pg-pool@3.14.0", "async@2.6.4", "bluebird@3.7.2", "co@4.6.0", "pg-copy-streams@0.3.0", "mocha@11.7.5", "expect.js@0.3.1",
            "lodash@4.17.21", "JSONStream@1.3.5", "concat-stream@1.0.1", "stream-spec@0.3.5", "tsx@4.20.6"]

#: Packages whose tests mocha runs, and how it is told of TypeScript.
BY_MOCHA = {"pg-cursor": ["test/*.js"], "pg-pool": ["test/*.js"], "pg-query-stream": ["-r", "tsx/cjs", "test/*.ts"]}

#: What test/suite.js says is put into lines of their own, and a test that fails does not end those behind it.
SAID = [("process.stdout.write('✔\\n')", "console.log('\\n@passed ' + test.name)"),
        ("process.stdout.write(`FAILED!\\n\\n${err.stack}\\n`)\n        process.exit(-1)",
         "console.log('\\n@failed ' + test.name + '\\n' + err.message); process.exitCode = 1; cb()"),
        ("console.log('\\n' + err.stack)\n      process.exit(-1)", "console.log('\\n@failed ' + test.name + '\\n' + err.message); process.exit(-1)"),
        ("process.stdout.write('? - SKIPPED\\n')", "console.log('\\n@skipped ' + test.name)")]


class NodeSuite:
    """How these tests are run: those of pg by its own small runner, a process for each file, the others by mocha."""

    alone = False

    def __init__(self, cache, fetched):
        self.home, self.fetched = cache / "node-postgres", fetched
        self.where = None

    def fetch(self, _name, given):
        if not given:
            raise SystemExit("--source: the packages of node-postgres have no tests; name the directory of its repository\n0 passed, 1 failed")
        self.where = given.resolve()
        mark = self.home / "done"
        if not mark.exists() or mark.read_text() != "\n".join(PACKAGES):
            shutil.rmtree(self.home, ignore_errors=True)
            self.home.mkdir(parents=True)
            (self.home / "package.json").write_text("{}")
            self.fetched(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES], cwd=self.home)
            mark.write_text("\n".join(PACKAGES))

    def run(self, port, given, _tests=()):
        environment = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres", "PGTESTNOSSL": "true",
                       "NODE_NO_WARNINGS": "1"}
        with tempfile.TemporaryDirectory() as work:
            work = Path(work)
            (work / "node_modules").symlink_to(self.home / "node_modules")
            for package in ("pg", *BY_MOCHA):
                shutil.copytree(self.where / "packages" / package, work / "packages" / package, ignore=shutil.ignore_patterns("node_modules"))
            suite = work / "packages/pg/test/suite.js"
            text = suite.read_text()
            for old, new in SAID:
                if old not in text:
                    raise SystemExit(f"test/suite.js of pg does not say {old!r} any more\n0 passed, 1 failed")
                text = text.replace(old, new)
            suite.write_text(text)
            seen = {}
            for file in sorted((work / "packages/pg/test/integration").rglob("*-tests.js")):
                part = str(file.relative_to(work / "packages/pg/test/integration"))
                if (given.short and not part.startswith("client/")) or (given.only and given.only not in part):
                    continue
                seen.update(of_file(part, file, environment, given.seconds))
            for package, options in BY_MOCHA.items():
                if not given.short and (not given.only or given.only in package):
                    seen.update(of_mocha(work, package, options, environment, given.seconds))
            return {re.sub(r"\s+", "_", name): ended for name, ended in seen.items()}


def of_file(part, file, environment, seconds):
    """How the tests in a file of pg ended. A file without tests is one; so is one that ended badly behind its last test."""
    try:
        ended = subprocess.run(["node", file], cwd=file.parent, env=environment, capture_output=True, text=True, timeout=seconds)
        out, code = ended.stdout + ended.stderr, ended.returncode
    except subprocess.TimeoutExpired as error:
        out, code = (error.stdout or b"").decode() + "\nit did not end", 1
    seen = {f"pg.{part}.{name}": (how, said if how == "failed" else "") for how, name, said in re.findall(r"^@(passed|failed|skipped) (.*)\n(.*)", out, re.M)}
    if not seen or (code != 0 and not any(how == "failed" for how, _ in seen.values())):
        said = re.search(r"^(Message: .*|\S*Error\b.*|it did not end)$", out, re.M)
        seen[f"pg.{part}"] = ("failed" if code else "passed", said[1] if code and said else "")
    return seen


def of_mocha(work, package, options, environment, seconds):
    """How the tests of a package ended."""
    out = work / f"{package}.json"
    command = [work / "node_modules/.bin/mocha", "--exit", "--reporter", "json", "--reporter-option", f"output={out}", *options]
    ended = subprocess.run(command, cwd=work / "packages" / package, env=environment, capture_output=True, text=True, timeout=seconds)
    if not out.exists():
        raise SystemExit(f"{package}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}\n0 passed, 1 failed")
    told = json.loads(out.read_text())
    seen = {}
    for key, how in (("passes", "passed"), ("pending", "skipped"), ("failures", "failed")):
        seen.update({f"{package}.{test['fullTitle']}": (how, test["err"].get("message", "").partition("\n")[0]) for test in told[key]})
    return seen
