//! The fast path of an UPDATE whose row another transaction has: it waits for the row, locks it, and then changes it as the fast path does
//! ([`super::short`]). The general path reads, waits, judges and locks the row in three descents, with the executor's nodes and values for each.
//!
//! # Invariants
//! - AWT-1: the row stays locked from the end of the wait to the change, whose snapshot is opened after the wait. So the change replaces the
//!   newest version, as the general path does with a row that has changed since its snapshot (EXE-2).
//! - AWT-2: the snapshot before the wait decides which row is meant. If that row has ended during the wait, nothing is changed, even if another
//!   row has its key by then.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::client::Client;
use super::fresh::is_short_of_session;
use super::point::key_bytes;
use super::run::Opened;
use super::session::{Block, Prepared, Session};
use super::short::{Fast, Kind, OneUpdate, Short, ShortChange, begin};
use crate::context::core::Core;
use crate::context::errors::from_engine;
use crate::context::obstacle;
use crate::error::Result;
use crate::types::Datum;
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
    /// Runs the statement of the unnamed portal, if the fast path has just given it up because another transaction had the row; false: the
    /// general path has to run it.
    pub(super) async fn change_awaited(
        &mut self,
        portal: &str,
        prepared: &Prepared,
        began_ns: u64,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let is_due = std::mem::take(&mut self.change_scratch.taken) && portal.is_empty();
        let may = self.block != Block::Failed && self.savepoints.is_empty() && !self.core.limits.must_wait(&self.core);
        if !is_due || !may {
            return Ok(false);
        }
        let Some(cached) = prepared.plan.lock().clone() else { return Ok(false) };
        let Some(Fast::Change(change)) = &cached.fast else { return Ok(false) };
        let Kind::Update(update) = &change.kind else { return Ok(false) };
        let Some(portal) = self.portals.get(portal).filter(|portal| !portal.finished && portal.running.is_none())
        else {
            return Ok(false);
        };
        let params: Arc<[Datum]> = Arc::from(portal.params.as_slice());
        if cached.version.is_none() || !is_short_of_session(&self.core, &cached) {
            return Ok(false);
        }
        let (text, digest) = (&prepared.text, &prepared.digest);
        let short =
            Short { cached: &cached, text, digest, params: &params, formats: &[], portal: Some(""), told: None };
        self.core.backend.runs_with(text.clone(), Some(params.clone()));
        self.begin_implicit_at(began_ns);
        let count = match self.await_row(&short, change, update, began_ns).await? {
            Awaited::Gone => Some(0),
            Awaited::Locked => self.update_one_row(&short, change, update, began_ns),
            Awaited::Unclear => None,
        };
        let Some(count) = count else {
            self.in_batch -= 1;
            self.watch.looks_again();
            return Ok(false);
        };
        self.changes += 1;
        self.watch.rows = count;
        client.command_complete(if count == 0 { "UPDATE 0" } else { "UPDATE 1" });
        if let Some(portal) = self.portals.get_mut("") {
            portal.finished = true;
        }
        Ok(true)
    }

    /// Waits for the row.
    async fn await_row(
        &self,
        short: &Short<'_>,
        change: &ShortChange,
        update: &OneUpdate,
        began_ns: u64,
    ) -> Result<Awaited> {
        self.core.row_written.store(0, Relaxed);
        let core = &self.core;
        // The wait still stands when the error is made.
        let mut wait = Box::pin(lock_row(core, short, change, update, began_ns));
        core.backend.interrupt.guard(wait.as_mut()).await.map_err(|e| obstacle::explained(core, e))?
    }
}

/// Locks the row that a snapshot shows now (AWT-2).
async fn lock_row(
    core: &Arc<Core>,
    short: &Short<'_>,
    change: &ShortChange,
    update: &OneUpdate,
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
    let lock = engine.follow_row(shape, &view, &key, LockMode::RowNoKeyUpdate, IfTaken::Wait);
    let found = core.lock_wait(pin!(lock)).await.map_err(from_engine)?;
    Ok(match found {
        // A row that has moved no longer has the key that the statement names.
        Some((moved, locked)) if !locked.ghost && moved.as_ref().is_none_or(|moved| *moved == key) => Awaited::Locked,
        _ => Awaited::Gone,
    })
}
