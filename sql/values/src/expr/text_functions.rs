//! Functions on text.

use super::eval::Env;
use super::functions::{i, s};
use super::pattern;
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, SqlType, oid, text};
use clearway_base::memory::claim;
use md5::Digest;

/// The longest text that a function may make, in bytes.
const RESULT_BYTES_MAX: usize = 256 << 20;

fn text(out: impl Into<std::sync::Arc<str>>) -> Result<Datum> {
    Ok(Datum::text(out))
}

fn too_large() -> SqlError {
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

pub fn length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(s(a, 0).chars().count() as i32))
}

pub fn octet_length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(match &a[0] {
        Datum::Bytea(b) => b.len() as i32,
        _ => s(a, 0).len() as i32,
    }))
}

/// C.UTF-8 folds ASCII and, through the C library, other letters one to one.
fn fold(s: &str, f: impl Fn(char) -> Option<char>) -> String {
    s.chars().map(|c| f(c).unwrap_or(c)).collect()
}

fn one(mut it: impl Iterator<Item = char>) -> Option<char> {
    let c = it.next();
    if it.next().is_some() { None } else { c }
}

pub fn lower(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(fold(s(a, 0), |c| one(c.to_lowercase())))
}

pub fn upper(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(fold(s(a, 0), |c| one(c.to_uppercase())))
}

pub fn initcap(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut inside = false;
    let out: String = s(a, 0)
        .chars()
        .map(|c| {
            let mapped = if inside { one(c.to_lowercase()) } else { one(c.to_uppercase()) };
            inside = c.is_alphanumeric();
            mapped.unwrap_or(c)
        })
        .collect();
    text(out)
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
    text(s(a, 0).chars().skip(skip).take(take).collect::<String>())
}

pub fn substring_regex(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let re = pattern::compile(s(a, 1), false)?;
    let found = re.captures(s(a, 0)).and_then(|c| c.get(1).or_else(|| c.get(0)));
    Ok(found.map_or(Datum::Null, |m| Datum::text(m.as_str())))
}

/// How many characters `n` keeps of `len`: a negative one counts from the other end.
fn kept(n: i64, len: usize) -> usize {
    if n >= 0 { (n as usize).min(len) } else { len.saturating_sub(n.unsigned_abs() as usize) }
}

pub fn left(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = kept(i(a, 1), s(a, 0).chars().count());
    text(s(a, 0).chars().take(n).collect::<String>())
}

pub fn right(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let len = s(a, 0).chars().count();
    text(s(a, 0).chars().skip(len - kept(i(a, 1), len)).collect::<String>())
}

fn trim_set(a: &[Datum]) -> Vec<char> {
    if a.len() > 1 { s(a, 1).chars().collect() } else { vec![' '] }
}

pub fn btrim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(s(a, 0).trim_matches(&trim_set(a)[..]))
}

pub fn ltrim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(s(a, 0).trim_start_matches(&trim_set(a)[..]))
}

pub fn rtrim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(s(a, 0).trim_end_matches(&trim_set(a)[..]))
}

pub fn position(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (hay, needle) = (s(a, 0), s(a, 1));
    Ok(Datum::Int4(hay.find(needle).map_or(0, |at| hay[..at].chars().count() as i32 + 1)))
}

pub fn repeat(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = i(a, 1).max(0) as usize;
    if s(a, 0).len().saturating_mul(n) > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    claim(2 * s(a, 0).len() * n)?;
    text(s(a, 0).repeat(n))
}

pub fn reverse(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(s(a, 0).chars().rev().collect::<String>())
}

pub fn replace(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if s(a, 1).is_empty() {
        return Ok(a[0].clone());
    }
    let hits = s(a, 0).matches(s(a, 1)).count();
    if hits.saturating_mul(s(a, 2).len()) > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    claim(2 * (s(a, 0).len() + hits * s(a, 2).len()))?;
    text(s(a, 0).replace(s(a, 1), s(a, 2)))
}

pub fn translate(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let to: Vec<char> = s(a, 2).chars().collect();
    let map = |c: char| match s(a, 1).chars().position(|f| f == c) {
        None => Some(c),
        Some(n) => to.get(n).copied(),
    };
    text(s(a, 0).chars().filter_map(map).collect::<String>())
}

