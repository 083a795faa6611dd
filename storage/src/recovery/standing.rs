//! The state of one transaction during analysis: its changes that have not been compensated.
//!
//! # Structure
//! Keys and values before lie side by side in one list of bytes, and a list of places says where. Most transactions of a log commit, and their changes are dropped unread: two pieces
//! of memory and a place in a map for each change were a third of analysis.
//!
//! # Invariants
//! - STD-1: the places ascend by the positions of their changes. A change that the checkpoint saved and the log has again is there once (REC-3); one that the log has and the
//!   checkpoint lacks, since it was compensated before, gets its place among the others until its compensation is read.
//! - STD-2: a link to a change before leads to a lower position, so following the links ends (REC-4).

use super::saved::PendingChain;
use crate::ids::{Lsn, Tag, TreeId};
use crate::record::{Before, BeforeImage, RowUndo, UndoEntry};

/// Bytes that a list keeps for the next transaction.
const KEPT_BYTES: usize = 1 << 20;

/// A change, without its key and the value before, which follow each other among the bytes of all.
#[derive(Clone, Copy, Debug)]
struct Place {
    lsn: Lsn,
    undo_next: Lsn,
    tree: TreeId,
    tag: Tag,
    prev_tag: Tag,
    at: usize,
    key_len: u32,
    value_len: u32,
    /// Of the row before, if there was one: whether it was a ghost, and whether its value is in an overflow chain.
    row: Option<(bool, bool)>,
}

/// See the head of this module.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) first: Lsn,
    pub(super) last: Lsn,
    places: Vec<Place>,
    bytes: Vec<u8>,
    /// Changes of rows whose value before was in a chain, compensated ones included.
    chains: usize,
}

impl Standing {
    /// A change of the transaction: the last one, if the log has it.
    pub(super) fn change(&mut self, lsn: Lsn, undo_next: Lsn, undo: &RowUndo<'_>) {
        if self.first == Lsn::ZERO {
            self.first = lsn;
        }
        self.last = lsn;
        self.add(lsn, undo_next, undo);
    }

    /// Adds a change that is known (STD-1).
    pub(super) fn add(&mut self, lsn: Lsn, undo_next: Lsn, undo: &RowUndo<'_>) {
        let behind = self.places.last().is_none_or(|last| last.lsn < lsn);
        let index = match behind {
            true => self.places.len(),
            false => match self.places.binary_search_by_key(&lsn, |place| place.lsn) {
                Ok(_) => return,
                Err(index) => index,
            },
        };
        let (row, value) = match undo.before {
            Before::Absent => (None, &[][..]),
            Before::Row { ghost, overflow, value } => (Some((ghost, overflow)), value),
        };
        self.chains += usize::from(row.is_some_and(|(_, overflow)| overflow));
        let (at, key_len, value_len) = (self.bytes.len(), undo.key.len() as u32, value.len() as u32);
        self.bytes.extend_from_slice(undo.key);
        self.bytes.extend_from_slice(value);
        let (tree, tag, prev_tag) = (undo.tree, undo.tag, undo.prev_tag);
        self.places.insert(index, Place { lsn, undo_next, tree, tag, prev_tag, at, key_len, value_len, row });
    }

    /// The changes behind this position were compensated: they are not needed again.
    pub(super) fn compensated(&mut self, undo_next: Lsn) {
        self.last = undo_next; // REC-3
        self.places.truncate(self.places.partition_point(|place| place.lsn <= undo_next));
        if self.places.is_empty() {
            self.bytes.clear();
        }
    }

    /// REC-10: chains that the transaction's commit has superseded.
    pub(super) fn superseded(&self, commit: Lsn) -> impl Iterator<Item = PendingChain> {
        let places = if self.chains > 0 { &self.places[..] } else { &[] };
        places.iter().filter(|place| place.row.is_some_and(|(_, overflow)| overflow)).filter_map(move |place| {
            let reference = self.value(place).try_into().ok()?;
            Some(PendingChain { commit, tree: place.tree, reference })
        })
    }

