//! An explicit-state model of the protocol of rows, tags, undo, log, locks and replies, and an exhaustive search over it.
//!
//! # Structure
//! ```text
//! scenarios   programs of up to three sessions, bounds, and the mutations each scenario must find
//!   program   operations and bounds          mutation  the clauses that can be left out
//! engine      the actions, one atomic step each, on one `state`
//!   session   statements, snapshots, locks    change    writes, rollbacks, the commit section, replies
//!   resolve   what a tag says                 background flush, steal, prune, retire, spill, checkpoint
//!   recovery  crash, analysis, redo, undo     truth     the history of commits, and what each client was told
//! explore     breadth-first search, shortest traces      golden  traces and figures as text
//! ```
//!
//! # Invariants
//! - MODEL-1: what a statement reads is what the commits up to its position left, and no session reads at an earlier position than
//!   before. (`truth`)
//! - MODEL-2: after a crash no acknowledged commit is lost, and every reply that was given is still true. (`truth`)
//! - MODEL-3: once open after a crash, the newest committed versions are what the surviving commits left. (`truth`)
//! - MODEL-4: no session waits for ever while another action is possible. (`explore`)
//! - MODEL-5: no part of the protocol reads the truth: `history`, `told`, `acknowledged`, `newest_seen`, `facts`, `writes` are read in
//!   `truth`, in `fact` and `position_read` of `resolve`, and where a commit enters the history.
//!
//! # Not here
//! Page splits, eviction, torn pages, secondary indexes, foreign keys, cursors and the marks against the Halloween problem, replicas,
//! deadlocks, cancelled statements. See `docs/design/protocol-model.md` for the bounds.

pub mod background;
pub mod change;
pub mod engine;
pub mod explore;
pub mod golden;
pub mod mutation;
pub mod program;
pub mod recovery;
pub mod resolve;
pub mod scenarios;
pub mod session;
pub mod short;
pub mod state;
pub mod truth;