/// The text cut to a length, and what fills it up.
fn pad(a: &[Datum]) -> Result<(String, String)> {
    let len = i(a, 1).max(0) as usize;
    if len.saturating_mul(4) > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    claim(8 * len)?;
    let body: String = s(a, 0).chars().take(len).collect();
    let fill = if a.len() > 2 { s(a, 2) } else { " " };
    let missing = len - body.chars().count();
    let filling = if fill.is_empty() { String::new() } else { fill.chars().cycle().take(missing).collect() };
    Ok((body, filling))
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
    let parts: Vec<&str> = if s(a, 1).is_empty() { vec![s(a, 0)] } else { s(a, 0).split(s(a, 1)).collect() };
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
    let c = u32::try_from(n).ok().and_then(char::from_u32);
    text(c.ok_or_else(|| bad(format!("requested character not valid for encoding: {n}")))?.to_string())
}

pub fn md5(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let hash = md5::Md5::digest(s(a, 0).as_bytes());
    text(hash.iter().map(|b| format!("{b:02x}")).collect::<String>())
}

pub fn to_hex(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(match &a[0] {
        Datum::Int4(v) => format!("{v:x}"),
        other => format!("{:x}", other.as_i64().unwrap_or(0)),
    })
}

fn quoted_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && crate::syntax::keywords::lookup(name)
            .is_none_or(|(c, _)| c == crate::syntax::keywords::Category::Unreserved);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn quoted_literal(value: &str) -> String {
    let mark = if value.contains('\\') { "E" } else { "" };
    format!("{mark}'{}'", value.replace('\'', "''").replace('\\', "\\\\"))
}

pub fn quote_ident(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(quoted_ident(s(a, 0)))
}

pub fn quote_literal(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    text(quoted_literal(s(a, 0)))
}

fn shown(d: &Datum, e: &Env<'_>) -> String {
    text::output(SqlType::new(oid::TEXT), d, &e.session.conversion())
}

pub fn concat(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    text(a.iter().filter(|d| !d.is_null()).map(|d| shown(d, e)).collect::<String>())
}

pub fn concat_ws(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    claim(a.len().saturating_mul(s(a, 0).len()))?;
    let parts: Vec<String> = a[1..].iter().filter(|d| !d.is_null()).map(|d| shown(d, e)).collect();
    text(parts.join(s(a, 0)))
}

/// `%s`, `%I`, `%L`, `%%`; positions and widths are refused.
pub fn format(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let mut args = a[1..].iter();
    let mut out = String::new();
    let mut chars = s(a, 0).chars();
    let bad = |m: &str| SqlError::new(code::INVALID_PARAMETER_VALUE, m);
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let kind = chars
            .next()
            .ok_or_else(|| bad("unterminated format() type specifier").hint("For a single \"%\" use \"%%\"."))?;
        match kind {
            '%' => out.push('%'),
            's' | 'I' | 'L' => {
                let arg = args.next().ok_or_else(|| bad("too few arguments for format()"))?;
                match (kind, arg) {
                    ('s', Datum::Null) => {}
                    ('I', Datum::Null) => {
                        let message = "null values cannot be formatted as an SQL identifier";
                        return Err(SqlError::new("22004", message));
                    }
                    ('L', Datum::Null) => out.push_str("NULL"),
                    ('s', d) => out.push_str(&shown(d, e)),
                    ('I', d) => out.push_str(&quoted_ident(&shown(d, e))),
                    (_, d) => out.push_str(&quoted_literal(&shown(d, e))),
                }
            }
            '0'..='9' | '-' | '*' => {
                return Err(SqlError::unsupported("format() with positions or widths"));
            }
            other => {
                return Err(bad(&format!("unrecognized format() type specifier \"{other}\""))
                    .hint("For a single \"%\" use \"%%\"."));
            }
        }
    }
    text(out)
}

/// A pattern with `escape` as its escape character, rewritten to the backslash.
pub fn like_escape(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut escape = s(a, 1).chars();
    let (first, second) = (escape.next(), escape.next());
    if second.is_some() {
        return Err(SqlError::new(code::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let mut out = String::new();
    let mut chars = s(a, 0).chars();
    while let Some(c) = chars.next() {
        if Some(c) == first {
            out.push('\\');
            out.extend(chars.next());
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    text(out)
}

pub fn array_to_string(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let Datum::Array(array) = &a[0] else {
        return Ok(Datum::Null);
    };
    claim(2 * array.values.len().saturating_mul(s(a, 1).len() + size_of::<String>()))?;
    let parts: Vec<String> = array.values.iter().filter(|v| !v.is_null()).map(|v| shown(v, e)).collect();
    text(parts.join(s(a, 1)))
}
