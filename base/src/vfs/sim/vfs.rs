//! The traits over a simulated disk: how an operation begins, is in flight, and ends.

use super::super::booking::Booking;
use super::super::names::{Node, normal};
use super::super::op::{Begin, InFlight, IoOp, in_flight};
use super::super::real::check_alignment;
use super::super::{
    DirEntry, DirLock, EntryKind, FileKind, IoBuf, LockError, OpKind, OpenHow, PowerOff, Vfs, VfsError, VfsFile,
};
use super::SimDisk;
use super::state::{DataOp, Disk, Ino};
use crate::testkit;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is to be done at the end; gets the error, if the operation is to fail.
type Finish<T> = Box<dyn FnOnce(&mut Disk, Option<io::Error>) -> io::Result<T> + Send>;

/// What is done at the begin.
type Start<T> = Box<dyn FnOnce(&mut Disk) -> Finish<T> + Send>;

/// An operation that has not begun; `start` runs at its begin.
struct SimOp<T> {
    disk: SimDisk,
    op: OpKind,
    path: Arc<PathBuf>,
    offset: Option<u64>,
    start: Start<T>,
}

/// An operation in flight.
struct OpInFlight<T> {
    disk: SimDisk,
    op: OpKind,
    path: Arc<PathBuf>,
    offset: Option<u64>,
    fault: Option<io::Error>,
    finish: Finish<T>,
}

impl<T> SimOp<T> {
    fn begin_now(self) -> Result<OpInFlight<T>, VfsError> {
        let SimOp { disk, op, path, offset, start } = self;
        let (alive, fault, finish) = {
            let mut state = disk.disk();
            if state.stopped() {
                (false, None, None)
            } else {
                let fault = state.faults.call(op, &path);
                // Before the point: a crash at the begin finds the operation in flight (DISK-1).
                let finish = start(&mut state);
                (state.pass_point(), fault, Some(finish))
            }
        };
        match finish {
            Some(finish) if alive => Ok(OpInFlight { disk, op, path, offset, fault, finish }),
            _ => Err(power_went(op, &path)),
        }
    }
}

impl<T> OpInFlight<T> {
    /// Ends it. The effect comes before the point: at a crash there, it may have happened untold.
    fn end_now(self) -> Result<T, VfsError> {
        let OpInFlight { disk, op, path, offset, fault, finish } = self;
        let mut state = disk.disk();
        if state.stopped() {
            drop(state);
            return Err(power_went(op, &path));
        }
        let result = finish(&mut state, fault);
        let alive = state.pass_point();
        drop(state);
        if !alive {
            return Err(power_went(op, &path));
        }
        result.map_err(|err| VfsError { offset, ..VfsError::new(op, &path, err) })
    }
}

/// Stops the simulation, if there is one, and gives the error for code that is still running.
fn power_went(op: OpKind, path: &Path) -> VfsError {
    if testkit::in_simulation() {
        testkit::crash();
    }
    VfsError::new(op, path, io::Error::other(PowerOff))
}

impl<T: Send + 'static> Begin<T> for SimOp<T> {
    fn perform(self: Box<Self>) -> Result<T, VfsError> {
        self.begin_now()?.end_now()
    }

    fn is_inline(&self) -> bool {
        !testkit::in_simulation()
    }

    fn submit(self: Box<Self>) -> InFlight<T> {
        let (completer, future) = in_flight(self.op, self.path.clone());
        match self.begin_now() {
            Ok(flying) => {
                let latency_ns = {
                    let mut disk = flying.disk.disk();
                    let bound = disk.options.latency_ns_max.max(1);
                    disk.rng.below(bound)
                };
                testkit::defer(latency_ns, move || completer.complete(flying.end_now()));
            }
            // The world has stopped; the task must not see another step of it.
            Err(_) => testkit::defer(0, move || drop(completer)),
        }
        future
    }
}

impl SimDisk {
    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        kind: FileKind,
        path: &Path,
        offset: Option<u64>,
        start: impl FnOnce(&mut Disk) -> Finish<T> + Send + 'static,
    ) -> IoOp<T> {
        let booking = Booking::new(op, kind, path, offset);
        let path = Arc::new(path.to_path_buf());
        let (disk, start) = (self.clone(), Box::new(start));
        IoOp::idle(booking, SimOp { disk, op, path, offset, start })
    }

    /// An operation that takes effect at its end, and has none when it fails.
    fn atomic<T: Send + 'static>(
        &self,
        op: OpKind,
        path: &Path,
        run: impl FnOnce(&mut Disk) -> io::Result<T> + Send + 'static,
    ) -> IoOp<T> {
        self.op(op, FileKind::Other, path, None, |_| {
            Box::new(|disk, fault| match fault {
                Some(err) => Err(err),
                None => run(disk),
            })
        })
    }
}

impl Vfs for SimDisk {
    fn open(&self, path: &Path, how: OpenHow) -> IoOp<Arc<dyn VfsFile>> {
        let (this, name) = (self.clone(), path.to_path_buf());
        self.atomic(OpKind::Open, path, move |disk| {
            let ino = disk.open(&name, how.creates(), how.exclusive_create)?;
            let alive = disk.inode(ino).alive.clone();
            let file = SimFile { disk: this, ino, path: name, how, alive };
            Ok(Arc::new(file) as Arc<dyn VfsFile>)
        })
    }

