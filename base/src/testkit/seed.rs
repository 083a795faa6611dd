//! Many seeds per random test, and the one command that replays a failure.
//!
//! # Structure
//! A random test wraps its body in [`for_each_seed!`](crate::for_each_seed). By default it runs seeds
//! `1..=count`, so that a run in CI is reproducible. The environment changes that:
//! - `CLEARWAY_SEED=17` runs that seed alone: the replay of a failure;
//! - `CLEARWAY_SEEDS=10000` runs that many instead of `count`: a long search;
//! - `CLEARWAY_SEED_START=5000000` starts there instead of at 1: a search in new ground.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Where a random test stands; filled in by [`for_each_seed!`](crate::for_each_seed).
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The package of the test.
    pub package: &'static str,
}

/// Runs `for_each_seed!(count, |seed| { ... })`: the body once per seed; if it panics, prints the
/// command that replays that seed.
#[macro_export]
macro_rules! for_each_seed {
    ($count:expr, $body:expr) => {
        $crate::testkit::for_each_seed($crate::testkit::Caller { package: env!("CARGO_PKG_NAME") }, $count, $body)
    };
}

fn from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(err) => panic!("{name}={text}: {err}"),
    }
}

/// The function under the macro.
pub fn for_each_seed(caller: Caller, count: u64, mut body: impl FnMut(u64)) {
    let seeds = match from_env("CLEARWAY_SEED") {
        Some(seed) => seed..=seed,
        None => {
            let start = from_env("CLEARWAY_SEED_START").unwrap_or(1);
            start..=start + from_env("CLEARWAY_SEEDS").unwrap_or(count).max(1) - 1
        }
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(seed))) {
            eprintln!("seed {seed} failed; replay: {}", replay_command(caller, seed));
            resume_unwind(panic);
        }
    }
}

/// The command that runs this thread's test with this seed; libtest names the thread after the test.
fn replay_command(caller: Caller, seed: u64) -> String {
    let thread = std::thread::current();
    let package = caller.package;
    match thread.name() {
        Some(test) if test != "main" => {
            format!("CLEARWAY_SEED={seed} cargo test -p {package} {test} -- --exact --include-ignored --nocapture")
        }
        _ => format!("CLEARWAY_SEED={seed} cargo test -p {package}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_seed_is_the_last_one_run() {
        let mut ran = Vec::new();
        let caller = Caller { package: "clearway-base" };
        let result = catch_unwind(AssertUnwindSafe(|| {
            for_each_seed(caller, 10, |seed| {
                ran.push(seed);
                // resume_unwind and not panic!, to keep the test's output quiet.
                if seed == 4 {
                    resume_unwind(Box::new("planted"));
                }
            });
        }));
        if std::env::var_os("CLEARWAY_SEED").is_none() {
            assert!(result.is_err());
            assert_eq!(ran, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_replay_command_names_package_test_and_seed() {
        let command = replay_command(Caller { package: "clearway-base" }, 17);
        assert_eq!(
            command,
            "CLEARWAY_SEED=17 cargo test -p clearway-base \
             testkit::seed::tests::the_replay_command_names_package_test_and_seed \
             -- --exact --include-ignored --nocapture"
        );
    }
}
