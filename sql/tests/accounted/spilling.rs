//! What exceeds `work_mem` goes to temporary files: the answers are those of a larger `work_mem`, and no more is written than has to be.

use std::sync::Arc;

use crate::alone;
use crate::memory::{self, Lines};
use clearway_base::memory::{Account, charged};
use clearway_base::sync::block_on;
use clearway_engine::db::Db;
use clearway_sql::session::{Backends, Session};

struct Spilling {
    db: Arc<Db>,
    account: &'static Account,
    session: Session,
}

impl Spilling {
    /// `few` has 6,000 rows, `many` 24,000; half of those of `few` are met by `many`.
    fn begin(pid: i32) -> Spilling {
        let (db, account) = (memory::open(), Account::open(pid));
        let session = memory::session(&db, &Arc::new(Backends::default()), "postgres", &[]);
        let mut all = Spilling { db, account, session };
        all.rows("CREATE TABLE few (id int PRIMARY KEY, name text, a text, b text, c text)");
        all.rows("INSERT INTO few SELECT g, 'n' || g % 10, repeat('a', 20), repeat('b', 20), 'c' FROM generate_series(1, 6000) g");
        all.rows("CREATE TABLE many (id int PRIMARY KEY, few int, n numeric, note text)");
        all.rows("INSERT INTO many SELECT g, 1 + g % 3000, g * 0.25, repeat('x', 30) || g % 7 FROM generate_series(1, 24000) g");
        all.rows("ANALYZE");
        all
    }

    fn rows(&mut self, sql: &str) -> Vec<String> {
        let mut lines = Lines::default();
        let ran = block_on(charged(self.account, self.session.simple(sql, &mut lines)));
        ran.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        lines.0
    }

    /// The rows, sorted, and what was written to temporary files meanwhile.
    fn spilled(&mut self, sql: &str) -> (Vec<String>, u64) {
        let written = |all: &Spilling| all.db.transactions().store().temp_files().written_bytes();
        let before = written(self);
        let mut rows = self.rows(sql);
        rows.sort_unstable();
        (rows, written(self) - before)
    }
}

/// Queries, and the kilobytes that they write at most with 256 kB of `work_mem`.
const QUERIES: [(&str, u64); 7] = [
    // Each of 24,000 rows of the join has two slots in the files of the join, and two in those of the groups.
    (
        "SELECT f.id, count(m.id) FROM few f LEFT JOIN many m ON m.few = f.id AND m.note NOT LIKE '%x3' GROUP BY f.id",
        1250,
    ),
    ("SELECT few, sum(n), count(*) FROM many GROUP BY few", 520),
    ("SELECT few, min(note), max(id) FILTER (WHERE n > 100) FROM many GROUP BY few", 1650),
    ("SELECT few % 2000, few % 3, sum(n) FROM many GROUP BY GROUPING SETS ((few % 2000), (few % 3), ())", 120),
    ("SELECT few, string_agg(id::text, '-' ORDER BY n DESC) FROM many WHERE id % 5 = 1 GROUP BY few", 0),
    (
        "SELECT f.name, f.id, count(*) FROM few f JOIN many m ON m.few = f.id GROUP BY f.id HAVING sum(m.n) > 20000",
        2600,
    ),
    ("SELECT m.id, f.name, m.note FROM many m JOIN few f ON f.id = m.few AND f.name <> 'n5' WHERE m.n > f.id", 1900),
];

#[test]
fn what_is_spilled_gives_the_same_and_writes_no_more_than_it_has_to() {
    let _alone = alone();
    let mut all = Spilling::begin(6001);
    let mut total = 0;
    for (query, kilobytes) in QUERIES {
        all.rows("SET work_mem = '64MB'");
        let (expected, nothing) = all.spilled(query);
        assert_eq!(nothing, 0, "{query}");
        all.rows("SET work_mem = '256kB'");
        let (rows, written) = all.spilled(query);
        assert_eq!(rows, expected, "{query}");
        assert!(
            written <= kilobytes << 10,
            "{} kB were written, at most {kilobytes} are needed: {query}",
            written >> 10
        );
        total += written;
        // Nearly nothing fits.
        all.rows("SET work_mem = '64kB'");
        assert_eq!(all.spilled(query).0, expected, "{query}");
    }
    assert!(total > 0, "nothing was spilled");
}

