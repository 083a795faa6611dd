//! Reads the stream back from the segment files, from a position to its end or its first damage.
//!
//! # Not here
//! The check whether the reader stopped at a proper end: [`super::repair`].

use super::format::{BLOCK_BYTES, FORMAT_VERSION, HEADER_BYTES, Header, RECORD_BYTES_MAX, SegmentHeader, crc_holds};
use super::segments::{Layout, how};
use crate::error::{Corruption, StorageError};
use crate::ids::Lsn;
use crate::record::LsnRange;
use clearway_base::vfs::{IoBuf, Vfs, VfsFile};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read at once; a multiple of the block.
const READ_BYTES: usize = 1 << 20;

/// Where and why the reader stopped.
#[derive(Clone, Debug)]
pub struct End {
    /// Behind the last valid record.
    pub lsn: Lsn,
    /// The epoch of the last valid record, or of the reader's start.
    pub epoch: u32,
    /// The greatest durable LSN that a record read so far names.
    pub durable_hint: Lsn,
    /// What stands there instead of a record: the error to return if a record should stand there.
    pub damage: Corruption,
}

/// A place in the stream and the bytes from there on.
pub struct LogReader {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    layout: Layout,
    database: u64,
    /// What is buffered: the stream's bytes from `buf_lsn` on, of which `at` were consumed.
    buf: Vec<u8>,
    buf_lsn: Lsn,
    at: usize,
    file: Option<(u64, Arc<dyn VfsFile>)>,
    epoch: u32,
    epoch_floor: (Lsn, u32),
    durable_hint: Lsn,
    io: IoBuf,
}

impl LogReader {
    /// A reader that begins at `start`. `epoch_floor` says from where on records are of which epoch or a later one.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        layout: Layout,
        database: u64,
        start: Lsn,
        epoch_floor: (Lsn, u32),
    ) -> LogReader {
        let block = Lsn(start.0 - start.0 % BLOCK_BYTES as u64);
        LogReader {
            vfs,
            dir: dir.to_path_buf(),
            layout,
            database,
            buf: Vec::new(),
            buf_lsn: block,
            at: (start.0 - block.0) as usize,
            file: None,
            epoch: 0,
            epoch_floor,
            durable_hint: Lsn::ZERO,
            io: IoBuf::zeroed(0),
        }
    }

    fn position(&self) -> Lsn {
        Lsn(self.buf_lsn.0 + self.at as u64)
    }

    /// The path and offset of a position, for errors.
    pub fn place(&self, lsn: Lsn) -> (String, u64) {
        let path = self.dir.join(Layout::file_name(self.layout.number(lsn)));
        (path.display().to_string(), self.layout.offset(lsn))
    }

    fn end(&self, expected: impl Into<String>, found: impl Into<String>) -> End {
        let (file, offset) = self.place(self.position());
        let damage = Corruption {
            file,
            offset: Some(offset),
            page: None,
            lsn: Some(self.position()),
            expected: expected.into(),
            found: found.into(),
        };
        let floor = if self.position() >= self.epoch_floor.0 { self.epoch_floor.1 } else { 0 };
        End { lsn: self.position(), epoch: self.epoch.max(floor), durable_hint: self.durable_hint, damage }
    }

    /// The next record's place and bytes, or why there is none.
    ///
    /// # Errors
    /// A failed read.
    pub async fn next(&mut self) -> Result<Result<(LsnRange, &[u8]), Box<End>>, StorageError> {
        let start = self.position();
        if let Err(end) = self.fill(HEADER_BYTES).await? {
            return Ok(Err(end));
        }
        let Some(header) = Header::parse(&self.buf[self.at..], start) else {
            return Ok(Err(Box::new(self.end("the header of a log record", "none"))));
        };
        assert!(header.len <= RECORD_BYTES_MAX, "a header that was parsed has a length of {}", header.len);
        if let Err(end) = self.fill(header.len).await? {
            return Ok(Err(end));
        }
        if !crc_holds(&self.buf[self.at..self.at + header.len], start) {
            let expected = format!("a log record with checksum {:#010x}", header.crc);
            return Ok(Err(Box::new(self.end(expected, "another checksum"))));
        }
        if start >= self.epoch_floor.0 {
            self.epoch = self.epoch.max(self.epoch_floor.1);
        }
        if header.epoch < self.epoch {
            // WAL-2.
            let expected = format!("a log record of epoch {} or later", self.epoch);
            return Ok(Err(Box::new(self.end(expected, format!("epoch {}", header.epoch)))));
        }
        self.epoch = header.epoch;
        self.durable_hint = self.durable_hint.max(header.durable_hint(start));
        let from = self.at;
        self.at += header.len;
        let end = self.position();
        Ok(Ok((LsnRange { start, end }, &self.buf[from..self.at])))
    }

    /// Makes at least `len` bytes available behind the position.
    async fn fill(&mut self, len: usize) -> Result<Result<(), Box<End>>, StorageError> {
        while self.buf.len() < self.at + len {
            // Drop the consumed whole blocks first.
            let consumed = self.at.min(self.buf.len()) / BLOCK_BYTES * BLOCK_BYTES;
            self.buf.drain(..consumed);
            self.buf_lsn = Lsn(self.buf_lsn.0 + consumed as u64);
            self.at -= consumed;
            let from = Lsn(self.buf_lsn.0 + self.buf.len() as u64);
            if let Err(end) = self.read(from).await? {
                return Ok(Err(end));
            }
        }
        Ok(Ok(()))
    }

    /// Appends the next bytes of the stream to the buffer.
    async fn read(&mut self, from: Lsn) -> Result<Result<(), Box<End>>, StorageError> {
        let number = self.layout.number(from);
        if self.file.as_ref().is_none_or(|(current, _)| *current != number) {
            match open_segment(&self.vfs, &self.dir, self.layout, self.database, number).await? {
                Ok(file) => self.file = Some((number, file)),
                Err((expected, found)) => {
                    let path = self.dir.join(Layout::file_name(number));
                    let mut end = self.end(expected, found);
                    end.damage.file = path.display().to_string();
                    end.damage.offset = Some(0);
                    return Ok(Err(Box::new(end)));
                }
            }
        }
        let Some((_, file)) = &self.file else { return Ok(Err(Box::new(self.end("a segment", "none")))) };
        let left = self.layout.first_lsn(number + 1).0 - from.0;
        let len = READ_BYTES.min(usize::try_from(left).unwrap_or(READ_BYTES));
        let io = std::mem::replace(&mut self.io, IoBuf::zeroed(0));
        let io = file.read_at(self.layout.offset(from), io, len).await?;
        if io.is_empty() {
            return Ok(Err(Box::new(self.end("a whole segment", "the end of the file"))));
        }
        // A file that was truncated in the middle of a block ends the stream at the last whole block.
        self.buf.extend_from_slice(&io[..io.len() / BLOCK_BYTES * BLOCK_BYTES]);
        let short = io.len() < len;
        self.io = io;
        Ok(if short { Err(Box::new(self.end("a whole segment", "a shorter file"))) } else { Ok(()) })
    }
}

