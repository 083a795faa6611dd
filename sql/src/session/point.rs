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

use std::ops::Range;
use std::sync::Arc;

use super::client::Client;
use super::run::{self, format_of};
use super::session::{Block, Session};
use super::short::Short;
use crate::context::errors::from_engine;
use crate::error::Result;
use crate::exec::scan::append_key;
use crate::expr::Bound;
use crate::expr::bound::BoundKind;
use crate::planner::plan::{Access, Action, Body, Node, Plan, Scan};
use crate::types::{Datum, SqlType, oid};
use clearway_base::waits;
use clearway_engine::codec::key::KeyColumn;
use clearway_engine::session::StatementMode;
use clearway_engine::table::pick::Picker;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::ValueRef;
use clearway_txn::lockmgr::{LockMode, LockTag};

/// A statement that can take the fast path.
pub struct Point {
    shape: Arc<TableShape>,
    lock: LockTag,
    key: Box<[(KeyColumn, Part)]>,
    picker: Picker,
    /// For each column of the result its type, and its place among the columns that are picked.
    targets: Box<[(SqlType, usize)]>,
    /// Columns of the result that the fast path gives in the binary form only.
    binary: Box<[usize]>,
    /// Positions in the table of the columns that are picked.
    picked: Box<[usize]>,
}

pub(super) enum Part {
    Param(usize),
    Const(Datum),
}

/// A value on its way from the row to the client.
#[derive(Clone, Debug, Default)]
enum Cell {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Range<usize>),
}

/// Memory that executions use one after the other.
#[derive(Default)]
pub(super) struct Scratch {
    key: Vec<u8>,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

/// Types whose values go out as they stand in the row, in either form.
fn goes_out_plain(ty: SqlType) -> bool {
    matches!(ty.oid, oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 | oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::JSON)
}

/// Types of which that is so in the binary form; the text depends on the session's settings or is long to make.
fn is_plain_in_binary(ty: SqlType) -> bool {
    let time = matches!(ty.oid, oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ);
    time || matches!(ty.oid, oid::BYTEA | oid::UUID | oid::FLOAT4 | oid::FLOAT8)
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
        let columns: Vec<usize> = select.targets.iter().map(|e| column(e, scan)).collect::<Option<_>>()?;
        let types: Vec<SqlType> = columns.iter().map(|c| scan.table.types[*c]).collect();
        if !types.iter().all(|ty| goes_out_plain(*ty) || is_plain_in_binary(*ty)) {
            return None;
        }
        let binary = (0..types.len()).filter(|i| is_plain_in_binary(types[*i])).collect();
        let mut picked = columns.clone();
        picked.sort_unstable();
        picked.dedup();
        let place = |c: &usize| picked.binary_search(c).ok();
        let targets = types.into_iter().zip(columns.iter().map(place).collect::<Option<Vec<_>>>()?);
        let database = if oid < clearway_engine::catalog::FIRST_USER_OID { 0 } else { database };
        Some(Point {
            shape: scan.table.shape.clone(),
            lock: LockTag::Relation { database, relation: u64::from(oid) },
            key: key_parts(scan)?,
            picker: Picker::new(&scan.table.shape, &picked),
            targets: targets.collect(),
            binary,
            picked: picked.clone().into(),
        })
    }

    /// Whether it gives the result in these forms.
    pub(super) fn gives(&self, formats: &[i16]) -> bool {
        self.binary.iter().all(|column| format_of(formats, *column))
    }

    /// Takes the wanted columns out of a row.
    fn pick(&self, key: &[u8], value: &[u8], cells: &mut Vec<Cell>, bytes: &mut Vec<u8>) -> Result<()> {
        cells.clear();
        cells.resize(self.picked.len(), Cell::Null);
        bytes.clear();
        let put = &mut |position: usize, value: ValueRef<'_>| {
            let Ok(place) = self.picked.binary_search(&position) else { return };
            cells[place] = match value {
                ValueRef::Bool(b) => Cell::Bool(b),
                ValueRef::Int(i) => Cell::Int(i),
                ValueRef::Float(f) => Cell::Float(f),
                ValueRef::Bytes(b) => {
                    let from = bytes.len();
                    bytes.extend_from_slice(b);
                    Cell::Bytes(from..bytes.len())
                }
                // Columns of other storages are of none of the types that qualify.
                ValueRef::Null | ValueRef::Decimal(_) | ValueRef::StoredDecimal(_) => Cell::Null,
            };
        };
        self.picker.read(&self.shape, key, value, put).map_err(from_engine)
    }
}

/// The bytes of a key; false: no row can have it.
pub(super) fn key_bytes(key: &[(KeyColumn, Part)], params: &[Datum], out: &mut Vec<u8>) -> bool {
    out.clear();
    key.iter().all(|(column, part)| {
        let value = match part {
            Part::Param(i) => params.get(*i),
            Part::Const(value) => Some(value),
        };
        value.is_some_and(|value| append_key(*column, value, out).is_some())
    })
}

fn column(e: &Bound, scan: &Scan) -> Option<usize> {
    let BoundKind::Column { index, level: 0 } = e.kind else { return None };
    index.checked_sub(scan.table.base).filter(|c| *c < scan.table.types.len() && scan.table.types[*c] == e.ty)
}

