//! The byte format of the log: encodes and decodes segment headers and records. Decoding trusts no byte.
//!
//! # Structure
//! ```text
//!   segment   header block (4096 bytes), then SEGMENT_BYTES - 4096 bytes of the stream
//!   stream    record, record, ...            a record may cross into the next segment
//!   record    header (48)  page operations  undo part  body  zeros up to a multiple of 8
//!
//!   header    0 len u32        4 crc u32      8 lsn_low u32    12 durable_back u32
//!            16 epoch u32     20 kind u8     21 flags u8      22 ops u16
//!            24 txn u64       32 undo_next u64                40 body_len u32   44 zero u32
//!   operation 0 page u32       4 payload_len u24, op u8        8 payload
//!   undo      0 tree u64       8 tag u64     16 prev_tag u64
//!            24 key_len u16   26 before u8   27 zero u8       28 before_len u32  32 key, before
//! ```
//! All numbers are little-endian. `len` counts the whole record. `lsn_low` is the record's start divided by 8,
//! `durable_back` how far (in units of 8 bytes) the durable LSN lay before the record's start when it was appended.
//! The CRC-32C runs over bytes 16..len, then bytes 8..16, then the 64-bit LSN of the record's start. So all bytes that
//! do not depend on the position are summed before the position is known.
//!
//! # Invariants
//! - WAL-1: a record is valid only if its CRC holds for the LSN at which it stands. So bytes that an earlier use of a
//!   recycled segment left behind are never taken for a record.
//! - WAL-2: the epochs of records never decrease along the stream. A record with a lower epoch than the record before it
//!   was left behind by a crash; the log ends there.

use crate::error::Corruption;
use crate::ids::{Lsn, PageId, Tag, TreeId, TxnId};
use crate::record::{Before, LsnRange, Record, RecordKind, RecordView, RowUndo};

/// The unit in which the log is written: block of the file, and the size of a segment's header.
pub const BLOCK_BYTES: usize = 4096;
/// The size of a record's header.
pub const HEADER_BYTES: usize = 48;
/// Bytes of a page operation beside its payload.
pub const OP_BYTES: usize = 8;
/// Where the header has the number of operations.
const OP_COUNT_AT: usize = 22;
/// Bytes of the undo part beside key and before-image.
pub const UNDO_BYTES: usize = 32;
/// The longest record; a claim of more is damage.
pub const RECORD_BYTES_MAX: usize = 1 << 24;
/// The version of log and checkpoint files that this program writes; it refuses newer ones.
pub const FORMAT_VERSION: u32 = 4;

const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"CLRWYWAL");
const FLAG_UNDO: u8 = 1;
const BEFORE_ABSENT: u8 = 0;
const BEFORE_ROW: u8 = 1;
const BEFORE_GHOST: u8 = 2;
const BEFORE_OVERFLOW: u8 = 4;

/// The bytes that `record` takes in the log.
pub fn encoded_len(record: &Record<'_>) -> usize {
    let ops: usize =
        record.ops.iter().map(|op| OP_BYTES + op.payload.iter().map(|part| part.len()).sum::<usize>()).sum();
    let undo = record.undo.map_or(0, |undo| {
        let before = match undo.before {
            Before::Absent => 0,
            Before::Row { value, .. } => value.len(),
        };
        UNDO_BYTES + undo.key.len() + before
    });
    (HEADER_BYTES + ops + undo + record.body.len()).next_multiple_of(8)
}

// The length of an operation's arguments has three bytes.
const _: () = assert!(RECORD_BYTES_MAX - HEADER_BYTES < 1 << 24);

