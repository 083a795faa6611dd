//! Runs statements on a leased session: the cache of prepared statements, the binding of parameters, the batches of rows.
//!
//! # Life of a statement
//! `prepared` finds it in the cache or has the session parse it -> `begin` binds the parameters and runs it, for one batch of rows ->
//! `more` for each further batch -> `finish` ends the implicit transaction. Nothing is returned to the caller before all that it depends on is
//! durable.
//!
//! # Not here
//! Which call has the session: `slot`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clearway_base::memory;
use clearway_base::waits::SessionStats;
use clearway_sql::session::{Bind, Known, TransactionStatus};
use clearway_values::types::{Datum, Oid};

use crate::error::{Error, Result};
use crate::link::{Link, Own, Tried};
use crate::params::{Params, are_named, marked, numbered, position};
use crate::row::{Collector, Column};

/// Statements that stay prepared.
const CACHE_MAX: usize = 200;
/// Longer texts are prepared for one use.
const CACHED_TEXT_MAX: usize = 4_096;
/// Rows of a batch; the next is asked for when its rows have been read.
pub(crate) const BATCH_ROWS: u32 = 512;

/// A prepared statement of a connection.
pub(crate) struct Prepared {
    name: String,
    /// The session's handle of it, where the session is in this process.
    known: Option<Known>,
    types: Vec<Oid>,
    /// Parameters' names by number; empty where they have none.
    names: Vec<String>,
    pub(crate) columns: Option<Arc<[Column]>>,
    /// The form of each column.
    formats: Vec<i16>,
    /// It could not be run on the spot when it was last tried.
    waits: AtomicBool,
}

/// Statements by their text: the program's own, so the hash need not withstand chosen texts.
type Texts = HashMap<Box<str>, Arc<Prepared>, foldhash::fast::RandomState>;

/// The prepared statements of a session.
#[derive(Default)]
pub(crate) struct Statements {
    by_text: Texts,
    named_by_text: Texts,
    /// The catalog that they were prepared under.
    version: u64,
    counter: u64,
    encoded: Encoded,
    values: Vec<Datum>,
}

/// The parameters of a statement as the session takes them. Their memory is used from call to call.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize, bool)>,
    formats: Vec<i16>,
}

/// Parameters of a statement for which no list is allocated.
const FEW: usize = 8;

impl Encoded {
    /// Writes a statement's parameters down.
    fn encode(&mut self, prepared: &Prepared, params: &(impl Params + ?Sized)) -> Result<()> {
        let given = params.count();
        let wanted = prepared.types.len();
        if prepared.names.is_empty() && given != wanted {
            return Err(Error::Parameters(format!("the statement has {wanted}, and {given} are given")));
        }
        let Encoded { bytes, ends, formats } = self;
        bytes.clear();
        ends.clear();
        formats.clear();
        for (at, ty) in prepared.types.iter().enumerate() {
            let from = match prepared.names.get(at) {
                Some(name) => position(params, name)?,
                None => at,
            };
            let start = bytes.len();
            let form = params.value(from).to_sql().write(*ty, bytes);
            formats.push(i16::from(form == Some(true)));
            ends.push((start, bytes.len(), form.is_some()));
        }
        Ok(())
    }

    /// The parameters that were written last.
    fn values<'v>(
        &'v self,
        few: &'v mut [Option<&'v [u8]>; FEW],
        many: &'v mut Vec<Option<&'v [u8]>>,
    ) -> &'v [Option<&'v [u8]>] {
        let values = match few.get_mut(..self.ends.len()) {
            Some(few) => few,
            None => {
                many.resize(self.ends.len(), None);
                &mut many[..]
            }
        };
        for (value, (start, end, there)) in values.iter_mut().zip(&self.ends) {
            *value = self.bytes.get(*start..*end).filter(|_| *there);
        }
        values
    }
}

/// Writes a statement's parameters down as values; false: one needs a second look (DCT-5).
fn as_values(prepared: &Prepared, params: &(impl Params + ?Sized), values: &mut Vec<Datum>) -> bool {
    values.clear();
    params.count() == prepared.types.len()
        && prepared.types.iter().enumerate().all(|(at, ty)| match params.value(at).to_sql().datum(*ty) {
            Some(value) => {
                values.push(value);
                true
            }
            None => false,
        })
}

