//! The log: a ring that many committers fill, and one flush at a time that empties it into a preallocated file.
//!
//! Life of a record: `reserve` (fetch_add on `tail`) -> `copy` (body first, header word last, with release) ->
//! a flush walks the contiguous complete records, writes and syncs them, publishes `durable`, wakes the waiters.
//!
//! Invariants
//! - LOG-1 Every ring word from `tail` on (up to one ring length past `flushed`) is zero, so that a zero header
//!   means "reserved, not yet copied".
//! - LOG-2 `durable` is exclusive and only grows; it is stored before any waiter of that flush is woken.
//! - LOG-3 Whoever fails to get the flush mutex may leave: the holder looks at `tail` again after it let go.
//!
//! Not here: log credit (the ring is sized so that it can't fill at the rates measured; it asserts), segments.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::io::AsRawFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::Flags;

const RING_BYTES: u64 = 16 << 20;
const RING_WORDS: u64 = RING_BYTES / 8;
const FILE_BYTES: u64 = 256 << 20;
const BLOCK: usize = 4096;

/// How bytes become durable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Io {
    /// `pwrite` of the new bytes, then `fdatasync`.
    Fdatasync,
    /// `pwrite` of whole 4 KiB blocks on a file opened O_DIRECT | O_DSYNC.
    Direct,
}

/// Who runs a flush when none is under way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Flusher {
    /// Always the dedicated thread.
    Thread,
    /// The committing task, on its runtime's worker; what arrived meanwhile goes to the thread.
    Inline,
    /// As `Inline`, inside `block_in_place`.
    Block,
    /// `Inline` while flushes serve one committer; the thread as soon as groups form. (A trap: see `Alone`.)
    LastGroup,
    /// Yields to the scheduler once, so that whoever is ready runs first; then, if no other session has a statement
    /// in progress, `Inline`, else the thread. Without the yield a lone worker never sees the others: its own syncs
    /// keep them in their sockets, and one sync per commit is what remains.
    Alone,
    /// `Alone`, but while it stays alone it yields on every 16th flush only: a yield wakes tokio's second worker.
    Probe,
}

/// How the waiters of a flush are woken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wake {
    /// Each waker, from the thread that flushed.
    Direct,
    /// One wake per shard; a task there wakes its own.
    Batch,
}

struct Shard {
    waiters: Mutex<VecDeque<(u64, Waker)>>,
    dispatcher: AtomicWaker,
}

struct FlushState {
    file: File,
    /// Bytes of the last, partly filled block, then the bytes of this flush.
    buffer: AlignedBuffer,
    /// Everything below is on disk.
    flushed: u64,
}

pub struct Log {
    ring: Box<[AtomicU64]>,
    tail: AtomicU64,
    durable: AtomicU64,
    visible: Mutex<u64>,
    flush: Mutex<FlushState>,
    thread: OnceLock<Thread>,
    thread_asleep: AtomicBool,
    shards: Vec<Shard>,
    waiting: AtomicUsize,
    last_group: AtomicUsize,
    lonely: AtomicBool,
    flags: Flags,
    pub syncs: AtomicU64,
    pub inline_syncs: AtomicU64,
}

impl Log {
    pub fn open(flags: &Flags) -> Arc<Log> {
        let file = open_log_file(&flags.log_path, flags.io);
        let log = Arc::new(Log {
            ring: (0..RING_WORDS).map(|_| AtomicU64::new(0)).collect(),
            tail: AtomicU64::new(8),
            durable: AtomicU64::new(8),
            visible: Mutex::new(8),
            flush: Mutex::new(FlushState { file, buffer: AlignedBuffer::new(RING_BYTES as usize + 2 * BLOCK), flushed: 8 }),
            thread: OnceLock::new(),
            thread_asleep: AtomicBool::new(false),
            shards: (0..flags.workers)
                .map(|_| Shard { waiters: Mutex::new(VecDeque::new()), dispatcher: AtomicWaker::new() })
                .collect(),
            waiting: AtomicUsize::new(0),
            last_group: AtomicUsize::new(0),
            lonely: AtomicBool::new(false),
            flags: flags.clone(),
            syncs: AtomicU64::new(0),
            inline_syncs: AtomicU64::new(0),
        });
        let flusher = log.clone();
        let handle = std::thread::Builder::new().name("flusher".into()).spawn(move || flusher.thread_main()).unwrap();
        log.thread.set(handle.thread().clone()).ok().unwrap();
        log
    }

