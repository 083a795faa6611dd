//! The node of a tree inside a page, for reading.
//!
//! # Structure
//! ```text
//!  28 count u16 | 30 heap_top u16 | 32 garbage u16 | 34 prefix_len u16 | 36 right u32 | 40 shared_tag u64
//!  48 low_len u16 | 50 high_len u16 (0xFFFF: no upper bound) | 52 tail u16 | 54..64 zero
//!  64 slots ->            ...free...           <- heap of cells | tail: prefix, low fence, high fence
//! slot  u32:  head << 16 | ghost 0x8000 | shared tag 0x4000 | own tag 0x2000 | offset of the cell
//! cell:       key length, value length, [own tag u64], key bytes beyond prefix and head, value
//! ```
//! A slot's head is the first two bytes of the key after the prefix, big-endian; the cell does not repeat them. A
//! length below 240 takes one byte, up to 4079 two; value length 255 means a 16-byte overflow reference. An inner
//! node's values are child page numbers; its first key is its low fence.
//!
//! # Invariants
//! - BTR-1: keys in a node are strictly ascending, start with the node's prefix, and lie in `[low, high)`.
//! - BTR-2: decoding the bytes of a torn read never leaves the page, never panics and never loops for ever.
//!
//! # Not here
//! Changing a node (`edit`), building a node (`image`), finding the right node (`descend`).

use crate::buffer::page::{PAGE_BYTES, Page, Probe, first_bits};
use crate::ids::{PageId, Tag};
use std::cmp::Ordering;

pub(super) const AT_COUNT: usize = 28;
pub(super) const AT_HEAP_TOP: usize = 30;
pub(super) const AT_GARBAGE: usize = 32;
pub(super) const AT_PREFIX_LEN: usize = 34;
pub(super) const AT_RIGHT: usize = 36;
pub(super) const AT_SHARED_TAG: usize = 40;
pub(super) const AT_LOW_LEN: usize = 48;
pub(super) const AT_HIGH_LEN: usize = 50;
pub(super) const AT_TAIL: usize = 52;
pub(super) const SLOTS: usize = 64;
pub(super) const SLOT_BYTES: usize = 4;
pub(super) const NO_HIGH: u16 = u16::MAX;

pub(super) const GHOST: u32 = 0x8000;
pub(super) const SHARED: u32 = 0x4000;
pub(super) const OWN: u32 = 0x2000;
pub(super) const OFFSET: u32 = 0x1fff;

/// Page flag: rows of this leaf have locks in the lock manager (a hint of the layer above).
pub const MEMORY_LOCKS: u16 = 1;

/// Bytes of an overflow reference: length u32, first page u32, chain u64.
pub const OVERFLOW_REF_BYTES: usize = 16;
pub(super) const OVERFLOW_CODE: u8 = 255;
pub(super) const LONG: usize = 240;
/// More slots than a page can hold.
const SLOTS_MAX: usize = (PAGE_BYTES - SLOTS) / SLOT_BYTES;

/// A node to read; what it says counts only after the page's version was validated.
#[derive(Clone, Copy)]
pub(super) struct Node<'a>(pub(super) Page<'a>);

/// A cell's parts, as offsets in the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) offset: usize,
    /// Key bytes after the prefix, the head's included.
    pub(super) suffix_len: usize,
    pub(super) rest_at: usize,
    pub(super) value_at: usize,
    pub(super) value_len: usize,
    pub(super) overflow: bool,
    pub(super) own_tag: Option<Tag>,
}

impl Cell {
    pub(super) fn rest_len(&self) -> usize {
        self.suffix_len.saturating_sub(2)
    }

    /// Bytes from its start to its end.
    pub(super) fn len(&self) -> usize {
        self.value_at + self.value_len - self.offset
    }
}

/// Bytes that a length takes in a cell.
pub(super) fn length_bytes(len: usize) -> usize {
    if len < LONG { 1 } else { 2 }
}

/// Encodes a length; says how many bytes it took.
pub(super) fn put_length(len: usize, out: &mut [u8]) -> usize {
    if len < LONG {
        out[0] = len as u8;
        return 1;
    }
    let over = len - LONG;
    assert!(over < 15 * 256, "a length of {len} does not fit a cell");
    out[0] = (LONG + over / 256) as u8;
    out[1] = (over % 256) as u8;
    2
}

