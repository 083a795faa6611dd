//! All transactions of a database: ids, the commit section, the visible LSN, and the upkeep of old versions.
//!
//! # Structure
//! ```text
//! Transactions ── book (versions, snapshots) ── locks (lock table) ── store (log, pages, trees)
//!        └─ commit section (mutex): reserve the commit record, store its LSN as the status, publish visible_lsn
//! ```
//!
//! # Life of a commit
//! credit -> section { reserve, status, visible_lsn } -> fill the record -> release locks with the LSN -> wait until it is durable -> reply.
//! Once the record is reserved the commit can't fail.
//!
//! # Invariants
//! - COM-1: `visible_lsn` only rises, and a snapshot at `visible_lsn` sees every transaction that committed at or below it: statuses are
//!   stored before it is published, inside the section.
//! - COM-2: the code that runs under the section's mutex takes no other mutex and no latch, waits for nothing, allocates and frees nothing,
//!   and touches nothing that the transaction wrote. What it needs is made before it; [`Bare`] checks that in debug builds. A checkpoint
//!   asks under the same mutex, by the same rules, which transactions are still active.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::{Bare, yield_now};
use clearway_storage::ids::Lsn;
use clearway_storage::record::{Record, RecordKind, TxnLog};
use clearway_storage::seams::Purpose;
use clearway_storage::store::Store;
use clearway_storage::wal::Wal;

use crate::error::TxnError;
use crate::lockmgr::{LockManager, Owner};
use crate::mutation::{self, Mutation};
use crate::mvcc::book::VersionBook;
use crate::mvcc::state::TxnState;

/// The least number of commits between two prunings. Pruning reads every session's slot; so with many sessions it runs less often, and a
/// commit's share of its cost stays constant.
const PRUNE_EVERY: u64 = 64;
/// How many kept changes are rechecked between two yields.
const RECHECK_AT_ONCE: usize = 4096;
/// How many sessions' slots one commit pays for.
const READERS_PER_COMMIT: u64 = 4;

/// All transactions of a database directory.
pub struct Transactions {
    store: Arc<Store>,
    book: Arc<VersionBook>,
    locks: Arc<LockManager>,
    commits: AtomicU64,
}

impl Transactions {
    /// Transactions over a store that was opened with `book` as its versions; `visible` is what recovery made visible.
    pub fn new(store: Arc<Store>, book: Arc<VersionBook>, visible: Lsn) -> Transactions {
        book.publish(visible);
        Transactions { store, book, locks: Arc::new(LockManager::new()), commits: AtomicU64::new(0) }
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Versions and snapshots.
    pub fn book(&self) -> &Arc<VersionBook> {
        &self.book
    }

    /// The lock table.
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.locks
    }

    /// Commits at or below this are visible to readers that do not insist on durability.
    #[inline]
    pub fn visible_lsn(&self) -> Lsn {
        self.book.visible_lsn()
    }

    /// Commits at or below this are durable: the snapshot of a read-only statement outside a block. Never above `visible_lsn`.
    pub fn durable_snapshot(&self) -> Lsn {
        self.store.wal().durable_lsn().min(self.visible_lsn())
    }

    /// Versions committed above this LSN are kept, whether or not a snapshot can read them (VER-2).
    fn prunable(&self) -> Lsn {
        if mutation::active(Mutation::PurgeBeforeDurable) { self.visible_lsn() } else { self.durable_snapshot() }
    }

    /// Assigns an id to a transaction, at its first change.
    pub(crate) fn assign(&self, owner: &Arc<Owner>) -> Arc<TxnState> {
        let state = self.book.begin(owner);
        owner.set_txn(state.id());
        state
    }

