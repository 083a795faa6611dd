//! The segment files of the log: prepared ahead, numbered along the stream, recycled when no holder needs them.
//!
//! # Structure
//! ```text
//!   wal/<number, 16 hex digits>.wal      a segment of the stream
//!   wal/spare-<n>.wal                    zero-filled or formerly used, to be renamed
//!   wal/new.tmp, wal/parked-<n>.tmp      unfinished
//! ```
//! The opening of the log removes unfinished files, segments and spares of a wrong length, and spares beyond `SPARES_MAX`. It leaves every
//! other file alone.
//! Segment `n` holds the stream's bytes from `n * payload` on, behind a header block.
//!
//! # Invariants
//! - WAL-10: a segment gets its number only after all of its blocks, header included, were written and synced. The name
//!   is synced before credit for the segment is given. So no commit pays for metadata, and a write can't run out of
//!   space.
//! - WAL-19: a file is renamed again only after its last name was synced. Otherwise a crash may keep the second rename and
//!   lose the first; then one file has two names and serves as two segments.
//! - WAL-11: a segment is recycled only when it lies wholly below what recovery and every holder need.
//!
//! # Crash safety
//! Before the rename a file is a spare or a `.tmp` and holds no log; after the rename, its old content fails WAL-1.

use super::format::{BLOCK_BYTES, SegmentHeader};
use crate::error::{Corruption, StorageError};
use crate::ids::Lsn;
use clearway_base::sync::Mutex;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Computes where the stream's bytes stand in the segment files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The size of a segment file in bytes, header included.
    pub segment_bytes: u64,
}

impl Layout {
    /// Bytes of the stream in one segment.
    pub fn payload(self) -> u64 {
        self.segment_bytes - BLOCK_BYTES as u64
    }

    /// The segment that holds `lsn`.
    pub fn number(self, lsn: Lsn) -> u64 {
        lsn.0 / self.payload()
    }

    /// Where `lsn` stands in its file.
    pub fn offset(self, lsn: Lsn) -> u64 {
        BLOCK_BYTES as u64 + lsn.0 % self.payload()
    }

    /// The first position of a segment.
    pub fn first_lsn(self, number: u64) -> Lsn {
        Lsn(number * self.payload())
    }

    /// The name of a segment's file.
    pub fn file_name(number: u64) -> String {
        format!("{number:016x}.wal")
    }

    /// The number that a file's name says, if it is a segment's.
    pub fn parse_name(name: &str) -> Option<u64> {
        let digits = name.strip_suffix(".wal").filter(|digits| digits.len() == 16)?;
        u64::from_str_radix(digits, 16).ok()
    }
}

/// The segments of one log.
pub struct Segments {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    layout: Layout,
    database: u64,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    live: BTreeMap<u64, Arc<dyn VfsFile>>,
    spares: Vec<PathBuf>,
    spare_names: u64,
}

/// Spares kept for reuse; more are removed.
const SPARES_MAX: usize = 4;

/// The name of a segment file until it is whole.
const UNFINISHED: &str = "new.tmp";

