//! The 8 KiB page in memory: words that readers load without a latch, and the header all kinds share.
//!
//! # Structure
//! ```text
//!   0  checksum  u32   CRC-32C of bytes 4..8192 (0 while in memory)
//!   4  page id   u32
//!   8  page_lsn  u64   end of the last record that changed the page
//!  16  tree id   u64   0 where no tree owns the page
//!  24  level     u8    0 = leaf
//!  25  kind      u8    see `kind`
//!  26  flags     u16   the kind's
//!  28  the kind's own header and content
//! ```
//! All integers are little-endian.
//!
//! # Invariants
//! - BUF-1: a page's bytes are only ever loaded and stored as whole atomic words. So a reader that raced with a
//!   writer has garbage but no undefined behaviour. It uses no byte before it has validated the version.
//! - BUF-2: no accessor panics or touches bytes outside the page, whatever offsets and lengths a torn read yields: offsets wrap
//!   within the page, lengths are clamped to it.
//!
//! # Not here
//! The meaning of the content (trees, space); versions and latches (`table`).

use crate::ids::{Lsn, PageId, TreeId};
use crate::interleave::AtomicWord;
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 8192;
/// Words of a page.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// Bytes of the header that all kinds share.
pub const SHARED_HEADER_BYTES: usize = 28;

/// A page's bytes outside the pool.
pub type PageBytes = [u8; PAGE_BYTES];

/// The tree that owns the page of these bytes.
pub fn tree_of(bytes: &PageBytes) -> TreeId {
    let mut id = [0; 8];
    id.copy_from_slice(&bytes[AT_TREE..AT_TREE + 8]);
    TreeId(u64::from_le_bytes(id))
}

/// Kinds of page.
pub mod kind {
    /// Never formatted, or freed.
    pub const FREE: u8 = 0;
    /// A node of a tree.
    pub const NODE: u8 = 1;
    /// Part of an overflow chain.
    pub const OVERFLOW: u8 = 2;
    /// Space's allocation bitmap.
    pub const BITMAP: u8 = 3;
    /// Space's tree directory.
    pub const DIRECTORY: u8 = 4;
}

pub(crate) const AT_CHECKSUM: usize = 0;
const AT_PAGE_ID: usize = 4;
const AT_LSN: usize = 8;
const AT_TREE: usize = 16;
const AT_LEVEL: usize = 24;
pub(crate) const AT_KIND: usize = 25;
const AT_FLAGS: usize = 26;

const MASK: usize = PAGE_BYTES - 1;

/// A page to read from; its content is valid only after validation (BUF-1).
#[derive(Clone, Copy)]
pub struct Page<'a> {
    words: &'a [AtomicWord; PAGE_WORDS],
}

/// A page to change; only the holder of the page's exclusive latch makes one.
pub struct PageMut<'a> {
    page: Page<'a>,
}

/// One to seven bytes as the leading bytes of a number, the rest of it zero. Reads that overlap: no loop and no copy.
#[inline]
fn leading(bytes: &[u8]) -> u64 {
    let last_at = 64 - 8 * bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(u32::from_be_bytes(*last)) << last_at;
    }
    let middle = bytes.len() / 2;
    match (bytes, bytes.get(middle)) {
        ([first, .., last], Some(between)) => {
            u64::from(*first) << 56 | u64::from(*between) << (56 - 8 * middle) | u64::from(*last) << last_at
        }
        ([only], _) => u64::from(*only) << 56,
        _ => 0,
    }
}

/// Eight bytes that begin `shift` bits, fewer than 64, within the first of two words. One shift of both words: no branch that depends on where a cell begins.
#[inline]
fn shifted(low: u64, high: u64, shift: usize) -> u64 {
    ((u128::from(high) << 64 | u128::from(low)) >> (shift & 63)) as u64
}

/// The bits of the first bytes, up to eight of them.
#[inline]
pub(crate) fn first_bits(bytes: usize) -> u64 {
    if bytes < 8 { !(u64::MAX >> (8 * bytes)) } else { u64::MAX }
}

/// Bytes to compare with places of pages.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'k> {
    bytes: &'k [u8],
    /// The first eight and the next eight as numbers, zero where the bytes end. Most keys are not longer, and these are made once for some ten
    /// comparisons of a descent.
    words: (u64, u64),
}

