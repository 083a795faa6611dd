//! The changes and locks that a caller may request for a row, and their outcomes.

use clearway_storage::ids::Lsn;

use crate::lockmgr::LockMode;
use crate::mvcc::book::View;
use crate::mvcc::fate::{Fate, Moment};

/// How the caller knows the row that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It has read the row in a view; if the newest version is another one, nothing is changed.
    Read(View),
    /// It has locked the row and read the newest version since.
    Locked,
}

/// A change of one row.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Inserts a row at a key without one.
    Insert {
        /// The row's value.
        value: &'a [u8],
    },
    /// Replaces the row's value.
    Update {
        /// The new value.
        value: &'a [u8],
        /// The mode of the lock that the update implies.
        strength: LockMode,
    },
    /// Deletes the row.
    Delete {
        /// The row's new key, if the delete is half of a change of the key.
        moved_to: Option<&'a [u8]>,
    },
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// Nothing was changed: the newest version is not the one that was read, or there is none. The caller locks the row and reads it again.
    /// For an insert: the transaction's snapshot shows a row at the key, and its readers expect one row there (TXN-7).
    Newer,
    /// Nothing was inserted: a row stands at the key.
    Exists {
        /// Whether this transaction wrote it.
        mine: bool,
    },
    /// Nothing was changed: this statement changed the row already.
    Again,
}

/// Which of the rows that stood at a key is meant: the row at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The moment.
    pub moment: Moment,
    /// The transaction's own changes below this position were seen.
    pub mark: u32,
}

impl From<&View> for Since {
    fn from(view: &View) -> Since {
        Since { moment: view.into(), mark: view.mark }
    }
}

/// The newest version of a row that is locked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRow {
    /// Its value; a reference if `overflow`. Empty for a ghost.
    pub value: Vec<u8>,
    /// The value is a reference to an overflow chain.
    pub overflow: bool,
    /// The row has been deleted.
    pub ghost: bool,
    /// When its newest version was committed; zero if every snapshot sees it or the transaction wrote it itself.
    pub commit: Lsn,
    /// The version is the transaction's own change at this position.
    pub mine: Option<u32>,
    /// The row's new key, if a change of the key deleted it here.
    pub moved_to: Option<Box<[u8]>>,
    /// The fate of the row since the moment that was asked for. If the row has ended, only this field is meaningful, and nothing is locked.
    pub fate: Fate,
}
