//! Functions and operators on money, macaddr and macaddr8.

use super::eval::Env;
use super::functions::{Function, table};
use crate::error::{Result, SqlError, code};
use crate::types::word::{cents, money};
use crate::types::{Datum, oid, word};

use oid::{FLOAT4, FLOAT8, INT2, INT4, INT8, MACADDR, MACADDR8, MONEY, NUMERIC, TEXT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "money"(INT4) MONEY strict |a, _| word::convert(&a[0], MONEY); "money"(INT8) MONEY strict |a, _| word::convert(&a[0], MONEY);
    "money"(NUMERIC) MONEY strict |a, _| word::convert(&a[0], MONEY); "numeric"(MONEY) NUMERIC strict |a, _| word::convert(&a[0], NUMERIC);
    "cash_words"(MONEY) TEXT strict |a, _| Ok(Datum::text(in_words(amount(a, 0))));
    "trunc"(MACADDR) MACADDR strict |a, _| Ok(Datum::Word(bits(a, 0) & 0xffff_ff00_0000, MACADDR));
    "trunc"(MACADDR8) MACADDR8 strict |a, _| Ok(Datum::Word(bits(a, 0) & 0xffff_ff00_0000_0000, MACADDR8));
    "macaddr8_set7bit"(MACADDR8) MACADDR8 strict |a, _| Ok(Datum::Word(bits(a, 0) | 0x0200_0000_0000_0000, MACADDR8));
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "+"(MONEY, MONEY) MONEY strict |a, _| word::sum(bits(a, 0), bits(a, 1));
    "-"(MONEY, MONEY) MONEY strict |a, _| exact(amount(a, 0).checked_sub(amount(a, 1)));
    "*"(MONEY, INT2) MONEY strict |a, _| times(a, 0, 1); "*"(INT2, MONEY) MONEY strict |a, _| times(a, 1, 0);
    "*"(MONEY, INT4) MONEY strict |a, _| times(a, 0, 1); "*"(INT4, MONEY) MONEY strict |a, _| times(a, 1, 0);
    "*"(MONEY, INT8) MONEY strict |a, _| times(a, 0, 1); "*"(INT8, MONEY) MONEY strict |a, _| times(a, 1, 0);
    "*"(MONEY, FLOAT4) MONEY strict |a, _| rounded(amount(a, 0) as f64 * real(a, 1)); "*"(FLOAT4, MONEY) MONEY strict |a, _| rounded(amount(a, 1) as f64 * real(a, 0));
    "*"(MONEY, FLOAT8) MONEY strict |a, _| rounded(amount(a, 0) as f64 * real(a, 1)); "*"(FLOAT8, MONEY) MONEY strict |a, _| rounded(amount(a, 1) as f64 * real(a, 0));
    "/"(MONEY, INT2) MONEY strict over; "/"(MONEY, INT4) MONEY strict over; "/"(MONEY, INT8) MONEY strict over;
    "/"(MONEY, FLOAT4) MONEY strict over_real; "/"(MONEY, FLOAT8) MONEY strict over_real; "/"(MONEY, MONEY) FLOAT8 strict ratio;
    "~"(MACADDR) MACADDR strict |a, _| Ok(Datum::Word(!bits(a, 0) & 0xffff_ffff_ffff, MACADDR));
    "~"(MACADDR8) MACADDR8 strict |a, _| Ok(Datum::Word(!bits(a, 0), MACADDR8));
    "&"(MACADDR, MACADDR) MACADDR strict |a, _| Ok(Datum::Word(bits(a, 0) & bits(a, 1), MACADDR)); "&"(MACADDR8, MACADDR8) MACADDR8 strict |a, _| Ok(Datum::Word(bits(a, 0) & bits(a, 1), MACADDR8));
    "|"(MACADDR, MACADDR) MACADDR strict |a, _| Ok(Datum::Word(bits(a, 0) | bits(a, 1), MACADDR)); "|"(MACADDR8, MACADDR8) MACADDR8 strict |a, _| Ok(Datum::Word(bits(a, 0) | bits(a, 1), MACADDR8));
};

fn bits(a: &[Datum], n: usize) -> u64 {
    match a.get(n) {
        Some(Datum::Word(word, _)) => *word,
        _ => 0,
    }
}

fn amount(a: &[Datum], n: usize) -> i64 {
    cents(bits(a, n))
}

fn real(a: &[Datum], n: usize) -> f64 {
    a.get(n).and_then(Datum::as_f64).unwrap_or(0.0)
}

fn integer(a: &[Datum], n: usize) -> i64 {
    a.get(n).and_then(Datum::as_i64).unwrap_or(0)
}

fn exact(cents: Option<i64>) -> Result<Datum> {
    cents.map(money).ok_or_else(word::money_out_of_range)
}

fn times(a: &[Datum], sum: usize, by: usize) -> Result<Datum> {
    exact(amount(a, sum).checked_mul(integer(a, by)))
}

fn rounded(cents: f64) -> Result<Datum> {
    let whole = cents.round_ties_even();
    exact((whole >= i64::MIN as f64 && whole < i64::MAX as f64).then_some(whole as i64))
}

fn division_by_zero() -> SqlError {
    SqlError::new(code::DIVISION_BY_ZERO, "division by zero")
}

fn over(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    match integer(a, 1) {
        0 => Err(division_by_zero()),
        by => exact(amount(a, 0).checked_div(by)),
    }
}

fn over_real(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if real(a, 1) == 0.0 { Err(division_by_zero()) } else { rounded(amount(a, 0) as f64 / real(a, 1)) }
}

fn ratio(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    match amount(a, 1) {
        0 => Err(division_by_zero()),
        by => Ok(Datum::Float8(amount(a, 0) as f64 / by as f64)),
    }
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number below 1,000, as PostgreSQL words it.
fn hundreds(n: u64) -> String {
    let below = |n: usize| match (n / 10, n % 10) {
        _ if n < 20 => SMALL[n].to_owned(),
        (tens, 0) => TENS[tens].to_owned(),
        (tens, ones) => format!("{} {}", TENS[tens], SMALL[ones]),
    };
    let (hundred, rest) = ((n / 100) as usize, (n % 100) as usize);
    match (hundred, rest) {
        (0, rest) => below(rest),
        (hundred, 0) => format!("{} hundred", SMALL[hundred]),
        (hundred, 1..=19) if rest != 10 => format!("{} hundred and {}", SMALL[hundred], SMALL[rest]),
        (hundred, 10) => format!("{} hundred and ten", SMALL[hundred]),
        (hundred, rest) => format!("{} hundred {}", SMALL[hundred], below(rest)),
    }
}

/// `One hundred twenty three dollars and forty five cents`
fn in_words(amount: i64) -> String {
    let value = amount.unsigned_abs();
    let mut out = String::from(if amount < 0 { "minus " } else { "" });
    let dollars = value / 100;
    for (unit, name) in [
        (1_000_000_000_000_000, " quadrillion "),
        (1_000_000_000_000, " trillion "),
        (1_000_000_000, " billion "),
        (1_000_000, " million "),
        (1_000, " thousand "),
        (1, ""),
    ] {
        let part = dollars / unit % 1_000;
        if part != 0 {
            out.push_str(&hundreds(part));
            out.push_str(name);
        }
    }
    if dollars == 0 {
        out.push_str("zero");
    }
    out.push_str(if dollars == 1 { " dollar and " } else { " dollars and " });
    out.push_str(&hundreds(value % 100));
    out.push_str(if value % 100 == 1 { " cent" } else { " cents" });
    let first = out[..1].to_uppercase();
    out.replace_range(..1, &first);
    out
}
