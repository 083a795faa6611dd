//! The mutations: clauses of the protocol that can be left out one by one, to prove that the checker would notice.

/// One clause left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mutation {
    /// Rows are returned without waiting until `durable_lsn >= dep_lsn`.
    NoDepWaitRows,
    /// The count of an autocommit statement that changed nothing does not wait.
    NoDepWaitCounts,
    /// An error does not wait.
    NoDepWaitErrors,
    /// A ghost that was inspected does not count towards `dep_lsn`.
    NoDepWaitGhosts,
    /// The catalog version that was used does not count towards `dep_lsn`.
    NoDepWaitCatalog,
    /// The end of a transaction that changed nothing does not wait.
    NoDepWaitEnds,
    /// A commit is acknowledged before it is durable.
    CommitNotAwaited,
    /// The horizon of pruning and purging ignores `durable_lsn`.
    PurgeBeforeDurable,
    /// The horizon ignores active snapshots.
    PurgeIgnoresSnapshots,
    /// A reader trusts its copy of a row after resolving the tag, without validating the page again.
    NoPageRevalidation,
    /// A reader goes on with its copy of a row after it waited for undo in the spill file.
    NoRestartAfterAwait,
    /// Undo of changes taken back is dropped at once, without waiting for readers to leave their epochs.
    RetireBeforeEpochs,
    /// An aborting transaction retires its id before its changes are taken back.
    RetireBeforeUndo,
    /// Rolling a transaction back writes no compensation records.
    NoCompensationTransaction,
    /// Rolling back to a savepoint writes no compensation records.
    NoCompensationSavepoint,
    /// Taking back a failed statement writes no compensation records.
    NoCompensationStatement,
    /// Recovery takes losers back without compensation records.
    NoCompensationRecovery,
    /// A lock is handed over without the commit LSN of its last holder.
    LockWithoutLsn,
    /// An advisory lock is let go when the commit record is reserved, not at durability.
    AdvisoryLockReleasedEarly,
    /// A snapshot begins without looking at the horizon again after it was stored.
    SnapshotNotRechecked,
    /// The pruner looks at the active snapshots first and publishes its horizon afterwards.
    HorizonPublishedLate,
    /// The pruner publishes the oldest active snapshot as its horizon, although it drops versions between snapshots above.
    HorizonPublishedLow,
    /// `visible_lsn` advances past commits whose LSN is not in their slot yet.
    VisibleWithHoles,
    /// A writer acts on a commit whose LSN is in its slot before `visible_lsn` covers it.
    WriterAheadOfVisible,
    /// The flusher may take a commit record before `visible_lsn` covers it.
    FlushBeforeVisible,
    /// A read-only statement reads at `durable_lsn` even if the session's own last commit lies above.
    OwnCommitIgnored,
    /// A dirty page is written before the log of its changes is durable.
    StealBeforeFlush,
    /// A checkpoint saves no undo.
    CheckpointWithoutUndo,
    /// A checkpoint counts before any log is durable.
    CheckpointBeforeFlush,
    /// A checkpoint waits for the log up to its position only, not up to where its undo was saved later.
    CheckpointSavesAheadOfLog,
    /// A checkpoint takes its own position as the start of redo, whatever pages are dirty.
    CheckpointIgnoresDirtyPages,
    /// A checkpoint does not save the high-water mark of undo addresses.
    MarkNotSaved,
    /// Records of changes do not contain the tag that they write.
    TagNotLogged,
    /// Recovery serves the tail of the log that it found without syncing it.
    TailNotSynced,
    /// Recovery opens without rebuilding the undo of the losers.
    LosersNotRebuilt,
}

use Mutation as M;

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 35] = [
        M::NoDepWaitRows,
        M::NoDepWaitCounts,
        M::NoDepWaitErrors,
        M::NoDepWaitGhosts,
        M::NoDepWaitCatalog,
        M::NoDepWaitEnds,
        M::CommitNotAwaited,
        M::PurgeBeforeDurable,
        M::PurgeIgnoresSnapshots,
        M::NoPageRevalidation,
        M::NoRestartAfterAwait,
        M::RetireBeforeEpochs,
        M::RetireBeforeUndo,
        M::NoCompensationTransaction,
        M::NoCompensationSavepoint,
        M::NoCompensationStatement,
        M::NoCompensationRecovery,
        M::LockWithoutLsn,
        M::AdvisoryLockReleasedEarly,
        M::SnapshotNotRechecked,
        M::HorizonPublishedLate,
        M::HorizonPublishedLow,
        M::VisibleWithHoles,
        M::WriterAheadOfVisible,
        M::FlushBeforeVisible,
        M::OwnCommitIgnored,
        M::StealBeforeFlush,
        M::CheckpointWithoutUndo,
        M::CheckpointBeforeFlush,
        M::CheckpointSavesAheadOfLog,
        M::CheckpointIgnoresDirtyPages,
        M::MarkNotSaved,
        M::TagNotLogged,
        M::TailNotSynced,
        M::LosersNotRebuilt,
    ];
}

/// A set of planted mutations; the design itself is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Planted(u64);

impl Planted {
    /// The design as it stands.
    pub const NONE: Planted = Planted(0);

    /// These mutations together.
    pub fn of(mutations: &[Mutation]) -> Planted {
        Planted(mutations.iter().fold(0, |set, &mutation| set | 1 << mutation as u8))
    }

    /// Whether `mutation` is planted.
    pub fn has(self, mutation: Mutation) -> bool {
        self.0 & (1 << mutation as u8) != 0
    }
}
