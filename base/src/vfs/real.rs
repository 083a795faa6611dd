//! Files of the operating system.
//!
//! # Structure
//! A file knows its path (for errors), its kind (for the books) and its pool. An operation is a closure
//! over these; [`super::op`] decides when it runs, [`super::mode`] where.
//!
//! # Crash safety
//! `sync_data` is fdatasync, which on Linux also makes the length durable where it is needed to read
//! the data back. `sync_dir` is fsync of the directory (VFS-3). A failed sync is returned as it is and
//! never retried (VFS-4): after one, Linux marks the pages clean, and a second sync would succeed over
//! lost data.
//!
//! # Errors
//! EINTR is retried where the system call may return it; short reads and writes are continued. Nothing
//! else is hidden.

use super::booking::{Booking, file_id};
use super::op::{Begin, InFlight, IoOp, in_flight};
use super::pool::IoPool;
use super::{
    DIR_MODE, DirEntry, DirLock, EntryKind, FILE_MODE, FileKind, IO_ALIGN, IoBuf, IoMode, LockError, OpKind, OpenHow,
    Vfs, VfsError, VfsFile, io_mode,
};
use crate::memory::{Outside, uncharged};
use crate::waits::Wait;
use rustix::fs::{FallocateFlags, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system's files.
#[derive(Clone)]
pub struct RealVfs {
    pool: Option<Arc<IoPool>>,
}

impl RealVfs {
    /// Every operation runs on the thread that polls it first.
    pub fn inline() -> Self {
        RealVfs { pool: None }
    }

    /// Operations run on `threads` threads of a pool, save those of threads that chose
    /// [`super::inline_io_here`].
    ///
    /// # Errors
    /// The system's, if a thread can't be started.
    pub fn pooled(threads: usize) -> io::Result<Self> {
        Ok(RealVfs { pool: Some(Arc::new(IoPool::start(threads)?)) })
    }

    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        kind: FileKind,
        path: &Path,
        offset: Option<u64>,
        run: impl FnOnce(&Path) -> Result<T, VfsError> + Send + 'static,
    ) -> IoOp<T> {
        self.op_of(op, Booking::new(op, kind, path, offset), Arc::new(path.to_path_buf()), run)
    }

    fn op_of<T: Send + 'static>(
        &self,
        op: OpKind,
        booking: Booking,
        path: Arc<PathBuf>,
        run: impl FnOnce(&Path) -> Result<T, VfsError> + Send + 'static,
    ) -> IoOp<T> {
        IoOp::idle(booking, RealOp { op, path, pool: self.pool.clone(), run })
    }
}

struct RealOp<F> {
    op: OpKind,
    path: Arc<PathBuf>,
    pool: Option<Arc<IoPool>>,
    run: F,
}

impl<T, F> Begin<T> for RealOp<F>
where
    T: Send + 'static,
    F: FnOnce(&Path) -> Result<T, VfsError> + Send + 'static,
{
    fn perform(self: Box<Self>) -> Result<T, VfsError> {
        let RealOp { run, path, .. } = *self;
        run(&path)
    }

    fn is_inline(&self) -> bool {
        self.pool.is_none() || io_mode() == IoMode::Inline
    }

    fn submit(self: Box<Self>) -> InFlight<T> {
        let RealOp { op, path, pool, run } = *self;
        // The thread of the pool frees the job and its path: they are the server's memory (MEM-8).
        uncharged(|| {
            let path = Arc::new(path.to_path_buf());
            let (completer, future) = in_flight(op, path.clone());
            if let Some(pool) = pool {
                pool.submit(Box::new(move || completer.complete(run(&path))));
            }
            future
        })
    }
}

impl Vfs for RealVfs {
    fn open(&self, path: &Path, how: OpenHow) -> IoOp<Arc<dyn VfsFile>> {
        let vfs = self.clone();
        self.op(OpKind::Open, how.kind, path, None, move |path| {
            let (file, direct) = open_file(path, how).map_err(|err| VfsError::new(OpKind::Open, path, err))?;
            let (id, path) = (file_id(path), Arc::new(path.to_path_buf()));
            // A thread of the pool makes it, and its last holder frees it (MEM-8).
            let bytes = size_of::<RealFile>() + size_of::<PathBuf>() + path.capacity() + 3 * 2 * size_of::<usize>();
            let file = RealFile { file: Arc::new(file), id, path, how, direct, vfs, _outside: Outside::new(bytes) };
            Ok(Arc::new(file) as Arc<dyn VfsFile>)
        })
    }

