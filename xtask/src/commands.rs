//! Runs cargo, counts the tests that it ran, and adds them up. Nothing can hang: each step has a time limit, and so has each test binary.

use crate::programs;
use crate::tested::DOCUMENTED;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// How long one run of cargo may take, in seconds: a cold build on two cores takes a third of it.
const STEP_SECONDS_MAX: u32 = 1200;
/// How long one program of tests may run, in seconds; none is meant to take more than a few minutes, on a machine of half the speed twice that.
pub const TESTS_SECONDS_MAX: u32 = 1200;

/// What passed and what failed: tests and checks alike.
#[derive(Default)]
pub struct Report {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    /// What is printed when the steps beside others have ended; none: everything is printed at once.
    held: Option<String>,
}

impl Report {
    /// The report of steps that run beside others.
    pub fn held() -> Self {
        Self { held: Some(String::new()), ..Self::default() }
    }

    /// Prints a line, or holds it.
    pub fn line(&mut self, line: &str) {
        match &mut self.held {
            Some(held) => *held += &format!("{line}\n"),
            None => println!("{line}"),
        }
    }

    /// A line that a program of tests has printed.
    pub fn test_line(&mut self, line: &str) {
        self.line(line);
        if let Some((passed, failed)) = test_result(line) {
            self.passed += passed;
            self.failed += failed;
        } else if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.failures.push(test.to_owned());
        }
    }

    /// Prints what was held, and adds its sums.
    pub fn add(&mut self, beside: Self) {
        self.line(beside.held.unwrap_or_default().trim_end());
        self.passed += beside.passed;
        self.failed += beside.failed;
        self.failures.extend(beside.failures);
    }

    /// A check passed.
    pub fn passed(&mut self, name: &str) {
        self.line(&format!("ok      {name}"));
        self.passed += 1;
    }

    /// A check failed.
    pub fn failed(&mut self, name: &str, why: &str) {
        self.line(&format!("FAILED  {name}\n{why}"));
        self.failed += 1;
        self.failures.push(name.to_owned());
    }

    /// Whether nothing failed.
    pub fn is_clean(&self) -> bool {
        self.failed == 0
    }

    /// The last words: what failed, and one line with the sums.
    pub fn print(&self) {
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
    }
}

