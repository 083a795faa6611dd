//! The text form of arrays: `{1,NULL,"a b"}`, nested for more dimensions.

use super::datum::{Array, Datum};
use crate::error::{Result, SqlError, code};

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\"")).detail(detail)
}

/// What PostgreSQL's array_in takes for white space; nothing beyond ASCII is.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// What stands between the elements of an array: a comma, but a semicolon between boxes, whose text has commas.
fn delimiter(element: super::Oid) -> char {
    if element == super::oid::BOX { ';' } else { ',' }
}

/// The most dimensions of an array.
pub(super) const DIMENSIONS_MAX: usize = 6;

/// Reads an array, each element by `element`.
pub fn parse(text: &str, oid: super::Oid, mut element: impl FnMut(&str) -> Result<Datum>) -> Result<Array> {
    let (bounds, body) = bounds(text, text.trim_matches(is_blank))?;
    if !body.starts_with('{') {
        let detail = match bounds {
            None => "Array value must start with \"{\" or dimension information.",
            Some(_) => "Array contents must start with \"{\".",
        };
        return Err(malformed(text, detail));
    }
    let delimiter = delimiter(oid);
    let mut reader = Reader { text, rest: body, delimiter, values: Vec::new(), dims: Vec::new() };
    reader.level(0, &mut element)?;
    if !reader.rest.trim_start_matches(is_blank).is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let empty = reader.values.is_empty();
    // An array without elements has no dimensions, and is not written as nested braces.
    if empty && reader.dims.len() > 1 {
        return Err(malformed(text, "Unexpected \"}\" character."));
    }
    let dims: Vec<(i32, i32)> =
        if empty { Vec::new() } else { reader.dims.iter().map(|d| (d.unwrap_or(0), 1)).collect() };
    let dims = match bounds {
        None => dims,
        Some(given) if given.iter().map(|d| d.0).eq(dims.iter().map(|d| d.0)) => given,
        Some(_) => return Err(malformed(text, "Specified array dimensions do not match array contents.")),
    };
    Ok(Array { element: oid, dims, values: reader.values })
}

/// `[1:2][0:1]=`: length and lower bound of each dimension, and the rest of the text.
#[allow(clippy::type_complexity)]
fn bounds<'a>(text: &str, body: &'a str) -> Result<(Option<Vec<(i32, i32)>>, &'a str)> {
    let mut rest = body;
    let mut dims = Vec::new();
    while let Some(after) = rest.strip_prefix('[') {
        if dims.len() == DIMENSIONS_MAX {
            return Err(too_many(dims.len() + 1));
        }
        let end = after.find(']').ok_or_else(|| malformed(text, "Missing \"]\" in array dimensions."))?;
        let number = |s: &str| {
            s.parse::<i32>().map_err(|_| malformed(text, "\"[\" must introduce explicitly-specified array dimensions."))
        };
        let (low, high) = match after[..end].split_once(':') {
            Some((low, high)) => (number(low)?, number(high)?),
            None => (1, number(&after[..end])?),
        };
        if high < low {
            let message = "upper bound cannot be less than lower bound";
            return Err(SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message));
        }
        let length = i64::from(high) - i64::from(low) + 1;
        let length = i32::try_from(length).ok().filter(|l| *l <= 134_217_727);
        let message = "array size exceeds the maximum allowed (134217727)";
        dims.push((length.ok_or_else(|| SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message))?, low));
        rest = after[end + 1..].trim_start_matches(is_blank);
    }
    if dims.is_empty() {
        return Ok((None, rest));
    }
    let rest = rest.strip_prefix('=').ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?;
    Ok((Some(dims), rest.trim_start_matches(is_blank)))
}