/// Refuses a segment that a newer program wrote, by its first block.
///
/// # Errors
/// Which file, the version found and the one supported.
pub fn refuse_newer(path: &Path, block: &[u8]) -> Result<(), StorageError> {
    let Some(version) = SegmentHeader::newer(block) else { return Ok(()) };
    let (expected, found) = (format!("format version {FORMAT_VERSION} or older"), format!("version {version}"));
    let file = path.display().to_string();
    Err(Corruption { file, offset: Some(8), page: None, lsn: None, expected, found }.into())
}

/// Opens a segment and checks its header; if the file or the header is wrong, returns what was expected and what was found.
///
/// # Errors
/// A failed file operation other than a missing file; a segment of a newer format, which is no end of the log.
pub async fn open_segment(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    layout: Layout,
    database: u64,
    number: u64,
) -> Result<Result<Arc<dyn VfsFile>, (String, String)>, StorageError> {
    let path = dir.join(Layout::file_name(number));
    let file = match vfs.open(&path, how()).await {
        Ok(file) => file,
        Err(err) if err.kind() == ErrorKind::NotFound => {
            return Ok(Err((format!("log segment {number}"), "no such file".to_owned())));
        }
        Err(err) => return Err(err.into()),
    };
    let block = file.read_at(0, IoBuf::zeroed(BLOCK_BYTES), BLOCK_BYTES).await?;
    refuse_newer(&path, &block)?;
    let header = match SegmentHeader::decode(&block) {
        Ok(header) => header,
        Err(why) => return Ok(Err(why)),
    };
    let right = SegmentHeader { database, number, segment_bytes: layout.segment_bytes };
    if header != right {
        return Ok(Err((format!("the header {right:?}"), format!("{header:?}"))));
    }
    Ok(Ok(file))
}
