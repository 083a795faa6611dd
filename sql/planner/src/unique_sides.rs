//! Finds semi joins whose right side has at most one row for each row of the left side, and makes distinct rows of the right side of others, so
//! that both can be carried out as inner joins, whose sides may come in either order.
//!
//! # Invariants
//! - SEM-2: a semi join is carried out as an inner join only if no row of its left side meets two rows of its right side. The right side has
//!   no two rows with the same keys: because of its primary key, because of a unique index that is checked at once, has all rows and is no
//!   younger than any snapshot (an older one may see two rows with one value), because of its DISTINCT, GROUP BY or set operation, or because
//!   it was made distinct by the keys for this purpose.
//! - SEM-3: what makes the keys different is the equality of the join: an index is relied on only if it finds the rows that are equal to the
//!   value with which the join compares, and rows are made distinct by the expressions that the join compares, casts included, by the equality
//!   of a hash join. Both sides have one type, or types whose values can't be equal to two different values of the other.
//! - SEM-4: rows are made distinct only by keys that are all of what the join compares, and only if nothing in the right side depends on a
//!   row of the left side.

use super::arrange::handed_down;
use super::cost::Figures;
use super::facts::{as_column, comparable};
use super::from::{Item, Leaf};
use super::indexes::is_unique_of_all;
use super::joins::{Unit, left_slots};
use super::plan::{Body, Distinct, JoinType, OutputColumn, Query, Select, Subplan, TableSlot};
use super::rewrite::Rewriter;
use super::{walk, wanted};
use clearway_engine::catalog::IndexState;
use clearway_engine::table::shape::IndexShape;
use clearway_storage::ids::Lsn;
use clearway_syntax::ast::SetOp;
use clearway_txn::mvcc::snapshots::Snapshots;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The sides of `=`.
fn equal_sides(e: &Bound) -> Option<(&Bound, &Bound)> {
    match &e.kind {
        BoundKind::Binary { op: Op::Eq, left, right } => Some((left, right)),
        _ => None,
    }
}

/// Whether an expression has one value for each row of the other side: it names none of these slots, not even in a subquery, and is not random.
fn is_fixed(e: &Bound, inside: &dyn Fn(usize) -> bool) -> bool {
    let mut outside = true;
    walk::each(e, &mut |e| {
        if let BoundKind::Column { index, level: 0 } = e.kind {
            outside &= !inside(index);
        }
    });
    outside && !e.is_volatile() && !walk::stays_above(e)
}

/// Semi joins with a side that is unique become inner joins; their conditions are added to those of the level (SEM-2).
pub(super) fn semi_to_inner(units: &mut [Unit], conditions: &mut Vec<Bound>, snapshots: Option<&Snapshots>) {
    for unit in units.iter_mut().filter(|unit| unit.kind == JoinType::Semi) {
        if is_unique(&unit.item, &unit.on, snapshots) {
            unit.kind = JoinType::Inner;
            conditions.append(&mut unit.on);
        }
    }
}

fn is_unique(item: &Item, on: &[Bound], snapshots: Option<&Snapshots>) -> bool {
    let Item::Leaf { kind, base, end, filters } = item else { return false };
    let slots = *base..*end;
    let inside = |slot: usize| slots.contains(&slot);
    let pairs: Vec<(&Bound, &Bound)> = on.iter().chain(filters).filter_map(equal_sides).collect();
    let both = || pairs.iter().flat_map(|(l, r)| [(*l, *r), (*r, *l)]).filter(|(_, other)| is_fixed(other, &inside));
    match kind {
        Leaf::Table(table) => {
            let fixed = |(own, other): (&Bound, &Bound)| {
                let column = as_column(own, table)?;
                comparable(table.types.get(column)?.oid, other.ty.oid).then_some(column)
            };
            is_key(table, &both().filter_map(fixed).collect(), snapshots)
        }
        Leaf::Derived { query, lateral: false, .. } => {
            let fixed = |(own, other): (&Bound, &Bound)| match own.kind {
                BoundKind::Column { index, level: 0 } if inside(index) && fit(own, other) => Some(index - base),
                _ => None,
            };
            is_distinct_by(query, &both().filter_map(fixed).collect())
        }
        _ => false,
    }
}

