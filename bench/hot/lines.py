#!/usr/bin/env python3
"""Which cache lines a statement of one of many sessions finds cold: a server under callgrind's cache simulation, driven by one process with many connections.

usage: bench/hot/lines.py PATH-TO-clearway OUT point|hot CLIENTS ROUNDS on|off       (LL=SIZE,WAYS,64: the last level that is simulated)

Each connection sends one prepared statement a round. The counts of ROUNDS rounds, after five without counts, are in OUT.1: misses by source line, if the
program was built with CARGO_PROFILE_RELEASE_DEBUG=line-tables-only. `off`: without the recorders that `bench/hot/recorders.py` switches off. What happens by
the clock counts too much, since the server is slow. docs/measured/waits-cost.md has the figures.
"""
import os, re, resource, selectors, shutil, signal, socket, struct, subprocess, sys, tempfile, time

binary, out, load, clients, rounds, mode = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6]
OFF = ["-c", "recorders=none", "-c", "lock_history_min=1000000s", "-c", "log_lock_waits=off",
       *(part for pattern in ("idle", "wait/io/%", "wait/lock/%", "wait/synch/cond/%") for part in ("-c", f"performance_schema_instrument={pattern}=OFF"))]
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
scratch = tempfile.mkdtemp()
log = open(scratch + "/log", "w")
LL = os.environ.get("LL", "1048576,16,64")
vg = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--cache-sim=yes", "--D1=49152,12,64", f"--LL={LL}", "--instr-atstart=no", "--dump-instr=no", "--fair-sched=yes", "--compress-strings=no", "--compress-pos=no"]
opts = OFF if mode == "off" else []
data = scratch + "/data"
SQL = {"point": ("SELECT v FROM t WHERE id = $1", True), "hot": ("UPDATE hot SET v = v + 1 WHERE id = 1", False)}[load]

def start(prefix):
    p = subprocess.Popen([*prefix, binary, "serve", "--data", data, "--listen", "127.0.0.1:0", *opts], stdout=log, stderr=log)
    while True:
        f = re.findall(r"connect with: psql -h 127.0.0.1 -p (\d+)", open(log.name).read())
        if f: return p, int(f[-1])
        assert p.poll() is None, open(log.name).read()
        time.sleep(0.1)

def msg(t, b): return t + struct.pack("!I", len(b) + 4) + b
def bind(n):
    if SQL[1]:
        v = str(n).encode()
        b = b"\0" + b"s\0" + struct.pack("!HHI", 0, 1, len(v)) + v + struct.pack("!H", 0)
    else:
        b = b"\0" + b"s\0" + struct.pack("!HHH", 0, 0, 0)
    return msg(b"B", b) + msg(b"E", b"\0" + struct.pack("!I", 0)) + msg(b"S", b"")

class Conn:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        self.s.sendall(struct.pack("!I", len(body) + 4) + body)
        self.buf = b""; self.ready()
        self.s.sendall(msg(b"P", b"s\0" + SQL[0].encode() + b"\0" + struct.pack("!H", 0)) + msg(b"S", b""))
        self.ready()
    def feed(self):
        d = self.s.recv(65536); assert d; self.buf += d
        done = False
        while len(self.buf) >= 5:
            n = struct.unpack("!I", self.buf[1:5])[0] + 1
            if len(self.buf) < n: break
            t = self.buf[:1]
            assert t != b"E", self.buf[:n]
            self.buf = self.buf[n:]
            if t == b"Z": done = True
        return done
    def ready(self):
        while not self.feed(): pass

try:
    p, port = start([])
    env = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
    subprocess.run(["psql", "-XAtq", "-c", "create table t (id int primary key, v text)", "-c", "insert into t select i, 'value ' || i from generate_series(1,2000) i", "-c", "create table hot (id int primary key, v int)", "-c", "insert into hot values (1,0)", "-c", "analyze"], env=env, check=True)
    p.send_signal(signal.SIGTERM); p.wait()
    open(log.name, "w").close()
    log = open(scratch + "/log2", "w")
    p, port = start(vg)
    conns = [Conn(port) for _ in range(clients)]
    sel = selectors.DefaultSelector()
    for c in conns: sel.register(c.s, selectors.EVENT_READ, c)
    def round_(k):
        for i, c in enumerate(conns): c.s.sendall(bind((i * 7 + k) % 2000 + 1))
        left = len(conns)
        while left:
            for key, _ in sel.select():
                if key.data.feed(): left -= 1
    for k in range(4): round_(k)
    subprocess.run(["callgrind_control", "-i", "on", str(p.pid)], check=True, stdout=subprocess.DEVNULL)
    t = time.time()
    for k in range(1): round_(k)
    subprocess.run(["callgrind_control", "-z", str(p.pid)], check=True, stdout=subprocess.DEVNULL)
    for k in range(rounds): round_(k + 5)
    print(load, clients, rounds, mode, "statements", clients * rounds, "seconds", time.time() - t)
    subprocess.run(["callgrind_control", "-d", str(p.pid)], check=True, stdout=subprocess.DEVNULL)
    for c in conns: c.s.close()
finally:
    p.kill(); p.wait(); shutil.rmtree(scratch)
