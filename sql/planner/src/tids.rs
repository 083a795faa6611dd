//! Rows that are found by their ctid: `ctid = value`, `ctid IN (...)`, `ctid = ANY (...)`, and several of them joined by OR.

use super::facts::{is_known, rows_of};
use super::plan::{KeyValues, TableSlot};
use super::system_columns;
use clearway_values::expr::Bound;
use clearway_values::expr::bound::BoundKind;
use clearway_values::expr::operators::Op;
use clearway_values::types::{array_of, oid};

/// The ctids of the rows that meet a condition, where these are known before the table is read. No other row meets it (PTH-1).
pub(super) fn of_condition(table: &TableSlot, e: &Bound) -> Option<KeyValues> {
    let is_ctid = |e: &Bound| system_columns::is_ctid(e, table);
    match &e.kind {
        BoundKind::Binary { op: Op::Eq, left, right } => {
            let value = if is_ctid(left) { right } else { Some(left).filter(|_| is_ctid(right))? };
            fits(value, oid::TID, table).then(|| KeyValues::One((**value).clone()))
        }
        BoundKind::InList { arg, list, negated: false } => {
            let known = is_ctid(arg) && list.iter().all(|value| fits(value, oid::TID, table));
            known.then(|| KeyValues::List(list.clone()))
        }
        BoundKind::Quantified { left, op: Op::Eq, all: false, array } => {
            let known = is_ctid(left) && fits(array, array_of(oid::TID)?, table);
            known.then(|| KeyValues::Array((**array).clone()))
        }
        BoundKind::Subquery { .. } => {
            rows_of(e).filter(|(left, _)| is_ctid(left)).map(|(_, rows)| KeyValues::Array(rows))
        }
        BoundKind::Or(arms) => {
            let mut all = Vec::with_capacity(arms.len());
            for arm in arms {
                match clearway_base::stack::deeper(|| of_condition(table, arm))? {
                    KeyValues::One(value) => all.push(value),
                    KeyValues::List(list) => all.extend(list),
                    KeyValues::Array(_) | KeyValues::Null | KeyValues::Each(_) => return None,
                }
            }
            Some(KeyValues::List(all))
        }
        _ => None,
    }
}

fn fits(value: &Bound, ty: u32, table: &TableSlot) -> bool {
    value.ty.oid == ty && is_known(value, table)
}
