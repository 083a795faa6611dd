//! What a function gives: RETURN, RETURN NEXT, RETURN QUERY.

use super::compile::Returns;
use super::evaluate::{in_fragment, settled};
use super::frame::Frame;
use super::statement::DROPPED;
use crate::error::{Result, SqlError, code};
use crate::exec::Row;
use crate::session::routine::no_value;
use crate::session::run::Execution;
use crate::syntax::plpgsql::tree::{Returned, Rows};
use crate::types::datum::{Record, RowShape};
use crate::types::{Datum, SqlType, format_type, oid, user};
use std::sync::Arc;

impl Frame<'_> {
    /// RETURN: what it gives is kept.
    pub(super) async fn give(&mut self, returned: &Returned) -> Result<()> {
        self.returned = match returned {
            Returned::Nothing | Returned::Outputs => None,
            Returned::Variable(slot) => Some((self.values[*slot].clone(), self.types[*slot])),
            Returned::Value(f) => Some(self.evaluate(f).await?),
        };
        Ok(())
    }

    fn returns(&self) -> Result<Returns> {
        self.code.returns.clone().ok_or_else(|| SqlError::internal("a body that is no function\'s"))
    }

    /// The result of a function that gives no rows.
    pub(super) fn ended(&mut self, without_return: bool) -> Result<Row> {
        let returns = self.returns()?;
        if returns.ty.oid == oid::VOID {
            return Ok(match &self.wanted {
                Some(columns) => no_value(Some(columns)),
                None => vec![Datum::Void],
            });
        }
        if returns.has_outputs {
            return self.output_row(&returns);
        }
        if without_return {
            return Err(SqlError::new("2F005", "control reached end of function without RETURN"));
        }
        match self.returned.take() {
            Some((value, ty)) => self.result(&returns, value, ty),
            None => Ok(no_value(self.wanted.as_ref())),
        }
    }

    /// The values of the OUT arguments.
    pub(super) fn outputs(&self) -> Row {
        self.code.outputs.iter().map(|slot| self.values[*slot].clone()).collect()
    }

    fn output_row(&self, returns: &Returns) -> Result<Row> {
        let row = self.outputs();
        match (&returns.shape, &self.wanted) {
            (Some(shape), None) if shape.types.len() > 1 => {
                Ok(vec![Datum::Row(Arc::new(Record::new(shape.clone(), row)?))])
            }
            _ => Ok(row),
        }
    }

    /// A value as a row of the result.
    fn result(&self, returns: &Returns, value: Datum, from: SqlType) -> Result<Row> {
        let ty = returns.ty;
        if ty.oid != oid::RECORD && !user::is_composite(user::base(ty).oid) {
            return Ok(vec![self.converted(value, from, ty)?]);
        }
        match value {
            Datum::Null => Ok(no_value(self.wanted.as_ref())),
            Datum::Row(row) => self.record(returns, &row, "returned record type does not match expected record type"),
            _ => {
                let message = "cannot return non-composite value from function returning composite type";
                Err(SqlError::new(code::DATATYPE_MISMATCH, message))
            }
        }
    }

    /// A record as a row of the result; its fields must be those of the result.
    fn record(&self, returns: &Returns, row: &Record, mismatch: &str) -> Result<Row> {
        let declared = returns.shape.clone().or_else(|| user::shape(user::base(returns.ty).oid));
        let Some(shape) = declared else {
            let Some(columns) = &self.wanted else { return Ok(vec![Datum::Row(Arc::new(row.clone()))]) };
            let types: Vec<SqlType> = row.shape.types.iter().map(|ty| settled(*ty)).collect();
            same_types(&types, columns)
                .map_err(|detail| SqlError::new(code::DATATYPE_MISMATCH, mismatch).detail(detail))?;
            return Ok(row.values.clone());
        };
        same_types(&row.shape.types, &shape.types)
            .map_err(|detail| SqlError::new(code::DATATYPE_MISMATCH, mismatch).detail(detail))?;
        let mut values = Vec::with_capacity(shape.types.len());
        for ((value, from), to) in row.values.iter().zip(&row.shape.types).zip(&shape.types) {
            values.push(self.converted(value.clone(), settled(*from), *to)?);
        }
        match &self.wanted {
            Some(_) => Ok(values),
            None if shape.types.len() == 1 && returns.ty.oid != oid::RECORD && !user::is_composite(returns.ty.oid) => {
                Ok(values)
            }
            None => Ok(vec![Datum::Row(Arc::new(Record::new(shape, values)?))]),
        }
    }

    /// RETURN NEXT.
    pub(super) async fn return_next(&mut self, returned: &Returned) -> Result<()> {
        let returns = self.returns()?;
        let row = match returned {
            Returned::Outputs | Returned::Nothing => self.output_row(&returns)?,
            Returned::Variable(slot) => self.result(&returns, self.values[*slot].clone(), self.types[*slot])?,
            Returned::Value(f) => {
                let (value, ty) = self.evaluate(f).await?;
                self.result(&returns, value, ty)?
            }
        };
        self.rows.push(row);
        Ok(())
    }

    /// RETURN QUERY.
    pub(super) async fn return_query(&mut self, rows: &Rows) -> Result<()> {
        let mut execution = self.rows_of(rows, false).await?.execution;
        match (self.take_rows(&mut execution).await, rows) {
            (Err(e), Rows::Query(f)) => Err(in_fragment(f, e)),
            (done, _) => done,
        }
    }

    /// Adds the rows of a query to the result.
    async fn take_rows(&mut self, execution: &mut Execution) -> Result<()> {
        let returns = self.returns()?;
        let core = self.session.core.clone();
        let columns = execution.cached.plan.columns.clone().unwrap_or_default();
        let types: Vec<SqlType> = columns.iter().map(|c| settled(c.ty)).collect();
        let names = Some(columns.iter().map(|c| c.name.clone()).collect());
        let shape = Arc::new(RowShape { oid: oid::RECORD, names, types });
        let mismatch = "structure of query does not match function result type";
        let scalar = returns.ty.oid != oid::RECORD && !user::is_composite(user::base(returns.ty).oid);
        if scalar {
            same_types(&shape.types, &[returns.ty])
                .map_err(|detail| SqlError::new(code::DATATYPE_MISMATCH, mismatch).detail(detail))?;
        }
        let mut count = 0;
        loop {
            let list = execution.take(&core, DROPPED).await?;
            let got = list.len() as u64;
            count += got;
            for mut row in list {
                let row = match scalar {
                    true => vec![self.converted(row.pop().unwrap_or(Datum::Null), shape.types[0], returns.ty)?],
                    false => self.record(&returns, &Record::new(shape.clone(), row)?, mismatch)?,
                };
                self.rows.push(row);
            }
            clearway_base::memory::check()?;
            if got < DROPPED {
                break;
            }
        }
        self.row_count = count;
        self.found(count > 0);
        Ok(())
    }
}

/// Whether rows of some types are rows of others; if not, what is different.
fn same_types(given: &[SqlType], wanted: &[SqlType]) -> std::result::Result<(), String> {
    for (i, (given, wanted)) in given.iter().zip(wanted).enumerate() {
        let given = settled(*given);
        if user::base(given).oid != user::base(*wanted).oid {
            let (given, wanted) = (format_type(given), format_type(SqlType::new(wanted.oid)));
            return Err(format!("Returned type {given} does not match expected type {wanted} in column {}.", i + 1));
        }
    }
    if given.len() != wanted.len() {
        let (given, wanted) = (given.len(), wanted.len());
        return Err(format!("Number of returned columns ({given}) does not match expected column count ({wanted})."));
    }
    Ok(())
}
