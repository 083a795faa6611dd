//! A file of the server's machine that a statement names, outside of what the database keeps: read or written from its beginning to its end.
//!
//! # Crash safety
//! None: the file is never synced, and its content does not belong to any transaction.
//!
//! # Errors
//! Those of the file system.

use crate::store::Store;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, VfsError, VfsFile};
use std::path::Path;
use std::sync::Arc;

/// The block in which a file is read and written, in bytes.
pub const BLOCK_BYTES: usize = 256 << 10;

/// An open file.
pub struct ServerFile {
    file: Arc<dyn VfsFile>,
    /// Where the next block is read or written.
    at: u64,
    /// What was read last, or is to be written.
    buffer: IoBuf,
}

impl ServerFile {
    /// An existing file, to be read. A relative path begins at the database's directory.
    ///
    /// # Errors
    /// A failed open.
    pub async fn open(store: &Store, path: &str) -> Result<ServerFile, VfsError> {
        ServerFile::with(store, path, OpenHow::read_only(FileKind::Other)).await
    }

    /// An empty file, to be written, or a device; what stood in a file of the name is lost.
    ///
    /// # Errors
    /// A failed open or truncation.
    pub async fn create(store: &Store, path: &str) -> Result<ServerFile, VfsError> {
        let made = ServerFile::with(store, path, OpenHow::create(FileKind::Other)).await?;
        match made.file.set_len(0).await {
            // A device, such as /dev/null, has no length.
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Ok(made),
            done => done.map(|()| made),
        }
    }

    async fn with(store: &Store, path: &str, how: OpenHow) -> Result<ServerFile, VfsError> {
        let path = store.temp_files().directory().join(Path::new(path));
        let file = store.vfs().open(&path, how).await?;
        Ok(ServerFile { file, at: 0, buffer: IoBuf::with_capacity(0) })
    }

    /// The next block; empty at the end.
    ///
    /// # Errors
    /// A failed read.
    pub async fn read(&mut self) -> Result<&[u8], VfsError> {
        let buffer = std::mem::replace(&mut self.buffer, IoBuf::with_capacity(0));
        self.buffer = self.file.read_at(self.at, buffer, BLOCK_BYTES).await?;
        self.at += self.buffer.len() as u64;
        Ok(&self.buffer)
    }

    /// Appends bytes; they are in the file after [`ServerFile::flush`].
    pub fn append(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether a flush is due.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= BLOCK_BYTES
    }

    /// Hands to the operating system what was appended.
    ///
    /// # Errors
    /// A failed write; a full disk.
    pub async fn flush(&mut self) -> Result<(), VfsError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::replace(&mut self.buffer, IoBuf::with_capacity(0));
        let len = buffer.len() as u64;
        self.buffer = self.file.write_at(self.at, buffer).await?;
        self.buffer.resize(0);
        self.at += len;
        Ok(())
    }
}
