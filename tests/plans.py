#!/usr/bin/env python3
"""Random queries whose answer must not depend on how they are planned: with and without indexes, before and after ANALYZE, by one thread and in
parts by several, as prepared statements for the values at hand and for any values, by settings of the planner at random, and by a PostgreSQL 15 beside it.

  tests/plans.py CLEARWAY [--queries N] [--seconds S] [--seed N] [--postgres PORT]

PostgreSQL is started for the occasion, or is the one that listens at a port of 127.0.0.1 (superuser postgres).
Where answers differ, and where a session is gone, the query and the seed are told; all sessions of a server from which one is gone are opened anew.
The last line is `N passed, N failed`."""
import argparse, os, random, re, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lockstep"))
from servers import Clearway, Postgres  # noqa: E402
from wire import Gone, Session  # noqa: E402

TABLES = """
create table {s}.t (id int {key}, a int, b int, c text, d numeric(8,2), e date, f bigint, g varchar(20), x real, y timestamp);
create table {s}.u (k int, m int, v text, w int {pair});
create table {s}.s (id int, a int, n text);
create table {s}.q (id int {key}, o int, p int, v text);
"""
INDEXES = """
create index on i.t (a); create index on i.t (b, f); create index on i.t (c); create index on i.t (d desc, a);
create index on i.t (e); create index on i.t (x); create index on i.t (y, a); create unique index on i.t (g); create index on i.u (w, v); create index on i.u (m);
create index on i.q (o, p, v); create index on i.q (o desc, v); create index on i.q (p, id);
"""


def rows(rng):
    """INSERT statements; values are few, many, NULL, and skewed."""
    null = lambda share, value: "null" if rng.random() < share else value
    day = lambda: f"2020-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    moment = lambda: f"{day()} {rng.choice(['00:00', '00:00', '12:30', '23:59:59.999999'])}"
    word = lambda: "".join(rng.choice("abc_%") for _ in range(rng.randint(0, 4)))
    t = [f"({i}, {null(.1, rng.randint(0, 40))}, {null(.1, min(rng.randint(0, 30), rng.randint(0, 30)))}, {null(.1, repr(word()))}, "
         f"{null(.1, rng.randint(-500, 500) / 4)}, {null(.1, repr(day()))}, "
         f"{null(.2, rng.choice([1, 2, 3, 2**40 + rng.randint(0, 9)]))}, {null(.3, repr(word() + str(i)))}, "
         f"{null(.1, rng.randint(-20, 20) / 10)}, {null(.1, repr(moment()))})" for i in range(600)]
    u = {(rng.randint(0, 30), rng.randint(0, 30)) for _ in range(300)}
    u = [f"({k}, {m}, {null(.1, repr(word()))}, {null(.1, rng.randint(0, 50))})" for k, m in sorted(u)]
    s = [f"({null(.1, rng.randint(0, 700))}, {null(.2, rng.randint(0, 40))}, {null(.2, repr(word()))})" for _ in range(60)]
    q = [f"({i}, {null(.2, rng.randint(1, 4))}, {null(.05, rng.randint(0, 60))}, {null(.1, repr(word()))})" for i in range(500)]
    return [f"insert into {{s}}.{name} values {', '.join(values)}" for name, values in (("t", t), ("u", u), ("s", s), ("q", q))]


# How long a statement may take.
SECONDS = 4
# Tables of a few pages are read in parts, by helpers too, once ANALYZE has said how large they are.
IN_PARTS = "-c max_parallel_workers_per_gather=3 -c min_parallel_table_scan_size=0 -c force_parallel_mode=on"


