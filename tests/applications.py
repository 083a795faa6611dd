#!/usr/bin/env python3
"""Applications from Debian 12 on `clearway serve` and on a PostgreSQL 15: their databases go by pg_dump from each to the other, and two of them run.

usage: tests/applications.py CLEARWAY [NAME ...] [--page docs/applications.md]

NAME is a database to dump (objects, roundcube, bacula-catalog, icinga-ido, icingaweb, icingadb, powerdns-zones, zabbix) or an application to run (bacula,
powerdns); all of them without a name. Packages come by `apt-get download` and are unpacked, not installed; they are kept in
~/.cache/clearway/applications. The last line is `N passed, N failed`.

A database is made by the same script on both servers. Then, for each form of pg_dump: what goes from one server to the other and is dumped there has to be
what was dumped here, object by object and row by row. Views and policies are as they were written on Clearway and as they were understood on PostgreSQL:
those that go to PostgreSQL are compared with PostgreSQL's own. What is refused has to say so, and is counted.
"""
import argparse, gzip, os, re, shutil, subprocess, sys, tempfile
from pathlib import Path

import applications_bacula
import applications_powerdns

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "regress"))
from servers import Clearway, Postgres  # noqa: E402

CACHE = Path(os.environ.get("CLEARWAY_APPLICATIONS", Path.home() / ".cache/clearway/applications"))
PACKAGES = {
    "roundcube-core": "1.6.5", "bacula-director-pgsql": "9.6.7", "icinga2-ido-pgsql": "2.13.6", "icingaweb2": "2.11.4", "icingadb": "1.1.0",
    "zabbix-server-pgsql": "6.0.14", "pdns-backend-pgsql": "4.7.3",
}
#: The application's database, its package, and its script's parts below usr/share.
DATABASES = {
    "objects": (None, []),
    "roundcube": ("roundcube-core", ["roundcube/SQL/postgres.initial.sql"]),
    "bacula-catalog": ("bacula-director-pgsql", ["dbconfig-common/data/bacula-director-pgsql/install/pgsql",
                                                 "dbconfig-common/data/bacula-director-pgsql/install-dbadmin/pgsql"]),
    "icinga-ido": ("icinga2-ido-pgsql", ["icinga2-ido-pgsql/schema/pgsql.sql"]),
    "icingaweb": ("icingaweb2", ["icingaweb2/schema/pgsql.schema.sql"]),
    "icingadb": ("icingadb", ["icingadb/schema/pgsql/schema.sql"]),
    "powerdns-zones": ("pdns-backend-pgsql", ["pdns-backend-pgsql/schema/schema.pgsql.sql"]),
    "zabbix": ("zabbix-server-pgsql", [f"zabbix-server-pgsql/{part}.sql.gz" for part in ("schema", "images", "data")]),
}
APPLICATIONS = {"bacula": applications_bacula, "powerdns": applications_powerdns}
FORMS = {"plain": [], "custom": ["-Fc"], "directory": ["-Fd"], "inserts": ["--inserts"]}
#: What differs between the two servers as written and as understood.
AS_WRITTEN = ("VIEW", "MATERIALIZED VIEW", "POLICY", "RULE")

passed = failed = 0


def verdict(name, problems):
    global passed, failed
    passed, failed = passed + (not problems), failed + bool(problems)
    print(f"{name} ... {'FAILED' if problems else 'ok'}", flush=True)
    for line in problems[:40]:
        print("   ", line)


def unpacked(*packages):
    """A directory with the files of these packages."""
    home = CACHE / "-".join(packages)[:120]
    if not (home / "done").exists():
        shutil.rmtree(home, ignore_errors=True)
        (home / "debs").mkdir(parents=True)
        subprocess.run(["apt-get", "download", "-q", *packages], cwd=home / "debs", check=True, capture_output=True)
        for deb in (home / "debs").glob("*.deb"):
            subprocess.run(["dpkg", "-x", deb, home], check=True)
        (home / "done").touch()
    return home


def script(name):
    package, parts = DATABASES[name]
    if package is None:
        return (HERE / "applications" / "objects.sql").read_text()
    files = [unpacked(package) / "usr/share" / part for part in parts]
    texts = [gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text() for file in files]
    return "\n".join(texts).replace("_DBC_DBNAME_", f'"{name}"')


def client(program, server, *arguments, **options):
    environment = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "postgres", "PGOPTIONS": ""}
    return subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, **options)


def psql(server, database, text):
    return client("psql", server, "-X", "-q", "-A", "-t", "-d", database, input=text)


def errors(said):
    return [line.split("ERROR:", 1)[1].strip() for line in said.splitlines() if "ERROR:" in line]


def entries(server, database):
    """What pg_dump shows: a text for each object or table's rows, by what pg_dump calls it; rows in one order."""
    dumped = client("pg_dump", server, database)
    if dumped.returncode:
        raise RuntimeError(f"pg_dump {database} of {server.name}: {dumped.stderr}")
    found, name = {}, ""
    for part in re.split(r"\n--\n-- (?=(?:Data for )?Name: )", dumped.stdout):
        name, _, body = part.partition("\n--\n")
        name = re.sub(r"; Owner: .*", "", name)
        lines = [line for line in body.splitlines() if line and not line.startswith(("--", "\\restrict", "\\unrestrict", "SET default_"))]
        if "TABLE DATA" in name:
            lines = lines[:1] + sorted(lines[1:])
        if name.startswith(("Name", "Data")):
            # One name may be that of several: a function's is with its arguments, a comment's with what it is of.
            found[name] = found.get(name, "") + "\n".join(lines)
    return found


def kind(name):
    return re.search(r"Type: ([^;]*)", name)[1]


