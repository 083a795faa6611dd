//! The open cursors of a session: those of DECLARE, and those that bodies in PL/pgSQL open. The sessions of functions share those of the session around
//! them, so that a cursor which a function has opened can be read by its name afterwards.
//!
//! # Life of a cursor
//! ```text
//! At rest --take--> Moving --put back--> At rest
//!                      \--a FETCH failed, or was dropped in the middle of a wait--> Failed
//! ```
//! A function that FETCH calls finds the cursor that calls it Moving: it can neither move nor close it.
//!
//! # Invariants
//! - CUR-2: a rollback of a subtransaction closes the cursors that were opened in it; a cursor that was opened before stays open.
//! - CUR-3: a cursor that a loop reads is not closed before the loop ends. COMMIT and ROLLBACK in the loop keep its rows; an error closes it.

use super::current_of::Standing;
use super::cursor::Cursor;
use crate::context::core::{Core, NamedCursor};
use crate::error::{Result, SqlError};
use crate::planner::plan::OutputColumn;
use clearway_base::sync::Mutex;
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The entry in pg_cursors of a cursor, or of a named portal of the protocol, for as long as it is open.
pub(super) struct Listed(Arc<Core>, String);

impl Listed {
    pub(super) fn new(core: &Arc<Core>, name: &str, shown: NamedCursor) -> Listed {
        core.cursors.lock().insert(name.to_owned(), shown);
        Listed(core.clone(), name.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.cursors.lock().remove(&self.1);
    }
}

enum State {
    AtRest(Box<Cursor>),
    Moving,
    Failed,
}

/// An open cursor, and what is known of it while it is moved, too.
pub(super) struct Open {
    columns: Arc<[OutputColumn]>,
    binary: bool,
    /// WITH HOLD.
    hold: bool,
    /// How many savepoints there were when it was opened.
    level: usize,
    /// A loop reads it.
    pinned: bool,
    /// All its rows are kept.
    settled: bool,
    state: State,
    _listed: Listed,
}

impl Open {
    pub(super) fn new(cursor: Cursor, (binary, hold): (bool, bool), level: usize, listed: Listed) -> Open {
        Open {
            columns: cursor.columns.clone(),
            binary,
            hold,
            level,
            pinned: false,
            settled: false,
            state: State::AtRest(Box::new(cursor)),
            _listed: listed,
        }
    }
}

/// All cursors of a session.
pub(super) struct Cursors {
    of: Mutex<HashMap<String, Open>>,
    /// How many there are: every Describe of a portal asks for its name.
    count: AtomicUsize,
    unnamed: AtomicU32,
    /// Loops over the rows of statements that change rows.
    changing_loops: AtomicU32,
}

impl Default for Cursors {
    fn default() -> Self {
        Self {
            of: Mutex::new("sql/open_cursors", HashMap::new()),
            count: AtomicUsize::new(0),
            unnamed: AtomicU32::new(0),
            changing_loops: AtomicU32::new(0),
        }
    }
}

/// 34000.
pub(super) fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

/// A cursor that is moved; one that is not put back has failed.
pub(super) struct Moved {
    cursors: Arc<Cursors>,
    name: String,
    pub(super) cursor: Option<Box<Cursor>>,
}

impl Moved {
    /// It has been moved.
    pub(super) fn put_back(mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.cursors.set_state(&self.name, State::AtRest(cursor));
        }
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        if self.cursor.take().is_some() {
            self.cursors.set_state(&self.name, State::Failed);
        }
    }
}

/// A loop over the rows of a statement that changes rows, for as long as it runs.
pub(super) struct ChangingLoop(Arc<Cursors>);

impl Drop for ChangingLoop {
    fn drop(&mut self) {
        self.0.changing_loops.fetch_sub(1, Relaxed);
    }
}

impl Cursors {
    /// Functions of this session find them.
    pub(super) fn share(self: &Arc<Self>, core: &Core) {
        let shared: Arc<dyn Any + Send + Sync> = self.clone();
        let _ = core.open_cursors.set(Arc::downgrade(&shared));
    }

    /// Those of the session around that of a function.
    pub(super) fn shared(core: &Core) -> Option<Arc<Cursors>> {
        core.open_cursors.get()?.upgrade()?.downcast().ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        !self.is_empty() && self.of.lock().contains_key(name)
    }

    /// The columns of a cursor, and whether it is binary.
    pub(super) fn columns(&self, name: &str) -> Option<(Arc<[OutputColumn]>, bool)> {
        if self.is_empty() {
            return None;
        }
        self.of.lock().get(name).map(|open| (open.columns.clone(), open.binary))
    }

    /// Where a cursor stands.
    pub(super) fn standing(&self, name: &str) -> Option<Standing> {
        let of = self.of.lock();
        let open = of.get(name)?;
        let State::AtRest(cursor) = &open.state else {
            return Some(Standing { identity: None, row: None, held: false, locks: Some(false) });
        };
        Some(Standing { held: open.settled, ..cursor.standing() })
    }

    /// A name for a cursor that is given none.
    pub(super) fn unnamed(&self, core: &Core) -> String {
        loop {
            let name = format!("<unnamed portal {}>", self.unnamed.fetch_add(1, Relaxed) + 1);
            if !core.cursors.lock().contains_key(&name) {
                return name;
            }
        }
    }

