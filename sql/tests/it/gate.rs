//! Conditions that are judged on stored rows (GAT-1, GAT-2): a condition lets the same rows through as it does where it can't be judged so, because
//! something is asked of its value.

use crate::memory::{open, session, simple};
use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;
use clearway_sql::session::Backends;
use std::sync::Arc;

const INTS: [&str; 5] = ["a", "k", "s", "b", "n"];

fn comparison(rng: &mut Rng) -> &'static str {
    ["<", "<=", "=", "<>", ">", ">="][rng.below(6) as usize]
}

fn integer(rng: &mut Rng) -> String {
    match rng.below(12) {
        0 => "9223372036854775807".to_owned(),
        1 => "-9223372036854775808".to_owned(),
        2 => "NULL".to_owned(),
        _ => (rng.below(60) as i64 - 10).to_string(),
    }
}

fn text(rng: &mut Rng) -> String {
    ["'x1'", "'x17'", "'x2  '", "''", "'y'", "'x10 '", "NULL"][rng.below(7) as usize].to_owned()
}

fn listed(rng: &mut Rng, one: fn(&mut Rng) -> String) -> String {
    (0..1 + rng.below(24)).map(|_| one(rng)).collect::<Vec<_>>().join(", ")
}

fn not(rng: &mut Rng) -> &'static str {
    ["", "NOT "][rng.below(2) as usize]
}

/// A condition on the columns of the table.
fn condition(rng: &mut Rng, depth: u32) -> String {
    let (int, other) = (INTS[rng.below(5) as usize], INTS[rng.below(5) as usize]);
    let string = ["t", "v", "c"][rng.below(3) as usize];
    match rng.below(if depth > 0 { 15 } else { 12 }) {
        0 => format!("{int} {} {}", comparison(rng), integer(rng)),
        1 => format!("{} {} {int}", integer(rng), comparison(rng)),
        2 => format!("{int} {} {other}", comparison(rng)),
        3 => format!("{int} {}IN ({})", not(rng), listed(rng, integer)),
        4 => format!("{string} {}IN ({})", not(rng), listed(rng, text)),
        5 => format!("{string} {} {}", comparison(rng), text(rng)),
        6 => format!(
            "{} {}LIKE {}",
            ["t", "v"][rng.below(2) as usize],
            not(rng),
            ["'x1%'", "'%7'", "'x_'", "'%x%2%'"][rng.below(4) as usize]
        ),
        7 => format!("{} IS {}NULL", ["n", "t", "c", "m", "d"][rng.below(5) as usize], not(rng)),
        8 => format!(
            "m {} {}",
            comparison(rng),
            ["1.5", "2.50", "-3", "100000000000000000000", "'NaN'", "'-Infinity'"][rng.below(6) as usize]
        ),
        9 => format!(
            "d {} '{}'",
            comparison(rng),
            ["2024-01-07", "infinity", "-infinity", "2024-02-01"][rng.below(4) as usize]
        ),
        10 => format!("d BETWEEN '2024-01-03' AND '2024-01-{}'", 10 + rng.below(20)),
        11 => format!("f {} {}", comparison(rng), ["1.5", "'NaN'", "'-infinity'", "0"][rng.below(4) as usize]),
        12 => format!("({} OR {})", condition(rng, depth - 1), condition(rng, depth - 1)),
        13 => format!("({} AND {})", condition(rng, depth - 1), condition(rng, depth - 1)),
        _ => format!("({} OR {} AND {})", condition(rng, 0), condition(rng, depth - 1), condition(rng, 0)),
    }
}

const TABLE: &str = "CREATE TABLE t (a int, t text, k bigint PRIMARY KEY, c char(5), s smallint, b bigint, v varchar(9), n int, m numeric, d date, f float8);
    INSERT INTO t SELECT g % 9, 'x' || g % 20, g, 'x' || g % 13, g % 5, g * 3, 'x' || g % 7, nullif(g % 4, 1), (g % 40 - 10) / 4.0, date '2024-01-01' + g % 50, g / 8.0
        FROM generate_series(1, 120) g;
    ALTER TABLE t ADD COLUMN later int DEFAULT 3;
    INSERT INTO t SELECT g % 9, nullif('x' || g % 20, 'x4'), g, nullif('x' || g % 13, 'x5'), nullif(g % 5, 2), g * 3, 'x' || g % 7, nullif(g % 4, 1),
        CASE WHEN g % 6 = 0 THEN NULL WHEN g % 7 = 0 THEN 'NaN' WHEN g % 11 = 0 THEN '-Infinity' ELSE (g % 40 - 10) / 4.0 END,
        CASE WHEN g % 12 = 0 THEN 'infinity' WHEN g % 5 = 0 THEN NULL ELSE date '2024-01-01' + g % 50 END, CASE WHEN g % 9 = 0 THEN 'NaN' ELSE g / 8.0 END, g % 3
        FROM generate_series(121, 240) g;";

