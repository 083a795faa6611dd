//! An 8 KiB page as 1,024 atomic words: readers need no latch to be sound, only to be right.
//!
//! Layout: word 0 {count u16, prefix length u16, level u16, free end u16 (in words)}, then one word a slot
//! {head u32, cell u16 (in words), cell length u16 (in bytes)} ascending by key; cells grow from
//! the end, each begins on a word: {key length u16, value length u16, 4 bytes of prelude},
//! key without the page's prefix, value.
//!
//! Invariants
//! PAGE-1 No index out of a page is trusted: word indexes are masked, lengths bounded, since an
//!        optimistic reader may see any mixture of old and new words.
//! PAGE-2 What a reader takes from a page is used only after the version was validated.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const WORDS: usize = 1024;
const MASK: usize = WORDS - 1;
const FIRST_SLOT: usize = 8;
/// Longest cell that the local buffer takes.
pub const CELL_MAX: usize = 256;

#[repr(C, align(64))]
pub struct Page([AtomicU64; WORDS]);

#[derive(Clone, Copy)]
pub struct Header {
    pub count: usize,
    pub prefix: usize,
    pub level: usize,
    free_end: usize,
}

#[derive(Clone, Copy)]
pub struct Slot(u64);

impl Slot {
    pub fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }
    pub fn cell(self) -> usize {
        (self.0 >> 16) as usize & MASK
    }
    pub fn len(self) -> usize {
        (self.0 as usize & 0xffff).min(CELL_MAX)
    }
}

/// A cell copied out of a page.
pub struct CellBuf([u8; CELL_MAX]);

impl CellBuf {
    pub fn new() -> CellBuf {
        CellBuf([0; CELL_MAX])
    }
    pub fn key(&self) -> &[u8] {
        let len = u16::from_le_bytes([self.0[0], self.0[1]]) as usize;
        &self.0[8..8 + len.min(CELL_MAX - 8)]
    }
    pub fn value(&self) -> &[u8] {
        let from = 8 + self.key().len();
        let len = u16::from_le_bytes([self.0[2], self.0[3]]) as usize;
        &self.0[from..from + len.min(CELL_MAX - from)]
    }
    pub fn words_mut(&mut self) -> impl Iterator<Item = &mut [u8; 8]> {
        self.0.as_chunks_mut::<8>().0.iter_mut()
    }
}

/// The first four bytes of a key after the page's prefix, as a number that compares alike.
pub fn head(key: &[u8], prefix: usize) -> u32 {
    let rest = key.get(prefix..).unwrap_or(&[]);
    let mut bytes = [0; 4];
    let n = rest.len().min(4);
    bytes[..n].copy_from_slice(&rest[..n]);
    u32::from_be_bytes(bytes)
}

impl Page {
    pub fn new() -> Page {
        Page([const { AtomicU64::new(0) }; WORDS])
    }

    #[inline(always)]
    pub fn word(&self, at: usize) -> u64 {
        self.0[at & MASK].load(Relaxed)
    }

    /// Under the exclusive latch, or while nobody else knows the page.
    #[inline(always)]
    pub fn set(&self, at: usize, word: u64) {
        self.0[at & MASK].store(word, Relaxed);
    }

    pub fn header(&self) -> Header {
        let word = self.word(0);
        Header {
            count: (word as usize & 0xffff).min(WORDS - FIRST_SLOT),
            prefix: (word >> 16) as usize & 0xffff,
            level: (word >> 32) as usize & 0xffff,
            free_end: (word >> 48) as usize,
        }
    }

    pub fn slot(&self, at: usize) -> Slot {
        Slot(self.word(FIRST_SLOT + at))
    }

    /// Copies a cell, word by word.
    #[inline]
    pub fn copy(&self, slot: Slot, out: &mut CellBuf) {
        let (cell, words) = (slot.cell(), slot.len().div_ceil(8));
        // One bounds check for the whole cell, so that the loop has none.
        let Some(source) = self.0.get(cell..cell + words) else {
            return;
        };
        for (word, bytes) in source.iter().zip(out.words_mut()) {
            *bytes = word.load(Relaxed).to_le_bytes();
        }
    }

