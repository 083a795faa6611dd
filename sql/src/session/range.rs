//! The fast path of statements that read few neighbouring rows by the table's key or by an index: `SELECT columns FROM table WHERE key >= $1
//! ORDER BY key LIMIT $2`, `SELECT columns FROM table WHERE indexed BETWEEN $1 AND $2`, or all rows of a small table.
//!
//! As `point`, but for any number of rows up to [`ROWS_MAX`]. All rows are read and their columns picked before the client is told of the first
//! one, so that the general path can run the statement instead (PNT-1, PNT-2 hold here).
//!
//! # Invariants
//! - FEW-1: an execution reads no more than [`ROWS_MAX`] rows, nor more than a leaf beyond [`BYTES_MAX`], and passes over a bounded number of deleted
//!   rows, so it needs no breath. One that gives up because there are more is followed by [`PASSED`] executions that do not try.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::alone::{Begun, Reading};
use super::cells::{Cells, Columns};
use super::client::Client;
use super::point::{Part, part};
use super::session::Session;
use super::short::Short;
use crate::exec::key_range::{Ends, KeyBytes};
use crate::exec::scan::key_columns;
use crate::expr::Bound;
use crate::expr::bound::BoundKind;
use crate::planner::facts::is_said_by;
use crate::planner::plan::{Access, Action, Body, Node, Plan, Range};
use crate::types::{Datum, oid};
use clearway_engine::codec::key::KeyColumn;
use clearway_engine::session::few::{FewRows, FewWanted};
use clearway_engine::table::shape::TableShape;
use clearway_storage::btree::Direction;
use clearway_txn::lockmgr::{LockMode, LockTag};

/// Rows that an execution reads at most.
const ROWS_MAX: usize = 256;
/// Bytes of rows, likewise.
const BYTES_MAX: usize = 64 << 10;
/// Executions that do not try after one that has found too many rows.
const PASSED: u32 = 31;
/// Memory that a session keeps for the next execution, for each of its buffers.
const KEPT_MAX: usize = 64 << 10;

/// A statement that can take the fast path.
pub struct RangeRead {
    shape: Arc<TableShape>,
    lock: LockTag,
    /// The place of the index among the shape's, if it goes by one.
    index: Option<usize>,
    key: Box<[KeyColumn]>,
    equal: Box<[Part]>,
    low: Option<(Part, bool)>,
    high: Option<(Part, bool)>,
    direction: Direction,
    limit: Option<Part>,
    columns: Columns,
    /// Executions that are not to try.
    passed: AtomicU32,
}

/// Memory that executions use one after the other.
#[derive(Default)]
pub(super) struct RangeScratch {
    range: KeyBytes,
    rows: FewRows,
    cells: Cells,
    tag: String,
}

/// What came of an attempt.
enum Read {
    /// So many rows.
    Rows(usize),
    /// It can't be done without waiting, or a row is damaged.
    Waits,
    /// There are too many rows.
    TooMany,
}

impl RangeRead {
    /// The fast path of a plan; none: the plan does not qualify.
    pub fn of(plan: &Plan, database: u32) -> Option<RangeRead> {
        let Action::Select(query) = &plan.action else { return None };
        let Body::Select(select) = &query.body else { return None };
        let Node::Scan(scan) = &*select.source else { return None };
        let [lock] = plan.locks.as_slice() else { return None };
        let whole = !select.makes_groups() && select.sets.is_none() && select.distinct.is_none();
        let plain =
            whole && select.locks.is_empty() && plan.changes.is_empty() && query.offset.is_none() && !query.ties;
        // An index leaves its conditions in the filter, where they stand for snapshots that are older than it.
        let is_said = |e: &Bound| match &scan.access {
            Access::Index(place, range) => {
                let of = scan.table.shape.indexes.get(*place);
                of.is_some_and(|of| is_said_by(e, &scan.table, &of.columns, range))
            }
            _ => false,
        };
        let is_filtered = scan.filter.as_ref().is_some_and(|e| !is_said(e));
        let unfiltered = select.filter.is_none() && !is_filtered && plan.subqueries.is_empty();
        let in_order = query.sort.is_empty() || scan.order.is_some();
        let oid = scan.table.shape.oid;
        if !plain || !unfiltered || !in_order || scan.jump.is_some() {
            return None;
        }
        if !plan.read_only || lock.mode != LockMode::AccessShare || lock.oid != oid {
            return None;
        }
        let all = Range::default();
        let (index, range) = match &scan.access {
            Access::KeyRange(range) => (None, range),
            Access::Full => (None, &all),
            // The entries alone have all that is wanted otherwise.
            Access::Index(place, range) if scan.entries.is_none() => (Some(*place), range),
            _ => return None,
        };
        let bound = |bound: &Option<(Bound, bool)>| match bound {
            None => Some(None),
            Some((e, inclusive)) => Some(Some((part(e)?, *inclusive))),
        };
        let limit = match &query.limit {
            None => None,
            Some(e) => Some(limit_part(e)?),
        };
        let database = if oid < clearway_engine::catalog::FIRST_USER_OID { 0 } else { database };
        Some(RangeRead {
            shape: scan.table.shape.clone(),
            lock: LockTag::Relation { database, relation: u64::from(oid) },
            index,
            key: match index {
                Some(place) => scan.table.shape.indexes.get(place)?.key.as_slice().into(),
                None => key_columns(scan).into(),
            },
            equal: range.equal.iter().map(part).collect::<Option<_>>()?,
            low: bound(&range.low)?,
            high: bound(&range.high)?,
            direction: scan.order.unwrap_or(Direction::Forward),
            limit,
            columns: Columns::of(&select.targets, scan)?,
            passed: AtomicU32::new(0),
        })
    }

