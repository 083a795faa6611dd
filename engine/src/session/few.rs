//! Few neighbouring rows of a table, in the order of its key or of an index, read without waiting.
//!
//! # Not here
//! What a view sees of a row: `clearway_txn::read`.

use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_txn::mvcc::book::View;
use clearway_txn::read::{RowBatch, Scan};

use super::Session;
use crate::table::shape::TableShape;

/// So many steps are taken at most: deleted rows that others still see are no rows, and a walk over many of them needs breaths.
const STEPS_MAX: u64 = 256;

/// Which rows are wanted.
#[derive(Clone, Copy, Debug)]
pub struct FewWanted<'a> {
    /// Keys from here, inclusive.
    pub from: &'a [u8],
    /// To here, exclusive; none: to the last.
    pub to: Option<&'a [u8]>,
    /// In which order.
    pub direction: Direction,
    /// So many are enough.
    pub enough: usize,
    /// More rows than this, or rows of more bytes, are too many.
    pub most: (usize, usize),
}

/// Rows that were read; their memory is used again by the next read.
#[derive(Default)]
pub struct FewRows {
    walk: Option<Box<Scan>>,
    rows: RowBatch,
    /// Entries of an index that lead to the rows.
    entries: RowBatch,
}

impl FewRows {
    /// Keys and values, in the order of the walk.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.rows.iter()
    }

    /// Forgets the rows, and keeps their memory.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Gives memory back that an unusual read took.
    pub fn trim(&mut self, bytes_max: usize) {
        for batch in [&mut self.rows, &mut self.entries] {
            if batch.capacity() > bytes_max {
                *batch = RowBatch::default();
            }
        }
    }
}

/// Begins a walk over a tree in the memory of the one before.
fn begin<'w>(walk: &'w mut Option<Box<Scan>>, tree: &Tree, view: &View, wanted: &FewWanted<'_>) -> &'w mut Scan {
    let FewWanted { from, to, direction, .. } = *wanted;
    match walk {
        Some(walk) => {
            walk.restart(tree, (from, to), direction, *view);
            walk
        }
        None => {
            let range = KeyRange::new(from, to.map(<[u8]>::to_vec));
            walk.insert(Box::new(Scan::new(tree, range, direction, *view)))
        }
    }
}

impl Session {
    /// Reads the rows of a range; false: there are too many, or too many deleted ones between them. `None`: it can't be done without waiting.
    pub fn few_now(
        &mut self,
        shape: &TableShape,
        view: &View,
        wanted: &FewWanted<'_>,
        out: &mut FewRows,
    ) -> Option<bool> {
        let FewWanted { from, to, enough, most: (rows_max, bytes_max), .. } = *wanted;
        let all = self.db.transactions();
        let FewRows { walk, rows, .. } = out;
        rows.clear();
        let walk = begin(walk, shape.rows(all), view, wanted);
        let (mut leaves, mut more) = (0u64, true);
        while more && rows.len() < enough {
            more = walk.append_now(all.book(), &mut self.dep_lsn, enough.min(rows_max + 1) - rows.len(), rows)?;
            leaves += 1;
            if rows.len() > rows_max || rows.bytes() > bytes_max || leaves == STEPS_MAX && more {
                return Some(false);
            }
        }
        let is_whole = from.is_empty() && to.is_none();
        self.used.walked_few(shape.oid, is_whole, rows.len() as u64, leaves);
        Some(true)
    }

    /// As [`Session::few_now`], in the order of the index at this place of `shape.indexes`; the range is one of its entries. `None` also for an index
    /// that is younger than the view, or is damaged.
    pub fn few_by_index_now(
        &mut self,
        (shape, index): (&TableShape, usize),
        view: &View,
        wanted: &FewWanted<'_>,
        out: &mut FewRows,
    ) -> Option<bool> {
        let FewWanted { enough, most: (rows_max, bytes_max), .. } = *wanted;
        let all = self.db.transactions();
        let of = shape.indexes.get(index).filter(|of| of.valid_from_lsn <= view.read_lsn.0)?;
        let FewRows { walk, rows, entries } = out;
        rows.clear();
        entries.clear();
        let walk = begin(walk, of.entries(all), view, wanted);
        let (mut leaves, mut more) = (0u64, true);
        while more && rows.len() < enough {
            let missing = enough.min(rows_max + 1) - rows.len();
            more = walk.append_now(all.book(), &mut self.dep_lsn, missing, entries)?;
            leaves += 1;
            for at in rows.len()..entries.len() {
                let key = of.row_key(entries.get(at).0).ok()?;
                if !self.reading.get_now(all.book(), shape.rows(all), key, view, &mut self.dep_lsn)? {
                    return None;
                }
                rows.push(key, self.reading.value());
                if rows.len() > rows_max || rows.bytes() > bytes_max {
                    return Some(false);
                }
            }
            if leaves == STEPS_MAX && more {
                return Some(false);
            }
        }
        self.used.looked_up_by_index(shape.oid, of.oid, rows.len() as u64);
        Some(true)
    }
}
