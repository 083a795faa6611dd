//! Storage's part of a log archive: a holder (`wal::retention`) that keeps the log until it is archived, the wait of commits for the
//! archive, and the figures for views.
//!
//! # Invariants
//! - ARC-1: the opening of a directory with an archive registers the holder at the oldest log that is still there, before any checkpoint
//!   can release it. So log that one process did not send is sent by the next one.
//! - ARC-2: `reached` is published after the log below it has become durable in the archive, and not while the archive has a hole that no backup
//!   closes. Where commits wait for `reached`, the holder has no limit, so no log of this opening is released before it was sent. So a commit
//!   below `reached` can be restored from the archive and its last backup.

use crate::ids::Lsn;
use crate::sync::Bell;
use crate::wal::{Holder, Wal};
use clearway_base::sync::{LsnWaiters, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The name under which an archive holds the log.
pub const ARCHIVE_HOLDER: &str = "archive";

/// What views show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRow {
    /// Where log is sent; empty: nowhere.
    pub target: String,
    /// `off`, `connecting`, `sending`, `waiting`, `failing`, `refused`, or `broken` while log is sent behind `hole`.
    pub state: &'static str,
    /// The log is in the archive up to here.
    pub archived: Lsn,
    /// Wall clock of the last piece that was sent, us since 1970; 0: none.
    pub sent_us: i64,
    /// Pieces that were sent.
    pub pieces: u64,
    /// Their packed bytes.
    pub bytes: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// What the last of them said.
    pub error: String,
    /// When, us since 1970.
    pub error_us: i64,
    /// Log from here to there is not in the archive, and no backup was taken behind it.
    pub hole: Option<(Lsn, Lsn)>,
}

/// The archive as storage knows it.
pub struct Archive {
    row: Mutex<ArchiveRow>,
    holder: Mutex<Option<Holder>>,
    reached: LsnWaiters,
    /// The highest position that a waiter waits for.
    wanted: AtomicU64,
    sync: AtomicBool,
    bell: Bell,
}

impl Archive {
    /// Holds the log if `limit_bytes` is given (ARC-1).
    pub(crate) fn new(wal: &Arc<Wal>, limit_bytes: Option<u64>) -> Archive {
        let oldest = oldest(wal);
        let holder = limit_bytes.and_then(|limit| wal.retention().hold(ARCHIVE_HOLDER, oldest, limit));
        Archive {
            row: Mutex::new("storage/backup/archive", ArchiveRow { state: "off", ..ArchiveRow::default() }),
            holder: Mutex::new("storage/backup/archive_holder", holder),
            reached: LsnWaiters::new("storage/backup/archive_waiters", 0),
            wanted: AtomicU64::new(0),
            sync: AtomicBool::new(false),
            bell: Bell::new("storage/backup/archive_bell"),
        }
    }

    /// Commits may wait for the archive from now on: an archiver sends as soon as one does.
    pub fn set_sync(&self) {
        self.sync.store(true, Ordering::SeqCst);
    }

    /// Whether commits may wait for the archive.
    pub fn is_sync(&self) -> bool {
        self.sync.load(Ordering::SeqCst)
    }

    /// The log is in the archive up to here, so that it can be restored (ARC-2).
    pub fn reached(&self) -> Lsn {
        Lsn(self.reached.published())
    }

    /// The highest position that a waiter waits for.
    pub fn wanted(&self) -> Lsn {
        Lsn(self.wanted.load(Ordering::SeqCst))
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.reached.waiting()
    }

    /// The log below `lsn` is durable in the archive (ARC-2).
    pub fn publish(&self, lsn: Lsn) {
        self.reached.publish(lsn.0);
    }

    /// Waits until the durable log below `lsn` is in the archive.
    pub async fn wait(&self, lsn: Lsn) {
        self.wanted.fetch_max(lsn.0, Ordering::SeqCst);
        self.bell.ring();
        // These waits are never given up.
        let _ = self.reached.wait(lsn.0).await;
    }

    /// Waits until a waiter wants more than `sent`.
    pub async fn asked_beyond(&self, sent: Lsn) {
        self.bell.wait_until(|| self.wanted() > sent).await;
    }

    /// What views show.
    pub fn row(&self) -> ArchiveRow {
        self.row.lock().clone()
    }

    /// The hole of the archive behind which nothing can be restored, if there is one.
    pub fn hole(&self) -> Option<(Lsn, Lsn)> {
        self.row.lock().hole
    }

    /// Changes what views show.
    pub fn note(&self, change: impl FnOnce(&mut ArchiveRow)) {
        change(&mut self.row.lock());
    }

    /// The log below `lsn` is in the archive. False: more than the limit was held, and what was needed may be gone.
    pub fn advance(&self, lsn: Lsn) -> bool {
        self.holder.lock().as_ref().is_none_or(|holder| holder.advance(lsn))
    }

    /// Holds anew from the oldest log that is left, after the holder was lost.
    pub fn hold_again(&self, wal: &Arc<Wal>, limit_bytes: u64) -> Lsn {
        let mut holder = self.holder.lock();
        // The name is free again when the old one is gone.
        drop(holder.take());
        *holder = wal.retention().hold(ARCHIVE_HOLDER, oldest(wal), limit_bytes);
        // What was released meanwhile is not there, whatever is held.
        oldest(wal)
    }
}

/// The oldest log that is there.
pub(crate) fn oldest(wal: &Arc<Wal>) -> Lsn {
    let first = wal.segments().layout().first_lsn(wal.segments().first_number());
    first.max(crate::recovery::FIRST_LSN)
}