    pub fn durable(&self) -> u64 {
        self.durable.load(Acquire)
    }

    /// Appends a record that is not a commit; returns its end.
    pub fn append(&self, words: &[u64]) -> u64 {
        let bytes = (words.len() as u64 + 1) * 8;
        let start = self.tail.fetch_add(bytes, SeqCst);
        self.copy(start, words);
        start + bytes
    }

    /// The commit section: reserve, store the LSN in the transaction's slot, advance visible_lsn; then copy outside it.
    pub fn commit(&self, words: &[u64], slot: &AtomicU64) -> u64 {
        let bytes = (words.len() as u64 + 1) * 8;
        let mut visible = self.visible.lock();
        let start = self.tail.fetch_add(bytes, SeqCst);
        let end = start + bytes;
        slot.store(end, SeqCst);
        *visible = end;
        drop(visible);
        self.copy(start, words);
        end
    }

    fn copy(&self, start: u64, words: &[u64]) {
        let bytes = (words.len() as u64 + 1) * 8;
        assert!(start + bytes - self.durable() < RING_BYTES, "log ring full: the spike has no log credit");
        let mut crc = crc32c::crc32c(&start.to_le_bytes());
        for (i, word) in words.iter().enumerate() {
            crc = crc32c::crc32c_append(crc, &word.to_le_bytes());
            self.ring[((start / 8 + 1 + i as u64) % RING_WORDS) as usize].store(*word, Relaxed);
        }
        self.ring[(start / 8 % RING_WORDS) as usize].store(bytes << 32 | crc as u64, Release);
    }

    /// Called by a committer after its copy: makes sure that a flush will cover it, or does it here and now.
    /// `busy` is the number of sessions that have a statement in progress, the caller included.
    pub async fn request_flush(&self, lsn: u64, busy: &AtomicUsize) {
        match self.flags.flusher {
            Flusher::Thread => self.kick_thread(),
            Flusher::Inline => self.flush_inline(),
            Flusher::Block => tokio::task::block_in_place(|| self.flush_inline()),
            Flusher::LastGroup if self.last_group.load(Relaxed) <= 1 && self.waiting.load(Relaxed) == 0 => {
                self.flush_inline()
            }
            Flusher::LastGroup => self.kick_thread(),
            Flusher::Probe => {
                let probe = !self.lonely.load(Relaxed) || self.inline_syncs.load(Relaxed) % 16 == 0;
                if busy.load(SeqCst) == 1 && probe {
                    tokio::task::yield_now().await;
                }
                let alone = busy.load(SeqCst) == 1;
                self.lonely.store(alone, Relaxed);
                match alone {
                    true if self.durable() < lsn => self.flush_inline(),
                    true => {}
                    false => self.kick_thread(),
                }
            }
            Flusher::Alone => {
                if busy.load(SeqCst) == 1 {
                    tokio::task::yield_now().await;
                }
                if busy.load(SeqCst) == 1 && self.durable() < lsn {
                    self.flush_inline();
                } else {
                    self.kick_thread();
                }
            }
        }
    }

    fn flush_inline(&self) {
        if let Some(mut state) = self.flush.try_lock() {
            self.inline_syncs.fetch_add(1, Relaxed);
            self.flush_once(&mut state);
            drop(state);
            if self.tail.load(SeqCst) > self.durable.load(SeqCst) {
                self.kick_thread(); // LOG-3
            }
        } // else LOG-3
    }

    fn kick_thread(&self) {
        if self.thread_asleep.swap(false, SeqCst) {
            self.thread.get().unwrap().unpark();
        }
    }

