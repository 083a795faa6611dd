//! ALTER TABLE: adds and drops columns, and changes their properties.

use super::Ddl;
use super::alter::own_column;
use super::alter_constraint::free_check_name;
use super::cascade::{needed, needed_by, shown, shown_column};
use super::referrers::DroppedPart;
use super::table::Foreign;
use crate::constant::constant_of;
use crate::context::errors::{about, from_engine};
use crate::context::names::quote;
use crate::error::{Result, SqlError};
use crate::planner::environment::with_env;
use crate::planner::generated::names_column;
use crate::syntax::ddl::{
    ColumnConstraint, ColumnConstraintKind, ColumnDef, SequenceOption, TableConstraint, TableConstraintKind,
};
use clearway_engine::catalog::{Catalog, Column, Index, Object, Relation};
use clearway_engine::table::shape::encode_missing;
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::LockMode;
use std::collections::BTreeSet;

/// What is made when a column that is added is there.
struct Parts {
    later: Vec<Foreign>,
    conditions: Vec<TableConstraint>,
    /// The options of the column's sequence.
    sequence: Option<Vec<SequenceOption>>,
}

/// The most common values that ANALYZE keeps of a column.
const STATISTICS_MAX: u16 = 10_000;

/// What SET STORAGE makes of a column, for pg_attribute: long values are stored in one way. None: what the type has.
///
/// # Errors
/// 22023 for another word; 0A000 for a type whose values are short.
pub(super) fn strategy(column: &Column, word: &str) -> Result<Option<char>> {
    let of_type = crate::views::storage_of(column.type_oid).storage;
    let strategy = match word.to_lowercase().as_str() {
        "default" => return Ok(None),
        "plain" => 'p',
        "external" => 'e',
        "extended" => 'x',
        "main" => 'm',
        _ => return Err(SqlError::new("22023", format!("invalid storage type \"{word}\""))),
    };
    if of_type == "p" && strategy != 'p' {
        let ty = crate::types::format_type(crate::types::SqlType { oid: column.type_oid, modifier: -1 });
        return Err(SqlError::new("0A000", format!("column data type {ty} can only have storage PLAIN")));
    }
    Ok((of_type != strategy.to_string()).then_some(strategy))
}