class Queries:
    def __init__(self, rng):
        self.rng = rng
        self.depth = 0

    def number(self):
        return str(self.rng.choice([self.rng.randint(-2, 45), self.rng.randint(0, 10), 2**31 + 5, -(2**33)]) if self.rng.random() < .1
                   else self.rng.randint(-1, 42))

    def text(self):
        return repr("".join(self.rng.choice("abc_") for _ in range(self.rng.randint(0, 3))))

    def value(self, column):
        if self.rng.random() < .03:
            return "null"
        name = column.split(".")[-1]
        if name in "cgvn":
            return self.text()
        if name == "d":
            return str(self.rng.randint(-500, 500) / 4)
        if name in "ey":
            day = f"2020-{self.rng.randint(1, 12):02}-{self.rng.randint(1, 28):02}"
            moment = f"timestamp '{day} {self.rng.choice(['00:00', '00:00', '12:30'])}'"
            return self.rng.choice([f"date '{day}'", f"date '{day}'", moment, f"date '{day}' + interval '1 month'"])
        if name == "x":
            return self.rng.choice(["{}", "{}::real", "{}::float8", "{}::numeric"]).format(f"({self.rng.randint(-22, 22)} / 10.0)")
        return self.number()

    def columns(self, table, alias):
        names = {"t": "id a b c d e f g x y", "u": "k m v w", "s": "id a n", "q": "id o p v"}[table].split()
        return [f"{alias}.{n}" for n in names]

    def same_kind(self, column, others):
        kind = lambda c: {"c": "text", "g": "text", "v": "text", "n": "text", "d": "d", "e": "e", "x": "x", "y": "e"}.get(c.split(".")[-1], "int")
        fit = [o for o in others if kind(o) == kind(column)]
        return self.rng.choice(fit) if fit else None

    def predicate(self, table, alias, outer=()):
        """A condition over one table; `outer`: columns of queries around."""
        rng, pick = self.rng, self.rng.random()
        columns = self.columns(table, alias)
        column = rng.choice(columns)
        if outer and rng.random() < .7 and (other := self.same_kind(column, outer)):
            return f"{column} {rng.choice(['=', '=', '=', '<', '>='])} {other}"
        texts = [c for c in columns if c.split(".")[-1] in "cgvn"]
        ints = [c for c in columns if c.split(".")[-1] in ("id", "a", "b", "f", "k", "m", "w", "o", "p")]
        if pick < .25:
            return f"{column} {rng.choice(['=', '=', '=', '<', '<=', '>', '>=', '<>'])} {self.value(column)}"
        if pick < .33:
            return f"{column} {rng.choice(['in', 'in', 'not in'])} ({', '.join(self.value(column) for _ in range(rng.randint(1, 4)))})"
        if pick < .42:
            c = rng.choice(ints)
            return f"{c} = any (array[{', '.join(self.number() for _ in range(rng.randint(1, 5)))}]::bigint[])"
        if pick < .47:
            return f"{column} is {rng.choice(['', '', 'not '])}null"
        if pick < .55:
            c, pattern = rng.choice(texts), self.text()[1:-1]
            return rng.choice([f"{c} like '{pattern}%'", f"{c} like '{pattern}'", f"{c} ~ '^{pattern.replace('_', '')}'",
                               f"{c} like '{pattern}\\_%'", f"{c} not like '{pattern}%'"])
        if pick < .65:
            x, y = rng.sample(ints, 2)
            return f"({x}, {y}) {rng.choice(['<', '<=', '>', '>=', '='])} ({self.number()}, {self.number()})"
        if pick < .7:
            x, y = rng.sample(ints, 2)
            pairs = ", ".join(f"({self.number()}, {self.number()})" for _ in range(rng.randint(1, 3)))
            return f"({x}, {y}) in ({pairs})"
        if pick < .8 and self.depth < 3:
            self.depth += 1
            arms = [self.conditions(table, alias, 2) for _ in range(rng.randint(2, 3))]
            self.depth -= 1
            return "(" + " or ".join(f"({a})" for a in arms) + ")"
        if pick < .92 and self.depth < 2:
            return self.sub_select(columns, column)
        return f"{column} between {self.value(column)} and {self.value(column)}"

    def sub_select(self, columns, column):
        rng = self.rng
        self.depth += 1
        inner = rng.choice("tus")
        alias = f"x{self.depth}"
        other = self.same_kind(column, self.columns(inner, alias))
        correlated = columns if rng.random() < .6 else ()
        where = self.conditions(inner, alias, 2, correlated)
        self.depth -= 1
        if other and rng.random() < .5:
            return f"{column} {rng.choice(['', '', 'not '])}in (select {other} from {inner} {alias} where {where})"
        if other and rng.random() < .2:
            return f"{column} = (select {rng.choice(['min', 'max'])}({other}) from {inner} {alias} where {where})"
        return f"{rng.choice(['', 'not '])}exists (select 1 from {inner} {alias} where {where})"

    def conditions(self, table, alias, most, outer=()):
        return " and ".join(self.predicate(table, alias, outer) for _ in range(self.rng.randint(1, most)))

    def join(self):
        rng = self.rng
        tables = [(rng.choice("tus"), f"r{i}") for i in range(rng.randint(2, 4))]
        text = " ".join(tables[0])
        for i, (table, alias) in enumerate(tables[1:], 1):
            mine, before = self.columns(table, alias), [c for t, a in tables[:i] for c in self.columns(t, a)]
            pairs = [(m, o) for m in rng.sample(mine, 2) if (o := self.same_kind(m, before))]
            on = " and ".join(f"{m} = {o}" for m, o in pairs[:rng.randint(1, 2)]) or "true"
            if rng.random() < .3:
                on += " and " + self.predicate(table, alias)
            kind = rng.choice(["join", "join", "left join", "left join", "right join", "full join" if on.count("=") and "r0" in on and rng.random() < .3 else "join"])
            if kind == "full join":
                on = f"{pairs[0][0]} = {pairs[0][1]}" if pairs else "true"
                if not pairs:
                    kind = "join"
            if on == "true" and kind == "join":
                on += f" and {alias}.{mine[0].split('.')[1]} < 5"
            text += f" {kind} {table} {alias} on {on}"
        where = " and ".join(self.predicate(*rng.choice(tables)) for _ in range(rng.randint(1, 3)))
        out = [c for t, a in tables for c in self.columns(t, a)[:2]]
        return text, where, out

    def derived(self):
        """A view-like query in FROM or WITH."""
        rng = self.rng
        table = rng.choice("tus")
        columns = self.columns(table, "y")
        kind = rng.random()
        where = self.conditions(table, "y", 2)
        if kind < .5:
            inner = f"select {', '.join(columns)} from {table} y where {where}"
            names = [c.split(".")[1] for c in columns]
        elif kind < .8:
            key = rng.choice(columns)
            inner = f"select {key}, count(*) as q, min({columns[0]}) as r from {table} y where {where} group by {key}"
            names = [key.split(".")[1], "q", "r"]
        else:
            inner = f"select distinct {columns[1]} from {table} y where {where}"
            names = [columns[1].split(".")[1]]
        column = rng.choice(names)
        test = f"z.{column} {rng.choice(['=', '<', '>='])} {self.value('z.' + column)}"
        if rng.random() < .5:
            return f"select * from ({inner}) z where {test} order by {self.all(len(names))}"
        kept = rng.choice(["", "materialized ", "not materialized "])
        return f"with z as {kept}({inner}) select * from z where {test} order by {self.all(len(names))}"

    def leading(self):
        """Few values lead an index: the columns behind them are sought, or the values themselves."""
        rng = self.rng
        where = self.conditions("q", "q", 1) if rng.random() < .4 else rng.choice(["true", f"o > {rng.randint(0, 4)}", f"p < {self.number()}"])
        if rng.random() < .4:
            behind = rng.choice([f"p = {self.number()}", f"p between {self.number()} and {self.number()}", f"v = {self.text()}",
                                 f"p in ({self.number()}, {self.number()})", f"p > {rng.randint(50, 60)}", f"p = {self.number()} and v < {self.text()}",
                                 "p is null", f"o between {rng.randint(0, 3)} and {rng.randint(1, 4)} and p = {self.number()}", f"(p = {self.number()} or o = 2 and v = {self.text()})"])
            columns = rng.choice(["*", "o, p", "o, v, id", "count(*), min(id)"])
            return f"select {columns} from q where {behind} and {where}" + ("" if "count" in columns else f" order by {columns.replace('*', 'id')}")
        of, order = rng.choice([("distinct o", "1"), ("distinct o, p", "1, 2"), ("o, min(p)", "1"), ("o, max(p)", "1"), ("o, min(v), min(p)", "1"),
                                ("o, min(v)", "1"), ("o, max(v)", "1"), ("p, min(id), max(id)", "1"), ("p, max(id) - min(id), min(id)", "1"), ("o, min(v), max(v)", "1"), ("o", "1 desc"), ("count(distinct o), max(o)", "1"),
                                ("distinct on (o) o, p", "o desc, p"), ("distinct on (o) o, p", "o, p"), ("distinct on (o) o, p, v", "o desc, p desc, v desc")])
        group = f" group by {of[0]}" if of[:2] in ("o", "o,", "p,") else ""
        having = " having min(p) > 3" if group and rng.random() < .2 else ""
        limit = f" limit {rng.randint(1, 3)}" if rng.random() < .2 else ""
        if rng.random() < .2:
            return f"select distinct k from u where k > {self.number()} order by 1{limit}"
        return f"select {of} from q where {where}{group}{having} order by {order}{limit}"

    def compared_rows(self):
        """Comparisons of rows with the leading columns of keys, also written out; rows in their order, or another."""
        rng = self.rng
        table, columns = rng.choice([("q", "o p"), ("q", "o p v"), ("q", "p id"), ("q", "o v"), ("q", "p o"), ("q", "o id"), ("u", "k m"), ("u", "w v"), ("t", "b f"), ("t", "y a")])
        columns = columns.split()
        value = lambda c: "null" if rng.random() < .05 else self.text() if c == "v" else f"'2020-{rng.randint(1, 12):02}-15'" if c == "y" else self.number()

        def test():
            op, values = rng.choice(["<", "<=", ">", ">="]), [value(c) for c in columns]
            if rng.random() < .8:
                return f"({', '.join(columns)}) {op} ({', '.join(values)})"
            return f"({columns[0]} {op[0]} {values[0]} or {columns[0]} = {values[0]} and {columns[1]} {op} {values[1]})"
        where = " and ".join([test()] + [test()] * (rng.random() < .1) + [test() for _ in range(rng.randint(0, 1))])
        if rng.random() < .3:
            where += " and " + rng.choice([f"{columns[0]} = {value(columns[0])}", f"{columns[-1]} <> {value(columns[-1])}", f"{columns[0]} is not null"])
        if rng.random() < .2:
            return f"select count(*), min({columns[1]}), max({columns[0]}) from {table} where {where}"
        down = rng.choice(["", " desc"])
        order = ", ".join(c + down for c in columns) + {"u": ", k, m", "q": ", id", "t": ", id"}[table]
        limit = f" limit {rng.randint(1, 6)}" if rng.random() < .5 else ""
        if rng.random() < .2:
            return f"select distinct on ({columns[0]}) {', '.join(columns)} from {table} where {where} order by {', '.join(c + down for c in columns)}{limit}"
        return f"select {rng.choice(['*', ', '.join(columns)])} from {table} where {where} order by {order}{limit}"

    def merged(self):
        """Joins whose sides may come in the order of their keys: all kinds, with several rows of a key and nulls."""
        rng = self.rng
        keyed = [("t", "id", "a"), ("u", "k", "m"), ("q", "id", "id"), ("q", "p", "id"), ("q", "o", "p"), ("t", "a", "id"), ("u", "m", "k"), ("t", "f", "b")]
        (l, x, y), (r, z, w) = rng.choice(keyed), rng.choice(keyed)
        on = f"l.{x} = r.{z}"
        if rng.random() < .2:
            on += f" and l.{y} = r.{w}"
        kind = rng.choice(["join", "left join", "right join", "full join"])
        if kind != "full join" and rng.random() < .4:
            on += f" and l.{y} {rng.choice(['<', '<>', '>'])} r.{w}"
        where = rng.choice(["true", "true", f"l.{x} < {self.number()}", f"r.{z} between 3 and {self.number()}", f"l.{x} is null", f"coalesce(r.{w}, l.{y}) > 9"])
        if rng.random() < .3:
            return (f"select l.{x}, l.{y} from {l} l where {rng.choice(['', 'not '])}exists (select from {r} r where {on} and {where}) order by 1, 2"
                    + rng.choice(["", " desc", f" limit {rng.randint(1, 9)}"]))
        if "o" in (x, z) or rng.random() < .3:
            return f"select count(*), sum(l.{y}), count(l.{x}), sum(r.{w}), count(r.{z}) from {l} l {kind} {r} r on {on} where {where}"
        down = rng.choice(["", " desc"])
        return f"select l.{x}, l.{y}, r.{z}, r.{w} from {l} l {kind} {r} r on {on} where {where} order by 1{down}, 2{down}, 3, 4"

    def semi(self):
        """Rows for which a query has some rows, or none: its key unique or not, of another type, null, made by DISTINCT, GROUP BY or a union, over several tables."""
        rng = self.rng
        numbers = {"t": ["id", "a", "b", "d", "f"], "u": ["k", "m", "w"], "s": ["id", "a"], "q": ["id", "o", "p"]}
        texts = {"t": ["c", "g"], "u": ["v"], "s": ["n"], "q": ["v"]}
        outer = rng.choice("ttuq")
        text, where = f"{outer} l", []
        if rng.random() < .3:
            # As a view is: taken in by the level around it.
            text = rng.choice([f"(select * from {outer}) l", f"(select * from {outer} where {self.predicate(outer, outer)}) l"])
        if rng.random() < .4:
            beside = rng.choice("tuq")
            text += f", {beside} b"
            where.append(f"b.{rng.choice(numbers[beside][:2])} = l.{rng.choice(numbers[outer][:3])}")
        if rng.random() < .4:
            where.append(self.predicate(outer, "l"))
        for n in range(rng.choice([1, 1, 1, 2])):
            where.append(self.semi_condition(outer, f"r{n}", numbers if rng.random() < .8 else texts))
        columns = self.columns(outer, "l")[:2]
        if rng.random() < .3:
            return f"select count(*), {', '.join(f'sum({c})' for c in columns[:1])} from {text} where {' and '.join(where)}"
        limit = rng.choice(["", "", f" limit {rng.randint(1, 9)}"])
        return f"select {', '.join(columns)} from {text} where {' and '.join(where)} order by 1, 2{limit}"

    def semi_condition(self, outer, alias, keys):
        rng = self.rng
        inner = rng.choice("tusq")
        key, other = f"l.{rng.choice(keys[outer])}", f"{alias}.{rng.choice(keys[inner])}"
        text, where = f"{inner} {alias}", []
        if rng.random() < .3:
            more = rng.choice("tuq")
            text += f", {more} {alias}m"
            where.append(f"{alias}m.{rng.choice(keys[more][:2])} = {alias}.{rng.choice(keys[inner][:2])}")
        where += [self.predicate(inner, alias, self.columns(outer, "l") if rng.random() < .25 else ()) for _ in range(rng.choice([0, 1, 1]))]
        if rng.random() < .25:
            third = rng.choice("tuq")
            where.append(f"{alias}.{rng.choice(keys[inner])} {rng.choice(['', '', 'not '])}in (select z.{rng.choice(keys[third])} from {third} z where {self.predicate(third, 'z')})")
        if rng.random() < .4:
            exists = [f"{other} = {key}", *where]
            if rng.random() < .2:
                exists.append(f"{alias}.{rng.choice(keys[inner])} {rng.choice(['=', '<>', '<'])} l.{rng.choice(keys[outer])}")
            behind = rng.choice(["", "", "", " limit 1", f" order by {other}", f" group by {other}", " limit 0"])
            if "group" in behind:
                return f"{rng.choice(['', 'not '])}exists (select {other} from {text} where {' and '.join(exists)}{behind})"
            return f"{rng.choice(['', '', 'not '])}exists (select {rng.choice(['', '1', '*'])} from {text} where {' and '.join(exists)}{behind})"
        if rng.random() < .15:
            second, its = f"l.{rng.choice(keys[outer])}", f"{alias}.{rng.choice(keys[inner])}"
            return f"({key}, {second}) {rng.choice(['in', 'in', 'not in'])} (select {other}, {its} from {text} where {' and '.join(where) or 'true'})"
        shape = rng.choice(["{0}", "{0}", "{0}", "distinct {0}", "max({0})", "{0} + 0" if keys["s"] != ["n"] else "{0} || ''"])
        select = f"select {shape.format(other)} from {text} where {' and '.join(where) or 'true'}"
        if shape == "{0}":
            select += rng.choice(["", "", f" group by {other}", f" group by {other} having count(*) > 1", f" order by {other} offset 2", f" union select {keys[outer][0]} from {outer}",
                                  f" except select {keys[outer][-1]} from {outer}"])
        return f"{key} {rng.choice(['in', 'in', '= any', 'not in'])} ({select})"

    @staticmethod
    def all(n):
        return ", ".join(str(i + 1) for i in range(n))

    def query(self):
        rng, pick = self.rng, self.rng.random()
        self.depth = 0
        if rng.random() < .3:
            return rng.choice([self.leading, self.merged, self.compared_rows, self.semi])()
        if pick < .5:
            table = rng.choice("ttu")
            columns = self.columns(table, table)
            where = self.conditions(table, table, 3)
            if rng.random() < .15:
                least = ", ".join(f"{rng.choice(['min', 'max', 'count'])}({c})" for c in rng.sample(columns, 2))
                return f"select {least} from {table} where {where}"
            key = f"{table}.id" if table == "t" else "u.k, u.m"
            first = rng.choice(columns)
            down = rng.choice(["", " desc", " nulls first", " desc nulls last"])
            limit = rng.choice(["", f" limit {rng.randint(0, 5)}", f" limit {rng.randint(1, 9)} offset {rng.randint(0, 9)}"])
            return f"select * from {table} where {where} order by {first}{down}, {key}{limit}"
        if pick < .8:
            text, where, out = self.join()
            if rng.random() < .3:
                return f"select count(*), {', '.join(f'min({c})' for c in out)} from {text} where {where}"
            return f"select {', '.join(out)} from {text} where {where} order by {self.all(len(out))}"
        if pick < .9:
            return self.derived()
        table = rng.choice("tu")
        where = self.conditions(table, table, 2)
        column = "a" if table == "t" else "w"
        source = self.columns("s", "s")
        if rng.random() < .4:
            return f"update {table} set {column} = {column} + 1 where {where}"
        if rng.random() < .5:
            join = self.predicate(table, table, source)
            return f"update {table} set {column} = 7 from s where {join} and {self.predicate('s', 's')}"
        return f"delete from {table} where {where}"