    /// The bytes of the range; false: it is empty.
    fn bytes<'v>(&'v self, params: &'v [Datum], out: &mut KeyBytes) -> bool {
        let value = |part: &'v Part| part.value(params).unwrap_or(&Datum::Null);
        let end = |bound: &'v Option<(Part, bool)>| bound.as_ref().map(|(part, inclusive)| (value(part), *inclusive));
        let mut equal = self.equal.iter().map(value);
        let ends = Ends { equal: &mut equal, low: end(&self.low), high: end(&self.high) };
        out.put(&mut self.key.iter().copied(), ends)
    }

    /// How many rows are wanted; none: the limit is an error.
    fn enough(&self, params: &[Datum]) -> Option<usize> {
        let Some(limit) = &self.limit else { return Some(usize::MAX) };
        match limit.value(params)? {
            Datum::Null => Some(usize::MAX),
            limit => usize::try_from(limit.as_i64()?).ok(),
        }
    }

    /// Whether this execution is not to try (FEW-1).
    fn passes(&self) -> bool {
        let left = self.passed.load(Relaxed);
        if left > 0 {
            self.passed.store(left - 1, Relaxed);
        }
        left > 0
    }
}

/// A limit that is known when the execution begins. One that is written as a number is an integer, which a cast makes a bigint.
fn limit_part(e: &Bound) -> Option<Part> {
    match &e.kind {
        BoundKind::Cast { arg, .. } if matches!(arg.ty.oid, oid::INT2 | oid::INT4) => part(arg),
        _ => part(e),
    }
}

impl Session {
    /// As `run_point`.
    pub(super) fn run_range(
        &mut self,
        short: &Short<'_>,
        read: &RangeRead,
        reading: Reading,
        client: &mut dyn Client,
    ) -> bool {
        if !read.columns.go_out_in(short.formats) || read.passes() {
            return false;
        }
        let Some(enough) = read.enough(short.params) else { return false };
        let has_range = read.bytes(short.params, &mut self.range_scratch.range);
        let begun = self.begin_reading(short, reading);
        let rows = match self.read_range(short, read, if has_range { enough } else { 0 }, &begun) {
            Read::Rows(rows) => rows,
            gives_up => {
                if let Read::TooMany = gives_up {
                    read.passed.store(PASSED, Relaxed);
                    self.range_scratch.trim();
                }
                self.give_up_reading(&begun);
                return false;
            }
        };
        self.give_range(short, read, rows, client);
        self.watch.rows = rows as u64;
        self.watched(short.digest, begun.at_ns, None, short.portal);
        true
    }

    /// Reads the rows into the scratch memory.
    fn read_range(&mut self, short: &Short<'_>, read: &RangeRead, enough: usize, begun: &Begun) -> Read {
        let RangeScratch { range, rows, cells, .. } = &mut self.range_scratch;
        let mut engine = self.core.engine.take();
        let Some(statement) = begun.open(&mut engine, short, &read.lock) else { return Read::Waits };
        let wanted = FewWanted {
            from: &range.from,
            to: range.to(),
            direction: read.direction,
            enough,
            most: (ROWS_MAX, BYTES_MAX),
        };
        rows.clear();
        let found = match read.index {
            _ if enough == 0 => Some(true),
            Some(place) => engine.few_by_index_now((&read.shape, place), &statement.view, &wanted, rows),
            None => engine.few_now(&read.shape, &statement.view, &wanted, rows),
        };
        let sound = begun.close(&mut engine, statement, short, &read.lock);
        self.replies = begun.replies(&engine);
        self.watch.has_looked_at(engine.used().examined());
        match found.filter(|_| sound) {
            None => return Read::Waits,
            Some(false) => return Read::TooMany,
            Some(true) => {}
        }
        cells.clear();
        let mut count = 0;
        for (key, value) in rows.iter() {
            if read.columns.pick(&read.shape, key, value, cells).is_err() {
                return Read::Waits;
            }
            count += 1;
        }
        Read::Rows(count)
    }

    /// Gives the client what was read.
    fn give_range(&mut self, short: &Short<'_>, read: &RangeRead, rows: usize, client: &mut dyn Client) {
        if let Some(told) = short.told {
            told.tell(short.formats, client);
        }
        let scratch = &mut self.range_scratch;
        for row in 0..rows {
            read.columns.tell(row, &scratch.cells, short.formats, client);
        }
        self.told = true;
        scratch.tag.clear();
        // A text in memory takes whatever is written.
        let _ = write!(scratch.tag, "SELECT {rows}");
        client.command_complete(&scratch.tag);
        scratch.trim();
    }
}

impl RangeScratch {
    fn trim(&mut self) {
        self.rows.trim(KEPT_MAX);
        self.cells.trim(KEPT_MAX);
    }
}
