//! Changes expressions everywhere in a level: in the level itself, in lateral queries and in subqueries of expressions.
//!
//! `depth` counts the levels between an expression and the level that is being changed. At that depth a column of the level is `Column {
//! level: depth }`.

use super::from::{Item, Leaf};
use super::plan::{Access, Body, Distinct, Node, Query, Subplan};
use super::pullup::{Raw, Raws};
use super::walk;
use clearway_base::stack;
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_values::expr::{Bound, BoundKind};
use std::collections::HashSet;
use std::sync::Arc;

/// Calls `change` for each column, with the depth at which it stands.
pub(super) struct Rewriter<'a> {
    /// The statement's subqueries.
    pub subplans: &'a mut Vec<Subplan>,
    /// What the first of them were before, where the change is made to that.
    pub as_they_were: &'a [Arc<Query>],
    /// Selections that are kept: what is kept of a subquery is changed with it (PUL-5).
    pub raws: Option<&'a mut Raws>,
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
            let before = self.as_they_were.get(id).unwrap_or(&sub.query).clone();
            let mut query = before.clone();
            self.query(Arc::make_mut(&mut query), depth + 1);
            self.keep_raw(&before, &query, depth + 1);
            self.subplans[id].query = query;
        }
        stack::deeper(|| e.children_mut().into_iter().for_each(|child| self.expr(child, depth)));
    }

    /// PUL-5
    fn keep_raw(&mut self, before: &Arc<Query>, query: &Arc<Query>, depth: u16) {
        let place = |query: &Arc<Query>| Arc::as_ptr(query) as usize;
        let raw = self.raws.as_ref().and_then(|raws| raws.get(&place(before)));
        let Some(mut raw) = raw.filter(|(_, raw)| raw.is_closed(self.subplans)).map(|(_, raw)| Raw::clone(raw)) else {
            return;
        };
        self.item_at(&mut raw.item, depth);
        raw.conditions.iter_mut().chain(&mut raw.targets).for_each(|e| self.expr(e, depth));
        if let Some(raws) = &mut self.raws {
            raws.insert(place(query), (query.clone(), Arc::new(raw)));
        }
    }

    /// Changes the expressions of a query.
    pub fn query(&mut self, q: &mut Query, depth: u16) {
        stack::deeper(|| pieces(q, &mut |piece| self.piece(piece, depth)));
    }

    fn piece(&mut self, piece: Piece<'_>, depth: u16) {
        match piece {
            Piece::Expr(e) => self.expr(e, depth),
            Piece::Side(query) => self.query(Arc::make_mut(query), depth),
            Piece::From { query, lateral, .. } => self.derived(query, lateral, depth),
        }
    }

    /// A query in FROM sees what its level sees, and, if it is lateral, the level itself.
    fn derived(&mut self, query: &mut Arc<Query>, lateral: bool, depth: u16) {
        if lateral {
            self.query(Arc::make_mut(query), depth + 1);
        } else if depth > 0 && walk::is_correlated(query, self.subplans) {
            self.query(Arc::make_mut(query), depth);
        }
    }

    /// Changes the expressions of an item of FROM.
    pub fn item(&mut self, item: &mut Item) {
        self.item_at(item, 0);
    }

    /// The same of an item that stands `depth` levels below.
    fn item_at(&mut self, item: &mut Item, depth: u16) {
        stack::deeper(|| match item {
            Item::Leaf { kind, filters, .. } => {
                filters.iter_mut().for_each(|e| self.expr(e, depth));
                match kind {
                    Leaf::Function { calls, .. } => {
                        calls.iter_mut().flat_map(|c| &mut c.args).for_each(|e| self.expr(e, depth));
                    }
                    Leaf::Sample(sampled) => sampled.1.exprs_mut().for_each(|e| self.expr(e, depth)),
                    Leaf::Derived { query, lateral, .. } => self.derived(query, *lateral, depth),
                    Leaf::One | Leaf::Table(_) | Leaf::System(_) | Leaf::Work(_) => {}
                }
            }
            Item::Join { left, right, on, .. } => {
                self.item_at(left, depth);
                self.item_at(right, depth);
                on.iter_mut().for_each(|e| self.expr(e, depth));
            }
        });
    }
}

