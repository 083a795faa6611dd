//! A sieve of rows: says of a row's key that it was certainly not put in, or that it may have been. Two indexes together find the rows that meet two
//! conditions: the keys that the entries of one lead to are put in, and the rows of the other's entries that the sieve holds back are not read.
//! PostgreSQL intersects two bitmaps of the places of rows for that.
//!
//! # Invariants
//! - SIV-1: a key that was put in passes. One that was not passes too now and then, so that its row has to be judged.
//!
//! It is a Bloom filter with two bits for each key ([Bloom 1970](https://dl.acm.org/doi/10.1145/362686.362692)).

use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// Bits for each key: with two of them set, one key in sixty passes though it was not put in.
const BITS_OF_KEY: usize = 16;
/// The fewest words of bits.
const WORDS_MIN: usize = 16;

/// A sieve that is being filled, or is full.
pub struct Sieve {
    hasher: FixedState,
    /// What was put in before there were bits.
    hashes: Vec<u64>,
    /// A power of two of them, once it is known how many are needed.
    words: Vec<u64>,
    bytes_max: usize,
    keys: u64,
}

impl Sieve {
    /// An empty one that takes at most so many bytes of memory: beyond that more keys pass.
    pub fn new(bytes_max: usize) -> Sieve {
        let bytes_max = bytes_max.max(8 * WORDS_MIN);
        Sieve { hasher: FixedState::default(), hashes: Vec::new(), words: Vec::new(), bytes_max, keys: 0 }
    }

    /// How many keys were put in.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Puts a key in.
    pub fn put(&mut self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        self.keys += 1;
        if !self.words.is_empty() {
            return set(&mut self.words, hash);
        }
        self.hashes.push(hash);
        if self.hashes.len() * 8 >= self.bytes_max / 2 {
            self.spread(self.bytes_max / 16);
        }
    }

    /// Makes it ready to be asked.
    pub fn finish(&mut self) {
        if self.words.is_empty() {
            self.spread(self.hashes.len() * BITS_OF_KEY / 64);
        }
    }

    /// Whether a key may have been put in (SIV-1).
    #[inline]
    pub fn passes(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        places(&self.words, hash).into_iter().all(|(word, bit)| self.words[word] & bit != 0)
    }

    fn spread(&mut self, words: usize) {
        self.words = vec![0; words.max(WORDS_MIN).next_power_of_two()];
        for hash in std::mem::take(&mut self.hashes) {
            set(&mut self.words, hash);
        }
    }
}

/// The word and the bit of each of the two bits of a key.
#[inline]
fn places(words: &[u64], hash: u64) -> [(usize, u64); 2] {
    let place = |hash: u64| ((hash >> 6) as usize & (words.len() - 1), 1u64 << (hash & 63));
    [place(hash), place(hash >> 32)]
}

fn set(words: &mut [u64], hash: u64) {
    for (word, bit) in places(words, hash) {
        words[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(sieve: &Sieve, keys: std::ops::Range<u32>) -> usize {
        keys.filter(|n| sieve.passes(&n.to_be_bytes())).count()
    }

    #[test]
    fn what_was_put_in_passes_and_little_else() {
        // SIV-1
        for keys in [0u32, 1, 7, 1_000, 100_000] {
            let mut sieve = Sieve::new(1 << 22);
            (0..keys).for_each(|n| sieve.put(&n.to_be_bytes()));
            sieve.finish();
            assert_eq!(sieve.keys(), u64::from(keys));
            assert_eq!(passed(&sieve, 0..keys), keys as usize, "{keys} keys");
            let others = passed(&sieve, 1_000_000..1_100_000);
            assert!(others < 4_000, "{others} of 100,000 others pass where {keys} were put in");
        }
    }

    #[test]
    fn a_sieve_that_is_too_small_lets_more_pass() {
        let mut sieve = Sieve::new(1 << 10);
        (0..50_000u32).for_each(|n| sieve.put(&n.to_be_bytes()));
        sieve.finish();
        assert!(sieve.words.len() * 8 <= 1 << 10);
        assert_eq!(passed(&sieve, 0..50_000), 50_000);
    }
}
