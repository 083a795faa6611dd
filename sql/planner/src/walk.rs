//! Walks over expressions and plans: which slots an expression names, and whether a query refers to outer levels.

use super::plan::{Access, Action, Body, Distinct, Node, Plan, Query, Range, Select, Subplan};
use clearway_base::stack;
use clearway_syntax::error::Pos;
use clearway_values::expr::{Bound, BoundKind};
use std::collections::HashSet;

/// Calls `f` for every node of an expression.
pub fn each(e: &Bound, f: &mut dyn FnMut(&Bound)) {
    f(e);
    stack::deeper(|| e.children().into_iter().for_each(|child| each(child, f)));
}

/// The lowest and highest slot that an expression names in its own level; none: it names no column of it.
pub fn slots(e: &Bound) -> Option<(usize, usize)> {
    let mut found: Option<(usize, usize)> = None;
    each(e, &mut |e| {
        if let BoundKind::Column { index, level: 0 } = e.kind {
            let (low, high) = found.unwrap_or((index, index));
            found = Some((low.min(index), high.max(index)));
        }
    });
    found
}

/// The slot of its own level that an expression is.
pub fn slot(e: &Bound) -> Option<usize> {
    match e.kind {
        BoundKind::Column { index, level: 0 } => Some(index),
        _ => None,
    }
}

/// The columns that an expression names of the item of its own level whose slots begin at `base`, and of those behind it, as often as it does.
pub fn columns(e: &Bound, base: usize) -> Vec<usize> {
    let mut found = Vec::new();
    each(e, &mut |e| {
        if let BoundKind::Column { index, level: 0 } = e.kind {
            found.extend(index.checked_sub(base));
        }
    });
    found
}

/// Whether an expression must stay above the joins of its level (PLN-4).
pub fn stays_above(e: &Bound) -> bool {
    e.any(&|e| matches!(e.kind, BoundKind::Host { .. } | BoundKind::Subquery { correlated: true, .. }))
}

/// Calls `f` for every expression of a query, with the levels between the expression and the query.
pub fn query_exprs(q: &Query, depth: u16, f: &mut dyn FnMut(&Bound, u16)) {
    Walk::new(true, f).query(q, depth);
}

/// The same of those expressions that may name a slot of this level: an item of FROM that is not lateral sees none of them.
pub fn level_exprs(q: &Query, f: &mut dyn FnMut(&Bound, u16)) {
    Walk::new(false, f).query(q, 0);
}

/// The expressions of a node and of the nodes below it; `all`: those of queries in FROM that are not lateral too.
pub(super) fn node_exprs(node: &Node, (depth, all): (u16, bool), f: &mut dyn FnMut(&Bound, u16)) {
    Walk::new(all, f).node(node, depth);
}

/// The expressions of a query and of the correlated subqueries in them, each with the levels between it and the query.
fn deep_exprs(q: &Query, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(&Bound, u16)) {
    Walk { subplans, ..Walk::new(true, f) }.query(q, depth);
}

/// Calls `f` for each column that a query `depth` levels below a level names of it, and so its correlated subqueries.
pub fn outer_columns(q: &Query, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(usize, Pos)) {
    deep_exprs(q, depth, subplans, &mut |e, depth| {
        each(e, &mut |e| {
            if let BoundKind::Column { index, level } = e.kind
                && level == depth
            {
                f(index, e.pos);
            }
        });
    });
}

/// A walk over the expressions of queries. An expression of WITH that several items refer to, and a subquery that stands at several places, is
/// walked once for each number of levels around it: a chain of them, each of which names the one before twice, has 2^n ways through it.
struct Walk<'a> {
    /// Whether queries in FROM that are not lateral are walked. Below a query that sees the level all of them are.
    all: bool,
    /// Subqueries; none: they are not walked.
    subplans: &'a [Subplan],
    walked: HashSet<(*const Query, u16)>,
    f: &'a mut dyn FnMut(&Bound, u16),
}

