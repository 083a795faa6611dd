#!/usr/bin/env python3
"""Object-relational mappers and migration tools, over a PostgreSQL 15 and over `clearway serve`: what they make, reflect, change and read.

usage: tests/mappers.py CLEARWAY [NAME ...] [--short] [--page docs/drivers.md]

Each program in tests/mappers/ uses one library as its users do (migrations up and down, reflection, rows) and prints what it sees; both servers must give
the same lines. The libraries come from their registries and are kept in ~/.cache/clearway/mappers; what no registry gives, or has no compiler
here, is not run, and said. --short runs those that need no compiler. The last line is `N passed, N failed`.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import suites
from suites import NotReached, fetched

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "regress"))
from servers import Clearway, Postgres  # noqa: E402

PROGRAMS = HERE / "mappers"
CACHE = Path(os.environ.get("CLEARWAY_MAPPERS", Path.home() / ".cache/clearway/mappers"))

NODE = ["pg@8.23.1", "pg-hstore@2.3.4", "knex@3.3.0", "kysely@0.28.18", "sequelize@6.37.8", "typeorm@1.1.1", "reflect-metadata@0.2.2", "drizzle-orm@0.45.4",
        "drizzle-kit@0.31.11"]
PYTHON = ["alembic==1.20.1", "sqlalchemy==2.1.9", "psycopg[binary]==3.3.4"]
RUST = """[package]
name = "mappers"
version = "0.0.0"
edition = "2024"

