//! The log's buffer in memory: writers reserve positions with one atomic addition and copy in parallel; one
//! reader takes the records that are complete.
//!
//! # Structure
//! ```text
//!   taken (flushed) ........ complete | being copied | complete ........ tail
//!        reader ──>                     stops here                        fetch_add
//! ```
//! The ring is an array of atomic words. A record's first word (length and CRC, never zero) is stored last, with
//! release; until then it is zero. So the reader sees where the complete part ends without a lock and without a
//! second array. LeanStore and Aether keep per-slot marks for this purpose. PostgreSQL's insertion locks and
//! InnoDB's `recent_written` links cost a shared store per record beside the copy.
//!
//! # Invariants
//! - WAL-3: within one ring length from the reader's position, every word that is not part of a copied record is
//!   zero. The reader zeroes a word when it has read it, and only then is its room given back.
//! - WAL-4: a writer that reserves a position holds credit for its bytes, so positions never overtake the reader.
//! - WAL-5: between reserving a position and storing the first word there is no await, no allocation and no panic.

use crate::ids::Lsn;
use crate::record::LsnRange;
use crate::zeroed;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reader takes so many words at a time: most records whole.
const WORDS_AT_A_TIME: usize = 64;

/// The buffer. Its capacity is a power of two.
pub struct Ring {
    words: Box<[AtomicU64]>,
    tail: AtomicU64,
}

impl Ring {
    /// An empty ring of `capacity_bytes` whose next position is `start`.
    ///
    /// # Panics
    /// If the capacity is not a power of two of at least 4096.
    pub fn new(capacity_bytes: usize, start: Lsn) -> Ring {
        assert!(capacity_bytes.is_power_of_two() && capacity_bytes >= 4096, "ring of {capacity_bytes} bytes");
        assert!(start.0 % 8 == 0, "WAL-4: records begin at multiples of 8, not at {start}");
        Ring { words: zeroed::words(capacity_bytes / 8), tail: AtomicU64::new(start.0) }
    }

    /// The next position.
    pub fn tail(&self) -> Lsn {
        Lsn(self.tail.load(Ordering::SeqCst))
    }

    /// Reserves `len` bytes, a multiple of 8, for which the caller holds credit (WAL-4).
    pub fn reserve(&self, len: usize) -> LsnRange {
        assert!(len <= self.words.len() * 8, "a record of {len} bytes in a ring of {}", self.words.len() * 8);
        assert!(len >= 8 && len % 8 == 0, "WAL-4: a record of {len} bytes, which is no multiple of 8");
        let start = self.tail.fetch_add(len as u64, Ordering::SeqCst);
        LsnRange { start: Lsn(start), end: Lsn(start + len as u64) }
    }

    fn index(&self, position: u64) -> usize {
        // The length is a power of two; masking keeps the index inside (WAL-5: no panic).
        (position / 8) as usize & (self.words.len() - 1)
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[self.index(position)]
    }

    /// Copies a record to its reserved position. Neither allocates nor fails (WAL-5).
    ///
    /// # Panics
    /// If the record's length differs from the reserved length: it would overwrite its neighbours.
    pub fn copy(&self, at: LsnRange, bytes: &[u8]) {
        assert_eq!(bytes.len() as u64, at.end.0 - at.start.0, "a record of another length than was reserved");
        let chunks = bytes.as_chunks::<8>().0;
        let Some(first) = chunks.first() else { return };
        // In two pieces where the ring ends: a mask for each word took half of the time of the copy.
        let index = self.index(at.start.0);
        let (ahead, behind) = chunks.split_at(chunks.len().min(self.words.len() - index));
        // Without the first word, which is stored last.
        for (place, chunk) in self.words[index + 1..].iter().zip(ahead.get(1..).unwrap_or_default()) {
            place.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        for (place, chunk) in self.words.iter().zip(behind) {
            place.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        self.word(at.start.0).store(u64::from_le_bytes(*first), Ordering::Release);
    }

    /// Gives `out` the bytes of the complete records from `from` on, some words at a time, at most about `max` bytes (at least one record, if
    /// it is complete), zeroes the words, and returns the position behind the last record. There is only one reader.
    pub fn take(&self, from: Lsn, max: usize, mut out: impl FnMut(&[u8])) -> Lsn {
        let mut position = from.0;
        let mut taken = [0; 8 * WORDS_AT_A_TIME];
        while (position - from.0) < max as u64 {
            let first = self.word(position).load(Ordering::Acquire);
            // The length is the low half of the first word; a zero word is no record yet.
            let len = first & 0xffff_ffff;
            if len == 0 {
                break;
            }
            assert!(len % 8 == 0 && len <= self.words.len() as u64 * 8, "WAL-3: {len} is no length of a record");
            let mut left = (len / 8) as usize;
            while left > 0 {
                let index = self.index(position);
                let count = left.min(WORDS_AT_A_TIME).min(self.words.len() - index);
                for (word, copy) in self.words[index..index + count].iter().zip(taken.as_chunks_mut::<8>().0) {
                    *copy = word.load(Ordering::Relaxed).to_le_bytes();
                    word.store(0, Ordering::Relaxed); // WAL-3
                }
                out(&taken[..8 * count]);
                position += 8 * count as u64;
                left -= count;
            }
        }
        Lsn(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_were_copied_wherever_the_ring_ends() {
        // WAL-3, WAL-4: records longer than what the reader takes at a time, too, and many rounds.
        let ring = Ring::new(4096, Lsn(0));
        let (mut from, mut turns) = (Lsn(0), 0);
        for n in 1..400_u32 {
            let words = 1 + n as usize * 7 % 200;
            let mut record: Vec<u8> = (0..8 * words).map(|at| (at as u32 * n) as u8).collect();
            record[..4].copy_from_slice(&(8 * words as u32).to_le_bytes());
            let at = ring.reserve(record.len());
            assert_eq!(ring.take(from, usize::MAX, |_| panic!("a record that is not copied yet")), from);
            ring.copy(at, &record);
            let mut out = Vec::new();
            let end = ring.take(from, usize::MAX, |bytes| out.extend_from_slice(bytes));
            assert_eq!((end, &out), (at.end, &record), "record {n}");
            assert!(ring.words.iter().all(|word| word.load(Ordering::Relaxed) == 0), "WAL-3: after record {n}");
            turns += usize::from(at.start.0 / 4096 != at.end.0 / 4096);
            from = end;
        }
        assert!(turns > 50, "{turns} records crossed the end of the ring");
    }
}
