//! Scans of tables, in the order of their key or of an index.
//!
//! # Invariants
//! - TAB-4: where a view sees two rows at a key (VER-4), an entry leads to the one whose values it has. If both have the same ones, there are two
//!   entries; the one that only the snapshot shows leads to the row that only the snapshot shows.

use std::sync::Arc;

use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::Lsn;
use clearway_txn::error::TxnError;
use clearway_txn::mvcc::book::View;
use clearway_txn::read::{Picked, Picks, Reading, RowBatch, Scan, ShownEnd};
use clearway_txn::transactions::Transactions;

use super::gathered::Gathered;
use super::next_ranges::NextRanges;
use super::shape::{IndexShape, TableShape};
use super::sieve::Sieve;
use crate::catalog::Oid;
use crate::error::EngineError;
use crate::value::Value;

/// A row and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyedRow {
    /// The key in the table's tree.
    pub key: Vec<u8>,
    /// All columns, dropped ones as nulls.
    pub row: Vec<Value>,
}

/// A scan of a table in the order of its key.
pub struct TableScan {
    shape: Arc<TableShape>,
    whole: bool,
    seeks: bool,
    begun: bool,
    scan: Scan,
    /// Rows that were read ahead, if they had to be copied out of their leaf.
    batch: RowBatch,
    /// How many have been read ahead.
    rows: usize,
    next: usize,
}

impl TableScan {
    /// A scan of the keys in `range`, at `view`.
    pub fn new(
        all: &Transactions,
        shape: &Arc<TableShape>,
        range: KeyRange,
        direction: Direction,
        view: View,
    ) -> TableScan {
        let whole = range == KeyRange::all();
        let scan = Scan::new(shape.rows(all), range, direction, view);
        let (shape, batch) = (shape.clone(), RowBatch::default());
        TableScan { shape, whole, seeks: false, begun: false, scan, batch, rows: 0, next: 0 }
    }

