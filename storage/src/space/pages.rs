//! Space's own pages: allocation bitmaps and the tree directory, as bytes and as operations of the log.
//!
//! # Structure
//! ```text
//!   both       0 the header that all pages share (28 bytes)
//!   bitmap    28 format version u32   4096 one bit per page of its file, set = allocated; bit 0 is the bitmap page itself
//!   directory 32 next u32 (0 = last)   36 zero u32   40 tree id high-water u64
//!             64 entries of 32 bytes: tree u64 (0 = empty), root u32, attrs u8, state u8, zero u16, zero 16
//! ```
//! | op | page | payload |
//! |---|---|---|
//! | 64 `SET` / 65 `CLEAR` | bitmap | first bit u32, count u32 |
//! | 66 `BITMAP_INIT` | bitmap | none |
//! | 67 `DIRECTORY_INIT` | directory | none |
//! | 68 `LINK` | directory | next u32 |
//! | 69 `PUT` | directory | slot u16, kind u8, state u8, root u32, tree u64 |
//! | 70 `STATE` | directory | slot u32, state u32 |
//! | 71 `REMOVE` | directory | slot u32 |
//!
//! # Invariants
//! - SPC-1: every operation is a function of page and payload, and the same function serves the change and its redo.

use crate::buffer::page::{AT_KIND, PageBytes, kind};
use crate::buffer::{PAGE_BYTES, PageMut};
use crate::error::Corruption;
use crate::ids::{PageId, TreeId};
use crate::record::{RecordView, Redo};
use crate::seams::SpaceOp;
use crate::wal::format::{Bytes, FORMAT_VERSION};

/// Pages whose bits one bitmap page holds, at most.
pub const BITS_MAX: u32 = 32768;
const AT_VERSION: usize = 28;
const AT_BITS: usize = 4096;
const AT_NEXT: usize = 32;
const AT_HIGH_WATER: usize = 40;
const AT_ENTRIES: usize = 64;
const ENTRY_BYTES: usize = 32;
/// Trees per directory page.
pub const ENTRIES: u32 = ((PAGE_BYTES - AT_ENTRIES) / ENTRY_BYTES) as u32;

/// Marks pages as allocated.
pub const SET: u8 = 64;
/// Marks pages as free.
pub const CLEAR: u8 = 65;
/// Makes a bitmap page.
pub const BITMAP_INIT: u8 = 66;
/// Makes a directory page.
pub const DIRECTORY_INIT: u8 = 67;
/// Links the next directory page.
pub const LINK: u8 = 68;
/// Enters a tree.
pub const PUT: u8 = 69;
/// Changes a tree's state.
pub const STATE: u8 = 70;
/// Removes a tree.
pub const REMOVE: u8 = 71;

/// What happens to a tree's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TreeKind {
    /// They are logged and survive.
    Logged = 0,
    /// Reserved: emptied by a crash.
    Unlogged = 1,
    /// Reserved: gone with its session.
    Temporary = 2,
}

/// Whether a tree is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TreeState {
    /// In use.
    Live = 1,
    /// Its pages are being freed; no thread reads it.
    Dropping = 2,
}

/// A tree's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The tree.
    pub tree: TreeId,
    /// Its root page, which never moves.
    pub root: PageId,
    /// What happens to its changes.
    pub kind: TreeKind,
    /// Whether it is in use.
    pub state: TreeState,
}

impl Entry {
    /// The payload of [`PUT`]: slot u16, kind u8, state u8, root u32, tree u64.
    pub fn payload(&self, slot: u32) -> [u8; 16] {
        assert!(slot < ENTRIES, "SPC-1: a directory page has {ENTRIES} entries, and {slot} is named");
        let mut payload = [0; 16];
        payload[0..2].copy_from_slice(&(slot as u16).to_le_bytes());
        payload[2] = self.kind as u8;
        payload[3] = self.state as u8;
        payload[4..8].copy_from_slice(&self.root.0.to_le_bytes());
        payload[8..16].copy_from_slice(&self.tree.0.to_le_bytes());
        payload
    }

    fn parse(tree: u64, root: u32, kind: u8, state: u8) -> Option<Entry> {
        let kind = match kind {
            0 => TreeKind::Logged,
            1 => TreeKind::Unlogged,
            2 => TreeKind::Temporary,
            _ => return None,
        };
        let state = match state {
            1 => TreeState::Live,
            2 => TreeState::Dropping,
            _ => return None,
        };
        Some(Entry { tree: TreeId(tree), root: PageId(root), kind, state })
    }
}

/// An operation on one of space's pages.
pub fn op(page: PageId, op: u8, args: &[u8]) -> SpaceOp {
    let mut payload = [0; 16];
    assert!(args.len() <= payload.len(), "SPC-1: operation {op} has arguments of {} bytes", args.len());
    payload[..args.len()].copy_from_slice(args);
    SpaceOp { page, op, payload, len: args.len() as u8 }
}

/// The payload of [`SET`] and [`CLEAR`], [`STATE`].
pub fn pair(a: u32, b: u32) -> [u8; 8] {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&a.to_le_bytes());
    payload[4..].copy_from_slice(&b.to_le_bytes());
    payload
}

/// The format version of the file that a bitmap page begins.
pub fn version(page: &PageMut<'_>) -> u32 {
    (page.u64_at(AT_VERSION - 4) >> 32) as u32
}

