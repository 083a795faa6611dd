//! Data-driven tests: files of commands with their expected output, rewritten by a flag.
//!
//! # Structure
//! After cockroachdb/datadriven. A file is a sequence of cases, separated by blank lines:
//! ```text
//! # A comment.
//! command key=value key=(a,b) flag
//! input, to the line of dashes
//! ----
//! expected output, to the next blank line
//! ```
//! Output that contains blank lines stands between two doubled lines of dashes. With
//! `CLEARWAY_REWRITE=1` a run writes what it got into the file instead of comparing; read the diff
//! before you commit it.
//!
//! # Errors
//! Everything that goes wrong panics: with file and line, what was expected and what came.

use crate::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The first word.
    pub command: String,
    /// The other words: a key and its values, none for a flag.
    pub args: Vec<(String, Vec<String>)>,
    /// The lines before the dashes, without the last line end.
    pub input: String,
    /// The lines after the dashes; ends with a line end unless empty.
    pub expected: String,
    /// `file:line`, for messages.
    pub position: String,
}

impl Case {
    /// The only value of an argument.
    pub fn arg(&self, key: &str) -> Option<&str> {
        match self.args.iter().find(|(name, _)| name == key)?.1.as_slice() {
            [value] => Some(value),
            values => panic!("{}: {key} has {} values, not one", self.position, values.len()),
        }
    }

    /// The only value of an argument that must be there, parsed.
    pub fn parse<T: std::str::FromStr>(&self, key: &str) -> T {
        let text = self.arg(key).unwrap_or_else(|| panic!("{}: no {key}=", self.position));
        text.parse().unwrap_or_else(|_| panic!("{}: {key}={text} does not parse", self.position))
    }

    /// Whether a flag (or an argument) is given.
    pub fn has(&self, key: &str) -> bool {
        self.args.iter().any(|(name, _)| name == key)
    }
}

/// A part of a file: lines that are kept as they stand, or a case.
enum Part {
    Kept(String),
    Case { head: String, case: Case },
}

/// Runs the cases of the file at `path` through `run`, which returns the output; panics at the first
/// difference, or rewrites the file.
pub fn run_file(path: &Path, mut run: impl FnMut(&Case) -> String) {
    let text = read(path);
    let rewrite = std::env::var_os("CLEARWAY_REWRITE").is_some_and(|flag| flag == "1");
    let mut rewritten = String::new();
    for part in parse(&text, &path.display().to_string()) {
        match part {
            Part::Kept(lines) => rewritten.push_str(&lines),
            Part::Case { head, case } => {
                let mut output = run(&case);
                if !output.is_empty() && !output.ends_with('\n') {
                    output.push('\n');
                }
                assert!(
                    rewrite || output == case.expected,
                    "{}: {}\n--- expected\n{}--- got\n{output}--- (CLEARWAY_REWRITE=1 rewrites the file)",
                    case.position,
                    case.command,
                    case.expected,
                );
                rewritten.push_str(&head);
                rewritten.push_str(&dashed(&output));
            }
        }
    }
    if rewrite && rewritten != text {
        write(path, &rewritten);
    }
}

/// Runs every file of a directory, in the order of their names.
pub fn run_dir(dir: &Path, mut run: impl FnMut(&Path, &Case) -> String) {
    let entries = RealVfs::inline().list(dir).wait().unwrap_or_else(|err| panic!("{err}"));
    assert!(!entries.is_empty(), "no test files in {}", dir.display());
    for entry in entries {
        let path: PathBuf = dir.join(entry.name);
        run_file(&path, |case| run(&path, case));
    }
}

