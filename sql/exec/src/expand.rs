//! Set-returning functions in a select list. An input row gives as many output rows as the longest of its functions; a function that has
//! given its last value gives nulls.

use super::series::Series;
use super::{Cx, Row};
use clearway_context::views::functions::FUNCTIONS;
use clearway_planner::plan::SetStage;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::sets::{SetCall, SetFunction};
use clearway_values::types::Datum;
use clearway_values::types::datum::{Record, RowShape};
use std::sync::Arc;

/// Rows of a function, as far as they have not been given.
pub enum SetRows {
    /// A series.
    Series(Box<Series>),
    /// All rows.
    List(std::vec::IntoIter<Vec<Datum>>),
}

impl SetRows {
    /// Begins to read a function.
    pub async fn open(call: &SetCall, row: &[Datum], values: &[Datum], cx: Cx<'_>) -> Result<SetRows> {
        let args = cx.values(&call.args, row, values).await?;
        Ok(match call.function {
            SetFunction::GenerateSeries => SetRows::Series(Box::new(Series::new(&args)?)),
            SetFunction::Sql { oid, .. } => {
                let columns = call.columns.iter().map(|c| c.1).collect();
                SetRows::List(cx.routine_rows(oid, args, columns).await?.into_iter())
            }
            SetFunction::Catalog(at) => {
                let function = FUNCTIONS.get(at).ok_or_else(|| SqlError::internal("an unknown function"))?;
                SetRows::List(cx.run.views.function_rows(function, &args, cx.run)?.into_iter())
            }
            function => SetRows::List(function.rows(args, &super::host::CxHost { cx })?.into_iter()),
        })
    }

    /// The next row.
    pub fn next(&mut self, cx: Cx<'_>) -> Result<Option<Vec<Datum>>> {
        match self {
            SetRows::Series(series) => Ok(series.next(&super::host::CxHost { cx })?.map(|v| vec![v])),
            SetRows::List(list) => Ok(list.next()),
        }
    }
}

/// One turn: functions that are read in step, and the row that they are put into.
struct Turn {
    row: Row,
    /// Each with its place, and the shape of its rows where they have several columns.
    sets: Vec<(SetRows, usize, Option<Arc<RowShape>>)>,
}

/// A row that is being expanded.
#[derive(Default)]
pub struct Expansion {
    turns: Vec<Turn>,
}

impl Expansion {
    /// Begins with a row; its slots are `width`.
    pub async fn start(&mut self, stage: &SetStage, mut row: Row, width: usize, cx: Cx<'_>) -> Result<()> {
        let end = stage.turns.iter().flatten().map(|(_, place)| width + place + 1).max().unwrap_or(0);
        row.resize(end.max(row.len()), Datum::Null);
        self.turns.clear();
        self.open(stage, row, width, cx).await
    }

    async fn open(&mut self, stage: &SetStage, row: Row, width: usize, cx: Cx<'_>) -> Result<()> {
        let mut sets = Vec::new();
        for (call, place) in &stage.turns[self.turns.len()] {
            let rows = SetRows::open(call, &row, &row[width..], cx).await?;
            sets.push((rows, width + place, call.shape()));
        }
        self.turns.push(Turn { row, sets });
        Ok(())
    }

    /// The next row; none: the row has been expanded.
    pub async fn next(&mut self, stage: &SetStage, width: usize, cx: Cx<'_>) -> Result<Option<Row>> {
        loop {
            cx.breathe().await?;
            let depth = self.turns.len();
            let Some(turn) = self.turns.last_mut() else { return Ok(None) };
            let mut row = None;
            for (set, place, shape) in &mut turn.sets {
                let Some(mut values) = set.next(cx)? else { continue };
                let value = match shape {
                    Some(shape) => Datum::Row(Arc::new(Record::new(shape.clone(), values)?)),
                    None => values.pop().unwrap_or(Datum::Null),
                };
                row.get_or_insert_with(|| turn.row.clone())[*place] = value;
            }
            match row {
                None => {
                    self.turns.pop();
                }
                Some(row) if depth == stage.turns.len() => return Ok(Some(row)),
                Some(row) => self.open(stage, row, width, cx).await?,
            }
        }
    }
}
