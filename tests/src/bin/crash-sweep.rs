//! The sweeps, long: `crash-sweep --points N [--seed S] [--stride K] [--what crashes|faults|stale] [--mutation NAME] [--first I]
//! [--failures N] [--size long-chains]`.
//!
//! Runs seed after seed from `S` on, until N cases have been survived or one has failed. A case is a crash at every K-th point, every
//! K-th failing call or full disk, or stale records behind the end of the log (`--what`). With a mutation (feature `mutations`) the
//! program succeeds if the planted mistake is found. `--first` begins with the I-th case of the first seed, to replay one; `--failures`
//! allows that many failures before the program stops; `--size long-chains` uses values of some megabytes.

use clearway_storage::mutation::{ALL, Mutation, plant};
use clearway_tests::crash::faults::Outcome;
use clearway_tests::crash::workload::Size;
use clearway_tests::crash::{faults, stale, sweep};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

struct Options {
    points: u64,
    seed: u64,
    stride: u64,
    first: Option<u64>,
    failures: u64,
    what: What,
    mutation: Mutation,
    size: Size,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Crashes,
    Faults,
    Stale,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        points: 1000,
        seed: 1,
        stride: 1,
        first: None,
        failures: 0,
        what: What::Crashes,
        mutation: Mutation::None,
        size: Size::default(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|err| format!("{arg} {value}: {err}"));
        match arg.as_str() {
            "--points" => options.points = number()?,
            "--seed" => options.seed = number()?,
            "--stride" => options.stride = number()?.max(1),
            "--failures" => options.failures = number()?,
            "--first" => options.first = Some(number()?),
            "--what" => {
                options.what = match value.as_str() {
                    "crashes" => What::Crashes,
                    "faults" => What::Faults,
                    "stale" => What::Stale,
                    _ => return Err(format!("{arg} {value}: crashes, faults or stale")),
                }
            }
            "--size" if value == "long-chains" => options.size = Size::LONG_CHAINS,
            "--size" => return Err(format!("{arg} {value}: long-chains")),
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
fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without a text")))
    })
}

/// What is to be done with one seed, by name.
type Case = (String, Box<dyn FnOnce() -> Result<Outcome, String>>);

/// How many cases ended how.
type Tally = BTreeMap<Outcome, u64>;

fn cases(options: &Options, seed: u64) -> Result<Vec<Case>, String> {
    let size = options.size;
    let case = |name: String, run: Box<dyn FnOnce() -> Result<Outcome, String>>| (name, run);
    Ok(match options.what {
        What::Crashes => {
            let points = sweep::points(seed, size)?;
            (1..=points)
                .map(|point| {
                    case(
                        format!("point {point}"),
                        Box::new(move || sweep::crash_at(seed, size, point).map(|()| Outcome::Stopped)),
                    )
                })
                .collect()
        }
        What::Faults => faults::disturbances(seed, size)?
            .into_iter()
            .map(|what| {
                let run = move || faults::disturb(seed, size, what);
                case(format!("{what:?}"), Box::new(run))
            })
            .collect(),
        What::Stale => {
            vec![case("stale records".into(), Box::new(move || stale::stale_records(seed).map(|()| Outcome::Stopped)))]
        }
    })
}

fn sweep_all(options: &Options, tally: &mut Tally) -> Result<u64, String> {
    let (mut done, mut failures) = (0, 0);
    for seed in options.seed.. {
        let mut all = Vec::new();
        guarded(|| cases(options, seed).map(|cases| all = cases))
            .map_err(|wrong| format!("seed {seed} undisturbed: {wrong}"))?;
        let count = all.len();
        let mut first = if count > 1 { seed % options.stride } else { 0 };
        if seed == options.seed {
            first = options.first.unwrap_or(first);
        }
        for (at, (name, run)) in all.into_iter().enumerate().skip(first as usize).step_by(options.stride as usize) {
            let ran = guarded(run);
            if let Ok(outcome) = &ran {
                *tally.entry(*outcome).or_default() += 1;
            }
            if let Err(wrong) = ran {
                let wrong = format!("seed {seed}, case {at} of {count}, {name} (after {done}): {wrong}");
                failures += 1;
                if failures > options.failures {
                    return Err(wrong);
                }
                eprintln!("{wrong}");
            }
            done += 1;
            if done == options.points {
                return Ok(done);
            }
        }
        if count > 1 {
            eprintln!("seed {seed}: {count}, {done} survived");
        }
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
    let mut tally = Tally::new();
    match (sweep_all(&options, &mut tally), options.mutation) {
        (Ok(done), Mutation::None) => {
            println!("{done} survived: {tally:?}");
            ExitCode::SUCCESS
        }
        (Err(wrong), Mutation::None) => {
            println!("FAILED: {wrong}");
            ExitCode::FAILURE
        }
        (Ok(done), mutation) => {
            println!("{mutation:?}: NOT FOUND by {done}");
            ExitCode::FAILURE
        }
        (Err(wrong), mutation) => {
            println!("{mutation:?}: found: {wrong}");
            ExitCode::SUCCESS
        }
    }
}
