//! Functions and operators on ranges and multiranges.

use super::functions::{Function, table};
use crate::error::{Result, SqlError, code};
use crate::types::range::{
    Edge, KINDS, Multirange, Range, RangeKind, adjacent, compare_edges, compare_values, datum, of_multirange, of_range,
    overlaps, span,
};
use crate::types::{Datum, Oid, oid};
use clearway_base::breath;
use std::cmp::Ordering;

use oid::{
    ANYELEMENT, ANYMULTIRANGE, ANYRANGE, BOOL, DATE, DATEMULTIRANGE, DATERANGE, INT4, INT4MULTIRANGE, INT4RANGE, INT8,
    INT8MULTIRANGE, INT8RANGE, NUMERIC, NUMMULTIRANGE, NUMRANGE, TEXT, TIMESTAMP, TIMESTAMPTZ, TSMULTIRANGE, TSRANGE,
    TSTZMULTIRANGE, TSTZRANGE,
};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "int4range"(INT4, INT4) INT4RANGE lenient |a, _| made(0, a); "int4range"(INT4, INT4, TEXT) INT4RANGE lenient |a, _| made(0, a);
    "int8range"(INT8, INT8) INT8RANGE lenient |a, _| made(1, a); "int8range"(INT8, INT8, TEXT) INT8RANGE lenient |a, _| made(1, a);
    "numrange"(NUMERIC, NUMERIC) NUMRANGE lenient |a, _| made(2, a); "numrange"(NUMERIC, NUMERIC, TEXT) NUMRANGE lenient |a, _| made(2, a);
    "tsrange"(TIMESTAMP, TIMESTAMP) TSRANGE lenient |a, _| made(3, a);
    "tsrange"(TIMESTAMP, TIMESTAMP, TEXT) TSRANGE lenient |a, _| made(3, a);
    "tstzrange"(TIMESTAMPTZ, TIMESTAMPTZ) TSTZRANGE lenient |a, _| made(4, a);
    "tstzrange"(TIMESTAMPTZ, TIMESTAMPTZ, TEXT) TSTZRANGE lenient |a, _| made(4, a);
    "daterange"(DATE, DATE) DATERANGE lenient |a, _| made(5, a); "daterange"(DATE, DATE, TEXT) DATERANGE lenient |a, _| made(5, a);
    "int4multirange"() INT4MULTIRANGE strict |a, _| multi(0, a); "int4multirange"(INT4RANGE) INT4MULTIRANGE spread |a, _| multi(0, a);
    "int8multirange"() INT8MULTIRANGE strict |a, _| multi(1, a); "int8multirange"(INT8RANGE) INT8MULTIRANGE spread |a, _| multi(1, a);
    "nummultirange"() NUMMULTIRANGE strict |a, _| multi(2, a); "nummultirange"(NUMRANGE) NUMMULTIRANGE spread |a, _| multi(2, a);
    "tsmultirange"() TSMULTIRANGE strict |a, _| multi(3, a); "tsmultirange"(TSRANGE) TSMULTIRANGE spread |a, _| multi(3, a);
    "tstzmultirange"() TSTZMULTIRANGE strict |a, _| multi(4, a); "tstzmultirange"(TSTZRANGE) TSTZMULTIRANGE spread |a, _| multi(4, a);
    "datemultirange"() DATEMULTIRANGE strict |a, _| multi(5, a); "datemultirange"(DATERANGE) DATEMULTIRANGE spread |a, _| multi(5, a);
    "multirange"(ANYRANGE) ANYMULTIRANGE strict |a, _| Ok(whole(&a[0])?.into());
    "lower"(ANYRANGE) ANYELEMENT strict |a, _| end(a, true); "lower"(ANYMULTIRANGE) ANYELEMENT strict |a, _| end(a, true);
    "upper"(ANYRANGE) ANYELEMENT strict |a, _| end(a, false); "upper"(ANYMULTIRANGE) ANYELEMENT strict |a, _| end(a, false);
    "isempty"(ANYRANGE) BOOL strict |a, _| Ok(Datum::Bool(whole(&a[0])?.ranges.is_empty()));
    "isempty"(ANYMULTIRANGE) BOOL strict |a, _| Ok(Datum::Bool(whole(&a[0])?.ranges.is_empty()));
    "lower_inc"(ANYRANGE) BOOL strict |a, _| says(a, true, |e| e.inclusive); "lower_inc"(ANYMULTIRANGE) BOOL strict |a, _| says(a, true, |e| e.inclusive);
    "upper_inc"(ANYRANGE) BOOL strict |a, _| says(a, false, |e| e.inclusive); "upper_inc"(ANYMULTIRANGE) BOOL strict |a, _| says(a, false, |e| e.inclusive);
    "lower_inf"(ANYRANGE) BOOL strict |a, _| says(a, true, |e| e.value.is_none()); "lower_inf"(ANYMULTIRANGE) BOOL strict |a, _| says(a, true, |e| e.value.is_none());
    "upper_inf"(ANYRANGE) BOOL strict |a, _| says(a, false, |e| e.value.is_none()); "upper_inf"(ANYMULTIRANGE) BOOL strict |a, _| says(a, false, |e| e.value.is_none());
    "range_merge"(ANYRANGE, ANYRANGE) ANYRANGE strict |a, _| Ok(datum(span(range(&a[0])?, range(&a[1])?)));
    "range_merge"(ANYMULTIRANGE) ANYRANGE strict |a, _| hull(a);
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "@>"(ANYRANGE, ANYRANGE) BOOL strict |a, _| contains(a, 0, 1); "@>"(ANYRANGE, ANYELEMENT) BOOL strict |a, _| has(a, 0, 1);
    "@>"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| contains(a, 0, 1); "@>"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| contains(a, 0, 1);
    "@>"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| contains(a, 0, 1); "@>"(ANYMULTIRANGE, ANYELEMENT) BOOL strict |a, _| has(a, 0, 1);
    "<@"(ANYRANGE, ANYRANGE) BOOL strict |a, _| contains(a, 1, 0); "<@"(ANYELEMENT, ANYRANGE) BOOL strict |a, _| has(a, 1, 0);
    "<@"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| contains(a, 1, 0); "<@"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| contains(a, 1, 0);
    "<@"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| contains(a, 1, 0); "<@"(ANYELEMENT, ANYMULTIRANGE) BOOL strict |a, _| has(a, 1, 0);
    "&&"(ANYRANGE, ANYRANGE) BOOL strict |a, _| shares(a); "&&"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| shares(a);
    "&&"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| shares(a); "&&"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| shares(a);
    "<<"(ANYRANGE, ANYRANGE) BOOL strict |a, _| before(a, 0, 1); "<<"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| before(a, 0, 1);
    "<<"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| before(a, 0, 1); "<<"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| before(a, 0, 1);
    ">>"(ANYRANGE, ANYRANGE) BOOL strict |a, _| before(a, 1, 0); ">>"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| before(a, 1, 0);
    ">>"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| before(a, 1, 0); ">>"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| before(a, 1, 0);
    "&<"(ANYRANGE, ANYRANGE) BOOL strict |a, _| not_beyond(a, false); "&<"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| not_beyond(a, false);
    "&<"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| not_beyond(a, false); "&<"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| not_beyond(a, false);
    "&>"(ANYRANGE, ANYRANGE) BOOL strict |a, _| not_beyond(a, true); "&>"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| not_beyond(a, true);
    "&>"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| not_beyond(a, true); "&>"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| not_beyond(a, true);
    "-|-"(ANYRANGE, ANYRANGE) BOOL strict |a, _| touches(a); "-|-"(ANYRANGE, ANYMULTIRANGE) BOOL strict |a, _| touches(a);
    "-|-"(ANYMULTIRANGE, ANYRANGE) BOOL strict |a, _| touches(a); "-|-"(ANYMULTIRANGE, ANYMULTIRANGE) BOOL strict |a, _| touches(a);
    "+"(ANYRANGE, ANYRANGE) ANYRANGE strict |a, _| union(a); "+"(ANYMULTIRANGE, ANYMULTIRANGE) ANYMULTIRANGE strict |a, _| union_multi(a);
    "*"(ANYRANGE, ANYRANGE) ANYRANGE strict |a, _| Ok(datum(common(range(&a[0])?, range(&a[1])?)));
    "*"(ANYMULTIRANGE, ANYMULTIRANGE) ANYMULTIRANGE strict |a, _| common_multi(a);
    "-"(ANYRANGE, ANYRANGE) ANYRANGE strict |a, _| minus(a); "-"(ANYMULTIRANGE, ANYMULTIRANGE) ANYMULTIRANGE strict |a, _| minus_multi(a);
};

