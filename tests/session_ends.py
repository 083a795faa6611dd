#!/usr/bin/env python3
"""What a client is told when its session, its statement or the server ends: always a reason, never a bare close of the connection.

    tests/session_ends.py [CLEARWAY [POSTGRES_PORT]]     the clearway of the last debug build

- an error behind Parse, Bind, Describe and Execute comes out on Flush, without a Sync;
- a prepared statement whose columns have changed is refused with 0A000 and the routine by which drivers know it, and works again when they are as
  they were;
- FETCH and MOVE of a portal that Bind has made; EXPLAIN and EXECUTE with parameters; pg_terminate_backend of the own session;
- pg_terminate_backend and SIGTERM: 57P01 comes first, whatever the session does, and what was acknowledged is there after the next start;
- the log can't be synced any more (failed-sync.c): 08007 or 57P01 comes first, reads go on, and what was acknowledged is there.
With the port of a PostgreSQL 15 the first three are asked there, too (superuser postgres, no password). The last line is `N passed, N failed`.
Needs cc.
"""
import os, shutil, signal, socket, struct, subprocess, sys, tempfile, threading, time

import cluster
from cluster import Failed

CLEARWAY = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CARGO_TARGET_DIR", "target") + "/debug/clearway"
POSTGRES = sys.argv[2] if len(sys.argv) > 2 else None
HERE = os.path.dirname(os.path.realpath(__file__))
PATIENCE = 120  # seconds, after which an answer that does not come is a failure
WRITERS = 8


def frame(tag, body=b""):
    return tag + struct.pack("!i", len(body) + 4) + body


def query(sql):
    return frame(b"Q", sql.encode() + b"\0")


def parse(name, sql):
    return frame(b"P", f"{name}\0{sql}\0".encode() + b"\0\0")


def bind(name, portal="", values=(), formats=()):
    given = b"".join(struct.pack("!i", len(value)) + value.encode() for value in values)
    return frame(b"B", f"{portal}\0{name}\0".encode() + b"\0\0" + struct.pack("!h", len(values)) + given
                 + struct.pack(f"!{len(formats) + 1}h", len(formats), *formats))


def describe(kind, name):
    return frame(b"D", f"{kind}{name}\0".encode())


def execute(portal="", rows=0):
    return frame(b"E", f"{portal}\0".encode() + struct.pack("!i", rows))


FLUSH, SYNC = frame(b"H"), frame(b"S")


class Client:
    """One connection, message by message."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE)
        body = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.rest, self.pid = b"", None
        self.done = []  # tags of statements that ended while the last words were waited for
        self.until(b"Z")

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def message(self):
        """The next message; none at the end of the connection."""
        while True:
            if len(self.rest) >= 5:
                length = struct.unpack_from("!i", self.rest, 1)[0] + 1
                if len(self.rest) >= length:
                    tag, body, self.rest = self.rest[:1], self.rest[5:length], self.rest[length:]
                    if tag == b"K":
                        self.pid = struct.unpack_from("!i", body)[0]
                    return tag, body
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return None
            except TimeoutError:
                raise Failed(f"nothing came in {PATIENCE} s") from None
            if not more:
                return None
            self.rest += more

    def until(self, last):
        """The tags up to one, with the SQLSTATE of errors and the first values of rows."""
        seen = []
        while True:
            got = self.message()
            if got is None:
                raise Failed(f"the connection was closed behind {seen[-5:]}")
            tag, body = got
            if tag in b"SKRN":
                continue
            seen.append(code(body) if tag == b"E" else tag.decode())
            if tag == last or (last == b"E" and tag == b"Z"):
                return seen

    def run(self, sql):
        """The SQLSTATE of what failed, or the command's tag."""
        self.send(query(sql))
        answer = None
        while True:
            got = self.message()
            if got is None:
                return answer or "closed"
            tag, body = got
            if tag == b"E":
                answer = code(body)
            elif tag == b"C" and answer is None:
                answer = body[:-1].decode()
            elif tag == b"Z":
                return answer

    def answers(self, *frames):
        """The first values of rows, tags and SQLSTATEs, what Describe tells of parameters (`t2`) and columns (`T1`), to the end of the batch."""
        self.send(*frames)
        described = any(sent[:1] == b"D" for sent in frames)
        out = []
        while True:
            tag, body = self.message()
            if tag == b"D":
                out.append(body[6:6 + struct.unpack_from("!i", body, 2)[0]].decode())
            elif tag == b"C":
                out.append(body[:-1].decode())
            elif tag == b"E":
                out.append(code(body))
            elif tag == b"t" or tag == b"T" and described:
                out.append(f"{tag.decode()}{struct.unpack_from('!h', body)[0]}")
            elif tag in b"sn":
                out.append("suspended" if tag == b"s" else "no columns")
            elif tag == b"Z":
                return out

    def value(self, sql):
        self.send(query(sql))
        found = None
        while True:
            tag, body = self.message()
            if tag == b"D":
                found = body[6:].decode()
            elif tag == b"E":
                raise Failed(f"{sql}: {code(body)}")
            elif tag == b"Z":
                return found

    def last_words(self):
        """The SQLSTATE of the last error before the connection's end; none if it was just closed."""
        last = None
        while (got := self.message()) is not None:
            if got[0] == b"E":
                last = code(got[1])
            elif got[0] == b"C":
                self.done.append(got[1][:-1].decode())
        return last


