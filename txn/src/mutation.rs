//! Planted mistakes: steps of the protocol that can be left out one by one, to prove that the tests find each. Always compiled in,
//! reachable only with the feature `mutations`; one at a time, for the whole process.

use std::sync::atomic::{AtomicU8, Ordering};

/// One clause left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// None.
    None = 0,
    /// Rows go out without waiting for the commits that made them.
    NoDepWaitRows = 1,
    /// The count of a statement that changed nothing does not wait.
    NoDepWaitCounts = 2,
    /// An error does not wait for what caused it.
    NoDepWaitErrors = 3,
    /// A ghost that was inspected does not count.
    NoDepWaitGhosts = 4,
    /// The version of the catalog that was used does not count.
    NoDepWaitCatalog = 5,
    /// Pruning and purging ignore whether a commit is durable.
    PurgeBeforeDurable = 6,
    /// A reader trusts its copy of a row after resolving the tag, without validating the page again.
    NoPageRevalidation = 7,
    /// A lock is handed over without the commit LSN of its last holder.
    LockWithoutLsn = 8,
    /// A rollback to a savepoint gives up the locks of rows that were changed before it.
    SavepointGivesLocks = 9,
    /// The latest change of a row speaks for those before it by the same transaction.
    LatestStrength = 10,
    /// A new row may stand where the snapshot shows one that was deleted since, and hides that one.
    RowOverDeleted = 11,
    /// A foreign key's check or action does not lock the table that it reads or changes.
    KeysLockNoTable = 12,
    /// An insert of a key waits for a transaction that has only locked the row at the key.
    InsertWaitsForLocker = 13,
    /// A waiter does not follow a row that has got another key.
    VersionNotFollowed = 14,
}

/// Those that the lock-step tester finds, by the names in its environment variable `CLEARWAY_PLANTED`.
pub const LOCKSTEP: [(&str, Mutation); 4] = [
    ("KeysLockNoTable", Mutation::KeysLockNoTable),
    ("InsertWaitsForLocker", Mutation::InsertWaitsForLocker),
    ("VersionNotFollowed", Mutation::VersionNotFollowed),
    ("RowOverDeleted", Mutation::RowOverDeleted),
];

/// Those that the histories find.
pub const ALL: [Mutation; 11] = [
    Mutation::NoDepWaitRows,
    Mutation::NoDepWaitCounts,
    Mutation::NoDepWaitErrors,
    Mutation::NoDepWaitGhosts,
    Mutation::NoDepWaitCatalog,
    Mutation::PurgeBeforeDurable,
    Mutation::NoPageRevalidation,
    Mutation::LockWithoutLsn,
    Mutation::SavepointGivesLocks,
    Mutation::LatestStrength,
    Mutation::RowOverDeleted,
];

static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Plants one; [`Mutation::None`] takes it back.
///
/// # Panics
/// Without the feature `mutations`.
pub fn plant(mutation: Mutation) {
    let possible = cfg!(feature = "mutations");
    assert!(possible, "mistakes can be planted only with the feature `mutations`");
    PLANTED.store(mutation as u8, Ordering::SeqCst);
}

/// Whether this one is planted. Constantly false without the feature.
#[inline]
pub fn active(mutation: Mutation) -> bool {
    cfg!(feature = "mutations") && PLANTED.load(Ordering::Relaxed) == mutation as u8
}

#[cfg(feature = "mutations")]
thread_local! {
    static STOP: std::cell::RefCell<Option<Box<dyn FnOnce()>>> = const { std::cell::RefCell::new(None) };
}

/// What is to happen once, the next time that a reader on this thread has copied a row and not yet resolved its tag.
#[cfg(feature = "mutations")]
pub fn at_copied_row(stop: impl FnOnce() + 'static) {
    STOP.with(|cell| *cell.borrow_mut() = Some(Box::new(stop)));
}

/// A reader has copied a row and not yet resolved its tag.
#[inline]
pub(crate) fn copied_row() {
    #[cfg(feature = "mutations")]
    {
        let stop = STOP.with(|cell| cell.borrow_mut().take());
        if let Some(stop) = stop {
            stop();
        }
    }
}
