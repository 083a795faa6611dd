//! Filling a new index from its table: the entries are sorted in memory and loaded bottom-up, with one log record for each page.
//!
//! # Life of a build
//! ```text
//! scan -> entries gather in chunks, each sorted when it is full -> a run is full, or the table ends -> its chunks are merged
//!   the first run   -> loaded into the empty tree (storage/src/btree/bulk.rs)
//!   the later ones  -> inserted one by one, in the order of their keys
//! ```
//!
//! # Invariants
//! - BLD-1: the transaction that fills the tree has created it, and the caller's lock keeps writers away from the table. So no other
//!   transaction sees a loaded entry before the commit, and undoing the creation of the tree removes all entries (BTR-14).
//! - BLD-2: loaded entries are settled: every snapshot would see them. The index's `valid_from_lsn` keeps snapshots that are older than the
//!   rows from reading the index (DB-2).
//! - BLD-3: two entries with the same key of a unique index are either neighbours in the merge, or the second is inserted by `insert_built`,
//!   which finds the first. So a duplicate is never loaded unnoticed.
//! - BLD-4: a run takes at most the bytes that it is given and that the statement's memory account grants; the table may be of any size.
//!
//! # Crash safety
//! Each page of the load is one structure record. A crash before the commit leaves a tree that the undo of its creation drops. The commit
//! record stands after all pages in the log, so once it is durable the whole index is there.
//!
//! # Not here
//! Runs beyond the first are not written to disk: their entries are inserted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use clearway_base::memory::{self, Held, Kind};
use clearway_base::sync::yield_now;
use clearway_storage::btree::{BulkLoad, Direction, KeyRange};
use clearway_txn::transaction::Transaction;

use super::Session;
use crate::error::EngineError;
use crate::table::scan::TableScan;
use crate::table::shape::{IndexShape, TableShape};
use crate::table::write;
use crate::value::Value;

/// The most bytes that a run takes.
pub const RUN_BYTES: usize = 256 << 20;
/// Entries of a chunk; sorting a chunk takes some milliseconds.
const CHUNK_ENTRIES: usize = 32 << 10;
/// The most bytes of a chunk, about.
const CHUNK_BYTES: usize = 16 << 20;
/// How many entries a merge puts in before it yields to other tasks.
pub(super) const BREATH_ENTRIES: u64 = 1_024;
/// Value of `prefix` for an entry that is not subject to uniqueness.
const FREE: u16 = u16::MAX;

/// Where an entry stands in its chunk.
#[derive(Clone, Copy)]
struct Place {
    /// The first eight bytes of the key, compared first.
    head: u64,
    at: u32,
    /// Bytes of the value, which follows the key.
    value_len: u32,
    len: u16,
    /// How many bytes of the key have to be unique, or [`FREE`].
    prefix: u16,
}

/// Entries; in the order of their keys once sorted.
#[derive(Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Chunk {
    /// An entry of an index.
    fn push(&mut self, prefix: &[u8], row_key: &[u8], constrains: bool) {
        self.put(prefix, row_key, &[], if constrains { prefix.len() } else { usize::from(FREE) });
    }

    /// A row of a table, whose key is unique.
    pub(super) fn push_row(&mut self, key: &[u8], value: &[u8]) {
        self.put(key, &[], value, key.len());
    }

    fn put(&mut self, first: &[u8], rest: &[u8], value: &[u8], unique: usize) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(rest);
        let key = &self.bytes[at..];
        let mut head = [0; 8];
        let len = key.len().min(8);
        head[..len].copy_from_slice(&key[..len]);
        // The load refuses keys of more than KEY_BYTES_MAX bytes. A longer key is cut here and refused there.
        let key_len = u16::try_from(key.len()).unwrap_or(u16::MAX - 1);
        let prefix = if unique == usize::from(FREE) { FREE } else { u16::try_from(unique).unwrap_or(u16::MAX - 1) };
        self.bytes.truncate(at + usize::from(key_len));
        self.bytes.extend_from_slice(value);
        let (at, value_len) = (at as u32, value.len() as u32);
        self.places.push(Place { head: u64::from_be_bytes(head), at, value_len, len: key_len, prefix });
    }

    fn value(&self, n: usize) -> &[u8] {
        let place = self.places[n];
        let at = place.at as usize + usize::from(place.len);
        &self.bytes[at..at + place.value_len as usize]
    }

    fn key(&self, n: usize) -> (&[u8], u16) {
        let place = self.places[n];
        (&self.bytes[place.at as usize..place.at as usize + usize::from(place.len)], place.prefix)
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |p: &Place| &bytes[p.at as usize..p.at as usize + usize::from(p.len)];
        self.places.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))));
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>()
    }
}

/// A run: sorted chunks, and the open chunk that is being filled.
pub(super) struct Run {
    chunks: Vec<Chunk>,
    pub(super) open: Chunk,
    bytes: usize,
    bytes_max: usize,
    held: Held,
}

impl Run {
    pub(super) fn new(bytes_max: usize) -> Run {
        Run { chunks: Vec::new(), open: Chunk::default(), bytes: 0, bytes_max, held: Held::new(Kind::IndexBuild) }
    }

    /// Sorts the open chunk and adds it to the sorted chunks.
    pub(super) async fn close_chunk(&mut self) {
        let mut chunk = std::mem::take(&mut self.open);
        chunk.sort();
        self.bytes += chunk.heap_bytes();
        self.chunks.push(chunk);
        self.held.measure();
        yield_now().await;
    }

