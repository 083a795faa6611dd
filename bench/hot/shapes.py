#!/usr/bin/env python3
"""What becomes of a hot row, by the shape of the statements that want it: Clearway beside PostgreSQL 15 and MariaDB 10.11, from one client to a thousand.

usage: bench/hot/shapes.py PATH-TO-clearway [PATH ...] [--peers postgres,mariadb] [--shapes update,block] [--clients 1,16,64,256,1000] [--protocols prepared] [--ms 2000] [--rounds 1]
       bench/hot/shapes.py PATH-TO-clearway [...] --hold-ms 3000 --clients 1000

Data are in /dev/shm. Every client runs the same script as fast as it can. Shown are transactions a second, how that compares with the same server's at 16 clients ("of 16"), the median, the
99th of a hundred and the longest latency (ms), the server's processor time of a transaction (us), and of Clearway the waits for locks of a transaction: what else the machine does changes
those little. With `--hold-ms` a further session has the row for so long, at one second of the run, and shown are the rate before, how long after its commit the rate was back at 80 % of that
for a fifth of a second ("back"), the rate in the third second after it, and the longest latency less the hold.

Clearway and PostgreSQL are driven by pgbench with two threads, MariaDB by sysbench with one thread a client, whose median is not told, and whose rate after a hold is read each second.
With several rounds the servers take turns, and the medians are shown. MariaDB has no RETURNING of an UPDATE, no advisory locks of transactions, and no PL/pgSQL: its `function` is a
procedure, and its `nowait` the statement itself. `skip` is left out for it, since it refuses LIMIT in such a subquery.
"""
import argparse, bisect, collections, functools, glob, os, pwd, re, resource, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binaries", nargs="+")
parser.add_argument("--peers", default="postgres,mariadb")
parser.add_argument("--shapes", default="")
parser.add_argument("--clients", default="1,16,64,256,1000")
parser.add_argument("--protocols", default="prepared")
parser.add_argument("--ms", type=int, default=2000)
parser.add_argument("--warm-ms", type=int, default=1000)
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--hold-ms", type=int, default=0)
parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin")
asked = parser.parse_args()
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
WARM_S, AFTER_S = asked.warm_ms / 1e3, 4.0

