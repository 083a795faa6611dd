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
use super::met_keys::{MetKeys, class_of};
use super::plan::{Access, Join, JoinType, Node, Scan};
use super::walk;
use clearway_base::stack;
use clearway_context::convert::{stored_numeric, without_blanks};
use clearway_engine::codec::cells::{Cell, CellRow, Cells};
use clearway_engine::table::pick::Picker;
use clearway_engine::value::ValueRef;
use clearway_values::expr::like::like;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::datum::compare;
use clearway_values::types::{Datum, Oid, cast, oid};
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
    /// It meets the conditions that were tested.
    Passes,
    /// The bytes do not tell.
    Unknown,
}

/// A condition on columns. A null meets none of them but the one that asks for it.
#[derive(Clone, Debug)]
enum Test {
    /// An integer lies between two, or outside of them.
    Within { cell: Cell, low: i64, high: i64, outside: bool },
    /// An integer is one of these, or none of them.
    AmongInts { cell: Cell, sorted: Box<[i64]>, negated: bool },
    /// Two columns of integers.
    Columns { left: Cell, op: Op, right: Cell },
    /// A null, or none.
    IsNull { cell: Cell, negated: bool },
    /// A text, or so many of its first characters, is one of these, or none of them.
    AmongTexts { cell: Cell, head: Option<usize>, sorted: Box<[Box<[u8]>]>, pads: bool, negated: bool },
    /// A value of a type and a constant or a parameter.
    Order { cell: Cell, ty: Oid, op: Op, with: Operand },
    /// LIKE.
    Like { cell: Cell, pattern: Arc<str>, negated: bool },
    /// One of these holds, each of several conditions.
    Any(Box<[Box<[Test]>]>),
}

#[derive(Clone, Debug)]
enum Operand {
    Constant(Datum),
    Parameter(u32),
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
                Some(false) => return Verdict::Away,
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

/// The stored form of a value that is compared with a column of a type whose stored form is an integer.
fn integer(ty: Oid, value: &Datum) -> Option<i64> {
    Some(match (ty, value) {
        (oid::INT2 | oid::INT4 | oid::INT8, Datum::Int2(int)) => i64::from(*int),
        (oid::INT2 | oid::INT4 | oid::INT8, Datum::Int4(int)) => i64::from(*int),
        (oid::INT2 | oid::INT4 | oid::INT8, Datum::Int8(int)) => *int,
        (oid::DATE, Datum::Date(days)) => i64::from(*days),
        (oid::TIMESTAMP, Datum::Timestamp(at)) | (oid::TIMESTAMPTZ, Datum::TimestampTz(at)) => *at,
        _ => return None,
    })
}

fn is_integer(ty: Oid) -> bool {
    matches!(ty, oid::INT2 | oid::INT4 | oid::INT8 | oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ)
}

fn is_text(ty: Oid) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR)
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
    let finder = Finder { scan, cells: Cells::new(&scan.table.shape) };
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
    // None of them fails (GAT-2), so that the cheapest may come first.
    tests.sort_by_key(cost);
    let rest = finder.rest(filter, conjunction(left));
    (!tests.is_empty()).then(|| Gate { cells: finder.cells, tests: tests.into(), met: Box::default(), rest })
}

