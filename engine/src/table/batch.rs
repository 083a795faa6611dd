//! Batches of index entries: changes of entries are gathered and sorted, so that all entries of one leaf are changed under one latch.
//!
//! # Life of an entry
//! its row is changed -> noted here -> the batch is full: sorted by key, index by index, to a temporary file (`entry_runs`)
//!     -> the statement ends: the sorted entries, or the merge of what went to the file, are changed in runs, index by index
//!
//! # Invariants
//! - BAT-1: a statement applies its batch before it ends, and before anything reads the newest versions on its behalf (checks of foreign keys).
//!   So a snapshot that shows a row finds its entries (TAB-1): until then the row's tag belongs to a running transaction.
//! - BAT-2: insertions into a unique index are not noted here: TAB-2 is checked in the order of the rows. A deletion may wait: a transaction
//!   that meets the entry meanwhile asks for the row, finds the row's writer, and waits for that writer.
//! - BAT-3: entries with the same key are changed in the order in which they were noted.
//! - BAT-4: a batch, its sorting included, stays within the memory of a statement's workspace, or within 8 MB where that is less. It takes no memory that its statement's account refuses: before it may become twice as large it asks for the room that it could then take,
//!   its sorting included, and is full where it does not get it. So a statement with little memory makes more and smaller batches, and does not fail for them.
//! - BAT-5: a leaf of an index meets the entries of a statement in one run, or in one of each [`RUNS_MAX`](super::entry_runs::RUNS_MAX) batches: a second run finds leaves in
//!   which the rows of the first one share a tag. There each further row has eight bytes for its own, and full leaves are split for them.

use std::ops::Range;

use clearway_base::memory;
use clearway_base::sync::yield_now;
use clearway_txn::transaction::{Basis, Change, RunChange, Transaction};

use super::by_head::{self, Headed, head_of};
use super::entry_copies::EntryCopies;
use super::entry_runs::{EntryRuns, Marked};
use super::shape::{IndexShape, TableShape};
use super::write;
use crate::codec::key::{decode_int, encode_ref};
use crate::codec::places::Places;
use crate::error::EngineError;
use crate::value::{Value, ValueRef};

/// The least and the most bytes of the entries of all indexes that a batch holds, about, with what sorting takes.
const BYTES_MIN: usize = 8 << 20;
const BYTES_MAX: usize = 64 << 20;
/// So much a batch may hold once it has asked for the first time.
const BYTES_FIRST: usize = 64 << 10;
/// So many entries are given to a run: several leaves of them, since those of one run share undo records leaf by leaf.
const RUN_ENTRIES: usize = 4_096;

#[derive(Clone, Copy, Default)]
struct EntryPlace {
    /// The first bytes of the key.
    head: u64,
    at: u32,
    /// Twice the key's length, and one more if the entry is to be inserted: a place takes 16 bytes.
    len_inserts: u32,
}

impl EntryPlace {
    fn range(&self) -> Range<usize> {
        let at = self.at as usize;
        at..at + self.len()
    }

    fn len(&self) -> usize {
        (self.len_inserts >> 1) as usize
    }
}

impl Headed for EntryPlace {
    fn head(&self) -> u64 {
        self.head
    }
}

/// BAT-3: puts places in the order of their keys; those of one key stay in their order.
fn sort(bytes: &[u8], places: &mut Vec<EntryPlace>) {
    let key = |place: &EntryPlace| &bytes[place.range()];
    by_head::sort(places, |alike| alike.sort_by(|a, b| key(a).cmp(key(b))));
}

/// The entries of one index.
#[derive(Default)]
struct List {
    bytes: Vec<u8>,
    noted: Vec<EntryPlace>,
}

impl List {
    /// Adds an entry, whose key is appended.
    fn note(&mut self, inserts: bool, append: impl FnOnce(&mut Vec<u8>)) {
        let at = self.bytes.len();
        append(&mut self.bytes);
        let key = &self.bytes[at..];
        let head = head_of(key);
        assert!(self.bytes.len() < 1 << 31, "places in a batch of entries have 31 bits");
        let len_inserts = (key.len() as u32) << 1 | u32::from(inserts);
        self.noted.push(EntryPlace { head, at: at as u32, len_inserts });
    }

