//! No test is left out: what a manifest does not have built has no tests, and each file beside a program of tests is a part of it.

use crate::Problem;
use crate::tree::Tree;

/// The crates whose documentation has examples that are run.
pub const DOCUMENTED: [&str; 2] = ["clearway", "clearway-engine"];

/// Tests that cargo would pass over.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (manifest, text) in tree.files.iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        let source = manifest.replace("Cargo.toml", "src/");
        let has = |line: &str| text.lines().any(|other| other.trim() == line);
        let documented = DOCUMENTED.iter().any(|name| has(&format!("name = \"{name}\"")));
        if tree.files.contains_key(&format!("{source}lib.rs")) && documented == has("doctest = false") {
            problems.push(Problem::new(manifest, "either `doctest = false`, or named in xtask/src/tested.rs"));
        }
        for (path, code) in tree.rust().filter(|(path, _)| path.starts_with(&source)) {
            if has("doctest = false") && examples(code) {
                problems.push(Problem::new(
                    path,
                    format!("an example that nothing runs: {manifest} says `doctest = false`"),
                ));
            }
            if has("test = false") && code.lines().any(|line| line.trim() == "#[test]") {
                problems.push(Problem::new(path, format!("a test that nothing runs: {manifest} says `test = false`")));
            }
        }
    }
    problems.extend(unnamed(tree));
    problems
}

/// Whether the documentation in a file has code that rustdoc would run.
fn examples(code: &str) -> bool {
    let mut fences = code.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?.trim_start().strip_prefix("```")
    });
    let mut found = false;
    while let Some(opening) = fences.next() {
        found |= !matches!(opening.trim(), "text" | "sql" | "console" | "yaml" | "json");
        fences.next();
    }
    found
}

/// Files in folders of `tests/` that no file of `tests/` declares as a module.
fn unnamed(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, _) in tree.rust() {
        let Some(at) = path.rfind("/tests/") else { continue };
        let (tests, name) = (&path[..at + 7], &path[at + 7..]);
        let Some((_, file)) = name.rsplit_once('/').filter(|(_, file)| *file != "main.rs") else { continue };
        let folder = &path[..path.len() - file.len() - 1];
        let module = match file.trim_end_matches(".rs") {
            "mod" => folder.rsplit('/').next().unwrap_or_default(),
            module => module,
        };
        let declared = format!("mod {module};");
        let within = |(other, text): (&str, &str)| {
            other.starts_with(tests) && text.lines().any(|line| line.trim().trim_start_matches("pub ") == declared)
        };
        if !path.contains("/src/") && !tree.rust().any(within) {
            problems.push(Problem::new(path, format!("no program of {tests} has `{declared}`")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn an_example_and_a_test_that_are_not_built_are_found() {
        let example = "//! ```text\n//! a  b\n//! ```\n//!\n//! ```\n//! assert!(true);\n//! ```\n";
        let (layout, test) = ("//! ```text\n//! a  b\n//! ```\n", "mod tests {\n    #[test]\n    fn f() {}\n}\n");
        let files = |manifest| {
            [("a/Cargo.toml", manifest), ("a/src/x.rs", example), ("a/src/y.rs", layout), ("a/src/z.rs", test)]
        };
        assert_eq!(places(&files("[lib]\ndoctest = false\n")), ["a/src/x.rs"]);
        assert_eq!(places(&files("[lib]\ntest = false\n")), ["a/src/z.rs"]);
        assert_eq!(places(&files("[lib]\n")), [""; 0]);
    }

    #[test]
    fn a_library_whose_examples_are_not_run_says_so() {
        let files = |manifest| [("a/Cargo.toml", manifest), ("a/src/lib.rs", "")];
        assert_eq!(places(&files("name = \"clearway\"\n")), [""; 0]);
        assert_eq!(places(&files("name = \"clearway-new\"\n[lib]\ndoctest = false\n")), [""; 0]);
        assert_eq!(places(&files("name = \"clearway-new\"\n")), ["a/Cargo.toml"]);
        assert_eq!(places(&files("name = \"clearway\"\n[lib]\ndoctest = false\n")), ["a/Cargo.toml"]);
    }

    #[test]
    fn a_file_of_tests_that_no_program_names_is_found() {
        let main = ("a/tests/it/main.rs", "#[path = \"../tool/mod.rs\"]\nmod tool;\npub mod one;\n");
        let files = [
            main,
            ("a/tests/it/one.rs", ""),
            ("a/tests/tool/mod.rs", ""),
            ("a/tests/own.rs", ""),
            ("a/tests/it/two.rs", ""),
        ];
        assert_eq!(places(&files), ["a/tests/it/two.rs"]);
    }
}
