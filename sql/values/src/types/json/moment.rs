//! A date or time as an item of a jsonpath, which `.datetime()` makes of a string; `expr/json_moment.rs` has its text and its order.

/// A date or time. Zones are seconds west of Greenwich.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Days.
    Date(i32),
    /// Microseconds.
    Time(i64),
    /// Microseconds, and the zone.
    TimeTz(i64, i32),
    /// Microseconds.
    Timestamp(i64),
    /// Microseconds in UTC, and the zone.
    TimestampTz(i64, i32),
}

impl Moment {
    /// What `.type()` says.
    pub fn type_name(self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time without time zone",
            Moment::TimeTz(..) => "time with time zone",
            Moment::Timestamp(_) => "timestamp without time zone",
            Moment::TimestampTz(..) => "timestamp with time zone",
        }
    }
}
