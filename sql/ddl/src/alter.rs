//! ALTER TABLE: its actions (most are in `alter_column`, `alter_constraint`, `alter_type` and `identity`), and RENAME.

use super::table::{not_of_system, storage_options};
use super::{Ddl, missing};
use crate::context::names::{quote, schema_of};
use crate::context::privileges;
use crate::error::{Result, SqlError, code};
use crate::exec::boxed;
use crate::planner::dml::column_of;
use crate::syntax::ddl::{AlterAction, AlterTable, ObjectKind, Rename, RenamePart, RoleSpec, TableConstraintKind};
use clearway_engine::catalog::{Catalog, Index, Object, Relation, RelationKind};
use clearway_txn::lockmgr::LockMode;
use std::sync::Arc;

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
        AlterAction::Triggers { .. } => LockMode::ShareRowExclusive,
        _ => LockMode::AccessExclusive,
    }
}

/// Whether PostgreSQL keeps what an action changes apart from the rights on the table (in pg_attribute, pg_attrdef or pg_constraint, rather than in the table's
/// row of pg_class): such an action waits for a GRANT in an open transaction, as all of a table is one record here, but does not fail after that wait.
fn leaves_rights(a: &AlterAction) -> bool {
    matches!(
        a,
        AlterAction::DropColumn { .. }
            | AlterAction::SetDefault { .. }
            | AlterAction::DropDefault { .. }
            | AlterAction::SetNotNull { .. }
            | AlterAction::DropNotNull { .. }
            | AlterAction::SetStatistics { .. }
            | AlterAction::SetColumnStorage { .. }
            | AlterAction::ValidateConstraint { .. }
    )
}

