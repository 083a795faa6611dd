//! Batches of index entries: changes of entries are gathered and sorted, so that all entries of one leaf are changed under one latch.
//!
//! # Life of an entry
//! its row is changed -> noted here -> the batch is full, or the statement ends: sorted by key, index by index -> changed in runs
//!
//! # Invariants
//! - BAT-1: a statement applies its batch before it ends, and before anything reads the newest versions on its behalf (checks of foreign keys).
//!   So a snapshot that shows a row finds its entries (TAB-1): until then the row's tag belongs to a running transaction.
//! - BAT-2: insertions into a unique index are not noted here: TAB-2 is checked in the order of the rows. A deletion may wait: a transaction
//!   that meets the entry meanwhile asks for the row, finds the row's writer, and waits for that writer.
//! - BAT-3: entries with the same key are changed in the order in which they were noted.
//! - BAT-4: a batch takes no memory that its statement's account refuses: before it may become twice as large it asks for the room that it could then take,
//!   its sorting included, and is full where it does not get it. So a statement with little memory makes more and smaller batches, and does not fail for them.

use std::ops::Range;

use clearway_base::memory;
use clearway_base::sync::yield_now;
use clearway_txn::transaction::{Basis, Change, RunChange, Transaction};

use super::shape::TableShape;
use super::write;
use crate::codec::key::{decode_int, encode_ref};
use crate::codec::places::Places;
use crate::error::EngineError;
use crate::value::{Value, ValueRef};

/// The least and the most bytes of the entries of all indexes that a batch holds, about. A second batch of one statement finds leaves in which the rows of the
/// first one share a tag: there each further row has eight bytes for its own, and full leaves are split for them. With 8 MB for 150,000 deleted rows with two
/// entries each, that was a quarter of the statement.
const BYTES_MIN: usize = 8 << 20;
const BYTES_MAX: usize = 32 << 20;
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

    fn inserts(&self) -> bool {
        self.len_inserts & 1 == 1
    }
}

/// Fewer places are sorted by comparisons alone.
const COUNTED_MIN: usize = 512;

/// BAT-3: puts places in the order of their keys; those of one key stay in their order.
fn sort(bytes: &[u8], places: &mut Vec<EntryPlace>) {
    let key = |place: &EntryPlace| &bytes[place.range()];
    if places.len() < COUNTED_MIN {
        places.sort_by(|a, b| a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))));
        return;
    }
    sort_by_heads(places);
    for alike in places.chunk_by_mut(|a, b| a.head == b.head).filter(|alike| alike.len() > 1) {
        alike.sort_by(|a, b| key(a).cmp(key(b)));
    }
}

/// Sorts by the first bytes of the keys, byte by byte from the last one on: a comparison costs as much as all the steps of a place, and there are some
/// seventeen comparisons for each.
fn sort_by_heads(places: &mut Vec<EntryPlace>) {
    let digit = |place: &EntryPlace, byte: usize| usize::from(place.head.to_le_bytes()[byte]);
    let mut counts = [[0_u32; 256]; 8];
    for place in places.iter() {
        counts.iter_mut().enumerate().for_each(|(byte, counts)| counts[digit(place, byte)] += 1);
    }
    let mut sorted: Vec<EntryPlace> = Vec::new();
    for (byte, counts) in counts.iter_mut().enumerate() {
        if counts[digit(&places[0], byte)] as usize == places.len() {
            continue;
        }
        let mut before = 0;
        counts.iter_mut().for_each(|count| before += std::mem::replace(count, before));
        sorted.resize(places.len(), EntryPlace::default());
        for place in places.iter() {
            let next = &mut counts[digit(place, byte)];
            sorted[*next as usize] = *place;
            *next += 1;
        }
        std::mem::swap(places, &mut sorted);
    }
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
        let head = key.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            head
        });
        assert!(self.bytes.len() < 1 << 31, "places in a batch of entries have 31 bits");
        let len_inserts = (key.len() as u32) << 1 | u32::from(inserts);
        self.noted.push(EntryPlace { head: u64::from_be_bytes(head), at: at as u32, len_inserts });
    }
}

