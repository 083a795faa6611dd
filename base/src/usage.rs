//! What a thread has read and written, in counts that only grow: EXPLAIN (ANALYZE, BUFFERS, WAL) shows what came while a node ran.
//!
//! A count is a value of the thread, so that counting is one addition. A statement may go on in another thread after each wait;
//! [`Counted`] therefore takes the difference over each poll.
//!
//! # Invariants
//! - USG-1: a poll's counts are the difference of the thread's counts before and after it. What other statements count on the thread between two
//!   polls is not in it.
//! - USG-2: threads that help a statement add what they have counted to the thread of the statement before the statement goes on ([`add`]).
//! - USG-3: what a statement is said to have used is what its own polls have counted between its begin and its end ([`mark`], [`since_mark`];
//!   `waits::SessionStats::use_begins`), whichever threads polled it and whatever others counted meanwhile.

use std::cell::Cell;
use std::future::Future;
use std::ops::{Add, AddAssign, Sub};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages that were found in the page cache.
    pub pages_hit: u64,
    /// Pages that were read from disk into the page cache.
    pub pages_read: u64,
    /// Pages that were as on disk, and were changed.
    pub pages_dirtied: u64,
    /// Bytes that were read from temporary files.
    pub temp_read: u64,
    /// Bytes that were written to temporary files.
    pub temp_written: u64,
    /// Records of the log.
    pub log_records: u64,
    /// Their bytes.
    pub log_bytes: u64,
}

impl Usage {
    const NONE: Usage = Usage {
        pages_hit: 0,
        pages_read: 0,
        pages_dirtied: 0,
        temp_read: 0,
        temp_written: 0,
        log_records: 0,
        log_bytes: 0,
    };

    /// The same of each pair of counts.
    #[inline]
    fn with(self, other: Usage, of: impl Fn(u64, u64) -> u64) -> Usage {
        Usage {
            pages_hit: of(self.pages_hit, other.pages_hit),
            pages_read: of(self.pages_read, other.pages_read),
            pages_dirtied: of(self.pages_dirtied, other.pages_dirtied),
            temp_read: of(self.temp_read, other.temp_read),
            temp_written: of(self.temp_written, other.temp_written),
            log_records: of(self.log_records, other.log_records),
            log_bytes: of(self.log_bytes, other.log_bytes),
        }
    }
}

impl Add for Usage {
    type Output = Usage;
    #[inline]
    fn add(self, other: Usage) -> Usage {
        self.with(other, u64::wrapping_add)
    }
}

