//! CREATE TABLE.

use super::objects::SequencePlan;
use super::{Ddl, free_name, storage};
use crate::context::privileges::denied;
use crate::error::{Pos, Result, SqlError, code};
use crate::planner::dml::{can_be_key, column_of};
use crate::session::utility::with_env;
use crate::syntax::ast::QualName;
use crate::syntax::ddl::{
    ColumnConstraintKind, ColumnDef, CreateTable, ForeignAction, Persistence, References, TableConstraintKind, Timing,
};
use crate::syntax::stmt::GenericOption;
use crate::types::{SqlType, oid, resolve};
use clearway_engine::catalog::{
    Check, Column, ForeignKey, Index, IndexColumn, IndexState, Object, ReferentialAction, Relation,
};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::sync::Arc;

/// A unique constraint of a new table.
struct Unique {
    name: Option<String>,
    columns: Vec<usize>,
    include: Vec<usize>,
    primary: bool,
}

/// A foreign key of a new table.
pub(super) struct Foreign {
    pub name: Option<String>,
    pub columns: Vec<String>,
    pub references: References,
    pub timing: Timing,
}

/// What the columns and constraints of CREATE TABLE come to.
struct Draft {
    columns: Vec<Column>,
    uniques: Vec<Unique>,
    checks: Vec<Check>,
    foreign: Vec<Foreign>,
    sequences: Vec<(usize, SequencePlan)>,
}

pub(super) fn action(a: ForeignAction) -> ReferentialAction {
    match a {
        ForeignAction::NoAction => ReferentialAction::NoAction,
        ForeignAction::Restrict => ReferentialAction::Restrict,
        ForeignAction::Cascade => ReferentialAction::Cascade,
        ForeignAction::SetNull => ReferentialAction::SetNull,
        ForeignAction::SetDefault => ReferentialAction::SetDefault,
    }
}

/// Options that change nothing here and are shown again.
pub(super) fn storage_options(options: &[GenericOption]) -> Result<Vec<String>> {
    let one = |o: &GenericOption| {
        let known = ["fillfactor", "autovacuum_enabled", "toast_tuple_target", "parallel_workers", "vacuum_truncate"];
        if !known.contains(&o.name.as_str()) && !o.name.starts_with("autovacuum_") {
            return Err(SqlError::new("22023", format!("unrecognized parameter \"{}\"", o.name)));
        }
        Ok(format!("{}={}", o.name, o.as_str().unwrap_or("true")))
    };
    options.iter().map(one).collect()
}

pub(super) fn check_timing(t: Timing) -> Result<()> {
    if t.deferrable || t.initially_deferred {
        return Err(SqlError::unsupported("a deferrable constraint"));
    }
    Ok(())
}

/// The type of a serial column.
fn serial(name: &QualName) -> Option<u32> {
    if name.parts.len() != 1 {
        return None;
    }
    match name.name() {
        "serial" | "serial4" => Some(oid::INT4),
        "bigserial" | "serial8" => Some(oid::INT8),
        "smallserial" | "serial2" => Some(oid::INT2),
        _ => None,
    }
}

