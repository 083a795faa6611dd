//! Hash tables over lists of values: a fast hash with one random seed per process, and an index from keys to the places of their rows.

use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::OnceLock;

/// Odd constants with as many ones as zeros.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The seed of the process: a client can't choose keys that collide.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish() | 1)
}

/// Multiplies to twice the width and folds the halves together.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hasher of rows.
#[derive(Clone)]
pub struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.write_u64(u64::from_le_bytes(*chunk));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }
    #[inline]
    fn write_u64(&mut self, v: u64) {
        self.0 = fold(self.0 ^ v, MULTIPLIER);
    }
    #[inline]
    fn write_i64(&mut self, v: i64) {
        self.write_u64(v as u64);
    }
    #[inline]
    fn write_u8(&mut self, v: u8) {
        self.write_u64(u64::from(v));
    }
    #[inline]
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
}

/// Makes hashers.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldState;

impl BuildHasher for FoldState {
    type Hasher = FoldHasher;
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher(seed())
    }
}

/// The hash of a list of values.
#[inline]
pub fn hash_of(values: &[Datum]) -> u64 {
    let mut hasher = FoldState.build_hasher();
    for v in values {
        v.hash(&mut hasher);
    }
    hasher.finish()
}

/// The slots that expressions name, if all of them are columns of the row at hand.
pub fn columns_of(list: &[Bound]) -> Option<Box<[usize]>> {
    let column = |e: &Bound| match e.kind {
        BoundKind::Column { index, level: 0 } => Some(index),
        _ => None,
    };
    list.iter().map(column).collect::<Option<Box<[usize]>>>().filter(|columns| !columns.is_empty())
}

/// The hash of the values in these slots of a row; none: the row lacks one.
#[inline]
pub fn hash_in(row: &[Datum], columns: &[usize]) -> Option<u64> {
    let mut hasher = FoldState.build_hasher();
    for column in columns {
        row.get(*column)?.hash(&mut hasher);
    }
    Some(hasher.finish())
}

/// Keys from which on a table is larger than the processor's caches near it.
const FAR_KEYS: usize = 1 << 10;
/// So many rows are looked ahead for at a time.
pub const AHEAD: usize = 32;

/// Looks for the keys of several rows at once, so that the processor waits for the memory of all of them together and not for one
/// after the other. `touch` reads memory that belongs to a number and says anything about it.
pub fn look_ahead<'r>(
    table: &KeyTable,
    columns: &[usize],
    rows: impl Iterator<Item = &'r [Datum]>,
    touch: &[&dyn Fn(usize) -> usize],
) {
    if table.count < FAR_KEYS {
        return;
    }
    let mut found = [None; AHEAD];
    for (place, row) in found.iter_mut().zip(rows) {
        *place = hash_in(row, columns).and_then(|hash| table.first(hash));
    }
    let mut read = 0;
    for touch in touch {
        read += found.iter().flatten().map(|n| touch(*n)).sum::<usize>();
    }
    std::hint::black_box(read);
}

/// From keys to numbers. The keys themselves stand elsewhere: a search is told whether the key of a number is the one.
#[derive(Default)]
pub struct KeyTable {
    /// The upper half of the key's hash, and its number plus one; zero: empty. Their count is a power of two.
    slots: Vec<(u32, u32)>,
    count: usize,
}

impl KeyTable {
    /// The number of a key with this hash for which `is` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let upper = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let (found, number) = self.slots[at];
            if number == 0 {
                return None;
            }
            if found == upper && is(number as usize - 1) {
                return Some(number as usize - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// How many places it has.
    pub fn places(&self) -> usize {
        self.slots.len()
    }

    /// The number that a search for a key with this hash comes to first, if its slot is the first one it looks at.
    #[inline]
    pub fn first(&self, hash: u64) -> Option<usize> {
        let (found, number) = *self.slots.get(hash as usize & self.slots.len().wrapping_sub(1))?;
        (found == (hash >> 32) as u32 && number != 0).then(|| number as usize - 1)
    }

    /// Adds a key that is not there; `hash_again` gives the hashes of earlier ones, when the table grows.
    pub fn add(&mut self, hash: u64, number: usize, hash_again: impl Fn(usize) -> u64) {
        assert!(number < u32::MAX as usize, "{number} keys in one table");
        if self.count * 4 >= self.slots.len() * 3 {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![(0, 0); (old.len() * 2).max(16)];
            for (_, number) in old.into_iter().filter(|s| s.1 != 0) {
                self.put(hash_again(number as usize - 1), number);
            }
        }
        self.count += 1;
        self.put(hash, number as u32 + 1);
    }

    fn put(&mut self, hash: u64, number: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].1 != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = ((hash >> 32) as u32, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_found_and_no_other() {
        let keys: Vec<Vec<Datum>> =
            (0..5_000).map(|i| vec![Datum::Int4(i / 7), Datum::text(format!("k{}", i % 7))]).collect();
        let mut table = KeyTable::default();
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(table.find(hash_of(key), |n| keys[n] == *key), None);
            table.add(hash_of(key), i, |n| hash_of(&keys[n]));
        }
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(table.find(hash_of(key), |n| keys[n] == *key), Some(i));
        }
        let at_once = keys.iter().enumerate().filter(|(i, key)| table.first(hash_of(key)) == Some(*i)).count();
        assert!(at_once > keys.len() / 3, "{at_once} keys are where a search begins");
        let other = vec![Datum::Int4(-1), Datum::text("k0")];
        assert_eq!(table.find(hash_of(&other), |n| keys[n] == other), None);
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        let n = |text: &str| Datum::numeric(clearway_values::types::Numeric::parse(text).unwrap().unwrap());
        for (a, b) in [
            (n("1"), n("1.000")),
            (n("0"), n("0.00")),
            (n("1200"), n("1200.0")),
            (Datum::Float8(0.0), Datum::Float8(-0.0)),
        ] {
            assert_eq!(hash_of(std::slice::from_ref(&a)), hash_of(std::slice::from_ref(&b)), "{a:?} {b:?}");
        }
    }
}
