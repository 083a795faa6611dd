//! Crashes and recovery in the model: what survives, analysis, redo, the undo store rebuilt, losers undone.

use super::engine::{Engine, Stepped};
use super::mutation::Mutation;
use super::program::{letter, position};
use super::state::{
    Addr, CATALOG, Life, Lsn, PAGES, Phase, Record, SESSIONS, Session, Slot, State, TxnId, Undo, Version,
};

impl Engine<'_> {
    /// The process ends here. Memory and the spill file are gone; the log survives up to `end`, which lies anywhere
    /// between what was synced and what had been appended.
    pub fn crash(&mut self, end: Lsn) -> Stepped {
        self.note(|| format!("CRASH; the log survives up to {}", position(end)));
        self.check_after_crash(end)?;
        let old = self.state;
        let mut log = old.log;
        log.truncate(end as usize);
        let mut history = old.history;
        history.retain(|commit| commit.lsn <= end);
        let mut sessions = [Session::default(); SESSIONS];
        for (index, session) in sessions.iter_mut().enumerate() {
            *session = Session { phase: Phase::Done, ..Session::new(index as u8) };
        }
        if old.crashes == 0 {
            sessions[0] = Session::new(SESSIONS as u8);
        }
        self.state = State {
            life: Life::Down,
            crashes: old.crashes + 1,
            checkpoints: old.checkpoints,
            spills: old.spills,
            disk: old.disk,
            synced_lsn: old.synced_lsn,
            log,
            master: old.master,
            history,
            sessions,
            ..State::default()
        };
        Ok(true)
    }

    /// Analysis, redo by page, the losers' undo at the addresses it had, and the sync of the tail. Only the sync reaches
    /// the disk, so that one step stands for all.
    pub fn recover(&mut self) -> bool {
        if self.state.life != Life::Down {
            return false;
        }
        self.analyse();
        self.redo();
        let end = self.state.end_lsn();
        self.state.durable_lsn = end;
        self.state.visible_lsn = end;
        if !self.without(Mutation::TailNotSynced) {
            self.state.synced_lsn = end;
        }
        self.state.life = Life::Recovered;
        let losers = self.state.losers.count_ones();
        self.note(|| format!("recovery: redo done, {losers} losers to take back"));
        true
    }

    /// Which transactions lost, and the undo of their changes that still stand: what the checkpoint saved, and what the
    /// log says since the checkpoint before it.
    fn analyse(&mut self) {
        let master = self.state.master;
        let mut undo: Vec<Undo> = master.saved.iter().copied().collect();
        let mut last_addr = master.mark;
        let mut ended: u16 = 0;
        for index in master.previous_lsn as usize..self.state.log.len() {
            match self.state.log.as_slice()[index] {
                Record::Change { txn, row, before, after } => {
                    if undo.iter().all(|known| known.addr != after.tag) {
                        undo.push(Undo { addr: after.tag, txn, row, before, ..Undo::default() });
                    }
                    last_addr = last_addr.max(after.tag);
                }
                Record::Compensation { txn, undo_next, .. } => {
                    undo.retain(|known| known.txn != txn || known.addr <= undo_next);
                }
                Record::Commit { txn } | Record::Aborted { txn } => ended |= 1 << txn,
                Record::Purge { .. } | Record::None => {}
            }
        }
        undo.retain(|known| ended & 1 << known.txn == 0);
        undo.sort_by_key(|known| known.addr);
        for known in &undo {
            self.state.losers |= 1 << known.txn;
            self.state.slots[known.txn as usize] = Slot::Active;
        }
        self.state.last_addr = last_addr;
        if self.without(Mutation::LosersNotRebuilt) {
            self.state.losers = 0;
            return;
        }
        undo.into_iter().for_each(|known| self.state.undo.push(known));
    }

    /// Repeats every change that a page on disk lacks.
    fn redo(&mut self) {
        self.state.memory = self.state.disk;
        let mut lacks = [0; PAGES];
        for lsn in self.state.master.redo_lsn.max(1)..=self.state.end_lsn() {
            let (row, version) = match self.state.log.as_slice()[lsn as usize - 1] {
                Record::Change { row, after, .. } if self.without(Mutation::TagNotLogged) => {
                    (row, Version { tag: 0, ..after })
                }
                Record::Change { row, after, .. } => (row, after),
                Record::Compensation { row, restored, .. } => (row, restored),
                Record::Purge { row } => (row, Version::default()),
                Record::Commit { .. } | Record::Aborted { .. } | Record::None => continue,
            };
            let page = self.scenario.page_of(row);
            if lsn > self.state.memory.lsn[page] {
                self.state.memory.rows[row as usize] = version;
                self.state.memory.lsn[page] = lsn;
                if lacks[page] == 0 {
                    lacks[page] = lsn;
                }
            }
        }
        self.state.first_dirty = lacks;
    }

    /// Takes back one change of a loser, those of the catalog first; or ends its rollback.
    pub fn undo_loser(&mut self) -> bool {
        if self.state.life != Life::Recovered || self.state.losers == 0 {
            return false;
        }
        let losers = self.state.losers;
        let standing = |undo: &&Undo| !undo.undone && losers & 1 << undo.txn != 0;
        let touches_catalog = |txn: TxnId| {
            self.state.undo.iter().filter(standing).any(|one| one.txn == txn && one.row as usize == CATALOG)
        };
        let next = self.state.undo.iter().filter(standing).max_by_key(|one| (touches_catalog(one.txn), one.addr));
        let Some(next) = next.copied() else {
            self.state.losers = 0;
            return true;
        };
        self.note(|| format!("recovery takes back a change of transaction {}", next.txn));
        self.take_back(next.addr, !self.without(Mutation::NoCompensationRecovery));
        if self.newest_undo(next.txn, Addr::MAX).is_none() {
            self.state.losers &= !(1 << next.txn);
            self.state.slots[next.txn as usize] = Slot::RolledBack;
            if !self.without(Mutation::NoCompensationRecovery) {
                self.append(Record::Aborted { txn: next.txn });
            }
        }
        true
    }

    /// Whether a session still has something to do; used to find states that are stuck.
    pub fn unfinished(&self) -> Option<char> {
        if self.state.life == Life::Down {
            return None;
        }
        let waits = |index: &usize| self.state.sessions[*index].phase != Phase::Done;
        (0..SESSIONS).find(waits).map(letter)
    }
}