    /// Takes back the entry that was noted last.
    fn take_back(&mut self) {
        if let Some(last) = self.noted.pop() {
            self.bytes.truncate(last.at as usize);
        }
    }
}

/// How the entries of deleted rows are made of rows as they are stored.
pub(crate) struct StoredEntries {
    copies: Option<EntryCopies>,
    places: Option<Places>,
}

impl StoredEntries {
    /// Of a table whose indexes are all plain.
    pub(crate) fn of(shape: &TableShape) -> StoredEntries {
        let places = entry_places(shape);
        StoredEntries { copies: places.as_ref().and_then(|places| EntryCopies::of(shape, places)), places }
    }
}

/// Where the columns of which entries are made stand in a row without nulls, of indexes that are all plain.
fn entry_places(shape: &TableShape) -> Option<Places> {
    let is_read = |column: &usize| shape.indexes.iter().any(|index| index.columns.contains(column));
    let (stored, storages) = shape.stored_now();
    let columns: Vec<_> =
        storages.iter().zip(stored).map(|(s, column)| (*s, is_read(column).then_some(*column))).collect();
    Places::of(shape.version(), &columns)
}

/// Puts the columns of a row's key in their places; false: not all of them are plain integers.
fn key_refs(shape: &TableShape, key: &[u8], columns: &mut [ValueRef<'_>]) -> bool {
    let mut rest = key;
    for (position, form) in shape.key.iter().zip(shape.key_columns()) {
        let Some((int, after)) = decode_int(*form, rest) else { return false };
        (columns[*position], rest) = (ValueRef::Int(int), after);
    }
    true
}

/// Entries that are changed together, in their order.
#[derive(Default)]
struct Part {
    /// The keys, one behind the other: in the order of the keys each stands elsewhere among the bytes of the batch, and copies wait for memory side by side, where
    /// the changes of a leaf would wait one after the other.
    keys: Vec<u8>,
    marks: Vec<u32>,
}

impl Part {
    fn push(&mut self, (key, mark): Marked<'_>) {
        self.keys.extend_from_slice(key);
        self.marks.push(mark);
    }

    /// Changes its entries, and empties it.
    async fn change(&mut self, txn: &mut Transaction, index: &IndexShape) -> Result<(), EngineError> {
        let tree = index.entries(txn.all());
        let mut rest = &self.keys[..];
        let mut changes: Vec<RunChange<'_>> = Vec::with_capacity(self.marks.len());
        for mark in &self.marks {
            let (key, behind) = rest.split_at((mark >> 1) as usize);
            let change = match mark & 1 == 1 {
                true => Change::Insert { value: &[] },
                false => Change::Delete { moved_to: None },
            };
            changes.push(RunChange { key, change });
            rest = behind;
        }
        let mut done = 0;
        while done < changes.len() {
            done += txn.change_run(tree, &changes[done..], Basis::Locked, true).await?;
            if let Some(left) = changes.get(done) {
                match left.change {
                    Change::Insert { .. } => write::put_entry(txn, index, left.key).await?,
                    _ => write::remove_entry(txn, index, left.key).await?,
                }
                done += 1;
            }
        }
        drop(changes);
        self.keys.clear();
        self.marks.clear();
        yield_now().await;
        Ok(())
    }
}

/// The entries of a table's indexes that are to be changed.
pub struct EntryBatch {
    /// By the index's place in the shape.
    lists: Vec<List>,
    /// Bytes that it may have.
    bytes_max: usize,
    /// Bytes up to which it has asked for its memory (BAT-4).
    granted: usize,
    /// Those that it has no room for (BAT-5).
    runs: Option<EntryRuns>,
}

impl Default for EntryBatch {
    fn default() -> EntryBatch {
        EntryBatch { lists: Vec::new(), bytes_max: BYTES_MIN, granted: 0, runs: None }
    }
}

impl EntryBatch {
    /// One that is full with so many bytes, for tests.
    #[doc(hidden)]
    pub fn of_bytes(bytes_max: usize) -> EntryBatch {
        EntryBatch { bytes_max, ..EntryBatch::default() }
    }

    /// The batch is of a statement whose workspaces may have so many bytes.
    pub fn stay_within(&mut self, work_bytes: usize) {
        self.bytes_max = work_bytes.clamp(BYTES_MIN, BYTES_MAX);
    }

    /// The entry of a row, if it has one, is to be inserted into, or deleted from, the index at a place of `shape.indexes`.
    pub(crate) fn note(
        &mut self,
        shape: &TableShape,
        index: usize,
        row_key: &[u8],
        row: &[Value],
        inserts: bool,
    ) -> Result<(), EngineError> {
        let of = &shape.indexes[index];
        if of.is_plain() {
            self.note_made(shape, index, row_key, inserts, |out| of.prefix_into(row, out));
        } else if let Some(entry) = of.entry_of(row)? {
            self.note_entry(shape, index, row_key, &entry.prefix, inserts);
        }
        Ok(())
    }

    /// The entries of a row as it is stored are to be deleted from indexes that are all plain. `columns` has a place for each column of the table.
    pub(crate) fn note_deleted<'v>(
        &mut self,
        (shape, stored): (&TableShape, &StoredEntries),
        (row_key, value): (&[u8], &'v [u8]),
        columns: &mut [ValueRef<'v>],
    ) -> Result<(), EngineError> {
        if self.note_copied(shape, stored, row_key, value) {
            return Ok(());
        }
        let in_place =
            stored.places.as_ref().is_some_and(|places| places.read_borrowed(value, |at, value| columns[at] = value));
        if !in_place && !shape.refs(value, columns)? || !key_refs(shape, row_key, columns) {
            let row = shape.row(row_key, value)?;
            return (0..shape.indexes.len()).try_for_each(|index| self.note(shape, index, row_key, &row, false));
        }
        for (place, index) in shape.indexes.iter().enumerate() {
            self.note_made(shape, place, row_key, false, |out| {
                index.columns.iter().zip(&index.key).for_each(|(c, form)| encode_ref(*form, columns[*c], out));
            });
        }
        Ok(())
    }

    /// The same by copies of the row's bytes (ECP-1); false: nothing is noted.
    #[inline]
    fn note_copied(&mut self, shape: &TableShape, stored: &StoredEntries, row_key: &[u8], value: &[u8]) -> bool {
        let Some(copies) = &stored.copies else { return false };
        let Some(parts) = copies.parts(value) else { return false };
        self.have_lists(shape);
        for index in 0..self.lists.len() {
            let mut whole = true;
            self.lists[index].note(false, |out| {
                whole = copies.append(index, parts, out);
                out.extend_from_slice(row_key);
            });
            if !whole {
                self.lists[..=index].iter_mut().for_each(List::take_back);
                return false;
            }
        }
        true
    }

    /// There is a list for each index.
    fn have_lists(&mut self, shape: &TableShape) {
        if self.lists.len() < shape.indexes.len() {
            self.lists.resize_with(shape.indexes.len(), List::default);
        }
    }

    /// The same, of an entry that was computed.
    pub(crate) fn note_entry(
        &mut self,
        shape: &TableShape,
        index: usize,
        row_key: &[u8],
        prefix: &[u8],
        inserts: bool,
    ) {
        self.note_made(shape, index, row_key, inserts, |out| out.extend_from_slice(prefix));
    }

    /// The same, of an entry whose first part `prefix` appends.
    fn note_made(
        &mut self,
        shape: &TableShape,
        index: usize,
        row_key: &[u8],
        inserts: bool,
        prefix: impl FnOnce(&mut Vec<u8>),
    ) {
        self.have_lists(shape);
        self.lists[index].note(inserts, |out| {
            prefix(out);
            out.extend_from_slice(row_key);
        });
    }

    /// Whether the batch needs room before more is noted ([`EntryBatch::make_room`]).
    pub(crate) fn is_full(&mut self) -> bool {
        let places = |list: &List| list.noted.len() * size_of::<EntryPlace>();
        let lists: usize = self.lists.iter().map(|list| list.bytes.len() + places(list)).sum();
        // BAT-4: the lists are sorted one after the other, each with a second list of its places.
        let bytes = lists + self.lists.iter().map(places).max().unwrap_or(0);
        if bytes <= self.granted {
            return false;
        }
        let (max, next) = (self.bytes_max, (2 * bytes).max(BYTES_FIRST));
        // BAT-4: its lists grow by doubling.
        if bytes >= max || !memory::has_room(3 * next) {
            return true;
        }
        self.granted = next.min(max);
        false
    }

    /// Makes room: what was noted goes to a temporary file of the database `owner`, or is applied where much has gone there before (BAT-5).
    pub(crate) async fn make_room(
        &mut self,
        txn: &mut Transaction,
        shape: &TableShape,
        owner: u32,
    ) -> Result<(), EngineError> {
        if self.runs.as_ref().is_some_and(EntryRuns::are_many) {
            return self.apply(txn, shape).await;
        }
        if self.runs.is_none() {
            let file = txn.all().store().temp_files().create(owner).await?;
            self.runs = Some(EntryRuns::new(file));
        }
        self.write_run().await
    }

    /// The lists go to the file.
    async fn write_run(&mut self) -> Result<(), EngineError> {
        self.granted = 0;
        let (Some(runs), lists) = (&mut self.runs, std::mem::take(&mut self.lists)) else { return Ok(()) };
        runs.begin();
        for List { bytes, mut noted } in lists {
            sort(&bytes, &mut noted);
            runs.append(noted.iter().map(|place| (&bytes[place.range()], place.len_inserts))).await?;
        }
        Ok(runs.end().await?)
    }

    /// Changes the entries that were noted.
    pub(crate) async fn apply(&mut self, txn: &mut Transaction, shape: &TableShape) -> Result<(), EngineError> {
        let mut part = Part::default();
        if self.runs.is_some() {
            self.write_run().await?;
        }
        if let Some(runs) = self.runs.take() {
            for (place, index) in shape.indexes.iter().enumerate() {
                let mut merge = runs.merged(place).await?;
                loop {
                    merge.take(RUN_ENTRIES, &mut |entry| part.push(entry)).await?;
                    if part.marks.is_empty() {
                        break;
                    }
                    part.change(txn, index).await?;
                }
            }
            return Ok(());
        }
        self.granted = 0;
        for (index, list) in shape.indexes.iter().zip(std::mem::take(&mut self.lists)) {
            let List { bytes, mut noted } = list;
            sort(&bytes, &mut noted);
            for places in noted.chunks(RUN_ENTRIES) {
                places.iter().for_each(|place| part.push((&bytes[place.range()], place.len_inserts)));
                part.change(txn, index).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::for_each_seed;
    use clearway_base::testkit::Rng;

    /// Keys of few bytes, of which many are equal, or share their first eight.
    fn noted(rng: &mut Rng, count: usize) -> List {
        let mut list = List::default();
        for n in 0..count {
            let shared = rng.below(3) * 4;
            let key: Vec<u8> = (0..shared + 1 + rng.below(4))
                .map(|at| if at < shared { 7 } else { rng.below(3) as u8 * 100 })
                .collect();
            list.note(n % 2 == 0, |out| out.extend_from_slice(&key));
        }
        list
    }

    #[test]
    fn places_are_sorted_by_key_and_those_of_one_key_stay_in_their_order() {
        // BAT-3
        for_each_seed!(20, |seed| {
            let mut rng = Rng::new(seed);
            for count in [0, 1, 300, 512, 3_000] {
                let List { bytes, mut noted } = noted(&mut rng, count);
                let mut expected: Vec<u32> = noted.iter().map(|place| place.at).collect();
                let ranges: std::collections::BTreeMap<u32, Range<usize>> =
                    noted.iter().map(|place| (place.at, place.range())).collect();
                expected.sort_by_key(|at| (&bytes[ranges[at].clone()], *at));
                sort(&bytes, &mut noted);
                assert_eq!(noted.iter().map(|place| place.at).collect::<Vec<_>>(), expected, "{count} places");
            }
        });
    }
}
