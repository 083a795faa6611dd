//! Rows that are made of values where they stand: of the texts of a COPY, without a value of its own for each.

use crate::codec::key::encode_ref;
use crate::codec::row::encode_row;
use crate::error::EngineError;
use crate::table::shape::TableShape;
use crate::value::ValueRef;

impl TableShape {
    /// As [`TableShape::key_into`].
    pub(crate) fn key_of_refs(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        for (position, column) in self.key.iter().zip(self.key_columns()) {
            encode_ref(*column, values[*position], out);
        }
    }

    /// As [`TableShape::value_into`].
    pub(crate) fn value_of_refs(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        assert!(values.len() >= self.columns.len(), "SHP-1: a row has a value for each column of {}", self.name);
        let (stored, storages) = self.stored_now();
        encode_row(self.version(), storages, stored.iter().map(|c| values[*c]), out);
    }

    /// As [`TableShape::check_fit`].
    ///
    /// # Errors
    /// `DoesNotFit`.
    pub(crate) fn check_refs(&self, values: &[ValueRef<'_>]) -> Result<(), EngineError> {
        match self.columns.iter().zip(values).find(|(c, v)| !v.fits(c.storage)) {
            Some((column, _)) => Err(EngineError::DoesNotFit { column: column.name.clone() }),
            None => Ok(()),
        }
    }
}
