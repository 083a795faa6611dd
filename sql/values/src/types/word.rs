//! money, macaddr, macaddr8, xid8 and tid: types whose values are 64 bits that sort as unsigned numbers (cents with their sign bit turned over, a
//! tid's block above the 16 bits of its offset).

use super::datum::Datum;
use super::numeric::Numeric;
use super::text::invalid;
use super::{Oid, oid};
use crate::error::{Result, SqlError, code};

/// Whether a type is one of them.
pub fn is_word(ty: Oid) -> bool {
    matches!(ty, oid::MONEY | oid::MACADDR | oid::MACADDR8 | oid::XID8 | oid::TID)
}

/// An amount of cents.
pub fn money(cents: i64) -> Datum {
    Datum::Word(cents as u64 ^ 1 << 63, oid::MONEY)
}

/// The cents of an amount.
pub fn cents(word: u64) -> i64 {
    (word ^ 1 << 63) as i64
}

/// Reads a value.
///
/// # Errors
/// 22P02, 22003.
pub fn parse(ty: Oid, text: &str) -> Result<Datum> {
    match ty {
        oid::MONEY => parse_money(text).map(money),
        oid::MACADDR => parse_mac(text).map(|word| Datum::Word(word, ty)),
        oid::MACADDR8 => parse_mac8(text).map(|word| Datum::Word(word, ty)).ok_or_else(|| invalid("macaddr8", text)),
        oid::TID => parse_tid(text).map(|word| Datum::Word(word, ty)).ok_or_else(|| invalid("tid", text)),
        _ => Ok(Datum::Word(parse_xid8(text), ty)),
    }
}

/// The text of a value.
pub fn format(word: u64, ty: Oid) -> String {
    match ty {
        oid::MONEY => format_money(cents(word)),
        oid::MACADDR => octets(&word.to_be_bytes()[2..]),
        oid::MACADDR8 => octets(&word.to_be_bytes()),
        oid::TID => format!("({},{})", word >> 16, word & 0xffff),
        _ => word.to_string(),
    }
}

fn octets(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<String>>().join(":")
}

/// `$1,234.56`, `-1234.5`, `(0.07)`, as in the locale C: digits past the cents round.
fn parse_money(text: &str) -> Result<i64> {
    let out_of_range =
        || SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{text}\" is out of range for type money"));
    let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let skip = |rest: &str| {
        let rest = rest.trim_start_matches(blank);
        rest.strip_prefix('$').unwrap_or(rest).trim_start_matches(blank).len()
    };
    let mut rest = &text[text.len() - skip(text)..];
    let mut negative = rest.starts_with(['-', '(']);
    if negative || rest.starts_with('+') {
        rest = &rest[1..];
    }
    rest = &rest[rest.len() - skip(rest)..];
    // Kept negative, since there is one negative number more.
    let (mut value, mut decimals) = (0_i64, None);
    while let Some(c) = rest.chars().next() {
        match (c.to_digit(10), decimals) {
            (Some(digit), None | Some(0 | 1)) => {
                let next = value.checked_mul(10).and_then(|v| v.checked_sub(i64::from(digit)));
                value = next.ok_or_else(out_of_range)?;
                decimals = decimals.map(|n| n + 1);
            }
            (None, None) if c == '.' => decimals = Some(0),
            (None, _) if c == ',' => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    if rest.starts_with(|c: char| ('5'..='9').contains(&c)) {
        value = value.checked_sub(1).ok_or_else(out_of_range)?;
    }
    for _ in decimals.unwrap_or(0)..2 {
        value = value.checked_mul(10).ok_or_else(out_of_range)?;
    }
    rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    for c in rest.chars() {
        match c {
            '-' => negative = true,
            ')' | '+' | '$' => {}
            c if blank(c) => {}
            _ => return Err(invalid("money", text)),
        }
    }
    if negative { Ok(value) } else { value.checked_neg().ok_or_else(out_of_range) }
}

fn format_money(cents: i64) -> String {
    let (sign, amount) = (if cents < 0 { "-" } else { "" }, cents.unsigned_abs());
    let digits = (amount / 100).to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}${grouped}.{:02}", amount % 100)
}

