//! Locks rows, and reads the newest version of a row that has changed since it was read (EXE-2).
//!
//! # Invariants
//! - EXE-30: under read committed SKIP LOCKED passes over a row that the lock table gives to another transaction without a look at its page: a request takes twenty times as long, and a claim
//!   makes one for each job that others have. A transaction that keeps its snapshot asks, since a replaced row is a failure for it, whether it is locked or not.

use super::convert::read_row;
use super::{Cx, Row};
use clearway_context::errors::{concurrent, from_engine, is_lock_not_available, not_locked};
use clearway_context::obstacle;
use clearway_engine::session::{Isolation, Locked};
use clearway_planner::plan::{Select, TableSlot};
use clearway_syntax::ast::{LockStrength, LockWait};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::{IfTaken, LockMode, LockTag};
use clearway_values::types::Datum;
use std::sync::Arc;

/// The lock mode of a FOR clause.
pub fn mode_of(strength: LockStrength) -> LockMode {
    match strength {
        LockStrength::KeyShare => LockMode::RowKeyShare,
        LockStrength::Share => LockMode::RowForShare,
        LockStrength::NoKeyUpdate => LockMode::RowNoKeyUpdate,
        LockStrength::Update => LockMode::RowUpdate,
    }
}

/// What became of a row that was to be locked.
pub enum Newest {
    /// It is as it was read.
    Unchanged,
    /// It has another version; the row's slots hold it now.
    Changed,
    /// It was deleted, or it is locked and was to be skipped.
    Skipped,
    /// This very statement has changed it.
    Own,
}

/// The bytes of a key slot.
///
/// # Errors
/// 40001 for a row that has ended (EXE-22).
pub fn key_of(row: &[Datum], table: &TableSlot) -> Result<std::sync::Arc<[u8]>> {
    key_within(row, table).cloned()
}

/// The same where it stands.
pub fn key_within<'r>(row: &'r [Datum], table: &TableSlot) -> Result<&'r std::sync::Arc<[u8]>> {
    match row.get(table.key_slot()) {
        Some(Datum::Bytea(key)) => Ok(key),
        Some(Datum::Bool(deleted)) => Err(concurrent(*deleted)),
        _ => Err(SqlError::internal("a row without its key (PLN-1)")),
    }
}

impl Cx<'_> {
    /// Locks the rows that a FOR clause names; false if the row is not to be given. `row` is brought up to date.
    pub async fn lock_rows(self, select: &Select, row: &mut Row) -> Result<bool> {
        let mut changed = false;
        // Only a condition with a subquery asks for the row as it was read.
        let old = select.recheck.as_ref().filter(|e| e.may_wait()).map(|_| row.clone());
        for lock in &select.locks {
            if row.get(lock.table.key_slot()).is_none_or(Datum::is_null) {
                // The null side of an outer join.
                continue;
            }
            let locked = self.lock_newest(&lock.table, mode_of(lock.strength), lock.wait, row).await;
            match locked.map_err(not_locked)? {
                Newest::Unchanged => {}
                Newest::Changed => changed = true,
                Newest::Skipped | Newest::Own => return Ok(false),
            }
        }
        if changed {
            self.leave_outer(select, row).await?;
        }
        match old {
            _ if !changed => Ok(true),
            Some(old) => self.holds_again(select.recheck.as_ref(), &old, row).await,
            None => self.holds(select.recheck.as_ref(), row).await,
        }
    }

    /// Locks the row that the statement read and puts its newest version into the table's slots, wherever the row is by now.
    pub async fn lock_newest(self, table: &TableSlot, mode: LockMode, wait: LockWait, row: &mut Row) -> Result<Newest> {
        let key = key_of(row, table)?;
        let if_taken = if wait == LockWait::Wait { IfTaken::Wait } else { IfTaken::Fail };
        // EXE-30
        let skips = wait == LockWait::SkipLocked && self.run.isolation == Isolation::ReadCommitted;
        if skips && self.run.core.engine.take().is_taken(&table.shape, &key, mode) {
            return Ok(Newest::Skipped);
        }
        let found = {
            let mut session = self.run.core.engine.take();
            self.run.core.writes_row(table.shape.oid, &key);
            let lock = session.follow_row(&table.shape, &self.run.view, &key, mode, if_taken);
            self.run.core.lock_wait(std::pin::pin!(lock)).await
        };
        let (moved, locked) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return self.gone(),
            Err(e) if is_lock_not_available(&e) && wait == LockWait::SkipLocked => return Ok(Newest::Skipped),
            Err(e) if is_lock_not_available(&e) && wait == LockWait::NoWait => {
                let message = format!("could not obtain lock on row in relation \"{}\"", table.shape.name);
                let tag = LockTag::Row { tree: table.shape.tree, key: Arc::from(&key[..]) };
                return Err(obstacle::refused(self.run.core, SqlError::new("55P03", message), &tag, mode));
            }
            Err(e) => return Err(from_engine(e)),
        };
        let Locked { row: values, ghost, commit, mine, key_changed, .. } = locked;
        // A change of this very statement is none that it has to see.
        if mine.is_some_and(|at| at >= self.run.view.mark) {
            return Ok(Newest::Own);
        }
        if ghost {
            return if mine.is_some() { Ok(Newest::Skipped) } else { self.gone() };
        }
        let newer = commit > self.run.view.read_lsn;
        if moved.is_none() && (!newer || mode == LockMode::RowKeyShare && !key_changed) {
            // What KEY SHARE protects is as it was read: the version that was read stays the statement's, as in PostgreSQL.
            return Ok(Newest::Unchanged);
        }
        if newer && self.run.isolation == Isolation::RepeatableRead {
            return Err(concurrent(false));
        }
        let mut fresh = Row::with_capacity(table.types.len());
        read_row(&values, &table.types, &mut fresh)?;
        for (i, v) in fresh.into_iter().enumerate() {
            row[table.base + i] = v;
        }
        row[table.key_slot()] = Datum::Bytea(moved.map_or(key, Into::into));
        Ok(Newest::Changed)
    }

    fn gone(self) -> Result<Newest> {
        if self.run.isolation == Isolation::RepeatableRead {
            return Err(concurrent(true));
        }
        Ok(Newest::Skipped)
    }
}