#[test]
fn a_condition_lets_the_same_rows_through_wherever_it_is_judged() {
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let mut session = session(&db, &backends, "postgres", &[]);
    assert!(!simple(&mut session, TABLE).starts_with("42"));
    for_each_seed!(40, |seed| {
        let mut rng = Rng::new(seed);
        for _ in 0..12 {
            let all: Vec<String> = (0..1 + rng.below(3)).map(|_| condition(&mut rng, 2)).collect();
            let wanted = ["count(*), sum(k)", "count(*), sum(a + k), max(t)", "count(*), min(c), max(m), sum(later)"]
                [rng.below(3) as usize];
            let gated = format!("SELECT {wanted} FROM t WHERE {}", all.join(" AND "));
            let plain = format!("SELECT {wanted} FROM t WHERE ({}) IS TRUE", all.join(" AND "));
            assert_eq!(simple(&mut session, &gated), simple(&mut session, &plain), "{gated}");
        }
    });
}

#[test]
fn what_would_fail_before_a_test_fails_nevertheless() {
    // GAT-2
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let mut session = session(&db, &backends, "postgres", &[]);
    simple(&mut session, TABLE);
    assert_eq!(simple(&mut session, "SELECT count(*) FROM t WHERE 1 / (k - 200) >= 0 AND a = 100"), "22012");
    assert_eq!(simple(&mut session, "SELECT count(*) FROM t WHERE a = 100 AND 1 / (k - 200) >= 0"), "0|\nSELECT 1");
}

/// A query with joins, `EQ` between the sides of a key that are columns.
fn joined(rng: &mut Rng) -> String {
    let keys = [("x.a", "y.a"), ("x.b", "y.b"), ("x.k", "y.k"), ("x.d", "y.d"), ("x.k", "y.b"), ("x.a", "y.k")];
    let (left, right) = keys[rng.below(6) as usize];
    let second = ["", " AND x.a EQ y.a", " AND x.b < y.b"][rng.below(3) as usize];
    let kind = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][rng.below(4) as usize];
    let filter = ["", " WHERE x.f < 40", " WHERE y.f > 20", " WHERE x.f < 90 AND y.f > 10"][rng.below(4) as usize];
    let wanted = ["count(*), sum(x.f), sum(y.f)", "count(*), min(x.t), max(y.t)", "count(x.k), count(y.k)"];
    let wanted = wanted[rng.below(3) as usize];
    let two = format!("{left} EQ {right}{second}");
    match rng.below(6) {
        0 | 1 => format!("SELECT {wanted} FROM many x {kind} few y ON {two}{filter}"),
        2 => format!("SELECT {wanted} FROM few x {kind} many y ON {two}{filter}"),
        3 => format!("SELECT count(*), sum(x.f) FROM many x WHERE EXISTS (SELECT 1 FROM few y WHERE {two})"),
        4 => format!("SELECT count(*), sum(x.f) FROM few x WHERE NOT EXISTS (SELECT 1 FROM many y WHERE {two})"),
        _ => format!(
            "SELECT {wanted}, count(z.k) FROM many x {kind} few y ON {two} {} many z ON z.b EQ y.k{filter}",
            ["JOIN", "LEFT JOIN"][rng.below(2) as usize]
        ),
    }
}

const JOINED: &str = "CREATE TABLE many (k int, a bigint, b int, d date, f int, t text);
    INSERT INTO many SELECT nullif(g % 400, 7), g % 37, g * 1000003 % 1000, date '2024-01-01' + g % 90, g % 100, 't' || g % 50 FROM generate_series(1, 1500) g;
    CREATE TABLE few (k int, a int, b int, d date, f int, t text);
    INSERT INTO few SELECT nullif(g * 7, 21), g % 5, g * 17, date '2024-02-01' + g, g * 4, 't' || g FROM generate_series(1, 24) g;
    ANALYZE many; ANALYZE few;";

#[test]
fn rows_that_meet_none_of_the_other_side_make_no_difference() {
    // GAT-3, MTK-1: keys that are no columns are not asked for. With little memory the sides go into files.
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let mut session = session(&db, &backends, "postgres", &[]);
    simple(&mut session, JOINED);
    for memory in ["4MB", "64kB"] {
        simple(&mut session, &format!("SET work_mem = '{memory}'"));
        for_each_seed!(15, |seed| {
            let mut rng = Rng::new(seed);
            for _ in 0..8 {
                let query = joined(&mut rng);
                let plain = query.replace("x.d EQ y.d", "x.d + 0 = y.d + 0").replace(" EQ ", " + 0 = 0 + ");
                let sought = query.replace(" EQ ", " = ");
                let (sought_gave, plain_gave) = (simple(&mut session, &sought), simple(&mut session, &plain));
                assert!(sought_gave.ends_with("SELECT 1") || sought.contains("FULL"), "{sought}: {sought_gave}");
                assert_eq!(sought_gave, plain_gave, "{sought}");
            }
        });
    }
}
