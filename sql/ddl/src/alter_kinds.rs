//! Which actions of ALTER TABLE which kinds of relations take.

use super::triggers::of_table;
use crate::context::names::schema_of;
use crate::error::{Result, SqlError, code};
use crate::syntax::ddl::{AlterAction, ObjectKind, Rename};
use clearway_engine::catalog::{Catalog, Object, Relation, RelationKind, Sequence};

/// Refuses an action that a relation of this kind has not. Those of triggers, of row security and of types say so themselves.
///
/// # Errors
/// 42809.
pub(super) fn takes(r: &Relation, action: &AlterAction) -> Result<()> {
    use AlterAction as A;
    let (what, kinds): (&str, &[&str]) = match action {
        A::AddColumn { .. } => ("ADD COLUMN", &["table"]),
        A::DropColumn { .. } => ("DROP COLUMN", &["table"]),
        A::SetDefault { .. } | A::DropDefault { .. } => ("ALTER COLUMN ... SET DEFAULT", &["table", "view"]),
        A::AddIdentity { .. } => ("ALTER COLUMN ... ADD IDENTITY", &["table", "view"]),
        A::SetIdentity { .. } => ("ALTER COLUMN ... SET", &["table", "view"]),
        A::DropIdentity { .. } => ("ALTER COLUMN ... DROP IDENTITY", &["table", "view"]),
        A::SetNotNull { .. } => ("ALTER COLUMN ... SET NOT NULL", &["table"]),
        A::DropNotNull { .. } => ("ALTER COLUMN ... DROP NOT NULL", &["table"]),
        A::DropExpression { .. } => ("ALTER COLUMN ... DROP EXPRESSION", &["table"]),
        A::SetStatistics { .. } => ("ALTER COLUMN ... SET STATISTICS", &["table", "materialized view"]),
        A::SetColumnStorage { .. } => ("ALTER COLUMN ... SET STORAGE", &["table", "materialized view"]),
        A::AddConstraint(_) => ("ADD CONSTRAINT", &["table"]),
        A::DropConstraint { .. } => ("DROP CONSTRAINT", &["table"]),
        A::AlterConstraint { .. } => ("ALTER CONSTRAINT", &["table"]),
        A::ValidateConstraint { .. } => ("VALIDATE CONSTRAINT", &["table"]),
        A::ClusterOn(Some(_)) => ("CLUSTER ON", &["table", "materialized view"]),
        A::ClusterOn(None) => ("SET WITHOUT CLUSTER", &["table", "materialized view"]),
        A::SetLogged(true) => ("SET LOGGED", &["table"]),
        A::SetLogged(false) => ("SET UNLOGGED", &["table"]),
        _ => return Ok(()),
    };
    of_table(r, what, kinds)
}

/// Refuses an object that is not of the kind that ALTER says: TABLE stands for all of them.
///
/// # Errors
/// 42809.
pub(super) fn is_said(object: &Object, said: ObjectKind) -> Result<()> {
    let (is, what) = match said {
        ObjectKind::View => (is_relation(object, RelationKind::View), "a view"),
        ObjectKind::MaterializedView => (is_relation(object, RelationKind::MaterializedView), "a materialized view"),
        ObjectKind::Sequence => (matches!(object, Object::Sequence(_)), "a sequence"),
        ObjectKind::Index => (matches!(object, Object::Index(_)), "an index"),
        _ => return Ok(()),
    };
    if is {
        return Ok(());
    }
    Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{}\" is not {what}", object.name())))
}

/// Refuses a new name for an object that is not of the kind that RENAME says, where INDEX stands for all of them, too, and a name that is taken.
///
/// # Errors
/// 42809, 42P07.
pub(super) fn may_be_called(catalog: &Catalog, object: &Object, s: &Rename) -> Result<()> {
    if s.object != ObjectKind::Index {
        is_said(object, s.object)?;
    }
    if let (None, Object::Index(_) | Object::Sequence(_), Some(schema)) = (&s.part, object, schema_of(object))
        && catalog.in_schema(schema, &s.to).is_some()
    {
        return Err(super::exists(&s.to));
    }
    Ok(())
}

/// Refuses to move what stays with its table.
///
/// # Errors
/// 42809, 0A000.
pub(super) fn may_move(catalog: &Catalog, object: &Object, said: ObjectKind) -> Result<()> {
    is_said(object, said)?;
    match object {
        Object::Index(index) => {
            let message = format!("cannot change schema of index \"{}\"", index.name);
            let hint = "Change the schema of the table instead.";
            Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).hint(hint))
        }
        Object::Sequence(Sequence { name, owned_by: Some((table, _)), .. }) => {
            let table = catalog.relation(*table).map_or("", |r| &r.name);
            let detail = format!("Sequence \"{name}\" is linked to table \"{table}\".");
            Err(SqlError::new("0A000", "cannot move an owned sequence into another schema").detail(detail))
        }
        _ => Ok(()),
    }
}

fn is_relation(object: &Object, kind: RelationKind) -> bool {
    matches!(object, Object::Relation(r) if r.kind == kind)
}
