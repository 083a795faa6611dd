//! The rows of pg_stat_database, pg_stat_bgwriter, pg_stat_wal, pg_stat_archiver, pg_stat_ssl and pg_prepared_statements: figures of the
//! whole server, of its databases and of its sessions.

use super::activity::{HIDDEN_TEXT, may_watch};
use super::{ViewOf, int, opt, text, time};
use clearway_base::waits::{self, WaitEvent};
use clearway_context::privileges::Judge;
use clearway_engine::catalog::{Catalog, Object};
use clearway_engine::table::usage::DatabaseUse;
use clearway_exec::{Row, Run};
use clearway_values::types::datum::Array;
use clearway_values::types::numeric::Numeric;
use clearway_values::types::{Datum, oid};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_stat_database", databases),
    ("pg_catalog", "pg_stat_database_conflicts", conflicts),
    ("pg_catalog", "pg_stat_bgwriter", bgwriter),
    ("pg_catalog", "pg_stat_wal", wal),
    ("pg_catalog", "pg_stat_archiver", archiver),
    ("pg_catalog", "pg_stat_ssl", ssl),
    ("pg_catalog", "pg_stat_gssapi", gssapi),
    ("pg_catalog", "pg_prepared_statements", prepared),
    ("pg_catalog", "pg_cursors", cursors),
];

fn ms(us: i64) -> Datum {
    Datum::Float8(us as f64 / 1e3)
}

fn all_databases(catalog: &Catalog) -> impl Iterator<Item = (u32, &str)> {
    catalog.objects().filter_map(|object| match &**object {
        Object::Database(database) => Some((database.oid, database.name.as_str())),
        _ => None,
    })
}

/// Pages read from disk for each database, by the trees of its tables and indexes.
fn reads_by_database(run: &Run<'_>) -> HashMap<u32, u64> {
    let reads = run.core.db.transactions().store().pool().reads_by_tree();
    let mut all = HashMap::new();
    for object in run.names.catalog.objects() {
        let (database, tree) = match &**object {
            Object::Relation(r) => (r.database, r.tree),
            // Its tree is the table's.
            Object::Index(i) if !i.primary => (i.database, i.tree),
            _ => continue,
        };
        *all.entry(database).or_default() += reads.get(&clearway_storage::ids::TreeId(tree)).copied().unwrap_or(0);
    }
    all
}

/// One row for each database, and one for what belongs to none.
fn databases(run: &Run<'_>) -> Vec<Row> {
    let backends = &run.core.backends;
    let (uses, reads) = (run.core.db.usage().databases(), reads_by_database(run));
    let open = backends.all();
    let read_ms = waits::totals()[WaitEvent::DataFileRead.index()].total_ns as f64 / 1e6;
    let all_reads: u64 = reads.values().sum();
    let shared = (0, None);
    let named = all_databases(&run.names.catalog).map(|(oid, name)| (oid, Some(name)));
    let rows = std::iter::once(shared).chain(named).map(|(oid, name)| {
        let used = uses.get(&oid).copied().unwrap_or_default();
        let read = reads.get(&oid).copied().unwrap_or(0);
        let sessions = backends.sessions_of(name.unwrap_or(""));
        let connected = open.iter().filter(|b| name == Some(b.database.as_str())).count();
        let DatabaseUse { commits, rollbacks, all } = used;
        let mut row = vec![Datum::Oid(oid), opt(name), name.map_or(Datum::Null, |_| Datum::Int4(connected as i32))];
        let returned = all.whole_rows + all.lookup_rows;
        let counts =
            [commits, rollbacks, read, all.leaves.saturating_sub(read), returned, all.lookup_rows + all.fetched];
        row.extend(counts.map(int));
        row.extend([all.inserted, all.updated, all.deleted].map(int));
        let temporary = run.core.db.transactions().store().temp_files().written_by(oid);
        // Nothing conflicts with a standby's replay. Pages always have checksums; a page that fails its
        // own is not counted, the statement that needs it fails.
        row.extend([Datum::Int8(0), int(temporary.files), int(temporary.bytes), int(sessions.deadlocks)]);
        row.extend([Datum::Null, Datum::Null]);
        // Reads are timed for the whole server; each database has its part of them by number. It writes pages in the background.
        row.extend([Datum::Float8(read_ms * read as f64 / all_reads.max(1) as f64), Datum::Float8(0.0)]);
        row.extend([sessions.session_us, sessions.spent.active_us, sessions.spent.idle_us].map(ms));
        row.extend([int(sessions.sessions), Datum::Null, Datum::Null, int(sessions.killed), time(sessions.reset_us)]);
        row
    });
    rows.collect()
}

