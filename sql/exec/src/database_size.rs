//! pg_database_size and pg_tablespace_size.
//!
//! The trees of all databases share the data files, so no files belong to one database. The nodes of each database's trees are counted
//! from the trees' inner nodes. The other pages in use (long values, the catalog, the maps of the files) are not recorded by database;
//! they are divided among the databases in proportion to these counts. So the sizes of all databases add up to the pages in use.

use super::Cx;
use super::sizes::nodes;
use clearway_context::privileges::Judge;
use clearway_engine::catalog::{Database, Object};
use clearway_storage::buffer::PAGE_BYTES;
use clearway_storage::ids::TreeId;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::types::Datum;
use std::collections::{HashMap, HashSet};

/// The tablespaces, by number and name.
const DEFAULT: (u32, &str) = (1663, "pg_default");
const GLOBAL: (u32, &str) = (1664, "pg_global");

fn bytes(pages: u64) -> Datum {
    Datum::Int8(i64::try_from(pages.saturating_mul(PAGE_BYTES as u64)).unwrap_or(i64::MAX))
}

impl Cx<'_> {
    /// pg_database_size: by number or by name. Null: there is none of this number.
    pub(super) async fn database_size(self, which: &Datum) -> Result<Datum> {
        let catalog = &self.run.names.catalog;
        let database: &Database = match which {
            Datum::Text(name) => catalog
                .database(name)
                .ok_or_else(|| SqlError::new("3D000", format!("database \"{name}\" does not exist")))?,
            number => match catalog.get(number.as_i64().unwrap_or(0) as u32).map(|object| &**object) {
                Some(Object::Database(database)) => database,
                _ => return Ok(Datum::Null),
            },
        };
        self.may_connect_or_read_statistics(database)?;
        let databases = catalog.objects().filter(|object| matches!(&***object, Object::Database(_))).count() as u64;
        let of_databases = self.nodes_of_databases().await?;
        let counted: u64 = of_databases.values().sum();
        let own = of_databases.get(&database.oid).copied().unwrap_or(0);
        let others = self.pages_in_use().saturating_sub(counted);
        let part = if counted == 0 {
            others / databases.max(1)
        } else {
            (u128::from(others) * u128::from(own) / u128::from(counted)) as u64
        };
        Ok(bytes(own + part))
    }

    /// pg_tablespace_size: all that is in use is in the default one.
    pub(super) async fn tablespace_size(self, which: &Datum) -> Result<Datum> {
        let named = |(number, name): (u32, &str)| match which {
            Datum::Text(text) => &**text == name,
            other => other.as_i64() == Some(i64::from(number)),
        };
        if named(DEFAULT) {
            return Ok(bytes(self.pages_in_use()));
        }
        match which {
            _ if named(GLOBAL) => Ok(Datum::Int8(0)),
            Datum::Text(name) => {
                Err(SqlError::new(code::UNDEFINED_OBJECT, format!("tablespace \"{name}\" does not exist")))
            }
            _ => Ok(Datum::Null),
        }
    }

    fn pages_in_use(self) -> u64 {
        self.run.core.db.transactions().store().space().pages_in_use()
    }

    /// Nodes of the trees of each database.
    async fn nodes_of_databases(self) -> Result<HashMap<u32, u64>> {
        let store = self.run.core.db.transactions().store();
        let (mut seen, mut sums) = (HashSet::new(), HashMap::new());
        for object in self.run.names.catalog.objects() {
            let (database, tree) = match &**object {
                Object::Relation(relation) => (relation.database, relation.tree),
                Object::Index(index) => (index.database, index.tree),
                _ => continue,
            };
            // A table and its primary key are one tree.
            if tree != 0 && seen.insert(tree) {
                self.breathe().await?;
                // A tree that is dropped meanwhile has no nodes.
                *sums.entry(database).or_default() += nodes(&store.tree(TreeId(tree))).await.unwrap_or(0);
            }
        }
        Ok(sums)
    }

    fn may_connect_or_read_statistics(self, database: &Database) -> Result<()> {
        let judge = Judge::of(self.run.core, &self.run.names.catalog);
        let object = self.run.names.catalog.get(database.oid);
        if object.is_some_and(|object| judge.may_with(object, 'c')) || judge.may_watch(0) {
            return Ok(());
        }
        Err(SqlError::new("42501", format!("permission denied for database {}", database.name)))
    }
}
