//! The keys of the rows of one side of a join, of which a row of the other side must have one: a scan of that side turns away most rows that will meet none.
//!
//! # Invariants
//! - MTK-1: a key that was put in passes. One that was not may pass, too: its row meets none later.
//!
//! They are a bit for each number between the least and the greatest where those are not far apart, else a Bloom filter whose two bits for a key are of one
//! word ([Putze, Sanders and Singler 2007](https://doi.org/10.1007/978-3-540-72845-0_9)).

use clearway_engine::value::ValueRef;
use clearway_values::types::{Datum, Oid, oid};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits for each key.
const BITS_OF_KEY: usize = 16;
/// A bit for each number takes at most so many times as much.
const SPAN: u64 = 4;
/// Rows after which it is seen whether it turns any away.
const TRIED: u64 = 4_096;
/// An odd constant with as many ones as zeros.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Keys that are being gathered.
#[derive(Debug)]
pub struct Gathering {
    class: Option<Oid>,
    is_mixed: bool,
    keys: Vec<i64>,
    /// Words of a Bloom filter, once there are more keys than may be kept; a power of two of them.
    words: Vec<u64>,
    bytes_max: usize,
    low: i64,
    high: i64,
}

/// Keys that were gathered.
#[derive(Debug)]
pub struct MetKeys {
    class: Oid,
    low: i64,
    high: i64,
    words: Vec<u64>,
    /// A bit for each number from the least on.
    is_exact: bool,
    asked: AtomicU64,
    passed: AtomicU64,
}

/// The types whose values are compared by one stored form, by one of them; none: not by an integer.
pub fn class_of(ty: Oid) -> Option<Oid> {
    Some(match ty {
        oid::INT2 | oid::INT4 | oid::INT8 => oid::INT8,
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => ty,
        _ => return None,
    })
}

impl Gathering {
    /// None yet; they take at most about so many bytes.
    pub fn new(bytes_max: usize) -> Gathering {
        let (low, high) = (i64::MAX, i64::MIN);
        Gathering { class: None, is_mixed: false, keys: Vec::new(), words: Vec::new(), bytes_max, low, high }
    }

    /// Puts a key in; a null meets nothing.
    #[inline]
    pub fn put(&mut self, key: &Datum) {
        let (class, key) = match key {
            Datum::Int4(key) => (oid::INT8, i64::from(*key)),
            Datum::Int8(key) => (oid::INT8, *key),
            Datum::Int2(key) => (oid::INT8, i64::from(*key)),
            Datum::Date(key) => (oid::DATE, i64::from(*key)),
            Datum::Timestamp(key) => (oid::TIMESTAMP, *key),
            Datum::TimestampTz(key) => (oid::TIMESTAMPTZ, *key),
            Datum::Null => return,
            _ => return self.is_mixed = true,
        };
        self.is_mixed |= *self.class.get_or_insert(class) != class;
        (self.low, self.high) = (self.low.min(key), self.high.max(key));
        if !self.words.is_empty() {
            return set(&mut self.words, key);
        }
        self.keys.push(key);
        if size_of_val(&self.keys[..]) > self.bytes_max / 2 {
            self.spread(self.bytes_max / 32);
        }
    }

    fn spread(&mut self, words: usize) {
        self.words = vec![0; words.max(16).next_power_of_two()];
        std::mem::take(&mut self.keys).into_iter().for_each(|key| set(&mut self.words, key));
    }

    /// What was gathered; none: there was no key, or one of a type that is not an integer in its stored form.
    pub fn finish(mut self) -> Option<MetKeys> {
        let class = self.class.filter(|_| !self.is_mixed)?;
        let span = self.high.abs_diff(self.low);
        let is_exact = !self.keys.is_empty() && span / SPAN <= (self.keys.len() * BITS_OF_KEY) as u64;
        if is_exact {
            self.words = vec![0; span as usize / 64 + 1];
            for key in std::mem::take(&mut self.keys) {
                let at = key.abs_diff(self.low);
                self.words[at as usize / 64] |= 1 << (at % 64);
            }
        } else if self.words.is_empty() {
            self.spread(self.keys.len() * BITS_OF_KEY / 64);
        }
        let (asked, passed) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(MetKeys { class, low: self.low, high: self.high, words: self.words, is_exact, asked, passed })
    }
}

