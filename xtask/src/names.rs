//! Wait events that no code waits under, and invariants that no code cites.

use crate::Problem;
use crate::ratchet::Ratchet;
use crate::tree::{Tree, blank, is_word, words};
use std::collections::{BTreeMap, BTreeSet};

/// The list that the enum of wait events is generated from.
const EVENTS: &str = "base/wait_events.txt";

/// What is defined and not used now; the section is one of the ratchet's.
pub fn measure(tree: &Tree) -> BTreeMap<String, BTreeMap<String, usize>> {
    let unused = unused_events(tree).into_iter().map(|event| (event, 1)).collect();
    let uncited = Ids::of(tree).uncited().map(|(id, _)| ((*id).to_owned(), 1)).collect();
    BTreeMap::from([("unused-wait-events".to_owned(), unused), ("uncited-invariants".to_owned(), uncited)])
}

/// Every wait event is used, or is an exception of the ratchet.
pub fn wait_events(tree: &Tree) -> Vec<Problem> {
    let measured = measure(tree).into_iter().filter(|(section, _)| section == "unused-wait-events");
    let mut problems = Ratchet::of(tree).exceeded(&measured.collect());
    for problem in &mut problems {
        problem.what = format!("a wait event of {EVENTS} that no code waits under");
    }
    problems
}

/// The name of the variant that build.rs makes of a line: see the head of the list.
fn variant(class: &str, name: &str) -> String {
    let lower_first = name.starts_with(char::is_lowercase);
    let whole = if lower_first { format!("{class}_{name}") } else { name.to_owned() };
    let mut variant = String::new();
    for part in whole.split(|c| !char::is_alphanumeric(c)) {
        let chars: Vec<char> = part.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            let after_capital = at > 0 && chars[at - 1].is_uppercase();
            let before_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
            if at == 0 {
                variant.extend(c.to_uppercase());
            } else if after_capital && !before_lower {
                variant.extend(c.to_lowercase());
            } else {
                variant.push(*c);
            }
        }
    }
    variant
}

fn unused_events(tree: &Tree) -> Vec<String> {
    let mut used = BTreeSet::new();
    for (_, text) in tree.rust() {
        let code = blank(text);
        let mut words = words(&code);
        while let Some((_, word)) = words.next() {
            if word == "WaitEvent" {
                used.extend(words.next().map(|(_, variant)| variant.to_lowercase()));
            }
        }
    }
    let lines = tree.text(EVENTS).lines();
    let events = lines.filter(|line| !line.trim_start().starts_with('#')).filter_map(|line| {
        let mut columns = line.split_whitespace();
        Some((columns.next()?, columns.next()?))
    });
    // Compared without case: how a run of capitals is folded is build.rs's affair.
    let is_unused = |(class, name): &(&str, &str)| !used.contains(&variant(class, name).to_lowercase());
    events.filter(is_unused).map(|(class, name)| format!("{class} {name}")).collect()
}

/// The ids of invariants and where they stand first.
#[derive(Default)]
struct Ids<'a> {
    defined: BTreeMap<&'a str, String>,
    cited: BTreeMap<&'a str, String>,
    twice: Vec<Problem>,
}

impl<'a> Ids<'a> {
    fn of(tree: &'a Tree) -> Ids<'a> {
        let mut ids = Ids::default();
        // The fixtures of the checks themselves name ids that are nobody's.
        for (path, text) in tree.rust().filter(|(path, _)| !path.starts_with("xtask/")) {
            for (number, line) in text.lines().enumerate() {
                ids.read_line(line, &format!("{path}:{}", number + 1));
            }
        }
        ids
    }

    fn read_line(&mut self, line: &'a str, place: &str) {
        if !line.trim_start().starts_with("//!") {
            for id in ids(line) {
                self.cited.entry(id).or_insert_with(|| place.to_owned());
            }
        } else if let Some(id) = definition(line)
            && let Some(first) = self.defined.insert(id, place.to_owned())
        {
            self.twice.push(Problem::new(place, format!("{id} is defined at {first} already")));
        }
    }

    fn uncited(&self) -> impl Iterator<Item = (&&'a str, &String)> {
        self.defined.iter().filter(|(id, _)| !self.cited.contains_key(*id))
    }
}

/// Every invariant that a module's header defines (`//! - WAL-1: ...`) is cited outside headers, by an
/// assertion, a comment at the code that keeps it, or a test (or is an exception of the ratchet); and
/// every id that is cited is defined, once.
pub fn invariants(tree: &Tree) -> Vec<Problem> {
    let ids = Ids::of(tree);
    let ratchet = Ratchet::of(tree);
    let mut problems = ids.twice.clone();
    for (id, place) in ids.uncited() {
        if ratchet.limit("uncited-invariants", id) == 0 {
            problems.push(Problem::new(place, format!("{id} is cited by no assertion, code or test")));
        }
    }
    let prefixes: BTreeSet<&str> = ids.defined.keys().filter_map(|id| id.split('-').next()).collect();
    for (id, place) in &ids.cited {
        let known_prefix = id.split('-').next().is_some_and(|prefix| prefixes.contains(prefix));
        if known_prefix && !ids.defined.contains_key(id) {
            problems.push(Problem::new(place, format!("{id} is not defined in any module's header")));
        }
    }
    problems
}

/// The id that a header line defines: `//! - WAL-1: ...`.
fn definition(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//!")?.trim_start();
    let rest = rest.trim_start_matches(['-', '*', ' ', '`']);
    let id = ids(rest).into_iter().next()?;
    let after = rest.strip_prefix(id)?.trim_start_matches(['*', '`', ' ']);
    // `WAL-1..2 in ring` says where to look.
    (after.starts_with([':', '.']) && !after.starts_with("..")).then_some(id)
}

/// Everything in a line that looks like `ABC-12`.
fn ids(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices('-') {
        let capitals = line[..at].chars().rev().take_while(char::is_ascii_uppercase).count();
        let digits = line[at + 1..].chars().take_while(char::is_ascii_digit).count();
        let (start, end) = (at - capitals, at + 1 + digits);
        let joined = |c: char| is_word(c) || c == '-';
        let clean = !line[..start].ends_with(joined) && !line[end..].starts_with(joined);
        if capitals >= 2 && digits >= 1 && clean {
            found.push(&line[start..end]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_capitals_dash_digits() {
        assert_eq!(ids("(WAL-1), BUF-12: not CRC-32C, a-1, X-2 or UTF-8x"), ["WAL-1", "BUF-12"]);
        assert_eq!(definition("//! - WAL-1: always"), Some("WAL-1"));
        assert_eq!(definition("//! - **WAL-1**: always"), Some("WAL-1"));
        assert_eq!(definition("//! as WAL-1 says: always"), None);
        assert_eq!(definition("//! WAL-1..2 in ring, WAL-3 in flush"), None);
    }

    #[test]
    fn events_become_variants() {
        assert_eq!(variant("IO", "WALWrite"), "WalWrite");
        assert_eq!(variant("Lock", "relation"), "LockRelation");
        assert_eq!(variant("IO", "DataFileRead"), "DataFileRead");
    }
}
