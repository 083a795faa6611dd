#!/usr/bin/env python3
"""What `clearway watch` costs the server that it watches: throughput of a real PostgreSQL and a real MariaDB with and without it, in turns.

usage: bench/watch-cost.py PATH-TO-clearway [--rounds 6] [--seconds 5] [--clients 16] [--percent 2] [--page docs/measured/watch-cost.md]

Each round of a load runs once with the console and once without; the order changes from round to round. The console runs as by default, and a
visitor's page is open: its moment and history each second, a table every five. A ratio is formed within each round, and the table has their median
with quartiles. Both servers are this script's own, without waits for the disk, so that what the console takes is not hidden behind them. A load
fails where the median of the ratios is worse than so many percent. The last line is `N passed, N failed`.

It needs PostgreSQL 15's binaries, mariadbd, and sysbench. With the defaults it takes four minutes.
"""
import argparse, datetime, json, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time, urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--rounds", type=int, default=6)
parser.add_argument("--seconds", type=int, default=5)
parser.add_argument("--clients", type=int, default=16)
parser.add_argument("--percent", type=float, default=2)
parser.add_argument("--page")
asked = parser.parse_args()
BINARY = os.path.abspath(asked.binary)
BIN = "/usr/lib/postgresql/15/bin"
scratch = tempfile.mkdtemp()
started = []


def spawn(command, **more):
    process = subprocess.Popen(command, stdout=open(f"{scratch}/{len(started)}.log", "w"), stderr=subprocess.STDOUT, **more)
    started.append(process)
    return process, f"{scratch}/{len(started) - 1}.log"


def run(command, **more):
    done = subprocess.run(command, text=True, capture_output=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}\n0 passed, 1 failed")
    return done.stdout


def until(wanted):
    for _ in range(1200):
        if wanted():
            return
        time.sleep(0.05)
    raise SystemExit("a server did not come up\n0 passed, 1 failed")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def postgres():
    port, data = free_port(), f"{scratch}/postgres"
    os.mkdir(data, 0o700)
    as_owner = {"cwd": "/"}
    if os.getuid() == 0:
        os.chmod(scratch, 0o755)
        shutil.chown(data, "nobody", "nogroup")
        as_owner["user"] = "nobody"
    run([f"{BIN}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"], **as_owner)
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "synchronous_commit=off", "shared_preload_libraries=pg_stat_statements"]
    spawn([f"{BIN}/postgres", "-D", data, "-p", port, *[word for one in settings for word in ("-c", one)]], **as_owner)
    at = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"]
    until(lambda: subprocess.run(["psql", *at, "-c", "create extension pg_stat_statements"], capture_output=True).returncode == 0)
    run([f"{BIN}/pgbench", *at, "-i", "-q", "-s", "10", "postgres"])

    def load(more):
        told = run([f"{BIN}/pgbench", *at, "-n", "-c", str(asked.clients), "-j", "2", "-T", str(asked.seconds), *more, "postgres"])
        return float(re.search(r"tps = ([\d.]+)", told)[1])

    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    return [("PostgreSQL 15, pgbench -S", url, lambda: load(["-S"])), ("PostgreSQL 15, pgbench TPC-B", url, lambda: load([]))]


def mariadb():
    port, data = free_port(), f"{scratch}/mariadb"
    user = ["--user=root"] if os.getuid() == 0 else []
    run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", f"--datadir={data}", *user])
    spawn(["mariadbd" if shutil.which("mariadbd") else "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={scratch}/mariadb.socket", "--bind-address=127.0.0.1",
           f"--port={port}", "--performance-schema=ON", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=256M", "--skip-name-resolve", *user])
    client = ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", port, "-u", "root", "-e"]
    until(lambda: subprocess.run([*client, "create database sbtest"], capture_output=True).returncode == 0)
    sysbench = ["sysbench", "oltp_read_write", "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=root", "--tables=4", "--table-size=20000",
                f"--threads={asked.clients}", f"--time={asked.seconds}"]
    run([*sysbench, "prepare"])
    version = run(["mariadb", "--version"]).split("Distrib ")[-1].split(",")[0]
    load = lambda: float(re.search(r"transactions: .*\(([\d.]+) per sec", run([*sysbench, "run"]))[1])
    return [(f"MariaDB {version}, sysbench read-write", f"mysql://root@127.0.0.1:{port}/sbtest", load)]


class Watched:
    """The console, and a visitor's page."""

    def __init__(self, url):
        self.process, log = spawn([BINARY, "watch", url, "--http", "127.0.0.1:0"])
        until(lambda: re.search(r"is at (http://\S+)/", open(log).read()))
        self.at = re.search(r"is at (http://\S+)/", open(log).read())[1]
        until(lambda: self.get("/api/now") and json.loads(self.get("/api/now"))["connected"])
        self.over = threading.Event()
        self.visitor = threading.Thread(target=self.visit)
        self.visitor.start()

    def get(self, path):
        try:
            with urllib.request.urlopen(self.at + path, timeout=30) as answer:
                return answer.read()
        except OSError:
            return b""

    def visit(self):
        second, newest = 0, 0
        while not self.over.wait(1):
            for path in ["/api/now"] + (["/api/table/statements", "/api/table/transactions"] if second % 5 == 0 else []):
                self.get(path)
            # As the page does: only what is new.
            more = json.loads(self.get(f"/api/history?since={newest}") or b"[]")
            newest = more[-1]["at"] if more else newest
            second += 1

    def end(self):
        self.over.set()
        self.visitor.join()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def watched(url, load):
    console = Watched(url)
    try:
        return load()
    finally:
        console.end()


lines, failed = [], 0
try:
    cases = postgres() + mariadb()
    for name, url, load in cases:
        load()
        pairs = []
        for n in range(asked.rounds):
            order = [True, False] if n % 2 else [False, True]
            told = {with_it: watched(url, load) if with_it else load() for with_it in order}
            pairs.append((told[True], told[False]))
        ratios = [100 * with_it / without - 100 for with_it, without in pairs]
        low, median, high = statistics.quantiles(ratios, n=4)
        is_bad = median < -asked.percent
        failed += is_bad
        lines.append(f"| {name} | {statistics.median(p[1] for p in pairs):,.0f} | {statistics.median(p[0] for p in pairs):,.0f} | {median:+.1f} % ({low:+.1f} to {high:+.1f}) |")
        print(f"watch-cost {name}: {median:+.1f} % ... {'FAILED' if is_bad else 'ok'}", flush=True)
finally:
    for process in reversed(started):
        if process.poll() is None:
            process.send_signal(signal.SIGINT if "postgres" in process.args[0] else signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
    shutil.rmtree(scratch, ignore_errors=True)
page = f"""# What `clearway watch` costs the server that it watches

`{' '.join(['bench/watch-cost.py', 'target/release/clearway', *sys.argv[2:]])}`, {datetime.date.today()}, {os.cpu_count()} processors; client, server and console on one machine.

Transactions a second without and with the console, which runs as by default while a visitor's page is open. {asked.rounds} rounds of {asked.seconds} s with
{asked.clients} clients; in each round both, in turns. The change is the median of the rounds' ratios, with quartiles. The servers do not wait for the
disk. On this machine the console and the client take processor time that a server of its own would keep.

| Load | without | with | change |
|---|---|---|---|
""" + "\n".join(lines) + "\n"
print(page)
if asked.page:
    with open(asked.page, "w") as file:
        file.write(page)
print(f"{len(lines) - failed} passed, {failed} failed")
sys.exit(failed > 0)
