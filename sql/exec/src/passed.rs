//! Steps over the first rows of a scan, those that OFFSET leaves out, without reading them where nothing about them is to be judged: entries of an index
//! and rows of a leaf are only counted.
//!
//! # Invariants
//! - EXE-29: what is stepped over are the rows that the scan would have given first, each counted once: the entries of a range that says all of the
//!   filter (COV-3) lead to one row each (TAB-4), and rows that have to be judged are read.

use super::Cx;
use super::row_batch::{Batch, ROWS};
use super::scan::{TableRows, asked_of};
use clearway_context::errors::from_engine;
use clearway_planner::plan::Scan;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;

impl Cx<'_> {
    /// Steps over the next rows of a scan, of which `left` says how many; false: there are no more. Rows that are read behind them are appended.
    pub(super) async fn pass_over(
        self,
        rows: &mut TableRows,
        scan: &Scan,
        left: &mut usize,
        (prefix, out): (&[Datum], &mut Batch),
    ) -> Result<bool> {
        // EXE-29
        let counts = asked_of(rows, scan).is_none();
        while *left > 0 {
            let passed = match rows {
                TableRows::Table(walk) if counts => walk.pass(*left),
                TableRows::Index(walk) | TableRows::Entries(walk) if counts => walk.pass(*left),
                _ => return self.read_over(rows, scan, left, (prefix, out)).await,
            };
            *left -= passed;
            // An entry costs less than a row.
            self.breathe_for(passed / 8 + 1).await?;
            if *left == 0 {
                break;
            }
            let mut session = self.run.core.engine.take();
            let more = match rows {
                TableRows::Table(walk) => session.fill(walk).await,
                TableRows::Index(walk) | TableRows::Entries(walk) => session.fill_entries(walk).await,
                _ => Ok(false),
            };
            if !more.map_err(from_engine)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same by reading them.
    async fn read_over(
        self,
        rows: &mut TableRows,
        scan: &Scan,
        left: &mut usize,
        (prefix, out): (&[Datum], &mut Batch),
    ) -> Result<bool> {
        let (mut batch, mut more) = (Batch::default(), true);
        while *left > 0 && more {
            batch.clear();
            more = Box::pin(self.read_rows(rows, scan, prefix, ROWS.min(*left), &mut batch)).await?;
            let passed = batch.len().min(*left);
            *left -= passed;
            (passed..batch.len()).for_each(|at| out.push(batch.row(at), &[]));
        }
        Ok(more)
    }
}
