//! One bit of one file is flipped: the database gives the right answer, or reports the damage.
//!
//! The only bytes that may change silently are those of the log behind the last LSN that is recorded as durable: a damaged end of the log
//! can't be distinguished from an end that was being written.

use super::sweep::{DIR, Ended, LOOK, Stopper, World};
use clearway_base::testkit::Sim;
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_storage::error::StorageError;
use clearway_storage::ids::Lsn;
use clearway_storage::recovery::control::ControlFile;
use clearway_storage::wal::format::BLOCK_BYTES;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::repair::read_all;
use clearway_storage::wal::segments::Layout;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a database, with their lengths.
///
/// # Errors
/// A directory that can't be listed.
pub fn files(disk: &SimDisk) -> Result<Vec<(PathBuf, u64)>, String> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let listed = Sim::new(1).block_on(async move {
        let mut files = Vec::new();
        for dir in ["", "wal", "data", "checkpoint"] {
            let dir = Path::new(DIR).join(dir);
            for entry in vfs.list(&dir).await? {
                files.push((dir.join(&entry.name), entry.size));
            }
        }
        Ok::<_, StorageError>(files)
    });
    let files = listed.map_err(|stop| stop.to_string())?.map_err(|err| err.to_string())?;
    Ok(files.into_iter().filter(|(_, size)| *size > 0).collect())
}

/// Recovers a copy of a stopped world with one bit flipped, and checks everything.
///
/// # Errors
/// What storage said, or what is wrong.
pub fn recover_flipped(world: &World, path: &Path, offset: u64, bit: u8) -> Result<(), Ended> {
    let mut copy = world.fork();
    copy.disk.flip_bit(path, offset, bit).map_err(|err| Ended::Wrong(format!("the flip: {err}")))?;
    copy.live(LOOK, Stopper::None).map(|_| ())
}

/// The bytes of the log that no record and no control block vouches for.
pub struct Unrecorded {
    layout: Layout,
    /// What was surely durable, exclusive.
    recorded: Lsn,
}

impl Unrecorded {
    /// Whether a byte is among them. A segment's header belongs to its first position.
    pub fn holds(&self, path: &Path, offset: u64) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(number) = Layout::parse_name(&name) else { return false };
        let within = offset.saturating_sub(BLOCK_BYTES as u64);
        self.layout.first_lsn(number).0 + within >= self.recorded.0
    }
}

/// Looks for the greatest LSN that is recorded as durable, in the control file and in the records of the log.
///
/// # Errors
/// A database that can't be read.
pub fn unrecorded(disk: &SimDisk) -> Result<Unrecorded, String> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let read = Sim::new(1).block_on(async move {
        let dir = Path::new(DIR);
        let (_, control) = ControlFile::open(&vfs, dir).await?.expect("a database");
        let layout = Layout { segment_bytes: control.segment_bytes };
        let floor = (control.epoch_start, control.epoch);
        let log = LogReader::new(vfs.clone(), &dir.join("wal"), layout, control.database, control.scan, floor);
        let end = read_all(log, |_, _| Ok(())).await?;
        Ok::<_, StorageError>(Unrecorded { layout, recorded: control.durable.max(end.durable_hint) })
    });
    read.map_err(|stop| stop.to_string())?.map_err(|err| err.to_string())
}
