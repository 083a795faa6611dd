//! What statements that build a table's indexes anew do as PostgreSQL's do: its locks, and an id for the transaction.

use crate::core::Core;
use crate::errors::from_engine;
use clearway_engine::catalog::Catalog;
use clearway_syntax::error::Result;
use clearway_txn::lockmgr::{IfTaken, LockMode};

/// Gives the transaction its id: PostgreSQL's would have written by now.
pub fn assign_id(core: &Core) -> Result<()> {
    let mut engine = core.engine.take();
    engine.lift_read_only(true);
    let assigned = engine.txn().assign().map(drop);
    engine.lift_read_only(false);
    assigned.map_err(|e| from_engine(e.into()))
}

/// The locks of PostgreSQL's rebuild of a table's indexes.
pub async fn lock_for_rebuild(core: &Core, catalog: &Catalog, table: u32) -> Result<()> {
    let indexes: Vec<u32> = catalog.indexes(table).map(|i| i.oid).collect();
    if !indexes.is_empty() {
        core.lock_relation(table, LockMode::Share, IfTaken::Wait).await?;
    }
    for index in indexes {
        core.lock_relation(index, LockMode::AccessExclusive, IfTaken::Wait).await?;
        // Only its own lock protects it from another name (SES-7).
        core.engine.take().read_again(index);
    }
    Ok(())
}
