//! Makes EXISTS that stays a subquery a look-up in rows that are read once: `EXISTS (SELECT ... WHERE inner = outer AND rest)` becomes
//! `(outer IN (SELECT inner ... WHERE rest)) IS TRUE`, where reading the subquery for each row would cost more. PostgreSQL does the same
//! (`convert_EXISTS_to_ANY`, for its hashed subplans).
//!
//! # Invariants
//! - HSE-1: the answer is the same: a comparison with a null is not met, and IS TRUE makes of IN's null a false.
//! - HSE-2: nothing in the subquery is volatile, and nothing but the comparisons looks out of it: its rows are the same for all rows of the
//!   statement.
//! - HSE-3: the condition by which changed rows are judged again keeps the subquery (EXE-6).

use super::Planner;
use super::arrange::Rest;
use super::from::{Item, Layout, Leaf};
use super::joins::Joins;
use super::plan::{Body, Distinct, Node, OutputColumn, Query, Select, Subplan};
use super::pullup::{Level, Raw};
use super::{facts, walk};
use clearway_base::stack;
use clearway_syntax::ast::Truth;
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;
use std::collections::HashMap;
use std::sync::Arc;

/// Below this, in rows that are read, nothing is won.
const WORK_MIN: f64 = 1_000.0;
/// More rows are not kept in memory.
const ROWS_MAX: f64 = 1_000_000.0;

/// What a subquery became: the query whose rows are kept, and the expressions that are looked for in them.
type Hashed = Option<(usize, Vec<Bound>)>;

/// The pairs of expressions that a subquery compares, inside and outside, and its conditions on the inside alone.
type Apart = (Vec<(Bound, Bound)>, Vec<Bound>);

/// The subqueries of a level that were looked at.
struct Looked {
    /// How many rows the level may have.
    rows: f64,
    known: HashMap<usize, Hashed>,
}

impl Planner<'_> {
    /// Looks at the subqueries that are left in a level whose EXISTS and IN have become joins.
    pub(super) fn hash_subqueries(&mut self, level: &mut Level, rest: &mut Rest<'_>) {
        let mut has = level.conditions.iter().any(has_exists);
        each_of_item(&mut level.item, &mut |e| has |= has_exists(e));
        if let Some(query) = &mut rest.query {
            each_expr(query, &mut |e| has |= has_exists(e));
        }
        if !has {
            return;
        }
        let known: Vec<Bound> = level.conditions.iter().filter(|e| !walk::stays_above(e)).cloned().collect();
        let rows = Joins::new(self.figures(), &self.subplans).estimate(&level.item, &known).rows;
        let mut looked = Looked { rows, known: HashMap::new() };
        level.conditions.iter_mut().for_each(|e| self.hash_in(e, &mut looked));
        each_of_item(&mut level.item, &mut |e| self.hash_in(e, &mut looked));
        if let Some(query) = &mut rest.query {
            each_expr(query, &mut |e| self.hash_in(e, &mut looked));
        }
    }

    fn hash_in(&mut self, e: &mut Bound, looked: &mut Looked) {
        if let BoundKind::Subquery { id, usage: SubqueryUse::Exists, correlated: true, .. } = e.kind {
            let known = looked.known.get(&id).cloned();
            let hashed = known.unwrap_or_else(|| self.hashed(id, looked.rows));
            looked.known.insert(id, hashed.clone());
            if let Some((id, args)) = hashed {
                let usage = SubqueryUse::Quantified { op: Op::Eq, all: false };
                let kind = BoundKind::Subquery { id, usage, args, correlated: false };
                let arg = Box::new(Bound { kind, ty: oid::BOOL.into(), pos: e.pos });
                e.kind = BoundKind::IsTruth { arg, truth: Truth::True, negated: false }; // HSE-1
            }
            return;
        }
        stack::deeper(|| e.children_mut().into_iter().for_each(|child| self.hash_in(child, looked)));
    }

    /// The query without what looks out of it, if its rows can be kept and that is cheaper.
    fn hashed(&mut self, id: usize, outer_rows: f64) -> Hashed {
        let sub = self.subplans.get(id)?;
        let each = Joins::new(self.figures(), &self.subplans).query(&sub.query).cost;
        // A subquery that finds a row is not read to its end.
        let work = outer_rows * each / 2.0;
        if work < WORK_MIN {
            return None;
        }
        let raw = self.raw_of(&sub.query.clone())?;
        let (pairs, conditions) = self.apart(&raw)?;
        let (inner, outer): (Vec<Bound>, Vec<Bound>) = pairs.into_iter().unzip();
        let query = Arc::new(self.selection(&raw, conditions, inner)?);
        let joins = Joins::new(self.figures(), &self.subplans);
        let (once, costs) = (joins.query(&query), self.figures().costs());
        if once.rows > ROWS_MAX || once.cost + once.rows * costs.build + outer_rows * costs.probe >= work {
            return None;
        }
        self.subplans.push(Subplan { query, correlated: false });
        Some((self.subplans.len() - 1, outer))
    }

    /// The pairs of expressions, inside and outside, that must be equal, and the conditions on the inside alone; none: there is more to it (HSE-2).
    fn apart(&self, raw: &Raw) -> Option<Apart> {
        // Subqueries in its FROM may have been changed since it was kept (PUL-4).
        let is_apart = raw.is_closed(&self.subplans) && !raw.has_correlated_below() && !names_beyond(&raw.item);
        if raw.is_locked || !is_apart {
            return None;
        }
        let (mut pairs, mut conditions) = (Vec::new(), Vec::new());
        for e in &raw.conditions {
            match levels(e) {
                _ if e.any(&|e| matches!(e.kind, BoundKind::Host { .. })) || facts::is_random(e) => return None,
                (_, false) => conditions.push(e.clone()),
                (false, true) => return None,
                (true, true) => pairs.push(compared(e)?),
            }
        }
        (!pairs.is_empty()).then_some((pairs, conditions))
    }

    /// Plans a selection that is kept with other conditions and targets.
    fn selection(&mut self, raw: &Raw, conditions: Vec<Bound>, targets: Vec<Bound>) -> Option<Query> {
        let column = |e: &Bound| OutputColumn { name: "?column?".to_owned(), ty: e.ty, origin: (0, 0), shape: None };
        let columns = targets.iter().map(column).collect();
        let layout = Layout { item: raw.item.clone(), width: raw.width, ..Layout::empty() };
        let body = Body::Select(Box::new(Select::plain(Arc::new(Node::One), raw.width, targets)));
        let mut query = Query { body, sort: Vec::new(), limit: None, offset: None, ties: false, columns };
        self.level += 1;
        self.give_source(&mut query, layout, conditions, false);
        self.level -= 1;
        (!walk::is_correlated(&query, &self.subplans)).then_some(query)
    }
}

