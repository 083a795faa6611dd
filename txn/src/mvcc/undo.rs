//! The undo store: finds undo records by tag, in memory up to a budget, beyond it in the spill file.
//!
//! # Structure
//! ```text
//! tag = chunk number << 6 | place        never reused; place 0..63, chunk numbers from 64, so no tag is 0 (settled)
//! UndoStore ── shards: chunk number -> Chunk { 64 places, each an Arc<UndoRecord> or empty }
//!           │       └─ first chunk number -> Span: consecutive chunks whose records are in the spill file
//!           └─ current chunk per writer shard
//! ```
//! The place is the indirection: each record is freed or replaced on its own. An old record that is still read keeps its chunk's 64
//! places, half a kilobyte, in memory until the chunk is spilled together with its neighbours.
//!
//! # Invariants
//! - UND-1: a tag that is not found belongs to a version that every snapshot sees, or to a version that no row has any more; a reader
//!   tells the two apart by re-validating the page afterwards.
//! - UND-2: a record stays until its change is undone or its transaction has committed. After a commit it stays until the commit is at or
//!   below the horizon, or until no snapshot can read the version before the change (pruning between snapshots).
//! - UND-3: positions within a transaction rise by one with every change, or with every run of changes that share a record (RSH-1).
//! - UND-4: a chunk number is in a shard's chunks or within one of its spans, never in both. It changes from the chunks to a span
//!   under the shard's mutex, after the span has been written.
//! - UND-6: a lookup in fetched bytes gives the same answer as a fetch at this moment would. The bytes of a span never change (SPN-1) and
//!   span numbers are never reused, so the bytes of a replaced span are not found under the new span's number. Whether a record was freed
//!   is read from the span in the directory, not from the bytes.
//! - UND-5: `bytes` is the weight of all records and spans in memory; spilling takes the oldest chunks first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use clearway_base::memory::Outside;
use clearway_base::sync::Mutex;
use clearway_base::vfs::IoBuf;
use clearway_storage::ids::{Lsn, Tag};
use clearway_storage::record::UndoEntry;

use super::record::{NewUndo, Spot, UndoRecord, Writer};
use super::rows::RunRows;
use super::span::Span;

const PLACES: usize = 64;
const PLACE_BITS: u32 = 6;
pub(super) const SHARDS: usize = 64;
/// Bytes that a chunk counts beside its records.
const CHUNK_BYTES: i64 = 640;

/// What the store has under a tag.
#[derive(Clone, Debug)]
pub enum TagState {
    /// Nothing: UND-1.
    Gone,
    /// A record in memory.
    InMemory(Arc<UndoRecord>),
    /// A record in the spill file, if it is in the span.
    Spilled(Arc<Span>),
}

/// How many fetched spans [`Fetched::trim`] keeps between rows: some megabytes of records.
const SPANS_KEPT: usize = 32;

/// Spans that a reader or writer has read from the spill file; the caller keeps them from row to row. They are never out of date: each
/// lookup asks the store anew in which span a tag stands, and whether its record was freed (UND-6).
#[derive(Debug, Default)]
pub struct Fetched {
    spans: HashMap<u64, IoBuf>,
}

impl Fetched {
    /// Keeps the bytes of a span.
    pub(super) fn keep(&mut self, span: &Span, bytes: IoBuf) {
        self.spans.insert(span.id, bytes);
    }

    /// How many spans are kept.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Forgets all spans if there are too many. Called before the next row, never within one, since one row may need many spans.
    #[inline]
    pub fn trim(&mut self) {
        if self.spans.len() > SPANS_KEPT {
            self.spans.clear();
        }
    }

    /// Forgets all, and gives the memory back.
    #[inline]
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.spans = HashMap::new();
        }
    }
}

#[derive(Debug)]
struct Chunk {
    places: Vec<Option<Arc<UndoRecord>>>,
    live: usize,
    /// As its records, it belongs to no session's account.
    _memory: Outside,
}

impl Default for Chunk {
    fn default() -> Chunk {
        let memory = Outside::new(CHUNK_BYTES as usize);
        Chunk { places: Vec::with_capacity(PLACES), live: 0, _memory: memory }
    }
}

