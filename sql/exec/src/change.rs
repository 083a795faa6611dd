//! Executes INSERT, UPDATE and DELETE.

use super::batch::{DeleteBatch, UpdateBatch, calls_sql};
use super::convert::{read_row, to_value};
use super::lock::{Newest, key_of};
use super::nodes::Rows;
use super::pending::Pending;
use super::query::QueryRows;
use super::row_list::RowList;
use super::shown::detailed;
use super::{Cx, Row};
use clearway_context::errors::from_engine;
use clearway_engine::error::EngineError;
use clearway_engine::session::load::Loading;
use clearway_engine::session::{Isolation, Mark};
use clearway_engine::value::Value;
use clearway_planner::generated::late_arbiter;
use clearway_planner::plan::{Action, Conflict, Delete, Insert, Query, TableSlot, Target, Update};
use clearway_storage::space::giving_back;
use clearway_syntax::ast::LockWait;
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::LockMode;
use clearway_txn::transaction::{Basis, Changed};
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use std::pin::pin;
use std::sync::Arc;

/// What a change came to.
#[derive(Default)]
pub struct Changes {
    /// Rows changed.
    pub count: u64,
    /// RETURNING.
    pub rows: RowList,
}

impl Changes {
    /// A row of RETURNING.
    pub(super) async fn returns(&mut self, cx: Cx<'_>, row: Row) -> Result<()> {
        self.rows.push(row)?;
        if self.rows.is_full(cx) { Box::pin(self.rows.write_out(cx)).await } else { Ok(()) }
    }
}

/// What became of one row.
enum Outcome {
    Done,
    Skipped,
}

/// Whether an error says that a row's values are wrong, so that one of an earlier row comes before it.
pub(super) fn is_of_a_row(error: &SqlError) -> bool {
    error.code().starts_with("22") || error.code().starts_with("23")
}

/// Values for the engine.
pub fn engine_row(row: &[Datum]) -> Vec<Value> {
    row.iter().map(to_value).collect()
}

