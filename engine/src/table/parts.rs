//! A range of a table cut into parts, which several threads read at one view.
//!
//! # Invariants
//! - PTS-1: the parts are disjoint, come in the order of the key, and together they are the range (BTR-21). All are read at one view. So each row
//!   that the view shows is in exactly one part.

use std::collections::VecDeque;
use std::sync::Arc;

use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::Lsn;
use clearway_txn::mvcc::book::View;
use clearway_txn::transactions::Transactions;

use super::scan::TableScan;
use super::shape::TableShape;
use crate::error::EngineError;

/// Leaves of a part at most, about: a millisecond or less.
pub const PART_LEAVES: usize = 96;

/// The parts that no thread has taken yet.
pub struct Parts {
    shape: Arc<TableShape>,
    view: View,
    leaves: usize,
    ready: VecDeque<KeyRange>,
    /// What is still to be cut.
    rest: Option<KeyRange>,
    whole: bool,
    begun: bool,
}

impl Parts {
    /// Those of a range of keys, at `view`, each of so many leaves at most.
    pub fn new(shape: &Arc<TableShape>, range: KeyRange, view: View, leaves: usize) -> Parts {
        let whole = range == KeyRange::all();
        let (ready, rest) = (VecDeque::new(), Some(range));
        Parts { shape: shape.clone(), view, leaves, ready, rest, whole, begun: false }
    }

    /// Sees to it that so many parts are at hand, or all that are left; how many are.
    ///
    /// # Errors
    /// From the tree.
    pub async fn ready(&mut self, all: &Transactions, most: usize) -> Result<usize, EngineError> {
        let mut cuts = Vec::new();
        while self.ready.len() < most
            && let Some(mut rest) = self.rest.take()
        {
            cuts.clear();
            let more = self.shape.rows(all).cut(&rest, self.leaves, &mut cuts).await?;
            for cut in cuts.drain(..) {
                let from = std::mem::replace(&mut rest.from, cut.clone());
                self.ready.push_back(KeyRange::new(from, Some(cut))); // PTS-1
            }
            if more {
                self.rest = Some(rest);
            } else {
                self.ready.push_back(rest);
            }
        }
        Ok(self.ready.len().min(most))
    }

    /// The next parts that are at hand, at most so many.
    pub fn take(&mut self, most: usize) -> Vec<KeyRange> {
        self.ready.drain(..most.min(self.ready.len())).collect()
    }

    /// What was not handed out, as one range; none: nothing.
    pub fn rest(&mut self) -> Option<KeyRange> {
        let last = self.rest.take().or_else(|| self.ready.back().cloned())?;
        let from = self.ready.front().map_or(last.from, |first| first.from.clone());
        self.ready.clear();
        Some(KeyRange { from, to: last.to })
    }

    /// A walk over one of the parts.
    pub fn walk(&self, all: &Transactions, part: KeyRange) -> PartScan {
        let walk = TableScan::new(all, &self.shape, part, Direction::Forward, self.view);
        PartScan { walk, read: PartRead::default() }
    }

    /// Whether they are those of the whole table, and whether none was read before; from now on one was.
    pub(crate) fn begins(&mut self) -> (bool, bool) {
        (self.whole, !std::mem::replace(&mut self.begun, true))
    }

    /// The table.
    pub fn shape(&self) -> &Arc<TableShape> {
        &self.shape
    }
}

/// What the reader of a part has read: for its session, which other threads do not touch.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartRead {
    /// The commits on which the rows depend.
    pub dep_lsn: Lsn,
    /// Rows, and leaves that had any.
    pub rows: u64,
    /// The same.
    pub leaves: u64,
}

impl PartRead {
    /// Adds another one.
    pub fn add(&mut self, other: PartRead) {
        self.dep_lsn = self.dep_lsn.max(other.dep_lsn);
        self.rows += other.rows;
        self.leaves += other.leaves;
    }
}

/// A walk over a part.
pub struct PartScan {
    /// The walk; its rows are taken as they have been read ahead.
    pub walk: TableScan,
    /// What it has read.
    pub read: PartRead,
}

impl PartScan {
    /// Reads ahead; false: there are no more rows.
    ///
    /// # Errors
    /// From the trees.
    pub async fn fill(&mut self, all: &Transactions) -> Result<bool, EngineError> {
        let more = self.walk.fill(all, &mut self.read.dep_lsn).await?;
        self.read.rows += self.walk.left() as u64;
        self.read.leaves += u64::from(more);
        Ok(more)
    }
}
