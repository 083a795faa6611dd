//! ALTER COLUMN ... TYPE: rewrites the rows, unless values of both types have the same bytes.

use super::Ddl;
use super::cascade::{shown, shown_policy};
use super::table::key_type;
use crate::context::convert::storage_of;
use crate::context::errors::from_engine;
use crate::context::index_terms;
use crate::context::sort_form::can_be_key;
use crate::error::{Result, SqlError, code};
use crate::exec::anew::{RUN_ROWS, put_rows, some_rows};
use crate::exec::{Cx, Run, RunState};
use crate::expr::{Bound, Params, Scope};
use crate::planner::environment::{bare_plan, with_env};
use crate::planner::generated::names_column;
use crate::planner::leaf::table_columns;
use crate::planner::{Planner, calls};
use crate::syntax::ast::Expr;
use crate::types::cast::Context;
use crate::types::{SqlType, format_type, oid};
use clearway_engine::catalog::{Object, Policy, Relation, RelationKind};
use clearway_engine::table::shape::TableShape;
use clearway_storage::ids::TreeId;
use std::sync::Arc;

/// Whether values of one type are, byte for byte, values of another.
fn same_bytes(from: SqlType, to: SqlType) -> bool {
    let text = |ty: u32| matches!(ty, oid::TEXT | oid::VARCHAR);
    if text(from.oid) && text(to.oid) {
        let wider = from.modifier >= 0 && to.modifier >= from.modifier;
        return to.modifier < 0 || to.oid == oid::TEXT || wider;
    }
    if from.oid == oid::NUMERIC && to.oid == oid::NUMERIC {
        let scale = |ty: SqlType| (ty.modifier - 4) & 0xffff;
        let precision = |ty: SqlType| (ty.modifier - 4) >> 16;
        let wider = from.modifier >= 0 && scale(from) == scale(to) && precision(to) >= precision(from);
        return to.modifier < 0 || wider;
    }
    from == to
}

