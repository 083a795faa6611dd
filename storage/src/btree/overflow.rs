//! Overflow chains: the pages that hold values too long for a leaf.
//!
//! # Structure
//! ```text
//!   leaf      16 bytes: length u32, first page u32, chain u64
//!   page      28 next u32 | 32 bytes here u32 | 36 index u32 | 40 chain u64 | 48.. the bytes
//! ```
//! A chain's number is never used twice, so a reader with an out-of-date reference detects it.
//!
//! # Invariants
//! - BTR-12: the pages of a chain don't change from their formatting until they are freed.

use super::node::OVERFLOW_REF_BYTES;
use super::ops;
use super::tree::{RowBuf, Tree};
use super::write::{record_bytes, take_credit};
use crate::buffer::page::{PAGE_BYTES, PageMut, kind};
use crate::buffer::{Latched, Pin, Pool, ReadReason, Seen};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, Tag, TreeId};
use crate::record::{Before, BeforeImage, LsnRange, PageOp, Record, RecordKind, RowUndo, TxnLog, UndoEntry};
use crate::seams::{PageLog, Purpose};

const AT_NEXT: usize = 28;
const AT_LEN: usize = 32;
const AT_INDEX: usize = 36;
const AT_CHAIN: usize = 40;
const AT_BYTES: usize = 48;
/// Bytes of a value that one page holds.
pub(super) const CHUNK_BYTES: usize = PAGE_BYTES - AT_BYTES;
/// The longest value: one GiB.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Redo of the formatting of a chain's page; none if the arguments can't be.
pub(super) fn redo(page: &PageMut<'_>, mut payload: &[u8]) -> Option<()> {
    let tree = TreeId(u64::from_le_bytes(payload.split_off(..8)?.try_into().ok()?));
    let head = payload.split_off(..16)?;
    if payload.len() > CHUNK_BYTES {
        return None;
    }
    format(page, page.id(), tree, head.try_into().ok()?, payload);
    Some(())
}

/// Formats a page of a chain.
fn format(page: &PageMut<'_>, id: PageId, tree: TreeId, head: &[u8; 16], bytes: &[u8]) {
    assert!(bytes.len() <= CHUNK_BYTES, "a page of a chain holds {CHUNK_BYTES} bytes, and {} come", bytes.len());
    let lsn = page.lsn();
    page.format(id, tree, 0, kind::OVERFLOW);
    page.set_lsn(lsn);
    page.write(AT_NEXT, &head[..4]);
    page.set_u32(AT_LEN, bytes.len() as u32);
    page.write(AT_INDEX, &head[4..8]);
    page.write(AT_CHAIN, &head[8..16]);
    page.write(AT_BYTES, bytes);
}

/// The tree id under which the undo of a chain's pages is logged: its key is the pages' numbers, four bytes each.
pub const CHAIN_PAGES: TreeId = TreeId(u64::MAX);
/// Pages that one record formats or frees. Such a record fits half of a ring of 128 KiB, and a longer one the log refuses.
const BATCH_PAGES: usize = 7;

/// A reference as a leaf holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference {
    len: u32,
    first: PageId,
    chain: u64,
}