/// Whether the log gives such a name to files that hold no log.
fn is_spare(name: &str, before: &str, after: &str) -> bool {
    let stem = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Checks that the segments in which the log stands between two positions are as long as segments are: [`Segments::adopt`] would take
/// another one for a spare, and all behind it, and have them written over. And that those in which the log goes on are not another database's.
///
/// # Errors
/// `Corruption` with the file's name; a newer format; a failed read.
pub async fn check_segments(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    layout: Layout,
    database: u64,
    from: Lsn,
    end: Lsn,
) -> Result<(), StorageError> {
    let used = layout.number(from)..=layout.number(end);
    for entry in vfs.list(dir).await? {
        let Some(number) = Layout::parse_name(&entry.name) else { continue };
        let is_whole = entry.size == layout.segment_bytes;
        if number >= *used.end() && is_whole {
            let path = dir.join(&entry.name);
            let file = vfs.open(&path, OpenHow::read_only(FileKind::Wal).direct()).await?;
            let block = file.read_exact_at(0, IoBuf::zeroed(BLOCK_BYTES), BLOCK_BYTES).await?;
            super::reader::refuse_newer(&path, &block)?;
            refuse_foreign(&path, SegmentHeader::decode(&block).ok(), database)?;
        }
        if used.contains(&number) && !is_whole {
            return Err(Corruption {
                file: dir.join(&entry.name).display().to_string(),
                offset: None,
                page: None,
                lsn: None,
                expected: format!("a log segment of {} bytes", layout.segment_bytes),
                found: format!("{} bytes", entry.size),
            }
            .into());
        }
    }
    Ok(())
}

/// Refuses to overwrite a segment of another database.
fn refuse_foreign(path: &Path, header: Option<SegmentHeader>, database: u64) -> Result<(), StorageError> {
    match header.filter(|header| header.database != database) {
        None => Ok(()),
        Some(foreign) => Err(Corruption {
            file: path.display().to_string(),
            offset: Some(16),
            page: None,
            lsn: None,
            expected: format!("a log segment of database {database:#018x}"),
            found: format!("one of database {:#018x}", foreign.database),
        }
        .into()),
    }
}

/// How log segments are opened.
pub fn how() -> OpenHow {
    OpenHow::existing(FileKind::Wal).direct()
}

impl Segments {
    /// The segments in `dir`, which exists.
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path, layout: Layout, database: u64) -> Segments {
        let bytes = layout.segment_bytes;
        assert!(bytes > BLOCK_BYTES as u64 && bytes % BLOCK_BYTES as u64 == 0, "segments of {bytes} bytes");
        Segments {
            vfs,
            dir: dir.to_path_buf(),
            layout,
            database,
            files: Mutex::new("storage/wal/files", Files::default()),
        }
    }

    /// Where bytes stand.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Adopts the files that an earlier process left: the segments from `first` on without a hole stay live, all others become
    /// spares. Unfinished files, and those that are not as long as a segment, are removed: a spare is written over without being prepared
    /// again. [`check_segments`] has seen before that none of them holds log. Returns the number behind the last live segment.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn adopt(&self, first: u64) -> Result<u64, StorageError> {
        let mut spares = Vec::new();
        let mut live = BTreeMap::new();
        let mut next = first;
        for entry in self.vfs.list(&self.dir).await? {
            let path = self.dir.join(&entry.name);
            match Layout::parse_name(&entry.name) {
                Some(number) if number == next && entry.size == self.layout.segment_bytes => {
                    let file = self.vfs.open(&path, how()).await?;
                    let block = file.read_exact_at(0, IoBuf::zeroed(BLOCK_BYTES), BLOCK_BYTES).await?;
                    super::reader::refuse_newer(&path, &block)?;
                    let header = SegmentHeader::decode(&block).ok();
                    refuse_foreign(&path, header, self.database)?;
                    if header != Some(self.header(number)) {
                        self.write_header(&file, number).await?;
                    }
                    live.insert(number, file);
                    next += 1;
                }
                Some(_) if entry.size == self.layout.segment_bytes => spares.push(path),
                None if is_spare(&entry.name, "spare-", ".wal") && entry.size == self.layout.segment_bytes => {
                    spares.push(path);
                }
                Some(_) => self.vfs.remove(&path).await?,
                None if is_spare(&entry.name, "spare-", ".wal") => self.vfs.remove(&path).await?,
                None if is_spare(&entry.name, "parked-", ".tmp") || entry.name == UNFINISHED => {
                    self.vfs.remove(&path).await?;
                }
                _ => {}
            }
        }
        let mut named = Vec::new();
        for (index, path) in spares.into_iter().enumerate() {
            // Two steps, so that no file gets a name that another file still has.
            if index >= SPARES_MAX {
                self.vfs.remove(&path).await?;
                continue;
            }
            let parked = self.dir.join(format!("parked-{index}.tmp"));
            self.vfs.rename(&path, &parked).await?;
            named.push(parked);
        }
        // WAL-19
        self.vfs.sync_dir(&self.dir).await?;
        let mut files = Files { live, spares: Vec::new(), spare_names: 0 };
        for parked in named {
            files.spare_names += 1;
            let spare = self.spare_path(files.spare_names);
            self.vfs.rename(&parked, &spare).await?;
            files.spares.push(spare);
        }
        self.vfs.sync_dir(&self.dir).await?;
        *self.files.lock() = files;
        Ok(next)
    }

    /// The lowest segment from which there is no hole up to `first`: log that an earlier process kept beyond what recovery needs.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn oldest_kept(&self, first: u64) -> Result<u64, StorageError> {
        let mut oldest = first;
        while let Some(before) = oldest.checked_sub(1) {
            let opened = super::reader::open_segment(&self.vfs, &self.dir, self.layout, self.database, before).await?;
            if opened.is_err() {
                break;
            }
            oldest = before;
        }
        Ok(oldest)
    }

    fn spare_path(&self, name: u64) -> PathBuf {
        self.dir.join(format!("spare-{name}.wal"))
    }

    fn header(&self, number: u64) -> SegmentHeader {
        SegmentHeader { database: self.database, number, segment_bytes: self.layout.segment_bytes }
    }

    async fn write_header(&self, file: &Arc<dyn VfsFile>, number: u64) -> Result<(), StorageError> {
        file.write_at(0, IoBuf::from_slice(&self.header(number).encode())).await?;
        file.sync_data().await?;
        Ok(())
    }

    /// The file of a segment, if it is live.
    pub fn file(&self, number: u64) -> Option<Arc<dyn VfsFile>> {
        self.files.lock().live.get(&number).cloned()
    }

    /// The path of a segment's file.
    pub fn path(&self, number: u64) -> PathBuf {
        self.dir.join(Layout::file_name(number))
    }

    /// The number behind the last prepared segment.
    pub fn end_number(&self) -> u64 {
        self.files.lock().live.last_key_value().map_or(0, |(number, _)| number + 1)
    }

    /// The lowest live segment.
    pub fn first_number(&self) -> u64 {
        self.files.lock().live.first_key_value().map_or(0, |(number, _)| *number)
    }

    /// Bytes of all segment files, spares included.
    pub fn bytes(&self) -> u64 {
        let files = self.files.lock();
        (files.live.len() + files.spares.len()) as u64 * self.layout.segment_bytes
    }

    /// Makes so many segments ready (WAL-10), from `number` on; how many it made: fewer if the disk is full. One caller at a time.
    ///
    /// # Errors
    /// A failed file operation; `StorageFull` if there is room for none, which leaves everything as it was.
    pub async fn prepare(&self, number: u64, count: u64) -> Result<u64, StorageError> {
        let mut named = Vec::new();
        for number in number..number + count {
            match self.name_one(number).await {
                Ok(file) => named.push((number, file)),
                Err(StorageError::Io(err)) if err.is_full() && !named.is_empty() => break,
                Err(err) => return Err(err),
            }
        }
        self.vfs.sync_dir(&self.dir).await?;
        let made = named.len() as u64;
        let mut files = self.files.lock();
        for (number, file) in named {
            let before = files.live.insert(number, file);
            assert!(before.is_none(), "WAL-10: segment {number} was prepared twice");
        }
        Ok(made)
    }

    /// Writes and syncs all blocks of a segment and gives it its name, which the caller syncs.
    async fn name_one(&self, number: u64) -> Result<Arc<dyn VfsFile>, StorageError> {
        let spare = self.files.lock().spares.pop();
        let source = match spare {
            Some(path) => path,
            None => self.create().await?,
        };
        let file = self.vfs.open(&source, how()).await?;
        self.write_header(&file, number).await?;
        self.vfs.rename(&source, &self.path(number)).await?;
        Ok(file)
    }

    /// A new zero-filled file, not synced yet. If the disk is full it is removed again.
    async fn create(&self) -> Result<PathBuf, StorageError> {
        let path = self.dir.join(UNFINISHED);
        let file = self.vfs.open(&path, OpenHow::create(FileKind::Wal).direct()).await?;
        if let Err(err) = file.preallocate_zeroed(0, self.layout.segment_bytes).await {
            drop(file);
            // What matters is the first error; the name is removed at the next opening too.
            let _ignored = self.vfs.remove(&path).await;
            return Err(err.into());
        }
        Ok(path)
    }

    /// Removes the spares. A crash may bring some back: the next opening keeps them as spares.
    ///
    /// # Errors
    /// A failed removal.
    pub async fn remove_spares(&self) -> Result<(), StorageError> {
        let spares = std::mem::take(&mut self.files.lock().spares);
        for path in spares {
            self.vfs.remove(&path).await?;
        }
        Ok(())
    }

    /// Recycles segments that lie wholly below `needed` (WAL-11).
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn recycle(&self, needed: Lsn) -> Result<(), StorageError> {
        let keep = self.layout.number(needed);
        let mut renamed = Vec::new();
        loop {
            let (number, file, spare) = {
                let mut files = self.files.lock();
                let Some((&number, _)) = files.live.first_key_value() else { break };
                if number >= keep {
                    break;
                }
                let file = files.live.remove(&number);
                files.spare_names += 1;
                (number, file, self.spare_path(files.spare_names))
            };
            drop(file);
            let full = self.files.lock().spares.len() + renamed.len() >= SPARES_MAX;
            if full {
                self.vfs.remove(&self.path(number)).await?;
            } else {
                self.vfs.rename(&self.path(number), &spare).await?;
                renamed.push(spare);
            }
        }
        if !renamed.is_empty() {
            // WAL-19: before one of them is reused.
            self.vfs.sync_dir(&self.dir).await?;
            self.files.lock().spares.append(&mut renamed);
        }
        Ok(())
    }
}