/// The amount as a number.
pub fn money_number(word: u64) -> Numeric {
    Numeric::of(i128::from(cents(word)), 2)
}

/// The amount of a number, rounded to cents.
///
/// # Errors
/// 22003, 0A000 for a number that is none.
pub fn money_of(n: &Numeric) -> Result<Datum> {
    n.mul(&Numeric::from(100)).round(0).to_i64("bigint").map(money)
}

/// 22003.
pub fn money_out_of_range() -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

/// The sum of two amounts.
///
/// # Errors
/// 22003.
pub fn sum(a: u64, b: u64) -> Result<Datum> {
    cents(a).checked_add(cents(b)).map(money).ok_or_else(money_out_of_range)
}

/// Six numbers of hexadecimal digits, in one of the seven forms.
fn parse_mac(text: &str) -> Result<u64> {
    let bad = || invalid("macaddr", text);
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let hex = |part: &str| (!part.is_empty()).then(|| u64::from_str_radix(part, 16).ok()).flatten();
    let separator = trimmed.chars().find(|c| matches!(c, ':' | '-' | '.'));
    let parts: Vec<&str> = match separator {
        Some(separator) => trimmed.split(separator).collect(),
        None => vec![trimmed],
    };
    let numbers: Vec<u64> = match (parts.len(), separator) {
        (6, Some(':' | '-')) => parts.iter().map(|part| hex(part).ok_or_else(bad)).collect::<Result<_>>()?,
        (3, Some('.' | '-')) | (2, Some(':' | '-')) | (1, None) => {
            let width = 12 / parts.len();
            if !parts.iter().all(|part| part.len() == width && part.is_ascii()) {
                return Err(bad());
            }
            let all: String = parts.concat();
            (0..6).map(|i| hex(&all[2 * i..2 * i + 2]).ok_or_else(bad)).collect::<Result<_>>()?
        }
        _ => return Err(bad()),
    };
    if numbers.iter().any(|n| *n > 255) {
        let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(numbers.iter().fold(0, |word, n| word << 8 | n))
}

/// Six or eight pairs of digits; what stands between them is the same everywhere.
fn parse_mac8(text: &str) -> Option<u64> {
    let mut rest = text.trim_matches(|c: char| c.is_ascii_whitespace()).as_bytes();
    let (mut bytes, mut separator) = (Vec::new(), None);
    while let [a, b, behind @ ..] = rest {
        let digit = |d: &u8| (*d as char).to_digit(16);
        bytes.push((digit(a)? * 16 + digit(b)?) as u8);
        rest = behind;
        if let [c @ (b':' | b'-' | b'.'), behind @ ..] = rest {
            if *separator.get_or_insert(*c) != *c || behind.is_empty() {
                return None;
            }
            rest = behind;
        }
    }
    if !rest.is_empty() {
        return None;
    }
    match bytes.as_slice() {
        [a, b, c, d, e, f] => Some(u64::from_be_bytes([*a, *b, *c, 0xff, 0xfe, *d, *e, *f])),
        all => all.try_into().ok().map(u64::from_be_bytes),
    }
}

/// `(block,offset)`: the parts as the C library's strtoul reads them with base 10, the block of 32 bits, the offset of 16. What stands before the parenthesis
/// and behind it does not count.
fn parse_tid(text: &str) -> Option<u64> {
    let (_, behind) = text.split_once('(')?;
    let (block, offset) = behind.split_once(',')?;
    let (offset, _) = offset.split_once(')')?;
    let number = |part: &str| {
        if part.is_empty() {
            return Some(0);
        }
        let part = part.trim_start();
        let (negative, digits) = match part.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, part.strip_prefix('+').unwrap_or(part)),
        };
        // parse() takes a sign of its own.
        let value: i128 = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'))?.into();
        Some(if negative { -value } else { value })
    };
    let block = number(block)?;
    // PostgreSQL takes a negative block of 32 bits as the unsigned number of the same bits.
    let block = u32::try_from(block).ok().or_else(|| i32::try_from(block).ok().map(|b| b as u32))?;
    let offset = u16::try_from(number(offset)?).ok()?;
    Some(u64::from(block) << 16 | u64::from(offset))
}