TABLES = """
CREATE TABLE hot (id int PRIMARY KEY, v int);
CREATE TABLE ones (one int PRIMARY KEY);
CREATE TABLE parent (id int PRIMARY KEY, v int);
CREATE TABLE gone (id int PRIMARY KEY, v int);
CREATE TABLE mutex (id int PRIMARY KEY, name int UNIQUE);
CREATE TABLE named (id int PRIMARY KEY, name int UNIQUE, v int);
INSERT INTO named VALUES (1, 1, 0);
INSERT INTO hot VALUES (1, 0);
INSERT INTO ones VALUES (1);
INSERT INTO parent VALUES (1, 0);
INSERT INTO gone VALUES (1, 0);
"""
OF_POSTGRES = """
CREATE TABLE child (id bigserial PRIMARY KEY, parent int REFERENCES parent);
CREATE TABLE jobs (id bigserial PRIMARY KEY, payload int);
INSERT INTO jobs (payload) SELECT 1 FROM generate_series(1, 2000);
CREATE TABLE work (id bigserial PRIMARY KEY, status text, payload int);
CREATE INDEX ON work (status, id);
INSERT INTO work (status, payload) SELECT 'ready', 1 FROM generate_series(1, 12000);
CREATE FUNCTION bump() RETURNS int LANGUAGE plpgsql AS 'DECLARE n int; BEGIN UPDATE hot SET v = v + 1 WHERE id = 1 RETURNING v INTO n; RETURN n; END';
CREATE FUNCTION attempt() RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM v FROM hot WHERE id = 1 FOR UPDATE NOWAIT; RETURN 1; EXCEPTION WHEN lock_not_available THEN RETURN 0; END';
"""
OF_MARIADB = """
CREATE TABLE child (id bigint PRIMARY KEY AUTO_INCREMENT, parent int, FOREIGN KEY (parent) REFERENCES parent (id));
CREATE TABLE jobs (id bigint PRIMARY KEY AUTO_INCREMENT, payload int);
INSERT INTO jobs (payload) SELECT 1 FROM seq_1_to_2000;
CREATE PROCEDURE bump() UPDATE hot SET v = v + 1 WHERE id = 1;
"""
HOT = "UPDATE hot SET v = v + 1 WHERE id = 1"
# By name: the statements of a client, those for MariaDB where they differ (none: it has no such shape), and the table whose row is held.
Shape = collections.namedtuple("Shape", "statements mariadb holds", defaults=("same", HOT))
SHAPES = {
    "update": Shape([HOT]),
    "subselect": Shape(["UPDATE hot SET v = v + (SELECT max(one) FROM ones) WHERE id = 1"]),
    "from": Shape(["UPDATE hot SET v = v + o.one FROM ones o WHERE hot.id = 1 AND o.one = 1"], ["UPDATE hot, ones o SET v = v + o.one WHERE hot.id = 1 AND o.one = 1"]),
    "returning": Shape([f"{HOT} RETURNING v, (SELECT max(one) FROM ones)"], None),
    "foreign": Shape(["INSERT INTO child (parent) VALUES (1)", "UPDATE parent SET v = v + 1 WHERE id = 1"], "same", "UPDATE parent SET v = v + 1 WHERE id = 1"),
    "delete": Shape(["DELETE FROM gone WHERE id = 1", "INSERT INTO gone VALUES (1, 0) ON CONFLICT DO NOTHING"],
                    ["DELETE FROM gone WHERE id = 1", "INSERT IGNORE INTO gone VALUES (1, 0)"], "INSERT INTO gone VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET v = 1"),
    "upsert": Shape(["INSERT INTO hot VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = hot.v + 1"], ["INSERT INTO hot VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1"]),
    "upserts": Shape(["BEGIN", "INSERT INTO hot VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = hot.v + 1", "COMMIT"], ["BEGIN", "INSERT INTO hot VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1", "COMMIT"]),
    "lock": Shape(["SELECT v FROM hot WHERE id = 1 FOR UPDATE"]),
    "locked": Shape(["BEGIN", "SELECT v FROM hot WHERE id = 1 FOR UPDATE", HOT, "COMMIT"]),
    "block": Shape(["BEGIN", HOT, "COMMIT"]),
    "skip": Shape(["DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)", "INSERT INTO jobs (payload) VALUES (1)"], None,
                  "SELECT count(*) FROM (SELECT id FROM jobs ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED) j"),
    "worker": Shape(["BEGIN", "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)", "INSERT INTO jobs (payload) VALUES (1)", "COMMIT"], None,
                    "SELECT count(*) FROM (SELECT id FROM jobs ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED) j"),
    "claim": Shape(["UPDATE work SET status = 'done' WHERE id IN (SELECT id FROM work WHERE status = 'ready' ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED)",
                    "INSERT INTO work (status, payload) SELECT 'ready', 1 FROM generate_series(1, 10)"], None,
                   "SELECT count(*) FROM (SELECT id FROM work WHERE status = 'ready' ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED) j"),
    "unique": Shape(["BEGIN", "INSERT INTO named VALUES (2, 1, 1) ON CONFLICT (name) DO UPDATE SET v = named.v + 1", "COMMIT"],
                    ["BEGIN", "INSERT INTO named VALUES (2, 1, 1) ON DUPLICATE KEY UPDATE v = v + 1", "COMMIT"], "UPDATE named SET v = v + 1 WHERE name = 1"),
    "mutex": Shape(["BEGIN", "INSERT INTO mutex VALUES (1, NULL)", "DELETE FROM mutex WHERE id = 1", "COMMIT"], "same", "INSERT INTO mutex VALUES (1, NULL); DELETE FROM mutex WHERE id = 1"),
    "register": Shape(["BEGIN", "INSERT INTO mutex VALUES (:client_id, 1) ON CONFLICT DO NOTHING", "DELETE FROM mutex WHERE name = 1", "COMMIT"], None,
                      "INSERT INTO mutex VALUES (-1, 1); DELETE FROM mutex WHERE name = 1"),
    "ensure": Shape(["BEGIN", "INSERT INTO hot VALUES (1, 1) ON CONFLICT DO NOTHING", HOT, "COMMIT"], ["BEGIN", "INSERT IGNORE INTO hot VALUES (1, 1)", HOT, "COMMIT"]),
    "nowait": Shape(["SELECT attempt()"], ["SELECT v FROM hot WHERE id = 1 FOR UPDATE NOWAIT"]),
    "advisory": Shape(["SELECT pg_advisory_xact_lock(1)"], None, "SELECT pg_advisory_xact_lock(1)"),
    "session": Shape(["SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"], ["SELECT GET_LOCK('one', 100)", "SELECT RELEASE_LOCK('one')"], "SELECT pg_advisory_lock(1)"),
    "function": Shape(["SELECT bump()"], ["CALL bump()"]),
}


