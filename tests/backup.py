#!/usr/bin/env python3
"""Kills server and backup with SIGKILL under pgbench's TPC-B and DDL while the log is archived, and restores to random moments.

    tests/backup.py [ROUNDS [MOMENTS [CLEARWAY]]]     2 rounds, 4 moments each, the clearway of the last debug build

After each restore: the balances of accounts, tellers and branches equal the sum of the history; every mark that was acknowledged
before the moment is there, none that was begun after it; in the first moment of a round `clearway check` finds no damage. At the end
of a round a restored server archives a history of its own beside the first one, and neither shows in the other. The last line is
`N passed, N failed`, counted in rounds. The long form is 50 rounds with 10 moments.
Needs pgbench and psql of PostgreSQL 15.
"""
import os, random, re, shutil, subprocess, sys, tempfile, threading, time

import cluster
from cluster import PSQL, Failed

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
MOMENTS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
CLEARWAY = sys.argv[3] if len(sys.argv) > 3 else os.environ.get("CARGO_TARGET_DIR", "target") + "/debug/clearway"
SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))


class Server(cluster.Server):
    """A server on a directory; it has an archive if a target is given."""

    def __init__(self, data, target=None):
        super().__init__(CLEARWAY, data, [f"archive={target}", "archive_timeout=1s"] if target else [])


