//! Temporary objects: the schema that they are in, what happens to them at a commit, and how they are dropped
//! (engine/src/session/temporary.rs).

use super::Ddl;
use crate::context::core::Core;
use crate::context::errors::from_engine;
use crate::error::{Result, SqlError, code};
use crate::exec::change::newest_view;
use crate::planner::Planner;
use crate::planner::environment::with_env;
use crate::session::Server;
use crate::syntax::ast::QualName;
use crate::syntax::ddl::{OnCommit, Persistence};
use crate::syntax::stmt::Statement;
use clearway_engine::catalog::{BOOTSTRAP_ROLE, Object, Oid, Relation, Schema, TEMP_PREFIX};
use clearway_engine::table::shape::TableShape;
use clearway_storage::btree::{Direction, KeyRange};
use std::sync::Arc;

impl Ddl<'_> {
    /// An empty tree for something in a schema; in that of temporary objects it lives as long as the session.
    pub(super) async fn new_tree(&self, schema: u32) -> Result<u64> {
        let temporary = self.catalog().temp_schema().is_some_and(|own| own.oid == schema);
        let mut engine = self.engine();
        let tree = if temporary { engine.create_temporary_tree().await } else { engine.create_tree().await };
        Ok(tree.map_err(from_engine)?.0)
    }

    /// The name of a relation to be made, with the schema of temporary objects where it belongs there.
    pub(super) async fn placed(&self, name: &QualName, persistence: Persistence) -> Result<QualName> {
        let own = |schema: &str| schema == "pg_temp" || self.is_own_temp(schema);
        let asked = match name.schema() {
            Some(schema) => own(schema),
            None => self.core.path().first().is_some_and(|first| first == "pg_temp"),
        };
        if persistence == Persistence::Temporary && name.schema().is_some_and(|schema| !own(schema)) {
            let message = "cannot create temporary relation in non-temporary schema";
            return Err(SqlError::new("42P16", message).at(name.pos));
        }
        if !asked && persistence != Persistence::Temporary {
            return Ok(name.clone());
        }
        if persistence == Persistence::Unlogged {
            let message = "only temporary relations may be created in temporary schemas";
            return Err(SqlError::new("42P16", message).at(name.pos));
        }
        self.make_temp_schema().await?;
        Ok(QualName { parts: vec!["pg_temp".to_owned(), name.name().to_owned()], pos: name.pos })
    }

    fn is_own_temp(&self, schema: &str) -> bool {
        self.catalog().temp_schema().is_some_and(|own| own.name == schema)
    }

    async fn make_temp_schema(&self) -> Result<()> {
        let catalog = self.catalog();
        if catalog.temp_schema().is_some() {
            return Ok(());
        }
        let database = catalog.get(self.core.database);
        if !database.is_some_and(|database| self.judge(&catalog).may_with(database, 'T')) {
            let name = &self.core.database_name;
            let message = format!("permission denied to create temporary tables in database \"{name}\"");
            return Err(SqlError::new("42501", message));
        }
        let name = format!("{TEMP_PREFIX}{}", self.core.backend.pid);
        let schema = Schema::new(self.new_oid(), self.core.database, &name, BOOTSTRAP_ROLE);
        self.core.ends_with_work();
        self.engine().put_object(Object::Schema(schema)).await.map_err(from_engine)
    }

    /// ON COMMIT, as the catalog keeps it.
    pub(super) fn on_commit(&self, name: &QualName, asked: Option<OnCommit>) -> Result<Option<char>> {
        if asked.is_some() && name.schema() != Some("pg_temp") {
            return Err(SqlError::new("42P16", "ON COMMIT can only be used on temporary tables"));
        }
        Ok(match asked {
            Some(OnCommit::DeleteRows) => Some('d'),
            Some(OnCommit::Drop) => Some('x'),
            Some(OnCommit::PreserveRows) | None => None,
        })
    }

    /// A foreign key leads from a temporary table to another one only, and from any other table to none.
    pub(super) fn same_persistence(&self, child: &Relation, parent: &Relation) -> Result<()> {
        let own = self.catalog().temp_schema().map(|schema| schema.oid);
        let temporary = |relation: &Relation| Some(relation.schema) == own;
        let message = match (temporary(child), temporary(parent)) {
            (true, false) => "constraints on temporary tables may reference only temporary tables",
            (false, true) => "constraints on permanent tables may reference only permanent tables",
            (false, false) if parent.unlogged && !child.unlogged => {
                "constraints on permanent tables may reference only permanent tables"
            }
            _ => return Ok(()),
        };
        Err(SqlError::new("42P16", message))
    }

    /// Whether a query names a temporary table or view.
    pub(super) fn reads_temporary(&self, query: &Statement) -> Result<bool> {
        let Statement::Query(query) = query else { return Ok(false) };
        let catalog = self.catalog();
        let (_, meaning) = with_env(self.core, &catalog, |env| Planner::new(env).plan_view(query, ""))?;
        Ok(meaning.names.iter().any(|(_, oid)| catalog.get(*oid).is_some_and(|o| catalog.is_temporary(o))))
    }

    async fn drop_all_temporary(&self) -> Result<()> {
        let objects = self.engine().temporary_objects();
        let kind = |oid: &Oid| self.catalog().get(*oid).map(|o| o.kind());
        // A type goes when what is made of it has gone: tables, and the types that were made after it.
        let types = objects.iter().rev().filter(|oid| kind(oid) == Some("type"));
        let others = objects.iter().filter(|oid| kind(oid).is_some_and(|k| !matches!(k, "index" | "schema" | "type")));
        for oid in others.chain(types) {
            self.drop_one(*oid, true, &objects).await?;
        }
        Ok(())
    }

    async fn end_of_transaction(&self) -> Result<()> {
        let objects = self.engine().temporary_objects();
        self.rows_go_together(&objects)?;
        for oid in objects {
            let Some(relation) = self.catalog().relation(oid).cloned() else { continue };
            match relation.on_commit {
                Some('x') => self.drop_one(oid, true, &[]).await?,
                Some('d') if self.has_rows(&relation).await? => self.fresh_trees(&relation).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Rows that the end of the transaction deletes are referred to only by rows that it deletes too.
    fn rows_go_together(&self, temporary: &[Oid]) -> Result<()> {
        let catalog = self.catalog();
        let kept =
            temporary.iter().filter_map(|oid| catalog.relation(*oid)).filter(|table| table.on_commit != Some('d'));
        for child in kept {
            let mut parents = child.foreign_keys.iter().filter_map(|key| catalog.relation(key.references));
            let Some(parent) = parents.find(|parent| parent.on_commit == Some('d')) else { continue };
            let detail = format!(
                "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                child.name, parent.name
            );
            let message = "unsupported ON COMMIT and foreign key combination";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        Ok(())
    }

    async fn has_rows(&self, relation: &Relation) -> Result<bool> {
        let shape = TableShape::new(&self.catalog(), relation.oid).map_err(from_engine)?;
        let mut engine = self.engine();
        let view = newest_view(&mut engine);
        let mut walk = engine.scan(&shape, KeyRange::all(), Direction::Forward, &view);
        Ok(engine.next(&mut walk).await.map_err(from_engine)?.is_some())
    }
}

/// What ON COMMIT asks for, before the transaction commits.
///
/// # Errors
/// Those of dropping and of emptying tables.
pub async fn before_commit(core: &Arc<Core>, server: &'static dyn Server) -> Result<()> {
    untold(core, server).end_of_transaction().await
}

/// DISCARD TEMP.
///
/// # Errors
/// Those of dropping.
pub async fn drop_all(core: &Arc<Core>, server: &'static dyn Server) -> Result<()> {
    let any = core.engine.take().has_temporary();
    if any { untold(core, server).drop_all_temporary().await } else { Ok(()) }
}

/// What goes along with temporary objects is not told to the client, as in PostgreSQL: it is gathered, and nothing tells it.
fn untold<'a>(core: &'a Arc<Core>, server: &'static dyn Server) -> Ddl<'a> {
    Ddl::new(core, server, true)
}
