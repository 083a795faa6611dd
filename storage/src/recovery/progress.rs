//! How far an opening has come, for the program that waits for it.
//!
//! The opening stores positions as it goes; any thread may look. No thread waits for another.

use crate::ids::Lsn;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// What an opening does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The files of the directory are looked at.
    #[default]
    Begins = 0,
    /// The log is read, to find the active transactions and its end.
    Analysis = 1,
    /// The log is read again and applied to pages.
    Redo = 2,
    /// The log is done with; what it leads to is read.
    Loading = 3,
}

impl Phase {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Begins => "begins",
            Phase::Analysis => "analysis",
            Phase::Redo => "redo",
            Phase::Loading => "loading",
        }
    }

    fn of(code: u8) -> Phase {
        match code {
            1 => Phase::Analysis,
            2 => Phase::Redo,
            3 => Phase::Loading,
            _ => Phase::Begins,
        }
    }
}

/// Where an opening stands. The phase and the positions are stored one after the other, so a look between them may show a new phase
/// with old positions.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    from: AtomicU64,
    at: AtomicU64,
    to: AtomicU64,
}

/// A look at a [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What is done.
    pub phase: Phase,
    /// Bytes of the log that the phase has read.
    pub done: u64,
    /// Bytes that it will read. Of analysis, an estimate from below: it looks for the end.
    pub all: u64,
}

impl Progress {
    /// A phase begins that reads the log between two positions.
    pub(super) fn begin(&self, phase: Phase, from: Lsn, to: Lsn) {
        self.from.store(from.0, Relaxed);
        self.at.store(from.0, Relaxed);
        self.to.store(to.0, Relaxed);
        self.phase.store(phase as u8, Relaxed);
    }

    /// The phase has read the log up to `at`.
    #[inline]
    pub(super) fn reached(&self, at: Lsn) {
        self.at.store(at.0, Relaxed);
    }

    /// How far it is.
    pub fn shown(&self) -> Shown {
        let from = self.from.load(Relaxed);
        let done = self.at.load(Relaxed).saturating_sub(from);
        let all = self.to.load(Relaxed).saturating_sub(from).max(done);
        Shown { phase: Phase::of(self.phase.load(Relaxed)), done, all }
    }
}
