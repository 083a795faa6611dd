//! hstore: pairs of keys and values, both texts, the value perhaps NULL.
//!
//! # Invariants
//! - HST-1: the pairs of a value are sorted by the key's length, then its bytes; no key stands twice.
//! - HST-2: the stored form sorts as [`compare`] does, and gives the value back.

use super::array::put_quoted;
use super::binary::{self, Reader, bad};
use super::datum::{Array, Datum};
use super::json;
use crate::error::{Result, SqlError, code};
use clearway_base::{breath, memory};
use std::cmp::Ordering;
use std::sync::Arc;

/// A pair; no value: NULL.
pub type Pair = (Arc<str>, Option<Arc<str>>);

/// A value (HST-1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hstore {
    pairs: Vec<Pair>,
}

fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Hstore {
    /// A value of these pairs; of equal keys the first one counts.
    pub fn new(mut pairs: Vec<Pair>) -> Hstore {
        // A stable sort: of equal keys the first one stands first.
        pairs.sort_by(|a, b| key_order(&a.0, &b.0));
        pairs.dedup_by(|later, kept| later.0 == kept.0);
        Hstore { pairs }
    }

    /// Its pairs in order.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    fn place(&self, key: &str) -> std::result::Result<usize, usize> {
        self.pairs.binary_search_by(|pair| key_order(&pair.0, key))
    }

    /// The value of a key; the outer none: the key is not there.
    pub fn get(&self, key: &str) -> Option<Option<&Arc<str>>> {
        self.place(key).ok().map(|at| self.pairs[at].1.as_ref())
    }

    /// Those of its pairs that `keep` says.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn filtered(&self, mut keep: impl FnMut(&Pair) -> bool) -> Result<Hstore> {
        let mut pairs = Vec::new();
        for pair in &self.pairs {
            breath::step(16)?;
            if keep(pair) {
                pairs.push(pair.clone());
            }
        }
        Ok(Hstore { pairs })
    }

    /// Both, where the other one's pairs replace its own.
    ///
    /// # Errors
    /// 53200, and the reason for which the statement must end.
    pub fn joined(&self, other: &Hstore) -> Result<Hstore> {
        let count = self.pairs.len() + other.pairs.len();
        memory::claim(count * size_of::<Pair>())?;
        breath::step_bytes(64 * count)?;
        Ok(Hstore::new(other.pairs.iter().chain(&self.pairs).cloned().collect()))
    }

    /// Whether it has every pair of the other one.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn contains(&self, other: &Hstore) -> Result<bool> {
        for (key, value) in &other.pairs {
            breath::step(16)?;
            if self.get(key) != Some(value.as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> usize {
        let of = |pair: &Pair| size_of::<Pair>() + 32 + pair.0.len() + pair.1.as_ref().map_or(0, |v| v.len());
        self.pairs.iter().map(of).sum()
    }
}

/// The order of two values, as the function hstore_cmp has it: an empty one first; then by all keys and values one behind the other, their bytes, then
/// their length; then by the number of pairs; then by where they end and whether they are NULL.
pub fn compare(a: &Hstore, b: &Hstore) -> Ordering {
    stored(a).cmp(&stored(b))
}

/// The stored form: the texts one behind the other, a byte 0 that no text has, the number of pairs, and for each text where it ends and whether it is
/// NULL; numbers have four bytes, the highest first (HST-2).
pub fn stored(value: &Hstore) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in &value.pairs {
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(value.as_ref().map_or(&[], |v| v.as_bytes()));
    }
    out.push(0);
    out.extend_from_slice(&(value.pairs.len() as u32).to_be_bytes());
    let mut end = 0u32;
    for (key, value) in &value.pairs {
        end += key.len() as u32;
        out.extend_from_slice(&end.to_be_bytes());
        out.push(0);
        end += value.as_ref().map_or(0, |v| v.len()) as u32;
        out.extend_from_slice(&end.to_be_bytes());
        out.push(u8::from(value.is_none()));
    }
    out
}

/// The value of a stored form; none: the bytes are none.
pub fn of_stored(bytes: &[u8]) -> Option<Hstore> {
    let texts = bytes.iter().position(|b| *b == 0)?;
    let (count, mut rest) = bytes.get(texts + 1..)?.split_first_chunk::<4>()?;
    let count = u32::from_be_bytes(*count) as usize;
    if rest.len() != count.checked_mul(10)? {
        return None;
    }
    let mut from = 0;
    let mut text = || {
        let (end, after) = rest.split_first_chunk::<4>()?;
        let (null, after) = after.split_first()?;
        rest = after;
        let end = u32::from_be_bytes(*end) as usize;
        let text = std::str::from_utf8(bytes[..texts].get(from..end)?).ok()?;
        from = end;
        Some((text, *null != 0))
    };
    let mut pairs: Vec<Pair> = Vec::with_capacity(count);
    for _ in 0..count {
        let (key, _) = text()?;
        let (value, null) = text()?;
        if pairs.last().is_some_and(|last| key_order(&last.0, key).is_ge()) {
            return None;
        }
        pairs.push((key.into(), (!null).then(|| value.into())));
    }
    (from == texts).then_some(Hstore { pairs })
}

