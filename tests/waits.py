#!/usr/bin/env python3
"""Culprits that are planted, and named by the views, live and after a restart, and by the server's log. The last line is `N passed, N failed`.

usage: tests/waits.py PATH-TO-clearway [--later SECONDS]

With --later the same questions are asked again after so many seconds, two minutes at least, and the server is killed before it starts again: what is
saved each minute must be enough.
"""
import argparse, csv, io, json, os, re, shutil, signal, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--later", type=int, default=0)
asked = parser.parse_args()
BINARY = os.path.abspath(asked.binary)
scratch = tempfile.mkdtemp()
passed = failed = 0
port = None


def check(name, ok, shown=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(f"waits {name} ... {'ok' if ok else 'FAILED'}" + ("" if ok else f"\n{shown}"), flush=True)


def start(*more):
    """A server on a free port; its output is its log."""
    global port
    log = open(f"{scratch}/log", "a")
    begin = log.tell()
    server = subprocess.Popen([BINARY, "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0", *more], stdout=log, stderr=log)
    while True:
        found = re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", logged()[begin:])
        if found:
            port = found[1]
            return server
        if server.poll() is not None:
            sys.exit(f"the server has ended:\n{logged()}\n0 passed, 1 failed")
        time.sleep(0.05)


def logged():
    return open(f"{scratch}/log").read()


def stop(server, how=signal.SIGTERM):
    server.send_signal(how)
    server.wait()


def psql(sql, app="viewer"):
    ran = subprocess.run(["psql", "-XAt", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "-c", sql],
                         text=True, capture_output=True, env=os.environ | {"PGAPPNAME": app})
    return (ran.stdout + ran.stderr).strip()


def configure(what):
    """ALTER SYSTEM, put in force; it stays over restarts."""
    told = psql(f"alter system {what}"), psql("select pg_reload_conf()")
    check(f"ALTER SYSTEM {what}", told == ("ALTER SYSTEM", "t"), told)


class Session:
    """A psql that is told line by line."""

    def __init__(self, app):
        self.app = app
        self.psql = subprocess.Popen(["psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres"], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"PGAPPNAME": app})

    def tell(self, sql):
        """Runs it; it may wait."""
        self.psql.stdin.write(sql + ";\n")
        self.psql.stdin.flush()

    def run(self, sql):
        """Runs it to its end."""
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
    """Asks until the answer is there."""
    while psql(sql) != wanted:
        time.sleep(0.05)


def waiting(app):
    until(f"select count(*) from pg_stat_activity where application_name = '{app}' and wait_event_type = 'Lock'", "1")


planted_ms = {}


def chain():
    """Five sessions; each waits for the one before: a row, a table, an advisory lock, another row."""
    psql("create table t (id int primary key, v int); insert into t values (1, 0), (2, 0); create table u (id int)")
    sessions = [Session(f"link {n}") for n in range(5)]
    take = ["update t set v = 1 where id = 1", "lock table u in exclusive mode", "select pg_advisory_xact_lock(7)", "delete from t where id = 2"]
    want = ["update t set v = 2 where id = 1", "insert into u values (1)", "select pg_advisory_xact_lock(7)", "update t set v = 3 where id = 2"]
    for session, sql in zip(sessions, take):
        session.run("begin")
        session.run(sql)
    for n in range(4):
        sessions[0].run(f"select 'later {n}'")
    told, seen = {}, {}
    for session, sql in zip(sessions[1:], want):
        told[session.app] = time.monotonic()
        session.tell(sql)
        waiting(session.app)
        seen[session.app] = time.monotonic()
    tree = psql("select depth, blocks, application_name, coalesce(taken_by, '-'), coalesce(taken_ago, 0), coalesce(key, '-') from clearway_lock_tree order by depth")
    check("a chain of five, live", tree.splitlines() == [
        "0|4|link 0|update t set v = 1 where id = 1|4|(id)=(1)",
        "1|3|link 1|lock table u in exclusive mode|1|(id)=(1)",
        "2|2|link 2|select pg_advisory_xact_lock(7)|1|-",
        "3|1|link 3|delete from t where id = 2|1|-",
        "4|0|link 4|-|0|(id)=(2)"], tree)
    # The log hears of waits of a second, and the samples of one look see the four.
    while logged().count("still waiting for") < 4:
        time.sleep(0.05)
    until("select count(distinct application_name) from clearway_session_history where application_name like 'link %' and wait_event_type = 'Lock'", "4")
    for before, session in zip([None, *sessions], sessions):
        if before:
            least = committed - seen[session.app]
        committed = time.monotonic()
        session.tell("commit")
        session.end()
        if before:
            planted_ms[session.app] = 1e3 * least, 1e3 * (time.monotonic() - told[session.app])
    psql("drop table u")


