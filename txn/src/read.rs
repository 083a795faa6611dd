//! Reading rows as a view sees them.
//!
//! # Invariants
//! - RDV-1: a row is returned only if, after its version was resolved, the page had not changed since it was copied. So a tag whose undo
//!   record was gone belonged to a version that every snapshot sees, not to a version that was rolled back in between.
//! - RDV-2: where a view sees two rows at a key (VER-4), a walk gives both, the row of the snapshot first and marked as such. A look-up gives the
//!   transaction's own row, if there is one, and says that there is another.

mod batch;

use std::ops::ControlFlow;

use clearway_storage::btree::{Cursor, Direction, KeyRange, LeafCopy, Lookup, NextLeaf, Row, RowBuf, Tree, TryGet};
use clearway_storage::ids::{Lsn, Tag};
use clearway_storage::record::Before;

use crate::error::TxnError;
use crate::mutation::{self, Mutation};
use crate::mvcc::book::{VersionBook, View, Visible};
use crate::mvcc::record::UndoRecord;
use crate::mvcc::undo::Fetched;

pub use batch::{RowBatch, ShownEnd};

/// A row that was found is in the buffer.
#[derive(Debug, Default)]
pub struct Reading {
    leaf: RowBuf,
    older: Option<Vec<u8>>,
    shown: Option<Shown>,
    fetched: Fetched,
}

/// The row that a snapshot shows at a key where the transaction has put another one (VER-4).
#[derive(Debug)]
pub struct Shown {
    /// Its value.
    pub value: Vec<u8>,
    /// The transaction has deleted its own row again.
    pub alone: bool,
    /// How the row ended.
    pub end: ShownEnd,
}

impl Reading {
    /// The value of the row that was found last.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.shown {
            Some(shown) if shown.alone => &shown.value,
            _ => self.older.as_deref().unwrap_or(self.leaf.row().value),
        }
    }

    /// The row that the snapshot shows at the key that was looked up last, if the transaction has put another one there (RDV-2).
    pub fn shown(&self) -> Option<&Shown> {
        self.shown.as_ref()
    }

    /// Forgets the spans read from the spill file, when no more rows are to be read soon.
    #[inline]
    pub fn rest(&mut self) {
        self.fetched.clear();
    }

    /// As [`Reading::get`], without waiting. `None`: a page or an undo record is not in memory, the value stands in an overflow chain, or there
    /// are two rows (RDV-2).
    pub fn get_now(
        &mut self,
        book: &VersionBook,
        tree: &Tree,
        key: &[u8],
        view: &View,
        dep_lsn: &mut Lsn,
    ) -> Option<bool> {
        self.shown = None;
        loop {
            self.older = None;
            let seen = match tree.try_get(key, &mut self.leaf) {
                TryGet::Hit(seen) if !self.leaf.row().overflow => seen,
                TryGet::Absent(_) => return Some(false),
                TryGet::Hit(_) | TryGet::Miss => return None,
            };
            let row = self.leaf.row();
            if row.tag.is_settled() {
                return Some(!row.ghost);
            }
            let mut dep = *dep_lsn;
            let visible = book.resolve(row.tag, view, &mut dep, &self.fetched);
            // RDV-1
            if !tree.still(&seen) {
                continue;
            }
            let found = match visible {
                Visible::Spilled(_) | Visible::Both { .. } => return None,
                Visible::Nothing => false,
                Visible::Current => !row.ghost,
                Visible::Older(record) => match record.before_of(key) {
                    Before::Row { overflow: true, .. } => return None,
                    Before::Row { ghost: false, value, .. } => {
                        self.older = Some(value.to_vec());
                        true
                    }
                    _ => false,
                },
            };
            *dep_lsn = dep;
            return Some(found);
        }
    }

    /// Looks a row up as `view` sees it; true if there is one. Raises `dep_lsn` to the commit LSNs on which the answer depends.
    ///
    /// # Errors
    /// From the tree.
    pub async fn get(
        &mut self,
        book: &VersionBook,
        tree: &Tree,
        key: &[u8],
        view: &View,
        dep_lsn: &mut Lsn,
    ) -> Result<bool, TxnError> {
        self.fetched.trim();
        self.shown = None;
        loop {
            let lookup = match tree.try_get(key, &mut self.leaf) {
                TryGet::Hit(seen) if !self.leaf.row().overflow => Lookup::Found(seen),
                TryGet::Absent(seen) => Lookup::Absent(seen),
                TryGet::Hit(_) | TryGet::Miss => tree.get(key, &mut self.leaf).await?,
            };
            self.older = None;
            let Lookup::Found(seen) = lookup else {
                return Ok(false);
            };
            let row = self.leaf.row();
            if row.tag.is_settled() {
                return Ok(!row.ghost);
            }
            mutation::copied_row();
            let mut dep = *dep_lsn;
            let visible = book.resolve(row.tag, view, &mut dep, &self.fetched);
            // RDV-1
            if !tree.still(&seen) && !mutation::active(Mutation::NoPageRevalidation) {
                continue;
            }
            note(dep_lsn, dep, !matches!(visible, Visible::Current) || !row.ghost);
            return match visible {
                Visible::Spilled(tag) => {
                    book.fetch(tag, &mut self.fetched).await?;
                    continue;
                }
                Visible::Nothing => Ok(false),
                Visible::Current => Ok(!row.ghost),
                Visible::Older(record) => {
                    self.older = image(tree, &record, key).await?;
                    Ok(self.older.is_some())
                }
                Visible::Both { own, shown } => {
                    let mut alone = own.is_none() && row.ghost;
                    if let Some(own) = own {
                        self.older = image(tree, &own, key).await?;
                        alone = self.older.is_none();
                    }
                    let end = ShownEnd::of(&shown);
                    self.shown = image(tree, &shown, key).await?.map(|value| Shown { value, alone, end });
                    Ok(!alone || self.shown.is_some())
                }
            };
        }
    }
}

