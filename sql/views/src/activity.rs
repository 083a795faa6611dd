//! The rows of pg_stat_activity.

use super::locks::Lines;
use super::{ViewOf, opt, text, time};
use clearway_context::privileges::{Judge, role_by_oid};
use clearway_engine::catalog::Object;
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;
use clearway_values::types::inet::Inet;
use std::sync::atomic::Ordering;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_stat_activity", activity)];

/// What a role that may not watch a session sees none of: the client, the times, the waits and the state.
const HIDDEN: std::ops::Range<usize> = 7..17;
const QUERY: usize = 20;

/// The text that replaces other roles' statements.
pub(super) const HIDDEN_TEXT: &str = "<insufficient privilege>";

/// Whether the session's role may see what the session of a pid does, or did.
pub(super) fn may_watch(run: &Run<'_>, pid: i32) -> bool {
    let role = run.core.backends.get(pid).map_or(0, |backend| backend.role.load(Ordering::Relaxed));
    Judge::of(run.core, &run.names.catalog).may_watch(role)
}

fn activity(run: &Run<'_>) -> Vec<Row> {
    let catalog = &run.names.catalog;
    let judge = Judge::of(run.core, catalog);
    let locks = run.core.db.transactions().locks().locks();
    let lines = Lines::new(&locks);
    let backends = run.core.backends.all();
    let rows = backends.iter().map(|b| {
        let a = b.activity.lock().clone();
        let (class, event) = wait_of(b.pid, b, &locks, &lines);
        let database = catalog.database(&b.database).map_or(Datum::Null, |d| Datum::Oid(d.oid));
        let number = b.role.load(Ordering::Relaxed);
        let role = if number == 0 { Datum::Null } else { Datum::Oid(number) };
        let user = role_by_oid(catalog, number).map_or_else(|| b.user.clone(), |role| role.name.clone());
        let txn = locks.iter().find(|l| l.pid == b.pid).and_then(|l| l.txn);
        let mut row = vec![
            database,
            text(&b.database),
            Datum::Int4(b.pid),
            Datum::Null,
            role,
            text(&user),
            text(&a.application_name),
            b.client.map_or(Datum::Null, |c| Inet::of(c.ip()).into()),
            Datum::Null,
            b.client.map_or(Datum::Int4(-1), |c| Datum::Int4(i32::from(c.port()))),
            time(b.started_us),
            time(a.xact_start_us),
            time(a.query_start_us),
            time(a.state_change_us),
            opt(class),
            opt(event),
            text(a.state.name()),
            txn.map_or(Datum::Null, |t| Datum::Oid(t.0 as u32)),
            Datum::Null,
            digest_of(b),
            text(&a.query),
            text("client backend"),
        ];
        if !judge.may_watch(number) {
            row[HIDDEN].fill(Datum::Null);
            row[QUERY] = text(HIDDEN_TEXT);
        }
        row
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.extend(tasks(QUERY + 2));
    rows
}

fn digest_of(backend: &clearway_context::backend::Backend) -> Datum {
    match backend.digest.load(Ordering::Relaxed) {
        0 => Datum::Null,
        digest => Datum::Int8(digest as i64),
    }
}

/// PostgreSQL's name for a background task; none: it is no task of the database.
fn task_of(name: &str) -> Option<&str> {
    Some(match name {
        "flusher" => "walwriter",
        "cleaner" => "background writer",
        "checkpointer" | "archiver" | "logger" => name,
        "preparer" | "dropper" | "tidier" | "upkeep" | "deadlock scan" | "sampler" => name,
        _ => return None,
    })
}

/// One row for each background task, with what it waits for.
fn tasks(columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for session in clearway_base::waits::sessions() {
        let Some(task) = task_of(session.name()) else { continue };
        let wait = session.current().map(|wait| wait.event);
        let mut row = vec![Datum::Null; columns];
        row[2] = Datum::Int4(i32::try_from(session.id() & 0x7fff_ffff).unwrap_or(i32::MAX));
        row[14] = opt(wait.map(|event| event.class().name()));
        row[15] = opt(wait.map(|event| event.name()));
        row[QUERY] = text("");
        row[QUERY + 1] = text(task);
        rows.push(row);
    }
    rows
}

/// What a session waits for, under PostgreSQL's names.
fn wait_of(
    pid: i32,
    backend: &clearway_context::backend::Backend,
    locks: &[clearway_txn::lockmgr::view::LockRow],
    lines: &Lines<'_>,
) -> (Option<&'static str>, Option<&'static str>) {
    use clearway_txn::lockmgr::LockTag;
    if let Some(wait) = locks.iter().find(|l| l.pid == pid && !l.granted) {
        let event = match &wait.tag {
            LockTag::Row { .. } => {
                if lines.is_first(wait) {
                    "transactionid"
                } else {
                    "tuple"
                }
            }
            LockTag::UniqueKey { .. } | LockTag::Place { .. } => "transactionid",
            other => other.kind(),
        };
        return (Some("Lock"), Some(event));
    }
    if !backend.activity.lock().state.is_active() {
        return (Some("Client"), Some("ClientRead"));
    }
    // What else it waits for stands in its books; nothing: it runs.
    let wait = backend.waits.current_or_ready();
    (wait.map(|wait| wait.event.class().name()), wait.map(|wait| wait.event.name()))
}

/// The role of an oid.
pub(super) fn role_name(run: &Run<'_>, oid: u32) -> String {
    match run.names.catalog.get(oid).map(|o| &**o) {
        Some(Object::Role(r)) => r.name.clone(),
        _ => format!("unknown (OID={oid})"),
    }
}
