//! Values: what goes in as a parameter, and what comes out of a row.
//!
//! # Forms
//! Numbers, texts, bytes, dates, times and uuids cross in PostgreSQL's binary form; every other type crosses in its text form, which
//! both sides can read: a `numeric`, an array or a `jsonb` is a text here.

use clearway_values::types::{Oid, oid};

use crate::error::{Error, Result};

const TIME: Oid = 1083;
const UUID: Oid = 2950;

/// A value of a row; text and bytes are borrowed from the batch of rows that holds them.
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

/// A parameter on its way in. It is converted to the type that the statement expects of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Param<'a> {
    /// NULL
    Null,
    /// boolean
    Bool(bool),
    /// Any integer.
    Int(i64),
    /// Any floating-point number.
    Float(f64),
    /// A text, or any type's text form.
    Text(&'a str),
    /// The same, made for the purpose.
    Owned(String),
    /// bytea
    Bytes(&'a [u8]),
}

/// A parameter that owns what it was given: for bindings of other languages.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// NULL
    Null,
    /// boolean
    Bool(bool),
    /// Any integer.
    Int(i64),
    /// Any floating-point number.
    Float(f64),
    /// A text, or any type's text form.
    Text(String),
    /// bytea
    Bytes(Vec<u8>),
}

impl ToSql for Value {
    fn to_sql(&self) -> Param<'_> {
        match self {
            Value::Null => Param::Null,
            Value::Bool(value) => Param::Bool(*value),
            Value::Int(value) => Param::Int(*value),
            Value::Float(value) => Param::Float(*value),
            Value::Text(text) => Param::Text(text),
            Value::Bytes(bytes) => Param::Bytes(bytes),
        }
    }
}

/// A type that can be a parameter.
pub trait ToSql: Sync {
    /// The parameter.
    fn to_sql(&self) -> Param<'_>;
}

impl<T: ToSql + ?Sized> ToSql for &T {
    fn to_sql(&self) -> Param<'_> {
        (**self).to_sql()
    }
}

impl<T: ToSql> ToSql for Option<T> {
    fn to_sql(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, ToSql::to_sql)
    }
}

impl ToSql for bool {
    fn to_sql(&self) -> Param<'_> {
        Param::Bool(*self)
    }
}

impl ToSql for f64 {
    fn to_sql(&self) -> Param<'_> {
        Param::Float(*self)
    }
}

impl ToSql for f32 {
    fn to_sql(&self) -> Param<'_> {
        Param::Float(f64::from(*self))
    }
}

impl ToSql for str {
    fn to_sql(&self) -> Param<'_> {
        Param::Text(self)
    }
}

impl ToSql for String {
    fn to_sql(&self) -> Param<'_> {
        Param::Text(self)
    }
}

impl ToSql for [u8] {
    fn to_sql(&self) -> Param<'_> {
        Param::Bytes(self)
    }
}

impl ToSql for Vec<u8> {
    fn to_sql(&self) -> Param<'_> {
        Param::Bytes(self)
    }
}

impl<const N: usize> ToSql for [u8; N] {
    fn to_sql(&self) -> Param<'_> {
        Param::Bytes(self)
    }
}

/// A slice of anything but bytes as an array: `WHERE id = ANY ($1)`.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a, T>(pub &'a [T]);

impl<T: ToSql> ToSql for Array<'_, T> {
    fn to_sql(&self) -> Param<'_> {
        let mut text = String::from("{");
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            element(&item.to_sql(), &mut text);
        }
        text.push('}');
        Param::Owned(text)
    }
}

/// An element in the text form of an array: quoted, unless it is NULL.
fn element(param: &Param<'_>, out: &mut String) {
    let form = match param {
        Param::Null => return out.push_str("NULL"),
        Param::Bytes(bytes) => bytea_text(bytes),
        other => text_form(other),
    };
    out.push('"');
    for c in form.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

fn text_form(param: &Param<'_>) -> String {
    match param {
        Param::Null => String::new(),
        Param::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
        Param::Int(value) => value.to_string(),
        Param::Float(value) if value.is_nan() => "NaN".to_owned(),
        Param::Float(value) if value.is_infinite() => if *value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Param::Float(value) => value.to_string(),
        Param::Text(text) => (*text).to_owned(),
        Param::Owned(text) => text.clone(),
        Param::Bytes(bytes) => bytea_text(bytes),
    }
}

fn bytea_text(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("\\x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = bytea_text(bytes).split_off(2);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

impl Param<'_> {
    /// Appends the parameter in the form for `ty`: whether the form is binary; `None` for NULL.
    pub(crate) fn write(&self, ty: Oid, out: &mut Vec<u8>) -> Option<bool> {
        match (self, ty) {
            (Param::Null, _) => return None,
            (Param::Bool(value), oid::BOOL) => out.push(u8::from(*value)),
            (Param::Int(value), oid::INT8) => out.extend_from_slice(&value.to_be_bytes()),
            (Param::Int(value), oid::INT4) if i32::try_from(*value).is_ok() => {
                out.extend_from_slice(&(*value as i32).to_be_bytes());
            }
            (Param::Int(value), oid::INT2) if i16::try_from(*value).is_ok() => {
                out.extend_from_slice(&(*value as i16).to_be_bytes());
            }
            (Param::Int(value), oid::FLOAT8) => out.extend_from_slice(&(*value as f64).to_be_bytes()),
            (Param::Float(value), oid::FLOAT8) => out.extend_from_slice(&value.to_be_bytes()),
            (Param::Bytes(bytes), oid::BYTEA) => out.extend_from_slice(bytes),
            (Param::Text(text), _) => {
                out.extend_from_slice(text.as_bytes());
                return Some(false);
            }
            (other, _) => {
                // The type's own reading of the text says what is wrong with it, in PostgreSQL's words.
                out.extend_from_slice(text_form(other).as_bytes());
                return Some(false);
            }
        }
        Some(true)
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