def free_port():
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        return at.getsockname()[1]


def run(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **more)


class Pgbenched:
    """A server that pgbench drives."""
    protocols = asked.protocols.split(",")

    def is_at(self, port):
        self.environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}

    def begin(self):
        while subprocess.run([f"{asked.bin}/pg_isready", "-q"], env=self.environment).returncode:
            time.sleep(0.1)
        subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"], input=TABLES + OF_POSTGRES, check=True, text=True, env=self.environment)

    def load(self, shape, clients, protocol, seconds):
        """Runs the script; the moments (s) at which its transactions ended, and their latencies (ms)."""
        script, logs = f"{self.scratch}/load.sql", f"{self.scratch}/of_load"
        open(script, "w").write("".join(f"{one};\n" for one in shape.statements))
        command = [f"{asked.bin}/pgbench", "-n", "-M", protocol, "-f", script, "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(round(seconds + 1)), "-l", f"--log-prefix={logs}"]
        self.process_of_load = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=open(f"{self.scratch}/errors", "w"))
        yield
        self.process_of_load.wait()
        done = []
        for path in glob.glob(f"{logs}.*"):
            for line in open(path):
                words = line.split()
                done.append((int(words[4]) + int(words[5]) / 1e6, int(words[2]) / 1e3))
            os.remove(path)
        said = open(f"{self.scratch}/errors").read().strip()
        if said:
            print(f"{self.name}: {said[:300]}", file=sys.stderr)
        yield sorted(done)

    def begins_load(self):
        # The files are there before the clients have connected.
        while not any(os.path.getsize(path) for path in glob.glob(f"{self.scratch}/of_load.*")):
            time.sleep(0.02)
        return time.time()

    def lock_waits(self):
        return float("nan")

    def hold(self, statement):
        """The moment of the release."""
        holder = subprocess.Popen(["psql", "-XAtq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)

        def says(text):
            holder.stdin.write(f"{text};\n\\echo done\n")
            holder.stdin.flush()
            while holder.stdout.readline().strip() != "done":
                pass
        says(f"BEGIN;\n{statement}")
        time.sleep(asked.hold_ms / 1e3)
        released = time.time()
        says("COMMIT")
        holder.stdin.close()
        holder.wait()
        return released


class Clearway(Pgbenched):
    def __init__(self, binary):
        self.name = os.path.basename(binary)
        self.scratch = tempfile.mkdtemp(dir="/dev/shm")
        log = open(f"{self.scratch}/log", "w")
        self.process = subprocess.Popen([os.path.abspath(binary), "serve", "--data", f"{self.scratch}/data", "--listen", "127.0.0.1:0", "-c", "max_connections=1100"], stdout=log, stderr=log)
        while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())):
            if self.process.poll() is not None:
                sys.exit(f"the server has ended:\n{open(log.name).read()}")
            time.sleep(0.05)
        self.is_at(found[1])

    def lock_waits(self):
        query = "SELECT coalesce(sum(waits), 0) FROM clearway_waits WHERE wait_event_type = 'Lock'"
        return int(subprocess.run(["psql", "-XAtqc", query], check=True, capture_output=True, text=True, env=self.environment).stdout)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.scratch)


