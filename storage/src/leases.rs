//! Leases: the copies of the running database that are being taken, and what is kept for them. The invariants: `crate::backup`.

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::wal::Holder;
use clearway_base::sync::Mutex;
use clearway_base::waits::{now_ns, wall_us};
use std::collections::BTreeMap;

/// A lease that was not used for so long ends at the next checkpoint: a taker whose connection broke may come back until then.
const LEASE_NS: u64 = 300 * 1_000_000_000;

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
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.state.lock();
        state.last = (state.last + 1).max(u64::try_from(wall_us()).unwrap_or(0));
        state.last
    }

    /// Notes a lease.
    pub(crate) fn put(&self, number: u64, holder: Holder, scan: Lsn) {
        self.state.lock().all.insert(number, Lease { holder, scan, used_ns: now_ns() });
    }

    /// The lease is in use: its time begins anew.
    pub(crate) fn touch(&self, number: u64) -> Result<(), StorageError> {
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

    /// Ends a lease.
    pub(crate) fn end(&self, number: u64) {
        self.state.lock().all.remove(&number);
    }

    /// Ends the leases that are no longer used.
    pub(crate) fn expire(&self) {
        let now = now_ns();
        self.state.lock().all.retain(|_, lease| now.saturating_sub(lease.used_ns) < LEASE_NS);
    }

    /// BAK-4: where redo of the oldest copy that is being taken begins to read.
    pub(crate) fn oldest(&self) -> Lsn {
        self.state.lock().all.values().map(|lease| lease.scan).min().unwrap_or(Lsn::MAX)
    }
}
