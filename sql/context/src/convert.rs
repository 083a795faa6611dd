//! Converts SQL values to the engine's values and back.

use super::sort_form::form_of;
use clearway_engine::decimal::{Decimal, Sign, StoredDecimal};
use clearway_engine::value::{Storage, Value, ValueRef};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::types::datum::Datum;
use clearway_values::types::inet::Inet;
use clearway_values::types::{
    Numeric, Oid, SqlType, binary, cast, geometry, geometry_binary, hstore, json, oid, user, word,
};
use std::sync::Arc;

/// Whether a type is one of ranges or multiranges.
pub fn is_range(ty: Oid) -> bool {
    clearway_values::types::range::of_range(ty).is_some() || clearway_values::types::range::of_multirange(ty).is_some()
}

/// How the engine stores a type; none: it can't be stored.
pub fn storage_of(ty: Oid) -> Option<Storage> {
    let ty = user::base(ty.into()).oid;
    if user::is_enum(ty) {
        return Some(Storage::Int(8));
    }
    // KEY-4
    let structured = |ty| Some(form_of(ty).map_or(Storage::Bytes, Storage::Sorted));
    Some(match ty {
        oid::BOOL => Storage::Bool,
        oid::INT2 => Storage::Int(2),
        oid::INT4 | oid::DATE => Storage::Int(4),
        oid::INT8 | oid::OID | oid::XID | oid::CID | oid::REGCLASS | oid::REGTYPE | oid::REGPROC => Storage::Int(8),
        oid::REGCOLLATION | oid::REGNAMESPACE | oid::REGOPER | oid::REGOPERATOR | oid::REGPROCEDURE | oid::REGROLE => {
            Storage::Int(8)
        }
        oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIME | oid::PG_LSN => Storage::Int(8),
        other if word::is_word(other) => Storage::Int(8),
        oid::UUID | oid::INET | oid::CIDR | oid::TIMETZ | oid::JSON | oid::JSONPATH => Storage::Bytes,
        oid::REFCURSOR | oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => Storage::Bytes,
        oid::FLOAT4 | oid::FLOAT8 => Storage::Float,
        oid::NUMERIC => Storage::Decimal,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR | oid::BYTEA => Storage::Bytes,
        other
            if clearway_values::types::element_of(other).is_some() || user::is_composite(other) || is_range(other) =>
        {
            return structured(other);
        }
        oid::INTERVAL | oid::BIT | oid::VARBIT | oid::JSONB => return structured(ty),
        oid::HSTORE => Storage::Bytes,
        other if geometry::is_one(other) => Storage::Bytes,
        // Keys of texts that differ in case alone are equal; the text stands in the value (KEY-3).
        oid::CITEXT => Storage::Folded,
        _ => return None,
    })
}