impl<'k> Probe<'k> {
    /// These bytes.
    #[inline]
    pub fn of(bytes: &'k [u8]) -> Self {
        let words = match bytes.split_first_chunk::<8>() {
            None => (leading(bytes), 0),
            Some((first, rest)) => {
                let second =
                    rest.first_chunk::<8>().map_or_else(|| leading(rest), |second| u64::from_be_bytes(*second));
                (u64::from_be_bytes(*first), second)
            }
        };
        Probe { bytes, words }
    }

    /// The first `len` of them, or all.
    #[inline]
    pub fn up_to(&self, len: usize) -> Probe<'k> {
        // The comparison looks at no more of the numbers than there are bytes.
        Probe { bytes: &self.bytes[..len.min(self.bytes.len())], ..*self }
    }

    /// Those behind the first `len`.
    #[inline]
    pub(crate) fn behind(&self, len: usize) -> Probe<'k> {
        let bytes = self.bytes.get(len..).unwrap_or_default();
        if self.bytes.len() > 16 || len > 15 {
            return Probe::of(bytes);
        }
        // The numbers have all bytes: they are moved up, which a node on the way costs a few instructions.
        let (first, second) = self.words;
        let both = (u128::from(first) << 64 | u128::from(second)) << (8 * len);
        Probe { bytes, words: ((both >> 64) as u64, both as u64) }
    }

    /// How many bytes they are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The first eight as a number, zero where they end.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.words.0
    }

    /// The first two as a number, zero where they end.
    #[inline]
    pub(crate) fn head(&self) -> u16 {
        (self.words.0 >> 48) as u16
    }
}

impl<'a> Page<'a> {
    /// The page in these words.
    #[inline]
    pub fn new(words: &'a [AtomicWord; PAGE_WORDS]) -> Self {
        Page { words }
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        // BUF-2: the mask keeps the index inside; the compiler drops the bounds check.
        self.words[index & (PAGE_WORDS - 1)].load(Relaxed)
    }

