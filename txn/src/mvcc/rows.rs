//! The rows that share an undo record: neighbours in a leaf that one run has changed in the same way, each with the value that it had before.
//!
//! # Invariants
//! - RSH-1: a record of several rows stands for as many changes as it has rows: each has a position in the log of its own (BTR-24), and names the change before it as
//!   the next to undo. They are consecutive changes of their transaction, in the order of their keys, and no mark stands between them: in their transaction they
//!   have one position.
//! - RSH-2: rows share a record only if each of them was settled before, for every snapshot, and the same becomes of all: new where there was none, a ghost, or
//!   another value with the same lock mode. None has its value in an overflow chain. So but for the value before, the record gives the right answer for each of
//!   them, it leads to no older version, and no snapshot can need it any more before all do: it is freed, never led past.
//! - RSH-5: the record has the value before of each of its rows, and a caller that asks for one names the row's key ([`UndoRecord::before_of`]). So readers of an old
//!   snapshot, the undo of a change, a checkpoint and the spill file have each row's own.
//!
//! [`UndoRecord::before_of`]: super::record::UndoRecord::before_of
//! - RSH-3: a row of a run loses the run's tag only to a later change, to the undo of its own change, or when the tag is settled. A record stays until all of its
//!   rows are undone.
//! - RSH-4: while rows may still be added to a record, it counts as not logged, though its rows are: so it is not spilled, and its writer alone replaces it.
//!   Before the writer waits, the record has all rows that are logged.
//!
//! # Crash safety
//! A restart finds the changes in the log one by one, and puts those together that have one tag ([`RunRows::of`]).

use std::cmp::Ordering;

use clearway_storage::ids::Lsn;
use clearway_storage::record::{BeforeImage, UndoEntry};

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where the row's key ends, and its value before, which follows the key.
    key_end: u32,
    end: u32,
    /// The position of its change; zero until it is logged.
    lsn: Lsn,
}

/// Keys of rows, their values before, and the positions of their changes in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRows {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl RunRows {
    /// The rows of changes that have one tag.
    pub(super) fn of(entries: &[UndoEntry]) -> RunRows {
        let mut rows = RunRows::default();
        for (n, entry) in entries.iter().enumerate() {
            let value = match &entry.before {
                BeforeImage::Absent => &[][..],
                BeforeImage::Row { value, .. } => value,
            };
            rows.note(&entry.key, value);
            rows.logged(n, entry.lsn);
        }
        rows
    }

    /// Adds the next row: its key, and its value before. Its change is to be logged.
    pub(crate) fn note(&mut self, key: &[u8], value: &[u8]) {
        if self.places.is_empty() {
            // A leaf has some dozen rows or more.
            self.bytes.reserve(16 * (key.len() + value.len()));
            self.places.reserve(16);
        }
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        assert!(u32::try_from(self.bytes.len()).is_ok(), "RSH-1: the rows of a leaf");
        self.places.push(Place { key_end, end: self.bytes.len() as u32, lsn: Lsn::ZERO });
    }

    /// The change of row number `n` has this position in the log, those of the rows before it have theirs.
    pub(crate) fn logged(&mut self, n: usize, lsn: Lsn) {
        let before = n.checked_sub(1).map(|before| self.places[before].lsn);
        assert!(before.is_none_or(|before| Lsn::ZERO < before && before < lsn), "RSH-1: {lsn} after {before:?}");
        self.places[n].lsn = lsn;
    }

    /// The position of the change of row number `n`.
    pub(crate) fn lsn(&self, n: usize) -> Option<Lsn> {
        self.places.get(n).map(|place| place.lsn)
    }

    /// The value before of the row with this key.
    pub(super) fn value_of(&self, key: &[u8]) -> Option<&[u8]> {
        let from = |n: usize| n.checked_sub(1).map_or(0, |before| self.places[before].end as usize);
        let key_at = |n: usize| &self.bytes[from(n)..self.places[n].key_end as usize];
        // RSH-1: in the order of their keys.
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match key_at(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    let place = self.places[middle];
                    return Some(&self.bytes[place.key_end as usize..place.end as usize]);
                }
            }
        }
        None
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Their keys, their values before, and the positions of their changes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], Lsn)> {
        let mut from = 0;
        self.places.iter().map(move |place| {
            let (key, value) = self.bytes[from..place.end as usize].split_at(place.key_end as usize - from);
            from = place.end as usize;
            (key, value, place.lsn)
        })
    }

    /// Gives back the room for more rows.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        size_of::<RunRows>() + 2 * size_of::<usize>() + self.bytes.len() + self.places.len() * size_of::<Place>()
    }

    /// Appends the rows in the form of the spill file.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.places.len() as u32).to_le_bytes());
        for place in &self.places {
            out.extend_from_slice(&place.key_end.to_le_bytes());
            out.extend_from_slice(&place.end.to_le_bytes());
            out.extend_from_slice(&place.lsn.0.to_le_bytes());
        }
        out.extend_from_slice(&self.bytes);
    }

    /// Decodes what [`RunRows::encode`] wrote; `None` if the bytes are damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<RunRows> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        if count > rest.len() / 16 {
            return None;
        }
        let (mut places, mut before) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let (key_end, after) = rest.split_first_chunk::<4>()?;
            let (end, after) = after.split_first_chunk::<4>()?;
            let (lsn, after) = after.split_first_chunk::<8>()?;
            let (key_end, end) = (u32::from_le_bytes(*key_end), u32::from_le_bytes(*end));
            let place = Place { key_end, end, lsn: Lsn(u64::from_le_bytes(*lsn)) };
            if key_end < before || end < key_end {
                return None;
            }
            before = place.end;
            places.push(place);
            rest = after;
        }
        (rest.len() == before as usize).then(|| RunRows { bytes: rest.to_vec(), places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_as_they_were_spilled_and_damage_is_told() {
        let mut rows = RunRows::default();
        for (n, (key, value)) in [(&b""[..], &b"old"[..]), (b"a", b""), (b"abc", b"x")].into_iter().enumerate() {
            rows.note(key, value);
            rows.logged(n, Lsn(64 + 8 * n as u64));
        }
        let mut bytes = Vec::new();
        rows.encode(&mut bytes);
        let read = RunRows::decode(&bytes).expect("as written");
        let all = |rows: &RunRows| {
            rows.iter().map(|(key, value, lsn)| (key.to_vec(), value.to_vec(), lsn)).collect::<Vec<_>>()
        };
        assert_eq!(all(&read), all(&rows));
        let value_of = |key: &[u8]| read.value_of(key);
        assert_eq!(
            (value_of(b""), value_of(b"a"), value_of(b"abc")),
            (Some(&b"old"[..]), Some(&b""[..]), Some(&b"x"[..]))
        );
        assert_eq!((value_of(b"ab"), value_of(b"b")), (None, None));
        assert_eq!(read.len(), 3);
        for cut in 0..bytes.len() {
            assert!(RunRows::decode(&bytes[..cut]).is_none(), "{cut} bytes of {}", bytes.len());
        }
        bytes[0] = 200;
        assert!(RunRows::decode(&bytes).is_none(), "more rows than there are bytes");
    }
}
