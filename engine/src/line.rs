//! The line of a row: while one update of the row runs, further updates of that row wait in its line, and the running update makes their
//! changes in its own transaction.
//!
//! Source: flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010), applied to rows instead of data structures. The update that holds the
//! row, the leader, runs the closures of the waiting updates while the row is in the processor's caches. One commit record and one sync of the
//! log serve all of them.
//!
//! # Life of an update
//! ```text
//!   arrives -> leads (no other leads)  -> row's lock, own closure, then the waiters' closures in the order of arrival -> commit
//!                                     -> the first waiter that arrived since leads -> durable -> the served waiters are woken
//!           -> in line                -> served | leads | goes alone
//! ```
//!
//! # Invariants
//! - LINE-1: a line has at most one leader and exists only while it has one. The leader passes the line on or removes it, however the leader
//!   ends.
//! - LINE-2: an update is made exactly once: by the transaction that served it, if that transaction commits, or else by a transaction of its
//!   own. A served update waits until that commit is durable, and for nothing else.
//! - LINE-3: an update in line has no transaction: no id, no snapshot, no lock. So the waits-for graph lacks no edge.
//! - LINE-4: a line that has had the same leader for a tenth of a second is dissolved ([`Lines::dissolve`]): its waiting updates go to the
//!   row's lock queue, where the views show each of them, and no further update joins that line.
//! - LINE-5: the updates in line are served, and become leader, in the order in which they arrived.
//! - LINE-6: each update that is woken after it was served, or is dropped after that, wakes the next one that the same transaction served. So
//!   none stays asleep.
//! - LINE-7: no update depends for long on a future that is not polled: if the leader or a predecessor is not polled, upkeep
//!   ([`Lines::wake_durable`]) wakes the waiters that the leader or the predecessor should have woken.
//!
//! # Latch order
//! The mutex of a shard of lines, then that of a seat (the state of one waiting update). Closures run, wakers are called and values are
//! dropped with neither held.
//!
//! # Not here
//! Transactions, and what an update does to a row: the embedded library.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use clearway_base::sync::Mutex;
use clearway_base::waits::now_ns;
use clearway_storage::ids::Lsn;

use crate::catalog::Oid;

const SHARDS: usize = 16;
/// The longest time for which one transaction serves its line. Transactions in the row's lock queue wait that much longer.
const SERVES_NS: u64 = 2_000_000;
/// How many served updates the leader wakes itself; each of them wakes one more. More at once would overflow the runtime's short local run
/// queue, and the updates that were woken first would then run last.
const WOKEN_FIRST: usize = 32;
/// How many closures run between two readings of the clock.
const LOOK_EACH: usize = 16;

/// The work of an update. It runs again if the transaction in which it ran was undone.
pub(crate) trait Work: Send + 'static {
    /// The type of the value that it changes.
    type Value: 'static;
    /// Changes the value and keeps the result.
    fn run(&mut self, value: &mut Self::Value);
}

/// A row, and the type of the value as which updates change it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    table: Oid,
    value: TypeId,
    key: Vec<u8>,
}

impl Place {
    /// The row of a table, by the bytes of its key.
    pub(crate) fn new<V: 'static>(table: Oid, key: Vec<u8>) -> Place {
        Place { table, value: TypeId::of::<V>(), key }
    }
}

/// The leader's side of a seat, without the type of its work.
trait Seated: Send + Sync {
    fn serve(&self, value: &mut dyn Any) -> Served;
    /// Makes the seat's update the leader and returns its waker; `None` if the update no longer waits.
    fn lead(&self) -> Option<Waker>;
    /// Tells the update its outcome and wakes it; false if it no longer waits for that outcome.
    fn finish(&self, told: LineOutcome) -> bool;
}

/// The updates that one committed transaction served; each one that is woken wakes the next.
struct Batch {
    seats: Vec<Arc<dyn Seated>>,
    lsn: Lsn,
    next: AtomicUsize,
}

