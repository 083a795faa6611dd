//! The server's own observation: samples of its sessions, checkpoints and recovery in the log, and the saving of statistics over
//! restarts.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use clearway_base::sync::{JoinHandle, block_on, sleep, spawn_thread};
use clearway_base::waits::{self, Object, WaitEvent, in_wait};
use clearway_engine::db::Db;
use clearway_sql::context::log_line::Severity;
use clearway_sql::context::{observed, waited};
use clearway_sql::session::Backends;
use clearway_storage::recovery::progress;
use clearway_storage::recovery::taken::CheckpointTaken;

use crate::log::Log;

const SECOND: Duration = Duration::from_secs(1);
/// How long a stop is waited for between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// How often a running recovery reports its progress; a shorter recovery reports nothing.
const PROGRESS_EVERY: Duration = SECOND;

/// A thread that does something again and again until it is stopped.
struct Ticker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Ticker {
    fn start(name: &'static str, every: Duration, mut work: impl FnMut() + Send + 'static) -> io::Result<Ticker> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = spawn_thread(name, move || {
            let mut due_ns = waits::now_ns() + every.as_nanos() as u64;
            while !told.load(SeqCst) {
                block_on(in_wait(WaitEvent::SamplerMain, Object::NONE, sleep(LOOK)));
                if waits::now_ns() >= due_ns {
                    due_ns = waits::now_ns() + every.as_nanos() as u64;
                    work();
                }
            }
        })?;
        Ok(Ticker { stop, thread })
    }

    fn stop(self) {
        self.stop.store(true, SeqCst);
        // A panic there has been told by its hook; the server goes on without samples.
        let _ = self.thread.join();
    }
}

/// Samples the sessions each second, and tells the log of checkpoints.
pub struct Sampler(Ticker);

impl Sampler {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(db: &Arc<Db>, backends: &Arc<Backends>, log: &Log) -> io::Result<Sampler> {
        let log = log.clone();
        let mut told = 0;
        let (db, backends) = (Arc::downgrade(db), Arc::clone(backends));
        let work = move || {
            let Some(db) = db.upgrade() else { return };
            if !backends.recorded.samples() || backends.samples.take(&backends) > 0 {
                db.kept().changed();
            }
            for taken in db.transactions().store().checkpoints_after(told) {
                told = taken.number;
                log.say(Severity::Log, checkpoint_line(&taken));
            }
        };
        Ok(Sampler(Ticker::start("sampler", SECOND, work)?))
    }

    /// Ends it.
    pub fn stop(self) {
        self.0.stop();
    }
}

