//! Detects N+1 queries: series of statements that differ only in their constants and return a single row each, where one statement could
//! read all rows.
//!
//! # Invariants
//! - SER-1: a session remembers the last [`SEEN`] digests; a pause longer than [`PAUSE_NS`] between two statements ends all series.

/// Digests that a session remembers: those of a loop whose round takes several statements.
const SEEN: usize = 4;
/// The number of executions from which on they are a series.
const SERIES: u32 = 10;
/// Two statements with a longer pause between them are not of one loop.
const PAUSE_NS: u64 = 50_000_000;

/// A digest, and how often it was run in its series.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    digest: u64,
    count: u32,
}

/// What a session has run lately. A loop of one statement touches the first [`Series::FIRST`] bytes alone, also where pauses end its series.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Series {
    ended_ns: u64,
    /// The last digest, and how often it was run in its series.
    digest: u64,
    count: u32,
    /// How many of the others are remembered.
    remembered: u32,
    /// Those before it, the latest first.
    others: [Seen; SEEN - 1],
}

impl Series {
    /// See there.
    pub const FIRST: usize = std::mem::offset_of!(Series, others);

    /// When the last statement ended, by the clock of wait events.
    #[inline]
    pub fn ended_ns(&self) -> u64 {
        self.ended_ns
    }

    /// A statement has ended that counts in no series.
    pub fn ends(&mut self, ended_ns: u64) {
        self.ended_ns = ended_ns;
    }

    /// A statement has ended; returns how many executions are thereby known to belong to a series: [`SERIES`] where one begins.
    #[inline]
    pub fn ran(&mut self, digest: u64, single: bool, began_ns: u64, ended_ns: u64) -> u64 {
        if began_ns > self.ended_ns + PAUSE_NS {
            (self.digest, self.count, self.remembered) = (digest, 0, 0); // SER-1
        }
        self.ended_ns = ended_ns;
        if !single {
            return 0;
        }
        if self.digest != digest {
            self.turn_to(digest);
        }
        if self.count >= SERIES {
            return 1; // it is known to be one already, and how long it is matters no more
        }
        self.count += 1;
        if self.count == SERIES { u64::from(SERIES) } else { 0 }
    }

    /// Makes the digest the last one, with its count if it is remembered.
    #[inline(never)]
    fn turn_to(&mut self, digest: u64) {
        let last = Seen { digest: self.digest, count: self.count };
        let (known, found) = self.place_of(digest);
        (self.digest, self.count) = (digest, found);
        if last.count > 0 {
            let place = known.min(SEEN - 2);
            self.others.copy_within(..place, 1);
            self.others[0] = last;
            self.remembered = self.remembered.max(place as u32 + 1);
        }
    }

    /// Where the digest stands among the others, or would be, and its count.
    fn place_of(&self, digest: u64) -> (usize, u32) {
        let remembered = self.remembered as usize;
        let place = self.others[..remembered].iter().position(|seen| seen.digest == digest);
        place.map_or((remembered, 0), |place| (place, self.others[place].count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_loop_of_single_rows_is_a_series_and_other_statements_are_not() {
        let mut series = Series::default();
        let mut repeated = 0;
        for n in 0..239 {
            // A round of three statements, one of which gives many rows.
            for (digest, single) in [(1, true), (2, true), (3, false)] {
                let more = series.ran(digest, single, n * MS, n * MS + 1);
                repeated += more;
                assert_eq!(more, if n < 9 || !single { 0 } else { 1 + 9 * u64::from(n == 9) });
            }
        }
        assert_eq!(repeated, 2 * 239);
        // With pauses between them they are no loop.
        let pauses = (0..100).map(|n| series.ran(1, true, (1_000 + 60 * n) * MS, (1_000 + 60 * n) * MS));
        assert_eq!(pauses.sum::<u64>(), 0, "SER-1");
        // One that comes between others again and again stays remembered.
        let between = (0..30).map(|n| series.ran(if n % 2 == 0 { 1 } else { 100 + n }, true, 8_000 * MS, 8_000 * MS));
        assert_eq!(between.sum::<u64>(), 15, "SER-1");
        // Five statements in turn are more than are remembered.
        let many = (0..100).map(|n| series.ran(n % 5, true, 9_000 * MS, 9_000 * MS));
        assert_eq!(many.sum::<u64>(), 0, "SER-1");
    }
}