impl Batch {
    /// LINE-6: wakes the next update that still waits; false if none is left.
    fn wake_next(self: &Arc<Self>) -> bool {
        while let Some(seat) = self.seats.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if seat.finish(LineOutcome::Committed(self.clone())) {
                return true;
            }
        }
        false
    }
}

enum Served {
    Done,
    Gone,
    Panicked,
}

enum LineOutcome {
    /// The transaction that served the update has committed.
    Committed(Arc<Batch>),
    Alone,
}

enum Stage {
    InLine,
    /// A transaction that has not committed yet has run the closure.
    Serving,
    Leads,
    Committed(Arc<Batch>),
    Alone,
    /// The closure panicked.
    Panicked(Box<dyn Any + Send>),
    /// The update does not wait any more.
    Gone,
}

struct Seat<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    stage: Stage,
    waker: Option<Waker>,
    work: Option<W>,
}

impl<W: Work> Seated for Seat<W> {
    fn serve(&self, value: &mut dyn Any) -> Served {
        let taken = {
            let mut state = self.state.lock();
            if !matches!(state.stage, Stage::InLine) {
                return Served::Gone;
            }
            state.stage = Stage::Serving;
            state.work.take()
        };
        let mut work = taken.expect("an update in line has its closure");
        let value = value.downcast_mut::<W::Value>().expect("a place has one type of value");
        // The panic belongs to the closure: it continues in the future that brought the closure. What the closure left of the value is undone.
        let ran = catch_unwind(AssertUnwindSafe(|| work.run(value)));
        let mut state = self.state.lock();
        state.work = Some(work);
        match (ran, &state.stage) {
            (Ok(()), _) => return Served::Done,
            (Err(panic), Stage::Serving) => state.stage = Stage::Panicked(panic),
            // The update does not wait any more: there is no future in which to continue the panic.
            (Err(_), _) => {}
        }
        Served::Panicked
    }

    fn lead(&self) -> Option<Waker> {
        let mut state = self.state.lock();
        if !matches!(state.stage, Stage::InLine) {
            return None;
        }
        state.stage = Stage::Leads;
        // Before its first poll the update has left no waker; its first poll finds the stage.
        Some(state.waker.take().unwrap_or_else(|| Waker::noop().clone()))
    }

    fn finish(&self, told: LineOutcome) -> bool {
        let mut state = self.state.lock();
        match (&state.stage, told) {
            (Stage::InLine | Stage::Serving, LineOutcome::Alone) => state.stage = Stage::Alone,
            (Stage::Serving, LineOutcome::Committed(batch)) => state.stage = Stage::Committed(batch),
            // The update is woken all the same, to find the panic.
            (Stage::Panicked(_), LineOutcome::Alone) => {}
            _ => return false,
        }
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }
}

struct Line {
    led_since_ns: u64,
    /// LINE-4: no update may join.
    dissolved: bool,
    waiting: VecDeque<Arc<dyn Seated>>,
}

impl Line {
    fn new() -> Line {
        Line { led_since_ns: now_ns(), dissolved: false, waiting: VecDeque::new() }
    }
}

type Shard = Mutex<HashMap<Place, Line>>;

/// The lines before rows.
pub(crate) struct Lines {
    shards: [Shard; SHARDS],
    hasher: RandomState,
    /// Batches whose updates may not all have been woken yet.
    batches: Mutex<Vec<Weak<Batch>>>,
    served: AtomicU64,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines {
            shards: std::array::from_fn(|_| Mutex::new("engine/lines", HashMap::new())),
            hasher: RandomState::new(),
            batches: Mutex::new("engine/line_batches", Vec::new()),
            served: AtomicU64::new(0),
        }
    }
}

