//! The walks by an index that a nested loop makes, one for each row of its left side, in the memory of one.
//!
//! # Invariants
//! - AGN-1: a walk that begins again gives what a new one would: no entry, row, range or setting of the walk before is left in it.

use super::Cx;
use super::key_range::KeyBytes;
use super::scan::{TableRows, by_index, in_any_order};
use clearway_engine::table::scan::IndexScan;
use clearway_planner::plan::{Access, Scan};
use clearway_syntax::error::Result;
use clearway_values::types::Datum;

/// The memory of a walk that has been read.
#[derive(Default)]
pub(super) struct Again {
    walk: Option<Box<IndexScan>>,
    equal: Vec<Datum>,
    bytes: KeyBytes,
}

impl Again {
    /// Keeps the memory of rows that are not read further, if they were a walk by an index.
    pub(super) fn keep(&mut self, rows: TableRows) {
        if let TableRows::Index(walk) | TableRows::Entries(walk) = rows {
            self.walk = Some(walk);
        }
    }
}

impl Cx<'_> {
    /// As [`Cx::open_scan`], in the memory of the walk that was kept. All walks that are kept here have to be of this scan.
    pub(super) async fn open_scan_again(self, scan: &Scan, prefix: &[Datum], again: &mut Again) -> Result<TableRows> {
        let (Access::Index(place, range), Some(mut walk)) = (&scan.access, again.walk.take()) else {
            return self.open_scan(scan, prefix).await;
        };
        let columns = &scan.table.shape.indexes[*place].key;
        if !self.put_range(range, columns, prefix, &mut again.equal, &mut again.bytes).await? {
            again.walk = Some(walk);
            return Ok(TableRows::Keys(Vec::new().into_iter()));
        }
        self.run.core.engine.take().index_scan_again(&mut walk, (&again.bytes.from, again.bytes.to()));
        Ok(in_any_order(scan, by_index(scan, *place, walk)))
    }
}
