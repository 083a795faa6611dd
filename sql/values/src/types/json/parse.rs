//! Parses JSON text, accepting, refusing and reporting as PostgreSQL does (src/common/jsonapi.c).

use super::document::{DEPTH_MAX, Json};
use crate::error::{Result, SqlError, code};
use crate::types::numeric::Numeric;
use clearway_base::{breath, stack};
use std::sync::Arc;

/// What a reader makes of a text.
trait Sink {
    type Value;
    fn null(&mut self) -> Self::Value;
    fn bool(&mut self, b: bool) -> Self::Value;
    fn number(&mut self, text: &str) -> Result<Self::Value>;
    fn string(&mut self, text: String) -> Self::Value;
    fn array(&mut self, list: Vec<Self::Value>) -> Self::Value;
    fn object(&mut self, list: Vec<(String, Self::Value)>) -> Self::Value;
    /// Whether strings are wanted: escapes that a text can't hold are an error then.
    const DECODES: bool;
}

struct Build;

impl Sink for Build {
    type Value = Json;
    const DECODES: bool = true;
    fn null(&mut self) -> Json {
        Json::Null
    }
    fn bool(&mut self, b: bool) -> Json {
        Json::Bool(b)
    }
    fn number(&mut self, text: &str) -> Result<Json> {
        let n = Numeric::parse(text).unwrap_or_else(|| Err(SqlError::internal("a JSON number can't be read")))?;
        Ok(Json::number(n))
    }
    fn string(&mut self, text: String) -> Json {
        Json::string(text)
    }
    fn array(&mut self, list: Vec<Json>) -> Json {
        Json::Array(list)
    }
    fn object(&mut self, list: Vec<(String, Json)>) -> Json {
        Json::object(list.into_iter().map(|(k, v)| (Arc::from(k), v)).collect())
    }
}

struct Judge;

impl Sink for Judge {
    type Value = ();
    const DECODES: bool = false;
    fn null(&mut self) {}
    fn bool(&mut self, _: bool) {}
    fn number(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
    fn string(&mut self, _: String) {}
    fn array(&mut self, _: Vec<()>) {}
    fn object(&mut self, _: Vec<(String, ())>) {}
}

/// A document of a text.
///
/// # Errors
/// 22P02; 22P05 for an escape that text can't hold; 54001.
pub fn parse(text: &str) -> Result<Json> {
    Reader { text, at: 0, sink: Build }.document()
}

/// Judges a text of type json, which is kept as it is.
///
/// # Errors
/// 22P02, 54001.
pub fn validate(text: &str) -> Result<()> {
    Reader { text, at: 0, sink: Judge }.document()
}

struct Reader<'a, S> {
    text: &'a str,
    at: usize,
    sink: S,
}

/// A word or a character for an error.
enum Found<'a> {
    End,
    Token(&'a str),
}