    /// Eight bytes at any offset.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> u64 {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        shifted(self.word(index), self.word(index + 1), shift)
    }

    /// Four bytes at an offset that is a multiple of four.
    #[inline]
    pub fn u32_aligned(&self, offset: usize) -> u32 {
        debug_assert!(offset % 4 == 0);
        (self.word(offset / 8) >> ((offset % 8) * 8)) as u32
    }

    /// Two bytes at an even offset.
    #[inline]
    pub fn u16_aligned(&self, offset: usize) -> u16 {
        debug_assert!(offset % 2 == 0);
        (self.word(offset / 8) >> ((offset % 8) * 8)) as u16
    }

    /// One byte.
    #[inline]
    pub fn u8_at(&self, offset: usize) -> u8 {
        (self.word(offset / 8) >> ((offset % 8) * 8)) as u8
    }

    /// The bytes from an offset on, eight at a time; beyond the page's end it wraps (BUF-2).
    #[inline]
    fn eights(&self, offset: usize) -> impl FnMut() -> [u8; 8] {
        let (mut index, shift) = (offset / 8, (offset % 8) * 8);
        // Each word is loaded once, although its bytes mostly go to two places.
        let mut word = self.word(index);
        let page = *self;
        move || {
            index += 1;
            let (low, high) = (word, page.word(index));
            word = high;
            shifted(low, high, shift).to_le_bytes()
        }
    }

    /// Copies bytes out; beyond the page's end it wraps (BUF-2).
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        let mut next = self.eights(offset);
        let (chunks, rest) = out.as_chunks_mut::<8>();
        for chunk in chunks {
            *chunk = next();
        }
        let len = rest.len();
        if len > 0 {
            rest.copy_from_slice(&next()[..len]);
        }
    }

    /// Appends `len` bytes (at most a page) to `out`.
    pub fn append_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let mut next = self.eights(offset);
        let len = len.min(PAGE_BYTES);
        let end = out.len() + len;
        // Eight at a time, and those behind the end taken off again: pieces of unknown lengths were calls.
        out.reserve(len.next_multiple_of(8));
        for _ in 0..len.div_ceil(8) {
            out.extend_from_slice(&next());
        }
        out.truncate(end);
    }

    /// How many of `len` bytes of the page are the first ones of `other`.
    pub fn common(&self, offset: usize, len: usize, other: &[u8]) -> usize {
        let bytes = other.iter().zip(offset..PAGE_BYTES).take(len);
        bytes.take_while(|(byte, at)| self.u64_at(*at) as u8 == **byte).count()
    }

    /// Compares `len` bytes of the page with `other`, as byte strings.
    #[inline]
    pub fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
        self.compare_with(offset, len, &Probe::of(other))
    }

    /// How `len` bytes of the page compare with as many of the first of `other`, or with all of them where there are fewer.
    #[inline(always)]
    pub(crate) fn compare_start(&self, offset: usize, len: usize, other: &Probe<'_>) -> Ordering {
        if len > other.bytes.len().min(8) {
            return self.compare_with(offset, len, &other.up_to(len));
        }
        let keep = first_bits(len);
        (self.u64_at(offset & MASK).swap_bytes() & keep).cmp(&(other.words.0 & keep))
    }

    /// How `len` bytes compare with bytes that are compared with several places.
    #[inline]
    pub fn compare_with(&self, offset: usize, len: usize, other: &Probe<'_>) -> Ordering {
        let len = len.min(PAGE_BYTES);
        let shared = len.min(other.bytes.len());
        let (first, second) = other.words;
        let at = offset & MASK;
        match (self.u64_at(at).swap_bytes() & first_bits(shared)).cmp(&(first & first_bits(shared))) {
            Ordering::Equal if shared > 8 => {}
            Ordering::Equal => return len.cmp(&other.bytes.len()),
            unequal => return unequal,
        }
        let keep = first_bits(shared - 8);
        match (self.u64_at(at + 8).swap_bytes() & keep).cmp(&(second & keep)) {
            Ordering::Equal if shared > 16 => self.compare_rest(at, len, other.bytes),
            Ordering::Equal => len.cmp(&other.bytes.len()),
            unequal => unequal,
        }
    }

    /// The comparison behind the first sixteen bytes, which are equal.
    #[inline(never)]
    fn compare_rest(&self, offset: usize, len: usize, other: &[u8]) -> Ordering {
        let (mut at, mut rest) = ((offset + 16) & MASK, &other[16..len.min(other.len())]);
        while let Some((theirs, after)) = rest.split_first_chunk::<8>() {
            match self.u64_at(at).swap_bytes().cmp(&u64::from_be_bytes(*theirs)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
            at = (at + 8) & MASK;
            rest = after;
        }
        let keep = first_bits(rest.len());
        match (self.u64_at(at).swap_bytes() & keep).cmp(&leading(rest)) {
            Ordering::Equal => len.cmp(&other.len()),
            unequal => unequal,
        }
    }

    /// Whether these bytes stand at an offset.
    #[inline]
    pub(crate) fn holds(&self, offset: usize, bytes: &[u8]) -> bool {
        let mut next = self.eights(offset);
        let (eights, rest) = bytes.as_chunks::<8>();
        eights.iter().all(|eight| next() == *eight)
            && (rest.is_empty() || u64::from_be_bytes(next()) & first_bits(rest.len()) == leading(rest))
    }

    /// Copies the whole page out.
    pub fn copy_out(&self, out: &mut PageBytes) {
        copy_words(self.words, out);
    }

    /// Copies bytes `range` to the same place in `out`, and up to seven more at either end; beyond the page nothing.
    pub fn copy_range(&self, range: std::ops::Range<usize>, out: &mut PageBytes) {
        let (first, end) = (range.start.min(PAGE_BYTES) / 8, range.end.min(PAGE_BYTES).div_ceil(8));
        if first >= end {
            return;
        }
        copy_words(&self.words[first..end], &mut out[first * 8..end * 8]);
    }

    /// The number that the page says it has.
    #[inline]
    pub fn id(&self) -> PageId {
        PageId(self.u32_aligned(AT_PAGE_ID))
    }

    /// End of the last record that changed the page.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.u64_at(AT_LSN))
    }

    /// The tree that owns it.
    #[inline]
    pub fn tree(&self) -> TreeId {
        TreeId(self.u64_at(AT_TREE))
    }

    /// Its height above the leaves.
    #[inline]
    pub fn level(&self) -> u8 {
        self.u8_at(AT_LEVEL)
    }

    /// Its kind.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.u8_at(AT_KIND)
    }

    /// The kind's flags.
    #[inline]
    pub fn flags(&self) -> u16 {
        self.u16_aligned(AT_FLAGS)
    }
}

