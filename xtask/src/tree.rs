//! The files of the repository, and their Rust text without what the checks must not see.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The text files that the checks read, by path from the root with `/`.
#[derive(Default)]
pub struct Tree {
    pub files: BTreeMap<String, String>,
    /// The packages that each crate of the workspace depends on, by the crate's directory.
    pub dependencies: BTreeMap<String, Vec<String>>,
}

/// Directories that are no part of the workspace or hold no source.
const SKIPPED: [&str; 5] = ["target", ".git", "peers", "interleave", "node_modules"];

impl Tree {
    /// A tree of these files alone.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Tree { files, ..Tree::default() }
    }

    /// Reads all `.rs`, `.toml`, `.lock`, `.md` and `.txt` files under `root`.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_dir(root, "")?;
        tree.dependencies = dependencies(root)?;
        Ok(tree)
    }

    fn read_dir(&mut self, dir: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                // A folder of source may bear one of those names: `backup/src/target`.
                if path.contains("/src/") || !SKIPPED.contains(&name.as_str()) {
                    self.read_dir(&entry.path(), &format!("{path}/"))?;
                }
            } else if [".rs", ".toml", ".lock", ".md", ".txt", ".py"].iter().any(|end| name.ends_with(end)) {
                // Test data may be anything; what is no text is nobody's source.
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    self.files.insert(path, text);
                }
            }
        }
        Ok(())
    }

    /// The text of a file, empty if there is none.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// Files that hold only tests: by their names, or as modules declared under `#[cfg(test)]`.
    pub fn test_files(&self) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = self.rust().map(|(path, _)| path).filter(|path| is_test_file(path)).collect();
        for (path, text) in self.rust() {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let stem = name.trim_end_matches(".rs");
            let dir = match stem {
                "mod" | "lib" | "main" => dir.to_owned(),
                _ => format!("{dir}/{stem}"),
            };
            let code = blank(text);
            for part in code.split("#[cfg(test)]").skip(1) {
                let Some(rest) = part.trim_start().strip_prefix("mod ") else {
                    continue;
                };
                let module: String = rest.chars().take_while(|c| is_word(*c)).collect();
                if rest[module.len()..].starts_with(';') {
                    let candidates = [format!("{dir}/{module}.rs"), format!("{dir}/{module}/mod.rs")];
                    found.extend(
                        candidates
                            .iter()
                            .filter_map(|path| self.files.get_key_value(path).map(|(path, _)| path.as_str())),
                    );
                }
            }
        }
        found
    }

    /// All Rust files.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        all.filter(|(path, _)| path.ends_with(".rs"))
    }
}

/// What `cargo metadata` says of the workspace's crates: dependencies of every kind, by the packages' own names.
fn dependencies(root: &Path) -> io::Result<BTreeMap<String, Vec<String>>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root);
    let output = metadata.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr))));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    packages(&metadata).ok_or_else(|| io::Error::other("cargo metadata has another form than expected"))
}

fn packages(metadata: &Value) -> Option<BTreeMap<String, Vec<String>>> {
    let root = Path::new(metadata["workspace_root"].as_str()?);
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array()? {
        let dir = Path::new(package["manifest_path"].as_str()?).parent()?.strip_prefix(root).ok()?;
        let names =
            package["dependencies"].as_array()?.iter().map(|package| package["name"].as_str().map(str::to_owned));
        found.insert(dir.to_str()?.to_owned(), names.collect::<Option<Vec<_>>>()?);
    }
    Some(found)
}

/// Whether a file's name says that it holds only tests, benchmarks or a build script.
fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let in_dir = |dir: &str| path.starts_with(&format!("{dir}/")) || path.contains(&format!("/{dir}/"));
    in_dir("tests")
        || in_dir("benches")
        || in_dir("examples")
        || name == "build.rs"
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// Which part of the text a scanner is in.
enum Mode {
    Code,
    LineComment,
    BlockComment(u32),
    Text { hashes: Option<usize> },
}

/// The text with comments and the contents of strings and character literals turned into spaces. Lines
/// and columns stay where they are.
pub fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut mode = Mode::Code;
    let mut i = 0;
    while i < chars.len() {
        let step = mode.step(&chars, i);
        for c in &chars[i..(i + step.width).min(chars.len())] {
            out.push(if step.keep || *c == '\n' { *c } else { ' ' });
        }
        if let Some(next) = step.next {
            mode = next;
        }
        i += step.width;
    }
    out
}

/// What a scanner does with the characters at its position.
struct Step {
    width: usize,
    keep: bool,
    next: Option<Mode>,
}

impl Step {
    const KEEP: Step = Step { width: 1, keep: true, next: None };

    fn blank(width: usize) -> Step {
        Step { width, keep: false, next: None }
    }

    fn into(mode: Mode, width: usize) -> Step {
        Step { width, keep: false, next: Some(mode) }
    }
}

