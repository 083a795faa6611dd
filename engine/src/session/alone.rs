//! Reads that are transactions of their own: no transaction is begun for them, and the lock of their table is not taken.
//!
//! # Life of a read
//! `open_alone` opens a snapshot and looks at the table -> rows are copied (`find_now`, `few_now`) -> `close_alone` looks at the table again and closes
//! the snapshot. Or `confirm_alone` looks at the table again, the snapshot stays open, and either `end_alone` closes it, or a transaction goes on from
//! it (`go_on_from`), in which later statements read at the same snapshot.
//!
//! # Invariants
//! - ALN-1: what was read counts only if no session held or wanted a strong mode of the table's lock and the catalog was the plan's, both when the
//!   snapshot was open and nothing was read yet, and when everything was read. Then it is what a transaction would have read that had the lock in
//!   between. A strong mode that another transaction took and gave back in the meantime leaves a new version of the catalog behind, which is
//!   published before the lock goes; or its transaction has changed rows alone, or nothing, and the snapshot shows no change that was not committed.
//!   What a dropped table has of space is not freed while the snapshot is open.
//! - ALN-2: it reads at the durable LSN (SES-3): it changes nothing, and no other statement shares its snapshot, under whatever isolation,
//!   but those of the read-only transaction that goes on from it (ALN-4), which SES-3 lets read there as well.
//! - ALN-3: it is counted as a committed transaction of the database, with what it has looked up.
//! - ALN-4: a transaction that goes on from such a read keeps its snapshot, which is never closed in between, takes the table's lock without waiting, and
//!   then looks at the table once more. Where it is undisturbed, all is as if the transaction had had the lock since before the first read (ALN-1).
//!   Otherwise what was read before does not count: the transaction is of no use, and its caller begins anew.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use clearway_txn::lockmgr::{LockMode, LockTag};
use clearway_txn::mvcc::book::View;

use super::{Ended, Isolation, Session, Statement, TxnOptions};

impl Session {
    /// Opens a statement that reads one table, by a plan of this version of the catalog. `relaxed`: see [`Session::set_relaxed`]. None: it has to be
    /// a transaction, and nothing is open.
    ///
    /// # Panics
    /// If a transaction is open.
    pub fn open_alone(&mut self, table: &LockTag, version: u64, relaxed: bool, now_ns: u64) -> Option<Statement> {
        assert!(self.txn.is_none(), "ALN-2: a statement of a transaction does not read alone");
        self.relaxed = relaxed;
        let snapshot = self.snapshot(true, now_ns);
        let view = View { read_lsn: snapshot.read_lsn, ..View::default() };
        let statement = Statement { view, snapshot: Some(snapshot) };
        if self.is_undisturbed(table, version) {
            return Some(statement);
        }
        self.close_statement(statement);
        None
    }

    /// Closes it. False: what it has read is of no use (ALN-1).
    pub fn close_alone(&mut self, statement: Statement, table: &LockTag, version: u64) -> bool {
        // The rows were read before the table is looked at.
        fence(Ordering::Acquire);
        let sound = self.is_undisturbed(table, version);
        self.close_statement(statement);
        if sound {
            self.tell_use(Ended::Committed); // ALN-3
        }
        sound
    }

    /// Whether what was read up to now counts (ALN-1); the statement stays open.
    pub fn confirm_alone(&self, table: &LockTag, version: u64) -> bool {
        // The rows were read before the table is looked at.
        fence(Ordering::Acquire);
        self.is_undisturbed(table, version)
    }

    /// Closes a statement whose last read was confirmed.
    pub fn end_alone(&mut self, statement: Statement) {
        self.close_statement(statement);
        self.tell_use(Ended::Committed); // ALN-3
    }

    /// Begins a read-only transaction under repeatable read that goes on at the snapshot of a statement that has read alone. False: it is of no use (ALN-4), and
    /// the caller rolls it back.
    ///
    /// # Panics
    /// If a transaction is open.
    pub fn go_on_from(
        &mut self,
        alone: Statement,
        (text, table, version): (&Arc<str>, &LockTag, u64),
        now_ns: u64,
    ) -> bool {
        self.begin_at(TxnOptions { isolation: Isolation::RepeatableRead, read_only: true }, now_ns);
        self.kept = alone.snapshot;
        self.queried = true;
        let over_shown = self.two_rows;
        self.txn().set_snapshot(alone.view.read_lsn, over_shown);
        self.begin_short(text, table, LockMode::AccessShare, now_ns) && self.is_undisturbed(table, version)
    }

    /// The lock is looked at first: where a strong mode was given back before, the version that its transaction has published is seen.
    fn is_undisturbed(&self, table: &LockTag, version: u64) -> bool {
        !self.db.transactions().locks().has_strong(table) && self.sees_catalog(version)
    }
}
