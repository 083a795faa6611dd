//! A histogram of latencies; each bucket is at most 6 % wide.

/// Sub-buckets of each power of two.
const PARTS: u64 = 16;
/// Buckets in all: enough for 2^40 microseconds.
const BUCKETS: usize = 40 * PARTS as usize;

/// Counts of latencies, in microseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32]>,
    total: u64,
    greatest_us: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), total: 0, greatest_us: 0 }
    }
}

impl Histogram {
    /// Counts one latency.
    pub fn record(&mut self, us: u64) {
        self.counts[bucket(us)] += 1;
        self.total += 1;
        self.greatest_us = self.greatest_us.max(us);
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total += other.total;
        self.greatest_us = self.greatest_us.max(other.greatest_us);
    }

    /// The latency in microseconds that `share` (0 to 1) of all stay within; 0 if nothing was counted.
    pub fn quantile_us(&self, share: f64) -> u64 {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                return upper_us(at).min(self.greatest_us);
            }
        }
        self.greatest_us
    }

    /// The greatest latency, in microseconds.
    pub fn greatest_us(&self) -> u64 {
        self.greatest_us
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// The bucket of a latency: exact below 16, then 16 for each power of two.
fn bucket(us: u64) -> usize {
    if us < PARTS {
        return us as usize;
    }
    let power = u64::from(us.ilog2()) - 4;
    let at = (power + 1) * PARTS + (us >> power) - PARTS;
    (at as usize).min(BUCKETS - 1)
}

/// The greatest latency of a bucket.
fn upper_us(at: usize) -> u64 {
    let at = at as u64;
    if at < PARTS {
        return at;
    }
    let power = at / PARTS - 1;
    ((at % PARTS + PARTS + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_belongs_to_it_and_is_narrow() {
        for us in (0..100_000).chain([1 << 30, (1 << 35) + 12_345]) {
            let upper = upper_us(bucket(us));
            assert!(upper >= us && upper - us <= us / 16, "{us}: {upper}");
            assert!(us == 0 || bucket(us) >= bucket(us - 1), "{us}");
        }
    }

    #[test]
    fn quantiles_of_a_thousand() {
        let mut some = Histogram::default();
        for us in 1..=1000 {
            some.record(us);
        }
        let mut all = Histogram::default();
        assert_eq!(all.quantile_us(0.5), 0);
        all.add(&some);
        assert_eq!((all.total(), all.greatest_us(), all.quantile_us(1.0)), (1000, 1000, 1000));
        for (share, exact) in [(0.5, 500.0), (0.99, 990.0)] {
            let found = all.quantile_us(share) as f64;
            assert!((exact..=exact * 1.0625).contains(&found), "{share}: {found}");
        }
    }
}
