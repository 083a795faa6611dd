//! Foreign keys: their checks and actions, at the end of the statement that changed a key. Unique constraints that are checked after the
//! statement wait in the same queue.
//!
//! A referencing row locks the row to which it refers FOR KEY SHARE. So a transaction that removes a key waits for the transactions that
//! are about to refer to it, and then sees their rows.
//!
//! # Invariants
//! - EXE-3: a check holds ROW SHARE on the table that it reads, and an action holds ROW EXCLUSIVE on the table that it changes, from
//!   before the first row is read to the end of the transaction. So meanwhile no index is built, no constraint added and no table
//!   truncated.
//! - EXE-4: columns, trees, indexes and constraints of a table are taken from the catalog as it is after the table's lock has been
//!   granted.
//! - EXE-5: a change that an action makes queues its own checks and actions behind those that are pending, as PostgreSQL's trigger queue
//!   does. So a chain of cascades of any depth needs no recursion.

use super::change::{engine_row, newest_view};
use super::convert::read_row;
use super::foreign_values::{can_be_referred, has_null, is_mixed};
use super::pending::{Pending, Touched};
use super::referential::{Found, Last};
use super::{BoxFuture, Cx, Row};
use clearway_context::deferred::Check;
use clearway_context::errors::{concurrent, from_engine, is_lock_not_available, not_locked};
use clearway_context::names::column_types;
use clearway_context::privileges::Judge;
use clearway_context::steering::Steering;
use clearway_engine::catalog::{Catalog, ReferentialAction};
use clearway_engine::session::Isolation;
use clearway_engine::table::shape::TableShape;
use clearway_planner::plan::{Reference, Referrer, TableSlot, Target};
use clearway_planner::{PlanEnv, Planner};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mutation::{self, Mutation};
use clearway_txn::mvcc::book::View;
use clearway_values::types::Datum;
use std::sync::Arc;

/// Rows of a table that have these values in these columns.
#[derive(Clone, Copy)]
pub(super) struct Search<'s> {
    pub(super) table: &'s TableSlot,
    pub(super) columns: &'s [usize],
    pub(super) wanted: &'s Row,
}

/// Why MATCH FULL refuses a row.
pub const MIXED: &str = "MATCH FULL does not allow mixing of null and nonnull key values.";

impl<'a> Cx<'a> {
    /// Checks and carries out what foreign keys ask.
    pub fn settle<'s>(self, mut pending: Pending) -> BoxFuture<'s, Result<()>>
    where
        'a: 's,
    {
        Box::pin(async move {
            while let Some((at, touched)) = pending.next().await? {
                self.breathe().await?;
                let unique = if let Touched::Unique(i, row) = &touched { Some((*i, row.clone())) } else { None };
                let Some(touched) = self.put_off(&pending.targets[at], touched)? else {
                    self.claim_unique(&pending.targets[at], unique).await?;
                    continue;
                };
                match touched {
                    Touched::Unique(i, row) => {
                        let target = pending.targets[at].clone();
                        self.check_unique(&target, &target.uniques[i], &row).await?;
                    }
                    Touched::Taken(i, old, new) => self.key_taken(&mut pending, (at, i), &old, new.as_deref()).await?,
                    Touched::Refers(i, row) => self.refer_unless_replaced(&mut pending, (at, i), &row).await?,
                }
            }
            Ok(())
        })
    }

    /// Puts a check off to the end of the transaction if its constraint says so; else gives it back.
    fn put_off(self, target: &Target, touched: Touched) -> Result<Option<Touched>> {
        let table = target.table.shape.oid;
        let (timing, constraint) = match &touched {
            Touched::Refers(i, _) => (target.references[*i].timing, (table, &target.references[*i].name)),
            Touched::Unique(i, _) => (target.uniques[*i].timing, (table, &target.uniques[*i].name)),
            Touched::Taken(i, _, new) => {
                let key = &target.referrers[*i];
                let action = if new.is_some() { key.on_update } else { key.on_delete };
                if action != ReferentialAction::NoAction {
                    return Ok(Some(touched));
                }
                (key.timing, (key.child, &key.name))
            }
        };
        if !timing.deferrable {
            return Ok(Some(touched));
        }
        let mut deferred = self.run.core.deferred.lock();
        if !deferred.is_deferred(constraint.0, constraint.1, timing) {
            return Ok(Some(touched));
        }
        let name = constraint.1.clone();
        deferred.put(match touched {
            Touched::Refers(_, row) => Check::Refers(table, name, row),
            Touched::Unique(_, row) => Check::Unique(table, name, row),
            Touched::Taken(_, old, _) => Check::Taken { table, child: constraint.0, name, old },
        })?;
        self.run.core.ends_with_work();
        Ok(None)
    }

