//! What the calling thread holds: the number of its latches, and in debug builds their order.
//!
//! # Invariants
//! - HELD-1: a thread's count is the number of latch guards that it holds. Guards are not `Send`, so the thread that took a latch gives it
//!   back.
//! - HELD-2: debug builds assert that a thread waits for a ranked class only while every ranked class that it holds ranks lower, or is the
//!   same class and coupled. A `try_*` call is exempt: it never waits.
//! - HELD-3: debug builds assert that a thread within a [`Bare`] section takes no mutex and no latch, waits for nothing, and, where the
//!   program's allocator is [`crate::memory::Accounted`], allocates and frees nothing.

use std::cell::Cell;
use std::marker::PhantomData;

/// The name of a class of latches or mutexes, and its place in the order.
#[derive(Debug)]
pub struct Place {
    /// `storage/wal/flush`.
    pub name: &'static str,
    /// The place in the order; 0 is outside it.
    pub rank: u16,
    /// A thread may wait for one of the class while it holds another of it.
    pub coupled: bool,
}

thread_local! {
    static LATCHES: Cell<u32> = const { Cell::new(0) };
}

/// How many latches the calling thread holds.
#[inline]
pub fn latches_held() -> u32 {
    LATCHES.with(Cell::get)
}

/// # Panics
/// If the calling thread holds a latch: no code waits, reads, writes or sleeps under one.
#[inline]
#[track_caller]
pub fn assert_no_latches() {
    bare::refuse("a wait");
    let held = LATCHES.try_with(Cell::get).unwrap_or(0);
    assert!(held == 0, "a wait under {held} latch(es){}", order::names());
}

#[inline]
pub(crate) fn latch_taken(place: &'static Place) {
    if cfg!(loom) {
        return; // all threads of a model share one thread-local
    }
    bare::refuse(place.name);
    LATCHES.with(|latches| latches.set(latches.get() + 1));
    order::taken(place);
}

#[inline]
pub(crate) fn latch_given_back(place: &'static Place) {
    if cfg!(loom) {
        return;
    }
    LATCHES.with(|latches| latches.set(latches.get() - 1));
    order::given_back(place);
}

#[inline]
pub(crate) fn mutex_taken(place: &'static Place) {
    if !cfg!(loom) {
        bare::refuse(place.name);
        order::taken(place);
    }
}

#[inline]
pub(crate) fn mutex_given_back(place: &'static Place) {
    if !cfg!(loom) {
        order::given_back(place);
    }
}

/// Before a latch or mutex is waited for: HELD-2.
#[inline]
#[track_caller]
pub(crate) fn check_order(place: &'static Place) {
    if !cfg!(loom) {
        bare::refuse(place.name);
        order::check(place);
    }
}

/// A section of code in which the thread allocates and frees nothing, takes no mutex and no latch and waits for nothing (HELD-3). Release
/// builds check nothing.
#[must_use = "the section ends when this is dropped"]
pub struct Bare {
    _section: bare::Section,
    not_send: PhantomData<*const ()>,
}

impl Bare {
    /// The section begins; `name` stands in the message of the check.
    #[inline]
    pub fn begin(name: &'static str) -> Bare {
        Bare { _section: bare::Section::begin(name), not_send: PhantomData }
    }
}

/// The allocator was called: HELD-3.
#[inline(always)]
#[cfg_attr(loom, allow(dead_code, reason = "the allocator's hook is not part of the models"))]
pub(crate) fn note_allocator_call() {
    bare::note_allocator_call();
}

#[cfg(all(debug_assertions, not(loom)))]
mod bare {
    use std::cell::Cell;

    thread_local! {
        static NAME: Cell<Option<&'static str>> = const { Cell::new(None) };
        /// Calls of the allocator within sections.
        static CALLS: Cell<u64> = const { Cell::new(0) };
    }

    pub struct Section {
        name: &'static str,
    }

    impl Section {
        pub fn begin(name: &'static str) -> Section {
            CALLS.with(|calls| calls.set(0));
            let outer = NAME.with(|now| now.replace(Some(name)));
            assert!(outer.is_none(), "{name} begins within {outer:?}");
            Section { name }
        }
    }

    impl Drop for Section {
        fn drop(&mut self) {
            NAME.with(|now| now.set(None));
            let calls = CALLS.with(Cell::get);
            if !std::thread::panicking() {
                assert!(calls == 0, "{} called the allocator {calls} times (HELD-3)", self.name);
            }
        }
    }

    /// Called by the allocator: it only counts, because an allocator must not unwind.
    #[inline(always)]
    pub fn note_allocator_call() {
        let _ = NAME.try_with(|now| {
            if now.get().is_some() {
                CALLS.with(|calls| calls.set(calls.get() + 1));
            }
        });
    }

    #[inline]
    #[track_caller]
    pub fn refuse(what: &str) {
        let within = NAME.try_with(Cell::take).ok().flatten();
        if let Some(name) = within.filter(|_| !std::thread::panicking()) {
            panic!("{name} takes or waits for {what} (HELD-3)");
        }
    }
}

#[cfg(any(not(debug_assertions), loom))]
mod bare {
    pub struct Section;

    impl Section {
        #[inline]
        pub fn begin(_name: &'static str) -> Section {
            Section
        }
    }

    #[inline(always)]
    pub fn note_allocator_call() {}
    #[inline]
    pub fn refuse(_what: &str) {}
}

#[cfg(debug_assertions)]
mod order {
    use std::cell::RefCell;

    use super::Place;

    thread_local! {
        static HELD: RefCell<Vec<&'static Place>> = const { RefCell::new(Vec::new()) };
    }

    pub fn taken(place: &'static Place) {
        let _ = HELD.try_with(|held| held.borrow_mut().push(place));
    }

    pub fn given_back(place: &'static Place) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|other| std::ptr::eq(*other, place)) {
                held.remove(at);
            }
        });
    }

    #[track_caller]
    pub fn check(place: &'static Place) {
        if place.rank == 0 {
            return;
        }
        let higher = HELD.try_with(|held| {
            let held = held.borrow();
            held.iter().copied().find(|other| {
                let same = std::ptr::eq(*other, place);
                other.rank > place.rank || (other.rank == place.rank && !(same && place.coupled))
            })
        });
        if let Ok(Some(other)) = higher {
            panic!(
                "latch order: waiting for {} (rank {}) while holding {} (rank {})",
                place.name, place.rank, other.name, other.rank
            );
        }
    }

    pub fn names() -> String {
        let names = HELD.try_with(|held| held.borrow().iter().map(|place| place.name).collect::<Vec<_>>());
        format!(": {}", names.unwrap_or_default().join(", "))
    }
}

#[cfg(not(debug_assertions))]
mod order {
    use super::Place;

    #[inline]
    pub fn taken(_place: &'static Place) {}
    #[inline]
    pub fn given_back(_place: &'static Place) {}
    #[inline]
    pub fn check(_place: &'static Place) {}
    pub fn names() -> &'static str {
        ""
    }
}
