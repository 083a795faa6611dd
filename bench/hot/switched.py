#!/usr/bin/env python3
"""What the recorders cost, by switching them in one server while clients drive it: processor time of the server for each transaction.

usage: bench/hot/switched.py PATH-TO-clearway [--pairs 60] [--ms N] [--limit SECONDS] [--clients 64] [--load point|hot|read-write] [--parts all,statements,...]
           [--option NAME=VALUE ...]

bench/hot/recorders.py compares servers; two servers of one build differ by some percent. Here one server is switched, on and off in turns, every few hundred
milliseconds. The processor time is that of all threads of the server by the scheduler, the transactions are those of pg_stat_database. A ratio is
formed of each turn with the recorders and its two neighbours without. A turn takes `--ms`; without it 400 ms, and where many clients share the processors
twice the time of one transaction, if that is longer: the work of a transaction should fall into the turn in which it is counted. `--limit`: a part that has not
all its pairs after its share of so many seconds ends with those it has. `--parts` names what is switched, one table row each: all (the same as in
recorders.py), statements, time, waits (the wait events), idle (the waits for the client alone), history (of lock waits, and their lines in the log), none (nothing
at all: A/A). The column "off, A/A" is the same ratio of the turns without recorders among themselves, each and its two neighbours.
"""
import argparse, glob, os, re, resource, shutil, signal, statistics, subprocess, sys, tempfile, time
from psql import Psql

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--pairs", type=int, default=60)
parser.add_argument("--ms", type=int)
parser.add_argument("--limit", type=float, default=86_400)
parser.add_argument("--clients", type=int, default=64)
parser.add_argument("--load", default="point")
parser.add_argument("--parts", default="all,none")
parser.add_argument("--option", action="append", default=[])
asked = parser.parse_args()
scratch = tempfile.mkdtemp()
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
LOADS = {"point": "\\set id random(1, 10000)\nSELECT c FROM sbtest1 WHERE id = :id;\n", "hot": "UPDATE hot SET v = v + 1 WHERE id = 1;\n"}
WAITS = ("idle", "wait/io/%", "wait/lock/%", "wait/synch/cond/%")


def instruments(patterns, on):
    where = " OR ".join(f"name LIKE '{pattern}'" for pattern in patterns)
    value = "YES" if on else "NO"
    return [f"UPDATE performance_schema.setup_instruments SET enabled = '{value}', timed = '{value}' WHERE {where}"]


def recorders(on):
    return [f"ALTER SYSTEM SET recorders = '{on}'", "SELECT pg_reload_conf()"]


def history(on):
    low, line = ("1ms", "on") if on else ("1000000s", "off")
    return [f"ALTER SYSTEM SET lock_history_min = '{low}'", f"ALTER SYSTEM SET log_lock_waits = {line}"]


ALL = "statements,sessions,time"
SWITCHES = {  # what switches it off and on again
    "all": (history(False) + recorders("none") + instruments(WAITS, False), history(True) + recorders(ALL) + instruments(WAITS, True)),
    "history": (history(False) + ["SELECT pg_reload_conf()"], history(True) + ["SELECT pg_reload_conf()"]),
    "statements": (recorders("sessions,time"), recorders(ALL)),
    "time": (recorders("statements,sessions"), recorders(ALL)),
    "waits": (instruments(WAITS, False), instruments(WAITS, True)),
    "idle": (instruments(("idle",), False), instruments(("idle",), True)),
    "none": (recorders(ALL), recorders(ALL)),
}

log = open(f"{scratch}/log", "w")
options = [word for option in asked.option for word in ("-c", option)]
server = subprocess.Popen([os.path.abspath(asked.binary), "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0", *options], stdout=log, stderr=log)
while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())):
    if server.poll() is not None:
        sys.exit(f"the server has ended:\n{open(log.name).read()}")
    time.sleep(0.05)
environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": found[1], "PGUSER": "postgres", "PGDATABASE": "postgres"}
SYSBENCH = ["sysbench", "oltp_read_write", "--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={found[1]}", "--pgsql-user=postgres", "--pgsql-db=postgres",
            "--tables=4", "--table-size=10000"]
quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

load = None


