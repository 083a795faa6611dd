//! ALTER TABLE: adds, validates and drops constraints.

use super::referrers::DroppedPart;
use super::table::{Foreign, key_type};
use super::{Ddl, exists, free_name};
use crate::context::errors::{about, from_engine};
use crate::error::{Result, SqlError, code};
use crate::planner::dml::column_of;
use crate::planner::generated::without_table;
use crate::syntax::ddl::{TableConstraint, TableConstraintKind};
use clearway_engine::catalog::{Check, Index, IndexColumn, IndexState, Object, Relation};
use clearway_engine::table::shape::TableShape;
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::{IfTaken, LockMode};

impl Ddl<'_> {
    pub(super) async fn add_constraint(&self, mut r: Relation, c: &TableConstraint) -> Result<()> {
        let list = |names: &[String]| -> Result<Vec<usize>> {
            names
                .iter()
                .map(|n| {
                    column_of(&r, n, c.pos).map_err(|_| {
                        let message = format!("column \"{n}\" named in key does not exist");
                        SqlError::new(code::UNDEFINED_COLUMN, message).at(c.pos)
                    })
                })
                .collect()
        };
        let keeps_index = !matches!(c.kind, TableConstraintKind::Check(..) | TableConstraintKind::Foreign { .. });
        self.free_constraint(&r, c.name.as_deref(), keeps_index)?;
        if matches!(c.kind, TableConstraintKind::PrimaryKey { .. } | TableConstraintKind::Unique { .. }) {
            self.may_make_index(&r)?;
        }
        match &c.kind {
            TableConstraintKind::PrimaryKey { columns, include, .. } => {
                super::table::check_timing(c.timing, "PRIMARY KEY")?;
                let (columns, include) = (list(columns)?, list(include)?);
                super::table::named_once(&r.columns, &columns, (true, c.pos))?;
                self.add_primary_key(r, columns, include, c.name.as_deref()).await
            }
            TableConstraintKind::Unique { columns, include, nulls_not_distinct, .. } => {
                let (columns, include) = (list(columns)?, list(include)?);
                super::table::named_once(&r.columns, &columns, (false, c.pos))?;
                self.add_unique(r, c, (columns, include), *nulls_not_distinct).await
            }
            TableConstraintKind::Check(_, text) => {
                super::table::check_timing(c.timing, "CHECK")?;
                let name = c.name.clone().unwrap_or_else(|| match super::table::only_column(&r.columns, text) {
                    Some(column) => free_check_name(&r, &format!("{}_{column}", r.name)),
                    None => free_check_name(&r, &r.name),
                });
                let condition = without_table(text, &r.name);
                let check = Check { name, condition, validated: !c.timing.not_valid, path: None };
                r.checks.push(check.clone());
                let oid = r.oid;
                self.put(Object::Relation(r.clone())).await?;
                self.check_expressions(oid)?;
                if check.validated { self.validate_check(&r, &check).await } else { Ok(()) }
            }
            TableConstraintKind::Foreign { columns, references } => {
                let f = Foreign {
                    name: c.name.clone(),
                    columns: columns.clone(),
                    references: references.clone(),
                    timing: c.timing,
                };
                self.add_foreign(r.oid, f, true).await
            }
            TableConstraintKind::PrimaryKeyUsing(index) => {
                super::table::check_timing(c.timing, "PRIMARY KEY")?;
                self.add_using_index(r, index, c, true).await
            }
            TableConstraintKind::UniqueUsing(index) => self.add_using_index(r, index, c, false).await,
        }
    }

    async fn add_unique(
        &self,
        r: Relation,
        c: &TableConstraint,
        (columns, include): (Vec<usize>, Vec<usize>),
        nulls_not_distinct: bool,
    ) -> Result<()> {
        let mut parts = vec![r.name.as_str()];
        parts.extend(columns.iter().chain(&include).map(|c| r.columns[*c].name.as_str()));
        let name = c.name.clone().unwrap_or_else(|| free_name(&self.catalog(), r.schema, &[], &parts, "key"));
        let mut index = self.index_of(&r, name, &columns, include, false)?;
        index.nulls_not_distinct = nulls_not_distinct;
        let oid = index.oid;
        self.make_index(&r, index.clone()).await?;
        if !c.timing.deferrable && !c.timing.initially_deferred {
            return Ok(());
        }
        // The rows that stand are unique; those that come are checked late.
        let made = self.catalog().index(oid).cloned();
        index = made.unwrap_or(index);
        (index.deferrable, index.deferred) = (true, c.timing.initially_deferred);
        self.put(Object::Index(index)).await
    }

    /// Whether no constraint of a table has this name yet. A name that an index keeps is refused as that of a relation, later.
    pub(super) fn free_constraint(&self, r: &Relation, name: Option<&str>, keeps_index: bool) -> Result<()> {
        let Some(name) = name else { return Ok(()) };
        let catalog = self.catalog();
        let by_index = || !keeps_index && catalog.indexes(r.oid).any(|i| i.constraint && i.name == name);
        let by_check = r.checks.iter().any(|c| c.name == name);
        if by_check || r.foreign_keys.iter().any(|k| k.name == name) || by_index() {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", r.name);
            return Err(SqlError::new("42710", message));
        }
        Ok(())
    }

    pub(super) async fn validate_constraint(&self, mut r: Relation, name: &str) -> Result<()> {
        let valid = |r: &Relation| {
            r.checks.iter().any(|c| c.name == name && c.validated)
                || r.foreign_keys.iter().any(|k| k.name == name && k.validated)
        };
        if valid(&r) {
            return Ok(());
        }
        if let Some(check) = r.checks.iter_mut().find(|c| c.name == name) {
            check.validated = true;
            let check = check.clone();
            self.validate_check(&r, &check).await?;
            return self.put(Object::Relation(r)).await;
        }
        let catalog = self.catalog();
        let Some(key) = r.foreign_keys.iter_mut().find(|k| k.name == name) else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", r.name);
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
        };
        key.validated = true;
        let key = key.clone();
        if let Some(parent) = catalog.relation(key.references) {
            self.lock(parent.oid, LockMode::RowShare).await?;
            self.validate_foreign(&r, parent, &key).await?;
        }
        self.put(Object::Relation(r)).await
    }

    /// Whether all rows of a table meet a check.
    async fn validate_check(&self, r: &Relation, check: &Check) -> Result<()> {
        let sql = format!("SELECT 1 FROM {} WHERE NOT ({}) LIMIT 1", self.full_name(r), check.condition);
        if self.query_rows(&sql).await?.is_empty() {
            return Ok(());
        }
        let name = check.name.as_str();
        let message = format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", r.name);
        Err(about(SqlError::new("23514", message), &self.catalog(), r.oid).constraint(name))
    }

    /// ADD CONSTRAINT ... USING INDEX.
    pub(super) async fn add_using_index(
        &self,
        r: Relation,
        name: &str,
        c: &TableConstraint,
        primary: bool,
    ) -> Result<()> {
        let catalog = self.catalog();
        let found = catalog.indexes(r.oid).find(|i| i.name == name).cloned();
        let Some(mut index) = found else {
            let message = format!("index \"{name}\" does not exist");
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
        };
        if index.constraint {
            let message = format!("index \"{name}\" is already associated with a constraint");
            return Err(SqlError::new("55000", message));
        }
        if !index.unique {
            let message = format!("\"{name}\" is not a unique index");
            let detail = "Cannot create a primary key or unique constraint using such an index.";
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).detail(detail));
        }
        if index.is_computed() {
            let what = if index.condition.is_some() { "is a partial index" } else { "contains expressions" };
            let message = if index.condition.is_some() {
                format!("\"{name}\" {what}")
            } else {
                format!("index \"{name}\" {what}")
            };
            let detail = "Cannot create a primary key or unique constraint using such an index.";
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).detail(detail));
        }
        if let Some(at) = index.columns.iter().position(|k| !k.has_default_order()) {
            let message = format!("index \"{name}\" column number {} does not have default sorting behavior", at + 1);
            let detail = "Cannot create a primary key or unique constraint using such an index.";
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).detail(detail).at(c.pos));
        }
        let to = c.name.clone().unwrap_or_else(|| name.to_owned());
        if to != name {
            let message = format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{name}\" to \"{to}\"");
            self.core.notice("NOTICE", SqlError::new("00000", message));
        }
        if primary {
            let columns = index.columns.iter().map(|k| k.column).collect();
            self.drop_index_of(index.oid, index.tree).await?;
            return self.add_primary_key(r, columns, index.include, Some(&to)).await;
        }
        (index.name, index.constraint) = (to, true);
        (index.deferrable, index.deferred) =
            (c.timing.deferrable || c.timing.initially_deferred, c.timing.initially_deferred);
        self.put(Object::Index(index)).await
    }

    /// CLUSTER ON an index, or none: rows are organised by the primary key all the same; the index is shown as the one that was named.
    pub(super) async fn cluster_on(&self, r: &Relation, name: Option<&str>) -> Result<()> {
        let catalog = self.catalog();
        if let Some(name) = name.filter(|name| !catalog.indexes(r.oid).any(|i| i.name == **name)) {
            let message = format!("index \"{name}\" for table \"{}\" does not exist", r.name);
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
        }
        for index in catalog.indexes(r.oid).filter(|i| i.clustered != (name == Some(i.name.as_str()))) {
            self.put(Object::Index(Index { clustered: !index.clustered, ..index.clone() })).await?;
        }
        Ok(())
    }

    /// Refuses SET LOGGED and UNLOGGED where a logged table would refer to an unlogged one.
    pub(super) fn may_be_logged(&self, r: &Relation, logged: bool) -> Result<()> {
        let catalog = self.catalog();
        if catalog.get(r.oid).is_some_and(|o| catalog.is_temporary(o)) {
            let message = format!("cannot change logged status of table \"{}\" because it is temporary", r.name);
            return Err(SqlError::new("42P16", message));
        }
        let obstacle = if logged {
            let parents = r.foreign_keys.iter().filter_map(|key| catalog.relation(key.references));
            parents
                .filter(|parent| parent.oid != r.oid)
                .find(|parent| parent.unlogged)
                .map(|parent| parent.name.clone())
        } else {
            let refers = |child: &Relation| child.foreign_keys.iter().any(|key| key.references == r.oid);
            catalog.objects().find_map(|o| match &**o {
                Object::Relation(child) if child.oid != r.oid && !child.unlogged && refers(child) => {
                    Some(child.name.clone())
                }
                _ => None,
            })
        };
        let Some(other) = obstacle else { return Ok(()) };
        let (to, from) = if logged { ("logged", "unlogged") } else { ("unlogged", "logged") };
        let name = &r.name;
        let message =
            format!("could not change table \"{name}\" to {to} because it references {from} table \"{other}\"");
        Err(SqlError::new("42P16", message))
    }

    pub(super) fn index_of(
        &self,
        r: &Relation,
        name: String,
        columns: &[usize],
        include: Vec<usize>,
        primary: bool,
    ) -> Result<Index> {
        if self.catalog().in_schema(r.schema, &name).is_some() {
            return Err(exists(&name));
        }
        columns.iter().try_for_each(|c| key_type(r, *c))?;
        Ok(Index {
            oid: self.new_oid(),
            database: r.database,
            schema: r.schema,
            name,
            table: r.oid,
            tree: 0,
            columns: columns.iter().map(|c| IndexColumn::ascending(*c)).collect(),
            include,
            unique: true,
            primary,
            constraint: true,
            state: IndexState::Public,
            valid_from_lsn: 0,
            clustered: false,
            ..Index::default()
        })
    }

    /// The table is organised by its primary key: its rows move to a tree that is.
    pub(super) async fn add_primary_key(
        &self,
        mut r: Relation,
        columns: Vec<usize>,
        include: Vec<usize>,
        name: Option<&str>,
    ) -> Result<()> {
        if !r.key.is_empty() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", r.name);
            return Err(SqlError::new("42P16", message));
        }
        let catalog = self.catalog();
        let name = name.map_or_else(|| free_name(&catalog, r.schema, &[], &[&r.name], "pkey"), str::to_owned);
        let index = self.index_of(&r, name, &columns, include, true)?;
        let old = TableShape::new(&catalog, r.oid).map_err(from_engine)?;
        for c in &columns {
            r.columns[*c].not_null = true;
        }
        r.key = columns;
        self.core.lock_relation(r.oid, LockMode::Share, IfTaken::Wait).await?;
        self.rewrite(&old, r, Some(index)).await
    }

    pub(super) async fn drop_constraint(
        &self,
        mut r: Relation,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let before = (r.checks.len(), r.foreign_keys.len());
        self.lock_parents(&r, r.foreign_keys.iter().filter(|k| k.name == name)).await?;
        r.checks.retain(|c| c.name != name);
        r.foreign_keys.retain(|k| k.name != name);
        if before != (r.checks.len(), r.foreign_keys.len()) {
            return self.put(Object::Relation(r)).await;
        }
        let catalog = self.catalog();
        let index = catalog.indexes(r.oid).find(|i| i.name == name && i.constraint).cloned();
        let Some(index) = index else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", r.name);
            if if_exists {
                self.core.notice("NOTICE", SqlError::new("00000", format!("{message}, skipping")));
                return Ok(());
            }
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
        };
        let mut r = self.drop_referrers(r, DroppedPart::Index(&index), cascade).await?;
        let catalog = self.catalog();
        if !index.primary {
            let mut engine = self.engine();
            engine.drop_object(index.oid).await.map_err(from_engine)?;
            engine.drop_tree_at_commit(TreeId(index.tree));
            return Ok(());
        }
        let old = TableShape::new(&catalog, r.oid).map_err(from_engine)?;
        self.engine().drop_object(index.oid).await.map_err(from_engine)?;
        r.key.clear();
        self.rewrite(&old, r, None).await
    }
}

/// A name for a CHECK that no other of the table has.
pub(super) fn free_check_name(r: &Relation, base: &str) -> String {
    let names = (0..).map(|n| if n == 0 { format!("{base}_check") } else { format!("{base}_check{n}") });
    let mut free = names.filter(|name| !r.checks.iter().any(|c| c.name == *name));
    free.next().unwrap_or_default()
}
