//! Memory that a thread keeps for its next use: images of pages and copies of leaves are made by the thousand, and each would clear a page.

use clearway_base::memory;
use std::cell::RefCell;
use std::thread::LocalKey;

/// What a thread keeps. It is in no session's account, whichever session the thread works for (MEM-6).
pub(super) struct Spares<T> {
    kept: RefCell<Vec<T>>,
    most: usize,
}

impl<T> Spares<T> {
    /// None so far, and so many at most.
    pub(super) const fn new(most: usize) -> Spares<T> {
        Spares { kept: RefCell::new(Vec::new()), most }
    }
}

impl<T> Drop for Spares<T> {
    fn drop(&mut self) {
        memory::uncharged(|| drop(self.kept.take()));
    }
}

/// Memory that the thread has kept, or new one.
pub(super) fn take<T>(spares: &'static LocalKey<Spares<T>>, new: impl FnOnce() -> T) -> T {
    let spare = spares.try_with(|spares| spares.kept.borrow_mut().pop()).ok().flatten();
    spare.unwrap_or_else(|| memory::uncharged(new))
}

/// Keeps memory, if there is room for it.
pub(super) fn give_back<T>(spares: &'static LocalKey<Spares<T>>, memory: T) {
    memory::uncharged(|| {
        // A thread that ends keeps nothing.
        let _ = spares.try_with(|spares| {
            let mut kept = spares.kept.borrow_mut();
            if kept.len() < spares.most {
                kept.push(memory);
            }
        });
    });
}
