//! Lends the engine's session to one part of the running statement at a time.
//!
//! Expressions reach the session through shared references (a host function inside an expression inside a scan), but the engine needs
//! exclusive access. A borrower returns the session before an expression is evaluated, so there is never more than one borrower. When a
//! statement is dropped during a wait, the dropped guard returns the session.

use clearway_base::sync::{Loan, Mutex};
use clearway_engine::session::Session;
use std::ops::{Deref, DerefMut};

/// Holds the session while no part of the statement uses it.
pub struct EngineCell(Mutex<Box<Session>>);

impl EngineCell {
    /// A cell with a session.
    pub fn new(session: Session) -> Self {
        Self(Mutex::new("sql/exec/cell", Box::new(session)))
    }

    /// The session, until the guard is dropped.
    ///
    /// # Panics
    /// If it is lent already.
    #[inline]
    pub fn take(&self) -> Lent<'_> {
        Lent(self.0.lend().expect("the engine's session is lent to one at a time"))
    }
}

/// The session on loan.
pub struct Lent<'a>(Loan<'a, Box<Session>>);

impl Deref for Lent<'_> {
    type Target = Session;
    #[inline]
    fn deref(&self) -> &Session {
        &self.0
    }
}

impl DerefMut for Lent<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0
    }
}
