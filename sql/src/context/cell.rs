//! Lends the engine's session to one part of the running statement at a time.
//!
//! Expressions reach the session through shared references (a host function inside an expression inside a scan), but the engine needs
//! exclusive access. A borrower returns the session before an expression is evaluated, so there is never more than one borrower. When a
//! statement is dropped during a wait, the dropped guard returns the session.

use clearway_base::sync::Mutex;
use clearway_engine::session::Session;
use std::ops::{Deref, DerefMut};

/// Holds the session while no part of the statement uses it.
pub struct EngineCell(Mutex<Option<Box<Session>>>);

impl EngineCell {
    /// A cell with a session.
    pub fn new(session: Session) -> Self {
        Self(Mutex::new("sql/exec/cell", Some(Box::new(session))))
    }

    /// The session, until the guard is dropped.
    ///
    /// # Panics
    /// If it is lent already.
    pub fn take(&self) -> Lent<'_> {
        let session = self.0.lock().take();
        assert!(session.is_some(), "the engine's session is lent to one at a time");
        Lent { cell: self, session }
    }

    /// The session itself, for its end.
    pub fn into_inner(self) -> Option<Box<Session>> {
        self.0.lock().take()
    }
}

/// The session on loan.
pub struct Lent<'a> {
    cell: &'a EngineCell,
    session: Option<Box<Session>>,
}

impl Deref for Lent<'_> {
    type Target = Session;
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("given back on drop only")
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        self.session.as_mut().expect("given back on drop only")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *self.cell.0.lock() = self.session.take();
    }
}
