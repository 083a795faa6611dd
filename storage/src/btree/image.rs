//! An image: a new node built outside the pool, for splits, compaction, merges and bulk load.
//!
//! # Invariants
//! - BTR-3: whether rows fit a node depends on the rows and fences alone, never on the node's earlier changes:
//!   [`Image::build`] chooses the longest prefix that all keys share. So redo succeeds wherever the original change did.

use super::KEY_BYTES_MAX;
use super::node::{
    AT_COUNT, AT_HEAP_TOP, AT_HIGH_LEN, AT_LOW_LEN, AT_PREFIX_LEN, AT_RIGHT, AT_SHARED_TAG, AT_TAIL, GHOST, NO_HIGH,
    Node, OFFSET, OVERFLOW_CODE, OWN, SHARED, SLOT_BYTES, SLOTS, common_prefix, head_of, length_bytes, put_length,
    search_near,
};
use super::spares::{self, Spares};
use super::write::PREFIX_SLACK;
use crate::buffer::page::{PAGE_BYTES, Page, PageBytes, PageMut, kind};
use crate::ids::{PageId, Tag, TreeId};

/// A row as a node holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRow<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) tag: Tag,
    pub(super) ghost: bool,
    pub(super) overflow: bool,
}

/// What a node is apart from its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) id: PageId,
    pub(super) tree: TreeId,
    pub(super) level: u8,
    pub(super) flags: u16,
    pub(super) right: PageId,
    pub(super) low: Vec<u8>,
    pub(super) high: Option<Vec<u8>>,
    pub(super) shared_tag: Tag,
}

impl Frame {
    /// The frame of an existing node.
    pub(super) fn of(node: Node<'_>) -> Frame {
        Frame {
            id: node.0.id(),
            tree: node.0.tree(),
            level: node.0.level(),
            flags: node.0.flags(),
            right: node.right(),
            low: node.low(),
            high: node.high(),
            shared_tag: node.shared_tag(),
        }
    }

    fn fence_bytes(&self) -> usize {
        self.low.len() + self.high.as_ref().map_or(0, Vec::len)
    }
}

/// All rows of a node, copied out of it.
#[derive(Default)]
pub(super) struct Rows {
    bytes: Vec<u8>,
    rows: Vec<RowSpan>,
}

#[derive(Clone, Copy)]
struct RowSpan {
    key: (u32, u32),
    value: (u32, u32),
    tag: Tag,
    ghost: bool,
    overflow: bool,
}

impl Rows {
    /// The rows of a node, from index `from` to `to`.
    pub(super) fn of(node: Node<'_>, from: usize, to: usize) -> Rows {
        let count = to.min(node.count()).saturating_sub(from);
        // Keys whole again, prefixes and all; a guess.
        let mut rows = Rows { bytes: Vec::with_capacity(PAGE_BYTES + 8 * count), rows: Vec::with_capacity(count + 1) };
        rows.extend(node, from, to);
        rows
    }

    /// Appends rows of a node.
    pub(super) fn extend(&mut self, node: Node<'_>, from: usize, to: usize) {
        for index in from..to.min(node.count()) {
            let slot = node.slot(index);
            let cell = node.cell(slot);
            let key_at = self.bytes.len();
            node.append_key(slot, &cell, &mut self.bytes);
            let value_at = self.bytes.len();
            node.0.append_to(cell.value_at, cell.value_len, &mut self.bytes);
            self.rows.push(RowSpan {
                key: (key_at as u32, value_at as u32),
                value: (value_at as u32, self.bytes.len() as u32),
                tag: node.tag(slot, &cell),
                ghost: slot & GHOST != 0,
                overflow: cell.overflow,
            });
        }
    }

    /// Adds a row at an index.
    pub(super) fn insert(&mut self, index: usize, row: &NodeRow<'_>) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(row.key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(row.value);
        let span = RowSpan {
            key: (key_at as u32, value_at as u32),
            value: (value_at as u32, self.bytes.len() as u32),
            tag: row.tag,
            ghost: row.ghost,
            overflow: row.overflow,
        };
        self.rows.insert(index, span);
    }

