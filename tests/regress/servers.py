"""A PostgreSQL 15 and a `clearway serve` of our own, on fresh directories and free ports of loopback."""
import os, pwd, re, shutil, signal, socket, subprocess, sys, time

BINARIES = "/usr/lib/postgresql/15/bin"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    name = "postgres"

    def __init__(self, directory, settings=()):
        self.port, self.data = free_port(), f"{directory}/postgres"
        self.prefix = []
        if os.getuid() == 0:
            # PostgreSQL refuses to run as root.
            user = pwd.getpwnam("postgres")
            os.makedirs(self.data)
            os.chown(self.data, user.pw_uid, user.pw_gid)
            os.chmod(directory, 0o755)
            self.prefix = ["runuser", "-u", "postgres", "--"]
        subprocess.run([*self.prefix, f"{BINARIES}/initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "-N"],
                       check=True, stdout=subprocess.DEVNULL)
        self.settings = ["fsync=off", "max_connections=40", f"port={self.port}", "unix_socket_directories=", "listen_addresses=127.0.0.1", *settings]
        self.process = None

    def start(self):
        options = [part for setting in self.settings for part in ("-c", setting)]
        log = open(f"{self.data}.log", "a")
        self.process = subprocess.Popen([*self.prefix, f"{BINARIES}/postgres", "-D", self.data, *options], stdout=log, stderr=log)
        for _ in range(300):
            if subprocess.run([f"{BINARIES}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0:
                return
            time.sleep(0.1)
        sys.exit(f"PostgreSQL did not start: {open(f'{self.data}.log').read()[-2000:]}")

    def stop(self):
        if self.process and self.process.poll() is None:
            with open(f"{self.data}/postmaster.pid") as file:
                os.kill(int(file.readline()), signal.SIGINT)
            self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def alive(self):
        return self.process.poll() is None


class Clearway:
    name = "clearway"

    def __init__(self, binary, directory, settings=()):
        self.binary, self.data, self.log = os.path.abspath(binary), f"{directory}/clearway", f"{directory}/clearway.log"
        self.config = f"{directory}/clearway.conf"
        with open(self.config, "w") as file:
            file.writelines(f"{setting}\n" for setting in settings)
        self.process, self.port = None, None

    def start(self):
        position = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        log = open(self.log, "a")
        command = [self.binary, "serve", "--data", self.data, "--config", self.config, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(600):
            with open(self.log) as file:
                file.seek(position)
                if found := re.search(r"-p (\d+)", file.read()):
                    self.port = int(found[1])
                    return
            time.sleep(0.1)
        sys.exit(f"clearway did not start: {open(self.log).read()[-2000:]}")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def alive(self):
        return self.process.poll() is None