/// The row that a record keeps at a key; none: a ghost, or nothing.
async fn image(tree: &Tree, record: &UndoRecord, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
    Ok(match record.before_of(key) {
        Before::Row { ghost: false, overflow: true, value } => Some(tree.read_chain(value).await?),
        Before::Row { ghost: false, overflow: false, value } => Some(value.to_vec()),
        _ => None,
    })
}

/// Raises `dep_lsn` to the commit of a row or ghost, on which the reply depends.
fn note(dep_lsn: &mut Lsn, lsn: Lsn, is_row: bool) {
    let left_out = if is_row { Mutation::NoDepWaitRows } else { Mutation::NoDepWaitGhosts };
    if !mutation::active(left_out) {
        *dep_lsn = lsn.max(*dep_lsn);
    }
}

/// Looks many rows up in the order of their keys, those of one leaf at a time.
#[derive(Default)]
pub struct Picks {
    copy: LeafCopy,
    fetched: Fetched,
}

/// What a look-up of many rows came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picked {
    /// The batch has the rows of so many keys, one for each.
    Rows(usize),
    /// So many keys are to be looked up one by one: a page or an undo record is not in memory, a value stands in an overflow chain, a row is not there,
    /// or there are two (RDV-2).
    Apart(usize),
}

impl Picks {
    /// Puts the rows with the first of the keys into `out`, those that stand in one leaf, without waiting. `key` gives the keys by their number, in
    /// ascending order. Raises `dep_lsn` to the commit LSNs on which the answer depends.
    pub fn pick_now<'k>(
        &mut self,
        (book, tree): (&VersionBook, &Tree),
        key: impl Fn(usize) -> Option<&'k [u8]>,
        view: &View,
        dep_lsn: &mut Lsn,
        out: &mut RowBatch,
    ) -> Picked {
        loop {
            out.clear();
            let Some(keys) = tree.try_pick(&key, &mut self.copy) else { return Picked::Apart(1) };
            mutation::copied_row();
            let mut dep = *dep_lsn;
            let from = (book, &self.fetched);
            let found = take_leaf(from, (view, Direction::Forward), &self.copy, &mut dep, out);
            let is_plain = found.spilled.is_empty() && found.chains.is_empty() && out.shown.is_empty();
            if !is_plain || out.len() != keys {
                out.clear();
                return Picked::Apart(keys);
            }
            // RDV-1
            if tree.still(&self.copy.seen()) || mutation::active(Mutation::NoPageRevalidation) {
                *dep_lsn = dep;
                return Picked::Rows(keys);
            }
        }
    }
}

