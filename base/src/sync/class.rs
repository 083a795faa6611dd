//! Classes of latches and mutexes: a name, a rank in the latch order, and what their slow paths have cost.
//!
//! Every latch and mutex belongs to a class. A structure that exists once has a class of its own; the latches of all
//! pages share one. The registry lists every class, for the views and for `SHOW ENGINE INNODB MUTEX`.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::held::{Place, latch_given_back, latch_taken};
use crate::waits;

/// A class of latches or mutexes.
#[derive(Debug)]
pub struct Class {
    place: Place,
    listed: AtomicBool,
    slow: AtomicU64,
    parks: AtomicU64,
    spin_ns: AtomicU64,
    park_ns: AtomicU64,
    max_ns: AtomicU64,
    waiting: AtomicU64,
    holder: AtomicU64,
    held_since_ns: AtomicU64,
    holds: AtomicU64,
    hold_max_ns: AtomicU64,
    held_at: Mutex<Option<&'static Location<'static>>>,
}

static REGISTRY: Mutex<Vec<&'static Class>> = Mutex::new(Vec::new());
/// What an earlier process has left.
static EARLIER: Mutex<Vec<ClassStats>> = Mutex::new(Vec::new());
/// Names of an earlier process that are taken: the source has some hundred.
const EARLIER_MAX: usize = 1_000;
static TRACK_HOLDERS: AtomicBool = AtomicBool::new(false);

fn registry() -> MutexGuard<'static, Vec<&'static Class>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many classes a thread remembers, by the address of their names.
const REMEMBERED: usize = 128;

