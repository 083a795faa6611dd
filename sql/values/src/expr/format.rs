//! format(): `%s`, `%I` and `%L` with positions, widths and alignment (text_format, src/backend/utils/adt/varlena.c).

use super::eval::Env;
use super::functions::s;
use super::text_functions::{quoted_ident, quoted_literal, shown, too_large};
use crate::error::{Result, SqlError, code};
use crate::types::Datum;
use clearway_base::breath;

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn unterminated() -> SqlError {
    bad("unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")
}

/// Where a width comes from.
#[derive(Clone, Copy)]
enum Width {
    Given(i64),
    /// An argument: the next one, or that of a number.
    Argument(Option<usize>),
}

/// What stands between `%` and its letter.
struct Specifier {
    argument: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

/// The format, from behind a `%`.
struct Reader<'a>(std::iter::Peekable<std::str::Chars<'a>>);

impl Reader<'_> {
    fn peek(&mut self) -> Result<char> {
        self.0.peek().copied().ok_or_else(unterminated)
    }

    fn eat(&mut self, c: char) -> Result<bool> {
        let hit = self.peek()? == c;
        if hit {
            self.0.next();
        }
        Ok(hit)
    }

    fn number(&mut self) -> Result<Option<i64>> {
        let mut number = None;
        while let Some(digit) = self.peek()?.to_digit(10) {
            self.0.next();
            let next = number.unwrap_or(0) * 10 + i64::from(digit);
            if next > i64::from(i32::MAX) {
                return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"));
            }
            number = Some(next);
        }
        Ok(number)
    }

    fn specifier(&mut self) -> Result<Specifier> {
        let place = |n: i64| match n {
            0 => Err(bad("format specifies argument 0, but arguments are numbered from 1")),
            n => Ok(n as usize),
        };
        let mut out = Specifier { argument: None, left: false, width: Width::Given(0), kind: ' ' };
        if let Some(n) = self.number()? {
            if !self.eat('$')? {
                (out.width, out.kind) = (Width::Given(n), self.peek()?);
                return Ok(out);
            }
            out.argument = Some(place(n)?);
        }
        while self.eat('-')? {
            out.left = true;
        }
        if self.eat('*')? {
            let at = match self.number()? {
                None => None,
                Some(_) if !self.eat('$')? => return Err(bad("width argument position must be ended by \"$\"")),
                Some(n) => Some(place(n)?),
            };
            out.width = Width::Argument(at);
        } else if let Some(n) = self.number()? {
            out.width = Width::Given(n);
        }
        out.kind = self.peek()?;
        Ok(out)
    }
}

/// The arguments behind the format, and the number of the next one, from 1.
struct Arguments<'a> {
    all: &'a [Datum],
    next: usize,
}

impl<'a> Arguments<'a> {
    fn take(&mut self, at: Option<usize>) -> Result<&'a Datum> {
        let at = at.unwrap_or(self.next);
        self.next = at + 1;
        self.all.get(at - 1).ok_or_else(|| bad("too few arguments for format()"))
    }
}

fn width_of(value: &Datum, e: &Env<'_>) -> Result<i64> {
    match value {
        Datum::Null => Ok(0),
        Datum::Int2(_) | Datum::Int4(_) => Ok(value.as_i64().unwrap_or(0)),
        other => {
            let text = shown(other, e)?;
            let integer = crate::types::text::input(crate::types::oid::INT4.into(), &text, &e.session.conversion())?;
            Ok(integer.as_i64().unwrap_or(0))
        }
    }
}

fn put(out: &mut String, text: &str, left: bool, width: i64) -> Result<()> {
    if width <= i64::from(i32::MIN) {
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"));
    }
    let missing = (width.unsigned_abs() as usize).saturating_sub(if width == 0 { 0 } else { text.chars().count() });
    clearway_base::memory::claim(missing + text.len())?;
    breath::step_bytes(missing)?;
    let blanks = std::iter::repeat_n(' ', missing);
    if left || width < 0 {
        out.push_str(text);
        out.extend(blanks);
    } else {
        out.extend(blanks);
        out.push_str(text);
    }
    if out.len() > super::text_functions::RESULT_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

/// format()
pub fn format(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let mut arguments = Arguments { all: &a[1..], next: 1 };
    let mut out = String::new();
    let mut reader = Reader(s(a, 0).chars().peekable());
    while let Some(c) = reader.0.next() {
        breath::step(8)?;
        if c != '%' || reader.eat('%')? {
            out.push(c);
            continue;
        }
        let specifier = reader.specifier()?;
        reader.0.next();
        let kind = specifier.kind;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(
                bad(format!("unrecognized format() type specifier \"{kind}\"")).hint("For a single \"%\" use \"%%\".")
            );
        }
        let width = match specifier.width {
            Width::Given(width) => width,
            Width::Argument(at) => width_of(arguments.take(at)?, e)?,
        };
        let text = match (kind, arguments.take(specifier.argument)?) {
            ('s', Datum::Null) => String::new(),
            ('I', Datum::Null) => {
                return Err(SqlError::new("22004", "null values cannot be formatted as an SQL identifier"));
            }
            (_, Datum::Null) => "NULL".to_owned(),
            ('s', value) => shown(value, e)?,
            ('I', value) => quoted_ident(&shown(value, e)?)?,
            (_, value) => quoted_literal(&shown(value, e)?)?,
        };
        put(&mut out, &text, specifier.left, width)?;
    }
    Ok(Datum::text(out))
}
