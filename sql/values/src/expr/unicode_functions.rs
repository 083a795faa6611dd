//! Functions on text as Unicode and as names: NORMALIZE and IS NORMALIZED, unistr, parse_ident, to_ascii.
//!
//! Source: PostgreSQL 15's src/backend/utils/adt/varlena.c (unistr, unicode_normalize_func), misc.c (parse_ident) and ascii.c.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, code};
use crate::syntax::unicode::Pair;
use crate::types::datum::Array;
use crate::types::{Datum, oid};
use clearway_base::breath;
use clearway_base::memory::claim;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

use oid::{BOOL, INT4, NAME, TEXT, TEXT_ARRAY};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "normalize"(TEXT) TEXT strict normalize; "normalize"(TEXT, TEXT) TEXT strict normalize;
    "is_normalized"(TEXT) BOOL strict is_normalized; "is_normalized"(TEXT, TEXT) BOOL strict is_normalized;
    "unistr"(TEXT) TEXT strict unistr;
    "parse_ident"(TEXT) TEXT_ARRAY strict parse_ident; "parse_ident"(TEXT, BOOL) TEXT_ARRAY strict parse_ident;
    "to_ascii"(TEXT) TEXT strict |_, _| Err(no_ascii(Encoding::UTF8));
    "to_ascii"(TEXT, INT4) TEXT strict to_ascii_by_number; "to_ascii"(TEXT, NAME) TEXT strict to_ascii_by_name;
};

/// The characters of a text in a normal form, each counted as work.
fn normal<'t>(text: &'t str, form: &str) -> Result<Box<dyn Iterator<Item = Result<char>> + 't>> {
    let counted = text.chars();
    let out: Box<dyn Iterator<Item = char> + 't> = match form.to_ascii_uppercase().as_str() {
        "NFC" => Box::new(counted.nfc()),
        "NFD" => Box::new(counted.nfd()),
        "NFKC" => Box::new(counted.nfkc()),
        "NFKD" => Box::new(counted.nfkd()),
        _ => return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, format!("invalid normalization form: {form}"))),
    };
    Ok(Box::new(out.map(|c| breath::step(16).map(|()| c).map_err(SqlError::from))))
}

fn form(a: &[Datum]) -> &str {
    a.get(1).and_then(Datum::as_str).unwrap_or("NFC")
}

fn normalize(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut out = String::new();
    for c in normal(s(a, 0), form(a))? {
        if out.len() == out.capacity() {
            claim(2 * out.len() + s(a, 0).len())?;
            out.reserve(out.len() + s(a, 0).len());
        }
        out.push(c?);
    }
    Ok(Datum::text(out))
}

fn is_normalized(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut own = s(a, 0).chars();
    for c in normal(s(a, 0), form(a))? {
        if own.next() != Some(c?) {
            return Ok(Datum::Bool(false));
        }
    }
    Ok(Datum::Bool(own.next().is_none()))
}

/// The number that the first `digits` hexadecimal digits are.
fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let text = text.get(..digits).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(text, 16).ok()
}

fn unistr(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut rest = s(a, 0);
    claim(rest.len())?;
    let (mut out, mut pair) = (String::with_capacity(rest.len()), Pair::default());
    while let Some(c) = rest.chars().next() {
        breath::step(16)?;
        let escape = rest.strip_prefix('\\');
        let Some(escape) = escape.filter(|escape| !escape.starts_with('\\')) else {
            pair.end()?;
            out.push(c);
            rest = &rest[c.len_utf8() + escape.map_or(0, |_| 1)..];
            continue;
        };
        let found = [("", 4), ("u", 4), ("+", 6), ("U", 8)].into_iter().find_map(|(mark, digits)| {
            let point = hexadecimal(escape.strip_prefix(mark)?, digits)?;
            Some((point, mark.len() + digits))
        });
        let Some((point, length)) = found else {
            return Err(SqlError::new(code::SYNTAX_ERROR, "invalid Unicode escape")
                .hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."));
        };
        if point == 0 || point > 0x10_ffff {
            let message = format!("invalid Unicode code point: {point:04X}");
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
        out.extend(pair.next(point)?);
        rest = &escape[length..];
    }
    pair.end()?;
    Ok(Datum::text(out))
}

/// Blanks as PostgreSQL's lexer has them.
fn behind_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c'])
}

/// Takes one name from the front; none: there is none. The error says what is wrong with one in quotes.
fn take_name(rest: &mut &str) -> std::result::Result<Option<String>, &'static str> {
    if let Some(mut quoted) = rest.strip_prefix('"') {
        let mut name = String::new();
        loop {
            let Some((part, behind)) = quoted.split_once('"') else { return Err("String has unclosed double quotes.") };
            name.push_str(part);
            match behind.strip_prefix('"') {
                Some(more) => {
                    name.push('"');
                    quoted = more;
                }
                None => {
                    *rest = behind;
                    break;
                }
            }
        }
        return if name.is_empty() { Err("Quoted identifier must not be empty.") } else { Ok(Some(name)) };
    }
    let begins = |c: char| c == '_' || c.is_ascii_alphabetic() || !c.is_ascii();
    if !rest.starts_with(begins) {
        return Ok(None);
    }
    let end = rest.find(|c: char| !begins(c) && !c.is_ascii_digit() && c != '$').unwrap_or(rest.len());
    let name = rest[..end].to_ascii_lowercase();
    *rest = &rest[end..];
    Ok(Some(name))
}

