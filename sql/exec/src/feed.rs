//! An INSERT whose rows come from outside of its plan, for COPY.
//!
//! # Life of a row
//! Its values where they stand -> [`Feed::take`] gives them to the rows that gather or are loaded -> done. A row that the caller converts, and one that was not taken ->
//! [`Cx::feed`] -> as a row of the plan's source.
//!
//! # Invariants
//! - FED-1: a row is taken where it stands only by a statement that does nothing with its rows but put them in, in the order in which they were given, and only if no column lacks
//!   a value that has to have one. Whatever such a row violates beside that, it violates in the engine.

use super::change::Changes;
use super::pending::Pending;
use super::{Cx, Row};
use clearway_context::core::Core;
use clearway_context::errors::from_engine;
use clearway_engine::session::load::Loading;
use clearway_engine::value::ValueRef;
use clearway_planner::plan::{Insert, InsertValue};
use clearway_syntax::error::Result;
use clearway_values::expr::Bound;
use clearway_values::types::Datum;

/// What an INSERT keeps from row to row.
#[derive(Default)]
struct Intake {
    loading: Loading,
    pending: Pending,
}

/// Rows that come from outside of the plan.
pub struct Feed {
    filter: Option<Bound>,
    intake: Intake,
    out: Changes,
    /// Rows taken so far, whether or not they were inserted.
    pub taken: u64,
    /// Rows that [`Feed::take`] has taken since rows were fed last.
    at_once: usize,
    /// Rows that did not meet the filter.
    pub left_out: u64,
    /// There are no more rows.
    pub is_last: bool,
}

/// Whether the values of a row from outside are those of the table's columns, one for each.
fn is_row(insert: &Insert, width: usize) -> bool {
    let is_same = |(at, v): (usize, &InsertValue)| matches!(v, InsertValue::Source(n) if *n == at);
    width == insert.values.len() && insert.values.iter().enumerate().all(is_same)
}

impl Feed {
    /// Nothing yet. Rows that do not meet `filter`, over the columns of the table, are passed over.
    pub fn new(filter: Option<Bound>) -> Self {
        Feed {
            filter,
            intake: Intake::default(),
            out: Changes::default(),
            taken: 0,
            at_once: 0,
            left_out: 0,
            is_last: false,
        }
    }

    /// The number of the row that the last error was about.
    pub fn failed(&self) -> u64 {
        self.intake.loading.failed().map_or(self.taken, |failed| failed.number)
    }

    /// FED-1: whether rows of so many values may be given to [`Feed::take`].
    pub fn takes(&self, insert: &Insert, width: usize) -> bool {
        let target = &insert.target;
        let judges = self.filter.is_some() || insert.guard.is_some() || !insert.view_checks.is_empty();
        let waits = !target.references.is_empty() || !target.uniques.is_empty() || target.checks_wait;
        let computes = !target.checks.is_empty() || !target.generated.is_empty();
        let answers = insert.nothing || insert.conflict.is_some() || insert.returning.is_some();
        target.catalog.is_none() && is_row(insert, width) && !(judges || waits || computes || answers)
    }

    /// Takes a row; false: it is to be fed, and nothing was done.
    ///
    /// # Errors
    /// A value that does not fit its column.
    pub fn take(&mut self, core: &Core, insert: &Insert, row: &[ValueRef<'_>]) -> Result<bool> {
        let shape = &insert.target.table.shape;
        if shape.columns.iter().zip(row).any(|(column, value)| column.not_null && value.is_null()) {
            return Ok(false);
        }
        let loading = &mut self.intake.loading;
        loading.set_number(self.taken + 1);
        let taken = core.engine.take().take_refs(loading, shape, row).map_err(from_engine)?;
        self.taken += u64::from(taken);
        self.at_once += usize::from(taken);
        self.out.count += u64::from(taken);
        Ok(taken)
    }
}

impl Cx<'_> {
    /// Inserts rows as those of the plan's source. To be called after some hundred rows that were taken, too, for the breath that they are owed.
    pub async fn feed(self, insert: &Insert, feed: &mut Feed, rows: &mut Vec<Row>) -> Result<()> {
        let at_once = std::mem::take(&mut feed.at_once);
        if at_once > 0 {
            self.breathe_for(at_once).await?;
            self.run.core.limits.check_undo(self.run.core)?;
        }
        for given in rows.drain(..) {
            feed.taken += 1;
            feed.intake.loading.set_number(feed.taken);
            self.breathe().await?;
            let row = self.row_to_insert(insert, given).await?;
            if !insert.nothing && self.holds(feed.filter.as_ref(), &row).await? {
                self.insert_one(insert, row, (&mut feed.intake.loading, &mut feed.intake.pending), &mut feed.out)
                    .await?;
            } else {
                feed.left_out += 1;
            }
        }
        // An error of a row comes before that of a row which has gathered, as in PostgreSQL's COPY.
        if feed.is_last {
            self.end_loading(insert, &mut feed.intake.loading).await?;
        }
        Ok(())
    }

    /// There are no more rows; how many were inserted.
    pub async fn end_feed(self, feed: Feed) -> Result<u64> {
        if !feed.intake.pending.is_empty() {
            self.settle(feed.intake.pending).await?;
        }
        Ok(feed.out.count)
    }

    /// A row of the table from one of the source.
    pub(super) async fn row_to_insert(self, insert: &Insert, given: Row) -> Result<Row> {
        if is_row(insert, given.len()) {
            return Ok(given);
        }
        let mut row = Row::with_capacity(insert.values.len());
        for v in &insert.values {
            row.push(match v {
                InsertValue::Source(i) => given.get(*i).cloned().unwrap_or(Datum::Null),
                InsertValue::Default(e) => self.value(e, &[]).await?,
                InsertValue::Null => Datum::Null,
            });
        }
        Ok(row)
    }
}
