//! The random numbers of a session: xoroshiro128** of Blackman and Vigna, seeded by splitmix64, so that what follows `setseed` is what
//! PostgreSQL 15 gives (src/common/pg_prng.c).

use std::sync::atomic::{AtomicU64, Ordering};

/// The generator of one session. Only one statement of a session runs at a time, so two loads and two stores are enough.
#[derive(Debug)]
pub struct Random([AtomicU64; 2]);

fn split(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *seed;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let random = Random([AtomicU64::new(0), AtomicU64::new(0)]);
        random.start(seed);
        random
    }

    fn start(&self, mut seed: u64) {
        let first = split(&mut seed);
        let second = split(&mut seed);
        // From zeros alone the generator would give nothing else.
        let (first, second) =
            if first | second == 0 { (0x5851_F42D_4C95_7F2D, 0x1405_7B7E_F767_814F) } else { (first, second) };
        self.0[0].store(first, Ordering::Relaxed);
        self.0[1].store(second, Ordering::Relaxed);
    }

    /// `setseed`: the numbers from now on follow from this one, which lies between -1 and 1.
    pub fn start_from(&self, seed: f64) {
        self.start((((1_u64 << 52) - 1) as f64 * seed) as i64 as u64);
    }

    /// A number in [0, 1).
    pub fn number(&self) -> f64 {
        let first = self.0[0].load(Ordering::Relaxed);
        let mixed = self.0[1].load(Ordering::Relaxed) ^ first;
        let value = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.0[0].store(first.rotate_left(24) ^ mixed ^ mixed << 16, Ordering::Relaxed);
        self.0[1].store(mixed.rotate_left(37), Ordering::Relaxed);
        (value >> 12) as f64 / (1_u64 << 52) as f64
    }
}
