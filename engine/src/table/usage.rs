//! How tables and indexes are used: scans, rows read and changed, leaves visited; and transactions by database.
//!
//! # Structure
//! A session counts in memory of its own ([`Used`]) and adds that to a shard when its transaction ends. A thread adds only to the shard of its
//! own number, so two workers do not wait for each other; a reader adds the shards up. A scan counts a leaf at a time, so a scan that stops
//! early also counts the rest of its leaf.
//!
//! # Invariants
//! - USE-1: a shard has at most [`ENTRIES_MAX`] tables and indexes. When it is full, those that were dropped are removed; a table or index
//!   for which there is still no place is not counted.
//!
//! # Not here
//! Pages read from disk: the page cache counts them by tree.

use std::collections::HashMap;

use clearway_base::sync::{Mutex, thread_number};
use foldhash::fast::RandomState;

use crate::catalog::{Catalog, Oid};

const SHARDS: usize = 16;
/// Tables and indexes that a shard counts.
pub const ENTRIES_MAX: usize = 16_384;
/// Tables and indexes that a session counts before it adds them to a shard.
const HELD_MAX: usize = 64;

/// What was done with a table, or with an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Walks over all rows of a table.
    pub whole: u64,
    /// Rows that these have read.
    pub whole_rows: u64,
    /// Look-ups and walks of a range, by the table's key or by the index.
    pub lookups: u64,
    /// Rows, or entries, that these have found.
    pub lookup_rows: u64,
    /// Rows of the table that were read for entries of its other indexes.
    pub fetched: u64,
    /// Rows inserted,
    pub inserted: u64,
    /// updated,
    pub updated: u64,
    /// (of these, without a change of an index)
    pub in_place: u64,
    /// and deleted, whatever became of the transaction.
    pub deleted: u64,
    /// Leaves visited.
    pub leaves: u64,
    /// Rows that committed transactions have added, less those that they have deleted.
    pub live: i64,
}

impl Use {
    /// Adds another's figures.
    pub fn add(&mut self, more: &Use) {
        self.whole += more.whole;
        self.whole_rows += more.whole_rows;
        self.lookups += more.lookups;
        self.lookup_rows += more.lookup_rows;
        self.fetched += more.fetched;
        self.inserted += more.inserted;
        self.updated += more.updated;
        self.in_place += more.in_place;
        self.deleted += more.deleted;
        self.leaves += more.leaves;
        self.live += more.live;
    }

    /// Rows changed.
    pub fn changed(&self) -> u64 {
        self.inserted + self.updated + self.deleted
    }
}

/// What was done in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseUse {
    /// Transactions that were committed, those without changes included.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub rollbacks: u64,
    /// What was done with all tables and indexes together.
    pub all: Use,
}

/// What a session has done and not added to the totals yet.
#[derive(Debug, Default)]
pub struct Used {
    of: Vec<(Oid, Use)>,
    /// The place of the table or index that was used last.
    last: usize,
    /// Rows that statements have looked at.
    examined: u64,
    /// Walks over whole tables.
    full_scans: u64,
    /// Rows that walks have looked at which seek those of a condition.
    filtered: u64,
    /// Rows inserted.
    inserted: u64,
}

impl Used {
    #[inline]
    fn at(&mut self, oid: Oid) -> &mut Use {
        let known = self.of.get(self.last).is_some_and(|(last, _)| *last == oid);
        if !known {
            self.last = self.place(oid);
        }
        &mut self.of[self.last].1
    }

    #[cold]
    fn place(&mut self, oid: Oid) -> usize {
        self.of.iter().position(|(known, _)| *known == oid).unwrap_or_else(|| {
            self.of.push((oid, Use::default()));
            self.of.len() - 1
        })
    }

    /// A row was looked up by its key.
    #[inline]
    pub(crate) fn looked_up(&mut self, table: Oid, found: bool) {
        self.examined += u64::from(found);
        let used = self.at(table);
        used.lookups += 1;
        used.lookup_rows += u64::from(found);
        used.leaves += 1;
    }

