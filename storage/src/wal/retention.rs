//! Retention: the holders that need old log, by name (backups, replicas, slots).
//!
//! # Invariants
//! - WAL-12: a segment that a holder needs is kept until the holder exceeds its own limit. Then the holder is marked as lost, its next call
//!   reports that, and its segments may be recycled.

use crate::ids::Lsn;
use clearway_base::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One holder as views show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderRow {
    /// Its name.
    pub name: String,
    /// The oldest position that it needs.
    pub needs: Lsn,
    /// The most log that it may pin, in bytes.
    pub limit_bytes: u64,
    /// The holder exceeded its limit: the log that it needs may be recycled.
    pub lost: bool,
}

/// The list of holders.
pub struct Retention {
    holders: Mutex<BTreeMap<String, HolderRow>>,
}

/// A holder's handle; dropping it ends the hold.
pub struct Holder {
    retention: Arc<Retention>,
    name: String,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { holders: Mutex::new("storage/wal/retention", BTreeMap::new()) }
    }
}

impl Retention {
    /// Holds the log from `needs` on. `None` if the name is taken.
    pub fn hold(self: &Arc<Self>, name: &str, needs: Lsn, limit_bytes: u64) -> Option<Holder> {
        assert!(!name.is_empty(), "a holder of the log has a name");
        let mut holders = self.holders.lock();
        if holders.contains_key(name) {
            return None;
        }
        let row = HolderRow { name: name.to_owned(), needs, limit_bytes, lost: false };
        holders.insert(name.to_owned(), row);
        Some(Holder { retention: self.clone(), name: name.to_owned() })
    }

    /// The oldest position that a holder needs, when the log ends at `end`. Marks holders that exceed their limit as lost.
    pub fn oldest(&self, end: Lsn) -> Lsn {
        let mut holders = self.holders.lock();
        for row in holders.values_mut() {
            row.lost |= end.0.saturating_sub(row.needs.0) > row.limit_bytes;
        }
        holders.values().filter(|row| !row.lost).map(|row| row.needs).min().unwrap_or(Lsn::MAX)
    }

    /// All holders, by name.
    pub fn rows(&self) -> Vec<HolderRow> {
        self.holders.lock().values().cloned().collect()
    }
}

impl Holder {
    /// Notes that the holder needs no log below `needs`. False if the holder is lost.
    pub fn advance(&self, needs: Lsn) -> bool {
        let mut holders = self.retention.holders.lock();
        let Some(row) = holders.get_mut(&self.name) else { return false };
        row.needs = row.needs.max(needs);
        !row.lost
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.retention.holders.lock().remove(&self.name);
    }
}
