//! The rows of a table in runs, by their newest versions, and written anew: what statements do that define data and look at every row.

use crate::change::{engine_row, newest_view};
use crate::{BoxFuture, Cx, Row};
use clearway_base::breath;
use clearway_context::convert::read_row;
use clearway_context::core::Core;
use clearway_context::errors::{about, from_engine};
use clearway_engine::catalog::Catalog;
use clearway_engine::error::EngineError;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_planner::plan::Target;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::Bound;
use clearway_values::types::SqlType;
use std::sync::Arc;

/// Rows of a run: fewer are the last.
pub const RUN_ROWS: usize = 256;

/// The next run of rows; `from` is where it begins, and then the next.
pub fn some_rows<'a>(
    core: &'a Core,
    shape: &'a Arc<TableShape>,
    from: &'a mut Vec<u8>,
) -> BoxFuture<'a, Result<Vec<Vec<Value>>>> {
    Box::pin(async move {
        let mut engine = core.engine.take();
        let view = newest_view(&mut engine);
        let range = KeyRange { from: std::mem::take(from), to: None };
        let mut walk = engine.scan(shape, range, Direction::Forward, &view);
        let mut run = Vec::new();
        while let Some(found) = engine.next(&mut walk).await.map_err(from_engine)? {
            if run.len() == RUN_ROWS {
                *from = found.key;
                break;
            }
            run.push(found.row);
        }
        Ok(run)
    })
}

/// Puts rows into a table and its indexes; `failed` says what is told of a row that can't be.
pub fn put_rows<'a>(
    core: &'a Core,
    shape: &'a Arc<TableShape>,
    rows: Vec<Vec<Value>>,
    failed: &'a (dyn Fn(EngineError) -> SqlError + Sync),
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        for values in rows {
            let inserted = core.engine.take().insert(shape, &values).await;
            inserted.map_err(|e| failed(e.of_row(&values)))?;
            breath::breathe(4 * breath::ROW).await?;
        }
        Ok(())
    })
}

impl Cx<'_> {
    /// Rows with other values in some columns, as the table is to be.
    ///
    /// # Errors
    /// Those of the expressions; 23502, 23514.
    pub fn anew(
        self,
        (catalog, target): (&Catalog, &Target),
        old_types: &[SqlType],
        rows: Vec<Vec<Value>>,
        changes: &[(usize, Bound)],
    ) -> Result<Vec<Vec<Value>>> {
        let mut out = Vec::with_capacity(rows.len());
        for values in rows {
            let mut old = Row::new();
            read_row(&values, old_types, &mut old)?;
            let mut row = old.clone();
            for (at, e) in changes {
                row[*at] = self.value_now(e, &old)?;
            }
            self.judge_anew((catalog, target), &mut row)?;
            out.push(engine_row(&row));
        }
        Ok(out)
    }

    fn judge_anew(self, (catalog, target): (&Catalog, &Target), row: &mut Row) -> Result<()> {
        for (column, e) in target.generated.iter() {
            row[*column] = self.value_now(e, row)?;
        }
        let shape = &target.table.shape;
        let about = |error: SqlError| about(error, catalog, shape.oid);
        if let Some((c, _)) = shape.columns.iter().zip(row.iter()).find(|(c, v)| c.not_null && v.is_null()) {
            let message = format!("column \"{}\" of relation \"{}\" contains null values", c.name, shape.name);
            return Err(about(SqlError::new("23502", message)).column(c.name.as_str()));
        }
        for (name, check) in target.checks.iter() {
            if self.value_now(check, row)?.as_bool() == Some(false) {
                let message =
                    format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", shape.name);
                return Err(about(SqlError::new("23514", message)).constraint(name.as_str()));
            }
        }
        Ok(())
    }
}
