//! Conditions that ask for integers of a row alone: they are judged over the numbers as they are stored, without values of the language.
//!
//! # Invariants
//! - ITC-1: an answer is whether [`eval`](super::eval::eval) gives true for the row. There is none where the evaluator would have to be asked: where it fails, and where a number is not
//!   known (a NULL). (Of a DELETE with the condition `id % 2 = 0` a sixth was values of the language, made for one comparison each.)
//!
//! # Not here
//! Reading the numbers (`sql/exec`); conditions that name anything but columns of their own level, constants and parameters.

use super::bound::{Bound, BoundKind};
use super::operators::Op;
use crate::types::{Datum, Oid, oid};

/// Deeper expressions are left to the evaluator, which asks for room on the stack.
const DEPTH_MAX: usize = 16;

/// Bytes of an integer type.
type Width = u8;

enum Number {
    /// The row's number at this place.
    Column(usize),
    Const(i64),
    Computed(Op, Box<(Number, Number)>, Width),
}

enum Test {
    Compared(Op, Number, Number),
    /// AND, and with `true` OR.
    Joined(Box<[Test]>, bool),
    Not(Box<Test>),
}

/// A condition over integers.
pub struct IntCondition {
    test: Test,
    /// The slots of the row whose numbers it asks for.
    slots: Vec<usize>,
}

fn width_of(ty: Oid) -> Option<Width> {
    match ty {
        oid::INT2 => Some(2),
        oid::INT4 => Some(4),
        oid::INT8 => Some(8),
        _ => None,
    }
}

fn constant(value: &Datum) -> Option<(Number, Width)> {
    let width = match value {
        Datum::Int2(_) => 2,
        Datum::Int4(_) => 4,
        Datum::Int8(_) => 8,
        _ => return None,
    };
    Some((Number::Const(value.as_i64()?), width))
}

