//! Turns a planned join into the node that is executed: which part of the condition each side evaluates, and whether the right side is
//! looked up by key or hashed.

use super::access;
use super::cost::Figures;
use super::from::{Item, Leaf};
use super::joins::Joins;
use super::merging::{hashing, item_order, meets, without_merge};
use super::plan::{Join, JoinType, Node, Subplan, conjunction};
use super::sought::sought;
use super::walk;
use clearway_context::steering::{UNWANTED, Way};
use clearway_values::expr::{Bound, BoundKind};
use std::ops::Range;
use std::sync::Arc;

impl Item {
    /// Of each left join the condition, and the slots that it may fill with nulls; joins inside of others first.
    pub(super) fn outer_joins(&self) -> Vec<(Bound, Range<usize>)> {
        let Item::Join { kind, left, right, on, .. } = self else { return Vec::new() };
        let mut all = clearway_base::stack::deeper(|| left.outer_joins());
        all.extend(clearway_base::stack::deeper(|| right.outer_joins()));
        if let (JoinType::Left, Some(on)) = (kind, conjunction(on.clone())) {
            all.push((on, right.base()..right.end()));
        }
        all
    }
}

/// The node of a join.
pub(super) fn join_node(
    (kind, by_index): (JoinType, Option<bool>),
    (mut left, mut right): (Item, Item),
    on: Vec<Bound>,
    figures: &Figures<'_>,
    subplans: &[Subplan],
) -> Node {
    let (right_base, end) = (right.base(), right.end());
    let (waiting, mut on): (Vec<Bound>, Vec<Bound>) = on.into_iter().partition(walk::stays_above);
    if kind != JoinType::Full {
        // Conditions of one side go down: of the right one always, of the left one in inner joins.
        let mut rest = Vec::new();
        for e in on {
            match walk::slots(&e) {
                Some((low, _)) if low >= right_base => rest.extend(right.take(e)),
                Some((_, high)) if high < right_base && matches!(kind, JoinType::Inner | JoinType::Semi) => {
                    rest.extend(left.take(e));
                }
                _ => rest.push(e),
            }
        }
        on = rest;
        if by_index != Some(false)
            && is_looked_up(kind, (&left, &right), &on, by_index, figures)
            && let Item::Leaf { filters, .. } = &mut right
        {
            filters.append(&mut on);
        }
    }
    let mut hash = None;
    // What a full join joins names nothing of the other side: a lateral query on its right side looks at what is beside it there.
    if kind == JoinType::Full || !right.depends(subplans) {
        let mut keys = (Vec::new(), Vec::new());
        let mut rest = Vec::new();
        for e in on {
            match equal_sides(&e, right_base) {
                Some((l, r)) => {
                    keys.0.push(l);
                    keys.1.push(r);
                }
                None => rest.push(e),
            }
        }
        on = rest;
        hash = Some(keys);
    }
    on.extend(waiting);
    Node::Join(Join {
        kind,
        left: Arc::new(left.into_node(figures, subplans)),
        right: Arc::new(right.into_node(figures, subplans)),
        right_base,
        end,
        on: conjunction(on),
        hash,
        merge: None,
        builds_left: false,
        carried: None,
    })
}

/// Whether the right side, a table, is read by a key or an index for each row of the left one.
fn is_looked_up(
    kind: JoinType,
    (left, right): (&Item, &Item),
    on: &[Bound],
    by_index: Option<bool>,
    figures: &Figures<'_>,
) -> bool {
    let each = match right {
        Item::Leaf { kind: Leaf::Table(table), filters, .. } => {
            let all: Vec<Bound> = filters.iter().chain(on).cloned().collect();
            let chosen = access::choose(table, &all, figures);
            if chosen.equal == 0 || !chosen.covered.iter().any(|at| *at >= filters.len()) {
                return false;
            }
            chosen.cost
        }
        Item::Leaf { kind: Leaf::System(view), base, .. } => {
            match sought(view, *base, &on.iter().collect::<Vec<_>>()) {
                Some(found) => figures.costs().probe + found.rows,
                None => return false,
            }
        }
        _ => return false,
    };
    let joins = Joins::new(*figures, &[]);
    let (l, r) = (joins.estimate(left, &[]), joins.estimate(right, &[]));
    let (lefts, rights) = (item_order(left, &[], figures), item_order(right, &[], figures));
    let merged = (l.rows + r.rows) * figures.costs().merge + figures.disable_cost(Way::MergeJoin);
    let has_keys = || on.iter().any(|e| equal_sides(e, right.base()).is_some());
    let once = match () {
        () if meets(&lefts, &rights, on.iter()) && merged < UNWANTED => merged,
        () if has_keys() => without_merge(kind, (l.rows, r.rows), figures),
        () => hashing(kind, (l.rows, r.rows), figures) + figures.disable_cost(Way::NestLoop),
    };
    by_index == Some(true) || l.rows * (each + 1.0) + figures.disable_cost(Way::NestLoop) <= r.cost + once
}

/// The sides of `left = right` where each names slots of one side of a join only.
fn equal_sides(e: &Bound, right_base: usize) -> Option<(Bound, Bound)> {
    let BoundKind::Binary { op: clearway_values::expr::operators::Op::Eq, left, right } = &e.kind else { return None };
    let (l, r) = (walk::slots(left)?, walk::slots(right)?);
    if l.1 < right_base && r.0 >= right_base {
        Some(((**left).clone(), (**right).clone()))
    } else if r.1 < right_base && l.0 >= right_base {
        Some(((**right).clone(), (**left).clone()))
    } else {
        None
    }
}