def is_refused(name, body):
    return kind(name) in ("TRIGGER", "OPERATOR") or "RETURNS trigger" in body


def moved(form, source, target, old, new, scratch):
    """What is said while a database goes from one server to the other."""
    client("psql", target, "-X", "-q", "-d", "postgres", "-c", f'CREATE DATABASE "{new}"')
    file = scratch / f"{old}.{form}.{source.name}"
    at_once = ["-j2"] if form == "directory" else []
    dumped = client("pg_dump", source, *FORMS[form], *at_once, "-f", file, old)
    if form in ("plain", "inserts"):
        restored = client("psql", target, "-X", "-q", "-d", new, "-f", file)
    else:
        restored = client("pg_restore", target, *at_once, "-d", new, file)
    return ([] if dumped.returncode == 0 else [dumped.stderr]), errors(restored.stderr)


def differences(wanted, found):
    """Names of what is not the same, with the first lines that differ."""
    out = []
    for name in sorted(wanted.keys() | found.keys()):
        a, b = (side.get(name, "").splitlines() for side in (wanted, found))
        if a != b:
            here = next((pair for pair in zip(a + [""] * len(b), b + [""] * len(a)) if pair[0] != pair[1]), ("", ""))
            out.append(f"{name}: {here[0][:150]!r} became {here[1][:150]!r}")
    return out


def database(name, postgres, clearway, scratch):
    """Carries one database over and back in all forms; what a row of the page says of it."""
    text = script(name)
    said = {}
    for server in (postgres, clearway):
        psql(server, "postgres", f'CREATE DATABASE "{name}"')
        said[server.name] = errors(psql(server, name, text).stderr)
    theirs, ours = entries(postgres, name), entries(clearway, name)
    refused = {key: body for key, body in theirs.items() if key not in ours and is_refused(key, body)}
    names = {key.split(";")[0].removeprefix("Name: ").split("(")[0].split()[-1] for key in refused}
    understood = lambda said: [e for e in said if "not supported" not in e and not any(n in e for n in names)]  # noqa: E731
    kept = {key: body for key, body in theirs.items() if key not in refused}
    verdict(f"{name}: its script", said["postgres"] + understood(said["clearway"]))
    as_written = {key: theirs[key] for key in ours if key in theirs and (kind(key) in AS_WRITTEN or "BEGIN ATOMIC" in theirs[key] or "RETURN (" in theirs[key])}
    agree = 1
    for form in FORMS:
        for source, target, wanted in ((clearway, postgres, ours | as_written), (postgres, clearway, kept)):
            new = f"{name} {form}"
            bad, refusals = moved(form, source, target, name, new, scratch)
            problems = bad + understood(refusals) + differences(wanted, entries(target, new))
            verdict(f"{name}: {form}, {source.name} to {target.name}", problems)
            agree += not problems
            psql(target, "postgres", f'DROP DATABASE "{new}"')
    rows = sum(max(0, body.count("\n") - 1) for key, body in ours.items() if "TABLE DATA" in key)
    objects = sum("TABLE DATA" not in key for key in ours)
    left = ", ".join(sorted(f"{kind(key).lower()} {key.split(';')[0].removeprefix('Name: ')}" for key in refused)) or "nothing"
    return f"pg_dump of its database ({objects} objects, {rows} rows), in four forms, both ways", f"{agree} of {1 + 2 * len(FORMS)}", left


def application(name, postgres, clearway, scratch):
    """Runs an application over each server; its steps have to say the same."""
    program = APPLICATIONS[name]
    home = unpacked(*program.PACKAGES)
    seen = []
    for server in (postgres, clearway):
        place = scratch / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o755)
        seen.append(program.run(home, place, server, lambda database, text: psql(server, database, text)))
    theirs, ours = seen
    agree = 0
    for step in theirs.keys() | ours.keys():
        a, b = theirs.get(step, "").splitlines(), ours.get(step, "").splitlines()
        problems = [f"- {line}" for line in a if line not in b] + [f"+ {line}" for line in b if line not in a]
        if not problems and a != b:
            problems = ["the same lines in another order"]
        verdict(f"{name}: {step}", problems)
        agree += not problems
    return program.__doc__.strip().splitlines()[0], f"{agree} of {len(theirs)}", "nothing"


def page(rows):
    version = {**PACKAGES, "bacula": "9.6.7", "powerdns": "4.7.3"}
    lines = ["# Applications", "", "Written by `tests/applications.py CLEARWAY --page docs/applications.md`: applications as Debian 12 has them, over `clearway serve` and",
             "over a PostgreSQL 15. What a script makes that is refused, with 0A000, is left out and named.", "",
             "| application | version | what was done | steps that agree | left out |", "|---|---|---|---:|---|"]
    for name, (done, agree, left) in rows.items():
        package = DATABASES[name][0] if name in DATABASES else name
        lines.append(f"| {name} | {version.get(package, '')} | {done} | {agree} | {left} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clearway")
    arguments.add_argument("names", nargs="*", choices=[[], *DATABASES, *APPLICATIONS])
    arguments.add_argument("--page", type=Path)
    given = arguments.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="clearway-applications-"))
    os.chmod(scratch, 0o755)
    servers, rows = [], {}
    try:
        for make in (lambda home: Postgres(home), lambda home: Clearway(given.clearway, home)):
            servers.append(make(str(scratch)))
            servers[-1].start()
            psql(servers[-1], "postgres", "CREATE ROLE app_owner; CREATE ROLE app_reader;")
        for name in given.names or [*DATABASES, *APPLICATIONS]:
            run = database if name in DATABASES else application
            rows[name] = run(name, *servers, scratch)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    if given.page:
        given.page.write_text(page(rows))
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
