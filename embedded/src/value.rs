//! Values of rows, and their conversion to Rust types. Types of other crates (features `jiff`, `uuid`, `serde_json`) are converted in both
//! directions here.
//!
//! # Forms
//! Booleans, integers, floats, texts, bytes, dates, times and uuids are transferred in PostgreSQL's binary form. Every other type is
//! transferred in its text form: a `numeric`, an array or a `jsonb` is a text here.

use clearway_values::types::{Oid, oid};

use crate::error::{Error, Result};
use crate::param::{Param, ToSql, uuid_text};

const TIME: Oid = 1083;
const UUID: Oid = 2950;

/// A value of a row; text and bytes are borrowed from the batch of rows that holds them.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::ValueRef;
/// let mut rows = connection.query("SELECT 1, 'x', NULL, '[1]'::jsonb", ())?;
/// let row = rows.next()?.expect("a row");
/// assert_eq!(row.value(0)?, ValueRef::Int(1));
/// assert_eq!(row.value(1)?, ValueRef::Text("x"));
/// assert_eq!(row.value(2)?, ValueRef::Null);
/// assert_eq!(row.value(3)?, ValueRef::Text("[1]"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ValueRef<'a> {
    /// NULL.
    Null,
    /// boolean
    Bool(bool),
    /// smallint, integer, bigint, oid
    Int(i64),
    /// real, double precision
    Float(f64),
    /// text, varchar, char(n), name; and the text form of every type that has no variant of its own here.
    Text(&'a str),
    /// bytea
    Bytes(&'a [u8]),
    /// date: days since 2000-01-01; `i32::MAX` and `MIN` are the infinities.
    Date(i32),
    /// time: microseconds since midnight.
    Time(i64),
    /// timestamp: microseconds since 2000-01-01 00:00; `i64::MAX` and `MIN` are the infinities.
    Timestamp(i64),
    /// timestamptz: microseconds since 2000-01-01 00:00 UTC; the same infinities.
    TimestampTz(i64),
    /// uuid
    Uuid([u8; 16]),
}

/// Whether columns of a type are asked for in the binary form.
pub(crate) fn is_binary(ty: Oid) -> bool {
    is_plain(ty) || matches!(ty, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ | TIME | UUID)
}

/// Types whose binary form every language can read: numbers, texts, bytes.
pub(crate) fn is_plain(ty: Oid) -> bool {
    matches!(
        ty,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::TEXT
            | oid::VARCHAR
            | oid::BPCHAR
            | oid::NAME
            | oid::BYTEA
    )
}

impl<'a> ValueRef<'a> {
    /// Reads a field in the form that [`is_binary`] chose for its type.
    pub(crate) fn read(ty: Oid, bytes: &'a [u8]) -> Result<ValueRef<'a>, &'static str> {
        const SHORT: &str = "a value of the wrong length";
        let i64_of = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes).map_err(|_| SHORT);
        let i32_of = |bytes: &[u8]| bytes.try_into().map(i32::from_be_bytes).map_err(|_| SHORT);
        Ok(match ty {
            oid::BOOL => ValueRef::Bool(bytes.first().is_some_and(|byte| *byte != 0)),
            oid::INT2 => ValueRef::Int(bytes.try_into().map(i16::from_be_bytes).map_err(|_| SHORT)?.into()),
            oid::INT4 => ValueRef::Int(i32_of(bytes)?.into()),
            oid::INT8 => ValueRef::Int(i64_of(bytes)?),
            oid::OID => ValueRef::Int(bytes.try_into().map(u32::from_be_bytes).map_err(|_| SHORT)?.into()),
            oid::FLOAT4 => ValueRef::Float(bytes.try_into().map(f32::from_be_bytes).map_err(|_| SHORT)?.into()),
            oid::FLOAT8 => ValueRef::Float(bytes.try_into().map(f64::from_be_bytes).map_err(|_| SHORT)?),
            oid::BYTEA => ValueRef::Bytes(bytes),
            oid::DATE => ValueRef::Date(i32_of(bytes)?),
            oid::TIMESTAMP => ValueRef::Timestamp(i64_of(bytes)?),
            oid::TIMESTAMPTZ => ValueRef::TimestampTz(i64_of(bytes)?),
            TIME => ValueRef::Time(i64_of(bytes)?),
            UUID => ValueRef::Uuid(bytes.try_into().map_err(|_| SHORT)?),
            _ => ValueRef::Text(std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")?),
        })
    }

    /// What kind of value it is, for messages.
    ///
    /// ```
    /// assert_eq!(clearway::ValueRef::Int(1).kind(), "an integer");
    /// ```
    pub fn kind(&self) -> &'static str {
        match self {
            ValueRef::Null => "NULL",
            ValueRef::Bool(_) => "a boolean",
            ValueRef::Int(_) => "an integer",
            ValueRef::Float(_) => "a floating-point number",
            ValueRef::Text(_) => "a text",
            ValueRef::Bytes(_) => "bytes",
            ValueRef::Date(_) => "a date",
            ValueRef::Time(_) => "a time",
            ValueRef::Timestamp(_) => "a timestamp",
            ValueRef::TimestampTz(_) => "a timestamp with time zone",
            ValueRef::Uuid(_) => "a uuid",
        }
    }
}

