//! Finds the condition by whose values single rows of a system table can be found (VKY-1).

use super::facts::is_random;
use super::plan::SystemScan;
use super::select::constant;
use super::walk;
use clearway_context::views::{SystemView, keys};
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;

/// A column of a view, and the values that it must have one of.
pub struct Sought<'b> {
    /// The column's place in the view.
    pub column: usize,
    /// The values, known before the view is read.
    pub values: Values<'b>,
    /// How many rows are expected.
    pub rows: f64,
    /// The condition that says so.
    pub condition: &'b Bound,
    /// How EXPLAIN calls the way.
    pub index: &'static str,
    /// The value stands on the left side of the condition.
    from_left: bool,
}

/// What the conditions of a scan of a system view find rows by.
#[derive(Clone, Copy, Debug)]
pub enum FoundBy {
    /// Nothing: all rows are read.
    Nothing,
    /// The value of a column, by the condition at this place among those of the filter.
    Column {
        /// Its place in the view.
        column: usize,
        /// That of the condition.
        condition: usize,
        /// The value stands on the left side of the condition.
        from_left: bool,
    },
}

/// Values of a column.
pub enum Values<'b> {
    /// Each of these.
    List(&'b [Bound]),
    /// The elements of an array.
    Array(&'b Bound),
    /// The rows of a query that is the same for all rows, as an array.
    Rows(Box<Bound>),
    /// A text that a pattern alone fits.
    Text(&'b str),
}

/// Of the conditions that find rows of a view (its slots begin at `base`), the first of those that find the fewest rows; none: the whole view is built.
pub fn sought<'b>(view: &SystemView, base: usize, conditions: &[&'b Bound]) -> Option<Sought<'b>> {
    let mut found: Option<Sought<'b>> = None;
    let mut see = |e: &'b Bound| {
        if let Some(next) = sought_by(view, base, e)
            && found.as_ref().is_none_or(|known| next.rows < known.rows)
        {
            found = Some(next);
        }
    };
    for e in conditions {
        match &e.kind {
            BoundKind::And(list) => list.iter().for_each(&mut see),
            _ => see(e),
        }
    }
    found
}

fn sought_by<'b>(view: &SystemView, base: usize, e: &'b Bound) -> Option<Sought<'b>> {
    let mut from_left = false;
    let (column, count) = match &e.kind {
        BoundKind::Binary { op: Op::Eq, left, right } => {
            match (column_of(view, base, left), column_of(view, base, right)) {
                (Some(column), _) if is_known(right, base) => (column, 1.0),
                (_, Some(column)) if is_known(left, base) => {
                    from_left = true;
                    (column, 1.0)
                }
                _ => return None,
            }
        }
        BoundKind::Binary { op: Op::Match, left, .. } => (column_of(view, base, left)?, 1.0),
        BoundKind::InList { arg, list, negated: false } if list.iter().all(|v| is_known(v, base)) => {
            (column_of(view, base, arg)?, list.len() as f64)
        }
        BoundKind::Quantified { left, op: Op::Eq, all: false, array } if is_known(array, base) => {
            (column_of(view, base, left)?, 10.0)
        }
        BoundKind::Subquery { .. } => (column_of(view, base, super::facts::rows_of(e)?.0)?, 10.0),
        _ => return None,
    };
    let values = values_of(e, from_left)?;
    let (rows, index) = keys::of(view, column)?;
    Some(Sought { column, values, rows: rows * count, condition: e, index, from_left })
}

/// The values of the column that a condition finds rows by.
fn values_of(e: &Bound, from_left: bool) -> Option<Values<'_>> {
    Some(match &e.kind {
        BoundKind::Binary { op: Op::Match, right, .. } => Values::Text(constant(right)?.as_str().and_then(only_text)?),
        BoundKind::Binary { left, right, .. } => {
            Values::List(std::slice::from_ref(if from_left { &**left } else { &**right }))
        }
        BoundKind::InList { list, .. } => Values::List(list),
        BoundKind::Quantified { array, .. } => Values::Array(array),
        _ => Values::Rows(Box::new(super::facts::rows_of(e)?.1)),
    })
}

impl SystemScan {
    /// The conditions of which each row must meet each.
    pub fn conditions(&self) -> &[Bound] {
        match &self.filter {
            Some(Bound { kind: BoundKind::And(list), .. }) => list,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// What its conditions find rows by, where its slots are still those of all columns (PLN-1).
    fn finds(&self) -> FoundBy {
        let conditions = self.conditions();
        let all: Vec<&Bound> = conditions.iter().collect();
        let Some(found) = sought(self.view, self.base, &all) else { return FoundBy::Nothing };
        let place = conditions.iter().position(|e| std::ptr::eq(e, found.condition));
        place.map_or(FoundBy::Nothing, |condition| FoundBy::Column {
            column: found.column,
            condition,
            from_left: found.from_left,
        })
    }

    /// Notes it.
    pub(super) fn find(&mut self) {
        self.found = Some(self.finds());
    }

    /// The column that the conditions find rows by, the place of the condition that does, and the column's values; none: all rows are read.
    pub fn found(&self) -> Option<(usize, usize, Values<'_>)> {
        match self.found.unwrap_or_else(|| self.finds()) {
            FoundBy::Nothing => None,
            FoundBy::Column { column, condition, from_left } => {
                Some((column, condition, values_of(self.conditions().get(condition)?, from_left)?))
            }
        }
    }
}

/// The column of the view that an expression is, casts aside that keep different values different.
fn column_of(view: &SystemView, base: usize, e: &Bound) -> Option<usize> {
    match &e.kind {
        BoundKind::Column { index, level: 0 } => index.checked_sub(base).filter(|at| *at < view.columns.len()),
        BoundKind::Cast { arg, explicit: _ } if keeps(arg.ty.oid, e.ty.oid) => column_of(view, base, arg),
        _ => None,
    }
}

fn keeps(from: u32, to: u32) -> bool {
    let number = |t: u32| matches!(t, oid::OID | oid::REGCLASS | oid::REGTYPE | oid::REGPROC | oid::REGPROCEDURE);
    let text = |t: u32| matches!(t, oid::NAME | oid::TEXT | oid::VARCHAR);
    number(from) && (number(to) || to == oid::INT8) || text(from) && text(to)
}

/// Whether an expression is known before the view is read.
fn is_known(e: &Bound, base: usize) -> bool {
    !walk::stays_above(e) && !is_random(e) && walk::slots(e).is_none_or(|(_, high)| high < base)
}

/// The one text that a pattern of `~` fits: psql asks for a name by `^(name)$`.
fn only_text(pattern: &str) -> Option<&str> {
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let inner = inner.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(inner);
    (!inner.is_empty() && !inner.contains(['.', '^', '$', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '\\']))
        .then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::only_text;

    #[test]
    fn a_pattern_that_one_text_fits() {
        for (pattern, text) in [
            ("^(orders)$", Some("orders")),
            ("^orders$", Some("orders")),
            ("^(a_b-c)$", Some("a_b-c")),
            ("orders", None),
            ("^(orders", None),
            ("^ord.rs$", None),
            ("^(a|b)$", None),
            ("^a*$", None),
            ("^$", None),
            ("^(a)b$", None),
            ("^\\d$", None),
        ] {
            assert_eq!(only_text(pattern), text, "{pattern}");
        }
    }
}
