//! Analysis, the first pass over the log: finds the losers, their undo, and what is still to be freed.
//!
//! # Invariants
//! - REC-3: each record gives the absolute head of its transaction's undo chain (a row change: the record itself; a run: its last change;
//!   a compensation: its `undo_next`). So reading a record twice, or reading a record that the checkpoint knew already, changes nothing.
//! - REC-4: a loser's undo is the chain from its last change; a link to a place without a change is corruption. A run's record has as many places as changes
//!   (BTR-24).
//! - REC-10: if a before-image refers to an overflow chain and its transaction commits, the chain is on the list of chains to be freed. A
//!   change that was compensated before the commit adds no chain.

use super::saved::{PendingChain, PendingDrop, Saved};
use crate::btree::{RunChanges, RunPositions};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, Tag, TreeId, TxnId};
use crate::record::{Before, BeforeImage, RecordKind, RowUndo, TxnLog, UndoEntry};
use crate::wal::format::{Bytes, Decoded};
use std::collections::BTreeMap;

/// A transaction that had neither committed nor been undone when the log ended.
#[derive(Clone, Debug)]
pub struct Loser {
    /// The transaction's place in the log, with log space set aside for its undo.
    pub log: TxnLog,
    /// The changes to undo, oldest first.
    pub entries: Vec<UndoEntry>,
}

/// The body of a commit record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitBody {
    /// Wall clock of the commit, microseconds since 1970.
    pub wall_clock_us: i64,
    /// Where the transaction came from: 0 = here; reserved for replication.
    pub origin: u32,
    /// The database within the directory.
    pub database: u32,
    /// It changed the catalog.
    pub catalog_changed: bool,
    /// Trees that it dropped.
    pub dropped: Vec<TreeId>,
}

impl CommitBody {
    /// wall clock i64, origin u32, database u32, flags u8 (1 = catalog), zeros 3, dropped count u32, trees u64.
    pub fn encode(&self) -> Vec<u8> {
        assert!(u32::try_from(self.dropped.len()).is_ok(), "a commit that drops {} trees", self.dropped.len());
        let mut out = Vec::with_capacity(24 + self.dropped.len() * 8);
        out.extend_from_slice(&self.wall_clock_us.to_le_bytes());
        out.extend_from_slice(&self.origin.to_le_bytes());
        out.extend_from_slice(&self.database.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.catalog_changed), 0, 0, 0]);
        out.extend_from_slice(&(self.dropped.len() as u32).to_le_bytes());
        self.dropped.iter().for_each(|tree| out.extend_from_slice(&tree.0.to_le_bytes()));
        out
    }

    /// Decodes a body; an empty body is a commit without further data.
    pub fn decode(bytes: &[u8]) -> Option<CommitBody> {
        if bytes.is_empty() {
            return Some(CommitBody::default());
        }
        let mut at = Bytes::new(bytes);
        let wall_clock_us = at.u64()? as i64;
        let (origin, database) = (at.u32()?, at.u32()?);
        let catalog_changed = at.u32()? & 1 == 1;
        let count = at.u32()?;
        let dropped = (0..count).map(|_| at.u64().map(TreeId)).collect::<Option<Vec<_>>>()?;
        at.rest().is_empty().then_some(CommitBody { wall_clock_us, origin, database, catalog_changed, dropped })
    }
}

/// The state of one transaction during the pass.
#[derive(Default)]
struct Standing {
    first: Lsn,
    last: Lsn,
    entries: BTreeMap<u64, UndoEntry>,
}

impl Standing {
    fn superseded(self, commit: Lsn) -> impl Iterator<Item = PendingChain> {
        self.entries.into_values().filter_map(move |entry| match entry.before {
            BeforeImage::Row { overflow: true, value, .. } => {
                let reference = value.as_ref().try_into().ok()?;
                Some(PendingChain { commit, tree: entry.tree, reference })
            }
            _ => None,
        })
    }
}

/// The state of the pass.
pub struct Analysis {
    txns: BTreeMap<TxnId, Standing>,
    pending: Vec<PendingDrop>,
    chains: Vec<PendingChain>,
    tag_high_water: Tag,
    txn_high_water: TxnId,
    last_page: PageId,
    /// Records read.
    pub records: u64,
}

/// The result of the pass.
pub struct Findings {
    /// In order of transaction ids.
    pub losers: Vec<Loser>,
    /// Trees to be dropped; some may be gone already.
    pub pending: Vec<PendingDrop>,
    /// Chains to be freed; some may be gone already.
    pub chains: Vec<PendingChain>,
    /// No greater tag was ever written.
    pub tag_high_water: Tag,
    /// No greater transaction id was ever written.
    pub txn_high_water: TxnId,
    /// The page with the highest number that a record changes.
    pub last_page: PageId,
}

impl Analysis {
    /// Begins with what the checkpoint saved.
    pub fn new(saved: Saved) -> Analysis {
        let mut txns = BTreeMap::new();
        for txn in saved.active.txns {
            let entries: BTreeMap<u64, UndoEntry> = txn.undo.into_iter().map(|entry| (entry.lsn.0, entry)).collect();
            let standing = Standing { first: txn.log.first_lsn, last: txn.log.last_lsn, entries };
            txns.insert(txn.log.txn, standing);
        }
        Analysis {
            txns,
            pending: saved.pending,
            chains: saved.chains,
            tag_high_water: saved.active.tag_high_water,
            txn_high_water: saved.active.txn_high_water,
            last_page: PageId(0),
            records: 0,
        }
    }