impl Mode {
    fn step(&self, chars: &[char], i: usize) -> Step {
        let at = |j: usize| chars.get(j).copied().unwrap_or('\0');
        match (self, chars[i], at(i + 1)) {
            (Mode::Code, _, _) => code_step(chars, i),
            (Mode::LineComment, '\n', _) => Step::into(Mode::Code, 1),
            (Mode::BlockComment(depth), '/', '*') => Step::into(Mode::BlockComment(depth + 1), 2),
            (Mode::BlockComment(1), '*', '/') => Step::into(Mode::Code, 2),
            (Mode::BlockComment(depth), '*', '/') => Step::into(Mode::BlockComment(depth - 1), 2),
            (Mode::Text { hashes: None }, '\\', _) => Step::blank(2),
            (Mode::Text { hashes: None }, '"', _) => Step::into(Mode::Code, 1),
            (Mode::Text { hashes: Some(count) }, '"', _) if (1..=*count).all(|j| at(i + j) == '#') => {
                Step::into(Mode::Code, 1 + count)
            }
            _ => Step::blank(1),
        }
    }
}

fn code_step(chars: &[char], i: usize) -> Step {
    let at = |j: usize| chars.get(j).copied().unwrap_or('\0');
    let before = if i == 0 { ' ' } else { chars[i - 1] };
    match (chars[i], at(i + 1)) {
        ('/', '/') => Step::into(Mode::LineComment, 1),
        ('/', '*') => Step::into(Mode::BlockComment(1), 2),
        ('"', _) => Step::into(Mode::Text { hashes: None }, 1),
        ('r', '"' | '#') if !is_word(before) || before == 'b' => {
            let hashes = (i + 1..).take_while(|j| at(*j) == '#').count();
            // `r#match` is an identifier.
            if at(i + 1 + hashes) != '"' {
                return Step::KEEP;
            }
            Step::into(Mode::Text { hashes: Some(hashes) }, 2 + hashes)
        }
        ('\'', '\\') => Step::blank(char_literal(chars, i)),
        ('\'', _) if at(i + 2) == '\'' => Step::blank(3),
        _ => Step::KEEP,
    }
}

/// The width of an escaped character literal that begins at `start`.
fn char_literal(chars: &[char], start: usize) -> usize {
    let end = (start + 3..chars.len().min(start + 14)).find(|j| chars[*j] == '\'');
    end.map_or(1, |end| end - start + 1)
}

/// Whether the character can stand in an identifier.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanked text without the modules and items under `#[cfg(test)]`.
pub fn without_tests(blanked: &str) -> String {
    let mut out = blanked.to_owned();
    let mut from = 0;
    // `cfg(all(test, ...))` counts too; the close of the attribute is found by what follows.
    while let Some(found) = out[from..].find("#[cfg(").map(|at| from + at) {
        let Some(close) = out[found..].find(")]").map(|at| found + at + 2) else {
            break;
        };
        from = close;
        let condition = &out[found..close];
        if !words(condition).any(|(_, word)| word == "test") || condition.contains("not(test") {
            continue;
        }
        let end = item_end(&out, close);
        let hidden: String = out[found..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        // Blanked text may still hold wide characters in identifiers; lengths then differ.
        out.replace_range(found..end, &hidden);
        from = found + hidden.len();
    }
    out
}

/// The end of the item that begins at `from`: its `;`, or the brace that closes it.
pub fn item_end(blanked: &str, from: usize) -> usize {
    let (mut braces, mut others) = (0_i32, 0_i32);
    for (at, c) in blanked[from..].char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others -= 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 && others <= 0 {
                    return from + at + 1;
                }
            }
            ';' if braces == 0 && others == 0 => return from + at + 1,
            _ => {}
        }
    }
    blanked.len()
}

/// The identifiers of a text with their offsets.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_word)?;
        let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |at| start + at);
        rest = end;
        Some((start, &text[start..end]))
    })
}

/// The line number, from 1, of an offset.
pub fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_by_their_own_names() {
        let metadata = serde_json::json!({"workspace_root": "/r", "packages": [
            {"manifest_path": "/r/sql/syntax/Cargo.toml", "dependencies": [{"name": "real-c", "rename": "c"}, {"name": "e", "kind": "dev"}]}]});
        let expected = BTreeMap::from([("sql/syntax".to_owned(), vec!["real-c".to_owned(), "e".to_owned()])]);
        assert_eq!(packages(&metadata), Some(expected));
        assert_eq!(packages(&serde_json::json!({"packages": []})), None);
    }

    #[test]
    fn comments_and_strings_are_blanked_and_code_is_not() {
        let text = "a /* x /* y */ z */ b // c\nlet s = \"File::\\\" q\"; let r = r#\"std::fs \"x\"#; d";
        let blanked = blank(text);
        assert_eq!(blanked.len(), text.len());
        let left: Vec<_> = words(&blanked).map(|(_, word)| word).collect();
        assert_eq!(left, ["a", "b", "let", "s", "let", "r", "d"]);
    }

    #[test]
    fn lifetimes_are_code_and_character_literals_are_not() {
        let blanked = blank("fn f<'a>(x: &'a str) { '\"'; '{'; '\\n'; '\\u{1F600}'; y }");
        assert_eq!(blanked.matches('{').count(), 1);
        assert!(blanked.contains("&'a str") && blanked.contains('y'));
    }

    #[test]
    fn items_under_cfg_test_vanish() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { c(); } }\nfn d() {}\n#[cfg(test)]\nmod e;\nfn g() {}";
        let left = without_tests(&blank(code));
        let left: Vec<_> = words(&left).map(|(_, word)| word).collect();
        assert_eq!(left, ["fn", "a", "fn", "d", "fn", "g"]);
    }

    #[test]
    fn conditions_that_exclude_tests_stay() {
        let left = without_tests("#[cfg(not(test))]\nfn a() {}");
        assert!(left.contains("fn a()"));
    }
}
