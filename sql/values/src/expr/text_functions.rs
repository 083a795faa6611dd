//! Functions on text.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use super::long_text;
use super::{operators, pattern};
use crate::error::{Result, SqlError, code};
use crate::types::hex::hex;
use crate::types::{Datum, SqlType, oid, text};
use clearway_base::breath;
use clearway_base::memory::claim;
use md5::Digest;
use std::collections::{HashMap, HashSet};

use oid::{BOOL, TEXT};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "^@"(TEXT, TEXT) BOOL strict starts_with;
};

/// The longest text that a function may make, in bytes.
pub(super) const RESULT_BYTES_MAX: usize = 256 << 20;

fn text(out: impl Into<std::sync::Arc<str>>) -> Result<Datum> {
    Ok(Datum::text(out))
}

pub(super) fn too_large() -> SqlError {
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

pub fn length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(long_text::count(s(a, 0))? as i32))
}

/// Blanks at the end of char(n) do not count.
pub fn bpchar_length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(long_text::count(s(a, 0).trim_end_matches(' '))? as i32))
}

pub fn octet_length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(match &a[0] {
        Datum::Bytea(b) => b.len() as i32,
        _ => s(a, 0).len() as i32,
    }))
}

/// C.UTF-8 folds ASCII and, through the C library, other letters one to one.
fn fold(s: &str, f: impl Fn(char) -> Option<char>) -> Result<String> {
    long_text::map(s, |c| Some(f(c).unwrap_or(c)))
}

fn one(mut it: impl Iterator<Item = char>) -> Option<char> {
    let c = it.next();
    if it.next().is_some() { None } else { c }
}

pub fn lower(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(long_text::map(s(a, 0), |c| Some(clearway_base::fold::lower(c)))?)
}

pub fn upper(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(fold(s(a, 0), |c| one(c.to_uppercase()))?)
}

pub fn initcap(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut inside = false;
    text(long_text::map(s(a, 0), |c| {
        let mapped = if inside { one(c.to_lowercase()) } else { one(c.to_uppercase()) };
        inside = c.is_alphanumeric();
        Some(mapped.unwrap_or(c))
    })?)
}