    fn thread_main(&self) {
        loop {
            self.thread_asleep.store(true, SeqCst);
            while self.tail.load(SeqCst) == self.durable.load(SeqCst) || self.flags.flusher != Flusher::Thread {
                if !self.thread_asleep.load(SeqCst) {
                    break;
                }
                std::thread::park();
            }
            self.thread_asleep.store(false, SeqCst);
            let mut state = self.flush.lock();
            while self.tail.load(SeqCst) > state.flushed {
                if !self.flush_once(&mut state) {
                    std::thread::yield_now(); // a record is reserved and not yet copied
                }
            }
        }
    }

    /// Writes and syncs all that is complete. False if nothing was.
    fn flush_once(&self, state: &mut FlushState) -> bool {
        let start = state.flushed;
        let head = (start % BLOCK as u64) as usize;
        let mut end = start;
        let mut at = head;
        loop {
            let header = self.ring[(end / 8 % RING_WORDS) as usize].load(Acquire);
            if header == 0 {
                break;
            }
            for word in 0..(header >> 32) / 8 {
                let slot = &self.ring[((end / 8 + word) % RING_WORDS) as usize];
                let value = slot.load(Relaxed);
                slot.store(0, Relaxed); // LOG-1: released only when `durable` passes it
                state.buffer.put(at, value);
                at += 8;
            }
            end += header >> 32;
        }
        if end == start {
            return false;
        }
        self.write_and_sync(state, start, head, at);
        state.flushed = end;
        self.durable.store(end, SeqCst); // LOG-2
        self.syncs.fetch_add(1, Relaxed);
        self.wake(end);
        true
    }

    fn write_and_sync(&self, state: &mut FlushState, start: u64, head: usize, at: usize) {
        let FlushState { file, buffer, .. } = state;
        match self.flags.io {
            Io::Fdatasync => {
                write_wrapped(file, buffer.slice(head, at), start);
                // SAFETY: the descriptor is open for as long as `file` lives.
                assert_eq!(unsafe { libc::fdatasync(file.as_raw_fd()) }, 0, "a failed sync is never retried");
            }
            Io::Direct => {
                let padded = at.next_multiple_of(BLOCK);
                buffer.zero(at, padded);
                write_wrapped(file, buffer.slice(0, padded), start - head as u64);
            }
        }
        let last_block = at - at % BLOCK;
        buffer.move_to_front(last_block, BLOCK);
    }

    fn wake(&self, end: u64) {
        if self.flags.wake == Wake::Batch {
            let n = self.waiting.load(Relaxed);
            self.last_group.store(n, Relaxed);
            self.shards.iter().for_each(|s| s.dispatcher.wake());
            return;
        }
        let mut woken = 0;
        for shard in &self.shards {
            woken += self.wake_shard(shard, end);
        }
        self.last_group.store(woken, Relaxed);
    }

    fn wake_shard(&self, shard: &Shard, end: u64) -> usize {
        let ready: Vec<Waker> = {
            let mut waiters = shard.waiters.lock();
            let n = waiters.iter().take_while(|(lsn, _)| *lsn <= end).count();
            waiters.drain(..n).map(|(_, waker)| waker).collect()
        };
        let woken = ready.len();
        self.waiting.fetch_sub(woken, Relaxed);
        ready.into_iter().for_each(Waker::wake);
        woken
    }

    /// The task that wakes the waiters of one shard (`Wake::Batch`).
    pub async fn dispatch(self: Arc<Log>, shard: usize) {
        let mut seen = 0;
        std::future::poll_fn(|cx| {
            self.shards[shard].dispatcher.register(cx.waker());
            let durable = self.durable();
            if durable > seen {
                seen = durable;
                self.wake_shard(&self.shards[shard], durable);
            }
            Poll::<()>::Pending
        })
        .await
    }

    /// Resolves once `durable >= lsn`.
    pub fn wait_durable(&self, lsn: u64, shard: usize) -> WaitDurable<'_> {
        WaitDurable { log: self, lsn, shard, queued: false }
    }
}

