//! CREATE TABLE.

use super::composite::not_pseudo;
use super::like::LikeRest;
use super::objects::SequencePlan;
use super::{Ddl, free_name, storage};
use crate::context::sort_form::can_be_key;
use crate::error::{Pos, Result, SqlError, code};
use crate::planner::environment::with_env;
use crate::planner::generated::without_table;
use crate::syntax::ast::{QualName, TypeName};
use crate::syntax::ddl::{
    ColumnConstraintKind, ColumnDef, CreateTable, ForeignAction, Persistence, References, TableConstraintKind, Timing,
};
use crate::syntax::stmt::GenericOption;
use crate::types::{SqlType, oid, resolve};
use clearway_engine::catalog::{Check, Column, Index, IndexColumn, IndexState, Object, ReferentialAction, Relation};
use clearway_txn::lockmgr::LockMode;

/// A unique constraint of a new table.
pub(super) struct Unique {
    pub name: Option<String>,
    pub columns: Vec<usize>,
    pub include: Vec<usize>,
    pub primary: bool,
    pub nulls_not_distinct: bool,
    pub timing: Timing,
}

/// A foreign key of a new table.
pub(super) struct Foreign {
    pub name: Option<String>,
    pub columns: Vec<String>,
    pub references: References,
    pub timing: Timing,
}

/// What the columns and constraints of CREATE TABLE come to.
pub(super) struct Draft {
    pub columns: Vec<Column>,
    pub uniques: Vec<Unique>,
    pub checks: Vec<Check>,
    pub foreign: Vec<Foreign>,
    pub sequences: Vec<(usize, SequencePlan)>,
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

/// Options of a btree index that change nothing here and are shown again.
pub(super) fn index_options(options: &[GenericOption]) -> Result<Vec<String>> {
    let (own, other): (Vec<_>, Vec<_>) = options.iter().cloned().partition(|o| o.name == "deduplicate_items");
    if let Some(o) = own.iter().find(|o| o.as_bool().is_none()) {
        let message = format!("invalid value for boolean option \"{}\": {}", o.name, o.as_str().unwrap_or_default());
        return Err(SqlError::new("22023", message));
    }
    if let Some(o) = other.iter().find(|o| o.name != "fillfactor") {
        return Err(SqlError::new("22023", format!("unrecognized parameter \"{}\"", o.name)));
    }
    let mut all = storage_options(&other)?;
    all.extend(own.iter().map(|o| format!("{}={}", o.name, o.as_str().unwrap_or("true"))));
    Ok(all)
}

/// Options that change nothing here and are shown again.
pub(super) fn storage_options(options: &[GenericOption]) -> Result<Vec<String>> {
    // What older programs write: a table without oids is what there is.
    let options = options.iter().filter(|o| o.name != "oids" || o.as_bool() != Some(false));
    let one = |o: &GenericOption| {
        if o.name == "oids" {
            return Err(SqlError::new("0A000", "tables declared WITH OIDS are not supported"));
        }
        let known = ["fillfactor", "autovacuum_enabled", "toast_tuple_target", "parallel_workers", "vacuum_truncate"];
        if !known.contains(&o.name.as_str()) && !o.name.starts_with("autovacuum_") {
            return Err(SqlError::new("22023", format!("unrecognized parameter \"{}\"", o.name)));
        }
        let percent = o.as_str().and_then(|text| text.parse::<f64>().ok());
        if o.name == "fillfactor" && percent.is_none_or(|n| !(10.0..=100.0).contains(&n)) {
            let message = format!("value {} out of bounds for option \"fillfactor\"", o.as_str().unwrap_or("true"));
            return Err(SqlError::new("22023", message).detail("Valid values are between \"10\" and \"100\"."));
        }
        Ok(format!("{}={}", o.name, o.as_str().unwrap_or("true")))
    };
    options.map(one).collect()
}

/// Refuses to put off what can't be put off: a table is organised by its primary key, NOT NULL and CHECK are looked at row by row.
pub(super) fn check_timing(t: Timing, what: &str) -> Result<()> {
    if !t.deferrable && !t.initially_deferred {
        return Ok(());
    }
    match what {
        "PRIMARY KEY" => Err(SqlError::unsupported("a deferrable primary key")),
        _ => Err(SqlError::new(code::SYNTAX_ERROR, "misplaced DEFERRABLE clause")),
    }
}

/// Refuses the name of a column that each table has.
pub(super) fn not_of_system(name: &str) -> Result<()> {
    if crate::expr::is_system_column(name) {
        let message = format!("column name \"{name}\" conflicts with a system column name");
        return Err(SqlError::new("42701", message));
    }
    Ok(())
}

/// The collation that a column's definition names, as its number; none: that of its type. Others than those that sort by bytes are refused.
pub(super) fn collation_of(collation: Option<&QualName>, ty: u32) -> Result<Option<u32>> {
    let element = crate::types::element_of(ty).unwrap_or(ty);
    let base = crate::types::user::base(element.into()).oid;
    match collation {
        Some(name) if !matches!(base, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME) => {
            let message = format!("collations are not supported by type {}", crate::types::format_type(ty.into()));
            Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(name.pos))
        }
        Some(name) if !matches!(name.name(), "C" | "POSIX" | "C.UTF-8" | "default" | "ucs_basic") => {
            Err(SqlError::unsupported(format!("collation \"{}\"", name.name())).at(name.pos))
        }
        // The numbers of the system's two collations of bytes; the others are the database's own here.
        Some(name) if name.name() == "C" => Ok(Some(950)),
        Some(name) if name.name() == "POSIX" => Ok(Some(951)),
        _ => Ok(None),
    }
}