impl<S: Sink> Reader<'_, S> {
    fn document(mut self) -> Result<S::Value> {
        let value = self.value(0)?;
        self.space();
        match self.found() {
            Found::End => Ok(value),
            Found::Token(_) => Err(self.unexpected("Expected end of input, but found")),
        }
    }

    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// The token at the cursor, as PostgreSQL's lexer would cut it.
    fn found(&self) -> Found<'_> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Found::End };
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
        let len = match first {
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            '"' => {
                let mut escaped = false;
                let mut end = rest.len();
                for (i, c) in rest.char_indices().skip(1) {
                    if c == '"' && !escaped {
                        end = i + 1;
                        break;
                    }
                    escaped = c == '\\' && !escaped;
                }
                end
            }
            '-' | '0'..='9' => rest.find(|c: char| !(word(c) || matches!(c, '+' | '-' | '.'))).unwrap_or(rest.len()),
            c if word(c) => rest.find(|c: char| !word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        Found::Token(&rest[..len])
    }

    fn error(&self, detail: String) -> SqlError {
        self.error_until(detail, self.at)
    }

    /// An error whose context shows the line up to byte `end`.
    fn error_until(&self, detail: String, end: usize) -> SqlError {
        let before = &self.text[..end];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
        let mut from = start;
        // PostgreSQL shows at most fifty bytes before the place.
        while end - from >= 50 {
            from += self.text[from..].chars().next().map_or(1, char::len_utf8);
        }
        // A few bytes are not worth the dots.
        if from - start <= 3 {
            from = start;
        }
        let prefix = if from > start { "..." } else { "" };
        let more = end < self.text.len() && !matches!(self.text.as_bytes()[end], b'\n' | b'\r');
        let suffix = if more { "..." } else { "" };
        SqlError::new(code::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
            .detail(detail)
            .context(format!("JSON data, line {line}: {prefix}{}{suffix}", &self.text[from..end]))
    }

    fn unexpected(&self, what: &str) -> SqlError {
        match self.found() {
            Found::End => self.error("The input string ended unexpectedly.".to_owned()),
            Found::Token(token) => {
                let (token, end) = (token.to_owned(), self.at + token.len());
                if !self.is_valid_token(&token) {
                    return self.error_until(format!("Token \"{token}\" is invalid."), end);
                }
                self.error_until(format!("{what} \"{token}\"."), end)
            }
        }
    }

    fn is_valid_token(&self, token: &str) -> bool {
        match token.as_bytes().first().copied().unwrap_or(0) {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => true,
            b'"' => token.len() > 1 && token.ends_with('"'),
            b'-' | b'0'..=b'9' => number_end(token) == Some(token.len()),
            _ => matches!(token, "true" | "false" | "null"),
        }
    }

    fn value(&mut self, depth: usize) -> Result<S::Value> {
        // JSN-2
        if depth > DEPTH_MAX {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        breath::step(8)?;
        self.space();
        match self.byte() {
            b'{' => stack::deeper(|| self.object(depth)),
            b'[' => stack::deeper(|| self.array(depth)),
            b'"' => {
                let text = self.string()?;
                Ok(self.sink.string(text))
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<S::Value> {
        let (Found::Token(token), text) = (self.found(), self.text) else {
            return Err(self.unexpected(""));
        };
        let end = self.at + token.len();
        let token = &text[self.at..end];
        let value = match token {
            "true" => self.sink.bool(true),
            "false" => self.sink.bool(false),
            "null" => self.sink.null(),
            _ if token.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && self.is_valid_token(token) => {
                self.sink.number(token)?
            }
            _ => return Err(self.unexpected("Expected JSON value, but found")),
        };
        self.at = end;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<S::Value> {
        self.at += 1;
        let mut list = Vec::new();
        self.space();
        if self.byte() == b']' {
            self.at += 1;
            return Ok(self.sink.array(list));
        }
        loop {
            list.push(self.value(depth + 1)?);
            self.space();
            match self.byte() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(self.sink.array(list));
                }
                _ => return Err(self.unexpected("Expected \",\" or \"]\", but found")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<S::Value> {
        self.at += 1;
        let mut list = Vec::new();
        self.space();
        if self.byte() == b'}' {
            self.at += 1;
            return Ok(self.sink.object(list));
        }
        let mut expected = "Expected string or \"}\", but found";
        loop {
            self.space();
            if self.byte() != b'"' {
                return Err(self.unexpected(expected));
            }
            let name = self.string()?;
            self.space();
            if self.byte() != b':' {
                return Err(self.unexpected("Expected \":\", but found"));
            }
            self.at += 1;
            list.push((name, self.value(depth + 1)?));
            self.space();
            match self.byte() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(self.sink.object(list));
                }
                _ => return Err(self.unexpected("Expected \",\" or \"}\", but found")),
            }
            expected = "Expected string, but found";
        }
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while !matches!(self.byte(), b'"' | b'\\' | 0..=0x1f) {
                self.at += 1;
            }
            breath::step_bytes(self.at - from)?;
            if S::DECODES {
                out.push_str(&self.text[from..self.at]);
            }
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => self.escape(start, &mut out)?,
                _ if self.at >= self.text.len() => {
                    let detail = format!("Token \"{}\" is invalid.", &self.text[start..]);
                    return Err(self.error_until(detail, self.text.len()));
                }
                byte => {
                    let detail = format!("Character with value 0x{byte:02x} must be escaped.");
                    return Err(self.error_until(detail, self.at));
                }
            }
        }
    }

    fn escape(&mut self, start: usize, out: &mut String) -> Result<()> {
        let next = self.text[self.at + 1..].chars().next();
        let plain = match next {
            Some('"') => '"',
            Some('\\') => '\\',
            Some('/') => '/',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode(out),
            None => {
                let detail = format!("Token \"{}\" is invalid.", &self.text[start..]);
                return Err(self.error_until(detail, self.text.len()));
            }
            Some(c) => {
                let end = self.at + 1 + c.len_utf8();
                return Err(self.error_until(format!("Escape sequence \"\\{c}\" is invalid."), end));
            }
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    /// The four digits behind `\u` at the cursor.
    fn digits(&mut self) -> Result<u32> {
        let mut value = 0;
        for i in 0..4 {
            let at = self.at + 2 + i;
            match self.text.as_bytes().get(at).and_then(|b| char::from(*b).to_digit(16)) {
                Some(digit) => value = value << 4 | digit,
                None => {
                    let end = at + self.text[at.min(self.text.len())..].chars().next().map_or(0, char::len_utf8);
                    let detail = "\"\\u\" must be followed by four hexadecimal digits.".to_owned();
                    return Err(self.error_until(detail, end.min(self.text.len())));
                }
            }
        }
        self.at += 6;
        Ok(value)
    }

    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let first = self.digits()?;
        if !S::DECODES {
            return Ok(());
        }
        let low = "Unicode low surrogate must follow a high surrogate.";
        let value = match first {
            0 => {
                return Err(SqlError::new("22P05", "unsupported Unicode escape sequence")
                    .detail("\\u0000 cannot be converted to text.")
                    .context(self.error(String::new()).fields().names.first().map_or(String::new(), |n| n.1.clone())));
            }
            0xd800..=0xdbff => {
                if !self.text[self.at..].starts_with("\\u") {
                    return Err(self.error(low.to_owned()));
                }
                match self.digits()? {
                    second @ 0xdc00..=0xdfff => 0x10000 + ((first & 0x3ff) << 10 | second & 0x3ff),
                    0xd800..=0xdbff => {
                        let detail = "Unicode high surrogate must not follow a high surrogate.";
                        return Err(self.error(detail.to_owned()));
                    }
                    _ => return Err(self.error(low.to_owned())),
                }
            }
            0xdc00..=0xdfff => return Err(self.error(low.to_owned())),
            other => other,
        };
        out.extend(char::from_u32(value));
        Ok(())
    }
}

/// Whether a text is a JSON number and nothing else.
pub fn is_number(text: &str) -> bool {
    number_end(text) == Some(text.len())
}

/// Where a number at the start of a text ends; none: there is none.
fn number_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || whole > 1 && bytes[at] == b'0' {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let part = digits(at + 1);
        if part == 0 {
            return None;
        }
        at += 1 + part;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let part = digits((at + 1 + sign).min(bytes.len()));
        if part == 0 {
            return None;
        }
        at += 1 + sign + part;
    }
    Some(at)
}
