//! The values of a column's type that are nearest to a value of another type: through them an index of the column finds the rows that
//! compare with that value.
//!
//! # Invariants
//! - NST-1: let `c` be any value of the column's type and `v` any value of the other. `c < v` and `c >= v` say the same as `c < above(v)` and
//!   `c >= above(v)`; `c <= v` and `c > v` the same as `c <= below(v)` and `c > below(v)`; `c = v` the same as `c = equal(v)`, which is NULL
//!   where no value of the column's type equals `v`.

use super::bound::{Bound, BoundKind};
use super::functions::{Body, Function, table};
use super::operators::Op;
use crate::types::datetime::{DAY, date_to_timestamp};
use crate::types::{Datum, Oid, oid};

use oid::{DATE, FLOAT4, FLOAT8, TIMESTAMP};

/// No SQL statement can name them.
#[rustfmt::skip]
static FUNCTIONS: &[Function] = table! {
    "nearest_below"(TIMESTAMP) DATE strict |a, _| Ok(date_below(&a[0]));
    "nearest_above"(TIMESTAMP) DATE strict |a, _| Ok(date_above(&a[0]));
    "nearest_equal"(TIMESTAMP) DATE strict |a, _| Ok(if_both(date_below(&a[0]), &date_above(&a[0])));
    "nearest_below"(DATE) TIMESTAMP strict |a, _| Ok(moment_below(&a[0]));
    "nearest_above"(DATE) TIMESTAMP strict |a, _| Ok(moment_above(&a[0]));
    "nearest_equal"(DATE) TIMESTAMP strict |a, _| Ok(if_both(moment_below(&a[0]), &moment_above(&a[0])));
    "nearest_below"(FLOAT8) FLOAT4 strict |a, _| Ok(real_below(&a[0]));
    "nearest_above"(FLOAT8) FLOAT4 strict |a, _| Ok(real_above(&a[0]));
    "nearest_equal"(FLOAT8) FLOAT4 strict |a, _| Ok(if_both(real_below(&a[0]), &real_above(&a[0])));
    "nearest_below"(FLOAT4) FLOAT8 strict |a, _| Ok(double(&a[0]));
    "nearest_above"(FLOAT4) FLOAT8 strict |a, _| Ok(double(&a[0]));
    "nearest_equal"(FLOAT4) FLOAT8 strict |a, _| Ok(double(&a[0]));
};

/// The value with which a column of a type is compared instead of a value of another type (NST-1); none: there is no such value for these
/// types.
pub fn instead(column: Oid, op: Op, value: &Bound) -> Option<Bound> {
    let name = match op {
        Op::Lt | Op::Ge => "nearest_above",
        Op::Le | Op::Gt => "nearest_below",
        Op::Eq => "nearest_equal",
        _ => return None,
    };
    let fits = |f: &&Function| f.name == name && f.args == [value.ty.oid] && f.result == column;
    let function = FUNCTIONS.iter().find(fits)?;
    let kind = BoundKind::Call { function, args: vec![value.clone()] };
    Some(Bound { kind, ty: column.into(), pos: value.pos })
}

/// The value of which an expression is the nearest one.
pub fn of(e: &Bound) -> Option<(Body, &Bound)> {
    match &e.kind {
        BoundKind::Call { function, args } if FUNCTIONS.iter().any(|f| std::ptr::eq(f, *function)) => {
            Some((function.body, args.first()?))
        }
        _ => None,
    }
}

fn if_both(below: Datum, above: &Datum) -> Datum {
    if crate::types::datum::compare(&below, above).is_eq() { below } else { Datum::Null }
}

fn date_below(moment: &Datum) -> Datum {
    let Datum::Timestamp(t) = moment else { return Datum::Null };
    Datum::Date(match *t {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        t => i32::try_from(t.div_euclid(DAY)).unwrap_or(i32::MAX),
    })
}

