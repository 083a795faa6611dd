#!/usr/bin/env python3
"""Backups and the archive in object stores, with a proxy before them that fails in every way: nothing is lost, nothing is there twice.

    tests/objects.py [ROUNDS [MARKS_SECONDS [CLEARWAY]]]     1 round of 6 seconds, the clearway of the last debug build
    STORES=s3,az tests/objects.py 2                          which stores, by turns; s3 alone if it is not set

The S3 server is versitygw (https://github.com/versity/versitygw), built by `go install`; Azure's is Azurite
(https://github.com/Azure/Azurite), installed by npm, or named by AZURITE. No server of its own speaks Google's XML interface whole
(fake-gcs-server 1.56.1 answers PUT with 400), so `gs://` is not tried here. The proxy refuses connections, answers 503, is slow, cuts requests and answers in the middle, takes a request
and loses its answer, and sends the same request twice. Under pgbench's TPC-B a server archives its log through the proxy, with
`archive_mode = sync`; marks are written by sessions with `synchronous_commit = archive`. A full and an incremental backup are taken, one
of them is killed and resumed. Then the machine is lost: the server is killed, its directory removed. What is restored from the store has
every acknowledged mark, balances that agree, and `verify` finds every object whole and the log without a hole; a second server archives
what follows beside it.
The last line is `N passed, N failed`, counted in rounds.
"""
import base64, email.utils, hmac, http.client, os, random, re, shutil, socket, subprocess, sys, tempfile, threading, time

import cluster
from cluster import PSQL, Failed

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 6
CLEARWAY = sys.argv[3] if len(sys.argv) > 3 else os.environ.get("CARGO_TARGET_DIR", "target") + "/debug/clearway"
SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
AZURITE = "azurite@3.35.0"
BUCKET = "shop"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def built_by_go(module):
    """A program, built once; Go keeps what it built."""
    name = module.rsplit("/", 1)[1].split("@")[0]
    found = shutil.which(name)
    if found:
        return found
    if not shutil.which("go"):
        print(f"NOT RUN: {name}, which Go builds (Go is missing)\n0 passed, 0 failed")
        sys.exit(0)
    path = subprocess.run(["go", "env", "GOPATH"], capture_output=True, text=True, check=True).stdout.strip() + "/bin/" + name
    if not os.path.exists(path):
        subprocess.run(["go", "install", module], check=True, capture_output=True)
    return path


def azurite():
    """Azure's blob server; npm installs it once, beside the build's output."""
    named = os.environ.get("AZURITE") or shutil.which("azurite-blob")
    if named:
        return named
    place = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", "target") + "/azurite")
    program = f"{place}/node_modules/.bin/azurite-blob"
    if not os.path.exists(program):
        os.makedirs(place, exist_ok=True)
        subprocess.run(["npm", "install", "--no-fund", "--no-audit", AZURITE], check=True, capture_output=True, cwd=place)
    return program


class Store:
    """A server of objects in a directory, with a bucket and the settings that lead to it through the proxy."""

    def __init__(self, work, chance):
        self.port, self.data = free_port(), f"{work}/buckets"
        os.makedirs(self.data)
        self.proxy = Proxy(self.port, chance)
        self.url = f"{self.scheme}://{BUCKET}/clearway/prod"
        self.log = open(f"{work}/store.log", "wb")
        command, environment = self.command()
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=self.log, stderr=self.log)
        for _ in range(600):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise Failed("the object store does not listen")
        self.make_bucket()

    def make_bucket(self):
        """Some servers take a directory for a bucket."""

    def stop(self):
        self.process.kill()
        self.process.wait()


class S3(Store):
    scheme = "s3"

    def command(self):
        os.makedirs(f"{self.data}/{BUCKET}")
        return [built_by_go(VERSITYGW), "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", self.data], {
            "ROOT_ACCESS_KEY": "clearway", "ROOT_SECRET_KEY": "clearway-secret"}

    def settings(self):
        return {"AWS_ACCESS_KEY_ID": "clearway", "AWS_SECRET_ACCESS_KEY": "clearway-secret", "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.proxy.port}", "AWS_ALLOW_HTTP": "true"}