    /// Takes in one record.
    ///
    /// # Errors
    /// A record that this program can't recover.
    pub fn take(&mut self, record: &Decoded<'_>, place: impl Fn() -> (String, u64)) -> Result<(), StorageError> {
        self.records += 1;
        self.txn_high_water = self.txn_high_water.max(record.txn);
        self.last_page = record.ops.iter().map(|op| op.page).fold(self.last_page, PageId::max);
        match record.kind {
            RecordKind::Row => {
                let Some(undo) = &record.undo else {
                    return Err(odd(record, place(), "a row record with an undo part", "none"));
                };
                self.tag_high_water = self.tag_high_water.max(undo.tag);
                let start = record.lsn.start;
                let standing = self.txns.entry(record.txn).or_default();
                if standing.first == Lsn::ZERO {
                    standing.first = start;
                }
                standing.last = start;
                standing.entries.insert(start.0, owned(start, record.undo_next, undo));
            }
            RecordKind::Run => self.take_run(record, place)?,
            RecordKind::Compensation => {
                let standing = self.txns.entry(record.txn).or_default();
                standing.last = record.undo_next; // REC-3
                // A compensated change is not needed again.
                let _ = standing.entries.split_off(&(record.undo_next.0 + 1));
            }
            RecordKind::Commit => {
                let standing = self.txns.remove(&record.txn).unwrap_or_default();
                self.chains.extend(standing.superseded(record.lsn.end)); // REC-10
                let Some(body) = CommitBody::decode(record.body) else {
                    return Err(odd(record, place(), "the body of a commit", "something else"));
                };
                let commit = record.lsn.end;
                self.pending.extend(body.dropped.into_iter().map(|tree| PendingDrop { tree, commit }));
            }
            RecordKind::AbortEnd => {
                self.txns.remove(&record.txn);
            }
            RecordKind::Structure | RecordKind::CheckpointBegin | RecordKind::CheckpointEnd => {}
            RecordKind::Prepare => {
                return Err(odd(record, place(), "a record that this version knows", "a prepared transaction"));
            }
        }
        Ok(())
    }

    /// Takes in the changes of a run, each at its own position (BTR-24).
    fn take_run(&mut self, record: &Decoded<'_>, place: impl Fn() -> (String, u64)) -> Result<(), StorageError> {
        let damaged = || odd(record, place(), "the changes of a run", "something else");
        let [op] = &record.ops[..] else { return Err(damaged()) };
        let changes = RunChanges::of(op.op, op.payload).ok_or_else(damaged)?;
        let positions = RunPositions::new(record.lsn.start, record.undo_next);
        let standing = self.txns.entry(record.txn).or_default();
        if standing.first == Lsn::ZERO {
            standing.first = record.lsn.start;
        }
        for (n, change) in changes.enumerate() {
            let undo = change.ok_or_else(damaged)?.undo;
            let (at, before) = positions.of(n);
            self.tag_high_water = self.tag_high_water.max(undo.tag);
            standing.last = at;
            standing.entries.insert(at.0, owned(at, before, &undo));
        }
        Ok(())
    }

    /// Follows the losers' chains (REC-4).
    ///
    /// # Errors
    /// A broken chain.
    pub fn finish(self, log_dir: &str) -> Result<Findings, StorageError> {
        let mut losers = Vec::new();
        for (txn, mut standing) in self.txns {
            let mut entries = Vec::new();
            let mut at = standing.last;
            while at != Lsn::ZERO {
                let Some(entry) = standing.entries.remove(&at.0) else {
                    return Err(Corruption {
                        file: log_dir.to_owned(),
                        offset: None,
                        page: None,
                        lsn: Some(at),
                        expected: format!("a change of transaction {txn}, to be undone"),
                        found: "none, in log and checkpoint".to_owned(),
                    }
                    .into());
                };
                at = entry.undo_next;
                entries.push(entry);
            }
            entries.reverse();
            let log = TxnLog { first_lsn: standing.first, last_lsn: standing.last, ..TxnLog::new(txn) };
            losers.push(Loser { log, entries });
        }
        let (mut pending, mut chains) = (self.pending, self.chains);
        pending.sort_unstable();
        pending.dedup();
        chains.sort_unstable();
        chains.dedup();
        let (tag_high_water, txn_high_water, last_page) = (self.tag_high_water, self.txn_high_water, self.last_page);
        Ok(Findings { losers, pending, chains, tag_high_water, txn_high_water, last_page })
    }
}

fn owned(lsn: Lsn, undo_next: Lsn, undo: &RowUndo<'_>) -> UndoEntry {
    let before = match undo.before {
        Before::Absent => BeforeImage::Absent,
        Before::Row { ghost, overflow, value } => BeforeImage::Row { ghost, overflow, value: value.into() },
    };
    let (tree, key, tag, prev_tag) = (undo.tree, undo.key.into(), undo.tag, undo.prev_tag);
    UndoEntry { lsn, undo_next, tree, key, tag, prev_tag, before }
}

fn odd(record: &Decoded<'_>, place: (String, u64), expected: &str, found: &str) -> StorageError {
    let (file, offset) = place;
    Corruption {
        file,
        offset: Some(offset),
        page: None,
        lsn: Some(record.lsn.start),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
    .into()
}
