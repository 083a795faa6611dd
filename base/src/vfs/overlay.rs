//! A file system over another one that is only read: every change stays in memory and is discarded with the overlay.
//!
//! For programs that must not change the files they read, such as a check that has to recover a database before it can read it.
//!
//! # Invariants
//! - VFS-7: nothing but reads, listings and the lock reaches the file system below. If that file system can't be written,
//!   no lock is taken.
//!
//! # Not here
//! Durability: syncs succeed and mean nothing. Protection from other programs that change the file system below meanwhile.

use super::booking::Booking;
use super::mem::MemOp;
use super::op::IoOp;
use super::{DirEntry, DirLock, EntryKind, FileKind, IoBuf, LockError, OpKind, OpenHow, Vfs, VfsError, VfsFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BLOCK: usize = 4096;

/// The overlay; clones share it.
#[derive(Clone)]
pub struct Overlay {
    base: Arc<dyn Vfs>,
    tree: Arc<Mutex<Tree>>,
}

#[derive(Default)]
struct Tree {
    /// What was opened, created or removed; none is removed.
    files: BTreeMap<PathBuf, Option<Arc<Mutex<Content>>>>,
    dirs: BTreeSet<PathBuf>,
}

/// A file: what lies below, and the blocks that differ.
#[derive(Default)]
struct Content {
    base: Option<Arc<dyn VfsFile>>,
    /// So much of the file below still counts.
    base_len: u64,
    len: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Content {
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, VfsError> {
        let len = self.len.saturating_sub(offset).min(len as u64) as usize;
        let mut bytes = vec![0; len];
        let below = self.base_len.saturating_sub(offset).min(len as u64) as usize;
        if let (Some(base), true) = (&self.base, below > 0) {
            let read = base.read_at(offset, IoBuf::with_capacity(below), below).wait()?;
            bytes[..read.len()].copy_from_slice(&read);
        }
        let first = offset / BLOCK as u64;
        let last = (offset + len as u64).div_ceil(BLOCK as u64);
        for (number, block) in self.blocks.range(first..last) {
            let at = number * BLOCK as u64;
            let (from, to) = (at.max(offset), (at + BLOCK as u64).min(offset + len as u64));
            bytes[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&block[(from - at) as usize..(to - at) as usize]);
        }
        Ok(bytes)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), VfsError> {
        self.len = self.len.max(offset + bytes.len() as u64);
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (number, start) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let step = (BLOCK - start).min(bytes.len() - done);
            let mut block = Box::new([0; BLOCK]);
            if step < BLOCK {
                let there = self.read(number * BLOCK as u64, BLOCK)?;
                block[..there.len()].copy_from_slice(&there);
            }
            block[start..start + step].copy_from_slice(&bytes[done..done + step]);
            self.blocks.insert(number, block);
            done += step;
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) {
        self.base_len = self.base_len.min(len);
        self.blocks.split_off(&len.div_ceil(BLOCK as u64));
        if let Some(last) = self.blocks.get_mut(&(len / BLOCK as u64)) {
            // What lies beyond the end must read as zeros when the file grows again.
            last[(len % BLOCK as u64) as usize..].fill(0);
        }
        self.len = len;
    }
}

impl Overlay {
    /// An overlay without changes over `base`.
    pub fn new(base: Arc<dyn Vfs>) -> Overlay {
        Overlay { base, tree: Arc::default() }
    }

    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        path: &Path,
        run: impl FnOnce(&Overlay, &Path) -> Result<T, VfsError> + Send + 'static,
    ) -> IoOp<T> {
        let booking = Booking::new(op, FileKind::Other, path, None);
        let (overlay, path) = (self.clone(), path.to_path_buf());
        IoOp::idle(booking, MemOp(move || run(&overlay, &path)))
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file at a path, from above or below.
    fn find(&self, op: OpKind, path: &Path, kind: FileKind) -> Result<Arc<Mutex<Content>>, VfsError> {
        match self.tree().files.get(path) {
            Some(Some(content)) => return Ok(content.clone()),
            Some(None) => return Err(VfsError::new(op, path, ErrorKind::NotFound)),
            None => {}
        }
        let base = self.base.open(path, OpenHow::read_only(kind)).wait()?;
        let len = base.len().wait()?;
        let content = Content { base: Some(base), base_len: len, len, blocks: BTreeMap::new() };
        let content = Arc::new(Mutex::new(content));
        Ok(self.tree().files.entry(path.to_path_buf()).or_insert(Some(content.clone())).clone().unwrap_or(content))
    }

    fn put(&self, path: &Path, content: Option<Arc<Mutex<Content>>>) {
        self.tree().files.insert(path.to_path_buf(), content);
    }

    fn list_all(&self, path: &Path) -> Result<Vec<DirEntry>, VfsError> {
        let mut entries: BTreeMap<String, DirEntry> = match self.base.list(path).wait() {
            Ok(list) => list.into_iter().map(|entry| (entry.name.clone(), entry)).collect(),
            Err(err) if err.kind() == ErrorKind::NotFound && self.tree().dirs.contains(path) => BTreeMap::new(),
            Err(err) => return Err(err),
        };
        for (file, content) in self.tree().files.iter().filter(|(file, _)| file.parent() == Some(path)) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match content {
                None => drop(entries.remove(&name)),
                Some(content) => {
                    let size = lock(content).len;
                    entries.insert(name.clone(), DirEntry { name, kind: EntryKind::File, size });
                }
            }
        }
        Ok(entries.into_values().collect())
    }
}

fn lock(content: &Mutex<Content>) -> MutexGuard<'_, Content> {
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vfs for Overlay {
    fn open(&self, path: &Path, how: OpenHow) -> IoOp<Arc<dyn VfsFile>> {
        self.op(OpKind::Open, path, move |overlay, path| {
            let content = match overlay.find(OpKind::Open, path, how.kind) {
                Ok(_) if how.exclusive_create => {
                    return Err(VfsError::new(OpKind::Open, path, ErrorKind::AlreadyExists));
                }
                Err(err) if err.kind() == ErrorKind::NotFound && how.creates() => {
                    let content = Arc::default();
                    overlay.put(path, Some(Arc::clone(&content)));
                    content
                }
                found => found?,
            };
            Ok(Arc::new(OverlayFile { content, path: path.to_path_buf() }) as Arc<dyn VfsFile>)
        })
    }

    fn remove(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::Remove, path, |overlay, path| {
            overlay.find(OpKind::Remove, path, FileKind::Other)?;
            overlay.put(path, None);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> IoOp<()> {
        let to = to.to_path_buf();
        self.op(OpKind::Rename, from, move |overlay, from| {
            let content = overlay.find(OpKind::Rename, from, FileKind::Other)?;
            overlay.put(from, None);
            overlay.put(&to, Some(content));
            Ok(())
        })
    }

    fn create_dir(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::CreateDir, path, |overlay, path| {
            if overlay.list_all(path).is_ok() {
                return Err(VfsError::new(OpKind::CreateDir, path, ErrorKind::AlreadyExists));
            }
            overlay.tree().dirs.insert(path.to_path_buf());
            Ok(())
        })
    }

    fn sync_dir(&self, _path: &Path) -> IoOp<()> {
        IoOp::ready(Ok(()))
    }

    fn list(&self, path: &Path) -> IoOp<Vec<DirEntry>> {
        self.op(OpKind::List, path, |overlay, path| overlay.list_all(path))
    }

    fn mode(&self, path: &Path) -> IoOp<u32> {
        self.base.mode(path)
    }

    fn lock(&self, path: &Path) -> Result<DirLock, LockError> {
        match self.base.lock(path) {
            // VFS-7: no process can have it open for writing there.
            Err(LockError::Io(err)) if err.kind() == ErrorKind::ReadOnlyFilesystem => Ok(DirLock::new(())),
            locked => locked,
        }
    }
}

struct OverlayFile {
    content: Arc<Mutex<Content>>,
    path: PathBuf,
}

impl OverlayFile {
    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        offset: u64,
        run: impl FnOnce(&mut Content, &Path) -> Result<T, VfsError> + Send + 'static,
    ) -> IoOp<T> {
        let booking = Booking::new(op, FileKind::Other, &self.path, Some(offset));
        let (content, path) = (self.content.clone(), self.path.clone());
        IoOp::idle(booking, MemOp(move || run(&mut lock(&content), &path)))
    }

    fn read(&self, offset: u64, mut buf: IoBuf, len: usize, exact: bool) -> IoOp<IoBuf> {
        self.op(OpKind::Read, offset, move |content, path| {
            let bytes = content.read(offset, len)?;
            if exact && bytes.len() < len {
                return Err(VfsError::at(OpKind::Read, path, offset, ErrorKind::UnexpectedEof));
            }
            buf.resize(bytes.len());
            buf.copy_from_slice(&bytes);
            Ok(buf)
        })
    }
}

impl VfsFile for OverlayFile {
    fn read_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf> {
        self.read(offset, buf, len, false)
    }

    fn read_exact_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf> {
        self.read(offset, buf, len, true)
    }

    fn write_at(&self, offset: u64, buf: IoBuf) -> IoOp<IoBuf> {
        self.op(OpKind::Write, offset, move |content, _| content.write(offset, &buf).map(|()| buf))
    }

    fn sync_data(&self) -> IoOp<()> {
        IoOp::ready(Ok(()))
    }

    fn len(&self) -> IoOp<u64> {
        IoOp::ready(Ok(lock(&self.content).len))
    }

    fn set_len(&self, len: u64) -> IoOp<()> {
        self.op(OpKind::SetLen, len, move |content, _| {
            content.set_len(len);
            Ok(())
        })
    }

    fn preallocate(&self, offset: u64, len: u64) -> IoOp<()> {
        self.op(OpKind::Preallocate, offset, move |content, _| {
            content.len = content.len.max(offset + len);
            Ok(())
        })
    }

    fn preallocate_zeroed(&self, offset: u64, len: u64) -> IoOp<()> {
        self.op(OpKind::Preallocate, offset, move |content, _| content.write(offset, &vec![0; len as usize]))
    }

    fn is_direct(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::MemVfs;

    const DATA: FileKind = FileKind::Data;

    fn bytes(vfs: &dyn Vfs, path: &str) -> Vec<u8> {
        let file = vfs.open(Path::new(path), OpenHow::existing(DATA)).wait().expect("open");
        let len = file.len().wait().expect("length") as usize;
        file.read_at(0, IoBuf::with_capacity(len), len).wait().expect("read").to_vec()
    }

    #[test]
    fn what_is_changed_above_is_not_changed_below() {
        let below = MemVfs::new();
        for name in ["/kept", "/gone"] {
            let file = below.open(Path::new(name), OpenHow::create(DATA)).wait().expect("create");
            file.write_at(0, IoBuf::from_slice(&[7; 10_000])).wait().expect("write");
        }
        let above = Overlay::new(Arc::new(below.clone()));
        let file = above.open(Path::new("/kept"), OpenHow::existing(DATA)).wait().expect("open");
        file.write_at(4090, IoBuf::from_slice(&[1; 10])).wait().expect("write");
        let mut expected = vec![7; 10_000];
        expected[4090..4100].fill(1);
        assert_eq!(bytes(&above, "/kept"), expected);
        file.set_len(4095).wait().expect("cut");
        file.set_len(8000).wait().expect("grow");
        expected.truncate(4095);
        expected.resize(8000, 0);
        assert_eq!(bytes(&above, "/kept"), expected, "what was cut off reads as zeros");
        above.rename(Path::new("/gone"), Path::new("/new")).wait().expect("rename");
        assert_eq!(bytes(&above, "/new"), vec![7; 10_000]);
        assert!(above.open(Path::new("/gone"), OpenHow::existing(DATA)).wait().is_err());
        let names = |vfs: &dyn Vfs| -> Vec<(String, u64)> {
            let list = vfs.list(Path::new("/")).wait().expect("list");
            list.into_iter().map(|entry| (entry.name, entry.size)).collect()
        };
        assert_eq!(names(&above), [("kept".to_owned(), 8000), ("new".to_owned(), 10_000)]);
        // VFS-7
        assert_eq!(names(&below), [("gone".to_owned(), 10_000), ("kept".to_owned(), 10_000)]);
        assert_eq!(bytes(&below, "/kept"), vec![7; 10_000]);
    }
}
