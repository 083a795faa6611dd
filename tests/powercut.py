#!/usr/bin/env python3
"""Cuts the power of a server under load: it runs under a preload (powercut.c) that remembers what was synced, is killed with SIGKILL at a
random moment, and goes on from what a device may have kept. Nothing acknowledged is lost, nothing half done shows, and `clearway check`
finds no damage.

    tests/powercut.py [--rounds N] [--seed S] [CLEARWAY]     6 rounds, the clearway of the last debug build

What a device keeps: of each file the bytes of its last sync, of each directory the names of its last sync; in every second round also any
part of what was written since, sector by sector, and of some directories the names as they were. In every third round the power goes a
second time, while the server recovers. The load: transfers between accounts with a history, values of some 100 kB that are replaced,
tables that are created, indexed, filled and dropped, and checkpoints all the time (a small cache, a short recovery).
At the end two devices that report syncs without doing them (those of the log, and those of names) have to be detected.
The last line is `N passed, N failed`, counted in rounds and lies. The long form is --rounds 300 on a release build. Needs cc.
"""
import argparse, os, random, shutil, subprocess, sys, tempfile, threading, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lockstep"))
from wire import Gone, Session  # noqa: E402

WRITERS, ACCOUNTS, TABLES_KEPT = 4, 40, 3
SECTOR = 512


class Failed(Exception):
    pass