pub fn substring(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let start = i(a, 1);
    let end = match a.get(2) {
        None => i64::MAX,
        Some(_) if i(a, 2) < 0 => {
            return Err(SqlError::new(code::SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(_) => start.saturating_add(i(a, 2)),
    };
    let skip = (start - 1).max(0) as usize;
    let take = end.saturating_sub(start.max(1)).max(0) as usize;
    let rest = &s(a, 0)[long_text::offset(s(a, 0), skip)?..];
    text(&rest[..long_text::offset(rest, take)?])
}

pub fn substring_regex(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let re = pattern::compile(s(a, 1), super::are::Options::default())?;
    Ok(re.substring(s(a, 0))?.map_or(Datum::Null, Datum::text))
}

/// Where the part of an overlaid value ends that stays: PostgreSQL adds in four bytes.
pub(super) fn overlaid_to(start: i64, length: i64) -> Result<i64> {
    let end = i32::try_from(start.saturating_add(length));
    end.map(i64::from).map_err(|_| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
}

/// `overlay(text placing new from start for length)`; without a length that of the new text.
pub fn overlay(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let start = i(a, 2);
    if start <= 0 {
        return Err(SqlError::new(code::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let length = match a.get(3) {
        Some(_) => i(a, 3),
        None => long_text::count(s(a, 1))? as i64,
    };
    let before = &s(a, 0)[..long_text::offset(s(a, 0), start as usize - 1)?];
    let behind = substring(&[a[0].clone(), Datum::Int8(overlaid_to(start, length)?)], e)?;
    claim(2 * (before.len() + s(a, 1).len() + behind.heap_bytes()))?;
    text([before, s(a, 1), behind.as_str().unwrap_or("")].concat())
}

/// How many characters `n` keeps of `len`: a negative one counts from the other end.
fn kept(n: i64, len: usize) -> usize {
    if n >= 0 { (n as usize).min(len) } else { len.saturating_sub(n.unsigned_abs() as usize) }
}

pub fn left(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = if i(a, 1) >= 0 { i(a, 1) as usize } else { kept(i(a, 1), long_text::count(s(a, 0))?) };
    text(&s(a, 0)[..long_text::offset(s(a, 0), n)?])
}

pub fn right(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let len = long_text::count(s(a, 0))?;
    text(&s(a, 0)[long_text::offset(s(a, 0), len - kept(i(a, 1), len))?..])
}

/// The text without the characters of the set, or blanks, at its ends.
fn trimmed(a: &[Datum], start: bool, end: bool) -> Result<Datum> {
    let set: HashSet<char> = if a.len() > 1 { s(a, 1).chars().collect() } else { HashSet::from([' ']) };
    let mut rest = s(a, 0);
    if start {
        while let Some(c) = rest.chars().next().filter(|c| set.contains(c)) {
            breath::step(16)?;
            rest = &rest[c.len_utf8()..];
        }
    }
    if end {
        while let Some(c) = rest.chars().next_back().filter(|c| set.contains(c)) {
            breath::step(16)?;
            rest = &rest[..rest.len() - c.len_utf8()];
        }
    }
    text(rest)
}

pub fn btrim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    trimmed(a, true, true)
}

pub fn ltrim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    trimmed(a, true, false)
}

pub fn rtrim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    trimmed(a, false, true)
}

pub fn position(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (hay, needle) = (s(a, 0), s(a, 1));
    if needle.is_empty() {
        return Ok(Datum::Int4(1));
    }
    Ok(Datum::Int4(match long_text::find(hay, needle, 0)? {
        Some(at) => long_text::count(&hay[..at])? as i32 + 1,
        None => 0,
    }))
}

pub fn repeat(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = i(a, 1).max(0) as usize;
    if s(a, 0).len().saturating_mul(n) > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    claim(2 * s(a, 0).len() * n)?;
    let (mut out, mut left) = (String::with_capacity(s(a, 0).len() * n), n);
    // Short texts are put together to longer ones before they are copied piece by piece.
    let unit = s(a, 0).repeat(n.min((1 << 14) / s(a, 0).len().max(1)).max(1));
    let times = unit.len() / s(a, 0).len().max(1);
    while left > 0 && !unit.is_empty() {
        let take = times.min(left);
        breath::append_text(&mut out, &unit[..take * s(a, 0).len()])?;
        left -= take;
    }
    text(out)
}

pub fn reverse(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (whole, mut out) = (s(a, 0), String::with_capacity(s(a, 0).len()));
    let mut end = whole.len();
    while end > 0 {
        let from = whole.floor_char_boundary(end.saturating_sub(1 << 14));
        breath::step_bytes(4 * (end - from))?;
        out.extend(whole[from..end].chars().rev());
        end = from;
    }
    text(out)
}

pub fn replace(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if s(a, 1).is_empty() {
        return Ok(a[0].clone());
    }
    text(long_text::replace(s(a, 0), s(a, 1), s(a, 2), RESULT_BYTES_MAX)?.ok_or_else(too_large)?)
}

pub fn translate(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut to = s(a, 2).chars();
    let mut places: HashMap<char, Option<char>> = HashMap::new();
    for from in s(a, 1).chars() {
        breath::step(64)?;
        let target = to.next();
        places.entry(from).or_insert(target);
    }
    text(long_text::map(s(a, 0), |c| places.get(&c).copied().unwrap_or(Some(c)))?)
}

/// The text cut to a length, and what fills it up.
fn pad(a: &[Datum]) -> Result<(String, String)> {
    let len = i(a, 1).max(0) as usize;
    if len.saturating_mul(4) > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    claim(8 * len)?;
    let body = &s(a, 0)[..long_text::offset(s(a, 0), len)?];
    let fill = if a.len() > 2 { s(a, 2) } else { " " };
    let missing = len - long_text::count(body)?;
    let mut filling = String::new();
    if !fill.is_empty() {
        let width = long_text::count(fill)?;
        for _ in 0..missing / width {
            breath::append_text(&mut filling, fill)?;
        }
        breath::append_text(&mut filling, &fill[..long_text::offset(fill, missing % width)?])?;
    }
    Ok((body.to_owned(), filling))
}

pub fn lpad(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (body, filling) = pad(a)?;
    text(filling + &body)
}

pub fn rpad(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (body, filling) = pad(a)?;
    text(body + &filling)
}

pub fn split_part(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = i(a, 2);
    if n == 0 {
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "field position must not be zero"));
    }
    let mut parts = Vec::new();
    let mut from = 0;
    while !s(a, 1).is_empty()
        && let Some(found) = long_text::find(s(a, 0), s(a, 1), from)?
    {
        breath::step(64)?;
        parts.push(&s(a, 0)[from..found]);
        from = found + s(a, 1).len();
    }
    parts.push(&s(a, 0)[from..]);
    let at = if n > 0 { n - 1 } else { parts.len() as i64 + n };
    text(usize::try_from(at).ok().and_then(|at| parts.get(at).copied()).unwrap_or(""))
}

pub fn starts_with(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(s(a, 0).starts_with(s(a, 1))))
}

pub fn ascii(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(s(a, 0).chars().next().map_or(0, |c| c as i32)))
}