class Azure(Store):
    scheme = "az"
    # The account that every emulator of Azure has, as its documentation tells.
    ACCOUNT = "devstoreaccount1"
    KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def command(self):
        return [azurite(), "--silent", "--skipApiVersionCheck", "--location", self.data, "--blobHost", "127.0.0.1", "--blobPort",
                str(self.port)], {}

    def make_bucket(self):
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        named = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        text = "PUT" + "\n" * 12 + named + f"/{self.ACCOUNT}/{self.ACCOUNT}/{BUCKET}\nrestype:container"
        signature = base64.b64encode(hmac.new(base64.b64decode(self.KEY), text.encode(), "sha256").digest()).decode()
        asked = http.client.HTTPConnection("127.0.0.1", self.port)
        asked.request("PUT", f"/{self.ACCOUNT}/{BUCKET}?restype=container",
                      headers={**headers, "Authorization": f"SharedKey {self.ACCOUNT}:{signature}", "Content-Length": "0"})
        answer = asked.getresponse()
        if answer.status != 201:
            raise Failed(f"Azurite makes no container: {answer.status} {answer.read().decode()}")

    def settings(self):
        return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{self.proxy.port}"}


STORES = [{"s3": S3, "az": Azure}[name] for name in os.environ.get("STORES", "s3").split(",")]


class Cut(Exception):
    pass


class Proxy(threading.Thread):
    """Forwards requests one by one, and spoils one in a few."""

    def __init__(self, upstream, chance):
        super().__init__(daemon=True)
        self.upstream, self.chance = upstream, chance
        self.fault_share, self.out = 0.0, False
        self.counts = {}
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with client:
                if self.out:
                    self.count("refused")
                    return
                reader = client.makefile("rb")
                while self.one(client, reader):
                    pass
        except (OSError, Cut):
            pass

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def fault(self):
        with self.lock:
            if self.chance.random() >= self.fault_share:
                return None
            return self.chance.choice(["refused", "unavailable", "slow", "request cut", "answer cut", "answer lost", "twice"])

    @staticmethod
    def message(reader):
        """Head and body of a request or an answer."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline()
            if not line:
                if head:
                    raise Cut
                return None, b""
            head += line
        length = re.search(rb"(?im)^content-length: *(\d+)\r$", head)
        if re.search(rb"(?im)^transfer-encoding: *chunked\r$", head):
            body = b""
            while True:
                size = reader.readline()
                body += size
                body += reader.read(int(size.split(b";")[0], 16) + 2)
                if int(size.split(b";")[0], 16) == 0:
                    return head, body
        return head, reader.read(int(length[1])) if length else b""

    def ask(self, head, body, share=1.0):
        """The server's answer; with a share below 1 the request is cut, and there is none."""
        with socket.create_connection(("127.0.0.1", self.upstream)) as server:
            whole = head + body
            server.sendall(whole[:int(len(whole) * share)])
            if share < 1:
                raise Cut
            answer = server.makefile("rb")
            while True:
                reply, content = self.message_of(answer, head)
                if not reply.startswith(b"HTTP/1.1 100"):
                    return reply + content

    def message_of(self, answer, request):
        if request.startswith(b"HEAD "):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = answer.readline()
                if not line:
                    raise Cut
                head += line
            return head, b""
        head, body = self.message(answer)
        if head is None:
            raise Cut
        return head, body

    def one(self, client, reader):
        head, body = self.message(reader)
        if head is None or self.out:
            return False
        fault = self.fault()
        if fault:
            self.count(fault)
        if fault == "refused":
            return False
        if fault == "unavailable":
            client.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
            return True
        if fault == "slow":
            time.sleep(0.2 + self.chance.random())
        if fault == "request cut":
            self.ask(head, body, self.chance.random())
        if fault == "twice":
            self.ask(head, body)
        answer = self.ask(head, body)
        if fault == "answer lost":
            return False
        if fault == "answer cut":
            client.sendall(answer[:int(len(answer) * self.chance.random())])
            return False
        client.sendall(answer)
        return True


class Server(cluster.Server):
    """A server whose log goes to the store."""

    def __init__(self, data, target, environment):
        super().__init__(CLEARWAY, data, [f"archive={target}", "archive_timeout=1s", "archive_mode=sync"], environment)

    def burn(self):
        """The machine is lost, with all that is on it."""
        self.kill()
        shutil.rmtree(self.data)


