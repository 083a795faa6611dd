//! Bulk load: inserts rows in key order as full leaves, one record each, into a tree that is whole all the time.
//!
//! # Life of a page
//! Rows gather outside the pool until they fill a leaf. One record then makes the last leaf of the tree that full
//! leaf and links a new, empty one to its right; the separator goes to the parent as after any split. A crash
//! leaves the rows of the records that were durable, and no leaked page.
//!
//! # Invariants
//! - BTR-14: no other transaction sees the tree before the loading transaction commits, and its rollback drops the tree.
//!   So loaded rows need no undo of their own: they are settled, or all carry the tag of one row that was inserted by an edit.
//!   Keys ascend, and are above all keys that the tree had.

use super::descend::{Descent, Pending, Target};
use super::edit::separator;
use super::image::{Frame, Image, NodeRow, Rows, node_of, row_bytes, rows_that_fit};
use super::node::{Node, common_prefix};
use super::ops;
use super::tree::Tree;
use super::write::{record_bytes, take_credit};
use super::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::buffer::page::PAGE_BYTES;
use crate::buffer::{Miss, Pin, ReadReason};
use crate::error::StorageError;
use crate::ids::{PageId, Tag};
use crate::record::PageOp;
use crate::seams::{Credit, PageReservation, Purpose};

/// Bytes that fences and header may take of a page, at a guess; the exact figure is looked at near the end.
const GUESS_BYTES: usize = 128;

/// A load in progress. Rows that were pushed but not finished are lost if it is dropped.
pub struct BulkLoad {
    tree: Tree,
    tag: Tag,
    rows: Rows,
    // Bytes of the rows without a common prefix taken off.
    raw_bytes: usize,
    loaded: u64,
}

enum Flushed {
    Done(usize, Option<Pending>),
    Miss(Miss),
    Again,
    Pages(usize),
}

impl Tree {
    /// Begins to load rows in key order (BTR-14).
    pub fn bulk_load(&self) -> BulkLoad {
        self.bulk_load_as(Tag::SETTLED)
    }

    /// The same for rows that all carry `tag`, which a record of a row in this tree has put into the log before: recovery
    /// knows by that record that the tag was given out.
    pub fn bulk_load_as(&self, tag: Tag) -> BulkLoad {
        BulkLoad { tree: self.clone(), tag, rows: Rows::default(), raw_bytes: 0, loaded: 0 }
    }
}

