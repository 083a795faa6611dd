//! Files in memory: for `serve --memory`, and for tests that need neither crashes nor faults.
//!
//! Operations end in their first poll. Contents are in chunks, so that growing never copies; each
//! file has its own lock. Syncs succeed and mean nothing.

use super::booking::Booking;
use super::names::{Names, Node, normal};
use super::op::{Begin, IoOp};
use super::real::check_alignment;
use super::{DirEntry, DirLock, EntryKind, FileKind, IoBuf, LockError, OpKind, OpenHow, Vfs, VfsError, VfsFile};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

const CHUNK: usize = 64 << 10;

/// A file system in memory. Clones share it; it goes with the last clone, file and lock.
#[derive(Clone)]
pub struct MemVfs {
    tree: Arc<Mutex<Tree>>,
}

struct Tree {
    names: Names<Arc<RwLock<Content>>>,
    locked: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct Content {
    chunks: Vec<Box<[u8]>>,
    len: u64,
}

impl Content {
    /// Truncates or extends with zeros.
    fn set_len(&mut self, len: u64) {
        self.chunks.resize_with(len.div_ceil(CHUNK as u64) as usize, || vec![0; CHUNK].into());
        let used = (len % CHUNK as u64) as usize;
        // What lies beyond the end must read as zeros when the file grows again.
        if len < self.len
            && used > 0
            && let Some(last) = self.chunks.last_mut()
        {
            last[used..].fill(0);
        }
        self.len = len;
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let readable = self.len.saturating_sub(offset).min(out.len() as u64) as usize;
        let mut done = 0;
        while done < readable {
            let at = offset as usize + done;
            let (chunk, start) = (at / CHUNK, at % CHUNK);
            let step = (CHUNK - start).min(readable - done);
            out[done..done + step].copy_from_slice(&self.chunks[chunk][start..start + step]);
            done += step;
        }
        readable
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        if end > self.len {
            self.set_len(end);
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset as usize + done;
            let (chunk, start) = (at / CHUNK, at % CHUNK);
            let step = (CHUNK - start).min(bytes.len() - done);
            self.chunks[chunk][start..start + step].copy_from_slice(&bytes[done..done + step]);
            done += step;
        }
    }
}

impl Default for MemVfs {
    fn default() -> Self {
        MemVfs::new()
    }
}

impl MemVfs {
    /// An empty file system: only the root directory exists.
    pub fn new() -> Self {
        let tree = Tree { names: Names::new(), locked: BTreeSet::new() };
        MemVfs { tree: Arc::new(Mutex::new(tree)) }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        path: &Path,
        run: impl FnOnce(&mut Tree, &Path) -> io::Result<T> + Send + 'static,
    ) -> IoOp<T> {
        let booking = Booking::new(op, FileKind::Other, path, None);
        let (vfs, path) = (self.clone(), path.to_path_buf());
        IoOp::idle(
            booking,
            MemOp(move || {
                let result = normal(&path).and_then(|normal| run(&mut vfs.tree(), &normal));
                result.map_err(|err| VfsError::new(op, &path, err))
            }),
        )
    }
}

/// An operation that a closure performs.
pub(super) struct MemOp<F>(pub(super) F);

impl<T: Send + 'static, F: FnOnce() -> Result<T, VfsError> + Send> Begin<T> for MemOp<F> {
    fn perform(self: Box<Self>) -> Result<T, VfsError> {
        (self.0)()
    }
}

impl Vfs for MemVfs {
    fn open(&self, path: &Path, how: OpenHow) -> IoOp<Arc<dyn VfsFile>> {
        self.op(OpKind::Open, path, move |tree, path| {
            let content = match tree.names.file(path) {
                Ok(_) if how.exclusive_create => return Err(io::ErrorKind::AlreadyExists.into()),
                Ok(content) => content,
                Err(err) if err.kind() == io::ErrorKind::NotFound && how.creates() => {
                    let content = Arc::default();
                    tree.names.add(path, Node::File(Arc::clone(&content)))?;
                    content
                }
                Err(err) => return Err(err),
            };
            let file = MemFile { content, path: path.to_path_buf(), how };
            Ok(Arc::new(file) as Arc<dyn VfsFile>)
        })
    }

    fn remove(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::Remove, path, |tree, path| tree.names.remove_file(path).map(drop))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoOp<()> {
        let to = to.to_path_buf();
        self.op(OpKind::Rename, from, move |tree, from| tree.names.rename(from, &normal(&to)?).map(drop))
    }

