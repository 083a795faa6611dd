//! A backup in a single file: the stream's objects, found by a walk over their entries.
//!
//! # Crash safety
//! A file is written under a name that only this writer uses and that ends with `.partial`, synced and renamed. A file without the stream's
//! end entry is damaged.

use super::stream::{ENTRY_BYTES, HEAD_BYTES, Sink, StreamWriter, check_head, lengths, named};
use super::{Listed, Target};
use crate::error::{BackupError, Result};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsError, VfsFile};
use clearway_storage::seams::BoxFuture;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most objects that a file may have: 32 TB of pages.
const OBJECTS_MAX: u64 = 1 << 20;

fn failed(path: &Path, error: &VfsError) -> BackupError {
    match error.kind() {
        ErrorKind::NotFound => BackupError::NotFound(path.display().to_string()),
        _ => BackupError::Target { place: path.display().to_string(), error: error.to_string() },
    }
}

/// Writes a file from its beginning to its end.
pub struct FileSink {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    partial: PathBuf,
    file: Arc<dyn VfsFile>,
    at: AtomicU64,
}

impl FileSink {
    /// Makes the file, under another name until it is whole.
    ///
    /// # Errors
    /// There is a file of that name; the system's.
    pub async fn create(vfs: Arc<dyn Vfs>, path: &Path) -> Result<FileSink> {
        match vfs.open(path, OpenHow::read_only(FileKind::Other)).await {
            Ok(_) => return Err(BackupError::Exists(path.display().to_string())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path, &error)),
        }
        let mut partial = path.to_path_buf().into_os_string();
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = PathBuf::from(partial);
        let make = async {
            let file: Arc<dyn VfsFile> = vfs.open(&partial, OpenHow::create(FileKind::Other)).await?;
            file.set_len(0).await?;
            Ok(file)
        };
        let file = make.await.map_err(|error| failed(&partial, &error))?;
        Ok(FileSink { vfs, path: path.to_path_buf(), partial, file, at: AtomicU64::new(0) })
    }
}

impl Sink for FileSink {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let at = self.at.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            let written = self.file.write_at(at, IoBuf::from_slice(bytes)).await;
            written.map(drop).map_err(|error| failed(&self.partial, &error))
        })
    }

    fn abandon(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // What stays is named so that it is not taken for a backup.
            let _ = self.vfs.remove(&self.partial).await;
        })
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let end = async {
                self.file.sync_data().await?;
                self.vfs.rename(&self.partial, &self.path).await?;
                let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
                self.vfs.sync_dir(dir.unwrap_or(Path::new("."))).await
            };
            end.await.map_err(|error| failed(&self.path, &error))
        })
    }
}

/// A new backup in one file.
///
/// # Errors
/// There is a file of that name; the system's.
pub fn create(vfs: Arc<dyn Vfs>, path: &Path) -> BoxFuture<'_, Result<StreamWriter>> {
    Box::pin(create_sink(vfs, path))
}

async fn create_sink(vfs: Arc<dyn Vfs>, path: &Path) -> Result<StreamWriter> {
    let sink = FileSink::create(vfs, path).await?;
    Ok(StreamWriter::new(path.display().to_string(), Box::new(sink)))
}

/// A backup in one file, for reading.
pub struct StreamFile {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    /// Where each object begins, and its length.
    objects: BTreeMap<String, (u64, u64)>,
}

impl StreamFile {
    /// Opens a file and walks over it.
    ///
    /// # Errors
    /// Damage; the system's.
    pub fn open<'a>(vfs: &'a Arc<dyn Vfs>, path: &'a Path) -> BoxFuture<'a, Result<StreamFile>> {
        Box::pin(Self::open_and_walk(vfs, path))
    }

    async fn open_and_walk(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<StreamFile> {
        let opened = async {
            let file: Arc<dyn VfsFile> = vfs.open(path, OpenHow::read_only(FileKind::Other)).await?;
            let len = file.len().await?;
            Ok((file, len))
        };
        let (file, len) = opened.await.map_err(|error| failed(path, &error))?;
        let mut opened = StreamFile { path: path.to_path_buf(), file, objects: BTreeMap::new() };
        opened.walk(len).await?;
        Ok(opened)
    }

    async fn walk(&mut self, len: u64) -> Result<()> {
        let place = self.path.display().to_string();
        let cut = || BackupError::damaged(&place, "a backup in one file with its end", "a file that was cut off");
        let head: [u8; HEAD_BYTES] = self.exact(0).await?.ok_or_else(cut)?;
        check_head(&place, &head)?;
        let mut at = HEAD_BYTES as u64;
        for number in 0..OBJECTS_MAX {
            let entry: [u8; ENTRY_BYTES] = self.exact(at).await?.ok_or_else(cut)?;
            let (name_len, bytes) = lengths(&place, &entry)?;
            let name = self.read(at + ENTRY_BYTES as u64, name_len).await?;
            if name.len() < name_len {
                return Err(cut());
            }
            let begin = at + (ENTRY_BYTES + name_len) as u64;
            let named = named(&place, &entry, &name, number)?;
            let end = begin.checked_add(bytes).filter(|end| *end <= len).ok_or_else(cut)?;
            match named {
                None if end == len && bytes == 0 => return Ok(()),
                None => {
                    return Err(BackupError::damaged(&place, "the end of the file", format!("{} bytes", len - end)));
                }
                Some(name) => {
                    if self.objects.insert(name.clone(), (begin, bytes)).is_some() {
                        return Err(BackupError::damaged(&place, "each object once", name));
                    }
                }
            }
            at = end;
        }
        Err(BackupError::damaged(&place, format!("at most {OBJECTS_MAX} objects"), "more"))
    }

    /// At most `len` bytes from a place on.
    async fn read(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let read = self.file.read_at(at, IoBuf::with_capacity(len), len).await;
        read.map(|bytes| bytes.to_vec()).map_err(|error| failed(&self.path, &error))
    }

    async fn exact<const N: usize>(&self, at: u64) -> Result<Option<[u8; N]>> {
        Ok(self.read(at, N).await?.try_into().ok())
    }

    fn only_read(&self) -> BackupError {
        BackupError::Refused(format!("{} holds one backup, and is only read", self.path.display()))
    }
}

impl Target for StreamFile {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn put<'a>(&'a self, _name: &'a str, _bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(self.only_read()) })
    }

    fn put_new<'a>(&'a self, _name: &'a str, _bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(self.only_read()) })
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>> {
        Box::pin(async move {
            let place = || format!("{}: {name}", self.path.display());
            let (at, len) = *self.objects.get(name).ok_or_else(|| BackupError::NotFound(place()))?;
            let bytes = self.read(at, usize::try_from(len).unwrap_or(usize::MAX)).await?;
            match bytes.len() as u64 == len {
                true => Ok(bytes),
                false => Err(BackupError::damaged(&place(), format!("{len} bytes"), bytes.len().to_string())),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>>> {
        let found = self.objects.iter().filter(|(name, _)| name.starts_with(prefix));
        let found = found.map(|(name, (_, bytes))| Listed { name: name.clone(), bytes: *bytes }).collect();
        Box::pin(async move { Ok(found) })
    }

    fn remove<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(self.only_read()) })
    }
}
