#!/usr/bin/env python3
"""The queries that pgAdmin sends, over a PostgreSQL 15 and over `clearway serve`: what answers differ, and why.

usage: tests/tools_queries.py CLEARWAY [--only TEXT] [--record] [--differences FILE]

pgAdmin's package, fetched by pip and kept in ~/.cache/clearway/tools, has its queries as Jinja templates. This program renders those that pgAdmin reads with
when it connects, opens its tree, shows an object, its statistics, dependents and dependencies, searches, shows the dashboard, and opens the query tool: for a
server of version 15, as pgAdmin's loader does it, with the package's own functions for names and literals. The objects stand in tests/tools_queries.sql and are
made on both servers; a template gets their oids from each server. Both must give the same SQLSTATE or the same columns, types and rows; an oid is compared as
the object's name, a time as that there is one. Of lists of all types, functions and settings only the columns and what names a user's object are compared, of
statistics only the columns. tests/tools_queries.list names each query that differs, with the reason; one that is listed and does not differ is a failure, as is
one that differs and is not listed. Grafana's queries are in no package of npm, so they are not run. The last line is `N passed, N failed`.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import suites
from suites import NotReached, fetched

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "regress"))
from servers import Clearway, Postgres  # noqa: E402

CACHE = Path(os.environ.get("CLEARWAY_TOOLS", Path.home() / ".cache/clearway/tools"))
PGADMIN = "9.18"
PYTHON = ["jinja2==3.1.6", "psycopg[binary]==3.3.4"]
VERSION = 150000

#: Reasons in the list, and what they mean.
REASONS = {
    "types": "Columns have other types: text for pg_node_tree, anyarray and inet, text[] for aclitem[]; or a column shows how PostgreSQL stores long values.",
    "depend": "pg_depend has fewer rows; a key and its index have the same oid.",
    "template1": "There are no databases template0 and template1.",
    "written": "Definitions of views and conditions of policies are shown as they were written.",
    "settings": "There are other settings, with other descriptions, and other lines of pg_hba.conf.",
    "collation": "Other collations than C.UTF-8 are refused, and a column does not say that it has C.",
    "public": "The schema public has an oid of its own in each database.",
    "plans": "Other plans.",
    "version": "The server says what it is.",
    "rowtypes": "Relations of the system have no types of their rows.",
    "cache": "A sequence with CACHE gives its numbers one by one.",
    "open": "A defect that is known and not repaired yet.",
}

#: What Clearway does not have: no query is rendered for it.
LEFT_OUT = ("what is asked of one aggregate, cast, collation, operator, rule, trigger, partition, foreign table, publication, subscription, event trigger, "
            "language or object of text search; EDB's packages, synonyms, directories, resource groups, jobs and replication groups; pgAgent; the debugger")


def environment():
    """The Python of an environment that has Jinja and psycopg."""
    home = CACHE / "env"
    if not (home / "done").exists():
        shutil.rmtree(home, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        fetched([home / "bin/pip", "install", "--quiet", *PYTHON])
        (home / "done").touch()
    return home / "bin/python"


def package():
    """The directory `pgadmin` of the package, of which the templates and the program's text are kept."""
    home = CACHE / f"pgadmin4-{PGADMIN}"
    if not (home / "done").exists():
        home.mkdir(parents=True, exist_ok=True)
        fetched([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", CACHE, f"pgadmin4=={PGADMIN}"])
        wheel = next(CACHE.glob(f"pgadmin4-{PGADMIN}-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(home, [name for name in archive.namelist() if re.search(r"\.(sql|macros?|py)$", name)])
        wheel.unlink()
        (home / "done").touch()
    return home / "pgadmin4/pgadmin"


class Ref(str):
    """An object by its name, whose oid a template gets."""


TABLES = ["item", "customer", "line", '"Mixed Case"', "plain"]
CONSTRAINTS = {"item": ["item_pkey", "item_name_number", "amount_positive", "item_customer_id_fkey"],
               "line": ["line_pkey", "line_item", "line_check", "line_later"], "customer": ["customer_pkey", "customer_email_key"]}
INDEXES = {"item": ["item_partial", "item_include"], "customer": ["customer_born"]}
FUNCTIONS = ["add(integer,integer)", "found(text)", "doubled(numeric)", "listed(text[])"]
PROCEDURE = "proc shop.tidy(date,integer)"
SCHEMA = {"scid": Ref("namespace shop")}
CHARTS = {"chart_names": ["session_stats", "tps_stats", "ti_stats", "to_stats", "bio_stats"]}
NODE_KINDS = ["aggregate", "cast", "catalog", "collation", "column", "check_constraint", "compound_trigger", "database", "domain", "domain_constraints",
              "edbfunc", "edbproc", "edbvar", "event_trigger", "exclusion_constraint", "extension", "foreign_data_wrapper", "foreign_key", "foreign_server",
              "foreign_table", "fts_configuration", "fts_dictionary", "fts_parser", "fts_template", "constraints", "function", "index", "language", "mview",
              "operator", "package", "partition", "primary_key", "procedure", "publication", "row_security_policy", "rule", "schema",
              "sequence", "subscription", "synonym", "table", "trigger", "trigger_function", "type", "unique_constraint", "user_mapping", "view",
              "foreign_table_column", "dbms_job"]
ALL_TYPES = """typisdefined AND typtype IN ('b', 'c', 'd', 'e', 'r', 'm') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace=typnamespace
AND relname = typname AND relkind != 'c') AND nsp.nspname != 'information_schema'"""


def table(relation, /, **others):
    return {**SCHEMA, "tid": Ref(f"class shop.{relation}"), **others}


def of_tables(**others):
    return [table(name, **others) for name in TABLES]


def names_of(name, label="item"):
    return {"schema_name": "shop", "table_name": label, "data": {"name": name, "schema": "shop", "basensp": "shop"}, "name": name}


def of_constraints(kinds):
    # A key is named by its index, other constraints by themselves.
    def place(of, name):
        return Ref(f"class shop.{name}" if re.search("_key|_pkey|name_number", name) else f"constraint shop.{of} {name}")

    return [table(of, cid=place(of, name), constraint_name=name, colcnt=2, **names_of(name, of))
            for of, names in CONSTRAINTS.items() for name in names if re.search(kinds, name)]


def of_indexes(**others):
    return [table(of, idx=Ref(f"class shop.{name}"), index=name, **names_of(name, of), **others) for of, names in INDEXES.items() for name in names]


def of_relations(names, **others):
    return [{**SCHEMA, "vid": Ref(f"class shop.{name}"), "oid": Ref(f"class shop.{name}"), "tid": Ref(f"class shop.{name}"), "view_name": name,
             **names_of(name, name), **others} for name in names]


def of_types(prefix, names):
    return [{**SCHEMA, prefix: Ref(f"type shop.{name}"), "typrelid": Ref(f"class shop.{name}") if kind == "c" else 0, "typtype": kind,
             **names_of(name)} for name, kind in names]


def dependency(way, kind, name, part):
    of, side = Ref(f"{kind} {name}"), "ref" if way == "dependents" else ""
    return {"object_id": of, "where_clause": (f"WHERE dep.{side}objid={{}}::oid" + (f" AND dep.{side}objsubid={part}" if part else ""), of), "part": part}


def dependencies(way):
    objects = [("class", f"shop.{name}", None) for name in [*TABLES, "cheap", "joined", "summary", "counter", "item_id_seq", "item_partial", "item_include"]]
    objects += [("class", "shop.item", 4), ("class", "shop.item", 8), ("type", "shop.mood", None), ("type", "shop.price", None),
                ("type", "shop.address", None), ("namespace", "shop", None), ("proc", "shop.add(integer,integer)", None),
                ("constraint", "shop.item item_pkey", None), ("constraint", "shop.item item_customer_id_fkey", None),
                ("constraint", "shop.line line_check", None), ("role", "reader", None), ("role", "owner_of_shop", None)]
    return [dependency(way, *of) for of in objects]


def role_contexts():
    return [{"rid": Ref(f"role {name}")} for name in ("reader", "writer", "owner_of_shop", "postgres")]


SEARCHES = [("item", "all"), ("price", "all"), ("name", "column"), ("shop", "schema"), ("add", "function"), ("item", "table"), ("item", "index"),
            ("item", "sequence"), ("cheap", "view"), ("summary", "mview"), ("mood", "type"), ("price", "domain"), ("_rows", "row_security_policy"),
            ("pkey", "primary_key"), ("fkey", "foreign_key"), ("positive", "check_constraint"), ("email", "unique_constraint"), ("pl", "extension"),
            ("tidy", "procedure")]

#: The templates' directory, the names of those templates that read (a regular expression), and what they get.
AREAS = [
    ("connect/sql/#V#", ".", [{}]),
    ("servers/sql/#V#", "stats|replication_type", [{}, {"did": Ref("database tools")}]),
    ("databases/sql/#V#", "^(nodes|properties|stats|acl|defacl|get_(?!variables)|variables)", [{}, {"did": Ref("database tools"), "name": "tools"}]),
    ("databases/sql/#V#", "^(acl|get_variables)", [{"did": Ref("database tools")}]),
    ("roles/sql/#V#", "^(nodes|properties|permission|variables)", [{}, *role_contexts()]),
    ("roles/sql/#V#", "^sql", role_contexts()),
    ("roles/sql/#V#", "^dependents", [{**one, **way} for one in role_contexts()
                                       for way in ({"fetch_database": True}, {"fetch_dependents": True, "lastsysoid": 16383})]),
    ("tablespaces/sql/#V#", "^(nodes|properties|stats|acl|variables|dependents)", [{"tsid": 1663}, {"tsid": 1663, "fetch_database": True}]),
    ("extensions/sql", "^(count|extensions|properties)", [{}, {"ename": "plpgsql"}]),
    ("schemas/pg/#V#/sql", "^(acl|count|defacl|get_name|is_catalog|nodes|oid|properties)", [{**SCHEMA, "schema_name": "shop", "schema": "shop"}, {}]),
    ("catalog/pg/#V#/sql", "^(acl|get_name|is_catalog|nodes|properties)", [{"scid": 11}, {}]),
    ("catalog_object/sql/pg/#V#", "^(nodes|properties)", [{"scid": 11}, {"scid": 11, "coid": 1259}]),
    ("catalog_object_column/sql/#V#", "^(nodes|properties)", [{"coid": 1259}, {"coid": 1259, "clid": 2}]),
    ("datatype/sql/#V#", "^get_types", [{"condition": ALL_TYPES}, {"condition": ALL_TYPES, "add_serials": True}]),
    ("tables/sql/#V#", "^(acl|nodes|properties|backend_support|count|depend|fk_ref|get_|stats|coll_table|locks)",
     [{**one, "oid": one["tid"], "tname": str(one["tid"])[11:].strip('"'), "sname": "shop", "where": ("WHERE dep.refobjid={}::OID", one["tid"]),
       **names_of(str(one["tid"])[11:].strip('"')), "pid": 0, "is_pgstattuple": False} for one in of_tables()] + [{**SCHEMA, "schema_name": "shop"}]),
    ("columns/sql/#V#", "^(acl|count|depend|edit_|get_|nodes|properties|stats)",
     [table(of, clid=n, where=("WHERE dep.refobjid={}::OID AND dep.refobjsubid=%d" % n, Ref(f"class shop.{of}")), type_id=t, type_ids=("{}, 25", t),
            schema="shop", table=of, column=name, data={"name": name})
      for of, n, t, name in [("item", 1, 23, "id"), ("item", 3, Ref("type shop.price"), "price"), ("item", 8, 23, "number"), ("item", 5, 1700, "total"),
                             ("customer", 1, 20, "id"),
                             ("customer", 4, Ref("type shop.mood"), "feeling"), ("customer", 7, 1009, "tags")]]
     + of_tables(has_oids=False) + [{"table_name": "item", "table_nspname": "shop"}]),
    ("index_constraint/sql/#V#", "^(get_(?!access)|nodes|properties|stats)",
     [{**one, "constraint_type": "p"} for one in of_constraints("pkey")] + [{**one, "constraint_type": "u"} for one in of_constraints("email|name_number")]),
    ("foreign_key/sql/#V#", "^(get_(?!access)|nodes|properties)",
     [{**one, "fkid": one["cid"], "keys": [[1, 7]], "confrelid": Ref("class shop.customer")} for one in of_constraints("fkey|line_item")]),
    ("check_constraint/sql/#V#", "^(get_|nodes|properties)", of_constraints("positive|check|later")),
    ("exclusion_constraint/sql/#V#", "^(get_access|get_oper|nodes)",
     [table("item", indextype="btree", type="integer"), table("item", indextype="gist", type=None)]),
    ("indexes/sql/#V#", "^(backend|coll_|column_|count|get_|include|nodes|properties|stats)",
     of_indexes(oid=23, schema="shop", table="item") + [table("item")] + of_relations(["summary"])),
    ("row_security_policies/sql/#V#", "^(count|get_|nodes|properties)",
     [({**SCHEMA, "plid": Ref(f"policy shop.customer {name}"), "policy_table_id": Ref("class shop.customer"), "data": {"name": name}})
      for name in ("own_rows", "new_rows")] + [table("customer")]),
    ("views/pg/#V#/sql", "^(acl|count|get_(?!sql)|nodes|properties|view_id)", of_relations(["cheap", "checked", "joined"]) + [SCHEMA]),
    ("mviews/pg/#V#/sql", "^(acl|count|get_(?!sql)|nodes|properties|view_id|stats|coll_)", of_relations(["summary"]) + [SCHEMA]),
    ("sequences/sql/#V#", "^(acl|backend|coll_|count|get_|nodes|properties|stats)",
     [{**SCHEMA, "seid": Ref(f"class shop.{name}"), "data": {"name": name, "schema": "shop", "seqschema": "shop", "oid": Ref(f"class shop.{name}")},
       "schema": "shop", "name": name,
       "schema_name": "shop", "seqrelid": Ref(f"class shop.{name}")} for name in ("counter", "item_id_seq", "customer_id_seq")] + [SCHEMA]),
    ("functions/pg/sql/#V#", "^(acl|coll_|count|get_|node|properties|stats|variables)",
     [{**SCHEMA, "fnid": Ref(f"proc shop.{name}"), "name": name.partition("(")[0], "nspname": "shop", "out_arg_oid": 23,
       "schema_name": "shop", "func_args": name.partition("(")[2][:-1]}
      for name in FUNCTIONS] + [{**SCHEMA, "schema_name": "shop"}]),
    ("procedures/pg/sql/#V#", "^(acl|coll_|count|get_|node|properties|stats|variables)",
     [{**SCHEMA, "fnid": Ref(PROCEDURE), "name": "tidy", "nspname": "shop", "out_arg_oid": 23, "schema_name": "shop", "func_args": "date, integer"}]
     + [{**SCHEMA, "schema_name": "shop"}]),
    ("types/pg/sql/#V#", "^(acl|additional|count|get_(?!external|subtypes)|nodes|properties)",
     of_types("tid", [("mood", "e"), ("address", "c")]) + [SCHEMA]),
    ("types/pg/sql/#V#", "^get_(external|subtypes)", [{"extfunc": True}, {"typemodin": True}, {"typemodout": True}, {"subtype": True},
                                                      {"subtype_opclass": True, "data": {"typname": "int4"}}, {"opcintype": 23}]),
    ("domains/sql/#V#", "^(count|get_|node|properties)", [{**one, "basensp": "shop"} for one in of_types("doid", [("price", "d")])] + [SCHEMA]),
    ("domain_constraints/sql/#V#", "^(get_|properties)",
     [{"doid": Ref("type shop.price"), "coid": Ref("constraint price_positive"), "name": "price_positive", "datatype": "'numeric'"},
      {"doid": Ref("type shop.price")}]),
    ("depends/pg/#V#", "^dependencies", dependencies("dependencies")),
    ("depends/pg/#V#", "^dependents", dependencies("dependents")),
    ("depends/pg/#V#", "^role_dependencies", [one for one in dependencies("dependencies")]),
    ("search_objects/sql/pg/#V#", ".",
     [{"search_text": text, "obj_type": kind, "show_node_prefs": dict.fromkeys(NODE_KINDS, True), "skip_obj_type": []} for text, kind in SEARCHES]),
    ("dashboard/sql/#V#", "^(activity|config|dashboard_stats|locks|prepared|replication|log_format)", [CHARTS, {"did": Ref("database tools"), **CHARTS}]),
    ("sqlautocomplete/sql/#V#", ".", [{"schema_names": "'shop'", "object_name": name, "upper_case": up, "search_path": up}
                                      for name, up in (("table", False), ("view", True), ("tables", True), ("views", False))]),
    ("grant_wizard/pg/#V#/sql", "^(function|sequence|table|view|get_schemas)",
     [{"node_id": SCHEMA["scid"], "type": kind, "node_type": node, "show_sysobj": False} for kind, node in (("function", "v"), ("procedure", "m"))]
     + [{"nspid": SCHEMA["scid"]}]),
    ("sqleditor/sql/#V#", "^(get_columns|objectname|primary_keys)", [{"obj_id": Ref(f"class shop.{name}")} for name in TABLES]
     + [{"table_name": "item", "table_nspname": "shop"}]),
    ("sqleditor/sql/#V#", "^objectquery",
     [{"nsp_name": "shop", "object_name": name, "limit": 100, "data_sorting": order, "sql_filter": how} for name, order, how in
      (("item", [{"name": "id", "order": "asc"}], None), ("customer", [{"name": "id", "order": "desc"}], "id > 0"), ("Mixed Case", [], None),
       ("cheap", [], None), ("summary", [], None))]),
    ("sqleditor/sql/#V#", "^validate", [{"nsp_name": "shop", "object_name": "item", "row_filter": how} for how in ("id > 1", "wrong = 1")]),
]
#: Opening the tree asks for these, too, though there are none: the answer has no rows.
WITHOUT_ROWS = ["aggregates/sql/#V#", "event_triggers/sql/#V#", "foreign_data_wrappers/sql/#V#", "foreign_servers/sql/#V#", "foreign_tables/sql/#V#",
                "fts_configurations/sql/#V#", "fts_dictionaries/sql/#V#", "fts_parsers/sql/#V#", "fts_templates/sql/#V#", "operators/sql/#V#",
                "partitions/sql/pg/#V#", "publications/pg/#V#/sql", "rules/sql", "subscriptions/sql/#V#", "trigger_functions/pg/sql/#V#",
                "triggers/sql/pg/#V#", "user_mappings/sql/#V#", "collations/sql/#V#", "casts/sql/#V#", "languages/sql/#V#"]
AREAS += [(area, "^(nodes?|count|properties|backend_support)\\.", [table("item", vid=Ref("class shop.item"), fsid=0, fid=0)]) for area in WITHOUT_ROWS]

#: Queries in the text of the program: the file, and what stands in for `{0}` and `%s`.
IN_PROGRAM = ["utils/driver/psycopg3/connection.py", "utils/driver/psycopg3/server_manager.py", "llm/reports/queries.py", "llm/__init__.py",
              "browser/server_groups/servers/roles/__init__.py", "dashboard/__init__.py", "utils/__init__.py", "tools/search_objects/utils.py"]
#: Arrays of these are aggregated in no order.
UNORDERED = re.compile(r"acl\.sql|edit_mode_types")
#: Dependent objects that only PostgreSQL has: tables for long values and the triggers of foreign keys.
NOT_HERE = ("pg_toast_N", "RI_ConstraintTrigger")
#: Of these only the columns and types are compared: they show what a server does or how it stores.
COLUMNS_ONLY = re.compile(r"stats\.sql|stats#|_stats|replication|/activity|/locks|log_format|/queries.*(pg_stat|_size|pg_settings|hba)|tablespaces.*properties|"
                          r"databases.*/(get_encodings|get_ctypes|nodes|properties)", re.S)
#: Of these only the rows that name a user's object are compared, too.
OF_USER = re.compile(r"^casts|^languages|^event_triggers|^collations|get_types|get_op_class|get_oper|datatype/|catalog|config\.sql|"
                     r"variables\.sql|extensions/|keywords|edit_mode|get_collation|"
                     r"get_access|get_am|get_(external|subtypes|support)|get_relations|get_oftype|schema\.sql")

#: How each server tells the names of its objects.
NAMES = [
    "SELECT oid, 'language ' || lanname FROM pg_catalog.pg_language",
    "SELECT oid, 'namespace ' || nspname FROM pg_catalog.pg_namespace",
    "SELECT c.oid, 'class ' || n.nspname || '.' || quote_ident(c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace",
    "SELECT t.oid, 'type ' || n.nspname || '.' || quote_ident(t.typname) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace",
    "SELECT p.oid, 'proc ' || n.nspname || '.' || p.proname || '(' || "
    "pg_catalog.array_to_string(ARRAY(SELECT pg_catalog.format_type(a, NULL) FROM unnest(p.proargtypes) a), ',') || ')' "
    "FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace",
    "SELECT c.oid, 'constraint ' || coalesce(nullif(c.conrelid, 0)::regclass || ' ', '') || c.conname FROM pg_catalog.pg_constraint c",
    "SELECT p.oid, 'policy ' || p.polrelid::regclass || ' ' || p.polname FROM pg_catalog.pg_policy p",
    "SELECT d.oid, 'default ' || d.adrelid::regclass || ' ' || d.adnum FROM pg_catalog.pg_attrdef d",
    "SELECT r.oid, 'rewrite ' || r.ev_class::regclass || ' ' || r.rulename FROM pg_catalog.pg_rewrite r",
    "SELECT oid, 'role ' || rolname FROM pg_catalog.pg_roles",
    "SELECT oid, 'database ' || datname FROM pg_catalog.pg_database",
    "SELECT oid, 'collation ' || collname FROM pg_catalog.pg_collation",
    "SELECT oid, 'opclass ' || opcname || ' ' || opcmethod FROM pg_catalog.pg_opclass",
    "SELECT oid, 'extension ' || extname FROM pg_catalog.pg_extension",
]
#: Types whose values are oids; times and transactions.
OIDS = {26, 30, 1028}
TIMES = {28, 1082, 1083, 1114, 1184, 1186, 1266}


class Session:
    """A connection to a server, the names of its objects, and its answers."""

    def __init__(self, server):
        import psycopg

        self.server, self.psycopg, self.names, self.oids = server, psycopg, {}, {}
        self.conn, self.db = None, "tools"
        self.connect()

    def connect(self):
        self.conn = self.psycopg.connect(f"host=127.0.0.1 port={self.server.port} user=postgres dbname=tools application_name=tools", autocommit=True)
        self.conn.execute("SET statement_timeout = '60s'")

    def learn(self):
        self.conn.execute("SET search_path TO ''")
        for query in NAMES:
            try:
                for oid, name in self.conn.execute(query).fetchall():
                    self.oids.setdefault(name, oid)
                    self.names.setdefault(str(oid), name)
            except self.psycopg.Error as error:
                print(f"{self.server.name}: {query}: {error}")
        self.conn.execute("RESET search_path")

    def ask(self, text):
        """The SQLSTATE and the message, or the columns with their types and the rows."""
        if self.conn.closed:
            self.connect()
        result = self.conn.pgconn.exec_(text.encode())
        state = result.error_field(self.psycopg.pq.DiagnosticField.SQLSTATE)
        if state or result.status not in (self.psycopg.pq.ExecStatus.TUPLES_OK, self.psycopg.pq.ExecStatus.COMMAND_OK):
            self.conn.pgconn.exec_(b"ROLLBACK")
            return (state or b"-----").decode(), result.error_message.decode().strip(), []
        types = [result.ftype(i) for i in range(result.nfields)]
        columns = [(result.fname(i).decode(), self.named(str(types[i]), 26)) for i in range(result.nfields)]
        rows = [tuple(self.value(result.get_value(row, i), types[i]) for i in range(result.nfields)) for row in range(result.ntuples)]
        return "00000", columns, rows

    def named(self, text, kind):
        if int(text) < 10000 and text != "2200":
            return text
        return self.names.get(text, "an oid" if kind in OIDS else text)

    def value(self, raw, kind):
        if raw is None:
            return "NULL"
        if kind in TIMES:
            return "a time"
        # Minor versions of PostgreSQL keep a number of their own here.
        text = re.sub(r"^\{pg_attver=\d+\}$", "NULL", raw.decode())
        text = re.sub(r"pg_toast_\d+", "pg_toast_N", text)
        # A path of pgAdmin's tree has `:table.16385:`.
        return re.sub(r"(?<![\w-])(?<!\d\.)[1-9]\d{4,9}(?![\w.])", lambda found: self.named(found[0], kind), text)


class Templates:
    """pgAdmin's templates, for a server of this version."""

    def __init__(self, home):
        import jinja2
        import psycopg

        self.home, self.places = home, sorted(str(place) for place in home.rglob("templates") if place.is_dir())
        #: What a template raises that lacks a parameter: the context is another template's.
        self.missed = (jinja2.UndefinedError, psycopg.ProgrammingError, TypeError)
        environment = jinja2.Environment(loader=jinja2.FunctionLoader(self.source), trim_blocks=True, extensions=["jinja2.ext.do", "jinja2.ext.i18n"])
        environment.globals.update(_=str, gettext=str)
        for name, function in self.driver(psycopg).items():
            environment.filters[name] = function
        self.environment = environment

    def driver(self, psycopg):
        """pgAdmin's functions for names and literals, out of the class of its driver."""
        tree = ast.parse((self.home / "utils/driver/psycopg3/__init__.py").read_text())
        [driver] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Driver"]
        wanted = {"qtLiteral", "ScanKeywordExtraLookup", "needsQuoting", "qtTypeIdent", "qtIdent"}
        driver.body, driver.bases = [node for node in driver.body if getattr(node, "name", None) in wanted], []
        import psycopg.sql

        names = {"psycopg": psycopg, "re": re}
        exec(compile((self.home / "utils/driver/psycopg3/keywords.py").read_text(), "keywords", "exec"), names)
        exec(compile(ast.Module([driver], []), "driver", "exec"), names)
        found = {name: getattr(names["Driver"], name) for name in ("qtLiteral", "qtIdent", "qtTypeIdent")}
        return {**found, "hasAny": lambda given, wanted: any(one in given for one in wanted)}

    def versions(self):
        """The directories of a version that suits, the newest first."""
        plus = sorted({int(path.name[:-5]) for path in self.home.rglob("*_plus") if path.name[:-5].isdigit()}, reverse=True)
        return [f"{number}_plus" for number in plus if number * 10000 <= VERSION] + ["default"]

    def source(self, name):
        before, versioned, after = name.partition("#V#")
        for version in self.versions() if versioned else [""]:
            for place in self.places:
                path = Path(place) / f"{before}{version}{after}"
                if path.is_file():
                    return path.read_text()
        return None

    def reading(self, area, pattern):
        """The names of an area's templates."""
        before, versioned, after = area.partition("#V#")
        found = {path.name for version in (self.versions() if versioned else [""]) for place in self.places
                 for path in (Path(place) / f"{before}{version}{after}").glob("*.sql")}
        return sorted(name for name in found if re.search(pattern, name))

    def render(self, name, context, session):
        def value(given):
            if isinstance(given, tuple):
                return given[0].format(value(given[1]))
            if isinstance(given, Ref) and given not in session.oids:
                print(f"{session.server.name} has no {given}")
                session.oids[given] = 0
            if isinstance(given, dict):
                return {key: value(one) for key, one in given.items()}
            return session.oids[given] if isinstance(given, Ref) else given

        base = {"did": session.oids["database tools"] if "dashboard" not in name and "servers/" not in name and "databases/" not in name else None,
                "datlastsysoid": 16383, "last_system_oid": 16383, "show_system_objects": False, "show_sys_objects": False, "show_sysobj": False,
                "showsysobj": False, "server_type": "pg", "conn": session, "type": "m" if name.startswith("mviews") else None}
        given = {**base, **{key: value(given) for key, given in context.items()}}
        text = self.environment.get_template(name).render(given).strip()
        # One template leaves its parameter to the driver.
        return text.replace("%(rid)s", str(given["rid"])).replace("%%", "%") if "%(rid)s" in text else text


def label(context):
    words = []
    for given in context.values():
        given = given[1] if isinstance(given, tuple) else given
        word = re.sub(r"^\w+ (shop\.)?", "", given) if isinstance(given, Ref) else str(given)
        if (isinstance(given, (Ref, str)) or given is True) and len(word) < 40 and word not in words and word != "shop":
            words.append(word)
    return " ".join(words)


def rendered(templates, sessions):
    """Each query: its name, and its text for each server."""
    seen, names = set(), set()
    for area, pattern, contexts in AREAS:
        for file in templates.reading(area, pattern):
            for context in contexts:
                try:
                    texts = [templates.render(f"{area}/{file}", context, session) for session in sessions]
                except templates.missed:
                    continue
                if not texts[0] or (area, file, texts[0]) in seen:
                    continue
                seen.add((area, file, texts[0]))
                name = f"{area.replace('/#V#', '')}/{file} {label(context)}".strip()
                count = 2
                while name in names:
                    name, count = f"{name.partition('#')[0]}#{count}", count + 1
                names.add(name)
                yield name, texts
            if (area, file) not in {(a, f) for a, f, _ in seen}:
                print(f"no parameters: {area}/{file}")
    yield from in_program(templates.home)


def in_program(home):
    """The queries that stand in pgAdmin's program itself, without parameters."""
    for file in IN_PROGRAM:
        number = 0
        for node in ast.walk(ast.parse((home / file).read_text())):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if not re.match(r"\s*(SELECT|WITH|SET)\s.*(FROM|version)", text, re.S) or re.search(r"%[s(]|pg_sys|pg_stat_statements|pg_cancel|pg_term", text):
                continue
            number += 1
            text = text.replace("{0}", "5" if "db.oid" in text else "UTF8" if "client_encoding" in text else "'writer'")
            yield f"{file}#{number}", [text, text]


def users_alone(rows):
    return [row for row in rows if any("shop" in value or "writer" in value or "reader" in value for value in row)]


def difference(name, text, there, here):
    """What differs, or nothing."""
    if there[0] != here[0]:
        return f"PostgreSQL: {there[0]} {there[1] if there[0] != '00000' else ''}; Clearway: {here[0]} {here[1] if here[0] != '00000' else ''}"
    if there[0] != "00000":
        return ""
    if [name for name, _ in there[1]] != [name for name, _ in here[1]]:
        return f"columns: PostgreSQL {[c for c in there[1] if c not in here[1]] or there[1]}; Clearway {[c for c in here[1] if c not in there[1]] or here[1]}"
    types = ", ".join(f"{a[0]} {a[1]}, here {b[1]}" for a, b in zip(there[1], here[1]) if a != b)
    columns_only = COLUMNS_ONLY.search(f"{name} {text}" if ".py#" in name else name)
    rows = "" if columns_only else different_rows(name, there, here)
    return "; ".join(filter(None, [f"types: {types}" if types else "", rows]))


def different_rows(name, there, here):
    rows = [users_alone(rows) if OF_USER.search(name) else rows for rows in (there[2], here[2])]
    if UNORDERED.search(name):
        rows = [[tuple(",".join(sorted(value[1:-1].split(","))) if value.startswith("{") else value for value in row) for row in own] for own in rows]
    # An expression as a tree of nodes is what only PostgreSQL reads.
    trees = {i for i, (_, kind) in enumerate(there[1]) if kind == "194"}
    rows = [[tuple("a tree" if i in trees and value != "NULL" else value for i, value in enumerate(row)) for row in own] for own in rows]
    if name.startswith("depends"):
        rows = [[row for row in own if not any(word in value for word in NOT_HERE for value in row)] for own in rows]
    left, right = list(rows[0]), []
    for row in rows[1]:
        left.remove(row) if row in left else right.append(row)
    if left or right:
        columns = [column for column, _ in there[1]]
        if len(left) == len(right):
            told = [f"{name}: PostgreSQL {a[i]!r}, Clearway {b[i]!r}" for a, b in zip(sorted(left), sorted(right))
                    for i, name in enumerate(columns) if a[i] != b[i]]
            return f"{len(left)} rows differ: " + "; ".join(told[:12])
        return f"rows of PostgreSQL alone {left[:6]} ({len(left)}); of Clearway alone {right[:6]} ({len(right)}); columns {columns}"
    return ""


def make_objects(sessions):
    for session in sessions:
        for statement in re.split(r";\n", re.sub(r"^--.*\n", "", (HERE / "tools_queries.sql").read_text())):
            try:
                if statement.strip():
                    session.conn.execute(statement)
            except session.psycopg.Error as error:
                print(f"{session.server.name} refuses: {statement[:120]}: {error}")
        session.learn()


def compare(given, sessions, templates):
    seen, told = {}, []
    for name, texts in rendered(templates, sessions):
        if given.only and given.only not in name:
            continue
        answers = [session.ask(text) for session, text in zip(sessions, texts)]
        if answers[0][0] == "42601":
            continue
        said = " ".join(difference(name, texts[0], *answers).split())
        seen[name] = ("failed" if said else "passed", said[:400])
        if said:
            told.append(f"## {name}\n\n{said}\n\n```sql\n{texts[1]}\n```\n")
    if given.differences:
        given.differences.write_text("\n".join(told))
    return seen


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clearway")
    arguments.add_argument("--only")
    arguments.add_argument("--record", action="store_true")
    arguments.add_argument("--differences", type=Path)
    given = arguments.parse_args()
    try:
        python, home = environment(), package()
    except NotReached as error:
        print(f"NOT RUN: pgAdmin's queries, which could not be fetched: {error}\n0 passed, 0 failed")
        return False
    if Path(sys.executable) != python:
        return subprocess.run([python, *sys.argv]).returncode != 0
    print(f"left out, for Clearway does not have it: {LEFT_OUT}\nleft out, for no package of npm has them: Grafana's queries")
    scratch, servers = tempfile.mkdtemp(prefix="clearway-tools-"), []
    os.chmod(scratch, 0o755)
    try:
        for server in (Postgres(scratch), Clearway(given.clearway, scratch)):
            server.start()
            servers.append(server)
            subprocess.run(["psql", "-Xq", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-c", "CREATE DATABASE tools"], check=True)
        sessions = [Session(server) for server in servers]
        make_objects(sessions)
        seen = compare(given, sessions, Templates(home))
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    path = HERE / "tools_queries.list"
    if given.record:
        suites.record(path, "# Queries of pgAdmin that differ, each with its reason (tests/tools_queries.py says what they mean).\n", seen)
    return suites.verdict("pgAdmin's queries", seen, suites.listed(path), REASONS, whole=not given.only)


if __name__ == "__main__":
    sys.exit(main())
