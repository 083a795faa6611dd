//! Constant folding: an immutable part of an expression that names neither columns nor parameters is evaluated once, when the statement is
//! planned.
//!
//! # Invariants
//! - FLD-1: only immutable expressions are evaluated, since a plan is executed again at other times.
//! - FLD-2: an expression whose evaluation fails stays in the plan. The error is reported when a row is judged by the expression, or
//!   never.
//! - FLD-3: planning can't pause. So no operand has more than [`OPERAND_MAX`] bytes, and of functions those of [`SHORT`] alone are called, whose
//!   time and result are in proportion to these bytes: what may take long is evaluated during the execution, where it can be cancelled and
//!   other statements can run.

use clearway_base::stack;
use clearway_context::immutable::is_fixed;
use clearway_context::types::NoSession;
use clearway_syntax::error::Pos;
use clearway_values::expr::{Bound, BoundKind, Env, eval};
use clearway_values::types::{Datum, facts, oid};

/// The most bytes on the heap of a value with which planning computes (FLD-3).
const OPERAND_MAX: usize = 1000;

/// The functions that planning calls (FLD-3).
#[rustfmt::skip]
const SHORT: &[&str] = &[
    "abs", "ascii", "btrim", "ceil", "ceiling", "char_length", "character_length", "floor", "initcap", "left", "length", "lower", "ltrim",
    "make_date", "make_interval", "md5", "mod", "octet_length", "reverse", "right", "round", "rtrim", "sign", "strpos", "substr",
    "trunc", "upper",
];

/// Puts the values of the parts that are known in their places.
pub(super) fn fold(e: &mut Bound) {
    stack::deeper(|| e.children_mut().into_iter().for_each(fold));
    match &mut e.kind {
        BoundKind::And(list) => fold_list(list, false),
        BoundKind::Or(list) => fold_list(list, true),
        _ => {}
    }
    let value = match &e.kind {
        // What an AND or OR has lost decides nothing; what is left does.
        BoundKind::And(list) if list.is_empty() => Some(Datum::Bool(true)),
        BoundKind::Or(list) if list.is_empty() => Some(Datum::Bool(false)),
        // FLD-2: an error leaves the expression as it is.
        _ if may_be_known(e) => {
            eval(e, &Env { row: &[], outer: &[], params: &[], aggregates: &[], session: &NoSession }).ok()
        }
        _ => None,
    };
    if let Some(value) = value {
        e.kind = BoundKind::Const(value);
    } else if let BoundKind::And(list) | BoundKind::Or(list) = &mut e.kind
        && list.len() == 1
        && let Some(only) = list.pop()
    {
        *e = only;
    }
}

/// Leaves out of an AND (OR) what is true (false); where one is false (true), that is all that is left.
fn fold_list(list: &mut Vec<Bound>, decides: bool) {
    let is = |e: &Bound, value: bool| matches!(e.kind, BoundKind::Const(Datum::Bool(b)) if b == value);
    if let Some(at) = list.iter().position(|e| is(e, decides)) {
        // An expression before it that may fail or wait is not evaluated in PostgreSQL either.
        let decided = list.swap_remove(at);
        *list = vec![decided];
        return;
    }
    list.retain(|e| !is(e, !decides));
}

/// FLD-1: an operation over constants of types that no user has defined.
fn may_be_known(e: &Bound) -> bool {
    use BoundKind as K;
    let folds = matches!(
        e.kind,
        K::Binary { .. }
            | K::Prefix { .. }
            | K::Not(_)
            | K::And(_)
            | K::Or(_)
            | K::IsNull { .. }
            | K::IsTruth { .. }
            | K::IsDistinct { .. }
            | K::InList { .. }
            | K::Case { .. }
            | K::Coalesce(_)
            | K::MinMax { .. }
            | K::Cast { .. }
    ) || matches!(&e.kind, K::Call { function, .. } if SHORT.contains(&function.name));
    let children = e.children();
    folds
        && !children.is_empty()
        && is_fixed(e)
        && facts(e.ty.oid).is_some()
        && children.iter().all(|c| matches!(&c.kind, K::Const(value) if is_small(value)) && facts(c.ty.oid).is_some())
}

/// FLD-3.
fn is_small(value: &Datum) -> bool {
    value.heap_bytes() <= OPERAND_MAX
}

/// A condition that no row meets.
pub(super) fn never(pos: Pos) -> Bound {
    Bound::constant(Datum::Bool(false), oid::BOOL, pos)
}

/// Whether no row meets a condition.
pub(super) fn is_never(e: &Bound) -> bool {
    matches!(e.kind, BoundKind::Const(Datum::Bool(false) | Datum::Null))
}

/// Whether every row does.
pub(super) fn is_always(e: &Bound) -> bool {
    matches!(e.kind, BoundKind::Const(Datum::Bool(true)))
}
