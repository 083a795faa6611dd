//! Determines which columns of its tables a query reads; the other columns are not decoded.
//!
//! Every use of a slot counts: in the level's own expressions, in lateral queries and in subqueries of expressions (PLN-6). A level that
//! locks rows reads whole rows.

use super::cost::Figures;
use super::plan::{Body, Node, Query, Scan, Subplan};
use super::{covering, jumping, merging, rewrite, walk};
use crate::expr::BoundKind;
use clearway_engine::table::pick::Picker;
use std::sync::Arc;

/// Notes in a query's scans which columns they have to give.
pub fn narrow(query: &mut Query, subplans: &[Subplan], figures: &Figures<'_>) {
    let Body::Select(select) = &query.body else { return };
    if !select.locks.is_empty() || matches!(&*select.source, Node::One) {
        return;
    }
    let mut used = vec![false; select.width];
    walk::level_exprs(query, &mut |e, depth| {
        rewrite::expr_slots(e, depth, subplans, &mut |slot| {
            if let Some(used) = used.get_mut(slot) {
                *used = true;
            }
        });
    });
    let need = jumping::need(query);
    let Body::Select(select) = &mut query.body else { return };
    narrow_node(&mut select.source, &used, figures);
    if let (Some(need), Some(Node::Scan(scan))) = (need, Arc::get_mut(&mut select.source)) {
        jumping::jump(scan, &need, figures);
    }
    merging::merge(&mut select.source, subplans, figures);
}

fn narrow_node(node: &mut Arc<Node>, used: &[bool], figures: &Figures<'_>) {
    // A node that another plan shares is left as it is.
    let Some(node) = Arc::get_mut(node) else { return };
    match node {
        Node::Scan(scan) => narrow_scan(scan, used, figures),
        Node::Join(join) => clearway_base::stack::deeper(|| {
            narrow_node(&mut join.left, used, figures);
            narrow_node(&mut join.right, used, figures);
        }),
        Node::Filter { input, .. } => clearway_base::stack::deeper(|| narrow_node(input, used, figures)),
        Node::One | Node::System(_) | Node::Sample(_) | Node::Function(_) | Node::Derived(_) | Node::Work(_) => {}
    }
}

/// The columns that a scan's filter names, and the other wanted ones; none: there is no gain in reading them one after the other.
fn judged_first(scan: &Scan, columns: &[usize]) -> Option<Box<(Picker, Picker)>> {
    let filter = scan.filter.as_ref()?;
    if filter.may_wait() || filter.any(&|e| matches!(e.kind, BoundKind::Subquery { .. })) {
        return None;
    }
    let mut named = Vec::new();
    walk::each(filter, &mut |e| {
        if let BoundKind::Column { index, level: 0 } = e.kind {
            named.extend(index.checked_sub(scan.table.base));
        }
    });
    let (first, others): (Vec<usize>, Vec<usize>) = columns.iter().partition(|c| named.contains(c));
    let picker = |columns: &[usize]| Picker::new(&scan.table.shape, columns);
    (!others.is_empty()).then(|| Box::new((picker(&first), picker(&others))))
}

fn narrow_scan(scan: &mut Scan, used: &[bool], figures: &Figures<'_>) {
    if used.get(scan.table.key_slot()) == Some(&true) {
        return;
    }
    let columns: Vec<usize> =
        (0..scan.table.types.len()).filter(|c| used.get(scan.table.base + c) == Some(&true)).collect();
    // PLN-6: `used` has every slot that an expression of the level, or of a query below it, names.
    scan.wanted = Some(Picker::new(&scan.table.shape, &columns));
    scan.judged_first = judged_first(scan, &columns);
    covering::cover(scan, figures);
}
