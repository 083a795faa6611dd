#!/usr/bin/env python3
"""Clearway, PostgreSQL 15 (alone and behind PgBouncer) and a server that only speaks the protocol, under pgbench and sysbench, in turn.

  served.py prepare            makes the clusters under $SERVED (/tmp/served) and fills them; needs root, for runuser
  served.py fill clearway      fills one of them again, after its directory was removed
  served.py PIECE OUT.tsv ...  runs a piece once and appends a line a cell; pieces: points hot tpcb sysbench bouncer memory
  served.py medians OUT.tsv    medians over the runs, as markdown

Each piece starts what it needs, runs all servers in turn, and stops them. $CLEARWAY is the server's binary, $LIMIT that of spikes/hot-row
(cargo build --release there), $SECONDS the length of a cell (3).
"""
import glob, os, re, resource, signal, statistics, subprocess, sys, time

HOME = os.environ.get("SERVED", "/tmp/served")
CLEARWAY = os.environ.get("CLEARWAY", "target/release/clearway")
LIMIT = os.environ.get("LIMIT", "spikes/hot-row/target/release/hot-row")
SECONDS = int(os.environ.get("SECONDS_A_CELL", "3"))
PG = "/usr/lib/postgresql/15/bin"
PORTS = {"clearway": 7401, "postgres": 7402, "limit": 7403, "bouncer": 7404}
SCRIPTS = {
    "hot": "UPDATE hot SET b = b + 1 WHERE a = 1;\n",
    "limit": "\\set id random(2, 100000)\nSELECT v FROM hot WHERE id = :id;\n",
}
os.environ |= {"PGHOST": "127.0.0.1", "PGUSER": "postgres", "PGDATABASE": "postgres"}


def sh(command, **more):
    return subprocess.run(command, shell=True, check=True, text=True, capture_output=True, **more).stdout


