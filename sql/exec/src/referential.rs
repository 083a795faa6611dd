//! The actions of foreign keys: the rows that refer to a key which has gone are found, and deleted or changed, in runs.
//!
//! # Life of a run
//! some rows that refer to the key are found, with the newest view -> each is changed as it was found; where it is not that row any more it is locked, read and judged
//! again -> the next run begins behind the last row that was found
//!
//! # Invariants
//! - REF-1: a run has at most [`RUN`] rows, so an action on any number of rows takes the memory of some. Each run has a view of its own, the newest: a transaction that adds
//!   a row with the key waits for this one, which has the row that had the key. What earlier runs have changed the view shows as it is now.
//! - REF-2: a row that is changed as it was found has no lock in memory but its tag, so an action on many rows takes no lock for each. Under repeatable read each is locked
//!   first, since it has to be judged by the snapshot.

use super::change::{engine_row, newest_view};
use super::convert::read_row;
use super::foreign::Search;
use super::foreign_values::in_child;
use super::pending::Pending;
use super::{Cx, Row};
use clearway_context::errors::from_engine;
use clearway_engine::catalog::{IndexState, ReferentialAction};
use clearway_engine::value::Value;
use clearway_planner::plan::{Referrer, Target};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_syntax::error::Result;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};
use clearway_values::expr::Bound;
use clearway_values::types::Datum;
use std::sync::Arc;

/// So many rows are found at a time.
const RUN: usize = 256;

/// The last row that was found: the index by which it was, 0 for the table itself, and its entry or key there.
pub(super) type Last = (u32, Vec<u8>);

/// Some rows with certain values.
#[derive(Default)]
pub(super) struct Found {
    /// What shows them.
    pub(super) view: View,
    /// Their keys, and the rows.
    pub(super) rows: Vec<(Vec<u8>, Row)>,
    /// Behind which there may be more; none: there are no more.
    pub(super) last: Option<Last>,
}

/// What is done to rows whose key has gone.
struct Act<'a> {
    target: &'a Target,
    key: &'a Referrer,
    wanted: &'a Row,
    action: ReferentialAction,
    /// The new row with the key, if it was an update.
    new: Option<&'a [Datum]>,
    defaults: Vec<Option<Bound>>,
}

impl Act<'_> {
    fn deletes(&self) -> bool {
        self.action == ReferentialAction::Cascade && self.new.is_none()
    }
}

