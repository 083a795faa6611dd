#!/usr/bin/env python3
"""Tools that watch PostgreSQL and MySQL, as Debian packs them, on a Clearway. The last line is `N passed, N failed`.

usage: tests/tools.py PATH-TO-clearway

pg_activity (in a terminal), prometheus-postgres-exporter, pgbadger on the three forms of the log, pt-query-digest on the slow log, psql with
a view over pg_locks.
"""
import fcntl, json, os, pty, re, select, shutil, signal, socket, struct, subprocess, sys, tempfile, termios, time, urllib.request

BINARY = os.path.abspath(sys.argv[1])
scratch = tempfile.mkdtemp()
os.chmod(scratch, 0o755)
LOGS = f"{scratch}/logs"
passed = failed = 0
ALL = []


def check(name, ok, shown=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(f"tools {name} ... {'ok' if ok else 'FAILED'}" + ("" if ok else f"\n{shown}"), flush=True)


def missing(tool):
    if shutil.which(tool):
        return False
    check(tool, False, "it is not installed")
    return True


def start():
    log = open(f"{scratch}/out", "w")
    server = subprocess.Popen([BINARY, "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0", "-c", f"log_directory={LOGS}",
                               "-c", "log_destination=stderr,csvlog,jsonlog,slowlog", "-c", "log_connections=on", "-c", "log_disconnections=on",
                               "-c", "log_line_prefix=%m [%p] %q%u@%d %a "], stdout=log, stderr=log)
    ALL.append(server)
    while True:
        found = re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(f"{scratch}/out").read())
        if found:
            return server, found[1]
        if server.poll() is not None:
            sys.exit(f"the server has ended:\n{open(f'{scratch}/out').read()}\n0 passed, 1 failed")
        time.sleep(0.05)


def of_psql(app):
    command = ["psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres"]
    return command, os.environ | {"PGAPPNAME": app}


def psql(*statements, app="viewer"):
    command, environment = of_psql(app)
    for statement in statements:
        command += ["-c", statement]
    ran = subprocess.run(command, text=True, capture_output=True, env=environment, timeout=120)
    return (ran.stdout + ran.stderr).strip()


class Session:
    """A psql that is told line by line."""

    def __init__(self, app):
        command, environment = of_psql(app)
        self.psql = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        ALL.append(self.psql)

    def tell(self, sql):
        self.psql.stdin.write(sql + ";\n")
        self.psql.stdin.flush()

    def run(self, sql):
        self.tell(sql)
        self.psql.stdin.write("\\echo done\n")
        self.psql.stdin.flush()
        for line in self.psql.stdout:
            if line == "done\n":
                return

    def end(self):
        self.psql.stdin.close()
        out = self.psql.stdout.read()
        self.psql.wait()
        return out


def until(sql, wanted):
    while psql(sql) != wanted:
        time.sleep(0.05)


def waiting(app):
    until(f"select count(*) from pg_stat_activity where application_name = '{app}' and wait_event_type = 'Lock'", "1")


LOCKVIEW = """create view lockview as
 select pid, virtualtransaction as vxid, locktype as lock_type, mode as lock_mode, granted,
        case when virtualxid is not null and transactionid is not null then virtualxid || ' ' || transactionid
             when virtualxid::text is not null then virtualxid
             else transactionid::text end as xid_lock,
        relname, page, tuple, classid, objid, objsubid
 from pg_locks left outer join pg_class on (pg_locks.relation = pg_class.oid)
 where pid != pg_backend_pid() and virtualtransaction is distinct from virtualxid
 order by 1, 2, 5 desc, 6, 3, 4, 7"""


def blocked():
    """The tools look while one session holds a row and another one wants it."""
    holder, waiter = Session("holder"), Session("waiter")
    holder.run("begin")
    holder.run("update t set v = 'held' where id = 1")
    waiter.tell("update t set v = 'wanted' where id = 1")
    waiting("waiter")
    shown = psql("select lock_type, lock_mode, granted, relname from lockview where relname = 't' order by 1, 2, 3 desc")
    wanted = ["relation|RowExclusiveLock|t|t", "relation|RowExclusiveLock|t|t", "tuple|ExclusiveLock|t|t"]
    check("psql with lockview", shown.splitlines() == wanted, shown)
    pg_activity()
    exporter()
    # The log tells of waits of a second, in all its forms.
    while not all("still waiting for" in open(f"{LOGS}/{name}").read() for name in ("clearway.log", "clearway.csv", "clearway.json")):
        time.sleep(0.05)
    holder.run("commit")
    holder.end()
    waiter.end()