/// A type that a value of a row can become.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::{FromSql, ValueRef};
///
/// #[derive(Debug, PartialEq)]
/// enum Mood { Glad, Sad }
/// impl<'a> FromSql<'a> for Mood {
///     fn from_sql(value: ValueRef<'a>) -> Result<Mood, String> {
///         match value {
///             ValueRef::Text("glad") => Ok(Mood::Glad),
///             ValueRef::Text("sad") => Ok(Mood::Sad),
///             other => Err(format!("{other:?} is no mood")),
///         }
///     }
/// }
/// let (mood,): (Mood,) = connection.query_row("SELECT 'glad'", ())?;
/// assert_eq!(mood, Mood::Glad);
/// # Ok(())
/// # }
/// ```
pub trait FromSql<'a>: Sized {
    /// Converts.
    ///
    /// # Errors
    /// What does not fit, as a clause ("NULL does not fit i64").
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String>;
}

fn misfit<T: ?Sized>(value: ValueRef<'_>) -> String {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or("the type");
    format!("{} does not fit {name}", value.kind())
}

impl<'a> FromSql<'a> for ValueRef<'a> {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        Ok(value)
    }
}

impl<'a, T: FromSql<'a>> FromSql<'a> for Option<T> {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::from_sql(value).map(Some),
        }
    }
}

impl<'a> FromSql<'a> for bool {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        match value {
            ValueRef::Bool(value) => Ok(value),
            other => Err(misfit::<bool>(other)),
        }
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl<'a> FromSql<'a> for $ty {
            fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
                match value {
                    ValueRef::Int(value) => <$ty>::try_from(value).map_err(|_| format!("{value} is out of the range of {}", stringify!($ty))),
                    // A numeric, such as the sum of a bigint column.
                    ValueRef::Text(text) => text.parse().map_err(|_| misfit::<$ty>(value)),
                    other => Err(misfit::<$ty>(other)),
                }
            }
        }
        impl ToSql for $ty {
            fn to_sql(&self) -> Param<'_> {
                match i64::try_from(*self) {
                    Ok(value) => Param::Int(value),
                    // Beyond bigint: a numeric in its text form.
                    Err(_) => Param::Owned(self.to_string()),
                }
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64, i128, usize, isize);

impl<'a> FromSql<'a> for f64 {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        match value {
            ValueRef::Float(value) => Ok(value),
            ValueRef::Int(value) => Ok(value as f64),
            ValueRef::Text(text) => text.parse().map_err(|_| misfit::<f64>(value)),
            other => Err(misfit::<f64>(other)),
        }
    }
}

impl<'a> FromSql<'a> for f32 {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        f64::from_sql(value).map(|value| value as f32)
    }
}

impl<'a> FromSql<'a> for &'a str {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        match value {
            ValueRef::Text(text) => Ok(text),
            other => Err(misfit::<str>(other)),
        }
    }
}

impl<'a> FromSql<'a> for String {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        match value {
            ValueRef::Text(text) => Ok(text.to_owned()),
            ValueRef::Uuid(bytes) => Ok(uuid_text(&bytes)),
            other => Err(misfit::<String>(other)),
        }
    }
}

