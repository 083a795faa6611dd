//! Changes expressions everywhere in a level: in the level itself, in lateral queries and in subqueries of expressions.
//!
//! `depth` counts the levels between an expression and the level that is being changed. At that depth a column of the level is `Column {
//! level: depth }`.

use super::from::{Item, Leaf};
use super::plan::{Access, Body, Distinct, KeyValues, Node, Query, Range, Subplan};
use super::walk;
use clearway_base::stack;
use clearway_values::expr::{Bound, BoundKind};
use std::collections::HashSet;
use std::sync::Arc;

/// Calls `change` for each column, with the depth at which it stands.
pub(super) struct Rewriter<'a> {
    /// The statement's subqueries.
    pub subplans: &'a mut Vec<Subplan>,
    /// What the first of them were before, where the change is made to that.
    pub as_they_were: &'a [Arc<Query>],
    /// Those that have been changed: expressions are copied, subqueries are not.
    pub seen: HashSet<usize>,
    /// The change.
    pub change: &'a mut dyn FnMut(&mut Bound, u16),
}

impl Rewriter<'_> {
    /// Changes an expression.
    pub fn expr(&mut self, e: &mut Bound, depth: u16) {
        if let BoundKind::Column { .. } = e.kind {
            // PLN-2: the change keeps it a slot of its level's layout.
            (self.change)(e, depth);
            return;
        }
        if let BoundKind::Subquery { id, correlated: true, .. } = e.kind
            && self.seen.insert(id)
            && let Some(sub) = self.subplans.get(id)
        {
            let mut query = self.as_they_were.get(id).unwrap_or(&sub.query).clone();
            self.query(Arc::make_mut(&mut query), depth + 1);
            self.subplans[id].query = query;
        }
        stack::deeper(|| e.children_mut().into_iter().for_each(|child| self.expr(child, depth)));
    }

    /// Changes the expressions of a query.
    pub fn query(&mut self, q: &mut Query, depth: u16) {
        stack::deeper(|| {
            q.sort.iter_mut().for_each(|k| self.expr(&mut k.expr, depth));
            q.limit.iter_mut().chain(&mut q.offset).for_each(|e| self.expr(e, depth));
            match &mut q.body {
                Body::Values(rows) => rows.iter_mut().flatten().for_each(|e| self.expr(e, depth)),
                Body::SetOp { left, right, .. } => {
                    self.query(Arc::make_mut(left), depth);
                    self.query(Arc::make_mut(right), depth);
                }
                Body::Recursive { anchor, step, .. } => {
                    self.query(Arc::make_mut(anchor), depth);
                    self.query(Arc::make_mut(step), depth);
                }
                Body::Select(s) => {
                    self.node(&mut s.source, depth);
                    s.filter.iter_mut().chain(&mut s.recheck).for_each(|e| self.expr(e, depth));
                    s.targets.iter_mut().for_each(|e| self.expr(e, depth));
                    if let Some(g) = &mut s.grouping {
                        g.keys.iter_mut().chain(&mut g.having).for_each(|e| self.expr(e, depth));
                        g.calls.iter_mut().flat_map(|call| call.exprs_mut()).for_each(|e| self.expr(e, depth));
                    }
                    s.windows.iter_mut().flat_map(|w| w.exprs_mut()).for_each(|e| self.expr(e, depth));
                    let sets = s.sets.iter_mut().flat_map(|s| &mut s.turns).flatten();
                    sets.flat_map(|(call, _)| &mut call.args).for_each(|e| self.expr(e, depth));
                    if let Some(Distinct::On(keys)) = &mut s.distinct {
                        keys.iter_mut().for_each(|e| self.expr(e, depth));
                    }
                }
            }
        });
    }

    fn node(&mut self, node: &mut Arc<Node>, depth: u16) {
        stack::deeper(|| match Arc::make_mut(node) {
            Node::One => {}
            Node::Scan(s) => {
                s.filter.iter_mut().for_each(|e| self.expr(e, depth));
                self.access(&mut s.access, depth);
            }
            Node::Work(s) => s.filter.iter_mut().for_each(|e| self.expr(e, depth)),
            Node::System(s) => s.filter.iter_mut().for_each(|e| self.expr(e, depth)),
            Node::Sample(s) => {
                let exprs = s.scan.filter.iter_mut().chain(s.sampling.exprs_mut());
                exprs.for_each(|e| self.expr(e, depth));
            }
            Node::Function(s) => s.calls.iter_mut().flat_map(|c| &mut c.args).for_each(|e| self.expr(e, depth)),
            Node::Derived(d) => {
                d.filter.iter_mut().for_each(|e| self.expr(e, depth));
                self.derived(&mut d.query, d.lateral, depth);
            }
            Node::Join(j) => {
                self.node(&mut j.left, depth);
                self.node(&mut j.right, depth);
                j.on.iter_mut().for_each(|e| self.expr(e, depth));
                if let Some((l, r)) = &mut j.hash {
                    l.iter_mut().chain(r).for_each(|e| self.expr(e, depth));
                }
            }
            Node::Filter { input, filter } => {
                self.node(input, depth);
                self.expr(filter, depth);
            }
        });
    }

    /// A query in FROM sees what its level sees, and, if it is lateral, the level itself.
    fn derived(&mut self, query: &mut Arc<Query>, lateral: bool, depth: u16) {
        if lateral {
            self.query(Arc::make_mut(query), depth + 1);
        } else if depth > 0 && walk::is_correlated(query, self.subplans) {
            self.query(Arc::make_mut(query), depth);
        }
    }

    fn access(&mut self, access: &mut Access, depth: u16) {
        let range = |this: &mut Self, r: &mut Range| {
            r.equal.iter_mut().for_each(|e| this.expr(e, depth));
            r.low.iter_mut().chain(&mut r.high).for_each(|b| this.expr(&mut b.0, depth));
        };
        match access {
            Access::Full => {}
            Access::Tids(tids) => tids.exprs_mut().for_each(|e| self.expr(e, depth)),
            Access::Keys(keys) => keys.iter_mut().flatten().for_each(|e| self.expr(e, depth)),
            Access::KeyRange(r) | Access::Index(_, r) => range(self, r),
            Access::Ranges(ranges) => {
                for part in &mut ranges.parts {
                    part.columns.iter_mut().flat_map(KeyValues::exprs_mut).for_each(|e| self.expr(e, depth));
                    part.low.iter_mut().chain(&mut part.high).for_each(|b| self.expr(&mut b.0, depth));
                    part.pattern.iter_mut().for_each(|p| self.expr(&mut p.1, depth));
                }
                ranges.guarantees.iter_mut().for_each(|e| self.expr(e, depth));
            }
        }
    }

    /// Changes the expressions of an item of FROM.
    pub fn item(&mut self, item: &mut Item) {
        stack::deeper(|| match item {
            Item::Leaf { kind, filters, .. } => {
                filters.iter_mut().for_each(|e| self.expr(e, 0));
                match kind {
                    Leaf::Function { calls, .. } => {
                        calls.iter_mut().flat_map(|c| &mut c.args).for_each(|e| self.expr(e, 0));
                    }
                    Leaf::Sample(sampled) => sampled.1.exprs_mut().for_each(|e| self.expr(e, 0)),
                    Leaf::Derived { query, lateral, .. } => self.derived(query, *lateral, 0),
                    Leaf::One | Leaf::Table(_) | Leaf::System(_) | Leaf::Work(_) => {}
                }
            }
            Item::Join { left, right, on, .. } => {
                self.item(left);
                self.item(right);
                on.iter_mut().for_each(|e| self.expr(e, 0));
            }
        });
    }
}

