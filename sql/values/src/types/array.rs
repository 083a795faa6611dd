//! The text form of arrays: `{1,NULL,"a b"}`, nested for more dimensions.

use super::datum::{Array, Datum};
use crate::error::{Result, SqlError, code};

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\"")).detail(detail)
}

/// Reads an array, each element by `element`.
pub fn parse(text: &str, oid: super::Oid, mut element: impl FnMut(&str) -> Result<Datum>) -> Result<Array> {
    let body = text.trim();
    if body.starts_with('[') {
        return Err(SqlError::unsupported("an array with explicit bounds"));
    }
    if !body.starts_with('{') {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    }
    let mut reader = Reader { text, rest: body, values: Vec::new(), dims: Vec::new() };
    reader.level(0, &mut element)?;
    if !reader.rest.trim().is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let dims =
        if reader.values.is_empty() { Vec::new() } else { reader.dims.iter().map(|d| (d.unwrap_or(0), 1)).collect() };
    Ok(Array { element: oid, dims, values: reader.values })
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
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
        if depth >= 6 {
            return Err(SqlError::new(
                code::PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions exceeds the maximum allowed (6)",
            ));
        }
        self.next();
        if self.dims.len() == depth {
            self.dims.push(None);
        }
        let mut count = 0;
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('}') {
            self.next();
        } else {
            loop {
                self.rest = self.rest.trim_start();
                if self.rest.starts_with('{') {
                    self.level(depth + 1, element)?;
                } else if self.dims.len() > depth + 1 {
                    return Err(self.ragged());
                } else {
                    let value = self.element(element)?;
                    self.values.push(value);
                }
                count += 1;
                self.rest = self.rest.trim_start();
                match self.next() {
                    Some(',') => {}
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
                ',' | '}' => break,
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
        let trimmed = out.trim_end();
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
            out.push_str(&format!("[{low}:{}]", low + len - 1));
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
            out.push(',');
        }
        if depth + 1 < array.dims.len() {
            write_level(array, depth + 1, values, element, out);
            continue;
        }
        match values.next() {
            None | Some(Datum::Null) => out.push_str("NULL"),
            Some(v) => quote(&element(v), out),
        }
    }
    out.push('}');
}

fn quote(text: &str, out: &mut String) {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(special) {
        return out.push_str(text);
    }
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}
