//! Words that headers and design documents must not contain, and the tests that the frozen decisions name.

use crate::Problem;
use crate::tree::Tree;

/// The page of the frozen decisions.
const DECISIONS: &str = "docs/design/decisions.md";
/// How many decisions there are.
const DECISIONS_COUNT: usize = 10;

/// What a header does not say, and what it says instead.
const REFUSED: [(&str, &str); 14] = [
    ("he", "name the thing"),
    ("him", "name the thing"),
    ("his", "name the thing"),
    ("himself", "name the thing"),
    ("she", "name the thing"),
    ("whoever", "name it: a waiter, a reader, the caller"),
    ("somebody", "name it: a session, a user"),
    ("manieth", "every nth"),
    ("stands in", "is in"),
    ("stands at", "is at"),
    ("stand in", "are in"),
    ("stands there", "is there"),
    ("speaks for", "say what it decides"),
    ("comes to rest", "stops, is no longer written"),
];

/// Headers of modules, the map of the architecture and the documents of the design use plain words.
pub fn words(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        let is_rust = path.ends_with(".rs") && !path.starts_with("xtask/");
        // The decisions stand as they were made.
        let is_design = path.starts_with("docs/design/") && path.ends_with(".md") && path != DECISIONS;
        if !is_rust && !is_design && path != "ARCHITECTURE.md" {
            continue;
        }
        for (number, line) in
            text.lines().enumerate().filter(|(_, line)| !is_rust || line.trim_start().starts_with("//!"))
        {
            for (word, instead) in REFUSED.iter().filter(|(word, _)| says(line, word)) {
                problems.push(Problem::new(format!("{path}:{}", number + 1), format!("\"{word}\": {instead}")));
            }
        }
    }
    problems
}

/// Whether a line has these words, also at the beginning of a sentence. `HIS-1` is no word.
pub fn says(line: &str, words: &str) -> bool {
    has_words(line, words) || has_words(line, &capitalised(words))
}

fn capitalised(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// Whether a line holds these words, and not only as a part of longer ones.
fn has_words(line: &str, words: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'');
    line.match_indices(words)
        .any(|(at, found)| !line[..at].ends_with(part) && !line[at + found.len()..].starts_with(part))
}

/// Each decision names at least one test, and what it names is there: files, and in them functions or scenarios.
pub fn decisions(tree: &Tree) -> Vec<Problem> {
    let text = tree.text(DECISIONS);
    let mut problems = Vec::new();
    let (mut decision, mut checked) = (String::new(), 0);
    let sections = text.lines().filter(|line| line.starts_with("## F")).count();
    if !text.is_empty() && sections != DECISIONS_COUNT {
        problems.push(Problem::new(DECISIONS, format!("{sections} decisions instead of {DECISIONS_COUNT}")));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut decision);
        }
        let Some(named) = line.strip_prefix("Checked by: ") else { continue };
        checked += 1;
        let place = format!("{DECISIONS}:{}", number + 1);
        let mut file = None;
        let mut tests = 0;
        for name in named.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                if !tree.files.keys().any(|path| path == name || path.starts_with(&format!("{name}/"))) {
                    problems.push(Problem::new(&place, format!("{decision}: there is no {name}")));
                }
                tests += usize::from(!name.ends_with(".rs"));
                file = Some(name);
            } else if let Some(file) = file.filter(|file| file.ends_with(".rs")) {
                tests += 1;
                if !is_test_of(tree, file, name) {
                    problems.push(Problem::new(&place, format!("{decision}: {file} has no test \"{name}\"")));
                }
            }
        }
        if tests == 0 {
            problems.push(Problem::new(&place, format!("{decision}: no test is named")));
        }
    }
    if checked != sections {
        problems.push(Problem::new(DECISIONS, format!("{checked} of {sections} decisions say what checks them")));
    }
    problems
}