    fn remove(&self, path: &Path) -> IoOp<()> {
        let name = path.to_path_buf();
        self.atomic(OpKind::Remove, path, move |disk| disk.remove(&name))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoOp<()> {
        let (old, new) = (from.to_path_buf(), to.to_path_buf());
        self.atomic(OpKind::Rename, from, move |disk| disk.rename(&old, &new))
    }

    fn create_dir(&self, path: &Path) -> IoOp<()> {
        let name = path.to_path_buf();
        self.atomic(OpKind::CreateDir, path, move |disk| disk.create_dir(&name))
    }

    fn sync_dir(&self, path: &Path) -> IoOp<()> {
        let name = path.to_path_buf();
        self.op(OpKind::SyncDir, FileKind::Other, path, None, move |disk| {
            let upto = disk.names_upto();
            Box::new(move |disk, fault| match fault {
                None => disk.sync_names(&name, upto, |_| true),
                Some(err) => {
                    disk.sync_names(&name, upto, |rng| rng.chance(1, 2))?;
                    Err(err)
                }
            })
        })
    }

    fn list(&self, path: &Path) -> IoOp<Vec<DirEntry>> {
        let name = path.to_path_buf();
        self.atomic(OpKind::List, path, move |disk| {
            let list = disk.visible.list(&normal(&name)?)?;
            let entry = |(name, node)| match node {
                Node::Dir => DirEntry { name, kind: EntryKind::Dir, size: 0 },
                Node::File(ino) => {
                    let size = disk.inode(ino).visible.len() as u64;
                    DirEntry { name, kind: EntryKind::File, size }
                }
            };
            Ok(list.into_iter().map(entry).collect())
        })
    }

    fn lock(&self, path: &Path) -> Result<DirLock, LockError> {
        let failed = |err: io::Error| LockError::Io(VfsError::new(OpKind::Lock, path, err));
        let name = normal(path).map_err(failed)?;
        let mut disk = self.disk();
        if disk.stopped() {
            return Err(failed(io::Error::other(PowerOff)));
        }
        if let Some(err) = disk.faults.call(OpKind::Lock, path) {
            return Err(failed(err));
        }
        if !disk.locked.insert(name.clone()) {
            return Err(LockError::Held { pid: std::process::id() });
        }
        Ok(DirLock::new(SimLock { disk: self.clone(), path: name }))
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.disk().locked.remove(&self.path);
    }
}

struct SimFile {
    disk: SimDisk,
    ino: Ino,
    path: PathBuf,
    how: OpenHow,
    alive: Arc<()>,
}

impl SimFile {
    fn op<T: Send + 'static>(
        &self,
        op: OpKind,
        offset: Option<u64>,
        start: impl FnOnce(&mut Disk, Ino) -> Finish<T> + Send + 'static,
    ) -> IoOp<T> {
        let (ino, alive) = (self.ino, self.alive.clone());
        self.disk.op(op, self.how.kind, &self.path, offset, move |disk| {
            let finish = start(disk, ino);
            Box::new(move |disk, fault| {
                let _alive = alive;
                finish(disk, fault)
            })
        })
    }

    /// A change of content that gives `back` back.
    fn change<B: Send + 'static>(&self, op: OpKind, offset: u64, change: DataOp, back: B) -> IoOp<B> {
        if self.how.read_only {
            let err = io::Error::new(io::ErrorKind::PermissionDenied, "opened read-only");
            return IoOp::ready(Err(VfsError::at(op, &self.path, offset, err)));
        }
        self.op(op, Some(offset), move |disk, ino| {
            let id = disk.begin_data(ino, change);
            Box::new(move |disk, fault| disk.end_data(ino, id, fault).map(|()| back))
        })
    }

    fn read(&self, offset: u64, mut buf: IoBuf, len: usize, exact: bool) -> IoOp<IoBuf> {
        if let Err(err) = check_alignment(OpKind::Read, &self.path, self.how, offset, len) {
            return IoOp::ready(Err(err));
        }
        self.op(OpKind::Read, Some(offset), move |_, ino| {
            Box::new(move |disk, fault| {
                if let Some(err) = fault {
                    return Err(err);
                }
                let content = &disk.inode(ino).visible;
                let start = content.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
                let count = len.min(content.len() - start);
                if exact && count < len {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                buf.resize(count);
                buf.copy_from_slice(&content[start..start + count]);
                let one_in = disk.options.flip_reads_one_in;
                if one_in > 0 && count > 0 && disk.rng.chance(1, one_in) {
                    buf[disk.rng.index(count)] ^= 1 << disk.rng.below(8);
                }
                Ok(buf)
            })
        })
    }
}

impl VfsFile for SimFile {
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
        let bytes = buf.to_vec();
        self.change(OpKind::Write, offset, DataOp::Write { offset, bytes }, buf)
    }

    fn sync_data(&self) -> IoOp<()> {
        self.op(OpKind::SyncData, None, |disk, ino| {
            let upto = disk.data_upto(ino);
            Box::new(move |disk, fault| disk.sync_data(ino, upto, fault))
        })
    }

    fn len(&self) -> IoOp<u64> {
        self.op(OpKind::Len, None, |_, ino| {
            Box::new(move |disk, fault| match fault {
                Some(err) => Err(err),
                None => Ok(disk.inode(ino).visible.len() as u64),
            })
        })
    }

    fn set_len(&self, len: u64) -> IoOp<()> {
        self.change(OpKind::SetLen, len, DataOp::SetLen(len), ())
    }

    fn preallocate(&self, offset: u64, len: u64) -> IoOp<()> {
        self.change(OpKind::Preallocate, offset, DataOp::Extend(offset + len), ())
    }

    fn preallocate_zeroed(&self, offset: u64, len: u64) -> IoOp<()> {
        let bytes = vec![0; len as usize];
        if let Err(err) = check_alignment(OpKind::Preallocate, &self.path, self.how, offset, bytes.len()) {
            return IoOp::ready(Err(err));
        }
        self.change(OpKind::Preallocate, offset, DataOp::Write { offset, bytes }, ())
    }

    fn is_direct(&self) -> bool {
        self.how.direct
    }
}