def durations_fit():
    """Each wait of the chain was no shorter than it was certainly there, and no longer than from its statement to the answer; within 5 %."""
    found = dict(line.split("|") for line in psql("select application_name, total_ms from clearway_lock_waits where application_name like 'link %'").splitlines())
    return all(app in found and 0.95 * least <= float(found[app]) <= 1.05 * most for app, (least, most) in planted_ms.items()), (planted_ms, found)


LINKS = ("select application_name, outcome, depth, root_application, root_taken_by, root_taken_ago, root_state from clearway_lock_waits"
         " where application_name like 'link %' order by 1")
WANTED = [f"link {n}|granted|{n}|link 0|update t set v = 1 where id = 1|4|idle in transaction" for n in range(1, 5)]


def ring(n, name="ring"):
    psql(f"drop table if exists r; create table r (id int primary key, v int); insert into r select g, 0 from generate_series(0, {n - 1}) g")
    sessions = [Session(f"{name} {i}") for i in range(n)]
    for i, session in enumerate(sessions):
        session.run("begin")
        session.run(f"update r set v = 1 where id = {i}")
        session.run("select 'later'")
    for i, session in enumerate(sessions):
        session.tell(f"update r set v = 2 where id = {(i + 1) % n}")
        if i < n - 1:
            waiting(session.app)
    told = ""
    for session in reversed(sessions):
        session.tell("commit")
        told += session.end()
    return told


server = start()
chain()
links = psql(LINKS)
check("a chain of five, afterwards", links.splitlines() == WANTED, links)
check("how long each of the chain waited, within 5 %", *durations_fit())
log = logged()
check("the log tells of long waits as PostgreSQL does",
      re.search(r"process \d+ still waiting for ShareLock on transaction \d+ after 1\d{3}\.\d{3} ms", log)
      and re.search(r"Process holding the lock: \d+\. Wait queue: \d+\.", log)
      and re.search(r"process \d+ acquired RowExclusiveLock on relation \d+ of database \d+ after \d+\.\d{3} ms", log), log)
check("the log names the root and its taking statement",
      re.search(r"At the root of the chain process \d+ has been idle in transaction and took the lock 4 statements ago: update t set v = 1 where id = 1", log), log)
for n in (2, 3, 50):
    told = ring(n)
    last = psql("select count(*), count(distinct pid), bool_and(held_by_statement like 'update r set v = 1%'), bool_and(wants like 'tuple public.r (id)=(%'),"
                " max(context) from clearway_deadlocks where number = (select max(number) from clearway_deadlocks)")
    check(f"a ring of {n}", "deadlock detected" in told and last == f'{n}|{n}|t|t|while updating tuple in relation "r"', told + last)
check("the client hears the context", 'CONTEXT:  while updating tuple in relation "r"' in told, told)
check("the log has the deadlock with every statement",
      logged().count("ERROR:  deadlock detected") == 3 and re.search(r"\n\tProcess \d+: update r set v = 2 where id = 0\n", logged()), logged())
# Time: the lock waits of a digest are those of the history, samples saw them, and lists of any length are one statement.
for n in (1, 2, 30):
    psql(f"select count(*) from t where id in ({', '.join(map(str, range(n)))})", "lists")
psql("select 1 / 0", "lists")
LISTS = "select calls, errors, rows from clearway_statements where application_name = 'lists' order by 1 desc"
lists = psql(LISTS)
check("lists of any length are one statement, and errors count", lists == "3|0|3\n1|1|0", lists)
# As a PostgreSQL 15 tells them of its extension.
PG_STAT_STATEMENTS = ("userid oid, dbid oid, toplevel boolean, queryid bigint, query text, plans bigint, total_plan_time double precision, "
                 "min_plan_time double precision, max_plan_time double precision, mean_plan_time double precision, stddev_plan_time double precision, "
                 "calls bigint, total_exec_time double precision, min_exec_time double precision, max_exec_time double precision, "
                 "mean_exec_time double precision, stddev_exec_time double precision, rows bigint, shared_blks_hit bigint, shared_blks_read bigint, "
                 "shared_blks_dirtied bigint, shared_blks_written bigint, local_blks_hit bigint, local_blks_read bigint, local_blks_dirtied bigint, "
                 "local_blks_written bigint, temp_blks_read bigint, temp_blks_written bigint, blk_read_time double precision, "
                 "blk_write_time double precision, temp_blk_read_time double precision, temp_blk_write_time double precision, wal_records bigint, "
                 "wal_fpi bigint, wal_bytes numeric, jit_functions bigint, jit_generation_time double precision, jit_inlining_count bigint, "
                 "jit_inlining_time double precision, jit_optimization_count bigint, jit_optimization_time double precision, "
                 "jit_emission_count bigint, jit_emission_time double precision")
