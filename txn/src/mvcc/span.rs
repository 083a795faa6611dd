//! A span: undo records of consecutive chunks as they are in the spill file.
//!
//! # Structure
//! ```text
//! crc32c 4 | length 4 | span 8 | count 4 | (tag 8, offset 4) x count, by rising tag | record ...
//! record = flags 1 | strength, with the flag `OVER_SHOWN`, 1 | writer 8 | position 4 | tree 8 | prev 8 | before_lsn 8 | lsn 8 | undo_next 8
//!          | key | value of the row before | new key | what it leads past | the rows of a run       each with a length of 4 before it
//! ```
//! All numbers are little-endian. `writer` is a commit LSN or, with the flag `LIVE`, the index of a transaction in the span's list in
//! memory. Through that list a reader learns that the transaction has ended since the span was written.
//!
//! # Invariants
//! - SPN-1: the bytes of a span never change. Its place in the file is reused only after the last `Arc` of the span was dropped. So
//!   a reader that has found a span in the directory can read it for as long as it keeps the `Arc`.
//! - SPN-2: `through` is at or above the commit LSN of each record in the span, and `Lsn::MAX` while a writer of one of them runs.
//! - SPN-3: the bytes of a fetched span were checked, checksum and each record, when they were read. After that each record is decoded
//!   when it is asked for.
//!
//! # Crash safety
//! The file is not needed after a crash: no snapshot survives a crash, and the undo of losers is in the log and in checkpoints.
//!
//! # Errors
//! Bytes that do not decode give a `Corruption` that names the file and the offset.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use clearway_base::memory::Outside;
use clearway_base::vfs::IoBuf;
use clearway_storage::error::{Corruption, StorageError};
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::BeforeImage;

use super::fate::Passed;
use super::record::{Aside, Spot, UndoRecord, Writer};
use super::rows::RunRows;
use super::spill::SpillFile;
use super::state::{Status, TxnState};
use crate::lockmgr::modes::{ALL_MODES, LockMode};

const HEAD: usize = 20;
const ENTRY: usize = 12;

const ABSENT: u8 = 1;
const GHOST: u8 = 2;
const OVERFLOW: u8 = 4;
const DROPPED: u8 = 8;
const DELETES: u8 = 16;
const ROWLESS: u8 = 32;
const MOVED: u8 = 64;
const LIVE: u8 = 128;
/// In the byte of the strength, which has room for it.
const OVER_SHOWN: u8 = 128;

/// Records in the spill file.
#[derive(Debug)]
pub struct Span {
    /// Never reused.
    pub(super) id: u64,
    /// The first chunk number.
    pub(super) first: u64,
    /// The last chunk number.
    pub(super) last: u64,
    file: Arc<SpillFile>,
    offset: u64,
    len: usize,
    count: u32,
    /// One bit a record.
    freed: Box<[AtomicU64]>,
    gone: AtomicU32,
    /// Records that made ghosts and are not freed.
    deletes: AtomicU32,
    /// No version in it was current before this LSN.
    pub(super) from: Lsn,
    ended: Lsn,
    writers: Box<[Arc<TxnState>]>,
    /// Whether any record keeps the version before its change.
    pub(super) keeps: bool,
    through: AtomicU64,
    /// It stands for records, and belongs to no session's account either.
    _memory: Outside,
}

/// A span's bytes and figures, before the span has a place in the file.
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    id: u64,
    count: u32,
    deletes: u32,
    from: Lsn,
    ended: Lsn,
    keeps: bool,
    writers: Vec<Arc<TxnState>>,
}

impl Span {
    /// A span that was written at `offset`.
    pub(super) fn new(encoded: Encoded, chunks: (u64, u64), file: Arc<SpillFile>, offset: u64) -> Span {
        let Encoded { bytes, id, count, deletes, from, ended, keeps, writers } = encoded;
        assert!(chunks.0 <= chunks.1, "a span of the chunks from {} to {}", chunks.0, chunks.1);
        assert!(deletes <= count, "{deletes} of {count} records delete");
        let freed = count.div_ceil(64);
        let memory = Outside::new(memory_bytes(freed as usize, writers.len()));
        Span {
            id,
            first: chunks.0,
            last: chunks.1,
            file,
            offset,
            len: bytes.len(),
            count,
            freed: (0..freed).map(|_| AtomicU64::new(0)).collect(),
            gone: AtomicU32::new(0),
            deletes: AtomicU32::new(deletes),
            from,
            ended,
            writers: writers.into(),
            keeps,
            through: AtomicU64::new(Lsn::MAX.0),
            _memory: memory,
        }
    }

