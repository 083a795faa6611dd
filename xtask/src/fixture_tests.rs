//! Tests of the checks: each check fails on a tree that breaks its rule, and on no other.

use super::*;

/// A tree in which every rule is kept.
fn sound() -> Tree {
    let mut tree = Tree::default();
    let mut add = |path: &str, text: &str| tree.files.insert(path.to_owned(), text.to_owned());
    add("base/src/vfs/real.rs", "use std::fs::File;\nfn open() { File::open(\"x\"); }\n");
    add("base/src/sync/latch.rs", "use std::sync::Mutex;\nfn f() { unsafe { g() } }\n");
    add(
        "storage/src/wal.rs",
        "//! - WAL-1: the log ends.\nfn f() {\n    // WAL-1: std::fs is only named\n    in_wait(WaitEvent::WalWrite);\n}\n\
         #[cfg(test)]\nmod tests { use std::fs; fn t() { std::thread::sleep(x); } }\n",
    );
    add("storage/tests/crash.rs", "use std::time::Instant;\n");
    add("storage/src/lib.rs", "#[cfg(test)]\nmod testing;\n");
    add("storage/src/testing.rs", "use std::sync::Mutex;\n");
    add("base/wait_events.txt", "# list\nIO WALWrite Waiting.\n");
    add("STYLE.md", "## Unsafe\n- `base/src/sync/latch.rs`: the latch.\n");
    for (dir, package) in [("base", "rustix"), ("storage", "clearway-base"), ("txn", "clearway-storage")] {
        tree.dependencies.insert(dir.to_owned(), vec![package.to_owned()]);
    }
    tree
}

fn problems(tree: &Tree) -> Vec<Problem> {
    STATIC_CHECKS.iter().flat_map(|(_, check)| check(tree)).collect()
}

/// The one problem of the sound tree with this file added.
fn problem_with(path: &str, text: &str) -> Problem {
    let mut tree = sound();
    tree.files.insert(path.to_owned(), text.to_owned());
    let mut problems = problems(&tree);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

#[test]
fn a_sound_tree_has_no_problems() {
    assert_eq!(problems(&sound()), []);
}

#[test]
fn an_upward_dependency_is_found() {
    let mut tree = sound();
    tree.dependencies.insert("storage".to_owned(), vec!["clearway-base".to_owned(), "clearway-txn".to_owned()]);
    let problems = problems(&tree);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].place, "storage/Cargo.toml");
    assert!(problems[0].what.contains("must not depend on clearway-txn"), "{problems:?}");
}

#[test]
fn an_unknown_crate_is_found() {
    let mut tree = sound();
    tree.dependencies.insert("extras".to_owned(), Vec::new());
    let problems = problems(&tree);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].what.contains("does not know"), "{problems:?}");
}

#[test]
fn files_sockets_clocks_and_mutexes_in_the_wrong_place_are_found() {
    let cases = [
        ("storage/src/a.rs", "use std::fs;\n", "only base/src/vfs touches files"),
        ("base/src/waits/a.rs", "fn f() { std::fs::read(\"/proc\"); }\n", "only base/src/vfs touches files"),
        ("engine/src/a.rs", "use std::net::{IpAddr, TcpStream};\n", "opens sockets"),
        ("txn/src/a.rs", "use std::sync::{Arc, Mutex};\n", "a wait escapes the books"),
        ("sql/src/a.rs", "fn f() { let t = std::time::Instant::now(); }\n", "a wait escapes the books"),
        ("server/src/a.rs", "fn f() { std::thread::spawn(g); }\n", "a wait escapes the books"),
    ];
    for (path, text, why) in cases {
        let problem = problem_with(path, text);
        assert_eq!(problem.place, format!("{path}:1"));
        assert!(problem.what.contains(why), "{problem:?}");
    }
}

#[test]
fn unsafe_in_an_unlisted_file_is_found() {
    let problem = problem_with("storage/src/a.rs", "#![deny(unsafe_op_in_unsafe_fn)]\nfn f() { unsafe { g() } }\n");
    assert_eq!(problem.place, "storage/src/a.rs:2");
}

