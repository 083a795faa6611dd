//! Makes and finds the two tables of large objects.

use std::sync::Arc;

use crate::catalog::{Column, Object, Oid, Relation};
use crate::db::Db;
use crate::error::EngineError;
use crate::session::{Durability, Session, TxnOptions};
use crate::table::shape::TableShape;
use crate::value::Storage;

/// The number of the table of pages: PostgreSQL's number of pg_largeobject.
pub const PAGES_TABLE: Oid = 2613;
/// The number of the table of objects: PostgreSQL's number of pg_largeobject_metadata.
pub const METADATA_TABLE: Oid = 2995;
/// The number of the schema pg_catalog, of which the catalog has no object.
const SYSTEM_SCHEMA: Oid = 11;

const OID: Oid = 26;
const INT4: Oid = 23;
const BYTEA: Oid = 17;
const TEXT: Oid = 25;

/// The shapes of the two tables, that of the pages first.
type Shapes = (Arc<TableShape>, Arc<TableShape>);

fn column(name: &str, storage: Storage, type_oid: Oid, not_null: bool) -> Column {
    let (name, storage) = (name.to_owned(), storage.code());
    Column { name, storage, type_oid, type_mod: -1, not_null, ..Column::default() }
}

fn pages(tree: u64) -> Relation {
    let columns = vec![
        column("database", Storage::Int(8), OID, true),
        column("loid", Storage::Int(8), OID, true),
        column("pageno", Storage::Int(4), INT4, true),
        column("data", Storage::Bytes, BYTEA, true),
    ];
    Relation { key: vec![0, 1, 2], ..Relation::table(PAGES_TABLE, 0, SYSTEM_SCHEMA, "pg_largeobject", columns, tree) }
}

fn metadata(tree: u64) -> Relation {
    let columns = vec![
        column("database", Storage::Int(8), OID, true),
        column("oid", Storage::Int(8), OID, true),
        column("lomowner", Storage::Int(8), OID, true),
        column("lomacl", Storage::Bytes, TEXT, false),
        column("comment", Storage::Bytes, TEXT, false),
    ];
    let name = "pg_largeobject_metadata";
    Relation { key: vec![0, 1], ..Relation::table(METADATA_TABLE, 0, SYSTEM_SCHEMA, name, columns, tree) }
}

async fn make(session: &mut Session) -> Result<(), EngineError> {
    for relation in [pages, metadata] {
        let tree = session.create_tree().await?;
        session.put_object(Object::Relation(relation(tree.0))).await?;
    }
    session.commit(Durability::Wait).await
}

impl Db {
    fn large_object_tables(&self) -> Result<Option<Shapes>, EngineError> {
        if let Some(tables) = self.large_objects().get() {
            return Ok(Some(tables.clone()));
        }
        let catalog = self.catalog();
        if catalog.relation(METADATA_TABLE).is_none() {
            return Ok(None);
        }
        let tables = (TableShape::new(&catalog, PAGES_TABLE)?, TableShape::new(&catalog, METADATA_TABLE)?);
        Ok(Some(self.large_objects().get_or_init(|| tables).clone()))
    }

    /// The tables, which the first caller in a directory makes.
    pub(super) async fn made_large_object_tables(self: &Arc<Self>) -> Result<Shapes, EngineError> {
        loop {
            if let Some(tables) = self.large_object_tables()? {
                return Ok(tables);
            }
            let mut session = self.session(0, 0);
            session.begin(TxnOptions::default());
            match make(&mut session).await {
                // Another session has made them meanwhile.
                Err(EngineError::Exists { .. } | EngineError::Overtaken { .. }) => session.roll_back().await?,
                Err(error) => {
                    session.roll_back().await?;
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
    }
}

impl Session {
    /// The table of pages; none: no object was ever created.
    pub(super) fn page_table(&self) -> Result<Option<Arc<TableShape>>, EngineError> {
        Ok(self.db().large_object_tables()?.map(|(pages, _)| pages))
    }

    /// The table of objects, likewise.
    pub(super) fn metadata_table(&self) -> Result<Option<Arc<TableShape>>, EngineError> {
        Ok(self.db().large_object_tables()?.map(|(_, metadata)| metadata))
    }
}