/// A function of the file, or a scenario of the model that the file runs.
fn is_test_of(tree: &Tree, file: &str, name: &str) -> bool {
    tree.text(file).contains(&format!("fn {name}("))
        || tree
            .files
            .iter()
            .any(|(path, text)| path.ends_with("/scenarios.rs") && text.contains(&format!("name: \"{name}\"")))
}

/// The page of the catalog's form on disk.
const CATALOG: &str = "docs/catalog-format.md";

/// Every field of every object of the catalog, which is on disk as JSON, is described.
pub fn catalog(tree: &Tree) -> Vec<Problem> {
    let page = tree.text(CATALOG);
    let mut problems = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with("engine/src/catalog/")) {
        let (mut is_stored, mut object, mut renamed) = (false, "", None);
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if code.starts_with("#[cfg(test)]") {
                break;
            } else if code.starts_with("#[derive") {
                is_stored = code.contains("Serialize");
            } else if code.starts_with("#[serde") {
                renamed = code.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
            } else if let Some(rest) = code.strip_prefix("pub struct ") {
                object = if is_stored { rest.split(' ').next().unwrap_or("") } else { "" };
            } else if line.starts_with('}') {
                object = "";
            } else if let Some((name, _)) = code.strip_prefix("pub ").and_then(|rest| rest.split_once(": "))
                && !object.is_empty()
            {
                let field = format!("`{object}.{}`", renamed.take().unwrap_or(name));
                if !page.contains(&field) {
                    problems.push(Problem::new(
                        format!("{path}:{}", number + 1),
                        format!("{CATALOG} does not describe {field}"),
                    ));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_words() {
        assert!(has_words("what he wants", "he") && has_words("(he)", "he"));
        assert!(!has_words("what the others want", "he") && !has_words("withstands in", "stands in"));
    }

    #[test]
    fn a_refused_word_in_a_header_is_found_and_none_elsewhere() {
        let found = words(&Tree::of(&[
            ("a/src/lib.rs", "//! A latch.\n//! Whoever holds it goes on.\n// Somebody.\nfn f() {}\n"),
            ("docs/design/x.md", "It stands in the file.\n"),
            ("docs/x.md", "It stands in the file.\n"),
        ]));
        let places: Vec<&str> = found.iter().map(|problem| problem.place.as_str()).collect();
        assert_eq!(places, ["a/src/lib.rs:2", "docs/design/x.md:1"]);
    }

    #[test]
    fn a_field_of_the_catalog_that_is_not_described_is_found() {
        let source = "#[derive(Clone, Serialize)]\npub struct Thing {\n    pub oid: Oid,\n    #[serde(default, rename = \"grants\")]\n    pub acl: Acl,\n}\n\
                      #[derive(Clone)]\npub struct InMemory {\n    pub lsn: Lsn,\n}\n";
        let problems = |page: &str| catalog(&Tree::of(&[("engine/src/catalog/thing.rs", source), (CATALOG, page)]));
        assert_eq!(problems("`Thing.oid` `Thing.grants`"), []);
        let found = problems("`Thing.oid`");
        assert_eq!(found.len(), 1);
        assert!(found[0].what.ends_with("`Thing.grants`"), "{found:?}");
    }

    #[test]
    fn a_decision_whose_test_is_gone_is_found() {
        let page = |checked: &str| {
            let rest: String = (2..=10).map(|n| format!("## F{n} x\nChecked by: `a/t.py`\n")).collect();
            format!("## F1 One\nChecked by: {checked}\n{rest}")
        };
        let problems = |checked: &str| {
            let page = page(checked);
            decisions(&Tree::of(&[(DECISIONS, &page), ("a/tests/t.rs", "fn it_holds() {}\n"), ("a/t.py", "")])).len()
        };
        assert_eq!(problems("`a/tests/t.rs` (`it_holds`)"), 0);
        assert_eq!(problems("`a/tests/t.rs` (`it_is_gone`)"), 1);
        assert_eq!(problems("`a/tests/gone.rs` (`it_holds`)"), 2);
        assert_eq!(problems("nothing"), 1);
    }
}
