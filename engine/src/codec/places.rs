//! The places of wanted columns in rows of one schema version that have no null: computed once, so that a row is read without a walk over its columns.
//!
//! # Invariants
//! - PLC-1: what is given is what [`RowReader::pick`](super::row::RowReader::pick) gives. A row of another version, one with a null, and one that is cut off
//!   or otherwise damaged are left to it.

use super::row::fixed_ref;
use crate::decimal::StoredDecimal;
use crate::value::{Storage, ValueRef};
use std::ops::Range;

/// See the head of this module.
#[derive(Clone, Debug)]
pub struct Places {
    /// The first byte of such a row.
    head: u8,
    /// Bytes of the columns of fixed width.
    fixed_bytes: usize,
    /// Columns without a fixed width.
    variable_columns: usize,
    columns: Box<[(usize, Place)]>,
}

/// Where a column stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// It has a fixed width.
    Fixed(Storage, Range<usize>),
    /// It is the n-th column without one.
    Variable(Storage, usize),
}

/// The bytes of the n-th of the columns without a fixed width, whose offsets and values these are; none: they are damaged.
#[inline]
pub(crate) fn variable(bytes: &[u8], columns: usize, n: usize) -> Option<&[u8]> {
    if columns == 1 {
        return Some(bytes);
    }
    let (width, rest) = bytes.split_first()?;
    let offsets = usize::from(*width) * (columns - 1);
    let (offsets, data) = rest.split_at_checked(offsets)?;
    let end_of = |n: usize| -> Option<usize> {
        match width {
            1 => offsets.get(n).map(|end| usize::from(*end)),
            2 => Some(usize::from(u16::from_le_bytes(offsets.get(2 * n..2 * n + 2)?.try_into().ok()?))),
            4 => usize::try_from(u32::from_le_bytes(offsets.get(4 * n..4 * n + 4)?.try_into().ok()?)).ok(),
            _ => None,
        }
    };
    let from = if n == 0 { 0 } else { end_of(n - 1)? };
    let end = if n + 1 == columns { data.len() } else { end_of(n)? };
    data.get(from..end)
}

/// A value of such a column; none: it is damaged.
#[inline]
pub(crate) fn variable_ref(storage: Storage, bytes: &[u8]) -> Option<ValueRef<'_>> {
    match storage {
        Storage::Decimal => StoredDecimal::read(bytes).map(ValueRef::StoredDecimal),
        _ => Some(ValueRef::Bytes(bytes)),
    }
}

impl Places {
    /// The places of the wanted columns, each given with its position; none: rows of this version have a head that is longer.
    pub fn of(version: u16, columns: &[(Storage, Option<usize>)]) -> Option<Places> {
        // Versions from 64 on take more bytes than the head has.
        let head = u8::try_from(version).ok().filter(|version| *version < 0x40)?;
        let (mut fixed_bytes, mut variable_columns, mut places) = (0, 0, Vec::new());
        for (storage, wanted) in columns {
            let place = match storage.fixed_width() {
                Some(width) => {
                    fixed_bytes += width;
                    Place::Fixed(*storage, fixed_bytes - width..fixed_bytes)
                }
                None => {
                    variable_columns += 1;
                    Place::Variable(*storage, variable_columns - 1)
                }
            };
            places.extend(wanted.map(|position| (position, place)));
        }
        Some(Places { head, fixed_bytes, variable_columns, columns: places.into() })
    }

    /// Gives the wanted columns of a row to `put`; false: it has to be read column by column, and some may have been given.
    #[inline]
    pub fn read(&self, row: &[u8], put: &mut dyn FnMut(usize, ValueRef<'_>)) -> bool {
        self.read_borrowed(row, put)
    }

    /// The place of a wanted column.
    pub(crate) fn place_of(&self, position: usize) -> Option<&Place> {
        self.columns.iter().find(|(of, _)| *of == position).map(|(_, place)| place)
    }

    /// The columns of fixed width of a row, and what is behind them; none: it is another kind of row (PLC-1).
    #[inline]
    pub(crate) fn parts<'v>(&self, row: &'v [u8]) -> Option<(&'v [u8], &'v [u8])> {
        let (head, body) = row.split_first()?;
        if *head != self.head { None } else { body.split_at_checked(self.fixed_bytes) }
    }

