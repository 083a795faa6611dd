//! What every implementation of the traits must do, and what only real files can show.

use super::sim::SimDisk;
use super::*;
use std::io;
use std::path::PathBuf;

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("clearway-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `test` on every implementation, each with an empty directory.
fn on_every_vfs(name: &str, test: impl Fn(&dyn Vfs, &Path)) {
    let scratch = Scratch::new(name);
    test(&RealVfs::inline(), &scratch.0);
    let in_memory: [Box<dyn Vfs>; 2] = [Box::new(MemVfs::new()), Box::new(SimDisk::new(1))];
    for vfs in in_memory {
        vfs.create_dir(Path::new("/d")).wait().expect("create");
        test(&*vfs, Path::new("/d"));
    }
}

fn kind_of<T>(result: Result<T, VfsError>) -> Option<io::ErrorKind> {
    result.err().map(|err| err.kind())
}

const EXISTING: OpenHow = OpenHow::existing(FileKind::Other);
const CREATE: OpenHow = OpenHow::create(FileKind::Other);
const NEW: OpenHow = OpenHow::create_new(FileKind::Other);

#[test]
fn bytes_come_back_and_the_end_shows_by_length() {
    on_every_vfs("bytes", |vfs, dir| {
        let file = vfs.open(&dir.join("f"), CREATE).wait().expect("open");
        // Crosses the chunks of files in memory.
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let given = file.write_at(3, IoBuf::from_slice(&bytes)).wait().expect("write");
        assert_eq!(&given[..], &bytes[..], "the buffer comes back");
        assert_eq!(file.len().wait().expect("len"), 200_003);
        let read = |offset, len| file.read_at(offset, IoBuf::with_capacity(len), len).wait();
        assert_eq!(&read(0, 200_003).expect("read")[3..], &bytes[..]);
        assert_eq!(&read(65_530, 20).expect("read")[..], &bytes[65_527..65_547]);
        assert_eq!(read(200_000, 10).expect("short at the end").len(), 3);
        assert!(read(200_003, 10).expect("empty at the end").is_empty());
        assert!(read(u64::from(u32::MAX), 10).expect("empty past the end").is_empty());
        let exact = file.read_exact_at(200_000, IoBuf::with_capacity(10), 10).wait();
        assert_eq!(kind_of(exact), Some(io::ErrorKind::UnexpectedEof));
        file.sync_data().wait().expect("sync");
    });
}

#[test]
fn lengths_change_and_what_is_new_reads_as_zeros() {
    on_every_vfs("lengths", |vfs, dir| {
        let file = vfs.open(&dir.join("f"), CREATE).wait().expect("open");
        file.write_at(0, IoBuf::from_slice(&[9; 100])).wait().expect("write");
        file.set_len(50).wait().expect("truncate");
        file.set_len(100).wait().expect("extend");
        file.preallocate(0, 8192).wait().expect("preallocate");
        let read = file.read_at(0, IoBuf::zeroed(0), 8192).wait().expect("read");
        assert_eq!(read.len(), 8192);
        assert!(read[..50].iter().all(|byte| *byte == 9) && read[50..].iter().all(|byte| *byte == 0));
        file.preallocate_zeroed(0, 4096).wait().expect("zero");
        let read = file.read_at(0, IoBuf::zeroed(0), 100).wait().expect("read");
        assert!(read.iter().all(|byte| *byte == 0));
        assert_eq!(file.len().wait().expect("len"), 8192);
    });
}

#[test]
fn names_are_created_listed_renamed_and_removed() {
    on_every_vfs("names", |vfs, dir| {
        let open = |name: &str, how| vfs.open(&dir.join(name), how).wait();
        assert_eq!(kind_of(open("b", EXISTING)), Some(io::ErrorKind::NotFound));
        let file = open("b", NEW).expect("new");
        file.write_at(0, IoBuf::from_slice(b"12345")).wait().expect("write");
        assert_eq!(kind_of(open("b", NEW)), Some(io::ErrorKind::AlreadyExists));
        open("a", CREATE).expect("create");
        vfs.create_dir(&dir.join("sub")).wait().expect("create");
        let again = vfs.create_dir(&dir.join("sub")).wait();
        assert_eq!(kind_of(again), Some(io::ErrorKind::AlreadyExists));
        vfs.rename(&dir.join("b"), &dir.join("a")).wait().expect("rename over");
        vfs.sync_dir(dir).wait().expect("sync");
        let entry = |name: &str, kind, size| DirEntry { name: name.to_owned(), kind, size };
        let expected = [entry("a", EntryKind::File, 5), entry("sub", EntryKind::Dir, 0)];
        assert_eq!(vfs.list(dir).wait().expect("list"), expected);
        vfs.remove(&dir.join("a")).wait().expect("remove");
        let again = vfs.remove(&dir.join("a")).wait();
        assert_eq!(kind_of(again), Some(io::ErrorKind::NotFound));
        assert_eq!(file.len().wait().expect("an open file outlives its name"), 5);
        let orphan = vfs.open(&dir.join("none").join("f"), CREATE).wait();
        assert_eq!(kind_of(orphan), Some(io::ErrorKind::NotFound));
    });
}

#[test]
fn read_only_files_refuse_writes() {
    on_every_vfs("read-only", |vfs, dir| {
        vfs.open(&dir.join("f"), CREATE).wait().expect("create");
        let how = OpenHow::read_only(FileKind::Other);
        let file = vfs.open(&dir.join("f"), how).wait().expect("open");
        let err = file.write_at(0, IoBuf::from_slice(b"x")).wait().expect_err("read-only");
        assert_eq!((err.op, err.offset), (OpKind::Write, Some(0)));
    });
}

#[test]
fn direct_files_refuse_what_is_not_aligned() {
    on_every_vfs("direct", |vfs, dir| {
        let file = vfs.open(&dir.join("f"), CREATE.direct()).wait().expect("open");
        file.write_at(4096, IoBuf::from_slice(&[5; 8192])).wait().expect("aligned");
        let read = file.read_at(4096, IoBuf::with_capacity(8192), 8192).wait().expect("aligned");
        assert!(read.iter().all(|byte| *byte == 5));
        file.preallocate_zeroed(12_288, 4096).wait().expect("aligned");
        file.sync_data().wait().expect("sync");
        let results = [
            file.write_at(512, IoBuf::zeroed(4096)).wait(),
            file.write_at(0, IoBuf::zeroed(100)).wait(),
            file.read_at(1, IoBuf::zeroed(0), 4096).wait(),
        ];
        for result in results {
            assert_eq!(kind_of(result), Some(io::ErrorKind::InvalidInput), "VFS-5");
        }
    });
}

#[test]
fn a_second_lock_is_refused_and_names_the_holder() {
    on_every_vfs("lock", |vfs, dir| {
        let path = dir.join("lock");
        let held = vfs.lock(&path).expect("free");
        match vfs.lock(&path) {
            Err(LockError::Held { pid }) => assert_eq!(pid, std::process::id()),
            other => panic!("{other:?}"),
        }
        drop(held);
        vfs.lock(&path).expect("free again");
    });
}

#[test]
fn a_lock_holds_against_another_process() {
    let scratch = Scratch::new("lock-process");
    let path = scratch.0.join("lock");
    let _held = RealVfs::inline().lock(&path).expect("free");
    let status = std::process::Command::new("flock").arg("-n").arg(&path).arg("true").status();
    assert!(!status.expect("flock(1) is installed").success());
}

/// Drives a future on this thread, with nothing but std.
fn block_on<T>(mut future: impl Future<Output = T> + Unpin) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        let polled = std::pin::Pin::new(&mut future).poll(&mut std::task::Context::from_waker(&waker));
        match polled {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn hundreds_of_pooled_reads_are_pending_at_once() {
    let scratch = Scratch::new("pool");
    let vfs = RealVfs::pooled(4).expect("threads");
    let file = block_on(vfs.open(&scratch.0.join("f"), CREATE)).expect("open");
    let bytes: Vec<u8> = (0..512 * 64_u32).map(|n| (n / 64) as u8).collect();
    block_on(file.write_at(0, IoBuf::from_slice(&bytes))).expect("write");
    let mut reads: Vec<_> = (0..512).map(|n| file.read_at(n * 64, IoBuf::with_capacity(64), 64)).collect();
    let mut noop = std::task::Context::from_waker(std::task::Waker::noop());
    let mut early = 0;
    for read in &mut reads {
        // Started; `wait` then collects what is in flight.
        if let std::task::Poll::Ready(result) = std::pin::Pin::new(read).poll(&mut noop) {
            result.expect("read");
            early += 1;
        }
    }
    if early == 0 {
        for (n, read) in reads.into_iter().enumerate() {
            let buf = read.wait().expect("read");
            assert!(buf.iter().all(|byte| *byte == n as u8), "read {n}");
        }
    }
    drop((file, vfs));
}

#[test]
fn a_thread_that_chose_so_performs_its_own_operations() {
    let scratch = Scratch::new("inline");
    let vfs = RealVfs::pooled(1).expect("a thread");
    assert_eq!(io_mode(), IoMode::Pooled);
    let _inline = inline_io_here();
    assert_eq!(io_mode(), IoMode::Inline);
    let mut open = vfs.open(&scratch.0.join("f"), CREATE);
    let mut noop = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::Pin::new(&mut open).poll(&mut noop).is_ready(), "ends in its first poll");
}
