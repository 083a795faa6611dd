//! Which columns of a table a query reads: the other columns need not be decoded.
//!
//! Only levels that read one table and hold no subquery are judged: there every use of a slot stands in the level's own expressions
//! (PLN-6).

use super::plan::{Body, Node, Query};
use super::walk;
use crate::expr::BoundKind;
use clearway_engine::table::pick::Picker;
use std::sync::Arc;

/// Notes in a query's scan which columns it has to give.
pub fn narrow(query: &mut Query) {
    let Some(columns) = used(query) else { return };
    let Body::Select(select) = &mut query.body else { return };
    if let Some(Node::Scan(scan)) = Arc::get_mut(&mut select.source) {
        scan.wanted = Some(Picker::new(&scan.table.shape, &columns));
    }
}

/// The positions in its table of the columns that a level names; none: all must be there.
fn used(query: &Query) -> Option<Vec<usize>> {
    let Body::Select(select) = &query.body else { return None };
    let Node::Scan(scan) = &*select.source else { return None };
    if !select.locks.is_empty() {
        return None;
    }
    let width = scan.table.types.len();
    let (mut used, mut all) = (vec![false; width], false);
    walk::query_exprs(query, 0, &mut |e, _| {
        walk::each(e, &mut |e| match e.kind {
            BoundKind::Column { index, level: 0 } => match index.checked_sub(scan.table.base).filter(|c| *c < width) {
                Some(column) => used[column] = true,
                None => all = true,
            },
            BoundKind::Subquery { .. } => all = true,
            _ => {}
        });
    });
    let columns: Vec<usize> = (0..width).filter(|c| used[*c]).collect();
    (!all && columns.len() < width).then_some(columns)
}
