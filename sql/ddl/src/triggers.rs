//! ALTER TABLE ... ENABLE and DISABLE TRIGGER. Users have no triggers here; ALL means those of foreign keys and deferrable unique constraints,
//! too, which are always enabled.

use super::Ddl;
use crate::error::{Result, SqlError, code};
use crate::syntax::ddl::Triggers;
use clearway_engine::catalog::{Relation, RelationKind};

/// Refuses an action on a relation that is none of these kinds.
///
/// # Errors
/// 42809.
pub(super) fn of_table(r: &Relation, action: &str, kinds: &[&str]) -> Result<()> {
    if kinds.contains(&r.kind.name()) {
        return Ok(());
    }
    let message = format!("ALTER action {action} cannot be performed on relation \"{}\"", r.name);
    let detail = format!("This operation is not supported for {}s.", r.kind.name());
    Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).detail(detail))
}

impl Ddl<'_> {
    /// Switches triggers of a table.
    pub(super) fn triggers(&self, r: &Relation, enable: char, which: &Triggers) -> Result<()> {
        let action = match (enable, which) {
            ('d', Triggers::Named(_)) => "DISABLE TRIGGER",
            ('d', Triggers::All) => "DISABLE TRIGGER ALL",
            ('d', Triggers::User) => "DISABLE TRIGGER USER",
            ('a', _) => "ENABLE ALWAYS TRIGGER",
            ('r', _) => "ENABLE REPLICA TRIGGER",
            (_, Triggers::Named(_)) => "ENABLE TRIGGER",
            (_, Triggers::All) => "ENABLE TRIGGER ALL",
            (_, Triggers::User) => "ENABLE TRIGGER USER",
        };
        of_table(r, action, &[RelationKind::Table.name()])?;
        match which {
            Triggers::Named(name) => {
                let message = format!("trigger \"{name}\" for table \"{}\" does not exist", r.name);
                Err(SqlError::new(code::UNDEFINED_OBJECT, message))
            }
            // The checks of these constraints can't be switched off.
            Triggers::All if enable == 'd' && self.has_triggers(r) => {
                Err(SqlError::unsupported("DISABLE TRIGGER ALL of a table with foreign keys or deferrable constraints"))
            }
            _ => Ok(()),
        }
    }

    /// Whether PostgreSQL's table would have triggers: of a foreign key that leaves it or leads to it, or of a deferrable unique constraint.
    fn has_triggers(&self, r: &Relation) -> bool {
        let catalog = self.catalog();
        !r.foreign_keys.is_empty()
            || catalog.referring(r.oid).next().is_some()
            || catalog.indexes(r.oid).any(|index| index.deferrable)
    }
}
