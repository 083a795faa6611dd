"""One session over PostgreSQL's wire protocol: simple queries, sent without waiting for their answer."""
import select
import socket
import struct
from dataclasses import dataclass, field


@dataclass
class Reply:
    """What a server answered to one query: for each statement its tag and rows, and the error that ended it."""
    results: list = field(default_factory=list)  # (tag, rows)
    error: tuple = None  # (SQLSTATE, message, detail)
    notices: list = field(default_factory=list)
    status: str = "I"  # I idle, T in a transaction, E in a failed one

    def state(self):
        return self.error[0] if self.error else None


class Gone(Exception):
    """The server closed the connection."""


class Session:
    """Sends queries and takes in answers as they arrive. `busy` while an answer is due."""

    def __init__(self, port, options="", database="postgres", user="postgres"):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fields = {"user": user, "database": database, "options": options, "application_name": "lockstep"}
        body = struct.pack("!i", 196608) + b"".join(f"{k}\0{v}\0".encode() for k, v in fields.items()) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.buffer = b""
        self.pid = None
        self.status = "I"
        self.busy = True
        self.reply = Reply()
        self.rows = []
        self.last = None
        self.wait()
        if self.last.error:
            raise Gone(self.last.error[1])

    def fileno(self):
        return self.socket.fileno()

    def send(self, sql):
        assert not self.busy, f"{sql}: the session still waits for an answer"
        body = sql.encode() + b"\0"
        self.reply, self.rows, self.busy = Reply(), [], True
        try:
            self.socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        except OSError as error:
            raise Gone(str(error)) from error

    def take_in(self):
        """Reads what has arrived; call it when the socket is readable. `busy` falls when the answer is complete."""
        try:
            got = self.socket.recv(1 << 16)
        except OSError as error:
            raise Gone(str(error)) from error
        if not got:
            raise Gone("the server closed the connection")
        self.buffer += got
        at, buffer = 0, self.buffer
        while len(buffer) - at >= 5:
            length = struct.unpack_from("!i", buffer, at + 1)[0]
            if len(buffer) - at < length + 1:
                break
            self.message(buffer[at:at + 1], buffer[at + 5:at + 1 + length])
            at += length + 1
        self.buffer = buffer[at:]

    def message(self, kind, body):
        if kind == b"D":
            self.rows.append(data_row(body))
        elif kind == b"C":
            self.reply.results.append((body[:-1].decode(), self.rows))
            self.rows = []
        elif kind in (b"E", b"N"):
            fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
            told = (fields.get(b"C", ""), fields.get(b"M", ""), fields.get(b"D", ""))
            if kind == b"E":
                self.reply.error, self.rows = told, []
                if fields.get(b"S") == "FATAL":
                    self.last, self.busy = self.reply, False
            else:
                self.reply.notices.append(told)
        elif kind == b"K":
            self.pid = struct.unpack_from("!i", body)[0]
        elif kind == b"Z":
            self.status = self.reply.status = body.decode()
            self.last, self.busy = self.reply, False

    def wait(self, seconds=60.0):
        """Waits for the end of the answer."""
        while self.busy:
            if not select.select([self.socket], [], [], seconds)[0]:
                raise Gone(f"no answer in {seconds:g} s")
            self.take_in()
        return self.last

    def ask(self, sql, seconds=60.0):
        self.send(sql)
        return self.wait(seconds)

    def values(self, sql):
        """The rows of the last statement; an error is raised."""
        reply = self.ask(sql)
        if reply.error:
            raise RuntimeError(f"{sql}: {reply.error}")
        return reply.results[-1][1]

    def close(self):
        self.socket.close()


def data_row(body):
    count = struct.unpack_from("!h", body)[0]
    at, row = 2, []
    for _ in range(count):
        length = struct.unpack_from("!i", body, at)[0]
        at += 4
        if length < 0:
            row.append(None)
        else:
            row.append(body[at:at + length].decode())
            at += length
    return tuple(row)
