//! What the transactions of one session have done with tables and indexes: the session adds without a lock, and any thread may read.
//!
//! # Invariants
//! - UTL-1: only its session adds to a tally, and one thread at a time has the session. So a load followed by a store is a correct addition.
//! - UTL-2: counts move from a tally to a shard of [`Usage`](super::usage::Usage) only under the mutex of the list of tallies. A reader adds up
//!   tallies and shards under the same mutex, so it finds each count once.
//! - UTL-3: a reset does not write to a tally. It subtracts what the tally holds from a shard; sums are taken modulo 2^64.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::catalog::Oid;

/// Tables and indexes that a tally counts.
const PLACES: usize = 8;
/// After so many tables that found no place the tally is emptied, so that those take the places that the session uses now.
const REFUSED_MAX: u32 = 1_000;

/// Figures of a [`Use`].
const COUNTS: usize = 11;

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
        let mut counts = self.counts();
        counts.iter_mut().zip(more.counts()).for_each(|(count, more)| *count = count.wrapping_add(more));
        *self = Use::of_counts(counts);
    }

    /// Subtracts another's figures (UTL-3).
    pub(super) fn subtract(&mut self, less: &Use) {
        let mut counts = self.counts();
        counts.iter_mut().zip(less.counts()).for_each(|(count, less)| *count = count.wrapping_sub(less));
        *self = Use::of_counts(counts);
    }

    /// All figures, in their order.
    #[inline]
    fn counts(&self) -> [u64; COUNTS] {
        [
            self.whole,
            self.whole_rows,
            self.lookups,
            self.lookup_rows,
            self.fetched,
            self.inserted,
            self.updated,
            self.in_place,
            self.deleted,
            self.leaves,
            self.live.cast_unsigned(),
        ]
    }

    /// The same, back.
    pub(super) fn of_counts(counts: [u64; COUNTS]) -> Use {
        let [whole, whole_rows, lookups, lookup_rows, fetched, inserted, updated, in_place, deleted, leaves, live] =
            counts;
        Use {
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
            live: live.cast_signed(),
        }
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

impl Use {
    /// Everything but the rows that are there.
    pub(super) fn reset(&mut self) {
        *self = Use { live: self.live, ..Use::default() };
    }
}

impl DatabaseUse {
    pub(super) fn add(&mut self, more: &DatabaseUse) {
        self.commits = self.commits.wrapping_add(more.commits);
        self.rollbacks = self.rollbacks.wrapping_add(more.rollbacks);
        self.all.add(&more.all);
    }

    pub(super) fn subtract(&mut self, less: &DatabaseUse) {
        self.commits = self.commits.wrapping_sub(less.commits);
        self.rollbacks = self.rollbacks.wrapping_sub(less.rollbacks);
        self.all.subtract(&less.all);
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

/// A counter with one writer (UTL-1).
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    #[inline]
    fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}

/// The counts of one table or index; the place is free where the number is 0.
#[derive(Debug, Default)]
struct Place {
    oid: AtomicU32,
    counts: [Count; COUNTS],
}

/// What one session has done.
#[derive(Debug, Default)]
pub(crate) struct UseTally {
    database: Oid,
    commits: Count,
    rollbacks: Count,
    /// Tables that found no place since the tally was emptied.
    refused: AtomicU32,
    places: [Place; PLACES],
}

impl UseTally {
    /// Of a session in this database.
    pub fn new(database: Oid) -> UseTally {
        UseTally { database, ..UseTally::default() }
    }

    /// The session's database.
    pub fn database(&self) -> Oid {
        self.database
    }

    /// A transaction has ended.
    #[inline]
    pub fn ended(&self, how: Ended) {
        match how {
            Ended::Not => {}
            Ended::Committed => self.commits.add(1),
            Ended::RolledBack => self.rollbacks.add(1),
        }
    }

    /// Adds what a transaction has done; false: there is no place for this table or index.
    #[inline]
    pub fn add(&self, oid: Oid, more: &Use) -> bool {
        let place = self.places.iter().find(|place| {
            let taken = place.oid.load(Relaxed);
            taken == oid || taken == 0
        });
        let Some(place) = place else {
            self.refused.store(self.refused.load(Relaxed) + 1, Relaxed);
            return false;
        };
        place.oid.store(oid, Relaxed);
        // UTL-1
        place.counts.iter().zip(&more.counts()).for_each(|(count, more)| count.add(*more));
        true
    }

    /// Whether it is to be emptied, so that other tables find a place.
    #[inline]
    pub fn is_outdated(&self) -> bool {
        self.refused.load(Relaxed) >= REFUSED_MAX
    }

    /// What it holds, by table and index.
    pub fn uses(&self) -> impl Iterator<Item = (Oid, Use)> {
        let taken = self.places.iter().map(|place| (place.oid.load(Relaxed), place)).filter(|(oid, _)| *oid != 0);
        taken.map(|(oid, place)| (oid, Use::of_counts(std::array::from_fn(|i| place.counts[i].get()))))
    }

    /// What it holds of one table or index.
    pub fn of(&self, oid: Oid) -> Use {
        self.uses().find(|(taken, _)| *taken == oid).map_or_else(Use::default, |(_, held)| held)
    }

    /// Adds what it holds to those of these tables and indexes that it counts.
    pub fn add_to(&self, these: &mut HashMap<Oid, Use>) {
        let taken = self.places.iter().map(|place| (place.oid.load(Relaxed), place)).filter(|(oid, _)| *oid != 0);
        for (oid, place) in taken {
            if let Some(sum) = these.get_mut(&oid) {
                sum.add(&Use::of_counts(std::array::from_fn(|i| place.counts[i].get())));
            }
        }
    }

    /// All that it holds.
    pub fn sum(&self) -> DatabaseUse {
        let mut sum =
            DatabaseUse { commits: self.commits.get(), rollbacks: self.rollbacks.get(), ..DatabaseUse::default() };
        self.uses().for_each(|(_, held)| sum.all.add(&held));
        sum
    }

    /// Takes all that it holds; only by its session, under the mutex of the list (UTL-1, UTL-2).
    pub fn take(&self) -> (DatabaseUse, Vec<(Oid, Use)>) {
        let (sum, uses) = (self.sum(), self.uses().collect());
        self.commits.clear();
        self.rollbacks.clear();
        for place in &self.places {
            place.oid.store(0, Relaxed);
            place.counts.iter().for_each(Count::clear);
        }
        self.refused.store(0, Relaxed);
        (sum, uses)
    }
}
