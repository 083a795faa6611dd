//! Views of information_schema, whose columns are given other types than those of the catalog: a condition on them reaches the catalog's tables, and
//! the answer is that of the whole view.

use crate::memory::{Lines, open, session};
use clearway_base::sync::block_on;
use clearway_sql::session::{Backends, Session};
use std::sync::Arc;

const SCHEMA: &str = "
    CREATE DOMAIN positive AS int CHECK (value > 0);
    CREATE TABLE t (a int PRIMARY KEY, b varchar(20) DEFAULT 'x', c numeric(10, 2) NOT NULL, d positive, e int[], f text COLLATE \"C\");
    CREATE TABLE r (a int REFERENCES t, b text UNIQUE, g int GENERATED ALWAYS AS IDENTITY, CHECK (b <> ''));
    CREATE VIEW v AS SELECT a, b FROM t WHERE a > 0;
    CREATE SEQUENCE s;
    CREATE SCHEMA other; CREATE TABLE other.t (b date, z int)";

/// Views with conditions on their columns.
const ASKED: [(&str, &str); 17] = [
    ("columns", "table_name = 't'"),
    ("columns", "table_schema = 'public' AND table_name = 'v'"),
    ("columns", "table_schema = 'public' AND table_name IN ('r', 't') AND column_name = 'b'"),
    ("columns", "data_type = 'integer' AND table_schema <> 'pg_catalog' AND table_schema <> 'information_schema'"),
    ("columns", "table_name = 't' AND ordinal_position = 2"),
    ("columns", "table_name = 't' AND character_maximum_length = 20"),
    ("columns", "table_name LIKE 'r%' AND is_nullable = 'NO' AND table_schema = 'public'"),
    ("columns", "table_name = 't' AND column_default IS NOT NULL"),
    ("columns", "domain_name = 'positive'"),
    ("columns", "table_name = 'nothing'"),
    ("tables", "table_name = 't' AND table_type = 'BASE TABLE'"),
    ("views", "table_name = 'v'"),
    ("table_constraints", "table_name = 'r' AND constraint_type = 'FOREIGN KEY'"),
    ("key_column_usage", "table_name = 'r'"),
    ("referential_constraints", "constraint_schema = 'public'"),
    ("sequences", "sequence_name = 's'"),
    ("domains", "domain_name = 'positive'"),
];

fn opened() -> Session {
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let mut session = session(&db, &backends, "postgres", &[]);
    ask(&mut session, SCHEMA);
    session
}

fn ask(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    block_on(session.simple(sql, &mut lines)).unwrap_or_else(|e| panic!("{sql}: {e}"));
    lines.0
}

fn sorted(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = ask(session, sql);
    lines.sort();
    lines
}

#[test]
fn a_part_of_a_view_is_what_the_whole_view_has_of_it() {
    let mut session = opened();
    for (view, condition) in ASKED {
        let whole = format!("WITH w AS MATERIALIZED (SELECT * FROM information_schema.{view})");
        let expected = sorted(&mut session, &format!("{whole} SELECT * FROM w WHERE {condition}"));
        assert_eq!(expected.is_empty(), condition.contains("nothing"), "{view}: {condition}");
        let shown = sorted(&mut session, &format!("SELECT * FROM information_schema.{view} WHERE {condition}"));
        assert_eq!(shown, expected, "{view}: {condition}");
    }
    // Beside another table, and where its row may be replaced by nulls.
    let whole = "WITH w AS MATERIALIZED (SELECT * FROM information_schema.columns)";
    for join in ["JOIN", "LEFT JOIN", "FULL JOIN"] {
        let sql = format!(
            "SELECT n.x, w FROM (VALUES ('a'), ('b'), ('none')) n(x) {join} # w ON w.column_name = n.x AND w.table_name = 't'"
        );
        let expected = sorted(&mut session, &format!("{whole} {}", sql.replace('#', "w")));
        let sql = sql.replace('#', "information_schema.columns");
        assert_eq!(sorted(&mut session, &sql), expected, "{sql}");
    }
    let types =
        "SELECT pg_typeof(table_name), pg_typeof(ordinal_position), pg_typeof(data_type), pg_typeof(is_nullable)";
    let types = ask(&mut session, &format!("{types} FROM information_schema.columns WHERE table_name = 'v' LIMIT 1"));
    let declared =
        "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'information_schema.columns'::regclass";
    let declared = format!("{declared} AND attname = 'NAME'");
    let mut of = |name: &str| ask(&mut session, &declared.replace("NAME", name)).concat();
    let declared = ["table_name", "ordinal_position", "data_type", "is_nullable"].map(&mut of);
    assert_eq!(types, [declared.join("|")]);
}

#[test]
fn the_columns_of_a_table_are_found_by_its_name() {
    let mut session = opened();
    let sql = "EXPLAIN (COSTS OFF) SELECT column_name, data_type FROM information_schema.columns WHERE";
    for condition in ["table_name = 't'", "table_schema = 'public' AND table_name = 't'"] {
        let plan = ask(&mut session, &format!("{sql} {condition}")).join("\n");
        assert!(plan.contains("Index Scan using pg_class_relname_nsp_index on pg_class"), "{plan}");
        assert!(plan.contains("Index Scan using pg_attribute_relid_attnum_index on pg_attribute"), "{plan}");
        assert!(!plan.contains("Seq Scan on pg_class") && !plan.contains("Seq Scan on pg_attribute"), "{plan}");
    }
}
