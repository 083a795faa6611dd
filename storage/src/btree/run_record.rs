//! The log record of a run: all changes that a run made in one leaf, one behind the other.
//!
//! # Structure
//! The record has one page operation, RUN, with these arguments:
//! ```text
//!   tree u64, number of changes u16, then for each change, in the order of the keys:
//!     flags u8     1 ghost, 2 the tag is that of the change before, 4 there was a row, 8 a ghost, 16 its tag is shared (BTR-23),
//!                  32 with an overflow reference, 64 with a tag, 128 a value is not empty
//!     key_len u16, [128: value_len u16, before_len u16], [not 2: tag u64], [64: previous tag u64], key, value, value before
//! ```
//!
//! # Invariants
//! - BTR-24: the n-th change of a record has the record's start plus n as its position, which lies before the record's end. It names the change before it as
//!   the next to undo, the first one the transaction's change before the run. So checkpoints, rollbacks and recovery's analysis know changes by their
//!   positions, as if each had a record of its own, and each is undone by a compensation record of its own (REC-9).
//! - BTR-25: the record has tree, key, tags and image before of each row. So undo and analysis read no page to know what to undo.
//!
//! # Crash safety
//! Redo makes all changes of a record or none. A crash between two compensations leaves the position of the next change to undo, which may lie within a
//! run's record (REC-3): the changes behind it are undone, it and those before it are not.
//!
//! # Errors
//! Bytes that are no record of a run mean damage of the log: the readers here give `None`, and their callers `Corruption`.

use super::image::NodeRow;
use super::node::OVERFLOW_REF_BYTES;
use super::ops::RUN;
use super::tree::Row;
use super::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::ids::{Lsn, Tag, TreeId};
use crate::record::{Before, LsnRange, RowUndo};
use crate::wal::format::Bytes;

const GHOST: u8 = 1;
const SAME_TAG: u8 = 2;
const HAD_ROW: u8 = 4;
const HAD_GHOST: u8 = 8;
const SHARES: u8 = 16;
const HAD_OVERFLOW: u8 = 32;
const HAD_TAG: u8 = 64;
const VALUES: u8 = 128;

/// Bytes before the changes.
pub(super) const HEAD_BYTES: usize = 10;
/// The most bytes of a change beside its key and values.
pub(super) const CHANGE_BYTES: usize = 23;
/// Bytes of such a change as [`RunRecord::push_ghost`] adds, before its key, if it has no value.
const GHOST_HEAD_BYTES: usize = 3;
/// Bytes for which room is made at first: a record of some dozen changes.
const ROOM_BYTES: usize = 2048;

/// The positions of a run's changes in the log (BTR-24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPositions {
    first: Lsn,
    previous: Lsn,
}

impl RunPositions {
    /// Those of a run whose record begins at `start`; `previous` is the transaction's change before the run.
    pub fn new(start: Lsn, previous: Lsn) -> RunPositions {
        RunPositions { first: start, previous }
    }

    /// The position of the `n`-th change, and that of the change before it.
    pub fn of(self, n: usize) -> (Lsn, Lsn) {
        let at = |n: usize| Lsn(self.first.0 + n as u64);
        (at(n), n.checked_sub(1).map_or(self.previous, at))
    }
}

/// Bytes of a change that [`RunRecord::push_ghost`] adds.
#[inline]
pub(super) fn ghost_bytes(key_len: usize, value_len: usize) -> usize {
    GHOST_HEAD_BYTES + if value_len > 0 { 4 + value_len } else { 0 } + key_len
}

/// Where the key of a row that became a ghost stands in the changes of a record; its value follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct GhostPlace {
    key_at: u32,
    key_len: u16,
    value_len: u16,
}

/// Rows that became ghosts by consecutive changes of a run, as its record has them (BTR-27).
#[derive(Clone, Copy, Debug)]
pub struct RunGhosts<'r> {
    /// Where the first change begins among those of the record.
    from: usize,
    bytes: &'r [u8],
    places: &'r [GhostPlace],
}

impl<'r> RunGhosts<'r> {
    pub(super) fn new((from, bytes): (usize, &'r [u8]), places: &'r [GhostPlace]) -> RunGhosts<'r> {
        RunGhosts { from, bytes, places }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Bytes that have all keys and values, and others between them.
    pub fn bytes(&self) -> &'r [u8] {
        self.bytes
    }

