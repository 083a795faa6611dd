//! Which crate may depend on which, and in which files some functions may be called.

use crate::Problem;
use crate::tree::{Tree, blank, is_word, line_of, without_tests, words};

/// The layers from bottom to top: a crate may depend on those before it.
pub const LAYERS: [(&str, &str); 16] = [
    ("base", "clearway-base"),
    ("storage", "clearway-storage"),
    ("backup", "clearway-backup"),
    ("txn", "clearway-txn"),
    ("engine", "clearway-engine"),
    ("sql/syntax", "clearway-syntax"),
    ("sql/values", "clearway-values"),
    ("sql/context", "clearway-context"),
    ("sql/planner", "clearway-planner"),
    ("sql/exec", "clearway-exec"),
    ("sql/views", "clearway-views"),
    ("sql/ddl", "clearway-ddl"),
    ("sql", "clearway-sql"),
    ("server", "clearway-server"),
    ("embedded", "clearway"),
    ("cli", "clearway-cli"),
];

/// Crates of tools: what they may depend on.
const TOOLS: [(&str, &str, &[&str]); 9] = [
    ("embedded/c", "clearway-c", &["clearway-base", "clearway"]),
    // The library for Python; it sees what every program sees.
    ("embedded/python", "clearway-python", &["clearway-base", "clearway"]),
    // Derive macros: a compiler plug-in.
    ("embedded/derive", "clearway-derive", &[]),
    // The lab reads every server through its SQL views (and starts Clearway as a process).
    ("bench/lab", "clearway-lab", &["clearway-base", "clearway-mysql"]),
    // A client of any server, ours included: it knows only what SQL shows.
    ("console", "clearway-console", &["clearway-base", "clearway-mysql"]),
    // A client of another server: it knows nothing of ours.
    ("cli/mysql", "clearway-mysql", &[]),
    // The program's allocator, which no library may bring with it.
    ("cli/allocator", "clearway-allocator", &["clearway-base"]),
    ("xtask", "xtask", &[]),
    (
        "tests",
        "clearway-tests",
        &[
            "clearway-base",
            "clearway-storage",
            "clearway-backup",
            "clearway-txn",
            "clearway-engine",
            "clearway-syntax",
            "clearway-values",
            "clearway-context",
            "clearway-planner",
            "clearway-exec",
            "clearway-views",
            "clearway-ddl",
            "clearway-sql",
            "clearway-server",
            "clearway",
            "clearway-cli",
            "clearway-lab",
            "clearway-mysql",
            "clearway-console",
        ],
    ),
];

/// The rules on what one crate may depend on.
fn allowed(dir: &str) -> Option<Vec<&'static str>> {
    if let Some(level) = LAYERS.iter().position(|(layer, _)| *layer == dir) {
        // The command line watches servers, those of others too.
        let tools = match dir {
            "cli" => &["clearway-allocator", "clearway-mysql", "clearway-console"][..],
            "embedded" => &["clearway-derive"],
            _ => &[],
        };
        return Some(LAYERS[..level].iter().map(|(_, name)| *name).chain(tools.iter().copied()).collect());
    }
    let tool = TOOLS.iter().find(|(tool, _, _)| *tool == dir);
    tool.map(|(_, _, allowed)| allowed.to_vec())
}

/// Crates depend only downward. Development and build dependencies count too: a test that needs an upper layer belongs to `tests/`.
pub fn dependencies(tree: &Tree) -> Vec<Problem> {
    let ours: Vec<&str> = LAYERS.iter().map(|(_, name)| *name).chain(TOOLS.map(|tool| tool.1)).collect();
    let mut problems = Vec::new();
    for (dir, packages) in &tree.dependencies {
        let path = format!("{dir}/Cargo.toml");
        let Some(allowed) = allowed(dir) else {
            problems.push(Problem::new(path, "a crate that the layer check does not know (xtask/src/layers.rs)"));
            continue;
        };
        for name in packages.iter().filter(|name| ours.contains(&name.as_str()) && !allowed.contains(&name.as_str())) {
            let what = format!("{dir} must not depend on {name}: dependencies run downward only");
            problems.push(Problem::new(&path, what));
        }
    }
    problems
}

/// Something that only some places may name.
struct Rule {
    /// Paths or last names, e.g. `std::fs` or `File::open`.
    patterns: &'static [&'static str],
    /// Prefixes of paths where it is allowed.
    places: &'static [&'static str],
    why: &'static str,
}

