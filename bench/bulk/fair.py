#!/usr/bin/env python3
"""Short statements beside endless ones: the 99th percentile of point reads while aggregations run, on Clearway and PostgreSQL in one run.

  bench/bulk/fair.py CLEARWAY [--long 0,4,30] [--scans WORKERS] [--seconds N] [--runs N] [--bin DIR] [--table FILE] [--directory DIR]

pgbench -S with prepared statements and four clients reads 1,000,000 rows by key, alone and beside so many sessions that each run an aggregation
without an end. With --scans they run an aggregation of the whole table again and again, by so many parallel workers at most. The figures are the
medians of the runs."""
import argparse, os, shutil, statistics, subprocess, sys, tempfile
from servers import Clearway, Postgres, arguments, asked, start

ENDLESS = "select sum(a.abalance + b.bid) from pgbench_accounts a, pgbench_accounts b where a.abalance + b.bid > 0"

SCAN = "select sum(abalance + bid) from pgbench_accounts where abalance + bid > 0;\n"


def pgbench(options, port, *args, **more):
    command = [f"{options.bin}/pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", *args, "postgres"]
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(done.stderr)


def percentiles(options, port, seconds):
    """Of the latencies, in milliseconds: the 50th and the 99th; and how many reads there were a second."""
    logs = tempfile.mkdtemp(prefix="fair.")
    pgbench(options, port, "-n", "-S", "-M", "prepared", "-c", "4", "-T", str(seconds), "-l", cwd=logs)
    took = []
    for name in os.listdir(logs):
        with open(f"{logs}/{name}") as file:
            took += [int(line.split()[2]) / 1000 for line in file]
    shutil.rmtree(logs)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100], len(took) / seconds


def measured(options, server, long):
    command = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d", "postgres"]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if options.scans is None:
        busy = [subprocess.Popen(command + ["-c", ENDLESS], **quiet) for _ in range(long)]
    else:
        environment = dict(os.environ, PGOPTIONS=f"-c max_parallel_workers_per_gather={options.scans}")
        busy = [subprocess.Popen(command + ["-f", options.script], env=environment, **quiet) for _ in range(long)]
    try:
        return percentiles(options, server.port, options.seconds)
    finally:
        if long:
            asked(server.port, ["select count(pg_terminate_backend(pid)) from pg_stat_activity where query like 'select sum(%' and pid <> pg_backend_pid()"])
        for process in busy:
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--long", default="0,4,30")
    parser.add_argument("--scans", type=int)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--table")
    options = parser.parse_args()
    directory, servers, figures = tempfile.mkdtemp(prefix="fair.", dir=options.directory), [], {}
    options.script = f"{directory}/scans.sql"
    with open(options.script, "w") as file:
        file.write(SCAN * 100_000)
    try:
        for kind in (Postgres, Clearway):
            servers.append(start(kind, options, directory))
            pgbench(options, servers[-1].port, "-i", "-q", "-s", "10")
        for turn in range(options.runs):
            for long in [int(n) for n in options.long.split(",")]:
                for server in servers if turn % 2 == 0 else servers[::-1]:
                    found = measured(options, server, long)
                    figures.setdefault((long, server.name), []).append(found)
                    print(f"{turn + 1} {long:2} long, {server.name:8}: median {found[0]:8.2f} ms, p99 {found[1]:8.2f} ms, {found[2]:8.0f} a second", flush=True)
    finally:
        for server in servers:
            server.stop()
    shutil.rmtree(directory)
    page = "| endless statements | PostgreSQL p99 ms | Clearway p99 ms | ratio | PostgreSQL reads a second | Clearway reads a second |\n|---|---|---|---|---|---|\n"
    for long in sorted({long for long, _ in figures}):
        theirs, ours = ([statistics.median(f[i] for f in figures[long, name]) for i in range(3)] for name in ("postgres", "clearway"))
        page += f"| {long} | {theirs[1]:.2f} | {ours[1]:.2f} | {ours[1] / theirs[1]:.2f} | {theirs[2]:.0f} | {ours[2]:.0f} |\n"
    print(page)
    if options.table:
        with open(options.table, "w") as file:
            file.write(page)


main()
