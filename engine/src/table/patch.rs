//! Puts new values into a stored row: columns of fixed width are overwritten, so that an update need not decode the row and encode it again; a row with
//! others is put together anew.
//!
//! # Invariants
//! - PAT-1: the result is the row that [`TableShape::value_of`] would encode from the old values with the new ones put in.
//!
//! # Not here
//! Columns of the key; rows that are too long to be sure that they need no page of their own. What [`Patcher`] leaves out besides: columns whose width
//! depends on their value, changes from or to null, and rows of older schema versions.

use crate::codec::row::RowReader;
use crate::table::shape::TableShape;
use crate::value::{Storage, Value};

/// A row that is put together anew has at most so many bytes: a longer one may need pages of its own, which are to be awaited.
const ROW_MAX: usize = 1_500;

/// Puts values, in the order of their columns, into a stored row, whose columns may have other lengths then. False: a value does not fit its column, or the
/// row is damaged or long; what `stored` holds then is of no use.
pub fn put_together(
    shape: &TableShape,
    key: &[u8],
    (columns, new): (&[usize], &mut Vec<Value>),
    stored: &mut Vec<u8>,
) -> bool {
    let Ok(mut all) = shape.row(key, stored) else { return false };
    for (column, value) in columns.iter().zip(new.drain(..)) {
        let known = &shape.columns[*column];
        if known.not_null && value.is_null() || !value.fits(known.storage) {
            return false;
        }
        all[*column] = value;
    }
    stored.clear();
    shape.value_into(&all, stored); // PAT-1
    stored.len() <= ROW_MAX
}

/// Which columns of a table's rows are overwritten.
#[derive(Clone, Debug)]
pub struct Patcher {
    version: u16,
    stored: Box<[Storage]>,
    /// Places among the stored columns.
    places: Box<[usize]>,
}

impl Patcher {
    /// For the columns at these positions; none: one of them is of another kind.
    pub fn new(shape: &TableShape, columns: &[usize]) -> Option<Patcher> {
        let (stored, storages) = shape.stored_now();
        let place = |column: &usize| {
            let place = stored.iter().position(|stored| stored == column)?;
            let is_fixed = storages[place].fixed_width().is_some() && !shape.key.contains(column);
            is_fixed.then_some(place)
        };
        let places = columns.iter().map(place).collect::<Option<_>>()?;
        Some(Patcher { version: shape.version(), stored: storages.into(), places })
    }

    /// Writes the values, in the order of the columns, into a row; false: it can't be done so, and the row may be half written.
    pub fn write(&self, row: &mut [u8], values: &[Value]) -> bool {
        let length = row.len();
        self.places.len() == values.len()
            && self.places.iter().zip(values).all(|(place, value)| {
                let range =
                    RowReader::head(row).ok().filter(|(version, _)| *version == self.version).and_then(|(_, head)| {
                        let reader = head.reader(self.stored.len()).ok()?;
                        let range = reader.place(&self.stored, *place)?;
                        let head = length - reader.body().len();
                        Some(head + range.start..head + range.end)
                    });
                let Some(target) = range.and_then(|range| row.get_mut(range)) else { return false };
                value.fits(self.stored[*place]) && put(value, target)
            })
    }
}

/// PAT-1: as `codec::row` writes a value of fixed width.
fn put(value: &Value, target: &mut [u8]) -> bool {
    let bytes = match value {
        Value::Bool(b) => u64::from(*b).to_le_bytes(),
        Value::Int(i) => i.to_le_bytes(),
        Value::Float(f) => f.to_le_bytes(),
        Value::Null | Value::Decimal(_) | Value::Bytes(_) => return false,
    };
    let Some(bytes) = bytes.get(..target.len()) else { return false };
    target.copy_from_slice(bytes);
    true
}
