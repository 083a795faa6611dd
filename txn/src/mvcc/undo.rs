//! Undo records: the versions before the newest one, and what a rollback needs. In memory, found by tag.
//!
//! # Structure
//! ```text
//! tag = chunk number << 6 | place        never reused; place 0..63, chunk numbers from 1, so no tag is 0 (settled)
//! UndoStore ── directory shards: chunk number -> Chunk { 64 places, each an Arc<UndoRecord> or empty }
//!           └─ current chunk per writer shard
//! ```
//! The place is the indirection: a record is freed on its own, and an old one that is still read pins its chunk's 64 places, half a
//! kilobyte, and nothing else.
//!
//! # Invariants
//! - UND-1: a tag that is not found belongs to a version that every snapshot sees, or to one that no longer stands in any row; a reader
//!   tells the two apart by re-validating the page afterwards.
//! - UND-2: the records of a transaction stay until it has ended and, committed, its commit is at or below the horizon; or until a
//!   later version of the row links past them because nobody can read the version before them.
//! - UND-3: positions within a transaction rise by one with every change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_storage::ids::{Lsn, Tag, TreeId};
use clearway_storage::record::{BeforeImage, UndoEntry};

use super::state::TxnState;
use crate::lockmgr::LockMode;

const PLACES: usize = 64;
const PLACE_BITS: u32 = 6;
const SHARDS: usize = 64;

/// One change of one row.
#[derive(Debug)]
pub struct UndoRecord {
    /// Whose.
    pub txn: Arc<TxnState>,
    /// The how-manieth change of its transaction, from 0.
    pub position: u32,
    /// The tree.
    pub tree: TreeId,
    /// The key in it.
    pub key: Box<[u8]>,
    /// The row before the change.
    pub before: BeforeImage,
    /// The tag that the row had before.
    pub prev: Tag,
    /// When the version before the change had been committed; zero if nobody needs to know any more.
    pub before_lsn: Lsn,
    /// What lock the change amounts to: `RowUpdate` for a delete or a change of key, else `RowNoKeyUpdate`.
    pub strength: LockMode,
    /// The change deleted the row: what stands there now is a ghost.
    pub deletes: bool,
    /// For a delete that is half of a key update: the row's new key.
    pub moved_to: Option<Box<[u8]>>,
    lsn: AtomicU64,
    undo_next: AtomicU64,
}

/// What a new record holds; see [`UndoRecord`].
#[derive(Debug)]
pub struct NewUndo {
    /// Whose.
    pub txn: Arc<TxnState>,
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: Box<[u8]>,
    /// The row before.
    pub before: BeforeImage,
    /// Its tag.
    pub prev: Tag,
    /// When that version had been committed.
    pub before_lsn: Lsn,
    /// The lock that the change amounts to.
    pub strength: LockMode,
    /// The change deletes the row.
    pub deletes: bool,
    /// Where a key update went.
    pub moved_to: Option<Box<[u8]>>,
}

impl UndoRecord {
    /// The position of the change's log record; zero until it is logged.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Acquire))
    }

    /// The transaction's log record before that.
    pub fn undo_next(&self) -> Lsn {
        Lsn(self.undo_next.load(Ordering::Acquire))
    }

    /// The change was logged.
    pub fn logged(&self, lsn: Lsn, undo_next: Lsn) {
        self.undo_next.store(undo_next.0, Ordering::Release);
        self.lsn.store(lsn.0, Ordering::Release);
    }

    /// What it weighs in the budget, in bytes.
    pub fn bytes(&self) -> usize {
        let before = match &self.before {
            BeforeImage::Absent => 0,
            BeforeImage::Row { value, .. } => value.len(),
        };
        size_of::<UndoRecord>() + 2 * size_of::<usize>() + self.key.len() + before
    }

    /// The change as its rollback needs it.
    pub fn entry(&self, tag: Tag) -> UndoEntry {
        UndoEntry {
            lsn: self.lsn(),
            undo_next: self.undo_next(),
            tree: self.tree,
            key: self.key.clone(),
            tag,
            prev_tag: self.prev,
            before: self.before.clone(),
        }
    }
}

#[derive(Debug, Default)]
struct Chunk {
    places: Vec<Option<Arc<UndoRecord>>>,
    live: usize,
}

#[derive(Debug, Default)]
struct Shard {
    chunks: HashMap<u64, Chunk>,
    /// The chunk that this shard's writers fill.
    current: Option<u64>,
}

/// All undo records.
#[derive(Debug)]
pub struct UndoStore {
    shards: Box<[Mutex<Shard>]>,
    bytes: Box<[AtomicI64]>,
    next_chunk: AtomicU64,
}

