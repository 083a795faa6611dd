//! Decides whether the conditions of a query imply the condition of a partial index.
//!
//! Both sides are split at AND. Like PostgreSQL, it proves only three forms: an identical expression; IS NOT NULL, from a comparison that
//! is never true of a null; and a comparison of an expression with a constant, from comparisons of the same expression with other
//! constants.
//!
//! # Invariants
//! - PIM-1: what is not proven counts as not implied. A false "implied" would lose rows; a false "not implied" only costs time.

use super::plan::split;
use clearway_base::stack;
use clearway_syntax::ast::Truth;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use clearway_values::types::datum::compare;

/// Arms of an OR above which nothing is proven: the arms of two conditions are compared with each other.
const ARMS_MAX: usize = 100;

/// The same expressions, modifiers of casts included.
pub fn same(a: &Bound, b: &Bound) -> bool {
    a.ty == b.ty && a.same(b) && stack::deeper(|| a.children().into_iter().zip(b.children()).all(|(a, b)| same(a, b)))
}

/// Whether rows that meet all of `conditions` are proven to meet `wanted` (PIM-1).
pub fn implied(conditions: &[Bound], wanted: &Bound) -> bool {
    if is_true(wanted) {
        return true;
    }
    match &wanted.kind {
        BoundKind::And(list) => stack::deeper(|| list.iter().all(|w| implied(conditions, w))),
        _ => conditions.iter().any(|c| implies(c, wanted)),
    }
}

fn is_true(e: &Bound) -> bool {
    matches!(e.kind, BoundKind::Const(Datum::Bool(true)))
}

fn implies(given: &Bound, wanted: &Bound) -> bool {
    same(given, wanted) || stack::deeper(|| implies_otherwise(given, wanted))
}

fn implies_otherwise(given: &Bound, wanted: &Bound) -> bool {
    match (&given.kind, &wanted.kind) {
        (BoundKind::And(list), _) => return list.iter().any(|g| implies(g, wanted)),
        (BoundKind::Or(list), _) | (_, BoundKind::Or(list)) if list.len() > ARMS_MAX => return false,
        (BoundKind::Or(list), _) if list.iter().all(|g| implied(&split(g.clone()), wanted)) => return true,
        (_, BoundKind::Or(list)) if list.iter().any(|w| implied(std::slice::from_ref(given), w)) => return true,
        (_, BoundKind::And(list)) => return list.iter().all(|w| implies(given, w)),
        _ => {}
    }
    if let BoundKind::IsNull { arg, negated: true } = &wanted.kind {
        return refuses_null(given, arg);
    }
    match (truth_of(given), truth_of(wanted)) {
        (Some((g, x)), Some((w, y))) if x == y && same(g, w) => return true,
        _ => {}
    }
    match (comparison(given), comparison(wanted)) {
        (Some(g), Some(w)) => same(g.of, w.of) && g.implies(&w),
        _ => false,
    }
}

/// Whether a condition is never true where an expression is null.
fn refuses_null(given: &Bound, of: &Bound) -> bool {
    let is = |e: &Bound| is_strict_over(e, of);
    match &given.kind {
        BoundKind::Binary { op, left, right } => {
            (op.is_comparison() || matches!(op, Op::Like | Op::NotLike | Op::Match | Op::NotMatch))
                && (is(left) || is(right))
        }
        BoundKind::InList { arg, negated: false, .. } => is(arg),
        BoundKind::Quantified { left, all: false, .. } => is(left),
        BoundKind::IsNull { arg, negated: true } => is(arg),
        BoundKind::Not(arg) => is(arg),
        BoundKind::IsTruth { arg, truth: Truth::True | Truth::False, negated: false } => is(arg),
        _ => is(given),
    }
}

/// Whether an expression is null wherever `of` is.
fn is_strict_over(e: &Bound, of: &Bound) -> bool {
    if same(e, of) {
        return true;
    }
    match &e.kind {
        BoundKind::Cast { arg, .. } => stack::deeper(|| is_strict_over(arg, of)),
        BoundKind::Call { function, args } => {
            function.strict && stack::deeper(|| args.iter().any(|a| is_strict_over(a, of)))
        }
        _ => false,
    }
}

/// A boolean expression and the value that it has to have for the condition to hold.
fn truth_of(e: &Bound) -> Option<(&Bound, bool)> {
    let constant = |e: &Bound| match e.kind {
        BoundKind::Const(Datum::Bool(b)) => Some(b),
        _ => None,
    };
    match &e.kind {
        BoundKind::Not(arg) => stack::deeper(|| truth_of(arg)).map(|(e, b)| (e, !b)),
        BoundKind::IsTruth { arg, truth: Truth::True, negated: false } => Some((arg, true)),
        BoundKind::IsTruth { arg, truth: Truth::False, negated: false } => Some((arg, false)),
        BoundKind::Binary { op: Op::Eq, left, right } => match (constant(left), constant(right)) {
            (None, Some(b)) => Some((left, b)),
            (Some(b), None) => Some((right, b)),
            _ => None,
        },
        BoundKind::Column { .. } => Some((e, true)),
        _ => None,
    }
}

/// A comparison of an expression with constants.
struct Comparison<'b> {
    of: &'b Bound,
    what: ComparedWith<'b>,
}