    /// Takes a row out.
    pub(super) fn remove(&mut self, index: usize) {
        self.rows.remove(index);
    }

    /// Forgets the first rows, keeps the memory. The rows were added one behind the other.
    pub(super) fn forget_first(&mut self, count: usize) {
        let at = self.rows.get(count).map_or(self.bytes.len(), |row| row.key.0 as usize);
        self.bytes.drain(..at);
        self.rows.drain(..count);
        for RowSpan { key, value, .. } in &mut self.rows {
            assert!(key.0 >= at as u32, "BTR-1: the bytes of rows are in the order of the rows");
            for place in [&mut key.0, &mut key.1, &mut value.0, &mut value.1] {
                *place -= at as u32;
            }
        }
    }

    /// Forgets all rows, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Changes the tag of a row.
    pub(super) fn set_tag(&mut self, index: usize, tag: Tag) {
        self.rows[index].tag = tag;
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Where the row with this key stands, or would.
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let key_of = |span: &RowSpan| &self.bytes[span.key.0 as usize..span.key.1 as usize];
        self.rows.binary_search_by(|span| key_of(span).cmp(key))
    }

    /// The same, where `key` is above the first `low` rows.
    pub(super) fn search_from(&self, key: &[u8], low: usize) -> Result<usize, usize> {
        search_near(low, self.rows.len(), |index| {
            let span = &self.rows[index];
            self.bytes[span.key.0 as usize..span.key.1 as usize].cmp(key)
        })
    }

    pub(super) fn get(&self, index: usize) -> NodeRow<'_> {
        let span = self.rows[index];
        NodeRow {
            key: &self.bytes[span.key.0 as usize..span.key.1 as usize],
            value: &self.bytes[span.value.0 as usize..span.value.1 as usize],
            tag: span.tag,
            ghost: span.ghost,
            overflow: span.overflow,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = NodeRow<'_>> {
        (0..self.rows.len()).map(|index| self.get(index))
    }
}

/// Bytes of the cell and slot of a row whose key is `suffix_len` bytes beyond the prefix.
pub(super) fn row_bytes(suffix_len: usize, value_len: usize, overflow: bool, own_tag: bool) -> usize {
    let value_code = if overflow { 1 } else { length_bytes(value_len) };
    SLOT_BYTES
        + length_bytes(suffix_len)
        + value_code
        + if own_tag { 8 } else { 0 }
        + suffix_len.saturating_sub(2)
        + value_len
}

/// Bytes that the node of rows `from..to` takes: [`Image::used_bytes`] of its image. More than a page: they don't fit.
pub(super) fn node_bytes(frame: &Frame, rows: &Rows, from: usize, to: usize) -> usize {
    assert!(from <= to && to <= rows.len(), "rows from {from} to {to} of {}", rows.len());
    let prefix_len = shared_prefix(rows, from, to);
    SLOTS + prefix_len + frame.fence_bytes() + cell_bytes(frame, &rows.rows[from..to], prefix_len)
}

/// The same with a prefix of so many bytes, which all keys share.
pub(super) fn node_bytes_with(frame: &Frame, rows: &Rows, prefix_len: usize) -> usize {
    SLOTS + prefix_len + frame.fence_bytes() + cell_bytes(frame, &rows.rows, prefix_len)
}

/// Bytes of the cells and slots of rows, their keys without a prefix of so many bytes.
fn cell_bytes(frame: &Frame, rows: &[RowSpan], prefix_len: usize) -> usize {
    let bytes_of = |row: &RowSpan| {
        let own = !row.tag.is_settled() && row.tag != frame.shared_tag;
        let (key, value) = (row.key.1 - row.key.0, row.value.1 - row.value.0);
        row_bytes(key as usize - prefix_len, value as usize, row.overflow, own)
    };
    rows.iter().map(bytes_of).sum()
}

