//! The text form of values: what clients send and psql shows.

use super::bits::Bits;
use super::datetime::{self, Format};
use super::datum::Datum;
use super::inet::Inet;
use super::interval::Interval;
use super::numeric::{self, Numeric};
use super::{
    Oid, SqlType, aliases, array, cast, element_of, facts, float, geometry, geometry_text, hstore, oid, range, word,
};
use crate::error::{Result, SqlError, code};

/// The pseudo-type record[].
const RECORD_ARRAY: Oid = 2287;

/// Looks up what the reg* types name; the catalog implements it.
pub trait Names {
    /// The oid of a relation by its possibly qualified name.
    ///
    /// # Errors
    /// 42501 where the session's role may not look into the schema.
    fn relation(&self, parts: &[String]) -> Result<Option<Oid>>;
    /// The name of a relation.
    fn relation_name(&self, oid: Oid) -> Option<String>;
    /// The oid of a schema.
    fn schema(&self, _name: &str) -> Option<Oid> {
        None
    }
    /// The name of a schema.
    fn schema_name(&self, _oid: Oid) -> Option<String> {
        None
    }
    /// Whether an extension has put a function of the server's into a schema.
    fn has_extension_function(&self, _schema: &str, _function: &str) -> bool {
        false
    }
    /// The function over the catalog of a name that gives rows for so many arguments.
    fn catalog_rows(&self, _schema: Option<&str>, _name: &str, _arguments: usize) -> Option<CatalogRows> {
        None
    }
    /// The oid of a role.
    fn role(&self, _name: &str) -> Option<Oid> {
        None
    }
    /// Whether the session's role may call a function of a user.
    fn may_execute(&self, _oid: Oid) -> bool {
        true
    }
    /// The name of a role, quoted where SQL needs that.
    fn role_name(&self, _oid: Oid) -> Option<String> {
        None
    }
}

/// A function over the catalog that gives rows.
#[derive(Clone, Copy, Debug)]
pub struct CatalogRows {
    /// Its number among these functions.
    pub at: usize,
    /// The types of its arguments.
    pub arguments: &'static [Oid],
    /// The columns of its rows; ANYELEMENT is the type of the elements of the first argument.
    pub columns: &'static [(&'static str, Oid)],
}

/// No names at all: numbers only.
pub struct NoNames;

impl Names for NoNames {
    fn relation(&self, _: &[String]) -> Result<Option<Oid>> {
        Ok(None)
    }
    fn relation_name(&self, _: Oid) -> Option<String> {
        None
    }
}

/// What input and output of values depend on.
#[derive(Clone, Copy)]
pub struct Conversion<'a> {
    /// The session's formats.
    pub format: &'a Format,
    /// Start of the transaction, microseconds since 2000-01-01 UTC.
    pub now: i64,
    /// The catalog.
    pub names: &'a dyn Names,
}

/// `invalid input syntax for type ...`.
pub fn invalid(ty: &str, text: &str) -> SqlError {
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {ty}: \"{text}\""))
}

fn int<T: TryFrom<i64>>(text: &str, ty: &str) -> Result<T> {
    if let Some(fits) = plain_int(text).and_then(|v| T::try_from(v).ok()) {
        return Ok(fits);
    }
    let t = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let body = t.strip_prefix(['-', '+']).unwrap_or(t);
    if body.is_empty() || !body.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(ty, text));
    }
    t.parse::<i64>().ok().and_then(|v| T::try_from(v).ok()).ok_or_else(|| {
        let message = format!("value \"{text}\" is out of range for type {ty}");
        SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message)
    })
}

/// A number of digits alone, as most are; none: it has other characters, or too many.
#[inline]
fn plain_int(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut value = 0;
    for byte in text.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = 10 * value + i64::from(digit);
    }
    Some(value)
}

