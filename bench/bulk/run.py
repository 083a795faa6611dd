#!/usr/bin/env python3
"""Bulk work against PostgreSQL: each case on both, one after the other in one run, the answers compared.

  bench/bulk/run.py CLEARWAY [--rows N] [--runs N] [--cases copy,delete,...] [--bin DIR] [--table FILE] [--directory DIR]

Both servers are made new below a temporary directory, on the same disk, with 256 MB of cache and every commit synced. PostgreSQL's programs
are in --bin; as root they run as the user postgres. Each case is prepared, then the server takes a checkpoint, then psql times the statement.
Beside the time stands the processor time that all threads or processes of the server took for it, which other programs disturb less. A case's
figures are the medians of its runs. (PostgreSQL leaves the entries of deleted rows to VACUUM; the case of that name counts it, and what Clearway does in the two seconds behind its DELETE.) --rows: 1,000,000; the long form is 10,000,000. --table: a page in Markdown is written.
The last line gives the geometric mean of the ratios."""
import argparse, math, os, re, shutil, statistics, sys, tempfile
from servers import Clearway, Postgres, arguments, asked, psql, start

ACCOUNTS = "create table pgbench_accounts (aid int not null, bid int, abalance int, filler char(84))"
NUMBERS = "create table numbers (n int, t text)"
# Integers in an order of their own, and the texts of their sums.
FILL_NUMBERS = "insert into numbers select (i * 7919::bigint % 10000019)::int, md5(i::text) from generate_series(1, {rows}) i"
ITEMS = "create table items (id int primary key, a int, b text)"
FILL_ITEMS = "insert into items select i, (i * 7919::bigint % 10000019)::int, md5(i::text) from generate_series(1, {rows}) i"
INDEXES = "create index items_a on items (a); create index items_b on items (b)"

# Name, what is timed in words, tables, what prepares it, the statement, a query whose answer both must give.
CASES = [
    ("copy", "COPY of pgbench_accounts, no index", ["pgbench_accounts"], [ACCOUNTS], "\\copy pgbench_accounts from '{file}'",
     "select count(*), sum(aid::bigint), min(filler) from pgbench_accounts"),
    ("pkey", "ADD PRIMARY KEY on them", [], [], "alter table pgbench_accounts add primary key (aid)",
     "select count(*) from pgbench_accounts where aid between 5 and 500"),
    ("update", "UPDATE of all of them", [], [], "update pgbench_accounts set abalance = abalance + 1",
     "select sum(abalance) from pgbench_accounts"),
    ("copypkey", "COPY into a table with a primary key", ["pgbench_accounts"], [ACCOUNTS.replace("aid int not null", "aid int primary key")],
     "\\copy pgbench_accounts from '{file}'", "select count(*), sum(aid::bigint) from pgbench_accounts"),
    ("intindex", "CREATE INDEX on integers", ["numbers"], [NUMBERS, FILL_NUMBERS], "create index numbers_n on numbers (n)",
     "select count(*) from numbers where n between 1000 and 2000"),
    ("textindex", "CREATE INDEX on md5 texts", [], [], "create index numbers_t on numbers (t)",
     "select count(*) from numbers where t between 'ab' and 'ac'"),
    ("insert", "INSERT ... SELECT into a table with a primary key", ["items"], [ITEMS], FILL_ITEMS,
     "select count(*), sum(a::bigint), max(b) from items"),
    ("delete", "DELETE of half, two more indexes", [], [INDEXES], "delete from items where id % 2 = 0",
     "select count(*), (select count(*) from items where a between 5000 and 500000) from items"),
    ("vacuum", "DELETE of half, two more indexes, and VACUUM", ["items"], [ITEMS, INDEXES, FILL_ITEMS],
     "delete from items where id % 2 = 0;; vacuum items;; select pg_sleep(2)",
     "select count(*), (select count(*) from items where a between 5000 and 500000) from items"),
    ("insertindexed", "INSERT ... SELECT, primary key and two more indexes", ["items"], [ITEMS, INDEXES], FILL_ITEMS,
     "select count(*), (select count(*) from items where a between 5000 and 500000) from items"),
    ("updateindexed", "UPDATE of an indexed column of all", [], [], "update items set a = a + 1",
     "select sum(a::bigint), (select count(*) from items where a between 5000 and 500000) from items"),
    ("unique", "INSERT ... SELECT with a unique index on texts", ["items"], [ITEMS, "create unique index items_u on items (b)"], FILL_ITEMS,
     "select count(*), max(b) from items"),
    ("conflict", "INSERT ... ON CONFLICT DO UPDATE of half of them, half new", [], [],
     FILL_ITEMS.replace("generate_series(1, {rows})", "generate_series({rows} / 2, {rows} + {rows} / 2)")
     + " on conflict (id) do update set a = excluded.a + 1", "select count(*), sum(a::bigint) from items"),
    ("foreign", "INSERT ... SELECT with a foreign key", ["parts", "items"],
     [ITEMS, FILL_ITEMS, "create table parts (id int primary key, item int references items)"],
     "insert into parts select i, 1 + (i * 7919::bigint % {rows})::int from generate_series(1, {rows}) i", "select count(*), sum(item::bigint) from parts"),
    ("returning", "DELETE of half with RETURNING", ["parts", "items"], [ITEMS, FILL_ITEMS],
     "with gone as (delete from items where id % 2 = 0 returning id) select count(*) from gone", "select count(*) from items"),
]


