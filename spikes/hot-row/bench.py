#!/usr/bin/env python3
"""Drives the hot-row slice and PostgreSQL 15 with pgbench and appends one line a run to a table.

  bench.py OUT.tsv ROUND SECONDS CELL...     a CELL is  NAME:CLIENTS:MODE[:readers]
  bench.py --medians OUT.tsv                 medians over the rounds, as markdown

SECONDS is at least 2. NAME is a server below; MODE is auto (UPDATE alone) or block (BEGIN, UPDATE, COMMIT, a round trip each) or read.
Cells of one NAME that follow each other use one server process. Scratch files live under $HOTROW (/tmp/hotrow).
"""
import glob, os, re, statistics, subprocess, sys, time

SCRATCH = os.environ.get("HOTROW", "/tmp/hotrow")
BINARY = os.environ.get("HOTROW_BIN", "target/release/hot-row")
PGBIN = "/usr/lib/postgresql/15/bin"
PORT, PG_PORT = 16543, 16432
BEST = "--flush probe"

SERVERS = {  # what is compared; every other flag has the default of src/main.rs
    "tokio": f"--sched tokio {BEST}", "percore": f"--sched percore {BEST}", "own": f"--sched own {BEST}",
    "tokio-batch": f"--sched tokio --wake batch {BEST}",
    "percore-batch": f"--sched percore --wake batch {BEST}",
    "own-batch": f"--sched own --wake batch {BEST}",
    "own-flat": f"--sched own --no-priorities {BEST}",
    "own-spin50": f"--sched own --spin 50 {BEST}",
    "tokio-int8": f"--sched tokio --interval 8 {BEST}", "own-int8": f"--sched own --interval 8 {BEST}",
    "tokio-nice": f"--sched tokio {BEST}", "own-nice": f"--sched own {BEST}",  # run under nice -15
    "own-int8-nice": f"--sched own --interval 8 {BEST}",
    "tokio-pinned": f"--sched tokio --workers 1 {BEST}", "const-pinned": "--sched tokio --workers 1 --constant",
    "own-pinned": f"--sched own --workers 1 {BEST}", "own-int8-pinned": f"--sched own --workers 1 --interval 8 {BEST}",
    "own-flat-pinned": f"--sched own --workers 1 --no-priorities {BEST}",
    "tokio-int16": f"--sched tokio --interval 16 {BEST}", "own-int16": f"--sched own --interval 16 {BEST}",
    "tokio-1w": f"--sched tokio --workers 1 {BEST}", "own-1w": f"--sched own --workers 1 {BEST}",
    "thread": "--sched tokio --flush thread", "inline": "--sched tokio --flush inline",
    "block": "--sched tokio --flush block", "last-group": "--sched tokio --flush last-group", "alone": "--sched tokio --flush alone",
    "probe": "--sched tokio --flush probe",
    "thread-batch": "--sched tokio --flush thread --wake batch", "own-thread-batch": "--sched own --flush thread --wake batch",
    "own-thread": "--sched own --flush thread", "own-inline": "--sched own --flush inline",
    "direct": f"--sched tokio --io direct {BEST}", "fdatasync": f"--sched tokio --io fdatasync {BEST}",
    "direct-thread": "--sched tokio --io direct --flush thread",
    "const": "--sched tokio --constant", "const-own": "--sched own --constant",
    "const-percore": "--sched percore --constant",
    "codec-own": f"--sched tokio --codec own {BEST}",
    "const-codec-own": "--sched tokio --constant --codec own",
}
SCRIPTS = {
    "auto": "UPDATE hot SET v = v + 1 WHERE id = 1;\n",
    "block": "BEGIN;\nUPDATE hot SET v = v + 1 WHERE id = 1;\nCOMMIT;\n",
    "read": "\\set id random(2, 100000)\nSELECT v FROM hot WHERE id = :id;\n",
}
HEAD = "round server clients mode readers tps p50_ms p99_ms max_ms min_per_client max_per_client cpu_us_per_query ctxsw_per_query syncs_per_tx reader_tps".split()


