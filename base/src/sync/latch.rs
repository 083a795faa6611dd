//! The latch: one word that is held exclusively, shared, or read optimistically by version.
//!
//! # Structure
//! ```text
//!  63                              18 | 17     | 16        | 15          0
//!  version                            | PARKED | EXCLUSIVE | shared count
//! ```
//! | EXCLUSIVE | shared | PARKED | state |
//! |---|---|---|---|
//! | 0 | 0 | 0 | free |
//! | 0 | n | 0 | held shared by n |
//! | 1 | 0 | 0 | held exclusively |
//! | 0 | n | 1 | held shared, threads are parked; a new shared request waits behind them |
//! | 1 | 0 | 1 | held exclusively, threads are parked |
//! | 0 | 0 | 1 | free, and the first parked thread is being woken |
//!
//! # Invariants
//! - LATCH-1: while a thread holds the latch exclusively, no other thread holds it.
//! - LATCH-2: the version grows by one when an exclusive hold ends, and only then. So a reader that finds EXCLUSIVE clear and the same
//!   version before and after it reads has read data that no writer changed in between.
//! - LATCH-3: what an exclusive holder wrote is visible to every later holder and to every reader that validates a later
//!   version: taking is an acquire, giving back a release; `validate` has an acquire fence before its load, and
//!   taking exclusively a release fence after its exchange (Boehm, "Can seqlocks get along with programming language
//!   memory models?", 2012).
//!
//! # Latch order
//! By the class's rank; see `class`. A thread must not take a latch shared twice: a waiter in between would stop it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::class::Class;
use super::park::{self, Attempt, Want};
use super::shim::{AtomicU64, fence};
use crate::held;
use crate::waits::WaitEvent;

const SHARED_ONE: u64 = 1;
const SHARED_MASK: u64 = 0xffff;
const EXCLUSIVE: u64 = 1 << 16;
const PARKED: u64 = 1 << 17;
const VERSION_ONE: u64 = 1 << 18;
const VERSION_MASK: u64 = !(VERSION_ONE - 1);

/// The order in which an exclusive hold is given back. `plant-weak-latch` weakens it, so that CI sees the loom test fail.
const GIVE_BACK: std::sync::atomic::Ordering = if cfg!(feature = "plant-weak-latch") { Relaxed } else { Release };

/// The version that an optimistic reader remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// The number of exclusive holds that had ended.
    pub fn number(self) -> u64 {
        self.0 / VERSION_ONE
    }
}

/// A latch: protects memory for a short time, without deadlock detection; never held over I/O or an await.
pub struct Latch {
    word: AtomicU64,
    class: &'static Class,
    event: WaitEvent,
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Relaxed);
        f.debug_struct("Latch")
            .field("class", &self.class.name())
            .field("version", &(word / VERSION_ONE))
            .field("exclusive", &(word & EXCLUSIVE != 0))
            .field("shared", &(word & SHARED_MASK))
            .finish()
    }
}

impl Latch {
    /// A free latch of a class.
    #[cfg(not(loom))]
    pub const fn new(class: &'static Class) -> Self {
        Self { word: AtomicU64::new(0), class, event: WaitEvent::Latch }
    }

    /// A free latch of a class.
    #[cfg(loom)]
    pub fn new(class: &'static Class) -> Self {
        Self { word: AtomicU64::new(0), class, event: WaitEvent::Latch }
    }

    /// The latch shows its waits as another event of class LWLock.
    pub(super) fn with_event(mut self, event: WaitEvent) -> Self {
        self.event = event;
        self
    }

