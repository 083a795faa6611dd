//! The rows of pg_stat_progress_create_index, _copy and _analyze: what long statements have done so far.
//!
//! # Not here
//! pg_stat_progress_vacuum, _cluster and _basebackup have no rows. Nothing is vacuumed, and rows are always in the order of their key. A
//! client takes a backup in many short statements, and reports its own progress.

use super::activity::may_watch;
use super::{ViewOf, int, text};
use clearway_engine::progress::{Shown, Work};
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_stat_progress_create_index", indexes),
    ("pg_catalog", "pg_stat_progress_copy", copies),
    ("pg_catalog", "pg_stat_progress_analyze", analyzed),
];

/// The sessions that do work of a kind: number, database and its name; what is behind that is for roles that may watch them.
fn of(run: &Run<'_>, work: Work, width: usize, row: fn(&Shown) -> Row) -> Vec<Row> {
    let mut out = Vec::new();
    for backend in run.core.backends.all() {
        let shown = backend.progress.get().and_then(|progress| progress.shown());
        let Some(shown) = shown.filter(|shown| shown.now.work == work) else { continue };
        let database = run.names.catalog.database(&backend.database).map_or(Datum::Null, |d| Datum::Oid(d.oid));
        let mut line = vec![Datum::Int4(backend.pid), database, text(&backend.database)];
        if may_watch(run, backend.pid) {
            line.extend(row(&shown));
        }
        line.resize(width, Datum::Null);
        out.push(line);
    }
    out
}

fn indexes(run: &Run<'_>) -> Vec<Row> {
    of(run, Work::Index, 16, |s| {
        let mut row = vec![Datum::Oid(s.now.table), Datum::Oid(s.now.index), text(s.now.command), text(s.now.phase)];
        // Lockers and blocks are not counted; rows are.
        row.extend([0, 0, 0, 0, 0, s.total, s.done, 0, 0].map(int));
        row
    })
}

fn copies(run: &Run<'_>) -> Vec<Row> {
    of(run, Work::Copy, 10, |s| {
        let mut row = vec![Datum::Oid(s.now.table), text(s.now.command), text("PIPE")];
        row.extend([s.bytes, 0, s.done, s.left_out].map(int));
        row
    })
}

fn analyzed(run: &Run<'_>) -> Vec<Row> {
    of(run, Work::Analyze, 12, |s| {
        let mut row = vec![Datum::Oid(s.now.table), text(s.now.phase)];
        row.extend([s.total, s.done, 0, 0, 0, 0].map(int));
        row.push(Datum::Oid(0));
        row
    })
}
