//! Chooses merge joins: where both sides of a hash join come in the order of its keys anyway, or would if the entries of an index were read
//! instead of rows, they are merged if that costs less.
//!
//! # Invariants
//! - MJN-1: the keys of a merge join are leading columns of the order of each side, in turn and in the same directions; the other equalities of
//!   the hash join become a part of its condition.

use super::access;
use super::cost::{AWAY, Figures};
use super::covering::entry_cost;
use super::from::{Item, Leaf};
use super::implied::equality;
use super::joins::Joins;
use super::met_keys::class_of;
use super::order::{RowOrder, relied_on, rely_on, row_order, row_order_of};
use super::plan::{Access, Entries, Join, JoinType, Merge, Node, Scan, Subplan, conjunction, split};
use clearway_base::stack;
use clearway_context::steering::{Costs, Way};
use clearway_engine::table::entry::EntryPicker;
use clearway_engine::table::pick::Picker;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;
use std::sync::Arc;

/// A way to read a side.
struct SideRead {
    /// The entries of an index, instead of the rows of the whole table.
    instead: Option<(Access, Entries)>,
    cost: f64,
    row_order: RowOrder,
}

/// The keys of a join by their places, in the order of both sides.
struct SharedOrder {
    keys: Vec<usize>,
    by: Vec<(bool, bool)>,
}

/// The order in which a table comes that is read under these conditions and its own; empty: the item is no table.
pub(super) fn item_order(item: &Item, conditions: &[Bound], figures: &Figures<'_>) -> RowOrder {
    let Item::Leaf { kind: Leaf::Table(table), filters, .. } = item else { return RowOrder::new() };
    let all: Vec<Bound> = filters.iter().chain(conditions).cloned().collect();
    row_order_of(table, &access::choose(table, &all, figures).access, None)
}

/// Whether one of these conditions makes the first columns of two orders equal, so that a merge join is possible.
pub(super) fn meets<'e>(left: &RowOrder, right: &RowOrder, mut on: impl Iterator<Item = &'e Bound>) -> bool {
    let (Some((l, by)), Some((r, other))) = (left.first(), right.first()) else { return false };
    let is_key = |e: &Bound| {
        let BoundKind::Binary { op: Op::Eq, left, right } = &e.kind else { return false };
        let columns = (column_of(left), column_of(right));
        columns == (Some(*l), Some(*r)) || columns == (Some(*r), Some(*l))
    };
    by.0 == other.0 && on.any(is_key)
}

/// Turns hash joins of a source into merge joins where that costs less.
pub(super) fn merge(node: &mut Arc<Node>, subplans: &[Subplan], figures: &Figures<'_>) {
    let Some(node) = Arc::get_mut(node) else { return };
    match node {
        Node::Filter { input, .. } => stack::deeper(|| merge(input, subplans, figures)),
        Node::Join(join) => {
            stack::deeper(|| {
                merge(&mut join.left, subplans, figures);
                merge(&mut join.right, subplans, figures);
            });
            merge_one(join, &Joins::new(*figures, subplans));
        }
        _ => {}
    }
}

fn merge_one(join: &mut Join, joins: &Joins<'_>) {
    let Some((left_keys, right_keys)) = &join.hash else { return };
    if left_keys.is_empty() {
        return;
    }
    let figures = &joins.figures;
    let (l, r) = (joins.node(&join.left), joins.node(&join.right));
    let mut least = l.cost + r.cost + without_merge(join.kind, (l.rows, r.rows), figures);
    let (lefts, rights) = (side_reads(&join.left, joins), side_reads(&join.right, joins));
    let mut best = None;
    for (i, left) in lefts.iter().enumerate() {
        for (j, right) in rights.iter().enumerate() {
            let cost = left.cost
                + right.cost
                + (l.rows + r.rows) * figures.costs().merge
                + figures.disable_cost(Way::MergeJoin);
            if cost < least
                && let Some(shared) = shared_order((left_keys, &left.row_order), (right_keys, &right.row_order))
            {
                least = cost;
                best = Some((i, j, shared));
            }
        }
    }
    let Some((i, j, shared)) = best else {
        join.builds_left = builds_left(join.kind, l.rows, r.rows) && relied_on(&join.left).is_none();
        return;
    };
    let (left, right) = (lefts.into_iter().nth(i), rights.into_iter().nth(j));
    if let (Some(left), Some(right)) = (left, right) {
        take(join, left, right, shared);
    }
}

