//! A stored row under another key: the row of the same table before or after its primary key changes, made of pieces of its bytes and without its values.
//!
//! # Invariants
//! - RCD-1: key and value that are written are those that the values of the row make ([`TableShape::row`], then `key_into` and `value_into` of the
//!   other shape). A row of an older schema version, one with a null, and one that is cut off are left to these.
//!
//! # Not here
//! Keys of anything but integers: they are read and written by way of their values.

use std::ops::Range;

use crate::codec::key::{KeyColumn, decode_int, encode_int};
use crate::codec::row::{encode_head, fixed_ref};
use crate::table::shape::TableShape;
use crate::value::{Storage, ValueRef};

/// The most columns of a key that is taken apart.
const KEY_COLUMNS_MAX: usize = 8;

/// How rows of one shape become rows of the other.
pub struct Recoder {
    /// The first byte of a row that has all columns of the present version and no null.
    head: u8,
    /// Bytes of its columns of fixed width.
    fixed_bytes: usize,
    old_key: Box<[KeyColumn]>,
    /// Of each column of the new key: where it stands in the old value.
    key: Box<[(KeyColumn, Storage, Range<usize>)]>,
    new_head: Vec<u8>,
    /// The columns of fixed width of the new value.
    pieces: Box<[Piece]>,
}

#[derive(Clone, Debug)]
enum Piece {
    /// As they stand in the old value.
    Bytes(Range<usize>),
    /// The column of the old key at this place, with so many bytes.
    Key(usize, usize),
}

impl Recoder {
    /// None: these rows are read and written by way of their values.
    pub fn new(old: &TableShape, new: &TableShape) -> Option<Recoder> {
        let head = u8::try_from(old.version()).ok().filter(|version| *version < 0x40)?;
        let (old_stored, new_stored) = (old.stored_now().0, new.stored_now().0);
        let storage = |column: &usize| old.columns[*column].storage;
        if old.columns.len() != new.columns.len()
            || (0..old.columns.len()).any(|c| storage(&c) != new.columns[c].storage)
        {
            return None;
        }
        let variable = |stored: &[usize]| -> Vec<usize> {
            stored.iter().copied().filter(|c| storage(c).fixed_width().is_none()).collect()
        };
        if variable(old_stored) != variable(new_stored) || old.key.len() > KEY_COLUMNS_MAX {
            return None;
        }
        let (mut fixed_bytes, mut places) = (0, Vec::new());
        for column in old_stored {
            if let Some(width) = storage(column).fixed_width() {
                places.push((*column, fixed_bytes..fixed_bytes + width));
                fixed_bytes += width;
            }
        }
        let place = |column: &usize| places.iter().find(|(at, _)| at == column).map(|(_, place)| place.clone());
        let mut key = Vec::new();
        for (form, column) in new.key_columns().iter().zip(&new.key) {
            let Storage::Int(_) = form.storage else { return None };
            key.push((*form, storage(column), place(column)?));
        }
        let mut pieces = Vec::new();
        for column in new_stored {
            let Some(width) = storage(column).fixed_width() else { continue };
            match (place(column), pieces.last_mut()) {
                (Some(place), Some(Piece::Bytes(last))) if last.end == place.start => last.end = place.end,
                (Some(place), _) => pieces.push(Piece::Bytes(place)),
                (None, _) => {
                    let Storage::Int(_) = storage(column) else { return None };
                    pieces.push(Piece::Key(old.key.iter().position(|c| c == column)?, width));
                }
            }
        }
        let mut new_head = Vec::new();
        encode_head(new.version(), false, &mut new_head);
        let (old_key, key, pieces) = (old.key_columns().into(), key.into(), pieces.into());
        Some(Recoder { head, fixed_bytes, old_key, key, new_head, pieces })
    }

