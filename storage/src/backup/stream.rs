//! Reads the log from bytes that arrive in pieces, record by record, and tells commits (with their time) and restore points from other
//! records, for a restore to a moment.

use super::point::RestorePoint;
use crate::error::{Corruption, StorageError};
use crate::ids::Lsn;
use crate::record::{LsnRange, RecordKind};
use crate::recovery::CommitBody;
use crate::wal::format::{self, Decoded, HEADER_BYTES, Header, crc_holds};

/// Bytes of the log from a position on.
pub struct Stream {
    name: String,
    buf: Vec<u8>,
    at: usize,
    position: Lsn,
    epoch: u32,
}

/// What a record is to the search for a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A commit, with the wall clock in microseconds since 1970.
    Commit(i64),
    /// A restore point.
    Point(RestorePoint),
    /// Any other record.
    None,
}

/// A record's place, what it is, and the greatest page that it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it stands.
    pub range: LsnRange,
    /// What it is.
    pub moment: Moment,
    /// The greatest page number that it changes.
    pub page_max: Option<u32>,
    /// The epoch in which it was written.
    pub epoch: u32,
}

impl Stream {
    /// A stream whose bytes begin at `start`, where a record does; `name` stands in errors.
    pub fn new(start: Lsn, name: &str) -> Stream {
        Stream { name: name.to_owned(), buf: Vec::new(), at: 0, position: start, epoch: 0 }
    }

    /// Where the next record begins.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Bytes that are no whole record yet.
    pub fn rest_bytes(&self) -> usize {
        self.buf.len() - self.at
    }

    /// Takes in the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buf.drain(..self.at);
        self.at = 0;
        self.buf.extend_from_slice(bytes);
    }

    /// The next whole record; none until more bytes come.
    ///
    /// # Errors
    /// Bytes that are no record where one must stand.
    pub fn step(&mut self) -> Result<Option<Found>, StorageError> {
        let start = self.position;
        let rest = &self.buf[self.at..];
        if rest.len() < HEADER_BYTES {
            return Ok(None);
        }
        let Some(header) = Header::parse(rest, start) else {
            return Err(self.damage("the header of a log record", "none"));
        };
        let Some(bytes) = rest.get(..header.len) else { return Ok(None) };
        if !crc_holds(bytes, start) {
            return Err(self.damage("a log record whose checksum holds", "another checksum"));
        }
        if header.epoch < self.epoch {
            return Err(self.damage(format!("epoch {} or later", self.epoch), format!("epoch {}", header.epoch)));
        }
        let record = format::decode(bytes, start, &self.name, start.0)?;
        let found = Found {
            range: record.lsn,
            moment: moment(&record),
            page_max: record.ops.iter().map(|op| op.page.0).max(),
            epoch: header.epoch,
        };
        self.epoch = header.epoch;
        self.at += header.len;
        self.position = found.range.end;
        Ok(Some(found))
    }

    fn damage(&self, expected: impl Into<String>, found: impl Into<String>) -> StorageError {
        let (expected, found) = (expected.into(), found.into());
        Corruption { file: self.name.clone(), offset: None, page: None, lsn: Some(self.position), expected, found }
            .into()
    }
}

fn moment(record: &Decoded<'_>) -> Moment {
    match record.kind {
        RecordKind::Commit => {
            CommitBody::decode(record.body).map_or(Moment::None, |body| Moment::Commit(body.wall_clock_us))
        }
        RecordKind::Structure => RestorePoint::decode(record.body).map_or(Moment::None, Moment::Point),
        _ => Moment::None,
    }
}
