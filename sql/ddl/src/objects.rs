//! Views, sequences, schemas, databases and rules.

use super::{Ddl, missing};
use crate::context::errors::from_engine;
use crate::context::privileges;
use crate::context::routines::definition_path;
use crate::error::{Result, SqlError, code};
use crate::planner::Planner;
use crate::planner::environment::{relation_oid, with_env};
use crate::session::Session;
use crate::syntax::ast::{QualName, Query};
use crate::syntax::ddl::{CreateRule, Persistence, RuleEvent, SequenceOption};
use crate::syntax::stmt::GenericOption;
use crate::types::{oid, resolve, user};
use clearway_engine::catalog::{Catalog, Column, Index, Object, Relation, RelationKind, Role, Sequence};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::sync::Arc;

/// A sequence to be made.
pub(super) struct SequencePlan {
    /// Its type.
    pub ty: u32,
    /// Its options.
    pub options: Vec<SequenceOption>,
}

fn bounds(ty: u32) -> (i64, i64) {
    match ty {
        oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

impl Ddl<'_> {
    /// CREATE VIEW.
    pub(super) async fn create_view(
        &self,
        name: &QualName,
        (columns, options): (&[String], &[GenericOption]),
        query: &Query,
        replace: bool,
        temporary: bool,
        text: &str,
    ) -> Result<&'static str> {
        let options = super::view::options(options)?;
        let text = &*self.query_to_store(text)?;
        let (outputs, mut meaning) = self.lock_read(query, text).await?;
        let catalog = self.catalog();
        let reads_temporary =
            meaning.names.iter().any(|(_, oid)| catalog.get(*oid).is_some_and(|o| catalog.is_temporary(o)));
        let persistence = if temporary || reads_temporary { Persistence::Temporary } else { Persistence::Permanent };
        if reads_temporary && !temporary && name.schema().is_none() {
            let message = format!("view \"{}\" will be a temporary view", name.name());
            self.core.notice("NOTICE", SqlError::new("00000", message));
        }
        let name = &self.placed(name, persistence).await?;
        let catalog = self.catalog();
        let schema = with_env(self.core, &catalog, |env| env.schema_for(name))?;
        if let (Some("pg_temp"), Some(path)) = (name.schema(), &mut meaning.path) {
            path.insert(0, schema); // temporary types are found first, as where the query stands by itself
        }
        let mut old = self.replaced_view(schema, name.name(), replace).await?;
        if columns.len() > outputs.len() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "CREATE VIEW specifies more column names than columns"));
        }
        let mut list: Vec<Column> = Vec::new();
        for (i, c) in outputs.iter().enumerate() {
            let name = columns.get(i).unwrap_or(&c.name).clone();
            if list.iter().any(|o| o.name == name) {
                return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
            }
            super::composite::not_pseudo(&name, c.ty)?;
            let storage = crate::context::convert::storage_of(c.ty.oid).map_or(4, |s| s.code());
            list.push(Column { name, storage, type_oid: c.ty.oid, type_mod: c.ty.modifier, ..Column::default() });
        }
        if let Some(old) = &mut old {
            super::view::follows(&mut old.columns, &mut list)?;
        }
        let oid = old.as_ref().map_or_else(|| self.new_oid(), |r| r.oid);
        let relation = Relation {
            owner: old.as_ref().map_or_else(|| self.role(), |r| Ok(r.owner))?,
            kind: RelationKind::View,
            query: Some(text.to_owned()),
            acl: old.map_or_else(|| self.first_acl('r', schema), |r| Ok(r.acl))?,
            meaning: Some(meaning),
            options,
            ..Relation::table(oid, self.core.database, schema, name.name(), list, 0)
        };
        self.may_check(&relation)?;
        self.put(Object::Relation(relation)).await?;
        Ok("CREATE VIEW")
    }

    /// CONCURRENTLY compares the rows before with those after by a unique key.
    fn may_refresh(&self, view: &Relation, concurrently: bool, with_data: bool) -> Result<()> {
        if !concurrently {
            return Ok(());
        }
        if !view.populated {
            let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
            return Err(SqlError::new("0A000", message));
        }
        if !with_data {
            let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
            return Err(SqlError::new(code::SYNTAX_ERROR, message));
        }
        if self.has_whole_key(view.oid) {
            return Ok(());
        }
        let catalog = self.catalog();
        let schema = catalog.get(view.schema).map_or("", |s| s.name());
        let quote = crate::context::names::quote;
        let shown = format!("{}.{}", quote(schema), quote(&view.name));
        let message = format!("cannot refresh materialized view \"{shown}\" concurrently");
        let hint = "Create a unique index with no WHERE clause on one or more columns of the materialized view.";
        Err(SqlError::new("55000", message).hint(hint))
    }

    /// Whether a relation has a unique index over columns of all of its rows.
    fn has_whole_key(&self, relation: u32) -> bool {
        let whole = |i: &Index| i.unique && i.condition.is_none() && i.columns.iter().all(|c| c.expression.is_none());
        self.catalog().indexes(relation).any(whole)
    }

    /// REFRESH MATERIALIZED VIEW.
    pub(super) async fn refresh(
        &self,
        session: &mut dyn Session,
        text: &Arc<str>,
        name: &QualName,
        concurrently: bool,
        with_data: bool,
    ) -> Result<&'static str> {
        let mode = if concurrently { LockMode::Exclusive } else { LockMode::AccessExclusive };
        let (oid, _) = self.lock_named(name, mode, |catalog, oid| self.own_oid(catalog, oid)).await?;
        // PostgreSQL's rebuild of the indexes takes this one, too.
        self.lock(oid, LockMode::Share).await?;
        let catalog = self.catalog();
        let relation = catalog.relation(oid).ok_or_else(|| missing("relation", name.name()))?;
        if relation.kind != RelationKind::MaterializedView {
            let message = format!("\"{}\" is not a materialized view", relation.name);
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
        }
        self.own(relation)?;
        self.not_in_use("REFRESH MATERIALIZED VIEW", oid, &relation.name)?;
        self.may_refresh(relation, concurrently, with_data)?;
        let mut fresh = relation.clone();
        fresh.populated = with_data;
        // As it would be written now, with every name qualified: the session's path may be another one.
        let present = with_env(self.core, &catalog, |env| Planner::of_view(env, relation).present_text(relation, &[]))?;
        let parsed = crate::syntax::parse(&present)?;
        let query = parsed.into_iter().next().ok_or_else(|| SqlError::internal("a view without a query"))?.statement;
        let mut execution = None;
        if with_data {
            // Whatever the query does, it does with the owner's rights.
            let _acting = self.core.act_for(&catalog, relation.owner);
            // USR-4
            let path = relation.meaning.as_ref().and_then(|meaning| meaning.path.as_ref());
            let path = path.map(|path| definition_path(&catalog, path));
            let begin = async {
                let mut asked = session.prepare(&query, text)?;
                asked.start().await
            };
            execution = Some(user::run_on_path(path, begin).await?);
        }
        crate::context::rebuild::lock_for_rebuild(self.core, &self.catalog(), oid).await?;
        self.fresh_trees(&fresh).await?;
        if let Some(mut execution) = execution {
            let _acting = self.core.act_for(&catalog, relation.owner);
            self.fill(oid, &mut *execution).await?;
        }
        // What the query calls may have dropped it.
        if concurrently && !self.has_whole_key(oid) {
            return Err(SqlError::internal("could not find suitable unique index on materialized view"));
        }
        Ok("REFRESH MATERIALIZED VIEW")
    }

    /// Makes a sequence and returns its oid.
    pub(super) async fn make_sequence(
        &self,
        schema: u32,
        name: &str,
        plan: &SequencePlan,
        owned_by: Option<(u32, usize)>,
    ) -> Result<u32> {
        let mut sequence = Sequence {
            oid: self.new_oid(),
            database: self.core.database,
            schema,
            name: name.to_owned(),
            owner: self.role()?,
            type_oid: plan.ty,
            start: 0,
            increment: 1,
            min: 0,
            max: 0,
            cache: 1,
            cycle: false,
            owned_by,
            acl: self.first_acl('S', schema)?,
            state: 0,
            restart: None,
        };
        let (mut start, mut min, mut max) = (None, None, None);
        for o in &plan.options {
            match o {
                SequenceOption::As(ty) => sequence.type_oid = resolve(ty)?.oid,
                SequenceOption::Increment(n) => sequence.increment = *n,
                SequenceOption::MinValue(n) => min = *n,
                SequenceOption::MaxValue(n) => max = *n,
                SequenceOption::Start(n) => start = Some(*n),
                SequenceOption::Cache(n) => sequence.cache = *n,
                SequenceOption::Cycle(on) => sequence.cycle = *on,
                SequenceOption::OwnedBy(column) => {
                    sequence.owned_by = self.owned_by(&sequence, column.as_ref()).await?;
                }
                SequenceOption::Restart(_) | SequenceOption::SequenceName(_) => {
                    return Err(SqlError::unsupported("this option of a sequence"));
                }
            }
        }
        let (low, high) = bounds(sequence.type_oid);
        let up = sequence.increment > 0;
        sequence.min = min.unwrap_or(if up { 1 } else { low });
        sequence.max = max.unwrap_or(if up { high } else { -1 });
        sequence.start = start.unwrap_or(if up { sequence.min } else { sequence.max });
        check_sequence(&sequence)?;
        let oid = sequence.oid;
        self.put(Object::Sequence(sequence)).await?;
        Ok(oid)
    }

    /// The column that a sequence is to belong to: of a table of the sequence's own owner and schema, since the role that drops, truncates or gives
    /// away the table does the same to the sequence.
    async fn owned_by(&self, sequence: &Sequence, column: Option<&QualName>) -> Result<Option<(u32, usize)>> {
        let identity = sequence.owned_by.and_then(|(table, at)| {
            let table = self.catalog().relation(table).cloned()?;
            table.columns.get(at)?.identity.map(|_| table.name)
        });
        if let Some(table) = identity {
            let detail = format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name);
            let message = "cannot change ownership of identity sequence";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let Some(column) = column else { return Ok(None) };
        let mut table = column.clone();
        let name = table.parts.pop().unwrap_or_default();
        let judge = |catalog: &Arc<Catalog>, oid| match catalog.relation(oid) {
            Some(relation) => may_belong(sequence, relation),
            None => Ok(()),
        };
        let (oid, catalog) = self.lock_named(&table, LockMode::AccessShare, judge).await?;
        let relation = catalog.relation(oid).ok_or_else(|| missing("relation", table.name()))?;
        Ok(Some((oid, crate::planner::dml::column_of(relation, &name, column.pos)?)))
    }

    /// CREATE SEQUENCE.
    pub(super) async fn create_sequence(
        &self,
        name: &QualName,
        temporary: bool,
        if_not_exists: bool,
        options: &[SequenceOption],
    ) -> Result<&'static str> {
        let persistence = if temporary { Persistence::Temporary } else { Persistence::Permanent };
        let name = &self.placed(name, persistence).await?;
        let schema = match self.new_name(name) {
            Ok(schema) => schema,
            Err(e) if if_not_exists && e.code() == "42P07" => {
                let message = format!("relation \"{}\" already exists, skipping", name.name());
                self.core.notice("NOTICE", SqlError::new("42P07", message));
                return Ok("CREATE SEQUENCE");
            }
            Err(e) => return Err(e),
        };
        let plan = SequencePlan { ty: oid::INT8, options: options.to_vec() };
        self.make_sequence(schema, name.name(), &plan, None).await?;
        Ok("CREATE SEQUENCE")
    }

    /// ALTER SEQUENCE.
    pub(super) async fn alter_sequence(
        &self,
        name: &QualName,
        if_exists: bool,
        options: &[SequenceOption],
    ) -> Result<&'static str> {
        let wrong = || SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", name.name()));
        let judge = |_: &Arc<Catalog>, object: &Object| match object {
            Object::Sequence(_) => self.owns(object),
            _ => Err(wrong()),
        };
        let Some(object) = self.lock_found(name, judge, |_| LockMode::ShareRowExclusive).await? else {
            if if_exists {
                let message = format!("relation \"{}\" does not exist, skipping", name.name());
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok("ALTER SEQUENCE");
            }
            return Err(self.no_such("relation", name));
        };
        let Object::Sequence(sequence) = Object::clone(&object) else { return Err(wrong()) };
        self.change_sequence(sequence, options).await?;
        Ok("ALTER SEQUENCE")
    }

    /// Changes a sequence as ALTER SEQUENCE or its identity column says.
    pub(super) async fn change_sequence(&self, sequence: Sequence, options: &[SequenceOption]) -> Result<()> {
        self.lock(sequence.oid, LockMode::ShareRowExclusive).await?;
        // As the role that uses its value.
        self.core.lock_relation(sequence.oid, LockMode::RowExclusive, IfTaken::Wait).await?;
        let Some(Object::Sequence(mut sequence)) = self.catalog().get(sequence.oid).map(|o| Object::clone(o)) else {
            return Err(missing("relation", &sequence.name));
        };
        // It may have gone to another owner during the wait.
        self.owns(&Object::Sequence(sequence.clone()))?;
        let before = sequence.clone();
        let mut restart = None;
        for o in options {
            match o {
                SequenceOption::Increment(n) => sequence.increment = *n,
                SequenceOption::MinValue(n) => sequence.min = n.unwrap_or(1),
                SequenceOption::MaxValue(n) => sequence.max = n.unwrap_or(bounds(sequence.type_oid).1),
                SequenceOption::Start(n) => sequence.start = *n,
                SequenceOption::Restart(n) => restart = Some(n.unwrap_or(sequence.start)),
                SequenceOption::Cache(n) => sequence.cache = *n,
                SequenceOption::Cycle(on) => sequence.cycle = *on,
                SequenceOption::OwnedBy(column) => {
                    sequence.owned_by = self.owned_by(&sequence, column.as_ref()).await?;
                }
                SequenceOption::As(ty) => {
                    let ty = resolve(ty)?.oid;
                    let (old, new) = (bounds(sequence.type_oid), bounds(ty));
                    // A bound that the old type gave follows the type.
                    if sequence.max == old.1 {
                        sequence.max = new.1;
                    }
                    if sequence.min == old.0 {
                        sequence.min = new.0;
                    }
                    sequence.type_oid = ty;
                }
                SequenceOption::SequenceName(_) => {
                    return Err(SqlError::unsupported("this option of ALTER SEQUENCE"));
                }
            }
        }
        check_sequence(&sequence)?;
        if let Some(value) = restart {
            check_restart(&sequence, value)?;
            // SEQ-2
            (sequence.state, sequence.restart) = (self.new_oid(), restart);
        } else if options.iter().any(|o| !matches!(o, SequenceOption::OwnedBy(_))) {
            // SEQ-2: values that are taken by the new definition are taken of a state of its own.
            sequence.state = self.new_oid();
            let (sequences, all) = (self.core.db.sequences(), self.core.db.transactions());
            let shown = sequences.show(all, &before).await.map_err(from_engine)?;
            let dep_lsn = sequences.set(all, &sequence, shown.last, shown.called).await.map_err(from_engine)?;
            self.engine().depends_on(dep_lsn.max(shown.dep_lsn));
        }
        self.put(Object::Sequence(sequence)).await
    }

    /// Sequences that belong to a table's columns.
    pub(super) fn owned_sequences(&self, table: u32) -> Vec<u32> {
        let catalog = self.catalog();
        let owned = catalog.objects().filter_map(|o| match &**o {
            Object::Sequence(q) if q.owned_by.is_some_and(|(t, _)| t == table) => Some(q.oid),
            _ => None,
        });
        owned.collect()
    }

    /// The sequences that belong to a table's columns, still when they are locked: another transaction may have been giving one away (SES-7).
    pub(super) async fn lock_owned_sequences(&self, table: u32) -> Result<Vec<u32>> {
        for oid in self.owned_sequences(table) {
            self.lock(oid, LockMode::AccessExclusive).await?;
        }
        Ok(self.owned_sequences(table))
    }

    /// Sequences that belong to a table's columns begin anew.
    pub(super) async fn restart_sequences(&self, table: u32) -> Result<()> {
        for oid in self.lock_owned_sequences(table).await? {
            if let Some(Object::Sequence(q)) = self.catalog().get(oid).map(|o| &**o) {
                privileges::owns(self.core, &self.catalog(), &Object::Sequence(q.clone()))?;
                // SEQ-2
                self.put(Object::Sequence(Sequence { state: self.new_oid(), restart: None, ..q.clone() })).await?;
            }
        }
        Ok(())
    }

    /// Checks that the session's role is a superuser.
    pub(super) fn superuser(&self, otherwise: &str) -> Result<()> {
        let is = self.core.role(&self.catalog()).is_some_and(|role| role.superuser);
        if is { Ok(()) } else { Err(SqlError::new("42501", otherwise)) }
    }

    pub(super) fn may(&self, what: &str, allowed: impl Fn(&Role) -> bool) -> Result<()> {
        match self.core.role(&self.catalog()) {
            Some(r) if r.superuser || allowed(r) => Ok(()),
            _ => Err(SqlError::new("42501", format!("permission denied to {what}"))),
        }
    }

    /// CREATE RULE ... DO INSTEAD NOTHING.
    pub(super) async fn create_rule(&self, s: &CreateRule) -> Result<&'static str> {
        if s.event != RuleEvent::Insert {
            return Err(SqlError::unsupported("a rule on another event than INSERT"));
        }
        let (oid, catalog) = relation_oid(self.core, &s.table)?;
        self.own_oid(&catalog, oid)?;
        self.lock(oid, LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let mut relation = catalog.relation(oid).cloned().ok_or_else(|| missing("relation", s.table.name()))?;
        self.own(&relation)?;
        if relation.insert_nothing_rules.contains(&s.name) {
            if s.replace {
                return Ok("CREATE RULE");
            }
            let message = format!("rule \"{}\" for relation \"{}\" already exists", s.name, relation.name);
            return Err(SqlError::new("42710", message));
        }
        relation.insert_nothing_rules.push(s.name.clone());
        self.put(Object::Relation(relation)).await?;
        Ok("CREATE RULE")
    }
}

