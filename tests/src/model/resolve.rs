//! Resolving a row's tag: which version a reader sees, and whether a writer may write.

use super::engine::Engine;
use super::mutation::Mutation;
use super::program::{Change, Op};
use super::state::{Addr, Block, Body, Lsn, Outcome, Resolved, SESSIONS, Slot, TxnId, Version};

/// Whose version it is.
enum Owner {
    /// Committed, and below every horizon: visible to all.
    Settled,
    /// The asking session's own.
    Own,
    /// A transaction in progress.
    Active,
    /// Committed at this LSN.
    Committed(Lsn),
    /// Rolled back already: the copy was taken before.
    TakenBack,
}

/// The undo record stands in the spill file.
pub struct Spilled(pub Addr);

impl Engine<'_> {
    fn owner(&self, session: usize, tag: Addr) -> Result<Owner, Spilled> {
        let Some(undo) = self.state.undo_at(tag) else {
            return Ok(Owner::Settled);
        };
        if undo.spilled {
            return Err(Spilled(tag));
        }
        let own = session < SESSIONS && self.state.sessions[session].txn == undo.txn;
        Ok(match self.state.slots[undo.txn as usize] {
            _ if own => Owner::Own,
            Slot::Free => Owner::Settled,
            Slot::Active => Owner::Active,
            Slot::Committed(lsn) => Owner::Committed(lsn),
            Slot::RolledBack => Owner::TakenBack,
        })
    }

    /// What a snapshot at `snapshot` sees of a copied version: its body, the commit it depends on, and whether it is the
    /// session's own change.
    pub fn read_version(
        &self,
        session: usize,
        mut version: Version,
        snapshot: Lsn,
    ) -> Result<(Body, Lsn, bool), Spilled> {
        loop {
            match self.owner(session, version.tag)? {
                Owner::Settled => return Ok((version.body, 0, false)),
                Owner::Own => return Ok((version.body, 0, true)),
                Owner::Committed(lsn) if lsn <= snapshot => {
                    return Ok((version.body, self.counted(version.body, lsn), false));
                }
                Owner::Committed(_) | Owner::Active | Owner::TakenBack => {
                    version = self.state.undo_at(version.tag).expect("found just now").before;
                }
            }
        }
    }

    /// The commit of an inspected version as it counts towards `dep_lsn`.
    fn counted(&self, body: Body, lsn: Lsn) -> Lsn {
        if body == Body::Ghost && self.without(Mutation::NoDepWaitGhosts) { 0 } else { lsn }
    }

    /// Resolves the copy of the current item's row for the current operation.
    pub fn resolve(&self, session: usize, copy: Version) -> Result<Resolved, Spilled> {
        let row = self.item_row(session);
        match self.current_op(session) {
            Some(Op::Write(items)) => {
                let change = items[self.state.sessions[session].item as usize].1;
                self.resolve_write(session, row, copy, change)
            }
            _ => {
                let snapshot = self.state.sessions[session].snapshot;
                let (body, dep, own) = self.read_version(session, copy, snapshot)?;
                let fact = (!own).then(|| self.fact(row, self.position_read(session), body.seen()));
                Ok(Resolved { outcome: Outcome::Row, dep, fact })
            }
        }
    }

    /// Truth: the position whose state a SELECT must show. Under an exclusive lock that all writers take, that is now.
    fn position_read(&self, session: usize) -> Lsn {
        let one = &self.state.sessions[session];
        let locked = self.state.locks.iter().any(|lock| lock.holder as usize == session + 1 && lock.goes_at == 0);
        if locked { self.state.end_lsn() } else { one.snapshot.max(one.own_commit) }
    }

    /// A writer looks at the newest version, not at its snapshot; repeatable read lets the first updater win.
    fn resolve_write(&self, session: usize, row: u8, copy: Version, change: Change) -> Result<Resolved, Spilled> {
        let mut version = copy;
        let (lsn, own) = loop {
            match self.owner(session, version.tag)? {
                Owner::Settled => break (0, false),
                Owner::Own => break (0, true),
                Owner::Committed(lsn) if !self.is_ahead(lsn) => break (lsn, false),
                Owner::Committed(_) | Owner::Active => {
                    return Ok(self.wait_for_writer(version.tag));
                }
                Owner::TakenBack => {
                    version = self.state.undo_at(version.tag).expect("found just now").before;
                }
            }
        };
        let one = &self.state.sessions[session];
        let too_new = one.block == Block::RepeatableRead && lsn > one.snapshot;
        let outcome = match (change, version.body) {
            (Change::Insert(_), Body::Value(_)) => Outcome::Fail,
            (Change::Insert(_), _) => Outcome::Write,
            (_, Body::Absent) => Outcome::Skip,
            _ if too_new => Outcome::Fail,
            (_, Body::Ghost) => Outcome::Skip,
            (_, Body::Value(_)) => Outcome::Write,
        };
        let fact = (!own).then(|| self.fact(row, self.state.end_lsn(), version.body.seen()));
        let dep = self.counted(version.body, lsn);
        Ok(Resolved { outcome, dep, fact })
    }

    fn wait_for_writer(&self, tag: Addr) -> Resolved {
        let writer = self.state.undo_at(tag).expect("found just now").txn;
        Resolved { outcome: Outcome::Wait(writer), dep: 0, fact: None }
    }

    /// A commit whose LSN stands in its slot, but which `visible_lsn` does not cover yet. A writer must not act on it:
    /// the next statement of its block, at `visible_lsn`, would not see what this one saw.
    fn is_ahead(&self, lsn: Lsn) -> bool {
        lsn > self.state.visible_lsn && !self.without(Mutation::WriterAheadOfVisible)
    }

    /// Whether a writer has ended so far that others may write its rows.
    pub fn has_ended(&self, writer: TxnId) -> bool {
        match self.state.slots[writer as usize] {
            Slot::Active => false,
            Slot::Committed(lsn) => !self.is_ahead(lsn),
            Slot::Free | Slot::RolledBack => true,
        }
    }
}