pub struct WaitDurable<'a> {
    log: &'a Log,
    lsn: u64,
    shard: usize,
    queued: bool,
}

impl Future for WaitDurable<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let log = self.log;
        if log.durable() >= self.lsn {
            return Poll::Ready(());
        }
        if self.queued {
            return Poll::Pending; // woken for something else; the entry in the list still stands
        }
        let shard = &log.shards[self.shard % log.shards.len()];
        let mut waiters = shard.waiters.lock();
        let at = waiters.iter().rposition(|(lsn, _)| *lsn <= self.lsn).map_or(0, |i| i + 1);
        waiters.insert(at, (self.lsn, cx.waker().clone()));
        log.waiting.fetch_add(1, SeqCst);
        // Re-check under the list's mutex: a flush that published before it took the mutex has not seen the entry.
        if log.durable.load(SeqCst) >= self.lsn {
            waiters.remove(at);
            log.waiting.fetch_sub(1, SeqCst);
            return Poll::Ready(());
        }
        drop(waiters);
        self.queued = true;
        Poll::Pending
    }
}

fn open_log_file(path: &str, io: Io) -> File {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).read(true).open(path).unwrap();
    if file.metadata().unwrap().len() != FILE_BYTES {
        let zeros = vec![0u8; 1 << 20];
        for _ in 0..FILE_BYTES / zeros.len() as u64 {
            file.write_all(&zeros).unwrap(); // written, not only allocated: no extent conversion in measured syncs
        }
        file.sync_all().unwrap();
    }
    match io {
        Io::Fdatasync => file,
        Io::Direct => OpenOptions::new().write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC).open(path).unwrap(),
    }
}

fn write_wrapped(file: &File, bytes: &[u8], lsn: u64) {
    let at = lsn % FILE_BYTES;
    let first = bytes.len().min((FILE_BYTES - at) as usize);
    file.write_all_at(&bytes[..first], at).unwrap();
    if first < bytes.len() {
        file.write_all_at(&bytes[first..], 0).unwrap();
    }
}

/// A byte buffer whose first byte lies on a block boundary, as O_DIRECT wants it.
struct AlignedBuffer {
    bytes: Vec<u8>,
    offset: usize,
}

impl AlignedBuffer {
    fn new(len: usize) -> AlignedBuffer {
        let bytes = vec![0u8; len + BLOCK];
        let offset = bytes.as_ptr().align_offset(BLOCK);
        AlignedBuffer { bytes, offset }
    }
    fn put(&mut self, at: usize, word: u64) {
        self.bytes[self.offset + at..][..8].copy_from_slice(&word.to_le_bytes());
    }
    fn slice(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes[self.offset + from..self.offset + to]
    }
    fn zero(&mut self, from: usize, to: usize) {
        self.bytes[self.offset + from..self.offset + to].fill(0);
    }
    fn move_to_front(&mut self, from: usize, len: usize) {
        let from = self.offset + from;
        self.bytes.copy_within(from..from + len, self.offset);
    }
}

/// Raw rate of small appends made durable one after the other, for the same file and the same two ways.
pub fn raw_sync_rate(path: &str, io: Io, seconds: u64) -> f64 {
    let file = open_log_file(path, io);
    let mut buffer = AlignedBuffer::new(2 * BLOCK);
    let (begin, mut syncs, mut lsn) = (Instant::now(), 0u64, 0u64);
    while begin.elapsed() < Duration::from_secs(seconds) {
        buffer.put((lsn % BLOCK as u64) as usize / 8 * 8, lsn);
        match io {
            Io::Fdatasync => {
                write_wrapped(&file, buffer.slice(0, 144), lsn);
                // SAFETY: the descriptor is open for as long as `file` lives.
                assert_eq!(unsafe { libc::fdatasync(file.as_raw_fd()) }, 0);
            }
            Io::Direct => write_wrapped(&file, buffer.slice(0, BLOCK), lsn - lsn % BLOCK as u64),
        }
        lsn += 144;
        syncs += 1;
    }
    syncs as f64 / begin.elapsed().as_secs_f64()
}
