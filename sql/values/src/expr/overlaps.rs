//! `(start, end) OVERLAPS (start, end)`, where an end may be an interval from its start.

use super::eval::Env;
use super::functions::{Function, table};
use super::operators::{self, Op};
use crate::error::Result;
use crate::types::datum::compare;
use crate::types::{Datum, oid};

use oid::{BOOL, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "overlaps"(TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ) BOOL lenient overlaps; "overlaps"(TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, INTERVAL) BOOL lenient overlaps;
    "overlaps"(TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL) BOOL lenient overlaps; "overlaps"(TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ) BOOL lenient overlaps;
    "overlaps"(TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP) BOOL lenient overlaps; "overlaps"(TIMESTAMP, INTERVAL, TIMESTAMP, INTERVAL) BOOL lenient overlaps;
    "overlaps"(TIMESTAMP, TIMESTAMP, TIMESTAMP, INTERVAL) BOOL lenient overlaps; "overlaps"(TIMESTAMP, INTERVAL, TIMESTAMP, TIMESTAMP) BOOL lenient overlaps;
    "overlaps"(TIME, TIME, TIME, TIME) BOOL lenient overlaps; "overlaps"(TIME, INTERVAL, TIME, INTERVAL) BOOL lenient overlaps;
    "overlaps"(TIME, TIME, TIME, INTERVAL) BOOL lenient overlaps; "overlaps"(TIME, INTERVAL, TIME, TIME) BOOL lenient overlaps;
    "overlaps"(TIMETZ, TIMETZ, TIMETZ, TIMETZ) BOOL lenient overlaps;
};

/// A period's earlier and later end; none where neither is known.
fn period(start: &Datum, end: &Datum, e: &Env<'_>) -> Result<Option<(Datum, Datum)>> {
    let end = match (start, end) {
        (Datum::Null, Datum::Interval(_)) => Datum::Null,
        (start, Datum::Interval(_)) => operators::binary(Op::Add, start, end, e.session)?,
        (_, end) => end.clone(),
    };
    Ok(match (start.is_null(), end.is_null()) {
        (true, true) => None,
        (true, false) => Some((end, Datum::Null)),
        (false, true) => Some((start.clone(), Datum::Null)),
        (false, false) if compare(start, &end).is_gt() => Some((end, start.clone())),
        (false, false) => Some((start.clone(), end)),
    })
}

/// The standard's rule: an end that is not known makes the answer unknown where it would decide.
fn overlaps(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let (Some((ts1, te1)), Some((ts2, te2))) = (period(&a[0], &a[1], e)?, period(&a[2], &a[3], e)?) else {
        return Ok(Datum::Null);
    };
    let order = compare(&ts1, &ts2);
    if order.is_eq() {
        let known = !te1.is_null() && !te2.is_null();
        return Ok(if known { Datum::Bool(true) } else { Datum::Null });
    }
    // What begins earlier must reach beyond the beginning of the other.
    let (end, other_start, other_end) = if order.is_gt() { (te2, ts1, te1) } else { (te1, ts2, te2) };
    if end.is_null() {
        return Ok(Datum::Null);
    }
    if compare(&other_start, &end).is_lt() {
        return Ok(Datum::Bool(true));
    }
    Ok(if other_end.is_null() { Datum::Null } else { Datum::Bool(false) })
}
