//! The rows of clearway_lock_waits, clearway_locks and clearway_transactions: which session blocks which, and which
//! statement took the lock.

use super::activity::{HIDDEN_TEXT, may_watch};
use super::locked::Namer;
use super::{EPOCH_US, ViewOf, int, text};
use clearway_base::waits;
use clearway_context::core::now;
use clearway_exec::{Row, Run};
use clearway_txn::lockmgr::history::{Outcome, Party, WaitRecord};
use clearway_txn::mvcc::holders::HoldKind;
use clearway_values::types::Datum;
use std::collections::HashMap;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "clearway_lock_waits", lock_waits),
    ("pg_catalog", "clearway_locks", locks),
    ("pg_catalog", "clearway_transactions", transactions),
];

/// Milliseconds: to the microsecond, and below one millisecond to the nanosecond.
pub(super) fn ms(ns: u64) -> Datum {
    let shown_ns = if ns < 1_000_000 { ns } else { ns / 1_000 * 1_000 };
    Datum::Float8(shown_ns as f64 / 1e6)
}

pub(super) fn number(n: u32) -> Datum {
    Datum::Int4(i32::try_from(n).unwrap_or(i32::MAX))
}

/// A text; the empty text means unknown and becomes null.
pub(super) fn some(s: &str) -> Datum {
    if s.is_empty() { Datum::Null } else { text(s) }
}

/// The duration below which a part of the waits lies, by a histogram of powers of two: the bucket's geometric middle.
pub(super) fn quantile(histogram: &[u64], part: f64) -> u64 {
    let total: u64 = histogram.iter().sum();
    let wanted = (total as f64 * part).ceil() as u64;
    let mut seen = 0;
    for (i, count) in histogram.iter().enumerate() {
        seen += count;
        if seen >= wanted.max(1) {
            return (2f64.powi(i as i32) * std::f64::consts::SQRT_2) as u64;
        }
    }
    0
}

/// A text of a session, for roles that may watch it.
struct Shown<'r> {
    run: &'r Run<'r>,
    known: HashMap<i32, bool>,
}

impl Shown<'_> {
    fn may(&mut self, pid: i32) -> bool {
        let run = self.run;
        *self.known.entry(pid).or_insert_with(|| may_watch(run, pid))
    }

    fn text(&mut self, pid: i32, s: Option<&str>) -> Datum {
        match s {
            Some(s) if !s.is_empty() => text(if self.may(pid) { s } else { HIDDEN_TEXT }),
            _ => Datum::Null,
        }
    }
}

/// Live waits first, then what was, latest first.
fn lock_waits(run: &Run<'_>) -> Vec<Row> {
    let locks = run.core.db.transactions().locks();
    let namer = Namer::new(&run.names.catalog);
    let mut shown = Shown { run, known: HashMap::new() };
    let past = locks.history().records();
    let live = locks.waits();
    let all = live.iter().chain(past.iter().rev().map(|record| &**record));
    all.map(|record| wait_row(record, &namer, &mut shown)).collect()
}

fn party(p: Option<&Party>, shown: &mut Shown<'_>) -> [Datum; 6] {
    let Some(p) = p else { return [const { Datum::Null }; 6] };
    [
        Datum::Int4(p.pid),
        some(&p.facts.application),
        some(&p.facts.user),
        shown.text(p.pid, p.taken_by.as_deref()),
        if p.taken_by.is_some() { number(p.ago) } else { Datum::Null },
        shown.text(p.pid, p.latest.as_deref()),
    ]
}

fn wait_row(record: &WaitRecord, namer: &Namer<'_>, shown: &mut Shown<'_>) -> Row {
    let waits = record.outcome == Outcome::Waiting;
    let began = record.began_us - EPOCH_US;
    let locked = namer.name(&record.tag);
    let me = &record.waiter;
    let root = record.root.as_ref();
    let held: Vec<&str> = record.blocker.iter().flat_map(|b| b.holds.iter()).map(|mode| mode.name()).collect();
    let mut row = vec![
        if record.number == 0 { Datum::Null } else { int(record.number) },
        Datum::TimestampTz(began),
        if waits { Datum::Null } else { Datum::TimestampTz(began + (record.waited_ns / 1_000) as i64) },
        text(record.outcome.name()),
        ms(record.waited_ns),
        int(record.count),
        ms(record.total_ns),
        if record.count == 1 { ms(record.waited_ns) } else { ms(quantile(&record.histogram, 0.5)) },
        if record.count == 1 { ms(record.waited_ns) } else { ms(quantile(&record.histogram, 0.99)) },
        text(locked.kind),
        text(&locked.object),
        shown.text(me.pid, locked.key.as_deref()),
        text(record.mode.name()),
        some(&held.join(", ")),
        Datum::Int4(me.pid),
        some(&me.facts.application),
        some(&me.facts.user),
        some(&me.facts.database),
        shown.text(me.pid, me.latest.as_deref()),
        shown.text(me.pid, Some(&me.facts.parameters)),
    ];
    row.extend(party(record.blocker.as_ref(), shown));
    row.extend(party(root, shown));
    row.extend([
        root.map_or(Datum::Null, |root| some(&root.facts.state)),
        root.map_or(Datum::Null, |root| ms(root.age_ns)),
        root.map_or(Datum::Null, |root| ms(root.idle_ns)),
        number(record.depth),
    ]);
    row
}

