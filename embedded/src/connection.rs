//! Connections: each has a session of its own. [`Connection`] parks the thread while it waits; [`AsyncConnection`] gives futures that need no
//! particular runtime.

use std::sync::Arc;

use clearway_base::waits::with_session;

use crate::error::{Error, Result};
use crate::params::Params;
use crate::row::{Collector, FromRow, rows_of};
use crate::rows::{AsyncRows, Query, Rows};
use crate::sessions::Sessions;
use crate::slot::{CancelHandle, Lease, Slot};
use crate::statement::{BATCH_ROWS, Step, Tried};
use crate::transaction::{AsyncTransaction, Transaction};
use crate::wait::wait;

/// What a connection keeps for the rows of its next statement, in bytes.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// A connection whose calls are futures. Each call must be driven to its end: a future that is dropped before rolls the transaction back.
pub struct AsyncConnection {
    pub(crate) slot: Arc<Slot>,
    pub(crate) sessions: Arc<Sessions>,
    cancel: CancelHandle,
    /// A transaction's guard was dropped without commit.
    pub(crate) roll_back: bool,
    /// Of rows that were read: used for the next ones.
    pub(crate) spare: Collector,
}

impl AsyncConnection {
    pub(crate) fn new(slot: Arc<Slot>, sessions: Arc<Sessions>, cancel: CancelHandle) -> AsyncConnection {
        AsyncConnection { slot, sessions, cancel, roll_back: false, spare: Collector::default() }
    }

    /// Keeps what rows were in, unless it has become large.
    pub(crate) fn keep_spare(&mut self, out: Collector) {
        if out.batch.bytes_held() <= SPARE_BYTES_MAX {
            self.spare = out;
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
            if lost && !cut && live.in_block() && !self.roll_back && !is_rollback(sql) {
                lease.done();
                return Err(Error::Lost); // GST-2
            }
            let fresh = self.sessions.begin().await?;
            self.cancel = CancelHandle::of(&fresh);
            lease.replace(fresh).end().await;
            self.roll_back = false;
            if cut {
                lease.done();
                return Err(Error::Dropped);
            }
        }
        if std::mem::take(&mut self.roll_back) {
            let ended = lease.live().batch("ROLLBACK").await;
            if let Err(error) = ended {
                lease.done();
                return Err(error);
            }
        }
        Ok(lease)
    }

    /// Runs a statement on the spot if that needs no wait, or none but that for its commit. None: nothing has happened.
    fn try_query(&mut self, sql: &str, params: &impl Params) -> Option<Result<Query>> {
        if self.roll_back {
            return None;
        }
        let mut lease = self.slot.lease().ok()?;
        let live = lease.live();
        let mut out = std::mem::take(&mut self.spare);
        out.texts = live.texts;
        let tried = live.try_begin(sql, params, &mut out);
        let number = live.number;
        let (prepared, ended) = match tried {
            Tried::NotRun => {
                lease.done();
                self.spare = out;
                return None;
            }
            Tried::Done(prepared) => (prepared, Ok(())),
            Tried::Ran(prepared) => (prepared, wait(with_session(Arc::clone(&live.waits), live.finish()))),
        };
        lease.done();
        let columns = prepared.columns.clone().unwrap_or_default();
        Some(ended.map(|()| Query::new(columns, out, false, number)))
    }

