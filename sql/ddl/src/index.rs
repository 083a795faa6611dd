//! CREATE INDEX.

use super::table::key_type;
use super::{Ddl, exists, free_name, paths};
use crate::context::convert::read_row;
use crate::context::errors::from_engine;
use crate::context::index_terms;
use crate::context::names::column_types;
use crate::context::privileges::denied;
use crate::context::sort_form::can_be_key;
use crate::error::{Result, SqlError};
use crate::exec::Row;
use crate::expr::is_system_column;
use crate::planner::calls::may_build;
use crate::planner::dml::column_of;
use crate::planner::generated::{missing_system_column, without_table};
use crate::planner::indexes::column_names;
use crate::planner::plan::TableSlot;
use crate::syntax::ast::ExprKind;
use crate::syntax::ddl::CreateIndex;
use clearway_engine::catalog::{Catalog, Index, IndexColumn, IndexState, Object, Oid, Relation, RelationKind};
use clearway_engine::error::EngineError;
use clearway_engine::progress::{Work, WorkView, Working};
use clearway_engine::table::shape::TableShape;
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::sync::Arc;

impl Ddl<'_> {
    /// Whether the session's role may make an index of a table: that is an object of the table's schema.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn may_make_index(&self, r: &Relation) -> Result<()> {
        let catalog = self.catalog();
        match catalog.get(r.schema).map(|o| &**o) {
            Some(Object::Schema(schema)) if !self.judge(&catalog).may_with_schema(schema, 'C') => {
                Err(denied("schema", &schema.name))
            }
            _ => Ok(()),
        }
    }

    /// CREATE INDEX. CONCURRENTLY builds beside writers (engine/src/session/online.rs).
    pub(super) async fn create_index(&self, s: &CreateIndex) -> Result<&'static str> {
        let unsupported = [
            (s.method.as_deref().is_some_and(|m| m != "btree"), "an index method other than btree"),
            (s.tablespace.as_deref().is_some_and(|t| t != "pg_default"), "TABLESPACE"),
        ];
        if let Some((_, what)) = unsupported.iter().find(|u| u.0) {
            return Err(SqlError::unsupported(what));
        }
        let options = super::table::index_options(&s.storage)?;
        let mode = if s.concurrently { LockMode::ShareUpdateExclusive } else { LockMode::Share };
        let own = |catalog: &Arc<_>, table| self.own_oid(catalog, table);
        let (table, catalog) = self.lock_named(&s.table, mode, own).await?;
        let relation = catalog.relation(table).ok_or_else(|| super::missing("relation", s.table.name()))?;
        self.own(relation)?;
        can_be_indexed(relation)?;
        self.not_in_use("CREATE INDEX", table, &relation.name)?;
        self.may_make_index(relation)?;
        let mut s = without_own_name(s, &relation.name)?;
        self.index_to_store(&mut s, relation)?;
        let s = &s;
        let path = paths::of_index(self.core, &catalog, relation, s)?;
        let (columns, reads) = index_columns(s, &catalog, relation, path.as_deref())?;
        let include = s.include.iter().map(|n| column_of(relation, n, 0)).collect::<Result<Vec<_>>>()?;
        let name = s.name.clone().unwrap_or_else(|| {
            let mut parts = vec![relation.name.as_str()];
            let names = column_names(relation, &columns);
            parts.extend(names.iter().map(String::as_str));
            parts.extend(include.iter().map(|c| relation.columns[*c].name.as_str()));
            free_name(&catalog, relation.schema, &[], &parts, "idx")
        });
        if catalog.in_schema(relation.schema, &name).is_some() {
            if s.if_not_exists {
                let message = format!("relation \"{name}\" already exists, skipping");
                self.core.notice("NOTICE", SqlError::new("42P07", message));
                return Ok("CREATE INDEX");
            }
            return Err(exists(&name));
        }
        let index = Index {
            oid: self.new_oid(),
            database: relation.database,
            schema: relation.schema,
            name,
            table,
            tree: 0,
            columns,
            include,
            unique: s.unique,
            nulls_not_distinct: s.nulls_not_distinct,
            primary: false,
            constraint: false,
            state: IndexState::Public,
            valid_from_lsn: 0,
            clustered: false,
            options,
            condition: s.filter.as_ref().map(|(_, text)| text.clone()),
            path: path
                .filter(|_| s.filter.is_some() || s.keys.iter().any(|k| !matches!(&*k.expr.kind, ExprKind::Column(_)))),
            reads,
            ..Index::default()
        };
        may_build(&catalog, relation, &index)?;
        let _working = self.shows_index(table, index.oid, command_of(s.concurrently));
        match s.concurrently {
            true => self.build_online(index).await?,
            false => self.make_index(relation, index).await?,
        }
        Ok("CREATE INDEX")
    }

    /// The building of an index shows in pg_stat_progress_create_index.
    pub(super) fn shows_index(&self, table: u32, index: u32, command: &'static str) -> Working {
        let now = WorkView { work: Work::Index, command, phase: "initializing", table, index };
        self.engine().progress().begin(now)
    }

    /// In transactions of its own; the last one is left open.
    async fn build_online(&self, index: Index) -> Result<()> {
        let (database, table) = (index.database, index.table);
        self.sort_by_forms(table).await?;
        let mut building = self.engine().begin_index(index).await.map_err(from_engine)?;
        self.engine().progress().phase("waiting for writers before build", 0);
        self.core
            .lock_wait(async { self.engine().wait_for_writers(database, table).await })
            .await
            .map_err(from_engine)?;
        let filled = self.engine().fill_index(&building).await;
        filled.map_err(|e| self.not_built(table, e))?;
        self.engine().publish_index(&mut building).await.map_err(from_engine)
    }

    /// Makes an index and fills it from its table, which the caller has locked; as in PostgreSQL, the building takes `Share` besides.
    pub(super) async fn make_index(&self, relation: &Relation, mut index: Index) -> Result<()> {
        self.core.lock_relation(relation.oid, LockMode::Share, IfTaken::Wait).await?;
        self.sort_by_forms(relation.oid).await?;
        index.tree = self.new_tree(relation.schema).await?;
        // Older snapshots do not use it: rows that they see may have no entry.
        index.valid_from_lsn = self.core.db.transactions().visible_lsn().0;
        let oid = index.oid;
        self.put(Object::Index(index)).await?;
        self.fill_index(relation.oid, oid).await
    }

    /// The columns of a table that is older than the sort forms of their types sort by them before an index has them.
    async fn sort_by_forms(&self, table: u32) -> Result<()> {
        let catalog = self.catalog();
        let Some(mut relation) = catalog.relation(table).cloned() else { return Ok(()) };
        match crate::planner::environment::with_env(self.core, &catalog, |_| super::take_forms(&mut relation)) {
            true => self.put(Object::Relation(relation)).await,
            false => Ok(()),
        }
    }

    /// REINDEX: a fresh tree for an index, filled from its table, which the caller has locked with the index. A primary key has none to
    /// fill: the table's rows stand in it.
    pub(super) async fn rebuild_index(&self, oid: u32) -> Result<()> {
        let catalog = self.catalog();
        let Some(index) = catalog.index(oid).filter(|i| i.state == IndexState::Public).cloned() else { return Ok(()) };
        let Some(relation) = catalog.relation(index.table).filter(|r| r.tree != index.tree) else { return Ok(()) };
        self.engine().drop_tree_at_commit(TreeId(index.tree));
        self.make_index(relation, index).await
    }

    /// Fills an empty index.
    pub(super) async fn fill_index(&self, table: u32, oid: u32) -> Result<()> {
        let catalog = self.catalog();
        let shape = TableShape::new(&catalog, table).map_err(from_engine)?;
        let Some(place) = shape.indexes.iter().position(|i| i.oid == oid) else { return Ok(()) };
        let built = self.engine().build_index(&shape, place).await;
        built.map_err(|e| self.not_built(table, e))
    }

    /// Why an index of a table could not be built.
    pub(super) fn not_built(&self, table: u32, error: EngineError) -> SqlError {
        let (index, oid, values) = match error {
            EngineError::Duplicate { index, oid, row } => (index, oid, row),
            error => return from_engine(error),
        };
        let shown = || -> Result<SqlError> {
            let catalog = self.catalog();
            let relation = catalog.relation(table).ok_or_else(|| SqlError::internal("a table has gone"))?;
            let shape = TableShape::new(&catalog, table).map_err(from_engine)?;
            let slot = TableSlot { shape, types: column_types(relation), base: 0, name: String::new() };
            let mut row = Row::new();
            if !values.is_empty() {
                read_row(&values, &slot.types, &mut row)?;
            }
            Ok(self.with_cx(|cx| cx.duplicated(&slot, &index, oid, &row)))
        };
        shown().unwrap_or_else(|e| e)
    }
}