/// The fast check: format, lint and tests of the packages that differ from main (or from the last
/// commit, on main itself).
pub fn check(root: &Path, report: &mut Report) {
    cargo(root, report, "format", &["fmt", "--all", "--", "--check", "-l"], &[]);
    let changed = match changed_packages(root) {
        Ok(changed) => changed,
        Err(err) => return report.failed("what changed", &err),
    };
    if changed.is_empty() {
        return println!("no package changed");
    }
    let mut packages: Vec<String> = Vec::new();
    for package in &changed {
        packages.extend(["-p".to_owned(), package.clone()]);
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let lints = ["--all-targets", "--keep-going", "--", "-D", "warnings"];
    cargo(root, report, "clippy", &[&["clippy"], &packages[..], &lints[..]].concat(), &[]);
    cargo_test(root, report, "tests", &[&["test", "--no-fail-fast"], &packages[..]].concat(), &[]);
}

/// Everything.
pub fn ci(root: &Path, report: &mut Report) {
    cargo(root, report, "format", &["fmt", "--all", "--", "--check", "-l"], &[]);
    // Once, tests and examples included: what is allowed in tests alone, such as clocks, their roots allow.
    let lints =
        ["clippy", "--workspace", "--features", LIBRARY, "--all-targets", "--keep-going", "--", "-D", "warnings"];
    cargo(root, report, "clippy", &lints, &[]);
    // Without the examples as programs of their own: clippy has seen them, and the tests of the library run them as modules.
    let all = [&["test"], &ALL[..], &["--tests"]].concat();
    let mut beside = Report::held();
    programs::build_and_run(root, report, &all, || built_apart(root, &mut beside));
    report.add(beside);
}

/// The library's optional parts are tested, too.
const LIBRARY: &str = "clearway/all";
/// All crates, but for one without tests: what it needs gives crates below other features than the command's build has.
const ALL: [&str; 5] = ["--workspace", "--exclude", "clearway-python", "--features", LIBRARY];

/// Tests that need a build of their own.
fn built_apart(root: &Path, report: &mut Report) {
    // With the command, so that the crates below have the features that they have in the other builds.
    let mut examples = vec!["test", "--doc", "--no-fail-fast", "--features", LIBRARY, "-p", "clearway-cli"];
    for name in DOCUMENTED {
        examples.extend(["-p", name]);
    }
    cargo_test(root, report, "examples in the documentation", &examples, &[]);
    // Of all crates, so that those below have the features that they have in the other builds, and are not built again.
    let mutations = [
        "--features",
        "clearway-tests/mutations,clearway-engine/mutations",
        "--test",
        "planted_mistakes",
        "--test",
        "planted",
    ];
    let planted = [&["test"], &ALL[..], &mutations[..]].concat();
    cargo_test(root, report, "planted mistakes are found", &planted, &[]);
    loom(root, report);
    interleave(root, report);
}

/// Pages and trees under shuttle's scheduler, and the mistakes that it has to find; a workspace of its own.
fn interleave(root: &Path, report: &mut Report) {
    if !root.join("storage/interleave/Cargo.toml").exists() {
        return;
    }
    let args = ["test", "--manifest-path", "storage/interleave/Cargo.toml"];
    cargo_test(root, report, "interleave", &args, &[("EXECUTIONS", "1000")]);
}

/// Tests under loom's scheduler, where there are any: built apart, since every dependency sees the flag.
fn loom(root: &Path, report: &mut Report) {
    if !root.join("base/tests/loom.rs").exists() {
        return;
    }
    let env = [("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom")];
    let args = ["test", "--release", "-p", "clearway-base", "--test", "loom"];
    cargo_test(root, report, "loom", &args, &env);
    // The proof that the tests can fail: one atomic ordering of the latch weakened.
    let planted = [&args[..], &["--features", "plant-weak-latch"]].concat();
    let name = "loom finds the planted weak ordering";
    match command(root, &planted, &env).stderr(Stdio::null()).output() {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("test result: FAILED") => {
            report.passed(name);
        }
        Ok(output) => {
            report.failed(name, &format!("{}\nno test failed", String::from_utf8_lossy(&output.stdout)));
        }
        Err(err) => report.failed(name, &format!("cargo: {err}")),
    }
}

/// The packages with a file that differs. A package stands in the directory of its layer.
fn changed_packages(root: &Path) -> Result<BTreeSet<String>, String> {
    let base = git(root, &["merge-base", "HEAD", "main"]).unwrap_or_else(|_| "HEAD".to_owned());
    let differing = git(root, &["diff", "--name-only", base.trim()])?;
    let untracked = git(root, &["ls-files", "--others", "--exclude-standard"])?;
    let mut packages = BTreeSet::new();
    for path in differing.lines().chain(untracked.lines()) {
        let Some((dir, _)) = path.split_once('/') else {
            continue;
        };
        let manifest = std::fs::read_to_string(root.join(dir).join("Cargo.toml")).unwrap_or_default();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        packages.extend(name.map(str::to_owned));
    }
    Ok(packages)
}

fn git(root: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("git").current_dir(root).args(args).output();
    let output = output.map_err(|err| format!("git: {err}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Cargo under `timeout`, which ends the whole process group.
pub fn command(root: &Path, args: &[&str], env: &[(&str, &str)]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new("timeout");
    command.args(["-k", "10", &STEP_SECONDS_MAX.to_string()]).arg(cargo).args(args);
    if args.first() == Some(&"test") {
        let runner = format!("target.'cfg(all())'.runner = ['timeout', '-k', '10', '{TESTS_SECONDS_MAX}']");
        command.args(["--config", &runner]);
    }
    command.current_dir(root).envs(env.iter().copied()).stdin(Stdio::null());
    command
}

fn cargo(root: &Path, report: &mut Report, name: &str, args: &[&str], env: &[(&str, &str)]) {
    let began = std::time::Instant::now();
    match command(root, args, env).status() {
        Ok(status) if status.success() => report.passed(name),
        Ok(status) => report.failed(name, &format!("cargo {}: {status}", args.join(" "))),
        Err(err) => report.failed(name, &format!("cargo: {err}")),
    }
    report.line(&format!("took {} s: {name}", began.elapsed().as_secs()));
}

/// Runs tests, shows their output, and counts each.
fn cargo_test(root: &Path, report: &mut Report, name: &str, args: &[&str], env: &[(&str, &str)]) {
    let began = std::time::Instant::now();
    let mut child = match command(root, args, env).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(err) => return report.failed(name, &format!("cargo: {err}")),
    };
    let failed_before = report.failed;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            report.test_line(&line);
        }
    }
    match child.wait() {
        Ok(status) if status.success() => {}
        // A test that failed has been counted; anything else (it does not compile, it aborted) has not.
        Ok(_) if report.failed > failed_before => {}
        Ok(status) => report.failed(name, &format!("cargo {}: {status}", args.join(" "))),
        Err(err) => report.failed(name, &format!("cargo: {err}")),
    }
    report.line(&format!("took {} s: {name}", began.elapsed().as_secs()));
}

/// The numbers of a line `test result: ok. 3 passed; 0 failed; ...`.
fn test_result(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |unit: &str| {
        let before = rest.split_once(unit)?.0.trim_end();
        before.rsplit(' ').next()?.parse().ok()
    };
    Some((number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_test_run_are_read() {
        let line = "test result: FAILED. 39 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(test_result(line), Some((39, 2)));
        assert_eq!(test_result("test a::b ... ok"), None);
    }
}
