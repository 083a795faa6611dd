//! MERGE.
//!
//! # Life of a row of the join
//! 1. It has a match in the table: the first clause for a match whose condition it meets changes the match.
//! 2. The match has changed since the statement read it: it is locked, and its newest version is judged by the join's condition. If it still
//!    is a match, the clauses are gone through again from the first one; if not, or if it is gone, the row has no match any more.
//! 3. It has no match: the first clause for no match whose condition it meets inserts a row. A row that is there by now is an error.
//!
//! Source: PostgreSQL 15's `ExecMerge` in src/backend/executor/nodeModifyTable.c.

use super::change::{Changes, engine_row};
use super::lock::{Newest, key_of};
use super::nodes::Rows;
use super::pending::Pending;
use super::{Cx, Row};
use clearway_context::errors::from_engine;
use clearway_engine::error::EngineError;
use clearway_planner::merge::{Change, Clause, Merge};
use clearway_planner::plan::PolicyCheck;
use clearway_syntax::ast::LockWait;
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::LockMode;
use clearway_txn::transaction::{Basis, Changed};
use clearway_values::types::Datum;
use std::pin::pin;

/// What became of a match.
enum MatchOutcome {
    /// It was changed, or no clause is for it.
    Done,
    /// It has changed since it was read; the lock that its change needs.
    Newer(LockMode),
}

fn twice() -> SqlError {
    SqlError::new("21000", "MERGE command cannot affect row a second time")
        .hint("Ensure that not more than one source row matches any one target row.")
}

impl Cx<'_> {
    /// Runs a MERGE.
    pub(super) async fn merge(self, merge: &Merge, pending: &mut Pending) -> Result<Changes> {
        let mut out = Changes::default();
        let mut source = Rows::new(merge.source.clone(), Vec::new());
        while let Some(row) = source.pull(self).await? {
            self.breathe().await?;
            self.run.core.limits.check_undo(self.run.core)?;
            if self.holds(merge.filter.as_ref(), &row).await? {
                self.merge_row(merge, row, pending, &mut out).await?;
            }
        }
        Ok(out)
    }

    async fn merge_row(self, merge: &Merge, mut row: Row, pending: &mut Pending, out: &mut Changes) -> Result<()> {
        let table = &merge.target.table;
        let mut basis = Basis::Read(self.run.view);
        let mut is_match = row.get(table.key_slot()).is_some_and(|key| !key.is_null());
        while is_match {
            let mode = match self.change_match(merge, &row, basis, pending, out).await? {
                MatchOutcome::Done => return Ok(()),
                MatchOutcome::Newer(mode) => mode,
            };
            let old = row.clone();
            is_match = match self.lock_newest(table, mode, LockWait::Wait, &mut row).await? {
                Newest::Own => return Err(twice()),
                Newest::Skipped => false,
                Newest::Unchanged | Newest::Changed => self.holds_again(merge.on.as_ref(), &old, &row).await?,
            };
            basis = Basis::Locked;
        }
        self.insert_unmatched(merge, &row, pending, out).await
    }

    /// The first clause whose condition a row meets.
    async fn clause_for<'m>(self, clauses: &'m [Clause], row: &Row) -> Result<Option<&'m Change>> {
        for clause in clauses {
            if self.holds(clause.condition.as_ref(), row).await? {
                return Ok(Some(&clause.change));
            }
        }
        Ok(None)
    }

    /// Changes the match of a row as its clause says.
    async fn change_match(
        self,
        merge: &Merge,
        row: &Row,
        basis: Basis,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<MatchOutcome> {
        let target = &merge.target;
        let table = &target.table;
        let old = row[table.base..table.base + table.types.len()].to_vec();
        let guard = merge.guard.as_deref();
        let (changed, mode) = match self.clause_for(&merge.matched, row).await? {
            Some(Change::Update(set)) => {
                self.may_change_match(merge, guard.map_or(&[], |g| &g.updated_from), &old).await?;
                let mut new = old.clone();
                for (column, e) in set {
                    super::change::assign(&mut new, *column, e, self.value(e, row).await?);
                }
                self.complete_merged(merge, guard.map_or(&[], |g| &g.updated_to), &mut new).await?;
                let changed = self.write_update(target, &key_of(row, table)?, &old, &new, basis).await?;
                if changed == Changed::Done {
                    pending.updated(target, &old, &new, self.updated_own(target))?;
                    self.keep_small(pending).await?;
                }
                match table.shape.changes_key(&engine_row(&old), &engine_row(&new)) {
                    true => (changed, LockMode::RowUpdate),
                    false => (changed, LockMode::RowNoKeyUpdate),
                }
            }
            Some(Change::Delete) => {
                self.may_change_match(merge, guard.map_or(&[], |g| &g.deleted), &old).await?;
                let changed = self.write_delete(table, &key_of(row, table)?, &old, basis).await?;
                if changed == Changed::Done {
                    pending.deleted(target, &old)?;
                    self.keep_small(pending).await?;
                }
                (changed, LockMode::RowUpdate)
            }
            _ => return Ok(MatchOutcome::Done),
        };
        match changed {
            Changed::Done => {
                out.count += 1;
                Ok(MatchOutcome::Done)
            }
            Changed::Again | Changed::Exists { .. } => Err(twice()),
            Changed::Newer => Ok(MatchOutcome::Newer(mode)),
        }
    }

    /// Inserts what the clause for a row without a match says.
    async fn insert_unmatched(self, merge: &Merge, row: &Row, pending: &mut Pending, out: &mut Changes) -> Result<()> {
        let target = &merge.target;
        let Some(Change::Insert(values)) = self.clause_for(&merge.unmatched, row).await? else { return Ok(()) };
        let mut new = Row::with_capacity(values.len());
        for e in values {
            new.push(match e {
                Some(e) => self.value(e, row).await?,
                None => Datum::Null,
            });
        }
        self.complete_merged(merge, merge.guard.as_deref().map_or(&[], |g| &g.inserted), &mut new).await?;
        let values = engine_row(&new);
        let inserted = {
            let mut session = self.run.core.engine.take();
            self.run.core.lock_wait(pin!(session.insert(&target.table.shape, &values))).await
        };
        match inserted {
            Ok(_) => {}
            Err(EngineError::Duplicate { index, oid, .. }) => return Err(self.duplicate(target, &index, oid, &new)),
            Err(e) => return Err(from_engine(e)),
        }
        pending.inserted(target, &new)?;
        self.keep_small(pending).await?;
        out.count += 1;
        Ok(())
    }

    /// Completes a new row and judges it.
    async fn complete_merged(self, merge: &Merge, checks: &[PolicyCheck], row: &mut Row) -> Result<()> {
        match checks.is_empty() && !merge.target.checks_wait {
            true => self.complete_row(&merge.target, row),
            false => Box::pin(self.complete_guarded(&merge.target, checks, row)).await,
        }
    }

    /// Whether policies let a match be changed.
    async fn may_change_match(self, merge: &Merge, checks: &[PolicyCheck], row: &[Datum]) -> Result<()> {
        let Some(check) = self.first_refusal(checks, row).await? else { return Ok(()) };
        let name = check.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
        let table = &merge.target.table.shape.name;
        let message =
            format!("target row violates row-level security policy{name} (USING expression) for table \"{table}\"");
        Err(SqlError::new("42501", message))
    }
}