/// The truth value of a text.
///
/// # Errors
/// 22P02.
pub fn boolean(text: &str) -> Result<bool> {
    let t = text.trim().to_ascii_lowercase();
    let prefix = |word: &str, min: usize| t.len() >= min && word.starts_with(&t);
    if prefix("true", 1) || prefix("yes", 1) || t == "on" || t == "1" {
        Ok(true)
    } else if prefix("false", 1) || prefix("no", 1) || prefix("off", 2) || t == "0" {
        Ok(false)
    } else {
        Err(invalid("boolean", text))
    }
}

fn bytea(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let digit = |b: u8| {
            (b as char).to_digit(16).ok_or_else(|| {
                let message = format!("invalid hexadecimal digit: \"{}\"", b as char);
                SqlError::new(code::INVALID_PARAMETER_VALUE, message)
            })
        };
        if digits.len() % 2 == 1 {
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits"));
        }
        return digits.chunks(2).map(|c| Ok((digit(c[0])? * 16 + digit(c[1])?) as u8)).collect();
    }
    escaped_bytes(text)
}

/// Bytes of a text in which `\\` is a backslash and `\ooo` any byte.
pub(crate) fn escaped_bytes(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        match (b, tail) {
            (b'\\', [b'\\', tail @ ..]) => {
                out.push(b'\\');
                rest = tail;
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = tail;
            }
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(code::INVALID_TEXT_REPRESENTATION, message));
            }
            _ => {
                out.push(b);
                rest = tail;
            }
        }
    }
    Ok(out)
}

/// Text to a value of `ty`, its modifier applied as for an explicit cast of a constant.
pub fn input(ty: SqlType, text: &str, c: &Conversion<'_>) -> Result<Datum> {
    if ty.oid == oid::INTERVAL {
        return interval(ty.modifier, text, c);
    }
    let value = input_plain(ty.oid, text, c)?;
    if ty.modifier < 0 { Ok(value) } else { cast::fit(value, ty, false) }
}

/// An interval's modifier says what a number without a unit counts.
fn interval(modifier: i32, text: &str, c: &Conversion<'_>) -> Result<Datum> {
    let read = Interval::parse(text, modifier, c.format.interval_style)?;
    cast::fit(Datum::Interval(read), SqlType { oid: oid::INTERVAL, modifier }, false)
}

