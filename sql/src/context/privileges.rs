//! What the session's role may do: tables, sequences, objects that it owns or was granted.
//!
//! # Invariants
//! - PRV-1: whatever a view reads is judged by the rights of the view's owner, whatever a statement names by those of the role that
//!   runs it.
//! - PRV-2: a right belongs to a role by its number. A role that the catalog does not know has none; no setting makes a session a role
//!   that the session's user may not become, whichever way it is set.

use super::core::Core;
use crate::error::{Result, SqlError, code};
use clearway_engine::catalog::{Catalog, Grant, Object, Oid, Relation, Role, Sequence};

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

/// Who a session may become.
pub struct Identities<'a> {
    /// The roles.
    pub catalog: &'a Catalog,
    /// The role that logged in.
    pub login: Oid,
}

impl Identities<'_> {
    fn named(&self, name: &str) -> Result<&Role> {
        let unknown = || SqlError::new(code::INVALID_PARAMETER_VALUE, format!("role \"{name}\" does not exist"));
        self.catalog.role(name).ok_or_else(unknown)
    }

    /// What SET ROLE makes of a session of this user.
    ///
    /// # Errors
    /// 22023 for an unknown role, 42501 for one that the user may not become.
    pub fn role(&self, session_user: Option<Identity>, name: &str) -> Result<Identity> {
        let role = self.named(name)?;
        let user = session_user.and_then(|user| role_by_oid(self.catalog, user.oid));
        // Roles have no members: a role is itself, a superuser anybody.
        if user.is_some_and(|user| user.superuser || user.oid == role.oid) {
            return Ok(Identity::of(role));
        }
        Err(SqlError::new("42501", format!("permission denied to set role \"{name}\"")))
    }

    /// What SET SESSION AUTHORIZATION makes of the session: only a superuser's login may become somebody else.
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

/// The letter of a privilege, as the catalog keeps it.
///
/// # Errors
/// 42601 for a word that is none.
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
        other => return Err(SqlError::new(code::SYNTAX_ERROR, format!("unrecognized privilege type \"{other}\""))),
    })
}

fn granted(grants: &[Grant], role: &Role, letter: char) -> bool {
    grants.iter().any(|g| (g.role == role.oid || g.role == 0) && g.privileges.contains(letter))
}

fn holds(role: &Role, relation: &Relation, letters: &str) -> bool {
    let owner = role.superuser || relation.owner == role.oid;
    owner || letters.chars().all(|letter| granted(&relation.grants, role, letter))
}

fn denied(kind: &str, name: &str) -> SqlError {
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
    let role = match owner {
        Some(owner) => role_by_oid(catalog, owner),
        None => core.role(catalog),
    };
    let allowed = role.is_some_and(|role| holds(role, relation, letters));
    if allowed { Ok(()) } else { Err(denied(Object::Relation(relation.clone()).kind(), &relation.name)) }
}

/// Whether the session's role may do one of these things with a relation.
///
/// # Errors
/// 42501.
pub fn relation_any(core: &Core, catalog: &Catalog, table: &Relation, letters: &str) -> Result<()> {
    let any = letters.chars().any(|letter| relation(core, catalog, table, letter.encode_utf8(&mut [0; 4])).is_ok());
    if any { Ok(()) } else { relation(core, catalog, table, letters) }
}

/// Whether the session's role may do one of these things with a sequence. Who may insert into a table may have the values of its
/// identity columns.
///
/// # Errors
/// 42501.
pub fn sequence(core: &Core, catalog: &Catalog, sequence: &Sequence, letters: &str) -> Result<()> {
    let Some(role) = core.role(catalog) else { return Err(denied("sequence", &sequence.name)) };
    let identity = sequence.owned_by.is_some_and(|(table, column)| {
        let table = catalog.relation(table);
        let identity = table.filter(|t| t.columns.get(column).is_some_and(|c| c.identity.is_some()));
        letters.contains('U') && identity.is_some_and(|t| holds(role, t, "a"))
    });
    let own = role.superuser || sequence.owner == role.oid;
    let allowed = own || identity || letters.chars().any(|letter| granted(&sequence.grants, role, letter));
    if allowed { Ok(()) } else { Err(denied("sequence", &sequence.name)) }
}

/// Whether the session's role owns an object, or is a superuser.
///
/// # Errors
/// 42501.
pub fn owns(core: &Core, catalog: &Catalog, object: &Object) -> Result<()> {
    let owner = match object {
        Object::Database(o) => o.owner,
        Object::Schema(o) => o.owner,
        Object::Relation(o) => o.owner,
        Object::Index(o) => catalog.relation(o.table).map_or(0, |table| table.owner),
        Object::Sequence(o) => o.owner,
        Object::Role(_) => 0,
    };
    let allowed = core.role(catalog).is_some_and(|role| role.superuser || role.oid == owner);
    let denied = || SqlError::new("42501", format!("must be owner of {} {}", object.kind(), object.name()));
    if allowed { Ok(()) } else { Err(denied()) }
}
