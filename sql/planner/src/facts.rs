//! Facts: what a condition says about one column of a table, by comparing it with values that are known before the table is read.

use super::indexes::{term, type_of};
use super::plan::{Range, TableSlot};
use super::row_ends::{RowTest, row_test};
use super::walk;
use clearway_context::sort_form::can_be_key;
use clearway_values::expr::Bound;
use clearway_values::expr::bound::{BoundKind, SubqueryUse};
use clearway_values::expr::nearest;
use clearway_values::expr::operators::Op;
use clearway_values::types::{element_of, oid};
use std::borrow::Cow;

/// A condition about a column.
pub struct Fact<'b> {
    /// The column's place in the table.
    pub column: usize,
    /// What the condition asks of the column.
    pub test: ColumnTest<'b>,
    /// The condition's place in the list of conditions.
    pub at: usize,
}

/// What a condition asks of a column.
pub enum ColumnTest<'b> {
    /// `column op value`; never `<>`. The value is of a type whose keys compare with the column's (NST-1).
    Compared(Op, Cow<'b, Bound>),
    /// `column IN (...)`.
    Among(&'b [Bound]),
    /// `column = ANY (array)`.
    InArray(&'b Bound),
    /// `column IN (SELECT ...)`, where the query is the same for all rows: its rows as an array.
    InRows(Box<Bound>),
    /// `column IS NULL`.
    Null,
    /// `column LIKE pattern`, or `column ~ pattern`.
    Begins(Op, &'b Bound),
    /// `(column, ...) < (value, ...)`.
    Row(RowTest<'b>),
}

/// The column of a table that an expression is, casts aside that change no value.
pub fn as_column(e: &Bound, table: &TableSlot) -> Option<usize> {
    match &e.kind {
        BoundKind::Column { index, level: 0 } => index.checked_sub(table.base).filter(|c| *c < table.types.len()),
        BoundKind::Cast { arg, explicit: _ } => {
            let relabel = matches!((arg.ty.oid, e.ty.oid), (oid::VARCHAR, oid::TEXT) | (oid::TEXT, oid::VARCHAR))
                && e.ty.modifier < 0;
            if relabel { as_column(arg, table) } else { None }
        }
        _ => None,
    }
}

/// The same, or the expression of an index that it is (SHP-3).
fn place_of(e: &Bound, table: &TableSlot) -> Option<usize> {
    as_column(e, table).or_else(|| term(e, table))
}

/// Whether an expression is known before the table is read.
pub(super) fn is_known(e: &Bound, table: &TableSlot) -> bool {
    !walk::stays_above(e) && !is_random(e) && walk::slots(e).is_none_or(|(_, high)| high < table.base)
}

/// Whether it may have another value each time it is evaluated.
pub(super) fn is_random(e: &Bound) -> bool {
    e.any(&|e| matches!(&e.kind, BoundKind::Call { function, .. } | BoundKind::Spread { function, .. } if function.volatile))
}

pub(super) fn comparable(column_type: u32, value_type: u32) -> bool {
    let integer = |t: u32| matches!(t, oid::INT2 | oid::INT4 | oid::INT8);
    (column_type == value_type && can_be_key(column_type))
        || (integer(column_type) && integer(value_type))
        || (is_text(column_type) && (is_text(value_type) || value_type == oid::UNKNOWN))
}

fn is_text(ty: u32) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::NAME)
}

/// What a condition says of a column of the table, if it is of that kind.
pub fn fact_of<'b>(table: &TableSlot, e: &'b Bound, at: usize) -> Option<Fact<'b>> {
    match &e.kind {
        BoundKind::Binary { op, left, right } if matches!(op, Op::Like | Op::Match) => {
            let column = place_of(left, table)?;
            let fits = is_text(type_of(table, column).oid) && is_known(right, table) && has_prefix(*op, right);
            fits.then_some(Fact { column, test: ColumnTest::Begins(*op, right), at })
        }
        BoundKind::Binary { op, left, right } if op.is_comparison() && *op != Op::Ne => {
            let (column, op, value) = match (place_of(left, table), place_of(right, table)) {
                (Some(c), _) if is_known(right, table) => (c, *op, &**right),
                (_, Some(c)) if is_known(left, table) => (c, op.commuted()?, &**left),
                _ => return None,
            };
            let ty = type_of(table, column).oid;
            let value = if comparable(ty, value.ty.oid) {
                Cow::Borrowed(value)
            } else {
                Cow::Owned(nearest::instead(ty, op, value)?)
            };
            Some(Fact { column, test: ColumnTest::Compared(op, value), at })
        }
        BoundKind::InList { arg, list, negated: false } => {
            let column = place_of(arg, table)?;
            let ty = type_of(table, column).oid;
            let fits = list.iter().all(|v| is_known(v, table) && comparable(ty, v.ty.oid));
            fits.then_some(Fact { column, test: ColumnTest::Among(list), at })
        }
        BoundKind::Quantified { left, op: Op::Eq, all: false, array } => {
            let column = place_of(left, table)?;
            let fits = is_known(array, table) && comparable(type_of(table, column).oid, element_of(array.ty.oid)?);
            fits.then_some(Fact { column, test: ColumnTest::InArray(array), at })
        }
        BoundKind::IsNull { arg, negated: false } => {
            Some(Fact { column: place_of(arg, table)?, test: ColumnTest::Null, at })
        }
        BoundKind::Or(_) => {
            let test = row_test(table, e)?;
            Some(Fact { column: test.columns[0].0, test: ColumnTest::Row(test), at })
        }
        BoundKind::Subquery { .. } => {
            let (left, rows) = rows_of(e)?;
            let column = place_of(left, table)?;
            comparable(left.ty.oid, left.ty.oid).then(|| Fact { column, test: ColumnTest::InRows(Box::new(rows)), at })
        }
        _ => None,
    }
}

