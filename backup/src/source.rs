//! A database that gives its pages and log: one that is open in this process, or one behind a connection.

use crate::error::{BackupError, Result};
use clearway_storage::backup::Start;
use clearway_storage::ids::{Lsn, PageId};
use clearway_storage::seams::BoxFuture;
use clearway_storage::store::Store;
use std::sync::Arc;

/// What a taker of backups asks for; see [`clearway_storage::backup`]. Every request may be repeated.
pub trait Source: Send {
    /// Begins a copy.
    fn begin(&mut self) -> BoxFuture<'_, Result<Start>>;
    /// Whole pages from `first` on that changed after `since`.
    fn pages(&mut self, lease: u64, first: PageId, count: u32, since: Lsn) -> BoxFuture<'_, Result<Vec<u8>>>;
    /// Ends the copying of pages; the position up to which the log belongs to the copy, and the wall clock.
    fn end(&mut self, lease: u64) -> BoxFuture<'_, Result<(Lsn, i64)>>;
    /// Log, some of it or all, from `from` on.
    fn log(&mut self, lease: u64, from: Lsn, to: Lsn) -> BoxFuture<'_, Result<Vec<u8>>>;
    /// Ends the copy.
    fn leave(&mut self, lease: u64) -> BoxFuture<'_, Result<()>>;
}

impl Source for Arc<Store> {
    fn begin(&mut self) -> BoxFuture<'_, Result<Start>> {
        Box::pin(async { Ok(self.begin_copy().await?) })
    }

    fn pages(&mut self, lease: u64, first: PageId, count: u32, since: Lsn) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(async move { Ok(self.copy_pages(lease, first, count, since).await?) })
    }

    fn end(&mut self, lease: u64) -> BoxFuture<'_, Result<(Lsn, i64)>> {
        Box::pin(async move { Ok((self.end_copy(lease).await?, clearway_base::waits::wall_us())) })
    }

    fn log(&mut self, lease: u64, from: Lsn, to: Lsn) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(async move { Ok(self.copy_log(lease, from, to).await?) })
    }

    fn leave(&mut self, lease: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.leave_copy(lease);
            Ok(())
        })
    }
}

/// The end of a copy out of its answer's bytes.
///
/// # Errors
/// They are no end.
pub fn end_of(bytes: &[u8]) -> Result<(Lsn, i64)> {
    let number = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    match (number(0), number(8)) {
        (Some(end), Some(wall)) => Ok((Lsn(end), wall as i64)),
        _ => Err(BackupError::Source(format!("the server answered {} bytes where 16 were expected", bytes.len()))),
    }
}
