#!/usr/bin/env python3
"""What backups cost: time, size, and what they take from the statements beside them; next to pg_basebackup and pgBackRest, in one run.

    tests/backup-costs.py CLEARWAY [SCALE [PAIRS [SECONDS [WORK]]]]     scale 100 (10,000,000 accounts), 5 pairs of 20 seconds

Both servers stand on this machine with pgbench's tables. Times are of one backup each, rates without a limit but where one is named.
Throughput is measured in pairs, one run with a backup beside it at the default rate and one without, in turn; the median of the pairs'
ratios counts. Writes Markdown. Needs PostgreSQL 15's programs, pgBackRest, and to be root (PostgreSQL runs as `postgres`).
"""
import os, re, shutil, signal, statistics, subprocess, sys, tempfile, time

CLEARWAY = sys.argv[1]
SCALE = int(sys.argv[2]) if len(sys.argv) > 2 else 100
PAIRS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS = int(sys.argv[4]) if len(sys.argv) > 4 else 20
WORK = sys.argv[5] if len(sys.argv) > 5 else tempfile.mkdtemp(prefix="clearway-costs.")
BIN = "/usr/lib/postgresql/15/bin/"
PORTS = {"clearway": 5655, "postgres": 5656}


def run(*command, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout


def as_postgres(*command):
    return run("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "env", f"HOME={WORK}", *command, cwd=WORK)


def timed(act):
    began = time.monotonic()
    said = act()
    return time.monotonic() - began, said


def size(path):
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names)


def shown(what, seconds, path_or_bytes, note=""):
    count = path_or_bytes if isinstance(path_or_bytes, int) else size(path_or_bytes)
    print(f"| {what} | {seconds:.1f} s | {count / 1e6:.0f} MB | {note} |", flush=True)


class Servers:
    def __enter__(self):
        os.makedirs(WORK, exist_ok=True)
        os.chmod(WORK, 0o755)
        self.clearway = subprocess.Popen([CLEARWAY, "serve", "--data", f"{WORK}/clearway", "--listen", f"127.0.0.1:{PORTS['clearway']}",
                                          "-c", "cache_size=1GB"], stdout=open(f"{WORK}/clearway.log", "wb"), stderr=subprocess.STDOUT)
        for name in ("pg", "pgbase", "repo", "stanza"):
            os.makedirs(f"{WORK}/{name}", exist_ok=True)
            shutil.chown(f"{WORK}/{name}", "postgres", "postgres")
        if not os.path.exists(f"{WORK}/pg/PG_VERSION"):
            as_postgres(BIN + "initdb", "-D", f"{WORK}/pg", "--data-checksums", "-A", "trust", "-U", "postgres")
            with open(f"{WORK}/pgbackrest.conf", "w") as conf:
                conf.write(f"[global]\nrepo1-path={WORK}/repo\nlog-path={WORK}/stanza\nlock-path={WORK}/stanza\nspool-path={WORK}/stanza\n"
                           f"compress-type=zst\ncompress-level=1\nstart-fast=y\nrepo1-retention-full=9\n"
                           f"[costs]\npg1-path={WORK}/pg\npg1-port={PORTS['postgres']}\npg1-socket-path={WORK}/stanza\n")
            with open(f"{WORK}/pg/postgresql.conf", "a") as conf:
                conf.write(f"port = {PORTS['postgres']}\nshared_buffers = '1GB'\nmax_wal_size = '4GB'\nlisten_addresses = '127.0.0.1'\n"
                           f"unix_socket_directories = '{WORK}/stanza'\narchive_mode = on\n"
                           f"archive_command = 'pgbackrest --config={WORK}/pgbackrest.conf --stanza=costs archive-push %p'\n")
        as_postgres(BIN + "pg_ctl", "-D", f"{WORK}/pg", "-l", f"{WORK}/stanza/log", "-w", "start")
        for _ in range(600):
            if subprocess.run(["psql", "-X", "-c", "select 1", *where("clearway")], capture_output=True).returncode == 0:
                return self
            time.sleep(0.1)
        sys.exit("Clearway does not answer")

    def __exit__(self, *_):
        as_postgres(BIN + "pg_ctl", "-D", f"{WORK}/pg", "-m", "fast", "-w", "stop")
        self.clearway.send_signal(signal.SIGTERM)
        self.clearway.wait()


def where(server):
    return ["-h", "127.0.0.1", "-p", str(PORTS[server]), "-U", "postgres", "postgres"]


def pgbench(server, *options):
    return run(BIN + "pgbench", *options, *where(server))


def rest(*options):
    return as_postgres("pgbackrest", f"--config={WORK}/pgbackrest.conf", "--stanza=costs", *options)


def tps(server, *options):
    said = pgbench(server, "-n", "-c", 4, "-j", 1, "-T", SECONDS, *options)
    return float(re.search(r"tps = ([0-9.]+)", said)[1])


def beside(server, backup, *options):
    """The median of the pairs' ratios, and the medians of both."""
    quiet, busy = [], []
    for number in range(PAIRS):
        for with_backup in (number % 2 == 0, number % 2 == 1):
            if not with_backup:
                quiet.append(tps(server, *options))
                continue
            process = backup()
            busy.append(tps(server, *options))
            # A backup that was over before the run ended is noted: the pair says less then.
            if process.poll() is not None:
                print(f"<!-- the backup ended before the run: exit {process.returncode} -->")
            # The loop and the backup that it has just begun.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    ratios = [b / q for b, q in zip(busy, quiet)]
    return statistics.median(quiet), statistics.median(busy), statistics.median(ratios), ratios


def backup_loop(rate):
    """Full backups one after the other, as long as they are watched."""
    target = f"{WORK}/beside"
    command = f"while rm -rf {target}; do {CLEARWAY} backup {target} --server {url()} {rate} >/dev/null || exit 1; done"
    return lambda: subprocess.Popen(["bash", "-c", command], start_new_session=True)


def basebackup_loop():
    command = f"while rm -rf {WORK}/pgbase/b; do {BIN}pg_basebackup -D {WORK}/pgbase/b -X none -c fast -r 64M -h 127.0.0.1 -p {PORTS['postgres']} -U postgres || exit 1; done"
    return lambda: subprocess.Popen(["bash", "-c", command], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)


def url():
    return f"postgresql://postgres@127.0.0.1:{PORTS['clearway']}/postgres"


def main():
    with Servers():
        for server in PORTS:
            seconds, _ = timed(lambda: pgbench(server, "-i", "-q", "-I", "dtgp", "-s", SCALE))
            print(f"<!-- {server}: {SCALE * 100_000} accounts loaded in {seconds:.0f} s -->", flush=True)
            run("psql", "-X", "-q", "-c", "checkpoint", *where(server))
        print(f"| {SCALE * 100_000:,} accounts | time | size | |\n|---|---|---|---|")
        shown("Clearway's directory", 0, f"{WORK}/clearway")
        shown("PostgreSQL's directory", 0, f"{WORK}/pg")
        target = f"{WORK}/target"
        clearway = lambda *options: run(CLEARWAY, "backup", target, "--server", url(), *options)
        full = timed(lambda: clearway("--rate", "0"))[0]
        shown("`clearway backup --rate 0`, full", full, target, "zstd, every page and object summed")
        plain = timed(lambda: run(BIN + "pg_basebackup", "-D", f"{WORK}/base", "-X", "stream", "-c", "fast", *where("postgres")[:6]))[0]
        shown("`pg_basebackup`, full", plain, f"{WORK}/base", "not compressed")
        packed = timed(lambda: run(BIN + "pg_basebackup", "-D", f"{WORK}/packed", "-Ft", "--compress=client-zstd:1", "-X", "stream", "-c", "fast",
                                   *where("postgres")[:6]))[0]
        shown("`pg_basebackup -Ft --compress=client-zstd:1`, full", packed, f"{WORK}/packed")
        rest("stanza-create")
        first = timed(lambda: rest("--type=full", "backup"))[0]
        shown("`pgbackrest backup --type=full`", first, f"{WORK}/repo", "zstd 1, with the archived log")
        for path in ("base", "packed"):
            shutil.rmtree(f"{WORK}/{path}")
        for server in PORTS:
            pgbench(server, "-n", "-c", 2, "-t", 5000)
            run("psql", "-X", "-q", "-c", "checkpoint", *where(server))
        before = size(target), size(f"{WORK}/repo")
        second = timed(lambda: clearway("--rate", "0", "--incremental"))[0]
        shown("`clearway backup --incremental` after 10,000 TPC-B", second, size(target) - before[0], "pages that changed")
        incremental = timed(lambda: rest("--type=incr", "backup"))[0]
        shown("`pgbackrest backup --type=incr` after 10,000 TPC-B", incremental, size(f"{WORK}/repo") - before[1], "files that changed, with the archived log")
        verify = timed(lambda: run(CLEARWAY, "backup", "verify", target))[0]
        shown("`clearway backup verify` of both", verify, target)
        restore = timed(lambda: run(CLEARWAY, "restore", target, f"{WORK}/restored"))[0]
        shown("`clearway restore`", restore, f"{WORK}/restored")
        shutil.rmtree(f"{WORK}/restored")
        back = timed(lambda: rest("--pg1-path=" + f"{WORK}/stanza/restored", "restore"))[0]
        shown("`pgbackrest restore`", back, f"{WORK}/stanza/restored")
        shutil.rmtree(f"{WORK}/stanza/restored")
        print(f"\n| 4 clients, {PAIRS} pairs of {SECONDS} s | without | with a backup beside it | ratio | of each pair |\n|---|---|---|---|---|")
        for name, server, loop, options in (
            ("Clearway, TPC-B, default rate", "clearway", backup_loop(""), ()),
            ("Clearway, prepared point selects, default rate", "clearway", backup_loop(""), ("-S", "-M", "prepared")),
            ("PostgreSQL, TPC-B, `pg_basebackup -r 64M`", "postgres", basebackup_loop(), ()),
            ("PostgreSQL, prepared point selects, `pg_basebackup -r 64M`", "postgres", basebackup_loop(), ("-S", "-M", "prepared")),
        ):
            quiet, busy, ratio, ratios = beside(server, loop, *options)
            print(f"| {name} | {quiet:.0f}/s | {busy:.0f}/s | {ratio:.2f} | {', '.join(f'{one:.2f}' for one in ratios)} |", flush=True)


main()
