//! Hands conditions down into two kinds of queries that are not pulled up. In a query that locks its rows, a row that the condition
//! excludes must not be locked. Into a query that is a security barrier go only conditions that reveal nothing about its hidden rows
//! (RLS-1).

use super::cost::Figures;
use super::from::{Leaf, leaf_node};
use super::plan::{Access, Body, Node, Query, Scan, Select, conjunction, split};
use super::policies::is_leakproof;
use super::{covering, walk};
use clearway_values::expr::{Bound, BoundKind};
use std::sync::Arc;

/// Moves conditions over the columns of a query, from slot `base` on, into the query, where its rows are locked and its result is the same. What
/// can't go down stays in `filters`.
pub(super) fn into_locked(query: &mut Arc<Query>, base: usize, filters: &mut Vec<Bound>, figures: &Figures<'_>) {
    let barrier = matches!(&query.body, Body::Select(select) if select.barrier);
    if !barrier && !locks_rows(query) {
        return;
    }
    // What is kept of a query around it (`pullup`) may have it, too.
    let query = Arc::make_mut(query);
    let Body::Select(select) = &mut query.body else { return };
    if select.makes_groups()
        || select.sets.is_some()
        || select.distinct.is_some()
        || query.limit.is_some()
        || query.offset.is_some()
    {
        return;
    }
    let (mut down, mut stay) = (Vec::new(), Vec::new());
    for e in filters.drain(..) {
        match substituted(&e, base, &select.targets) {
            Some(inside) if !barrier || is_leakproof(&inside) => down.push(inside),
            _ => stay.push(e),
        }
    }
    *filters = stay;
    if !down.is_empty() {
        add_conditions(select, down, figures);
    }
}

/// Whether a query locks rows, or reads from one that does.
fn locks_rows(query: &Query) -> bool {
    let Body::Select(select) = &query.body else { return false };
    !select.locks.is_empty() || matches!(&*select.source, Node::Derived(d) if locks_rows(&d.query))
}

/// A condition over a query's columns as one over the rows from which they are made.
fn substituted(e: &Bound, base: usize, targets: &[Bound]) -> Option<Bound> {
    let fixed = |e: &Bound| !e.is_volatile() && !e.may_wait();
    let mut named = Vec::new();
    walk::each(e, &mut |e| {
        if let BoundKind::Column { index, level: 0 } = e.kind {
            named.push(index.checked_sub(base).and_then(|i| targets.get(i)));
        }
    });
    let all_fixed = fixed(e) && named.iter().all(|target| target.is_some_and(fixed));
    if !all_fixed {
        return None;
    }
    let mut inside = e.clone();
    substitute(&mut inside, &|index| targets.get(index - base).cloned());
    Some(inside)
}

/// Puts expressions in the places of columns of the expression's own level.
pub(super) fn substitute(e: &mut Bound, with: &dyn Fn(usize) -> Option<Bound>) {
    if let BoundKind::Column { index, level: 0 } = e.kind {
        if let Some(other) = with(index) {
            *e = other;
        }
        return;
    }
    clearway_base::stack::deeper(|| e.children_mut().into_iter().for_each(|child| substitute(child, with)));
}

/// Whether a scan reads the whole table, or all entries of an index instead.
fn reads_all(scan: &Scan) -> bool {
    matches!(scan.access, Access::Full) || scan.entries.as_ref().is_some_and(|e| e.of_all)
}

fn add_conditions(select: &mut Select, conditions: Vec<Bound>, figures: &Figures<'_>) {
    if !select.locks.is_empty() {
        select.recheck = conjunction(select.recheck.take().into_iter().chain(conditions.clone()).collect());
    }
    match Arc::make_mut(&mut select.source) {
        Node::Derived(d) => {
            let mut filters: Vec<Bound> = d.filter.take().map(split).unwrap_or_default();
            filters.extend(conditions);
            if d.kept.is_none() && !d.lateral {
                clearway_base::stack::deeper(|| into_locked(&mut d.query, d.base, &mut filters, figures));
            }
            d.filter = conjunction(filters);
        }
        Node::Scan(scan) if reads_all(scan) && scan.order.is_none() => {
            let mut filters = scan.filter.take().map(split).unwrap_or_default();
            filters.extend(conditions);
            let (base, wanted) = (scan.table.base, scan.wanted.take());
            let mut node = leaf_node(Leaf::Table(scan.table.clone()), base, filters, figures);
            if let Node::Scan(scan) = &mut node {
                scan.wanted = wanted;
                covering::cover(scan, None, figures);
            }
            select.source = Arc::new(node);
        }
        _ => select.filter = conjunction(select.filter.take().into_iter().chain(conditions).collect()),
    }
}