#[test]
fn long_files_and_functions_are_found_unless_excepted() {
    let long_function = format!("fn f() {{\n{}}}\n", "    x();\n".repeat(80));
    let problem = problem_with("storage/src/a.rs", &long_function);
    assert_eq!(problem.place, "storage/src/a.rs::f");
    let problem = problem_with("storage/src/a.rs", &"// x\n".repeat(601));
    assert_eq!(problem.place, "storage/src/a.rs");
    let mut tree = sound();
    tree.files.insert("storage/src/a.rs".to_owned(), long_function);
    let excepted = "[function-lines]\n\"storage/src/a.rs::f\" = 82\n";
    tree.files.insert("xtask/ratchet.toml".to_owned(), excepted.to_owned());
    assert_eq!(problems(&tree), []);
    let lower = excepted.replace("82", "81");
    tree.files.insert("xtask/ratchet.toml".to_owned(), lower);
    assert_eq!(problems(&tree).len(), 1, "a ratchet may only shrink");
}

#[test]
fn one_crate_more_is_found() {
    let problem = problem_with("Cargo.lock", "[[package]]\nname = \"left-pad\"\nsource = \"registry\"\n");
    assert!(problem.what.starts_with("crates is 1"), "{problem:?}");
}

#[test]
fn an_unused_wait_event_is_found() {
    let problem = problem_with("base/wait_events.txt", "IO WALWrite Waiting.\nLock tuple Waiting.\n");
    assert_eq!(problem.place, "Lock tuple");
}

#[test]
fn invariants_without_citation_or_definition_are_found() {
    let problem = problem_with("storage/src/a.rs", "//! - BUF-1: pinned.\n//! BUF-1 matters.\n");
    assert!(problem.what.contains("BUF-1 is cited by no"), "{problem:?}");
    let problem = problem_with("storage/src/a.rs", "// WAL-9 says so\n");
    assert!(problem.what.contains("WAL-9 is not defined"), "{problem:?}");
    let problem = problem_with("storage/src/a.rs", "//! - WAL-1: again.\n");
    assert!(problem.what.contains("is defined at"), "{problem:?}");
}

/// The problem of the sound tree with these files added.
fn problem_with_files(files: &[(&str, &str)]) -> Vec<Problem> {
    let mut tree = sound();
    tree.files.extend(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    problems(&tree)
}

#[test]
fn a_circle_between_folders_is_found_and_printed() {
    let files = [
        ("txn/src/plan/node.rs", "use crate::session::Session;\n"),
        ("txn/src/session/mod.rs", "pub mod core;\npub use self::core::Session;\n"),
        ("txn/src/session/core.rs", "pub struct Session;\nfn f() { crate::run::go(); }\n"),
        ("txn/src/run.rs", "use crate::plan::node as plan;\n"),
    ];
    let problems = problem_with_files(&files);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].place, "txn/src/plan/node.rs:1");
    let printed = "txn/src/plan/node.rs -> txn/src/session/core.rs -> txn/src/run.rs -> txn/src/plan/node.rs";
    assert!(problems[0].what.ends_with(printed), "{problems:?}");
    // A test may use what stands above it.
    let test_only = ("txn/src/run.rs", "#[cfg(test)]\nmod tests { use crate::plan::node; }\n");
    assert_eq!(problem_with_files(&[files[0], files[1], files[2], test_only]), []);
}

#[test]
fn a_circle_within_a_folder_is_found_unless_listed_with_a_reason() {
    let circle = [("txn/src/rows/a.rs", "use super::b::B;\n"), ("txn/src/rows/b.rs", "use super::a::A;\n")];
    let list = |text| [circle[0], circle[1], ("xtask/circles.toml", text)];
    let problems = problem_with_files(&circle);
    assert!(problems.len() == 1 && problems[0].what.contains("does not list"), "{problems:?}");
    assert_eq!(problem_with_files(&list("\"txn/src/rows\" = \"rows hold rows\"\n")), []);
    assert_eq!(problem_with_files(&list("\"txn/src/rows\" = \"\"\n")).len(), 1, "a reason is asked for");
    let needless = problem_with_files(&[("xtask/circles.toml", "\"txn/src/rows\" = \"rows hold rows\"\n")]);
    assert!(needless.len() == 1 && needless[0].what.contains("has no circle"), "{needless:?}");
}
