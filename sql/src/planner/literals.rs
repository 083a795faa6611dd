//! Gives literals of unknown type their type: in the target list of INSERT's query, from the column that the literal goes to; in a set
//! operation, from the other side.

use super::plan::{Body, Query};
use crate::expr::BoundKind;
use crate::syntax::ast::{self, ExprKind, Literal, QueryBody, Target};
use crate::types::oid;
use std::sync::Arc;

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