    /// The next row. `dep_lsn` rises to the commits on which the row depends.
    ///
    /// # Errors
    /// From the trees; `BadRow`.
    pub async fn next(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<Option<KeyedRow>, EngineError> {
        if !self.fill(all, dep_lsn).await? {
            return Ok(None);
        }
        let (key, value) = self.scan.row_of_step(&self.batch, self.next);
        self.next += 1;
        Ok(Some(KeyedRow { row: self.shape.row(key, value)?, key: key.to_vec() }))
    }

    /// Reads ahead so that `buffered` gives a row; false if there are no more rows.
    ///
    /// # Errors
    /// From the trees.
    pub async fn fill(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<bool, EngineError> {
        while self.next == self.rows {
            (self.next, self.rows) = (0, 0);
            if !self.scan.step(all.book(), dep_lsn, &mut self.batch).await? {
                return Ok(false);
            }
            self.rows = self.scan.len_of_step(&self.batch);
        }
        Ok(true)
    }

    /// It goes over all rows only because no index leads to those that are sought.
    pub fn seeks(&mut self) {
        self.seeks = self.whole;
    }

    /// It goes on where parts of all rows were read before: it counts with them as one walk over the table.
    pub fn goes_on(&mut self) {
        (self.whole, self.begun) = (true, true);
    }

    pub(crate) fn is_seeking(&self) -> bool {
        self.seeks
    }

    /// Whether a row has been read ahead.
    #[inline]
    pub(crate) fn has_buffered(&self) -> bool {
        self.next < self.rows
    }

    /// How many have.
    pub(crate) fn left(&self) -> usize {
        self.rows.saturating_sub(self.next)
    }

    /// The table.
    pub(crate) fn table(&self) -> Oid {
        self.shape.oid
    }

    /// Whether it goes over all rows.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// True at the first call.
    pub(crate) fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    /// Steps over rows that have been read ahead, at most so many; over how many.
    pub fn pass(&mut self, rows_max: usize) -> usize {
        let before = self.next;
        self.next += self.left().min(rows_max);
        self.next - before
    }

    /// Key and value part of the next row, if it has already been read from its leaf.
    #[inline]
    pub fn buffered(&mut self) -> Option<(&[u8], &[u8])> {
        if self.next == self.rows {
            return None;
        }
        self.next += 1;
        Some(self.scan.row_of_step(&self.batch, self.next - 1))
    }

    /// If the row that `buffered` gives next is one that only the snapshot shows, where the transaction has put another row: how it ended.
    #[inline]
    pub fn next_shown(&self) -> Option<ShownEnd> {
        self.batch.shown(self.next)
    }
}

/// A scan of a table in the order of an index.
pub struct IndexScan {
    shape: Arc<TableShape>,
    begun: bool,
    index: usize,
    view: View,
    scan: Scan,
    direction: Direction,
    ranges: NextRanges,
    batch: RowBatch,
    next: usize,
    reading: Reading,
    reorders: bool,
    /// Entries in the order of their rows; none: the entries are taken in the order of the index.
    gathered: Option<Box<Ordered>>,
    /// Rows of the entries before the next one that were found without waiting, and how many of them have been given.
    rows: RowBatch,
    given: usize,
    /// So many of the next entries are looked up one by one.
    apart: usize,
    /// How many rows are found ahead at least when the next ones are asked for.
    ahead: usize,
    /// Entries whose rows it holds back are stepped over.
    sieve: Option<Arc<Sieve>>,
    /// There are no more entries behind those that have been read ahead.
    ended: bool,
    /// How many entries of its leaf the next step takes at most: a leaf has hundreds, of which a look-up may want one.
    expected: usize,
    entry: Vec<u8>,
    key: Vec<u8>,
    /// The present row is one that only the snapshot shows (TAB-4).
    at_shown: bool,
}

/// Entries in the order of their rows, which are looked up leaf by leaf.
#[derive(Default)]
struct Ordered {
    entries: Gathered,
    picks: Picks,
    /// The leaves of the next rows have just been brought into memory.
    fetched: bool,
}

/// So many rows are found ahead at most, in the order of the index.
const AHEAD_MAX: usize = 64;

/// Entries from which on a step takes its whole leaf.
const EXPECTED_MAX: usize = 256;

/// So many entries are held back by a sieve in one go.
const PASSED_MAX: usize = 20_000;

/// What was found ahead.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// How many rows.
    pub(crate) rows: u64,
    /// From how many leaves they were read.
    pub(crate) leaves: u64,
}

impl IndexScan {
    /// A scan of the entries in `range` of the index at position `index` of `shape.indexes`.
    pub fn new(
        all: &Transactions,
        shape: &Arc<TableShape>,
        index: usize,
        range: KeyRange,
        direction: Direction,
        view: View,
    ) -> IndexScan {
        IndexScan {
            shape: shape.clone(),
            begun: false,
            index,
            view,
            scan: Scan::new(shape.indexes[index].entries(all), range, direction, view),
            direction,
            ranges: NextRanges::default(),
            batch: RowBatch::default(),
            next: 0,
            reading: Reading::default(),
            reorders: false,
            gathered: None,
            rows: RowBatch::default(),
            given: 0,
            apart: 0,
            ahead: 1,
            sieve: None,
            ended: false,
            expected: usize::MAX,
            entry: Vec::new(),
            key: Vec::new(),
            at_shown: false,
        }
    }

    /// Becomes a new scan of other entries of its index, in the memory of this one.
    pub fn begin_again(&mut self, all: &Transactions, ends: (&[u8], Option<&[u8]>)) {
        self.scan.restart(self.shape.indexes[self.index].entries(all), ends, self.direction, self.view);
        (self.begun, self.reorders, self.ended, self.at_shown) = (false, false, false, false);
        (self.next, self.given, self.apart, self.ahead, self.expected) = (0, 0, 0, 1, usize::MAX);
        (self.ranges, self.gathered, self.sieve) = (NextRanges::default(), None, None);
        self.batch.clear();
        self.rows.clear();
    }

    /// The rows may come in another order than that of the index, which finds many of them sooner. Those of the first steps and of one whole leaf do not:
    /// often a statement needs no more.
    pub fn may_reorder(&mut self) {
        self.reorders = true;
    }

    /// Says before the first step how many rows are wanted first. Each step takes eight times as many as the one before, and soon whole leaves.
    pub fn expect(&mut self, rows: usize) {
        if !self.begun {
            self.expected = rows.max(1);
        }
    }

