//! The graph of imports between the files of a crate, for the check of circles.
//!
//! # Structure
//! A file's module path comes from its place under `src/`. Its `use` declarations and the paths in its code are resolved to files: the
//! longest prefix that is a module; then, if that module itself imports the next name, the file from which the name comes. So
//! `crate::session::Backend` leads to the file that defines `Backend`, and not to the one that re-exports it.
//!
//! A `pub use` alone is no import: a module that re-exports the names of its children does not depend on them. It counts as an import if
//! the file uses the name itself.
//!
//! # Not here
//! Imports between crates (cargo refuses circles there), and what a macro or a method call reaches without a path.

use crate::layers::named_paths;
use crate::tree::{Tree, blank, is_word, item_end, line_of, without_tests, words};
use std::collections::{BTreeMap, BTreeSet};

/// One import: the file that it leads to, and the line on which it stands.
pub type Imports<'t> = BTreeMap<&'t str, BTreeMap<&'t str, usize>>;

/// The names that lead to a module: `crate` left out.
type ModulePath = Vec<String>;

/// One name that a `use` declaration brings into a file.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    /// The name in this file; None for `*`.
    alias: Option<String>,
    public: bool,
    offset: usize,
}

/// What is known of a file.
struct Source {
    module: ModulePath,
    /// The text without comments, strings and tests, and without `use` declarations.
    code: String,
    uses: Vec<Use>,
    /// Ranges of modules written out in the file.
    inline: Vec<(String, std::ops::Range<usize>)>,
}

/// The imports between the files of each crate.
pub fn imports(tree: &Tree) -> Imports<'_> {
    let test_files = tree.test_files();
    let mut crates: BTreeMap<&str, BTreeMap<&str, Source>> = BTreeMap::new();
    for (path, text) in tree.rust().filter(|(path, _)| !test_files.contains(path)) {
        if let Some((root, inner)) = path.rsplit_once("/src/").filter(|(_, inner)| !inner.starts_with("bin/")) {
            crates.entry(root).or_default().insert(path, Source::new(inner, text));
        }
    }
    let mut found = Imports::new();
    for files in crates.values() {
        let graph = Crate::new(files);
        for (path, source) in files {
            found.insert(path, graph.imports_of(path, source));
        }
    }
    found
}

impl Source {
    fn new(inner: &str, text: &str) -> Source {
        let mut code = without_tests(&blank(text));
        let mut uses = Vec::new();
        let mut declarations = Vec::new();
        for (offset, word) in words(&code) {
            let rest = code[offset + word.len()..].trim_start();
            if word == "use" && !rest.starts_with('<') {
                let end = code[offset..].find(';').map_or(code.len(), |at| offset + at);
                let before = code[..offset].trim_end();
                let public = before.ends_with("pub") || (before.ends_with(')') && before.contains("pub("));
                let public = public && !before.ends_with(");");
                let tokens = tokens(&code[offset + 3..end]);
                expand(&mut tokens.as_slice(), &[], &mut |path, alias| {
                    uses.push(Use { path, alias, public, offset });
                });
                declarations.push(offset..end);
            }
        }
        for range in declarations {
            let spaces: String = code[range.clone()].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
            code.replace_range(range, &spaces);
        }
        let mut inline = Vec::new();
        for (offset, word) in words(&code) {
            let rest = code[offset + word.len()..].trim_start();
            let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
            if word == "mod" && !name.is_empty() && rest[name.len()..].trim_start().starts_with('{') {
                inline.push((name, offset..item_end(&code, offset)));
            }
        }
        Source { module: module_path(inner), code, uses, inline }
    }

    /// The module in which an offset stands.
    fn module_at(&self, offset: usize) -> ModulePath {
        let inner = self.inline.iter().filter(|(_, range)| range.contains(&offset)).map(|(name, _)| name.clone());
        self.module.iter().cloned().chain(inner).collect()
    }
}

/// `exec/mod.rs` and `exec.rs` are `exec`, `lib.rs` and `main.rs` the root.
fn module_path(inner: &str) -> ModulePath {
    let mut parts: ModulePath = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The names and signs of a `use` declaration.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let width = match c {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' => 2.min(rest.len()),
            c => c.len_utf8(),
        };
        found.push(&rest[..width]);
        rest = rest[width..].trim_start();
    }
    found
}

/// Writes out `a::{b, c as d, e::*}` name by name.
fn expand(rest: &mut &[&str], prefix: &[String], found: &mut dyn FnMut(Vec<String>, Option<String>)) {
    let mut path = prefix.to_vec();
    let mut alias = None;
    let mut grouped = false;
    while let Some((token, after)) = rest.split_first() {
        *rest = after;
        match *token {
            "::" | "#" => {}
            "{" => {
                grouped = true;
                expand(rest, &path, found);
            }
            "}" => break,
            "," => {
                finish(&mut path, prefix, &mut alias, &mut grouped, found);
            }
            "as" => {
                alias = after.first().map(|name| (*name).to_owned());
                *rest = after.get(1..).unwrap_or_default();
            }
            name => path.push(name.to_owned()),
        }
    }
    finish(&mut path, prefix, &mut alias, &mut grouped, found);
}

fn finish(
    path: &mut Vec<String>,
    prefix: &[String],
    alias: &mut Option<String>,
    grouped: &mut bool,
    found: &mut dyn FnMut(Vec<String>, Option<String>),
) {
    let mut whole = std::mem::replace(path, prefix.to_vec());
    let alias = alias.take();
    if std::mem::take(grouped) || whole.len() == prefix.len() {
        return;
    }
    match whole.last().map(String::as_str) {
        Some("*") => {
            whole.pop();
            found(whole, None);
        }
        Some("self") if whole.len() > 1 => {
            whole.pop();
            let name = alias.or_else(|| whole.last().cloned());
            found(whole, name);
        }
        _ => {
            let name = alias.or_else(|| whole.last().cloned());
            found(whole, name);
        }
    }
}

