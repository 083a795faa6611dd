//! COPY FROM in binary form: a header, rows of counted values, a trailer.
//!
//! # Errors
//! PostgreSQL's: 22P04 for the frame, 22P03 for values.

use super::lines::LINE_BYTES_MAX;
use super::write::SIGNATURE;
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, SqlType, binary};

/// Rows of a stream.
pub struct Rows {
    encoding: Encoding,
    buffer: Vec<u8>,
    start: usize,
    begun: bool,
    ended: bool,
    /// The number of the row given last, from 1.
    pub number: u64,
}

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new("22P04", message)
}

/// A cursor; none where the bytes end.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }
}

impl Rows {
    /// Nothing yet, of a client whose text has this encoding.
    pub fn new(encoding: Encoding) -> Self {
        Rows { encoding, buffer: Vec::new(), start: 0, begun: false, ended: false, number: 0 }
    }

    /// The next bytes of the stream.
    ///
    /// # Errors
    /// 53200, 54000: a row has at most [`LINE_BYTES_MAX`] bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.len() - self.start > LINE_BYTES_MAX {
            let message = format!("a row of COPY has more than {LINE_BYTES_MAX} bytes");
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if self.buffer.len() + bytes.len() > self.buffer.capacity() {
            clearway_base::memory::claim(self.buffer.len() - self.start + bytes.len())?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next row; none: more bytes are needed, or there are no more rows.
    ///
    /// # Errors
    /// 22P03, 22P04.
    pub fn row(&mut self, types: &[SqlType]) -> Result<Option<Vec<Datum>>> {
        if self.ended || !(self.begun || self.header()?) {
            return Ok(None);
        }
        let mut cursor = Cursor { bytes: &self.buffer, at: self.start };
        let Some(count) = cursor.i16() else { return Ok(None) };
        if count == -1 {
            self.ended = true;
            self.buffer = Vec::new();
            self.start = 0;
            return Ok(None);
        }
        if usize::try_from(count) != Ok(types.len()) {
            return Err(bad(format!("row field count is {count}, expected {}", types.len())));
        }
        // The frame first: a row that is not whole is looked at again when more has come.
        let mut values = Vec::with_capacity(types.len());
        for _ in types {
            let Some(len) = cursor.i32() else { return Ok(None) };
            values.push(match len {
                -1 => None,
                len => {
                    let len = usize::try_from(len).map_err(|_| bad("invalid field size"))?;
                    let Some(bytes) = cursor.take(len) else { return Ok(None) };
                    Some(bytes)
                }
            });
        }
        self.number += 1;
        let row = values.iter().zip(types).map(|(value, ty)| match value {
            None => Ok(Datum::Null),
            Some(bytes) if self.encoding.differs() => {
                let decoded = binary::decoded(ty.oid, bytes, self.encoding)?;
                binary::input(*ty, decoded.as_deref().unwrap_or(bytes))
            }
            Some(bytes) => binary::input(*ty, bytes),
        });
        let row = row.collect::<Result<Vec<_>>>()?;
        self.start = cursor.at;
        Ok(Some(row))
    }

    /// The stream is over.
    ///
    /// # Errors
    /// 22P04 in the middle of a row, or without a trailer.
    pub fn finish(&mut self) -> Result<()> {
        if !self.begun {
            return Err(bad("COPY file signature not recognized"));
        }
        if self.start < self.buffer.len() {
            return Err(bad("unexpected EOF in COPY data"));
        }
        Ok(())
    }

    fn header(&mut self) -> Result<bool> {
        let mut cursor = Cursor { bytes: &self.buffer, at: self.start };
        let Some(signature) = cursor.take(SIGNATURE.len()) else { return Ok(false) };
        if signature != SIGNATURE {
            return Err(bad("COPY file signature not recognized"));
        }
        let (Some(flags), Some(extension)) = (cursor.i32(), cursor.i32()) else { return Ok(false) };
        if flags & (1 << 16) != 0 {
            return Err(bad("invalid COPY file header (WITH OIDS)"));
        }
        if flags as u32 >> 16 != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        let extension = usize::try_from(extension).map_err(|_| bad("invalid COPY file header (missing length)"))?;
        if cursor.take(extension).is_none() {
            return Ok(false);
        }
        self.start = cursor.at;
        self.begun = true;
        Ok(true)
    }
}
