//! The fast path of an UPDATE whose row another transaction has: it waits for the row, locks it, and then changes it as the fast path does
//! ([`super::short`]). The general path reads, waits, judges and locks the row in three descents, with the executor's nodes and values for each.
//!
//! # Invariants
//! - AWT-1: the row stays locked from the end of the wait to the change, whose snapshot is opened after the wait. So the change replaces the
//!   newest version, as the general path does with a row that has changed since its snapshot (EXE-2).
//! - AWT-2: the snapshot before the wait decides which row is meant. If that row has ended during the wait, nothing is changed, even if another
//!   row has its key by then.
//! - AWT-3: a statement that is a transaction of its own waits by a brief request (LKM-17), and takes the lock with its turn (TRN-6). The turn is given back
//!   where the statement fails or is left to the general path, else by the commit.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::fresh::is_short_of_session;
use super::point::key_bytes;
use super::run::Opened;
use super::session::{Block, Prepared, Session};
use super::short::{Fast, Kind, OneUpdate, Short, ShortChange, begin};
use crate::context::core::{Core, row_digest};
use crate::context::errors::from_engine;
use crate::context::obstacle;
use crate::error::Result;
use crate::types::Datum;
use clearway_engine::row_turn::RowTurn;
use clearway_engine::session::Isolation;
use clearway_txn::lockmgr::{IfTaken, LockMode};

/// What the wait has come to.
enum Awaited {
    /// The row is locked.
    Locked,
    /// It has ended (AWT-2).
    Gone,
    /// The general path has to look.
    Unclear,
}

impl Session {
    /// Runs a statement that is alone in its text, or that of the unnamed portal, if the fast path has just given it up because another transaction had the
    /// row; the number of rows that it has changed. None: the general path has to run it.
    pub(super) async fn change_awaited(
        &mut self,
        portal: Option<&str>,
        prepared: &Prepared,
        began_ns: u64,
    ) -> Result<Option<u64>> {
        if !std::mem::take(&mut self.change_scratch.taken) {
            return Ok(None);
        }
        let core = self.core.clone();
        // That of a portal has been begun.
        let limit_ms = if portal.is_none() { self.timeouts().statement_ms } else { 0 };
        let changed = {
            let change = pin!(self.change_when_free(portal, prepared, began_ns));
            core.backend.interrupt.timed(limit_ms, change).await
        };
        if !matches!(changed, Ok(Some(_))) {
            self.give_turn_back(); // AWT-3
        }
        changed
    }

    async fn change_when_free(
        &mut self,
        portal: Option<&str>,
        prepared: &Prepared,
        began_ns: u64,
    ) -> Result<Option<u64>> {
        let may = self.block != Block::Failed && self.savepoints.is_empty() && !self.core.limits.must_wait(&self.core);
        let Some(params) = self.params_of_fresh(portal, prepared).filter(|_| may) else { return Ok(None) };
        let Some(cached) = prepared.plan.lock().clone() else { return Ok(None) };
        let Some(Fast::Change(change)) = &cached.fast else { return Ok(None) };
        let Kind::Update(update) = &change.kind else { return Ok(None) };
        if cached.version.is_none() || !is_short_of_session(&self.core, &cached) {
            return Ok(None);
        }
        let (text, digest) = (&prepared.text, &prepared.digest);
        let short = Short { cached: &cached, text, digest, params: &params, formats: &[], portal, told: None };
        if portal.is_some() {
            self.core.backend.runs_with(text.clone(), Some(params.clone()));
        }
        // AWT-3: the attempt on the fast path may have begun the transaction, which has no other statement.
        let is_alone = matches!(self.block, Block::None | Block::Implicit) && self.in_batch == 0;
        let brief = is_alone && self.row_turn.can_be_called();
        if portal.is_none() && !brief {
            return Ok(None);
        }
        self.begin_implicit_at(began_ns);
        let count = match self.await_row(&short, (change, update, brief), began_ns).await? {
            Awaited::Gone => Some(0),
            Awaited::Locked => self.update_one_row(&short, change, update, began_ns),
            Awaited::Unclear => None,
        };
        let Some(count) = count else {
            self.in_batch -= 1;
            self.watch.looks_again();
            return Ok(None);
        };
        self.changes += 1;
        self.watch.rows = count;
        Ok(Some(count))
    }

    /// The parameters of a statement that has not begun.
    fn params_of_fresh(&self, portal: Option<&str>, prepared: &Prepared) -> Option<Arc<[Datum]>> {
        let Some(name) = portal else { return Some(prepared.constants.clone()) };
        let portal = self.portals.get(name).filter(|portal| name.is_empty() && !portal.finished);
        Some(Arc::from(portal.filter(|portal| portal.running.is_none())?.params.as_slice()))
    }

    /// Waits for the row.
    async fn await_row(
        &mut self,
        short: &Short<'_>,
        (change, update, brief): (&ShortChange, &OneUpdate, bool),
        began_ns: u64,
    ) -> Result<Awaited> {
        self.core.row_written.store(0, Relaxed);
        let (core, turn) = (&self.core, Some(&mut self.row_turn).filter(|_| brief));
        // The wait still stands when the error is made.
        let mut wait = Box::pin(lock_row(core, short, (change, update, turn), began_ns));
        core.backend.interrupt.guard(wait.as_mut()).await.map_err(|e| obstacle::explained(core, e))?
    }
}

/// The tag of an update by its key.
pub(super) fn tag_of(count: u64) -> &'static str {
    if count == 0 { "UPDATE 0" } else { "UPDATE 1" }
}

/// Locks the row that a snapshot shows now (AWT-2), with its turn if the statement is brief (AWT-3).
async fn lock_row(
    core: &Arc<Core>,
    short: &Short<'_>,
    (change, update, turn): (&ShortChange, &OneUpdate, Option<&mut RowTurn>),
    began_ns: u64,
) -> Result<Awaited> {
    let (mut key, shape) = (Vec::new(), &*change.shape);
    let is_committed = core.engine.take().options().isolation == Isolation::ReadCommitted;
    if !is_committed || !key_bytes(&update.key, short.params, &mut key) {
        return Ok(Awaited::Unclear);
    }
    let Some(statement) = begin(core, short, change, began_ns) else { return Ok(Awaited::Unclear) };
    let opened = Opened::new(core, statement);
    let view = opened.view();
    let mut engine = core.engine.take();
    core.writes_row(shape.oid, &key);
    let owner = engine.owner().clone();
    let if_taken = if turn.is_some() { IfTaken::WaitBriefly } else { IfTaken::Wait };
    let lock = engine.follow_row(shape, &view, &key, LockMode::RowNoKeyUpdate, if_taken);
    let found = match turn {
        Some(turn) => core.lock_wait(pin!(turn.taking(row_digest(shape.oid, &key), &owner, lock))).await,
        None => core.lock_wait(pin!(lock)).await,
    };
    let found = found.map_err(from_engine)?;
    Ok(match found {
        // A row that has moved no longer has the key that the statement names.
        Some((moved, locked)) if !locked.ghost && moved.as_ref().is_none_or(|moved| *moved == key) => Awaited::Locked,
        _ => Awaited::Gone,
    })
}