    /// NO ACTION, checked later.
    pub(super) async fn forbid_taken(self, pending: &mut Pending, place: (usize, usize), old: &[Datum]) -> Result<()> {
        self.forbid(pending, place, old, ReferentialAction::NoAction).await
    }

    /// EXE-3, EXE-4: locks a table for a check or an action until the transaction ends.
    pub(super) async fn lock_for_key(self, pending: &mut Pending, table: u32, mode: LockMode) -> Result<()> {
        if mutation::active(Mutation::KeysLockNoTable) {
            return Ok(());
        }
        if pending.locked.contains(&(table, mode)) {
            return Ok(());
        }
        self.run.core.lock_relation(table, mode, IfTaken::Wait).await?;
        pending.locked.push((table, mode));
        let catalog = self.run.core.catalog();
        if !Arc::ptr_eq(&catalog, self.catalog_of(pending)) {
            for target in &mut pending.targets {
                *target = Arc::new(self.target_in(&catalog, target.table.shape.oid)?);
            }
            pending.catalog = Some(catalog);
        }
        Ok(())
    }

    /// Waits until a table can be locked, and leaves it: a row that refers to nothing waits for TRUNCATE of the table that it could refer to,
    /// as in PostgreSQL, and does not hold it up.
    async fn pass_table(self, table: u32, mode: LockMode) -> Result<()> {
        let owner = self.run.core.engine.take().owner().clone();
        let mark = owner.mark();
        self.run.core.lock_relation(table, mode, IfTaken::Wait).await?;
        self.run.core.db.transactions().locks().release_to(&owner, mark);
        Ok(())
    }

