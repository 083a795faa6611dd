//! The hint for a name that no column has: the column of the query whose name is nearest.
//!
//! Source: PostgreSQL 15's `searchRangeTableForCol` and `updateFuzzyAttrMatchState` in src/backend/parser/parse_relation.c.

use super::bind::{Scope, ScopeColumn};
use super::system_columns::is_system_column;

/// Names that differ in more than so many characters are no match.
const DISTANCE_MAX: usize = 3;

/// The nearest columns so far, at the same distance; more than two of them are as good as none.
struct Nearest<'s> {
    distance: usize,
    found: Vec<(&'s str, &'s str)>,
}

impl<'s> Nearest<'s> {
    fn offer(&mut self, (table, name): (&'s str, &'s str), given: &str, penalty: usize) {
        if penalty > self.distance {
            return;
        }
        let distance = distance(name, given);
        if distance > given.len() / 2 {
            return;
        }
        let distance = distance + penalty;
        if distance < self.distance {
            (self.distance, self.found) = (distance, vec![(table, name)]);
        } else if distance == self.distance {
            match self.found.len() {
                2 => (self.distance, self.found) = (distance - 1, Vec::new()),
                0 if distance > DISTANCE_MAX => {}
                _ => self.found.push((table, name)),
            }
        }
    }
}

/// The hint for `given`, which may name its table; none: no name is near.
pub(super) fn hint(scope: &Scope<'_>, relation: Option<&str>, given: &str) -> Option<String> {
    let mut nearest = Nearest { distance: DISTANCE_MAX + 1, found: Vec::new() };
    for scope in std::iter::successors(Some(scope), |scope| scope.parent) {
        for ScopeColumn { relation: table, name, .. } in scope.columns.iter().chain(&scope.barred) {
            let Some(table) = table.as_deref().filter(|_| !is_system_column(name)) else { continue };
            let penalty = relation.map_or(0, |relation| distance(relation, table).min(DISTANCE_MAX + 2));
            nearest.offer((table, name), given, penalty);
        }
    }
    let column = |(table, name): &(&str, &str)| format!("the column \"{table}.{name}\"");
    let columns: Vec<String> = nearest.found.iter().map(column).collect();
    (!columns.is_empty()).then(|| format!("Perhaps you meant to reference {}.", columns.join(" or ")))
}

/// How many characters have to be inserted, deleted or replaced to make one text of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, of_a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, of_b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(of_a != *of_b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
