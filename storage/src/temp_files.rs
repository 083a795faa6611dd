//! Temporary files: hold what exceeds a statement's memory (sorted runs, batches of a hash table, kept results).
//!
//! # Life of a temporary file
//! created -> its name removed -> appended to, flushed, read in blocks -> dropped with its last reader: the system frees the bytes
//!
//! # Invariants
//! - TMF-1: a file has no name once [`TempFiles::create`] has returned. So the system frees its bytes with its last handle, however the
//!   process ends.
//! - TMF-2: a reader reads only bytes that were flushed before it was made, and nothing changes them afterwards.
//! - TMF-3: a buffer holds a block, of the writer's or the reader's choice, or one frame if that is longer. It belongs to the account of the
//!   statement that works on the file, and is held there by itself: what the statement keeps of rows is measured without the buffers of the
//!   files to which it writes others.
//! - TMF-4: `bytes_in_use` counts what was written to files that still have a handle, and `open` lists these files.
//! - TMF-5: each file and byte counts for its owner, the database whose statement has written it.
//!
//! # Crash safety
//! A crash between the creation and the removal of the name leaves an empty file `temp-` and sixteen hexadecimal digits. The next
//! opening removes files of such names. Nothing is ever synced.
//!
//! # Errors
//! Those of the file system; [`Corruption`] for a frame whose length does not fit the file.

use crate::error::{Corruption, StorageError};
use clearway_base::memory::{Held, Kind};
use clearway_base::sync::Mutex;
use clearway_base::usage;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use clearway_base::waits::wall_us;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The block in which a writer writes if it says nothing else, in bytes.
pub const WRITE_BYTES: usize = 256 << 10;
/// The smallest one.
const WRITE_BYTES_MIN: usize = 8 << 10;
/// What stands before a frame: its length.
const FRAME_HEAD: usize = 4;

/// The temporary files of an open database.
pub struct TempFiles {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    created: AtomicU64,
    written_bytes: AtomicU64,
    in_use_bytes: AtomicU64,
    open: Mutex<BTreeMap<u64, Weak<Opened>>>,
    by_owner: Mutex<HashMap<u32, Written>>,
}

/// Files and bytes that an owner has ever written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A file that exists now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The name that it was created with.
    pub name: String,
    /// Bytes that were written to it.
    pub bytes: u64,
    /// When it was written to last: wall clock, microseconds since 1970.
    pub changed_us: i64,
}

/// Whether a temporary file may have this name.
fn is_temporary(name: &str) -> bool {
    name.strip_prefix("temp-").is_some_and(|n| n.len() == 16 && n.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Removes the names that a crash left (TMF-1).
///
/// # Errors
/// A failed file operation.
pub(crate) async fn remove_leftovers(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<(), StorageError> {
    for entry in vfs.list(dir).await?.iter().filter(|entry| is_temporary(&entry.name)) {
        vfs.remove(&dir.join(&entry.name)).await?;
    }
    Ok(())
}

impl TempFiles {
    /// The temporary files of the database in `dir`, of which there are none yet.
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> TempFiles {
        let zero = || AtomicU64::new(0);
        TempFiles {
            vfs,
            dir: dir.to_owned(),
            created: zero(),
            written_bytes: zero(),
            in_use_bytes: zero(),
            open: Mutex::new("storage/temp_files/open", BTreeMap::new()),
            by_owner: Mutex::new("storage/temp_files/by_owner", HashMap::new()),
        }
    }

    /// The directory of the database.
    pub(crate) fn directory(&self) -> &Path {
        &self.dir
    }

    /// A new, empty file of a database.
    ///
    /// # Errors
    /// A failed file operation; a full disk.
    pub async fn create(self: &Arc<Self>, owner: u32) -> Result<TempFile, StorageError> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("temp-{number:016x}"));
        let file = self.vfs.open(&path, OpenHow::create_new(FileKind::Other)).await?;
        self.vfs.remove(&path).await?; // TMF-1
        let (all, bytes, changed_us) = (self.clone(), AtomicU64::new(0), AtomicI64::new(wall_us()));
        let opened = Arc::new(Opened { file, path, number, owner, all, bytes, changed_us });
        self.open.lock().insert(number, Arc::downgrade(&opened)); // TMF-4
        self.by_owner.lock().entry(owner).or_default().files += 1; // TMF-5
        let (buffer, held) = (IoBuf::with_capacity(0), Held::new(Kind::Files));
        Ok(TempFile { opened, buffer, held, block_bytes: WRITE_BYTES, flushed: 0 })
    }

    /// What a database has ever written.
    pub fn written_by(&self, owner: u32) -> Written {
        self.by_owner.lock().get(&owner).copied().unwrap_or_default()
    }

    /// A database's figures begin anew.
    pub fn reset(&self, owner: u32) {
        self.by_owner.lock().remove(&owner);
    }

    /// The files that exist now, the oldest first.
    pub fn open_files(&self) -> Vec<OpenFile> {
        // Upgraded handles are dropped behind the lock: the last one takes it.
        let open: Vec<Arc<Opened>> = self.open.lock().values().filter_map(Weak::upgrade).collect();
        let listed = open.iter().map(|file| OpenFile {
            name: format!("temp-{:016x}", file.number),
            bytes: file.bytes.load(Ordering::Relaxed),
            changed_us: file.changed_us.load(Ordering::Relaxed),
        });
        listed.collect()
    }

    /// How many files were ever created.
    pub fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }

    /// Bytes that were ever written.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Bytes in the files that exist now (TMF-4).
    pub fn bytes_in_use(&self) -> u64 {
        self.in_use_bytes.load(Ordering::Relaxed)
    }
}

