//! The rows of one leaf as a scan hands them out: the page's used bytes copied once, rows decoded from the copy.
//!
//! Copying row by row out of a page of atomic words costs some 70 ns a row of 100 bytes; copying the page costs 300 ns,
//! and decoding a row from plain bytes 10 ns. So only of very few rows the rows alone are copied, to the places that they have in the page. Values
//! stay where they are in the copy. Keys are put together: the page stores their common prefix once, and two bytes of each key in its slot.
//!
//! # Invariants
//! - BTR-17: no bytes make decoding panic or leave the copy. The copy is used only after the page's version was
//!   validated, but a page from disk may be damaged although its checksum is right.

use super::node::{GHOST, LONG, MEMORY_LOCKS, NO_HIGH, OFFSET, OVERFLOW_CODE, OVERFLOW_REF_BYTES, OWN, SHARED};
use super::node::{Node, SLOT_BYTES, SLOTS};
use super::spares::{self, Spares};
use super::tree::Row;
use crate::buffer::Seen;
use crate::buffer::page::{PAGE_BYTES, PageBytes};
use crate::ids::Tag;
use std::ops::Range;

const UNTIL_DROPPED: &str = "a copy has its memory until it is dropped";

/// Of so many rows only their own bytes are copied, not the whole page.
const FEW_ROWS: usize = 8;

/// The rows of one leaf that lie in a range, in ascending order.
pub struct LeafCopy {
    /// Until it is dropped. Of what is not copied it has the bytes of an earlier page.
    bytes: Option<Box<PageBytes>>,
    rows: Vec<Span>,
    keys: Vec<u8>,
    pub(super) seen: Option<Seen>,
    memory_locks: bool,
    /// Memory for the places of rows that are picked.
    pub(super) places: Vec<u16>,
}

#[derive(Clone, Copy)]
struct Span {
    key_end: u32,
    value_at: u16,
    value_len: u16,
    tag: Tag,
    ghost: bool,
    overflow: bool,
}

/// A thread keeps the memory of so many copies. The inner side of a nested loop makes a copy for each outer row, of a row or two: clearing a page for
/// it took a third of the join's instructions.
const SPARES: usize = 8;

thread_local! {
    static SPARE: Spares<Box<PageBytes>> = const { Spares::new(SPARES) };
}

impl Drop for LeafCopy {
    fn drop(&mut self) {
        self.bytes.take().into_iter().for_each(|bytes| spares::give_back(&SPARE, bytes));
    }
}

impl Default for LeafCopy {
    fn default() -> Self {
        LeafCopy {
            bytes: Some(spares::take(&SPARE, || Box::new([0; PAGE_BYTES]))),
            rows: Vec::new(),
            keys: Vec::new(),
            seen: None,
            memory_locks: false,
            places: Vec::new(),
        }
    }
}