/// Every lock that the lock table or a session's list knows, with the statement that took it.
fn locks(run: &Run<'_>) -> Vec<Row> {
    let namer = Namer::new(&run.names.catalog);
    let mut shown = Shown { run, known: HashMap::new() };
    let list = run.core.db.transactions().locks().locks();
    let rows = list.iter().map(|lock| {
        let locked = namer.name(&lock.tag);
        let since = now() - (waits::now_ns().saturating_sub(lock.since_ns) / 1_000) as i64;
        vec![
            Datum::Int4(lock.pid),
            text(locked.kind),
            text(&locked.object),
            shown.text(lock.pid, locked.key.as_deref()),
            text(lock.mode.name()),
            Datum::Bool(lock.granted),
            Datum::TimestampTz(since),
            shown.text(lock.pid, lock.statement.as_deref()),
            if lock.statement.is_some() { number(lock.ago) } else { Datum::Null },
            text(&lock.virtual_id.to_string()),
            lock.txn.map_or(Datum::Null, |txn| int(txn.0)),
        ]
    });
    rows.collect()
}

/// The transactions that are open, the oldest first.
fn transactions(run: &Run<'_>) -> Vec<Row> {
    let all = run.core.db.transactions();
    let mut counts: HashMap<i32, (i32, bool)> = HashMap::new();
    for lock in all.locks().locks() {
        let entry = counts.entry(lock.pid).or_default();
        entry.0 += i32::from(lock.granted);
        entry.1 |= !lock.granted;
    }
    let holders = all.book().holders().into_iter().filter(|holder| holder.kind == HoldKind::Transaction);
    let undo: HashMap<i32, u64> = holders.map(|holder| (holder.pid, holder.bytes)).collect();
    let mut shown = Shown { run, known: HashMap::new() };
    let now_us = waits::wall_us();
    let mut open: Vec<(i64, Row)> = Vec::new();
    for backend in run.core.backends.all() {
        let activity = backend.activity.lock().clone();
        let Some(owner) = backend.owner.get().filter(|_| activity.xact_start_us != 0) else { continue };
        let (locks, waiting) = counts.get(&backend.pid).copied().unwrap_or_default();
        let statements: Vec<String> = owner.statements().iter().map(|statement| statement.to_string()).collect();
        let since = |us: i64| Datum::Float8((now_us - us).max(0) as f64 / 1e3);
        let row = vec![
            Datum::Int4(backend.pid),
            text(&owner.virtual_id().to_string()),
            owner.txn().map_or(Datum::Null, |txn| int(txn.0)),
            some(&activity.application_name),
            text(&backend.user),
            text(&backend.database),
            text(activity.state.name()),
            Datum::TimestampTz(activity.xact_start_us - EPOCH_US),
            since(activity.xact_start_us),
            since(activity.state_change_us),
            Datum::Int4(locks),
            Datum::Bool(waiting),
            int(undo.get(&backend.pid).copied().unwrap_or(0)),
            shown.text(backend.pid, Some(&statements.join(";\n"))),
            shown.text(backend.pid, Some(&activity.query)),
        ];
        open.push((activity.xact_start_us, row));
    }
    open.sort_by_key(|(start, _)| *start);
    open.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_stand_in_the_middle_of_their_bucket() {
        let mut histogram = [0u64; 40];
        assert_eq!(quantile(&histogram, 0.5), 0);
        histogram[10] = 98;
        histogram[20] = 2;
        assert_eq!(quantile(&histogram, 0.5), 1448);
        assert_eq!(quantile(&histogram, 0.99), 1_482_910);
    }
}
