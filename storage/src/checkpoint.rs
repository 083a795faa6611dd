//! Checkpoints, taken while sessions go on working.
//!
//! # Life of a checkpoint
//! Note the end of the log (`begin`) -> pages that were dirty before go out -> note where redo would start -> ask for
//! the active transactions and the pending drops -> wait until all that is known there is durable -> write and sync the
//! file -> write the control file -> remove the old file, recycle log, cut data files.
//!
//! # Invariants
//! - REC-7: before the control file is written, everything to which it refers is synced: the checkpoint's file, and the log up to the last
//!   record that the file takes into account.
//! - REC-8: only log below the synced control file's `scan` is released. `scan` is the lower of redo's start and the `begin` of the previous
//!   checkpoint, from which recovery reads the undo of transactions that began later.
//!
//! # Crash safety
//! Until the control file is written, recovery starts from the old checkpoint, and everything that the old checkpoint needs is kept.

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::mutation::{self, Mutation};
use crate::recovery::control::Control;
use crate::recovery::saved::{self, Saved};
use crate::recovery::taken::{CheckpointTaken, Totals};
use crate::seams::BoxFuture;
use crate::store::Store;
use clearway_base::waits::{self, Object, WaitEvent, in_wait};

impl Store {
    /// What checkpoints have done since the directory was opened.
    pub fn checkpoints_taken(&self) -> Totals {
        self.checkpoints().history.totals()
    }

    /// The latest checkpoints with a higher number than `number`, oldest first.
    pub fn checkpoints_after(&self, number: u64) -> Vec<CheckpointTaken> {
        self.checkpoints().history.after(number)
    }

    /// Takes a checkpoint as fast as it can: after it, recovery starts at or behind the point where the log ended when
    /// this was called. One at a time; others wait their turn.
    ///
    /// # Errors
    /// A failed file operation or sync, which poisons; poisoned.
    pub async fn checkpoint(&self) -> Result<(), StorageError> {
        self.take_checkpoint(false, false).await?;
        if self.wal().was_full() {
            // REC-8: the log from the begin of the one before goes with the second.
            self.take_checkpoint(false, false).await?;
            self.wal().note_full(false);
        }
        Ok(())
    }

