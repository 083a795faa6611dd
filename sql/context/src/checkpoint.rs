//! Takes a checkpoint on behalf of a statement: CHECKPOINT, or the beginning of a backup.
//!
//! # Invariants
//! - CKP-1: a checkpoint that has begun runs to its end on its own thread, also when the statement that asked for it is cancelled or its
//!   client disconnects: a checkpoint that stops halfway would leave the steps on disk and those in memory in disagreement.

use std::sync::Arc;

use super::core::Core;
use super::errors::from_engine;
use clearway_base::sync::{Mutex, WaitQueue, block_on, spawn_thread};
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_storage::error::StorageError;
use clearway_syntax::error::{Result, SqlError};

/// What has come of it, for the sessions that still wait.
struct Outcome {
    taken: Mutex<Option<std::result::Result<(), StorageError>>>,
    done: WaitQueue,
}

/// Wakes the sessions that wait, also when the checkpoint panics: then nothing has been put down.
struct Ends(Arc<Outcome>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.done.wake_all();
    }
}

/// Takes a checkpoint at once, as fast as it can, on a thread of its own (CKP-1), and waits for it.
///
/// # Errors
/// Those of the disk.
pub async fn take(core: &Core) -> Result<()> {
    let store = Arc::clone(core.db.transactions().store());
    let outcome =
        Arc::new(Outcome { taken: Mutex::new("sql/checkpoint", None), done: WaitQueue::new("sql/checkpoint_done") });
    let ends = Ends(Arc::clone(&outcome));
    let done = outcome.done.enroll();
    let begun = spawn_thread("checkpoint", move || {
        let taken = block_on(store.checkpoint());
        *ends.0.taken.lock() = Some(taken);
    });
    begun.map_err(|e| SqlError::new("53000", format!("could not start a checkpoint: {e}")))?;
    in_wait(WaitEvent::CheckpointDone, Object::NONE, done).await;
    let taken = outcome.taken.lock().take();
    match taken {
        Some(taken) => taken.map_err(|e| from_engine(e.into())),
        None => Err(SqlError::internal("the checkpoint failed")),
    }
}