class Server:
    def __init__(self, name):
        self.name, self.process = name, None
        if name == "pg":
            self.port, self.pid = PG_PORT, int(open(f"{SCRATCH}/pg/postmaster.pid").readline())
            return
        command = [BINARY, "serve", *SERVERS[name].split(), "--port", str(PORT), "--log", f"{SCRATCH}/ring.log"]
        if name.endswith("-nice"):
            command = ["nice", "-n", "-15", *command]
        if name.endswith("-pinned"):  # one CPU for the server, the other for the clients, readers behind the hot row
            command = ["taskset", "-c", "0", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().startswith("ready")
        self.port, self.pid = PORT, self.process.pid

    def report(self):
        """(syncs, hot-row value)"""
        if not self.process:
            return 0, 0
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        syncs, _, value = self.process.stdout.readline().split()
        return int(syncs), int(value)

    def usage(self):
        """(seconds of CPU, context switches) of the live threads of the server"""
        pids = [str(self.pid)]
        if not self.process:
            pids += open(f"/proc/{self.pid}/task/{self.pid}/children").read().split()
        cpu = switches = 0
        for pid in pids:
            try:
                fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
                cpu += (int(fields[11]) + int(fields[12])) / 100
                for task in glob.glob(f"/proc/{pid}/task/*/status"):
                    switches += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", open(task).read())))
            except OSError:
                pass
        return cpu, switches

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def pgbench(server, clients, mode, seconds, log_prefix=None):
    threads = 1 if clients == 1 else 2
    command = [f"{PGBIN}/pgbench", "-n", "-M", "prepared", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres",
               "-c", str(clients), "-j", str(threads), "-T", str(seconds), "-P", "1", "-f", f"{SCRATCH}/{mode}.sql"]
    if log_prefix:
        command += ["-l", f"--log-prefix={log_prefix}"]
    if server.name.endswith("-pinned"):
        command = ["taskset", "-c", "1", "nice", "-n", "10" if mode == "read" else "0", *command]
    return subprocess.Popen(command + ["postgres"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_progress(process):
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("progress"):
            return text
    sys.exit("pgbench: " + text)


def tps_of(text):
    found = re.search(r"^tps = ([\d.]+)", text, re.M)
    return float(found[1]) if found else sys.exit("pgbench: " + text)


def measure(server, clients, mode, readers, seconds):
    seconds += 6 if server.name == "pg" and clients >= 1000 else clients // 2500
    prefix = "/dev/shm/hotrow-log"
    for old in glob.glob(prefix + "*"):
        os.remove(old)
    reader = pgbench(server, 64, "read", seconds + 2 + clients // 1000) if readers else None
    if reader:
        wait_for_progress(reader)
    before = server.report()
    hot = pgbench(server, clients, mode, seconds, prefix)
    text = wait_for_progress(hot)
    begin, first = time.time(), server.usage()
    time.sleep(max(0.5, seconds - 1.4))
    window, last = time.time() - begin, server.usage()
    text += hot.communicate()[0]
    after = server.report()
    reader_tps = tps_of(reader.communicate()[0]) if reader else 0
    tps = tps_of(text)
    latencies, per_client = [], {}
    for file in glob.glob(prefix + "*"):
        for line in open(file):
            client, _, latency_us, *_ = line.split()
            latencies.append(int(latency_us))
            per_client[client] = per_client.get(client, 0) + 1
        os.remove(file)
    latencies.sort()
    done = len(latencies)
    if server.process and mode != "read" and "const" not in server.name:
        assert after[1] - before[1] == done, f"lost updates: {after[1] - before[1]} applied, {done} acknowledged"
    counts = sorted(per_client.values()) + [0] * (clients - len(per_client))
    queries = (tps * (3 if mode == "block" else 1) + reader_tps) * window
    return [f"{tps:.0f}", *(f"{latencies[min(done - 1, int(done * q))] / 1000:.2f}" for q in (0.5, 0.99, 1)),
            min(counts), max(counts), f"{(last[0] - first[0]) / queries * 1e6:.1f}",
            f"{(last[1] - first[1]) / queries:.2f}", f"{(after[0] - before[0]) / done:.3f}", f"{reader_tps:.0f}"]


def main(out, round_, seconds, cells):
    for mode, text in SCRIPTS.items():
        open(f"{SCRATCH}/{mode}.sql", "w").write(text)
    raw = subprocess.run([BINARY, "raw", f"{SCRATCH}/ring.log", "1"], capture_output=True, text=True, check=True)
    with open(out, "a") as table:
        for line in raw.stdout.splitlines():
            kind, rate = line.split()
            print("\t".join(map(str, [round_, "raw-" + kind, 1, "sync", "-", rate] + ["-"] * 9)), file=table, flush=True)
        server = None
        for cell in cells:
            name, clients, mode, *readers = cell.split(":")
            if server is None or server.name != name:
                if server:
                    server.stop()
                server = Server(name)
            row = measure(server, int(clients), mode, bool(readers), seconds)
            line = "\t".join(map(str, [round_, name, clients, mode, "readers" if readers else "-", *row]))
            print(line, file=table, flush=True)
            print(line, flush=True)
        server.stop()


def medians(path):
    cells = {}
    for line in open(path):
        fields = line.split()
        cells.setdefault((fields[3], fields[4], int(fields[2]), fields[1]), []).append(fields[5:])
    print("| mode | with | clients | server | " + " | ".join(HEAD[5:]) + " | runs (tps) |")
    print("|" + "---|" * (len(HEAD)))
    for key in sorted(cells):
        rows, columns = cells[key], []
        for column in zip(*rows):
            columns.append("-" if "-" in column else f"{statistics.median(map(float, column)):g}")
        mode, readers, clients, server = key
        print(f"| {mode} | {readers} | {clients} | {server} | " + " | ".join(columns) + f" | {' '.join(r[0] for r in rows)} |")


if __name__ == "__main__":
    if sys.argv[1] == "--medians":
        medians(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
