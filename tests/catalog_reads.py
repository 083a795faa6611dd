#!/usr/bin/env python3
"""What reads of the catalog cost clients that insert (P8): pgbench inserts while other clients read the catalog, and while equally busy clients read rows by key.

usage: tests/catalog_reads.py PATH-TO-clearway [--tables 1000] [--seconds 8] [--rounds 5] [--readers 2] [--writers 4] [--share 0.4] [--peer PORT]

First both kinds of readers run alone, which tells how much processor time a read costs, that of its client included. Then each kind reads at the
rate at which its reads take `--share` of one processor: both are equally busy. (`--share 0`: each reads as fast as it can, and the catalog's
readers then compute more in the server.) Each round measures both, one after the other; the order changes from round to round. The table has the medians of the inserts' latency and rate,
what the readers did, and how long one look at one table takes (psql's \\d). `--peer` asks the PostgreSQL at that port of this machine the same.
The last line is `N passed, N failed`: it fails where the inserts' p99 beside catalog reads is more than 1.1 times that beside point reads, by the
median of the rounds' ratios. Not part of CI: two clients more decide about latencies on a machine that does something else.
"""
import argparse, os, re, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("binary")
parser.add_argument("--tables", type=int, default=1000)
parser.add_argument("--seconds", type=int, default=8)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--readers", type=int, default=2)
parser.add_argument("--writers", type=int, default=4)
parser.add_argument("--share", type=float, default=0.4)
parser.add_argument("--peer", type=int)
asked = parser.parse_args()
scratch = tempfile.mkdtemp()
PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"

# What a driver asks of one table: the columns of its rows, by oid and by name.
CATALOG = r"""\set n random(1, :tables)
SELECT c.oid, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'wide_' || :n AND n.nspname = 'public';
SELECT a.attname, a.atttypid, a.attnotnull, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = ('wide_' || :n)::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT c.relname, i.indisunique FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = ('wide_' || :n)::regclass;
"""
POINTS = "\\set n random(1, 1000)\nSELECT v FROM points WHERE id = :n;\n"
INSERT = "INSERT INTO sink (v) VALUES (:client_id);\n"


def environment(port):
    return os.environ | {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "catalog_reads"}


def psql(port, *sql, database=None):
    env = environment(port) | ({"PGDATABASE": database} if database else {})
    command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"]
    for one in sql:
        command += ["-c", one]
    return subprocess.run(command, text=True, capture_output=True, check=True, env=env).stdout


def prepare(port):
    psql(port, "DROP DATABASE IF EXISTS catalog_reads", "CREATE DATABASE catalog_reads", database="postgres")
    # Statements by the hundred: one transaction of many thousands of objects is not what is asked here.
    columns = ", ".join(f"c{i} text" for i in range(1, 10))
    for first in range(1, asked.tables + 1, 100):
        psql(port, *(f"CREATE TABLE wide_{n} (id bigint PRIMARY KEY, {columns}, UNIQUE (c1))" for n in range(first, min(first + 100, asked.tables + 1))))
    psql(port, "CREATE TABLE points (id int PRIMARY KEY, v int)", "INSERT INTO points SELECT g, g FROM generate_series(1, 1000) g",
         "CREATE TABLE sink (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int)", "ANALYZE points")


def describe_ms(port):
    """The median time of psql's description of one table, less that of a psql that asks nothing."""
    def once(command):
        began = time.monotonic()
        subprocess.run(["psql", "-XAtq", "-c", command], check=True, capture_output=True, env=environment(port))
        return (time.monotonic() - began) * 1e3
    return statistics.median(once("\\d wide_7") for _ in range(9)) - statistics.median(once("select 1") for _ in range(9))


def busy_seconds(pid):
    """Processor time of the server and of the clients that have ended; of a server without a number that of the whole machine."""
    tick = os.sysconf("SC_CLK_TCK")
    if pid is None:
        user, nice, system, idle, iowait, *others = map(int, open("/proc/stat").readline().split()[1:])
        return (user + nice + system + sum(others[:2])) / tick
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    clients = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (int(fields[11]) + int(fields[12])) / tick + clients.ru_utime + clients.ru_stime


