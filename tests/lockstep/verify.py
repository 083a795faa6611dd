"""Whether a server's tables are sound, by SQL alone: each index agrees with its table, and every foreign key, check, unique and not-null
constraint holds, and each view can be read. Indexes are read by a condition on their first column; tables by one that no index serves."""
import re

OBJECTS = """
select 'column', c.relname, a.attname, a.attnotnull::text, '' from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid where nspname = 'w' and relkind = 'r' and attnum > 0 and not attisdropped
union all
select 'index', c.relname, i.relname, x.indisunique::text, pg_get_indexdef(i.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_index x on x.indrelid = c.oid join pg_class i on i.oid = x.indexrelid where nspname = 'w' and x.indisvalid
union all
select 'view', c.relname, '', '', '' from pg_class c join pg_namespace n on n.oid = c.relnamespace where nspname = 'w' and relkind = 'v'
union all
select k.contype::text, c.relname, k.conname, '', pg_get_constraintdef(k.oid) from pg_constraint k join pg_class c on c.oid = k.conrelid
    join pg_namespace n on n.oid = c.relnamespace where nspname = 'w'"""


def columns(text):
    return [name.strip() for name in text.split(",")]


def counted(table, names):
    return f"select {', '.join(names)}, count(*) from {table}"


def questions(objects):
    """(what is asked, SQL whose rows are violations)"""
    keys, asked = {}, []
    for what, table, name, _, text in objects:
        if what == "p":
            keys[table] = columns(re.search(r"\((.*?)\)", text)[1])
    every = {}
    for what, table, name, flag, text in objects:
        if what == "column":
            every.setdefault(table, []).append(name)
            if flag == "true":
                asked.append((f"{table}.{name} is not null", f"select {name} from {table} where {name} is null"))
    for what, table, name, flag, text in objects:
        if what == "index":
            text, _, predicate = text.partition(" WHERE ")
            partial = f" and {predicate}" if predicate else ""
            of = columns(re.search(r"btree \((.*?)\)$", text)[1])
            shown = ", ".join(dict.fromkeys(of + every[table]))
            by_index = f"select {shown} from {table} where {of[0]} >= -1000000{partial}"
            by_table = f"select {shown} from {table} where {of[0]} + 0 >= -1000000{partial}"
            asked.append((f"index {name} has only rows of {table}", f"{by_index} except all {by_table}"))
            asked.append((f"index {name} has all rows of {table}", f"{by_table} except all {by_index}"))
            if flag == "true":
                known = " and ".join(f"{c} is not null" for c in of)
                asked.append((f"{name} is unique", f"{counted(table, of)} where {of[0]} + 0 >= -1000000 and {known}{partial} group by {', '.join(of)} having count(*) > 1"))
        elif what == "view":
            asked.append((f"view {table} can be read", f"select * from {table} limit 0"))
        elif what == "c":
            condition = text[text.index("(") + 1:text.rindex(")")]
            asked.append((f"check {name} of {table}", f"select * from {table} where not ({condition})"))
        elif what == "f":
            mine, up, theirs = re.match(r"FOREIGN KEY \((.*?)\) REFERENCES (?:w\.)?(\w+)\((.*?)\)", text).groups()
            mine, theirs = columns(mine), columns(theirs)
            match = " and ".join(f"u.{b} + 0 = m.{a}" for a, b in zip(mine, theirs))
            known = " and ".join(f"m.{a} is not null" for a in mine)
            asked.append((f"foreign key {name} of {table}", f"select * from {table} m where {known} and not exists (select 1 from {up} u where {match})"))
    return asked


def violations(control):
    """What is not sound; empty if everything is."""
    objects = control.values(OBJECTS)
    asked = questions(objects)
    found = []
    for what, sql in asked:
        reply = control.ask(sql)
        if reply.error:
            found.append(f"{what}: {reply.error[0]} {reply.error[1]}")
        elif reply.results[-1][1]:
            found.append(f"{what}: not so for {reply.results[-1][1][:5]}")
    return found
