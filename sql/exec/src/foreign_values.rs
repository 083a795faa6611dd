//! Values of foreign keys: whether they changed, and how they stand on the other side, whose columns may be of another type of the same family.

use super::change::engine_row;
use clearway_planner::plan::Reference;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::types::{Datum, SqlType, cast, oid};

/// Also where only the case of a citext differs: the change goes on to the rows that refer to it, as in PostgreSQL.
pub(super) fn differ(columns: &[usize], a: &[Datum], b: &[Datum]) -> bool {
    columns.iter().any(|c| a[*c] != b[*c] || a[*c].as_str() != b[*c].as_str())
}

pub(super) fn has_null(columns: &[usize], row: &[Datum]) -> bool {
    columns.iter().any(|c| row[*c].is_null())
}

/// Whether some of the values are null and some are not, which MATCH FULL forbids.
pub(super) fn is_mixed(columns: &[usize], row: &[Datum]) -> bool {
    has_null(columns, row) && columns.iter().any(|c| !row[*c].is_null())
}

/// Whether the columns referred to can have a row's values at all: an integer column may be narrower than the one that refers to it. The key of a
/// value that it can't have would be cut off to that of another row, which the check would lock.
pub(super) fn can_be_referred(key: &Reference, row: &[Datum]) -> bool {
    let shape = &key.parent.shape;
    let fits = |(c, p): (&usize, &usize)| {
        let value = engine_row(std::slice::from_ref(&row[*c]));
        value.iter().all(|value| value.fits(shape.columns[*p].storage))
    };
    key.columns.iter().zip(&key.parent_columns).all(fits)
}

/// A new value of a column referred to, for a column that refers to it.
///
/// # Errors
/// 22003 for an integer that is too large for it, 22001 for a text that is too long.
pub(super) fn in_child(value: Datum, ty: SqlType) -> Result<Datum> {
    let Some(v) = value.as_i64().filter(|_| matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8)) else {
        return cast::fit(value, ty, false);
    };
    let too_large = |name: &str| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"));
    Ok(match ty.oid {
        oid::INT2 => Datum::Int2(i16::try_from(v).map_err(|_| too_large("smallint"))?),
        oid::INT4 => Datum::Int4(i32::try_from(v).map_err(|_| too_large("integer"))?),
        _ => Datum::Int8(v),
    })
}
