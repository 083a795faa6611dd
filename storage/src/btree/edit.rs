//! Changes of one node under its exclusive latch; redo makes the same changes.
//!
//! # Invariants
//! - BTR-3 (see `image`): whether a row fits depends on rows and fences alone.
//! - BTR-4: a change that does not fit leaves the node as it was.

use super::image::{CellHead, Frame, Image, NodeRow, Rows, node_of, row_bytes};
use super::node::{
    AT_COUNT, AT_GARBAGE, AT_HEAP_TOP, AT_SHARED_TAG, GHOST, OWN, SHARED, SLOT_BYTES, SLOTS, length_bytes, put_length,
};
use crate::buffer::page::{PAGE_BYTES, PageMut};
use crate::ids::{PageId, Tag};
use std::cell::Cell;
use std::cmp::Ordering;

/// The change did not fit the node, which is as it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The tag that a page's rows may share once this row is in: where none is shared yet, a new row's, or that of a row with `shares`.
fn shared_after(page: &PageMut<'_>, row: &NodeRow<'_>, is_new: bool, shares: bool) -> Tag {
    let shared = node_of(page).shared_tag();
    if shared.is_settled() && (is_new || shares) && page.level() == 0 { row.tag } else { shared }
}

/// Puts a row in, or replaces the one with its key.
pub(super) fn put(page: &PageMut<'_>, row: &NodeRow<'_>) -> Result<(), Full> {
    put_at(page, row, node_of(page).search(row.key), false)
}

/// The same, where the row stands or would stand is known. `shares`: other rows of the leaf are to carry its tag, too (BTR-23).
pub(super) fn put_at(
    page: &PageMut<'_>,
    row: &NodeRow<'_>,
    found: Result<usize, usize>,
    shares: bool,
) -> Result<(), Full> {
    if let Ok(index) = found
        && put_over(page, row, index, shares)
    {
        return Ok(());
    }
    let node = node_of(page);
    let shared = shared_after(page, row, found.is_err(), shares);
    let own = !row.tag.is_settled() && row.tag != shared;
    let prefix_len = node.prefix_len();
    let has_prefix =
        row.key.len() >= prefix_len && page.compare(node.tail(), prefix_len, &row.key[..prefix_len]) == Ordering::Equal;
    // The first row brings its whole key as the prefix: cheap to shorten for the second.
    if has_prefix && node.count() > 0 {
        let slot_and_cell = row_bytes(row.key.len() - prefix_len, row.value.len(), row.overflow, own);
        let cell_len = slot_and_cell - SLOT_BYTES;
        match found {
            // In place also where it is shorter: undoing a change takes the tag off, and in a full leaf, where a new cell has no room,
            // every few rows would build the node anew.
            Ok(index) if node.cell(node.slot(index)).len() >= cell_len => {
                let cell = node.cell(node.slot(index));
                set_garbage(page, node.garbage() + cell.len() - cell_len);
                put_cell(page, row, prefix_len, shared, cell.offset, index);
                page.set_u64(AT_SHARED_TAG, shared.0);
                return Ok(());
            }
            Ok(index) if node.gap() >= cell_len => {
                set_garbage(page, node.garbage() + node.cell(node.slot(index)).len());
                let offset = node.heap_top() - cell_len;
                page.set_u16(AT_HEAP_TOP, offset as u16);
                put_cell(page, row, prefix_len, shared, offset, index);
                page.set_u64(AT_SHARED_TAG, shared.0);
                return Ok(());
            }
            Err(index) if node.gap() >= slot_and_cell => {
                let offset = node.heap_top() - cell_len;
                page.set_u16(AT_HEAP_TOP, offset as u16);
                let (count, at) = (node.count(), SLOTS + SLOT_BYTES * index);
                page.move_quads(at, at + SLOT_BYTES, count - index);
                page.set_u16(AT_COUNT, (count + 1) as u16);
                put_cell(page, row, prefix_len, shared, offset, index);
                page.set_u64(AT_SHARED_TAG, shared.0);
                return Ok(());
            }
            _ => {}
        }
    }
    put_rebuilding(page, row, found, shared)
}

/// Replaces the row at an index where its cell stays as it is but for the value and its length: neither row has a tag of its own, and the new value is
/// not longer. False: it is another case, and nothing was done. A ghost that shares its tag costs a slot, not a cell: half of a DELETE's changes of pages.
pub(super) fn put_over(page: &PageMut<'_>, row: &NodeRow<'_>, index: usize, shares: bool) -> bool {
    let node = node_of(page);
    let slot = node.slot(index);
    if slot & OWN != 0 || row.overflow {
        return false;
    }
    let shared = shared_after(page, row, false, shares);
    if !row.tag.is_settled() && row.tag != shared {
        return false;
    }
    let cell = node.cell(slot);
    let value_len = row.value.len();
    let code_len = length_bytes(value_len);
    if cell.overflow || value_len > cell.value_len || length_bytes(cell.value_len) != code_len {
        return false;
    }
    if value_len != cell.value_len {
        let mut code = [0; 2];
        put_length(value_len, &mut code);
        // The length of the value stands before what follows the head, as there is no tag.
        page.write(cell.rest_at - code_len, &code[..code_len]);
        set_garbage(page, node.garbage() + cell.value_len - value_len);
    }
    if value_len > 0 {
        page.write(cell.value_at, row.value);
    }
    let ghost = if row.ghost { GHOST } else { 0 };
    let tag = if row.tag.is_settled() { 0 } else { SHARED };
    page.set_u32(SLOTS + SLOT_BYTES * index, slot & !(GHOST | SHARED) | ghost | tag);
    if shared != node.shared_tag() {
        page.set_u64(AT_SHARED_TAG, shared.0);
    }
    true
}

