//! Parses and writes settings' values with units: times and sizes.

/// Milliseconds of `10`, `10ms`, `1.5 s`, `2min`.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let ms = real_milliseconds(text)?;
    (0.0..=2_147_483_647.0).contains(&ms).then_some(ms.round() as u64)
}

/// The same with a fraction.
pub(super) fn real_milliseconds(text: &str) -> Option<f64> {
    let t = text.trim();
    let unit = t.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(t.len());
    let number: f64 = t[..unit].trim().parse().ok()?;
    let factor = match &t[unit..] {
        "" | "ms" => 1.0,
        "us" => 0.001,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(number * factor)
}

/// An end of a range as PostgreSQL shows it: the largest number with six digits.
pub fn shown_real(n: f64) -> String {
    if n == f64::MAX { "1.79769e+308".to_owned() } else { n.to_string() }
}

/// In the largest unit that shows it as a whole number.
pub(super) fn shown_real_ms(ms: f64) -> String {
    if ms.fract() == 0.0 {
        return shown_ms(ms as u64);
    }
    let micros = (ms * 1e6).round() / 1e3;
    if micros.fract() == 0.0 { format!("{micros}us") } else { format!("{ms}ms") }
}

/// Bytes of `10`, `10kB`, `1.5 GB`; without a unit they are kilobytes, as in PostgreSQL.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let t = text.trim();
    let unit = t.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(t.len());
    let number: f64 = t[..unit].trim().parse().ok()?;
    let factor = match &t[unit..] {
        "B" => 1u64,
        "" | "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    let bytes = number * factor as f64;
    (0.0..=9.0e18).contains(&bytes).then_some(bytes.round() as u64)
}

pub(super) fn shown_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        n if n % (1 << 30) == 0 => format!("{}GB", n >> 30),
        n if n % (1 << 20) == 0 => format!("{}MB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{}kB", n >> 10),
        n => format!("{n}B"),
    }
}

pub(super) fn shown_ms(ms: u64) -> String {
    match ms {
        0 => "0".to_owned(),
        ms if ms % 86_400_000 == 0 => format!("{}d", ms / 86_400_000),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}min", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}