const fn of_array(name: &'static str, body: super::functions::Body) -> Function {
    const ARGS: &[Oid] = &[oid::ANYARRAY, oid::OID];
    Function { name, args: ARGS, result: ANYMULTIRANGE, strict: false, variadic: false, volatile: false, body }
}

/// What range_agg makes of the array of its arguments; the second argument is their type.
pub static AGGREGATE: Function = of_array("range_agg", |a, _| {
    let kind = a[1].as_i64().and_then(|n| kind_of(n as Oid));
    let (Datum::Array(list), Some(kind)) = (&a[0], kind) else { return Ok(Datum::Null) };
    let mut ranges = Vec::new();
    for value in list.values.iter().filter(|v| !v.is_null()) {
        breath::step(16)?;
        match value {
            Datum::Range(range) => ranges.push((**range).clone()),
            value => ranges.extend(whole(value)?.ranges),
        }
    }
    match list.values.iter().all(Datum::is_null) {
        true => Ok(Datum::Null),
        false => Ok(Multirange::of(kind, ranges)?.into()),
    }
});

/// What range_intersect_agg makes of the array of its arguments.
pub static COMMON: Function = of_array("range_intersect_agg", |a, _| {
    let Datum::Array(list) = &a[0] else { return Ok(Datum::Null) };
    let mut out: Option<Datum> = None;
    for value in list.values.iter().filter(|v| !v.is_null()) {
        breath::step(16)?;
        out = Some(match (out, value) {
            (None, value) => value.clone(),
            (Some(old), Datum::Range(_)) => datum(common(range(&old)?, range(value)?)),
            (Some(old), value) => common_multi(&[old, value.clone()])?,
        });
    }
    Ok(out.unwrap_or(Datum::Null))
});