class Device:
    """A directory, and beside it what is durable of it."""

    def __init__(self, work):
        self.work, self.number = work, 0
        self.data = work / "0" / "data"
        self.data.mkdir(parents=True, mode=0o700)
        self.begin()

    def begin(self):
        """Everything that is there is durable."""
        self.shadow = self.work / str(self.number) / "shadow"
        (self.shadow / "inodes").mkdir(parents=True)
        (self.shadow / "names").mkdir()
        for directory, directories, files in os.walk(self.data):
            names = [f"d {name}\n" for name in directories]
            for name in files:
                path = os.path.join(directory, name)
                inode = f"{os.stat(path).st_ino}-0"
                copy(path, self.shadow / "inodes" / inode)
                names.append(f"f {name} {inode}\n")
            (self.shadow / "names" / self.encoded(directory)).write_text("".join(names))

    def encoded(self, directory):
        return "@" + str(directory)[len(str(self.data)):].replace("/", "%")

    def environment(self, library, lie=None):
        more = {"LD_PRELOAD": str(library), "POWERCUT_DATA": str(self.data), "POWERCUT_SHADOW": str(self.shadow)}
        return os.environ | more | ({"POWERCUT_LIE": lie} if lie else {})

    def cut(self, rng, mixed):
        """Goes on in a new directory with what the device has kept."""
        generations = {}
        if (self.shadow / "ids").exists():
            for line in (self.shadow / "ids").read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    inode, generation = line.split()
                    generations[inode] = generation
        # What readers saw, by identity.
        live = {}
        for directory, _, files in os.walk(self.data):
            for name in files:
                path = os.path.join(directory, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    inode = str(os.stat(path).st_ino)
                    live[f"{inode}-{generations.get(inode, '0')}"] = path
        identities = {path: identity for identity, path in live.items()}
        old, self.number = self.data, self.number + 1
        kept = self.work / str(self.number) / "data"
        kept.mkdir(parents=True, mode=0o700)
        lost = [0, 0]
        self.keep_directory(rng, mixed, old, kept, live, identities, lost)
        self.data = kept
        shadow = self.shadow
        self.begin()
        shutil.rmtree(old.parent)
        assert not shadow.exists()
        return lost

    def keep_directory(self, rng, mixed, old, new, live, identities, lost):
        durable = self.shadow / "names" / self.encoded(old)
        names = [line.split() for line in durable.read_text().splitlines()] if durable.exists() else []
        seen = [["d", each.name] if each.is_dir() else ["f", each.name, identities[each.path]]
                for each in os.scandir(old) if each.is_dir() or each.path in identities]
        lost[0] += sorted(names) != sorted(seen)
        if mixed and rng.random() < 0.5:
            names = seen
        for kind, name, *identity in names:
            if kind == "d":
                (new / name).mkdir(mode=0o700)
                self.keep_directory(rng, mixed, Path(old) / name, new / name, live, identities, lost)
            else:
                self.keep_file(rng, mixed, identity[0], live.get(identity[0]), new / name, lost)

    def keep_file(self, rng, mixed, identity, path, to, lost):
        synced = self.shadow / "inodes" / identity
        durable = synced.read_bytes() if synced.exists() else b""
        now = Path(path).read_bytes() if path else durable
        lost[1] += durable != now
        if mixed and durable != now:
            durable = torn(rng, durable, now)
        write(to, durable)


def torn(rng, before, after):
    """Any part of what was written, in sectors."""
    length = rng.choice([len(before), len(after)])
    kept = bytearray(before[:length].ljust(length, b"\0"))
    share = rng.choice([0.1, 0.5, 0.9])
    step = 1 << 16
    for block in range(0, length, step):
        end = min(block + step, length)
        if kept[block:end] == after[block:end]:
            continue
        for at in range(block, end, SECTOR):
            sector = after[at:min(at + SECTOR, end)]
            if sector and kept[at:at + len(sector)] != sector and rng.random() < share:
                kept[at:at + len(sector)] = sector
    return bytes(kept)


def write(path, content):
    """With holes for zeros: log segments are prepared long before they are used."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        step = 1 << 16
        for at in range(0, len(content), step):
            block = content[at:at + step]
            if block.count(0) != len(block):
                file.seek(at)
                file.write(block)
        file.truncate(len(content))


def copy(path, to):
    write(to, Path(path).read_bytes())


class Server:
    def __init__(self, binary, device, library, log, lie=None):
        arguments = ["-c", "cache_size=4MB", "-c", "recovery_target=1s"]
        self.log, self.where = log, log.seek(0, os.SEEK_END)
        self.process = subprocess.Popen([binary, "serve", "--data", str(device.data), "--listen", "127.0.0.1:0", *arguments],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=device.environment(library, lie))

    def wait(self):
        while True:
            said = self.said()
            at = said.find("connect with: psql")
            if at >= 0 and "\n" in said[at:]:
                self.port = int(said[at:].split(" -p ")[1].split()[0])
                return
            if self.process.poll() is not None:
                raise Failed(f"the server did not start: {said[-600:]}")
            time.sleep(0.02)

    def said(self):
        self.log.seek(self.where)
        return self.log.read().decode(errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Known:
    """What was acknowledged, and what may or may not have happened."""

    def __init__(self):
        self.history = [0] * WRITERS  # the last number of each writer
        self.long = [0] * 3  # the version of each long value
        self.tables = set()
        self.unsure = set()  # tables that were being created or dropped
        self.next_table = 0


class Load:
    """Clients that work until the server is gone."""

    def __init__(self, port, known, seed):
        self.port, self.known, self.wrong = port, known, []
        works = [(self.transfers, writer) for writer in range(WRITERS)] + [(self.long_values, 0), (self.ddl, 0)]
        self.threads = [threading.Thread(target=self.run, args=(work, number, random.Random(f"{seed}/{at}")))
                        for at, (work, number) in enumerate(works)]
        for thread in self.threads:
            thread.start()

    def run(self, work, number, rng):
        try:
            session = Session(self.port)
            while True:
                work(session, number, rng)
        except (Gone, OSError):
            pass
        except Exception as error:  # the test's own mistake, or the server's
            self.wrong.append(f"{work.__name__}: {error!r}")

    def ask(self, session, text, allowed=()):
        reply = session.ask(text)
        # A server that is being killed may still say why it ends.
        if reply.error and reply.error[0] in ("57P01", "57P02", "08006"):
            raise Gone(reply.error[1])
        if reply.error and reply.error[0] not in allowed:
            raise RuntimeError(f"{text[:200]}: {reply.error}")
        return reply.error is None

    def transfers(self, session, writer, rng):
        number = self.known.history[writer] + 1
        a, b = rng.sample(range(ACCOUNTS), 2)
        amount = rng.randrange(1000)
        done = self.ask(session, f"begin; update account set balance = balance - {amount} where id = {a}; "
                        f"update account set balance = balance + {amount} where id = {b}; "
                        f"insert into history values ({writer}, {number}, {amount}, '{'h' * rng.randrange(300)}'); commit", ("40P01",))
        if done:
            self.known.history[writer] = number
        else:
            self.ask(session, "rollback")

    def long_values(self, session, _, rng):
        which = rng.randrange(len(self.known.long))
        version = self.known.long[which] + 1
        self.ask(session, f"insert into long values ({which}, {version}, repeat('{which}.{version}/', 20000)) "
                 "on conflict (id) do update set version = excluded.version, v = excluded.v")
        self.known.long[which] = version

    def ddl(self, session, _, rng):
        number = self.known.next_table
        self.known.next_table += 1
        self.known.unsure.add(number)
        self.ask(session, f"begin; create table made_{number} (id int primary key, v text); "
                 f"insert into made_{number} select i, 'v' || i from generate_series(1, 50) i; "
                 f"create index on made_{number} (v); commit")
        self.known.tables.add(number)
        self.known.unsure.discard(number)
        self.ask(session, "checkpoint")
        if len(self.known.tables) > TABLES_KEPT:
            oldest = min(self.known.tables)
            self.known.tables.discard(oldest)
            self.known.unsure.add(oldest)
            self.ask(session, f"drop table made_{oldest}")
            self.known.unsure.discard(oldest)

    def end(self):
        for thread in self.threads:
            thread.join()
        if self.wrong:
            raise Failed("; ".join(self.wrong))


def prepare(port):
    session = Session(port)
    for text in ("create table account (id int primary key, balance bigint not null)",
                 f"insert into account select i, 0 from generate_series(0, {ACCOUNTS - 1}) i",
                 "create index on account (balance)",
                 "create table history (writer int, number int, amount int, filler text, primary key (writer, number))",
                 "create index on history (amount)",
                 "create table long (id int primary key, version int not null, v text not null)"):
        reply = session.ask(text)
        if reply.error:
            raise Failed(f"{text}: {reply.error}")
    session.close()


def expect(condition, text):
    if not condition:
        raise Failed(text)


def verify(port, known):
    """What is there agrees with what was acknowledged; it is what counts from now on."""
    session = Session(port)
    balances = session.values("select sum(balance), count(*) from account")
    expect(balances == [("0", str(ACCOUNTS))], f"accounts: {balances}")
    for writer in range(WRITERS):
        count, highest, amounts = session.values(
            f"select count(*), coalesce(max(number), 0), count(amount) from history where writer = {writer}")[0]
        acknowledged = known.history[writer]
        expect(count == highest == amounts and acknowledged <= int(count) <= acknowledged + 1,
               f"writer {writer} was told {acknowledged}; {count} are there, the highest is {highest}")
        known.history[writer] = int(count)
    by_index = session.values("select count(*) from (select amount from history order by amount limit 1000000000) h")[0][0]
    expect(int(by_index) == sum(known.history), f"by the index on amounts {by_index} are there, {sum(known.history)} by the key")
    for which, acknowledged in enumerate(known.long):
        rows = session.values(f"select version, v = repeat(id || '.' || version || '/', 20000) from long where id = {which}")
        version = int(rows[0][0]) if rows else 0
        expect(acknowledged <= version <= acknowledged + 1, f"value {which}: version {acknowledged} was told, {rows} is there")
        expect(not rows or rows[0][1] == "t", f"value {which}: another content")
        known.long[which] = version
    there = {int(name[0][5:]) for name in session.values("select relname from pg_class where relkind = 'r' and relname like 'made%'")}
    expect(known.tables <= there, f"tables that were created are missing: {known.tables - there}")
    expect(there <= known.tables | known.unsure, f"tables that were dropped are there: {there - known.tables - known.unsure}")
    for table in there:
        rows = session.values(f"select count(*), count(*) filter (where v = 'v' || id) from made_{table}")
        expect(rows == [("50", "50")], f"made_{table}: {rows}")
    known.tables, known.unsure = there, set()
    session.close()


def check(binary, device):
    done = subprocess.run([binary, "check", str(device.data)], capture_output=True, text=True)
    # A directory in which the creation of a database was cut off is none yet.
    if done.returncode and "there is no database" not in done.stdout + done.stderr:
        raise Failed(f"check: {done.stdout[-300:]}{done.stderr[-600:]}")


def start(binary, device, library, log, rng, twice):
    """Starts the server on what is left; `twice`: after the power has gone once more while it recovers."""
    server = Server(binary, device, library, log)
    if twice:
        time.sleep(rng.random() * 0.5)
        server.kill()
        device.cut(rng, rng.random() < 0.5)
        server = Server(binary, device, library, log)
    server.wait()
    return server


def rounds(options, library, work, log):
    device, known = Device(work), Known()
    rng = random.Random(options.seed)
    # The first start, which makes the database, is cut off a few times.
    for _ in range(2):
        server = start(options.clearway, device, library, log, rng, True)
        server.kill()
        device.cut(rng, rng.random() < 0.5)
    server = start(options.clearway, device, library, log, rng, False)
    prepare(server.port)
    for number in range(1, options.rounds + 1):
        mixed, twice = number % 2 == 0, number % 3 == 0
        load = Load(server.port, known, f"{options.seed}/{number}")
        time.sleep(0.3 + rng.random() * 2.5)
        server.kill()
        load.end()
        names, files = device.cut(rng, mixed)
        check(options.clearway, device)
        server = start(options.clearway, device, library, log, rng, twice)
        verify(server.port, known)
        print(f"round {number}: {sum(known.history)} transfers, {sum(known.long)} long values, {known.next_table} tables; unsynced were "
              f"bytes of {files} files and names in {names} directories{', of which a part survived' if mixed else ''}", flush=True)
        yield number
    for at, lie in enumerate(["/wal/", "names"], options.rounds + 1):
        spare = Device(work / f"lies-{at}")
        server.kill()
        known = Known()
        server = start(options.clearway, spare, library, log, rng, False)
        prepare(server.port)
        found_out(options, library, log, server, spare, known, lie)
        yield at


def found_out(options, library, log, server, device, known, lie):
    """A device that lies loses what was acknowledged, or the server does not start: does this test see it?"""
    rng = random.Random(f"{options.seed}/{lie}")
    server.kill()
    device.cut(rng, False)
    server = Server(options.clearway, device, library, log, lie)
    server.wait()
    load = Load(server.port, known, f"{options.seed}/{lie}")
    time.sleep(3)
    server.kill()
    load.end()
    device.cut(rng, False)
    try:
        check(options.clearway, device)
        server = Server(options.clearway, device, library, log)
        server.wait()
        verify(server.port, known)
    except Failed as told:
        print(f"a device that forgets the syncs of {lie} was found out: {str(told)[-200:].strip()}", flush=True)
        return
    raise Failed(f"a device that forgets the syncs of {lie} was not found out")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clearway", nargs="?", default=os.environ.get("CARGO_TARGET_DIR", "target") + "/debug/clearway")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="clearway-powercut.", dir=os.environ.get("TMPDIR"))).resolve()
    library = work / "powercut.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "powercut.c", "-ldl", "-lpthread"], check=True)
    passed = 0
    with open(work / "server.log", "ab+") as log:
        try:
            for passed in rounds(options, library, work, log):
                pass
        except (Failed, Gone, RuntimeError) as error:
            print(f"powercut: seed {options.seed}, round {passed + 1}: {error}; the files are in {work}", file=sys.stderr)
            print(f"{passed} passed, 1 failed")
            # The server, if there is one, is this program's child.
            os._exit(1)
    shutil.rmtree(work)
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
