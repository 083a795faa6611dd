//! REINDEX: builds indexes anew from their tables.

use super::Ddl;
use crate::context::errors::in_block;
use crate::context::privileges;
use crate::context::rebuild::assign_id;
use crate::error::{Result, SqlError, code};
use crate::planner::calls::may_build;
use crate::planner::environment::{relation_oid, with_env};
use crate::syntax::stmt::{Reindex, ReindexTarget};
use clearway_engine::catalog::{Catalog, Object, RelationKind};
use clearway_txn::lockmgr::LockMode;

/// What takes its locks table by table can't be part of a transaction.
///
/// # Errors
/// 25001.
fn may_run(r: &Reindex, shares_transaction: bool) -> Result<()> {
    let what = match r.target {
        _ if !shares_transaction => return Ok(()),
        _ if r.concurrently => "REINDEX CONCURRENTLY",
        ReindexTarget::Schema => "REINDEX SCHEMA",
        ReindexTarget::Database => "REINDEX DATABASE",
        ReindexTarget::System => "REINDEX SYSTEM",
        ReindexTarget::Index | ReindexTarget::Table => return Ok(()),
    };
    Err(in_block(what))
}

/// The locks of a table and of its indexes.
fn modes(concurrently: bool) -> (LockMode, LockMode) {
    match concurrently {
        true => (LockMode::ShareUpdateExclusive, LockMode::ShareUpdateExclusive),
        false => (LockMode::Share, LockMode::AccessExclusive),
    }
}

impl Ddl<'_> {
    /// REINDEX. A read-only transaction may do it, too, as in PostgreSQL.
    pub(super) async fn reindex(&self, r: &Reindex, shares_transaction: bool) -> Result<()> {
        may_run(r, shares_transaction)?;
        self.core.engine.take().lift_read_only(true);
        let done = self.reindex_named(r).await;
        self.core.engine.take().lift_read_only(false);
        done
    }

    async fn reindex_named(&self, r: &Reindex) -> Result<()> {
        let core = self.core;
        if matches!(r.target, ReindexTarget::Schema | ReindexTarget::Database | ReindexTarget::System) {
            return self.reindex_all(r).await;
        }
        let mut locked = None;
        // What the name leads to, and leads to still when it is locked.
        let (catalog, table, index) = loop {
            let catalog = core.catalog();
            let (table, index) = match r.target {
                ReindexTarget::Index => {
                    let index = with_env(core, &catalog, |env| env.index(&r.name).map(|i| (i.table, Some(i.oid))));
                    index.map_err(|e| if e.code() == "42704" { self.no_such("relation", &r.name) } else { e })?
                }
                _ => (relation_oid(core, &r.name)?.0, None),
            };
            if locked == Some((table, index)) {
                break (catalog, table, index);
            }
            self.own_oid(&catalog, table)?;
            let (on_table, on_index) = modes(r.concurrently);
            self.lock(table, on_table).await?;
            if let Some(index) = index {
                self.lock(index, on_index).await?;
            }
            locked = Some((table, index));
        };
        if self.reindex_one(&catalog, table, index, r.concurrently).await? {
            return Ok(());
        }
        Err(super::missing("relation", r.name.name()).at(r.name.pos))
    }

    /// The tables of a schema or of the database, one after the other; one that has gone meanwhile is left out.
    async fn reindex_all(&self, r: &Reindex) -> Result<()> {
        let core = self.core;
        let catalog = core.catalog();
        let schema = match r.target {
            ReindexTarget::Schema => {
                Some(catalog.schema(core.database, r.name.name()).map(|s| s.oid).ok_or_else(|| {
                    SqlError::new(code::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", r.name.name()))
                })?)
            }
            _ => None,
        };
        // The owner of the schema or of the database may; tables of others are left out all the same.
        if let Some(object) = catalog.get(schema.unwrap_or(core.database)) {
            privileges::owns(core, &catalog, object)?;
        }
        let mut tables: Vec<u32> = catalog
            .objects()
            .filter_map(|o| match &**o {
                Object::Relation(t) if t.database == core.database && schema.is_none_or(|s| s == t.schema) => Some(t),
                _ => None,
            })
            .filter(|t| {
                t.kind != RelationKind::View
                    && privileges::owns(core, &catalog, &Object::Relation((*t).clone())).is_ok()
            })
            .map(|t| t.oid)
            .collect();
        tables.sort_unstable();
        for table in tables {
            let catalog = core.catalog();
            if catalog.relation(table).is_some() {
                self.reindex_one(&catalog, table, None, r.concurrently).await?;
            }
        }
        Ok(())
    }

    /// False: it has gone during the wait for its lock.
    async fn reindex_one(&self, catalog: &Catalog, table: u32, index: Option<u32>, concurrently: bool) -> Result<bool> {
        let core = self.core;
        if let Some(object) = catalog.get(table) {
            privileges::owns(core, catalog, object)?;
        }
        let (on_table, on_index) = modes(concurrently);
        self.lock(table, on_table).await?;
        let there = core.catalog();
        if there.relation(table).is_none() || index.is_some_and(|oid| there.index(oid).is_none()) {
            return Ok(false);
        }
        let all: Vec<u32> = match index {
            Some(index) => vec![index],
            None => core.catalog().indexes(table).map(|i| i.oid).collect(),
        };
        for index in all {
            self.lock(index, on_index).await?;
            let there = core.catalog();
            if let (Some(table), Some(index)) = (there.relation(table), there.index(index)) {
                may_build(&there, table, index)?;
            }
            // CONCURRENTLY takes its locks: rows and entries are changed together, and no dead ones collect.
            if !concurrently {
                let _working = self.shows_index(table, index, "REINDEX");
                self.rebuild_index(index).await?;
            }
        }
        if !concurrently {
            // Also where there was nothing to build.
            assign_id(core)?;
            core.engine.take().lift_read_only(true);
        }
        Ok(true)
    }
}
