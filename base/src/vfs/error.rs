//! What can go wrong with a file, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operation that failed, or that a fault is planted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named after the methods of Vfs and VfsFile")]
pub enum OpKind {
    Open,
    Remove,
    Rename,
    CreateDir,
    SyncDir,
    List,
    Lock,
    Read,
    Write,
    SyncData,
    Len,
    Mode,
    SetMode,
    SetLen,
    Preallocate,
}

impl OpKind {
    /// The name as it stands in error messages.
    pub fn name(self) -> &'static str {
        match self {
            OpKind::Open => "open",
            OpKind::Remove => "remove",
            OpKind::Rename => "rename",
            OpKind::CreateDir => "create directory",
            OpKind::SyncDir => "sync directory",
            OpKind::List => "list",
            OpKind::Lock => "lock",
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::SyncData => "sync",
            OpKind::Len => "length of",
            OpKind::Mode => "read the mode of",
            OpKind::SetMode => "change the mode of",
            OpKind::SetLen => "set length of",
            OpKind::Preallocate => "preallocate",
        }
    }
}

/// The source of an error on a simulated disk whose power is off.
#[derive(Debug)]
pub struct PowerOff;

impl fmt::Display for PowerOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the simulated disk is without power")
    }
}

impl std::error::Error for PowerOff {}

/// A file operation failed. Cheap to clone, since a failure that poisons is told to many.
#[derive(Clone, Debug)]
pub struct VfsError {
    /// What was attempted.
    pub op: OpKind,
    /// On which file or directory.
    pub path: PathBuf,
    /// At which byte, for reads, writes and changes of length.
    pub offset: Option<u64>,
    /// The operating system's error.
    pub source: Arc<io::Error>,
}

impl VfsError {
    /// An error of an operation on the whole of `path`.
    pub fn new(op: OpKind, path: &Path, source: impl Into<io::Error>) -> Self {
        VfsError { op, path: path.to_path_buf(), offset: None, source: Arc::new(source.into()) }
    }

    /// The same at a byte offset.
    pub fn at(op: OpKind, path: &Path, offset: u64, source: impl Into<io::Error>) -> Self {
        VfsError { offset: Some(offset), ..VfsError::new(op, path, source) }
    }

    /// The kind of the system's error (`NotFound`, `StorageFull`, ...).
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether the disk or the quota is full; a failed sync never counts as that, for what it covered is in doubt.
    pub fn is_full(&self) -> bool {
        !self.is_sync() && matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether a sync failed, of a file or of a directory: never to be tried again.
    pub fn is_sync(&self) -> bool {
        matches!(self.op, OpKind::SyncData | OpKind::SyncDir)
    }

    /// Whether a simulated disk lost power: the caller is running in a world that no longer exists.
    pub fn is_power_off(&self) -> bool {
        self.source.get_ref().is_some_and(|inner| inner.is::<PowerOff>())
    }
}

impl fmt::Display for VfsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}", self.op.name(), self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.source)
    }
}

impl std::error::Error for VfsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// A lock was not obtained.
#[derive(Clone, Debug)]
pub enum LockError {
    /// Another process holds it: the process with this id, if the lock file tells.
    Held {
        /// Process id of the holder; 0 if it could not be read.
        pid: u32,
    },
    /// The lock file could not be opened or written.
    Io(VfsError),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { pid: 0 } => f.write_str("locked by another process"),
            LockError::Held { pid } => write!(f, "locked by process {pid}"),
            LockError::Io(err) => err.fmt(f),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LockError::Held { .. } => None,
            LockError::Io(err) => Some(err),
        }
    }
}
