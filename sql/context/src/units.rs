//! Parses and writes settings' values with units: times and sizes.

/// The unit of whole numbers: its name, and those in which a number may be given, as multiples of it.
pub(super) struct Unit {
    pub(super) name: &'static str,
    given: &'static [(&'static str, f64)],
    /// What a number has that is given in none of them.
    hint: &'static str,
}

const SIZES: &str = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
const TIMES: &str = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";

/// A number alone.
pub(super) static NUMBER: Unit = Unit { name: "", given: &[], hint: "" };
/// Kilobytes.
pub(super) static KILOBYTES: Unit = Unit {
    name: "kB",
    given: &[("B", 1.0 / 1024.0), ("kB", 1.0), ("MB", 1024.0), ("GB", 1_048_576.0), ("TB", 1_073_741_824.0)],
    hint: SIZES,
};
/// Blocks of 8 kB.
pub(super) static BLOCKS: Unit = Unit {
    name: "8kB",
    given: &[("B", 1.0 / 8192.0), ("kB", 0.125), ("MB", 128.0), ("GB", 131_072.0), ("TB", 134_217_728.0)],
    hint: SIZES,
};
/// Milliseconds.
pub(super) static MILLISECONDS: Unit = Unit {
    name: "ms",
    given: &[("us", 0.001), ("ms", 1.0), ("s", 1e3), ("min", 6e4), ("h", 3.6e6), ("d", 8.64e7)],
    hint: TIMES,
};

impl Unit {
    /// A number of these units: a fraction is rounded to the next even number; 0x10 and 010 are what they are in C.
    ///
    /// # Errors
    /// It is no number; a hint, if there is one.
    pub(super) fn parse(&self, text: &str) -> Result<i64, Option<String>> {
        let text = text.trim();
        let signed = text.trim_start_matches(['+', '-']);
        let radix = match signed.as_bytes() {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'0'..=b'9', ..] if !signed.contains('.') => 8,
            _ => 10,
        };
        let digits = |c: char| c.is_digit(radix) || radix == 10 && c == '.';
        let body = if radix == 16 { &signed[2..] } else { signed };
        let mut end = body.find(|c| !digits(c)).unwrap_or(body.len());
        if radix == 10 && body[end..].starts_with(['e', 'E']) && !body[end + 1..].starts_with(char::is_alphabetic) {
            let exponent = |c: char| !c.is_ascii_digit() && c != '-' && c != '+';
            end = body[end + 1..].find(exponent).map_or(body.len(), |at| end + 1 + at);
        }
        let number = match radix {
            10 => body[..end].parse::<f64>().ok(),
            radix => i64::from_str_radix(&body[..end], radix).ok().map(|n| n as f64),
        };
        let number = number.filter(|_| text.len() - signed.len() < 2).ok_or(None)?;
        let unit = body[end..].trim_start();
        let found = self.given.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let factor = if unit.is_empty() { Some(1.0) } else { found };
        let hint = || Some(self.hint.to_owned()).filter(|hint| !hint.is_empty());
        let n = (number * factor.ok_or_else(hint)?).round_ties_even();
        let n = if text.starts_with('-') { -n } else { n };
        let fits = (-2_147_483_648.0..=2_147_483_647.0).contains(&n);
        if fits { Ok(n as i64) } else { Err(Some("Value exceeds integer range.".to_owned())) }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked of PostgreSQL 15.
    #[test]
    fn whole_numbers_are_read_as_postgresql_reads_them() {
        for (unit, text, n) in [
            (&NUMBER, "5.5", 6),
            (&NUMBER, "6.5", 6),
            (&NUMBER, "0x10", 16),
            (&NUMBER, "010", 8),
            (&NUMBER, "1e1", 10),
            (&NUMBER, " 7 ", 7),
            (&NUMBER, "-3", -3),
            (&KILOBYTES, "64.5kB", 64),
            (&KILOBYTES, "70.7", 71),
            (&KILOBYTES, "0.1MB", 102),
            (&KILOBYTES, "100000B", 98),
            (&KILOBYTES, "1TB", 1 << 30),
            (&BLOCKS, "801kB", 100),
            (&BLOCKS, "1.5", 2),
            (&BLOCKS, "20kB", 2),
            (&MILLISECONDS, "1.5 s", 1500),
            (&MILLISECONDS, "100us", 0),
            (&MILLISECONDS, "600us", 1),
        ] {
            assert_eq!(unit.parse(text), Ok(n), "{text}");
        }
        let integers = Err(Some("Value exceeds integer range.".to_owned()));
        for (unit, text, refused) in [
            (&NUMBER, "7kB", Err(None)),
            (&NUMBER, "", Err(None)),
            (&NUMBER, "abc", Err(None)),
            (&NUMBER, "--1", Err(None)),
            (&NUMBER, "1e30", integers.clone()),
            (&NUMBER, "-3000000000", integers.clone()),
            (&KILOBYTES, "100000TB", integers),
            (&KILOBYTES, "1 kb", Err(Some(SIZES.to_owned()))),
            (&MILLISECONDS, "1y", Err(Some(TIMES.to_owned()))),
        ] {
            assert_eq!(unit.parse(text), refused, "{text}");
        }
    }
}
