//! Checks one value of a setting and brings it to the form in which it is kept.

use super::limits::is_limit;
use super::setting_text::parse_bool;
use super::settings::{Kind, Setting};
use super::units::{bytes, milliseconds, real_milliseconds, shown_bytes, shown_ms, shown_real, shown_real_ms};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::encoding::Encoding;

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
        let message = format!("{ms} ms is outside the valid range for parameter \"{}\" (0 .. {max})", self.name);
        Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message))
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
            Kind::MillisecondsOrOff if value.trim() == "-1" => "-1".to_owned(),
            Kind::Milliseconds | Kind::MillisecondsOrOff => shown_ms(milliseconds(value).ok_or_else(bad)?),
            Kind::Int(min, max) => {
                let n: i64 = value.trim().parse().map_err(|_| bad())?;
                if !(min..=max).contains(&n) {
                    let message =
                        format!("{n} is outside the valid range for parameter \"{}\" ({min} .. {max})", self.name);
                    return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
                }
                n.to_string()
            }
            Kind::RealMilliseconds(max) => self.real_ms(real_milliseconds(value).ok_or_else(bad)?, max)?,
            Kind::RealIn(min, max) => {
                let n: f64 = value.trim().parse().map_err(|_| bad())?;
                if !(min..=max).contains(&n) {
                    let (min, max) = (shown_real(min), shown_real(max));
                    let message =
                        format!("{n} is outside the valid range for parameter \"{}\" ({min} .. {max})", self.name);
                    return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
                }
                n.to_string()
            }
            Kind::Enum(words) => {
                let lower = value.trim().to_ascii_lowercase();
                let switches = words.iter().any(|word| matches!(*word, "on" | "off"));
                let lower = match parse_bool(&lower) {
                    Some(on) if switches => if on { "on" } else { "off" }.to_owned(),
                    _ => lower,
                };
                if !words.contains(&lower.as_str()) {
                    if self.name == "standard_conforming_strings" {
                        return Err(SqlError::unsupported(format!("{} = {value}", self.name)));
                    }
                    return Err(bad());
                }
                lower
            }
            Kind::Encoding => {
                let encoding = Encoding::find(value).ok_or_else(bad)?;
                if !encoding.is_supported() {
                    let detail = format!("Conversion between {} and UTF8 is not supported.", encoding.name());
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, bad().message().to_owned()).detail(detail));
                }
                encoding.name().to_owned()
            }
            Kind::Text => value.to_owned(),
            Kind::Blocks => match value.trim().parse::<u64>() {
                Ok(blocks) => shown_bytes(blocks.saturating_mul(8_192)),
                Err(_) => shown_bytes(bytes(value).ok_or_else(bad)?),
            },
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
