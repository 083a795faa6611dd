//! The background work of an open database: losers are undone, old versions pruned, given-up indexes dropped, rows counted.

use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::sleep;
use clearway_base::waits::{self, Object as WaitObject, WaitEvent};

use crate::db::Db;
use crate::error::EngineError;

/// How often old versions are looked through when nobody commits, and how long a commit that nobody waits for stays unflushed at most.
const UPKEEP_PAUSE: Duration = Duration::from_millis(100);
/// How often the safety net of the deadlock search looks.
const SCAN_PAUSE: Duration = Duration::from_secs(1);

/// Repeats the upkeep until the database is closed or poisoned.
pub(crate) async fn run_upkeep(db: std::sync::Weak<Db>) {
    loop {
        waits::in_wait(WaitEvent::Pause, WaitObject::NONE, sleep(UPKEEP_PAUSE)).await;
        let Some(db) = db.upgrade() else { return };
        if db.transactions().store().ended() {
            return;
        }
        db.transactions().store().wal().flush_unwaited();
        db.lines().dissolve(UPKEEP_PAUSE.as_nanos() as u64);
        db.lines().wake_durable(db.transactions().store().wal().durable_lsn());
        let errors = db.background_errors(); // BG-1
        errors.note("undoing a transaction that nobody has any more", db.undo_losers().await);
        errors.note("freeing old versions", db.transactions().upkeep_step().await);
        errors.note("dropping an index whose building was given up", db.drop_orphans().await);
        errors.note("counting rows", db.statistics().step(db.transactions(), &db.catalog(), db.usage()).await);
        errors.note("removing deleted rows", db.ghosts().step(db.transactions()).await);
        let (waits, urgent) = db.transactions().locks().history().take_changed();
        errors.note("saving what was observed", db.kept().step(waits, urgent).await);
        let store = db.transactions().store();
        if store.pending_chains() > 0 || !store.pending_drops().is_empty() || store.drop_is_stuck() {
            store.drops_changed();
        }
        store.tick();
    }
}

/// Repeats the safety net of the deadlock search until the database is closed or poisoned.
pub(crate) async fn run_deadlock_scan(db: std::sync::Weak<Db>) {
    loop {
        waits::in_wait(WaitEvent::DeadlockScanMain, WaitObject::NONE, sleep(SCAN_PAUSE)).await;
        let Some(db) = db.upgrade() else { return };
        if db.transactions().store().ended() {
            return;
        }
        db.transactions().locks().background_scan(SCAN_PAUSE.as_nanos() as u64);
    }
}

impl Db {
    /// Drops the indexes whose building was given up or cut off by a crash.
    ///
    /// # Errors
    /// From the catalog and the trees; what is left is tried again.
    pub async fn drop_orphans(self: &Arc<Self>) -> Result<(), EngineError> {
        loop {
            let Some(index) = self.an_orphan() else { return Ok(()) };
            self.session(0, 0).drop_unfinished(index).await?;
            self.orphan_dropped(index);
        }
    }
}