    /// Its changes from the last one on by their links (REC-4); else the position of a change that is missing.
    pub(super) fn chain(&self) -> Result<Vec<UndoEntry>, Lsn> {
        let (mut entries, mut at, mut before) = (Vec::new(), self.last, self.places.len());
        while at != Lsn::ZERO {
            // STD-2. Mostly it is the one before.
            let below = &self.places[..before];
            before = match below.last() {
                Some(last) if last.lsn == at => before - 1,
                _ => below.binary_search_by_key(&at, |place| place.lsn).map_err(|_| at)?,
            };
            let place = &self.places[before];
            entries.push(self.entry(place));
            at = place.undo_next;
        }
        entries.reverse();
        Ok(entries)
    }

    /// Makes it that of a transaction without changes, for the sake of its memory.
    pub(super) fn clear(&mut self) {
        (self.first, self.last, self.chains) = (Lsn::ZERO, Lsn::ZERO, 0);
        self.places.clear();
        self.bytes.clear();
        self.places.shrink_to(KEPT_BYTES / size_of::<Place>());
        self.bytes.shrink_to(KEPT_BYTES);
    }

    fn key(&self, place: &Place) -> &[u8] {
        &self.bytes[place.at..][..place.key_len as usize]
    }

    fn value(&self, place: &Place) -> &[u8] {
        &self.bytes[place.at + place.key_len as usize..][..place.value_len as usize]
    }

    fn entry(&self, place: &Place) -> UndoEntry {
        let before = match place.row {
            None => BeforeImage::Absent,
            Some((ghost, overflow)) => BeforeImage::Row { ghost, overflow, value: self.value(place).into() },
        };
        let Place { lsn, undo_next, tree, tag, prev_tag, .. } = *place;
        UndoEntry { lsn, undo_next, tree, key: self.key(place).into(), tag, prev_tag, before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo(key: &[u8]) -> RowUndo<'_> {
        let before = Before::Row { ghost: false, overflow: true, value: &[7; 16] };
        RowUndo { tree: TreeId(3), key, tag: Tag(5), prev_tag: Tag(0), before }
    }

    fn keys(standing: &Standing) -> Result<Vec<Vec<u8>>, Lsn> {
        Ok(standing.chain()?.into_iter().map(|entry| entry.key.into_vec()).collect())
    }

    #[test]
    fn changes_that_are_read_twice_or_late_stand_in_the_order_of_the_log() {
        // STD-1
        let mut standing = Standing { last: Lsn(40), ..Standing::default() };
        standing.add(Lsn(10), Lsn(0), &undo(b"a"));
        standing.add(Lsn(40), Lsn(10), &undo(b"d"));
        standing.change(Lsn(10), Lsn(0), &undo(b"a"));
        // Compensated before the checkpoint, which has not saved it.
        standing.change(Lsn(20), Lsn(10), &undo(b"b"));
        assert_eq!(keys(&standing), Ok(vec![b"a".to_vec(), b"b".to_vec()]));
        standing.change(Lsn(40), Lsn(10), &undo(b"d"));
        assert_eq!(keys(&standing), Ok(vec![b"a".to_vec(), b"d".to_vec()]));
        assert_eq!(standing.superseded(Lsn(90)).count(), 3);
        standing.compensated(Lsn(10));
        assert_eq!(keys(&standing), Ok(vec![b"a".to_vec()]));
        standing.change(Lsn(60), Lsn(10), &undo(b"e"));
        assert_eq!(keys(&standing), Ok(vec![b"a".to_vec(), b"e".to_vec()]));
        standing.clear();
        assert_eq!((keys(&standing), standing.superseded(Lsn(90)).count()), (Ok(Vec::new()), 0));
    }

    #[test]
    fn a_link_to_a_place_without_a_change_is_told_and_a_circle_too() {
        // REC-4, STD-2
        let mut standing = Standing::default();
        standing.change(Lsn(10), Lsn(0), &undo(b"a"));
        standing.change(Lsn(20), Lsn(15), &undo(b"b"));
        assert_eq!(keys(&standing), Err(Lsn(15)));
        let mut circle = Standing::default();
        circle.change(Lsn(10), Lsn(20), &undo(b"a"));
        circle.change(Lsn(20), Lsn(10), &undo(b"b"));
        assert_eq!(keys(&circle), Err(Lsn(20)));
    }
}
