//! Entries of indexes that are copied out of rows as they are stored: the places of an entry's parts in a row, and their forms, are known before the first row.
//!
//! # Invariants
//! - ECP-1: what is appended is what [`encode_ref`](crate::codec::key::encode_ref) appends for each column of the index. An index with a column of another kind than the pieces
//!   here is left to it, and so is a row of another version, one with a null, and one that is cut off (PLC-1).

use crate::codec::key::{KeyColumn, PRESENT, escape, present_int};
use crate::codec::places::{Place, Places};
use crate::table::shape::TableShape;
use crate::value::Storage;

/// A part of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// An ascending integer of so many bytes, which stands there among the columns of fixed width.
    Int { at: usize, width: usize },
    /// Ascending bytes: the n-th column without a fixed width.
    Bytes(usize),
}

impl Piece {
    fn of(places: &Places, column: usize, form: KeyColumn) -> Option<Piece> {
        match places.place_of(column)? {
            _ if form.descending => None,
            Place::Fixed(Storage::Int(width), range) if form.storage == Storage::Int(*width) => {
                Some(Piece::Int { at: range.start, width: range.len() })
            }
            Place::Variable(Storage::Bytes, n) if form.storage == Storage::Bytes => Some(Piece::Bytes(*n)),
            _ => None,
        }
    }
}

/// The pieces of a table's entries.
pub(crate) struct EntryCopies {
    places: Places,
    /// By the index's place in the shape.
    indexes: Vec<Vec<Piece>>,
}

/// A row's columns of fixed width, and what is behind them.
pub(crate) type Parts<'v> = (&'v [u8], &'v [u8]);

impl EntryCopies {
    /// The pieces of the entries of a table whose indexes are all plain; none: an entry has another kind of part.
    pub(crate) fn of(shape: &TableShape, places: &Places) -> Option<EntryCopies> {
        let pieces = |columns: &[usize], forms: &[KeyColumn]| -> Option<Vec<Piece>> {
            columns.iter().zip(forms).map(|(column, form)| Piece::of(places, *column, *form)).collect()
        };
        let indexes = shape.indexes.iter().map(|index| pieces(&index.columns, &index.key)).collect::<Option<_>>()?;
        Some(EntryCopies { places: places.clone(), indexes })
    }

    /// The parts of a row; none: it is left to the other way.
    #[inline]
    pub(crate) fn parts<'v>(&self, row: &'v [u8]) -> Option<Parts<'v>> {
        self.places.parts(row)
    }

    /// Appends what the entry of an index has before the row's key; false: it is left to the other way, and part of it may have been appended.
    #[inline]
    pub(crate) fn append(&self, index: usize, (fixed, rest): Parts<'_>, out: &mut Vec<u8>) -> bool {
        for piece in &self.indexes[index] {
            match *piece {
                Piece::Int { at, width: 4 } => {
                    let Some(int) = fixed.get(at..).and_then(<[u8]>::first_chunk) else { return false };
                    out.extend_from_slice(&present_int(*int));
                }
                Piece::Int { at, width } => {
                    let Some(int) = fixed.get(at..at + width) else { return false };
                    out.push(PRESENT);
                    let from = out.len();
                    out.extend(int.iter().rev());
                    out[from] ^= 0x80;
                }
                Piece::Bytes(n) => {
                    let Some(bytes) = self.places.variable(rest, n) else { return false };
                    out.push(PRESENT);
                    escape(bytes, out);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::key::encode_ref;
    use crate::codec::row::encode_row;
    use crate::value::Value;

    #[test]
    fn what_is_copied_is_what_is_encoded() {
        // ECP-1
        let storages =
            [1, 2, 3, 4, 8].map(Storage::Int).into_iter().chain([Storage::Bytes, Storage::Bytes]).collect::<Vec<_>>();
        let columns: Vec<_> = storages.iter().enumerate().map(|(n, storage)| (*storage, Some(n))).collect();
        let places = Places::of(9, &columns).expect("places");
        for (ints, texts) in [
            ([0, 0, 0, 0, 0], ["", "with a \0 byte"]),
            ([-1, -7, -300, -70_000, i64::MIN], ["some text", ""]),
            ([127, 32_767, 8_388_607, 2_147_483_647, i64::MAX], ["\0", "x"]),
        ] {
            let values: Vec<Value> =
                ints.iter().map(|n| Value::Int(*n)).chain(texts.iter().map(|t| Value::bytes(t.as_bytes()))).collect();
            let mut row = Vec::new();
            encode_row(9, &storages, values.iter().map(Value::borrow), &mut row);
            for (n, storage) in storages.iter().enumerate() {
                let form = KeyColumn::ascending(*storage);
                let piece = Piece::of(&places, n, form).expect("a piece");
                let copies = EntryCopies { places: places.clone(), indexes: vec![vec![piece, piece]] };
                let (mut copied, mut encoded) = (b"before".to_vec(), b"before".to_vec());
                assert!(copies.append(0, copies.parts(&row).expect("a row"), &mut copied));
                (0..2).for_each(|_| encode_ref(form, values[n].borrow(), &mut encoded));
                assert_eq!(copied, encoded, "column {n} of {values:?}");
                assert_eq!(Piece::of(&places, n, KeyColumn { descending: true, ..form }), None);
                for cut in 0..row.len() {
                    // A text behind a cut is a shorter one; nothing is read behind the end.
                    if let Some(parts) = copies.parts(&row[..cut]) {
                        copies.append(0, parts, &mut copied);
                    }
                }
            }
            let mut other = Vec::new();
            encode_row(8, &storages, values.iter().map(Value::borrow), &mut other);
            let copies = EntryCopies { places: places.clone(), indexes: Vec::new() };
            assert!(copies.parts(&other).is_none() && copies.parts(&[]).is_none(), "another version");
        }
        assert_eq!(Piece::of(&places, 0, KeyColumn::ascending(Storage::Float)), None);
    }
}