def wait_for(port):
    for _ in range(300):
        if subprocess.run(["psql", "-p", str(port), "-Atc", "select 1"], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    sys.exit(f"nothing answers at port {port}")


class Server:
    def __init__(self, name, pool=0):
        self.name, self.port, self.pool = name, PORTS[name], pool
        log = open(f"{HOME}/{name}.log", "a")
        if name == "clearway":
            command = [CLEARWAY, "serve", "--data", f"{HOME}/clearway", "--listen", f"127.0.0.1:{self.port}"]
        elif name == "limit":
            command = [LIMIT, "serve", "--sched", "tokio", "--constant", "--port", str(self.port), "--log", f"{HOME}/ring.log"]
        elif name == "postgres":
            command = ["runuser", "-u", "postgres", "--", f"{PG}/postgres", "-D", f"{HOME}/pg", "-p", str(self.port)]
        else:
            open(f"{HOME}/bouncer.ini", "w").write(f"""[databases]
postgres = host=127.0.0.1 port={PORTS['postgres']} pool_size={pool}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
auth_type = any
pool_mode = transaction
max_client_conn = 5000
unix_socket_dir =
logfile = {HOME}/bouncer.log
""".replace("postgres = host", "postgres = user=postgres host"))
            command = ["runuser", "-u", "postgres", "--", "/usr/sbin/pgbouncer", "-q", f"{HOME}/bouncer.ini"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        time.sleep(0.5) if name == "limit" else wait_for(self.port)

    def figures(self):
        """(seconds of CPU, voluntary context switches) of a server that is one process."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        switches = 0
        for task in glob.glob(f"/proc/{self.process.pid}/task/*/status"):
            switches += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", open(task).read(), re.M)[1])
        return (int(fields[11]) + int(fields[12])) / 100, switches

    def stop(self):
        if self.name == "limit":
            self.process.kill()
        else:
            pid = self.process.pid
            if open(f"/proc/{pid}/comm").read().strip() == "runuser":
                pid = int(sh(f"pgrep -P {pid}").split()[0])
            os.kill(pid, signal.SIGTERM if self.name == "clearway" else signal.SIGINT)
        self.process.wait()


def pgbench(server, clients, *args):
    mode = "extended" if server.name == "bouncer" else "prepared"
    seconds = SECONDS + (4 if clients >= 1000 and server.name == "postgres" else clients // 1500)
    command = ["pgbench", "-n", "-M", mode, "-p", str(server.port), "-c", str(clients), "-j", str(min(2, clients)), "-T", str(seconds), *args]
    before = server.figures()
    out = subprocess.run(command, capture_output=True, text=True)
    after = server.figures()
    tps, done = re.search(r"^tps = ([\d.]+)", out.stdout, re.M), re.search(r"actually processed: (\d+)", out.stdout)
    if not tps:
        return "failed", out.stderr.strip().splitlines()[-1:], ""
    count = max(1, int(done[1]))
    return f"{float(tps[1]):.0f}", f"{(after[0] - before[0]) / count * 1e6:.1f}", f"{(after[1] - before[1]) / count:.3f}"


def sysbench(server, threads, command="run", seconds=None):
    out = subprocess.run(["sysbench", "oltp_read_write", "--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={server.port}",
                          "--pgsql-user=postgres", "--pgsql-db=postgres", "--tables=8", "--table-size=100000", f"--threads={threads}",
                          f"--time={seconds or SECONDS + 2}", "--report-interval=0", command], capture_output=True, text=True)
    found = re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", out.stdout)
    return found[1] if found else "failed" if command == "run" else ""


class Out:
    def __init__(self, path):
        self.file = open(path, "a")

    def line(self, what, clients, server, figures):
        text = "\t".join(map(str, [what, clients, server, *figures]))
        print(text, flush=True)
        print(text, file=self.file, flush=True)


def points(out, counts):
    servers = [Server("limit"), Server("clearway"), Server("postgres")]
    for clients in counts:
        for server in servers:
            if server.name == "postgres" and clients > 1000:
                continue
            args = ["-f", f"{HOME}/limit.sql"] if server.name == "limit" else ["-S"]
            out.line("points", clients, server.name, pgbench(server, clients, *args))
    for server in servers:
        server.stop()


def hot(out, counts):
    servers = [Server("clearway"), Server("postgres")]
    for clients in counts:
        for server in servers:
            out.line("hot", clients, server.name, pgbench(server, clients, "-f", f"{HOME}/hot.sql"))
    clearway = servers[0]
    for clients in [c for c in counts if c > 1]:
        readers = subprocess.Popen(["pgbench", "-n", "-S", "-M", "prepared", "-p", str(clearway.port), "-c", "64", "-j", "2", "-T", str(SECONDS + 2)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(1)
        figures = pgbench(clearway, clients, "-f", f"{HOME}/hot.sql")
        reads = re.search(r"^tps = ([\d.]+)", readers.communicate()[0], re.M)
        out.line("hot beside 64 readers", clients, "clearway", [*figures, reads and reads[1]])
    for server in servers:
        server.stop()


def tpcb(out, counts):
    servers = [Server("clearway"), Server("postgres")]
    for clients in counts:
        for server in servers:
            out.line("tpcb", clients, server.name, pgbench(server, clients))
    for server in servers:
        check = sh(f"psql -p {server.port} -Atc 'select (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches)'")
        assert check.strip() == "t", f"{server.name}: balances do not add up"
        server.stop()


def sysbenches(out, counts):
    servers = [Server("clearway"), Server("postgres")]
    for clients in counts:
        for server in servers:
            out.line("oltp_read_write", clients, server.name, [sysbench(server, clients)])
    for server in servers:
        server.stop()


def bouncer(out, counts):
    postgres = Server("postgres")
    for pool in [4, 20, 50]:
        server = Server("bouncer", pool)
        for clients in counts:
            out.line("points", clients, f"bouncer, pool {pool}", pgbench(server, clients, "-S"))
            out.line("hot", clients, f"bouncer, pool {pool}", pgbench(server, clients, "-f", f"{HOME}/hot.sql"))
        server.stop()
    postgres.stop()


def memory(out, counts):
    server = Server("clearway")
    resident = lambda: int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{server.process.pid}/status").read())[1])
    for clients in counts:
        before = resident()
        # Every session prepares and runs statements, then rests: the client waits 3 s between two.
        idle = subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-p", str(server.port), "-c", str(clients), "-j", "2", "-T", "12", "-f", f"{HOME}/idle.sql"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(9)
        out.line("memory", clients, "clearway", [f"{(resident() - before) / clients:.1f} KiB a session"])
        idle.wait()
    server.stop()


def prepare():
    os.makedirs(HOME, exist_ok=True)
    for name, text in SCRIPTS.items():
        open(f"{HOME}/{name}.sql", "w").write(text)
    open(f"{HOME}/idle.sql", "w").write("\\set aid random(1, 1000000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nUPDATE hot SET b = b WHERE a = -1;\n\\sleep 30 s\n")
    sh(f"mkdir -p {HOME}/pg; chown postgres {HOME}/pg; chmod 755 {HOME}; runuser -u postgres -- {PG}/initdb -D {HOME}/pg -A trust")
    settings = "max_connections = 1050\nshared_buffers = 1GB\nmax_wal_size = 8GB\nunix_socket_directories = ''\n"
    open(f"{HOME}/pg/postgresql.conf", "a").write(settings)
    sh(f"touch {HOME}/bouncer.log {HOME}/bouncer.ini; chown postgres {HOME}/bouncer.log {HOME}/bouncer.ini")
    fill(["clearway", "postgres"])


def fill(names):
    for name in names:
        server = Server(name)
        sh(f"pgbench -q -i -s 10 -p {server.port}")
        sh(f"psql -p {server.port} -c 'create table hot (a int primary key, b int)' -c 'insert into hot values (1, 0)'")
        sysbench(server, 2, "prepare")
        server.stop()


def medians(path):
    cells = {}
    for line in open(path):
        what, clients, server, rate, *_ = line.rstrip("\n").split("\t")
        cells.setdefault((what, int(clients), server), []).append(rate)
    print("| load | clients | server | median | every run |\n|---|--:|---|--:|---|")
    for (what, clients, server), rates in sorted(cells.items(), key=lambda cell: (cell[0][0], cell[0][1])):
        numbers = [float(rate) for rate in rates if re.fullmatch(r"[\d.]+", rate)]
        median = f"{statistics.median(numbers):,.0f}" if numbers else "-"
        print(f"| {what} | {clients:,} | {server} | {median} | {'; '.join(rates)} |")


PIECES = {"points": (points, [8, 64, 256, 1000, 4000]), "hot": (hot, [1, 10, 100, 1000]), "tpcb": (tpcb, [8, 64]),
          "sysbench": (sysbenches, [8, 64, 256]), "bouncer": (bouncer, [100, 1000]), "memory": (memory, [5000])}

if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if sys.argv[1] == "prepare":
        prepare()
    elif sys.argv[1] == "fill":
        fill(sys.argv[2:])
    elif sys.argv[1] == "medians":
        medians(sys.argv[2])
    else:
        piece, counts = PIECES[sys.argv[1]]
        piece(Out(sys.argv[2]), [int(c) for c in sys.argv[3:]] or counts)
