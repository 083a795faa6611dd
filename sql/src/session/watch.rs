//! Records what a statement has cost when it ends: time, rows, waits. Logs a slow statement.
//!
//! # Life of a statement's waits
//! The time in the run queue before a statement belongs to that statement, and so do its waits until it ends. Waits between its end and
//! the next statement (the wait until its commit is durable) also belong to it; they are added when the next statement begins or the
//! answer leaves. Waits for the client are not counted. The remaining time since the end of the previous statement belongs to the next
//! one, whose message was read in it.
//!
//! # Structure
//! Most statements end without an error, a warning, a whole scan or a wait of their own, and are short. Their figures are put together by
//! [`Session::usual`] and those of all others by [`Session::ended_otherwise`]: of the code that a statement leaves to its end, the processor's cache
//! has most often lost each line since the statement before, so what is usual stands apart from what is not.
//!
//! # Invariants
//! - WCH-1: a statement has the same effect on every figure of its entry and its session, whichever of the two puts them together.

use super::series::Series;
use super::session::Session;
use crate::context::backend::Backend;
use crate::context::core::Core;
use crate::context::log_line::{Line, Severity, Slow, level_of};
use crate::context::recorded::{RecordedExecution, TEXT_MAX};
use crate::context::statements::{Digest, Execution, Key, MISSED_ROWS, Others, Usual, Work};
use crate::context::witness::parameters;
use crate::error::SqlError;
use clearway_base::waits::{self, Measure, SessionStats, WaitClass, WaitEvent};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a session keeps from one statement to the next.
///
/// What each statement touches stands in two cache lines. With 1,000 sessions in turns each line that a short statement touches is a miss: in the
/// six lines of an order that the compiler chose, these were a percent of the server's time under point selects (docs/measured/waits-cost.md).
#[repr(C, align(64))]
#[derive(Default)]
pub(super) struct Watch {
    /// The rows that the session had looked at when the last one ended: the first figure of `Used::examined`.
    rows_examined: u64,
    /// The same at the end of the statement that runs, where a fast path has had the engine's session at hand (`looked`).
    rows_looked_at: u64,
    /// The latest statement's entry; that of no application: none was counted.
    last: Key,
    /// The session's elapsed time less its waits for the client, and its processor time, when the last statement ended. Waits that were added to
    /// that statement since then are in it too.
    ended: (u64, u64),
    /// The other figures of `rows_examined`.
    others_examined: [u64; 3],
    /// The session's warnings when the last one ended, the low half of their number.
    warnings: u32,
    looked: Looked,
    /// A statement has ended since `take_ended_ns`.
    has_ended: bool,
    /// Rows of the statement that runs.
    pub(super) rows: u64,
    /// Its first part is in the second line, and has the moment of the last statement's end.
    series: Series,
    /// The other figures of `rows_looked_at`.
    others_looked_at: [u64; 3],
    /// The name of the application of `last`.
    application: Arc<str>,
    /// The function of a function call message, as the log names it, while it runs.
    pub(super) called: Option<Arc<str>>,
}

const _: () = assert!(std::mem::offset_of!(Watch, series) + Series::FIRST <= 2 * 64, "two cache lines");

/// What is known of what the statement that runs has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Looked {
    /// Nothing: the engine's session is asked.
    #[default]
    Unknown,
    /// The rows, the first figure; the others are what they were.
    Rows,
    /// All figures.
    All,
}

impl Watch {
    /// The statement that runs ends with this in `Used::examined`.
    pub(super) fn has_looked_at(&mut self, examined: [u64; 4]) {
        let [rows, others @ ..] = examined;
        self.has_looked_at_rows(rows);
        if others != self.others_examined {
            (self.others_looked_at, self.looked) = (others, Looked::All);
        }
    }

