//! Few neighbouring rows of a table, in the order of its key or of an index, read without waiting.
//!
//! # Not here
//! What a view sees of a row: `clearway_txn::read`.

use std::ops::ControlFlow;

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

/// A walk over a table that goes on a leaf at a time; its memory is used again by the next walk.
#[derive(Default)]
pub struct Walk {
    scan: Option<Box<Scan>>,
    rows: RowBatch,
    is_whole: bool,
    given: u64,
    leaves: u64,
}

impl Walk {
    /// Gives keys and values of the last step to `f`, in the order of the walk, until it breaks off.
    #[inline]
    pub fn each<B>(&self, f: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>) -> ControlFlow<B> {
        match &self.scan {
            Some(scan) => scan.each_of_step(&self.rows, f),
            None => ControlFlow::Continue(()),
        }
    }

    /// The keys behind the rows of the last step.
    pub fn rest(&self) -> KeyRange {
        self.scan.as_ref().map_or_else(KeyRange::default, |scan| scan.rest().clone())
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

    /// Begins a walk over a table.
    pub fn begin_walk(&self, shape: &TableShape, view: &View, range: &KeyRange, direction: Direction, walk: &mut Walk) {
        let wanted =
            FewWanted { from: &range.from, to: range.to.as_deref(), direction, enough: usize::MAX, most: (0, 0) };
        begin(&mut walk.scan, shape.rows(self.db.transactions()), view, &wanted);
        walk.rows.clear();
        (walk.is_whole, walk.given, walk.leaves) = (range.from.is_empty() && range.to.is_none(), 0, 0);
    }

    /// Reads up to so many rows that come next and stand in one leaf, without waiting; false after the last leaf. `None`: it can't be done without
    /// waiting, and there are no rows.
    pub fn step_now(&mut self, walk: &mut Walk, rows: usize) -> Option<bool> {
        let scan = walk.scan.as_mut()?;
        let more = scan.step_now(self.db.transactions().book(), &mut self.dep_lsn, rows, &mut walk.rows)?;
        if !more {
            walk.rows.clear();
        }
        let found = if more { scan.len_of_step(&walk.rows) } else { 0 };
        walk.given += found as u64;
        walk.leaves += u64::from(found > 0);
        Some(more)
    }

    /// A walk has ended.
    pub fn end_walk(&mut self, shape: &TableShape, walk: &Walk) {
        self.used.walked_few(shape.oid, walk.is_whole, walk.given, walk.leaves);
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
