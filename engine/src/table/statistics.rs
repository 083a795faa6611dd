//! How many rows tables have and how their values are spread: found out in the background when enough rows have changed, or when ANALYZE asks;
//! never when the database is opened. A table is walked once; its rows are counted, and a sample of them is judged (`sample`).
//!
//! # Life of a table's statistics
//! unknown -> sessions report rows that came and went in batches -> due -> counted, some leaves at each step of upkeep, when the table has
//! rested -> known, until enough rows have changed again.
//!
//! # Invariants
//! - STA-1: nothing is read for statistics before a session has changed rows of a table in this process, or ANALYZE asks.
//! - STA-2: known figures may be old: at most `CHANGES_MIN` rows and a tenth of the table have been changed and reported before the table is
//!   due again.
//! - STA-4: a table that is due is counted again a minute after the last count at the earliest, as PostgreSQL's autovacuum looks once a minute;
//!   after a second already when as many rows have changed as it had. A table that grows all the time would be counted all the time.
//! - STA-3: `generation` rises after new figures are known; a plan that was made before may be made anew.
//!
//! # Not here
//! Locks: a walk reads leaves as they stand, and nobody waits for it. The figures do not survive the process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_base::waits::wall_us;
use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_storage::ids::TreeId;
use clearway_txn::transactions::Transactions;

use super::sample::{ColumnStatistics, Sample};
use super::shape::TableShape;
use super::usage::Usage;
#[cfg(doc)]
use super::usage::Use;
use crate::catalog::{Catalog, Oid};
use crate::error::EngineError;
use crate::progress::Progress;

/// Changes below which a table is not due.
const CHANGES_MIN: u64 = 50;
/// Changes that a session gathers before it reports them.
const TOLD_AT_ONCE: u64 = 32;
/// Microseconds between two counts of a table (STA-4).
const REST_US: i64 = 60_000_000;
/// The same for a table of which as many rows have changed as it had.
const SHORT_REST_US: i64 = 1_000_000;
/// Tables that are due and rest, of which one step looks at no more.
const LOOKED_AT: usize = 64;
/// Leaves that one step reads.
const LEAVES: usize = 256;

/// The known figures of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatistics {
    /// Rows, without those deleted.
    pub rows: u64,
    /// Leaves of its tree.
    pub leaves: u64,
    /// When it was counted, in microseconds since 1970.
    pub at_us: i64,
}

#[derive(Debug, Default)]
struct Known {
    statistics: Option<TableStatistics>,
    columns: Option<Arc<[ColumnStatistics]>>,
    changes: u64,
    queued: bool,
    analyzed: Analyzed,
}

/// How often a table was counted, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Analyzed {
    /// Because ANALYZE asked, and when last: microseconds since 1970.
    pub asked: (u64, i64),
    /// Because enough rows had changed.
    pub unasked: (u64, i64),
    /// [`Use::live`] when it was counted last,
    pub live: i64,
    /// and [`Use::changed`].
    pub changed: u64,
}

/// A count in progress.
#[derive(Debug)]
struct Walk {
    table: Oid,
    tree: TreeId,
    from: Vec<u8>,
    rows: u64,
    leaves: u64,
    /// Changes that were reported before the count began: the count includes them.
    changes: u64,
    sample: Sample,
}

#[derive(Debug, Default)]
struct Tables {
    known: HashMap<Oid, Known>,
    due: VecDeque<Oid>,
    walk: Option<Walk>,
}

/// The statistics of all tables.
#[derive(Debug)]
pub struct Statistics {
    tables: Mutex<Tables>,
    /// How often figures have been found out.
    generation: AtomicU64,
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics { tables: Mutex::new("engine/statistics", Tables::default()), generation: AtomicU64::new(0) }
    }
}

/// Changes that a session has made and not reported yet.
#[derive(Debug, Default)]
pub struct Changes {
    of: Vec<(Oid, u64)>,
}

impl Changes {
    /// Notes that a row was changed.
    pub(crate) fn note(&mut self, statistics: &Statistics, table: Oid) {
        let at = self.of.iter().position(|(oid, _)| *oid == table).unwrap_or_else(|| {
            self.of.push((table, 0));
            self.of.len() - 1
        });
        self.of[at].1 += 1;
        if self.of[at].1 == TOLD_AT_ONCE {
            statistics.changed(table, TOLD_AT_ONCE);
            self.of.swap_remove(at);
        }
    }

    /// Reports all changes.
    pub(crate) fn tell(&mut self, statistics: &Statistics) {
        self.of.drain(..).for_each(|(table, changes)| statistics.changed(table, changes));
    }
}

impl Statistics {
    /// The known figures of a table.
    pub fn of(&self, table: Oid) -> Option<TableStatistics> {
        self.tables.lock().known.get(&table).and_then(|known| known.statistics)
    }

    /// What is known of a table's columns, by their places.
    pub fn columns(&self, table: Oid) -> Option<Arc<[ColumnStatistics]>> {
        self.tables.lock().known.get(&table).and_then(|known| known.columns.clone())
    }

    /// How often a table was counted, and when.
    pub fn analyzed(&self, table: Oid) -> Analyzed {
        self.tables.lock().known.get(&table).map_or_else(Analyzed::default, |known| known.analyzed)
    }

    /// A number that changes when new figures are known (STA-3).
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// How many tables are due.
    pub fn due(&self) -> usize {
        let tables = self.tables.lock();
        tables.due.len() + usize::from(tables.walk.is_some())
    }

