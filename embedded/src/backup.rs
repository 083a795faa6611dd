//! Backups from within the program, while other connections go on working.

use std::path::Path;
use std::sync::Arc;

use clearway_backup::source::{Source, end_of};
use clearway_backup::take::{TakeOptions, take};
use clearway_backup::target::Directory;
use clearway_backup::{BackupError, error};
use clearway_base::vfs::RealVfs;
use clearway_storage::backup::{Request, Start};
use clearway_storage::ids::{Lsn, PageId};
use clearway_storage::seams::BoxFuture;

use crate::blocking::Connection;
use crate::connection::AsyncConnection;
use crate::error::{Error, Result};
use crate::wait::wait;

/// Threads that write a backup's files for a future.
const WRITERS: usize = 2;

/// A connection as what a backup is taken from; it need not be to a database of this process.
struct RequestSource<'c>(&'c mut AsyncConnection);

impl RequestSource<'_> {
    async fn ask(&mut self, request: Request) -> error::Result<Vec<u8>> {
        let row = self.0.query_row::<(Vec<u8>,)>("SELECT clearway_backup($1)", [request.to_string()]).await;
        row.map(|row| row.0).map_err(|error| BackupError::Source(error.to_string()))
    }
}

impl Source for RequestSource<'_> {
    fn begin(&mut self) -> BoxFuture<'_, error::Result<Start>> {
        Box::pin(async { Ok(Start::decode(&self.ask(Request::Begin).await?)?) })
    }

    fn pages(&mut self, lease: u64, first: PageId, count: u32, since: Lsn) -> BoxFuture<'_, error::Result<Vec<u8>>> {
        Box::pin(self.ask(Request::Pages(lease, first, count, since)))
    }

    fn end(&mut self, lease: u64) -> BoxFuture<'_, error::Result<(Lsn, i64)>> {
        Box::pin(async move { end_of(&self.ask(Request::End(lease)).await?) })
    }

    fn log(&mut self, lease: u64, from: Lsn, to: Lsn) -> BoxFuture<'_, error::Result<Vec<u8>>> {
        Box::pin(self.ask(Request::Log(lease, from, to)))
    }

    fn leave(&mut self, lease: u64) -> BoxFuture<'_, error::Result<()>> {
        Box::pin(async move { self.ask(Request::Leave(lease)).await.map(drop) })
    }
}

impl Connection {
    /// Backs the whole database up into a directory of backups, which is made where it does not exist, while others go on reading and writing.
    /// A directory may hold many backups of one database; `clearway restore TARGET DIR` makes a directory of the newest. `progress` hears how
    /// many bytes are done, and how many there are.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let dir = std::env::temp_dir().join(format!("clearway-backups-{}", std::process::id()));
    /// let db = clearway::Database::in_memory()?;
    /// db.connect()?.backup(&dir, |done, all| println!("{done} of {all} bytes"))?;
    /// # std::fs::remove_dir_all(dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Backup`: the role may not back up; the directory holds backups of another database; a damaged page; a failed file operation.
    pub fn backup(&mut self, target: impl AsRef<Path>, mut progress: impl FnMut(u64, u64) + Send) -> Result<()> {
        wait(self.0.backup_by(RealVfs::inline(), target.as_ref(), &mut progress))
    }
}

impl AsyncConnection {
    /// As [`Connection::backup`], as a future. The directory's files are written by threads of its own, so that it blocks no thread of a runtime.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let dir = std::env::temp_dir().join(format!("clearway-async-backups-{}", std::process::id()));
    /// let db = clearway::Database::in_memory()?;
    /// let mut connection = db.connect_async().await?;
    /// connection.backup(&dir, |done, all| println!("{done} of {all} bytes")).await?;
    /// # std::fs::remove_dir_all(dir).ok();
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// As there; `Io` if the system has no thread to give.
    pub async fn backup(
        &mut self,
        target: impl AsRef<Path> + Send,
        mut progress: impl FnMut(u64, u64) + Send,
    ) -> Result<()> {
        let vfs = RealVfs::pooled(WRITERS).map_err(Error::Io)?;
        self.backup_by(vfs, target.as_ref(), &mut progress).await
    }

    async fn backup_by(
        &mut self,
        vfs: RealVfs,
        target: &Path,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<()> {
        let target = Directory::new(Arc::new(vfs), target);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let options = TakeOptions { incremental: false, resume: false, rate_bytes_per_s: 0, share_percent: 0, version };
        let mut tell = |at: clearway_backup::take::Progress| progress(at.done_bytes, at.all_bytes);
        let taken = take(&mut RequestSource(self), &target, &options, &mut tell).await;
        taken.map(drop).map_err(|error| Error::Backup(Box::new(error)))
    }
}
