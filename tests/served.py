#!/usr/bin/env python3
"""Clearway, PostgreSQL 15 (alone and behind PgBouncer) and a server that only speaks the protocol, under pgbench and sysbench, in turn.

  served.py prepare            makes the clusters under $SERVED (/tmp/served) and fills them; needs root, for runuser
  served.py fill clearway      fills one of them again, after its directory was removed
  served.py PIECE OUT.tsv ...  runs a piece once (at these counts of clients) and appends a line a cell;
                               pieces: points hot mixed tpcb sysbench bouncer memory
  served.py round OUT.tsv      runs all of them once
  served.py medians OUT.tsv    medians over the runs and what they are of each other, as markdown
  served.py page OUT.tsv       puts that into docs/measured/served.md

Each piece starts what it needs, runs all servers in turn, and stops them. $CLEARWAY is the server's binary, $LIMIT that of spikes/hot-row at the tag `spikes`
(cargo build --release there), $SECONDS the length of a cell (3).
"""
import glob, os, re, resource, signal, socket, statistics, subprocess, sys, time

HOME = os.environ.get("SERVED", "/tmp/served")
CLEARWAY = os.environ.get("CLEARWAY", "target/release/clearway")
LIMIT = os.environ.get("LIMIT", "hot-row")
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


def wait_for_socket(port):
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens at port {port}")


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
        wait_for_socket(self.port) if name == "limit" else wait_for(self.port)

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
    if out.returncode and command != "run":
        sys.exit(f"sysbench {command}: {out.stdout}{out.stderr}")
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
    for server in servers:
        server.stop()


