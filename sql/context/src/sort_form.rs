//! Sort forms of the types whose stored bytes do not sort as their values do: the keys of indexes are made of them (KEY-4 of the engine).
//!
//! # Structure
//! ```text
//! interval     its span in microseconds, ten bytes, the sign bit flipped
//! bits         a byte, the bits, how many there are
//! jsonb        the rank of its kind, then what it holds; of arrays and objects the number of their elements first
//! array        its elements; an end, which is less than an element; the number of dimensions, their lengths, their lower bounds
//! row          its fields
//! range        0 for the empty one; or both ends: 0 for none below, 2 for none above, or a bound and whether it belongs to the range
//! multirange   its ranges; an end
//! ```
//! An element, a field and a bound have the key form of their own type, so an order within an order needs no rules of its own.
//!
//! # Invariants
//! - SFM-1: of two values of a type the form of the lesser one (`datum::compare`) is less, and equal values have equal forms.
//! - SFM-2: no form is a proper prefix of another one of its type, so that forms can stand one behind the other.
//! - SFM-3: a form depends on the stored bytes and on the form's number alone: not on the session, on types that users define and change, on
//!   an interrupt or on memory. So types that are made of enums, domains or other composite types have none, and are no keys.
//! - SFM-4: bytes that are no value of the type sort behind all values, so that damage is no panic. A reader of the row gets its error.

use super::convert::{storage_of, to_decimal, to_value};
use clearway_base::{breath, memory, stack};
use clearway_engine::catalog::types::table_of_row_type;
use clearway_engine::codec::forms::{self, SortForms};
use clearway_engine::codec::key::{KeyColumn, encode_value};
use clearway_engine::value::{Storage, Value};
use clearway_values::types::interval::Interval;
use clearway_values::types::json::{self, Json};
use clearway_values::types::order::is_ordered;
use clearway_values::types::range::KINDS;
use clearway_values::types::{Oid, binary, element_of, geometry, oid, user};

/// The numbers of the forms; they stand in catalogs. That of a type of ranges is `RANGES` and twice its place in `KINDS`, that of its
/// multiranges one more.
const INTERVAL: u8 = 0;
const BITS: u8 = 1;
const JSONB: u8 = 2;
const ARRAY: u8 = 3;
const ROW: u8 = 4;
const RANGES: u8 = 8;

/// Before each array's dimensions and behind the ranges of a multirange: less than what begins an element or a range.
const END: u8 = 0;
/// SFM-4
const DAMAGED: u8 = 0xff;

/// Whether a type can be that of a key: its values have an order, and keys sort by it.
pub fn can_be_key(ty: Oid) -> bool {
    let ty = user::base(ty.into()).oid;
    match storage_of(ty) {
        Some(Storage::Bytes) => {
            is_ordered(ty) && !geometry::is_one(ty) && element_of(ty).is_none() && !user::is_composite(ty)
        }
        Some(_) => true,
        None => false,
    }
}

/// The form of a type that is no domain; none: it needs none, or has no order, or an order that can change (SFM-3).
pub(super) fn form_of(ty: Oid) -> Option<u8> {
    if let Some(at) = KINDS.iter().position(|k| k.range == ty || k.multirange == ty) {
        return u8::try_from(2 * at).ok().map(|at| RANGES + at + u8::from(KINDS[usize::from(at) / 2].multirange == ty));
    }
    match ty {
        oid::INTERVAL => Some(INTERVAL),
        oid::BIT | oid::VARBIT => Some(BITS),
        oid::JSONB => Some(JSONB),
        // PostgreSQL has no order for the one, and another than that of arrays for the other.
        oid::INT2VECTOR | oid::OIDVECTOR => None,
        _ => match (element_of(ty), user::shape(ty)) {
            (Some(element), _) => is_steady(element).then_some(ARRAY),
            (_, Some(shape)) => {
                let steady = table_of_row_type(ty).is_none() && shape.types.iter().all(|field| is_steady(field.oid));
                steady.then_some(ROW)
            }
            _ => None,
        },
    }
}

