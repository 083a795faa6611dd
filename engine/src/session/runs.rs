//! Sorts the entries that a statement loads: they gather in sorted runs, in memory, or in temporary files where memory does not suffice.
//!
//! # Life of an entry
//! ```text
//! pushed -> in the open chunk, which is sorted when it is full -> its run is full: the run's chunks are merged into a temporary file
//!        -> [`FAN`] runs of one level: merged into a run of the next level
//!        -> `merged`: the runs, or the chunks of the only one, are merged on the way to the reader
//! ```
//!
//! # Invariants
//! - SRT-1: a run in memory takes at most the bytes that it is given and that the statement's memory account grants, or one chunk.
//! - SRT-2: at most [`FAN`] - 1 runs of a level exist at a time, so the number of open files and of read buffers grows with the logarithm
//!   of the number of entries.
//! - SRT-3: entries with equal keys may come in any order; none is lost or doubled.
//!
//! # Crash safety
//! A temporary file has no name (storage/src/temp_files.rs).

use std::sync::Arc;

use clearway_base::memory::{self, Held, Kind};
use clearway_base::sync::yield_now;
use clearway_storage::error::StorageError;
use clearway_storage::temp_files::{TempFile, TempFiles, TempReader};

use crate::table::by_head::{self, Headed, head_of};

/// The most bytes that a run takes.
pub(super) const RUN_BYTES: usize = 256 << 20;
/// Entries of a chunk; sorting a chunk takes some milliseconds.
const CHUNK_ENTRIES: usize = 128 << 10;
/// The most bytes of a chunk, about.
const CHUNK_BYTES: usize = 16 << 20;
/// How many entries a merge puts in before it yields to other tasks.
pub(super) const BREATH_ENTRIES: u64 = 1_024;
/// Value of `prefix` for an entry that is not subject to uniqueness.
pub(super) const FREE: u16 = u16::MAX;

/// Where an entry stands in its chunk.
#[derive(Clone, Copy, Default)]
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

impl Headed for Place {
    fn head(&self) -> u64 {
        self.head
    }
}

/// So many runs of a level are merged into one.
const FAN: usize = 24;
/// The block in which a run is read back, in bytes.
const READ_BYTES: usize = 128 << 10;
/// What stands before the key of an entry in a file: the lengths of the key and of its unique part.
const ENTRY_HEAD: usize = 4;

/// Entries; in the order of their keys once sorted.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Chunk {
    /// An entry of an index.
    fn push(&mut self, prefix: &[u8], row_key: &[u8], constrains: bool) {
        self.put(prefix, row_key, &[], if constrains { prefix.len() } else { usize::from(FREE) });
    }

    /// A row of a table, whose key is unique.
    fn push_row(&mut self, key: &[u8], value: &[u8]) {
        self.put(key, &[], value, key.len());
    }

    fn put(&mut self, first: &[u8], rest: &[u8], value: &[u8], unique: usize) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(rest);
        let key = &self.bytes[at..];
        let head = head_of(key);
        // The load refuses keys of more than KEY_BYTES_MAX bytes. A longer key is cut here and refused there.
        let key_len = u16::try_from(key.len()).unwrap_or(u16::MAX - 1);
        let prefix = if unique == usize::from(FREE) { FREE } else { u16::try_from(unique).unwrap_or(u16::MAX - 1) };
        self.bytes.truncate(at + usize::from(key_len));
        self.bytes.extend_from_slice(value);
        assert!(u32::try_from(self.bytes.len()).is_ok(), "places in a chunk have four bytes");
        let (at, value_len) = (at as u32, value.len() as u32);
        self.places.push(Place { head, at, value_len, len: key_len, prefix });
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
        by_head::sort(&mut self.places, |alike| alike.sort_unstable_by(|a, b| key(a).cmp(key(b))));
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>()
    }
}

/// A run in memory: sorted chunks, and the open chunk that is being filled.
#[derive(Default)]
struct Run {
    chunks: Vec<Chunk>,
    open: Chunk,
    bytes: usize,
}

impl Run {
    fn close_chunk(&mut self) {
        let mut chunk = std::mem::take(&mut self.open);
        if !chunk.places.is_empty() {
            chunk.sort();
            self.bytes += chunk.heap_bytes();
            self.chunks.push(chunk);
        }
    }
}

/// A heap of places in ways of sorted entries: at its top stands the way with the least key.
struct Heap {
    /// First bytes of the key that a way has next, and the number of the way.
    order: Vec<(u64, u32)>,
}

impl Heap {
    fn new(ways: impl Iterator<Item = (u64, u32)>, less: impl Fn(u32, u32) -> bool) -> Heap {
        let mut heap = Heap { order: ways.collect() };
        for at in (0..heap.order.len() / 2).rev() {
            heap.sink(at, &less);
        }
        heap
    }

    fn top(&self) -> Option<u32> {
        self.order.first().map(|(_, way)| *way)
    }