/// The kind of a type of ranges or multiranges.
pub fn kind_of(ty: Oid) -> Option<&'static RangeKind> {
    of_range(ty).or_else(|| of_multirange(ty))
}

fn wrong() -> SqlError {
    SqlError::internal("a function of ranges got another type")
}

fn range(d: &Datum) -> Result<&Range> {
    match d {
        Datum::Range(range) => Ok(range),
        _ => Err(wrong()),
    }
}

/// A range or multirange as a multirange.
fn whole(d: &Datum) -> Result<Multirange> {
    match d {
        Datum::Range(range) => {
            let ranges = if range.ends.is_some() { vec![(**range).clone()] } else { Vec::new() };
            Ok(Multirange { kind: range.kind, ranges })
        }
        Datum::Multirange(value) => Ok((**value).clone()),
        _ => Err(wrong()),
    }
}

impl From<Multirange> for Datum {
    fn from(value: Multirange) -> Datum {
        Datum::Multirange(value.into())
    }
}

fn pair(a: &[Datum]) -> Result<(Multirange, Multirange)> {
    Ok((whole(&a[0])?, whole(&a[1])?))
}

/// A range of two bounds, with flags like `[)`.
fn made(kind: usize, a: &[Datum]) -> Result<Datum> {
    let flags = match a.get(2) {
        None => "[)",
        Some(flags) => {
            flags.as_str().ok_or_else(|| SqlError::new("22000", "range constructor flags argument must not be null"))?
        }
    };
    if !matches!(flags, "[]" | "[)" | "(]" | "()") {
        return Err(SqlError::new(code::SYNTAX_ERROR, "invalid range bound flags")
            .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
    }
    let value = |d: &Datum| (!d.is_null()).then(|| d.clone());
    let lower = Edge { value: value(&a[0]), inclusive: flags.starts_with('['), lower: true };
    let upper = Edge { value: value(&a[1]), inclusive: flags.ends_with(']'), lower: false };
    Range::new(&KINDS[kind], lower, upper).map(datum)
}

fn multi(kind: usize, a: &[Datum]) -> Result<Datum> {
    let ranges = a.iter().map(|d| range(d).cloned()).collect::<Result<_>>()?;
    Ok(Multirange::of(&KINDS[kind], ranges)?.into())
}

/// The lower or upper end of the whole.
fn edge(d: &Datum, lower: bool) -> Result<Option<Edge>> {
    let ranges = whole(d)?.ranges;
    let range = if lower { ranges.first() } else { ranges.last() };
    Ok(range.and_then(|r| r.ends.as_ref()).map(|(l, u)| if lower { l.clone() } else { u.clone() }))
}

fn end(a: &[Datum], lower: bool) -> Result<Datum> {
    Ok(edge(&a[0], lower)?.and_then(|e| e.value).unwrap_or(Datum::Null))
}

fn says(a: &[Datum], lower: bool, what: fn(&Edge) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(edge(&a[0], lower)?.is_some_and(|e| what(&e))))
}