/// Whether the order of a type never changes (SFM-3).
fn is_steady(ty: Oid) -> bool {
    (ty < user::FIRST_OID || matches!(ty, oid::CITEXT | oid::HSTORE)) && can_be_key(ty)
}

struct Forms;

/// Has the engine sort keys by the forms of this module.
pub fn install() {
    forms::install(&Forms);
}

impl SortForms for Forms {
    fn has(&self, form: u8) -> bool {
        form <= ROW || (RANGES..RANGES + 2 * KINDS.len() as u8).contains(&form)
    }

    fn put(&self, form: u8, value: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        if put(form, value, out).is_none() {
            out.truncate(start);
            out.push(DAMAGED);
            out.extend_from_slice(value);
        }
    }
}

/// Appends the form of a value; none: the bytes are none.
fn put(form: u8, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = Rest(value);
    match form {
        INTERVAL => put_interval(&mut rest, out)?,
        BITS => {
            let length = rest.take::<4>()?;
            out.push(END);
            // A text of bits ends before a longer one that begins with it.
            encode_value(KeyColumn::ascending(Storage::Bytes), &Value::bytes(rest.0), out);
            out.extend(length);
            rest.0 = &[];
        }
        JSONB => put_json(&json::stored::decode(value)?, true, out),
        ARRAY => put_array(&mut rest, out)?,
        ROW => {
            for _ in 0..rest.count()? {
                let ty = u32::from_be_bytes(rest.take()?);
                put_part(ty, rest.field()?, out)?;
            }
        }
        _ => {
            let at = form.checked_sub(RANGES)?;
            let element = KINDS.get(usize::from(at / 2))?.element;
            if at % 2 == 0 {
                put_range(element, &mut rest, out)?;
            } else {
                for _ in 0..rest.count()? {
                    let mut range = Rest(rest.field()??);
                    put_range(element, &mut range, out)?;
                    range.0.is_empty().then_some(())?;
                }
                out.push(END);
            }
        }
    }
    (form == JSONB || rest.0.is_empty()).then_some(())
}

/// What is left of the binary form of a value.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    /// How many there are of what takes four bytes at least.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.i32()?).ok()?;
        (count <= self.0.len() / 4).then_some(count)
    }

    /// Bytes with their length before them; the inner none: NULL.
    fn field(&mut self) -> Option<Option<&'b [u8]>> {
        let length = self.i32()?;
        if length == -1 {
            return Some(None);
        }
        let (field, tail) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = tail;
        Some(Some(field))
    }
}

/// Appends an element, a field or a bound in the key form of its type; NULL sorts last.
fn put_part(ty: Oid, wire: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
    let column = KeyColumn::ascending(storage_of(ty)?);
    let value = match wire {
        None => Value::Null,
        Some(wire) => match (ty, column.storage) {
            // A stored document stands in its own form; within another value it is a text.
            (oid::JSONB, _) => {
                let text = std::str::from_utf8(wire.strip_prefix(&[1])?).ok()?;
                Value::Bytes(json::stored::encode(&uninterrupted(|| json::parse(text).ok())?).into())
            }
            (_, Storage::Sorted(_)) => Value::bytes(wire),
            _ => to_value(&uninterrupted(|| binary::input(ty.into(), wire).ok())?),
        },
    };
    stack::deeper(|| encode_value(column, &value, out));
    Some(())
}

/// Reads a value, which neither an interrupt nor the statement's account ends (SFM-3).
fn uninterrupted<R>(read: impl FnOnce() -> R) -> R {
    breath::unstopped(|| memory::uncharged(read))
}

