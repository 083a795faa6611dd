//! Gives literals and parameters of unknown type their type: in the target list of INSERT's query, from the column that it goes to; in a set
//! operation, from the other side.

use super::Planner;
use super::plan::{Body, Query};
use clearway_syntax::ast::{self, ExprKind, Literal, QueryBody, Target};
use clearway_syntax::error::Result;
use clearway_values::expr::bind::inconsistent;
use clearway_values::expr::{BoundKind, Params, Scope};
use clearway_values::types::{SqlType, oid};
use std::sync::Arc;

impl Planner<'_> {
    /// The sides of a set operation; that with a parameter of no type comes last.
    pub(super) fn sides(
        &mut self,
        left: &ast::Query,
        right: &ast::Query,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<(Arc<Query>, Arc<Query>)> {
        let turned = has_open_parameter(left, params);
        let (first, second) = if turned { (right, left) } else { (left, right) };
        let one = self.query(first, parent, params)?;
        let one = opened(one, first);
        of_other_side(second, &one, params);
        let other = self.query(second, parent, params)?;
        let other = opened(other, second);
        Ok(if turned { (other, one) } else { (one, other) })
    }
}

/// Gives parameters that stand for a whole column of INSERT's query the types of the columns that they go to, as PostgreSQL does.
///
/// # Errors
/// 42P08 for one that goes to columns of several types.
pub(super) fn of_columns(source: &ast::Query, types: &[SqlType], params: &mut Params) -> Result<()> {
    let QueryBody::Select(text) = &source.body else { return Ok(()) };
    if text.distinct.is_some() || !params.open {
        return Ok(());
    }
    let mut given: Vec<u32> = Vec::new();
    for (target, ty) in text.targets.iter().zip(types) {
        let Target::Expr { expr, .. } = target else { return Ok(()) };
        let ExprKind::Param(n) = *expr.kind else { continue };
        let at = n as usize - 1;
        if params.types.len() <= at {
            params.types.resize(at + 1, None);
        }
        match params.types[at] {
            None => {
                params.types[at] = Some(ty.oid);
                given.push(n);
            }
            Some(other) if given.contains(&n) && other != ty.oid => {
                return Err(inconsistent(n, other, ty.oid).at(expr.pos));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Gives parameters that stand for a whole column of one side of a set operation the types of the other side's columns.
pub(super) fn of_other_side(source: &ast::Query, other: &Query, params: &mut Params) {
    let QueryBody::Select(text) = &source.body else { return };
    for (target, column) in text.targets.iter().zip(&other.columns) {
        let Target::Expr { expr, .. } = target else { return };
        let ExprKind::Param(n) = *expr.kind else { continue };
        if !params.open || column.ty.oid == oid::UNKNOWN {
            continue;
        }
        let at = n as usize - 1;
        if params.types.len() <= at {
            params.types.resize(at + 1, None);
        }
        params.types[at].get_or_insert(column.ty.oid);
    }
}

/// Whether a parameter without a type stands for a whole column of a query.
pub(super) fn has_open_parameter(source: &ast::Query, params: &Params) -> bool {
    let QueryBody::Select(text) = &source.body else { return false };
    let is_open = |n: u32| params.types.get(n as usize - 1).is_none_or(Option::is_none);
    let open =
        |t: &Target| matches!(t, Target::Expr { expr, .. } if matches!(*expr.kind, ExprKind::Param(n) if is_open(n)));
    params.open && text.targets.iter().any(open)
}

/// The plan of such a query, with the types of columns that are literals of its text left open.
pub(super) fn opened(query: Arc<Query>, source: &ast::Query) -> Arc<Query> {
    let (QueryBody::Select(text), Body::Select(plan)) = (&source.body, &query.body) else { return query };
    let is_literal = |t: &Target| matches!(t, Target::Expr { expr, .. } if matches!(&*expr.kind, ExprKind::Literal(Literal::Str(_) | Literal::Null)));
    let each_is_one = text.targets.len() == plan.targets.len();
    if !each_is_one || plan.distinct.is_some() || !text.targets.iter().any(is_literal) {
        return query;
    }
    let mut out = Query::clone(&query);
    let Body::Select(plan) = &mut out.body else { return query };
    for (i, _) in text.targets.iter().enumerate().filter(|(_, t)| is_literal(t)) {
        if let (BoundKind::Const(_), oid::TEXT) = (&plan.targets[i].kind, plan.targets[i].ty.oid) {
            plan.targets[i].ty = oid::UNKNOWN.into();
            out.columns[i].ty = oid::UNKNOWN.into();
        }
    }
    Arc::new(out)
}
