//! The rows that share an undo record: neighbours in a leaf that one run has changed in the same way.
//!
//! # Invariants
//! - RSH-1: a record of several rows stands for as many changes as it has rows: each has a position in the log of its own (BTR-24), and names the change before it as
//!   the next to undo. They are consecutive changes of their transaction, in the order of their keys, and no mark stands between them: in their transaction they
//!   have one position.
//! - RSH-2: rows share a record only if each of them was settled before, for every snapshot, and the same as the others: absent, or there without a
//!   value. So the record gives the right answer for each of them, it leads to no older version, and no snapshot can need it any more before all do: it is
//!   freed, never led past.
//! - RSH-3: a row of a run loses the run's tag only to a later change, to the undo of its own change, or when the tag is settled. A record stays until all of its
//!   rows are undone.
//! - RSH-4: while rows may still be added to a record, it counts as not logged, though its rows are: so it is not spilled, and its writer alone replaces it.
//!   Before the writer waits, the record has all rows that are logged.
//!
//! # Crash safety
//! A restart finds the changes in the log one by one, and puts those together that have one tag ([`RunRows::of`]).

use clearway_storage::ids::Lsn;
use clearway_storage::record::UndoEntry;

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where the row's key ends.
    end: u32,
    lsn: Lsn,
}

/// Keys of rows, and the positions of their changes in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRows {
    keys: Vec<u8>,
    places: Vec<Place>,
}

impl RunRows {
    /// The rows of changes that have one tag.
    pub(super) fn of(entries: &[UndoEntry]) -> RunRows {
        let mut rows = RunRows::default();
        entries.iter().for_each(|entry| rows.push(&entry.key, entry.lsn));
        rows
    }

    /// Adds the next row: its key, and the position of its change in the log.
    pub(crate) fn push(&mut self, key: &[u8], lsn: Lsn) {
        assert!(self.last().is_none_or(|last| last < lsn), "RSH-1: {lsn} after {:?}", self.last());
        self.keys.extend_from_slice(key);
        assert!(u32::try_from(self.keys.len()).is_ok(), "RSH-1: the keys of a leaf");
        self.places.push(Place { end: self.keys.len() as u32, lsn });
    }

    /// The position of the last row's change.
    pub(crate) fn last(&self) -> Option<Lsn> {
        self.places.last().map(|place| place.lsn)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Their keys, and the positions of their changes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Lsn)> {
        let mut from = 0;
        self.places.iter().map(move |place| {
            let key = &self.keys[from..place.end as usize];
            from = place.end as usize;
            (key, place.lsn)
        })
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        size_of::<RunRows>() + 2 * size_of::<usize>() + self.keys.len() + self.places.len() * size_of::<Place>()
    }

    /// Appends the rows in the form of the spill file.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.places.len() as u32).to_le_bytes());
        for place in &self.places {
            out.extend_from_slice(&place.end.to_le_bytes());
            out.extend_from_slice(&place.lsn.0.to_le_bytes());
        }
        out.extend_from_slice(&self.keys);
    }

    /// Decodes what [`RunRows::encode`] wrote; `None` if the bytes are damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<RunRows> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        if count > rest.len() / 12 {
            return None;
        }
        let (mut places, mut before) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let (end, after) = rest.split_first_chunk::<4>()?;
            let (lsn, after) = after.split_first_chunk::<8>()?;
            let place = Place { end: u32::from_le_bytes(*end), lsn: Lsn(u64::from_le_bytes(*lsn)) };
            if place.end < before {
                return None;
            }
            before = place.end;
            places.push(place);
            rest = after;
        }
        (rest.len() == before as usize).then(|| RunRows { keys: rest.to_vec(), places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_as_they_were_spilled_and_damage_is_told() {
        let mut rows = RunRows::default();
        for (n, key) in [&b"a"[..], b"", b"abc"].iter().enumerate() {
            rows.push(key, Lsn(64 + 8 * n as u64));
        }
        let mut bytes = Vec::new();
        rows.encode(&mut bytes);
        let read = RunRows::decode(&bytes).expect("as written");
        let all = |rows: &RunRows| rows.iter().map(|(key, lsn)| (key.to_vec(), lsn)).collect::<Vec<_>>();
        assert_eq!(all(&read), all(&rows));
        assert_eq!(read.len(), 3);
        for cut in 0..bytes.len() {
            assert!(RunRows::decode(&bytes[..cut]).is_none(), "{cut} bytes of {}", bytes.len());
        }
        bytes[0] = 200;
        assert!(RunRows::decode(&bytes).is_none(), "more rows than there are bytes");
    }
}
