//! Foreign keys: checked, and their actions carried out, at the end of the statement that touched a key.
//!
//! The side that refers locks the row it refers to FOR KEY SHARE; so whoever takes a key away waits for those who
//! are just beginning to refer to it, and sees them.

use super::change::{engine_row, newest_view};
use super::convert::read_row;
use super::{BoxFuture, Cx, Row};
use crate::context::errors::from_engine;
use crate::context::names::column_types;
use crate::error::{Result, SqlError};
use crate::planner::plan::{Reference, Referrer, TableSlot, Target};
use crate::planner::{PlanEnv, Planner};
use crate::types::Datum;
use clearway_engine::catalog::ReferentialAction;
use clearway_engine::table::shape::TableShape;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::transaction::Basis;

/// Keys that a statement touched.
#[derive(Default)]
pub struct Pending {
    /// New rows that refer: place of the foreign key, the row.
    refers: Vec<(usize, Row)>,
    /// Keys taken away: place of the referrer, the old row, the new one if it was an update.
    taken: Vec<(usize, Row, Option<Row>)>,
}

fn differ(columns: &[usize], a: &[Datum], b: &[Datum]) -> bool {
    columns.iter().any(|c| a[*c] != b[*c])
}

impl Pending {
    /// Whether no foreign key asks for anything.
    pub fn is_empty(&self) -> bool {
        self.refers.is_empty() && self.taken.is_empty()
    }

    /// A row was inserted.
    pub fn inserted(&mut self, target: &Target, row: &Row) {
        for i in 0..target.references.len() {
            self.refers.push((i, row.clone()));
        }
    }

    /// A row was updated.
    pub fn updated(&mut self, target: &Target, old: &[Datum], new: &[Datum]) {
        for (i, key) in target.references.iter().enumerate() {
            if differ(&key.columns, old, new) {
                self.refers.push((i, new.to_vec()));
            }
        }
        for (i, key) in target.referrers.iter().enumerate() {
            if differ(&key.columns, old, new) {
                self.taken.push((i, old.to_vec(), Some(new.to_vec())));
            }
        }
    }

    /// A row was deleted.
    pub fn deleted(&mut self, target: &Target, old: &[Datum]) {
        for i in 0..target.referrers.len() {
            self.taken.push((i, old.to_vec(), None));
        }
    }
}

