//! Page operations of trees in the log: their codes, arguments and redo.
//!
//! # Structure
//! ```text
//!   INIT      the node: header and slots, then heap and tail             any page, whatever it held
//!   PUT       flags u8, [key_len u16, key], [tag u64], value             key and tag of a Row are in its undo part
//!             flags: 1 ghost, 2 overflow, 4 with key, 8 with tag, 16 its tag is shared (BTR-23)
//!   REMOVE    flags u8, [key_len u16, key]
//!   TRUNCATE  keep u16, right u32, high fence                            left half of a split
//!   STRIP     horizon u64, see `Strip::encode`
//!   PURGE     horizon u64, key
//!   FREE      nothing                                                    given back to space by the same record
//!   OVERFLOW  see `overflow`
//!   RUN       see `run_record`
//! ```
//!
//! # Invariants
//! - BTR-5: redo calls the function that made the original change, so both have the same effect (by BTR-3 it fits again).
//!
//! # Errors
//! Impossible arguments mean damage of the log or of the page: `Corruption`, never a panic.

use super::edit::{Strip, put_at, remove, truncate};
use super::image::{Frame, Image, NodeRow, Rows, node_of};
use super::node::NO_HIGH;
use super::run_record::RunChanges;
use crate::buffer::page::{PageMut, kind};
use crate::error::Corruption;
use crate::ids::{PageId, Tag, TreeId};
use crate::record::{RecordView, Redo};

/// Formats a page as a node.
pub(super) const INIT: u8 = 1;
/// Puts a row in or replaces it.
pub(super) const PUT: u8 = 2;
/// Takes a row out.
pub(super) const REMOVE: u8 = 3;
/// Keeps the left rows of a node that was split.
pub(super) const TRUNCATE: u8 = 4;
/// Settles tags and purges ghosts.
pub(super) const STRIP: u8 = 5;
/// Purges one ghost.
pub(super) const PURGE: u8 = 6;
/// Empties a page that is given back to space.
pub(super) const FREE: u8 = 7;
/// Formats a page of an overflow chain.
pub(super) const OVERFLOW: u8 = 8;
/// Puts the rows of a run in.
pub(super) const RUN: u8 = 9;

const PUT_GHOST: u8 = 1;
const PUT_OVERFLOW: u8 = 2;
const WITH_KEY: u8 = 4;
const WITH_TAG: u8 = 8;
pub(super) const PUT_SHARES: u8 = 16;

/// The arguments of PUT before the value, where key and tag stand in the record's undo part.
pub(super) fn put_flags(row: &NodeRow<'_>) -> u8 {
    (u8::from(row.ghost) * PUT_GHOST) | (u8::from(row.overflow) * PUT_OVERFLOW)
}

/// The arguments of PUT before the value, where the record has no undo part.
pub(super) fn put_head(row: &NodeRow<'_>, out: &mut Vec<u8>) {
    assert!(row.key.len() <= super::KEY_BYTES_MAX, "a key of {} bytes goes into the log", row.key.len());
    out.push(put_flags(row) | WITH_KEY | WITH_TAG);
    out.extend_from_slice(&(row.key.len() as u16).to_le_bytes());
    out.extend_from_slice(row.key);
    out.extend_from_slice(&row.tag.0.to_le_bytes());
}

/// The arguments of REMOVE.
pub(super) fn remove_args(key: Option<&[u8]>, out: &mut Vec<u8>) {
    match key {
        None => out.push(0),
        Some(key) => {
            assert!(key.len() <= super::KEY_BYTES_MAX, "a key of {} bytes goes into the log", key.len());
            out.push(WITH_KEY);
            out.extend_from_slice(&(key.len() as u16).to_le_bytes());
            out.extend_from_slice(key);
        }
    }
}

/// The operation that makes `page` the empty root of a tree: code and arguments.
pub fn root_init(tree: TreeId, page: PageId) -> (u8, Vec<u8>) {
    let frame = Frame {
        id: page,
        tree,
        level: 0,
        flags: 0,
        right: PageId(0),
        low: Vec::new(),
        high: None,
        shared_tag: Tag::SETTLED,
    };
    let mut image = Image::new();
    assert!(image.build(&frame, &Rows::default(), 0, 0), "an empty node fits");
    (INIT, image.parts().concat())
}

/// Redo of the operations of trees.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeRedo;

impl Redo for TreeRedo {
    fn is_init(&self, op: u8) -> bool {
        matches!(op, INIT | OVERFLOW | FREE)
    }

