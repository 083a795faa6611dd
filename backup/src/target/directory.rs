//! A target that keeps each object as a file in a directory.
//!
//! # Crash safety
//! An object is written under a name that only this writer uses and that ends with `.partial`, synced and renamed; then the names of its
//! directories are synced. A file whose name ends with `.partial` is not listed; a crash may leave such files.

use super::{Listed, Target};
use crate::error::{BackupError, Result};
use clearway_base::sync::Mutex;
use clearway_base::vfs::{EntryKind, FileKind, IoBuf, OpenHow, Vfs, VfsError, VfsFile};
use clearway_storage::seams::BoxFuture;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PARTIAL: &str = ".partial";
/// Counts the writers of this process.
static WRITERS: AtomicU64 = AtomicU64::new(0);

/// A directory.
pub struct Directory {
    vfs: Arc<dyn Vfs>,
    root: PathBuf,
    /// Tells its unfinished objects from those of other writers: a server that archives and a backup put the same names.
    own: String,
    /// Directories that are known to be there, with durable names.
    made: Mutex<BTreeSet<PathBuf>>,
}

impl Directory {
    /// The directory at `root`; it is made when the first object is put there.
    pub fn new(vfs: Arc<dyn Vfs>, root: &Path) -> Directory {
        let own = format!(".{}-{}{PARTIAL}", std::process::id(), WRITERS.fetch_add(1, Ordering::Relaxed));
        Directory { vfs, root: root.to_path_buf(), own, made: Mutex::new("backup/directory", BTreeSet::new()) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn failed(&self, name: &str, error: &VfsError) -> BackupError {
        match error.kind() {
            ErrorKind::NotFound => BackupError::NotFound(self.path(name).display().to_string()),
            _ => BackupError::Target { place: self.path(name).display().to_string(), error: error.to_string() },
        }
    }

    /// Makes a directory and those above it, down from the root.
    async fn make(&self, dir: &Path) -> std::result::Result<(), VfsError> {
        let mut missing: Vec<&Path> = Vec::new();
        for dir in dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty()) {
            if self.made.lock().contains(dir) || self.vfs.list(dir).await.is_ok() {
                break;
            }
            missing.push(dir);
        }
        for dir in missing.into_iter().rev() {
            match self.vfs.create_dir(dir).await {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            if let Some(parent) = dir.parent() {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                self.vfs.sync_dir(parent).await?;
            }
        }
        self.made.lock().insert(dir.to_path_buf());
        Ok(())
    }

    async fn write(&self, name: &str, bytes: &[u8]) -> std::result::Result<(), VfsError> {
        let path = self.path(name);
        let dir = path.parent().unwrap_or(&self.root).to_path_buf();
        self.make(&dir).await?;
        let mut partial = path.clone().into_os_string();
        partial.push(&self.own);
        let partial = PathBuf::from(partial);
        let file: Arc<dyn VfsFile> = self.vfs.open(&partial, OpenHow::create(FileKind::Other)).await?;
        file.set_len(0).await?;
        file.write_at(0, IoBuf::from_slice(bytes)).await?;
        file.sync_data().await?;
        self.vfs.rename(&partial, &path).await?;
        self.vfs.sync_dir(&dir).await
    }

    async fn read(&self, name: &str) -> std::result::Result<Vec<u8>, VfsError> {
        let file: Arc<dyn VfsFile> = self.vfs.open(&self.path(name), OpenHow::read_only(FileKind::Other)).await?;
        let len = usize::try_from(file.len().await?).unwrap_or(usize::MAX);
        Ok(file.read_exact_at(0, IoBuf::zeroed(len), len).await?.to_vec())
    }

    async fn walk(&self, prefix: &str) -> std::result::Result<Vec<Listed>, VfsError> {
        let mut found = Vec::new();
        let mut left = vec![prefix.trim_end_matches('/').to_owned()];
        while let Some(dir) = left.pop() {
            let entries = match self.vfs.list(&self.path(&dir)).await {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let name = if dir.is_empty() { entry.name } else { format!("{dir}/{}", entry.name) };
                match entry.kind {
                    EntryKind::Dir => left.push(name),
                    EntryKind::File if name.ends_with(PARTIAL) => {}
                    EntryKind::File => found.push(Listed { name, bytes: entry.size }),
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

impl Target for Directory {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.write(name, bytes).await.map_err(|error| self.failed(name, &error)) })
    }

    fn put_new<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let path = self.path(name);
            let taken = self.vfs.open(&path, OpenHow::read_only(FileKind::Other)).await;
            match taken {
                Ok(_) => Err(BackupError::Exists(path.display().to_string())),
                Err(error) if error.kind() == ErrorKind::NotFound => self.put(name, bytes).await,
                Err(error) => Err(self.failed(name, &error)),
            }
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>> {
        Box::pin(async move { self.read(name).await.map_err(|error| self.failed(name, &error)) })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>>> {
        Box::pin(async move { self.walk(prefix).await.map_err(|error| self.failed(prefix, &error)) })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.vfs.remove(&self.path(name)).await.map_err(|error| self.failed(name, &error)) })
    }
}
