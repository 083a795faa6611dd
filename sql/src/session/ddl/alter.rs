//! ALTER TABLE.

use super::table::{Foreign, key_type, storage_options};
use super::{Ddl, exists, free_name, missing};
use crate::context::errors::{about, from_engine};
use crate::context::names::{quote, schema_of};
use crate::context::privileges;
use crate::error::{Result, SqlError, code};
use crate::planner::dml::column_of;
use crate::session::utility::{constant_of, find_object, with_env};
use crate::syntax::ddl::{
    AlterAction, AlterTable, ColumnConstraintKind, ColumnDef, ObjectKind, Rename, RenamePart, TableConstraint,
    TableConstraintKind,
};
use clearway_engine::catalog::{Catalog, Check, Index, IndexColumn, IndexState, Object, Relation, RelationKind};
use clearway_engine::table::shape::{TableShape, encode_missing};
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::{IfTaken, LockMode};

/// The lock that an action takes.
fn lock_of(a: &AlterAction) -> LockMode {
    match a {
        AlterAction::ValidateConstraint { .. } | AlterAction::SetStatistics { .. } => LockMode::ShareUpdateExclusive,
        AlterAction::SetStorage(_) | AlterAction::ResetStorage(_) | AlterAction::ClusterOn(_) => {
            LockMode::ShareUpdateExclusive
        }
        AlterAction::AddConstraint(c) if matches!(c.kind, TableConstraintKind::Foreign { .. }) => {
            LockMode::ShareRowExclusive
        }
        _ => LockMode::AccessExclusive,
    }
}

