//! INSERT, UPDATE and DELETE on the catalogs that can be changed so (`clearway_context::changeable`).
//!
//! # Life of a row
//! The rows are those of the view, as of the catalog with which the statement was planned. For each of them the object that keeps the row is
//! locked by its name, then the row is read again: if another transaction has changed it, it is judged anew (EXE-2), or the statement fails
//! (repeatable read). Then the edits that the change asks for are made as DDL makes them: they are part of the transaction.
//!
//! # Invariants
//! - CHG-3: a statement changes a row once: a row that is found again by the same key, as a join may do, is passed over.

use super::change::Changes;
use super::nodes::Rows;
use super::query::QueryRows;
use super::shown::detailed;
use super::sought::Keys;
use super::{Cx, Row, Run, SoughtRows};
use clearway_base::breath;
use clearway_context::changeable::{self, Changeable, Edit, Here};
use clearway_context::errors::{concurrent, from_engine};
use clearway_context::names::CatalogNames;
use clearway_context::views::{SystemView, keys};
use clearway_engine::catalog::{Catalog, Object};
use clearway_engine::error::EngineError;
use clearway_engine::session::Isolation;
use clearway_planner::plan::{Action, Delete, Insert, Target, Update};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_values::expr::Bound;
use clearway_values::types::{Datum, Oid};
use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;

/// A catalog that a statement changes.
#[derive(Clone, Copy)]
struct Changed<'a> {
    target: &'a Target,
    view: &'static SystemView,
    how: &'static dyn Changeable,
}

impl<'a> Changed<'a> {
    fn of(target: &'a Target) -> Option<Changed<'a>> {
        let view = target.catalog?;
        Some(Changed { target, view, how: changeable::find(view)? })
    }

    /// The values by which a row is found.
    fn key(&self, row: &[Datum]) -> Vec<Datum> {
        self.how.key().1.iter().map(|at| row[*at].clone()).collect()
    }

    /// The row of the layout's slots.
    fn row<'r>(&self, layout: &'r [Datum]) -> &'r [Datum] {
        let base = self.target.table.base;
        &layout[base..base + self.view.columns.len()]
    }
}

