//! The rows about time: waits by event, by session, by statement and by latch, and the sampled history of sessions.

use super::activity::{HIDDEN_TEXT, may_watch, role_name};
use super::lock_waits::{ms, quantile};
use super::{EPOCH_US, ViewOf, int, opt, text};
use clearway_base::sync::{ClassStats, classes};
use clearway_base::waits::{self, WaitClass, WaitEvent};
use clearway_context::privileges::Judge;
use clearway_context::statements::Cost;
use clearway_engine::catalog::{Catalog, Object};
use clearway_exec::{Row, Run};
use clearway_storage::buffer::page::PAGE_BYTES;
use clearway_values::types::Datum;
use clearway_values::types::numeric::Numeric;
use std::collections::HashMap;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "clearway_waits", all_waits),
    ("pg_catalog", "clearway_session_waits", session_waits),
    ("pg_catalog", "clearway_statement_waits", statement_waits),
    ("pg_catalog", "clearway_latches", latches),
    ("pg_catalog", "clearway_session_history", session_history),
    ("pg_catalog", "clearway_statements", statements),
    ("pg_catalog", "pg_stat_statements", pg_stat_statements),
    ("pg_catalog", "pg_stat_statements_info", pg_stat_statements_info),
];

fn class_of(event: WaitEvent) -> Datum {
    text(event.class().name())
}

/// One row for each event that was ever waited for.
fn all_waits(_: &Run<'_>) -> Vec<Row> {
    let totals = waits::totals();
    let rows = WaitEvent::all().iter().zip(&totals).filter(|(_, total)| total.count > 0).map(|(event, total)| {
        // By power of two: microseconds at the lower end, and the count.
        let histogram = total.histogram.iter().enumerate().filter(|(_, count)| **count > 0);
        let histogram: Vec<String> =
            histogram.map(|(i, count)| format!("{}: {count}", (1u64 << i) as f64 / 1e3)).collect();
        vec![
            class_of(*event),
            text(event.name()),
            int(total.count),
            ms(total.total_ns),
            ms(total.total_ns / total.count.max(1)),
            ms(quantile(&total.histogram, 0.5).min(total.max_ns)),
            ms(quantile(&total.histogram, 0.95).min(total.max_ns)),
            ms(quantile(&total.histogram, 0.99).min(total.max_ns)),
            ms(total.max_ns),
            ms(total.spin_ns),
            text(&histogram.join(", ")),
            text(event.row().description),
        ]
    });
    rows.collect()
}

/// One row for each event that a session, or a background task, has waited for.
fn session_waits(run: &Run<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for session in waits::sessions() {
        let pid = i32::try_from(session.id() & 0x7fff_ffff).unwrap_or(i32::MAX);
        let backend = run.core.backends.get(pid);
        if backend.is_some() && !may_watch(run, pid) {
            continue;
        }
        let current = session.current_or_ready().map(|wait| wait.event);
        for (event, total) in session.totals() {
            rows.push(vec![
                Datum::Int4(pid),
                text(if backend.is_some() { "client backend" } else { session.name() }),
                class_of(event),
                text(event.name()),
                int(total.count),
                ms(total.total_ns),
                ms(total.max_ns),
                Datum::Bool(current == Some(event)),
            ]);
        }
    }
    rows
}

/// One row for each class of latches and mutexes that was ever waited for.
fn latches(_: &Run<'_>) -> Vec<Row> {
    let now_ns = waits::now_ns();
    let is_known = |class: &ClassStats| class.slow > 0 || class.waiting > 0 || class.holds > 0;
    let rows = classes().into_iter().filter(is_known).map(|class| {
        let holder = class.holder.as_ref();
        vec![
            text(class.name),
            int(class.slow),
            int(class.parks),
            ms(class.spin_ns),
            ms(class.park_ns),
            ms(class.max_ns),
            int(class.waiting),
            holder.map_or(Datum::Null, |holder| int(holder.session)),
            holder.map_or(Datum::Null, |holder| ms(now_ns.saturating_sub(holder.since_ns))),
            opt(holder.map(|holder| holder.site.as_str())),
            if class.holds > 0 { int(class.holds) } else { Datum::Null },
            if class.holds > 0 { ms(class.hold_max_ns) } else { Datum::Null },
        ]
    });
    rows.collect()
}

