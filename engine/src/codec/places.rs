//! The places of wanted columns in rows of one schema version that have no null: computed once, so that a row is read without a walk over its columns.
//!
//! # Invariants
//! - PLC-1: what is given is what [`RowReader::pick`](super::row::RowReader::pick) gives. A row of another version, one with a null, and one that is cut off
//!   are left to it.

use super::row::fixed_ref;
use crate::value::{Storage, ValueRef};
use std::ops::Range;

/// See the head of this module.
#[derive(Clone, Debug)]
pub struct Places {
    /// The first byte of such a row.
    head: u8,
    /// Bytes of the columns of fixed width.
    fixed_bytes: usize,
    columns: Box<[(usize, Place)]>,
}

#[derive(Clone, Debug)]
enum Place {
    Fixed(Storage, Range<usize>),
    /// The only column without a fixed width: the rest of the row.
    Rest,
}

impl Places {
    /// The places of the wanted columns, each given with its position; none: they depend on the row.
    pub fn of(version: u16, columns: &[(Storage, Option<usize>)]) -> Option<Places> {
        // Versions from 64 on take more bytes than the head has.
        let head = u8::try_from(version).ok().filter(|version| *version < 0x40)?;
        let variable_columns = columns.iter().filter(|(storage, _)| storage.fixed_width().is_none()).count();
        let (mut fixed_bytes, mut places) = (0, Vec::new());
        for (storage, wanted) in columns {
            let place = match storage.fixed_width() {
                Some(width) => {
                    fixed_bytes += width;
                    Some(Place::Fixed(*storage, fixed_bytes - width..fixed_bytes))
                }
                None => (variable_columns == 1 && *storage != Storage::Decimal).then_some(Place::Rest),
            };
            if let Some(position) = wanted {
                places.push((*position, place?));
            }
        }
        Some(Places { head, fixed_bytes, columns: places.into() })
    }

    /// Gives the wanted columns of a row to `put`; false: it has to be read column by column, and nothing was given.
    #[inline]
    pub fn read(&self, row: &[u8], put: &mut dyn FnMut(usize, ValueRef<'_>)) -> bool {
        self.read_borrowed(row, put)
    }

    /// The same; the values may be kept as long as the row.
    #[inline]
    pub fn read_borrowed<'v>(&self, row: &'v [u8], mut put: impl FnMut(usize, ValueRef<'v>)) -> bool {
        let Some((head, body)) = row.split_first() else { return false };
        if *head != self.head || body.len() < self.fixed_bytes {
            return false;
        }
        let (fixed, rest) = body.split_at(self.fixed_bytes);
        for (position, place) in &self.columns {
            put(
                *position,
                match place {
                    Place::Fixed(storage, range) => fixed_ref(*storage, fixed.get(range.clone()).unwrap_or_default()),
                    Place::Rest => ValueRef::Bytes(rest),
                },
            );
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{RowReader, encode_row};
    use super::*;
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
    fn there_are_no_places_where_they_depend_on_the_row() {
        let columns = |wanted: [bool; 3]| {
            let all = [Storage::Bytes, Storage::Bytes, Storage::Int(8)];
            all.iter().zip(wanted).enumerate().map(|(i, (s, w))| (*s, w.then_some(i))).collect::<Vec<_>>()
        };
        assert!(Places::of(1, &columns([false, false, true])).is_some(), "a fixed column stands before all others");
        assert!(Places::of(1, &columns([true, false, false])).is_none());
        assert!(Places::of(64, &columns([false, false, true])).is_none(), "a version of three bytes");
        assert!(Places::of(1, &[(Storage::Decimal, Some(0))]).is_none(), "it has a form to be read");
    }
}