fn date_above(moment: &Datum) -> Datum {
    match (moment, date_below(moment)) {
        (Datum::Timestamp(t), Datum::Date(day)) if date_to_timestamp(day) < *t => Datum::Date(day.saturating_add(1)),
        (_, below) => below,
    }
}

fn moment_above(date: &Datum) -> Datum {
    let Datum::Date(day) = date else { return Datum::Null };
    Datum::Timestamp(date_to_timestamp(*day))
}

fn moment_below(date: &Datum) -> Datum {
    match (date, moment_above(date)) {
        // A date later than all timestamps is before infinity.
        (Datum::Date(day), Datum::Timestamp(i64::MAX)) if *day != i32::MAX => Datum::Timestamp(i64::MAX - 1),
        (_, above) => above,
    }
}

fn real_below(double: &Datum) -> Datum {
    let Datum::Float8(v) = double else { return Datum::Null };
    // The nearest float4 may lie on either side.
    let near = *v as f32;
    Datum::Float4(if f64::from(near) > *v { near.next_down() } else { near })
}

fn real_above(double: &Datum) -> Datum {
    let Datum::Float8(v) = double else { return Datum::Null };
    let near = *v as f32;
    Datum::Float4(if f64::from(near) < *v { near.next_up() } else { near })
}

fn double(real: &Datum) -> Datum {
    let Datum::Float4(v) = real else { return Datum::Null };
    Datum::Float8(f64::from(*v))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::datum::compare;
    use std::cmp::Ordering;

    fn check(columns: &[Datum], values: &[Datum], [below, above, equal]: [fn(&Datum) -> Datum; 3]) {
        for c in columns {
            for v in values {
                let (order, low, high) = (compare(c, v), compare(c, &below(v)), compare(c, &above(v)));
                assert_eq!(order == Ordering::Less, high == Ordering::Less, "{c:?} < {v:?} (NST-1)");
                assert_eq!(order == Ordering::Greater, low == Ordering::Greater, "{c:?} > {v:?} (NST-1)");
                let same = equal(v);
                let is_same = !matches!(same, Datum::Null) && compare(c, &same).is_eq();
                assert_eq!(order == Ordering::Equal, is_same, "{c:?} = {v:?} (NST-1)");
            }
        }
    }

    #[test]
    fn dates_and_moments_compare_as_their_nearest_values_do() {
        let days = [i32::MIN, -2_451_507, -731, -1, 0, 1, 2, 9_999, 106_741_034, 106_751_992, 2_000_000_000, i32::MAX];
        let mut moments = vec![i64::MIN, i64::MAX, -211_813_488_000_000_000, 9_223_371_331_199_999_999];
        for day in [-731i64, -1, 0, 1, 9_999] {
            moments.extend([day * DAY - 1, day * DAY, day * DAY + 1, day * DAY + DAY / 2]);
        }
        let days: Vec<Datum> = days.into_iter().map(Datum::Date).collect();
        let moments: Vec<Datum> = moments.into_iter().map(Datum::Timestamp).collect();
        check(&days, &moments, [date_below, date_above, |v| if_both(date_below(v), &date_above(v))]);
        check(&moments, &days, [moment_below, moment_above, |v| if_both(moment_below(v), &moment_above(v))]);
    }

    #[test]
    fn floats_compare_as_their_nearest_values_do() {
        let doubles =
            [0.0, -0.0, 0.1, -0.1, 1.5, 1e-50, -1e-50, 1e50, -1e50, 3.5e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let mut reals: Vec<f32> = doubles.iter().map(|d| *d as f32).collect();
        reals.extend(reals.clone().iter().flat_map(|r| [r.next_up(), r.next_down()]));
        let doubles: Vec<Datum> = doubles.into_iter().map(Datum::Float8).collect();
        let reals: Vec<Datum> = reals.into_iter().map(Datum::Float4).collect();
        check(&reals, &doubles, [real_below, real_above, |v| if_both(real_below(v), &real_above(v))]);
        check(&doubles, &reals, [double, double, double]);
    }
}
