//! Rows of COPY FROM that are taken where they stand: their values borrow the line, and no value of the language is made of them.
//!
//! # Invariants
//! - CPY-6: a row that is taken so is the row that its conversion makes (`from::values`). A line that is not plain, a text that the rules here do not read, a row with which the
//!   statement does more than put it in (FED-1), and one that cannot be taken now are left to the conversion, which makes every error.

use super::lines::{Line, Lines, plain_len};
use super::options::{Form, Format};
use crate::context::convert::{to_value, without_blanks};
use crate::context::core::Core;
use crate::error::Result;
use crate::exec::feed::Feed;
use crate::planner::plan::Insert;
use crate::types::text::{self, Conversion};
use crate::types::{SqlType, cast, oid};
use clearway_engine::value::{Value, ValueRef};
use std::ops::Range;

/// How the text of a column becomes its value.
enum Way {
    /// An integer between these two.
    Integer(i64, i64),
    /// The text, of at most so many characters.
    Text(usize),
    /// The same without the blanks at its end.
    Blanks(usize),
    /// By the type's own rules.
    Converted(SqlType),
}

impl Way {
    fn of(ty: SqlType) -> Way {
        let characters = usize::try_from(ty.modifier - 4).ok().filter(|_| ty.modifier >= 0).unwrap_or(usize::MAX);
        match ty.oid {
            oid::INT2 => Way::Integer(i16::MIN.into(), i16::MAX.into()),
            oid::INT4 => Way::Integer(i32::MIN.into(), i32::MAX.into()),
            oid::INT8 => Way::Integer(i64::MIN, i64::MAX),
            oid::TEXT => Way::Text(usize::MAX),
            oid::VARCHAR => Way::Text(characters),
            oid::BPCHAR => Way::Blanks(characters),
            _ => Way::Converted(ty),
        }
    }
}

impl Way {
    /// The value of a text, unless that is read by the type's own rules or by no rule here.
    #[inline]
    fn read<'l>(&self, text: &'l [u8]) -> Option<ValueRef<'l>> {
        match self {
            Way::Integer(min, max) => integer(text).filter(|i| min <= i && i <= max).map(ValueRef::Int),
            Way::Text(max) => fitting(text, *max),
            Way::Blanks(max) => fitting(without_blanks(text), *max),
            Way::Converted(_) => None,
        }
    }
}

/// What became of a line.
pub(super) enum Taken {
    /// It is in.
    Done,
    /// It is to be converted.
    Unlike,
    /// It is to be converted, and fed before another one is taken.
    Later,
}

/// What reads the lines of one COPY.
pub(super) struct Direct {
    ways: Vec<Way>,
    /// Some columns are converted.
    converts: bool,
    /// Where the values stand in the line; none: NULL.
    places: Vec<Option<Range<usize>>>,
    /// The values of columns that are converted, in their order.
    converted: Vec<Value>,
    /// Memory for the row.
    row: Vec<ValueRef<'static>>,
}

impl Direct {
    /// For a COPY without FORCE options; none: no row of it can be taken.
    pub(super) fn new(form: &Form, types: &[SqlType], feed: &Feed, insert: &Insert) -> Option<Direct> {
        if form.format == Format::Binary || form.encoding.differs() || types.is_empty() {
            return None;
        }
        let ways: Vec<Way> = types.iter().map(|ty| Way::of(*ty)).collect();
        let converts = ways.iter().any(|way| matches!(way, Way::Converted(_)));
        let read = Direct { ways, converts, places: Vec::new(), converted: Vec::new(), row: Vec::new() };
        feed.takes(insert, types.len()).then_some(read)
    }