impl Ddl<'_> {
    /// SET STATISTICS; below zero: as of any other column.
    pub(super) fn set_statistics(&self, r: &mut Relation, column: &str, value: i64) -> Result<()> {
        let at = own_column(r, column)?;
        if value < -1 {
            return Err(SqlError::new("22023", format!("statistics target {value} is too low")));
        }
        let target = u16::try_from(value).unwrap_or(STATISTICS_MAX).min(STATISTICS_MAX);
        if value > i64::from(STATISTICS_MAX) {
            self.core.notice("WARNING", SqlError::new("22023", format!("lowering statistics target to {target}")));
        }
        r.columns[at].statistics = (value >= 0).then_some(target);
        Ok(())
    }

    pub(super) async fn add_column(&self, mut r: Relation, c: &ColumnDef, if_not_exists: bool) -> Result<()> {
        if r.columns.iter().any(|o| o.name == c.name && !o.is_dropped()) {
            let message = format!("column \"{}\" of relation \"{}\" already exists", c.name, r.name);
            if if_not_exists {
                self.core.notice("NOTICE", SqlError::new("42701", format!("{message}, skipping")));
                return Ok(());
            }
            return Err(SqlError::new("42701", message));
        }
        let (mut column, is_serial) = self.column(c)?;
        super::identity::contradiction(c, is_serial, &r.name)?;
        self.rows_get_column(&r, column.type_oid).await?;
        let Parts { later, conditions, sequence } = self.parts_of(&r, c, &mut column, is_serial)?;
        r.version += 1;
        column.since_version = r.version;
        let not_null = std::mem::take(&mut column.not_null);
        let at = r.columns.len();
        r.columns.push(column);
        let oid = r.oid;
        if let Some(options) = sequence {
            let sequence = self.column_sequence(&r, at, &options).await?;
            r.columns[at].default = Some(format!("nextval('{sequence}'::regclass)"));
        }
        self.put(Object::Relation(r.clone())).await?;
        if r.columns[at].generated {
            self.check_expressions(oid)?;
        }
        // Rows that are there get the default of this moment, without being written; a volatile one is evaluated for each of them.
        let (value, is_volatile) = self.default_now(oid, at)?;
        if is_volatile || r.columns[at].generated || value.as_ref().is_some_and(|v| !v.is_null()) {
            self.rows_may_change(&r)?;
        }
        if let Some(value) = value.as_ref().filter(|v| !v.is_null()) {
            let storage = r.columns[at].storage();
            r.columns[at].missing = Some(encode_missing(&crate::context::convert::to_value(value), storage));
        }
        self.put(Object::Relation(r.clone())).await?;
        if is_volatile || r.columns[at].generated {
            let update = format!("UPDATE {} SET {} = DEFAULT", self.full_name(&r), quote(&r.columns[at].name));
            self.query_rows(&update).await?;
        }
        if not_null {
            self.no_nulls(&r, at).await?;
            r.columns[at].not_null = true;
            self.put(Object::Relation(r)).await?;
        }
        for constraint in conditions {
            let Some(relation) = self.catalog().relation(oid).cloned() else { return Ok(()) };
            Box::pin(self.add_constraint(relation, &constraint)).await?;
        }
        for f in later {
            self.add_foreign(oid, f, true).await?;
        }
        Ok(())
    }

    /// What the constraints of a column that is added come to.
    fn parts_of(&self, r: &Relation, c: &ColumnDef, column: &mut Column, is_serial: bool) -> Result<Parts> {
        let (mut later, mut conditions) = (Vec::new(), Vec::new());
        let mut sequence = is_serial.then(Vec::new);
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
                | ColumnConstraintKind::Unique(..)
                | ColumnConstraintKind::Check(..) => conditions.push(self.constraint_of_column(r, c, k)),
                ColumnConstraintKind::Identity { always, options } => {
                    column.identity = Some(if *always { 'a' } else { 'd' });
                    column.not_null = true;
                    sequence = Some(options.clone());
                }
                ColumnConstraintKind::Generated(_, text) => {
                    super::table::generated(column, text, &r.name, k.pos)?;
                }
            }
        }
        Ok(Parts { later, conditions, sequence })
    }

    /// What depends on a column goes first, or keeps it; true: the column has gone, too.
    async fn drop_dependents(
        &self,
        r: &Relation,
        (at, name): (usize, &str),
        if_exists: bool,
        cascade: bool,
    ) -> Result<bool> {
        let catalog = self.catalog();
        let mut readers = super::drop::dependents(&catalog, r);
        readers.retain(|view| crate::planner::may_read_column(view, r, at));
        if !readers.is_empty() && !cascade {
            let this = shown_column(name, r);
            let mut details = Vec::new();
            for view in &readers {
                details.push(format!("{} depends on {this}", shown(view)));
                above(&catalog, view, &mut details);
            }
            return Err(needed(&this, details.join("\n")));
        }
        for view in readers {
            // It may have gone with one before it.
            if self.catalog().relation(view.oid).is_none() {
                continue;
            }
            self.tell_cascade(&[shown(&view)]);
            Box::pin(self.drop_one(view.oid, true, &[])).await?;
        }
        if let Some(of) = r.columns.iter().find(|c| c.generated && !c.is_dropped() && names_column(c, name)).cloned() {
            let generated = [shown_column(&of.name, r)];
            if !cascade {
                let this = shown_column(name, r);
                return Err(needed_by(&generated, &this, &this));
            }
            self.tell_cascade(&generated);
            Box::pin(self.drop_column(r.clone(), &of.name, false, true)).await?;
            let Some(fresh) = self.catalog().relation(r.oid).cloned() else { return Ok(true) };
            Box::pin(self.drop_column(fresh, name, if_exists, cascade)).await?;
            return Ok(true);
        }
        if r.key.contains(&at) {
            let key = catalog.indexes(r.oid).find(|i| i.primary).map(|i| i.name.clone()).unwrap_or_default();
            Box::pin(self.drop_constraint(r.clone(), &key, false, cascade)).await?;
            let Some(fresh) = self.catalog().relation(r.oid).cloned() else { return Ok(true) };
            Box::pin(self.drop_column(fresh, name, if_exists, cascade)).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// A constraint of a column that is added, as one of its table.
    pub(super) fn constraint_of_column(&self, r: &Relation, c: &ColumnDef, k: &ColumnConstraint) -> TableConstraint {
        let (columns, include, storage) = (vec![c.name.clone()], Vec::new(), Vec::new());
        let (name, kind) = match &k.kind {
            ColumnConstraintKind::PrimaryKey(_) => {
                (k.name.clone(), TableConstraintKind::PrimaryKey { columns, include, storage })
            }
            ColumnConstraintKind::Check(e, text) => {
                let name = || free_check_name(r, &format!("{}_{}", r.name, c.name));
                (Some(k.name.clone().unwrap_or_else(name)), TableConstraintKind::Check(e.clone(), text.clone()))
            }
            other => {
                let nulls_not_distinct = matches!(other, ColumnConstraintKind::Unique(_, true));
                (k.name.clone(), TableConstraintKind::Unique { columns, include, storage, nulls_not_distinct })
            }
        };
        TableConstraint { name, kind, timing: k.timing, pos: k.pos }
    }

    /// The value of a column's default at this moment, if it has one; none and true: it is volatile.
    pub(super) fn default_now(&self, table: u32, at: usize) -> Result<(Option<crate::types::Datum>, bool)> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |env| -> Result<_> {
            let Some(relation) = catalog.relation(table) else { return Ok((None, false)) };
            match crate::planner::Planner::new(env).new_default(relation, at)? {
                Some(e) if e.is_volatile() => Ok((None, true)),
                Some(e) => constant_of(self.core, &e, env).map(|value| (Some(value), false)),
                None => Ok((None, false)),
            }
        })
    }

    pub(super) async fn no_nulls(&self, r: &Relation, at: usize) -> Result<()> {
        let column = &r.columns[at].name;
        let sql = format!("SELECT 1 FROM {} WHERE {} IS NULL LIMIT 1", self.full_name(r), quote(column));
        if self.query_rows(&sql).await?.is_empty() {
            return Ok(());
        }
        let message = format!("column \"{column}\" of relation \"{}\" contains null values", r.name);
        Err(about(SqlError::new("23502", message), &self.catalog(), r.oid).column(column.as_str()))
    }

    pub(super) async fn drop_column(&self, r: Relation, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
        let at = match own_column(&r, name) {
            Ok(at) => at,
            Err(_) if if_exists => {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist, skipping", r.name);
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        self.rows_may_change(&r)?;
        let catalog = self.catalog();
        let indexes: Vec<Index> = catalog.indexes(r.oid).filter(|i| i.names_column(at)).cloned().collect();
        let mut r = self.drop_referrers(r, DroppedPart::Column(at), cascade).await?;
        if self.drop_dependents(&r, (at, name), if_exists, cascade).await? {
            return Ok(());
        }
        self.drop_policies_over(&mut r, name, cascade)?;
        // Constraints of the table that involve the column go with it.
        r.checks.retain(|c| !crate::planner::generated::says(&c.condition, name));
        let of_column = |oid: u32| matches!(self.catalog().get(oid).map(|o| &**o), Some(Object::Sequence(q)) if q.owned_by == Some((r.oid, at)));
        for sequence in self.owned_sequences(r.oid).into_iter().filter(|oid| of_column(*oid)) {
            self.lock(sequence, LockMode::AccessExclusive).await?;
            // It may have been given away during the wait.
            if of_column(sequence) {
                self.take_away(sequence, None).await?;
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
}

/// What reads a view, and what reads that, in words: the view before what rests on it.
fn above(catalog: &Catalog, view: &Relation, out: &mut Vec<String>) {
    let mut left = vec![view.clone()];
    let mut seen = BTreeSet::new();
    while let Some(below) = left.pop() {
        for reader in super::drop::dependents(catalog, &below) {
            if seen.insert(reader.oid) {
                out.push(format!("{} depends on {}", shown(&reader), shown(&below)));
                left.push(reader);
            }
        }
    }
}
