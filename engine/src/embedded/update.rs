//! Updates of one row by a closure, each a transaction of its own; those of a row that many change are done together (`crate::line`).

use std::marker::PhantomData;
use std::panic::resume_unwind;

use clearway_base::waits::{Object, WaitEvent, in_wait};

use super::attempts::{Attempts, finish_telling};
use super::blocking::wait;
use super::columns::{Columns, Key};
use super::error::Error;
use super::table::Table;
use super::transaction::AsyncTxn;
use super::{Database, TxnOptions};
use crate::error::EngineError;
use crate::line::{Came, Lead, Place, Turn, Work};

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

impl Database {
    /// Runs `f` on the newest value of a key under the row's lock, stores what it leaves, and commits; returns what `f` returned, or
    /// `None` if there is no such key. The lock goes with the commit and not with its durability, so that a row that everybody
    /// changes is limited by the processor and not by the disk; only the result waits until it is durable.
    ///
    /// # Errors
    /// From the engine.
    pub fn update_with<K: Key, V: Columns, R>(
        &self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnMut(&mut V) -> R,
    ) -> Result<Option<R>, Error> {
        let _busy = self.busy();
        wait(self.update_row(table, key, f, None))
    }

    /// The same as a future. While another such call changes the row, `f` stands in line, and may be run by whoever has the row, on
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
        let _busy = self.busy();
        let place = Place::new::<V>(table.oid(), table.place_key(key));
        let (lead, mut work) = match self.inner.db.lines().come(place, Closure { f, result: None, value: PhantomData })
        {
            Came::Leads(lead, work) => (Some(lead), work),
            Came::Alone(work) => (None, work),
            Came::InLine(mut ticket) => match in_wait(WaitEvent::RowGroupUpdate, Object::NONE, ticket.turn()).await {
                Turn::Leads(lead, work) => (Some(lead), work),
                Turn::Alone(work) => (None, work),
                Turn::Panicked(panic) => resume_unwind(panic),
                Turn::Served(work, lsn) => {
                    // LINE-2
                    let wal = self.inner.db.transactions().store().wal();
                    let durable = in_wait(WaitEvent::CommitDurable, Object::NONE, wal.wait_durable(lsn)).await;
                    return durable.map(|()| work.result).map_err(|error| EngineError::from(error).into());
                }
            },
        };
        // On the heap: a task in line shall not carry the room for a transaction that it may never have.
        Box::pin(self.update_row(table, key, move |value: &mut V| (work.f)(value), lead)).await
    }

    async fn update_row<K: Key, V: Columns, R>(
        &self,
        table: &Table<K, V>,
        key: &K,
        mut f: impl FnMut(&mut V) -> R,
        mut lead: Option<Lead<'_>>,
    ) -> Result<Option<R>, Error> {
        let mut session = self.session();
        let mut attempts = Attempts::default();
        loop {
            session.begin(TxnOptions::default());
            let mut txn = AsyncTxn::new(&mut session, &self.inner.texts);
            let result = txn.update_leading(table, key, &mut f, lead.as_mut()).await;
            let mut end = attempts.ended(&mut txn);
            if result.is_err()
                && let Some(lead) = &mut lead
            {
                end.retry |= lead.undone();
            }
            let told = |lsn| {
                if let Some(lead) = &mut lead {
                    lead.committed(lsn);
                }
            };
            if let Some(ended) = finish_telling(&mut session, result, end, told).await {
                self.give_back(session);
                return ended;
            }
        }
    }
}
