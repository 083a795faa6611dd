//! pg_relation_size and its variants, computed from the pages of trees.
//!
//! A tree's nodes are counted from its inner nodes, because a stored count would have to change with each split. Long values
//! (PostgreSQL's TOAST) are in chains of pages that only the leaves refer to, so a size that includes them visits every leaf.

use super::Cx;
use clearway_base::sync::sleep;
use clearway_context::errors::from_engine;
use clearway_engine::catalog::Object;
use clearway_storage::btree::Tree;
use clearway_storage::buffer::PAGE_BYTES;
use clearway_storage::error::StorageError;
use clearway_storage::ids::TreeId;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::HostFunction;
use clearway_values::types::Datum;
use std::time::Duration;

/// What of a relation is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// The rows of a table, or the entries of an index, without long values.
    Main,
    /// The same with long values.
    Table,
    /// The indexes of a table.
    Indexes,
    /// A table with long values and indexes.
    Total,
    /// What is not kept apart.
    Nothing,
}

impl Cx<'_> {
    /// The functions about sizes, and what is none of them.
    pub(super) async fn size_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        use HostFunction as F;
        let size = match function {
            F::RelationSize => Size::Main,
            F::RelationForkSize => match args.get(1).and_then(Datum::as_str) {
                Some("main") => Size::Main,
                // Free space and visibility are kept in the trees themselves.
                Some("fsm" | "vm" | "init") => Size::Nothing,
                _ => {
                    let hint = "Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".";
                    return Err(SqlError::new("22023", "invalid fork name").hint(hint));
                }
            },
            F::TableSize => Size::Table,
            F::IndexesSize => Size::Indexes,
            F::TotalRelationSize => Size::Total,
            F::DatabaseSize | F::DatabaseSizeNamed => return self.database_size(&args[0]).await,
            F::TablespaceSize | F::TablespaceSizeNamed => return self.tablespace_size(&args[0]).await,
            _ => return self.advisory_call(function, args).await,
        };
        self.size_of(args.first().and_then(Datum::as_i64).unwrap_or(0) as u32, size).await
    }

    /// Bytes; null: no such relation.
    async fn size_of(self, oid: u32, size: Size) -> Result<Datum> {
        let catalog = &self.run.names.catalog;
        let own = match catalog.get(oid).map(|o| &**o) {
            Some(Object::Relation(r)) => r.tree,
            Some(Object::Index(i)) => i.tree,
            _ => return Ok(Datum::Null),
        };
        let store = self.run.core.db.transactions().store();
        let mut pages = 0;
        if own != 0 {
            let tree = store.tree(TreeId(own));
            pages += match size {
                Size::Main => nodes(&tree).await?,
                Size::Table | Size::Total => all_pages(&tree).await?,
                Size::Indexes | Size::Nothing => 0,
            };
        }
        if matches!(size, Size::Indexes | Size::Total) {
            let mut trees: Vec<u64> = catalog.indexes(oid).map(|i| i.tree).filter(|t| *t != 0 && *t != own).collect();
            trees.sort_unstable();
            trees.dedup();
            for tree in trees {
                pages += nodes(&store.tree(TreeId(tree))).await?;
            }
        }
        Ok(Datum::Int8(pages as i64 * PAGE_BYTES as i64))
    }
}

pub(super) async fn nodes(tree: &Tree) -> Result<u64> {
    tree.count_nodes().await.map_err(|error| from_engine(error.into()))
}

/// With long values. The checker is meant for trees at rest and may call one damaged that changes meanwhile: then it looks again.
async fn all_pages(tree: &Tree) -> Result<u64> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match tree.check().await {
            Ok(report) => return Ok(report.pages.len() as u64),
            Err(StorageError::Corruption(_)) if attempts < 5 => sleep(Duration::from_millis(20)).await,
            Err(StorageError::Corruption(found)) => {
                let message = "the pages of the relation could not be counted: it changes, or it is damaged";
                return Err(SqlError::new("55006", message).detail(found.to_string()));
            }
            Err(error) => return Err(from_engine(error.into())),
        }
    }
}
