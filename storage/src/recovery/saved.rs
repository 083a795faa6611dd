//! The file of a checkpoint: active transactions with their old undo, pending frees, and high-water marks.
//!
//! # Structure
//! `checkpoint/<number, 16 hex digits>`, written once, synced, renamed into place; the control file has its length and
//! CRC.
//! ```text
//!   0 magic u64   8 version u32   12 transactions u32   16 number u64   24 tag high-water u64   32 txn high-water u64
//!  40 pending u32   44 chains u32   48 transactions: txn u64, first u64, last u64, entries u32, zero u32, entries
//!   entry: lsn u64, undo_next u64, tree u64, tag u64, prev_tag u64, key_len u16, before u8, zero u8, before_len u32,
//!          key, before
//!   pending: tree u64, commit LSN u64
//!   chains: tree u64, commit LSN u64, reference 16 bytes
//! ```
//!
//! # Invariants
//! - REC-2: for every transaction that was active at the previous checkpoint, the file holds all undo up to this
//!   checkpoint. All records of a transaction that began later are beyond the previous checkpoint's begin, where reading
//!   starts. So no transaction, however old, pins the log.

use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, Tag, TreeId, TxnId};
use crate::record::{BeforeImage, TxnLog, UndoEntry};
use crate::seams::{ActiveTxn, ActiveTxns};
use crate::wal::format::{Bytes, FORMAT_VERSION};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: u64 = u64::from_le_bytes(*b"CLRWYCKP");

/// A tree that a commit dropped and that is not yet marked as dropping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingDrop {
    /// The tree.
    pub tree: TreeId,
    /// The commit that dropped it.
    pub commit: Lsn,
}

/// An overflow chain that a commit superseded and that is not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingChain {
    /// The commit that superseded it.
    pub commit: Lsn,
    /// The tree that it belongs to.
    pub tree: TreeId,
    /// The reference to it, as the leaf held it.
    pub reference: [u8; 16],
}

/// A checkpoint's content.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// Active transactions; undo only of those that were active at the previous checkpoint.
    pub active: ActiveTxns,
    /// Drops that are not finished.
    pub pending: Vec<PendingDrop>,
    /// Superseded chains that are not freed.
    pub chains: Vec<PendingChain>,
}

/// The name of a checkpoint's file until it is whole.
pub(super) const UNFINISHED: &str = "new.tmp";
/// The least that is kept for the next one.
const ROOM_BYTES: u64 = 64 << 10;

/// The path of a checkpoint's file.
pub fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}"))
}

