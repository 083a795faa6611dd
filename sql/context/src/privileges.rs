//! The privileges of a role: by what it owns, by what it was granted, and by the roles of which it is a member.
//!
//! # Structure
//! [`Judge`] answers for one role. The functions below ask it for the session's role, or for a view's owner, and make the errors.
//! `engine/src/catalog/acl.rs` holds the access lists.
//!
//! # Invariants
//! - PRV-1: what a view reads is checked against the rights of the view's owner; what a statement names is checked against the rights of
//!   the role that runs the statement.
//! - PRV-2: a right belongs to a role by its oid. A role that the catalog does not know has no rights. No way of changing a setting gives
//!   a session a role that the session's user may not become.
//! - ACT-1: the query of a materialized view runs with the rights of the view's owner when the view is created or refreshed. The query
//!   can't change the session's role, and the settings that it changes are restored at its end.

use super::core::Core;
use clearway_engine::catalog::predefined::{DATABASE_OWNER, READ_ALL_DATA, WRITE_ALL_DATA};
use clearway_engine::catalog::{Acl, AclKind, Catalog, Object, Oid, Relation, Role, Schema, Sequence};
use clearway_syntax::error::{Result, SqlError, code};

/// The role of a number.
pub fn role_by_oid(catalog: &Catalog, oid: Oid) -> Option<&Role> {
    match catalog.get(oid).map(|o| &**o) {
        Some(Object::Role(role)) => Some(role),
        _ => None,
    }
}

/// A role that a session became, as it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub oid: Oid,
    /// Whether it was a superuser.
    pub superuser: bool,
}

impl Identity {
    /// A role's.
    pub fn of(role: &Role) -> Identity {
        Identity { oid: role.oid, superuser: role.superuser }
    }
}

/// The roles that a session may become.
pub struct Identities<'a> {
    /// The roles.
    pub catalog: &'a Catalog,
    /// The database that they are in.
    pub database: Oid,
    /// The role that logged in.
    pub login: Oid,
}

impl Identities<'_> {
    fn named(&self, name: &str) -> Result<&Role> {
        let unknown = || SqlError::new(code::INVALID_PARAMETER_VALUE, format!("role \"{name}\" does not exist"));
        self.catalog.role(name).ok_or_else(unknown)
    }

    /// What SET ROLE makes of a session of this user: a role that the user is a member of.
    ///
    /// # Errors
    /// 22023 for an unknown role, 42501 for one that the user may not become.
    pub fn role(&self, session_user: Option<Identity>, name: &str) -> Result<Identity> {
        let role = self.named(name)?;
        let user = Judge::new(self.catalog, self.database, session_user.map(|user| user.oid));
        if user.is_member(role.oid) {
            return Ok(Identity::of(role));
        }
        Err(SqlError::new("42501", format!("permission denied to set role \"{name}\"")))
    }

    /// What SET SESSION AUTHORIZATION makes of the session: only a superuser's login may become another role.
    ///
    /// # Errors
    /// 22023 for an unknown role, 42501.
    pub fn session_user(&self, name: &str) -> Result<Identity> {
        let role = self.named(name)?;
        let login = role_by_oid(self.catalog, self.login);
        if login.is_some_and(|login| login.superuser || login.oid == role.oid) {
            return Ok(Identity::of(role));
        }
        Err(SqlError::new("42501", "permission denied to set session authorization"))
    }
}

/// What one role may do in a database. A role that the catalog does not know may do nothing (PRV-2).
#[derive(Clone, Copy, Debug)]
pub struct Judge<'c> {
    catalog: &'c Catalog,
    database: Oid,
    role: Option<&'c Role>,
}

impl<'c> Judge<'c> {
    /// Of a role.
    pub fn new(catalog: &'c Catalog, database: Oid, role: Option<Oid>) -> Judge<'c> {
        Judge { catalog, database, role: role.and_then(|oid| role_by_oid(catalog, oid)) }
    }

    /// Of the role that a session works as.
    pub fn of(core: &Core, catalog: &'c Catalog) -> Judge<'c> {
        Judge { catalog, database: core.database, role: core.role(catalog) }
    }

    /// The same judge, or that of the owner of the view in which something is named (PRV-1).
    #[must_use]
    pub fn or_owner(self, owner: Option<Oid>) -> Judge<'c> {
        owner.map_or(self, |owner| Judge::new(self.catalog, self.database, Some(owner)))
    }

    /// The role.
    pub fn role(&self) -> Option<&'c Role> {
        self.role
    }

