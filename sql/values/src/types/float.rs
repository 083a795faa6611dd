//! The text form of floats: shortest digits that read back, laid out as PostgreSQL lays them out.

use crate::error::{Result, SqlError, code};

/// Lays out `digits` with an exponent as C's %g does, with a limit of `plain_max` digits before the point.
fn layout(scientific: &str, plain_max: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if !(-4..plain_max).contains(&exponent) {
        let (head, tail) = digits.split_at(1);
        let point = if tail.is_empty() { "" } else { "." };
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{head}{point}{tail}e{mark}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let int = exponent as usize + 1;
    if digits.len() <= int {
        return format!("{sign}{digits}{}", "0".repeat(int - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..int], &digits[int..])
}

fn special(v: f64) -> Option<&'static str> {
    if v.is_nan() {
        Some("NaN")
    } else if v.is_infinite() {
        Some(if v > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// double precision to text.
pub fn format8(v: f64) -> String {
    special(v).map_or_else(|| layout(&format!("{v:e}"), 15), str::to_owned)
}

/// real to text.
pub fn format4(v: f32) -> String {
    special(f64::from(v)).map_or_else(|| layout(&format!("{v:e}"), 6), str::to_owned)
}

/// double precision to text by `extra_float_digits`.
pub fn shown8(v: f64, extra: i8) -> String {
    if extra > 0 { format8(v) } else { rounded(v, 15 + i32::from(extra)) }
}

/// real to text by `extra_float_digits`.
pub fn shown4(v: f32, extra: i8) -> String {
    if extra > 0 { format4(v) } else { rounded(f64::from(v), 6 + i32::from(extra)) }
}

/// As C's %g with so many digits, at least one.
fn rounded(v: f64, digits: i32) -> String {
    if let Some(text) = special(v) {
        return text.to_owned();
    }
    let digits = digits.max(1);
    let text = format!("{v:.*e}", digits as usize - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    layout(&format!("{mantissa}e{exponent}"), digits)
}

/// Text to a float; `ty` is the type's name for errors.
pub fn parse(text: &str, ty: &str) -> Result<f64> {
    let t = text.trim();
    let invalid =
        || SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {ty}: \"{text}\""));
    let range = || SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("\"{t}\" is out of range for type {ty}"));
    match t.to_ascii_lowercase().trim_start_matches(['+', '-']) {
        "nan" | "inf" | "infinity" => {}
        body if body.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {}
        _ => return Err(invalid()),
    }
    let single = ty == "real";
    // Rounded once: what is rounded to a double first may become another real.
    let v: f64 = match single {
        true => f64::from(t.parse::<f32>().map_err(|_| invalid())?),
        false => t.parse().map_err(|_| invalid())?,
    };
    let nonzero = t.bytes().take_while(|b| !matches!(b, b'e' | b'E')).any(|b| matches!(b, b'1'..=b'9'));
    let lost = nonzero && (v.is_infinite() || v == 0.0);
    if lost { Err(range()) } else { Ok(v) }
}