/// Where the columns of which entries are made stand in a row without nulls, of indexes that are all plain.
pub(crate) fn entry_places(shape: &TableShape) -> Option<Places> {
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

/// The entries of a table's indexes that are to be changed.
#[derive(Default)]
pub struct EntryBatch {
    /// By the index's place in the shape.
    lists: Vec<List>,
    /// Bytes that it may have beyond the least.
    more_bytes: usize,
    /// Bytes up to which it has asked for its memory (BAT-4).
    granted: usize,
}

impl EntryBatch {
    /// The batch is of a statement whose workspaces may have so many bytes: it holds up to half of them.
    pub fn stay_within(&mut self, work_bytes: usize) {
        self.more_bytes = (work_bytes / 2).clamp(BYTES_MIN, BYTES_MAX) - BYTES_MIN;
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

    /// The entries of a row as it is stored are to be deleted from indexes that are all plain. `columns` has a place for each column of the table; `places`
    /// are the [`entry_places`].
    pub(crate) fn note_deleted<'v>(
        &mut self,
        (shape, places): (&TableShape, Option<&Places>),
        (row_key, value): (&[u8], &'v [u8]),
        columns: &mut [ValueRef<'v>],
    ) -> Result<(), EngineError> {
        let in_place = places.is_some_and(|places| places.read_borrowed(value, |at, value| columns[at] = value));
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
        if self.lists.len() <= index {
            self.lists.resize_with(shape.indexes.len(), List::default);
        }
        self.lists[index].note(inserts, |out| {
            prefix(out);
            out.extend_from_slice(row_key);
        });
    }

    /// Whether the batch is to be applied before more is noted.
    pub(crate) fn is_full(&mut self) -> bool {
        let bytes = |list: &List| list.bytes.len() + list.noted.len() * size_of::<EntryPlace>();
        let bytes = self.lists.iter().map(bytes).sum::<usize>();
        if bytes <= self.granted {
            return false;
        }
        let (max, next) = (BYTES_MIN + self.more_bytes, (2 * bytes).max(BYTES_FIRST));
        // BAT-4: its lists grow by doubling, and sorting takes as much as a list of places.
        if bytes >= max || !memory::has_room(3 * next) {
            return true;
        }
        self.granted = next.min(max);
        false
    }

    /// Changes the entries that were noted.
    pub(crate) async fn apply(&mut self, txn: &mut Transaction, shape: &TableShape) -> Result<(), EngineError> {
        self.granted = 0;
        for (index, list) in shape.indexes.iter().zip(std::mem::take(&mut self.lists)) {
            let List { bytes, mut noted } = list;
            let key = |n: &EntryPlace| &bytes[n.range()];
            sort(&bytes, &mut noted);
            let tree = index.entries(txn.all());
            // The keys of a run, one behind the other: in the order of the keys each stands elsewhere among the bytes of the batch, and copies wait for memory
            // side by side, where the changes of a leaf would wait one after the other.
            let mut keys: Vec<u8> = Vec::new();
            for part in noted.chunks(RUN_ENTRIES) {
                let change = |n: &EntryPlace| match n.inserts() {
                    true => Change::Insert { value: &[] },
                    false => Change::Delete { moved_to: None },
                };
                keys.clear();
                part.iter().for_each(|n| keys.extend_from_slice(key(n)));
                let mut rest = &keys[..];
                let mut changes: Vec<RunChange<'_>> = Vec::with_capacity(part.len());
                for n in part {
                    let (key, behind) = rest.split_at(n.len());
                    changes.push(RunChange { key, change: change(n) });
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
                yield_now().await;
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
            for count in [0, 1, 300, COUNTED_MIN, 3_000] {
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