def field_of(body, letter):
    return next((field[1:].decode() for field in body.split(b"\0") if field[:1] == letter), None)


def code(body):
    return field_of(body, b"C")


def check(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what}: {found}, not {wanted}")


def flush(port):
    c = Client(port)
    for what, batch, wanted in [
        ("a mistake in the text", [parse("", "selec 1")], ["42601"]),
        ("an unknown table", [parse("", "select * from no_such_table")], ["42P01"]),
        ("an unknown statement", [bind("no_such")], ["26000"]),
        ("Describe of an unknown statement", [describe("S", "no_such")], ["26000"]),
        ("Describe of an unknown portal", [describe("P", "no_such")], ["34000"]),
        ("Execute of an unknown portal", [execute("no_such")], ["34000"]),
        ("Execute", [parse("", "select 1 / 0"), bind(""), execute()], None),
        ("a row that fails", [parse("", "select 1 / (2 - g) from generate_series(1, 3) g"), bind(""), execute()], None),
    ]:
        c.send(*batch, FLUSH)
        seen = c.until(b"E")
        if wanted is None:
            check(what, seen[-1], "22012")
        else:
            check(what, seen, wanted)
        # What comes before the Sync is skipped, and answered by nothing.
        c.send(parse("", "select 1"), bind(""), execute(), FLUSH, SYNC)
        check(f"{what}, then Sync", c.until(b"Z"), ["Z"])
    check("the session", c.run("select 1"), "SELECT 1")


def result_types(port):
    c, other = Client(port), Client(port)
    for sql in ["drop table if exists ends_r", "create table ends_r (a int, b text)", "insert into ends_r values (1, 'x')"]:
        c.run(sql)
    c.send(parse("s", "select * from ends_r"), describe("S", "s"), SYNC)
    c.until(b"Z")
    c.run("prepare p as select * from ends_r")
    c.run("prepare one as select a from ends_r")
    again = [bind("s"), execute(), SYNC]

    def both(what, wanted):
        c.send(*again)
        seen = c.until(b"Z")
        check(f"{what}, Bind and Execute", "0A000" if "0A000" in seen else "rows" if "D" in seen else seen, wanted)
        answer = c.run("execute p")
        check(f"{what}, EXECUTE", answer if answer == "0A000" else "rows", wanted)
        check(f"{what}, a statement of one column", c.run("execute one"), "SELECT 1")

    both("as prepared", "rows")
    other.run("alter table ends_r add column c int")
    both("a column more", "0A000")
    both("once more", "0A000")
    c.send(*again)
    while (got := c.message())[0] != b"E":
        pass
    check("the routine", field_of(got[1], b"R"), "RevalidateCachedQuery")
    c.until(b"Z")
    other.run("alter table ends_r drop column c")
    both("the column dropped", "rows")
    other.run("alter table ends_r alter column b type varchar(10)")
    both("another type", "0A000")
    other.run("alter table ends_r alter column b type text")
    both("the type as before", "rows")
    other.run("alter table ends_r rename column b to d")
    both("another name", "0A000")
    other.run("alter table ends_r rename column d to b")
    check("a block begins", c.run("begin"), "BEGIN")
    other.run("alter table ends_r add column c int")
    check("EXECUTE in a block", c.run("execute p"), "0A000")
    check("a statement behind it", c.run("select 1"), "25P02")
    check("the end of the block", c.run("rollback"), "ROLLBACK")
    check("prepared again", c.run("deallocate p"), "DEALLOCATE")
    c.run("prepare p as select * from ends_r")
    check("prepared again", c.run("execute p"), "SELECT 1")
    c.run("drop table ends_r")


