//! Opens targets by their names: a directory, an object store, a single file, a pipe.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_backup::error::Result;
use clearway_backup::target::stream::{Sink, StreamWriter};
use clearway_backup::target::{Place, Target, file, open};
use clearway_backup::{BackupError, target};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use clearway_storage::seams::BoxFuture;

/// How much is read from a pipe at once.
const PIPE_BYTES: usize = 1 << 20;

/// Opens a target for a backup to be put there.
///
/// # Errors
/// No such kind of target; there is a file of that name.
pub async fn to_write(vfs: &Arc<dyn Vfs>, name: &str) -> Result<Box<dyn Target>> {
    match Place::parse(name)? {
        Place::File(path) => Ok(Box::new(file::create(Arc::clone(vfs), &path).await?)),
        Place::Pipe => Ok(Box::new(StreamWriter::new("standard output".to_owned(), Box::new(Output)))),
        Place::Directory(_) | Place::Objects(_) => open(vfs, name, true),
    }
}

/// Opens a target from which backups are read. What comes through a pipe is kept in the file `spool` while it is read.
///
/// # Errors
/// No such kind of target; damage of a file.
pub async fn to_read(vfs: &Arc<dyn Vfs>, name: &str, spool: &Path) -> Result<Source> {
    match Place::parse(name)? {
        Place::File(path) => Ok(Source { target: Box::new(file::StreamFile::open(vfs, &path).await?), spool: None }),
        Place::Pipe => {
            let spooled = Spool { vfs: Arc::clone(vfs), path: spool.to_path_buf() };
            match spooled.open().await {
                Ok(file) => Ok(Source { target: Box::new(file), spool: Some(spooled) }),
                Err(error) => {
                    spooled.remove().await;
                    Err(error)
                }
            }
        }
        Place::Directory(_) | Place::Objects(_) => Ok(Source { target: target::open(vfs, name, true)?, spool: None }),
    }
}

/// A target, and the file in which it is kept for so long.
pub struct Source {
    target: Box<dyn Target>,
    spool: Option<Spool>,
}

impl Source {
    /// The target.
    pub fn target(&self) -> &dyn Target {
        &*self.target
    }

    /// Removes what was kept.
    pub async fn close(self) {
        if let Some(spool) = self.spool {
            spool.remove().await;
        }
    }
}

struct Spool {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
}

impl Spool {
    /// What comes through standard input.
    async fn open(&self) -> Result<file::StreamFile> {
        self.copy().await?;
        file::StreamFile::open(&self.vfs, &self.path).await
    }

    /// Copies standard input into the file.
    async fn copy(&self) -> Result<()> {
        let fail = |error: String| BackupError::Target { place: self.path.display().to_string(), error };
        let make = async {
            let file: Arc<dyn VfsFile> = self.vfs.open(&self.path, OpenHow::create(FileKind::Other)).await?;
            file.set_len(0).await?;
            Ok(file)
        };
        let file = make.await.map_err(|error: clearway_base::vfs::VfsError| fail(error.to_string()))?;
        let mut buffer = vec![0; PIPE_BYTES];
        let mut at = 0;
        loop {
            let read = std::io::stdin().lock().read(&mut buffer);
            let read = read.map_err(|error| BackupError::Source(format!("standard input: {error}")))?;
            if read == 0 {
                return Ok(());
            }
            let written = file.write_at(at, IoBuf::from_slice(&buffer[..read])).await;
            written.map_err(|error| fail(error.to_string()))?;
            at += read as u64;
        }
    }

    async fn remove(&self) {
        // It may not be there at all.
        let _ = self.vfs.remove(&self.path).await;
    }
}

/// Standard output.
struct Output;

impl Sink for Output {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { std::io::stdout().lock().write_all(bytes).map_err(|error| failed(&error)) })
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { std::io::stdout().lock().flush().map_err(|error| failed(&error)) })
    }
}

fn failed(error: &std::io::Error) -> BackupError {
    BackupError::Target { place: "standard output".to_owned(), error: error.to_string() }
}
