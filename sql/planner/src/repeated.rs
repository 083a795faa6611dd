//! Subqueries that a query says twice: bound ones are the same only if they are one. A key of GROUP BY or ORDER BY that is an item of the target
//! list is taken from there, and where a key of GROUP BY holds a subquery, the same one elsewhere in its level is that one (`Scope::repeats`).

use clearway_syntax::ast::{Expr, ExprKind, Select, Target};
use clearway_syntax::window::GroupItem;
use clearway_values::expr::{Bound, BoundKind};

/// The item of the target list that says the same as an expression with a subquery.
pub(super) fn item(e: &Expr, list: &[Target], targets: &[Bound]) -> Option<usize> {
    if matches!(&*e.kind, ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::Param(_)) {
        return None;
    }
    // A star stands for more items than one: those behind the last one are counted from the end.
    let mut said = None;
    for (item, at) in list.iter().rev().zip((0..targets.len()).rev()) {
        let Target::Expr { expr, .. } = item else { break };
        if expr.height != e.height || !targets[at].any(&|e| matches!(e.kind, BoundKind::Subquery { .. })) {
            continue;
        }
        let wanted = said.get_or_insert_with(|| without_places(e));
        if *wanted == without_places(expr) {
            return Some(at);
        }
    }
    None
}

/// Whether a key of GROUP BY holds a subquery.
pub(super) fn in_keys(s: &Select) -> bool {
    let plain = |item: &GroupItem| match item {
        GroupItem::Keys(list) => list.iter().all(|e| matches!(&*e.kind, ExprKind::Column(_) | ExprKind::Literal(_))),
        _ => false,
    };
    if s.group_by.iter().all(plain) {
        return false;
    }
    let said = format!("{:?}", s.group_by);
    ["Subquery(", "ArrayQuery(", "Exists("].iter().any(|word| said.contains(word))
}

/// What is said, without the places of its parts.
pub(super) fn without_places(e: &impl std::fmt::Debug) -> String {
    let text = format!("{e:?}");
    let mut parts = text.split("pos: ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit())));
    out
}