/// A value for the engine.
pub fn to_value(d: &Datum) -> Value {
    match d {
        Datum::Null | Datum::Void => Value::Null,
        Datum::Bool(b) => Value::Bool(*b),
        Datum::Int2(v) => Value::Int(i64::from(*v)),
        Datum::Int4(v) | Datum::Date(v) => Value::Int(i64::from(*v)),
        Datum::Int8(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => Value::Int(*v),
        Datum::Oid(v) => Value::Int(i64::from(*v)),
        Datum::Float4(v) => Value::Float(f64::from(*v)),
        Datum::Float8(v) => Value::Float(*v),
        Datum::Numeric(n) => Value::Decimal(to_decimal(n)),
        Datum::Text(s) => Value::Bytes(Arc::from(s.clone())),
        Datum::Bytea(b) => Value::Bytes(b.clone()),
        Datum::Interval(_) => wire(oid::INTERVAL, d),
        Datum::Array(a) => wire(clearway_values::types::array_of(a.element).unwrap_or(oid::TEXT_ARRAY), d),
        Datum::Row(r) => wire(r.shape.oid, d),
        Datum::Bits(_) => wire(oid::VARBIT, d),
        Datum::Range(r) => wire(r.kind.range, d),
        Datum::Multirange(m) => wire(m.kind.multirange, d),
        // The key of char(n) is its text without blanks at the end; reading gives them back by the column's length.
        Datum::Bpchar(s) if s.ends_with(' ') => Value::Bytes(Arc::from(without_blanks(s.as_bytes()))),
        Datum::Bpchar(s) | Datum::Json(s) | Datum::Citext(s) => Value::Bytes(Arc::from(s.clone())),
        Datum::Hstore(h) => Value::Bytes(hstore::stored(h).into()),
        Datum::Geometry(g) => wire(g.ty(), d),
        Datum::Uuid(u) => Value::Bytes(Arc::from(u.as_slice())),
        Datum::Lsn(v) | Datum::Word(v, _) => Value::Int(signed(*v)),
        Datum::Time(t) => Value::Int(*t),
        Datum::TimeTz(t, west) => Value::Bytes(timetz_bytes(*t, *west).into()),
        Datum::Jsonb(j) => Value::Bytes(json::stored::encode(j).into()),
        Datum::JsonPath(p) => Value::Bytes(p.to_string().into_bytes().into()),
        Datum::Enum(e) => Value::Int(e.order),
        Datum::Inet(v, _) => Value::Bytes(v.key().into()),
    }
}

/// A text without the blanks at its end. By bytes: a blank is no part of another character.
pub fn without_blanks(mut text: &[u8]) -> &[u8] {
    // Eight at a time: the texts of a wide char(n) are mostly blanks.
    while let Some((rest, last)) = text.split_last_chunk::<8>()
        && u64::from_ne_bytes(*last) == u64::from_ne_bytes([b' '; 8])
    {
        text = rest;
    }
    let last = text.iter().rposition(|byte| *byte != b' ');
    &text[..last.map_or(0, |last| last + 1)]
}

/// An unsigned number as a signed one that sorts as it does.
fn signed(v: u64) -> i64 {
    (v ^ 1 << 63) as i64
}

/// The other way round.
fn unsigned(v: i64) -> u64 {
    v as u64 ^ 1 << 63
}

/// timetz: the instant of its day, then the zone, so that the bytes sort as the values do.
fn timetz_bytes(time: i64, west: i32) -> Vec<u8> {
    let instant = time + i64::from(west) * 1_000_000;
    let mut out = ((instant as u64) ^ 1 << 63).to_be_bytes().to_vec();
    out.extend(((west as u32) ^ 1 << 31).to_be_bytes());
    out
}

fn timetz(bytes: &[u8]) -> Option<Datum> {
    let (instant, west) = bytes.split_first_chunk::<8>()?;
    let west = (u32::from_be_bytes(west.try_into().ok()?) ^ 1 << 31) as i32;
    let instant = (u64::from_be_bytes(*instant) ^ 1 << 63) as i64;
    Some(Datum::TimeTz(instant.checked_sub(i64::from(west) * 1_000_000)?, west))
}

fn wire(ty: Oid, d: &Datum) -> Value {
    let mut out = Vec::new();
    binary::output(SqlType::new(ty), d, &mut out);
    Value::Bytes(out.into())
}

fn damaged(ty: Oid) -> SqlError {
    SqlError::new("XX001", format!("a stored value is not of type {}", clearway_values::types::format_type(ty.into())))
}

/// A value from the engine.
///
/// # Errors
/// XX001 if it is none of the type.
pub fn to_datum(v: &Value, ty: SqlType) -> Result<Datum> {
    let SqlType { oid: ty, modifier } = user::base(ty);
    let narrow = || damaged(ty);
    Ok(match (v, ty) {
        (Value::Null, _) => Datum::Null,
        (Value::Int(i), oid::INT4) => Datum::Int4(i32::try_from(*i).map_err(|_| narrow())?),
        (Value::Int(i), oid::INT8) => Datum::Int8(*i),
        (Value::Int(i), oid::INT2) => Datum::Int2(i16::try_from(*i).map_err(|_| narrow())?),
        (Value::Int(i), oid::DATE) => Datum::Date(i32::try_from(*i).map_err(|_| narrow())?),
        (Value::Int(i), oid::TIMESTAMP) => Datum::Timestamp(*i),
        (Value::Int(i), oid::TIMESTAMPTZ) => Datum::TimestampTz(*i),
        (Value::Int(i), oid::TIME) => Datum::Time(*i),
        (Value::Int(i), oid::PG_LSN) => Datum::Lsn(unsigned(*i)),
        (Value::Int(i), ty) if word::is_word(ty) => Datum::Word(unsigned(*i), ty),
        (Value::Int(i), ty) if ty >= user::FIRST_OID => user::label_at(ty, *i).ok_or_else(narrow)?,
        (Value::Int(i), _) => Datum::Oid(u32::try_from(*i).map_err(|_| narrow())?),
        (Value::Bool(b), _) => Datum::Bool(*b),
        (Value::Float(f), oid::FLOAT4) => Datum::Float4(*f as f32),
        (Value::Float(f), _) => Datum::Float8(*f),
        (Value::Decimal(d), _) => Datum::numeric(from_decimal(d).ok_or_else(narrow)?),
        (Value::Bytes(b), oid::BYTEA) => Datum::Bytea(b.clone()),
        (Value::Bytes(b), oid::INET | oid::CIDR) => Datum::Inet(Inet::of_key(b).ok_or_else(narrow)?, ty == oid::CIDR),
        (Value::Bytes(b), oid::UUID) => Datum::Uuid(b[..].try_into().map_err(|_| narrow())?),
        (Value::Bytes(b), oid::TIMETZ) => timetz(b).ok_or_else(narrow)?,
        (Value::Bytes(b), oid::JSON) => Datum::Json(std::str::from_utf8(b).map_err(|_| narrow())?.into()),
        (Value::Bytes(b), oid::JSONB) => Datum::Jsonb(json::stored::decode(b).ok_or_else(narrow)?.into()),
        (Value::Bytes(b), oid::JSONPATH) => {
            let text = std::str::from_utf8(b).map_err(|_| narrow())?;
            Datum::JsonPath(clearway_values::types::jsonpath::parse(text).map_err(|_| narrow())?.into())
        }
        (Value::Bytes(b), oid::CITEXT) => Datum::Citext(std::str::from_utf8(b).map_err(|_| narrow())?.into()),
        (Value::Bytes(b), oid::HSTORE) => Datum::Hstore(hstore::of_stored(b).ok_or_else(narrow)?.into()),
        (Value::Bytes(b), oid::BPCHAR) => char_n(std::str::from_utf8(b).map_err(|_| narrow())?, modifier),
        (Value::Bytes(b), oid::INTERVAL | oid::BIT | oid::VARBIT) => binary::input(ty.into(), b)?,
        (Value::Bytes(b), _) if clearway_values::types::element_of(ty).is_some() => binary::stored(ty.into(), b)?,
        (Value::Bytes(b), _) if geometry::is_one(ty) => geometry_binary::of_stored(ty, b)?,
        (Value::Bytes(b), _) if user::is_composite(ty) || is_range(ty) => binary::stored(ty.into(), b)?,
        (Value::Bytes(b), _) => Datum::text(std::str::from_utf8(b).map_err(|_| narrow())?),
    })
}

/// char(n) with its blanks.
fn char_n(text: &str, modifier: i32) -> Datum {
    let wanted = usize::try_from(modifier - 4).unwrap_or(0);
    let missing = wanted.saturating_sub(cast::characters(text.as_bytes()));
    if missing == 0 {
        return Datum::Bpchar(text.into());
    }
    // A scan makes one of these for each row: the blanks of a short one are put on the stack, and one piece of memory is taken.
    let mut short = [b' '; 256];
    match short.get_mut(..text.len() + missing) {
        Some(all) => {
            all[..text.len()].copy_from_slice(text.as_bytes());
            // A text and blanks are a text, so there is no error.
            Datum::Bpchar(std::str::from_utf8(all).unwrap_or(text).into())
        }
        None => cast::padded(&text.into(), wanted),
    }
}

/// The same of a value that is borrowed from its row.
///
/// # Errors
/// XX001.
pub fn borrowed_datum(v: ValueRef<'_>, ty: SqlType) -> Result<Datum> {
    let text = |b| std::str::from_utf8(b).map_err(|_| damaged(ty.oid));
    match (v, ty.oid) {
        (ValueRef::Null, _) => Ok(Datum::Null),
        (ValueRef::Int(i), oid::INT4) => Ok(Datum::Int4(i32::try_from(i).map_err(|_| damaged(ty.oid))?)),
        (ValueRef::Int(i), oid::INT8) => Ok(Datum::Int8(i)),
        (ValueRef::Int(i), oid::DATE) => Ok(Datum::Date(i32::try_from(i).map_err(|_| damaged(ty.oid))?)),
        (ValueRef::Int(i), oid::TIMESTAMP) => Ok(Datum::Timestamp(i)),
        (ValueRef::Int(i), oid::TIMESTAMPTZ) => Ok(Datum::TimestampTz(i)),
        (ValueRef::Bytes(b), oid::TEXT | oid::VARCHAR) => Ok(Datum::text(text(b)?)),
        (ValueRef::Bytes(b), oid::BPCHAR) => Ok(char_n(text(b)?, ty.modifier)),
        (ValueRef::StoredDecimal(d), oid::NUMERIC) => stored_numeric(d).map(Datum::numeric),
        (ValueRef::StoredDecimal(d), _) => to_datum(&Value::Decimal(d.to_decimal()), ty),
        (ValueRef::Bytes(b), _) => to_datum(&Value::bytes(b), ty),
        (ValueRef::Bool(b), _) => to_datum(&Value::Bool(b), ty),
        (ValueRef::Int(i), _) => to_datum(&Value::Int(i), ty),
        (ValueRef::Float(f), _) => to_datum(&Value::Float(f), ty),
        (ValueRef::Decimal(d), _) => to_datum(&Value::Decimal(d.clone()), ty),
    }
}

/// A numeric in its stored form.
///
/// # Errors
/// XX001.
pub fn stored_numeric(d: StoredDecimal<'_>) -> Result<Numeric> {
    let sign = match d.sign {
        Sign::Zero | Sign::Positive => 0,
        Sign::Negative => 0x4000,
        Sign::Infinity | Sign::NegativeInfinity | Sign::Nan => {
            return from_decimal(&d.to_decimal()).ok_or_else(|| damaged(oid::NUMERIC));
        }
    };
    match Numeric::of_digits(d.weight, sign, d.scale, d.digits()) {
        Some(small) => Ok(small),
        None => from_decimal(&d.to_decimal()).ok_or_else(|| damaged(oid::NUMERIC)),
    }
}

/// A row from the engine, appended to `out`.
///
/// # Errors
/// XX001.
pub fn read_row(row: &[Value], types: &[SqlType], out: &mut Vec<Datum>) -> Result<()> {
    for (v, ty) in row.iter().zip(types) {
        out.push(to_datum(v, *ty)?);
    }
    Ok(())
}

pub(super) fn to_decimal(n: &Numeric) -> Decimal {
    let (mut weight, sign, scale, digits) = n.to_wire();
    let first = digits.iter().position(|d| *d != 0).unwrap_or(digits.len());
    let last = digits.iter().rposition(|d| *d != 0).map_or(first, |i| i + 1);
    weight = weight.saturating_sub(first as i16);
    let digits: Arc<[u16]> = digits[first..last].into();
    let sign = match sign {
        0x0000 if digits.is_empty() => Sign::Zero,
        0x0000 => Sign::Positive,
        0x4000 if digits.is_empty() => Sign::Zero,
        0x4000 => Sign::Negative,
        0xD000 => Sign::Infinity,
        0xF000 => Sign::NegativeInfinity,
        _ => Sign::Nan,
    };
    let weight = if digits.is_empty() { 0 } else { weight };
    Decimal { sign, weight, scale, digits }
}

fn from_decimal(d: &Decimal) -> Option<Numeric> {
    let sign = match d.sign {
        Sign::Zero | Sign::Positive => 0x0000,
        Sign::Negative => 0x4000,
        Sign::Infinity => 0xD000,
        Sign::NegativeInfinity => 0xF000,
        Sign::Nan => 0xC000,
    };
    Numeric::from_wire(d.weight, sign, d.scale, &d.digits)
}

/// 0A000 for a type that no table can have.
pub fn not_storable(ty: SqlType) -> SqlError {
    SqlError::new(
        code::FEATURE_NOT_SUPPORTED,
        format!("a column of type {} is not supported", clearway_values::types::format_type(ty)),
    )
}