/// The text of a value.
pub fn format(value: &Hstore) -> String {
    let mut out = String::new();
    for (at, (key, value)) in value.pairs.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        put_quoted(key, &mut out);
        out.push_str("=>");
        match value {
            Some(value) => put_quoted(value, &mut out),
            None => out.push_str("NULL"),
        }
    }
    out
}

/// Where a text is read.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Result<Option<char>> {
        breath::step(4)?;
        let found = self.peek();
        self.at += found.map_or(0, char::len_utf8);
        Ok(found)
    }

    fn skip_blanks(&mut self) -> Result<()> {
        while self.peek().is_some_and(is_blank) {
            self.next()?;
        }
        Ok(())
    }

    fn syntax(&self) -> SqlError {
        let near = self.peek().map_or(String::new(), String::from);
        SqlError::new(code::INTERNAL_ERROR, format!("Syntax error near \"{near}\" at position {}", self.at))
    }

    /// A key, or a value: its text, and whether it was in quotes. None: the text ends.
    fn word(&mut self, is_value: bool) -> Result<Option<(String, bool)>> {
        self.skip_blanks()?;
        match self.peek() {
            None => return Ok(None),
            Some('"') => {
                self.next()?;
                return self.quoted().map(|text| Some((text, true)));
            }
            Some('=') if !is_value => return Err(self.syntax()),
            Some(_) => {}
        }
        let (mut out, mut first) = (String::new(), true);
        while let Some(c) = self.peek() {
            let ends = is_blank(c) || if is_value { c == ',' } else { c == '=' };
            if ends && !first {
                break;
            }
            self.next()?;
            out.push(if c == '\\' { self.next()?.ok_or_else(unexpected_end)? } else { c });
            first = false;
        }
        Ok(Some((out, false)))
    }

    fn quoted(&mut self) -> Result<String> {
        let mut out = String::new();
        loop {
            match self.next()?.ok_or_else(unexpected_end)? {
                '"' => return Ok(out),
                '\\' => out.push(self.next()?.ok_or_else(unexpected_end)?),
                c => out.push(c),
            }
        }
    }

    fn arrow(&mut self) -> Result<()> {
        self.skip_blanks()?;
        for wanted in ['=', '>'] {
            match self.peek() {
                Some(c) if c == wanted => self.next()?,
                Some(_) => return Err(self.syntax()),
                None => return Err(unexpected_end()),
            };
        }
        Ok(())
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

fn unexpected_end() -> SqlError {
    SqlError::new(code::INTERNAL_ERROR, "Unexpected end of string")
}

/// Reads a text.
///
/// # Errors
/// XX000 with PostgreSQL's messages, 53200.
pub fn parse(text: &str) -> Result<Hstore> {
    let mut cursor = Cursor { text, at: 0 };
    let mut pairs: Vec<Pair> = Vec::new();
    memory::claim(2 * text.len())?;
    while let Some((key, _)) = cursor.word(false)? {
        cursor.arrow()?;
        let (value, quoted) = cursor.word(true)?.ok_or_else(unexpected_end)?;
        let null = !quoted && value.eq_ignore_ascii_case("null");
        pairs.push((key.into(), (!null).then(|| value.into())));
        memory::check()?;
        cursor.skip_blanks()?;
        match cursor.peek() {
            None => break,
            Some(',') => cursor.next()?,
            Some(_) => return Err(cursor.syntax()),
        };
    }
    Ok(Hstore::new(pairs))
}

/// The text of a JSON object of its pairs. `loose`: values that look like booleans or numbers are no strings.
///
/// # Errors
/// 53200, and the reason for which the statement must end.
pub fn to_json(value: &Hstore, loose: bool) -> Result<String> {
    memory::claim(2 * value.heap_bytes())?;
    let mut out = String::from("{");
    for (at, (key, value)) in value.pairs.iter().enumerate() {
        breath::step_bytes(key.len() + value.as_ref().map_or(0, |v| v.len()))?;
        if at > 0 {
            out.push_str(", ");
        }
        json::escape(key, &mut out);
        out.push_str(": ");
        match value.as_deref() {
            None => out.push_str("null"),
            Some("t") if loose => out.push_str("true"),
            Some("f") if loose => out.push_str("false"),
            Some(number) if loose && json::is_number(number) => out.push_str(number),
            Some(text) => json::escape(text, &mut out),
        }
    }
    out.push('}');
    Ok(out)
}

fn subscripts(message: &str) -> SqlError {
    SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message)
}

