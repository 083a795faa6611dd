//! Statements that define data, translated to objects of the catalog and trees of the store.
//!
//! # Structure
//! `table` creates tables (`table_as` from a query), `alter` changes them, `index` creates indexes, `reindex` builds them anew, `drop`
//! drops objects, `objects` has views, sequences, schemas and databases, `roles` and `grant` have roles and their rights. A change is
//! part of the transaction: other sessions see it after the commit, and a rollback undoes it.
//!
//! `run` runs a statement. What it asks of its session, `session` says; the session itself stands above.
//!
//! It is a crate of its own that is compiled without optimisation: the work of such statements is done below, by the engine and the executor.
#![forbid(unsafe_code)]

mod alter;
mod alter_column;
mod alter_constraint;
mod alter_kinds;
mod alter_type;
mod cascade;
mod command;
mod comment;
mod composite;
mod constant;
mod database;
mod domain;
mod drop;
mod extension;
mod extension_users;
mod foreign_key;
mod grant;
mod identity;
mod index;
mod large_object;
mod like;
mod objects;
mod operator;
mod operator_drop;
mod operator_texts;
mod owner;
mod paths;
mod policy;
mod referrers;
mod reindex;
mod rewrite;
mod role_dependents;
mod role_settings;
mod roles;
mod routine;
mod routine_drop;
mod routine_find;
mod row_types;
mod schema;
pub mod session;
mod table;
mod table_as;
pub mod temporary;
mod triggers;
mod type_create;
mod type_drop;

mod view;

use clearway_context as context;
use clearway_exec as exec;
use clearway_planner as planner;
use clearway_syntax as syntax;
use clearway_syntax::error;
use clearway_values::{expr, types};
use clearway_views as views;

use crate::context::convert::{not_storable, storage_of};
use crate::context::core::Core;
use crate::context::errors::{from_engine, in_block};
use crate::context::privileges;
use crate::context::types::is_schema;
use crate::error::{Result, SqlError, code};
use crate::exec::BoxFuture;
use crate::planner::environment::{find_object, relation_oid, with_env};
use crate::session::{Server, Session};
use crate::syntax::ast::QualName;
use crate::syntax::stmt::Statement;
use crate::types::SqlType;
use clearway_base::sync::Mutex;
use clearway_engine::catalog::{Catalog, Object, Relation, TypeBody};
use clearway_engine::error::EngineError;
use clearway_engine::value::Storage;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What the statements of one DDL command share.
struct Ddl<'a> {
    core: &'a Arc<Core>,
    server: &'static dyn Server,
    /// What CASCADE drops, where the statement tells it at its end.
    cascades: Option<Mutex<Vec<String>>>,
}

/// Runs a statement that defines data.
///
/// # Errors
/// Whatever is wrong with it.
pub fn run<'a>(
    session: &'a mut dyn Session,
    text: &'a Arc<str>,
    statement: &'a Statement,
) -> BoxFuture<'a, Result<String>> {
    Box::pin(run_here(session, text, statement))
}

