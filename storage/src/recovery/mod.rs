//! Recovery: the steps from opening a database's files to serving from it, and the checkpoints that recovery starts from.
//!
//! # Structure
//! ```text
//!   control -> where to begin            saved -> content of the checkpoint
//!   scan .. redo .. begin .. end of log
//!    └─ analysis: losers, pending drops, high-water marks
//!             └─ redo: pages
//!   then: tail rewritten and synced, new epoch, space loaded, losers handed to the layer above
//! ```
//!
//! # Life of an opening
//! 1. The control file says where reading starts and what was durable.
//! 2. Analysis reads to the end. Every file that will be changed is looked at: the log's segments, the double-write area, the data files'
//!    lengths and first pages. What is damaged or lost refuses the opening; nothing was changed so far (REC-13).
//! 3. The tail is written and synced again (WAL-18), the control file gets a new epoch.
//! 4. Torn pages come back from the double-write area; redo.
//! 5. Bitmaps and directory are read.
//! 6. The losers' undo goes to the layer above at the same tags; it undoes them with [`undo::undo_all`], before
//!    serving or in the background while their rows stay locked.
//!
//! # Invariants
//! NEW-1..4 in [`create`], REC-1, REC-11 in [`control`], REC-2 in [`saved`], REC-3..4 in [`analysis`], REC-5..6 and REC-14..16 in [`redo`], REC-7..8 in
//! [`checkpoint`], REC-9 in [`undo`], REC-10 in [`analysis`].
//! - REC-12: redo applies every record up to the end that analysis has found. If redo can't read the log up to that end, the opening fails.
//! - REC-13: before the first write of an opening, every file that it will write to was looked at. An opening that is refused because a file is
//!   missing, too short, or another one's changes nothing. Pages behind the first of a file are read later: damage there is told when they are.
//!
//! # Crash safety
//! After a crash at any step the next recovery starts from the same state, or from one that is further on: the tail is
//! rewritten with the same bytes, redo is idempotent (REC-5), undo is logged (REC-9), and an epoch may have no records.
//!
//! # Not here
//! The table of transactions, and their undo in memory (the layer above).

pub mod analysis;
mod checkpoints;
pub mod control;
pub mod create;
mod open;
pub mod progress;
mod redo;
mod redo_batch;
pub mod saved;
mod standing;
pub mod taken;

pub use analysis::{CommitBody, Findings, Loser};
pub(crate) use checkpoints::Checkpoints;
pub(crate) use create::FIRST_LSN;
pub use open::Recovered;
pub(crate) use open::{Opened, open};
pub use saved::{PendingChain, PendingDrop};

/// The figures of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryReport {
    /// The database had been closed properly.
    pub clean: bool,
    /// Records read.
    pub records: u64,
    /// Bytes of log read by analysis.
    pub log_bytes: u64,
    /// How long analysis took, in nanoseconds.
    pub analysis_ns: u64,
    /// How long redo took, in nanoseconds.
    pub redo_ns: u64,
    /// Page operations read.
    pub ops_seen: u64,
    /// Page operations applied.
    pub ops_applied: u64,
    /// Pages restored from the double-write area.
    pub pages_restored: usize,
}