pub(super) fn key_parts(scan: &Scan) -> Option<Box<[(KeyColumn, Part)]>> {
    let Access::Keys(keys) = &scan.access else { return None };
    let [key] = keys.as_slice() else { return None };
    let shape = &scan.table.shape;
    let parts = key.iter().zip(&shape.key).map(|(e, column)| {
        let form = KeyColumn::ascending(shape.columns[*column].storage);
        match &e.kind {
            BoundKind::Param(n) => Some((form, Part::Param(*n as usize - 1))),
            BoundKind::Const(value) => Some((form, Part::Const(value.clone()))),
            _ => None,
        }
    });
    parts.collect()
}

/// Appends a value in the form that the client asked for; false for NULL.
fn write_cell(cell: &Cell, bytes: &[u8], ty: SqlType, binary: bool, out: &mut Vec<u8>) -> bool {
    match cell {
        Cell::Null => return false,
        Cell::Bool(b) if binary => out.push(u8::from(*b)),
        Cell::Bool(b) => out.push(if *b { b't' } else { b'f' }),
        Cell::Int(i) if binary => {
            let width = match ty.oid {
                oid::INT2 => 2,
                oid::INT4 | oid::DATE => 4,
                _ => 8,
            };
            out.extend_from_slice(&i.to_be_bytes()[8 - width..]);
        }
        Cell::Int(i) => write_integer(*i, out),
        Cell::Float(f) if ty.oid == oid::FLOAT4 => out.extend_from_slice(&(*f as f32).to_be_bytes()),
        Cell::Float(f) => out.extend_from_slice(&f.to_be_bytes()),
        Cell::Bytes(range) => {
            let text = bytes.get(range.clone()).unwrap_or_default();
            out.extend_from_slice(text);
            if ty.oid == oid::BPCHAR && ty.modifier > 4 {
                // char(n) is kept without the blanks behind it; bytes that continue a character are not counted.
                let characters = text.iter().filter(|b| **b & 0xc0 != 0x80).count();
                out.resize(out.len() + (ty.modifier as usize - 4).saturating_sub(characters), b' ');
            }
        }
    }
    true
}

/// Appends an integer in decimal.
pub(super) fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

impl Session {
    /// Runs a statement on the fast path, after the checks of `run_short`; false: it must take the general path (PNT-1), which also finds whatever error
    /// there is.
    pub(super) fn run_point(&mut self, short: &Short<'_>, point: &Point, client: &mut dyn Client) -> bool {
        let has_key = key_bytes(&point.key, short.params, &mut self.scratch.key);
        let began_ns = waits::now_ns();
        self.core.backend.runs_from(began_ns, short.text, None);
        self.watch_from(began_ns, short.digest, short.text, short.portal);
        self.begin_implicit_at(began_ns);
        let alone = self.block == Block::Implicit && self.in_batch <= 1;
        let Some(Ok(found)) = self.look_up(short, point, has_key, (alone, began_ns)) else {
            self.in_batch -= 1;
            return false;
        };
        self.answer(short, point, found, client);
        self.watch.rows = u64::from(found);
        self.watched(short.digest, began_ns, None, short.portal);
        true
    }

    /// Reads the row into the scratch memory; false: there is none. None: it can't be done without waiting.
    fn look_up(
        &mut self,
        short: &Short<'_>,
        point: &Point,
        has_key: bool,
        (alone, began_ns): (bool, u64),
    ) -> Option<Result<bool>> {
        let Scratch { key, cells, bytes } = &mut self.scratch;
        let mut engine = self.core.engine.take();
        if !engine.begin_short(short.text, &point.lock, LockMode::AccessShare, began_ns) {
            return None;
        }
        if !short.cached.version.is_some_and(|version| engine.sees_catalog(version)) {
            return None; // PNT-2
        }
        let durable = alone || engine.options().read_only;
        let mode = if durable { StatementMode::ReadOnly } else { StatementMode::Write };
        if !has_key {
            engine.keep_snapshot(mode);
            return Some(Ok(false));
        }
        let statement = engine.open_short(mode, began_ns);
        let found = match engine.find_now(&point.shape, &statement.view, key) {
            None => None,
            Some(None) => Some(Ok(false)),
            Some(Some(value)) => Some(point.pick(key, value, cells, bytes).map(|()| true)),
        };
        engine.close_statement(statement);
        self.watch.looked_at = Some(engine.used().examined());
        found
    }

    /// Tells the client what was found.
    fn answer(&mut self, short: &Short<'_>, point: &Point, found: bool, client: &mut dyn Client) {
        let Scratch { cells, bytes, .. } = &self.scratch;
        if short.portal.is_none()
            && let Some(columns) = &short.cached.plan.columns
        {
            run::describe(columns, short.formats, client);
        }
        if found {
            client.row(point.targets.len(), &mut |i, out| {
                let Some((ty, place)) = point.targets.get(i) else { return false };
                let cell = cells.get(*place).unwrap_or(&Cell::Null);
                write_cell(cell, bytes, *ty, format_of(short.formats, i), out)
            });
        }
        self.told = true;
        client.command_complete(if found { "SELECT 1" } else { "SELECT 0" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_the_library_writes_them() {
        for value in [0, 1, -1, 9, 10, -10, 99, 100, i64::MAX, i64::MIN, 1_234_567_890] {
            let mut out = Vec::new();
            write_integer(value, &mut out);
            assert_eq!(String::from_utf8(out), Ok(value.to_string()));
        }
    }

    #[test]
    fn char_n_gets_its_blanks_back_by_characters() {
        let ty = SqlType { oid: oid::BPCHAR, modifier: 8 };
        let bytes = "äb".as_bytes();
        let mut out = Vec::new();
        assert!(write_cell(&Cell::Bytes(0..bytes.len()), bytes, ty, false, &mut out));
        assert_eq!(out, "äb  ".as_bytes());
    }
}
