//! Functions on bytea and uuid, and cryptographic digests.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use super::text_functions::{overlaid_to, too_large};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, code};
use crate::types::hex::hex;
use crate::types::{Datum, oid};
use clearway_base::{breath, memory};
use sha2::Digest;

use oid::{BYTEA, INT4, INT8, TEXT, UUID};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "gen_random_uuid"() UUID volatile random_uuid;
    "encode"(BYTEA, TEXT) TEXT strict encode; "decode"(TEXT, TEXT) BYTEA strict decode;
    "sha224"(BYTEA) BYTEA strict |a, _| digest::<sha2::Sha224>(a); "sha256"(BYTEA) BYTEA strict |a, _| digest::<sha2::Sha256>(a);
    "sha384"(BYTEA) BYTEA strict |a, _| digest::<sha2::Sha384>(a); "sha512"(BYTEA) BYTEA strict |a, _| digest::<sha2::Sha512>(a);
    "md5"(BYTEA) TEXT strict |a, _| Ok(Datum::text(hex(&sum::<md5::Md5>(bytes(a, 0))?)));
    "get_byte"(BYTEA, INT4) INT4 strict get_byte; "set_byte"(BYTEA, INT4, INT4) BYTEA strict set_byte;
    "get_bit"(BYTEA, INT8) INT4 strict get_bit; "set_bit"(BYTEA, INT8, INT4) BYTEA strict set_bit;
    "bit_count"(BYTEA) INT8 strict |a, _| Ok(Datum::Int8(bytes(a, 0).iter().map(|b| i64::from(b.count_ones())).sum()));
    "bit_length"(BYTEA) INT4 strict |a, _| Ok(Datum::Int4(8 * bytes(a, 0).len() as i32));
    "bit_length"(TEXT) INT4 strict |a, _| Ok(Datum::Int4(8 * s(a, 0).len() as i32));
    "length"(BYTEA, TEXT) INT4 strict length;
    "convert_from"(BYTEA, TEXT) TEXT strict convert_from;
    "convert_to"(TEXT, TEXT) BYTEA strict convert_to;
    "convert"(BYTEA, TEXT, TEXT) BYTEA strict convert;
    "position"(BYTEA, BYTEA) INT4 strict position;
    "substring"(BYTEA, INT4) BYTEA strict substring; "substring"(BYTEA, INT4, INT4) BYTEA strict substring;
    "substr"(BYTEA, INT4) BYTEA strict substring; "substr"(BYTEA, INT4, INT4) BYTEA strict substring;
    "overlay"(BYTEA, BYTEA, INT4) BYTEA strict overlay; "overlay"(BYTEA, BYTEA, INT4, INT4) BYTEA strict overlay;
    "btrim"(BYTEA, BYTEA) BYTEA strict |a, _| Ok(trimmed(a, true, true));
    "ltrim"(BYTEA, BYTEA) BYTEA strict |a, _| Ok(trimmed(a, true, false));
    "rtrim"(BYTEA, BYTEA) BYTEA strict |a, _| Ok(trimmed(a, false, true));
};

fn bytes(a: &[Datum], n: usize) -> &[u8] {
    match a.get(n) {
        Some(Datum::Bytea(b)) => b,
        _ => &[],
    }
}

fn bytea(out: impl Into<std::sync::Arc<[u8]>>) -> Result<Datum> {
    Ok(Datum::Bytea(out.into()))
}

fn random_uuid(_: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| SqlError::internal("could not generate random values"))?;
    Ok(Datum::Uuid(crate::types::uuid::random(bytes)))
}

fn sum<D: Digest>(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut digest = D::new();
    for piece in bytes.chunks(1 << 13) {
        breath::step_bytes(2 * piece.len())?;
        digest.update(piece);
    }
    Ok(digest.finalize().to_vec())
}

fn digest<D: Digest>(a: &[Datum]) -> Result<Datum> {
    bytea(sum::<D>(bytes(a, 0))?)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn unknown_encoding(name: &str) -> SqlError {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let data = bytes(a, 0);
    memory::claim(4 * data.len())?;
    breath::step_bytes(8 * data.len())?;
    Ok(Datum::text(match s(a, 1).to_ascii_lowercase().as_str() {
        "hex" => hex(data),
        "base64" => base64(data),
        "escape" => {
            let mut out = String::with_capacity(data.len());
            for b in data {
                match b {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => out.push_str(&format!("\\{b:03o}")),
                    b => out.push(char::from(*b)),
                }
            }
            out
        }
        _ => return Err(unknown_encoding(s(a, 1))),
    }))
}

/// With a line break behind each 76 characters, as in PostgreSQL.
fn base64(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len() * 4 / 3 + 4);
    let mut column = 0;
    for group in data.chunks(3) {
        let n = group.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        if column == 76 {
            out.push('\n');
            column = 0;
        }
        for i in 0..4 {
            let digit = BASE64[(n >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
        column += 4;
    }
    out
}

fn decode(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let text = s(a, 0);
    memory::claim(2 * text.len())?;
    breath::step_bytes(8 * text.len())?;
    bytea(match s(a, 1).to_ascii_lowercase().as_str() {
        "hex" => from_hex(text)?,
        "base64" => from_base64(text)?,
        "escape" => crate::types::text::escaped_bytes(text)?,
        _ => return Err(unknown_encoding(s(a, 1))),
    })
}

/// Hexadecimal digits by twos, with blanks between them.
fn from_hex(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for c in text.chars() {
        if matches!(c, ' ' | '\n' | '\t' | '\r') && high.is_none() {
            continue;
        }
        let digit = c.to_digit(16).ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{c}\"")))?;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push((high << 4 | digit) as u8),
        }
    }
    if high.is_some() {
        return Err(invalid("invalid hexadecimal data: odd number of digits"));
    }
    Ok(out)
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut group, mut digits, mut padding) = (0u32, 0, 0);
    for c in text.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        let value = if c == '=' {
            if digits < 2 || padding == 0 && !(2..=3).contains(&digits) {
                return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
            }
            padding += 1;
            0
        } else {
            if padding > 0 {
                return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
            }
            let found = BASE64.iter().position(|b| char::from(*b) == c);
            found.ok_or_else(|| invalid(format!("invalid symbol \"{c}\" found while decoding base64 sequence")))? as u32
        };
        group = group << 6 | value;
        digits += 1;
        if digits == 4 {
            let bytes = group.to_be_bytes();
            out.extend(&bytes[1..4 - padding]);
            (group, digits, padding) = (0, 0, 0);
        }
    }
    if digits != 0 {
        let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
        return Err(invalid("invalid base64 end sequence").hint(hint));
    }
    Ok(out)
}

