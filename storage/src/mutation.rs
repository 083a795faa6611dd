//! Planted mistakes, to prove that the sweeps of crashes find them. Always compiled in, reachable only with the feature
//! `mutations`; one at a time, for the whole process.

use std::sync::atomic::{AtomicU8, Ordering};

/// One planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// None.
    None = 0,
    /// The log is written and not synced before commits are acknowledged.
    SkipLogSync = 1,
    /// Compensation records do not name the next record to undo.
    NoUndoNext = 2,
    /// Redo applies a record whatever the page's LSN is.
    RedoAlways = 3,
    /// A checkpoint does not save the undo of old transactions.
    NoSavedUndo = 4,
    /// The control file points to a checkpoint before that is synced.
    ControlBeforeCheckpoint = 5,
    /// Pages are written before the log that changed them is durable.
    PageBeforeLog = 6,
    /// The valid tail is not rewritten at opening.
    NoTailRewrite = 7,
    /// Opening after a crash keeps the epoch.
    SameEpoch = 8,
    /// Log is recycled up to the checkpoint's begin, whatever redo needs.
    RecycleTooMuch = 9,
    /// Pending frees are not carried by checkpoints.
    DropPendingFrees = 10,
    /// Recovery does not undo losers.
    NoLosers = 11,
    /// Redo starts at the checkpoint's begin, whatever dirty pages there were.
    RedoFromBegin = 12,
    /// Redo applies the changes of a page in another order than that of the log.
    RedoOutOfOrder = 13,
    /// A descent goes on at the page that it waited for, and trusts its pointers: page reuse after a miss.
    ResumeAfterMiss = 32,
    /// Optimistic readers do not validate.
    NoValidation = 33,
    /// Pages are overwritten in place without a twin.
    NoTwins = 34,
    /// A separator goes into a parent without a look whether its node is alive.
    SeparatorUnseen = 35,
    /// A merge does not look whether its nodes still are neighbours under one parent.
    MergeUnseen = 36,
}

/// Those of pages and trees; the tests of `btree` look for them.
pub const TREES: [Mutation; 4] =
    [Mutation::ResumeAfterMiss, Mutation::NoValidation, Mutation::NoTwins, Mutation::PageBeforeLog];

/// Those that need threads to be switched between any two steps; the workspace `storage/interleave/` looks for them.
pub const INTERLEAVED: [Mutation; 4] =
    [Mutation::ResumeAfterMiss, Mutation::NoValidation, Mutation::SeparatorUnseen, Mutation::MergeUnseen];

/// Those of log and recovery.
pub const ALL: [Mutation; 13] = [
    Mutation::SkipLogSync,
    Mutation::NoUndoNext,
    Mutation::RedoAlways,
    Mutation::NoSavedUndo,
    Mutation::ControlBeforeCheckpoint,
    Mutation::PageBeforeLog,
    Mutation::NoTailRewrite,
    Mutation::SameEpoch,
    Mutation::RecycleTooMuch,
    Mutation::DropPendingFrees,
    Mutation::NoLosers,
    Mutation::RedoFromBegin,
    Mutation::RedoOutOfOrder,
];

static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Plants one; [`Mutation::None`] takes it back.
pub fn plant(mutation: Mutation) {
    let possible = cfg!(feature = "mutations");
    assert!(possible, "mistakes can be planted only with the feature `mutations`");
    PLANTED.store(mutation as u8, Ordering::SeqCst);
}

/// Whether this one is planted. Constantly false without the feature.
pub fn active(mutation: Mutation) -> bool {
    cfg!(feature = "mutations") && PLANTED.load(Ordering::Relaxed) == mutation as u8
}
