//! Keys: tuples of values as bytes that sort as the values do.
//!
//! Each value begins with a byte that says whether it is null; nulls sort last, or first if the column says so. The
//! rest sorts bytewise: integers big-endian with the sign bit flipped, floats in the bit order of IEEE 754's total order, bytes with 0x00
//! escaped and a terminator (the encoding of FoundationDB's tuple layer), folded texts as the bytes of their lower-case form, sorted values as
//! the bytes of their sort form, decimals as in `Decimal::encode_key`. In a descending column every byte is complemented.
//!
//! # Invariants
//! - KEY-1: for tuples a and b of the same columns, `encode(a) < encode(b)` exactly if a sorts before b.
//! - KEY-2: no encoded value is a proper prefix of another, so columns can be appended and prefixes searched.
//! - KEY-3: the key form of a folded text is that of its lower-case form and nothing else, so two texts that differ in case alone are one key: a
//!   unique index has one of them. The row's value has the text as it was written (SHP-2), and no index gives it (IXO-2).
//! - KEY-4: the key form of a sorted value is that of its sort form (`forms`) and nothing else, so two values with one sort form, such as the
//!   intervals of a month and of thirty days, are one key. The row's value has the bytes as they were given, as for folded texts.

use super::forms;
use crate::decimal::Decimal;
use crate::value::{Storage, Value, ValueRef};

/// How a column of a key sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// How the value is stored.
    pub storage: Storage,
    /// From high to low.
    pub descending: bool,
    /// Nulls before everything instead of after.
    pub nulls_first: bool,
}

impl KeyColumn {
    /// Ascending, nulls last: PostgreSQL's default.
    pub fn ascending(storage: Storage) -> KeyColumn {
        KeyColumn { storage, descending: false, nulls_first: false }
    }
}

const NULL_FIRST: u8 = 0x00;
pub(crate) const PRESENT: u8 = 0x01;
const NULL_LAST: u8 = 0x02;