async fn run_here(session: &mut dyn Session, text: &Arc<str>, statement: &Statement) -> Result<String> {
    let core = session.core().clone();
    may_define(&core, statement)?;
    core.engine.take().begin_ddl();
    let d = Ddl::new(&core, session.server(), true);
    // Each is boxed: one future with the code of all of them took the compiler longer than a tenth of this crate.
    let work: BoxFuture<'_, Result<&'static str>> = match statement {
        Statement::CreateTable(s) => Box::pin(d.create_table(s)),
        Statement::CreateTableAs(s) => return Box::pin(d.create_table_as(session, text, s)).await,
        Statement::CreateIndex(s) if s.concurrently && session.shares_transaction() => {
            return Err(in_block("CREATE INDEX CONCURRENTLY"));
        }
        Statement::CreateIndex(s) => Box::pin(d.create_index(s)),
        Statement::CreateView { name, columns, options, query, replace, temporary, text } => {
            Box::pin(d.create_view(name, (columns, options), query, *replace, *temporary, text))
        }
        Statement::RefreshMaterializedView { name, concurrently, with_data } => {
            Box::pin(d.refresh(session, text, name, *concurrently, *with_data))
        }
        Statement::CreateSequence { name, temporary, if_not_exists, options } => {
            Box::pin(d.create_sequence(name, *temporary, *if_not_exists, options))
        }
        Statement::AlterSequence { name, if_exists, options } => Box::pin(d.alter_sequence(name, *if_exists, options)),
        Statement::CreateSchema { .. } => Box::pin(schema::create(&d, session, text, statement)),
        Statement::CreateDatabase { name, options } => {
            if session.shares_transaction() {
                return Err(in_block("CREATE DATABASE"));
            }
            Box::pin(d.create_database(name, options))
        }
        Statement::Type(s) => Box::pin(d.types(s)),
        Statement::Routine(s) => Box::pin(d.routines(s)),
        Statement::Operator(s) => Box::pin(d.operators(s)),
        Statement::Policy(s) => Box::pin(d.policy(s)),
        Statement::Extension(s) => Box::pin(d.extension(s)),
        Statement::CreateRule(s) => Box::pin(d.create_rule(s)),
        Statement::AlterTable(s) => Box::pin(d.alter_table(s)),
        Statement::Rename(s) => Box::pin(d.rename(s)),
        Statement::OwnerTo { object, name, if_exists, owner } => Box::pin(d.owner_to(*object, name, *if_exists, owner)),
        Statement::Drop(s) => {
            if s.concurrently && session.shares_transaction() {
                return Err(in_block("DROP INDEX CONCURRENTLY"));
            }
            Box::pin(d.drop(s))
        }
        Statement::Reindex(s) => {
            let (d, shares) = (&d, session.shares_transaction());
            Box::pin(async move { d.reindex(s, shares).await.map(|()| "REINDEX") })
        }
        Statement::Truncate(s) => Box::pin(d.truncate(s)),
        Statement::Grant(s) => Box::pin(d.grant(s)),
        Statement::Comment { object, name, column, text } => {
            Box::pin(d.comment(*object, name, column.as_deref(), text.as_deref()))
        }
        Statement::SetSchema { object, name, if_exists, schema } => {
            Box::pin(d.set_schema(*object, name, *if_exists, schema))
        }
        Statement::AlterDefaultPrivileges(s) => Box::pin(d.default_privileges(s)),
        Statement::ReassignOwned { roles, to } => Box::pin(d.reassign_owned(roles, to)),
        Statement::DropOwned { roles, cascade } => Box::pin(d.drop_owned(roles, *cascade)),
        Statement::AlterDatabase { name, options } => Box::pin(d.alter_database(name, options)),
        _ => Box::pin(d.roles(statement)),
    };
    let tag = work.await?;
    d.tell_cascades();
    Ok(tag.to_owned())
}

/// Refuses DDL in a read-only transaction, and where a statement may go on with what it has read of the catalog.
fn may_define(core: &Core, statement: &Statement) -> Result<()> {
    if core.engine.take().options().read_only && !matches!(statement, Statement::Reindex { .. }) {
        let command = command::name(statement);
        return Err(SqlError::new("25006", format!("cannot execute {command} in a read-only transaction")));
    }
    if core.changing.load(Relaxed) > 0 {
        return Err(SqlError::unsupported("DDL in a function that a statement calls which changes or locks rows"));
    }
    Ok(())
}

/// Columns of a table or a view, those included that were dropped; PostgreSQL's limit. The numbers of what belongs to columns rely on it.
const COLUMNS_MAX: usize = 1_600;

fn too_many_columns() -> SqlError {
    SqlError::new(code::TOO_MANY_COLUMNS, format!("tables can have at most {COLUMNS_MAX} columns"))
}

