//! Appends a row that a scan has found, as key and value or as an entry of an index, to a list of values.

use super::scan::{ENTRIES, fill};
use clearway_planner::plan::Scan;
use clearway_syntax::error::Result;
use clearway_txn::read::ShownEnd;
use clearway_values::types::Datum;

/// Appends a row that a walk gave; one that has ended gets no key (EXE-22).
pub(super) fn append_walked(
    scan: &Scan,
    (key, value, shown): (&[u8], &[u8], Option<ShownEnd>),
    prefix: &[Datum],
    row: &mut Vec<Datum>,
) -> Result<()> {
    append_row(scan, key, value, prefix, row)?;
    if let (Some(_), None, Some(slot)) = (shown, &scan.wanted, row.last_mut()) {
        *slot = key_slot(key, shown);
    }
    Ok(())
}

/// What the slot of a row's key has.
pub(super) fn key_slot(key: &[u8], shown: Option<ShownEnd>) -> Datum {
    match shown {
        None => Datum::Bytea(key.into()),
        Some(end) => Datum::Bool(end == ShownEnd::Deleted),
    }
}

/// Appends a row behind `prefix`, as far as the plan wants it; its key last (PLN-1).
pub(super) fn append_row(scan: &Scan, key: &[u8], value: &[u8], prefix: &[Datum], row: &mut Vec<Datum>) -> Result<()> {
    let table = &scan.table;
    let from = row.len() + prefix.len();
    row.extend_from_slice(prefix);
    row.resize(from + scan.width(), Datum::Null);
    let Some(wanted) = &scan.wanted else {
        row[from + table.types.len()] = Datum::Bytea(key.into());
        return fill(scan, &mut row[from..], |put| table.shape.read(key, value, put));
    };
    fill(scan, &mut row[from..], |put| wanted.read(&table.shape, key, value, put))
}

/// Appends a row behind `prefix` out of an entry of an index, as far as the plan wants it.
pub(super) fn append_entry(scan: &Scan, entry: &[u8], prefix: &[Datum], row: &mut Vec<Datum>) -> Result<()> {
    let table = &scan.table;
    let from = row.len() + prefix.len();
    row.extend_from_slice(prefix);
    row.resize(from + scan.width(), Datum::Null);
    let entries = scan.entries.as_ref().expect(ENTRIES);
    fill(scan, &mut row[from..], |put| entries.picker.read(&table.shape, entry, put))
}