    /// Frees a record; false if it is free already. Under the shard's mutex.
    pub(super) fn free(&self, index: u32, record: &UndoRecord) -> bool {
        assert!(index < self.count, "record {index} of a span of {}", self.count);
        let bit = 1 << (index % 64);
        let is_new = self.freed[index as usize / 64].fetch_or(bit, Relaxed) & bit == 0;
        if is_new {
            let gone = self.gone.fetch_add(1, Relaxed);
            assert!(gone < self.count, "each record of a span is freed once");
            if record.deletes {
                let left = self.deletes.fetch_sub(1, Relaxed);
                assert!(left > 0, "a span counts its records that delete");
            }
        }
        is_new
    }

    pub(super) fn is_freed(&self, index: u32) -> bool {
        self.freed[index as usize / 64].load(Relaxed) & (1 << (index % 64)) != 0
    }

    /// Records that are not freed, and how many there were.
    pub(super) fn records(&self) -> (u32, u32) {
        (self.count - self.gone.load(Relaxed), self.count)
    }

    /// The approximate bytes in the file of records that are not freed.
    pub(super) fn live_bytes(&self) -> usize {
        let (live, count) = self.records();
        self.len * live as usize / (count as usize).max(1)
    }

    /// Records that made ghosts and are not freed.
    pub(super) fn deletes(&self) -> u32 {
        self.deletes.load(Relaxed)
    }

    /// Bytes that the span takes in memory.
    pub(super) fn memory(&self) -> usize {
        memory_bytes(self.freed.len(), self.writers.len()) + self.writers.len() * size_of::<TxnState>()
    }

    /// Every record in the span was committed at or below this LSN (SPN-2).
    pub fn through(&self) -> Lsn {
        let known = Lsn(self.through.load(Acquire));
        if known != Lsn::MAX {
            return known;
        }
        let mut through = self.ended;
        for writer in &self.writers {
            match writer.status() {
                Status::Active => return Lsn::MAX,
                Status::Committed(lsn) => through = through.max(lsn),
                Status::Aborted => {}
            }
        }
        self.through.store(through.0, Release);
        through
    }

    /// A running transaction with changes in the span.
    pub(super) fn writer(&self) -> Option<&Arc<TxnState>> {
        self.writers.iter().find(|txn| txn.status() == Status::Active)
    }

    async fn read(&self) -> Result<IoBuf, StorageError> {
        self.file.read(self.offset, self.len).await
    }

    /// The records by rising tag; without the freed ones unless `freed`.
    pub(super) async fn all(&self, freed: bool) -> Result<Vec<(Tag, Arc<UndoRecord>)>, StorageError> {
        let bytes = self.read().await?;
        let view = self.view(&bytes)?;
        let mut all = Vec::with_capacity(view.count as usize);
        for index in (0..view.count).filter(|index| freed || !self.is_freed(*index)) {
            let (tag, at) = view.entry(index).ok_or_else(|| self.damage("an entry", HEAD))?;
            let record = view.record(index, at).ok_or_else(|| self.damage("a record", at))?;
            all.push((tag, Arc::new(record)));
        }
        Ok(all)
    }

    /// Reads the bytes of the span, for [`Span::find`], and checks that every record decodes (SPN-3).
    pub(super) async fn bytes(&self) -> Result<IoBuf, StorageError> {
        let bytes = self.read().await?;
        let view = self.view(&bytes)?;
        for index in 0..view.count {
            let (_, at) = view.entry(index).ok_or_else(|| self.damage("an entry", HEAD))?;
            view.parse(at).ok_or_else(|| self.damage("a record", at))?;
        }
        Ok(bytes)
    }

