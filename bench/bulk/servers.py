"""Servers of a measurement, Clearway and PostgreSQL: new ones on one disk, with the same cache (256 MB unless told) and every commit synced. PostgreSQL's programs
run as the user postgres where this one runs as root."""
import os, shutil, subprocess, sys, time


def psql(port, *args, **more):
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres", *args]
    return subprocess.run(command, capture_output=True, text=True, **more)


def asked(port, text):
    done = psql(port, *(word for part in text for word in ("-c", part)))
    if done.returncode != 0:
        sys.exit(f"port {port}: {text}: {done.stderr}")
    return done.stdout.strip()


class Clearway:
    name = "clearway"

    def __init__(self, options, directory):
        self.port, self.log = options.port, open(f"{directory}/clearway.log", "w")
        settings = ["-c", f"cache_size={options.cache}"]
        self.process = subprocess.Popen([options.binary, "serve", "--data", f"{directory}/clearway", "--listen", f"127.0.0.1:{self.port}", *settings],
                                        stdout=self.log, stderr=self.log)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def processor_ms(self):
        return sum(ticks(self.process.pid)[:2]) * 1000 / os.sysconf("SC_CLK_TCK")


class Postgres:
    name = "postgres"

    def __init__(self, options, directory):
        self.port, self.log = options.port + 1, open(f"{directory}/postgres.log", "w")
        self.data = data = f"{directory}/postgres"
        self.prefix = []
        if os.getuid() == 0:
            os.mkdir(data)
            shutil.chown(data, "postgres")
            os.chmod(directory, 0o755)
            self.prefix = ["runuser", "-u", "postgres", "--"]
        said = dict(stdout=self.log, stderr=self.log, cwd="/")
        subprocess.run([*self.prefix, f"{options.bin}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "--locale=C.UTF-8"], check=True, **said)
        settings = [f"shared_buffers={options.cache}", "max_wal_size=4GB", "listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories="]
        self.process = subprocess.Popen([*self.prefix, f"{options.bin}/postgres", "-D", data, *(w for s in settings for w in ("-c", s))], **said)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def processor_ms(self):
        with open(f"{self.data}/postmaster.pid") as file:
            main = int(file.readline())
        # Backends that have ended are children of the main process that it has waited for.
        with open(f"/proc/{main}/task/{main}/children") as file:
            children = [int(pid) for pid in file.read().split()]
        return (sum(ticks(main)) + sum(sum(ticks(pid)[:2]) for pid in children)) * 1000 / os.sysconf("SC_CLK_TCK")


def ticks(pid):
    """What a process took of the processors for itself, and those of its children that have ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return [int(n) for n in file.read().rsplit(")", 1)[1].split()[11:15]]
    except FileNotFoundError:
        return [0]


def arguments(parser):
    """The options that both classes read."""
    parser.add_argument("binary")
    parser.add_argument("--bin", default="/usr/lib/postgresql/15/bin", help="where PostgreSQL's programs are")
    parser.add_argument("--cache", default="256MB", help="the page cache of either server")
    parser.add_argument("--port", type=int, default=5690, help="Clearway's; PostgreSQL's is the next one")


def start(kind, options, directory):
    server = kind(options, directory)
    while psql(server.port, "-c", "select 1").returncode != 0:
        if server.process.poll() is not None:
            sys.exit("the server ended: see " + server.log.name)
        time.sleep(0.2)
    return server
