//! The options of an open database: sizes, intervals, and what its opening may do.

use crate::buffer::PoolOptions;
use crate::recovery::progress::Progress;
use crate::space::SpaceOptions;
use crate::wal::WalOptions;
use clearway_base::breath::processors;
use std::sync::Arc;
use std::time::Duration;

/// How long opening may take after a crash if nothing else is said.
pub const RECOVERY_TARGET: Duration = Duration::from_secs(10);
/// Log that recovery reads and applies in a second, in bytes: half of what was measured (docs/measured/restart.md), for slower machines.
const REPLAY_BYTES_PER_S: u64 = 64 << 20;
/// Of the log that recovery may have to read, the part between the beginnings of two checkpoints: it begins to read at the beginning of the
/// last but one, and the next one may be under way for as long as half of that part.
pub(crate) const fn interval(checkpoint_bytes: u64) -> u64 {
    checkpoint_bytes / 5 * 2
}

/// The threads that apply the log to pages after a crash, of a process that has its processors to itself: more than eight would wait for the one that reads.
pub fn redo_threads() -> usize {
    processors().clamp(1, 8)
}

/// The options of an open database.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The log.
    pub wal: WalOptions,
    /// The page cache.
    pub pool: PoolOptions,
    /// Data files.
    pub space: SpaceOptions,
    /// The log that recovery may have to read, in bytes; checkpoints are taken so that it does not become more.
    /// [`StoreOptions::recover_within`] says it in time.
    pub checkpoint_bytes: u64,
    /// How long a checkpoint that is not in a hurry pauses between two batches of pages; zero: not at all.
    pub checkpoint_pause: Duration,
    /// The log that may be held for an archive, in bytes; none: there is no archive (ARC-1).
    pub archive_bytes: Option<u64>,
    /// Make a database where there is none.
    pub create: bool,
    /// A random number that tells the files of two databases apart; used when one is made.
    pub database_seed: u64,
    /// Threads that apply the log to pages after a crash, beside the opening task, which reads it; 0: the opening task does all, as a simulation must. See [`redo_threads`].
    pub redo_threads: usize,
    /// Where opening says how far it is.
    pub progress: Arc<Progress>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            wal: WalOptions::default(),
            pool: PoolOptions::for_budget(256 << 20),
            space: SpaceOptions::default(),
            checkpoint_bytes: 0,
            checkpoint_pause: Duration::from_millis(20),
            archive_bytes: None,
            create: true,
            database_seed: 1,
            redo_threads: 0,
            progress: Arc::default(),
        }
        .recover_within(RECOVERY_TARGET)
    }
}

impl StoreOptions {
    /// Has checkpoints taken so that opening after a crash takes about `target` at most.
    #[must_use]
    pub fn recover_within(mut self, target: Duration) -> StoreOptions {
        let bytes = u128::from(REPLAY_BYTES_PER_S) * target.as_millis() / 1000;
        let most = u64::MAX / 8;
        self.checkpoint_bytes = u64::try_from(bytes).unwrap_or(most).clamp(4 * self.wal.segment_bytes, most);
        // Beyond that writers wait; checkpoints come long before.
        self.wal.log_bytes_max = self.wal.log_bytes_max.max(4 * self.checkpoint_bytes);
        self
    }
}