    /// For each row the place of its key in these bytes, the length of its key, and that of its value, which follows its key.
    #[inline]
    pub fn places(&self) -> impl ExactSizeIterator<Item = (usize, u16, u16)> {
        self.places.iter().map(|place| (place.key_at as usize - self.from, place.key_len, place.value_len))
    }

    /// Their values.
    pub fn values(&self) -> impl Iterator<Item = &'r [u8]> {
        let bytes = self.bytes;
        self.places().map(move |(at, key_len, value_len)| &bytes[at + usize::from(key_len)..][..usize::from(value_len)])
    }
}

/// The changes of a run, as its record will have them.
#[derive(Default)]
pub(super) struct RunRecord {
    changes: u16,
    tag: Tag,
    bytes: Vec<u8>,
}

impl RunRecord {
    /// Adds a change: the row that was put in place, and the one that stood there.
    pub(super) fn push(&mut self, row: &NodeRow<'_>, shares: bool, before: Option<Row<'_>>) {
        assert!(row.key.len() <= KEY_BYTES_MAX, "a key of {} bytes goes into the log", row.key.len());
        assert!(!row.overflow, "BTR-18: a run puts no chain in place");
        let (old, prev_tag) = before.map_or((&[][..], Tag::SETTLED), |row| (row.value, row.tag));
        let mut head = [0; CHANGE_BYTES];
        let mut len = 3;
        let mut put = |bytes: &[u8]| {
            head[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        let mut flags = 0;
        let mut flag = |is: bool, flag: u8| flags |= if is { flag } else { 0 };
        flag(row.ghost, GHOST);
        flag(shares, SHARES);
        flag(before.is_some(), HAD_ROW);
        flag(before.is_some_and(|row| row.ghost), HAD_GHOST);
        flag(before.is_some_and(|row| row.overflow), HAD_OVERFLOW);
        if !row.value.is_empty() || !old.is_empty() {
            flag(true, VALUES);
            put(&(row.value.len() as u16).to_le_bytes());
            put(&(old.len() as u16).to_le_bytes());
        }
        match row.tag == self.tag {
            true => flag(true, SAME_TAG),
            false => put(&row.tag.0.to_le_bytes()),
        }
        if !prev_tag.is_settled() {
            flag(true, HAD_TAG);
            put(&prev_tag.0.to_le_bytes());
        }
        head[0] = flags;
        head[1..3].copy_from_slice(&(row.key.len() as u16).to_le_bytes());
        if self.bytes.is_empty() {
            self.bytes.reserve(ROOM_BYTES);
        }
        self.bytes.extend_from_slice(&head[..len]);
        self.bytes.extend_from_slice(row.key);
        for value in [row.value, old].into_iter().filter(|value| !value.is_empty()) {
            self.bytes.extend_from_slice(value);
        }
        self.tag = row.tag;
        self.changes = self.changes.checked_add(1).expect("BTR-24: no leaf has so many rows");
    }

    /// Adds a change as [`RunRecord::push`] does: a settled row, whose value is appended, becomes a ghost that shares the tag of the change before. Says where
    /// its key and its value are.
    #[inline]
    pub(super) fn push_ghost(
        &mut self,
        key: &[u8],
        value_len: usize,
        append_value: impl FnOnce(&mut Vec<u8>),
    ) -> GhostPlace {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes goes into the log", key.len());
        assert!(self.changes > 0, "BTR-27: there is a change before");
        let flags = GHOST | SAME_TAG | HAD_ROW | SHARES;
        let ([key_low, key_high], [low, high]) = ((key.len() as u16).to_le_bytes(), (value_len as u16).to_le_bytes());
        match value_len {
            0 => self.bytes.extend_from_slice(&[flags, key_low, key_high]),
            _ => self.bytes.extend_from_slice(&[flags | VALUES, key_low, key_high, 0, 0, low, high]),
        }
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        if value_len > 0 {
            append_value(&mut self.bytes);
        }
        let end = key_at + key.len() + value_len;
        assert_eq!(self.bytes.len(), end, "the value of a row has the length that its cell says");
        self.changes = self.changes.checked_add(1).expect("BTR-24: no leaf has so many rows");
        GhostPlace { key_at: key_at as u32, key_len: key.len() as u16, value_len: value_len as u16 }
    }

    /// The changes behind the first `from` bytes of them, and `from`.
    pub(super) fn since(&self, from: usize) -> (usize, &[u8]) {
        (from, &self.bytes[from..])
    }

    /// How many changes there are.
    pub(super) fn changes(&self) -> usize {
        usize::from(self.changes)
    }

    /// The arguments of RUN: what stands before the changes, and the changes.
    pub(super) fn parts(&self, tree: TreeId) -> ([u8; HEAD_BYTES], &[u8]) {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&tree.0.to_le_bytes());
        head[8..].copy_from_slice(&self.changes.to_le_bytes());
        (head, &self.bytes)
    }

    /// Bytes of the changes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// BTR-24: the positions of the changes, of a record that was appended.
    pub(super) fn positions(&self, range: LsnRange, previous: Lsn) -> RunPositions {
        let bytes = range.end.0 - range.start.0;
        assert!(u64::from(self.changes) < bytes, "BTR-24: {} changes in a record of {bytes} bytes", self.changes);
        RunPositions::new(range.start, previous)
    }
}

/// A change of a run, as its record has it.
#[derive(Clone, Copy, Debug)]
pub struct LoggedChange<'a> {
    /// The row's identity, and what it was before (BTR-25).
    pub undo: RowUndo<'a>,
    value: &'a [u8],
    ghost: bool,
    /// BTR-23
    pub(super) shares: bool,
}