    /// One of the names that `unnamed` gives goes to something that no statement can name: as in PostgreSQL EXECUTE and the loops of PL/pgSQL count.
    pub(super) fn skip_unnamed(&self) {
        self.unnamed.fetch_add(1, Relaxed);
    }

    pub(super) fn add(&self, name: &str, open: Open) {
        let mut of = self.of.lock();
        let before = of.insert(name.to_owned(), open);
        assert!(before.is_none(), "a name has one cursor: {name}");
        self.count.store(of.len(), Relaxed);
    }

    fn set_state(&self, name: &str, state: State) {
        let mut of = self.of.lock();
        let before = of.get_mut(name).map(|open| std::mem::replace(&mut open.state, state));
        drop(of);
        drop(before);
    }

    /// Takes a cursor out to move it.
    ///
    /// # Errors
    /// 34000; 55000: it is moved already, or has failed.
    pub(super) fn take(self: &Arc<Self>, name: &str) -> Result<Moved> {
        let mut of = self.of.lock();
        let open = of.get_mut(name).ok_or_else(|| no_cursor(name))?;
        match std::mem::replace(&mut open.state, State::Moving) {
            State::AtRest(cursor) => Ok(Moved { cursors: self.clone(), name: name.to_owned(), cursor: Some(cursor) }),
            other => {
                open.state = other;
                Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")))
            }
        }
    }

    /// Removes cursors; what they read is given back outside of the lock.
    fn remove_if(&self, goes: impl Fn(&Open) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut of = self.of.lock();
        let gone: Vec<(String, Open)> = of.extract_if(|_, open| goes(open)).collect();
        self.count.store(of.len(), Relaxed);
        drop(of);
        drop(gone);
    }

    /// Closes one; false: there is none.
    ///
    /// # Errors
    /// 24000: a loop or a FETCH uses it (CUR-3).
    pub(super) fn close(&self, name: &str) -> Result<bool> {
        // Every Close of a portal comes here.
        if self.is_empty() {
            return Ok(false);
        }
        let mut of = self.of.lock();
        let Some(open) = of.get(name) else { return Ok(false) };
        let used = match open.state {
            State::Moving => Some("active"),
            _ if open.pinned => Some("pinned"),
            _ => None,
        };
        if let Some(used) = used {
            return Err(SqlError::new("24000", format!("cannot drop {used} portal \"{name}\"")));
        }
        let gone = of.remove(name);
        self.count.store(of.len(), Relaxed);
        drop(of);
        drop(gone);
        Ok(true)
    }

    /// Closes all but those that are used.
    pub(super) fn close_all(&self) {
        self.remove_if(|open| !open.pinned && !matches!(open.state, State::Moving));
    }

    /// The session ends.
    pub(super) fn clear(&self) {
        self.remove_if(|_| true);
    }

    /// A loop begins to read a cursor, or has ended (CUR-3).
    pub(super) fn pin(&self, name: &str, pinned: bool) {
        if let Some(open) = self.of.lock().get_mut(name) {
            open.pinned = pinned;
        }
    }

    /// A loop over the rows of a statement that changes rows begins.
    pub(super) fn changing_loop(self: &Arc<Self>) -> ChangingLoop {
        self.changing_loops.fetch_add(1, Relaxed);
        ChangingLoop(self.clone())
    }

    /// CUR-2: a rollback to the savepoint at `at`, or of the transaction (none).
    pub(super) fn roll_back(&self, at: Option<usize>) {
        self.remove_if(|open| !open.settled && at.is_none_or(|at| open.level > at));
    }

    /// The statement has failed: loops have ended (CUR-3).
    pub(super) fn end_loops(&self) {
        self.remove_if(|open| open.pinned);
    }

    /// The savepoint at `at` and those above it are released.
    pub(super) fn release(&self, at: usize) {
        if !self.is_empty() {
            self.of.lock().values_mut().for_each(|open| open.level = open.level.min(at));
        }
    }

    /// The transaction is about to commit: cursors WITH HOLD read what is left, the others go.
    pub(super) async fn keep_held(self: &Arc<Self>, core: &Core) -> Result<()> {
        self.remove_if(|open| !open.settled && (!open.hold || matches!(open.state, State::Failed)));
        self.settle(core, |open| open.hold).await
    }

    /// The transaction is about to end within a body: the cursors of loops read what is left (CUR-3).
    ///
    /// # Errors
    /// 2D000: a loop reads rows of a statement that changes rows.
    pub(super) async fn keep_pinned(self: &Arc<Self>, core: &Core) -> Result<()> {
        if self.changing_loops.load(Relaxed) > 0 {
            let message = "cannot perform transaction commands inside a cursor loop that is not read-only";
            return Err(SqlError::new("2D000", message));
        }
        self.settle(core, |open| open.pinned).await
    }

    async fn settle(self: &Arc<Self>, core: &Core, which: impl Fn(&Open) -> bool) -> Result<()> {
        let names: Vec<String> = {
            let of = self.of.lock();
            let wanted = of.iter().filter(|(_, open)| !open.settled && which(open));
            wanted.map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            let mut moved = self.take(&name)?;
            if let Some(cursor) = &mut moved.cursor {
                Box::pin(cursor.keep_all(core)).await?;
            }
            moved.put_back();
            if let Some(open) = self.of.lock().get_mut(&name) {
                open.settled = true;
            }
            if let Some(shown) = core.cursors.lock().get_mut(&name) {
                shown.tables = Vec::new();
            }
        }
        Ok(())
    }
}
