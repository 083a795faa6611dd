//! Connections whose calls are futures. Each has a session of its own; the futures need no particular runtime.

use std::sync::Arc;

use clearway_base::waits::with_session;

use crate::error::{Error, Result};
use crate::params::Params;
use crate::row::{Collector, FromRow, rows_of};
use crate::rows::{AsyncRows, Query};
use crate::rows_as::AsyncRowsAs;
use crate::savepoint;
use crate::sessions::Sessions;
use crate::slot::{CancelHandle, Lease, Slot};
use crate::statement::{BATCH_ROWS, Caller, Live, Step, TriedOutcome};
use crate::transaction::AsyncTransaction;
use crate::wait::wait;

/// What is rolled back before the connection's next call.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Undo {
    #[default]
    Nothing,
    /// So many savepoints, the innermost first.
    Savepoints(u32),
    Transaction,
}

/// What a connection keeps for the rows of its next statement, in bytes.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// A connection whose calls are futures. Each call must be driven to its end: a future that is dropped before rolls the transaction back.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// # let db = clearway::Database::in_memory()?;
/// let mut connection = db.connect_async().await?;
/// let (sum,): (i32,) = connection.query_row("SELECT $1::int + $2::int", (1, 2)).await?;
/// assert_eq!(sum, 3);
/// # Ok::<(), clearway::Error>(())
/// # }).expect("done");
/// ```
pub struct AsyncConnection {
    pub(crate) slot: Arc<Slot>,
    pub(crate) sessions: Arc<Sessions>,
    cancel: CancelHandle,
    /// What guards that were dropped without commit or release left to be done before the next call.
    pub(crate) undo: Undo,
    /// Of rows that were read: used for the next ones.
    pub(crate) spare: Option<Box<Collector>>,
}

impl AsyncConnection {
    pub(crate) fn new(slot: Arc<Slot>, sessions: Arc<Sessions>, cancel: CancelHandle) -> AsyncConnection {
        AsyncConnection { slot, sessions, cancel, undo: Undo::Nothing, spare: None }
    }

    /// Keeps what rows were in, unless it has become large.
    pub(crate) fn keep_spare(&mut self, out: Option<Box<Collector>>) {
        if let Some(out) = out.filter(|out| out.batch.bytes_held() <= SPARE_BYTES_MAX) {
            self.spare = Some(out);
        }
    }

    /// The session for a call, in order (SLT-1).
    pub(crate) async fn lease(&mut self) -> Result<Lease> {
        self.lease_for("").await
    }

    /// The same, for a statement.
    async fn lease_for(&mut self, sql: &str) -> Result<Lease> {
        let mut lease = self.slot.lease()?;
        let live = lease.live();
        let (cut, lost) = (live.cut, live.link.is_lost());
        if cut || lost {
            if lost && !cut && live.in_block() && self.undo != Undo::Transaction && !is_rollback(sql) {
                lease.done();
                return Err(Error::Lost); // GST-2
            }
            let fresh = self.sessions.begin().await?;
            self.cancel = CancelHandle::of(&fresh);
            lease.replace(fresh).end().await;
            self.undo = Undo::Nothing;
            if cut {
                lease.done();
                return Err(Error::Dropped);
            }
        }
        if self.undo != Undo::Nothing
            && let Err(error) = undo(lease.live(), std::mem::take(&mut self.undo)).await
        {
            lease.done();
            return Err(error);
        }
        Ok(lease)
    }

    /// Runs a statement on the spot if that needs no wait, or none but that for its commit. None: nothing has happened.
    pub(crate) fn try_query(&mut self, sql: &str, params: &impl Params) -> Option<Result<Query>> {
        let (query, lease) = self.try_at_once(sql, params, Caller::Thread)?;
        let Some(mut lease) = lease else { return Some(Ok(query)) };
        let live = lease.live();
        let ended = wait(with_session(Arc::clone(&live.waits), live.settle()));
        lease.done();
        Some(ended.map(|()| query))
    }

