//! Copies of a database that runs, and databases made from copies.
//!
//! # Structure
//! ```text
//!   lease     what storage keeps while a copy is taken: the log from `scan` on, the files' lengths
//!   copy      pages and log of a running database, in pieces that the taker asks for
//!   request   one request for a part of a copy, as text on a connection
//!   stream    the log as bytes that come in pieces: records, commits, restore points
//!   rebuild   a directory from a copy's pages and log, as a crash at `end` would have left it
//! ```
//!
//! # Life of a copy
//! The taker is the program that takes the copy. begin (a lease; control block, saved checkpoint) -> pages, piece by piece, in any order,
//! each as often as the taker asks -> end (a durable position) -> the log from `scan` to `end` -> leave. Nothing waits for the taker.
//!
//! # Invariants
//! - BAK-1: a copied page was on disk or in memory at some moment after `begin`, so it has every change below the checkpoint's
//!   `redo`. Its checksum is right, and its LSN is at or below `end`.
//! - BAK-2: the log from the checkpoint's `scan` to `end` is whole. A holder keeps it while the lease exists, the loss of the holder ends
//!   the copy with an error, and `end` is durable before the taker learns it.
//! - BAK-3: so a copy is what a crash at `end` would have left, with two differences: a page may be newer than it was on disk (redo decides
//!   by the page's LSN, REC-5), and no page is torn.
//! - BAK-4: while a lease exists no data file is cut: redo from the lease's checkpoint must find the pages that it changes.
//! - BAK-5: a rebuilt directory has no control file until everything else in it is synced. Its first opening begins an epoch greater than
//!   every epoch that the copied database had used.
//!
//! # Crash safety
//! Leases are in memory only. After a crash of the server, the taker's next request fails because the lease is gone, and the taker begins
//! anew. A rebuild that was interrupted has no control file, so no opening takes its directory for a database.
//!
//! # Not here
//! Where copies are kept, how they are packed, who may ask for them (the crate `backup`, the layers above).

mod archived;
mod copy;
mod lease;
mod point;
mod rebuild;
mod request;
mod start;
mod stream;

pub use crate::archive::{ARCHIVE_HOLDER, Archive, ArchiveRow};
pub use point::RestorePoint;
pub use rebuild::Rebuild;
pub use request::Request;
pub use start::Start;
pub use stream::{Found, Moment, Stream};

/// The most pages that one request copies.
pub const PAGES_MAX: u32 = 512;
/// The most log that one request reads, in bytes.
pub const LOG_BYTES_MAX: u64 = 4 << 20;

/// Whether these 8192 bytes are a whole page with this number.
///
/// # Errors
/// What is wrong with it.
pub fn page_of(bytes: &[u8]) -> Result<crate::ids::PageId, crate::error::Corruption> {
    let number = bytes.get(4..8).and_then(|four| four.try_into().ok()).map_or(u32::MAX, u32::from_le_bytes);
    let id = crate::ids::PageId(number);
    crate::buffer::verify(id, bytes).map(|_| id)
}