impl Ddl<'_> {
    /// Statements about roles, and about what their sessions begin with.
    async fn roles(&self, statement: &Statement) -> Result<&'static str> {
        match statement {
            Statement::CreateRole { name, login, options } => self.create_role(name, *login, options).await,
            Statement::AlterRole { name, options } => self.alter_role(name, options).await,
            Statement::AlterRoleSet { name, database, set } => {
                self.alter_role_set(name.as_ref(), database.as_deref(), set).await
            }
            Statement::AlterDatabaseSet { name, set } => self.alter_database_set(name, set).await,
            Statement::GrantRole(s) => self.grant_role(s).await,
            _ => Err(SqlError::unsupported("this statement")),
        }
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.core.catalog()
    }

    fn engine(&self) -> crate::context::cell::Lent<'_> {
        self.core.engine.take()
    }

    /// The role that owns what the session makes.
    fn role(&self) -> Result<u32> {
        let gone = || SqlError::new("42501", "the session's role has been dropped");
        self.core.role(&self.catalog()).map(|r| r.oid).ok_or_else(gone)
    }

    fn new_oid(&self) -> u32 {
        self.core.db.new_oid()
    }

    /// Locks a relation. The caller reads the relation's definition afterwards, not before: what was committed during the wait counts
    /// (SES-7).
    async fn lock(&self, oid: u32, mode: LockMode) -> Result<()> {
        self.core.lock_relation(oid, mode, IfTaken::Wait).await?;
        self.engine().read_again(oid);
        Ok(())
    }

    /// Locks the record of an object of any kind, that of a table with its columns, until the transaction ends, and reads it again: two
    /// transactions that change its rights or its owner wait for each other, and nothing that one of them grants is lost (SES-7).
    async fn lock_record(&self, object: &Object) -> Result<Arc<Object>> {
        let mut locked = None;
        loop {
            let Some(now) = self.catalog().get(object.oid()).cloned() else {
                let object = format!("{} \"{}\"", object.kind(), object.name());
                return Err(from_engine(EngineError::Overtaken { dropped: true, object }));
            };
            // Another name, or another schema, is another record: it may have got one during the wait.
            let is_same = |locked: &Arc<Object>| {
                (locked.name_space(), locked.unique_name()) == (now.name_space(), now.unique_name())
            };
            if locked.as_ref().is_some_and(is_same) {
                return Ok(now);
            }
            {
                let mut engine = self.engine();
                let lock = engine.lock_to_change(&now);
                self.core.lock_wait(lock).await.map_err(from_engine)?;
            }
            locked = Some(now);
        }
    }

    /// Locks a schema, role, type, routine or database that is to be dropped (SES-8), and reads it again; none: it has gone.
    async fn lock_to_drop(&self, oid: u32) -> Result<Option<Arc<Object>>> {
        let Some(object) = self.catalog().get(oid).cloned() else { return Ok(None) };
        {
            let mut engine = self.engine();
            let locked = engine.lock_object(&object, LockMode::AccessExclusive);
            self.core.lock_wait(locked).await.map_err(from_engine)?;
            engine.read_again(oid);
        }
        Ok(self.catalog().get(oid).cloned())
    }

    /// Locks a routine or an operator that the role may drop, before and after it waited: it may have gone to another owner meanwhile.
    async fn lock_own_to_drop(&self, catalog: &Catalog, object: &Object) -> Result<()> {
        privileges::may_drop(self.core, catalog, object)?;
        match self.lock_to_drop(object.oid()).await? {
            Some(locked) => privileges::may_drop(self.core, &self.catalog(), &locked),
            None => Ok(()),
        }
    }

    /// As `lock_named`, for an object of any kind; none: there is none of that name.
    async fn lock_found(
        &self,
        name: &QualName,
        judge: impl Fn(&Arc<Catalog>, &Object) -> Result<()>,
        mode: impl Fn(&Object) -> LockMode,
    ) -> Result<Option<Arc<Object>>> {
        let mut locked = None;
        loop {
            let catalog = self.catalog();
            let Some(object) = find_object(self.core, &catalog, name) else { return Ok(None) };
            judge(&catalog, &object)?;
            if locked == Some(object.oid()) {
                return Ok(Some(object));
            }
            self.lock(object.oid(), mode(&object)).await?;
            locked = Some(object.oid());
        }
    }

    /// Locks the relation that a name leads to, and leads to still when it is locked: it may have got another name, or gone, during the
    /// wait. `judge` looks at each one before its lock is asked for.
    async fn lock_named(
        &self,
        name: &QualName,
        mode: LockMode,
        judge: impl Fn(&Arc<Catalog>, u32) -> Result<()>,
    ) -> Result<(u32, Arc<Catalog>)> {
        let mut locked = None;
        loop {
            let (oid, catalog) = relation_oid(self.core, name)?;
            judge(&catalog, oid)?;
            if locked == Some(oid) {
                return Ok((oid, catalog));
            }
            self.lock(oid, mode).await?;
            locked = Some(oid);
        }
    }

    async fn put(&self, mut object: Object) -> Result<()> {
        if let Object::Relation(relation) = &mut object {
            paths::keep(self.core, &self.catalog(), relation)?;
            with_env(self.core, &self.catalog(), |_| take_forms(relation));
        }
        paths::keep_other(self.core, &self.catalog(), &mut object)?;
        let (kind, name, oid) = (object.kind(), object.name().to_owned(), object.oid());
        let new = self.catalog().get(oid).is_none();
        if let Object::Relation(relation) = &object
            && relation.columns.len() > COLUMNS_MAX
        {
            return Err(too_many_columns());
        }
        if let Some(user) = routine_drop::temporary_calls(&self.catalog(), &object).first() {
            // PostgreSQL drops it when the session ends.
            return Err(SqlError::unsupported(format!("a call of a temporary function in the {}", user.shown)));
        }
        self.lock_row_types(&object).await?;
        let orphans = comment::of_policies_gone(&self.catalog(), &object);
        self.put_changed(object, kind, name).await?;
        for comment in orphans {
            self.take_away(comment, None).await?;
        }
        // As in PostgreSQL, the transaction that makes a relation holds it to the end, though no other sees it before.
        if new && matches!(kind, "table" | "index" | "sequence" | "view" | "materialized view") {
            self.lock(oid, LockMode::AccessExclusive).await?;
        }
        Ok(())
    }

    async fn put_changed(&self, object: Object, kind: &'static str, name: String) -> Result<()> {
        let mut engine = self.engine();
        let put = self.core.lock_wait(engine.put_object(object)).await;
        put.map_err(|e| match e {
            // The name was free when the statement began: another transaction has committed it since.
            EngineError::Exists { .. } => {
                let index = match kind {
                    "database" => "pg_database_datname_index",
                    "role" => "pg_authid_rolname_index",
                    "schema" => "pg_namespace_nspname_index",
                    "type" => "pg_type_typname_nsp_index",
                    "function" | "procedure" => "pg_proc_proname_args_nsp_index",
                    "operator" => "pg_operator_oprname_l_r_n_index",
                    _ => "pg_class_relname_nsp_index",
                };
                let message = format!("duplicate key value violates unique constraint \"{index}\"");
                SqlError::new("23505", message).detail(format!("Key (name)=({name}) already exists."))
            }
            e => from_engine(e),
        })
    }

    /// The schema and the name of a new relation; an error if the name is taken.
    fn new_name(&self, name: &QualName) -> Result<u32> {
        let catalog = self.catalog();
        let schema = with_env(self.core, &catalog, |env| env.schema_for(name))?;
        if catalog.in_schema(schema, name.name()).is_some() || composite_in(&catalog, schema, name.name()) {
            return Err(exists(name.name()));
        }
        Ok(schema)
    }

    /// Checks that the session's role owns a relation.
    fn own(&self, relation: &Relation) -> Result<()> {
        self.owns(&Object::Relation(relation.clone()))
    }

    /// Checks that the session's role owns the relation of a number: before its lock is asked for.
    fn own_oid(&self, catalog: &Catalog, oid: u32) -> Result<()> {
        catalog.get(oid).map_or(Ok(()), |object| privileges::owns(self.core, catalog, object))
    }

    /// Checks that the session's role owns an object.
    fn owns(&self, object: &Object) -> Result<()> {
        privileges::owns(self.core, &self.catalog(), object)
    }
}

