//! Checks, when a database is opened, whether the log ends properly or is damaged, and syncs its tail.
//!
//! # Invariants
//! - WAL-17: the log ends properly at X only if nothing says that more than X was durable: not the control file, not
//!   the durable mark (WAL-21), not a record before X, not a record that can still be found behind X. Otherwise the
//!   database is damaged and is not opened.
//! - WAL-18: the bytes between the last known durable LSN and the end are written and synced again before anything is
//!   read from the database. So the database serves only what is synced, and a later crash can't take it back.
//!
//! # Crash safety
//! The tail is rewritten with the bytes that are there already. So a crash in between, even a torn write, leaves the same bytes.

use super::format::{BLOCK_BYTES, HEADER_BYTES, Header, crc_holds, lsn_low};
use super::reader::{End, LogReader};
use super::segments::{Layout, how};
use crate::error::{Corruption, StorageError};
use crate::ids::Lsn;
use clearway_base::vfs::{IoBuf, Vfs};
use std::path::Path;
use std::sync::Arc;

/// Where a log lies, and what the control file says of it.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The file system.
    pub vfs: &'a Arc<dyn Vfs>,
    /// The directory of segments.
    pub dir: &'a Path,
    /// Sizes.
    pub layout: Layout,
    /// The database's number.
    pub database: u64,
    /// Durable at least up to here.
    pub durable: Lsn,
}

/// Checks WAL-17 for the place where a reader stopped.
///
/// # Errors
/// The damage, or a failed read.
pub async fn check_end(known: &Known<'_>, end: &End) -> Result<(), StorageError> {
    let durable = known.durable.max(end.durable_hint);
    if end.lsn < durable {
        return Err(damage(end, durable).into());
    }
    match find_beyond(known, end).await? {
        Some(hint) => Err(damage(end, hint).into()),
        None => Ok(()),
    }
}

fn damage(end: &End, durable: Lsn) -> Corruption {
    let expected = format!("{} (the log was durable up to LSN {durable})", end.damage.expected);
    Corruption { expected, ..end.damage.clone() }
}

/// Searches behind the end for a record that says that more than the end was durable. Such a record was appended after
/// the bytes at the end had been synced.
async fn find_beyond(known: &Known<'_>, end: &End) -> Result<Option<Lsn>, StorageError> {
    let first = known.layout.number(end.lsn);
    let mut numbers: Vec<u64> = Vec::new();
    for entry in known.vfs.list(known.dir).await? {
        numbers.extend(Layout::parse_name(&entry.name).filter(|number| *number >= first));
    }
    let payload = known.layout.payload() as usize;
    let mut carry: Option<(u64, Vec<u8>)> = None;
    // From the last segment down, so that a record that crosses into the next finds its rest.
    for number in numbers.into_iter().rev() {
        // The segment's header is not trusted: a damaged header may be the reason why the log seems to end here.
        let file = known.vfs.open(&known.dir.join(Layout::file_name(number)), how()).await?;
        let bytes = file.read_at(BLOCK_BYTES as u64, IoBuf::zeroed(payload), payload).await?;
        let mut stream = bytes.to_vec();
        if let Some((next, rest)) = carry.take()
            && next == number + 1
        {
            stream.extend_from_slice(&rest);
        }
        let base = known.layout.first_lsn(number).0;
        let from = end.lsn.0.saturating_sub(base) as usize;
        for at in (from..stream.len().min(payload)).step_by(8) {
            let lsn = Lsn(base + at as u64);
            // A record names its own place: almost everywhere this one comparison is all (12 s of a debug build's opening before).
            if stream.get(at + 8..at + 12) != Some(lsn_low(lsn).to_le_bytes().as_slice()) {
                continue;
            }
            let bytes = &stream[at..];
            let Some(header) = Header::parse(bytes, lsn) else { continue };
            let hint = header.durable_hint(lsn);
            if header.epoch >= end.epoch && hint > end.lsn && header.len <= bytes.len() && crc_holds(bytes, lsn) {
                return Ok(Some(hint));
            }
        }
        stream.truncate(payload);
        carry = Some((number, stream));
    }
    Ok(None)
}

/// Rewrites and syncs the valid tail from the last known durable LSN to `end` (WAL-18); returns what stands before
/// `end` in its block.
///
/// # Errors
/// A failed read, write or sync: the database does not open.
pub async fn settle_tail(known: &Known<'_>, end: Lsn, rewrite: bool) -> Result<Vec<u8>, StorageError> {
    let block = |lsn: Lsn| Lsn(lsn.0 - lsn.0 % BLOCK_BYTES as u64);
    let head = block(end);
    let mut at = if rewrite { block(known.durable.min(end)) } else { head };
    let mut last = Vec::new();
    while at < end {
        let number = known.layout.number(at);
        let stop = known.layout.first_lsn(number + 1).min(end);
        let len = (stop.0 - at.0).next_multiple_of(BLOCK_BYTES as u64) as usize;
        let file = known.vfs.open(&known.dir.join(Layout::file_name(number)), how()).await?;
        let offset = known.layout.offset(at);
        let mut bytes = file.read_exact_at(offset, IoBuf::zeroed(len), len).await?;
        if stop == end {
            let used = (end.0 - at.0) as usize;
            bytes[used..].fill(0);
            last = bytes[used - (end.0 - head.0) as usize..used].to_vec();
        }
        if rewrite {
            file.write_at(offset, bytes).await?;
            file.sync_data().await?;
        }
        at = stop;
    }
    Ok(last)
}

/// Reads from `start` to the end, calling `each` for every record.
///
/// # Errors
/// A failed read, or what `each` returns.
pub async fn read_all(
    mut reader: LogReader,
    mut each: impl FnMut(crate::record::LsnRange, &[u8]) -> Result<(), StorageError>,
) -> Result<End, StorageError> {
    loop {
        match reader.next().await? {
            Ok((range, bytes)) => each(range, bytes)?,
            Err(end) => return Ok(*end),
        }
    }
}

const _: () = assert!(HEADER_BYTES.is_multiple_of(8) && BLOCK_BYTES.is_multiple_of(8));