    /// Finds the record of a tag in the bytes from [`Span::bytes`]; `None` if the span has none, or it is freed. Decodes only this record,
    /// since a reader of an old version wants one record of hundreds.
    pub(super) fn find(&self, bytes: &[u8], tag: Tag) -> Option<Arc<UndoRecord>> {
        let view = View { span: self, bytes, count: self.count };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let (found, at) = view.entry(middle).expect("SPN-3: an entry that was checked");
            match found.cmp(&tag) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal if self.is_freed(middle) => return None,
                Ordering::Equal => {
                    return Some(Arc::new(view.record(middle, at).expect("SPN-3: a record that was checked")));
                }
            }
        }
        None
    }

    fn view<'a>(&'a self, bytes: &'a [u8]) -> Result<View<'a>, StorageError> {
        let head = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let sum = bytes.get(4..).map(crc32c::crc32c);
        if head(0) != sum || head(4) != Some(self.len as u32) || head(16) != Some(self.count) {
            return Err(self.damage("a span with its checksum", 0));
        }
        Ok(View { span: self, bytes, count: self.count })
    }

    fn damage(&self, expected: &str, at: usize) -> StorageError {
        Corruption {
            file: self.file.name(),
            offset: Some(self.offset + at as u64),
            page: None,
            lsn: None,
            expected: format!("{expected} of span {}", self.id),
            found: "other bytes".to_owned(),
        }
        .into()
    }
}

/// Bytes of a span with so many words of bits and so many writers.
fn memory_bytes(freed: usize, writers: usize) -> usize {
    size_of::<Span>() + 64 + freed * 8 + writers * size_of::<usize>()
}

impl Drop for Span {
    fn drop(&mut self) {
        // SPN-1
        self.file.give_back(self.offset, self.len);
    }
}

/// The bytes of a span whose checksum is right.
struct View<'a> {
    span: &'a Span,
    bytes: &'a [u8],
    count: u32,
}

impl View<'_> {
    fn entry(&self, index: u32) -> Option<(Tag, usize)> {
        let mut reader = Reader(self.bytes.get(HEAD + index as usize * ENTRY..)?);
        Some((Tag(reader.u64()?), reader.u32()? as usize))
    }

    fn record(&self, index: u32, at: usize) -> Option<UndoRecord> {
        let parsed = self.parse(at)?;
        let Parsed { flags, key, value, moved_to, .. } = parsed;
        let writer = match flags & LIVE {
            0 => Writer::Ended(Lsn(parsed.writer)),
            _ => Writer::Live(self.live(parsed.writer)?.clone()),
        };
        let before = match flags & ABSENT {
            0 => BeforeImage::Row { ghost: flags & GHOST != 0, overflow: flags & OVERFLOW != 0, value: value.into() },
            _ => BeforeImage::Absent,
        };
        let moved_to = (flags & MOVED != 0).then_some(moved_to);
        let spot = Spot { span: self.span.id, index };
        let rows = parsed.rows.map(Arc::new);
        let aside = Aside::of(moved_to.map(Into::into), parsed.passed.map(Box::new), Some(spot), rows);
        Some(UndoRecord {
            _memory: super::record::heap(key, &before, aside.as_deref()),
            writer,
            position: parsed.position,
            tree: parsed.tree,
            key: key.into(),
            before,
            dropped: flags & DROPPED != 0,
            prev: parsed.prev,
            before_lsn: parsed.before_lsn,
            strength: parsed.strength,
            deletes: flags & DELETES != 0,
            rowless: flags & ROWLESS != 0,
            over_shown: parsed.over_shown,
            aside,
            // It is not in the file.
            intact_since: Lsn(u64::MAX),
            lsn: AtomicU64::new(parsed.lsn),
            undo_next: AtomicU64::new(parsed.undo_next),
        })
    }

    fn live(&self, place: u64) -> Option<&Arc<TxnState>> {
        self.span.writers.get(usize::try_from(place).ok()?)
    }

    /// Parses the record at `at` without copying; `None` if the bytes are damaged.
    fn parse(&self, at: usize) -> Option<Parsed<'_>> {
        let mut reader = Reader(self.bytes.get(at..)?);
        let (flags, strength) = (reader.u8()?, reader.u8()?);
        let over_shown = strength & OVER_SHOWN != 0;
        let strength = *ALL_MODES.get(usize::from(strength & !OVER_SHOWN))?;
        let writer = reader.u64()?;
        if flags & LIVE != 0 {
            self.live(writer)?;
        }
        let mut parsed = Parsed {
            flags,
            strength,
            over_shown,
            writer,
            position: reader.u32()?,
            tree: TreeId(reader.u64()?),
            prev: Tag(reader.u64()?),
            before_lsn: Lsn(reader.u64()?),
            lsn: reader.u64()?,
            undo_next: reader.u64()?,
            key: reader.bytes()?,
            value: reader.bytes()?,
            moved_to: reader.bytes()?,
            passed: None,
            rows: None,
        };
        let passed = reader.bytes()?;
        if !passed.is_empty() {
            parsed.passed = Some(Passed::decode(passed)?);
        }
        let rows = reader.bytes()?;
        if !rows.is_empty() {
            parsed.rows = Some(RunRows::decode(rows)?);
        }
        Some(parsed)
    }
}

