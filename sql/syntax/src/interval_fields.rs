//! The fields to which the type interval can be restricted, as bits; PostgreSQL's numbers, as its modifiers of types hold them.

/// MONTH.
pub const MONTH: i32 = 1 << 1;
/// YEAR.
pub const YEAR: i32 = 1 << 2;
/// DAY.
pub const DAY: i32 = 1 << 3;
/// HOUR.
pub const HOUR: i32 = 1 << 10;
/// MINUTE.
pub const MINUTE: i32 = 1 << 11;
/// SECOND.
pub const SECOND: i32 = 1 << 12;
/// No restriction.
pub const FULL_RANGE: i32 = 0x7fff;