/// Whether no two rows of a table that any of the snapshots sees have the same values in these columns.
fn is_key(table: &TableSlot, columns: &HashSet<usize>, snapshots: Option<&Snapshots>) -> bool {
    let all = |list: &[usize]| !list.is_empty() && list.iter().all(|c| columns.contains(c));
    let horizon = snapshots.map(Snapshots::horizon);
    let is_seen = |i: &IndexShape| horizon.as_ref().is_some_and(|h| h.covers(Lsn(i.valid_from_lsn)));
    let is_checked = |i: &IndexShape| i.state == IndexState::Public && is_unique_of_all(i) && is_seen(i);
    all(&table.shape.key) || table.shape.indexes.iter().any(|i| is_checked(i) && all(&i.columns))
}

/// Whether no two rows of a query have the same values in these columns of its output.
fn is_distinct_by(query: &Query, columns: &HashSet<usize>) -> bool {
    let all = (0..query.columns.len()).all(|c| columns.contains(&c));
    match &query.body {
        Body::SetOp { op, all: keeps, .. } => {
            !*keeps && matches!(op, SetOp::Union | SetOp::Intersect | SetOp::Except) && all
        }
        Body::Select(select) => {
            let by_groups = select.grouping.as_ref().is_some_and(|g| {
                let is_shown = |key: usize| {
                    let place = g.calls.len() + key;
                    let shows = |c: &usize| matches!(select.targets.get(*c).map(|e| &e.kind), Some(BoundKind::Aggregate(n)) if *n == place);
                    columns.iter().any(shows)
                };
                g.sets.is_none() && select.sets.is_none() && (0..g.keys.len()).all(is_shown)
            });
            by_groups || matches!(select.distinct, Some(Distinct::Row)) && all
        }
        Body::Values(_) | Body::Recursive { .. } => false,
    }
}

/// Whether a value of one expression is never equal to two different values of the other (SEM-3).
fn fit(a: &Bound, b: &Bound) -> bool {
    let integer = |t: u32| matches!(t, oid::INT2 | oid::INT4 | oid::INT8);
    let text = |t: u32| matches!(t, oid::TEXT | oid::VARCHAR | oid::NAME);
    let (a, b) = (a.ty.oid, b.ty.oid);
    a == b || integer(a) && integer(b) || text(a) && text(b)
}

/// How the right side of a semi join is made distinct.
pub(super) struct Distinctly {
    /// What the join compares of the right side.
    pub keys: Vec<Bound>,
    /// What it is compared with.
    others: Vec<Bound>,
    /// Conditions of the right side alone.
    inside: Vec<Bound>,
}

impl Distinctly {
    /// The way to make the right side of a semi join distinct; none: it can't be (SEM-4).
    pub fn of(unit: &Unit, subplans: &[Subplan]) -> Option<Distinctly> {
        if unit.kind != JoinType::Semi || !stands_alone(&unit.item, subplans) {
            return None;
        }
        let slots = left_slots(&unit.item);
        let own = |slot: usize| slots.iter().any(|(base, end)| (*base..*end).contains(&slot));
        let mut out = Distinctly { keys: Vec::new(), others: Vec::new(), inside: Vec::new() };
        for e in &unit.on {
            if e.is_volatile() || walk::stays_above(e) {
                return None;
            }
            match named(e, &own) {
                (_, false) => out.inside.push(e.clone()),
                (false, true) => return None,
                (true, true) => {
                    let (l, r) = equal_sides(e).filter(|(l, r)| fit(l, r))?;
                    let (key, other) = match (named(l, &own), named(r, &own)) {
                        ((true, false), (false, true)) => (l, r),
                        ((false, true), (true, false)) => (r, l),
                        _ => return None,
                    };
                    out.keys.push(key.clone());
                    out.others.push(other.clone());
                }
            }
        }
        (!out.keys.is_empty()).then_some(out)
    }

