//! A session's block, which says what the session waits for now, and its totals; any thread may read both at any time.
//!
//! # Life of a wait in the block
//! idle -> `begin` stores since, object and behind, then the event with a new generation -> `end` stores idle with a new
//! generation. A reader reads the generation before and after the rest and tries again where they differ.
//!
//! # Invariants
//! - SES-1: the generation is odd while the block shows a wait, and no two waits have the same one. So a reader that reads the same odd
//!   generation before and after the other fields has read the fields of one wait.
//! - SES-2: the block has one writer at a time: the thread that polls the session's futures.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::event::WaitEvent;
use super::processor::{Measure, SessionTime};
use super::totals::{add_single_writer, raise_single_writer};
use super::used::{Counting, Kept};

/// What a wait is for, in two words that the event explains (tree and key hash, file and block, lock class and
/// instance); zeros where there is nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The kind or the container: a tree, a file, a lock class.
    pub space: u64,
    /// The thing itself: a key's hash, a block, an address.
    pub item: u64,
}

impl Object {
    /// Nothing to say.
    pub const NONE: Object = Object { space: 0, item: 0 };

    /// An object of two words.
    pub const fn new(space: u64, item: u64) -> Self {
        Self { space, item }
    }
}

/// What a session waits for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentWait {
    /// The event.
    pub event: WaitEvent,
    /// When the wait began, by `clock::now_ns`; 0 when its instrument is not timed.
    pub since_ns: u64,
    /// What it is for.
    pub object: Object,
    /// The id of the session that it waits behind; 0 when unknown or none.
    pub behind: u64,
}

/// The wait that a session is in.
#[repr(C)]
#[derive(Debug, Default)]
struct SessionBlock {
    /// Generation in the upper 56 bits, event index in the lower 8; the lowest bit of the generation says that a wait is
    /// shown.
    state: AtomicU64,
    since_ns: AtomicU64,
    space: AtomicU64,
    item: AtomicU64,
    behind: AtomicU64,
}

const SHOWN: u64 = 1 << 8;

impl SessionBlock {
    #[inline]
    fn begin(&self, wait: &CurrentWait) {
        let generation = self.end();
        // A reader that sees a field of this wait must also see that the one before it had ended.
        fence(Release);
        self.since_ns.store(wait.since_ns, Relaxed);
        self.space.store(wait.object.space, Relaxed);
        self.item.store(wait.object.item, Relaxed);
        self.behind.store(wait.behind, Relaxed);
        self.state.store(generation | SHOWN | wait.event.index() as u64, Release);
    }

    /// Returns the state that says so, which has no event.
    #[inline]
    fn end(&self) -> u64 {
        let mut state = self.state.load(Relaxed);
        if state & SHOWN != 0 {
            state = ((state >> 8) + 1) << 8;
            self.state.store(state, Relaxed);
        }
        state
    }

    #[inline]
    fn end_of(&self, event: WaitEvent) {
        let state = self.state.load(Relaxed);
        if state & (SHOWN | 0xff) == SHOWN | event.index() as u64 {
            self.state.store(((state >> 8) + 1) << 8, Relaxed);
        }
    }

    /// The event that its writer shows (SES-2: to be called by the writer).
    #[inline]
    fn shown(&self) -> Option<WaitEvent> {
        let state = self.state.load(Relaxed);
        if state & SHOWN == 0 { None } else { WaitEvent::from_index((state & 0xff) as usize) }
    }

    fn read(&self) -> Option<CurrentWait> {
        loop {
            let state = self.state.load(Acquire);
            if state & SHOWN == 0 {
                return None;
            }
            let wait = self.fields(state);
            fence(Acquire);
            if self.state.load(Relaxed) == state {
                return wait; // SES-1
            }
            std::hint::spin_loop();
        }
    }

    fn fields(&self, state: u64) -> Option<CurrentWait> {
        Some(CurrentWait {
            event: WaitEvent::from_index((state & 0xff) as usize)?,
            since_ns: self.since_ns.load(Relaxed),
            object: Object::new(self.space.load(Relaxed), self.item.load(Relaxed)),
            behind: self.behind.load(Relaxed),
        })
    }
}

/// What one session's waits of one event add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// How many waits there were.
    pub count: u64,
    /// How long they were together.
    pub total_ns: u64,
    /// How long the longest was.
    pub max_ns: u64,
}

#[derive(Default)]
struct SessionCell {
    count: AtomicU64,
    total_ns: AtomicU64,
    max_ns: AtomicU64,
    /// What `count` and `total_ns` were when the event was last given to a statement.
    taken: AtomicU64,
    taken_ns: AtomicU64,
}

