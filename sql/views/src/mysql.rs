//! The rows of those performance_schema views that are not queries over other views. Times are in picoseconds
//! (`clearway_context::instruments` has the names).

use super::activity::{HIDDEN_TEXT, may_watch};
use super::{ViewOf, int, opt, text};
use clearway_base::sync::{ClassStats, classes};
use clearway_base::waits::{self, EventTotals, Instrument, WaitClass, WaitEvent};
use clearway_context::backend::Mode;
use clearway_context::instruments::{all as all_instruments, name_of, name_of_class};
use clearway_context::recorded::RecordedExecution;
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;
use clearway_values::types::numeric::Numeric;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("performance_schema", "events_waits_summary_global_by_event_name", waits_by_name),
    ("performance_schema", "events_waits_current", waits_current),
    ("performance_schema", "file_summary_by_event_name", files_by_name),
    ("performance_schema", "file_summary_by_instance", files_by_instance),
    ("performance_schema", "setup_instruments", instruments),
    ("performance_schema", "setup_consumers", consumers),
    ("performance_schema", "events_statements_history_long", history),
    ("pg_catalog", "clearway_transaction_modes", modes),
];

/// So many columns of MySQL's that nothing is recorded for.
fn unknown<const N: usize>() -> [Datum; N] {
    std::array::from_fn(|_| Datum::Null)
}

/// Nanoseconds as picoseconds.
fn ps(ns: u64) -> Datum {
    Datum::numeric(Numeric::from(i64::try_from(ns.saturating_mul(1_000)).unwrap_or(i64::MAX)))
}

/// What waits under one name add up to.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    ns: u64,
    /// The lower end of the histogram's first bucket that is not empty; none: unknown.
    min_ns: Option<u64>,
    max_ns: u64,
    bytes: u64,
}

impl Sum {
    fn of(total: &EventTotals) -> Sum {
        let first = total.histogram.iter().position(|count| *count > 0);
        let min_ns = first.map(|bucket| if bucket == 0 { 0 } else { 1u64 << bucket });
        let max_ns = if total.count == 0 { 0 } else { total.max_ns };
        Sum { count: total.count, ns: total.total_ns, min_ns, max_ns, bytes: 0 }
    }

    fn add(&mut self, more: Sum) {
        self.min_ns = match (self.count, more.count) {
            (_, 0) => self.min_ns,
            (0, _) => more.min_ns,
            _ => self.min_ns.zip(more.min_ns).map(|(a, b)| a.min(b)),
        };
        self.count += more.count;
        self.ns += more.ns;
        self.max_ns = self.max_ns.max(more.max_ns);
        self.bytes += more.bytes;
    }

    fn avg(&self) -> Datum {
        ps(self.ns / self.count.max(1))
    }
}

/// The totals of events since performance_schema was truncated.
fn totals(run: &Run<'_>) -> Vec<EventTotals> {
    let now = waits::totals();
    match &*run.core.backends.truncated.lock() {
        Some(before) => now.iter().zip(&before.totals).map(|(now, before)| now.since(before)).collect(),
        None => now,
    }
}

/// The same of mutexes and latches.
fn latches(run: &Run<'_>) -> Vec<ClassStats> {
    let mut now = classes();
    if let Some(before) = &*run.core.backends.truncated.lock() {
        for class in &mut now {
            let Some(before) = before.classes.iter().find(|before| before.name == class.name) else { continue };
            class.slow -= before.slow.min(class.slow);
            class.parks -= before.parks.min(class.parks);
            class.spin_ns -= before.spin_ns.min(class.spin_ns);
            class.park_ns -= before.park_ns.min(class.park_ns);
            class.max_ns = if class.slow == 0 { 0 } else { class.max_ns };
        }
    }
    now
}