/// As the C library's strtoull reads it with base 0: what is no number is 0.
pub(super) fn parse_xid8(text: &str) -> u64 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let mut value = 0_u64;
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        match value.checked_mul(u64::from(radix)).and_then(|v| v.checked_add(u64::from(digit))) {
            Some(next) => value = next,
            None => return u64::MAX,
        }
    }
    if negative { value.wrapping_neg() } else { value }
}

/// Reads the binary form.
pub fn input(ty: Oid, bytes: &[u8]) -> Option<Datum> {
    if matches!(ty, oid::MACADDR | oid::TID) {
        let six: [u8; 6] = bytes.try_into().ok()?;
        return Some(Datum::Word(six.iter().fold(0, |word, b| word << 8 | u64::from(*b)), ty));
    }
    let word = u64::from_be_bytes(bytes.try_into().ok()?);
    Some(if ty == oid::MONEY { money(word as i64) } else { Datum::Word(word, ty) })
}

/// Writes the binary form.
pub fn output(word: u64, ty: Oid, out: &mut Vec<u8>) {
    match ty {
        oid::MACADDR | oid::TID => out.extend(&word.to_be_bytes()[2..]),
        oid::MONEY => out.extend(cents(word).to_be_bytes()),
        _ => out.extend(word.to_be_bytes()),
    }
}

/// Whether a cast is one of these types' own.
pub fn converts(value: &Datum, to: Oid) -> bool {
    matches!(
        (value, to),
        (Datum::Word(_, oid::MONEY), oid::NUMERIC)
            | (Datum::Numeric(_) | Datum::Int4(_) | Datum::Int8(_), oid::MONEY)
            | (Datum::Word(_, oid::MACADDR), oid::MACADDR8)
            | (Datum::Word(_, oid::MACADDR8), oid::MACADDR)
            | (Datum::Word(_, oid::XID8), oid::XID)
    )
}

/// Casts between these types, and between money and numbers.
///
/// # Errors
/// 22003.
pub fn convert(value: &Datum, to: Oid) -> Result<Datum> {
    match (value, to) {
        (Datum::Word(w, oid::MONEY), oid::NUMERIC) => Ok(Datum::numeric(money_number(*w))),
        (Datum::Numeric(n), oid::MONEY) => money_of(n),
        (Datum::Int4(_) | Datum::Int8(_), oid::MONEY) => {
            let cents = value.as_i64().and_then(|v| v.checked_mul(100)).map(money);
            cents.ok_or_else(|| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))
        }
        (Datum::Word(w, oid::MACADDR), oid::MACADDR8) => {
            Ok(Datum::Word((w & 0xffff_ff00_0000) << 16 | 0xff_fe00_0000 | w & 0xff_ffff, to))
        }
        (Datum::Word(w, oid::MACADDR8), oid::MACADDR) if w >> 24 & 0xffff == 0xfffe => {
            Ok(Datum::Word(w >> 16 & 0xffff_ff00_0000 | w & 0xff_ffff, to))
        }
        (Datum::Word(_, oid::MACADDR8), oid::MACADDR) => {
            let message = "macaddr8 data out of range to convert to macaddr";
            Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message).hint(
                "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, \
                 for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
            ))
        }
        (Datum::Word(w, oid::XID8), oid::XID) => Ok(Datum::Oid(*w as u32)),
        _ => Err(SqlError::internal("a cast that is not there")),
    }
}