def portals(port):
    c = Client(port)
    series = parse("", "select g from generate_series(0, 20) g")
    move = lambda name: "MOVE FORWARD 5 " + name
    check("a block begins", c.run("begin"), "BEGIN")
    check("Execute", c.answers(series, bind("", "p"), execute("p", 2), SYNC), ["0", "1", "suspended"])
    check("MOVE", c.run(move("p")), "MOVE 5")
    check("FETCH", c.answers(query("fetch 3 from p")), ["7", "8", "9", "FETCH 3"])
    check("FETCH in the extended protocol", c.answers(parse("", "fetch next from p"), describe("S", ""), bind(""), execute(), SYNC),
          ["t0", "T1", "10", "FETCH 1"])
    check("Execute goes on", c.answers(execute("p", 2), SYNC), ["11", "12", "suspended"])
    check("ABSOLUTE", c.answers(query("fetch absolute 16 from p")), ["15", "FETCH 1"])
    check("all that is left", c.answers(query("fetch all from p")), ["16", "17", "18", "19", "20", "FETCH 5"])
    check("MOVE behind the end", c.run(move("p")), "MOVE 0")
    check("Execute behind the end", c.answers(execute("p"), SYNC), ["SELECT 0"])
    check("Bind alone", c.answers(series, bind("", "q"), SYNC), [])
    check("MOVE before Execute", c.run(move("q")), "MOVE 5")
    check("Execute behind it", c.answers(execute("q", 1), SYNC), ["5", "suspended"])
    check("a portal's name is taken", c.run("declare q cursor for select 1"), "42P03")
    check("the end of the block", c.run("rollback"), "ROLLBACK")
    check("FETCH prepared before its cursor", c.answers(parse("f", "fetch next from later"), describe("S", "f"), SYNC), ["t0", "no columns"])
    c.run("begin; declare later cursor for select 1, 2")
    check("its columns", c.answers(bind("f"), describe("P", ""), execute(), SYNC), ["T2", "1", "FETCH 1"])
    c.run("rollback")
    for back in ("fetch prior from p", "fetch last from p", "move backward all in p", "fetch absolute -1 from p"):
        c.run("begin")
        c.answers(series, bind("", "p"), execute("p", 2), SYNC)
        check(back, c.run(back), "55000")
        c.run("rollback")
    check("MOVE of a portal that has gone", c.run(move("p")), "34000")


def parameters(port):
    c = Client(port)
    explain = parse("", "explain (costs off) select 1 from pg_class where relname = $1 and relnatts = $2")
    answer = c.answers(explain, describe("S", ""), bind("", "", ["x", "7"]), execute(), SYNC)
    check("EXPLAIN has parameters", (answer[0], answer[-1]), ("t2", "EXPLAIN"))
    for formats, wanted in [((), "SELECT 1"), ((0,), "SELECT 1"), ((0, 1, 0), "SELECT 1"), ((0, 0), "08P01"), ((0, 0, 0, 0), "08P01")]:
        answer = c.answers(parse("", "select 'a', 2, 'c'"), bind("", formats=formats), execute(), SYNC)
        check(f"result formats {formats}", answer[-1], wanted)
    check("formats of no columns", c.answers(parse("", "set lock_timeout = 0"), bind("", formats=(0, 0)), execute(), SYNC), ["SET"])
    c.run("prepare twice(int) as select $1 * 2")
    answer = c.answers(parse("", "execute twice(4)"), describe("S", ""), bind(""), execute(), SYNC)
    check("EXECUTE has columns", answer, ["t0", "T1", "8", "SELECT 1"])
    check("pg_terminate_backend of the own session", c.run("select pg_terminate_backend(pg_backend_pid())"), "57P01")
    check("the connection", c.message(), None)


def ended_within(port):
    judge, idle = Client(port), Client(port)
    check("pg_terminate_backend that waits", judge.answers(parse("", f"select pg_terminate_backend({idle.pid}, 60000)"), bind(""), execute(), SYNC), ["t", "SELECT 1"])
    check("the session has ended by then", judge.answers(parse("", f"select count(*) from pg_stat_activity where pid = {idle.pid}"), bind(""), execute(), SYNC), ["0", "SELECT 1"])
    check("the other's last word", idle.until(b"E"), ["57P01"])


