//! Checks one value of a setting and brings it to the form in which it is kept.

use super::limits::is_limit;
use super::setting_text::parse_bool;
use super::settings::{Kind, Setting};
use super::units::{
    BLOCKS, KILOBYTES, MILLISECONDS, NUMBER, Unit, bytes, real_milliseconds, shown_bytes, shown_ms, shown_real,
    shown_real_ms,
};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::encoding::Encoding;

/// The largest of PostgreSQL's integers.
const I32: i64 = i32::MAX as i64;

pub(super) fn invalid(setting: &Setting, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{}\": \"{value}\"", setting.name);
    let error = SqlError::new(code::INVALID_PARAMETER_VALUE, message);
    match setting.kind {
        Kind::Enum(words) => error.hint(format!("Available values: {}.", words.join(", "))),
        _ => error,
    }
}

impl Setting {
    /// Whether only superusers may change it.
    pub fn is_for_superusers(&self) -> bool {
        self.name.starts_with("log_") || is_limit(self.name) || super::accepted_settings::is_for_superusers(self.name)
    }

    fn real_ms(&self, ms: f64, max: f64) -> Result<String> {
        if (0.0..=max).contains(&ms) {
            return Ok(shown_real_ms(ms));
        }
        Err(self.out_of_range(&format!("{ms} ms"), (0, max)))
    }

    /// What PostgreSQL says of a number, with its unit, that is not in the range of the setting.
    fn out_of_range<E: std::fmt::Display>(&self, given: &str, (min, max): (impl std::fmt::Display, E)) -> SqlError {
        let message = format!("{given} is outside the valid range for parameter \"{}\" ({min} .. {max})", self.name);
        SqlError::new(code::INVALID_PARAMETER_VALUE, message)
    }

    /// One of these words, as it is kept.
    fn word(&self, value: &str, words: &[&str]) -> Result<String> {
        let lower = value.trim().to_ascii_lowercase();
        let switches = words.iter().any(|word| matches!(*word, "on" | "off"));
        // Words that PostgreSQL takes and does not list.
        let kept = match lower.as_str() {
            "true" | "yes" | "1" if switches => "on",
            "false" | "no" | "0" if switches => "off",
            "debug" if self.name == "client_min_messages" => "debug2",
            "info" if self.name == "client_min_messages" => return Ok(lower),
            word => word,
        };
        if words.contains(&kept) {
            return Ok(kept.to_owned());
        }
        Err(match self.name {
            "standard_conforming_strings" => SqlError::unsupported(format!("{} = {value}", self.name)),
            _ => invalid(self, value),
        })
    }

    /// A whole number of these units, as PostgreSQL's `parse_int` reads it.
    fn whole(&self, value: &str, unit: &Unit, (min, max): (i64, i64)) -> Result<i64> {
        let bad = |hint: Option<String>| match hint {
            Some(hint) => invalid(self, value).hint(hint),
            None => invalid(self, value),
        };
        let n = unit.parse(value).map_err(bad)?;
        if (min..=max).contains(&n) {
            return Ok(n);
        }
        let given = if unit.name.is_empty() { n.to_string() } else { format!("{n} {}", unit.name) };
        Err(self.out_of_range(&given, (min, max)))
    }

    /// A value as it is kept, or why not.
    pub(super) fn check(&self, value: &str) -> Result<String> {
        let bad = || invalid(self, value);
        Ok(match self.kind {
            Kind::Fixed => {
                let message = format!("parameter \"{}\" cannot be changed", self.name);
                return Err(SqlError::new("55P02", message));
            }
            Kind::Bool => {
                let on = parse_bool(value).ok_or_else(|| {
                    let message = format!("parameter \"{}\" requires a Boolean value", self.name);
                    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
                })?;
                if on { "on" } else { "off" }.to_owned()
            }
            Kind::Bytes => shown_bytes(bytes(value).ok_or_else(bad)?),
            Kind::Kilobytes(min) => shown_bytes(self.whole(value, &KILOBYTES, (min, I32))?.cast_unsigned() << 10),
            Kind::Blocks(min, max) => shown_bytes(self.whole(value, &BLOCKS, (min, max))?.cast_unsigned() << 13),
            Kind::MillisecondsOrOff => match self.whole(value, &MILLISECONDS, (-1, I32))? {
                -1 => "-1".to_owned(),
                ms => shown_ms(ms.cast_unsigned()),
            },
            Kind::Milliseconds => shown_ms(self.whole(value, &MILLISECONDS, (0, I32))?.cast_unsigned()),
            Kind::Int(min, max) => self.whole(value, &NUMBER, (min, max))?.to_string(),
            Kind::RealMilliseconds(max) => self.real_ms(real_milliseconds(value).ok_or_else(bad)?, max)?,
            Kind::RealIn(min, max) => {
                let n: f64 = value.trim().parse().map_err(|_| bad())?;
                if !(min..=max).contains(&n) {
                    return Err(self.out_of_range(&n.to_string(), (shown_real(min), shown_real(max))));
                }
                n.to_string()
            }
            Kind::Enum(words) => self.word(value, words)?,
            Kind::Encoding => {
                let encoding = Encoding::find(value).ok_or_else(bad)?;
                if !encoding.is_supported() {
                    let detail = format!("Conversion between {} and UTF8 is not supported.", encoding.name());
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, bad().message().to_owned()).detail(detail));
                }
                encoding.name().to_owned()
            }
            Kind::Text => value.to_owned(),
            Kind::Only(only) => {
                let same = only.eq_ignore_ascii_case(value.trim());
                let switch = parse_bool(value).is_some_and(|on| only == if on { "on" } else { "off" });
                if !same && !switch {
                    return Err(SqlError::unsupported(format!("{} = {value}", self.name)));
                }
                only.to_owned()
            }
        })
    }
}
