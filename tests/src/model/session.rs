//! The steps of a session: statements, rollbacks, the commit section and replies.

use super::engine::{Engine, Stepped, Violation};
use super::mutation::Mutation;
use super::program::{Op, body, letter, name, position, seen, sql};
use super::resolve::Spilled;
use super::state::{
    Block, Body, CATALOG, Lock, Lsn, NO_SNAPSHOT, Outcome, Phase, Reply, Resolved, SESSIONS, Scope, Session, Slot,
    TXNS_PER_PROGRAM,
};

impl Engine<'_> {
    /// The operation that a session is at.
    pub fn current_op(&self, index: usize) -> Option<Op> {
        let session = &self.state.sessions[index];
        self.scenario.program(session.program).get(session.op as usize).copied()
    }

    /// The row of the current item.
    pub fn item_row(&self, index: usize) -> u8 {
        let item = self.state.sessions[index].item as usize;
        match self.current_op(index) {
            Some(Op::Select(rows)) => rows[item],
            Some(Op::Write(items)) => items[item].0,
            other => unreachable!("{other:?} has no items"),
        }
    }

    fn session(&mut self, index: usize) -> &mut Session {
        &mut self.state.sessions[index]
    }

    /// A session takes its next step.
    pub fn step_session(&mut self, index: usize) -> Stepped {
        if !self.is_open() {
            return Ok(false);
        }
        match self.state.sessions[index].phase {
            Phase::Done => return Ok(false),
            Phase::Ready => return self.start_op(index),
            Phase::SnapshotLoaded(lsn) => {
                self.session(index).snapshot = lsn;
                self.session(index).phase = Phase::SnapshotStored(lsn);
                self.note(|| format!("{} stores its snapshot, {}", letter(index), position(lsn)));
            }
            Phase::SnapshotStored(lsn) => self.recheck_snapshot(index, lsn)?,
            Phase::AtItem => self.at_item(index)?,
            Phase::Copied(copy) => match self.resolve(index, copy) {
                Ok(resolved) => {
                    self.session(index).phase = Phase::Resolved(resolved);
                    self.note(|| format!("{} resolves the tag of its copy", letter(index)));
                }
                Err(Spilled(addr)) => {
                    self.leave_epoch(index);
                    self.session(index).phase = Phase::Loading(copy, addr);
                    self.note(|| format!("{} must wait for undo record {addr} in the spill file", letter(index)));
                }
            },
            Phase::Loading(copy, addr) => self.loaded(index, copy, addr),
            Phase::Resolved(resolved) => self.validate(index, resolved)?,
            Phase::WaitFor(txn) => {
                if !self.has_ended(txn) {
                    return Ok(false);
                }
                self.session(index).phase = Phase::AtItem;
                self.note(|| format!("{} has waited for the row's writer", letter(index)));
            }
            Phase::Undo { down_to, scope } => self.step_rollback(index, down_to, scope),
            Phase::Reserved => {
                let Session { txn, commit_lsn, .. } = self.state.sessions[index];
                self.state.slots[txn as usize] = Slot::Committed(commit_lsn);
                self.session(index).phase = Phase::Stored;
                self.note(|| format!("{} stores its commit LSN {commit_lsn} in its slot", letter(index)));
            }
            Phase::Stored => return Ok(self.publish(index)),
            Phase::Reply(reply) => return Ok(self.reply(index, reply)),
        }
        Ok(true)
    }

    fn start_op(&mut self, index: usize) -> Stepped {
        let Some(op) = self.current_op(index) else {
            self.release(index, 1, 0);
            let program = self.state.sessions[index].program;
            *self.session(index) = Session { phase: Phase::Done, ..Session::new(program) };
            self.note(|| format!("{} has finished", letter(index)));
            return Ok(true);
        };
        self.note(|| format!("{}: {}", letter(index), sql(&op)));
        match op {
            Op::Begin | Op::BeginRepeatableRead | Op::BeginReadOnly => {
                self.session(index).block = match op {
                    Op::Begin => Block::ReadCommitted,
                    Op::BeginRepeatableRead => Block::RepeatableRead,
                    _ => Block::ReadOnly,
                };
                self.session(index).op += 1;
                return self.start_op(index);
            }
            Op::Select(_) | Op::Write(_) => self.start_statement(index, matches!(op, Op::Write(_)))?,
            Op::LockTable => return Ok(self.acquire(index, 0)),
            Op::LockAdvisory => return Ok(self.acquire(index, 1)),
            Op::Savepoint => {
                let last_addr = self.state.last_addr;
                let session = self.session(index);
                session.savepoint = last_addr;
                session.writes_at_savepoint = session.writes.len() as u8;
                session.op += 1;
            }
            Op::RollbackToSavepoint => {
                let down_to = self.state.sessions[index].savepoint;
                self.session(index).phase = Phase::Undo { down_to, scope: Scope::Savepoint };
            }
            Op::Commit if self.state.sessions[index].txn != 0 => self.reserve(index),
            Op::Rollback if self.state.sessions[index].txn != 0 => self.start_rollback(index, Scope::Transaction),
            Op::Commit | Op::Rollback => {
                self.release(index, 0, 0);
                self.release(index, 1, 0);
                self.session(index).phase = Phase::Reply(Reply::End);
            }
        }
        Ok(true)
    }

    fn start_statement(&mut self, index: usize, writes: bool) -> Result<(), Violation> {
        let last_addr = self.state.last_addr;
        let fine = self.scenario.bounds.fine_snapshots;
        let session = self.session(index);
        if writes {
            session.mark = last_addr;
            session.writes_at_mark = session.writes.len() as u8;
        }
        let wants_snapshot = !writes || session.block == Block::RepeatableRead;
        if !wants_snapshot || session.snapshot != NO_SNAPSHOT {
            return self.open_statement(index);
        }
        let lsn = self.position_for_snapshot(index);
        if fine {
            self.session(index).phase = Phase::SnapshotLoaded(lsn);
            return Ok(());
        }
        self.session(index).snapshot = lsn;
        self.note(|| format!("{} reads at {}", letter(index), position(lsn)));
        self.open_statement(index)
    }

    /// Read-only statements outside a block and in a READ ONLY one read what is durable, but never less than the session
    /// knows already: its own last commit and the commits of the earlier holders of its locks. All others read what is
    /// visible.
    fn position_for_snapshot(&self, index: usize) -> Lsn {
        let session = &self.state.sessions[index];
        if !matches!(session.block, Block::Auto | Block::ReadOnly) {
            return self.state.visible_lsn;
        }
        let own = if self.without(Mutation::OwnCommitIgnored) { 0 } else { session.own_commit };
        self.state.durable_lsn.max(own).max(session.lock_lsn)
    }

    fn recheck_snapshot(&mut self, index: usize, lsn: Lsn) -> Result<(), Violation> {
        if self.state.horizon > lsn && !self.without(Mutation::SnapshotNotRechecked) {
            let again = self.position_for_snapshot(index);
            let session = self.session(index);
            session.snapshot = NO_SNAPSHOT;
            session.phase = Phase::SnapshotLoaded(again);
            self.note(|| format!("{} finds that the horizon has passed its snapshot: again", letter(index)));
            return Ok(());
        }
        self.note(|| format!("{} reads at {}", letter(index), position(lsn)));
        self.open_statement(index)
    }

    /// The catalog is looked up at the statement's snapshot; one without a snapshot takes what is visible.
    fn open_statement(&mut self, index: usize) -> Result<(), Violation> {
        self.session(index).phase = Phase::AtItem;
        if self.scenario.catalog && self.item_row(index) as usize != CATALOG {
            let snapshot = self.state.sessions[index].snapshot;
            let at = if snapshot == NO_SNAPSHOT { self.state.visible_lsn } else { snapshot };
            let entry = self.state.memory.rows[CATALOG];
            let Ok((found, dep, _)) = self.read_version(index, entry, at) else {
                unreachable!("no scenario spills the catalog's undo")
            };
            let fact = self.fact(CATALOG as u8, at, found.seen());
            self.check_fact(index, fact)?;
            let counted = if self.without(Mutation::NoDepWaitCatalog) { 0 } else { dep };
            let session = self.session(index);
            session.dep = session.dep.max(counted);
            session.facts.push(fact);
            if found.seen().is_none() {
                self.note(|| format!("{} finds no such table in the catalog: unknown relation", letter(index)));
                self.statement_failed(index);
                return Ok(());
            }
        }
        if self.scenario.bounds.fine_rows { Ok(()) } else { self.at_item(index) }
    }

    /// Copies the row. A settled row has no tag to resolve: copying and validating it is one step.
    fn at_item(&mut self, index: usize) -> Result<(), Violation> {
        let row = self.item_row(index);
        let copy = self.state.memory.rows[row as usize];
        let session = self.session(index);
        session.stale = false;
        session.awaited = false;
        if self.scenario.bounds.fine_rows && copy.tag != 0 {
            self.session(index).in_epoch = true;
            self.session(index).phase = Phase::Copied(copy);
            self.note(|| format!("{} copies {}: {} with tag {}", letter(index), name(row), body(copy.body), copy.tag));
            return Ok(());
        }
        match self.resolve(index, copy) {
            Ok(resolved) => self.accept(index, resolved),
            Err(Spilled(addr)) => {
                self.session(index).phase = Phase::Loading(copy, addr);
                self.note(|| format!("{} must wait for undo record {addr} in the spill file", letter(index)));
                Ok(())
            }
        }
    }

    /// The undo record has been read back. The row is started over, since an await lies in between.
    fn loaded(&mut self, index: usize, copy: super::state::Version, addr: u8) {
        for undo in self.state.undo.as_mut_slice().iter_mut().filter(|undo| undo.addr == addr) {
            undo.spilled = false;
        }
        if self.without(Mutation::NoRestartAfterAwait) {
            let session = self.session(index);
            session.awaited = true;
            session.in_epoch = true;
            session.phase = Phase::Copied(copy);
            self.note(|| format!("{} goes on with its copy after the wait", letter(index)));
        } else {
            self.session(index).phase = Phase::AtItem;
            self.note(|| format!("{} starts the row over after the wait", letter(index)));
        }
    }

    fn validate(&mut self, index: usize, resolved: Resolved) -> Result<(), Violation> {
        self.leave_epoch(index);
        let session = self.state.sessions[index];
        let careless = self.without(Mutation::NoPageRevalidation)
            || session.awaited && self.without(Mutation::NoRestartAfterAwait);
        // A write takes the leaf's latch on the version that was copied, so that even the careless validate it.
        if session.stale && !(careless && resolved.outcome != Outcome::Write) {
            self.session(index).phase = Phase::AtItem;
            self.note(|| format!("{} finds that the page has changed: the row again", letter(index)));
            return Ok(());
        }
        self.accept(index, resolved)
    }

    fn accept(&mut self, index: usize, resolved: Resolved) -> Result<(), Violation> {
        let row = self.item_row(index);
        if let Some(fact) = resolved.fact {
            self.note(|| format!("{} takes {} for {}", letter(index), name(row), seen(fact.seen)));
            self.check_fact(index, fact)?;
            self.session(index).facts.push(fact);
        }
        let session = self.session(index);
        session.dep = session.dep.max(resolved.dep);
        session.stale = false;
        session.awaited = false;
        match resolved.outcome {
            Outcome::Wait(txn) => {
                session.phase = Phase::WaitFor(txn);
                self.note(|| format!("{} must wait for the writer of {}", letter(index), name(row)));
                return Ok(());
            }
            Outcome::Fail => {
                self.note(|| format!("{} meets an error at {}", letter(index), name(row)));
                self.statement_failed(index);
                return Ok(());
            }
            Outcome::Write => self.write(index),
            Outcome::Row | Outcome::Skip => {}
        }
        self.session(index).item += 1;
        self.session(index).phase = Phase::AtItem;
        let items = match self.current_op(index) {
            Some(Op::Select(rows)) => rows.len(),
            Some(Op::Write(items)) => items.len(),
            _ => 0,
        };
        if self.state.sessions[index].item as usize == items {
            self.finish_statement(index);
        }
        Ok(())
    }

    fn finish_statement(&mut self, index: usize) {
        let op = self.current_op(index);
        self.end_statement_snapshot(index);
        let session = self.session(index);
        match (op, session.block) {
            (Some(Op::Select(_)), _) => session.phase = Phase::Reply(Reply::Rows),
            (_, Block::Auto) if session.txn != 0 => self.reserve(index),
            (_, Block::Auto) => session.phase = Phase::Reply(Reply::Count),
            _ => self.finish_op(index),
        }
    }

    pub(super) fn end_statement_snapshot(&mut self, index: usize) {
        let session = self.session(index);
        if session.block != Block::RepeatableRead {
            session.snapshot = NO_SNAPSHOT;
        }
    }

    /// The operation is over; the bare command tag of a statement in an open block waits for nothing, but what it told
    /// counts when the block ends.
    pub(super) fn finish_op(&mut self, index: usize) {
        let session = self.session(index);
        session.txn_dep = session.txn_dep.max(session.dep);
        if session.block != Block::Auto {
            for &fact in session.facts.as_slice() {
                if !session.txn_facts.as_slice().contains(&fact) {
                    session.txn_facts.push(fact);
                }
            }
        }
        session.facts.clear();
        session.dep = 0;
        session.item = 0;
        session.mark = 0;
        session.writes_at_mark = 0;
        session.op += 1;
        session.phase = Phase::Ready;
    }

    fn statement_failed(&mut self, index: usize) {
        self.end_statement_snapshot(index);
        let session = self.session(index);
        if session.txn == 0 {
            session.phase = Phase::Reply(Reply::Error);
        } else if session.block == Block::Auto {
            self.start_rollback(index, Scope::Autocommit);
        } else {
            let down_to = session.mark;
            session.phase = Phase::Undo { down_to, scope: Scope::Statement };
        }
    }

    /// The id that the next transaction of a session gets.
    pub(super) fn begin_txn(&mut self, index: usize) {
        let session = &mut self.state.sessions[index];
        if session.txn != 0 {
            return;
        }
        assert!((session.txns_begun as usize) < TXNS_PER_PROGRAM, "a program begins too many transactions");
        session.txn = session.program * TXNS_PER_PROGRAM as u8 + session.txns_begun + 1;
        session.txns_begun += 1;
        self.state.slots[session.txn as usize] = Slot::Active;
    }

    /// Acquires a lock. With a table lock comes the highest commit LSN of its earlier holders; an advisory lock goes
    /// only when that is durable, and carries none.
    fn acquire(&mut self, index: usize, lock: usize) -> bool {
        let Lock { holder, goes_at, .. } = self.state.locks[lock];
        let gone = goes_at != 0 && goes_at <= self.state.durable_lsn;
        if holder != 0 && !gone {
            return false;
        }
        self.state.locks[lock].goes_at = 0;
        self.state.locks[lock].holder = index as u8 + 1;
        let careless = lock == 1 || self.without(Mutation::LockWithoutLsn);
        let lsn = if careless { 0 } else { self.state.locks[lock].lsn };
        let session = self.session(index);
        session.lock_lsn = session.lock_lsn.max(lsn);
        session.txn_dep = session.txn_dep.max(lsn);
        session.op += 1;
        true
    }

    /// Lets a lock go, with the commit LSN of its holder.
    pub(super) fn release(&mut self, index: usize, lock: usize, lsn: Lsn) {
        let lock = &mut self.state.locks[lock];
        if lock.holder as usize == index + 1 && lock.goes_at == 0 {
            lock.holder = 0;
            lock.lsn = lock.lsn.max(lsn);
        }
    }

    /// Sessions between reservation and publication of a commit below `lsn`.
    pub(super) fn commits_open_below(&self, lsn: Lsn) -> bool {
        (0..SESSIONS).any(|index| {
            let session = &self.state.sessions[index];
            matches!(session.phase, Phase::Reserved | Phase::Stored) && session.commit_lsn < lsn
        })
    }

    /// What a change leaves in its row.
    pub(super) fn body_after(change: super::program::Change) -> Body {
        match change {
            super::program::Change::Insert(value) | super::program::Change::Update(value) => Body::Value(value),
            super::program::Change::Delete => Body::Ghost,
        }
    }
}
