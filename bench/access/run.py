#!/usr/bin/env python3
"""Ways to the rows of a large table, each on Clearway and on PostgreSQL 15, one after the other in one run, answers compared.

  bench/access/run.py CLEARWAY [--set accesses|skewed] [--rows N] [--rounds N] [--cache SIZE] [--only WORDS] [--page FILE] [--bin DIRECTORY] [--port N]

Both servers are new, with the same cache (1 GB for a million rows, so that all fits), no parallel workers, and the same tables, loaded and analyzed alike. An access is a statement of which each round runs
some with other constants (the same ones on both); its time is the median of all, as psql measures it, statements that change rows within a transaction that is rolled
back. `--set skewed` are joins of tables in which few rows have most of the others (bench/access/skewed.py). The aim: no access takes more than 1.5 times PostgreSQL's time or 2 ms more, whichever is longer, and the geometric mean of the ratios is at most 1.
The last line is `N passed, N failed`. Not part of CI: times on a machine that does something else tell nothing."""
import argparse, math, os, random, re, statistics, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bulk"))
import skewed  # noqa: E402
from servers import Clearway, Postgres, arguments, asked, start  # noqa: E402

# k: every number once, in no order; g: 100 groups; h: a tenth as many values as rows; n: NULL in each hundredth row; d: one day for each 1,000 rows, in order.
SETUP = """
create table a (id int primary key, k int not null, g int not null, h int not null, t text collate "C" not null, d date not null, n int, v numeric(10,2), pad text);
insert into a select i, (i::bigint * 7919 % {rows})::int, i * 31 % 100, (i::bigint * 104729 % ({rows} / 10))::int, md5(i::text), date '2000-01-01' + i / 1000,
  case when i % 100 <> 0 then i % 5000 end, (i % 100000) / 100.0, repeat('x', 40) from generate_series(1, {rows}) i;
create index a_k on a (k);
create index a_gh on a (g, h);
create index a_t on a (t);
create index a_d on a (d);
create index a_n on a (n);
create index a_lower on a (upper(t));
create index a_part on a (h) where n is null;
create table s (id int primary key, x int not null, y int not null);
insert into s select i, (i::bigint * 7333 % {rows})::int, i % 100 from generate_series(1, 1000) i;
create index s_x on s (x);
"""


