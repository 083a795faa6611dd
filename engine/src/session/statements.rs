//! The statements of a session and their snapshots.

use std::sync::Arc;

use clearway_base::waits;
use clearway_storage::ids::Lsn;
use clearway_txn::lockmgr::{LockMode, LockTag};
use clearway_txn::mvcc::book::View;
use clearway_txn::mvcc::snapshots::Snapshot;
use clearway_txn::transaction::Transaction;

use crate::catalog::Oid;
use crate::catalog::object::ROWS_MOVE;

use super::{Ended, Isolation, Session, Statement, StatementMode};

impl Session {
    /// A statement needs a snapshot: from then on the transaction's isolation does not change. Under repeatable read this takes the snapshot of
    /// the whole transaction, unless the transaction has it. PostgreSQL takes it before the first statement's table locks: what is committed
    /// while that statement waits for one is not seen.
    pub fn keep_snapshot(&mut self, mode: StatementMode) {
        if self.txn.is_none() {
            return;
        }
        self.queried = true;
        if self.options.isolation != Isolation::RepeatableRead || self.kept.is_some() {
            return;
        }
        let kept = self.snapshot(mode == StatementMode::ReadOnly && self.options.read_only, waits::now_ns());
        self.kept = Some(kept);
        let over_shown = self.two_rows;
        self.txn().set_snapshot(kept.read_lsn, over_shown);
    }

    /// A snapshot at this moment; with `durable`, of what is durable, unless the session is relaxed (SES-3).
    pub(super) fn snapshot(&mut self, durable: bool, now_ns: u64) -> Snapshot {
        let dep_lsn = self.dep_lsn();
        let all = self.db.transactions();
        // SES-3: the snapshot must also include the commits on which a granted lock depends.
        let last = self.last_commit.max(dep_lsn).min(all.visible_lsn());
        let durable = durable && !self.relaxed;
        let snapshot =
            self.reader.begin_at(now_ns, || if durable { all.durable_snapshot().max(last) } else { all.visible_lsn() });
        // RST-1
        all.store().rest().end();
        snapshot
    }

    /// Opens a statement; locks and deadlock reports show its text.
    pub fn open_statement(&mut self, text: &Arc<str>, mode: StatementMode) -> Statement {
        self.owner.statement(text);
        let statement = self.open_short(mode, waits::now_ns());
        self.owner.statement_opens(statement.view.mark);
        statement
    }

    /// Whether the transaction keeps a snapshot that is older than the rows of a table, where these stand now (DB-3).
    pub fn is_older_than_rows(&mut self, table: Oid) -> bool {
        let Some(read_lsn) = self.kept.as_ref().map(|kept| kept.read_lsn) else { return false };
        let from = self.catalog().relation(table).map_or(0, |relation| relation.rows_from_lsn);
        from != ROWS_MOVE && from > read_lsn.0
    }

    /// Begins a statement of a fast path at this moment of the clock of wait events, and takes a weak mode of its only table's lock. False: the
    /// lock is not taken, and [`Session::lock`] has to.
    pub fn begin_short(&mut self, text: &Arc<str>, tag: &LockTag, mode: LockMode, now_ns: u64) -> bool {
        let changes = self.txn.as_ref().map_or(0, |txn| txn.view(Lsn::ZERO).mark);
        self.db.transactions().locks().begin_weak(&self.owner, (text, changes), tag, mode, now_ns)
    }

    /// Opens the statement that [`Session::begin_short`] has begun.
    pub fn open_short(&mut self, mode: StatementMode, now_ns: u64) -> Statement {
        assert!(self.half.is_none(), "HLF-1: half a change is undone before the next statement");
        self.keep_snapshot(mode);
        let (read_lsn, snapshot) = match self.kept {
            Some(kept) => (kept.read_lsn, None),
            None => {
                let snapshot = self.snapshot(mode == StatementMode::ReadOnly, now_ns);
                (snapshot.read_lsn, Some(snapshot))
            }
        };
        let view = match &self.txn {
            Some(txn) => txn.view(read_lsn),
            None => View { read_lsn, ..View::default() },
        };
        self.queried = true;
        Statement { view, snapshot }
    }

    /// Opens a statement that reads what is committed now, whatever the transaction's isolation: what DDL checks and rewrites.
    pub fn open_latest(&mut self, text: &Arc<str>) -> Statement {
        self.owner.statement(text);
        let snapshot = self.snapshot(false, waits::now_ns());
        let view = match &self.txn {
            Some(txn) => txn.view(snapshot.read_lsn),
            None => View { read_lsn: snapshot.read_lsn, ..View::default() },
        };
        self.owner.statement_opens(view.mark);
        Statement { view, snapshot: Some(snapshot) }
    }

    /// A snapshot of what is committed now, beside that of the statement that runs.
    pub fn open_newest(&mut self) -> Statement {
        let snapshot = self.snapshot(false, waits::now_ns());
        let read_lsn = snapshot.read_lsn;
        let view = self.txn.as_ref().map_or(View { read_lsn, ..View::default() }, |txn| txn.view(read_lsn));
        Statement { view, snapshot: Some(snapshot) }
    }

    /// Keeps what a view sees beyond the statement that opened it, until the result is closed; a view that no open snapshot protects becomes
    /// one of what is committed now.
    pub fn keep_view(&mut self, view: &View) -> Statement {
        match self.reader.again(view.read_lsn) {
            Some(snapshot) => Statement { view: *view, snapshot: Some(snapshot) },
            None => self.open_newest(),
        }
    }

    /// A new view for a command that runs inside another statement's view but must see the changes that this statement has made so far (a later
    /// command of a rule, a check of a foreign key).
    pub fn renew_view(&mut self, view: &View) -> View {
        match &self.txn {
            Some(txn) => txn.view(view.read_lsn),
            None => *view,
        }
    }

    /// How many bytes of undo the open transaction has written.
    pub fn undo_bytes(&self) -> u64 {
        self.txn.as_deref().map_or(0, Transaction::undo_bytes)
    }

    /// Closes a statement.
    pub fn close_statement(&mut self, statement: Statement) {
        self.reading.rest();
        if self.used.is_full() {
            self.tell_use(Ended::Not);
        }
        if let Some(snapshot) = statement.snapshot {
            self.reader.end(snapshot);
        }
    }
}
