//! Executes WITH RECURSIVE: the rows of a turn are given as they come, and kept for the next turn.
//!
//! # Invariants
//! - RCW-1: a row is made when it is asked for. So a query that stops early (LIMIT, EXISTS) meets no error of rows behind those that it took.
//! - RCW-2: while a step is read, the working table has all rows of the turn before it. Another reading of the same plan may have put its own
//!   there in the meantime, so that it is set before each row.

use super::met::MetRows;
use super::query::QueryRows;
use super::row_list::RowList;
use super::{Cx, Row};
use clearway_base::memory::Kind;
use clearway_planner::plan::Query;
use clearway_syntax::error::Result;
use std::sync::Arc;

/// A recursive query that is being read.
pub(super) struct Recursion {
    step: Arc<Query>,
    work: usize,
    /// What is read in this turn: the query that it begins with, then the step.
    turn: QueryRows,
    /// The rows of the turn before.
    before: Arc<RowList>,
    /// The rows of this turn up to now.
    rows: RowList,
    /// Without ALL: all rows up to now.
    met: Option<MetRows>,
}

impl Recursion {
    /// Begins to read one.
    pub(super) fn new(all: bool, anchor: Arc<Query>, step: Arc<Query>, work: usize) -> Self {
        Self {
            step,
            work,
            turn: QueryRows::new(anchor),
            before: Arc::default(),
            rows: RowList::of(Kind::Recursion),
            met: (!all).then(MetRows::new),
        }
    }

    /// The next row (RCW-1).
    pub(super) async fn next(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        loop {
            cx.breathe().await?;
            cx.run.state.set_work(self.work, self.before.clone()); // RCW-2
            let Some(row) = self.turn.next(cx).await? else {
                if self.rows.is_empty() {
                    return Ok(None);
                }
                let mut rows = std::mem::replace(&mut self.rows, RowList::of(Kind::Recursion));
                rows.end().await?;
                self.before = Arc::new(rows);
                self.turn = QueryRows::new(self.step.clone());
                continue;
            };
            if let Some(met) = &mut self.met {
                let is_new = match met.is_new_now(&row)? {
                    Some(is_new) => is_new,
                    None => Box::pin(met.is_new(&row)).await?,
                };
                if !is_new {
                    continue;
                }
                if met.is_full(cx) {
                    Box::pin(met.write_out(cx)).await?;
                }
            }
            self.rows.push(row.clone())?;
            if self.rows.is_full(cx) {
                self.rows.write_out(cx).await?;
            }
            return Ok(Some(row));
        }
    }
}