    /// The same where it has looked at rows by their keys, and has done nothing else that counts there.
    #[inline]
    pub(super) fn has_looked_at_rows(&mut self, rows: u64) {
        (self.rows_looked_at, self.looked) = (rows, Looked::Rows);
    }

    /// The statement goes on after that.
    pub(super) fn looks_again(&mut self) {
        self.looked = Looked::Unknown;
    }

    /// The statement that runs has looked at no row.
    pub(super) fn has_looked_at_nothing(&mut self) {
        self.has_looked_at_rows(self.rows_examined);
    }

    /// The statement that ends counts for this entry of the same application.
    #[inline]
    fn counts_for(&mut self, core: &Core, digest: &Digest) {
        (self.last.query, self.last.tags) = (digest.id, digest.tags_hash);
        (self.last.user, self.last.database) = (core.backend.role.load(Relaxed), core.database);
    }

    #[cold]
    fn changes_application(&mut self, backend: &Backend) {
        self.application = backend.activity.lock().application_name.as_str().into();
    }

    /// The session's time since the end of the last statement, without waits for the client: all of it, and computing.
    #[inline]
    fn since_last(&mut self, waits: &SessionStats, (elapsed_ns, cpu_ns): (u64, u64)) -> (u64, u64) {
        let now = (elapsed_ns.wrapping_sub(waits.client_ns()), cpu_ns);
        let before = std::mem::replace(&mut self.ended, now);
        let busy_ns = now.0.wrapping_sub(before.0) as i64;
        // What was read before a step's end may have been too much (`waits::read`).
        (busy_ns.max(0) as u64, cpu_ns.saturating_sub(before.1))
    }

    /// When the last statement ended; 0: none has since the last call.
    #[inline]
    pub(super) fn take_ended_ns(&mut self) -> u64 {
        if std::mem::take(&mut self.has_ended) { self.series.ended_ns() } else { 0 }
    }
}

/// How PostgreSQL's log names the way that a statement came.
fn how(portal: Option<&str>) -> String {
    match portal {
        None => "statement".to_owned(),
        Some("") => "execute <unnamed>".to_owned(),
        Some(name) => format!("execute {name}"),
    }
}

/// What is told of a statement beside its duration.
struct SlowFigures {
    rows: u64,
    work: Work,
    lock_ns: u64,
    failed: bool,
    recorded: bool,
}

/// How long a statement that ends has waited for locks, and for its client beside ClientRead, in nanoseconds.
fn locked_and_sent(waits: &SessionStats) -> (u64, u64) {
    let (mut lock_ns, mut sent_ns) = (0, 0);
    waits.peek_others(|event, ns| match event.class() {
        WaitClass::Lock => lock_ns += ns,
        WaitClass::Client => sent_ns += ns,
        _ => {}
    });
    (lock_ns, sent_ns)
}

/// The waits of a statement that ends, beside those for its client and in the run queue.
fn taken(waits: &SessionStats) -> impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64)) {
    |wait| {
        waits.take_others(|event, count, ns| {
            if event.class() != WaitClass::Client {
                wait(event, count, ns);
            }
        });
    }
}

impl Session {
    /// A statement that is recorded.
    fn ran(&self, digest: &Arc<Digest>, ns: u64, told: &SlowFigures, query: &str) -> RecordedExecution {
        let backend = &self.core.backend;
        let activity = backend.activity.lock();
        let end = (0..=query.len().min(TEXT_MAX)).rev().find(|end| query.is_char_boundary(*end)).unwrap_or(0);
        RecordedExecution {
            began_us: waits::wall_us() - (ns / 1_000) as i64,
            ns,
            lock_ns: told.lock_ns,
            pid: backend.pid,
            user: backend.user.clone(),
            database: backend.database.clone(),
            application: activity.application_name.clone(),
            client: backend.client.map(|client| client.ip()),
            text: query[..end].to_owned(),
            digest: digest.clone(),
            rows: told.rows,
            writes: level_of(&digest.text) == 2,
            work: told.work,
            failed: told.failed,
        }
    }