impl Cx<'_> {
    /// Runs whatever changes rows; none for a query.
    /// What foreign keys ask for is left in `pending`, to be settled when the whole statement is done.
    pub async fn change(self, action: &Action, pending: &mut Pending) -> Result<Option<Changes>> {
        if action.target().is_some_and(|target| target.catalog.is_some()) {
            return Box::pin(self.change_catalog(action)).await;
        }
        Ok(match action {
            Action::Select(_) => None,
            Action::Settings(query) => Some(self.set_settings(query).await?),
            Action::Insert(insert) => Some(self.insert(insert, pending).await?),
            Action::Update(update) => Some(self.update(update, pending).await?),
            Action::Delete(delete) => Some(self.delete(delete, pending).await?),
            Action::Merge(merge) => Some(Box::pin(self.merge(merge, pending)).await?),
        })
    }

    /// Runs the query for an UPDATE of pg_settings: no row counts as changed, and its values are given apart.
    async fn set_settings(self, query: &Arc<Query>) -> Result<Changes> {
        let mut out = Changes::default();
        let mut source = QueryRows::new(query.clone());
        while let Some(row) = source.next(self).await? {
            out.returns(self, row).await?;
        }
        Ok(out)
    }

    /// Runs an INSERT.
    async fn insert(self, insert: &Insert, pending: &mut Pending) -> Result<Changes> {
        let mut out = Changes::default();
        if insert.nothing {
            return Ok(out);
        }
        let mut loading = Loading::default();
        let inserted = self.insert_all(insert, (&mut loading, pending), &mut out).await;
        // An error of an earlier row comes first (LDG-4).
        if inserted.as_ref().err().is_none_or(is_of_a_row) {
            self.end_loading(insert, &mut loading).await?;
        }
        inserted?;
        Ok(out)
    }

    async fn insert_all(
        self,
        insert: &Insert,
        (loading, pending): (&mut Loading, &mut Pending),
        out: &mut Changes,
    ) -> Result<()> {
        let mut source = QueryRows::new(insert.source.clone());
        loop {
            let given = match source.buffered(self) {
                Some(given) => given?,
                None => match source.next(self).await? {
                    Some(given) => given,
                    None => return Ok(()),
                },
            };
            let row = self.row_to_insert(insert, given).await?;
            self.insert_one(insert, row, (loading, pending), out).await?;
        }
    }

    /// LDG-3; nothing more is inserted after a row that has failed.
    pub(super) async fn end_loading(self, insert: &Insert, loading: &mut Loading) -> Result<()> {
        if loading.failed().is_some() {
            return Ok(());
        }
        let ended = {
            let mut session = self.run.core.engine.take();
            self.run.core.lock_wait(pin!(session.end_loading(loading, &insert.target.table.shape))).await
        };
        ended.map_err(|error| self.not_inserted(&insert.target, error, loading, &[]))
    }

    /// The error for a row that was given to `loading`, or for one that had gathered there before.
    fn not_inserted(self, target: &Target, error: EngineError, loading: &Loading, given: &[Datum]) -> SqlError {
        let EngineError::Duplicate { index, oid, .. } = error else { return from_engine(error) };
        let Some(failed) = loading.failed() else { return self.duplicate(target, &index, oid, given) };
        let mut row = Row::new();
        match read_row(&failed.row, &target.table.types, &mut row) {
            Ok(()) => self.duplicate(target, &index, oid, &row),
            Err(error) => error,
        }
    }

    /// Inserts a row; gives its key if the caller asks for it, and with ON CONFLICT where to go back to.
    async fn put_in(
        self,
        insert: &Insert,
        values: &mut Vec<Value>,
        loading: &mut Loading,
    ) -> Result<(std::result::Result<Vec<u8>, EngineError>, Option<Mark>)> {
        let mut session = self.run.core.engine.take();
        let shape = &insert.target.table.shape;
        if insert.conflict.is_some() {
            let mark = session.mark();
            let inserted = self.run.core.lock_wait(pin!(session.insert(shape, values))).await;
            return Ok((inserted, Some(mark)));
        }
        if insert.returning.is_none() {
            match session.take_one_of(loading, shape, std::mem::take(values)).map_err(from_engine)? {
                None => return Ok((Ok(Vec::new()), None)),
                Some(back) => *values = back,
            }
        }
        Ok((self.run.core.lock_wait(pin!(session.insert_one_of(loading, shape, values))).await, None))
    }

    pub(super) async fn insert_one(
        self,
        insert: &Insert,
        mut row: Row,
        (loading, pending): (&mut Loading, &mut Pending),
        out: &mut Changes,
    ) -> Result<()> {
        let target = &insert.target;
        self.run.core.limits.check_undo(self.run.core)?;
        match &insert.guard {
            None if !target.checks_wait => self.complete_row(target, &mut row)?,
            None => Box::pin(self.complete_guarded(target, &[], &mut row)).await?,
            Some(guard) => Box::pin(self.complete_guarded(target, &guard.inserted, &mut row)).await?,
        }
        let mut values = engine_row(&row);
        loop {
            if let Some(conflict) = &insert.conflict {
                let found = if conflict.late.is_some() && conflict.arbiters.is_empty() {
                    None
                } else {
                    let mut session = self.run.core.engine.take();
                    // A transaction that keeps its snapshot waits for the one that changes the row, whose end tells whether there is a conflict.
                    let locks = conflict.update.is_some() && self.run.isolation == Isolation::ReadCommitted;
                    let named = (&conflict.arbiters[..], locks);
                    let search = session.conflicting(&target.table.shape, named, &values);
                    self.run.core.lock_wait(pin!(search)).await.map_err(from_engine)?
                };
                if let Some(key) = found {
                    match Box::pin(self.on_conflict(insert, conflict, key, &row, pending, out)).await? {
                        true => return Ok(()),
                        // The row in the way has gone meanwhile.
                        false => continue,
                    }
                }
                if let Some(late) = &conflict.late {
                    return Err(late_arbiter(late));
                }
            }
            let (inserted, mark) = self.put_in(insert, &mut values, loading).await?;
            let key = match inserted {
                Ok(key) => key,
                Err(EngineError::Duplicate { index, oid, row: found }) => {
                    let arbitrates = |c: &Conflict| c.arbiters.is_empty() || c.arbiters.contains(&oid);
                    if !insert.conflict.as_ref().is_some_and(arbitrates) {
                        let error = EngineError::Duplicate { index, oid, row: found };
                        return Err(self.not_inserted(target, error, loading, &row));
                    }
                    // Another transaction has put it there since the search.
                    if let Some(mark) = mark {
                        self.run.core.engine.take().roll_back_to(&mark).await.map_err(from_engine)?;
                    }
                    continue;
                }
                Err(e) => return Err(from_engine(e)),
            };
            pending.inserted(target, &row)?;
            self.keep_small(pending).await?;
            self.check_views(target, &insert.view_checks, &row, &row).await?;
            out.count += 1;
            if let Some(returning) = &insert.returning {
                let mut shown = row;
                shown.push(Datum::Bytea(key.into()));
                // xmax: no transaction has changed or locked a row that is new.
                shown.push(Datum::Oid(0));
                out.returns(self, self.values(returning, &shown, &[]).await?).await?;
            }
            return Ok(());
        }
    }

    /// Locks a row whatever its version and fills the slots with it; says where in the transaction it was changed, if
    /// it was. None: there is no such row.
    pub(super) async fn lock_current(
        self,
        table: &TableSlot,
        mode: LockMode,
        row: &mut Row,
    ) -> Result<Option<Option<u32>>> {
        let key = key_of(row, table)?;
        let locked = {
            let mut session = self.run.core.engine.take();
            let lock = session.lock_row(&table.shape, &key, mode, clearway_txn::lockmgr::IfTaken::Wait);
            self.run.core.lock_wait(pin!(lock)).await.map_err(from_engine)?
        };
        let Some(locked) = locked.filter(|l| !l.ghost) else { return Ok(None) };
        if locked.commit > self.run.view.read_lsn && self.run.isolation == Isolation::RepeatableRead {
            return Err(clearway_context::errors::concurrent(false));
        }
        let mut fresh = Row::new();
        read_row(&locked.row, &table.types, &mut fresh)?;
        row.splice(0..table.types.len(), fresh);
        Ok(Some(locked.mine))
    }

    /// Runs an UPDATE.
    async fn update(self, update: &Update, pending: &mut Pending) -> Result<Changes> {
        let mut out = Changes::default();
        let mut source = Rows::new(update.source.clone(), Vec::new());
        let mut batch = UpdateBatch::new(update);
        while let Some(row) = source.pull(self).await? {
            self.run.core.limits.check_undo(self.run.core)?;
            if !self.holds(update.filter.as_ref(), &row).await? {
                continue;
            }
            match &mut batch {
                Some(batch) => self.update_soon(batch, update, row, pending, &mut out).await?,
                None => self.update_one(update, (row, None), pending, &mut out).await?,
            }
        }
        if let Some(batch) = &mut batch {
            self.end_updates(batch, update, pending, &mut out).await?;
        }
        Ok(out)
    }

    /// The row after an update.
    pub(super) async fn row_after(self, update: &Update, row: &Row) -> Result<Row> {
        let table = &update.target.table;
        let mut new = row[table.base..table.base + table.types.len()].to_vec();
        for (column, e) in &update.set {
            assign(&mut new, *column, e, self.value(e, row).await?);
        }
        match update.guard.is_empty() && !update.target.checks_wait {
            true => self.complete_row(&update.target, &mut new)?,
            false => Box::pin(self.complete_guarded(&update.target, &update.guard, &mut new)).await?,
        }
        Ok(new)
    }

    /// Updates a row; to what `known` says, if it is given, and if the row is still the one that was read.
    pub(super) async fn update_one(
        self,
        update: &Update,
        (mut row, mut known): (Row, Option<Row>),
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        let target = &update.target;
        let table = &target.table;
        let width = table.types.len();
        let mut basis = Basis::Read(self.run.view);
        loop {
            let old = row[table.base..table.base + width].to_vec();
            let new = match known.take() {
                Some(new) => new,
                None => self.row_after(update, &row).await?,
            };
            let key = key_of(&row, table)?;
            match self.write_update(target, &key, &old, &new, basis).await? {
                Changed::Done => {
                    pending.updated(target, &old, &new, self.updated_own(target))?;
                    self.keep_small(pending).await?;
                    out.count += 1;
                    return self.was_updated(update, row, &new, out).await;
                }
                Changed::Again | Changed::Exists { .. } => return Ok(()),
                Changed::Newer => {
                    let strength = if table.shape.changes_key(&engine_row(&old), &engine_row(&new)) {
                        LockMode::RowUpdate
                    } else {
                        LockMode::RowNoKeyUpdate
                    };
                    match self.lock_and_recheck(table, strength, update.recheck.as_ref(), &mut row).await? {
                        Outcome::Done => basis = Basis::Locked,
                        Outcome::Skipped => return Ok(()),
                    }
                }
            }
        }
    }

    /// What is done with a row that has been updated: conditions of views, RETURNING.
    pub(super) async fn was_updated(self, update: &Update, mut row: Row, new: &Row, out: &mut Changes) -> Result<()> {
        if update.returning.is_none() && update.view_checks.is_empty() {
            return Ok(());
        }
        let table = &update.target.table;
        row[table.base..table.base + table.types.len()].clone_from_slice(new);
        self.check_views(&update.target, &update.view_checks, &row, new).await?;
        match &update.returning {
            Some(returning) => out.returns(self, self.values(returning, &row, &[]).await?).await,
            None => Ok(()),
        }
    }

    /// What is done with a row that has been deleted: RETURNING.
    pub(super) async fn was_deleted(self, delete: &Delete, row: &[Datum], out: &mut Changes) -> Result<()> {
        match &delete.returning {
            Some(returning) => out.returns(self, self.values(returning, row, &[]).await?).await,
            None => Ok(()),
        }
    }

    /// Locks a row that has changed since it was read and judges its newest version (EXE-2).
    async fn lock_and_recheck(
        self,
        table: &TableSlot,
        mode: LockMode,
        recheck: Option<&Bound>,
        row: &mut Row,
    ) -> Result<Outcome> {
        let old = row.clone();
        match self.lock_newest(table, mode, LockWait::Wait, row).await? {
            Newest::Skipped | Newest::Own => Ok(Outcome::Skipped),
            Newest::Unchanged | Newest::Changed => {
                Ok(if self.holds_again(recheck, &old, row).await? { Outcome::Done } else { Outcome::Skipped })
            }
        }
    }

    pub(super) async fn write_update(
        self,
        target: &Target,
        key: &[u8],
        old: &[Datum],
        new: &[Datum],
        basis: Basis,
    ) -> Result<Changed> {
        let (old, values) = (engine_row(old), engine_row(new));
        self.run.core.writes_row(target.table.shape.oid, key);
        let changed = {
            let mut session = self.run.core.engine.take();
            let write = session.update(&target.table.shape, key, &old, &values, basis);
            self.run.core.lock_wait(pin!(write)).await
        };
        changed.map_err(|e| match e {
            EngineError::Duplicate { index, oid, .. } => self.duplicate(target, &index, oid, new),
            e => from_engine(e),
        })
    }

    /// Whether the row of a referring table that was just updated was a version of this transaction's own.
    pub(super) fn updated_own(self, target: &Target) -> bool {
        !target.references.is_empty() && self.run.core.engine.take().updated_own()
    }

    /// Runs a DELETE.
    async fn delete(self, delete: &Delete, pending: &mut Pending) -> Result<Changes> {
        if let Some(deleted) = self.delete_walked(delete).await? {
            return Ok(deleted);
        }
        let mut out = Changes::default();
        let mut source = Rows::new(delete.source.clone(), Vec::new());
        let mut batch = DeleteBatch::default();
        let one_by_one = delete.filter.as_ref().is_some_and(calls_sql); // EXE-14
        loop {
            let from = batch.values.len();
            if !source.pull_into(self, &mut batch.values).await? {
                break;
            }
            self.run.core.limits.check_undo(self.run.core)?;
            if !self.holds(delete.filter.as_ref(), &batch.values[from..]).await? {
                batch.values.truncate(from);
                continue;
            }
            self.delete_soon(&mut batch, delete, from, pending, &mut out).await?;
            if one_by_one {
                self.end_deletes(&mut batch, delete, pending, &mut out).await?;
            }
        }
        self.end_deletes(&mut batch, delete, pending, &mut out).await?;
        Ok(out)
    }

    pub(super) async fn delete_one(
        self,
        delete: &Delete,
        mut row: Row,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        let table = &delete.target.table;
        let mut basis = Basis::Read(self.run.view);
        loop {
            let key = key_of(&row, table)?;
            let old = row[table.base..table.base + table.types.len()].to_vec();
            match self.write_delete(table, &key, &old, basis).await? {
                Changed::Done => {
                    pending.deleted(&delete.target, &old)?;
                    self.keep_small(pending).await?;
                    out.count += 1;
                    return self.was_deleted(delete, &row, out).await;
                }
                Changed::Again | Changed::Exists { .. } => return Ok(()),
                Changed::Newer => {
                    match self.lock_and_recheck(table, LockMode::RowUpdate, delete.recheck.as_ref(), &mut row).await? {
                        Outcome::Done => basis = Basis::Locked,
                        Outcome::Skipped => return Ok(()),
                    }
                }
            }
        }
    }

    pub(super) async fn write_delete(
        self,
        table: &TableSlot,
        key: &[u8],
        old: &[Datum],
        basis: Basis,
    ) -> Result<Changed> {
        let old = engine_row(old);
        self.run.core.writes_row(table.shape.oid, key);
        let mut session = self.run.core.engine.take();
        let write = giving_back(session.delete(&table.shape, key, &old, basis));
        self.run.core.lock_wait(pin!(write)).await.map_err(from_engine)
    }

    /// NOT NULL and CHECK; conditions that may wait are judged by `complete_guarded`.
    pub(super) fn check_row(self, target: &Target, row: &[Datum]) -> Result<()> {
        let shape = &target.table.shape;
        if let Some((c, _)) = shape.columns.iter().zip(row).find(|(c, v)| c.not_null && v.is_null()) {
            let message = format!(
                "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                c.name, shape.name
            );
            let error = detailed(SqlError::new("23502", message), self.failing(target, row));
            return Err(self.about(error, shape.oid).column(c.name.as_str()));
        }
        for (name, check) in target.checks.iter().filter(|_| !target.checks_wait) {
            if self.value_now(check, row)?.as_bool() == Some(false) {
                return Err(self.check_failed(target, row, name));
            }
        }
        Ok(())
    }

    /// A row does not meet a condition.
    pub(super) fn check_failed(self, target: &Target, row: &[Datum], name: &str) -> SqlError {
        let shape = &target.table.shape;
        let message = format!("new row for relation \"{}\" violates check constraint \"{name}\"", shape.name);
        let error = detailed(SqlError::new("23514", message), self.failing(target, row));
        self.about(error, shape.oid).constraint(name)
    }

    /// With the table that an error is about.
    pub(super) fn about(self, error: SqlError, table: u32) -> SqlError {
        clearway_context::errors::about(error, &self.run.names.catalog, table)
    }
}

/// Puts a new value into its column, or the fields of a row into theirs.
pub(super) fn assign(new: &mut [Datum], column: usize, e: &Bound, value: Datum) {
    if let BoundKind::Subquery { usage: SubqueryUse::Fields { columns }, .. } = &e.kind
        && let Datum::Row(row) = value
    {
        columns.iter().zip(&row.values).for_each(|(column, value)| new[*column].clone_from(value));
        return;
    }
    new[column] = value;
}

/// A view of the newest versions that are committed, and all of the transaction's own changes.
pub fn newest_view(session: &mut clearway_engine::session::Session) -> clearway_txn::mvcc::book::View {
    let visible = session.db().transactions().visible_lsn();
    let view = clearway_txn::mvcc::book::View { read_lsn: visible, ..Default::default() };
    session.renew_view(&view)
}