/// A session with what belongs to it.
pub(crate) struct Live {
    pub(crate) link: Link,
    pub(crate) statements: Statements,
    pub(crate) waits: Arc<SessionStats>,
    /// A portal is open whose implicit transaction has not ended.
    pub(crate) unfinished: bool,
    /// Statements that were begun so far.
    pub(crate) number: u64,
    /// Dates, times and uuids come as texts.
    pub(crate) texts: bool,
    /// See `slot`, SLT-1.
    pub(crate) cut: bool,
}

impl Live {
    /// Rolls back what is open, releases every lock, and takes the session off the list.
    pub(crate) async fn end(self) {
        self.link.end().await;
    }

    /// What others see of it between two calls.
    pub(crate) fn rests(&self) {
        self.link.rests();
    }
}

/// On whose behalf a statement is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A thread that may wait.
    Thread,
    /// A task, whose thread has other work.
    Task,
}

/// What came of a statement that was tried without waiting.
pub(crate) enum TriedOutcome {
    /// Nothing was changed or given: it is to be run as any other.
    NotRun,
    /// It has run, with these columns; its implicit transaction has not ended, or its answer is not durable yet.
    Ran(Arc<[Column]>),
    /// It is done.
    Done(Arc<[Column]>),
}

/// What a call has given so far.
pub(crate) enum Step {
    /// All rows.
    All,
    /// A batch of them.
    Part,
}

impl Own {
    /// Runs a statement whose parameters are encoded, on the spot.
    fn try_bound(
        &mut self,
        prepared: &Prepared,
        encoded: &Encoded,
        caller: Caller,
        waits: &Arc<SessionStats>,
        out: &mut Collector,
    ) -> Tried {
        let mut few = [None; FEW];
        let mut many = Vec::new();
        let values = encoded.values(&mut few, &mut many);
        let bind = Bind { formats: &encoded.formats, values, result_formats: &prepared.formats };
        if self.session.try_read(&prepared.name, &bind, out) {
            return if self.session.may_send() { Tried::Done } else { Tried::Ran };
        }
        if caller == Caller::Task || !self.session.try_bind("", &prepared.name, &bind) {
            return Tried::Other;
        }
        if self.try_all_in_turn(waits, out) {
            return Tried::Done;
        }
        if out.tag.is_empty() && out.batch.rows() == 0 { Tried::GivenUp } else { Tried::Ran }
    }
}

impl Live {
    /// The statement of a text, prepared now or earlier. After DDL of any session the connection prepares its statements anew, so that a
    /// `SELECT *` has the table's present columns.
    async fn prepared(&mut self, sql: &str, params: &(impl Params + ?Sized)) -> Result<Arc<Prepared>> {
        let named = are_named(params);
        let version = self.link.catalog_version();
        if version != self.statements.version {
            self.forget_statements();
            self.statements.version = version;
        }
        let known = if named { &self.statements.named_by_text } else { &self.statements.by_text };
        if let Some(prepared) = known.get(sql) {
            return Ok(Arc::clone(prepared));
        }
        let (text, names) = match named {
            true => numbered(sql)?,
            false if params.count() > 0 => (marked(sql)?.unwrap_or_else(|| sql.to_owned()), Vec::new()),
            false => (sql.to_owned(), Vec::new()),
        };
        self.statements.counter += 1;
        let name = format!("embedded {}", self.statements.counter);
        let mut collector = Collector { texts: self.texts, ..Collector::default() };
        self.link.prepare(&name, &text, &mut collector).await?;
        let columns = collector.columns.take();
        let formats = columns.iter().flatten().map(|column| i16::from(column.is_binary)).collect();
        let types = std::mem::take(&mut collector.parameters);
        let (columns, waits, known) = (columns.map(Arc::from), AtomicBool::new(false), self.link.known(&name));
        let prepared = Arc::new(Prepared { name, known, types, names, columns, formats, waits });
        if sql.len() <= CACHED_TEXT_MAX {
            if self.statements.by_text.len() + self.statements.named_by_text.len() >= CACHE_MAX {
                self.forget_statements();
            }
            let known = if named { &mut self.statements.named_by_text } else { &mut self.statements.by_text };
            known.insert(sql.into(), Arc::clone(&prepared));
        }
        Ok(prepared)
    }

