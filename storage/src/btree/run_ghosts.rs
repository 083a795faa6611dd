//! The ghosts of a run that need no decision (BTR-27), as many as follow each other in the leaf at once.
//!
//! # Life of a pass
//! the rows of the next edits are found, one behind the other -> the room that their undo needs is claimed -> they are appended to the run's record ->
//! the caller learns of them -> they become ghosts
//!
//! # Invariants
//! - BTR-28: a pass makes the changes that it would make one by one: each is found above the row before it, its part of the record and of the undo has its credit
//!   (BTR-19), and its claim to room (WAL-20) is made before the page is changed. Where there is no room for all of them, the pass makes none: the caller's decisions go on
//!   one by one. (Found, claimed, logged and told one by one, each took twice the instructions.)

use super::edit::set_garbage;
use super::node::{self, GHOST, Node, OWN, SHARED, SLOT_BYTES, SLOTS, head_of, length_bytes};
use super::run::{Cost, Leaf, Pass, RunEdits};
use super::run_record::{RunGhosts, ghost_bytes};
use super::tree::Tree;
use crate::buffer::page::PageMut;
use crate::record::TxnLog;
use crate::seams::Credit;
use crate::wal::{RoomChange, RoomChanges};

/// So many slots are looked at one by one before a search: rows that change are mostly close to each other.
const NEAR: usize = 4;

/// A settled row of a page, with a short value of its own, if any, and no ghost. It becomes a ghost without a look at its key.
struct SettledRow<'v> {
    key: &'v [u8],
    index: usize,
    slot: u32,
    value_at: usize,
    value_len: usize,
    /// Where the length of its value stands, in one byte.
    code_at: usize,
}

/// The rows of a page.
struct Rows<'p> {
    node: Node<'p>,
    count: usize,
    tail: usize,
    prefix_len: usize,
}

impl<'p> Rows<'p> {
    fn of(node: Node<'p>) -> Rows<'p> {
        Rows { node, count: node.count(), tail: node.tail(), prefix_len: node.prefix_len() }
    }

    /// The settled row with this key, which is above the first `low` rows; none: it is not there, or it is another kind of row.
    #[inline]
    fn find<'v>(&self, key: &'v [u8], low: usize) -> Option<SettledRow<'v>> {
        let (prefix, suffix) = key.split_at_checked(self.prefix_len)?;
        if !self.node.0.holds(self.tail, prefix) {
            return None;
        }
        let (head, rest) = (u32::from(head_of(suffix)), suffix.get(2..).unwrap_or_default());
        let near = self.count.min(low + NEAR);
        for index in low..near {
            let slot = self.node.slot(index);
            if slot >> 16 != head {
                continue;
            }
            let cell = self.node.cell(slot);
            if cell.suffix_len == suffix.len() && self.node.0.holds(cell.rest_at, rest) {
                return self.settled(key, index, slot, &cell);
            }
        }
        let index = self.node.search_from(key, near).ok()?;
        let slot = self.node.slot(index);
        self.settled(key, index, slot, &self.node.cell(slot))
    }

    #[inline]
    fn settled<'v>(&self, key: &'v [u8], index: usize, slot: u32, cell: &node::Cell) -> Option<SettledRow<'v>> {
        debug_assert_eq!(self.node.search(key), Ok(index), "BTR-28: the row with the key");
        let is_settled = slot & (OWN | SHARED | GHOST) == 0 && !cell.overflow && length_bytes(cell.value_len) == 1;
        let (value_at, value_len) = (cell.value_at, cell.value_len);
        // The length of the value stands before what follows the head, as there is no tag.
        is_settled.then_some(SettledRow {
            key,
            index,
            slot,
            value_at,
            value_len,
            code_at: cell.rest_at.wrapping_sub(1),
        })
    }
}

/// Rows become ghosts without values that carry the page's shared tag.
fn make_ghosts(page: &PageMut<'_>, rows: &[SettledRow<'_>], given_up: usize) {
    for row in rows {
        if row.value_len > 0 {
            page.write(row.code_at, &[0]);
        }
        page.set_u32(SLOTS + SLOT_BYTES * row.index, row.slot | GHOST | SHARED);
    }
    if given_up > 0 {
        set_garbage(page, Node(**page).garbage() + given_up);
    }
}

impl Tree {
    /// Makes the next edits as long as they are such ghosts.
    pub(super) fn join_ghosts<'v>(
        &self,
        leaf: &mut Leaf<'_>,
        (cost, credit): (&Cost, &Credit<'_>),
        log: &mut TxnLog,
        edits: &mut impl RunEdits<'v>,
        pass: &mut Pass<'v>,
    ) {
        if !leaf.may_join(edits.tag()) || !pass.joins {
            return;
        }
        // BTR-19
        let Some(mut left) = credit.left_bytes().checked_sub(leaf.log_bytes(cost)) else { return };
        let (mut room, mut given_up, mut undo) = (RoomChanges::default(), 0, 0);
        let mut found: Vec<SettledRow<'v>> = Vec::new();
        let rows = Rows::of(Node(**leaf.latched.page()));
        let mut low = pass.low;
        while let Some(key) = edits.ghost(pass.next() + found.len()) {
            // A key that is found there is behind the last one and below the fence.
            let Some(row) = rows.find(key, low) else { break };
            let of_undo = cost.undo(key.len(), row.value_len);
            let Some(after) = left.checked_sub(ghost_bytes(key.len(), row.value_len) + of_undo) else { break };
            (left, undo) = (after, undo + of_undo);
            given_up += row.value_len;
            room.add(RoomChange::of(key.len(), Some(row.value_len), Some(0)));
            low = row.index + 1;
            if found.is_empty() {
                found.reserve(rows.count - row.index);
            }
            found.push(row);
        }
        let Some(last) = found.last() else { return };
        if let Some(claims) = self.pool().log().undo_room() {
            // WAL-20
            pass.joins = claims.allows_all(&room);
            if !pass.joins {
                return;
            }
            claims.changed_all(log, &room);
        }
        let page = leaf.latched.page();
        let from = leaf.record.bytes();
        let places: Vec<_> = found
            .iter()
            .map(|row| {
                leaf.record.push_ghost(row.key, row.value_len, |out| page.append_to(row.value_at, row.value_len, out))
            })
            .collect();
        edits.join_ghosts(pass.next(), RunGhosts::new(leaf.record.since(from), &places));
        make_ghosts(page, &found, given_up);
        leaf.free += given_up;
        leaf.undo_bytes += undo;
        (pass.last, pass.low, pass.done) = (Some(last.key), low, pass.done + found.len());
    }
}
