//! The type `"char"`: one byte.
//!
//! A value is kept as its text form, as PostgreSQL shows it: nothing for zero, the character itself for ASCII, and for a byte above it
//! a backslash and three octal digits.

use super::datum::Datum;

/// The byte of a text: `\ooo` names any, else the first one counts.
pub fn parse(text: &str) -> Datum {
    match *text.as_bytes() {
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            of_byte((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
        }
        [first, ..] => of_byte(first),
        [] => Datum::text(""),
    }
}

/// The value of a byte.
pub fn of_byte(byte: u8) -> Datum {
    match byte {
        0 => Datum::text(""),
        1..=0x7f => Datum::text(char::from(byte).to_string()),
        _ => Datum::text(format!("\\{byte:03o}")),
    }
}

/// The byte of a value's text.
pub fn byte(text: &str) -> u8 {
    match *text.as_bytes() {
        [b'\\', a @ b'2'..=b'3', b, c] => (a - b'0')
            .wrapping_mul(64)
            .wrapping_add(b.wrapping_sub(b'0').wrapping_mul(8))
            .wrapping_add(c.wrapping_sub(b'0')),
        [first, ..] => first,
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_reads_back() {
        for n in 0..=u8::MAX {
            let Datum::Text(shown) = of_byte(n) else { panic!("a text") };
            assert_eq!(byte(&shown), n);
            assert_eq!(parse(&shown).as_str(), Some(&*shown), "{n}");
        }
        assert_eq!(parse("\\101").as_str(), Some("A"));
        assert_eq!(parse("\\1").as_str(), Some("\\"));
    }
}
