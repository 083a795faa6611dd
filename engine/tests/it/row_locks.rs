//! Row locks in the lock table, and their effect on the other rows of the same leaf.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use clearway_engine::catalog::Oid;
use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Session, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, row, run};

async fn update(session: &mut Session, shape: &TableShape, id: i64, a: i64) -> Changed {
    let (key, old, new) = (key(shape, id), row(id, 0, "x"), row(id, a, "x"));
    session.update(shape, &key, &old, &new, Basis::Locked).await.expect("updated")
}

async fn lock(session: &mut Session, shape: &TableShape, id: i64) -> Result<(), EngineError> {
    let mode = LockMode::RowUpdate;
    session.lock_row(shape, &key(shape, id), mode, IfTaken::Fail).await.map(|row| assert!(row.is_some()))
}

/// TXN-3: the leaf has the hint "has memory locks" and both rows; only the row that the lock table has is asked for there.
#[test]
fn a_change_beside_a_locked_row_makes_no_entry_in_the_lock_table() {
    let db = open(&memory());
    run(async {
        let (mut holder, mut writer, mut third) =
            (db.session(1, DATABASE), db.session(2, DATABASE), db.session(3, DATABASE));
        let shape = create(&mut holder, true, false).await;
        holder.begin(TxnOptions::default());
        for id in 1..=3 {
            holder.insert(&shape, &row(id, 0, "x")).await.expect("inserted");
        }
        holder.commit(Durability::Wait).await.expect("committed");
        let all = [&mut holder, &mut writer, &mut third];
        all.into_iter().for_each(|session| session.begin(TxnOptions::default()));
        lock(&mut holder, &shape, 1).await.expect("locked");
        assert_eq!(update(&mut writer, &shape, 2, 7).await, Changed::Done);
        let known = |id| db.transactions().locks().knows_row(shape.tree, &key(&shape, id));
        assert!(known(1) && !known(2) && !known(3));
        // The tag of the changed row keeps others away as a lock would, and so does the lock beside it.
        for id in [1, 2] {
            let refused = lock(&mut third, &shape, id).await;
            assert!(matches!(refused, Err(EngineError::Txn(TxnError::LockNotAvailable))), "{id}: {refused:?}");
        }
        lock(&mut third, &shape, 3).await.expect("nobody has it");
        writer.commit(Durability::Wait).await.expect("committed");
        lock(&mut third, &shape, 2).await.expect("free again");
        // A lock of its own stays as strong as it was when the row is changed.
        assert_eq!(update(&mut holder, &shape, 1, 8).await, Changed::Done);
        assert!(known(1));
        holder.commit(Durability::Wait).await.expect("committed");
        third.roll_back().await.expect("ended");
        assert!(!known(1) && !known(2) && !known(3));
        drop((holder, writer, third));
        db.close().await.expect("closed");
    });
}

/// What a search for the row in the way of one with this id tells at once; none: it waits.
async fn in_the_way(session: &mut Session, shape: &TableShape, id: i64, locks: bool) -> Option<bool> {
    let wanted = row(id, 0, "new");
    let mut search = pin!(session.conflicting(shape, (&[], locks), &wanted));
    match search.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => Some(found.expect("no deadlock").is_some()),
        Poll::Pending => None,
    }
}

/// TAB-5: a search that ends with a lock waits for no transaction that has replaced the row, and for one that deletes it or has put it there.
#[test]
fn a_search_for_a_row_to_lock_does_not_wait_for_a_transaction_that_replaces_it() {
    let db = open(&memory());
    run(async {
        let (mut writer, mut other) = (db.session(1, DATABASE), db.session(2, DATABASE));
        let mut shape = TableShape::clone(&*create(&mut writer, true, false).await);
        shape.primary = Some((Oid::default(), "t_pkey".to_owned()));
        writer.begin(TxnOptions::default());
        writer.insert(&shape, &row(1, 0, "x")).await.expect("inserted");
        writer.commit(Durability::Wait).await.expect("committed");
        [&mut writer, &mut other].into_iter().for_each(|session| session.begin(TxnOptions::default()));
        assert_eq!(in_the_way(&mut other, &shape, 1, true).await, Some(true), "it stands");
        assert_eq!(update(&mut writer, &shape, 1, 7).await, Changed::Done);
        assert_eq!(in_the_way(&mut other, &shape, 1, true).await, Some(true), "TAB-5");
        assert_eq!(in_the_way(&mut other, &shape, 1, false).await, None, "a search without a lock waits");
        writer.insert(&shape, &row(2, 0, "x")).await.expect("inserted");
        assert_eq!(in_the_way(&mut other, &shape, 2, true).await, None, "it may come to nothing");
        let (at, old) = (key(&shape, 1), row(1, 7, "x"));
        assert_eq!(writer.delete(&shape, &at, &old, Basis::Locked).await.expect("deleted"), Changed::Done);
        assert_eq!(in_the_way(&mut other, &shape, 1, true).await, None, "it may come back");
        writer.commit(Durability::Wait).await.expect("committed");
        assert_eq!(in_the_way(&mut other, &shape, 1, true).await, Some(false), "it has gone");
        other.roll_back().await.expect("ended");
        drop((writer, other));
        db.close().await.expect("closed");
    });
}