    /// A statement begins; when, by the clock of wait events.
    pub(super) fn watch(&mut self, digest: &Digest, text: &Arc<str>, portal: Option<&str>) -> u64 {
        if let Some(began_ns) = self.row_turn.statement_since() {
            return began_ns;
        }
        let began_ns = waits::now_ns();
        self.watch_from(began_ns, digest, text, portal);
        began_ns
    }

    /// The same, of a statement that has begun at this moment of the clock of wait events.
    pub(super) fn watch_from(&mut self, began_ns: u64, digest: &Digest, text: &Arc<str>, portal: Option<&str>) {
        self.settle_waits();
        // The processor clock is not read for statements that are over before it pays.
        let measure = Measure::from(digest.measure.load(Relaxed));
        if measure.reads_clocks() {
            waits::settle(&self.core.backend.waits, began_ns, measure);
        }
        (self.watch.rows, self.watch.looked) = (0, Looked::Unknown);
        let backend = &self.core.backend;
        backend.waits.use_begins();
        backend.digest.store(digest.id, Relaxed);
        if let Some(owner) = backend.owner.get() {
            owner.statement_begins(digest.id);
        }
        let logged = backend.log.statements.load(Relaxed);
        if logged != 0 && logged >= level_of(&digest.text) {
            let (how, text) = self.told_as(portal, text);
            let mut line = Line::new(Severity::Log, "00000", format!("{how}: {text}")).of(backend);
            line.query_id = digest.id as i64;
            self.core.backends.log_line(line);
        }
    }

    /// How the log names what runs, and the way that it came.
    fn told_as(&self, portal: Option<&str>, text: &Arc<str>) -> (String, Arc<str>) {
        match &self.watch.called {
            Some(called) => ("fastpath function call".to_owned(), called.clone()),
            None => (how(portal), text.clone()),
        }
    }

    /// Adds the waits since the last statement to that one.
    #[inline]
    pub(super) fn settle_waits(&mut self) {
        if self.core.backend.waits.has_others() {
            self.settle_others();
        }
    }

    #[inline(never)]
    fn settle_others(&mut self) {
        let Watch { ended: (ended_ns, _), last, .. } = &mut self.watch;
        let waits = &self.core.backend.waits;
        if *last == Key::default() {
            return waits.take_others(|_, _, ns| *ended_ns = ended_ns.wrapping_add(ns));
        }
        self.core.backends.statements.waited(last, |wait| {
            waits.take_others(|event, count, ns| {
                *ended_ns = ended_ns.wrapping_add(ns);
                if !matches!(event.class(), WaitClass::Client | WaitClass::Activity) {
                    wait(event, count, ns);
                }
            });
        });
    }

    /// The statement has ended. `portal`: by the extended protocol.
    pub(super) fn watched(
        &mut self,
        digest: &Arc<Digest>,
        began_ns: u64,
        failed: Option<&SqlError>,
        portal: Option<&str>,
    ) {
        let ended_ns = waits::now_ns();
        self.watch.has_ended = true;
        let ns = ended_ns.saturating_sub(began_ns);
        let usual = if failed.is_none() && self.is_usual(ns) { self.usual(digest, began_ns, ended_ns) } else { None };
        let Some(usual) = usual else { return self.ended_otherwise(digest, (began_ns, ended_ns), failed, portal) };
        if !self.core.backends.statements.ran_usually(&self.watch.last, &usual) {
            self.counts(digest, usual, Others::default());
        }
    }

    /// Whether the statement that ends has no figures but the usual ones, so far as that is known before its time is read.
    #[inline]
    fn is_usual(&self, ns: u64) -> bool {
        let (core, watch) = (&*self.core, &self.watch);
        let (backend, recorded) = (&*core.backend, &core.backends.recorded);
        watch.looked == Looked::Rows
            && recorded.digests()
            && !recorded.wants(ns)
            && ns < backend.log.min_ns.load(Relaxed)
            && backend.application.load(Relaxed) == watch.last.application
            && core.warnings() as u32 == watch.warnings
            && !backend.waits.has_others()
            && !backend.waits.use_is_kept()
    }

