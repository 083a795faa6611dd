//! Ends of ranges by several columns together: `(a, b) > (1, 2)` says of a key that begins with a and b where its range begins.
//!
//! A comparison of rows has become comparisons of their columns: `a > 1 OR (a = 1 AND b > 2)`, with a further OR in the place of `b > 2` for a third
//! column. A condition that is written in this form gets the same range.
//!
//! # Invariants
//! - RWE-1: the range that ends at such values has every row that meets the comparison. It may also have rows with NULL in one of the columns and,
//!   where the key has only some of the columns, rows that the other columns exclude; so the condition is evaluated on each row.

use super::facts::{ColumnTest, Fact, fact_of};
use super::plan::{RowEnd, TableSlot};
use super::walk;
use clearway_values::expr::Bound;
use clearway_values::expr::bound::BoundKind;
use clearway_values::expr::operators::Op;
use std::borrow::Cow;

/// A comparison of columns of a table, in their order, with values that are known before the table is read.
pub struct RowTest<'b> {
    /// The columns, and the values: at least two.
    pub columns: Vec<(usize, Cow<'b, Bound>)>,
    /// Whether it is `>` or `>=`.
    pub is_low: bool,
    /// Whether the values themselves meet it.
    pub inclusive: bool,
}

/// The comparison of rows that an OR is.
pub fn row_test<'b>(table: &TableSlot, e: &'b Bound) -> Option<RowTest<'b>> {
    let BoundKind::Or(arms) = &e.kind else { return None };
    let [beyond, within] = arms.as_slice() else { return None };
    let BoundKind::And(within) = &within.kind else { return None };
    let [same, rest] = within.as_slice() else { return None };
    let (column, beyond, value) = compared(table, beyond)?;
    let is_low = match beyond {
        Op::Gt => true,
        Op::Lt => false,
        _ => return None,
    };
    let (again, Op::Eq, known) = compared(table, same)? else { return None };
    if again != column || !walk::same(&known, &value) {
        return None;
    }
    let mut columns = vec![(column, value)];
    if let Some(further) = clearway_base::stack::deeper(|| row_test(table, rest)) {
        columns.extend(further.columns);
        return (further.is_low == is_low).then_some(RowTest { columns, is_low, inclusive: further.inclusive });
    }
    let (last, op, value) = compared(table, rest)?;
    columns.push((last, value));
    let fits = if is_low { matches!(op, Op::Gt | Op::Ge) } else { matches!(op, Op::Lt | Op::Le) };
    fits.then_some(RowTest { columns, is_low, inclusive: matches!(op, Op::Ge | Op::Le) })
}

fn compared<'b>(table: &TableSlot, e: &'b Bound) -> Option<(usize, Op, Cow<'b, Bound>)> {
    match fact_of(table, e, 0)? {
        Fact { column, test: ColumnTest::Compared(op, value), .. } => Some((column, op, value)),
        _ => None,
    }
}

impl RowTest<'_> {
    /// The values.
    pub fn values(&self) -> Vec<Bound> {
        self.columns.iter().map(|(_, value)| value.clone().into_owned()).collect()
    }

    /// The end of a range of a key that has these columns next; none: it says nothing of the first of them. `next` are the key's from the
    /// bounded one on, and whether each descends.
    pub fn end(&self, next: &[(usize, bool)]) -> Option<RowEnd> {
        let mut values = Vec::new();
        let mut turned = None;
        for ((column, value), (own, descending)) in self.columns.iter().zip(next) {
            if column != own || turned.is_some_and(|t| t != descending) {
                break;
            }
            turned = Some(descending);
            values.push(value.clone().into_owned());
        }
        // Of fewer columns it is known that they are at least these values.
        let inclusive = self.inclusive || values.len() < self.columns.len();
        (!values.is_empty()).then_some(RowEnd { values, inclusive })
    }
}