# What is compared with a column, and may be a parameter.
CONSTANT = re.compile(r"(?<=[=<>] )(-?\d+|'[^']*')(?=[ ),]|$)|(?<=like )'[^']*'")


def prepared(query):
    """The query with parameters for some of its constants, their types and their values."""
    values, types = [], []

    def parameter(found):
        values.append(found.group())
        types.append("text" if found.group()[0] == "'" else "int" if abs(int(found.group())) < 2**31 else "bigint")
        return f"${len(values)}"
    text = CONSTANT.sub(parameter, query)
    return (text, f"({', '.join(types)})", f"({', '.join(values)})") if values else (text, "", "")


class BothPlans:
    """A session that runs each query as a prepared statement, by a plan for its values and by one for any."""

    def __init__(self, session):
        self.session = session

    def ask(self, query):
        if not query.startswith(("select", "with", "update", "delete")):
            return self.session.ask(query)
        text, types, values = prepared(query)
        self.session.ask("deallocate all")
        told = self.session.ask(f"prepare p{types} as {text}")
        if told.error:
            # A type that has no operator with the column's: as it stands.
            return self.session.ask(query)
        self.session.ask("savepoint s")
        self.session.ask("set plan_cache_mode = force_custom_plan")
        custom = run(self.session, f"execute p{values}")
        self.session.ask("rollback to s")
        self.session.ask("set plan_cache_mode = force_generic_plan")
        generic = self.session.ask(f"execute p{values}")
        if not generic.error and custom != generic.results[-1][1]:
            raise SystemExit(f"a plan for the values at hand gives {str(custom)[:300]}, one for any {str(generic.results[-1][1])[:300]}: {query}")
        return generic