    fn changed(&self, table: Oid, changes: u64) {
        let mut tables = self.tables.lock();
        let known = tables.known.entry(table).or_default();
        known.changes += changes;
        let is_due = known.is_due();
        known.queued |= is_due;
        if is_due {
            tables.due.push_back(table);
        }
    }

    /// Counts a table now.
    ///
    /// # Errors
    /// From the tree.
    pub async fn analyze(
        &self,
        all: &Transactions,
        catalog: &Catalog,
        usage: &Usage,
        table: Oid,
        progress: &Progress,
    ) -> Result<(), EngineError> {
        let Some(mut walk) = self.begin(catalog, table) else { return Ok(()) };
        progress.table(table, self.of(table).map_or(0, |counted| counted.leaves));
        while !walk.step(&all.store().tree(walk.tree)).await? {
            progress.reach(walk.leaves);
        }
        self.end(catalog, usage, walk, true);
        Ok(())
    }

    /// One step of upkeep; true if there is more to do.
    ///
    /// # Errors
    /// Those of the tree: the table is not counted again until more of it changes.
    pub async fn step(&self, all: &Transactions, catalog: &Arc<Catalog>, usage: &Usage) -> Result<bool, EngineError> {
        let walk = self.tables.lock().walk.take();
        let next = || self.tables.lock().next_due(wall_us());
        let mut walk = match walk {
            Some(walk) => walk,
            None => match next() {
                None => return Ok(false),
                Some(table) => match self.begin(catalog, table) {
                    Some(walk) => walk,
                    // The table was dropped.
                    None => {
                        self.tables.lock().known.remove(&table);
                        return Ok(true);
                    }
                },
            },
        };
        match walk.step(&all.store().tree(walk.tree)).await {
            Ok(true) => self.end(catalog, usage, walk, false),
            Ok(false) => self.tables.lock().walk = Some(walk),
            Err(error) => {
                self.tables.lock().known.remove(&walk.table);
                return Err(error);
            }
        }
        Ok(true)
    }

    fn begin(&self, catalog: &Catalog, table: Oid) -> Option<Walk> {
        let tree = catalog.relation(table).map(|relation| TreeId(relation.tree)).filter(|tree| tree.0 != 0)?;
        let changes = self.tables.lock().known.entry(table).or_default().changes;
        Some(Walk { table, tree, from: Vec::new(), rows: 0, leaves: 0, changes, sample: Sample::default() })
    }

    fn end(&self, catalog: &Catalog, usage: &Usage, walk: Walk, asked: bool) {
        // A table that has gone meanwhile, or whose columns have changed, is not judged.
        let shape = TableShape::new(catalog, walk.table).ok().filter(|shape| shape.tree == walk.tree);
        let columns = shape.map(|shape| walk.sample.judge(&shape, walk.rows).into());
        let used = usage.of(walk.table);
        let mut tables = self.tables.lock();
        let known = tables.known.entry(walk.table).or_default();
        known.statistics = Some(TableStatistics { rows: walk.rows, leaves: walk.leaves, at_us: wall_us() });
        known.columns = columns;
        known.changes = known.changes.saturating_sub(walk.changes);
        known.queued = false;
        let times = if asked { &mut known.analyzed.asked } else { &mut known.analyzed.unasked };
        *times = (times.0 + 1, wall_us());
        (known.analyzed.live, known.analyzed.changed) = (used.live, used.changed());
        // The changes that were reported since the count began.
        let is_due = known.is_due();
        known.queued |= is_due;
        if is_due {
            tables.due.push_back(walk.table);
        }
        drop(tables);
        self.generation.fetch_add(1, Ordering::Relaxed);
    }
}

impl Tables {
    /// The next table that is due and has rested.
    fn next_due(&mut self, now_us: i64) -> Option<Oid> {
        for _ in 0..self.due.len().min(LOOKED_AT) {
            let table = self.due.pop_front()?;
            if self.known.get(&table).is_none_or(|known| known.has_rested(now_us)) {
                return Some(table);
            }
            self.due.push_back(table);
        }
        None
    }
}

impl Known {
    /// STA-4. A clock that was set back does not make a table wait.
    fn has_rested(&self, now_us: i64) -> bool {
        let Some(last) = self.statistics else { return true };
        let rest = if self.changes > CHANGES_MIN + last.rows { SHORT_REST_US } else { REST_US };
        !(0..rest).contains(&now_us.saturating_sub(last.at_us))
    }

    /// STA-2
    fn is_due(&self) -> bool {
        let rows = self.statistics.map_or(0, |s| s.rows);
        !self.queued && self.changes > CHANGES_MIN + rows / 10
    }
}

impl Walk {
    /// Counts some more leaves; true at the end of the tree.
    async fn step(&mut self, tree: &Tree) -> Result<bool, EngineError> {
        let mut cursor = tree.cursor(KeyRange { from: self.from.clone(), to: None }, Direction::Forward);
        for _ in 0..LEAVES {
            let Some(leaf) = cursor.next_leaf().await? else { return Ok(true) };
            self.leaves += 1;
            for (key, row) in leaf.iter().filter(|(_, row)| !row.ghost) {
                self.rows += 1;
                // A row whose value stands elsewhere is not fetched for a sample.
                if !row.overflow {
                    self.sample.offer(key, row.value);
                }
            }
            if let Some((key, _)) = leaf.iter().next_back() {
                self.from = key.to_vec();
                self.from.push(0);
            }
        }
        Ok(false)
    }
}
