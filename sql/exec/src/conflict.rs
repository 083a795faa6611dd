//! ON CONFLICT: what happens to the existing row that conflicts with a new one.
//!
//! # Invariants
//! - EXE-27: a statement locks the first rows that are in its way before it changes them, as PostgreSQL does: where many sessions put in the same row they wait once, in one
//!   queue. A lock takes memory to the end of the transaction, so a statement that has changed some dozen rows changes the others as they were read, with their tags as
//!   the only locks. A row that has changed since it was read is locked and judged again.

use super::batch::calls_sql;
use super::change::{Changes, engine_row, newest_view};
use super::convert::read_row;
use super::lock::key_of;
use super::pending::Pending;
use super::{Cx, Row};
use clearway_context::errors::{concurrent, from_engine};
use clearway_engine::session::Isolation;
use clearway_engine::table::write::is_in_the_way;
use clearway_planner::plan::{Conflict, Insert, Target};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::LockMode;
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};
use clearway_values::types::Datum;
use std::pin::pin;

/// So many rows of a statement are locked before they are changed (EXE-27).
const LOCKED_FIRST: u64 = 64;

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
        let Some((set, _)) = &conflict.update else {
            return self.may_do_nothing(target, &key).await;
        };
        // EXE-27
        if out.count >= LOCKED_FIRST && self.may_change_unlocked(conflict) {
            let (view, found) = self.newest_at(target, &key).await?;
            if let Some(existing) = found
                && self.is_in_the_way(insert, conflict, &existing, row)?
                && self.change_existing(insert, conflict, (existing, row), Basis::Read(view), pending, out).await?
            {
                return Ok(true);
            }
        }
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
        let mark = self.run.core.engine.take().mark();
        let locked = self.lock_current(&target.table, mode, &mut existing).await?;
        // TAB-6
        if locked.is_some() && !self.is_in_the_way(insert, conflict, &existing, row)? {
            self.run.core.engine.take().roll_back_to(&mark).await.map_err(from_engine)?;
            return Ok(false);
        }
        match locked {
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
        self.change_existing(insert, conflict, (existing, row), Basis::Locked, pending, out).await
    }

    /// Whether a row, whose key stands last, is a conflict as it stands now (TAB-6).
    fn is_in_the_way(self, insert: &Insert, conflict: &Conflict, existing: &Row, row: &Row) -> Result<bool> {
        let table = &insert.target.table;
        if table.shape.primary.as_ref().is_some_and(|(oid, _)| conflict.arbiters == [*oid]) {
            return Ok(true); // it stands at the key
        }
        let (key, found) = (key_of(existing, table)?, engine_row(&existing[..table.types.len()]));
        let judged = is_in_the_way(&table.shape, &conflict.arbiters, &engine_row(row), (&key, &found));
        judged.map_err(from_engine)
    }

    fn may_change_unlocked(self, conflict: &Conflict) -> bool {
        let Some((set, filter)) = &conflict.update else { return false };
        self.run.isolation != Isolation::RepeatableRead && !set.iter().map(|(_, e)| e).chain(filter).any(calls_sql)
    }

    /// The newest version of a row, its key last, without what this statement has written; and the view that shows it.
    async fn newest_at(self, target: &Target, key: &[u8]) -> Result<(View, Option<Row>)> {
        let table = &target.table;
        let mut session = self.run.core.engine.take();
        let view = View { mark: self.run.view.mark, ..newest_view(&mut session) };
        let Some(value) = session.find(&table.shape, &view, key).await.map_err(from_engine)? else {
            return Ok((view, None));
        };
        let mut row = Row::new();
        read_row(&table.shape.row(key, value).map_err(from_engine)?, &table.types, &mut row)?;
        row.push(Datum::Bytea(key.into()));
        Ok((view, Some(row).filter(|_| !session.found_shown())))
    }

    /// Changes the row in the way, whose key stands last, as DO UPDATE says; false: it is not the row that was read any more.
    async fn change_existing(
        self,
        insert: &Insert,
        conflict: &Conflict,
        (existing, row): (Row, &Row),
        basis: Basis,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<bool> {
        let target = &insert.target;
        let Some((set, filter)) = &conflict.update else { return Ok(true) };
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
            // PostgreSQL has locked the row by then.
            return Ok(basis == Basis::Locked);
        }
        for (column, e) in set {
            super::change::assign(&mut new, *column, e, self.value(e, &both).await?);
        }
        let mut new_row = new[..old.len()].to_vec();
        self.complete_guarded(target, guard.map_or(&[], |guard| &guard.updated), &mut new_row).await?;
        new[..old.len()].clone_from_slice(&new_row);
        let key = key_of(&existing, &target.table)?;
        if self.write_update(target, &key, &old, &new_row, basis).await? != Changed::Done && basis != Basis::Locked {
            return Ok(false);
        }
        pending.updated(target, &old, &new_row, self.updated_own(target))?;
        self.keep_small(pending).await?;
        self.check_views(target, &insert.view_checks, &new, &new_row).await?;
        out.count += 1;
        if let Some(returning) = &insert.returning {
            new.push(self.own_id());
            out.returns(self, self.values(returning, &new, &[]).await?).await?;
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
