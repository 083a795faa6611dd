#!/usr/bin/env python3
"""`clearway check schema` and sys.findings: a schema with every planted defect (check_schema.sql) is found out, and nothing else in it; each statement
that a finding prints runs, and then the finding is gone. The last line is `N passed, N failed`.

usage: tests/check_schema.py PATH-TO-clearway [HOST PORT of a PostgreSQL that is asked the same]
       tests/check_schema.py PATH-TO-clearway mariadb       (nothing else)

The same for a MariaDB of its own (check_schema_mariadb.sql); it needs mariadbd and mariadb.
"""
import json, os, re, shutil, signal, subprocess, sys, tempfile, time

import mariadb

BINARY = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
scratch = tempfile.mkdtemp()
passed = failed = 0

WANTED = {
    ("Narrower integer", "shop.customer.age"): "smallint",
    ("Number kept as text", "shop.customer.loyalty_points"): "integer",
    ("Number kept as text", "shop.customer.weight"): "numeric",
    ("Date kept as text", "shop.customer.born"): "date",
    ("Date kept as text", "shop.customer.seen_at"): "timestamp",
    ("IP address kept as text", "shop.customer.address"): "inet",
    ("UUID kept as text", "shop.customer.token"): "uuid",
    ("VARCHAR wider than its data", "shop.customer.nickname"): "varchar(16)",
    ("Unused index", "shop.event_kind"): "DROP INDEX",
    ("Unused index", "shop.event_kind_at"): "DROP INDEX",
    ("Duplicate index", "shop.event_kind"): "DROP INDEX",
    ("Missing index", "shop.orders (seller)"): "CREATE INDEX",
    ("No primary key", "shop.log"): "PRIMARY KEY",
}
OF_MARIADB = {
    ("Narrower integer", "shop.customer.age"): "tinyint NOT NULL DEFAULT 18 COMMENT 'in years, it''s a guess'",
    ("Narrower integer", "shop.customer.level"): "tinyint unsigned",
    ("Number kept as text", "shop.customer.loyalty_points"): "mediumint",
    ("Number kept as text", "shop.customer.weight"): "decimal(4,1)",
    ("Date kept as text", "shop.customer.born"): "date",
    ("Date kept as text", "shop.customer.seen_at"): "datetime",
    ("IP address kept as text", "shop.customer.address"): "inet4",
    ("IP address kept as text", "shop.customer.address_6"): "inet6",
    ("IP address kept as text", "shop.customer.any_address"): "INET6_ATON",
    ("UUID kept as text", "shop.customer.token"): "uuid",
    ("VARCHAR wider than its data", "shop.customer.nickname"): "varchar(16) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL DEFAULT 'nobody'",
    ("Unused index", "shop.event.event_kind"): "DROP INDEX",
    ("Unused index", "shop.event.event_kind_at"): "DROP INDEX",
    ("Duplicate index", "shop.event.event_kind"): "DROP INDEX",
    ("Long primary key", "shop.event (host, name, at)"): "ADD COLUMN id bigint unsigned",
    ("No primary key", "shop.log"): "PRIMARY KEY",
}
# PostgreSQL's indexes do not repeat the key.
OF_CLEARWAY = {("Long primary key", "shop.event (host, name, at)"): "ADD COLUMN id"}


def check(name, ok, shown=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(f"check-schema {name} ... {'ok' if ok else 'FAILED'}" + ("" if ok else f"\n{shown}"), flush=True)


class Server:
    def __init__(self, host, port, database="postgres"):
        self.host, self.port, self.database = host, str(port), database

    def psql(self, *sql, app="tester", database=None, file=None):
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.host, "-p", self.port, "-U", "postgres", "-d", database or self.database]
        for one in sql:
            command += ["-c", one]
        if file:
            command += ["-f", file]
        ran = subprocess.run(command, text=True, capture_output=True, env=os.environ | {"PGAPPNAME": app})
        return (ran.stdout + ran.stderr).strip()

    def findings(self):
        return findings(f"postgresql://postgres@{self.host}:{self.port}/{self.database}")


def findings(url):
    ran = subprocess.run([BINARY, "check", "schema", "--json", url], text=True, capture_output=True)
    if ran.returncode:
        return {("error", ran.stderr): {"ddl": "", "bytes_saved": None}}
    return {(found["finding"], found["object"]): found for found in json.loads(ran.stdout)}


