//! Functions in FROM: one, or several side by side (ROWS FROM, unnest of several arrays), with row numbers if WITH ORDINALITY asks for
//! them.

use super::Planner;
use super::from::{Item, Layout, Leaf, Placed};
use super::leaf::named;
use super::plan::Query;
use super::select::label_of;
use clearway_syntax::ast::{Alias, Call, Expr, ExprKind};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_values::expr::bind_routines::{Called, set_call};
use clearway_values::expr::bind_rows::is_row;
use clearway_values::expr::sets::{self, SetCall, SetFunction};
use clearway_values::expr::{Binder, Bound, Params, Scope};
use clearway_values::types::datum::RowShape;
use clearway_values::types::{SqlType, oid};
use std::borrow::Cow;
use std::sync::Arc;

const PLACE: &str = "functions in FROM";

/// The calls without their parameters of type void, if any has one.
fn without_void(binder: &mut Binder<'_>, list: &[Expr]) -> Result<Option<Vec<Expr>>> {
    let mut out: Option<Vec<Expr>> = None;
    for (at, e) in list.iter().enumerate() {
        let ExprKind::Call(call) = &*e.kind else { continue };
        if let Cow::Owned(call) = binder.without_void(call)? {
            out.get_or_insert_with(|| list.to_vec())[at].kind = ExprKind::Call(call).into();
        }
    }
    Ok(out)
}