    /// Takes a line, if it can be taken.
    pub(super) fn take(
        &mut self,
        (lines, line): (&Lines<'_>, &Line),
        conversion: &Conversion<'_>,
        (core, insert): (&Core, &Insert),
        feed: &mut Feed,
    ) -> Result<Taken> {
        let Some(text) = self.split(lines, line) else { return Ok(Taken::Unlike) };
        if !self.convert(text, conversion) {
            return Ok(Taken::Unlike);
        }
        let mut row = reused(std::mem::take(&mut self.row));
        let taken = match self.borrow(text, &mut row) {
            false => Taken::Unlike,
            true => match feed.take(core, insert, &row)? {
                true => Taken::Done,
                false => Taken::Later,
            },
        };
        self.row = reused(row);
        Ok(taken)
    }

    /// Finds the values of a line that is a text, and has as many as there are columns.
    fn split<'l>(&mut self, lines: &'l Lines<'_>, line: &Line) -> Option<&'l str> {
        let (form, bytes) = (lines.form, lines.bytes(line));
        let (delimiter, null) = (form.delimiter, form.null.as_bytes());
        if form.format == Format::Csv && line.has_escapes || memchr::memchr(0, bytes).is_some() {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?;
        // The text form's escapes, of which the text that stands for NULL may have one.
        let escape = if line.has_escapes { b'\\' } else { delimiter };
        self.places.clear();
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let mut len = plain_len(rest, [delimiter, escape]);
            let mut is_null = rest[..len] == *null;
            if len == 0 && line.has_escapes && rest.starts_with(b"\\") {
                (is_null, len) = (rest.starts_with(null), null.len());
                if !is_null {
                    return None;
                }
            }
            self.places.push((!is_null).then(|| at..at + len));
            at += len;
            match bytes.get(at) {
                None if self.places.len() == self.ways.len() => return Some(text),
                Some(byte) if *byte == delimiter && self.places.len() < self.ways.len() => at += 1,
                _ => return None,
            }
        }
    }

    /// Converts the columns that need it; false: one cannot be.
    fn convert(&mut self, line: &str, conversion: &Conversion<'_>) -> bool {
        if !self.converts {
            return true;
        }
        self.converted.clear();
        for (way, place) in self.ways.iter().zip(&self.places) {
            let Way::Converted(ty) = way else { continue };
            let Some(text) = place.clone().and_then(|place| line.get(place)) else {
                // A domain may refuse a NULL.
                if crate::types::user::is_domain(ty.oid) {
                    return false;
                }
                continue;
            };
            match text::input(*ty, text, conversion) {
                Ok(value) => self.converted.push(to_value(&value)),
                Err(_) => return false,
            }
        }
        true
    }

    /// The row's values; false: one is not read by the rules here.
    fn borrow<'l>(&'l self, line: &'l str, row: &mut Vec<ValueRef<'l>>) -> bool {
        let mut converted = self.converted.iter();
        for (way, place) in self.ways.iter().zip(&self.places) {
            let Some(text) = place.clone().and_then(|place| line.as_bytes().get(place)) else {
                row.push(ValueRef::Null);
                continue;
            };
            let value = match way {
                Way::Converted(_) => converted.next().map(Value::borrow),
                _ => way.read(text),
            };
            match value {
                Some(value) => row.push(value),
                None => return false,
            }
        }
        true
    }
}

/// The memory of a row for another one, empty.
fn reused<'a>(mut row: Vec<ValueRef<'_>>) -> Vec<ValueRef<'a>> {
    row.clear();
    row.into_iter().map(|_| ValueRef::Null).collect()
}

/// A text of at most so many characters.
fn fitting(text: &[u8], max: usize) -> Option<ValueRef<'_>> {
    // A character has a byte at least.
    (text.len() <= max || cast::characters(text) <= max).then_some(ValueRef::Bytes(text))
}

/// An integer of digits alone, behind a minus or not, as most are written.
fn integer(text: &[u8]) -> Option<i64> {
    let (digits, negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = 10 * value + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::text::NoNames;

    #[test]
    fn what_the_rules_read_is_what_the_types_read() {
        // CPY-6
        let types = [oid::INT2, oid::INT4, oid::INT8, oid::TEXT, oid::VARCHAR, oid::BPCHAR].map(SqlType::new);
        let short = [oid::VARCHAR, oid::BPCHAR].map(|oid| SqlType { oid, modifier: 4 + 5 });
        let texts = [
            "",
            "0",
            "007",
            "-1",
            "-0",
            "-",
            "--1",
            "+1",
            " 1",
            "1 ",
            "1.5",
            "32767",
            "32768",
            "-32768",
            "-32769",
            "2147483647",
            "2147483648",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "123456789012345678",
            "abc",
            "abcde",
            "abcdef",
            "abc  ",
            "abcde   ",
            "abcde  x",
            "     ",
            "         ",
            "aou\u{e4}",
            "\u{e4}\u{f6}\u{fc}\u{df}\u{20ac}",
            "\u{e4}\u{f6}\u{fc}\u{df}\u{20ac}x",
            "\u{20ac}       ",
            "a b c d e f g h",
        ];
        let format = crate::types::datetime::Format::default();
        let conversion = Conversion { format: &format, now: 0, names: &NoNames };
        let mut read = 0;
        for ty in types.into_iter().chain(short) {
            for text in texts {
                let Some(value) = Way::of(ty).read(text.as_bytes()) else { continue };
                let expected = text::input(ty, text, &conversion).map(|value| to_value(&value));
                assert_eq!(expected.ok(), Some(Value::from(value)), "CPY-6: {text:?} as {ty:?}");
                read += 1;
            }
        }
        assert!(read > 100, "{read} texts were read");
    }
}