    /// Appends the new key, where that is made of columns, and the new value. Where the value begins; none: the row has to be read by way of its
    /// values, and nothing was appended.
    #[inline]
    pub fn write(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let (head, body) = value.split_first()?;
        let fixed = body.get(..self.fixed_bytes)?;
        if *head != self.head {
            return None;
        }
        let (mut ints, mut rest) = ([0; KEY_COLUMNS_MAX], key);
        if self.pieces.iter().any(|piece| matches!(piece, Piece::Key(..))) {
            for (form, int) in self.old_key.iter().zip(&mut ints) {
                (*int, rest) = decode_int(*form, rest)?;
            }
        }
        for (form, storage, place) in &self.key {
            if let ValueRef::Int(int) = fixed_ref(*storage, &fixed[place.clone()]) {
                encode_int(*form, int, out);
            }
        }
        let middle = out.len();
        out.extend_from_slice(&self.new_head);
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(place) => out.extend_from_slice(&fixed[place.clone()]),
                Piece::Key(nth, width) => out.extend_from_slice(&ints[*nth].to_le_bytes()[..*width]),
            }
        }
        out.extend_from_slice(&body[self.fixed_bytes..]);
        Some(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{shape, value};
    use crate::value::Value;
    use clearway_base::for_each_seed;
    use clearway_base::testkit::Rng;

    /// RCD-1, for tables of any columns whose key comes or goes.
    #[test]
    fn a_row_under_another_key_is_the_one_that_its_values_make() {
        for_each_seed!(50, |seed| {
            let mut rng = Rng::new(seed);
            let forms =
                [Storage::Int(1), Storage::Int(2), Storage::Int(4), Storage::Int(8), Storage::Bool, Storage::Float];
            let mut storages: Vec<Storage> = (0..1 + rng.below(5)).map(|_| forms[rng.below(6) as usize]).collect();
            (0..rng.below(3))
                .for_each(|_| storages.insert(rng.below(storages.len() as u64 + 1) as usize, Storage::Bytes));
            let ints: Vec<usize> =
                (0..storages.len()).filter(|at| matches!(storages[*at], Storage::Int(width) if width > 1)).collect();
            let columns = 1 + rng.below(2) as usize;
            let key: Vec<usize> = ints.into_iter().rev().take(columns).collect();
            if key.is_empty() {
                return;
            }
            for (from, to) in
                [(shape(&storages, &[]), shape(&storages, &key)), (shape(&storages, &key), shape(&storages, &[]))]
            {
                let recoder = Recoder::new(&from, &to).expect("a key of integers");
                for with_null in [false, false, true] {
                    let mut row: Vec<Value> = storages.iter().map(|storage| value(&mut rng, *storage)).collect();
                    let free: Vec<usize> = (0..row.len()).filter(|at| !key.contains(at)).collect();
                    let nulls = with_null && !free.is_empty();
                    if nulls {
                        row[free[rng.below(free.len() as u64) as usize]] = Value::Null;
                    }
                    let old_key = if from.has_row_id() { vec![7; 8] } else { from.key_of(&row) };
                    let (old_value, mut written) = (from.value_of(&row), Vec::new());
                    let middle = recoder.write(&old_key, &old_value, &mut written);
                    if nulls {
                        assert_eq!((middle, written.len()), (None, 0), "a null");
                        continue;
                    }
                    let (key, value) = written.split_at(middle.expect("no null"));
                    assert_eq!(key, to.key_of(&row));
                    assert_eq!(value, to.value_of(&row));
                    let fixed: usize = recoder.fixed_bytes;
                    assert_eq!(
                        recoder.write(&old_key, &old_value[..fixed.min(old_value.len())], &mut written),
                        None,
                        "cut off"
                    );
                }
            }
        });
    }

    #[test]
    fn rows_whose_key_is_no_integer_go_by_their_values() {
        let storages = [Storage::Bytes, Storage::Int(4), Storage::Decimal, Storage::Bool];
        for (key, is_recoded) in [(0, false), (1, true), (2, false), (3, false)] {
            let (without, with) = (shape(&storages, &[]), shape(&storages, &[key]));
            assert_eq!(Recoder::new(&without, &with).is_some(), is_recoded, "{key}");
            assert_eq!(Recoder::new(&with, &without).is_some(), is_recoded || key == 2, "{key}");
        }
    }
}