/// How many rows from the first on fit a node of this frame, whose upper fence has `fence_len(n)` bytes if it keeps n of them. Found in one pass:
/// a search by halves that built a node at each step took half of the time of a bulk load.
pub(super) fn rows_that_fit(frame: &Frame, rows: &Rows, fence_len: impl Fn(usize) -> usize) -> usize {
    let (mut fit, mut prefix_len, mut cells) = (0, usize::MAX, 0);
    for keep in 1..=rows.len() {
        let shared = shared_prefix(rows, 0, keep);
        if shared < prefix_len {
            (prefix_len, cells) = (shared, cell_bytes(frame, &rows.rows[..keep - 1], shared));
        }
        cells += cell_bytes(frame, &rows.rows[keep - 1..keep], prefix_len);
        let bytes = SLOTS + prefix_len + frame.low.len() + cells;
        if bytes > PAGE_BYTES {
            break;
        }
        // No fence has more bytes than that.
        if bytes + KEY_BYTES_MAX < PAGE_BYTES || bytes + fence_len(keep) <= PAGE_BYTES {
            fit = keep;
        }
    }
    fit
}

/// The length of the prefix that all keys of rows `from..to` share (BTR-3).
fn shared_prefix(rows: &Rows, from: usize, to: usize) -> usize {
    if from == to { 0 } else { common_prefix(rows.get(from).key, rows.get(to - 1).key) }
}

/// A node's bytes, outside the pool. They are what an earlier image left until one is built, of which every byte is written (BTR-3).
pub(super) struct Image {
    /// There until it is dropped.
    memory: Option<Memory>,
}

/// The bytes of an image, and the first and the end of those of them that are zero for sure: between slots and cells.
type Memory = (Box<PageBytes>, (usize, usize));

/// A thread keeps the memory of so many images: a split builds two. Clearing a page for each image, and again for what was built in it, took a tenth of
/// the instructions of a load in order, in which each leaf is built anew twice or three times.
const SPARES: usize = 2;

thread_local! {
    static SPARE: Spares<Memory> = const { Spares::new(SPARES) };
}

impl Drop for Image {
    fn drop(&mut self) {
        self.memory.take().into_iter().for_each(|memory| spares::give_back(&SPARE, memory));
    }
}

impl Image {
    /// An image whose memory can be used again and again.
    pub(super) fn new() -> Image {
        Image { memory: Some(spares::take(&SPARE, || (Box::new([0; PAGE_BYTES]), (0, PAGE_BYTES)))) }
    }

    fn bytes(&self) -> &PageBytes {
        &self.memory.as_ref().expect("an image has its memory until it is dropped").0
    }

    fn memory_mut(&mut self) -> &mut Memory {
        self.memory.as_mut().expect("an image has its memory until it is dropped")
    }

    /// Clears the bytes between slots and cells, where they are not zero already; all others have been written.
    fn clear_between(&mut self, first: usize, end: usize) {
        let (bytes, zero) = self.memory_mut();
        let (low, high) = (zero.0.clamp(first, end), zero.1.clamp(first, end));
        bytes[first..low].fill(0);
        bytes[high..end].fill(0);
        *zero = (first, end);
    }

    /// Builds the node of rows `from..to`; false if they don't fit.
    #[must_use]
    pub(super) fn build(&mut self, frame: &Frame, rows: &Rows, from: usize, to: usize) -> bool {
        if node_bytes(frame, rows, from, to) > PAGE_BYTES {
            return false;
        }
        let (count, prefix_len) = (to - from, shared_prefix(rows, from, to));
        let (bytes, _) = self.memory_mut();
        bytes[..SLOTS].fill(0);
        let tail = PAGE_BYTES - prefix_len - frame.fence_bytes();
        if count > 0 {
            bytes[tail..tail + prefix_len].copy_from_slice(&rows.get(from).key[..prefix_len]);
        }
        let low_at = tail + prefix_len;
        bytes[low_at..low_at + frame.low.len()].copy_from_slice(&frame.low);
        if let Some(high) = &frame.high {
            bytes[PAGE_BYTES - high.len()..].copy_from_slice(high);
        }
        let mut top = tail;
        for index in from..to {
            let row = rows.get(index);
            let head = CellHead::new(&row, prefix_len, frame.shared_tag);
            top -= head.cell_len(&row, prefix_len);
            let slot = head.put(&row, prefix_len, top, |at, part| bytes[at..at + part.len()].copy_from_slice(part));
            let at = SLOTS + SLOT_BYTES * (index - from);
            bytes[at..at + SLOT_BYTES].copy_from_slice(&slot.to_le_bytes());
        }
        assert!(top >= SLOTS + SLOT_BYTES * count, "BTR-3: the cells of a node reach its slots");
        self.clear_between(SLOTS + SLOT_BYTES * count, top);
        self.put_header(frame, count, top, prefix_len, tail);
        true
    }