/// Whether a composite type has a name: PostgreSQL has composite types among the relations.
fn composite_in(catalog: &Catalog, schema: u32, name: &str) -> bool {
    catalog.type_in(schema, name).is_some_and(|t| matches!(t.body, TypeBody::Composite(_)))
}

fn exists(name: &str) -> SqlError {
    SqlError::new("42P07", format!("relation \"{name}\" already exists"))
}

/// Columns that are older than the sort form of their type take it: their stored bytes are the same (KEY-4). Whether there were any.
fn take_forms(relation: &mut Relation) -> bool {
    let mut found = false;
    for c in relation.columns.iter_mut().filter(|c| c.storage == Storage::Bytes.code()) {
        if let Some(form @ Storage::Sorted(_)) = storage_of(c.type_oid) {
            (c.storage, found) = (form.code(), true);
        }
    }
    found
}

/// How a column of a type is stored.
fn storage(ty: SqlType) -> Result<u8> {
    storage_of(ty.oid).map(|s| s.code()).ok_or_else(|| not_storable(ty))
}

/// `t_a_b_key`, made free by a number.
fn free_name(catalog: &Catalog, schema: u32, taken: &[String], parts: &[&str], suffix: &str) -> String {
    for n in 0.. {
        let number = if n == 0 { String::new() } else { n.to_string() };
        let name = made_name(parts, &format!("{suffix}{number}"));
        if catalog.in_schema(schema, &name).is_none() && !taken.contains(&name) {
            return name;
        }
    }
    unreachable!("a number is free")
}