/// A record as it stands in a span's bytes.
struct Parsed<'a> {
    flags: u8,
    strength: LockMode,
    over_shown: bool,
    writer: u64,
    position: u32,
    tree: TreeId,
    prev: Tag,
    before_lsn: Lsn,
    lsn: u64,
    undo_next: u64,
    key: &'a [u8],
    value: &'a [u8],
    moved_to: &'a [u8],
    passed: Option<Passed>,
    rows: Option<RunRows>,
}

/// Takes numbers and strings from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).and_then(|b| b.first().copied())
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        self.take(len)
    }
}

/// Encodes records, given by rising tag, as the span `id`.
pub(super) fn encode(id: u64, records: &[(Tag, Arc<UndoRecord>)]) -> Encoded {
    assert!(records.is_sorted_by(|a, b| a.0 < b.0), "SPN-3: a span is searched by its tags");
    assert!(u32::try_from(records.len()).is_ok(), "the number of records of a span");
    let mut encoded = Encoded {
        bytes: vec![0; HEAD + records.len() * ENTRY],
        id,
        count: records.len() as u32,
        deletes: 0,
        from: Lsn::MAX,
        ended: Lsn::ZERO,
        keeps: false,
        writers: Vec::new(),
    };
    assert!(u32::try_from(records.len()).is_ok(), "a span of {} records, whose number has four bytes", records.len());
    let mut places = HashMap::new();
    for (at, (tag, record)) in records.iter().enumerate() {
        let offset = encoded.bytes.len() as u32;
        let entry = HEAD + at * ENTRY;
        encoded.bytes[entry..entry + 8].copy_from_slice(&tag.0.to_le_bytes());
        encoded.bytes[entry + 8..entry + ENTRY].copy_from_slice(&offset.to_le_bytes());
        encode_record(record, &mut places, &mut encoded);
    }
    assert!(u32::try_from(encoded.bytes.len()).is_ok(), "offsets within a span have four bytes");
    let len = encoded.bytes.len() as u32;
    encoded.bytes[4..8].copy_from_slice(&len.to_le_bytes());
    encoded.bytes[8..16].copy_from_slice(&id.to_le_bytes());
    encoded.bytes[16..20].copy_from_slice(&encoded.count.to_le_bytes());
    let sum = crc32c::crc32c(&encoded.bytes[4..]);
    encoded.bytes[..4].copy_from_slice(&sum.to_le_bytes());
    encoded
}

