"""A psql that is fed one piece of a script at a time and tells, for each, what was printed and which SQLSTATE it ended with."""
import os, re, selectors, subprocess, time
from dataclasses import dataclass

MARK = "\x1e"
ENVIRONMENT = {"PGTZ": "PST8PDT", "PGDATESTYLE": "Postgres, MDY", "PGOPTIONS": "-c intervalstyle=postgres_verbose", "LC_ALL": "C.UTF-8",
               "PGCONNECT_TIMEOUT": "20"}


@dataclass
class Answer:
    output: str
    state: str
    broken: bool = False  # no answer in time, or the connection ended


class Session:
    def __init__(self, port, database, directory, source, seconds):
        self.port, self.database, self.directory, self.seconds = port, database, directory, seconds
        self.environment = {**os.environ, **ENVIRONMENT, "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres",
                            "PG_ABS_SRCDIR": source, "PG_ABS_BUILDDIR": directory, "PG_LIBDIR": "/usr/lib/postgresql/15/lib", "PG_DLSUFFIX": ".so"}
        self.process = None
        self.count = 0

    def start(self):
        # stdbuf: psql would keep its output until the pipe's buffer is full.
        command = ["stdbuf", "-oL", "psql", "-X", "-q", "-d", self.database, "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment,
                                        cwd=self.directory)
        os.set_blocking(self.process.stdout.fileno(), False)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self):
        """Ends the session as the end of a script does."""
        if self.process:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                pass
            self.stop()

    def read_until(self, mark, deadline):
        """Everything up to the line that begins with `mark`; that line is None if it did not come."""
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                if not selector.select(max(0, deadline - time.monotonic())):
                    continue
                part = self.process.stdout.read()
                if part == b"":
                    break
                data += part or b""
                found = data.rfind(mark)
                # A script that sets ECHO has the command shown before it is executed.
                if found >= 0 and data.endswith(b"\n") and data[found + len(mark):].strip() != b":SQLSTATE":
                    return data[:found].decode("utf-8", "replace"), data[found + len(mark):].decode("ascii", "replace").strip()
        return data.decode("utf-8", "replace"), None

    def run(self, piece):
        """Executes one piece. A session that broke is begun anew with the next one."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        self.count += 1
        mark = f"{MARK}{self.count} "
        # A piece whose conditional block is skipped leaves the variable as it is set here.
        text = f"\\set SQLSTATE 00000\n{self.sent(piece)}\n\\echo {mark}:SQLSTATE\n"
        try:
            self.process.stdin.write(text.encode("utf-8", "surrogateescape"))
            self.process.stdin.flush()
        except OSError:
            pass
        output, state = self.read_until(mark.encode(), time.monotonic() + self.seconds)
        if state is None:
            ended = self.process.poll() is not None
            self.stop()
            return Answer(output + ("(psql ended)" if ended else "(no answer)"), "", broken=True)
        if piece.command and state == "00000" and (error := re.search(r"^(.*ERROR:.*)$", output, re.M)):
            state = "errcm"  # psql's own queries do not set the variable
        return Answer(output, state)

    def sent(self, piece):
        """A COPY whose data follow becomes a \\copy from a file: were it refused, psql would read the data as statements."""
        if piece.data is None:
            return piece.text
        path = f"{self.directory}/copied"
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(piece.data)
        plain = re.sub(r"--[^\n]*", " ", piece.text)
        start = re.search(r"\bcopy\b", plain, re.I).end()
        line = re.sub(r"\bfrom\s+stdin\b", lambda _: f"from '{path}'", plain[start:].rstrip().rstrip(";"), count=1, flags=re.I | re.S)
        return "\\copy " + re.sub(r"\s+", " ", line)
