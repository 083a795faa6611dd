//! pg_db_role_setting: what sessions of a role, of a database, of both or of all begin with.

use super::catalog::{Changeable, Edit, Here, number};
use super::databases::by_oid;
use crate::limits::is_limit;
use crate::privileges::role_by_oid;
use crate::settings::find;
use clearway_engine::catalog::{BOOTSTRAP_ROLE, Object};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::{Datum, Oid};

/// Names and values.
type List = Vec<(String, String)>;

/// pg_db_role_setting.
pub(super) struct RoleSettings;

/// `setconfig` of a row: `name=value` in each element.
fn settings(here: Here<'_>, row: &[Datum]) -> Result<List> {
    let Some(Datum::Array(array)) = row.get(2) else {
        return Err(SqlError::unsupported("a row of pg_db_role_setting without settings"));
    };
    let whole = number(row, 0) == 0 && number(row, 1) != 0;
    let mut list = List::new();
    for element in &array.values {
        let given = element.as_str().unwrap_or("");
        let Some((name, value)) = given.split_once('=') else {
            let message = format!("\"{given}\" in setconfig is not of the form name=value");
            return Err(SqlError::new("22023", message));
        };
        here.core.settings.lock().check(name, value)?;
        if is_limit(name) && !whole {
            return Err(SqlError::unsupported(format!("the limit {name} of other sessions than those of a role")));
        }
        let name = find(name).map_or_else(|| name.to_lowercase(), |setting| setting.name.to_owned());
        list.push((name, value.to_owned()));
    }
    if list.is_empty() {
        return Err(SqlError::unsupported("a row of pg_db_role_setting without settings"));
    }
    Ok(list)
}

/// The object that keeps the settings of a database and a role, 0 for all.
fn keeper(here: Here<'_>, database: Oid, role: Oid) -> Option<Oid> {
    match (database, role) {
        (0, 0) => Some(BOOTSTRAP_ROLE),
        (database, 0) => by_oid(here.catalog, database).map(|found| found.oid),
        (0, role) => role_by_oid(here.catalog, role).map(|found| found.oid),
        (database, role) => {
            by_oid(here.catalog, database)?;
            role_by_oid(here.catalog, role).map(|found| found.oid)
        }
    }
}

/// That object with these settings; none: it has gone.
fn with_settings(here: Here<'_>, (database, role): (Oid, Oid), list: List) -> Option<Object> {
    if role == 0 && database != 0 {
        let mut found = by_oid(here.catalog, database)?.clone();
        found.settings = list;
        return Some(Object::Database(found));
    }
    let mut found = role_by_oid(here.catalog, keeper(here, database, role)?)?.clone();
    if role == 0 {
        found.settings_of_all = list;
    } else {
        found.settings.retain(|s| s.0 != database);
        found.settings.extend(list.into_iter().map(|(name, value)| (database, name, value)));
    }
    Some(Object::Role(found))
}

impl Changeable for RoleSettings {
    fn name(&self) -> &'static str {
        "pg_db_role_setting"
    }

    fn key(&self) -> (&'static str, &'static [usize]) {
        ("pg_db_role_setting_databaseid_rol_index", &[0, 1])
    }

    fn columns(&self) -> &'static [&'static str] {
        &["setconfig"]
    }

    fn has_free_rows(&self) -> bool {
        true
    }

    fn nullable(&self) -> &'static [&'static str] {
        &["setconfig"]
    }

    fn kept_by(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        keeper(here, number(row, 0), number(row, 1))
    }

    fn about(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        keeper(here, number(row, 0), number(row, 1))
    }

    fn edits(&self, here: Here<'_>, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<Vec<Edit>> {
        let list = new.map_or(Ok(List::new()), |new| settings(here, new))?;
        let Some(row) = new.or(old) else { return Ok(Vec::new()) };
        let object = with_settings(here, (number(row, 0), number(row, 1)), list);
        let object =
            object.ok_or_else(|| SqlError::unsupported("settings of a role or database that does not exist"))?;
        Ok(vec![Edit::Put(Box::new(object))])
    }
}
