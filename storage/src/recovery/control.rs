//! The control file: says where recovery begins, and up to where the log was known to be durable.
//!
//! # Structure
//! Two copies of one block of 4096 bytes, at 0 and 4096. Every change writes and syncs one, then the other.
//! ```text
//!   0 magic u64   8 version u32   12 crc u32 (of bytes 16..4096)   16 generation u64   24 database u64
//!  32 segment_bytes u64   40 pages_per_file u32   44 epoch u32   48 epoch_start u64   56 durable u64
//!  64 redo u64   72 scan u64   80 begin u64   88 checkpoint u64   96 checkpoint_len u32   100 checkpoint_crc u32
//! 104 clean u8   105 zeros   108 files u32   112 pages in use of the last of them u32   116 zeros
//! ```
//!
//! # Invariants
//! - REC-1: at rest both copies are equal. After a crash at least one copy is whole, and the whole copy with the higher
//!   generation counts. The files it refers to were synced before it was written, and the files that the copy with the lower
//!   generation refers to were not removed yet.
//! - REC-11: a copy that reads well may not be on disk, because its sync may have failed. So files to which only the other copy refers
//!   are removed only after both copies were written and synced again.
//!
//! # Errors
//! A version newer than this program's is refused; two damaged copies are corruption.

use super::create::FIRST_LSN;
use crate::error::{Corruption, StorageError};
use crate::ids::Lsn;
use crate::space::Reach;
use crate::wal::format::{BLOCK_BYTES, Bytes, FORMAT_VERSION};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: u64 = u64::from_le_bytes(*b"CLRWYCTL");

/// The content of the control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Counts the changes.
    pub generation: u64,
    /// Random number of the database.
    pub database: u64,
    /// The size of a log segment.
    pub segment_bytes: u64,
    /// Pages per data file.
    pub pages_per_file: u32,
    /// The epoch of what is appended.
    pub epoch: u32,
    /// Where that epoch begins.
    pub epoch_start: Lsn,
    /// Durable at least up to here.
    pub durable: Lsn,
    /// Redo starts here.
    pub redo: Lsn,
    /// Reading the log starts here: at or below `redo`, and at the begin of the checkpoint before the last.
    pub scan: Lsn,
    /// The begin of the last checkpoint.
    pub begin: Lsn,
    /// The number of the last checkpoint; 0 = none.
    pub checkpoint: u64,
    /// Length and CRC of its file.
    pub checkpoint_len: u32,
    /// See `checkpoint_len`.
    pub checkpoint_crc: u32,
    /// The database was closed properly: the log ends at `durable`, and every page is on disk.
    pub clean: bool,
    /// The data files when the last checkpoint began; nothing where an older program took it.
    pub reach: Reach,
}

/// Whether bytes are those of a block that the control file of a new database begins with, or what an unfinished write leaves of one: each
/// byte is zero or what it would be. What differs from database to database (checksum, number, sizes) is taken as it stands.
pub(super) fn is_unfinished_first(bytes: &[u8]) -> bool {
    let mut whole = Control::first(0, 0, 0).encode();
    for varying in [12..16, 24..44] {
        let (Some(there), whole) = (bytes.get(varying.clone()), &mut whole[varying]) else { continue };
        whole.copy_from_slice(there);
    }
    bytes.len() <= whole.len() && bytes.iter().zip(whole).all(|(byte, whole)| *byte == 0 || *byte == whole)
}

impl Control {
    /// What the control file of a new database says.
    pub(super) fn first(database: u64, segment_bytes: u64, pages_per_file: u32) -> Control {
        Control {
            generation: 1,
            database,
            segment_bytes,
            pages_per_file,
            epoch: 1,
            epoch_start: FIRST_LSN,
            durable: FIRST_LSN,
            redo: FIRST_LSN,
            scan: FIRST_LSN,
            begin: FIRST_LSN,
            checkpoint: 0,
            checkpoint_len: 0,
            checkpoint_crc: 0,
            clean: false,
            reach: Reach::default(),
        }
    }