    /// `clean` says that nothing is active and nothing will be appended, `paced` that there is time: pages are written evenly while the
    /// log grows by what it may grow meanwhile (`Store::pace`).
    /// Boxed like [`crate::recovery::open`].
    pub(crate) fn take_checkpoint(&self, clean: bool, paced: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.take_checkpoint_in_turn(clean, paced))
    }

    async fn take_checkpoint_in_turn(&self, clean: bool, paced: bool) -> Result<(), StorageError> {
        // It needs the page cleaner, which may rest.
        self.rest().end();
        let _turn = self.checkpoints().turn().take().await;
        // The closing thread takes the last checkpoint: one that waited for its turn meanwhile would say that the log goes on.
        if !clean && self.ended() {
            return self.wal().poisoned().map_or(Ok(()), Err);
        }
        let mut taken = self.checkpoint_steps(clean, paced).await;
        // A checkpoint that a statement asks for on a full disk makes room; the timed ones leave the spares to the log.
        if taken.is_ok() && !paced {
            taken = self.wal().give_back_spares().await;
        }
        taken.map_err(|err| match err {
            StorageError::Poisoned(_) | StorageError::NoSpace(_) => err,
            // The old checkpoint holds; a full disk is told and tried again later.
            StorageError::Io(io) if io.is_full() => StorageError::NoSpace("a checkpoint".into()),
            err => self.wal().poison(&format!("a checkpoint failed: {err}")),
        })
    }

    async fn checkpoint_steps(&self, clean: bool, paced: bool) -> Result<(), StorageError> {
        let checkpoints = self.checkpoints();
        let old = checkpoints.control();
        // SPC-12: first, so that what is noted is on disk when the control file is written.
        let (reach, begin) = (self.space().reach(), self.wal().end_lsn());
        let (began_us, began_ns) = (waits::wall_us(), waits::now_ns());
        let mut pages = 0;
        if !mutation::active(Mutation::RedoFromBegin) {
            pages = self.write_old_pages(begin, paced).await? as u64;
        }
        let written_ns = waits::now_ns();
        // BUF-7: the pages after the log's end.
        let redo = match self.pool().dirty_min_lsn().min(begin) {
            _ if mutation::active(Mutation::RedoFromBegin) => begin,
            redo => redo,
        };
        let saved = self.state_to_save(old.begin).await?;
        // REC-7: what the control file will refer to is synced first, the saved undo's records and the file alike.
        let known = self.wal().end_lsn();
        in_wait(WaitEvent::WalFlush, Object::NONE, self.wal().wait_durable(known)).await?;
        let clean = clean && redo == known && begin == known;
        let number = old.checkpoint + 1;
        let (checkpoint_len, checkpoint_crc) = if mutation::active(Mutation::ControlBeforeCheckpoint) {
            let bytes = saved.encode(number);
            (bytes.len() as u32, crc32c::crc32c(&bytes))
        } else {
            saved.write(self.vfs(), checkpoints.dir(), number).await?
        };
        let control = Control {
            generation: old.generation + 1,
            durable: known,
            redo,
            // REC-2: of what began later, all records lie from here on.
            scan: redo.min(old.begin),
            begin,
            checkpoint: number,
            checkpoint_len,
            checkpoint_crc,
            clean,
            reach,
            ..old
        };
        assert_order(&control);
        checkpoints.write(control).await?;
        if mutation::active(Mutation::ControlBeforeCheckpoint) {
            saved.write(self.vfs(), checkpoints.dir(), number).await?;
        }
        if old.checkpoint > 0 {
            self.vfs().remove(&saved::path(checkpoints.dir(), old.checkpoint)).await?;
        }
        Saved::keep_room(self.vfs(), checkpoints.dir(), checkpoint_len).await?;
        checkpoints.history.note(CheckpointTaken {
            timed: paced,
            closing: clean,
            began_us,
            pages,
            write_ns: written_ns - began_ns,
            sync_ns: waits::now_ns() - written_ns,
            log_bytes: begin.0.saturating_sub(old.begin.0),
            redo,
            ..CheckpointTaken::default()
        });
        // REC-8: the control file that asks for no more is synced.
        let release = if mutation::active(Mutation::RecycleTooMuch) { begin } else { control.scan };
        self.wal().release_below(release).await?;
        self.leases().expire();
        // BAK-4
        while self.space().cut_step(control.scan.min(self.leases().oldest())).await? {}
        Ok(())
    }

    /// The active transactions, and what is to be freed.
    async fn state_to_save(&self, old_begin: Lsn) -> Result<Saved, StorageError> {
        let active = self.versions().read_for_checkpoint(old_begin).await?;
        // PND-1: after the active transactions were read.
        let (pending, chains) = self.pending.saved();
        let mut saved = Saved { active, pending, chains };
        if mutation::active(Mutation::NoSavedUndo) {
            saved.active.txns.clear();
        }
        if mutation::active(Mutation::DropPendingFrees) {
            saved.pending.clear();
            saved.chains.clear();
        }
        for txn in &mut saved.active.txns {
            // What was compensated since it was asked for.
            let last = txn.log.last_lsn;
            txn.undo.retain(|entry| entry.lsn <= last);
        }
        Ok(saved)
    }

    /// Pages that were dirty before `begin` go out, batch by batch; between batches others get their turn.
    async fn write_old_pages(&self, begin: Lsn, paced: bool) -> Result<usize, StorageError> {
        let dirty = self.pool().dirty_pages().max(1);
        let mut written = 0;
        while self.pool().dirty_min_lsn() < begin {
            written += self.pool().write_older(begin).await?;
            self.pace(paced, written as f64 / dirty as f64, self.wal().end_lsn().0 - begin.0).await;
        }
        Ok(written)
    }
}

/// REC-8, before the write: the positions stand in the order in which recovery reads them. `Control::decode` checks it after the read.
fn assert_order(control: &Control) {
    let order = [control.scan, control.redo, control.durable];
    assert!(order.is_sorted() && control.begin <= control.durable, "REC-8: out of order: {control:?}");
}
