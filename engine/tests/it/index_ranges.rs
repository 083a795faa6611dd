//! One walk over many ranges of an index, as `= ANY` of a list reads it, in a cache that holds a part of the table.

use std::collections::BTreeSet;
use std::sync::Arc;

use clearway_base::for_each_seed;
use clearway_base::testkit::{Rng, Sim, SimOptions};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::codec::key::encode_value;
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::Basis;

use super::support::{DATABASE, create, row, simulated};

const ROWS: i64 = 3_000;

/// The entries with this value of `a`.
fn of_value(shape: &TableShape, a: i64) -> KeyRange {
    let mut bytes = Vec::new();
    encode_value(shape.indexes[0].key[0], &Value::Int(a), &mut bytes);
    KeyRange::prefix(&bytes)
}

/// (a, id) of the rows with these values of `a`, by one walk; `enough`: how many are wanted first.
async fn by_list(
    session: &mut Session,
    shape: &Arc<TableShape>,
    view: &View,
    list: &BTreeSet<i64>,
    (reorders, enough): (bool, usize),
) -> Vec<(i64, i64)> {
    let mut ranges: Vec<KeyRange> = list.iter().rev().map(|a| of_value(shape, *a)).collect();
    let Some(first) = ranges.pop() else { return Vec::new() };
    let mut scan = session.index_scan(shape, 0, first, Direction::Forward, view);
    scan.go_on_with(ranges);
    if reorders {
        scan.may_reorder();
    }
    scan.expect(enough);
    let mut found = Vec::new();
    let mut push = |row: Vec<Value>| match (&row[1], &row[0]) {
        (Value::Int(a), Value::Int(id)) => found.push((*a, *id)),
        other => panic!("{other:?}"),
    };
    loop {
        if session.fill_by_index(&mut scan, enough).await.expect("rows") {
            while let Some((key, value)) = scan.buffered_row() {
                push(shape.row(key, value).expect("sound"));
            }
            continue;
        }
        if !session.advance(&mut scan).await.expect("rows") {
            break;
        }
        let (key, value) = scan.current();
        push(shape.row(key, value).expect("sound"));
    }
    assert!(scan.has_ended());
    found
}

#[test]
fn a_walk_over_many_ranges_finds_the_rows_of_each_once() {
    for_each_seed!(4, |seed| {
        let sim = Sim::with_options(seed, SimOptions { steps_max: 40_000_000 });
        sim.block_on(lists(seed)).expect("the run ends");
    });
}

async fn lists(seed: u64) {
    let db = simulated(&SimDisk::new(seed)).await;
    let (mut session, mut rng) = (db.session(1, DATABASE), Rng::new(seed));
    let shape = create(&mut session, true, true).await;
    // `a` is unique and in no order; the rows take more than twice the room that the cache has.
    let mut rows: Vec<i64> = (0..ROWS).map(|id| id * 7_919 % ROWS).collect();
    let text = "x".repeat(1_500);
    for from in (0..ROWS).step_by(500) {
        session.begin(TxnOptions::default());
        for id in from..from + 500 {
            session.insert(&shape, &row(id, rows[id as usize], &text)).await.expect("inserted");
        }
        session.commit(Durability::Wait).await.expect("committed");
    }
    // Changes of its own that the walk sees: entries are in the index twice.
    session.begin(TxnOptions::default());
    for n in 0..20 {
        let id = rng.below(ROWS as u64) as usize;
        let a = ROWS + n;
        let statement = session.open_statement(&"change".into(), StatementMode::Write);
        let view = statement.view;
        session.close_statement(statement);
        let old = row(id as i64, rows[id], &text);
        let basis = Basis::Read(view);
        session.update(&shape, &shape.key_of(&old), &old, &row(id as i64, a, &text), basis).await.expect("updated");
        rows[id] = a;
    }
    for most in [0, 1, 2, 30, 400] {
        let mut list: BTreeSet<i64> = (0..most).map(|_| rng.below(ROWS as u64 + 40) as i64).collect();
        list.insert(ROWS + 3);
        let expected: Vec<(i64, i64)> =
            (0..ROWS).map(|id| (rows[id as usize], id)).filter(|(a, _)| list.contains(a)).collect();
        let in_order: BTreeSet<(i64, i64)> = expected.iter().copied().collect();
        let statement = session.open_statement(&"walk".into(), StatementMode::Write);
        for (reorders, enough) in [(false, 1), (false, 1_000), (true, 1), (true, 1_000)] {
            let mut found = by_list(&mut session, &shape, &statement.view, &list, (reorders, enough)).await;
            if !reorders {
                assert_eq!(found, in_order.iter().copied().collect::<Vec<_>>(), "{most} values, {enough} at first");
            }
            found.sort_unstable();
            assert_eq!(found, in_order.iter().copied().collect::<Vec<_>>(), "{most} values, {enough} at first");
        }
        session.close_statement(statement);
    }
    session.commit(Durability::Wait).await.expect("committed");
}
