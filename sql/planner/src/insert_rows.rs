//! The VALUES of an INSERT.

use super::Planner;
use super::checks::check_count;
use super::plan::{Body, Query};
use clearway_engine::catalog::Relation;
use clearway_syntax::ast::{Expr, ExprKind, Query as AstQuery, QueryBody, Select as AstSelect, Target as AstTarget};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt;
use clearway_values::expr::{Bound, Params, Scope};
use clearway_values::types::{Datum, SqlType};

impl Planner<'_> {
    /// The rows, each value bound to the type of its column.
    ///
    /// # Errors
    /// 42601 for lists of different lengths; those of the values.
    pub(super) fn insert_rows(
        &mut self,
        relation: &Relation,
        (given, types): (&[usize], &[SqlType]),
        rows: &[Vec<Expr>],
        s: &stmt::Insert,
        params: &mut Params,
    ) -> Result<Vec<Vec<Bound>>> {
        let count = rows.first().map_or(0, Vec::len);
        let mut bound = Vec::new();
        for row in rows {
            if row.len() != count {
                let pos = row.first().map_or(0, |e| e.pos);
                return Err(SqlError::new(code::SYNTAX_ERROR, "VALUES lists must all be the same length").at(pos));
            }
            check_count(given.len(), count, s, |i| row[i].pos)?;
            params.begin_list();
            let mut out = Vec::new();
            for (e, (column, ty)) in row.iter().zip(given.iter().zip(types)) {
                self.check_identity(relation, *column, e, s)?;
                let value = self.assigned(relation, *column, *ty, e, &Scope::default(), params, "VALUES")?;
                let overridden = super::generated::is_overridden(&relation.columns[*column], s);
                out.push(if overridden { Bound::constant(Datum::Null, *ty, 0) } else { value });
            }
            bound.push(out);
        }
        Ok(bound)
    }
}

/// Whether a function that gives rows stands among values.
pub(super) fn gave_rows(error: &SqlError) -> bool {
    error.code() == code::FEATURE_NOT_SUPPORTED
        && error.message() == "set-returning functions are not allowed in VALUES"
}

/// Whether `x.*` stands among values.
pub(super) fn has_whole_row(source: &AstQuery) -> bool {
    let QueryBody::Values(rows) = &source.body else { return false };
    rows.iter().flatten().any(|e| matches!(&*e.kind, ExprKind::AllFields(_)))
}

/// VALUES of one row as a query whose target list that is, as which PostgreSQL takes them; none: it is another query.
pub(super) fn as_query(source: &AstQuery) -> Option<AstQuery> {
    let QueryBody::Values(rows) = &source.body else { return None };
    let [row] = rows.as_slice() else { return None };
    let targets = row.iter().map(|e| AstTarget::Expr { expr: e.clone(), alias: None }).collect();
    let body = QueryBody::Select(Box::new(AstSelect {
        distinct: None,
        targets,
        from: Vec::new(),
        filter: None,
        group_by: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
    }));
    Some(AstQuery { body, ..source.clone() })
}

/// Refuses what VALUES may not have, in the query that they were taken as.
pub(super) fn refuse_stages(query: &Query, pos: Pos) -> Result<()> {
    let Body::Select(select) = &query.body else { return Ok(()) };
    let (state, what) = if select.grouping.is_some() {
        (code::GROUPING_ERROR, "aggregate")
    } else if !select.windows.is_empty() {
        (code::WINDOWING_ERROR, "window")
    } else {
        return Ok(());
    };
    Err(SqlError::new(state, format!("{what} functions are not allowed in VALUES")).at(pos))
}

/// Refuses a column that is written twice: two columns of a view may be one of the table.
pub(super) fn each_once(relation: &Relation, written: &[usize]) -> Result<()> {
    let twice = written.iter().enumerate().find(|(at, c)| written[..*at].contains(c));
    let Some((_, column)) = twice else { return Ok(()) };
    let message = format!("multiple assignments to same column \"{}\"", relation.columns[*column].name);
    Err(SqlError::new(code::SYNTAX_ERROR, message))
}
