//! The rows of pg_timezone_names and pg_timezone_abbrevs.

use super::{ViewOf, text};
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;
use clearway_values::types::interval::Interval;
use clearway_values::types::zone::{ZoneShown, abbreviations, zones};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] =
    &[("pg_catalog", "pg_timezone_names", names), ("pg_catalog", "pg_timezone_abbrevs", short_names)];

fn offset(seconds: i32) -> Datum {
    Datum::Interval(Interval { months: 0, days: 0, micros: i64::from(seconds) * 1_000_000 })
}

/// As of the transaction's start, as in PostgreSQL.
fn names(run: &Run<'_>) -> Vec<Row> {
    let row = |(name, abbreviation, seconds, dst): ZoneShown| {
        vec![text(&name), text(&abbreviation), offset(seconds), Datum::Bool(dst)]
    };
    zones(run.transaction_started).into_iter().map(row).collect()
}

fn short_names(run: &Run<'_>) -> Vec<Row> {
    let row = |(name, _, seconds, dst): ZoneShown| vec![text(&name), offset(seconds), Datum::Bool(dst)];
    abbreviations(run.transaction_started).into_iter().map(row).collect()
}