[dependencies]
sqlx = { version = "=0.9.0", default-features = false, features = ["runtime-tokio", "postgres", "macros", "migrate", "json", "chrono", "uuid"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
diesel = { version = "=2.3.14", default-features = false, features = ["postgres", "chrono", "serde_json", "uuid", "32-column-tables"] }
diesel_migrations = "=2.3.2"
serde_json = "1"
chrono = "0.4"
uuid = "1"

[profile.dev]
debug = 0

[workspace]
"""
DIESEL = "2.3.10"
GO = ["gorm.io/gorm@v1.31.2", "gorm.io/driver/postgres@v1.6.3"]


def kept(name, wanted, make):
    """A directory that `make` has filled for this list of packages."""
    home, mark = CACHE / name, CACHE / name / "done"
    if not mark.exists() or mark.read_text() != "\n".join(wanted):
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        make(home)
        mark.write_text("\n".join(wanted))
    return home


def of_node(program):
    def make(home):
        (home / "package.json").write_text("{}")
        fetched(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *NODE], cwd=home)

    home = kept("node", NODE, make)
    # The programs stand beside the packages, where they are looked for.
    for file in (PROGRAMS / "node").glob("*.js"):
        shutil.copy(file, home)
    return ["node", "--no-deprecation", home / program]


def of_python(program):
    def make(home):
        subprocess.run([sys.executable, "-m", "venv", home / "env"], check=True)
        fetched([home / "env/bin/pip", "install", "--quiet", *PYTHON])

    return [kept("python", PYTHON, make) / "env/bin/python", PROGRAMS / "python" / program]


def of_go(program):
    def make(home):
        fetched(["go", "mod", "init", "mappers"], cwd=home)
        fetched(["go", "get", *GO], cwd=home)

    home = kept("go", GO, make)
    shutil.copy(PROGRAMS / "go" / program, home / "main.go")
    fetched(["go", "mod", "tidy"], cwd=home)
    fetched(["go", "build", "-o", "program", "."], cwd=home)
    return [home / "program"]


def of_rust(program):
    def make(home):
        (home / "src").mkdir()
        (home / "src/lib.rs").touch()
        (home / "Cargo.toml").write_text(RUST)
        fetched(["cargo", "build", "--quiet"], cwd=home, env=own(home))
        fetched(["cargo", "install", "--quiet", "--debug", "--version", DIESEL, "--no-default-features", "--features", "postgres", "--root", home, "diesel_cli"],
                env=own(home))

    def own(home):
        return {**os.environ, "CARGO_TARGET_DIR": str(home / "target")}

    home = kept("rust", [RUST, DIESEL], make)
    (home / "src/bin").mkdir(exist_ok=True)
    for file in (PROGRAMS / "rust").glob("*.rs"):
        shutil.copy(file, home / "src/bin")
    first = "sqlx" if program == "checked" else program
    fetched(["cargo", "build", "--quiet", "--bin", first], cwd=home, env=own(home))
    steps = [f"cd {home}", f"export CARGO_TARGET_DIR={home}/target DIESEL_CLI={home}/bin/diesel MAPPERS_MIGRATIONS={PROGRAMS}/rust/migrations"]
    steps += [f"target/debug/{first}"]
    # The macros ask the server when this program is built, so it is built for each server, over the tables of the other one.
    steps += ["touch src/bin/checked.rs", "cargo build --quiet --bin checked", "target/debug/checked"] if program == "checked" else []
    return ["bash", "-c", " && ".join(steps)]


def of_java(program):
    pom = (PROGRAMS / "java/pom.xml").read_text()

    def make(home):
        shutil.copy(PROGRAMS / "java/pom.xml", home)
        fetched(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], cwd=home)

    home = kept("java", [pom], make)
    fetched(["javac", "-nowarn", "-cp", "lib/*", "-d", "made", PROGRAMS / "java/Tools.java"], cwd=home)
    return ["java", "-cp", f"{home}/made:{home}/lib/*", "Tools", program]


#: The library, how its program is made, the program, whether it is quick, and what it uses.
LIBRARIES = {
    "alembic": (of_python, "alembic_migrations.py", True, "Alembic 1.20 with SQLAlchemy 2.1: autogenerate, upgrade, check, downgrade, reflection, the mapper"),
    "knex": (of_node, "knex.js", True, "Knex 3.3: migrations up and down, alterations, columnInfo, queries"),
    "kysely": (of_node, "kysely.js", True, "Kysely 0.28: migrations, introspection, queries, MERGE, JSON helpers"),
    "typeorm": (of_node, "typeorm.js", True, "TypeORM 1.1: synchronize twice, reflection, relations, trees, views, upsert"),
    "drizzle": (of_node, "drizzle.js", True, "Drizzle 0.45 with drizzle-kit 0.31: generate, migrate, pull, push, relational queries"),
    "sequelize": (of_node, "sequelize.js", False, "Sequelize 6.37: sync, sync with alter, describe, associations, paranoid rows"),
    "hibernate": (of_java, "hibernate", False, "Hibernate 6.6 on pgjdbc 42.7: hbm2ddl create, update, validate; entities, queries, batches, locks"),
    "flyway": (of_java, "flyway", False, "Flyway 11: migrate, validate, info, a migration that fails, repair, clean, baseline"),
    "liquibase": (of_java, "liquibase", False, "Liquibase 4.30: update, diff, generateChangeLog, dropAll"),
    "sqlx": (of_rust, "sqlx", False, "sqlx 0.9: migrations, describe, COPY, LISTEN, nested transactions"),
    "sqlx-macros": (of_rust, "checked", False, "sqlx 0.9's macros, which ask the server when a program is built"),
    "diesel": (of_rust, "diesel", False, "diesel 2.3: migrations, print-schema, associations, upsert, transactions"),
    "gorm": (of_go, "gorm.go", False, "gorm 1.31: AutoMigrate twice, the migrator, associations, upsert"),
}

#: Libraries that do not pass, and what they wait for.
WAITING = {}


def run(command, server, name):
    """What a program prints over a new database of a server."""
    database = f"mapper_{name.replace('-', '_')}"
    psql = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
    subprocess.run([*psql, "-c", f"create database {database}"], check=True, stdout=subprocess.DEVNULL)
    url = f"postgresql://postgres@127.0.0.1:{server.port}/{database}"
    environment = {**os.environ, "DATABASE_URL": url, "MAPPERS_NODE": str(CACHE / "node"), "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "PGOPTIONS": ""}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, stdin=subprocess.DEVNULL)
    text = re.sub(r"127\.0\.0\.1:\d+", "SERVER", ended.stdout)
    return text.splitlines() + ([] if ended.returncode == 0 else [f"ended with {ended.returncode}", *ended.stderr.splitlines()[-20:]])


def table(seen):
    lines = ["Written by `tests/mappers.py CLEARWAY --page docs/drivers.md`.", "", "| library | what its program does | lines that agree |", "|---|---|---:|"]
    lines += [f"| {name} | {LIBRARIES[name][3]} | {said} |" for name, said in seen.items()]
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clearway")
    arguments.add_argument("names", nargs="*", choices=[[], *LIBRARIES])
    arguments.add_argument("--short", action="store_true")
    arguments.add_argument("--page", type=Path)
    given = arguments.parse_args()
    names = given.names or [name for name, (_, _, quick, _) in LIBRARIES.items() if quick or not given.short]
    scratch = tempfile.mkdtemp(prefix="clearway-mappers-")
    os.chmod(scratch, 0o755)
    servers, passed, failed, seen = [], 0, 0, {}
    try:
        for make in (lambda home: Postgres(home), lambda home: Clearway(given.clearway, home)):
            servers.append(make(scratch))
            servers[-1].start()
        for name in names:
            make, program, _, _ = LIBRARIES[name]
            try:
                command = make(program)
            except NotReached as error:
                print(f"NOT RUN: {name}, which could not be fetched: {error}")
                continue
            there, here = (run(command, server, name) for server in servers)
            differences = [line[:1000] for line in difflib.unified_diff(there, here, "PostgreSQL", "Clearway", lineterm="", n=0)]
            ended = any(line.startswith("ended with ") for line in there)
            ok = not differences and not ended
            listed = name in WAITING
            passed, failed = passed + ok, failed + (ok == listed)
            seen[name] = f"{len(there)} of {len(there)}" if ok else f"differs: {WAITING.get(name, '?')}"
            print(f"{name}: {len(there)} lines ... {'ok' if ok else 'differs, as is known' if listed else 'FAILED'}", flush=True)
            if not ok and not listed:
                print("\n".join(differences or there))
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    if given.page:
        suites.put_into(given.page, "programs of mappers", table(seen))
    print(f"{passed} passed, {failed} failed")
    return failed == 0


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