fn hull(a: &[Datum]) -> Result<Datum> {
    let all = whole(&a[0])?;
    let ends = edge(&a[0], true)?.zip(edge(&a[0], false)?);
    Ok(datum(Range { kind: all.kind, ends }))
}

fn contains_range(outer: &Range, inner: &Range) -> bool {
    match (&outer.ends, &inner.ends) {
        (_, None) => true,
        (None, _) => false,
        (Some((l, u)), Some((m, v))) => compare_edges(l, m).is_le() && compare_edges(u, v).is_ge(),
    }
}

fn contains(a: &[Datum], outer: usize, inner: usize) -> Result<Datum> {
    let (outer, inner) = (whole(&a[outer])?, whole(&a[inner])?);
    let held = |r: &Range| outer.ranges.iter().any(|o| contains_range(o, r));
    Ok(Datum::Bool(inner.ranges.iter().all(held)))
}

fn has(a: &[Datum], outer: usize, element: usize) -> Result<Datum> {
    let value = Some(a[element].clone());
    let at = |lower| Edge { value: value.clone(), inclusive: true, lower };
    let (lower, upper) = (at(true), at(false));
    let held = |r: &Range| match &r.ends {
        None => false,
        Some((l, u)) => compare_edges(l, &lower).is_le() && compare_edges(u, &upper).is_ge(),
    };
    Ok(Datum::Bool(whole(&a[outer])?.ranges.iter().any(held)))
}

fn shares(a: &[Datum]) -> Result<Datum> {
    let (l, r) = pair(a)?;
    Ok(Datum::Bool(l.ranges.iter().any(|x| r.ranges.iter().any(|y| overlaps(x, y)))))
}

fn before(a: &[Datum], first: usize, second: usize) -> Result<Datum> {
    let ends = edge(&a[first], false)?.zip(edge(&a[second], true)?);
    Ok(Datum::Bool(ends.is_some_and(|(u, l)| compare_edges(&u, &l).is_lt())))
}

/// `&<` (does not extend to the right of), `&>` (to the left of).
fn not_beyond(a: &[Datum], lower: bool) -> Result<Datum> {
    let ends = edge(&a[0], lower)?.zip(edge(&a[1], lower)?);
    let wanted = |o: Ordering| if lower { o.is_ge() } else { o.is_le() };
    Ok(Datum::Bool(ends.is_some_and(|(x, y)| wanted(compare_edges(&x, &y)))))
}

