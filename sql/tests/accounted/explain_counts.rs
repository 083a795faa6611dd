//! EXPLAIN ANALYZE counts what the statement does: each row of a table that is scanned is given on, or was removed by the filter or by the keys of a hash join's other
//! side (GAT-3), wherever it was judged (XPM-1).

use crate::alone;
use crate::memory::{Lines, open, session};
use clearway_base::breath;
use clearway_base::for_each_seed;
use clearway_base::sync::block_on;
use clearway_base::testkit::Rng;
use clearway_sql::session::{Backends, Session};
use std::sync::Arc;

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    block_on(session.simple(sql, &mut lines)).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    lines.0
}

/// The lines of a plan that was carried out, without blanks and arrows at their beginnings.
fn explained(session: &mut Session, sql: &str) -> Vec<String> {
    let lines = rows(session, &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}"));
    lines.iter().map(|line| line.trim_start_matches([' ', '-', '>']).to_owned()).collect()
}

const TABLES: &str = "CREATE TABLE many (k int PRIMARY KEY, g int, t text);
    INSERT INTO many SELECT n, n % 7, 'text ' || n % 100 FROM generate_series(1, 5000) n;
    CREATE TABLE few (g int, name text);
    INSERT INTO few SELECT n, 'name ' || n FROM generate_series(0, 4) n;
    ANALYZE many; ANALYZE few;";

/// Statements, and lines of their plans. PostgreSQL 15 has the same counts, but that it has no keys of the other side: its scan gives 5,000 rows to the joins.
const COUNTS: &[(&str, &[&str])] = &[
    (
        "SELECT count(*) FROM many WHERE t = 'text 7' AND g < 3",
        &["Seq Scan on many (actual rows=22 loops=1)", "Rows Removed by Filter: 4978"],
    ),
    (
        "SELECT count(*) FROM many WHERE t || 'x' < 'text 3' AND g <> 5",
        &["Seq Scan on many (actual rows=986 loops=1)", "Rows Removed by Filter: 4014"],
    ),
    (
        "SELECT count(*) FROM many m JOIN few f ON m.g = f.g",
        &[
            "Hash Join (actual rows=3572 loops=1)",
            "Seq Scan on many m (actual rows=3572 loops=1)",
            "Rows Removed by Join Keys: 1428",
        ],
    ),
    (
        "SELECT count(*) FROM many m JOIN few f ON m.g = f.g AND m.t < f.name",
        &[
            "Hash Join (actual rows=0 loops=1)",
            "Rows Removed by Join Filter: 3572",
            "Seq Scan on many m (actual rows=3572 loops=1)",
            "Rows Removed by Join Keys: 1428",
        ],
    ),
    (
        "SELECT count(*) FROM many m JOIN few f ON m.g = f.g WHERE m.t >= 'text 5'",
        &[
            "Hash Join (actual rows=1964 loops=1)",
            "Seq Scan on many m (actual rows=1964 loops=1)",
            "Rows Removed by Filter: 2250",
            "Rows Removed by Join Keys: 786",
        ],
    ),
    (
        "DELETE FROM many WHERE g % 2 = 0",
        &["Seq Scan on many (actual rows=2857 loops=1)", "Rows Removed by Filter: 2143"],
    ),
];

