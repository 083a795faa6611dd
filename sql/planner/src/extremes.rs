//! Several MIN and MAX of one table in a query: each becomes a subquery that reads the first row in its own order.

use super::cost::{Few, Figures};
use super::order::Asked;
use super::plan::{Body, Grouping, Node, OutputColumn, Query, Select, SortKey, Subplan};
use super::{Planner, order, walk, wanted};
use clearway_context::steering::Way;
use clearway_values::expr::aggregate::{AggregateCall, Kind};
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::{Datum, oid};
use std::sync::Arc;

/// The order whose first row holds what an aggregate asks for.
fn order_of(call: &AggregateCall) -> Option<SortKey> {
    let ([arg], None) = (call.args.as_slice(), &call.filter) else { return None };
    let descending = match call.kind {
        Kind::Min => false,
        Kind::Max => true,
        _ => return None,
    };
    Some(SortKey { expr: arg.clone(), descending, nulls_first: descending })
}

/// The order whose first row holds the one extreme that a query asks for.
pub(super) fn extreme(grouping: &Grouping) -> Option<SortKey> {
    match (grouping.calls.as_slice(), grouping.is_one_group()) {
        ([call], true) => order_of(call),
        _ => None,
    }
}

/// Puts expressions in the places of aggregates.
fn replace(e: &mut Bound, by: &[Bound]) {
    if let BoundKind::Aggregate(i) = e.kind
        && let Some(new) = by.get(i)
    {
        *e = Bound { ty: e.ty, ..new.clone() };
        return;
    }
    e.children_mut().into_iter().for_each(|child| replace(child, by));
}

/// Whether an expression asks for nothing but the row at hand, and so can be evaluated in another place of the plan, too.
pub(super) fn is_closed(e: &Bound) -> bool {
    !e.any(&|e| match e.kind {
        BoundKind::Column { level, .. } => level > 0,
        BoundKind::Subquery { .. } | BoundKind::Host { .. } => true,
        _ => false,
    })
}

impl Planner<'_> {
    /// Makes queries of their own out of several extremes, if an index has the order of each.
    pub(super) fn split_extremes(&mut self, select: &mut Select, sort: &mut Vec<SortKey>, figures: &Figures<'_>) {
        let Some(grouping) = &select.grouping else { return };
        let Node::Scan(scan) = &*select.source else { return };
        let mut closed = scan.filter.iter().all(is_closed);
        walk::access_exprs(&scan.access, &mut |e| closed &= is_closed(e));
        let is_alone = grouping.is_one_group() && select.windows.is_empty() && select.sets.is_none();
        if grouping.calls.len() < 2 || !is_alone || select.filter.is_some() || !closed {
            return;
        }
        let Some(keys) = grouping.calls.iter().map(order_of).collect::<Option<Vec<_>>>() else { return };
        let mut queries = Vec::new();
        let asked = Asked { few: Some(Few::Rows(1.0)), named: None, otherwise: Way::Sort };
        for key in keys {
            let mut source = Arc::new(Node::Scan(scan.clone()));
            order::serve(&mut source, std::slice::from_ref(&key), asked, figures);
            if order::relied_on(&source).is_none() {
                return;
            }
            queries.push(first(source, select.width, key, &self.subplans, figures));
        }
        let having = grouping.having.clone();
        let mut by = Vec::new();
        for query in queries {
            let (ty, pos) = (query.columns[0].ty, 0);
            self.subplans.push(Subplan { query: Arc::new(query), correlated: false });
            let id = self.subplans.len() - 1;
            let kind = BoundKind::Subquery { id, usage: SubqueryUse::Scalar, args: Vec::new(), correlated: false };
            by.push(Bound { kind, ty, pos });
        }
        (select.source, select.width, select.grouping, select.filter) = (Arc::new(Node::One), 0, None, having);
        select.targets.iter_mut().chain(&mut select.filter).for_each(|e| replace(e, &by));
        // One row has no order.
        sort.clear();
    }
}

/// The first value in an order that is not null.
fn first(source: Arc<Node>, width: usize, key: SortKey, subplans: &[Subplan], figures: &Figures<'_>) -> Query {
    let arg = key.expr.clone();
    let (ty, pos) = (arg.ty, arg.pos);
    let present = BoundKind::IsNull { arg: Box::new(arg.clone()), negated: true };
    let select = Select {
        filter: Some(Bound { kind: present, ty: oid::BOOL.into(), pos }),
        ..Select::plain(source, width, vec![arg])
    };
    let mut query = Query {
        body: Body::Select(Box::new(select)),
        sort: vec![key],
        limit: Some(Bound::constant(Datum::Int8(1), oid::INT8, pos)),
        offset: None,
        ties: false,
        columns: vec![OutputColumn { name: String::new(), ty, origin: (0, 0), shape: None }],
    };
    wanted::narrow(&mut query, subplans, figures);
    query
}