fn touches(a: &[Datum]) -> Result<Datum> {
    if let (Datum::Range(l), Datum::Range(r)) = (&a[0], &a[1]) {
        return adjacent(l, r).map(Datum::Bool);
    }
    let (l, r) = pair(a)?;
    let meet = |x: Option<&Range>, y: Option<&Range>| match (x, y) {
        (Some(x), Some(y)) if before_each(x, y) => adjacent(x, y),
        _ => Ok(false),
    };
    Ok(Datum::Bool(meet(l.ranges.last(), r.ranges.first())? || meet(r.ranges.last(), l.ranges.first())?))
}

fn before_each(a: &Range, b: &Range) -> bool {
    match (&a.ends, &b.ends) {
        (Some((_, u)), Some((l, _))) => compare_values(u, l).is_le(),
        _ => false,
    }
}

fn union(a: &[Datum]) -> Result<Datum> {
    let (l, r) = (range(&a[0])?, range(&a[1])?);
    let both = l.ends.is_some() && r.ends.is_some();
    if both && !overlaps(l, r) && !adjacent(l, r)? {
        return Err(SqlError::new("22000", "result of range union would not be contiguous"));
    }
    Ok(datum(span(l, r)))
}

fn union_multi(a: &[Datum]) -> Result<Datum> {
    let (l, r) = pair(a)?;
    Ok(Multirange::of(l.kind, l.ranges.into_iter().chain(r.ranges).collect())?.into())
}

/// The elements that two ranges share.
fn common(a: &Range, b: &Range) -> Range {
    let (Some((l, u)), Some((m, v)), true) = (&a.ends, &b.ends, overlaps(a, b)) else { return Range::empty(a.kind) };
    let lower = if compare_edges(l, m).is_ge() { l } else { m };
    let upper = if compare_edges(u, v).is_le() { u } else { v };
    Range { kind: a.kind, ends: Some((lower.clone(), upper.clone())) }
}

fn common_multi(a: &[Datum]) -> Result<Datum> {
    let (l, r) = pair(a)?;
    let mut out = Vec::new();
    for x in &l.ranges {
        for y in &r.ranges {
            breath::step(16)?;
            out.push(common(x, y));
        }
    }
    Ok(Multirange::of(l.kind, out)?.into())
}

/// The other side of an end: where it stands as an upper end of what lies below a lower one, and the reverse.
fn turned(e: &Edge) -> Edge {
    Edge { value: e.value.clone(), inclusive: !e.inclusive, lower: !e.lower }
}

/// What is left of a range without another: what lies below it and what lies above.
fn rest(a: &Range, b: &Range) -> Result<Vec<Range>> {
    let (Some((l, u)), Some((m, v)), true) = (&a.ends, &b.ends, overlaps(a, b)) else { return Ok(vec![a.clone()]) };
    let mut out = Vec::new();
    if compare_edges(l, m).is_lt() {
        out.push(Range::new(a.kind, l.clone(), turned(m))?);
    }
    if compare_edges(u, v).is_gt() {
        out.push(Range::new(a.kind, turned(v), u.clone())?);
    }
    Ok(out)
}

fn minus(a: &[Datum]) -> Result<Datum> {
    let (l, r) = (range(&a[0])?, range(&a[1])?);
    let mut left = rest(l, r)?;
    match left.len() {
        0 => Ok(datum(Range::empty(l.kind))),
        1 => Ok(datum(left.remove(0))),
        _ => Err(SqlError::new("22000", "result of range difference would not be contiguous")),
    }
}

fn minus_multi(a: &[Datum]) -> Result<Datum> {
    let (l, r) = pair(a)?;
    let mut left = l.ranges;
    for cut in &r.ranges {
        let mut next = Vec::new();
        for range in &left {
            breath::step(16)?;
            next.extend(rest(range, cut)?);
        }
        left = next;
    }
    Ok(Multirange::of(l.kind, left)?.into())
}