    /// A statement is prepared for one use only if its text is too long for the cache.
    fn forget_if_long(&mut self, prepared: &Prepared, sql: &str) {
        if sql.len() > CACHED_TEXT_MAX {
            self.link.close_statement(&prepared.name);
        }
    }

    pub(crate) fn forget_statements(&mut self) {
        let lists = [&mut self.statements.by_text, &mut self.statements.named_by_text];
        let all: Vec<_> = lists.into_iter().flat_map(|list| list.drain()).map(|(_, prepared)| prepared).collect();
        for prepared in all {
            self.link.close_statement(&prepared.name);
        }
    }

    /// Begins a statement and runs it up to the end of its first batch of rows.
    pub(crate) async fn begin(
        &mut self,
        sql: &str,
        params: &(impl Params + ?Sized),
        rows: u32,
        out: &mut Collector,
    ) -> Result<(Arc<Prepared>, Step)> {
        // A statement that fails ends its implicit transaction; in a block the transaction has failed, and `finish` changes nothing.
        match self.begin_unguarded(sql, params, rows, out).await {
            Ok(begun) => Ok(begun),
            Err(error) => {
                self.finish().await?;
                if !self.link.is_stale(&error) || self.in_block() {
                    return Err(error);
                }
                // DDL of some session has changed the columns: prepared anew, the statement returns the present ones.
                self.forget_statements();
                let begun = self.begin_unguarded(sql, params, rows, out).await;
                if begun.is_err() {
                    self.finish().await?;
                }
                begun
            }
        }
    }

    async fn begin_unguarded(
        &mut self,
        sql: &str,
        params: &(impl Params + ?Sized),
        rows: u32,
        out: &mut Collector,
    ) -> Result<(Arc<Prepared>, Step)> {
        if self.unfinished {
            self.finish().await?;
        }
        self.number += 1;
        let prepared = self.prepared(sql, params).await?;
        self.unfinished = true;
        self.bind(&prepared, params).await?;
        out.batch.clear();
        out.suspended = false;
        // What one row answers needs no wait, and none of what follows.
        if self.link.try_all(out) {
            self.unfinished = false;
            prepared.waits.store(false, Ordering::Relaxed);
            memory::end_statement();
            return Ok((prepared, Step::All));
        }
        if out.tag.is_empty() && out.batch.rows() == 0 {
            self.link.forget_interrupt();
            let step = self.run(rows, out).await;
            self.forget_if_long(&prepared, sql);
            return Ok((prepared, step?));
        }
        // It has run on the spot, and waits for its durability alone. (Without this line a durable change that once gave up never tried again.)
        prepared.waits.store(false, Ordering::Relaxed);
        self.settle().await?;
        Ok((prepared, Step::All))
    }

    /// The next batch of the statement that is open.
    pub(crate) async fn more(&mut self, rows: u32, out: &mut Collector) -> Result<Step> {
        out.batch.clear();
        out.suspended = false;
        match self.run(rows, out).await {
            Ok(step) => Ok(step),
            Err(error) => {
                self.finish().await?;
                Err(error)
            }
        }
    }

    async fn run(&mut self, rows: u32, out: &mut Collector) -> Result<Step> {
        self.link.execute(rows, out).await?;
        // The transaction's own DDL changes no published catalog, and neither does its rollback.
        let word = out.tag.split(' ').next().unwrap_or_default();
        if matches!(word, "CREATE" | "ALTER" | "DROP" | "ROLLBACK" | "DISCARD") {
            self.statements.version = 0;
        }
        if out.suspended {
            self.link.before_send().await?;
            return Ok(Step::Part);
        }
        self.finish().await?;
        Ok(Step::All)
    }

    /// Ends the implicit transaction and waits until what was told is durable.
    pub(crate) async fn finish(&mut self) -> Result<()> {
        self.unfinished = false;
        let ended = self.link.sync().await;
        memory::end_statement();
        ended?;
        self.link.before_send().await
    }