impl<'a> LoggedChange<'a> {
    /// The row that was put in place.
    pub(super) fn row(&self) -> NodeRow<'a> {
        NodeRow { key: self.undo.key, value: self.value, tag: self.undo.tag, ghost: self.ghost, overflow: false }
    }
}

/// Reads the changes of a record one after the other. An item is `None` where the bytes are damaged; it is the last one.
pub struct RunChanges<'a> {
    tree: TreeId,
    left: u16,
    tag: Tag,
    at: Bytes<'a>,
    damaged: bool,
}

impl<'a> RunChanges<'a> {
    /// The changes of an operation; none: it is not one of a run.
    pub fn of(op: u8, payload: &'a [u8]) -> Option<RunChanges<'a>> {
        let mut at = Bytes::new(payload);
        let (tree, left) = (TreeId(at.u64()?), at.u16()?);
        (op == RUN && left > 0).then_some(RunChanges { tree, left, tag: Tag::SETTLED, at, damaged: false })
    }

    /// The tree of the rows.
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    fn read(&mut self) -> Option<LoggedChange<'a>> {
        let at = &mut self.at;
        let flags = at.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let key_len = usize::from(at.u16()?);
        let (value_len, before_len) =
            if has(VALUES) { (usize::from(at.u16()?), usize::from(at.u16()?)) } else { (0, 0) };
        let tag = if has(SAME_TAG) { self.tag } else { Tag(at.u64()?) };
        let prev_tag = if has(HAD_TAG) { Tag(at.u64()?) } else { Tag::SETTLED };
        let (key, value, old) = (at.take(key_len)?, at.take(value_len)?, at.take(before_len)?);
        let (ghost, overflow) = (has(HAD_GHOST), has(HAD_OVERFLOW));
        let before = match has(HAD_ROW) {
            true => Before::Row { ghost, overflow, value: old },
            false => Before::Absent,
        };
        let fits = key_len <= KEY_BYTES_MAX && key_len + value_len <= ROW_BYTES_MAX;
        let odd = before == Before::Absent && (ghost || overflow || before_len > 0 || has(HAD_TAG));
        if !fits || odd || overflow && before_len != OVERFLOW_REF_BYTES {
            return None;
        }
        self.tag = tag;
        let undo = RowUndo { tree: self.tree, key, tag, prev_tag, before };
        Some(LoggedChange { undo, value, ghost: has(GHOST), shares: has(SHARES) })
    }
}

impl<'a> Iterator for RunChanges<'a> {
    type Item = Option<LoggedChange<'a>>;

    fn next(&mut self) -> Option<Option<LoggedChange<'a>>> {
        if self.damaged {
            return None;
        }
        let change = match self.left {
            0 if self.at.rest().is_empty() => return None,
            0 => None,
            _ => self.read(),
        };
        self.left = self.left.saturating_sub(1);
        self.damaged = change.is_none();
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, value, value before.
    type Parts = (Vec<u8>, Vec<u8>, Vec<u8>);
    /// Those, its tag and the one before, whether it is a ghost, whether its tag is shared.
    type Read = (Parts, Tag, Tag, bool, bool);