impl Ddl<'_> {
    /// A column as the catalog has it, without its constraints.
    pub(super) fn column(&self, c: &ColumnDef) -> Result<(Column, bool)> {
        let is_serial = serial(&c.ty.name);
        let ty = match is_serial {
            Some(ty) => SqlType::new(ty),
            None => resolve(&c.ty)?,
        };
        if let Some(collation) = &c.collation
            && !matches!(collation.name(), "C" | "POSIX" | "C.UTF-8" | "default" | "ucs_basic")
        {
            return Err(SqlError::unsupported(format!("collation \"{}\"", collation.name())).at(collation.pos));
        }
        let column = Column {
            name: c.name.clone(),
            storage: storage(ty).map_err(|e| e.at(c.pos))?,
            type_oid: ty.oid,
            type_mod: ty.modifier,
            not_null: is_serial.is_some(),
            default: None,
            identity: None,
            dropped_version: None,
            since_version: 0,
            missing: None,
            ..Column::default()
        };
        Ok((column, is_serial.is_some()))
    }

    fn draft(&self, s: &CreateTable) -> Result<Draft> {
        let mut d = Draft {
            columns: Vec::new(),
            uniques: Vec::new(),
            checks: Vec::new(),
            foreign: Vec::new(),
            sequences: Vec::new(),
        };
        for c in &s.columns {
            if d.columns.iter().any(|o| o.name == c.name) {
                let message = format!("column \"{}\" specified more than once", c.name);
                return Err(SqlError::new("42701", message).at(c.pos));
            }
            if matches!(c.name.as_str(), "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid") {
                let message = format!("column name \"{}\" conflicts with a system column name", c.name);
                return Err(SqlError::new("42701", message).at(c.pos));
            }
            let at = d.columns.len();
            let (column, is_serial) = self.column(c)?;
            if is_serial {
                d.sequences.push((at, SequencePlan { ty: column.type_oid, options: Vec::new() }));
            }
            d.columns.push(column);
            self.column_constraints(c, at, &mut d, s)?;
        }
        for c in &s.constraints {
            check_timing(c.timing)?;
            let list = |names: &[String], d: &Draft| -> Result<Vec<usize>> {
                names.iter().map(|n| named(&d.columns, n, c.pos)).collect()
            };
            match &c.kind {
                TableConstraintKind::PrimaryKey { columns, include, .. } => {
                    let (columns, include) = (list(columns, &d)?, list(include, &d)?);
                    d.uniques.push(Unique { name: c.name.clone(), columns, include, primary: true });
                }
                TableConstraintKind::Unique { columns, include, .. } => {
                    let (columns, include) = (list(columns, &d)?, list(include, &d)?);
                    d.uniques.push(Unique { name: c.name.clone(), columns, include, primary: false });
                }
                TableConstraintKind::Check(_, text) => {
                    let name = check_name(&d, c.name.as_deref(), s.name.name(), None);
                    d.checks.push(Check { name, condition: text.clone(), validated: true });
                }
                TableConstraintKind::Foreign { columns, references } => d.foreign.push(Foreign {
                    name: c.name.clone(),
                    columns: columns.clone(),
                    references: references.clone(),
                    timing: c.timing,
                }),
                TableConstraintKind::PrimaryKeyUsing(_) | TableConstraintKind::UniqueUsing(_) => {
                    return Err(SqlError::unsupported("USING INDEX in CREATE TABLE").at(c.pos));
                }
            }
        }
        Ok(d)
    }

    fn column_constraints(&self, c: &ColumnDef, at: usize, d: &mut Draft, s: &CreateTable) -> Result<()> {
        for k in &c.constraints {
            check_timing(k.timing)?;
            match &k.kind {
                ColumnConstraintKind::NotNull => d.columns[at].not_null = true,
                ColumnConstraintKind::Null => {}
                ColumnConstraintKind::Default(_, text) => d.columns[at].default = Some(text.clone()),
                ColumnConstraintKind::PrimaryKey(_) => {
                    d.uniques.push(Unique {
                        name: k.name.clone(),
                        columns: vec![at],
                        include: Vec::new(),
                        primary: true,
                    });
                }
                ColumnConstraintKind::Unique(_) => {
                    d.uniques.push(Unique {
                        name: k.name.clone(),
                        columns: vec![at],
                        include: Vec::new(),
                        primary: false,
                    });
                }
                ColumnConstraintKind::Check(_, text) => {
                    let name = check_name(d, k.name.as_deref(), s.name.name(), Some(&c.name));
                    d.checks.push(Check { name, condition: text.clone(), validated: true });
                }
                ColumnConstraintKind::References(r) => d.foreign.push(Foreign {
                    name: k.name.clone(),
                    columns: vec![c.name.clone()],
                    references: r.clone(),
                    timing: k.timing,
                }),
                ColumnConstraintKind::Identity { always, options } => {
                    let column = &mut d.columns[at];
                    if !matches!(column.type_oid, oid::INT2 | oid::INT4 | oid::INT8) {
                        let message = "identity column type must be smallint, integer, or bigint";
                        return Err(SqlError::new("22023", message));
                    }
                    column.identity = Some(if *always { 'a' } else { 'd' });
                    column.not_null = true;
                    d.sequences.push((at, SequencePlan { ty: column.type_oid, options: options.clone() }));
                }
                ColumnConstraintKind::Generated(..) => {
                    return Err(SqlError::unsupported("a generated column").at(k.pos));
                }
            }
        }
        Ok(())
    }

    /// CREATE TABLE.
    /// The schema of a name that must be new; None, and a notice, where it exists and that is no error.
    pub(super) fn new_name_or_skip(&self, name: &QualName, if_not_exists: bool) -> Result<Option<u32>> {
        match self.new_name(name) {
            Ok(schema) => Ok(Some(schema)),
            Err(e) if if_not_exists && e.code() == "42P07" => {
                let message = format!("relation \"{}\" already exists, skipping", name.name());
                self.core.notice("NOTICE", SqlError::new("42P07", message));
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    pub(super) async fn create_table(&self, s: &CreateTable) -> Result<&'static str> {
        if s.tablespace.as_deref().is_some_and(|t| t != "pg_default") {
            return Err(SqlError::unsupported("TABLESPACE"));
        }
        let name = self.placed(&s.name, s.persistence).await?;
        let on_commit = self.on_commit(&name, s.on_commit)?;
        let Some(schema) = self.new_name_or_skip(&name, s.if_not_exists)? else { return Ok("CREATE TABLE") };
        let mut d = self.draft(s)?;
        let primaries = d.uniques.iter().filter(|u| u.primary).count();
        if primaries > 1 {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", s.name.name());
            return Err(SqlError::new("42P16", message));
        }
        let key = d.uniques.iter().find(|u| u.primary).map_or_else(Vec::new, |u| u.columns.clone());
        for c in &key {
            d.columns[*c].not_null = true;
        }
        let table = self.new_oid();
        for (at, plan) in std::mem::take(&mut d.sequences) {
            let name = {
                let catalog = self.catalog();
                free_name(&catalog, schema, &[], &[s.name.name(), &d.columns[at].name], "seq")
            };
            let sequence = self.make_sequence(schema, &name, &plan, Some((table, at))).await?;
            d.columns[at].default = Some(format!("nextval('{sequence}'::regclass)"));
        }
        let tree = self.new_tree(schema).await?;
        let relation = Relation {
            owner: self.role()?,
            acl: self.first_acl('r', schema)?,
            key,
            checks: d.checks,
            options: storage_options(&s.storage)?,
            unlogged: s.persistence == Persistence::Unlogged,
            on_commit,
            ..Relation::table(table, self.core.database, schema, s.name.name(), d.columns, tree)
        };
        self.put(Object::Relation(relation.clone())).await?;
        for u in d.uniques {
            self.constraint_index(&relation, u).await?;
        }
        self.check_expressions(table)?;
        for f in d.foreign {
            self.add_foreign(table, f, false).await?;
        }
        Ok("CREATE TABLE")
    }

    /// Binds defaults and checks once, for their errors.
    pub(super) fn check_expressions(&self, table: u32) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(table) else { return Ok(()) };
        with_env(self.core, &catalog, |env| {
            let mut planner = crate::planner::Planner::new(env);
            planner.target(relation)?;
            (0..relation.columns.len()).try_for_each(|i| planner.default_of(relation, i).map(|_| ()))
        })
    }

    async fn constraint_index(&self, relation: &Relation, u: Unique) -> Result<()> {
        for c in &u.columns {
            key_type(relation, *c)?;
        }
        let catalog = self.catalog();
        let name = match u.name {
            Some(name) => name,
            None if u.primary => free_name(&catalog, relation.schema, &[], &[&relation.name], "pkey"),
            None => {
                let mut parts = vec![relation.name.as_str()];
                parts.extend(u.columns.iter().chain(&u.include).map(|c| relation.columns[*c].name.as_str()));
                free_name(&catalog, relation.schema, &[], &parts, "key")
            }
        };
        if catalog.in_schema(relation.schema, &name).is_some() {
            return Err(super::exists(&name));
        }
        let tree = if u.primary { relation.tree } else { self.new_tree(relation.schema).await? };
        let columns = u.columns.iter().map(|c| IndexColumn {
            column: *c,
            descending: false,
            nulls_first: false,
            ..IndexColumn::default()
        });
        let index = Index {
            oid: self.new_oid(),
            database: relation.database,
            schema: relation.schema,
            name,
            table: relation.oid,
            tree,
            columns: columns.collect(),
            include: u.include,
            unique: true,
            primary: u.primary,
            constraint: true,
            state: IndexState::Public,
            valid_from_lsn: 0,
            clustered: false,
            ..Index::default()
        };
        self.put(Object::Index(index)).await
    }

    /// The table that a foreign key refers to, locked, if the session's role may refer to it.
    async fn referred(&self, table: u32, f: &Foreign) -> Result<u32> {
        let (parent, _) = crate::session::utility::relation_oid(self.core, &f.references.table)?;
        self.may_refer(parent, f)?;
        if parent != table {
            self.core.lock_relation(parent, LockMode::ShareRowExclusive, IfTaken::Wait).await?;
        }
        Ok(parent)
    }

    /// Whether the session's role may refer to a table: by the right for the table or for each of the columns.
    fn may_refer(&self, parent: u32, f: &Foreign) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(parent) else { return Ok(()) };
        let judge = self.judge(&catalog);
        let columns: Vec<usize> = if f.references.columns.is_empty() {
            relation.key.clone()
        } else {
            f.references.columns.iter().filter_map(|name| column_of(relation, name, 0).ok()).collect()
        };
        let by_column = || !columns.is_empty() && columns.iter().all(|c| judge.may_with_column(relation, *c, 'x'));
        let by_table = catalog.get(parent).is_some_and(|object| judge.may_with(object, 'x'));
        if by_table || by_column() { Ok(()) } else { Err(denied(relation.kind.name(), &relation.name)) }
    }

    /// Adds a foreign key to a table; `check` looks at the rows that are there.
    pub(super) async fn add_foreign(&self, table: u32, f: Foreign, check: bool) -> Result<()> {
        check_timing(f.timing)?;
        if f.references.full {
            return Err(SqlError::unsupported("MATCH FULL"));
        }
        let parent = self.referred(table, &f).await?;
        let catalog = self.catalog();
        let (Some(child), Some(parent)) = (catalog.relation(table), catalog.relation(parent)) else {
            return Err(SqlError::internal("a table of a foreign key has gone"));
        };
        self.same_persistence(child, parent)?;
        let columns: Vec<usize> = f
            .columns
            .iter()
            .map(|n| {
                column_of(child, n, 0).map_err(|_| {
                    let message = format!("column \"{n}\" referenced in foreign key constraint does not exist");
                    SqlError::new(code::UNDEFINED_COLUMN, message)
                })
            })
            .collect::<Result<_>>()?;
        let referenced: Vec<usize> = if f.references.columns.is_empty() {
            parent.key.clone()
        } else {
            f.references
                .columns
                .iter()
                .map(|n| {
                    column_of(parent, n, 0).map_err(|_| {
                        let message = format!("column \"{n}\" referenced in foreign key constraint does not exist");
                        SqlError::new(code::UNDEFINED_COLUMN, message)
                    })
                })
                .collect::<Result<_>>()?
        };
        if referenced.is_empty() {
            let message = format!("there is no primary key for referenced table \"{}\"", parent.name);
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
        }
        if referenced.len() != columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new("42830", message));
        }
        let unique = catalog.indexes(parent.oid).any(|i| {
            i.unique && i.columns.len() == referenced.len() && i.columns.iter().all(|c| referenced.contains(&c.column))
        });
        if !unique {
            let message =
                format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name);
            return Err(SqlError::new("42830", message));
        }
        for (c, p) in columns.iter().zip(&referenced) {
            let (a, b) = (child.columns[*c].type_oid, parent.columns[*p].type_oid);
            if a != b {
                return Err(SqlError::unsupported("a foreign key between columns of different types"));
            }
        }
        let mut parts = vec![child.name.as_str()];
        parts.extend(columns.iter().map(|c| child.columns[*c].name.as_str()));
        let taken: Vec<String> = child.foreign_keys.iter().map(|k| k.name.clone()).collect();
        let name = f.name.unwrap_or_else(|| free_name(&catalog, child.schema, &taken, &parts, "fkey"));
        let mut changed = child.clone();
        changed.foreign_keys.push(ForeignKey {
            oid: self.new_oid(),
            name: name.clone(),
            columns,
            references: parent.oid,
            referenced,
            on_delete: action(f.references.on_delete),
            on_update: action(f.references.on_update),
            validated: !f.timing.not_valid,
            deferrable: f.timing.deferrable || f.timing.initially_deferred,
            deferred: f.timing.initially_deferred,
        });
        let key = changed.foreign_keys.last().cloned();
        let parent = parent.clone();
        self.put(Object::Relation(changed.clone())).await?;
        if check
            && !f.timing.not_valid
            && let Some(key) = key
        {
            self.validate_foreign(&changed, &parent, &key).await?;
        }
        Ok(())
    }

    /// Looks for rows that refer to nothing.
    pub(super) async fn validate_foreign(&self, child: &Relation, parent: &Relation, key: &ForeignKey) -> Result<()> {
        use crate::context::names::quote;
        let on: Vec<String> = key
            .columns
            .iter()
            .zip(&key.referenced)
            .map(|(c, p)| format!("c.{} = p.{}", quote(&child.columns[*c].name), quote(&parent.columns[*p].name)))
            .collect();
        let some: Vec<String> =
            key.columns.iter().map(|c| format!("c.{} IS NOT NULL", quote(&child.columns[*c].name))).collect();
        let missing = quote(&parent.columns[key.referenced[0]].name);
        let sql = format!(
            "SELECT 1 FROM {} c LEFT JOIN {} p ON {} WHERE {} AND p.{missing} IS NULL LIMIT 1",
            self.full_name(child),
            self.full_name(parent),
            on.join(" AND "),
            some.join(" AND ")
        );
        if !self.query_rows(&sql).await?.is_empty() {
            let message = format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                child.name, key.name
            );
            let error = crate::context::errors::about(SqlError::new("23503", message), &self.catalog(), child.oid);
            return Err(error.constraint(key.name.as_str()));
        }
        Ok(())
    }

    /// A relation's name with its schema, quoted.
    pub(super) fn full_name(&self, r: &Relation) -> String {
        use crate::context::names::quote;
        match self.catalog().get(r.schema).map(|o| o.name().to_owned()) {
            Some(schema) => format!("{}.{}", quote(&schema), quote(&r.name)),
            None => quote(&r.name),
        }
    }

    /// Runs a statement of our own; its rows.
    pub(super) async fn query_rows(&self, sql: &str) -> Result<Vec<crate::exec::Row>> {
        let parsed = crate::syntax::parse(sql)?.pop().ok_or_else(|| SqlError::internal("no query"))?;
        let request = crate::session::run::Request {
            statement: &parsed.statement,
            text: &Arc::from(sql),
            params: Arc::from([]),
            types: &[],
            columns: None,
            alone: false,
            transaction_started: self.core.transaction_started(),
            latest: true,
            measured: false,
        };
        let (mut execution, _) = crate::session::run::begin(self.core, request, None).await?;
        let mut rows = Collected(Vec::new());
        execution.give_to(self.core, &mut rows).await?;
        Ok(rows.0)
    }
}

