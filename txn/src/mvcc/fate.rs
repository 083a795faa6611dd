//! The fate of a row since a snapshot read it: whether it still is at its key, was deleted, or was moved to another key.
//!
//! A key is not a row: a delete, or a change of the key, ends a row, and an insert at the same key begins another row. A transaction that
//! waited for a row continues with the successors of the version that its snapshot showed, and with no other row.
//!
//! # Invariants
//! - FAT-1: the first end of a row at a key after a moment is the end of the row that was at the key at that moment. For a row that was
//!   moved, the moment at its new key is that at which it left the old key: its transaction ends no row at the new key in between.
//! - FAT-2: a record that leads past others keeps the oldest and the newest row end among them, and whether they changed key columns
//!   ([`Passed`]). If a waiting transaction may need an end between these two, its row's fate is `unknown`, and it fails with
//!   `ConcurrentUpdate`. Only a committed record leads past such changes: one that is rolled back gives the row the tag back to which it points.
//! - FAT-3: a record keeps since when the row is intact: no change that was committed later, before the record's, ended the row or changed its key
//!   columns. So of a row that many transactions wait for and change in turn only the newest record is read, not one for each that was
//!   committed during the wait. Debug builds read the others too and compare.

use std::sync::Arc;

use clearway_storage::ids::{Lsn, Tag, TxnId};

use super::book::{VersionBook, View};
use super::record::UndoRecord;
use super::state::Status;
use super::undo::{Fetched, TagState};
use crate::lockmgr::LockMode;

/// When a change took effect: its commit LSN, and its position among the changes of its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The commit.
    pub commit: Lsn,
    /// The position.
    pub position: u32,
}

impl From<&View> for Moment {
    fn from(view: &View) -> Moment {
        Moment { commit: view.read_lsn, position: u32::MAX }
    }
}

/// The end of a row at its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The moment of the end.
    pub at: Moment,
    /// The row's new key; `None` if the row was deleted.
    pub moved_to: Option<Box<[u8]>>,
}

/// A summary of the changes that a record leads past (FAT-2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    oldest: Option<End>,
    /// The newest end, if it is not the oldest.
    newest: Option<End>,
    /// There were ends between `oldest` and `newest`.
    more: bool,
    /// The latest commit that changed columns to which a foreign key may refer.
    key_changed: Lsn,
}

impl Passed {
    /// Adds a change that was committed before all changes added so far.
    fn add(&mut self, commit: Lsn, record: &UndoRecord) {
        if record.strength == LockMode::RowUpdate {
            self.key_changed = self.key_changed.max(commit);
        }
        if record.deletes {
            let at = Moment { commit, position: record.position };
            self.add_end(End { at, moved_to: record.moved_to().map(Into::into) });
        }
        if let Some(older) = record.passed() {
            self.key_changed = self.key_changed.max(older.key_changed);
            older.newest.iter().chain(&older.oldest).cloned().for_each(|end| self.add_end(end));
            self.more |= older.more;
        }
    }

    fn add_end(&mut self, end: End) {
        match (self.oldest.take(), &self.newest) {
            (None, _) => {}
            (last, None) => self.newest = last,
            (Some(_), Some(_)) => self.more = true,
        }
        self.oldest = Some(end);
    }

    /// Adds `records`, newest first, to the summary `first`. `None` if there is nothing to remember.
    pub(super) fn of<'r>(
        first: Option<&Passed>,
        records: impl Iterator<Item = (Lsn, &'r UndoRecord)>,
    ) -> Option<Box<Passed>> {
        let mut all = first.cloned().unwrap_or_default();
        records.for_each(|(commit, record)| all.add(commit, record));
        (all != Passed::default()).then(|| Box::new(all))
    }

    /// Bytes that the summary counts in the undo budget.
    pub(super) fn bytes(&self) -> usize {
        let key = |end: &Option<End>| end.as_ref().and_then(|e| e.moved_to.as_ref()).map_or(0, |key| key.len());
        size_of::<Passed>() + key(&self.oldest) + key(&self.newest)
    }

    /// The oldest end after a moment. `Err`: there is such an end, but the summary does not say which.
    fn end_after(&self, since: Moment) -> Result<Option<&End>, Unknown> {
        let newest = self.newest.as_ref().or(self.oldest.as_ref());
        match (&self.oldest, newest) {
            (Some(oldest), _) if oldest.at > since => Ok(Some(oldest)),
            (_, Some(newest)) if newest.at > since && self.more => Err(Unknown),
            (_, Some(newest)) if newest.at > since => Ok(Some(newest)),
            _ => Ok(None),
        }
    }

    /// Appends the summary in the form of the spill file.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key_changed.0.to_le_bytes());
        out.push(u8::from(self.more));
        for end in [&self.oldest, &self.newest] {
            let moved = end.as_ref().and_then(|e| e.moved_to.as_ref());
            out.push(u8::from(end.is_some()) | u8::from(moved.is_some()) << 1);
            let at = end.as_ref().map_or(Moment::default(), |e| e.at);
            out.extend_from_slice(&at.commit.0.to_le_bytes());
            out.extend_from_slice(&at.position.to_le_bytes());
            let key = moved.map_or(&[][..], |key| key);
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
    }

