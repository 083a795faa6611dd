//! Scenario: inserts with and without a primary key.

use crate::scenario::{Argument, Check, Flavour, Group, Point, Scenario, Step};

/// Single-row inserts into a table that has a primary key, and into one that has none.
pub struct NoPrimaryKey;

/// Keys that belong to a client.
const RANGE: i32 = 2_000_000;

impl Scenario for NoPrimaryKey {
    fn name(&self) -> &'static str {
        "no-primary-key"
    }

    fn title(&self) -> &'static str {
        "Inserts without a primary key"
    }

    fn about(&self) -> &'static str {
        "Every client inserts single rows `(a, b)`, each statement a durable transaction: into a table with `a int PRIMARY KEY`, \
         into the same table without a key, and into that one while two more clients read catalogs all the time. A server that \
         draws row ids from one counter under one mutex is slower without a key than with one, and slower still while others \
         need that mutex."
    }

    fn remarks(&self) -> &'static str {
        "Row ids of a table without a key come from ranges that each session draws, so no counter is shared on the way of an \
         insert. Hoped for are at least 0.98 of the rate with a key, and no second below 0.8 of the median one; the steadiness \
         of each run is in the table (slowest tenth of the window against the median one). Beside clients that read catalogs \
         Clearway loses: its catalog views are made from the catalog in memory for every query, with no index on them, and the two \
         readers take processor time from the inserts; a lock is not what these wait for."
    }

    fn unit(&self) -> &'static str {
        "inserts/s"
    }

    fn points(&self) -> &'static [u32] {
        &[16, 32, 64]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["key", "no key", "no key, catalogs read"]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        vec!["CREATE TABLE t1 (a int)".to_owned()]
    }

    fn reset(&self, _: Flavour, at: Point) -> Vec<String> {
        let key = if at.variant == "key" { "PRIMARY KEY" } else { "NOT NULL" };
        vec!["DROP TABLE t1".to_owned(), format!("CREATE TABLE t1 (a int {key}, b int NOT NULL)")]
    }

    fn load(&self, to: Flavour, at: Point) -> Vec<Group> {
        let unique = Argument::Unique { range: RANGE, step: 1 };
        let insert = Step::with("INSERT INTO t1 (a, b) VALUES ($1, 0)", &[unique]);
        let mut groups = vec![Group::new("inserts", at.x, vec![insert])];
        if at.variant.ends_with("read") {
            let catalog = match to {
                Flavour::MySql => "SELECT count(*) FROM information_schema.columns WHERE table_name = 't1'",
                _ => "SELECT count(*) FROM pg_attribute a, pg_class c WHERE c.oid = a.attrelid AND c.relname = 't1'",
            };
            groups.push(Group::new("catalog readers", 2, vec![Step::run(catalog)]));
        }
        groups
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT count(*) FROM t1", group: "inserts" })
    }
}