impl Ddl<'_> {
    /// An error where an open cursor of the session reads a table, or the transaction has deferred checks of its rows, as PostgreSQL's
    /// `CheckTableNotInUse`.
    pub(super) fn not_in_use(&self, command: &str, table: u32, name: &str) -> Result<()> {
        let is_view = self.catalog().relation(table).is_some_and(|r| r.kind == RelationKind::View);
        if !is_view && self.core.cursors.lock().values().any(|cursor| cursor.tables.contains(&table)) {
            let message =
                format!("cannot {command} \"{name}\" because it is being used by active queries in this session");
            return Err(SqlError::new("55006", message));
        }
        match self.core.deferred.lock().any(|check| check.table() == table) {
            true => Err(pending_checks(command, name)),
            false => Ok(()),
        }
    }

    /// ALTER TABLE.
    pub(super) async fn alter_table(&self, s: &AlterTable) -> Result<&'static str> {
        let tag = match s.object {
            ObjectKind::Index => "ALTER INDEX",
            ObjectKind::View => "ALTER VIEW",
            ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            _ => "ALTER TABLE",
        };
        let mode = s.actions.iter().map(lock_of).max().unwrap_or(LockMode::AccessExclusive);
        let judge = |catalog: &Arc<Catalog>, object: &Object| privileges::owns(self.core, catalog, object);
        let Some(object) = self.lock_found(&s.name, judge, |_| mode).await? else {
            if s.if_exists {
                let message = format!("relation \"{}\" does not exist, skipping", s.name.name());
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok(tag);
            }
            return Err(self.no_such("relation", &s.name));
        };
        super::alter_kinds::is_said(&object, s.object)?;
        let oid = object.oid();
        if let (Object::Sequence(_), [AlterAction::OwnerTo(owner)]) = (&*object, s.actions.as_slice()) {
            let owner = self.role_named(&self.catalog(), owner)?.oid;
            self.change_owner(&object, owner).await?;
            return Ok(tag);
        }
        if let Object::Index(index) = &*object {
            self.alter_index(index.clone(), &s.actions).await?;
            return Ok(tag);
        }
        self.not_in_use("ALTER TABLE", oid, s.name.name())?;
        if s.actions.iter().all(leaves_rights) {
            self.lock_record(&object).await?;
        }
        for action in &s.actions {
            let catalog = self.catalog();
            let relation = catalog.relation(oid).ok_or_else(|| missing("relation", s.name.name()))?;
            self.own(relation)?;
            super::alter_kinds::takes(relation, action)?;
            self.alter_one(relation.clone(), action).await?;
            self.tell_cascades();
        }
        Ok(tag)
    }

    /// ALTER INDEX: options that are shown again.
    async fn alter_index(&self, mut index: Index, actions: &[AlterAction]) -> Result<()> {
        for action in actions {
            let (given, gone): (Vec<String>, Vec<String>) = match action {
                AlterAction::SetStorage(options) => {
                    let given = super::table::index_options(options)?;
                    (given, options.iter().map(|o| o.name.clone()).collect())
                }
                AlterAction::ResetStorage(options) => (Vec::new(), options.iter().map(|o| o.name.clone()).collect()),
                AlterAction::Nothing => continue,
                _ => return Err(SqlError::unsupported("this change of an index")),
            };
            index.options.retain(|o| !gone.iter().any(|name| o.split('=').next() == Some(name)));
            index.options.extend(given);
        }
        self.put(Object::Index(index)).await
    }

    async fn alter_one(&self, mut r: Relation, action: &AlterAction) -> Result<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists } => {
                return boxed(self.add_column(r, column, *if_not_exists)).await;
            }
            AlterAction::DropColumn { name, if_exists, cascade } => {
                return boxed(self.drop_column(r, name, *if_exists, *cascade)).await;
            }
            AlterAction::AlterType { column, ty, collation, using } => {
                let to = crate::types::resolve(ty)?;
                let shown = (super::table::dimensions_of(ty), super::table::collation_of(collation.as_ref(), to.oid)?);
                self.may_use_type(to.oid)?;
                return boxed(self.change_type(r, column, (to, shown), using.as_ref().map(|(e, _)| e))).await;
            }
            AlterAction::SetDefault { column, value: _, text } => {
                let at = own_column(&r, column)?;
                super::identity::keeps_default(&r, at, true)?;
                r.columns[at].default = Some(text.clone());
                let oid = r.oid;
                self.put(Object::Relation(r.clone())).await?;
                self.check_expressions(oid)?;
                return self.lock_default(&r, at).await;
            }
            AlterAction::DropDefault { column } => {
                let at = own_column(&r, column)?;
                super::identity::keeps_default(&r, at, false)?;
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
                super::identity::may_be_null(&r, at)?;
                r.columns[at].not_null = false;
            }
            AlterAction::AddConstraint(c) => return boxed(self.add_constraint(r, c)).await,
            AlterAction::DropConstraint { name, if_exists, cascade } => {
                return boxed(self.drop_constraint(r, name, *if_exists, *cascade)).await;
            }
            AlterAction::ValidateConstraint { name } => return boxed(self.validate_constraint(r, name)).await,
            AlterAction::SetStatistics { column, value } => self.set_statistics(&mut r, column, *value)?,
            AlterAction::ClusterOn(index) => return boxed(self.cluster_on(&r, index.as_deref())).await,
            AlterAction::SetStorage(options) => {
                let is_view = r.kind == RelationKind::View;
                for o in if is_view { super::view::options(options)? } else { storage_options(options)? } {
                    let name = o.split('=').next().unwrap_or("").to_owned();
                    r.options.retain(|x| x.split('=').next() != Some(&name));
                    r.options.push(o);
                }
                if is_view {
                    self.may_check(&r)?;
                }
            }
            AlterAction::ResetStorage(options) => {
                r.options.retain(|x| !options.iter().any(|o| x.split('=').next() == Some(&o.name)));
            }
            AlterAction::Nothing => return Ok(()),
            AlterAction::OwnerTo(owner) => return boxed(self.owner_of_relation(r, owner)).await,
            AlterAction::SetLogged(logged) => {
                self.may_be_logged(&r, *logged)?;
                r.unlogged = !*logged;
            }
            rest => return boxed(self.alter_rest(r, rest)).await,
        }
        self.put(Object::Relation(r)).await
    }

    /// Actions on identity, generation, storage and deferral.
    async fn alter_rest(&self, mut r: Relation, action: &AlterAction) -> Result<()> {
        match action {
            AlterAction::AddIdentity { column, always, options } => {
                return self.add_identity(r, column, *always, options).await;
            }
            AlterAction::SetIdentity { column, always, options } => {
                return self.set_identity(r, column, *always, options).await;
            }
            AlterAction::DropIdentity { column, if_exists } => {
                return self.drop_identity(r, column, *if_exists).await;
            }
            AlterAction::DropExpression { column, if_exists } => {
                let at = own_column(&r, column)?;
                if !r.columns[at].generated {
                    let message =
                        format!("column \"{column}\" of relation \"{}\" is not a stored generated column", r.name);
                    if *if_exists {
                        self.core.notice("NOTICE", SqlError::new("00000", format!("{message}, skipping")));
                        return Ok(());
                    }
                    return Err(SqlError::new("55000", message));
                }
                (r.columns[at].generated, r.columns[at].default) = (false, None);
            }
            AlterAction::SetColumnStorage { column, storage } => {
                let at = own_column(&r, column)?;
                r.columns[at].strategy = super::alter_column::strategy(&r.columns[at], storage)?;
            }
            AlterAction::RowSecurity { enable, force } => return self.row_security(r, *enable, *force).await,
            AlterAction::ReplicaIdentity(what) => {
                super::triggers::of_table(&r, "REPLICA IDENTITY", &["table", "materialized view"])?;
                // Nothing is decoded from the log: the word is kept and shown.
                r.replica_identity = what.chars().next().filter(|word| *word != 'd');
            }
            AlterAction::Triggers { enable, which } => return self.triggers(&r, *enable, which),
            AlterAction::AlterConstraint { name, timing } => {
                let Some(key) = r.foreign_keys.iter_mut().find(|key| key.name == *name) else {
                    let known = r.checks.iter().any(|c| c.name == *name)
                        || self.catalog().indexes(r.oid).any(|i| i.constraint && i.name == *name);
                    return Err(if known {
                        let message =
                            format!("constraint \"{name}\" of relation \"{}\" is not a foreign key constraint", r.name);
                        SqlError::new(code::WRONG_OBJECT_TYPE, message)
                    } else {
                        let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", r.name);
                        SqlError::new(code::UNDEFINED_OBJECT, message)
                    });
                };
                key.deferrable = timing.deferrable || timing.initially_deferred;
                key.deferred = timing.initially_deferred;
            }
            _ => return Err(SqlError::internal("an action of ALTER TABLE that is done elsewhere")),
        }
        self.put(Object::Relation(r)).await
    }

    async fn owner_of_relation(&self, r: Relation, owner: &RoleSpec) -> Result<()> {
        let owner = self.role_named(&self.catalog(), owner)?.oid;
        self.change_owner(&Object::Relation(r), owner).await
    }

    /// Whether the session's role may rename something of a schema, or a part of it.
    fn may_rename(&self, catalog: &Catalog, object: &Object, whole: bool) -> Result<()> {
        privileges::owns(self.core, catalog, object)?;
        let schema = schema_of(object).and_then(|oid| catalog.get(oid)).filter(|_| whole);
        match schema.map(|schema| &**schema) {
            Some(Object::Schema(schema)) if !self.judge(catalog).may_with_schema(schema, 'C') => {
                Err(privileges::denied("schema", &schema.name))
            }
            _ => Ok(()),
        }
    }

    /// What is to get a name, or a part of it is: it may have that name no more than another one. A part is changed after a GRANT in an open transaction,
    /// which does not refuse it (`leaves_rights`).
    async fn to_rename(&self, object: &Arc<Object>, s: &Rename) -> Result<Object> {
        super::alter_kinds::may_be_called(&self.catalog(), object, s)?;
        if s.part.is_some() {
            return Ok(Object::clone(&*self.lock_record(object).await?));
        }
        match object.name() == s.to {
            true => Err(SqlError::new("42P07", format!("relation \"{}\" already exists", s.to))),
            false => Ok(Object::clone(object)),
        }
    }

    /// ALTER ... RENAME.
    pub(super) async fn rename(&self, s: &Rename) -> Result<&'static str> {
        if matches!(s.object, ObjectKind::Schema | ObjectKind::Database | ObjectKind::Role) {
            return self.rename_global(s).await;
        }
        let judge = |catalog: &Arc<Catalog>, object: &Object| self.may_rename(catalog, object, s.part.is_none());
        let mode = |object: &Object| match object {
            // Readers find an index by its number.
            Object::Index(_) => LockMode::ShareUpdateExclusive,
            _ => LockMode::AccessExclusive,
        };
        let Some(object) = self.lock_found(&s.name, judge, mode).await? else {
            if s.if_exists {
                let message = format!("relation \"{}\" does not exist, skipping", s.name.name());
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok("ALTER TABLE");
            }
            return Err(self.no_such("relation", &s.name));
        };
        let mut object = self.to_rename(&object, s).await?;
        let catalog = self.catalog();
        match (&mut object, &s.part) {
            (Object::Relation(r), Some(RenamePart::Column(from))) => {
                let at = column_of(r, from, s.name.pos)?;
                not_of_system(&s.to)?;
                if r.columns.iter().any(|c| c.name == s.to && !c.is_dropped()) {
                    let message = format!("column \"{}\" of relation \"{}\" already exists", s.to, r.name);
                    return Err(SqlError::new("42701", message));
                }
                super::policy::follow_rename(&catalog, r, from, &s.to)?;
                rename_in_texts(r, from, &s.to);
                for index in catalog.indexes(r.oid).filter(|i| i.reads.contains(&at)) {
                    self.put(Object::Index(renamed_in_index(index, from, &s.to))).await?;
                }
                r.columns[at].name.clone_from(&s.to);
            }
            (Object::Relation(r), Some(RenamePart::Constraint(from))) => {
                if self.core.deferred.lock().any(|check| check.constraint() == (r.oid, from)) {
                    return Err(pending_checks("ALTER TABLE", &r.name)); // DFR-1
                }
                self.free_constraint(r, Some(&s.to), false)?;
                if let Some(mut index) = catalog.indexes(r.oid).find(|i| i.name == *from).cloned() {
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
            (Object::Index(i), None) => {
                if self.core.deferred.lock().any(|check| check.constraint() == (i.table, i.name.as_str())) {
                    return Err(pending_checks("ALTER TABLE", &i.name)); // DFR-1
                }
                i.name.clone_from(&s.to);
            }
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

fn pending_checks(command: &str, name: &str) -> SqlError {
    SqlError::new("55006", format!("cannot {command} \"{name}\" because it has pending trigger events"))
}

/// The texts of a table's expressions follow the new name of a column.
fn rename_in_texts(r: &mut Relation, from: &str, to: &str) {
    let renamed = |text: &str| crate::syntax::rename::column(text, from, &quote(to));
    r.checks.iter_mut().for_each(|c| c.condition = renamed(&c.condition));
    for c in r.columns.iter_mut().filter(|c| c.generated) {
        c.default = c.default.as_deref().map(renamed);
    }
}

/// An index with the new name of a column in its texts.
fn renamed_in_index(index: &Index, from: &str, to: &str) -> Index {
    let renamed = |text: &str| crate::syntax::rename::column(text, from, &quote(to));
    let mut index = index.clone();
    index.condition = index.condition.as_deref().map(renamed);
    for expression in index.columns.iter_mut().filter_map(|c| c.expression.as_mut()) {
        expression.text = renamed(&expression.text);
    }
    index
}

pub(super) fn own_column(r: &Relation, name: &str) -> Result<usize> {
    r.columns.iter().position(|c| c.name == name && !c.is_dropped()).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", r.name);
        SqlError::new(code::UNDEFINED_COLUMN, message)
    })
}