def processor_ns():
    total = 0
    for path in glob.glob(f"/proc/{server.pid}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except OSError:
            pass
    return total


def committed(psql):
    return int(psql.ask("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")[-1])


def turn(psql):
    """Nanoseconds of processor time for a transaction, and transactions a second."""
    # An answer may take a tenth of a second beside a thousand clients: the processor time is read when it is there, at both ends.
    before, used, began = committed(psql), processor_ns(), time.monotonic()
    time.sleep(asked.ms / 1e3)
    after, used, passed = committed(psql), processor_ns() - used, time.monotonic() - began
    if load.poll() is not None:
        sys.exit(f"the load has ended:\n{open(f'{scratch}/load.log').read()}")
    return used / max(after - before, 1), (after - before) / passed


def settled(psql):
    """Waits until every client has done its transactions for a while; the time of a transaction in milliseconds."""
    while int(psql.ask("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")[-1]) <= asked.clients:
        time.sleep(0.1)
        if load.poll() is not None:
            sys.exit(f"the load has ended:\n{open(f'{scratch}/load.log').read()}")
    done, began = committed(psql), time.monotonic()
    time.sleep(1)
    while committed(psql) < done + 3 * asked.clients:
        time.sleep(0.1)
    return 1e3 * asked.clients * (time.monotonic() - began) / (committed(psql) - done)


def neighbours(turns, which, first, apart):
    """Each turn from `first` on, those of the other kind left out, against the mean of the turns that lie so far before and behind it."""
    return [2 * turns[i][which] / (turns[i - apart][which] + turns[i + apart][which]) for i in range(first, len(turns) - apart, 2)]


def measure(psql, part, until):
    off, on = SWITCHES[part]
    turns = []
    # The last turn is one without recorders; two pairs have quartiles at least.
    while len(turns) < 2 * asked.pairs + 1 and (time.monotonic() < until or len(turns) < 7 or len(turns) % 2 == 0):
        psql.ask(*(on if len(turns) % 2 else off))
        time.sleep(0.03)
        turns.append(turn(psql))
    psql.ask(*on)
    shown = lambda values: "{1:+.2f} ({0:+.1f} to {2:+.1f})".format(*(100 * value - 100 for value in statistics.quantiles(values, n=4)))
    middle = lambda from_, which: statistics.median(one[which] for one in turns[from_::2])
    row = [part, f"{len(turns) // 2}"]
    for which, figure in ((0, lambda value: f"{value / 1e3:.3f}"), (1, lambda value: f"{value:,.0f}")):
        row += [figure(middle(0, which)), figure(middle(1, which)), shown(neighbours(turns, which, 1, 1)), shown(neighbours(turns, which, 2, 2))]
    print("| " + " | ".join(row) + " |", flush=True)


try:
    subprocess.run([*SYSBENCH, "prepare"], check=True, **quiet)
    psql = Psql(environment)
    psql.ask("create table hot (id int primary key, v int)", "insert into hot values (1, 0)", "analyze")
    seconds = str(86_400)
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": open(f"{scratch}/load.log", "w")}
    if asked.load == "read-write":
        load = subprocess.Popen([*SYSBENCH, "run", f"--threads={asked.clients}", f"--time={seconds}", "--rand-type=uniform"], **quiet)
    else:
        open(f"{scratch}/load.sql", "w").write(LOADS[asked.load])
        load = subprocess.Popen(["/usr/lib/postgresql/15/bin/pgbench", "-n", "-M", "prepared", "-f", f"{scratch}/load.sql", "-c", str(asked.clients), "-j", "2", "-T", seconds], **quiet)
    began = time.monotonic()
    taken = settled(psql)
    asked.ms = asked.ms or max(400, round(2 * taken))
    print(f"{asked.load}, {asked.clients} clients, a transaction takes {taken:.1f} ms, {asked.pairs} pairs of {asked.ms} ms; percent: medians and quartiles of the ratios on to off\n")
    print("| switched | pairs | us of processor time, off | on | processor time added | off, A/A | per second, off | on | throughput gained | off, A/A |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    parts = asked.parts.split(",")
    for number, part in enumerate(parts):
        now = time.monotonic()
        measure(psql, part, now + (began + asked.limit - now) / (len(parts) - number))
finally:
    if load is not None:
        load.terminate()
        load.wait()
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(scratch)
