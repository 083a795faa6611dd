#!/usr/bin/env python3
"""The test suites of drivers, over a PostgreSQL 15 and over `clearway serve`: what passes on PostgreSQL and not here, and why.

usage: tests/drivers.py CLEARWAY SUITE [--short | --only EXPRESSION] [--source DIR] [--beside] [--record] [--page docs/drivers.md] [--seconds N]

SUITE: asyncpg or psycopg2, whose sources (sdists, fetched by pip and kept in ~/.cache/clearway/drivers) have their tests; psycopg, with --source: the
directory of its repository, since its package has none; node-postgres, likewise; pgx and tokio-postgres, whose packages for Go and Rust have their tests;
pgjdbc, whose source distribution in Maven Central has them; django, those of Django's own tests that issue SQL. The driver itself is installed by its registry's client into a directory there. What no registry gives is not run, and said.
tests/drivers/SUITE.list names each test that fails here and passes on PostgreSQL, with the reason; a test that is listed and passes is a failure, as is
one that fails and is not listed. A test that fails may leave a table, or a type, over which later ones fail; so each test of asyncpg and psycopg2 that
fails runs once more by itself, on a new server. --beside runs the suite on a PostgreSQL of its own first, and leaves out what fails there, too (with --record: lists it
with the reason `peer`). --only is pytest's -k; --short runs some of the files in less than a minute. The last line is `N passed, N failed`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

import suites
from drivers_django import DjangoSuite
from drivers_java import JavaSuite
from drivers_node import NodeSuite
from drivers_rust import RustSuite
from suites import NotReached, fetched

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "regress"))
from servers import Clearway, Postgres  # noqa: E402

CACHE = Path(os.environ.get("CLEARWAY_DRIVERS", Path.home() / ".cache/clearway/drivers"))

#: Reasons in the lists, and what they mean.
REASONS = {
    "peer": "It fails on this PostgreSQL 15, too.",
    "plpgsql": "PL/pgSQL: notices of a function, which arrive at the end of the statement.",
    "triggers": "Triggers are refused.",
    "inherits": "Inheritance and partitions are refused.",
    "text-search": "Text search is refused.",
    "xml": "The type xml is refused.",
    "range": "Ranges that a user defines are refused.",
    "extension": "An extension that does not exist here: ltree, pg_trgm, unaccent and others.",
    "prepared": "Prepared transactions are refused.",
    "serializable": "SERIALIZABLE is refused, or runs as repeatable read.",
    "replication": "Replication connections are refused.",
    "encoding": "Client encodings of more than one byte a character, but UTF8, are refused.",
    "password": "Verifiers other than SCRAM-SHA-256, and authentication by md5 or a plain password.",
    "casts": "CREATE CAST and CREATE AGGREGATE are refused.",
    "base-type": "CREATE TYPE of a base type is refused.",
    "rowtype": "ALTER TYPE of a composite type that columns have is refused.",
    "template1": "There is no database template1.",
    "messages": "PostgreSQL tells of implicit sequences and indexes at the level DEBUG1.",
    "scs": "standard_conforming_strings = off is refused.",
    "server": "It looks at the server's own files, version, settings or messages.",
    "early": "Expressions are folded only where they are evaluated, so that 1/0 over no row is no error, and an error may come behind the columns.",
    "collation": "Other collations than C.UTF-8 are refused, and a column does not say that it has C.",
    "gin": "Indexes other than btree and exclusion constraints are refused.",
    "opclass": "Operator classes for patterns are taken, and shown as the plain ones: C.UTF-8 needs no other.",
    "nulls": "NULLS NOT DISTINCT is refused.",
    "order": "Rows without ORDER BY come in the order of the key.",
    "rules": "Rules other than DO INSTEAD NOTHING are refused.",
    "catalogs": "Most catalogs are changed by DDL alone, not by UPDATE.",
    "aclitem": "The type aclitem does not exist.",
    "defaults": "A default is shown as it was written, without the casts that PostgreSQL adds.",
    "pattern": "LIKE looks at the end of its pattern where PostgreSQL asks an index for the one text that could match.",
    "time": "It measures time.",
    "open": "A defect that is known and not repaired yet.",
}


def psql_of(port):
    return ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]


class PythonSuite:
    """How the tests of a driver for Python are fetched and run."""

    def __init__(self, package, install, short, environment, options=(), alone=True, extensions=()):
        self.package, self.install, self.short = package, install, short
        self.environment, self.options = environment, options
        #: Without these the suite leaves its tests of them out.
        self.extensions = extensions
        #: Each test is a method of a class, without parameters in its name, so that it can be asked for.
        self.alone = alone
        self.python = self.where = None

    def fetch(self, name, given):
        """Gets the driver and its tests."""
        self.python, self.where = environment_of(name, self), source_of(name, self, given)

    def run(self, port, given, tests=()):
        for extension in self.extensions:
            subprocess.run([*psql_of(port), "-c", f"create extension {extension}"], check=True)
        files = [(file, rest) for file, *rest in (test.split(".") for test in tests)]
        return run(self.python, self, self.where, port, given, [f"tests/{file}.py::{'::'.join(rest)}" for file, rest in files])


class GoSuite:
    """The same of a driver for Go: the module has its tests with it."""

    def __init__(self, module, setup, environment, short):
        self.module, self.setup, self.environment, self.short = module, setup, environment, short
        self.alone, self.where = False, None

    def fetch(self, _name, given):
        home = CACHE / "go"
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "go.mod").exists():
            subprocess.run(["go", "mod", "init", "drivers"], cwd=home, check=True, capture_output=True)
        self.where = given or Path(json.loads(fetched(["go", "mod", "download", "-json", self.module], cwd=home))["Dir"])

    def run(self, port, given, tests=()):
        subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-c", "create database driver"], check=True)
        # What the setup makes and does not exist here is missed by the tests that need it.
        subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "driver", "-f", self.where / self.setup],
                       capture_output=True)
        command = ["go", "test", "-json", "-p", "1", f"-timeout={given.seconds}s"]
        command += ["-run", given.only] if given.only else []
        packages = self.short if given.short else ["./..."]
        ran = subprocess.run([*command, *packages], cwd=self.where, env={**os.environ, **self.environment(port)}, capture_output=True, text=True)
        seen, said = {}, {}
        for line in ran.stdout.splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if not event.get("Test"):
                continue
            package = event["Package"].removeprefix(self.module.partition("@")[0]).lstrip("/") or "pgx"
            name = re.sub(r"\s+", "_", f"{package}.{event['Test']}")
            if event["Action"] == "output" and "_test.go:" in event["Output"]:
                said.setdefault(name, event["Output"].strip())
            elif event["Action"] in ("pass", "fail", "skip"):
                seen[name] = ({"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]], said.get(name, ""))
        if not seen:
            raise SystemExit(f"{ran.stdout[-3000:]}{ran.stderr[-3000:]}\n0 passed, 1 failed")
        # A test of which a part failed says nothing by itself.
        parents = {name.rpartition("/")[0] for name, (how, _) in seen.items() if how == "failed" and "/" in name}
        return {name: ended for name, ended in seen.items() if name not in parents}


def by_variables(port):
    return {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}


def of_psycopg2(port):
    return {"PSYCOPG2_TESTDB": "postgres", "PSYCOPG2_TESTDB_HOST": "127.0.0.1", "PSYCOPG2_TESTDB_PORT": str(port), "PSYCOPG2_TESTDB_USER": "postgres"}


def of_psycopg(port):
    return {"PSYCOPG_TEST_DSN": f"host=127.0.0.1 port={port} user=postgres dbname=postgres"}


SUITES = {
    "asyncpg": PythonSuite("asyncpg==0.32.0", ["asyncpg==0.32.0", "pytest", "distro"],
                     ["test_codecs.py", "test_record.py", "test_transaction.py", "test_types.py"],
                     by_variables),
    "psycopg2": PythonSuite("psycopg2==2.9.13", ["psycopg2-binary==2.9.13", "pytest"],
                      ["test_async.py", "test_copy.py", "test_cursor.py", "test_dates.py", "test_extras_dictcursor.py", "test_sql.py", "test_types_basic.py",
                       "test_types_extras.py", "test_with.py"], of_psycopg2, extensions=["hstore"]),
    "psycopg": PythonSuite(None, ["psycopg[binary]==3.3.4", "psycopg_pool", "pytest", "anyio", "dnspython"], ["test_cursor.py", "test_copy.py", "types"],
                     of_psycopg, ("-m", "not slow and not timing and not refcount and not proxy and not crdb and not mypy and not subprocess"), alone=False),
    "pgx": GoSuite("github.com/jackc/pgx/v5@v5.12.0", "testsetup/postgresql_setup.sql",
                   lambda port: {"PGX_TEST_DATABASE": f"host=127.0.0.1 port={port} user=postgres database=driver"}, [".", "./pgxpool", "./stdlib"]),
}


def environment_of(name, suite):
    """The Python of an environment that has the driver."""
    home = CACHE / f"{name}-env"
    python = home / "bin/python"
    if not (home / "done").exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        fetched([home / "bin/pip", "install", "--quiet", *suite.install])
        (home / "done").touch()
    return python


def source_of(name, suite, given):
    """The directory that holds the tests, as `tests`."""
    if given:
        return given
    if not suite.package:
        raise SystemExit(f"--source: the package of {name} has no tests\n0 passed, 1 failed")
    home = CACHE / suite.package.replace("==", "-")
    if not (home / "tests").exists():
        home.mkdir(parents=True, exist_ok=True)
        fetched([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", home, suite.package])
        with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
            # The Python of Debian 12 has no filters.
            archive.extractall(home, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (next(path for path in home.iterdir() if path.is_dir()) / "tests").rename(home / "tests")
    return home


SUITES["django"] = DjangoSuite(environment_of, source_of)
SUITES["node-postgres"] = NodeSuite(CACHE, fetched)
SUITES["tokio-postgres"] = RustSuite(CACHE, fetched, "tokio-postgres", "0.7.18", "test", ["types"])
SUITES["pgjdbc"] = JavaSuite(CACHE, fetched)


def run(python, suite, where, port, given, tests=()):
    """How each test ended, and its first error, by its name; of these tests alone, or of all that the options leave."""
    with tempfile.TemporaryDirectory() as work:
        # The tests alone: beside them would stand the driver's sources, which are not built.
        shutil.copytree(where / "tests", f"{work}/tests")
        out = f"{work}/out.xml"
        command = [python, "-m", "pytest", "-q", "-W", "ignore", "-o", f"cache_dir={work}/cache", f"--rootdir={work}", "-p", "no:randomly", "--junitxml", out, *suite.options]
        command += ["-k", given.only] if given.only and not tests else []
        files = tests or ([f"tests/{name}" for name in suite.short] if given.short else ["tests"])
        environment = {**os.environ, **suite.environment(port), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            ended = subprocess.run([*command, *files], cwd=work, timeout=given.seconds, env=environment, capture_output=True, text=True)
        except subprocess.TimeoutExpired as e:
            raise SystemExit(f"{(e.stdout or b'').decode()[-3000:]}\nthe tests took more than {given.seconds} s\n0 passed, 1 failed") from e
        if not os.path.exists(out):
            raise SystemExit(f"{ended.stdout[-3000:]}{ended.stderr[-3000:]}\n0 passed, 1 failed")
        seen = {}
        for module, test, ended in suites.cases(out):
            name = re.sub(r"\s+", "_", f"{module.removeprefix('tests.')}.{test}")
            # A test whose end fails, too, is there twice.
            if seen.get(name, ("", ""))[0] != "failed":
                seen[name] = ended
        return seen


def run_on(make_server, scratch, suite, given, listed=()):
    """The same over a server of its own. What fails there is what counts when the test runs by itself on another one, unless it is among `listed`."""
    def on_new_server(*tests):
        home = tempfile.mkdtemp(dir=scratch)
        os.chmod(home, 0o755)
        server = make_server(home)
        try:
            server.start()
            if isinstance(suite, DjangoSuite):
                return suite.run(server.port, given, tests, here=isinstance(server, Clearway))
            return suite.run(server.port, given, tests)
        finally:
            server.stop()
            shutil.rmtree(home, ignore_errors=True)

    seen = on_new_server()
    again = suites.failures(seen) - set(listed) if suite.alone else ()
    for name in sorted(again):
        seen.update(on_new_server(name))
    return seen


def settings_of(suite, home, here):
    """The settings that a suite needs of a server in this directory: of Clearway if `here`."""
    if isinstance(suite, DjangoSuite) and not here:
        # One transaction creates the tables of all its applications.
        return ("max_locks_per_transaction=4096",)
    return suite.settings(home, here) if isinstance(suite, JavaSuite) else ()


def count_skipped(seen, peer, reasons):
    """A test that passes on PostgreSQL and is skipped here, for a feature that is missed, is one that fails."""
    passing_there = {test for test, (how, _) in peer.items() if how == "passed"}
    for test in passing_there | {test for test, reason in reasons.items() if reason != "peer"}:
        if seen.get(test, ("", ""))[0] == "skipped":
            seen[test] = ("failed", "it is skipped")


def table(name, seen, reasons):
    ended = Counter(how for how, _ in seen.values())
    ours = {test for test in suites.failures(seen) if reasons.get(test) != "peer"}
    there = ended["passed"] + len(ours)
    why = Counter(reasons.get(test, "?") for test in ours)
    lines = [
        f"Written by `tests/drivers.py CLEARWAY {name} --page docs/drivers.md`.",
        "",
        f"Of {there} tests that pass on PostgreSQL 15, {ended['passed']} pass on Clearway ({100 * ended['passed'] / max(there, 1):.1f} %); "
        f"defects are {why['open']} ({100 * why['open'] / max(there, 1):.1f} %).",
        "",
    ]
    if why:
        lines += ["| tests | why | which |", "|---:|---|---|"]
        for reason, count in why.most_common():
            names = sorted(test for test in ours if reasons.get(test, "?") == reason)
            shown = ", ".join(f"`{test.replace('|', chr(92) + '|')}`" for test in names)
            lines.append(f"| {count} | {REASONS.get(reason, reason)} | {shown} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clearway")
    arguments.add_argument("suite", choices=SUITES)
    arguments.add_argument("--only")
    arguments.add_argument("--short", action="store_true")
    arguments.add_argument("--source", type=Path)
    arguments.add_argument("--beside", action="store_true")
    arguments.add_argument("--record", action="store_true")
    arguments.add_argument("--page", type=Path)
    arguments.add_argument("--seconds", type=int, default=550)
    given = arguments.parse_args()
    suite, path = SUITES[given.suite], HERE / f"drivers/{given.suite}.list"
    try:
        suite.fetch(given.suite, given.source)
    except NotReached as error:
        print(f"NOT RUN: {given.suite}'s suite, which could not be fetched: {error}\n0 passed, 0 failed")
        return False
    scratch = tempfile.mkdtemp(prefix="clearway-drivers-")
    os.chmod(scratch, 0o755)
    peer = {}
    try:
        if given.beside:
            peer = run_on(lambda home: Postgres(home, settings_of(suite, home, False)), scratch, suite, given)
        listed = suites.listed(path) if given.short else ()
        seen = run_on(lambda home: Clearway(given.clearway, home, ["serializable = snapshot", *settings_of(suite, home, True)]), scratch, suite, given, listed)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if isinstance(suite, JavaSuite):
        count_skipped(seen, peer, suites.listed(path))
    failing_there = suites.failures(peer)
    if given.record:
        suites.record(path, f"# Tests of {given.suite} that fail, each with its reason (tests/drivers.py says what they mean).\n", seen)
        lines = path.read_text().splitlines()
        path.write_text("".join(f"{'peer' + line[1:] if line.startswith('? ') and line[2:] in failing_there else line}\n" for line in lines))
    reasons = suites.listed(path)
    if given.page:
        suites.put_into(given.page, f"suite of {given.suite}", table(given.suite, seen, reasons))
    for test in failing_there - set(reasons):
        seen.pop(test, None)
    return suites.verdict(f"{given.suite}'s suite", seen, reasons, REASONS, whole=not given.short and not given.only)


if __name__ == "__main__":
    sys.exit(main())
