//! The binary form of values on the wire, as PostgreSQL's send and recv functions have it (TYP-3).

use super::datum::{Array, Datum, Record};
use super::interval::Interval;
use super::numeric::Numeric;
use super::snapshot::Snapshot;
use super::{Oid, SqlType, cast, datetime, element_of, geometry, geometry_binary, hstore, oid, range};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, code};
use std::borrow::Cow;
use std::sync::Arc;

/// TYP-3
pub(super) fn bad() -> SqlError {
    SqlError::new(code::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

/// What is left of a binary form, and whether the bytes are stored ones.
pub(super) struct Reader<'a>(&'a [u8], bool);

impl<'a> Reader<'a> {
    pub(super) fn over(bytes: &'a [u8]) -> Self {
        Reader(bytes, false)
    }
    /// Whether the bytes are stored ones, by the type as it was then.
    pub(super) fn is_stored(&self) -> bool {
        self.1
    }
    /// The value of a field, read as these bytes are.
    pub(super) fn value(&self, ty: SqlType, bytes: &'a [u8]) -> Result<Datum> {
        clearway_base::stack::deeper(|| whole(ty, Reader(bytes, self.1)))
    }
    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }
    /// An error if something is left.
    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(bad()) }
    }
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or_else(bad)?;
        self.0 = tail;
        Ok(*head)
    }
    fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n).ok_or_else(bad)?;
        self.0 = tail;
        Ok(head)
    }
    /// Bytes with their length before them; none: NULL.
    pub(super) fn field(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            len => self.bytes(usize::try_from(len).map_err(|_| bad())?).map(Some),
        }
    }
    pub(super) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take()?))
    }
    pub(super) fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_be_bytes(self.take()?))
    }
    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }
    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take()?))
    }
}

pub(super) use crate::encoding::utf8;

/// Bytes to a value of `ty`.
pub fn input(ty: SqlType, bytes: &[u8]) -> Result<Datum> {
    whole(ty, Reader(bytes, false))
}

/// The same of bytes that are stored: a row may be older than the last columns of its type, which are null then.
///
/// # Errors
/// Those of `input`.
pub fn stored(ty: SqlType, bytes: &[u8]) -> Result<Datum> {
    whole(ty, Reader(bytes, true))
}

fn whole(ty: SqlType, mut r: Reader<'_>) -> Result<Datum> {
    let value = input_plain(ty.oid, &mut r)?;
    if !r.0.is_empty() {
        return Err(bad());
    }
    if ty.modifier < 0 { Ok(value) } else { cast::fit(value, ty, false) }
}