/// What an arriving update has to do.
pub(crate) enum Arrival<'l, W: Work> {
    /// No other update leads this line: it leads.
    Leads(Lead<'l>, W),
    /// Another update leads: it waits in line.
    InLine(Ticket<'l, W>),
    /// The leader of the line cannot go on (LINE-4): it uses a transaction of its own.
    Alone(W),
}

impl Lines {
    fn shard(&self, place: &Place) -> &Shard {
        &self.shards[self.hasher.hash_one(place) as usize % SHARDS]
    }

    /// An update of a row arrives.
    pub(crate) fn come<W: Work>(&self, place: Place, work: W) -> Arrival<'_, W> {
        let mut shard = self.shard(&place).lock();
        let Some(line) = shard.get_mut(&place) else {
            shard.insert(place.clone(), Line::new());
            return Arrival::Leads(Lead::new(self, place), work);
        };
        if line.dissolved {
            return Arrival::Alone(work);
        }
        let state = State { stage: Stage::InLine, waker: None, work: Some(work) };
        let seat = Arc::new(Seat { state: Mutex::new("engine/line_seat", state) });
        line.waiting.push_back(seat.clone());
        drop(shard);
        Arrival::InLine(Ticket { lines: self, place, seat })
    }

    /// LINE-1: makes the first waiting update the leader, or removes the line.
    fn pass_on(&self, place: &Place) {
        let mut shard = self.shard(place).lock();
        let Some(line) = shard.get_mut(place) else { return };
        line.led_since_ns = now_ns();
        let next = std::iter::from_fn(|| line.waiting.pop_front()).find_map(|first| first.lead());
        if next.is_none() {
            shard.remove(place);
        }
        drop(shard);
        // A waker runs foreign code: the shard's latch has been released.
        next.into_iter().for_each(Waker::wake);
    }

    /// LINE-4: dissolves the lines that have had the same leader for `after_ns`.
    pub(crate) fn dissolve(&self, after_ns: u64) {
        let now_ns = now_ns();
        for shard in &self.shards {
            let mut left = Vec::new();
            for line in shard.lock().values_mut() {
                if now_ns.saturating_sub(line.led_since_ns) >= after_ns {
                    line.dissolved = true;
                    left.extend(line.waiting.drain(..));
                }
            }
            for seat in left {
                seat.finish(LineOutcome::Alone);
            }
        }
    }

    /// LINE-7: wakes the updates whose serving transactions are durable.
    pub(crate) fn wake_durable(&self, durable: Lsn) {
        let mut batches = std::mem::take(&mut *self.batches.lock());
        batches.retain(|batch| match batch.upgrade() {
            Some(batch) if batch.lsn <= durable => {
                while batch.wake_next() {}
                false
            }
            left => left.is_some(),
        });
        self.batches.lock().append(&mut batches);
    }

    /// How many updates were done in the transaction of another update.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

/// A served closure spoilt the leader's transaction: it panicked, or left a value that does not fit.
#[derive(Debug)]
pub(crate) struct TransactionSpoilt;

/// The right to lead a line; dropping it passes the line on.
pub(crate) struct Lead<'l> {
    lines: &'l Lines,
    place: Place,
    batch: Vec<Arc<dyn Seated>>,
    committed: Option<Arc<Batch>>,
    spoilt: bool,
    passed: bool,
}

impl<'l> Lead<'l> {
    fn new(lines: &'l Lines, place: Place) -> Lead<'l> {
        Lead { lines, place, batch: Vec::new(), committed: None, spoilt: false, passed: false }
    }

    /// Runs the closures of the waiting updates on a value. After each of them `fits` must hold.
    ///
    /// # Errors
    /// `Spoilt`: the transaction can only be undone, see [`Lead::undone`].
    pub(crate) fn serve<V: 'static>(
        &mut self,
        value: &mut V,
        fits: impl Fn(&V) -> bool,
    ) -> Result<(), TransactionSpoilt> {
        if self.spoilt {
            return Ok(());
        }
        let until_ns = now_ns() + SERVES_NS;
        loop {
            let mut came: VecDeque<_> = {
                let mut shard = self.lines.shard(&self.place).lock();
                let Some(line) = shard.get_mut(&self.place) else { return Ok(()) };
                line.waiting.drain(..LOOK_EACH.min(line.waiting.len())).collect()
            };
            if came.is_empty() {
                return Ok(());
            }
            while let Some(seat) = came.pop_front() {
                let served = seat.serve(value);
                if matches!(served, Served::Gone) {
                    continue;
                }
                self.batch.push(seat);
                if matches!(served, Served::Panicked) || !fits(value) {
                    self.spoilt = true;
                    // All of them go alone; the update whose closure panicked finds its panic instead.
                    self.batch.extend(came);
                    return Err(TransactionSpoilt);
                }
            }
            if now_ns() >= until_ns {
                return Ok(());
            }
        }
    }

