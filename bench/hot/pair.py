#!/usr/bin/env python3
"""Compares two builds of the server on short statements: throughput, and processor time of the server per transaction.

usage: bench/hot/pair.py OLD NEW [--sysbench] [--rounds N] [--seconds N] [--cases REGEX] [--ports A,B]

Both servers run at the same time, each on a new directory with pgbench's tables at scale 5. pgbench drives them in turns; the order changes
from round to round, so that both see the same of what else the machine does. Each figure is a median over the rounds. Processor time is that
of the server's process, in user mode and in the kernel, divided by the transactions that pgbench counted. With --sysbench the cases are those of
sysbench 1.0 instead (8 threads, one table of 100,000 rows, prepared statements). oltp_delete deletes rows and never puts one back, so each of its runs begins
with all rows and has so many deletes: by time, the faster server would soon delete nothing, and what is left says nothing about deletes.
"""
import argparse, os, re, shutil, statistics, subprocess, tempfile, time

CLIENTS = ["-c", "8", "-j", "2"]
PREPARED = ["-M", "prepared"]
SCRIPTS = {
    "update": "\\set aid random(1, 500000)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n",
    "hot": "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n",
    "insert": "\\set aid random(1, 500000)\nINSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 5, CURRENT_TIMESTAMP);\n",
}
CASES = {
    "point select, 8 clients": ["-S"] + PREPARED + CLIENTS,
    "point select, simple protocol, 8": ["-S"] + CLIENTS,
    "update of one row, 8": ["-f", "update"] + PREPARED + CLIENTS,
    "insert of one row, 8": ["-f", "insert"] + PREPARED + CLIENTS,
    "hot row, 16": ["-f", "hot"] + PREPARED + ["-c", "16", "-j", "2"],
    "hot row, 64": ["-f", "hot"] + PREPARED + ["-c", "64", "-j", "2"],
    "TPC-B, prepared, 8": PREPARED + CLIENTS,
    "TPC-B, simple protocol, 8": CLIENTS,
}

# Rows with the keys that are missing.
REFILL = "INSERT INTO sbtest1 (id, k, c, pad) SELECT g, 1 + g * 7919 % 100000, repeat('c', 119), repeat('p', 59) FROM generate_series(1, 100000) g ON CONFLICT DO NOTHING"
DELETES_A_SECOND = 20000

SYSBENCH = [f"oltp_{name}" for name in "point_select read_only read_write update_index update_non_index write_only insert delete".split()]


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick, int(fields[12]) / tick


def pgbench(port, *more):
    env = dict(os.environ, PGHOST="127.0.0.1", PGPORT=str(port), PGUSER="postgres", PGDATABASE="clearway")
    return subprocess.run(["pgbench", *more], env=env, capture_output=True, text=True, check=True).stdout


def sysbench(port, case, *more):
    options = ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={port}", "--pgsql-user=postgres", "--pgsql-password=x", "--pgsql-db=clearway",
               "--tables=1", "--table-size=100000", "--threads=8"]
    return subprocess.run(["sysbench", case, *options, *more], capture_output=True, text=True, check=True).stdout


def counted(port, options, seconds):
    """How many transactions there were, and how many a second."""
    if options[0].startswith("oltp_"):
        length = ["--time=0", f"--events={seconds * DELETES_A_SECOND}"] if options[0] == "oltp_delete" else [f"--time={seconds}"]
        shown = sysbench(port, options[0], *length, "run")
        count, rate = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", shown).groups()
        return int(count), float(rate)
    shown = pgbench(port, "-n", "-T", str(seconds), *options)
    return int(re.search(r"actually processed: (\d+)", shown)[1]), float(re.search(r"tps = ([\d.]+)", shown)[1])


def measure(server, port, scratch, options, seconds):
    options = [os.path.join(scratch, o + ".sql") if o in SCRIPTS else o for o in options]
    if options[0] == "oltp_delete":
        connection = f"host=127.0.0.1 port={port} user=postgres dbname=clearway"
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", connection, "-c", REFILL], check=True)
    user, kernel = processor_seconds(server.pid)
    count, rate = counted(port, options, seconds)
    user_after, kernel_after = processor_seconds(server.pid)
    return rate, (user_after - user) / count * 1e6, (kernel_after - kernel) / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--sysbench", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--cases", default=".")
    parser.add_argument("--ports", default="5691,5692")
    args = parser.parse_args()
    scratch = tempfile.mkdtemp()
    for name, text in SCRIPTS.items():
        open(os.path.join(scratch, name + ".sql"), "w").write(text)
    ports = [int(port) for port in args.ports.split(",")]
    servers = []
    try:
        for binary, port in zip((args.old, args.new), ports):
            directory = os.path.join(scratch, str(port))
            command = [os.path.abspath(binary), "serve", "--data", directory, "--listen", f"127.0.0.1:{port}"]
            servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(3)
        for port in ports:
            if args.sysbench:
                sysbench(port, "oltp_read_write", "prepare")
            else:
                pgbench(port, "-i", "-q", "-s", "5")
        print("| | per second, old | new | user us, old | new | kernel us, old | new | processor time, new / old |")
        print("|---|---|---|---|---|---|---|---|")
        for name, options in {name: [name] for name in SYSBENCH}.items() if args.sysbench else CASES.items():
            if not re.search(args.cases, name):
                continue
            runs = [[], []]
            for round_number in range(args.rounds):
                for which in (0, 1) if round_number % 2 == 0 else (1, 0):
                    runs[which].append(measure(servers[which], ports[which], scratch, options, args.seconds))
            old, new = [[statistics.median(run[i] for run in side) for i in range(3)] for side in runs]
            total = [statistics.median(run[1] + run[2] for run in side) for side in runs]
            print(f"| {name} | {old[0]:.0f} | {new[0]:.0f} | {old[1]:.2f} | {new[1]:.2f} | {old[2]:.2f} | {new[2]:.2f} | {total[1] / total[0]:.2f} |", flush=True)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        shutil.rmtree(scratch, ignore_errors=True)


main()
