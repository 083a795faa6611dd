//! How tables and indexes are used: scans, rows read and changed, leaves visited; and transactions by database.
//!
//! # Structure
//! A session counts in memory of its own ([`Used`]) and adds that to its tally ([`UseTally`]) when its transaction ends, without a lock. A tally
//! has places for a few tables and indexes; what finds none, and what a session that ends leaves, goes to a shard. A thread adds only to the
//! shard of its own number, so two workers do not wait for each other. A reader adds up the shards and the tallies. A scan counts a leaf at a
//! time, so a scan that stops early also counts the rest of its leaf.
//!
//! # Invariants
//! - USE-1: a shard has at most [`ENTRIES_MAX`] tables and indexes, and those that a reset found in tallies. When it is full, those that were
//!   dropped are removed; a table or index for which there is still no place is not counted.
//!
//! # Not here
//! Pages read from disk: the page cache counts them by tree.

use std::collections::HashMap;
use std::sync::Arc;

use clearway_base::sync::{Mutex, MutexGuard, thread_number};
use foldhash::fast::RandomState;

pub(crate) use super::use_tally::Ended;
use super::use_tally::UseTally;
pub use super::use_tally::{DatabaseUse, Use};
use crate::catalog::{Catalog, Oid};

const SHARDS: usize = 16;
/// Tables and indexes that a shard counts.
pub const ENTRIES_MAX: usize = 16_384;
/// Tables and indexes that a session counts before it adds them to a shard.
const HELD_MAX: usize = 64;

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

    /// Other threads have read rows of so many leaves; `begins`: they are the first of a walk.
    pub(crate) fn walked_apart(&mut self, table: Oid, (begins, whole): (bool, bool), rows: u64, leaves: u64) {
        self.walked(table, begins, whole, rows);
        self.at(table).leaves += leaves.saturating_sub(u64::from(rows > 0));
    }

    /// A walk that has read so many leaves has ended.
    pub(crate) fn walked_few(&mut self, table: Oid, whole: bool, rows: u64, leaves: u64) {
        self.walked(table, true, whole, rows);
        self.at(table).leaves += leaves.saturating_sub(1);
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

    /// A walk by an index has ended: it has looked so many rows up one by one.
    pub(crate) fn looked_up_by_index(&mut self, table: Oid, index: Oid, rows: u64) {
        self.examined += rows;
        let used = self.at(index);
        used.lookups += 1;
        used.lookup_rows += rows;
        used.leaves += 1;
        if rows > 0 {
            let used = self.at(table);
            used.fetched += rows;
            used.leaves += rows;
        }
    }

    /// A walk by an index has read the rows of several entries from so many leaves of the table.
    pub(crate) fn fetched_by_index(&mut self, (table, index): (Oid, Oid), begins: bool, (rows, leaves): (u64, u64)) {
        self.walked_index(table, index, begins, rows > 0);
        let more = rows.saturating_sub(1);
        self.examined += more;
        self.at(index).lookup_rows += more;
        let used = self.at(table);
        used.fetched += more;
        used.leaves += leaves.saturating_sub(1);
    }

    /// A walk by an index has gone on with so many other ranges.
    pub(crate) fn went_on(&mut self, index: Oid, ranges: u64) {
        if ranges > 0 {
            let used = self.at(index);
            used.lookups += ranges;
            used.leaves += ranges;
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
        self.inserted_many(table, 1);
    }

    /// So many rows were inserted.
    pub(crate) fn inserted_many(&mut self, table: Oid, rows: u32) {
        self.inserted += u64::from(rows);
        let used = self.at(table);
        used.inserted += u64::from(rows);
        used.live += i64::from(rows);
        used.leaves += u64::from(rows);
    }

    /// A row was updated.
    pub(crate) fn updated(&mut self, table: Oid, in_place: bool) {
        let used = self.at(table);
        used.updated += 1;
        used.in_place += u64::from(in_place);
        used.leaves += 1;
    }

    /// So many rows were deleted.
    pub(crate) fn deleted(&mut self, table: Oid, rows: u64) {
        let used = self.at(table);
        used.deleted += rows;
        used.live -= rows as i64;
        used.leaves += rows;
    }

    /// How many rows statements have looked at so far, how many walks over whole tables they have made, how many of the rows were
    /// looked at for a condition ([`TableScan::seeks`](super::scan::TableScan::seeks)), and how many rows they have inserted.
    #[inline]
    pub fn examined(&self) -> [u64; 4] {
        [self.examined, self.full_scans, self.filtered, self.inserted]
    }

    /// The first of these.
    #[inline]
    pub fn rows_examined(&self) -> u64 {
        self.examined
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

#[derive(Debug, Default)]
struct Shard {
    of: HashMap<Oid, Use, RandomState>,
    databases: HashMap<Oid, DatabaseUse, RandomState>,
}

impl Shard {
    fn add(&mut self, oid: Oid, more: &Use) {
        if let Some(sum) = self.of.get_mut(&oid) {
            sum.add(more);
        } else if self.of.len() < ENTRIES_MAX {
            self.of.insert(oid, *more);
        }
    }

    /// Subtracts all but the rows that are there (UTL-3).
    fn take_off(&mut self, oid: Oid, held: Use) {
        self.of.entry(oid).or_default().subtract(&Use { live: 0, ..held });
    }

    /// USE-1
    fn make_room(&mut self, more: usize, catalog: impl FnOnce() -> Arc<Catalog>) {
        if self.of.len() + more > ENTRIES_MAX {
            let catalog = catalog();
            self.of.retain(|oid, _| catalog.get(*oid).is_some());
        }
    }
}

/// How all tables and indexes have been used since the counts began.
#[derive(Debug)]
pub struct Usage {
    /// The tallies of the sessions that are open.
    tallies: Mutex<Vec<Arc<UseTally>>>,
    shards: [Mutex<Shard>; SHARDS],
}

impl Default for Usage {
    fn default() -> Self {
        Usage {
            tallies: Mutex::new("engine/use_tallies", Vec::new()),
            shards: std::array::from_fn(|_| Mutex::new("engine/usage", Shard::default())),
        }
    }
}

impl Usage {
    /// The tally of a session that begins.
    pub(crate) fn tally(&self, database: Oid) -> Arc<UseTally> {
        let tally = Arc::new(UseTally::new(database));
        self.tallies.lock().push(tally.clone());
        tally
    }

    /// The session of a tally has ended.
    pub(crate) fn leave(&self, tally: &Arc<UseTally>, catalog: impl FnOnce() -> Arc<Catalog>) {
        let mut tallies = self.tallies.lock();
        self.empty(&tallies, tally, catalog);
        if let Some(place) = tallies.iter().position(|listed| Arc::ptr_eq(listed, tally)) {
            tallies.swap_remove(place);
        }
    }

    fn shard(&self) -> MutexGuard<'_, Shard> {
        self.shards[thread_number() % SHARDS].lock()
    }

    /// Adds what a session has done.
    #[inline]
    pub(crate) fn add(&self, used: &mut Used, tally: &Arc<UseTally>, ended: Ended, catalog: impl Fn() -> Arc<Catalog>) {
        tally.ended(ended);
        if ended == Ended::RolledBack {
            used.of.iter_mut().for_each(|(_, more)| more.live = 0);
        }
        match used.of.as_slice() {
            // Most transactions use one table.
            [(oid, more)] => {
                if tally.add(*oid, more) {
                    used.of.clear();
                }
            }
            _ => used.of.retain(|(oid, more)| !tally.add(*oid, more)),
        }
        if !used.of.is_empty() {
            self.add_shared(used, tally, catalog);
        }
        used.last = 0;
    }

    /// Adds to a shard what finds no place in the session's tally.
    #[cold]
    fn add_shared(&self, used: &mut Used, tally: &Arc<UseTally>, catalog: impl Fn() -> Arc<Catalog>) {
        {
            let mut shard = self.shard();
            let shard = &mut *shard;
            shard.make_room(used.of.len(), &catalog);
            let total = shard.databases.entry(tally.database()).or_default();
            used.of.iter().for_each(|(_, more)| total.all.add(more));
            used.of.drain(..).for_each(|(oid, more)| shard.add(oid, &more));
        }
        if tally.is_outdated() {
            self.empty(&self.tallies.lock(), tally, catalog);
        }
    }

    /// Moves what a tally holds to a shard; only by the tally's session (UTL-2: under the mutex of the list).
    fn empty(
        &self,
        _list: &MutexGuard<'_, Vec<Arc<UseTally>>>,
        tally: &UseTally,
        catalog: impl FnOnce() -> Arc<Catalog>,
    ) {
        let mut shard = self.shard();
        let (sum, uses) = tally.take();
        shard.databases.entry(tally.database()).or_default().add(&sum);
        shard.make_room(uses.len(), catalog);
        uses.iter().for_each(|(oid, more)| shard.add(*oid, more));
    }

    /// How each table and index was used.
    pub fn all(&self) -> HashMap<Oid, Use> {
        let mut all: HashMap<Oid, Use> = HashMap::new();
        let tallies = self.tallies.lock(); // UTL-2
        for shard in &self.shards {
            shard.lock().of.iter().for_each(|(oid, more)| all.entry(*oid).or_default().add(more));
        }
        for (oid, more) in tallies.iter().flat_map(|tally| tally.uses()) {
            all.entry(oid).or_default().add(&more);
        }
        all
    }

    /// The same of these tables and indexes alone.
    pub fn of_these(&self, oids: &[Oid]) -> HashMap<Oid, Use> {
        let mut these: HashMap<Oid, Use> = oids.iter().map(|oid| (*oid, Use::default())).collect();
        let tallies = self.tallies.lock(); // UTL-2
        for shard in &self.shards {
            let shard = shard.lock();
            these.iter_mut().for_each(|(oid, sum)| shard.of.get(oid).into_iter().for_each(|more| sum.add(more)));
        }
        tallies.iter().for_each(|tally| tally.add_to(&mut these));
        these
    }

    /// How one table or index was used.
    pub fn of(&self, oid: Oid) -> Use {
        let mut sum = Use::default();
        let tallies = self.tallies.lock(); // UTL-2
        self.shards.iter().for_each(|shard| shard.lock().of.get(&oid).into_iter().for_each(|more| sum.add(more)));
        tallies.iter().for_each(|tally| sum.add(&tally.of(oid)));
        sum
    }

    /// What was done in each database.
    pub fn databases(&self) -> HashMap<Oid, DatabaseUse> {
        let mut all: HashMap<Oid, DatabaseUse> = HashMap::new();
        let tallies = self.tallies.lock(); // UTL-2
        for shard in &self.shards {
            shard.lock().databases.iter().for_each(|(oid, more)| all.entry(*oid).or_default().add(more));
        }
        tallies.iter().for_each(|tally| all.entry(tally.database()).or_default().add(&tally.sum()));
        all
    }

    /// Counts a database's transactions from nothing again, and the tables and indexes that `is_its` names.
    pub fn reset(&self, database: Oid, is_its: impl Fn(Oid) -> bool) {
        let tallies = self.tallies.lock();
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.databases.remove(&database);
            shard.of.iter_mut().filter(|(oid, _)| is_its(**oid)).for_each(|(_, used)| used.reset());
        }
        let mut shard = self.shards[0].lock();
        for tally in tallies.iter() {
            // UTL-3
            if tally.database() == database {
                shard.databases.entry(database).or_default().subtract(&tally.sum());
            }
            tally.uses().filter(|(oid, _)| is_its(*oid)).for_each(|(oid, held)| shard.take_off(oid, held));
        }
    }

    /// Counts a table or index from nothing again.
    pub fn reset_one(&self, oid: Oid) {
        let tallies = self.tallies.lock();
        for shard in &self.shards {
            shard.lock().of.get_mut(&oid).into_iter().for_each(Use::reset);
        }
        let mut shard = self.shards[0].lock();
        let held = tallies.iter().flat_map(|tally| tally.uses()).filter(|(taken, _)| *taken == oid);
        held.for_each(|(_, held)| shard.take_off(oid, held)); // UTL-3
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
            let Ok([oid, commits, rollbacks, counts @ ..]) = <[i64; 14]>::try_from(numbers) else { continue };
            let Ok(oid) = Oid::try_from(oid) else { continue };
            let [.., live] = counts;
            let read = Use { live, ..Use::of_counts(counts.map(|n| n.max(0) as u64)) };
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

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