fn waits_by_name(run: &Run<'_>) -> Vec<Row> {
    let mut all: BTreeMap<String, Sum> = BTreeMap::new();
    for (event, total) in WaitEvent::all().iter().zip(totals(run)) {
        if let Some(name) = name_of(*event) {
            all.entry(name).or_default().add(Sum::of(&total));
        }
    }
    // Of mutexes and latches what was contended; how short the shortest wait was is not known.
    all.extend(latches(run).iter().map(|class| {
        let ns = class.spin_ns + class.park_ns;
        let min_ns = if class.slow == 0 { Some(0) } else { None };
        (name_of_class(class), Sum { count: class.slow, ns, min_ns, max_ns: class.max_ns, bytes: 0 })
    }));
    let row = |(name, sum): (String, Sum)| {
        let min = sum.min_ns.map_or(Datum::Null, ps);
        vec![text(&name), int(sum.count), ps(sum.ns), min, sum.avg(), ps(sum.max_ns)]
    };
    all.into_iter().map(row).collect()
}

/// What each session and background task waits for now.
fn waits_current(run: &Run<'_>) -> Vec<Row> {
    let now_ns = waits::now_ns();
    let waiting: Vec<_> = classes().into_iter().filter(|class| class.waiting > 0).collect();
    let rows = waits::sessions().into_iter().filter_map(|session| {
        let pid = i32::try_from(session.id() & 0x7fff_ffff).unwrap_or(i32::MAX);
        if run.core.backends.get(pid).is_some() && !may_watch(run, pid) {
            return None;
        }
        let wait = session.current_or_ready()?;
        // Which mutex a thread waits for is known where only one class is waited for.
        let class = if wait.event.class() == WaitClass::LwLock { waiting.first() } else { None };
        let name = name_of(wait.event).or_else(|| class.map(name_of_class));
        let name = name.unwrap_or_else(|| format!("wait/synch/mutex/innodb/{}", wait.event.name()));
        let since_ns = if wait.since_ns == 0 { now_ns } else { wait.since_ns };
        let mut row = vec![Datum::Int8(i64::from(pid))];
        row.extend(unknown::<2>());
        row.extend([
            text(&name),
            opt(class.and_then(|class| class.holder.as_ref()).map(|holder| holder.site.as_str())),
            ps(since_ns),
            // It goes on: MySQL tells the timer's value of now.
            ps(now_ns),
            ps(now_ns.saturating_sub(since_ns)),
        ]);
        row.extend(unknown::<8>());
        row.push(text(wait.event.name()));
        row.extend(unknown::<2>());
        row.push(if wait.behind == 0 { Datum::Null } else { int(wait.behind) });
        Some(row)
    });
    rows.collect()
}

/// Reads, writes, and everything else, of one kind of file.
#[derive(Default)]
struct File {
    parts: [Sum; 3],
}

/// By name of the instrument.
fn files(run: &Run<'_>) -> BTreeMap<String, File> {
    let mut all: BTreeMap<String, File> = BTreeMap::new();
    let store = run.core.db.transactions().store();
    let pages = store.pool().counters().view();
    let page = clearway_storage::buffer::page::PAGE_BYTES as u64;
    for (event, total) in WaitEvent::all().iter().zip(totals(run)) {
        let Some(name) = name_of(*event).filter(|_| event.class() == WaitClass::Io) else { continue };
        let mut sum = Sum::of(&total);
        sum.bytes = match event {
            WaitEvent::DataFileRead => pages.misses * page,
            WaitEvent::DataFileWrite => pages.pages_written * page,
            WaitEvent::WalWrite => store.wal().durable_lsn().0.saturating_sub(run.core.db.opened_at().0),
            _ => 0,
        };
        let kind = match event.name() {
            name if name.ends_with("Read") => 0,
            name if name.ends_with("Write") => 1,
            _ => 2,
        };
        all.entry(name).or_default().parts[kind].add(sum);
    }
    all
}

fn file_columns(file: &File) -> Row {
    let mut whole = Sum::default();
    file.parts.iter().for_each(|part| whole.add(*part));
    let min = |sum: &Sum| if sum.count == 0 { ps(0) } else { sum.min_ns.map_or(Datum::Null, ps) };
    let mut row = vec![int(whole.count), ps(whole.ns), min(&whole), whole.avg(), ps(whole.max_ns)];
    for (kind, part) in file.parts.iter().enumerate() {
        row.extend([int(part.count), ps(part.ns), min(part), part.avg(), ps(part.max_ns)]);
        if kind < 2 {
            row.push(int(part.bytes));
        }
    }
    row
}