/// What a role may see of statements: its own, or all. A session that works as another role than its login sees that role's: behind one login
/// may stand many.
pub(super) struct VisibleStatements<'r> {
    run: &'r Run<'r>,
    all: bool,
}

impl<'r> VisibleStatements<'r> {
    pub(super) fn new(run: &'r Run<'r>) -> Self {
        VisibleStatements { run, all: Judge::of(run.core, &run.names.catalog).may_watch(0) }
    }

    pub(super) fn may(&self, user: u32) -> bool {
        self.all || self.run.names.role == Some(user)
    }

    pub(super) fn text(&self, user: u32, shown: &str) -> Datum {
        text(if self.may(user) { shown } else { HIDDEN_TEXT })
    }
}

fn database_name(catalog: &Catalog, oid: u32) -> Datum {
    match catalog.get(oid).map(|object| &**object) {
        Some(Object::Database(database)) => text(&database.name),
        _ => Datum::Null,
    }
}

/// Waits of a statement in one text, the longest first.
fn profile(cost: &Cost) -> String {
    let mut waits = cost.waits.clone();
    waits.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    let parts = waits.iter().take(5);
    let parts = parts.map(|(event, count, ns)| format!("{} {:.3} ms in {count}", event.row().legend, *ns as f64 / 1e6));
    parts.collect::<Vec<_>>().join("; ")
}

/// One row for each digest, role, database and application; what took most time first.
fn statements(run: &Run<'_>) -> Vec<Row> {
    let seen = VisibleStatements::new(run);
    let catalog = &run.names.catalog;
    let mut all = run.core.backends.statements.all();
    all.sort_by_key(|cost| std::cmp::Reverse(cost.total_ns));
    let rows = all.iter().map(|cost| {
        let calls = cost.calls.max(1);
        let sample = &cost.sample;
        let has_sample = !sample.text.is_empty();
        vec![
            if seen.may(cost.user) { Datum::Int8(cost.digest.id as i64) } else { Datum::Null },
            seen.text(cost.user, &cost.digest.text),
            text(&cost.application),
            text(&role_name(run, cost.user)),
            database_name(catalog, cost.database),
            int(cost.calls),
            int(cost.errors),
            int(cost.rows),
            ms(cost.total_ns),
            ms(cost.total_ns / calls),
            ms(cost.quantile_ns(0.5)),
            ms(cost.quantile_ns(0.95)),
            ms(cost.quantile_ns(0.99)),
            ms(cost.max_ns),
            ms(cost.waited_ns()),
            text(&profile(cost)),
            Datum::TimestampTz(cost.first_us - EPOCH_US),
            int(cost.work.examined),
            int(cost.work.full_scans),
            int(cost.work.missed_index),
            int(cost.work.repeated),
            int(cost.work.series),
            text(&cost.digest.tags),
            ms(cost.min_ns.min(cost.max_ns)),
            ms(cost.quantile_ns(0.999)),
            ms(cost.cpu_ns),
            ms(cost.waited_in_ns(WaitClass::Lock)),
            int(cost.warnings),
            Datum::TimestampTz(cost.last_us - EPOCH_US),
            if has_sample { seen.text(cost.user, &sample.text) } else { Datum::Null },
            if has_sample { Datum::TimestampTz(sample.ended_us - EPOCH_US) } else { Datum::Null },
            if has_sample { ms(sample.ns) } else { Datum::Null },
            int(cost.used.pages_hit),
            int(cost.used.pages_read),
            int(cost.used.pages_dirtied),
            int(cost.used.temp_read),
            int(cost.used.temp_written),
            int(cost.used.log_records),
            int(cost.used.log_bytes),
        ]
    });
    rows.collect()
}

/// One row for each digest and event.
fn statement_waits(run: &Run<'_>) -> Vec<Row> {
    let seen = VisibleStatements::new(run);
    let all = run.core.backends.statements.all();
    let rows = all.iter().flat_map(|cost| {
        let seen = &seen;
        cost.waits.iter().map(move |(event, count, ns)| {
            vec![
                if seen.may(cost.user) { Datum::Int8(cost.digest.id as i64) } else { Datum::Null },
                text(&cost.application),
                class_of(*event),
                text(event.name()),
                int(*count),
                ms(*ns),
                Datum::Float8((*ns * 1_000 / cost.total_ns.max(1)) as f64 / 10.0),
            ]
        })
    });
    rows.collect()
}