#[derive(Debug, Default)]
pub(super) struct Shard {
    chunks: BTreeMap<u64, Chunk>,
    /// The chunk that this shard's writers fill.
    current: Option<u64>,
    /// By first chunk number.
    pub(super) spans: BTreeMap<u64, Arc<Span>>,
}

/// Records of consecutive chunks of a shard that are to be spilled.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) chunks: Vec<u64>,
    pub(super) records: Vec<(Tag, Arc<UndoRecord>)>,
}

/// Records that were moved from several spans to one, with the places that they had.
pub(super) struct Moved<'a> {
    pub(super) span: Arc<Span>,
    pub(super) records: &'a [(Tag, Arc<UndoRecord>)],
    pub(super) spots: &'a [Spot],
}

/// All undo records.
#[derive(Debug)]
pub struct UndoStore {
    pub(super) shards: Box<[Mutex<Shard>]>,
    bytes: Box<[AtomicI64]>,
    next_chunk: AtomicU64,
    /// The memory budget, in bytes.
    ceiling: AtomicU64,
    /// Whether memory exceeded the budget when it was last measured.
    is_over: AtomicBool,
}

impl UndoStore {
    /// An empty store whose tags all lie above `high_water`, the highest tag ever given out before.
    pub fn new(high_water: Tag) -> UndoStore {
        UndoStore {
            shards: (0..SHARDS).map(|_| Mutex::new("txn/mvcc/undo", Shard::default())).collect(),
            bytes: (0..SHARDS).map(|_| AtomicI64::new(0)).collect(),
            next_chunk: AtomicU64::new((high_water.0 >> PLACE_BITS) / SHARDS as u64 + 1),
            ceiling: AtomicU64::new(u64::MAX),
            is_over: AtomicBool::new(false),
        }
    }

    /// Sets the memory budget, in bytes.
    pub(super) fn set_ceiling(&self, bytes: u64) {
        self.ceiling.store(bytes, Ordering::Relaxed);
    }

    /// The memory budget, in bytes.
    pub fn ceiling(&self) -> u64 {
        self.ceiling.load(Ordering::Relaxed)
    }

    /// Whether writers have to wait until there is room. Costs one load; measured anew with each new chunk and each spilling.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Measures memory against the budget; returns the bytes in memory.
    pub(super) fn measure(&self) -> u64 {
        let bytes = self.bytes();
        self.is_over.store(bytes > self.ceiling(), Ordering::Relaxed);
        bytes
    }

    /// Keeps a record and returns its tag. `writer` spreads the writers; the records of one writer lie close to each other.
    pub fn push(&self, writer: usize, new: NewUndo) -> (Tag, Arc<UndoRecord>) {
        let record = Arc::new(UndoRecord::new(new));
        let bytes = record.bytes();
        let tag = self.place(writer % SHARDS, record.clone(), bytes);
        record.live().changed(tag, bytes as u64);
        (tag, record)
    }

    fn place(&self, index: usize, record: Arc<UndoRecord>, bytes: usize) -> Tag {
        self.weigh(index, bytes as i64);
        let mut shard = self.shards[index].lock();
        let number = match shard.current {
            Some(number) => number,
            None => {
                // Chunk numbers congruent to the shard's index, so that a tag leads to its shard.
                let number = self.next_chunk.fetch_add(1, Ordering::Relaxed) * SHARDS as u64 + index as u64;
                shard.current = Some(number);
                let last = shard.spans.last_key_value().map(|(_, span)| span.last);
                assert!(last.is_none_or(|last| last < number), "UND-4: chunk {number} is in the spill file already");
                let before = shard.chunks.insert(number, Chunk::default());
                assert!(before.is_none(), "UND-4: chunk {number} is there already");
                self.weigh(index, CHUNK_BYTES);
                self.measure();
                number
            }
        };
        // It is the last one, but where recovery has restored records of later chunks.
        let chunk = match shard.chunks.last_entry().filter(|last| *last.key() == number) {
            Some(last) => last.into_mut(),
            None => shard.chunks.get_mut(&number).expect("the current chunk is never freed"),
        };
        let place = chunk.places.len();
        assert!(place < PLACES, "a chunk of undo has {PLACES} places");
        chunk.places.push(Some(record));
        chunk.live += 1;
        if chunk.places.len() == PLACES {
            shard.current = None;
        }
        Tag((number << PLACE_BITS) | place as u64)
    }