def planted(server, name, wanted):
    check(f"{name}: the schema", server.psql(file=f"{HERE}/check_schema.sql") == "")
    unread = server.findings()
    check(f"{name}: an index is not called unused before its table has been read", not [key for key in unread if key[0] == "Unused index"], sorted(unread))
    server.psql(*["select 1 from shop.event where host = 'h' and name = 'n' and at = '2026-01-01'"] * 1000)
    found = server.findings()
    check(f"{name}: all that was planted is found, and nothing else", set(found) == set(wanted), sorted(set(found) ^ set(wanted)))
    named = [key for key, ddl in wanted.items() if key in found and ddl not in found[key]["ddl"]]
    check(f"{name}: each names the right type or statement", not named, [found[key] for key in named])
    spared = [key for key, one in found.items() if "kept as text" in key[0] and key[1] != "shop.customer.weight" and not one["bytes_saved"]]
    check(f"{name}: what is saved is told", not spared and found.get(("Narrower integer", "shop.customer.age"), {}).get("bytes_saved") == 2000 * 6, spared)
    # SCH-1: every statement runs as it is printed; the one for a table without a key is a choice.
    told = ""
    for (kind, _), one in found.items():
        if kind == "No primary key":
            continue
        # The second finding about an index that the first has dropped.
        statement = re.sub(r"^If that .*?: ", "", one["ddl"]).replace("DROP INDEX", "DROP INDEX IF EXISTS")
        told += "\n".join(line for line in server.psql(*statement.split("; ")).splitlines() if "NOTICE" not in line)
    check(f"{name}: each statement runs", told == "", told)
    left = server.findings()
    check(f"{name}: then only what is a choice is left", set(left) == {("No primary key", "shop.log")}, set(left))


def planted_in_mariadb(server):
    """The same in MariaDB's types and syntax."""
    with open(f"{HERE}/check_schema_mariadb.sql") as file:
        told = server.sql(file.read())
    check("mariadb: the schema", told == "", told)
    url = f"mysql://root@127.0.0.1:{server.port}/shop"
    unread = findings(url)
    check("mariadb: an index is not called unused before its table has been read", not [key for key in unread if key[0] == "Unused index"], sorted(unread))
    server.sql("select 1 from shop.event where host = 'host-number-1.example.org' and name = 'event number 1' and at = '2026-01-01'; " * 1000)
    found = findings(url)
    check("mariadb: all that was planted is found, and nothing else", set(found) == set(OF_MARIADB), sorted(set(found) ^ set(OF_MARIADB)))
    named = [key for key, ddl in OF_MARIADB.items() if key in found and ddl not in found[key]["ddl"]]
    check("mariadb: each names the right type or statement", not named, [found[key] for key in named])
    spared = [key for key, one in found.items() if key[0] in ("Narrower integer", "Date kept as text", "UUID kept as text", "Duplicate index", "Long primary key") and not one["bytes_saved"]]
    check("mariadb: what is saved is told", not spared and found.get(("Narrower integer", "shop.customer.age"), {}).get("bytes_saved") == 2000 * 7, spared)
    before = server.sql("select age, level, nickname, loyalty_points, weight, born, address, inet6_ntoa(inet6_aton(any_address)), token from shop.customer order by id")
    told = ""
    for (kind, _), one in found.items():
        if kind != "No primary key":
            statement = re.sub(r"^If that .*?: ", "", one["ddl"])
            # An index may be found twice.
            told += server.sql(statement.replace("DROP INDEX", "DROP INDEX IF EXISTS"))
    check("mariadb: each statement runs", told == "", told)
    after = server.sql("select age, level, nickname, loyalty_points, weight, born, address, inet6_ntoa(any_address), token from shop.customer order by id")
    check("mariadb: and keeps every value", after == before and after.count("\n") == 1999, (before[:300], after[:300]))
    kept = server.sql("select column_name, is_nullable, column_default, column_comment from information_schema.columns where table_schema = 'shop' and column_name in ('age', 'nickname', 'any_address') order by 1")
    check("mariadb: and what is not the type", kept == "age\tNO\t18\tin years, it's a guess\nany_address\tNO\tNULL\t\nnickname\tNO\t'nobody'", kept)
    left = findings(url)
    check("mariadb: then only what is a choice is left", set(left) == {("No primary key", "shop.log")}, set(left))
    check("mariadb: another database's URL has none of it", findings(f"mysql://root@127.0.0.1:{server.port}/test") == {}, findings(f"mysql://root@127.0.0.1:{server.port}/test"))
    check("mariadb: a URL of the server's own tables has all", set(findings(f"mysql://root@127.0.0.1:{server.port}/mysql")) == set(left))


