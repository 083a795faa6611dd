//! Repeatable read: a row at the key of one that the snapshot shows and another transaction has deleted since. The transaction sees both.

use std::sync::Arc;

use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Isolation, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::error::TxnError;
use clearway_txn::mvcc::book::View;
use clearway_txn::read::ShownEnd;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, read_a, row, run};

const REPEATABLE: TxnOptions = TxnOptions { isolation: Isolation::RepeatableRead, read_only: false };
const DELETED: Option<ShownEnd> = Some(ShownEnd::Deleted);

/// `id`, `a`, `b`, and how a row ended that only the snapshot shows.
type Seen = (i64, i64, String, Option<ShownEnd>);

fn seen(row: &[Value], shown: Option<ShownEnd>) -> Seen {
    match row {
        [Value::Int(id), Value::Int(a), Value::Bytes(b)] => (*id, *a, String::from_utf8_lossy(b).into_owned(), shown),
        other => panic!("{other:?}"),
    }
}

fn is(id: i64, a: i64, b: &str, shown: Option<ShownEnd>) -> Seen {
    (id, a, b.to_owned(), shown)
}

async fn begin(session: &mut Session) {
    session.begin(REPEATABLE);
    session.keep_snapshot(StatementMode::Write);
}

/// What a walk over the table gives.
async fn walk(session: &mut Session, shape: &Arc<TableShape>, direction: Direction) -> Vec<Seen> {
    let statement = session.open_statement(&"walk".into(), StatementMode::Write);
    let mut scan = session.scan(shape, KeyRange::all(), direction, &statement.view);
    let mut found = Vec::new();
    while session.fill(&mut scan).await.expect("rows") {
        let shown = scan.next_shown();
        let (key, value) = scan.buffered().expect("a row");
        found.push(seen(&shape.row(key, value).expect("sound"), shown));
    }
    session.close_statement(statement);
    found
}

/// What a walk by the index on `a` gives.
async fn by_a(session: &mut Session, shape: &Arc<TableShape>) -> Vec<Seen> {
    by_index(session, shape, false).await
}

/// The same, in the order of the rows, those of one leaf at a time; and how many rows were not read alone.
async fn by_leaves(session: &mut Session, shape: &Arc<TableShape>) -> (Vec<Seen>, usize) {
    let statement = session.open_statement(&"walk".into(), StatementMode::Write);
    let mut scan = session.index_scan(shape, 0, KeyRange::all(), Direction::Forward, &statement.view);
    scan.may_reorder();
    let (mut found, mut together) = (Vec::new(), 0);
    loop {
        let read = session.fill_by_index(&mut scan, 1).await.expect("rows");
        let before = found.len();
        while let Some((key, value)) = scan.buffered_row() {
            found.push(seen(&shape.row(key, value).expect("sound"), None));
        }
        assert_eq!(read, found.len() > before);
        together += found.len() - before;
        if read {
            continue;
        }
        if !session.advance(&mut scan).await.expect("rows") {
            break;
        }
        let (key, value) = scan.current();
        found.push(seen(&shape.row(key, value).expect("sound"), scan.shown()));
    }
    session.close_statement(statement);
    (found, together)
}

async fn by_index(session: &mut Session, shape: &Arc<TableShape>, reorders: bool) -> Vec<Seen> {
    let statement = session.open_statement(&"walk".into(), StatementMode::Write);
    let mut scan = session.index_scan(shape, 0, KeyRange::all(), Direction::Forward, &statement.view);
    if reorders {
        scan.may_reorder();
    }
    let mut found = Vec::new();
    while session.advance(&mut scan).await.expect("rows") {
        let (key, value) = scan.current();
        found.push(seen(&shape.row(key, value).expect("sound"), scan.shown()));
    }
    session.close_statement(statement);
    found
}

/// What a look-up gives, and whether it says that there is another row.
async fn look_up(session: &mut Session, shape: &TableShape, id: i64) -> (Option<Seen>, bool) {
    let statement = session.open_statement(&"look".into(), StatementMode::Write);
    let at = key(shape, id);
    let found = session.get(shape, &statement.view, &at).await.expect("a read").map(|row| seen(&row, None));
    let both = session.found_shown();
    if both {
        assert!(
            session.find_now(shape, &statement.view, &at).is_none(),
            "the way without waits leaves it to the other"
        );
    }
    session.close_statement(statement);
    (found, both)
}

async fn view(session: &mut Session) -> View {
    let statement = session.open_statement(&"view".into(), StatementMode::Write);
    let view = statement.view;
    session.close_statement(statement);
    view
}

async fn delete(session: &mut Session, shape: &TableShape, old: &[Value]) {
    let view = view(session).await;
    let deleted = session.delete(shape, &shape.key_of(old), old, Basis::Read(view)).await.expect("deleted");
    assert_eq!(deleted, Changed::Done);
}

