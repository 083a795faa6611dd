//! Sends the log of an open database to a target, piece by piece.
//!
//! # Life of an archiver
//! connect (checks that the repository is the database's, claims the epoch, finds the position that the archive has reached) -> sends a piece
//! when a segment is full, when a commit waits for the archive, or when the last piece is older than the timeout and there is newer log ->
//! sends the same piece again until the target has it.
//!
//! # Invariants
//! - ARV-1: only durable log is sent, so the archive has no log that a later opening of the directory discards.
//! - ARV-2: the log is held from the first position that is not in the archive. A piece is released when it is durable in the target, or,
//!   where a limit is set, when more log than the limit is held; then the archive has a hole, which is reported, and shown until a backup
//!   closes it (HOL-1).
//! - ARV-3: a piece whose sending failed is sent again with the same bounds. So if an earlier attempt did arrive, it is overwritten with the
//!   same bytes.
//! - ARV-4: a directory sends only under an epoch that it has claimed. Some targets can't refuse a second claim at the same moment; then one
//!   of the two directories finds the other's claim before it sends its next piece, and stops.
//!
//! # Crash safety
//! The names of the archive's objects say what it has; log that it lacks is still in the log's directory, where the next opening holds it
//! (ARC-1). The file `archive` in the database's directory has the directory's number as a claimer and the last epoch that it claimed. Without
//! that file a new history begins, which needs a backup of its own.

use crate::epochs::{self, Epoch, timeline};
use crate::error::{BackupError, Result};
use crate::hole::{self, Hole};
use crate::names;
use crate::object::{Header, Kind, pack};
use crate::pieces::of_timeline;
use crate::take::belongs;
use crate::target::{Target, find};
use clearway_base::waits::{now_ns, wall_us};
use clearway_storage::ids::Lsn;
use clearway_storage::seams::BoxFuture;
use clearway_storage::store::Store;
use std::sync::Arc;

/// How often it looks whether a backup has closed the hole.
const CLOSED_CHECK_NS: u64 = 5_000_000_000;

/// The file in the database's directory.
pub const LOCAL: &str = "archive";

/// How log is sent.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveOptions {
    /// Log is not older than this before it is sent, in nanoseconds.
    pub timeout_ns: u64,
    /// The log that may be held for the archive, in bytes; beyond it the archive gets a hole.
    pub limit_bytes: u64,
    /// A number for a directory that has none yet.
    pub claimer: u64,
}

/// What a directory knows of its archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// Its number; 0: none yet.
    pub claimer: u64,
    /// The last epoch that it claimed, or that it was restored from; 0: none.
    pub epoch: u32,
}

impl Local {
    /// The text.
    pub fn encode(self) -> String {
        format!("clearway archive 1\nclaimer {:016x}\nepoch {}\n", self.claimer, self.epoch)
    }

    fn decode(bytes: &[u8]) -> Option<Local> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        lines.next().filter(|title| *title == "clearway archive 1")?;
        let claimer = u64::from_str_radix(lines.next()?.strip_prefix("claimer ")?, 16).ok()?;
        Some(Local { claimer, epoch: lines.next()?.strip_prefix("epoch ")?.parse().ok()? })
    }
}

/// Sends log.
pub struct Archiver {
    store: Arc<Store>,
    target: Box<dyn Target>,
    /// The database's own directory.
    home: Box<dyn Target>,
    options: ArchiveOptions,
    /// What is in the archive, once that is known.
    position: Option<Lsn>,
    /// The piece that is to be sent (ARV-3).
    pending: Option<(Lsn, Lsn)>,
    sent_ns: u64,
    /// Our number, once it is known.
    claimer: u64,
    /// The last hole, while no backup closes it.
    hole: Option<Hole>,
    /// When it was looked for such a backup.
    hole_ns: u64,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was due.
    Idle,
    /// A piece was sent.
    Sent,
}

impl Archiver {
    /// An archiver that has done nothing yet.
    pub fn new(store: Arc<Store>, target: Box<dyn Target>, home: Box<dyn Target>, options: ArchiveOptions) -> Archiver {
        store.archive().note(|row| {
            row.target = target.place();
            row.state = "connecting";
        });
        let (position, pending, sent_ns) = (None, None, now_ns());
        Archiver { store, target, home, options, position, pending, sent_ns, claimer: 0, hole: None, hole_ns: 0 }
    }

