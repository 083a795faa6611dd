//! What can go wrong in storage, and what damaged bytes look like.

use crate::ids::{Lsn, PageId, TreeId};
use clearway_base::vfs::VfsError;
use std::fmt;
use std::sync::Arc;

/// Bytes from disk that are not what was written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The file, as its path.
    pub file: String,
    /// Where in the file the bytes lie, if that is known.
    pub offset: Option<u64>,
    /// The page, if the bytes belong to one.
    pub page: Option<PageId>,
    /// The log position that the bytes claim or belong to.
    pub lsn: Option<Lsn>,
    /// What was expected there.
    pub expected: String,
    /// What was found instead.
    pub found: String,
}

impl Corruption {
    /// Damage in a page, found without knowledge of its file.
    pub fn in_page(page: PageId, lsn: Lsn, expected: impl Into<String>, found: impl Into<String>) -> Corruption {
        Corruption {
            file: String::new(),
            offset: None,
            page: Some(page),
            lsn: Some(lsn),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// The same with the file's name.
    pub fn in_file(self, file: impl Into<String>) -> Corruption {
        Corruption { file: file.into(), ..self }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corruption")?;
        if !self.file.is_empty() {
            write!(f, " in {}", self.file)?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        if let Some(page) = self.page {
            write!(f, ", page {page}")?;
        }
        if let Some(lsn) = self.lsn {
            write!(f, ", LSN {lsn}")?;
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}

/// An error of the storage layer.
#[derive(Clone, Debug)]
pub enum StorageError {
    /// A file operation failed.
    Io(Arc<VfsError>),
    /// Bytes on disk are damaged.
    Corruption(Arc<Corruption>),
    /// The database has stopped after a failed sync or a panic in a background thread; what was said then.
    Poisoned(Arc<str>),
    /// No space left for pages or log.
    NoSpace(Arc<str>),
    /// A key longer than trees hold.
    KeyTooLong {
        /// Its length in bytes.
        len: usize,
        /// The greatest length in bytes.
        max: usize,
    },
    /// A value longer than storage holds.
    ValueTooLong {
        /// Its length in bytes.
        len: usize,
        /// The greatest length in bytes.
        max: usize,
    },
    /// No tree has this id.
    NoSuchTree(TreeId),
    /// What was asked for is not allowed in this state.
    Invalid(Arc<str>),
    /// Another process, or another opening in this one, has the directory open.
    Held {
        /// The directory.
        dir: Arc<str>,
        /// The process that holds it; 0 if its lock file does not tell.
        pid: u32,
    },
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Io(error) => write!(f, "{error}"),
            StorageError::Corruption(corruption) => write!(f, "{corruption}"),
            StorageError::Poisoned(why) => write!(f, "the database has stopped: {why}"),
            StorageError::NoSpace(what) => write!(f, "no space left for {what}"),
            StorageError::KeyTooLong { len, max } => {
                write!(f, "a key of {len} bytes is longer than the greatest key, {max} bytes")
            }
            StorageError::ValueTooLong { len, max } => {
                write!(f, "a value of {len} bytes is longer than the greatest value, {max} bytes")
            }
            StorageError::NoSuchTree(tree) => write!(f, "no tree has the id {tree}"),
            StorageError::Invalid(what) => f.write_str(what),
            StorageError::Held { dir, pid: 0 } => write!(f, "{dir} is open in another process"),
            StorageError::Held { dir, pid } => write!(f, "{dir} is open in process {pid}"),
        }
    }
}

impl std::error::Error for StorageError {}

impl From<VfsError> for StorageError {
    fn from(error: VfsError) -> Self {
        StorageError::Io(Arc::new(error))
    }
}

impl From<Corruption> for StorageError {
    fn from(corruption: Corruption) -> Self {
        StorageError::Corruption(Arc::new(corruption))
    }
}
