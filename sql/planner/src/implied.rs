//! Derives conditions that follow from equalities between columns.

use super::joins::{Unit, left_slots};
use super::plan::JoinType;
use super::walk;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use std::collections::HashMap;

/// The columns that an equality makes equal, of one type.
pub(super) fn equal_columns(e: &Bound) -> Option<(usize, usize)> {
    let BoundKind::Binary { op: Op::Eq, left, right } = &e.kind else { return None };
    match (&left.kind, &right.kind) {
        (BoundKind::Column { index: a, level: 0 }, BoundKind::Column { index: b, level: 0 })
            if left.ty.oid == right.ty.oid =>
        {
            Some((*a, *b))
        }
        _ => None,
    }
}

/// `column = value`, where the value is the same for all rows.
pub(super) fn equal_value(e: &Bound) -> Option<(usize, &Bound)> {
    let BoundKind::Binary { op: Op::Eq, left, right } = &e.kind else { return None };
    let fixed = |e: &Bound| matches!(e.kind, BoundKind::Const(_) | BoundKind::Param(_));
    match (&left.kind, &right.kind) {
        (BoundKind::Column { index, level: 0 }, _) if fixed(right) && left.ty.oid == right.ty.oid => {
            Some((*index, right))
        }
        (_, BoundKind::Column { index, level: 0 }) if fixed(left) && left.ty.oid == right.ty.oid => {
            Some((*index, left))
        }
        _ => None,
    }
}

/// Slots that conditions make equal.
pub(super) struct Classes(HashMap<usize, usize>);

impl Classes {
    pub fn of(conditions: &[Bound]) -> Classes {
        let mut classes = Classes(HashMap::new());
        for (a, b) in conditions.iter().filter_map(equal_columns) {
            let (a, b) = (classes.find(a), classes.find(b));
            classes.0.insert(a, b);
        }
        classes
    }

    pub fn find(&self, slot: usize) -> usize {
        let mut at = slot;
        while let Some(next) = self.0.get(&at).filter(|next| **next != at) {
            at = *next;
        }
        at
    }
}

/// Conditions that follow from equalities: a = b and a = 1 say b = 1, and a = b and b = c say a = c.
pub(super) fn implied(conditions: &[Bound], units: &[Unit]) -> Vec<Bound> {
    let classes = Classes::of(conditions);
    let mut members: HashMap<usize, Vec<&Bound>> = HashMap::new();
    let mut order: Vec<usize> = Vec::new();
    for e in conditions.iter().filter(|e| equal_columns(e).is_some()) {
        let BoundKind::Binary { left, right, .. } = &e.kind else { continue };
        for side in [&**left, &**right] {
            let BoundKind::Column { index, .. } = side.kind else { continue };
            let list = members.entry(classes.find(index)).or_default();
            if list.is_empty() {
                order.push(classes.find(index));
            }
            if !list.iter().any(|m| walk::same(m, side)) {
                list.push(side);
            }
        }
    }
    let inner: Vec<Vec<(usize, usize)>> =
        units.iter().map(|u| if u.kind == JoinType::Inner { left_slots(&u.item) } else { Vec::new() }).collect();
    let unit_of = |slot: usize| inner.iter().position(|r| r.iter().any(|(base, end)| (*base..*end).contains(&slot)));
    let known = |a: usize, b: usize| conditions.iter().filter_map(equal_columns).any(|p| p == (a, b) || p == (b, a));
    let mut out = Vec::new();
    for class in order {
        let list = &members[&class];
        if list.len() > 8 {
            continue;
        }
        let value = conditions.iter().find(|e| equal_value(e).is_some_and(|(slot, _)| classes.find(slot) == class));
        for (i, a) in list.iter().enumerate() {
            let BoundKind::Column { index: slot, .. } = a.kind else { continue };
            if let Some((with, value)) = value.and_then(equal_value)
                && with != slot
                && value.ty.oid == a.ty.oid
                && unit_of(slot).is_some()
                && !conditions.iter().any(|e| equal_value(e).is_some_and(|(s, _)| s == slot))
            {
                out.push(equality((*a).clone(), value.clone()));
            }
            for b in &list[i + 1..] {
                let BoundKind::Column { index: other, .. } = b.kind else { continue };
                let (ua, ub) = (unit_of(slot), unit_of(other));
                if value.is_none() && ua.is_some() && ub.is_some() && ua != ub && !known(slot, other) {
                    out.push(equality((*a).clone(), (*b).clone()));
                }
            }
        }
    }
    out
}

pub(super) fn equality(left: Bound, right: Bound) -> Bound {
    let pos = left.pos;
    let kind = BoundKind::Binary { op: Op::Eq, left: Box::new(left), right: Box::new(right) };
    Bound { kind, ty: clearway_values::types::oid::BOOL.into(), pos }
}
