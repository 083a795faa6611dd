//! Records of an earlier end of the log that fit, byte for byte, behind a later one.
//!
//! All records are equally long and fill blocks exactly. The power fails while many of them are on their way to the disk: one is lost,
//! some behind it survive. The next opening ends its log right before a surviving record. That record must not be replayed: its epoch is
//! that of the earlier opening.

use super::sweep::{DIR, options};
use super::txns::Book;
use clearway_base::testkit::{Rng, Sim, spawn};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, TreeId, TxnId};
use clearway_storage::record::{Record, RecordKind};
use clearway_storage::recovery::CommitBody;
use clearway_storage::seams::Purpose;
use clearway_storage::store::Store;
use clearway_storage::wal::Wal;
use clearway_storage::wal::format::BLOCK_BYTES;
use std::path::Path;
use std::sync::{Arc, Mutex};

const RECORD_BYTES: u64 = 256;
/// Far above the ids of trees that there are.
const NO_TREE: u64 = 1 << 40;

/// A commit record of `bytes`; what makes it long are drops of trees that do not exist.
async fn append(wal: &Wal, txn: u64, bytes: u64) -> Result<Lsn, StorageError> {
    let empty = 48 + CommitBody::default().encode().len() as u64;
    let dropped = (0..(bytes - empty) / 8).map(|number| TreeId(NO_TREE + number)).collect();
    let body = CommitBody { dropped, ..CommitBody::default() }.encode();
    let record =
        Record { kind: RecordKind::Commit, txn: TxnId(txn), undo_next: Lsn::ZERO, undo: None, ops: &[], body: &body };
    let mut credit = wal.credit(Purpose::System, bytes as usize).await?;
    let range = wal.append(&mut credit, &record);
    assert_eq!(range.end.0 - range.start.0, bytes, "a record of the length that was asked for");
    Ok(range.end)
}

/// One life: fills up to a boundary of the records' length, then appends; gives the end of the log that it found. With
/// `to_block` it stops where a block ends, and syncs.
async fn life(disk: SimDisk, wal: Arc<Mutex<Option<Arc<Wal>>>>, to_block: bool) -> Result<Lsn, StorageError> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    if vfs.list(Path::new("/")).await?.is_empty() {
        vfs.create_dir(Path::new(DIR)).await?;
        vfs.sync_dir(Path::new("/")).await?;
    }
    let (store, recovered) = Store::open(vfs, Path::new(DIR), options(), Arc::new(Book::default())).await?;
    for (name, task) in store.background() {
        spawn(name, task);
    }
    let log = store.wal();
    *wal.lock().expect("wal") = Some(log.clone());
    let missing = RECORD_BYTES - log.end_lsn().0 % RECORD_BYTES;
    if missing != RECORD_BYTES {
        let end = append(log, 1, missing + RECORD_BYTES).await?;
        log.wait_durable(end).await?;
    }
    if to_block {
        while log.end_lsn().0 % BLOCK_BYTES as u64 != 0 {
            let end = append(log, 2, RECORD_BYTES).await?;
            log.wait_durable(end).await?;
        }
    } else {
        let mut end = log.end_lsn();
        for txn in 0..64 {
            end = append(log, 3 + txn, RECORD_BYTES).await?;
        }
        // Somewhere in this flush the power goes.
        disk.crash_at(disk.points() + 1 + Rng::new(end.0 ^ disk.points()).below(3));
        log.wait_durable(end).await?;
    }
    Ok(recovered.visible_lsn)
}

/// Three lives of `seed`.
///
/// # Errors
/// The last one's log ends behind everything that was put into it (SWP-4).
pub fn stale_records(seed: u64) -> Result<(), String> {
    let mut disk = SimDisk::new(seed);
    let mut appended = Lsn(u64::MAX);
    for (number, to_block) in [false, true, true].into_iter().enumerate() {
        let wal: Arc<Mutex<Option<Arc<Wal>>>> = Arc::default();
        let sim = Sim::new(seed ^ (number as u64) << 32);
        match sim.block_on(life(disk.clone(), wal.clone(), to_block)) {
            Ok(Ok(visible)) if visible > appended => {
                return Err(format!("SWP-4: the log ends at {visible}, and nothing was put behind {appended}"));
            }
            Ok(Ok(_)) => {}
            Ok(Err(err)) if !disk.is_off() => return Err(format!("life {number}: {err}")),
            _ if disk.is_off() => {}
            stopped => return Err(format!("life {number}: {stopped:?}")),
        }
        let wal = wal.lock().expect("wal").take();
        appended = wal.map_or(appended, |wal| wal.end_lsn());
        disk = disk.restart();
    }
    Ok(())
}