/// How many dimensions a column's definition writes, where it writes any.
pub(super) fn dimensions_of(ty: &TypeName) -> Option<u8> {
    (ty.array_dims > 0).then_some(ty.array_dims)
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
        if is_serial.is_some() && c.ty.array_dims > 0 {
            return Err(SqlError::new("0A000", "array of serial is not implemented").at(c.ty.name.pos));
        }
        let ty = match is_serial {
            Some(ty) => SqlType::new(ty),
            None => resolve(&c.ty)?,
        };
        not_pseudo(&c.name, ty)?;
        self.may_use_type(ty.oid)?;
        let collation = collation_of(c.collation.as_ref(), ty.oid)?;
        not_of_system(&c.name)?;
        let column = Column {
            name: c.name.clone(),
            storage: storage(ty).map_err(|e| e.at(c.pos))?,
            type_oid: ty.oid,
            type_mod: ty.modifier,
            not_null: is_serial.is_some(),
            default: None,
            identity: None,
            dropped_version: None,
            statistics: None,
            since_version: 0,
            missing: None,
            dimensions: dimensions_of(&c.ty),
            collation,
            ..Column::default()
        };
        Ok((column, is_serial.is_some()))
    }

    fn draft(&self, s: &CreateTable, rest: &mut LikeRest) -> Result<Draft> {
        // Each column is compared with those before it.
        if s.columns.len() > super::COLUMNS_MAX {
            return Err(super::too_many_columns());
        }
        let mut d = Draft {
            columns: Vec::new(),
            uniques: Vec::new(),
            checks: Vec::new(),
            foreign: Vec::new(),
            sequences: Vec::new(),
        };
        for (number, c) in s.columns.iter().enumerate() {
            self.likes(s, number, &mut d, rest)?;
            if d.columns.iter().any(|o| o.name == c.name) {
                let message = format!("column \"{}\" specified more than once", c.name);
                return Err(SqlError::new("42701", message).at(c.pos));
            }
            let at = d.columns.len();
            let (column, is_serial) = self.column(c)?;
            super::identity::contradiction(c, is_serial, s.name.name())?;
            if is_serial {
                d.sequences.push((at, SequencePlan { ty: column.type_oid, options: Vec::new() }));
            }
            d.columns.push(column);
            self.column_constraints(c, at, &mut d, s)?;
        }
        self.likes(s, s.columns.len(), &mut d, rest)?;
        for c in &s.constraints {
            let list = |names: &[String], d: &Draft| -> Result<Vec<usize>> {
                names.iter().map(|n| named(&d.columns, n, c.pos)).collect()
            };
            match &c.kind {
                TableConstraintKind::PrimaryKey { columns, include, .. } => {
                    let (columns, include) = (list(columns, &d)?, list(include, &d)?);
                    named_once(&d.columns, &columns, (true, c.pos))?;
                    check_timing(c.timing, "PRIMARY KEY")?;
                    let (name, timing) = (c.name.clone(), c.timing);
                    let nulls_not_distinct = false;
                    d.uniques.push(Unique { name, columns, include, primary: true, nulls_not_distinct, timing });
                }
                TableConstraintKind::Unique { columns, include, nulls_not_distinct, .. } => {
                    let (columns, include) = (list(columns, &d)?, list(include, &d)?);
                    named_once(&d.columns, &columns, (false, c.pos))?;
                    let (name, timing, nulls_not_distinct) = (c.name.clone(), c.timing, *nulls_not_distinct);
                    d.uniques.push(Unique { name, columns, include, primary: false, nulls_not_distinct, timing });
                }
                TableConstraintKind::Check(_, text) => {
                    check_timing(c.timing, "CHECK")?;
                    let name = check_name(&d, c.name.as_deref(), s.name.name(), only_column(&d.columns, text));
                    d.checks.push(Check {
                        name,
                        condition: without_table(text, s.name.name()),
                        validated: true,
                        path: None,
                    });
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

    /// The LIKE clauses that stand before a column.
    fn likes(&self, s: &CreateTable, number: usize, d: &mut Draft, rest: &mut LikeRest) -> Result<()> {
        s.like.iter().filter(|(at, _)| *at == number).try_for_each(|(_, like)| self.like(like, d, rest))
    }

    fn column_constraints(&self, c: &ColumnDef, at: usize, d: &mut Draft, s: &CreateTable) -> Result<()> {
        for k in &c.constraints {
            match &k.kind {
                ColumnConstraintKind::NotNull => {
                    check_timing(k.timing, "NOT NULL")?;
                    d.columns[at].not_null = true;
                }
                ColumnConstraintKind::Null => {}
                ColumnConstraintKind::Default(_, text) => d.columns[at].default = Some(text.clone()),
                ColumnConstraintKind::PrimaryKey(_) | ColumnConstraintKind::Unique(..) => {
                    let primary = matches!(k.kind, ColumnConstraintKind::PrimaryKey(_));
                    if primary {
                        check_timing(k.timing, "PRIMARY KEY")?;
                    }
                    d.uniques.push(Unique {
                        name: k.name.clone(),
                        columns: vec![at],
                        include: Vec::new(),
                        primary,
                        nulls_not_distinct: matches!(k.kind, ColumnConstraintKind::Unique(_, true)),
                        timing: k.timing,
                    });
                }
                ColumnConstraintKind::Check(_, text) => {
                    check_timing(k.timing, "CHECK")?;
                    let name = check_name(d, k.name.as_deref(), s.name.name(), Some(&c.name));
                    d.checks.push(Check {
                        name,
                        condition: without_table(text, s.name.name()),
                        validated: true,
                        path: None,
                    });
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
                ColumnConstraintKind::Generated(_, text) => generated(&mut d.columns[at], text, s.name.name(), k.pos)?,
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
        let new = self.new_name_or_skip(&name, s.if_not_exists).map_err(|e| match e.code() {
            code::INVALID_SCHEMA_NAME => e.at(name.pos),
            _ => e,
        });
        let Some(schema) = new? else { return Ok("CREATE TABLE") };
        for (_, like) in &s.like {
            let locked = self.lock_named(&like.table, LockMode::AccessShare, |_, _| Ok(())).await;
            locked.map_err(|e| match e.code() {
                code::INVALID_SCHEMA_NAME | code::UNDEFINED_TABLE => e.at(like.table.pos),
                _ => e,
            })?;
        }
        let mut rest = LikeRest::default();
        let mut d = self.draft(s, &mut rest)?;
        d.check_names(s.name.name())?;
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
        for (at, mut plan) in std::mem::take(&mut d.sequences) {
            let name = match self.sequence_name(schema, &mut plan.options)? {
                Some(name) => name,
                None => free_name(&self.catalog(), schema, &[], &[s.name.name(), &d.columns[at].name], "seq"),
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
        self.finish_like(table, rest).await?;
        Ok("CREATE TABLE")
    }

    /// Binds defaults and checks once, for their errors.
    pub(super) fn check_expressions(&self, table: u32) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(table) else { return Ok(()) };
        with_env(self.core, &catalog, |env| {
            let mut planner = crate::planner::Planner::new(env);
            planner.check_generated(relation)?;
            planner.new_checks(relation)?;
            (0..relation.columns.len()).try_for_each(|i| planner.new_default(relation, i).map(|_| ()))
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
        let columns = u.columns.iter().map(|c| IndexColumn::ascending(*c));
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
            nulls_not_distinct: u.nulls_not_distinct,
            deferrable: u.timing.deferrable || u.timing.initially_deferred,
            deferred: u.timing.initially_deferred,
            primary: u.primary,
            constraint: true,
            state: IndexState::Public,
            valid_from_lsn: 0,
            clustered: false,
            ..Index::default()
        };
        self.put(Object::Index(index)).await
    }
}

/// Makes a column a generated one.
pub(super) fn generated(column: &mut Column, text: &str, table: &str, pos: Pos) -> Result<()> {
    let both = |what: &str| {
        let message = format!(
            "both {what} and generation expression specified for column \"{}\" of table \"{}\"",
            column.name, table
        );
        Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos))
    };
    if column.identity.is_some() {
        return both("identity");
    }
    if column.default.is_some() {
        return both("default");
    }
    (column.default, column.generated) = (Some(text.to_owned()), true);
    Ok(())
}

fn named(columns: &[Column], name: &str, pos: Pos) -> Result<usize> {
    columns.iter().position(|c| c.name == name).ok_or_else(|| {
        SqlError::new(code::UNDEFINED_COLUMN, format!("column \"{name}\" named in key does not exist")).at(pos)
    })
}

/// Refuses a key that names a column twice.
pub(super) fn named_once(of: &[Column], columns: &[usize], (primary, pos): (bool, Pos)) -> Result<()> {
    let twice = columns.iter().enumerate().find(|(at, c)| columns[..*at].contains(c));
    let Some((_, column)) = twice else { return Ok(()) };
    let what = if primary { "primary key" } else { "unique" };
    let message = format!("column \"{}\" appears twice in {what} constraint", of[*column].name);
    Err(SqlError::new("42701", message).at(pos))
}

/// Refuses key columns of types by which no key sorts.
pub(super) fn key_type(relation: &Relation, column: usize) -> Result<()> {
    let c = &relation.columns[column];
    if can_be_key(c.type_oid) {
        return Ok(());
    }
    Err(crate::types::order::not_a_key(c.type_oid, None))
}

/// The column that a condition names, if it is one alone: its name becomes part of the constraint's.
pub(super) fn only_column<'c>(columns: &'c [Column], text: &str) -> Option<&'c str> {
    let live = columns.iter().filter(|c| !c.is_dropped());
    let mut named = live.filter(|c| crate::planner::generated::says(text, &c.name)).map(|c| c.name.as_str());
    let first = named.next();
    first.filter(|_| named.next().is_none())
}

impl Draft {
    /// A constraint's name is its own among those of the table. Two indexes of one name are relations of one name.
    fn check_names(&self, table: &str) -> Result<()> {
        let exists = |message: String| Err(SqlError::new("42710", message));
        for (at, check) in self.checks.iter().enumerate() {
            if self.checks[..at].iter().any(|c| c.name == check.name) {
                return exists(format!("check constraint \"{}\" already exists", check.name));
            }
        }
        let of_check = |name: &String| self.checks.iter().any(|c| c.name == *name);
        let of_index = |name: &String| self.uniques.iter().any(|u| u.name.as_ref() == Some(name));
        let indexes = self.uniques.iter().filter_map(|u| u.name.as_ref());
        let mut keys: Vec<&String> = Vec::new();
        let mut taken = indexes.into_iter().find(|name| of_check(name));
        for name in self.foreign.iter().filter_map(|f| f.name.as_ref()) {
            taken = taken.or((of_check(name) || of_index(name) || keys.contains(&name)).then_some(name));
            keys.push(name);
        }
        match taken {
            Some(name) => exists(format!("constraint \"{name}\" for relation \"{table}\" already exists")),
            None => Ok(()),
        }
    }
}

fn check_name(d: &Draft, given: Option<&str>, table: &str, column: Option<&str>) -> String {
    if let Some(name) = given {
        return name.to_owned();
    }
    let parts: Vec<&str> = std::iter::once(table).chain(column).collect();
    let free = |n: &String| !d.checks.iter().any(|c| c.name == *n);
    let first = super::made_name(&parts, "check");
    let later = (1..).map(|n: u32| super::made_name(&parts, &format!("check{n}")));
    std::iter::once(first.clone()).chain(later).find(free).unwrap_or(first)
}