    fn remove(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::Remove, FileKind::Other, path, None, |path| {
            std::fs::remove_file(path).map_err(|err| VfsError::new(OpKind::Remove, path, err))
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> IoOp<()> {
        let to = to.to_path_buf();
        self.op(OpKind::Rename, FileKind::Other, from, None, move |from| {
            std::fs::rename(from, &to).map_err(|err| VfsError::new(OpKind::Rename, from, err))
        })
    }

    fn create_dir(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::CreateDir, FileKind::Other, path, None, |path| {
            std::fs::DirBuilder::new()
                .mode(DIR_MODE)
                .create(path)
                .map_err(|err| VfsError::new(OpKind::CreateDir, path, err))
        })
    }

    fn sync_dir(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::SyncDir, FileKind::Other, path, None, |path| {
            File::open(path).and_then(|dir| dir.sync_all()).map_err(|err| VfsError::new(OpKind::SyncDir, path, err))
        })
    }

    fn list(&self, path: &Path) -> IoOp<Vec<DirEntry>> {
        self.op(OpKind::List, FileKind::Other, path, None, |path| {
            list_dir(path).map_err(|err| VfsError::new(OpKind::List, path, err))
        })
    }

    fn mode(&self, path: &Path) -> IoOp<u32> {
        self.op(OpKind::Mode, FileKind::Other, path, None, |path| {
            let meta = std::fs::metadata(path).map_err(|err| VfsError::new(OpKind::Mode, path, err))?;
            Ok(meta.permissions().mode() & 0o7777)
        })
    }

    fn make_private(&self, path: &Path) -> IoOp<()> {
        self.op(OpKind::SetMode, FileKind::Other, path, None, |path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(DIR_MODE))
                .map_err(|err| VfsError::new(OpKind::SetMode, path, err))
        })
    }

    fn lock(&self, path: &Path) -> Result<DirLock, LockError> {
        lock_file(path)
    }
}

/// Opens the file; the second result says whether I/O is direct.
fn open_file(path: &Path, how: OpenHow) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).write(!how.read_only).create(how.creates() && !how.read_only);
    options.create_new(how.exclusive_create).mode(FILE_MODE); // VFS-9
    if !how.direct {
        return Ok((options.open(path)?, false));
    }
    let direct_flag = OFlags::DIRECT.bits() as i32;
    match options.clone().custom_flags(direct_flag).open(path) {
        Ok(file) => Ok((file, true)),
        // tmpfs and others answer EINVAL, and may have created the file before they refused.
        Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
            options.create_new(false).create(how.creates() && !how.read_only);
            Ok((options.open(path)?, false))
        }
        Err(err) => Err(err),
    }
}

fn list_dir(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Removed since the directory was read.
            Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
            Err(err) => return Err(err),
        };
        let (kind, size) = if meta.is_dir() { (EntryKind::Dir, 0) } else { (EntryKind::File, meta.len()) };
        entries.push(DirEntry { name, kind, size });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// flock belongs to the open file, not to the process: a second opening in this process is refused
/// like one in another. The kernel releases it when the process dies; the pid inside is only a hint.
fn lock_file(path: &Path) -> Result<DirLock, LockError> {
    let failed = |err: io::Error| LockError::Io(VfsError::new(OpKind::Lock, path, err));
    let booking = Booking::new(OpKind::Lock, FileKind::Other, path, None);
    let _wait = Wait::begin(booking.event, booking.object);
    let mut options = File::options();
    let mut file =
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The process that holds it may be writing its pid just now.
            let read = file.read_to_string(&mut text);
            let pid = read.ok().and_then(|_| text.trim().parse().ok()).unwrap_or(0);
            return Err(LockError::Held { pid });
        }
        Err(std::fs::TryLockError::Error(err)) => return Err(failed(err)),
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(DirLock::new(file))
}

struct RealFile {
    file: Arc<File>,
    /// Kept beside the path that it is made of: each operation is booked under it.
    id: u64,
    path: Arc<PathBuf>,
    how: OpenHow,
    direct: bool,
    vfs: RealVfs,
    _outside: Outside,
}