    /// The transaction is undone: the updates that it served go alone. Returns whether a served closure is the reason; the leader then begins
    /// anew and serves no further updates.
    pub(crate) fn undone(&mut self) -> bool {
        let spoilt = self.spoilt && !self.batch.is_empty();
        for seat in self.batch.drain(..) {
            seat.finish(LineOutcome::Alone);
        }
        spoilt
    }

    /// The transaction has committed: the next update may lead while this one waits until the commit is durable.
    pub(crate) fn committed(&mut self, lsn: Lsn) {
        assert!(self.committed.is_none(), "a leader commits once");
        assert!(!self.spoilt || self.batch.is_empty(), "the updates of a batch that failed are not committed");
        let seats = std::mem::take(&mut self.batch);
        if !seats.is_empty() {
            self.lines.served.fetch_add(seats.len() as u64, Ordering::Relaxed);
            let batch = Arc::new(Batch { seats, lsn, next: AtomicUsize::new(0) });
            self.lines.batches.lock().push(Arc::downgrade(&batch));
            self.committed = Some(batch);
        }
        self.pass_on();
    }

    fn pass_on(&mut self) {
        if !std::mem::replace(&mut self.passed, true) {
            self.lines.pass_on(&self.place);
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        // LINE-2: each woken update checks for itself whether the commit is durable.
        if let Some(batch) = &self.committed {
            let _ = (0..WOKEN_FIRST).all(|_| batch.wake_next());
        }
        self.undone();
        self.pass_on();
    }
}

/// A place in line; dropping it gives the place up.
pub(crate) struct Ticket<'l, W: Work> {
    lines: &'l Lines,
    place: Place,
    seat: Arc<Seat<W>>,
}

/// The outcome of an update that waited in line.
pub(crate) enum Turn<'l, W> {
    /// Its closure ran in the transaction of this commit, which may not be durable yet.
    Served(W, Lsn),
    /// It leads the line now.
    Leads(Lead<'l>, W),
    /// It has to use a transaction of its own.
    Alone(W),
    /// Its closure panicked.
    Panicked(Box<dyn Any + Send>),
}

impl<'l, W: Work> Ticket<'l, W> {
    /// Waits for the outcome; may be called once.
    pub(crate) async fn turn(&mut self) -> Turn<'l, W> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Turn<'l, W>> {
        let mut state = self.seat.state.lock();
        if matches!(state.stage, Stage::InLine | Stage::Serving) {
            let renewed = !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            let old = if renewed { state.waker.replace(cx.waker().clone()) } else { None };
            drop(state);
            drop(old);
            return Poll::Pending;
        }
        let stage = std::mem::replace(&mut state.stage, Stage::Gone);
        let work = state.work.take().expect("asked once");
        drop(state);
        Poll::Ready(match stage {
            Stage::Leads => Turn::Leads(Lead::new(self.lines, self.place.clone()), work),
            Stage::Committed(batch) => {
                batch.wake_next();
                Turn::Served(work, batch.lsn)
            }
            Stage::Panicked(panic) => Turn::Panicked(panic),
            _ => Turn::Alone(work),
        })
    }
}

impl<W: Work> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        let (stage, _work, _waker) = {
            let mut state = self.seat.state.lock();
            (std::mem::replace(&mut state.stage, Stage::Gone), state.work.take(), state.waker.take())
        };
        match stage {
            Stage::Leads => self.lines.pass_on(&self.place),
            Stage::Committed(batch) => drop(batch.wake_next()),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
