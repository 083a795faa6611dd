"""The tests of tokio-postgres, as a suite of drivers.py: its package has them."""

import json
import os
import re
import shutil
import subprocess

#: What the suite's server needs, as its repository makes it. PostgreSQL and Clearway let these roles in without a password.
SETUP = "create role pass_user password 'password' login; create role md5_user password 'password' login; create role scram_user password 'password' login"


class RustSuite:
    """How the tests of a crate are fetched and run. They name the port 5433 in their text, so they are built for each server."""

    alone = False

    def __init__(self, cache, fetched, crate, version, target, short):
        self.home, self.fetched = cache / crate, fetched
        self.crate, self.version, self.target, self.short = crate, version, target, short
        self.source = self.home / "source"

    def fetch(self, _name, _given):
        mark = self.home / "done"
        if mark.exists() and mark.read_text() == self.version:
            return
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "src").mkdir(parents=True)
        (self.home / "src/lib.rs").touch()
        (self.home / "Cargo.toml").write_text(f'[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n'
                                              f'[dependencies]\n{self.crate} = "={self.version}"\n[workspace]\nexclude = ["source"]\n')
        packages = json.loads(self.fetched(["cargo", "metadata", "--quiet", "--format-version", "1"], cwd=self.home))["packages"]
        manifest = next(package["manifest_path"] for package in packages if package["name"] == self.crate)
        shutil.copytree(os.path.dirname(manifest), self.source)
        # The benchmark, and the library for it, are not built.
        file = self.source / "Cargo.toml"
        parts = re.split(r"^(?=\[)", file.read_text(), flags=re.M)
        file.write_text("".join(part for part in parts if not part.startswith(("[[bench]]", "[dev-dependencies.criterion]"))))
        shutil.copytree(self.source / "tests", self.home / "tests")
        self.fetched(["cargo", "fetch", "--quiet"], cwd=self.source)
        mark.write_text(self.version)

    def run(self, port, given, _tests=()):
        psql = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
        subprocess.run([*psql, "-c", SETUP], check=True)
        for extension in ("hstore", "citext", "ltree"):
            # What does not exist here is missed by the tests that need it.
            subprocess.run([*psql, "-c", f"create extension {extension}"], capture_output=True)
        shutil.rmtree(self.source / "tests")
        shutil.copytree(self.home / "tests", self.source / "tests")
        for file in (self.source / "tests").rglob("*.rs"):
            file.write_text(file.read_text().replace("5433", str(port)))
        features = [name for name in re.findall(r"^(array-impls|with-\S+) =", (self.source / "Cargo.toml").read_text(), re.M)]
        command = ["cargo", "test", "--quiet", "--test", self.target, "--no-fail-fast", "--features", ",".join(features), "--"]
        command += ["--test-threads=1", "--format", "pretty", *([given.only] if given.only else self.short if given.short else [])]
        environment = {**os.environ, "CARGO_TARGET_DIR": str(self.home / "target"), "RUST_BACKTRACE": "0"}
        ended = subprocess.run(command, cwd=self.source, env=environment, capture_output=True, text=True, timeout=given.seconds)
        said = dict(re.findall(r"^---- (\S+) stdout ----\n\n?(?:thread .* panicked at .*\n)?(.*)", ended.stdout, re.M))
        how = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
        found = re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", ended.stdout, re.M)
        if not found:
            raise SystemExit(f"{ended.stdout[-3000:]}{ended.stderr[-3000:]}\n0 passed, 1 failed")
        return {name: (how[end], said.get(name, "")) for name, end in found}