#[test]
fn counts_are_those_of_what_was_done() {
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    rows(&mut session, TABLES);
    let json = rows(&mut session, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {}", COUNTS[2].0)).join("\n");
    assert!(json.contains("\"Rows Removed by Join Keys\": 1428"), "{json}");
    for (sql, expected) in COUNTS {
        let plan = explained(&mut session, sql);
        for line in *expected {
            assert!(plan.iter().any(|shown| shown == line), "{sql}: {line} is missing in {plan:#?}");
        }
    }
}

/// What a plan in JSON says of the scan of a table.
#[derive(Debug, Default)]
struct Scanned {
    kind: String,
    table: String,
    /// Rows that it gave, that the filter removed, and that the keys did.
    counts: [u64; 3],
    loops: u64,
}

/// The scans of a plan; a node's properties stand before its children.
fn scans(json: &str) -> Vec<Scanned> {
    let mut all: Vec<Scanned> = Vec::new();
    for line in json.lines() {
        let Some((name, value)) = line.trim().trim_end_matches(',').split_once(": ") else { continue };
        let text = value.trim_matches('"').to_owned();
        if name == "\"Node Type\"" {
            all.push(Scanned { kind: text, ..Scanned::default() });
            continue;
        }
        let (Some(node), number) = (all.last_mut(), text.parse().unwrap_or(0)) else { continue };
        match name {
            "\"Relation Name\"" => node.table = text,
            "\"Actual Rows\"" => node.counts[0] = number,
            "\"Rows Removed by Filter\"" => node.counts[1] = number,
            "\"Rows Removed by Join Keys\"" => node.counts[2] = number,
            "\"Actual Loops\"" => node.loops = number,
            _ => {}
        }
    }
    all.retain(|node| node.kind == "Seq Scan");
    all
}

/// A query with joins and conditions, some of which are judged on stored rows.
fn joined(rng: &mut Rng) -> String {
    let keys = [("x.g", "y.g"), ("x.k", "y.k"), ("x.k", "y.g"), ("x.b", "y.b"), ("x.k + 0", "y.k")];
    let (left, right) = keys[rng.below(5) as usize];
    let kind = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][rng.below(4) as usize];
    let second = ["", " AND x.b < y.b", " AND x.g = y.g"][rng.below(3) as usize];
    let filter = [
        "",
        " WHERE x.t < 't3'",
        " WHERE y.b % 3 > 0 AND y.t <> 't4'",
        " WHERE x.g BETWEEN 2 AND 20 AND length(x.t) > 2",
        " WHERE x.b > 500 AND y.t LIKE 't%'",
    ][rng.below(5) as usize];
    match rng.below(5) {
        0 => format!("SELECT count(*) FROM large x WHERE EXISTS (SELECT FROM small y WHERE {left} = {right})"),
        1 => format!(
            "SELECT count(*) FROM large x {kind} small y ON {left} = {right}{second} JOIN large z ON z.b = y.k{filter}"
        ),
        2 => format!(
            "SELECT x.g, count(*) FROM small x {kind} large y ON {left} = {right}{second}{filter} GROUP BY 1 ORDER BY 2"
        ),
        _ => format!("SELECT count(*), max(y.t) FROM large x {kind} small y ON {left} = {right}{second}{filter}"),
    }
}

const JOINED: &str = "CREATE TABLE large (k int, g int, b bigint, t text);
    INSERT INTO large SELECT nullif(i % 900, 7), i % 37, i * 1000003::bigint % 1000, 't' || i % 50 FROM generate_series(1, 6000) i;
    CREATE TABLE small (k int, g int, b bigint, t text);
    INSERT INTO small SELECT nullif(i * 7, 21), i % 11, i * 17, 't' || i FROM generate_series(1, 60) i;
    ANALYZE large; ANALYZE small;";

#[test]
fn every_row_of_a_scan_is_accounted_for() {
    let _alone = alone();
    // XPM-1, GAT-3
    breath::install(|work| work(), 4);
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    rows(&mut session, JOINED);
    let mut by_keys = 0;
    for settings in [
        "SET work_mem = '4MB'",
        "SET work_mem = '64kB'",
        "SET force_parallel_mode = on; SET min_parallel_table_scan_size = 0",
    ] {
        rows(&mut session, settings);
        for_each_seed!(12, |seed| {
            let mut rng = Rng::new(seed);
            for _ in 0..5 {
                let sql = joined(&mut rng);
                let json = rows(&mut session, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}")).join("\n");
                for scan in scans(&json).iter().filter(|scan| scan.loops == 1) {
                    let all = if scan.table == "large" { 6_000 } else { 60 };
                    assert_eq!(scan.counts.iter().sum::<u64>(), all, "{sql}: {scan:?} in {json}");
                    by_keys += scan.counts[2];
                }
            }
        });
    }
    assert!(by_keys > 50_000, "{by_keys} rows were turned away for the keys of the other side");
}