    fn create_dir(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::CreateDir, path, |tree, path| tree.names.add(path, Node::Dir))
    }

    fn sync_dir(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::SyncDir, path, |tree, path| tree.names.expect_dir(path))
    }

    fn list(&self, path: &Path) -> IoOp<Vec<DirEntry>> {
        self.op(OpKind::List, path, |tree, path| {
            let entry = |(name, node): (String, Node<Arc<RwLock<Content>>>)| match node {
                Node::Dir => DirEntry { name, kind: EntryKind::Dir, size: 0 },
                Node::File(content) => DirEntry { name, kind: EntryKind::File, size: read_lock(&content).len },
            };
            Ok(tree.names.list(path)?.into_iter().map(entry).collect())
        })
    }

    fn lock(&self, path: &Path) -> Result<DirLock, LockError> {
        let normal = normal(path).map_err(|err| LockError::Io(VfsError::new(OpKind::Lock, path, err)))?;
        if !self.tree().locked.insert(normal.clone()) {
            return Err(LockError::Held { pid: std::process::id() });
        }
        Ok(DirLock::new(MemLock { vfs: self.clone(), path: normal }))
    }
}

struct MemLock {
    vfs: MemVfs,
    path: PathBuf,
}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.vfs.tree().locked.remove(&self.path);
    }
}

struct MemFile {
    content: Arc<RwLock<Content>>,
    path: PathBuf,
    how: OpenHow,
}

fn read_lock(content: &RwLock<Content>) -> std::sync::RwLockReadGuard<'_, Content> {
    content.read().unwrap_or_else(PoisonError::into_inner)
}

impl MemFile {
    fn change<T: Send + 'static>(
        &self,
        op: OpKind,
        offset: u64,
        len: usize,
        run: impl FnOnce(&mut Content) -> T + Send + 'static,
    ) -> IoOp<T> {
        if let Err(err) = check_alignment(op, &self.path, self.how, offset, len) {
            return IoOp::ready(Err(err));
        }
        if self.how.read_only {
            let err = io::Error::new(io::ErrorKind::PermissionDenied, "opened read-only");
            return IoOp::ready(Err(VfsError::at(op, &self.path, offset, err)));
        }
        let booking = Booking::new(op, self.how.kind, &self.path, Some(offset));
        let content = self.content.clone();
        IoOp::idle(booking, MemOp(move || Ok(run(&mut content.write().unwrap_or_else(PoisonError::into_inner)))))
    }

    fn read(&self, offset: u64, mut buf: IoBuf, len: usize, exact: bool) -> IoOp<IoBuf> {
        if let Err(err) = check_alignment(OpKind::Read, &self.path, self.how, offset, len) {
            return IoOp::ready(Err(err));
        }
        let booking = Booking::new(OpKind::Read, self.how.kind, &self.path, Some(offset));
        let (content, path) = (self.content.clone(), self.path.clone());
        IoOp::idle(
            booking,
            MemOp(move || {
                buf.resize(len);
                let read = read_lock(&content).read(offset, &mut buf);
                if exact && read < len {
                    let eof = io::ErrorKind::UnexpectedEof;
                    return Err(VfsError::at(OpKind::Read, &path, offset, eof));
                }
                buf.resize(read);
                Ok(buf)
            }),
        )
    }
}

impl VfsFile for MemFile {
    fn read_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf> {
        self.read(offset, buf, len, false)
    }

    fn read_exact_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf> {
        self.read(offset, buf, len, true)
    }

    fn write_at(&self, offset: u64, buf: IoBuf) -> IoOp<IoBuf> {
        self.change(OpKind::Write, offset, buf.len(), move |content| {
            content.write(offset, &buf);
            buf
        })
    }

    fn sync_data(&self) -> IoOp<()> {
        IoOp::ready(Ok(()))
    }

    fn len(&self) -> IoOp<u64> {
        IoOp::ready(Ok(read_lock(&self.content).len))
    }

    fn set_len(&self, len: u64) -> IoOp<()> {
        self.change(OpKind::SetLen, 0, 0, move |content| content.set_len(len))
    }

    fn preallocate(&self, offset: u64, len: u64) -> IoOp<()> {
        self.change(OpKind::Preallocate, 0, 0, move |content| {
            let end = (offset + len).max(content.len);
            content.set_len(end);
        })
    }

    fn preallocate_zeroed(&self, offset: u64, len: u64) -> IoOp<()> {
        self.change(OpKind::Preallocate, offset, len as usize, move |content| {
            let end = (offset + len).max(content.len);
            content.set_len(end);
            let mut at = offset;
            while at < offset + len {
                let step = CHUNK.min((offset + len - at) as usize);
                content.write(at, &vec![0; step]);
                at += step as u64;
            }
        })
    }

    fn is_direct(&self) -> bool {
        false
    }
}
