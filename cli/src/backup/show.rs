//! Output of backups: a progress bar, lists.

use std::io::{IsTerminal as _, Write as _};

use clearway_backup::epochs;
use clearway_backup::manifest::Manifest;
use clearway_backup::plan::Contents;
use clearway_backup::{clock, names, pieces};
use clearway_base::waits::now_ns;

/// How often the bar is drawn, in nanoseconds.
const DRAW_NS: u64 = 200_000_000;
const BAR_CELLS: u64 = 30;

/// A bar on standard error, where that is a terminal.
pub struct Bar {
    what: &'static str,
    unit: fn(u64) -> String,
    terminal: bool,
    began_ns: u64,
    drawn_ns: u64,
}

impl Bar {
    /// A bar that is not drawn yet.
    pub fn new(what: &'static str, unit: fn(u64) -> String) -> Bar {
        Bar { what, unit, terminal: std::io::stderr().is_terminal(), began_ns: now_ns(), drawn_ns: 0 }
    }

    /// Draws it, now and then.
    pub fn show(&mut self, done: u64, all: u64) {
        let now = now_ns();
        if !self.terminal || now - self.drawn_ns < DRAW_NS {
            return;
        }
        self.drawn_ns = now;
        let all = all.max(done).max(1);
        let cells = (done * BAR_CELLS / all) as usize;
        let per_s = (u128::from(done) * 1_000_000_000 / u128::from((now - self.began_ns).max(1))) as u64;
        let left_s = (all - done) / per_s.max(1);
        let (full, empty) = ("#".repeat(cells), ".".repeat(BAR_CELLS as usize - cells));
        let (shown, of) = ((self.unit)(done), (self.unit)(all));
        eprint!("\r{} [{full}{empty}] {shown} of {of}, {}/s, {left_s} s left   ", self.what, (self.unit)(per_s));
        let _ = std::io::stderr().flush();
    }

    /// Takes it away.
    pub fn end(&mut self) {
        if self.terminal && self.drawn_ns > 0 {
            eprint!("\r{}\r", " ".repeat(100));
        }
    }
}

/// Bytes for people.
pub fn bytes(n: u64) -> String {
    match n {
        0..=9_999 => format!("{n} B"),
        10_000..=9_999_999 => format!("{} kB", n >> 10),
        10_000_000..=9_999_999_999 => format!("{} MB", n >> 20),
        _ => format!("{:.1} GB", n as f64 / f64::from(1 << 30)),
    }
}

/// One line a backup.
pub fn backups(all: &[Manifest]) {
    for manifest in all {
        let rests = if manifest.is_full() { String::new() } else { format!(", rests on {}", manifest.parent) };
        println!(
            "{}  epoch {}, LSN {} to {}, ended {}, {}{rests}",
            manifest.id,
            manifest.epoch,
            manifest.scan,
            manifest.end,
            clock::show(manifest.ended_us),
            bytes(manifest.bytes())
        );
    }
    println!("{}", count(all.len()));
}

/// How many backups.
pub fn count(backups: usize) -> String {
    if backups == 1 { "1 backup".to_owned() } else { format!("{backups} backups") }
}

/// The epochs of the archive, how they follow each other, and the moments between which each can be restored.
pub fn histories(contents: &Contents) {
    for epoch in &contents.epochs {
        let history = epochs::timeline(&contents.epochs, epoch.epoch);
        let log = pieces::of_timeline(&contents.log, &history);
        let end = log.iter().map(|piece| piece.to).max().map_or_else(|| "nothing".to_owned(), |to| format!("LSN {to}"));
        let first = contents.backups.iter().find(|manifest| history.covers(manifest.epoch, manifest.end));
        let from = match first {
            Some(first) => format!("can be restored from LSN {} ({}) on", first.end, clock::show(first.ended_us)),
            None => "has no backup".to_owned(),
        };
        // Not always the epoch's parent: a restore to a moment before the parent began goes on from an earlier one.
        let before = history.stretches.iter().rev().nth(1).map_or(epoch.parent, |stretch| stretch.epoch);
        let came = match before {
            0 => "the archive begins".to_owned(),
            before => format!("follows epoch {before} from LSN {} on", epoch.begins),
        };
        println!(
            "epoch {}: {came}; begun {}; archived up to {end}; {from}",
            epoch.epoch,
            clock::show(epoch.claimed_us)
        );
    }
    if contents.epochs.is_empty() {
        println!("no archived log under {}: backups can be restored to their own ends", names::LOG);
    }
    backups(&contents.backups);
}