enum ComparedWith<'b> {
    Compared(Op, &'b Datum),
    Among(Vec<&'b Datum>),
}

fn constant(e: &Bound) -> Option<&Datum> {
    match &e.kind {
        BoundKind::Const(v) if !v.is_null() => Some(v),
        _ => None,
    }
}

fn comparison(e: &Bound) -> Option<Comparison<'_>> {
    match &e.kind {
        BoundKind::Binary { op, left, right } if op.is_comparison() => {
            // Values of two types may compare in a third one.
            let alike = left.ty.oid == right.ty.oid;
            match (constant(left), constant(right)) {
                (None, Some(v)) if alike => Some(Comparison { of: left, what: ComparedWith::Compared(*op, v) }),
                (Some(v), None) if alike => {
                    Some(Comparison { of: right, what: ComparedWith::Compared(op.commuted()?, v) })
                }
                _ => None,
            }
        }
        BoundKind::InList { arg, list, negated: false } => {
            let alike = list.iter().all(|v| v.ty.oid == arg.ty.oid);
            let values = list.iter().map(constant).collect::<Option<Vec<_>>>().filter(|_| alike)?;
            Some(Comparison { of: arg, what: ComparedWith::Among(values) })
        }
        _ => None,
    }
}

fn holds(op: Op, v: &Datum, w: &Datum) -> bool {
    let order = compare(v, w);
    match op {
        Op::Eq => order.is_eq(),
        Op::Ne => order.is_ne(),
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Gt => order.is_gt(),
        Op::Ge => order.is_ge(),
        _ => false,
    }
}

impl Comparison<'_> {
    fn implies(&self, wanted: &Comparison<'_>) -> bool {
        match (&self.what, &wanted.what) {
            (ComparedWith::Compared(Op::Eq, v), ComparedWith::Compared(op, w)) => holds(*op, v, w),
            (ComparedWith::Compared(Op::Eq, v), ComparedWith::Among(list)) => list.iter().any(|w| holds(Op::Eq, v, w)),
            (ComparedWith::Among(values), ComparedWith::Compared(op, w)) => values.iter().all(|v| holds(*op, v, w)),
            (ComparedWith::Among(values), ComparedWith::Among(list)) => {
                values.iter().all(|v| list.iter().any(|w| holds(Op::Eq, v, w)))
            }
            (ComparedWith::Compared(op, v), ComparedWith::Compared(wanted, w)) => match (op, wanted) {
                (Op::Lt | Op::Le, Op::Lt) => holds(if *op == Op::Lt { Op::Le } else { Op::Lt }, v, w),
                (Op::Lt | Op::Le, Op::Le) => holds(Op::Le, v, w),
                (Op::Gt | Op::Ge, Op::Gt) => holds(if *op == Op::Gt { Op::Ge } else { Op::Gt }, v, w),
                (Op::Gt | Op::Ge, Op::Ge) => holds(Op::Ge, v, w),
                (Op::Lt, Op::Ne) => holds(Op::Le, v, w),
                (Op::Le, Op::Ne) => holds(Op::Lt, v, w),
                (Op::Gt, Op::Ne) => holds(Op::Ge, v, w),
                (Op::Ge, Op::Ne) => holds(Op::Gt, v, w),
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::implied;
    use crate::plan::split;
    use clearway_context::index_terms::{Place, bind};
    use clearway_engine::catalog::{Column, Relation};
    use clearway_values::types::oid;

    #[test]
    fn what_follows_from_what() {
        let column =
            |(name, ty): (&str, u32)| Column { name: name.to_owned(), type_oid: ty, type_mod: -1, ..Column::default() };
        let columns = [("a", oid::INT4), ("b", oid::INT4), ("s", oid::TEXT), ("on", oid::BOOL)].map(column).to_vec();
        let table = Relation::table(1, 1, 1, "t", columns, 1);
        let bound = |text: &str| bind(&table, text, Place::Condition).expect(text);
        for (given, wanted, expected) in [
            ("a = 1", "a = 1", true),
            ("a = 1 and b = 2", "b = 2", true),
            ("a = 1", "a = 1 and b = 2", false),
            ("a = 5", "a > 3", true),
            ("a = 3", "a > 3", false),
            ("a > 3", "a >= 3", true),
            ("a >= 3", "a > 3", false),
            ("a >= 4", "a > 3", true),
            ("4 <= a", "a > 3", true),
            ("a < 3", "a <> 3", true),
            ("a <= 3", "a <> 3", false),
            ("a in (1, 2)", "a in (1, 2, 3)", true),
            ("a in (1, 4)", "a in (1, 2, 3)", false),
            ("a in (4, 5)", "a > 3", true),
            ("a = 2", "a in (1, 2)", true),
            ("a = 1 or a = 2", "a < 3", true),
            ("a = 1 or b = 2", "a = 1", false),
            ("a = 1", "a = 1 or b = 2", true),
            ("a = b", "a is not null", true),
            ("lower(s) like 'x%'", "s is not null", true),
            ("coalesce(s, 'x') = 'x'", "s is not null", false),
            ("a is null", "a is not null", false),
            ("a not in (1, 2)", "a is not null", false),
            ("\"on\"", "\"on\"", true),
            ("\"on\" = true", "\"on\"", true),
            ("\"on\" is true", "\"on\"", true),
            ("not \"on\"", "\"on\" = false", true),
            ("not \"on\"", "\"on\"", false),
            ("\"on\" is not true", "not \"on\"", false),
            ("s::varchar(3) = 'x'", "s::varchar(2) = 'x'", false),
            ("a = 1", "true", true),
        ] {
            let found = implied(&split(bound(given)), &bound(wanted));
            assert_eq!(found, expected, "{given} implies {wanted}");
        }
    }
}