def last_words_of(clients):
    """Of all at once: one that is not read may be given up after a while."""
    words = {}

    def hear(name, client):
        try:
            words[name] = client.last_words()
        except (OSError, Failed) as error:
            words[name] = str(error)

    threads = [threading.Thread(target=hear, args=item) for item in clients.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The server gives up a client that does not read for two seconds, which a busy machine may make of this one.
    if words["not reading"] is None:
        del words["not reading"]
    return words


def wait_for(root, sql):
    """Until a condition holds, by the server's own word."""
    while root.value(f"select {sql}") != "t":
        time.sleep(0.02)


def states(port, root):
    """Sessions that do what sessions do, by name; each has begun to."""
    for sql in ["create table held (id int primary key, v int)", "insert into held values (1, 0), (2, 0)", "create table copied (t text)",
                "create function slow() returns int language sql volatile as 'select 1 from pg_sleep(1000)'"]:
        root.run(sql)
    holder = Client(port)
    holder.run("begin; update held set v = 1 where id = 1; select pg_advisory_lock(7); lock table copied in share mode")
    doing = {"in a block with changes": (holder, None)}

    def begin(name, *frames, waits=None):
        client = Client(port)
        client.send(*frames)
        doing[name] = (client, waits)
        return client

    active = "state = 'active'"
    begin("asleep", query("select pg_sleep(1000)"), waits=active)
    begin("computing", query("select count(*) from generate_series(1, 1000000000000)"), waits=active)
    begin("in a function", query("select slow()"), waits=active)
    begin("waiting for a row", query("update held set v = 2 where id = 1"), waits="wait_event_type = 'Lock'")
    begin("waiting for an advisory lock", query("select pg_advisory_lock(7)"), waits="wait_event_type = 'Lock'")
    begin("waiting for a table", query("insert into copied values ('x')"), waits="wait_event_type = 'Lock'")
    begin("in COPY FROM", query("copy held from stdin"), waits=active)
    begin("in COPY FROM, a row sent", query("copy held from stdin"), frame(b"d", b"9\t9\n"), waits=active)
    begin("not reading", query("select repeat('x', 1000) from generate_series(1, 1000000)"), waits=active)
    begin("half a message sent", query("select 1")[:7], waits="state = 'idle'")
    begin("a suspended portal", query("begin"), parse("", "select g from generate_series(1, 9) g"), bind(""), execute("", 2), FLUSH,
          waits="state like 'idle in transaction%' or state = 'active'")
    begin("a failed block", query("begin; select 1 / 0"), waits="state = 'idle in transaction (aborted)'")
    begin("a cursor", query("begin; declare c cursor for select * from held; fetch 1 from c"), waits="state = 'idle in transaction'")
    begin("listening", query("listen nothing"), waits="state = 'idle'")
    begin("asleep in a batch", parse("", "select pg_sleep(1000)"), bind(""), execute(), SYNC, waits=active)
    doing["idle"] = (Client(port), None)
    for client, waits in doing.values():
        if waits:
            wait_for(root, f"exists (select from pg_stat_activity where pid = {client.pid} and ({waits}))")
    return {name: client for name, (client, _) in doing.items()}


class Writer(threading.Thread):
    """Inserts numbers until it is told something else; remembers what was acknowledged, and what it was told."""

    def __init__(self, port, first):
        super().__init__(daemon=True)
        self.client, self.number, self.acknowledged, self.told = Client(port), first, [], None
        self.start()

    def run(self):
        try:
            while True:
                answer = self.client.run(f"insert into marks values ({self.number})")
                if answer != "INSERT 0 1":
                    self.told = answer
                    if answer != "closed" and self.client.message() is not None:
                        self.told += ", and the session goes on"
                    return
                self.acknowledged.append(self.number)
                self.number += WRITERS
        except (OSError, Failed) as error:
            self.told = str(error)


def write(port, root):
    root.run("create table marks (n int primary key)")
    writers = [Writer(port, first) for first in range(WRITERS)]
    while not all(writer.acknowledged for writer in writers):
        time.sleep(0.02)
    return writers


def marks_are_there(server, writers):
    there = set(server.sql("select n from marks").split())
    lost = [n for writer in writers for n in writer.acknowledged if str(n) not in there]
    if lost:
        raise Failed(f"{len(lost)} acknowledged rows are lost: {lost[:5]}")


def terminated(work):
    server = cluster.Server(CLEARWAY, f"{work}/terminated")
    try:
        root = Client(server.port)
        clients = states(server.port, root)
        for name, client in clients.items():
            check(f"{name}: pg_terminate_backend", root.value(f"select pg_terminate_backend({client.pid})"), "t")
        for name, words in last_words_of(clients).items():
            check(f"{name}: the last words", words, "57P01")
        wait_for(root, "count(*) = 1 from pg_stat_activity where backend_type = 'client backend'")
        # Their locks are free.
        check("the row", root.run("update held set v = 3 where id = 1"), "UPDATE 1")
        check("the table", root.run("lock table copied in access exclusive mode nowait") in ("LOCK TABLE", "25P01"), True)
        check("the advisory lock", root.value("select pg_try_advisory_lock(7)"), "t")
        server.stop()
    finally:
        server.kill()


def stopped(work):
    data = f"{work}/stopped"
    server = cluster.Server(CLEARWAY, data)
    try:
        root = Client(server.port)
        clients, writers = states(server.port, root), write(server.port, root)
        server.process.send_signal(signal.SIGTERM)
        for name, words in last_words_of({**clients, "the first session": root}).items():
            check(f"{name}: the last words at SIGTERM", words, "57P01")
        for writer in writers:
            writer.join()
            check("a writer at SIGTERM", writer.told, "57P01")
        check("the server's exit", server.process.wait(), 0)
        server = cluster.Server(CLEARWAY, data)
        marks_are_there(server, writers)
        # The session that held the row may have ended before the one that waited for it was told to.
        went_through = "UPDATE 1" in clients["waiting for a row"].done
        check("what was not committed", server.sql("select v from held where id = 1"), "2" if went_through else "0")
        server.stop()
    finally:
        server.kill()


def failed_log(work):
    library, flag, data = f"{work}/failed-sync.so", f"{work}/failed", f"{work}/failed-log"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, f"{HERE}/failed-sync.c", "-ldl"], check=True)
    server = cluster.Server(CLEARWAY, data, environment={**os.environ, "LD_PRELOAD": library, "FAILED_SYNC": flag})
    try:
        root = Client(server.port)
        clients, writers = states(server.port, root), write(server.port, root)
        open(flag, "w").close()
        for writer in writers:
            writer.join()
            if writer.told.split(",")[0] not in ("08007", "57P01"):
                raise Failed(f"a writer whose commit can't be synced: {writer.told}")
        check("a session that reads", clients["idle"].run("select count(*) from held"), "SELECT 1")
        # Whoever is told that its commit's outcome is unknown is told nothing more.
        check("a change afterwards", clients.pop("idle").run("insert into marks values (-1)") in ("08007", "57P01"), True)
        holder = clients.pop("in a block with changes")
        check("a commit afterwards", holder.run("commit") in ("08007", "57P01"), True)
        server.process.send_signal(signal.SIGTERM)
        for name, words in last_words_of(clients).items():
            if words not in ("57P01", "08007"):
                raise Failed(f"{name}: {words}, closed without a reason after the log had failed")
        check("the server ends", isinstance(server.process.wait(), int), True)
        os.remove(flag)
        server = cluster.Server(CLEARWAY, data)
        marks_are_there(server, writers)
        check("what was not committed", server.sql("select v from held where id = 1"), "0")
        server.stop()
    finally:
        server.kill()


def main():
    work = tempfile.mkdtemp()
    server = cluster.Server(CLEARWAY, f"{work}/data")
    passed = failed = 0
    wire = [("flush", flush), ("result types", result_types), ("portals", portals), ("parameters", parameters), ("ended within", ended_within)]
    trials = [(name, trial, server.port) for name, trial in wire]
    if POSTGRES:
        trials += [(f"{name}, PostgreSQL", trial, POSTGRES) for name, trial in wire]
    trials += [("pg_terminate_backend", terminated, work), ("SIGTERM", stopped, work), ("a failed log", failed_log, work)]
    for name, trial, argument in trials:
        try:
            trial(argument)
            passed += 1
        except (Failed, OSError, TypeError) as error:
            failed += 1
            print(f"{name}: {error}", flush=True)
    server.kill()
    shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return failed == 0


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
