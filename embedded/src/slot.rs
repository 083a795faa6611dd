//! Slots: a slot keeps a connection's session between two calls, so that closing the database can end the session.
//!
//! # Life of a session
//! `lease` takes the session out of the slot -> a call works with it -> the end of the lease puts it back. `end` waits until the session is
//! back, ends it, and leaves the slot closed. A call that does not wait borrows the session where it is (`lend`).
//!
//! # Invariants
//! - SLT-1: if the future of a call is dropped before the call has ended, the session is marked `cut`. The next call ends that session, which
//!   rolls its transaction back, begins another session, and fails with [`Error::Dropped`].
//! - SLT-2: once a slot is closed no call gets a session from it again.

use std::sync::Arc;

use clearway_base::sync::{Loan, Mutex};
use clearway_sql::session::Reason;
use clearway_storage::sync::Bell;

use crate::error::{Error, Result};
use crate::link::Link;
use crate::statement::Live;

enum State {
    Idle(Box<Live>),
    /// A call has the session.
    Busy,
    Closed,
}

/// See the head of this module.
pub(crate) struct Slot {
    state: Mutex<State>,
    /// Rings when a session comes back to a slot that is to be closed.
    back: Bell,
}

impl Slot {
    pub(crate) fn new(live: Live) -> Arc<Slot> {
        Arc::new(Slot {
            state: Mutex::new("embedded/slot", State::Idle(Box::new(live))),
            back: Bell::new("embedded/slot_back"),
        })
    }

    /// Takes the session for a call.
    pub(crate) fn lease(self: &Arc<Slot>) -> Result<Lease> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Busy) {
            State::Idle(live) => Ok(Lease { slot: Arc::clone(self), live: Some(live), done: false }),
            State::Closed => {
                *state = State::Closed; // SLT-2
                Err(Error::Closed)
            }
            // Calls of a connection borrow it exclusively, so no two run at once.
            State::Busy => unreachable!("two calls of one connection at once"),
        }
    }

    /// The session, where it is, for a call that does not wait. None: it is closed, or being closed, or the call before was cut short.
    #[inline]
    pub(crate) fn lend(&self) -> Option<Lent<'_>> {
        let mut state = self.state.lend()?;
        match &mut *state {
            State::Idle(live) if !live.cut => live.cut = true, // SLT-1
            _ => return None,
        }
        Some(Lent(state))
    }

    /// Ends the session, after the call that has it.
    pub(crate) async fn end(&self) {
        let mut taken = None;
        self.back
            .wait_until(|| {
                let mut state = self.state.lock();
                match std::mem::replace(&mut *state, State::Closed) {
                    State::Idle(live) => {
                        taken = Some(live);
                        true
                    }
                    State::Closed => true,
                    State::Busy => {
                        *state = State::Busy;
                        false
                    }
                }
            })
            .await;
        if let Some(live) = taken {
            live.end().await;
        }
    }
}

/// A session during a call that does not wait. It is marked `cut` until the call has ended (SLT-1).
pub(crate) struct Lent<'a>(Loan<'a, State>);

impl Lent<'_> {
    pub(crate) fn live(&mut self) -> &mut Live {
        match &mut *self.0 {
            State::Idle(live) => live,
            State::Busy | State::Closed => unreachable!("a loan is of a session that is there"),
        }
    }

    /// The call has come to its end, with whatever result.
    #[inline]
    pub(crate) fn done(mut self) {
        let live = self.live();
        live.cut = false;
        live.rests();
    }

    /// The call has to wait after all.
    pub(crate) fn into_lease(mut self, slot: &Arc<Slot>) -> Lease {
        self.live().cut = false;
        let live = match std::mem::replace(&mut *self.0, State::Busy) {
            State::Idle(live) => Some(live),
            State::Busy | State::Closed => None,
        };
        Lease { slot: Arc::clone(slot), live, done: false }
    }
}

/// A session during a call.
pub(crate) struct Lease {
    slot: Arc<Slot>,
    live: Option<Box<Live>>,
    done: bool,
}

impl Lease {
    pub(crate) fn live(&mut self) -> &mut Live {
        self.live.as_mut().expect("a lease holds its session until it is dropped")
    }

    /// The call has come to its end, with whatever result.
    pub(crate) fn done(mut self) {
        self.done = true;
    }

    /// Another session takes the place of this one, which is given back.
    pub(crate) fn replace(&mut self, live: Live) -> Box<Live> {
        self.live.replace(Box::new(live)).expect("a lease holds its session until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.cut |= !self.done; // SLT-1
            if !live.cut {
                live.rests();
            }
            *self.slot.state.lock() = State::Idle(live);
            self.slot.back.ring();
        }
    }
}

/// Stops the statement that a connection runs, from any thread.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// let cancel = connection.cancel_handle();
/// let (pid,): (i32,) = connection.query_row("SELECT pg_backend_pid()", ())?;
/// assert_eq!(pid, cancel.pid());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CancelHandle(Canceller);

#[derive(Clone, Debug)]
enum Canceller {
    Own(Arc<clearway_sql::session::Backend>),
    Guest(Arc<crate::guest::Key>),
}

impl CancelHandle {
    pub(crate) fn of(live: &Live) -> CancelHandle {
        CancelHandle(match &live.link {
            Link::Own(own) => Canceller::Own(Arc::clone(own.backend())),
            Link::Guest(guest) => Canceller::Guest(Arc::clone(&guest.key)),
        })
    }

    /// Stops the statement that runs now; it fails with SQLSTATE 57014. Nothing happens if none runs.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let cancel = connection.cancel_handle();
    /// std::thread::spawn(move || loop {
    ///     cancel.cancel();
    ///     std::thread::sleep(std::time::Duration::from_millis(10));
    /// });
    /// let stopped = connection.execute("SELECT pg_sleep(600)", ());
    /// assert_eq!(stopped.unwrap_err().code(), Some("57014"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(&self) {
        match &self.0 {
            Canceller::Own(backend) => backend.interrupt.raise(Reason::Cancel),
            Canceller::Guest(key) => key.cancel(),
        }
    }

    /// The connection's number in `pg_stat_activity` and in lock views.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let state = "SELECT state FROM pg_stat_activity WHERE pid = $1";
    /// let (state,): (String,) = connection.query_row(state, [connection.cancel_handle().pid()])?;
    /// assert_eq!(state, "active");
    /// # Ok(())
    /// # }
    /// ```
    pub fn pid(&self) -> i32 {
        match &self.0 {
            Canceller::Own(backend) => backend.pid,
            Canceller::Guest(key) => key.pid,
        }
    }
}