fn has_exists(e: &Bound) -> bool {
    let is_exists =
        |e: &Bound| matches!(e.kind, BoundKind::Subquery { usage: SubqueryUse::Exists, correlated: true, .. });
    e.any(&is_exists)
}

/// The expressions of a level above its source but for those that judge changed rows again (HSE-3).
fn each_expr(q: &mut Query, f: &mut dyn FnMut(&mut Bound)) {
    let Body::Select(select) = &mut q.body else { return };
    q.sort.iter_mut().for_each(|key| f(&mut key.expr));
    select.targets.iter_mut().for_each(&mut *f);
    if let Some(grouping) = &mut select.grouping {
        grouping.keys.iter_mut().chain(&mut grouping.having).for_each(&mut *f);
        grouping.calls.iter_mut().flat_map(|call| call.exprs_mut()).for_each(&mut *f);
    }
    select.windows.iter_mut().flat_map(|w| w.exprs_mut()).for_each(&mut *f);
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        keys.iter_mut().for_each(f);
    }
}

/// The conditions of a level's joins, and those that a query that was taken in has left with its table.
fn each_of_item(item: &mut Item, f: &mut dyn FnMut(&mut Bound)) {
    match item {
        Item::Leaf { filters, .. } => filters.iter_mut().for_each(f),
        Item::Join { left, right, on, .. } => {
            on.iter_mut().for_each(&mut *f);
            stack::deeper(|| {
                each_of_item(left, f);
                each_of_item(right, f);
            });
        }
    }
}

/// Whether an expression of a subquery names its own level, and whether it names one around it.
fn levels(e: &Bound) -> (bool, bool) {
    let (mut own, mut around) = (false, false);
    walk::each(e, &mut |e| {
        if let BoundKind::Column { level, .. } = e.kind {
            (own, around) = (own || level == 0, around || level > 0);
        }
    });
    (own, around)
}

/// Whether an expression of the items themselves names a level around.
fn names_beyond(item: &Item) -> bool {
    let beyond = |e: &Bound| levels(e).1;
    match item {
        Item::Leaf { kind, filters, .. } => {
            let of_kind = match kind {
                Leaf::Function { calls, .. } => calls.iter().flat_map(|call| &call.args).any(beyond),
                Leaf::Sample(_) | Leaf::Work(_) => true,
                Leaf::Table(_) | Leaf::System(_) | Leaf::One | Leaf::Derived { .. } => false,
            };
            of_kind || filters.iter().any(beyond)
        }
        Item::Join { left, right, on, .. } => {
            on.iter().any(beyond) || stack::deeper(|| names_beyond(left) || names_beyond(right))
        }
    }
}

/// The inside and the outside of `inside = outside`, as one type; the outside as the level around names it.
fn compared(e: &Bound) -> Option<(Bound, Bound)> {
    let BoundKind::Binary { op: Op::Eq, left, right } = &e.kind else { return None };
    let (inside, outside) = match (levels(left), levels(right)) {
        ((true, false), (false, true)) => (left, right),
        ((false, true), (true, false)) => (right, left),
        _ => return None,
    };
    if [inside, outside].iter().any(|e| e.any(&|e| matches!(e.kind, BoundKind::Subquery { .. }))) {
        return None;
    }
    let (mut inside, mut outside) = ((**inside).clone(), (**outside).clone());
    outside.lift(1);
    let (of_inside, of_outside) = (inside.ty.oid, outside.ty.oid);
    let size = |ty: u32| [oid::INT2, oid::INT4, oid::INT8].iter().position(|known| *known == ty);
    match (size(of_inside), size(of_outside)) {
        (Some(a), Some(b)) if a < b => inside = widened(inside, of_outside),
        (Some(a), Some(b)) if a > b => outside = widened(outside, of_inside),
        _ if of_inside != of_outside => return None,
        _ => {}
    }
    let ty = inside.ty.oid;
    let is_known = facts::comparable(ty, ty) && !matches!(ty, oid::BPCHAR | oid::FLOAT4 | oid::FLOAT8);
    is_known.then_some((inside, outside))
}

fn widened(e: Bound, to: u32) -> Bound {
    let pos = e.pos;
    Bound { kind: BoundKind::Cast { arg: Box::new(e), explicit: false }, ty: to.into(), pos }
}
