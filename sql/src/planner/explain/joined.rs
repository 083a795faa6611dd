//! EXPLAIN of joins: name, kind and conditions, with PostgreSQL's words.

use super::render::Shown;
use super::words::Names;
use super::{Explainer, above, text};
use crate::planner::plan::{Join, JoinType};

impl Explainer<'_> {
    /// A join and its sides.
    pub(super) fn join(&self, j: &Join, levels: &[Names]) -> Shown {
        let words = self.words(levels);
        let keyed = j.hash.as_ref().filter(|(keys, _)| !keys.is_empty());
        let (name, condition) = match (&j.merge, keyed) {
            (Some(_), _) => ("Merge Join", "Merge Cond"),
            (None, Some(_)) => ("Hash Join", "Hash Cond"),
            (None, None) => ("Nested Loop", ""),
        };
        let kind = match j.kind {
            JoinType::Inner => "Inner",
            JoinType::Left => "Left",
            JoinType::Full => "Full",
            JoinType::Semi => "Semi",
            JoinType::Anti => "Anti",
        };
        let head = match (kind, name.strip_suffix(" Join")) {
            ("Inner", _) => name.to_owned(),
            (_, Some(method)) => format!("{method} {kind} Join"),
            (_, None) => format!("{name} {kind} Join"),
        };
        let mut details = Vec::new();
        if let Some((left, right)) = keyed {
            let pairs: Vec<String> =
                left.iter().zip(right).map(|(l, r)| format!("({} = {})", words.expr(l), words.expr(r))).collect();
            let all = if pairs.len() > 1 { format!("({})", pairs.join(" AND ")) } else { pairs.concat() };
            details.push((condition, text(all)));
        }
        if let Some(on) = &j.on {
            details.push(("Join Filter", text(words.expr(on))));
        }
        let mut right = self.node(&j.right, levels);
        if j.merge.is_none() && j.hash.is_some() {
            let (estimate, actual) = (right.estimate, right.actual);
            right = match keyed.is_some() {
                true => above("Hash", right, (estimate.1, estimate.1, estimate.2, estimate.3)),
                false => above("Materialize", right, estimate),
            };
            right.actual = actual;
        }
        Shown {
            kind: name.to_owned(),
            head,
            identity: vec![("Join Type", text(kind))],
            details,
            children: vec![("Outer", None, self.node(&j.left, levels)), ("Inner", None, right)],
            ..Shown::default()
        }
    }
}