async fn update(session: &mut Session, shape: &TableShape, old: &[Value], new: &[Value]) {
    let view = view(session).await;
    let updated = session.update(shape, &shape.key_of(old), old, new, Basis::Read(view)).await.expect("updated");
    assert_eq!(updated, Changed::Done);
}

async fn commit(session: &mut Session) {
    session.commit(Durability::Wait).await.expect("committed");
}

/// Rows 1 and 2; the second session's snapshot shows both, and the first one has deleted row 1 since.
async fn deleted_beside(writer: &mut Session, reader: &mut Session, b: &str) -> Arc<TableShape> {
    let shape = create(writer, true, true).await;
    writer.begin(TxnOptions::default());
    for id in [1, 2] {
        writer.insert(&shape, &row(id, id * 10, b)).await.expect("inserted");
    }
    commit(writer).await;
    reader.expect_two_rows();
    begin(reader).await;
    writer.begin(TxnOptions::default());
    delete(writer, &shape, &row(1, 10, b)).await;
    commit(writer).await;
    shape
}

#[test]
fn both_rows_are_seen_until_the_new_one_is_taken_back() {
    // VER-4, RDV-2, TAB-4
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        let shape = deleted_beside(&mut writer, &mut reader, "old").await;
        let (old, other) = (is(1, 10, "old", DELETED), is(2, 20, "old", None));
        let before = [is(1, 10, "old", None), other.clone()];
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, before);
        let mark = reader.mark();

        // The same value of `a`, so that there are two entries at one key, too.
        reader.insert(&shape, &row(1, 10, "new")).await.expect("the key is free");
        let own = is(1, 10, "new", None);
        let both = [old.clone(), own.clone(), other.clone()];
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, both);
        let backward = walk(&mut reader, &shape, Direction::Backward).await;
        assert_eq!(backward, [other.clone(), old.clone(), own.clone()]);
        assert_eq!(by_a(&mut reader, &shape).await, both);
        assert_eq!(look_up(&mut reader, &shape, 1).await, (Some(own.clone()), true));
        assert_eq!(look_up(&mut reader, &shape, 2).await, (Some(other.clone()), false));
        assert_eq!(read_a(&mut writer, &shape, 1).await, None, "for the others it is gone");

        // The row is changed, its entry not.
        update(&mut reader, &shape, &row(1, 10, "new"), &row(1, 10, "newer")).await;
        let both = [old.clone(), is(1, 10, "newer", None), other.clone()];
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, both);
        assert_eq!(by_a(&mut reader, &shape).await, both);
        // Another entry: that of the old row leads to the old row.
        update(&mut reader, &shape, &row(1, 10, "newer"), &row(1, 5, "newer")).await;
        let inner = reader.mark();
        let by_index = [is(1, 5, "newer", None), old.clone(), other.clone()];
        assert_eq!(by_a(&mut reader, &shape).await, by_index);
        // Without the own row only the old one is left.
        delete(&mut reader, &shape, &row(1, 5, "newer")).await;
        let alone = [old.clone(), other.clone()];
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, alone);
        assert_eq!(by_a(&mut reader, &shape).await, alone);
        assert_eq!(look_up(&mut reader, &shape, 1).await, (Some(is(1, 10, "old", None)), true));
        reader.insert(&shape, &row(1, 10, "newest")).await.expect("the key is free");
        let again = [old.clone(), is(1, 10, "newest", None), other.clone()];
        assert_eq!(by_a(&mut reader, &shape).await, again);

        reader.roll_back_to(&inner).await.expect("undone");
        assert_eq!(by_a(&mut reader, &shape).await, by_index);
        reader.roll_back_to(&mark).await.expect("undone");
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, before, "as if nothing had been");
        assert_eq!(by_a(&mut reader, &shape).await, before);
        assert_eq!(look_up(&mut reader, &shape, 1).await, (Some(is(1, 10, "old", None)), false));

        reader.insert(&shape, &row(1, 7, "kept")).await.expect("the key is free");
        commit(&mut reader).await;
        begin(&mut reader).await;
        let kept = [is(1, 7, "kept", None), other];
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, kept);
        assert_eq!(by_a(&mut reader, &shape).await, kept);
        reader.roll_back().await.expect("ended");
        drop((writer, reader));
        db.close().await.expect("closed");
    });
}