    /// A walk has read a leaf.
    pub(crate) fn walked(&mut self, table: Oid, begins: bool, whole: bool, rows: u64) {
        self.examined += rows;
        self.full_scans += u64::from(begins && whole);
        let used = self.at(table);
        let (walks, read) =
            if whole { (&mut used.whole, &mut used.whole_rows) } else { (&mut used.lookups, &mut used.lookup_rows) };
        *walks += u64::from(begins);
        *read += rows;
        used.leaves += u64::from(rows > 0);
    }

    /// A walk by an index has come to its next entry.
    pub(crate) fn walked_index(&mut self, table: Oid, index: Oid, begins: bool, found: bool) {
        self.examined += u64::from(found);
        let used = self.at(index);
        used.lookups += u64::from(begins);
        used.lookup_rows += u64::from(found);
        used.leaves += u64::from(begins);
        if found {
            let used = self.at(table);
            used.fetched += 1;
            used.leaves += 1;
        }
    }

    /// A walk by an index has read a leaf of entries whose rows are not read.
    pub(crate) fn walked_entries(&mut self, index: Oid, begins: bool, entries: u64) {
        self.examined += entries;
        let used = self.at(index);
        used.lookups += u64::from(begins);
        used.lookup_rows += entries;
        used.leaves += u64::from(begins || entries > 0);
    }

    /// A row was inserted.
    pub(crate) fn inserted(&mut self, table: Oid) {
        self.inserted += 1;
        let used = self.at(table);
        used.inserted += 1;
        used.live += 1;
        used.leaves += 1;
    }

    /// A row was updated.
    pub(crate) fn updated(&mut self, table: Oid, in_place: bool) {
        let used = self.at(table);
        used.updated += 1;
        used.in_place += u64::from(in_place);
        used.leaves += 1;
    }

    /// A row was deleted.
    pub(crate) fn deleted(&mut self, table: Oid) {
        let used = self.at(table);
        used.deleted += 1;
        used.live -= 1;
        used.leaves += 1;
    }

    /// How many rows statements have looked at so far, how many walks over whole tables they have made, how many of the rows were
    /// looked at for a condition ([`TableScan::seeks`](super::scan::TableScan::seeks)), and how many rows they have inserted.
    #[inline]
    pub fn examined(&self) -> [u64; 4] {
        [self.examined, self.full_scans, self.filtered, self.inserted]
    }

    /// A walk that seeks rows of a condition has looked at some.
    pub(crate) fn sought(&mut self, rows: u64) {
        self.filtered += rows;
    }

    /// What the open transaction has done, by table and index.
    pub fn open(&self) -> &[(Oid, Use)] {
        &self.of
    }

    /// Whether it is time to add to the totals in the middle of a transaction.
    pub(crate) fn is_full(&self) -> bool {
        self.of.len() > HELD_MAX
    }
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It goes on: it has used many tables.
    Not,
    /// With COMMIT.
    Committed,
    /// With ROLLBACK.
    RolledBack,
}

#[derive(Debug, Default)]
struct Shard {
    of: HashMap<Oid, Use, RandomState>,
    databases: HashMap<Oid, DatabaseUse, RandomState>,
}

/// How all tables and indexes have been used since the counts began.
#[derive(Debug)]
pub struct Usage {
    shards: [Mutex<Shard>; SHARDS],
}

impl Default for Usage {
    fn default() -> Self {
        Usage { shards: std::array::from_fn(|_| Mutex::new("engine/usage", Shard::default())) }
    }
}