def accesses(rows):
    """(chapter, name, how often in a round, a function of a source of random numbers that gives the statement)."""
    some = lambda r, n: [r.randrange(rows) for _ in range(n)]
    listed = lambda values: ", ".join(map(str, values))
    groups = rows // 10
    hexes = lambda r, n: "".join(r.choice("0123456789abcdef") for _ in range(n))
    pairs = lambda r, n: ", ".join(f"({i * 31 % 100}, {i * 104729 % groups})" for i in some(r, n))
    return [
        ("One key", "primary key", 30, lambda r: f"select * from a where id = {r.randrange(rows)}"),
        ("One key", "secondary index", 30, lambda r: f"select * from a where k = {r.randrange(rows)}"),
        ("One key", "index of an expression", 30, lambda r: f"select id from a where upper(t) = upper(md5('{r.randrange(rows)}'))"),
        ("One key", "partial index", 20, lambda r: f"select id from a where h = {r.randrange(groups)} and n is null"),
        ("Lists", "= ANY, 100 primary keys", 20, lambda r: f"select sum(h) from a where id = any('{{{listed(some(r, 100))}}}')"),
        ("Lists", "= ANY, 100 keys of an index", 20, lambda r: f"select sum(h) from a where k = any('{{{listed(some(r, 100))}}}'::int[])"),
        ("Lists", "= ANY, 10,000 primary keys", 5, lambda r: f"select sum(h) from a where id = any('{{{listed(some(r, 10000))}}}')"),
        ("Lists", "IN, 10 keys", 20, lambda r: f"select * from a where k in ({listed(some(r, 10))})"),
        ("Lists", "IN, 1,000 keys", 5, lambda r: f"select count(*) from a where k in ({listed(some(r, 1000))})"),
        ("Lists", "IN, without an index", 2, lambda r: f"select count(*) from a where v in ({listed(some(r, 20))})"),
        ("Lists", "IN behind an equality", 20, lambda r: f"select sum(id) from a where g = {r.randrange(100)} and h in ({listed(r.randrange(groups) for _ in range(20))})"),
        ("Lists", "IN on rows (g, h), 20 pairs", 20, lambda r: f"select sum(id) from a where (g, h) in ({pairs(r, 20)})"),
        ("Lists", "NOT IN, a short list, and a key", 20, lambda r: f"select count(*) from a where k between {(b := r.randrange(rows))} and {b + 500} and g not in (1, 2, 3)"),
        ("OR", "keys of two indexes", 20, lambda r: f"select id from a where k = {r.randrange(rows)} or t = md5('{r.randrange(rows)}')"),
        ("OR", "two ranges of one index", 20, lambda r: f"select sum(h) from a where k between {(b := r.randrange(rows))} and {b + 50} or k between {(c := r.randrange(rows))} and {c + 50}"),
        ("OR", "ranges of two indexes", 20, lambda r: f"select sum(h) from a where k < {r.randrange(100)} or d = date '2000-01-01' + {r.randrange(rows // 1000)}"),
        ("OR", "an index and a condition beside it", 20, lambda r: f"select sum(h) from a where (k = {r.randrange(rows)} or k = {r.randrange(rows)}) and g < 50"),
        ("Row comparison", "(g, h) > ... ORDER BY g, h LIMIT 20", 20, lambda r: f"select g, h, id from a where (g, h) > ({r.randrange(100)}, {r.randrange(groups)}) order by g, h limit 20"),
        ("Row comparison", "the same downwards", 20, lambda r: f"select g, h, id from a where (g, h) < ({r.randrange(1, 100)}, {r.randrange(groups)}) order by g desc, h desc limit 20"),
        ("Row comparison", "between two rows", 20, lambda r: f"select count(*) from a where (g, h) >= ({(g := r.randrange(100))}, {(h := r.randrange(groups))}) and (g, h) < ({g}, {h + 1000})"),
        ("Prefixes", "LIKE, five characters", 20, lambda r: f"select id from a where t like '{hexes(r, 5)}%'"),
        ("Prefixes", "LIKE, two characters", 5, lambda r: f"select count(*) from a where t like '{hexes(r, 2)}%'"),
        ("Prefixes", "^ of a regular expression", 20, lambda r: f"select id from a where t ~ '^{hexes(r, 5)}'"),
        ("Prefixes", "LIKE with a condition inside", 5, lambda r: f"select count(*) from a where t like '{hexes(r, 3)}%{hexes(r, 1)}'"),
        ("IS NULL", "the first ten", 20, lambda r: "select id from a where n is null order by id limit 10"),
        ("IS NULL", "all of them, a hundredth", 5, lambda r: "select count(*), sum(h) from a where n is null"),
        ("IS NULL", "NULL or a value", 20, lambda r: f"select count(*) from a where (n is null or n = {r.randrange(1, 5000)}) and d = date '2000-01-01' + {r.randrange(rows // 1000)}"),
        ("Least and greatest", "min and max together", 20, lambda r: "select min(k), max(k) from a"),
        ("Least and greatest", "behind an equality", 20, lambda r: f"select min(h), max(h) from a where g = {r.randrange(100)}"),
        ("Least and greatest", "of a range", 20, lambda r: f"select max(d) from a where d < date '2000-01-01' + {r.randrange(1, rows // 1000)}"),
        ("Least and greatest", "for each group", 3, lambda r: "select g, min(h), max(h) from a group by g"),
        ("ORDER BY ... LIMIT", "by an index beside a condition", 20, lambda r: f"select k, id from a where g = {r.randrange(100)} order by k limit 10"),
        ("ORDER BY ... LIMIT", "behind an equality", 20, lambda r: f"select id, h from a where g = {r.randrange(100)} order by h desc limit 10"),
        ("ORDER BY ... LIMIT", "by key beside a condition", 20, lambda r: f"select id from a where h < {groups // 100} order by id limit 10"),
        ("ORDER BY ... LIMIT", "with OFFSET", 10, lambda r: "select id, t from a order by k limit 10 offset 5000"),
        ("ORDER BY ... LIMIT", "the last of a range", 20, lambda r: f"select * from a where d <= date '2000-01-01' + {r.randrange(1, rows // 1000)} order by d desc, id desc limit 10"),
        ("ORDER BY ... LIMIT", "without an index", 2, lambda r: f"select id, v from a where g <> {r.randrange(100)} order by v desc, id limit 10"),
        ("DISTINCT", "100 values with an index", 3, lambda r: "select distinct g from a"),
        ("DISTINCT", "ON, the least of each group", 3, lambda r: "select distinct on (g) g, h from a order by g, h"),
        ("DISTINCT", "within a range", 10, lambda r: f"select distinct h from a where k between {(b := r.randrange(rows))} and {b + 1000}"),
        ("Index-only", "count of a range", 5, lambda r: f"select count(*) from a where k between {(b := r.randrange(rows * 9 // 10))} and {b + rows // 20}"),
        ("Index-only", "sum of the second column", 5, lambda r: f"select sum(h) from a where g = {r.randrange(100)}"),
        ("Index-only", "count of all rows", 2, lambda r: "select count(*) from a"),
        ("Skip scan", "the second column alone", 5, lambda r: f"select id from a where h = {r.randrange(groups)}"),
        ("Skip scan", "the second column, a range of the first", 10, lambda r: f"select id from a where g between 10 and 20 and h = {r.randrange(groups)}"),
        ("Ranges", "a hundredth by date", 5, lambda r: f"select sum(v) from a where d between date '2000-01-01' + {(b := r.randrange(max(1, rows // 1000 - rows // 100000)))} and date '2000-01-01' + {b + rows // 100000}"),
        ("Ranges", "a hundredth, rows in no order", 5, lambda r: f"select sum(v) from a where k between {(b := r.randrange(rows * 9 // 10))} and {b + rows // 100}"),
        ("Ranges", "two indexes together", 5, lambda r: f"select sum(v) from a where g = {r.randrange(100)} and d < date '2000-01-01' + {rows // 50000}"),
        ("Joins", "a small table with a large one", 10, lambda r: f"select sum(a.h) from s join a on a.k = s.x where s.y = {r.randrange(100)}"),
        ("Joins", "all of the small one", 5, lambda r: "select sum(a.h) from s join a on a.k = s.x"),
        ("Joins", "IN (sub-select)", 10, lambda r: f"select sum(h) from a where k in (select x from s where y < {r.randrange(1, 20)})"),
        ("Joins", "EXISTS", 10, lambda r: f"select count(*) from s where exists (select from a where a.k = s.x and a.g = {r.randrange(100)})"),
        ("Joins", "NOT EXISTS", 10, lambda r: f"select count(*) from s where not exists (select from a where a.k = s.x and a.g = {r.randrange(100)})"),
        ("Joins", "the last row of each, LATERAL", 10, lambda r: f"select s.id, l.h from s, lateral (select h from a where a.g = s.y order by h desc limit 1) l where s.id < {r.randrange(50, 200)}"),
        ("Joins", "a scalar sub-select", 10, lambda r: f"select s.id, (select max(h) from a where a.g = s.y) from s where s.id < {r.randrange(50, 200)}"),
        ("Joins", "two large sides by key", 5, lambda r: f"select count(*) from a x join a y on y.k = x.id where x.d = date '2000-01-01' + {r.randrange(rows // 1000)}"),
        ("Changes", "UPDATE by = ANY", 10, lambda r: f"update a set v = v + 1 where id = any('{{{listed(some(r, 100))}}}')"),
        ("Changes", "UPDATE ... FROM", 10, lambda r: f"update a set v = v + s.y from s where a.k = s.x and s.y = {r.randrange(100)}"),
        ("Changes", "UPDATE ... FROM (VALUES)", 10, lambda r: f"update a set v = n.x from (values {', '.join(f'({i}, {i % 97})' for i in some(r, 50))}) n (i, x) where a.id = n.i"),
        ("Changes", "DELETE ... IN (sub-select)", 10, lambda r: f"delete from a where k in (select x from s where y = {r.randrange(100)})"),
        ("Changes", "DELETE ... USING", 10, lambda r: f"delete from a using s where a.k = s.x and s.y = {r.randrange(100)}"),
        ("Groups", "100 groups of all rows", 2, lambda r: "select g, count(*), sum(v) from a group by g"),
        ("Groups", "many groups", 1, lambda r: "select count(*) from (select h from a group by h having count(*) > 5) x"),
        ("Groups", "of a range", 5, lambda r: f"select h, count(*) from a where k between {(b := r.randrange(rows * 9 // 10))} and {b + 5000} group by h order by 2 desc, 1 limit 5"),
    ]


