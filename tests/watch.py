#!/usr/bin/env python3
"""`clearway watch` and `clearway top` on the servers of others: a real MariaDB and a real PostgreSQL. The planted chain is shown with its root, a
deadlock, the page's tables, a statement's page, own queries as metrics; what the server does not record is named; waits that have ended are still
shown; TLS as the URL asks for it. The last line is `N passed, N failed`.

usage: tests/watch.py PATH-TO-clearway [--only mariadb|postgresql]

It needs mariadbd and mariadb (Debian: mariadb-server, mariadb-client), PostgreSQL 15's binaries, and openssl.
"""
import argparse, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, urllib.error, urllib.request

import mariadb
from checks import Checks, until

parser = argparse.ArgumentParser()
parser.add_argument("binary")
parser.add_argument("--only")
asked = parser.parse_args()
BINARY = os.path.abspath(asked.binary)
scratch = tempfile.mkdtemp()
started = []
check = Checks("watch")
# P9's query, as its exporter has it.
MUTEXES = '''
mysql_global_status_innodb_mutex:
  query: "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name WHERE EVENT_NAME LIKE 'wait/synch/mutex/innodb/%'"
  metrics:
    - EVENT_NAME:
        usage: "LABEL"
        description: "Name of the mutex"
    - COUNT_STAR:
        usage: "COUNTER"
        description: "Number of calls"
    - SUM_TIMER_WAIT:
        usage: "GAUGE"
        description: "Duration"
'''
CLASSES = '''
session_states:
  query: "select state, count(*) as sessions from pg_stat_activity where state is not null group by 1"
  metrics:
    - state:
        usage: "LABEL"
    - sessions:
        usage: "GAUGE"
'''


def spawn(command, **more):
    process = subprocess.Popen(command, **more)
    started.append(process)
    return process


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def http(url, method="GET", headers={}):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def as_owner():
    """These servers refuse to be root's; root's processes go on as somebody else."""
    return {"user": "nobody"} if os.getuid() == 0 else {}