    pub(super) fn catalog_of<'p>(self, pending: &'p Pending) -> &'p Arc<Catalog>
    where
        'a: 'p,
    {
        pending.catalog.as_ref().unwrap_or(&self.run.names.catalog)
    }

    /// A table as the target of changes.
    pub(super) fn target_in(self, catalog: &Arc<Catalog>, table: u32) -> Result<Target> {
        self.with_planner(catalog, |planner| {
            let relation = catalog.relation(table);
            planner.target(relation.ok_or_else(|| SqlError::internal("a locked table has gone"))?)
        })
    }

    pub(super) fn with_planner<T>(
        self,
        catalog: &Arc<Catalog>,
        f: impl FnOnce(&mut Planner<'_>) -> Result<T>,
    ) -> Result<T> {
        let names = &self.run.names;
        let host = super::host::CxHost { cx: self };
        let session: &dyn clearway_values::expr::Session = &host;
        let conversion = session.conversion();
        let judge = Judge::of(self.run.core, catalog);
        let (database, path, statistics) = (names.database, &names.path, self.run.core.db.statistics());
        let row_security = true;
        let snapshots = self.run.core.db.transactions().book().snapshots();
        // What a constraint asks is planned alike in all sessions: no session's settings steer it.
        let steering = Steering::DEFAULT;
        let env = PlanEnv { catalog, database, path, judge, conversion, statistics, snapshots, row_security, steering };
        f(&mut Planner::new(&env).exempt())
    }

    /// Checks that the row referred to is there, and keeps its key there.
    pub(super) async fn refer(self, pending: &mut Pending, (at, place): (usize, usize), row: &Row) -> Result<()> {
        let parent = pending.targets[at].references[place].parent.shape.oid;
        let key = &pending.targets[at].references[place];
        if key.full && is_mixed(&key.columns, row) {
            let (table, name) = (pending.targets[at].table.shape.clone(), key.name.clone());
            let message =
                format!("insert or update on table \"{}\" violates foreign key constraint \"{name}\"", table.name);
            let error = SqlError::new("23503", message).detail(MIXED);
            return Err(self.about(error, table.oid).constraint(name.as_str()));
        }
        if has_null(&key.columns, row) {
            return self.pass_table(parent, LockMode::RowShare).await;
        }
        self.lock_for_key(pending, parent, LockMode::RowShare).await?;
        let target = pending.targets[at].clone();
        let key = &target.references[place];
        if self.keep_parent(key, row).await? {
            return Ok(());
        }
        let (parent, table) = (&key.parent, &target.table);
        let shown = self.key_shown(table, &key.columns, row);
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            table.shape.name, key.name
        );
        let shown = shown.unwrap_or_else(|| "Key".to_owned());
        let detail = format!("{shown} is not present in table \"{}\".", parent.shape.name);
        Err(self.about(SqlError::new("23503", message).detail(detail), table.shape.oid).constraint(key.name.as_str()))
    }

    /// Locks the row referred to FOR KEY SHARE; false: there is none. Under repeatable read the snapshot may show a row with the key that has ended,
    /// beside the transaction's own: as in PostgreSQL that is a serialization failure.
    async fn keep_parent(self, key: &Reference, row: &Row) -> Result<bool> {
        let parent = &key.parent;
        if !can_be_referred(key, row) {
            return Ok(false);
        }
        let wanted: Row = key.key_order.iter().map(|c| row[*c].clone()).collect();
        let view = {
            let mut session = self.run.core.engine.take();
            if self.in_snapshot() { session.renew_view(&self.run.view) } else { newest_view(&mut session) }
        };
        let found = match key.index {
            None => {
                let found = parent.shape.key_prefix(&engine_row(&wanted));
                let mut session = self.run.core.engine.take();
                // A snapshot has to show the row; the newest version is looked at when it is locked.
                let shown = !self.in_snapshot()
                    || session.find(&parent.shape, &view, &found).await.map_err(from_engine)?.is_some();
                if self.in_snapshot() && session.found_shown() {
                    return Err(concurrent(false));
                }
                Vec::from_iter(shown.then_some(found))
            }
            Some(place) => {
                let mut session = self.run.core.engine.take();
                let prefix = parent.shape.indexes[place].prefix(&engine_row(&wanted));
                let range = KeyRange::prefix(&prefix);
                let mut walk = session.index_scan(&parent.shape, place, range, Direction::Forward, &view);
                let mut found = Vec::new();
                while let Some(one) = session.next_by_index(&mut walk).await.map_err(from_engine)? {
                    if walk.shown().is_some() {
                        return Err(concurrent(false));
                    }
                    found.push(one.key);
                }
                found
            }
        };
        let mut kept = false;
        for bytes in &found {
            let locked = {
                let mut session = self.run.core.engine.take();
                let lock = session.follow_row(&parent.shape, &view, bytes, LockMode::RowKeyShare, IfTaken::Wait);
                self.run.core.lock_wait(std::pin::pin!(lock)).await.map_err(|e| not_locked(from_engine(e)))?
            };
            let Some((_, locked)) = locked.filter(|(_, l)| !l.ghost) else { continue };
            let mut values = Row::new();
            read_row(&locked.row, &parent.types, &mut values)?;
            kept |= key.columns.iter().zip(&key.parent_columns).all(|(c, p)| row[*c] == values[*p]);
        }
        Ok(kept)
    }

    /// Locks a row that was found, wherever it is by now, and returns its key and its newest version; none if it does not refer to the
    /// key any more.
    pub(super) async fn still_refers(
        self,
        search: Search<'_>,
        view: &View,
        row_key: &[u8],
        (mode, if_taken): (LockMode, IfTaken),
    ) -> Result<Option<(Vec<u8>, Row)>> {
        let child = search.table;
        let locked = {
            let mut session = self.run.core.engine.take();
            let lock = session.follow_row(&child.shape, view, row_key, mode, if_taken);
            self.run.core.lock_wait(std::pin::pin!(lock)).await
        };
        let found = match locked {
            Ok(found) => found,
            Err(e) if if_taken == IfTaken::Fail && is_lock_not_available(&e) => return Ok(None),
            Err(e) => return Err(from_engine(e)),
        };
        let Some((moved, locked)) = found.filter(|(_, l)| !l.ghost) else {
            return if self.in_snapshot() { Err(concurrent(true)) } else { Ok(None) };
        };
        // First updater wins, in what an action changes, too: the snapshot shows another version, or none.
        if self.in_snapshot() && mode != LockMode::RowKeyShare && locked.commit > self.run.view.read_lsn {
            return Err(concurrent(false));
        }
        let mut row = Row::new();
        read_row(&locked.row, &child.types, &mut row)?;
        let refers = search.columns.iter().zip(search.wanted).all(|(c, v)| row[*c] == *v);
        Ok(refers.then(|| (moved.unwrap_or_else(|| row_key.to_vec()), row)))
    }

    pub(super) fn in_snapshot(self) -> bool {
        self.run.isolation == Isolation::RepeatableRead
    }

    /// Refuses to take a key away to which a row refers.
    pub(super) async fn forbid(
        self,
        pending: &mut Pending,
        (at, place): (usize, usize),
        old: &[Datum],
        action: ReferentialAction,
    ) -> Result<()> {
        let child = pending.targets[at].referrers[place].child;
        self.lock_for_key(pending, child, LockMode::RowShare).await?;
        let target = pending.targets[at].clone();
        let key = &target.referrers[place];
        let wanted: Row = key.columns.iter().map(|c| old[*c].clone()).collect();
        if action == ReferentialAction::NoAction {
            self.lock_for_key(pending, target.table.shape.oid, LockMode::RowShare).await?;
            // Another row has the key: nothing has gone.
            let search = Search { table: &target.table, columns: &key.columns, wanted: &wanted };
            if self.any_with(search).await? {
                return Ok(());
            }
        }
        // One that no transaction is changing decides at once; the transaction that is changing another may be taking it away.
        for if_taken in [IfTaken::Fail, IfTaken::Wait] {
            let mut behind = None;
            loop {
                let Some((child, found)) = self.some_of_child(key, &wanted, behind.take()).await? else {
                    return Ok(());
                };
                let search = Search { table: &child, columns: &key.child_columns, wanted: &wanted };
                for (row_key, _) in &found.rows {
                    let lock = (LockMode::RowKeyShare, if_taken);
                    if self.still_refers(search, &found.view, row_key, lock).await?.is_some() {
                        return Err(self.still_referenced(&target, key, old));
                    }
                }
                match found.last {
                    Some(last) => behind = Some(last),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Rows of the table of a key that refer to values, as the table is by now; none: it has gone.
    async fn some_of_child(
        self,
        key: &Referrer,
        wanted: &Row,
        mut behind: Option<Last>,
    ) -> Result<Option<(TableSlot, Found)>> {
        loop {
            let catalog = self.run.core.catalog();
            let Some(relation) = catalog.relation(key.child) else { return Ok(None) };
            let shape = TableShape::new(&catalog, key.child).map_err(from_engine)?;
            let child = TableSlot { shape, types: column_types(relation), base: 0, name: relation.name.clone() };
            let found =
                self.some_with(Search { table: &child, columns: &key.child_columns, wanted }, behind.take()).await?;
            // REINDEX, which ROW SHARE lets pass, may have put another tree in an index's place before the view was made.
            if Arc::ptr_eq(&catalog, &self.run.core.catalog()) {
                return Ok(Some((child, found)));
            }
        }
    }

    fn still_referenced(self, target: &Target, key: &Referrer, old: &[Datum]) -> SqlError {
        let name = &target.table.shape.name;
        let message = format!(
            "update or delete on table \"{name}\" violates foreign key constraint \"{}\" on table \"{}\"",
            key.name, key.child_name
        );
        let shown = self.key_shown(&target.table, &key.columns, old).unwrap_or_else(|| "Key".to_owned());
        let error = SqlError::new("23503", message)
            .detail(format!("{shown} is still referenced from table \"{}\".", key.child_name));
        self.about(error, key.child).constraint(key.name.as_str())
    }
}