/// The left side of `left IN (SELECT ...)`, where the query is the same for all rows, and its rows as an array.
pub(super) fn rows_of(e: &Bound) -> Option<(&Bound, Bound)> {
    let BoundKind::Subquery { id, usage, args, correlated: false } = &e.kind else { return None };
    let (SubqueryUse::Quantified { op: Op::Eq, all: false }, [left]) = (usage, args.as_slice()) else {
        return None;
    };
    // Both sides of the comparison were made one type; a type without arrays has no such list.
    let ty = clearway_values::types::array_of(left.ty.oid)?;
    let kind = BoundKind::Subquery { id: *id, usage: SubqueryUse::Array, args: Vec::new(), correlated: false };
    Some((left, Bound { kind, ty: ty.into(), pos: e.pos }))
}

/// Whether a pattern that is known by now begins with text; one that is not known may.
fn has_prefix(op: Op, pattern: &Bound) -> bool {
    match super::select::constant(pattern) {
        Some(value) => value.as_str().is_some_and(|p| !prefix(op, p).is_empty()),
        None => true,
    }
}

/// Whether a pattern of LIKE asks for the beginning of a text alone: `abc%`.
pub fn is_beginning(op: Op, pattern: &Bound) -> bool {
    let text = super::select::constant(pattern).and_then(|value| value.as_str());
    let Some(begins) = text.filter(|_| op == Op::Like).and_then(|text| text.strip_suffix('%')) else { return false };
    // An escape says that the character behind it stands for itself.
    !begins.contains(['%', '_', '\\'])
}

/// The text with which everything begins that fits a pattern of LIKE or `~`.
pub fn prefix(op: Op, pattern: &str) -> String {
    let mut out = String::new();
    if op == Op::Like {
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' | '_' => break,
                '\\' => match chars.next() {
                    Some(c) => out.push(c),
                    None => break,
                },
                c => out.push(c),
            }
        }
        return out;
    }
    let Some(rest) = pattern.strip_prefix('^').filter(|rest| !rest.contains('|')) else { return out };
    for c in rest.chars() {
        match c {
            // The character before a quantifier may be missing.
            '*' | '?' | '{' => {
                out.pop();
                break;
            }
            '+' | '.' | '[' | ']' | '(' | ')' | '}' | '\\' | '^' | '$' => break,
            c => out.push(c),
        }
    }
    out
}

/// Whether a condition asks nothing of a row but what a range of an index on these columns says of its entry.
pub fn is_said_by(e: &Bound, table: &TableSlot, columns: &[usize], range: &Range) -> bool {
    if let BoundKind::And(list) = &e.kind {
        return list.iter().all(|e| is_said_by(e, table, columns, range));
    }
    let Some(Fact { column, test: ColumnTest::Compared(op, value), .. }) = fact_of(table, e, 0) else { return false };
    let Some(at) = columns.iter().position(|c| *c == column) else { return false };
    let is_end = |end: &Option<(Bound, bool)>, inclusive: bool| {
        let end = end.as_ref().filter(|_| at == range.equal.len());
        end.is_some_and(|(known, with)| *with == inclusive && walk::same(known, &value))
    };
    match op {
        Op::Eq => range.equal.get(at).is_some_and(|known| walk::same(known, &value)),
        Op::Gt => is_end(&range.low, false),
        Op::Ge => is_end(&range.low, true),
        Op::Lt => is_end(&range.high, false),
        Op::Le => is_end(&range.high, true),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_pattern_may_vary() {
        for (pattern, expected) in
            [("abc%", "abc"), ("a_c", "a"), ("%a", ""), ("a\\%b%", "a%b"), ("ab\\", "ab"), ("", "")]
        {
            assert_eq!(prefix(Op::Like, pattern), expected, "LIKE {pattern}");
        }
        for (pattern, expected) in [
            ("^abc", "abc"),
            ("abc", ""),
            ("^ab*c", "a"),
            ("^ab?", "a"),
            ("^ab+", "ab"),
            ("^a|b", ""),
            ("^a.c", "a"),
            ("^ab{0}", "a"),
            ("^a\\d", "a"),
        ] {
            assert_eq!(prefix(Op::Match, pattern), expected, "~ {pattern}");
        }
    }
}