    pub(crate) fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        let mut at = 16;
        let mut put = |bytes: &[u8]| {
            block[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.generation.to_le_bytes());
        put(&self.database.to_le_bytes());
        put(&self.segment_bytes.to_le_bytes());
        put(&self.pages_per_file.to_le_bytes());
        put(&self.epoch.to_le_bytes());
        for lsn in [self.epoch_start, self.durable, self.redo, self.scan, self.begin] {
            put(&lsn.0.to_le_bytes());
        }
        put(&self.checkpoint.to_le_bytes());
        put(&self.checkpoint_len.to_le_bytes());
        put(&self.checkpoint_crc.to_le_bytes());
        put(&[u8::from(self.clean), 0, 0, 0]);
        put(&self.reach.files.to_le_bytes());
        put(&self.reach.last_pages.to_le_bytes());
        block[0..8].copy_from_slice(&MAGIC.to_le_bytes());
        block[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        let crc = crc32c::crc32c(&block[16..]);
        block[12..16].copy_from_slice(&crc.to_le_bytes());
        block
    }

    /// Reads a copy: (expected, found) if it is none, and whether it is merely too new.
    pub(crate) fn decode(block: &[u8]) -> Result<Control, (String, String, bool)> {
        let no = |expected: String, found: String| (expected, found, false);
        let block: &[u8; BLOCK_BYTES] =
            block.try_into().map_err(|_| no("a block of 4096 bytes".into(), format!("{} bytes", block.len())))?;
        let mut at = Bytes::new(block);
        let short = || no("a control block".into(), "less".into());
        let (magic, version, crc) =
            (at.u64().ok_or_else(short)?, at.u32().ok_or_else(short)?, at.u32().ok_or_else(short)?);
        if magic != MAGIC {
            return Err(no("the mark of a control file".into(), format!("{magic:#018x}")));
        }
        let actual = crc32c::crc32c(&block[16..]);
        if crc != actual {
            return Err(no(format!("checksum {crc:#010x}"), format!("{actual:#010x}")));
        }
        if version > FORMAT_VERSION {
            return Err((format!("format version {FORMAT_VERSION} or older"), format!("version {version}"), true));
        }
        let fields = (|| {
            Some(Control {
                generation: at.u64()?,
                database: at.u64()?,
                segment_bytes: at.u64()?,
                pages_per_file: at.u32()?,
                epoch: at.u32()?,
                epoch_start: Lsn(at.u64()?),
                durable: Lsn(at.u64()?),
                redo: Lsn(at.u64()?),
                scan: Lsn(at.u64()?),
                begin: Lsn(at.u64()?),
                checkpoint: at.u64()?,
                checkpoint_len: at.u32()?,
                checkpoint_crc: at.u32()?,
                clean: at.u8()? == 1,
                reach: {
                    at.take(3)?;
                    Reach { files: at.u32()?, last_pages: at.u32()? }
                },
            })
        })();
        let control = fields.ok_or_else(short)?;
        let sane = control.segment_bytes >= 8192
            && control.segment_bytes % BLOCK_BYTES as u64 == 0
            && (8..=crate::space::pages::BITS_MAX).contains(&control.pages_per_file)
            && control.reach.last_pages <= control.pages_per_file
            && control.scan <= control.redo;
        if sane { Ok(control) } else { Err(no("sizes and positions that fit".into(), format!("{control:?}"))) }
    }
}

/// The open control file.
pub struct ControlFile {
    file: Arc<dyn VfsFile>,
}

/// The path of the control file.
pub fn path(dir: &Path) -> PathBuf {
    dir.join("control")
}

impl ControlFile {
    /// Opens the control file of a database; `None` if there is no database in `dir`.
    ///
    /// # Errors
    /// Both copies damaged, a newer version, a failed read.
    pub async fn open(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Option<(ControlFile, Control)>, StorageError> {
        let path = path(dir);
        let file = match vfs.open(&path, OpenHow::existing(FileKind::Control).direct()).await {
            Ok(file) => file,
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err.into()),
        };
        let mut best: Option<Control> = None;
        let mut wrong = None;
        for copy in 0..2 {
            let offset = copy * BLOCK_BYTES as u64;
            let block = file.read_at(offset, IoBuf::zeroed(BLOCK_BYTES), BLOCK_BYTES).await?;
            match Control::decode(&block) {
                // A newer program wrote this copy; that decides, whatever the other copy says.
                Err((expected, found, true)) => return Err(damaged(&path, offset, expected, found)),
                Err((expected, found, false)) => wrong = Some(damaged(&path, offset, expected, found)),
                Ok(control) if best.is_none_or(|best| best.generation < control.generation) => best = Some(control),
                Ok(_) => {}
            }
        }
        match (best, wrong) {
            (Some(control), _) => Ok(Some((ControlFile { file }, control))),
            (None, wrong) => Err(wrong.unwrap_or_else(|| damaged(&path, 0, "a control block".into(), "none".into()))),
        }
    }

    /// Whether both copies are whole and the same, as they are at rest (REC-1).
    ///
    /// # Errors
    /// The copy that is not; a failed read.
    pub async fn both_agree(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<(), StorageError> {
        let path = path(dir);
        let file = vfs.open(&path, OpenHow::existing(FileKind::Control).direct()).await?;
        let mut first = None;
        for offset in [0, BLOCK_BYTES as u64] {
            let block = file.read_at(offset, IoBuf::zeroed(BLOCK_BYTES), BLOCK_BYTES).await?;
            let control =
                Control::decode(&block).map_err(|(expected, found, _)| damaged(&path, offset, expected, found))?;
            if *first.get_or_insert(control) != control {
                let expected = "the same as in the first copy".to_owned();
                return Err(damaged(&path, offset, expected, format!("generation {}", control.generation)));
            }
        }
        Ok(())
    }

    /// Creates the control file of a new database atomically.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn create(vfs: &Arc<dyn Vfs>, dir: &Path, control: &Control) -> Result<ControlFile, StorageError> {
        let (temporary, path) = (dir.join("control.tmp"), path(dir));
        let file = vfs.open(&temporary, OpenHow::create(FileKind::Control).direct()).await?;
        let created = ControlFile { file };
        created.write(control).await?;
        vfs.rename(&temporary, &path).await?;
        vfs.sync_dir(dir).await?;
        Ok(created)
    }

    /// Writes both copies (REC-1).
    ///
    /// # Errors
    /// A failed write or sync; the caller poisons.
    pub async fn write(&self, control: &Control) -> Result<(), StorageError> {
        for copy in 0..2 {
            self.file.write_at(copy * BLOCK_BYTES as u64, IoBuf::from_slice(&control.encode())).await?;
            self.file.sync_data().await?;
        }
        Ok(())
    }
}

fn damaged(path: &Path, offset: u64, expected: String, found: String) -> StorageError {
    let file = path.display().to_string();
    Corruption { file, offset: Some(offset), page: None, lsn: None, expected, found }.into()
}