    /// The record of a run's first rows becomes that of more of them; it is in memory (RSH-4).
    pub(crate) fn put_rows(
        &self,
        tag: Tag,
        record: &Arc<UndoRecord>,
        rows: RunRows,
        undo_next: Lsn,
    ) -> Arc<UndoRecord> {
        assert!(record.lsn() == Lsn::ZERO, "RSH-4: {record:?} has all its rows");
        let with_rows = Arc::new(record.with_rows(rows, undo_next));
        record.live().grew(with_rows.bytes().saturating_sub(record.bytes()) as u64);
        assert!(self.replace_by(tag, record, with_rows.clone()), "RSH-4: {record:?} was replaced");
        self.measure();
        with_rows
    }

    /// Puts back the record of changes that a restart found, under the tag that their rows carry (RSH-1).
    pub fn restore(&self, tag: Tag, entries: &[UndoEntry], new: NewUndo) {
        let Some(first) = entries.first() else { return };
        let txn = new.txn.clone();
        let mut record = UndoRecord::new(new);
        match entries.len() {
            1 => record.logged(first.lsn, first.undo_next),
            _ => {
                record = record.with_rows(RunRows::of(entries), first.undo_next);
                record.logged(first.lsn, first.undo_next);
            }
        }
        assert!(!tag.is_settled(), "UND-1: a record is under a tag");
        let (index, number, place) = locate(tag);
        let mut shard = self.shards[index].lock();
        assert!(shard.current != Some(number), "UND-4: recovery restores records before any are made");
        if !shard.chunks.contains_key(&number) {
            self.weigh(index, CHUNK_BYTES);
        }
        let chunk = shard.chunks.entry(number).or_default();
        if chunk.places.len() <= place {
            chunk.places.resize(place + 1, None);
        }
        self.weigh(index, record.bytes() as i64);
        txn.changed(tag, record.bytes() as u64);
        assert!(chunk.places[place].is_none(), "two records under the tag {tag:?}");
        chunk.places[place] = Some(Arc::new(record));
        chunk.live += 1;
    }

    pub(super) fn weigh(&self, index: usize, bytes: i64) {
        self.bytes[index].fetch_add(bytes, Ordering::Relaxed);
    }

    /// What the store has under a tag.
    pub fn state(&self, tag: Tag) -> TagState {
        let (index, number, place) = locate(tag);
        let shard = self.shards[index].lock();
        // UND-4
        if let Some(chunk) = shard.chunks.get(&number) {
            return chunk.places.get(place).and_then(Clone::clone).map_or(TagState::Gone, TagState::InMemory);
        }
        match shard.spans.range(..=number).next_back() {
            Some((_, span)) if number <= span.last => TagState::Spilled(span.clone()),
            _ => TagState::Gone,
        }
    }

    /// As [`UndoStore::state`]; a spilled record is taken from `fetched` if its span is there.
    pub fn state_with(&self, tag: Tag, fetched: &Fetched) -> TagState {
        match self.state(tag) {
            TagState::Spilled(span) => match fetched.spans.get(&span.id) {
                // UND-6
                Some(bytes) => span.find(bytes, tag).map_or(TagState::Gone, TagState::InMemory),
                None => TagState::Spilled(span),
            },
            look => look,
        }
    }