    fn written() -> Vec<u8> {
        let mut record = RunRecord::default();
        let row = |key, value, tag, ghost| NodeRow { key, value, tag: Tag(tag), ghost, overflow: false };
        let before = |value, tag, ghost, overflow| Some(Row { value, tag: Tag(tag), ghost, overflow });
        record.push(&row(&b"a"[..], &b"new"[..], 70, false), true, None);
        record.push(&row(b"bb", b"", 70, true), true, before(&b""[..], 0, false, false));
        record.push(&row(b"c", b"", 71, true), false, before(b"old", 66, false, false));
        record.push(&row(b"", b"v", 72, false), false, before(&[7; 16], 0, true, true));
        let (head, bytes) = record.parts(TreeId(9));
        assert_eq!((record.changes(), record.bytes()), (4, bytes.len()));
        [&head, bytes].concat()
    }

    /// All changes; none: damage.
    fn read(payload: &[u8]) -> Option<Vec<Read>> {
        let changes = RunChanges::of(RUN, payload)?;
        assert_eq!(changes.tree(), TreeId(9));
        changes
            .map(|change| {
                let change = change?;
                let (row, undo) = (change.row(), change.undo);
                let old = match undo.before {
                    Before::Absent => Vec::new(),
                    Before::Row { value, .. } => value.to_vec(),
                };
                let parts = (row.key.to_vec(), row.value.to_vec(), old);
                Some((parts, row.tag, undo.prev_tag, row.ghost, change.shares))
            })
            .collect()
    }

    #[test]
    fn changes_read_back_as_they_were_written() {
        // BTR-25
        let parts = |key: &[u8], value: &[u8], old: &[u8]| (key.to_vec(), value.to_vec(), old.to_vec());
        let expected = vec![
            (parts(b"a", b"new", b""), Tag(70), Tag(0), false, true),
            (parts(b"bb", b"", b""), Tag(70), Tag(0), true, true),
            (parts(b"c", b"", b"old"), Tag(71), Tag(66), true, false),
            (parts(b"", b"v", &[7; 16]), Tag(72), Tag(0), false, false),
        ];
        let bytes = written();
        assert_eq!(read(&bytes), Some(expected));
        let last = RunChanges::of(RUN, &bytes).expect("a run").last().expect("one").map(|change| change.undo.before);
        assert_eq!(last, Some(Before::Row { ghost: true, overflow: true, value: &[7; 16] }));
    }

    #[test]
    fn a_ghost_that_joins_is_written_as_any_other() {
        // BTR-27
        for old in [&b""[..], b"old"] {
            let row = |key| NodeRow { key, value: &[][..], tag: Tag(70), ghost: true, overflow: false };
            let before = |value| Some(Row { value, tag: Tag::SETTLED, ghost: false, overflow: false });
            let (mut joined, mut pushed) = (RunRecord::default(), RunRecord::default());
            joined.push(&row(&b"a"[..]), true, before(&b"x"[..]));
            let from = joined.bytes();
            let places = [joined.push_ghost(b"bb", old.len(), |out| out.extend_from_slice(old))];
            let ghosts = RunGhosts::new(joined.since(from), &places);
            assert_eq!(ghosts.values().collect::<Vec<_>>(), [old]);
            assert_eq!(joined.bytes(), from + ghost_bytes(2, old.len()));
            pushed.push(&row(b"a"), true, before(b"x"));
            pushed.push(&row(b"bb"), true, before(old));
            assert_eq!(joined.parts(TreeId(9)), pushed.parts(TreeId(9)));
        }
    }

    #[test]
    fn damaged_changes_are_told() {
        let bytes = written();
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_none(), "{cut} bytes of {}", bytes.len());
        }
        assert!(read(&[&bytes[..], b"x"].concat()).is_none(), "a byte too many");
        assert!(RunChanges::of(RUN - 1, &bytes).is_none(), "another operation");
        for (at, value) in [(8, 5), (8, 0), (HEAD_BYTES + 2, 0xff), (HEAD_BYTES, VALUES | HAD_GHOST)] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            assert!(read(&damaged).is_none(), "{value} at {at}");
        }
    }

    #[test]
    fn each_change_of_a_run_has_a_position_between_the_ends_of_its_record() {
        // BTR-24
        let positions = RunPositions::new(Lsn(800), Lsn(64));
        assert_eq!(positions.of(0), (Lsn(800), Lsn(64)));
        assert_eq!(positions.of(2), (Lsn(802), Lsn(801)));
    }
}