impl<'a> Deref for PageMut<'a> {
    type Target = Page<'a>;

    fn deref(&self) -> &Page<'a> {
        &self.page
    }
}

impl<'a> PageMut<'a> {
    /// The page in these words. The caller holds its exclusive latch, or no other thread can reach the page.
    pub(crate) fn new(words: &'a [AtomicWord; PAGE_WORDS]) -> Self {
        PageMut { page: Page::new(words) }
    }

    fn store(&self, index: usize, value: u64) {
        self.page.words[index & (PAGE_WORDS - 1)].store(value, Relaxed);
    }

    /// Stores `bytes` at any offset; they must end within the page.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= PAGE_BYTES, "a write beyond the page");
        let skip = offset % 8;
        let (first, rest) = bytes.split_at(bytes.len().min((8 - skip) % 8));
        let mut index = offset / 8;
        if !first.is_empty() {
            self.write_within(index, skip, first);
            index += 1;
        }
        let (words, last) = rest.as_chunks::<8>();
        for word in words {
            self.store(index, u64::from_le_bytes(*word));
            index += 1;
        }
        if !last.is_empty() {
            self.write_within(index, 0, last);
        }
    }

    /// Stores fewer than eight bytes, which end within a word.
    #[inline]
    fn write_within(&self, index: usize, skip: usize, bytes: &[u8]) {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let bits = ((1 << (8 * bytes.len())) - 1) << (8 * skip);
        self.store(index, self.word(index) & !bits | value << (8 * skip));
    }

    /// Stores two bytes at an even offset.
    #[inline]
    pub fn set_u16(&self, offset: usize, value: u16) {
        let shift = (offset % 8) * 8;
        let word = self.word(offset / 8) & !(u64::from(u16::MAX) << shift);
        self.store(offset / 8, word | (u64::from(value) << shift));
    }

    /// Stores four bytes at an offset that is a multiple of four.
    pub fn set_u32(&self, offset: usize, value: u32) {
        let shift = (offset % 8) * 8;
        let word = self.word(offset / 8) & !(u64::from(u32::MAX) << shift);
        self.store(offset / 8, word | (u64::from(value) << shift));
    }

    /// Stores eight bytes at any offset.
    pub fn set_u64(&self, offset: usize, value: u64) {
        if offset % 8 == 0 {
            return self.store(offset / 8, value);
        }
        self.write(offset, &value.to_le_bytes());
    }

    /// Moves aligned groups of four bytes: `count` of them from `from` to `to`, which may overlap.
    pub fn move_quads(&self, from: usize, to: usize, count: usize) {
        if to == from + 4 {
            self.move_quads_up(from / 4, count);
        } else if to <= from {
            for i in 0..count {
                self.set_u32(to + 4 * i, self.u32_aligned(from + 4 * i));
            }
        } else {
            for i in (0..count).rev() {
                self.set_u32(to + 4 * i, self.u32_aligned(from + 4 * i));
            }
        }
    }

    /// Moves groups by one place up, two at a time: each row that comes among others moves half of a leaf's slots.
    fn move_quads_up(&self, first: usize, count: usize) {
        let mut to = first + count;
        while to > first {
            if to % 2 == 1 && to - 1 > first {
                let index = to / 2;
                self.store(index, self.word(index - 1) >> 32 | self.word(index) << 32);
                to -= 2;
            } else {
                self.set_u32(4 * to, self.u32_aligned(4 * (to - 1)));
                to -= 1;
            }
        }
    }

    /// Replaces the whole page.
    pub fn copy_in(&self, bytes: &PageBytes) {
        for (word, chunk) in self.page.words.iter().zip(bytes.as_chunks::<8>().0) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
    }

    /// Makes it an empty page of this kind: everything zero but the shared header.
    pub fn format(&self, id: PageId, tree: TreeId, level: u8, kind: u8) {
        for word in self.page.words {
            word.store(0, Relaxed);
        }
        self.set_u32(AT_PAGE_ID, id.0);
        self.set_u64(AT_TREE, tree.0);
        self.write(AT_LEVEL, &[level, kind]);
    }

    /// Notes the end of the record that changed it.
    pub fn set_lsn(&self, lsn: Lsn) {
        self.store(AT_LSN / 8, lsn.0);
    }

    /// Sets the kind's flags.
    pub fn set_flags(&self, flags: u16) {
        self.set_u16(AT_FLAGS, flags);
    }
}