impl SessionCell {
    /// Waits since then: how often, how long.
    #[inline]
    fn untaken(&self) -> (u64, u64) {
        let count = self.count.load(Relaxed).wrapping_sub(self.taken.load(Relaxed));
        (count, self.total_ns.load(Relaxed).wrapping_sub(self.taken_ns.load(Relaxed)))
    }

    #[inline]
    fn take(&self) {
        self.taken.store(self.count.load(Relaxed), Relaxed);
        self.taken_ns.store(self.total_ns.load(Relaxed), Relaxed);
    }
}

/// By how much a sum has grown since it was last looked at by this function, which notes in `last` what it is now.
#[inline]
fn since_last(sum: &AtomicU64, last: &AtomicU64) -> u64 {
    let (now, before) = (sum.load(Relaxed), last.load(Relaxed));
    last.store(now, Relaxed);
    now.wrapping_sub(before)
}

/// A session's waits: the one it is in and the totals of those before. A session is a client's connection, an embedded
/// caller, or a background thread.
///
/// What each poll of a session touches stands in three cache lines. Of many sessions that run in turns each line that a short statement touches is
/// a miss: the totals and the statement's share in places of their own were seven more (docs/measured/waits-cost.md).
#[repr(C, align(64))]
pub struct SessionStats {
    block: SessionBlock,
    /// Which events were waited for since the last `take_others`; not those that have a cell in the lines below.
    touched: [AtomicU64; 2],
    measured: AtomicU8,
    pub(super) counting: Counting,
    second: SecondLine,
    third: ThirdLine,
    name: Box<str>,
    cells: Box<[SessionCell]>,
    pub(super) kept: Kept,
}

#[repr(C, align(64))]
#[derive(Default)]
struct SecondLine {
    /// While its work was under way; computing. See `processor`.
    elapsed_ns: AtomicU64,
    cpu_ns: AtomicU64,
    /// When the step of its work that runs began, if the time since then is all of it; [`ASKS`]: there is more to it (`processor::Step`). 0: none runs.
    step_ns: AtomicU64,
    client_read: SessionCell,
}

/// No moment: see `SecondLine::step_ns`.
const ASKS: u64 = u64::MAX;

#[repr(C, align(64))]
#[derive(Default)]
struct ThirdLine {
    /// When its task was woken and has not been polled since; 0: it has.
    ready_ns: AtomicU64,
    id: u64,
    run_queue: SessionCell,
}

const _: () = assert!(std::mem::offset_of!(SessionStats, name) == 3 * 64, "three cache lines");
const _: () = assert!(WaitEvent::COUNT <= 128, "two words have a bit for each event");