impl AddAssign for Usage {
    #[inline]
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Sub for Usage {
    type Output = Usage;
    #[inline]
    fn sub(self, other: Usage) -> Usage {
        self.with(other, u64::wrapping_sub)
    }
}

/// The counts of one thread. Each is a cell of its own, so that counting touches nothing else.
struct Counts {
    pages_hit: Cell<u64>,
    pages_read: Cell<u64>,
    pages_dirtied: Cell<u64>,
    temp_read: Cell<u64>,
    temp_written: Cell<u64>,
    log_records: Cell<u64>,
    log_bytes: Cell<u64>,
    /// What they were at the last [`mark`].
    marked: Cell<Usage>,
}

thread_local! {
    static COUNTS: Counts = const {
        Counts {
            pages_hit: Cell::new(0),
            pages_read: Cell::new(0),
            pages_dirtied: Cell::new(0),
            temp_read: Cell::new(0),
            temp_written: Cell::new(0),
            log_records: Cell::new(0),
            log_bytes: Cell::new(0),
            marked: Cell::new(Usage::NONE),
        }
    };
}

#[inline(always)]
fn more(count: &Cell<u64>, n: u64) {
    count.set(count.get().wrapping_add(n));
}

/// A page was found in the page cache.
#[inline(always)]
pub fn page_hit() {
    COUNTS.with(|counts| more(&counts.pages_hit, 1));
}

/// A page was read from disk.
pub fn page_read() {
    COUNTS.with(|counts| more(&counts.pages_read, 1));
}

/// A page that was as on disk is changed.
#[inline(always)]
pub fn page_dirtied() {
    COUNTS.with(|counts| more(&counts.pages_dirtied, 1));
}

/// So many bytes were read from a temporary file.
pub fn temp_read(bytes: usize) {
    COUNTS.with(|counts| more(&counts.temp_read, bytes as u64));
}

/// So many bytes were written to a temporary file.
pub fn temp_written(bytes: usize) {
    COUNTS.with(|counts| more(&counts.temp_written, bytes as u64));
}

/// A record of so many bytes went into the log.
#[inline(always)]
pub fn log_record(bytes: usize) {
    COUNTS.with(|counts| {
        more(&counts.log_records, 1);
        more(&counts.log_bytes, bytes as u64);
    });
}

impl Counts {
    #[inline]
    fn now(&self) -> Usage {
        Usage {
            pages_hit: self.pages_hit.get(),
            pages_read: self.pages_read.get(),
            pages_dirtied: self.pages_dirtied.get(),
            temp_read: self.temp_read.get(),
            temp_written: self.temp_written.get(),
            log_records: self.log_records.get(),
            log_bytes: self.log_bytes.get(),
        }
    }
}

/// What the calling thread has counted since it began.
pub fn of_thread() -> Usage {
    COUNTS.with(Counts::now)
}

/// From here on the calling thread counts for the statement that it runs (USG-3).
#[inline]
pub fn mark() {
    COUNTS.with(|counts| counts.marked.set(counts.now()));
}

/// What the calling thread has counted since it called [`mark`].
#[inline]
pub fn since_mark() -> Usage {
    COUNTS.with(|counts| counts.now() - counts.marked.get())
}

/// Adds to the calling thread's counts what threads have counted that helped it (USG-2).
pub fn add(usage: Usage) {
    COUNTS.with(|counts| {
        more(&counts.pages_hit, usage.pages_hit);
        more(&counts.pages_read, usage.pages_read);
        more(&counts.pages_dirtied, usage.pages_dirtied);
        more(&counts.temp_read, usage.temp_read);
        more(&counts.temp_written, usage.temp_written);
        more(&counts.log_records, usage.log_records);
        more(&counts.log_bytes, usage.log_bytes);
    });
}

/// A future that gives with its value what was counted in its polls (USG-1).
pub struct Counted<F> {
    inner: F,
    usage: Usage,
}

impl<F> Counted<F> {
    /// Counts in the polls of this future.
    pub fn new(inner: F) -> Counted<F> {
        Counted { inner, usage: Usage::NONE }
    }
}

impl<F: Future + Unpin> Future for Counted<F> {
    type Output = (F::Output, Usage);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let before = of_thread();
        let polled = Pin::new(&mut self.inner).poll(cx);
        self.usage += of_thread() - before;
        polled.map(|value| (value, self.usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Waker;

    #[test]
    fn a_poll_has_what_its_thread_counts_and_not_what_comes_between_two_polls() {
        let mut polls = 0;
        let mut counted = Counted::new(poll_fn(|_| {
            polls += 1;
            (0..polls).for_each(|_| page_hit());
            if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
        }));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..2 {
            assert!(Pin::new(&mut counted).poll(&mut cx).is_pending());
            page_hit();
            log_record(40);
        }
        let Poll::Ready(((), usage)) = Pin::new(&mut counted).poll(&mut cx) else { panic!("USG-1: it ends") };
        assert_eq!(usage, Usage { pages_hit: 6, ..Usage::NONE }, "USG-1");
    }

    #[test]
    fn what_helpers_counted_is_added() {
        let before = of_thread();
        let of_helper = std::thread::spawn(|| {
            page_hit();
            page_read();
            temp_written(8192);
            of_thread()
        });
        add(of_helper.join().expect("the thread ends"));
        let usage = of_thread() - before;
        assert_eq!(usage, Usage { pages_hit: 1, pages_read: 1, temp_written: 8192, ..Usage::NONE }, "USG-2");
    }
}