impl Ddl<'_> {
    /// ALTER TABLE.
    pub(super) async fn alter_table(&self, s: &AlterTable) -> Result<&'static str> {
        let tag = match s.object {
            ObjectKind::Index => "ALTER INDEX",
            ObjectKind::View => "ALTER VIEW",
            ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            _ => "ALTER TABLE",
        };
        let Some(object) = find_object(self.core, &self.catalog(), &s.name) else {
            if s.if_exists {
                let message = format!("relation \"{}\" does not exist, skipping", s.name.name());
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok(tag);
            }
            return Err(missing("relation", s.name.name()).at(s.name.pos));
        };
        let oid = object.oid();
        self.own_oid(&self.catalog(), oid)?;
        let mode = s.actions.iter().map(lock_of).max().unwrap_or(LockMode::AccessExclusive);
        self.core.lock_relation(oid, mode, IfTaken::Wait).await?;
        if let Object::Index(_) = &*object {
            let all = s.actions.iter().all(|a| matches!(a, AlterAction::SetStorage(_) | AlterAction::ResetStorage(_)));
            return if all { Ok(tag) } else { Err(SqlError::unsupported("this change of an index")) };
        }
        for action in &s.actions {
            let catalog = self.catalog();
            let relation = catalog.relation(oid).ok_or_else(|| missing("relation", s.name.name()))?;
            self.own(relation)?;
            self.alter_one(relation.clone(), action).await?;
        }
        Ok(tag)
    }

    async fn alter_one(&self, mut r: Relation, action: &AlterAction) -> Result<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists } => {
                return self.add_column(r, column, *if_not_exists).await;
            }
            AlterAction::DropColumn { name, if_exists, cascade } => {
                return self.drop_column(r, name, *if_exists, *cascade).await;
            }
            AlterAction::AlterType { .. } => return Err(SqlError::unsupported("ALTER COLUMN ... TYPE")),
            AlterAction::SetDefault { column, value: _, text } => {
                let at = own_column(&r, column)?;
                r.columns[at].default = Some(text.clone());
                let oid = r.oid;
                self.put(Object::Relation(r)).await?;
                return self.check_expressions(oid);
            }
            AlterAction::DropDefault { column } => {
                let at = own_column(&r, column)?;
                r.columns[at].default = None;
            }
            AlterAction::SetNotNull { column } => {
                let at = own_column(&r, column)?;
                self.no_nulls(&r, at).await?;
                r.columns[at].not_null = true;
            }
            AlterAction::DropNotNull { column } => {
                let at = own_column(&r, column)?;
                if r.key.contains(&at) {
                    return Err(SqlError::new("42P16", format!("column \"{column}\" is in a primary key")));
                }
                r.columns[at].not_null = false;
            }
            AlterAction::AddConstraint(c) => return self.add_constraint(r, c).await,
            AlterAction::DropConstraint { name, if_exists, cascade } => {
                return self.drop_constraint(r, name, *if_exists, *cascade).await;
            }
            AlterAction::ValidateConstraint { name } => return self.validate_constraint(r, name).await,
            AlterAction::SetStatistics { .. } | AlterAction::ClusterOn(_) => return Ok(()),
            AlterAction::SetStorage(options) => {
                for o in storage_options(options)? {
                    let name = o.split('=').next().unwrap_or("").to_owned();
                    r.options.retain(|x| x.split('=').next() != Some(&name));
                    r.options.push(o);
                }
            }
            AlterAction::ResetStorage(options) => {
                r.options.retain(|x| !options.iter().any(|o| x.split('=').next() == Some(&o.name)));
            }
            AlterAction::OwnerTo(owner) => return self.owner_of_relation(r, owner).await,
            AlterAction::SetLogged(true) => return Ok(()),
            AlterAction::SetLogged(false) => return Err(SqlError::unsupported("an unlogged table")),
            AlterAction::AddIdentity { .. } | AlterAction::DropIdentity { .. } => {
                return Err(SqlError::unsupported("a change of an identity column"));
            }
            AlterAction::AlterConstraint { .. } => return Err(SqlError::unsupported("ALTER CONSTRAINT")),
        }
        self.put(Object::Relation(r)).await
    }

    async fn owner_of_relation(&self, r: Relation, owner: &str) -> Result<()> {
        let owner = self.role_named(&self.catalog(), owner)?.oid;
        self.change_owner(&Object::Relation(r), owner).await
    }

    async fn add_column(&self, mut r: Relation, c: &ColumnDef, if_not_exists: bool) -> Result<()> {
        if r.columns.iter().any(|o| o.name == c.name && !o.is_dropped()) {
            let message = format!("column \"{}\" of relation \"{}\" already exists", c.name, r.name);
            if if_not_exists {
                self.core.notice("NOTICE", SqlError::new("42701", format!("{message}, skipping")));
                return Ok(());
            }
            return Err(SqlError::new("42701", message));
        }
        let (mut column, is_serial) = self.column(c)?;
        if is_serial {
            return Err(SqlError::unsupported("ADD COLUMN of a serial type"));
        }
        let mut later = Vec::new();
        for k in &c.constraints {
            match &k.kind {
                ColumnConstraintKind::NotNull => column.not_null = true,
                ColumnConstraintKind::Null => {}
                ColumnConstraintKind::Default(_, text) => column.default = Some(text.clone()),
                ColumnConstraintKind::References(f) => later.push(Foreign {
                    name: k.name.clone(),
                    columns: vec![c.name.clone()],
                    references: f.clone(),
                    timing: k.timing,
                }),
                ColumnConstraintKind::PrimaryKey(_)
                | ColumnConstraintKind::Unique(_)
                | ColumnConstraintKind::Check(..)
                | ColumnConstraintKind::Identity { .. }
                | ColumnConstraintKind::Generated(..) => {
                    return Err(SqlError::unsupported("ADD COLUMN with this constraint").at(k.pos));
                }
            }
        }
        r.version += 1;
        column.since_version = r.version;
        let not_null = std::mem::take(&mut column.not_null);
        let at = r.columns.len();
        r.columns.push(column);
        let oid = r.oid;
        self.put(Object::Relation(r.clone())).await?;
        // Rows that are there get the default of this moment, without being written; a volatile one is evaluated for each of them.
        let (value, is_volatile) = self.default_now(oid, at)?;
        if let Some(value) = value.as_ref().filter(|v| !v.is_null()) {
            let storage = r.columns[at].storage();
            r.columns[at].missing = Some(encode_missing(&crate::exec::convert::to_value(value), storage));
        }
        self.put(Object::Relation(r.clone())).await?;
        if is_volatile {
            let update = format!("UPDATE {} SET {} = DEFAULT", self.full_name(&r), quote(&r.columns[at].name));
            self.query_rows(&update).await?;
        }
        if not_null {
            self.no_nulls(&r, at).await?;
            r.columns[at].not_null = true;
            self.put(Object::Relation(r)).await?;
        }
        for f in later {
            self.add_foreign(oid, f, true).await?;
        }
        Ok(())
    }

    /// The value of a column's default at this moment, if it has one; none and true: it is volatile.
    fn default_now(&self, table: u32, at: usize) -> Result<(Option<crate::types::Datum>, bool)> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |env| -> Result<_> {
            let Some(relation) = catalog.relation(table) else { return Ok((None, false)) };
            match crate::planner::Planner::new(env).default_of(relation, at)? {
                Some(e) if e.is_volatile() => Ok((None, true)),
                Some(e) => constant_of(self.core, &e, env).map(|value| (Some(value), false)),
                None => Ok((None, false)),
            }
        })
    }

    async fn no_nulls(&self, r: &Relation, at: usize) -> Result<()> {
        let column = &r.columns[at].name;
        let sql = format!("SELECT 1 FROM {} WHERE {} IS NULL LIMIT 1", self.full_name(r), quote(column));
        if self.query_rows(&sql).await?.is_empty() {
            return Ok(());
        }
        let message = format!("column \"{column}\" of relation \"{}\" contains null values", r.name);
        Err(about(SqlError::new("23502", message), &self.catalog(), r.oid).column(column.as_str()))
    }

    async fn drop_column(&self, mut r: Relation, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
        let at = match own_column(&r, name) {
            Ok(at) => at,
            Err(_) if if_exists => {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist, skipping", r.name);
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let catalog = self.catalog();
        let indexes: Vec<Index> = catalog.indexes(r.oid).filter(|i| i.names_column(at)).cloned().collect();
        let referred = catalog
            .referring(r.oid)
            .flat_map(|c| &c.foreign_keys)
            .any(|k| k.references == r.oid && k.referenced.contains(&at));
        if r.key.contains(&at) || referred {
            return Err(SqlError::unsupported("DROP COLUMN of a key"));
        }
        if !r.checks.is_empty() && !cascade {
            let used = r.checks.iter().any(|c| c.condition.contains(name));
            if used {
                return Err(SqlError::unsupported("DROP COLUMN of a column with CHECK"));
            }
        }
        for index in indexes {
            let mut engine = self.engine();
            engine.drop_object(index.oid).await.map_err(from_engine)?;
            engine.drop_tree_at_commit(TreeId(index.tree));
        }
        let gone = r.foreign_keys.iter().filter(|k| k.columns.contains(&at));
        self.lock_parents(&r, gone).await?;
        r.foreign_keys.retain(|k| !k.columns.contains(&at));
        r.version += 1;
        let column = &mut r.columns[at];
        column.dropped_version = Some(r.version);
        column.not_null = false;
        column.default = None;
        column.identity = None;
        self.put(Object::Relation(r)).await
    }

    async fn add_constraint(&self, mut r: Relation, c: &TableConstraint) -> Result<()> {
        super::table::check_timing(c.timing)?;
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
        match &c.kind {
            TableConstraintKind::PrimaryKey { columns, include, .. } => {
                let (columns, include) = (list(columns)?, list(include)?);
                self.add_primary_key(r, columns, include, c.name.as_deref()).await
            }
            TableConstraintKind::Unique { columns, include, .. } => {
                let (columns, include) = (list(columns)?, list(include)?);
                let mut parts = vec![r.name.as_str()];
                parts.extend(columns.iter().chain(&include).map(|c| r.columns[*c].name.as_str()));
                let name = c.name.clone().unwrap_or_else(|| free_name(&self.catalog(), r.schema, &[], &parts, "key"));
                let index = self.index_of(&r, name, &columns, include, false)?;
                self.make_index(&r, index).await
            }
            TableConstraintKind::Check(_, text) => {
                let free = |name: &String| self.free_constraint(&r, Some(name), false).is_ok();
                let numbers = std::iter::once(String::new()).chain((1u32..).map(|n| n.to_string()));
                let mut made = numbers.map(|n| format!("{}_check{n}", r.name));
                let name = c.name.clone().or_else(|| made.find(free)).unwrap_or_default();
                let check = Check { name, condition: text.clone(), validated: !c.timing.not_valid };
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
            TableConstraintKind::PrimaryKeyUsing(_) | TableConstraintKind::UniqueUsing(_) => {
                Err(SqlError::unsupported("ADD CONSTRAINT ... USING INDEX"))
            }
        }
    }

    async fn validate_constraint(&self, mut r: Relation, name: &str) -> Result<()> {
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
            self.core.lock_relation(parent.oid, LockMode::RowShare, IfTaken::Wait).await?;
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

    fn index_of(
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
            columns: columns
                .iter()
                .map(|c| IndexColumn { column: *c, descending: false, nulls_first: false, ..IndexColumn::default() })
                .collect(),
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
    async fn add_primary_key(
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
        self.rewrite(&old, r, Some(index)).await
    }

    /// Whether no constraint of a table has this name yet. A name that an index keeps is refused as that of a relation, later.
    fn free_constraint(&self, r: &Relation, name: Option<&str>, keeps_index: bool) -> Result<()> {
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

    async fn drop_constraint(&self, mut r: Relation, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
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
        if catalog.referring(r.oid).next().is_some() {
            if cascade {
                return Err(SqlError::unsupported("DROP CONSTRAINT ... CASCADE with foreign keys"));
            }
            let message =
                format!("cannot drop constraint {name} on table {} because other objects depend on it", r.name);
            return Err(SqlError::new("2BP01", message).hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
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

    /// Whether the session's role may rename something of a schema, or a part of it.
    fn may_rename(&self, catalog: &Catalog, object: &Object, whole: bool) -> Result<()> {
        privileges::owns(self.core, catalog, object)?;
        let schema = schema_of(object).and_then(|oid| catalog.get(oid)).filter(|_| whole);
        match schema {
            Some(schema) if !self.judge(catalog).may_with(schema, 'C') => {
                Err(privileges::denied("schema", schema.name()))
            }
            _ => Ok(()),
        }
    }

    /// ALTER ... RENAME.
    pub(super) async fn rename(&self, s: &Rename) -> Result<&'static str> {
        let catalog = self.catalog();
        if matches!(s.object, ObjectKind::Schema | ObjectKind::Database | ObjectKind::Role) {
            return self.rename_global(s).await;
        }
        let Some(object) = find_object(self.core, &catalog, &s.name) else {
            if s.if_exists {
                let message = format!("relation \"{}\" does not exist, skipping", s.name.name());
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok("ALTER TABLE");
            }
            return Err(missing("relation", s.name.name()).at(s.name.pos));
        };
        self.may_rename(&catalog, &object, s.part.is_none())?;
        self.core.lock_relation(object.oid(), LockMode::AccessExclusive, IfTaken::Wait).await?;
        // What may have changed while the lock was waited for.
        let catalog = self.catalog();
        let object = catalog.get(object.oid()).cloned().ok_or_else(|| missing("relation", s.name.name()))?;
        self.may_rename(&catalog, &object, s.part.is_none())?;
        let mut object = Object::clone(&object);
        match (&mut object, &s.part) {
            (Object::Relation(r), Some(RenamePart::Column(from))) => {
                let at = column_of(r, from, s.name.pos)?;
                if r.columns.iter().any(|c| c.name == s.to && !c.is_dropped()) {
                    let message = format!("column \"{}\" of relation \"{}\" already exists", s.to, r.name);
                    return Err(SqlError::new("42701", message));
                }
                if !r.checks.is_empty()
                    && r.kind == RelationKind::Table
                    && r.checks.iter().any(|c| c.condition.contains(from.as_str()))
                {
                    return Err(SqlError::unsupported("RENAME of a column with CHECK"));
                }
                r.columns[at].name.clone_from(&s.to);
            }
            (Object::Relation(r), Some(RenamePart::Constraint(from))) => {
                let index = catalog.indexes(r.oid).find(|i| i.name == *from).cloned();
                if let Some(mut index) = index {
                    index.name.clone_from(&s.to);
                    self.put(Object::Index(index)).await?;
                    return Ok("ALTER TABLE");
                }
                let key = r.foreign_keys.iter_mut().find(|k| k.name == *from).map(|k| &mut k.name);
                let name = key.or(r.checks.iter_mut().find(|c| c.name == *from).map(|c| &mut c.name));
                match name {
                    Some(name) => name.clone_from(&s.to),
                    None => {
                        let message = format!("constraint \"{from}\" for table \"{}\" does not exist", r.name);
                        return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
                    }
                }
            }
            (Object::Relation(r), None) => r.name.clone_from(&s.to),
            (Object::Index(i), None) => i.name.clone_from(&s.to),
            (Object::Sequence(q), None) => q.name.clone_from(&s.to),
            _ => return Err(SqlError::unsupported("this RENAME")),
        }
        self.put(object).await?;
        Ok(match s.object {
            ObjectKind::Index => "ALTER INDEX",
            ObjectKind::View => "ALTER VIEW",
            ObjectKind::Sequence => "ALTER SEQUENCE",
            ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            _ => "ALTER TABLE",
        })
    }
}

fn own_column(r: &Relation, name: &str) -> Result<usize> {
    r.columns.iter().position(|c| c.name == name && !c.is_dropped()).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", r.name);
        SqlError::new(code::UNDEFINED_COLUMN, message)
    })
}
