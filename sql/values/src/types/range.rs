//! Ranges and multiranges: their kinds, values, order, and the text and binary forms.
//!
//! # Invariants
//! - RNG-1: a range without elements is stored as empty, without bounds; an infinite bound is never inclusive.
//! - RNG-2: the bounds of a range over integers or dates are `[)`, so that equal ranges have equal bounds.
//! - RNG-3: the ranges of a multirange are not empty, are sorted, and neither overlap nor are adjacent.

use super::array::is_blank;
use super::binary::{self, Reader};
use super::datum::{self, Datum};
use super::text::{self, Conversion};
use super::{Oid, oid};
use crate::error::{Result, SqlError, code};
use clearway_base::{breath, memory};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a type of ranges is.
#[derive(Debug, PartialEq, Eq)]
pub struct RangeKind {
    /// Its number.
    pub range: Oid,
    /// The type of its multiranges.
    pub multirange: Oid,
    /// The type of its elements.
    pub element: Oid,
}

const fn kind(range: Oid, multirange: Oid, element: Oid) -> RangeKind {
    RangeKind { range, multirange, element }
}

/// All types of ranges.
pub static KINDS: [RangeKind; 6] = [
    kind(oid::INT4RANGE, oid::INT4MULTIRANGE, oid::INT4),
    kind(oid::INT8RANGE, oid::INT8MULTIRANGE, oid::INT8),
    kind(oid::NUMRANGE, oid::NUMMULTIRANGE, oid::NUMERIC),
    kind(oid::TSRANGE, oid::TSMULTIRANGE, oid::TIMESTAMP),
    kind(oid::TSTZRANGE, oid::TSTZMULTIRANGE, oid::TIMESTAMPTZ),
    kind(oid::DATERANGE, oid::DATEMULTIRANGE, oid::DATE),
];

/// The kind of a type of ranges.
pub fn of_range(oid: Oid) -> Option<&'static RangeKind> {
    KINDS.iter().find(|k| k.range == oid)
}

/// The kind of a type of multiranges.
pub fn of_multirange(oid: Oid) -> Option<&'static RangeKind> {
    KINDS.iter().find(|k| k.multirange == oid)
}

/// One end of a range.
#[derive(Clone, Debug)]
pub struct Edge {
    /// None: without a bound.
    pub value: Option<Datum>,
    /// Whether the value belongs to the range.
    pub inclusive: bool,
    /// Whether it is the lower end.
    pub lower: bool,
}

/// A range.
#[derive(Clone, Debug)]
pub struct Range {
    /// Its kind.
    pub kind: &'static RangeKind,
    /// Its ends; none: empty.
    pub ends: Option<(Edge, Edge)>,
}

/// A multirange.
#[derive(Clone, Debug)]
pub struct Multirange {
    /// The kind of its ranges.
    pub kind: &'static RangeKind,
    /// Its ranges (RNG-3).
    pub ranges: Vec<Range>,
}

