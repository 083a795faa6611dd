//! The scenarios, each with the mutations that it must find.

use super::mutation::Mutation as M;
use super::program::{Bounds, Change, Op, Scenario};
use super::state::Body;
use Body::{Absent, Value};
use Change::{Delete, Insert, Update};

/// The table is empty but for r0 = 1 and r1 = 2; each row has a page of its own, r2 shares one with r1.
const BASE: Scenario = Scenario {
    name: "",
    about: "",
    rows: [Value(1), Value(2), Absent, Value(1)],
    pages: [0, 1, 1],
    programs: [&[], &[], &[]],
    after: &[],
    asynchronous: [false; 3],
    catalog: false,
    bounds: Bounds {
        crashes: 1,
        steal: false,
        prune: false,
        retire: false,
        checkpoints: 0,
        spills: 0,
        fine_rows: false,
        fine_snapshots: false,
    },
    kills: &[],
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "hot row",
        about: "three transactions update one row one after the other and read it, in a block and outside",
        programs: [
            &[Op::Write(&[(0, Update(5))]), Op::Select(&[0, 1])],
            &[Op::Begin, Op::Select(&[0]), Op::Write(&[(0, Update(6))]), Op::Select(&[0]), Op::Commit],
            &[Op::Begin, Op::Select(&[0, 1]), Op::Write(&[(1, Update(7))]), Op::Rollback],
        ],
        bounds: Bounds { steal: true, ..BASE.bounds },
        kills: &[
            M::NoDepWaitRows,
            M::CommitNotAwaited,
            M::StealBeforeFlush,
            M::TagNotLogged,
            M::LosersNotRebuilt,
            M::FlushBeforeVisible,
            M::NoCompensationTransaction,
            M::RetireBeforeUndo,
        ],
        ..BASE
    },
    Scenario {
        name: "commit section",
        about: "two commits of different rows between reservation and visibility, while a third session reads both rows",
        programs: [
            &[Op::Write(&[(0, Update(5))])],
            &[Op::Write(&[(1, Update(6))])],
            &[Op::Begin, Op::Select(&[0, 1]), Op::Select(&[0, 1]), Op::Commit, Op::Select(&[0, 1])],
        ],
        bounds: Bounds { prune: true, ..BASE.bounds },
        kills: &[M::VisibleWithHoles, M::FlushBeforeVisible, M::NoDepWaitRows],
        ..BASE
    },
    Scenario {
        name: "ghosts",
        about: "a row is deleted, its ghost found, purged or written over, while a block reads it",
        programs: [
            &[Op::Write(&[(0, Delete)])],
            &[Op::Begin, Op::Select(&[0]), Op::Select(&[0]), Op::Commit],
            &[Op::Write(&[(0, Insert(6))])],
        ],
        bounds: Bounds { prune: true, ..BASE.bounds },
        kills: &[M::NoDepWaitGhosts, M::PurgeBeforeDurable, M::NoDepWaitRows],
        ..BASE
    },
    Scenario {
        name: "reading after writing",
        about: "a block changes rows that others have just changed, takes that back, and reads them",
        programs: [
            &[Op::Write(&[(0, Delete)])],
            &[
                Op::Begin,
                Op::Savepoint,
                Op::Write(&[(0, Update(5)), (1, Update(7))]),
                Op::RollbackToSavepoint,
                Op::Select(&[0, 1]),
                Op::Commit,
            ],
            &[Op::Write(&[(1, Update(6))])],
        ],
        bounds: BASE.bounds,
        kills: &[M::WriterAheadOfVisible, M::NoDepWaitRows],
        ..BASE
    },
    Scenario {
        name: "counts",
        about: "a delete and an insert, early visible; autocommit statements that change nothing count rows",
        programs: [
            &[Op::Write(&[(0, Delete)])],
            &[Op::Write(&[(0, Update(5))]), Op::Write(&[(2, Update(6))])],
            &[Op::Write(&[(2, Insert(4))])],
        ],
        bounds: Bounds { prune: true, ..BASE.bounds },
        kills: &[M::NoDepWaitCounts, M::NoDepWaitGhosts, M::PurgeBeforeDurable],
        ..BASE
    },
    Scenario {
        name: "errors",
        about: "duplicate keys and serialization failures, with changes of the failed statement to take back",
        programs: [
            &[Op::Begin, Op::Write(&[(2, Insert(4)), (0, Update(5))]), Op::Commit],
            &[Op::Write(&[(1, Update(6)), (2, Insert(7))])],
            &[Op::BeginRepeatableRead, Op::Select(&[0]), Op::Write(&[(0, Update(8))]), Op::Commit],
        ],
        bounds: Bounds { steal: true, ..BASE.bounds },
        kills: &[M::NoDepWaitErrors, M::NoCompensationTransaction],
        ..BASE
    },
    Scenario {
        name: "ends",
        about: "the bare command tags of an open block are answered at once; its end waits for what they told",
        programs: [
            &[Op::Write(&[(0, Delete)])],
            &[Op::Begin, Op::Write(&[(0, Update(5))]), Op::Commit],
            &[Op::Begin, Op::Write(&[(1, Update(6))]), Op::Write(&[(0, Update(7))]), Op::Rollback],
        ],
        bounds: Bounds { prune: true, ..BASE.bounds },
        kills: &[M::NoDepWaitEnds, M::NoDepWaitGhosts],
        ..BASE
    },
    Scenario {
        name: "catalog",
        about: "a table is dropped and statements meet the catalog before and after; recovery undoes the catalog first",
        catalog: true,
        programs: [
            &[Op::Begin, Op::Write(&[(3, Delete)]), Op::Commit],
            &[Op::Write(&[(0, Update(5))])],
            &[Op::Select(&[0]), Op::Begin, Op::Select(&[1]), Op::Write(&[(1, Update(6))]), Op::Commit],
        ],
        after: &[Op::Select(&[0]), Op::Write(&[(1, Update(9))])],
        bounds: Bounds { steal: true, ..BASE.bounds },
        kills: &[M::NoDepWaitCatalog, M::NoDepWaitErrors],
        ..BASE
    },
    Scenario {
        name: "savepoints",
        about: "changes taken back to a savepoint, a failed statement in a block, then commit; another session reads",
        programs: [
            &[
                Op::Begin,
                Op::Write(&[(1, Update(5))]),
                Op::Savepoint,
                Op::Write(&[(0, Update(6))]),
                Op::Write(&[(1, Update(7))]),
                Op::RollbackToSavepoint,
                Op::Commit,
            ],
            &[Op::Write(&[(1, Update(8))])],
            &[Op::Select(&[0, 1])],
        ],
        bounds: Bounds { steal: true, ..BASE.bounds },
        kills: &[M::NoCompensationSavepoint],
        ..BASE
    },
    Scenario {
        name: "failed statements",
        about: "a statement of a block fails half way; the block goes on and commits",
        programs: [
            &[
                Op::Begin,
                Op::Write(&[(1, Update(5))]),
                Op::Write(&[(1, Update(6)), (2, Insert(8)), (0, Insert(9))]),
                Op::Select(&[1, 2]),
                Op::Commit,
            ],
            &[Op::Write(&[(2, Insert(7))])],
            &[],
        ],
        bounds: Bounds { steal: true, retire: true, ..BASE.bounds },
        kills: &[M::NoCompensationStatement],
        ..BASE
    },
    Scenario {
        name: "revalidation",
        about: "readers and unique checks copy rows, resolve tags and validate pages while writers roll back",
        rows: [Value(1), Absent, Absent, Value(1)],
        programs: [
            &[Op::Begin, Op::Savepoint, Op::Write(&[(1, Insert(5))]), Op::RollbackToSavepoint, Op::Commit],
            &[Op::Write(&[(1, Insert(6))])],
            &[Op::Select(&[0, 1])],
        ],
        bounds: Bounds { prune: true, retire: true, fine_rows: true, ..BASE.bounds },
        kills: &[M::NoPageRevalidation],
        ..BASE
    },
    Scenario {
        name: "retiring",
        about: "a transaction aborts and its undo is dropped while readers hold copies of its rows",
        programs: [
            &[Op::Begin, Op::Write(&[(0, Update(5))]), Op::Write(&[(1, Update(6))]), Op::Rollback],
            &[Op::Select(&[0, 1])],
            &[Op::Write(&[(1, Update(7))])],
        ],
        bounds: Bounds { retire: true, fine_rows: true, ..BASE.bounds },
        kills: &[M::RetireBeforeUndo],
        ..BASE
    },
    Scenario {
        name: "spilled undo",
        about: "undo goes to the spill file while readers resolve tags; the writer rolls back during their wait",
        programs: [
            &[Op::Begin, Op::Write(&[(0, Update(5))]), Op::Rollback],
            &[Op::Select(&[0])],
            &[Op::Write(&[(0, Update(7))])],
        ],
        bounds: Bounds { retire: true, prune: true, spills: 2, fine_rows: true, ..BASE.bounds },
        kills: &[M::NoRestartAfterAwait],
        ..BASE
    },
    Scenario {
        name: "beginning a snapshot",
        about: "load, store, fence, re-load on one side; publish, fence, scan, prune on the other",
        programs: [&[Op::Write(&[(0, Update(5))]), Op::Write(&[(1, Delete)])], &[Op::Select(&[0, 1])], &[]],
        bounds: Bounds { prune: true, fine_snapshots: true, ..BASE.bounds },
        kills: &[M::SnapshotNotRechecked, M::HorizonPublishedLate, M::PurgeIgnoresSnapshots],
        ..BASE
    },
    Scenario {
        name: "between snapshots",
        about: "versions between an old snapshot and the newest are dropped while another snapshot begins there",
        programs: [
            &[Op::Write(&[(0, Update(5))]), Op::Write(&[(0, Update(6))])],
            &[Op::BeginRepeatableRead, Op::Select(&[1]), Op::Select(&[0]), Op::Commit],
            &[Op::Select(&[0])],
        ],
        bounds: Bounds { prune: true, fine_snapshots: true, ..BASE.bounds },
        kills: &[M::HorizonPublishedLow, M::SnapshotNotRechecked],
        ..BASE
    },
    Scenario {
        name: "table lock",
        about: "a table is filled under LOCK TABLE; whoever gets the lock next reads it, in a READ ONLY block too",
        programs: [
            &[Op::Begin, Op::LockTable, Op::Write(&[(2, Insert(5))]), Op::Commit],
            &[Op::BeginReadOnly, Op::LockTable, Op::Select(&[0, 2]), Op::Commit],
            &[Op::Begin, Op::LockTable, Op::Select(&[2]), Op::Write(&[(0, Update(6))]), Op::Commit],
        ],
        bounds: Bounds { prune: true, ..BASE.bounds },
        kills: &[M::LockWithoutLsn],
        ..BASE
    },
    Scenario {
        name: "advisory lock",
        about: "an advisory lock guards rows between sessions that read outside of blocks; one commits with off",
        programs: [
            &[Op::Begin, Op::LockAdvisory, Op::Write(&[(0, Update(5))]), Op::Commit],
            &[Op::LockAdvisory, Op::Select(&[0])],
            &[Op::Begin, Op::LockAdvisory, Op::Write(&[(1, Update(6))]), Op::Commit, Op::Select(&[0])],
        ],
        asynchronous: [true, false, false],
        bounds: BASE.bounds,
        kills: &[M::AdvisoryLockReleasedEarly],
        ..BASE
    },
    Scenario {
        name: "own commits",
        about: "synchronous_commit = off: the session reads its own commit although it is not durable",
        programs: [
            &[Op::Write(&[(0, Update(5))]), Op::Select(&[0, 1])],
            &[Op::Write(&[(1, Update(6))])],
            &[Op::Select(&[0, 1])],
        ],
        asynchronous: [true, false, false],
        bounds: Bounds { prune: true, ..BASE.bounds },
        kills: &[M::OwnCommitIgnored],
        ..BASE
    },
    Scenario {
        name: "checkpoints",
        about: "two checkpoints during a long transaction that partly rolls back; pages are written at any time",
        programs: [
            &[
                Op::Begin,
                Op::Write(&[(0, Update(5))]),
                Op::Savepoint,
                Op::Write(&[(1, Update(6))]),
                Op::RollbackToSavepoint,
                Op::Commit,
            ],
            &[Op::Write(&[(1, Update(7))])],
            &[],
        ],
        bounds: Bounds { steal: true, checkpoints: 2, ..BASE.bounds },
        kills: &[
            M::CheckpointWithoutUndo,
            M::CheckpointBeforeFlush,
            M::CheckpointSavesAheadOfLog,
            M::CheckpointIgnoresDirtyPages,
        ],
        ..BASE
    },
    Scenario {
        name: "undo addresses",
        about: "after recovery new changes get undo addresses that no tag on disk has",
        programs: [&[Op::Write(&[(0, Update(5))])], &[], &[]],
        after: &[Op::Begin, Op::Write(&[(1, Update(6))]), Op::Select(&[0, 1]), Op::Rollback],
        bounds: Bounds { crashes: 2, steal: true, checkpoints: 2, ..BASE.bounds },
        kills: &[M::MarkNotSaved],
        ..BASE
    },
    Scenario {
        name: "crash during recovery",
        about: "recovery takes back two losers while a new session works; a second crash at every step",
        programs: [
            &[Op::Begin, Op::Write(&[(0, Update(5))]), Op::Write(&[(1, Update(6))]), Op::Rollback],
            &[Op::Write(&[(2, Insert(7))])],
            &[],
        ],
        after: &[Op::Select(&[0, 1, 2]), Op::Write(&[(0, Update(8))]), Op::Select(&[0])],
        bounds: Bounds { crashes: 2, steal: true, retire: true, ..BASE.bounds },
        kills: &[M::NoCompensationRecovery, M::TailNotSynced, M::TagNotLogged],
        ..BASE
    },
    Scenario {
        name: "everything at once",
        about: "two writers, a savepoint, a ghost and a reader under every background activity",
        programs: [
            &[
                Op::Begin,
                Op::Write(&[(0, Delete)]),
                Op::Savepoint,
                Op::Write(&[(1, Update(5))]),
                Op::RollbackToSavepoint,
                Op::Commit,
            ],
            &[Op::Write(&[(0, Insert(6))])],
            &[],
        ],
        bounds: Bounds {
            crashes: 1,
            steal: true,
            prune: true,
            retire: false,
            checkpoints: 1,
            spills: 0,
            fine_rows: true,
            fine_snapshots: false,
        },
        kills: &[M::NoCompensationSavepoint, M::StealBeforeFlush],
        ..BASE
    },
];

/// The scenario with this name.
///
/// # Panics
/// When there is none.
pub fn named(name: &str) -> &'static Scenario {
    SCENARIOS.iter().find(|scenario| scenario.name == name).expect("a scenario's name")
}

/// The first scenario that must find `mutation`.
pub fn killer_of(mutation: M) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.kills.contains(&mutation))
}
