//! Reads columns of a row out of an entry of an index, without the row: an index-only read.
//!
//! # Invariants
//! - IXO-1: an index alone answers for its rows. Entries carry tags and undo of their own, and by TAB-1 a snapshot shows an entry exactly if it
//!   shows a version of the row with the entry's values, for which the index's condition holds. So the entries that a walk shows are the rows
//!   that the same walk over the table would show. `verify` (VFY-1) compares the two.
//! - IXO-2: the value given for a column is the value that [`TableShape::row`] gives: only columns whose key form gives them back (SHP-2) are
//!   read from an entry; an index that lacks one of the wanted columns is not read this way.
//!
//! # Not here
//! Whether a snapshot may use the index at all: the caller checks `IndexShape::valid_from_lsn` before.

use crate::catalog::IndexState;
use crate::codec::key::{KeyColumn, decode_value};
use crate::codec::row::RowDamage;
use crate::error::EngineError;
use crate::table::shape::TableShape;
use crate::value::{Value, ValueRef};

/// Which columns of a table's rows are wanted of the entries of one of its indexes.
#[derive(Clone, Debug)]
pub struct EntryPicker {
    /// The index's place in the table's shape.
    index: usize,
    /// The columns of an entry, up to the last one that is wanted, each with its position if it is wanted.
    columns: Box<[(KeyColumn, Option<usize>)]>,
}

impl EntryPicker {
    /// Picks the columns at these positions; none: the index does not have all of them, or is not there for readers (IXO-2).
    pub fn new(shape: &TableShape, index: usize, wanted: &[usize]) -> Option<EntryPicker> {
        let of = shape.indexes.get(index).filter(|of| of.state == IndexState::Public)?;
        let own = of.key.iter().copied().zip(of.columns.iter().copied());
        let key = shape.key_columns().iter().copied().zip(shape.key.iter().copied());
        let mut missing: Vec<usize> = wanted.to_vec();
        let mut pick = |(form, column): (KeyColumn, usize)| {
            let place = missing.iter().position(|c| *c == column).filter(|_| form.storage.key_is_invertible());
            place.map(|place| missing.swap_remove(place));
            (form, place.map(|_| column))
        };
        let mut columns: Vec<(KeyColumn, Option<usize>)> = own.map(&mut pick).collect();
        columns.extend(key.map(&mut pick));
        if !missing.is_empty() {
            return None;
        }
        let behind_last = columns.iter().rposition(|(_, wanted)| wanted.is_some()).map_or(0, |i| i + 1);
        columns.truncate(behind_last);
        Some(EntryPicker { index, columns: columns.into() })
    }

    /// The place of the index in the table's shape.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Gives each wanted column of an entry's row, nulls too, to `put` with its position.
    ///
    /// # Errors
    /// `BadRow`.
    pub fn read(
        &self,
        shape: &TableShape,
        entry: &[u8],
        put: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), EngineError> {
        let mut rest = entry;
        for (form, column) in &self.columns {
            let Some((value, after)) = decode_value(*form, rest) else {
                let name = shape.indexes.get(self.index).map_or(&shape.name, |index| &index.name);
                let damage = RowDamage("its key is malformed");
                return Err(EngineError::BadRow { table: name.clone(), damage });
            };
            rest = after;
            if let Some(column) = column {
                put(*column, value.as_ref().map_or(ValueRef::Null, Value::borrow));
            }
        }
        Ok(())
    }
}