class Steered:
    """A session that switches ways to plan off and on, and says other costs, before each query."""
    WAYS = [f"enable_{way}" for way in
            "seqscan indexscan indexonlyscan bitmapscan tidscan hashjoin mergejoin nestloop material sort hashagg".split()]
    OTHERS = {"seq_page_cost": ["0", "1", "50"], "random_page_cost": ["0", "1.1", "4", "100"], "cpu_tuple_cost": ["0.01", "1"],
              "cpu_index_tuple_cost": ["0.005", "1"], "cpu_operator_cost": ["0.0025", "1"], "join_collapse_limit": ["1", "2", "60"],
              "from_collapse_limit": ["1", "2", "60"], "geqo_threshold": ["2", "12"], "recursive_worktable_factor": ["1", "10"]}

    def __init__(self, session, seed):
        self.session, self.rng, self.by = session, random.Random(seed), ""

    def steer(self):
        """Other settings; those of the query that comes are in `by`."""
        off = {way: "off" for way in self.WAYS if self.rng.random() < .35}
        others = {name: self.rng.choice(values) for name, values in self.OTHERS.items() if self.rng.random() < .3}
        sets = [f"set {name} = {value}" for name, value in {**off, **others}.items()]
        self.by = "; ".join(sets)
        names = [*self.WAYS, *self.OTHERS]
        self.session.ask("; ".join([*(f"reset {name}" for name in names), *sets]))

    def ask(self, query):
        return self.session.ask(query)