/// Copies words out. By arrays of eight bytes: a copy into a slice of eight bytes was a call for each word, 20 instructions instead of 3.
fn copy_words(words: &[AtomicWord], out: &mut [u8]) {
    for (word, chunk) in words.iter().zip(out.as_chunks_mut::<8>().0) {
        *chunk = word.load(Relaxed).to_le_bytes();
    }
}

/// Puts the checksum into a page that is about to be written.
pub fn seal(bytes: &mut PageBytes) {
    let checksum = checksum(bytes);
    bytes[AT_CHECKSUM..AT_CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// The checksum that the page's bytes should carry: CRC-32C of all bytes after it.
pub fn checksum(bytes: &PageBytes) -> u32 {
    crc32c::crc32c(&bytes[AT_CHECKSUM + 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Box<[AtomicWord; PAGE_WORDS]> {
        let words: Box<[AtomicWord]> = (0..PAGE_WORDS).map(|_| AtomicWord::new(0)).collect();
        words.try_into().unwrap_or_else(|_| panic!("a page has {PAGE_WORDS} words"))
    }

    #[test]
    fn groups_of_four_bytes_move_by_any_distance() {
        for (from, to) in [(10, 11), (11, 12), (10, 9), (11, 10), (10, 14), (14, 10)] {
            for count in 0..9 {
                let words = words();
                let page = PageMut::new(&words);
                let mut model: Vec<u32> = (0..40).map(|n| 0x0101_0101 * (n + 1)).collect();
                model.iter().enumerate().for_each(|(at, value)| page.set_u32(4 * at, *value));
                page.move_quads(4 * from, 4 * to, count);
                model.copy_within(from..from + count, to);
                let now: Vec<u32> = (0..40).map(|at| page.u32_aligned(4 * at)).collect();
                assert_eq!(now, model, "{count} from {from} to {to}");
            }
        }
    }

    #[test]
    fn bytes_come_back_from_every_offset_and_length() {
        let words = words();
        let page = PageMut::new(&words);
        let bytes: Vec<u8> = (0..40).map(|i| i * 5 + 1).collect();
        for offset in 100..117 {
            for len in 0..40 {
                page.format(PageId(7), TreeId(3), 2, kind::NODE);
                page.write(offset, &bytes[..len]);
                let mut out = Vec::new();
                page.append_to(offset, len, &mut out);
                assert_eq!(out, bytes[..len]);
                assert_eq!(page.compare(offset, len, &bytes[..len]), Ordering::Equal);
                assert!(page.holds(offset, &bytes[..len]));
                assert_eq!(page.compare(offset, len, &bytes[..len + 1]), Ordering::Less);
                assert_eq!(page.compare_with(offset, len, &Probe::of(&bytes).up_to(len)), Ordering::Equal);
                if len > 0 {
                    let mut greater = bytes[..len].to_vec();
                    greater[len - 1] += 1;
                    assert_eq!(page.compare(offset, len, &greater), Ordering::Less);
                    assert!(!page.holds(offset, &greater[..len]));
                    assert_eq!(page.compare(offset, len, &bytes[..len - 1]), Ordering::Greater);
                }
                assert_eq!(page.u8_at(offset + len), 0);
                assert_eq!((page.id(), page.tree(), page.level()), (PageId(7), TreeId(3), 2));
            }
        }
    }

    #[test]
    fn torn_offsets_and_lengths_stay_inside_the_page() {
        let words = words();
        let page = Page::new(&words);
        let mut out = Vec::new();
        for offset in [8184, 8191, 8192, 60_000, usize::MAX / 2] {
            page.append_to(offset, 1_000_000, &mut out);
            let _ = page.u64_at(offset);
            let _ = page.compare(offset, 1_000_000, &[0; 9000]);
        }
    }
}
