//! Splits a condition at its ANDs, and joins conditions by AND.

use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;

/// Puts two optional conditions together.
pub fn and(a: Option<Bound>, b: Option<Bound>) -> Option<Bound> {
    conjunction(a.into_iter().chain(b).flat_map(split).collect())
}

/// The conditions that must all hold.
pub fn split(condition: Bound) -> Vec<Bound> {
    match condition.kind {
        BoundKind::And(list) => list.into_iter().flat_map(split).collect(),
        _ => vec![condition],
    }
}

/// One condition out of several.
pub fn conjunction(mut list: Vec<Bound>) -> Option<Bound> {
    match list.len() {
        0 | 1 => list.pop(),
        _ => {
            let pos = list[0].pos;
            Some(Bound { kind: BoundKind::And(list), ty: oid::BOOL.into(), pos })
        }
    }
}