impl LeafCopy {
    #[inline]
    fn bytes(&self) -> &PageBytes {
        self.bytes.as_ref().expect(UNTIL_DROPPED)
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut PageBytes {
        self.bytes.as_mut().expect(UNTIL_DROPPED)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows; a range goes on behind an empty leaf.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The key and row at an index.
    #[inline]
    pub fn get(&self, index: usize) -> (&[u8], Row<'_>) {
        let span = self.rows[index];
        let from = if index == 0 { 0 } else { self.rows[index - 1].key_end as usize };
        let at = usize::from(span.value_at);
        let value = &self.bytes()[at..at + usize::from(span.value_len)];
        let row = Row { value, tag: span.tag, ghost: span.ghost, overflow: span.overflow };
        (&self.keys[from..span.key_end as usize], row)
    }

    /// Keys and rows in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], Row<'_>)> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The rows' tags, each with whether it is a live row whose value stands in the leaf.
    pub fn tags(&self) -> impl Iterator<Item = (Tag, bool)> {
        self.rows.iter().map(|span| (span.tag, !span.ghost && !span.overflow))
    }

    /// Where to ask whether the leaf still is as it was copied.
    pub fn seen(&self) -> Seen {
        self.seen.expect("a copy that was made")
    }

    /// The leaf's hint that rows of it have locks in the lock manager.
    pub fn memory_locks(&self) -> bool {
        self.memory_locks
    }

    /// Copies rows `range` of a node, which may change meanwhile: [`LeafCopy::decode`] of the same rows after the validation.
    pub(super) fn take(&mut self, node: Node<'_>, range: Range<usize>) {
        if range.len() > FEW_ROWS {
            self.memory_locks = node.0.flags() & MEMORY_LOCKS != 0;
            let bytes = self.bytes_mut();
            node.0.copy_range(0..SLOTS + SLOT_BYTES * node.count(), bytes);
            node.0.copy_range(node.heap_top()..PAGE_BYTES, bytes);
            return;
        }
        self.take_head(node);
        for index in range {
            self.take_row(node, index);
        }
    }

    /// As [`LeafCopy::take`], rows at any places.
    pub(super) fn take_some(&mut self, node: Node<'_>, places: &[u16]) {
        self.take_head(node);
        places.iter().for_each(|index| self.take_row(node, usize::from(*index)));
    }

    fn take_head(&mut self, node: Node<'_>) {
        self.memory_locks = node.0.flags() & MEMORY_LOCKS != 0;
        let bytes = self.bytes_mut();
        node.0.copy_range(0..SLOTS, bytes);
        let tail = node.tail();
        node.0.copy_range(tail..tail + node.prefix_len(), bytes);
    }

    fn take_row(&mut self, node: Node<'_>, index: usize) {
        let (slot_at, cell) = (SLOTS + SLOT_BYTES * index, node.cell(node.slot(index)));
        let bytes = self.bytes_mut();
        node.0.copy_range(slot_at..slot_at + SLOT_BYTES, bytes);
        node.0.copy_range(cell.offset..cell.offset + cell.len(), bytes);
    }

    /// Decodes rows of the node that were copied.
    pub(super) fn decode(&mut self, places: impl Iterator<Item = usize>) {
        self.rows.clear();
        self.keys.clear();
        let bytes = &self.bytes.as_ref().expect(UNTIL_DROPPED)[..];
        let (tail, prefix_len) = (short(bytes, super::node::AT_TAIL), short(bytes, super::node::AT_PREFIX_LEN));
        let prefix = bytes.get(tail..tail + prefix_len).unwrap_or(&[]);
        let first_bytes = first_sixteen(prefix);
        let at = super::node::AT_SHARED_TAG;
        let shared = Tag(u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")));
        for index in places {
            let at = SLOTS + SLOT_BYTES * index;
            let Some(slot) = bytes.get(at..at + SLOT_BYTES) else { break };
            let slot = u32::from_le_bytes(slot.try_into().expect("four bytes"));
            let Some((rest, span)) = cell(bytes, slot, shared) else { continue };
            let head = (slot >> 16) as u16;
            match short_key(bytes, (first_bytes, prefix.len()), head, &rest) {
                Some((key, len)) => {
                    // Sixteen bytes at once, and those behind its end taken off again: three parts of unknown lengths are as many calls.
                    let end = self.keys.len() + len;
                    self.keys.extend_from_slice(&key.to_be_bytes());
                    self.keys.truncate(end);
                }
                None => {
                    self.keys.extend_from_slice(prefix);
                    self.keys.extend_from_slice(&head.to_be_bytes()[..rest.head]);
                    self.keys.extend_from_slice(&bytes[rest.bytes.clone()]);
                }
            }
            self.rows.push(Span { key_end: self.keys.len() as u32, ..span });
        }
    }
}

fn short(bytes: &[u8], at: usize) -> usize {
    let len = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    // A node without an upper fence says so with a length that no field here has.
    if len == NO_HIGH { 0 } else { usize::from(len) }
}

/// A key's part beyond the prefix: how many of the slot's two bytes, and where the rest is.
struct KeyRest {
    head: usize,
    bytes: Range<usize>,
}

/// The first sixteen bytes as a number, zero where they end.
fn first_sixteen(bytes: &[u8]) -> u128 {
    let mut first = [0; 16];
    let len = bytes.len().min(16);
    first[..len].copy_from_slice(&bytes[..len]);
    u128::from_be_bytes(first)
}

/// A key of at most sixteen bytes as a number, with any bytes behind its end, and its length; `prefix`: its first bytes, and how many they are. None: it is longer, or stands at the
/// end of the page.
#[inline]
fn short_key(bytes: &[u8], (prefix, prefix_len): (u128, usize), head: u16, rest: &KeyRest) -> Option<(u128, usize)> {
    let (head_at, rest_at) = (prefix_len, prefix_len + rest.head);
    let len = rest_at + rest.bytes.len();
    if len > 16 || rest_at > 15 {
        return None;
    }
    let behind = u128::from_be_bytes(*bytes.get(rest.bytes.start..)?.first_chunk::<16>()?);
    // Of a head that is one byte, the second is zero, and the rest empty.
    let head = u128::from(head) << 112 >> (8 * head_at);
    Some((prefix | head | if rest.bytes.is_empty() { 0 } else { behind >> (8 * rest_at) }, len))
}

/// Decodes a cell; none if it leaves the page (BTR-17).
#[inline]
fn cell(bytes: &[u8], slot: u32, shared: Tag) -> Option<(KeyRest, Span)> {
    let mut at = (slot & OFFSET) as usize;
    let suffix_len = length(bytes, &mut at)?;
    let overflow = *bytes.get(at)? == OVERFLOW_CODE;
    let value_len = match overflow {
        true => {
            at += 1;
            OVERFLOW_REF_BYTES
        }
        false => length(bytes, &mut at)?,
    };
    let mut tag = if slot & SHARED != 0 { shared } else { Tag::SETTLED };
    if slot & OWN != 0 {
        tag = Tag(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().expect("eight bytes")));
        at += 8;
    }
    let rest = suffix_len.saturating_sub(2);
    let value_at = at + rest;
    if value_at + value_len > PAGE_BYTES {
        return None;
    }
    let key = KeyRest { head: suffix_len.min(2), bytes: at..value_at };
    let (value_at, value_len) = (value_at as u16, value_len as u16);
    Some((key, Span { key_end: 0, value_at, value_len, tag, ghost: slot & GHOST != 0, overflow }))
}

/// Decodes a length and steps over it.
#[inline]
fn length(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let first = usize::from(*bytes.get(*at)?);
    *at += 1;
    if first < LONG {
        return Some(first);
    }
    let second = usize::from(*bytes.get(*at)?);
    *at += 1;
    Some(LONG + (first - LONG) * 256 + second)
}