    /// What is in the archive, as far as that is known.
    pub fn position(&self) -> Lsn {
        self.position.unwrap_or(Lsn::ZERO)
    }

    /// Durable log that is not in the archive, in bytes; 0 before it is known what is there.
    pub fn lag_bytes(&self) -> u64 {
        self.position.map_or(0, |position| self.store.wal().durable_lsn().0.saturating_sub(position.0))
    }

    /// Sends a piece if one is due; with `hurry` also one that is not full yet. What failed is noted, and tried again by the next call.
    ///
    /// # Errors
    /// The target's; the epoch is another's.
    pub fn step(&mut self, hurry: bool) -> BoxFuture<'_, Result<Step>> {
        Box::pin(self.step_and_note(hurry))
    }

    async fn step_and_note(&mut self, hurry: bool) -> Result<Step> {
        let stepped = self.try_step(hurry).await;
        let is_broken = self.hole.is_some();
        self.store.archive().note(|row| match &stepped {
            Ok(_) if is_broken => row.state = "broken",
            Ok(Step::Sent) => row.state = "sending",
            Ok(Step::Idle) => row.state = "waiting",
            Err(error) => {
                row.state = if matches!(error, BackupError::Refused(_)) { "refused" } else { "failing" };
                row.failures += 1;
                row.error = error.to_string();
                row.error_us = wall_us();
            }
        });
        stepped
    }

    async fn try_step(&mut self, hurry: bool) -> Result<Step> {
        let position = match self.position {
            Some(position) => position,
            None => self.connect().await?,
        };
        self.keep(position)?;
        let Some((from, to)) = self.due(position, hurry) else {
            self.look_for_a_backup().await?;
            return Ok(Step::Idle);
        };
        self.confirm().await?;
        self.pending = Some((from, to));
        let (database, epoch) = (self.store.database(), self.store.wal().epoch());
        let bytes = self.store.wal().read_stream(from, to).await?; // ARV-1
        let header = Header { kind: Kind::Log, database, epoch, from: from.0, to: to.0, wall_us: wall_us() };
        let packed = pack(header, &bytes)?;
        self.target.put(&names::log(epoch, from, to), &packed).await?;
        self.pending = None;
        self.sent_ns = now_ns();
        self.store.archive().note(|row| {
            row.archived = to;
            row.sent_us = wall_us();
            row.pieces += 1;
            row.bytes += packed.len() as u64;
        });
        self.position = Some(to);
        self.keep(to)?;
        self.publish(to);
        self.look_for_a_backup().await?;
        Ok(Step::Sent)
    }

    /// ARC-2, HOL-1
    fn publish(&self, to: Lsn) {
        if self.hole.is_none() {
            self.store.archive().publish(to);
        }
    }

    /// Where the archive has a hole: whether a backup has closed it.
    async fn look_for_a_backup(&mut self) -> Result<()> {
        let Some(hole) = self.hole.filter(|_| now_ns().saturating_sub(self.hole_ns) >= CLOSED_CHECK_NS) else {
            return Ok(());
        };
        self.hole_ns = now_ns();
        if hole::is_closed(&*self.target, hole, self.store.wal().epoch()).await? {
            self.show_hole(None);
            self.publish(self.position());
        }
        Ok(())
    }

    fn show_hole(&mut self, hole: Option<Hole>) {
        self.hole = hole;
        self.store.archive().note(|row| row.hole = hole.map(|hole| (hole.from, hole.to)));
    }

    /// The claim is still ours (ARV-4).
    async fn confirm(&self) -> Result<()> {
        let name = names::epoch(self.store.wal().epoch());
        if Epoch::decode(&name, &self.target.get(&name).await?)?.claimer == self.claimer {
            return Ok(());
        }
        Err(self.claimed_by_another())
    }

    fn claimed_by_another(&self) -> BackupError {
        let (number, place) = (self.store.wal().epoch(), self.target.place());
        let what =
            format!("epoch {number} in {place} belongs to another directory: this one needs an archive of its own");
        BackupError::Refused(what)
    }

    /// The log below `position` may go (ARV-2).
    fn keep(&mut self, position: Lsn) -> Result<()> {
        if self.store.archive().advance(position) {
            return Ok(());
        }
        let oldest = self.store.archive().hold_again(self.store.wal(), self.options.limit_bytes);
        self.pending = None;
        self.position = Some(position.max(oldest));
        if oldest <= position {
            return Ok(());
        }
        self.hole(position, oldest)
    }

    fn hole(&mut self, from: Lsn, to: Lsn) -> Result<()> {
        self.show_hole(Some(Hole { from, to }));
        let what = format!(
            "the log from LSN {from} to {to} was released before it was in the archive (archive_max_lag): nothing behind it can be \
             restored until a new backup is taken"
        );
        self.store.archive().note(|row| row.archived = to);
        Err(BackupError::Source(what))
    }

    /// What is to be sent now.
    fn due(&self, position: Lsn, hurry: bool) -> Option<(Lsn, Lsn)> {
        if self.pending.is_some() {
            return self.pending;
        }
        let durable = self.store.wal().durable_lsn();
        let layout = self.store.wal().segments().layout();
        let segment_end = layout.first_lsn(layout.number(position) + 1);
        let to = segment_end.min(durable);
        let old = now_ns().saturating_sub(self.sent_ns) >= self.options.timeout_ns;
        let awaited = self.store.archive().wanted() > position;
        (to > position && (to == segment_end || old || hurry || awaited)).then_some((position, to))
    }

    /// Finds out what is in the archive, and makes the epoch ours (ARV-4).
    async fn connect(&mut self) -> Result<Lsn> {
        belongs(&*self.target, self.store.database()).await?;
        let found = find(&*self.home, LOCAL).await?;
        let mut local = found.as_deref().and_then(Local::decode).unwrap_or_default();
        if local.claimer == 0 {
            // Before the first claim, so that a crash behind it finds the claim to be its own.
            local.claimer = self.options.claimer;
            self.home.put(LOCAL, local.encode().as_bytes()).await?;
        }
        self.claimer = local.claimer;
        let number = self.store.wal().epoch();
        let mut all = epochs::all(&*self.target).await?;
        let listed = self.target.list(names::LOG).await?;
        if !all.iter().any(|epoch| epoch.epoch == number) {
            let before = timeline(&all, local.epoch);
            let epoch = match before.stretches.last() {
                Some(last) => {
                    let reached = of_timeline(&listed, &before).iter().map(|piece| piece.to).max();
                    let begins = reached.unwrap_or(last.from).min(self.store.epoch_start());
                    let (claimer, started) = (local.claimer, self.store.epoch_start().max(begins));
                    Epoch { epoch: number, parent: last.epoch, begins, started, claimer, claimed_us: wall_us() }
                }
                None => {
                    let begins = self.store.oldest_log();
                    let (claimer, started) = (local.claimer, begins);
                    Epoch { epoch: number, parent: 0, begins, started, claimer, claimed_us: wall_us() }
                }
            };
            match self.target.put_new(&names::epoch(number), epoch.encode().as_bytes()).await {
                Ok(()) => all.push(epoch),
                Err(BackupError::Exists(_)) => all = epochs::all(&*self.target).await?,
                Err(error) => return Err(error),
            }
        }
        let ours = all.iter().find(|epoch| epoch.epoch == number && epoch.claimer == local.claimer);
        let Some(ours) = ours else { return Err(self.claimed_by_another()) };
        if local.epoch != number {
            local.epoch = number;
            self.home.put(LOCAL, local.encode().as_bytes()).await?;
        }
        let of_ours = listed.iter().filter(|object| names::epoch_of(&object.name) == Some(number));
        let reached = of_ours.filter_map(|object| names::range(&object.name)).map(|(_, to)| to).max();
        let position = reached.unwrap_or(ours.begins).max(ours.begins);
        let oldest = self.store.oldest_log();
        let history = timeline(&all, number);
        let pieces = of_timeline(&listed, &history);
        let begins = history.stretches.first().map_or(position, |first| first.from);
        let found = hole::last(&pieces, begins, position.max(oldest));
        let is_open = match found {
            Some(hole) => !hole::is_closed(&*self.target, hole, number).await?,
            None => false,
        };
        self.show_hole(found.filter(|_| is_open));
        let begin = position.max(oldest);
        self.store.archive().note(|row| row.archived = begin);
        self.position = Some(begin);
        if is_open && position < oldest {
            self.hole(position, oldest)?;
        }
        self.keep(begin)?;
        self.publish(self.position());
        Ok(self.position())
    }
}
