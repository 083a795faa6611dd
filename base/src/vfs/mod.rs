//! The virtual file system: the only code that touches files.
//!
//! # Structure
//! ```text
//!   Vfs, VfsFile          traits that storage is written against
//!     real (+ pool)       the operating system: direct I/O, fdatasync, fallocate, flock
//!     mem                 files in memory, for `serve --memory` and quick tests
//!     overlay             changes in memory over files that are only read
//!     sim                 a disk that loses, tears, fails and fills up, from one seed
//!   IoOp                  one operation: a future, or performed at once by `wait`
//!   IoBuf                 an owned buffer aligned for direct I/O
//! ```
//!
//! # Invariants
//! - VFS-1: an operation begins no earlier than its first poll (or `wait`) and, once begun, owns its
//!   buffer until it ends; dropping the future never leaves a device writing into freed memory.
//! - VFS-2: a write is durable only after a `sync_data` that began after the write had ended.
//! - VFS-3: a name (created, renamed or removed) is durable only after `sync_dir` of its directory;
//!   for a rename, of both directories. Syncing the file does not make its name durable.
//! - VFS-4: a failed sync says nothing about what reached the device. It is never retried (the caller
//!   poisons the database).
//! - VFS-5: on a file opened for direct I/O, offsets and lengths are multiples of [`IO_ALIGN`],
//!   whether or not the file system really does direct I/O.
//! - VFS-9: a file that is created has mode 0600, a directory 0700, whatever the umask: both are their owner's alone.
//!
//! # Errors
//! Every failure is a [`VfsError`] that carries operation, path, offset and the system's error.
//!
//! # Not here
//! Sockets (server), formats of files (storage). No layer retries a failed operation.

mod booking;
mod buf;
mod error;
mod mode;
mod names;
mod op;

pub mod mem;
pub mod overlay;
pub mod pool;
pub mod real;
pub mod sim;

#[cfg(test)]
mod file_tests;

use std::path::Path;
use std::sync::Arc;

pub use booking::file_id;
pub use buf::IoBuf;
pub use error::{LockError, OpKind, PowerOff, VfsError};
pub use mem::MemVfs;
pub use mode::{InlineIo, IoMode, inline_io_here, io_mode};
pub use op::IoOp;
pub use overlay::Overlay;
pub use real::RealVfs;

/// Alignment, in bytes, of buffers, and of offsets and lengths on files opened for direct I/O.
pub const IO_ALIGN: usize = 4096;

/// The mode of a file that is created: its owner's alone.
pub const FILE_MODE: u32 = 0o600;
/// The mode of a directory that is created: its owner's alone.
pub const DIR_MODE: u32 = 0o700;

/// What a file holds; it decides under which wait events its operations are booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Segments of the write-ahead log.
    Wal,
    /// Pages of trees.
    Data,
    /// Copies of pages, written before the pages themselves.
    DoubleWrite,
    /// Spilled undo.
    Undo,
    /// What a checkpoint saves.
    Checkpoint,
    /// Small files written as a whole: control file, manifest.
    Control,
    /// The slow-query log and the server's log.
    Log,
    /// Everything else (temporary files, test data).
    Other,
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenHow {
    /// What the file holds.
    pub kind: FileKind,
    /// Create the file if it does not exist.
    pub create: bool,
    /// Create the file and fail with `AlreadyExists` if it does. Implies `create`.
    pub exclusive_create: bool,
    /// Bypass the page cache where the file system allows it; [`VfsFile::is_direct`] says whether it
    /// did. The alignment rule VFS-5 applies either way.
    pub direct: bool,
    /// Refuse writes.
    pub read_only: bool,
}

impl OpenHow {
    /// An existing file, for reading and writing, through the page cache.
    pub const fn existing(kind: FileKind) -> Self {
        OpenHow { kind, create: false, exclusive_create: false, direct: false, read_only: false }
    }

    /// An existing file, for reading only.
    pub const fn read_only(kind: FileKind) -> Self {
        OpenHow { read_only: true, ..OpenHow::existing(kind) }
    }

    /// The file, created empty if it does not exist.
    pub const fn create(kind: FileKind) -> Self {
        OpenHow { create: true, ..OpenHow::existing(kind) }
    }