/// An open file, shared by its writer and its readers.
struct Opened {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    number: u64,
    owner: u32,
    all: Arc<TempFiles>,
    bytes: AtomicU64,
    changed_us: AtomicI64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.all.open.lock().remove(&self.number);
        let bytes = *self.bytes.get_mut();
        self.all.in_use_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A temporary file that is appended to.
pub struct TempFile {
    opened: Arc<Opened>,
    buffer: IoBuf,
    /// The buffer's bytes (TMF-3).
    held: Held,
    block_bytes: usize,
    flushed: u64,
}

impl TempFile {
    /// The same file, written in blocks of about so many bytes, which is for one that is written beside many others.
    #[must_use]
    pub fn in_blocks(mut self, bytes: usize) -> TempFile {
        self.block_bytes = bytes.clamp(WRITE_BYTES_MIN, WRITE_BYTES);
        self
    }

    /// Bytes appended so far: where the next one goes.
    pub fn end(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// A failed write; a full disk.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.room_for(bytes.len()).await?;
        self.buffer.extend_from_slice(bytes);
        self.held.set(self.buffer.capacity()); // TMF-3
        Ok(())
    }

    /// Appends bytes that [`TempReader::next_frame`] gives back as one piece.
    ///
    /// # Errors
    /// As [`TempFile::append`]; `ValueTooLong` past 4 GiB.
    pub async fn append_frame(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.append_frame_of(&[bytes]).await
    }

    /// The same of a frame in parts.
    ///
    /// # Errors
    /// As [`TempFile::append_frame`].
    pub async fn append_frame_of(&mut self, parts: &[&[u8]]) -> Result<(), StorageError> {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let head = u32::try_from(len).map_err(|_| StorageError::ValueTooLong { len, max: u32::MAX as usize })?;
        self.room_for(FRAME_HEAD + len).await?;
        self.buffer.extend_from_slice(&head.to_le_bytes());
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.held.set(self.buffer.capacity()); // TMF-3
        Ok(())
    }

    async fn room_for(&mut self, more: usize) -> Result<(), StorageError> {
        if !self.buffer.is_empty() && self.buffer.len() + more > self.block_bytes {
            self.flush().await?;
        }
        Ok(())
    }

    /// Hands everything appended to the operating system, so that it can be read.
    ///
    /// # Errors
    /// A failed write; a full disk. What was appended since the last flush is then lost.
    pub async fn flush(&mut self) -> Result<(), StorageError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::replace(&mut self.buffer, IoBuf::with_capacity(0));
        let len = buffer.len() as u64;
        let mut buffer = self.opened.file.write_at(self.flushed, buffer).await?;
        self.flushed += len;
        usage::temp_written(len as usize);
        self.opened.bytes.fetch_add(len, Ordering::Relaxed);
        self.opened.all.in_use_bytes.fetch_add(len, Ordering::Relaxed);
        self.opened.all.written_bytes.fetch_add(len, Ordering::Relaxed);
        self.opened.changed_us.store(wall_us(), Ordering::Relaxed);
        self.opened.all.by_owner.lock().entry(self.opened.owner).or_default().bytes += len; // TMF-5
        buffer.resize(0);
        // TMF-3: the buffer of a frame of many megabytes is not kept.
        if buffer.capacity() <= 2 * self.block_bytes {
            self.buffer = buffer;
        } else {
            drop(buffer);
            self.held.set(0);
        }
        Ok(())
    }

