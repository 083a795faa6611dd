//! Who is taking a copy, and what is kept for it.

use super::start::Start;
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::recovery::saved;
use crate::store::Store;
use crate::wal::Holder;
use clearway_base::sync::Mutex;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, VfsFile};
use clearway_base::waits::{now_ns, wall_us};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

/// A lease that nobody has used for so long ends at the next checkpoint: a taker whose connection broke may come back until then.
const LEASE_NS: u64 = 300 * 1_000_000_000;
/// The log that one lease may keep, in bytes; beyond it the copy is lost and the log goes on.
const LEASE_LOG_BYTES: u64 = 256 << 30;

/// The leases of one open database.
pub(crate) struct Leases {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: BTreeMap<u64, Lease>,
    last: u64,
}

struct Lease {
    holder: Holder,
    /// The oldest position that it needs.
    scan: Lsn,
    used_ns: u64,
}

impl Leases {
    pub(crate) fn new() -> Leases {
        Leases { state: Mutex::new("storage/backup/leases", State::default()) }
    }

    /// A number that no earlier process of this database gave out either.
    fn number(&self) -> u64 {
        let mut state = self.state.lock();
        state.last = (state.last + 1).max(u64::try_from(wall_us()).unwrap_or(0));
        state.last
    }

    fn put(&self, number: u64, holder: Holder, scan: Lsn) {
        self.state.lock().all.insert(number, Lease { holder, scan, used_ns: now_ns() });
    }

    /// The lease is in use: its time begins anew.
    pub(super) fn touch(&self, number: u64) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        let Some(lease) = state.all.get_mut(&number) else {
            let what = format!("there is no backup {number}: it has ended, or the server has been started again since");
            return Err(StorageError::Invalid(what.into()));
        };
        lease.used_ns = now_ns();
        // BAK-2
        if lease.holder.advance(lease.scan) {
            return Ok(());
        }
        state.all.remove(&number);
        Err(StorageError::Invalid(format!("backup {number} needed more log than may be kept for it").into()))
    }

    pub(super) fn end(&self, number: u64) {
        self.state.lock().all.remove(&number);
    }

    /// Ends the leases that nobody uses any more.
    pub(crate) fn expire(&self) {
        let now = now_ns();
        self.state.lock().all.retain(|_, lease| now.saturating_sub(lease.used_ns) < LEASE_NS);
    }

    /// BAK-4: where redo of the oldest copy that is being taken begins to read.
    pub(crate) fn oldest(&self) -> Lsn {
        self.state.lock().all.values().map(|lease| lease.scan).min().unwrap_or(Lsn::MAX)
    }
}

impl Store {
    /// Begins a copy: from now on the log that it needs is kept, until [`Store::leave_copy`] or until nobody asks for five minutes.
    ///
    /// # Errors
    /// The database has ended; a failed read.
    pub async fn begin_copy(&self) -> Result<Start, StorageError> {
        loop {
            if self.ended() {
                return Err(self
                    .wal()
                    .poisoned()
                    .unwrap_or_else(|| StorageError::Invalid("the database is closed".into())));
            }
            self.leases().expire();
            let lease = self.leases().number();
            // BAK-2: with the control block in hand, before a newer one can release what this one needs.
            let held = self.checkpoints().with_control(|control| {
                let holder = self.wal().retention().hold(&format!("backup {lease}"), control.scan, LEASE_LOG_BYTES);
                holder.map(|holder| {
                    self.leases().put(lease, holder, control.scan);
                    *control
                })
            });
            let Some(control) = held else { continue };
            let read = async {
                if control.checkpoint == 0 {
                    return Ok(Vec::new());
                }
                let path = saved::path(self.checkpoints().dir(), control.checkpoint);
                let file: Arc<dyn VfsFile> = self.vfs().open(&path, OpenHow::existing(FileKind::Checkpoint)).await?;
                let len = control.checkpoint_len as usize;
                Ok(file.read_exact_at(0, IoBuf::zeroed(len), len).await?.to_vec())
            };
            match read.await {
                Ok(checkpoint) => {
                    return Ok(Start { lease, files: self.space().file_pages(), control, checkpoint });
                }
                // A checkpoint ended meanwhile and took the file of the one before with it.
                Err(StorageError::Io(err)) if err.kind() == ErrorKind::NotFound => self.leases().end(lease),
                Err(err) => {
                    self.leases().end(lease);
                    return Err(err);
                }
            }
        }
    }

    /// Ends a copy; what was kept for it goes.
    pub fn leave_copy(&self, lease: u64) {
        self.leases().end(lease);
    }
}
