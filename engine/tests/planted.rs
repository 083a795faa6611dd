//! The random histories find mistakes that are planted in the real code: run with the feature `mutations`.
#![cfg(feature = "mutations")]

#[path = "history/cut.rs"]
mod cut;
#[path = "history/disk.rs"]
mod disk;
#[path = "history/oracle.rs"]
mod oracle;
#[path = "history/replies.rs"]
mod replies;
#[path = "history/rows.rs"]
mod rows;
#[path = "history/statements.rs"]
mod statements;
#[path = "it/support.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clearway_engine::session::few::{FewRows, FewWanted};
use clearway_engine::session::{Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::Direction;
use clearway_storage::mutation as storage;
use clearway_txn::mutation::{ALL, Mutation, at_copied_row, plant};
use clearway_txn::transaction::Basis;

/// Every how-manieth crash point, and seeds at most.
const STRIDE: u64 = 4;
const SEEDS: u64 = 400;

/// Those that may take hundreds of seeds; looked for when `CLEARWAY_MUTATION` names them.
const LONG: [&str; 5] = ["SavepointGivesLocks", "LatestStrength", "RowOverDeleted", "NoUndoNext", "SkipLogSync"];

/// A reader has copied a row's uncommitted version; its writer goes back before the reader looks which transaction that is. The reader looks the row up, or
/// reads a range without waiting.
fn reads_what_was_never_committed(by_range: bool) -> bool {
    let db = support::open(&support::memory());
    let (mut writer, mut reader) = (db.session(1, support::DATABASE), db.session(2, support::DATABASE));
    support::run(async {
        let shape = support::create(&mut writer, true, false).await;
        writer.begin(TxnOptions::default());
        writer.insert(&shape, &support::row(1, 10, "old")).await.expect("inserted");
        writer.commit(clearway_engine::session::Durability::Wait).await.expect("committed");
        writer.begin(TxnOptions::default());
        let statement = writer.open_statement(&"update".into(), StatementMode::Write);
        let (old, new) = (support::row(1, 10, "old"), support::row(1, 666, "new"));
        let key = support::key(&shape, 1);
        writer.update(&shape, &key, &old, &new, Basis::Read(statement.view)).await.expect("updated");
        writer.close_statement(statement);
        at_copied_row(move || {
            clearway_base::sync::spawn_thread("writer", move || {
                support::run(async move { writer.roll_back().await.expect("undone") });
            })
            .expect("a thread")
            .join()
            .expect("undone");
        });
        let seen = match by_range {
            true => few(&mut reader, &shape),
            false => support::read_a(&mut reader, &shape, 1).await,
        };
        drop(reader);
        db.close().await.expect("closed");
        seen == Some(666)
    })
}

/// Column a of the only row of a table.
fn few(session: &mut Session, shape: &TableShape) -> Option<i64> {
    let statement = session.open_statement(&"read".into(), StatementMode::Write);
    let wanted =
        FewWanted { from: &[], to: None, direction: Direction::Forward, enough: usize::MAX, most: (10, 10_000) };
    let mut found = FewRows::default();
    let read = session.few_now(shape, &statement.view, &wanted, &mut found);
    session.close_statement(statement);
    assert_eq!(read, Some(true), "the row is in memory");
    let (key, value) = found.iter().next()?;
    match shape.row(key, value).expect("a row")[1] {
        Value::Int(a) => Some(a),
        ref other => panic!("{other:?}"),
    }
}

/// The first seed of these with a finding, a panic included, and the finding.
fn first_finding(seeds: impl Iterator<Item = u64>, stride: u64) -> Option<(u64, String)> {
    let mut swept = replies::Swept::default();
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| replies::sweep(seed, stride, &mut swept))) {
            Ok(Ok(())) => {}
            Ok(Err(wrong)) => return Some((seed, wrong)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                return Some((seed, text.unwrap_or_else(|| "a panic".to_owned())));
            }
        }
    }
    None
}

fn look_for(mutation: Mutation) -> Option<String> {
    match mutation {
        Mutation::NoPageRevalidation => {
            let both = reads_what_was_never_committed(false) && reads_what_was_never_committed(true);
            both.then(|| "two named interleavings".to_owned())
        }
        Mutation::SavepointGivesLocks | Mutation::LatestStrength | Mutation::RowOverDeleted => without_crashes(),
        _ => in_histories(),
    }
}

/// The first run that shows it without a crash, a panic included.
fn without_crashes() -> Option<String> {
    (1..=3_000).find_map(|seed| match catch_unwind(AssertUnwindSafe(|| replies::whole(seed))) {
        Ok(Ok(_)) => None,
        Ok(Err(wrong)) => Some(short(seed, &wrong)),
        Err(_) => Some(short(seed, "an assertion")),
    })
}

fn short(seed: u64, wrong: &str) -> String {
    let line = wrong.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("seed {seed}: {}", line.chars().take(150).collect::<String>())
}

fn in_histories() -> Option<String> {
    first_finding(1..=SEEDS, STRIDE).map(|(seed, wrong)| short(seed, &wrong))
}

// One test, since a mistake is planted for the whole process.
#[test]
fn each_planted_mistake_is_found() {
    for by_range in [false, true] {
        assert!(!reads_what_was_never_committed(by_range), "nothing is planted yet");
    }
    let only = std::env::var("CLEARWAY_MUTATION").ok();
    let wanted = |name: &str| only.as_ref().map_or(!LONG.contains(&name), |only| only == name);
    let mut missed = Vec::new();
    let mut found = |name: String, finding: Option<String>| match finding {
        Some(finding) => println!("{name}: {finding}"),
        None => missed.push(name),
    };
    for mutation in ALL.into_iter().filter(|m| wanted(&format!("{m:?}"))) {
        plant(mutation);
        found(format!("{mutation:?}"), look_for(mutation));
    }
    plant(Mutation::None);
    // A compensation record that does not say what it compensates; a log that is not synced.
    let below = [storage::Mutation::NoUndoNext, storage::Mutation::SkipLogSync];
    for mutation in below.into_iter().filter(|m| wanted(&format!("{m:?}"))) {
        storage::plant(mutation);
        found(format!("{mutation:?}"), in_histories());
    }
    storage::plant(storage::Mutation::None);
    assert!(missed.is_empty(), "not found: {missed:?}");
}
