//! Names and owners of objects: ALTER ... RENAME of objects that are in no schema, ALTER ... OWNER TO, REASSIGN OWNED, DROP OWNED. For
//! each kind of object the right to do it is checked in one place, before a lock is taken.

use super::{Ddl, missing};
use crate::context::privileges::{Judge, denied};
use crate::error::{Result, SqlError, code};
use crate::planner::environment::find_object;
use crate::syntax::ast::QualName;
use crate::syntax::ddl::{ObjectKind, Rename, RoleSpec};
use clearway_engine::catalog::{Acl, BOOTSTRAP_ROLE, Catalog, Object};
use clearway_txn::lockmgr::LockMode;
use std::sync::Arc;

/// Every access list of an object, with the owner.
fn lists(object: &mut Object) -> Vec<(&mut Acl, u32)> {
    let owner = object.owner().unwrap_or(0);
    match object {
        Object::Relation(r) => {
            let columns = r.columns.iter_mut().map(|c| &mut c.acl);
            std::iter::once(&mut r.acl).chain(columns).map(|acl| (acl, owner)).collect()
        }
        Object::Role(r) => {
            let oid = r.oid;
            r.defaults.iter_mut().map(|d| (&mut d.acl, oid)).collect()
        }
        other => other.acl_mut().into_iter().map(|(acl, _)| (acl, owner)).collect(),
    }
}

/// Whether an access list of the object names a role.
pub(super) fn names_role(object: &Object, role: u32) -> bool {
    let columns = |o: &Object| matches!(o, Object::Relation(r) if r.columns.iter().any(|c| c.acl.names(role)));
    let defaults =
        |o: &Object| matches!(o, Object::Role(r) if r.oid != role && r.defaults.iter().any(|d| d.acl.names(role)));
    let policies =
        |o: &Object| matches!(o, Object::Relation(r) if r.security.policies.iter().any(|p| p.roles.contains(&role)));
    object.acl().is_some_and(|(acl, _)| acl.names(role)) || columns(object) || defaults(object) || policies(object)
}

/// What the first role owns, the system needs.
fn refuse_pinned(catalog: &Catalog, roles: &[u32], what: &str) -> Result<()> {
    if !roles.contains(&BOOTSTRAP_ROLE) {
        return Ok(());
    }
    let name = catalog.get(BOOTSTRAP_ROLE).map_or("", |role| role.name());
    let message =
        format!("cannot {what} objects owned by role {name} because they are required by the database system");
    Err(SqlError::new("2BP01", message))
}