fn conflicts(run: &Run<'_>) -> Vec<Row> {
    let row = |(oid, name)| {
        let mut row = vec![Datum::Oid(oid), text(name)];
        row.resize(7, Datum::Int8(0));
        row
    };
    all_databases(&run.names.catalog).map(row).collect()
}

/// Figures since the last reset of their view, and when that was.
fn since_reset<const N: usize>(run: &Run<'_>, view: &'static str, now: [f64; N]) -> ([f64; N], Datum) {
    let baselines = run.core.backends.baselines.lock();
    let Some((before, at_us)) = baselines.get(view) else {
        return (now, Datum::TimestampTz(run.core.backends.started));
    };
    let mut since = now;
    since.iter_mut().zip(before).for_each(|(now, before)| *now = (*now - before).max(0.0));
    (since, time(*at_us))
}

/// The figures of pg_stat_bgwriter: checkpoints that came by themselves and that were asked for, time writing and syncing, pages of
/// checkpoints, of the cleaner, pages that came into memory.
fn bgwriter_figures(run: &Run<'_>) -> [f64; 7] {
    let store = run.core.db.transactions().store();
    let (taken, pages) = (store.checkpoints_taken(), store.pool().counters().view());
    [
        taken.timed as f64,
        taken.requested as f64,
        taken.write_ns as f64 / 1e6,
        taken.sync_ns as f64 / 1e6,
        taken.pages as f64,
        pages.pages_written.saturating_sub(taken.pages) as f64,
        (pages.misses + pages.new_pages) as f64,
    ]
}

fn bgwriter(run: &Run<'_>) -> Vec<Row> {
    let ([timed, requested, write, sync, pages, cleaned, allocated], reset) =
        since_reset(run, "bgwriter", bgwriter_figures(run));
    let count = |n: f64| Datum::Int8(n as i64);
    vec![vec![
        count(timed),
        count(requested),
        Datum::Float8(write),
        Datum::Float8(sync),
        count(pages),
        count(cleaned),
        // The cleaner writes for as long as there is need; sessions never write pages.
        count(0.0),
        count(0.0),
        count(0.0),
        count(allocated),
        reset,
    ]]
}

/// The figures of pg_stat_wal: records, bytes, waits for room in the buffer; writes, syncs, and their times.
fn wal_figures(run: &Run<'_>) -> [f64; 6] {
    let wal = run.core.db.transactions().store().wal();
    let totals = waits::totals();
    let of = |event: WaitEvent| totals[event.index()];
    let (write, sync) = (of(WaitEvent::WalWrite), of(WaitEvent::WalSync));
    [
        wal.end_lsn().0 as f64 - run.core.db.opened_at().0 as f64,
        of(WaitEvent::WalCredit).count as f64,
        write.count as f64,
        sync.count as f64,
        write.total_ns as f64 / 1e6,
        sync.total_ns as f64 / 1e6,
    ]
}

fn wal(run: &Run<'_>) -> Vec<Row> {
    let ([bytes, full, writes, syncs, write_ms, sync_ms], reset) = since_reset(run, "wal", wal_figures(run));
    let count = |n: f64| Datum::Int8(n as i64);
    vec![vec![
        // Records are not counted. Pages are protected by the double write, not by images in the log.
        Datum::Null,
        count(0.0),
        Datum::numeric(Numeric::from(bytes as i64)),
        count(full),
        count(writes),
        count(syncs),
        Datum::Float8(write_ms),
        Datum::Float8(sync_ms),
        reset,
    ]]
}

