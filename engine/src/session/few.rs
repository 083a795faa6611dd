//! Few neighbouring rows of a table, read without waiting.
//!
//! # Not here
//! What a view sees of a row: `clearway_txn::read`.

use clearway_storage::btree::{Direction, KeyRange};
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
}

impl FewRows {
    /// Keys and values, in the order of the walk.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.rows.iter()
    }

    /// Gives memory back that an unusual read took.
    pub fn trim(&mut self, bytes_max: usize) {
        if self.rows.capacity() > bytes_max {
            self.rows = RowBatch::default();
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
        let FewWanted { from, to, direction, enough, most: (rows_max, bytes_max) } = *wanted;
        let all = self.db.transactions();
        let tree = shape.rows(all);
        let FewRows { walk, rows } = out;
        rows.clear();
        let walk = match walk {
            Some(walk) => {
                walk.restart(tree, (from, to), direction, *view);
                walk
            }
            None => {
                let range = KeyRange::new(from, to.map(<[u8]>::to_vec));
                walk.insert(Box::new(Scan::new(tree, range, direction, *view)))
            }
        };
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
}
