//! What the session's role may do: tables, sequences, objects that it owns or was granted.
//!
//! # Invariants
//! - PRV-1: whatever a view reads is judged by the rights of the view's owner, whatever a statement names by those of the role that
//!   runs it.

use super::core::Core;
use crate::error::{Result, SqlError, code};
use clearway_engine::catalog::{Catalog, Grant, Object, Oid, Relation, Role, Sequence};

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
    let role = match owner.and_then(|oid| catalog.get(oid)).map(|o| &**o) {
        Some(Object::Role(role)) => Some(role),
        _ => core.role(catalog),
    };
    let allowed = role.is_none_or(|role| holds(role, relation, letters));
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
    let Some(role) = core.role(catalog) else { return Ok(()) };
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
    let allowed = core.role(catalog).is_none_or(|role| role.superuser || role.oid == owner);
    let denied = || SqlError::new("42501", format!("must be owner of {} {}", object.kind(), object.name()));
    if allowed { Ok(()) } else { Err(denied()) }
}
