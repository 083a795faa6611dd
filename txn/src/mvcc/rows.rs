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
use std::ops::Range;

use clearway_storage::btree::RunGhosts;
use clearway_storage::ids::Lsn;
use clearway_storage::record::{BeforeImage, UndoEntry};

/// Where a row is among the bytes of all. Bytes between two rows have no meaning here.
#[derive(Clone, Copy, Debug)]
struct Place {
    key_at: u32,
    /// The length of its key, and of its value before, which follows the key.
    key_len: u16,
    value_len: u16,
    /// The position of its change; zero until it is logged.
    lsn: Lsn,
}

/// Bytes of a place in the spill file.
const PLACE_BYTES: usize = 16;

impl Place {
    fn key(self) -> Range<usize> {
        let at = self.key_at as usize;
        at..at + usize::from(self.key_len)
    }

    fn value(self) -> Range<usize> {
        let at = self.key().end;
        at..at + usize::from(self.value_len)
    }
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
        let lengths = (u16::try_from(key.len()), u16::try_from(value.len()), u32::try_from(self.bytes.len()));
        let (Ok(key_len), Ok(value_len), Ok(key_at)) = lengths else {
            panic!("RSH-1: the rows of a leaf have keys and values of {} and {} bytes", key.len(), value.len())
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.places.push(Place { key_at, key_len, value_len, lsn: Lsn::ZERO });
    }

    /// Makes room for rows of so many bytes.
    pub(crate) fn reserve(&mut self, rows: usize, bytes: usize) {
        self.places.reserve(rows);
        self.bytes.reserve(bytes);
    }

    /// Adds the next rows, as [`RunRows::note`] does one.
    pub(crate) fn note_ghosts(&mut self, ghosts: RunGhosts<'_>) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(ghosts.bytes());
        assert!(u32::try_from(self.bytes.len()).is_ok(), "RSH-1: the rows of a leaf");
        self.places.extend(ghosts.places().map(|(at, key_len, value_len)| {
            let key_at = (from + at) as u32;
            Place { key_at, key_len, value_len, lsn: Lsn::ZERO }
        }));
    }

    /// The change of row number `n` has this position in the log, those of the rows before it have theirs.
    pub(crate) fn logged(&mut self, n: usize, lsn: Lsn) {
        self.logged_all(n, std::iter::once(lsn));
    }

    /// The same of the rows from number `n` on.
    pub(crate) fn logged_all(&mut self, n: usize, lsns: impl ExactSizeIterator<Item = Lsn>) {
        let mut before = n.checked_sub(1).map(|before| self.places[before].lsn);
        assert!(n + lsns.len() <= self.places.len(), "RSH-1: {} rows from {n} on", lsns.len());
        for (place, lsn) in self.places[n..].iter_mut().zip(lsns) {
            assert!(before.is_none_or(|before| Lsn::ZERO < before && before < lsn), "RSH-1: {lsn} after {before:?}");
            (place.lsn, before) = (lsn, Some(lsn));
        }
    }

    /// The position of the change of row number `n`.
    pub(crate) fn lsn(&self, n: usize) -> Option<Lsn> {
        self.places.get(n).map(|place| place.lsn)
    }

    /// The value before of the row with this key.
    pub(super) fn value_of(&self, key: &[u8]) -> Option<&[u8]> {
        // A restart may find rows of a program that put them together in any order.
        self.value_in_order(key).or_else(|| self.iter().find(|(own, ..)| *own == key).map(|(_, value, _)| value))
    }

    /// RSH-1: in the order of their keys.
    fn value_in_order(&self, key: &[u8]) -> Option<&[u8]> {
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let place = self.places[middle];
            match self.bytes[place.key()].cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(&self.bytes[place.value()]),
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
        self.places.iter().map(|place| (&self.bytes[place.key()], &self.bytes[place.value()], place.lsn))
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
            out.extend_from_slice(&place.key_at.to_le_bytes());
            out.extend_from_slice(&place.key_len.to_le_bytes());
            out.extend_from_slice(&place.value_len.to_le_bytes());
            out.extend_from_slice(&place.lsn.0.to_le_bytes());
        }
        out.extend_from_slice(&self.bytes);
    }

    /// Decodes what [`RunRows::encode`] wrote; `None` if the bytes are damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<RunRows> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        if count > rest.len() / PLACE_BYTES {
            return None;
        }
        let (mut places, mut before): (Vec<Place>, usize) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let (key_at, after) = rest.split_first_chunk::<4>()?;
            let (key_len, after) = after.split_first_chunk::<2>()?;
            let (value_len, after) = after.split_first_chunk::<2>()?;
            let (lsn, after) = after.split_first_chunk::<8>()?;
            let (key_len, value_len) = (u16::from_le_bytes(*key_len), u16::from_le_bytes(*value_len));
            let lsn = Lsn(u64::from_le_bytes(*lsn));
            let place = Place { key_at: u32::from_le_bytes(*key_at), key_len, value_len, lsn };
            if (place.key_at as usize) < before {
                return None;
            }
            before = place.value().end;
            places.push(place);
            rest = after;
        }
        (rest.len() == before).then(|| RunRows { bytes: rest.to_vec(), places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_another_order_than_that_of_their_keys_are_found() {
        let mut rows = RunRows::default();
        for (n, (key, value)) in [(b"m", b"1"), (b"p", b"2"), (b"a", b"3"), (b"c", b"4")].into_iter().enumerate() {
            rows.note(key, value);
            rows.logged(n, Lsn(64 + 8 * n as u64));
        }
        let found = [b"m", b"p", b"a", b"c", b"b"].map(|key| rows.value_of(key));
        assert_eq!(found, [Some(&b"1"[..]), Some(b"2"), Some(b"3"), Some(b"4"), None], "RSH-5");
    }

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