#[test]
fn a_statement_does_not_see_the_row_that_it_puts_there() {
    // TXN-2: an older view of the same transaction sees the old row alone.
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        let shape = deleted_beside(&mut writer, &mut reader, "old").await;
        let before = view(&mut reader).await;
        reader.insert(&shape, &row(1, 10, "new")).await.expect("the key is free");
        let between = view(&mut reader).await;
        update(&mut reader, &shape, &row(1, 10, "new"), &row(1, 11, "newer")).await;
        let mut read = Vec::new();
        for view in [before, between] {
            let mut scan = reader.scan(&shape, KeyRange::prefix(&key(&shape, 1)), Direction::Forward, &view);
            while let Some(found) = reader.next(&mut scan).await.expect("rows") {
                read.push(seen(&found.row, None));
            }
        }
        assert_eq!(read, [is(1, 10, "old", None), is(1, 10, "old", None), is(1, 10, "new", None)]);
        // A view of what is committed now: the deleted row is gone in it.
        let latest = View { read_lsn: db.transactions().visible_lsn(), ..reader.renew_view(&between) };
        let found = reader.get(&shape, &latest, &key(&shape, 1)).await.expect("a read").map(|row| seen(&row, None));
        assert_eq!((found, reader.found_shown()), (Some(is(1, 11, "newer", None)), false));
        reader.roll_back().await.expect("ended");
        drop((writer, reader));
        db.close().await.expect("closed");
    });
}

#[test]
fn a_row_that_was_moved_away_is_told_from_one_that_was_deleted() {
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        let shape = deleted_beside(&mut writer, &mut reader, "x").await;
        writer.begin(TxnOptions::default());
        update(&mut writer, &shape, &row(2, 20, "x"), &row(3, 20, "x")).await;
        commit(&mut writer).await;
        for id in [1, 2] {
            reader.insert(&shape, &row(id, id, "new")).await.expect("the key is free");
        }
        let moved = Some(ShownEnd::Updated);
        let all = [is(1, 10, "x", DELETED), is(1, 1, "new", None), is(2, 20, "x", moved), is(2, 2, "new", None)];
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, all);
        reader.roll_back().await.expect("ended");
        drop((writer, reader));
        db.close().await.expect("closed");
    });
}

#[test]
fn large_values_and_spilled_undo_keep_both_rows() {
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    let (old, new) = ("old ".repeat(20_000), "new ".repeat(30_000));
    run(async {
        let shape = deleted_beside(&mut writer, &mut reader, &old).await;
        reader.insert(&shape, &row(1, 1, &new)).await.expect("the key is free");
        let spilled = || db.transactions().book().spill_file().map_or(0, |file| file.written_bytes());
        db.transactions().book().set_budget(512 << 10);
        // Undo of the transaction's own, behind that of row 1.
        let before = spilled();
        for id in 100..8_000 {
            reader.insert(&shape, &row(id, id, "some bytes")).await.expect("inserted");
        }
        assert!(spilled() > before + (512 << 10), "{} bytes were spilled", spilled() - before);
        // Others change the rows beside it meanwhile, and what no snapshot needs is pruned.
        for n in 0..200 {
            writer.begin(TxnOptions::default());
            let of = |n: i64| row(2, -1 - n, &old[..8]);
            let was = if n == 0 { row(2, 20, &old) } else { of(n - 1) };
            update(&mut writer, &shape, &was, &of(n)).await;
            commit(&mut writer).await;
        }
        let first = |mut all: Vec<Seen>| {
            all.truncate(3);
            all
        };
        let both = |own: Seen| [is(1, 10, &old, DELETED), own, is(2, 20, &old, None)];
        let found = first(walk(&mut reader, &shape, Direction::Forward).await);
        assert!(
            found == both(is(1, 1, &new, None)),
            "{:?}",
            found.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>()
        );
        assert_eq!(look_up(&mut reader, &shape, 1).await, (Some(is(1, 1, &new, None)), true));
        // The record that says so is in the spill file when the row is changed.
        update(&mut reader, &shape, &row(1, 1, &new), &row(1, 2, "small")).await;
        let found = first(walk(&mut reader, &shape, Direction::Forward).await);
        assert!(found == both(is(1, 2, "small", None)));
        let found = first(by_a(&mut reader, &shape).await);
        assert!(found == [is(1, 2, "small", None), is(1, 10, &old, DELETED), is(2, 20, &old, None)]);
        reader.roll_back().await.expect("ended");
        assert_eq!(read_a(&mut writer, &shape, 1).await, None);
        drop((writer, reader));
        db.close().await.expect("closed");
    });
}

