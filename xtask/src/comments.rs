//! Words that comments must not contain: pronouns in the place of a thing's name.
//!
//! "he", "whoever", "somebody" and "nobody" are refused in every comment. "who" is right only for a client, a role or a person; the
//! ratchet has the number of comments with "who" by folder, so that an additional one is noticed.

use crate::Problem;
use crate::documents::says;
use crate::ratchet::Ratchet;
use crate::tree::Tree;
use std::collections::BTreeMap;

/// What no comment says, and what it says instead.
const REFUSED: [(&str, &str); 9] = [
    ("he", "name the thing"),
    ("him", "name the thing"),
    ("his", "name the thing"),
    ("himself", "name the thing"),
    ("she", "name the thing"),
    ("whoever", "name it: a waiter, a reader, the caller"),
    ("whomever", "name it: a waiter, a reader, the caller"),
    ("somebody", "name it: another thread, a session, a role"),
    ("nobody", "name it: no thread, no session, no role"),
];
/// What only a person, a client or a role is.
const PERSONS: [&str; 2] = ["who", "whom"];
/// The section of the ratchet: comments with one of [`PERSONS`], by folder.
const SECTION: &str = "comments-with-who";

/// The comments of a file by line, but what is quoted as code.
fn comments(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().filter_map(|(number, line)| {
        let comment = line.trim_start();
        comment.starts_with("//").then(|| (number + 1, comment.split('`').step_by(2).collect::<Vec<_>>().join("``")))
    })
}

/// The files with the product's comments; those of this tool name the words.
fn sources(tree: &Tree) -> impl Iterator<Item = (&String, &String)> {
    tree.files.iter().filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("xtask/"))
}

/// No comment has a refused word, and no folder has more comments with "who" than the ratchet says.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Ratchet::of(tree).exceeded(&measure(tree));
    for (path, text) in sources(tree) {
        for (number, comment) in comments(text) {
            for (word, instead) in REFUSED.iter().filter(|(word, _)| says(&comment, word)) {
                problems.push(Problem::new(format!("{path}:{number}"), format!("\"{word}\": {instead}")));
            }
        }
    }
    problems
}

/// How many comments have "who" or "whom", by folder of the top level.
pub fn measure(tree: &Tree) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources(tree) {
        let count = comments(text).filter(|(_, comment)| PERSONS.iter().any(|word| says(comment, word))).count();
        if count > 0 {
            let folder = path.split('/').next().unwrap_or(path);
            *folders.entry(folder.to_owned()).or_default() += count;
        }
    }
    BTreeMap::from([(SECTION.to_owned(), folders)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pronoun_in_a_comment_is_found() {
        let found = check(&Tree::of(&[
            ("a/src/lib.rs", "/// The holder.\nfn f() {\n    // Nobody waits.\n    let he = \"somebody\";\n}\n"),
            ("b/src/lib.rs", "//! Whoever holds it.\n// A role `nobody`, and `whoever` else.\n"),
            ("b/notes.md", "Nobody waits.\n"),
        ]));
        let places: Vec<&str> = found.iter().map(|problem| problem.place.as_str()).collect();
        assert_eq!(places, ["a/src/lib.rs:3", "b/src/lib.rs:1"]);
    }

    #[test]
    fn one_more_who_than_the_ratchet_allows_is_found() {
        let source = "/// Who may read.\n// The role for whom it is.\n";
        let problems = |allowed: &str| {
            let ratchet = format!("[{SECTION}]\n\"a\" = {allowed}\n");
            check(&Tree::of(&[("a/src/lib.rs", source), ("xtask/ratchet.toml", &ratchet)])).len()
        };
        assert_eq!((problems("2"), problems("1")), (0, 1));
    }
}