/// Samples, oldest first.
fn session_history(run: &Run<'_>) -> Vec<Row> {
    let seen = VisibleStatements::new(run);
    let mut texts = HashMap::new();
    for cost in run.core.backends.statements.all() {
        texts.entry(cost.digest.id).or_insert(cost.digest);
    }
    let samples = run.core.backends.samples.all();
    let rows = samples.iter().filter(|sample| seen.may(sample.user)).map(|sample| {
        let (database, application) = &*sample.names;
        vec![
            Datum::TimestampTz(sample.at_us - EPOCH_US),
            Datum::Int4(sample.pid),
            text(&role_name(run, sample.user)),
            text(database),
            text(application),
            sample.event.map_or(Datum::Null, class_of),
            opt(sample.event.map(|event| event.name())),
            if sample.behind == 0 { Datum::Null } else { Datum::Int4(sample.behind) },
            Datum::Int8(sample.query as i64),
            opt(texts.get(&sample.query).map(|digest| &*digest.text)),
            Datum::Float8(f64::from(sample.weight)),
        ]
    });
    rows.collect()
}

/// pg_stat_statements 1.10: entries of one digest, role and database are one row, whatever the application. The log has no images of whole pages,
/// and temporary tables have their pages in the same cache as others.
fn pg_stat_statements(run: &Run<'_>) -> Vec<Row> {
    let seen = VisibleStatements::new(run);
    let mut by_key: HashMap<(u64, u32, u32), Cost> = HashMap::new();
    for cost in run.core.backends.statements.all() {
        match by_key.get_mut(&(cost.digest.id, cost.user, cost.database)) {
            Some(sum) => sum.add(&cost),
            None => drop(by_key.insert((cost.digest.id, cost.user, cost.database), cost)),
        }
    }
    by_key.values().filter(|cost| cost.calls > cost.errors).map(|cost| stat_row(cost, &seen)).collect()
}

fn stat_row(cost: &Cost, seen: &VisibleStatements<'_>) -> Row {
    let float = |ns: u64| Datum::Float8(ns as f64 / 1e6);
    let waited = |events: &[WaitEvent]| {
        let waits = cost.waits.iter().filter(|(event, ..)| events.contains(event));
        waits.fold((0, 0), |(count, ns), (_, more, more_ns)| (count + more, ns + more_ns))
    };
    let (_, read_ns) = waited(&[WaitEvent::DataFileRead]);
    let (written, written_ns) = waited(&[WaitEvent::DataFileWrite]);
    let (_, temp_read_ns) = waited(&[WaitEvent::BufFileRead]);
    let (_, temp_written_ns) = waited(&[WaitEvent::BufFileWrite]);
    let (used, zero, none) = (&cost.used, || Datum::Int8(0), || Datum::Float8(0.0));
    let pages = |bytes: u64| int(bytes.div_ceil(PAGE_BYTES as u64));
    let mean = cost.total_ns as f64 / 1e6 / cost.calls.max(1) as f64;
    vec![
        Datum::Oid(cost.user),
        Datum::Oid(cost.database),
        Datum::Bool(true),
        if seen.may(cost.user) { Datum::Int8(cost.digest.id as i64) } else { Datum::Null },
        seen.text(cost.user, &cost.digest.text),
        // Planning is not timed apart, which PostgreSQL does not do by default either.
        zero(),
        none(),
        none(),
        none(),
        none(),
        none(),
        int(cost.calls - cost.errors),
        float(cost.total_ns),
        float(cost.min_ns),
        float(cost.max_ns),
        Datum::Float8(mean),
        Datum::Float8(cost.deviation_ms()),
        int(cost.rows),
        int(used.pages_hit),
        int(used.pages_read),
        int(used.pages_dirtied),
        int(written),
        zero(),
        zero(),
        zero(),
        zero(),
        pages(used.temp_read),
        pages(used.temp_written),
        float(read_ns),
        float(written_ns),
        float(temp_read_ns),
        float(temp_written_ns),
        int(used.log_records),
        zero(),
        Datum::numeric(Numeric::from(used.log_bytes as i64)),
        zero(),
        none(),
        zero(),
        none(),
        zero(),
        none(),
        zero(),
        none(),
    ]
}

fn pg_stat_statements_info(run: &Run<'_>) -> Vec<Row> {
    let (evicted, reset_us) = run.core.backends.statements.info();
    vec![vec![int(evicted), Datum::TimestampTz(reset_us - EPOCH_US)]]
}
