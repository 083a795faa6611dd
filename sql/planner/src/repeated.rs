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

/// What is said, without the places of its parts: the numbers behind `pos: `, but for those in texts.
pub(super) fn without_places(e: &impl std::fmt::Debug) -> String {
    let said = format!("{e:?}");
    let mut out = String::with_capacity(said.len());
    let mut rest = said.as_str();
    while let Some(at) = rest.find(['"', 'p']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let length = match from.strip_prefix("pos: ") {
            Some(place) => {
                rest = place.trim_start_matches(|c: char| c.is_ascii_digit());
                continue;
            }
            None if from.starts_with('"') => text_length(from),
            None => 1,
        };
        out.push_str(&from[..length]);
        rest = &from[length..];
    }
    out + rest
}

/// The bytes of a text with its quotes, as it is shown for debugging.
fn text_length(from: &str) -> usize {
    let mut is_escaped = true; // the quote that begins it does not end it
    let end = from.bytes().position(|b| {
        let ends = b == b'"' && !is_escaped;
        is_escaped = b == b'\\' && !is_escaped;
        ends
    });
    end.map_or(from.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_left_out_and_texts_are_not() {
        let said = |text: &str| without_places(&clearway_syntax::parse_expression(text).expect("an expression"));
        assert_eq!(said("a  +  (select 'x')"), said("a+(select 'x')"));
        assert_ne!(said("(select 'pos: 1')"), said("(select 'pos: 2')"));
        assert_ne!(said(r#"(select '\" pos: 1')"#), said(r#"(select '\" pos: 2')"#));
        assert_ne!(said("(select 1)"), said("(select 2)"));
    }
}