    /// Whether the open chunk is to be closed.
    pub(super) fn has_chunk(&self) -> bool {
        let bytes = self.open.heap_bytes();
        self.open.places.len() == CHUNK_ENTRIES || bytes > CHUNK_BYTES.min(self.bytes_max)
    }

    /// The entries in the order of their keys: each once, with the chunk and the place in it.
    pub(super) fn sorted(&self) -> Sorted<'_> {
        let mut heap = BinaryHeap::with_capacity(self.chunks.len());
        for (chunk, entries) in self.chunks.iter().enumerate() {
            if !entries.places.is_empty() {
                heap.push(Reverse((entries.key(0).0, chunk, 0)));
            }
        }
        Sorted { run: self, heap }
    }

    /// Whether another chunk would exceed the limit of BLD-4.
    pub(super) fn is_full(&self) -> bool {
        let chunk = self.chunks.last().map_or(0, Chunk::heap_bytes);
        self.bytes + chunk > self.bytes_max || memory::claim(2 * chunk).is_err()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.open.places.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
        self.held.measure();
    }
}

/// The entries of a run in the order of their keys.
pub(super) struct Sorted<'r> {
    run: &'r Run,
    heap: BinaryHeap<Reverse<(&'r [u8], usize, usize)>>,
}

/// One of them.
pub(super) struct Entry<'r> {
    pub(super) key: &'r [u8],
    pub(super) value: &'r [u8],
    prefix: u16,
}

impl<'r> Iterator for Sorted<'r> {
    type Item = Entry<'r>;

    fn next(&mut self) -> Option<Entry<'r>> {
        let Reverse((key, chunk, n)) = self.heap.pop()?;
        let entries = &self.run.chunks[chunk];
        if n + 1 < entries.places.len() {
            self.heap.push(Reverse((entries.key(n + 1).0, chunk, n + 1)));
        }
        Some(Entry { key, value: entries.value(n), prefix: entries.key(n).1 })
    }
}

/// Where the entries of a merged run go.
enum Into<'a> {
    /// Into an empty tree, by a bulk load.
    Load(Box<BulkLoad>),
    /// Into a tree that already has entries, by inserts of this transaction.
    Insert(&'a mut Transaction),
}

/// Puts the entries of a run into the index in the order of their keys.
async fn merge(run: &Run, index: &IndexShape, into: &mut Into<'_>) -> Result<(), EngineError> {
    let mut last = &[][..];
    for (count, Entry { key, prefix, .. }) in (1u64..).zip(run.sorted()) {
        if count.is_multiple_of(BREATH_ENTRIES) {
            yield_now().await;
        }
        let unique = usize::from(prefix);
        // BLD-3
        if prefix != FREE && last.len() >= unique && last[..unique] == key[..unique] {
            return Err(EngineError::Duplicate { index: index.name.clone(), oid: index.oid });
        }
        match into {
            Into::Load(load) => load.push(key, &[]).await?,
            Into::Insert(txn) => write::insert_built(txn, index, key, (prefix != FREE).then_some(unique)).await?,
        }
        last = if prefix == FREE { &[] } else { key };
    }
    Ok(())
}

impl Session {
    /// Fills a new index from the newest rows of its table. The caller holds a lock that keeps writers away from the table, and the open
    /// transaction has created the index (BLD-1).
    ///
    /// # Errors
    /// `Duplicate`.
    pub async fn build_index(&mut self, shape: &Arc<TableShape>, index: usize) -> Result<(), EngineError> {
        self.build_index_by_runs(shape, index, RUN_BYTES).await
    }

    /// As [`Session::build_index`], with runs of at most `run_bytes`.
    ///
    /// # Errors
    /// `Duplicate`.
    pub async fn build_index_by_runs(
        &mut self,
        shape: &Arc<TableShape>,
        index: usize,
        run_bytes: usize,
    ) -> Result<(), EngineError> {
        let read_lsn = self.db.transactions().visible_lsn();
        let view = self.txn().view(read_lsn);
        let snapshot = self.reader.begin(|| read_lsn);
        let mut scan = self.scan(shape, KeyRange::all(), Direction::Forward, &view);
        let (mut run, mut is_first) = (Run::new(run_bytes), true);
        let built = loop {
            match self.gather(&mut scan, &shape.indexes[index], &mut run).await {
                Err(error) => break Err(error),
                Ok(_) if run.is_empty() => break Ok(()),
                Ok(more) => {
                    let put = self.put_run(&run, &shape.indexes[index], is_first).await;
                    run.clear();
                    is_first = false;
                    if put.is_err() || !more {
                        break put;
                    }
                }
            }
        };
        self.reader.end(snapshot);
        built
    }

    /// Reads rows until a run is full (returns true) or the table ends (returns false).
    async fn gather(&mut self, scan: &mut TableScan, index: &IndexShape, run: &mut Run) -> Result<bool, EngineError> {
        while let Some(found) = self.next(scan).await? {
            let row: &[Value] = &found.row;
            run.open.push(&index.prefix_of(row), &found.key, index.constrains(row));
            if run.has_chunk() {
                run.close_chunk().await;
                if run.is_full() {
                    return Ok(true);
                }
            }
        }
        if !run.open.places.is_empty() {
            run.close_chunk().await;
        }
        Ok(false)
    }

    async fn put_run(&mut self, run: &Run, index: &IndexShape, is_first: bool) -> Result<(), EngineError> {
        if !is_first {
            return merge(run, index, &mut Into::Insert(self.txn())).await;
        }
        let load = index.entries(self.db().transactions()).bulk_load();
        let mut into = Into::Load(Box::new(load));
        merge(run, index, &mut into).await?;
        if let Into::Load(load) = into {
            load.finish().await?;
        }
        Ok(())
    }
}
