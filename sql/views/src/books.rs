//! The rows of clearway_time: elapsed = processor + run queue + waits + what is unaccounted, of the server, of each session and of each
//! digest.

use super::activity::may_watch;
use super::waits::VisibleStatements;
use super::{ViewOf, text};
use clearway_base::waits::{self, Measure, SessionTime};
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;
use std::sync::atomic::Ordering::Relaxed;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "clearway_time", all)];

fn ms(ns: u64) -> Datum {
    Datum::Float8(ns as f64 / 1e6)
}

/// Scope, pid, digest, application; then the division.
fn row(head: [Datum; 4], time: &SessionTime) -> Row {
    let unaccounted = time.unaccounted_ns() as f64;
    let percent = (unaccounted * 10_000.0 / time.busy_ns().max(1) as f64).round() / 100.0;
    let parts = [time.busy_ns(), time.cpu_ns, time.run_queue_ns, time.wait_ns, time.io_ns, time.durable_ns];
    let mut row: Row = head.into();
    row.extend(parts.map(ms));
    row.extend([Datum::Float8(unaccounted / 1e6), Datum::Float8(percent)]);
    row
}

fn all(run: &Run<'_>) -> Vec<Row> {
    let now_ns = waits::now_ns();
    waits::settle(&run.core.backend.waits, now_ns, Measure::RunDelay);
    let mut server = waits::ended_time();
    let mut rows = Vec::new();
    for backend in run.core.backends.all().iter().filter(|backend| backend.role.load(Relaxed) != 0) {
        let time = backend.waits.time(now_ns);
        server.add(&time);
        if may_watch(run, backend.pid) {
            let application = backend.activity.lock().application_name.clone();
            rows.push(row([text("session"), Datum::Int4(backend.pid), Datum::Null, text(&application)], &time));
        }
    }
    // What the whole process has computed; what its sessions have not is that of the background threads and of the runtime.
    let process = SessionTime { cpu_ns: waits::clock::process_cpu_ns(), ..SessionTime::NONE };
    let mut process = row([text("process"), Datum::Null, Datum::Null, Datum::Null], &process);
    process.iter_mut().enumerate().filter(|(at, _)| *at == 4 || *at > 5).for_each(|(_, value)| *value = Datum::Null);
    let seen = VisibleStatements::new(run);
    for cost in run.core.backends.statements.all() {
        let mut time = SessionTime { elapsed_ns: cost.busy_ns, cpu_ns: cost.cpu_ns, ..SessionTime::NONE };
        cost.waits.iter().for_each(|(event, _, ns)| time.waited(*event, *ns));
        let digest = if seen.may(cost.user) { Datum::Int8(cost.digest.id as i64) } else { Datum::Null };
        // Kept by a version that did not divide: nothing to say.
        if cost.busy_ns > 0 {
            rows.push(row([text("statement"), Datum::Null, digest, text(&cost.application)], &time));
        }
    }
    rows.splice(0..0, [row([text("server"), Datum::Null, Datum::Null, Datum::Null], &server), process]);
    rows
}