/// Appends one value. The value fits the column.
pub fn encode_value(column: KeyColumn, value: &Value, out: &mut Vec<u8>) {
    if value.is_null() {
        out.push(if column.nulls_first { NULL_FIRST } else { NULL_LAST });
        return;
    }
    out.push(PRESENT);
    let from = out.len();
    match (value, column.storage) {
        (Value::Bool(b), _) => out.push(u8::from(*b)),
        (Value::Int(i), Storage::Int(width)) => {
            let flipped = (*i as u64) ^ (1 << 63) >> (64 - 8 * u32::from(width));
            out.extend_from_slice(&flipped.to_be_bytes()[8 - usize::from(width)..]);
        }
        (Value::Int(i), _) => out.extend_from_slice(&((*i as u64) ^ (1 << 63)).to_be_bytes()),
        (Value::Float(f), _) => out.extend_from_slice(&float_key(*f).to_be_bytes()),
        (Value::Decimal(d), _) => d.encode_key(out),
        // KEY-3
        (Value::Bytes(bytes), Storage::Folded) => {
            let mut folded = Vec::with_capacity(bytes.len());
            clearway_base::fold::lower_into(bytes, &mut folded);
            escape(&folded, out);
        }
        // KEY-4
        (Value::Bytes(bytes), Storage::Sorted(form)) => {
            let mut sorted = Vec::with_capacity(bytes.len());
            forms::put(form, bytes, &mut sorted);
            escape(&sorted, out);
        }
        (Value::Bytes(bytes), _) => escape(bytes, out),
        (Value::Null, _) => {}
    }
    if column.descending {
        out[from..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// Appends an integer as [`encode_value`] does.
#[inline]
pub fn encode_int(column: KeyColumn, int: i64, out: &mut Vec<u8>) {
    let Storage::Int(width) = column.storage else { return encode_value(column, &Value::Int(int), out) };
    let flipped = (int as u64) ^ (1 << 63) >> (64 - 8 * u32::from(width));
    let flipped = if column.descending { !flipped } else { flipped };
    out.push(PRESENT);
    out.extend_from_slice(&flipped.to_be_bytes()[8 - usize::from(width)..]);
}

/// Appends a value where it stands as [`encode_value`] does.
#[inline]
pub fn encode_ref(column: KeyColumn, value: ValueRef<'_>, out: &mut Vec<u8>) {
    match (value, column.storage) {
        (ValueRef::Int(int), _) => encode_int(column, int, out),
        (ValueRef::Bytes(bytes), Storage::Bytes) if !column.descending => {
            out.push(PRESENT);
            escape(bytes, out);
        }
        (value, _) => encode_value(column, &value.into(), out),
    }
}

/// The key of a tuple.
pub fn encode_key(columns: &[KeyColumn], values: &[Value]) -> Vec<u8> {
    assert!(values.len() <= columns.len(), "a key of {} columns has no {} values", columns.len(), values.len());
    let mut out = Vec::with_capacity(10 * columns.len());
    columns.iter().zip(values).for_each(|(c, v)| encode_value(*c, v, &mut out));
    out
}

/// Reads one value off the front. For storages whose key form is not invertible the value is passed over and given as `None`; the
/// row's value part has it. The outer `None`: the bytes are no such key.
pub fn decode_value(column: KeyColumn, bytes: &[u8]) -> Option<(Option<Value>, &[u8])> {
    let (head, rest) = bytes.split_first()?;
    match *head {
        NULL_FIRST | NULL_LAST => return Some((Some(Value::Null), rest)),
        PRESENT => {}
        _ => return None,
    }
    if !column.descending {
        return decode_present(column.storage, rest);
    }
    let complemented: Vec<u8> = rest.iter().map(|b| !b).collect();
    let (value, left) = decode_present(column.storage, &complemented)?;
    Some((value, rest.get(rest.len() - left.len()..)?))
}

/// An integer off the front: what [`decode_value`] gives where the column is an ascending one of two, four or eight bytes, and not null.
#[inline]
pub fn decode_int(column: KeyColumn, bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (head, rest) = bytes.split_first()?;
    if *head != PRESENT || column.descending {
        return None;
    }
    Some(match column.storage {
        Storage::Int(4) => {
            let (int, rest) = rest.split_first_chunk::<4>()?;
            (i64::from((u32::from_be_bytes(*int) ^ 1 << 31) as i32), rest)
        }
        Storage::Int(8) => {
            let (int, rest) = rest.split_first_chunk::<8>()?;
            ((u64::from_be_bytes(*int) ^ 1 << 63) as i64, rest)
        }
        Storage::Int(2) => {
            let (int, rest) = rest.split_first_chunk::<2>()?;
            (i64::from((u16::from_be_bytes(*int) ^ 1 << 15) as i16), rest)
        }
        _ => return None,
    })
}

fn decode_present(storage: Storage, bytes: &[u8]) -> Option<(Option<Value>, &[u8])> {
    Some(match storage {
        Storage::Bool => {
            let (b, rest) = bytes.split_first()?;
            (Some(Value::Bool(*b != 0)), rest)
        }
        Storage::Int(width) => {
            let (int, rest) = bytes.split_at_checked(usize::from(width))?;
            // Most keys are of eight bytes.
            let unsigned = match int {
                [a, b, c, d, e, f, g, h] => u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
                _ => int.iter().fold(0u64, |n, b| n << 8 | u64::from(*b)),
            };
            let shift = 64 - 8 * u32::from(width);
            let flipped = (unsigned << shift) ^ (1 << 63);
            (Some(Value::Int((flipped as i64) >> shift)), rest)
        }
        Storage::Float => (None, bytes.get(8..)?),
        Storage::Decimal => (None, Decimal::skip_key(bytes)?),
        // KEY-3, KEY-4
        Storage::Folded | Storage::Sorted(_) => (None, unescape(bytes)?.1),
        Storage::Bytes => {
            let (value, rest) = unescape(bytes)?;
            (Some(Value::Bytes(value.into())), rest)
        }
    })
}

/// The IEEE total order, with -0 as 0 and one NaN above everything.
fn float_key(f: f64) -> u64 {
    if f.is_nan() {
        return u64::MAX;
    }
    let bits = if f == 0.0 { 0 } else { f.to_bits() };
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// What [`encode_int`] appends for an ascending integer of four bytes, as a row has it stored.
#[inline]
pub(crate) fn present_int(stored: [u8; 4]) -> [u8; 5] {
    let [a, b, c, d] = (u32::from_le_bytes(stored) ^ 1 << 31).to_be_bytes();
    [PRESENT, a, b, c, d]
}

/// Appends bytes, with zeros escaped and the terminator.
pub(crate) fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.contains(&0) {
        out.reserve(bytes.len() + 2);
        out.extend_from_slice(bytes);
        out.extend_from_slice(&[0, 0]);
        return;
    }
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn unescape(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = bytes;
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        if *byte != 0 {
            value.push(*byte);
            continue;
        }
        let (mark, after) = rest.split_first()?;
        rest = after;
        match *mark {
            0 => return Some((value, rest)),
            0xff => value.push(0),
            _ => return None,
        }
    }
}

/// The smallest key that is above every key that begins with `prefix`; `None` if there is none.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_read_at_once_are_those_that_are_read_one_way_or_another() {
        for width in [1, 2, 3, 4, 8] {
            let bound = 1_i64 << (8 * u32::from(width) - 1).min(62);
            for (value, nulls_first) in [0, 1, -1, 77, -bound, bound - 1].into_iter().zip([true, false].repeat(3)) {
                let column = KeyColumn { nulls_first, ..KeyColumn::ascending(Storage::Int(width)) };
                let mut bytes = Vec::new();
                encode_value(column, &Value::Int(value), &mut bytes);
                for descending in [false, true] {
                    let (mut by_value, mut by_int) = (Vec::new(), Vec::new());
                    encode_value(KeyColumn { descending, ..column }, &Value::Int(value), &mut by_value);
                    encode_int(KeyColumn { descending, ..column }, value, &mut by_int);
                    assert_eq!(by_int, by_value);
                }
                bytes.extend_from_slice(b"rest");
                let expected = decode_value(column, &bytes);
                assert_eq!(expected, Some((Some(Value::Int(value)), &b"rest"[..])));
                match decode_int(column, &bytes) {
                    Some((int, rest)) => assert_eq!((int, rest), (value, &b"rest"[..])),
                    None => assert!(width == 1 || width == 3, "{width} bytes"),
                }
                assert_eq!(decode_int(KeyColumn { descending: true, ..column }, &bytes), None);
                assert_eq!(decode_int(column, &bytes[..1]), None);
            }
            let column = KeyColumn::ascending(Storage::Int(width));
            assert_eq!((decode_int(column, &[NULL_LAST]), decode_int(column, &[])), (None, None));
        }
    }
}