    /// The bytes of the n-th column without a fixed width, of what is behind those that have one; none: they are damaged.
    #[inline]
    pub(crate) fn variable<'v>(&self, rest: &'v [u8], n: usize) -> Option<&'v [u8]> {
        variable(rest, self.variable_columns, n)
    }

    /// The same; the values may be kept as long as the row.
    #[inline]
    pub fn read_borrowed<'v>(&self, row: &'v [u8], mut put: impl FnMut(usize, ValueRef<'v>)) -> bool {
        let Some((fixed, rest)) = self.parts(row) else { return false };
        for (position, place) in &self.columns {
            let value = match place {
                Place::Fixed(storage, range) => Some(fixed_ref(*storage, fixed.get(range.clone()).unwrap_or_default())),
                Place::Variable(storage, n) => {
                    variable(rest, self.variable_columns, *n).and_then(|bytes| variable_ref(*storage, bytes))
                }
            };
            let Some(value) = value else { return false };
            put(*position, value);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{RowReader, encode_row};
    use super::*;
    use crate::decimal::{Decimal, Sign};
    use crate::value::Value;

    /// What is read of a row, as text; none: it is left to the reader.
    fn read(places: &Places, row: &[u8]) -> Option<String> {
        let mut all = String::new();
        places.read(row, &mut |position, value| all += &format!("{position}: {value:?}, ")).then_some(all)
    }

    fn picked(columns: &[(Storage, Option<usize>)], row: &[u8]) -> String {
        let (_, head) = RowReader::head(row).expect("a row");
        let mut all = String::new();
        let reader = head.reader(columns.len()).expect("a row");
        reader.pick(columns, &mut |position, value| all += &format!("{position}: {value:?}, ")).expect("picked");
        all
    }

    #[test]
    fn places_give_what_a_walk_over_the_columns_gives() {
        // PLC-1; the rest comes last on either way, since fixed columns are read first.
        let all = [Storage::Int(4), Storage::Bool, Storage::Bytes, Storage::Float, Storage::Int(2)];
        let values =
            [Value::Int(-7), Value::Bool(true), Value::bytes(b"some bytes"), Value::Float(-0.5), Value::Int(300)];
        for mask in 0..32_usize {
            let columns: Vec<_> =
                all.iter().enumerate().map(|(i, s)| (*s, (mask >> i & 1 == 1).then_some(i + 10))).collect();
            let places = Places::of(5, &columns).expect("one column has no fixed width");
            let mut row = Vec::new();
            encode_row(5, &all, values.iter().map(Value::borrow), &mut row);
            let sorted = |text: String| {
                let mut parts: Vec<String> = text.split(", ").map(str::to_owned).collect();
                parts.sort();
                parts
            };
            assert_eq!(read(&places, &row).map(sorted), Some(sorted(picked(&columns, &row))), "{mask:b}");
            let mut older = Vec::new();
            encode_row(4, &all, values.iter().map(Value::borrow), &mut older);
            assert_eq!(read(&places, &older), None, "another version");
            let mut with_null = values.clone();
            with_null[0] = Value::Null;
            let mut row = Vec::new();
            encode_row(5, &all, with_null.iter().map(Value::borrow), &mut row);
            assert_eq!(read(&places, &row), None, "a null");
            assert_eq!(read(&places, &[5, 1, 2]), None, "it is cut off");
            assert_eq!(read(&places, &[]), None);
        }
    }

    #[test]
    fn several_columns_without_a_fixed_width_are_found_by_their_offsets() {
        // PLC-1: offsets of one, two and four bytes, and of damaged rows either the reader's error or nothing.
        let all = [Storage::Bytes, Storage::Int(4), Storage::Decimal, Storage::Bytes];
        let columns: Vec<_> = all.iter().enumerate().map(|(i, s)| (*s, Some(i))).collect();
        let places = Places::of(5, &columns).expect("a version of one byte");
        for length in [0, 7, 300, 70_000] {
            let decimal = Decimal { sign: Sign::Positive, weight: 0, scale: 2, digits: [17, 5_000].into() };
            let text = vec![b'x'; length];
            let values = [Value::bytes(b"a"), Value::Int(-7), Value::Decimal(decimal), Value::bytes(&text)];
            let mut row = Vec::new();
            encode_row(5, &all, values.iter().map(Value::borrow), &mut row);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            assert!(places.read(&row, &mut |position, value| ours.push(format!("{position}: {value:?}"))));
            let reader = RowReader::head(&row).expect("a row").1.reader(all.len()).expect("a row");
            reader.pick(&columns, &mut |at, value| theirs.push(format!("{at}: {value:?}"))).expect("picked");
            ours.sort();
            theirs.sort();
            assert_eq!(ours, theirs, "{length} bytes of text");
            for cut in 0..row.len().min(40) {
                read(&places, &row[..cut]);
            }
            for at in 0..row.len().min(40) {
                let mut damaged = row.clone();
                damaged[at] ^= 0xff;
                let reader = RowReader::head(&damaged).ok().and_then(|(_, head)| head.reader(all.len()).ok());
                let picks = reader.is_some_and(|reader| reader.pick(&columns, &mut |_, _| ()).is_ok());
                assert!(read(&places, &damaged).is_none() || picks, "byte {at} of a row with {length} bytes of text");
            }
        }
    }

    #[test]
    fn a_version_of_three_bytes_has_no_places() {
        let columns = [(Storage::Int(8), Some(0))];
        assert!(Places::of(64, &columns).is_none() && Places::of(63, &columns).is_some());
    }
}
