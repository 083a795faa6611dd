#!/usr/bin/env python3
"""Queries that sqlsmith made on PostgreSQL, replayed on a Clearway that has 2 GB of memory, while another session reads one row after the other.

  sqlsmith.py CLEARWAY                                        the queries of tests/sqlsmith/queries.sql
  sqlsmith.py CLEARWAY --make N [--seed N] [--postgres URL]   N new ones: sqlsmith reads the catalog of the PostgreSQL at URL, in a database of its own,
                       [--keep FILE]                          and for as many more that of Clearway, whose functions all exist; FILE gets those that
                                                              did not fail at once

Each query runs in a transaction that is rolled back, with statement_timeout. It may give rows or any error but XX000; the process stays the same; it
ends within its timeout and a tenth of a second (times --factor) of processor time; point reads go on; at the end the server is as small as before.
The last line is `N passed, N failed`.
"""
import argparse, collections, os, re, subprocess, sys, time

import ends

HERE = os.path.dirname(os.path.realpath(__file__))
TIMEOUT_MS = 500
# What a server may have at the end beyond what it had after the first queries.
GROWTH_MB = 200
ABSENT = r"any\w+|macaddr8?|tid|tsvector|tsquery|money|xid8|aclitem|txid_snapshot|pg_snapshot"


def psql(url, *arguments):
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url, *arguments], check=True, stdin=subprocess.DEVNULL)


def smith(url, count, seed):
    """New queries, half of them without relations of the catalog. What nearly all of them have and Clearway does not is taken out: TABLESAMPLE, and
    the types of their nulls."""
    for options in ([], ["--exclude-catalog"]):
        command = ["sqlsmith", f"--target={url}", "--dry-run", f"--max-queries={(count + 1) // 2}", f"--seed={seed}", *options]
        out = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if out.returncode:
            sys.exit(f"sqlsmith: {out.stderr[-1000:]}")
        text = re.sub(r"tablesample (system|bernoulli) \([0-9.]+\)", "", out.stdout)
        text = re.sub(rf"cast\(null as ({ABSENT})\)", "cast(null as int4)", text)
        yield from (query.strip() for query in re.split(r";\s*\n", text) if query.strip())


def made(arguments):
    """Queries for PostgreSQL's functions and relations."""
    name = "clearway_sqlsmith"
    base = arguments.postgres.rstrip("/")
    psql(base + "/postgres", "-c", f"drop database if exists {name}", "-c", f"create database {name}")
    psql(f"{base}/{name}", "-f", f"{HERE}/sqlsmith/setup.sql")
    yield from smith(f"{base}/{name}", arguments.make, arguments.seed)
    psql(base + "/postgres", "-c", f"drop database {name}")


def kept():
    text = open(f"{HERE}/sqlsmith/queries.sql").read()
    return [query.strip() for query in re.split(r";\s*\n", text) if query.strip()]


class Replay:
    def __init__(self, arguments):
        self.arguments, self.passed, self.failed, self.states = arguments, 0, 0, collections.Counter()
        self.texts = collections.Counter()
        self.begin()

    def begin(self):
        self.server = ends.Server(self.arguments.clearway, 2048)
        self.session = ends.Session(self.server.port)
        for sql in ends.statements(f"{HERE}/sqlsmith/setup.sql"):
            rows, state = self.session.run(sql)
            if state:
                sys.exit(f"setup: {sql[:100]}: {state} {self.session.text}")
        for sql in ("create table point (id int primary key, v text)", "insert into point values (7, 'seven')"):
            self.session.run(sql)
        self.reader = ends.Reader(self.server.port)
        self.reader.start()
        self.connect()

    def connect(self):
        self.session = ends.Session(self.server.port, f"-c statement_timeout={TIMEOUT_MS}")

    def verdict(self, ok, what):
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        if not ok:
            print(f"FAILED: {what}", flush=True)

    def one(self, query):
        """How the query ended."""
        shown = re.sub(r"\s+", " ", query)[: self.arguments.width]
        cpu, began = self.server.cpu(), time.monotonic()
        try:
            self.session.run("begin")
            rows, state = self.session.run(query)
            self.session.run("rollback")
        except (ends.Gone, OSError) as error:
            if not self.server.alive() or self.reader.failed:
                self.verdict(False, f"the server is gone: {error!r}: {shown}\n{open(self.server.log.name).read()[-2000:]}")
                self.begin()
                return "gone"
            # A query may end its own session.
            state = "57P01"
            self.connect()
        took = min(time.monotonic() - began, self.server.cpu() - cpu)
        self.states[state or "00000"] += 1
        if state:
            self.texts[f"{state} {self.session.text[:80]}"] += 1
        late = took > TIMEOUT_MS / 1000 + ends.END_S * self.arguments.factor
        ok = state != "XX000" and not late and not self.reader.failed
        text = self.session.text if state else ""
        self.verdict(ok, f"{took * 1000:.0f} ms, {state} {text}, {self.reader.failed or ''}: {shown}")
        return state or "00000"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clearway")
    parser.add_argument("--make", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", default="postgresql://postgres@127.0.0.1:5432")
    parser.add_argument("--keep", default="")
    parser.add_argument("--factor", type=float, default=1.5)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--width", type=int, default=300)
    arguments = parser.parse_args()
    queries = list(made(arguments)) if arguments.make else kept()
    replay = Replay(arguments)
    if arguments.make:
        queries += smith(f"postgresql://postgres@127.0.0.1:{replay.server.port}/postgres", arguments.make, arguments.seed)
    small, good = None, []
    for at, query in enumerate(queries):
        state = replay.one(query)
        if state in ("00000", "57014", "XX000") or state[:2] in ("22", "23"):
            good.append(query)
        if at == min(100, len(queries) // 2):
            small = replay.server.resident_mb()
    replay.session.socket.close()
    if small is not None:
        grown = replay.server.resident_mb() - small
        replay.verdict(grown <= GROWTH_MB, f"the server has grown by {grown} MB since its first queries")
    replay.reader.going = False
    print(", ".join(f"{state} {count}" for state, count in replay.states.most_common()))
    if arguments.verbose:
        print("\n".join(f"{count} {text}" for text, count in replay.texts.most_common(40)))
    print(f"{replay.reader.count} point reads meanwhile, the slowest {replay.reader.longest * 1000:.0f} ms")
    if arguments.keep:
        with open(arguments.keep, "w") as out:
            out.writelines(f"{query};\n" for query in good)
    replay.server.process.terminate()
    code = replay.server.process.wait(60)
    replay.verdict(code == 0, f"the server ended with {code}")
    print(f"{replay.passed} passed, {replay.failed} failed")
    sys.exit(replay.failed != 0)


main()
