//! The hook in the program's allocator: glibc's, counted.
//!
//! No measurement has favoured another allocator so far. After a peak, `malloc_trim` gives the free pages back to the system.
#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout, System};

use super::{allocated, freed};

/// The system's allocator, with every byte entered in an account. A program installs it by `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounted;

// SAFETY: MEM-5: every call goes to `System` unchanged and its answer comes back unchanged; counting
// touches plain cells and atomics, allocates nothing and can't unwind.
// Inlined in the crate that installs it, which therefore has to be optimised (`cli/allocator`).
unsafe impl GlobalAlloc for Accounted {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: MEM-5, the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: MEM-5, the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: MEM-5, the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= layout.size() {
            allocated(size - layout.size());
        } else {
            freed(layout.size() - size);
        }
        // SAFETY: MEM-5, the caller's promise is passed on.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Gives free pages of the heap back to the system.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: MEM-5: a call of the C library without arguments that could be wrong.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How many arenas the allocator has where the process has few addresses: each sets 64 MB of them aside.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS_FEW: libc::c_int = 4;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ADDRESSES_FEW: u64 = 64 << 30;

/// To be called before the first thread: where RLIMIT_AS gives the process few addresses, the allocator sets few of them aside. It has eight arenas for each
/// processor otherwise, a gigabyte with two of them, and an allocation fails though the accounts have room.
pub fn limit_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if getrlimit(Resource::As).current.is_some_and(|bytes| bytes < ADDRESSES_FEW) {
        // SAFETY: MEM-5: a setting of the C library, which says itself whether it takes the value.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, ARENAS_FEW);
        }
    }
}
