//! The waiters of one lock in queue order, with a count of waiters by mode.
//!
//! # Invariants
//! - LKM-10: `wanted[m]` is how many waiters in the queue want mode `m`. So neither a request nor the hand-off of a lock with thousands of
//!   waiters has to walk the queue to learn which modes are wanted.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use super::modes::{ALL_MODES, ModeSet};
use super::wait::Waiter;

/// So many brief waiters are called at a time: a release walks over them to the next, and a holder that comes between has woken them for nothing.
pub(super) const CALLED_MAX: usize = 32;

/// The line of waiters. It dereferences to the waiters for reading; only this module changes it.
#[derive(Default)]
pub(super) struct WaitLine {
    line: VecDeque<Arc<Waiter>>,
    wanted: [u32; ALL_MODES.len()],
    /// How many of them look at the row when a holder commits: most lines have none, and are not walked then.
    looking: usize,
    /// How many are brief requests, and how many of those have been called (LKM-17).
    brief: usize,
    called: usize,
}

impl Deref for WaitLine {
    type Target = VecDeque<Arc<Waiter>>;

    fn deref(&self) -> &Self::Target {
        &self.line
    }
}

impl<'a> IntoIterator for &'a WaitLine {
    type Item = &'a Arc<Waiter>;
    type IntoIter = std::collections::vec_deque::Iter<'a, Arc<Waiter>>;

    fn into_iter(self) -> Self::IntoIter {
        self.line.iter()
    }
}

impl WaitLine {
    /// The modes that at least one waiter in the line wants.
    pub(super) fn modes(&self) -> ModeSet {
        let wanted = ALL_MODES.into_iter().filter(|mode| self.wanted[*mode as usize] > 0);
        wanted.fold(ModeSet::EMPTY, ModeSet::with)
    }

    /// Inserts a waiter at a position of the line.
    pub(super) fn insert(&mut self, at: usize, waiter: Arc<Waiter>) {
        self.wanted[waiter.mode as usize] += 1;
        self.looking += usize::from(waiter.looks);
        self.brief += usize::from(waiter.brief);
        self.line.insert(at, waiter);
    }

    /// Takes out the waiter at a position.
    pub(super) fn remove(&mut self, at: usize) {
        if let Some(waiter) = self.line.remove(at) {
            assert!(self.wanted[waiter.mode as usize] > 0, "LKM-10: the queue counts its waiters by mode");
            self.wanted[waiter.mode as usize] -= 1;
            assert!(self.looking >= usize::from(waiter.looks), "LKM-10: the queue counts waiters that look");
            self.looking -= usize::from(waiter.looks);
            self.uncall(&waiter);
            self.brief -= usize::from(waiter.brief);
        }
    }

    /// Whether one more brief waiter is to be called, if one may have the lock (LKM-17).
    pub(super) fn may_call(&self) -> bool {
        self.called < self.brief.min(CALLED_MAX)
    }

    /// Calls a waiter of the line. The caller wakes it after the shard's mutex.
    pub(super) fn call(&mut self, waiter: &Waiter) {
        assert!(waiter.brief && !waiter.is_called(), "LKM-17: a brief waiter is called once");
        waiter.set_called(true);
        self.called += 1;
    }

    /// A waiter of the line is called no more, if it was.
    pub(super) fn uncall(&mut self, waiter: &Waiter) {
        if waiter.is_called() {
            assert!(self.called > 0, "LKM-17: the line counts those that it has called");
            waiter.set_called(false);
            self.called -= 1;
        }
    }

    /// The waiters that have been called.
    pub(super) fn called(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        self.line.iter().filter(|waiter| waiter.is_called()).take(self.called)
    }

    /// The waiters that look at the row when a holder commits.
    pub(super) fn lookers(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        let line = if self.looking == 0 { None } else { Some(&self.line) };
        line.into_iter().flatten().filter(|waiter| waiter.looks)
    }

    /// Takes this waiter out, if it is there.
    pub(super) fn leave(&mut self, waiter: &Arc<Waiter>) {
        if let Some(at) = self.line.iter().position(|w| Arc::ptr_eq(w, waiter)) {
            self.remove(at);
        }
    }

    /// Gives the line the order of these numbers.
    pub(super) fn sort_by_key(&mut self, key: impl FnMut(&Arc<Waiter>) -> usize) {
        self.line.make_contiguous().sort_by_key(key);
    }

    /// LKM-10, for assertions.
    pub(super) fn counts_hold(&self) -> bool {
        let mut wanted = [0; ALL_MODES.len()];
        self.line.iter().for_each(|waiter| wanted[waiter.mode as usize] += 1);
        let count = |which: fn(&Waiter) -> bool| self.line.iter().filter(|waiter| which(waiter)).count();
        wanted == self.wanted
            && self.looking == count(|waiter| waiter.looks)
            && self.brief == count(|waiter| waiter.brief)
            && self.called == count(Waiter::is_called)
    }
}