/// The modules of a crate.
struct Crate<'a, 't> {
    files: &'a BTreeMap<&'t str, Source>,
    modules: BTreeMap<ModulePath, &'t str>,
}

impl<'a, 't> Crate<'a, 't> {
    fn new(files: &'a BTreeMap<&'t str, Source>) -> Self {
        let modules = files.iter().map(|(path, source)| (source.module.clone(), *path)).collect();
        Crate { files, modules }
    }

    fn imports_of(&self, path: &'t str, source: &Source) -> BTreeMap<&'t str, usize> {
        let mut found = BTreeMap::new();
        let mut note = |target: Option<&'t str>, offset: usize| {
            if let Some(target) = target.filter(|target| *target != path) {
                found.entry(target).or_insert_with(|| line_of(&source.code, offset));
            }
        };
        let used: BTreeSet<&str> = words(&source.code).map(|(_, word)| word).collect();
        for import in &source.uses {
            let handed_on = import.public && !import.alias.as_deref().is_some_and(|alias| used.contains(alias));
            if !handed_on {
                let absolute = self.absolute(source, &source.module_at(import.offset), &import.path);
                note(absolute.and_then(|absolute| self.file_of(&absolute, 0)), import.offset);
            }
        }
        for (offset, named) in named_paths(&source.code) {
            let segments: Vec<String> = named.split("::").map(str::to_owned).collect();
            if segments.len() > 1 {
                let absolute = self.absolute(source, &source.module_at(offset), &segments);
                note(absolute.and_then(|absolute| self.file_of(&absolute, 0)), offset);
            }
        }
        found
    }

    /// A path from the root of the crate; None: it leads out of the crate.
    fn absolute(&self, source: &Source, module: &[String], path: &[String]) -> Option<ModulePath> {
        let mut base = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while let Some(("super", after)) = rest.split_first().map(|(first, after)| (first.as_str(), after)) {
                    base.pop();
                    rest = after;
                }
            }
            first => {
                let child = [module, &[first.to_owned()]].concat();
                let import = source.uses.iter().find(|u| u.alias.as_deref() == Some(first) && u.path != *path);
                match import {
                    _ if self.modules.contains_key(&child) => {}
                    Some(import) if import.path.first().is_some_and(|f| f != first || import.path.len() > 1) => {
                        let start = self.absolute(source, &source.module_at(import.offset), &import.path)?;
                        return Some([&start, &path[1..]].concat());
                    }
                    _ => return None,
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The file that defines what a path from the root names.
    fn file_of(&self, path: &[String], depth: usize) -> Option<&'t str> {
        let length = (0..=path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]))?;
        let file = self.modules[&path[..length]];
        let source = &self.files[file];
        let Some(item) = path.get(length) else { return Some(file) };
        // Two names may lead to each other (a module and a function of one name): then the search ends here.
        match source.uses.iter().find(|u| u.alias.as_ref() == Some(item)) {
            Some(import) if depth < 8 => {
                let target = self.absolute(source, &source.module_at(import.offset), &import.path)?;
                self.file_of(&[&target, &path[length + 1..]].concat(), depth + 1)
            }
            _ => Some(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports_of(files: &[(&str, &str)], path: &str) -> Vec<String> {
        let tree = Tree::of(files);
        imports(&tree)[path].keys().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn use_declarations_are_written_out() {
        let source =
            Source::new("a.rs", "pub use x::{self, y::{Z as W, *}, v};\nuse w;\nfn f() -> impl T + use<'_> {}");
        let uses: Vec<_> =
            source.uses.iter().map(|u| (u.path.join("::"), u.alias.clone().unwrap_or("*".into()), u.public)).collect();
        let expected =
            [("x", "x", true), ("x::y::Z", "W", true), ("x::y", "*", true), ("x::v", "v", true), ("w", "w", false)];
        assert_eq!(uses, expected.map(|(path, alias, public)| (path.to_owned(), alias.to_owned(), public)));
    }

    #[test]
    fn imports_lead_to_the_file_that_defines_the_name() {
        let files = [
            ("c/src/lib.rs", "pub mod a;\npub mod b;\npub use a::deep::Thing;\n"),
            ("c/src/a/mod.rs", "pub mod deep;\npub use deep::Thing;\npub use std::fmt;\n"),
            ("c/src/a/deep.rs", "pub struct Thing;\nuse super::fmt;\n"),
            ("c/src/b.rs", "use crate::a::Thing;\nmod inner { use super::super::a::deep; fn f() { deep::g(); } }\n"),
            (
                "c/src/d.rs",
                "use crate::a;\nfn f() { a::deep::g(); crate::b::h(); }\n#[cfg(test)]\nmod tests { use crate::e; }\n",
            ),
        ];
        assert_eq!(imports_of(&files, "c/src/lib.rs"), [""; 0], "a name that is handed on is no import");
        assert_eq!(imports_of(&files, "c/src/a/deep.rs"), [""; 0], "the standard library through a parent's import");
        assert_eq!(imports_of(&files, "c/src/b.rs"), ["c/src/a/deep.rs"]);
        assert_eq!(imports_of(&files, "c/src/d.rs"), ["c/src/a/deep.rs", "c/src/a/mod.rs", "c/src/b.rs"]);
    }
}
