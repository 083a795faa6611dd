//! The fast path of statements that read one row by its whole key: `SELECT columns FROM table WHERE key = $1`.
//!
//! Whether a statement qualifies is determined once, when it is planned. An execution then takes its table lock, reads the row in its
//! page and writes the columns to the client. It does not wait, allocates nothing and builds no values. In any unusual case (the page is
//! not in memory, another session alters the table, the plan is out of date) the general executor runs the statement and gives the same
//! answer.
//!
//! # Invariants
//! - PNT-1: when the fast path gives up, nothing has been sent to the client and no snapshot is open.
//! - PNT-2: the plan is checked again after the table's lock has been granted: the previous holder of the lock may have altered the
//!   table.

use std::sync::Arc;

use super::alone::{Begun, Reading};
use super::cells::{Cells, Columns};
use super::client::Client;
use super::session::Session;
use super::short::Short;
use crate::error::Result;
use crate::exec::scan::append_key;
use crate::expr::Bound;
use crate::expr::bound::BoundKind;
use crate::planner::plan::{Access, Action, Body, Node, Plan, Scan};
use crate::types::Datum;
use clearway_engine::codec::key::KeyColumn;
use clearway_engine::table::shape::TableShape;
use clearway_txn::lockmgr::{LockMode, LockTag};

/// A statement that can take the fast path.
pub struct Point {
    shape: Arc<TableShape>,
    lock: LockTag,
    key: Box<[(KeyColumn, Part)]>,
    columns: Columns,
}

pub(super) enum Part {
    Param(usize),
    Const(Datum),
}

impl Part {
    pub(super) fn value<'v>(&'v self, params: &'v [Datum]) -> Option<&'v Datum> {
        match self {
            Part::Param(i) => params.get(*i),
            Part::Const(value) => Some(value),
        }
    }
}

/// Memory that executions use one after the other.
#[derive(Default)]
pub(super) struct Scratch {
    key: Vec<u8>,
    cells: Cells,
    /// Of a statement that has no portal.
    pub(super) params: Vec<Datum>,
}

impl Point {
    /// The fast path of a plan; none: the plan does not qualify.
    pub fn of(plan: &Plan, database: u32) -> Option<Point> {
        let (select, scan) = match &plan.action {
            Action::Select(query) if query.limit.is_none() && query.offset.is_none() => match &query.body {
                Body::Select(select) => match &*select.source {
                    Node::Scan(scan) => (select, scan),
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        let plain = select.grouping.is_none() && select.locks.is_empty() && select.distinct.is_none();
        let unfiltered = select.filter.is_none() && scan.filter.is_none() && plan.subqueries.is_empty();
        let [lock] = plan.locks.as_slice() else { return None };
        let oid = scan.table.shape.oid;
        if !plain || !unfiltered || !plan.read_only || lock.mode != LockMode::AccessShare || lock.oid != oid {
            return None;
        }
        let database = if oid < clearway_engine::catalog::FIRST_USER_OID { 0 } else { database };
        Some(Point {
            shape: scan.table.shape.clone(),
            lock: LockTag::Relation { database, relation: u64::from(oid) },
            key: key_parts(scan)?,
            columns: Columns::of(&select.targets, scan)?,
        })
    }
}

/// The bytes of a key; false: no row can have it.
pub(super) fn key_bytes(key: &[(KeyColumn, Part)], params: &[Datum], out: &mut Vec<u8>) -> bool {
    out.clear();
    key.iter().all(|(column, part)| part.value(params).is_some_and(|value| append_key(*column, value, out).is_some()))
}

pub(super) fn key_parts(scan: &Scan) -> Option<Box<[(KeyColumn, Part)]>> {
    let Access::Keys(keys) = &scan.access else { return None };
    let [key] = keys.as_slice() else { return None };
    let shape = &scan.table.shape;
    let parts = key.iter().zip(&shape.key).map(|(e, column)| {
        let form = KeyColumn::ascending(shape.columns[*column].storage);
        Some((form, part(e)?))
    });
    parts.collect()
}

/// A value that is known when the execution begins.
pub(super) fn part(e: &Bound) -> Option<Part> {
    match &e.kind {
        BoundKind::Param(n) => Some(Part::Param(*n as usize - 1)),
        BoundKind::Const(value) => Some(Part::Const(value.clone())),
        _ => None,
    }
}

impl Session {
    /// Runs a statement on the fast path, after the checks of `run_short` or `read_alone`; false: it must take the general path (PNT-1), which also
    /// finds whatever error there is.
    pub(super) fn run_point(
        &mut self,
        short: &Short<'_>,
        point: &Point,
        reading: Reading,
        client: &mut dyn Client,
    ) -> bool {
        if !point.columns.go_out_in(short.formats) {
            return false;
        }
        let has_key = key_bytes(&point.key, short.params, &mut self.scratch.key);
        let begun = self.begin_reading(short, reading);
        let Some(Ok(found)) = self.look_up(short, point, has_key, &begun) else {
            self.give_up_reading(&begun);
            return false;
        };
        self.answer(short, point, found, client);
        self.watch.rows = u64::from(found);
        self.watched(short.digest, begun.at_ns, None, short.portal);
        true
    }

    /// Reads the row into the scratch memory; false: there is none. None: it can't be done without waiting.
    fn look_up(&mut self, short: &Short<'_>, point: &Point, has_key: bool, begun: &Begun) -> Option<Result<bool>> {
        let Scratch { key, cells, .. } = &mut self.scratch;
        let mut engine = self.core.engine.take();
        let statement = begun.open(&mut engine, short, &point.lock)?;
        let found = match has_key {
            false => Some(Ok(false)),
            true => engine.find_now(&point.shape, &statement.view, key).map(|value| match value {
                None => Ok(false),
                Some(value) => {
                    cells.clear();
                    point.columns.pick(&point.shape, key, value, cells).map(|()| true)
                }
            }),
        };
        let sound = begun.close(&mut engine, statement, short, &point.lock);
        self.replies = begun.replies(&engine);
        self.watch.has_looked_at_rows(engine.used().rows_examined());
        found.filter(|_| sound)
    }

    /// Tells the client what was found.
    fn answer(&mut self, short: &Short<'_>, point: &Point, found: bool, client: &mut dyn Client) {
        if let Some(told) = short.told {
            told.tell(short.formats, client);
        }
        if found {
            point.columns.tell(0, &self.scratch.cells, short.formats, client);
        }
        self.told = true;
        client.command_complete(if found { "SELECT 1" } else { "SELECT 0" });
    }
}
