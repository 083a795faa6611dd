//! The sizes of rows and arrays. Values share their parts in memory: a row that holds the same row twice, which again holds another row
//! twice, and so on, takes little memory, but everything that walks over its fields visits twice as many with each level. The text form
//! grows faster still: each level doubles the quotes and backslashes of the level below.
//!
//! # Invariants
//! - SIZ-1: no row and no array has more than [`BYTES_MAX`], shared parts counted each time they occur, and no row is deeper than
//!   [`ROW_DEPTH_MAX`]; so no function over rows and arrays has to count. A row stores its bytes and its depth.
//! - SIZ-2: [`fits`] checks a row or an array before its text is made.

use super::datum::{Array, Datum, Record, RowShape};
use crate::error::{Result, SqlError, code};
use clearway_base::{breath, memory};
use std::sync::Arc;

/// The most bytes of a row or an array, as of any value in PostgreSQL.
pub const BYTES_MAX: u64 = 1 << 30;
/// The bytes of a value that has none on the heap.
const PLAIN_BYTES: u64 = 8;
/// Rows within rows.
pub const ROW_DEPTH_MAX: u16 = 100;
/// The most bytes of the text form of a value.
const TEXT_BYTES_MAX: u64 = 1 << 30;
/// What the text of a value takes that is neither a text nor made of others, beside what it has on the heap.
const PLAIN_TEXT_BYTES: u64 = 64;

impl Record {
    /// A row of these values (SIZ-1).
    ///
    /// # Errors
    /// 54000 if it is too large, 54001 if it is too deep.
    pub fn new(shape: Arc<RowShape>, values: Vec<Datum>) -> Result<Record> {
        let bytes = values.iter().map(bytes_of).fold(0, u64::saturating_add);
        let depth = values.iter().map(depth_of).max().unwrap_or(0) + 1;
        if bytes > BYTES_MAX {
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, format!("a row exceeds {BYTES_MAX} bytes")));
        }
        if depth > ROW_DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(Record { shape, values, bytes, depth })
    }

    /// A row of nulls.
    pub fn of_nulls(shape: Arc<RowShape>) -> Record {
        let values = vec![Datum::Null; shape.types.len()];
        let bytes = values.len() as u64 * PLAIN_BYTES;
        Record { shape, values, bytes, depth: 1 }
    }
}