/// Encodes `record` into `out`, in the place of what it held, except the fields that depend on its position; returns the CRC so far.
///
/// # Panics
/// If a part is longer than its length field holds: pages and keys are far shorter.
pub fn encode(record: &Record<'_>, epoch: u32, out: &mut Vec<u8>) -> u32 {
    let len = encoded_len(record);
    assert!(len <= RECORD_BYTES_MAX, "a record of {len} bytes");
    // What it held does not matter: every byte is written.
    out.resize(len, 0);
    let mut rest = Filler(out);
    let ops = u16::try_from(record.ops.len()).expect("a record of more than 65535 page operations");
    // Each fixed part in one piece: a check of the room for each of a dozen fields cost more than the rest.
    let flags = if record.undo.is_some() { FLAG_UNDO } else { 0 };
    let what = u64::from(epoch) | u64::from(record.kind as u8) << 32 | u64::from(flags) << 40 | u64::from(ops) << 48;
    let header: [u64; HEADER_BYTES / 8] =
        [len as u64, 0, what, record.txn.0, record.undo_next.0, u64::from(record.body.len() as u32)];
    rest.words(&header);
    for op in record.ops {
        let payload_len: usize = op.payload.iter().map(|part| part.len()).sum();
        let arguments = payload_len as u32 | u32::from(op.op) << 24;
        rest.words(&[u64::from(op.page.0) | u64::from(arguments) << 32]);
        op.payload.iter().for_each(|part| rest.bytes(part));
    }
    if let Some(undo) = &record.undo {
        encode_undo(undo, &mut rest);
    }
    rest.bytes(record.body);
    rest.0.fill(0);
    crc32c::crc32c(&out[16..])
}

/// What is left of a record's bytes to be written.
struct Filler<'a>(&'a mut [u8]);

impl Filler<'_> {
    #[inline]
    fn bytes(&mut self, part: &[u8]) {
        let (at, rest) = std::mem::take(&mut self.0).split_at_mut(part.len());
        // Most parts of no or one byte are arguments of operations.
        match part {
            [] => {}
            [byte] => at[0] = *byte,
            _ => at.copy_from_slice(part),
        }
        self.0 = rest;
    }

    #[inline]
    fn words<const N: usize>(&mut self, words: &[u64; N]) {
        let (at, rest) = std::mem::take(&mut self.0).split_at_mut(8 * N);
        at.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(at, word)| *at = word.to_le_bytes());
        self.0 = rest;
    }
}

fn encode_undo(undo: &RowUndo<'_>, rest: &mut Filler<'_>) {
    let (before, value): (u8, &[u8]) = match undo.before {
        Before::Absent => (BEFORE_ABSENT, &[]),
        Before::Row { ghost, overflow, value } => {
            let flags = if ghost { BEFORE_GHOST } else { 0 } | if overflow { BEFORE_OVERFLOW } else { 0 };
            (BEFORE_ROW | flags, value)
        }
    };
    let key_len = u16::try_from(undo.key.len()).expect("a key of more than 65535 bytes");
    let lengths = u64::from(key_len) | u64::from(before) << 16 | u64::from(value.len() as u32) << 32;
    rest.words::<{ UNDO_BYTES / 8 }>(&[undo.tree.0, undo.tag.0, undo.prev_tag.0, lengths]);
    rest.bytes(undo.key);
    rest.bytes(value);
}

/// Completes an encoded record at its position; `crc` is what [`encode`] returned.
pub fn place(bytes: &mut [u8], crc: u32, start: Lsn, durable: Lsn) {
    let back = u32::try_from(start.0.saturating_sub(durable.0) / 8).unwrap_or(u32::MAX);
    let middle = u64::from(lsn_low(start)) | u64::from(back) << 32;
    let crc = finish_crc(crc, middle, start);
    let [first, second, ..] = bytes.as_chunks_mut::<8>().0 else { unreachable!("a record has a header") };
    let len = u32::from_le_bytes([first[0], first[1], first[2], first[3]]);
    *first = (u64::from(len) | u64::from(crc) << 32).to_le_bytes();
    *second = middle.to_le_bytes();
}

/// The part of a record's position that stands in its header.
pub fn lsn_low(start: Lsn) -> u32 {
    (start.0 / 8) as u32
}

fn finish_crc(crc: u32, middle: u64, start: Lsn) -> u32 {
    crc32c::crc32c_append(crc, [middle, start.0].map(u64::to_le_bytes).as_flattened())
}

/// A cursor over bytes that may be damaged: every read is checked.
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// A cursor at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Bytes { rest: bytes }
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// The next 16-bit number.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    /// The next 32-bit number.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The next 64-bit number.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// The fixed part of a record, as claimed by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole record.
    pub len: usize,
    /// CRC as stored.
    pub crc: u32,
    /// See the module's drawing.
    pub lsn_low: u32,
    /// See the module's drawing.
    pub durable_back: u32,
    /// The epoch in which it was appended.
    pub epoch: u32,
}

