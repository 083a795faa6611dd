//! The ranges of an index that a scan reads behind its first one, as `= ANY` of a list gives them.
//!
//! One scan reads them all, in the memory of the first: so it can put the entries of many ranges in the order of their rows before it looks the rows up,
//! and has the leaves of the next ranges read together where they are not in memory.

use clearway_storage::btree::KeyRange;

/// So many ranges are asked about at once.
const LOOK_EVERY: u32 = 32;
/// The entries of so many ranges are put in order at once, the first time; each time it is four times as many: a statement may want a few rows.
const GATHERED_FIRST: usize = 32;

/// Ranges, and how many of them have been read.
#[derive(Default)]
pub(super) struct NextRanges {
    /// The next at the end.
    left: Vec<KeyRange>,
    until_look: u32,
    /// Ranges begun since [`NextRanges::take_begun`].
    begun: u64,
    gathered: usize,
    gathered_max: usize,
}

impl NextRanges {
    /// The next of these is at the end.
    pub(super) fn new(left: Vec<KeyRange>) -> NextRanges {
        NextRanges { left, gathered_max: GATHERED_FIRST, ..NextRanges::default() }
    }

    /// Goes to the next range, if there is one.
    pub(super) fn take(&mut self) -> Option<KeyRange> {
        let range = self.left.pop()?;
        self.begun += 1;
        self.gathered += 1;
        Some(range)
    }

    /// Whether it is time to ask whether the leaves of the next ranges are in memory: of a few ranges, and then now and then.
    pub(super) fn is_time_to_look(&mut self) -> bool {
        let is_time = self.until_look == 0 && self.left.len() > 1;
        self.until_look = if is_time { LOOK_EVERY } else { self.until_look.saturating_sub(1) };
        is_time
    }

    /// Where a range begins that is `n` ranges behind the next one, of those that are asked about at once.
    pub(super) fn start(&self, n: usize) -> Option<&[u8]> {
        let at = self.left.len().checked_sub(n + 1).filter(|_| n < LOOK_EVERY as usize)?;
        Some(&self.left[at].from)
    }

    /// How many ranges were begun since the last call.
    pub(super) fn take_begun(&mut self) -> u64 {
        std::mem::take(&mut self.begun)
    }

    /// A window of entries begins.
    pub(super) fn begin_window(&mut self) {
        if self.gathered >= self.gathered_max {
            self.gathered_max = self.gathered_max.saturating_mul(4);
        }
        self.gathered = 0;
    }

    /// Whether the window has the entries of enough ranges.
    pub(super) fn is_window_full(&self) -> bool {
        self.gathered >= self.gathered_max && !self.left.is_empty()
    }
}
