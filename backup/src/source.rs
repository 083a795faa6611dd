//! The source of a backup: a database that gives its pages and log. It is open in this process or reached through a connection.

use crate::error::{BackupError, Result};
use clearway_base::vfs::{Overlay, Vfs};
use clearway_storage::backup::Start;
use clearway_storage::buffer::PoolOptions;
use clearway_storage::ids::{Lsn, PageId, Tag};
use clearway_storage::recovery::control::ControlFile;
use clearway_storage::seams::{BoxFuture, Versions};
use clearway_storage::store::{Store, StoreOptions};
use std::path::Path;
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
        Box::pin(async {
            if self.checkpoint_spares_log() {
                self.checkpoint().await?;
            }
            Ok(self.begin_copy().await?)
        })
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

/// No transaction layer is above: no tag is touched while a directory at rest is copied.
struct NoTransactions;

impl Versions for NoTransactions {
    fn is_settled(&self, _tag: Tag) -> bool {
        false
    }

    fn horizon(&self) -> Lsn {
        Lsn::ZERO
    }
}

/// The page cache for a directory at rest, in bytes: pages are copied past it.
const CACHE_BYTES: usize = 8 << 20;

/// A directory that no process serves, as a source. It is opened on an overlay, and nothing in it changes but the lock file.
///
/// # Errors
/// There is no database; another process has it open; it was not closed: what recovery would make of it in memory, and what it will
/// make of it on disk later, are two histories of one epoch.
pub fn at_rest(vfs: Arc<dyn Vfs>, dir: &Path) -> BoxFuture<'_, Result<Arc<Store>>> {
    Box::pin(open_at_rest(vfs, dir))
}

async fn open_at_rest(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<Arc<Store>> {
    let overlay: Arc<dyn Vfs> = Arc::new(Overlay::new(vfs));
    match ControlFile::open(&overlay, dir).await? {
        None => return Err(BackupError::Refused(format!("there is no database in {}", dir.display()))),
        Some((_, control)) if !control.clean => {
            let what = "was not closed, or a server has it open: start the server, which recovers it, and back that up";
            return Err(BackupError::Refused(format!("{} {what}", dir.display())));
        }
        Some(_) => {}
    }
    let pool = PoolOptions::for_budget(CACHE_BYTES);
    let options = StoreOptions { create: false, pool, ..StoreOptions::default() };
    let (store, _) = Store::open(overlay, dir, options, Arc::new(NoTransactions)).await?;
    Ok(store)
}
