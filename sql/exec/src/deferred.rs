//! Executes deferred constraint checks, and checks of unique constraints that run after the statement (sql/context/src/deferred.rs).

use super::foreign::Search;
use super::pending::Pending;
use super::shown::detailed;
use super::{Cx, Row};
use crate::change::engine_row;
use clearway_context::deferred::Check;
use clearway_context::errors::{from_engine, is_lock_not_available};
use clearway_engine::error::EngineError;
use clearway_planner::generated::LateUnique;
use clearway_planner::plan::Target;
use clearway_storage::ids::TreeId;
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};

impl Cx<'_> {
    /// Makes checks that were put off.
    pub async fn settle_deferred(self, checks: Vec<Check>) -> Result<()> {
        for check in checks {
            self.breathe().await?;
            let catalog = self.run.core.catalog();
            let table = check.table();
            if catalog.relation(table).is_none() {
                continue;
            }
            let target = self.target_in(&catalog, table)?;
            match check {
                Check::Refers(_, name, row) => self.refers_still(&target, &name, &row).await?,
                Check::Taken { child, name, old, .. } => {
                    let place = target.referrers.iter().position(|key| key.child == child && key.name == name);
                    if let Some(place) = place {
                        let mut pending = Pending::default();
                        let at = pending.place_of(&target);
                        self.forbid_taken(&mut pending, (at, place), &old).await?;
                    }
                }
                Check::Unique(_, name, row) => {
                    if let Some(unique) = target.uniques.iter().find(|unique| unique.name == name) {
                        self.check_unique(&target, unique, &row).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A row that refers to nothing is no violation if it has gone meanwhile, or refers to something else.
    async fn refers_still(self, target: &Target, name: &str, row: &Row) -> Result<()> {
        let Some(place) = target.references.iter().position(|key| key.name == name) else { return Ok(()) };
        let mut pending = Pending::default();
        let at = pending.place_of(target);
        match self.refer(&mut pending, (at, place), row).await {
            Err(violation) => self.unless_replaced(target, place, row, violation).await,
            Ok(()) => Ok(()),
        }
    }

    /// A check of a statement. An action may have changed the row since: then the new version has a check of its own.
    pub(super) async fn refer_unless_replaced(
        self,
        pending: &mut Pending,
        (at, place): (usize, usize),
        row: &Row,
    ) -> Result<()> {
        match self.refer(pending, (at, place), row).await {
            Err(violation) if pending.acted => {
                let target = pending.target(at);
                self.unless_replaced(&target, place, row, violation).await
            }
            done => done,
        }
    }

    async fn unless_replaced(self, target: &Target, place: usize, row: &Row, violation: SqlError) -> Result<()> {
        let columns = &target.references[place].columns;
        let wanted: Row = columns.iter().map(|c| row[*c].clone()).collect();
        let search = Search { table: &target.table, columns, wanted: &wanted };
        if violation.code() == "23503" && !self.any_with(search).await? {
            return Ok(());
        }
        Err(violation)
    }

    /// A row has come under a unique constraint whose check is put off: takes the lock on the key if it is free (DFR-2). Another
    /// transaction that has it was there first, or is checking; the check waits for it then.
    pub(super) async fn claim_unique(self, target: &Target, late: Option<(usize, Row)>) -> Result<()> {
        let Some((place, row)) = late else { return Ok(()) };
        match self.lock_unique(target, &target.uniques[place], &row, IfTaken::Fail).await {
            Err(taken) if is_lock_not_available(&taken) => Ok(()),
            done => done.map(drop).map_err(from_engine),
        }
    }

    /// Locks the key of a row under a unique constraint to the end of the transaction. False: nothing is unique of it.
    async fn lock_unique(
        self,
        target: &Target,
        unique: &LateUnique,
        row: &Row,
        if_taken: IfTaken,
    ) -> std::result::Result<bool, EngineError> {
        if !unique.nulls_not_distinct && unique.columns.iter().any(|c| row[*c].is_null()) {
            return Ok(false);
        }
        let wanted: Row = unique.columns.iter().map(|c| row[*c].clone()).collect();
        let shape = &target.table.shape;
        let Some(index) = shape.indexes.iter().find(|index| index.oid == unique.index) else { return Ok(false) };
        let key = index.prefix(&engine_row(&wanted));
        let tag = LockTag::UniqueKey { tree: TreeId(unique.tree), key: key.into() };
        let mut session = self.run.core.engine.take();
        let lock = session.lock(tag, LockMode::Exclusive, LockScope::Transaction, if_taken);
        self.run.core.lock_wait(std::pin::pin!(lock)).await?;
        Ok(true)
    }

    /// Checks that no other row has the values of a row in the columns of a unique constraint that may be put off. The lock on the key is
    /// held to the end: a transaction that checks the same key later sees this row.
    pub(super) async fn check_unique(self, target: &Target, unique: &LateUnique, row: &Row) -> Result<()> {
        let shape = &target.table.shape;
        let wanted: Row = unique.columns.iter().map(|c| row[*c].clone()).collect();
        let search = Search { table: &target.table, columns: &unique.columns, wanted: &wanted };
        let stay = match self.lock_unique(target, unique, row, IfTaken::Fail).await {
            Ok(is_unique) => is_unique && self.several_stay(search).await?,
            // The transaction that has the key may end, and the rows that stay without it are not its own.
            Err(taken) if is_lock_not_available(&taken) => {
                self.several_stay(search).await? || {
                    self.lock_unique(target, unique, row, IfTaken::Wait).await.map_err(from_engine)?;
                    self.several_stay(search).await?
                }
            }
            Err(e) => return Err(from_engine(e)),
        };
        if !stay {
            return Ok(());
        }
        let message = format!("duplicate key value violates unique constraint \"{}\"", unique.name);
        let detail = self.key_shown(&target.table, &unique.columns, row).map(|key| format!("{key} already exists."));
        let error = self.about(detailed(SqlError::new("23505", message), detail), shape.oid);
        Err(error.constraint(unique.name.as_str()))
    }

    /// Whether several rows have the values still when the transactions that are deleting or changing them have ended. A transaction that has only
    /// locked one of them is not waited for.
    async fn several_stay(self, search: Search<'_>) -> Result<bool> {
        let mut settled: Vec<Vec<u8>> = Vec::new();
        loop {
            self.breathe().await?;
            let found = self.some_with(search, None).await?.rows;
            if found.len() < 2 {
                return Ok(false);
            }
            // One whose key was changed is found again at the new one.
            let next = found.into_iter().map(|(key, _)| key).find(|key| !settled.contains(key));
            let Some(next) = next else { return Ok(true) };
            {
                let mut session = self.run.core.engine.take();
                let settle = session.committed_at(&search.table.shape, &next);
                self.run.core.lock_wait(std::pin::pin!(settle)).await.map_err(from_engine)?;
            }
            settled.push(next);
        }
    }
}