def stranger(server):
    """A table that the role may not read is named; the others are judged."""
    server.psql("create role stranger login", "create schema theirs", "create table theirs.open_to_all (id bigint primary key, n bigint)", "grant usage on schema theirs to stranger",
                "grant select on theirs.open_to_all to stranger", "insert into theirs.open_to_all select g, g % 7 from generate_series(1, 2000) g", "create table theirs.closed (id bigint primary key)")
    ran = subprocess.run([BINARY, "check", "schema", "--json", f"postgresql://stranger@{server.host}:{server.port}/postgres"], text=True, capture_output=True)
    check("a table that can't be read is named", ran.returncode == 0 and re.search("^theirs.closed was not judged by its data: .*permission denied", ran.stderr), ran)
    check("and the others are judged", "theirs.open_to_all.n" in ran.stdout, ran)
    server.psql("drop schema theirs cascade")


def live(server):
    """What sessions do: loops, and transactions that are left open."""
    server.psql("create table t (id int primary key, v int); insert into t select g, 0 from generate_series(1, 500) g")
    # A pause of the client ends a loop: there are many more of them than a finding needs.
    loop = lambda statement: [statement.format(n) for n in range(1, 301)]
    server.psql(*loop("insert into t values ({} + 1000, 0)"), app="single inserts")
    server.psql(*loop("update t set v = 1 where id = {}"), app="single updates")
    server.psql("begin; " + "; ".join(loop("insert into t values ({} + 2000, 0)")) + "; commit", app="one transaction")
    server.psql(*loop("select v from t where id = {}"), app="row by row")
    server.psql("select count(*) from t", app="honest")
    shown = server.psql("select finding, object from sys.findings where finding in ('Commit per row', 'N+1 queries') order by 1, 2")
    check("a commit per row and N+1 are found, by application", shown == "Commit per row|single inserts\nCommit per row|single updates\nN+1 queries|row by row", shown)
    blocker = subprocess.Popen(["psql", "-XAtq", "-h", server.host, "-p", server.port, "-U", "postgres", "-d", "postgres"], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"PGAPPNAME": "blocker"})
    # 40,000 rows: a change that is rather large, and left open.
    blocker.stdin.write("create table large (id int primary key, v text); insert into large select g, repeat('x', 100) from generate_series(1, 40000) g;\n"
                        "begin; update large set v = 'y'; update t set v = 2 where id = 1; select 'begun';\n")
    blocker.stdin.flush()
    blocker.stdout.readline()
    waiter = subprocess.Popen(["psql", "-XAtq", "-h", server.host, "-p", server.port, "-U", "postgres", "-d", "postgres", "-c", "update t set v = 3 where id = 1"])
    while "Idle blocker" not in (shown := server.psql("select finding, object ~ ' of blocker$', evidence ~ 'update t set v = 2' or finding <> 'Idle blocker' from sys.findings"
                                                      " where finding in ('Idle blocker', 'Large transaction') order by 1")):
        time.sleep(0.1)
    check("an idle blocker of a large transaction is found, with the statement that took the lock", shown == "Idle blocker|t|t\nLarge transaction|t|t", shown)
    blocker.stdin.write("rollback;\n")
    blocker.stdin.close()
    blocker.wait()
    waiter.wait()
    check("and then they are gone", server.psql("select count(*) from sys.findings where finding in ('Idle blocker', 'Large transaction')") == "0")


def of_mariadb():
    peer = mariadb.Server(scratch)
    try:
        peer.start()
        planted_in_mariadb(peer)
    finally:
        peer.kill()


if sys.argv[2:] == ["mariadb"]:
    of_mariadb()
    shutil.rmtree(scratch)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
log = open(f"{scratch}/log", "w")
process = subprocess.Popen([BINARY, "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0"], stdout=log, stderr=log)
while not (up := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(f"{scratch}/log").read())):
    if process.poll() is not None:
        sys.exit(f"the server has ended:\n{open(f'{scratch}/log').read()}\n0 passed, 1 failed")
    time.sleep(0.05)
server = Server("127.0.0.1", up[1])
server.psql("create database shop")
planted(Server("127.0.0.1", up[1], "shop"), "clearway", WANTED | OF_CLEARWAY)
stranger(server)
live(server)
process.send_signal(signal.SIGTERM)
process.wait()
of_mariadb()
shutil.rmtree(scratch)
if len(sys.argv) > 3:
    peer = Server(sys.argv[2], sys.argv[3], "clearway_check_schema")
    peer.psql("create database clearway_check_schema", database="postgres")
    planted(peer, "postgres", WANTED)
    peer.psql("drop database clearway_check_schema", database="postgres")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