def screens(program, keys):
    """What a program paints in a terminal between the keys: all of it, without the terminal's commands."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(program[0], program)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    out = b""
    for key, awaited in keys + [("q", None)]:
        seen = len(out)
        deadline = time.monotonic() + 60
        # Where nothing comes of it the check fails, which shows the screen.
        while awaited and not re.search(awaited, plain(out[seen:])) and time.monotonic() < deadline:
            ready, _, _ = select.select([terminal], [], [], 1)
            try:
                more = os.read(terminal, 65536) if ready else b""
            except OSError:
                break
            out += more
        try:
            os.write(terminal, key.encode())
        except OSError:
            break
    try:
        while more := os.read(terminal, 65536):
            out += more
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    return plain(out), os.waitstatus_to_exitcode(status)


def plain(out):
    return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])", " ", out.decode(errors="replace"))


def pg_activity():
    if missing("pg_activity"):
        return
    # Its three lists: what runs, what waits, what blocks. `q` ends it.
    program = ["pg_activity", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "--debug-file", f"{scratch}/pg_activity.log"]
    shown, status = screens(program, [("2", r"wanted' where id = 1"), ("3", r"ShareLock"), ("1", r"ExclusiveLock")])
    quiet = "Traceback" not in shown and "disabled" not in open(f"{scratch}/pg_activity.log").read().replace("System counters are disabled", "")
    check("pg_activity shows who runs, who waits and who blocks", status == 0 and quiet
          and all(re.search(wanted, shown) for wanted in (r"PostgreSQL 15\.0", r"RUNNING QUERIES", r"WAITING QUERIES", r"BLOCKING QUERIES", r"wanted' where id = 1",
                                                          r"held' where id = 1", r"/\s+5000")), f"{status}\n{shown[-6000:]}")


def exporter():
    name = "prometheus-postgres-exporter"
    if missing(name):
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    log = open(f"{scratch}/exporter", "w")
    running = subprocess.Popen([name, f"--web.listen-address={at}"], stdout=log, stderr=log,
                               env=os.environ | {"DATA_SOURCE_NAME": f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"})
    ALL.append(running)
    text = ""
    while running.poll() is None and not text:
        try:
            text = urllib.request.urlopen(f"http://{at}/metrics").read().decode()
        except OSError:
            time.sleep(0.1)
    running.kill()
    running.wait()
    said = open(f"{scratch}/exporter").read()
    check("the exporter reads all that it asks for", "level=error" not in said and "level=warn" not in said
          and re.search(r"^pg_exporter_last_scrape_error 0$", text, re.M) and not re.search(r"^pg_scrape_collector_success\{.*\} 0$", text, re.M), said + text[-3000:])

    def metric(name, labels=""):
        found = re.search(rf"^{name}\{{[^}}]*{labels}[^}}]*\}} (\S+)$", text, re.M)
        return float(found[1]) if found else None

    of_database = 'datname="postgres"'
    figures = {name: metric(name, of_database) for name in
               ("pg_database_size_bytes", "pg_stat_database_tup_inserted", "pg_stat_database_deadlocks", "pg_stat_database_temp_files", "pg_stat_database_temp_bytes")}
    figures["tables"] = float(psql("select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' and relname in ('t', 'long')"))
    figures["connections"] = metric("pg_settings_max_connections")
    figures["cache"] = metric("pg_settings_cache_size_bytes")
    figures["active"] = metric("pg_stat_activity_count", f'{of_database}[^}}]*state="active"')
    figures["held"] = metric("pg_locks_count", f'{of_database}[^}}]*mode="rowexclusivelock"')
    check("and its figures are true", figures["pg_stat_database_tup_inserted"] == 30_000 and figures["pg_stat_database_deadlocks"] == 1
          and figures["pg_stat_database_temp_files"] >= 1 and figures["pg_stat_database_temp_bytes"] > 1_000_000 and figures["connections"] == 5000
          and figures["cache"] == 256 << 20 and figures["active"] >= 1 and figures["held"] == 4
          and figures["tables"] <= figures["pg_database_size_bytes"] < 1.5 * figures["tables"], figures)


def spill():
    """While a sort is in temporary files, they are listed."""
    sorter = Session("sorter")
    sorter.run("set work_mem = '64kB'")
    sorter.run("begin")
    sorter.run("declare c cursor for select v, id from t order by v, id desc")
    sorter.run("fetch 1 from c")
    open_now = psql("select count(*) > 0, sum(size) > 1000000, bool_and(modification > now() - interval '1 hour') from pg_ls_tmpdir()")
    sorter.run("commit")
    gone = psql("select count(*) from pg_ls_tmpdir()")
    sorter.end()
    check("temporary files are listed while they are there", (open_now, gone) == ("t|t|t", "0"), f"{open_now} {gone}")


def work():
    psql("create table t (id int primary key, v text)", "insert into t select g, repeat('x', 100) || g % 1000 from generate_series(1, 20000) g",
         "create table long (id int primary key, v text)", "insert into long select g, repeat(md5(g::text), 3) from generate_series(1, 10000) g", LOCKVIEW)
    spill()
    slow = [f"select v from t where id = {n}" for n in range(1, 41)] + ["select count(*) from t where v = 'none'", "select pg_sleep(0.25)"]
    psql("set log_min_duration_statement = 0", *slow, app="slow one")
    for n in range(3):
        psql(f"select {n} from nowhere", app="wrong one")
    first, second = Session("first"), Session("second")
    for session, n in ((first, 11), (second, 12)):
        session.run("begin")
        session.run(f"update t set v = 'a' where id = {n}")
    first.tell("update t set v = 'b' where id = 12")
    waiting("first")
    second.tell("update t set v = 'b' where id = 11")
    check("one of two is the victim", "deadlock detected" in first.end() + second.end())
    blocked()
    psql("checkpoint")


def badger(form, name):
    out = f"{scratch}/{form}.json"
    prefix = ["--prefix", "%m [%p] %q%u@%d %a "] if form == "stderr" else []
    ran = subprocess.run(["pgbadger", "-q", "-f", form, *prefix, "-x", "json", "-o", out, f"{LOGS}/{name}"], text=True, capture_output=True, timeout=300)
    if not os.path.exists(out):
        return check(f"pgbadger reads {form}", False, ran.stdout + ran.stderr)
    report = json.load(open(out))
    of = lambda part: report[part].get("postgres", {})
    errors = {text: entry["count"] for text, entry in of("error_info").items()}
    overall = of("overall_stat")
    digests = {text: entry["count"] for text, entry in of("normalyzed_info").items()}
    kept = {"errors": errors, "digests": digests, "logs": of("logs_type"), "locks": of("lock_info"), "connections": of("connection_info").get("count"),
            "checkpoints": of("checkpoint_info"), "slowest": str(of("top_slowest"))[:300], "overall": {key: overall.get(key) for key in list(overall)[:20]}}
    looked_up = [count for text, count in digests.items() if re.fullmatch(r"select v from t where id = .*", text, re.I)]
    check(f"pgbadger reads {form}", any("does not exist" in text and count == 3 for text, count in errors.items())
          and any("deadlock detected" in text and count == 1 for text, count in errors.items())
          and looked_up == [40] and (kept["connections"] or 0) > 5 and "pg_sleep" in kept["slowest"] and kept["locks"], json.dumps(kept, indent=1)[:6000])


def query_digest():
    if missing("pt-query-digest"):
        return
    ran = subprocess.run(["pt-query-digest", "--output", "json", "--limit", "100%", "--no-version-check", f"{LOGS}/clearway-slow.log"], text=True, capture_output=True, timeout=300)
    try:
        report = json.loads(ran.stdout[ran.stdout.index("{"):])
    except ValueError:
        return check("pt-query-digest reads the slow log", False, ran.stdout[-3000:] + ran.stderr)
    classes = {entry["fingerprint"]: entry for entry in report["classes"]}
    figures = lambda name, what: classes[name]["metrics"][what]
    ok = "select v from t where id = ?" in classes and "select count(*) from t where v = ?" in classes and "select pg_sleep(?)" in classes
    ok = ok and classes["select v from t where id = ?"]["query_count"] == 40 and float(figures("select count(*) from t where v = ?", "Rows_examined")["sum"]) == 20_000
    ok = ok and 0.25 <= float(figures("select pg_sleep(?)", "Query_time")["sum"]) and figures("select pg_sleep(?)", "db")["value"] == "postgres"
    check("pt-query-digest reads the slow log", ok and not ran.stderr, ran.stderr + json.dumps(classes, indent=1)[:5000])


try:
    server, port = start()
    work()
    server.send_signal(signal.SIGTERM)
    server.wait()
    if not missing("pgbadger"):
        for form, name in (("stderr", "clearway.log"), ("csv", "clearway.csv"), ("jsonlog", "clearway.json")):
            badger(form, name)
    query_digest()
finally:
    for process in ALL:
        if process.poll() is None:
            process.kill()
shutil.rmtree(scratch)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