fn input_plain(ty: Oid, text: &str, c: &Conversion<'_>) -> Result<Datum> {
    Ok(match ty {
        oid::BOOL => Datum::Bool(boolean(text)?),
        oid::INT2 => Datum::Int2(int(text, "smallint")?),
        oid::INT4 => Datum::Int4(int(text, "integer")?),
        oid::INT8 => Datum::Int8(int(text, "bigint")?),
        // As xid8: what is beyond their 32 bits is cut off.
        oid::XID | oid::CID => Datum::Oid(word::parse_xid8(text) as u32),
        oid::OID => {
            let v: i64 = int(text, "oid")?;
            let fits = u32::try_from(v).or_else(|_| i32::try_from(v).map(|v| v as u32));
            Datum::Oid(fits.map_err(|_| {
                let message = format!("value \"{text}\" is out of range for type oid");
                SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message)
            })?)
        }
        _ if aliases::is_alias(ty) => Datum::Oid(aliases::input(ty, text, c)?),
        oid::FLOAT4 => Datum::Float4(float::parse(text, "real")? as f32),
        oid::FLOAT8 => Datum::Float8(float::parse(text, "double precision")?),
        oid::NUMERIC => Datum::numeric(Numeric::parse(text).unwrap_or_else(|| Err(invalid("numeric", text)))?),
        oid::TEXT | oid::VARCHAR | oid::UNKNOWN | oid::CSTRING | oid::REFCURSOR => Datum::text(text),
        oid::BPCHAR => Datum::Bpchar(text.into()),
        _ if is_document(ty) => document(ty, text)?,
        oid::BIT | oid::VARBIT => Datum::Bits(Bits::parse(text)?.into()),
        oid::UUID => Datum::Uuid(super::uuid::parse(text).ok_or_else(|| invalid("uuid", text))?),
        oid::PG_LSN => Datum::Lsn(super::lsn::parse(text).ok_or_else(|| invalid("pg_lsn", text))?),
        _ if super::word::is_word(ty) => super::word::parse(ty, text)?,
        _ if geometry::is_one(ty) => geometry_text::parse(ty, text)?,
        oid::INET | oid::CIDR => Datum::Inet(Inet::parse(text, ty == oid::CIDR)?, ty == oid::CIDR),
        oid::TIME => Datum::Time(super::time::parse(text, c)?),
        oid::TIMETZ => super::time::parse_zoned(text, c)?,
        oid::NAME => Datum::text(crate::syntax::lexer::truncate_name(text.into()).into_owned()),
        oid::CHAR => super::byte_char::parse(text),
        oid::BYTEA => Datum::Bytea(bytea(text)?.into()),
        oid::DATE => Datum::Date(datetime::parse_date(text, c.format, c.now)?),
        oid::TIMESTAMP => Datum::Timestamp(datetime::parse_timestamp(text, c.format, c.now)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(datetime::parse_timestamptz(text, c.format, c.now)?),
        oid::INTERVAL => interval(-1, text, c)?,
        oid::VOID => Datum::Void,
        oid::INT2VECTOR | oid::OIDVECTOR => {
            let element = if ty == oid::INT2VECTOR { oid::INT2 } else { oid::OID };
            let values: Result<Vec<Datum>> = text.split_whitespace().map(|w| input_plain(element, w, c)).collect();
            Datum::Array(super::datum::Array::vector(element, values?).into())
        }
        _ if super::user::is_enum(ty) => super::user::label(ty, text)?,
        _ if super::user::is_domain(ty) => {
            let value = input(super::user::base(ty.into()), text, c)?;
            super::user::check(ty, &value)?;
            value
        }
        oid::RECORD => {
            let message = "input of anonymous composite types is not implemented";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        // The pseudo-type record[]: only an array without elements can be read.
        RECORD_ARRAY => Datum::Array(array::parse(text, oid::RECORD, |t| input_plain(oid::RECORD, t, c))?.into()),
        _ if super::user::is_composite(ty) => super::record::parse(ty, text, c)?,
        _ if range::of_range(ty).is_some() || range::of_multirange(ty).is_some() => range_input(ty, text, c)?,
        _ => match element_of(ty) {
            Some(element) => Datum::Array(array::parse(text, element, |t| input_plain(element, t, c))?.into()),
            None => {
                let name = facts(ty).map_or("???", |f| f.sql_name);
                return Err(SqlError::new(
                    code::FEATURE_NOT_SUPPORTED,
                    format!("cannot accept a value of type {name}"),
                ));
            }
        },
    })
}

fn is_document(ty: Oid) -> bool {
    matches!(
        ty,
        oid::CITEXT | oid::HSTORE | oid::JSON | oid::JSONB | oid::JSONPATH | oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT
    )
}

/// A text without a length that is a value of its own.
fn document(ty: Oid, text: &str) -> Result<Datum> {
    Ok(match ty {
        oid::JSON => super::json::validate(text).map(|_| Datum::Json(text.into()))?,
        oid::JSONB => Datum::Jsonb(super::json::parse(text)?.into()),
        oid::JSONPATH => Datum::JsonPath(super::jsonpath::parse(text)?.into()),
        oid::HSTORE => Datum::Hstore(hstore::parse(text)?.into()),
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => Datum::text(super::snapshot::text(&super::snapshot::parse(text)?)),
        _ => Datum::Citext(text.into()),
    })
}

fn range_input(ty: Oid, text: &str, c: &Conversion<'_>) -> Result<Datum> {
    if let Some(kind) = range::of_range(ty) {
        return range::parse(kind, text, c).map(range::datum);
    }
    let kind = range::of_multirange(ty).ok_or_else(|| SqlError::internal("a range without a kind"))?;
    Ok(Datum::Multirange(range::parse_multi(kind, text, c)?.into()))
}

/// A value of `ty` to text.
pub fn output(ty: SqlType, value: &Datum, c: &Conversion<'_>) -> String {
    match value {
        Datum::Null | Datum::Void => String::new(),
        Datum::Bool(b) => (if *b { "t" } else { "f" }).to_owned(),
        Datum::Int2(v) => v.to_string(),
        Datum::Int4(v) => v.to_string(),
        Datum::Int8(v) => v.to_string(),
        Datum::Oid(v) if aliases::is_alias(ty.oid) => aliases::output(ty.oid, *v, c.names),
        Datum::Oid(v) => v.to_string(),
        Datum::Float4(v) => float::shown4(*v, c.format.float_digits),
        Datum::Float8(v) => float::shown8(*v, c.format.float_digits),
        Datum::Numeric(n) => n.to_string(),
        Datum::Bpchar(s) | Datum::Json(s) | Datum::Citext(s) => s.to_string(),
        Datum::Hstore(h) => hstore::format(h),
        Datum::Geometry(g) => geometry_text::format(g, c.format.float_digits),
        Datum::Uuid(u) => super::uuid::format(u),
        Datum::Lsn(v) => super::lsn::format(*v),
        Datum::Word(v, ty) => super::word::format(*v, *ty),
        Datum::Time(t) => super::time::format(*t),
        Datum::TimeTz(t, west) => super::time::format_zoned(*t, *west),
        Datum::Jsonb(j) => j.to_string(),
        Datum::JsonPath(p) => p.to_string(),
        Datum::Enum(e) => e.text.to_string(),
        Datum::Inet(v, cidr) => v.text(*cidr),
        Datum::Bits(b) => b.text(),
        Datum::Range(r) => range::format(r, c),
        Datum::Multirange(m) => range::format_multi(m, c),
        Datum::Text(s) => s.to_string(),
        Datum::Bytea(b) if c.format.bytea_escape => escaped(b),
        Datum::Bytea(b) => {
            let mut out = String::with_capacity(2 + b.len() * 2);
            out.push_str("\\x");
            super::hex::push_hex(b, &mut out);
            out
        }
        Datum::Date(d) => datetime::format_date(*d, c.format),
        Datum::Timestamp(t) => datetime::format_timestamp(*t, c.format),
        Datum::TimestampTz(t) => datetime::format_timestamptz(*t, c.format),
        Datum::Interval(i) => i.format(c.format.interval_style),
        Datum::Array(a) if matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR) => {
            a.values.iter().map(|v| output(a.element.into(), v, c)).collect::<Vec<_>>().join(" ")
        }
        Datum::Array(a) => array::format(a, |v| output(SqlType { oid: a.element, modifier: ty.modifier }, v, c)),
        Datum::Row(row) => {
            let fields = row.values.iter().zip(&row.shape.types).map(|(f, ty)| row_field(f, *ty, c));
            format!("({})", fields.collect::<Vec<String>>().join(","))
        }
    }
}

/// Bytes with `\\` for a backslash and `\ooo` for what ASCII does not print.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for b in bytes {
        match b {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(*b)),
            _ => out.push_str(&format!("\\{b:03o}")),
        }
    }
    out
}

fn row_field(field: &Datum, ty: SqlType, c: &Conversion<'_>) -> String {
    if field.is_null() {
        return String::new();
    }
    let text = output(ty, field, c);
    let special = |ch: char| matches!(ch, '(' | ')' | ',' | '"' | '\\') || array::is_blank(ch);
    if !text.is_empty() && !text.contains(special) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
}

const _: () = assert!(numeric::SCALE_MAX == 16_383);