    /// The node in a page under another number, with another right neighbour and upper fence; its rows lie as they did. None: there is no room
    /// for the fence between slots and cells, or perhaps none in the node that redo builds of the same rows (BTR-3).
    pub(super) fn fenced(node: Node<'_>, id: PageId, right: PageId, high: &[u8]) -> Option<Image> {
        let (tail, top, count) = (node.tail(), node.heap_top(), node.count());
        let high_before = node.high().map_or(0, |fence| fence.len());
        let bytes_after = node.used_bytes() + high.len() + PREFIX_SLACK;
        let tail_after = (tail + high_before).checked_sub(high.len())?;
        let top_after = (top + high_before).checked_sub(high.len())?;
        let is_sound = top <= tail && tail + high_before <= PAGE_BYTES && high.len() < usize::from(NO_HIGH);
        if !is_sound || top_after < SLOTS + SLOT_BYTES * count || bytes_after > PAGE_BYTES + high_before {
            return None;
        }
        let mut image = Image::new();
        let (bytes, zero) = image.memory_mut();
        *zero = (0, 0);
        node.0.copy_out(bytes);
        bytes.copy_within(top..PAGE_BYTES - high_before, top_after);
        bytes[PAGE_BYTES - high.len()..].copy_from_slice(high);
        for slot in bytes[SLOTS..SLOTS + SLOT_BYTES * count].as_chunks_mut::<SLOT_BYTES>().0 {
            let before = u32::from_le_bytes(*slot);
            let offset = (before & OFFSET) as usize + high_before - high.len();
            assert!(offset < PAGE_BYTES, "BTR-1: a cell at {offset}");
            *slot = (before & !OFFSET | offset as u32).to_le_bytes();
        }
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        // As in an image of rows: checksum and LSN are the page's own.
        put(0, &[0; 4]);
        put(8, &[0; 8]);
        put(4, &id.0.to_le_bytes());
        put(AT_RIGHT, &right.0.to_le_bytes());
        put(AT_HEAP_TOP, &(top_after as u16).to_le_bytes());
        put(AT_HIGH_LEN, &(high.len() as u16).to_le_bytes());
        put(AT_TAIL, &(tail_after as u16).to_le_bytes());
        Some(image)
    }

    fn put_header(&mut self, frame: &Frame, count: usize, top: usize, prefix_len: usize, tail: usize) {
        let longest = frame.low.len().max(frame.high.as_ref().map_or(0, Vec::len));
        assert!(longest < usize::from(NO_HIGH), "BTR-3: a fence of {longest} bytes");
        let (bytes, _) = self.memory_mut();
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(4, &frame.id.0.to_le_bytes());
        put(16, &frame.tree.0.to_le_bytes());
        put(24, &[frame.level, kind::NODE]);
        put(26, &frame.flags.to_le_bytes());
        put(AT_COUNT, &(count as u16).to_le_bytes());
        put(AT_HEAP_TOP, &(top as u16).to_le_bytes());
        put(AT_PREFIX_LEN, &(prefix_len as u16).to_le_bytes());
        put(AT_RIGHT, &frame.right.0.to_le_bytes());
        put(AT_SHARED_TAG, &frame.shared_tag.0.to_le_bytes());
        put(AT_LOW_LEN, &(frame.low.len() as u16).to_le_bytes());
        let high_len = frame.high.as_ref().map_or(NO_HIGH, |high| high.len() as u16);
        put(AT_HIGH_LEN, &high_len.to_le_bytes());
        put(AT_TAIL, &(tail as u16).to_le_bytes());
    }

