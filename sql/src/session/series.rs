//! Detects N+1 queries: series of statements that differ only in their constants and return a single row each, where one statement could
//! read all rows.
//!
//! # Invariants
//! - SER-1: a session remembers [`SEEN`] digests; a pause longer than [`PAUSE_NS`] between two statements ends all series.

/// Digests that a session remembers: those of a loop whose round takes several statements.
const SEEN: usize = 4;
/// The number of executions from which on they are a series.
const SERIES: u32 = 10;
/// Two statements with a longer pause between them are not of one loop.
const PAUSE_NS: u64 = 50_000_000;

/// What a session has run lately.
#[derive(Debug, Default)]
pub struct Series {
    seen: [(u64, u32); SEEN],
    ended_ns: u64,
    turn: usize,
}

impl Series {
    /// A statement has ended; returns how many executions are thereby known to belong to a series, and whether one begins.
    #[inline]
    pub fn ran(&mut self, digest: u64, single: bool, began_ns: u64, ended_ns: u64) -> (u64, bool) {
        if began_ns.saturating_sub(self.ended_ns) > PAUSE_NS {
            self.seen = [(0, 0); SEEN]; // SER-1
        }
        self.ended_ns = ended_ns;
        if !single {
            return (0, false);
        }
        // A loop of one statement finds it where it was put last.
        let is_it = |(seen, count): &(u64, u32)| *seen == digest && *count > 0;
        let last = Some(self.turn).filter(|turn| is_it(&self.seen[*turn]));
        let Some(place) = last.or_else(|| self.seen.iter().position(is_it)) else {
            self.turn = (self.turn + 1) % SEEN;
            self.seen[self.turn] = (digest, 1);
            return (0, false);
        };
        let count = &mut self.seen[place].1;
        *count = count.saturating_add(1);
        match (*count).cmp(&SERIES) {
            std::cmp::Ordering::Less => (0, false),
            std::cmp::Ordering::Equal => (u64::from(SERIES), true),
            std::cmp::Ordering::Greater => (1, false),
        }
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
                let (more, begins) = series.ran(digest, single, n * MS, n * MS + 1);
                repeated += more;
                assert_eq!(begins, single && n == 9);
            }
        }
        assert_eq!(repeated, 2 * 239);
        // With pauses between them they are no loop.
        let pauses = (0..100).map(|n| series.ran(1, true, (1_000 + 60 * n) * MS, (1_000 + 60 * n) * MS).0);
        assert_eq!(pauses.sum::<u64>(), 0, "SER-1");
        // Five statements in turn are more than are remembered.
        let many = (0..100).map(|n| series.ran(n % 5, true, 9_000 * MS, 9_000 * MS).0);
        assert_eq!(many.sum::<u64>(), 0, "SER-1");
    }
}