fn input_plain(ty: Oid, r: &mut Reader<'_>) -> Result<Datum> {
    Ok(match ty {
        oid::BOOL => Datum::Bool(r.take::<1>()?[0] != 0),
        oid::INT2 => Datum::Int2(i16::from_be_bytes(r.take()?)),
        oid::INT4 => Datum::Int4(r.i32()?),
        oid::INT8 => Datum::Int8(i64::from_be_bytes(r.take()?)),
        oid::OID | oid::XID | oid::CID => Datum::Oid(u32::from_be_bytes(r.take()?)),
        _ if super::aliases::is_alias(ty) => Datum::Oid(u32::from_be_bytes(r.take()?)),
        oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(r.take()?)),
        oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(r.take()?)),
        oid::CHAR => super::byte_char::of_byte(r.take::<1>()?[0]),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN | oid::REFCURSOR => {
            let text = utf8(r.bytes(r.0.len())?)?;
            if ty == oid::BPCHAR { Datum::Bpchar(text.into()) } else { Datum::text(text) }
        }
        oid::CITEXT => Datum::Citext(utf8(r.bytes(r.0.len())?)?.into()),
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => {
            let snapshot = Snapshot::receive(r.bytes(r.0.len())?);
            let bad = || SqlError::new("22P03", "invalid external pg_snapshot data");
            Datum::text(super::snapshot::text(&snapshot.ok_or_else(bad)?))
        }
        oid::HSTORE => Datum::Hstore(hstore::receive(r)?.into()),
        oid::BYTEA => Datum::Bytea(r.bytes(r.0.len())?.into()),
        _ if geometry::is_one(ty) => geometry_binary::input(ty, r)?,
        oid::PG_LSN => Datum::Lsn(u64::from_be_bytes(r.take()?)),
        _ if super::word::is_word(ty) => super::word::input(ty, r.bytes(r.0.len())?).ok_or_else(bad)?,
        oid::UUID | oid::INET | oid::CIDR | oid::TIME | oid::TIMETZ | oid::JSON | oid::JSONB | oid::JSONPATH => {
            input_other(ty, r)?
        }
        oid::DATE => Datum::Date(datetime::date_received(r.i32()?)?),
        oid::TIMESTAMP => Datum::Timestamp(datetime::received(i64::from_be_bytes(r.take()?))?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(datetime::received(i64::from_be_bytes(r.take()?))?),
        oid::INTERVAL => {
            let micros = i64::from_be_bytes(r.take()?);
            Datum::Interval(Interval { micros, days: r.i32()?, months: r.i32()? })
        }
        oid::NUMERIC => {
            let (count, weight) = (r.u16()?, r.u16()? as i16);
            let (sign, scale) = (r.u16()?, r.u16()?);
            let digits: Result<Vec<u16>> = (0..count).map(|_| r.u16()).collect();
            Datum::numeric(Numeric::from_wire(weight, sign, scale, &digits?).ok_or_else(bad)?)
        }
        oid::BIT | oid::VARBIT => {
            let length = usize::try_from(r.i32()?).map_err(|_| bad())?;
            let bits = super::bits::Bits::of_bytes(length, r.bytes(r.0.len())?);
            Datum::Bits(bits.ok_or_else(bad)?.into())
        }
        oid::VOID => Datum::Void,
        _ if super::user::is_composite(ty) => super::record::receive(ty, r)?,
        _ if range::of_range(ty).is_some() || range::of_multirange(ty).is_some() => input_range(ty, r)?,
        _ if super::user::is_enum(ty) => super::user::label(ty, utf8(r.bytes(r.0.len())?)?)?,
        _ if super::user::is_domain(ty) => {
            let base = super::user::base(ty.into());
            let value = input_plain(base.oid, r)?;
            let value = if base.modifier < 0 { value } else { cast::fit(value, base, false)? };
            super::user::check(ty, &value)?;
            value
        }
        _ => {
            let expected = match ty {
                oid::INT2VECTOR => Some(oid::INT2),
                oid::OIDVECTOR => Some(oid::OID),
                _ => element_of(ty),
            };
            Datum::Array(input_array(expected.ok_or_else(bad)?, r)?.into())
        }
    })
}

fn input_other(ty: Oid, r: &mut Reader<'_>) -> Result<Datum> {
    Ok(match ty {
        oid::UUID => Datum::Uuid(r.take()?),
        oid::INET | oid::CIDR => {
            let v = super::inet::Inet::of_wire(r.bytes(r.0.len())?).ok_or_else(bad)?;
            Datum::Inet(if ty == oid::CIDR { v.masked(false) } else { v }, ty == oid::CIDR)
        }
        oid::TIME => Datum::Time(super::time::checked(i64::from_be_bytes(r.take()?))?),
        oid::TIMETZ => {
            let time = super::time::checked(i64::from_be_bytes(r.take()?))?;
            Datum::TimeTz(time, super::time::checked_zone(r.i32()?)?)
        }
        oid::JSON => {
            let text = utf8(r.bytes(r.0.len())?)?;
            super::json::validate(text)?;
            Datum::Json(text.into())
        }
        oid::JSONB => {
            let [version] = r.take::<1>()?;
            if version != 1 {
                let message = format!("unsupported jsonb version number {version}");
                return Err(SqlError::new(code::INTERNAL_ERROR, message));
            }
            Datum::Jsonb(super::json::parse(utf8(r.bytes(r.0.len())?)?)?.into())
        }
        oid::JSONPATH => {
            let [version] = r.take::<1>()?;
            if version != 1 {
                let message = format!("unsupported jsonpath version number: {version}");
                return Err(SqlError::new(code::INTERNAL_ERROR, message));
            }
            Datum::JsonPath(super::jsonpath::parse(utf8(r.bytes(r.0.len())?)?)?.into())
        }
        _ => return Err(bad()),
    })
}

fn input_range(ty: Oid, r: &mut Reader<'_>) -> Result<Datum> {
    if let Some(kind) = range::of_range(ty) {
        return range::receive(kind, r).map(range::datum);
    }
    let kind = range::of_multirange(ty).ok_or_else(bad)?;
    Ok(Datum::Multirange(range::receive_multi(kind, r)?.into()))
}