class Marks(threading.Thread):
    """Inserts numbers one after the other and notes when each was begun and acknowledged, until the server is gone."""

    def __init__(self, server, marks):
        super().__init__(daemon=True)
        self.marks, self.over = marks, False
        self.psql = subprocess.Popen([*PSQL, "-p", server.port], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.start()

    def run(self):
        while not self.over:
            number, begun = len(self.marks), time.time()
            self.marks.append([begun, None])
            try:
                self.psql.stdin.write(f"insert into marks values ({number}) returning n;\n")
                answer = self.psql.stdout.readline().strip()
            except OSError:
                return
            if answer != str(number):
                return
            self.marks[number][1] = time.time()
            time.sleep(0.01)

    def end(self):
        self.over = True
        self.join()
        self.psql.kill()
        self.psql.wait()


DDL = """create table ddl{n} (id int primary key, v text);
insert into ddl{n} select i, repeat('x', 300) from generate_series(1, 400) i;
create index on ddl{n} (v);
alter table ddl{n} add column w int;
update ddl{n} set w = id where id % 3 = 0;
drop table ddl{n};
"""


def load(server, clients=4):
    """TPC-B and DDL; both end with the server."""
    # No more than a slow machine does: each restore reads all log again.
    bench = ["pgbench", "-n", "-c", str(clients), "-j", "1", "-T", "600", "-R", "500", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "postgres"]
    ddl = subprocess.Popen([*PSQL, "-p", server.port], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)

    def feed():
        try:
            for n in range(100_000):
                ddl.stdin.write(DDL.format(n=n).replace("create table", f"drop table if exists ddl{n}; create table"))
                ddl.stdin.flush()
        except OSError:
            pass

    threading.Thread(target=feed, daemon=True).start()
    return [subprocess.Popen(bench, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), ddl]


def end(processes):
    for process in processes:
        process.kill()
        process.wait()


def clearway(*arguments, fails=False):
    done = subprocess.run([CLEARWAY, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if (done.returncode != 0) != fails:
        raise Failed(f"clearway {' '.join(arguments)}: exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-500:]}")
    return done.stdout + done.stderr


def stamp(at):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) + f"{at % 1:.6f}"[1:] + "+00"


def look(server, marks, moment):
    """Balances, and the marks of a restored server."""
    sums = server.sql("select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
                      "(select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history)")
    if len(set(sums.split("|"))) != 1:
        raise Failed(f"balances differ at {stamp(moment)}: {sums}")
    there = {int(n) for n in server.sql("select n from marks").split()}
    for number, (begun, acknowledged) in enumerate(marks):
        if acknowledged is not None and acknowledged < moment and number not in there:
            raise Failed(f"mark {number} was acknowledged before {stamp(moment)} and is not there")
        if begun > moment and number in there:
            raise Failed(f"mark {number} was begun after {stamp(moment)} and is there")
    return len(there)


def one_round(work, chance):
    data, target = f"{work}/data", f"{work}/target"
    server = Server(data, target)
    subprocess.run(["pgbench", "-q", "-i", "-s", "1", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "postgres"],
                   check=True, capture_output=True)
    server.sql("create table marks (n int primary key)")
    marks, kills, resumes, first = [], 0, 0, None
    for life in range(3):
        writer, others = Marks(server, marks), load(server)
        time.sleep(0.3 + chance.random())
        rate = chance.choice(["0", "2MB"])
        kind = ["--incremental"] if first and life > 0 else []
        backup = subprocess.Popen([CLEARWAY, "backup", target, "--server", server.url, "--rate", rate, *kind],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if first and life == 1 and chance.random() < 0.7:
            time.sleep(chance.random() * 1.5)
            backup.kill()
            kills += 1
            if chance.random() < 0.6:
                backup.wait()
                resumed = subprocess.run([CLEARWAY, "backup", target, "--server", server.url, "--resume"], capture_output=True, text=True)
                # It may have been killed before it put anything, or after it put all.
                if resumed.returncode and "broken off" not in resumed.stderr and "was begun in epoch" not in resumed.stderr:
                    raise Failed(f"the backup was not resumed: {resumed.stderr}")
                resumes += resumed.returncode == 0
        said = backup.communicate()[0]
        if backup.returncode == 0 and first is None:
            first = time.time()
        elif backup.returncode > 0:
            raise Failed(f"the backup: {said}")
        time.sleep(0.5 + chance.random() * 1.5)
        if life < 2:
            server.kill()
            kills += 1
        else:
            # Its last marks lie behind the greatest moment, and so does the point.
            last = time.time()
            server.sql("select pg_create_restore_point('before the end')")
            time.sleep(0.2)
        end(others)
        writer.end()
        if life == 2:
            server.stop()
        else:
            server = Server(data, target)
    said = clearway("backup", "verify", target)
    acknowledged = [mark[1] for mark in marks if mark[1] is not None]
    last = min(last, acknowledged[-1] - 0.05)
    moments = sorted(first + chance.random() * (last - first) for _ in range(MOMENTS))
    for number, moment in enumerate(moments):
        restored = f"{work}/restored{number}"
        clearway("restore", target, restored, "--to", stamp(moment))
        if number == 0:
            clearway("check", restored)
        other = Server(restored)
        look(other, marks, moment)
        other.kill()
        shutil.rmtree(restored)
    branch(work, target, marks, moments[-1])
    print(f"backup: {len(acknowledged)} marks, {kills} kills, {resumes} backups resumed, {len(moments)} moments; {said.splitlines()[0]}", flush=True)


def branch(work, target, marks, moment):
    """A restored server archives a history of its own; the first one can still be restored, and neither shows in the other."""
    name, old, new = f"{work}/branch", f"{work}/old", f"{work}/new"
    epochs = [int(n) for n in re.findall(r"^epoch (\d+):", clearway("restore", "--list", target), re.M)]
    clearway("restore", target, name, "--to", stamp(moment))
    server = Server(name, target)
    count = look(server, marks, moment)
    server.sql("create table only_here (id int); insert into only_here values (1)")
    server.stop()
    said = clearway("restore", target, new)
    # A restore to a moment of an earlier epoch left more than one behind.
    others = re.search(r"there is log of others: --epoch ([0-9, ]+)", said)
    if others is None or str(max(epochs)) not in others[1].split(", "):
        raise Failed(f"the restore does not say that there is another history: {said}")
    server = Server(new)
    if server.sql("select count(*) from only_here") != "1" or look(server, marks, moment) != count:
        raise Failed("the history of the restored server is not what it wrote")
    server.kill()
    clearway("restore", target, old, "--epoch", str(max(epochs)), "--to-name", "before the end")
    server = Server(old)
    if server.sql("select count(*) from pg_class where relname = 'only_here'") != "0":
        raise Failed("log of another history was mixed in")
    look(server, marks[:0], moment)
    there = int(server.sql("select count(*) from marks"))
    if there < count:
        raise Failed(f"{count} marks at {stamp(moment)}, {there} later")
    server.kill()
    clearway("backup", "verify", target)
    # Log that the restore left behind is verified too: it can still be restored.
    left = f"{target}/log/{max(epochs):08x}"
    piece = f"{left}/{max(os.listdir(left))}"
    with open(piece, "r+b") as file:
        file.seek(os.path.getsize(piece) // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    said = clearway("backup", "verify", target, fails=True)
    if os.path.basename(piece) not in said:
        raise Failed(f"verify does not name the damaged piece {piece}: {said}")


def main():
    passed = 0
    print(f"backup: SEED={SEED}", flush=True)
    for number in range(ROUNDS):
        work = tempfile.mkdtemp(prefix="clearway-backup.")
        try:
            one_round(work, random.Random(SEED + number))
        except (Failed, subprocess.CalledProcessError) as why:
            print(f"backup: round {number}: {why}; the files are in {work}", flush=True)
            print(f"{passed} passed, 1 failed")
            sys.exit(1)
        shutil.rmtree(work)
        passed += 1
    print(f"{passed} passed, 0 failed")


main()
