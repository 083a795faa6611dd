"""A MariaDB of a test's own, with performance_schema, on a free port of this machine (Debian: mariadb-server, mariadb-client)."""
import os, shutil, signal, socket, subprocess

from checks import until

INSTRUMENTS = ["--performance-schema=ON", "--performance-schema-instrument=wait/synch/mutex/innodb/%=ON", "--performance-schema-instrument=wait/lock/metadata/sql/mdl=ON",
               "--performance-schema-consumer-events-waits-current=ON", "--performance-schema-consumer-events-statements-current=ON",
               "--performance-schema-consumer-events-statements-history=ON", "--innodb-buffer-pool-size=64M", "--skip-name-resolve", "--innodb-lock-wait-timeout=600"]


class Server:
    def __init__(self, directory):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.directory, self.data, self.process = directory, f"{directory}/mariadb", None
        made = subprocess.run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", f"--datadir={self.data}", *self.user()], text=True, capture_output=True)
        if made.returncode:
            raise SystemExit(f"{made.stdout}{made.stderr}\n0 passed, 1 failed")

    def user(self):
        return ["--user=root"] if os.getuid() == 0 else []

    def start(self, options=()):
        self.process = subprocess.Popen(["mariadbd" if shutil.which("mariadbd") else "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={self.data}", f"--socket={self.directory}/mariadb.socket",
                                         "--bind-address=127.0.0.1", f"--port={self.port}", *options, *INSTRUMENTS, *self.user()],
                                        stdout=open(f"{self.directory}/mariadb.log", "a"), stderr=subprocess.STDOUT)
        until(lambda: self.sql("select 1") == "1" or self.process.poll() is not None)

    def client(self):
        return ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "-N", "-B"]

    def sql(self, sql):
        done = subprocess.run([*self.client(), "-e", sql], text=True, capture_output=True)
        return (done.stdout + done.stderr).strip()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
