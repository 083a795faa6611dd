//! The crash sweep: a workload on a simulated disk, a crash at every begin and end of an I/O, recovery, and a
//! comparison of what is there with what was acknowledged.
//!
//! # Structure
//! ```text
//!   workload  tasks with keys of their own: commits, aborts, savepoints, large rollbacks, trees made and dropped
//!   txns      a transaction layer without locks
//!   check     the state that the log's end implies, against the state that is there; and no page leaks
//!   sweep     run, crash at point n, recover, perhaps crash again in between, check
//! ```
//!
//! # Invariants
//! - SWP-1: after recovery each task's rows are those of its last commit at or below the end of the log, and every
//!   acknowledged commit is.
//! - SWP-2: the pages that are allocated are those that trees and space refer to, no more and no less.
//! - SWP-3: an end of the log that recovery accepted never moves back.

mod check;
pub mod sweep;
pub mod txns;
pub mod workload;