    fn redo(&self, page: &PageMut<'_>, op: u8, payload: &[u8], record: &RecordView<'_>) -> Result<(), Corruption> {
        let damaged = |what: &str| {
            let found = format!("{} bytes: {:02x?}", payload.len(), &payload[..payload.len().min(64)]);
            Corruption::in_page(page.id(), record.lsn.start, format!("arguments of {what}"), found)
        };
        if op == INIT {
            let image = Image::from_parts(payload).ok_or_else(|| damaged("INIT"))?;
            image.store(page);
            return Ok(());
        }
        if op == OVERFLOW {
            return super::overflow::redo(page, payload).ok_or_else(|| damaged("OVERFLOW"));
        }
        if op == FREE {
            free(page);
            return Ok(());
        }
        if page.kind() != kind::NODE {
            let found = format!("a page of kind {}", page.kind());
            return Err(Corruption::in_page(page.id(), page.lsn(), "a node of a tree", found));
        }
        match op {
            PUT => redo_put(page, payload, record).ok_or_else(|| damaged("PUT")),
            REMOVE => {
                let key = key_of(&mut &payload[..], record).ok_or_else(|| damaged("REMOVE"))?;
                removed(page, key, record)
            }
            TRUNCATE => redo_truncate(page, payload).ok_or_else(|| damaged("TRUNCATE")),
            STRIP => payload
                .get(8..)
                .and_then(|rest| Strip::decode(rest, node_of(page).count()))
                .and_then(|strip| strip.apply(page).ok())
                .ok_or_else(|| damaged("STRIP")),
            RUN => redo_run(page, payload).ok_or_else(|| damaged("RUN")),
            PURGE => removed(page, payload.get(8..).ok_or_else(|| damaged("PURGE"))?, record),
            _ => Err(damaged("an operation of trees")),
        }
    }
}

/// Makes a page one of no tree.
pub(super) fn free(page: &PageMut<'_>) {
    let (id, lsn) = (page.id(), page.lsn());
    page.format(id, TreeId(0), 0, kind::FREE);
    page.set_lsn(lsn);
}

fn removed(page: &PageMut<'_>, key: &[u8], record: &RecordView<'_>) -> Result<(), Corruption> {
    if remove(page, key) {
        return Ok(());
    }
    Err(Corruption::in_page(page.id(), record.lsn.start, format!("a row with key {key:02x?}"), "none"))
}

/// The key that an operation names, in its arguments or in the record's undo part. Moves past flags and key.
fn key_of<'a>(payload: &mut &'a [u8], record: &RecordView<'a>) -> Option<&'a [u8]> {
    let flags = *payload.split_off_first()?;
    if flags & WITH_KEY == 0 {
        return Some(record.undo?.key);
    }
    let len = u16::from_le_bytes(payload.split_off(..2)?.try_into().ok()?);
    payload.split_off(..usize::from(len))
}

fn redo_put(page: &PageMut<'_>, payload: &[u8], record: &RecordView<'_>) -> Option<()> {
    let flags = *payload.first()?;
    let mut rest = payload;
    let key = key_of(&mut rest, record)?;
    let tag = if flags & WITH_TAG != 0 {
        Tag(u64::from_le_bytes(rest.split_off(..8)?.try_into().ok()?))
    } else {
        record.undo?.tag
    };
    let (ghost, overflow) = (flags & PUT_GHOST != 0, flags & PUT_OVERFLOW != 0);
    if overflow && rest.len() != super::node::OVERFLOW_REF_BYTES {
        return None;
    }
    if key.len() > super::KEY_BYTES_MAX || key.len() + rest.len() > super::ROW_BYTES_MAX {
        return None;
    }
    let found = node_of(page).search(key);
    put_at(page, &NodeRow { key, value: rest, tag, ghost, overflow }, found, flags & PUT_SHARES != 0).ok()
}

/// Puts the rows in as the run did, one after the other: each fits (BTR-18).
fn redo_run(page: &PageMut<'_>, payload: &[u8]) -> Option<()> {
    let changes = RunChanges::of(RUN, payload).filter(|changes| changes.tree() == page.tree())?;
    for change in changes {
        let change = change?;
        let row = change.row();
        put_at(page, &row, node_of(page).search(row.key), change.shares).ok()?;
    }
    Some(())
}

/// The arguments of TRUNCATE before the fence.
pub(super) fn truncate_head(keep: usize, right: PageId) -> [u8; 6] {
    let mut out = [0; 6];
    assert!(u16::try_from(keep).is_ok(), "a node does not keep {keep} rows");
    out[..2].copy_from_slice(&(keep as u16).to_le_bytes());
    out[2..].copy_from_slice(&right.0.to_le_bytes());
    out
}

fn redo_truncate(page: &PageMut<'_>, mut payload: &[u8]) -> Option<()> {
    let keep = u16::from_le_bytes(payload.split_off(..2)?.try_into().ok()?);
    let right = u32::from_le_bytes(payload.split_off(..4)?.try_into().ok()?);
    if usize::from(keep) > node_of(page).count() || payload.len() >= usize::from(NO_HIGH) {
        return None;
    }
    truncate(page, usize::from(keep), PageId(right), payload).ok()
}