pub(super) fn too_many(dimensions: usize) -> SqlError {
    let message = format!("number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message)
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    delimiter: char,
    values: Vec<Datum>,
    dims: Vec<Option<i32>>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn end(&self) -> SqlError {
        malformed(self.text, "Unexpected end of input.")
    }

    fn level(&mut self, depth: usize, element: &mut impl FnMut(&str) -> Result<Datum>) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(too_many(depth + 1));
        }
        self.next();
        if self.dims.len() == depth {
            self.dims.push(None);
        }
        let mut count = 0;
        self.rest = self.rest.trim_start_matches(is_blank);
        if self.rest.starts_with('}') {
            if depth > 0 {
                return Err(malformed(self.text, "Unexpected \"}\" character."));
            }
            self.next();
        } else {
            loop {
                self.rest = self.rest.trim_start_matches(is_blank);
                if self.rest.starts_with('{') {
                    if count > 0 && self.dims.len() == depth + 1 {
                        return Err(malformed(self.text, "Unexpected \"{\" character."));
                    }
                    self.level(depth + 1, element)?;
                } else if self.dims.len() > depth + 1 {
                    return Err(self.ragged());
                } else {
                    let value = self.element(element)?;
                    self.values.push(value);
                }
                count += 1;
                self.rest = self.rest.trim_start_matches(is_blank);
                match self.next() {
                    Some(c) if c == self.delimiter => {}
                    Some('}') => break,
                    Some(c) => {
                        return Err(malformed(self.text, &format!("Unexpected \"{c}\" character.")));
                    }
                    None => return Err(self.end()),
                }
            }
        }
        if *self.dims[depth].get_or_insert(count) != count {
            return Err(self.ragged());
        }
        Ok(())
    }

    fn ragged(&self) -> SqlError {
        malformed(self.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
    }

    fn element(&mut self, element: &mut impl FnMut(&str) -> Result<Datum>) -> Result<Datum> {
        let mut out = String::new();
        if self.rest.starts_with('"') {
            self.next();
            loop {
                match self.next().ok_or_else(|| self.end())? {
                    '"' => return element(&out),
                    '\\' => out.push(self.next().ok_or_else(|| self.end())?),
                    c => out.push(c),
                }
            }
        }
        loop {
            match self.rest.chars().next().ok_or_else(|| self.end())? {
                '}' => break,
                c if c == self.delimiter => break,
                c @ ('{' | '"') => {
                    return Err(malformed(self.text, &format!("Unexpected \"{c}\" character.")));
                }
                '\\' => {
                    self.next();
                    out.push(self.next().ok_or_else(|| self.end())?);
                }
                c => {
                    self.next();
                    out.push(c);
                }
            }
        }
        let trimmed = out.trim_end_matches(is_blank);
        if trimmed.is_empty() {
            let c = self.rest.chars().next().unwrap_or('}');
            return Err(malformed(self.text, &format!("Unexpected \"{c}\" character.")));
        }
        if trimmed.eq_ignore_ascii_case("null") { Ok(Datum::Null) } else { element(trimmed) }
    }
}

/// Writes an array, each element by `element`.
pub fn format(array: &Array, mut element: impl FnMut(&Datum) -> String) -> String {
    if array.values.is_empty() {
        return "{}".to_owned();
    }
    let mut out = String::new();
    if array.dims.iter().any(|d| d.1 != 1) {
        for (len, low) in &array.dims {
            out.push_str(&format!("[{low}:{}]", i64::from(*low) + i64::from(*len) - 1));
        }
        out.push('=');
    }
    let mut values = array.values.iter();
    write_level(array, 0, &mut values, &mut element, &mut out);
    out
}

fn write_level<'a>(
    array: &Array,
    depth: usize,
    values: &mut impl Iterator<Item = &'a Datum>,
    element: &mut impl FnMut(&Datum) -> String,
    out: &mut String,
) {
    let Some((len, _)) = array.dims.get(depth) else {
        return;
    };
    out.push('{');
    for i in 0..*len {
        if i > 0 {
            out.push(delimiter(array.element));
        }
        if depth + 1 < array.dims.len() {
            write_level(array, depth + 1, values, element, out);
            continue;
        }
        match values.next() {
            None | Some(Datum::Null) => out.push_str("NULL"),
            Some(v) => quote(&element(v), delimiter(array.element), out),
        }
    }
    out.push('}');
}

fn quote(text: &str, delimiter: char, out: &mut String) {
    let special = |c: char| matches!(c, '{' | '}' | '"' | '\\') || c == delimiter || is_blank(c);
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(special) {
        return out.push_str(text);
    }
    put_quoted(text, out);
}

/// Appends a text in double quotes; a backslash stands before quotes and backslashes in it.
pub(super) fn put_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}