/// A checkpoint in the words of PostgreSQL's log.
fn checkpoint_line(taken: &CheckpointTaken) -> String {
    let cause = match (taken.closing, taken.timed) {
        (true, _) => "shutdown immediate",
        (_, true) => "time or wal",
        _ => "immediate force wait",
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!(
        "checkpoint complete ({cause}): wrote {} buffers; write={:.3} s, sync={:.3} s, total={:.3} s; distance={} kB; redo lsn={:X}/{:X}",
        taken.pages,
        seconds(taken.write_ns),
        seconds(taken.sync_ns),
        seconds(taken.write_ns + taken.sync_ns),
        taken.log_bytes >> 10,
        taken.redo.0 >> 32,
        taken.redo.0 & 0xffff_ffff
    )
}

/// Tells the log of the checkpoint with which the database was closed.
pub fn log_last_checkpoint(db: &Db, log: &Log) {
    let taken = db.transactions().store().checkpoints_after(0);
    if let Some(last) = taken.last().filter(|taken| taken.closing) {
        log.say(Severity::Log, checkpoint_line(last));
    }
}

/// Takes in what an earlier run has left of statements and samples, and keeps them from now on.
pub fn restore(db: &Arc<Db>, backends: &Arc<Backends>) {
    if !db.kept().saves() {
        return;
    }
    if let Some(text) = db.kept().take("statements") {
        backends.statements.restore(observed::read_statements(&text));
    }
    if let Some(text) = db.kept().take("samples") {
        backends.samples.restore(observed::read_samples(&text));
    }
    if let Some(text) = db.kept().take("waits") {
        waited::restore(&text);
    }
    db.kept().add("waits", waited::saved);
    if let Some(text) = db.kept().take("usage") {
        db.usage().restore(&text);
    }
    let of_db = Arc::downgrade(db);
    db.kept().add("usage", move || of_db.upgrade().map_or_else(String::new, |db| db.usage().saved()));
    let (of_statements, of_samples) = (Arc::clone(backends), Arc::clone(backends));
    db.kept().add("statements", move || observed::write_statements(&of_statements.statements.all()));
    db.kept().add("samples", move || observed::write_samples(&of_samples.samples.all()));
}

/// Reports the progress of recovery in the log, and on the terminal if the log goes to files.
pub struct Progress(Ticker);

impl Progress {
    /// Begins.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(log: &Log, opening: Arc<progress::Progress>) -> io::Result<Progress> {
        let log = log.clone();
        let began_ns = waits::now_ns();
        let work = move || {
            let seconds = (waits::now_ns() - began_ns) as f64 / 1e9;
            let line = progress_line(&opening.shown(), seconds);
            if log.config().directory.is_some() {
                // The reader of the terminal; it may be closed.
                let _ = writeln!(io::stderr(), "{line}");
            }
            log.say(Severity::Log, line);
        };
        Ok(Progress(Ticker::start("recovery log", PROGRESS_EVERY, work)?))
    }

    /// The database is open, or does not open.
    pub fn stop(self) {
        self.0.stop();
    }
}

fn progress_line(shown: &progress::Shown, seconds: f64) -> String {
    let progress::Shown { phase, done, all } = *shown;
    let name = phase.name();
    match phase {
        // Analysis looks for the end of the log, and only knows where it lies at least.
        progress::Phase::Analysis | progress::Phase::Redo => format!(
            "recovery in progress: {name}, {} of {} MB of log, elapsed time: {seconds:.2} s",
            done >> 20,
            all.div_ceil(1 << 20)
        ),
        _ => format!("recovery in progress: {name}, elapsed time: {seconds:.2} s"),
    }
}

/// Tells the log what opening had to do.
pub fn log_recovery(db: &Db, log: &Log) {
    let report = db.recovery();
    if report.clean {
        log.say(Severity::Log, "database system was shut down cleanly");
        return;
    }
    if report.log_bytes == 0 {
        return; // a new directory
    }
    log.say(Severity::Log, "database system was not properly shut down; automatic recovery is done");
    let ms = |ns: u64| ns as f64 / 1e6;
    log.say(
        Severity::Log,
        format!(
            "redo done: {} records in {} bytes of log read in {:.1} ms, {} of {} page changes applied in {:.1} ms, {} pages restored, \
             {} transactions to undo",
            report.records,
            report.log_bytes,
            ms(report.analysis_ns),
            report.ops_applied,
            report.ops_seen,
            ms(report.redo_ns),
            report.pages_restored,
            db.losers_left()
        ),
    );
    let (count, last) = db.background_errors().seen();
    if count > 0 {
        log.say(Severity::Warning, last);
    }
}

#[cfg(test)]
mod tests {
    use super::progress_line;
    use clearway_storage::recovery::progress::{Phase, Shown};

    #[test]
    fn progress_names_the_phase_and_the_part_of_the_log() {
        let at = |phase, done, all| progress_line(&Shown { phase, done, all }, 2.049);
        let mb = 1 << 20;
        let redo = at(Phase::Redo, 134 * mb + 5, 270 * mb + 1);
        assert_eq!(redo, "recovery in progress: redo, 134 of 271 MB of log, elapsed time: 2.05 s");
        assert_eq!(at(Phase::Loading, 0, 0), "recovery in progress: loading, elapsed time: 2.05 s");
    }
}
