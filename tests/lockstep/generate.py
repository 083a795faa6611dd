"""Makes random schedules: first tables, then one step after the other by what each session is in. Everything from one seed."""
import random

from schedule import Schedule, Step
from shapes import Shapes

ACTIONS = ["no action", "restrict", "cascade", "cascade", "set null", "set default"]
STRENGTHS = ["update", "no key update", "share", "key share"]
TABLE_MODES = ["access share", "row share", "row exclusive", "share update exclusive", "share", "share row exclusive", "exclusive", "access exclusive"]


class Table:
    def __init__(self, name, columns, key="id", parent=None, link=None):
        self.name, self.columns, self.key = name, columns, key
        self.parent, self.link = parent, link  # the table that column `link` leads to


class Generator(Shapes):
    """`ddl`: how many of a hundred statements are DDL, `more`: how many have the shapes of shapes.py; none draws it."""

    def __init__(self, seed, ddl=None, more=None):
        self.rng = random.Random(seed)
        self.ddl = self.rng.choice([0, 0, 0, 8, 20]) if ddl is None else ddl
        self.count = self.rng.choice([3, 3, 3, 4, 5])
        self.length = self.rng.randint(8, 24)
        self.savepoints = {}
        self.session_locks = set()
        self.tables = []
        # What shapes.py keeps; half of the schedules have its shapes.
        self.more_tables, self.cursors, self.prepared_names, self.has_put = [], {}, {}, False
        self.more = self.rng.choice([0, 0, 30, 60]) if more is None else more
        self.sequence = self.chance(25)
        self.view = self.chance(12)
        self.setup = self.make_tables()

    # Dice.
    def chance(self, percent):
        return self.rng.random() * 100 < percent

    def pick(self, *weighted):
        """One of (weight, value) pairs."""
        return self.rng.choices([v for _, v in weighted], [w for w, _ in weighted])[0]

    def key(self):
        return self.pick((36, 1), (27, 2), (16, 3), (9, 4), (7, 5), (5, 6))

    # Tables.
    def make_tables(self):
        rng, lines = self.rng, []
        unique = rng.choice([" unique", " unique", ""])
        check = ", check (v < 4)" if self.chance(12) else ""
        boss = f", boss int references p (id) on delete {rng.choice(ACTIONS)}" if self.chance(10) else ""
        lines.append(f"create table p (id int primary key, u int{unique}, g int, v int not null default 0{boss}{check})")
        p = Table("p", ["u", "g", "v"] + (["boss"] if boss else []))
        self.tables.append(p)
        lines.append("insert into p (id, u, g) values " + ", ".join(f"({k}, {k * 10}, {k % 2})" for k in range(1, 5)))
        if self.chance(50):
            lines.append("create index p_g on p (g)")
        if self.chance(80):
            by_u = unique and self.chance(15)
            default = rng.choice(["", "", " default 1", " default 4"])
            unique_c = rng.choice([" unique", "", ""])
            lines.append(f"create table c (id int primary key, pid int{default} references p{' (u)' if by_u else ''} "
                         f"on delete {rng.choice(ACTIONS)} on update {rng.choice(ACTIONS)}, u int{unique_c}, v int not null default 0)")
            c = Table("c", ["u", "v", "pid"], parent=p, link="pid")
            c.times = 10 if by_u else 1
            self.tables.append(c)
            rows = [(k, rng.choice([1, 1, 2, 2, 3, None])) for k in range(1, rng.randint(2, 5))]
            lines.append("insert into c (id, pid, u) values " + ", ".join(
                f"({k}, {'null' if up is None else up * c.times}, {k * 10})" for k, up in rows))
            if self.chance(60):
                lines.append("create index c_pid on c (pid)")
            if self.chance(30):
                lines.append(f"create table d (id int primary key, cid int references c on delete {rng.choice(ACTIONS)} "
                             f"on update {rng.choice(ACTIONS)}, v int not null default 0)")
                self.tables.append(d := Table("d", ["v", "cid"], parent=c, link="cid"))
                d.times = 1
                known = [k for k, _ in rows]
                lines.append("insert into d (id, cid) values " + ", ".join(f"({k}, {rng.choice(known)})" for k in range(1, 4)))
        if self.chance(15):
            lines.append("create table t (a int, b int, v int not null default 0, primary key (a, b))")
            lines.append("insert into t (a, b) values (1, 1), (1, 2), (2, 1), (2, 2)")
            self.tables.append(Table("t", ["v", "b"], key="a"))
        if self.chance(12):
            lines.append("create table q (id serial primary key, v int not null default 0)")
            lines.append("insert into q (v) values (0), (0)")
            self.tables.append(Table("q", ["v"]))
        if self.sequence:
            lines.append("create sequence sq")
        if self.view:
            lines.append("create view vw as select id, v from p where v < 50")
        if self.more:
            lines += self.make_more_tables(Table)
        return lines

    def table(self):
        return self.rng.choice(self.tables[:3] * 3 + self.tables[3:] if self.chance(50) else self.tables)

    # Conditions. Each can use an index of PostgreSQL, so that rows are visited in the order of their keys.
    def where(self, t):
        k, key = self.key, t.key
        choices = [(45, f"{key} = {k()}"), (8, f"{key} in ({k()}, {k()})"), (9, f"{key} > 0"), (7, f"{key} between {k()} and 9")]
        if "u" in t.columns:
            choices.append((9, f"u = {k() * 10}"))
        if "g" in t.columns:
            choices.append((3, f"g = {self.rng.randint(0, 1)} and id < 4"))
        if t.link:
            choices.append((8, f"{t.link} = {k() * t.times}"))
        found = self.pick(*choices)
        if self.chance(7):
            found += f" and v < {self.rng.randint(1, 3)}"
        return found

    def value(self, t, column):
        rng = self.rng
        if column == "v":
            return rng.choice(["v + 1", "v + 1", "v + 1", "v * 2 + 1", "0"])
        if column == "g":
            return str(rng.randint(0, 2))
        if column == "u":
            return self.pick((80, str(self.key() * 10)), (20, "null"))
        if column == t.link:
            return self.pick((85, str(self.key() * t.times)), (15, "null"))
        return str(self.key())

    # Statements.
    def select(self):
        t, rng = self.table(), self.rng
        if self.chance(20):
            p, c = self.tables[0], next((x for x in self.tables if x.link), None)
            if c:
                up = c.parent
                column = "u" if c.times == 10 else "id"
                return rng.choice([
                    f"select x.id, y.id, x.v, y.v from {up.name} x join {c.name} y on y.{c.link} = x.{column}",
                    f"select count(*) from {up.name} x where exists (select 1 from {c.name} y where y.{c.link} = x.{column})",
                    f"select x.id, y.id from {up.name} x left join {c.name} y on y.{c.link} = x.{column} where x.id = {self.key()}"])
            return f"select count(*), sum(v) from {p.name}"
        if self.view and self.chance(15):
            return "select * from vw"
        if self.sequence and self.chance(8):
            return "select last_value, is_called from sq"
        return rng.choice([f"select * from {t.name} where {self.where(t)}", f"select * from {t.name}",
                           f"select count(*), sum(v) from {t.name} where {self.where(t)}"])

    def locking(self):
        t, rng = self.table(), self.rng
        strength, impatience = rng.choice(STRENGTHS), self.pick((60, ""), (20, " nowait"), (20, " skip locked"))
        if self.view and self.chance(10):
            return f"select * from vw where id = {self.key()} for {strength}{impatience}"
        c = next((x for x in self.tables if x.link), None)
        if c and self.chance(15):
            up, column = c.parent, "u" if c.times == 10 else "id"
            of = rng.choice(["", " of x", " of y"])
            left = "left " if self.chance(8) else ""
            return (f"select x.id, y.id, x.v, y.v from {up.name} x {left}join {c.name} y on y.{c.link} = x.{column} "
                    f"where x.id = {self.key()} for {strength}{of}{impatience}")
        if self.chance(6):
            return f"select * from {t.name} where {t.key} in (select {t.key} from {t.name} where {self.where(t)} for {strength}) and v < 9"
        if self.chance(12):
            return f"select * from {t.name} where {t.key} > 0 order by {t.key} limit {rng.randint(1, 2)} for {strength}{impatience}"
        return f"select * from {t.name} where {self.where(t)} for {strength}{impatience}"

    def insert(self):
        t, rng = self.table(), self.rng
        if t.name == "t":
            columns, row = "(a, b, v)", lambda: f"({rng.randint(1, 3)}, {rng.randint(1, 3)}, 0)"
        elif t.name == "q":
            return rng.choice(["insert into q (v) values (1) returning id", "insert into q default values returning *",
                               f"insert into q (id) values ({self.key()})"])
        elif t.link:
            columns = f"(id, {t.link}, v)" if "u" not in t.columns else f"(id, {t.link}, u, v)"
            u = (lambda: f" {self.key() * 10},") if "u" in t.columns else (lambda: "")
            row = lambda: f"({self.key() + 1}, {self.value(t, t.link)},{u()} 0)"
        else:
            columns, row = "(id, u, g, v)", lambda: f"({self.key() + 1}, {self.key() * 10}, {rng.randint(0, 2)}, 0)"
        rows = row() if self.chance(80) else f"{row()}, {row()}"
        sql = f"insert into {t.name} {columns} values {rows}"
        if self.chance(8) and t.link is None and t.name == "p":
            sql = f"insert into p (id, u, g, v) select id + 3, u + 30, g, v from p where {self.where(t)}"
        if self.chance(45):
            do = rng.choice(["do nothing", f"do update set v = {t.name}.v + 1", f"do update set v = excluded.v + {t.name}.v + 1",
                             f"do update set v = {t.name}.v + 1 where {t.name}.v < 2"])
            key = "(a, b)" if t.name == "t" else "(id)"
            target = self.pick((60, key), (25, "(u)" if "u" in t.columns else key), (15, "" if do == "do nothing" else key))
            if target == "(u)" and self.chance(20) and t.name == "p":
                do = f"do update set id = {self.key() + 1}"
            sql += f" on conflict {target + ' ' if target else ''}{do}"
        if self.chance(25):
            sql += " returning *"
        return sql

    def update(self):
        t, rng = self.table(), self.rng
        returning = " returning *" if self.chance(20) else ""
        child = next((x for x in self.tables if x.parent is t), None)
        if child and self.chance(8):
            column = "u" if child.times == 10 else "id"
            return rng.choice([
                f"update {t.name} set v = v + 1 where exists (select 1 from {child.name} y where y.{child.link} = {t.name}.{column} and y.v < 3) "
                f"and id > 0{returning}",
                f"update {t.name} set v = {t.name}.v + y.v + 1 from {child.name} y where y.{child.link} = {t.name}.{column} and y.id = {self.key()}"])
        if self.view and self.chance(5):
            return f"update vw set v = v + 1 where id = {self.key()}"
        if t.name != "t" and self.chance(22):
            where = f"id = {self.key()}" if self.chance(80) else self.where(t)
            return f"update {t.name} set id = {self.pick((60, str(self.key() + 1)), (20, 'id + 10'), (10, 'id + 1'), (10, 'id'))} where {where}{returning}"
        column = self.pick((55, "v"), (45, rng.choice(t.columns)))
        more = ", v = v + 1" if column != "v" and self.chance(20) else ""
        return f"update {t.name} set {column} = {self.value(t, column)}{more} where {self.where(t)}{returning}"

    def delete(self):
        t = self.table()
        child = next((x for x in self.tables if x.parent is t), None)
        if child and self.chance(15):
            column = "u" if child.times == 10 else "id"
            return self.rng.choice([
                f"delete from {t.name} where not exists (select 1 from {child.name} y where y.{child.link} = {t.name}.{column}) and id > 0",
                f"delete from {t.name} using {child.name} y where y.{child.link} = {t.name}.{column} and y.id = {self.key()}"])
        return f"delete from {t.name} where {self.where(t)}" + (" returning *" if self.chance(20) else "")

    def other(self, session, status):
        rng = self.rng
        if self.sequence and self.chance(50):
            return rng.choice(["select nextval('sq')", "select nextval('sq')", "select currval('sq')", f"select setval('sq', {rng.randint(1, 9)})"])
        scope = rng.choice(["", "xact_"]) if status == "T" else ""
        function = rng.choice(["advisory_{}lock", "advisory_{}lock", "try_advisory_{}lock", "advisory_{}lock_shared", "try_advisory_{}lock_shared",
                               "advisory_unlock", "advisory_unlock_shared"])
        if not scope or "unlock" in function:
            self.session_locks.add(session)
        return f"select pg_{function.format(scope)}({rng.randint(1, 2)})"

    def definition(self, status):
        """A statement of DDL; those that can't stand in a transaction only outside."""
        rng, t = self.rng, self.table()
        name, index = t.name, f"i{rng.randint(1, 2)}"
        column = rng.choice(t.columns + [t.key])
        one = t.columns[0]
        choices = [
            (12, f"create index {index} on {name} ({column})"),
            (8, f"create unique index {index} on {name} ({column})"),
            (8, f"drop index {rng.choice(['', 'if exists '])}{index}"),
            (3, f"drop index {rng.choice(['c_pid', 'p_g'])}"),
            (9, f"alter table {name} add column x{rng.randint(1, 2)} int" + rng.choice(["", " default 7", " not null default 7"])),
            (4, f"alter table {name} drop column {rng.choice(['x1', 'x2', one])}"),
            (6, f"alter table {name} alter column {column} {rng.choice(['set not null', 'drop not null', 'set default 3', 'drop default'])}"),
            (5, f"alter table {name} add constraint k{rng.randint(1, 2)} check (v < {rng.randint(1, 3)})"),
            (3, f"alter table {name} add constraint k{rng.randint(1, 2)} unique ({column})"),
            (4, f"alter table {name} drop constraint {rng.choice(['k1', 'k2', f'{name}_{t.link}_fkey' if t.link else 'k1'])}"),
            (3, f"alter table {name} rename column {one} to x3"),
            (14, f"truncate {name}{rng.choice(['', '', ' restart identity'])}{rng.choice(['', ' cascade'])}"),
            (18, f"lock table {name} in {rng.choice(TABLE_MODES)} mode{rng.choice(['', '', ' nowait'])}"),
            (3, f"reindex table {name}"),
            (2, f"analyze {name}"),
            (3, f"{rng.choice(['grant {} on {} to', 'revoke {} on {} from'])} public".format(rng.choice(['select', 'insert']), name)),
            (2, f"comment on table {name} is '{rng.randint(1, 9)}'"),
            (3, f"create view vx as select {rng.choice([one, t.key, '*'])} from {name}"),
            (2, f"drop view {rng.choice(['', 'if exists '])}vx"),
            (3, f"drop table {rng.choice(['', 'if exists '])}{name}{rng.choice(['', ' cascade'])}"),
            (2, "create table z (id int primary key)"),
            (2, f"drop table {rng.choice(['', 'if exists '])}z"),
        ]
        if t.link:
            up = t.parent.name
            choices.append((4, f"alter table {name} add constraint k1 foreign key ({t.link}) references {up} on delete {rng.choice(ACTIONS)}"))
        if self.sequence:
            choices.append((3, rng.choice(["drop sequence sq", "create sequence sq", "alter sequence sq restart"])))
        if name == "q":
            choices.append((4, "drop sequence q_id_seq"))
        if status == "I":
            choices += [(3, f"create index concurrently {index} on {name} ({column})"), (2, f"drop index concurrently {index}"), (2, f"vacuum {name}")]
        return self.pick(*choices)

    def statement(self, session, status):
        if self.ddl and self.chance(self.ddl):
            return self.more_definition(status) if self.more and self.chance(40) else self.definition(status)
        if self.more and self.chance(self.more):
            return self.more_statement(session, status)
        return self.pick((16, self.select), (22, self.locking), (18, self.insert), (27, self.update), (11, self.delete),
                         (5, lambda: self.other(session, status)))()

    def in_transaction(self, session, status):
        saved = self.savepoints.setdefault(session, [])
        choices = [(70 if status == "T" else 6, "statement"), (6, "commit"), (3 if status == "T" else 25, "rollback"),
                   (7 if status == "T" else 0, "savepoint"), ((5 if status == "T" else 50) if saved else 0, "rollback to"),
                   (3 if saved and status == "T" else 0, "release")]
        what = self.pick(*choices)
        if what == "statement":
            return self.statement(session, status)
        if what == "savepoint":
            saved.append(f"a{len(saved) + 1}")
            return f"savepoint {saved[-1]}"
        if what in ("rollback to", "release"):
            at = self.rng.randrange(len(saved))
            name = saved[at]
            del saved[at + (what == "rollback to"):]
            return f"{what} {name}"
        saved.clear()
        return what

    def step(self, statuses, busy):
        """The next step; `statuses` and `busy` by session from 1."""
        rng = self.rng
        waiting = [n for n in statuses if busy[n]]
        idle = [n for n in statuses if not busy[n]]
        if waiting and self.chance(3):
            return Step(rng.choice(waiting), "cancel")
        if not idle:
            return Step(rng.choice(waiting), "cancel")
        session = rng.choice(idle)
        if statuses[session] != "I":
            return Step(session, self.in_transaction(session, statuses[session]))
        self.savepoints[session] = []
        if self.chance(80):
            level = self.pick((60, ""), (36, " isolation level repeatable read"), (2, " read only"), (2, " isolation level repeatable read, read only"))
            return Step(session, f"begin{level}")
        return Step(session, self.statement(session, "I"))

    def last_steps(self, statuses, busy):
        """A step that brings the schedule to its end; none when it is there."""
        idle = [n for n in statuses if not busy[n]]
        opened = [n for n in idle if statuses[n] != "I"]
        if opened:
            return Step(self.rng.choice(opened), self.pick((85, "commit"), (15, "rollback")))
        locked = [n for n in idle if n in self.session_locks]
        if locked:
            session = self.rng.choice(locked)
            self.session_locks.discard(session)
            return Step(session, "select pg_advisory_unlock_all()")
        waiting = [n for n in statuses if busy[n]]
        return Step(self.rng.choice(waiting), "cancel") if waiting else None

    def schedule(self):
        return Schedule(list(self.setup))