/// The statement, with the table's name taken off the columns of its expressions.
fn without_own_name(s: &CreateIndex, table: &str) -> Result<CreateIndex> {
    let mut out = s.clone();
    let of_keys = out.keys.iter_mut().filter(|k| !matches!(&*k.expr.kind, ExprKind::Column(_)));
    let texts = of_keys.map(|k| (&mut k.expr, &mut k.text)).chain(out.filter.iter_mut().map(|(e, text)| (e, text)));
    for (expr, text) in texts {
        let bare = without_table(text, table);
        if bare != *text {
            *expr = crate::syntax::parse_expression(&bare)?;
            *text = bare;
        }
    }
    Ok(out)
}

/// How pg_stat_progress_create_index calls the statement.
fn command_of(concurrently: bool) -> &'static str {
    if concurrently { "CREATE INDEX CONCURRENTLY" } else { "CREATE INDEX" }
}

/// The columns of an index's key, and the columns that its expressions name.
fn index_columns(
    s: &CreateIndex,
    catalog: &Catalog,
    relation: &Relation,
    path: Option<&[Oid]>,
) -> Result<(Vec<IndexColumn>, Vec<usize>)> {
    let (mut columns, mut reads) = (Vec::new(), Vec::new());
    for k in &s.keys {
        if k.collation.as_ref().is_some_and(|c| !matches!(c.name(), "C" | "POSIX" | "C.UTF-8" | "default")) {
            return Err(SqlError::unsupported("a collation other than C.UTF-8").at(k.expr.pos));
        }
        let class = |ty| k.opclass.as_ref().map_or(Ok(None), |class| crate::context::opclass::named(class, ty));
        let nulls_first = k.nulls_first.unwrap_or(k.descending);
        let place = IndexColumn { descending: k.descending, nulls_first, ..IndexColumn::default() };
        if let ExprKind::Column(name) = &*k.expr.kind {
            if is_system_column(name.name()) {
                return Err(SqlError::new("0A000", OF_SYSTEM));
            }
            if let Some(other) = name.schema().filter(|table| *table != relation.name) {
                let message = format!("missing FROM-clause entry for table \"{other}\"");
                return Err(SqlError::new("42P01", message).at(name.pos));
            }
            let column = column_of(relation, name.name(), name.pos)?;
            key_type(relation, column)?;
            columns.push(IndexColumn { column, class: class(relation.columns[column].type_oid)?, ..place });
            continue;
        }
        let found = index_terms::expression(catalog, relation, path, (&k.expr, &k.text));
        let (expression, named) = found.map_err(of_system_column)?;
        if !can_be_key(expression.type_oid) {
            return Err(crate::types::order::not_a_key(expression.type_oid, Some(k.expr.pos)));
        }
        reads.extend(named);
        let class = class(expression.type_oid)?;
        columns.push(IndexColumn { column: IndexColumn::OF_NONE, expression: Some(expression), class, ..place });
    }
    if let Some((condition, _)) = &s.filter {
        let named = index_terms::condition(catalog, relation, path, condition);
        reads.extend(named.map_err(of_system_column)?);
    }
    reads.sort_unstable();
    reads.dedup();
    Ok((columns, reads))
}

/// Whether a relation is of a kind that can have indexes.
///
/// # Errors
/// 42809 for a view.
fn can_be_indexed(relation: &Relation) -> Result<()> {
    if relation.kind != RelationKind::View {
        return Ok(());
    }
    let message = format!("cannot create index on relation \"{}\"", relation.name);
    Err(SqlError::new("42809", message).detail("This operation is not supported for views."))
}

const OF_SYSTEM: &str = "index creation on system columns is not supported";

/// What is said of an expression that names a system column.
fn of_system_column(error: SqlError) -> SqlError {
    if missing_system_column(&error).is_some() { SqlError::new("0A000", OF_SYSTEM) } else { error }
}
