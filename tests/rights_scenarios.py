#!/usr/bin/env python3
"""What roles do to each other, step by step, on Clearway and on PostgreSQL 15: the answers are the same.

tests/rights/*.sql hold the steps. A statement ends with `;` at the end of a line. Of each answer the SQLSTATE, the DETAIL of an error, the rows
(sorted), the command's tag and the SQLSTATEs of warnings count. Lines that begin so say more:

  == NAME            a new scenario: all sessions end, and so do the objects and roles of the one before
  $db                stands for the name of the database
  @NAME [ROLE]       the session that the next statements run in; it logs in as ROLE (else `postgres`) at its first mention
  -- here: ANSWER    the next statement's answer is not PostgreSQL's, but this one (a SQLSTATE, or what the failure below prints); say why above it
  -- begins          the next statement has to wait: other sessions go on when it waits for a lock on both servers
  -- ends            the answer to that statement, which has been sent by the same session

The last line is `N passed, N failed`.

usage: tests/rights_scenarios.py CLEARWAY_PORT POSTGRES_PORT [FILE ...]     (both on 127.0.0.1, superuser postgres, no password)
"""
import os
import select
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Everything that a scenario may leave behind.
CLEAN = """
select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'
""".strip()


class Session:
    """One connection, simple queries only."""

    def __init__(self, port, user, database):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        body = struct.pack(">I", 196608) + f"user\0{user}\0database\0{database}\0\0".encode()
        self.socket.sendall(struct.pack(">I", len(body) + 4) + body)
        self.reader = self.socket.makefile("rb")
        self.first = self.answer()

    def answer(self):
        out, rows = [], []
        while True:
            tag = self.reader.read(1)
            if not tag:
                return "closed " + " ".join(out)
            body = self.reader.read(struct.unpack(">I", self.reader.read(4))[0] - 4)
            if tag in b"EN":
                fields = {f[:1]: f[1:].decode() for f in body.split(b"\0") if f}
                code = fields[b"C"]
                self.message = fields[b"M"]
                if tag == b"E":
                    out.append(code + (f" ({fields[b'D']})" if b"D" in fields else ""))
                elif code != "00000":
                    out.append(f"{fields[b'S']} {code}")
            elif tag == b"D":
                rows.append(row(body))
            elif tag == b"d":
                rows.append(body.decode().rstrip("\n"))
            elif tag == b"A":
                out.append("notified")
            elif tag == b"G":
                self.socket.sendall(b"c\0\0\0\4")
            elif tag == b"C":
                out.append(body[:-1].decode())
            elif tag == b"Z":
                return " ".join(list(dict.fromkeys(out)) + [f"[{r}]" for r in sorted(rows)])

    def send(self, sql):
        self.message = ""
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)

    def run(self, sql):
        try:
            self.send(sql)
            return self.answer()
        except OSError as e:
            return f"closed ({type(e).__name__})"


def row(body):
    values, at = [], 2
    for _ in range(struct.unpack(">H", body[:2])[0]):
        (length,) = struct.unpack(">i", body[at : at + 4])
        at += 4
        values.append("null" if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return "|".join(values)


class Server:
    def __init__(self, port):
        self.port, self.sessions, self.number = port, {}, 0
        self.begin()

    def begin(self):
        """A new database; the roles of the last scenario go with their objects."""
        for session in self.sessions.values():
            session.socket.close()
        self.sessions = {}
        root = Session(self.port, "postgres", "postgres")
        root.run(CLEAN)
        for database in root.run("select datname from pg_database where datname like 'a_scenario%'").split("[")[1:]:
            # A session that was told to end may take a moment.
            for _ in range(200):
                gone = root.run(f"drop database {database.strip(' ]')} with (force)")
                if not gone.startswith("55006"):
                    break
                time.sleep(0.05)
            assert gone == "DROP DATABASE", f"{self.port}: {gone} {root.message}"
        words = "'all', 'current_role', 'current_user', 'default', 'select', 'session_user', 'user'"
        roles = f"select rolname from pg_roles where rolname like 'a\\_%' or rolname in ({words})"
        for role in [r.strip(" ]") for r in root.run(roles).split("[")[1:]]:
            root.run(f'drop owned by "{role}" cascade')
        for role in [r.strip(" ]") for r in root.run(roles).split("[")[1:]]:
            gone = root.run(f'drop role "{role}"')
            assert gone == "DROP ROLE", f"{self.port}: {role}: {gone} {root.message}"
        self.number += 1
        self.database = f"a_scenario{self.number}"
        made = root.run(f"create database {self.database}")
        assert made == "CREATE DATABASE", made
        self.sessions["postgres"] = Session(self.port, "postgres", self.database)

    def wait_for(self, session):
        """Until a session waits for a lock, or has answered all the same."""
        for _ in range(600):
            waiting = self.sessions["postgres"].run("select count(*) > 0 from pg_locks where not granted")
            if waiting.endswith("[t]") or select.select([session.socket], [], [], 0)[0]:
                return
            time.sleep(0.05)

    def session(self, name, user):
        if name not in self.sessions:
            self.sessions[name] = Session(self.port, user, self.database)
        return self.sessions[name]


def steps(path):
    """What a file says: ("begin", name), ("session", name, role), ("run", sql, expected, line)."""
    text, expected, begins = [], None, False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip()
            if not text and line.startswith("== "):
                yield "begin", line[3:]
            elif not text and line.startswith("@"):
                name, *role = line[1:].split()
                yield "session", name, role[0] if role else "postgres"
            elif not text and line.startswith("-- here:"):
                expected = line[8:].strip()
            elif not text and line == "-- begins":
                begins = True
            elif not text and line == "-- ends":
                yield "run", None, expected, number
                expected = None
            elif line and (text or not line.startswith("--")):
                text.append(line)
                if line.endswith(";"):
                    yield ("send" if begins else "run"), "\n".join(text), expected, number
                    text, begins = [], False
                    expected = None


def main():
    servers = [Server(int(port)) for port in sys.argv[1:3]]
    directory = f"{HERE}/rights"
    files = sys.argv[3:] or sorted(f"{directory}/{f}" for f in os.listdir(directory) if f.endswith(".sql"))
    passed = failed = 0
    for path in files:
        at = ("postgres", "postgres")
        for step in steps(path):
            if step[0] == "begin":
                for server in servers:
                    server.begin()
                at = ("postgres", "postgres")
                continue
            if step[0] == "session":
                at = step[1:]
                firsts = [server.session(*at).first.split(" ")[0] for server in servers]
                if firsts[0] != firsts[1]:
                    failed += 1
                    print(f"{path}: login as {at[1]}: {firsts[0]}; PostgreSQL: {firsts[1]}")
                continue
            _, sql, expected, line = step
            sessions = [server.session(*at) for server in servers]
            if step[0] == "send":
                for session, server in zip(sessions, servers):
                    session.send(sql.replace("$db", server.database))
                    server.wait_for(session)
                continue
            if sql is None:
                sql, (ours, theirs) = "the answer", (s.answer() for s in sessions)
            else:
                ours, theirs = (s.run(sql.replace("$db", server.database)) for s, server in zip(sessions, servers))
            wanted = theirs if expected is None else expected
            if ours == wanted and (expected is None or expected != theirs):
                passed += 1
            else:
                failed += 1
                note = "" if expected is None else f"\n  expected here: {expected}"
                print(f"{os.path.basename(path)}:{line}: @{at[0]}: {sql}\n  Clearway:   {ours} {sessions[0].message}\n"
                      f"  PostgreSQL: {theirs} {sessions[1].message}{note}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed == 0


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
