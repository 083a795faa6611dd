//! Index-only reads: where an index has every column that a scan needs, its entries are read and the rows are not.
//!
//! # Invariants
//! - COV-1: every slot that an expression names (PLN-6) is filled from the index entry (IXO-2), including the columns of conditions and
//!   of the scan's own filter. With a snapshot that may not use the index, the table is read instead, by `Scan::wanted`.
//! - COV-3: where a range of an index and the index's condition say all that the scan's filter asks (`says_all`), the filter is not evaluated on the
//!   entries of the range, nor on the rows to which they lead; and the columns that only the filter names need not be in entries that are read instead
//!   of rows. A filter that gets another condition, and an access that is chosen anew, have a new range, of which nothing is noted.

use super::access;
use super::cost::Figures;
use super::facts::is_said_by;
use super::implies::implied;
use super::indexes::condition_of;
use super::plan::{Access, Entries, Scan, split};
use clearway_context::steering::{UNWANTED, Way};
use clearway_engine::table::entry::EntryPicker;
use clearway_engine::table::pick::Picker;
use clearway_values::expr::Bound;

/// Entries of an index are read instead of rows where that costs less than this share of it.
const WORTH: f64 = 0.9;
/// What reading an entry costs at least, as a share of reading a row.
const ENTRY: f64 = 0.3;
/// Bytes of an entry and of a row that are not values.
const HEAD: f64 = 12.0;

/// Reads the entries of an index instead of rows, if one has all columns that are wanted; `beside`: those that something else than the scan's own
/// filter names.
pub(super) fn cover(scan: &mut Scan, beside: Option<&[usize]>, figures: &Figures<'_>) {
    let Some(wanted) = scan.wanted.as_ref().map(Picker::wanted) else { return };
    if figures.steering.is_unwanted(Way::IndexOnlyScan) {
        return;
    }
    let columns = Columns { wanted, beside };
    let (place, instead) = match &scan.access {
        _ if scan.table.shape.indexes.is_empty() => return,
        Access::Index(place, _)
            if scan.order.is_none() && columns.picker(scan, *place, Some(&scan.access)).is_none() =>
        {
            // The rows to which an index leads may cost more than the entries of another one.
            match narrower(scan, &columns, figures.found(&scan.table, &scan.access).1, figures) {
                Some((place, access)) => (place, Some(access)),
                None => return,
            }
        }
        Access::Index(place, _) => (*place, None),
        Access::Ranges(ranges) if ranges.beside.is_some() => return,
        Access::Ranges(ranges) => match ranges.parts.first().and_then(|p| p.index) {
            Some(place) if ranges.parts.iter().all(|p| p.index == Some(place)) => (place, None),
            _ => return,
        },
        Access::Full if scan.order.is_none() => match narrower(scan, &columns, figures.read(scan).1, figures) {
            Some((place, access)) => (place, Some(access)),
            None => return,
        },
        Access::Full | Access::Keys(_) | Access::KeyRange(_) | Access::Tids(_) => return,
    };
    let Some(picker) = columns.picker(scan, place, instead.as_ref().or(Some(&scan.access))) else { return };
    let each = entry_cost(scan, place, figures);
    let of_all = instead.is_some() && matches!(scan.access, Access::Full);
    scan.entries = Some(Box::new(Entries { picker, each, of_all }));
    if let Some(access) = instead {
        scan.access = access;
    }
    let says_all = says_all(scan);
    if let Access::Index(_, range) = &mut scan.access {
        range.says_all = says_all;
    }
    // What only the filter names is not read for nothing.
    if let (true, Some(entries)) = (says_all, &mut scan.entries)
        && let Some(picker) = beside.and_then(|beside| EntryPicker::new(&scan.table.shape, place, beside))
    {
        entries.picker = picker;
    }
}

/// Whether the filter of a scan asks nothing of an entry but what its range, and the condition of its index, say (COV-3).
pub(super) fn says_all(scan: &Scan) -> bool {
    let Access::Index(place, range) = &scan.access else { return false };
    let index = &scan.table.shape.indexes[*place];
    let condition = condition_of(&scan.table, index).unwrap_or_default();
    let is_said = |e: &Bound| implied(&condition, e) || is_said_by(e, &scan.table, &index.columns, range);
    scan.filter.iter().cloned().flat_map(split).all(|e| is_said(&e))
}

/// Notes of a scan that reads rows by an index whether its filter is not to be evaluated on them (COV-3).
pub(super) fn note_said(scan: &mut Scan) {
    let says_all = scan.filter.is_some() && says_all(scan);
    if let (Access::Index(_, range), true) = (&mut scan.access, says_all) {
        range.says_all = true;
        scan.judged_first = None;
    }
}

/// The columns that a scan gives.
struct Columns<'a> {
    wanted: &'a [usize],
    beside: Option<&'a [usize]>,
}

impl Columns<'_> {
    /// What reads them from the entries of an index that is read in this way, or in any; none: it lacks some.
    fn picker(&self, scan: &Scan, place: usize, access: Option<&Access>) -> Option<EntryPicker> {
        let shape = &scan.table.shape;
        EntryPicker::new(shape, place, self.wanted).or_else(|| {
            // COV-3: the filter is evaluated on the entries of any access but one range.
            if access.is_some_and(|access| !matches!(access, Access::Index(..))) {
                return None;
            }
            // The condition of a partial index may say all that the filter asks: what only the filter names is not read.
            let condition = condition_of(&scan.table, &shape.indexes[place])?;
            let is_said = scan.filter.iter().cloned().flat_map(split).all(|e| implied(&condition, &e));
            self.beside.filter(|_| is_said).and_then(|beside| EntryPicker::new(shape, place, beside))
        })
    }
}

/// The index whose entries cost clearly less to read than the rows, which cost so much, and how they are read.
fn narrower(scan: &Scan, columns: &Columns<'_>, cost: f64, figures: &Figures<'_>) -> Option<(usize, Access)> {
    let rows = figures.rows(&scan.table);
    if (!figures.is_known(&scan.table) || rows <= figures.small()) && cost < UNWANTED {
        return None;
    }
    let conditions: Vec<_> = scan.filter.iter().cloned().flat_map(split).collect();
    let mut least = (cost * WORTH, None);
    for place in 0..scan.table.shape.indexes.len() {
        if columns.picker(scan, place, None).is_none() {
            continue;
        }
        let each = entry_cost(scan, place, figures);
        if let Some((access, cost)) = access::by_entries(&scan.table, place, &conditions, each, figures)
            && cost < least.0
            && columns.picker(scan, place, Some(&access)).is_some()
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
    (ENTRY + (1.0 - ENTRY) * (entry / row).min(1.0)) * figures.costs().entry
}