/// What a level consists of.
pub(super) enum Piece<'q> {
    /// An expression of the level itself.
    Expr(&'q mut Bound),
    /// A side of a set operation or of a recursive query, which stands in the level's place.
    Side(&'q mut Arc<Query>),
    /// A query in FROM.
    From {
        /// The query.
        query: &'q mut Arc<Query>,
        /// It sees the level.
        lateral: bool,
        /// It sees no level around either: references share it.
        is_closed: bool,
    },
}

/// Calls `f` for each piece of a level, once.
pub(super) fn pieces(q: &mut Query, f: &mut dyn FnMut(Piece<'_>)) {
    q.sort.iter_mut().for_each(|k| f(Piece::Expr(&mut k.expr)));
    q.limit.iter_mut().chain(&mut q.offset).for_each(|e| f(Piece::Expr(e)));
    match &mut q.body {
        Body::Values(rows) => rows.iter_mut().flatten().for_each(|e| f(Piece::Expr(e))),
        Body::SetOp { left, right, .. } => [left, right].into_iter().for_each(|side| f(Piece::Side(side))),
        Body::Recursive { anchor, step, .. } => [anchor, step].into_iter().for_each(|side| f(Piece::Side(side))),
        Body::Select(s) => {
            node_pieces(&mut s.source, f);
            let outer = s.outer.iter_mut().map(|(on, _)| on);
            s.filter.iter_mut().chain(&mut s.recheck).chain(outer).for_each(|e| f(Piece::Expr(e)));
            s.targets.iter_mut().for_each(|e| f(Piece::Expr(e)));
            if let Some(g) = &mut s.grouping {
                g.keys.iter_mut().chain(&mut g.having).for_each(|e| f(Piece::Expr(e)));
                g.calls.iter_mut().flat_map(|call| call.exprs_mut()).for_each(|e| f(Piece::Expr(e)));
            }
            s.windows.iter_mut().flat_map(|w| w.exprs_mut()).for_each(|e| f(Piece::Expr(e)));
            let sets = s.sets.iter_mut().flat_map(|s| &mut s.turns).flatten();
            sets.flat_map(|(call, _)| &mut call.args).for_each(|e| f(Piece::Expr(e)));
            if let Some(Distinct::On(keys)) = &mut s.distinct {
                keys.iter_mut().for_each(|e| f(Piece::Expr(e)));
            }
        }
    }
}

/// The same of a node and of the nodes below it.
pub(super) fn node_pieces(node: &mut Arc<Node>, f: &mut dyn FnMut(Piece<'_>)) {
    stack::deeper(|| match Arc::make_mut(node) {
        Node::One => {}
        Node::Scan(s) => {
            s.filter.iter_mut().for_each(|e| f(Piece::Expr(e)));
            access_pieces(&mut s.access, &mut |e| f(Piece::Expr(e)));
        }
        Node::Work(s) => s.filter.iter_mut().for_each(|e| f(Piece::Expr(e))),
        Node::System(s) => s.filter.iter_mut().for_each(|e| f(Piece::Expr(e))),
        Node::Sample(s) => {
            s.scan.filter.iter_mut().chain(s.sampling.exprs_mut()).for_each(|e| f(Piece::Expr(e)));
        }
        Node::Function(s) => {
            s.calls.iter_mut().flat_map(|c| &mut c.args).for_each(|e| f(Piece::Expr(e)));
        }
        Node::Derived(d) => {
            d.filter.iter_mut().for_each(|e| f(Piece::Expr(e)));
            let (lateral, is_closed) = (d.lateral, d.kept.is_some());
            f(Piece::From { query: &mut d.query, lateral, is_closed });
        }
        Node::Join(j) => {
            node_pieces(&mut j.left, f);
            node_pieces(&mut j.right, f);
            j.on.iter_mut().for_each(|e| f(Piece::Expr(e)));
            if let Some((l, r)) = &mut j.hash {
                l.iter_mut().chain(r).for_each(|e| f(Piece::Expr(e)));
            }
        }
        Node::Filter { input, filter } => {
            node_pieces(input, f);
            f(Piece::Expr(filter));
        }
    });
}

fn access_pieces(access: &mut Access, f: &mut dyn FnMut(&mut Bound)) {
    match access {
        Access::Full => {}
        Access::Tids(tids) => tids.exprs_mut().for_each(f),
        Access::Keys(keys) => keys.iter_mut().flatten().for_each(f),
        Access::KeyRange(r) | Access::Index(_, r) => {
            r.equal.iter_mut().for_each(&mut *f);
            r.low.iter_mut().chain(&mut r.high).for_each(|b| f(&mut b.0));
        }
        Access::Ranges(ranges) => ranges.each_expr_mut(f),
    }
}

/// Calls `f` for each slot of a level that a query `depth` levels below it names.
pub(super) fn outer_slots(q: &Query, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(usize)) {
    walk::outer_columns(q, depth, subplans, &mut |slot, _| f(slot));
}

/// The same of an expression.
pub(super) fn expr_slots(e: &Bound, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(usize)) {
    expr_columns(e, depth, subplans, &mut |slot, _| f(slot));
}

/// The same with the places of the names.
pub(super) fn expr_columns(e: &Bound, depth: u16, subplans: &[Subplan], f: &mut dyn FnMut(usize, Pos)) {
    walk::each(e, &mut |e| match e.kind {
        BoundKind::Column { index, level } if level == depth => f(index, e.pos),
        BoundKind::Subquery { id, correlated: true, .. } => {
            if let Some(sub) = subplans.get(id) {
                walk::outer_columns(&sub.query, depth + 1, subplans, f);
            }
        }
        _ => {}
    });
}

/// Refuses an expression of a clause that names a column of its own level, in a subquery too.
///
/// # Errors
/// 42P10.
pub(super) fn without_columns(e: &Bound, clause: &str, subplans: &[Subplan]) -> Result<()> {
    let mut named = None;
    expr_columns(e, 0, subplans, &mut |_, pos| {
        named.get_or_insert(pos);
    });
    let Some(pos) = named else { return Ok(()) };
    let message = format!("argument of {clause} must not contain variables");
    Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message).at(pos))
}

/// The slots that the leaves of an item name: arguments of functions, lateral queries, and filters, which a lateral query that was taken in has left
/// there and which may name what is to the left of it.
pub(super) fn item_slots(item: &Item, subplans: &[Subplan], f: &mut dyn FnMut(usize)) {
    if let Item::Leaf { filters, .. } = item {
        filters.iter().for_each(|e| expr_slots(e, 0, subplans, f));
    }
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
