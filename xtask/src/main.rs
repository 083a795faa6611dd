//! Checks of the repository: `cargo xtask check` (about a minute, what changed), `cargo xtask ci` (everything), `cargo xtask static` (no
//! compiler), `cargo xtask ratchet` (lowers the ratchets), `cargo xtask deb` (a Debian package).
//!
//! # Structure
//! ```text
//!   tree      the files of the repository, and Rust text without comments, strings and tests
//!   layers    crates depend only downward; files, sockets, clocks and unsafe only where they belong
//!   imports   which file of a crate imports which
//!   circles   no circle of imports between folders
//!   size      length of files and functions, number of crates        ─┐
//!   names     wait events never used, invariants never cited         ─┴─ ratchet: may only shrink
//!   comments  plain words in comments                             ─── ratchet, too
//!   commands  cargo, and how many tests it ran
//!   programs  the programs of tests, several at once
//!   deb       the Debian package
//!   documents plain words in headers, tests that the decisions name, the catalog's fields
//!   examples  of every public item of the library
//!   tested    tests that cargo would pass over
//! ```
//!
//! # Not here
//! Opinions about style that rustfmt and clippy already have.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a tool, no part of the database")]

mod circles;
mod commands;
mod comments;
mod deb;
mod documents;
mod examples;
mod imports;
mod layers;
mod names;
mod programs;
mod ratchet;
mod size;
mod tested;
mod tree;

#[cfg(test)]
mod fixture_tests;

use commands::Report;
use std::path::Path;
use std::process::ExitCode;
use tree::Tree;

/// One thing that is wrong: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// `path` or `path:line`.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl Problem {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Problem { place: place.into(), what: what.into() }
    }
}

/// A check that needs no compiler.
type StaticCheck = fn(&Tree) -> Vec<Problem>;

const STATIC_CHECKS: [(&str, StaticCheck); 13] = [
    ("layers: dependencies run downward", layers::dependencies),
    ("circles: no imports both ways between folders", circles::check),
    ("layers: files, sockets, clocks, threads", layers::places),
    ("unsafe only where STYLE.md names the file", layers::unsafe_files),
    ("size of files and functions, number of crates", size::check),
    ("wait events defined and used", names::wait_events),
    ("invariants defined and cited", names::invariants),
    ("plain words in headers and the design", documents::words),
    ("plain words in comments", comments::check),
    ("decisions name tests that exist", documents::decisions),
    ("every field of the catalog is described", documents::catalog),
    ("every public item of the library has an example", examples::check),
    ("no test is left out", tested::check),
];

fn main() -> ExitCode {
    // `cargo run` starts in the caller's directory; everything here is relative to the root.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let command = std::env::args().nth(1).unwrap_or_default();
    let mut report = Report::default();
    match command.as_str() {
        "check" => {
            static_checks(root, &mut report);
            commands::check(root, &mut report);
        }
        "ci" => {
            static_checks(root, &mut report);
            commands::ci(root, &mut report);
        }
        "static" => static_checks(root, &mut report),
        "ratchet" => match ratchet::lower(root) {
            Ok(count) => println!("{count} entries lowered or removed"),
            Err(err) => report.failed("ratchet", &err),
        },
        "deb" => match deb::build(root, std::env::args().skip(2)) {
            Ok(path) => println!("{}", path.display()),
            Err(err) => report.failed("deb", &err),
        },
        _ => {
            eprintln!("usage: cargo xtask check | ci | static | ratchet | deb [--binary FILE] [--fast]");
            return ExitCode::from(2);
        }
    }
    report.print();
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn static_checks(root: &Path, report: &mut Report) {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(err) => return report.failed("reading the repository", &err.to_string()),
    };
    for (name, check) in STATIC_CHECKS {
        let problems = check(&tree);
        if problems.is_empty() {
            report.passed(name);
        } else {
            let lines: Vec<_> = problems.iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect();
            report.failed(name, &lines.join("\n"));
        }
    }
}