impl MetKeys {
    /// The types of columns that may be asked for, by one of them.
    pub fn class(&self) -> Oid {
        self.class
    }

    /// Whether a row with this stored value may meet one (MTK-1); none: the value is of another form.
    #[inline]
    pub fn may_meet(&self, value: ValueRef<'_>) -> Option<bool> {
        match value {
            ValueRef::Int(key) if key < self.low || key > self.high => Some(false),
            ValueRef::Int(key) if self.is_exact => {
                let at = key.abs_diff(self.low);
                Some(self.words[at as usize / 64] >> (at % 64) & 1 == 1)
            }
            ValueRef::Int(key) => {
                let (word, bits) = place(self.words.len(), key);
                Some(self.words[word] & bits == bits)
            }
            ValueRef::Null => Some(false),
            _ => None,
        }
    }

    /// Notes that so many rows were asked about, and so many passed.
    pub fn note(&self, asked: usize, passed: usize) {
        self.asked.fetch_add(asked as u64, Relaxed);
        self.passed.fetch_add(passed as u64, Relaxed);
    }

    /// It turns so few rows away that asking costs more.
    pub fn is_idle(&self) -> bool {
        let asked = self.asked.load(Relaxed);
        asked > TRIED && 8 * self.passed.load(Relaxed) > 7 * asked
    }
}

/// The word of a key's bits, and the bits.
#[inline]
fn place(words: usize, key: i64) -> (usize, u64) {
    let hash = (key as u64 ^ key as u64 >> 32).wrapping_mul(MULTIPLIER);
    let word = (hash >> 20) as usize & (words - 1);
    (word, 1 << (hash >> 58) | 1 << (hash >> 52 & 63))
}

fn set(words: &mut [u64], key: i64) {
    let (word, bits) = place(words.len(), key);
    words[word] |= bits;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(keys: impl Iterator<Item = i64>, bytes_max: usize) -> MetKeys {
        let mut gathering = Gathering::new(bytes_max);
        keys.for_each(|key| gathering.put(&Datum::Int8(key)));
        gathering.finish().expect("keys")
    }

    #[test]
    fn what_was_put_in_passes_and_little_else() {
        // MTK-1
        for (step, count, exact) in
            [(1, 5_000, true), (4, 5_000, true), (1_000_003, 5_000, false), (-7_919, 9_000, false)]
        {
            let keys = gathered((0..count).map(|n| n * step), 1 << 20);
            assert_eq!(keys.is_exact, exact, "{step}");
            assert!((0..count).all(|n| keys.may_meet(ValueRef::Int(n * step)) == Some(true)), "{step}");
            let others =
                (0..count).filter(|n| step.abs() > 1 && keys.may_meet(ValueRef::Int(n * step + 1)) == Some(true));
            assert!(others.count() < count as usize / 20, "{step}");
            assert_eq!(keys.may_meet(ValueRef::Int(count * step + step)), Some(false), "outside of all");
            assert_eq!(keys.may_meet(ValueRef::Null), Some(false));
        }
        let ends = gathered([i64::MIN, 0, i64::MAX].into_iter(), 1 << 20);
        assert!([i64::MIN, 0, i64::MAX].iter().all(|key| ends.may_meet(ValueRef::Int(*key)) == Some(true)));
    }

    #[test]
    fn too_many_keys_let_more_pass() {
        let keys = gathered((0..50_000).map(|n| n * 3), 1 << 14);
        assert!(size_of_val(&keys.words[..]) <= 1 << 14);
        assert!((0..50_000).all(|n| keys.may_meet(ValueRef::Int(n * 3)) == Some(true)));
    }

    #[test]
    fn keys_of_several_kinds_are_none() {
        let mut gathering = Gathering::new(1 << 20);
        assert!(Gathering::new(1 << 20).finish().is_none());
        gathering.put(&Datum::Int4(1));
        gathering.put(&Datum::Date(1));
        assert!(gathering.finish().is_none());
        let mut texts = Gathering::new(1 << 20);
        texts.put(&Datum::text("a"));
        assert!(texts.finish().is_none());
    }

    #[test]
    fn it_is_idle_where_nearly_all_pass() {
        let keys = gathered(0..10, 1 << 20);
        keys.note(5_000, 4_990);
        assert!(keys.is_idle());
        keys.note(5_000, 0);
        assert!(!keys.is_idle());
    }
}
