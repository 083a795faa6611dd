//! Calls that fail: the n-th of each kind, syncs that fail and lose data although later syncs succeed, a full disk.
//!
//! # Structure
//! ```text
//!   count     one run without a fault counts how often each kind is called, and records where files grow
//!   disturb   a run in which one call fails, or nothing grows beyond a point: it ends well or with an error (SWP-5)
//!   after     the next opening on a good disk, after the process's death or a power cut: SWP-1 to SWP-3
//! ```
//! A failed sync makes a random part of what it covered durable and discards the rest; later syncs succeed. After the failed sync of a
//! directory only a power cut is tested: file systems with a journal stop when that fails, so that a later opening follows a new mount.

use super::sweep::{self, CLOSE, Doing, Ended, LOOK, Stopper, WORK, World};
use super::workload::Size;
use clearway_base::vfs::OpKind;
use clearway_base::vfs::sim::Fault;
use clearway_storage::error::StorageError;
use std::io::ErrorKind;

/// The kinds of calls that are made to fail.
pub const KINDS: [OpKind; 12] = [
    OpKind::Write,
    OpKind::SyncData,
    OpKind::Read,
    OpKind::Preallocate,
    OpKind::SetLen,
    OpKind::Rename,
    OpKind::Remove,
    OpKind::SyncDir,
    OpKind::Open,
    OpKind::List,
    OpKind::Len,
    OpKind::CreateDir,
];

/// One disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// The n-th call of a kind fails, counted from 1.
    Call(OpKind, u64),
    /// The n-th call of a kind fails in the opening after a crash at this point of the workload.
    CallInRecovery(OpKind, u64, u64),
    /// No more than these bytes fit.
    Room(u64),
}

/// Everything that can be disturbed in the workload of `seed`: each call of each kind, each growth of a file, and each
/// call of some recoveries.
///
/// # Errors
/// The workload fails undisturbed.
pub fn disturbances(seed: u64, size: Size) -> Result<Vec<Disturbance>, String> {
    let mut world = World::new(seed, size);
    world.live_well(WORK)?;
    let disk = &world.disk;
    let mut all: Vec<Disturbance> = Vec::new();
    for kind in KINDS {
        all.extend((1..=disk.calls(kind)).map(|nth| Disturbance::Call(kind, nth)));
    }
    let mut growths = disk.growths();
    growths.sort_unstable();
    growths.dedup();
    all.extend(growths.into_iter().map(|used| Disturbance::Room(used - 1)));
    for share in [3, 5, 9] {
        let point = disk.points() * share / 10;
        let mut crashed = World::new(seed, size);
        crashed.live(WORK, Stopper::Power(point)).map_err(|ended| format!("{ended:?}"))?;
        crashed.live_well(CLOSE)?;
        for kind in KINDS {
            all.extend((1..=crashed.disk.calls(kind)).map(|nth| Disturbance::CallInRecovery(kind, nth, point)));
        }
    }
    Ok(all)
}

/// What came of a disturbed life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It went unnoticed.
    Unnoticed,
    /// Some calls returned errors, and the database went on.
    Refused,
    /// It stopped, or was not opened.
    Stopped,
}

/// Runs the workload of `seed` with one disturbance, then looks at what is there on a good disk.
///
/// # Errors
/// What is wrong.
pub fn disturb(seed: u64, size: Size, disturbance: Disturbance) -> Result<Outcome, String> {
    let mut world = World::new(seed, size);
    let mut doing = Doing { room_then_more: true, ..WORK };
    match disturbance {
        Disturbance::Call(kind, nth) => world.disk.plant(Fault::on(kind, ErrorKind::Other).nth(nth)),
        Disturbance::Room(bytes) => world.disk.set_capacity(bytes),
        Disturbance::CallInRecovery(kind, nth, point) => {
            world.live(WORK, Stopper::Power(point)).map_err(|ended| format!("before: {ended:?}"))?;
            world.disk.plant(Fault::on(kind, ErrorKind::Other).nth(nth));
            doing = CLOSE;
        }
    }
    world.history.lock().expect("history").tolerant = true;
    let ended = world.live(doing, Stopper::None);
    world.disk.clear_faults();
    world.disk.set_capacity(u64::MAX);
    let outcome = {
        let mut history = world.history.lock().expect("history");
        history.tolerant = false;
        if history.errors.is_empty() { Outcome::Unnoticed } else { Outcome::Refused }
    };
    let outcome = match ended {
        Ok(_) => outcome,
        Err(Ended::Storage(err @ StorageError::Corruption(_))) => {
            return Err(format!("SWP-5: a failed call was taken for damage: {err}"));
        }
        Err(Ended::Storage(_)) => Outcome::Stopped,
        Err(Ended::Wrong(wrong)) => return Err(format!("disturbed: {wrong}")),
    };
    let remounted =
        matches!(disturbance, Disturbance::Call(OpKind::SyncDir, _) | Disturbance::CallInRecovery(OpKind::SyncDir, ..));
    if !remounted {
        // The next process sees what the last one wrote, durable or not; then the power goes.
        world.live_well(if seed % 2 == 0 { LOOK } else { WORK })?;
    }
    sweep::after(&mut world)?;
    Ok(outcome)
}