    /// The same for a caller of either kind. With a lease: what was told still has to be durable.
    fn try_at_once(&mut self, sql: &str, params: &impl Params, caller: Caller) -> Option<(Query, Option<Lease>)> {
        if self.undo != Undo::Nothing {
            return None;
        }
        let mut lent = self.slot.lend()?;
        let live = lent.live();
        let mut out = self.spare.take().unwrap_or_default();
        out.texts = live.texts;
        let tried = live.try_begin(sql, params, &mut out, caller);
        let number = live.number;
        let (columns, lease) = match tried {
            TriedOutcome::NotRun => {
                lent.done();
                self.spare = Some(out);
                return None;
            }
            TriedOutcome::Done(columns) => {
                lent.done();
                (columns, None)
            }
            TriedOutcome::Ran(columns) => (columns, Some(lent.into_lease(&self.slot))),
        };
        Some((Query::new(columns, out, false, number), lease))
    }

    /// Runs a statement; how many rows it has changed (or returned, where it returns rows).
    ///
    /// # Errors
    /// The statement's; `Closed`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// assert_eq!(connection.execute("INSERT INTO t VALUES ($1), ($2)", (1, 2)).await?, 2);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    pub async fn execute(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<u64> {
        let mut out = Collector::default();
        let mut lease = self.lease_for(sql).await?;
        let ran = {
            let live = lease.live();
            let waits = Arc::clone(&live.waits);
            let work = async {
                let (_, mut step) = live.begin(sql, &params, BATCH_ROWS, &mut out).await?;
                while matches!(step, Step::Part) {
                    step = live.more(BATCH_ROWS, &mut out).await?;
                }
                Ok(rows_of(&out.tag))
            };
            with_session(waits, work).await
        };
        lease.done();
        ran
    }

    /// Runs all statements of a text, separated by semicolons, as one transaction unless the text begins one itself. Rows are passed over.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute_batch("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)").await?;
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 2);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The first statement's that fails; `Closed`.
    pub async fn execute_batch(&mut self, sql: &str) -> Result<()> {
        let mut lease = self.lease_for(sql).await?;
        let waits = Arc::clone(&lease.live().waits);
        let ran = with_session(waits, lease.live().batch(sql)).await;
        lease.done();
        ran
    }

    /// Runs a statement and streams its rows.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut rows = connection.query("SELECT g FROM generate_series(1, 1000) g", ()).await?;
    /// let mut sum = 0;
    /// while let Some(row) = rows.next().await? {
    ///     sum += row.get::<i32>(0)?;
    /// }
    /// assert_eq!(sum, 500_500);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<AsyncRows<'_>> {
        let query = self.begin_query(sql, params).await?;
        Ok(AsyncRows::new(self, query))
    }

    /// As [`AsyncConnection::query`], without borrowing the connection: see [`Query`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut query = connection.begin_query("SELECT 7 AS n", ()).await?;
    /// assert_eq!(query.columns()[0].name, "n");
    /// assert_eq!(query.buffered().expect("a row").get::<i32>("n")?, 7);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn begin_query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Query> {
        if let Some((query, lease)) = self.try_at_once(sql, &params, Caller::Task) {
            if let Some(mut lease) = lease {
                let live = lease.live();
                let waits = Arc::clone(&live.waits);
                let ended = with_session(waits, live.settle()).await;
                lease.done();
                ended?;
            }
            return Ok(query);
        }
        let mut out = Box::<Collector>::default();
        let mut lease = self.lease_for(sql).await?;
        let live = lease.live();
        let waits = Arc::clone(&live.waits);
        let begun = with_session(waits, live.begin(sql, &params, BATCH_ROWS, &mut out)).await;
        let number = live.number;
        lease.done();
        let (prepared, step) = begun?;
        let columns = prepared.columns.clone().unwrap_or_else(|| Arc::from([]));
        Ok(Query::new(columns, out, matches!(step, Step::Part), number))
    }

    /// Runs a statement; its rows, converted one by one as they are asked for.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut pairs = connection.query_as::<(i32, String)>("SELECT g, 'row ' || g FROM generate_series(1, 2) g", ()).await?;
    /// assert_eq!(pairs.next().await?, Some((1, "row 1".to_owned())));
    /// assert_eq!(pairs.collect().await?, [(2, "row 2".to_owned())]);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn query_as<T: FromRow>(
        &mut self,
        sql: &str,
        params: impl Params + Send + Sync,
    ) -> Result<AsyncRowsAs<'_, T>> {
        Ok(AsyncRowsAs::of(self.query(sql, params).await?))
    }

    /// The first row, converted; further rows are not read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let (name, age): (String, i32) = connection.query_row("SELECT 'Ada', 36", ()).await?;
    /// assert_eq!((name.as_str(), age), ("Ada", 36));
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// `NoRow`; the statement's; `Conversion`.
    pub async fn query_row<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<T> {
        self.query_opt(sql, params).await?.ok_or(Error::NoRow)
    }

    /// The first row, converted, if there is one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let none: Option<(i32,)> = connection.query_opt("SELECT 1 WHERE false", ()).await?;
    /// assert_eq!(none, None);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Conversion`.
    pub async fn query_opt<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Option<T>> {
        let mut rows = self.query(sql, params).await?;
        let found = match rows.next().await? {
            Some(row) => Some(T::from_row(row)?),
            None => None,
        };
        rows.close().await?;
        Ok(found)
    }

    /// Begins a transaction. Dropping the guard without [`AsyncTransaction::commit`] rolls it back before the connection's next call.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut transaction = connection.transaction().await?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// transaction.commit().await?;
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 1);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// 25001 if one is open already; `Closed`.
    pub async fn transaction(&mut self) -> Result<AsyncTransaction<'_>> {
        AsyncTransaction::begin(self, "BEGIN").await
    }

    /// As [`AsyncConnection::transaction`], at repeatable read: one snapshot for all of it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut reader = db.connect_async().await?;
    /// let mut snapshot = reader.transaction_repeatable_read().await?;
    /// assert_eq!(snapshot.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 0);
    /// connection.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// assert_eq!(snapshot.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 0);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// Those of [`AsyncConnection::transaction`].
    pub async fn transaction_repeatable_read(&mut self) -> Result<AsyncTransaction<'_>> {
        AsyncTransaction::begin(self, "BEGIN ISOLATION LEVEL REPEATABLE READ").await
    }

    /// Stops what the connection runs, from any thread.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let cancel = connection.cancel_handle();
    /// std::thread::spawn(move || loop {
    ///     cancel.cancel();
    ///     std::thread::sleep(std::time::Duration::from_millis(10));
    /// });
    /// let stopped = connection.execute("SELECT pg_sleep(600)", ()).await.unwrap_err();
    /// assert_eq!(stopped.code(), Some("57014"));
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Whether a transaction block is open: a guard, or a BEGIN of the program's own.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// assert!(!connection.in_transaction()?);
    /// connection.execute("BEGIN", ()).await?;
    /// assert!(connection.in_transaction()?);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn in_transaction(&self) -> Result<bool> {
        let mut lease = self.slot.lease()?;
        let live = lease.live();
        let is = live.in_block() && !live.cut && self.undo != Undo::Transaction;
        if !live.cut {
            lease.done();
        }
        Ok(is)
    }
}

/// Rolls back what guards have left.
async fn undo(live: &mut Live, what: Undo) -> Result<()> {
    match what {
        Undo::Nothing => Ok(()),
        Undo::Transaction => live.batch("ROLLBACK").await,
        Undo::Savepoints(count) => {
            for _ in 0..count {
                // A block that the program has ended itself has no savepoints.
                if live.in_block() {
                    live.batch(&savepoint::undo()).await?;
                }
            }
            Ok(())
        }
    }
}

/// Whether a statement ends a transaction block by rolling it back.
fn is_rollback(sql: &str) -> bool {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    sql.eq_ignore_ascii_case("rollback") || sql.eq_ignore_ascii_case("abort")
}

impl Drop for AsyncConnection {
    fn drop(&mut self) {
        // Waits only for a transaction to be rolled back.
        wait(self.slot.end());
        self.sessions.forget(&self.slot);
    }
}
