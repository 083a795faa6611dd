//! Takes a level's FROM apart into the units whose order is searched, as far as `join_collapse_limit` and `from_collapse_limit` allow.
//!
//! # Invariants
//! - COL-1: the units come in the order of the text. An explicit JOIN whose sides have more units together than the limit has each side as one unit,
//!   which is ordered inside; so with a limit of 1 each JOIN joins the two sides that the text gives it. A JOIN or a query in a list of FROM is one unit
//!   if the list would become longer than its limit; the items of a list itself are always units of one order.
//!
//! # Source
//! `deconstruct_recurse` of PostgreSQL's initsplan.c.

use super::from::{Item, Written};
use super::joins::{UNITS_MAX, Unit};
use super::plan::JoinType;
use clearway_base::stack;
use clearway_context::steering::Steering;
use clearway_values::expr::Bound;

/// How long the lists may become.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    join: usize,
    from: usize,
}

impl Limits {
    /// Those of the settings. More units than `UNITS_MAX` are not ordered at all, so that so high a limit is none.
    pub(super) fn of(steering: &Steering) -> Limits {
        let limit = |n: usize| if n >= UNITS_MAX { usize::MAX } else { n };
        Limits { join: limit(steering.join_collapse), from: limit(steering.from_collapse) }
    }

    fn are_none(self) -> bool {
        self.join == usize::MAX && self.from == usize::MAX
    }

    /// The units of a level's FROM, and the conditions of the joins between them.
    pub(super) fn flatten(self, item: Item, units: &mut Vec<Unit>, conditions: &mut Vec<Bound>) {
        match item {
            Item::Join { kind: JoinType::Inner, left, right, on, .. } if self.are_none() => {
                self.put(*left, true, units, conditions);
                self.put(*right, true, units, conditions);
                conditions.extend(on);
            }
            Item::Join { kind: JoinType::Inner, written: Written::Join, left, right, on, .. } => {
                let sides = self.length(&left) + self.length(&right);
                for side in [*left, *right] {
                    self.put(side, sides <= self.join, units, conditions);
                }
                conditions.extend(on);
            }
            Item::Join { kind: JoinType::Inner, .. } => {
                let items = items_of(item, conditions);
                let (mut so_far, mut behind) = (0, items.len());
                for item in items {
                    behind -= 1;
                    let own = self.length(&item);
                    let is_short = own == 1 || so_far + own + behind <= self.from;
                    so_far += if is_short { own } else { 1 };
                    self.put(item, is_short, units, conditions);
                }
            }
            Item::Join { kind: kind @ (JoinType::Semi | JoinType::Anti), left, right, on, .. } => {
                self.put(*left, true, units, conditions);
                units.push(Unit { item: *right, kind, on });
            }
            item => units.push(Unit { item, kind: JoinType::Inner, on: Vec::new() }),
        }
    }

    /// Adds the units of an item, or the item as one unit.
    fn put(self, item: Item, is_flat: bool, units: &mut Vec<Unit>, conditions: &mut Vec<Bound>) {
        match is_flat {
            true => stack::deeper(|| self.flatten(item, units, conditions)),
            false => units.push(Unit { item, kind: JoinType::Inner, on: Vec::new() }),
        }
    }

    /// How many units an item has.
    fn length(self, item: &Item) -> usize {
        match item {
            Item::Join { kind: JoinType::Inner, written: Written::Join, left, right, .. } => {
                let sides = stack::deeper(|| self.length(left) + self.length(right));
                if sides <= self.join { sides } else { 2 }
            }
            Item::Join { kind: JoinType::Inner, .. } => {
                let mut lengths = Vec::new();
                let mut at = item;
                while let Some((left, right)) = list_of(at, lengths.is_empty()) {
                    lengths.push(stack::deeper(|| self.length(right)));
                    at = left;
                }
                lengths.push(stack::deeper(|| self.length(at)));
                let (mut so_far, mut behind) = (0, lengths.len());
                for own in lengths.into_iter().rev() {
                    behind -= 1;
                    so_far += if so_far + own + behind <= self.from { own } else { 1 };
                }
                so_far
            }
            Item::Join { kind: JoinType::Semi | JoinType::Anti, left, .. } => stack::deeper(|| self.length(left)) + 1,
            _ => 1,
        }
    }
}

/// The sides of a join of a list; none: the item is an item of the list. The list of a query in FROM begins anew.
fn list_of(item: &Item, is_first: bool) -> Option<(&Item, &Item)> {
    match item {
        Item::Join { kind: JoinType::Inner, written, left, right, .. }
            if *written == Written::List || is_first && *written == Written::Query =>
        {
            Some((left, right))
        }
        _ => None,
    }
}

/// The items of a list, in the order of the text.
fn items_of(item: Item, conditions: &mut Vec<Bound>) -> Vec<Item> {
    let (mut items, mut at) = (Vec::new(), item);
    while list_of(&at, items.is_empty()).is_some() {
        let Item::Join { left, right, on, .. } = at else { break };
        items.push(*right);
        conditions.extend(on);
        at = *left;
    }
    items.push(at);
    items.reverse();
    items
}
