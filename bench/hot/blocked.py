#!/usr/bin/env python3
"""Thousands of sessions that wait for one row: how soon clearway_lock_tree answers, and whether the others notice.

usage: bench/hot/blocked.py PATH-TO-clearway [--sessions 5000] [--rounds N] [--seconds N] [--answer-ms 50] [--percent 2]

In each round pgbench reads and changes other rows twice: while the sessions are connected and idle, and while each of them waits for one row; the
order changes from round to round. Meanwhile the tree is asked for, as a whole and for its root. The last line is `N passed, N failed`: it fails
where the median answer takes longer than so many milliseconds, where the median of the ratios of throughput is more than so many percent below 1,
or where the tree does not have every session.
"""
import argparse, os, re, resource, shutil, signal, socket, statistics, struct, subprocess, sys, tempfile, time

PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("--sessions", type=int, default=5000)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--seconds", type=int, default=4)
parser.add_argument("--answer-ms", type=float, default=50)
parser.add_argument("--percent", type=float, default=2)
asked = parser.parse_args()
scratch = tempfile.mkdtemp()
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Session:
    """A session by the protocol itself: a program of each would need more memory than the server."""

    def __init__(self, port, application):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = b"".join(part.encode() + b"\0" for part in ("user", "postgres", "database", "postgres", "application_name", application)) + b"\0"
        self.socket.sendall(struct.pack("!ii", 8 + len(start), 196608) + start)
        self.buffer = b""
        self.answer()

    def tell(self, sql):
        text = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", 4 + len(text)) + text)

    def message(self):
        while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack_from("!i", self.buffer, 1)[0]:
            got = self.socket.recv(1 << 16)
            if not got:
                raise SystemExit("the server has closed a connection\n0 passed, 1 failed")
            self.buffer += got
        length = 1 + struct.unpack_from("!i", self.buffer, 1)[0]
        kind, body, self.buffer = self.buffer[:1], self.buffer[5:length], self.buffer[length:]
        return kind, body

    def answer(self):
        """The rows of the answer, as bytes."""
        rows = []
        while True:
            kind, body = self.message()
            if kind == b"E":
                raise SystemExit(f"{body}\n0 passed, 1 failed")
            if kind == b"D":
                rows.append(body)
            if kind == b"Z":
                return rows

    def ask(self, sql):
        self.tell(sql)
        return self.answer()


def text(row):
    """The first column of a row."""
    length = struct.unpack_from("!i", row, 2)[0]
    return row[6:6 + length].decode()


log = open(f"{scratch}/log", "w")
server = subprocess.Popen([os.path.abspath(asked.binary), "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0", "-c", f"max_connections={asked.sessions + 100}",
                           "-c", "log_lock_waits=off"], stdout=log, stderr=log)
while not (found := re.search(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())):
    if server.poll() is not None:
        sys.exit(f"the server has ended:\n{open(log.name).read()}\n0 passed, 1 failed")
    time.sleep(0.05)
port = int(found[1])
environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
OTHERS = "\\set id random(2, 10000)\nSELECT v FROM t WHERE id = :id;\nSELECT v FROM t WHERE id = :id;\nUPDATE t SET v = v + 1 WHERE id = :id;\n"
open(f"{scratch}/others.sql", "w").write(OTHERS)


def others():
    ran = subprocess.run([PGBENCH, "-n", "-M", "prepared", "-f", f"{scratch}/others.sql", "-c", "8", "-j", "2", "-T", str(asked.seconds)], text=True, capture_output=True, env=environment)
    if ran.returncode:
        raise SystemExit(f"{ran.stdout}{ran.stderr}\n0 passed, 1 failed")
    return float(re.search(r"tps = ([\d.]+)", ran.stdout)[1])


def timed(viewer, sql, wanted):
    """The answers' times in milliseconds."""
    times = []
    for _ in range(21):
        began = time.monotonic()
        rows = viewer.ask(sql)
        times.append((time.monotonic() - began) * 1e3)
        if not wanted(rows):
            failed.append(f"{sql}: {len(rows)} rows, {rows[:1]}")
            break
    return times


ROOT = "SELECT pid, blocks, application_name, taken_by FROM clearway_lock_tree WHERE depth = 0"
TREE = "SELECT * FROM clearway_lock_tree"
failed, rates, answers = [], {"idle": [], "blocked": []}, {ROOT: [], TREE: []}
try:
    viewer, holder = Session(port, "viewer"), Session(port, "holder")
    viewer.ask("CREATE TABLE t (id int PRIMARY KEY, v int)")
    viewer.ask("INSERT INTO t SELECT g, 0 FROM generate_series(1, 10000) g")
    viewer.ask("ANALYZE t")
    crowd = [Session(port, "crowd") for _ in range(asked.sessions)]

    def idle():
        rates["idle"].append(others())

    def blocked():
        holder.ask("BEGIN")
        holder.ask("UPDATE t SET v = v + 1 WHERE id = 1")
        for session in crowd:
            session.tell("UPDATE t SET v = v + 1 WHERE id = 1")
        while text(viewer.ask("SELECT count(*) FROM clearway_lock_tree WHERE depth > 0")[0]) != str(asked.sessions):
            time.sleep(0.1)
        rates["blocked"].append(others())
        answers[ROOT] += timed(viewer, ROOT, lambda rows: len(rows) == 1)
        answers[TREE] += timed(viewer, TREE, lambda rows: len(rows) == asked.sessions + 1)
        holder.ask("COMMIT")
        for session in crowd:
            session.answer()

    others()
    for number in range(asked.rounds):
        for turn in (idle, blocked) if number % 2 else (blocked, idle):
            turn()
    row = text(viewer.ask("SELECT v FROM t WHERE id = 1")[0])
    if row != str(asked.rounds * (asked.sessions + 1)):
        failed.append(f"the row was changed {row} times")
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(scratch)
ratios = [with_them / without for with_them, without in zip(rates["blocked"], rates["idle"])]
low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
print(f"{asked.sessions:,} sessions, {asked.rounds} rounds of {asked.seconds} s\n")
print("| | median | longest |\n|---|--:|--:|")
for sql, times in answers.items():
    print(f"| `{sql}`, ms | {statistics.median(times):.1f} | {max(times):.1f} |")
    if statistics.median(times) > asked.answer_ms:
        failed.append(f"{sql}: more than {asked.answer_ms} ms")
print(f"\nThe others' transactions per second: {statistics.median(rates['idle']):,.0f} while the sessions are idle, {statistics.median(rates['blocked']):,.0f} while they wait;"
      f" the ratio within a round is {middle:.3f} (quartiles {low:.3f} to {high:.3f})")
if middle < 1 - asked.percent / 100:
    failed.append("the others' throughput")
print("".join(f"failed: {one}\n" for one in failed), end="")
print(f"{max(3 - len(failed), 0)} passed, {len(failed)} failed")
sys.exit(bool(failed))