fn archiver(run: &Run<'_>) -> Vec<Row> {
    let row = run.core.db.transactions().store().archive().row();
    let ([pieces, failures], reset) = since_reset(run, "archiver", [row.pieces as f64, row.failures as f64]);
    // The error says where the archive is.
    let all = Judge::of(run.core, &run.names.catalog).may_watch(0);
    let error = if all { row.error.as_str() } else { HIDDEN_TEXT };
    let lsn = format!("{:X}/{:X}", row.archived.0 >> 32, row.archived.0 & 0xffff_ffff);
    vec![vec![
        Datum::Int8(pieces as i64),
        // The log is archived in pieces, which have no names of their own: up to where.
        if row.pieces == 0 { Datum::Null } else { text(&lsn) },
        time(row.sent_us),
        Datum::Int8(failures as i64),
        if row.error.is_empty() { Datum::Null } else { text(error) },
        time(row.error_us),
        reset,
    ]]
}

/// Figures of the whole server are counted from now on: `bgwriter`, `wal` or `archiver`; false for any other name.
pub fn reset_shared(run: &Run<'_>, view: &str) -> bool {
    let row = run.core.db.transactions().store().archive().row();
    let (view, figures) = match view {
        "bgwriter" => ("bgwriter", bgwriter_figures(run).to_vec()),
        "wal" => ("wal", wal_figures(run).to_vec()),
        "archiver" => ("archiver", vec![row.pieces as f64, row.failures as f64]),
        // Nothing is fetched ahead of recovery.
        "recovery_prefetch" => return true,
        _ => return false,
    };
    run.core.backends.baselines.lock().insert(view, (figures, waits::wall_us()));
    true
}

/// No connection is encrypted or authenticated by GSSAPI.
fn gssapi(run: &Run<'_>) -> Vec<Row> {
    let rows = run.core.backends.all().into_iter().filter(|b| b.role.load(Relaxed) != 0).map(|backend| {
        let no = match may_watch(run, backend.pid) {
            true => Datum::Bool(false),
            false => Datum::Null,
        };
        vec![Datum::Int4(backend.pid), no.clone(), Datum::Null, no]
    });
    rows.collect()
}

fn ssl(run: &Run<'_>) -> Vec<Row> {
    let rows = run.core.backends.all().into_iter().filter(|b| b.role.load(Relaxed) != 0).map(|backend| {
        let mut row = vec![Datum::Int4(backend.pid)];
        match &backend.tls {
            _ if !may_watch(run, backend.pid) => row.resize(8, Datum::Null),
            Some(tls) => {
                row.extend([Datum::Bool(true), text(&tls.version), text(&tls.cipher), Datum::Int4(tls.bits)]);
                row.resize(8, Datum::Null);
            }
            None => {
                row.push(Datum::Bool(false));
                row.resize(8, Datum::Null);
            }
        }
        row
    });
    rows.collect()
}

fn cursors(run: &Run<'_>) -> Vec<Row> {
    let rows = run.core.cursors.lock();
    let rows = rows.iter().map(|(name, cursor)| {
        let flags = [cursor.hold, cursor.binary, cursor.scroll].map(Datum::Bool);
        let mut row = vec![text(name), text(&cursor.text)];
        row.extend(flags);
        row.push(Datum::TimestampTz(cursor.at));
        row
    });
    rows.collect()
}

fn prepared(run: &Run<'_>) -> Vec<Row> {
    let rows = run.core.prepared.lock();
    let rows = rows.iter().map(|(name, statement)| {
        let (generic, custom) = statement.uses.by_plan();
        let types = statement.types.iter().map(|ty| Datum::Oid(*ty)).collect();
        vec![
            text(name),
            text(&statement.text),
            Datum::TimestampTz(statement.at),
            Datum::Array(Array::one_dimensional(oid::REGTYPE, types).into()),
            Datum::Bool(statement.from_sql),
            Datum::Int8(generic as i64),
            Datum::Int8(custom as i64),
        ]
    });
    rows.collect()
}
