//! Columns of stored rows on their way to the client, without values of SQL between.

use std::ops::Range;

use super::client::Client;
use super::run::format_of;
use crate::context::errors::from_engine;
use crate::error::Result;
use crate::expr::Bound;
use crate::expr::bound::BoundKind;
use crate::planner::plan::Scan;
use crate::types::{SqlType, cast, oid};
use clearway_engine::table::pick::Picker;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::ValueRef;

/// The columns of a result that are columns of one table.
pub(super) struct Columns {
    picker: Picker,
    /// For each column of the result its type, and its place among the columns that are picked.
    targets: Box<[(SqlType, usize)]>,
    /// Positions in the table of the columns that are picked.
    picked: Box<[usize]>,
    /// All of them go out in the text form, too.
    in_text: bool,
}

/// A value on its way from the row to the client.
#[derive(Clone, Debug, Default)]
enum Cell {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Range<usize>),
}

/// The picked columns of some rows. Their memory is used again.
#[derive(Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl Cells {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
    }

    /// Gives memory back that unusual rows took.
    pub(super) fn trim(&mut self, bytes_max: usize) {
        if self.bytes.capacity() + self.cells.capacity() * size_of::<Cell>() > bytes_max {
            *self = Cells::default();
        }
    }
}

/// Types whose values go out as they stand in the row, in either form.
fn goes_out_plain(ty: SqlType) -> bool {
    matches!(ty.oid, oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 | oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::JSON)
}

/// Types whose values go out as they stand in the row in the binary form alone.
fn goes_out_binary(ty: SqlType) -> bool {
    let moment = matches!(ty.oid, oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ);
    moment || matches!(ty.oid, oid::BYTEA | oid::UUID | oid::FLOAT4 | oid::FLOAT8)
}

impl Columns {
    /// The columns that a target list names; none: a target is something else, or is of a type that has to be converted.
    pub(super) fn of(targets: &[Bound], scan: &Scan) -> Option<Columns> {
        let columns: Vec<usize> = targets.iter().map(|e| column(e, scan)).collect::<Option<_>>()?;
        let types: Vec<SqlType> = columns.iter().map(|c| scan.table.types[*c]).collect();
        if !types.iter().all(|ty| goes_out_plain(*ty) || goes_out_binary(*ty)) {
            return None;
        }
        let in_text = types.iter().all(|ty| goes_out_plain(*ty));
        let mut picked = columns.clone();
        picked.sort_unstable();
        picked.dedup();
        let place = |c: &usize| picked.binary_search(c).ok();
        let targets = types.into_iter().zip(columns.iter().map(place).collect::<Option<Vec<_>>>()?);
        Some(Columns {
            picker: Picker::new(&scan.table.shape, &picked),
            targets: targets.collect(),
            picked: picked.into(),
            in_text,
        })
    }

    /// Whether the values can go out in these forms.
    pub(super) fn go_out_in(&self, formats: &[i16]) -> bool {
        let fits = |(i, (ty, _)): (usize, &(SqlType, usize))| goes_out_plain(*ty) || format_of(formats, i);
        self.in_text || self.targets.iter().enumerate().all(fits)
    }

    /// Appends the wanted columns of a row.
    pub(super) fn pick(&self, shape: &TableShape, key: &[u8], value: &[u8], out: &mut Cells) -> Result<()> {
        let Cells { cells, bytes } = out;
        let row = cells.len();
        cells.resize(row + self.picked.len(), Cell::Null);
        let put = &mut |position: usize, value: ValueRef<'_>| {
            let Ok(place) = self.picked.binary_search(&position) else { return };
            cells[row + place] = match value {
                ValueRef::Bool(b) => Cell::Bool(b),
                ValueRef::Int(i) => Cell::Int(i),
                ValueRef::Float(f) => Cell::Float(f),
                ValueRef::Bytes(b) => {
                    let from = bytes.len();
                    bytes.extend_from_slice(b);
                    Cell::Bytes(from..bytes.len())
                }
                // Columns of other storages are none of the types that go out.
                ValueRef::Null | ValueRef::Decimal(_) | ValueRef::StoredDecimal(_) => Cell::Null,
            };
        };
        self.picker.read(shape, key, value, put).map_err(from_engine)
    }

    /// Gives the client the row of this number.
    pub(super) fn tell(&self, row: usize, from: &Cells, formats: &[i16], client: &mut dyn Client) {
        let first = row * self.picked.len();
        client.row(self.targets.len(), &mut |i, out| {
            let Some((ty, place)) = self.targets.get(i) else { return false };
            let cell = from.cells.get(first + *place).unwrap_or(&Cell::Null);
            write_cell(cell, &from.bytes, *ty, format_of(formats, i), out)
        });
    }
}

fn column(e: &Bound, scan: &Scan) -> Option<usize> {
    let BoundKind::Column { index, level: 0 } = e.kind else { return None };
    index.checked_sub(scan.table.base).filter(|c| *c < scan.table.types.len() && scan.table.types[*c] == e.ty)
}

/// Appends a value in the form that the client asked for; false for NULL.
fn write_cell(cell: &Cell, bytes: &[u8], ty: SqlType, binary: bool, out: &mut Vec<u8>) -> bool {
    match cell {
        Cell::Null => return false,
        Cell::Bool(b) if binary => out.push(u8::from(*b)),
        Cell::Bool(b) => out.push(if *b { b't' } else { b'f' }),
        Cell::Int(i) if binary => {
            let width = match ty.oid {
                oid::INT2 => 2,
                oid::INT4 | oid::DATE => 4,
                _ => 8,
            };
            out.extend_from_slice(&i.to_be_bytes()[8 - width..]);
        }
        Cell::Int(i) => write_integer(*i, out),
        Cell::Float(f) if ty.oid == oid::FLOAT4 => out.extend_from_slice(&(*f as f32).to_be_bytes()),
        Cell::Float(f) => out.extend_from_slice(&f.to_be_bytes()),
        Cell::Bytes(range) => {
            let text = bytes.get(range.clone()).unwrap_or_default();
            out.extend_from_slice(text);
            if ty.oid == oid::BPCHAR && ty.modifier > 4 {
                // char(n) is kept without the blanks behind it; bytes that continue a character are not counted.
                let characters = cast::characters(text);
                out.resize(out.len() + (ty.modifier as usize - 4).saturating_sub(characters), b' ');
            }
        }
    }
    true
}

/// Appends an integer in decimal.
pub(super) fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_the_library_writes_them() {
        for value in [0, 1, -1, 9, 10, -10, 99, 100, i64::MAX, i64::MIN, 1_234_567_890] {
            let mut out = Vec::new();
            write_integer(value, &mut out);
            assert_eq!(String::from_utf8(out), Ok(value.to_string()));
        }
    }

    #[test]
    fn char_n_gets_its_blanks_back_by_characters() {
        let ty = SqlType { oid: oid::BPCHAR, modifier: 8 };
        let bytes = "äb".as_bytes();
        let mut out = Vec::new();
        assert!(write_cell(&Cell::Bytes(0..bytes.len()), bytes, ty, false, &mut out));
        assert_eq!(out, "äb  ".as_bytes());
    }
}
