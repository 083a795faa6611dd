#!/usr/bin/env python3
"""A job queue that turns over while a reader keeps an old snapshot: what a claim costs by the number of dead rows before the first job. Clearway beside PostgreSQL 15.

usage: bench/hot/turnover.py PATH-TO-clearway [PATH ...] [--peers postgres] [--jobs 200000] [--steps 5] [--claims 40] [--ready 1000] [--no-reader] [--forms key,status]

The queue always has `--ready` jobs. In each step as many of `--jobs` are added and claimed a thousand at a time as make the next part of the whole, and then `--claims` single claims are run one after
the other, each a transaction of its own: their median (us, at the client), and the server's processor time of one. The reader is a transaction in repeatable read that has read one row
and is idle; `--no-reader` leaves it out. The forms: `key` claims by DELETE ... ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED; `status` by UPDATE of a job's status over an index on (status, id).
"""
import argparse, glob, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time
from psql import Psql

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binaries", nargs="+")
parser.add_argument("--peers", default="postgres")
parser.add_argument("--jobs", type=int, default=200_000)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--claims", type=int, default=40)
parser.add_argument("--ready", type=int, default=1000)
parser.add_argument("--no-reader", action="store_true")
parser.add_argument("--forms", default="key,status")
parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
asked = parser.parse_args()
BATCH = 1000
# By form: the tables, how N jobs are put in, how N are claimed at once, and one claim.
FORMS = {
    "key": ("CREATE TABLE jobs (id bigserial PRIMARY KEY, payload int)",
            "INSERT INTO jobs (payload) SELECT 1 FROM generate_series(1, {n})",
            "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs ORDER BY id LIMIT {n} FOR UPDATE SKIP LOCKED)",
            "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"),
    "status": ("CREATE TABLE jobs (id bigserial PRIMARY KEY, status text NOT NULL, payload int); CREATE INDEX ON jobs (status, id)",
               "INSERT INTO jobs (status, payload) SELECT 'ready', 1 FROM generate_series(1, {n})",
               "UPDATE jobs SET status = 'done' WHERE id IN (SELECT id FROM jobs WHERE status = 'ready' ORDER BY id LIMIT {n} FOR UPDATE SKIP LOCKED)",
               "UPDATE jobs SET status = 'done' WHERE id = (SELECT id FROM jobs WHERE status = 'ready' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"),
}


def processor_us(pid):
    """What a server has taken of the processors, with all its threads and processes."""
    used, pids = 0, [pid]
    while pids:
        one = pids.pop()
        for path in glob.glob(f"/proc/{one}/task/*/schedstat"):
            try:
                used += int(open(path).read().split()[0])
                pids += [int(child) for child in open(f"{os.path.dirname(path)}/children").read().split()]
            except OSError:
                pass
    return used / 1e3


class Server:
    def __init__(self, binary):
        self.scratch = tempfile.mkdtemp(dir="/dev/shm")
        self.name = os.path.basename(binary) if binary else "postgres"
        self.began = None
        if binary:
            log = open(f"{self.scratch}/log", "w")
            self.process = subprocess.Popen([os.path.abspath(binary), "serve", "--data", f"{self.scratch}/data", "--listen", "127.0.0.1:0"], stdout=log, stderr=log)
            while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())):
                if self.process.poll() is not None:
                    sys.exit(f"the server has ended:\n{open(log.name).read()}")
                time.sleep(0.05)
            port = found[1]
        else:
            shutil.chown(self.scratch, "postgres")
            prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
            with socket.socket() as at:
                at.bind(("127.0.0.1", 0))
                port = str(at.getsockname()[1])
            data = f"{self.scratch}/data"
            subprocess.run([*prefix, f"{asked.bin}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "--locale=C.UTF-8"], check=True, stdout=subprocess.DEVNULL, cwd="/")
            settings = ["shared_buffers=256MB", "max_wal_size=4GB", "listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories="]
            self.process = subprocess.Popen([*prefix, f"{asked.bin}/postgres", "-D", data, *(w for s in settings for w in ("-c", s))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        self.environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "postgres", "PGDATABASE": "postgres"}
        while subprocess.run([f"{asked.bin}/pg_isready", "-q"], env=self.environment).returncode:
            time.sleep(0.1)
        self.psql = Psql(self.environment)

    def end(self):
        # A postmaster that is told SIGINT ends its sessions and itself.
        pid = self.process.pid
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        os.kill(int(children[0]) if self.name == "postgres" and os.getuid() == 0 and children else pid, signal.SIGINT if self.name == "postgres" else signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.scratch)

    def turn_over(self, form, jobs):
        put, take = (text.format(n=BATCH) for text in FORMS[form][1:3])
        for _ in range(jobs // BATCH):
            self.psql.ask(put, take)

    def claims(self, form):
        """Median latency and processor time of a claim, us; the rows that the claims examined by the server's own book, where it has one."""
        self.psql.ask("\\timing on\n")
        used = processor_us(self.process.pid)
        said = self.psql.ask(*[FORMS[form][3]] * asked.claims)
        used = processor_us(self.process.pid) - used
        self.psql.ask("\\timing off\n")
        times = [float(line.split()[1]) * 1e3 for line in said if line.startswith("Time:")]
        return statistics.median(times), used / asked.claims


servers = []
try:
    print("| form | dead rows | server | median us | processor us |\n|---|--:|---|--:|--:|")
    for form in asked.forms.split(","):
        for binary in [*asked.binaries, *[None] * (asked.peers == "postgres")]:
            servers.append(Server(binary))
            server = servers[-1]
            tables, put, _, _ = FORMS[form]
            server.psql.ask(*tables.split("; "), put.format(n=asked.ready), "CREATE TABLE beside (id int); INSERT INTO beside VALUES (1)")
            server.reader = Psql(server.environment)
            if not asked.no_reader:
                server.reader.ask("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT * FROM beside")
        for step in range(asked.steps + 1):
            for server in servers:
                if step:
                    server.turn_over(form, asked.jobs // asked.steps)
                median, used = server.claims(form)
                print(f"| {form} | {step * asked.jobs // asked.steps:,} | {server.name} | {median:,.0f} | {used:,.0f} |", flush=True)
        while servers:
            servers.pop().end()
finally:
    while servers:
        servers.pop().end()
