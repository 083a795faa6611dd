//! The bytes of a range of keys, from the values of its ends.

use super::convert::to_value;
use super::scan::append_key;
use clearway_engine::codec::key::{KeyColumn, encode_value};
use clearway_engine::value::Value;
use clearway_storage::btree::KeyRange;
use clearway_values::types::Datum;

/// The byte after which no present value of an ascending column sorts (it begins a null), and the one that begins
/// a present value: the key encoding's.
const NULL_LAST: u8 = 0x02;

/// The ends of a range, as values.
pub struct Ends<'i, 'v> {
    /// Of the leading columns.
    pub equal: &'i mut dyn Iterator<Item = &'v Datum>,
    /// The bound below of the next column; whether it belongs to the range.
    pub low: Option<(&'v Datum, bool)>,
    /// The bound above.
    pub high: Option<(&'v Datum, bool)>,
}

/// Keys from `from`, inclusive, to `to`, exclusive; with `open` to the last key. Its memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBytes {
    /// The first key.
    pub from: Vec<u8>,
    to: Vec<u8>,
    open: bool,
}

impl From<KeyBytes> for KeyRange {
    fn from(bytes: KeyBytes) -> KeyRange {
        let KeyBytes { from, to, open } = bytes;
        KeyRange { from, to: (!open).then_some(to) }
    }
}

/// Where a range ends on one side.
enum End {
    Open,
    Empty,
    At,
}

impl KeyBytes {
    /// The bound above; none for all.
    pub fn to(&self) -> Option<&[u8]> {
        (!self.open).then_some(&self.to)
    }

    /// Takes the bytes of a range; false: it is empty.
    pub fn put(&mut self, columns: &mut dyn Iterator<Item = KeyColumn>, ends: Ends<'_, '_>) -> bool {
        let KeyBytes { from, to, open } = self;
        from.clear();
        to.clear();
        *open = false;
        let mut next = columns.next();
        for value in ends.equal {
            let Some(column) = next else { return false };
            if append_key(column, value, from).is_none() {
                return false;
            }
            next = columns.next();
        }
        to.extend_from_slice(from);
        let column = match next {
            Some(column) if ends.low.is_some() || ends.high.is_some() => column,
            _ => {
                *open = !step(to, 0);
                return true;
            }
        };
        match append_end(ends.low, column, true, from) {
            End::Empty => return false,
            End::Open => from.push(NULL_LAST - 1),
            End::At => {}
        }
        match append_end(ends.high, column, false, to) {
            End::Empty => return false,
            End::Open => to.push(NULL_LAST),
            End::At => {}
        }
        to > from
    }
}

/// Makes the bytes from `start` on those behind all that begin with them; false: there are none.
fn step(bytes: &mut Vec<u8>, start: usize) -> bool {
    while bytes.len() > start {
        if let Some(last) = bytes.pop().filter(|last| *last < u8::MAX) {
            bytes.push(last + 1);
            return true;
        }
    }
    false
}

/// Appends the bytes at which a range ends on one side.
fn append_end(bound: Option<(&Datum, bool)>, column: KeyColumn, low: bool, out: &mut Vec<u8>) -> End {
    let Some((value, inclusive)) = bound else { return End::Open };
    let value = to_value(value);
    if value.is_null() {
        return End::Empty;
    }
    if !value.fits(column.storage) {
        // A bound beyond what the column can hold lies above everything or below it.
        let above = matches!(value, Value::Int(i) if i > 0);
        return if above == low { End::Empty } else { End::Open };
    }
    let start = out.len();
    encode_value(column, &value, out);
    // A low bound begins at the value's own bytes if it belongs to the range; a high one ends behind them.
    if low != inclusive && !step(out, start) {
        return End::Open;
    }
    End::At
}