def measured(port, statements, changes):
    """The times in milliseconds of the statements in one session, and their answers."""
    script = ["\\timing on"]
    for statement in statements:
        script += ["\\echo [[", *(["begin;", "\\echo (("] if changes else []), statement + ";", *(["\\echo ))", "rollback;"] if changes else []), "\\echo ]]"]
    command = ["psql", "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(command, input="\n".join(script), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"port {port}: {done.stderr}")
    times, answers = [], []
    for part in re.findall(r"^\[\[\n(.*?)^\]\]$", done.stdout, re.S | re.M):
        if changes:
            part = re.search(r"^\(\(\n(.*?)^\)\)$", part, re.S | re.M)[1]
        times.append(float(re.search(r"^Time: ([\d.]+) ms", part, re.M)[1]))
        answers.append(sorted(line for line in part.splitlines() if not line.startswith("Time: ")))
    return times, answers


def compare(options, servers):
    results = []
    chosen = skewed.accesses if options.set == "skewed" else accesses
    for chapter, name, count, make in chosen(options.rows):
        if options.only and options.only not in f"{chapter}: {name}":
            continue
        times, same = {server.name: [] for server in servers}, True
        for number in range(options.rounds + 1):
            source = random.Random(f"{name} {number}")
            statements = [make(source) for _ in range(count)]
            answers = {}
            for server in servers:
                took, answers[server.name] = measured(server.port, statements, chapter == "Changes")
                # The first round warms the caches.
                times[server.name] += took if number else []
            same = same and answers["postgres"] == answers["clearway"]
        p, c = (statistics.median(times[name]) for name in ("postgres", "clearway"))
        good = same and c <= max(1.5 * p, p + 2)
        results.append((chapter, name, p, c, c / p, same, good))
        print(f"{'ok  ' if good else 'SLOW' if same else 'WRONG'} {chapter}: {name}: {p:.2f} ms, {c:.2f} ms, x{c / p:.2f}", flush=True)
        if not same:
            print(f"  the answers differ: {statements[0]}", flush=True)
    return results


def page(options, results, mean):
    lines = [f"{len(results)} ways to the rows, {options.rows:,} in the largest table; geometric mean of the ratios {mean:.2f}.", "",
             "| | PostgreSQL ms | Clearway ms | ratio | |", "|---|--:|--:|--:|---|"]
    lines += [f"| {chapter}: {name} | {p:.2f} | {c:.2f} | {ratio:.2f} | {'' if good else 'above the aim' if same else 'another answer'} |"
              for chapter, name, p, c, ratio, same, good in results]
    with open(options.page, "w") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.set_defaults(cache="1GB")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", default="accesses", choices=["accesses", "skewed"])
    parser.add_argument("--only")
    parser.add_argument("--page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="access.") as directory:
        servers = []
        try:
            for kind in (Postgres, Clearway):
                servers.append(start(kind, options, directory))
            for server in servers:
                asked(server.port, ["alter role postgres set max_parallel_workers_per_gather = 0"])
                setup, tables = (skewed.SETUP, skewed.TABLES) if options.set == "skewed" else (SETUP, ["a", "s"])
                for statement in setup.format(rows=options.rows).split(";\n"):
                    if statement.strip():
                        asked(server.port, [statement])
                for table in tables:
                    asked(server.port, [f"vacuum analyze {table}"])
                asked(server.port, ["checkpoint"])
            results = compare(options, servers)
        finally:
            for server in servers:
                server.stop()
    mean = math.exp(statistics.mean(math.log(r[4]) for r in results))
    passed = sum(r[6] for r in results)
    print(f"geometric mean of the ratios: {mean:.2f}")
    if options.page:
        page(options, results, mean)
    print(f"{passed} passed, {len(results) - passed} failed")


main()