    /// The distinct rows as an item whose slots begin at `base`, and the conditions of the join over them.
    pub fn made(self, item: Item, base: usize, subplans: &[Subplan], figures: &Figures<'_>) -> (Item, Vec<Bound>) {
        let Distinctly { mut keys, others, mut inside } = self;
        let types: Vec<_> = keys.iter().map(|key| key.ty).collect();
        let (item, width) = laid_out(item, keys.iter_mut().chain(&mut inside));
        let column = |ty| OutputColumn { name: String::new(), ty, origin: (0, 0), shape: None };
        let columns = types.iter().copied().map(column).collect();
        let (source, filter) = handed_down(item, inside, figures, subplans);
        let mut select = Select::plain(source, width, keys);
        (select.filter, select.distinct, select.is_side) = (filter, Some(Distinct::Row), true);
        let mut query = Query::of(Body::Select(Box::new(select)), columns);
        wanted::narrow(&mut query, subplans, figures);
        let end = base + types.len();
        let kind = Leaf::Derived { query: Arc::new(query), kept: None, lateral: false };
        let key = |(i, ty)| Bound { kind: BoundKind::Column { index: base + i, level: 0 }, ty, pos: 0 };
        let keys = types.into_iter().enumerate().map(key);
        let on = others.into_iter().zip(keys).map(|(other, key)| super::implied::equality(other, key)).collect();
        (Item::Leaf { kind, base, end, filters: Vec::new() }, on)
    }
}

/// Whether an expression names own slots, and whether it names others of its level.
fn named(e: &Bound, own: &dyn Fn(usize) -> bool) -> (bool, bool) {
    let (mut inside, mut outside) = (false, false);
    walk::each(e, &mut |e| {
        if let BoundKind::Column { index, level: 0 } = e.kind {
            let is_own = own(index);
            inside |= is_own;
            outside |= !is_own;
        }
    });
    (inside, outside)
}

/// Whether nothing in an item looks at rows of other items, or has a subquery that names its own.
fn stands_alone(item: &Item, subplans: &[Subplan]) -> bool {
    let plain = |list: &[Bound]| !list.iter().any(walk::stays_above);
    !item.depends(subplans)
        && match item {
            Item::Leaf { kind, filters, .. } => {
                plain(filters) && !matches!(kind, Leaf::Derived { lateral: true, .. } | Leaf::Sample(_) | Leaf::Work(_))
            }
            Item::Join { left, right, on, .. } => {
                plain(on) && stands_alone(left, subplans) && stands_alone(right, subplans)
            }
        }
}

/// An item in a layout of its own, and the slots of that.
fn laid_out<'e>(mut item: Item, exprs: impl Iterator<Item = &'e mut Bound>) -> (Item, usize) {
    let (mut moved, mut next) = (HashMap::new(), 0);
    item.place(&mut |base, end| {
        moved.extend((base..end).map(|slot| (slot, next + slot - base)));
        next += end - base;
        next - (end - base)
    });
    let mut change = |e: &mut Bound, depth: u16| {
        if let BoundKind::Column { index, level } = &mut e.kind
            && *level == depth
            && let Some(to) = moved.get(index)
        {
            *index = *to;
        }
    };
    // SEM-4: no subquery names the item's slots, so none is changed.
    let mut rewriter = Rewriter {
        subplans: &mut Vec::new(),
        as_they_were: &[],
        raws: None,
        seen: HashSet::new(),
        change: &mut change,
    };
    rewriter.item(&mut item);
    exprs.for_each(|e| rewriter.expr(e, 0));
    (item, next)
}