    /// The way at the top has moved on to a key with this head; none: it has ended. `less` compares two ways whose heads are equal.
    fn moved(&mut self, head: Option<u64>, less: impl Fn(u32, u32) -> bool) {
        match head {
            Some(head) => self.order[0].0 = head,
            None => _ = self.order.swap_remove(0),
        }
        self.sink(0, &less);
    }

    fn sink(&mut self, mut at: usize, less: &impl Fn(u32, u32) -> bool) {
        let order = &mut self.order;
        let before = |a: (u64, u32), b: (u64, u32)| a.0 < b.0 || a.0 == b.0 && less(a.1, b.1);
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= order.len() {
                return;
            }
            let child = if right < order.len() && before(order[right], order[left]) { right } else { left };
            if !before(order[child], order[at]) {
                return;
            }
            order.swap(at, child);
            at = child;
        }
    }
}

/// An entry.
pub(super) struct Entry<'r> {
    pub(super) key: &'r [u8],
    pub(super) value: &'r [u8],
    /// How many bytes of the key have to be unique, or [`FREE`].
    pub(super) prefix: u16,
}

/// The merge of the chunks of a run in memory.
struct ChunkMerge {
    run: Run,
    /// By chunk: the entry that it has next.
    next: Vec<u32>,
    heap: Heap,
    is_begun: bool,
}

impl ChunkMerge {
    fn begin(run: Run) -> ChunkMerge {
        assert!(run.open.places.is_empty(), "SRT-3: the open chunk is closed before a merge");
        assert!(run.chunks.iter().all(|chunk| !chunk.places.is_empty()), "SRT-3: a chunk that is closed has entries");
        let next = vec![0; run.chunks.len()];
        let ways = run.chunks.iter().zip(0..).map(|(chunk, way)| (chunk.places[0].head, way));
        let less = |a: u32, b: u32| run.chunks[a as usize].key(0).0 < run.chunks[b as usize].key(0).0;
        let heap = Heap::new(ways, less);
        ChunkMerge { run, next, heap, is_begun: false }
    }

    fn next(&mut self) -> Option<Entry<'_>> {
        let (chunks, next) = (&self.run.chunks, &mut self.next);
        if std::mem::replace(&mut self.is_begun, true) {
            let way = self.heap.top()? as usize;
            next[way] += 1;
            let head = chunks[way].places.get(next[way] as usize).map(|place| place.head);
            let key = |way: u32| chunks[way as usize].key(next[way as usize] as usize).0;
            self.heap.moved(head, |a, b| key(a) < key(b));
        }
        let way = self.heap.top()? as usize;
        let (chunk, n) = (&chunks[way], next[way] as usize);
        let (key, prefix) = chunk.key(n);
        Some(Entry { key, value: chunk.value(n), prefix })
    }
}

/// The merge of runs in files.
struct FileMerge {
    ways: Vec<TempReader>,
    heap: Heap,
    is_begun: bool,
}

impl FileMerge {
    async fn begin(files: impl Iterator<Item = TempFile>) -> Result<FileMerge, StorageError> {
        let mut ways = Vec::new();
        for file in files {
            let mut reader = file.reader(0..file.end(), READ_BYTES);
            if reader.next_frame().await?.is_some() {
                ways.push(reader);
            }
        }
        for way in &ways {
            entry_of(way)?;
        }
        let heap =
            Heap::new(ways.iter().zip(0..).map(|(way, n)| (head_of(key_of(way)), n)), |a, b| is_less(&ways, a, b));
        Ok(FileMerge { ways, heap, is_begun: false })
    }

    async fn next(&mut self) -> Result<Option<Entry<'_>>, StorageError> {
        if std::mem::replace(&mut self.is_begun, true)
            && let Some(way) = self.heap.top()
        {
            let way = &mut self.ways[way as usize];
            let head = match way.next_frame().await? {
                Some(_) => Some(head_of(entry_of(way)?.key)),
                None => None,
            };
            let ways = &self.ways;
            self.heap.moved(head, |a, b| is_less(ways, a, b));
        }
        match self.heap.top() {
            Some(way) => entry_of(&self.ways[way as usize]).map(Some),
            None => Ok(None),
        }
    }
}

fn is_less(ways: &[TempReader], a: u32, b: u32) -> bool {
    key_of(&ways[a as usize]) < key_of(&ways[b as usize])
}

/// The key of the entry that a reader has read last, and that [`entry_of`] has found whole.
fn key_of(reader: &TempReader) -> &[u8] {
    entry_of(reader).map_or(&[], |entry| entry.key)
}

/// The entry that a reader has read last.
fn entry_of(reader: &TempReader) -> Result<Entry<'_>, StorageError> {
    let damage = || StorageError::from(reader.damaged("an entry of a sorted run"));
    let (head, rest) = reader.frame().split_first_chunk::<ENTRY_HEAD>().ok_or_else(damage)?;
    let [a, b, c, d] = *head;
    let (key_len, prefix) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    let (key, value) = rest.split_at_checked(usize::from(key_len)).ok_or_else(damage)?;
    if prefix != FREE && prefix > key_len {
        return Err(damage());
    }
    Ok(Entry { key, value, prefix })
}

