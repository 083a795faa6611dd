//! The wait event and the object under which an operation's wait is accounted.

use super::{FileKind, OpKind};
use crate::waits::{Object, WaitEvent};
use std::path::Path;

/// What an operation waits under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Booking {
    pub(super) event: WaitEvent,
    pub(super) object: Object,
}

impl Booking {
    /// The booking of an operation; the object is the file, and the byte in it.
    pub(super) fn new(op: OpKind, kind: FileKind, path: &Path, offset: Option<u64>) -> Self {
        Booking::of(op, kind, file_id(path), offset)
    }

    /// The same; the file is named by its number.
    pub(super) fn of(op: OpKind, kind: FileKind, file: u64, offset: Option<u64>) -> Self {
        Booking { event: event_of(op, kind), object: Object::new(file, offset.unwrap_or(0)) }
    }
}

/// The number by which wait objects name a file: FNV-1a (Fowler, Noll, Vo) of its path.
pub fn file_id(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn event_of(op: OpKind, kind: FileKind) -> WaitEvent {
    match op {
        OpKind::Open | OpKind::CreateDir | OpKind::List | OpKind::Len | OpKind::Mode | OpKind::SetMode => {
            WaitEvent::FileOpen
        }
        OpKind::Remove | OpKind::Rename => WaitEvent::FileRemove,
        OpKind::SyncDir => WaitEvent::DirectorySync,
        OpKind::Lock => WaitEvent::FileLock,
        OpKind::Read => read_event(kind),
        OpKind::Write => write_event(kind),
        OpKind::SyncData => sync_event(kind),
        OpKind::SetLen => match kind {
            FileKind::Data => WaitEvent::DataFileTruncate,
            _ => write_event(kind),
        },
        OpKind::Preallocate => match kind {
            FileKind::Wal => WaitEvent::WalInitWrite,
            FileKind::Data => WaitEvent::DataFileExtend,
            _ => write_event(kind),
        },
    }
}

fn read_event(kind: FileKind) -> WaitEvent {
    match kind {
        FileKind::Wal => WaitEvent::WalRead,
        // The double-write area is read once, in recovery, in place of data.
        FileKind::Data | FileKind::DoubleWrite => WaitEvent::DataFileRead,
        FileKind::Undo => WaitEvent::UndoSpillRead,
        FileKind::Checkpoint => WaitEvent::CheckpointRead,
        FileKind::Control => WaitEvent::ControlFileRead,
        FileKind::Log | FileKind::Other => WaitEvent::BufFileRead,
    }
}

fn write_event(kind: FileKind) -> WaitEvent {
    match kind {
        FileKind::Wal => WaitEvent::WalWrite,
        FileKind::Data => WaitEvent::DataFileWrite,
        FileKind::DoubleWrite => WaitEvent::DoubleWriteWrite,
        FileKind::Undo => WaitEvent::UndoSpillWrite,
        FileKind::Checkpoint => WaitEvent::CheckpointWrite,
        FileKind::Control => WaitEvent::ControlFileWrite,
        FileKind::Log => WaitEvent::SlowLogWrite,
        FileKind::Other => WaitEvent::BufFileWrite,
    }
}

fn sync_event(kind: FileKind) -> WaitEvent {
    match kind {
        FileKind::Wal => WaitEvent::WalSync,
        FileKind::Data => WaitEvent::DataFileSync,
        FileKind::DoubleWrite => WaitEvent::DoubleWriteSync,
        FileKind::Checkpoint => WaitEvent::CheckpointSync,
        FileKind::Control => WaitEvent::ControlFileSync,
        // Files that need not survive; a thread that syncs them nevertheless waits for their writes.
        FileKind::Undo | FileKind::Log | FileKind::Other => write_event(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Sim;
    use crate::vfs::sim::SimDisk;
    use crate::vfs::{IoBuf, OpenHow, Vfs};
    use crate::waits::books;

    #[test]
    fn virtual_time_on_a_disk_is_booked_under_the_kind_of_file() {
        for seed in 1..=20 {
            let (sim, disk) = (Sim::new(seed), SimDisk::new(seed));
            let task = async move {
                let how = OpenHow::create(FileKind::Wal);
                let file = disk.open(Path::new("/wal"), how).await.expect("open");
                file.write_at(0, IoBuf::from_slice(&[1; 512])).await.expect("write");
                file.sync_data().await.expect("sync");
            };
            let (_, books) = sim.block_on(books(task)).expect("ends");
            let shares = [WaitEvent::FileOpen, WaitEvent::WalWrite, WaitEvent::WalSync].map(|event| books.wait(event));
            assert!(shares.iter().all(|share| share.count == 1), "{shares:?}");
            assert_eq!(books.wait_ns(), sim.now_ns(), "all of the time was I/O");
        }
    }
}
