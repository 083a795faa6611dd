//! Determines which columns of its tables a query reads; the other columns are not decoded.
//!
//! Every use of a slot counts: in the level's own expressions, in lateral queries and in subqueries of expressions (PLN-6). A level that
//! locks rows reads whole rows.

use super::carried::{self, Named};
use super::cost::Figures;
use super::plan::{Access, Body, Distinct, Node, Query, Scan, Subplan, WindowStage};
use super::{covering, jumping, merging, order, rewrite, walk};
use clearway_engine::table::entry::EntryPicker;
use clearway_engine::table::pick::Picker;
use clearway_values::expr::{Bound, BoundKind};
use std::sync::Arc;

/// Notes in a query's scans which columns they have to give.
pub fn narrow(query: &mut Query, subplans: &[Subplan], figures: &Figures<'_>) {
    let Body::Select(select) = &query.body else { return };
    if !select.locks.is_empty() || matches!(&*select.source, Node::One) {
        return;
    }
    let named = Named::in_level(query, select.width, subplans);
    let need = jumping::need(query);
    let Body::Select(select) = &mut query.body else { return };
    narrow_node(&mut select.source, &named, figures);
    if let (Some(need), Some(Node::Scan(scan))) = (need, Arc::get_mut(&mut select.source)) {
        jumping::jump(scan, &need, figures);
    }
    merging::merge(&mut select.source, subplans, figures);
    merging::loop_joins(&mut select.source, figures);
    order::group(select, figures);
    let keeps_row = names_row(query, subplans);
    let Body::Select(select) = &mut query.body else { return };
    select.grouping.iter_mut().for_each(|grouping| grouping.keeps_row = keeps_row);
    carried::note(query, subplans);
}

/// Whether what is evaluated on the rows of groups names a slot of the level's source.
pub(super) fn names_row(query: &Query, subplans: &[Subplan]) -> bool {
    let Body::Select(select) = &query.body else { return true };
    let Some(grouping) = &select.grouping else { return true };
    let mut above: Vec<&Bound> = query.sort.iter().map(|key| &key.expr).collect();
    above.extend(select.targets.iter().chain(&select.recheck).chain(&grouping.having));
    above.extend(grouping.calls.iter().flat_map(|call| &call.direct));
    above.extend(select.windows.iter().flat_map(WindowStage::exprs));
    above.extend(select.sets.iter().flat_map(|sets| &sets.turns).flatten().flat_map(|(call, _)| &call.args));
    if let Some(Distinct::On(keys)) = &select.distinct {
        above.extend(keys);
    }
    let mut named = false;
    above.into_iter().for_each(|e| rewrite::expr_slots(e, 0, subplans, &mut |_| named = true));
    named
}

fn narrow_node(node: &mut Arc<Node>, named: &Named, figures: &Figures<'_>) {
    // A node that another plan shares is left as it is.
    let Some(node) = Arc::get_mut(node) else { return };
    match node {
        Node::Scan(scan) => narrow_scan(scan, named, figures),
        Node::Join(join) => clearway_base::stack::deeper(|| {
            narrow_node(&mut join.left, named, figures);
            narrow_node(&mut join.right, named, figures);
        }),
        Node::Filter { input, .. } => clearway_base::stack::deeper(|| narrow_node(input, named, figures)),
        // PLN-6
        Node::System(scan) => {
            scan.wanted = Some((0..scan.view.width()).filter(|c| named.is_named(scan.base + c)).collect())
        }
        Node::One | Node::Sample(_) | Node::Function(_) | Node::Derived(_) | Node::Work(_) => {}
    }
}

/// The columns that a scan's filter names, and the other wanted ones; none: there is no gain in reading them one after the other.
fn judged_first(scan: &Scan, columns: &[usize]) -> Option<Box<(Picker, Picker)>> {
    let filter = scan.filter.as_ref()?;
    if filter.may_wait() || filter.any(&|e| matches!(e.kind, BoundKind::Subquery { .. })) {
        return None;
    }
    let named = walk::columns(filter, scan.table.base);
    let (first, others): (Vec<usize>, Vec<usize>) = columns.iter().partition(|c| named.contains(c));
    let picker = |columns: &[usize]| Picker::new(&scan.table.shape, columns);
    (!others.is_empty()).then(|| Box::new((picker(&first), picker(&others))))
}

/// The same for a walk over a whole table that gives the rows to an UPDATE or a DELETE.
pub(super) fn judge_first(source: &mut Arc<Node>) {
    let Some(Node::Scan(scan)) = Arc::get_mut(source) else { return };
    let key_slot = scan.table.key_slot();
    let names_key = |e: &Bound| matches!(e.kind, BoundKind::Column { index, level: 0 } if index == key_slot);
    if matches!(scan.access, Access::Full) && !scan.filter.as_ref().is_some_and(|filter| filter.any(&names_key)) {
        let columns: Vec<usize> = (0..scan.table.types.len()).collect();
        scan.judged_first = judged_first(scan, &columns);
    }
}

/// Fewer columns are wanted than there were: these.
pub(super) fn want(scan: &mut Scan, columns: &[usize], named: &Named) {
    let beside = beside(scan, columns, named);
    // The filter is evaluated on what jumps read.
    let says_all = matches!(&scan.access, Access::Index(_, range) if range.says_all) && scan.jump.is_none();
    scan.wanted = Some(Picker::new(&scan.table.shape, columns));
    scan.judged_first = if says_all { None } else { judged_first(scan, columns) };
    if let Some(entries) = &mut scan.entries {
        // COV-3
        let columns = if says_all { &beside } else { columns };
        let picker = EntryPicker::new(&scan.table.shape, entries.picker.index(), columns);
        entries.picker = picker.expect("an index that has the wanted columns has some of them");
    }
}

/// Those of these columns that something else than the scan's own filter names.
pub(super) fn beside(scan: &Scan, columns: &[usize], named: &Named) -> Vec<usize> {
    let own = scan.filter.as_ref().map(|filter| walk::columns(filter, scan.table.base)).unwrap_or_default();
    let by_others = |c: &usize| named.times(scan.table.base + c) > own.iter().filter(|own| *own == c).count();
    columns.iter().copied().filter(by_others).collect()
}

fn narrow_scan(scan: &mut Scan, named: &Named, figures: &Figures<'_>) {
    if named.is_named(scan.table.key_slot()) {
        return;
    }
    let columns: Vec<usize> = (0..scan.table.types.len()).filter(|c| named.is_named(scan.table.base + c)).collect();
    // PLN-6: `named` has every slot that an expression of the level, or of a query below it, names.
    scan.wanted = Some(Picker::new(&scan.table.shape, &columns));
    scan.judged_first = judged_first(scan, &columns);
    let beside = beside(scan, &columns, named);
    covering::cover(scan, Some(&beside), figures);
    if scan.entries.is_none() {
        covering::note_said(scan);
    }
}