pub(super) fn set_garbage(page: &PageMut<'_>, bytes: usize) {
    page.set_u16(AT_GARBAGE, bytes.min(PAGE_BYTES) as u16);
}

/// A cell of so many bytes is put together before it is written.
const SMALL_CELL_BYTES: usize = 256;

fn put_cell(page: &PageMut<'_>, row: &NodeRow<'_>, prefix_len: usize, shared: Tag, offset: usize, index: usize) {
    let head = CellHead::new(row, prefix_len, shared);
    let len = head.cell_len(row, prefix_len);
    let mut small = [0; SMALL_CELL_BYTES];
    let slot = match small.get_mut(..len) {
        // The words of a page are written whole: three parts would take two of them twice.
        Some(cell) => {
            let copy = |at: usize, part: &[u8]| cell[at - offset..][..part.len()].copy_from_slice(part);
            let slot = head.put(row, prefix_len, offset, copy);
            page.write(offset, &small[..len]);
            slot
        }
        None => head.put(row, prefix_len, offset, |at, part| page.write(at, part)),
    };
    page.set_u32(SLOTS + SLOT_BYTES * index, slot);
}

fn put_rebuilding(page: &PageMut<'_>, row: &NodeRow<'_>, found: Result<usize, usize>, shared: Tag) -> Result<(), Full> {
    let node = node_of(page);
    let mut rows = Rows::of(node, 0, node.count());
    let index = match found {
        Ok(index) => {
            rows.remove(index);
            index
        }
        Err(index) => index,
    };
    rows.insert(index, row);
    let frame = Frame { shared_tag: shared, ..Frame::of(node) };
    rebuild(page, &frame, &rows, 0, rows.len())
}

/// Makes the page the node of rows `from..to`.
pub(super) fn rebuild(page: &PageMut<'_>, frame: &Frame, rows: &Rows, from: usize, to: usize) -> Result<(), Full> {
    let mut image = Image::new();
    if !image.build(frame, rows, from, to) {
        return Err(Full);
    }
    image.store(page);
    Ok(())
}

/// Takes the row with this key out; whether there was one.
pub(super) fn remove(page: &PageMut<'_>, key: &[u8]) -> bool {
    let Ok(index) = node_of(page).search(key) else {
        return false;
    };
    remove_all(page, &[index as u16]);
    true
}

/// Takes the rows with these indexes out, which ascend. Their cells stay as garbage, the rows behind them move up.
pub(super) fn remove_all(page: &PageMut<'_>, indexes: &[u16]) {
    let node = node_of(page);
    let count = node.count();
    let (mut kept, mut freed) = (indexes.first().map_or(count, |first| usize::from(*first)), 0);
    for (n, index) in indexes.iter().enumerate() {
        let index = usize::from(*index);
        freed += node.cell(node.slot(index)).len();
        let (from, to) = (index + 1, indexes.get(n + 1).map_or(count, |next| usize::from(*next)));
        page.move_quads(SLOTS + SLOT_BYTES * from, SLOTS + SLOT_BYTES * kept, to - from);
        kept += to - from;
    }
    page.set_u16(AT_COUNT, kept as u16);
    set_garbage(page, node.garbage() + freed);
}

/// Keeps the first `keep` rows, with a new upper fence and right neighbour: the left half of a split.
pub(super) fn truncate(page: &PageMut<'_>, keep: usize, right: PageId, high: &[u8]) -> Result<(), Full> {
    let node = node_of(page);
    let rows = Rows::of(node, 0, keep);
    let frame = Frame { right, high: Some(high.to_vec()), ..Frame::of(node) };
    rebuild(page, &frame, &rows, 0, rows.len())
}

/// Answers for tags, each asked for once as long as it comes again and again: most rows of a leaf have the same one.
struct Asked<F> {
    is_settled: F,
    last: Cell<(Tag, bool)>,
}

impl<F: Fn(Tag) -> bool> Asked<F> {
    fn new(is_settled: F) -> Asked<F> {
        Asked { is_settled, last: Cell::new((Tag::SETTLED, true)) }
    }

    fn is_settled(&self, tag: Tag) -> bool {
        let (last, settled) = self.last.get();
        if tag.is_settled() || tag == last {
            return tag.is_settled() || settled;
        }
        let settled = (self.is_settled)(tag);
        self.last.set((tag, settled));
        settled
    }
}

