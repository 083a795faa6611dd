//! The figures of a run, and the tables that are printed from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::contenders::is_durable;
use super::{COMMITTERS, READERS, Run, Timed, WORKERS};

/// What one step of one contender gave, a value a round.
#[derive(Default)]
struct Cell {
    rates: Vec<f64>,
    p99_ms: Vec<f64>,
    longest_ms: Vec<f64>,
}

/// All figures of a run.
#[derive(Default)]
pub struct Figures {
    cells: BTreeMap<(&'static str, &'static str, u64), Cell>,
    /// A write and a sync on this disk.
    pub sync_us: f64,
}

impl Figures {
    pub fn note(&mut self, kind: &'static str, step: &'static str, threads: u64, rate: f64) {
        self.cells.entry((kind, step, threads)).or_default().rates.push(rate);
    }

    pub fn waits(&mut self, kind: &'static str, step: &'static str, threads: u64, done: &Timed) {
        let cell = self.cells.entry((kind, step, threads)).or_default();
        cell.rates.push(done.rate);
        cell.p99_ms.push(done.p99_ms);
        cell.longest_ms.push(done.longest_ms);
    }

    fn rate(&self, kind: &'static str, step: &'static str, threads: u64) -> f64 {
        self.cells.get(&(kind, step, threads)).map_or(f64::NAN, |cell| median(&cell.rates))
    }

    /// The longest of all rounds, not their median: nothing is smoothed away.
    fn longest(&self, kind: &'static str, step: &'static str, threads: u64) -> f64 {
        let cell = self.cells.get(&(kind, step, threads));
        cell.map_or(f64::NAN, |cell| cell.longest_ms.iter().copied().fold(f64::NAN, f64::max))
    }

    fn p99(&self, kind: &'static str, step: &'static str, threads: u64) -> f64 {
        self.cells.get(&(kind, step, threads)).map_or(f64::NAN, |cell| median(&cell.p99_ms))
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A number with three digits that mean something; a dash where nothing was measured.
fn short(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".to_owned(),
        value if value >= 100.0 => {
            let digits = format!("{value:.0}");
            let mut text = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at) % 3 == 0 {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// The tables of a run.
pub fn tables(figures: &Figures, kinds: &[&'static str], run: &Run<'_>, elapsed: Duration) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} rows; a value has {} bytes; a write of 512 bytes and a sync on this disk: {} us; {} rounds of {} s a figure, medians, in {:.1} \
         minutes.\n",
        short(run.rows as f64),
        super::contenders::VALUE,
        short(figures.sync_us),
        run.rounds,
        run.time.as_secs_f64(),
        elapsed.as_secs_f64() / 60.0
    );
    reads(&mut text, figures, kinds);
    commits(&mut text, figures, kinds);
    contention(&mut text, figures, kinds);
    text
}

fn reads(text: &mut String, figures: &Figures, kinds: &[&'static str]) {
    let _ = writeln!(text, "### Reads and bulk writes\n");
    let _ = writeln!(
        text,
        "| database | point read, us (1 thread) | point reads/s, 1 / 2 / 4 threads | range of 100, us | load in order, rows/s | at random, rows/s |"
    );
    let _ = writeln!(text, "|---|---|---|---|---|---|");
    for kind in kinds {
        let points = READERS.map(|threads| short(figures.rate(kind, "point", threads)));
        let _ = writeln!(
            text,
            "| {kind} | {} | {} | {} | {} | {} |",
            short(1e6 / figures.rate(kind, "point", 1)),
            points.join(" / "),
            short(1e6 / figures.rate(kind, "range", 1)),
            short(figures.rate(kind, "load", 1)),
            short(figures.rate(kind, "random", 1)),
        );
    }
    text.push('\n');
}

fn commits(text: &mut String, figures: &Figures, kinds: &[&'static str]) {
    let _ = writeln!(text, "### A row a commit\n");
    let _ = writeln!(text, "| database | durable | commits/s, 1 / 4 / 16 / 64 threads | 99 % within, ms | longest, ms |");
    let _ = writeln!(text, "|---|---|---|---|---|");
    for kind in kinds {
        let all = |figure: &dyn Fn(u64) -> f64| COMMITTERS.map(|threads| short(figure(threads))).join(" / ");
        let _ = writeln!(
            text,
            "| {kind} | {} | {} | {} | {} |",
            if is_durable(kind) { "yes" } else { "no" },
            all(&|threads| figures.rate(kind, "commit", threads)),
            all(&|threads| figures.p99(kind, "commit", threads)),
            all(&|threads| figures.longest(kind, "commit", threads)),
        );
    }
    text.push('\n');
}

fn contention(text: &mut String, figures: &Figures, kinds: &[&'static str]) {
    let _ = writeln!(text, "### One counter and one queue, {WORKERS} threads\n");
    let _ = writeln!(text, "| database | durable | counts/s | 99 %, ms | longest, ms | jobs/s | 99 %, ms | longest, ms |");
    let _ = writeln!(text, "|---|---|---|---|---|---|---|---|");
    for kind in kinds {
        let _ = write!(text, "| {kind} | {} |", if is_durable(kind) { "yes" } else { "no" });
        for step in ["counter", "queue"] {
            let (rate, p99) = (figures.rate(kind, step, WORKERS), figures.p99(kind, step, WORKERS));
            let _ = write!(text, " {} | {} | {} |", short(rate), short(p99), short(figures.longest(kind, step, WORKERS)));
        }
        text.push('\n');
    }
}