    /// Runs a statement; how many rows it has changed (or returned, where it returns rows).
    ///
    /// # Errors
    /// The statement's; `Closed`.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # std::thread::spawn(move || {
    /// # futures_lite_block_on(async {
    /// let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// assert_eq!(connection.execute("INSERT INTO t VALUES ($1), ($2)", (1, 2)).await?, 2);
    /// # Ok::<(), clearway::Error>(()) }) }).join().unwrap()
    /// # }
    /// # fn futures_lite_block_on<F: std::future::Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     struct Unpark(std::thread::Thread);
    /// #     impl std::task::Wake for Unpark { fn wake(self: std::sync::Arc<Self>) { self.0.unpark() } }
    /// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    /// #     loop {
    /// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
    /// #             std::task::Poll::Ready(output) => return output,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
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
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<AsyncRows<'_>> {
        let query = self.begin_query(sql, params).await?;
        Ok(AsyncRows::new(self, query))
    }

    /// As [`AsyncConnection::query`], without borrowing the connection: see [`Query`].
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn begin_query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Query> {
        let mut out = Collector::default();
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

    /// The first row, converted; further rows are not read.
    ///
    /// # Errors
    /// `NoRow`; the statement's; `Conversion`.
    pub async fn query_row<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<T> {
        self.query_opt(sql, params).await?.ok_or(Error::NoRow)
    }

    /// The first row, converted, if there is one.
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
    /// # Errors
    /// 25001 if one is open already; `Closed`.
    pub async fn transaction(&mut self) -> Result<AsyncTransaction<'_>> {
        AsyncTransaction::begin(self, "BEGIN").await
    }

    /// Stops what the connection runs, from any thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Whether a transaction block is open: a guard, or a BEGIN of the program's own.
    ///
    /// # Errors
    /// `Closed`.
    pub fn in_transaction(&self) -> Result<bool> {
        let mut lease = self.slot.lease()?;
        let live = lease.live();
        let is = live.in_block() && !live.cut && !self.roll_back;
        if !live.cut {
            lease.done();
        }
        Ok(is)
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

/// A connection. Its calls park the thread until they are done.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// let db = clearway::Database::in_memory()?;
/// let mut connection = db.connect()?;
/// connection.execute_batch("CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL)")?;
/// connection.execute("INSERT INTO people VALUES ($1, $2), ($3, $4)", (1, "Ada", 2, "Grace"))?;
/// let name: (String,) = connection.query_row("SELECT name FROM people WHERE id = $1", [2])?;
/// assert_eq!(name.0, "Grace");
/// # Ok(())
/// # }
/// ```
pub struct Connection(pub(crate) AsyncConnection);

impl Connection {
    /// Runs a statement; how many rows it has changed (or returned, where it returns rows).
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn execute(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<u64> {
        if let Some(query) = self.0.try_query(sql, &params) {
            let query = query?;
            let changed = rows_of(query.tag());
            self.0.keep_spare(query.into_spare());
            return Ok(changed);
        }
        wait(self.0.execute(sql, params))
    }

    /// Runs all statements of a text, separated by semicolons, as one transaction unless the text begins one itself. Rows are passed over.
    ///
    /// # Errors
    /// The first statement's that fails; `Closed`.
    pub fn execute_batch(&mut self, sql: &str) -> Result<()> {
        wait(self.0.execute_batch(sql))
    }

    /// Runs a statement and streams its rows.
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Rows<'_>> {
        if let Some(query) = self.0.try_query(sql, &params) {
            return Ok(Rows(AsyncRows::new(&mut self.0, query?)));
        }
        wait(self.0.query(sql, params)).map(Rows)
    }

    /// As [`Connection::query`], without borrowing the connection: see [`Query`].
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn begin_query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Query> {
        if let Some(query) = self.0.try_query(sql, &params) {
            return query;
        }
        wait(self.0.begin_query(sql, params))
    }

    /// See [`Query::fetch`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch(&mut self, query: &mut Query) -> Result<bool> {
        wait(query.fetch(&mut self.0))
    }

    /// See [`Query::end`].
    ///
    /// # Errors
    /// As there.
    pub fn end_query(&mut self, query: &mut Query) -> Result<()> {
        wait(query.end(&mut self.0))
    }

    /// Runs a statement; its rows, converted, as an iterator.
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn query_as<T: FromRow>(
        &mut self,
        sql: &str,
        params: impl Params + Send + Sync,
    ) -> Result<impl Iterator<Item = Result<T>>> {
        let mut rows = self.query(sql, params)?;
        Ok(std::iter::from_fn(move || rows.next().and_then(|row| row.map(T::from_row).transpose()).transpose()))
    }

    /// The first row, converted; further rows are not read.
    ///
    /// # Errors
    /// `NoRow`; the statement's; `Conversion`.
    pub fn query_row<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<T> {
        self.query_opt(sql, params)?.ok_or(Error::NoRow)
    }

    /// The first row, converted, if there is one.
    ///
    /// # Errors
    /// The statement's; `Conversion`.
    pub fn query_opt<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Option<T>> {
        let mut rows = self.query(sql, params)?;
        let found = rows.next()?.map(T::from_row).transpose()?;
        rows.close()?;
        Ok(found)
    }

    /// Begins a transaction. Dropping the guard without [`Transaction::commit`] rolls it back.
    ///
    /// # Errors
    /// 25001 if one is open already; `Closed`.
    pub fn transaction(&mut self) -> Result<Transaction<'_>> {
        Transaction::begin(self, "BEGIN")
    }

    /// As [`Connection::transaction`], at repeatable read: one snapshot for all of it.
    ///
    /// # Errors
    /// As there.
    pub fn transaction_repeatable_read(&mut self) -> Result<Transaction<'_>> {
        Transaction::begin(self, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    }

    /// From now on dates, times and uuids come in their text form, as `ValueRef::Text`: for bindings whose language has no types for them.
    ///
    /// # Errors
    /// `Closed`.
    pub fn dates_as_text(&mut self) -> Result<()> {
        let mut lease = wait(self.0.lease())?;
        lease.live().texts = true;
        lease.live().forget_statements();
        lease.done();
        Ok(())
    }

    /// Stops what the connection runs, from any thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.0.cancel_handle()
    }

    /// Whether a transaction block is open: a guard, or a BEGIN of the program's own.
    ///
    /// # Errors
    /// `Closed`.
    pub fn in_transaction(&self) -> Result<bool> {
        self.0.in_transaction()
    }
}
