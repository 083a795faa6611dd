//! Chooses a column's type from its values and its declared type.

use super::names::literal;

/// The values in a column.
#[derive(Clone, Debug)]
pub struct ColumnValues {
    pub nulls: u64,
    pub integers: u64,
    pub reals: u64,
    pub texts: u64,
    pub blobs: u64,
    /// All integers are 0 or 1.
    all_bits: bool,
    /// An integer that no double precision holds exactly.
    beyond_double: bool,
    /// A text that no text here can be: not UTF-8, or with a zero byte.
    pub unfit: u64,
    all_dates: bool,
    all_moments: bool,
    all_times: bool,
    all_uuids: bool,
    all_numbers: bool,
}

impl Default for ColumnValues {
    fn default() -> ColumnValues {
        let (nulls, integers, reals, texts, blobs, unfit) = (0, 0, 0, 0, 0, 0);
        let (all_bits, all_dates, all_moments, all_times, all_uuids, all_numbers) =
            (true, true, true, true, true, true);
        let beyond_double = false;
        ColumnValues {
            nulls,
            integers,
            reals,
            texts,
            blobs,
            all_bits,
            beyond_double,
            unfit,
            all_dates,
            all_moments,
            all_times,
            all_uuids,
            all_numbers,
        }
    }
}

impl ColumnValues {
    pub fn integer(&mut self, value: i64) {
        self.integers += 1;
        self.all_bits &= matches!(value, 0 | 1);
        self.beyond_double |= value.unsigned_abs() > 1 << 53;
    }

    pub fn text(&mut self, bytes: &[u8]) {
        self.texts += 1;
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
            self.unfit += 1;
            return;
        };
        self.all_dates &= is_date(text);
        self.all_moments &= is_moment(text);
        self.all_times &= is_time(text);
        self.all_uuids &= is_uuid(text);
        self.all_numbers &= is_number(text);
    }

    fn kinds(&self) -> usize {
        [self.integers, self.reals, self.texts, self.blobs].iter().filter(|count| **count > 0).count()
    }

    /// The column's type, and what is to be said of the choice.
    pub fn choose(&self, declared: &str) -> (&'static str, Option<String>) {
        let upper = declared.to_ascii_uppercase();
        let is = |part: &str| upper.contains(part);
        if self.kinds() == 0 {
            return (by_name(&upper), None);
        }
        if self.kinds() == 1 && self.integers > 0 {
            return match () {
                () if is("BOOL") && self.all_bits => ("boolean", None),
                () if is("DECIMAL") || is("NUMERIC") || is("MONEY") => ("numeric", None),
                () if (is("REAL") || is("FLOA") || is("DOUB")) && !self.beyond_double => ("double precision", None),
                () => ("bigint", None),
            };
        }
        if self.texts == 0 && self.blobs == 0 {
            let exact = is("DECIMAL") || is("NUMERIC") || is("MONEY") || self.beyond_double;
            return (if exact { "numeric" } else { "double precision" }, None);
        }
        if self.kinds() == 1 && self.blobs > 0 {
            return ("bytea", None);
        }
        if self.unfit > 0 || self.blobs > 0 {
            let why = match self.unfit {
                0 => "holds blobs beside other values".to_owned(),
                unfit => format!("holds {unfit} texts that are not UTF-8 or have a zero byte"),
            };
            return ("bytea", Some(format!("{why}: it became bytea, each text as its bytes")));
        }
        if self.kinds() == 1 {
            return (self.text_type(&upper), None);
        }
        // Texts beside numbers.
        if self.all_numbers {
            return ("numeric", Some(format!("holds {} numbers as texts: it became numeric", self.texts)));
        }
        let numbers = self.integers + self.reals;
        ("text", Some(format!("holds {numbers} numbers beside {} texts: it became text", self.texts)))
    }

    fn text_type(&self, upper: &str) -> &'static str {
        match () {
            () if upper == "DATE" && self.all_dates => "date",
            () if (upper.contains("DATE") || upper.contains("TIMESTAMP")) && (self.all_moments || self.all_dates) => {
                "timestamp"
            }
            () if upper == "TIME" && self.all_times => "time",
            () if matches!(upper, "UUID" | "GUID") && self.all_uuids => "uuid",
            () if (upper.contains("DECIMAL") || upper.contains("NUMERIC")) && self.all_numbers => "numeric",
            () => "text",
        }
    }
}

/// The type of a column without values, by SQLite's rules of affinity.
fn by_name(upper: &str) -> &'static str {
    let is = |part: &str| upper.contains(part);
    match () {
        () if is("BOOL") => "boolean",
        () if is("INT") => "bigint",
        () if is("CHAR") || is("CLOB") || is("TEXT") => "text",
        () if upper == "DATE" => "date",
        () if is("DATE") || is("TIMESTAMP") => "timestamp",
        () if upper == "TIME" => "time",
        () if matches!(upper, "UUID" | "GUID") => "uuid",
        () if is("BLOB") => "bytea",
        () if is("REAL") || is("FLOA") || is("DOUB") => "double precision",
        () if is("DEC") || is("NUM") || is("MONEY") => "numeric",
        () => "text",
    }
}

