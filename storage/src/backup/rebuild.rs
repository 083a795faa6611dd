//! A directory from a copy: what a crash at the copy's end, or at a later position of the log, would have left.
//!
//! # Life of a rebuild
//! an empty directory -> pages, newest copy last -> log, in order -> `finish`: everything synced, then the control file (BAK-5).

use super::start::Start;
use crate::buffer::PAGE_BYTES;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::recovery::control::{Control, ControlFile};
use crate::recovery::saved;
use crate::wal::format::SegmentHeader;
use crate::wal::segments::Layout;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsFile};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that is being made.
pub struct Rebuild {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    start: Start,
    files: BTreeMap<u32, Arc<dyn VfsFile>>,
    segment: Option<(u64, Arc<dyn VfsFile>)>,
    /// Where the log goes on.
    position: Lsn,
}

impl Rebuild {
    /// Begins in `dir`, which is empty or does not exist.
    ///
    /// # Errors
    /// Something stands there; a failed file operation.
    pub async fn begin(vfs: Arc<dyn Vfs>, dir: &Path, start: Start) -> Result<Rebuild, StorageError> {
        match vfs.list(dir).await {
            Ok(entries) if entries.is_empty() => {}
            Ok(_) => {
                let what = format!("{} is not empty: a restore makes a new directory", dir.display());
                return Err(StorageError::Invalid(what.into()));
            }
            Err(err) if err.kind() == ErrorKind::NotFound => vfs.create_dir(dir).await?,
            Err(err) => return Err(err.into()),
        }
        for name in ["wal", "data", "checkpoint"] {
            vfs.create_dir(&dir.join(name)).await?;
        }
        if start.control.checkpoint > 0 {
            let path = saved::path(&dir.join("checkpoint"), start.control.checkpoint);
            let file = vfs.open(&path, OpenHow::create_new(FileKind::Checkpoint)).await?;
            file.write_at(0, IoBuf::from_slice(&start.checkpoint)).await?;
            file.sync_data().await?;
        }
        let position = start.scan();
        let (files, dir) = (BTreeMap::new(), dir.to_path_buf());
        let mut rebuild = Rebuild { vfs, dir, start, files, segment: None, position };
        for (number, pages) in rebuild.start.files.clone().into_iter().enumerate() {
            rebuild.file(number as u32).await?.set_len(u64::from(pages) * PAGE_BYTES as u64).await?;
        }
        Ok(rebuild)
    }

    async fn file(&mut self, number: u32) -> Result<Arc<dyn VfsFile>, StorageError> {
        if let Some(file) = self.files.get(&number) {
            return Ok(file.clone());
        }
        let path = self.dir.join("data").join(format!("{number:06}.dat"));
        let file = self.vfs.open(&path, OpenHow::create(FileKind::Data)).await?;
        self.files.insert(number, file.clone());
        Ok(file)
    }

    /// Writes whole pages, one behind the other in `bytes`, to their places.
    ///
    /// # Errors
    /// Bytes that are no whole pages; a failed write.
    pub async fn pages(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let per_file = self.start.control.pages_per_file;
        let mut ids = Vec::with_capacity(bytes.len() / PAGE_BYTES);
        for page in bytes.chunks(PAGE_BYTES) {
            ids.push(super::page_of(page)?);
        }
        let mut at = 0;
        while at < ids.len() {
            let first: PageId = ids[at];
            let follows =
                |n: &usize| ids[at + n].0 == first.0 + *n as u32 && ids[at + n].0 / per_file == first.0 / per_file;
            let run = (1..ids.len() - at).take_while(follows).count() + 1;
            let file = self.file(first.0 / per_file).await?;
            let offset = u64::from(first.0 % per_file) * PAGE_BYTES as u64;
            file.write_at(offset, IoBuf::from_slice(&bytes[at * PAGE_BYTES..(at + run) * PAGE_BYTES])).await?;
            at += run;
        }
        Ok(())
    }

    /// Where the log goes on.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// The files in which pages up to `page` lie exist from now on: the log changes them.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn reach(&mut self, page: u32) -> Result<(), StorageError> {
        for number in 0..=page / self.start.control.pages_per_file {
            self.file(number).await?;
        }
        Ok(())
    }

    /// Appends log.
    ///
    /// # Errors
    /// A failed write.
    pub async fn log(&mut self, mut bytes: &[u8]) -> Result<(), StorageError> {
        let layout = Layout { segment_bytes: self.start.control.segment_bytes };
        while !bytes.is_empty() {
            let number = layout.number(self.position);
            let file = self.segment(number).await?;
            let left = layout.first_lsn(number + 1).0 - self.position.0;
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            file.write_at(layout.offset(self.position), IoBuf::from_slice(now)).await?;
            self.position = Lsn(self.position.0 + now.len() as u64);
            bytes = rest;
        }
        Ok(())
    }

    async fn segment(&mut self, number: u64) -> Result<Arc<dyn VfsFile>, StorageError> {
        if let Some((current, file)) = &self.segment {
            if *current == number {
                return Ok(file.clone());
            }
            file.sync_data().await?;
        }
        let Control { database, segment_bytes, .. } = self.start.control;
        let path = self.dir.join("wal").join(Layout::file_name(number));
        let file = self.vfs.open(&path, OpenHow::create(FileKind::Wal)).await?;
        // Blocks that are written already: no commit pays for them later.
        file.preallocate_zeroed(0, segment_bytes).await?;
        let header = SegmentHeader { database, number, segment_bytes };
        file.write_at(0, IoBuf::from_slice(&header.encode())).await?;
        self.segment = Some((number, file.clone()));
        Ok(file)
    }

    /// Ends with the log at the current position, which is the end of a record: syncs everything, then writes the control file
    /// (BAK-5). No epoch that is known is greater than `epoch`.
    ///
    /// # Errors
    /// The log does not reach as far as the pages; a failed file operation.
    pub async fn finish(mut self, epoch: u32) -> Result<(), StorageError> {
        let end = self.position;
        // The log goes on there, also where none of it was needed.
        let layout = Layout { segment_bytes: self.start.control.segment_bytes };
        self.segment(layout.number(end)).await?;
        if let Some((_, file)) = self.segment.take() {
            file.sync_data().await?;
        }
        for file in self.files.values() {
            file.sync_data().await?;
        }
        for name in ["wal", "data", "checkpoint"] {
            self.vfs.sync_dir(&self.dir.join(name)).await?;
        }
        let control = Control {
            generation: self.start.control.generation + 1,
            epoch: epoch.max(self.start.control.epoch),
            epoch_start: end,
            durable: end,
            clean: false,
            ..self.start.control
        };
        ControlFile::create(&self.vfs, &self.dir, &control).await?;
        if let Some(parent) = self.dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.vfs.sync_dir(parent).await?;
        }
        Ok(())
    }
}