impl std::fmt::Debug for SessionStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStats").field("id", &self.id()).field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Registry {
    last_id: u64,
    live: BTreeMap<u64, Weak<SessionStats>>,
    /// The time of sessions that have ended.
    ended: SessionTime,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { last_id: 0, live: BTreeMap::new(), ended: SessionTime::NONE });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionStats {
    /// Begins a session and lists it until the last reference goes. Ids are given out in order and never again; they are
    /// what the views show as pid.
    pub fn new(name: &str) -> Arc<Self> {
        let cells = (0..WaitEvent::COUNT).map(|_| SessionCell::default()).collect();
        let mut registry = registry();
        registry.last_id += 1;
        let id = registry.last_id;
        let session = Arc::new(Self {
            block: SessionBlock::default(),
            touched: [AtomicU64::new(0), AtomicU64::new(0)],
            measured: AtomicU8::new(0),
            counting: Counting::default(),
            second: SecondLine::default(),
            third: ThirdLine { id, ..ThirdLine::default() },
            name: name.into(),
            cells,
            kept: Kept::default(),
        });
        registry.live.insert(id, Arc::downgrade(&session));
        session
    }

    /// The session's id; never 0.
    #[inline]
    pub fn id(&self) -> u64 {
        self.third.id
    }

    #[inline]
    fn cell(&self, event: WaitEvent) -> &SessionCell {
        match event {
            WaitEvent::ClientRead => &self.second.client_read,
            WaitEvent::RunQueue => &self.third.run_queue,
            _ => &self.cells[event.index()],
        }
    }

    /// The name that it was begun with: a background thread's name, or what kind of client it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the session waits for now; None while it runs or stands idle outside every wait.
    #[inline]
    pub fn current(&self) -> Option<CurrentWait> {
        self.block.read()
    }

    /// The same, with the run queue: a task that was woken and does not run yet waits for a processor.
    pub fn current_or_ready(&self) -> Option<CurrentWait> {
        match self.third.ready_ns.load(Relaxed) {
            0 => self.current(),
            since_ns => Some(CurrentWait { event: WaitEvent::RunQueue, since_ns, object: Object::NONE, behind: 0 }),
        }
    }

    /// Its task was woken.
    pub(super) fn woken(&self, at_ns: u64) {
        self.third.ready_ns.store(at_ns, Relaxed);
    }

    /// Its task is polled.
    pub(super) fn polled(&self) {
        if self.third.ready_ns.load(Relaxed) != 0 {
            self.third.ready_ns.store(0, Relaxed);
        }
    }

    /// Whether there was a wait of any other event than ClientRead and RunQueue since the last [`SessionStats::take_others`].
    #[inline]
    pub fn has_others(&self) -> bool {
        self.touched[0].load(Relaxed) | self.touched[1].load(Relaxed) != 0
    }

    /// How long the session has waited for its client in all, in nanoseconds.
    #[inline]
    pub fn client_ns(&self) -> u64 {
        self.second.client_read.total_ns.load(Relaxed)
    }

    /// The waits in the run queue since the last call, how often and how long, in nanoseconds. To be called by the thread that polls the session's
    /// futures (SES-2).
    #[inline]
    pub fn take_queued(&self) -> (u64, u64) {
        let queue = &self.third.run_queue;
        (since_last(&queue.count, &queue.taken), since_last(&queue.total_ns, &queue.taken_ns))
    }

    /// Gives each other event that was waited for since the last call, with how often and how long, in nanoseconds. To be called by the thread
    /// that polls the session's futures (SES-2).
    #[inline]
    pub fn take_others(&self, mut give: impl FnMut(WaitEvent, u64, u64)) {
        for (word, touched) in self.touched.iter().enumerate() {
            let mut bits = touched.load(Relaxed);
            if bits == 0 {
                continue;
            }
            touched.store(0, Relaxed);
            while bits != 0 {
                let index = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if let Some(event) = WaitEvent::from_index(index) {
                    let cell = &self.cells[index];
                    let (count, ns) = cell.untaken();
                    cell.take();
                    give(event, count, ns);
                }
            }
        }
    }

    /// Looks at the same events, which the next `take_others` gives still.
    pub fn peek_others(&self, mut look: impl FnMut(WaitEvent, u64)) {
        for (word, touched) in self.touched.iter().enumerate() {
            let mut bits = touched.load(Relaxed);
            while bits != 0 {
                let index = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if let Some(event) = WaitEvent::from_index(index) {
                    look(event, self.cells[index].untaken().1);
                }
            }
        }
    }

    /// The totals of each event that the session has waited for.
    pub fn totals(&self) -> Vec<(WaitEvent, SessionTotals)> {
        let read = |cell: &SessionCell| SessionTotals {
            count: cell.count.load(Relaxed),
            total_ns: cell.total_ns.load(Relaxed),
            max_ns: cell.max_ns.load(Relaxed),
        };
        let events = WaitEvent::all().iter().map(|event| (*event, read(self.cell(*event))));
        events.filter(|(_, totals)| totals.count != 0 || totals.total_ns != 0).collect()
    }

    /// Elapsed time and processor time until the latest step of its work (`settle`).
    #[inline]
    pub fn elapsed_and_cpu(&self) -> (u64, u64) {
        (self.second.elapsed_ns.load(Relaxed), self.second.cpu_ns.load(Relaxed))
    }

    /// The same until now, if its step that runs is below this length so far, and the time since it began is all of it; also if none runs.
    #[inline]
    pub(super) fn elapsed_and_cpu_below(&self, now_ns: u64, below_ns: u64) -> Option<(u64, u64)> {
        let (elapsed_ns, cpu_ns) = self.elapsed_and_cpu();
        let step_ns = self.second.step_ns.load(Relaxed);
        if step_ns == 0 {
            return Some((elapsed_ns, cpu_ns));
        }
        // `ASKS` is so far ahead that the difference is as good as all time.
        let ns = now_ns.wrapping_sub(step_ns);
        (ns < below_ns).then_some((elapsed_ns + ns, cpu_ns + ns))
    }

    /// A step of its work begins; 0: it has ended.
    #[inline]
    pub(super) fn steps(&self, now_ns: u64) {
        self.second.step_ns.store(now_ns, Relaxed);
    }

    /// The time since the step began is not all there is to it.
    #[inline]
    pub(super) fn step_asks(&self) {
        if self.second.step_ns.load(Relaxed) != 0 {
            self.steps(ASKS);
        }
    }

    /// What its elapsed time consists of, the wait included that it is in.
    pub fn time(&self, now_ns: u64) -> SessionTime {
        let (elapsed_ns, cpu_ns) = self.elapsed_and_cpu();
        let mut time = SessionTime { elapsed_ns, cpu_ns, ..SessionTime::NONE };
        self.totals().iter().for_each(|(event, total)| time.waited(*event, total.total_ns));
        if let Some(wait) = self.current_or_ready().filter(|wait| wait.since_ns != 0) {
            let ns = now_ns.saturating_sub(wait.since_ns);
            time.elapsed_ns += ns;
            time.waited(wait.event, ns);
        }
        time
    }

    #[inline]
    pub(super) fn measured(&self) -> Measure {
        self.measured.load(Relaxed).into()
    }

    #[inline]
    pub(super) fn set_measured(&self, how: Measure) {
        self.measured.store(how as u8, Relaxed);
    }

    #[inline]
    pub(super) fn show(&self, wait: &CurrentWait) {
        self.block.begin(wait);
    }

    /// The event that is shown; to be called by the thread that polls the session's futures (SES-2).
    #[inline]
    pub(super) fn shown(&self) -> Option<WaitEvent> {
        self.block.shown()
    }

    #[inline]
    pub(super) fn show_nothing(&self) {
        self.block.end();
    }

    /// The same where this event is shown (SES-2).
    #[inline]
    pub(super) fn shows_no_more(&self, event: WaitEvent) {
        self.block.end_of(event);
    }

    #[inline]
    pub(super) fn record(&self, event: WaitEvent, ns: u64) {
        let cell = self.touched(event);
        add_single_writer(&cell.count, 1);
        add_single_writer(&cell.total_ns, ns);
        raise_single_writer(&cell.max_ns, ns);
    }

    /// Adds a wait without its time, which need not come together: of waits side by side each is one, and their time is that of one.
    #[inline]
    pub(super) fn record_one(&self, event: WaitEvent) {
        add_single_writer(&self.touched(event).count, 1);
    }

    /// The other part.
    #[inline]
    pub(super) fn record_time(&self, event: WaitEvent, ns: u64) {
        let cell = self.touched(event);
        add_single_writer(&cell.total_ns, ns);
        raise_single_writer(&cell.max_ns, ns);
    }

    /// The cell of an event to which something is added.
    #[inline]
    fn touched(&self, event: WaitEvent) -> &SessionCell {
        match event {
            WaitEvent::ClientRead => &self.second.client_read,
            WaitEvent::RunQueue => &self.third.run_queue,
            _ => {
                let touched = &self.touched[event.index() / 64];
                touched.store(touched.load(Relaxed) | 1 << (event.index() % 64), Relaxed);
                &self.cells[event.index()]
            }
        }
    }
}

