//! An in-memory table of rows with tags: newest version in place, older committed ones behind it, row lock = the tag.
//!
//! Invariants
//! - ROW-1 A tag whose slot is 0 (in progress) is the row's write lock. Nobody but its transaction changes the value.
//! - ROW-2 A waiter enters the queue under the row's latch, marks the holder's slot, then looks at that slot again;
//!   the holder stores its commit LSN, then looks at the mark. One of the two sees the other and grants.
//! - ROW-3 `grant_next` gives the row to exactly one waiter, first come first served, with the LSN it inherits.
//! - ROW-4 History keeps every version above `durable` and the first at or below it. Readers choose their snapshot
//!   under the row's latch, so that none is pruned under them (one-row statements only: a spike's shortcut).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::task::Poll;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::log::Log;
use crate::sched;

/// A transaction as other transactions see it: 0 while in progress, then its commit LSN.
#[derive(Default)]
pub struct Slot {
    pub commit_lsn: AtomicU64,
    waited_for: AtomicBool,
}

struct Waiter {
    slot: Arc<Slot>,
    granted: AtomicBool,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Row {
    value: i64,
    tag: Option<Arc<Slot>>,
    history: VecDeque<(u64, i64)>,
    queue: VecDeque<Arc<Waiter>>,
}

impl Row {
    fn locked(&self) -> bool {
        self.tag.as_ref().is_some_and(|slot| slot.commit_lsn.load(SeqCst) == 0)
    }

    /// Takes the lock for `slot`; returns the LSN that it inherits.
    fn take(&mut self, slot: &Arc<Slot>, durable: u64) -> u64 {
        let before = self.tag.as_ref().map_or(0, |s| s.commit_lsn.load(SeqCst));
        while self.history.len() > 1 && self.history[1].0 <= durable {
            self.history.pop_front(); // ROW-4
        }
        self.history.push_back((before, self.value));
        self.tag = Some(slot.clone());
        before
    }
}

pub struct Table {
    rows: Vec<Mutex<Row>>,
    log: Arc<Log>,
}

/// One transaction's hold on the table: what it wrote, and the highest commit LSN it saw.
#[derive(Default)]
pub struct Txn {
    pub slot: Arc<Slot>,
    pub writes: Vec<(usize, i64)>,
    pub dep_lsn: u64,
}

impl Table {
    pub fn new(rows: usize, log: Arc<Log>) -> Table {
        Table { rows: (0..rows + 1).map(|_| Mutex::new(Row::default())).collect(), log }
    }

    pub fn rows(&self) -> usize {
        self.rows.len() - 1
    }

    /// `SELECT v WHERE id = key` at max(durable, the session's own last commit): value and the LSN it depends on.
    pub fn read(&self, key: usize, own_last_commit: u64) -> (i64, u64) {
        let row = self.rows[key].lock();
        let snapshot = self.log.durable().max(own_last_commit);
        let newest = row.tag.as_ref().map_or(0, |s| s.commit_lsn.load(SeqCst));
        if !row.locked() && newest <= snapshot {
            return (row.value, newest);
        }
        let version = row.history.iter().rev().find(|(lsn, _)| *lsn <= snapshot);
        version.map(|(lsn, value)| (*value, *lsn)).expect("ROW-4")
    }

    /// `UPDATE SET v = v + 1 WHERE id = key`.
    pub async fn increment(&self, key: usize, txn: &mut Txn) {
        self.lock(key, txn).await;
        let mut row = self.rows[key].lock();
        let before = row.value;
        row.value += 1;
        let id = Arc::as_ptr(&txn.slot) as u64;
        // What a record of the real log holds: transaction, tree, key, tag, before- and after-image of a 40-byte row.
        let image = [before as u64, 1, 2, 3, 4];
        let mut record = [0u64; 15];
        record[..5].copy_from_slice(&[1, id, 7, key as u64, txn.dep_lsn]);
        record[5..10].copy_from_slice(&image);
        record[10..15].copy_from_slice(&image);
        record[10] = row.value as u64;
        self.log.append(&record); // under the latch, as a page change is
        drop(row);
        txn.writes.push((key, before));
    }

    async fn lock(&self, key: usize, txn: &mut Txn) {
        let waiter = {
            let mut row = self.rows[key].lock();
            if row.tag.as_ref().is_some_and(|tag| Arc::ptr_eq(tag, &txn.slot)) {
                return;
            }
            if !row.locked() && row.queue.is_empty() {
                txn.dep_lsn = txn.dep_lsn.max(row.take(&txn.slot, self.log.durable()));
                return;
            }
            let waiter =
                Arc::new(Waiter { slot: txn.slot.clone(), granted: AtomicBool::new(false), waker: AtomicWaker::new() });
            row.queue.push_back(waiter.clone());
            if let Some(holder) = &row.tag {
                holder.waited_for.store(true, SeqCst); // ROW-2
            }
            self.grant_next(&mut row);
            waiter
        };
        poll_fn(|cx| {
            waiter.waker.register(cx.waker());
            if waiter.granted.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let inherited = self.rows[key].lock().history.back().map_or(0, |(lsn, _)| *lsn);
        txn.dep_lsn = txn.dep_lsn.max(inherited); // the lock comes with its LSN
    }

    /// ROW-3. Does nothing while the row is locked.
    fn grant_next(&self, row: &mut Row) {
        if row.locked() {
            return;
        }
        if let Some(next) = row.queue.pop_front() {
            row.take(&next.slot, self.log.durable());
            if !row.queue.is_empty() {
                next.slot.waited_for.store(true, SeqCst);
            }
            next.granted.store(true, SeqCst);
            sched::urgently(|| next.waker.wake());
        }
    }

    /// Commit section, early lock release, hand-over. Returns the commit LSN.
    pub fn commit(&self, txn: &mut Txn) -> u64 {
        let record = [2, Arc::as_ptr(&txn.slot) as u64, txn.dep_lsn, 0, 0];
        let commit_lsn = self.log.commit(&record, &txn.slot.commit_lsn);
        self.release(txn);
        commit_lsn
    }

    fn release(&self, txn: &Txn) {
        if txn.slot.waited_for.load(SeqCst) {
            for (key, _) in &txn.writes {
                self.grant_next(&mut self.rows[*key].lock());
            }
        }
    }

    /// Undo, newest first, then release; the commit LSN stored is that of the version put back.
    pub fn rollback(&self, txn: &mut Txn) {
        for (key, before) in txn.writes.iter().rev() {
            self.rows[*key].lock().value = *before;
        }
        txn.slot.commit_lsn.store(txn.dep_lsn.max(1), SeqCst);
        self.release(txn);
    }
}