    /// The key of a cell against `rest` (the key sought, without the prefix), on the page itself.
    fn compare(&self, slot: Slot, rest: &[u8]) -> std::cmp::Ordering {
        let cell = slot.cell();
        let len = (self.word(cell) as usize & 0xffff).min(CELL_MAX);
        let mut at = 0;
        while at < len.min(rest.len()) {
            let bytes = self.word(cell + 1 + at / 8).to_le_bytes();
            let n = (len - at).min(rest.len() - at).min(8);
            match bytes[..n].cmp(&rest[at..at + n]) {
                std::cmp::Ordering::Equal => at += n,
                other => return other,
            }
        }
        len.cmp(&rest.len())
    }

    /// The last slot whose key is at or below `key`, and whether it is equal.
    #[inline]
    pub fn find(&self, header: Header, key: &[u8]) -> (usize, bool) {
        let want = head(key, header.prefix);
        let rest = key.get(header.prefix..).unwrap_or(&[]);
        let (mut low, mut len) = (0, header.count);
        // First by heads only, without a branch to mispredict.
        while len > 0 {
            let half = len / 2;
            let below = self.slot(low + half).head() < want;
            low = if below { low + half + 1 } else { low };
            len = if below { len - half - 1 } else { half };
        }
        while low < header.count && self.slot(low).head() == want {
            match self.compare(self.slot(low), rest) {
                std::cmp::Ordering::Less => low += 1,
                std::cmp::Ordering::Equal => return (low, true),
                std::cmp::Ordering::Greater => break,
            }
        }
        (low.saturating_sub(1), false)
    }

    pub fn format(&self, level: usize, prefix: usize) {
        self.put_header(Header {
            count: 0,
            prefix,
            level,
            free_end: WORDS,
        });
    }

    fn put_header(&self, h: Header) {
        self.set(
            0,
            (h.free_end as u64) << 48
                | (h.level as u64) << 32
                | (h.prefix as u64) << 16
                | h.count as u64,
        );
    }

    /// Appends a row behind all others; false if the page is full.
    pub fn push(&self, key: &[u8], value: &[u8]) -> bool {
        let mut header = self.header();
        let rest = &key[header.prefix..];
        let len = 8 + rest.len() + value.len();
        let words = len.div_ceil(8);
        if FIRST_SLOT + header.count + 1 + words > header.free_end {
            return false;
        }
        header.free_end -= words;
        let mut bytes = [0u8; CELL_MAX];
        bytes[..2].copy_from_slice(&(rest.len() as u16).to_le_bytes());
        bytes[2..4].copy_from_slice(&(value.len() as u16).to_le_bytes());
        bytes[8..8 + rest.len()].copy_from_slice(rest);
        bytes[8 + rest.len()..len].copy_from_slice(value);
        for (at, word) in bytes.as_chunks::<8>().0.iter().take(words).enumerate() {
            self.set(header.free_end + at, u64::from_le_bytes(*word));
        }
        let head = head(key, header.prefix) as u64;
        self.set(
            FIRST_SLOT + header.count,
            head << 32 | (header.free_end as u64) << 16 | len as u64,
        );
        header.count += 1;
        self.put_header(header);
        true
    }

    /// Replaces a value by one of the same length: the cell is read, changed and written back.
    pub fn overwrite(&self, slot: Slot, value: &[u8]) {
        let mut cell = CellBuf::new();
        self.copy(slot, &mut cell);
        let from = 8 + cell.key().len();
        cell.0[from..from + value.len()].copy_from_slice(value);
        for (at, bytes) in cell.words_mut().take(slot.len().div_ceil(8)).enumerate() {
            self.set(slot.cell() + at, u64::from_le_bytes(*bytes));
        }
    }
}