    /// A new file; fails with `AlreadyExists` if the name is taken.
    pub const fn create_new(kind: FileKind) -> Self {
        OpenHow { create: true, exclusive_create: true, ..OpenHow::existing(kind) }
    }

    fn creates(self) -> bool {
        self.create || self.exclusive_create
    }

    /// The same, with direct I/O.
    pub const fn direct(self) -> Self {
        OpenHow { direct: true, ..self }
    }
}

/// What a directory entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The last component of the path. A name that is not UTF-8 (none of ours) is shown lossily.
    pub name: String,
    /// File or directory.
    pub kind: EntryKind,
    /// Length in bytes; 0 for a directory.
    pub size: u64,
}

/// A lock on a path against other processes (and other openings in this one); released when dropped.
pub struct DirLock {
    _held: Box<dyn Send + Sync>,
}

impl DirLock {
    fn new(held: impl Send + Sync + 'static) -> Self {
        DirLock { _held: Box::new(held) }
    }
}

impl std::fmt::Debug for DirLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirLock")
    }
}

/// A file in which the system tells something of itself (`/proc`, `/sys`); none if there is no such file. Not for data.
pub fn system_text(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// A file system.
pub trait Vfs: Send + Sync + 'static {
    /// Opens a file. A file that this call created has a durable name only after [`Vfs::sync_dir`].
    fn open(&self, path: &Path, how: OpenHow) -> IoOp<Arc<dyn VfsFile>>;

    /// Removes a file's name; the bytes go when the last handle goes.
    fn remove(&self, path: &Path) -> IoOp<()>;

    /// Renames a file, atomically replacing what bore the new name.
    fn rename(&self, from: &Path, to: &Path) -> IoOp<()>;

    /// Creates a directory; its parent must exist. Fails with `AlreadyExists`.
    fn create_dir(&self, path: &Path) -> IoOp<()>;

    /// Makes the names in a directory durable (VFS-3).
    fn sync_dir(&self, path: &Path) -> IoOp<()>;

    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> IoOp<Vec<DirEntry>>;

    /// Permission bits of a file or directory. Everything is its owner's alone where the file system has no modes.
    fn mode(&self, _path: &Path) -> IoOp<u32> {
        IoOp::ready(Ok(DIR_MODE))
    }

    /// Takes from a directory what others than its owner may do with it.
    fn make_private(&self, _path: &Path) -> IoOp<()> {
        IoOp::ready(Ok(()))
    }

    /// Takes the exclusive lock that lives in the file `path` (created if missing), or says which process has it.
    /// Never waits.
    fn lock(&self, path: &Path) -> Result<DirLock, LockError>;
}

/// An open file. All operations take `&self` and may run at the same time; what overlapping writes
/// leave behind is undefined.
#[allow(clippy::len_without_is_empty, reason = "a length is an operation that can fail")]
pub trait VfsFile: Send + Sync {
    /// Reads `len` bytes at `offset` and returns the buffer with exactly the bytes read. The buffer is
    /// shorter than `len` only where the file ends: an empty buffer means at or past the end. The
    /// capacity of `buf` is enlarged if it is too small.
    fn read_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf>;

    /// Writes all bytes of `buf` at `offset`, extending the file as needed, and gives the buffer back.
    /// After an error any part may have been written.
    fn write_at(&self, offset: u64, buf: IoBuf) -> IoOp<IoBuf>;

    /// Makes completed writes, and the length, durable (VFS-2, VFS-4).
    fn sync_data(&self) -> IoOp<()>;

    /// The length in bytes.
    fn len(&self) -> IoOp<u64>;

    /// Truncates or extends with zeros; durable after `sync_data`.
    fn set_len(&self, len: u64) -> IoOp<()>;

    /// Reserves space for `offset..offset + len`, extending the length; new bytes read as zeros.
    /// Writes there don't fail for want of space afterwards.
    fn preallocate(&self, offset: u64, len: u64) -> IoOp<()>;

    /// Like `preallocate`, but writes the zeros, so that a later write and `sync_data` need not
    /// convert unwritten extents; for log segments. What stood in the range is overwritten.
    fn preallocate_zeroed(&self, offset: u64, len: u64) -> IoOp<()>;

    /// Whether reads and writes bypass the page cache.
    fn is_direct(&self) -> bool;

    /// Reads exactly `len` bytes; `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf>;
}