    /// Frees a record if it still stands under its tag; returns whether it did.
    pub fn free(&self, tag: Tag, record: &Arc<UndoRecord>) -> bool {
        let (index, number, place) = locate(tag);
        let mut shard = self.shards[index].lock();
        if let Some(spot) = record.spot() {
            return match shard.spans.range(..=number).next_back() {
                Some((_, span)) if number <= span.last && span.id == spot.span => span.free(spot.index, record),
                _ => false,
            };
        }
        let current = shard.current;
        let Some(chunk) = shard.chunks.get_mut(&number) else {
            return false;
        };
        let Some(slot) = chunk.places.get_mut(place) else {
            return false;
        };
        if !slot.as_ref().is_some_and(|standing| Arc::ptr_eq(standing, record)) {
            return false;
        }
        assert!(chunk.live > 0, "UND-4: a chunk counts its records");
        *slot = None;
        chunk.live -= 1;
        let mut bytes = record.bytes() as i64;
        if chunk.live == 0 && current != Some(number) {
            shard.chunks.remove(&number);
            bytes += CHUNK_BYTES;
        }
        drop(shard);
        self.weigh(index, -bytes);
        true
    }

    /// Replaces a record if it still stands under its tag in memory; returns whether it did.
    pub(super) fn replace(&self, tag: Tag, record: &Arc<UndoRecord>, by: UndoRecord) -> bool {
        self.replace_by(tag, record, Arc::new(by))
    }

    fn replace_by(&self, tag: Tag, record: &Arc<UndoRecord>, by: Arc<UndoRecord>) -> bool {
        let (index, number, place) = locate(tag);
        let change = by.bytes() as i64 - record.bytes() as i64;
        let mut shard = self.shards[index].lock();
        let slot = shard.chunks.get_mut(&number).and_then(|chunk| chunk.places.get_mut(place)).and_then(Option::as_mut);
        let Some(slot) = slot.filter(|standing| Arc::ptr_eq(standing, record)) else {
            return false;
        };
        *slot = by;
        drop(shard);
        self.weigh(index, change);
        true
    }

    /// Makes all new tags lie above `high_water`, the highest tag given out before a restart.
    pub fn raise(&self, high_water: Tag) {
        let chunk = (high_water.0 >> PLACE_BITS) / SHARDS as u64 + 1;
        self.next_chunk.fetch_max(chunk, Ordering::Relaxed);
    }

