//! The rows of clearway_log, clearway_log_holders and clearway_archive: how far the write-ahead log is, which holders keep old parts of
//! it, and which part is in the archive.

use super::activity::HIDDEN_TEXT;
use super::{ViewOf, int};
use clearway_context::privileges::Judge;
use clearway_exec::{Row, Run};
use clearway_storage::backup::ARCHIVE_HOLDER;
use clearway_values::types::Datum;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "clearway_log", log),
    ("pg_catalog", "clearway_log_holders", holders),
    ("pg_catalog", "clearway_archive", archive),
];

fn log(run: &Run<'_>) -> Vec<Row> {
    let wal = run.core.db.transactions().store().wal();
    let stats = wal.stats();
    let numbers = [
        wal.end_lsn().0,
        wal.durable_lsn().0,
        u64::from(wal.epoch()),
        wal.live_bytes(),
        stats.file_bytes,
        stats.undo_reserved_bytes,
        wal.undo_room().pages(),
        stats.flushes,
    ];
    vec![numbers.into_iter().map(int).collect()]
}

/// Recovery first, which has no limit; then the holders with a name.
fn holders(run: &Run<'_>) -> Vec<Row> {
    let wal = run.core.db.transactions().store().wal();
    let end = wal.end_lsn().0;
    let held = wal.live_bytes();
    let recovery = vec![Datum::text("recovery"), int(end - held.min(end)), int(held), Datum::Null, Datum::Bool(false)];
    let others = wal.retention().rows().into_iter().map(|row| {
        let held = if row.lost { 0 } else { end.saturating_sub(row.needs.0) };
        let limit = if row.limit_bytes == u64::MAX { Datum::Null } else { int(row.limit_bytes) };
        vec![Datum::text(row.name), int(row.needs.0), int(held), limit, Datum::Bool(row.lost)]
    });
    std::iter::once(recovery).chain(others).collect()
}

/// One row; with no archive its state is `off`.
fn archive(run: &Run<'_>) -> Vec<Row> {
    let store = run.core.db.transactions().store();
    let row = store.archive().row();
    let off = row.target.is_empty();
    let (end, holders) = (store.wal().end_lsn().0, store.wal().retention().rows());
    let holder = holders.iter().find(|holder| holder.name == ARCHIVE_HOLDER && !holder.lost);
    let held = holder.map_or(0, |holder| end.saturating_sub(holder.needs.0));
    let number = |n: u64| if off { Datum::Null } else { int(n) };
    let time = |us: i64| if us == 0 { Datum::Null } else { Datum::TimestampTz(us - 946_684_800_000_000) };
    // Where the archive is, and what an error says of it, is for roles that may watch all.
    let all = Judge::of(run.core, &run.names.catalog).may_watch(0);
    let text = |text: &str| match text {
        "" => Datum::Null,
        text => Datum::text(if all { text } else { HIDDEN_TEXT }),
    };
    vec![vec![
        text(&row.target),
        Datum::text(row.state),
        number(row.archived.0),
        number(store.wal().durable_lsn().0.saturating_sub(row.archived.0)),
        time(row.sent_us),
        number(row.pieces),
        number(row.bytes),
        number(row.failures),
        text(&row.error),
        time(row.error_us),
        if off { Datum::Null } else { Datum::text(if store.archive().is_sync() { "sync" } else { "async" }) },
        number(held),
        number(store.archive().waiting() as u64),
        row.hole.map_or(Datum::Null, |(from, _)| int(from.0)),
        row.hole.map_or(Datum::Null, |(_, to)| int(to.0)),
    ]]
}
