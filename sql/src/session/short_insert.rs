//! The part of the fast path ([`super::short`]) for `INSERT INTO table VALUES (...)` of one row, also with ON CONFLICT, into a table without unique indexes
//! beside its primary key.
//!
//! # Invariants
//! SHT-1 and SHT-2 hold here too.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::point::{Part, part};
use super::session::Session;
use super::short::{ChangeScratch, HEIGHT_MAX, Short, ShortChange, begin, close, is_cheap, within};
use crate::context::convert::to_value;
use crate::context::core::Core;
use crate::exec::Cx;
use crate::expr::Bound;
use crate::planner::plan::{Action, Body, Insert, InsertValue};
use crate::types::Datum;
use clearway_engine::session::Isolation;
use clearway_engine::table::entry_moves::EntryKeys;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_txn::transaction::Changed;

pub(super) struct OneInsert {
    /// The new row's values, where all of them are known when the execution begins; none: expressions give them.
    known: Option<Box<[Part]>>,
    /// The indexes, none of which is unique.
    entries: Option<EntryKeys>,
    /// There is a row with its key: DO NOTHING.
    yields: bool,
    /// Executions that are not to try: a row stood in the way of one before, which the general path updated or refused.
    passed: AtomicU32,
}

/// Executions that do not try after one that has found a row in the way.
const PASSED: u32 = 15;

impl OneInsert {
    /// None: the plan does not qualify.
    pub(super) fn of(insert: &Insert) -> Option<OneInsert> {
        if !is_one_insert(insert) {
            return None;
        }
        let entries = EntryKeys::of(&insert.target.table.shape, true, |_| true)?;
        let yields = insert.conflict.as_ref().is_some_and(|conflict| conflict.update.is_none());
        Some(OneInsert { known: known_values(insert), entries, yields, passed: AtomicU32::new(0) })
    }

    /// Whether this execution is not to try.
    pub(super) fn passes(&self) -> bool {
        let left = self.passed.load(Relaxed);
        if left > 0 {
            self.passed.store(left - 1, Relaxed);
        }
        left > 0
    }
}

fn is_one_insert(insert: &Insert) -> bool {
    let Body::Values(rows) = &insert.source.body else { return false };
    let source = &insert.source;
    let whole = source.sort.is_empty() && source.limit.is_none() && source.offset.is_none();
    let plain = insert.returning.is_none() && insert.view_checks.is_empty();
    let free = insert.target.catalog.is_none()
        && !insert.nothing
        && insert.guard.is_none()
        && insert.target.uniques.is_empty();
    let shape = &insert.target.table.shape;
    let mut read = Vec::new();
    let mut cheap = |e: &Bound| is_cheap(e, HEIGHT_MAX, &mut read);
    let [row] = rows.as_slice() else { return false };
    whole
        && plain
        && free
        && insert.values.len() == shape.columns.len()
        && row.iter().all(&mut cheap)
        && insert.values.iter().all(|value| match value {
            InsertValue::Default(e) => cheap(e),
            InsertValue::Source(n) => *n < row.len(),
            InsertValue::Null => true,
        })
        && read.is_empty()
}

impl Session {
    /// Inserts the row; none: the statement must take the general path.
    pub(super) fn insert_one_row(
        &mut self,
        short: &Short<'_>,
        change: &ShortChange,
        insert: &OneInsert,
        began_ns: u64,
    ) -> Option<u64> {
        let (core, scratch) = (&*self.core, &mut self.change_scratch);
        let Action::Insert(plan) = &short.cached.plan.action else { return None };
        let statement = begin(core, short, change, began_ns)?;
        let isolation = core.engine.take().options().isolation;
        let shape = &change.shape;
        let made = match &insert.known {
            Some(known) => known_row(known, short.params, &mut scratch.values),
            None => within(core, short, statement.view, isolation, |cx| new_row(cx, plan, &mut scratch.values)),
        };
        let fits =
            shape.columns.iter().zip(&scratch.values).all(|(c, v)| !(c.not_null && v.is_null()) && v.fits(c.storage));
        let changed = (made.is_some() && fits).then(|| put_in(core, shape, insert, scratch)).flatten();
        self.watch.has_looked_at(close(core, statement));
        match changed? {
            Changed::Done => Some(1),
            // A snapshot that is kept may not show the row, which is an error then.
            Changed::Exists { .. } if insert.yields && isolation == Isolation::ReadCommitted => Some(0),
            Changed::Exists { .. } | Changed::Newer | Changed::Again => {
                insert.passed.store(PASSED, Relaxed);
                None
            }
        }
    }
}

/// Puts the row whose values are in the scratch memory into its table.
fn put_in(core: &Core, shape: &TableShape, insert: &OneInsert, scratch: &mut ChangeScratch) -> Option<Changed> {
    let ChangeScratch { key, value, values, entries, .. } = scratch;
    key.clear();
    value.clear();
    shape.value_into(values, value);
    if shape.has_row_id() {
        return core.engine.take().insert_now(shape, (None, value), insert.entries.as_ref(), entries);
    }
    shape.key_into(values, key);
    core.engine.take().insert_now(shape, (Some(key), value), insert.entries.as_ref(), entries)
}

/// What gives the values of a new row, if nothing has to be evaluated for any of them.
fn known_values(insert: &Insert) -> Option<Box<[Part]>> {
    let Body::Values(rows) = &insert.source.body else { return None };
    let row = rows.first()?;
    let known = insert.values.iter().map(|value| match value {
        InsertValue::Source(n) => part(row.get(*n)?),
        InsertValue::Default(e) => part(e),
        InsertValue::Null => Some(Part::Const(Datum::Null)),
    });
    known.collect()
}

/// The values of a new row that are known; none: a parameter is missing.
fn known_row(known: &[Part], params: &[Datum], values: &mut Vec<Value>) -> Option<()> {
    values.clear();
    known.iter().try_for_each(|part| part.value(params).map(|value| values.push(to_value(value))))
}

/// The values of a new row; none: an expression fails.
fn new_row(cx: Cx<'_>, insert: &Insert, values: &mut Vec<Value>) -> Option<()> {
    let Body::Values(rows) = &insert.source.body else { return None };
    let row = rows.first()?;
    values.clear();
    for value in &insert.values {
        let e = match value {
            InsertValue::Source(n) => row.get(*n)?,
            InsertValue::Default(e) => e,
            InsertValue::Null => {
                values.push(Value::Null);
                continue;
            }
        };
        values.push(to_value(&cx.value_now(e, &[]).ok()?));
    }
    Some(())
}