impl Reference {
    fn decode(bytes: &[u8]) -> Option<Reference> {
        let bytes: &[u8; OVERFLOW_REF_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let chain = u64::from(word(8)) | (u64::from(word(12)) << 32);
        Some(Reference { len: word(0), first: PageId(word(4)), chain })
    }

    fn encode(&self) -> [u8; OVERFLOW_REF_BYTES] {
        let mut out = [0; OVERFLOW_REF_BYTES];
        out[..4].copy_from_slice(&self.len.to_le_bytes());
        out[4..8].copy_from_slice(&self.first.0.to_le_bytes());
        out[8..].copy_from_slice(&self.chain.to_le_bytes());
        out
    }
}

/// Bytes of a page operation's arguments before the chunk.
fn args(tree: TreeId, next: PageId, index: usize, chain: u64) -> [u8; 24] {
    let mut out = [0; 24];
    out[..8].copy_from_slice(&tree.0.to_le_bytes());
    out[8..12].copy_from_slice(&next.0.to_le_bytes());
    out[12..16].copy_from_slice(&(index as u32).to_le_bytes());
    out[16..].copy_from_slice(&chain.to_le_bytes());
    out
}

impl Tree {
    /// Writes a value into a chain of pages and gives the reference to put into a leaf. From the last page to the
    /// first, some pages a record, each with its undo: rolled back, the transaction frees them. Each record's undo goes to
    /// `keep` as soon as the record is in the log, whether the rest will be written or not: a long chain lives through
    /// several checkpoints, and each has to save the undo of what lies before the last.
    pub async fn write_overflow(
        &self,
        log: &mut TxnLog,
        tag: Tag,
        value: &[u8],
        keep: &mut (dyn FnMut(&TxnLog, UndoEntry) + Send),
    ) -> Result<[u8; OVERFLOW_REF_BYTES], StorageError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(StorageError::ValueTooLong { len: value.len(), max: VALUE_BYTES_MAX });
        }
        let chain = self.pool().next_chain();
        let chunks: Vec<&[u8]> = if value.is_empty() { vec![&[][..]] } else { value.chunks(CHUNK_BYTES).collect() };
        let mut next = PageId(0);
        let mut end = chunks.len();
        while end > 0 {
            let start = end.saturating_sub(BATCH_PAGES);
            self.pool().throttle().await?;
            let entry = self.write_chunks(log, tag, chain, &chunks[start..end], start, next).await?;
            next = chain_pages(&entry.key).next().expect("a record of at least one page");
            keep(log, entry);
            end = start;
        }
        assert!(next != PageId(0), "a value of {} bytes has a first page", value.len());
        Ok(Reference { len: value.len() as u32, first: next, chain }.encode())
    }

    /// Writes chunks that begin at `index`, linked to `next`; gives the undo, whose key names the pages.
    async fn write_chunks(
        &self,
        log: &mut TxnLog,
        tag: Tag,
        chain: u64,
        chunks: &[&[u8]],
        index: usize,
        next: PageId,
    ) -> Result<UndoEntry, StorageError> {
        let wal = self.pool().log().clone();
        let count = chunks.len();
        let mut reservation = self.pool().space().reserve(count).await?;
        let pages = reservation.pages().to_vec();
        let mut pins = Vec::with_capacity(count);
        for page in &pages {
            pins.push(self.pool().pin_new(*page).await?);
        }
        let key: Vec<u8> = pages.iter().flat_map(|page| page.0.to_le_bytes()).collect();
        let reserve = free_bytes(&*wal, count);
        let bytes = record_bytes(&*wal, 3 * count, count * PAGE_BYTES + 64 * count + key.len()) + reserve;
        let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
        let links: Vec<[u8; 24]> =
            (0..count).map(|i| args(self.id(), pages.get(i + 1).copied().unwrap_or(next), index + i, chain)).collect();
        let payloads: Vec<[&[u8]; 2]> = links.iter().zip(chunks).map(|(link, chunk)| [&link[..], *chunk]).collect();
        let mut latches: Vec<Latched<'_>> = pins.iter().map(Pin::latch).collect();
        let space = reservation.latch(count);
        let theirs = space.ops().to_vec();
        let their_payloads: Vec<[&[u8]; 1]> = theirs.iter().map(|op| [op.payload()]).collect();
        let mut ops: Vec<PageOp<'_>> = pages
            .iter()
            .zip(&payloads)
            .map(|(page, payload)| PageOp { page: *page, op: ops::OVERFLOW, payload })
            .collect();
        ops.extend(theirs.iter().zip(&their_payloads).map(|(op, payload)| PageOp {
            page: op.page,
            op: op.op,
            payload,
        }));
        for (i, latched) in latches.iter_mut().enumerate() {
            latched.will_change();
            let head: &[u8; 16] = links[i][8..].try_into().expect("sixteen bytes");
            format(latched.page(), pages[i], self.id(), head, chunks[i]);
        }
        let undo = RowUndo { tree: CHAIN_PAGES, key: &key, tag, prev_tag: Tag::SETTLED, before: Before::Absent };
        let (txn, undo_next) = (log.txn, log.last_lsn);
        let record = Record { kind: RecordKind::Row, txn, undo_next, undo: Some(undo), ops: &ops, body: &[] };
        wal.set_aside(&mut credit, log, reserve);
        let range = wal.append(&mut credit, &record);
        space.commit(range);
        for latched in &mut latches {
            latched.changed(range.end);
        }
        let undo_next = std::mem::replace(&mut log.last_lsn, range.start);
        if log.first_lsn == Lsn::ZERO {
            log.first_lsn = range.start;
        }
        Ok(UndoEntry {
            lsn: range.start,
            undo_next,
            tree: CHAIN_PAGES,
            key: key.into(),
            tag,
            prev_tag: Tag::SETTLED,
            before: BeforeImage::Absent,
        })
    }

    /// Replaces the reference in `out` by the value; false if the row has changed meanwhile.
    pub(super) async fn read_overflow(&self, out: &mut RowBuf, seen: &Seen) -> Result<bool, StorageError> {
        let reference = self.reference(out.value())?;
        let mut value = Vec::with_capacity(reference.len as usize);
        let walked = self.walk(&reference, |_, bytes| value.extend_from_slice(bytes)).await;
        let whole = match walked {
            // BUF-17
            Err(StorageError::Corruption(_) | StorageError::Invalid(_)) if !self.still(seen) => return Ok(false),
            walked => walked?,
        };
        if whole && value.len() == reference.len as usize {
            out.set_value(value);
            return Ok(true);
        }
        if self.still(seen) {
            return Err(self.broken_chain(&reference, value.len()));
        }
        Ok(false)
    }

    /// The value behind a reference, as a leaf or a before-image holds it. The caller knows that the chain has
    /// not been freed: it belongs to a version that some snapshot still sees.
    pub async fn read_chain(&self, reference: &[u8]) -> Result<Vec<u8>, StorageError> {
        let reference = self.reference(reference)?;
        let mut value = Vec::with_capacity(reference.len as usize);
        let whole = self.walk(&reference, |_, bytes| value.extend_from_slice(bytes)).await?;
        if !whole || value.len() != reference.len as usize {
            return Err(self.broken_chain(&reference, value.len()));
        }
        Ok(value)
    }

    /// The pages of a chain.
    pub(super) async fn overflow_pages(&self, reference: &[u8]) -> Result<Vec<PageId>, StorageError> {
        let reference = self.reference(reference)?;
        let (mut pages, mut len) = (Vec::new(), 0);
        let whole = self
            .walk(&reference, |page, bytes| {
                pages.push(page);
                len += bytes.len();
            })
            .await?;
        if !whole || len != reference.len as usize {
            return Err(self.broken_chain(&reference, len));
        }
        Ok(pages)
    }

    /// Frees a chain, its last pages first, so that it can be done again after a crash in the middle. Only when no
    /// snapshot sees it and the commit that let it go is durable.
    pub async fn free_overflow(&self, reference: &[u8]) -> Result<usize, StorageError> {
        let reference = self.reference(reference)?;
        let mut pages = Vec::new();
        self.walk(&reference, |page, _| pages.push(page)).await?;
        for batch in pages.rchunks(BATCH_PAGES) {
            free_pages(self.pool(), batch, None).await?;
        }
        Ok(pages.len())
    }

    fn reference(&self, bytes: &[u8]) -> Result<Reference, StorageError> {
        Reference::decode(bytes)
            .ok_or_else(|| StorageError::Invalid(format!("{bytes:02x?} is no overflow reference").into()))
    }

    fn broken_chain(&self, reference: &Reference, found: usize) -> StorageError {
        let (page, len) = (reference.first, reference.len);
        Corruption::in_page(page, Lsn::ZERO, format!("an overflow chain of {len} bytes"), format!("{found} bytes"))
            .in_file(self.pool().space().file_name(page))
            .into()
    }

    /// Walks a chain; false where it breaks off because a page is of another chain (PND-2).
    async fn walk(&self, reference: &Reference, mut each: impl FnMut(PageId, &[u8])) -> Result<bool, StorageError> {
        let mut next = reference.first;
        let mut index = 0;
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        while next != PageId(0) {
            let Some(page) = self.pool().read(next) else {
                // What is free by now may not even be in a file any more.
                if !self.pool().fetch_if_used(next, ReadReason::Chain).await? {
                    return Ok(false);
                }
                continue;
            };
            chunk.clear();
            let is_ours = page.page.kind() == kind::OVERFLOW
                && page.page.u64_at(AT_CHAIN) == reference.chain
                && page.page.u32_aligned(AT_INDEX) == index;
            let len = (page.page.u32_aligned(AT_LEN) as usize).min(CHUNK_BYTES);
            page.page.append_to(AT_BYTES, len, &mut chunk);
            let after = PageId(page.page.u32_aligned(AT_NEXT));
            if !page.validate() {
                continue;
            }
            if !is_ours {
                return Ok(false);
            }
            each(next, &chunk);
            next = after;
            index += 1;
        }
        Ok(true)
    }
}