impl Number {
    fn of(e: &Bound, params: &[Datum], slots: &mut Vec<usize>, depth: usize) -> Option<(Number, Width)> {
        match &e.kind {
            _ if depth == 0 => None,
            BoundKind::Const(value) => constant(value),
            BoundKind::Param(n) => constant(params.get((*n as usize).checked_sub(1)?)?),
            BoundKind::Column { index, level: 0 } => {
                let width = width_of(e.ty.oid)?;
                let place = slots.iter().position(|slot| slot == index).unwrap_or_else(|| {
                    slots.push(*index);
                    slots.len() - 1
                });
                Some((Number::Column(place), width))
            }
            BoundKind::Binary { op, left, right } if matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem) => {
                let (left, of_left) = Number::of(left, params, slots, depth - 1)?;
                let (right, of_right) = Number::of(right, params, slots, depth - 1)?;
                let width = of_left.max(of_right);
                Some((Number::Computed(*op, Box::new((left, right)), width), width))
            }
            BoundKind::Cast { arg, .. } => {
                let (number, width) = Number::of(arg, params, slots, depth - 1)?;
                let to = width_of(e.ty.oid).filter(|to| *to >= width)?;
                Some((number, to))
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn value(&self, row: &[i64]) -> Option<i64> {
        match self {
            Number::Column(place) => row.get(*place).copied(),
            Number::Const(value) => Some(*value),
            Number::Computed(op, sides, width) => computed(*op, sides, *width, row),
        }
    }
}

/// The value of an operation, if it has one of its type.
fn computed(op: Op, sides: &(Number, Number), width: Width, row: &[i64]) -> Option<i64> {
    let (left, right) = (sides.0.value(row)?, sides.1.value(row)?);
    let value = match op {
        Op::Add => left.checked_add(right)?,
        Op::Sub => left.checked_sub(right)?,
        Op::Mul => left.checked_mul(right)?,
        // Zero on the right is an error.
        Op::Div => left.checked_div(right)?,
        _ => left.checked_rem(right)?,
    };
    let fits = match width {
        2 => i16::try_from(value).is_ok(),
        4 => i32::try_from(value).is_ok(),
        _ => true,
    };
    fits.then_some(value)
}

impl Test {
    fn of(e: &Bound, params: &[Datum], slots: &mut Vec<usize>, depth: usize) -> Option<Test> {
        let mut joined = |list: &[Bound], decisive| {
            let tests = list.iter().map(|e| Test::of(e, params, slots, depth - 1)).collect::<Option<_>>()?;
            Some(Test::Joined(tests, decisive))
        };
        match &e.kind {
            _ if depth == 0 => None,
            BoundKind::Binary { op, left, right } if op.is_comparison() => {
                let (left, _) = Number::of(left, params, slots, depth - 1)?;
                let (right, _) = Number::of(right, params, slots, depth - 1)?;
                Some(Test::Compared(*op, left, right))
            }
            BoundKind::And(list) => joined(list, false),
            BoundKind::Or(list) => joined(list, true),
            BoundKind::Not(arg) => Some(Test::Not(Box::new(Test::of(arg, params, slots, depth - 1)?))),
            _ => None,
        }
    }

    fn holds(&self, row: &[i64]) -> Option<bool> {
        match self {
            Test::Compared(op, left, right) => Some(op.holds(left.value(row)?.cmp(&right.value(row)?))),
            Test::Joined(tests, decisive) => {
                for test in tests {
                    if test.holds(row)? == *decisive {
                        return Some(*decisive);
                    }
                }
                Some(!decisive)
            }
            Test::Not(test) => test.holds(row).map(|holds| !holds),
        }
    }
}

impl IntCondition {
    /// The condition of an expression, with these parameters; none: it is of another kind.
    pub fn of(e: &Bound, params: &[Datum]) -> Option<IntCondition> {
        let mut slots = Vec::new();
        let test = Test::of(e, params, &mut slots, DEPTH_MAX)?;
        Some(IntCondition { test, slots })
    }

    /// The slots of the row whose numbers it asks for.
    pub fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// Whether a row meets it that has these numbers in its slots; none: the evaluator has to be asked (ITC-1).
    #[inline]
    pub fn holds(&self, row: &[i64]) -> Option<bool> {
        self.test.holds(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SqlType;

    fn bound(kind: BoundKind, ty: Oid) -> Bound {
        Bound { kind, ty: SqlType::new(ty), pos: Default::default() }
    }

    fn binary(op: Op, left: Bound, right: Bound) -> Bound {
        let ty = if op.is_comparison() { oid::BOOL } else { left.ty.oid.max(right.ty.oid) };
        bound(BoundKind::Binary { op, left: left.into(), right: right.into() }, ty)
    }

    fn column(index: usize, ty: Oid) -> Bound {
        bound(BoundKind::Column { index, level: 0 }, ty)
    }

    fn int4(n: i32) -> Bound {
        Bound::constant(Datum::Int4(n), SqlType::new(oid::INT4), Default::default())
    }

    #[test]
    fn numbers_of_every_width_are_judged_and_what_fails_is_left_to_the_evaluator() {
        // ITC-1
        let remainder = binary(Op::Eq, binary(Op::Rem, column(3, oid::INT4), int4(2)), int4(0));
        let condition = IntCondition::of(&remainder, &[]).expect("integers alone");
        assert_eq!(condition.slots(), [3]);
        let answers: Vec<_> = [4, 5, -4, -5].iter().map(|n| condition.holds(&[*n])).collect();
        assert_eq!(answers, [Some(true), Some(false), Some(true), Some(false)]);
        assert_eq!(condition.holds(&[]), None, "a number that is not known");
        for (op, ty, left, right, expected) in [
            (Op::Add, oid::INT4, i64::from(i32::MAX), 1, None),
            (Op::Add, oid::INT8, i64::from(i32::MAX), 1, Some(true)),
            (Op::Add, oid::INT8, i64::MAX, 1, None),
            (Op::Sub, oid::INT4, i64::from(i32::MIN), 1, None),
            (Op::Mul, oid::INT4, 1 << 20, 1 << 20, None),
            (Op::Div, oid::INT4, 7, 0, None),
            (Op::Rem, oid::INT4, 7, 0, None),
            (Op::Div, oid::INT4, i64::from(i32::MIN), -1, None),
            (Op::Div, oid::INT4, 7, 2, Some(true)),
        ] {
            let computed = binary(op, column(0, ty), column(1, ty));
            let condition = IntCondition::of(&binary(Op::Gt, computed, int4(0)), &[]).expect("integers alone");
            assert_eq!(condition.holds(&[left, right]), expected, "{} {left} {right}", op.name());
        }
    }

    #[test]
    fn what_is_no_integer_is_no_condition_of_this_kind() {
        let is = |e: &Bound| IntCondition::of(e, &[Datum::Int8(7), Datum::Null]).is_some();
        let equals = |right: Bound| binary(Op::Eq, column(0, oid::INT8), right);
        assert!(is(&equals(bound(BoundKind::Param(1), oid::INT8))));
        assert!(!is(&equals(bound(BoundKind::Param(2), oid::INT8))), "a parameter that is null");
        assert!(!is(&equals(bound(BoundKind::Param(3), oid::INT8))), "one that is not given");
        assert!(!is(&binary(Op::Eq, column(0, oid::TEXT), column(1, oid::TEXT))));
        assert!(!is(&equals(bound(BoundKind::Column { index: 0, level: 1 }, oid::INT8))), "of another level");
        let both = |decisive: bool| {
            let list = vec![equals(int4(1)), equals(int4(2))];
            bound(if decisive { BoundKind::Or(list) } else { BoundKind::And(list) }, oid::BOOL)
        };
        let holds = |e: &Bound, n: i64| IntCondition::of(e, &[]).and_then(|condition| condition.holds(&[n]));
        assert_eq!((holds(&both(true), 2), holds(&both(false), 2)), (Some(true), Some(false)));
        let not = bound(BoundKind::Not(both(true).into()), oid::BOOL);
        assert_eq!((holds(&not, 2), holds(&not, 3)), (Some(false), Some(true)));
        let deep = (0..DEPTH_MAX).fold(int4(1), |sum, _| binary(Op::Add, sum, int4(1)));
        assert!(!is(&equals(deep)), "too deep for this");
    }
}