fn put_interval(rest: &mut Rest<'_>, out: &mut Vec<u8>) -> Option<()> {
    let micros = i64::from_be_bytes(rest.take()?);
    let span = Interval { micros, days: rest.i32()?, months: rest.i32()? }.span();
    // No span has more than 79 bits and its sign.
    let shifted = u128::try_from(span + (1 << 79)).ok()?;
    out.extend_from_slice(shifted.to_be_bytes().last_chunk::<10>()?);
    Some(())
}

fn put_array(rest: &mut Rest<'_>, out: &mut Vec<u8>) -> Option<()> {
    let (dimensions, _has_null) = (rest.i32()?, rest.i32()?);
    let element = u32::from_be_bytes(rest.take()?);
    let dimensions: Vec<(i32, i32)> =
        (0..dimensions.clamp(0, 6)).map(|_| Some((rest.i32()?, rest.i32()?))).collect::<Option<_>>()?;
    while !rest.0.is_empty() {
        put_part(element, rest.field()?, out)?;
    }
    out.push(END);
    out.push(dimensions.len() as u8);
    let lengths = dimensions.iter().map(|(length, _)| length);
    for number in lengths.chain(dimensions.iter().map(|(_, low)| low)) {
        out.extend(((*number as u32) ^ 1 << 31).to_be_bytes());
    }
    Some(())
}

/// The flags of a range's binary form.
const EMPTY: u8 = 1;
const LOWER_INCLUSIVE: u8 = 2;
const UPPER_INCLUSIVE: u8 = 4;
const NO_LOWER: u8 = 8;
const NO_UPPER: u8 = 16;

/// Of two ranges with one lower bound that which has the bound itself is the lesser, of two with one upper bound the other.
fn put_range(element: Oid, rest: &mut Rest<'_>, out: &mut Vec<u8>) -> Option<()> {
    let [flags] = rest.take()?;
    let is = |flag: u8| flags & flag != 0;
    if is(EMPTY) {
        out.push(0);
        return Some(());
    }
    out.push(1);
    // A bound that is there begins with 1 (KEY-1).
    if is(NO_LOWER) {
        out.push(0);
    } else {
        put_part(element, Some(rest.field()??), out)?;
        out.push(u8::from(!is(LOWER_INCLUSIVE)));
    }
    if is(NO_UPPER) {
        out.push(2);
    } else {
        put_part(element, Some(rest.field()??), out)?;
        out.push(u8::from(is(UPPER_INCLUSIVE)));
    }
    Some(())
}

/// The kinds of documents from the least to the greatest (`json::compare`): as a whole, an array without elements is less than all others.
fn put_json(json: &Json, whole: bool, out: &mut Vec<u8>) {
    let counted = |rank: u8, count: usize, out: &mut Vec<u8>| {
        out.push(rank);
        let bytes = (count as u64).to_be_bytes();
        let from = bytes.iter().position(|b| *b != 0).unwrap_or(bytes.len());
        out.push((bytes.len() - from) as u8);
        out.extend_from_slice(&bytes[from..]);
    };
    let text = |text: &str, out: &mut Vec<u8>| {
        encode_value(KeyColumn::ascending(Storage::Bytes), &Value::bytes(text.as_bytes()), out);
    };
    match json {
        Json::Array(list) if whole && list.is_empty() => out.push(0),
        Json::Null => out.push(1),
        Json::String(s) | Json::Moment(_, s) => {
            out.push(2);
            text(s, out);
        }
        Json::Number(n) => {
            out.push(3);
            to_decimal(n).encode_key(out);
        }
        Json::Bool(b) => out.extend([4, u8::from(*b)]),
        Json::Array(list) => {
            counted(5, list.len(), out);
            list.iter().for_each(|v| stack::deeper(|| put_json(v, false, out)));
        }
        Json::Object(list) => {
            counted(6, list.len(), out);
            for (name, v) in list {
                text(name, out);
                stack::deeper(|| put_json(v, false, out));
            }
        }
    }
}

#[cfg(test)]
#[path = "sort_form_tests.rs"]
mod tests;