    /// Whether it is a superuser.
    pub fn is_superuser(&self) -> bool {
        self.role.is_some_and(|role| role.superuser)
    }

    /// Whether the role is `wanted` or reaches it by memberships; `goes_on` says from which roles they lead further.
    pub fn reaches(&self, wanted: Oid, goes_on: impl Fn(&Role) -> bool) -> bool {
        let Some(role) = self.role else { return false };
        let mut seen = vec![role.oid];
        let mut at = 0;
        let owner = match self.catalog.get(self.database).map(|o| &**o) {
            Some(Object::Database(database)) => database.owner,
            _ => 0,
        };
        while let Some(oid) = seen.get(at).copied() {
            at += 1;
            if oid == wanted {
                return true;
            }
            let Some(role) = role_by_oid(self.catalog, oid).filter(|role| goes_on(role)) else { continue };
            let implied = (oid == owner).then_some(DATABASE_OWNER);
            for next in role.member_of.iter().map(|m| m.role).chain(implied) {
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        false
    }

    /// Whether it has the rights of a role without SET ROLE: it is that role, inherits them, or is a superuser.
    pub fn has_rights_of(&self, role: Oid) -> bool {
        self.is_superuser() || self.reaches(role, |role| role.inherit)
    }

    /// Whether it may become a role.
    pub fn is_member(&self, role: Oid) -> bool {
        self.is_superuser() || self.reaches(role, |_| true)
    }

    /// Whether it may make others members of a role.
    pub fn is_admin(&self, of: Oid) -> bool {
        let grants = |o: &Object| match o {
            Object::Role(r) => r.member_of.iter().any(|m| m.role == of && m.admin) && self.is_member(r.oid),
            _ => false,
        };
        self.is_superuser() || (self.role.is_some() && self.catalog.objects().any(|o| grants(o)))
    }

    /// Whether it owns something of this owner.
    pub fn owns(&self, owner: Oid) -> bool {
        self.has_rights_of(owner)
    }

    /// Whether an access list allows it one privilege.
    pub fn may(&self, acl: &Acl, kind: AclKind, owner: Oid, letter: char) -> bool {
        self.role.is_some() && (self.is_superuser() || acl.allows(owner, kind, letter, |role| self.has_rights_of(role)))
    }

    /// Whether it may do one thing with an object that has an access list.
    pub fn may_with(&self, object: &Object, letter: char) -> bool {
        let (Some(owner), Some((acl, kind))) = (object.owner(), object.acl()) else { return false };
        if self.may(acl, kind, owner, letter) {
            return true;
        }
        match (kind, letter) {
            (AclKind::Table | AclKind::Sequence, 'r') => self.has_rights_of(READ_ALL_DATA),
            (AclKind::Table, 'a' | 'd') | (AclKind::Table | AclKind::Sequence, 'w') => {
                self.has_rights_of(WRITE_ALL_DATA)
            }
            (AclKind::Schema, 'U') => self.has_rights_of(READ_ALL_DATA) || self.has_rights_of(WRITE_ALL_DATA),
            _ => false,
        }
    }

    /// The same for a schema.
    pub fn may_with_schema(&self, schema: &Schema, letter: char) -> bool {
        // A session has no other schema of temporary objects than its own.
        let own = self.catalog.temp_schema().is_some_and(|own| own.oid == schema.oid);
        if own {
            let database = self.catalog.get(self.database);
            return letter != 'C' || database.is_some_and(|database| self.may_with(database, 'T'));
        }
        self.catalog.get(schema.oid).is_some_and(|object| self.may_with(object, letter))
    }

    fn relation(&self, relation: &Relation, letter: char) -> bool {
        self.catalog.get(relation.oid).is_some_and(|object| self.may_with(object, letter))
    }

    /// Whether it may do one thing with a column, by its own list or by the table's.
    pub fn may_with_column(&self, relation: &Relation, column: usize, letter: char) -> bool {
        let own = relation.columns.get(column).map(|c| &c.acl);
        let own = own.is_some_and(|acl| self.may_by_column(acl, relation.owner, letter));
        own || self.relation(relation, letter)
    }

    fn may_by_column(&self, acl: &Acl, owner: Oid, letter: char) -> bool {
        !acl.is_default() && self.may(acl, AclKind::Column, owner, letter)
    }

    /// Whether it may do one thing with some column at least.
    pub fn may_with_some_column(&self, relation: &Relation, letter: char) -> bool {
        let live = (0..relation.columns.len()).filter(|at| !relation.columns[*at].is_dropped());
        let mut live = live.peekable();
        live.peek().is_some() && live.any(|at| self.may_with_column(relation, at, letter))
    }

    /// Whether the policies of a table hold for it: row-level security is on, and the role is neither exempt nor the table's owner.
    pub fn is_held_by_policies(&self, r: &Relation) -> bool {
        let exempt = self.role.is_some_and(|role| role.superuser || role.bypass_rls);
        r.security.enabled && !exempt && (r.security.forced || !self.owns(r.owner))
    }

    /// Whether it may see what a session of this role does.
    pub fn may_watch(&self, role: Oid) -> bool {
        use clearway_engine::catalog::predefined::READ_ALL_STATS;
        self.has_rights_of(READ_ALL_STATS) || self.has_rights_of(role)
    }
}

/// The letter of a privilege, as the catalog keeps it.
///
/// # Errors
/// 42601 for a word that is no privilege.
pub fn letter(privilege: &str) -> Result<char> {
    Ok(match privilege.to_ascii_lowercase().as_str() {
        "select" => 'r',
        "insert" => 'a',
        "update" => 'w',
        "delete" => 'd',
        "truncate" => 'D',
        "references" => 'x',
        "trigger" => 't',
        "usage" => 'U',
        "create" => 'C',
        "connect" => 'c',
        "temporary" | "temp" => 'T',
        "execute" => 'X',
        "set" => 's',
        "alter system" => 'A',
        _ => return Err(SqlError::new(code::SYNTAX_ERROR, format!("unrecognized privilege type \"{privilege}\""))),
    })
}

/// `permission denied for table t`.
pub fn denied(kind: &str, name: &str) -> SqlError {
    SqlError::new("42501", format!("permission denied for {kind} {name}"))
}

/// Whether the session's role may do all that these letters say with a relation.
///
/// # Errors
/// 42501.
pub fn relation(core: &Core, catalog: &Catalog, relation: &Relation, letters: &str) -> Result<()> {
    relation_as(core, catalog, relation, letters, None)
}

/// The same for the role of this number: the owner of the view that names the relation (PRV-1); none: the session's.
///
/// # Errors
/// 42501.
pub fn relation_as(
    core: &Core,
    catalog: &Catalog,
    relation: &Relation,
    letters: &str,
    owner: Option<Oid>,
) -> Result<()> {
    let judge = Judge::of(core, catalog).or_owner(owner);
    let allowed = letters.chars().all(|letter| judge.relation(relation, letter));
    if allowed && judge.role.is_some() { Ok(()) } else { Err(denied(relation.kind.name(), &relation.name)) }
}

/// Whether that role may do one of these things with a relation.
///
/// # Errors
/// 42501.
pub fn relation_any(core: &Core, catalog: &Catalog, table: &Relation, letters: &str, owner: Option<Oid>) -> Result<()> {
    let judge = Judge::of(core, catalog).or_owner(owner);
    let any = letters.chars().any(|letter| judge.relation(table, letter));
    if any { Ok(()) } else { Err(denied(table.kind.name(), &table.name)) }
}

/// Whether the session's role may do one of these things with a sequence.
///
/// # Errors
/// 42501.
pub fn sequence(core: &Core, catalog: &Catalog, sequence: &Sequence, letters: &str) -> Result<()> {
    let judge = Judge::of(core, catalog);
    let own = || {
        let object = catalog.get(sequence.oid);
        object.is_some_and(|object| letters.chars().any(|letter| judge.may_with(object, letter)))
    };
    if own() { Ok(()) } else { Err(denied("sequence", &sequence.name)) }
}

/// Whether the session's role owns an object, or is a superuser.
///
/// # Errors
/// 42501.
pub fn owns(core: &Core, catalog: &Catalog, object: &Object) -> Result<()> {
    let owner = match object {
        Object::Index(o) => catalog.relation(o.table).map(|table| table.owner),
        other => other.owner(),
    };
    let judge = Judge::of(core, catalog);
    let allowed = judge.is_superuser() || owner.is_some_and(|owner| judge.owns(owner));
    let denied = || SqlError::new("42501", format!("must be owner of {} {}", object.kind(), object.name()));
    if allowed { Ok(()) } else { Err(denied()) }
}

/// The same, or the owner of the schema that it is in: the roles that may drop it.
///
/// # Errors
/// 42501.
pub fn may_drop(core: &Core, catalog: &Catalog, object: &Object) -> Result<()> {
    let schema = crate::names::schema_of(object).and_then(|oid| catalog.get(oid));
    match schema {
        Some(schema) if owns(core, catalog, schema).is_ok() => Ok(()),
        _ => owns(core, catalog, object),
    }
}