/// Compares the values of two ends, whether they belong to their ranges or not.
pub fn compare_values(a: &Edge, b: &Edge) -> Ordering {
    match (&a.value, &b.value) {
        (None, None) if a.lower == b.lower => Ordering::Equal,
        (None, _) => {
            if a.lower {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, None) => {
            if b.lower {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Some(x), Some(y)) => datum::compare(x, y),
    }
}

/// Compares two ends.
pub fn compare_edges(a: &Edge, b: &Edge) -> Ordering {
    let order = compare_values(a, b);
    if order.is_ne() || a.value.is_none() {
        return order;
    }
    match (a.inclusive, b.inclusive) {
        (true, true) => Ordering::Equal,
        (false, false) if a.lower == b.lower => Ordering::Equal,
        (false, _) => {
            if a.lower {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (true, false) => {
            if b.lower {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }
}

/// Orders two ranges: the empty one first, then by lower and upper end.
pub fn compare(a: &Range, b: &Range) -> Ordering {
    match (&a.ends, &b.ends) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some((l, u)), Some((m, v))) => compare_edges(l, m).then_with(|| compare_edges(u, v)),
    }
}

/// Orders two multiranges, range by range.
pub fn compare_multi(a: &Multirange, b: &Multirange) -> Ordering {
    let different = a.ranges.iter().zip(&b.ranges).map(|(x, y)| compare(x, y)).find(|o| o.is_ne());
    different.unwrap_or_else(|| a.ranges.len().cmp(&b.ranges.len()))
}

impl Hash for Range {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Some((lower, upper)) = &self.ends else { return 0u8.hash(state) };
        for end in [lower, upper] {
            end.inclusive.hash(state);
            end.value.hash(state);
        }
    }
}

impl Range {
    /// The range without elements.
    pub fn empty(kind: &'static RangeKind) -> Range {
        Range { kind, ends: None }
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> usize {
        let of = |e: &Edge| e.value.as_ref().map_or(0, Datum::heap_bytes);
        size_of::<Range>() + self.ends.as_ref().map_or(0, |(l, u)| of(l) + of(u))
    }

    /// A range of these ends (RNG-1, RNG-2).
    ///
    /// # Errors
    /// 22000 for a lower end above the upper one; 22003, 22008 for an end that has no successor.
    pub fn new(kind: &'static RangeKind, mut lower: Edge, mut upper: Edge) -> Result<Range> {
        lower.inclusive &= lower.value.is_some();
        upper.inclusive &= upper.value.is_some();
        if is_void(&lower, &upper)? {
            return Ok(Range::empty(kind));
        }
        if let (Some(value), false) = (&lower.value, lower.inclusive)
            && let Some(next) = successor(value)?
        {
            (lower.value, lower.inclusive) = (Some(next), true);
        }
        if let (Some(value), true) = (&upper.value, upper.inclusive)
            && let Some(next) = successor(value)?
        {
            (upper.value, upper.inclusive) = (Some(next), false);
        }
        if is_void(&lower, &upper)? {
            return Ok(Range::empty(kind));
        }
        Ok(Range { kind, ends: Some((lower, upper)) })
    }
}

/// Whether no value lies between two ends.
fn is_void(lower: &Edge, upper: &Edge) -> Result<bool> {
    let (Some(l), Some(u)) = (&lower.value, &upper.value) else { return Ok(false) };
    match datum::compare(l, u) {
        Ordering::Less => Ok(false),
        Ordering::Equal => Ok(!(lower.inclusive && upper.inclusive)),
        Ordering::Greater => {
            let message = "range lower bound must be less than or equal to range upper bound";
            Err(SqlError::new("22000", message))
        }
    }
}

/// The next value of a type whose values have neighbours.
fn successor(value: &Datum) -> Result<Option<Datum>> {
    let out = |what: &str| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("{what} out of range"));
    Ok(match value {
        Datum::Int4(v) => Some(Datum::Int4(v.checked_add(1).ok_or_else(|| out("integer"))?)),
        Datum::Int8(v) => Some(Datum::Int8(v.checked_add(1).ok_or_else(|| out("bigint"))?)),
        // Infinity has none.
        Datum::Date(i32::MAX | i32::MIN) => None,
        Datum::Date(v) => Some(Datum::Date(next_day(*v)?)),
        _ => None,
    })
}

/// 5874897-12-31.
const LAST_DAY: i32 = 2_145_031_948;

fn next_day(date: i32) -> Result<i32> {
    let next = date + 1;
    if next > LAST_DAY {
        return Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "date out of range"));
    }
    Ok(next)
}

impl Multirange {
    /// The multirange of all elements of some ranges (RNG-3).
    ///
    /// # Errors
    /// Those of joining two ranges.
    pub fn of(kind: &'static RangeKind, mut ranges: Vec<Range>) -> Result<Multirange> {
        ranges.retain(|r| r.ends.is_some());
        ranges.sort_by(compare);
        let mut out: Vec<Range> = Vec::new();
        for range in ranges {
            breath::step(16)?;
            match out.last_mut() {
                Some(last) if overlaps(last, &range) || adjacent(last, &range)? => *last = span(last, &range),
                _ => out.push(range),
            }
        }
        Ok(Multirange { kind, ranges: out })
    }

    /// Bytes of the heap.
    pub fn heap_bytes(&self) -> usize {
        self.ranges.iter().map(Range::heap_bytes).sum()
    }
}

/// Whether two ranges have an element in common.
pub fn overlaps(a: &Range, b: &Range) -> bool {
    let (Some((l, u)), Some((m, v))) = (&a.ends, &b.ends) else { return false };
    compare_edges(l, v).is_le() && compare_edges(m, u).is_le()
}

/// Whether nothing lies between two ranges that have no element in common.
///
/// # Errors
/// As [`Range::new`].
pub fn adjacent(a: &Range, b: &Range) -> Result<bool> {
    let (Some((l, u)), Some((m, v))) = (&a.ends, &b.ends) else { return Ok(false) };
    Ok(touch(a.kind, u, m)? || touch(a.kind, v, l)?)
}

/// Whether an upper and a lower end leave nothing out and share nothing.
fn touch(kind: &'static RangeKind, upper: &Edge, lower: &Edge) -> Result<bool> {
    match compare_values(upper, lower) {
        Ordering::Equal => Ok(upper.inclusive != lower.inclusive),
        Ordering::Greater => Ok(false),
        Ordering::Less if matches!(kind.element, oid::INT4 | oid::INT8 | oid::DATE) => {
            let from = Edge { inclusive: !upper.inclusive, lower: true, value: upper.value.clone() };
            let to = Edge { inclusive: !lower.inclusive, lower: false, value: lower.value.clone() };
            Ok(Range::new(kind, from, to)?.ends.is_none())
        }
        Ordering::Less => Ok(false),
    }
}

/// The least range that contains two others.
pub fn span(a: &Range, b: &Range) -> Range {
    let (Some((l, u)), Some((m, v))) = (&a.ends, &b.ends) else {
        return if a.ends.is_none() { b.clone() } else { a.clone() };
    };
    let lower = if compare_edges(l, m).is_le() { l } else { m };
    let upper = if compare_edges(u, v).is_ge() { u } else { v };
    Range { kind: a.kind, ends: Some((lower.clone(), upper.clone())) }
}

fn malformed(what: &str, text: &str, detail: &str) -> SqlError {
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("malformed {what} literal: \"{text}\"")).detail(detail)
}

