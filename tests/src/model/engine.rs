//! One atomic step of the modelled database: the actions, and the code that they share.

use super::mutation::{Mutation, Planted};
use super::program::Scenario;
use super::state::{Addr, Lsn, PAGES, Phase, ROWS, Record, SESSIONS, Session, State, Undo, Version};

/// Something that must not happen, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation(pub String);

/// Whether the action was possible in this state.
pub type Stepped = Result<bool, Violation>;

/// One action: whatever may happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A session takes its next step.
    Session(u8),
    /// The log becomes durable up to the end of its next record.
    Flush,
    /// A dirty page is written.
    Steal(u8),
    /// The tag of a row is cleared.
    ClearTag(u8),
    /// A ghost is purged.
    PurgeGhost(u8),
    /// An undo record of a committed transaction is pruned.
    Prune(Addr),
    /// A version between two active snapshots is dropped.
    Bypass(Addr),
    /// The pruner takes its next step (publish, scan, rest).
    Pruner,
    /// An undo record whose change was taken back is dropped.
    Retire(Addr),
    /// An undo record goes to the spill file.
    Spill(Addr),
    /// The checkpointer takes its next step (begin, save undo, complete).
    Checkpoint,
    /// A crash; the log survives up to here.
    Crash(Lsn),
    /// Analysis, redo, undo rebuilt.
    Recover,
    /// One change of a loser is taken back, or the end of its rollback is logged.
    UndoLoser,
}

/// A state being changed by one action.
pub struct Engine<'a> {
    /// Programs and bounds.
    pub scenario: &'a Scenario,
    /// The clauses that are left out.
    pub planted: Planted,
    /// The state.
    pub state: State,
    /// What happened, in words; only kept when a trace is being written.
    pub notes: Option<Vec<String>>,
}

impl<'a> Engine<'a> {
    /// The first state of a scenario.
    pub fn start(scenario: &'a Scenario, planted: Planted) -> Engine<'a> {
        let mut state = State::default();
        for row in 0..ROWS {
            state.memory.rows[row] = Version { body: scenario.rows[row], tag: 0 };
        }
        state.disk = state.memory;
        for (index, session) in state.sessions.iter_mut().enumerate() {
            *session = Session::new(index as u8);
        }
        Engine { scenario, planted, state, notes: None }
    }

    /// Whether a mutation is planted.
    pub fn without(&self, mutation: Mutation) -> bool {
        self.planted.has(mutation)
    }

    /// Adds to the trace.
    pub fn note(&mut self, words: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(words());
        }
    }

    /// Every action that may be possible, in a fixed order.
    pub fn candidates(&self, list: &mut Vec<Action>) {
        let state = &self.state;
        let bounds = &self.scenario.bounds;
        list.clear();
        list.extend((0..SESSIONS as u8).map(Action::Session));
        list.extend([Action::Recover, Action::UndoLoser, Action::Flush]);
        if bounds.prune {
            list.push(Action::Pruner);
            list.extend((0..ROWS as u8).map(Action::ClearTag));
            list.extend((0..ROWS as u8).map(Action::PurgeGhost));
            list.extend(state.undo.iter().map(|undo| Action::Prune(undo.addr)));
            list.extend(state.undo.iter().map(|undo| Action::Bypass(undo.addr)));
        }
        if bounds.retire {
            list.extend(state.undo.iter().map(|undo| Action::Retire(undo.addr)));
        }
        if state.spills < bounds.spills {
            list.extend(state.undo.iter().map(|undo| Action::Spill(undo.addr)));
        }
        if bounds.steal {
            list.extend((0..PAGES as u8).map(Action::Steal));
        }
        list.push(Action::Checkpoint);
        if state.crashes < bounds.crashes {
            list.extend((state.synced_lsn..=self.completed_lsn()).map(Action::Crash));
        }
    }

    /// Takes one action.
    ///
    /// # Errors
    /// When it ends in something that must not happen.
    pub fn take(&mut self, action: Action) -> Stepped {
        let taken = match action {
            Action::Session(index) => self.step_session(index as usize)?,
            Action::Flush => self.flush(),
            Action::Steal(page) => self.steal(page as usize),
            Action::ClearTag(row) => self.clear_tag(row),
            Action::PurgeGhost(row) => self.purge_ghost(row),
            Action::Prune(addr) => self.prune(addr),
            Action::Bypass(addr) => self.bypass(addr),
            Action::Pruner => self.step_pruner(),
            Action::Retire(addr) => self.retire(addr),
            Action::Spill(addr) => self.spill(addr),
            Action::Checkpoint => self.step_checkpoint(),
            Action::Crash(end) => self.crash(end)?,
            Action::Recover => self.recover(),
            Action::UndoLoser => self.undo_loser(),
        };
        if taken {
            self.forget_what_is_synced();
            self.check_recovered()?;
        }
        Ok(taken)
    }

