//! Statistics of tables: how many rows they have and how their values are distributed. They are gathered in the background when enough rows
//! have changed, or by ANALYZE; never while the database is opened. One scan of a table counts its rows and samples them (`sample`).
//!
//! # Life of a table's statistics
//! unknown -> sessions report, in batches, how many rows they have changed -> due -> counted, some leaves at each step of upkeep, once the time
//! between two counts (STA-4) has passed -> known, until enough rows have changed again.
//!
//! # Invariants
//! - STA-1: nothing is read for statistics before a session has changed rows of a table in this process, or ANALYZE asks.
//! - STA-2: known figures may be old: at most `CHANGES_MIN` rows and a tenth of the table have been changed and reported before the table is
//!   due again.
//! - STA-3: `generation` rises after new figures are known, so that the layer above can replace plans that rest on older figures.
//! - STA-4: a table that is due is counted at the earliest a minute after its last count (PostgreSQL's autovacuum looks once a minute), or a
//!   second after it if as many rows have changed as the table had. Otherwise a table that grows all the time would be counted all the time.
//! - STA-5: new figures are stored (`stored`) before ANALYZE ends, or within the step of upkeep that ended the count, and are known again
//!   after the next opening. The stored figures of a table that was dropped are removed by a later step.
//!
//! # Not here
//! Locks: a count reads the leaves as they are, and no transaction waits for it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_base::waits::wall_us;
use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_storage::ids::{Lsn, TreeId};
use clearway_txn::transactions::Transactions;

use super::sample::{Sample, Spread, Targets};
use super::shape::TableShape;
use super::stored::{self, Stored};
pub use super::stored::{Analyzed, TableStatistics};
use super::usage::Usage;
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

#[derive(Debug, Default)]
struct Known {
    statistics: Option<TableStatistics>,
    spread: Option<Arc<Spread>>,
    changes: u64,
    queued: bool,
    /// Whether it is stored.
    stored: bool,
    analyzed: Analyzed,
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
    targets: Targets,
    sample: Sample,
}

#[derive(Debug, Default)]
struct Tables {
    known: HashMap<Oid, Known>,
    due: VecDeque<Oid>,
    walk: Option<Walk>,
    /// The commit of the catalog in which the tables were looked for that have gone.
    looked: Lsn,
    /// Tables of which something is stored that is to be removed (STT-3).
    gone: Vec<Oid>,
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
        self.note_many(statistics, table, 1);
    }

    /// Notes that so many rows were changed.
    pub(crate) fn note_many(&mut self, statistics: &Statistics, table: Oid, rows: u64) {
        let at = self.of.iter().position(|(oid, _)| *oid == table).unwrap_or_else(|| {
            self.of.push((table, 0));
            self.of.len() - 1
        });
        self.of[at].1 += rows;
        if self.of[at].1 >= TOLD_AT_ONCE {
            statistics.changed(table, self.of[at].1);
            self.of.swap_remove(at);
        }
    }

    /// Reports all changes.
    pub(crate) fn report_to(&mut self, statistics: &Statistics) {
        self.of.drain(..).for_each(|(table, changes)| statistics.changed(table, changes));
    }
}

impl Statistics {
    /// The known figures of a table.
    pub fn of(&self, table: Oid) -> Option<TableStatistics> {
        self.tables.lock().known.get(&table).and_then(|known| known.statistics)
    }