/// An array as a value (SIZ-1).
///
/// # Errors
/// 54000 if it is too large, or has too many dimensions.
pub fn array(array: Array) -> Result<Datum> {
    if array.dims.len() > super::array::DIMENSIONS_MAX {
        return Err(super::array::too_many(array.dims.len()));
    }
    if array.values.iter().map(bytes_of).fold(0, u64::saturating_add) > BYTES_MAX {
        let message = format!("array size exceeds the maximum allowed ({})", BYTES_MAX - 1);
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(Datum::Array(array.into()))
}

/// 54001.
pub fn too_deep() -> SqlError {
    let message = format!("rows are nested more than {ROW_DEPTH_MAX} levels deep");
    SqlError::new(code::STATEMENT_TOO_COMPLEX, message)
}

fn bytes_of(value: &Datum) -> u64 {
    match value {
        Datum::Row(row) => PLAIN_BYTES + row.bytes,
        Datum::Array(array) => array.values.iter().map(bytes_of).fold(PLAIN_BYTES, u64::saturating_add),
        plain => PLAIN_BYTES + plain.heap_bytes() as u64,
    }
}

fn depth_of(value: &Datum) -> u16 {
    match value {
        Datum::Row(row) => row.depth,
        // The elements are of one type.
        Datum::Array(array) if has_rows(array) => array.values.iter().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

fn has_rows(array: &Array) -> bool {
    matches!(array.values.iter().find(|v| !v.is_null()), Some(Datum::Row(_)))
}

/// The text of a value: its bytes, and how many of them get another one for each level around.
#[derive(Clone, Copy, Default)]
struct Shown {
    bytes: u64,
    doubled: u64,
}

impl Shown {
    /// As a part of a row or an array, in quotes.
    fn quoted(self) -> Shown {
        let bytes = self.bytes.saturating_add(self.doubled).saturating_add(3);
        Shown { bytes, doubled: self.doubled.saturating_mul(2).saturating_add(2) }
    }

    fn add(&mut self, part: Shown) {
        self.bytes = self.bytes.saturating_add(part.bytes);
        self.doubled = self.doubled.saturating_add(part.doubled);
    }
}

/// Whether the text of a value can be made (SIZ-2).
///
/// # Errors
/// 54000 where it is too long, 53200 where the statement may not have so much memory.
pub fn fits(value: &Datum) -> Result<()> {
    match value {
        Datum::Row(_) => {}
        // The text of most is as long as the array.
        Datum::Array(array) if array.values.iter().any(|v| matches!(v, Datum::Row(_)) || v.heap_bytes() > 0) => {}
        _ => return Ok(()),
    }
    // Most are short even if every byte were a quote; the others are looked through.
    let mut bytes = shown(value, false)?.bytes;
    if bytes > TEXT_BYTES_MAX {
        bytes = shown(value, true)?.bytes;
    }
    if bytes > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    Ok(memory::claim(usize::try_from(bytes).unwrap_or(usize::MAX))?)
}

fn too_long() -> SqlError {
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, format!("the text of a value exceeds {TEXT_BYTES_MAX} bytes"))
}

/// The text of a value; `exact`: its quotes are counted, and an error says that it is too long.
fn shown(value: &Datum, exact: bool) -> Result<Shown> {
    let parts = match value {
        Datum::Row(row) => &row.values,
        Datum::Array(array) => &array.values,
        Datum::Text(text) | Datum::Bpchar(text) | Datum::Citext(text) => {
            let mut doubled = text.len();
            if exact {
                breath::step_bytes(text.len())?;
                doubled = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
            }
            return Ok(Shown { bytes: text.len() as u64, doubled: doubled as u64 });
        }
        plain => {
            let heap = plain.heap_bytes() as u64;
            let bytes = PLAIN_TEXT_BYTES.saturating_add(heap.saturating_mul(3));
            return Ok(Shown { bytes, doubled: heap.saturating_add(4) });
        }
    };
    let mut all = Shown { bytes: 2, doubled: 0 };
    for part in parts {
        breath::step(4)?;
        all.add(shown(part, exact)?.quoted());
        if all.bytes > TEXT_BYTES_MAX {
            return if exact { Err(too_long()) } else { Ok(all) };
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::oid;

    fn row(values: Vec<Datum>) -> Result<Datum> {
        let types = vec![oid::TEXT.into(); values.len()];
        Record::new(RowShape { oid: oid::RECORD, names: None, types }.into(), values).map(|row| Datum::Row(row.into()))
    }

    /// The value inside of so many rows, `wide` times in each.
    fn nested(value: Datum, depth: usize, wide: usize) -> Result<Datum> {
        (0..depth).try_fold(value, |value, _| row(vec![value; wide]))
    }

    /// SIZ-1
    #[test]
    fn a_row_of_shared_rows_has_a_largest_size_and_depth() {
        assert!(nested(Datum::Int4(1), 20, 2).is_ok());
        assert_eq!(nested(Datum::Int4(1), 40, 2).map_err(|e| e.code()).err(), Some("54000"));
        assert!(nested(Datum::Int4(1), 100, 1).is_ok());
        assert_eq!(nested(Datum::Int4(1), 101, 1).map_err(|e| e.code()).err(), Some("54001"));
        let list = |value: Datum| Datum::Array(Array::one_dimensional(oid::RECORD, vec![value; 2]).into());
        let lists = (0..40).try_fold(Datum::Int4(1), |value, _| row(vec![value]).map(list));
        assert_eq!(lists.map_err(|e| e.code()).err(), Some("54000"));
    }

    /// SIZ-2
    #[test]
    fn a_text_that_would_be_too_long_is_not_made() {
        let quotes = |depth| fits(&nested(Datum::text("a \"b\""), depth, 1).expect("a row")).map_err(|e| e.code());
        assert_eq!(quotes(10), Ok(()));
        assert_eq!(quotes(60), Err("54000"));
        let long = Datum::text("x".repeat(1 << 20));
        let many = |n| Datum::Array(Array::one_dimensional(oid::TEXT, vec![long.clone(); n]).into());
        assert_eq!(fits(&many(10)).map_err(|e| e.code()), Ok(()));
        assert_eq!(fits(&many(1100)).map_err(|e| e.code()), Err("54000"));
        let array_of =
            |n| array(Array::one_dimensional(oid::TEXT, vec![long.clone(); n])).map(drop).map_err(|e| e.code());
        assert_eq!((array_of(1000), array_of(1100)), (Ok(()), Err("54000")), "SIZ-1");
        assert_eq!(fits(&Datum::Array(Array::one_dimensional(oid::INT4, vec![Datum::Int4(1); 9]).into())), Ok(()));
    }
}