    /// Appends a record; returns its LSN.
    pub fn append(&mut self, record: Record) -> Lsn {
        self.state.log.push(record);
        self.state.end_lsn()
    }

    /// Puts a version in its row's place: the page's LSN and version move, copies of its rows are stale.
    pub fn put(&mut self, row: u8, version: Version, lsn: Option<Lsn>) {
        let page = self.scenario.page_of(row);
        self.state.memory.rows[row as usize] = version;
        if let Some(lsn) = lsn {
            self.state.memory.lsn[page] = lsn;
            if self.state.first_dirty[page] == 0 {
                self.state.first_dirty[page] = lsn;
            }
        }
        for index in 0..SESSIONS {
            let copied = self.row_copied_by(index);
            if copied.is_some_and(|copied| self.scenario.page_of(copied) == page) {
                self.state.sessions[index].stale = true;
            }
        }
    }

    /// The row of which a session holds a copy.
    fn row_copied_by(&self, index: usize) -> Option<u8> {
        let session = &self.state.sessions[index];
        match session.phase {
            Phase::Copied(_) | Phase::Resolved(_) | Phase::Loading(..) => Some(self.item_row(index)),
            _ => None,
        }
    }

    /// Takes back the change whose undo record is at `addr`; with a compensation record if `logged`.
    pub fn take_back(&mut self, addr: Addr, logged: bool) {
        let undo = *self.state.undo_at(addr).expect("undo of a transaction in progress is never dropped");
        let undo_next = self.newest_undo(undo.txn, addr - 1).unwrap_or(0);
        let lsn = logged.then(|| {
            let (txn, row, restored) = (undo.txn, undo.row, undo.before);
            self.append(Record::Compensation { txn, row, restored, undo_next })
        });
        self.put(undo.row, undo.before, lsn);
        let readers = self.readers();
        for entry in self.state.undo.as_mut_slice().iter_mut().filter(|entry| entry.addr == addr) {
            *entry = Undo { undone: true, spilled: false, readers, ..*entry };
        }
        self.note(|| {
            let logged = lsn.map_or(" without a compensation record".into(), |lsn| format!(", LSN {lsn}"));
            format!("{} is {} again{logged}", super::program::name(undo.row), super::program::body(undo.before.body))
        });
    }

    /// The newest undo record at or below `highest` of a change of `txn` that still stands.
    pub fn newest_undo(&self, txn: u8, highest: Addr) -> Option<Addr> {
        let undo = self.state.undo.iter().filter(|undo| undo.txn == txn && !undo.undone && undo.addr <= highest);
        undo.map(|undo| undo.addr).max()
    }

    /// Sessions that hold a copy of a row inside an epoch, as a set.
    fn readers(&self) -> u8 {
        let sessions = self.state.sessions.iter().enumerate();
        sessions.filter(|(_, session)| session.in_epoch).fold(0, |set, (index, _)| set | 1 << index)
    }

    /// A session leaves its reader epoch.
    pub fn leave_epoch(&mut self, index: usize) {
        self.state.sessions[index].in_epoch = false;
        for undo in self.state.undo.as_mut_slice() {
            undo.readers &= !(1 << index);
        }
    }

    /// The end of the log's part that is completely copied: the flusher takes no more.
    pub fn completed_lsn(&self) -> Lsn {
        let end = self.state.end_lsn();
        if self.without(Mutation::FlushBeforeVisible) {
            return end;
        }
        let sessions = self.state.sessions.iter();
        let open = sessions.filter(|session| matches!(session.phase, Phase::Reserved | Phase::Stored));
        open.map(|session| session.commit_lsn - 1).min().unwrap_or(end)
    }
}

impl Session {
    /// A session at the beginning of a program.
    pub fn new(program: u8) -> Session {
        Session { program, snapshot: super::state::NO_SNAPSHOT, ..Session::default() }
    }
}