    /// Its figures; none: it is not short, and nothing was changed (WCH-1).
    #[inline]
    fn usual(&mut self, digest: &Digest, began_ns: u64, ended_ns: u64) -> Option<Usual> {
        let (core, watch) = (&*self.core, &mut self.watch);
        let backend = &*core.backend;
        let (busy_ns, cpu_ns) = watch.since_last(&backend.waits, waits::read_short(&backend.waits, ended_ns)?);
        digest.ran_as(Measure::Short);
        watch.counts_for(core, digest);
        let examined = watch.rows_looked_at - std::mem::replace(&mut watch.rows_examined, watch.rows_looked_at);
        let single = examined > 0 && watch.rows <= 1;
        let repeated = watch.series.ran(digest.id, single, began_ns, ended_ns);
        let (ns, queued) = (ended_ns.saturating_sub(began_ns), backend.waits.take_queued());
        let used = backend.waits.use_ends();
        Some(Usual { ended_ns, ns, busy_ns, cpu_ns, rows: watch.rows, queued, examined, repeated, used })
    }

    /// The end of a statement that is not as usual.
    #[inline(never)]
    fn ended_otherwise(
        &mut self,
        digest: &Arc<Digest>,
        (began_ns, ended_ns): (u64, u64),
        failed: Option<&SqlError>,
        portal: Option<&str>,
    ) {
        let ns = ended_ns.saturating_sub(began_ns);
        if failed.is_some_and(|error| error.code() == "40P01") {
            self.core.backends.note_deadlock(&self.core.database_name);
        }
        if !self.core.backends.recorded.digests() {
            self.watch.series.ends(ended_ns);
            return self.uncounted(digest, ns, failed.is_some(), portal);
        }
        let [examined, full_scans, filtered, inserted] = self.examined();
        let (core, watch) = (&*self.core, &mut self.watch);
        let backend = &*core.backend;
        // One that neither looks at a row of a table nor inserts one is none of a loop over rows.
        let single = (examined > 0 || inserted == 1) && watch.rows <= 1;
        let repeated = watch.series.ran(digest.id, single, began_ns, ended_ns);
        let application = backend.application.load(Relaxed);
        if application != watch.last.application {
            watch.changes_application(backend);
            watch.last.application = application;
        }
        let (measure, elapsed_ns, cpu_ns) = waits::read(&backend.waits, ended_ns);
        digest.ran_as(measure);
        let (busy_ns, cpu_ns) = watch.since_last(&backend.waits, (elapsed_ns, cpu_ns));
        let (lock_ns, sent_ns) = locked_and_sent(&backend.waits);
        let all_warnings = core.warnings() as u32;
        let warnings = u64::from(all_warnings.wrapping_sub(std::mem::replace(&mut watch.warnings, all_warnings)));
        watch.counts_for(core, digest);
        let (rows, failed) = (watch.rows, failed.is_some());
        // After `read`, which may find more time in the run queue.
        let (busy_ns, queued) = (busy_ns.saturating_sub(sent_ns), backend.waits.take_queued());
        let used = backend.waits.use_ends();
        let usual = Usual { ended_ns, ns, busy_ns, cpu_ns, rows, queued, examined, repeated, used };
        let missed_index = u64::from(filtered >= MISSED_ROWS);
        let work = self.counts(digest, usual, Others { warnings, failed, full_scans, missed_index });
        let backend = &self.core.backend;
        let recorded = self.core.backends.recorded.wants(ns);
        if recorded || ns >= backend.log.min_ns.load(Relaxed) {
            self.tell_slow(digest, ns, &SlowFigures { rows, work, lock_ns, failed, recorded }, portal);
        }
    }

