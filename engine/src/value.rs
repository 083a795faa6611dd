//! Values as the engine stores and orders them. What a value means (a timestamp, a varchar(10)) is decided by the layer that declares
//! the column; the engine knows how wide it is and how it sorts.

use std::sync::Arc;

use crate::decimal::{Decimal, StoredDecimal};

/// How a column is stored, and so how it sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// True or false, one byte.
    Bool,
    /// A signed integer of this many bytes: 1, 2, 3, 4 or 8.
    Int(u8),
    /// A double, eight bytes. -0 equals 0; NaN equals itself and sorts above everything, as in PostgreSQL.
    Float,
    /// An exact decimal of any length.
    Decimal,
    /// Bytes; text is bytes, sorted as bytes.
    Bytes,
    /// Text that sorts by its lower-case form (`clearway_base::fold`): texts that differ in case alone are the same key.
    Folded,
    /// Bytes that sort by a form of this number, below 64, which the layer above makes (`codec::forms`): values with one form are the same key.
    Sorted(u8),
}

/// The code of the first sort form.
const SORTED: u8 = 64;

impl Storage {
    /// The bytes it takes in every row, or `None` where that depends on the value.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            Storage::Bool => Some(1),
            Storage::Int(width) => Some(usize::from(width)),
            Storage::Float => Some(8),
            Storage::Decimal | Storage::Bytes | Storage::Folded | Storage::Sorted(_) => None,
        }
    }

    /// The number by which the catalog knows it.
    pub fn code(self) -> u8 {
        match self {
            Storage::Bool => 1,
            Storage::Int(width) => 16 + width,
            Storage::Float => 2,
            Storage::Decimal => 3,
            Storage::Bytes => 4,
            Storage::Folded => 5,
            Storage::Sorted(form) => SORTED + form,
        }
    }

    /// The storage with that number.
    pub fn from_code(code: u8) -> Option<Storage> {
        match code {
            1 => Some(Storage::Bool),
            2 => Some(Storage::Float),
            3 => Some(Storage::Decimal),
            4 => Some(Storage::Bytes),
            5 => Some(Storage::Folded),
            SORTED..128 => Some(Storage::Sorted(code - SORTED)),
            17 | 18 | 19 | 20 | 24 => Some(Storage::Int(code - 16)),
            _ => None,
        }
    }

    /// Whether the order-preserving key form of a value gives the value back.
    pub fn key_is_invertible(self) -> bool {
        // 1.0 and 1.00 are the same key and two values; so are -0 and 0, texts that differ in case alone, a month and thirty days.
        !matches!(self, Storage::Decimal | Storage::Float | Storage::Folded | Storage::Sorted(_))
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// See [`Storage::Bool`].
    Bool(bool),
    /// See [`Storage::Int`].
    Int(i64),
    /// See [`Storage::Float`].
    Float(f64),
    /// See [`Storage::Decimal`].
    Decimal(Decimal),
    /// See [`Storage::Bytes`], [`Storage::Folded`] and [`Storage::Sorted`].
    Bytes(Arc<[u8]>),
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Value {
        match value {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(b) => Value::Bool(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Float(f) => Value::Float(f),
            ValueRef::Decimal(d) => Value::Decimal(d.clone()),
            ValueRef::StoredDecimal(d) => Value::Decimal(d.to_decimal()),
            ValueRef::Bytes(bytes) => Value::bytes(bytes),
        }
    }
}

/// One value where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// No value.
    Null,
    /// See [`Storage::Bool`].
    Bool(bool),
    /// See [`Storage::Int`].
    Int(i64),
    /// See [`Storage::Float`].
    Float(f64),
    /// See [`Storage::Decimal`].
    Decimal(&'a Decimal),
    /// The same in its stored form.
    StoredDecimal(StoredDecimal<'a>),
    /// See [`Storage::Bytes`], [`Storage::Folded`] and [`Storage::Sorted`].
    Bytes(&'a [u8]),
}

impl Value {
    /// The value where it stands.
    #[inline]
    pub fn borrow(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Bool(b) => ValueRef::Bool(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Float(f) => ValueRef::Float(*f),
            Value::Decimal(d) => ValueRef::Decimal(d),
            Value::Bytes(bytes) => ValueRef::Bytes(bytes),
        }
    }

    /// Text or bytes.
    pub fn bytes(bytes: &[u8]) -> Value {
        Value::Bytes(bytes.into())
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether the value can stand in a column of this storage: integers fit their width.
    #[inline]
    pub fn fits(&self, storage: Storage) -> bool {
        self.borrow().fits(storage)
    }
}

impl ValueRef<'_> {
    /// As [`Value::is_null`].
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// As [`Value::fits`].
    #[inline]
    pub fn fits(self, storage: Storage) -> bool {
        match (self, storage) {
            (ValueRef::Null, _)
            | (ValueRef::Bool(_), Storage::Bool)
            | (ValueRef::Float(_), Storage::Float)
            | (ValueRef::Decimal(_) | ValueRef::StoredDecimal(_), Storage::Decimal)
            | (ValueRef::Bytes(_), Storage::Bytes | Storage::Folded | Storage::Sorted(_)) => true,
            (ValueRef::Int(i), Storage::Int(width)) => {
                let bits = 8 * u32::from(width);
                bits >= 64 || (i >> (bits - 1)) == 0 || (i >> (bits - 1)) == -1
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fit_their_width() {
        assert!(Value::Int(127).fits(Storage::Int(1)) && !Value::Int(128).fits(Storage::Int(1)));
        assert!(Value::Int(-128).fits(Storage::Int(1)) && !Value::Int(-129).fits(Storage::Int(1)));
        assert!(Value::Int(8_388_607).fits(Storage::Int(3)) && !Value::Int(8_388_608).fits(Storage::Int(3)));
        assert!(Value::Int(i64::MIN).fits(Storage::Int(8)));
    }

    #[test]
    fn storage_codes_are_read_back() {
        let all = [Storage::Bool, Storage::Float, Storage::Decimal, Storage::Bytes, Storage::Folded];
        let sorted = [0, 7, 63].map(Storage::Sorted);
        for storage in all.into_iter().chain([1, 2, 3, 4, 8].map(Storage::Int)).chain(sorted) {
            assert_eq!(Storage::from_code(storage.code()), Some(storage));
        }
        assert_eq!((Storage::from_code(21), Storage::from_code(128)), (None, None));
    }
}