class MariaDb(mariadb.Server):
    name, kind, state = "MariaDB", "mariadb", "idle in transaction"
    # It looks for deadlocks when a wait begins, and keeps the latest.
    may_wait_for_console = []
    queries, series = MUTEXES, r'mysql_global_status_innodb_mutex_COUNT_STAR\{EVENT_NAME="wait/synch/mutex/innodb/\w+"\} [1-9]'
    own_series = r"mysql_status_threads_connected \d"
    missing = {}
    sampled = {"lock_waits": "keeps no history"}
    tables = {"statements": "query", "transactions": "pid", "waits": "wait_event", "latches": "name", "tables": "table", "indexes": "index_name", "files": "file", "findings": "finding"}
    pid_of_session = "select connection_id()"
    # Of the statement's page: a plan, that of the update, the waits, and what is not recorded.
    read_id = "select digest from performance_schema.events_statements_summary_by_digest where digest_text like 'select `v` from `t` where%'"
    plan, of_update, waits, no_times = "PRIMARY", "only in a session that may change", "only when it has ended", "does not record how the times"
    no_tls, required = "server does not support TLS", "ssl-mode=REQUIRED"
    # Modes that a server under TLS is reached with, and those that are refused, with what is said.
    good = ["ssl-mode=REQUIRED", "ssl-mode=VERIFY_CA&ssl-ca={ca}", "ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}", ""]
    bad = {"ssl-mode=DISABLED": "Access denied", "ssl-mode=REQUIRED&ssl-ca={other}": "UnknownIssuer", "ssl-mode=VERIFY_IDENTITY": "ssl-ca=FILE", "sslmode=require": "not known"}
    bad_at_address = {"ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}": "not valid for name"}

    def __init__(self):
        super().__init__(scratch)
        self.start()
        self.sql("create database planted")
        self.sql("create table planted.t (id int primary key, v int) engine=innodb; insert into planted.t values (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)")
        self.sql("create table planted.no_key (a int)")
        self.sql("create table planted.doubled (id int primary key, a int, b int, c int, index a (a), index a_b (a, b), unique c (c), index c_again (c), index c_b (b, c)) engine=innodb")
        self.url = f"mysql://root@127.0.0.1:{self.port}/planted"
        self.sql("create user secured identified by 'its password' require ssl; grant process on *.* to secured; grant select on performance_schema.* to secured; grant select on planted.* to secured")

    def start(self, options=()):
        super().start(options)
        started.append(self.process)

    def session(self):
        return spawn([*self.client(), "-n", "--force", "planted"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def start_with_tls(self):
        self.start([f"--ssl-ca={scratch}/ca.crt", f"--ssl-cert={scratch}/server.crt", f"--ssl-key={scratch}/server.key"])

    def secured(self, host, options):
        return f"mysql://secured@{host}:{self.port}/planted{'?' if options else ''}{options}"


class Postgres:
    name, kind, state = "PostgreSQL", "postgresql", "idle in transaction"
    # A ring stands until the console has seen it.
    may_wait_for_console = ["set deadlock_timeout = '1h'"]
    queries, series = CLASSES, r'session_states_sessions\{state="active"\} \d'
    own_series = r'pg_database_commits_total\{datname="postgres"\} \d'
    missing = {"waits": "does not measure", "latches": "does not record", "files": "does not count"}
    sampled = {"lock_waits": "keeps no history", "deadlocks": "no table of them"}
    tables = {"statements": "query", "transactions": "pid", "tables": "table", "indexes": "index", "findings": "finding"}
    pid_of_session = "select pg_backend_pid()"
    BIN = "/usr/lib/postgresql/15/bin"
    read_id = "select queryid from pg_stat_statements where query like 'select v from t where%'"
    plan, of_update, waits, no_times = "using t_pkey on t", "Update on t", "sampled", "does not record how the times"
    no_tls, required = "server does not support TLS", "sslmode=require"
    good = ["sslmode=require", "sslmode=verify-ca&sslrootcert={ca}", "sslmode=verify-full&sslrootcert={ca}", "sslmode=verify-full&sslrootcert={ca}&channel_binding=require", ""]
    bad = {"sslmode=disable": "pg_hba.conf rejects", "sslmode=require&sslrootcert={other}": "UnknownIssuer", "sslmode=verify-full": "sslrootcert=FILE", "sslmode=allow": "not supported"}
    bad_at_address = {"sslmode=verify-full&sslrootcert={ca}": "not valid for name"}

    def __init__(self):
        self.port = free_port()
        self.data = f"{scratch}/postgres"
        os.mkdir(self.data, 0o700)
        if os.getuid() == 0:
            os.chmod(scratch, 0o755)
            shutil.chown(self.data, "nobody", "nogroup")
        subprocess.run([f"{self.BIN}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-N"], check=True, capture_output=True, cwd="/", **as_owner())
        self.start()
        self.sql("create extension pg_stat_statements; create table t (id int primary key, v int); insert into t select g, 0 from generate_series(0, 7) g; create table no_key (a int)")
        self.sql("create role secured login password 'its password' in role pg_monitor")
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self, tls=()):
        more = ["shared_preload_libraries=pg_stat_statements", "enable_seqscan=off", *tls]
        self.process = spawn([f"{self.BIN}/postgres", "-D", self.data, "-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
                              *[word for one in more for word in ("-c", one)]],
                             stdout=open(f"{scratch}/postgres.log", "a"), stderr=subprocess.STDOUT, cwd="/", **as_owner())
        until(lambda: self.sql("select 1") == "1" or self.process.poll() is not None)

    def client(self):
        return ["psql", "-XAtq", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres"]

    def sql(self, sql):
        done = subprocess.run([*self.client(), "-c", sql], text=True, capture_output=True)
        return (done.stdout + done.stderr).strip()

    def session(self):
        return spawn(self.client(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def start_with_tls(self):
        for name in ("server.crt", "server.key"):
            shutil.copy(f"{scratch}/{name}", f"{self.data}/{name}")
            os.chmod(f"{self.data}/{name}", 0o600)
            if os.getuid() == 0:
                shutil.chown(f"{self.data}/{name}", "nobody", "nogroup")
        with open(f"{self.data}/pg_hba.conf") as file:
            rules = file.read()
        with open(f"{self.data}/pg_hba.conf", "w") as file:
            file.write("hostssl all secured 127.0.0.1/32 scram-sha-256\nhost all secured all reject\n" + rules)
        self.start(["ssl=on"])

    def secured(self, host, options):
        return f"postgresql://secured@{host}:{self.port}/postgres{'?' if options else ''}{options}"


class Session:
    """A client that is told line by line."""

    def __init__(self, server):
        self.client = server.session()
        self.pid = int(self.run(server.pid_of_session)[-1])

    def tell(self, sql):
        self.client.stdin.write(sql + ";\n")
        self.client.stdin.flush()

    def run(self, sql):
        """Runs it to its end; the lines that came."""
        self.tell(sql)
        self.tell("select 'its end'")
        lines = []
        for line in self.client.stdout:
            if line == "its end\n":
                return lines
            lines.append(line.strip())
        return lines

    def end(self):
        self.client.stdin.close()
        out = self.client.stdout.read()
        self.client.wait()
        return out


def watched(server):
    queries = f"{scratch}/{server.kind}.yaml"
    open(queries, "w").write(server.queries)
    log = f"{scratch}/{server.kind}.watch"
    command = [BINARY, "watch", server.url, "--http", "127.0.0.1:0", "--cancel", "--queries", queries, "--interval", "1"]
    watcher = spawn(command, stdout=open(log, "w"), stderr=subprocess.STDOUT)
    found = until(lambda: re.search(r"is at (http://\S+)/", open(log).read()) or watcher.poll() is not None)
    if found is True:
        raise SystemExit(f"{open(log).read()}\n{check.totals(1)}")
    return watcher, found[1]


def blockers(at):
    """Of each session that the newest second has: whom it waits for."""
    second = json.loads(http(at + "/api/now")[1]).get("second") or {"sessions": []}
    return {one["pid"]: one for one in second["sessions"]}


def certificates():
    """An authority, a certificate for localhost that it has signed, and another authority."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    run = lambda *words: subprocess.run(["openssl", *words], cwd=scratch, check=True, capture_output=True)
    for name in ("ca", "other"):
        run("req", "-x509", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
    run("req", *key, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    with open(f"{scratch}/names", "w") as file:
        file.write("subjectAltName=DNS:localhost")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.crt")


def top(url, password=""):
    """What one screen of `clearway top` says, and what is wrong."""
    done = subprocess.run([BINARY, "top", url, "--size", "200x20"], text=True, capture_output=True, env=os.environ | {"PGPASSWORD": password})
    return done.stdout + done.stderr


def tls(server, told):
    """The server has TLS now; the role `secured` gets in by TLS alone."""
    asked = lambda host, options: top(server.secured(host, options.format(ca=f"{scratch}/ca.crt", other=f"{scratch}/other.crt")), "its password")
    for options in server.good:
        said = until(lambda: (lambda said: said if server.name in said and "no session is active" in said else "")(asked("localhost", options)), 20)
        check(told(f"by TLS with {options or 'nothing said'}"), said, asked("localhost", options))
    for host, all_ in (("localhost", server.bad), ("127.0.0.1", server.bad_at_address)):
        for options, why in all_.items():
            said = asked(host, options)
            check(told(f"not with {options} at {host}"), why in said, said)


def table_of(at, name, more=""):
    table = json.loads(http(f"{at}/api/table/{name}{more}")[1])
    return table, [dict(zip(table.get("columns", []), row)) for row in table.get("rows", [])]


def history(server, told, at, moment, pids):
    """The chain has ended: the moment is still shown, and its waits with their root."""
    second = json.loads(http(f"{at}/api/now?at={moment}")[1])["second"]
    shown = {one["pid"]: one for one in second["sessions"]}
    check(told("the slider still shows the tree of that second"), [shown.get(pid, {}).get("blocked_by") for pid in pids] == [[], *[[pid] for pid in pids[:4]]], second)
    for more in ("", f"?at={moment}"):
        table, rows = table_of(at, "lock_waits", more)
        # The longest of each session: the longest ones come first.
        waits = {int(row["pid"]): row for row in reversed(rows) if int(row["root_pid"]) == pids[0]}
        check(told(f"its waits have their root and statements{', around the moment' if more else ''}"),
              set(waits) == set(pids[1:]) and all(f"where id = {n}" in waits[pid]["query"] for n, pid in enumerate(pids[1:]))
              and {row["root_state"] for row in waits.values()} == {server.state} and all(row["root_statement"] and row["outcome"] == "has ended" for row in waits.values()), table)
    check(told("and not around another moment"), table_of(at, "lock_waits", f"?at={moment - 3000_000_000}")[1] == [], moment)


def statement(server, told, at):
    """The page of the statement by which the chain waits."""
    named = lambda begin: [row["queryid"] for row in table_of(at, "statements")[1] if re.match(begin, row["query"], re.I)]
    ids, reads = until(lambda: named("update `?t`? set")), until(lambda: server.sql(server.read_id).split())
    if not check(told("the statements have numbers"), ids and reads, table_of(at, "statements")):
        return
    page = lambda id: json.loads(http(f"{at}/api/statement?id={id}")[1])
    waited = lambda shown: server.kind == "mariadb" or "Lock" in [row[0] for row in shown.get("waits", {}).get("rows", [])]
    shown = until(lambda: (lambda told: told if told.get("trend") and waited(told) else None)(page(ids[0]))) or page(ids[0])
    check(told("a statement's page has its figures and its trend"), "update" in shown.get("query", "").lower() and shown["figures"]["rows"] and shown["trend"], shown)
    check(told("what it waited for, as far as it can be known"), waited(shown) and server.waits in shown["waits"]["missing"], shown.get("waits"))
    check(told("the update's plan, or why there is none"), server.of_update in json.dumps(shown.get("plan")), shown.get("plan"))
    check(told("a query's plan"), server.plan in json.dumps(page(reads[0]).get("plan")), page(reads[0]))
    check(told("how its times are spread is not recorded"), server.no_times in shown.get("times", {}).get("missing", ""), shown.get("times"))
    check(told("and a number that is none is refused"), http(f"{at}/api/statement?id=1%20or%201=1")[0] == 400)


def ring(server, told, at):
    """Three sessions that wait for each other; the server resolves it after the console has seen it."""
    sessions = [Session(server) for _ in range(3)]
    for n, session in enumerate(sessions):
        for sql in server.may_wait_for_console:
            session.run(sql)
        session.run("begin")
        session.run(f"update t set v = {n} where id = {5 + n}")
    for n, session in enumerate(sessions[:2]):
        session.tell(f"update t set v = 8 where id = {6 + n}")
        until(lambda: blockers(at).get(session.pid, {}).get("blocked_by"))
    last, closes = sessions[2], "update t set v = 8 where id = 5"
    if server.may_wait_for_console:
        last.run("savepoint before")
        last.tell(closes)
        until(lambda: table_of(at, "deadlocks")[1])
        server.sql(f"select pg_cancel_backend({last.pid})")
        last.run("rollback to before")
        last.run("set deadlock_timeout = '10ms'")
    last.tell(closes)
    # Whichever is the victim: all are told before one is waited for.
    for session in sessions:
        session.tell("rollback")
    said = "".join(session.end() for session in sessions)
    check(told("a ring of three is a deadlock"), re.search("(?i)deadlock", said), said)


def of(server):
    told = lambda what: f"{server.name}: {what}"
    watcher, at = watched(server)
    check(told("it is connected to"), until(lambda: http(at + "/ready")[0] == 200), open(f"{scratch}/{server.kind}.watch").read())
    now = json.loads(http(at + "/api/now")[1])
    check(told("and named"), now["kind"] == server.kind and server.name in now["version"], now)
    ring(server, told, at)
    chain = [Session(server) for _ in range(5)]
    for n, session in enumerate(chain):
        session.run("begin")
        session.run(f"update t set v = {n} where id = {n}")
    chain[0].run("select v from t where id = 7")
    for n, session in enumerate(chain[1:]):
        session.tell(f"update t set v = 9 where id = {n}")
        until(lambda: blockers(at).get(session.pid, {}).get("blocked_by"))
    pids = [session.pid for session in chain]
    # A second is looked at in which all of it has been seen.
    is_whole = lambda all_: (sum(bool(one["blocked_by"]) for one in all_.values()) == 4 and all(pid in all_ for pid in pids)
                             and (server.kind != "mariadb" or all(all_[pid]["lock"] for pid in pids[1:])))
    shown = until(lambda: (lambda all_: all_ if is_whole(all_) else None)(blockers(at))) or blockers(at)
    check(told("each of the chain of five waits for the one before"),
          [shown.get(pid, {}).get("blocked_by") for pid in pids] == [[], *[[pid] for pid in pids[:4]]], (pids, shown))
    check(told("the root does nothing in its transaction; the others wait for a lock"),
          shown[pids[0]]["state"] == server.state and [shown[pid]["class"] for pid in pids[1:]] == ["Lock"] * 4, shown)
    check(told("statements are shown"), all(f"where id = {n}" in shown[pid]["query"] for n, pid in enumerate(pids[1:])), shown)
    check(told("the console shows none of its own sessions"), "clearway watch" not in json.dumps(shown), shown)
    if server.kind == "mariadb":
        check(told("the lock that is wanted"), "planted.t" in json.dumps(shown[pids[1]]["lock"]) and "PRIMARY" in json.dumps(shown[pids[1]]["lock"]), shown[pids[1]])
        table = json.loads(http(at + "/api/table/deadlocks")[1])
        rows = [dict(zip(table.get("columns", []), row)) for row in table.get("rows", [])]
        check(told("the deadlock's victim"), [row["victim"] for row in rows].count("t") == 1, table)
    table, rows = table_of(at, "deadlocks")
    rows = [row for row in rows if row["number"] == rows[0]["number"]]
    check(told("the deadlock's ring"), len(rows) == 3 and {row["waits_for"] for row in rows} == {row["pid"] for row in rows}
          and all("update t set v = 8" in row["statements"] for row in rows), table)
    moment = json.loads(http(at + "/api/now")[1])["second"]["at"]
    for name, column in server.tables.items():
        is_there = lambda table: column in table.get("columns", []) and table["rows"]
        check(told(f"table {name}"), until(lambda: is_there(table_of(at, name)[0])), table_of(at, name))
    # Some of them rest on what the server counts at the end of a statement.
    ours = lambda table: sum(row[0] in ("Idle blocker", "Duplicate index", "No primary key") for row in table.get("rows", []))
    findings = until(lambda: (lambda table: table if ours(table) >= (4 if server.kind == "mariadb" else 2) else None)(table_of(at, "findings")[0])) or table_of(at, "findings")[0]
    check(told("the table without a key is found"), any(row[0] == "No primary key" and row[1].endswith("no_key") for row in findings.get("rows", [])), findings)
    if server.kind == "mariadb":
        found = {(row[0], row[1]) for row in findings.get("rows", [])}
        doubled = {one for one in found if one[0] == "Duplicate index"}
        check(told("indexes that others cover, and no others"), doubled == {("Duplicate index", "planted.doubled.a"), ("Duplicate index", "planted.doubled.c_again")}, findings)
        check(told("the root is an idle blocker"), ("Idle blocker", f"session {pids[0]}") in found, findings)
    for name, why in server.sampled.items():
        check(told(f"what is sampled and not recorded: {name}"), why in table_of(at, name)[0].get("note", ""), table_of(at, name))
    for name, why in server.missing.items():
        check(told(f"what it does not record: {name}"), why in http(f"{at}/api/table/{name}")[1], http(f"{at}/api/table/{name}"))
    has_all = lambda text: re.search(server.series, text) and re.search(server.own_series, text) and "clearway_watch_blocked_sessions 4" in text
    metrics = until(lambda: (lambda text: text if has_all(text) else None)(http(at + "/metrics")[1])) or http(at + "/metrics")[1]
    check(told("the line of the processors"), json.loads(http(at + "/api/now")[1])["processors"].get("count") in (os.cpu_count(), len(os.sched_getaffinity(0))) and "\nclearway_watch_processors " in metrics, metrics)
    check(told("own queries are metrics"), re.search(server.series, metrics), metrics)
    check(told("and so are those that come along"), re.search(server.own_series, metrics) and "clearway_watch_blocked_sessions 4" in metrics, metrics)
    statement(server, told, at)
    once = subprocess.run([BINARY, "top", server.url, "--size", "120x40"], text=True, capture_output=True)
    check(told("top shows the tree"), once.returncode == 0 and all(str(pid) in once.stdout for pid in pids), once.stdout + once.stderr)
    token = re.search(r'name="token" content="(\w+)"', http(at + "/")[1])[1]
    ended = http(f"{at}/api/cancel?pid={pids[0]}", "POST", {"x-clearway-token": token})
    check(told("the root is ended from the page"), '"done":true' in ended[1], ended)
    for session in chain[1:]:
        session.run("commit")
    check(told("and the others go on"), server.sql("select count(*) from " + ("planted.t" if server.kind == "mariadb" else "t") + " where v = 9") == "4")
    check(told("then nobody waits"), until(lambda: not any(one["blocked_by"] for one in blockers(at).values())))
    history(server, told, at, moment, pids)
    for session in chain:
        session.client.kill()
        session.client.wait()
    said = top(f"{server.url}?{server.required}")
    check(told("TLS that the server does not have is not done without"), server.no_tls in said, said)
    server.stop()
    check(told("a server that goes away is told"), until(lambda: http(at + "/ready")[0] == 503))
    server.start_with_tls()
    check(told("and found again"), until(lambda: http(at + "/ready")[0] == 200), http(at + "/ready"))
    if server.kind == "postgresql":
        shown = server.sql("select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'clearway watch'")
        check(told("by TLS where the server offers it"), shown == "t", shown)
    tls(server, told)
    watcher.send_signal(signal.SIGTERM)
    watcher.wait()
    server.stop()


try:
    certificates()
    for make in (MariaDb, Postgres):
        if asked.only in (None, make.kind):
            of(make())
finally:
    for process in reversed(started):
        if process.poll() is None:
            process.kill()
            process.wait()
    shutil.rmtree(scratch, ignore_errors=True)
print(check.totals())
sys.exit(check.failed > 0)