impl Usage {
    /// Adds what a session has done.
    pub(crate) fn add(
        &self,
        used: &mut Used,
        database: Oid,
        ended: Ended,
        catalog: impl FnOnce() -> std::sync::Arc<Catalog>,
    ) {
        let mut shard = self.shards[thread_number() % SHARDS].lock();
        let shard = &mut *shard;
        if shard.of.len() + used.of.len() > ENTRIES_MAX {
            let catalog = catalog();
            shard.of.retain(|oid, _| catalog.get(*oid).is_some()); // USE-1
        }
        let total = shard.databases.entry(database).or_default();
        match ended {
            Ended::Not => {}
            Ended::Committed => total.commits += 1,
            Ended::RolledBack => total.rollbacks += 1,
        }
        for (oid, mut more) in used.of.drain(..) {
            if ended == Ended::RolledBack {
                more.live = 0;
            }
            total.all.add(&more);
            if let Some(sum) = shard.of.get_mut(&oid) {
                sum.add(&more);
            } else if shard.of.len() < ENTRIES_MAX {
                shard.of.insert(oid, more);
            }
        }
        used.last = 0;
    }

    /// How each table and index was used.
    pub fn all(&self) -> HashMap<Oid, Use> {
        let mut all: HashMap<Oid, Use> = HashMap::new();
        for shard in &self.shards {
            shard.lock().of.iter().for_each(|(oid, more)| all.entry(*oid).or_default().add(more));
        }
        all
    }

    /// How one table or index was used.
    pub fn of(&self, oid: Oid) -> Use {
        let mut sum = Use::default();
        self.shards.iter().for_each(|shard| shard.lock().of.get(&oid).into_iter().for_each(|more| sum.add(more)));
        sum
    }

    /// What was done in each database.
    pub fn databases(&self) -> HashMap<Oid, DatabaseUse> {
        let mut all: HashMap<Oid, DatabaseUse> = HashMap::new();
        for shard in &self.shards {
            for (oid, more) in &shard.lock().databases {
                let sum = all.entry(*oid).or_default();
                sum.commits += more.commits;
                sum.rollbacks += more.rollbacks;
                sum.all.add(&more.all);
            }
        }
        all
    }

    /// Counts a database's transactions from nothing again, and the tables and indexes that `is_its` names.
    pub fn reset(&self, database: Oid, is_its: impl Fn(Oid) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.databases.remove(&database);
            shard.of.iter_mut().filter(|(oid, _)| is_its(**oid)).for_each(|(_, used)| used.reset());
        }
    }

    /// Counts a table or index from nothing again.
    pub fn reset_one(&self, oid: Oid) {
        for shard in &self.shards {
            shard.lock().of.get_mut(&oid).into_iter().for_each(Use::reset);
        }
    }

    /// The totals as text, to be kept: a line for each table or index, and for each database.
    pub fn saved(&self) -> String {
        let line = |kind: &str, oid: Oid, more: [u64; 2], u: &Use| {
            let counts = [
                u.whole,
                u.whole_rows,
                u.lookups,
                u.lookup_rows,
                u.fetched,
                u.inserted,
                u.updated,
                u.in_place,
                u.deleted,
                u.leaves,
            ];
            let counts = more.iter().chain(&counts).map(u64::to_string).collect::<Vec<_>>().join(" ");
            format!("{kind} {oid} {counts} {}\n", u.live)
        };
        let databases = self.databases().into_iter().map(|(oid, d)| line("d", oid, [d.commits, d.rollbacks], &d.all));
        databases.chain(self.all().into_iter().map(|(oid, u)| line("r", oid, [0, 0], &u))).collect()
    }

    /// Takes in what an earlier run has left. A line that does not read well is left out.
    pub fn restore(&self, text: &str) {
        let mut shard = self.shards[0].lock();
        for line in text.lines() {
            let mut fields = line.split(' ');
            let (kind, numbers) = (fields.next(), fields.map(|field| field.parse::<i64>().unwrap_or(-1)));
            let numbers: Vec<i64> = numbers.collect();
            let Ok([oid, commits, rollbacks, counts @ .., live]) = <[i64; 14]>::try_from(numbers) else { continue };
            let Ok(oid) = Oid::try_from(oid) else { continue };
            let [whole, whole_rows, lookups, lookup_rows, fetched, inserted, updated, in_place, deleted, leaves] =
                counts.map(|n| n.max(0) as u64);
            let read = Use {
                whole,
                whole_rows,
                lookups,
                lookup_rows,
                fetched,
                inserted,
                updated,
                in_place,
                deleted,
                leaves,
                live,
            };
            match kind {
                Some("d") => {
                    let total = shard.databases.entry(oid).or_default();
                    total.commits += commits.max(0) as u64;
                    total.rollbacks += rollbacks.max(0) as u64;
                    total.all.add(&read);
                }
                Some("r") if shard.of.len() < ENTRIES_MAX => shard.of.entry(oid).or_default().add(&read),
                _ => {}
            }
        }
    }
}

