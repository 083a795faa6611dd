//! ON CONFLICT: what happens to the existing row that conflicts with a new one.

use super::change::Changes;
use super::foreign::Pending;
use super::lock::key_of;
use super::{Cx, Row};
use clearway_context::errors::{concurrent, from_engine};
use clearway_engine::session::Isolation;
use clearway_planner::plan::{Conflict, Insert, Target};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::LockMode;
use clearway_txn::transaction::Basis;
use clearway_values::types::Datum;
use std::pin::pin;

impl Cx<'_> {
    /// Deals with a row in the way; false: it has gone, try again.
    pub(super) async fn on_conflict(
        self,
        insert: &Insert,
        conflict: &Conflict,
        key: Vec<u8>,
        row: &Row,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<bool> {
        let target = &insert.target;
        let Some((set, filter)) = &conflict.update else {
            return self.may_do_nothing(target, &key).await;
        };
        let mut existing = vec![Datum::Null; target.table.types.len()];
        existing.push(Datum::Bytea(key.into()));
        // By the columns that SET names, whether their values change or not, as in PostgreSQL.
        let shape = &target.table.shape;
        let of_key = |column: usize| {
            shape.primary.is_some() && shape.key.contains(&column)
                || shape.indexes.iter().any(|i| i.unique && i.terms.is_none() && i.columns.contains(&column))
        };
        let mode = match set.iter().any(|(column, _)| of_key(*column)) {
            true => LockMode::RowUpdate,
            false => LockMode::RowNoKeyUpdate,
        };
        match self.lock_current(&target.table, mode, &mut existing).await? {
            Some(Some(mine)) if mine >= self.run.view.mark => {
                let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                return Err(SqlError::new("21000", message).hint(
                    "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
                ));
            }
            Some(_) => {}
            // Another transaction deleted the row after it had been found in the way.
            None if self.run.isolation == Isolation::RepeatableRead => return Err(concurrent(true)),
            None => return Ok(false),
        }
        let (old, mut new) = (existing[..target.table.types.len()].to_vec(), existing.clone());
        let guard = insert.guard.as_deref();
        // Before WHERE, which could tell of the row (RLS-1, VIE-5).
        if let Some(guard) = guard {
            self.meets_policies(target, &guard.existing, &old, " (USING expression)").await?;
        }
        for (view, condition) in &conflict.visible {
            if !self.holds(Some(condition), &existing).await? {
                let message = format!("conflicting row is not visible through view \"{view}\"");
                return Err(SqlError::new("55000", message));
            }
        }
        let both: Row = existing.iter().chain(row).cloned().collect();
        if !self.holds(filter.as_ref(), &both).await? {
            return Ok(true);
        }
        for (column, e) in set {
            super::change::assign(&mut new, *column, e, self.value(e, &both).await?);
        }
        let mut new_row = new[..old.len()].to_vec();
        self.complete_guarded(target, guard.map_or(&[], |guard| &guard.updated), &mut new_row).await?;
        new[..old.len()].clone_from_slice(&new_row);
        let key = key_of(&existing, &target.table)?;
        self.write_update(target, &key, &old, &new_row, Basis::Locked).await?;
        pending.updated(target, &old, &new_row, self.updated_own(target))?;
        self.check_views(target, &insert.view_checks, &new, &new_row).await?;
        out.count += 1;
        if let Some(returning) = &insert.returning {
            new.push(self.own_id());
            out.returns(self.values(returning, &new, &[]).await?)?;
        }
        Ok(true)
    }

    /// The xmax of a row that ON CONFLICT has changed: this transaction has locked it. As in PostgreSQL it is never 0, by which statements tell an update from an
    /// insertion.
    fn own_id(self) -> Datum {
        let id = self.run.core.engine.take().txn().id();
        Datum::Oid(id.map_or(1, |id| (id.0 as u32).max(1)))
    }

    /// DO NOTHING beside a version that a repeatable-read snapshot does not show is a serialization failure; false: the row has gone.
    async fn may_do_nothing(self, target: &Target, key: &[u8]) -> Result<bool> {
        if self.run.isolation != Isolation::RepeatableRead {
            return Ok(true);
        }
        let mut session = self.run.core.engine.take();
        let wait = session.committed_at(&target.table.shape, key);
        match self.run.core.lock_wait(pin!(wait)).await.map_err(from_engine)? {
            Some(commit) if commit > self.run.view.read_lsn => Err(concurrent(false)),
            Some(_) => Ok(true),
            None => Ok(false),
        }
    }
}
