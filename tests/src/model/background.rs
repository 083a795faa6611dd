//! The background tasks of the model: flusher, page cleaner, pruner, retiring of undone changes, spilling, checkpoints.

use super::engine::Engine;
use super::mutation::Mutation;
use super::program::{name, position};
use super::short::Short;
use super::state::{
    Addr, Body, Checkpoint, Checkpointing, Life, Lsn, PAGES, Pruner, Record, Slot, TXNS, Undo, Version,
};

impl Engine<'_> {
    /// One more record of the log is on disk.
    pub fn flush(&mut self) -> bool {
        if self.state.life == Life::Down || self.state.synced_lsn >= self.completed_lsn() {
            return false;
        }
        // A careless recovery believes that more is durable than is on disk; the next sync makes that good.
        let next = self.completed_lsn().min(self.state.durable_lsn.max(self.state.synced_lsn + 1));
        self.state.durable_lsn = next;
        self.state.synced_lsn = next;
        self.note(|| format!("the log is durable up to {}", position(next)));
        true
    }

    /// A dirty page is written, uncommitted changes and all, once the log of its changes is durable.
    pub fn steal(&mut self, page: usize) -> bool {
        if self.state.life == Life::Down || self.state.first_dirty[page] == 0 {
            return false;
        }
        if self.state.memory.lsn[page] > self.state.durable_lsn && !self.without(Mutation::StealBeforeFlush) {
            return false;
        }
        for row in 0..self.state.memory.rows.len() {
            if self.scenario.page_of(row as u8) == page {
                self.state.disk.rows[row] = self.state.memory.rows[row];
            }
        }
        self.state.disk.lsn[page] = self.state.memory.lsn[page];
        self.state.first_dirty[page] = 0;
        self.note(|| format!("page {page} is written"));
        true
    }

    /// The position up to which commits may be pruned, purged and cleared, as the pruner's target.
    fn target(&self) -> Lsn {
        if self.without(Mutation::PurgeBeforeDurable) { self.state.visible_lsn } else { self.state.durable_lsn }
    }

    fn oldest_snapshot(&self) -> Lsn {
        if self.without(Mutation::PurgeIgnoresSnapshots) {
            return Lsn::MAX;
        }
        self.state.sessions.iter().map(|session| session.snapshot).min().unwrap_or(Lsn::MAX)
    }

    /// The horizon as the pruner knows it; none while it has not looked.
    fn horizon(&self) -> Option<Lsn> {
        if !self.scenario.bounds.fine_snapshots {
            return (self.state.life != Life::Down).then(|| self.target().min(self.oldest_snapshot()));
        }
        match self.state.pruner {
            Pruner::Scanned(horizon, _) => Some(horizon),
            Pruner::Idle | Pruner::Published(_) => None,
        }
    }

    /// Publish the horizon, fence, then look at the snapshots, so that a snapshot that begins meanwhile sees the horizon
    /// or is seen.
    pub fn step_pruner(&mut self) -> bool {
        if !self.scenario.bounds.fine_snapshots || self.state.life == Life::Down {
            return false;
        }
        let late = self.without(Mutation::HorizonPublishedLate);
        let (target, oldest) = (self.target(), self.oldest_snapshot());
        match self.state.pruner {
            Pruner::Idle if target <= self.state.horizon || self.state.undo.is_empty() => {
                return false;
            }
            Pruner::Idle if late => {
                self.state.pruner = Pruner::Published(target.min(oldest));
                self.note(|| "the pruner looks at the snapshots".into());
            }
            Pruner::Published(horizon) if late => {
                self.state.horizon = self.state.horizon.max(horizon);
                self.state.pruner = Pruner::Scanned(horizon, horizon);
                self.note(|| format!("the pruner publishes its horizon, {}", position(horizon)));
            }
            Pruner::Idle => {
                let low = self.without(Mutation::HorizonPublishedLow);
                let aim = if low { target.min(oldest) } else { target };
                self.state.horizon = self.state.horizon.max(aim);
                self.state.pruner = Pruner::Published(target);
                let published = self.state.horizon;
                self.note(|| format!("the pruner publishes its horizon, {}", position(published)));
            }
            Pruner::Published(target) => {
                let horizon = self.state.horizon.min(oldest);
                self.state.pruner = Pruner::Scanned(horizon, target);
                self.note(|| format!("the pruner has looked at the snapshots: up to {}", position(horizon)));
            }
            Pruner::Scanned(..) => {
                self.state.pruner = Pruner::Idle;
                self.note(|| "the pruner rests".into());
            }
        }
        true
    }

    /// Whether a tag's change is committed at or below the horizon.
    fn is_settled(&self, tag: Addr) -> bool {
        let Some(horizon) = self.horizon() else {
            return false;
        };
        match self.state.undo_at(tag) {
            None => true,
            Some(undo) => {
                matches!(self.state.slots[undo.txn as usize], Slot::Committed(lsn) if lsn <= horizon)
            }
        }
    }

    /// Clears a settled tag, which no log record tells of.
    pub fn clear_tag(&mut self, row: u8) -> bool {
        let version = self.state.memory.rows[row as usize];
        if version.tag == 0 || !self.is_settled(version.tag) {
            return false;
        }
        self.put(row, Version { tag: 0, ..version }, None);
        self.note(|| format!("the tag of {} is cleared", name(row)));
        true
    }

    /// Purges a settled ghost.
    pub fn purge_ghost(&mut self, row: u8) -> bool {
        let version = self.state.memory.rows[row as usize];
        if version.body != Body::Ghost || !self.is_settled(version.tag) {
            return false;
        }
        let lsn = self.append(Record::Purge { row });
        self.put(row, Version::default(), Some(lsn));
        self.note(|| format!("the ghost of {} is purged, LSN {lsn}", name(row)));
        true
    }

    /// Drops the undo of a commit at or below the horizon.
    pub fn prune(&mut self, addr: Addr) -> bool {
        let undo = *self.state.undo_at(addr).expect("a candidate");
        if undo.undone || !self.is_settled(addr) {
            return false;
        }
        self.state.undo.retain(|undo| undo.addr != addr);
        self.note(|| format!("undo record {addr} is pruned"));
        true
    }

    /// Drops a version that no snapshot sees although older ones are active: the record at `addr` then leads to the
    /// version before it. Both commits lie at or below the published target, and no snapshot between them; none can
    /// come to lie there, since a transaction that begins later begins above the target.
    pub fn bypass(&mut self, addr: Addr) -> bool {
        let Pruner::Scanned(_, target) = self.state.pruner else {
            return false;
        };
        let younger = *self.state.undo_at(addr).expect("a candidate");
        let Some(&older) = self.state.undo_at(younger.before.tag) else {
            return false;
        };
        let commit = |undo: &Undo| match self.state.slots[undo.txn as usize] {
            Slot::Committed(lsn) if !undo.undone => Some(lsn),
            _ => None,
        };
        let (Some(seen_from), Some(seen_below)) = (commit(&older), commit(&younger)) else {
            return false;
        };
        let seen = self.state.sessions.iter().any(|one| (seen_from..seen_below).contains(&one.snapshot));
        if seen || seen_below > target {
            return false;
        }
        for undo in self.state.undo.as_mut_slice().iter_mut().filter(|undo| undo.addr == addr) {
            undo.before = older.before;
        }
        self.state.undo.retain(|undo| undo.addr != older.addr);
        self.note(|| format!("undo record {addr} leads past the version of LSN {seen_from}, which no snapshot sees"));
        true
    }

    /// Drops the undo of a change that was taken back, once no reader can hold a copy of the row as it was.
    pub fn retire(&mut self, addr: Addr) -> bool {
        let undo = *self.state.undo_at(addr).expect("a candidate");
        let waits = undo.readers != 0 && !self.without(Mutation::RetireBeforeEpochs);
        if self.state.life == Life::Down || !undo.undone || waits {
            return false;
        }
        self.state.undo.retain(|undo| undo.addr != addr);
        self.note(|| format!("undo record {addr}, taken back, is dropped"));
        true
    }

    /// Writes an undo record to the spill file and frees its memory.
    pub fn spill(&mut self, addr: Addr) -> bool {
        let undo = *self.state.undo_at(addr).expect("a candidate");
        if self.state.life == Life::Down || undo.spilled || undo.undone {
            return false;
        }
        self.state.spills += 1;
        for undo in self.state.undo.as_mut_slice().iter_mut().filter(|undo| undo.addr == addr) {
            undo.spilled = true;
        }
        self.note(|| format!("undo record {addr} goes to the spill file"));
        true
    }

    /// Transactions in progress that have changed something, as a set.
    fn active(&self) -> u16 {
        let slots = (1..TXNS).filter(|&txn| self.state.slots[txn] == Slot::Active);
        slots.fold(0, |set, txn| set | 1 << txn)
    }

    /// Begin, save undo, complete. Nothing waits for it and it waits for nothing.
    pub fn step_checkpoint(&mut self) -> bool {
        match self.state.checkpointing {
            _ if self.state.life == Life::Down => return false,
            Checkpointing::Idle if self.state.checkpoints >= self.scenario.bounds.checkpoints => {
                return false;
            }
            Checkpointing::Idle => self.begin_checkpoint(),
            Checkpointing::Begun(begun) => self.save_undo(begun),
            Checkpointing::Saved(checkpoint, needed) => {
                if self.state.synced_lsn < needed && !self.without(Mutation::CheckpointBeforeFlush) {
                    return false;
                }
                self.state.master = checkpoint;
                self.state.checkpointing = Checkpointing::Idle;
                self.note(|| format!("the checkpoint at {} is complete", position(checkpoint.lsn)));
            }
        }
        true
    }

    fn begin_checkpoint(&mut self) {
        let lsn = self.state.end_lsn();
        let oldest = (0..PAGES).map(|page| self.state.first_dirty[page]).filter(|&first| first != 0).min();
        let careless = self.without(Mutation::CheckpointIgnoresDirtyPages);
        let redo_lsn = oldest.filter(|_| !careless).unwrap_or(lsn + 1);
        let mark = if self.without(Mutation::MarkNotSaved) { 0 } else { self.state.last_addr };
        let begun = Checkpoint {
            lsn,
            previous_lsn: self.state.master.lsn,
            redo_lsn,
            active: self.active(),
            mark,
            saved: Short::default(),
        };
        self.state.checkpoints += 1;
        self.state.checkpointing = Checkpointing::Begun(begun);
        self.note(|| format!("a checkpoint begins at {}, redo from LSN {redo_lsn}", position(lsn)));
    }

    /// Saves the undo of each transaction that was active at the previous checkpoint and still is; of all others the log since then
    /// tells everything. What was taken back by now is left out, so the log must be durable up to here.
    fn save_undo(&mut self, mut checkpoint: Checkpoint) {
        let old = self.state.master.active & self.active();
        let wanted = |undo: &&Undo| !undo.undone && old & 1 << undo.txn != 0;
        if !self.without(Mutation::CheckpointWithoutUndo) {
            for &undo in self.state.undo.iter().filter(wanted) {
                checkpoint.saved.push(Undo { spilled: false, readers: 0, ..undo });
            }
        }
        let ahead = self.without(Mutation::CheckpointSavesAheadOfLog);
        let needed = if ahead { checkpoint.lsn } else { self.state.end_lsn() };
        self.state.checkpointing = Checkpointing::Saved(checkpoint, needed);
        self.note(|| format!("the checkpoint saves {} undo records", checkpoint.saved.len()));
    }
}