fn free_bytes(wal: &dyn PageLog, pages: usize) -> usize {
    // An operation for the page and at most one for space's page, of at most 16 bytes.
    record_bytes(wal, 2 * pages, 16 * pages)
}

/// Undoes the allocation of a chain's pages ([`CHAIN_PAGES`]).
pub async fn compensate_chain(pool: &Pool, log: &mut TxnLog, entry: &UndoEntry) -> Result<LsnRange, StorageError> {
    let pages: Vec<PageId> = chain_pages(&entry.key).collect();
    free_pages(pool, &pages, Some((log, entry))).await
}

/// The pages that the key of such an undo names.
fn chain_pages(key: &[u8]) -> impl Iterator<Item = PageId> {
    key.as_chunks::<4>().0.iter().map(|bytes| PageId(u32::from_le_bytes(*bytes)))
}

/// Frees pages in one record: as structure, or as the compensation of an entry.
pub(super) async fn free_pages(
    pool: &Pool,
    pages: &[PageId],
    undo: Option<(&mut TxnLog, &UndoEntry)>,
) -> Result<LsnRange, StorageError> {
    let wal = pool.log().clone();
    let mut freeing = pool.space().reserve_free(pages.len()).await?;
    let mut pins = Vec::with_capacity(pages.len());
    for page in pages {
        pins.push(pool.pin(*page).await?);
    }
    let bytes = free_bytes(&*wal, pages.len());
    let mut credit = match undo {
        Some(_) => wal.credit_for_undo(bytes).await?,
        None => take_credit(&*wal, Purpose::Change, bytes).await?,
    };
    let mut latches: Vec<Latched<'_>> = pins.iter().map(Pin::latch).collect();
    let space = freeing.latch(pages);
    let theirs = space.ops().to_vec();
    let their_payloads: Vec<[&[u8]; 1]> = theirs.iter().map(|op| [op.payload()]).collect();
    let mut ops: Vec<PageOp<'_>> =
        pages.iter().map(|page| PageOp { page: *page, op: ops::FREE, payload: &[] }).collect();
    ops.extend(theirs.iter().zip(&their_payloads).map(|(op, payload)| PageOp { page: op.page, op: op.op, payload }));
    for latched in &mut latches {
        latched.will_change();
        ops::free(latched.page());
    }
    let mut record = Record::structure(&ops);
    if let Some((log, entry)) = &undo {
        record = Record { kind: RecordKind::Compensation, txn: log.txn, undo_next: entry.undo_next, ..record };
    }
    let range = wal.append(&mut credit, &record);
    space.commit(range);
    for latched in &mut latches {
        latched.changed(range.end);
    }
    if let Some((log, entry)) = undo {
        log.last_lsn = entry.undo_next;
        wal.undo_spent(log, bytes);
    }
    Ok(range)
}