    /// It reads these ranges of the index, too, in any order; the next is at the end.
    pub fn go_on_with(&mut self, ranges: Vec<KeyRange>) {
        self.ranges = NextRanges::new(ranges);
    }

    /// How many ranges behind the first one were begun since the last call.
    pub(crate) fn take_begun(&mut self) -> u64 {
        self.ranges.take_begun()
    }

    /// Only rows are wanted that pass a sieve; others may be given, too.
    pub fn sift(&mut self, sieve: Arc<Sieve>) {
        self.sieve = Some(sieve);
    }

    /// The table.
    pub(crate) fn table(&self) -> Oid {
        self.shape.oid
    }

    /// True at the first call.
    pub(crate) fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    /// Reads ahead so that `buffered_entry` gives an entry; false if there are no more.
    ///
    /// # Errors
    /// From the trees.
    pub(crate) async fn fill(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<bool, EngineError> {
        while self.next == self.batch.len() {
            self.next = 0;
            if self.expected < usize::MAX {
                self.scan.expect(self.expected);
                self.expected = if self.expected < EXPECTED_MAX { 8 * self.expected } else { usize::MAX };
            }
            if !self.scan.next(all.book(), dep_lsn, &mut self.batch).await? && !self.next_range(all).await? {
                self.ended = true;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes to the next range; false: there is none.
    async fn next_range(&mut self, all: &Transactions) -> Result<bool, EngineError> {
        let entries = self.shape.indexes[self.index].entries(all);
        if self.ranges.is_time_to_look()
            && let Some(missing) = entries.missing_leaves(|n| self.ranges.start(n))
        {
            entries.fetch_leaves(missing).await.map_err(TxnError::from)?;
        }
        let Some(range) = self.ranges.take() else { return Ok(false) };
        self.scan.restart(entries, (&range.from, range.to.as_deref()), self.direction, self.view);
        Ok(true)
    }

    /// The same of an entry that its sieve lets pass.
    async fn fill_sifted(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<bool, EngineError> {
        while self.fill(all, dep_lsn).await? {
            let Some(sieve) = &self.sieve else { return Ok(true) };
            while self.next < self.batch.len() {
                if sieve.passes(self.index().row_key(self.batch.get(self.next).0)?) {
                    return Ok(true);
                }
                self.next += 1;
            }
        }
        Ok(false)
    }

    /// Whether it is known to have given its last row.
    pub fn has_ended(&self) -> bool {
        let is_used_up = self.gathered.as_ref().is_none_or(|ordered| ordered.entries.is_used_up());
        self.ended && !self.has_buffered() && is_used_up && self.given == self.rows.len()
    }

    /// Whether an entry has been read ahead.
    pub(crate) fn has_buffered(&self) -> bool {
        self.next < self.batch.len()
    }

    /// How many have.
    pub(crate) fn left(&self) -> usize {
        self.batch.len().saturating_sub(self.next)
    }

    /// Steps over entries that have been read ahead, at most so many, before any row was asked for; over how many.
    pub fn pass(&mut self, entries_max: usize) -> usize {
        assert!(self.gathered.is_none() && self.rows.is_empty(), "entries are stepped over before rows are read");
        let before = self.next;
        self.next += self.left().min(entries_max);
        self.next - before
    }

    /// The next entry, if it has already been read from its leaf: its row is not read (IXO-1).
    pub fn buffered_entry(&mut self) -> Option<&[u8]> {
        if !self.has_buffered() {
            return None;
        }
        self.next += 1;
        Some(self.batch.get(self.next - 1).0)
    }

    /// The index.
    pub fn index(&self) -> &IndexShape {
        &self.shape.indexes[self.index]
    }

    /// The next row. `dep_lsn` rises to the commits on which the row depends.
    ///
    /// # Errors
    /// From the trees; `BadRow`; `BadCatalog` if an entry leads to no row, which TAB-1 excludes.
    pub async fn next(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<Option<KeyedRow>, EngineError> {
        if !self.advance(all, dep_lsn).await? {
            return Ok(None);
        }
        let (key, value) = self.current();
        Ok(Some(KeyedRow { row: self.shape.row(key, value)?, key: key.to_vec() }))
    }

    /// Key and value part of the row to which `advance` went.
    pub fn current(&self) -> (&[u8], &[u8]) {
        match self.reading.shown().filter(|_| self.at_shown) {
            Some(shown) => (&self.key, &shown.value),
            None => (&self.key, self.reading.value()),
        }
    }

    /// The entry that led to it.
    pub fn entry(&self) -> &[u8] {
        &self.entry
    }

    /// If that row is one that only the snapshot shows, where the transaction has put another row: how it ended.
    pub fn shown(&self) -> Option<ShownEnd> {
        self.reading.shown().filter(|_| self.at_shown).map(|shown| shown.end)
    }

    /// Goes to the next row; false if there is none. `dep_lsn` rises to the commits on which the row depends.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn advance(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<bool, EngineError> {
        let Some(only_shown) = self.next_entry(all, dep_lsn).await? else { return Ok(false) };
        let index = &self.shape.indexes[self.index];
        if !self.reading.get(all.book(), self.shape.rows(all), &self.key, &self.view, dep_lsn).await? {
            return Err(EngineError::BadCatalog(format!("index {} leads to a row that is not there", index.name)));
        }
        self.at_shown = match self.reading.shown() {
            None => false,
            Some(shown) => shown.alone || only_shown || !self.has_entry(&self.entry)?,
        };
        Ok(true)
    }

    /// Goes to the next entry: its bytes, and the key of its row. Whether it leads to a row that only the snapshot shows; none: there is no entry.
    async fn next_entry(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<Option<bool>, EngineError> {
        assert!(self.given == self.rows.len(), "rows that were found ahead are given first");
        self.apart = self.apart.saturating_sub(1);
        if !self.is_ordered() {
            if !self.fill_sifted(all, dep_lsn).await? {
                return Ok(None);
            }
            let (entry, _) = self.batch.get(self.next);
            let only_shown = self.batch.shown(self.next).is_some();
            self.next += 1;
            let key = self.shape.indexes[self.index].row_key(entry)?;
            replace(&mut self.entry, entry);
            replace(&mut self.key, key);
            return Ok(Some(only_shown));
        }
        self.gather(all, dep_lsn).await?;
        while self.gathered.as_ref().is_some_and(|ordered| ordered.entries.is_used_up()) && !self.ended {
            self.gather(all, dep_lsn).await?;
        }
        let found = self.gathered.as_mut().and_then(|ordered| ordered.entries.take());
        Ok(found.map(|(entry, key_at, only_shown)| {
            replace(&mut self.entry, entry);
            replace(&mut self.key, &entry[key_at..]);
            only_shown
        }))
    }

    /// Whether the entries behind those that have been taken come in the order of their rows.
    fn is_ordered(&self) -> bool {
        let is_behind_leaf = || self.expected == usize::MAX && self.next > 0 && self.next == self.batch.len();
        self.gathered.is_some() || self.reorders && (self.sieve.is_some() || is_behind_leaf())
    }

    /// Sees to it that a window has the next entry, if there is one. Where a sieve holds many back, the window may be empty though more entries follow:
    /// the caller may take a breath.
    async fn gather(&mut self, all: &Transactions, dep_lsn: &mut Lsn) -> Result<(), EngineError> {
        let mut ordered = self.gathered.take().unwrap_or_default();
        if ordered.entries.is_used_up() {
            let gathered = &mut ordered.entries;
            gathered.begin();
            self.ranges.begin_window();
            let mut passed = 0;
            while !(gathered.is_full() || self.ranges.is_window_full())
                && passed < PASSED_MAX
                && self.fill(all, dep_lsn).await?
            {
                let index = &self.shape.indexes[self.index];
                for at in std::mem::replace(&mut self.next, self.batch.len())..self.batch.len() {
                    let (entry, _) = self.batch.get(at);
                    let key = index.row_key(entry)?;
                    if self.sieve.as_ref().is_some_and(|sieve| !sieve.passes(key)) {
                        passed += 1;
                        continue;
                    }
                    gathered.push(entry, entry.len() - key.len(), self.batch.shown(at).is_some());
                }
            }
            gathered.end();
        }
        self.gathered = Some(ordered);
        Ok(())
    }

    /// Looks the rows of the next entries up without waiting, so that `buffered_row` gives them: those that stand in one leaf, or, where the order of the
    /// index is kept, some `want`; how many. None: [`Self::advance`] goes on.
    ///
    /// # Errors
    /// From the trees; `BadRow`.
    pub(crate) async fn fill_rows(
        &mut self,
        all: &Transactions,
        want: usize,
        dep_lsn: &mut Lsn,
    ) -> Result<Option<Ahead>, EngineError> {
        assert!(self.given == self.rows.len(), "rows that were found ahead are given first");
        if !self.is_ordered() {
            return self.fill_in_order(all, want, dep_lsn).await;
        }
        self.gather(all, dep_lsn).await?;
        let Some(ordered) = &mut self.gathered else { return Ok(None) };
        if self.apart > 0 {
            return Ok(None);
        }
        if ordered.entries.is_used_up() {
            return Ok((!self.ended).then_some(Ahead { rows: 0, leaves: 0 }));
        }
        let Ordered { entries, picks, fetched } = &mut **ordered;
        let tree = self.shape.rows(all);
        let from = (&**all.book(), tree);
        self.given = 0;
        match picks.pick_now(from, |n| entries.key(n), &self.view, dep_lsn, &mut self.rows) {
            Picked::Apart(keys) => {
                // Once: where the pool is too small for them, each is waited for by itself.
                if !std::mem::replace(fetched, true)
                    && let Some(missing) = tree.missing_leaves(|n| entries.key(n))
                {
                    tree.fetch_leaves(missing).await.map_err(TxnError::from)?;
                    return Ok(Some(Ahead { rows: 0, leaves: 0 }));
                }
                *fetched = false;
                self.apart = keys;
                Ok(None)
            }
            Picked::Rows(keys) => {
                *fetched = false;
                entries.skip(keys);
                Ok(Some(Ahead { rows: keys as u64, leaves: 1 }))
            }
        }
    }

    /// The same in the order of the index. What is found beyond `want` is at most as much as was found before: a filter may ask for more.
    async fn fill_in_order(
        &mut self,
        all: &Transactions,
        want: usize,
        dep_lsn: &mut Lsn,
    ) -> Result<Option<Ahead>, EngineError> {
        if self.apart > 0 || !self.fill_sifted(all, dep_lsn).await? {
            return Ok(None);
        }
        let want = want.clamp(self.ahead, AHEAD_MAX);
        self.ahead = (self.ahead * 2).min(AHEAD_MAX);
        self.rows.clear();
        self.given = 0;
        let index = &self.shape.indexes[self.index];
        while self.rows.len() < want && self.has_buffered() && self.batch.shown(self.next).is_none() {
            let key = index.row_key(self.batch.get(self.next).0)?;
            if self.sieve.as_ref().is_some_and(|sieve| !sieve.passes(key)) {
                self.next += 1;
                continue;
            }
            let found = self.reading.get_now(all.book(), self.shape.rows(all), key, &self.view, dep_lsn);
            if found != Some(true) {
                break;
            }
            self.rows.push(key, self.reading.value());
            self.next += 1;
        }
        if self.rows.is_empty() {
            // `advance` waits, gives one of two rows at a key (TAB-4), or tells that there is none.
            self.apart = 1;
            return Ok(None);
        }
        let rows = self.rows.len() as u64;
        Ok(Some(Ahead { rows, leaves: rows }))
    }

    /// Key and value part of the next row, if it has been found ahead.
    #[inline]
    pub fn buffered_row(&mut self) -> Option<(&[u8], &[u8])> {
        if self.given == self.rows.len() {
            return None;
        }
        self.given += 1;
        Some(self.rows.get(self.given - 1))
    }

    /// TAB-4: whether the transaction's own row, of two at a key, has this entry.
    fn has_entry(&self, entry: &[u8]) -> Result<bool, EngineError> {
        let own = self.shape.row(&self.key, self.reading.value())?;
        let of_own = self.shape.indexes[self.index].entry_of(&own)?;
        Ok(of_own.is_some_and(|of_own| entry.strip_prefix(&of_own.prefix[..]) == Some(&self.key)))
    }
}

fn replace(old: &mut Vec<u8>, new: &[u8]) {
    old.clear();
    old.extend_from_slice(new);
}