/// A walk over the rows of a range as a view sees them.
pub struct Scan {
    tree: Tree,
    range: KeyRange,
    direction: Direction,
    view: View,
    cursor: Cursor,
    /// Spans read from the spill file, kept for the next leaves: neighbouring rows were often changed one after the other.
    fetched: Fetched,
    /// The rows of the last step are those of the leaf's copy.
    plain: bool,
}

impl Scan {
    /// A walk over `range`.
    pub fn new(tree: &Tree, range: KeyRange, direction: Direction, view: View) -> Scan {
        let cursor = tree.cursor(range.clone(), direction);
        Scan { tree: tree.clone(), range, direction, view, cursor, fetched: Fetched::default(), plain: false }
    }

    /// The next step reads no more than so many rows of its leaf, until it is told otherwise; the one behind it goes on there.
    pub fn expect(&mut self, rows: usize) {
        self.cursor.expect(rows);
    }

    /// The keys behind the rows that were read.
    pub fn rest(&self) -> &KeyRange {
        &self.range
    }

    /// Becomes a walk over another range, in the memory of this one.
    pub fn restart(&mut self, tree: &Tree, (from, to): (&[u8], Option<&[u8]>), direction: Direction, view: View) {
        self.cursor.restart(tree, (from, to), direction);
        if self.tree.id() != tree.id() {
            self.tree = tree.clone();
        }
        self.range.set(from, to);
        (self.direction, self.view) = (direction, view);
        self.fetched.clear();
    }

    /// Reads the rows of the next leaf, in the order of the walk; false after the last leaf. A batch may be empty.
    ///
    /// # Errors
    /// From the tree.
    pub async fn next(&mut self, book: &VersionBook, dep_lsn: &mut Lsn, out: &mut RowBatch) -> Result<bool, TxnError> {
        self.take_next(book, dep_lsn, (out, true)).await
    }

    /// The same. Where all rows stand in the leaf as the view sees them, they are not copied a second time; `row_of_step` gives them.
    ///
    /// # Errors
    /// From the tree.
    pub async fn step(&mut self, book: &VersionBook, dep_lsn: &mut Lsn, out: &mut RowBatch) -> Result<bool, TxnError> {
        self.take_next(book, dep_lsn, (out, false)).await
    }

    async fn take_next(
        &mut self,
        book: &VersionBook,
        dep_lsn: &mut Lsn,
        (out, copies): (&mut RowBatch, bool),
    ) -> Result<bool, TxnError> {
        self.fetched.trim();
        loop {
            out.clear();
            self.plain = false;
            let mut dep = *dep_lsn;
            let Some(leaf) = self.cursor.next_leaf().await? else {
                return Ok(false);
            };
            let from = (book, &self.fetched);
            let plain = !copies && is_plain(from, &self.view, leaf, &mut dep);
            let found = match plain {
                true => Unfinished::default(),
                false => {
                    dep = *dep_lsn;
                    take_leaf(from, (&self.view, self.direction), leaf, &mut dep, out)
                }
            };
            let seen = leaf.seen();
            // RDV-1: otherwise read the same leaf again; the cursor has already moved past it.
            let unchanged = self.tree.still(&seen) || mutation::active(Mutation::NoPageRevalidation);
            if !unchanged || !found.spilled.is_empty() {
                for tag in found.spilled {
                    book.fetch(tag, &mut self.fetched).await?;
                }
                self.cursor = self.tree.cursor(self.range.clone(), self.direction);
                continue;
            }
            *dep_lsn = dep;
            go_behind(&mut self.range, self.direction, leaf);
            self.plain = plain;
            if !found.chains.is_empty() {
                self.fetch_chains(found.chains, out).await?;
            }
            return Ok(true);
        }
    }