#[test]
fn a_hash_may_have_a_multiple_of_work_mem_and_a_sort_may_not() {
    let _alone = alone();
    let mut all = Spilling::begin(6002);
    let (groups, sort) = (QUERIES[1].0, "SELECT id, note FROM many ORDER BY note, n");
    all.rows("SET work_mem = '256kB'");
    assert!(all.spilled(groups).1 > 0 && all.spilled(sort).1 > 0);
    all.rows("SET hash_mem_multiplier = 40");
    assert_eq!(all.spilled(groups).1, 0);
    assert!(all.spilled(sort).1 > 0);
    let refused = block_on(all.session.simple("SET hash_mem_multiplier = 0.5", &mut Lines::default()));
    let message = refused.err().map(|e| e.message().to_owned());
    let expected = "0.5 is outside the valid range for parameter \"hash_mem_multiplier\" (1 .. 1000)";
    assert_eq!(message.as_deref(), Some(expected));
}

/// Window functions whose partitions are kept, and what they add to their table's columns.
const WINDOWS: [&str; 6] = [
    "sum(id) OVER (ORDER BY id ROWS BETWEEN 100 PRECEDING AND 90 FOLLOWING)",
    "first_value(note || id) OVER (ORDER BY id ROWS BETWEEN 700 PRECEDING AND 10 PRECEDING)",
    "lag(note || id, id % 900) OVER (ORDER BY id)",
    "nth_value(id, 3) OVER (ORDER BY few GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "cume_dist() OVER (PARTITION BY id % 2 ORDER BY few)",
    "max(n) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
];

#[test]
fn partitions_that_are_kept_in_files_give_the_same() {
    let _alone = alone();
    // NBR-1, WND-1
    let mut all = Spilling::begin(6003);
    let mut ran = |function: &str, work_mem: &str| {
        all.rows(&format!("SET work_mem = '{work_mem}'"));
        all.spilled(&format!("SELECT id, {function} FROM many WHERE id <= 4000"))
    };
    // It is computed row by row, so what is written is its sort's.
    let (_, of_sort) = ran("row_number() OVER (ORDER BY id)", "64kB");
    for function in WINDOWS {
        let (expected, in_memory) = ran(function, "64MB");
        let (rows, written) = ran(function, "64kB");
        assert_eq!((rows, in_memory), (expected, 0), "NBR-1: {function}");
        assert!(written > of_sort + 50_000, "WND-1: {function} wrote {written} bytes, a sort {of_sort}");
    }
}

#[test]
fn groups_find_the_room_that_those_before_them_had() {
    let _alone = alone();
    // GSK-1
    let mut all = Spilling::begin(6004);
    all.rows("SET work_mem = '128kB'");
    let plan = all.rows("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT n, count(*) FROM many GROUP BY n");
    let batches = plan.iter().find_map(|line| line.trim().strip_prefix("Batches: ")?.split(' ').next()?.parse().ok());
    let batches: u64 = batches.unwrap_or_else(|| panic!("{plan:?}"));
    // Sixteen files, of which each has some five times the groups that have room.
    assert!((17..120).contains(&batches), "files of 64 groups each: {plan:?}");
}

#[test]
fn full_batches_of_index_entries_go_to_a_file_and_are_changed_in_one_pass() {
    // BAT-5
    let mut all = Spilling::begin(6005);
    for table in ["wide", "narrow"] {
        all.rows(&format!("CREATE TABLE {table} (id int PRIMARY KEY, k int)"));
        all.rows(&format!("CREATE INDEX {table}_k ON {table} (k)"));
        all.rows(&format!("INSERT INTO {table} SELECT -g, 0 FROM generate_series(1, 10) g"));
    }
    let insert =
        |table: &str| format!("INSERT INTO {table} SELECT g, g * 7919 % 30011 FROM generate_series(1, 30000) g");
    assert_eq!(all.spilled(&insert("wide")).1, 0, "one batch has room for all");
    all.rows("SET statement_memory = '3MB'");
    let (_, written) = all.spilled(&insert("narrow"));
    all.rows("RESET statement_memory");
    assert!(written > 300_000, "{written} bytes were written");
    let counted =
        |all: &mut Spilling, table: &str| all.rows(&format!("SELECT k, count(*) FROM {table} GROUP BY k ORDER BY k"));
    assert_eq!(counted(&mut all, "wide"), counted(&mut all, "narrow"));
}
