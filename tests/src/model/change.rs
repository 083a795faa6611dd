//! The changes of a session in the model: writes, rollbacks, the commit section, and its replies.

use super::engine::Engine;
use super::mutation::Mutation;
use super::program::{Op, body, letter, name};
use super::state::{Addr, Block, Commit, Lsn, NO_SNAPSHOT, Phase, Record, Reply, Scope, Session, Slot, Undo, Version};

impl Engine<'_> {
    /// Changes the current item's row under its leaf's latch: undo, log record with tag and before-image, row.
    pub(super) fn write(&mut self, index: usize) {
        self.begin_txn(index);
        let Some(Op::Write(items)) = self.current_op(index) else { unreachable!("only a write writes") };
        let (row, change) = items[self.state.sessions[index].item as usize];
        let txn = self.state.sessions[index].txn;
        let before = self.state.memory.rows[row as usize];
        self.state.last_addr += 1;
        let addr = self.state.last_addr;
        let after = Version { body: Self::body_after(change), tag: addr };
        self.state.undo.push(Undo { addr, txn, row, before, ..Undo::default() });
        let lsn = self.append(Record::Change { txn, row, before, after });
        self.put(row, after, Some(lsn));
        self.state.sessions[index].writes.push((row, after.body));
        self.note(|| format!("{} leaves {} in {}, tag {addr}, LSN {lsn}", letter(index), body(after.body), name(row)));
    }

    pub(super) fn start_rollback(&mut self, index: usize, scope: Scope) {
        let session = &mut self.state.sessions[index];
        session.phase = Phase::Undo { down_to: 0, scope };
        if self.without(Mutation::RetireBeforeUndo) {
            let txn = self.state.sessions[index].txn;
            self.state.slots[txn as usize] = Slot::Free;
            self.note(|| format!("{} retires its id before its changes are taken back", letter(index)));
        }
    }

    /// Takes back one change, or ends the rollback when none is left.
    pub(super) fn step_rollback(&mut self, index: usize, down_to: Addr, scope: Scope) {
        let txn = self.state.sessions[index].txn;
        let next = self.newest_undo(txn, Addr::MAX).filter(|&addr| addr > down_to && txn != 0);
        if let Some(addr) = next {
            let mutation = match scope {
                Scope::Savepoint => Mutation::NoCompensationSavepoint,
                Scope::Statement => Mutation::NoCompensationStatement,
                Scope::Transaction | Scope::Autocommit => Mutation::NoCompensationTransaction,
            };
            self.note(|| format!("{} takes back one change", letter(index)));
            return self.take_back(addr, !self.without(mutation));
        }
        self.note(|| format!("{} has nothing left to take back", letter(index)));
        let session = &mut self.state.sessions[index];
        match scope {
            Scope::Savepoint => {
                session.writes.truncate(session.writes_at_savepoint as usize);
                self.finish_op(index);
            }
            Scope::Statement => {
                session.writes.truncate(session.writes_at_mark as usize);
                session.phase = Phase::Reply(Reply::Error);
            }
            Scope::Transaction | Scope::Autocommit => {
                session.writes.clear();
                let error = scope == Scope::Autocommit;
                session.phase = Phase::Reply(if error { Reply::Error } else { Reply::End });
                let lsn = self.append(Record::Aborted { txn });
                if self.state.slots[txn as usize] == Slot::Active {
                    self.state.slots[txn as usize] = Slot::RolledBack;
                }
                self.release(index, 0, 0);
                self.release(index, 1, 0);
                self.note(|| format!("{} is rolled back, LSN {lsn}", letter(index)));
            }
        }
    }

    /// Reserves the commit record: from here on the transaction can't fail, and its place in the order is fixed.
    pub(super) fn reserve(&mut self, index: usize) {
        let session = self.state.sessions[index];
        let lsn = self.append(Record::Commit { txn: session.txn });
        if !session.writes.is_empty() {
            self.state.history.push(Commit { lsn, writes: session.writes });
        }
        let session = &mut self.state.sessions[index];
        session.commit_lsn = lsn;
        session.phase = Phase::Reserved;
        self.note(|| format!("{} reserves its commit record, LSN {lsn}", letter(index)));
    }

    /// Advances `visible_lsn`, in the order of the log; then the record's copy is complete and table locks go.
    pub(super) fn publish(&mut self, index: usize) -> bool {
        let lsn = self.state.sessions[index].commit_lsn;
        if self.commits_open_below(lsn) && !self.without(Mutation::VisibleWithHoles) {
            return false;
        }
        self.state.visible_lsn = self.state.visible_lsn.max(lsn);
        self.release(index, 0, lsn);
        if self.without(Mutation::AdvisoryLockReleasedEarly) {
            self.release(index, 1, lsn);
        } else if self.state.sessions[index].block != Block::Auto {
            self.let_go_when_durable(index, lsn);
        }
        let session = &mut self.state.sessions[index];
        session.own_commit = lsn;
        session.phase = Phase::Reply(Reply::Commit);
        self.note(|| format!("{} makes its commit visible, locks go", letter(index)));
        true
    }

    /// An advisory lock of a transaction stays until its commit is durable, under `synchronous_commit = off` too.
    fn let_go_when_durable(&mut self, index: usize, lsn: Lsn) {
        let lock = &mut self.state.locks[1];
        if lock.holder as usize == index + 1 {
            lock.goes_at = lsn;
        }
    }

    /// Replies as soon as `durable_lsn` covers what the reply depends on.
    pub(super) fn reply(&mut self, index: usize, reply: Reply) -> bool {
        let session = self.state.sessions[index];
        let (dep, mutation) = match reply {
            Reply::Rows => (session.dep, Mutation::NoDepWaitRows),
            Reply::Count => (session.dep, Mutation::NoDepWaitCounts),
            Reply::Error => (session.dep, Mutation::NoDepWaitErrors),
            Reply::End => (session.txn_dep, Mutation::NoDepWaitEnds),
            // `off` waives the wait for its own commit only.
            Reply::Commit if self.scenario.asynchronous[index] => (session.txn_dep, Mutation::NoDepWaitEnds),
            Reply::Commit => (session.commit_lsn, Mutation::CommitNotAwaited),
        };
        if self.state.durable_lsn < dep && !self.without(mutation) {
            return false;
        }
        self.tell(index, reply);
        self.note(|| format!("{} is answered: {}", letter(index), words(reply)));
        let ends = session.block == Block::Auto || matches!(reply, Reply::Commit | Reply::End);
        // The facts of this reply are told; only those of bare command tags are still owed.
        self.state.sessions[index].facts.clear();
        self.finish_op(index);
        if ends {
            self.end_transaction(index);
        }
        true
    }

    fn end_transaction(&mut self, index: usize) {
        let session = &mut self.state.sessions[index];
        *session = Session {
            block: Block::Auto,
            txn: 0,
            snapshot: NO_SNAPSHOT,
            txn_dep: 0,
            commit_lsn: 0,
            savepoint: 0,
            writes_at_savepoint: 0,
            ..*session
        };
        session.txn_facts.clear();
        session.writes.clear();
    }
}

fn words(reply: Reply) -> &'static str {
    match reply {
        Reply::Rows => "its rows",
        Reply::Count => "its count",
        Reply::Error => "its error",
        Reply::Commit => "committed",
        Reply::End => "the transaction has ended",
    }
}
