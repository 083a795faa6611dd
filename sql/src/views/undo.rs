//! clearway_undo, clearway_undo_holders, clearway_undo_alarms: what undo takes, who holds it, and who was named when it exceeded its memory.

use super::{SystemView, opt};
use crate::exec::{Row, Run};
use crate::types::{Datum, oid};
use clearway_txn::mvcc::holders::{HoldKind, Holder};

use oid::{FLOAT8, INT4, INT8, TEXT, TIMESTAMPTZ};

pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 12_920,
        schema: "pg_catalog",
        name: "clearway_undo",
        columns: &[
            ("memory_bytes", INT8),
            ("budget_bytes", INT8),
            ("file_bytes", INT8),
            ("written_bytes", INT8),
            ("spans", INT8),
            ("alarms", INT8),
            ("pending_chains", INT8),
        ],
        rows: undo,
    },
    SystemView {
        oid: 12_921,
        schema: "pg_catalog",
        name: "clearway_undo_holders",
        columns: &[
            ("pid", INT4),
            ("kind", TEXT),
            ("txn", INT8),
            ("read_lsn", INT8),
            ("age_s", FLOAT8),
            ("bytes", INT8),
            ("query", TEXT),
        ],
        rows: holders,
    },
    SystemView {
        oid: 12_922,
        schema: "pg_catalog",
        name: "clearway_undo_alarms",
        columns: &[("at", TIMESTAMPTZ), ("pid", INT4), ("message", TEXT)],
        rows: alarms,
    },
];

fn int(n: u64) -> Datum {
    Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX))
}

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
    run.core.db.transactions().book().holders().iter().map(holder).collect()
}

fn holder(holder: &Holder) -> Row {
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
        opt(holder.statement.as_deref()),
    ]
}

fn alarms(run: &Run<'_>) -> Vec<Row> {
    let row = |alarm: &clearway_txn::mvcc::holders::Alarm| {
        vec![
            Datum::TimestampTz(alarm.at_us - 946_684_800_000_000),
            alarm.holder.as_ref().map_or(Datum::Null, |holder| Datum::Int4(holder.pid)),
            Datum::text(alarm.to_string()),
        ]
    };
    run.core.db.transactions().book().alarms().iter().map(row).collect()
}
