//! Conditions of a scan that are judged on the bytes of a stored row, before any value is made of it: most rows that a large scan reads meet no condition.
//!
//! # Life of a condition
//! The plan is complete, and slots have their last numbers -> the filter's conditions, in their order, become tests as far as they compare columns with
//! constants, parameters or each other -> a scan asks the gate for each row: it is turned away, or only what is left of the filter is evaluated on it and only what
//! that and the plan above need is read, or, where the bytes do not tell, the row goes the long way.
//!
//! # Invariants
//! - GAT-1: a row is turned away only if one of the tested conditions is not true for it, and passes only if all of them are true. So the answer is that of the
//!   whole filter.
//! - GAT-2: no condition that could fail stands before one that is tested: a row that is turned away could not have given an error.
//! - GAT-3: a row is turned away for the keys of a join's other side (MTK-1) only where no row of the answer could come of it, and where nothing that
//!   would have been evaluated on it before the join could have failed.

use super::conditions::{conjunction, split};
use super::met_keys::MetKeys;
use super::plan::{Access, Join, JoinType, Node, Scan};
use super::tested::{Finder, Operand, Test, cost, fails, integer};
use super::walk;
use clearway_base::stack;
use clearway_context::convert::{stored_numeric, without_blanks};
use clearway_engine::codec::cells::{Cell, CellRow, Cells};
use clearway_engine::table::pick::Picker;
use clearway_engine::value::ValueRef;
use clearway_values::expr::Bound;
use clearway_values::expr::like::like;
use clearway_values::types::datum::compare;
use clearway_values::types::{Datum, Oid, oid};
use std::cmp::Ordering;
use std::sync::Arc;

/// The conditions of a scan that are tested.
#[derive(Clone, Debug)]
pub struct Gate {
    cells: Cells,
    tests: Box<[Test]>,
    /// The columns that must have one of the keys of a join's other side: asked for once the tests are met.
    met: Box<[(Cell, Arc<MetKeys>)]>,
    /// What is still to be done for a row that passes; none: all that is done for a row without a gate.
    pub rest: Option<Rest>,
    /// The addresses of the scan for which one with keys stands, and of its filter: it is measured there.
    stands_for: Option<(usize, Option<usize>)>,
}

/// What is still to be done for a row that passes.
#[derive(Clone, Debug)]
pub struct Rest {
    /// The conditions that were not tested.
    pub filter: Option<Bound>,
    /// The columns that they name; all that the plan above needs if there are none.
    pub first: Picker,
    /// What else the plan above needs.
    pub others: Option<Picker>,
}

/// What became of a row at the gate (GAT-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not meet the filter.
    Away,
    /// It has none of the keys of a join's other side.
    Unmet,
    /// It meets the conditions that were tested.
    Passes,
    /// The bytes do not tell.
    Unknown,
}

impl Gate {
    /// Judges a row, given by its key and its value.
    #[inline]
    pub fn judge(&self, (key, value): (&[u8], &[u8]), params: &[Datum]) -> Verdict {
        let Some(row) = self.cells.row(key, value) else { return Verdict::Unknown };
        for test in &self.tests {
            match self.holds(test, &row, params) {
                Some(true) => {}
                Some(false) => return Verdict::Away,
                None => return Verdict::Unknown,
            }
        }
        for (cell, keys) in self.met.iter().filter(|(_, keys)| !keys.is_idle()) {
            match self.cells.get(&row, cell).and_then(|value| keys.may_meet(value)) {
                Some(true) => {}
                Some(false) => return Verdict::Unmet,
                None => return Verdict::Unknown,
            }
        }
        Verdict::Passes
    }

    /// Whether it knows keys of a join's other side.
    pub fn has_keys(&self) -> bool {
        !self.met.is_empty()
    }

    /// Notes that so many rows were judged, and so many not turned away.
    pub fn note(&self, judged: usize, passed: usize) {
        self.met.iter().for_each(|(_, keys)| keys.note(judged, passed));
    }

    /// Whether a condition is true of a row; none: the bytes do not tell.
    #[inline]
    fn holds(&self, test: &Test, row: &CellRow<'_>, params: &[Datum]) -> Option<bool> {
        match test {
            Test::Within { cell, low, high, outside } => Some(match self.cells.get(row, cell)? {
                ValueRef::Int(int) => (*low <= int && int <= *high) != *outside,
                ValueRef::Null => false,
                _ => return None,
            }),
            Test::Columns { left, op, right } => match (self.cells.get(row, left)?, self.cells.get(row, right)?) {
                (ValueRef::Int(left), ValueRef::Int(right)) => Some(op.holds(left.cmp(&right))),
                (ValueRef::Null, _) | (_, ValueRef::Null) => Some(false),
                _ => None,
            },
            _ => self.holds_otherwise(test, row, params),
        }
    }