/// Reads a range.
///
/// # Errors
/// 22P02, and those of the bounds.
pub fn parse(kind: &'static RangeKind, text: &str, c: &Conversion<'_>) -> Result<Range> {
    let bad = |detail: &str| malformed("range", text, detail);
    let rest = text.trim_start_matches(is_blank);
    if rest.get(..5).is_some_and(|w| w.eq_ignore_ascii_case("empty")) {
        if rest[5..].chars().any(|c| !is_blank(c)) {
            return Err(bad("Junk after \"empty\" key word."));
        }
        return Ok(Range::empty(kind));
    }
    let lower_inclusive = match rest.chars().next() {
        Some('[') => true,
        Some('(') => false,
        _ => return Err(bad("Missing left parenthesis or bracket.")),
    };
    let (lower, rest) = bound(text, &rest[1..])?;
    let rest = rest.strip_prefix(',').ok_or_else(|| bad("Missing comma after lower bound."))?;
    let (upper, rest) = bound(text, rest)?;
    let upper_inclusive = match rest.chars().next() {
        Some(']') => true,
        Some(')') => false,
        _ => return Err(bad("Too many commas.")),
    };
    if rest[1..].chars().any(|c| !is_blank(c)) {
        return Err(bad("Junk after right parenthesis or bracket."));
    }
    let value = |text: Option<String>| text.map(|t| text::input(kind.element.into(), &t, c)).transpose();
    let lower = Edge { value: value(lower)?, inclusive: lower_inclusive, lower: true };
    let upper = Edge { value: value(upper)?, inclusive: upper_inclusive, lower: false };
    Range::new(kind, lower, upper)
}

/// The text of a bound, none for one that is left out, and what stands behind it.
fn bound<'a>(whole: &str, from: &'a str) -> Result<(Option<String>, &'a str)> {
    if from.starts_with([',', ')', ']']) {
        return Ok((None, from));
    }
    let end = || malformed("range", whole, "Unexpected end of input.");
    let (mut out, mut quoted) = (String::new(), false);
    let mut chars = from.char_indices().peekable();
    loop {
        let (at, c) = *chars.peek().ok_or_else(end)?;
        if !quoted && matches!(c, ',' | ')' | ']') {
            return Ok((Some(out), &from[at..]));
        }
        chars.next();
        match c {
            '\\' => out.push(chars.next().ok_or_else(end)?.1),
            '"' if !quoted => quoted = true,
            '"' if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = false,
            c => out.push(c),
        }
    }
}

/// Reads a multirange.
///
/// # Errors
/// 22P02, and those of the ranges.
pub fn parse_multi(kind: &'static RangeKind, text: &str, c: &Conversion<'_>) -> Result<Multirange> {
    let bad = |detail: &str| malformed("multirange", text, detail);
    let blanks = |s: &'_ str| s.len() - s.trim_start_matches(is_blank).len();
    let mut at = blanks(text);
    if !text[at..].starts_with('{') {
        return Err(bad("Missing left brace."));
    }
    at += 1;
    let mut ranges = Vec::new();
    loop {
        at += blanks(&text[at..]);
        let rest = &text[at..];
        if rest.is_empty() {
            return Err(bad("Unexpected end of input."));
        }
        if rest.starts_with('}') && ranges.is_empty() {
            at += 1;
            break;
        }
        let length = if rest.get(..5).is_some_and(|w| w.eq_ignore_ascii_case("empty")) {
            5
        } else if rest.starts_with(['[', '(']) {
            range_length(rest).ok_or_else(|| bad("Unexpected end of input."))?
        } else {
            return Err(bad("Expected range start."));
        };
        breath::step_bytes(length)?;
        memory::check()?;
        ranges.push(parse(kind, &rest[..length], c)?);
        at += length;
        at += blanks(&text[at..]);
        match text[at..].chars().next() {
            Some(',') => at += 1,
            Some('}') => {
                at += 1;
                break;
            }
            None => return Err(bad("Unexpected end of input.")),
            _ => return Err(bad("Expected comma or end of multirange.")),
        }
    }
    if text[at..].chars().any(|c| !is_blank(c)) {
        return Err(bad("Junk after closing right brace."));
    }
    Multirange::of(kind, ranges)
}

