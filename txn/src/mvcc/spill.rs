//! The spill file: holds the undo that exceeds the memory budget, and keeps the list of its free places.
//!
//! # Life of a place
//! taken before the write -> written -> in the directory as a span -> given back when the span is dropped.
//!
//! # Invariants
//! - SPL-1: no two spans share a byte; free places are never adjacent and never reach the end.
//!
//! # Crash safety
//! An opening of the file discards what an earlier process left in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use clearway_storage::error::StorageError;

/// Places are multiples of this, in bytes.
const UNIT: u64 = 4096;
/// The name of the file in the database's directory.
pub const SPILL_FILE: &str = "undo.spill";

#[derive(Debug, Default)]
struct Places {
    end: u64,
    /// Offset -> length.
    free: BTreeMap<u64, u64>,
}

impl Places {
    fn take(&mut self, len: u64) -> u64 {
        assert!(len > 0, "SPL-1: a span has bytes");
        let fit = self.free.iter().find(|(_, free)| **free >= len).map(|(offset, free)| (*offset, *free));
        match fit {
            Some((offset, free)) => {
                self.free.remove(&offset);
                if free > len {
                    self.free.insert(offset + len, free - len);
                }
                offset
            }
            None => {
                self.end += len;
                self.end - len
            }
        }
    }

    fn give_back(&mut self, mut offset: u64, mut len: u64) {
        assert!(len > 0, "SPL-1: a span has bytes");
        // SPL-1
        let next = self.free.range(offset..).next().map_or(self.end, |(next, _)| *next);
        assert!(offset + len <= next, "SPL-1: {offset} was free");
        if let Some((before, free)) = self.free.range(..offset).next_back().map(|(o, l)| (*o, *l)) {
            assert!(before + free <= offset, "SPL-1: {offset} was free");
            if before + free == offset {
                self.free.remove(&before);
                (offset, len) = (before, len + free);
            }
        }
        if let Some(free) = self.free.remove(&(offset + len)) {
            len += free;
        }
        if offset + len == self.end {
            self.end = offset;
        } else {
            self.free.insert(offset, len);
        }
    }
}

/// The spill file of an open database.
pub struct SpillFile {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    file: Mutex<Option<Arc<dyn VfsFile>>>,
    places: Mutex<Places>,
    next_span: AtomicU64,
    /// The greatest length of the file since it was last truncated.
    len: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

impl std::fmt::Debug for SpillFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.path.display(), self.bytes())
    }
}

impl SpillFile {
    /// The spill file of the database in `dir`; the first use creates the file.
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> SpillFile {
        SpillFile {
            vfs,
            path: dir.join(SPILL_FILE),
            file: Mutex::new("txn/mvcc/spill", None),
            places: Mutex::new("txn/mvcc/spill places", Places::default()),
            next_span: AtomicU64::new(1),
            len: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }
    }

    /// Its path, for errors.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Bytes in use, free places between them included.
    pub fn bytes(&self) -> u64 {
        self.places.lock().end
    }

    /// Bytes that were ever written.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes that were ever read.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The number of the next span.
    pub(super) fn next_span(&self) -> u64 {
        self.next_span.fetch_add(1, Ordering::Relaxed)
    }

    async fn open(&self) -> Result<Arc<dyn VfsFile>, StorageError> {
        if let Some(file) = self.file.lock().clone() {
            return Ok(file);
        }
        let file = self.vfs.open(&self.path, OpenHow::create(FileKind::Undo)).await?;
        file.set_len(0).await?;
        Ok(self.file.lock().get_or_insert(file).clone())
    }

    /// Writes bytes to a free place and returns its offset.
    pub(super) async fn write(&self, bytes: &[u8]) -> Result<u64, StorageError> {
        let file = self.open().await?;
        let offset = self.places.lock().take(rounded(bytes.len()));
        self.len.fetch_max(offset + bytes.len() as u64, Ordering::Relaxed);
        if let Err(error) = file.write_at(offset, IoBuf::from_slice(bytes)).await {
            self.give_back(offset, bytes.len());
            return Err(error.into());
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(offset)
    }

    pub(super) async fn read(&self, offset: u64, len: usize) -> Result<IoBuf, StorageError> {
        let file = self.open().await?;
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(file.read_exact_at(offset, IoBuf::with_capacity(len), len).await?)
    }

    pub(super) fn give_back(&self, offset: u64, len: usize) {
        self.places.lock().give_back(offset, rounded(len));
    }

    /// Truncates the file when it is more than twice as long as the bytes in use.
    pub(super) async fn cut(&self) -> Result<(), StorageError> {
        let Some(file) = self.file.lock().clone() else {
            return Ok(());
        };
        let end = self.bytes();
        if self.len.load(Ordering::Relaxed) <= 2 * end {
            return Ok(());
        }
        self.len.store(end, Ordering::Relaxed);
        Ok(file.set_len(end).await?)
    }

    /// Removes the file, if there is one: a left-over file at the opening of the database, and the file at its closing.
    ///
    /// # Errors
    /// From the file system.
    pub async fn remove(&self) -> Result<(), StorageError> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        *self.file.lock() = None;
        if self.vfs.list(dir).await?.iter().any(|entry| entry.name == SPILL_FILE) {
            self.vfs.remove(&self.path).await?;
        }
        Ok(())
    }
}

fn rounded(len: usize) -> u64 {
    (len as u64).next_multiple_of(UNIT)
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn places_join_and_the_end_moves_back() {
        let mut places = Places::default();
        let all: Vec<u64> = (0..4).map(|_| places.take(8192)).collect();
        assert_eq!(all, [0, 8192, 16384, 24576]);
        places.give_back(8192, 8192);
        places.give_back(0, 8192);
        assert_eq!(places.free.iter().collect::<Vec<_>>(), [(&0, &16384)], "SPL-1");
        assert_eq!(places.take(4096), 0);
        assert_eq!(places.take(16384), 32768, "the hole is too small");
        places.give_back(32768, 16384);
        places.give_back(24576, 8192);
        places.give_back(16384, 8192);
        assert_eq!((places.end, places.free.len()), (4096, 0), "SPL-1");
    }

    #[test]
    #[should_panic(expected = "SPL-1")]
    fn a_place_is_given_back_once() {
        let mut places = Places::default();
        let _ = (places.take(4096), places.take(4096), places.take(4096));
        places.give_back(0, 4096);
        places.give_back(0, 4096);
    }
}