def accounts(path, rows):
    """The rows that pgbench makes."""
    filler = " " * 84
    with open(path, "w") as file:
        file.writelines(f"{i}\t{1 + (i - 1) // 100000}\t0\t{filler}\n" for i in range(1, rows + 1))
    os.chmod(path, 0o644)


def timed(server, statement):
    """What the first statement takes, and with `;;` the second; processor time with what the server does behind them in the third."""
    before = server.processor_ms()
    parts = statement.split(";; ")
    done = psql(server.port, "-c", "\\timing on", *(word for part in parts for word in ("-c", part)))
    if done.returncode != 0:
        sys.exit(f"{server.name}: {statement}: {done.stderr}")
    times = [float(time) for time in re.findall(r"Time: ([\d.]+) ms", done.stdout)][:2]
    return sum(times), server.processor_ms() - before


def measure(options, servers, directory):
    words = {"rows": str(options.rows), "file": f"{directory}/accounts.tsv"}
    fill = lambda text: re.sub(r"\{(rows|file)\}", lambda m: words[m[1]], text)
    wanted = options.cases.split(",") if options.cases else [case[0] for case in CASES]
    took = {}
    for turn in range(options.runs):
        for name, _, tables, prepare, statement, check in CASES:
            if options.cases and name not in wanted:
                continue
            answers = []
            # They take turns at being first.
            for server in servers if turn % 2 == 0 else servers[::-1]:
                asked(server.port, [f"drop table if exists {', '.join(tables)}"] * bool(tables) + [fill(p) for p in prepare] + ["checkpoint"])
                took.setdefault((name, server.name), []).append(timed(server, fill(statement)))
                answers.append(asked(server.port, [check]))
            if answers[0] != answers[1]:
                sys.exit(f"{name}: the answers differ: {answers}")
            ours, theirs = took[name, "clearway"][-1], took[name, "postgres"][-1]
            print(f"{turn + 1} {name:14} postgres {theirs[0]:8.0f} ms, processor {theirs[1]:6.0f}  clearway {ours[0]:8.0f}, {ours[1]:6.0f}  "
                  f"x{ours[0] / theirs[0]:5.2f}, {ours[1] / max(theirs[1], 10):5.2f}", flush=True)
    rows = []
    for name, words, *_ in CASES:
        if (name, "clearway") in took:
            median = lambda server, what: statistics.median(figures[what] for figures in took[name, server])
            ours, theirs = ([median(server, what) for what in (0, 1)] for server in ("clearway", "postgres"))
            rows.append((words, theirs[0], ours[0], ours[0] / theirs[0], theirs[1], ours[1], ours[1] / max(theirs[1], 10)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases")
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--table")
    options = parser.parse_args()
    directory, servers = tempfile.mkdtemp(prefix="bulk.", dir=options.directory), []
    accounts(f"{directory}/accounts.tsv", options.rows)
    try:
        for kind in (Postgres, Clearway):
            servers.append(start(kind, options, directory))
        rows = measure(options, servers, directory)
    finally:
        for server in servers:
            server.stop()
    shutil.rmtree(directory)
    mean = lambda at: math.exp(sum(math.log(max(row[at], 0.01)) for row in rows) / len(rows))
    lines = [f"| {r[0]} | {r[1]:.0f} | {r[2]:.0f} | {r[3]:.2f} | {r[4]:.0f} | {r[5]:.0f} | {r[6]:.2f} |\n" for r in rows]
    head = "| | PostgreSQL ms | Clearway ms | ratio | PostgreSQL processor ms | Clearway processor ms | ratio |\n|---|---|---|---|---|---|---|\n"
    page = f"{head}{''.join(lines)}\nGeometric mean of the ratios: {mean(3):.2f}; of processor time {mean(6):.2f}.\n"
    print(page)
    if options.table:
        with open(options.table, "w") as file:
            file.write(page)


main()
