//! Deferred constraint checks of the open transaction, and what SET CONSTRAINTS has set.
//!
//! # Invariants
//! - DFR-1: a transaction commits only after every check that it deferred has been run and has passed. A rollback to a savepoint drops
//!   the checks that were deferred after that savepoint, and the checks that were run after it are to be run again. A check finds its
//!   constraint by name: a constraint with a check to be run is not renamed.
//! - DFR-2: of the open transactions that have put one key under a deferred unique constraint, the one that did so first holds the lock on
//!   the key, so it is never the one whose check waits for the others (`exec/deferred`, tests/isolation/specs/unique_deferred_order.spec).
//! - DFR-3: what SET CONSTRAINTS has said ends with the transaction, also in a session that has put no check off.

use std::collections::HashMap;

use clearway_base::memory::{Held, Kind};
use clearway_engine::catalog::Oid;

use clearway_syntax::error::Result;
use clearway_values::types::Datum;

/// When a constraint may be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// It may be put off.
    pub deferrable: bool,
    /// It is put off if SET CONSTRAINTS says nothing else.
    pub deferred: bool,
}

/// A check that was put off.
#[derive(Clone, Debug)]
pub enum Check {
    /// A row of a table refers to another by the foreign key of this name.
    Refers(Oid, String, Vec<Datum>),
    /// A row of a table, to which that foreign key of `child` may refer, was deleted or has another key.
    Taken {
        /// The table.
        table: Oid,
        /// The referring table.
        child: Oid,
        /// Its foreign key.
        name: String,
        /// The row as it was.
        old: Vec<Datum>,
    },
    /// A row has come to a table whose unique constraint has this name.
    Unique(Oid, String, Vec<Datum>),
}

impl Check {
    /// The table whose row was changed.
    pub fn table(&self) -> Oid {
        match self {
            Check::Refers(table, ..) | Check::Unique(table, ..) | Check::Taken { table, .. } => *table,
        }
    }

    /// The table and the name of the constraint.
    pub fn constraint(&self) -> (Oid, &str) {
        match self {
            Check::Refers(table, name, _) | Check::Unique(table, name, _) => (*table, name),
            Check::Taken { child, name, .. } => (*child, name),
        }
    }
}

/// What SET CONSTRAINTS has said: of all, and of some by table and name.
#[derive(Clone, Debug, Default)]
struct ConstraintModes {
    all: Option<bool>,
    of: HashMap<(Oid, String), bool>,
}

/// The checks that a transaction has put off.
#[derive(Debug, Default)]
pub struct Deferred {
    /// In the order in which they were deferred; those that have been made stay, since a rollback to a savepoint may take back what made
    /// them hold.
    checks: Vec<Check>,
    is_made: Vec<bool>,
    /// The places of the checks that have been made, in the order in which they were.
    made: Vec<usize>,
    said: ConstraintModes,
    held: Option<Held>,
}

/// A point in a transaction.
#[derive(Clone, Debug, Default)]
pub struct DeferredMark {
    checks: usize,
    made: usize,
    said: ConstraintModes,
}

impl Deferred {
    /// Whether no check is left to be made.
    pub fn is_empty(&self) -> bool {
        self.made.len() == self.checks.len()
    }

    /// Whether a check is left to be made that `wanted` names.
    pub fn any(&self, wanted: impl Fn(&Check) -> bool) -> bool {
        self.checks.iter().zip(&self.is_made).any(|(check, is_made)| !is_made && wanted(check))
    }

    /// Whether a constraint is checked at the end of the transaction now.
    pub fn is_deferred(&self, table: Oid, name: &str, timing: Timing) -> bool {
        if !timing.deferrable {
            return false;
        }
        let said = self.said.of.get(&(table, name.to_owned())).copied();
        said.or(self.said.all).unwrap_or(timing.deferred)
    }

    /// Puts a check off.
    ///
    /// # Errors
    /// 53200 if the checks take too much memory.
    pub fn put(&mut self, check: Check) -> Result<()> {
        let held = self.held.get_or_insert_with(|| Held::new(Kind::ForeignKeys));
        held.resume();
        self.checks.push(check);
        self.is_made.push(false);
        Ok(held.grow()?)
    }

    /// The checks that `wanted` names and that have not been made: the caller makes them now (DFR-1).
    pub fn take(&mut self, wanted: impl Fn(&Check) -> bool) -> Vec<Check> {
        let mut taken = Vec::new();
        for (at, check) in self.checks.iter().enumerate() {
            if !self.is_made[at] && wanted(check) {
                self.is_made[at] = true;
                self.made.push(at);
                taken.push(check.clone());
            }
        }
        taken
    }

    /// SET CONSTRAINTS; none: of all.
    pub fn set(&mut self, constraints: Option<&[(Oid, String)]>, deferred: bool) {
        match constraints {
            None => self.said = ConstraintModes { all: Some(deferred), of: HashMap::new() },
            Some(list) => self.said.of.extend(list.iter().cloned().map(|constraint| (constraint, deferred))),
        }
    }

    /// A mark at the transaction's present point.
    pub fn mark(&self) -> DeferredMark {
        DeferredMark { checks: self.checks.len(), made: self.made.len(), said: self.said.clone() }
    }

    /// DFR-1
    pub fn roll_back_to(&mut self, mark: &DeferredMark) {
        for at in self.made.drain(mark.made.min(self.made.len())..) {
            self.is_made[at] = false;
        }
        self.checks.truncate(mark.checks);
        self.is_made.truncate(mark.checks);
        self.said = mark.said.clone();
    }

    /// The transaction has ended.
    pub fn clear(&mut self) {
        *self = Deferred::default();
    }
}
