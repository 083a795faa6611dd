//! Which snapshots exist, and whether one of them needs a record.

/// Commit LSN of a record whose transaction is still open.
pub const OPEN: u64 = u64::MAX;

/// The snapshots that exist: some long ones, and any number younger than `fresh_from`.
#[derive(Default)]
pub struct Snapshots {
    pub long: Vec<u64>,
    pub fresh_from: u64,
    /// Where the one long writing transaction committed, or `OPEN`.
    pub closed_at: u64,
}

impl Snapshots {
    /// Whether some snapshot, or the open transaction itself, may still ask for the record.
    pub fn needs(&self, prior: u64, commit: u64) -> bool {
        let commit = if commit == OPEN {
            self.closed_at
        } else {
            commit
        };
        commit >= self.fresh_from || self.held_long(prior, commit)
    }
    /// A snapshot older than the fresh window lies in [prior, commit).
    pub fn held_long(&self, prior: u64, commit: u64) -> bool {
        self.long.iter().any(|&s| prior <= s && s < commit)
    }
}
