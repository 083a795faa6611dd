//! Expressions and queries.

use super::compile::{Kind, Planned};
use super::frame::Frame;
use crate::error::{Pos, Result, SqlError, code};
use crate::exec::Row;
use crate::expr::bind_routines::ParamNames;
use crate::expr::bind_variables::Variables;
use crate::planner::plan::OutputColumn;
use crate::session::body::BodyContext;
use crate::session::choice::Choice;
use crate::session::current_of::{Identity, cursor_of, with_identity};
use crate::session::routine::command;
use crate::session::run::{self, Cached, Execution, Request};
use crate::session::session::is_planned;
use crate::syntax::plpgsql::names::Slot;
use crate::syntax::plpgsql::tree::{Fragment, FragmentKind};
use crate::syntax::stmt::Statement;
use crate::types::datum::RowShape;
use crate::types::{Datum, Oid, SqlType, oid};
use std::collections::HashMap;
use std::sync::Arc;

/// A column's type, where a literal has text.
pub(super) fn settled(ty: SqlType) -> SqlType {
    if ty.oid == oid::UNKNOWN { oid::TEXT.into() } else { ty }
}

/// An error in a piece of SQL text.
pub(super) fn in_fragment(f: &Fragment, e: SqlError) -> SqlError {
    if let Some(at) = e.fields().at {
        let at = Pos::try_from(i64::from(at) + f.shift).unwrap_or(0);
        return e.nowhere().at(at).internal_to(&f.text);
    }
    if f.simple && e.fields().names.iter().all(|(field, _)| *field != b'q') && !is_of_record(&e) {
        return e;
    }
    e.within(format!("{} \"{}\"", f.kind.name(), f.text))
}

/// Whether an error says that a record has no such field: PostgreSQL finds that while it plans.
pub(super) fn is_of_record(e: &SqlError) -> bool {
    e.message().starts_with("record \"")
}

/// A query of a loop or a cursor that has begun to run.
pub(super) struct Begun {
    pub(super) execution: Execution,
    pub(super) text: Arc<str>,
    /// What tells the rows of its table apart, if it gives that, too.
    pub(super) identity: Option<Identity>,
}

impl Begun {
    /// One that was begun for a statement which gives it; a plan that was kept may be of the statement without it.
    pub(super) fn identified(execution: Execution, text: Arc<str>, identity: Identity) -> Begun {
        let gives_it = execution.cached.plan.columns.as_deref().is_some_and(|columns| identity.is_behind(columns));
        Begun { execution, text, identity: gives_it.then_some(identity) }
    }
}

