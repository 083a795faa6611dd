//! The durable mark: a second record of how far the log was synced, by which recovery tells a damaged log from a proper end.
//!
//! # Structure
//! The file `durable` beside `control`, two slots of 40 bytes, at 0 and 4096, written in turn:
//! ```text
//!   0 magic u64   8 version u32   12 crc u32 (of bytes 16..40)   16 database u64   24 lsn u64   32 count u64
//! ```
//! The flusher writes a slot through the operating system's page cache after each sync of the log and before it publishes what is durable;
//! no commit waits for a sync of the mark. The checkpointer syncs the mark once a second while it advances, and once after it has stopped.
//! A commit pays a system call that copies 40 bytes, beside a write and a sync of the log.
//!
//! # Invariants
//! - WAL-21: a slot is written only when every byte below its LSN has been synced. So no crash leaves a mark beyond the
//!   log's end, and an end below the mark is damage.
//! - WAL-22: a commit is acknowledged only after the mark covers it (the mark is written before `durable` is published).
//!   So when the process dies, and the operating system does not, the mark covers everything that was acknowledged. If the disk was full
//!   when the log was opened, the log runs without a mark until the next opening.
//!
//! # Crash safety
//! ```text
//!   crash of        the mark after it                              what it covers
//!   the process     the last slot written                          everything acknowledged
//!   the system      any earlier slot, the last synced or a later   everything acknowledged a second before
//! ```
//! A slot lies within one sector, so after a crash it holds the new or the old content. A slot that is damaged for any other
//! reason is ignored, and the other slot counts. A missing file is ignored, too: directories of earlier versions have none.
//! Independently of the mark, each record of the log says how much log was durable when the record was appended.

use super::Wal;
use super::format::{Bytes, FORMAT_VERSION};
use crate::error::StorageError;
use crate::ids::Lsn;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const MAGIC: u64 = u64::from_le_bytes(*b"CLRWYDUR");
const SLOT_BYTES: usize = 40;
const SLOTS_APART: u64 = 4096;

/// The path of the mark's file.
pub fn path(dir: &Path) -> PathBuf {
    dir.join("durable")
}

/// The content of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    database: u64,
    lsn: Lsn,
    count: u64,
}

impl Slot {
    fn encode(self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.database.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.count.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Slot> {
        let bytes = bytes.get(..SLOT_BYTES)?;
        let mut at = Bytes::new(bytes);
        let (magic, version, crc) = (at.u64()?, at.u32()?, at.u32()?);
        let sound = magic == MAGIC && version <= FORMAT_VERSION && crc == crc32c::crc32c(&bytes[16..]);
        sound.then_some(Slot { database: at.u64()?, lsn: Lsn(at.u64()?), count: at.u64()? })
    }
}

/// The greatest durable LSN that the mark of this database vouches for; zero if it says nothing.
///
/// # Errors
/// A failed read.
pub async fn read(vfs: &Arc<dyn Vfs>, dir: &Path, database: u64) -> Result<Lsn, StorageError> {
    let file = match vfs.open(&path(dir), OpenHow::read_only(FileKind::Control)).await {
        Ok(file) => file,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Lsn::ZERO),
        Err(err) => return Err(err.into()),
    };
    let mut greatest = Lsn::ZERO;
    for slot in 0..2 {
        let bytes = file.read_at(slot * SLOTS_APART, IoBuf::zeroed(0), SLOT_BYTES).await?;
        let own = Slot::decode(&bytes).filter(|slot| slot.database == database);
        greatest = greatest.max(own.map_or(Lsn::ZERO, |slot| slot.lsn));
    }
    Ok(greatest)
}

/// The open mark; the flusher has it.
pub struct DurableMark {
    file: Arc<dyn VfsFile>,
    database: u64,
    count: u64,
    buf: IoBuf,
}

impl DurableMark {
    /// Opens or makes the mark's file, and has both slots say `durable`, synced. `None` if the disk is full: the log
    /// then runs without a mark until the next opening.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn start(
        vfs: &Arc<dyn Vfs>,
        dir: &Path,
        database: u64,
        durable: Lsn,
    ) -> Result<Option<DurableMark>, StorageError> {
        let started = async {
            let file = vfs.open(&path(dir), OpenHow::create(FileKind::Control)).await?;
            file.preallocate(0, SLOTS_APART + SLOT_BYTES as u64).await?;
            let mut mark = DurableMark { file, database, count: 0, buf: IoBuf::zeroed(0) };
            mark.write(durable).await?;
            mark.write(durable).await?;
            mark.file.sync_data().await?;
            vfs.sync_dir(dir).await?;
            Ok(mark)
        };
        match started.await {
            Ok(mark) => Ok(Some(mark)),
            Err(StorageError::Io(err)) if err.is_full() => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// The file, for the task that syncs it.
    pub fn file(&self) -> &Arc<dyn VfsFile> {
        &self.file
    }

    /// Writes a slot that says that everything below `lsn` has been synced (WAL-21).
    ///
    /// # Errors
    /// A failed write.
    pub async fn write(&mut self, lsn: Lsn) -> Result<(), StorageError> {
        self.count += 1;
        let slot = Slot { database: self.database, lsn, count: self.count };
        let mut buf = std::mem::replace(&mut self.buf, IoBuf::zeroed(0));
        buf.resize(SLOT_BYTES);
        buf.copy_from_slice(&slot.encode());
        self.buf = self.file.write_at(self.count % 2 * SLOTS_APART, buf).await?;
        Ok(())
    }
}

impl Wal {
    /// Syncs the durable mark if it has moved since the last call. No commit waits for this.
    ///
    /// # Errors
    /// A failed sync, which poisons.
    pub(crate) async fn sync_mark(&self) -> Result<(), StorageError> {
        let Some((file, synced)) = &self.mark else { return Ok(()) };
        let durable = self.durable_lsn();
        if synced.load(Ordering::Relaxed) == durable.0 {
            return Ok(());
        }
        file.sync_data().await.map_err(|err| self.poison(&format!("the durable mark could not be synced: {err}")))?;
        synced.store(durable.0, Ordering::Relaxed);
        Ok(())
    }
}