impl Header {
    /// The header that stands in `bytes`; `None` where no record can begin at `start`.
    pub fn parse(bytes: &[u8], start: Lsn) -> Option<Header> {
        let mut at = Bytes::new(bytes);
        let header = Header {
            len: at.u32()? as usize,
            crc: at.u32()?,
            lsn_low: at.u32()?,
            durable_back: at.u32()?,
            epoch: at.u32()?,
        };
        let sane = header.len >= HEADER_BYTES
            && header.len <= RECORD_BYTES_MAX
            && header.len % 8 == 0
            && header.lsn_low == lsn_low(start);
        sane.then_some(header)
    }

    /// What was durable when the record was appended.
    pub fn durable_hint(&self, start: Lsn) -> Lsn {
        Lsn(start.0.saturating_sub(u64::from(self.durable_back) * 8))
    }
}

/// Whether `bytes`, of the length that its header says, are a record at `start` (WAL-1).
pub fn crc_holds(bytes: &[u8], start: Lsn) -> bool {
    let Some(header) = Header::parse(bytes, start) else { return false };
    match (bytes.get(8..).and_then(<[u8]>::first_chunk), bytes.get(16..header.len)) {
        (Some(middle), Some(content)) => {
            finish_crc(crc32c::crc32c(content), u64::from_le_bytes(*middle), start) == header.crc
        }
        _ => false,
    }
}

/// A page operation as read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpView<'a> {
    /// The page.
    pub page: PageId,
    /// Which change.
    pub op: u8,
    /// Its arguments.
    pub payload: &'a [u8],
}

/// A record as read from the log. Its bytes passed the CRC, but its fields are still not trusted.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// What it is for.
    pub kind: RecordKind,
    /// Where it stands.
    pub lsn: LsnRange,
    /// Whose it is.
    pub txn: TxnId,
    /// See [`Record::undo_next`].
    pub undo_next: Lsn,
    /// Its undo part.
    pub undo: Option<RowUndo<'a>>,
    /// Its page operations.
    pub ops: Vec<OpView<'a>>,
    /// Its body.
    pub body: &'a [u8],
}

impl Decoded<'_> {
    /// What redo sees of it.
    pub fn view(&self) -> RecordView<'_> {
        RecordView { kind: self.kind, lsn: self.lsn, undo: self.undo }
    }
}

/// Decodes a record. `file` and `offset` name the place in errors.
///
/// # Errors
/// A typed corruption if the parts do not fit. After a good CRC this means a defect of the program, or a CRC that matches by chance.
pub fn decode<'a>(bytes: &'a [u8], start: Lsn, file: &str, offset: u64) -> Result<Decoded<'a>, Corruption> {
    decode_parts(bytes, start).ok_or_else(|| Corruption {
        file: file.to_owned(),
        offset: Some(offset),
        page: None,
        lsn: Some(start),
        expected: "a log record whose parts fill its length".to_owned(),
        found: format!("{} bytes that do not", bytes.len()),
    })
}

/// Appends the page of each operation of a record; none: its parts do not fit, which [`decode`] names.
pub fn pages_of(bytes: &[u8], pages: &mut Vec<PageId>) -> Option<()> {
    let mut at = Bytes::new(bytes);
    at.take(OP_COUNT_AT)?;
    let op_count = at.u16()?;
    at.take(HEADER_BYTES - OP_COUNT_AT - 2)?;
    for _ in 0..op_count {
        pages.push(op(&mut at)?.page);
    }
    Some(())
}

/// The next operation.
fn op<'a>(at: &mut Bytes<'a>) -> Option<OpView<'a>> {
    let page = PageId(at.u32()?);
    let word = at.u32()?;
    let payload = at.take((word & 0x00ff_ffff) as usize)?;
    Some(OpView { page, op: (word >> 24) as u8, payload })
}

