//! DROP OPERATOR, and what depends on an operator: the definitions whose stored text names it with its schema (OPR-2).
//!
//! A stored text says the schema and the name, not the types. So one that names another operator of the same name and schema counts, too.

use super::Ddl;
use super::cascade::needed_by;
use super::operator::Found;
use super::routine_drop::{Dependent, users_of};
use crate::context::operators::{shown, written};
use crate::context::types::schema_name;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::with_env;
use crate::syntax::operator::OperatorName;
use clearway_base::stack;
use clearway_engine::catalog::{Catalog, Object, Operator};
use clearway_values::builtin;

/// What names an operator of the name and the schema of this one.
pub(super) fn dependents(catalog: &Catalog, o: &Operator) -> Vec<Dependent> {
    let schema = schema_name(catalog, o.schema).unwrap_or_default();
    let names = |text: &str, _: Option<&[u32]>| written(text).iter().any(|w| w.name == o.name && *w.schema == *schema);
    users_of(catalog, o.database, 0, &names)
}

impl Ddl<'_> {
    pub(super) async fn drop_operators(
        &self,
        names: &[OperatorName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<&'static str> {
        for name in names {
            let catalog = self.catalog();
            with_env(self.core, &catalog, |_| ());
            match self.find_operator(&catalog, name) {
                Ok(Found::Own(o)) => {
                    self.lock_own_to_drop(&catalog, &Object::Operator(o.clone())).await?;
                    self.drop_operator(o.oid, cascade, &[]).await?;
                }
                Ok(Found::System(oid)) => {
                    let shown = crate::types::aliases::output(
                        crate::types::oid::REGOPERATOR,
                        oid,
                        &crate::types::text::NoNames,
                    );
                    if !self.judge(&catalog).is_superuser() {
                        let name = builtin::operator(oid).map_or("", |o| o.name);
                        return Err(SqlError::new("42501", format!("must be owner of operator {name}")));
                    }
                    let message = format!("cannot drop operator {shown} because it is required by the database system");
                    return Err(SqlError::new("2BP01", message));
                }
                Err(missing) => {
                    let skipped = skipped(name, &missing).filter(|_| if_exists).ok_or(missing)?;
                    self.core.notice("NOTICE", SqlError::new("00000", skipped));
                }
            }
        }
        Ok("DROP OPERATOR")
    }

    /// A schema gets another name: no stored text may name an operator of it by the old one.
    pub(super) fn may_rename_operators_of(&self, catalog: &Catalog, schema: u32) -> Result<()> {
        let mut users = catalog.operators().filter(|o| o.schema == schema).flat_map(|o| dependents(catalog, o));
        match users.next() {
            Some(user) => {
                let what = format!("another name for the schema of an operator that {} names", user.shown);
                Err(SqlError::unsupported(what))
            }
            None => Ok(()),
        }
    }

    /// Drops an operator; what names it goes with it, or keeps it.
    pub(super) async fn drop_operator(&self, oid: u32, cascade: bool, together: &[u32]) -> Result<()> {
        self.lock_to_drop(oid).await?;
        let catalog = self.catalog();
        let Some(o) = catalog.operator(oid) else { return Ok(()) };
        let mut users = dependents(&catalog, o);
        users.retain(|user| !together.contains(&user.of()));
        let lines: Vec<&str> = users.iter().map(|user| user.shown.as_str()).collect();
        if !users.is_empty() && !cascade {
            let this = format!("operator {}", shown(o));
            return Err(needed_by(&lines, &this, &this));
        }
        self.tell_cascade(&lines);
        for user in users {
            Box::pin(stack::deeper_polls(self.drop_user(user, "OPERATOR"))).await?;
        }
        for partner in [o.commutator, o.negator] {
            let Some(mut other) = self.catalog().operator(partner).filter(|other| other.oid != oid).cloned() else {
                continue;
            };
            let before = other.clone();
            for field in [&mut other.commutator, &mut other.negator] {
                *field = if *field == oid { 0 } else { *field };
            }
            if other != before {
                self.put(Object::Operator(other)).await?;
            }
        }
        self.take_away(oid, None).await
    }
}

/// What DROP IF EXISTS says of an operator that is not there; none: it is another error.
fn skipped(name: &OperatorName, missing: &SqlError) -> Option<String> {
    match missing.code() {
        code::UNDEFINED_FUNCTION => Some(format!("operator {} does not exist, skipping", name.name.parts.join("."))),
        code::INVALID_SCHEMA_NAME | code::UNDEFINED_OBJECT => Some(format!("{}, skipping", missing.message())),
        _ => None,
    }
}
