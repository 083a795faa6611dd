//! Spin, then park: the one slow path of every latch and mutex, and the table that lists the parked threads.
//!
//! # Structure
//! A latch or mutex is a word with a bit PARKED. The threads that parked for it are a queue in a bucket of a global table,
//! found by the word's address. The design is that of WebKit's and parking_lot's parking lots; it is written
//! here because the books must see each spin and park, and because loom must see the code.
//!
//! # Life of a slow acquisition
//! spin with growing pauses, trying -> under the bucket's mutex: try once more, else set PARKED and enter the queue ->
//! park -> woken -> spin and try again.
//!
//! # Invariants
//! - PARK-1: PARKED is set and cleared only under the bucket's mutex, and it is set while a thread is in the queue. So a thread
//!   that frees the word and sees PARKED finds the queue; a thread that does not see PARKED need not wake any.
//! - PARK-2: a thread that frees the word with PARKED set wakes the head of the queue. The woken thread takes the word, or
//!   finds it taken by a thread that will free it in turn. So the word is never free while all threads that want it are parked.
//!
//! # Not here
//! Fairness: a running thread may overtake one that is being woken. Queues of tasks (`queue`) are first come, first
//! served.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::class::Class;
use super::shim::{self, Signal, TableMutex};
use crate::waits::{self, Object, Wait, WaitEvent};

/// What a thread stands in line for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Shared,
    Exclusive,
}

/// The outcome of an attempt under the bucket's mutex.
pub(super) enum Attempt<R> {
    Got(R),
    /// PARKED is set: stand in line.
    Announced,
}

struct Parked {
    key: usize,
    want: Want,
    signal: Arc<Signal>,
}

type Line = VecDeque<Parked>;

#[cfg(not(loom))]
const BUCKETS: usize = 256;

/// Each bucket on a cache line of its own.
#[cfg(not(loom))]
#[repr(align(64))]
struct Bucket(TableMutex<Line>);

#[cfg(not(loom))]
static TABLE: [Bucket; BUCKETS] = [const { Bucket(TableMutex::new(VecDeque::new())) }; BUCKETS];

#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: TableMutex<Line> = TableMutex::new(VecDeque::new());
}

/// Holds the bucket's mutex, for a few loads and stores: the one place where a thread may wait outside the books.
fn with_line<R>(key: usize, f: impl FnOnce(&mut Line) -> R) -> R {
    #[cfg(not(loom))]
    let bucket = &TABLE[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) % BUCKETS].0;
    #[cfg(loom)]
    let bucket = {
        let _ = key; // one bucket: the worst case
        &*TABLE
    };
    let mut line = bucket.lock().unwrap_or_else(PoisonError::into_inner);
    f(&mut line)
}

/// Pauses of a spin: 1, 2, 4 ... 64, then parks. About 2 us, less than parking and waking costs.
#[cfg(not(loom))]
const SPIN_ROUNDS: u32 = 7;
#[cfg(loom)]
const SPIN_ROUNDS: u32 = 1;

/// Takes a word that was not free: spins, then parks, and reports both.
///
/// `attempt` tries to take the word; its flag says that this thread was woken from the line. `announce` does the same
/// under the bucket's mutex and otherwise sets PARKED.
#[cold]
pub(super) fn contend<R>(
    class: &'static Class,
    event: WaitEvent,
    key: usize,
    want: Want,
    mut attempt: impl FnMut(bool) -> Option<R>,
    mut announce: impl FnMut(bool) -> Attempt<R>,
) -> R {
    class.begin_slow();
    let mut report = Report::begin(class, event, key);
    let mut woken = false;
    loop {
        for round in 0..SPIN_ROUNDS {
            for _ in 0..1u32 << round {
                shim::spin();
            }
            if let Some(got) = attempt(woken) {
                return got;
            }
        }
        report.parks();
        let signal = Arc::new(Signal::new());
        let got = with_line(key, |line| match announce(woken) {
            Attempt::Got(got) => Some(got),
            Attempt::Announced => {
                line.push_back(Parked { key, want, signal: Arc::clone(&signal) });
                None
            }
        });
        if let Some(got) = got {
            return got;
        }
        signal.wait();
        woken = true;
        report.woken();
    }
}

