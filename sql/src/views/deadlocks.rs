//! `clearway_deadlocks`, `clearway_deadlock_counters`: the archive of deadlocks, in full.

use super::ViewOf;
use super::activity::{HIDDEN_TEXT, may_watch};
use crate::exec::{Row, Run};
use crate::types::Datum;
use clearway_engine::catalog::{Catalog, Object};
use clearway_txn::lockmgr::LockTag;
use clearway_txn::lockmgr::report::{DeadlockReport, Participant};
use std::fmt::Write as _;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] =
    &[("pg_catalog", "clearway_deadlocks", deadlocks), ("pg_catalog", "clearway_deadlock_counters", counters)];

fn int(n: u64) -> Datum {
    Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX))
}

fn counters(run: &Run<'_>) -> Vec<Row> {
    let archive = run.core.db.transactions().locks().archive();
    let counts = [archive.searches(), archive.deadlocks(), archive.reordered(), archive.missed_by_fast_path()];
    vec![counts.map(int).into()]
}

/// One row for each participant, the victim's first.
fn deadlocks(run: &Run<'_>) -> Vec<Row> {
    let reports = run.core.db.transactions().locks().archive().reports();
    let rows = |report: &DeadlockReport| -> Vec<Row> {
        let of = report.participants.iter().enumerate();
        of.map(|(at, participant)| {
            let mut row = row(&run.names.catalog, report, at, participant);
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
const DATA: [usize; 4] = [8, 12, 14, 15];

fn row(catalog: &Catalog, report: &DeadlockReport, at: usize, p: &Participant) -> Row {
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
        Datum::text(name_of(catalog, &p.wanted)),
        Datum::text(p.mode.name()),
        int(p.waited_ns / 1_000),
        Datum::Int4(next.pid),
        Datum::text(name_of(catalog, &p.held)),
        Datum::text(modes.join(", ")),
        p.held_by_statement.as_deref().map_or(Datum::Null, Datum::text),
        Datum::text(statements.join(";\n")),
    ]
}

/// What a tag is called: the relation's name where the catalog has one, and a row's key in hexadecimal.
fn name_of(catalog: &Catalog, tag: &LockTag) -> String {
    let by_tree = |tree: u64| {
        catalog.objects().find_map(|object| match &**object {
            Object::Relation(relation) if relation.tree == tree => Some(relation.name.clone()),
            Object::Index(index) if index.tree == tree => Some(index.name.clone()),
            _ => None,
        })
    };
    let key_in = |tree: u64, key: &[u8]| {
        let mut name = by_tree(tree).unwrap_or_else(|| format!("tree {tree}"));
        name.push_str(" key \\x");
        key.iter().for_each(|byte| _ = write!(name, "{byte:02x}"));
        name
    };
    let what = match tag {
        LockTag::Relation { relation, .. } => {
            let object = u32::try_from(*relation).ok().and_then(|oid| catalog.get(oid));
            object.map_or_else(|| relation.to_string(), |object| object.name().to_owned())
        }
        LockTag::Row { tree, key } | LockTag::UniqueKey { tree, key } => key_in(tree.0, key),
        LockTag::Transaction(txn) => txn.0.to_string(),
        LockTag::VirtualTransaction(id) => id.to_string(),
        LockTag::Object { class, object, .. } => format!("{class}/{object}"),
        LockTag::Advisory { key, .. } => format!("{key:?}"),
    };
    format!("{} {what}", tag.kind())
}