fn read(path: &Path) -> String {
    let read = || {
        let how = OpenHow::read_only(FileKind::Other);
        let file = RealVfs::inline().open(path, how).wait()?;
        let len = file.len().wait()? as usize;
        file.read_at(0, IoBuf::with_capacity(len), len).wait()
    };
    let bytes = read().unwrap_or_else(|err| panic!("{err}"));
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

fn write(path: &Path, text: &str) {
    let write = || {
        let file = RealVfs::inline().open(path, OpenHow::existing(FileKind::Other)).wait()?;
        file.set_len(0).wait()?;
        file.write_at(0, IoBuf::from_slice(text.as_bytes())).wait()
    };
    write().unwrap_or_else(|err| panic!("{err}"));
}

/// The expected part of a case, from the dashes to the blank line.
fn dashed(output: &str) -> String {
    let has_blank = output.starts_with('\n') || output.contains("\n\n");
    let looks_dashed = output.lines().next() == Some("----");
    if has_blank || looks_dashed { format!("----\n----\n{output}----\n----\n\n") } else { format!("----\n{output}\n") }
}

fn parse(text: &str, name: &str) -> Vec<Part> {
    let mut lines = text.lines().enumerate().peekable();
    let mut parts = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            parts.push(Part::Kept(format!("{line}\n")));
            continue;
        }
        let position = format!("{name}:{}", number + 1);
        let mut head = format!("{line}\n");
        let mut input = Vec::new();
        loop {
            match lines.next() {
                Some((_, "----")) => break,
                Some((_, line)) => {
                    input.push(line);
                    let _ = writeln!(head, "{line}");
                }
                None => panic!("{position}: no ---- after this command"),
            }
        }
        let doubled = lines.next_if(|(_, line)| *line == "----").is_some();
        let mut expected = String::new();
        loop {
            match lines.next() {
                Some((_, "")) if !doubled => break,
                Some((_, "----")) if doubled && lines.peek().is_some_and(|next| next.1 == "----") => {
                    lines.next();
                    lines.next_if(|(_, line)| line.is_empty());
                    break;
                }
                Some((_, line)) => {
                    let _ = writeln!(expected, "{line}");
                }
                None if doubled => panic!("{position}: the doubled ---- is not closed"),
                None => break,
            }
        }
        let (command, args) = parse_command(line, &position);
        let case = Case { command, args, input: input.join("\n"), expected, position };
        parts.push(Part::Case { head, case });
    }
    parts
}

fn parse_command(line: &str, position: &str) -> (String, Vec<(String, Vec<String>)>) {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0_u32;
    for c in line.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).unwrap_or_else(|| panic!("{position}: stray )")),
            _ => {}
        }
        if c.is_whitespace() && depth == 0 {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        } else {
            word.push(c);
        }
    }
    assert!(depth == 0, "{position}: ( without )");
    words.extend((!word.is_empty()).then_some(word));
    let mut words = words.into_iter();
    let command = words.next().unwrap_or_default();
    let args = words.map(|word| match word.split_once('=') {
        None => (word, Vec::new()),
        Some((key, value)) => {
            let list = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
            let values = match list {
                Some(list) => list.split(',').map(|value| value.trim().to_owned()).collect(),
                None => vec![value.to_owned()],
            };
            (key.to_owned(), values)
        }
    });
    (command, args.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> Vec<Case> {
        let parts = parse(text, "t").into_iter();
        parts
            .filter_map(|part| match part {
                Part::Kept(_) => None,
                Part::Case { case, .. } => Some(case),
            })
            .collect()
    }

    const TEXT: &str =
        "# note\nput k=1 keys=(a, b) dry\none\ntwo\n----\nok\n\nget\n----\n----\na\n\nb\n----\n----\n\nend\n----\n";

    #[test]
    fn cases_have_arguments_input_and_expected_output() {
        let cases = cases(TEXT);
        assert_eq!(cases.len(), 3);
        assert_eq!((cases[0].command.as_str(), cases[0].input.as_str()), ("put", "one\ntwo"));
        assert_eq!(cases[0].parse::<u32>("k"), 1);
        assert_eq!(cases[0].args[1].1, ["a", "b"]);
        assert!(cases[0].has("dry") && !cases[0].has("wet"));
        assert_eq!(cases[0].expected, "ok\n");
        assert_eq!(cases[1].expected, "a\n\nb\n");
        assert_eq!((cases[2].expected.as_str(), cases[2].position.as_str()), ("", "t:17"));
    }

    #[test]
    fn rewriting_what_was_expected_changes_nothing() {
        let mut again = String::new();
        for part in parse(TEXT, "t") {
            match part {
                Part::Kept(lines) => again.push_str(&lines),
                Part::Case { head, case } => {
                    again.push_str(&head);
                    again.push_str(&dashed(&case.expected));
                }
            }
        }
        assert_eq!(again.trim_end(), TEXT.trim_end());
    }

    #[test]
    #[should_panic(expected = "no ---- after this command")]
    fn a_case_without_dashes_is_refused() {
        cases("get\nx\n");
    }
}
