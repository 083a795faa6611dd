//! The modifier of the type interval: the fields to which it is restricted, and the digits of its seconds, packed as PostgreSQL packs them.

use super::interval::Interval;
use crate::error::{Result, SqlError, code};
pub use crate::syntax::interval_fields::{DAY, FULL_RANGE, HOUR, MINUTE, MONTH, SECOND, YEAR};

/// The precision of a modifier that has none.
const FULL_PRECISION: i32 = 0xffff;
/// The most digits of seconds.
const PRECISION_MAX: i32 = 6;

const SECOND_MICROS: i64 = 1_000_000;
const MINUTE_MICROS: i64 = 60 * SECOND_MICROS;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;

/// The fields of a modifier, -1 for none; a set of the bits above.
pub fn range(modifier: i32) -> i32 {
    if modifier < 0 { FULL_RANGE } else { (modifier >> 16) & FULL_RANGE }
}

/// Packs what was written: the fields, and the precision.
///
/// # Errors
/// 22023.
pub fn pack(given: &[i32]) -> Result<i32> {
    let bad = |message: String| Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    match *given {
        [range] if range == FULL_RANGE => Ok(-1),
        [range] if name(range).is_some() => Ok((range << 16) | FULL_PRECISION),
        [range, precision] if name(range).is_some() => {
            if precision < 0 {
                return bad(format!("INTERVAL({precision}) precision must not be negative"));
            }
            Ok((range << 16) | precision.min(PRECISION_MAX))
        }
        _ => bad("invalid INTERVAL type modifier".to_owned()),
    }
}

/// The fields as SQL writes them, empty for all; none: no such restriction.
fn name(range: i32) -> Option<&'static str> {
    const NAMES: [(i32, &str); 14] = [
        (FULL_RANGE, ""),
        (YEAR, " year"),
        (MONTH, " month"),
        (DAY, " day"),
        (HOUR, " hour"),
        (MINUTE, " minute"),
        (SECOND, " second"),
        (YEAR | MONTH, " year to month"),
        (DAY | HOUR, " day to hour"),
        (DAY | HOUR | MINUTE, " day to minute"),
        (DAY | HOUR | MINUTE | SECOND, " day to second"),
        (HOUR | MINUTE, " hour to minute"),
        (HOUR | MINUTE | SECOND, " hour to second"),
        (MINUTE | SECOND, " minute to second"),
    ];
    NAMES.iter().find(|(fields, _)| *fields == range).map(|(_, name)| *name)
}

/// The type with its modifier, as SQL writes it.
pub fn shown(modifier: i32) -> String {
    let fields = name(range(modifier)).unwrap_or("");
    match modifier & FULL_PRECISION {
        FULL_PRECISION => format!("interval{fields}"),
        precision => format!("interval{fields}({precision})"),
    }
}

/// Takes away what the modifier does not keep.
pub fn fit(value: Interval, modifier: i32) -> Interval {
    let range = range(modifier);
    let Interval { months, micros, .. } = value;
    let cut = |unit: i64| micros / unit * unit;
    let kept = match range {
        YEAR => Interval { months: months / 12 * 12, days: 0, micros: 0 },
        _ if range & (DAY | HOUR | MINUTE | SECOND) == 0 => Interval { days: 0, micros: 0, ..value },
        _ if range & SECOND != 0 => value,
        _ if range & MINUTE != 0 => Interval { micros: cut(MINUTE_MICROS), ..value },
        _ if range & HOUR != 0 => Interval { micros: cut(HOUR_MICROS), ..value },
        _ => Interval { micros: 0, ..value },
    };
    let precision = modifier & FULL_PRECISION;
    if precision >= PRECISION_MAX {
        return kept;
    }
    let unit = 10_i64.pow((PRECISION_MAX - precision) as u32);
    // Halves go away from zero.
    let rounded = kept.micros.saturating_add(kept.micros.signum() * (unit / 2)) / unit * unit;
    Interval { micros: rounded, ..kept }
}
