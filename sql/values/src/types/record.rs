//! Rows of composite types: writes and reads the text form `(1,"a b",)`, and reads the binary form.

use super::array::is_blank;
use super::binary::Reader;
use super::datum::{Datum, Record};
use super::text::{self, Conversion};
use super::{Oid, SqlType, format_type, user};
use crate::error::{Result, SqlError, code};

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("malformed record literal: \"{text}\"")).detail(detail)
}

/// NULL as a value of a type: a domain may refuse it.
pub(super) fn null_of(ty: SqlType) -> Result<Datum> {
    if user::is_domain(ty.oid) {
        user::check(ty.oid, &Datum::Null)?;
    }
    Ok(Datum::Null)
}

/// Reads a row of a composite type.
///
/// # Errors
/// 22P02, and those of the fields.
pub(super) fn parse(ty: Oid, text: &str, c: &Conversion<'_>) -> Result<Datum> {
    let shape = user::shape(ty).ok_or_else(|| SqlError::internal("a composite type without a shape"))?;
    let mut rest = text.trim_start_matches(is_blank);
    rest = rest.strip_prefix('(').ok_or_else(|| malformed(text, "Missing left parenthesis."))?;
    let mut values = Vec::with_capacity(shape.types.len());
    for (i, field) in shape.types.iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed(text, "Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            values.push(null_of(*field)?);
            continue;
        }
        let (value, after) = field_text(text, rest)?;
        values.push(text::input(*field, &value, c)?);
        rest = after;
    }
    rest = rest.strip_prefix(')').ok_or_else(|| malformed(text, "Too many columns."))?;
    if !rest.trim_start_matches(is_blank).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(Datum::Row(Record::new(shape, values)?.into()))
}

/// The text of the field that begins here, and what stands behind it.
fn field_text<'a>(whole: &str, from: &'a str) -> Result<(String, &'a str)> {
    let end = || malformed(whole, "Unexpected end of input.");
    let (mut out, mut quoted) = (String::new(), false);
    let mut chars = from.char_indices().peekable();
    loop {
        let (at, c) = *chars.peek().ok_or_else(end)?;
        if !quoted && matches!(c, ',' | ')') {
            return Ok((out, &from[at..]));
        }
        chars.next();
        match c {
            '\\' => out.push(chars.next().ok_or_else(end)?.1),
            '"' if !quoted => quoted = true,
            '"' if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = false,
            c => out.push(c),
        }
    }
}

/// Reads the binary form.
///
/// # Errors
/// 42804 for other fields than the type has, and those of the fields.
pub(super) fn receive(ty: Oid, r: &mut Reader<'_>) -> Result<Datum> {
    let shape = user::shape(ty).ok_or_else(|| SqlError::internal("a composite type without a shape"))?;
    let count = r.i32()?;
    let (given, all) = (usize::try_from(count).ok(), shape.types.len());
    let is_older = r.is_stored() && given.is_some_and(|given| given < all);
    if given != Some(all) && !is_older {
        let message = format!("wrong number of columns: {count}, expected {}", shape.types.len());
        return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
    }
    let mut values = Vec::with_capacity(shape.types.len());
    for (i, field) in shape.types.iter().enumerate().take(given.unwrap_or(0)) {
        let given = r.i32()? as Oid;
        if given != field.oid {
            let named = |oid: Oid| format!("{oid} ({})", format_type(oid.into()));
            let (given, wanted, i) = (named(given), named(field.oid), i + 1);
            let message = format!("binary data has type {given} instead of expected {wanted} in record column {i}");
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        }
        values.push(match r.field()? {
            None => null_of(*field)?,
            Some(bytes) => r.value(*field, bytes)?,
        });
    }
    values.resize(all, Datum::Null);
    Ok(Datum::Row(Record::new(shape, values)?.into()))
}
