#!/usr/bin/env python3
"""Writes the data files of this folder from a PostgreSQL 15 that has no objects but those of initdb.

Usage: generate.py PSQL-CONNECTION-STRING                  every file but extensions.tsv
       generate.py --extensions PSQL-CONNECTION-STRING     extensions.tsv alone, from a database in which the extensions have been created

relations.tsv holds the relations of pg_catalog and information_schema with their columns. Each other file holds the rows of one
catalog, in PostgreSQL's COPY text form. Columns of regproc and regtype hold oids. Types that Clearway has not are replaced by the
type in which the value is shown (REPLACED). extensions.tsv has the rows that extensions add: their name, the catalog, the row, with numbers of
Clearway's own (EXTENSIONS); numbers of schemas and owners are those that the extension has.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

# Declared by hand, or not there.
DECLARED_BY_HAND = r"^pg_stat(s$|istic$|_activity$)"

# What a column of such a type is declared as: inet, pg_lsn, pg_node_tree, aclitem[], anyarray and the kinds of statistics.
REPLACED = {869: 25, 3220: 25, 194: 25, 1034: 1009, 2277: 1009, 3361: 25, 3402: 25, 5017: 25, 10028: 1009, 2206: 2206}

# Catalogs whose rows are data, with the rows that are kept.
ROWS = {
    "pg_type": "t.typrelid = 0 AND t.typnamespace = 11 AND NOT EXISTS "
    "(SELECT FROM pg_type e WHERE e.oid = t.typelem AND (e.typrelid <> 0 OR e.typnamespace <> 11))",
    "pg_proc": "true",
    "pg_aggregate": "true",
    "pg_operator": "true",
    "pg_cast": "true",
    "pg_am": "t.amname IN ('heap', 'btree')",
    "pg_opclass": "t.opcmethod = 403",
    "pg_opfamily": "t.opfmethod = 403",
    "pg_amop": "t.amopmethod = 403",
    "pg_amproc": "t.amprocfamily IN (SELECT oid FROM pg_opfamily WHERE opfmethod = 403)",
    "pg_language": "t.lanname <> 'plpgsql'",
    "pg_range": "true",
    "pg_collation": "t.collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_description": "t.classoid IN ('pg_type'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_cast'::regclass,"
    " 'pg_am'::regclass, 'pg_language'::regclass, 'pg_collation'::regclass)",
}


def psql(connection, sql):
    run = subprocess.run(["psql", connection, "-XAtq", "-c", sql], capture_output=True, text=True, check=True)
    return run.stdout


def relations(connection):
    sql = f"""SELECT n.nspname, c.relname, c.oid, c.relkind, string_agg(a.attname || ':' ||
            CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, ' ' ORDER BY a.attnum)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        JOIN pg_type t ON t.oid = a.atttypid
        WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND c.oid < 16384
            AND c.relname !~ '{DECLARED_BY_HAND}'
        GROUP BY 1, 2, 3, 4 ORDER BY n.nspname DESC, c.relname"""
    out = []
    for line in psql(connection, sql).splitlines():
        schema, name, oid, kind, columns = line.split("|")
        shown = []
        for column in columns.split():
            column_name, ty = column.split(":")
            shown.append(f"{column_name}:{REPLACED.get(int(ty), int(ty))}")
        out.append("\t".join([schema, name, oid, kind, " ".join(shown)]) + "\n")
    return "".join(out)


def rows(connection, catalog, condition):
    columns = psql(connection, f"""SELECT attname || ':' || format_type(atttypid, -1) FROM pg_attribute
        WHERE attrelid = 'pg_catalog.{catalog}'::regclass AND attnum > 0 ORDER BY attnum""").splitlines()
    shown = []
    for column in columns:
        name, ty = column.split(":")
        if ty in ("regproc", "regtype"):
            shown.append(f"t.{name}::oid")
        elif name == "pronamespace":
            # information_schema has the same oid in every Clearway.
            shown.append("CASE t.pronamespace WHEN 11 THEN 11 ELSE 13000 END")
        elif name == "proacl":
            # Rights are those at the beginning: what PostgreSQL reserves for superusers is checked when it is called.
            shown.append("NULL")
        elif ty == "pg_node_tree":
            shown.append(f"pg_get_expr(t.{name}, 0)" if name == "proargdefaults" else f"CASE WHEN t.{name} IS NOT NULL THEN '' END")
        else:
            shown.append(f"t.{name}")
    return psql(connection, f"COPY (SELECT {', '.join(shown)} FROM pg_catalog.{catalog} t WHERE {condition} ORDER BY 1, 2, 3) TO STDOUT")


#: The first number of each extension's objects, and those of its types (`crate::types::extension`), each followed by that of its arrays.
EXTENSIONS = {"citext": (16_010, {"citext": 16_000}), "hstore": (16_110, {"hstore": 16_002})}

#: What Clearway has not: hash functions, what GiST and GIN need.
NOT_HERE = r"hash|version_diag|^g(hstore|in_)|^hstore_subscript"

#: Members of an extension, by catalog: which rows, and what they are ordered by.
MEMBERS = {
    "pg_type": ("NOT t.typname ~ 'ghstore'", "t.typname"),
    "pg_proc": (f"NOT t.proname ~ '{NOT_HERE}'", "t.proname, t.proargtypes::regtype[]::text"),
    "pg_operator": ("true", "t.oprname, t.oprleft::regtype::text, t.oprright::regtype::text"),
    "pg_cast": ("true", "t.castsource::regtype::text, t.casttarget::regtype::text"),
    "pg_opfamily": ("t.opfmethod = 403", "t.opfname"),
    "pg_opclass": ("t.opcmethod = 403", "t.opcname"),
}

#: Rows that belong to those.
BELONGING = {
    "pg_aggregate": ("pg_proc", "aggfnoid::oid", "true"),
    "pg_amop": ("pg_opfamily", "amopfamily", "t.amopmethod = 403"),
    "pg_amproc": ("pg_opfamily", "amprocfamily", "t.amprocfamily IN (SELECT oid FROM pg_opfamily WHERE opfmethod = 403)"),
}


def renumbered(connection, catalog, line, numbers):
    """A row with the numbers of Clearway's own; what is not here is 0."""
    types = psql(connection, f"""SELECT attname || ':' || format_type(atttypid, -1) FROM pg_attribute
        WHERE attrelid = 'pg_catalog.{catalog}'::regclass AND attnum > 0 ORDER BY attnum""").split()
    out = []
    for column, field in zip(types, line.split("\t"), strict=True):
        name, ty = column.split(":")[0], column.split(":")[1]
        if name.endswith(("namespace", "owner")):
            field = "0"
        elif ty in ("oid", "regproc", "regtype", "oidvector", "oid[]") and field != "\\N":
            field = re.sub(r"\d+", lambda n: str(numbers.get(int(n[0]), n[0] if int(n[0]) < 16_384 else 0)), field)
        out.append(field)
    return "\t".join(out)