impl<'a> FromSql<'a> for &'a [u8] {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        match value {
            ValueRef::Bytes(bytes) => Ok(bytes),
            other => Err(misfit::<Vec<u8>>(other)),
        }
    }
}

impl<'a> FromSql<'a> for Vec<u8> {
    fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
        <&[u8]>::from_sql(value).map(<[u8]>::to_vec)
    }
}

#[cfg(feature = "uuid")]
mod with_uuid {
    use super::{FromSql, Param, ToSql, ValueRef, misfit};

    impl<'a> FromSql<'a> for uuid::Uuid {
        fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
            match value {
                ValueRef::Uuid(bytes) => Ok(uuid::Uuid::from_bytes(bytes)),
                ValueRef::Text(text) => uuid::Uuid::parse_str(text).map_err(|error| error.to_string()),
                other => Err(misfit::<uuid::Uuid>(other)),
            }
        }
    }

    impl ToSql for uuid::Uuid {
        fn to_sql(&self) -> Param<'_> {
            Param::Owned(self.to_string())
        }
    }
}

#[cfg(feature = "serde_json")]
mod with_json {
    use super::{FromSql, Param, ToSql, ValueRef, misfit};

    impl<'a> FromSql<'a> for serde_json::Value {
        fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
            match value {
                ValueRef::Text(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
                other => Err(misfit::<serde_json::Value>(other)),
            }
        }
    }

    impl ToSql for serde_json::Value {
        fn to_sql(&self) -> Param<'_> {
            Param::Owned(self.to_string())
        }
    }
}

#[cfg(feature = "jiff")]
mod with_jiff {
    use super::{FromSql, Param, ToSql, ValueRef, misfit};
    use jiff::civil::{Date, DateTime, Time};
    use jiff::{Span, Timestamp};

    const EPOCH: Date = Date::constant(2000, 1, 1);
    /// Seconds from 1970 to 2000.
    const EPOCH_S: i64 = 946_684_800;
    const BEYOND: &str = "the value is beyond what the type can hold";

    impl<'a> FromSql<'a> for Date {
        fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
            let ValueRef::Date(days) = value else { return Err(misfit::<Date>(value)) };
            let span = Span::new().try_days(days).map_err(|_| BEYOND)?;
            EPOCH.checked_add(span).map_err(|_| BEYOND.to_owned())
        }
    }

    impl<'a> FromSql<'a> for Time {
        fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
            let ValueRef::Time(micros) = value else { return Err(misfit::<Time>(value)) };
            let span = Span::new().try_microseconds(micros).map_err(|_| BEYOND)?;
            // 24:00:00 is a time of PostgreSQL's and none of jiff's.
            Time::midnight().checked_add(span).map_err(|_| BEYOND.to_owned())
        }
    }

    impl<'a> FromSql<'a> for DateTime {
        fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
            let ValueRef::Timestamp(micros) = value else { return Err(misfit::<DateTime>(value)) };
            let span = Span::new().try_microseconds(micros).map_err(|_| BEYOND)?;
            EPOCH.to_datetime(Time::midnight()).checked_add(span).map_err(|_| BEYOND.to_owned())
        }
    }

    impl<'a> FromSql<'a> for Timestamp {
        fn from_sql(value: ValueRef<'a>) -> Result<Self, String> {
            let ValueRef::TimestampTz(micros) = value else { return Err(misfit::<Timestamp>(value)) };
            let micros = micros.checked_add(EPOCH_S * 1_000_000).ok_or(BEYOND)?;
            Timestamp::from_microsecond(micros).map_err(|_| BEYOND.to_owned())
        }
    }

    macro_rules! as_text {
        ($($ty:ty),*) => {$(
            impl ToSql for $ty {
                fn to_sql(&self) -> Param<'_> {
                    Param::Owned(self.to_string())
                }
            }
        )*};
    }
    as_text!(Date, Time, DateTime, Timestamp);
}

/// An error about a column.
pub(crate) fn conversion(column: impl Into<String>, what: impl Into<String>) -> Error {
    Error::Conversion { column: column.into(), what: what.into() }
}
