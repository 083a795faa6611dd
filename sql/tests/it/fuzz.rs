//! A fixed number of damaged texts: parser, planner and executor give results or errors, never a panic, an internal error or a hang (a
//! statement that computes for long is ended by its timeout, which must take effect).

use std::path::Path;
use std::sync::Arc;

use crate::memory::{open, session};
use clearway_base::sync::block_on;
use clearway_base::testkit::Rng;
use clearway_sql::session::Backends;
use clearway_sql::session::client::Client;

/// Texts for the parser alone, and statements for a whole session.
const TEXTS: u64 = 30_000;
const STATEMENTS: u64 = 4_000;

/// Counts rows and forgets them.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
}

impl Client for Sink {
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        for i in 0..fields {
            self.bytes.clear();
            write(i, &mut self.bytes);
        }
    }
}

/// Lines of the recorded scripts: what is right to begin with.
fn samples() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut out = Vec::new();
    for file in ["select.sql", "select_paths.sql", "syntax.sql"] {
        let text = std::fs::read_to_string(dir.join(file)).expect("a script");
        out.extend(text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with("--")).map(str::to_owned));
    }
    out
}

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "(",
    ")",
    ",",
    "*",
    "'",
    "\"",
    "$1",
    "$$",
    "::int",
    "::text[]",
    "NULL",
    "-",
    "+",
    "/ 0",
    "1e400",
    "9223372036854775808",
    "-9223372036854775808",
    "ARRAY[",
    "]",
    "[1]",
    "CASE",
    "END",
    "WHEN",
    "GROUP BY",
    "ORDER BY 99",
    "LIMIT -1",
    "UNION ALL",
    "WITH t AS (",
    "INSERT INTO",
    "VALUES",
    "RETURNING *",
    "UPDATE",
    "SET",
    "DELETE",
    "ON CONFLICT DO NOTHING",
    "JOIN",
    "LATERAL",
    "EXISTS (",
    "IN (",
    "ANY (",
    "generate_series(1, 3)",
    "count(*)",
    "repeat('x', 2000000000)",
    "lpad('x', 1000000000)",
    "timestamp '294277-01-01'",
    "interval '1e9 years'",
    "numeric '1e100000'",
    "/*",
    "--",
    ";",
    "\u{0}",
    "é",
    "E'\\x'",
    "FOR UPDATE",
    "power(10, 400)",
    "'{1,2'::int[]",
    "substring('abc', -2147483648, 2147483647)",
    "chr(0)",
    "to_hex(-1)",
    "BEGIN",
    "SAVEPOINT a",
];

const NUMBERS: &[&str] = &["0", "-1", "2147483648", "99999999999999999999", "1.5e308"];

fn damage(rng: &mut Rng, samples: &[String]) -> String {
    let mut text = rng.pick(samples).clone();
    for _ in 0..=rng.below(4) {
        let mut at = rng.index(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match rng.below(7) {
            0 => text.truncate(at),
            1 => text.insert_str(at, &format!(" {} ", rng.pick(WORDS))),
            2 => {
                // The end of another text.
                let other = rng.pick(samples);
                let mut from = rng.index(other.len() + 1);
                while !other.is_char_boundary(from) {
                    from -= 1;
                }
                text.truncate(at);
                text.push_str(&other[from..]);
            }
            3 => {
                // A word out of the middle.
                if let Some(end) = text[at..].find(' ') {
                    text.replace_range(at..at + end, "");
                }
            }
            4 => {
                if let Some(end) = text[at..].find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0) {
                    text.replace_range(at..at + end, NUMBERS[rng.index(NUMBERS.len())]);
                }
            }
            5 => text.insert_str(at, &"(".repeat(rng.index(300))),
            _ => text = format!("SELECT ({text})"),
        }
    }
    text
}

#[test]
fn the_parser_takes_any_text() {
    let samples = samples();
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..TEXTS {
        let text = damage(&mut Rng::new(seed), &samples);
        match std::panic::catch_unwind(|| clearway_sql::syntax::parse(&text).map(|_| ())) {
            Ok(Ok(())) => taken += 1,
            Ok(Err(_)) => refused += 1,
            Err(_) => panic!("seed {seed}: the parser panicked at {text:?}"),
        }
    }
    assert!(taken > TEXTS / 20 && refused > TEXTS / 20, "{taken} taken, {refused} refused");
}

#[test]
fn a_session_outlives_any_statement() {
    let only: Option<u64> = std::env::var("CLEARWAY_SEED").ok().and_then(|v| v.parse().ok());
    let samples = samples();
    let db = open();
    let backends = Arc::new(Backends::default());
    let mut one = session(&db, &backends, "postgres", &[("statement_timeout", "500")]);
    for line in samples.iter().filter(|l| l.starts_with("CREATE") || l.starts_with("INSERT")) {
        let _ = block_on(one.simple(line, &mut Sink::default()));
    }
    let (mut taken, mut refused) = (0, 0);
    let statements = std::env::var("CLEARWAY_STATEMENTS").ok().and_then(|v| v.parse().ok()).unwrap_or(STATEMENTS);
    for seed in only.map_or(0..statements, |s| s..s + 1) {
        let text = damage(&mut Rng::new(seed), &samples);
        let run = std::panic::AssertUnwindSafe(|| block_on(one.simple(&text, &mut Sink::default())));
        let replay = format!("replay: CLEARWAY_SEED={seed} cargo test -p clearway-sql --test it fuzz::, with {text:?}");
        match std::panic::catch_unwind(run) {
            Ok(Ok(())) => taken += 1,
            Ok(Err(e)) => {
                assert!(!e.code().starts_with("XX"), "{}: {}; {replay}", e.code(), e.message());
                refused += 1;
            }
            Err(_) => panic!("a panic; {replay}"),
        }
        // Whatever block it left open ends here.
        let _ = block_on(one.simple("ROLLBACK", &mut Sink::default()));
    }
    assert!(
        only.is_some() || (taken > STATEMENTS / 50 && refused > STATEMENTS / 20),
        "{taken} taken, {refused} refused"
    );
    block_on(one.simple("SELECT 1", &mut Sink::default())).expect("it still answers");
}