shown = psql("select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute where attrelid = 'pg_stat_statements'::regclass and attnum > 0")
check("pg_stat_statements has the columns of 1.10", shown == PG_STAT_STATEMENTS, shown)
shown = psql("select calls, rows, plans, toplevel, total_exec_time >= max_exec_time and max_exec_time >= mean_exec_time and mean_exec_time >= min_exec_time and min_exec_time > 0,"
             " stddev_exec_time > 0, temp_blks_written, wal_bytes = 0 and shared_blks_hit > 0, jit_functions from pg_stat_statements where query like 'select count%from t where id in%'")
check("and tells of the lists what the digests do", shown == "3|3|0|t|t|t|0|t|0", shown)
share = psql("select count(*), bool_and(abs(s.ms - l.ms) < 0.05 * l.ms) from"
             " (select application_name a, sum(total_ms) ms from clearway_statement_waits where wait_event_type = 'Lock' group by 1) s join"
             " (select application_name a, sum(total_ms) ms from clearway_lock_waits where application_name like 'link %' group by 1) l using (a)")
check("a digest's lock waits are those of the history, within 5 %", share == "4|t", share)
sampled = psql("select count(distinct application_name), bool_and(weight = 1) from clearway_session_history where application_name like 'link %' and wait_event_type = 'Lock'")
check("samples saw the chain wait", sampled == "4|t", sampled)
crowd = [subprocess.Popen(["psql", "-XAt", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "-c",
                           "select count(*) from generate_series(1, 2000000000) n where n % 7 = 3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=os.environ | {"PGAPPNAME": "crowd"}) for _ in range(2 * os.cpu_count() + 8)]
of_crowd = "from pg_stat_activity where application_name = 'crowd' and state = 'active'"
until(f"select count(*) {of_crowd}", str(len(crowd)))
lines = ""
for _ in range(100):
    # Who gets a turn this moment may stand nowhere; the others wait for a processor.
    lines = psql(f"select count(*) {of_crowd} and wait_event in ('ProcessorTurn', 'RunQueue')")
    if int(lines) >= len(crowd) - os.cpu_count() - 2:
        break
    time.sleep(0.1)
check("a full run queue shows", int(lines) >= len(crowd) - os.cpu_count() - 2, lines)
# Where the crowd's time goes: its processor time is that of the process, and nearly all the rest is the line for a processor.
OF_CROWD = ("select sum(elapsed_ms), sum(cpu_ms), sum(run_queue_ms + wait_ms), sum(unaccounted_ms) from clearway_time"
            " where scope = 'session' and application_name = 'crowd'")
PROCESS = "select cpu_ms from clearway_time where scope = 'process'"


def crowds_time():
    process = float(psql(PROCESS))
    return [process, *map(float, psql(OF_CROWD).split("|"))]


first = crowds_time()
time.sleep(4)
process, elapsed, cpu, lines, unaccounted = (now - before for now, before in zip(crowds_time(), first))
check("the crowd's time is divided: processor, the line for it, and less than 5 % that is unaccounted",
      abs(unaccounted) < 0.05 * elapsed and lines > 0.5 * elapsed and abs(cpu - process) < 0.15 * process, (process, elapsed, cpu, lines, unaccounted))
OF_LINE = ("select round(sum(weight) filter (where wait_event in ('ProcessorTurn', 'RunQueue'))), round(sum(weight)) from clearway_session_history"
           " where application_name = 'crowd'")
psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'crowd'")
for one in crowd:
    one.wait()
sampled = psql(OF_LINE)
check("samples saw the crowd stand in line for a processor", sampled and float(sampled.split("|")[0]) > 0.5 * float(sampled.split("|")[1]), sampled)
tasks = psql("select string_agg(backend_type, ' ' order by backend_type) from pg_stat_activity where backend_type in ('walwriter', 'background writer', 'checkpointer')")
check("background tasks are rows", tasks == "background writer checkpointer walwriter", tasks)
# A loop that asks row by row, a condition without an index, tags of a framework; how tables were used.
psql("create table big (id int primary key, v int, w text); insert into big select g, g % 10, 'w' from generate_series(1, 5000) g")
psql("; ".join(f"select w from big where id = {n}" for n in range(1, 240)), "looper")
psql("select count(*) from big where w = 'none'", "scanner")
psql("select v from big where id = 7 /*controller='users',route='%2Fusers',traceparent='00-1-2-03'*/", "tagged")
OF_WORK = ("select application_name, calls, rows_examined, full_scans, missed_indexes, n_plus_one_calls >= 100, tags from clearway_statements"
           " where application_name in ('looper', 'scanner', 'tagged') order by 1")
WORK = "looper|239|239|0|0|t|\nscanner|1|5000|1|1|f|\ntagged|1|1|0|0|f|controller=users,route=/users"
shown = psql(OF_WORK)
check("N+1, a missing index and tags by digest", shown == WORK, shown)
OF_TABLE = "select seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_live_tup from pg_stat_user_tables where relname = 'big'"
shown = psql(OF_TABLE)
check("how a table was used", shown == "1|5000|240|240|5000|5000", shown)
# A flood: of statements, each counted; and of waits for one row, which fold, and whose time is that of the digest's lock waits.
def flood(app, clients, script):
    open(f"{scratch}/flood.sql", "w").write(script)
    subprocess.run(["pgbench", "-n", "-M", "prepared", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-c", str(clients), "-j", "2", "-t", "200", "-f", f"{scratch}/flood.sql",
                    "postgres"], check=True, capture_output=True, env=os.environ | {"PGAPPNAME": app})


flood("flooder", 4, "\\set id random(1, 5000)\nselect v from big where id = :id;\n")
OF_FLOOD = "select application_name, calls from clearway_statements where query like 'select v from big%' and calls > 1"
shown = psql(OF_FLOOD)
check("a flood of statements is that of its application", shown == "flooder|800", shown)
# The counts of statements are of whole executions while sessions run, end in the middle, and forget: each execution has added 1 to a row.
psql("create table counted (id int primary key, v int); insert into counted select g, 0 from generate_series(1, 64) g")
open(f"{scratch}/counted.sql", "w").write("\\set id random(1, 64)\nupdate counted set v = v + 1 where id = :id;\n")
OF_COUNTED = ("select coalesce(sum(calls - errors), 0), coalesce(sum(rows), 0), coalesce(bool_and(total_ms between calls * min_ms - 0.001 and calls * max_ms + 0.001), true)"
              " from clearway_statements where application_name = '{}' and query like 'update counted%'")
counting = subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-c", "12", "-j", "2", "-T", "60",
                             "-f", f"{scratch}/counted.sql", "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"PGAPPNAME": "counting"})
until("select count(*) > 0 from clearway_statements where calls > 50 and application_name = 'counting'", "t")
readings = [psql(OF_COUNTED.format("counting")).split("|") for _ in range(15)]
psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'counting'")
counting.wait()
until("select count(*) from pg_stat_activity where application_name = 'counting'", "0")
calls, v = int(psql(OF_COUNTED.format("counting")).split("|")[0]), int(psql("select sum(v) from counted"))
rising = [int(calls) for calls, _, _ in readings]
check("counts that are read while sessions run are whole and rise", rising == sorted(rising) and all(calls == rows and fits == "t" for calls, rows, fits in readings), readings)
# A session that is terminated may have run one more, whose transaction was rolled back.
check("no execution of sessions that were terminated is lost or counted twice", v <= calls <= v + 12, (calls, v))
forgetful = Session("forgetful")
for before in (3, 5):
    for _ in range(before):
        forgetful.run("update counted set v = v + 1 where id = 1")
    shown = psql(OF_COUNTED.format("forgetful"))
    check("a session's executions count in full", shown.startswith(f"{before}|{before}|"), shown)
    psql("select pg_stat_statements_reset(0, 0, queryid) from (select distinct queryid from pg_stat_statements where query like 'update counted%') q")
forgetful.run("update counted set v = v + 1 where id = 1")
shown = psql(OF_COUNTED.format("forgetful"))
check("after a reset only what came later counts", shown.startswith("1|1|"), shown)
forgetful.end()
configure("set lock_history_min = '0us'")
psql("create table hot (id int primary key, v int); insert into hot values (1, 0)")
flood("crush", 12, "\\set id 1\nupdate hot set v = v + 1 where id = :id;\n")
# Whoever is woken stands in line for a processor before it goes on: the history has that within the wait, a digest apart.
OF_CRUSH = ("select s.waits, h.waits = s.waits, h.ms between 0.95 * s.ms and 1.05 * (s.ms + s.queue_ms), h.lines < 400 and h.objects = 1 and h.takers = 1 from"
            " (select sum(waits) filter (where wait_event_type = 'Lock') waits, sum(total_ms) filter (where wait_event_type = 'Lock') ms,"
            "  coalesce(sum(total_ms) filter (where wait_event = 'RunQueue'), 0) queue_ms from clearway_statement_waits where application_name = 'crush') s,"
            " (select sum(waits) waits, sum(total_ms) ms, count(*) lines, count(distinct object) objects, count(distinct taken_by) takers from clearway_lock_waits"
            "  where application_name = 'crush') h")
crush = psql(OF_CRUSH)
check("a flood of waits folds, names its row and the statement, and adds up", crush.endswith("|t|t|t"), crush + "\n" + psql("select wait_event, waits, total_ms from clearway_statement_waits where application_name = 'crush'") + "\n" + psql("select waits, total_ms, object, key, taken_by from clearway_lock_waits where application_name = 'crush' limit 20"))
OF_PARAMETERS = "select string_agg(distinct parameters, ',') from clearway_lock_waits where application_name = 'crush' and waits = 1"
shown = psql(OF_PARAMETERS), psql(f"create role stranger login; set role stranger; {OF_PARAMETERS}")
check("a wait has its statement's parameters, for those who may see them", shown == ("$1 = '1'", "CREATE ROLE\nSET\n<insufficient privilege>"), shown)
# Long statements say what they have done so far: a copy whose client rests, an index that waits for a writer, a table that is counted.
psql("create table intake (id int primary key, v text)")
OF_COPY = ("select command || ' ' || type || ' ' || (tuples_processed between 1000 and 20000 and bytes_processed > 10000) from pg_stat_progress_copy"
           " where relid = 'intake'::regclass and datname = current_database()")
copier, writer, builder = Session("copier"), Session("writer"), Session("builder")
copier.psql.stdin.write("copy intake from stdin;\n" + "".join(f"{n}\tvalue {n}\n" for n in range(20_000)))
copier.psql.stdin.flush()
until(OF_COPY, "COPY FROM PIPE true")
copier.psql.stdin.write("\\.\n")
copier.run("select 1")
check("a copy says how far it is, and nothing when it has ended", psql(OF_COPY) == "" and psql("select count(*) from intake") == "20000")
OF_INDEX = ("select command, phase, index_relid::regclass, tuples_done from pg_stat_progress_create_index where relid = 'intake'::regclass")
writer.run("begin")
writer.run("update intake set v = 'w' where id = 1")
builder.tell("create index concurrently intake_v on intake (v)")
until(OF_INDEX, "CREATE INDEX CONCURRENTLY|waiting for writers before build|intake_v|0")
writer.run("commit")
builder.run("select 1")
check("an index that is made says what it waits for", psql(OF_INDEX) == "" and psql("select indisvalid from pg_index where indexrelid = 'intake_v'::regclass") == "t")
counter = subprocess.Popen(["psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "-f", "-"], text=True, stdin=subprocess.PIPE)
# As much as fits into the pipe.
counter.stdin.write("analyze intake;\n" * 4_000)
counter.stdin.flush()
until("select phase || ' ' || (sample_blks_scanned <= sample_blks_total) from pg_stat_progress_analyze where relid = 'intake'::regclass", "acquiring sample rows true")
psql("select pg_terminate_backend(pid) from pg_stat_progress_analyze")
counter.kill()
counter.wait()
for one in (copier, writer, builder):
    one.end()
shown = psql("select deadlocks, sessions > 50, active_time > 0, idle_in_transaction_time > 0 from pg_stat_database where datname = 'postgres'")
check("what a database has done", shown == "3|t|t|t", shown)
DEADLOCKS = ("select number, pid, victim, wants, holds, held_by_statement, statements, application_name, usename, parameters, context, found_in_us from clearway_deadlocks"
             " order by number, pid")
before = psql(DEADLOCKS)
# What was there before the restart is there after it; totals of waits may only have grown.
SAME = [OF_FLOOD, OF_CRUSH, OF_LINE, "select wait_event, waits, total_ms from clearway_statement_waits where application_name = 'crowd' order by 1"]
GROWN = ("select 'wait ' || wait_event, waits, total_ms, max_ms from clearway_waits where wait_event_type in ('Lock', 'IO', 'Scheduler') union all"
         " select 'latch ' || name, waits, spin_ms + park_ms, max_ms from clearway_latches where waits > 0")


def totals():
    return {name: [float(figure) for figure in figures] for name, *figures in (line.split("|") for line in psql(GROWN).splitlines())}


# What the sessions' time consists of; the shares of one that goes on may have moved by the moments of two looks.
TIME = "select elapsed_ms, cpu_ms, run_queue_ms, wait_ms, io_ms, durable_ms from clearway_time where scope = 'server'"


def time_of_server():
    return [float(figure) for figure in psql(TIME).split("|")]


ASKED = [*SAME, LINKS, LISTS, OF_WORK, OF_TABLE, OF_PARAMETERS, DEADLOCKS]
same, grown, spent = [psql(sql) for sql in SAME], totals(), time_of_server()
if asked.later:
    first = [psql(sql) for sql in ASKED]
    time.sleep(max(asked.later, 120))
    for sql, was in zip(ASKED, first):
        shown = psql(sql)
        check(f"{asked.later} s later: {sql[:60]}", shown == was, f"{was}\n{shown}")
stop(server, signal.SIGKILL if asked.later else signal.SIGTERM)
server = start()
now = time_of_server()
check("what the sessions' time consists of goes on after a restart", spent[0] > 1000 and all(a >= b for a, b in zip(now, spent)), f"{spent}\n{now}")
for sql, was in zip(SAME, same):
    shown = psql(sql)
    check(f"after a restart: {sql[:60]}", shown == was, f"{was}\n{shown}")
now = totals()
check("totals of waits and latches go on after a restart", "wait tuple" in grown and any(name.startswith("latch ") for name in grown)
      and all(name in now and all(a >= b - 0.001 for a, b in zip(now[name], figures)) for name, figures in grown.items()), f"{grown}\n{now}")
check("how long each of the chain waited, after a restart", *durations_fit())
configure("reset lock_history_min")
lists = psql(LISTS)
check("statements after a restart", lists == "3|0|3\n1|1|0", lists)
shown = psql(OF_WORK)
check("N+1, a missing index and tags after a restart", shown == WORK, shown)
shown = psql(OF_TABLE)
check("how a table was used, after a restart", shown == "1|5000|1040|1040|5000|5000", shown)
shown = psql("select count(distinct application_name) from clearway_session_history where application_name like 'link %' and wait_event_type = 'Lock'")
check("samples after a restart", shown == "4", shown)
links = psql(LINKS)
check("the chain after a restart", links.splitlines() == WANTED, links)
check("the parameters after a restart", psql(OF_PARAMETERS) == "$1 = '1'")
check("the deadlocks after a restart, all that is known of them", psql(DEADLOCKS) == before and before.count('|while updating tuple in relation "r"|') >= 3, before[:2000])
ring(2, "last ring")
numbers = psql("select count(*), count(distinct number) from clearway_deadlocks")
check("numbers go on after a restart", numbers == "57|4", numbers)
# A deadlock is saved soon.
saved = lambda: json.loads(json.loads(open(f"{scratch}/data/observations").read().split("\n", 1)[1])["locks"])
while "last ring" not in json.dumps(saved()["deadlocks"]):
    time.sleep(0.1)
stop(server, signal.SIGKILL)
server = start()
numbers = psql("select count(*), count(distinct number) from clearway_deadlocks")
check("the deadlock after kill -9", numbers == "57|4", numbers)
stop(server)
# The log's forms, sizes and counts; a text that tries to forge a line.
logs = f"{scratch}/logs"
server = start("-c", f"log_directory={logs}", "-c", "log_destination=stderr,csvlog,jsonlog", "-c", "log_rotation_size=20kB", "-c", "log_file_count=3",
               "-c", "log_line_prefix=%m [%p] %q%u@%d %a ", "-c", "log_connections=on", "-c", "log_disconnections=on")
psql("set log_min_duration_statement = 0; select 'slow' from t where id = 1", "slow one")
psql("set log_statement = 'ddl'; create table told (id int); insert into told values (1)", "teller")
denied = psql("create role plain login; set role plain; set log_statement = 'none'")
check("the log's settings are the superuser's", "permission denied to set parameter" in denied, denied)
for n in range(100):
    psql(f"select 'a\nb,\"c\"' from missing_{n}", "for\nger")
psql("select pg_sleep(0.1)")
stop(server)
names = sorted(os.listdir(logs))
check("three files of each form", names == sorted(f"clearway.{form}{part}" for form in ("csv", "json", "log") for part in ("", ".1", ".2")), names)
check("no file is larger than it may be", all(os.path.getsize(f"{logs}/{name}") <= 20 * 1024 for name in names))
read = lambda form: "".join(open(f"{logs}/clearway.{form}{part}").read() for part in (".2", ".1", ""))
lines = [json.loads(line) for line in read("json").splitlines()]
check("JSON", len(lines) > 20 and any(line.get("statement") == "select 'a\nb,\"c\"' from missing_99" and line["state_code"] == "42P01" for line in lines), lines[-3:])
rows = list(csv.reader(io.StringIO(read("csv"))))
check("CSV has PostgreSQL's 26 columns", {len(row) for row in rows} == {26} and any(row[19] == "select 'a\nb,\"c\"' from missing_99" and row[11] == "ERROR" for row in rows), rows[-3:])
text = read("log")
check("text: each line has the prefix or is a continuation",
      all(re.match(r"(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC \[\d+\] |\t)", line) for line in text.splitlines()), text[:500])
check("a session's end", re.search(r"postgres@postgres for\?ger ?LOG:  disconnection: session time: 0:00:0\d\.\d{3} user=postgres database=postgres host=127.0.0.1 port=\d+", text), text[-500:])
# What came first has been rotated away: once more, without the flood.
shutil.rmtree(logs)
server = start("-c", f"log_directory={logs}", "-c", "log_connections=on")
psql("set log_min_duration_statement = 0; select 'slow' from t where id = 1", "slow one")
psql("set log_statement = 'ddl'; create table told2 (id int); insert into told2 values (1)", "teller")
subprocess.run(["psql", "-h", "127.0.0.1", "-p", port, "-U", "nobody", "-d", "postgres", "-c", "select 1"], capture_output=True)
stop(server)
text = open(f"{logs}/clearway.log").read()
for name, wanted in (("a slow statement", r"LOG:  duration: \d+\.\d{3} ms  statement: set log_min_duration_statement = 0; select 'slow' from t where id = 1"),
                     ("log_statement", r"LOG:  statement: create table told2 \(id int\)"),
                     ("a connection", r"LOG:  connection authorized: user=postgres database=postgres application_name=slow one"),
                     ("a failed login", r'FATAL:  role "nobody" does not exist'),
                     ("the start", r"LOG:  database system was shut down cleanly\n(?s:.*)LOG:  database system is ready to accept connections"),
                     ("a checkpoint", r"LOG:  checkpoint complete \(shutdown immediate\): wrote \d+ buffers; write=\d\.\d+ s, sync=\d\.\d+ s, total="),
                     ("the end", r"LOG:  database system is shut down\n$")):
    check(f"the log tells of {name}", re.search(wanted, text), text)
check("log_statement = ddl does not tell of an INSERT", "statement: insert into told2" not in text, text)
server = start()
stop(server, signal.SIGKILL)
server = start()
check("the log tells of recovery", "database system was not properly shut down; automatic recovery is done" in logged() and "redo done: " in logged(), logged())
stop(server)
# The undo memory is full: the alarm names the load, and the snapshot that keeps what is replaced.
server = start("-c", "undo_memory=2MB")
pinner = Session("pinner")
pinner.run("begin isolation level repeatable read")
pinner.run("select count(*) from big")
until("select count(*) from clearway_transactions where application_name = 'pinner' and age_ms > 1500", "1")
pid = psql("select pid from pg_stat_activity where application_name = 'pinner'")
psql("begin; " + "; ".join("update big set w = repeat('w', 200) || v" for _ in range(8)) + "; commit", "load")
alarm = re.search(r"undo fills its memory .*", logged())
check("the alarm of the undo memory names the oldest snapshot", alarm and f"process {pid}," in alarm[0], logged()[-2000:])
pinner.end()
stop(server)
# A slow disk: a library before the system's own delays fdatasync, and says how long the calls took together.
SLOW = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
static long long total, calls;
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    long long began = now();
    struct timespec delay = { 0, 60000000 };
    nanosleep(&delay, 0);
    int done = real(fd);
    /* Checkpoints sync other files meanwhile: only those of the log are counted. */
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (!strstr(path, "/wal/")) return done;
    long long ended = now();
    __sync_fetch_and_add(&total, ended - began);
    __sync_fetch_and_add(&calls, 1);
    FILE *out = fopen(getenv("SLOW_TOTAL"), "w");
    if (out) { fprintf(out, "%lld %lld", calls, total); fclose(out); }
    /* Telling takes the caller's time too; the next call tells of that. */
    __sync_fetch_and_add(&total, now() - ended);
    return done;
}
'''
open(f"{scratch}/slow.c", "w").write(SLOW)
subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{scratch}/slow.so", f"{scratch}/slow.c", "-ldl"], check=True)
os.environ |= {"LD_PRELOAD": f"{scratch}/slow.so", "SLOW_TOTAL": f"{scratch}/slow.total"}
server = start()
del os.environ["LD_PRELOAD"]
psql("create table slow (id int primary key, v int); insert into slow values (1, 0)")
SYNCS = "select waits, total_ms from clearway_waits where wait_event = 'WALSync'"
# Whoever commits alone writes and syncs the log by itself (IO); others wait for that (IPC).
DURABLE = "select sum(elapsed_ms), sum(io_ms + durable_ms), sum(unaccounted_ms) from clearway_time join clearway_statements using (queryid) where scope = 'statement' and query like 'update slow%'"


def planted():
    calls, total = open(f"{scratch}/slow.total").read().split()
    return int(calls), int(total) / 1e6


before = planted(), psql(SYNCS)
command = ["psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres"]
for _ in range(16):
    command += ["-c", "update slow set v = v + 1 where id = 1"]
subprocess.run(command, check=True, env=os.environ | {"PGAPPNAME": "writer"})
after = planted(), psql(SYNCS)
syncs = [float(now) - float(old) for now, old in zip(after[1].split("|"), before[1].split("|"))]
slept = after[0][1] - before[0][1]
check("a slow disk: the syncs of the log took what was planted, within 5 %", syncs[0] >= 16 and abs(syncs[1] - slept) < 0.05 * slept, f"{syncs} {slept}")
elapsed, durable, unaccounted = map(float, psql(DURABLE).split("|"))
check("and the statement that waits for them says so, within 5 %", 0.95 * min(slept, elapsed) < durable < 1.05 * elapsed and abs(unaccounted) < 0.05 * elapsed, f"{elapsed} {durable} {unaccounted} {slept}")
timed = subprocess.run([BINARY, "time", "--target", f"postgresql://postgres@127.0.0.1:{port}/postgres", "--", *command], text=True, capture_output=True)
told = re.search(r"database: ([\d.]+) s of ([\d.]+) s .*\nI/O: ([\d.]+) s .*\na memory file system would save at most ([\d.]+) s \((\d+) %\)\n$", timed.stderr)
check("clearway time says it in three lines", timed.returncode == 0 and told and float(told[3]) > 0.9 and 0.8 * float(told[1]) < float(told[4]) <= float(told[2]), timed.stderr)
shown = psql("explain (analyze, waits, costs off, timing off) update slow set v = v + 1 where id = 1; explain (analyze, waits, costs off) select pg_sleep(0.2)")
slept = re.search(r"Waits: Timeout PgSleep (\d+\.\d+) ms in 1", shown)
check("EXPLAIN (ANALYZE, WAITS) names what a statement waits for", slept and 199 <= float(slept[1]) + float(re.findall(r"Run Queue Time: (\d+\.\d+) ms", shown)[1])
      and all(re.search(rf"{name} Time: -?\d+\.\d+ ms", shown) for name in ("CPU", "Run Queue", "Wait", "Unaccounted")), shown)
shown = [psql(SYNCS), psql(DURABLE)]
configure("set recorders = 'time, latches'")
stop(server)
server = start()
now = [psql(SYNCS), psql(DURABLE)]
check("the slow disk after a restart", float(now[0].split("|")[1]) >= float(shown[0].split("|")[1]) > 1e3 and all(abs(float(a) - float(b)) < 0.01 for a, b in zip(now[1].split("|"), shown[1].split("|"))), f"{shown}\n{now}")
# Recorders that are switched off record nothing; the others do. Latches say who has them.
psql("select 'unseen' from slow", "unseen")
shown = psql("select count(*) from clearway_statements where application_name = 'unseen'; select count(*) > 0 from clearway_latches where longest_hold_ms > 0 and holds > 0;"
             " select bool_and(elapsed_ms > 0) from clearway_time where scope in ('server', 'session');"
             " select enabled from performance_schema.setup_consumers where name = 'statements_digest'")
check("recorders are switched", shown == "0\nt\nt\nNO", shown)
configure("set recorders = 'statements'")
psql("select 'seen' from slow", "seen")
shown = psql("select calls from clearway_statements where application_name = 'seen'; select count(*) from clearway_time where scope = 'session' and elapsed_ms > 0")
check("and switched again while the server runs", shown == "1\n0", shown)
stop(server)
shutil.rmtree(scratch)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
