//! CREATE TABLE AS and CREATE MATERIALIZED VIEW: a table filled with the rows of a query.

use super::table::storage_options;
use super::{Ddl, Session, storage};
use crate::context::core::Core;
use crate::context::errors::from_engine;
use crate::error::{Result, SqlError, code};
use crate::exec::change::engine_row;
use crate::exec::{BoxFuture, Row, Run};
use crate::planner::plan::OutputColumn;
use crate::session::run::{Execution, Sink};
use crate::session::session::Prepared;
use crate::syntax::ast::Expr;
use crate::syntax::ddl::{CreateTableAs, Persistence};
use crate::syntax::stmt::Statement;
use crate::types::{Datum, oid};
use clearway_engine::catalog::{Column, Object, Relation, RelationKind};
use clearway_engine::session::load::Loading;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use std::sync::Arc;

impl Ddl<'_> {
    /// CREATE TABLE AS, CREATE MATERIALIZED VIEW.
    pub(super) async fn create_table_as(
        &self,
        session: &mut Session,
        prepared: &Arc<Prepared>,
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
        let (inner, query, values) = match &*s.query {
            Statement::Execute { name, args } => of_prepared(session, name, args).await?,
            query => {
                let inner = session.prepare_statement(query.clone(), prepared.text.clone(), &[])?;
                (Arc::new(inner), query.clone(), Arc::from([]))
            }
        };
        let outputs =
            inner.columns.clone().ok_or_else(|| SqlError::unsupported("CREATE TABLE AS of this statement"))?;
        if s.columns.len() > outputs.len() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "too many column names were specified"));
        }
        if s.materialized_view && self.reads_temporary(&s.query)? {
            return Err(SqlError::new("0A000", "materialized views must not use temporary tables or views"));
        }
        let text = self.query_to_store(&s.text)?;
        let meaning = match &*s.query {
            Statement::Query(query) if s.materialized_view => Some(self.lock_read(query, &text).await?.1),
            _ => None,
        };
        let columns = columns_of(&outputs, s)?;
        columns.iter().try_for_each(|c| self.may_use_type(c.type_oid))?;
        let tree = self.new_tree(schema).await?;
        let relation = Relation {
            owner: self.role()?,
            acl: self.first_acl('r', schema)?,
            kind: if s.materialized_view { RelationKind::MaterializedView } else { RelationKind::Table },
            query: s.materialized_view.then(|| text.into_owned()),
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
        if s.with_data {
            let mut execution = session.start(&inner, &query, values).await?;
            count = self.fill(oid, &mut execution).await?;
        }
        Ok(if s.materialized_view && !s.with_data {
            "CREATE MATERIALIZED VIEW".to_owned()
        } else {
            format!("SELECT {count}")
        })
    }

    /// Puts the rows of a statement into a table as they come, without looking at constraints.
    pub(super) async fn fill(&self, table: u32, execution: &mut Execution) -> Result<u64> {
        let catalog = self.catalog();
        let shape = TableShape::new(&catalog, table).map_err(from_engine)?;
        let mut filling = Filling { core: self.core, shape, rows: Vec::new(), loading: Loading::default() };
        let given = execution.give_to(self.core, &mut filling).await?;
        self.engine().end_loading(&mut filling.loading, &filling.shape).await.map_err(from_engine)?;
        Ok(given)
    }
}

/// The statement that EXECUTE names, and the values of its parameters.
///
/// # Errors
/// 42809 for one that gives no rows.
async fn of_prepared(
    session: &mut Session,
    name: &str,
    args: &[Expr],
) -> Result<(Arc<Prepared>, Statement, Arc<[Datum]>)> {
    let (prepared, values) = Box::pin(session.execute_arguments(name, args)).await?;
    match prepared.statement.as_deref().cloned() {
        Some(query @ Statement::Query(_)) => Ok((prepared, query, values)),
        _ => Err(SqlError::new(code::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT")),
    }
}

/// Rows at a time.
const BATCH_ROWS: usize = 256;

/// A table that takes rows.
struct Filling<'a> {
    core: &'a Core,
    shape: Arc<TableShape>,
    rows: Vec<Vec<Value>>,
    loading: Loading,
}

impl Sink for Filling<'_> {
    fn row(&mut self, _: &Run<'_>, row: Row) -> Result<()> {
        self.rows.push(engine_row(&row));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let mut engine = self.core.engine.take();
            for values in self.rows.drain(..) {
                let left = engine.take_one_of(&mut self.loading, &self.shape, values).map_err(from_engine)?;
                if let Some(values) = left {
                    engine.insert_one_of(&mut self.loading, &self.shape, &values).await.map_err(from_engine)?;
                }
            }
            Ok(())
        })
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
        columns.push(Column {
            name: name.clone(),
            storage: storage(ty)?,
            type_oid: ty.oid,
            type_mod: ty.modifier,
            not_null: false,
            default: None,
            identity: None,
            dropped_version: None,
            statistics: None,
            since_version: 0,
            missing: None,
            ..Column::default()
        });
    }
    Ok(columns)
}
