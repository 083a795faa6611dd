//! pg_database: what ALTER DATABASE changes of a database.

use super::catalog::{Changeable, Edit, Here, limit, number};
use clearway_engine::catalog::{Catalog, Database, Object};
use clearway_syntax::error::Result;
use clearway_values::types::{Datum, Oid};

/// The place of `datconnlimit`.
const CONNECTION_LIMIT: usize = 7;

/// pg_database.
pub(super) struct Databases;

/// A database by its number.
pub(super) fn by_oid(catalog: &Catalog, oid: Oid) -> Option<&Database> {
    match &**catalog.get(oid)? {
        Object::Database(database) => Some(database),
        _ => None,
    }
}

impl Changeable for Databases {
    fn name(&self) -> &'static str {
        "pg_database"
    }

    fn key(&self) -> (&'static str, &'static [usize]) {
        ("pg_database_oid_index", &[0])
    }

    fn columns(&self) -> &'static [&'static str] {
        &["datconnlimit"]
    }

    fn has_free_rows(&self) -> bool {
        false
    }

    fn nullable(&self) -> &'static [&'static str] {
        &["daticulocale", "datcollversion", "datacl"]
    }

    fn kept_by(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        by_oid(here.catalog, number(row, 0)).map(|database| database.oid)
    }

    fn edits(&self, here: Here<'_>, _old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<Vec<Edit>> {
        let found = new.and_then(|new| Some((new, by_oid(here.catalog, number(new, 0))?)));
        let Some((new, database)) = found else { return Ok(Vec::new()) };
        let database = Database { connection_limit: limit(new, CONNECTION_LIMIT)?, ..database.clone() };
        Ok(vec![Edit::Put(Box::new(Object::Database(database)))])
    }
}
