//! The translation array: page number to one atomic word of frame, state and version.
//!
//! # States of an entry
//! ```text
//!   frame:24 | state:3 | version:37
//!
//!   ABSENT    not in memory; the frame means nothing      -> LOADING by the task that will read it
//!   LOADING   one task reads it; others wait at the gate  -> RESIDENT, or ABSENT if it gave up
//!   RESIDENT  in `frame`; optimistic readers may copy     -> LATCHED by compare-and-swap
//!   LATCHED   one thread may change it; never at a wait   -> RESIDENT, or ABSENT when it was evicted
//! ```
//!
//! # Invariants
//! - BUF-3: the version grows whenever the content may have changed: when a latch is released after a change, at an
//!   eviction, at a load. A reader that finds the same word after its copy as before the copy has a consistent copy of
//!   that page.
//! - BUF-4: the frame of an entry changes only in LOADING -> RESIDENT.
//! - BUF-5: a thread that holds LATCHED neither waits nor performs I/O.

use crate::ids::PageId;
use crate::interleave::AtomicU64;
use std::sync::OnceLock;

const FRAME_BITS: u32 = 24;
const STATE_BITS: u32 = 3;
const VERSION_SHIFT: u32 = FRAME_BITS + STATE_BITS;
/// Frames that an entry can name: 128 GiB of memory.
pub(super) const FRAMES_MAX: usize = 1 << FRAME_BITS;

const SEGMENT_ENTRIES: usize = 1 << 15;
const SEGMENTS: usize = (1 << 32) / SEGMENT_ENTRIES;

/// The state of an entry's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Loading,
    Resident,
    Latched,
}

/// The value of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    pub(super) fn state(self) -> State {
        match (self.0 >> FRAME_BITS) & 7 {
            0 => State::Absent,
            1 => State::Loading,
            2 => State::Resident,
            _ => State::Latched,
        }
    }

    #[inline]
    pub(super) fn is_resident(self) -> bool {
        (self.0 >> FRAME_BITS) & 7 == 2
    }

    #[inline]
    pub(super) fn frame(self) -> usize {
        (self.0 & (FRAMES_MAX as u64 - 1)) as usize
    }

    /// The version alone.
    pub(super) fn version(self) -> u64 {
        self.0 >> VERSION_SHIFT
    }

    pub(super) fn with_state(self, state: State) -> Word {
        let code = match state {
            State::Absent => 0,
            State::Loading => 1,
            State::Resident => 2,
            State::Latched => 3,
        };
        Word((self.0 & !(7 << FRAME_BITS)) | (code << FRAME_BITS))
    }

    pub(super) fn with_frame(self, frame: usize) -> Word {
        assert!(frame < FRAMES_MAX, "BUF-10: frame {frame} has no place in a word");
        Word((self.0 & !(FRAMES_MAX as u64 - 1)) | frame as u64)
    }

    pub(super) fn bumped(self) -> Word {
        Word(self.0.wrapping_add(1 << VERSION_SHIFT))
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in frame {} at version {}", self.state(), self.frame(), self.version())
    }
}

/// All entries; memory for them comes in segments as pages are first touched (one byte for each KiB of data).
pub(super) struct Table {
    segments: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    pub(super) fn entry(&self, page: PageId) -> &AtomicU64 {
        let page = page.0 as usize;
        let segment = &self.segments[page / SEGMENT_ENTRIES];
        let entries = match segment.get() {
            Some(entries) => entries,
            None => segment.get_or_init(|| (0..SEGMENT_ENTRIES).map(|_| AtomicU64::new(0)).collect()),
        };
        &entries[page % SEGMENT_ENTRIES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_word_are_independent() {
        let word = Word(0).with_frame(77).with_state(State::Latched).bumped().bumped();
        assert_eq!((word.frame(), word.state(), word.version()), (77, State::Latched, 2));
        let word = word.with_state(State::Resident).with_frame(FRAMES_MAX - 1);
        assert_eq!((word.frame(), word.state(), word.version()), (FRAMES_MAX - 1, State::Resident, 2));
        assert_eq!(Word(u64::MAX).with_state(State::Absent).bumped().version(), 0);
    }
}
