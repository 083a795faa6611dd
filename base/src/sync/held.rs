//! What the calling thread holds: the number of its latches, and in debug builds their order.
//!
//! # Invariants
//! - HELD-1: the count of a thread is the number of its latch guards; guards are not `Send`, so a thread's own.
//! - HELD-2: in debug builds, a thread waits for a ranked class only while all ranked classes that it holds rank lower,
//!   or are the same one and coupled. Tries are exempt: they never wait.

use std::cell::Cell;

use super::class::Class;

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
pub(super) fn latch_taken(class: &'static Class) {
    if cfg!(loom) {
        return; // all threads of a model share one thread-local
    }
    LATCHES.with(|latches| latches.set(latches.get() + 1));
    order::taken(class);
}

#[inline]
pub(super) fn latch_given_back(class: &'static Class) {
    if cfg!(loom) {
        return;
    }
    LATCHES.with(|latches| latches.set(latches.get() - 1));
    order::given_back(class);
}

/// Counts a latch that lives in a word of its owner's own design (a page's entry in the buffer pool): taken by a try,
/// so the order of classes is not checked. The owner calls [`note_latch_given_back`] on the same thread.
#[inline]
pub fn note_latch_taken(class: &'static Class) {
    latch_taken(class);
}

/// The other half of [`note_latch_taken`].
#[inline]
pub fn note_latch_given_back(class: &'static Class) {
    latch_given_back(class);
}

#[inline]
pub(super) fn mutex_taken(class: &'static Class) {
    if !cfg!(loom) {
        order::taken(class);
    }
}

#[inline]
pub(super) fn mutex_given_back(class: &'static Class) {
    if !cfg!(loom) {
        order::given_back(class);
    }
}

/// Before a latch or mutex is waited for: HELD-2.
#[inline]
#[track_caller]
pub(super) fn check_order(class: &'static Class) {
    if !cfg!(loom) {
        order::check(class);
    }
}

#[cfg(debug_assertions)]
mod order {
    use std::cell::RefCell;

    use super::Class;

    thread_local! {
        static HELD: RefCell<Vec<&'static Class>> = const { RefCell::new(Vec::new()) };
    }

    pub fn taken(class: &'static Class) {
        let _ = HELD.try_with(|held| held.borrow_mut().push(class));
    }

    pub fn given_back(class: &'static Class) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|other| std::ptr::eq(*other, class)) {
                held.remove(at);
            }
        });
    }

    #[track_caller]
    pub fn check(class: &'static Class) {
        if class.rank() == 0 {
            return;
        }
        let higher = HELD.try_with(|held| {
            let held = held.borrow();
            held.iter().copied().find(|other| {
                let same = std::ptr::eq(*other, class);
                other.rank() > class.rank() || (other.rank() == class.rank() && !(same && class.is_coupled()))
            })
        });
        if let Ok(Some(other)) = higher {
            panic!(
                "latch order: waiting for {} (rank {}) while holding {} (rank {})",
                class.name(),
                class.rank(),
                other.name(),
                other.rank()
            );
        }
    }

    pub fn names() -> String {
        let names = HELD.try_with(|held| held.borrow().iter().map(|class| class.name()).collect::<Vec<_>>());
        format!(": {}", names.unwrap_or_default().join(", "))
    }
}

#[cfg(not(debug_assertions))]
mod order {
    use super::Class;

    #[inline]
    pub fn taken(_class: &'static Class) {}
    #[inline]
    pub fn given_back(_class: &'static Class) {}
    #[inline]
    pub fn check(_class: &'static Class) {}
    pub fn names() -> &'static str {
        ""
    }
}