    /// Appends up to `rows` rows of the walk that it finds in one leaf, without waiting; false after the last leaf. `None`: a page or an undo record is
    /// not in memory, a value stands in an overflow chain, or there are two rows at a key (RDV-2); the walk and what was appended are of no use then.
    pub fn append_now(
        &mut self,
        book: &VersionBook,
        dep_lsn: &mut Lsn,
        rows: usize,
        out: &mut RowBatch,
    ) -> Option<bool> {
        self.take_now(book, dep_lsn, rows, (out, true))
    }

    /// The same into an empty batch. Where all rows stand in the leaf as the view sees them, they are not copied a second time; `each_of_step` gives them.
    pub fn step_now(&mut self, book: &VersionBook, dep_lsn: &mut Lsn, rows: usize, out: &mut RowBatch) -> Option<bool> {
        out.clear();
        self.take_now(book, dep_lsn, rows, (out, false))
    }

    /// How many rows the last step has found.
    #[inline]
    pub fn len_of_step(&self, out: &RowBatch) -> usize {
        if self.plain { self.cursor.leaf().len() } else { out.len() }
    }

    /// Key and value of a row of the last step, by its number in the order of the walk.
    #[inline]
    pub fn row_of_step<'s>(&'s self, out: &'s RowBatch, n: usize) -> (&'s [u8], &'s [u8]) {
        if !self.plain {
            return out.get(n);
        }
        let leaf = self.cursor.leaf();
        let (key, row) = leaf.get(if self.direction == Direction::Forward { n } else { leaf.len() - 1 - n });
        (key, row.value)
    }

    /// Gives keys and values of the last step to `f`, in the order of the walk, until it breaks off.
    #[inline]
    pub fn each_of_step<B>(&self, out: &RowBatch, mut f: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>) -> ControlFlow<B> {
        let leaf = self.cursor.leaf();
        match (self.plain, self.direction) {
            (false, _) => out.iter().try_for_each(|(key, value)| f(key, value)),
            (true, Direction::Forward) => leaf.iter().try_for_each(|(key, row)| f(key, row.value)),
            (true, Direction::Backward) => leaf.iter().rev().try_for_each(|(key, row)| f(key, row.value)),
        }
    }

    fn take_now(
        &mut self,
        book: &VersionBook,
        dep_lsn: &mut Lsn,
        rows: usize,
        (out, copies): (&mut RowBatch, bool),
    ) -> Option<bool> {
        let mark = out.len();
        self.plain = false;
        loop {
            let mut dep = *dep_lsn;
            self.cursor.expect(rows);
            let leaf = match self.cursor.next_leaf_now() {
                Ok(NextLeaf::Rows(leaf)) => leaf,
                Ok(NextLeaf::End) => return Some(false),
                Ok(NextLeaf::Miss) | Err(_) => return None,
            };
            mutation::copied_row();
            let from = (book, &self.fetched);
            let plain = is_plain(from, &self.view, leaf, &mut dep);
            if plain && copies {
                out.push_leaf(leaf, self.direction);
            }
            if !plain {
                dep = *dep_lsn;
                let found = take_leaf(from, (&self.view, self.direction), leaf, &mut dep, out);
                if !found.spilled.is_empty() || !found.chains.is_empty() || !out.shown.is_empty() {
                    return None;
                }
            }
            // RDV-1
            if !self.tree.still(&leaf.seen()) && !mutation::active(Mutation::NoPageRevalidation) {
                out.truncate(mark);
                let range = (&self.range.from[..], self.range.to.as_deref());
                self.cursor.restart(&self.tree, range, self.direction);
                continue;
            }
            *dep_lsn = dep;
            go_behind(&mut self.range, self.direction, leaf);
            self.plain = plain && !copies;
            return Some(true);
        }
    }

    /// Replaces references to overflow chains by the values.
    async fn fetch_chains(&self, chains: Vec<(usize, Vec<u8>)>, out: &mut RowBatch) -> Result<(), TxnError> {
        let mut whole = RowBatch { shown: std::mem::take(&mut out.shown), ..RowBatch::default() };
        let mut chains = chains.into_iter().peekable();
        for index in 0..out.len() {
            let (key, value) = out.get(index);
            match chains.next_if(|(at, _)| *at == index) {
                Some((_, reference)) => whole.push(key, &self.tree.read_chain(&reference).await?),
                None => whole.push(key, value),
            }
        }
        *out = whole;
        Ok(())
    }
}

