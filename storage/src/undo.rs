//! Undoing: one change at a time, logged, for statements, savepoints, transactions and recovery alike.
//!
//! # Invariants
//! - REC-9: undoing a change appends a compensation record that names the next record to undo, in the same step that
//!   changes the page. So no change is undone twice, even with a crash in between.

use crate::btree;
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::record::{LsnRange, Record, RecordKind, TxnLog, UndoEntry};
use crate::recovery::Loser;
use crate::seams::Purpose;
use crate::space::DIRECTORY_TREE;
use crate::store::Store;
use crate::wal::Wal;

/// Undoes one change: finds its row by tree and key and puts back what was there. The entry must be the one that
/// `log.last_lsn` names.
///
/// # Errors
/// Poisoned, a failed read. The change then stands as it was.
pub async fn undo_one(store: &Store, log: &mut TxnLog, entry: &UndoEntry) -> Result<LsnRange, StorageError> {
    assert!(log.last_lsn == entry.lsn, "REC-9: {} is not the next to undo, {} is", entry.lsn, log.last_lsn);
    let range = if entry.tree == DIRECTORY_TREE {
        let range = store.space().undo_create(log, entry).await?;
        store.drops_changed();
        range
    } else if entry.tree == btree::CHAIN_PAGES {
        btree::compensate_chain(store.pool(), log, entry).await?
    } else {
        store.tree(entry.tree).compensate(log, entry).await?
    };
    assert!(
        log.last_lsn == entry.undo_next,
        "REC-9: after {} {} is next, not {}",
        entry.lsn,
        entry.undo_next,
        log.last_lsn
    );
    assert!(entry.undo_next < entry.lsn, "REC-9: the undo of {} goes on at {}", entry.lsn, entry.undo_next);
    Ok(range)
}

/// Undoes everything of a transaction and ends it.
///
/// # Errors
/// As [`undo_one`]; what was undone by then stays undone.
pub async fn undo_all(store: &Store, loser: &mut Loser) -> Result<(), StorageError> {
    while let Some(entry) = loser.entries.last() {
        undo_one(store, &mut loser.log, entry).await?;
        loser.entries.pop();
    }
    end_abort(store.wal(), &mut loser.log).await
}

/// Says in the log that a transaction has undone all it did, and gives back what was set aside for it.
///
/// # Errors
/// Poisoned.
pub async fn end_abort(wal: &Wal, log: &mut TxnLog) -> Result<(), StorageError> {
    assert!(log.last_lsn == Lsn::ZERO, "REC-9: {} is still to be undone", log.last_lsn);
    let record =
        Record { kind: RecordKind::AbortEnd, txn: log.txn, undo_next: Lsn::ZERO, undo: None, ops: &[], body: &[] };
    let mut credit = wal.credit(Purpose::System, Wal::record_bytes(&record)).await?;
    wal.append(&mut credit, &record);
    wal.release_undo(log);
    Ok(())
}
