//! LISTEN and NOTIFY: notifications that this connection gets from other connections, of this process and of others.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::timeout;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_sql::session::TransactionStatus;

use crate::blocking::Connection;
use crate::connection::AsyncConnection;
use crate::error::Result;
use crate::link::Link;
use crate::wait::wait;

/// How many wait for a guest at most; the process that has the directory limits its own (54000).
pub(crate) const WAITING_MAX: usize = 100_000;

/// A notification: what a transaction sent with `NOTIFY` or `pg_notify`, once it was durable.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// connection.execute("LISTEN jobs", ())?;
/// connection.execute("SELECT pg_notify('jobs', 'seven')", ())?;
/// let heard = connection.notifications(None)?;
/// assert_eq!((heard[0].channel.as_str(), heard[0].payload.as_str()), ("jobs", "seven"));
/// assert_eq!(heard[0].pid, connection.cancel_handle().pid());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// The channel.
    pub channel: String,
    /// The payload; empty if none was sent.
    pub payload: String,
    /// The number of the connection that sent it ([`crate::CancelHandle::pid`]).
    pub pid: i32,
}

impl AsyncConnection {
    /// The notifications that have come for the channels to which this connection has said `LISTEN`. Where there are none it waits for the
    /// first one, at most for `limit`. In a transaction block none come: the answer is empty at once.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("LISTEN jobs", ()).await?;
    /// db.connect()?.execute("NOTIFY jobs, 'seven'", ())?;
    /// let heard = connection.notifications(None).await?;
    /// assert_eq!(heard[0].payload, "seven");
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// `Closed`; `Lost`.
    pub async fn notifications(&mut self, limit: Option<Duration>) -> Result<Vec<Notification>> {
        let mut lease = self.lease().await?;
        let live = lease.live();
        if live.unfinished {
            live.finish().await?;
        }
        let heard = if live.link.status() == TransactionStatus::Idle {
            heard(&mut live.link, limit).await
        } else {
            Ok(Vec::new())
        };
        lease.done();
        heard
    }
}

async fn heard(link: &mut Link, limit: Option<Duration>) -> Result<Vec<Notification>> {
    match link {
        Link::Own(own) => {
            let backend = Arc::clone(own.backend());
            if !backend.inbox.has_any() && limit != Some(Duration::ZERO) {
                backend.interrupt.forget();
                // A cancel ends the wait, and so does closing the database.
                let any = backend.interrupt.guard(poll_fn(|cx| backend.inbox.poll_any(cx.waker())));
                let any = in_wait(WaitEvent::Notification, Object::NONE, any);
                match limit {
                    Some(limit) => timeout(limit, any).await.unwrap_or(Ok(()))?,
                    None => any.await?,
                }
            }
            let taken = own.backends.channels.take(&backend);
            let one = |n: clearway_sql::context::notify::Notification| Notification {
                channel: n.channel.to_string(),
                payload: n.payload.to_string(),
                pid: n.pid,
            };
            Ok(taken.into_iter().map(one).collect())
        }
        Link::Guest(guest) => {
            if guest.notifications.is_empty() {
                guest.listen(limit).await?;
            }
            Ok(guest.notifications.drain(..).collect())
        }
    }
}

impl Connection {
    /// As [`AsyncConnection::notifications`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// let mut listener = db.connect()?;
    /// listener.execute("LISTEN jobs", ())?;
    /// db.connect()?.execute("NOTIFY jobs, 'seven'", ())?;
    /// let heard = listener.notifications(Some(std::time::Duration::from_secs(60)))?;
    /// assert_eq!(heard[0].payload, "seven");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`AsyncConnection::notifications`].
    pub fn notifications(&mut self, limit: Option<Duration>) -> Result<Vec<Notification>> {
        wait(self.0.notifications(limit))
    }
}