    /// Flushes, and keeps no buffer: nothing more is appended for now.
    ///
    /// # Errors
    /// As [`TempFile::flush`].
    pub async fn end_writing(&mut self) -> Result<(), StorageError> {
        self.flush().await?;
        self.buffer = IoBuf::with_capacity(0);
        self.held.set(0);
        Ok(())
    }

    /// A reader of a part of the file that has been flushed, in blocks of so many bytes.
    pub fn reader(&self, part: Range<u64>, block_bytes: usize) -> TempReader {
        assert!(part.start <= part.end && part.end <= self.flushed, "TMF-2: {part:?} of {} bytes", self.flushed);
        TempReader {
            opened: self.opened.clone(),
            next: part.start,
            end: part.end,
            block_bytes: block_bytes.max(FRAME_HEAD),
            buffer: IoBuf::with_capacity(0),
            held: Held::new(Kind::Files),
            at: 0,
            frame: 0..0,
        }
    }
}

/// Reads a part of a temporary file from its beginning to its end. It may outlive the [`TempFile`].
pub struct TempReader {
    opened: Arc<Opened>,
    /// The first byte that is not in the buffer.
    next: u64,
    end: u64,
    block_bytes: usize,
    buffer: IoBuf,
    /// The buffer's bytes (TMF-3).
    held: Held,
    /// The first byte of the buffer that was not given out.
    at: usize,
    /// The frame that was given out last, in the buffer.
    frame: Range<usize>,
}

impl TempReader {
    /// Bytes that were not given out yet.
    pub fn remaining(&self) -> u64 {
        (self.buffer.len() - self.at) as u64 + (self.end - self.next)
    }

    /// The next `len` bytes; fewer where the part ends.
    ///
    /// # Errors
    /// A failed read.
    pub async fn read(&mut self, len: usize) -> Result<&[u8], StorageError> {
        self.frame = 0..0;
        self.fill(len).await?;
        let from = self.at;
        self.at = (from + len).min(self.buffer.len());
        Ok(&self.buffer[from..self.at])
    }

    /// The next frame ([`TempFile::append_frame`]); none at the end of the part.
    ///
    /// # Errors
    /// A failed read; a length that reaches beyond the part.
    pub async fn next_frame(&mut self) -> Result<Option<&[u8]>, StorageError> {
        if self.remaining() == 0 {
            return Ok(None);
        }
        let offset = self.end - self.remaining();
        self.frame = 0..0;
        self.fill(FRAME_HEAD).await?;
        let head = self.buffer[self.at..].first_chunk().map(|head| u32::from_le_bytes(*head) as usize);
        let len = match head {
            Some(len) if (FRAME_HEAD + len) as u64 <= self.remaining() => len,
            _ => return Err(self.damage(offset, head)),
        };
        self.at += FRAME_HEAD;
        self.fill(len).await?;
        self.frame = self.at..self.at + len;
        self.at += len;
        Ok(Some(self.frame()))
    }

    /// The frame that was read last; empty before the first one, and after [`TempReader::read`].
    pub fn frame(&self) -> &[u8] {
        &self.buffer[self.frame.clone()]
    }

    /// The error for a frame whose content is not what was written.
    pub fn damaged(&self, expected: &str) -> Corruption {
        Corruption {
            file: self.opened.path.display().to_string(),
            offset: Some(self.end - self.remaining() - self.frame.len() as u64),
            page: None,
            lsn: None,
            expected: expected.to_owned(),
            found: format!("{} other bytes", self.frame.len()),
        }
    }

    fn damage(&self, offset: u64, found: Option<usize>) -> StorageError {
        let damage = Corruption {
            file: self.opened.path.display().to_string(),
            offset: Some(offset),
            page: None,
            lsn: None,
            expected: format!("a frame of at most {} bytes", self.remaining()),
            found: found.map_or("the end of the file".to_owned(), |len| format!("one of {len} bytes")),
        };
        damage.into()
    }