impl Planner<'_> {
    pub(super) fn functions(
        &mut self,
        out: &mut Layout,
        list: &[Expr],
        ordinality: bool,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Placed> {
        let reduced: Option<Vec<Expr>> = self.bind(scope, params, PLACE, None, |b| without_void(b, list))?;
        let list = reduced.as_deref().unwrap_or(list);
        if let [only] = list
            && let ExprKind::Call(c) = &*only.kind
            && let Some(placed) = self.rows_function(out, c, ordinality, alias, scope, params)?
        {
            return Ok(placed);
        }
        if let [only] = list
            && let ExprKind::Call(c) = &*only.kind
            && !ordinality
            && c.over.is_none()
            && alias.is_none_or(|a| a.types.is_empty())
            && let Some(called) = self.bind(scope, params, PLACE, None, |b| b.user_function(c, only.pos))?
            && let Some(plan) = self.inlined_rows(&called, only.pos)
        {
            return inlined_leaf(out, plan, called, alias, only.pos);
        }
        let mut calls: Vec<SetCall> = Vec::new();
        let defined = alias.map_or(Ok(None), defined_shape)?;
        for e in list {
            self.function(e, &mut calls, defined.as_ref(), scope, params)?;
        }
        for e in calls.iter().flat_map(|c| &c.args) {
            self.note(e);
        }
        let first = list.first().map_or_else(String::new, label_of);
        let relation = alias.map(|a| &a.name).filter(|name| !name.is_empty()).unwrap_or(&first).clone();
        let base = out.width;
        let mut columns: Vec<(&str, SqlType, usize)> = Vec::new();
        for (name, ty) in calls.iter().flat_map(|c| &c.columns) {
            columns.push((name, *ty, base + columns.len()));
        }
        // A lone column bears the name of its item.
        if let ([(name, _, _)], [call]) = (columns.as_mut_slice(), calls.as_slice())
            && !call.names_columns()
        {
            *name = relation.as_str();
        }
        if ordinality {
            columns.push(("ordinality", oid::INT8.into(), base + columns.len()));
        }
        out.width += columns.len();
        let plain = alias.map(|a| Alias { name: relation.clone(), ..a.clone() });
        let columns = named(columns, &relation, plain.as_ref())?;
        out.others.push(relation);
        let kind = Leaf::Function { calls, ordinality };
        Ok((Item::Leaf { kind, base, end: out.width, filters: Vec::new() }, columns))
    }

    fn function(
        &mut self,
        e: &Expr,
        calls: &mut Vec<SetCall>,
        defined: Option<&Arc<RowShape>>,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<()> {
        if let ExprKind::Call(c) = &*e.kind
            && c.over.is_none()
            && let Some(called) = self.bind(scope, params, PLACE, None, |b| b.user_function(c, e.pos))?
        {
            calls.push(self.called_in_from(called, defined.map(|d| &**d), e.pos)?);
            return Ok(());
        }
        if let Some(shape) = defined {
            let ExprKind::Call(c) = &*e.kind else { return Err(not_for(e.pos)) };
            let call = self.bind(scope, params, PLACE, None, |b| sets::defined(b, c, shape, e.pos))?;
            calls.push(call.ok_or_else(|| not_for(e.pos))?);
            return Ok(());
        }
        match &*e.kind {
            ExprKind::Call(c) if c.name.name() == "unnest" && c.args.len() > 1 => {
                for arg in &c.args {
                    let one = Call::new(c.name.clone(), vec![arg.clone()]);
                    calls.push(self.bind(scope, params, PLACE, None, |b| sets::bind(b, &one, e.pos))?);
                }
            }
            ExprKind::Call(c) if c.over.is_none() && sets::gives_rows(c.name.name()) => {
                calls.push(self.bind(scope, params, PLACE, None, |b| sets::bind(b, c, e.pos))?);
            }
            ExprKind::Call(c) if clearway_values::expr::wants_definitions(c.name.name()) => {
                return Err(sets::definitions_wanted(e.pos));
            }
            _ => {
                let (bound, shape) = self.bind(scope, params, PLACE, None, |b| {
                    let bound: Bound = b.bind(e)?;
                    let shape = is_row(bound.ty.oid).then(|| b.shape_of(&bound)).flatten();
                    Ok((bound, shape))
                })?;
                if let Some(shape) = shape {
                    calls.push(sets::of_rows(bound, &shape));
                    return Ok(());
                }
                if bound.ty.oid == oid::RECORD {
                    return Err(sets::definitions_wanted(e.pos));
                }
                let columns = vec![(label_of(e), bound.ty)];
                calls.push(SetCall { function: SetFunction::Scalar, args: vec![bound], columns });
            }
        }
        Ok(())
    }
}

/// A query that stands for a call: its columns have the names that those of the call have.
fn inlined_leaf(out: &mut Layout, plan: Arc<Query>, called: Called, alias: Option<&Alias>, pos: Pos) -> Result<Placed> {
    let name = called.signature.name.clone();
    let call = set_call(called, pos);
    let relation = alias.map(|a| &a.name).filter(|given| !given.is_empty()).unwrap_or(&name).clone();
    let mut columns: Vec<String> = call.columns.iter().map(|c| c.0.clone()).collect();
    if let ([only], false) = (columns.as_mut_slice(), call.names_columns()) {
        only.clone_from(&relation);
    }
    for (given, column) in alias.iter().flat_map(|a| &a.columns).zip(&mut columns) {
        column.clone_from(given);
    }
    if let Some(a) = alias.filter(|a| a.columns.len() > columns.len()) {
        let message = format!(
            "table \"{relation}\" has {} columns available but {} columns specified",
            columns.len(),
            a.columns.len()
        );
        return Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message));
    }
    let alias = Alias { name: relation.clone(), columns, types: Vec::new() };
    let (item, mut columns) = super::leaf::derived_leaf(out, plan, Some(&alias), &relation, None, false)?;
    // The columns are the function's, whatever its query reads.
    columns.iter_mut().for_each(|c| c.origin = (0, 0));
    Ok((item, columns))
}

/// The row that a column definition list describes.
fn defined_shape(alias: &Alias) -> Result<Option<Arc<RowShape>>> {
    if alias.types.is_empty() {
        return Ok(None);
    }
    let types = alias.types.iter().map(clearway_values::types::resolve).collect::<Result<Vec<SqlType>>>()?;
    Ok(Some(Arc::new(RowShape { oid: oid::RECORD, names: Some(alias.columns.clone()), types })))
}

fn not_for(pos: Pos) -> SqlError {
    let message = "a column definition list is only allowed for functions returning \"record\"";
    SqlError::new(code::SYNTAX_ERROR, message).at(pos)
}