def mixed(out, counts):
    """One hot row alone, then beside 64 clients of another pgbench that read as fast as they can."""
    servers = [Server("clearway"), Server("postgres")]
    for clients in counts:
        for server in servers:
            if server.name == "postgres" and clients > 100:
                continue
            out.line("hot alone", clients, server.name, pgbench(server, clients, "-f", f"{HOME}/hot.sql"))
            command = ["pgbench", "-n", "-S", "-M", "prepared", "-p", str(server.port), "-c", "64", "-j", "2", "-T", str(SECONDS + 3 + clients // 500)]
            readers = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            time.sleep(1)
            figures = pgbench(server, clients, "-f", f"{HOME}/hot.sql")
            reads = re.search(r"^tps = ([\d.]+)", readers.communicate()[0], re.M)
            out.line("hot beside 64 readers", clients, server.name, [*figures, reads and reads[1]])
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
        # Every session prepares and runs two statements, then rests: the client waits 60 s before the next.
        idle = subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-p", str(server.port), "-c", str(clients), "-j", "2", "-T", "60", "-f", f"{HOME}/idle.sql"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        resting = "select count(*) from pg_stat_activity where state = 'idle' and query like 'UPDATE hot%'"
        while (count := int(sh(f"psql -p {server.port} -Atc \"{resting}\""))) < clients and idle.poll() is None:
            time.sleep(0.5)
        each = (resident() - before) / max(1, count)
        out.line("memory", count, "clearway", [f"{each:.1f} KiB a session"])
        idle.terminate()
        idle.wait()
    server.stop()


def prepare():
    os.makedirs(HOME, exist_ok=True)
    for name, text in SCRIPTS.items():
        open(f"{HOME}/{name}.sql", "w").write(text)
    open(f"{HOME}/idle.sql", "w").write("\\set aid random(1, 1000000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nUPDATE hot SET b = b WHERE a = -1;\n\\sleep 60 s\n")
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


# What medians() shows: load, title, and for each further server the aim of the ratio by clients.
TABLES = [
    ("points", "Point selects: pgbench -S -M prepared, scale 10", {"limit": 0.7, "postgres": {8: 1.3, 64: 1.8, 256: 3, 1000: 8}, "bouncer": {}}),
    ("hot", "One hot row: UPDATE hot SET b = b + 1 WHERE a = 1, prepared", {"postgres": {100: 20, 1000: 100}, "bouncer": {}}),
    ("tpcb", "TPC-B-like: pgbench -M prepared, scale 10", {"postgres": {8: 2, 64: 3}}),
    ("oltp_read_write", "sysbench oltp_read_write, 8 tables of 100,000 rows", {"postgres": {8: 1.5, 64: 3, 256: 4}}),
]
NAMES = {"limit": "wire's limit", "postgres": "PostgreSQL", "bouncer": "PgBouncer, best pool"}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def medians(path):
    """The tables of docs/measured/served.md."""
    cells = {}
    for line in open(path):
        what, clients, server, rate, *more = line.rstrip("\n").split("\t")
        cells.setdefault((what, int(clients), server), []).append((rate, *more))

    def median(what, clients, server, column=0):
        values = [run[column] for run in cells.get((what, clients, server), []) if len(run) > column]
        numbers = [float(value) for value in values if re.fullmatch(r"[\d.]+", value)]
        return statistics.median(numbers) if numbers else None

    def best(what, clients, server):
        rates = [median(what, clients, name) for w, c, name in cells if (w, c) == (what, clients) and name.startswith(server)]
        return max((rate for rate in rates if rate is not None), default=None)

    text = []
    for what, title, others in TABLES:
        counts = sorted({clients for w, clients, server in cells if w == what and server == "clearway"})
        others = {name: aims for name, aims in others.items() if any(best(what, clients, name) for clients in counts)}
        head = ["clients", "Clearway", *(NAMES[name] for name in others), *(f"of {NAMES[name]} (aim)" for name in others)]
        head += [] if what == "oltp_read_write" else ["server's CPU, us", "voluntary switches"]
        text += [f"### {title}", "", f"| {' | '.join(head)} |", "|" + "--:|" * len(head)]
        for clients in counts:
            mine, theirs = median(what, clients, "clearway"), [best(what, clients, name) for name in others]
            row = [f"{clients:,}", *(number(rate) if rate else "-" for rate in [mine, *theirs])]
            for aims, rate in zip(others.values(), theirs):
                aim = aims.get(clients) if isinstance(aims, dict) else aims
                row.append(f"{mine / rate:.2g}" + (f" ({aim:g})" if aim else "") if mine and rate else "-")
            if what != "oltp_read_write":
                figures = [median(what, clients, "clearway", column) for column in (1, 2)]
                row += [f"{value:.3g}" if value is not None else "-" for value in figures]
            text.append(f"| {' | '.join(row)} |")
        text.append("")
    text += ["### One hot row beside 64 clients that read as fast as they can", "",
             "| clients | server | alone | beside readers | kept (must be 0.5) | reads/s meanwhile |", "|--:|---|--:|--:|--:|--:|"]
    for what, clients, server in sorted(key for key in cells if key[0] == "hot beside 64 readers"):
        alone, beside, reads = median("hot alone", clients, server), median(what, clients, server), median(what, clients, server, 3)
        if alone and beside and reads:
            text.append(f"| {clients:,} | {server} | {number(alone)} | {number(beside)} | {beside / alone:.2f} | {number(reads)} |")
    text += ["", "### Memory of sessions at rest", ""]
    for (what, clients, server), runs in cells.items():
        if what == "memory":
            text.append(f"{clients:,} sessions, each with two statements prepared and run: {'; '.join(run[0] for run in runs)} (must be below 64).")
    text += ["", "### Every run", "", "| load | clients | server | rates |", "|---|--:|---|---|"]
    for (what, clients, server), runs in cells.items():
        text.append(f"| {what} | {clients:,} | {server} | {'; '.join(run[0] for run in runs)} |")
    return "\n".join(text) + "\n"


def page(path):
    name = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs/measured/served.md")
    before, rest = open(name).read().split("<!-- served: generated by tests/served.py page -->\n")
    after = rest.split("<!-- served: end -->\n")[1]
    text = f"{before}<!-- served: generated by tests/served.py page -->\n{medians(path)}<!-- served: end -->\n{after}"
    open(name, "w").write(text)


def round_of_all(path):
    for piece, counts in PIECES.values():
        piece(Out(path), counts)


PIECES = {"points": (points, [8, 64, 256, 1000, 4000]), "hot": (hot, [1, 10, 100, 1000]), "mixed": (mixed, [10, 100, 1000]),
          "tpcb": (tpcb, [8, 64]), "sysbench": (sysbenches, [8, 64, 256]), "bouncer": (bouncer, [100, 1000]), "memory": (memory, [5000])}

if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    command, *arguments = sys.argv[1:] or sys.exit(__doc__)
    if command == "prepare":
        prepare()
    elif command == "fill":
        fill(arguments)
    elif command == "medians":
        print(medians(arguments[0]), end="")
    elif command == "page":
        page(arguments[0])
    elif command == "round":
        round_of_all(arguments[0])
    else:
        piece, counts = PIECES[command]
        piece(Out(arguments[0]), [int(c) for c in arguments[1:]] or counts)