    /// Commits a transaction. On return its changes are visible and its locks are released. The commit is durable once the log is durable
    /// up to the LSN that is returned.
    ///
    /// # Errors
    /// Only before the record is reserved: no credit was available, or the log is poisoned. The transaction then still runs.
    ///
    /// `publish` is called with the commit LSN before the locks are released, for state that the next holder of a lock may use.
    pub(crate) async fn commit(
        &self,
        txn: &Arc<TxnState>,
        log: &mut TxnLog,
        body: &[u8],
        publish: impl FnOnce(Lsn) + Send,
    ) -> Result<Lsn, TxnError> {
        assert!(log.txn == txn.id(), "TXN-1: the log of {:?} is ended by {:?}", log.txn, txn.id());
        let record =
            Record { kind: RecordKind::Commit, txn: txn.id(), undo_next: log.last_lsn, undo: None, ops: &[], body };
        let bytes = Wal::record_bytes(&record);
        let wal = self.store.wal();
        let mut credit = wal.credit(Purpose::System, bytes).await?;
        let superseded = Some(txn.take_superseded()).filter(|chains| !chains.is_empty());
        let superseded = superseded.map(|chains| self.store.chains_superseded(&chains));
        Wal::make_room(bytes);
        // COM-1, COM-2
        let reservation = {
            let _section = self.book.section().lock();
            let _bare = Bare::begin("the commit section");
            let reservation = wal.reserve(&mut credit, bytes);
            // TXN-5: before a checkpoint can find the transaction no longer active.
            if let Some(chains) = &superseded {
                chains.committed(reservation.range().end);
            }
            txn.committed(reservation.range().end);
            self.book.publish(reservation.range().end);
            reservation
        };
        let lsn = wal.fill(reservation, &record).end;
        drop(credit);
        self.book.end(txn.id());
        wal.release_undo(log);
        publish(lsn);
        let handed = if mutation::active(Mutation::LockWithoutLsn) { Lsn::ZERO } else { lsn };
        self.locks.release_early(txn.owner(), handed);
        self.book.retire(txn, lsn);
        self.upkeep();
        Ok(lsn)
    }

    /// Freed pages wait until every snapshot is above the record that freed them (SPC-4), and snapshots are as old as the last commit. If
    /// no transaction commits, because there is no page for what is to be committed, snapshots must get above that record all the same.
    fn pass_freed_pages(&self) {
        if self.store.space().withheld_since().is_none_or(|freed| freed <= self.visible_lsn()) {
            return;
        }
        let wal = self.store.wal();
        let end = {
            let _section = self.book.section().lock();
            let _bare = Bare::begin("the commit section, for freed pages"); // COM-2
            // COM-1: no commit is between its record and its status now, so every commit below the end of the log is visible.
            let end = wal.end_lsn();
            self.book.publish(end);
            end
        };
        wal.flush_later(end);
    }

    /// Prunes old versions after every so many commits, unless another thread is pruning.
    fn upkeep(&self) {
        let every = PRUNE_EVERY.max(self.book.snapshots().readers() / READERS_PER_COMMIT);
        if self.commits.fetch_add(1, Ordering::Relaxed) % every == 0
            && let Some(turn) = self.book.try_prune_turn()
        {
            self.book.prune(&turn, self.prunable());
        }
    }

    /// One step of background upkeep: frees old versions, keeps undo within its memory, and takes settled ghosts out of their trees.
    /// Returns how much it did.
    ///
    /// # Errors
    /// From the trees and the spill file.
    pub async fn upkeep_step(&self) -> Result<usize, TxnError> {
        let mut done = {
            let turn = self.book.prune_turn();
            self.book.prune(&turn, self.prunable())
        };
        self.pass_freed_pages();
        if self.book.has_moved() {
            let mut left = self.book.held();
            while left > 0 {
                let step = left.min(RECHECK_AT_ONCE);
                done += {
                    let turn = self.book.prune_turn();
                    self.book.recheck_kept(&turn, step)
                };
                left -= step;
                yield_now().await;
            }
        }
        let (freed, spilled) = self.book.tend().await?;
        done += freed + spilled;
        Ok(done + self.purge().await?)
    }
}