def answer(session, query):
    """What a server answers: rows, or the SQLSTATE of an error. Changes are taken back."""
    if query.startswith(("update", "delete")):
        table = query.split()[2] if query.startswith("delete") else query.split()[1]
        session.ask("begin")
        told = run(session, query)
        after = run(session, f"select * from {table} order by 1, 2") if isinstance(told, list) else told
        session.ask("rollback")
        return after
    return run(session, query)


def run(session, query):
    reply = session.ask(query)
    if not reply.error:
        return reply.results[-1][1]
    told = reply.error[0] + " " + reply.error[1]
    if reply.error[0] != "57014" and reply.error[0].startswith(("XX", "57")):
        # Such an error may have ended the session.
        try:
            session.ask("select 1")
        except Gone as gone:
            raise Gone(f"{told}; {gone}") from gone
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clearway")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", type=int)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        clearway = Clearway(scratch, os.path.realpath(chosen.clearway))
        clearway.start()
        postgres = None
        if chosen.postgres is None:
            postgres = Postgres(scratch)
            postgres.start()
        try:
            passed, failed = compare(chosen, clearway, postgres.port if postgres else chosen.postgres)
        finally:
            clearway.stop()
            if postgres:
                postgres.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def of_clearway(port, seed):
    return {"with indexes": Session(port, "-c search_path=i"), "without": Session(port, "-c search_path=n"),
            "in parts": Session(port, f"-c search_path=n {IN_PARTS}"), "prepared": BothPlans(Session(port, "-c search_path=i")),
            "steered": Steered(Session(port, "-c search_path=i"), seed)}


