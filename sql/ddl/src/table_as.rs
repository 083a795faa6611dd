//! CREATE TABLE AS and CREATE MATERIALIZED VIEW: a table filled with the rows of a query.
//!
//! # Invariants
//! - CTA-1: the table has the columns of the query as they are when the tables of the query are locked.

use super::table::storage_options;
use super::{Ddl, storage};
use crate::context::errors::from_engine;
use crate::error::{Result, SqlError, code};
use crate::exec::filling::Filling;
use crate::planner::plan::OutputColumn;
use crate::session::{Asked, Begun, Session};
use crate::syntax::ddl::{CreateTableAs, Persistence};
use crate::syntax::stmt::Statement;
use crate::types::oid;
use clearway_engine::catalog::{Column, Object, Relation, RelationKind};
use clearway_engine::table::shape::TableShape;
use std::sync::Arc;

/// The query, or the one that EXECUTE names.
async fn asked<'a>(session: &'a mut dyn Session, text: &Arc<str>, s: &'a CreateTableAs) -> Result<Box<dyn Asked + 'a>> {
    let Statement::Execute { name, args } = &*s.query else { return session.prepare(&s.query, text) };
    let asked = session.prepared(name, args).await?;
    if !matches!(asked.statement(), Some(Statement::Query(_))) {
        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT"));
    }
    Ok(asked)
}

impl Ddl<'_> {
    /// CREATE TABLE AS, CREATE MATERIALIZED VIEW.
    pub(super) async fn create_table_as(
        &self,
        session: &mut dyn Session,
        text: &Arc<str>,
        s: &CreateTableAs,
    ) -> Result<String> {
        let name = self.placed(&s.name, s.persistence).await?;
        let on_commit = self.on_commit(&name, s.on_commit)?;
        let Some(schema) = self.new_name_or_skip(&name, s.if_not_exists)? else {
            return Ok(if s.materialized_view { "CREATE MATERIALIZED VIEW" } else { "CREATE TABLE AS" }.to_owned());
        };
        // ACT-1
        let _acting = match s.materialized_view {
            true => Some(self.core.act_for(&self.catalog(), self.role()?)),
            false => None,
        };
        let stored = self.query_to_store(&s.text)?;
        // CTA-1
        let meaning = match &*s.query {
            Statement::Query(query) if s.materialized_view => Some(self.lock_read(query, &stored).await?.1),
            _ => None,
        };
        let mut asked = asked(session, text, s).await?;
        let unsupported = || SqlError::unsupported("CREATE TABLE AS of this statement");
        if s.with_data && asked.columns().is_none() {
            return Err(unsupported());
        }
        // CTA-1
        let mut begun = if s.with_data { Some(asked.start().await?) } else { None };
        let outputs = match &begun {
            Some(begun) => begun.columns(),
            None => asked.columns(),
        };
        let outputs = outputs.map(<[_]>::to_vec).ok_or_else(unsupported)?;
        if s.columns.len() > outputs.len() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "too many column names were specified"));
        }
        if s.materialized_view && self.reads_temporary(&s.query)? {
            return Err(SqlError::new("0A000", "materialized views must not use temporary tables or views"));
        }
        let columns = columns_of(&outputs, s)?;
        columns.iter().try_for_each(|c| self.may_use_type(c.type_oid))?;
        let tree = self.new_tree(schema).await?;
        let relation = Relation {
            owner: self.role()?,
            acl: self.first_acl('r', schema)?,
            kind: if s.materialized_view { RelationKind::MaterializedView } else { RelationKind::Table },
            query: s.materialized_view.then(|| stored.into_owned()),
            meaning,
            options: storage_options(&s.storage)?,
            populated: s.with_data,
            unlogged: s.persistence == Persistence::Unlogged,
            on_commit,
            ..Relation::table(self.new_oid(), self.core.database, schema, s.name.name(), columns, tree)
        };
        let oid = relation.oid;
        self.put(Object::Relation(relation)).await?;
        let mut count = 0;
        if let Some(begun) = &mut begun {
            count = self.fill(oid, &mut **begun).await?;
        }
        Ok(if s.materialized_view && !s.with_data {
            "CREATE MATERIALIZED VIEW".to_owned()
        } else {
            format!("SELECT {count}")
        })
    }

    /// Puts the rows of a statement into a table as they come, without looking at constraints.
    pub(super) async fn fill(&self, table: u32, begun: &mut dyn Begun) -> Result<u64> {
        let catalog = self.catalog();
        let shape = TableShape::new(&catalog, table).map_err(from_engine)?;
        let mut filling = Filling::of(self.core, shape);
        let given = begun.give_to(self.core, &mut filling).await?;
        filling.end().await?;
        Ok(given)
    }
}

/// The columns of a table that takes the rows of a query.
fn columns_of(outputs: &[OutputColumn], s: &CreateTableAs) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    for (i, c) in outputs.iter().enumerate() {
        let ty = if c.ty.oid == oid::UNKNOWN { oid::TEXT.into() } else { c.ty };
        let name = s.columns.get(i).unwrap_or(&c.name);
        if columns.iter().any(|other| other.name == *name) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        super::composite::not_pseudo(name, ty)?;
        columns.push(Column {
            name: name.clone(),
            storage: storage(ty)?,
            type_oid: ty.oid,
            type_mod: ty.modifier,
            ..Column::default()
        });
    }
    Ok(columns)
}