impl<'a> Walk<'a> {
    fn new(all: bool, f: &'a mut dyn FnMut(&Bound, u16)) -> Walk<'a> {
        Walk { all, subplans: &[], walked: HashSet::new(), f }
    }

    fn expr(&mut self, e: &Bound, depth: u16) {
        (self.f)(e, depth);
        if self.subplans.is_empty() {
            return;
        }
        let subplans = self.subplans;
        each(e, &mut |e| {
            if let BoundKind::Subquery { id, correlated: true, .. } = e.kind
                && let Some(sub) = subplans.get(id)
            {
                self.shared(&sub.query, depth + 1);
            }
        });
    }

    /// A query that may be met again.
    fn shared(&mut self, q: &Query, depth: u16) {
        if self.walked.insert((std::ptr::from_ref(q), depth)) {
            self.query_below(q, depth);
        }
    }

    fn query(&mut self, q: &Query, depth: u16) {
        stack::deeper(|| self.query_here(q, depth));
    }

    fn query_below(&mut self, q: &Query, depth: u16) {
        let all = std::mem::replace(&mut self.all, true);
        self.query(q, depth);
        self.all = all;
    }

    fn query_here(&mut self, q: &Query, depth: u16) {
        q.sort.iter().for_each(|k| self.expr(&k.expr, depth));
        q.limit.iter().chain(&q.offset).for_each(|e| self.expr(e, depth));
        match &q.body {
            Body::Values(rows) => rows.iter().flatten().for_each(|e| self.expr(e, depth)),
            Body::SetOp { left, right, .. } => {
                self.query_below(left, depth);
                self.query_below(right, depth);
            }
            Body::Recursive { anchor, step, .. } => {
                self.query_below(anchor, depth);
                self.query_below(step, depth);
            }
            Body::Select(s) => {
                self.node(&s.source, depth);
                exprs_above(s, &mut |e| self.expr(e, depth));
            }
        }
    }

    fn node(&mut self, node: &Node, depth: u16) {
        stack::deeper(|| self.node_here(node, depth));
    }

    fn node_here(&mut self, node: &Node, depth: u16) {
        match node {
            Node::One => {}
            Node::Scan(s) => {
                s.filter.iter().for_each(|e| self.expr(e, depth));
                access_exprs(&s.access, &mut |e| self.expr(e, depth));
            }
            Node::Work(s) => s.filter.iter().for_each(|e| self.expr(e, depth)),
            Node::System(s) => s.filter.iter().for_each(|e| self.expr(e, depth)),
            Node::Sample(s) => s.scan.filter.iter().chain(s.sampling.exprs()).for_each(|e| self.expr(e, depth)),
            Node::Function(s) => s.calls.iter().flat_map(|c| &c.args).for_each(|e| self.expr(e, depth)),
            Node::Derived(d) => {
                d.filter.iter().for_each(|e| self.expr(e, depth));
                let below = depth + u16::from(d.lateral);
                match &d.kept {
                    _ if !self.all && !d.lateral => {}
                    Some(_) => self.shared(&d.query, below),
                    None => self.query_below(&d.query, below),
                }
            }
            Node::Join(j) => {
                self.node(&j.left, depth);
                self.node(&j.right, depth);
                j.on.iter().for_each(|e| self.expr(e, depth));
                if let Some((l, r)) = &j.hash {
                    l.iter().chain(r).for_each(|e| self.expr(e, depth));
                }
            }
            Node::Filter { input, filter } => {
                self.node(input, depth);
                self.expr(filter, depth);
            }
        }
    }
}

/// The expressions of a level above its source, but for those of its order.
pub(super) fn exprs_above(s: &Select, f: &mut dyn FnMut(&Bound)) {
    let outer = s.outer.iter().map(|(on, _)| on);
    s.filter.iter().chain(&s.recheck).chain(outer).chain(&s.targets).for_each(&mut *f);
    if let Some(g) = &s.grouping {
        g.keys.iter().chain(&g.having).for_each(&mut *f);
        g.calls.iter().flat_map(|call| call.exprs()).for_each(&mut *f);
    }
    s.windows.iter().flat_map(super::plan::WindowStage::exprs).for_each(&mut *f);
    for (call, _) in s.sets.iter().flat_map(|s| &s.turns).flatten() {
        call.args.iter().for_each(&mut *f);
    }
    if let Some(Distinct::On(keys)) = &s.distinct {
        keys.iter().for_each(f);
    }
}

/// Calls `f` for every expression of an access.
pub fn access_exprs(access: &Access, f: &mut dyn FnMut(&Bound)) {
    match access {
        Access::Full => {}
        Access::Tids(tids) => tids.exprs().for_each(f),
        Access::Keys(keys) => keys.iter().flatten().for_each(f),
        Access::KeyRange(r) | Access::Index(_, r) => range_exprs(r).for_each(f),
        Access::Ranges(ranges) => ranges.exprs().for_each(f),
    }
}

impl Plan {
    /// Whether another plan might be chosen by other figures: it reads more than rows by their whole keys.
    pub fn depends_on_figures(&self) -> bool {
        let by_key = |node: &Node| match node {
            Node::One => true,
            Node::Scan(s) => matches!(s.access, Access::Keys(_) | Access::Tids(_)),
            _ => false,
        };
        let of_action = |action: &Action| match action {
            Action::Select(q) => query_by_key(q),
            Action::Insert(i) => query_by_key(&i.source),
            Action::Update(u) => by_key(&u.source),
            Action::Delete(d) => by_key(&d.source),
            Action::Merge(_) | Action::Settings(_) => false,
        };
        fn query_by_key(q: &Query) -> bool {
            match &q.body {
                Body::Values(_) => true,
                Body::Select(s) => match &*s.source {
                    Node::One => true,
                    Node::Scan(s) => matches!(s.access, Access::Keys(_) | Access::Tids(_)),
                    _ => false,
                },
                _ => false,
            }
        }
        let all = of_action(&self.action) && self.changes.iter().all(|c| of_action(&c.action));
        !(all && self.subqueries.iter().all(|s| query_by_key(&s.query)))
    }
}

/// The expressions of a range.
pub fn range_exprs(r: &Range) -> impl Iterator<Item = &Bound> {
    r.equal.iter().chain(r.low.iter().chain(&r.high).map(|b| &b.0))
}

/// Whether a query refers to rows of the queries around it.
pub fn is_correlated(q: &Query, subplans: &[Subplan]) -> bool {
    lowest_beyond(q, subplans).is_some()
}

/// The lowest level around a query whose rows the query names, 0 for the nearest; none: it names none of them.
pub fn lowest_beyond(q: &Query, subplans: &[Subplan]) -> Option<u16> {
    let mut lowest: Option<u16> = None;
    deep_exprs(q, 0, subplans, &mut |e, depth| {
        each(e, &mut |e| {
            if let BoundKind::Column { level, .. } = &e.kind {
                lowest = lowest.into_iter().chain(level.checked_sub(depth + 1)).min();
            }
        });
    });
    lowest
}

/// Whether two expressions are the same but for where they stand.
pub fn same(a: &Bound, b: &Bound) -> bool {
    a.same(b)
}