/// Calls `f` for each slot of a level that a query `depth` levels below it names.
pub(super) fn outer_slots(q: &Query, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(usize)) {
    walk::query_exprs(q, depth, &mut |e, depth| expr_slots(e, depth, subplans, f));
}

/// The same of an expression.
pub(super) fn expr_slots(e: &Bound, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(usize)) {
    walk::each(e, &mut |e| match e.kind {
        BoundKind::Column { index, level } if level == depth => f(index),
        BoundKind::Subquery { id, correlated: true, .. } => {
            if let Some(sub) = subplans.get(id) {
                outer_slots(&sub.query, depth + 1, subplans, f);
            }
        }
        _ => {}
    });
}

/// The slots that the leaves of an item name: arguments of functions, and lateral queries.
pub(super) fn item_slots(item: &Item, subplans: &[Subplan], f: &mut dyn FnMut(usize)) {
    match item {
        Item::Leaf { kind: Leaf::Function { calls, .. }, .. } => {
            calls.iter().flat_map(|c| &c.args).for_each(|e| expr_slots(e, 0, subplans, f));
        }
        Item::Leaf { kind: Leaf::Sample(sampled), .. } => {
            sampled.1.exprs().for_each(|e| expr_slots(e, 0, subplans, f));
        }
        Item::Leaf { kind: Leaf::Derived { query, lateral: true, .. }, .. } => {
            outer_slots(query, 1, subplans, f);
        }
        Item::Leaf { .. } => {}
        Item::Join { left, right, on, .. } => {
            item_slots(left, subplans, f);
            item_slots(right, subplans, f);
            on.iter().for_each(|e| expr_slots(e, 0, subplans, f));
        }
    }
}
