//! Runs the programs of tests that cargo has built, several at once: cargo runs one after the other, and most of them wait or use one processor.

use crate::commands::{Report, TESTS_SECONDS_MAX, command};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Programs that run at once. Each has threads of its own; the largest have databases of some gigabytes in memory.
const AT_ONCE: usize = 2;

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    path: PathBuf,
    /// Where cargo would run it: beside its package's manifest.
    dir: PathBuf,
}

/// Builds the tests that these arguments of `cargo test` select, and runs them.
pub fn build_and_run(root: &Path, report: &mut Report, args: &[&str], beside: impl FnOnce() + Send) {
    let began = std::time::Instant::now();
    let args = [args, &["--no-run", "--message-format=json-render-diagnostics"]].concat();
    let programs = match command(root, &args, &[]).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => programs(&String::from_utf8_lossy(&output.stdout)),
        Ok(output) => return report.failed("build of tests", &format!("cargo {}: {}", args.join(" "), output.status)),
        Err(err) => return report.failed("build of tests", &format!("cargo: {err}")),
    };
    report.passed("build of tests");
    report.line(&format!("took {} s: build of tests", began.elapsed().as_secs()));
    let began = std::time::Instant::now();
    // The largest first, which take longest: the last one to end ends soon after the others.
    let mut left: Vec<(u64, Program)> = programs.into_iter().map(|p| (size(&p.path), p)).collect();
    left.sort_by_key(|(size, _)| *size);
    let (left, done) = (Mutex::new(left), Mutex::new(&mut *report));
    let libraries = libraries();
    std::thread::scope(|scope| {
        scope.spawn(beside);
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((_, program)) = left.lock().expect("no panic").pop() else { return };
                    let ran = program.run(&libraries);
                    done.lock().expect("no panic").add(ran);
                }
            });
        }
    });
    report.line(&format!("took {} s: tests", began.elapsed().as_secs()));
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

/// The programs of tests among what cargo says that it has built, an object of JSON in each line.
fn programs(said: &str) -> Vec<Program> {
    let mut out: Vec<Program> = Vec::new();
    for line in said.lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let text = |of: &serde_json::Value| of.as_str().map(PathBuf::from);
        let (Some(path), Some(manifest)) = (text(&message["executable"]), text(&message["manifest_path"])) else {
            continue;
        };
        let Some(dir) = manifest.parent().map(Path::to_owned) else { continue };
        if message["profile"]["test"] == true {
            out.push(Program { path, dir });
        }
    }
    out
}

/// Where the shared libraries of the compiler are, which the tests of procedural macros need.
fn libraries() -> String {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).stdin(Stdio::null()).output();
    let sysroot = sysroot.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{sysroot}/lib:{}", std::env::var("LD_LIBRARY_PATH").unwrap_or_default())
}

impl Program {
    /// Runs it; what it printed, and how its tests ended.
    fn run(&self, libraries: &str) -> Report {
        let (mut report, began) = (Report::held(), std::time::Instant::now());
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new("timeout");
        command.args(["-k", "10", &TESTS_SECONDS_MAX.to_string()]).arg(&self.path).current_dir(&self.dir);
        command.env("CARGO_MANIFEST_DIR", &self.dir).env("LD_LIBRARY_PATH", libraries);
        report.line(&format!("\n{place}: {name}"));
        // What it writes to both comes in the order in which it was written.
        let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
        match output {
            Ok(output) => {
                for line in String::from_utf8_lossy(&output.stdout).lines() {
                    report.test_line(line);
                }
                if !output.status.success() {
                    report.line(&String::from_utf8_lossy(&output.stderr));
                    if report.is_clean() {
                        report.failed(&format!("{place}: {name}"), &output.status.to_string());
                    }
                }
            }
            Err(err) => report.failed(&format!("{place}: {name}"), &err.to_string()),
        }
        report.line(&format!("took {} s: {place}: {name}", began.elapsed().as_secs()));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_told_from_others() {
        let said = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","profile":{"test":true},"executable":"/t/b-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/a/c/Cargo.toml","profile":{"test":false},"executable":"/t/c"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/a/d/Cargo.toml","profile":{"test":true},"executable":null}"#,
            "\nnothing of cargo\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(programs(said), [Program { path: "/t/b-1".into(), dir: "/a/b".into() }]);
    }
}
