//! Operator precedence, and the height of syntax trees.

use super::super::ast::{AnyOf, Expr, ExprKind, Index};
use super::super::window::Over;

/// Precedence levels, lowest first, as gram.y orders them.
pub(super) mod level {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const IS: u8 = 4;
    pub const COMPARE: u8 = 5;
    pub const MATCH: u8 = 6;
    pub const OTHER: u8 = 7;
    pub const ADD: u8 = 8;
    pub const MULTIPLY: u8 = 9;
    pub const POWER: u8 = 10;
    pub const AT: u8 = 11;
    pub const COLLATE: u8 = 12;
    pub const SIGN: u8 = 13;
}

/// The level of a binary operator.
pub(super) fn binary_level(op: &str) -> u8 {
    match op {
        "<" | ">" | "=" | "<=" | ">=" | "<>" => level::COMPARE,
        "+" | "-" => level::ADD,
        "*" | "/" | "%" => level::MULTIPLY,
        "^" => level::POWER,
        _ => level::OTHER,
    }
}

/// Calls `f` on each direct child of a node; a subquery counts by its own height.
fn max_of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> u16 {
    exprs.into_iter().map(|e| e.height).max().unwrap_or(0)
}

/// The height of the highest child.
pub(super) fn height_below(kind: &ExprKind) -> u16 {
    use ExprKind as K;
    match kind {
        K::Literal(_) | K::Param(_) | K::Column(_) | K::Bare(_) | K::Default => 0,
        K::Unary { op: _, arg }
        | K::Not(arg)
        | K::IsNull { arg, negated: _ }
        | K::IsTruth { arg, truth: _, negated: _ }
        | K::Cast { arg, to: _ }
        | K::Field { arg, name: _ }
        | K::AllFields(arg)
        | K::Collate { arg, collation: _ } => arg.height,
        K::Binary { op: _, left, right } | K::IsDistinct { left, right, negated: _ } | K::NullIf(left, right) => {
            left.height.max(right.height)
        }
        K::And(list) | K::Or(list) | K::Coalesce(list) | K::Greatest(list) | K::Least(list) => max_of(list),
        K::Array(list) | K::Row(list) | K::Grouping(list) => max_of(list),
        K::Between { arg, low, high, negated: _, symmetric: _ } => max_of([arg, low, high]),
        K::InList { arg, list, negated: _ } => arg.height.max(max_of(list)),
        K::InQuery { arg, query, negated: _ } => arg.height.max(query.height),
        K::Like { arg, pattern, escape, kind: _, negated: _ } => max_of([arg, pattern]).max(max_of(escape)),
        K::Quantified { left, op: _, all: _, right: AnyOf::Array(right) } => left.height.max(right.height),
        K::Quantified { left, op: _, all: _, right: AnyOf::Query(query) } => left.height.max(query.height),
        K::Case { arg, whens, otherwise } => {
            let whens = whens.iter().map(|(a, b)| a.height.max(b.height)).max().unwrap_or(0);
            max_of(arg).max(whens).max(max_of(otherwise))
        }
        K::Call(call) => {
            let over = match call.over.as_deref() {
                Some(Over::Spec(spec)) => max_of(spec.exprs()),
                Some(Over::Name(..)) | None => 0,
            };
            let order = max_of(call.order_by.iter().map(|o| &o.expr));
            max_of(&call.args).max(max_of(&call.filter)).max(order).max(over)
        }
        K::ArrayQuery(query) | K::Exists(query) | K::Subquery(query) => query.height,
        K::Subscript { arg, index } => index.iter().fold(arg.height, |h, i| match i {
            Index::At(e) => h.max(e.height),
            Index::Slice(a, b) => h.max(max_of(a)).max(max_of(b)),
            Index::Field(..) => h,
        }),
    }
}