/// Entries in the order of their keys.
pub(super) struct Merged {
    from: From,
    _held: Held,
}

enum From {
    Memory(ChunkMerge),
    Files(FileMerge),
}

impl Merged {
    /// The next entry.
    pub(super) async fn next(&mut self) -> Result<Option<Entry<'_>>, StorageError> {
        match &mut self.from {
            From::Memory(merge) => Ok(merge.next()),
            From::Files(merge) => merge.next().await,
        }
    }
}

/// A run in a file.
struct Spilled {
    level: u32,
    file: TempFile,
}

/// Entries on their way into an order.
pub(super) struct Runs {
    files: Arc<TempFiles>,
    /// The database whose files these are.
    owner: u32,
    run: Run,
    bytes_max: usize,
    /// The highest level first.
    spilled: Vec<Spilled>,
    held: Held,
}

impl Runs {
    /// For runs of at most so many bytes in memory.
    pub(super) fn new(files: &Arc<TempFiles>, owner: u32, bytes_max: usize) -> Runs {
        let held = Held::new(Kind::IndexBuild);
        Runs { files: files.clone(), owner, run: Run::default(), bytes_max, spilled: Vec::new(), held }
    }

    /// An entry of an index.
    pub(super) async fn push_entry(
        &mut self,
        prefix: &[u8],
        row_key: &[u8],
        constrains: bool,
    ) -> Result<(), StorageError> {
        self.run.open.push(prefix, row_key, constrains);
        self.pushed().await
    }

    /// A row of a table.
    pub(super) async fn push_row(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.run.open.push_row(key, value);
        self.pushed().await
    }

    async fn pushed(&mut self) -> Result<(), StorageError> {
        let open = &self.run.open;
        if open.places.len() < CHUNK_ENTRIES && open.heap_bytes() <= CHUNK_BYTES.min(self.bytes_max) {
            return Ok(());
        }
        self.run.close_chunk();
        self.held.measure();
        yield_now().await;
        let chunk = self.run.chunks.last().map_or(0, Chunk::heap_bytes);
        // SRT-1
        if self.run.bytes + chunk > self.bytes_max || memory::claim(2 * chunk).is_err() {
            self.spill().await?;
        }
        Ok(())
    }

    /// Moves the run in memory to a file.
    async fn spill(&mut self) -> Result<(), StorageError> {
        let mut file = self.files.create(self.owner).await?;
        let mut merge = ChunkMerge::begin(std::mem::take(&mut self.run));
        let mut count = 0u64;
        while let Some(entry) = merge.next() {
            append(&mut file, &entry).await?;
            count += 1;
            if count.is_multiple_of(BREATH_ENTRIES) {
                yield_now().await;
            }
        }
        file.flush().await?;
        drop(merge);
        self.held.measure();
        self.spilled.push(Spilled { level: 0, file });
        self.join_levels().await
    }

    /// SRT-2
    async fn join_levels(&mut self) -> Result<(), StorageError> {
        while let Some(level) = self.spilled.last().map(|run| run.level) {
            assert!(
                self.spilled.windows(2).all(|pair| pair[0].level >= pair[1].level),
                "SRT-2: the runs of a level are neighbours"
            );
            let from = self.spilled.iter().position(|run| run.level == level).unwrap_or(0);
            if self.spilled.len() - from < FAN {
                return Ok(());
            }
            let mut merge = FileMerge::begin(self.spilled.drain(from..).map(|run| run.file)).await?;
            let (mut file, mut count) = (self.files.create(self.owner).await?, 0u64);
            while let Some(entry) = merge.next().await? {
                append(&mut file, &entry).await?;
                count += 1;
                if count.is_multiple_of(BREATH_ENTRIES) {
                    yield_now().await;
                }
            }
            file.flush().await?;
            self.spilled.push(Spilled { level: level + 1, file });
        }
        Ok(())
    }

    /// All entries, in the order of their keys.
    pub(super) async fn merged(mut self) -> Result<Merged, StorageError> {
        self.run.close_chunk();
        if self.spilled.is_empty() {
            return Ok(Merged { from: From::Memory(ChunkMerge::begin(self.run)), _held: self.held });
        }
        if !self.run.chunks.is_empty() {
            self.spill().await?;
        }
        let merge = FileMerge::begin(self.spilled.drain(..).map(|run| run.file)).await?;
        Ok(Merged { from: From::Files(merge), _held: self.held })
    }
}

async fn append(file: &mut TempFile, entry: &Entry<'_>) -> Result<(), StorageError> {
    // Keys are at most KEY_BYTES_MAX long, or cut (see `put`).
    let key_len = u16::try_from(entry.key.len()).expect("SRT-3: a key of a run");
    file.append_frame_of(&[&key_len.to_le_bytes(), &entry.prefix.to_le_bytes(), entry.key, entry.value]).await
}
