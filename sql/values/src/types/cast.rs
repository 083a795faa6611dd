//! Casts: which exist, in which contexts they apply, and how they convert values.

use super::cast_table::CASTS;
use super::datetime;
use super::datum::{Array, Datum};
use super::numeric::Numeric;
use super::text::{self, Conversion};
use super::{Oid, SqlType, category, element_of, facts, format_type, interval_modifier, numeric_modifier, oid};
use super::{user, word};
use crate::error::{Result, SqlError, code};
use std::sync::Arc;

/// Where a cast applies without being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// Anywhere.
    Implicit,
    /// Where a value is stored.
    Assignment,
    /// Nowhere.
    Explicit,
}

/// The widest context in which `from` casts to `to`; none: no cast.
pub fn context(from: Oid, to: Oid) -> Option<Context> {
    if from == to || from == oid::UNKNOWN {
        return Some(Context::Implicit);
    }
    // A domain casts as the type below it does.
    let below = (user::base(from.into()).oid, user::base(to.into()).oid);
    if below != (from, to) {
        return context(below.0, below.1);
    }
    if let Ok(i) = CASTS.binary_search_by_key(&(from, to), |c| (c.0, c.1)) {
        return Some(match CASTS[i].2 {
            b'i' => Context::Implicit,
            b'a' => Context::Assignment,
            _ => Context::Explicit,
        });
    }
    if let (Some(a), Some(b)) = (element_of(from), element_of(to)) {
        return context(a, b);
    }
    if to == oid::RECORD && user::is_composite(from) || from == oid::RECORD && user::is_composite(to) {
        return Some(Context::Implicit);
    }
    let real = |t: Oid| t == oid::RECORD || facts(t).is_some_and(|f| f.category != b'P');
    if category(to) == b'S' && (real(from) || from == oid::VOID) {
        return Some(Context::Assignment);
    }
    if category(from) == b'S' && real(to) {
        return Some(Context::Explicit);
    }
    None
}

/// Whether `from` casts to `to` in a context.
pub fn can(from: Oid, to: Oid, allowed: Context) -> bool {
    context(from, to).is_some_and(|c| c <= allowed)
}

/// Fits a value into a type's modifier: lengths, scales and precisions. An explicit cast cuts text silently.
pub fn fit(value: Datum, ty: SqlType, explicit: bool) -> Result<Datum> {
    if ty.modifier < 0 {
        return Ok(value);
    }
    Ok(match (&value, ty.oid) {
        (Datum::Text(s) | Datum::Bpchar(s), oid::VARCHAR | oid::BPCHAR) => {
            let max = (ty.modifier - 4).max(0) as usize;
            // A character has a byte at least.
            let over = if s.len() <= max { None } else { s.char_indices().nth(max) };
            let Some((cut, _)) = over else {
                return Ok(if ty.oid == oid::BPCHAR { padded(s, max) } else { value });
            };
            if !explicit && s[cut..].contains(|c| c != ' ') {
                let message = format!("value too long for type {}", format_type(ty));
                return Err(SqlError::new(code::STRING_DATA_RIGHT_TRUNCATION, message));
            }
            let kept = &s[..cut];
            if ty.oid == oid::BPCHAR { Datum::Bpchar(kept.into()) } else { Datum::text(kept) }
        }
        (Datum::Numeric(n), oid::NUMERIC) => {
            let (precision, scale) = numeric_modifier(ty.modifier);
            Datum::numeric(n.fit(precision, scale)?)
        }
        (Datum::Bits(b), oid::BIT | oid::VARBIT) => b.fit(ty, explicit)?.map_or(value, |b| Datum::Bits(b.into())),
        (Datum::Timestamp(t), oid::TIMESTAMP) => Datum::Timestamp(datetime::fit(*t, ty.modifier)),
        (Datum::TimestampTz(t), oid::TIMESTAMPTZ) => Datum::TimestampTz(datetime::fit(*t, ty.modifier)),
        (Datum::Time(t), oid::TIME) => Datum::Time(datetime::fit(*t, ty.modifier)),
        (Datum::TimeTz(t, west), oid::TIMETZ) => Datum::TimeTz(datetime::fit(*t, ty.modifier), *west),
        (Datum::Interval(i), oid::INTERVAL) => Datum::Interval(interval_modifier::fit(*i, ty.modifier)),
        (Datum::Array(a), _) if element_of(ty.oid).is_some() => {
            let element = SqlType { oid: a.element, modifier: ty.modifier };
            let values: Result<Vec<Datum>> = a.values.iter().map(|v| fit(v.clone(), element, explicit)).collect();
            Datum::Array(Array { element: a.element, dims: a.dims.clone(), values: values? }.into())
        }
        _ => value,
    })
}

