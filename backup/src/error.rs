//! What can go wrong with backups.

use clearway_storage::error::StorageError;

/// An error of a backup, an archive or a restore.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackupError {
    /// The place where objects are kept did not do what it was asked for.
    #[error("{place}: {error}")]
    Target {
        /// The object, with its place.
        place: String,
        /// The reason.
        error: String,
    },
    /// There is no such object.
    #[error("{0}: no such object")]
    NotFound(String),
    /// The object was to be new.
    #[error("{0}: there is an object of this name")]
    Exists(String),
    /// An object is not what was put there.
    #[error("damage in {name}: expected {expected}, found {found}")]
    Damaged {
        /// The object.
        name: String,
        /// What should be there.
        expected: String,
        /// What is.
        found: String,
    },
    /// The database.
    #[error("{0}")]
    Storage(StorageError),
    /// The server, or the way to it.
    #[error("{0}")]
    Source(String),
    /// What was asked for can't be done.
    #[error("{0}")]
    Refused(String),
}

impl From<StorageError> for BackupError {
    fn from(error: StorageError) -> Self {
        BackupError::Storage(error)
    }
}

impl BackupError {
    /// Damage of an object.
    pub fn damaged(name: &str, expected: impl Into<String>, found: impl Into<String>) -> BackupError {
        BackupError::Damaged { name: name.to_owned(), expected: expected.into(), found: found.into() }
    }

    /// Something that is not done, in words.
    pub fn refused(why: impl Into<String>) -> BackupError {
        BackupError::Refused(why.into())
    }
}

/// The result of what this crate does.
pub type Result<T> = std::result::Result<T, BackupError>;
