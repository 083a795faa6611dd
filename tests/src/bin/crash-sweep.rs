//! The crash sweep, long: `crash-sweep --points N [--seed S] [--stride K] [--mutation NAME]`.
//!
//! Runs seed after seed from `S` on, crashing at every K-th point of each, until N crashes were survived or one was
//! not. With a mutation (feature `mutations`) it ends well when the planted mistake is found.

use clearway_storage::mutation::{ALL, Mutation, plant};
use clearway_tests::crash::sweep;
use clearway_tests::crash::workload::Size;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

struct Options {
    points: u64,
    seed: u64,
    stride: u64,
    mutation: Mutation,
}

fn options() -> Result<Options, String> {
    let mut options = Options { points: 1000, seed: 1, stride: 1, mutation: Mutation::None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|err| format!("{arg} {value}: {err}"));
        match arg.as_str() {
            "--points" => options.points = number()?,
            "--seed" => options.seed = number()?,
            "--stride" => options.stride = number()?.max(1),
            "--mutation" => {
                let named = ALL.iter().find(|mutation| format!("{mutation:?}") == value);
                options.mutation = *named.ok_or(format!("no mutation {value}; there are {ALL:?}"))?;
            }
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(options)
}

/// A panic is a finding like any other.
fn guarded(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without a text")))
    })
}

fn sweep_all(options: &Options) -> Result<u64, String> {
    let size = Size::default();
    let mut done = 0;
    for seed in options.seed.. {
        let mut points = 0;
        guarded(|| sweep::points(seed, size).map(|counted| points = counted))
            .map_err(|wrong| format!("seed {seed} without a crash: {wrong}"))?;
        for point in (1 + seed % options.stride..=points).step_by(options.stride as usize) {
            guarded(|| sweep::crash_at(seed, size, point))
                .map_err(|wrong| format!("seed {seed}, point {point} of {points} (after {done}): {wrong}"))?;
            done += 1;
            if done == options.points {
                return Ok(done);
            }
        }
        eprintln!("seed {seed}: {points} points, {done} crashes survived");
    }
    Ok(done)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("crash-sweep: {wrong}");
            return ExitCode::from(2);
        }
    };
    if options.mutation != Mutation::None {
        plant(options.mutation);
    }
    match (sweep_all(&options), options.mutation) {
        (Ok(done), Mutation::None) => {
            println!("{done} crashes survived");
            ExitCode::SUCCESS
        }
        (Err(wrong), Mutation::None) => {
            println!("FAILED: {wrong}");
            ExitCode::FAILURE
        }
        (Ok(done), mutation) => {
            println!("{mutation:?}: NOT FOUND by {done} crashes");
            ExitCode::FAILURE
        }
        (Err(wrong), mutation) => {
            println!("{mutation:?}: found: {wrong}");
            ExitCode::SUCCESS
        }
    }
}
