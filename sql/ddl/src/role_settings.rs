//! ALTER ROLE ... SET, ALTER DATABASE ... SET: settings with which later sessions begin.
//!
//! Source: PostgreSQL 15's AlterRoleSet and AlterDatabaseSet (src/backend/commands/user.c, dbcommands.c) and AlterSetting
//! (src/backend/catalog/pg_db_role_setting.c), for the rights and the errors.

use super::{Ddl, missing};
use crate::context::limits::is_limit;
use crate::context::privileges::Judge;
use crate::context::set_value::set_value;
use crate::context::settings::find;
use crate::error::{Result, SqlError};
use crate::syntax::ddl::RoleSpec;
use crate::syntax::stmt::SetVariable;
use clearway_engine::catalog::{BOOTSTRAP_ROLE, Catalog, Object, Role};

/// A change of a list of settings.
enum Change {
    Put(String, String),
    Remove(String),
    RemoveAll,
}

impl Change {
    /// Makes it; `may` says whether the session's role may change a setting: RESET ALL leaves the others.
    fn apply(&self, list: &mut Vec<(String, String)>, may: impl Fn(&str) -> bool) {
        match self {
            Change::Put(name, value) => match list.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => old.clone_from(value),
                None => list.push((name.clone(), value.clone())),
            },
            Change::Remove(name) => list.retain(|(known, _)| known != name),
            Change::RemoveAll => list.retain(|(known, _)| !may(known)),
        }
    }
}

impl Ddl<'_> {
    fn change_of(&self, catalog: &Catalog, set: &SetVariable) -> Result<Change> {
        let value = set_value(set);
        if set.resets_all() {
            return Ok(Change::RemoveAll);
        }
        let name = find(&set.name).map_or_else(|| set.name.to_lowercase(), |setting| setting.name.to_owned());
        let Some(value) = value else {
            self.core.settings.lock().is_name(&name)?;
            self.core.may_set(catalog, &name)?;
            return Ok(Change::Remove(name));
        };
        // What a made-up name means to others is not known: superusers keep such settings for sessions.
        if name.contains('.') && !self.judge(catalog).is_superuser() {
            return Err(SqlError::new("42501", format!("permission denied to set parameter \"{name}\"")));
        }
        self.core.may_set(catalog, &name)?;
        self.core.settings.lock().check(&name, &value)?;
        if name == "role" && value != "none" {
            self.tell_of_role(catalog, &value);
        }
        Ok(Change::Put(name, value))
    }

    /// A role that sessions could not become at this moment may be one that they can when they begin.
    fn tell_of_role(&self, catalog: &Catalog, name: &str) {
        let message = match catalog.role(name) {
            None => SqlError::new("42704", format!("role \"{name}\" does not exist")),
            Some(role) if !Judge::of(self.core, catalog).is_member(role.oid) => {
                SqlError::new("42501", format!("permission will be denied to set role \"{name}\""))
            }
            Some(_) => return,
        };
        self.core.notice("NOTICE", message);
    }

    fn apply(&self, catalog: &Catalog, change: &Change, list: &mut Vec<(String, String)>) {
        change.apply(list, |name| self.core.may_set(catalog, name).is_ok());
    }

    /// ALTER ROLE ... SET and RESET; no name: ALL.
    pub(super) async fn alter_role_set(
        &self,
        name: Option<&RoleSpec>,
        database: Option<&str>,
        set: &SetVariable,
    ) -> Result<&'static str> {
        let catalog = self.catalog();
        let role = match name {
            Some(name) => Some(self.role_to_set(&catalog, name)?),
            None => None,
        };
        let database = match database {
            Some(name) => Some(catalog.database(name).cloned().ok_or_else(|| missing("database", name))?),
            None => None,
        };
        let whole = role.is_some() && database.is_none();
        if is_limit(&set.name) && !whole {
            let of = if role.is_some() { "a role in one database" } else { "all roles" };
            return Err(SqlError::unsupported(format!("the limit {} of {of}", set.name.to_lowercase())));
        }
        let changed = match (role, database) {
            (Some(mut role), database) => {
                let within = database.map_or(0, |d| d.oid);
                let (mine, mut others): (Vec<_>, Vec<_>) = role.settings.into_iter().partition(|s| s.0 == within);
                let mut list: Vec<(String, String)> = mine.into_iter().map(|(_, name, value)| (name, value)).collect();
                self.apply(&catalog, &self.change_of(&catalog, set)?, &mut list);
                others.extend(list.into_iter().map(|(name, value)| (within, name, value)));
                role.settings = others;
                Object::Role(role)
            }
            (None, Some(mut database)) => {
                self.own_oid(&catalog, database.oid)?;
                self.apply(&catalog, &self.change_of(&catalog, set)?, &mut database.settings);
                Object::Database(database)
            }
            (None, None) => {
                self.superuser("must be superuser to alter settings globally")?;
                let Some(Object::Role(first)) = catalog.get(BOOTSTRAP_ROLE).map(|o| &**o) else {
                    return Err(SqlError::internal("no bootstrap role"));
                };
                let mut first = first.clone();
                self.apply(&catalog, &self.change_of(&catalog, set)?, &mut first.settings_of_all);
                Object::Role(first)
            }
        };
        self.put(changed).await?;
        Ok("ALTER ROLE")
    }

    /// The role whose sessions a statement says something of.
    fn role_to_set(&self, catalog: &Catalog, name: &RoleSpec) -> Result<Role> {
        super::roles::refuse_predefined(name)?;
        let role = self.role_named(catalog, name)?;
        let me = self.judge(catalog);
        if role.superuser {
            self.superuser("must be superuser to alter superusers")?;
        } else if !me.role().is_some_and(|me| me.superuser || me.create_role || me.oid == role.oid) {
            return Err(SqlError::new("42501", "permission denied"));
        }
        Ok(role)
    }

    /// ALTER DATABASE ... SET and RESET.
    pub(super) async fn alter_database_set(&self, name: &str, set: &SetVariable) -> Result<&'static str> {
        let catalog = self.catalog();
        let mut database = catalog.database(name).cloned().ok_or_else(|| missing("database", name))?;
        self.own_oid(&catalog, database.oid)?;
        self.apply(&catalog, &self.change_of(&catalog, set)?, &mut database.settings);
        self.put(Object::Database(database)).await?;
        Ok("ALTER DATABASE")
    }

    /// A database goes: what roles keep for their sessions in it goes, too.
    pub(super) async fn forget_settings(&self, database: u32) -> Result<()> {
        let catalog = self.catalog();
        for object in catalog.objects() {
            let Object::Role(role) = &**object else { continue };
            if role.settings.iter().any(|s| s.0 == database) {
                let mut role = role.clone();
                role.settings.retain(|s| s.0 != database);
                self.put(Object::Role(role)).await?;
            }
        }
        Ok(())
    }
}
