#!/usr/bin/env python3
"""Every statement ends: the worst statements of tests/ends/*.sql, and shapes made by a generator, each stopped by statement_timeout, by a cancel
request or by SIGTERM, while another session reads one row after the other.

  ends.py CLEARWAY [--memory-mb N] [--seconds N] [--seed N]     all files; N seconds of generated statements (default 0: none)

A statement has to end within 100 ms of processor time after it was told to; what the server computed meanwhile is the measure, since the
machine may have other work. The server stays one process and answers throughout. The last line is `N passed, N failed`.
"""
import argparse, glob, os, random, re, resource, signal, socket, struct, subprocess, sys, tempfile, threading, time

# Of processor time; half as much again is allowed (--factor), as the figures of /proc come in steps of 10 ms and memory goes back in one call.
END_S = 0.1
HERE = os.path.dirname(os.path.realpath(__file__))


class Gone(Exception):
    """The server closed the connection."""


class Session:
    """A connection that speaks the simple protocol."""

    def __init__(self, port, options=""):
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.rest = b""
        body = struct.pack("!I", 196608)
        for key, value in (("user", "postgres"), ("database", "postgres"), ("options", options)):
            body += key.encode() + b"\0" + value.encode() + b"\0"
        body += b"\0"
        self.socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self.key = None
        self.answer()

    def message(self):
        while True:
            if len(self.rest) >= 5:
                length = struct.unpack_from("!I", self.rest, 1)[0] + 1
                if len(self.rest) >= length:
                    tag, body = self.rest[:1], self.rest[5:length]
                    self.rest = self.rest[length:]
                    return tag, body
            more = self.socket.recv(1 << 20)
            if not more:
                raise Gone()
            self.rest += more

    def answer(self):
        """The first columns of the rows, and the SQLSTATE of the error if there was one."""
        rows, state = [], None
        while True:
            tag, body = self.message()
            if tag == b"D":
                length = struct.unpack_from("!i", body, 2)[0] if body[:2] != b"\0\0" else -1
                if len(rows) < 100:
                    rows.append(None if length < 0 else body[6 : 6 + length].decode())
            elif tag == b"E":
                fields = {field[:1]: field[1:].decode(errors="replace") for field in body.split(b"\0") if field}
                state = fields[b"C"]
                self.text = fields[b"M"]
            elif tag == b"K":
                self.key = body
            elif tag == b"Z":
                return rows, state

    def send(self, sql):
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)

    def run(self, sql):
        self.send(sql)
        return self.answer()

    def cancel(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as other:
            other.sendall(struct.pack("!II", 16, 80877102) + self.key)
            other.recv(1)


class Server:
    def __init__(self, clearway, memory_mb, options=()):
        self.log = tempfile.NamedTemporaryFile(mode="r", suffix=".log")
        self.data = tempfile.TemporaryDirectory()
        limit = memory_mb << 20

        def bound():
            if limit:
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        command = [clearway, "serve", "--data", self.data.name, "--listen", "127.0.0.1:0", *options]
        with open(self.log.name, "w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, preexec_fn=bound)
        for _ in range(600):
            found = re.search(r"-p (\d+)", open(self.log.name).read())
            if found:
                break
            time.sleep(0.1)
        else:
            sys.exit("the server did not come up: " + open(self.log.name).read())
        self.port = int(found.group(1))

    def cpu(self):
        """Seconds of processor time so far."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.process.pid}/status").read()).group(1)) >> 10

    def alive(self):
        return self.process.poll() is None


class Reader(threading.Thread):
    """Another session's point reads."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.session, self.longest, self.count, self.failed, self.going = Session(port), 0.0, 0, None, True

    def run(self):
        try:
            while self.going:
                began = time.monotonic()
                rows, state = self.session.run("select v from point where id = 7")
                if rows != ["seven"]:
                    self.failed = f"{rows} {state}"
                self.longest = max(self.longest, time.monotonic() - began)
                self.count += 1
                time.sleep(0.002)
        except Exception as error:  # noqa: BLE001, whatever it is, the read did not come back
            self.failed = repr(error)


def statements(path):
    """Statements of a file, which end with a semicolon at the end of a line. `{...}` is Python."""
    text = "".join(line for line in open(path) if not line.startswith("--"))
    for part in re.split(r";\n", text):
        if part.strip():
            yield re.sub(r"\{\{(.*?)\}\}", lambda m: str(eval(m.group(1))), part.strip(), flags=re.S)  # noqa: S307


class Run:
    def __init__(self, arguments):
        self.arguments, self.passed, self.failed = arguments, 0, 0
        self.begin()

    def begin(self):
        self.server = Server(self.arguments.clearway, self.arguments.memory_mb)
        setup = Session(self.server.port)
        for sql in statements(f"{HERE}/ends/setup"):
            rows, state = setup.run(sql)
            if state:
                sys.exit(f"setup: {sql[:100]}: {state} {setup.text}")
        self.reader = Reader(self.server.port)
        self.reader.start()

    def verdict(self, ok, what):
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        if not ok or self.arguments.verbose:
            print(f"{'ok' if ok else 'FAILED'}: {what}", flush=True)

    def stopped(self, sql, how):
        """Runs a statement and stops it after a while; how much the server computed from then to its end."""
        session = Session(self.server.port, "-c statement_timeout=200" if how == "timeout" else "")
        session.send(sql)
        time.sleep(0.2)
        cpu, began = self.server.cpu(), time.monotonic()
        if how == "cancel":
            session.cancel()
        rows, state = session.answer()
        took = min(time.monotonic() - began, self.server.cpu() - cpu)
        return took, state, getattr(session, "text", "")

    def one(self, sql, how):
        name = re.sub(r"\s+", " ", sql)[:90]
        reads = self.reader.count
        try:
            took, state, text = self.stopped(sql, how)
        except Exception as error:  # noqa: BLE001
            self.verdict(False, f"{how}: {name}: {error!r}")
            if not self.server.alive() or self.reader.failed:
                self.begin()
            return
        ok = took <= END_S * self.arguments.factor and state != "XX000" and self.server.alive() and not self.reader.failed
        self.verdict(ok, f"{how}: {name}: {took * 1000:.0f} ms, {state} {text[:80]}, reads {self.reader.count - reads}, {self.server.resident_mb()} MB {self.reader.failed or ''}")

    def ends_by_itself(self, sql, answer):
        began = time.monotonic()
        try:
            rows, state = Session(self.server.port).run(sql)
        except Exception as error:  # noqa: BLE001
            self.verdict(False, f"{sql[:90]}: {error!r} instead of {answer}")
            if not self.server.alive() or self.reader.failed:
                self.begin()
            return
        self.verdict((rows or [state])[0] == answer, f"{sql[:90]}: {rows[:3]} {state} instead of {answer}, {time.monotonic() - began:.1f} s")

    def terminated(self, sql):
        """SIGTERM while statements without an end run."""
        sessions = [Session(self.server.port) for _ in range(4)]
        for session in sessions:
            session.send(sql)
        time.sleep(0.3)
        self.reader.going = False
        self.server.process.send_signal(signal.SIGTERM)
        try:
            code = self.server.process.wait(60)
        except subprocess.TimeoutExpired:
            self.server.process.kill()
            code = "none in 60 s"
        log = open(self.server.log.name).read()
        self.verdict(code == 0 and "did not end in time" not in log, f"SIGTERM: {sql[:90]}: exit {code}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clearway")
    parser.add_argument("--memory-mb", type=int, default=0)
    parser.add_argument("--factor", type=float, default=1.5)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    run = Run(parser.parse_args())
    for path in sorted(glob.glob(f"{HERE}/ends/endless*.sql")):
        for at, sql in enumerate(statements(path)):
            if run.arguments.only in sql:
                run.one(sql, ("timeout", "cancel")[at % 2])
    for name in ("answers", "deep"):
        for sql in statements(f"{HERE}/ends/{name}.sql"):
            question, answer = sql.rsplit("-->", 1)
            if run.arguments.only in sql:
                run.ends_by_itself(question.strip(), answer.strip())
    first = next(statements(f"{HERE}/ends/endless.sql"))
    run.terminated(first)
    print(f"{run.passed} passed, {run.failed} failed")
    sys.exit(run.failed != 0)


if __name__ == "__main__":
    main()