/// The length of a text in characters. Bytes that continue a character are not counted; sums of one byte let the processor add many at once.
#[inline]
pub fn characters(text: &[u8]) -> usize {
    let begin = |bytes: &[u8]| bytes.iter().map(|b| u8::from(b & 0xc0 != 0x80)).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|bytes| usize::from(begin(bytes))).sum()
}

/// A text with blanks behind it up to a length in characters.
pub fn padded(text: &Arc<str>, length: usize) -> Datum {
    let missing = length.saturating_sub(characters(text.as_bytes()));
    Datum::Bpchar(if missing == 0 { text.clone() } else { format!("{text}{}", " ".repeat(missing)).into() })
}

/// TYP-2
fn out_of_range(ty: Oid) -> SqlError {
    let name = facts(ty).map_or("value", |f| f.sql_name);
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

fn int_to(v: i64, to: Oid) -> Result<Datum> {
    let range = || out_of_range(to);
    Ok(match to {
        oid::INT2 => Datum::Int2(i16::try_from(v).map_err(|_| range())?),
        oid::INT4 => Datum::Int4(i32::try_from(v).map_err(|_| range())?),
        oid::INT8 => Datum::Int8(v),
        oid::FLOAT4 => Datum::Float4(v as f32),
        oid::FLOAT8 => Datum::Float8(v as f64),
        oid::NUMERIC => Datum::numeric(Numeric::from(v)),
        oid::BOOL => Datum::Bool(v != 0),
        _ => {
            let message = "OID out of range";
            Datum::Oid(u32::try_from(v).map_err(|_| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message))?)
        }
    })
}

fn float_to(v: f64, single: bool, to: Oid) -> Result<Datum> {
    let whole = v.round_ties_even();
    Ok(match to {
        oid::FLOAT8 => Datum::Float8(v),
        oid::FLOAT4 => {
            let narrow = v as f32;
            if narrow.is_infinite() && v.is_finite() {
                return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
            }
            if narrow == 0.0 && v != 0.0 {
                return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow"));
            }
            Datum::Float4(narrow)
        }
        oid::NUMERIC => Datum::numeric(Numeric::from_f64(v, if single { 6 } else { 15 })?),
        _ if (i64::MIN as f64..-(i64::MIN as f64)).contains(&whole) => int_to(whole as i64, to)?,
        _ => return Err(out_of_range(to)),
    })
}