    /// Sees to it that the buffer has the next `len` bytes, or all that are left.
    async fn fill(&mut self, len: usize) -> Result<(), StorageError> {
        let here = self.buffer.len() - self.at;
        if here >= len || self.next == self.end {
            return Ok(());
        }
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let more = (len - here).max(self.block_bytes - here.min(self.block_bytes)).min(left);
        let file = self.opened.file.clone();
        if here == 0 {
            let buffer = std::mem::replace(&mut self.buffer, IoBuf::with_capacity(0));
            self.at = 0;
            self.buffer = file.read_exact_at(self.next, buffer, more).await?;
        } else {
            let block = file.read_exact_at(self.next, IoBuf::with_capacity(more), more).await?;
            let mut joined = IoBuf::with_capacity(here + more);
            joined.extend_from_slice(&self.buffer[self.at..]);
            joined.extend_from_slice(&block);
            (self.buffer, self.at) = (joined, 0);
        }
        self.held.set(self.buffer.capacity()); // TMF-3
        self.next += more as u64;
        usage::temp_read(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::testkit::Sim;
    use clearway_base::vfs::MemVfs;
    use clearway_base::vfs::sim::SimDisk;

    fn files(vfs: Arc<dyn Vfs>) -> Arc<TempFiles> {
        Arc::new(TempFiles::new(vfs, Path::new("/")))
    }

    fn frame(n: u32) -> Vec<u8> {
        n.to_le_bytes().iter().copied().cycle().take((n as usize * 37) % 5_000).collect()
    }

    #[test]
    fn frames_come_back_by_part_in_blocks_of_any_size() {
        Sim::new(1)
            .block_on(async {
                let all = files(Arc::new(MemVfs::new()));
                let mut file = all.create(7).await.expect("create");
                let mut parts = Vec::new();
                for part in 0..3 {
                    let from = file.end();
                    for n in part * 400..(part + 1) * 400 {
                        file.append_frame(&frame(n)).await.expect("append");
                    }
                    parts.push(from..file.end());
                }
                file.flush().await.expect("flush");
                assert_eq!((all.bytes_in_use(), all.written_bytes()), (file.end(), file.end()), "TMF-4");
                let listed = all.open_files();
                assert_eq!((listed.len(), &*listed[0].name, listed[0].bytes), (1, "temp-0000000000000000", file.end()));
                assert_eq!(all.written_by(7), Written { files: 1, bytes: file.end() }, "TMF-5");
                let mut readers = Vec::new();
                for (part, range) in (0..).zip(parts) {
                    for block in [1, 100, 4096, 1 << 20] {
                        readers.push((part, file.reader(range.clone(), block)));
                    }
                }
                drop(file);
                for (part, mut reader) in readers {
                    for n in part * 400..(part + 1) * 400 {
                        assert_eq!(reader.next_frame().await.expect("read"), Some(&frame(n)[..]), "frame {n}");
                    }
                    assert_eq!(reader.next_frame().await.expect("end"), None);
                }
                assert_eq!((all.bytes_in_use(), all.created(), all.open_files()), (0, 1, Vec::new()), "TMF-4");
                all.reset(7);
                assert_eq!(all.written_by(7), Written::default());
            })
            .expect("ends");
    }

    #[test]
    fn a_length_beyond_the_part_is_damage() {
        Sim::new(1)
            .block_on(async {
                let mut file = files(Arc::new(MemVfs::new())).create(1).await.expect("create");
                file.append(&[200, 0, 0, 0, 1, 2, 3]).await.expect("append");
                file.flush().await.expect("flush");
                for part in [0..7, 0..2] {
                    let damage = file.reader(part, 4096).next_frame().await.expect_err("damage").to_string();
                    assert!(damage.contains("expected a frame of at most"), "{damage}");
                }
            })
            .expect("ends");
    }

    /// A crash at each point of the disk leaves at most names that the next opening removes, and foreign names stay.
    #[test]
    fn no_crash_leaves_a_file_behind() {
        let mut names = 0;
        for point in 1..40 {
            let disk = SimDisk::new(point);
            let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
            drop(vfs.open(Path::new("/temp-mine"), OpenHow::create_new(FileKind::Other)).wait().expect("create"));
            disk.sync_dir(Path::new("/")).wait().expect("sync");
            disk.die_at(disk.points() + point);
            let all = files(vfs.clone());
            let died = Sim::new(point).block_on(async move {
                let mut file = all.create(1).await?;
                file.append_frame(&[7; 300]).await?;
                file.flush().await?;
                file.reader(0..file.end(), 4096).next_frame().await.map(|frame| frame.map(<[u8]>::len))
            });
            disk.process_died();
            let temporary = |vfs: &Arc<dyn Vfs>| {
                let entries = vfs.list(Path::new("/")).wait().expect("list");
                entries.iter().filter(|entry| is_temporary(&entry.name)).count()
            };
            names += temporary(&vfs);
            let again = vfs.clone();
            let opening = async move { remove_leftovers(&again, Path::new("/")).await };
            Sim::new(point).block_on(opening).expect("ends").expect("removed");
            let left: Vec<String> =
                vfs.list(Path::new("/")).wait().expect("list").into_iter().map(|e| e.name).collect();
            assert_eq!(left, ["temp-mine"], "TMF-1, point {point}: {died:?}");
        }
        assert!(names > 0, "no crash fell between the creation and the removal of the name");
    }
}
