//! The executor: walks plans and gives rows.
//!
//! # Structure
//! ```text
//! query    a level of a query       nodes    its sources: scan (tables; ranges, jump), join (hashed), merge_join, sought (system views), series
//! group    aggregates               window   window functions (frame, running)      expand   set-returning functions of the select list
//! distinct first row of each key    sort     orders (external: on disk)             spill    rows in temporary files (parts)
//! lock     locks rows               recheck  judges a row's newest version (EXE-2)
//! change   INSERT, UPDATE, DELETE   catalogs of rows of catalogs   conflict ON CONFLICT     batch  many rows       foreign  foreign keys     policies  new rows
//! merge    MERGE
//! apart    large tables in parts, with the help of idle processors       walked   rows that were read ahead, judged
//! host     answers what expressions ask of the session (catalog_functions, rights, sizes and others are functions of SQL)
//! ```
//! Nodes hand each other rows in batches, small ones first and then larger ones, so that a LIMIT stops the nodes below it early. Locking
//! a row and computing its target list happen only for rows that are handed out.
//!
//! # Invariants
//! - EXE-1: the engine's session is lent to one node at a time, never across the evaluation of an expression.
//! - EXE-2: a statement changes only rows that it has judged by their newest version. A row that has changed since it was read is locked,
//!   read again and judged again (read committed), or the statement fails (repeatable read).
//! - EXE-22: under repeatable read a statement may see two rows with one key (VER-4). The row that has ended has, in the slot of its key,
//!   no key but the way in which it ended: a statement that asks for its key, to change or to lock the row, gets a serialization failure,
//!   and can't reach the other row.
//! - EXE-17: rows that are read ahead of an error are given before it: the error of a row comes after the rows before that row. An error that is
//!   the statement's (it was stopped, it has no memory) comes at once, and no row that was not judged is given with it.
#![forbid(unsafe_code)]

mod again;
pub mod anew;
mod apart;
mod appended;
mod backup;
pub mod bare;
mod batch;
pub mod catalog_functions;
mod catalogs;
mod chains;
pub mod change;
mod collect;
mod comments;
mod conflict;
mod database_size;
pub mod deferred;
mod delete_walk;
mod distinct;
mod duplicates;
mod expand;
mod external;
pub mod feed;
pub mod filling;
pub mod foreign;
mod foreign_values;
mod frame;
mod group;
mod group_apart;
mod group_sink;
mod group_slots;
mod hash_join;
mod hashed;
pub mod host;
mod int_filter;
mod join;
mod jump;
mod kept;
pub mod key_range;
mod keys;
pub mod large_object_rows;
mod large_objects;
mod lock;
pub mod measure;
mod merge;
mod merge_join;
mod met;
pub mod nodes;
mod numbered;
mod parts;
mod passed;
pub mod pending;
mod policies;
pub mod query;
pub mod ranges;
mod recheck;
mod recursion;
mod referential;
mod reset;
mod rights;
mod routine_definition;
mod routines;
mod row_batch;
pub mod row_list;
mod running;
mod sample;
pub mod scan;
pub mod series;
mod set_operation;
mod shown;
mod sifted;
mod signals;
pub mod sink;
mod sizes;
pub mod sort;
mod sought;
mod spill;
mod statistics_functions;
mod system;
mod ties;
mod transaction_functions;
mod view_checks;
mod walked;
mod window;

use clearway_base::breath;
use clearway_base::memory::{self, Held};
use clearway_base::sync::Mutex;
pub use clearway_context::convert;
use clearway_context::core::Core;
use clearway_context::views::SystemView;
use clearway_context::views::functions::RowsFunction;
use clearway_engine::catalog::{Acl, AclKind, Index};
use clearway_engine::session::Isolation;
use clearway_planner::explain::Actuals;
use clearway_planner::plan::Plan;
use clearway_syntax::error::Result;
use clearway_txn::mvcc::book::View;
use clearway_values::expr::{Bound, Env, eval, eval_async};
use clearway_values::types::datetime::Format;
use clearway_values::types::{Datum, Oid};
use measure::Measured;
use row_list::RowList;
pub use sought::{Keys, SoughtRows};
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, OnceLock};

/// A row.
pub type Row = Vec<Datum>;