impl BulkLoad {
    /// The next row.
    pub async fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.push_row(key, value, false).await
    }

    /// The next row, whose value stands in the overflow chain `reference`.
    pub async fn push_overflow(&mut self, key: &[u8], reference: &[u8]) -> Result<(), StorageError> {
        self.push_row(key, reference, true).await
    }

    /// The next row, if it does not fill a leaf; else false, and [`BulkLoad::push`] takes it.
    ///
    /// # Errors
    /// As [`BulkLoad::push`].
    pub fn push_now(&mut self, key: &[u8], value: &[u8]) -> Result<bool, StorageError> {
        if self.is_full(key, row_bytes(key.len(), value.len(), false, false), 1) {
            return Ok(false);
        }
        self.add(key, value, false)?;
        Ok(true)
    }

    async fn push_row(&mut self, key: &[u8], value: &[u8], overflow: bool) -> Result<(), StorageError> {
        self.add(key, value, overflow)?;
        if self.is_full(key, 0, 0) {
            self.flush().await?;
        }
        Ok(())
    }

    /// Whether the rows surely fill a leaf, with so many more bytes of so many more rows, if `last` is the last one's key.
    fn is_full(&self, last: &[u8], more_bytes: usize, more_rows: usize) -> bool {
        let (rows, raw_bytes) = (self.rows.len(), self.raw_bytes + more_bytes);
        if raw_bytes + GUESS_BYTES <= PAGE_BYTES + ROW_BYTES_MAX {
            return false;
        }
        let prefix = if rows == 0 { last.len() } else { common_prefix(self.rows.get(0).key, last) };
        let bytes = raw_bytes.saturating_sub((rows + more_rows) * prefix);
        bytes + GUESS_BYTES > PAGE_BYTES + ROW_BYTES_MAX
    }

    fn add(&mut self, key: &[u8], value: &[u8], overflow: bool) -> Result<(), StorageError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(StorageError::KeyTooLong { len: key.len(), max: KEY_BYTES_MAX });
        }
        if key.len() + value.len() > ROW_BYTES_MAX {
            return Err(StorageError::ValueTooLong { len: value.len(), max: ROW_BYTES_MAX - key.len() });
        }
        if self.rows.len() > 0 && self.rows.get(self.rows.len() - 1).key >= key {
            return Err(StorageError::Invalid("rows to load must come in key order".into()));
        }
        let row = NodeRow { key, value, tag: self.tag, ghost: false, overflow };
        self.rows.insert(self.rows.len(), &row);
        self.raw_bytes += row_bytes(key.len(), value.len(), overflow, false);
        Ok(())
    }

    /// Ends the load without a leaf that is not full: gives the rows that have not been loaded, less than a page of them.
    pub fn into_rest(self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.rows.iter().map(|row| (row.key.to_vec(), row.value.to_vec())).collect()
    }

    /// The last rows; gives the number of rows loaded.
    pub async fn finish(mut self) -> Result<u64, StorageError> {
        while self.rows.len() > 0 {
            self.flush().await?;
        }
        Ok(self.loaded)
    }

    /// Writes one leaf.
    async fn flush(&mut self) -> Result<(), StorageError> {
        let tree = self.tree.clone();
        let root = tree.root().await?;
        let wal = tree.pool().log().clone();
        let bytes = record_bytes(&*wal, 8, 3 * PAGE_BYTES);
        let mut pages = 1;
        let (taken, pending) = loop {
            tree.pool().throttle().await?;
            let mut reservation = tree.pool().space().reserve(pages).await?;
            let mut pins = Vec::with_capacity(pages);
            for page in reservation.pages().to_vec() {
                pins.push(tree.pool().pin_new(page).await?);
            }
            let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
            let flushed = self.try_flush(&tree, root, &mut credit, &mut *reservation, &pins)?;
            drop((credit, pins, reservation));
            match flushed {
                Flushed::Done(taken, pending) => break (taken, pending),
                Flushed::Miss(miss) => drop(tree.pool().fetch_missing(miss, ReadReason::Path).await?),
                Flushed::Pages(needed) => pages = needed,
                Flushed::Again => {}
            }
        };
        if let Some(pending) = pending {
            tree.put_separator(pending, Purpose::Change).await?;
        }
        self.loaded += taken as u64;
        self.rows.forget_first(taken);
        let bytes = |row: NodeRow<'_>| row_bytes(row.key.len(), row.value.len(), row.overflow, false);
        self.raw_bytes = self.rows.iter().map(bytes).sum();
        Ok(())
    }

    /// The rows of a node, and those to be loaded behind them.
    fn behind(&self, node: Node<'_>) -> Rows {
        let mut all = Rows::of(node, 0, node.count());
        self.rows.iter().for_each(|row| all.insert(all.len(), &row));
        all
    }

    fn try_flush(
        &self,
        tree: &Tree,
        root: PageId,
        credit: &mut Credit<'_>,
        reservation: &mut dyn PageReservation,
        pins: &[Pin<'_>],
    ) -> Result<Flushed, StorageError> {
        let page = match tree.descend(root, Target::Below(None), 0)? {
            Descent::Miss(miss) => return Ok(Flushed::Miss(miss)),
            Descent::At(page, _) => page,
            Descent::Shallow => return Ok(Flushed::Again),
        };
        let is_root = page.id() == root;
        let needed = if is_root { 2 } else { 1 };
        if pins.len() != needed {
            return Ok(Flushed::Pages(needed));
        }
        let Some(mut last) = tree.latch(&page) else {
            return Ok(Flushed::Again);
        };
        let node = node_of(last.page());
        let first_key = self.rows.get(0).key;
        let old = node.count();
        if old > 0 && *node.key(old - 1) >= *first_key {
            return Err(StorageError::Invalid("rows to load must be above all rows of the tree".into()));
        }
        let behind_old = (old > 0).then(|| self.behind(node));
        let all = behind_old.as_ref().unwrap_or(&self.rows);
        let frame = Frame::of(node);
        let shared_tag = if old == 0 || frame.shared_tag.is_settled() { self.tag } else { frame.shared_tag };
        let frame = Frame { shared_tag, ..frame };
        let next_id = pins[needed - 1].id();
        let full_id = if is_root { pins[0].id() } else { page.id() };
        let (full, keep, fence) = fill(&frame, all, full_id, next_id, old);
        let mut next = Image::new();
        let next_frame = Frame { id: next_id, low: fence.clone(), shared_tag: self.tag, ..frame.clone() };
        // Rows of the old leaf that the new fence left no room for move on.
        assert!(next.build(&next_frame, all, keep, keep.max(old)), "part of a leaf fits a leaf");
        assert!(keep <= all.len(), "BTR-1: a leaf takes rows that there are");
        let taken = keep.saturating_sub(old);
        assert!(taken <= self.rows.len(), "BTR-1: each row is loaded once");
        if let Some(room) = tree.pool().log().undo_room() {
            room.taken(1, PAGE_BYTES);
        }
        if is_root {
            tree.plant_root(&mut last, &frame, &full, &next, &fence, credit, reservation, pins);
            return Ok(Flushed::Done(taken, None));
        }
        let mut right = pins[0].latch();
        let space = reservation.latch(1);
        last.will_change();
        right.will_change();
        let (full_args, next_args) = (full.parts(), next.parts());
        let ops = [
            PageOp { page: full_id, op: ops::INIT, payload: &full_args },
            PageOp { page: next_id, op: ops::INIT, payload: &next_args },
        ];
        full.store(last.page());
        next.store(right.page());
        let end = tree.append_structure(credit, &ops, space);
        last.changed(end);
        right.changed(end);
        Ok(Flushed::Done(taken, Some(Pending { separator: fence, child: next_id, by: last.seen_after(), level: 1 })))
    }
}

/// The fullest leaf of rows that begin with the `old` ones already there; with it their number and the fence above.
fn fill(frame: &Frame, rows: &Rows, id: PageId, right: PageId, old: usize) -> (Image, usize, Vec<u8>) {
    // Above the last row a fence that any later key respects is the key itself with a zero byte.
    let fence = |keep: usize| {
        let last = rows.get(keep - 1).key;
        if keep < rows.len() { separator(last, rows.get(keep).key) } else { [last, &[0]].concat() }
    };
    let mut image = Image::new();
    // `old` rows with a longer fence may not fit though they did without; then the fence takes the place of rows.
    let mut keep = rows_that_fit(frame, rows, |keep| fence(keep).len()).max(old.max(1));
    loop {
        let high = fence(keep);
        let full = Frame { id, right, high: Some(high.clone()), ..frame.clone() };
        if image.build(&full, rows, 0, keep) {
            return (image, keep, high);
        }
        keep -= 1;
        assert!(keep > 0, "one row and two fences fit a page");
    }
}