    fn holds_otherwise(&self, test: &Test, row: &CellRow<'_>, params: &[Datum]) -> Option<bool> {
        let (cell, ty) = match test {
            Test::AmongInts { cell, .. } | Test::IsNull { cell, .. } | Test::AmongTexts { cell, .. } => (cell, 0),
            Test::Like { cell, .. } => (cell, 0),
            Test::Order { cell, ty, .. } => (cell, *ty),
            Test::Any(branches) => return self.any_holds(branches, row, params),
            Test::Within { .. } | Test::Columns { .. } => return None,
        };
        let value = self.cells.get(row, cell)?;
        if value.is_null() {
            return Some(matches!(test, Test::IsNull { negated: false, .. }));
        }
        Some(match (test, value) {
            (Test::IsNull { negated, .. }, _) => *negated,
            (Test::AmongInts { sorted, negated, .. }, ValueRef::Int(int)) => {
                let near =
                    sorted.first().is_some_and(|low| *low <= int) && sorted.last().is_some_and(|high| int <= *high);
                (near && sorted.binary_search(&int).is_ok()) != *negated
            }
            (Test::AmongTexts { head, sorted, pads, negated, .. }, ValueRef::Bytes(text)) => {
                let text = if *pads { without_blanks(text) } else { text };
                let text = head.map_or(Some(text), |chars| beginning(text, chars))?;
                let is_one = match sorted.len() {
                    // A few are looked at faster one after the other.
                    ..8 => sorted.iter().any(|one| **one == *text),
                    _ => sorted.binary_search_by(|one| (**one).cmp(text)).is_ok(),
                };
                is_one != *negated
            }
            (Test::Like { pattern, negated, .. }, ValueRef::Bytes(text)) => {
                like(std::str::from_utf8(text).ok()?, pattern, Some('\\'), false).ok()? != *negated
            }
            (Test::Order { op, with, .. }, value) => {
                let with = match with {
                    Operand::Constant(with) => with,
                    Operand::Parameter(n) => params.get((*n as usize).wrapping_sub(1))?,
                };
                !with.is_null() && op.holds(order(value, ty, with)?)
            }
            _ => return None,
        })
    }