/// How long the range at the start of a text is.
fn range_length(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ')' | ']' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The text of a range.
pub fn format(range: &Range, c: &Conversion<'_>) -> String {
    let Some((lower, upper)) = &range.ends else { return "empty".to_owned() };
    let value = |e: &Edge| {
        let Some(value) = &e.value else { return String::new() };
        let shown = text::output(range.kind.element.into(), value, c);
        let special = |c: char| matches!(c, '"' | '\\' | '(' | ')' | '[' | ']' | ',') || is_blank(c);
        if !shown.is_empty() && !shown.contains(special) {
            return shown;
        }
        format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\"\""))
    };
    let (open, close) = (if lower.inclusive { '[' } else { '(' }, if upper.inclusive { ']' } else { ')' });
    format!("{open}{},{}{close}", value(lower), value(upper))
}

/// The text of a multirange.
pub fn format_multi(value: &Multirange, c: &Conversion<'_>) -> String {
    let ranges: Vec<String> = value.ranges.iter().map(|r| format(r, c)).collect();
    format!("{{{}}}", ranges.join(","))
}

/// The flags of the binary form.
mod flag {
    pub const EMPTY: u8 = 1;
    pub const LOWER_INCLUSIVE: u8 = 2;
    pub const UPPER_INCLUSIVE: u8 = 4;
    pub const NO_LOWER: u8 = 8;
    pub const NO_UPPER: u8 = 16;
}

/// The binary form of a range.
pub fn send(range: &Range, out: &mut Vec<u8>) {
    let Some((lower, upper)) = &range.ends else { return out.push(flag::EMPTY) };
    let set = |on: bool, flag: u8| if on { flag } else { 0 };
    out.push(
        set(lower.inclusive, flag::LOWER_INCLUSIVE)
            | set(upper.inclusive, flag::UPPER_INCLUSIVE)
            | set(lower.value.is_none(), flag::NO_LOWER)
            | set(upper.value.is_none(), flag::NO_UPPER),
    );
    for value in [lower, upper].into_iter().filter_map(|e| e.value.as_ref()) {
        binary::field(range.kind.element.into(), value, out);
    }
}

/// The binary form of a multirange.
pub fn send_multi(value: &Multirange, out: &mut Vec<u8>) {
    out.extend((value.ranges.len() as i32).to_be_bytes());
    for range in &value.ranges {
        let mut one = Vec::new();
        send(range, &mut one);
        out.extend((one.len() as i32).to_be_bytes());
        out.extend(one);
    }
}

fn bad() -> SqlError {
    SqlError::new(code::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

/// Reads the binary form of a range.
///
/// # Errors
/// 22P03, and those of the bounds.
pub(super) fn receive(kind: &'static RangeKind, r: &mut Reader<'_>) -> Result<Range> {
    let flags = r.byte()?;
    if flags & flag::EMPTY != 0 {
        return Ok(Range::empty(kind));
    }
    let mut value = |none: u8| match flags & none {
        0 => binary::input(kind.element.into(), r.field()?.ok_or_else(bad)?).map(Some),
        _ => Ok(None),
    };
    let lower = Edge { value: value(flag::NO_LOWER)?, inclusive: flags & flag::LOWER_INCLUSIVE != 0, lower: true };
    let upper = Edge { value: value(flag::NO_UPPER)?, inclusive: flags & flag::UPPER_INCLUSIVE != 0, lower: false };
    Range::new(kind, lower, upper)
}

/// Reads the binary form of a multirange.
///
/// # Errors
/// 22P03, and those of the ranges.
pub(super) fn receive_multi(kind: &'static RangeKind, r: &mut Reader<'_>) -> Result<Multirange> {
    let mut ranges = Vec::new();
    for _ in 0..r.i32()? {
        breath::step(16)?;
        let bytes = r.field()?.ok_or_else(bad)?;
        let mut inner = Reader::over(bytes);
        ranges.push(receive(kind, &mut inner)?);
        inner.end()?;
    }
    Multirange::of(kind, ranges)
}

/// A range as a value.
pub fn datum(range: Range) -> Datum {
    Datum::Range(Arc::new(range))
}
