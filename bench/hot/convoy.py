#!/usr/bin/env python3
"""A hot row before and after accidents that make its sessions queue: a reload of the settings, and a transaction that holds the row for a while.

usage: bench/hot/convoy.py PATH-TO-clearway [PATH ...] [--clients 64,1000] [--protocols prepared,simple] [--rounds 2] [--ms 1000] [--hold-ms 50] [--later 3]

Clients update one row, each statement a transaction of its own. Measured is a window of `--ms` each time: before, right after the accident, and `--later` seconds after it. Shown are
transactions a second, the server's processor time of a transaction, its waits for the row (event tuple of `clearway_waits`, which has waits for a turn, too), and how many
sessions stand in the row's lock queue at the end (their transactions have an id; one that waits for its turn has no transaction); medians of the rounds. The last line is
`N passed, N failed`: a queue that stays has more than an eighth of the clients later.
"""
import argparse, glob, os, re, resource, shutil, signal, statistics, subprocess, sys, tempfile, time
from psql import Psql

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binaries", nargs="+")
parser.add_argument("--clients", default="64,1000")
parser.add_argument("--protocols", default="prepared,simple")
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--ms", type=int, default=1000)
parser.add_argument("--hold-ms", type=int, default=50)
parser.add_argument("--later", type=float, default=3)
asked = parser.parse_args()
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
WAITS = "SELECT coalesce(sum(waits), 0) FROM clearway_waits WHERE wait_event_type = 'Lock' AND wait_event = 'tuple'"
QUEUED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'tuple' AND backend_xid IS NOT NULL"
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"


class Server:
    def __init__(self, binary):
        self.scratch = tempfile.mkdtemp(dir="/dev/shm")
        log = open(f"{self.scratch}/log", "w")
        self.process = subprocess.Popen([os.path.abspath(binary), "serve", "--data", f"{self.scratch}/data", "--listen", "127.0.0.1:0", "-c", "max_connections=1100"], stdout=log, stderr=log)
        while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())):
            if self.process.poll() is not None:
                sys.exit(f"the server has ended:\n{open(log.name).read()}\n0 passed, 1 failed")
            time.sleep(0.05)
        self.environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": found[1], "PGUSER": "postgres", "PGDATABASE": "postgres"}
        self.psql = Psql(self.environment, "psql has lost its server\n0 passed, 1 failed")
        self.psql.ask("CREATE TABLE hot (id int PRIMARY KEY, v int)", "INSERT INTO hot VALUES (1, 0)")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.scratch)

    def begin_load(self, clients, protocol):
        open(f"{self.scratch}/load.sql", "w").write("UPDATE hot SET v = v + 1 WHERE id = 1;\n")
        command = ["/usr/lib/postgresql/15/bin/pgbench", "-n", "-M", protocol, "-f", f"{self.scratch}/load.sql", "-c", str(clients), "-j", "2", "-T", "86400"]
        load = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while int(self.psql.ask("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")[-1]) <= clients:
            time.sleep(0.1)
        return load

    def figures(self):
        used = 0
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"):
            try:
                used += int(open(path).read().split()[0])
            except OSError:
                pass
        return [int(line) for line in self.psql.ask(COMMITS, WAITS)[-2:]] + [used, time.monotonic()]

    def window(self):
        before = self.figures()
        time.sleep(asked.ms / 1e3)
        done, waits, used, passed = (after - was for was, after in zip(before, self.figures()))
        return done / passed, used / done / 1e3, waits / done, int(self.psql.ask(QUEUED)[-1])

    def reload(self):
        self.psql.ask("SELECT pg_reload_conf()")

    def hold(self):
        self.psql.ask("BEGIN", "UPDATE hot SET v = v + 1 WHERE id = 1")
        time.sleep(asked.hold_ms / 1e3)
        self.psql.ask("COMMIT")


def measure(binary, clients, protocol):
    """The windows by what happened before them."""
    server = Server(binary)
    load = None
    try:
        windows = {}
        for _ in range(asked.rounds):
            for name, accident in (("reload", server.reload), ("hold", server.hold)):
                load = server.begin_load(clients, protocol)
                time.sleep(1.5)
                windows.setdefault(f"before {name}", []).append(server.window())
                accident()
                windows.setdefault(f"after {name}", []).append(server.window())
                time.sleep(asked.later)
                windows.setdefault(f"later, {name}", []).append(server.window())
                load.terminate()
                load.wait()
                load = None
        return windows
    finally:
        if load is not None:
            load.terminate()
            load.wait()
        server.end()


passed, failed = 0, []
print("| program | protocol | clients | window | per second | us | waits | queued |\n|---|---|--:|---|--:|--:|--:|--:|")
for protocol in asked.protocols.split(","):
    for clients in map(int, asked.clients.split(",")):
        for binary in asked.binaries:
            queued = {}
            for name, windows in measure(binary, clients, protocol).items():
                rate, us, waits, queued[name] = (statistics.median(column) for column in zip(*windows))
                print(f"| {os.path.basename(binary)} | {protocol} | {clients} | {name} | {rate:,.0f} | {us:.1f} | {waits:.2f} | {queued[name]:,.0f} |", flush=True)
            for name in ("reload", "hold"):
                if queued[f"later, {name}"] > clients / 8:
                    failed.append(f"{binary}, {protocol}, {clients} clients: the queue stays after {name}")
                else:
                    passed += 1
print("".join(f"failed: {one}\n" for one in failed), end="")
print(f"{passed} passed, {len(failed)} failed")
sys.exit(bool(failed))