impl UndoStore {
    /// An empty store whose tags all lie above `high_water`, the highest tag ever given out before.
    pub fn new(high_water: Tag) -> UndoStore {
        UndoStore {
            shards: (0..SHARDS).map(|_| Mutex::new("txn/mvcc/undo", Shard::default())).collect(),
            bytes: (0..SHARDS).map(|_| AtomicI64::new(0)).collect(),
            next_chunk: AtomicU64::new((high_water.0 >> PLACE_BITS) / SHARDS as u64 + 1),
        }
    }

    /// Keeps a record and returns its tag. `writer` spreads the writers; the records of one writer lie close to each other.
    pub fn push(&self, writer: usize, new: NewUndo) -> (Tag, Arc<UndoRecord>) {
        let position = new.txn.next_position();
        let record = Arc::new(UndoRecord {
            position,
            txn: new.txn,
            tree: new.tree,
            key: new.key,
            before: new.before,
            prev: new.prev,
            before_lsn: new.before_lsn,
            strength: new.strength,
            deletes: new.deletes,
            moved_to: new.moved_to,
            lsn: AtomicU64::new(0),
            undo_next: AtomicU64::new(0),
        });
        let tag = self.place(writer % SHARDS, record.clone());
        record.txn.changed(tag);
        (tag, record)
    }

    fn place(&self, index: usize, record: Arc<UndoRecord>) -> Tag {
        self.bytes[index].fetch_add(record.bytes() as i64, Ordering::Relaxed);
        let mut shard = self.shards[index].lock();
        let number = match shard.current {
            Some(number) => number,
            None => {
                // Chunk numbers congruent to the shard's index, so that a tag leads to its shard.
                let number = self.next_chunk.fetch_add(1, Ordering::Relaxed) * SHARDS as u64 + index as u64;
                shard.current = Some(number);
                shard.chunks.insert(number, Chunk { places: Vec::with_capacity(PLACES), live: 0 });
                number
            }
        };
        let chunk = shard.chunks.get_mut(&number).expect("the current chunk is never freed");
        let place = chunk.places.len();
        chunk.places.push(Some(record));
        chunk.live += 1;
        if chunk.places.len() == PLACES {
            shard.current = None;
        }
        Tag((number << PLACE_BITS) | place as u64)
    }

    /// Puts back a record that a restart found, under the tag that its row carries.
    pub fn restore(&self, tag: Tag, entry: &UndoEntry, new: NewUndo) {
        let record = UndoRecord {
            position: new.txn.next_position(),
            txn: new.txn,
            tree: new.tree,
            key: new.key,
            before: new.before,
            prev: new.prev,
            before_lsn: new.before_lsn,
            strength: new.strength,
            deletes: new.deletes,
            moved_to: new.moved_to,
            lsn: AtomicU64::new(entry.lsn.0),
            undo_next: AtomicU64::new(entry.undo_next.0),
        };
        let (index, number, place) = locate(tag);
        let mut shard = self.shards[index].lock();
        let chunk = shard.chunks.entry(number).or_default();
        if chunk.places.len() <= place {
            chunk.places.resize(place + 1, None);
        }
        self.bytes[index].fetch_add(record.bytes() as i64, Ordering::Relaxed);
        record.txn.changed(tag);
        chunk.places[place] = Some(Arc::new(record));
        chunk.live += 1;
    }

    /// The record of a tag; `None` is explained by UND-1.
    pub fn get(&self, tag: Tag) -> Option<Arc<UndoRecord>> {
        let (index, number, place) = locate(tag);
        let shard = self.shards[index].lock();
        shard.chunks.get(&number)?.places.get(place)?.clone()
    }

    /// Frees a record; nothing happens if it is free already.
    pub fn free(&self, tag: Tag) {
        let (index, number, place) = locate(tag);
        let mut shard = self.shards[index].lock();
        let current = shard.current;
        let Some(chunk) = shard.chunks.get_mut(&number) else {
            return;
        };
        let Some(record) = chunk.places.get_mut(place).and_then(Option::take) else {
            return;
        };
        chunk.live -= 1;
        if chunk.live == 0 && current != Some(number) {
            shard.chunks.remove(&number);
        }
        drop(shard);
        self.bytes[index].fetch_sub(record.bytes() as i64, Ordering::Relaxed);
    }

    /// Tags up to `high_water` were given out before a restart: new ones lie above.
    pub fn raise(&self, high_water: Tag) {
        let chunk = (high_water.0 >> PLACE_BITS) / SHARDS as u64 + 1;
        self.next_chunk.fetch_max(chunk, Ordering::Relaxed);
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().map(|b| b.load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
    }

    /// No tag above this has been given out.
    pub fn high_water(&self) -> Tag {
        Tag(((self.next_chunk.load(Ordering::Relaxed) * SHARDS as u64) + SHARDS as u64) << PLACE_BITS)
    }
}

fn locate(tag: Tag) -> (usize, u64, usize) {
    let number = tag.0 >> PLACE_BITS;
    ((number % SHARDS as u64) as usize, number, (tag.0 & (PLACES as u64 - 1)) as usize)
}