/// The same of a page as it lies in its file; none for a page that is no bitmap.
pub fn version_in_file(bytes: &PageBytes) -> Option<u32> {
    let version = bytes[AT_VERSION..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    version.filter(|_| bytes[AT_KIND] == kind::BITMAP)
}

/// Reads a bitmap page: one word per 64 pages.
pub fn bits(page: &PageMut<'_>) -> Vec<u64> {
    (0..BITS_MAX as usize / 64).map(|word| page.u64_at(AT_BITS + word * 8)).collect()
}

/// Up to which page a bitmap page says that pages are allocated.
pub fn used(page: &PageMut<'_>) -> u32 {
    let words = bits(page);
    let last = words.iter().rposition(|word| *word != 0);
    last.map_or(0, |word| word as u32 * 64 + 64 - words[word].leading_zeros())
}

/// Whether a bitmap page says that the page with this index is allocated.
pub fn is_allocated(page: &PageMut<'_>, index: u32) -> bool {
    assert!(index < BITS_MAX, "SPC-1: a bitmap page has {BITS_MAX} bits, and {index} is asked for");
    page.u64_at(AT_BITS + index as usize / 64 * 8) >> (index % 64) & 1 == 1
}

/// The next directory page and the greatest tree id that this one ever held.
pub fn directory_header(page: &PageMut<'_>) -> (Option<PageId>, TreeId) {
    let next = page.u32_aligned(AT_NEXT);
    ((next != 0).then_some(PageId(next)), TreeId(page.u64_at(AT_HIGH_WATER)))
}

/// The entry in a slot; an error if its bytes make no sense.
pub fn entry(page: &PageMut<'_>, slot: u32) -> Result<Option<Entry>, Corruption> {
    assert!(slot < ENTRIES, "SPC-1: a directory page has {ENTRIES} entries, and {slot} is asked for");
    let at = AT_ENTRIES + slot as usize * ENTRY_BYTES;
    let tree = page.u64_at(at);
    if tree == 0 {
        return Ok(None);
    }
    let (kind, state) = (page.u8_at(at + 12), page.u8_at(at + 13));
    match Entry::parse(tree, page.u32_aligned(at + 8), kind, state) {
        Some(entry) => Ok(Some(entry)),
        None => {
            let found = format!("kind {kind}, state {state} in slot {slot}");
            Err(Corruption::in_page(page.id(), page.lsn(), "a tree's entry", found))
        }
    }
}

fn change_bits(page: &PageMut<'_>, first: u32, count: u32, set: bool) -> Option<()> {
    if first.checked_add(count)? > BITS_MAX {
        return None;
    }
    for bit in first..first + count {
        let at = AT_BITS + bit as usize / 64 * 8;
        let mask = 1_u64 << (bit % 64);
        let word = page.u64_at(at);
        page.set_u64(at, if set { word | mask } else { word & !mask });
    }
    Some(())
}

fn put(page: &PageMut<'_>, at: &mut Bytes<'_>) -> Option<()> {
    let slot = u32::from(at.u16()?);
    let (kind, state, root, tree) = (at.u8()?, at.u8()?, at.u32()?, at.u64()?);
    let entry = Entry::parse(tree, root, kind, state).filter(|_| slot < ENTRIES)?;
    let to = AT_ENTRIES + slot as usize * ENTRY_BYTES;
    page.set_u64(to, entry.tree.0);
    page.set_u32(to + 8, entry.root.0);
    page.write(to + 12, &[kind, state]);
    page.set_u64(AT_HIGH_WATER, page.u64_at(AT_HIGH_WATER).max(tree));
    Some(())
}

fn slot(at: &mut Bytes<'_>) -> Option<usize> {
    let slot = at.u32().filter(|slot| *slot < ENTRIES)?;
    Some(AT_ENTRIES + slot as usize * ENTRY_BYTES)
}

/// Applies an operation; `None` if payload and page do not fit each other (SPC-1).
pub fn apply(page: &PageMut<'_>, op: u8, payload: &[u8]) -> Option<()> {
    let mut at = Bytes::new(payload);
    let right_kind = match op {
        SET | CLEAR => page.kind() == kind::BITMAP,
        LINK | PUT | STATE | REMOVE => page.kind() == kind::DIRECTORY,
        _ => true,
    };
    if !right_kind {
        return None;
    }
    match op {
        SET | CLEAR => change_bits(page, at.u32()?, at.u32()?, op == SET),
        BITMAP_INIT => {
            page.format(page.id(), TreeId(0), 0, kind::BITMAP);
            page.set_u32(AT_VERSION, FORMAT_VERSION);
            change_bits(page, 0, 1, true)
        }
        DIRECTORY_INIT => {
            page.format(page.id(), TreeId(0), 0, kind::DIRECTORY);
            Some(())
        }
        LINK => {
            page.set_u32(AT_NEXT, at.u32()?);
            Some(())
        }
        PUT => put(page, &mut at),
        STATE => {
            let to = slot(&mut at)?;
            page.write(to + 13, &[u8::try_from(at.u32()?).ok()?]);
            Some(())
        }
        REMOVE => {
            page.write(slot(&mut at)?, &[0; ENTRY_BYTES]);
            Some(())
        }
        _ => None,
    }
}

/// Redo of operations 64..=95.
pub struct SpaceRedo;

impl Redo for SpaceRedo {
    fn is_init(&self, op: u8) -> bool {
        matches!(op, BITMAP_INIT | DIRECTORY_INIT)
    }

    fn redo(&self, page: &PageMut<'_>, op: u8, payload: &[u8], record: &RecordView<'_>) -> Result<(), Corruption> {
        apply(page, op, payload).ok_or_else(|| {
            let found = format!("operation {op} with {payload:?} on a page of kind {}", page.kind());
            Corruption::in_page(page.id(), record.lsn.start, "an operation that fits the page", found)
        })
    }
}