fn parse_ident(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let whole = s(a, 0);
    let strict = !matches!(a.get(1), Some(Datum::Bool(false)));
    let wrong = |detail: Option<&str>| {
        let message = format!("string is not a valid identifier: \"{whole}\"");
        let error = SqlError::new(code::INVALID_PARAMETER_VALUE, message);
        match detail {
            Some(detail) => error.detail(detail),
            None => error,
        }
    };
    claim(2 * whole.len())?;
    let (mut rest, mut names, mut after_dot) = (behind_blanks(whole), Vec::new(), false);
    loop {
        breath::step(64)?;
        match take_name(&mut rest).map_err(|detail| wrong(Some(detail)))? {
            Some(name) => names.push(Datum::text(name)),
            None if rest.starts_with('.') => return Err(wrong(Some("No valid identifier before \".\"."))),
            None if after_dot => return Err(wrong(Some("No valid identifier after \".\"."))),
            None => return Err(wrong(None)),
        }
        rest = behind_blanks(rest);
        match rest.strip_prefix('.') {
            Some(behind) => (rest, after_dot) = (behind_blanks(behind), true),
            None if rest.is_empty() || !strict => break,
            None => return Err(wrong(None)),
        }
    }
    let names = Array::one_dimensional(oid::TEXT, names);
    Ok(Datum::Array(Arc::new(names)))
}

/// What PostgreSQL takes the bytes from 128 on for, of an encoding that it has a table for. The bytes are those of UTF-8, in which the table is
/// looked up all the same.
fn ascii_table(encoding: Encoding) -> Option<&'static [u8; 128]> {
    Some(match encoding.name() {
        "LATIN1" => {
            b"                                  cL Y  \"Ca  -R     'u .,      ?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty"
        }
        "LATIN2" => {
            b"                                 A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt."
        }
        "LATIN9" => {
            b"                                  cL YS sCa  -R     Zu .z   EeY?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty"
        }
        "WIN1250" => {
            b"  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt "
        }
        _ => return None,
    })
}

fn no_ascii(encoding: Encoding) -> SqlError {
    let message = format!("encoding conversion from {} to ASCII not supported", encoding.name());
    SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
}

fn to_ascii(text: &str, encoding: Encoding) -> Result<Datum> {
    let table = ascii_table(encoding).ok_or_else(|| no_ascii(encoding))?;
    claim(text.len())?;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        breath::step(4)?;
        out.push(char::from(byte.checked_sub(128).map_or(byte, |at| table[usize::from(at)])));
    }
    Ok(Datum::text(out))
}

fn to_ascii_by_number(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let number = i(a, 1);
    let unknown = || SqlError::new(code::UNDEFINED_OBJECT, format!("{number} is not a valid encoding code"));
    to_ascii(s(a, 0), Encoding::of_number(number).ok_or_else(unknown)?)
}

fn to_ascii_by_name(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let unknown = || SqlError::new(code::UNDEFINED_OBJECT, format!("{} is not a valid encoding name", s(a, 1)));
    to_ascii(s(a, 0), Encoding::find(s(a, 1)).ok_or_else(unknown)?)
}