def pgbench(port, script, clients, log=None, rate=0):
    path = f"{scratch}/{abs(hash(script))}.sql"
    open(path, "w").write(script)
    command = [PGBENCH, "-n", "-M", "prepared", "-f", path, "-D", f"tables={asked.tables}", "-c", str(clients), "-j", "1", "-T", str(asked.seconds)]
    if rate:
        command += ["-R", f"{rate:.1f}"]
    if log:
        command += ["-l", "--log-prefix", log]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(port))


def tps(process):
    out, _ = process.communicate()
    found = re.search(r"tps = ([\d.]+)", out)
    if process.returncode or not found:
        sys.exit(f"pgbench:\n{out}\n0 passed, 1 failed")
    return float(found[1])


def rate_of(port, pid, script):
    """The rate at which its reads take the share of a processor; 0: as fast as it can."""
    if not asked.share:
        return 0
    before, began = busy_seconds(pid), time.monotonic()
    reads = tps(pgbench(port, script, asked.readers))
    return asked.share * reads * (time.monotonic() - began) / (busy_seconds(pid) - before)


def cell(port, pid, script, rate):
    log = f"{scratch}/log"
    before, began = busy_seconds(pid), time.monotonic()
    readers = pgbench(port, script, asked.readers, rate=rate)
    writers = pgbench(port, INSERT, asked.writers, log)
    inserts, reads = tps(writers), tps(readers)
    busy = (busy_seconds(pid) - before) / (time.monotonic() - began)
    if rate and reads < 0.9 * rate:
        print(f"the readers came to {reads:,.0f} a second, not to {rate:,.0f}: take a smaller --share")
    times = []
    for name in os.listdir(scratch):
        if name.startswith("log."):
            times += [int(line.split()[2]) / 1e3 for line in open(f"{scratch}/{name}")]
            os.remove(f"{scratch}/{name}")
    times.sort()
    return {"rate": inserts, "busy": busy, "reads": reads, "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100], "max": times[-1]}


def measure(name, port, pid):
    prepare(port)
    tps(pgbench(port, CATALOG, asked.readers)), tps(pgbench(port, POINTS, asked.readers))
    rates = {script: rate_of(port, pid, script) for script in (CATALOG, POINTS)}
    all_cells, ratios = {"catalog": [], "points": []}, []
    for number in range(asked.rounds):
        kinds = [("catalog", CATALOG), ("points", POINTS)]
        for kind, script in kinds if number % 2 else reversed(kinds):
            all_cells[kind].append(cell(port, pid, script, rates[script]))
        ratios.append(all_cells["catalog"][-1]["p99"] / all_cells["points"][-1]["p99"])
    for kind, cells in all_cells.items():
        figure = lambda key: statistics.median(c[key] for c in cells)
        print(f"| {name} | {kind} | {figure('reads'):,.0f} | {figure('busy'):.2f} | {figure('rate'):,.0f} | {figure('p50'):.2f} | {figure('p99'):.2f} | {figure('max'):.1f} |", flush=True)
    return statistics.median(ratios), describe_ms(port)


print(f"{asked.tables} tables, {asked.writers} clients insert beside {asked.readers} readers, medians of {asked.rounds} rounds of {asked.seconds} s; milliseconds\n")
print("| server | beside reads of | reads/s | processors busy | inserts/s | p50 | p99 | max |\n|---|---|--:|--:|--:|--:|--:|--:|")
log = open(f"{scratch}/server.log", "w")
server = subprocess.Popen([asked.binary, "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0"], stdout=log, stderr=log)
while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(f"{scratch}/server.log").read())):
    if server.poll() is not None:
        sys.exit(f"the server has ended:\n{open(f'{scratch}/server.log').read()}\n0 passed, 1 failed")
    time.sleep(0.05)
try:
    outcomes = [("clearway", *measure("clearway", found[1], server.pid))]
    if asked.peer:
        outcomes.append(("postgres", *measure("postgres", asked.peer, None)))
        psql(asked.peer, "DROP DATABASE catalog_reads", database="postgres")
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(scratch)
print()
for name, ratio, described in outcomes:
    print(f"{name}: inserts' p99 beside catalog reads is {ratio:.2f} of that beside point reads; \\d of one table takes {described:.1f} ms")
passed = outcomes[0][1] <= 1.1
print(f"{int(passed)} passed, {int(not passed)} failed")
sys.exit(not passed)