/// Decodes the length in the first bytes of a little-endian word; (length, bytes taken).
#[inline]
fn length_of(word: u64) -> (usize, usize) {
    let (first, second) = (usize::from(word as u8), usize::from((word >> 8) as u8));
    if first < LONG { (first, 1) } else { (LONG + (first - LONG) * 256 + second, 2) }
}

/// The first two bytes of a key after the prefix, zero where it ends.
#[inline]
pub(super) fn head_of(suffix: &[u8]) -> u16 {
    match suffix {
        [] => 0,
        [a] => u16::from(*a) << 8,
        [a, b, ..] => u16::from_be_bytes([*a, *b]),
    }
}

/// A search from `low` on, first near it and then in longer and longer steps: for keys that come in order and are close to each other.
pub(super) fn search_near(
    mut low: usize,
    mut high: usize,
    compare: impl Fn(usize) -> Ordering,
) -> Result<usize, usize> {
    // The first two one by one: every second row is a common case.
    let (mut step, mut after) = (0, 0);
    while low < high {
        let at = low + step.min((high - low) / 2);
        match compare(at) {
            Ordering::Less => low = at + 1,
            Ordering::Greater => high = at,
            Ordering::Equal => return Ok(at),
        }
        (step, after) = (after, 2 * after + 1);
    }
    Err(low)
}

/// How many leading bytes two keys share.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