class Marks(threading.Thread):
    """Inserts numbers that are acknowledged when they are in the archive."""

    def __init__(self, server, first, step):
        super().__init__(daemon=True)
        self.number, self.step, self.acknowledged, self.over = first, step, [], False
        self.psql = subprocess.Popen([*PSQL, "-p", server.port], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.psql.stdin.write("set synchronous_commit = archive;\n")
        self.start()

    def run(self):
        while not self.over:
            try:
                self.psql.stdin.write(f"insert into marks values ({self.number}) returning n;\n")
                if self.psql.stdout.readline().strip() != str(self.number):
                    return
            except OSError:
                return
            self.acknowledged.append(self.number)
            self.number += self.step


def clearway(environment, *arguments):
    done = subprocess.run([CLEARWAY, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode:
        raise Failed(f"clearway {' '.join(arguments)}: exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-500:]}")
    return done.stdout


def look(server, acknowledged):
    sums = server.sql("select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
                      "(select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history)")
    if len(set(sums.split("|"))) != 1:
        raise Failed(f"balances differ: {sums}")
    there = [int(n) for n in server.sql("select n from marks").split()]
    lost = set(acknowledged) - set(there)
    if lost:
        raise Failed(f"{len(lost)} marks were acknowledged as archived and are lost: {sorted(lost)[:5]}")
    if len(there) != len(set(there)):
        raise Failed("marks are there twice")
    return len(there)


def backup(environment, target, server, chance, kind, kill):
    """A backup that may be killed, and then goes on."""
    command = [CLEARWAY, "backup", target, "--server", server.url, "--rate", "20MB"]
    running = subprocess.Popen([*command, *kind], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if kill:
        time.sleep(0.3 + chance.random())
        running.kill()
    said = running.communicate()[0]
    if running.returncode == 0:
        return "taken"
    if not kill:
        raise Failed(f"the backup: {said}")
    resumed = subprocess.run([*command, "--resume"], env=environment, capture_output=True, text=True)
    if resumed.returncode == 0:
        return "resumed"
    if "broken off" not in resumed.stderr:
        raise Failed(f"the backup was not resumed: {resumed.stderr}")
    clearway(environment, *command[1:], *kind)
    return "taken again"


def one_round(work, chance, kind):
    store = kind(work, chance)
    proxy, target = store.proxy, store.url
    environment = {**os.environ, **store.settings()}
    try:
        server = Server(f"{work}/data", target, environment)
        subprocess.run(["pgbench", "-q", "-i", "-s", "1", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "postgres"],
                       check=True, capture_output=True)
        server.sql("create table marks (n int primary key)")
        bench = subprocess.Popen(["pgbench", "-n", "-c", "2", "-j", "1", "-T", "600", "-h", "127.0.0.1", "-p", server.port, "-U",
                                  "postgres", "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        writers = [Marks(server, first, 3) for first in range(3)]
        proxy.fault_share = 0.25
        ways = [backup(environment, target, server, chance, [], chance.random() < 0.5)]
        time.sleep(SECONDS / 3)
        # Nothing answers for a while; commits without the policy go on.
        proxy.out = True
        before = int(server.sql("select count(*) from pgbench_history"))
        time.sleep(SECONDS / 3)
        if int(server.sql("select count(*) from pgbench_history")) == before:
            raise Failed("commits wait for an archive that they did not ask for")
        proxy.out = False
        ways.append(backup(environment, target, server, chance, ["--incremental"], chance.random() < 0.5))
        time.sleep(SECONDS / 3)
        server.burn()
        for writer in writers:
            writer.over = True
            writer.join()
        bench.kill()
        bench.wait()
        acknowledged = [number for writer in writers for number in writer.acknowledged]
        if len(acknowledged) < 3:
            raise Failed(f"{len(acknowledged)} marks were acknowledged: the archive stood still")
        proxy.fault_share = 0.1
        said = clearway(environment, "backup", "verify", target)
        clearway(environment, "restore", target, f"{work}/restored")
        clearway(environment, "check", f"{work}/restored")
        server = Server(f"{work}/restored", target, environment)
        there = look(server, acknowledged)
        proxy.fault_share = 0.0
        server.sql("set synchronous_commit = archive; insert into marks values (-1)")
        server.burn()
        clearway(environment, "restore", target, f"{work}/again")
        server = Server(f"{work}/again", target, environment)
        if look(server, [*acknowledged, -1]) != there + 1:
            raise Failed("the restored server's own history is not what it wrote")
        server.stop()
        clearway(environment, "backup", "verify", target)
        clearway(environment, "backup", "expire", target, "--keep", "1d")
        clearway(environment, "backup", "verify", target)
        counts = ", ".join(f"{count} {what}" for what, count in sorted(proxy.counts.items()))
        print(f"objects: {store.scheme}: {len(acknowledged)} marks archived, backups {' and '.join(ways)}, faults: {counts}; {said.splitlines()[0]}", flush=True)
    finally:
        store.stop()


def main():
    passed = 0
    print(f"objects: SEED={SEED}", flush=True)
    for number in range(ROUNDS):
        work = tempfile.mkdtemp(prefix="clearway-objects.")
        try:
            one_round(work, random.Random(SEED + number), STORES[number % len(STORES)])
        except (Failed, subprocess.CalledProcessError) as why:
            print(f"objects: round {number}: {why}; the files are in {work}", flush=True)
            print(f"{passed} passed, 1 failed")
            sys.exit(1)
        shutil.rmtree(work)
        passed += 1
    print(f"{passed} passed, 0 failed")


main()