/// A value of keys and values that alternate in an array of one dimension, or stand in the two columns of one.
///
/// # Errors
/// 2202E, 22004.
pub fn of_array(array: &Array) -> Result<Hstore> {
    match array.dims.as_slice() {
        [] => return Ok(Hstore::default()),
        [(length, _)] if length % 2 != 0 => return Err(subscripts("array must have even number of elements")),
        [_] | [_, (2, _)] => {}
        [_, _] => return Err(subscripts("array must have two columns")),
        _ => return Err(subscripts("wrong number of array subscripts")),
    }
    let mut pairs = Vec::new();
    for pair in array.values.chunks_exact(2) {
        breath::step(16)?;
        pairs.push((text_of(&pair[0]).ok_or_else(no_null_key)?, text_of(&pair[1])));
    }
    Ok(Hstore::new(pairs))
}

/// A value of an array of keys and one of values; none: every value is NULL.
///
/// # Errors
/// 2202E, 22004.
pub fn of_arrays(keys: &Array, values: Option<&Array>) -> Result<Hstore> {
    if keys.dims.len() > 1 || values.is_some_and(|v| v.dims.len() > 1) {
        return Err(subscripts("wrong number of array subscripts"));
    }
    if values.is_some_and(|values| values.dims != keys.dims) {
        return Err(subscripts("arrays must have same bounds"));
    }
    let mut pairs = Vec::new();
    for (at, key) in keys.values.iter().enumerate() {
        breath::step(16)?;
        let value = values.and_then(|values| text_of(values.values.get(at)?));
        pairs.push((text_of(key).ok_or_else(no_null_key)?, value));
    }
    Ok(Hstore::new(pairs))
}

fn text_of(value: &Datum) -> Option<Arc<str>> {
    match value {
        Datum::Text(text) => Some(text.clone()),
        other => other.as_str().map(Into::into),
    }
}

/// 22004.
pub fn no_null_key() -> SqlError {
    SqlError::new("22004", "null value not allowed for hstore key")
}

/// The binary form: the number of pairs; each text with its length before it.
pub fn send(value: &Hstore, out: &mut Vec<u8>) {
    out.extend((value.pairs.len() as i32).to_be_bytes());
    let text = |text: &str, out: &mut Vec<u8>| {
        out.extend((text.len() as i32).to_be_bytes());
        out.extend(text.as_bytes());
    };
    for (key, value) in &value.pairs {
        text(key, out);
        match value {
            Some(value) => text(value, out),
            None => out.extend((-1i32).to_be_bytes()),
        }
    }
}

/// Reads the binary form.
///
/// # Errors
/// 22P03, 22004, 22021.
pub(super) fn receive(r: &mut Reader<'_>) -> Result<Hstore> {
    let count = usize::try_from(r.i32()?).map_err(|_| bad())?;
    let mut pairs: Vec<Pair> = Vec::new();
    for _ in 0..count {
        breath::step(16)?;
        let key = binary::utf8(r.field()?.ok_or_else(no_null_key)?)?;
        let value = r.field()?.map(binary::utf8).transpose()?;
        pairs.push((key.into(), value.map(Into::into)));
    }
    Ok(Hstore::new(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Hstore {
        parse(text).expect(text)
    }

    #[test]
    fn texts_are_read_and_shown_as_by_postgresql() {
        let shown = |text: &str| format(&read(text));
        assert_eq!(shown("aa=>1 , b=>NULL,\"c d\"=>\"x\\\"y\", b=>2"), r#""b"=>NULL, "aa"=>"1", "c d"=>"x\"y""#);
        assert_eq!(shown(""), "");
        assert_eq!(shown("  "), "");
        assert_eq!(shown(r#"a\=b=>\,c, n=>"null""#), r#""n"=>"null", "a=b"=>",c""#);
        assert_eq!(shown("a=>b,"), r#""a"=>"b""#);
        let refused = |text: &str| parse(text).expect_err(text).message().to_owned();
        assert_eq!(refused("a"), "Unexpected end of string");
        assert_eq!(refused("é=>b,ü=ä"), "Syntax error near \"ä\" at position 9");
        assert_eq!(refused("a=>b c"), "Syntax error near \"c\" at position 5");
        assert_eq!(refused("=>b"), "Syntax error near \"=\" at position 0");
    }

    /// HST-2
    #[test]
    fn the_stored_form_gives_the_value_back_and_sorts_an_empty_one_first() {
        let texts = ["", "\"\"=>\"\"", "\"\"=>NULL", "a=>0", "a=>1", "a=>1,b=>2", "ab=>\"\"", "b=>NULL,c=>x"];
        for text in texts {
            assert_eq!(of_stored(&stored(&read(text))), Some(read(text)), "{text}");
        }
        for pair in texts.windows(2) {
            assert_eq!(compare(&read(pair[0]), &read(pair[1])), Ordering::Less, "{pair:?}");
        }
        let whole = stored(&read("a=>1,b=>NULL"));
        for at in 0..whole.len() {
            assert_eq!(of_stored(&whole[..at]), None, "cut at {at}");
        }
        assert_eq!(of_stored(&[&whole[..], &[0]].concat()), None);
    }
}