    /// UND-5: bytes held in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().map(|b| b.load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
    }

    /// No tag above this has been given out.
    pub fn high_water(&self) -> Tag {
        Tag(((self.next_chunk.load(Ordering::Relaxed) * SHARDS as u64) + SHARDS as u64) << PLACE_BITS)
    }

    /// The shard whose oldest full chunk is the oldest of all.
    pub(super) fn oldest_shard(&self, skip: &[bool; SHARDS]) -> Option<usize> {
        let oldest = |index: &usize| {
            let shard = self.shards[*index].lock();
            shard.chunks.keys().find(|number| shard.current != Some(**number)).copied()
        };
        let shards = (0..SHARDS).filter(|index| !skip[*index]);
        shards.filter_map(|index| oldest(&index).map(|number| (number, index))).min().map(|(_, index)| index)
    }

    /// UND-5: the oldest consecutive chunks of a shard that can be spilled, about `bytes` of them.
    pub(super) fn gather(&self, index: usize, bytes: usize) -> Batch {
        let shard = self.shards[index].lock();
        let (mut batch, mut weight) = (Batch::default(), 0);
        for (number, chunk) in &shard.chunks {
            let records = || chunk.places.iter().flatten();
            // A change that is not logged yet gets its LSN in place.
            let unlogged = |r: &Arc<UndoRecord>| matches!(r.writer, Writer::Live(_)) && r.lsn() == Lsn::ZERO;
            let gap = batch.chunks.first().is_some_and(|first| shard.spans.range(*first..*number).next().is_some());
            if shard.current == Some(*number) || gap || records().any(unlogged) {
                if batch.chunks.is_empty() {
                    continue;
                }
                break;
            }
            batch.chunks.push(*number);
            for (place, record) in chunk.places.iter().enumerate() {
                if let Some(record) = record {
                    batch.records.push((Tag((number << PLACE_BITS) | place as u64), record.clone()));
                    weight += record.bytes();
                }
            }
            if weight >= bytes {
                break;
            }
        }
        batch
    }

    /// Moves a batch that has been written from the chunks to `span` (UND-4). False, and nothing is moved, if a record was replaced since.
    pub(super) fn spilled(&self, index: usize, batch: &Batch, span: Arc<Span>) -> bool {
        let mut shard = self.shards[index].lock();
        let mut bytes = -(span.memory() as i64);
        let ends = (batch.chunks.first().copied(), batch.chunks.last().copied());
        assert_eq!((Some(span.first), Some(span.last)), ends, "UND-4: a span is of the chunks that it replaces");
        assert!(
            batch.chunks.iter().all(|number| shard.current != Some(*number)),
            "UND-4: a chunk that is filled stays"
        );
        for (at, (tag, record)) in batch.records.iter().enumerate() {
            let (_, number, place) = locate(*tag);
            match shard.chunks.get(&number).and_then(|chunk| chunk.places.get(place)).and_then(Option::as_ref) {
                None => _ = span.free(at as u32, record),
                Some(standing) if Arc::ptr_eq(standing, record) => bytes += record.bytes() as i64,
                Some(_) => return false,
            }
        }
        for number in &batch.chunks {
            if shard.chunks.remove(number).is_some() {
                bytes += CHUNK_BYTES;
            }
        }
        let before = shard.spans.insert(span.first, span);
        assert!(before.is_none(), "UND-4: two spans begin with one chunk");
        drop(shard);
        self.weigh(index, -bytes);
        true
    }

    /// All spans.
    pub(super) fn spans(&self) -> Vec<(usize, Arc<Span>)> {
        let of = |index: usize| {
            let shard = self.shards[index].lock();
            shard.spans.values().map(|span| (index, span.clone())).collect::<Vec<_>>()
        };
        (0..SHARDS).flat_map(of).collect()
    }

    /// Replaces a run of spans by `by`, or removes the run if none of its records is needed.
    pub(super) fn respan(&self, index: usize, run: &[Arc<Span>], by: Option<Moved<'_>>) {
        let mut shard = self.shards[index].lock();
        let mut bytes = 0;
        for span in run {
            let was = shard.spans.remove(&span.first);
            assert!(was.is_some_and(|was| Arc::ptr_eq(&was, span)), "UND-4: only one changes spans at a time");
            bytes -= span.memory() as i64;
        }
        if let Some(Moved { span, records, spots }) = by {
            assert_eq!(records.len(), spots.len(), "UND-4: each record of a span comes from a place");
            assert!(
                run.first().is_some_and(|old| old.first == span.first),
                "UND-4: a span begins as those that it replaces"
            );
            assert!(
                run.last().is_some_and(|old| old.last == span.last),
                "UND-4: a span ends as those that it replaces"
            );
            // Records that were freed since the old spans were read.
            for (at, (spot, (_, record))) in spots.iter().zip(records).enumerate() {
                if run.iter().any(|old| old.id == spot.span && old.is_freed(spot.index)) {
                    span.free(at as u32, record);
                }
            }
            bytes += span.memory() as i64;
            let before = shard.spans.insert(span.first, span);
            assert!(before.is_none(), "UND-4: two spans begin with one chunk");
        }
        drop(shard);
        self.weigh(index, bytes);
    }

    /// Whether chunks of a shard between two numbers are in memory.
    pub(super) fn has_chunks(&self, index: usize, from: u64, to: u64) -> bool {
        self.shards[index].lock().chunks.range(from..to).next().is_some()
    }

    /// Calls `f` for every record in memory.
    pub fn for_each(&self, mut f: impl FnMut(&UndoRecord)) {
        for shard in &self.shards {
            let records: Vec<Arc<UndoRecord>> = {
                let shard = shard.lock();
                shard.chunks.values().flat_map(|chunk| chunk.places.iter().flatten().cloned()).collect()
            };
            records.iter().for_each(|record| f(record));
        }
    }
}

/// Shard, chunk number and place of a tag.
pub(super) fn locate(tag: Tag) -> (usize, u64, usize) {
    let number = tag.0 >> PLACE_BITS;
    ((number % SHARDS as u64) as usize, number, (tag.0 & (PLACES as u64 - 1)) as usize)
}
