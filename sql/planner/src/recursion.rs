//! Where a recursive query may not name itself: on the side of an outer join that may have no row.

use clearway_syntax::ast::{FromItem, JoinKind, QueryBody};
use clearway_syntax::error::Pos;

/// The first reference to the name on such a side; queries in FROM included.
pub(super) fn within_outer_join(body: &QueryBody, name: &str) -> Option<Pos> {
    match body {
        QueryBody::Select(s) => s.from.iter().find_map(|item| in_item(item, name, false)),
        QueryBody::SetOp { left, right, .. } => {
            within_outer_join(&left.body, name).or_else(|| within_outer_join(&right.body, name))
        }
        _ => None,
    }
}

fn in_item(item: &FromItem, name: &str, outer: bool) -> Option<Pos> {
    match item {
        FromItem::Table(t) if outer && t.name.schema().is_none() && t.name.name() == name => Some(t.name.pos),
        FromItem::Subquery { query, .. } if outer => mentioned(&query.body, name),
        FromItem::Subquery { query, .. } => within_outer_join(&query.body, name),
        FromItem::Join { kind, left, right, .. } => {
            let (of_left, of_right) = match kind {
                JoinKind::Left => (outer, true),
                JoinKind::Right => (true, outer),
                JoinKind::Full => (true, true),
                _ => (outer, outer),
            };
            in_item(left, name, of_left).or_else(|| in_item(right, name, of_right))
        }
        _ => None,
    }
}

fn mentioned(body: &QueryBody, name: &str) -> Option<Pos> {
    match body {
        QueryBody::Select(s) => s.from.iter().find_map(|item| in_item(item, name, true)),
        QueryBody::SetOp { left, right, .. } => mentioned(&left.body, name).or_else(|| mentioned(&right.body, name)),
        _ => None,
    }
}
