//! Index-only reads: where an index has every column that a scan needs, its entries are read and the rows are not.
//!
//! # Invariants
//! - COV-1: every slot that an expression names (PLN-6) is filled from the index entry (IXO-2), including the columns of conditions and
//!   of the scan's own filter. With a snapshot that may not use the index, the table is read instead, by `Scan::wanted`.

use super::access;
use super::cost::Figures;
use super::plan::{Access, Entries, Scan, split};
use clearway_engine::table::entry::EntryPicker;
use clearway_engine::table::pick::Picker;

/// An index is read instead of the whole table where that costs less than this share of it.
const WORTH: f64 = 0.9;
/// What reading an entry costs at least, as a share of reading a row.
const ENTRY: f64 = 0.3;
/// Bytes of an entry and of a row that are not values.
const HEAD: f64 = 12.0;

/// Reads the entries of an index instead of rows, if one has all columns that are wanted.
pub(super) fn cover(scan: &mut Scan, figures: &Figures<'_>) {
    let Some(wanted) = scan.wanted.as_ref().map(Picker::wanted) else { return };
    let shape = &scan.table.shape;
    let (place, instead) = match &scan.access {
        _ if shape.indexes.is_empty() => return,
        Access::Index(place, _) => (*place, None),
        Access::Ranges(ranges) => match ranges.parts.first().and_then(|p| p.index) {
            Some(place) if ranges.parts.iter().all(|p| p.index == Some(place)) => (place, None),
            _ => return,
        },
        Access::Full if scan.order.is_none() => match narrower(scan, wanted, figures) {
            Some((place, access)) => (place, Some(access)),
            None => return,
        },
        Access::Full | Access::Keys(_) | Access::KeyRange(_) | Access::Tids(_) => return,
    };
    let Some(picker) = EntryPicker::new(shape, place, wanted) else { return };
    let each = entry_cost(scan, place, figures);
    scan.entries = Some(Box::new(Entries { picker, each, of_all: instead.is_some() }));
    if let Some(access) = instead {
        scan.access = access;
    }
}

/// The index whose entries cost clearly less to read than all rows, and how they are read.
fn narrower(scan: &Scan, wanted: &[usize], figures: &Figures<'_>) -> Option<(usize, Access)> {
    let rows = figures.rows(&scan.table);
    if !figures.is_known(&scan.table) || rows <= figures.small() {
        return None;
    }
    let conditions: Vec<_> = scan.filter.iter().cloned().flat_map(split).collect();
    let mut least = (rows * WORTH, None);
    for place in 0..scan.table.shape.indexes.len() {
        if EntryPicker::new(&scan.table.shape, place, wanted).is_none() {
            continue;
        }
        let each = entry_cost(scan, place, figures);
        if let Some((access, cost)) = access::by_entries(&scan.table, place, &conditions, each, figures)
            && cost < least.0
        {
            least = (cost, Some((place, access)));
        }
    }
    least.1
}

/// What reading an entry costs, as a share of reading a row of the table: the leaves have more of them.
pub(super) fn entry_cost(scan: &Scan, place: usize, figures: &Figures<'_>) -> f64 {
    let table = &scan.table;
    let width = |column: &usize| figures.width(table, *column);
    let row: f64 = HEAD + (0..table.shape.columns.len()).map(|c| width(&c)).sum::<f64>();
    let entry: f64 = HEAD + table.shape.indexes[place].columns.iter().chain(&table.shape.key).map(width).sum::<f64>();
    ENTRY + (1.0 - ENTRY) * (entry / row).min(1.0)
}
