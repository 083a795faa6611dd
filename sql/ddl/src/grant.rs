//! GRANT and REVOKE on objects, ALTER DEFAULT PRIVILEGES.
//!
//! Source: PostgreSQL 15's src/backend/catalog/aclchk.c, for the choice of the grantor, the errors and the warnings.

use super::{Ddl, missing};
use crate::context::names::schema_of;
use crate::context::privileges::{Judge, denied, letter, role_by_oid};
use crate::error::{Result, SqlError, code};
use crate::planner::dml::column_of;
use crate::planner::environment::find_object;
use crate::syntax::ddl::{DefaultPrivileges, Grant, ObjectKind, RoleSpec};
use crate::syntax::routine::{RoutineKind, RoutineName};
use clearway_engine::catalog::acl::{AclError, PUBLIC};
use clearway_engine::catalog::{Acl, AclKind, Catalog, DefaultAcl, Object, Relation, Role, Routine};
use clearway_engine::large_object::LargeObject;
use std::sync::Arc;

/// What a statement says of privileges, apart from the objects.
struct Change<'a> {
    statement: &'a Grant,
    grantees: Vec<u32>,
}

fn kind_name(object: &Object) -> &'static str {
    match object {
        Object::Relation(_) => "table",
        Object::Type(_) => "type",
        other => other.kind(),
    }
}

/// `invalid privilege type`, where a kind of object has no such privilege.
fn check_kind(s: &Grant, kind: AclKind) -> Result<()> {
    let name = match kind {
        AclKind::Table => "relation",
        AclKind::Column => "column",
        AclKind::Sequence => "sequence",
        AclKind::Schema => "schema",
        AclKind::Database => "database",
        AclKind::Type if s.object == ObjectKind::Domain => "domain",
        AclKind::Type => "type",
        AclKind::Function => "function",
        AclKind::LargeObject => "large object",
    };
    for (word, columns) in &s.privileges {
        if word.is_empty() {
            continue;
        }
        if !columns.is_empty() && kind != AclKind::Table && kind != AclKind::Column {
            return Err(SqlError::new("0LP01", "column privileges are only valid for relations"));
        }
        let letter = letter(word)?;
        let kind = if columns.is_empty() { kind } else { AclKind::Column };
        if !kind.all().contains(letter) {
            let name = if kind == AclKind::Column { "column" } else { name };
            let message = format!("invalid privilege type {} for {name}", word.to_uppercase());
            return Err(SqlError::new("0LP01", message));
        }
    }
    Ok(())
}

fn refused(error: AclError) -> SqlError {
    match error {
        AclError::Dependent => {
            SqlError::new("2BP01", "dependent privileges exist").hint("Use CASCADE to revoke them too.")
        }
        AclError::Circular => SqlError::new("0LP01", "grant options cannot be granted back to your own grantor"),
    }
}

/// Who grants in the name of the session's role, and what that role may grant: the owner where it has the owner's rights, else the role
/// that may grant the most of `letters`.
fn best_grantor(
    judge: &Judge<'_>,
    catalog: &Catalog,
    acl: &Acl,
    kind: AclKind,
    owner: u32,
    letters: &str,
) -> (u32, String) {
    if judge.has_rights_of(owner) {
        return (owner, kind.all().to_owned());
    }
    let me = judge.role().map_or(0, |role| role.oid);
    let held =
        |role: u32| -> String { acl.options_of(role, owner, kind).chars().filter(|c| letters.contains(*c)).collect() };
    let mut best = (me, held(me));
    for grant in acl.entries(owner, kind) {
        if grant.role != PUBLIC && catalog.get(grant.role).is_some() && judge.has_rights_of(grant.role) {
            let held = held(grant.role);
            if held.len() > best.1.len() {
                best = (grant.role, held);
            }
        }
    }
    best
}

