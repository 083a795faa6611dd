//! Rows as keys and columns of types, out of the bytes that were read.

use clearway_storage::btree::KeyRange;

use super::columns::{Columns, Key};
use super::error::Error;
use super::table::Table;
use crate::codec::key::decode_value;
use crate::codec::places::Places;
use crate::table::shape::TableShape;
use crate::value::{Value, ValueRef};

/// How far a walk came.
pub(super) enum Walked {
    /// To its end.
    Whole,
    /// Nowhere.
    Nowhere,
    /// These keys are left.
    Left(KeyRange),
}

/// Columns of a table for which no list is allocated.
const FEW: usize = 16;
/// Columns of a value that are read by places computed before.
const VERY_FEW: usize = 4;

/// The key of a row. No key column has a type whose key form does not give the value back (`KeyCell`).
pub(super) fn key_of<K: Key>(shape: &TableShape, mut rest: &[u8], values: &mut Vec<Value>) -> Option<K> {
    values.clear();
    for form in shape.key_columns() {
        let (value, after) = decode_value(*form, rest)?;
        values.push(value?);
        rest = after;
    }
    K::read(values)
}

/// Gives the columns of a row's value to `read`.
pub(super) fn with_columns<K: Key, V: Columns, R>(
    table: &Table<K, V>,
    (shape, places): (&TableShape, Option<&Places>),
    (key, value): (&[u8], &[u8]),
    read: impl FnOnce(&[ValueRef<'_>]) -> Option<R>,
) -> Result<R, Error> {
    let columns = table.value_columns();
    if let (Some(places), true) = (places, columns.len() <= VERY_FEW) {
        let mut row = [ValueRef::Null; VERY_FEW];
        if places.read_borrowed(value, |at, value| row[at] = value) {
            return read(&row[..columns.len()]).ok_or_else(|| table.bad_value());
        }
    }
    let mut few = [ValueRef::Null; FEW];
    let mut many = Vec::new();
    let row = match few.get_mut(..shape.columns.len()) {
        Some(few) => few,
        None => {
            many.resize(shape.columns.len(), ValueRef::Null);
            &mut many[..]
        }
    };
    if shape.refs(value, row)? {
        return row.get(columns).and_then(read).ok_or_else(|| table.bad_value());
    }
    // Of an older schema version: columns that were added since have their defaults.
    let row = shape.row(key, value)?;
    let row: Vec<ValueRef<'_>> = row.iter().map(Value::borrow).collect();
    row.get(columns).and_then(read).ok_or_else(|| table.bad_value())
}