def extensions(connection):
    out = []
    for extension, (first, types) in EXTENSIONS.items():
        numbers, found = {}, []
        for name, number in types.items():
            own, array = psql(connection, f"SELECT oid, typarray FROM pg_type WHERE typname = '{name}'").strip().split("|")
            numbers |= {int(own): number, int(array): number + 1}
        member = f"""EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.refclassid = 'pg_extension'::regclass
            AND e.extname = '{extension}' AND d.classid = '%s'::regclass AND d.objid = %s)"""
        for catalog, (condition, order) in MEMBERS.items():
            of = member % (catalog, "coalesce(nullif(t.typelem, 0), t.oid)" if catalog == "pg_type" else "t.oid")
            listed = psql(connection, f"SELECT t.oid FROM {catalog} t WHERE {of} AND {condition} ORDER BY {order}").split()
            for oid in map(int, listed):
                if oid not in numbers:
                    numbers[oid] = first
                    first += 1
            found += [(catalog, line) for line in rows(connection, catalog, f"t.oid IN ({', '.join(listed)})").splitlines()]
        for catalog, (of, column, condition) in BELONGING.items():
            chosen = f"{member % (of, 't.' + column)} AND {condition}"
            found += [(catalog, line) for line in rows(connection, catalog, chosen).splitlines()]
            if catalog != "pg_aggregate":
                for oid in sorted(int(line.split("\t")[0]) for name, line in found if name == catalog):
                    numbers[oid] = first
                    first += 1
        out += sorted(f"{extension}\t{catalog}\t{renumbered(connection, catalog, line, numbers)}\n" for catalog, line in found)
    return "".join(out)


def main():
    if sys.argv[1] == "--extensions":
        (HERE / "extensions.tsv").write_text(extensions(sys.argv[2]))
        return
    connection = sys.argv[1]
    (HERE / "relations.tsv").write_text(relations(connection))
    for catalog, condition in ROWS.items():
        (HERE / f"{catalog}.tsv").write_text(rows(connection, catalog, condition))


if __name__ == "__main__":
    main()
