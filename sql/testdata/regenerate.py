#!/usr/bin/env python3
"""Rewrites the *.out files beside this script from a PostgreSQL 15 server.

Usage: regenerate.py HOST-OR-SOCKET-DIR PORT USER DATABASE [NAME ...]

Each line of NAME.sql is one query, run alone in a transaction that is rolled back. The line of NAME.out is
either `ok`, or `type-oid[,type-oid...] | value[,value...]` of the first row, or `ERROR code position message`
with DETAIL and HINT behind it. Files whose name begins with `syntax` record only errors of syntax; those whose name
begins with `select` record all rows, with ` ; ` between them.
"""
import os, socket, struct, sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Connection:
    def __init__(self, host, port, user, database):
        if host.startswith("/"):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(f"{host}/.s.PGSQL.{port}")
        else:
            self.sock = socket.create_connection((host, port))
        self.buf = b""
        body = struct.pack("!i", 196608)
        for k, v in (("user", user), ("database", database), ("client_encoding", "UTF8"), ("TimeZone", "UTC")):
            body += k.encode() + b"\0" + v.encode() + b"\0"
        body += b"\0"
        self.sock.sendall(struct.pack("!i", len(body) + 4) + body)
        while self.message()[0] != b"Z":
            pass

    def take(self, n):
        while len(self.buf) < n:
            self.buf += self.sock.recv(65536)
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def message(self):
        kind = self.take(1)
        (length,) = struct.unpack("!i", self.take(4))
        return kind, self.take(length - 4)

    def query(self, sql):
        body = sql.encode() + b"\0"
        self.sock.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        types, rows, error = [], [], None
        while True:
            kind, data = self.message()
            if kind == b"T":
                (n,) = struct.unpack("!h", data[:2])
                at, types = 2, []
                for _ in range(n):
                    end = data.index(b"\0", at)
                    types.append(str(struct.unpack("!ihihih", data[end + 1 : end + 19])[2]))
                    at = end + 19
            elif kind == b"D":
                (n,) = struct.unpack("!h", data[:2])
                at, row = 2, []
                rows.append(row)
                for _ in range(n):
                    (size,) = struct.unpack("!i", data[at : at + 4])
                    at += 4
                    row.append("NULL" if size < 0 else data[at : at + size].decode())
                    at += max(size, 0)
            elif kind == b"E" and error is None:
                fields = {f[:1]: f[1:].decode() for f in data.split(b"\0") if f}
                error = f"ERROR {fields[b'C']} {fields.get(b'P', '-')} {fields[b'M']}"
                for key, label in ((b"D", "DETAIL"), (b"H", "HINT")):
                    if key in fields:
                        error += f" | {label}: {fields[key]}"
            elif kind == b"Z":
                if error:
                    return error
                if not types or (not rows and not self.all_rows):
                    return "ok"
                shown = [",".join(row) for row in rows]
                return ",".join(types) + " | " + " ; ".join(shown if self.all_rows else shown[:1])


def main():
    host, port, user, database = sys.argv[1:5]
    names = sys.argv[5:] or sorted(f[:-4] for f in os.listdir(HERE) if f.endswith(".sql"))
    connection = Connection(host, int(port), user, database)
    for name in names:
        out = []
        connection.all_rows = name.startswith("select")
        with open(f"{HERE}/{name}.sql") as lines:
            for line in lines:
                line = line.rstrip("\n")
                if not line or line.startswith("-- "):
                    out.append(line)
                    continue
                result = connection.query(line)
                connection.query("ROLLBACK")
                if name.startswith("syntax") and not result.startswith("ERROR 42601"):
                    result = "ok"
                out.append(result.replace("\n", "\\n"))
        with open(f"{HERE}/{name}.out", "w") as file:
            file.write("\n".join(out) + "\n")


main()