impl Ddl<'_> {
    /// GRANT and REVOKE.
    pub(super) async fn grant(&self, s: &Grant) -> Result<&'static str> {
        let catalog = self.catalog();
        let change = self.change(&catalog, s)?;
        if let Some(by) = &s.granted_by
            && self.role_named(&catalog, by)?.oid != self.role()?
        {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "grantor must be current user"));
        }
        if s.object == ObjectKind::LargeObject {
            return self.grant_large_objects(s).await;
        }
        for object in self.granted_objects(&catalog, s)? {
            let Some((_, kind)) = object.acl() else { continue };
            check_kind(s, kind)?;
            let mut object = Object::clone(&*self.lock_record(&object).await?);
            self.change_object(&self.catalog(), &mut object, kind, &change)?;
            self.put(object).await?;
        }
        Ok(if s.revoke { "REVOKE" } else { "GRANT" })
    }

    /// Changes the list of a large object.
    pub(super) fn change_large_object_acl(&self, s: &Grant, object: &mut LargeObject) -> Result<()> {
        let kind = AclKind::LargeObject;
        check_kind(s, kind)?;
        let catalog = self.catalog();
        let change = self.change(&catalog, s)?;
        let words = s.privileges.iter().map(|(word, _)| letter(word));
        let letters = words.collect::<Result<String>>()?;
        let letters = if letters.is_empty() { kind.all().to_owned() } else { letters };
        let judge = self.judge(&catalog);
        let before = object.acl.clone();
        let any = || kind.all().chars().any(|letter| judge.may(&before, kind, object.owner, letter));
        let name = format!("large object {}", object.oid);
        let list = (object.owner, kind);
        self.change_list(&catalog, &mut object.acl, list, &letters, &change, any, ("large object", &name))
    }

    fn change<'s>(&self, catalog: &Catalog, s: &'s Grant) -> Result<Change<'s>> {
        let grantees = self.grantees(catalog, &s.roles)?;
        if s.grant_option && !s.revoke && grantees.contains(&PUBLIC) {
            return Err(SqlError::new("0LP01", "grant options can only be granted to roles"));
        }
        Ok(Change { statement: s, grantees })
    }

    fn granted_objects(&self, catalog: &Arc<Catalog>, s: &Grant) -> Result<Vec<Arc<Object>>> {
        let mut objects = Vec::new();
        if let Some((kind, names)) = &s.routines {
            return self.granted_routines(catalog, s, *kind, names);
        }
        for name in &s.names {
            match s.object {
                ObjectKind::Schema => {
                    let found = catalog.schema(self.core.database, name.name()).map(|o| o.oid);
                    objects.extend(self.by_oid(catalog, found, "schema", name.name())?);
                }
                ObjectKind::Database => {
                    let found = catalog.database(name.name()).map(|o| o.oid);
                    objects.extend(self.by_oid(catalog, found, "database", name.name())?);
                }
                ObjectKind::Type | ObjectKind::Domain => {
                    let ty = self.named_type(catalog, name, s.object == ObjectKind::Domain)?;
                    objects.extend(catalog.get(ty.oid).cloned());
                }
                _ if s.all_in_schema => {
                    let schema = catalog.schema(self.core.database, name.name());
                    let schema = schema.ok_or_else(|| missing("schema", name.name()))?.oid;
                    let sequences = s.object == ObjectKind::Sequence;
                    let wanted = |o: &&Arc<Object>| {
                        schema_of(o) == Some(schema)
                            && if sequences {
                                matches!(***o, Object::Sequence(_))
                            } else {
                                matches!(***o, Object::Relation(_))
                            }
                    };
                    objects.extend(catalog.objects().filter(wanted).cloned());
                }
                _ => {
                    let found = find_object(self.core, catalog, name).ok_or_else(|| self.no_such("relation", name))?;
                    if s.object == ObjectKind::Sequence && !matches!(*found, Object::Sequence(_)) {
                        let message = format!("\"{}\" is not a sequence", name.name());
                        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
                    }
                    if let Object::Index(index) = &*found {
                        let message = format!("\"{}\" is an index", index.name);
                        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
                    }
                    objects.push(found);
                }
            }
        }
        Ok(objects)
    }

    /// The functions and procedures of GRANT.
    fn granted_routines(
        &self,
        catalog: &Arc<Catalog>,
        s: &Grant,
        kind: RoutineKind,
        names: &[RoutineName],
    ) -> Result<Vec<Arc<Object>>> {
        crate::planner::environment::with_env(self.core, catalog, |_| ());
        let mut objects = Vec::new();
        for name in names {
            objects.push(self.find_routine(catalog, kind, name)??);
        }
        for name in &s.names {
            let schema = catalog.schema(self.core.database, name.name());
            let schema = schema.ok_or_else(|| missing("schema", name.name()))?.oid;
            let wanted = |r: &Routine| match kind {
                RoutineKind::Function => r.kind == clearway_engine::catalog::RoutineKind::Function,
                RoutineKind::Procedure => r.kind == clearway_engine::catalog::RoutineKind::Procedure,
                RoutineKind::Routine => true,
            };
            let inside = catalog.routines().filter(|r| r.schema == schema && wanted(r));
            objects.extend(inside.filter_map(|r| catalog.get(r.oid)).cloned());
        }
        Ok(objects)
    }

    fn by_oid(&self, catalog: &Catalog, oid: Option<u32>, kind: &str, name: &str) -> Result<Option<Arc<Object>>> {
        let oid = oid.ok_or_else(|| missing(kind, name))?;
        Ok(catalog.get(oid).cloned())
    }

    /// Changes the lists of an object and of its columns.
    fn change_object(&self, catalog: &Catalog, object: &mut Object, kind: AclKind, change: &Change<'_>) -> Result<()> {
        let s = change.statement;
        let Some(owner) = object.owner() else { return Ok(()) };
        let whole: String = if s.privileges.is_empty() {
            kind.all().to_owned()
        } else {
            let words = s.privileges.iter().filter(|(_, columns)| columns.is_empty());
            words.map(|(word, _)| letter(word)).collect::<Result<_>>()?
        };
        let name = object.name().to_owned();
        let what = kind_name(object);
        if !whole.is_empty() {
            let judge = self.judge(catalog);
            let any = kind.all().chars().any(|letter| judge.may_with(object, letter));
            let Some((acl, _)) = object.acl_mut() else { return Ok(()) };
            let before = acl.clone();
            self.change_list(catalog, acl, (owner, kind), &whole, change, || any, (what, &name))?;
            if let (Object::Relation(relation), true) = (&mut *object, s.revoke) {
                // What is revoked of the table is revoked of its columns, by the same grantor.
                for column in relation.columns.iter_mut().filter(|c| !c.acl.is_default()) {
                    let letters: String = whole.chars().filter(|c| AclKind::Column.all().contains(*c)).collect();
                    let (by, _) = best_grantor(&judge, catalog, &before, kind, owner, &whole);
                    for role in &change.grantees {
                        let list = (owner, AclKind::Column);
                        column.acl.revoke(list, (*role, by), &letters, s.grant_option, s.cascade).map_err(refused)?;
                    }
                }
            }
        }
        match object {
            Object::Relation(relation) => self.change_columns(catalog, relation, change),
            _ => Ok(()),
        }
    }

    fn change_columns(&self, catalog: &Catalog, relation: &mut Relation, change: &Change<'_>) -> Result<()> {
        let owner = relation.owner;
        for (word, columns) in &change.statement.privileges {
            for name in columns {
                let at = column_of(relation, name, 0)?;
                let letters =
                    if word.is_empty() { AclKind::Column.all().to_owned() } else { letter(word)?.to_string() };
                let judge = self.judge(catalog);
                let any = || AclKind::Column.all().chars().any(|l| judge.may_with_column(relation, at, l));
                let any = any();
                // A role that may grant it for the table may grant it for a column.
                let table = best_grantor(&judge, catalog, &relation.acl, AclKind::Table, owner, &letters);
                let mut acl = relation.columns[at].acl.clone();
                let own = best_grantor(&judge, catalog, &acl, AclKind::Column, owner, &letters);
                let grantor = if table.1.len() > own.1.len() { table } else { own };
                let what = ("column", format!("{name}\" of relation \"{}", relation.name));
                self.change_list_as(
                    &mut acl,
                    (owner, AclKind::Column),
                    &letters,
                    change,
                    grantor,
                    any,
                    (what.0, &what.1),
                )?;
                relation.columns[at].acl = acl;
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn change_list(
        &self,
        catalog: &Catalog,
        acl: &mut Acl,
        (owner, kind): (u32, AclKind),
        letters: &str,
        change: &Change<'_>,
        any: impl Fn() -> bool,
        object: (&str, &str),
    ) -> Result<()> {
        let judge = self.judge(catalog);
        let grantor = best_grantor(&judge, catalog, acl, kind, owner, letters);
        self.change_list_as(acl, (owner, kind), letters, change, grantor, any(), object)
    }

    #[allow(clippy::too_many_arguments)]
    fn change_list_as(
        &self,
        acl: &mut Acl,
        list: (u32, AclKind),
        letters: &str,
        change: &Change<'_>,
        (by, held): (u32, String),
        any: bool,
        (what, name): (&str, &str),
    ) -> Result<()> {
        let s = change.statement;
        if held.is_empty() && !any {
            return Err(denied(what, name.split('"').next().unwrap_or(name)));
        }
        let mine: String = letters.chars().filter(|c| held.contains(*c)).collect();
        let all = s.privileges.is_empty();
        if mine.is_empty() || (!all && mine.len() < letters.len()) {
            let code = if s.revoke { "01006" } else { "01007" };
            let done = if s.revoke { "could be revoked" } else { "were granted" };
            let some = if mine.is_empty() { "no" } else { "not all" };
            self.core.notice("WARNING", SqlError::new(code, format!("{some} privileges {done} for \"{name}\"")));
        }
        for role in &change.grantees {
            if s.revoke {
                acl.revoke(list, (*role, by), &mine, s.grant_option, s.cascade).map_err(refused)?;
            } else {
                acl.grant(list, (*role, by), &mine, s.grant_option).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// ALTER DEFAULT PRIVILEGES.
    pub(super) async fn default_privileges(&self, s: &DefaultPrivileges) -> Result<&'static str> {
        let catalog = self.catalog();
        let (letter, kind) = match s.grant.object {
            ObjectKind::Sequence => ('S', AclKind::Sequence),
            ObjectKind::Schema => ('n', AclKind::Schema),
            ObjectKind::Type => ('T', AclKind::Type),
            ObjectKind::Function => ('f', AclKind::Function),
            _ => ('r', AclKind::Table),
        };
        if letter == 'n' && !s.schemas.is_empty() {
            return Err(SqlError::new("0LP01", "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS"));
        }
        if s.grant.privileges.iter().any(|(_, columns)| !columns.is_empty()) {
            return Err(SqlError::new("0LP01", "default privileges cannot be set for columns"));
        }
        check_kind(&s.grant, kind)?;
        let change = self.change(&catalog, &s.grant)?;
        let words = s.grant.privileges.iter().map(|(word, _)| self::letter(word));
        let letters =
            if s.grant.privileges.is_empty() { kind.all().to_owned() } else { words.collect::<Result<_>>()? };
        let mut schemas = Vec::new();
        for name in &s.schemas {
            let schema = catalog.schema(self.core.database, name).ok_or_else(|| missing("schema", name))?;
            schemas.push(schema.oid);
        }
        if schemas.is_empty() {
            schemas.push(0);
        }
        let roles = match s.roles.as_slice() {
            [] => vec![self.role_named(&catalog, &RoleSpec::CurrentUser)?],
            names => names.iter().map(|name| self.role_named(&catalog, name)).collect::<Result<Vec<_>>>()?,
        };
        for role in roles {
            if !self.judge(&catalog).is_member(role.oid) {
                return Err(SqlError::new("42501", "permission denied to change default privileges"));
            }
            let mut role = self.lock_role(role).await?;
            for schema in &schemas {
                let owner = role.oid;
                let here =
                    |d: &&mut DefaultAcl| (d.database, d.schema, d.kind) == (self.core.database, *schema, letter);
                let mut acl = match role.defaults.iter_mut().find(here) {
                    Some(found) => found.acl.clone(),
                    // In a schema it is what is added to the list that the object begins with.
                    None if *schema != 0 => Acl::explicit(Vec::new()),
                    None => Acl::default(),
                };
                self.change_list_as(
                    &mut acl,
                    (owner, kind),
                    &letters,
                    &change,
                    (owner, kind.all().to_owned()),
                    true,
                    ("", ""),
                )?;
                role.defaults.retain(|d| (d.database, d.schema, d.kind) != (self.core.database, *schema, letter));
                let plain = if *schema == 0 {
                    acl.entries(owner, kind) == Acl::default().entries(owner, kind)
                } else {
                    acl.entries(owner, kind).is_empty()
                };
                if !plain {
                    role.defaults.push(DefaultAcl { database: self.core.database, schema: *schema, kind: letter, acl });
                }
            }
            self.put(Object::Role(role)).await?;
        }
        Ok("ALTER DEFAULT PRIVILEGES")
    }

    /// Locks a role's record, and reads the role again.
    async fn lock_role(&self, role: Role) -> Result<Role> {
        match Object::clone(&*self.lock_record(&Object::Role(role)).await?) {
            Object::Role(role) => Ok(role),
            other => Err(SqlError::internal(format!("a role that is a {}", other.kind()))),
        }
    }

    /// The access list with which an object of the session's role begins: `kind` is `r`, `S`, `n`, `T` or `f`.
    pub(super) fn first_acl(&self, letter: char, schema: u32) -> Result<Acl> {
        self.first_acl_of(self.role()?, letter, schema)
    }

    /// The same for an object of another role.
    pub(super) fn first_acl_of(&self, owner: u32, letter: char, schema: u32) -> Result<Acl> {
        let catalog = self.catalog();
        let role = role_by_oid(&catalog, owner).ok_or_else(|| missing("role", &owner.to_string()))?;
        let kind = match letter {
            'S' => AclKind::Sequence,
            'n' => AclKind::Schema,
            'T' => AclKind::Type,
            'f' => AclKind::Function,
            _ => AclKind::Table,
        };
        let of = |schema: u32| {
            role.defaults.iter().find(|d| (d.database, d.schema, d.kind) == (self.core.database, schema, letter))
        };
        let mut acl = of(0).map(|d| d.acl.clone()).unwrap_or_default();
        if let Some(more) = of(schema).filter(|_| schema != 0) {
            for grant in more.acl.entries(role.oid, kind) {
                let list = (role.oid, kind);
                acl.grant(list, (grant.role, grant.by), &grant.privileges, false).map_err(refused)?;
                acl.grant(list, (grant.role, grant.by), &grant.grantable, true).map_err(refused)?;
            }
            // As PostgreSQL keeps it: by grantee and grantor.
            let mut entries = acl.entries(role.oid, kind);
            entries.sort_by_key(|grant| (grant.role, grant.by));
            acl = Acl::explicit(entries);
        }
        Ok(acl)
    }
}