const RULES: [Rule; 3] = [
    // The kernel's own figures (/proc) are no files of the database.
    Rule {
        patterns: &[
            "std::fs",
            "File::open",
            "File::create",
            "File::options",
            "OpenOptions",
            "rustix::fs",
            "tokio::fs",
            "libc::open",
            "memmap",
            "memmap2",
        ],
        places: &["base/src/vfs/", "base/src/waits/kernel.rs", "xtask/", "bench/lab/"],
        why: "only base/src/vfs touches files: simulation and the wait events depend on it",
    },
    Rule {
        patterns: &[
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "tokio::net",
            "rustix::net",
            "socket2",
        ],
        places: &["server/", "embedded/src/wire.rs", "bench/lab/", "console/", "cli/", "xtask/"],
        why: "only the server (and the clients in cli, console, lab and the library) opens sockets",
    },
    Rule {
        patterns: &[
            "std::time::Instant",
            "std::time::SystemTime",
            "Instant::now",
            "SystemTime",
            "UNIX_EPOCH",
            "thread::sleep",
            "thread::spawn",
            "thread::Builder",
            "thread::scope",
            "tokio::time",
            "std::sync::Mutex",
            "std::sync::Condvar",
            "std::sync::RwLock",
            "std::sync::Barrier",
            "std::sync::mpsc",
            "parking_lot",
        ],
        places: &["base/", "xtask/", "bench/lab/"],
        why: "clocks, sleeps, threads and mutexes come from base (waits, sync): else a wait escapes the books",
    },
];

/// Files, sockets, clocks, threads and mutexes only where they belong. Tests are free.
pub fn places(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let test_files = tree.test_files();
    for (path, text) in tree.rust().filter(|(path, _)| !test_files.contains(path)) {
        let code = without_tests(&blank(text));
        let paths = named_paths(&code);
        for rule in &RULES {
            if rule.places.iter().any(|place| path.starts_with(place)) {
                continue;
            }
            for (offset, named) in &paths {
                if rule.patterns.iter().any(|pattern| names(named, pattern)) {
                    let place = format!("{path}:{}", line_of(&code, *offset));
                    problems.push(Problem::new(place, format!("{named}: {}", rule.why)));
                }
            }
        }
    }
    problems.dedup();
    problems
}

/// Whether a path as written is, lies under, or ends in what a pattern says.
fn names(path: &str, pattern: &str) -> bool {
    let segments: Vec<&str> = path.split("::").collect();
    let wanted: Vec<&str> = pattern.split("::").collect();
    segments.windows(wanted.len()).any(|window| window == wanted)
}

/// Every path that the code writes, with `use a::{b, c::d}` written out as `a::b` and `a::c::d`.
pub fn named_paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut outer: Vec<String> = Vec::new();
    let mut path = String::new();
    let mut start = 0;
    let mut chars = code.char_indices().peekable();
    let mut flush = |path: &mut String, start: usize| {
        if !path.is_empty() {
            found.push((start, std::mem::take(path)));
        }
    };
    let prefix = |outer: &[String]| outer.last().cloned().unwrap_or_default();
    while let Some((at, c)) = chars.next() {
        match c {
            c if is_word(c) => {
                if path.is_empty() {
                    start = at;
                    path = prefix(&outer);
                }
                path.push(c);
            }
            ':' if chars.peek().is_some_and(|next| next.1 == ':') => {
                chars.next();
                path.push_str("::");
            }
            '{' => {
                // A group of a use declaration follows `::`; any other brace ends the path.
                let group = path.ends_with("::");
                outer.push(if group { std::mem::take(&mut path) } else { String::new() });
                flush(&mut path, start);
            }
            '}' => {
                flush(&mut path, start);
                outer.pop();
            }
            _ => flush(&mut path, start),
        }
    }
    flush(&mut path, start);
    found
}

/// `unsafe` only in the files that STYLE.md lists under its heading "Unsafe".
pub fn unsafe_files(tree: &Tree) -> Vec<Problem> {
    let listed: Vec<&str> = tree
        .text("STYLE.md")
        .lines()
        .skip_while(|line| !line.starts_with("## Unsafe"))
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("- `")?.split('`').next())
        .collect();
    let mut problems = Vec::new();
    let mut used = Vec::new();
    for (path, text) in tree.rust() {
        let code = blank(text);
        let Some((offset, _)) = words(&code).find(|(_, word)| *word == "unsafe") else {
            continue;
        };
        if listed.contains(&path) {
            used.push(path);
        } else {
            let place = format!("{path}:{}", line_of(&code, offset));
            problems.push(Problem::new(place, "unsafe in a file that STYLE.md does not name"));
        }
    }
    for path in listed.iter().filter(|path| !used.contains(path)) {
        problems.push(Problem::new("STYLE.md", format!("{path} is listed, but has no unsafe code")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_groups_are_written_out() {
        let paths = named_paths("use std::{fs::{self, File}, sync::{Arc, Mutex}};\nfn f() { Instant::now() }");
        let paths: Vec<_> = paths.into_iter().map(|found| found.1).collect();
        for expected in ["std::fs::File", "std::sync::Mutex", "std::sync::Arc", "Instant::now"] {
            assert!(paths.iter().any(|path| path == expected), "{expected} in {paths:?}");
        }
    }

    #[test]
    fn a_pattern_matches_whole_segments() {
        assert!(names("std::fs::File", "std::fs"));
        assert!(names("x::SystemTime::now", "SystemTime"));
        assert!(!names("std::fsync", "std::fs"));
        assert!(!names("MyInstant::now", "Instant::now"));
    }
}
