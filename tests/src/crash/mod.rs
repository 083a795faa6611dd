//! The crash sweep: a workload on a simulated disk, a crash at every begin and end of an I/O, recovery, and a comparison of what is there
//! with what was acknowledged.
//!
//! # Structure
//! ```text
//!   workload  tasks with keys of their own: commits, aborts, savepoints, large rollbacks, trees created and dropped
//!   txns      a transaction layer without locks
//!   check     the state that the log's end implies, against the state that is there; and no page leaks
//!   sweep     one database, opened again and again: open, recover, compare, work; crash at point n, and again in between
//!   backups   backups and the archive beside the workload, and restores from them
//!   damage    one byte of what they keep is changed
//!   faults    the n-th call fails; a sync fails and later ones report success; the disk is full
//!   flips     one bit of one file is flipped
//!   stale     records of an earlier end of the log that fit behind a later one
//! ```
//!
//! # Invariants
//! - SWP-1: after recovery each task's rows are those of its last commit at or below the end of the log, and every acknowledged commit is
//!   at or below that end.
//! - SWP-2: the allocated pages are exactly those that trees and space refer to.
//! - SWP-3: an end of the log that recovery accepted never moves back.
//! - SWP-4: the log does not end behind the last byte that was ever appended to it.
//! - SWP-5: a call that fails is reported as a failed call, or stops the database. It is not taken for damage, and no task waits or loops
//!   for ever.
//! - SWP-6: a rollback does not fail for want of space.

pub mod backups;
mod check;
pub mod damage;
pub mod faults;
pub mod flips;
pub mod stale;
pub mod sweep;
pub mod txns;
pub mod workload;