fn input_array(expected: Oid, r: &mut Reader<'_>) -> Result<Array> {
    let (ndim, _has_null, element) = (r.i32()?, r.i32()?, r.i32()? as Oid);
    if !(0..=6).contains(&ndim) {
        return Err(bad());
    }
    if element != expected {
        return Err(SqlError::new(code::DATATYPE_MISMATCH, "wrong element type"));
    }
    let mut count: usize = if ndim == 0 { 0 } else { 1 };
    let mut dims = Vec::new();
    for _ in 0..ndim {
        let (len, low) = (r.i32()?, r.i32()?);
        let len_u = usize::try_from(len).map_err(|_| bad())?;
        low.checked_add(len).ok_or_else(bad)?;
        count = count.checked_mul(len_u).filter(|n| *n <= r.0.len() / 4).ok_or_else(bad)?;
        dims.push((len, low));
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let len = r.i32()?;
        if len == -1 {
            values.push(Datum::Null);
            continue;
        }
        let mut inner = Reader(r.bytes(usize::try_from(len).map_err(|_| bad())?)?, r.1);
        values.push(input_plain(element, &mut inner)?);
        if !inner.0.is_empty() {
            return Err(bad());
        }
    }
    if values.is_empty() {
        dims.clear();
    }
    Ok(Array { element, dims, values })
}

/// The binary form of a type of texts with its text in UTF-8, from a client of another encoding; none: the bytes are the same.
///
/// # Errors
/// 22021, 22P05.
pub fn decoded(ty: Oid, bytes: &[u8], encoding: Encoding) -> Result<Option<Vec<u8>>> {
    let is_text = matches!(
        ty,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN | oid::REFCURSOR | oid::CITEXT | oid::JSON
    );
    if bytes.is_ascii() || !(is_text || matches!(ty, oid::JSONB | oid::JSONPATH) || super::user::is_enum(ty)) {
        return Ok(None);
    }
    let version = usize::from(matches!(ty, oid::JSONB | oid::JSONPATH));
    let (version, text) = bytes.split_at(version.min(bytes.len()));
    let text = encoding.decode(text)?;
    Ok(Some([version, text.as_bytes()].concat()))
}

/// A value whose texts are already in the bytes of another encoding, for `output`.
///
/// # Errors
/// 22P05.
pub fn encoded(value: &Datum, encoding: Encoding) -> Result<Cow<'_, Datum>> {
    let bytes = |text: &str| Ok::<_, SqlError>(Datum::Bytea(encoding.encode(text)?.into_owned().into()));
    let versioned = |text: &str| {
        let mut bytes = vec![1];
        bytes.extend_from_slice(&encoding.encode(text)?);
        Ok::<_, SqlError>(Datum::Bytea(bytes.into()))
    };
    let all = |values: &[Datum]| {
        values.iter().map(|v| encoded(v, encoding).map(Cow::into_owned)).collect::<Result<Vec<Datum>>>()
    };
    Ok(Cow::Owned(match value {
        Datum::Text(s) | Datum::Bpchar(s) | Datum::Json(s) | Datum::Citext(s) if !s.is_ascii() => bytes(s)?,
        Datum::Enum(e) if !e.text.is_ascii() => bytes(&e.text)?,
        Datum::Jsonb(j) => versioned(&j.to_string())?,
        Datum::JsonPath(p) => versioned(&p.to_string())?,
        Datum::Array(a) => Datum::Array(Arc::new(Array { values: all(&a.values)?, ..Array::clone(a) })),
        Datum::Row(row) => Datum::Row(Arc::new(Record { values: all(&row.values)?, ..Record::clone(row) })),
        _ => return Ok(Cow::Borrowed(value)),
    }))
}