    /// Decodes what [`Passed::encode`] wrote; `None` if the bytes are damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Passed> {
        let (key_changed, rest) = bytes.split_first_chunk::<8>()?;
        let (more, mut rest) = rest.split_first()?;
        let mut ends = [None, None];
        for end in &mut ends {
            let (flags, after) = rest.split_first()?;
            let (commit, after) = after.split_first_chunk::<8>()?;
            let (position, after) = after.split_first_chunk::<4>()?;
            let (len, after) = after.split_first_chunk::<4>()?;
            let (key, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            let at = Moment { commit: Lsn(u64::from_le_bytes(*commit)), position: u32::from_le_bytes(*position) };
            *end = (flags & 1 != 0).then(|| End { at, moved_to: (flags & 2 != 0).then(|| key.into()) });
            rest = after;
        }
        let [oldest, newest] = ends;
        let key_changed = Lsn(u64::from_le_bytes(*key_changed));
        rest.is_empty().then_some(Passed { oldest, newest, more: *more != 0, key_changed })
    }
}

/// It is no longer known which end is meant: at least three rows ended at one key while a transaction waited for the row that moved there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// The fate of the row that stood at a key at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// How the row ended, if it did.
    pub end: Option<End>,
    /// Columns to which a foreign key may refer were changed, or the row was deleted.
    pub key_changed: bool,
    /// [`Passed`] no longer tells which of several ends is the row's.
    pub unknown: bool,
}

impl VersionBook {
    /// The fate of the row that stood at a key at a moment, by committed changes (FAT-1). `own`: the reader saw this transaction's changes
    /// below this position. The caller has the row's page latched.
    ///
    /// # Errors
    /// The tag of a record in the spill file that has to be fetched first.
    pub fn fate(&self, head: Tag, since: Moment, own: (TxnId, u32), fetched: &Fetched) -> Result<Fate, Tag> {
        'again: loop {
            let (mut tag, mut fate) = (head, Fate::default());
            let mut last: Option<(Tag, Arc<UndoRecord>)> = None;
            let mut intact: Option<Fate> = None;
            while !tag.is_settled() {
                let record = match self.undo.state_with(tag, fetched) {
                    TagState::InMemory(record) => record,
                    TagState::Gone if self.was_moved(last.as_ref().map(|(tag, record)| (tag, record))) => {
                        continue 'again;
                    }
                    TagState::Gone => break,
                    TagState::Spilled(_) if intact.is_some() => break,
                    TagState::Spilled(span) if span.through() <= since.commit => break,
                    TagState::Spilled(_) => return Err(tag),
                };
                match record.status() {
                    Status::Committed(commit) => {
                        let at = Moment { commit, position: record.position };
                        if at <= since {
                            break;
                        }
                        if record.deletes {
                            fate.end = Some(End { at, moved_to: record.moved_to().map(Into::into) });
                        }
                        fate.key_changed |= record.strength == LockMode::RowUpdate;
                    }
                    Status::Active if record.live().id() == own.0 && record.position < own.1 => break,
                    _ => {}
                }
                if let Some(passed) = record.passed() {
                    fate.key_changed |= passed.key_changed > since.commit;
                    match passed.end_after(since) {
                        Ok(Some(end)) => fate.end = Some(end.clone()),
                        Ok(None) => {}
                        Err(Unknown) => fate.unknown = true,
                    }
                }
                if record.keeps_row() && record.intact_since < since.commit && intact.is_none() {
                    if !cfg!(debug_assertions) {
                        break;
                    }
                    intact = Some(fate.clone());
                }
                last = Some((tag, record));
                tag = last.as_ref().map_or(Tag::SETTLED, |(_, record)| record.prev);
            }
            assert!(intact.is_none_or(|known| known == fate), "FAT-3: {fate:?} since {since:?}");
            return Ok(fate);
        }
    }
}

/// Since when the row is intact whose newest change is this record's, for the next change (FAT-3).
pub(super) fn intact_behind(newest: &UndoRecord) -> Lsn {
    match (newest.status(), newest.keeps_row()) {
        (Status::Committed(commit), true) => newest.intact_since.min(commit),
        (Status::Committed(commit), false) => commit,
        (_, true) => newest.intact_since,
        // An own change that is not committed yet: when it will be is not known.
        (_, false) => Lsn(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(commit: u64, to: Option<&[u8]>) -> End {
        End { at: Moment { commit: Lsn(commit), position: 0 }, moved_to: to.map(Into::into) }
    }

    #[test]
    fn of_the_ends_that_are_passed_the_oldest_after_a_moment_counts() {
        // FAT-1, FAT-2
        let mut passed = Passed::default();
        let since = |commit| Moment { commit: Lsn(commit), position: u32::MAX };
        passed.add_end(end(30, None));
        passed.add_end(end(20, Some(b"k")));
        assert_eq!(passed.end_after(since(10)), Ok(Some(&end(20, Some(b"k")))));
        assert_eq!(passed.end_after(since(20)), Ok(Some(&end(30, None))));
        assert_eq!(passed.end_after(since(30)), Ok(None));
        passed.add_end(end(15, None));
        assert_eq!(passed.end_after(since(10)), Ok(Some(&end(15, None))));
        assert_eq!(passed.end_after(since(15)), Err(Unknown), "20 or 30");
        let mut bytes = Vec::new();
        passed.encode(&mut bytes);
        assert_eq!(Passed::decode(&bytes), Some(passed));
        bytes.pop();
        assert_eq!(Passed::decode(&bytes), None);
    }
}