impl<'a> Node<'a> {
    /// Number of rows or children.
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::from(self.0.u16_aligned(AT_COUNT)).min(SLOTS_MAX)
    }

    pub(super) fn heap_top(&self) -> usize {
        usize::from(self.0.u16_aligned(AT_HEAP_TOP)).min(PAGE_BYTES)
    }

    pub(super) fn garbage(&self) -> usize {
        usize::from(self.0.u16_aligned(AT_GARBAGE))
    }

    #[inline]
    pub(super) fn prefix_len(&self) -> usize {
        usize::from(self.0.u16_aligned(AT_PREFIX_LEN)).min(PAGE_BYTES)
    }

    /// The next node to the right on the same level; 0 where there is none.
    pub(super) fn right(&self) -> PageId {
        PageId(self.0.u32_aligned(AT_RIGHT))
    }

    pub(super) fn shared_tag(&self) -> Tag {
        Tag(self.0.u64_at(AT_SHARED_TAG))
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.0.level() == 0
    }

    pub(super) fn tail(&self) -> usize {
        usize::from(self.0.u16_aligned(AT_TAIL)).min(PAGE_BYTES)
    }

    fn low_at(&self) -> (usize, usize) {
        (self.tail() + self.prefix_len(), usize::from(self.0.u16_aligned(AT_LOW_LEN)))
    }

    fn high_at(&self) -> Option<(usize, usize)> {
        let len = self.0.u16_aligned(AT_HIGH_LEN);
        let (low_at, low_len) = self.low_at();
        (len != NO_HIGH).then_some((low_at + low_len, usize::from(len)))
    }

    /// Whether `key >= low fence`.
    pub(super) fn low_admits(&self, key: &[u8]) -> bool {
        self.low_against(&Probe::of(key)) != Ordering::Greater
    }

    /// Whether `key < high fence`.
    pub(super) fn high_admits(&self, key: &[u8]) -> bool {
        self.high_against(&Probe::of(key)) == Ordering::Greater
    }

    /// How the low fence compares with a key.
    #[inline]
    pub(super) fn low_against(&self, key: &Probe<'_>) -> Ordering {
        let (at, len) = self.low_at();
        self.0.compare_with(at, len, key)
    }

    /// How the high fence compares with a key; no fence is above all keys.
    #[inline]
    pub(super) fn high_against(&self, key: &Probe<'_>) -> Ordering {
        self.high_at().map_or(Ordering::Greater, |(at, len)| self.0.compare_with(at, len, key))
    }

    /// Whether `low fence <= key < high fence`.
    #[inline]
    pub(super) fn owns(&self, key: &Probe<'_>) -> bool {
        self.low_against(key) != Ordering::Greater && self.high_against(key) == Ordering::Greater
    }

    /// Whether `high fence < bound`, where no bound is above all.
    pub(super) fn high_is_below(&self, bound: Option<&[u8]>) -> bool {
        match (self.high_at(), bound) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some((at, len)), Some(bound)) => self.0.compare(at, len, bound) == Ordering::Less,
        }
    }

    /// The low fence, inclusive.
    pub(super) fn low(&self) -> Vec<u8> {
        let (at, len) = self.low_at();
        let mut out = Vec::new();
        self.0.append_to(at, len, &mut out);
        out
    }

    /// The high fence, exclusive; none where the node is the last of its level.
    pub(super) fn high(&self) -> Option<Vec<u8>> {
        let (at, len) = self.high_at()?;
        let mut out = Vec::new();
        self.0.append_to(at, len, &mut out);
        Some(out)
    }

    #[inline]
    pub(super) fn slot(&self, index: usize) -> u32 {
        self.0.u32_aligned((SLOTS + SLOT_BYTES * index) & (PAGE_BYTES - 1))
    }

    /// The parts of a slot's cell; lengths are at most a page's (BTR-2). Both lengths stand in the first eight bytes, which are loaded at once: a
    /// search decodes each cell whose head is that of its key.
    #[inline]
    pub(super) fn cell(&self, slot: u32) -> Cell {
        let offset = (slot & OFFSET) as usize;
        let start = self.0.u64_at(offset);
        let (suffix_len, taken) = length_of(start);
        let (mut at, start) = (offset + taken, start >> (8 * taken));
        let overflow = start as u8 == OVERFLOW_CODE;
        let (value_len, taken) = if overflow { (OVERFLOW_REF_BYTES, 1) } else { length_of(start) };
        at += taken;
        let own_tag = (slot & OWN != 0).then(|| Tag(self.0.u64_at(at)));
        if own_tag.is_some() {
            at += 8;
        }
        let rest = suffix_len.saturating_sub(2);
        Cell { offset, suffix_len, rest_at: at, value_at: at + rest, value_len, overflow, own_tag }
    }

    /// The tag of a row.
    pub(super) fn tag(&self, slot: u32, cell: &Cell) -> Tag {
        match cell.own_tag {
            Some(tag) => tag,
            None if slot & SHARED != 0 => self.shared_tag(),
            None => Tag::SETTLED,
        }
    }

    /// Appends the key of a slot.
    pub(super) fn append_key(&self, slot: u32, cell: &Cell, out: &mut Vec<u8>) {
        self.0.append_to(self.tail(), self.prefix_len(), out);
        let head = ((slot >> 16) as u16).to_be_bytes();
        out.extend_from_slice(&head[..cell.suffix_len.min(2)]);
        self.0.append_to(cell.rest_at, cell.rest_len(), out);
    }

    /// The key at an index.
    pub(super) fn key(&self, index: usize) -> Vec<u8> {
        let slot = self.slot(index);
        let mut out = Vec::new();
        self.append_key(slot, &self.cell(slot), &mut out);
        out
    }

    /// How a slot's key compares with a key whose part after the prefix is `suffix`, and after the head `rest`.
    #[inline]
    fn compare_slot(&self, slot: u32, suffix: &Probe<'_>, rest: &Probe<'_>) -> Ordering {
        match ((slot >> 16) as u16).cmp(&suffix.head()) {
            Ordering::Equal => self.compare_tail(slot, suffix, rest),
            unequal => unequal,
        }
    }

    /// The same, of a slot with the key's head. In the first inner node of each level, the root among them, that is every slot: its first key is empty, so
    /// that its keys share no prefix, and the heads of most are the same.
    #[inline]
    fn compare_tail(&self, slot: u32, suffix: &Probe<'_>, rest: &Probe<'_>) -> Ordering {
        let start = self.0.u64_at((slot & OFFSET) as usize);
        let (len, value_len) = (usize::from(start as u8), usize::from((start >> 8) as u8));
        if len > 8 || slot & OWN != 0 || (LONG..OVERFLOW_CODE.into()).contains(&value_len) {
            return self.compare_tail_at_length(slot, suffix, rest);
        }
        // Both lengths and all of the key are in the word. Where two keys are not equal with zeros behind them, their order is that of the bytes.
        let mine = (start >> 16).swap_bytes() & first_bits(len.saturating_sub(2));
        mine.cmp(&rest.first()).then(len.cmp(&suffix.len()))
    }

    #[inline(never)]
    fn compare_tail_at_length(&self, slot: u32, suffix: &Probe<'_>, rest: &Probe<'_>) -> Ordering {
        let cell = self.cell(slot);
        if cell.suffix_len <= 2 || suffix.len() <= 2 {
            return cell.suffix_len.cmp(&suffix.len());
        }
        self.0.compare_with(cell.rest_at, cell.rest_len(), rest)
    }

    /// Where `key` stands (`Ok`), or would (`Err`).
    #[inline]
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.search_for(&Probe::of(key))
    }

    /// The same, for bytes that are looked for in several nodes.
    #[inline]
    pub(super) fn search_for(&self, key: &Probe<'_>) -> Result<usize, usize> {
        let count = self.count();
        let prefix_len = self.prefix_len();
        match self.0.compare_start(self.tail(), prefix_len, key) {
            // The prefix is longer than the key, or greater: every key here is greater.
            Ordering::Greater => return Err(0),
            Ordering::Less => return Err(count),
            Ordering::Equal => {}
        }
        let suffix = key.behind(prefix_len);
        let (head, rest) = (u32::from(suffix.head()), suffix.behind(2));
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            let slot = self.slot(middle);
            let mine = slot >> 16;
            let is_below = match mine == head {
                false => mine < head,
                true => match self.compare_tail(slot, &suffix, &rest) {
                    Ordering::Equal => return Ok(middle),
                    unequal => unequal == Ordering::Less,
                },
            };
            (low, high) = if is_below { (middle + 1, high) } else { (low, middle) };
        }
        Err(low)
    }

    /// The same, where `key` is probably above all rows: the last one is looked at first.
    #[inline]
    pub(super) fn search_behind(&self, key: &Probe<'_>) -> Result<usize, usize> {
        let (count, prefix_len) = (self.count(), self.prefix_len());
        if count > 0 && self.0.compare_start(self.tail(), prefix_len, key).is_eq() {
            let suffix = key.behind(prefix_len);
            if self.compare_slot(self.slot(count - 1), &suffix, &suffix.behind(2)) == Ordering::Less {
                return Err(count);
            }
        }
        self.search_for(key)
    }

    /// The same, where `key` is above the first `low` rows.
    pub(super) fn search_from(&self, key: &[u8], low: usize) -> Result<usize, usize> {
        let (key, prefix_len) = (Probe::of(key), self.prefix_len());
        if self.0.compare_start(self.tail(), prefix_len, &key).is_ne() {
            return self.search_for(&key);
        }
        let suffix = key.behind(prefix_len);
        let rest = suffix.behind(2);
        search_near(low, self.count(), |index| self.compare_slot(self.slot(index), &suffix, &rest))
    }

    /// The index of the child that covers `key`; none in an empty (torn) node.
    #[inline]
    pub(super) fn child_index(&self, key: &[u8]) -> Option<usize> {
        self.child_index_for(&Probe::of(key))
    }

    /// The same, for bytes that are looked for in several nodes.
    #[inline]
    pub(super) fn child_index_for(&self, key: &Probe<'_>) -> Option<usize> {
        match self.search_for(key) {
            Ok(index) => Some(index),
            Err(index) => index.checked_sub(1),
        }
    }

    /// The child at an index.
    #[inline]
    pub(super) fn child(&self, index: usize) -> PageId {
        PageId(self.0.u64_at(self.cell(self.slot(index)).value_at) as u32)
    }

    /// Free bytes between slots and heap.
    pub(super) fn gap(&self) -> usize {
        self.heap_top().saturating_sub(SLOTS + SLOT_BYTES * self.count())
    }

    /// Bytes that a node of any rows with these fences takes: header, prefix, fences.
    pub(super) fn fixed_bytes(&self) -> usize {
        SLOTS + (PAGE_BYTES - self.tail())
    }

    /// Bytes in use: what a node of the same rows takes after its heap was compacted.
    pub(super) fn used_bytes(&self) -> usize {
        (PAGE_BYTES - self.gap()).saturating_sub(self.garbage())
    }
}
