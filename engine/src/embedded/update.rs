//! Updates of one row by a closure, each a transaction of its own. Concurrent updates of one row share a transaction (`crate::line`).

use std::marker::PhantomData;
use std::panic::resume_unwind;

use clearway_base::waits::{Object, WaitEvent, in_wait};

use super::attempts::{Attempts, finish_early};
use super::blocking::wait;
use super::columns::{Columns, Key};
use super::error::Error;
use super::seats::Open;
use super::table::Table;
use super::transaction::AsyncTxn;
use super::{Database, TxnOptions};
use crate::line::{Arrival, Lead, Place, Turn, Work};
use crate::session::ReplyDue;

/// A closure that stands in line, and what it returned.
struct Closure<V, R, F> {
    f: F,
    result: Option<R>,
    value: PhantomData<fn(&mut V)>,
}

impl<V, R, F> Work for Closure<V, R, F>
where
    V: 'static,
    R: Send + 'static,
    F: FnMut(&mut V) -> R + Send + 'static,
{
    type Value = V;

    fn run(&mut self, value: &mut V) {
        self.result = Some((self.f)(value));
    }
}

/// An update that is visible to other sessions, and the commits that must be durable before its result is returned.
struct Done<'l, R> {
    result: Option<R>,
    due: ReplyDue,
    /// The calls that were served in it wait, too.
    lead: Option<Lead<'l>>,
}

impl Database {
    /// Runs `f` on the newest value of a key under the row's lock, stores what it leaves, and commits; returns what `f` returned, or
    /// `None` if there is no such key. The lock is released at the commit, before the commit is durable. So the rate of changes of a hot row
    /// is limited by the processor and not by the disk; only the result waits until it is durable.
    ///
    /// # Errors
    /// From the engine.
    pub fn update_with<K: Key, V: Columns, R>(
        &self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnMut(&mut V) -> R,
    ) -> Result<Option<R>, Error> {
        let open = self.open_one()?;
        open.works();
        wait(async {
            let done = self.update_row(&open, table, key, (f, None)).await?;
            self.durable(done).await
        })
    }

    /// The same as a future. While another such call changes the row, `f` waits in the row's line, and the call that has the row may run it, on
    /// its thread and in its transaction: one commit for all of them. A panic in `f` still is a panic of this future only.
    ///
    /// # Errors
    /// As [`Database::update_with`].
    pub async fn update_with_async<K: Key, V: Columns, R: Send + 'static>(
        &self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnMut(&mut V) -> R + Send + 'static,
    ) -> Result<Option<R>, Error> {
        let open = self.open_one()?;
        open.works();
        let place = Place::new::<V>(table.oid(), table.place_key(key));
        let (lead, mut work) = match self.inner.db.lines().come(place, Closure { f, result: None, value: PhantomData })
        {
            Arrival::Leads(lead, work) => (Some(lead), work),
            Arrival::Alone(work) => (None, work),
            Arrival::InLine(mut ticket) => {
                match in_wait(WaitEvent::RowGroupUpdate, Object::NONE, ticket.turn()).await {
                    Turn::Leads(lead, work) => (Some(lead), work),
                    Turn::Alone(work) => (None, work),
                    Turn::Panicked(panic) => resume_unwind(panic),
                    Turn::Served(work, lsn) => {
                        let due = ReplyDue { dep_lsn: lsn, own: true };
                        return self.durable(Done { result: work.result, due, lead: None }).await;
                    }
                }
            }
        };
        // On the heap, and gone before the wait for the disk: a task that waits shall not carry the room for a whole transaction.
        let done = Box::pin(self.update_row(&open, table, key, (move |value: &mut V| (work.f)(value), lead))).await?;
        self.durable(done).await
    }

    /// LINE-2, SES-4: what was done is told when it is durable; then the calls that were served hear of it, too.
    async fn durable<R>(&self, done: Done<'_, R>) -> Result<Option<R>, Error> {
        done.due.wait(&self.inner.db).await?;
        drop(done.lead);
        Ok(done.result)
    }

    /// The whole update but for the wait for the disk.
    async fn update_row<'l, K: Key, V: Columns, R>(
        &self,
        open: &Open<'_>,
        table: &Table<K, V>,
        key: &K,
        (mut f, mut lead): (impl FnMut(&mut V) -> R, Option<Lead<'l>>),
    ) -> Result<Done<'l, R>, Error> {
        let mut seat = self.seat();
        let mut attempts = Attempts::default();
        loop {
            let mut txn = AsyncTxn::begin(&mut seat, &self.inner.texts, open, TxnOptions::default());
            let result = txn.update_leading(table, key, &mut f, lead.as_mut()).await;
            let mut end = attempts.ended(&mut txn);
            if result.is_err()
                && let Some(lead) = &mut lead
            {
                end.retry |= lead.undone();
            }
            if let Some(ended) = finish_early(&mut seat.session, result, end).await {
                let due = seat.session.reply_due();
                // As in `reply_of`.
                self.give_back(seat);
                let result = ended?;
                if let Some(lead) = &mut lead {
                    lead.committed(due.dep_lsn);
                }
                return Ok(Done { result, due, lead });
            }
        }
    }
}
