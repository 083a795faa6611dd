//! A value behind a latch: many readers or one writer.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::class::Class;
use super::latch::{Exclusive, Latch, Shared};
use crate::waits::WaitEvent;

/// A value that many threads may read or one may change. Waits are `LWLock` / `RwLock`. Its guards are latches: counted,
/// not `Send`, never held over I/O.
pub struct RwLock<T: ?Sized> {
    latch: Latch,
    value: UnsafeCell<T>,
}

// SAFETY: LATCH-1 excludes every other thread while one writes; moving the lock moves the value.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: LATCH-1; readers on several threads at once need `T: Sync`, a writer elsewhere `T: Send`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// A value of the class of that name.
    pub fn new(name: &'static str, value: T) -> Self {
        Self::of_class(Class::named(name), value)
    }

    /// A value of a class, which may have a rank.
    pub fn of_class(class: &'static Class, value: T) -> Self {
        Self { latch: Latch::new(class).with_event(WaitEvent::RwLock), value: UnsafeCell::new(value) }
    }

    /// The value of a lock that is no longer shared.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no thread changes the value, and reads it.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> ReadGuard<'_, T> {
        ReadGuard { _hold: self.latch.shared(), value: &self.value }
    }

    /// Waits until no thread has the value, and changes it.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> WriteGuard<'_, T> {
        WriteGuard { _hold: self.latch.exclusive(), value: &self.value }
    }

    /// Changes the value if no thread has it.
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        Some(WriteGuard { _hold: self.latch.try_exclusive()?, value: &self.value })
    }

    /// The value, without locking: the borrow shows that no other thread has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").field("latch", &self.latch).finish_non_exhaustive()
    }
}

/// Reads the value until dropped.
#[must_use = "the value is given back when the guard is dropped"]
pub struct ReadGuard<'a, T: ?Sized> {
    _hold: Shared<'a>,
    value: &'a UnsafeCell<T>,
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: LATCH-1, the guard holds the latch shared.
        unsafe { &*self.value.get() }
    }
}

/// Changes the value until dropped.
#[must_use = "the value is given back when the guard is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    _hold: Exclusive<'a>,
    value: &'a UnsafeCell<T>,
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: LATCH-1, the guard holds the latch exclusively.
        unsafe { &*self.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: LATCH-1, the guard holds the latch exclusively, and it is borrowed exclusively.
        unsafe { &mut *self.value.get() }
    }
}
