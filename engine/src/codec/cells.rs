//! Single columns of a stored row, each read where it stands: for conditions that are judged before any value is made of a row.
//!
//! # Invariants
//! - CEL-1: what is given for a column is what [`RowReader::pick`](super::row::RowReader::pick) gives, and for a column that only the key has what
//!   [`decode_value`](super::key::decode_value) gives. Of a row of another schema version, and of a damaged one, nothing is given: other code reads it.

use super::key::{KeyColumn, decode_int};
use super::places::{Place, variable, variable_ref};
use super::row::{RowReader, fixed_ref};
use crate::table::shape::TableShape;
use crate::value::{Storage, ValueRef};

/// The columns of a table's rows.
#[derive(Clone, Debug)]
pub struct Cells {
    version: u16,
    /// The columns of the value, and their bytes and number by kind where none is null.
    stored: Box<[Storage]>,
    fixed_bytes: usize,
    variable_columns: usize,
}

/// Where a column stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell(At);

#[derive(Clone, Debug, PartialEq)]
enum At {
    /// In the value: which column of it, and its place where no column is null.
    Value(usize, Place),
    /// In the key, from this byte on.
    Key(KeyColumn, usize),
}

/// A row of which columns are read.
#[derive(Clone, Copy)]
pub struct CellRow<'v> {
    key: &'v [u8],
    reader: RowReader<'v>,
}

impl Cells {
    /// Those of the rows that are written now.
    pub fn new(shape: &TableShape) -> Cells {
        let (_, stored) = shape.stored_now();
        let fixed_bytes = stored.iter().filter_map(|storage| storage.fixed_width()).sum();
        let variable_columns = stored.iter().filter(|storage| storage.fixed_width().is_none()).count();
        Cells { version: shape.version(), stored: stored.into(), fixed_bytes, variable_columns }
    }

    /// Where a column of the table stands; none: behind others of the key that have no fixed width.
    pub fn cell(&self, shape: &TableShape, column: usize) -> Option<Cell> {
        let (positions, stored) = shape.stored_now();
        if let Some(at) = positions.iter().position(|position| *position == column) {
            let before = &stored[..at];
            let place = match stored[at].fixed_width() {
                Some(width) => {
                    let from: usize = before.iter().filter_map(|storage| storage.fixed_width()).sum();
                    Place::Fixed(stored[at], from..from + width)
                }
                None => {
                    let n = before.iter().filter(|storage| storage.fixed_width().is_none()).count();
                    Place::Variable(stored[at], n)
                }
            };
            return Some(Cell(At::Value(at, place)));
        }
        let mut from = 0;
        for (form, position) in shape.key_columns().iter().zip(&shape.key) {
            let Storage::Int(width) = form.storage else { return None };
            if *position == column {
                return Some(Cell(At::Key(*form, from)));
            }
            from += 1 + usize::from(width); // No column of a key is null.
        }
        None
    }

    /// A row, given by its key and its value; none: it is of another version, or damaged.
    #[inline]
    pub fn row<'v>(&self, key: &'v [u8], value: &'v [u8]) -> Option<CellRow<'v>> {
        let (version, head) = RowReader::head(value).ok()?;
        if version != self.version {
            return None;
        }
        Some(CellRow { key, reader: head.reader(self.stored.len()).ok()? })
    }