/// Wakes the head of a word's line: all waiters that want it shared up to the first that wants it exclusively, or that one alone.
/// `clear_parked` runs under the bucket's mutex when no waiter is left (PARK-1).
#[cold]
pub(super) fn wake(key: usize, clear_parked: impl FnOnce()) {
    let mut woken: Vec<Arc<Signal>> = Vec::new();
    with_line(key, |line| {
        while let Some(at) = line.iter().position(|parked| parked.key == key) {
            if line[at].want == Want::Exclusive && !woken.is_empty() {
                return; // PARKED stays
            }
            let Some(parked) = line.remove(at) else { break };
            woken.push(parked.signal);
            if parked.want == Want::Exclusive && line.iter().any(|parked| parked.key == key) {
                return;
            }
        }
        clear_parked();
    });
    for signal in woken {
        signal.set();
    }
}

/// Stands in the line of a condition.
pub(super) fn enlist(key: usize) -> Arc<Signal> {
    let signal = Arc::new(Signal::new());
    with_line(key, |line| line.push_back(Parked { key, want: Want::Exclusive, signal: Arc::clone(&signal) }));
    signal
}

/// Leaves the line of a condition; false if another thread has taken this thread off it to wake it.
pub(super) fn leave(key: usize, signal: &Arc<Signal>) -> bool {
    with_line(key, |line| {
        let at = line.iter().position(|parked| Arc::ptr_eq(&parked.signal, signal));
        at.and_then(|at| line.remove(at)).is_some()
    })
}

/// Wakes up to `limit` threads that stand in the line of a condition; returns how many.
pub(super) fn notify(key: usize, limit: usize) -> usize {
    let mut woken: Vec<Arc<Signal>> = Vec::new();
    with_line(key, |line| {
        while woken.len() < limit {
            let Some(at) = line.iter().position(|parked| parked.key == key) else {
                break;
            };
            let Some(parked) = line.remove(at) else { break };
            woken.push(parked.signal);
        }
    });
    for signal in &woken {
        signal.set();
    }
    woken.len()
}

/// Reports a slow acquisition to the class and to the books when it ends. After the first park all time counts as
/// parked: the short spins after a wake-up are within the books' blur.
struct Report {
    class: &'static Class,
    wait: Option<Wait>,
    began_ns: u64,
    parked_ns: u64,
    parks: u64,
}

impl Report {
    fn begin(class: &'static Class, event: WaitEvent, key: usize) -> Self {
        if cfg!(loom) {
            return Self { class, wait: None, began_ns: 0, parked_ns: 0, parks: 0 };
        }
        let object = Object::new(std::ptr::from_ref(class) as usize as u64, key as u64);
        let mut wait = Wait::begin(event, object);
        let holder = class.holder();
        if holder != 0 {
            wait = wait.behind(holder);
        }
        Self { class, wait: Some(wait), began_ns: waits::now_ns(), parked_ns: 0, parks: 0 }
    }

    fn parks(&mut self) {
        if self.parks == 0
            && let Some(wait) = &mut self.wait
        {
            self.parked_ns = waits::now_ns();
            wait.spun();
        }
    }

    fn woken(&mut self) {
        self.parks += 1;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let Some(mut wait) = self.wait.take() else {
            self.class.end_slow(self.parks, 0, 0);
            return;
        };
        if self.parked_ns == 0 {
            wait.spun();
        }
        drop(wait);
        let ended_ns = waits::now_ns();
        let parked_ns = if self.parked_ns == 0 { ended_ns } else { self.parked_ns };
        let (spin_ns, park_ns) = (parked_ns.saturating_sub(self.began_ns), ended_ns.saturating_sub(parked_ns));
        self.class.end_slow(self.parks, spin_ns, park_ns);
    }
}
