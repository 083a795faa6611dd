#!/usr/bin/env python3
"""What the recorders cost, by switching them in one server while clients drive it: processor time of the server for each transaction.

usage: bench/hot/switched.py PATH-TO-clearway [--pairs 60] [--ms 400] [--clients 64] [--load point|hot|read-write] [--parts all,statements,...] [--option NAME=VALUE ...]

bench/hot/recorders.py compares servers; two servers of one build differ by some percent. Here one server is switched, on and off in turns, every few hundred
milliseconds. The processor time is that of all threads of the server by the scheduler, the transactions are those of pg_stat_database. A ratio is
formed of two neighbouring turns. `--parts` names what is switched, one table row each: all (the same as in recorders.py), statements, time, waits
(the wait events), idle (the waits for the client alone), history (of lock waits, and their lines in the log), none (nothing at all: A/A).
"""
import argparse, glob, os, re, shutil, signal, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--pairs", type=int, default=60)
parser.add_argument("--ms", type=int, default=400)
parser.add_argument("--clients", type=int, default=64)
parser.add_argument("--load", default="point")
parser.add_argument("--parts", default="all,none")
parser.add_argument("--option", action="append", default=[])
asked = parser.parse_args()
scratch = tempfile.mkdtemp()
LOADS = {"point": "\\set id random(1, 10000)\nSELECT c FROM sbtest1 WHERE id = :id;\n", "hot": "UPDATE hot SET v = v + 1 WHERE id = 1;\n"}
WAITS = ("idle", "wait/io/%", "wait/lock/%", "wait/synch/cond/%")


def instruments(patterns, on):
    where = " OR ".join(f"name LIKE '{pattern}'" for pattern in patterns)
    value = "YES" if on else "NO"
    return [f"UPDATE performance_schema.setup_instruments SET enabled = '{value}', timed = '{value}' WHERE {where}"]


def recorders(off):
    return [f"ALTER SYSTEM SET recorders = '{off}'", "SELECT pg_reload_conf()"]


def history(on):
    low, line = ("1ms", "on") if on else ("1000000s", "off")
    return [f"ALTER SYSTEM SET lock_history_min = '{low}'", f"ALTER SYSTEM SET log_lock_waits = {line}", "SELECT pg_reload_conf()"]


ALL = "statements,sessions,time"
SWITCHES = {  # what switches it off and on again
    "all": (history(False) + recorders("none") + instruments(WAITS, False), history(True) + recorders(ALL) + instruments(WAITS, True)),
    "history": (history(False), history(True)),
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


class Psql:
    """One psql that stays."""

    def __init__(self):
        self.process = subprocess.Popen(["psql", "-XAtq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, *statements):
        self.process.stdin.write("".join(f"{one};\n" for one in statements) + "\\echo done\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline().strip()) != "done":
            lines.append(line)
        return lines


def processor_ns():
    total = 0
    for path in glob.glob(f"/proc/{server.pid}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except OSError:
            pass
    return total


def turn(psql):
    """Nanoseconds of processor time for a transaction, and transactions a second."""
    count = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"
    before, used, began = int(psql.ask(count)[-1]), processor_ns(), time.monotonic()
    time.sleep(asked.ms / 1e3)
    used, passed, after = processor_ns() - used, time.monotonic() - began, int(psql.ask(count)[-1])
    return used / max(after - before, 1), (after - before) / passed


def measure(psql, part):
    off, on = SWITCHES[part]
    turns = []
    for number in range(2 * asked.pairs + 1):
        psql.ask(*(on if number % 2 else off))
        time.sleep(0.03)
        turns.append(turn(psql))
    psql.ask(*on)
    # Each turn with the recorders on against the mean of its two neighbours without them.
    ratios = [2 * turns[i][0] / (turns[i - 1][0] + turns[i + 1][0]) for i in range(1, 2 * asked.pairs, 2)]
    rates = [2 * turns[i][1] / (turns[i - 1][1] + turns[i + 1][1]) for i in range(1, 2 * asked.pairs, 2)]
    shown = lambda values: "{1:+.2f} ({0:+.1f} to {2:+.1f})".format(*(100 * value - 100 for value in statistics.quantiles(values, n=4)))
    middle = lambda from_, which: statistics.median(one[which] for one in turns[from_::2])
    print(f"| {part} | {middle(0, 0) / 1e3:.3f} | {middle(1, 0) / 1e3:.3f} | {shown(ratios)} | {middle(0, 1):,.0f} | {middle(1, 1):,.0f} | {shown(rates)} |", flush=True)


try:
    subprocess.run([*SYSBENCH, "prepare"], check=True, **quiet)
    psql = Psql()
    psql.ask("create table hot (id int primary key, v int)", "insert into hot values (1, 0)", "analyze")
    seconds = str(86_400)
    if asked.load == "read-write":
        load = subprocess.Popen([*SYSBENCH, "run", f"--threads={asked.clients}", f"--time={seconds}", "--rand-type=uniform"], **quiet)
    else:
        open(f"{scratch}/load.sql", "w").write(LOADS[asked.load])
        load = subprocess.Popen(["/usr/lib/postgresql/15/bin/pgbench", "-n", "-M", "prepared", "-f", f"{scratch}/load.sql", "-c", str(asked.clients), "-j", "2", "-T", seconds], **quiet)
    time.sleep(3)
    print(f"{asked.load}, {asked.clients} clients, {asked.pairs} pairs of {asked.ms} ms; percent: medians and quartiles of the ratios on to off\n")
    print("| switched | us of processor time, off | on | processor time added | per second, off | on | throughput gained |\n|---|--:|--:|--:|--:|--:|--:|")
    for part in asked.parts.split(","):
        measure(psql, part)
    load.terminate()
    load.wait()
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(scratch)