fn files_by_name(run: &Run<'_>) -> Vec<Row> {
    let row = |(name, file): (String, File)| std::iter::once(text(&name)).chain(file_columns(&file)).collect();
    files(run).into_iter().map(row).collect()
}

/// Files are counted by what they are for: one row for each kind that was used.
fn files_by_instance(run: &Run<'_>) -> Vec<Row> {
    let used = files(run).into_iter().filter(|(_, file)| file.parts.iter().any(|part| part.count > 0));
    let row = |(name, file): (String, File)| {
        let place = name.rsplit('/').next().unwrap_or("").to_owned();
        [text(&place), text(&name), Datum::Null].into_iter().chain(file_columns(&file)).collect()
    };
    used.map(row).collect()
}

fn yes(on: bool) -> Datum {
    text(if on { "YES" } else { "NO" })
}

fn instruments(_: &Run<'_>) -> Vec<Row> {
    // None has a property or a flag.
    let row = |(name, on): (&String, &Instrument)| {
        let volatility = Datum::Int4(0);
        vec![text(name), yes(on.enabled), yes(on.timed), text(""), Datum::Null, volatility, Datum::Null]
    };
    all_instruments().iter().map(row).collect()
}

fn consumers(run: &Run<'_>) -> Vec<Row> {
    run.core.backends.recorded.consumers().map(|(name, on)| vec![text(name), yes(on)]).collect()
}

/// Statements that were recorded, oldest first.
fn history(run: &Run<'_>) -> Vec<Row> {
    let row = |ran: &RecordedExecution| {
        let shown = |s: &str| text(if may_watch(run, ran.pid) { s } else { HIDDEN_TEXT });
        let begin_ps = Datum::numeric(Numeric::from(ran.began_us.saturating_mul(1_000_000)));
        let end_us = ran.began_us.saturating_add((ran.ns / 1_000) as i64);
        let mut row = vec![Datum::Int8(i64::from(ran.pid))];
        row.extend(unknown::<2>());
        let kind = ran.digest.text.split(' ').next().unwrap_or("").to_lowercase();
        row.extend([text(&format!("statement/sql/{kind}")), Datum::Null]);
        row.extend([
            begin_ps,
            Datum::numeric(Numeric::from(end_us.saturating_mul(1_000_000))),
            ps(ran.ns),
            ps(ran.lock_ns),
            shown(&ran.text),
            text(&format!("{:016x}", ran.digest.id)),
            shown(&ran.digest.text),
            text(&ran.database),
        ]);
        row.extend(unknown::<7>());
        row.extend([int(u64::from(ran.failed)), Datum::Null]);
        row.extend([
            int(if ran.writes { ran.rows } else { 0 }),
            int(if ran.writes { 0 } else { ran.rows }),
            int(ran.work.examined),
        ]);
        row.extend(unknown::<6>());
        row.push(int(ran.work.full_scans));
        row.extend(unknown::<4>());
        row.push(int(ran.work.missed_index));
        row.extend(unknown::<8>());
        row.push(text("PRIMARY"));
        row
    };
    run.core.backends.recorded.all().iter().map(row).collect()
}

/// How each open transaction began.
fn modes(run: &Run<'_>) -> Vec<Row> {
    let rows = run.core.backends.all().into_iter().map(|backend| {
        let mode = backend.mode.load(Relaxed);
        let isolation = if mode & Mode::REPEATABLE != 0 { "repeatable read" } else { "read committed" };
        vec![
            Datum::Int4(backend.pid),
            text(isolation),
            Datum::Bool(mode & Mode::READ_ONLY != 0),
            Datum::Bool(mode & Mode::BLOCK == 0),
        ]
    });
    rows.collect()
}
