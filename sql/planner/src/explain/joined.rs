//! EXPLAIN of joins: name, kind and conditions, with PostgreSQL's words.

use super::actual::address;
use super::render::Shown;
use super::steps::told;
use super::words::{Names, labels};
use super::{Explainer, Step, above, text};
use crate::plan::{Body, Join, JoinType, Query, Select};
use clearway_values::expr::{Bound, BoundKind};

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
            JoinType::Left if j.builds_left => "Right",
            JoinType::Semi if j.builds_left => "Right Semi",
            JoinType::Anti if j.builds_left => "Right Anti",
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
            let (outer, inner) = if j.builds_left { (right, left) } else { (left, right) };
            let pairs: Vec<String> =
                outer.iter().zip(inner).map(|(o, i)| format!("({} = {})", words.expr(o), words.expr(i))).collect();
            let all = if pairs.len() > 1 { format!("({})", pairs.join(" AND ")) } else { pairs.concat() };
            details.push((condition, text(all)));
        }
        if let Some(on) = &j.on {
            details.push(("Join Filter", text(words.expr(on))));
        }
        let (outer, inner) = if j.builds_left { (&j.right, &j.left) } else { (&j.left, &j.right) };
        let mut inner = self.node(inner, levels);
        if j.merge.is_none() && j.hash.is_some() {
            let (estimate, actual) = (inner.estimate, inner.actual);
            inner = match keyed.is_some() {
                true => above("Hash", inner, (estimate.1, estimate.1, estimate.2, estimate.3)),
                false => above("Materialize", inner, estimate),
            };
            inner.actual = actual;
            let method = self.step(address(j), Step::Hash).and_then(|actual| actual.method);
            inner.details.extend(method.filter(|_| keyed.is_some()).map(told));
        }
        let outer = self.node(outer, levels);
        let carries_inner = !matches!(j.kind, JoinType::Semi | JoinType::Anti);
        let carried = inner.output.iter().filter(|_| carries_inner);
        let output = outer.output.iter().chain(carried).cloned().collect();
        Shown {
            kind: name.to_owned(),
            head,
            identity: vec![("Join Type", text(kind))],
            output,
            details,
            children: vec![("Outer", None, outer), ("Inner", None, inner)],
            ..Shown::default()
        }
    }

    /// The columns of a query in FROM. Rows that were made distinct keep the names of what they are made of.
    pub(super) fn derived_names(&self, query: &Query) -> Vec<(String, String)> {
        let Body::Select(select) = &query.body else { return Self::own_names(query) };
        if !select.is_side {
            return Self::own_names(query);
        }
        self.target_names(select)
    }

    /// The names of a level's targets: those that are columns have their table's name.
    fn target_names(&self, select: &Select) -> Vec<(String, String)> {
        let inner = [self.names(&select.source)];
        let name = |e: &Bound| match e.kind {
            BoundKind::Column { index, level: 0 } => inner[0].slots.get(index).cloned().unwrap_or_default(),
            _ => (String::new(), self.words(&inner).expr(e)),
        };
        select.targets.iter().map(name).collect()
    }

    /// The names of the columns of a set operation, which are those of its first branch.
    pub(super) fn branch_names(&self, query: &Query) -> Vec<(String, String)> {
        match &query.body {
            Body::Select(select) if select.grouping.is_none() && select.windows.is_empty() => self.target_names(select),
            Body::SetOp { left, .. } => self.branch_names(left),
            _ => Self::own_names(query),
        }
    }

    /// The labels of a query as names of columns.
    pub(super) fn own_names(query: &Query) -> Vec<(String, String)> {
        labels(query).into_iter().map(|label| (String::new(), label)).collect()
    }

    /// Whether the rows are the distinct keys of a side of a semi join.
    pub(super) fn is_side(query: &Query) -> bool {
        matches!(&query.body, Body::Select(select) if select.is_side)
    }
}
