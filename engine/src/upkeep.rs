//! The background work of an open database: undoes losers, prunes old versions, drops indexes whose building was given up, counts rows.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use clearway_base::waits::WaitEvent;
use clearway_storage::ids::Lsn;
use clearway_storage::rest::Pauses;

use crate::db::Db;
use crate::error::EngineError;

/// How often old versions are looked through when nothing commits, and how long a commit that no session waits for stays unflushed at most.
const UPKEEP_PAUSE: Duration = Duration::from_millis(100);
/// How often the safety net of the deadlock search looks.
const SCAN_PAUSE: Duration = Duration::from_secs(1);

/// After so many passes that found nothing to do the background loops rest until a statement begins.
const REST_AFTER: u32 = 60;

/// Repeats the upkeep until the database is closed or poisoned.
pub(crate) async fn run_upkeep(db: std::sync::Weak<Db>) {
    let Some(rest) = db.upgrade().map(|db| db.transactions().store().rest().clone()) else { return };
    let (mut quiet, mut last) = (0, (Lsn::ZERO, 0));
    loop {
        rest.pause(Pauses::Upkeep, WaitEvent::Pause, UPKEEP_PAUSE).await;
        let Some(db) = db.upgrade() else { return };
        // BG-3
        let _turn = db.upkeep_turn().await;
        if db.transactions().store().ended() {
            return;
        }
        db.transactions().store().wal().flush_unwaited();
        db.lines().dissolve(UPKEEP_PAUSE.as_nanos() as u64);
        db.lines().wake_durable(db.transactions().store().wal().durable_lsn());
        let errors = db.background_errors(); // BG-1
        errors.note("undoing a transaction whose session is gone", db.undo_losers().await);
        let freed = db.transactions().upkeep_step().await;
        let mut busy = freed.as_ref().map_or(true, |freed| *freed > 0);
        errors.note("freeing old versions", freed);
        errors.note("dropping an index whose building was given up", db.drop_orphans().await);
        let counted = db.statistics().step(db.transactions(), &db.catalog(), db.usage()).await;
        let swept = db.ghosts().step(db.transactions()).await;
        busy |= counted.as_ref().copied().unwrap_or(true) || swept.as_ref().copied().unwrap_or(true);
        errors.note("counting rows", counted);
        errors.note("removing deleted rows", swept);
        let (waits, urgent) = db.transactions().locks().history().take_changed();
        errors.note("saving what was observed", db.kept().step(waits, urgent).await);
        let store = db.transactions().store();
        if store.pending_chains() > 0 || !store.pending_drops().is_empty() || store.drop_is_stuck() {
            store.drops_changed();
        }
        // A statement that takes pages has a snapshot, which may be older than what freed them.
        store.space().release_withheld();
        store.tick();
        // Undo keeps a chunk that is not full; where nothing is freed any more, nothing can be.
        let now = (store.wal().end_lsn(), db.transactions().book().undo().bytes());
        quiet = if busy || waits || now != last || !db.is_quiet() { 0 } else { quiet + 1 };
        last = now;
        if quiet >= REST_AFTER {
            quiet = 0;
            errors.note("saving what was observed", db.kept().save_changed().await);
            rest.begin();
            // RST-1; and a database that is being closed has woken the loops before this one rests.
            if !db.is_quiet() || store.ended() {
                rest.end();
            }
        }
    }
}

/// Repeats the safety net of the deadlock search until the database is closed or poisoned.
pub(crate) async fn run_deadlock_scan(db: std::sync::Weak<Db>) {
    let Some(rest) = db.upgrade().map(|db| db.transactions().store().rest().clone()) else { return };
    loop {
        rest.pause(Pauses::DeadlockScan, WaitEvent::DeadlockScanMain, SCAN_PAUSE).await;
        let Some(db) = db.upgrade() else { return };
        if db.transactions().store().ended() {
            return;
        }
        db.transactions().locks().background_scan(SCAN_PAUSE.as_nanos() as u64);
    }
}

impl Db {
    /// Whether no session works on the database and nothing is left to do: no snapshot, no transaction, no wait, no log that is not durable. Asks
    /// for the flush of such log.
    fn is_quiet(&self) -> bool {
        let all = self.transactions();
        let (book, store) = (all.book(), all.store());
        let wal = store.wal();
        fence(Ordering::SeqCst); // RST-1
        let durable = wal.durable_lsn() == wal.end_lsn();
        if !durable {
            wal.ask_flush(wal.end_lsn());
        }
        durable
            && book.snapshots().open().is_empty()
            && book.active().is_empty()
            && self.losers_left() == 0
            && !self.has_orphans()
            && all.locks().waits().is_empty()
            && store.pending_chains() == 0
            && store.pending_drops().is_empty()
            && !store.drop_is_stuck()
            && self.statistics().due() == 0
    }

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
