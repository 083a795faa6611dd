//! The line before a row: updates of one row that come while another one runs are done by that one, in its transaction.
//!
//! Source: flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010), over rows instead of data structures: who has the row does the
//! work of those who wait for it, while it is in the caches, and one commit record and one wake-up from the disk serve them all.
//!
//! # Life of an update
//! ```text
//!   come -> leads (nobody does)  -> row's lock, its own closure, then those in line in the order of arrival -> commit
//!                                -> the first who came since leads -> durable -> those who were served are woken
//!        -> in line              -> served | leads | goes alone
//! ```
//!
//! # Invariants
//! - LINE-1: at most one leads a line, and a line is there only while one does: who leads passes it on or takes it away, however it ends.
//! - LINE-2: an update is done exactly once: by the transaction that served it, if that commits, or by one of its own. Who is served waits
//!   until that commit is durable, and for nothing else.
//! - LINE-3: who stands in line has no transaction: no id, no snapshot, no lock. So no edge is missing in the graph of who waits for whom.
//! - LINE-4: behind one who cannot go on nobody stands for long: [`Lines::dissolve`] sends them to the row's own queue, where the views
//!   show them one by one, and nobody joins that line any more.
//! - LINE-5: those in line are served, and lead, in the order in which they came.
//! - LINE-6: of those who were served in one transaction each that runs, or is given up, wakes one more; so none stays asleep.
//! - LINE-7: nobody depends for long on a future that is not polled: if the leader or the predecessor of a waiter is not polled,
//!   upkeep ([`Lines::wake_durable`]) wakes the waiter in its place.
//!
//! # Latch order
//! A shard, then a seat. Closures, wakers and what drops them run under neither.
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
/// How long one transaction goes on serving others: so long others, who wait for the row in its queue, wait for those in line.
const SERVES_NS: u64 = 2_000_000;
/// How many of those it served a leader wakes itself; each of them wakes one more. So a runtime's short queue of its own never
/// runs over, behind which those who were woken first would stand last.
const WOKEN_FIRST: usize = 32;
/// How many closures run between two looks at the clock.
const LOOK_EACH: usize = 16;

/// What an update does; run again if the transaction in which it ran was undone.
pub(crate) trait Work: Send + 'static {
    /// What it changes.
    type Value: 'static;
    /// Changes the value and keeps the result.
    fn run(&mut self, value: &mut Self::Value);
}

/// A row, and the type by which it is changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    table: Oid,
    value: TypeId,
    key: Vec<u8>,
}

impl Place {
    /// Of a table's row, by its key as bytes.
    pub(crate) fn new<V: 'static>(table: Oid, key: Vec<u8>) -> Place {
        Place { table, value: TypeId::of::<V>(), key }
    }
}

/// What may be said to whoever stands in line.
trait Seated: Send + Sync {
    fn serve(&self, value: &mut dyn Any) -> Served;
    /// Whose turn it is to lead; `None` if he has gone.
    fn lead(&self) -> Option<Waker>;
    /// Whether he is there to hear of it.
    fn go(&self, told: Told) -> bool;
}

/// Those who were served in one transaction, which has ended; they are woken one by the other.
struct Batch {
    seats: Vec<Arc<dyn Seated>>,
    lsn: Lsn,
    next: AtomicUsize,
}