impl Saved {
    /// The file's bytes.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let most = self.active.txns.iter().map(|txn| txn.undo.len()).max().unwrap_or(0);
        let most = most.max(self.active.txns.len()).max(self.pending.len()).max(self.chains.len());
        assert!(u32::try_from(most).is_ok(), "REC-2: a list of {most} entries, whose number has four bytes");
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&(self.active.txns.len() as u32).to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&self.active.tag_high_water.0.to_le_bytes());
        out.extend_from_slice(&self.active.txn_high_water.0.to_le_bytes());
        out.extend_from_slice(&(self.pending.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.chains.len() as u32).to_le_bytes());
        for txn in &self.active.txns {
            for number in [txn.log.txn.0, txn.log.first_lsn.0, txn.log.last_lsn.0] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&(txn.undo.len() as u32).to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            txn.undo.iter().for_each(|entry| encode_entry(entry, &mut out));
        }
        for pending in &self.pending {
            out.extend_from_slice(&pending.tree.0.to_le_bytes());
            out.extend_from_slice(&pending.commit.0.to_le_bytes());
        }
        for chain in &self.chains {
            out.extend_from_slice(&chain.tree.0.to_le_bytes());
            out.extend_from_slice(&chain.commit.0.to_le_bytes());
            out.extend_from_slice(&chain.reference);
        }
        out
    }

    /// The version of a file that is newer than this program.
    fn newer(bytes: &[u8]) -> Option<u32> {
        let mut at = Bytes::new(bytes);
        let magic = at.u64()?;
        at.u32().filter(|version| magic == MAGIC && *version > FORMAT_VERSION)
    }

    fn decode(bytes: &[u8], number: u64) -> Option<Saved> {
        let mut at = Bytes::new(bytes);
        if at.u64()? != MAGIC || at.u32()? > FORMAT_VERSION {
            return None;
        }
        let txns = at.u32()?;
        if at.u64()? != number {
            return None;
        }
        let (tag_high_water, txn_high_water) = (Tag(at.u64()?), TxnId(at.u64()?));
        let (pending, chains) = (at.u32()?, at.u32()?);
        let active = ActiveTxns { txns: Vec::new(), tag_high_water, txn_high_water };
        let mut saved = Saved { active, ..Saved::default() };
        for _ in 0..txns {
            let mut log = TxnLog::new(TxnId(at.u64()?));
            log.first_lsn = Lsn(at.u64()?);
            log.last_lsn = Lsn(at.u64()?);
            let entries = at.u32()?;
            at.u32()?;
            let undo = (0..entries).map(|_| decode_entry(&mut at)).collect::<Option<Vec<_>>>()?;
            saved.active.txns.push(ActiveTxn { log, undo });
        }
        for _ in 0..pending {
            saved.pending.push(PendingDrop { tree: TreeId(at.u64()?), commit: Lsn(at.u64()?) });
        }
        for _ in 0..chains {
            let (tree, commit) = (TreeId(at.u64()?), Lsn(at.u64()?));
            saved.chains.push(PendingChain { commit, tree, reference: at.take(16)?.try_into().ok()? });
        }
        at.rest().is_empty().then_some(saved)
    }

    /// Writes and syncs the file of checkpoint `number`; returns length and CRC for the control file.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn write(&self, vfs: &Arc<dyn Vfs>, dir: &Path, number: u64) -> Result<(u32, u32), StorageError> {
        let bytes = self.encode(number);
        let crc = crc32c::crc32c(&bytes);
        let temporary = dir.join(UNFINISHED);
        let file = vfs.open(&temporary, OpenHow::create(FileKind::Control)).await?;
        let len = u32::try_from(bytes.len())
            .map_err(|_| StorageError::NoSpace(format!("a checkpoint of {} bytes", bytes.len()).into()))?;
        // Over what `keep_room` has left there; no opening reads the file before it has its name.
        file.write_at(0, IoBuf::from_slice(&bytes)).await?;
        file.set_len(u64::from(len)).await?;
        file.sync_data().await?;
        vfs.rename(&temporary, &path(dir, number)).await?;
        vfs.sync_dir(dir).await?;
        Ok((len, crc))
    }

    /// Keeps room for the next checkpoint's file, so that one can be taken on a full disk: it gives log space back. Where there is no room
    /// now, the next checkpoint keeps some.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn keep_room(vfs: &Arc<dyn Vfs>, dir: &Path, len: u32) -> Result<(), StorageError> {
        let room = async {
            let file = vfs.open(&dir.join(UNFINISHED), OpenHow::create(FileKind::Control)).await?;
            file.preallocate(0, ROOM_BYTES.max(2 * u64::from(len))).await
        };
        match room.await {
            Err(err) if err.is_full() => Ok(()),
            kept => Ok(kept?),
        }
    }

    /// Reads the file of checkpoint `number` back.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub async fn read(vfs: &Arc<dyn Vfs>, dir: &Path, number: u64, len: u32, crc: u32) -> Result<Saved, StorageError> {
        let path = path(dir, number);
        let damaged = |expected: String, found: String| Corruption {
            file: path.display().to_string(),
            offset: Some(0),
            page: None,
            lsn: None,
            expected,
            found,
        };
        let file = match vfs.open(&path, OpenHow::read_only(FileKind::Control)).await {
            Ok(file) => file,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged("the file of the last checkpoint".into(), "no such file".into()).into());
            }
            Err(err) => return Err(err.into()),
        };
        let bytes = file.read_at(0, IoBuf::zeroed(0), len as usize).await?;
        let actual = crc32c::crc32c(&bytes);
        if bytes.len() != len as usize || actual != crc {
            let found = format!("{} bytes with checksum {actual:#010x}", bytes.len());
            return Err(damaged(format!("{len} bytes with checksum {crc:#010x}"), found).into());
        }
        if let Some(version) = Saved::newer(&bytes) {
            let expected = format!("format version {FORMAT_VERSION} or older");
            return Err(damaged(expected, format!("version {version}")).into());
        }
        Saved::decode(&bytes, number)
            .ok_or_else(|| damaged(format!("checkpoint {number}"), "something else".into()).into())
    }
}

fn encode_entry(entry: &UndoEntry, out: &mut Vec<u8>) {
    assert!(entry.undo_next < entry.lsn, "REC-2: the undo at {} names {} as the next", entry.lsn, entry.undo_next);
    assert!(u16::try_from(entry.key.len()).is_ok(), "REC-2: a key of {} bytes is saved", entry.key.len());
    for number in [entry.lsn.0, entry.undo_next.0, entry.tree.0, entry.tag.0, entry.prev_tag.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let (before, value): (u8, &[u8]) = match &entry.before {
        BeforeImage::Absent => (0, &[]),
        BeforeImage::Row { ghost, overflow, value } => (1 | u8::from(*ghost) << 1 | u8::from(*overflow) << 2, value),
    };
    out.extend_from_slice(&(entry.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&[before, 0]);
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&entry.key);
    out.extend_from_slice(value);
}

fn decode_entry(at: &mut Bytes<'_>) -> Option<UndoEntry> {
    let (lsn, undo_next, tree) = (Lsn(at.u64()?), Lsn(at.u64()?), TreeId(at.u64()?));
    let (tag, prev_tag) = (Tag(at.u64()?), Tag(at.u64()?));
    let key_len = usize::from(at.u16()?);
    let before = at.u8()?;
    at.u8()?;
    let value_len = at.u32()? as usize;
    let key = at.take(key_len)?.into();
    let value: Box<[u8]> = at.take(value_len)?.into();
    let before = match before {
        0 => BeforeImage::Absent,
        1..=7 if before & 1 == 1 => BeforeImage::Row { ghost: before & 2 != 0, overflow: before & 4 != 0, value },
        _ => return None,
    };
    Some(UndoEntry { lsn, undo_next, tree, key, tag, prev_tag, before })
}
