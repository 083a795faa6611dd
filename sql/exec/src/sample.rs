//! TABLESAMPLE: which rows of a table are taken.
//!
//! # Invariants
//! - TSM-1: whether a row is taken follows from the seed and the row's key (BERNOULLI), or from the seed and the first key that the view
//!   sees of the row's leaf page (SYSTEM). So a sample with the same seed of a table that did not change has the same rows.
//! - TSM-2: no row is taken at 0 %, every row at 100 %.

use super::Cx;
use super::row_batch::Batch;
use super::scan::{TableRows, append_walked};
use clearway_context::errors::from_engine;
use clearway_engine::table::scan::TableScan;
use clearway_planner::plan::Scan;
use clearway_planner::sample::{SampleScan, Sampling};
use clearway_storage::btree::KeyRange;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::Datum;

/// What is taken, while a table is read.
pub struct Sampler {
    /// Whole leaf pages.
    system: bool,
    seed: u64,
    /// A row is taken if its number is below this one of 2^32.
    below: u64,
    /// SYSTEM: the leaf page at hand is taken; none: its first row is next.
    taken: Option<bool>,
}

/// FNV-1a, and the finish of MurmurHash3, which spreads its bits.
fn number(seed: u64, key: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    let mut hash = key.iter().fold(start, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash ^ hash >> 33) >> 32
}

impl Sampler {
    /// `percent` is from 0 to 100.
    fn new(system: bool, percent: f64, seed: u64) -> Sampler {
        Sampler { system, seed, below: (percent / 100.0 * 2f64.powi(32)).round() as u64, taken: None }
    }

    /// The rows of another leaf page are next.
    pub fn turn(&mut self) {
        self.taken = None;
    }

    /// Whether the row of a key is taken (TSM-1, TSM-2).
    pub fn takes(&mut self, key: &[u8]) -> bool {
        if !self.system {
            return number(self.seed, key) < self.below;
        }
        *self.taken.get_or_insert_with(|| number(self.seed, key) < self.below)
    }
}

impl Cx<'_> {
    /// Begins to read a sample; `prefix` holds the slots to its left.
    pub(super) fn open_sample(self, sample: &SampleScan, prefix: &[Datum]) -> Result<TableRows> {
        let Sampling { system, percent, seed } = &sample.sampling;
        let percent = match self.value_now(percent, prefix)? {
            Datum::Float4(percent) => f64::from(percent),
            Datum::Null => return Err(SqlError::new("2202H", "TABLESAMPLE parameter cannot be null")),
            _ => return Err(SqlError::internal("a share that is no number")),
        };
        if !(0.0..=100.0).contains(&percent) {
            return Err(SqlError::new("2202H", "sample percentage must be between 0 and 100"));
        }
        let seed = match seed.as_ref().map(|seed| self.value_now(seed, prefix)).transpose()? {
            None => self.run.core.random.number().to_bits(),
            // Zeros of both signs are one seed.
            Some(Datum::Float8(seed)) => (seed + 0.0).to_bits(),
            Some(_) => return Err(SqlError::new("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null")),
        };
        let scan: &Scan = &sample.scan;
        let TableRows::Table(walk) = self.walk(scan, KeyRange::all()) else {
            return Err(SqlError::internal("a walk over a table is another"));
        };
        Ok(TableRows::Sample(walk, Sampler::new(*system, percent, seed)))
    }

    /// Appends the next row that is taken; false: there is none.
    pub(super) async fn next_sampled(
        self,
        (walk, sampler): (&mut TableScan, &mut Sampler),
        scan: &Scan,
        prefix: &[Datum],
        out: &mut Batch,
    ) -> Result<bool> {
        loop {
            self.breathe().await?;
            let shown = walk.next_shown();
            if let Some((key, value)) = walk.buffered() {
                if sampler.takes(key) {
                    append_walked(scan, (key, value, shown), prefix, out.begin())?;
                    out.end();
                    return Ok(true);
                }
                continue;
            }
            sampler.turn();
            if !self.run.core.engine.take().fill(walk).await.map_err(from_engine)? {
                return Ok(false);
            }
        }
    }
}