/// What a strip does, found under the latch and repeated by redo.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Strip {
    /// All rows with the shared tag lose it.
    pub(super) shared: bool,
    /// Rows that lose their own tag, by index.
    pub(super) settle: Vec<u16>,
    /// Ghosts that go, by index.
    pub(super) purge: Vec<u16>,
}

impl Strip {
    /// The ghosts that `is_settled` gives up on this leaf.
    pub(super) fn ghosts(page: &PageMut<'_>, is_settled: impl Fn(Tag) -> bool) -> Strip {
        let (node, asked) = (node_of(page), Asked::new(is_settled));
        let mut strip = Strip::default();
        for index in 0..node.count() {
            let slot = node.slot(index);
            if slot & GHOST == 0 {
                continue;
            }
            if asked.is_settled(node.tag(slot, &node.cell(slot))) {
                // A ghost's overflow chain is freed by the transaction that made the ghost, never here.
                strip.purge.push(index as u16);
            }
        }
        strip
    }

    /// Whether `is_settled` allows anything on this leaf, as far as some of its tags tell: a look at all of them would cost a leaf that is filled or
    /// emptied by one transaction more than its split.
    pub(super) fn seems_possible(page: &PageMut<'_>, is_settled: impl Fn(Tag) -> bool) -> bool {
        const LOOKS: usize = 16;
        let node = node_of(page);
        let (count, shared_tag) = (node.count(), node.shared_tag());
        if !shared_tag.is_settled() && is_settled(shared_tag) {
            return true;
        }
        let own = |index: &usize| {
            let slot = node.slot(*index);
            slot & (OWN | GHOST) != 0
        };
        let step = (0..count).filter(own).count().div_ceil(LOOKS).max(1);
        (0..count).filter(own).step_by(step).any(|index| {
            let slot = node.slot(index);
            let tag = node.tag(slot, &node.cell(slot));
            tag.is_settled() || is_settled(tag)
        })
    }

    /// What `is_settled` allows on this leaf.
    pub(super) fn find(page: &PageMut<'_>, is_settled: impl Fn(Tag) -> bool) -> Strip {
        let node = node_of(page);
        let (shared_tag, asked) = (node.shared_tag(), Asked::new(is_settled));
        let shared = asked.is_settled(shared_tag);
        let mut strip = Strip { shared: !shared_tag.is_settled() && shared, ..Strip::default() };
        for index in 0..node.count() {
            let slot = node.slot(index);
            let settled = match slot & OWN {
                0 if slot & SHARED != 0 => shared,
                0 => true,
                _ => asked.is_settled(node.tag(slot, &node.cell(slot))),
            };
            if !settled {
                continue;
            }
            if slot & GHOST != 0 {
                strip.purge.push(index as u16);
            } else if slot & OWN != 0 {
                strip.settle.push(index as u16);
            }
        }
        strip
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.shared && self.settle.is_empty() && self.purge.is_empty()
    }

    /// Carries it out. Rows only shrink, so it always fits.
    pub(super) fn apply(&self, page: &PageMut<'_>) -> Result<(), Full> {
        let node = node_of(page);
        let mut rows = Rows::of(node, 0, node.count());
        let mut frame = Frame::of(node);
        let shared_tag = frame.shared_tag;
        if self.shared {
            for index in 0..rows.len() {
                if rows.get(index).tag == shared_tag {
                    rows.set_tag(index, Tag::SETTLED);
                }
            }
            frame.shared_tag = Tag::SETTLED;
        }
        for index in &self.settle {
            rows.set_tag(usize::from(*index), Tag::SETTLED);
        }
        for index in self.purge.iter().rev() {
            rows.remove(usize::from(*index));
        }
        rebuild(page, &frame, &rows, 0, rows.len())
    }

    /// For the log.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        // Each row of the node is settled or removed, at most once.
        let rows = self.settle.len() + self.purge.len();
        assert!(u16::try_from(rows).is_ok(), "a strip of {rows} rows");
        out.push(u8::from(self.shared));
        for list in [&self.settle, &self.purge] {
            out.extend_from_slice(&(list.len() as u16).to_le_bytes());
            for index in list {
                out.extend_from_slice(&index.to_le_bytes());
            }
        }
    }

    /// From the log; none if the bytes are not a strip of a node with `count` rows.
    pub(super) fn decode(mut bytes: &[u8], count: usize) -> Option<Strip> {
        let mut strip = Strip { shared: *bytes.split_off_first()? == 1, ..Strip::default() };
        for list in [&mut strip.settle, &mut strip.purge] {
            let len = u16::from_le_bytes(bytes.split_off(..2)?.try_into().ok()?);
            for _ in 0..len {
                let index = u16::from_le_bytes(bytes.split_off(..2)?.try_into().ok()?);
                let ascending = list.last().is_none_or(|last| *last < index);
                if usize::from(index) >= count || !ascending {
                    return None;
                }
                list.push(index);
            }
        }
        bytes.is_empty().then_some(strip)
    }
}

/// The shortest key that is greater than `left` and not greater than `right`.
pub(super) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let shared = super::node::common_prefix(left, right);
    right[..(shared + 1).min(right.len())].to_vec()
}
