//! Values of parameters, from Rust to a statement.
//!
//! A parameter is sent in the binary form if its type is the one that the statement expects, else in the text form. Then the expected type
//! reads the text, and its error, in PostgreSQL's words, says what does not fit.

use clearway_values::types::{Datum, Oid, oid};

/// A parameter on its way in. It is converted to the type that the statement expects of it.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::{Param, ToSql};
///
/// struct Celsius(f64);
/// impl ToSql for Celsius {
///     fn to_sql(&self) -> Param<'_> {
///         Param::Float(self.0)
///     }
/// }
/// assert_eq!(connection.query_row::<(f64,)>("SELECT $1::float8 + 1", [Celsius(20.5)])?.0, 21.5);
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::Value;
/// let values = [Value::Int(1), Value::Text("one".to_owned())]; // types that are known at run time only
/// let (n, text): (i32, String) = connection.query_row("SELECT $1::int, $2::text", &values)?;
/// assert_eq!((n, text.as_str()), (1, "one"));
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::{Param, ToSql};
///
/// enum Mood { Glad, Sad }
/// impl ToSql for Mood {
///     fn to_sql(&self) -> Param<'_> {
///         Param::Text(match self { Mood::Glad => "glad", Mood::Sad => "sad" })
///     }
/// }
/// let both = connection.query_row::<(String,)>("SELECT $1::text || $2::text", (Mood::Glad, Mood::Sad))?;
/// assert_eq!(both.0, "gladsad");
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::Array;
/// let (n,): (i64,) = connection.query_row("SELECT count(*) FROM generate_series(1, 9) g WHERE g = ANY ($1)", (Array(&[2, 3, 99]),))?;
/// assert_eq!(n, 2);
/// # Ok(())
/// # }
/// ```
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

pub(crate) fn bytea_text(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("\\x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub(crate) fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = bytea_text(bytes).split_off(2);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

impl Param<'_> {
    /// The value as one of this type; none: its reading needs more than the value, or there is an error in it.
    pub(crate) fn datum(&self, ty: Oid) -> Option<Datum> {
        Some(match (self, ty) {
            (Param::Null, _) => Datum::Null,
            (Param::Bool(value), oid::BOOL) => Datum::Bool(*value),
            (Param::Int(value), oid::INT8) => Datum::Int8(*value),
            (Param::Int(value), oid::INT4) => Datum::Int4(i32::try_from(*value).ok()?),
            (Param::Int(value), oid::INT2) => Datum::Int2(i16::try_from(*value).ok()?),
            (Param::Int(value), oid::FLOAT8) => Datum::Float8(*value as f64),
            (Param::Float(value), oid::FLOAT8) => Datum::Float8(*value),
            (Param::Bytes(bytes), oid::BYTEA) => Datum::Bytea((*bytes).into()),
            (Param::Text(text), oid::TEXT | oid::VARCHAR) if !text.as_bytes().contains(&0) => Datum::text(*text),
            _ => return None,
        })
    }

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
