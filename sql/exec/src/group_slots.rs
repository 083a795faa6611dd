//! Which slots of a row groups keep in a file.

use clearway_planner::plan::{Grouping, Select};
use clearway_values::expr::aggregate::AggregateCall;
use clearway_values::expr::{Bound, BoundKind};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The slots of a row that is put aside, in ascending order: those that the keys and the aggregates name, or all of a row that a group keeps.
pub(super) fn slots_aside(select: &Select, grouping: &Grouping) -> Box<[usize]> {
    let slots = RefCell::new(BTreeSet::new());
    let names_others = |e: &Bound| match &e.kind {
        BoundKind::Column { index, level: 0 } => {
            slots.borrow_mut().insert(*index);
            false
        }
        BoundKind::Subquery { .. } | BoundKind::Host { .. } => true,
        _ => false,
    };
    let mut exprs = grouping.keys.iter().chain(grouping.calls.iter().flat_map(AggregateCall::exprs));
    if grouping.keeps_row || exprs.any(|e| e.any(&names_others)) {
        return (0..select.width).collect();
    }
    slots.into_inner().into_iter().collect()
}
