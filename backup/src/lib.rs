//! Backups and the archive of the log: where they are kept, how they are packed, taken, verified and restored.
//!
//! # Structure
//! ```text
//!   target      where objects are kept: put whole, get, list, remove
//!   object      how pages and log are packed                     sum   SHA-256
//!   manifest    what one backup consists of                      names where everything is in a repository
//!   source      a database that gives its pages and log          take  a backup from a source into a target
//!   resume      going on with a backup that was interrupted        archive  sending the log of an open database
//!   epochs      which log follows which: timelines              hole    log that the archive lacks
//!   plan        from a restore's goal to a backup, its chain, its log and the position where the log is cut
//!   restore     carries out a plan                               verify, expire
//! ```
//! docs/design/backup.md has the theory, docs/format.md the bytes.
//!
//! # Invariants
//! - BKP-1: an object appears in a target whole or not at all. A backup counts only if its manifest is there, and the manifest is put last.
//!   So a backup that was interrupted is never taken for a whole one.
//! - BKP-2: everything that is read back is checked against a sum that was made when it was written: objects by their own
//!   checksums and the manifest's SHA-256, pages and log records by theirs.
//! - BKP-3: log is joined only along one timeline: a piece of an epoch counts only below the position at which the next epoch of
//!   the timeline begins.
//! - BKP-4: before anything is written to a restored directory, the log up to the position where it will be cut has been read and is whole.
//!
//! What programs call gives a boxed future: an async function's code would be generated in each crate that awaits it, and so for the command
//! after everything else.
//!
//! # Errors
//! [`BackupError`] says which object, what was expected and what was found.

#![forbid(unsafe_code)]

pub mod archive;
pub mod clock;
pub mod epochs;
pub mod error;
pub mod expire;
pub mod hole;
pub mod manifest;
pub mod names;
pub mod object;
pub mod pieces;
pub mod plan;
pub mod restore;
pub mod resume;
pub mod source;
pub mod take;
pub mod target;
pub mod verify;

pub use error::BackupError;
pub use target::Target;