/// What a leaf still needs after its rows were taken.
#[derive(Default)]
struct Unfinished {
    /// Tags whose records have to be fetched first.
    spilled: Vec<Tag>,
    /// References to overflow chains, by the row's place in the batch.
    chains: Vec<(usize, Vec<u8>)>,
}

/// Appends the rows of a leaf, in the order of the walk.
fn take_leaf(
    from: (&VersionBook, &Fetched),
    (view, direction): (&View, Direction),
    leaf: &LeafCopy,
    dep: &mut Lsn,
    out: &mut RowBatch,
) -> Unfinished {
    let mut found = Unfinished::default();
    // Rows that were loaded share a tag: what the view sees of one, it sees of all.
    let mut current = Tag::SETTLED;
    let mut take = |(key, row): (&[u8], Row<'_>)| {
        let seen = (view, &mut current);
        if let Some(tag) = take_row(from, seen, key, row, dep, out, &mut found.chains) {
            found.spilled.push(tag);
        }
    };
    match direction {
        Direction::Forward => leaf.iter().for_each(&mut take),
        Direction::Backward => leaf.iter().rev().for_each(&mut take),
    }
    found
}

/// Whether the view sees all rows of a leaf as they stand there.
fn is_plain((book, fetched): (&VersionBook, &Fetched), view: &View, leaf: &LeafCopy, dep: &mut Lsn) -> bool {
    let mut current = Tag::SETTLED; // as in `take_leaf`
    leaf.tags().all(|(tag, is_live)| {
        if tag.is_settled() || tag == current {
            return is_live;
        }
        let mut bears = Lsn::ZERO;
        let is_current = is_live && matches!(book.resolve(tag, view, &mut bears, fetched), Visible::Current);
        current = tag;
        note(dep, bears, true);
        is_current
    })
}

/// What is left of a range behind the rows of a leaf.
fn go_behind(range: &mut KeyRange, direction: Direction, leaf: &LeafCopy) {
    if leaf.is_empty() {
        return;
    }
    match direction {
        Direction::Forward => {
            range.from.clear();
            range.from.extend_from_slice(leaf.get(leaf.len() - 1).0);
            range.from.push(0);
        }
        Direction::Backward => range.to = Some(leaf.get(0).0.to_vec()),
    }
}

/// Puts a row into the batch as the view sees it, or returns the tag that has to be fetched first.
fn take_row(
    (book, fetched): (&VersionBook, &Fetched),
    (view, current): (&View, &mut Tag),
    key: &[u8],
    row: Row<'_>,
    dep: &mut Lsn,
    out: &mut RowBatch,
    chains: &mut Vec<(usize, Vec<u8>)>,
) -> Option<Tag> {
    let mut keep = |out: &mut RowBatch, ghost: bool, overflow: bool, value: &[u8]| {
        if ghost {
            return;
        }
        if overflow {
            chains.push((out.len(), value.to_vec()));
        }
        out.push(key, if overflow { &[] } else { value });
    };
    // What a record keeps; without one, what stands in the leaf.
    let mut keep_of = |out: &mut RowBatch, record: Option<&UndoRecord>| match record.map(|r| r.before_of(key)) {
        None => keep(out, row.ghost, row.overflow, row.value),
        Some(Before::Row { ghost, overflow, value }) => keep(out, ghost, overflow, value),
        Some(Before::Absent) => {}
    };
    let mut bears = Lsn::ZERO;
    let visible = match row.tag.is_settled() || row.tag == *current {
        true => Visible::Current,
        false => book.resolve(row.tag, view, &mut bears, fetched),
    };
    if let Visible::Current = visible {
        *current = row.tag;
    }
    note(dep, bears, !matches!(visible, Visible::Current) || !row.ghost);
    match visible {
        Visible::Nothing => {}
        Visible::Current => keep_of(out, None),
        Visible::Older(record) => keep_of(out, Some(&record)),
        Visible::Both { own, shown } => {
            out.shown.push((out.len(), ShownEnd::of(&shown)));
            keep_of(out, Some(&shown));
            keep_of(out, own.as_deref());
        }
        Visible::Spilled(tag) => return Some(tag),
    }
    None
}
