//! What the calling thread holds: the number of its latches, and in debug builds their order.
//!
//! # Invariants
//! - HELD-1: the count of a thread is the number of its latch guards; guards are not `Send`, so a thread's own.
//! - HELD-2: in debug builds, a thread waits for a ranked class only while all ranked classes that it holds rank lower,
//!   or are the same one and coupled. Tries are exempt: they never wait.

use std::cell::Cell;

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
/// If the calling thread holds a latch: nobody waits, reads, writes or sleeps under one.
#[inline]
#[track_caller]
pub fn assert_no_latches() {
    let held = LATCHES.try_with(Cell::get).unwrap_or(0);
    assert!(held == 0, "a wait under {held} latch(es){}", order::names());
}

#[inline]
pub(crate) fn latch_taken(place: &'static Place) {
    if cfg!(loom) {
        return; // all threads of a model share one thread-local
    }
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
        order::check(place);
    }
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
