//! Reads some columns of a stored row in place: the other columns are skipped, and nothing is copied.
//!
//! # Invariants
//! - PIK-1: the value given for a column is the value that [`TableShape::row`] gives at that position, also for rows of older schema versions.
//!
//! # Not here
//! Rows of older schema versions are not read in place but by [`TableShape::row`]: they are few, and each change of a row makes it one of the
//! present version.

use crate::codec::key::{KeyColumn, decode_int, decode_value};
use crate::codec::places::Places;
use crate::codec::row::{RowDamage, RowReader};
use crate::error::EngineError;
use crate::table::shape::TableShape;
use crate::value::{Storage, Value, ValueRef};

/// Which columns of a table's rows are wanted.
#[derive(Clone, Debug)]
pub struct Picker {
    version: u16,
    /// The columns of the value, each with its position if it is wanted.
    stored: Box<[(Storage, Option<usize>)]>,
    /// The columns of the key, likewise, up to the last one that is wanted.
    key: Box<[(KeyColumn, Option<usize>)]>,
    wanted: Box<[usize]>,
    /// Where the columns of the value stand in most rows.
    places: Option<Places>,
}

impl Picker {
    /// Picks the columns at these positions.
    pub fn new(shape: &TableShape, wanted: &[usize]) -> Picker {
        let (stored, storages) = shape.stored_now();
        let mine = |column: &usize| wanted.contains(column).then_some(*column);
        let columns: Box<[_]> = storages.iter().zip(stored).map(|(storage, column)| (*storage, mine(column))).collect();
        // A column whose key form does not give its value back is also stored in the value, and is read from there.
        let in_value = |column: &usize| stored.contains(column);
        let mut key: Vec<(KeyColumn, Option<usize>)> = shape
            .key_columns()
            .iter()
            .zip(&shape.key)
            .map(|(form, column)| (*form, mine(column).filter(|c| !in_value(c))))
            .collect();
        let behind_last = key.iter().rposition(|(_, wanted)| wanted.is_some()).map_or(0, |i| i + 1);
        key.truncate(behind_last);
        let places = Places::of(shape.version(), &columns);
        Picker { version: shape.version(), stored: columns, key: key.into(), wanted: wanted.into(), places }
    }

    /// The positions of the wanted columns.
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// The only wanted column, where it is the first of the key and a plain integer there, of a row of the present version: what [`Picker::read`] gives. None: that has to be asked.
    #[inline]
    pub fn int_of_key(&self, key: &[u8], value: &[u8]) -> Option<i64> {
        let [(form, Some(_))] = &self.key[..] else { return None };
        self.places.as_ref().filter(|places| self.wanted.len() == 1 && places.parts(value).is_some())?;
        decode_int(*form, key).map(|(int, _)| int)
    }

    /// Gives each wanted column of a row, nulls too, in any order, to `put` with its position.
    ///
    /// # Errors
    /// `BadRow`.
    pub fn read(
        &self,
        shape: &TableShape,
        key: &[u8],
        value: &[u8],
        put: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), EngineError> {
        let bad = |damage| EngineError::BadRow { table: shape.name.clone(), damage };
        if self.places.as_ref().is_some_and(|places| places.read(value, put)) {
            return self.read_key(shape, key, put);
        }
        let (version, head) = RowReader::head(value).map_err(bad)?;
        if version != self.version {
            // PIK-1
            let row = shape.row(key, value)?;
            self.wanted.iter().for_each(|column| put(*column, row[*column].borrow()));
            return Ok(());
        }
        let reader = head.reader(self.stored.len()).map_err(bad)?;
        reader.pick(&self.stored, put).map_err(bad)?;
        self.read_key(shape, key, put)
    }

    /// The columns that stand in the key alone.
    #[inline]
    fn read_key(
        &self,
        shape: &TableShape,
        key: &[u8],
        put: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), EngineError> {
        let bad = |damage| EngineError::BadRow { table: shape.name.clone(), damage };
        let mut rest = key;
        for (form, column) in &self.key {
            if let Some((int, after)) = decode_int(*form, rest) {
                rest = after;
                if let Some(column) = column {
                    put(*column, ValueRef::Int(int));
                }
                continue;
            }
            let (value, after) = decode_value(*form, rest).ok_or_else(|| bad(RowDamage("its key is malformed")))?;
            rest = after;
            if let Some(column) = column {
                put(*column, value.as_ref().map_or(ValueRef::Null, Value::borrow));
            }
        }
        Ok(())
    }
}