    fn any_holds(&self, branches: &[Box<[Test]>], row: &CellRow<'_>, params: &[Datum]) -> Option<bool> {
        let mut is_known = true;
        for branch in branches {
            let mut all = Some(true);
            for test in branch {
                all = self.holds(test, row, params);
                if all != Some(true) {
                    break;
                }
            }
            match all {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(false)
    }
}

/// So many of the first characters of a text; none: it is damaged.
#[inline]
fn beginning(text: &[u8], chars: usize) -> Option<&[u8]> {
    let few = &text[..chars.min(text.len())];
    if few.is_ascii() {
        return Some(few);
    }
    let valid = std::str::from_utf8(text).ok()?;
    Some(&text[..valid.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)])
}

/// The order of a stored value of a type and a value that is not null; none: the two are not compared here.
fn order(value: ValueRef<'_>, ty: Oid, with: &Datum) -> Option<Ordering> {
    Some(match (ty, value, with) {
        (_, ValueRef::Int(int), with) => int.cmp(&integer(ty, with)?),
        (oid::NUMERIC, ValueRef::StoredDecimal(stored), Datum::Numeric(with)) => {
            stored_numeric(stored).ok()?.compare(with)
        }
        (oid::FLOAT8, ValueRef::Float(float), Datum::Float8(_)) => compare(&Datum::Float8(float), with),
        (oid::TEXT | oid::VARCHAR, ValueRef::Bytes(text), Datum::Text(with)) => text.cmp(with.as_bytes()),
        (oid::BPCHAR, ValueRef::Bytes(text), Datum::Bpchar(with)) => {
            without_blanks(text).cmp(without_blanks(with.as_bytes()))
        }
        _ => return None,
    })
}

impl Scan {
    /// The addresses by which a scan and its filter are measured.
    pub fn measured_at(&self) -> (usize, Option<usize>) {
        let own = || (std::ptr::from_ref(self) as usize, self.filter.as_ref().map(|e| std::ptr::from_ref(e) as usize));
        self.gate.as_ref().and_then(|gate| gate.stands_for).unwrap_or_else(own)
    }
}

/// Gives the scans below a node their gates. To be called once the slots of its level have their last numbers.
pub(super) fn set(node: &mut Arc<Node>) {
    stack::deeper(|| match Arc::make_mut(node) {
        Node::Scan(scan) => scan.gate = of(scan).map(Arc::new),
        Node::Join(join) => {
            set(&mut join.left);
            set(&mut join.right);
        }
        Node::Filter { input, .. } => set(input),
        _ => {}
    });
}

/// The gate of a scan; none: nothing of its filter is tested.
fn of(scan: &Scan) -> Option<Gate> {
    if matches!(scan.access, Access::Keys(_) | Access::Tids(_)) {
        return None;
    }
    let filter = scan.filter.as_ref()?;
    let finder = Finder::of(scan);
    let (mut tests, mut left, mut may_fail) = (Vec::new(), Vec::new(), false);
    for condition in split(filter.clone()) {
        match finder.test(&condition) {
            Some(test) if !may_fail => finder.put(&mut tests, test),
            _ => {
                may_fail |= condition.any(&fails);
                left.push(condition);
            }
        }
    }
    tests.sort_by_key(cost);
    let rest = rest(scan, &finder, filter, conjunction(left));
    let (met, stands_for) = (Box::default(), None);
    (!tests.is_empty()).then(|| Gate { cells: finder.cells, tests: tests.into(), met, rest, stands_for })
}

/// What is left to do for a row that passes; none: all of it.
fn rest(scan: &Scan, finder: &Finder<'_>, filter: &Bound, left: Option<Bound>) -> Option<Rest> {
    let beside = scan.beside.as_deref()?;
    if filter.may_wait() {
        return None;
    }
    let named = left.as_ref().map(|left| walk::columns(left, 0)).unwrap_or_default();
    let first: Vec<usize> = match &left {
        Some(_) => named.into_iter().filter_map(|slot| finder.column_at(slot)).collect(),
        None => beside.to_vec(),
    };
    let others: Vec<usize> = beside.iter().copied().filter(|column| !first.contains(column)).collect();
    let picker = |columns: &[usize]| Picker::new(&scan.table.shape, columns);
    let others = (!others.is_empty()).then(|| picker(&others));
    Some(Rest { filter: left, first: picker(&first), others })
}

/// Whether what is evaluated on a row that passes may fail (GAT-2).
fn what_is_left_fails(scan: &Scan) -> bool {
    let filter = match scan.gate.as_deref().and_then(|gate| gate.rest.as_ref()) {
        Some(rest) => &rest.filter,
        None => &scan.filter,
    };
    filter.as_ref().is_some_and(|filter| filter.any(&fails))
}

/// Whether rows of a node may be turned away by what they have in a slot.
pub fn may_seek(node: &Node, slot: usize) -> bool {
    match node {
        Node::Scan(scan) => {
            let finder = Finder::of(scan);
            finder.key_cell(slot).is_some() && !what_is_left_fails(scan)
        }
        Node::Join(join) => stack::deeper(|| {
            may_seek(if seeks_left(join, slot) { &join.left } else { &join.right }, slot) && seeks(join, slot)
        }),
        Node::Filter { input, filter } => !filter.any(&fails) && may_seek(input, slot),
        _ => false,
    }
}

/// Whether a slot of a join's rows is one of its left side.
pub fn seeks_left(join: &Join, slot: usize) -> bool {
    slot < join.right_base
}

/// Whether a row of a side of a join may be turned away by what it has in a slot: no row of the join but those made of it depends on it.
fn seeks(join: &Join, slot: usize) -> bool {
    let by_left = matches!(join.kind, JoinType::Inner | JoinType::Left | JoinType::Semi | JoinType::Anti);
    let is_sure = !join.on.as_ref().is_some_and(|on| on.any(&fails));
    is_sure
        && join.hash.is_some()
        && join.merge.is_none()
        && if seeks_left(join, slot) { by_left } else { join.kind == JoinType::Inner }
}

/// A scan of which rows are turned away that have none of these keys in these slots; none: it goes on as it is.
pub fn with_keys(scan: &Scan, sought: &[(usize, Arc<MetKeys>)]) -> Option<Scan> {
    let finder = Finder::of(scan);
    let met = sought.iter().filter_map(|(slot, keys)| {
        let (cell, class) = finder.key_cell(*slot)?;
        (class == keys.class()).then(|| (cell, keys.clone()))
    });
    let met: Box<[_]> = met.collect();
    if met.is_empty() || what_is_left_fails(scan) {
        return None;
    }
    let stands_for = Some(scan.measured_at());
    let gate = match scan.gate.as_deref() {
        Some(gate) => Gate { met, stands_for, ..gate.clone() },
        None => Gate { cells: finder.cells, tests: Box::default(), met, rest: None, stands_for },
    };
    Some(Scan { gate: Some(Arc::new(gate)), ..scan.clone() })
}