impl Batch {
    /// LINE-6: wakes the next one who is still there; false if there is none.
    fn wake_next(self: &Arc<Self>) -> bool {
        while let Some(seat) = self.seats.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if seat.go(Told::Committed(self.clone())) {
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

enum Told {
    /// The transaction in which it was served has.
    Committed(Arc<Batch>),
    Alone,
}

enum Stage {
    InLine,
    /// A transaction that has not committed yet has run it.
    Serving,
    Leads,
    Committed(Arc<Batch>),
    Alone,
    /// Its closure did.
    Panicked(Box<dyn Any + Send>),
    /// Whoever it was does not wait any more.
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
        let mut work = taken.expect("who stands in line has his closure");
        let value = value.downcast_mut::<W::Value>().expect("a place has one type of value");
        // A panic is the closure's: it goes on where that came from, and what it has left of the value is undone.
        let ran = catch_unwind(AssertUnwindSafe(|| work.run(value)));
        let mut state = self.state.lock();
        state.work = Some(work);
        match (ran, &state.stage) {
            (Ok(()), _) => return Served::Done,
            (Err(panic), Stage::Serving) => state.stage = Stage::Panicked(panic),
            // Nobody is there to hear of it.
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
        // Before his first poll there is nobody to wake: he will see it.
        Some(state.waker.take().unwrap_or_else(|| Waker::noop().clone()))
    }

    fn go(&self, told: Told) -> bool {
        let mut state = self.state.lock();
        match (&state.stage, told) {
            (Stage::InLine | Stage::Serving, Told::Alone) => state.stage = Stage::Alone,
            (Stage::Serving, Told::Committed(batch)) => state.stage = Stage::Committed(batch),
            // He has to hear of it, and what he hears is the panic.
            (Stage::Panicked(_), Told::Alone) => {}
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
    /// LINE-4: nobody may join.
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
    /// Those whose members may not all have been woken yet.
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

/// What an update finds when it comes.
pub(crate) enum Came<'l, W: Work> {
    /// Nobody: it leads.
    Leads(Lead<'l>, W),
    /// Somebody who does it.
    InLine(Ticket<'l, W>),
    /// Somebody who cannot go on: LINE-4.
    Alone(W),
}

impl Lines {
    fn shard(&self, place: &Place) -> &Shard {
        &self.shards[self.hasher.hash_one(place) as usize % SHARDS]
    }

    /// An update of a row comes.
    pub(crate) fn come<W: Work>(&self, place: Place, work: W) -> Came<'_, W> {
        let mut shard = self.shard(&place).lock();
        let Some(line) = shard.get_mut(&place) else {
            shard.insert(place.clone(), Line::new());
            return Came::Leads(Lead::new(self, place), work);
        };
        if line.dissolved {
            return Came::Alone(work);
        }
        let state = State { stage: Stage::InLine, waker: None, work: Some(work) };
        let seat = Arc::new(Seat { state: Mutex::new("engine/line_seat", state) });
        line.waiting.push_back(seat.clone());
        drop(shard);
        Came::InLine(Ticket { lines: self, place, seat })
    }

    /// LINE-1: the first in line leads now, or the line goes.
    fn pass_on(&self, place: &Place) {
        let mut shard = self.shard(place).lock();
        let Some(line) = shard.get_mut(place) else { return };
        line.led_since_ns = now_ns();
        let next = std::iter::from_fn(|| line.waiting.pop_front()).find_map(|first| first.lead());
        if next.is_none() {
            shard.remove(place);
        }
        drop(shard);
        // A waker is somebody else's code.
        next.into_iter().for_each(Waker::wake);
    }

    /// LINE-4: takes apart the lines whose leaders have not passed them on for so long.
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
                seat.go(Told::Alone);
            }
        }
    }

    /// LINE-7: wakes those who were served in transactions that are durable.
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

    /// How many updates were done by others.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

/// A closure spoilt the transaction in which it was run for another one: by a panic, or by a value that does not fit.
#[derive(Debug)]
pub(crate) struct Spoilt;

/// The right to do the work of those in line; passed on when it goes.
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

    /// Runs what those in line have come for on a value, after which `fits` must hold each time.
    ///
    /// # Errors
    /// The transaction can only be undone: [`Lead::undone`].
    pub(crate) fn serve<V: 'static>(&mut self, value: &mut V, fits: impl Fn(&V) -> bool) -> Result<(), Spoilt> {
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
                    // All of them go alone, the one that panicked to its panic.
                    self.batch.extend(came);
                    return Err(Spoilt);
                }
            }
            if now_ns() >= until_ns {
                return Ok(());
            }
        }
    }

    /// The transaction is undone: who was served in it goes alone. Returns whether somebody's closure is the reason; its leader then
    /// begins anew, and does no more for others.
    pub(crate) fn undone(&mut self) -> bool {
        let spoilt = self.spoilt && !self.batch.is_empty();
        for seat in self.batch.drain(..) {
            seat.go(Told::Alone);
        }
        spoilt
    }

    /// The transaction has committed: others may lead while this one waits until it is durable.
    pub(crate) fn committed(&mut self, lsn: Lsn) {
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
        // LINE-2: whether the commit is durable by now each of them looks itself.
        if let Some(batch) = &self.committed {
            let _ = (0..WOKEN_FIRST).all(|_| batch.wake_next());
        }
        self.undone();
        self.pass_on();
    }
}

/// A place in line; given up when it goes.
pub(crate) struct Ticket<'l, W: Work> {
    lines: &'l Lines,
    place: Place,
    seat: Arc<Seat<W>>,
}

/// What becomes of an update in line.
pub(crate) enum Turn<'l, W> {
    /// It was done, in the transaction of this commit, which may not be durable yet.
    Served(W, Lsn),
    /// It is its turn to lead.
    Leads(Lead<'l>, W),
    /// It does what it came for by itself.
    Alone(W),
    /// Its closure panicked.
    Panicked(Box<dyn Any + Send>),
}

impl<'l, W: Work> Ticket<'l, W> {
    /// Waits for what becomes of it; once.
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