impl Frame<'_> {
    /// A statement with what tells the rows of its table apart.
    pub(super) fn identified(&self, statement: &Statement) -> Option<(Statement, Identity)> {
        let Statement::Query(query) = statement else { return None };
        let (query, identity) = with_identity(&self.session.core, query)?;
        Some((Statement::Query(Box::new(query)), identity))
    }

    /// Begins the query of a loop, or of a cursor.
    pub(super) async fn begin_query(&mut self, f: &Fragment, for_cursor: bool) -> Result<Begun> {
        if for_cursor && let Some((statement, identity)) = self.identified(&f.statement) {
            let identified = Fragment { statement: Arc::new(statement), ..f.clone() };
            if let Ok(execution) = self.begin(&identified).await {
                return Ok(Begun::identified(execution, f.text.clone(), identity));
            }
        }
        Ok(Begun { execution: self.begin(f).await?, text: f.text.clone(), identity: None })
    }

    /// The cursor that a variable holds which WHERE CURRENT OF names.
    fn cursor_in(&self, statement: &Statement, names: &ParamNames) -> Result<Option<String>> {
        let (Some(name), Some(variables)) = (cursor_of(statement), &names.variables) else { return Ok(None) };
        let Some(found) = variables.names.find(variables.at, &[name.to_owned()]) else { return Ok(None) };
        if self.types[found.slot].oid != oid::REFCURSOR {
            return Ok(None);
        }
        let held = self.shown(&self.values[found.slot], self.types[found.slot]);
        let number = found.slot + 1;
        let none = || SqlError::new(code::UNDEFINED_OBJECT, format!("no value found for parameter {number}"));
        held.ok_or_else(none).map(Some)
    }

    /// What the records are that are variables.
    fn records(&self) -> HashMap<Slot, Option<Arc<RowShape>>> {
        let records = self.code.kinds.iter().enumerate().filter(|(_, kind)| **kind == Kind::Record);
        let shape = |slot: usize| match &self.values[slot] {
            Datum::Row(row) => Some(row.shape.clone()),
            _ => None,
        };
        records.map(|(slot, _)| (slot, shape(slot))).collect()
    }

    /// Whether the variables are as they were for a plan.
    fn fits(&self, planned: &Planned) -> bool {
        let Some(variables) = &planned.names.variables else { return false };
        let same_record = |(slot, shape): (&Slot, &Option<Arc<RowShape>>)| match (shape, &self.values[*slot]) {
            (Some(shape), Datum::Row(row)) => Arc::ptr_eq(shape, &row.shape) || **shape == *row.shape,
            (None, Datum::Null) => true,
            _ => false,
        };
        planned.types.iter().zip(&self.types).all(|(then, now)| *then == now.oid)
            && variables.records.iter().all(same_record)
    }

    pub(super) fn names_for(&self, f: &Fragment) -> Arc<ParamNames> {
        let body = &self.code.body;
        let variables = Variables {
            names: body.names.clone(),
            at: f.at,
            arguments: body.arguments,
            conflict: body.conflict,
            records: self.records(),
        };
        Arc::new(ParamNames { function: String::new(), names: Vec::new(), variables: Some(variables) })
    }

    /// Begins to run a statement that is planned.
    pub(super) async fn begin(&mut self, f: &Fragment) -> Result<Execution> {
        let slot = self.code.plans[f.id].lock().clone();
        let kept = slot.filter(|planned| self.fits(planned));
        let params: Arc<[Datum]> = self.values.as_slice().into();
        if let Some(planned) = kept.as_ref().filter(|p| p.choice.is_custom(&self.session.core, Some(&p.cached))) {
            let values = (params, planned.types.as_slice(), true);
            let begun = self.begin_with(&f.statement, &f.text, values, planned.names.clone(), None).await;
            let (execution, custom) = begun.map_err(|e| in_fragment(f, e))?;
            planned.choice.made(&custom); // CHO-1
            return Ok(execution);
        }
        let (names, types, cached) = match kept {
            Some(planned) => (planned.names.clone(), planned.types.clone(), Some(planned.cached.clone())),
            None => (self.names_for(f), self.types.iter().map(|ty| ty.oid).collect(), None),
        };
        cached.iter().for_each(|cached| cached.stays(&self.session.core));
        let before = cached.clone();
        let begun = self.begin_with(&f.statement, &f.text, (params, &types, false), names.clone(), cached).await;
        let (execution, cached) = begun.map_err(|e| in_fragment(f, e))?;
        if before.is_none_or(|before| !Arc::ptr_eq(&before, &cached)) {
            let choice = Choice::default();
            *self.code.plans[f.id].lock() = Some(Arc::new(Planned { cached, names, types, choice }));
        }
        Ok(execution)
    }

    /// The same for any statement and any parameters.
    pub(super) async fn begin_with(
        &mut self,
        statement: &Statement,
        text: &Arc<str>,
        (params, types, custom): (Arc<[Datum]>, &[Oid], bool),
        names: Arc<ParamNames>,
        cached: Option<Arc<Cached>>,
    ) -> Result<(Execution, Arc<Cached>)> {
        if self.view.is_some() && !matches!(statement, Statement::Query(_)) {
            let message = format!("{} is not allowed in a non-volatile function", command(statement));
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        let cursor = self.cursor_in(statement, &names)?;
        let at_cursor = self.session.at_cursor(statement, cursor.as_deref())?;
        let (statement, cached) = match &at_cursor {
            Some(statement) => (statement, None),
            None => (statement, cached),
        };
        let context = BodyContext { names, path: None, meaning: None, view: self.view };
        let core = self.session.core.clone();
        core.row_written.store(0, std::sync::atomic::Ordering::Relaxed);
        let request = Request { custom, ..Request::in_body(&core, (statement, text), (params, types), &context) };
        let begun = Box::pin(clearway_base::stack::deeper_polls(run::begin(&core, request, cached))).await;
        let (execution, cached) = begun?;
        self.session.ran_within(cached.plan.read_only);
        Ok((execution, cached))
    }

    /// Up to `max` rows of a query, and its columns.
    pub(super) async fn query(&mut self, f: &Fragment, max: u64) -> Result<(Vec<Row>, Vec<OutputColumn>)> {
        let mut execution = self.begin(f).await?;
        let core = self.session.core.clone();
        let rows = execution.take(&core, max).await.map_err(|e| in_fragment(f, e))?;
        let columns = execution.cached.plan.columns.clone().unwrap_or_default();
        Ok((rows, columns))
    }

    /// The value of an expression, and its type.
    pub(super) async fn evaluate(&mut self, f: &Fragment) -> Result<(Datum, SqlType)> {
        debug_assert!(is_planned(&f.statement), "an expression is a query");
        let (rows, columns) = self.query(f, 2).await?;
        let [column] = columns.as_slice() else {
            let message = format!("query returned {} columns", columns.len());
            return Err(shown(f, SqlError::new(code::SYNTAX_ERROR, message)));
        };
        let mut rows = rows.into_iter();
        let value = rows.next().and_then(|mut row| row.pop()).unwrap_or(Datum::Null);
        if rows.next().is_some() {
            return Err(shown(f, SqlError::new("21000", "query returned more than one row")));
        }
        Ok((value, settled(column.ty)))
    }

    /// The value of an expression as a text; NULL gives none.
    pub(super) async fn text(&mut self, f: &Fragment) -> Result<Option<String>> {
        let (value, ty) = self.evaluate(f).await?;
        Ok(self.shown(&value, ty))
    }

    /// Whether a condition holds.
    pub(super) async fn holds(&mut self, f: &Fragment) -> Result<bool> {
        let (value, ty) = self.evaluate(f).await?;
        Ok(self.converted(value, ty, oid::BOOL.into())?.as_bool() == Some(true))
    }

    /// The values of a list of expressions, with their types.
    pub(super) async fn evaluate_all(&mut self, list: &[Fragment]) -> Result<Vec<(Datum, SqlType)>> {
        let mut out = Vec::with_capacity(list.len());
        for f in list {
            out.push(self.evaluate(f).await?);
        }
        Ok(out)
    }
}

fn shown(f: &Fragment, e: SqlError) -> SqlError {
    match f.kind {
        FragmentKind::Statement => e,
        _ => e.within(format!("query: {}", f.text)),
    }
}