#[test]
fn who_expects_one_row_at_a_key_does_not_get_two() {
    // TXN-7
    let db = open(&memory());
    let (mut writer, mut reader, mut plain) =
        (db.session(1, DATABASE), db.session(2, DATABASE), db.session(3, DATABASE));
    run(async {
        let shape = create(&mut writer, true, false).await;
        writer.begin(TxnOptions::default());
        writer.insert(&shape, &row(1, 10, "old")).await.expect("inserted");
        commit(&mut writer).await;
        begin(&mut plain).await;
        writer.begin(TxnOptions::default());
        delete(&mut writer, &shape, &row(1, 10, "old")).await;
        commit(&mut writer).await;
        let refused = plain.insert(&shape, &row(1, 11, "new")).await;
        assert!(matches!(refused, Err(EngineError::Txn(TxnError::ConcurrentDelete))), "{refused:?}");
        plain.roll_back().await.expect("ended");
        // Read committed: each statement has its own snapshot.
        reader.expect_two_rows();
        reader.begin(TxnOptions::default());
        reader.insert(&shape, &row(1, 11, "new")).await.expect("the key is free");
        assert_eq!(walk(&mut reader, &shape, Direction::Forward).await, [is(1, 11, "new", None)]);
        reader.roll_back().await.expect("ended");
        drop((writer, reader, plain));
        db.close().await.expect("closed");
    });
}

#[test]
fn rows_by_an_index_in_another_order_are_the_same_rows() {
    // TAB-4
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        const ROWS: i64 = 4_001;
        let a = |id: i64| id * 1_999 % ROWS;
        let shape = create(&mut writer, true, true).await;
        writer.begin(TxnOptions::default());
        for id in 0..ROWS {
            writer.insert(&shape, &row(id, a(id), "x")).await.expect("inserted");
        }
        commit(&mut writer).await;
        reader.expect_two_rows();
        begin(&mut reader).await;
        writer.begin(TxnOptions::default());
        for id in (0..ROWS).step_by(7) {
            delete(&mut writer, &shape, &row(id, a(id), "x")).await;
        }
        commit(&mut writer).await;
        // Two rows at a key, with one value of `a` and with two.
        for id in (0..ROWS).step_by(14) {
            let other = if id % 4 == 0 { a(id) } else { 10_000 + id };
            reader.insert(&shape, &row(id, other, "own")).await.expect("the key is free");
        }
        let (ordered, mut other) = (by_a(&mut reader, &shape).await, by_index(&mut reader, &shape, true).await);
        let (leaves, together) = by_leaves(&mut reader, &shape).await;
        assert_eq!(leaves, other, "leaf by leaf");
        assert!(
            together > 0 && together < 2_000,
            "{together} rows: none of a leaf with a row that only the snapshot shows"
        );
        assert_eq!(ordered.len(), 4_001 + 4_001_usize.div_ceil(14));
        assert_ne!(ordered, other, "nothing was put into another order");
        let shown = |found: &[Seen]| found.iter().filter(|row| row.3.is_some()).count();
        assert!(shown(&other) > 200);
        let mut all = ordered;
        all.sort_by(|x, y| (x.0, x.1, &x.2).cmp(&(y.0, y.1, &y.2)));
        other.sort_by(|x, y| (x.0, x.1, &x.2).cmp(&(y.0, y.1, &y.2)));
        assert_eq!(all, other);
    });
}

#[test]
fn rows_looked_up_leaf_by_leaf_are_those_of_the_snapshot() {
    // BTR-22, RDV-1: rows of older versions, ghosts, values in overflow chains.
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        const ROWS: i64 = 6_001;
        let a = |id: i64| id * 2_999 % ROWS;
        let long = "y".repeat(5_000);
        let b = |id: i64| if id % 1_500 == 3 { long.as_str() } else { "x" };
        let shape = create(&mut writer, true, true).await;
        writer.begin(TxnOptions::default());
        for id in 0..ROWS {
            writer.insert(&shape, &row(id, a(id), b(id))).await.expect("inserted");
        }
        commit(&mut writer).await;
        begin(&mut reader).await;
        let before = by_index(&mut reader, &shape, true).await;
        assert_eq!(before.len(), ROWS as usize);
        writer.begin(TxnOptions::default());
        for id in (4_000..ROWS).step_by(13) {
            delete(&mut writer, &shape, &row(id, a(id), b(id))).await;
        }
        for id in (0..2_000).step_by(11) {
            update(&mut writer, &shape, &row(id, a(id), b(id)), &row(id, a(id) + ROWS, "new")).await;
        }
        for id in (0..300).map(|n| n + ROWS) {
            writer.insert(&shape, &row(id, 3 * id, "late")).await.expect("inserted");
        }
        for (what, seen_before) in [("not committed", true), ("committed", true), ("a new snapshot", false)] {
            let (found, together) = by_leaves(&mut reader, &shape).await;
            assert!(together > 3_000, "{what}: {together} rows were read leaf by leaf");
            assert_eq!(found == before, seen_before, "{what}");
            assert_eq!(found, by_index(&mut reader, &shape, true).await, "{what}");
            match what {
                "not committed" => commit(&mut writer).await,
                _ => {
                    commit(&mut reader).await;
                    begin(&mut reader).await;
                }
            }
            if what == "committed" {
                assert!(by_leaves(&mut reader, &shape).await.0.iter().any(|row| row.2 == "late"));
            }
        }
    });
}