    /// The class that it was made with.
    pub fn class(&self) -> &'static Class {
        self.class
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.word) as usize
    }

    /// Takes the latch exclusively.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> Exclusive<'_> {
        held::check_order(self.class.place());
        if self.take_exclusive().is_none() {
            self.exclusive_slow();
        }
        self.holds_exclusive()
    }

    /// Takes the latch exclusively if no thread holds it.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<Exclusive<'_>> {
        self.take_exclusive()?;
        Some(self.holds_exclusive())
    }

    /// Takes the latch shared.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> Shared<'_> {
        held::check_order(self.class.place());
        if self.take_shared(false).is_none() {
            self.shared_slow();
        }
        held::latch_taken(self.class.place());
        Shared { latch: self, not_send: PhantomData }
    }

    /// Takes the latch shared if no thread holds it exclusively or waits for it.
    #[inline]
    pub fn try_shared(&self) -> Option<Shared<'_>> {
        self.take_shared(false)?;
        held::latch_taken(self.class.place());
        Some(Shared { latch: self, not_send: PhantomData })
    }

    /// The version to read under, optimistically: read, then `validate` before using what was read. None while a thread
    /// holds the latch exclusively.
    #[inline]
    pub fn optimistic(&self) -> Option<Version> {
        let word = self.word.load(Acquire);
        (word & EXCLUSIVE == 0).then_some(Version(word & VERSION_MASK))
    }

    /// Whether nothing was changed since `version` was read (LATCH-2).
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        fence(Acquire);
        self.word.load(Relaxed) & (VERSION_MASK | EXCLUSIVE) == version.0
    }

    /// Takes the latch exclusively if no thread holds it and nothing was changed since `version` was read.
    #[inline]
    #[track_caller]
    pub fn upgrade(&self, version: Version) -> Option<Exclusive<'_>> {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & !PARKED != version.0 {
                return None;
            }
            match self.word.compare_exchange_weak(word, word | EXCLUSIVE, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        fence(Release); // LATCH-3
        Some(self.holds_exclusive())
    }

    #[inline]
    #[track_caller]
    fn holds_exclusive(&self) -> Exclusive<'_> {
        held::latch_taken(self.class.place());
        self.class.took();
        Exclusive { latch: self, not_send: PhantomData }
    }

    #[inline]
    fn take_exclusive(&self) -> Option<()> {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & (EXCLUSIVE | SHARED_MASK) != 0 {
                return None; // LATCH-1
            }
            match self.word.compare_exchange_weak(word, word | EXCLUSIVE, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        fence(Release); // LATCH-3
        Some(())
    }

    /// `woken` threads were at the head of the line and do not go behind it again.
    #[inline]
    fn take_shared(&self, woken: bool) -> Option<()> {
        let mut word = self.word.load(Relaxed);
        loop {
            let behind_the_line = word & PARKED != 0 && word & SHARED_MASK != 0 && !woken;
            if word & EXCLUSIVE != 0 || behind_the_line {
                return None; // LATCH-1
            }
            assert!(word & SHARED_MASK != SHARED_MASK, "{} is held shared 65,535 times", self.class.name());
            match self.word.compare_exchange_weak(word, word + SHARED_ONE, Acquire, Relaxed) {
                Ok(_) => return Some(()),
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn exclusive_slow(&self) {
        let announce = |_| self.announce(|| self.take_exclusive(), |word| word & (EXCLUSIVE | SHARED_MASK) != 0);
        park::contend(self.class, self.event, self.key(), Want::Exclusive, |_| self.take_exclusive(), announce);
    }

    #[cold]
    fn shared_slow(&self) {
        let announce = |woken| self.announce(|| self.take_shared(woken), |word| word & (EXCLUSIVE | SHARED_MASK) != 0);
        park::contend(self.class, self.event, self.key(), Want::Shared, |woken| self.take_shared(woken), announce);
    }

    /// Takes the latch, or sets PARKED while another thread holds it, which sees PARKED when it gives the latch back (PARK-1, PARK-2).
    fn announce(&self, take: impl Fn() -> Option<()>, is_held: impl Fn(u64) -> bool) -> Attempt<()> {
        loop {
            if take().is_some() {
                return Attempt::Got(());
            }
            let word = self.word.load(Relaxed);
            if is_held(word) && self.word.compare_exchange(word, word | PARKED, Relaxed, Relaxed).is_ok() {
                return Attempt::Announced;
            }
        }
    }

    #[cold]
    fn wake(&self) {
        park::wake(self.key(), || {
            self.word.fetch_and(!PARKED, Relaxed);
        });
    }
}

/// An exclusive hold; ends when dropped. Not `Send`: no await can come between.
#[must_use = "the latch is given back when the guard is dropped"]
pub struct Exclusive<'a> {
    latch: &'a Latch,
    not_send: PhantomData<*const ()>,
}

impl<'a> Exclusive<'a> {
    /// The version that optimistic readers will see once this hold has ended.
    pub fn next_version(&self) -> Version {
        Version((self.latch.word.load(Relaxed) & VERSION_MASK).wrapping_add(VERSION_ONE))
    }

    /// Goes on as a shared holder: no other exclusive holder comes between.
    pub fn downgrade(self) -> Shared<'a> {
        let latch = self.latch;
        std::mem::forget(self);
        latch.class.gave_back();
        latch.word.fetch_add(VERSION_ONE - EXCLUSIVE + SHARED_ONE, Release);
        Shared { latch, not_send: PhantomData }
    }
}

impl Drop for Exclusive<'_> {
    #[inline]
    fn drop(&mut self) {
        held::latch_given_back(self.latch.class.place());
        self.latch.class.gave_back();
        // EXCLUSIVE is set and no other thread changes it, the version or the count: no borrow, no carry (LATCH-2).
        let before = self.latch.word.fetch_add(VERSION_ONE - EXCLUSIVE, GIVE_BACK);
        debug_assert!(before & EXCLUSIVE != 0 && before & SHARED_MASK == 0, "LATCH-1");
        if before & PARKED != 0 {
            self.latch.wake();
        }
    }
}

/// A shared hold; ends when dropped. Not `Send`: no await can come between.
#[must_use = "the latch is given back when the guard is dropped"]
pub struct Shared<'a> {
    latch: &'a Latch,
    not_send: PhantomData<*const ()>,
}

impl Shared<'_> {
    /// The version of what is read under this hold.
    pub fn version(&self) -> Version {
        Version(self.latch.word.load(Relaxed) & VERSION_MASK)
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        held::latch_given_back(self.latch.class.place());
        let before = self.latch.word.fetch_sub(SHARED_ONE, Release);
        debug_assert!(before & EXCLUSIVE == 0 && before & SHARED_MASK != 0, "LATCH-1");
        if before & (PARKED | SHARED_MASK) == PARKED | SHARED_ONE {
            self.latch.wake();
        }
    }
}