/// With fewer rows on the right side its rows are in the table, whatever the left side has: then the rows of small tables come in the order of
/// the left side.
const RIGHTS_MIN: f64 = 1_000.0;

/// Whether the hash table of a join has the rows of the left side, because they are fewer.
pub(super) fn builds_left(kind: JoinType, lefts: f64, rights: f64) -> bool {
    kind != JoinType::Full && rights >= RIGHTS_MIN && lefts * 1.5 < rights
}

/// What it costs to fill the hash table of a join with one side and to look the other one up.
pub(super) fn hashing(kind: JoinType, (lefts, rights): (f64, f64), figures: &Figures<'_>) -> f64 {
    let Costs { build, look_up, .. } = *figures.costs();
    match builds_left(kind, lefts, rights) {
        true => lefts * build + rights * look_up,
        false => rights * build + lefts * look_up,
    }
}

/// Whether a nested loop over the kept rows of the right side takes the place of a hash join. A full join has no other way but a merge.
pub(super) fn is_looped(kind: JoinType, figures: &Figures<'_>) -> bool {
    let is_unwanted = |way| figures.steering.is_unwanted(way);
    kind != JoinType::Full && is_unwanted(Way::HashJoin) && !is_unwanted(Way::NestLoop)
}

/// What a join by equal values costs beside its sides where it is no merge join.
pub(super) fn without_merge(kind: JoinType, (lefts, rights): (f64, f64), figures: &Figures<'_>) -> f64 {
    match is_looped(kind, figures) {
        true => rights + lefts * rights * figures.costs().pair + figures.disable_cost(Way::NestLoop),
        false => hashing(kind, (lefts, rights), figures) + figures.disable_cost(Way::HashJoin),
    }
}

/// Makes nested loops of joins, if hash joins are not wanted; and lets the right side of a nested loop be read for each row of the left one, if its
/// rows are not to be kept.
pub(super) fn loop_joins(node: &mut Arc<Node>, figures: &Figures<'_>) {
    let is_unwanted = |way| figures.steering.is_unwanted(way);
    if !is_unwanted(Way::HashJoin) && !is_unwanted(Way::Material) {
        return;
    }
    let Some(node) = Arc::get_mut(node) else { return };
    match node {
        Node::Filter { input, .. } => stack::deeper(|| loop_joins(input, figures)),
        Node::Join(join) => {
            stack::deeper(|| {
                loop_joins(&mut join.left, figures);
                loop_joins(&mut join.right, figures);
            });
            loop_one(join, figures);
        }
        _ => {}
    }
}

fn loop_one(join: &mut Join, figures: &Figures<'_>) {
    let Some((left, right)) = join.hash.as_mut().filter(|_| join.merge.is_none() && join.kind != JoinType::Full) else {
        return;
    };
    if is_looped(join.kind, figures) {
        let keys = std::mem::take(left).into_iter().zip(std::mem::take(right));
        let mut on: Vec<Bound> = keys.map(|(l, r)| equality(l, r)).collect();
        on.extend(join.on.take().into_iter().flat_map(split));
        (join.on, join.builds_left) = (conjunction(on), false);
    }
    let has_keys = join.hash.as_ref().is_some_and(|(keys, _)| !keys.is_empty());
    if !has_keys && figures.steering.is_unwanted(Way::Material) {
        join.hash = None;
    }
}

/// What a hash join saves whose table has the left side, where the scan of the right side, a table, turns away rows that have no key of the left one (GAT-3): no value is
/// made of them, and they are not looked up. `keys`: the expressions of the right side that are looked up; `pairs`: the rows that the join gives.
pub(super) fn saved_by_keys<'e>(
    (kind, lefts, rights, pairs): (JoinType, f64, f64, f64),
    mut keys: impl Iterator<Item = &'e Bound>,
    costs: &Costs,
) -> f64 {
    // Where nearly all have one, none is asked for its key.
    let away = (rights - pairs).max(0.0);
    let is_asked =
        |key: &Bound| matches!(key.kind, BoundKind::Column { level: 0, .. }) && class_of(key.ty.oid).is_some();
    if !builds_left(kind, lefts, rights) || away * 8.0 < rights || !keys.any(is_asked) {
        return 0.0;
    }
    away * (costs.look_up + costs.row * (1.0 - AWAY))
}

