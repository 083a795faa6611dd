//! Two indexes together: the keys of the rows that one index finds are put into a sieve, which holds back most of the rows that the other index finds
//! alone.
//!
//! # Invariants
//! - RGS-2: a sieve only saves reading rows. The conditions by which it was filled stay in the scan's filter, and where it can't be filled the ranges
//!   are read without it.

use super::Cx;
use clearway_base::memory;
use clearway_context::errors::from_engine;
use clearway_engine::table::sieve::Sieve;
use clearway_planner::plan::{Beside, Scan};
use clearway_storage::btree::Direction;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;
use std::sync::Arc;

impl Cx<'_> {
    /// The sieve of the rows that ranges of another index find; none: the index is younger than the snapshot, or the ranges say nothing after all.
    pub(super) async fn sieve(self, scan: &Scan, beside: &Beside, outer: &[Datum]) -> Result<Option<Arc<Sieve>>> {
        let shape = &scan.table.shape;
        let Some(place) = beside.part.index else { return Ok(None) };
        let index = &shape.indexes[place];
        if index.valid_from_lsn > self.run.view.read_lsn.0 {
            return Ok(None);
        }
        let Some(ranges) = self.part_ranges(scan, &beside.part, outer).await? else { return Ok(None) };
        let mut sieve = Sieve::new(self.work_bytes());
        for range in ranges {
            let session = self.run.core.engine.take();
            let mut walk = session.index_scan(shape, place, range, Direction::Forward, &self.run.view);
            drop(session);
            loop {
                memory::check()?;
                let before = sieve.keys();
                while let Some(entry) = walk.buffered_entry() {
                    sieve.put(index.row_key(entry).map_err(from_engine)?);
                }
                // An entry costs less than a row.
                self.breathe_for((sieve.keys() - before) as usize / 8 + 1).await?;
                let mut session = self.run.core.engine.take();
                if !session.fill_entries(&mut walk).await.map_err(from_engine)? {
                    break;
                }
            }
        }
        sieve.finish();
        Ok(Some(Arc::new(sieve)))
    }
}
