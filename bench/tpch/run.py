#!/usr/bin/env python3
"""TPC-H against PostgreSQL: each of the 22 queries on both, one after the other in one run, answers compared.

  bench/tpch/run.py CLEARWAY DATA [--postgres PORT] [--port PORT] [--runs N] [--queries 1,6,...] [--work-mem SIZE] [--cache SIZE] [--keep DIR] [--table FILE]

DATA holds the tables as tpchgen-cli (crates.io, PyPI) writes them: `tpchgen-cli -s 0.1 --output-dir DATA`. PostgreSQL listens at a port
of 127.0.0.1 (superuser postgres, shared_buffers as --cache says for Clearway); its database tpch is made if it is not there. Both are loaded, indexed and analyzed alike.
--keep: Clearway's data directory, which is loaded only if it is new. --table: a page in Markdown is written.
A query's time is the least of its runs, as psql measures it. The last line gives the geometric mean of the ratios."""
import argparse, math, os, re, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = "region nation supplier customer part partsupp orders lineitem".split()


def psql(port, database, *args, **more):
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database, *args]
    return subprocess.run(command, capture_output=True, text=True, **more)


def checked(done):
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def load(port, database, data):
    began = time.time()
    checked(psql(port, database, "-f", f"{HERE}/schema.sql"))
    for table in TABLES:
        # The generator ends each line with a delimiter.
        source = f"sed 's/|$//' {data}/{table}.tbl"
        checked(psql(port, database, "-c", f"\\copy {table} from program '{source.replace(chr(39), chr(39) * 2)}' delimiter '|'"))
    checked(psql(port, database, "-f", f"{HERE}/indexes.sql"))
    checked(psql(port, database, "-c", "analyze"))
    print(f"loaded at port {port} in {time.time() - began:.0f} s", flush=True)


def queries():
    text = open(f"{HERE}/queries.sql").read()
    return {int(n): q.strip() for n, q in re.findall(r"-- query (\d+)\n(.*?)(?=\n-- query|\Z)", text, re.S)}


def answer(text):
    """Rows with numbers rounded to what a sum of doubles would not change."""
    number = lambda cell: f"{float(cell):.6g}" if re.fullmatch(r"-?\d+\.\d+", cell) else cell
    return [tuple(number(c) for c in line.split("|")) for line in text.splitlines()]


def timed(port, database, query, limit, work_mem):
    setting = f"set work_mem = '{work_mem}';" if work_mem else ""
    try:
        done = psql(port, database, "-A", "-t", "-c", setting or "select 1 where false", "-c", "\\timing on", "-c", query, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, "timeout"
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[0]
    body, took = re.match(r"(.*?)Time: ([\d.]+) ms", done.stdout, re.S).groups()
    return float(took), answer(body.rstrip("\n"))


def compare(options, port):
    rows = []
    wanted = [int(n) for n in options.queries.split(",")] if options.queries else None
    for number, query in queries().items():
        if wanted and number not in wanted:
            continue
        best, answers = {}, {}
        for _ in range(options.runs):
            for name, at, database in (("postgres", options.postgres, "tpch"), ("clearway", port, "clearway")):
                took, answers[name] = timed(at, database, query, options.limit, options.work_mem)
                best[name] = min(x for x in (took, best.get(name)) if x is not None) if took or best.get(name) else None
        same = "same" if answers["postgres"] == answers["clearway"] else "DIFFERENT"
        if best["clearway"] is None:
            same = str(answers["clearway"])
        ratio = best["clearway"] / best["postgres"] if best["clearway"] else float("inf")
        rows.append((number, best["postgres"], best["clearway"], ratio, same))
        print(f"q{number:<2} postgres {best['postgres']:9.1f} ms  clearway {best['clearway'] or math.nan:9.1f} ms  x{ratio:6.2f}  {same}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--postgres", type=int, default=5432)
    parser.add_argument("--port", type=int, default=5689)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries")
    parser.add_argument("--work-mem")
    parser.add_argument("--cache", default="256MB")
    parser.add_argument("--keep")
    parser.add_argument("--table")
    parser.add_argument("--limit", type=float, default=120)
    options = parser.parse_args()
    found = checked(psql(options.postgres, "postgres", "-A", "-t", "-c", "select 1 from pg_database where datname = 'tpch'")).strip()
    if not found:
        checked(psql(options.postgres, "postgres", "-c", "create database tpch"))
        load(options.postgres, "tpch", options.data)
    directory = options.keep or tempfile.mkdtemp(prefix="tpch.")
    new = not os.path.isdir(directory) or not os.listdir(directory)
    log = open(os.path.join(tempfile.gettempdir(), f"tpch-{options.port}.log"), "w")
    server = subprocess.Popen([options.binary, "serve", "--data", directory, "--listen", f"127.0.0.1:{options.port}", "-c", f"cache_size={options.cache}"], stdout=log, stderr=log)
    try:
        while psql(options.port, "clearway", "-c", "select 1").returncode != 0:
            if server.poll() is not None:
                sys.exit("the server ended: see " + log.name)
            time.sleep(0.2)
        if new:
            load(options.port, "clearway", options.data)
        else:
            checked(psql(options.port, "clearway", "-c", "analyze"))
        rows = compare(options, options.port)
    finally:
        server.terminate()
        server.wait()
    good = [r for r in rows if r[2]]
    mean = math.exp(sum(math.log(r[3]) for r in good) / len(good))
    print(f"{len(good)} of {len(rows)} answered, {sum(r[4] == 'same' for r in rows)} same; geometric mean x{mean:.2f}")
    if options.table:
        lines = [f"| {n} | {p:.1f} | {c or math.nan:.1f} | {r:.2f} | {s} |" for n, p, c, r, s in rows]
        head = "| query | PostgreSQL ms | Clearway ms | ratio | answer |\n|---|---|---|---|---|\n"
        with open(options.table, "w") as page:
            page.write(head + "\n".join(lines) + f"\n\nGeometric mean of the ratios: {mean:.2f}.\n")


main()