fn encode_record(record: &UndoRecord, places: &mut HashMap<TxnId, u64>, encoded: &mut Encoded) {
    let (mut flags, mut value): (u8, &[u8]) = (0, &[]);
    let mut flag = |on: bool, bit: u8| flags |= if on { bit } else { 0 };
    match &record.before {
        BeforeImage::Absent => flag(true, ABSENT),
        BeforeImage::Row { ghost, overflow, value: bytes } => {
            flag(*ghost, GHOST);
            flag(*overflow, OVERFLOW);
            value = bytes;
        }
    }
    flag(record.dropped, DROPPED);
    flag(record.deletes, DELETES);
    flag(record.rowless, ROWLESS);
    flag(record.moved_to().is_some(), MOVED);
    let writer = match &record.writer {
        Writer::Ended(lsn) => {
            encoded.ended = encoded.ended.max(*lsn);
            lsn.0
        }
        Writer::Live(txn) => {
            flag(true, LIVE);
            *places.entry(txn.id()).or_insert_with(|| {
                encoded.writers.push(txn.clone());
                encoded.writers.len() as u64 - 1
            })
        }
    };
    encoded.deletes += u32::from(record.deletes);
    encoded.keeps |= !record.dropped;
    encoded.from = encoded.from.min(record.before_lsn);
    let out = &mut encoded.bytes;
    let over_shown = if record.over_shown { OVER_SHOWN } else { 0 };
    out.extend_from_slice(&[flags, record.strength as u8 | over_shown]);
    out.extend_from_slice(&writer.to_le_bytes());
    out.extend_from_slice(&record.position.to_le_bytes());
    for number in [record.tree.0, record.prev.0, record.before_lsn.0, record.lsn().0, record.undo_next().0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let mut passed = Vec::new();
    record.passed().iter().for_each(|p| p.encode(&mut passed));
    let mut rows = Vec::new();
    record.rows().iter().for_each(|r| r.encode(&mut rows));
    for bytes in [&record.key[..], value, record.moved_to().unwrap_or_default(), &passed, &rows] {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clearway_base::sync::block_on;
    use clearway_base::vfs::{MemVfs, Vfs};

    use super::*;

    fn record(key: &[u8]) -> Arc<UndoRecord> {
        Arc::new(UndoRecord {
            writer: Writer::Ended(Lsn(70)),
            position: 3,
            tree: TreeId(7),
            key: key.into(),
            before: BeforeImage::Row { ghost: false, overflow: false, value: key.repeat(3).into() },
            dropped: false,
            prev: Tag::SETTLED,
            before_lsn: Lsn(60),
            strength: LockMode::RowNoKeyUpdate,
            deletes: false,
            rowless: false,
            over_shown: true,
            aside: None,
            intact_since: Lsn(u64::MAX),
            lsn: AtomicU64::new(65),
            undo_next: AtomicU64::new(0),
            _memory: clearway_base::memory::Outside::new(0),
        })
    }

    fn spilled(encoded: Encoded) -> Span {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        block_on(vfs.create_dir(Path::new("/s"))).expect("a directory");
        let file = Arc::new(SpillFile::new(vfs, Path::new("/s")));
        let offset = block_on(file.write(&encoded.bytes)).expect("written");
        Span::new(encoded, (1, 1), file, offset)
    }

    #[test]
    fn each_record_is_found_under_its_tag_until_it_is_freed() {
        // SPN-3
        let records: Vec<_> = (1..=20_u64).map(|n| (Tag(64 + 3 * n), record(&n.to_be_bytes()))).collect();
        let span = spilled(encode(9, &records));
        let bytes = block_on(span.bytes()).expect("as written");
        for (at, (tag, record)) in records.iter().enumerate() {
            let found = span.find(&bytes, *tag).expect("it is there");
            assert_eq!((&found.key, &found.before, found.lsn()), (&record.key, &record.before, record.lsn()));
            assert_eq!((found.strength, found.over_shown), (record.strength, record.over_shown));
            assert_eq!(found.spot(), Some(Spot { span: 9, index: at as u32 }));
            assert!(span.find(&bytes, Tag(tag.0 + 1)).is_none(), "between two tags");
            span.free(at as u32, record);
            assert!(span.find(&bytes, *tag).is_none(), "UND-6: freed since");
        }
        assert!(span.find(&bytes, Tag(1)).is_none());
    }

    #[test]
    fn a_record_that_does_not_decode_is_told_when_the_span_is_read() {
        // SPN-3: with a checksum that is right, so that nothing else can notice.
        let intact = encode(9, &[(Tag(64), record(b"a")), (Tag(65), record(b"b"))]).bytes;
        for (at, byte) in [(HEAD + 8, 0xff), (HEAD + ENTRY + 8 + 1, 0xff), (intact.len() - 4, 1)] {
            let mut encoded = encode(9, &[(Tag(64), record(b"a")), (Tag(65), record(b"b"))]);
            encoded.bytes[at] = byte;
            let sum = crc32c::crc32c(&encoded.bytes[4..]);
            encoded.bytes[..4].copy_from_slice(&sum.to_le_bytes());
            let read = block_on(spilled(encoded).bytes());
            assert!(matches!(read, Err(StorageError::Corruption(_))), "byte {at}: {read:?}");
        }
    }
}