/// The ways to read a side that have an order.
fn side_reads(node: &Node, joins: &Joins<'_>) -> Vec<SideRead> {
    let mut out = vec![SideRead { instead: None, cost: joins.node(node).cost, row_order: row_order(node) }];
    if let Node::Scan(scan) = node
        && matches!(scan.access, Access::Full)
        && scan.order.is_none()
        && scan.jump.is_none()
        && !joins.figures.steering.is_unwanted(Way::IndexOnlyScan)
        && let Some(wanted) = scan.wanted.as_ref().map(Picker::wanted)
    {
        out.extend((0..scan.table.shape.indexes.len()).filter_map(|place| by_entries(scan, place, wanted, joins)));
    }
    out.retain(|read| !read.row_order.is_empty());
    out
}

fn by_entries(scan: &Scan, place: usize, wanted: &[usize], joins: &Joins<'_>) -> Option<SideRead> {
    let (table, figures) = (&scan.table, &joins.figures);
    let picker = EntryPicker::new(&table.shape, place, wanted)?;
    let each = entry_cost(scan, place, figures);
    let conditions: Vec<Bound> = scan.filter.iter().cloned().flat_map(split).collect();
    let (access, cost) = access::by_entries(table, place, &conditions, each, figures)?;
    let row_order = row_order_of(table, &access, None);
    Some(SideRead { instead: Some((access, Entries { picker, each, of_all: true })), cost, row_order })
}

/// The column that an expression is, casts between integers aside, which keep the order.
fn column_of(e: &Bound) -> Option<usize> {
    let integer = |t: u32| matches!(t, oid::INT2 | oid::INT4 | oid::INT8);
    match &e.kind {
        BoundKind::Column { index, level: 0 } => Some(*index),
        BoundKind::Cast { arg, .. } if integer(arg.ty.oid) && integer(e.ty.oid) => column_of(arg),
        _ => None,
    }
}

/// MJN-1: the keys in the order of both sides; none: their orders differ.
fn shared_order(
    (left_keys, left): (&[Bound], &RowOrder),
    (right_keys, right): (&[Bound], &RowOrder),
) -> Option<SharedOrder> {
    let mut out = SharedOrder { keys: Vec::new(), by: Vec::new() };
    for ((l, by), (r, other)) in left.iter().zip(right) {
        let is_key = |at: &usize| {
            let (a, b) = (&left_keys[*at], &right_keys[*at]);
            column_of(a) == Some(*l) && column_of(b) == Some(*r) && a.ty.oid == b.ty.oid
        };
        let Some(at) = (0..left_keys.len()).find(is_key).filter(|_| by.0 == other.0) else { break };
        out.keys.push(at);
        out.by.push(*by);
    }
    (!out.keys.is_empty()).then_some(out)
}

/// Makes a merge join of a join.
fn take(join: &mut Join, left: SideRead, right: SideRead, shared: SharedOrder) {
    let is_relied_on = relied_on(&join.left).is_some();
    if !(read_by(&mut join.right, right) && read_by(&mut join.left, left)) {
        return;
    }
    let Some((left, right)) = join.hash.take() else { return };
    let mut keys = (Vec::new(), Vec::new());
    for at in &shared.keys {
        keys.0.push(left[*at].clone());
        keys.1.push(right[*at].clone());
    }
    let others = left.into_iter().zip(right).enumerate().filter(|(at, _)| !shared.keys.contains(at));
    let mut on: Vec<Bound> = others.map(|(_, (l, r))| equality(l, r)).collect();
    on.extend(join.on.take().into_iter().flat_map(split));
    (join.on, join.hash) = (conjunction(on), Some(keys));
    join.merge = Some(Merge { by: shared.by, is_relied_on });
}

/// Reads a side as chosen, in its order; false: it can't be changed.
fn read_by(node: &mut Arc<Node>, read: SideRead) -> bool {
    if let Some((access, entries)) = read.instead {
        let Some(Node::Scan(scan)) = Arc::get_mut(node) else { return false };
        (scan.access, scan.entries) = (access, Some(Box::new(entries)));
    }
    rely_on(node)
}
