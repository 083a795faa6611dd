//! How a table is read: by whole keys, by a range of its key or of an index, or all of it.

use super::plan::{Access, Range, TableSlot};
use super::walk;
use crate::expr::Bound;
use crate::expr::bound::BoundKind;
use crate::expr::operators::Op;
use crate::types::oid;
use clearway_engine::catalog::IndexState;

/// A condition that compares a column of the table with something known before the table is read.
struct Usable<'b> {
    column: usize,
    op: Op,
    value: &'b Bound,
    /// Its place in the list of conditions.
    at: usize,
}

/// The column of a table that an expression is, casts aside that change no value.
fn as_column(e: &Bound, table: &TableSlot) -> Option<usize> {
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

/// Whether an expression is known before the table is read.
fn is_known(e: &Bound, table: &TableSlot) -> bool {
    !walk::stays_above(e) && walk::slots(e).is_none_or(|(_, high)| high < table.base)
}

fn comparable(column_type: u32, value_type: u32) -> bool {
    let integer = |t: u32| matches!(t, oid::INT2 | oid::INT4 | oid::INT8);
    let text = |t: u32| matches!(t, oid::TEXT | oid::VARCHAR | oid::UNKNOWN | oid::NAME);
    (column_type == value_type && super::order::sorts_by_bytes(column_type))
        || (integer(column_type) && integer(value_type))
        || (text(column_type) && text(value_type))
}

fn usable<'b>(table: &TableSlot, e: &'b Bound, at: usize) -> Option<Usable<'b>> {
    let BoundKind::Binary { op, left, right } = &e.kind else { return None };
    if !op.is_comparison() || *op == Op::Ne {
        return None;
    }
    let (column, op, value) = match (as_column(left, table), as_column(right, table)) {
        (Some(c), _) if is_known(right, table) => (c, *op, &**right),
        (_, Some(c)) if is_known(left, table) => (c, op.commuted()?, &**left),
        _ => return None,
    };
    comparable(table.types[column].oid, value.ty.oid).then_some(Usable { column, op, value, at })
}

/// What was chosen.
pub struct Chosen {
    /// The access.
    pub access: Access,
    /// Places of the conditions that it guarantees.
    pub covered: Vec<usize>,
    /// How many columns it finds by equality.
    pub equal: usize,
}

fn range_over(columns: &[usize], ascending: impl Fn(usize) -> bool, list: &[Usable<'_>]) -> (Range, Vec<usize>) {
    let mut range = Range::default();
    let mut covered = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        if let Some(u) = list.iter().find(|u| u.column == *column && u.op == Op::Eq) {
            range.equal.push(u.value.clone());
            covered.push(u.at);
            continue;
        }
        if ascending(i) {
            for u in list.iter().filter(|u| u.column == *column) {
                let end = match u.op {
                    Op::Gt | Op::Ge => &mut range.low,
                    _ => &mut range.high,
                };
                if end.is_none() {
                    *end = Some((u.value.clone(), matches!(u.op, Op::Ge | Op::Le)));
                    covered.push(u.at);
                }
            }
        }
        break;
    }
    (range, covered)
}

/// `key IN (...)` for a key of one column.
fn key_list(table: &TableSlot, conditions: &[Bound]) -> Option<Chosen> {
    let [key] = table.shape.key.as_slice() else { return None };
    conditions.iter().enumerate().find_map(|(at, e)| {
        let BoundKind::InList { arg, list, negated: false } = &e.kind else { return None };
        let fits = as_column(arg, table) == Some(*key)
            && list.iter().all(|v| is_known(v, table) && comparable(table.types[*key].oid, v.ty.oid));
        fits.then(|| Chosen {
            access: Access::Keys(list.iter().map(|v| vec![v.clone()]).collect()),
            covered: vec![at],
            equal: 1,
        })
    })
}

/// Chooses how to read a table under conditions that must all hold.
pub fn choose(table: &TableSlot, conditions: &[Bound]) -> Chosen {
    let list: Vec<Usable<'_>> = conditions.iter().enumerate().filter_map(|(at, e)| usable(table, e, at)).collect();
    let shape = &table.shape;
    let (range, covered) = range_over(&shape.key, |_| true, &list);
    if !shape.key.is_empty() && range.equal.len() == shape.key.len() {
        let equal = range.equal.len();
        return Chosen { access: Access::Keys(vec![range.equal]), covered, equal };
    }
    if let Some(chosen) = key_list(table, conditions) {
        return chosen;
    }
    let score = |r: &Range| 2 * r.equal.len() + usize::from(r.low.is_some() || r.high.is_some());
    let mut best_score = score(&range);
    let mut best = Chosen { equal: range.equal.len(), access: Access::KeyRange(range), covered };
    for (place, index) in shape.indexes.iter().enumerate() {
        if index.state != IndexState::Public {
            continue;
        }
        let (range, covered) = range_over(&index.columns, |i| !index.key[i].descending, &list);
        // A unique key found whole beats everything.
        let whole = index.unique && range.equal.len() == index.columns.len();
        let points = if whole { usize::MAX } else { score(&range) };
        if points > best_score {
            best_score = points;
            best = Chosen { equal: range.equal.len(), access: Access::Index(place, range), covered };
        }
    }
    if best_score == 0 {
        return Chosen { access: Access::Full, covered: Vec::new(), equal: 0 };
    }
    best
}
