//! The lexer: PostgreSQL's tokens with their byte ranges, after `src/backend/parser/scan.l`.
//!
//! Strings follow `standard_conforming_strings = on`. A token borrows from the text where no folding or
//! unescaping was needed. Every error is 42601 with the place where PostgreSQL puts it.

use crate::error::{Pos, Result, SqlError, code};
use crate::unicode;
use clearway_base::memory;
use std::borrow::Cow;

/// The longest text that is taken, in bytes; a longer one is refused before any work on it.
pub const TEXT_BYTES_MAX: usize = 256 << 20;
/// The longest name, in bytes; longer ones are cut, as in PostgreSQL.
pub const NAME_BYTES_MAX: usize = 63;

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Tok<'a>,
    /// Its first byte.
    pub start: Pos,
    /// The byte after its last.
    pub end: Pos,
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum Tok<'a> {
    /// A word without quotes, folded to lower case: a keyword or a name.
    Word(Cow<'a, str>),
    /// A quoted name.
    Quoted(Cow<'a, str>),
    /// A run of digits.
    Int(&'a str),
    /// A number with a point or an exponent.
    Num(&'a str),
    /// A string, unescaped.
    Str(Cow<'a, str>),
    /// `B'01'` or `X'0f'`.
    BitStr(&'a str),
    /// `$n`.
    Param(u32),
    /// An operator; `!=` comes as `<>`.
    Op(&'a str),
    /// One of `, ( ) [ ] . ; :`.
    Punct(u8),
    /// `::`.
    Typecast,
    /// `:=`.
    ColonEquals,
    /// `=>`.
    EqualsGreater,
    /// `..`.
    DotDot,
    /// The end of the text.
    End,
}

const OP_CHARS: &[u8] = b"~!@#^&|`?+-*/%<>=";

/// All tokens of `sql`, the last of them [`Tok::End`].
pub fn tokens(sql: &str) -> Result<Vec<Token<'_>>> {
    if sql.len() > TEXT_BYTES_MAX {
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "query text is too long"));
    }
    let mut lexer = Lexer { sql, bytes: sql.as_bytes(), at: 0 };
    memory::claim(size_of::<Token<'_>>() * (sql.len() / 5))?;
    let mut out = Vec::with_capacity(sql.len() / 5 + 2);
    loop {
        if out.len() == out.capacity() {
            memory::claim(size_of::<Token<'_>>() * out.len())?;
        }
        let token = lexer.next()?;
        let end = token.kind == Tok::End;
        out.push(token);
        if end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
}

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn is_ident_part(b: u8) -> bool {
    is_ident_start(b) || b.is_ascii_digit() || b == b'$'
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Cuts a name to [`NAME_BYTES_MAX`] at a character boundary.
pub fn truncate_name(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let end = (0..=NAME_BYTES_MAX).rev().find(|&i| name.is_char_boundary(i)).unwrap_or(0);
    Cow::Owned(name[..end].to_owned())
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&self, message: &str, start: usize) -> SqlError {
        self.error_near(message, start, self.sql.len())
    }

    fn error_near(&self, message: &str, start: usize, end: usize) -> SqlError {
        let near = self.sql.get(start..end).unwrap_or("");
        SqlError::new(code::SYNTAX_ERROR, format!("{message} at or near \"{near}\"")).at(start as Pos)
    }

    fn next(&mut self) -> Result<Token<'a>> {
        self.skip_space()?;
        let start = self.at;
        let kind = self.token(start)?;
        Ok(Token { kind, start: start as Pos, end: self.at as Pos })
    }

    fn token(&mut self, start: usize) -> Result<Tok<'a>> {
        let Some(&b) = self.bytes.get(start) else {
            return Ok(Tok::End);
        };
        let quote_next = self.peek(1) == b'\'';
        Ok(match b {
            b'\'' => self.string(start, start)?,
            b'e' | b'E' if quote_next => self.escape_string(start)?,
            b'b' | b'B' | b'x' | b'X' if quote_next => self.bit_string(start)?,
            b'n' | b'N' if quote_next => self.string(start, start + 1)?,
            b'u' | b'U' if self.peek(1) == b'&' && matches!(self.peek(2), b'\'' | b'"') => self.unicode(start)?,
            b'"' => self.quoted_name(start)?,
            b'`' => self.backquoted_name(start)?,
            b'$' if self.peek(1).is_ascii_digit() => self.param(start)?,
            b'$' => self.dollar_string(start)?,
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.peek(1).is_ascii_digit() => self.number(start)?,
            b'.' if self.peek(1) == b'.' => self.take(2, Tok::DotDot),
            b':' if self.peek(1) == b':' => self.take(2, Tok::Typecast),
            b':' if self.peek(1) == b'=' => self.take(2, Tok::ColonEquals),
            b',' | b'(' | b')' | b'[' | b']' | b'.' | b';' | b':' => self.take(1, Tok::Punct(b)),
            _ if is_ident_start(b) => self.word(start),
            _ if OP_CHARS.contains(&b) => self.operator(start),
            _ => {
                let end = start + 1;
                return Err(self.error_near("syntax error", start, end));
            }
        })
    }

    fn take(&mut self, bytes: usize, kind: Tok<'a>) -> Tok<'a> {
        self.at += bytes;
        kind
    }

    fn skip_space(&mut self) -> Result<()> {
        loop {
            match self.peek(0) {
                b if is_space(b) => self.at += 1,
                b'-' if self.peek(1) == b'-' => {
                    while self.at < self.bytes.len() && !matches!(self.peek(0), b'\n' | b'\r') {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<()> {
        let start = self.at;
        let mut depth = 0u32;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(self.error("unterminated /* comment", start));
                }
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self, start: usize) -> Tok<'a> {
        while is_ident_part(self.peek(0)) {
            self.at += 1;
        }
        let text = &self.sql[start..self.at];
        let folded = if text.bytes().any(|b| b.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
        Tok::Word(truncate_name(folded))
    }

    fn quoted_name(&mut self, start: usize) -> Result<Tok<'a>> {
        self.at = start + 1;
        let text = self.until_quote(b'"', start, "unterminated quoted identifier")?;
        if text.is_empty() {
            return Err(self.error_near("zero-length delimited identifier", start, self.at));
        }
        Ok(Tok::Quoted(truncate_name(text)))
    }

    /// MySQL's form of a quoted name. It is folded: MySQL's names of columns match in any case.
    fn backquoted_name(&mut self, start: usize) -> Result<Tok<'a>> {
        self.at = start + 1;
        let text = self.until_quote(b'`', start, "unterminated quoted identifier")?;
        if text.is_empty() {
            return Err(self.error_near("zero-length delimited identifier", start, self.at));
        }
        Ok(Tok::Quoted(truncate_name(Cow::Owned(text.to_lowercase()))))
    }

    /// The text up to the closing `quote`, with doubled ones halved; stands behind it afterwards.
    fn until_quote(&mut self, quote: u8, start: usize, unterminated: &str) -> Result<Cow<'a, str>> {
        let from = self.at;
        let mut doubled = false;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.error(unterminated, start)),
                Some(&b) if b == quote => {
                    if self.peek(1) != quote {
                        break;
                    }
                    doubled = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }
        let text = &self.sql[from..self.at];
        self.at += 1;
        let q = (quote as char).to_string();
        Ok(if doubled { Cow::Owned(text.replace(&q.repeat(2), &q)) } else { Cow::Borrowed(text) })
    }

    /// A plain string whose quote stands at `open`, with its continuations on further lines.
    fn string(&mut self, start: usize, open: usize) -> Result<Tok<'a>> {
        self.at = open + 1;
        let mut text = self.until_quote(b'\'', start, "unterminated quoted string")?;
        while self.continues()? {
            self.at += 1;
            let more = self.until_quote(b'\'', start, "unterminated quoted string")?;
            text.to_mut().push_str(&more);
        }
        Ok(Tok::Str(text))
    }

    /// `U&'...'` or `U&"..."`, with the character of a UESCAPE behind it.
    fn unicode(&mut self, start: usize) -> Result<Tok<'a>> {
        let token = if self.peek(2) == b'"' {
            self.at = start + 3;
            let text = self.until_quote(b'"', start, "unterminated quoted identifier")?;
            if text.is_empty() {
                return Err(self.error_near("zero-length delimited identifier", start, self.at));
            }
            Tok::Quoted(text)
        } else {
            self.string(start, start + 2)?
        };
        let escape = self.uescape()?.unwrap_or('\\');
        let plain = |text: Cow<'_, str>| {
            unicode::unescape(&text, escape).map_err(|(e, offset)| e.at((start + 3 + offset) as Pos))
        };
        Ok(match token {
            Tok::Quoted(text) => Tok::Quoted(truncate_name(Cow::Owned(plain(text)?))),
            Tok::Str(text) => Tok::Str(Cow::Owned(plain(text)?)),
            other => other,
        })
    }

    /// `UESCAPE '!'`
    fn uescape(&mut self) -> Result<Option<char>> {
        let mark = self.at;
        self.skip_space()?;
        let at = self.at;
        let word = self.sql.get(at..at + 7).is_some_and(|w| w.eq_ignore_ascii_case("uescape"));
        if !word || is_ident_part(self.peek(7)) {
            self.at = mark;
            return Ok(None);
        }
        self.at += 7;
        self.skip_space()?;
        let start = self.at;
        if self.peek(0) != b'\'' {
            return Err(self.error_near("UESCAPE must be followed by a simple string literal", start, start + 1));
        }
        let Tok::Str(text) = self.string(start, start)? else { return Ok(None) };
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(c), None) if unicode::is_escape(c) => Ok(Some(c)),
            _ => Err(self.error_near("invalid Unicode escape character", start, self.at)),
        }
    }

    /// Whether the string goes on: white space with a line break, then a quote. Moves to that quote.
    fn continues(&mut self) -> Result<bool> {
        let mark = self.at;
        let mut newline = false;
        loop {
            match self.peek(0) {
                b if is_space(b) => {
                    newline |= matches!(b, b'\n' | b'\r');
                    self.at += 1;
                }
                b'-' if self.peek(1) == b'-' => self.skip_space()?,
                b'\'' if newline => return Ok(true),
                _ => {
                    self.at = mark;
                    return Ok(false);
                }
            }
        }
    }

    fn escape_string(&mut self, start: usize) -> Result<Tok<'a>> {
        self.at = start + 2;
        let mut out: Vec<u8> = Vec::new();
        let mut pair = unicode::Pair::default();
        loop {
            let Some(&b) = self.bytes.get(self.at) else {
                return Err(self.error("unterminated quoted string", start));
            };
            self.at += 1;
            if b != b'\\' || !matches!(self.peek(0), b'u' | b'U') {
                // Behind the first half of a pair stands a whole character; elsewhere a byte may be any of one.
                let near = |at| self.sql.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
                pair.end().map_err(|e| self.error_near(e.message(), self.at - 1, self.at - 1 + near(self.at - 1)))?;
            }
            match b {
                b'\'' if self.peek(0) == b'\'' => {
                    out.push(b'\'');
                    self.at += 1;
                }
                b'\'' => {
                    if !self.continues()? {
                        break;
                    }
                    self.at += 1;
                }
                b'\\' => self.escape(start, &mut out, &mut pair)?,
                _ => out.push(b),
            }
        }
        let text = String::from_utf8(out).map_err(|_| bad_encoding(start))?;
        if text.contains('\0') {
            return Err(bad_encoding(start));
        }
        Ok(Tok::Str(Cow::Owned(text)))
    }

    fn escape(&mut self, start: usize, out: &mut Vec<u8>, pair: &mut unicode::Pair) -> Result<()> {
        let Some(&b) = self.bytes.get(self.at) else {
            return Err(self.error("unterminated quoted string", start));
        };
        self.at += 1;
        match b {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'0'..=b'7' => {
                let mut v = u32::from(b - b'0');
                for _ in 0..2 {
                    if !matches!(self.peek(0), b'0'..=b'7') {
                        break;
                    }
                    v = v * 8 + u32::from(self.peek(0) - b'0');
                    self.at += 1;
                }
                out.push(v as u8);
            }
            b'x' if self.peek(0).is_ascii_hexdigit() => out.push(self.hex(2) as u8),
            b'u' | b'U' => {
                let want = if b == b'u' { 4 } else { 8 };
                let from = self.at;
                let v = self.hex(want);
                if self.at - from != want {
                    return Err(SqlError::new(code::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape")
                        .hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
                        .at(from as Pos - 2));
                }
                let c = pair.next(v).map_err(|e| self.error_near(e.message(), from - 2, self.at))?;
                out.extend(c.into_iter().flat_map(|c| c.to_string().into_bytes()));
            }
            _ => out.push(b),
        }
        Ok(())
    }

    fn hex(&mut self, digits_max: usize) -> u32 {
        let mut v = 0u32;
        for _ in 0..digits_max {
            let Some(d) = (self.peek(0) as char).to_digit(16) else {
                break;
            };
            v = (v << 4) | d;
            self.at += 1;
        }
        v
    }

    fn bit_string(&mut self, start: usize) -> Result<Tok<'a>> {
        self.at = start + 2;
        self.until_quote(b'\'', start, "unterminated bit string literal")?;
        Ok(Tok::BitStr(&self.sql[start..self.at]))
    }

    fn param(&mut self, start: usize) -> Result<Tok<'a>> {
        self.at += 1;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        if is_ident_start(self.peek(0)) {
            let end = self.at + self.sql[self.at..].bytes().take_while(|b| is_ident_part(*b)).count();
            return Err(self.error_near("trailing junk after parameter", start, end));
        }
        match self.sql[start + 1..self.at].parse::<u32>() {
            Ok(n) if n <= 65_535 && n > 0 => Ok(Tok::Param(n)),
            _ => {
                let text = &self.sql[start..self.at];
                Err(SqlError::new(code::UNDEFINED_PARAMETER, format!("there is no parameter {text}")).at(start as Pos))
            }
        }
    }

    fn dollar_string(&mut self, start: usize) -> Result<Tok<'a>> {
        let mut end = start + 1;
        while self.bytes.get(end).is_some_and(|&b| is_ident_part(b) && b != b'$') {
            end += 1;
        }
        if self.bytes.get(end) != Some(&b'$') {
            return Err(self.error_near("syntax error", start, start + 1));
        }
        let tag = &self.sql[start..=end];
        match self.sql[end + 1..].find(tag) {
            None => Err(self.error("unterminated dollar-quoted string", start)),
            Some(n) => {
                let text = &self.sql[end + 1..end + 1 + n];
                self.at = end + 1 + n + tag.len();
                Ok(Tok::Str(Cow::Borrowed(text)))
            }
        }
    }

    fn number(&mut self, start: usize) -> Result<Tok<'a>> {
        let digits = |l: &mut Self| {
            while l.peek(0).is_ascii_digit() {
                l.at += 1;
            }
        };
        let mut int = true;
        digits(self);
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            int = false;
            self.at += 1;
            digits(self);
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                int = false;
                self.at += 1 + sign;
                digits(self);
            }
        }
        if is_ident_start(self.peek(0)) {
            while is_ident_part(self.peek(0)) {
                self.at += 1;
            }
            return Err(self.error_near("trailing junk after numeric literal", start, self.at));
        }
        let text = &self.sql[start..self.at];
        Ok(if int { Tok::Int(text) } else { Tok::Num(text) })
    }

    /// The longest run of operator characters, cut before a comment, and without a trailing `+` or `-` unless
    /// a character stands in it that SQL's own operators lack.
    fn operator(&mut self, start: usize) -> Tok<'a> {
        let mut end = start;
        while self.bytes.get(end).is_some_and(|b| OP_CHARS.contains(b)) {
            let two = self.bytes.get(end..end + 2).unwrap_or(b"");
            if end > start && (two == b"--" || two == b"/*") {
                break;
            }
            end += 1;
        }
        let special = self.bytes[start..end].iter().any(|b| b"~!@#^&|`?%".contains(b));
        while end > start + 1 && !special && matches!(self.bytes[end - 1], b'+' | b'-') {
            end -= 1;
        }
        self.at = end;
        match &self.sql[start..end] {
            "!=" => Tok::Op("<>"),
            "=>" => Tok::EqualsGreater,
            op => Tok::Op(op),
        }
    }
}

fn bad_encoding(start: usize) -> SqlError {
    SqlError::new(code::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"").at(start as Pos)
}
