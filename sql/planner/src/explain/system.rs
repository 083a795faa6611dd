//! Shows scans of the system's tables and views in EXPLAIN.

use super::render::Shown;
use super::words::Names;
use super::{Explainer, text};
use crate::plan::{SystemScan, conjunction, split};
use crate::sought::sought;
use clearway_values::expr::Bound;

impl Explainer<'_> {
    pub(super) fn system_scan(&self, s: &SystemScan, levels: &[Names]) -> Shown {
        let (words, name) = (self.words(levels), s.view.name);
        let conditions: Vec<Bound> = s.filter.iter().cloned().flat_map(split).collect();
        let list: Vec<&Bound> = conditions.iter().collect();
        let (mut identity, mut details) = (Vec::new(), Vec::new());
        let (kind, head, rest) = match sought(s.view, s.base, &list) {
            Some(found) => {
                identity.extend([("Scan Direction", text("Forward")), ("Index Name", text(found.index))]);
                details.push(("Index Cond", text(words.expr(found.condition))));
                let rest = list.iter().filter(|e| !std::ptr::eq(**e, found.condition)).map(|e| (*e).clone()).collect();
                ("Index Scan", format!("Index Scan using {} on {name}", found.index), rest)
            }
            None => ("Seq Scan", format!("Seq Scan on {name}"), conditions.clone()),
        };
        identity.extend([("Relation Name", text(name)), ("Alias", text(name))]);
        if let Some(filter) = conjunction(rest) {
            details.push(("Filter", text(words.expr(&filter))));
        }
        Shown { kind: kind.to_owned(), head, identity, details, ..Shown::default() }
    }
}