impl<'a> Cx<'a> {
    /// Checks and carries out what foreign keys ask.
    pub fn settle<'s>(self, target: &'s Target, pending: Pending) -> BoxFuture<'s, Result<()>>
    where
        'a: 's,
    {
        Box::pin(async move {
            for (i, old, new) in pending.taken {
                self.key_taken(target, &target.referrers[i], &old, new.as_deref()).await?;
            }
            for (i, row) in pending.refers {
                self.refer(target, &target.references[i], &row).await?;
            }
            Ok(())
        })
    }

    /// Checks that the row referred to is there, and keeps its key there.
    async fn refer(self, target: &Target, key: &Reference, row: &Row) -> Result<()> {
        if key.columns.iter().any(|c| row[*c].is_null()) {
            return Ok(());
        }
        let parent = &key.parent;
        let wanted: Row = key.key_order.iter().map(|c| row[*c].clone()).collect();
        let mut found = match key.index {
            None => Some(parent.shape.key_prefix(&engine_row(&wanted))),
            Some(place) => {
                let mut session = self.run.core.engine.take();
                let view = newest_view(&mut session);
                let prefix = parent.shape.indexes[place].prefix(&engine_row(&wanted));
                let range = KeyRange::prefix(&prefix);
                let mut walk = session.index_scan(&parent.shape, place, range, Direction::Forward, &view);
                session.next_by_index(&mut walk).await.map_err(from_engine)?.map(|f| f.key)
            }
        };
        if let Some(bytes) = found.take() {
            let locked = {
                let mut session = self.run.core.engine.take();
                let lock = session.lock_row(&parent.shape, &bytes, LockMode::RowKeyShare, IfTaken::Wait);
                self.run.core.lock_wait(std::pin::pin!(lock)).await.map_err(from_engine)?
            };
            if let Some(locked) = locked.filter(|l| !l.ghost) {
                let mut values = Row::new();
                read_row(&locked.row, &parent.types, &mut values)?;
                let same = key.columns.iter().zip(&key.parent_columns).all(|(c, p)| row[*c] == values[*p]);
                if same {
                    return Ok(());
                }
            }
        }
        let (table, shown) = (&target.table, self.key_shown(&target.table, &key.columns, row));
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            table.shape.name, key.name
        );
        let detail = format!("{shown} is not present in table \"{}\".", parent.shape.name);
        Err(self.about(SqlError::new("23503", message).detail(detail), table.shape.oid).constraint(key.name.as_str()))
    }

    /// A key has gone: its referrers go, change, or forbid it.
    async fn key_taken(self, target: &Target, key: &Referrer, old: &[Datum], new: Option<&[Datum]>) -> Result<()> {
        if key.columns.iter().any(|c| old[*c].is_null()) {
            return Ok(());
        }
        let catalog = self.run.names.catalog.clone();
        let Some(relation) = catalog.relation(key.child) else { return Ok(()) };
        let shape = TableShape::new(&catalog, key.child).map_err(from_engine)?;
        let child = TableSlot { shape, types: column_types(relation), base: 0, name: relation.name.clone() };
        let wanted: Row = key.columns.iter().map(|c| old[*c].clone()).collect();
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        let mut rows = Vec::new();
        for (found, row) in self.children(&child, key, &wanted).await? {
            // Whoever has just changed the row may have taken it away.
            let mode = match action {
                ReferentialAction::NoAction | ReferentialAction::Restrict => LockMode::RowKeyShare,
                ReferentialAction::Cascade if new.is_none() => LockMode::RowUpdate,
                _ => LockMode::RowNoKeyUpdate,
            };
            let mut session = self.run.core.engine.take();
            let lock = session.lock_row(&child.shape, &found, mode, IfTaken::Wait);
            let locked = self.run.core.lock_wait(std::pin::pin!(lock)).await.map_err(from_engine)?;
            let Some(locked) = locked.filter(|l| !l.ghost) else { continue };
            drop(row);
            let mut row = Row::new();
            read_row(&locked.row, &child.types, &mut row)?;
            if key.child_columns.iter().zip(&wanted).all(|(c, v)| row[*c] == *v) {
                rows.push((found, row));
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        if matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict) {
            if action == ReferentialAction::NoAction && self.key_is_back(target, key, &wanted).await? {
                return Ok(());
            }
            let name = &target.table.shape.name;
            let message = format!(
                "update or delete on table \"{name}\" violates foreign key constraint \"{}\" on table \"{}\"",
                key.name, key.child_name
            );
            let shown = self.key_shown(&target.table, &key.columns, old);
            let error = SqlError::new("23503", message)
                .detail(format!("{shown} is still referenced from table \"{}\".", key.child_name));
            return Err(self.about(error, key.child).constraint(key.name.as_str()));
        }
        self.act(relation, rows, key, action, new).await
    }

    async fn act(
        self,
        relation: &clearway_engine::catalog::Relation,
        rows: Vec<(Vec<u8>, Row)>,
        key: &Referrer,
        action: ReferentialAction,
        new: Option<&[Datum]>,
    ) -> Result<()> {
        let (target, defaults) = {
            let names = &self.run.names;
            let host = super::host::CxHost { cx: self };
            let session: &dyn crate::expr::Session = &host;
            let conversion = session.conversion();
            let env = PlanEnv { catalog: &names.catalog, database: names.database, path: &names.path, conversion };
            let mut planner = Planner::new(&env);
            let target = planner.target(relation)?;
            let mut defaults = Vec::new();
            if action == ReferentialAction::SetDefault {
                for c in &key.child_columns {
                    defaults.push(planner.default_of(relation, *c)?);
                }
            }
            (target, defaults)
        };
        let mut pending = Pending::default();
        for (found, row) in rows {
            if action == ReferentialAction::Cascade && new.is_none() {
                self.write_delete(&target.table, &found, &row, Basis::Locked).await?;
                pending.deleted(&target, &row);
                continue;
            }
            let mut changed = row.clone();
            for (i, c) in key.child_columns.iter().enumerate() {
                changed[*c] = match (action, new) {
                    (ReferentialAction::Cascade, Some(new)) => new[key.columns[i]].clone(),
                    (ReferentialAction::SetDefault, _) => match &defaults[i] {
                        Some(e) => self.value(e, &[]).await?,
                        None => Datum::Null,
                    },
                    _ => Datum::Null,
                };
            }
            self.check_row(&target, &changed)?;
            self.write_update(&target, &found, &row, &changed, Basis::Locked).await?;
            pending.updated(&target, &row, &changed);
        }
        self.settle(&target, pending).await
    }

    /// Whether some row has the key again.
    async fn key_is_back(self, target: &Target, key: &Referrer, wanted: &Row) -> Result<bool> {
        let table = &target.table;
        Ok(!self.rows_with(table, &key.columns, wanted).await?.is_empty())
    }

    async fn children(self, child: &TableSlot, key: &Referrer, wanted: &Row) -> Result<Vec<(Vec<u8>, Row)>> {
        self.rows_with(child, &key.child_columns, wanted).await
    }

    /// The newest rows with these values in these columns.
    async fn rows_with(self, table: &TableSlot, columns: &[usize], wanted: &Row) -> Result<Vec<(Vec<u8>, Row)>> {
        let shape = &table.shape;
        let values = engine_row(wanted);
        let fits = columns.iter().zip(&values).all(|(c, v)| v.fits(shape.columns[*c].storage));
        if !fits {
            return Ok(Vec::new());
        }
        let covers =
            |list: &[usize]| list.len() >= columns.len() && list[..columns.len()].iter().all(|c| columns.contains(c));
        let ordered = |list: &[usize]| -> Vec<_> {
            let at = list.iter().take(columns.len()).filter_map(|c| columns.iter().position(|x| x == c));
            at.map(|i| values[i].clone()).collect()
        };
        let mut out = Vec::new();
        let mut keep = |key: Vec<u8>, row: &[clearway_engine::value::Value]| -> Result<()> {
            let mut read = Row::new();
            read_row(row, &table.types, &mut read)?;
            if columns.iter().zip(wanted).all(|(c, v)| read[*c] == *v) {
                out.push((key, read));
            }
            Ok(())
        };
        let mut session = self.run.core.engine.take();
        let view = newest_view(&mut session);
        if let Some(place) = shape.indexes.iter().position(|i| covers(&i.columns)) {
            let range = KeyRange::prefix(&shape.indexes[place].prefix(&ordered(&shape.indexes[place].columns)));
            let mut walk = session.index_scan(shape, place, range, Direction::Forward, &view);
            while let Some(found) = session.next_by_index(&mut walk).await.map_err(from_engine)? {
                keep(found.key, &found.row)?;
            }
        } else {
            let by_key = !shape.key.is_empty() && covers(&shape.key);
            let range =
                if by_key { KeyRange::prefix(&shape.key_prefix(&ordered(&shape.key))) } else { KeyRange::all() };
            let mut walk = session.scan(shape, range, Direction::Forward, &view);
            while let Some(found) = session.next(&mut walk).await.map_err(from_engine)? {
                keep(found.key, &found.row)?;
            }
        }
        Ok(out)
    }
}
