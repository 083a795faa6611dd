#!/usr/bin/env python3
"""What the recorders cost that run by default: throughput, and processor time of the server per transaction, against a server with all of them off.

usage: bench/hot/recorders.py PATH-TO-clearway [--rounds N] [--seconds N] [--cases REGEX] [--data DIR] [--percent 2]

Three servers of one build run at the same time: two with the defaults, and one without statements by digest, session history, accounts of
time, wait events, the history of lock waits and their lines in the log. Clients drive them in turns, and the order changes from round to round. A ratio is
formed within each round; the tables have the medians, and beside them the same of the two servers with the defaults, with quartiles: what is not
larger than that is chance. The last line is `N passed, N failed`: a case fails where the median of throughput or of processor time is worse by more
than so many percent.
"""
import argparse, os, re, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

OFF = ["-c", "recorders=none", "-c", "lock_history_min=1000000s", "-c", "log_lock_waits=off",
       *(part for pattern in ("idle", "wait/io/%", "wait/lock/%", "wait/synch/cond/%") for part in ("-c", f"performance_schema_instrument={pattern}=OFF"))]
HOT = "UPDATE hot SET v = v + 1 WHERE id = 1;\n"
POINT = "\\set id random(1, 10000)\nSELECT c FROM sbtest1 WHERE id = :id;\n"
CASES = [(f"{name}, {clients:,} clients", load, clients) for clients in (64, 1000)
         for name, load in (("point select", POINT), ("read-write (sysbench)", None), ("hot row", HOT))]
PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--rounds", type=int, default=11)
parser.add_argument("--seconds", type=int, default=4)
parser.add_argument("--cases", default=".")
parser.add_argument("--data")
parser.add_argument("--percent", type=float, default=2)
asked = parser.parse_args()
scratch = tempfile.mkdtemp(dir=asked.data)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Server:
    def __init__(self, name, options):
        self.name = name
        log = open(f"{scratch}/{name}.log", "w")
        self.process = subprocess.Popen([os.path.abspath(asked.binary), "serve", "--data", f"{scratch}/{name}", "--listen", "127.0.0.1:0", *options], stdout=log, stderr=log)
        while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())):
            if self.process.poll() is not None:
                sys.exit(f"the server has ended:\n{open(log.name).read()}\n0 passed, 1 failed")
            time.sleep(0.05)
        self.port = found[1]
        self.environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": self.port, "PGUSER": "postgres", "PGDATABASE": "postgres"}

    def run(self, command):
        ran = subprocess.run(command, text=True, capture_output=True, env=self.environment)
        if ran.returncode:
            raise SystemExit(f"{' '.join(command)}\n{ran.stdout}{ran.stderr}\n0 passed, 1 failed")
        return ran.stdout

    def psql(self, *sql):
        return self.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *(part for one in sql for part in ("-c", one))]).strip()

    def sysbench(self, what, *more):
        return self.run(["sysbench", "oltp_read_write", "--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={self.port}", "--pgsql-user=postgres",
                         "--pgsql-db=postgres", "--tables=4", "--table-size=10000", *more, what])

    def prepare(self):
        self.sysbench("prepare")
        self.psql("create table hot (id int primary key, v int)", "insert into hot values (1, 0)", "analyze")

    def processor_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, load, clients):
        """Transactions per second, and microseconds of processor time for each."""
        before = self.processor_seconds()
        if load is None:
            shown = self.sysbench("run", f"--threads={clients}", f"--time={asked.seconds}", "--rand-type=uniform")
            count, rate = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", shown).groups()
        else:
            path = f"{scratch}/load.sql"
            open(path, "w").write(load)
            shown = self.run([PGBENCH, "-n", "-M", "prepared", "-f", path, "-c", str(clients), "-j", "2", "-T", str(asked.seconds)])
            count, rate = re.search(r"actually processed: (\d+)", shown)[1], re.search(r"tps = ([\d.]+)", shown)[1]
        return float(rate), (self.processor_seconds() - before) / int(count) * 1e6

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def percent(ratios):
    """The median in percent above 1, and the quartiles."""
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return middle * 100 - 100, f"{middle * 100 - 100:+.1f} ({low * 100 - 100:+.1f} to {high * 100 - 100:+.1f})"


servers, failed, done = [], [], 0
try:
    for name, options in (("defaults", []), ("again", []), ("off", OFF)):
        servers.append(Server(name, options))
        servers[-1].prepare()
    on, again, off = servers
    calls = "select count(*), coalesce(sum(calls), 0) from clearway_statements where query like 'select c from sbtest%' or query like 'update hot%'"
    print(f"{asked.rounds} rounds of {asked.seconds} s; percent, medians and quartiles\n")
    print("| | per second, off | defaults | us of processor time, off | defaults | throughput lost to the defaults | processor time added | A/A throughput | A/A processor time |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, load, clients in CASES:
        if not re.search(asked.cases, name):
            continue
        rounds = []
        for number in range(asked.rounds + 1):
            turn = servers[number % 3:] + servers[:number % 3]
            got = {server.name: server.measure(load, clients) for server in turn}
            rounds.append(got)
        rounds = rounds[1:]  # the first one warms up
        figure = lambda server, which: statistics.median(got[server][which] for got in rounds)
        lost, lost_text = percent([got["off"][0] / got["defaults"][0] for got in rounds])
        added, added_text = percent([got["defaults"][1] / got["off"][1] for got in rounds])
        _, same_text = percent([got["again"][0] / got["defaults"][0] for got in rounds])
        _, same_added = percent([got["defaults"][1] / got["again"][1] for got in rounds])
        print(f"| {name} | {figure('off', 0):,.0f} | {figure('defaults', 0):,.0f} | {figure('off', 1):.2f} | {figure('defaults', 1):.2f} | {lost_text} | {added_text} | {same_text} | {same_added} |", flush=True)
        done += 1
        if max(lost, added) > asked.percent:
            failed.append(name)
    seen = [server.psql(calls).split("|")[0] for server in servers]
    if seen[2] != "0" or seen[0] == "0":
        failed.append(f"the switches: statements by digest {seen}")
finally:
    for server in servers:
        server.stop()
    shutil.rmtree(scratch)
print("".join(f"\nfailed: {name}" for name in failed))
print(f"{max(done - len(failed), 0)} passed, {len(failed)} failed")
sys.exit(bool(failed))