fn out_of_range(n: i64, len: i64) -> SqlError {
    SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, format!("index {n} out of valid range, 0..{}", len - 1))
}

fn place(a: &[Datum], units: i64) -> Result<usize> {
    let (n, len) = (i(a, 1), bytes(a, 0).len() as i64 * units);
    if (0..len).contains(&n) { Ok(n as usize) } else { Err(out_of_range(n, len)) }
}

fn get_byte(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(i32::from(bytes(a, 0)[place(a, 1)?])))
}

fn set_byte(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let at = place(a, 1)?;
    let mut out = bytes(a, 0).to_vec();
    out[at] = i(a, 2) as u8;
    bytea(out)
}

fn get_bit(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let at = place(a, 8)?;
    Ok(Datum::Int4(i32::from(bytes(a, 0)[at / 8] >> (at % 8) & 1)))
}

fn set_bit(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let at = place(a, 8)?;
    let mut out = bytes(a, 0).to_vec();
    match i(a, 2) {
        0 => out[at / 8] &= !(1 << (at % 8)),
        1 => out[at / 8] |= 1 << (at % 8),
        _ => return Err(invalid("new bit must be 0 or 1")),
    }
    bytea(out)
}

/// The encoding that an argument names; `what` of a name it is.
fn named(a: &[Datum], n: usize, what: &str) -> Result<Encoding> {
    Encoding::find(s(a, n)).ok_or_else(|| invalid(format!("invalid {what} name \"{}\"", s(a, n))))
}

fn length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let text = named(a, 1, "encoding")?.decode(bytes(a, 0))?;
    Ok(Datum::Int4(text.chars().count() as i32))
}

fn convert_from(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::text(named(a, 1, "source encoding")?.decode(bytes(a, 0))?))
}

fn convert_to(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    bytea(named(a, 1, "destination encoding")?.encode(s(a, 0))?)
}

fn convert(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (from, to) = (named(a, 1, "source encoding")?, named(a, 2, "destination encoding")?);
    if !from.has_conversion_to(to) {
        let (from, to) = (from.name(), to.name());
        let message = format!("default conversion function for encoding \"{from}\" to \"{to}\" does not exist");
        return Err(SqlError::new(code::UNDEFINED_FUNCTION, message));
    }
    bytea(to.encode(&from.decode(bytes(a, 0))?)?)
}

fn position(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (hay, needle) = (bytes(a, 0), bytes(a, 1));
    if needle.is_empty() {
        return Ok(Datum::Int4(1));
    }
    let mut found = 0;
    for (at, window) in hay.windows(needle.len()).enumerate() {
        breath::step(4)?;
        if window == needle {
            found = at + 1;
            break;
        }
    }
    Ok(Datum::Int4(found as i32))
}

/// The bytes from `start` (from 1) on, `length` of them.
fn piece(data: &[u8], start: i64, length: Option<i64>) -> Result<&[u8]> {
    if length.is_some_and(|l| l < 0) {
        return Err(SqlError::new(code::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let clamp = |at: i64| at.clamp(0, data.len() as i64) as usize;
    let end = length.map_or(i64::MAX, |l| start.saturating_add(l));
    let (from, to) = (clamp(start - 1), clamp(end.saturating_sub(1)));
    Ok(&data[from..to.max(from)])
}

fn substring(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    bytea(piece(bytes(a, 0), i(a, 1), a.get(2).map(|_| i(a, 2)))?)
}

fn overlay(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (data, new, start) = (bytes(a, 0), bytes(a, 1), i(a, 2));
    if start <= 0 {
        return Err(SqlError::new(code::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let length = a.get(3).map_or(new.len() as i64, |_| i(a, 3));
    if data.len() + new.len() > 256 << 20 {
        return Err(too_large());
    }
    let before = piece(data, 1, Some(start - 1))?;
    let behind = piece(data, overlaid_to(start, length)?, None)?;
    bytea([before, new, behind].concat())
}

fn trimmed(a: &[Datum], start: bool, end: bool) -> Datum {
    let (mut data, set) = (bytes(a, 0), bytes(a, 1));
    while let Some((first, rest)) = data.split_first().filter(|(b, _)| start && set.contains(b)) {
        let _ = first;
        data = rest;
    }
    while let Some((last, rest)) = data.split_last().filter(|(b, _)| end && set.contains(b)) {
        let _ = last;
        data = rest;
    }
    Datum::Bytea(data.into())
}
