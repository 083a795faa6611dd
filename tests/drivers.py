#!/usr/bin/env python3
"""The test suites of drivers, over a PostgreSQL 15 and over `clearway serve`: what passes on PostgreSQL and not here, and why.

usage: tests/drivers.py CLEARWAY SUITE [--short | --only EXPRESSION] [--source DIR] [--beside] [--record] [--page docs/drivers.md] [--seconds N]

SUITE: asyncpg or psycopg2, whose sources (sdists, fetched by pip and kept in ~/.cache/clearway/drivers) have their tests; psycopg, with --source: the
directory of its repository, since its package has none. The driver itself is installed by pip into an environment there.
tests/drivers/SUITE.list names each test that fails here and passes on PostgreSQL, with the reason; a test that is listed and passes is a failure, as is
one that fails and is not listed. A test that fails may leave a table, or a type, over which later ones fail; so each test of asyncpg and psycopg2 that
fails runs once more by itself, on a new server. --beside runs the suite on a PostgreSQL of its own first, and leaves out what fails there, too (with --record: lists it
with the reason `peer`). --only is pytest's -k; --short runs some of the files in less than a minute. The last line is `N passed, N failed`.
"""

import argparse
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

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "regress"))
from servers import Clearway, Postgres  # noqa: E402

CACHE = Path(os.environ.get("CLEARWAY_DRIVERS", Path.home() / ".cache/clearway/drivers"))

#: Reasons in the lists, and what they mean.
REASONS = {
    "peer": "It fails on this PostgreSQL 15, too.",
    "plpgsql": "PL/pgSQL and DO are refused.",
    "triggers": "Triggers are refused.",
    "inherits": "Inheritance and partitions are refused.",
    "objects": "Large objects are refused.",
    "geometry": "Geometric types are refused.",
    "text-search": "Text search is refused.",
    "xml": "The type xml is refused.",
    "range": "Ranges that a user defines are refused.",
    "extension": "An extension that does not exist here: hstore, citext and others.",
    "prepared": "Prepared transactions are refused.",
    "serializable": "SERIALIZABLE is refused, or runs as repeatable read.",
    "replication": "Replication connections are refused.",
    "encoding": "Client encodings other than UTF8 are refused.",
    "password": "Verifiers other than SCRAM-SHA-256, and authentication by md5 or a plain password.",
    "snapshots": "The types txid_snapshot and pg_snapshot.",
    "tid": "The type tid.",
    "casts": "CREATE CAST, CREATE OPERATOR and CREATE AGGREGATE are refused.",
    "base-type": "CREATE TYPE of a base type is refused.",
    "rowtype": "ALTER TYPE of a composite type that columns have is refused.",
    "temp-function": "Functions in pg_temp are refused.",
    "messages": "PostgreSQL tells of implicit sequences and indexes at the level DEBUG1.",
    "scs": "standard_conforming_strings = off is refused.",
    "server": "It looks at the server's own files, version, settings or messages.",
    "early": "Expressions are folded only where they are evaluated, so that 1/0 over no row is no error.",
    "order": "Rows without ORDER BY come in the order of the key.",
    "time": "It measures time.",
    "open": "A defect that is known and not repaired yet.",
}


class Suite:
    """How the tests of one driver are fetched and run."""

    def __init__(self, package, install, short, environment, options=(), in_classes=True):
        self.package, self.install, self.short = package, install, short
        self.environment, self.options = environment, options
        #: Each test is a method of a class, without parameters in its name.
        self.in_classes = in_classes


def by_variables(port):
    return {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}


def of_psycopg2(port):
    return {"PSYCOPG2_TESTDB": "postgres", "PSYCOPG2_TESTDB_HOST": "127.0.0.1", "PSYCOPG2_TESTDB_PORT": str(port), "PSYCOPG2_TESTDB_USER": "postgres"}


def of_psycopg(port):
    return {"PSYCOPG_TEST_DSN": f"host=127.0.0.1 port={port} user=postgres dbname=postgres"}


SUITES = {
    "asyncpg": Suite("asyncpg==0.32.0", ["asyncpg==0.32.0", "pytest", "distro"],
                     ["test_codecs.py", "test_record.py", "test_transaction.py", "test_types.py"],
                     by_variables),
    "psycopg2": Suite("psycopg2==2.9.13", ["psycopg2-binary==2.9.13", "pytest"],
                      ["test_async.py", "test_copy.py", "test_cursor.py", "test_dates.py", "test_extras_dictcursor.py", "test_sql.py", "test_types_basic.py",
                       "test_types_extras.py", "test_with.py"], of_psycopg2),
    "psycopg": Suite(None, ["psycopg[binary]==3.3.4", "psycopg_pool", "pytest", "anyio", "dnspython"], ["test_cursor.py", "test_copy.py", "types"],
                     of_psycopg, ("-m", "not slow and not timing and not refcount and not proxy and not crdb and not mypy and not subprocess"), in_classes=False),
}


def environment_of(name, suite):
    """The Python of an environment that has the driver."""
    home = CACHE / f"{name}-env"
    python = home / "bin/python"
    if not (home / "done").exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", *suite.install], check=True)
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
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", home, suite.package], check=True)
        with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
            archive.extractall(home, filter="data")
        (next(path for path in home.iterdir() if path.is_dir()) / "tests").rename(home / "tests")
    return home


def run(python, suite, where, port, given, tests=()):
    """How each test ended, and its first error, by its name; of these tests alone, or of all that the options leave."""
    with tempfile.TemporaryDirectory() as work:
        # The tests alone: beside them would stand the driver's sources, which are not built.
        shutil.copytree(where / "tests", f"{work}/tests")
        out = f"{work}/out.xml"
        command = [python, "-m", "pytest", "-q", "-W", "ignore", "-o", f"cache_dir={work}/cache", "-p", "no:randomly", "--junitxml", out, *suite.options]
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


def run_on(make_server, scratch, python, suite, where, given):
    """The same over a server of its own. What fails there is what counts when the test runs by itself on another one."""
    def on_new_server(*tests):
        home = tempfile.mkdtemp(dir=scratch)
        os.chmod(home, 0o755)
        server = make_server(home)
        try:
            server.start()
            return run(python, suite, where, server.port, given, tests)
        finally:
            server.stop()
            shutil.rmtree(home, ignore_errors=True)

    seen = on_new_server()
    for name in sorted(suites.failures(seen)) if suite.in_classes else ():
        file, *rest = name.split(".")
        seen.update(on_new_server(f"tests/{file}.py::{'::'.join(rest)}"))
    return seen


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
    python, where = environment_of(given.suite, suite), source_of(given.suite, suite, given.source)
    scratch = tempfile.mkdtemp(prefix="clearway-drivers-")
    os.chmod(scratch, 0o755)
    peer = {}
    try:
        if given.beside:
            peer = run_on(Postgres, scratch, python, suite, where, given)
        seen = run_on(lambda home: Clearway(given.clearway, home, ["serializable = snapshot"]), scratch, python, suite, where, given)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
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
