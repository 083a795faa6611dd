//! Which types can be keys and values of a typed table, and what columns they become.
//!
//! # Structure
//! ```text
//!   Cell      one column: bool, i16, i32, i64, f64, String, Vec<u8>, Option of them
//!   KeyCell   a cell that can be in a key: no floats, whose key form is not their value, and no nulls
//!   Columns   one cell, or a tuple of up to eight: what a table's V is
//!   Key       the same of key cells: what a table's K is
//! ```
//! A program makes its own type a cell: it names the storage, and translates the type to and from [`Value`].

use crate::catalog::Oid;
use crate::value::{Storage, Value, ValueRef};

/// A type that is one column.
pub trait Cell: Sized + Send + 'static {
    /// How it is stored.
    const STORAGE: Storage;
    /// The SQL type that the column shows to SQL, by PostgreSQL's number.
    const TYPE_OID: Oid;
    /// Whether it can be null.
    const NULLABLE: bool = false;
    /// The value where it is, uncopied: `&str` of a `String`.
    type Ref<'a>;
    /// The value to store; it fits `STORAGE`.
    fn to_value(&self) -> Value;
    /// The stored value; `None` if it is not of this type.
    fn from_value(value: &Value) -> Option<Self>;
    /// The stored value where it is; `None` if it is not of this type.
    fn from_ref(value: ValueRef<'_>) -> Option<Self::Ref<'_>>;
    /// The stored value, copied from where it is; `None` if it is not of this type.
    fn copied(value: ValueRef<'_>) -> Option<Self> {
        Self::from_value(&Value::from(value))
    }
}

/// A cell that can stand in a key: never null, and its key form gives the value back.
pub trait KeyCell: Cell {}

/// What one column is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnKind {
    /// How it is stored.
    pub storage: Storage,
    /// The SQL type.
    pub type_oid: Oid,
    /// Whether it can be null.
    pub nullable: bool,
}

/// One or more columns.
pub trait Columns: Sized + Send + 'static {
    /// The values where they are, uncopied.
    type Ref<'a>;
    /// What the columns are.
    fn kinds() -> Vec<ColumnKind>;
    /// Appends the values.
    fn write(&self, row: &mut Vec<Value>);
    /// Reads the values, as many as there are kinds; `None` if they are others.
    fn read(values: &[Value]) -> Option<Self>;
    /// The same where they are.
    fn read_ref<'a>(values: &[ValueRef<'a>]) -> Option<Self::Ref<'a>>;
    /// Reads the values, copied from where they are.
    fn read_copied(values: &[ValueRef<'_>]) -> Option<Self> {
        let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
        Self::read(&values)
    }
}

/// Columns that make a key.
pub trait Key: Columns {}

macro_rules! int_cell {
    ($($int:ty, $width:literal, $oid:literal);*) => {$(
        impl Cell for $int {
            const STORAGE: Storage = Storage::Int($width);
            const TYPE_OID: Oid = $oid;
            type Ref<'a> = $int;
            fn to_value(&self) -> Value {
                Value::Int(i64::from(*self))
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Int(int) => <$int>::try_from(*int).ok(),
                    _ => None,
                }
            }
            fn from_ref(value: ValueRef<'_>) -> Option<$int> {
                match value {
                    ValueRef::Int(int) => <$int>::try_from(int).ok(),
                    _ => None,
                }
            }
            fn copied(value: ValueRef<'_>) -> Option<$int> {
                <$int>::from_ref(value)
            }
        }
        impl KeyCell for $int {}
    )*};
}

int_cell!(i16, 2, 21; i32, 4, 23; i64, 8, 20);

impl Cell for bool {
    const STORAGE: Storage = Storage::Bool;
    const TYPE_OID: Oid = 16;
    type Ref<'a> = bool;
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(bool) => Some(*bool),
            _ => None,
        }
    }
    fn from_ref(value: ValueRef<'_>) -> Option<bool> {
        match value {
            ValueRef::Bool(bool) => Some(bool),
            _ => None,
        }
    }
    fn copied(value: ValueRef<'_>) -> Option<bool> {
        bool::from_ref(value)
    }
}

impl KeyCell for bool {}

impl Cell for f64 {
    const STORAGE: Storage = Storage::Float;
    const TYPE_OID: Oid = 701;
    type Ref<'a> = f64;
    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Float(float) => Some(*float),
            _ => None,
        }
    }
    fn from_ref(value: ValueRef<'_>) -> Option<f64> {
        match value {
            ValueRef::Float(float) => Some(float),
            _ => None,
        }
    }
    fn copied(value: ValueRef<'_>) -> Option<f64> {
        f64::from_ref(value)
    }
}

