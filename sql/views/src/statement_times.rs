//! The rows of clearway_statement_times: the distribution of each statement's durations.

use super::lock_waits::ms;
use super::waits::VisibleStatements;
use super::{ViewOf, int, text};
use clearway_context::statements::bounds_of;
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;

/// The rows of the view.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "clearway_statement_times", times)];

/// One row for each digest, application and span of time that executions have taken. The last span has no end.
fn times(run: &Run<'_>) -> Vec<Row> {
    let seen = VisibleStatements::new(run);
    let all = run.core.backends.statements.all();
    let rows = all.iter().flat_map(|cost| {
        let seen = &seen;
        let filled = cost.histogram.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(move |(bucket, count)| {
            let (from_ns, to_ns) = bounds_of(bucket);
            vec![
                if seen.may(cost.user) { Datum::Int8(cost.digest.id as i64) } else { Datum::Null },
                text(&cost.application),
                ms(from_ns),
                to_ns.map_or(Datum::Null, ms),
                int(u64::from(*count)),
            ]
        })
    });
    rows.collect()
}