    /// A column of a row (CEL-1).
    #[inline]
    pub fn get<'v>(&self, row: &CellRow<'v>, cell: &Cell) -> Option<ValueRef<'v>> {
        match &cell.0 {
            At::Value(column, place) => {
                if row.reader.has_nulls() {
                    return self.beside_nulls(row, *column, place);
                }
                let body = row.reader.body();
                match place {
                    Place::Fixed(storage, range) => Some(fixed_ref(*storage, body.get(range.clone())?)),
                    Place::Variable(storage, n) => {
                        variable_ref(*storage, variable(body.get(self.fixed_bytes..)?, self.variable_columns, *n)?)
                    }
                }
            }
            At::Key(form, from) => decode_int(*form, row.key.get(*from..)?).map(|(int, _)| ValueRef::Int(int)),
        }
    }

    /// The same where some column is null: it takes no room.
    fn beside_nulls<'v>(&self, row: &CellRow<'v>, column: usize, place: &Place) -> Option<ValueRef<'v>> {
        if row.reader.is_null(column) {
            return Some(ValueRef::Null);
        }
        let (mut fixed_before, mut fixed_bytes, mut variable_before, mut variable_columns) = (0, 0, 0, 0);
        for (at, storage) in self.stored.iter().enumerate().filter(|(at, _)| !row.reader.is_null(*at)) {
            match storage.fixed_width() {
                Some(width) => {
                    fixed_bytes += width;
                    fixed_before += if at < column { width } else { 0 };
                }
                None => {
                    variable_columns += 1;
                    variable_before += usize::from(at < column);
                }
            }
        }
        let body = row.reader.body();
        match place {
            Place::Fixed(storage, range) => {
                Some(fixed_ref(*storage, body.get(fixed_before..fixed_before + range.len())?))
            }
            Place::Variable(storage, _) => {
                variable_ref(*storage, variable(body.get(fixed_bytes..)?, variable_columns, variable_before)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{shape, value};
    use crate::value::Value;
    use clearway_base::for_each_seed;
    use clearway_base::testkit::Rng;

    #[test]
    fn each_cell_is_the_value_of_its_column() {
        // CEL-1: with and without nulls, with and without a key.
        let forms =
            [Storage::Bool, Storage::Int(2), Storage::Int(4), Storage::Int(8), Storage::Float, Storage::Decimal];
        for_each_seed!(60, |seed| {
            let mut rng = Rng::new(seed);
            let storages: Vec<Storage> = (0..1 + rng.below(9))
                .map(|_| forms.get(rng.below(9) as usize).copied().unwrap_or(Storage::Bytes))
                .collect();
            let keys: Vec<usize> = (0..storages.len()).filter(|at| storages[*at].key_is_invertible()).collect();
            let key: Vec<usize> = keys.into_iter().rev().take(rng.below(3) as usize).collect();
            let shape = shape(&storages, &key);
            let cells = Cells::new(&shape);
            for _ in 0..20 {
                let with_nulls = rng.below(2) == 0;
                let row: Vec<Value> = (0..storages.len())
                    .map(|at| match with_nulls && !key.contains(&at) && rng.below(3) == 0 {
                        true => Value::Null,
                        false => value(&mut rng, storages[at]),
                    })
                    .collect();
                let (key_bytes, bytes) = (shape.key_of(&row), shape.value_of(&row));
                let read = cells.row(&key_bytes, &bytes).expect("a row of this version");
                let mut keyless = true;
                for (at, expected) in row.iter().enumerate() {
                    let Some(cell) = cells.cell(&shape, at) else {
                        keyless = false;
                        continue;
                    };
                    let found = cells.get(&read, &cell).map(Value::from);
                    // Keys of other widths are left to the walk over the key.
                    let is_left = found.is_none() && key.contains(&at);
                    assert!(is_left || found.as_ref() == Some(expected), "column {at} of {storages:?}: {found:?}");
                }
                assert!(keyless || !key.is_empty(), "a column of the value has a cell");
                for cut in 0..bytes.len().min(50) {
                    let Some(read) = cells.row(&key_bytes, &bytes[..cut]) else { continue };
                    (0..row.len()).filter_map(|at| cells.cell(&shape, at)).for_each(|cell| {
                        cells.get(&read, &cell);
                    });
                }
            }
        });
    }

    #[test]
    fn a_row_of_another_version_is_left_to_others() {
        let shape = shape(&[Storage::Int(4)], &[]);
        let mut older = Vec::new();
        crate::codec::row::encode_row(9, &[Storage::Int(4)], [ValueRef::Int(1)].into_iter(), &mut older);
        assert!(Cells::new(&shape).row(&[], &older).is_none());
    }
}
