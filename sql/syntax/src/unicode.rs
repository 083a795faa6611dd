//! Unicode escapes in strings and names: `\0041` and `\+000041` of `U&'...'`, and the surrogate pairs of these and of `E'\u...'`.

use crate::error::{Result, SqlError, code};

/// Puts together the code points of escapes: a pair of surrogates is one character.
#[derive(Default)]
pub struct Pair(Option<u32>);

impl Pair {
    /// The character that ends with this code point; none: the second half has to follow.
    ///
    /// # Errors
    /// 42601: half a pair, zero, or no code point.
    pub fn next(&mut self, point: u32) -> Result<Option<char>> {
        let is_second = (0xdc00..0xe000).contains(&point);
        match self.0.take() {
            Some(first) if is_second => Ok(char::from_u32(0x10000 + ((first & 0x3ff) << 10) + (point & 0x3ff))),
            Some(_) => Err(bad_pair()),
            None if is_second => Err(bad_pair()),
            None if (0xd800..0xdc00).contains(&point) => {
                self.0 = Some(point);
                Ok(None)
            }
            None => match char::from_u32(point).filter(|c| *c != '\0') {
                Some(c) => Ok(Some(c)),
                None => Err(SqlError::new(code::SYNTAX_ERROR, "invalid Unicode escape value")),
            },
        }
    }

    /// Something else follows than an escape.
    ///
    /// # Errors
    /// 42601: the second half is missing.
    pub fn end(&self) -> Result<()> {
        if self.0.is_some() { Err(bad_pair()) } else { Ok(()) }
    }
}

fn bad_pair() -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, "invalid Unicode surrogate pair")
}

/// Whether UESCAPE may name a character.
pub fn is_escape(c: char) -> bool {
    !c.is_ascii_hexdigit() && !matches!(c, '+' | '\'' | '"' | ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// The text of a `U&` string or name without its escapes; an error comes with its place in the text.
///
/// # Errors
/// 42601.
pub fn unescape(text: &str, escape: char) -> std::result::Result<String, (SqlError, usize)> {
    let bad = || {
        SqlError::new(code::SYNTAX_ERROR, "invalid Unicode escape").hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
    };
    let mut out = String::with_capacity(text.len());
    let mut pair = Pair::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let here = text.len() - rest.len();
        let behind = &rest[c.len_utf8()..];
        if c != escape || behind.starts_with(escape) {
            pair.end().map_err(|e| (e, here))?;
            out.push(c);
            rest = if c == escape { &behind[escape.len_utf8()..] } else { behind };
            continue;
        }
        let (digits, behind) = match behind.strip_prefix('+') {
            Some(long) => (long.get(..6), long.get(6..)),
            None => (behind.get(..4), behind.get(4..)),
        };
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).ok_or_else(|| (bad(), here))?;
        let point = u32::from_str_radix(digits, 16).map_err(|_| (bad(), here))?;
        out.extend(pair.next(point).map_err(|e| (e, here))?);
        rest = behind.unwrap_or("");
    }
    pair.end().map_err(|e| (e, text.len()))?;
    Ok(out)
}
