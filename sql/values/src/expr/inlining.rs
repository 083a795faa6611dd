//! How far bodies of functions, and defaults of arguments, are put in place of calls: the bounds, and what stands around.

use crate::types::Oid;
use std::cell::{Cell, RefCell};

/// How deep bodies, and defaults of arguments, may be put in place within each other.
const INLINED_MAX: usize = 50;
/// How many of them one call may come to: each may call two others, and those two more.
const EXPANDED_MAX: u32 = 500;
thread_local! {
    /// The functions whose bodies are being put in place of calls.
    static INLINED: RefCell<Vec<Oid>> = const { RefCell::new(Vec::new()) };
    /// How many have been since the outermost of them.
    static EXPANDED: Cell<u32> = const { Cell::new(0) };
    /// How many defaults of arguments stand around the one that is being put in place.
    static DEFAULTS: Cell<usize> = const { Cell::new(0) };
    /// The functions whose bodies were put in place, where [`with_called`] asks for them.
    static CALLED: RefCell<Option<Vec<Oid>>> = const { RefCell::new(None) };
}

/// What `f` gives, and the functions whose bodies it put in place of calls on this thread: a role that evaluates the result needs the right
/// to call them.
pub fn with_called<R>(f: impl FnOnce() -> R) -> (R, Vec<Oid>) {
    struct Before(Option<Vec<Oid>>);
    impl Drop for Before {
        fn drop(&mut self) {
            CALLED.set(self.0.take());
        }
    }
    let _before = Before(CALLED.replace(Some(Vec::new())));
    let out = f();
    (out, CALLED.take().unwrap_or_default())
}

/// While `f` runs on this thread, calls stay calls: for definitions that are shown as they were written.
pub fn without_inlining<R>(f: impl FnOnce() -> R) -> R {
    // As if as many bodies as may be were being put in place already.
    EXPANDED.set(0);
    let depth = INLINED.with_borrow_mut(|list| {
        list.extend([0; INLINED_MAX]);
        list.len()
    });
    let out = f();
    INLINED.with_borrow_mut(|list| list.truncate(depth - INLINED_MAX));
    out
}

/// A body or a default is being put in place, until this is dropped.
pub(super) struct Inlining;

impl Inlining {
    /// The body or a default of a function is being put in place.
    pub(super) fn of(routine: Oid) -> Inlining {
        let outermost = INLINED.with_borrow_mut(|list| {
            list.push(routine);
            list.len() == 1
        });
        EXPANDED.set(if outermost { 1 } else { EXPANDED.get() + 1 });
        Inlining
    }
}

/// Whether the call that is being put in place has come to as many others as it may.
pub(super) fn is_expanded() -> bool {
    EXPANDED.get() >= EXPANDED_MAX && INLINED.with_borrow(|list| !list.is_empty())
}

/// A default of an argument is being put in place.
pub(super) struct DefaultOf;

impl DefaultOf {
    pub(super) fn deeper() -> DefaultOf {
        DEFAULTS.set(DEFAULTS.get() + 1);
        DefaultOf
    }
}

impl Drop for DefaultOf {
    fn drop(&mut self) {
        DEFAULTS.set(DEFAULTS.get() - 1);
    }
}

impl Drop for Inlining {
    fn drop(&mut self) {
        INLINED.with_borrow_mut(Vec::pop);
    }
}

/// Whether the body of this function is being put in place already, or as many as may be.
pub(super) fn is_within(routine: Oid) -> bool {
    INLINED.with_borrow(|list| list.contains(&routine) || list.len() >= INLINED_MAX)
}

/// Whether as many defaults stand around the next one as may.
pub(super) fn is_deepest_default() -> bool {
    DEFAULTS.get() >= INLINED_MAX
}

/// The body of a function has been put in place, where [`with_called`] asks for that.
pub(super) fn note_called(routine: Oid) {
    CALLED.with_borrow_mut(|called| called.iter_mut().for_each(|called| called.push(routine)));
}
