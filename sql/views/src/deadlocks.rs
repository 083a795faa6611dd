//! The rows of clearway_deadlocks and clearway_deadlock_counters: the archive of deadlocks.

use super::activity::{HIDDEN_TEXT, may_watch};
use super::locked::Namer;
use super::{ViewOf, int};
use clearway_exec::{Row, Run};
use clearway_txn::lockmgr::report::{DeadlockReport, Participant};
use clearway_values::types::Datum;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] =
    &[("pg_catalog", "clearway_deadlocks", deadlocks), ("pg_catalog", "clearway_deadlock_counters", counters)];

fn counters(run: &Run<'_>) -> Vec<Row> {
    let archive = run.core.db.transactions().locks().archive();
    let counts = [archive.searches(), archive.deadlocks(), archive.reordered(), archive.missed_by_fast_path()];
    vec![counts.map(int).into()]
}

/// One row for each participant, the victim's first.
fn deadlocks(run: &Run<'_>) -> Vec<Row> {
    let reports = run.core.db.transactions().locks().archive().reports();
    let namer = Namer::new(&run.names.catalog);
    let rows = |report: &DeadlockReport| -> Vec<Row> {
        let of = report.participants.iter().enumerate();
        of.map(|(at, participant)| {
            let mut row = row(&namer, report, at, participant);
            // Keys are data, statements hold data.
            if !may_watch(run, participant.pid) {
                DATA.iter().for_each(|column| row[*column] = Datum::text(HIDDEN_TEXT));
            }
            row
        })
        .collect()
    };
    reports.iter().flat_map(|report| rows(report)).collect()
}

/// The columns that tell of keys and statements.
const DATA: [usize; 5] = [8, 12, 14, 15, 19];

fn or_null(s: &str) -> Datum {
    if s.is_empty() { Datum::Null } else { Datum::text(s) }
}

fn row(namer: &Namer<'_>, report: &DeadlockReport, at: usize, p: &Participant) -> Row {
    let next = &report.participants[(at + 1) % report.participants.len()];
    let statements: Vec<&str> = p.statements.iter().map(|s| &**s).collect();
    let modes: Vec<&str> = p.held_modes.iter().map(|mode| mode.name()).collect();
    vec![
        int(report.number),
        Datum::TimestampTz(report.at_us - 946_684_800_000_000),
        int(report.found_in_ns / 1_000),
        Datum::Bool(report.by_background_scan),
        Datum::Int4(at as i32 + 1),
        Datum::Bool(at == 0),
        Datum::Int4(p.pid),
        Datum::text(p.virtual_id.to_string()),
        Datum::text(namer.name(&p.wanted).text()),
        Datum::text(p.mode.name()),
        int(p.waited_ns / 1_000),
        Datum::Int4(next.pid),
        Datum::text(namer.name(&p.held).text()),
        Datum::text(modes.join(", ")),
        p.held_by_statement.as_deref().map_or(Datum::Null, Datum::text),
        Datum::text(statements.join(";\n")),
        or_null(&p.facts.application),
        or_null(&p.facts.user),
        or_null(&p.facts.database),
        or_null(&p.facts.parameters),
        if at == 0 { or_null(&report.context) } else { Datum::Null },
    ]
}