impl Cx<'_> {
    /// Runs a statement that changes a catalog; none: it changes a table.
    pub(super) async fn change_catalog(self, action: &Action) -> Result<Option<Changes>> {
        let target = match action {
            Action::Insert(insert) => &insert.target,
            Action::Update(update) => &update.target,
            Action::Delete(delete) => &delete.target,
            _ => return Ok(None),
        };
        let Some(changed) = Changed::of(target) else { return Ok(None) };
        self.run.core.engine.take().begin_ddl();
        match action {
            Action::Insert(insert) => self.insert_rows(changed, insert).await,
            Action::Update(update) => self.update_rows(changed, update).await,
            Action::Delete(delete) => self.delete_rows(changed, delete).await,
            _ => return Ok(None),
        }
        .map(Some)
    }

    async fn insert_rows(self, changed: Changed<'_>, insert: &Insert) -> Result<Changes> {
        let mut out = Changes::default();
        let mut source = QueryRows::new(insert.source.clone());
        while let Some(given) = source.next(self).await? {
            let mut row = self.row_to_insert(insert, given).await?;
            self.complete_row(changed.target, &mut row)?;
            self.write(changed, None, Some(&row)).await?;
            out.count += 1;
            if let Some(returning) = &insert.returning {
                out.returns(self, self.values(returning, &row, &[]).await?).await?;
            }
        }
        Ok(out)
    }

    async fn update_rows(self, changed: Changed<'_>, update: &Update) -> Result<Changes> {
        let mut out = Changes::default();
        let mut done = HashSet::new();
        let mut source = Rows::new(update.source.clone(), Vec::new());
        while let Some(mut row) = source.pull(self).await? {
            if !self.holds(update.filter.as_ref(), &row).await? || !done.insert(changed.key(changed.row(&row))) {
                continue;
            }
            if !self.lock_row_of_catalog(changed, update.recheck.as_ref(), &mut row).await? {
                continue;
            }
            let (old, new) = (changed.row(&row).to_vec(), self.row_after(update, &row).await?);
            done.insert(changed.key(&new));
            self.write(changed, Some(&old), Some(&new)).await?;
            out.count += 1;
            self.was_updated(update, row, &new, &mut out).await?;
        }
        Ok(out)
    }

    async fn delete_rows(self, changed: Changed<'_>, delete: &Delete) -> Result<Changes> {
        let mut out = Changes::default();
        let mut done = HashSet::new();
        let mut source = Rows::new(delete.source.clone(), Vec::new());
        while let Some(mut row) = source.pull(self).await? {
            if !self.holds(delete.filter.as_ref(), &row).await? || !done.insert(changed.key(changed.row(&row))) {
                continue;
            }
            if self.lock_row_of_catalog(changed, delete.recheck.as_ref(), &mut row).await? {
                let old = changed.row(&row).to_vec();
                self.write(changed, Some(&old), None).await?;
                out.count += 1;
                self.was_deleted(delete, &row, &mut out).await?;
            }
        }
        Ok(out)
    }

    /// Locks what keeps a row, and fills the slots with the row as it is then. False: the row is gone, or is none for the statement any more.
    async fn lock_row_of_catalog(self, changed: Changed<'_>, recheck: Option<&Bound>, row: &mut Row) -> Result<bool> {
        let was = row.clone();
        let read = changed.row(row).to_vec();
        let mut locked = None;
        let catalog = loop {
            let catalog = self.run.core.catalog();
            let kept_by = changed.how.kept_by(self.here(&catalog), &read);
            match kept_by.and_then(|oid| catalog.get(oid)) {
                Some(object) if locked != Some(object.oid()) => {
                    locked = Some(object.oid());
                    let object = object.clone();
                    let mut session = self.run.core.engine.take();
                    let lock = session.lock_to_change(&object);
                    self.run.core.lock_wait(pin!(lock)).await.map_err(from_engine)?;
                }
                _ => break catalog,
            }
        };
        if Arc::ptr_eq(&catalog, &self.run.names.catalog) {
            return Ok(true);
        }
        let now = self.find_row(changed, &changed.key(&read), &catalog);
        if now.as_ref().is_some_and(|now| *now == read) {
            return Ok(true);
        }
        if self.run.isolation == Isolation::RepeatableRead {
            return Err(concurrent(now.is_none()));
        }
        let Some(now) = now else { return Ok(false) };
        let base = changed.target.table.base;
        row[base..base + now.len()].clone_from_slice(&now);
        self.holds_again(recheck, &was, row).await
    }

    fn here<'h>(&'h self, catalog: &'h Catalog) -> Here<'h> {
        Here { core: self.run.core, catalog, database: self.run.names.database }
    }

    /// The row of the view that has a key, by a version of the catalog.
    fn find_row(self, changed: Changed<'_>, key: &[Datum], catalog: &Arc<Catalog>) -> Option<Row> {
        let run = Run {
            core: self.run.core,
            plan: self.run.plan,
            params: self.run.params,
            view: self.run.view,
            isolation: self.run.isolation,
            format: self.run.format.clone(),
            names: CatalogNames { catalog: catalog.clone(), ..self.run.names.clone() },
            started: self.run.started,
            transaction_started: self.run.transaction_started,
            state: self.run.state,
            views: self.run.views,
        };
        let (view, places) = (changed.view, changed.how.key().1);
        let number = key[0].as_i64().and_then(|n| Oid::try_from(n).ok());
        let sought = number.filter(|_| keys::of(view, places[0]).is_some()).map(|number| SoughtRows {
            column: view.columns[places[0]].0,
            place: places[0],
            keys: Keys::Oids(vec![number]),
        });
        // An error has no way out of here, so all rows are built (VRB-1).
        let rows = breath::unstopped(|| run.views.rows(view, sought.as_ref(), None, &run));
        let mut found = rows.into_iter().find(|row| places.iter().zip(key).all(|(at, value)| row[*at] == *value))?;
        found.truncate(view.columns.len());
        Some(found)
    }

    /// Replaces a row by another; without one of them: inserts or deletes it.
    async fn write(self, changed: Changed<'_>, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<()> {
        self.run.core.limits.check_undo(self.run.core)?;
        self.breathe().await?;
        if let Some(new) = new {
            self.lock_subject(changed, new).await?;
            let catalog = self.run.core.catalog();
            let key = changed.key(new);
            let moved = old.is_none_or(|old| changed.key(old) != key);
            if moved && self.find_row(changed, &key, &catalog).is_some() {
                return Err(self.is_there(changed, new));
            }
        }
        let catalog = self.run.core.catalog();
        let edits = changed.how.edits(self.here(&catalog), old, new)?;
        for edit in edits {
            let mut session = self.run.core.engine.take();
            let made = match edit {
                Edit::Put(object) => self.run.core.lock_wait(pin!(session.put_object(*object))).await,
                Edit::Drop(oid) => self.run.core.lock_wait(pin!(session.drop_object(oid))).await,
            };
            made.map_err(|error| match (error, new) {
                // Another transaction has put a row of this key there meanwhile.
                (EngineError::Exists { .. }, Some(new)) => self.is_there(changed, new),
                (error, _) => from_engine(error),
            })?;
        }
        Ok(())
    }

    /// Locks the object that a new row is about, so that it can't be dropped before the row is there.
    async fn lock_subject(self, changed: Changed<'_>, row: &[Datum]) -> Result<()> {
        let mut locked = None;
        loop {
            let catalog = self.run.core.catalog();
            let about = changed.how.about(self.here(&catalog), row);
            let Some(object) = about.filter(|oid| locked != Some(*oid)).and_then(|oid| catalog.get(oid)).cloned()
            else {
                return Ok(());
            };
            locked = Some(object.oid());
            match &*object {
                Object::Relation(_) | Object::Index(_) | Object::Sequence(_) => {
                    let mode = LockMode::ShareUpdateExclusive;
                    self.run.core.lock_relation(object.oid(), mode, IfTaken::Wait).await?;
                }
                other => {
                    let mut session = self.run.core.engine.take();
                    let lock = session.lock_object(other, LockMode::AccessShare);
                    self.run.core.lock_wait(pin!(lock)).await.map_err(from_engine)?;
                }
            }
            self.run.core.engine.take().read_again(object.oid());
        }
    }

    /// 23505
    fn is_there(self, changed: Changed<'_>, row: &[Datum]) -> SqlError {
        let (index, places) = changed.how.key();
        let table = &changed.target.table;
        let names: Vec<&str> = places.iter().map(|at| changed.view.columns[*at].0).collect();
        let values: Vec<String> = places.iter().map(|at| self.shown(&row[*at], table.types[*at])).collect();
        let message = format!("duplicate key value violates unique constraint \"{index}\"");
        let detail = format!("Key ({})=({}) already exists.", names.join(", "), values.join(", "));
        self.about(detailed(SqlError::new("23505", message), Some(detail)), table.shape.oid).constraint(index)
    }
}
