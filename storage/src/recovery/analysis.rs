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
use super::standing::Standing;
use crate::btree::{RunChanges, RunPositions};
use crate::error::{Corruption, StorageError};
use crate::ids::{PageId, Tag, TreeId, TxnId};
use crate::record::{RecordKind, RowUndo, TxnLog, UndoEntry};
use crate::wal::format::{Bytes, Decoded};
use std::collections::BTreeMap;

/// So many lists of changes are kept for further transactions.
const SPARE_MAX: usize = 64;

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

/// The state of the pass.
pub struct Analysis {
    txns: BTreeMap<TxnId, Standing>,
    /// Those of transactions that have ended.
    spare: Vec<Standing>,
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
            let mut standing = Standing::default();
            (standing.first, standing.last) = (txn.log.first_lsn, txn.log.last_lsn);
            for UndoEntry { lsn, undo_next, tree, key, tag, prev_tag, before } in &txn.undo {
                let (tree, tag, prev_tag, before) = (*tree, *tag, *prev_tag, before.as_before());
                standing.add(*lsn, *undo_next, &RowUndo { tree, key, tag, prev_tag, before });
            }
            txns.insert(txn.log.txn, standing);
        }
        Analysis {
            txns,
            spare: Vec::new(),
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
                self.standing(record.txn).change(record.lsn.start, record.undo_next, undo);
            }
            RecordKind::Run => self.take_run(record, place)?,
            RecordKind::Compensation => {
                self.standing(record.txn).compensated(record.undo_next);
            }
            RecordKind::Commit => {
                if let Some(standing) = self.txns.remove(&record.txn) {
                    self.chains.extend(standing.superseded(record.lsn.end)); // REC-10
                    self.keep(standing);
                }
                let Some(body) = CommitBody::decode(record.body) else {
                    return Err(odd(record, place(), "the body of a commit", "something else"));
                };
                let commit = record.lsn.end;
                self.pending.extend(body.dropped.into_iter().map(|tree| PendingDrop { tree, commit }));
            }
            RecordKind::AbortEnd => {
                self.txns.remove(&record.txn).into_iter().for_each(|standing| self.keep(standing));
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
        let mut tag_high_water = self.tag_high_water;
        let standing = self.standing(record.txn);
        for (n, change) in changes.enumerate() {
            let undo = change.ok_or_else(damaged)?.undo;
            let (at, before) = positions.of(n);
            tag_high_water = tag_high_water.max(undo.tag);
            standing.change(at, before, &undo);
        }
        self.tag_high_water = tag_high_water;
        Ok(())
    }

    /// What the pass knows of a transaction.
    fn standing(&mut self, txn: TxnId) -> &mut Standing {
        self.txns.entry(txn).or_insert_with(|| self.spare.pop().unwrap_or_default())
    }

    /// Keeps the memory of a transaction that has ended for another one.
    fn keep(&mut self, mut standing: Standing) {
        if self.spare.len() < SPARE_MAX {
            standing.clear();
            self.spare.push(standing);
        }
    }

    /// Follows the losers' chains (REC-4).
    ///
    /// # Errors
    /// A broken chain.
    pub fn finish(self, log_dir: &str) -> Result<Findings, StorageError> {
        let mut losers = Vec::new();
        for (txn, standing) in self.txns {
            let entries = standing.chain().map_err(|at| Corruption {
                file: log_dir.to_owned(),
                offset: None,
                page: None,
                lsn: Some(at),
                expected: format!("a change of transaction {txn}, to be undone"),
                found: "none, in log and checkpoint".to_owned(),
            })?;
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
