//! Updates of one row that give its columns values of other lengths: by the fast path (SHT-1) the same rows and errors as by the general one.

use std::sync::Arc;

use crate::memory::{self, as_served};
use clearway_base::testkit::Rng;
use clearway_sql::session::{Backends, Session};

/// The rows of a text, or its error's code; as the server does, at once if that can be.
fn answer(session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
    as_served(session, sql).map_err(|e| e.code().to_owned())
}

fn all(session: &mut Session, table: &str) -> Vec<String> {
    answer(session, &format!("SELECT * FROM {table} ORDER BY id")).expect("rows")
}

/// A value for a column, as SQL writes it.
fn value(rng: &mut Rng, column: &str) -> String {
    let text = |rng: &mut Rng, most: u64| {
        let length = rng.below(most + 1) as usize;
        format!("'{}'", ["a", "b''", "é", " "][rng.below(4) as usize].repeat(length))
    };
    match (rng.below(8), column) {
        (0, _) => "NULL".to_owned(),
        (1, "x" | "must") => format!("'{}'", "long ".repeat(rng.below(900) as usize)),
        (_, "n") => format!("{}.{}", rng.below(10_000), rng.below(100)),
        (_, "k" | "m") => rng.below(100).to_string(),
        (_, "v") => text(rng, 6),
        (_, "c") => text(rng, 5),
        _ => text(rng, 40),
    }
}

fn compared(seed: u64) {
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut session = memory::session(&db, &backends, "postgres", &[]);
    let mut rng = Rng::new(seed);
    for table in ["fast", "plain"] {
        let columns = "id int PRIMARY KEY, old text, v varchar(5), c char(4), x text, n numeric(6, 2), k int, must text NOT NULL DEFAULT ''";
        for sql in [
            format!("CREATE TABLE {table} ({columns})"),
            format!("CREATE INDEX ON {table} (k)"),
            format!("INSERT INTO {table} (id, old, v) SELECT g, 'old', 'v' FROM generate_series(1, 20) g"),
            // Rows of an older version of the table, and a column that is gone.
            format!("ALTER TABLE {table} ADD COLUMN m int DEFAULT 7"),
            format!("ALTER TABLE {table} DROP COLUMN old"),
        ] {
            answer(&mut session, &sql).expect("a table");
        }
    }
    let mut in_block = false;
    for _ in 0..400 {
        match rng.below(12) {
            0 => {
                let sql = ["COMMIT", "ROLLBACK", "BEGIN", "BEGIN"][rng.below(2) as usize + 2 * usize::from(!in_block)];
                answer(&mut session, sql).expect("a block");
                in_block = !in_block;
                assert_eq!(all(&mut session, "fast"), all(&mut session, "plain"), "SHT-1, seed {seed}");
                continue;
            }
            1 if !in_block => drop(answer(&mut session, "CHECKPOINT")),
            _ => {}
        }
        let columns = ["v", "c", "x", "n", "m", "must", "k"];
        let mut set: Vec<String> = Vec::new();
        for _ in 0..1 + rng.below(2) {
            let column = columns[rng.below(columns.len() as u64) as usize];
            if !set.iter().any(|known| known.starts_with(&format!("{column} "))) {
                set.push(format!("{column} = {}", value(&mut rng, column)));
            }
        }
        let (set, id) = (set.join(", "), 1 + rng.below(22));
        let fast = answer(&mut session, &format!("UPDATE fast SET {set} WHERE id = {id}"));
        if fast.is_err() && in_block {
            answer(&mut session, "ROLLBACK").expect("the block ends");
            in_block = false;
            assert_eq!(all(&mut session, "fast"), all(&mut session, "plain"), "SHT-1, seed {seed}: {set}");
        }
        // What gives rows goes the general way.
        let plain = answer(&mut session, &format!("UPDATE plain SET {set} WHERE id = {id} RETURNING id"));
        assert_eq!(fast.as_ref().err(), plain.as_ref().err(), "SHT-1, seed {seed}: {set}");
    }
    answer(&mut session, if in_block { "COMMIT" } else { "BEGIN" }).expect("a block");
    assert_eq!(all(&mut session, "fast"), all(&mut session, "plain"), "SHT-1, seed {seed}");
}

#[test]
fn rows_and_errors_are_those_of_the_general_path() {
    (1..=12).for_each(compared);
}