/// Whether a schema of the system has the name.
pub(super) fn is_of_system(schema: &str) -> bool {
    schema == "information_schema"
}

/// Whether a sequence may belong to a column of a relation.
///
/// # Errors
/// 42809, 55000.
fn may_belong(sequence: &Sequence, relation: &Relation) -> Result<()> {
    if relation.kind == RelationKind::MaterializedView {
        let message = format!("sequence cannot be owned by relation \"{}\"", relation.name);
        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
    }
    let differs = match (relation.owner == sequence.owner, relation.schema == sequence.schema) {
        (true, true) => return Ok(()),
        (false, _) => "sequence must have same owner as table it is linked to",
        (true, false) => "sequence must be in same schema as table it is linked to",
    };
    Err(SqlError::new("55000", differs))
}

/// A CONNECTION LIMIT.
fn check_restart(s: &Sequence, value: i64) -> Result<()> {
    let bad = |message: String| Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    if value < s.min {
        return bad(format!("RESTART value ({value}) cannot be less than MINVALUE ({})", s.min));
    }
    if value > s.max {
        return bad(format!("RESTART value ({value}) cannot be greater than MAXVALUE ({})", s.max));
    }
    Ok(())
}

fn check_sequence(s: &Sequence) -> Result<()> {
    let bad = |message: String| Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    if !matches!(s.type_oid, oid::INT2 | oid::INT4 | oid::INT8) {
        return bad("sequence type must be smallint, integer, or bigint".to_owned());
    }
    if s.increment == 0 {
        return bad("INCREMENT must not be zero".to_owned());
    }
    let (low, high) = bounds(s.type_oid);
    let ty = crate::types::format_type(s.type_oid.into());
    if !(low..=high).contains(&s.max) {
        return bad(format!("MAXVALUE ({}) is out of range for sequence data type {ty}", s.max));
    }
    if !(low..=high).contains(&s.min) {
        return bad(format!("MINVALUE ({}) is out of range for sequence data type {ty}", s.min));
    }
    if s.min >= s.max {
        return bad(format!("MINVALUE ({}) must be less than MAXVALUE ({})", s.min, s.max));
    }
    if s.start < s.min {
        return bad(format!("START value ({}) cannot be less than MINVALUE ({})", s.start, s.min));
    }
    if s.start > s.max {
        return bad(format!("START value ({}) cannot be greater than MAXVALUE ({})", s.start, s.max));
    }
    if s.cache < 1 {
        return bad(format!("CACHE ({}) must be greater than zero", s.cache));
    }
    Ok(())
}
