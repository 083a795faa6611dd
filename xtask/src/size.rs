//! Length of files and functions, and the number of crates from elsewhere.

use crate::Problem;
use crate::ratchet::Ratchet;
use crate::tree::{Tree, blank, item_end, line_of, words};
use std::collections::BTreeMap;

/// Lines of a file beyond which it asks to be split.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function beyond which it asks to be split.
const FUNCTION_LINES_MAX: usize = 70;

/// What exceeds its limit now; the sections are those of the ratchet.
pub fn measure(tree: &Tree) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut files = BTreeMap::new();
    let mut functions = BTreeMap::new();
    for (path, text) in tree.rust() {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            files.insert(path.to_owned(), lines);
        }
        for (name, lines) in function_lengths(text) {
            if lines > FUNCTION_LINES_MAX {
                let longest: &mut usize = functions.entry(format!("{path}::{name}")).or_default();
                *longest = lines.max(*longest);
            }
        }
    }
    let lock = tree.text("Cargo.lock");
    // A crate of the repository has no source.
    let crates = lock.lines().filter(|line| line.starts_with("source = ")).count();
    BTreeMap::from([
        ("file-lines".to_owned(), files),
        ("function-lines".to_owned(), functions),
        ("crates".to_owned(), BTreeMap::from([("Cargo.lock".to_owned(), crates)])),
    ])
}

/// Compares with the ratchet.
pub fn check(tree: &Tree) -> Vec<Problem> {
    Ratchet::of(tree).exceeded(&measure(tree))
}

/// The functions of a file with their length in lines, signature and closing brace included.
fn function_lengths(text: &str) -> Vec<(String, usize)> {
    let code = blank(text);
    let mut found = Vec::new();
    for (start, word) in words(&code) {
        if word != "fn" {
            continue;
        }
        // `fn(` is a type.
        let Some(rest) = code[start + 2..].strip_prefix(char::is_whitespace) else {
            continue;
        };
        let name: String = rest.trim_start().chars().take_while(|c| crate::tree::is_word(*c)).collect();
        if name.is_empty() {
            continue;
        }
        let end = item_end(&code, start);
        found.push((name, line_of(&code, end.max(1) - 1) - line_of(&code, start) + 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let text = "fn a(\n    x: [u8; 3],\n) -> impl Fn(u8) {\n    let b: fn(u8) = c; // }\n    \"}\";\n}\n\
                    trait T {\n    fn d();\n    fn e() {}\n}\n";
        let found = function_lengths(text);
        let expected = [("a", 6), ("d", 1), ("e", 1)].map(|(name, lines)| (name.to_owned(), lines));
        assert_eq!(found, expected);
    }
}