impl Ddl<'_> {
    /// The schema, database or role of a name.
    pub(super) fn global(&self, catalog: &Catalog, kind: ObjectKind, name: &str) -> Result<Arc<Object>> {
        let (found, what) = match kind {
            ObjectKind::Schema => (catalog.schema(self.core.database, name).map(|o| o.oid), "schema"),
            ObjectKind::Database => (catalog.database(name).map(|o| o.oid), "database"),
            _ => (catalog.role(name).map(|role| role.oid), "role"),
        };
        found.and_then(|oid| catalog.get(oid)).cloned().ok_or_else(|| missing(what, name))
    }

    /// ALTER SCHEMA, DATABASE, ROLE ... RENAME TO.
    pub(super) async fn rename_global(&self, s: &Rename) -> Result<&'static str> {
        let mut object = self.global(&self.catalog(), s.object, s.name.name())?;
        if let Object::Schema(schema) = &*object {
            self.owns(&object)?;
            // As DROP SCHEMA, and what makes an object there.
            object = self.lock_to_drop(schema.oid).await?.ok_or_else(|| missing("schema", &schema.name))?;
        }
        let catalog = self.catalog();
        let mut object = Object::clone(&*object);
        let tag = match &object {
            Object::Schema(schema) => {
                self.owns(&object)?;
                self.may_make_schemas(&catalog)?;
                if s.to.starts_with("pg_") {
                    return Err(SqlError::new("42939", format!("unacceptable schema name \"{}\"", s.to))
                        .detail("The prefix \"pg_\" is reserved for system schemas."));
                }
                if catalog.schema(schema.database, &s.to).is_some() || super::objects::is_of_system(&s.to) {
                    return Err(SqlError::new("42P06", format!("schema \"{}\" already exists", s.to)));
                }
                self.may_rename_operators_of(&catalog, schema.oid)?;
                "ALTER SCHEMA"
            }
            Object::Database(database) => {
                self.owns(&object)?;
                self.may("rename database", |role| role.create_db)?;
                if catalog.database(&s.to).is_some() {
                    return Err(SqlError::new("42P04", format!("database \"{}\" already exists", s.to)));
                }
                if database.oid == self.core.database {
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "current database cannot be renamed"));
                }
                self.no_other_session_in(database.oid, &database.name)?;
                "ALTER DATABASE"
            }
            Object::Role(role) => {
                self.may_rename_role(role, &s.to)?;
                "ALTER ROLE"
            }
            _ => return Err(SqlError::internal("a global object of another kind")),
        };
        object.rename(&s.to);
        self.put(object).await?;
        Ok(tag)
    }

    /// Whether the session's role may make schemas in the session's database.
    pub(super) fn may_make_schemas(&self, catalog: &Catalog) -> Result<()> {
        let database = catalog.get(self.core.database);
        let judge = self.judge(catalog);
        match database {
            Some(database) if judge.may_with(database, 'C') => Ok(()),
            _ => Err(denied("database", &self.core.database_name)),
        }
    }

    /// Whether an object may go to another owner: the session's role owns it and is a member of the new owner's, which may make such an
    /// object there.
    pub(super) fn may_change_owner(&self, catalog: &Catalog, object: &Object, owner: u32) -> Result<()> {
        if object.owner() == Some(owner) {
            return Ok(());
        }
        let judge = self.judge(catalog);
        if judge.is_superuser() {
            return Ok(());
        }
        self.owns(object)?;
        if !judge.is_member(owner) {
            let name = catalog.get(owner).map_or("", |role| role.name());
            return Err(SqlError::new("42501", format!("must be member of role \"{name}\"")));
        }
        match object {
            Object::Database(_) => self.may("change owner of database", |role| role.create_db),
            Object::Schema(_) => self.may_make_schemas(catalog),
            other => {
                let schema = crate::context::names::schema_of(other).and_then(|oid| catalog.get(oid));
                let new = Judge::new(catalog, self.core.database, Some(owner));
                match schema {
                    Some(schema) if new.may_with(schema, 'C') => Ok(()),
                    schema => Err(denied("schema", schema.map_or("", |schema| schema.name()))),
                }
            }
        }
    }

    /// ALTER ... OWNER TO.
    pub(super) async fn owner_to(
        &self,
        kind: ObjectKind,
        name: &QualName,
        if_exists: bool,
        owner: &RoleSpec,
    ) -> Result<&'static str> {
        if kind == ObjectKind::LargeObject {
            return self.own_large_object(name, owner).await;
        }
        let catalog = self.catalog();
        let object = match kind {
            ObjectKind::Schema | ObjectKind::Database => self.global(&catalog, kind, name.name())?,
            _ => match find_object(self.core, &catalog, name) {
                Some(object) => object,
                None if if_exists => {
                    let message = format!("relation \"{}\" does not exist, skipping", name.name());
                    self.core.notice("NOTICE", SqlError::new("00000", message));
                    return Ok("ALTER TABLE");
                }
                None => return Err(self.no_such("relation", name)),
            },
        };
        super::alter_kinds::is_said(&object, kind)?;
        let owner = self.role_named(&catalog, owner)?.oid;
        self.change_owner(&object, owner).await?;
        Ok(match kind {
            ObjectKind::Schema => "ALTER SCHEMA",
            ObjectKind::Database => "ALTER DATABASE",
            ObjectKind::Sequence => "ALTER SEQUENCE",
            ObjectKind::View => "ALTER VIEW",
            ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            _ => "ALTER TABLE",
        })
    }

    /// Gives an object, with what belongs to it, to a role.
    pub(super) async fn change_owner(&self, object: &Object, owner: u32) -> Result<()> {
        let catalog = self.catalog();
        self.may_change_owner(&catalog, object, owner)?;
        if let Object::Sequence(q) = object
            && let Some((table, _)) = q.owned_by
        {
            let table = catalog.relation(table).map_or("", |r| &r.name);
            return Err(SqlError::new(
                code::FEATURE_NOT_SUPPORTED,
                format!("cannot change owner of sequence \"{}\"", q.name),
            )
            .detail(format!("Sequence \"{}\" is linked to table \"{table}\".", q.name)));
        }
        if matches!(object, Object::Index(_)) {
            let message = format!("cannot change owner of index \"{}\"", object.name());
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message)
                .hint("Change the ownership of the index's table, instead."));
        }
        if crate::context::names::schema_of(object).is_some() {
            self.lock(object.oid(), LockMode::AccessExclusive).await?;
        }
        // What may have changed while the lock was waited for.
        let catalog = self.catalog();
        let object = catalog.get(object.oid()).ok_or_else(|| missing("relation", object.name()))?;
        self.may_change_owner(&catalog, object, owner)?;
        let sequences = catalog.objects().filter(
            |o| matches!(&***o, Object::Sequence(q) if q.owned_by.is_some_and(|(table, _)| table == object.oid())),
        );
        for object in sequences.chain([object]) {
            let mut object = Object::clone(&*self.lock_record(object).await?);
            self.may_change_owner(&self.catalog(), &object, owner)?;
            object.set_owner(owner);
            self.put(object).await?;
        }
        Ok(())
    }

    /// REASSIGN OWNED.
    pub(super) async fn reassign_owned(&self, roles: &[RoleSpec], to: &RoleSpec) -> Result<&'static str> {
        let catalog = self.catalog();
        let from = self.role_numbers(&catalog, roles)?;
        let judge = self.judge(&catalog);
        if from.iter().any(|role| !judge.has_rights_of(*role)) {
            return Err(SqlError::new("42501", "permission denied to reassign objects"));
        }
        refuse_pinned(&catalog, &from, "reassign ownership of")?;
        let to = self.role_named(&catalog, to)?.oid;
        if !judge.has_rights_of(to) {
            return Err(SqlError::new("42501", "permission denied to reassign objects"));
        }
        for object in catalog.objects() {
            let here = self.is_here(object);
            let mine = object.owner().is_some_and(|owner| from.contains(&owner));
            let of_table = matches!(&**object, Object::Sequence(q) if q.owned_by.is_some());
            if here && mine && !of_table {
                if crate::context::names::schema_of(object).is_some() {
                    self.lock(object.oid(), LockMode::AccessExclusive).await?;
                }
                if self.catalog().get(object.oid()).is_none() {
                    continue;
                }
                let mut object = Object::clone(&*self.lock_record(object).await?);
                object.set_owner(to);
                self.put(object).await?;
            }
        }
        for object in self.catalog().objects() {
            if let Object::Sequence(q) = &**object
                && q.owned_by.is_some()
                && from.contains(&q.owner)
            {
                let mut object = Object::clone(&*self.lock_record(object).await?);
                object.set_owner(to);
                self.put(object).await?;
            }
        }
        for role in from {
            self.reassign_large_objects(role, to).await?;
        }
        Ok("REASSIGN OWNED")
    }

    /// Of the session's database, or of none.
    fn is_here(&self, object: &Object) -> bool {
        match object {
            Object::Relation(r) => r.database == self.core.database,
            Object::Index(i) => i.database == self.core.database,
            Object::Sequence(q) => q.database == self.core.database,
            Object::Schema(s) => s.database == self.core.database,
            Object::Type(t) => t.database == self.core.database,
            Object::Routine(r) => r.database == self.core.database,
            Object::Operator(o) => o.database == self.core.database,
            Object::Database(_) | Object::Role(_) | Object::Comment(_) => true,
        }
    }

    /// DROP OWNED: what the roles own in this database goes, and what they were granted in it.
    pub(super) async fn drop_owned(&self, roles: &[RoleSpec], cascade: bool) -> Result<&'static str> {
        let catalog = self.catalog();
        let from = self.role_numbers(&catalog, roles)?;
        let judge = self.judge(&catalog);
        if from.iter().any(|role| !judge.has_rights_of(*role)) {
            return Err(SqlError::new("42501", "permission denied to drop objects"));
        }
        refuse_pinned(&catalog, &from, "drop")?;
        let owned = |o: &&Arc<Object>| o.owner().is_some_and(|owner| from.contains(&owner)) && self.is_here(o);
        let relations: Vec<u32> = catalog
            .objects()
            .filter(owned)
            .filter(|o| crate::context::names::schema_of(o).is_some())
            .map(|o| o.oid())
            .collect();
        // Types go when the columns that have them are gone.
        let is_type = |oid: &&u32| matches!(catalog.get(**oid).map(|o| &**o), Some(Object::Type(_)));
        let (types, others): (Vec<&u32>, Vec<&u32>) = relations.iter().partition(is_type);
        for oid in others.into_iter().chain(types) {
            self.drop_one(*oid, cascade, &relations).await?;
        }
        for object in catalog.objects().filter(owned) {
            if let Object::Schema(schema) = &**object {
                self.drop_schema(schema.oid, &schema.name, cascade).await?;
            }
        }
        for role in from {
            self.drop_owned_large_objects(role).await?;
            for object in self.catalog().objects().filter(|o| self.is_here(o) && names_role(o, role)) {
                let mut object = Object::clone(&*self.lock_record(object).await?);
                lists(&mut object).into_iter().for_each(|(acl, owner)| acl.forget(role, owner));
                super::policy::forget_role(&mut object, role);
                self.put(object).await?;
            }
            // Its default privileges of this database are its own, too.
            if let Some(Object::Role(mut role)) = self.catalog().get(role).map(|o| Object::clone(o)) {
                let before = role.defaults.len();
                role.defaults.retain(|list| list.database != self.core.database);
                if role.defaults.len() < before {
                    self.put(Object::Role(role)).await?;
                }
            }
        }
        Ok("DROP OWNED")
    }
}