impl Cx<'_> {
    /// A key has gone: its referrers go, change, or forbid it.
    pub(super) async fn key_taken(
        self,
        pending: &mut Pending,
        (at, place): (usize, usize),
        old: &[Datum],
        new: Option<&[Datum]>,
    ) -> Result<()> {
        let key = &pending.targets[at].referrers[place];
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        if matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict) {
            return self.forbid(pending, (at, place), old, action).await;
        }
        self.lock_for_key(pending, key.child, LockMode::RowExclusive).await?;
        let key = pending.targets[at].clone().referrers[place].clone();
        let catalog = self.catalog_of(pending).clone();
        let target = match pending.targets.iter().find(|t| t.table.shape.oid == key.child) {
            Some(known) => known.clone(),
            None => {
                pending.targets.push(Arc::new(self.target_in(&catalog, key.child)?));
                pending.targets[pending.targets.len() - 1].clone()
            }
        };
        let wanted: Row = key.columns.iter().map(|c| old[*c].clone()).collect();
        let mut act = Act { target: &target, key: &key, wanted: &wanted, action, new, defaults: Vec::new() };
        let search = Search { table: &target.table, columns: &key.child_columns, wanted: &wanted };
        let mut behind = None;
        loop {
            let found = self.some_with(search, behind.take()).await?;
            if !found.rows.is_empty() {
                self.act(pending, &mut act, found.view, found.rows).await?;
            }
            match found.last {
                Some(last) => behind = Some(last),
                None => break,
            }
        }
        // What was written may be the very key that is going.
        if action == ReferentialAction::SetDefault {
            return self.forbid(pending, (at, place), old, ReferentialAction::NoAction).await;
        }
        Ok(())
    }

    /// Deletes or changes rows that refer to a key that has gone.
    async fn act(self, pending: &mut Pending, act: &mut Act<'_>, view: View, rows: Vec<(Vec<u8>, Row)>) -> Result<()> {
        pending.acted = true;
        let key = act.key;
        if act.action == ReferentialAction::SetDefault && act.defaults.is_empty() {
            let catalog = self.catalog_of(pending).clone();
            let Some(relation) = catalog.relation(key.child) else { return Ok(()) };
            let columns = key.child_columns.iter();
            act.defaults = self.with_planner(&catalog, |p| columns.map(|c| p.default_of(relation, *c)).collect())?;
        }
        let mode = if act.deletes() { LockMode::RowUpdate } else { LockMode::RowNoKeyUpdate };
        let search = Search { table: &act.target.table, columns: &key.child_columns, wanted: act.wanted };
        for (row_key, row) in rows {
            self.breathe().await?;
            self.run.core.limits.check_undo(self.run.core)?;
            // REF-2
            if !self.in_snapshot() && self.act_on(pending, act, (&row_key, &row), Basis::Read(view)).await? {
                continue;
            }
            let locked = self.still_refers(search, &view, &row_key, (mode, IfTaken::Wait)).await?;
            if let Some((row_key, row)) = locked {
                self.act_on(pending, act, (&row_key, &row), Basis::Locked).await?;
            }
        }
        Ok(())
    }

    /// Deletes or changes one of them; false: it is not the row that was found any more.
    async fn act_on(
        self,
        pending: &mut Pending,
        act: &Act<'_>,
        (row_key, row): (&[u8], &Row),
        basis: Basis,
    ) -> Result<bool> {
        let target = act.target;
        if act.deletes() {
            if self.write_delete(&target.table, row_key, row, basis).await? != Changed::Done {
                return Ok(false);
            }
            pending.deleted(target, row)?;
        } else {
            let changed = match self.row_after_action(act, row).await {
                Ok(changed) => changed,
                // The row that was found may be no more.
                Err(_) if matches!(basis, Basis::Read(_)) => return Ok(false),
                Err(error) => return Err(error),
            };
            if self.write_update(target, row_key, row, &changed, basis).await? != Changed::Done {
                return Ok(false);
            }
            let own = self.updated_own(target);
            pending.updated(target, row, &changed, own)?;
        }
        self.keep_small(pending).await?;
        Ok(true)
    }

    /// A row that refers to a key that has gone, with what stands in its place.
    async fn row_after_action(self, act: &Act<'_>, row: &Row) -> Result<Row> {
        let (target, key) = (act.target, act.key);
        let mut changed = row.clone();
        for (i, c) in key.child_columns.iter().enumerate() {
            // A list is of ON DELETE alone.
            if act.new.is_none() && !key.delete_columns.is_empty() && !key.delete_columns.contains(c) {
                continue;
            }
            changed[*c] = match (act.action, act.new) {
                (ReferentialAction::Cascade, Some(new)) => {
                    in_child(new[key.columns[i]].clone(), target.table.types[*c])?
                }
                (ReferentialAction::SetDefault, _) => match act.defaults.get(i) {
                    Some(Some(e)) => self.value(e, &[]).await?,
                    _ => Datum::Null,
                },
                _ => Datum::Null,
            };
        }
        match target.checks_wait {
            false => self.complete_row(target, &mut changed)?,
            true => Box::pin(self.complete_guarded(target, &[], &mut changed)).await?,
        }
        Ok(changed)
    }

    /// Whether there is a row with these values in these columns.
    pub(super) async fn any_with(self, search: Search<'_>) -> Result<bool> {
        let mut behind = None;
        loop {
            let found = self.some_with(search, behind.take()).await?;
            match found.last {
                _ if !found.rows.is_empty() => return Ok(true),
                Some(last) => behind = Some(last),
                None => return Ok(false),
            }
        }
    }

    /// Newest rows with these values in these columns, at most [`RUN`], behind `behind`.
    pub(super) async fn some_with(self, search: Search<'_>, behind: Option<Last>) -> Result<Found> {
        let Search { table, columns, wanted } = search;
        let shape = &table.shape;
        let values = engine_row(wanted);
        let fits = columns.iter().zip(&values).all(|(c, v)| v.fits(shape.columns[*c].storage));
        if !fits {
            return Ok(Found::default());
        }
        let covers =
            |list: &[usize]| list.len() >= columns.len() && list[..columns.len()].iter().all(|c| columns.contains(c));
        let ordered = |list: &[usize]| -> Vec<_> {
            let at = list.iter().take(columns.len()).filter_map(|c| columns.iter().position(|x| x == c));
            at.map(|i| values[i].clone()).collect()
        };
        let mut rows = Vec::new();
        let mut keep = |key: Vec<u8>, row: &[Value]| -> Result<usize> {
            let mut read = Row::new();
            read_row(row, &table.types, &mut read)?;
            if columns.iter().zip(wanted).all(|(c, v)| read[*c] == *v) {
                rows.push((key, read));
            }
            Ok(rows.len())
        };
        let mut session = self.run.core.engine.take();
        let (view, mut last) = (newest_view(&mut session), None);
        if let Some(place) =
            shape.indexes.iter().position(|i| i.state == IndexState::Public && i.is_plain() && covers(&i.columns))
        {
            let index = &shape.indexes[place];
            let range = KeyRange::prefix(&index.prefix(&ordered(&index.columns)));
            let range = rest_of(range, index.oid, behind);
            let mut walk = session.index_scan(shape, place, range, Direction::Forward, &view);
            while let Some(found) = session.next_by_index(&mut walk).await.map_err(from_engine)? {
                if keep(found.key, &found.row)? == RUN {
                    last = Some((index.oid, walk.entry().to_vec()));
                    break;
                }
            }
        } else {
            let by_key = !shape.key.is_empty() && covers(&shape.key);
            let range =
                if by_key { KeyRange::prefix(&shape.key_prefix(&ordered(&shape.key))) } else { KeyRange::all() };
            let mut walk = session.scan(shape, rest_of(range, 0, behind), Direction::Forward, &view);
            while let Some(found) = session.next(&mut walk).await.map_err(from_engine)? {
                let key = found.key.clone();
                if keep(found.key, &found.row)? == RUN {
                    last = Some((0, key));
                    break;
                }
            }
        }
        Ok(Found { view, rows, last })
    }
}

/// What of a range is behind the last row that was found there; all of it, if that was found elsewhere.
fn rest_of(mut range: KeyRange, index: u32, behind: Option<Last>) -> KeyRange {
    if let Some((_, mut last)) = behind.filter(|(found_by, _)| *found_by == index) {
        last.push(0);
        range.from = last;
    }
    range
}