    /// The same of a statement that has run on the spot: mostly its transaction has committed already.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        if !self.link.try_sync() {
            return self.finish().await;
        }
        self.unfinished = false;
        memory::end_statement();
        self.link.before_send().await
    }

    async fn bind(&mut self, prepared: &Prepared, params: &(impl Params + ?Sized)) -> Result<()> {
        let Live { link, statements: Statements { encoded, .. }, .. } = self;
        encoded.encode(prepared, params)?;
        let mut few = [None; FEW];
        let mut many = Vec::new();
        let values = encoded.values(&mut few, &mut many);
        let bind = Bind { formats: &encoded.formats, values, result_formats: &prepared.formats };
        link.bind(&prepared.name, bind).await
    }

    /// Runs a statement that is prepared already and needs no wait: what one row answers. Nothing is allocated and no future is made. For a task only
    /// reads that are transactions of their own are run here: what changes a row may wait for its turn.
    pub(crate) fn try_begin(
        &mut self,
        sql: &str,
        params: &(impl Params + ?Sized),
        out: &mut Collector,
        caller: Caller,
    ) -> TriedOutcome {
        let Live { link: Link::Own(own), statements, unfinished, number, waits, .. } = self else {
            return TriedOutcome::NotRun;
        };
        let Statements { by_text, version, encoded, values, .. } = statements;
        if *unfinished || are_named(params) || own.db.catalog_version() != *version {
            return TriedOutcome::NotRun;
        }
        let Some(prepared) = by_text.get(sql).filter(|prepared| !prepared.waits.load(Ordering::Relaxed)) else {
            return TriedOutcome::NotRun;
        };
        out.batch.clear();
        out.tag.clear();
        out.suspended = false;
        let known = prepared.known.as_ref().filter(|_| as_values(prepared, params, values));
        let tried = match known {
            Some(known) => own.try_known((known, values, &prepared.formats), caller, waits, out),
            None => Tried::Other,
        };
        let tried = match tried {
            Tried::Other if encoded.encode(prepared, params).is_err() => return TriedOutcome::NotRun,
            Tried::Other => own.try_bound(prepared, encoded, caller, waits, out),
            tried => tried,
        };
        let columns = || prepared.columns.clone().unwrap_or_default();
        match tried {
            Tried::Done => {
                *number += 1;
                memory::end_statement();
                TriedOutcome::Done(columns())
            }
            Tried::Ran => {
                (*number, *unfinished) = (*number + 1, true);
                TriedOutcome::Ran(columns())
            }
            Tried::GivenUp => {
                prepared.waits.store(true, Ordering::Relaxed);
                TriedOutcome::NotRun
            }
            Tried::Other => TriedOutcome::NotRun,
        }
    }

    /// Runs all statements of a text as one transaction where it has no BEGIN; rows are passed over.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.number += 1;
        if self.unfinished {
            self.finish().await?;
        }
        let ran = self.link.simple(sql, &mut Collector::default()).await;
        self.statements.version = 0;
        memory::end_statement();
        self.link.before_send().await?;
        ran
    }

    /// Whether a transaction block is open, failed or not.
    pub(crate) fn in_block(&self) -> bool {
        self.link.status() != TransactionStatus::Idle
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    /// Whether the statement has given up the short way; `set`: it does so now.
    fn waits(connection: &crate::Connection, sql: &str, set: bool) -> bool {
        let mut lent = connection.0.slot.lend().expect("nothing else has it");
        let waits = &lent.live().statements.by_text[sql].waits;
        let waits = if set { !waits.swap(true, Relaxed) } else { waits.load(Relaxed) };
        lent.done();
        waits
    }

    #[test]
    fn a_durable_change_that_gave_up_once_is_tried_again() -> Result<(), crate::Error> {
        let dir = std::env::temp_dir().join(format!("clearway-tried-{}", std::process::id()));
        let db = crate::Database::open(&dir)?;
        let mut connection = db.connect()?;
        connection.execute("CREATE TABLE t (a bigint PRIMARY KEY)", ())?;
        const PUT: &str = "INSERT INTO t VALUES ($1)";
        connection.execute(PUT, [1_i64])?;
        connection.execute(PUT, [2_i64])?;
        assert!(waits(&connection, PUT, true), "it went the short way");
        connection.execute(PUT, [3_i64])?;
        assert!(!waits(&connection, PUT, false), "it went the short way from the ordinary one");
        connection.execute(PUT, [4_i64])?;
        assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 4);
        db.close()?;
        std::fs::remove_dir_all(dir).map_err(crate::Error::from)
    }
}
