"""A Clearway server of a test in Python: it is started, asked through psql, stopped or killed."""
import os, re, signal, subprocess, time

PSQL = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres", "postgres"]
os.environ["PGOPTIONS"] = ""


class Failed(Exception):
    pass


class Server:
    """A server on a directory. Its cache is small and its recovery short, so that pages are written, and checkpoints taken, all the time."""

    def __init__(self, binary, data, settings=(), environment=None):
        self.data, self.log = data, open(data + ".log", "ab+")
        where = self.log.seek(0, os.SEEK_END)
        settings = ["cache_size=4MB", "recovery_target=1s", *settings]
        arguments = [word for setting in settings for word in ("-c", setting)]
        self.process = subprocess.Popen([binary, "serve", "--data", data, "--listen", "127.0.0.1:0", *arguments],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment)
        while True:
            self.log.seek(where)
            said = self.log.read().decode(errors="replace")
            found = re.search(r"connect with: psql .* -p (\d+)", said)
            if found:
                break
            if self.process.poll() is not None:
                raise Failed(f"the server did not start: {said[-500:]}")
            time.sleep(0.05)
        self.port = found[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def sql(self, text):
        done = subprocess.run([*PSQL, "-p", self.port, "-c", text], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{text}: {done.stderr.strip()}")
        return done.stdout.strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            self.log.seek(0)
            raise Failed(f"the server did not stop cleanly: {self.log.read().decode(errors='replace')[-500:]}")