    /// What is known of a table's columns.
    pub fn spread(&self, table: Oid) -> Option<Arc<Spread>> {
        self.tables.lock().known.get(&table).and_then(|known| known.spread.clone())
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
        tables.due.len() + usize::from(tables.walk.is_some()) + tables.gone.len()
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

    /// Counts a table now. What is told of it depends on the commit that is given back.
    ///
    /// # Errors
    /// From the trees.
    pub async fn analyze(
        &self,
        all: &Arc<Transactions>,
        (catalog, published): (&Catalog, &Catalog),
        usage: &Usage,
        (table, targets): (Oid, Targets),
        progress: &Progress,
    ) -> Result<Lsn, EngineError> {
        let Some(mut walk) = self.begin(catalog, table, targets) else { return Ok(Lsn::ZERO) };
        progress.table(table, self.of(table).map_or(0, |counted| counted.leaves));
        while !walk.step(&all.store().tree(walk.tree)).await? {
            progress.reach(walk.leaves);
        }
        let tree = walk.tree;
        self.end(catalog, usage, walk, true);
        self.store(all, published, table, tree).await
    }

    /// One step of upkeep; true if there is more to do.
    ///
    /// # Errors
    /// Those of the tree: the table is not counted again until more of it changes.
    pub async fn step(&self, all: &Arc<Transactions>, catalog: &Catalog, usage: &Usage) -> Result<bool, EngineError> {
        if self.forget_one(all, catalog).await? {
            return Ok(true);
        }
        let walk = self.tables.lock().walk.take();
        let next = || self.tables.lock().next_due(wall_us());
        let mut walk = match walk {
            Some(walk) => walk,
            None => match next() {
                None => return Ok(false),
                Some(table) => match self.begin(catalog, table, Targets::default()) {
                    Some(walk) => walk,
                    // The table was dropped.
                    None => {
                        self.tables.lock().forget(table);
                        return Ok(true);
                    }
                },
            },
        };
        match walk.step(&all.store().tree(walk.tree)).await {
            Ok(true) => {
                let (table, tree) = (walk.table, walk.tree);
                self.end(catalog, usage, walk, false);
                self.store(all, catalog, table, tree).await?;
            }
            Ok(false) => self.tables.lock().walk = Some(walk),
            Err(error) => {
                self.tables.lock().forget(walk.table);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// STA-5. A table that only its own transaction or session knows is not stored.
    async fn store(
        &self,
        all: &Arc<Transactions>,
        published: &Catalog,
        table: Oid,
        tree: TreeId,
    ) -> Result<Lsn, EngineError> {
        if published.relation(table).is_none_or(|relation| relation.tree != tree.0) {
            return Ok(Lsn::ZERO);
        }
        let stored = {
            let mut tables = self.tables.lock();
            let Some(known) = tables.known.get_mut(&table) else { return Ok(Lsn::ZERO) };
            let (Some(statistics), Some(spread)) = (known.statistics, &known.spread) else { return Ok(Lsn::ZERO) };
            known.stored = true;
            Stored { tree, statistics, analyzed: known.analyzed, spread: Spread::clone(spread) }
        };
        stored::put(all, table, Some(&stored::encode(&stored))).await
    }

    /// Takes in what is stored (STA-5).
    ///
    /// # Errors
    /// From the tree.
    pub(crate) async fn load(&self, all: &Transactions, catalog: &Catalog) -> Result<(), EngineError> {
        let entries = stored::read_all(all).await?;
        let mut tables = self.tables.lock();
        for (table, stored) in entries {
            let tree = catalog.relation(table).map(|relation| relation.tree);
            match stored.filter(|stored| tree == Some(stored.tree.0)) {
                Some(Stored { statistics, analyzed, spread, .. }) => {
                    let (statistics, spread) = (Some(statistics), Some(Arc::new(spread)));
                    let known = Known { statistics, spread, analyzed, stored: true, ..Known::default() };
                    tables.known.insert(table, known);
                }
                None => tables.gone.push(table), // STT-3
            }
        }
        Ok(())
    }

    /// Removes what is stored of one table that has gone; false: there is none.
    async fn forget_one(&self, all: &Arc<Transactions>, catalog: &Catalog) -> Result<bool, EngineError> {
        let gone = {
            let mut tables = self.tables.lock();
            if tables.looked != catalog.lsn {
                tables.looked = catalog.lsn;
                let is_gone =
                    |(oid, known): (&Oid, &Known)| (known.stored && catalog.relation(*oid).is_none()).then_some(*oid);
                let gone: Vec<Oid> = tables.known.iter().filter_map(is_gone).collect();
                gone.into_iter().for_each(|table| tables.forget(table));
            }
            tables.gone.pop()
        };
        let Some(table) = gone else { return Ok(false) };
        stored::put(all, table, None).await?;
        Ok(true)
    }

    fn begin(&self, catalog: &Catalog, table: Oid, targets: Targets) -> Option<Walk> {
        let relation = catalog.relation(table).filter(|relation| relation.tree != 0)?;
        let (tree, sample) = (TreeId(relation.tree), Sample::new(&targets, relation));
        let changes = self.tables.lock().known.entry(table).or_default().changes;
        Some(Walk { table, tree, from: Vec::new(), rows: 0, leaves: 0, changes, targets, sample })
    }

    fn end(&self, catalog: &Catalog, usage: &Usage, walk: Walk, asked: bool) {
        // A table that has gone meanwhile, or whose columns have changed, is not judged.
        let shape = TableShape::new(catalog, walk.table).ok().filter(|shape| shape.tree == walk.tree);
        let found = shape.zip(catalog.relation(walk.table));
        let found = found.map(|(shape, relation)| walk.sample.judge(&shape, relation, &walk.targets, walk.rows));
        let used = usage.of(walk.table);
        let mut tables = self.tables.lock();
        let known = tables.known.entry(walk.table).or_default();
        known.statistics = Some(TableStatistics { rows: walk.rows, leaves: walk.leaves, at_us: wall_us() });
        let before = known.spread.take();
        let merged = |found| with_columns_before(found, before.as_deref(), walk.targets.only.is_some());
        known.spread = found.map(|found| Arc::new(merged(found)));
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

/// What was found out, with what was known before of the columns that were not judged.
fn with_columns_before(mut found: Spread, before: Option<&Spread>, partly: bool) -> Spread {
    let Some(before) = before else { return found };
    found.columns.iter_mut().zip(&before.columns).for_each(|(new, old)| *new = new.take().or_else(|| old.clone()));
    if partly {
        found.expressions.clone_from(&before.expressions);
    }
    found
}

impl Tables {
    /// Nothing is known of a table any more.
    fn forget(&mut self, table: Oid) {
        if self.known.remove(&table).is_some_and(|known| known.stored) {
            self.gone.push(table);
        }
    }

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
