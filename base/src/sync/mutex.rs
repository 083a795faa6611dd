//! A mutex with a name, and a condition variable that is waited for under it.
//!
//! # Invariants
//! - MUTEX-1: only the thread that has set the bit LOCKED touches the value.
//! - MUTEX-2: a thread that waits for a condition enters the queue before it releases the mutex. So a notification that follows a
//!   change made under the mutex reaches the waiter.
//! - MUTEX-3: a loan has the bit LOCKED as a guard has it, and it alone gives the bit back. It may be given back by another thread than the
//!   one that took it, so it is not in the order of the latches that a thread holds.
//!
//! # Not here
//! Poisoning: a panic under a mutex in a background thread poisons the database; the engine does that.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::class::Class;
use super::park::{self, Attempt, Want};
use super::shim::AtomicU32;
use crate::held;
use crate::waits::{self, Object, Wait, WaitEvent};

const LOCKED: u32 = 1;
const PARKED: u32 = 2;

/// A value that one thread at a time may touch. Waits are `LWLock` / `Mutex`; held for short stretches.
pub struct Mutex<T: ?Sized> {
    word: AtomicU32,
    class: &'static Class,
    value: UnsafeCell<T>,
}

// SAFETY: MUTEX-1 gives the value to one thread at a time, which is moving it between threads.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex of the class of that name: place and purpose, `storage/wal/flush`.
    pub fn new(name: &'static str, value: T) -> Self {
        Self::of_class(Class::named(name), value)
    }

    /// A mutex of a class, which may have a rank.
    #[cfg(not(loom))]
    pub const fn of_class(class: &'static Class, value: T) -> Self {
        Self { word: AtomicU32::new(0), class, value: UnsafeCell::new(value) }
    }

    /// A mutex of a class, which may have a rank.
    #[cfg(loom)]
    pub fn of_class(class: &'static Class, value: T) -> Self {
        Self { word: AtomicU32::new(0), class, value: UnsafeCell::new(value) }
    }

    /// The value of a mutex that is no longer shared.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until no thread holds the mutex, and takes it.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        held::check_order(self.class.place());
        if self.word.compare_exchange(0, LOCKED, Acquire, Relaxed).is_err() {
            lock_slow(&self.word, self.class);
        }
        self.holds()
    }

    /// Takes the mutex if no thread holds it.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        take(&self.word)?;
        Some(self.holds())
    }

    /// Takes the mutex if nothing holds it, for as long as the loan lives: over an await too, and in another thread. It is for a value of
    /// which the program is sure that it is free: a `lock` in the meantime would wait for all that the borrower waits for.
    #[inline]
    pub fn lend(&self) -> Option<Loan<'_, T>> {
        self.word.compare_exchange(0, LOCKED, Acquire, Relaxed).ok()?;
        Some(Loan { mutex: self, value: PhantomData })
    }

    /// The value, without locking: the borrow shows that no other thread has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    #[track_caller]
    fn holds(&self) -> MutexGuard<'_, T> {
        held::mutex_taken(self.class.place());
        self.class.took();
        MutexGuard { mutex: self, not_send: PhantomData }
    }

    #[inline]
    fn unlock(&self) {
        held::mutex_given_back(self.class.place());
        self.class.gave_back();
        self.give_back();
    }

    #[inline]
    fn give_back(&self) {
        let before = self.word.fetch_sub(LOCKED, Release);
        debug_assert!(before & LOCKED != 0, "MUTEX-1");
        if before & PARKED != 0 {
            wake(&self.word);
        }
    }
}

// What needs the word alone is not generic: it would be compiled for each type of value, in each crate.

#[inline]
fn take(word: &AtomicU32) -> Option<()> {
    let mut seen = word.load(Relaxed);
    loop {
        if seen & LOCKED != 0 {
            return None;
        }
        match word.compare_exchange_weak(seen, seen | LOCKED, Acquire, Relaxed) {
            Ok(_) => return Some(()),
            Err(now) => seen = now,
        }
    }
}

fn key(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word) as usize
}

#[cold]
#[inline(never)]
fn lock_slow(word: &AtomicU32, class: &'static Class) {
    let announce = |_| loop {
        if take(word).is_some() {
            return Attempt::Got(());
        }
        if word.compare_exchange(LOCKED, LOCKED | PARKED, Relaxed, Relaxed).is_ok()
            || word.load(Relaxed) == LOCKED | PARKED
        {
            return Attempt::Announced; // PARK-1: PARKED can't go while we have the bucket's mutex
        }
    };
    park::contend(class, WaitEvent::Mutex, key(word), Want::Exclusive, |_| take(word), announce);
}

#[cold]
#[inline(never)]
fn wake(word: &AtomicU32) {
    park::wake(key(word), || {
        word.fetch_and(!PARKED, Relaxed);
    });
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("class", &self.class.name()).finish_non_exhaustive()
    }
}

/// Holds a mutex until dropped. Not `Send`: no await can come between.
#[must_use = "the mutex is given back when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives out only `&T`.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: MUTEX-1, the guard holds LOCKED.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: MUTEX-1, the guard holds LOCKED, and it is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

/// Holds a mutex until dropped, and may move between threads meanwhile (MUTEX-3).
#[must_use = "the mutex is given back when the loan is dropped"]
pub struct Loan<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// It may be shared and sent as the exclusive borrow may that it stands for.
    value: PhantomData<&'a mut T>,
}

impl<T: ?Sized> Deref for Loan<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: MUTEX-1 and MUTEX-3, the loan holds LOCKED.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for Loan<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: MUTEX-1 and MUTEX-3, the loan holds LOCKED, and it is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for Loan<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.give_back();
    }
}

/// A condition that threads wait for under a mutex. May wake without a notification: wait in a loop.
#[derive(Debug)]
pub struct Condvar {
    /// Gives the condition an address of its own.
    address: u8,
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// A condition that no thread waits for.
    pub const fn new() -> Self {
        Self { address: 0 }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.address) as usize
    }

    /// Gives the mutex back, waits for a notification, takes the mutex again. The time counts for `event`, that of
    /// taking the mutex again for the mutex.
    #[track_caller]
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>, event: WaitEvent) -> MutexGuard<'a, T> {
        let mutex = guard.mutex;
        let signal = park::enlist(self.key()); // MUTEX-2
        drop(guard);
        {
            let _wait = (!cfg!(loom)).then(|| Wait::begin(event, Object::new(0, self.key() as u64)));
            signal.wait();
        }
        mutex.lock()
    }

    /// As [`wait`](Self::wait), for at most `timeout_ns`; false if the time ran out first.
    #[track_caller]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        event: WaitEvent,
        timeout_ns: u64,
    ) -> (MutexGuard<'a, T>, bool) {
        let mutex = guard.mutex;
        let signal = park::enlist(self.key()); // MUTEX-2
        drop(guard);
        let in_time = {
            let _wait = (!cfg!(loom)).then(|| Wait::begin(event, Object::new(0, self.key() as u64)));
            let deadline_ns = waits::now_ns().saturating_add(timeout_ns);
            // The thread that took this one off the line meant to wake it: that is a notification, if a late one.
            signal.wait_until(deadline_ns) || !park::leave(self.key(), &signal)
        };
        (mutex.lock(), in_time)
    }

    /// Wakes one waiting thread, the one that has waited longest.
    pub fn notify_one(&self) {
        park::notify(self.key(), 1);
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        park::notify(self.key(), usize::MAX);
    }
}