fn decode_parts(bytes: &[u8], start: Lsn) -> Option<Decoded<'_>> {
    let mut at = Bytes::new(bytes);
    at.take(20)?;
    let kind = RecordKind::from_code(at.u8()?)?;
    let flags = at.u8()?;
    let op_count = usize::from(at.u16()?);
    let txn = TxnId(at.u64()?);
    let undo_next = Lsn(at.u64()?);
    let body_len = at.u32()? as usize;
    at.take(4)?;
    let mut ops = Vec::with_capacity(op_count);
    for _ in 0..op_count {
        ops.push(op(&mut at)?);
    }
    let undo = match flags {
        0 => None,
        FLAG_UNDO => Some(decode_undo(&mut at)?),
        _ => return None,
    };
    let body = at.take(body_len)?;
    let padding = at.rest();
    if padding.len() >= 8 || padding.iter().any(|&byte| byte != 0) {
        return None;
    }
    let end = Lsn(start.0 + bytes.len() as u64);
    Some(Decoded { kind, lsn: LsnRange { start, end }, txn, undo_next, undo, ops, body })
}

fn decode_undo<'a>(at: &mut Bytes<'a>) -> Option<RowUndo<'a>> {
    let (tree, tag, prev_tag) = (TreeId(at.u64()?), Tag(at.u64()?), Tag(at.u64()?));
    let key_len = usize::from(at.u16()?);
    let before = at.u8()?;
    at.u8()?;
    let value_len = at.u32()? as usize;
    let key = at.take(key_len)?;
    let value = at.take(value_len)?;
    let before = match before {
        BEFORE_ABSENT if value.is_empty() => Before::Absent,
        flags if flags & BEFORE_ROW != 0 && flags & !(BEFORE_ROW | BEFORE_GHOST | BEFORE_OVERFLOW) == 0 => {
            Before::Row { ghost: flags & BEFORE_GHOST != 0, overflow: flags & BEFORE_OVERFLOW != 0, value }
        }
        _ => return None,
    };
    Some(RowUndo { tree, key, tag, prev_tag, before })
}

/// What the first block of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Random number of the database, so that files of two are not mixed.
    pub database: u64,
    /// The segment's number in the stream.
    pub number: u64,
    /// The size of the whole file in bytes.
    pub segment_bytes: u64,
}

impl SegmentHeader {
    /// The first block.
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[0..8].copy_from_slice(&SEGMENT_MAGIC.to_le_bytes());
        block[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        block[16..24].copy_from_slice(&self.database.to_le_bytes());
        block[24..32].copy_from_slice(&self.number.to_le_bytes());
        block[32..40].copy_from_slice(&self.segment_bytes.to_le_bytes());
        let crc = crc32c::crc32c(&block[16..]);
        block[12..16].copy_from_slice(&crc.to_le_bytes());
        block
    }

    /// The version of a segment that a newer program wrote.
    pub fn newer(block: &[u8]) -> Option<u32> {
        let mut at = Bytes::new(block);
        let magic = at.u64()?;
        at.u32().filter(|version| magic == SEGMENT_MAGIC && *version > FORMAT_VERSION)
    }

    /// Reads a first block; the error says what was expected and what was found.
    ///
    /// # Errors
    /// (expected, found) if the block is no header of a version that this program knows.
    pub fn decode(block: &[u8]) -> Result<SegmentHeader, (String, String)> {
        let short = || ("a block of 4096 bytes".to_owned(), format!("{} bytes", block.len()));
        let mut at = Bytes::new(block);
        let magic = at.u64().ok_or_else(short)?;
        if magic != SEGMENT_MAGIC {
            return Err(("the mark of a log segment".to_owned(), format!("{magic:#018x}")));
        }
        let version = at.u32().ok_or_else(short)?;
        let crc = at.u32().ok_or_else(short)?;
        let actual = crc32c::crc32c(block.get(16..BLOCK_BYTES).ok_or_else(short)?);
        if version > FORMAT_VERSION {
            return Err((format!("format version {FORMAT_VERSION} or older"), format!("version {version}")));
        }
        if crc != actual {
            return Err((format!("header checksum {crc:#010x}"), format!("{actual:#010x}")));
        }
        let mut field = || at.u64().ok_or_else(short);
        Ok(SegmentHeader { database: field()?, number: field()?, segment_bytes: field()? })
    }
}