pub fn chr(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = i(a, 0);
    let bad = |m: String| SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, m);
    if n == 0 {
        return Err(bad("null character not permitted".to_owned()));
    }
    let n = u32::try_from(n)
        .map_err(|_| SqlError::new(code::INVALID_PARAMETER_VALUE, "character number must be positive"))?;
    if n > u32::from(char::MAX) {
        return Err(bad(format!("requested character too large for encoding: {n}")));
    }
    let c = char::from_u32(n);
    text(c.ok_or_else(|| bad(format!("requested character not valid for encoding: {n}")))?.to_string())
}

pub fn md5(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut digest = md5::Md5::new();
    for piece in s(a, 0).as_bytes().chunks(1 << 13) {
        breath::step_bytes(2 * piece.len())?;
        digest.update(piece);
    }
    text(hex(&digest.finalize()))
}

pub fn to_hex(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(match &a[0] {
        Datum::Int4(v) => format!("{v:x}"),
        other => format!("{:x}", other.as_i64().unwrap_or(0)),
    })
}

pub(super) fn quoted_ident(name: &str) -> Result<String> {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && crate::syntax::keywords::lookup(name)
            .is_none_or(|(c, _)| c == crate::syntax::keywords::Category::Unreserved);
    Ok(if plain { name.to_owned() } else { format!("\"{}\"", doubled(name, "\"")?) })
}

/// A text in which this character stands twice.
fn doubled(value: &str, mark: &str) -> Result<String> {
    long_text::replace(value, mark, &mark.repeat(2), RESULT_BYTES_MAX)?.ok_or_else(too_large)
}

pub(super) fn quoted_literal(value: &str) -> Result<String> {
    let mark = if long_text::find(value, "\\", 0)?.is_some() { "E" } else { "" };
    Ok(format!("{mark}'{}'", doubled(&doubled(value, "'")?, "\\")?))
}

pub fn quote_ident(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(quoted_ident(s(a, 0))?)
}

pub fn quote_literal(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(quoted_literal(s(a, 0))?)
}

pub(super) fn shown(d: &Datum, e: &Env<'_>) -> Result<String> {
    crate::types::size::fits(d)?;
    Ok(text::output(SqlType::new(oid::TEXT), d, &e.session.conversion()))
}

pub fn concat(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    join(a, "", e)
}

/// Values as text, without nulls, with a separator between them.
pub(super) fn join(values: &[Datum], separator: &str, e: &Env<'_>) -> Result<Datum> {
    let (mut out, mut first) = (String::new(), true);
    for d in values.iter().filter(|d| !d.is_null()) {
        if !std::mem::replace(&mut first, false) {
            long_text::append(&mut out, separator)?;
        }
        long_text::append(&mut out, &shown(d, e)?)?;
        if out.len() > RESULT_BYTES_MAX {
            return Err(too_large());
        }
    }
    text(out)
}

pub fn concat_ws(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    join(&a[1..], s(a, 0), e)
}

/// A pattern with `escape` as its escape character, rewritten to the backslash.
pub fn like_escape(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(with_backslash(s(a, 0), s(a, 1))?)
}

/// The same of bytes.
pub fn like_escape_bytes(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (Datum::Bytea(pattern), Datum::Bytea(escape)) = (&a[0], &a[1]) else { return Ok(Datum::Null) };
    let out = with_backslash(&operators::latin1(pattern)?, &operators::latin1(escape)?)?;
    Ok(Datum::Bytea(out.chars().map(|c| c as u8).collect()))
}

fn with_backslash(pattern: &str, escape: &str) -> Result<String> {
    let mut escape = escape.chars();
    let (first, second) = (escape.next(), escape.next());
    if second.is_some() {
        return Err(SqlError::new(code::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        breath::step(8)?;
        if Some(c) == first {
            out.push('\\');
            out.extend(chars.next());
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Ok(out)
}
