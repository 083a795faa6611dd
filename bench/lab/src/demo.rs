//! The third part of `clearway demo`: more and more clients change one row over TCP, in Clearway and in PostgreSQL if that is installed.

use std::path::Path;

use crate::outcome::Outcome;
use crate::scenarios;
use crate::session::{Request, run as run_session};

/// Clients, and what PostgreSQL 15 did with them on two cores, durable: docs/measured/lab-hot-row.md.
const POSTGRES_RECORDED: [(u32, f64); 4] = [(1, 5_000.0), (10, 4_900.0), (100, 2_800.0), (1_000, 590.0)];
/// Columns of the longest bar.
const BAR_COLUMNS: f64 = 50.0;
/// Seconds of each run.
const STEP: f64 = 1.2;

/// Updates of one row by 1, 10, 100 and 1,000 clients, each durable before its reply.
///
/// # Errors
/// No server starts, or Clearway's row does not hold what clients were told.
pub fn run(scratch: &Path, clearway: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Box<dyn std::error::Error>> {
    say("");
    say("3. One hot row, durable, over TCP: UPDATE t1 SET b = b + 1 WHERE a = 1");
    let clients = POSTGRES_RECORDED.map(|(clients, _)| clients);
    let request = Request {
        against: vec!["clearway".to_owned(), "postgres".to_owned()],
        seconds: STEP,
        points: clients.to_vec(),
        repeats: 1,
        clearway: clearway.to_owned(),
        this: std::env::current_exe()?,
        locks: Vec::new(),
        accept_unequal: false,
        scratch: scratch.to_owned(),
        command: "clearway demo".to_owned(),
    };
    // A line of its own for every step would bury the bars.
    let outcome = run_session(scenarios::find("hot-row")?, &request, &mut |_| {})?;
    let rate = |server: &str, clients| outcome.cell(server, "", clients).map(|cell| cell.value);
    let measured = clients.iter().any(|&clients| rate("postgres", clients).is_some());
    let bars: Vec<(u32, f64, f64)> = POSTGRES_RECORDED
        .into_iter()
        .map(|(clients, recorded)| {
            let theirs = if measured { rate("postgres", clients).unwrap_or(0.0) } else { recorded };
            (clients, rate("clearway", clients).unwrap_or(0.0), theirs)
        })
        .collect();
    let widest = bars.iter().map(|(_, ours, theirs)| ours.max(*theirs)).fold(1.0, f64::max);
    let bar = |sign: &str, rate: f64| sign.repeat((rate * BAR_COLUMNS / widest).round().max(1.0) as usize);
    for (clients, ours, theirs) in bars {
        say(&format!("   {clients:>5} clients {ours:>8.0}/s {}", bar("█", ours)));
        say(&format!("      PostgreSQL {theirs:>8.0}/s {}", bar("▒", theirs)));
    }
    say(&whose(&outcome, measured));
    let failures: Vec<String> = outcome.failures().into_iter().filter(|line| line.starts_with("clearway")).collect();
    if failures.is_empty() {
        say("   After every run the row held exactly what the clients were told.");
        Ok(())
    } else {
        Err(failures.join("; ").into())
    }
}

/// Where the second bar comes from.
fn whose(outcome: &Outcome, measured: bool) -> String {
    if measured {
        return "   Both were run just now, in turn, on this machine, with their commits synced.".to_owned();
    }
    let why = outcome.absent.first().map_or("it did not answer", String::as_str);
    format!("   PostgreSQL's bars are RECORDED, on two cores (docs/measured/lab-hot-row.md), not run here: {why}")
}