impl RealFile {
    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        offset: Option<u64>,
        run: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
    ) -> IoOp<T> {
        let file = self.file.clone();
        let booking = Booking::of(op, self.how.kind, self.id, offset);
        self.vfs.op_of(op, booking, self.path.clone(), move |path| {
            run(&file).map_err(|err| VfsError { offset, ..VfsError::new(op, path, err) })
        })
    }

    fn read(&self, offset: u64, mut buf: IoBuf, len: usize, exact: bool) -> IoOp<IoBuf> {
        if let Err(err) = check_alignment(OpKind::Read, &self.path, self.how, offset, len) {
            return IoOp::ready(Err(err));
        }
        // Here and not in the pool's thread: the memory is the account's that reads.
        buf.resize(len);
        self.op(OpKind::Read, Some(offset), move |file| {
            let read = read_full(file, offset, &mut buf)?;
            if exact && read < len {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buf.resize(read);
            Ok(buf)
        })
    }
}

/// Enforces VFS-5.
pub(super) fn check_alignment(op: OpKind, path: &Path, how: OpenHow, offset: u64, len: usize) -> Result<(), VfsError> {
    let aligned = offset.is_multiple_of(IO_ALIGN as u64) && len.is_multiple_of(IO_ALIGN);
    if how.direct && !aligned {
        let why = format!("direct I/O of {len} bytes is not a multiple of {IO_ALIGN}");
        let err = io::Error::new(io::ErrorKind::InvalidInput, why);
        return Err(VfsError::at(op, path, offset, err));
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn read_full(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
    Ok(done)
}

fn write_zeros(file: &File, offset: u64, len: u64) -> io::Result<()> {
    const STEP: usize = 1 << 20;
    let zeros = IoBuf::zeroed(STEP.min(usize::try_from(len).unwrap_or(STEP)));
    let mut done = 0;
    while done < len {
        let step = zeros.len().min(usize::try_from(len - done).unwrap_or(STEP));
        file.write_all_at(&zeros[..step], offset + done)?;
        done += step as u64;
    }
    Ok(())
}

impl VfsFile for RealFile {
    fn read_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf> {
        self.read(offset, buf, len, false)
    }

    fn read_exact_at(&self, offset: u64, buf: IoBuf, len: usize) -> IoOp<IoBuf> {
        self.read(offset, buf, len, true)
    }

    fn write_at(&self, offset: u64, buf: IoBuf) -> IoOp<IoBuf> {
        if let Err(err) = check_alignment(OpKind::Write, &self.path, self.how, offset, buf.len()) {
            return IoOp::ready(Err(err));
        }
        self.op(OpKind::Write, Some(offset), move |file| {
            file.write_all_at(&buf, offset)?;
            Ok(buf)
        })
    }

    fn sync_data(&self) -> IoOp<()> {
        self.op(OpKind::SyncData, None, |file| file.sync_data())
    }

    fn len(&self) -> IoOp<u64> {
        self.op(OpKind::Len, None, |file| Ok(file.metadata()?.len()))
    }

    fn set_len(&self, len: u64) -> IoOp<()> {
        self.op(OpKind::SetLen, Some(len), move |file| file.set_len(len))
    }

    fn preallocate(&self, offset: u64, len: u64) -> IoOp<()> {
        self.op(OpKind::Preallocate, Some(offset), move |file| {
            loop {
                match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len) {
                    Ok(()) => return Ok(()),
                    Err(rustix::io::Errno::INTR) => {}
                    // The file system has no fallocate. Writing zeros would overwrite what stands
                    // there, so only what lies beyond the end is written.
                    Err(rustix::io::Errno::OPNOTSUPP) => {
                        let end = file.metadata()?.len();
                        let from = end.max(offset).min(offset + len);
                        return write_zeros(file, from, offset + len - from);
                    }
                    Err(err) => return Err(err.into()),
                }
            }
        })
    }

    fn preallocate_zeroed(&self, offset: u64, len: u64) -> IoOp<()> {
        let in_usize = usize::try_from(len).unwrap_or(usize::MAX - IO_ALIGN + 1);
        if let Err(err) = check_alignment(OpKind::Preallocate, &self.path, self.how, offset, in_usize) {
            return IoOp::ready(Err(err));
        }
        self.op(OpKind::Preallocate, Some(offset), move |file| write_zeros(file, offset, len))
    }

    fn is_direct(&self) -> bool {
        self.direct
    }
}