/// A value of `ty` to bytes, behind what `out` holds; NULL is the caller's.
pub fn output(ty: SqlType, value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null | Datum::Void => {}
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Int2(v) => out.extend(v.to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend(v.to_be_bytes()),
        Datum::Int8(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => out.extend(v.to_be_bytes()),
        Datum::Oid(v) => out.extend(v.to_be_bytes()),
        Datum::Float4(v) => out.extend(v.to_be_bytes()),
        Datum::Float8(v) => out.extend(v.to_be_bytes()),
        Datum::Text(s) if ty.oid == oid::CHAR => out.push(super::byte_char::byte(s)),
        Datum::Text(s) if matches!(ty.oid, oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT) => super::snapshot::send(s, out),
        Datum::Text(s) | Datum::Bpchar(s) | Datum::Json(s) | Datum::Citext(s) => out.extend(s.as_bytes()),
        Datum::Hstore(h) => hstore::send(h, out),
        Datum::Geometry(g) => geometry_binary::output(g, out),
        Datum::Uuid(u) => out.extend(u),
        Datum::Lsn(v) => out.extend(v.to_be_bytes()),
        Datum::Word(v, ty) => super::word::output(*v, *ty, out),
        Datum::Time(t) => out.extend(t.to_be_bytes()),
        Datum::TimeTz(t, west) => {
            out.extend(t.to_be_bytes());
            out.extend(west.to_be_bytes());
        }
        Datum::Jsonb(j) => versioned(&j.to_string(), out),
        Datum::JsonPath(p) => versioned(&p.to_string(), out),
        Datum::Enum(e) => out.extend(e.text.as_bytes()),
        Datum::Inet(v, cidr) => v.wire(*cidr, out),
        Datum::Bits(b) => {
            out.extend((b.len() as i32).to_be_bytes());
            out.extend(b.bytes());
        }
        Datum::Range(r) => range::send(r, out),
        Datum::Multirange(m) => range::send_multi(m, out),
        Datum::Bytea(b) => out.extend(b.iter()),
        Datum::Interval(i) => {
            out.extend(i.micros.to_be_bytes());
            out.extend(i.days.to_be_bytes());
            out.extend(i.months.to_be_bytes());
        }
        Datum::Numeric(n) => {
            let (weight, sign, scale, digits) = n.to_wire();
            for field in [digits.len() as u16, weight as u16, sign, scale] {
                out.extend(field.to_be_bytes());
            }
            digits.iter().for_each(|d| out.extend(d.to_be_bytes()));
        }
        Datum::Array(a) => {
            let element = SqlType { oid: a.element, modifier: ty.modifier };
            out.extend((a.dims.len() as i32).to_be_bytes());
            out.extend(i32::from(a.values.iter().any(Datum::is_null)).to_be_bytes());
            out.extend(a.element.to_be_bytes());
            for (len, low) in &a.dims {
                out.extend(len.to_be_bytes());
                out.extend(low.to_be_bytes());
            }
            a.values.iter().for_each(|v| field(element, v, out));
        }
        Datum::Row(row) => {
            out.extend((row.values.len() as i32).to_be_bytes());
            for (value, ty) in row.values.iter().zip(&row.shape.types) {
                out.extend(ty.oid.to_be_bytes());
                field(*ty, value, out);
            }
        }
    }
}

/// A text behind the version of its form.
fn versioned(text: &str, out: &mut Vec<u8>) {
    out.push(1);
    out.extend(text.as_bytes());
}

/// A value with its length before it.
pub(super) fn field(ty: SqlType, value: &Datum, out: &mut Vec<u8>) {
    if value.is_null() {
        return out.extend((-1i32).to_be_bytes());
    }
    let at = out.len();
    out.extend([0; 4]);
    output(ty, value, out);
    let len = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client's moments and dates are PostgreSQL's or an infinity.
    #[test]
    fn moments_and_dates_beyond_the_range_are_refused() {
        let moment = |ty: Oid, t: i64| {
            input(ty.into(), &t.to_be_bytes()).map_err(|e| (e.code().to_owned(), e.message().to_owned()))
        };
        let first = -211_813_488_000_000_000;
        for ty in [oid::TIMESTAMP, oid::TIMESTAMPTZ] {
            for good in [i64::MIN, first, 0, 9_223_371_331_199_999_999, i64::MAX] {
                assert!(moment(ty, good).is_ok(), "{good}");
            }
            for bad in [i64::MIN + 1, first - 1, 9_223_371_331_200_000_000, i64::MAX - 1] {
                let (code, message) = moment(ty, bad).expect_err("beyond the range");
                assert_eq!((&code[..], &message[..]), ("22008", "timestamp out of range"), "{bad}");
            }
        }
        let date = |days: i32| {
            input(oid::DATE.into(), &days.to_be_bytes()).map_err(|e| (e.code().to_owned(), e.message().to_owned()))
        };
        for good in [i32::MIN, -2_451_545, 0, 2_145_031_948, i32::MAX] {
            assert!(date(good).is_ok(), "{good}");
        }
        for bad in [i32::MIN + 1, -2_451_546, 2_145_031_949, i32::MAX - 1] {
            let (code, message) = date(bad).expect_err("beyond the range");
            assert_eq!((&code[..], &message[..]), ("22008", "date out of range"), "{bad}");
        }
    }
}