/// A numeric as a float, which is its text read as one.
fn numeric_to_float(n: &Numeric, to: Oid) -> Result<Datum> {
    let v = n.to_f64();
    // Rounded once, as in PostgreSQL, which reads the text as a real.
    let narrow = match to {
        oid::FLOAT4 if n.scale().is_some() => n.to_string().parse().unwrap_or(v as f32),
        _ => v as f32,
    };
    let (is_lost, name) = match to {
        oid::FLOAT4 => (narrow.is_infinite() || narrow == 0.0, "real"),
        _ => (v.is_infinite() || v == 0.0, "double precision"),
    };
    // Zero and the infinities themselves are no loss.
    if is_lost && n.scale().is_some() && *n != Numeric::from(0i64) {
        let message = format!("\"{n}\" is out of range for type {name}");
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(if to == oid::FLOAT4 { Datum::Float4(narrow) } else { Datum::Float8(v) })
}

/// Converts a value of `from` to `to`, fitting its modifier. The cast exists: the binder asked [`context`].
pub fn convert(value: Datum, from: SqlType, to: SqlType, explicit: bool, c: &Conversion<'_>) -> Result<Datum> {
    if user::is_domain(to.oid) {
        let value = convert(value, from, user::base(to), explicit, c)?;
        user::check(to.oid, &value)?;
        return Ok(value);
    }
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let from = user::base(from);
    if from.oid == to.oid {
        return fit(value, to, explicit);
    }
    let converted = match value {
        // A citext converts as the text that it is, and any other value to a citext as to a text.
        Datum::Citext(text) => return convert(Datum::Text(text), oid::TEXT.into(), to, explicit, c),
        Datum::Text(text) if to.oid == oid::CITEXT => Datum::Citext(text),
        Datum::Hstore(pairs) if matches!(to.oid, oid::JSON | oid::JSONB) => hstore_to_json(&pairs, to)?,
        Datum::Geometry(g) if super::geometry::is_one(to.oid) => super::geometry::convert(&g, to.oid)?,
        Datum::Array(pairs) if to.oid == oid::HSTORE => Datum::Hstore(super::hstore::of_array(&pairs)?.into()),
        value if to.oid == oid::CITEXT => {
            let text = convert(value, from, oid::TEXT.into(), explicit, c)?;
            return convert(text, oid::TEXT.into(), to, explicit, c);
        }
        Datum::Void => text::input(SqlType::new(to.oid), "", c)?,
        value => convert_plain(value, from, to, explicit, c)?,
    };
    fit(converted, to, explicit)
}

/// Whether every value of one type is, as it is, the same value of the other: a text, with a length or without, that becomes one without.
#[inline]
pub fn keeps_values(from: SqlType, to: SqlType) -> bool {
    let is_text = |oid| matches!(oid, oid::TEXT | oid::VARCHAR);
    to.modifier < 0 && is_text(from.oid) && is_text(to.oid)
}

/// Whether a text of this type becomes one without a length as it is: blanks at the end of char(n) do not count.
fn keeps_all(from: SqlType, text: &str) -> bool {
    from.oid != oid::BPCHAR || !text.ends_with(' ')
}

fn convert_plain(value: Datum, from: SqlType, to: SqlType, explicit: bool, c: &Conversion<'_>) -> Result<Datum> {
    use Datum as D;
    let text_target = matches!(to.oid, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR);
    let is_number = matches!(to.oid, oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC);
    let is_oid = matches!(to.oid, oid::OID | oid::XID | oid::CID) || super::aliases::is_alias(to.oid);
    if let Some(same) = same_bytes(&value, to.oid, is_oid) {
        return Ok(same);
    }
    Ok(match (&value, to.oid) {
        // For a name there is no such cast: it is made of the value's own text.
        (D::Bool(b), t) if text_target && t != oid::NAME => D::text(if *b { "true" } else { "false" }),
        (D::Bool(b), oid::INT4) => D::Int4(i32::from(*b)),
        (D::Int2(_) | D::Int4(_) | D::Int8(_) | D::Oid(_), oid::CHAR) => char_of(value.as_i64().unwrap_or(0))?,
        (D::Int2(_) | D::Int4(_) | D::Int8(_) | D::Oid(_), t) if is_number || is_oid || t == oid::BOOL => {
            int_to(value.as_i64().unwrap_or(0), t)?
        }
        (D::Float4(v), t) if is_number && t == oid::FLOAT8 => D::Float8(f64::from(*v)),
        (D::Float4(v), t) if is_number => float_to(f64::from(*v), true, t)?,
        (D::Float8(v), t) if is_number => float_to(*v, false, t)?,
        (D::Numeric(n), oid::FLOAT4 | oid::FLOAT8) => numeric_to_float(n, to.oid)?,
        (D::Numeric(n), t) if is_number => int_to(n.to_i64(facts(t).map_or("integer", |f| f.sql_name))?, t)?,
        (D::Text(s), oid::BPCHAR) => D::Bpchar(s.clone()),
        (D::Text(s) | D::Bpchar(s), oid::TEXT | oid::VARCHAR) if keeps_all(from, s) => D::Text(s.clone()),
        (D::Bpchar(s), _) if text_target && from.oid == oid::BPCHAR => {
            text::input(SqlType::new(to.oid), s.trim_end_matches(' '), c)?
        }
        (D::Bpchar(s), _) => text::input(SqlType::new(to.oid), s, c)?,
        (D::Json(s), oid::JSONB) => D::Jsonb(Arc::new(super::json::parse(s)?)),
        (D::Jsonb(j), oid::JSON) => D::Json(j.to_string().into()),
        (D::Jsonb(j), t) if is_number || t == oid::BOOL => return json_scalar(j, to, c),
        (_, oid::TIME | oid::TIMETZ) if !matches!(value, D::Text(_)) => return time_of(&value, to, c),
        (D::Time(t), oid::INTERVAL) => D::Interval(super::interval::Interval { months: 0, days: 0, micros: *t }),
        (D::Inet(v, _), oid::CIDR) => D::Inet(v.masked(false), true),
        (D::Inet(v, _), oid::INET) => D::Inet(*v, false),
        (D::Inet(v, _), t) if text_target && t != oid::NAME => text::input(SqlType::new(to.oid), &v.text(true), c)?,
        (D::Word(..), t) | (_, t @ oid::MONEY) if word::converts(&value, t) => word::convert(&value, t)?,
        (D::Row(_), oid::RECORD) => value,
        (D::Bits(_), oid::BIT | oid::VARBIT) => value,
        (D::Bits(_), oid::INT4 | oid::INT8) | (D::Int4(_) | D::Int8(_), oid::BIT) => bits_cast(&value, to)?,
        (D::Range(r), to) if to == r.kind.multirange => {
            D::Multirange(super::range::Multirange::of(r.kind, vec![(**r).clone()])?.into())
        }
        (D::Text(s), oid::INT4) if from.oid == oid::CHAR => D::Int4(i32::from(super::byte_char::byte(s) as i8)),
        (D::Date(d), oid::TIMESTAMP) => D::Timestamp(datetime::midnight(*d)?),
        (D::Date(d), oid::TIMESTAMPTZ) => {
            D::TimestampTz(datetime::local_to_utc(datetime::midnight(*d)?, &c.format.zone)?)
        }
        (D::Timestamp(t), oid::TIMESTAMPTZ) => D::TimestampTz(datetime::local_to_utc(*t, &c.format.zone)?),
        (D::TimestampTz(t), oid::TIMESTAMP) => D::Timestamp(datetime::utc_to_local(*t, &c.format.zone)),
        (D::Timestamp(t), oid::DATE) => D::Date(day_of(*t)),
        (D::TimestampTz(t), oid::DATE) => D::Date(day_of(datetime::utc_to_local(*t, &c.format.zone))),
        (D::Array(a), t) if element_of(t).is_some() => {
            let element = SqlType { oid: element_of(t).unwrap_or(0), modifier: to.modifier };
            let values: Result<Vec<D>> =
                a.values.iter().map(|v| convert(v.clone(), a.element.into(), element, explicit, c)).collect();
            D::Array(Array { element: element.oid, dims: a.dims.clone(), values: values? }.into())
        }
        (D::Text(s), _) => text::input(SqlType::new(to.oid), s, c)?,
        _ if text_target => {
            super::size::fits(&value)?;
            let shown = text::output(from, &value, c);
            text::input(SqlType::new(to.oid), &shown, c)?
        }
        _ => {
            let message =
                format!("cannot cast type {} to {}", format_type(from.oid.into()), format_type(to.oid.into()));
            return Err(SqlError::new(code::CANNOT_COERCE, message));
        }
    })
}

fn hstore_to_json(value: &super::hstore::Hstore, to: SqlType) -> Result<Datum> {
    let json = super::hstore::to_json(value, false)?;
    Ok(if to.oid == oid::JSON { Datum::Json(json.into()) } else { Datum::Jsonb(super::json::parse(&json)?.into()) })
}

/// An integer of four bytes or less as an oid, or an oid as an integer: they have the same bytes.
fn same_bytes(value: &Datum, to: Oid, is_oid: bool) -> Option<Datum> {
    match value {
        Datum::Oid(v) if is_oid => Some(Datum::Oid(*v)),
        Datum::Oid(v) if to == oid::INT4 => Some(Datum::Int4(*v as i32)),
        Datum::Int4(v) if is_oid => Some(Datum::Oid(*v as u32)),
        Datum::Int2(v) if is_oid => Some(Datum::Oid(i32::from(*v) as u32)),
        _ => None,
    }
}

/// A number as a "char".
fn char_of(v: i64) -> Result<Datum> {
    let range = || SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range");
    Ok(super::byte_char::of_byte(i8::try_from(v).map_err(|_| range())? as u8))
}

/// Between bit strings and numbers. Without a length a bit string has one bit.
fn bits_cast(value: &Datum, to: SqlType) -> Result<Datum> {
    let Datum::Bits(bits) = value else {
        let length = usize::try_from(to.modifier).unwrap_or(1).max(1);
        return Ok(Datum::Bits(super::bits::Bits::of_number(value.as_i64().unwrap_or(0), length)?.into()));
    };
    match to.oid {
        oid::INT4 => bits.number(32).map(|n| Datum::Int4(n as i32)).ok_or_else(|| out_of_range(to.oid)),
        _ => bits.number(64).map(Datum::Int8).ok_or_else(|| out_of_range(to.oid)),
    }
}

/// The time of day of a value.
fn time_of(value: &Datum, to: SqlType, c: &Conversion<'_>) -> Result<Datum> {
    use Datum as D;
    Ok(match (value, to.oid) {
        (D::Interval(i), oid::TIME) => D::Time(i.micros.rem_euclid(86_400_000_000)),
        (D::Time(t), oid::INTERVAL) => D::Interval(super::interval::Interval { months: 0, days: 0, micros: *t }),
        (D::Time(t), oid::TIMETZ) => {
            let today = datetime::utc_to_local(c.now, &c.format.zone).div_euclid(86_400_000_000) * 86_400_000_000;
            let utc = datetime::local_to_utc(today + t, &c.format.zone)?;
            D::TimeTz(*t, -(datetime::offset_at(utc, &c.format.zone) as i32))
        }
        (D::TimeTz(t, _), oid::TIME) => D::Time(*t),
        (D::Timestamp(t), oid::TIME) if infinite(*t) => D::Null,
        (D::TimestampTz(t), oid::TIME | oid::TIMETZ) if infinite(*t) => D::Null,
        (D::Timestamp(t), oid::TIME) => D::Time(t.rem_euclid(86_400_000_000)),
        (D::TimestampTz(t), oid::TIME) => {
            D::Time(datetime::utc_to_local(*t, &c.format.zone).rem_euclid(86_400_000_000))
        }
        (D::TimestampTz(t), oid::TIMETZ) => {
            let time = datetime::utc_to_local(*t, &c.format.zone).rem_euclid(86_400_000_000);
            D::TimeTz(time, -(datetime::offset_at(*t, &c.format.zone) as i32))
        }
        _ => {
            let message = format!("cannot cast to type {}", format_type(to.oid.into()));
            return Err(SqlError::new(code::CANNOT_COERCE, message));
        }
    })
}

fn infinite(t: i64) -> bool {
    matches!(t, i64::MAX | i64::MIN)
}

/// A number or boolean of a document that is nothing else.
fn json_scalar(json: &super::json::Json, to: SqlType, c: &Conversion<'_>) -> Result<Datum> {
    use super::json::Json;
    let name = facts(to.oid).map_or("", |f| f.sql_name);
    match json {
        Json::Number(n) if to.oid == oid::NUMERIC => Ok(Datum::numeric((**n).clone())),
        Json::Number(n) if to.oid != oid::BOOL => {
            convert_plain(Datum::numeric((**n).clone()), oid::NUMERIC.into(), to, true, c)
        }
        Json::Bool(b) if to.oid == oid::BOOL => Ok(Datum::Bool(*b)),
        other => {
            let kind = match other {
                Json::Null | Json::String(_) | Json::Bool(_) | Json::Moment(..) => other.type_name(),
                Json::Number(_) => "numeric",
                _ if other.is_scalar() => other.type_name(),
                Json::Array(_) => "array",
                Json::Object(_) => "object",
            };
            let message = format!("cannot cast jsonb {kind} to type {name}");
            Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn day_of(t: i64) -> i32 {
    match t {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        t => t.div_euclid(86_400_000_000) as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::characters;

    #[test]
    fn characters_are_counted_as_the_library_counts_them() {
        for text in ["", "a", "äö", "€uro", "\u{1f600}", &"é".repeat(500), &"x".repeat(1000), &"a€".repeat(300)]
        {
            assert_eq!(characters(text.as_bytes()), text.chars().count());
        }
    }
}
