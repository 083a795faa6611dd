//! A disk that loses, tears, fails, fills up and flips bits, all from one seed.
//!
//! # Structure
//! ```text
//!   SimDisk ── Vfs ──> Request ── begin ──(in flight)── end ──> result
//!     state    files and names: what readers see, what is durable, what is pending between
//!     survive  what a crash leaves
//!     fault    planted errors
//! ```
//! Inside a [`crate::testkit::Sim`] every operation begins at its first poll and ends when the
//! scheduler says so; other tasks run in between. Outside of one, and under [`super::IoOp::wait`], it
//! begins and ends at once.
//!
//! # Invariants
//! - DISK-1: each begin and each end of an operation is one crash point; points are numbered from 1, and
//!   the same seed and program give the same numbers. A crash at a begin finds the operation in flight;
//!   a crash at an end finds its effect there but no caller told.
//! - DISK-2: a crash keeps what VFS-2 and VFS-3 promise and guarantees nothing else: of all other
//!   writes any subset survives, in any order, each torn at 512 bytes; of all other changes of names
//!   any subset.
//! - DISK-3: a failed sync makes a random part of what it covered durable and forgets that the rest was
//!   ever written: later syncs succeed without it (as Linux does, which marks the pages clean).
//! - DISK-4: after power off every operation fails with [`super::PowerOff`].
//! - DISK-5: if only the process dies, everything that readers saw is kept, durable or not; of an operation in flight any part may have
//!   taken effect.
//!
//! # Crash safety
//! `crash_at(n)` stops the world at point n; `restart()` gives the disk that the crash left, with
//! nothing pending, no faults and all locks free. A sweep runs the program once without a crash, reads
//! `points()`, and then crashes at every one of them.
//!
//! # Not here
//! Sectors that were synced and then lost: that is what `flip_bit` is for.

mod fault;
mod state;
mod survive;
mod vfs;

#[cfg(test)]
mod tests;

pub use fault::Fault;

use super::{OpKind, VfsError};
use crate::testkit::{self, Rng};
use state::Disk;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The unit in which writes tear, in bytes.
pub const SECTOR: usize = 512;

/// How a simulated disk behaves apart from planted faults.
#[derive(Clone, Debug)]
pub struct SimDiskOptions {
    /// Total length of all files beyond which writes fail with `StorageFull`.
    pub capacity_bytes: u64,
    /// Virtual latency of an operation: uniform in `0..latency_ns_max`.
    pub latency_ns_max: u64,
    /// One in this many reads returns one flipped bit; 0 for never.
    pub flip_reads_one_in: u64,
}

impl Default for SimDiskOptions {
    fn default() -> Self {
        SimDiskOptions { capacity_bytes: u64::MAX, latency_ns_max: 200_000, flip_reads_one_in: 0 }
    }
}

/// A simulated disk; clones share it.
#[derive(Clone)]
pub struct SimDisk {
    disk: Arc<Mutex<Disk>>,
}

impl SimDisk {
    /// An empty disk whose chances are a function of `seed`.
    pub fn new(seed: u64) -> Self {
        SimDisk::with_options(seed, SimDiskOptions::default())
    }

    /// The same with other properties.
    pub fn with_options(seed: u64, options: SimDiskOptions) -> Self {
        SimDisk::from_disk(Disk::new(Rng::new(seed), options))
    }

    fn from_disk(disk: Disk) -> Self {
        SimDisk { disk: Arc::new(Mutex::new(disk)) }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many crash points have been passed (DISK-1).
    pub fn points(&self) -> u64 {
        self.disk().points
    }

    /// Stops the world at crash point `point`, which must lie ahead.
    pub fn crash_at(&self, point: u64) {
        let mut disk = self.disk();
        assert!(point > disk.points, "crash point {point} is past");
        disk.crash_at = Some(point);
    }

    /// Ends the process at point `point`, which must lie ahead; the machine lives on (DISK-5). What the process had
    /// opened has to be dropped, and [`SimDisk::process_died`] called, before the next one begins.
    pub fn die_at(&self, point: u64) {
        let mut disk = self.disk();
        assert!(point > disk.points, "crash point {point} is past");
        disk.die_at = Some(point);
    }

    /// The process is gone, at the point set by [`SimDisk::die_at`] or by itself: what it had in flight ends or not,
    /// its locks are free, and the next process may begin.
    pub fn process_died(&self) {
        self.disk().process_died();
    }

    /// Whether the process or the power went at the point that was set.
    pub fn is_stopped(&self) -> bool {
        self.disk().stopped()
    }

    /// Total length of all files after each operation that made a file longer.
    pub fn growths(&self) -> Vec<u64> {
        self.disk().growths.clone()
    }

    /// Takes the power away now; inside a simulation also stops it.
    pub fn power_off(&self) {
        self.disk().power_off = true;
        if testkit::in_simulation() {
            testkit::crash();
        }
    }

    /// Whether the power went.
    pub fn is_off(&self) -> bool {
        self.disk().power_off
    }

    /// Takes the power away, if it is still there, and returns the disk that this leaves (DISK-2).
    /// Handles of the old disk stay dead (DISK-4).
    pub fn restart(&self) -> SimDisk {
        let mut disk = self.disk();
        disk.power_off = true;
        SimDisk::from_disk(disk.survivor())
    }

    /// Plants a fault.
    pub fn plant(&self, fault: Fault) {
        self.disk().faults.plant(fault);
    }

    /// Removes all planted faults.
    pub fn clear_faults(&self) {
        self.disk().faults.clear();
    }

    /// How many operations of this kind have begun.
    pub fn calls(&self, op: OpKind) -> u64 {
        self.disk().faults.calls(op)
    }

    /// Changes how much fits.
    pub fn set_capacity(&self, bytes: u64) {
        self.disk().options.capacity_bytes = bytes;
    }

    /// Flips one bit of a file, in what readers see and in what is durable.
    ///
    /// # Errors
    /// `NotFound` for the name, `UnexpectedEof` beyond the end.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> Result<(), VfsError> {
        let flipped = self.disk().flip_bit(path, offset, bit);
        flipped.map_err(|err| VfsError::at(OpKind::Write, path, offset, err))
    }

    /// Flips a random bit of a file that must not be empty; returns the offset.
    ///
    /// # Errors
    /// As [`SimDisk::flip_bit`].
    pub fn flip_random_bit(&self, path: &Path) -> Result<u64, VfsError> {
        let mut disk = self.disk();
        let flipped = disk.visible_len(path).and_then(|len| {
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (offset, bit) = (disk.rng.below(len), disk.rng.below(8) as u8);
            disk.flip_bit(path, offset, bit).map(|()| offset)
        });
        flipped.map_err(|err| VfsError::new(OpKind::Write, path, err))
    }
}
