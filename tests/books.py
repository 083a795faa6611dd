#!/usr/bin/env python3
"""Whether the books close: sysbench against a Clearway, and what the elapsed time of its sessions consists of (clearway_time).

usage: tests/books.py PATH-TO-clearway [--threads 64] [--seconds 20] [--load oltp_read_write] [--percent 1]

Prints processor, run queue, waits and what is unaccounted, of the server and of the digests that took most. The last line is
`N passed, N failed`: it fails where more than so many percent of the server's time are unaccounted, or of a digest's mean of a millisecond
or more. Not part of CI: on a machine that builds meanwhile threads lose their processor in the middle of short statements.
"""
import argparse, os, re, shutil, signal, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("binary")
parser.add_argument("--threads", type=int, default=64)
parser.add_argument("--seconds", type=int, default=20)
parser.add_argument("--load", default="oltp_read_write")
parser.add_argument("--percent", type=float, default=1)
asked = parser.parse_args()
scratch = tempfile.mkdtemp()
log = open(f"{scratch}/log", "w")
server = subprocess.Popen([asked.binary, "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0"], stdout=log, stderr=log)
while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(f"{scratch}/log").read())):
    if server.poll() is not None:
        sys.exit(f"the server has ended:\n{open(f'{scratch}/log').read()}\n0 passed, 1 failed")
    time.sleep(0.05)
port = found[1]


def psql(sql):
    ran = subprocess.run(["psql", "-XAt", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres", "-c", sql], text=True, capture_output=True, check=True)
    return [line.split("|") for line in ran.stdout.splitlines()]


def sysbench(command):
    subprocess.run(["sysbench", asked.load, "--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={port}", "--pgsql-user=postgres", "--pgsql-db=postgres",
                    "--tables=4", "--table-size=10000", f"--threads={asked.threads if command == 'run' else 1}", f"--time={asked.seconds}", command], check=True, capture_output=True)


sysbench("prepare")
COLUMNS = "elapsed_ms, cpu_ms, run_queue_ms, wait_ms, io_ms, durable_ms, unaccounted_ms"
SERVER = f"select {COLUMNS} from clearway_time where scope = 'server'"
psql("select pg_stat_statements_reset()")
before = [float(value) for value in psql(SERVER)[0]]
sysbench("run")
after = [float(value) for value in psql(SERVER)[0]]
rows = [("server", 0, [now - old for now, old in zip(after, before)])]
for query, calls, *figures in psql(f"select replace(left(query, 48), '|', ' '), calls, {', '.join(f't.{column}' for column in COLUMNS.split(', '))} from clearway_time t join clearway_statements s using (queryid, application_name)"
                                   " where scope = 'statement' and calls > 100 order by t.elapsed_ms desc limit 12"):
    rows.append((query, int(calls), [float(value) for value in figures]))
print(f"{asked.load}, {asked.threads} threads, {asked.seconds} s; milliseconds, those of digests for one execution\n")
print("| what | elapsed | processor | run queue | waits | of them I/O | of them durable | unaccounted | of elapsed |")
print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
failed = []
for what, calls, figures in rows:
    percent = 100 * figures[-1] / max(figures[0], 0.001)
    each = max(calls, 1)
    print(f"| {what} | " + " | ".join(f"{value / each:,.3f}" for value in figures) + f" | {percent:.2f} % |")
    if abs(percent) > asked.percent and (calls == 0 or figures[0] / each >= 1):
        failed.append(what)
server.send_signal(signal.SIGTERM)
server.wait()
shutil.rmtree(scratch)
print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
sys.exit(bool(failed))