impl Use {
    /// Everything but the rows that are there.
    fn reset(&mut self) {
        *self = Use { live: self.live, ..Use::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_catalog() -> std::sync::Arc<Catalog> {
        std::sync::Arc::default()
    }

    #[test]
    fn what_a_session_does_is_added_when_its_transaction_ends() {
        let (usage, mut used) = (Usage::default(), Used::default());
        used.looked_up(7, true);
        used.looked_up(7, false);
        used.walked(8, true, true, 100);
        used.walked(8, false, true, 20);
        used.walked_index(8, 9, true, true);
        used.walked_index(8, 9, false, false);
        (0..5).for_each(|_| used.inserted(8));
        used.deleted(8);
        assert_eq!(used.examined()[..3], [122, 1, 0]);
        used.sought(7);
        assert_eq!(used.examined()[..3], [122, 1, 7]);
        assert!(usage.all().is_empty());
        usage.add(&mut used, 5, Ended::Committed, no_catalog);
        assert!(used.open().is_empty());
        let all = usage.all();
        assert_eq!(all[&7], Use { lookups: 2, lookup_rows: 1, leaves: 2, ..Use::default() });
        let table = Use {
            whole: 1,
            whole_rows: 120,
            fetched: 1,
            inserted: 5,
            deleted: 1,
            leaves: 9,
            live: 4,
            ..Use::default()
        };
        assert_eq!(all[&8], table);
        assert_eq!(all[&9], Use { lookups: 1, lookup_rows: 1, leaves: 1, ..Use::default() });
        used.inserted(8);
        usage.add(&mut used, 5, Ended::RolledBack, no_catalog);
        let (all, of) = (usage.all(), usage.databases()[&5]);
        assert_eq!(
            (all[&8].inserted, all[&8].live),
            (6, 4),
            "rows of a transaction that was rolled back are not there"
        );
        assert_eq!((of.commits, of.rollbacks, of.all.inserted), (1, 1, 6));
        usage.reset(5, |oid| oid == 8);
        assert_eq!(usage.all()[&8], Use { live: 4, ..Use::default() });
        assert_eq!(usage.all()[&7].lookups, 2);
    }

    #[test]
    fn what_is_saved_is_restored() {
        let (usage, mut used) = (Usage::default(), Used::default());
        used.looked_up(7, true);
        used.deleted(7);
        usage.add(&mut used, 5, Ended::Committed, no_catalog);
        let again = Usage::default();
        again.restore(&format!("nonsense\nr 1 2\n{}", usage.saved()));
        assert_eq!((again.all(), again.databases()), (usage.all(), usage.databases()));
    }

    /// USE-1
    #[test]
    fn tables_without_number_are_bounded() {
        let (usage, mut used) = (Usage::default(), Used::default());
        for oid in 0..3 * ENTRIES_MAX as Oid {
            used.looked_up(oid, true);
            usage.add(&mut used, 5, Ended::Committed, no_catalog);
        }
        assert!(usage.all().len() <= ENTRIES_MAX);
        assert_eq!(usage.databases()[&5].all.lookups, 3 * ENTRIES_MAX as u64);
    }
}