/// Whether rows of a node may be turned away by what they have in a slot.
pub fn may_seek(node: &Node, slot: usize) -> bool {
    match node {
        Node::Scan(scan) => {
            let finder = Finder { scan, cells: Cells::new(&scan.table.shape) };
            finder.key_cell(slot).is_some() && !finder.fails()
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
    let finder = Finder { scan, cells: Cells::new(&scan.table.shape) };
    let met = sought.iter().filter_map(|(slot, keys)| {
        let (cell, class) = finder.key_cell(*slot)?;
        (class == keys.class()).then(|| (cell, keys.clone()))
    });
    let met: Box<[_]> = met.collect();
    if met.is_empty() || finder.fails() {
        return None;
    }
    let gate = match scan.gate.as_deref() {
        Some(gate) => Gate { met, ..gate.clone() },
        None => Gate { cells: finder.cells, tests: Box::default(), met, rest: None },
    };
    Some(Scan { gate: Some(Arc::new(gate)), ..scan.clone() })
}

/// Whether the evaluation of a part of an expression may give an error.
fn fails(e: &Bound) -> bool {
    use BoundKind as K;
    match &e.kind {
        K::Const(_) | K::Column { .. } | K::Param(_) | K::And(_) | K::Or(_) | K::Not(_) => false,
        K::IsNull { .. } | K::IsTruth { .. } | K::InList { .. } => false,
        K::Binary { op, .. } => !op.is_comparison(),
        K::Cast { arg, .. } => !cast::keeps_values(arg.ty, e.ty),
        _ => true,
    }
}

fn cost(test: &Test) -> usize {
    match test {
        Test::Within { .. } => 0,
        Test::Columns { .. } | Test::IsNull { .. } => 1,
        Test::AmongInts { .. } => 2,
        Test::AmongTexts { .. } => 3,
        Test::Order { .. } => 4,
        Test::Any(_) => 5,
        Test::Like { .. } => 6,
    }
}

/// Makes tests of a scan's conditions.
struct Finder<'s> {
    scan: &'s Scan,
    cells: Cells,
}

impl Finder<'_> {
    /// Adds a test; two ranges of one column are one.
    fn put(&self, tests: &mut Vec<Test>, test: Test) {
        if let Test::Within { cell: of, low: from, high: to, outside: false } = &test {
            for before in tests.iter_mut() {
                if let Test::Within { cell, low, high, outside: false } = before
                    && cell == of
                {
                    (*low, *high) = ((*low).max(*from), (*high).min(*to));
                    return;
                }
            }
        }
        tests.push(test);
    }

    /// The table's column that a slot of the scan is.
    fn column_at(&self, slot: usize) -> Option<usize> {
        let at = slot.checked_sub(self.scan.table.base)?;
        match (&self.scan.dense, &self.scan.wanted) {
            (Some(_), Some(wanted)) => wanted.wanted().get(at).copied(),
            _ => (at < self.scan.table.types.len()).then_some(at),
        }
    }

    /// A column of the table, as it is stored, and its type.
    fn column(&self, e: &Bound) -> Option<(Cell, Oid)> {
        match &e.kind {
            BoundKind::Column { index, level: 0 } => {
                let column = self.column_at(*index)?;
                Some((self.cells.cell(&self.scan.table.shape, column)?, self.scan.table.types[column].oid))
            }
            BoundKind::Cast { arg, .. } if cast::keeps_values(arg.ty, e.ty) => self.column(arg),
            _ => None,
        }
    }

    /// The column that is a slot, if its values are compared as integers: and how.
    fn key_cell(&self, slot: usize) -> Option<(Cell, Oid)> {
        let column = self.column_at(slot)?;
        let class = class_of(self.scan.table.types[column].oid)?;
        Some((self.cells.cell(&self.scan.table.shape, column)?, class))
    }

    /// Whether what is evaluated on a row that passes may fail (GAT-2).
    fn fails(&self) -> bool {
        match self.scan.gate.as_deref().and_then(|gate| gate.rest.as_ref()) {
            Some(rest) => rest.filter.as_ref().is_some_and(|filter| filter.any(&fails)),
            None => self.scan.filter.as_ref().is_some_and(|filter| filter.any(&fails)),
        }
    }

    /// The test that a condition is; none: it is none.
    fn test(&self, condition: &Bound) -> Option<Test> {
        use BoundKind as K;
        match &condition.kind {
            K::Binary { op, left, right } if op.is_comparison() => self.comparison(*op, left, right),
            K::Binary { op: op @ (Op::Like | Op::NotLike), left, right } => match (self.column(left)?, &right.kind) {
                ((cell, oid::TEXT | oid::VARCHAR), K::Const(Datum::Text(pattern))) => {
                    Some(Test::Like { cell, pattern: pattern.clone(), negated: *op == Op::NotLike })
                }
                _ => None,
            },
            K::IsNull { arg, negated } => {
                let (cell, ty) = self.column(arg)?;
                (is_integer(ty) || is_text(ty) || ty == oid::NUMERIC)
                    .then_some(Test::IsNull { cell, negated: *negated })
            }
            K::InList { arg, list, negated } => {
                let values = list.iter().map(constant).collect::<Option<Vec<&Datum>>>()?;
                self.among(arg, &values, *negated)
            }
            K::Quantified { left, op, all, array } => match (&array.kind, op, all) {
                (K::Const(Datum::Array(array)), Op::Eq, false) | (K::Const(Datum::Array(array)), Op::Ne, true) => {
                    self.among(left, &array.values.iter().collect::<Vec<_>>(), *all)
                }
                _ => None,
            },
            K::Or(list) => stack::deeper(|| {
                let branch = |e: &Bound| split(e.clone()).iter().map(|e| self.test(e)).collect::<Option<Box<[Test]>>>();
                list.iter().map(branch).collect::<Option<Box<[_]>>>().map(Test::Any)
            }),
            _ => None,
        }
    }

    fn comparison(&self, op: Op, left: &Bound, right: &Bound) -> Option<Test> {
        if let (Op::Eq | Op::Ne, BoundKind::Const(value @ (Datum::Text(_) | Datum::Bpchar(_)))) = (op, &right.kind) {
            return self.among(left, &[value], op == Op::Ne);
        }
        let (Some((cell, ty)), other) = (self.column(left), right) else {
            let op = op.commuted()?;
            return self.column(right).is_some().then(|| self.comparison(op, right, left))?;
        };
        if let Some((right, other)) = self.column(other) {
            let are_alike = |a, b| a == b || [a, b].iter().all(|ty| matches!(*ty, oid::INT2 | oid::INT4 | oid::INT8));
            return (is_integer(ty) && are_alike(ty, other)).then_some(Test::Columns { left: cell, op, right });
        }
        let with = match &other.kind {
            BoundKind::Const(value) if !value.is_null() => Operand::Constant(value.clone()),
            BoundKind::Param(n) => Operand::Parameter(*n),
            _ => return None,
        };
        if let (Operand::Constant(value), true) = (&with, is_integer(ty)) {
            let int = integer(ty, value)?;
            let (low, high) = match op {
                Op::Lt => (i64::MIN, int.checked_sub(1)?),
                Op::Le => (i64::MIN, int),
                Op::Gt => (int.checked_add(1)?, i64::MAX),
                Op::Ge => (int, i64::MAX),
                _ => (int, int),
            };
            return Some(Test::Within { cell, low, high, outside: op == Op::Ne });
        }
        let is_compared = is_integer(ty) || is_text(ty) || matches!(ty, oid::NUMERIC | oid::FLOAT8);
        is_compared.then_some(Test::Order { cell, ty, op, with })
    }

    /// A column whose first characters an expression is, and how many; none: it is another expression.
    fn beginning(&self, e: &Bound) -> Option<(Cell, Oid, usize)> {
        let BoundKind::Call { function, args } = &e.kind else { return None };
        let number = |e: &Bound| match e.kind {
            BoundKind::Const(Datum::Int4(n)) => usize::try_from(n).ok(),
            _ => None,
        };
        let (text, chars) = match (function.name, args.as_slice()) {
            ("substring" | "substr", [text, from, count]) if number(from) == Some(1) => (text, number(count)?),
            ("left", [text, count]) => (text, number(count)?),
            _ => return None,
        };
        let column = match &text.kind {
            // Blanks at the end of char(n) are no part of the text.
            BoundKind::Cast { arg, .. } if arg.ty.oid == oid::BPCHAR && text.ty.modifier < 0 => self.column(arg),
            _ => self.column(text),
        };
        let (cell, ty) = column?;
        (text.ty.oid == oid::TEXT && is_text(ty)).then_some((cell, ty, chars))
    }

    fn among(&self, arg: &Bound, values: &[&Datum], negated: bool) -> Option<Test> {
        let (cell, ty, head) = match (self.column(arg), self.beginning(arg)) {
            (Some((cell, ty)), _) => (cell, ty, None),
            (None, Some((cell, ty, chars))) => (cell, ty, Some(chars)),
            (None, None) => return None,
        };
        let (nulls, values): (Vec<&Datum>, Vec<&Datum>) = values.iter().partition(|value| value.is_null());
        if negated && !nulls.is_empty() {
            return None;
        }
        if is_integer(ty) {
            let mut sorted = values.into_iter().map(|value| integer(ty, value)).collect::<Option<Vec<i64>>>()?;
            sorted.sort_unstable();
            return Some(Test::AmongInts { cell, sorted: sorted.into(), negated });
        }
        let pads = ty == oid::BPCHAR;
        let text = |value: &Datum| match value {
            Datum::Text(text) if !pads || head.is_some() => Some(text.as_bytes().into()),
            Datum::Bpchar(text) if pads && head.is_none() => Some(without_blanks(text.as_bytes()).into()),
            _ => None,
        };
        if !is_text(ty) {
            return None;
        }
        let mut sorted = values.into_iter().map(text).collect::<Option<Vec<Box<[u8]>>>>()?;
        sorted.sort_unstable();
        Some(Test::AmongTexts { cell, head, sorted: sorted.into(), pads, negated })
    }

    /// What is left to do for a row that passes; none: all of it.
    fn rest(&self, filter: &Bound, left: Option<Bound>) -> Option<Rest> {
        let beside = self.scan.beside.as_deref()?;
        if filter.may_wait() {
            return None;
        }
        let named = left.as_ref().map(|left| walk::columns(left, 0)).unwrap_or_default();
        let first: Vec<usize> = match &left {
            Some(_) => named.into_iter().filter_map(|slot| self.column_at(slot)).collect(),
            None => beside.to_vec(),
        };
        let others: Vec<usize> = beside.iter().copied().filter(|column| !first.contains(column)).collect();
        let picker = |columns: &[usize]| Picker::new(&self.scan.table.shape, columns);
        let others = (!others.is_empty()).then(|| picker(&others));
        Some(Rest { filter: left, first: picker(&first), others })
    }
}

fn constant(e: &Bound) -> Option<&Datum> {
    match &e.kind {
        BoundKind::Const(value) => Some(value),
        _ => None,
    }
}
