//! CREATE SCHEMA, with what is made in it.

use super::Ddl;
use super::objects::is_of_system;
use crate::context::names::quote;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::ast::QualName;
use crate::syntax::ddl::RoleSpec;
use crate::syntax::stmt::Statement;
use clearway_engine::catalog::{Object, Schema};
use std::sync::Arc;

/// The name of what an element makes, and its place in the order in which elements are made: what others may need comes first.
fn made(element: &Statement) -> (u8, Option<&QualName>) {
    match element {
        Statement::CreateSequence { name, .. } => (0, Some(name)),
        Statement::CreateTable(s) => (1, Some(&s.name)),
        Statement::CreateView { name, .. } => (2, Some(name)),
        Statement::CreateIndex(s) => (3, Some(&s.table)),
        _ => (4, None),
    }
}

/// CREATE SCHEMA.
pub(super) async fn create(
    d: &Ddl<'_>,
    session: &mut dyn Session,
    text: &Arc<str>,
    statement: &Statement,
) -> Result<&'static str> {
    let Statement::CreateSchema { name, owner, if_not_exists, elements } = statement else {
        return Err(SqlError::internal("another statement than CREATE SCHEMA"));
    };
    let made = d.create_schema(name.as_deref(), owner.as_ref(), *if_not_exists).await?;
    if let Some(schema) = made.filter(|_| !elements.is_empty()) {
        fill(session, text, &schema, elements).await?;
    }
    Ok("CREATE SCHEMA")
}

/// Makes the elements of CREATE SCHEMA: with the rights of the schema's owner, and with the schema before all others on the search path.
async fn fill(session: &mut dyn Session, text: &Arc<str>, schema: &Schema, elements: &[Statement]) -> Result<()> {
    if elements.iter().any(|e| matches!(e, Statement::CreateView { temporary: true, .. })) {
        return Err(SqlError::new("42P16", "cannot create temporary relation in non-temporary schema"));
    }
    for name in elements.iter().filter_map(|element| made(element).1) {
        if let Some(other) = name.schema().filter(|other| *other != schema.name) {
            let message =
                format!("CREATE specifies a schema ({other}) different from the one being created ({})", schema.name);
            return Err(SqlError::new("42P15", message));
        }
    }
    let mut ordered: Vec<&Statement> = elements.iter().collect();
    ordered.sort_by_key(|element| made(element).0);
    let core = session.core().clone();
    // ACT-1: the settings are again what they were when this goes.
    let _acting = core.act_for(&core.catalog(), schema.owner);
    let path = core.settings.lock().get("search_path").to_owned();
    let path = if path.is_empty() { quote(&schema.name) } else { format!("{}, {path}", quote(&schema.name)) };
    core.set("search_path", Some(&path), false)?;
    for element in ordered {
        super::run(session, text, element).await?;
    }
    Ok(())
}

impl Ddl<'_> {
    /// CREATE SCHEMA without what stands in it; none: there is one, and IF NOT EXISTS says that this is right.
    async fn create_schema(
        &self,
        name: Option<&str>,
        owner: Option<&RoleSpec>,
        if_not_exists: bool,
    ) -> Result<Option<Schema>> {
        let named = owner.map(|owner| self.role_named(&self.catalog(), owner)).transpose()?;
        let name = name.or(named.as_ref().map(|role| role.name.as_str())).unwrap_or("");
        self.may_make_schemas(&self.catalog())?;
        if name.starts_with("pg_") {
            return Err(SqlError::new("42939", format!("unacceptable schema name \"{name}\""))
                .detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        let catalog = self.catalog();
        if catalog.schema(self.core.database, name).is_some() || is_of_system(name) {
            let error = SqlError::new("42P06", format!("schema \"{name}\" already exists"));
            if if_not_exists {
                self.core.notice("NOTICE", SqlError::new("42P06", format!("{}, skipping", error.message())));
                return Ok(None);
            }
            return Err(error);
        }
        let owner = match owner {
            Some(owner) => {
                let owner = self.role_named(&catalog, owner)?;
                if !self.judge(&catalog).is_member(owner.oid) {
                    return Err(SqlError::new("42501", format!("must be member of role \"{}\"", owner.name)));
                }
                owner.oid
            }
            None => self.role()?,
        };
        let (oid, acl) = (self.new_oid(), self.first_acl_of(owner, 'n', 0)?);
        let schema = Schema { acl, ..Schema::new(oid, self.core.database, name, owner) };
        self.put(Object::Schema(schema.clone())).await?;
        Ok(Some(schema))
    }
}
