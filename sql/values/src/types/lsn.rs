//! pg_lsn: a position in the log, shown as the two halves of its 64 bits.

use super::Datum;
use super::numeric::Numeric;
use crate::error::{Result, SqlError, code};

/// `16/B374D848`; none: the text is no position.
pub fn parse(text: &str) -> Option<u64> {
    let half = |digits: &str| {
        let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| plain)
    };
    let (high, low) = text.split_once('/')?;
    Some(half(high)? << 32 | half(low)?)
}

/// Its text.
pub fn format(lsn: u64) -> String {
    format!("{:X}/{:X}", lsn >> 32, lsn & 0xffff_ffff)
}

/// The number of a position.
pub fn number(lsn: u64) -> Numeric {
    Numeric::of(i128::from(lsn), 0)
}

/// The position of a number, rounded to a whole one.
///
/// # Errors
/// 22023 for a number that no position has, 0A000 for one that is none.
pub fn of_number(n: &Numeric) -> Result<Datum> {
    let text = n.round(0).to_string();
    let what = match text.as_str() {
        "NaN" => "NaN",
        "Infinity" | "-Infinity" => "infinity",
        digits => {
            let read = digits.parse().map(Datum::Lsn);
            return read.map_err(|_| SqlError::new(code::INVALID_PARAMETER_VALUE, "pg_lsn out of range"));
        }
    };
    Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to pg_lsn")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_two_halves() {
        for (text, lsn) in
            [("0/16B3748", 0x16B_3748), ("FFFFFFFF/FFFFFFFF", u64::MAX), ("ff/a", 0xff_0000_000a), ("0/0", 0)]
        {
            assert_eq!(parse(text), Some(lsn), "{text}");
            assert_eq!(format(lsn), text.to_uppercase());
        }
        for bad in
            ["", "/", "0/", "/0", "G/0", "-1/0", "+1/0", " 0/1", "0/1 ", "0/123456789", "123456789/0", "0/1/2", "01"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