/// The rows of a query that gives few.
struct Collected(Vec<crate::exec::Row>);

impl crate::session::run::Sink for Collected {
    fn row(&mut self, _: &crate::exec::Run<'_>, row: crate::exec::Row) -> Result<()> {
        self.0.push(row);
        Ok(())
    }
    fn is_full(&self) -> bool {
        false
    }
    fn flush(&mut self) -> crate::exec::BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

fn named(columns: &[Column], name: &str, pos: Pos) -> Result<usize> {
    columns.iter().position(|c| c.name == name).ok_or_else(|| {
        SqlError::new(code::UNDEFINED_COLUMN, format!("column \"{name}\" named in key does not exist")).at(pos)
    })
}

/// Refuses key columns of types that do not sort as bytes.
pub(super) fn key_type(relation: &Relation, column: usize) -> Result<()> {
    let c = &relation.columns[column];
    if can_be_key(c.type_oid) {
        return Ok(());
    }
    let ty = SqlType { oid: c.type_oid, modifier: -1 };
    Err(SqlError::unsupported(format!("a key of type {}", crate::types::format_type(ty))))
}

fn check_name(d: &Draft, given: Option<&str>, table: &str, column: Option<&str>) -> String {
    if let Some(name) = given {
        return name.to_owned();
    }
    let base = column.map_or_else(|| table.to_owned(), |c| format!("{table}_{c}"));
    let free = |n: &String| !d.checks.iter().any(|c| c.name == *n);
    let first = format!("{base}_check");
    let later = (1..).map(|n| format!("{base}_check{n}"));
    std::iter::once(first.clone()).chain(later).find(free).unwrap_or(first)
}
