//! Makes tests of the conditions of a scan, as far as they can be judged on stored rows (`gate`).

use super::met_keys::class_of;
use super::plan::{Scan, TableSlot, split};
use clearway_base::stack;
use clearway_context::convert::without_blanks;
use clearway_engine::codec::cells::{Cell, Cells};
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::{Datum, Oid, cast, oid};
use std::sync::Arc;

/// A condition on columns. A null meets none of them but the one that asks for it.
#[derive(Clone, Debug)]
pub(super) enum Test {
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

/// What a column is compared with.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// A constant.
    Constant(Datum),
    /// A parameter.
    Parameter(u32),
}

/// The stored form of a value that is compared with a column of a type whose stored form is an integer.
pub(super) fn integer(ty: Oid, value: &Datum) -> Option<i64> {
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

/// Whether the evaluation of a part of an expression may give an error.
pub(super) fn fails(e: &Bound) -> bool {
    use BoundKind as K;
    match &e.kind {
        K::Const(_) | K::Column { .. } | K::Param(_) | K::And(_) | K::Or(_) | K::Not(_) => false,
        K::IsNull { .. } | K::IsTruth { .. } | K::InList { .. } => false,
        K::Binary { op, .. } => !op.is_comparison(),
        K::Cast { arg, .. } => !cast::keeps_values(arg.ty, e.ty),
        _ => true,
    }
}

/// The place of a test among others: none of them fails (GAT-2), so that the cheapest may come first.
pub(super) fn cost(test: &Test) -> usize {
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

/// Makes tests of conditions on a table.
pub(super) struct Finder<'s> {
    table: &'s TableSlot,
    /// The columns of its slots, where they are not all (PLN-10).
    columns: Option<&'s [usize]>,
    /// Its stored columns.
    pub(super) cells: Cells,
}

impl<'s> Finder<'s> {
    /// Of the conditions of a scan.
    pub(super) fn of(scan: &'s Scan) -> Finder<'s> {
        let columns = scan.dense.as_ref().and(scan.wanted.as_ref()).map(|wanted| wanted.wanted());
        Finder { columns, ..Finder::of_table(&scan.table) }
    }

    /// Of conditions on a table that has all of its slots (PLN-1).
    pub(super) fn of_table(table: &'s TableSlot) -> Finder<'s> {
        Finder { table, columns: None, cells: Cells::new(&table.shape) }
    }

    /// Adds a test; two ranges of one column are one.
    pub(super) fn put(&self, tests: &mut Vec<Test>, test: Test) {
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
    pub(super) fn column_at(&self, slot: usize) -> Option<usize> {
        let at = slot.checked_sub(self.table.base)?;
        match self.columns {
            Some(columns) => columns.get(at).copied(),
            None => (at < self.table.types.len()).then_some(at),
        }
    }

    /// A column of the table, as it is stored, and its type.
    fn column(&self, e: &Bound) -> Option<(Cell, Oid)> {
        match &e.kind {
            BoundKind::Column { index, level: 0 } => {
                let column = self.column_at(*index)?;
                Some((self.cells.cell(&self.table.shape, column)?, self.table.types[column].oid))
            }
            BoundKind::Cast { arg, .. } if cast::keeps_values(arg.ty, e.ty) => self.column(arg),
            _ => None,
        }
    }

    /// The column that is a slot, if its values are compared as integers: and how.
    pub(super) fn key_cell(&self, slot: usize) -> Option<(Cell, Oid)> {
        let column = self.column_at(slot)?;
        let class = class_of(self.table.types[column].oid)?;
        Some((self.cells.cell(&self.table.shape, column)?, class))
    }

    /// The test that a condition is; none: it is none.
    pub(super) fn test(&self, condition: &Bound) -> Option<Test> {
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
}

fn constant(e: &Bound) -> Option<&Datum> {
    match &e.kind {
        BoundKind::Const(value) => Some(value),
        _ => None,
    }
}
