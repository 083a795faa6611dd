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

/// The line of waiters. It dereferences to the waiters for reading; only this module changes it.
#[derive(Default)]
pub(super) struct WaitLine {
    line: VecDeque<Arc<Waiter>>,
    wanted: [u32; ALL_MODES.len()],
    /// How many of them look at the row when a holder commits: most lines have none, and are not walked then.
    looking: usize,
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
        self.line.insert(at, waiter);
    }

    /// Takes out the waiter at a position.
    pub(super) fn remove(&mut self, at: usize) {
        if let Some(waiter) = self.line.remove(at) {
            assert!(self.wanted[waiter.mode as usize] > 0, "LKM-10: the queue counts its waiters by mode");
            self.wanted[waiter.mode as usize] -= 1;
            assert!(self.looking >= usize::from(waiter.looks), "LKM-10: the queue counts waiters that look");
            self.looking -= usize::from(waiter.looks);
        }
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
        wanted == self.wanted && self.looking == self.line.iter().filter(|waiter| waiter.looks).count()
    }
}