    /// Counts any statement, with the waits that it has had.
    #[inline(never)]
    fn counts(&self, digest: &Arc<Digest>, usual: Usual, others: Others) -> Work {
        let (core, watch) = (&*self.core, &self.watch);
        let backend = &*core.backend;
        let execution = Execution { key: &watch.last, digest, application: &watch.application, usual, others };
        if core.backends.statements.ran(&execution, taken(&backend.waits)) {
            let query = backend.activity.lock().query.clone();
            core.backends.statements.sample(&watch.last, usual.ns, usual.ended_ns, &query);
        }
        execution.work()
    }

    /// The end of a statement while digests are switched off: its waits are forgotten, and the log and `record_slow` hear of a slow one.
    #[cold]
    fn uncounted(&mut self, digest: &Arc<Digest>, ns: u64, failed: bool, portal: Option<&str>) {
        let [examined, full_scans, ..] = self.examined();
        let work = Work { examined, full_scans, ..Work::default() };
        let backend = &self.core.backend;
        let mut lock_ns = 0;
        backend.waits.use_ends();
        backend.waits.take_queued();
        backend.waits.take_others(|event, _, ns| lock_ns += if event.class() == WaitClass::Lock { ns } else { 0 });
        let watch = &mut self.watch;
        watch.last = Key::default();
        watch.since_last(&backend.waits, backend.waits.elapsed_and_cpu());
        let recorded = self.core.backends.recorded.wants(ns);
        if recorded || ns >= backend.log.min_ns.load(Relaxed) {
            self.tell_slow(digest, ns, &SlowFigures { rows: self.watch.rows, work, lock_ns, failed, recorded }, portal);
        }
    }

    /// Rows looked at, whole scans, rows of those that a condition left out, rows inserted: since the last statement's end.
    fn examined(&mut self) -> [u64; 4] {
        let watch = &mut self.watch;
        let (rows, others) = match watch.looked {
            Looked::Rows => (watch.rows_looked_at, watch.others_examined),
            Looked::All => (watch.rows_looked_at, watch.others_looked_at),
            Looked::Unknown => {
                let [rows, others @ ..] = self.core.engine.take().used().examined();
                (rows, others)
            }
        };
        let before = std::mem::replace(&mut watch.others_examined, others);
        let rows = rows - std::mem::replace(&mut watch.rows_examined, rows);
        [rows, others[0] - before[0], others[1] - before[1], others[2] - before[2]]
    }

    #[cold]
    fn tell_slow(&self, digest: &Arc<Digest>, ns: u64, told: &SlowFigures, portal: Option<&str>) {
        let backend = &self.core.backend;
        let (query, params) = {
            let activity = backend.activity.lock();
            (activity.query.clone(), activity.parameters.clone())
        };
        let asked = told.recorded && self.core.backends.recorded.add(self.ran(digest, ns, told, &query));
        if !asked && ns < backend.log.min_ns.load(Relaxed) {
            return;
        }
        let ms = ns as f64 / 1e6;
        let writes = level_of(&digest.text) == 2;
        let (how, query) = self.told_as(portal, &query);
        let mut line = Line::new(Severity::Log, "00000", format!("duration: {ms:.3} ms  {how}: {query}")).of(backend);
        line.query_id = digest.id as i64;
        line.duration_ns = ns;
        line.slow = Some(Slow {
            text: query.clone(),
            lock_ns: told.lock_ns,
            sent: if writes { 0 } else { told.rows },
            affected: if writes { told.rows } else { 0 },
            examined: told.work.examined,
            full_scan: told.work.full_scans > 0,
        });
        if let Some(params) = params.filter(|params| !params.is_empty()) {
            line.detail = format!("parameters: {}", parameters(&params));
        }
        self.core.backends.log_line(line);
    }
}