/// What the executor asks of the system views, which stand above it.
pub trait ViewRows: Sync {
    /// The rows of a view, at least those that are sought; of them these columns, in this order (none: all).
    fn rows(
        &self,
        view: &SystemView,
        sought: Option<&SoughtRows>,
        columns: Option<&[usize]>,
        run: &Run<'_>,
    ) -> Vec<Row>;
    /// The rows of a function over the catalog.
    ///
    /// # Errors
    /// For arguments that the function refuses.
    fn function_rows(&self, function: &RowsFunction, args: &[Datum], run: &Run<'_>) -> Result<Vec<Row>>;
    /// An object in words, by its catalog, its number and its column; none: it is not there.
    ///
    /// # Errors
    /// XX000 for a catalog without objects.
    fn described(&self, class: Oid, number: Oid, part: i32, run: &Run<'_>) -> Result<Option<String>>;
    /// The privileges on an object as its catalog shows them.
    fn access_list(&self, acl: &Acl, owner: Oid, kind: AclKind, run: &Run<'_>) -> Datum;
    /// The statement that creates an index; with `pretty` without the schema where the search path finds the table.
    fn index_definition(&self, index: &Index, pretty: bool, run: &Run<'_>) -> String;
    /// The condition of a partial index with few parentheses, by its form in pg_index and the oid of the table; none: the text is no such.
    fn pretty_condition(&self, text: &str, table: Oid, run: &Run<'_>) -> Option<String>;
    /// One column of it, from 0; none: it has fewer.
    fn index_column(&self, index: &Index, at: usize, pretty: bool, run: &Run<'_>) -> Option<String>;
    /// The definition of the rule of this oid.
    fn rule_definition(&self, rule: Oid, run: &Run<'_>) -> Option<String>;
    /// Figures of the whole server, by PostgreSQL's name for them, are counted from now on; false: there are no such.
    fn reset_shared(&self, name: &str, run: &Run<'_>) -> bool;
    /// The definition of the constraint of this oid.
    fn constraint_definition(&self, constraint: Oid, pretty: bool, run: &Run<'_>) -> Option<String>;
}

/// A future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future that the optimizer does not make a part of the one that awaits it, as it does with a future that is called at one place only. For
/// work that is long and rare: the time of the optimizer grows faster than a function does.
pub fn boxed<'a, T>(work: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(work)
}

/// The rows of a subquery.
pub struct SubqueryRows {
    /// The rows.
    pub rows: Vec<Row>,
    first_column: OnceLock<HashSet<Datum>>,
    /// The rows without nulls, and those with some.
    whole: OnceLock<(HashSet<Row>, Vec<Row>)>,
    /// What they have of the statement's memory.
    _held: Held,
}

impl SubqueryRows {
    /// Rows that no node has read.
    pub fn new(rows: Vec<Row>, held: Held) -> Self {
        Self { rows, first_column: OnceLock::new(), whole: OnceLock::new(), _held: held }
    }

    /// Whether a row without nulls is among them, and the rows with nulls, which are still to be compared with it; none: it is to be compared with
    /// each, as it has values of another kind.
    pub fn among(&self, row: &[Datum]) -> Option<(bool, &[Row])> {
        let Some(first) = self.rows.first() else { return Some((false, &[])) };
        let has_null = |row: &[Datum]| row.iter().any(Datum::is_null);
        let (whole, with_nulls) = self.whole.get_or_init(|| {
            let (with_nulls, whole): (Vec<Row>, Vec<Row>) = self.rows.iter().cloned().partition(|row| has_null(row));
            (whole.into_iter().collect(), with_nulls)
        });
        let kind = std::mem::discriminant::<Datum>;
        let first = whole.iter().next().unwrap_or(first);
        let is_alike = first.len() == row.len() && first.iter().zip(row).all(|(a, b)| kind(a) == kind(b));
        (is_alike && !has_null(row)).then(|| (whole.contains(row), with_nulls.as_slice()))
    }

    /// Whether a value is in the first column, as `IN` answers; none (unknown): it is not, and there is a null.
    pub fn holds(&self, value: &Datum) -> Option<bool> {
        if self.rows.is_empty() {
            return Some(false);
        }
        if value.is_null() {
            return None;
        }
        let set = self.first_column.get_or_init(|| self.rows.iter().filter_map(|r| r.first().cloned()).collect());
        if set.contains(value) {
            Some(true)
        } else if set.contains(&Datum::Null) {
            None
        } else {
            Some(false)
        }
    }
}

/// What a statement keeps between the rows it gives.
#[derive(Default)]
pub struct RunState {
    /// Rows of subqueries that depend on nothing.
    cache: Option<Mutex<HashMap<usize, Arc<SubqueryRows>>>>,
    /// Working tables: of recursive queries, and what changes in WITH return.
    works: Option<Mutex<HashMap<usize, Arc<RowList>>>>,
    /// Rows of expressions of WITH, as far as they have been asked for.
    kept: Option<Mutex<HashMap<usize, kept::Kept>>>,
    /// Rows of system tables that it has looked up (SYV-1).
    looked_up: Option<Mutex<Vec<system::LookUp>>>,
    /// What nodes and queries have taken, by their addresses, if they are measured.
    measured: Option<Measured>,
    /// Why the building of a view's rows was cut short (VRB-1), and one more; 0: it was not.
    cut: AtomicU16,
    /// The text of its snapshot's ids, if it was asked for.
    snapshot: OnceLock<Arc<str>>,
}

impl RunState {
    /// Nothing kept yet.
    pub fn new() -> Self {
        Self {
            cache: Some(Mutex::new("sql/exec/subqueries", HashMap::new())),
            works: Some(Mutex::new("sql/exec/works", HashMap::new())),
            kept: Some(Mutex::new("sql/exec/kept", HashMap::new())),
            looked_up: Some(Mutex::new("sql/exec/looked_up", Vec::new())),
            measured: None,
            cut: AtomicU16::new(0),
            snapshot: OnceLock::new(),
        }
    }

    /// The same; with `yes` nodes are measured.
    pub fn measured(yes: bool) -> Self {
        Self { measured: yes.then(Measured::default), ..Self::new() }
    }

    /// What was measured.
    pub fn actuals(&self) -> Option<Actuals> {
        self.measured.as_ref().map(Measured::all)
    }

    /// The rows of a working table.
    pub fn work(&self, id: usize) -> Arc<RowList> {
        self.works.as_ref().and_then(|w| w.lock().get(&id).cloned()).unwrap_or_default()
    }

    /// Changes the rows of a working table.
    pub fn set_work(&self, id: usize, rows: Arc<RowList>) {
        if let Some(works) = &self.works {
            works.lock().insert(id, rows);
        }
    }

    /// The rows of a subquery, if they are kept.
    pub fn get(&self, id: usize) -> Option<Arc<SubqueryRows>> {
        self.cache.as_ref().and_then(|c| c.lock().get(&id).cloned())
    }

    /// Keeps the rows of a subquery.
    pub fn put(&self, id: usize, rows: Arc<SubqueryRows>) {
        if let Some(cache) = &self.cache {
            cache.lock().insert(id, rows);
        }
    }
}

/// One execution of a statement.
pub struct Run<'a> {
    /// The session.
    pub core: &'a Core,
    /// The plan.
    pub plan: &'a Plan,
    /// The parameters' values.
    pub params: &'a [Datum],
    /// What it sees.
    pub view: View,
    /// Its transaction's isolation.
    pub isolation: Isolation,
    /// Formats of values.
    pub format: Format,
    /// Names of relations.
    pub names: clearway_context::names::CatalogNames,
    /// Start of the statement, microseconds since 2000.
    pub started: i64,
    /// Start of the transaction, the same.
    pub transaction_started: i64,
    /// What it keeps.
    pub state: &'a RunState,
    /// The rows of the system views.
    pub views: &'a dyn ViewRows,
}

/// Where an expression is evaluated: the statement and the rows of the queries around.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// The statement.
    pub run: &'a Run<'a>,
    /// Rows of the enclosing queries, nearest first.
    pub outer: &'a [&'a [Datum]],
}

impl<'a> Cx<'a> {
    fn temp_files(&self) -> (&Arc<clearway_storage::temp_files::TempFiles>, u32) {
        (self.run.core.db.transactions().store().temp_files(), self.run.core.database)
    }

    /// The memory that one sort or the like may have before it goes to temporary files, in bytes: `work_mem`, or the less that the accounts leave
    /// now (MEM-7).
    fn work_bytes(self) -> usize {
        usize::try_from(self.run.core.settings.lock().work_mem).unwrap_or(usize::MAX).min(memory::share())
    }

    /// The same for hash tables, which have `hash_mem_multiplier` times `work_mem`, as in PostgreSQL.
    fn hash_bytes(self) -> usize {
        let settings = self.run.core.settings.lock();
        ((settings.work_mem as f64 * settings.hash_mem_multiplier) as usize).min(memory::share())
    }

    /// Counts a row that was looked at. Now and then it lets others run and ends an interrupted statement.
    ///
    /// # Errors
    /// Those of an interrupt (57014, 57P01, ...); 53200.
    pub async fn breathe(self) -> Result<()> {
        memory::check()?;
        Ok(breath::breathe(breath::ROW).await?)
    }

    /// The same for several rows.
    ///
    /// # Errors
    /// The same.
    pub async fn breathe_for(self, rows: usize) -> Result<()> {
        memory::check()?;
        Ok(breath::breathe(breath::ROW * rows as u32).await?)
    }

    /// The value of an expression over a row.
    pub async fn value(self, e: &Bound, row: &[Datum]) -> Result<Datum> {
        self.value_with(e, row, &[]).await
    }

    /// The same, with the values of aggregates.
    pub async fn value_with(self, e: &Bound, row: &[Datum], aggregates: &[Datum]) -> Result<Datum> {
        let host = host::CxHost { cx: self };
        let env = Env { row, outer: self.outer, params: self.run.params, aggregates, session: &host };
        if !e.may_wait() {
            return eval(e, &env);
        }
        eval_async(e, env, &host).await
    }

    /// The value of an expression that can't wait.
    #[inline]
    pub fn value_now(self, e: &Bound, row: &[Datum]) -> Result<Datum> {
        self.value_with_now(e, row, &[])
    }

    /// The same, with the values of aggregates.
    #[inline]
    pub fn value_with_now(self, e: &Bound, row: &[Datum], aggregates: &[Datum]) -> Result<Datum> {
        let host = host::CxHost { cx: self };
        let env = Env { row, outer: self.outer, params: self.run.params, aggregates, session: &host };
        eval(e, &env)
    }

    /// Whether a row meets a condition.
    pub async fn holds(self, e: Option<&Bound>, row: &[Datum]) -> Result<bool> {
        match e {
            None => Ok(true),
            Some(e) => Ok(self.value(e, row).await?.as_bool() == Some(true)),
        }
    }

    /// The same of a condition that can't wait.
    pub fn holds_now(self, e: Option<&Bound>, row: &[Datum]) -> Result<bool> {
        match e {
            None => Ok(true),
            Some(e) => Ok(self.value_now(e, row)?.as_bool() == Some(true)),
        }
    }

    /// Whether a row meets a condition; `waits`: it must be awaited.
    async fn judge(self, e: Option<&Bound>, waits: bool, row: &[Datum]) -> Result<bool> {
        if waits { self.holds(e, row).await } else { self.holds_now(e, row) }
    }

    /// Drops the rows from `mark` on that do not meet a condition.
    async fn keep(self, e: Option<&Bound>, waits: bool, mark: usize, rows: &mut row_batch::Batch) -> Result<()> {
        if e.is_none() {
            return Ok(());
        }
        let mut kept = mark;
        for at in mark..rows.len() {
            let judged = match self.breathe().await {
                Ok(()) => self.judge(e, waits, rows.row(at)).await,
                Err(stopped) => Err(stopped),
            };
            match judged {
                Ok(false) => {}
                Ok(true) => {
                    rows.put_at(kept, at);
                    kept += 1;
                }
                Err(failed) => {
                    rows.truncate(kept);
                    return Err(failed);
                }
            }
        }
        self.note_removed(e, rows.len() - kept);
        rows.truncate(kept);
        Ok(())
    }

    /// Values of several expressions, in place of what `out` holds; `waits`: some must be awaited.
    async fn values_into(self, list: &[Bound], waits: bool, row: &[Datum], out: &mut Row) -> Result<()> {
        out.clear();
        for e in list {
            out.push(if waits { self.value(e, row).await? } else { self.value_now(e, row)? });
        }
        Ok(())
    }

    /// Values of several expressions that can't wait.
    pub fn values_now(self, list: &[Bound], row: &[Datum], aggregates: &[Datum]) -> Result<Row> {
        let mut out = Vec::with_capacity(list.len());
        for e in list {
            out.push(self.value_with_now(e, row, aggregates)?);
        }
        Ok(out)
    }

    /// Values of several expressions.
    pub async fn values(self, list: &[Bound], row: &[Datum], aggregates: &[Datum]) -> Result<Row> {
        let mut out = Vec::with_capacity(list.len());
        for e in list {
            out.push(self.value_with(e, row, aggregates).await?);
        }
        Ok(out)
    }
}