impl Ddl<'_> {
    /// ALTER COLUMN ... TYPE.
    pub(super) async fn change_type(
        &self,
        r: Relation,
        column: &str,
        (ty, (dimensions, collation)): (SqlType, (Option<u8>, Option<u32>)),
        using: Option<&Expr>,
    ) -> Result<()> {
        if r.kind != RelationKind::Table {
            let message =
                format!("ALTER action ALTER COLUMN ... SET DATA TYPE cannot be performed on relation \"{}\"", r.name);
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
        }
        let at = super::alter::own_column(&r, column)?;
        let from = SqlType { oid: r.columns[at].type_oid, modifier: r.columns[at].type_mod };
        self.type_may_change(&r, at, from, ty)?;
        self.row_may_have(&r, ty.oid)?;
        self.rows_may_change(&r)?;
        let change = self.conversion_of(&r, at, ty, using)?;
        let mut fresh = r.clone();
        let c = &mut fresh.columns[at];
        (c.type_oid, c.type_mod, c.strategy) = (ty.oid, ty.modifier, None);
        (c.dimensions, c.collation) = (dimensions, collation);
        c.storage = storage_of(ty.oid).map(|s| s.code()).ok_or_else(|| crate::context::convert::not_storable(ty))?;
        if c.identity.is_some() && !matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8) {
            return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        let catalog = self.catalog();
        for index in catalog.indexes(r.oid).filter(|i| i.columns.iter().any(|k| k.column == at)) {
            let columns = index.columns.iter().filter(|k| k.expression.is_none());
            columns.map(|k| k.column).try_for_each(|c| key_type(&fresh, c))?;
        }
        self.retype_indexes(&fresh, at).await?;
        if using.is_none() && same_bytes(from, ty) {
            self.put(Object::Relation(fresh)).await?;
            return self.default_fits(r.oid, at, column, ty);
        }
        crate::context::rebuild::lock_for_rebuild(self.core, &catalog, r.oid).await?;
        let old = TableShape::new(&catalog, r.oid).map_err(from_engine)?;
        let old_types = crate::context::names::column_types(&r);
        fresh.columns[at].missing = None;
        self.fresh_trees(&fresh).await?;
        self.default_fits(r.oid, at, column, ty)?;
        self.write_anew(&old, &old_types, r.oid, &[(at, change)]).await
    }

    /// The expressions of indexes have the types that follow from the column's new one.
    async fn retype_indexes(&self, fresh: &Relation, at: usize) -> Result<()> {
        let catalog = self.catalog();
        for index in catalog.indexes(fresh.oid).filter(|i| i.reads.contains(&at)) {
            let mut index = index.clone();
            if let Some(text) = &index.condition {
                index_terms::condition(
                    &catalog,
                    fresh,
                    index.path.as_deref(),
                    &crate::syntax::parse_expression(text)?,
                )?;
            }
            let path = index.path.clone();
            for expression in index.columns.iter_mut().filter_map(|c| c.expression.as_mut()) {
                let text = std::mem::take(&mut expression.text);
                let parsed = crate::syntax::parse_expression(&text)?;
                *expression = index_terms::expression(&catalog, fresh, path.as_deref(), (&parsed, &text))?.0;
                if !can_be_key(expression.type_oid) {
                    return Err(crate::types::order::not_a_key(expression.type_oid, None));
                }
            }
            self.put(Object::Index(index)).await?;
        }
        Ok(())
    }

    /// Refuses a change that would leave a dependent behind.
    fn type_may_change(&self, r: &Relation, at: usize, from: SqlType, to: SqlType) -> Result<()> {
        let name = &r.columns[at].name;
        if r.columns[at].generated {
            // Its expression is computed anew.
        } else if let Some(of) = r.columns.iter().find(|c| c.generated && names_column(c, name)) {
            let detail = format!("Column \"{name}\" is used by generated column \"{}\".", of.name);
            let message = "cannot alter type of a column used by a generated column";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let catalog = self.catalog();
        for view in super::drop::dependents(&catalog, r) {
            if crate::planner::may_read_column(&view, r, at) {
                let message = "cannot alter type of a column used by a view or rule";
                let detail = format!("rule _RETURN on {} depends on column \"{name}\"", shown(&view));
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).detail(detail));
            }
        }
        let about = super::policy::policies_about(&catalog, r).map(|(table, p)| (table, p, true));
        let own = super::policy::policies_over(r, name).map(|p| (r, p, false));
        let says = |p: &Policy| p.conditions().any(|c| crate::planner::generated::says(&c.text, name));
        if let Some((table, p, _)) = own.chain(about).find(|(_, p, other)| !other || says(p)) {
            let message = "cannot alter type of a column used in a policy definition";
            let detail = format!("{} depends on column \"{name}\"", shown_policy(p, table));
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let leaves = r.foreign_keys.iter().any(|key| key.columns.contains(&at));
        let comes = |c: &Relation| c.foreign_keys.iter().any(|k| k.references == r.oid && k.referenced.contains(&at));
        if from.oid != to.oid && (leaves || catalog.referring(r.oid).any(comes)) {
            return Err(SqlError::unsupported("ALTER COLUMN ... TYPE of a column of a foreign key"));
        }
        Ok(())
    }

    /// The expression that makes the new value from the old row.
    fn conversion_of(&self, r: &Relation, at: usize, ty: SqlType, using: Option<&Expr>) -> Result<Bound> {
        let catalog = self.catalog();
        let column = &r.columns[at];
        with_env(self.core, &catalog, |env| {
            let scope = Scope::over(table_columns(r, &r.name, 0), None);
            let params = &mut Params::default();
            if column.generated {
                let e = crate::syntax::parse_expression(column.default.as_deref().unwrap_or("NULL"))?;
                let place = "column generation expressions";
                return Planner::new(env).on_path(column.path.as_deref(), |p| {
                    p.bind(&scope, params, place, None, |b| b.bind_assigned(&e, ty, &column.name))
                });
            }
            let to = format_type(ty);
            let (e, message, hint) = match using {
                Some(e) => (
                    e.clone(),
                    format!(
                        "result of USING clause for column \"{}\" cannot be cast automatically to type {to}",
                        column.name
                    ),
                    "You might need to add an explicit cast.".to_owned(),
                ),
                None => (
                    crate::syntax::parse_expression(&crate::context::names::quote(&column.name))?,
                    format!("column \"{}\" cannot be cast automatically to type {to}", column.name),
                    format!(
                        "You might need to specify \"USING {}::{to}\".",
                        crate::context::names::quote(&column.name)
                    ),
                ),
            };
            Planner::new(env).bind(&scope, params, "transform expressions", None, |b| {
                let bound = b.bind_unsettled(&e)?;
                b.coerce(bound, ty, Context::Assignment)?
                    .ok_or_else(|| SqlError::new("42804", message.clone()).hint(hint.clone()))
            })
        })
    }

    /// The existing default must fit the new type.
    fn default_fits(&self, table: u32, at: usize, column: &str, ty: SqlType) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(table) else { return Ok(()) };
        with_env(self.core, &catalog, |env| {
            let mut planner = Planner::new(env);
            planner.default_of(relation, at).map_err(|_| {
                let to = format_type(ty);
                let message = format!("default for column \"{column}\" cannot be cast automatically to type {to}");
                SqlError::new("42804", message)
            })?;
            planner.check_generated(relation)?;
            planner.target(relation).map(|_| ())
        })
    }

    /// Writes the newest rows of a table's old tree into its fresh ones, some columns changed, generated ones computed anew.
    pub(super) async fn write_anew(
        &self,
        old: &Arc<TableShape>,
        old_types: &[SqlType],
        table: u32,
        changes: &[(usize, Bound)],
    ) -> Result<()> {
        let catalog = self.catalog();
        let relation = catalog.relation(table).ok_or_else(|| SqlError::internal("a table has gone"))?;
        let target = with_env(self.core, &catalog, |env| {
            let mut planner = Planner::new(env);
            let target = planner.target(relation)?;
            let generated =
                |(_, bound): &(usize, Bound)| calls::in_place(&catalog, &env.judge, bound, "a generated column");
            target.generated.iter().try_for_each(generated)?;
            let of_type = |(_, bound): &(usize, Bound)| {
                calls::in_place(&catalog, &env.judge, bound, "a change of type")?;
                match bound.may_wait() {
                    true => Err(SqlError::unsupported("a change of type by a function of the session")),
                    false => Ok(()),
                }
            };
            changes.iter().try_for_each(of_type)?;
            Ok::<_, SqlError>(target)
        })?;
        if target.checks_wait {
            let what = "another type for a column of a table with a check constraint over a function whose body is more than one expression";
            return Err(SqlError::unsupported(what));
        }
        let shape = TableShape::new(&catalog, table).map_err(from_engine)?;
        let mut from = Vec::new();
        loop {
            // The walk goes on behind the last row: expressions are not evaluated while the engine's session is lent (EXE-1).
            let rows = some_rows(self.core, old, &mut from).await?;
            let done = rows.len() < RUN_ROWS;
            let rows = self.with_cx(|cx| cx.anew((&self.catalog(), &target), old_types, rows, changes))?;
            put_rows(self.core, &shape, rows, &|e| self.not_built(table, e)).await?;
            if done {
                return Ok(());
            }
        }
    }

    /// What `f` computes outside of a query.
    pub(super) fn with_cx<R>(&self, f: impl FnOnce(Cx<'_>) -> R) -> R {
        let (plan, state, catalog) = (bare_plan(), RunState::new(), self.catalog());
        let run = Run {
            core: self.core,
            plan: &plan,
            params: &[],
            view: Default::default(),
            isolation: Default::default(),
            format: self.core.format(),
            names: self.core.names(&catalog),
            started: crate::context::core::now(),
            transaction_started: self.core.transaction_started(),
            state: &state,
            views: &crate::views::SystemViews,
        };
        f(Cx { run: &run, outer: &[] })
    }

    /// An index goes, with its tree.
    pub(super) async fn drop_index_of(&self, index: u32, tree: u64) -> Result<()> {
        let mut engine = self.engine();
        engine.drop_object(index).await.map_err(from_engine)?;
        engine.drop_tree_at_commit(TreeId(tree));
        Ok(())
    }
}