thread_local! {
    static FOUND: [Cell<Option<&'static Class>>; REMEMBERED] = const { [const { Cell::new(None) }; REMEMBERED] };
}

impl Class {
    /// A class without a place in the order, for a `static`.
    pub const fn new(name: &'static str) -> Self {
        Self::ranked(name, 0)
    }

    /// A class with a place in the order: a thread that holds one of rank r waits only for ranks above r. Debug builds
    /// panic otherwise. Rank 0 is outside the order.
    pub const fn ranked(name: &'static str, rank: u16) -> Self {
        Self {
            place: Place { name, rank, coupled: false },
            listed: AtomicBool::new(false),
            slow: AtomicU64::new(0),
            parks: AtomicU64::new(0),
            spin_ns: AtomicU64::new(0),
            park_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            holder: AtomicU64::new(0),
            held_since_ns: AtomicU64::new(0),
            holds: AtomicU64::new(0),
            hold_max_ns: AtomicU64::new(0),
            held_at: Mutex::new(None),
        }
    }

    /// Allows a thread to wait for one of this class while it holds another of it. Code that does so has an order of its
    /// own within the class (left to right, top to bottom) and must keep to it: nothing checks that.
    pub const fn coupled(mut self) -> Self {
        self.place.coupled = true;
        self
    }

    /// The class of a name, made at the first call and kept for ever: names are few and in the source. Each thread remembers where it
    /// found one: statements and transactions make mutexes of their own, and all threads share the registry's mutex.
    pub fn named(name: &'static str) -> &'static Class {
        let place = (name.as_ptr() as usize >> 3) % REMEMBERED;
        let known = FOUND.try_with(|found| found[place].get()).ok().flatten();
        if let Some(class) = known.filter(|class| std::ptr::eq(class.place.name, name)) {
            return class;
        }
        let class = Class::registered(name);
        let _ = FOUND.try_with(|found| found[place].set(Some(class)));
        class
    }

    fn registered(name: &'static str) -> &'static Class {
        let mut registry = registry();
        if let Some(class) = registry.iter().find(|class| class.place.name == name) {
            return class;
        }
        let class: &'static Class = Box::leak(Box::new(Class::new(name)));
        class.listed.store(true, Relaxed);
        registry.push(class);
        class
    }

    /// The name: place and purpose, `storage/wal/flush`.
    pub fn name(&self) -> &'static str {
        self.place.name
    }

    /// The place in the order; 0 is outside it.
    pub fn rank(&self) -> u16 {
        self.place.rank
    }

    /// Its name and its place in the order.
    pub(crate) fn place(&'static self) -> &'static Place {
        &self.place
    }

    /// Lists the class; slow paths do so by themselves.
    pub fn list(&'static self) {
        if !self.listed.load(Relaxed) && !self.listed.swap(true, Relaxed) {
            registry().push(self);
        }
    }

    pub(crate) fn begin_slow(&'static self) {
        self.list();
        self.waiting.fetch_add(1, Relaxed);
    }

    pub(crate) fn end_slow(&self, parks: u64, spin_ns: u64, park_ns: u64) {
        self.waiting.fetch_sub(1, Relaxed);
        self.slow.fetch_add(1, Relaxed);
        self.parks.fetch_add(parks, Relaxed);
        self.spin_ns.fetch_add(spin_ns, Relaxed);
        self.park_ns.fetch_add(park_ns, Relaxed);
        self.max_ns.fetch_max(spin_ns + park_ns, Relaxed);
    }

    #[inline]
    #[track_caller]
    pub(crate) fn took(&self) {
        if TRACK_HOLDERS.load(Relaxed) {
            self.remember_holder(Location::caller());
        }
    }

    #[cold]
    fn remember_holder(&self, site: &'static Location<'static>) {
        self.holder.store(waits::current_session_id(), Relaxed);
        self.held_since_ns.store(waits::now_ns(), Relaxed);
        *self.held_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(site);
    }

    #[inline]
    pub(crate) fn gave_back(&self) {
        if TRACK_HOLDERS.load(Relaxed) {
            self.count_hold();
        }
    }

    /// Where the class has many instances, the hold that was counted began when the latest of them was taken: no hold counts as longer than it
    /// was.
    #[cold]
    fn count_hold(&self) {
        let since_ns = self.held_since_ns.swap(0, Relaxed);
        if since_ns != 0 {
            self.holds.fetch_add(1, Relaxed);
            self.hold_max_ns.fetch_max(waits::now_ns().saturating_sub(since_ns), Relaxed);
        }
    }

    /// The session that took it last, when holders are tracked; 0 when unknown.
    pub(crate) fn holder(&self) -> u64 {
        self.holder.load(Relaxed)
    }

    fn read(&self) -> ClassStats {
        let held_since_ns = self.held_since_ns.load(Relaxed);
        let site = *self.held_at.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = (held_since_ns != 0).then(|| Holder {
            session: self.holder.load(Relaxed),
            since_ns: held_since_ns,
            site: site.map(|site| format!("{}:{}", site.file(), site.line())).unwrap_or_default(),
        });
        ClassStats {
            name: self.name(),
            slow: self.slow.load(Relaxed),
            parks: self.parks.load(Relaxed),
            spin_ns: self.spin_ns.load(Relaxed),
            park_ns: self.park_ns.load(Relaxed),
            max_ns: self.max_ns.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            holds: self.holds.load(Relaxed),
            hold_max_ns: self.hold_max_ns.load(Relaxed),
            holder,
        }
    }
}

/// What the slow paths of a class have cost since the process began, and what [`restore_classes`] has added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStats {
    /// The class's name.
    pub name: &'static str,
    /// How often an acquisition had to wait.
    pub slow: u64,
    /// How often a thread parked for it.
    pub parks: u64,
    /// Time that threads spun for it.
    pub spin_ns: u64,
    /// Time parked for it.
    pub park_ns: u64,
    /// The longest single wait.
    pub max_ns: u64,
    /// How many threads wait for it now.
    pub waiting: u64,
    /// How often it was held while holders were tracked.
    pub holds: u64,
    /// The longest hold while holders were tracked.
    pub hold_max_ns: u64,
    /// The thread that took it last and still holds it, while holders are tracked. For a class with many instances, the holder of one of them.
    pub holder: Option<Holder>,
}

/// The holder of a latch or mutex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The session's id; 0 for a thread without one.
    pub session: u64,
    /// Since when, by `waits::now_ns`.
    pub since_ns: u64,
    /// Where in the source it was taken.
    pub site: String,
}

impl ClassStats {
    fn add(&mut self, earlier: &ClassStats) {
        self.slow += earlier.slow;
        self.parks += earlier.parks;
        self.spin_ns = self.spin_ns.saturating_add(earlier.spin_ns);
        self.park_ns = self.park_ns.saturating_add(earlier.park_ns);
        self.max_ns = self.max_ns.max(earlier.max_ns);
        self.holds += earlier.holds;
        self.hold_max_ns = self.hold_max_ns.max(earlier.hold_max_ns);
    }
}

fn earlier() -> MutexGuard<'static, Vec<ClassStats>> {
    EARLIER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every listed class with its figures, by name.
pub fn classes() -> Vec<ClassStats> {
    let mut all: Vec<ClassStats> = registry().iter().map(|class| class.read()).collect();
    for left in earlier().iter() {
        match all.iter_mut().find(|class| class.name == left.name) {
            Some(class) => class.add(left),
            None => all.push(left.clone()),
        }
    }
    all.sort_by_key(|class| class.name);
    all
}

/// Adds what an earlier process has left, by name: waits, parks, time spun and parked, the longest wait, holds, the longest hold.
pub fn restore_classes(left: Vec<(String, [u64; 7])>) {
    let mut earlier = earlier();
    for (name, [slow, parks, spin_ns, park_ns, max_ns, holds, hold_max_ns]) in left {
        if earlier.len() >= EARLIER_MAX {
            break;
        }
        // A name lives as long as the process, as those of the source do.
        let name = Box::leak(name.into_boxed_str());
        let holder = None;
        let figures =
            ClassStats { name, slow, parks, spin_ns, park_ns, max_ns, waiting: 0, holds, hold_max_ns, holder };
        earlier.push(figures);
    }
}

/// Whether holders are remembered (the session, since when, where in the source) and holds counted. It costs a clock reading and a mutex per
/// acquisition; off by default.
pub fn track_holders(on: bool) {
    TRACK_HOLDERS.store(on, Relaxed);
    // A hold that began before is not known.
    registry().iter().for_each(|class| class.held_since_ns.store(0, Relaxed));
}

/// Counts a latch that lives in a word of its owner's own design (a page's entry in the buffer pool): taken by a try,
/// so the order of classes is not checked. The owner calls [`note_latch_given_back`] on the same thread.
#[inline]
pub fn note_latch_taken(class: &'static Class) {
    latch_taken(class.place());
}

/// The other half of [`note_latch_taken`].
#[inline]
pub fn note_latch_given_back(class: &'static Class) {
    latch_given_back(class.place());
}
