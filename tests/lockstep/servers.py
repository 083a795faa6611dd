"""The two servers: a PostgreSQL 15 and a `clearway serve`, each started in a scratch directory on a free port, with settings under which
they must agree."""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

from wire import Gone, Session

POSTGRES = os.environ.get("POSTGRES_BIN", "/usr/lib/postgresql/15/bin")
# Rows are visited in the order of their keys, as in Clearway, and who closes a deadlock is its victim: whoever waited before has looked by then.
POSTGRES_CONF = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 40
shared_buffers = 32MB
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
autovacuum = off
deadlock_timeout = 1ms
enable_seqscan = off
enable_bitmapscan = off
enable_hashjoin = off
enable_mergejoin = off
max_parallel_workers_per_gather = 0
jit = off
log_min_messages = fatal
log_min_error_statement = panic
"""
CLEARWAY_CONF = """
ddl_block_window = -1
password_on_loopback = off
"""
OPTIONS = "-c search_path=w -c client_min_messages=warning"


class Server:
    """A process, a control session, and the sessions of the schedules."""

    def __init__(self, name, directory):
        self.name, self.directory = name, directory
        self.process, self.port, self.control, self.sessions = None, None, None, []

    def open(self, count):
        """Sessions for the schedules, so that there are at least that many."""
        if self.control is None:
            self.control = Session(self.port, OPTIONS)
        while len(self.sessions) < count:
            self.sessions.append(Session(self.port, OPTIONS))

    def blockers(self, waiting):
        """For each of these sessions the set of sessions that stand in its way, by number from 1; 0 is a stranger."""
        numbers = {str(s.pid): n + 1 for n, s in enumerate(self.sessions)}
        asked = ", ".join(f"pg_blocking_pids({self.sessions[n].pid})" for n in waiting)
        row = self.control.values(f"select {asked}")[0]
        return {n: tuple(numbers.get(p, 0) for p in (cell or "{}")[1:-1].split(",") if p) for n, cell in zip(waiting, row)}

    def clean(self):
        """Ends whatever the sessions are in."""
        if any(s.busy or s.status != "I" for s in self.sessions):
            for s in self.sessions:
                if not s.busy and s.status != "I":
                    s.ask("rollback")
            for _ in range(200):
                busy = [s for s in self.sessions if s.busy]
                if not busy:
                    break
                for s in busy:
                    self.control.ask(f"select pg_cancel_backend({s.pid})")
                for s in busy:
                    try:
                        s.wait(0.05)
                        if s.status != "I":
                            s.ask("rollback")
                    except Gone as gone:
                        if "no answer" not in str(gone):
                            raise
            else:
                raise Gone("a session does not end")
        for s in self.sessions:
            s.send("deallocate all; close all; drop table if exists pg_temp.tz; select pg_advisory_unlock_all()")
        for s in self.sessions:
            s.wait()

    def close(self):
        for s in [*self.sessions, *([self.control] if self.control else [])]:
            s.close()
        self.sessions, self.control = [], None


class Postgres(Server):
    def __init__(self, directory):
        super().__init__("PostgreSQL", os.path.join(directory, "postgres"))
        self.as_user = {}
        if os.getuid() == 0:
            user = next(pwd.getpwnam(n) for n in ("postgres", "nobody") if n in {u.pw_name for u in pwd.getpwall()})
            self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.makedirs(self.directory)
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        made = subprocess.run([f"{POSTGRES}/initdb", "-D", f"{self.directory}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale",
                               "--no-sync"], cwd="/", **quiet, **self.as_user)
        if made.returncode:
            raise SystemExit(f"initdb: {made.stderr.decode()}")
        with open(f"{self.directory}/data/postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(POSTGRES_CONF)

    def start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        log = open(f"{self.directory}.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([f"{POSTGRES}/postgres", "-D", f"{self.directory}/data", "-p", str(self.port)], cwd="/",
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.as_user)
        for _ in range(600):
            try:
                self.control = Session(self.port, OPTIONS)
                return
            except (OSError, Gone):
                if self.process.poll() is not None:
                    raise SystemExit(f"PostgreSQL did not start: {open(log.name, encoding='utf-8').read()[-2000:]}")
                time.sleep(0.05)
        raise SystemExit("PostgreSQL did not start in 30 s")

    def stop(self):
        self.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


class Clearway(Server):
    def __init__(self, directory, binary):
        super().__init__("Clearway", os.path.join(directory, "clearway"))
        self.binary, self.log = binary, os.path.join(directory, "clearway.log")
        with open(f"{self.directory}.conf", "w", encoding="utf-8") as conf:
            conf.write(CLEARWAY_CONF)

    def start(self):
        if os.path.exists(self.log):
            os.rename(self.log, self.log + ".before")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([self.binary, "serve", "--data", self.directory, "--config", f"{self.directory}.conf",
                                             "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(1200):
            with open(self.log, encoding="utf-8") as log:
                lines = log.read().splitlines()
            if any(line.startswith("connect with") for line in lines):
                listening = next(line for line in lines if line.startswith("listening at 127.0.0.1:"))
                self.port = int(listening.rsplit(":", 1)[1])
                self.control = Session(self.port, OPTIONS)
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit("clearway did not start: " + "\n".join(lines[-5:]))

    def stop(self):
        self.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.close()

    def check(self):
        """What `clearway check` says of the files, none if it finds no damage. The server must be down."""
        told = subprocess.run([self.binary, "check", self.directory], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return None if told.returncode == 0 else (told.stdout + told.stderr)[-2000:]

    def renew(self):
        """An empty database at the place of one that a schedule has damaged."""
        self.kill()
        shutil.rmtree(self.directory)
        self.start()