/// A default of SQLite's as one for a column of that type; none if it can't be carried over.
pub fn default(text: &str, ty: &str) -> Option<String> {
    let text = text.trim();
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).map_or(text, str::trim);
    let upper = inner.to_ascii_uppercase();
    let moment = matches!(ty, "date" | "timestamp" | "time");
    Some(match upper.as_str() {
        "NULL" => "NULL".to_owned(),
        "TRUE" | "FALSE" if ty == "boolean" => upper,
        "TRUE" if matches!(ty, "bigint" | "numeric" | "double precision") => "1".to_owned(),
        "FALSE" if matches!(ty, "bigint" | "numeric" | "double precision") => "0".to_owned(),
        // SQLite's clock is that of UTC.
        "CURRENT_TIMESTAMP" | "CURRENT_DATE" | "CURRENT_TIME" | "DATETIME('NOW')" | "DATE('NOW')" if moment => {
            format!("(timezone('UTC', now())::{ty})")
        }
        "CURRENT_TIMESTAMP" | "DATETIME('NOW')" if ty == "text" => {
            "(to_char(timezone('UTC', now()), 'YYYY-MM-DD HH24:MI:SS'))".to_owned()
        }
        "CURRENT_DATE" | "DATE('NOW')" if ty == "text" => "(to_char(timezone('UTC', now()), 'YYYY-MM-DD'))".to_owned(),
        "0" if ty == "boolean" => "false".to_owned(),
        "1" if ty == "boolean" => "true".to_owned(),
        _ if is_number(inner) && matches!(ty, "bigint" | "numeric" | "double precision") => inner.to_owned(),
        _ if is_number(inner) && ty == "text" => literal(inner),
        _ => {
            let value = string(inner)?;
            let fits = match ty {
                "text" => true,
                "bigint" | "numeric" | "double precision" => is_number(&value),
                "date" => is_date(&value),
                "timestamp" => is_moment(&value) || is_date(&value),
                _ => false,
            };
            return fits.then(|| literal(&value));
        }
    })
}

/// A text in quotes, of either kind: SQLite takes both.
fn string(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let doubled = format!("{quote}{quote}");
    let rest = inner.replace(&doubled, "");
    (!rest.contains(quote)).then(|| inner.replace(&doubled, &quote.to_string()))
}

fn digits(text: &str, at: std::ops::Range<usize>) -> Option<u32> {
    let part = text.get(at)?;
    part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (digits(text, 0..4), digits(text, 5..7), digits(text, 8..10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fits = |at: std::ops::Range<usize>, most| digits(clock, at).is_some_and(|value| value <= most);
    let form = match clock.len() {
        5 => clock.as_bytes()[2] == b':' && fraction == "0",
        8 => clock.as_bytes()[2] == b':' && clock.as_bytes()[5] == b':' && fits(6..8, 59),
        _ => false,
    };
    let fraction_fits = (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    form && fits(0..2, 23) && fits(3..5, 59) && fraction_fits
}

/// A date and a time; without a zone, so that nothing has to be guessed.
fn is_moment(text: &str) -> bool {
    let Some((date, rest)) = text.split_at_checked(10) else { return false };
    is_date(date) && rest.strip_prefix([' ', 'T']).is_some_and(is_time)
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match dashes.contains(&at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.splitn(2, '.');
    let whole = parts.next().unwrap_or_default();
    let part = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = parts.next();
    !whole.is_empty() && part(whole) && fraction.is_none_or(|fraction| !fraction.is_empty() && part(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_texts(texts: &[&str], declared: &str) -> &'static str {
        let mut seen = ColumnValues::default();
        texts.iter().for_each(|text| seen.text(text.as_bytes()));
        seen.choose(declared).0
    }

    #[test]
    fn a_type_is_what_is_declared_as_far_as_the_values_fit() {
        assert_eq!(of_texts(&["2024-02-29"], "DATE"), "date");
        assert_eq!(of_texts(&["2023-02-29"], "DATE"), "text");
        assert_eq!(of_texts(&["2009-01-01 00:00:00", "2009-01-01T10:00:00.123"], "DATETIME"), "timestamp");
        assert_eq!(of_texts(&["2009-01-01 00:00:00+01"], "DATETIME"), "text");
        assert_eq!(of_texts(&["12:00", "23:59:59"], "TIME"), "time");
        assert_eq!(of_texts(&["1.50"], "DECIMAL(10,2)"), "numeric");
        assert_eq!(of_texts(&["2024-02-29"], "TEXT"), "text");
        assert_eq!(of_texts(&[], "NVARCHAR(40)"), "text");
        assert_eq!(of_texts(&[], "INT"), "bigint");
        let mut mixed = ColumnValues::default();
        mixed.integer(1);
        assert_eq!(mixed.choose("BOOLEAN").0, "boolean");
        mixed.integer(2);
        assert_eq!(mixed.choose("BOOLEAN").0, "bigint");
        mixed.reals = 1;
        assert_eq!(mixed.choose("REAL").0, "double precision");
        mixed.integer(i64::MAX);
        assert_eq!(mixed.choose("REAL").0, "numeric");
        mixed.text(b"x");
        let (ty, why) = mixed.choose("REAL");
        assert!(ty == "text" && why.is_some_and(|why| why.contains("4 numbers beside 1 texts")));
        mixed.text(b"\xff");
        assert_eq!(mixed.choose("REAL").0, "bytea");
    }

    #[test]
    fn defaults_that_mean_the_same_are_carried_over() {
        assert_eq!(default("'it''s'", "text").as_deref(), Some("'it''s'"));
        assert_eq!(default("\"double\"", "text").as_deref(), Some("'double'"));
        assert_eq!(default("(0)", "boolean").as_deref(), Some("false"));
        assert_eq!(default("-1.5", "numeric").as_deref(), Some("-1.5"));
        assert_eq!(default("'x'", "bigint"), None);
        assert_eq!(default("(random())", "bigint"), None);
        assert_eq!(default("'a' || 'b'", "text"), None);
        assert!(default("CURRENT_TIMESTAMP", "timestamp").is_some());
    }
}
