//! Parameters of the extended protocol and of function calls, from the bytes that a client sent.

use super::run;
use super::session::{Bind, Prepared};
use crate::context::core::Core;
use crate::error::Result;
use crate::types::datetime::received;
use crate::types::{Datum, Oid, oid, text};

impl Prepared {
    /// Whether a Bind has as many parameters as the statement, and forms for as many columns.
    pub(super) fn takes(&self, bind: &Bind<'_>) -> bool {
        let columns = self.columns.as_ref().map_or(0, Vec::len);
        bind.values.len() == self.types.len() && (bind.result_formats.len() < 2 || bind.result_formats.len() == columns)
    }

    /// Appends the values of a Bind's parameters; false: one needs a second look.
    pub(super) fn plain_parameters(&self, core: &Core, bind: &Bind<'_>, params: &mut Vec<Datum>) -> bool {
        for (i, ty) in self.types.iter().enumerate() {
            let Some(value) = bind.values.get(i) else { return false };
            let is_binary = run::format_of(bind.formats, i);
            let Some(read) = plain_parameter(*value, *ty, is_binary) else { return false };
            // In the binary form a text still has the client's encoding, which may make other characters of the same bytes.
            let has_encoding = is_binary && matches!(read, Datum::Text(_)) && !value.is_some_and(<[u8]>::is_ascii);
            if has_encoding && core.settings.lock().format.encoding.differs() {
                return false;
            }
            params.push(read);
        }
        true
    }
}

/// A parameter of a type whose form depends on no setting, in a form that needs no second look; none: see `parameter`.
fn plain_parameter(value: Option<&[u8]>, ty: Oid, is_binary: bool) -> Option<Datum> {
    let Some(bytes) = value else { return Some(Datum::Null) };
    match (ty, is_binary) {
        (oid::INT2, true) => Some(Datum::Int2(i16::from_be_bytes(bytes.try_into().ok()?))),
        (oid::INT4, true) => Some(Datum::Int4(i32::from_be_bytes(bytes.try_into().ok()?))),
        (oid::INT8, true) => Some(Datum::Int8(i64::from_be_bytes(bytes.try_into().ok()?))),
        (oid::INT2, false) => i16::try_from(plain_integer(bytes)?).ok().map(Datum::Int2),
        (oid::INT4, false) => i32::try_from(plain_integer(bytes)?).ok().map(Datum::Int4),
        (oid::INT8, false) => plain_integer(bytes).map(Datum::Int8),
        (oid::TEXT | oid::VARCHAR, _) if !bytes.contains(&0) => std::str::from_utf8(bytes).ok().map(Datum::text),
        (oid::BYTEA, true) => Some(Datum::Bytea(bytes.into())),
        (oid::FLOAT8, true) => Some(Datum::Float8(f64::from_be_bytes(bytes.try_into().ok()?))),
        (oid::TIMESTAMP, true) => moment(bytes).map(Datum::Timestamp),
        (oid::TIMESTAMPTZ, true) => moment(bytes).map(Datum::TimestampTz),
        _ => None,
    }
}

fn moment(bytes: &[u8]) -> Option<i64> {
    received(i64::from_be_bytes(bytes.try_into().ok()?)).ok()
}

/// An integer of up to eighteen digits, with or without a minus.
fn plain_integer(bytes: &[u8]) -> Option<i64> {
    let (digits, negative) = match bytes.split_first()? {
        (b'-', rest) => (rest, true),
        _ => (bytes, false),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |n, digit| n * 10 + i64::from(digit - b'0'));
    Some(if negative { -value } else { value })
}

/// Parameters of these types, in any form.
pub(super) fn parameters_of(
    core: &Core,
    values: &[Option<&[u8]>],
    formats: &[i16],
    types: &[Oid],
) -> Result<Vec<Datum>> {
    let catalog = core.catalog();
    let names = core.names(&catalog);
    let format = core.settings.lock().format.clone();
    let conversion = text::Conversion { format: &format, now: core.transaction_started(), names: &names };
    let values = values.iter().zip(types).enumerate();
    values.map(|(i, (value, ty))| parameter(*value, *ty, run::format_of(formats, i), &conversion)).collect()
}

fn parameter(value: Option<&[u8]>, ty: Oid, is_binary: bool, conversion: &text::Conversion<'_>) -> Result<Datum> {
    let Some(bytes) = value else { return Ok(Datum::Null) };
    let encoding = conversion.format.encoding;
    let decoded =
        if is_binary && encoding.differs() { crate::types::binary::decoded(ty, bytes, encoding)? } else { None };
    let bytes = decoded.as_deref().unwrap_or(bytes);
    if is_binary {
        return crate::types::binary::input(ty.into(), bytes);
    }
    text::input(ty.into(), crate::encoding::utf8(bytes)?, conversion)
}