class Postgres(Pgbenched):
    name = "postgres"

    def __init__(self):
        self.scratch = tempfile.mkdtemp(dir="/dev/shm")
        self.prefix = []
        if os.getuid() == 0:
            shutil.chown(self.scratch, "postgres")
            self.prefix = ["runuser", "-u", "postgres", "--"]
        self.data, port = f"{self.scratch}/data", free_port()
        run([*self.prefix, f"{asked.bin}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--locale=C.UTF-8"])
        settings = ["shared_buffers=256MB", "max_wal_size=4GB", "listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "max_connections=1100"]
        self.process = subprocess.Popen([*self.prefix, f"{asked.bin}/postgres", "-D", self.data, *(w for s in settings for w in ("-c", s))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        self.is_at(port)

    def end(self):
        run([*self.prefix, f"{asked.bin}/pg_ctl", "-D", self.data, "-m", "immediate", "stop"])
        self.process.wait()
        shutil.rmtree(self.scratch)


class Mariadb:
    name, protocols = "mariadb", ["text"]

    def __init__(self):
        self.scratch = tempfile.mkdtemp(dir="/dev/shm")
        data, port = f"{self.scratch}/data", free_port()
        user = [f"--user={pwd.getpwuid(os.getuid()).pw_name}"]
        run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", f"--datadir={data}", *user])
        options = ["--bind-address=127.0.0.1", f"--port={port}", "--max-connections=1100", "--innodb-buffer-pool-size=256M", "--innodb-log-file-size=1G", "--transaction-isolation=READ-COMMITTED",
                   "--thread-cache-size=1000", "--skip-name-resolve", "--back-log=2000"]
        self.process = subprocess.Popen(["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.scratch}/socket", *user, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = ["mariadb", "--no-defaults", "-u", "root", "-h", "127.0.0.1", "-P", str(port)]
        self.sysbench = ["sysbench", "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=bench", "--mysql-db=bench", "--percentile=99",
                         "--mysql-ignore-errors=1213,1020,1205,1062"]

    def begin(self):
        while subprocess.run([*self.client, "-e", "SELECT 1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.1)
        begun = "CREATE DATABASE bench; CREATE USER bench@'%'; GRANT ALL ON *.* TO bench@'%'; DROP USER IF EXISTS ''@localhost; USE bench;"
        subprocess.run(self.client, input=begun + TABLES + OF_MARIADB, check=True, text=True)

    def load(self, shape, clients, _protocol, seconds):
        statements = shape.statements if shape.mariadb == "same" else shape.mariadb
        lines = "".join(f'con:query("{one}") ' for one in statements)
        script = f"{self.scratch}/load.lua"
        open(script, "w").write(f"function thread_init() con = sysbench.sql.driver():connect() end\nfunction event() {lines} end\nfunction thread_done() con:disconnect() end\n")
        command = [*self.sysbench, f"--threads={clients}", f"--time={round(seconds)}", "--report-interval=1", script, "run"]
        self.process_of_load = subprocess.Popen(command, stdout=open(f"{self.scratch}/told", "w"), stderr=subprocess.DEVNULL)
        yield
        self.process_of_load.wait()
        told = open(f"{self.scratch}/told").read()
        seconds_told = [float(rate) for rate in re.findall(r"eps: ([\d.]+)|tps: ([\d.]+)", told) for rate in rate if rate]
        found = {name: float((re.search(pattern, told) or [0, "nan"])[1]) for name, pattern in (("p99", r"99th percentile: +([\d.]+)"), ("most", r"max: +([\d.]+)"))}
        yield seconds_told, found

    def begins_load(self):
        while "Threads started" not in open(f"{self.scratch}/told").read():
            time.sleep(0.05)
        self.began = time.time()
        return self.began

    def hold(self, statement):
        statement = statement.replace("ON CONFLICT (id) DO UPDATE SET", "ON DUPLICATE KEY UPDATE").replace("pg_advisory_lock(1)", "GET_LOCK('one', 100)")
        subprocess.run([*self.client, "bench", "-e", f"BEGIN; {statement}; DO SLEEP({asked.hold_ms / 1e3}); COMMIT"], stdout=subprocess.DEVNULL)
        return time.time()

    def lock_waits(self):
        return float("nan")

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.scratch)


def processor_us(pid):
    """What a server has taken of the processors, with all its threads and processes."""
    used = 0
    for main in [pid, *children_of(pid)]:
        for path in glob.glob(f"/proc/{main}/task/*/schedstat"):
            try:
                used += int(open(path).read().split()[0])
            except OSError:
                pass
    return used / 1e3


def children_of(pid):
    try:
        direct = [int(one) for one in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []
    return [one for child in direct for one in (child, *children_of(child))]


def of_log(done, begun, until):
    """Rate, and latencies by their rank, of the transactions that ended in this window."""
    in_window = sorted(ms for at, ms in done if begun <= at < until) or [float("nan")]
    rank = lambda part: in_window[min(len(in_window) - 1, int(part * len(in_window)))]
    return len(in_window) / (until - begun), rank(0.5), rank(0.99), in_window[-1]


def window(server, shape, clients, protocol):
    """Rate, median, 99th of a hundred and longest latency, processor time and waits for locks of a transaction."""
    seconds = WARM_S + asked.ms / 1e3
    load = server.load(shape, clients, protocol, seconds)
    next(load)
    begun = server.begins_load()
    time.sleep(WARM_S)
    took, waited, at = processor_us(server.process.pid), server.lock_waits(), time.time()
    time.sleep(asked.ms / 1e3)
    took, waited, passed = processor_us(server.process.pid) - took, server.lock_waits() - waited, time.time() - at
    told = next(load)
    if isinstance(server, Mariadb):
        rates, found = told
        one = statistics.mean(rates[1:] or rates or [float("nan")]), float("nan"), found["p99"], found["most"]
    else:
        one = of_log(told, begun + WARM_S, begun + seconds)
    return *one, took / passed / one[0], waited / passed / one[0]


def after_hold(server, shape, clients, protocol):
    """The rate before, the seconds until it is back, the rate in the third second after the release, and the longest latency less the hold."""
    seconds = WARM_S + 1 + asked.hold_ms / 1e3 + AFTER_S
    load = server.load(shape, clients, protocol, seconds)
    next(load)
    begun = server.begins_load()
    time.sleep(WARM_S + 1)
    held = time.time()
    released = server.hold(shape.holds)
    told = next(load)
    if isinstance(server, Mariadb):
        rates, found = told
        before = rates[1]
        first = int(released - begun) + 1
        back = next((at - (released - begun) + 1 for at in range(first, len(rates)) if rates[at] >= 0.8 * before), float("inf"))
        return before, back, rates[first + 1] if len(rates) > first + 1 else float("nan"), found["most"] - asked.hold_ms, 0, 0
    before = of_log(told, begun + WARM_S, held)[0]
    ends = [at for at, _ in told]
    span_s, need = 0.2, 0.8 * before * 0.2
    rate_at = lambda at: bisect.bisect_left(ends, at + span_s) - bisect.bisect_left(ends, at)
    back = next((step / 100 for step in range(int((AFTER_S - 1) * 100)) if rate_at(released + step / 100) >= need), float("inf"))
    return before, back, of_log(told, released + 2, released + 3)[0], of_log(told, held, released + AFTER_S)[3] - asked.hold_ms, 0, 0


def measured(servers, name, shape, protocols):
    at_16 = {}
    for clients in map(int, asked.clients.split(",")):
        results = {}
        for _ in range(asked.rounds):
            for server in servers:
                if isinstance(server, Mariadb) and shape.mariadb is None:
                    continue
                for protocol in server.protocols:
                    results.setdefault((server.name, protocol), []).append((after_hold if asked.hold_ms else window)(server, shape, clients, protocol))
        for (server, protocol), rounds in results.items():
            one, two, three, four, us, waits = (statistics.median(column) for column in zip(*rounds))
            if asked.hold_ms:
                print(f"| {name} | {clients:,} | {server} | {protocol} | {one:,.0f} | {two:.2f} | {three:,.0f} | {three / one:.2f} | {four:,.0f} |", flush=True)
                continue
            if clients == 16:
                at_16[server, protocol] = one
            part = f"{one / at_16[server, protocol]:.2f}" if (server, protocol) in at_16 else ""
            print(f"| {name} | {clients:,} | {server} | {protocol} | {one:,.0f} | {part} | {two:.2f} | {three:.2f} | {four:,.0f} | {us:.1f} | {waits:.2f} |", flush=True)


servers = []
try:
    for kind in [*(functools.partial(Clearway, binary) for binary in asked.binaries), *({"postgres": Postgres, "mariadb": Mariadb}[name] for name in asked.peers.split(",") if name)]:
        servers.append(kind())
        servers[-1].begin()
    if asked.hold_ms:
        print("| shape | clients | server | protocol | before, per second | back after s | third second | of before | longest ms less the hold |\n|---|--:|---|---|--:|--:|--:|--:|--:|")
    else:
        print("| shape | clients | server | protocol | per second | of 16 | median ms | 99 of 100 ms | longest ms | us | waits |\n|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for name in asked.shapes.split(",") if asked.shapes else SHAPES:
        measured(servers, name, SHAPES[name], asked.protocols)
finally:
    for server in servers:
        server.end()