def of_postgres(port):
    return {"PostgreSQL": Session(port, "-c search_path=i")}


def limited(sessions):
    for session in sessions.values():
        run(session, f"set statement_timeout = '{SECONDS}s'")
    return sessions


def opened_anew(name, clearway, postgres, seed):
    """The sessions of the server from which this one is gone. Clearway is started again if it has ended."""
    if name == "PostgreSQL":
        return limited(of_postgres(postgres))
    if clearway.process.poll() is not None:
        clearway.close()
        clearway.start()
    return limited(of_clearway(clearway.port, seed))


def compare(chosen, clearway, postgres):
    rng = random.Random(chosen.seed)
    sessions = {**of_clearway(clearway.port, chosen.seed), **of_postgres(postgres)}
    fill = rows(rng)
    for name, session in sessions.items():
        if name in ("in parts", "prepared", "steered"):
            continue
        schema = "n" if name == "without" else "i"
        key, pair = ("", "") if schema == "n" else ("primary key", ", primary key (k, m)")
        prepare = [f"drop schema if exists {schema} cascade"] if name == "PostgreSQL" else []
        prepare += [f"create schema {schema}", *TABLES.format(s=schema, key=key, pair=pair).strip().split(";\n")]
        prepare += [statement.format(s=schema) for statement in fill] + (INDEXES.replace("\n", " ").split(";") if schema == "i" else [])
        for statement in prepare:
            if statement.strip() and isinstance(told := run(session, statement), str):
                raise SystemExit(f"{name}: {told}: {statement[:200]}")
    limited(sessions)
    passed = failed = 0
    began = time.monotonic()
    for n in range(chosen.queries):
        if time.monotonic() - began > chosen.seconds:
            break
        if n == chosen.queries // 2:
            for name in ("with indexes", "without"):
                run(sessions[name], "analyze")
        query = Queries(rng).query()
        sessions["steered"].steer()
        answers, gone = {}, False
        for name, session in list(sessions.items()):
            try:
                answers[name] = answer(session, query)
            except Gone as why:
                gone = True
                print(f"seed {chosen.seed}, query {n}: {name}: {why}: {query}")
                sessions.update(opened_anew(name, clearway, postgres, chosen.seed))
        if gone:
            failed += 1
            continue
        # Some joins are large, and some of them are slow without an index.
        if any(isinstance(a, str) and a.startswith("57014") for a in answers.values()):
            continue
        if len({repr(a) for a in answers.values()}) == 1:
            passed += 1
            continue
        failed += 1
        print(f"seed {chosen.seed}, query {n}: {query}")
        print(f"  steered by: {sessions['steered'].by}")
        for name, told in answers.items():
            print(f"  {name}: {told if isinstance(told, str) else f'{len(told)} rows, {str(told)[:300]}'}")
    return passed, failed


if __name__ == "__main__":
    sys.exit(main())
