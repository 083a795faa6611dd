#!/usr/bin/env python3
"""Skip scans and merge joins beside PostgreSQL: each query on both, one after the other in one run, answers compared.

  bench/tpch/ordered.py CLEARWAY [--rows N] [--postgres PORT] [--port PORT] [--runs N]

PostgreSQL listens at a port of 127.0.0.1 (superuser postgres) and gets a database `ordered`. A query's time is the least of its runs, as psql
measures it. The output is a table in Markdown."""
import argparse, re, subprocess, sys, tempfile, time

SETUP = """
create table reading (id int primary key, site int not null, at int, value int not null, note text);
insert into reading select g, g % 20, g / 20, (g * 7919::bigint) % 1000, repeat('n', 40) from generate_series(1, {n}) g;
create index reading_site_at on reading (site, at);
create index reading_site_value on reading (site, value);
create table part_of (id int, line int, amount int not null, primary key (id, line));
insert into part_of select g / 4, g % 4, g % 100 from generate_series(1, {n}) g;
create table head (id int primary key, total int not null);
insert into head select g, g % 1000 from generate_series(1, {n} / 4) g;
vacuum analyze;
"""
QUERIES = [
    ("the second column of an index", "select count(*), sum(id) from reading where at = 777"),
    ("a range of the second column", "select count(*), max(note) from reading where at between 500 and 510"),
    ("distinct of the first column", "select distinct site from reading order by 1"),
    ("group by without aggregates", "select site from reading group by site order by 1"),
    ("count(distinct)", "select count(distinct site) from reading"),
    ("the least of each group", "select site, min(value) from reading group by site order by 1"),
    ("the greatest of each group", "select site, max(value) from reading group by site order by 1"),
    ("join of two primary keys", "select count(*), sum(h.total + p.amount) from head h join part_of p on p.id = h.id"),
    ("left join of two primary keys", "select count(*), count(h.id) from part_of p left join head h on p.id = h.id and h.total < 500"),
    ("full join of two primary keys", "select count(*), count(h.id), count(p.id) from head h full join part_of p on p.id = h.id"),
    ("exists over two primary keys", "select count(*) from head h where exists (select from part_of p where p.id = h.id and p.amount > h.total)"),
]


def psql(port, database, *args):
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


def checked(done):
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def timed(port, database, query):
    told = checked(psql(port, database, "-A", "-t", "-c", "\\timing on", "-c", query))
    body, took = re.match(r"(.*?)Time: ([\d.]+) ms", told, re.S).groups()
    return float(took), body


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--postgres", type=int, default=5432)
    parser.add_argument("--port", type=int, default=5690)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    setup = ";".join(s for s in SETUP.format(n=chosen.rows).split(";\n"))
    checked(psql(chosen.postgres, "postgres", "-c", "drop database if exists ordered", "-c", "create database ordered"))
    with tempfile.TemporaryDirectory(prefix="ordered.") as directory:
        server = subprocess.Popen([chosen.binary, "serve", "--data", directory, "--listen", f"127.0.0.1:{chosen.port}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while psql(chosen.port, "clearway", "-c", "select 1").returncode != 0:
                time.sleep(0.2)
            for port, database in ((chosen.postgres, "ordered"), (chosen.port, "clearway")):
                for statement in filter(str.strip, setup.split(";")):
                    checked(psql(port, database, "-c", statement))
            print("| query | PostgreSQL ms | Clearway ms | ratio | answer | plan |\n|---|--:|--:|--:|---|---|")
            for name, query in QUERIES:
                best, answers = {}, {}
                for _ in range(chosen.runs):
                    for who, port, database in (("postgres", chosen.postgres, "ordered"), ("clearway", chosen.port, "clearway")):
                        took, answers[who] = timed(port, database, query)
                        best[who] = min(took, best.get(who, took))
                plan = checked(psql(chosen.port, "clearway", "-A", "-t", "-c", f"explain (costs off) {query}"))
                word = "skip" if "Skip Key" in plan else next((w for w in ("Merge", "Hash", "Nested Loop", "Seq Scan") if w in plan), "index")
                same = "same" if answers["postgres"] == answers["clearway"] else "DIFFERENT"
                print(f"| {name} | {best['postgres']:.1f} | {best['clearway']:.1f} | {best['clearway'] / best['postgres']:.2f} | {same} | {word} |", flush=True)
        finally:
            server.terminate()
            server.wait()


main()