/// `table_columns_suffix`, of at most 63 bytes: what is too long loses bytes of the longer one of the table's name and the columns' names.
/// As PostgreSQL's makeObjectName.
fn made_name(parts: &[&str], suffix: &str) -> String {
    let first = parts.first().copied().unwrap_or_default();
    let rest = parts.get(1..).unwrap_or_default().join("_");
    let room = 63usize.saturating_sub(suffix.len() + 1 + usize::from(!rest.is_empty()));
    let (mut a, mut b) = (first.len(), rest.len());
    while a + b > room {
        *(if a > b { &mut a } else { &mut b }) -= 1;
    }
    let whole = |text: &str, bytes: usize| (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let names = [&first[..whole(first, a)], &rest[..whole(&rest, b)], suffix];
    names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join("_")
}

impl Ddl<'_> {
    /// The schema that a name asks for, if there is none of that name.
    fn missing_schema<'n>(&self, name: &'n QualName) -> Option<&'n str> {
        name.schema().filter(|schema| !is_schema(&self.catalog(), self.core.database, schema))
    }

    /// What is said of a name that leads to nothing: 3F000 where its schema does not exist.
    fn no_such(&self, kind: &str, name: &QualName) -> SqlError {
        match self.missing_schema(name) {
            Some(schema) => missing("schema", schema),
            None if kind == "relation" => missing(kind, &name.dotted()),
            None => missing(kind, name.name()),
        }
    }
}

/// 42P01 for a relation, `does not exist`.
fn missing(kind: &str, name: &str) -> SqlError {
    let code = match kind {
        "schema" => code::INVALID_SCHEMA_NAME,
        "database" => "3D000",
        "table" | "relation" | "view" | "sequence" | "materialized view" => code::UNDEFINED_TABLE,
        _ => code::UNDEFINED_OBJECT,
    };
    SqlError::new(code, format!("{kind} \"{name}\" does not exist"))
}