    /// The two parts that a log record needs: header and slots, heap and tail.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        let bytes = self.bytes();
        let count = usize::from(u16::from_le_bytes([bytes[AT_COUNT], bytes[AT_COUNT + 1]]));
        let top = usize::from(u16::from_le_bytes([bytes[AT_HEAP_TOP], bytes[AT_HEAP_TOP + 1]]));
        [&bytes[..SLOTS + SLOT_BYTES * count], &bytes[top..]]
    }

    /// Bytes in use.
    pub(super) fn used_bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Puts the node into a page, keeping the page's LSN.
    pub(super) fn store(&self, page: &PageMut<'_>) {
        let lsn = page.lsn();
        page.copy_in(self.bytes());
        page.set_lsn(lsn);
    }

    /// Puts back together what [`Image::parts`] took apart. None if the bytes can't be a node.
    pub(super) fn from_parts(payload: &[u8]) -> Option<Image> {
        if payload.len() < SLOTS || payload.len() > PAGE_BYTES {
            return None;
        }
        let count = usize::from(u16::from_le_bytes([payload[AT_COUNT], payload[AT_COUNT + 1]]));
        let top = usize::from(u16::from_le_bytes([payload[AT_HEAP_TOP], payload[AT_HEAP_TOP + 1]]));
        let first = SLOTS + SLOT_BYTES * count;
        if first > payload.len() || top < first || top > PAGE_BYTES || payload.len() - first != PAGE_BYTES - top {
            return None;
        }
        let mut image = Image::new();
        let (bytes, _) = image.memory_mut();
        bytes[..first].copy_from_slice(&payload[..first]);
        bytes[top..].copy_from_slice(&payload[first..]);
        image.clear_between(first, top);
        Some(image)
    }
}

/// A cell's bytes before its key, and its slot without the offset.
pub(super) struct CellHead {
    slot: u32,
    bytes: [u8; 12],
    len: usize,
}

impl CellHead {
    pub(super) fn new(row: &NodeRow<'_>, prefix_len: usize, shared_tag: Tag) -> CellHead {
        let suffix = &row.key[prefix_len..];
        let mut bytes = [0_u8; 12];
        let mut len = put_length(suffix.len(), &mut bytes);
        if row.overflow {
            bytes[len] = OVERFLOW_CODE;
            len += 1;
        } else {
            len += put_length(row.value.len(), &mut bytes[len..]);
        }
        let mut slot = u32::from(head_of(suffix)) << 16;
        if row.ghost {
            slot |= GHOST;
        }
        if !row.tag.is_settled() {
            if row.tag == shared_tag {
                slot |= SHARED;
            } else {
                slot |= OWN;
                bytes[len..len + 8].copy_from_slice(&row.tag.0.to_le_bytes());
                len += 8;
            }
        }
        CellHead { slot, bytes, len }
    }

    /// Writes the cell at `offset` with `write(offset, bytes)`; gives the slot.
    pub(super) fn put(
        &self,
        row: &NodeRow<'_>,
        prefix_len: usize,
        offset: usize,
        mut write: impl FnMut(usize, &[u8]),
    ) -> u32 {
        let rest = row.key[prefix_len..].get(2..).unwrap_or(&[]);
        write(offset, &self.bytes[..self.len]);
        write(offset + self.len, rest);
        write(offset + self.len + rest.len(), row.value);
        assert!(offset < PAGE_BYTES, "BTR-1: a cell at {offset}");
        self.slot | offset as u32
    }

    /// Bytes of the whole cell.
    pub(super) fn cell_len(&self, row: &NodeRow<'_>, prefix_len: usize) -> usize {
        self.len + (row.key.len() - prefix_len).saturating_sub(2) + row.value.len()
    }
}

/// The node that a page holds, for code that only reads a page it owns.
pub(super) fn node_of<'a>(page: &PageMut<'a>) -> Node<'a> {
    let page: Page<'a> = **page;
    Node(page)
}
