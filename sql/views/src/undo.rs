//! The rows of clearway_undo, clearway_undo_holders and clearway_undo_alarms: how much undo there is, which transactions keep it, and
//! which were named when it exceeded its memory.

use super::activity::{HIDDEN_TEXT, may_watch};
use super::{ViewOf, int, opt};
use clearway_context::privileges::Judge;
use clearway_exec::{Row, Run};
use clearway_txn::mvcc::holders::{HoldKind, Holder};
use clearway_values::types::Datum;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "clearway_undo", undo),
    ("pg_catalog", "clearway_undo_holders", holders),
    ("pg_catalog", "clearway_undo_alarms", alarms),
];

fn undo(run: &Run<'_>) -> Vec<Row> {
    let all = run.core.db.transactions();
    let usage = all.book().usage();
    let chains = all.store().pending_chains() as u64;
    let numbers = [
        usage.memory_bytes,
        usage.budget_bytes,
        usage.file_bytes,
        usage.written_bytes,
        usage.spans,
        usage.alarms,
        chains,
    ];
    vec![numbers.into_iter().map(int).collect()]
}

fn holders(run: &Run<'_>) -> Vec<Row> {
    run.core.db.transactions().book().holders().iter().map(|h| holder(run, h)).collect()
}

fn holder(run: &Run<'_>, holder: &Holder) -> Row {
    let kind = match holder.kind {
        HoldKind::Snapshot => "snapshot",
        HoldKind::Transaction => "transaction",
    };
    vec![
        Datum::Int4(holder.pid),
        Datum::text(kind),
        holder.txn.map_or(Datum::Null, |txn| int(txn.0)),
        holder.read_lsn.map_or(Datum::Null, |lsn| int(lsn.0)),
        Datum::Float8(holder.age_ns as f64 / 1e9),
        int(holder.bytes),
        opt(holder.statement.as_deref().map(|text| if may_watch(run, holder.pid) { text } else { HIDDEN_TEXT })),
    ]
}

fn alarms(run: &Run<'_>) -> Vec<Row> {
    // An alarm quotes the statement of a session that may be gone by now.
    let all = Judge::of(run.core, &run.names.catalog).may_watch(0);
    let row = |alarm: &clearway_txn::mvcc::holders::Alarm| {
        vec![
            Datum::TimestampTz(alarm.at_us - 946_684_800_000_000),
            alarm.holder.as_ref().map_or(Datum::Null, |holder| Datum::Int4(holder.pid)),
            Datum::text(if all { alarm.to_string() } else { HIDDEN_TEXT.to_owned() }),
        ]
    };
    run.core.db.transactions().book().alarms().iter().map(row).collect()
}