/// Adds to a session's elapsed time and processor time.
#[inline]
pub(super) fn add_time(session: &SessionStats, elapsed_ns: u64, cpu_ns: u64) {
    add_single_writer(&session.second.elapsed_ns, elapsed_ns);
    add_single_writer(&session.second.cpu_ns, cpu_ns);
}

impl Drop for SessionStats {
    fn drop(&mut self) {
        let mut time = self.time(0);
        // A future that was dropped while it waited had no step in which the time of that wait was counted.
        time.elapsed_ns = time.elapsed_ns.max(time.cpu_ns + time.idle_ns + time.run_queue_ns + time.wait_ns);
        let mut registry = registry();
        registry.live.remove(&self.id());
        // Threads that poll no session's work have no elapsed time.
        if self.elapsed_and_cpu().0 > 0 {
            registry.ended.add(&time);
        }
    }
}

/// Takes in the time of an earlier run's sessions.
pub fn restore_time(time: &SessionTime) {
    registry().ended.add(time);
}

/// The time of all sessions that have ended.
pub fn ended_time() -> SessionTime {
    registry().ended
}

/// Every live session, by id.
pub fn sessions() -> Vec<Arc<SessionStats>> {
    registry().live.values().filter_map(Weak::upgrade).collect()
}

/// The live session of an id.
pub fn session(id: u64) -> Option<Arc<SessionStats>> {
    registry().live.get(&id).and_then(Weak::upgrade)
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
