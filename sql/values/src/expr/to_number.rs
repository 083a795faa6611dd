//! to_number (src/backend/utils/adt/formatting.c, `NUM_processor` and `NUM_numpart_from_char`).

use super::eval::Env;
use super::functions::s;
use super::number_format::{Format, Key, Piece, SignPlace};
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, Numeric};
use clearway_base::breath;

/// A text that is being read by a format.
struct Reader<'t> {
    format: &'t Format,
    text: &'t [u8],
    at: usize,
    /// A blank until a sign is read.
    sign: u8,
    number: Vec<u8>,
    /// Digits read, before the point and behind it, and whether the point was read.
    pre: usize,
    post: usize,
    point: bool,
}

pub(super) fn to_number(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (text, format) = (s(a, 0), s(a, 1));
    if format.is_empty() {
        return Ok(Datum::Null);
    }
    let format = Format::parse(format)?;
    for (used, name) in [(format.exponent, "EEEE"), (format.roman, "RN")] {
        if used {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("\"{name}\" not supported for input")));
        }
    }
    let mut reader = Reader {
        format: &format,
        text: text.as_bytes(),
        at: 0,
        sign: b' ',
        number: Vec::new(),
        pre: 0,
        post: 0,
        point: false,
    };
    reader.read()?;
    let post = reader.post;
    let mut number = vec![reader.sign];
    number.append(&mut reader.number);
    if number.last() == Some(&b'.') {
        number.pop();
    }
    let number = String::from_utf8_lossy(&number).into_owned();
    let bad = || {
        let message = format!("invalid input syntax for type numeric: \"{number}\"");
        SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
    };
    let value = Numeric::parse(number.trim_start_matches(' ')).ok_or_else(bad)??;
    let precision = format.pre + format.multi + post;
    let narrow = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let value = value.fit(narrow(precision), narrow(post))?;
    Ok(Datum::Numeric(if format.shift { shifted_back(&value, format.multi)? } else { value }))
}

/// Divided by the power of ten that V stands for.
fn shifted_back(value: &Numeric, multi: usize) -> Result<Numeric> {
    let exponent = Numeric::from(-i64::try_from(multi).unwrap_or(i64::MAX));
    Ok(value.mul(&Numeric::from(10).pow(&exponent)?))
}

impl Reader<'_> {
    fn current(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Behind the character at hand.
    fn skip(&mut self) {
        self.at += 1;
        while self.current().is_some_and(|b| b & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    /// Skips some characters that can't be part of a number.
    fn skip_strange(&mut self, count: usize) {
        for _ in 0..count {
            match self.current() {
                Some(b) if !b"0123456789.,+-".contains(&b) => self.skip(),
                _ => return,
            }
        }
    }

    fn read(&mut self) -> Result<()> {
        for piece in &self.format.pieces {
            breath::step(8)?;
            let Some(current) = self.current() else { return Ok(()) };
            let key = match piece {
                Piece::Pattern(key, _) => *key,
                Piece::Char(_) => {
                    self.skip();
                    continue;
                }
            };
            match key {
                Key::Nine | Key::Zero | Key::Dot | Key::Decimal => {
                    self.place(key);
                    self.at += 1;
                }
                Key::Comma | Key::Group if !self.format.fill && current == b',' => self.at += 1,
                Key::Currency => self.skip_strange(1),
                Key::Ordinal if !self.format.decimal => self.skip_strange(2),
                Key::Minus if current == b'-' => self.take_sign(),
                Key::Plus if current == b'+' => self.take_sign(),
                Key::SignHere if matches!(current, b'-' | b'+') => self.take_sign(),
                Key::Minus | Key::Plus | Key::SignHere => self.skip_strange(1),
                _ => {}
            }
        }
        Ok(())
    }

    fn take_sign(&mut self) {
        self.sign = self.text[self.at];
        self.at += 1;
    }

    /// A place of the number. The caller goes to the next character.
    fn place(&mut self, key: Key) {
        if self.current() == Some(b' ') {
            self.at += 1;
        }
        let Some(first) = self.current() else { return };
        if self.sign == b' ' && matches!(key, Key::Nine | Key::Zero) && self.pre + self.post == 0 {
            let sign = match first {
                b'-' => Some(b'-'),
                b'+' => Some(b'+'),
                b'<' if self.format.bracket => Some(b'-'),
                _ => None,
            };
            if let Some(sign) = sign {
                self.sign = sign;
                self.at += 1;
            }
        }
        let Some(current) = self.current() else { return };
        let mut read = false;
        if current.is_ascii_digit() {
            if self.point && self.post == self.format.post {
                return;
            }
            self.number.push(current);
            *(if self.point { &mut self.post } else { &mut self.pre }) += 1;
            read = true;
        } else if self.format.decimal && !self.point && current == b'.' {
            self.number.push(b'.');
            (self.point, read) = (true, true);
        }
        if self.sign != b' ' || self.pre + self.post == 0 {
            return;
        }
        let signed = self.format.sign != SignPlace::None;
        if signed && read {
            // S stands right behind the last digit.
            if let Some(sign @ (b'-' | b'+')) = self.text.get(self.at + 1) {
                self.sign = *sign;
                self.at += 1;
            }
        } else if !read && !signed && (self.format.plus || self.format.minus) && matches!(current, b'-' | b'+') {
            self.sign = current;
        }
    }
}