impl Cell for String {
    const STORAGE: Storage = Storage::Bytes;
    const TYPE_OID: Oid = 25;
    type Ref<'a> = &'a str;
    fn to_value(&self) -> Value {
        Value::bytes(self.as_bytes())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        }
    }
    fn from_ref(value: ValueRef<'_>) -> Option<&str> {
        match value {
            ValueRef::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
    fn copied(value: ValueRef<'_>) -> Option<String> {
        String::from_ref(value).map(str::to_owned)
    }
}

impl KeyCell for String {}

impl Cell for Vec<u8> {
    const STORAGE: Storage = Storage::Bytes;
    const TYPE_OID: Oid = 17;
    type Ref<'a> = &'a [u8];
    fn to_value(&self) -> Value {
        Value::bytes(self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
    fn from_ref(value: ValueRef<'_>) -> Option<&[u8]> {
        match value {
            ValueRef::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
    fn copied(value: ValueRef<'_>) -> Option<Vec<u8>> {
        Vec::from_ref(value).map(<[u8]>::to_vec)
    }
}

impl KeyCell for Vec<u8> {}

impl<C: Cell> Cell for Option<C> {
    const STORAGE: Storage = C::STORAGE;
    const TYPE_OID: Oid = C::TYPE_OID;
    const NULLABLE: bool = true;
    type Ref<'a> = Option<C::Ref<'a>>;
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Cell::to_value)
    }
    fn from_value(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { C::from_value(value).map(Some) }
    }
    fn from_ref(value: ValueRef<'_>) -> Option<Option<C::Ref<'_>>> {
        if value == ValueRef::Null { Some(None) } else { C::from_ref(value).map(Some) }
    }
    fn copied(value: ValueRef<'_>) -> Option<Option<C>> {
        if value == ValueRef::Null { Some(None) } else { C::copied(value).map(Some) }
    }
}

fn kind<C: Cell>() -> ColumnKind {
    ColumnKind { storage: C::STORAGE, type_oid: C::TYPE_OID, nullable: C::NULLABLE }
}

impl<C: Cell> Columns for C {
    type Ref<'a> = C::Ref<'a>;
    fn kinds() -> Vec<ColumnKind> {
        vec![kind::<C>()]
    }
    fn write(&self, row: &mut Vec<Value>) {
        row.push(self.to_value());
    }
    fn read(values: &[Value]) -> Option<Self> {
        match values {
            [value] => C::from_value(value),
            _ => None,
        }
    }
    fn read_ref<'a>(values: &[ValueRef<'a>]) -> Option<C::Ref<'a>> {
        match values {
            [value] => C::from_ref(*value),
            _ => None,
        }
    }
    fn read_copied(values: &[ValueRef<'_>]) -> Option<Self> {
        match values {
            [value] => C::copied(*value),
            _ => None,
        }
    }
}

impl<C: KeyCell> Key for C {}

macro_rules! tuple_columns {
    ($($cell:ident $value:ident),+) => {
        impl<$($cell: Cell),+> Columns for ($($cell,)+) {
            type Ref<'a> = ($($cell::Ref<'a>,)+);
            fn kinds() -> Vec<ColumnKind> {
                vec![$(kind::<$cell>()),+]
            }
            fn write(&self, row: &mut Vec<Value>) {
                #[allow(non_snake_case, reason = "the cells' names serve for their values")]
                let ($($cell,)+) = self;
                $(row.push($cell.to_value());)+
            }
            fn read(values: &[Value]) -> Option<Self> {
                match values {
                    [$($value),+] => Some(($($cell::from_value($value)?,)+)),
                    _ => None,
                }
            }
            fn read_ref<'a>(values: &[ValueRef<'a>]) -> Option<Self::Ref<'a>> {
                match values {
                    [$($value),+] => Some(($($cell::from_ref(*$value)?,)+)),
                    _ => None,
                }
            }
            fn read_copied(values: &[ValueRef<'_>]) -> Option<Self> {
                match values {
                    [$($value),+] => Some(($($cell::copied(*$value)?,)+)),
                    _ => None,
                }
            }
        }
        impl<$($cell: KeyCell),+> Key for ($($cell,)+) {}
    };
}

tuple_columns!(A a);
tuple_columns!(A a, B b);
tuple_columns!(A a, B b, C c);
tuple_columns!(A a, B b, C c, D d);
tuple_columns!(A a, B b, C c, D d, E e);
tuple_columns!(A a, B b, C c, D d, E e, F f);
tuple_columns!(A a, B b, C c, D d, E e, F f, G g);
tuple_columns!(A a, B b, C c, D d, E e, F f, G g, H h);

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<C: Columns + PartialEq + std::fmt::Debug>(columns: C) {
        let mut row = Vec::new();
        columns.write(&mut row);
        assert_eq!(row.len(), C::kinds().len());
        assert!(row.iter().zip(C::kinds()).all(|(v, k)| v.fits(k.storage)));
        let refs: Vec<ValueRef<'_>> = row.iter().map(Value::borrow).collect();
        assert_eq!(C::read_copied(&refs).as_ref(), Some(&columns));
        assert_eq!(C::read(&row), Some(columns));
    }

    #[test]
    fn columns_come_back() {
        there_and_back(7i16);
        there_and_back((i64::MIN, "a\0b".to_owned(), vec![0u8, 255]));
        there_and_back((true, -1i32, 0.5f64, Some("x".to_owned()), None::<i64>));
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        assert_eq!(i16::read(&[Value::Int(40_000)]), None);
        assert_eq!(String::read(&[Value::bytes(&[0xff])]), None);
        assert_eq!(i64::read(&[Value::Null]), None);
        assert_eq!(<(i64, i64)>::read(&[Value::Int(1)]), None);
    }
}
