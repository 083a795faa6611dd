"""Shapes of statements beyond those of `generate`: MERGE, partial unique indexes, deferred constraints, blocks with exception handlers, row locks of
several tables and sub-selects, statements in WITH, cursors, prepared statements, several statements in one text, further forms of ALTER TABLE."""


class Shapes:
    """Mixed into the generator, whose dice and tables it uses."""

    def make_more_tables(self, table):
        """Tables that only these shapes use; `table` makes the generator's record of one."""
        lines = []
        if self.chance(50):
            lines.append("create table e (id int primary key, k int, state int not null default 0, v int not null default 0)")
            lines.append("create unique index e_k on e (k) where state = 0")
            lines.append("insert into e (id, k, state) values (1, 10, 0), (2, 20, 0), (3, 10, 1), (4, 40, 1)")
            self.more_tables.append(table("e", ["v", "k", "state"]))
        if self.chance(50):
            when = self.rng.choice(["deferrable", "deferrable initially deferred"])
            lines.append(f"create table f (id int primary key, k int unique {when}, pid int references p {when}, v int not null default 0)")
            lines.append("insert into f (id, k, pid) values (1, 10, 1), (2, 20, 1), (3, 30, 2)")
            self.more_tables.append(table("f", ["v", "k", "pid"]))
        if self.chance(25):
            lines.append("create table h (id int primary key, v int not null default 0, w int generated always as (v * 10) stored)")
            lines.append("create index h_w on h (w)")
            lines.append("insert into h (id, v) values (1, 1), (2, 2), (3, 3)")
            self.more_tables.append(table("h", ["v"]))
        if self.chance(40):
            lines.append("create function put(k int) returns text language plpgsql as $$ begin insert into p (id, u, g) values (k, k * 10, 0); return 'new'; "
                         "exception when unique_violation then update p set v = v + 1 where id = k; return 'old'; end $$")
            self.has_put = True
        return lines

    def more_table(self):
        return self.rng.choice(self.more_tables + [self.tables[0]]) if self.more_tables else self.tables[0]

    def child(self):
        """A child table with its parent and the parent's column, if there is one."""
        c = next((x for x in self.tables if x.link), None)
        return (c, c.parent.name, "u" if c.times == 10 else "id") if c else (None, None, None)

    def merge(self):
        t, k = self.more_table(), self.key
        matched = self.rng.choice(["update set v = {t}.v + s.w", "delete", "do nothing", "update set v = {t}.v * 2"]).format(t=t.name)
        only = self.rng.choice(["", "", f" and {t.name}.v < 2"])
        second = self.rng.choice(["", f" when matched then {self.rng.choice(['delete', 'update set v = 50', 'do nothing'])}"]) if only else ""
        key = {"p": "u, g", "e": "k", "f": "k", "h": "v"}[t.name]
        values = {"p": f"{k() * 10}, 0", "e": str(k() * 10), "f": str(k() * 10), "h": "1"}[t.name]
        new = self.rng.choice([f" when not matched then insert (id, {key}) values (s.id, {values})", "", " when not matched then do nothing"])
        c, up, column = self.child()
        if c and t.name == up and self.chance(40):
            # One row: the order of several would be open.
            source = f"(select {c.link} as link, max(v) + 1 as w from {c.name} where {c.link} = {k() * c.times} group by {c.link}) s"
            return f"merge into {up} using {source} on s.link = p.{column} when matched{only} then {matched}{second}"
        rows = ", ".join(f"({n}, {self.rng.randint(1, 3)})" for n in sorted({k() for _ in range(self.pick((70, 1), (30, 2)))}))
        return f"merge into {t.name} using (values {rows}) s (id, w) on {t.name}.id = s.id when matched{only} then {matched}{second}{new}"

    def partial(self):
        """The table with a partial unique index."""
        k, rng = self.key, self.rng
        if not any(t.name == "e" for t in self.more_tables):
            return self.merge()
        do = rng.choice(["do nothing", "do update set v = e.v + 1", "do update set state = 1", "do update set state = 1 where e.v < 2", "do update set k = e.k + 10"])
        return rng.choice([
            f"insert into e (id, k, state) values ({k() + 1}, {k() * 10}, {rng.randint(0, 1)}) on conflict (k) where state = 0 {do}",
            f"insert into e (id, k, state) values ({k() + 1}, {k() * 10}, {rng.randint(0, 1)}) on conflict do nothing returning *",
            f"insert into e (id, k) values ({k() + 1}, {k() * 10})",
            f"update e set state = {rng.choice(['0', '1', '1 - state'])} where {rng.choice(['id', 'id', 'k'])} {rng.choice([f'= {k()}', '> 0'])}",
            f"update e set k = {k() * 10} where id = {k()} returning *",
            f"update e set v = v + 1 where state = {rng.randint(0, 1)} and k = {k() * 10}",
            f"delete from e where state = 0 and k = {k() * 10} returning *",
            f"select * from e where state = 0 and k = {k() * 10} for {rng.choice(['update', 'share', 'no key update'])}{rng.choice(['', ' nowait', ' skip locked'])}"])

    def deferred(self):
        """The table with deferred constraints."""
        k, rng = self.key, self.rng
        if not any(t.name == "f" for t in self.more_tables):
            return self.merge()
        return rng.choice([
            f"insert into f (id, k, pid) values ({k() + 1}, {k() * 10}, {k()}) on conflict (id) do {rng.choice(['nothing', 'update set v = f.v + 1'])}",
            f"insert into f (id, k, pid) values ({k() + 1}, {k() * 10}, {k() + 1})",
            f"update f set k = {k() * 10} where id = {k()}",
            f"update f set pid = {k() + 1} where id = {k()}",
            "update f set k = k + 10 where id > 0",
            f"delete from f where {rng.choice(['id', 'id', 'pid'])} = {k()}" if self.chance(60) else f"delete from p where id = {k()}",
            f"set constraints all {rng.choice(['immediate', 'immediate', 'deferred'])}",
            f"set constraints {rng.choice(['f_k_key', 'f_pid_fkey'])} {rng.choice(['immediate', 'deferred'])}"])

    def block(self):
        """DO with an exception handler: a savepoint of its own, which an error after a wait rolls back."""
        first, second = self.change(), self.change()
        name = self.rng.choice(["unique_violation", "foreign_key_violation", "others", "others", "division_by_zero", "serialization_failure", "lock_not_available"])
        if self.has_put and self.chance(30):
            return f"select put({self.key() + 1})"
        raised = self.rng.choice(["", "", " perform 1 / 0;"])
        after = self.rng.choice(["null", second, f"raise exception using errcode = 'U0001'"])
        inner = f"begin {first};{raised} exception when {name} then {after}; end"
        return "do $$ " + self.rng.choice([inner, f"begin {self.change()}; {inner}; end"]) + " $$"

    def change(self):
        """A change without RETURNING."""
        return self.rng.choice([self.insert, self.update, self.update, self.delete])().split(" returning ")[0]

    def several_locks(self):
        """Row locks of several tables, of sub-selects, and with different strengths."""
        rng, k = self.rng, self.key
        strengths = ["update", "no key update", "share", "key share"]
        s, s2 = rng.choice(strengths), rng.choice(strengths)
        wait, wait2 = self.pick((60, ""), (20, " nowait"), (20, " skip locked")), self.pick((60, ""), (20, " nowait"), (20, " skip locked"))
        c, up, column = self.child()
        choices = [f"select * from (select * from p where id = {k()}) x for {s}{wait}",
                   f"select * from (select id, v from p where id > 0 order by id limit 2 for {s}{wait}) x where v < 3",
                   f"with x as (select id, v from p where id in ({k()}, {k()}) for {s}{wait}) select * from x",
                   f"with x as materialized (select id from p where id = {k()} for {s}{wait}) update p set v = v + 1 from x where x.id = p.id",
                   f"update p set v = v + 1 where id = (select id from p where id > 0 order by id limit 1 for {s}{wait}) returning id, v",
                   f"delete from p where id in (select id from p where v < 9 and id > 0 order by id limit 1 for {s}{wait}) returning id",
                   f"select id, (select count(*) from p y where y.v >= x.v) from p x where id = {k()} for {s}{wait}",
                   f"select * from p where id > 0 order by id offset 1 limit 1 for {s}{wait}",
                   f"select * from p where id = {k()} and v = (select max(v) from p) for {s}{wait}"]
        if c:
            y = f"y.{c.link} = x.{column}"
            choices += [f"select x.id, y.id, x.v, y.v from {up} x join {c.name} y on {y} where x.id = {k()} for {s} of x{wait} for {s2} of y{wait2}",
                        f"select x.id, x.v from {up} x where x.id = {k()} and exists (select 1 from {c.name} y where {y}) for {s}{wait}",
                        f"select x.id, x.v, z.n from {up} x, lateral (select count(*) n from {c.name} y where {y}) z where x.id = {k()} for {s} of x{wait}",
                        f"select y.id, z.v from {c.name} y join (select * from {up} where v < 5) z on y.{c.link} = z.{column} where y.id = {k()} for {s}{wait}",
                        f"select x.id, z.w from {up} x, lateral (select x.v + 1 as w) z where x.id = {k()} for {s}{wait}"]
        return rng.choice(choices)

    def with_change(self):
        """Statements that change data inside WITH."""
        rng, k = self.rng, self.key
        return rng.choice([
            f"with x as (delete from p where id = {k()} returning *) insert into p (id, u, g, v) select id + 3, u + 30, g, v + 1 from x returning id, v",
            f"with x as (update p set v = v + 1 where id = {k()} returning id, v) select * from x",
            f"with x as (insert into p (id, u, g) values ({k() + 1}, {k() * 10}, 0) on conflict (id) do update set v = p.v + 1 returning id) select * from x",
            f"with x as (select id, v from p where id = {k()}) update p set v = x.v + 1 from x where p.id = x.id returning p.id, p.v",
            f"update p set v = (select count(*) from p y where y.v <= p.v) where id = {k()} returning id, v",
            f"update p set (u, v) = (select max(u) + 10, max(v) + 1 from p y where y.g = p.g) where id = {k()} returning id, u, v",
            f"update p set v = p.v + y.v + 1 from p y where y.id = {k()} and p.id = {k()} returning p.id, p.v, y.v",
            f"delete from p using p y where y.id = {k()} and p.id = y.id + 1 and y.v < 3 returning p.id"])

    def cursor(self, session, status):
        """Cursors. Their names are each session's own."""
        rng, k = self.rng, self.key
        opened = self.cursors.setdefault(session, False)
        if status != "T":
            return rng.choice(["fetch 1 from cu", "close cu", f"declare cu cursor with hold for select id, v from p where id >= {k()} order by id"])
        if not opened or self.chance(15):
            self.cursors[session] = True
            lock = rng.choice(["", " for update", " for update", " for share", " for no key update", " for update nowait", " for update skip locked"])
            hold = " with hold" if not lock and self.chance(30) else ""
            return f"declare cu cursor{hold} for select id, v from p where id > 0 order by id{lock}"
        return rng.choice(["fetch 1 from cu", "fetch 1 from cu", "fetch 2 from cu", "fetch all from cu", "move 1 in cu", "update p set v = v + 1 where current of cu",
                           "delete from p where current of cu", "close cu", "fetch 1 from cu"])

    def several_statements(self):
        """A text of several statements: one transaction, unless the session is in one."""
        return "; ".join(self.change() for _ in range(self.pick((70, 2), (30, 3))))

    def prepared(self, session):
        """A prepared statement: its plan is older than what others have done since."""
        known = self.prepared_names.setdefault(session, [])
        if not known or self.chance(20):
            name = f"w{len(known) + 1}"
            known.append(name)
            body = self.rng.choice(["update p set v = v + 1 where id = $1 returning id, v", "select id, v from p where id = $1",
                                    "select id, v from p where id = $1 for update", "delete from p where id = $1", "insert into p (id, u, g) values ($1, $1 * 10, 0)",
                                    "select id, v from p where id > $1 order by id", "update p set u = $1 * 10 where id = $1 returning id"])
            return f"prepare {name} (int) as {body}"
        return f"execute {self.rng.choice(known)} ({self.key()})"

    def advisory_of_rows(self):
        k = self.key
        return self.rng.choice([f"select pg_advisory_xact_lock(id) from p where id <= {k()} order by id",
                                f"select pg_try_advisory_xact_lock_shared(id) from p where id <= {k()} order by id",
                                f"update p set v = v + 1 where id = {k()} and pg_try_advisory_xact_lock(id) returning id"])

    def more_definition(self, status):
        """Further forms of DDL."""
        rng, t = self.rng, self.rng.choice(self.tables[:3] + self.more_tables)
        name = t.name
        choices = [
            # None that rewrites the table: older snapshots see an empty one in PostgreSQL.
            (3, f"alter table {name} alter column v type int"),
            (4, f"alter table {name} add constraint k1 check (v < {rng.randint(1, 60)}) not valid"),
            (4, f"alter table {name} validate constraint k1"),
            (3, f"alter table {name} rename to z"),
            (3, f"alter table {name} rename constraint k1 to k2"),
            (3, f"alter index {rng.choice(['p_g', 'c_pid', 'i1', 'p_pkey'])} rename to i2"),
            (4, f"create index i1 on {name} (v) where v < 3"),
            (4, f"create unique index i2 on {name} (v) where v > 0"),
            (3, f"create index i1 on {name} ((v + 1))"),
            (3, f"alter table {name} drop constraint {name}_pkey{rng.choice(['', ' cascade'])}"),
            (3, f"create table z as select id, v from {name}"),
            (3, f"create table z (id int references {name} (id))"),
            (2, f"create temp table tz as select * from {name}"),
            (2, f"alter table {name} set schema w"),
            (3, f"alter table {name} {rng.choice(['enable', 'disable'])} row level security"),
            (2, f"create policy po on {name} using (v < 5)"),
            (2, f"drop policy if exists po on {name}"),
            (3, f"alter table {name} add column x2 int unique"),
            (2, f"alter table {name} alter column v set statistics 10"),
            (2, f"truncate {name}, p cascade"),
            (2, f"comment on column {name}.v is 'x'"),
        ]
        if status == "I":
            choices += [(5, f"create unique index concurrently i1 on {name} (v)"), (4, f"create index concurrently i2 on {name} (v) where v < 2"),
                        (3, f"drop index concurrently if exists {rng.choice(['i1', 'i2'])}"), (2, f"vacuum full {name}"), (2, f"reindex table concurrently {name}"),
                        (2, f"cluster {name} using {name}_pkey")]
        return self.pick(*choices)

    def more_statement(self, session, status):
        return self.pick((14, self.merge), (14, self.partial), (14, self.deferred), (14, self.block), (18, self.several_locks), (12, self.with_change),
                         (12, lambda: self.cursor(session, status)), (5, self.several_statements), (6, lambda: self.prepared(session)),
                         (4, self.advisory_of_rows))()
