//! A target that writes objects one after the other into one stream: a backup as a single file, or through a pipe.
//!
//! ```text
//!   head     0 CLRWYSTR   8 version u32   12 checksum u32 of bytes 0..12
//!   object   0 checksum u32 of bytes 4..24 and of the name   4 length of the name u32   8 length of the object u64
//!           16 number of the object in the stream u64        24 the name, the object
//!   end      an object without a name and without bytes
//! ```
//! Checksums are CRC-32C; objects have sums of their own. A stream contains one backup with everything that a restore needs, and nothing after
//! the end.

use super::{Listed, Target};
use crate::error::{BackupError, Result};
use clearway_base::sync::Mutex;
use clearway_storage::seams::BoxFuture;
use std::collections::BTreeSet;

/// What a stream begins with.
pub const HEAD_BYTES: usize = 16;
/// What an object begins with.
pub const ENTRY_BYTES: usize = 24;
/// The longest name of an object, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
const MARK: &[u8; 8] = b"CLRWYSTR";
const VERSION: u32 = 1;

/// The head of a stream.
pub fn head() -> [u8; HEAD_BYTES] {
    let mut out = [0; HEAD_BYTES];
    out[..8].copy_from_slice(MARK);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&out[..12]);
    out[12..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Checks the head of a stream; `place` stands in errors.
///
/// # Errors
/// It is no stream, or one of a newer version.
pub fn check_head(place: &str, bytes: &[u8; HEAD_BYTES]) -> Result<()> {
    if *bytes == head() {
        return Ok(());
    }
    if &bytes[..8] != MARK {
        return Err(BackupError::damaged(place, "a backup in one file", "another file"));
    }
    let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if crc32c::crc32c(&bytes[..12]).to_le_bytes() != bytes[12..] || version == 0 {
        return Err(BackupError::damaged(place, "the head of a backup in one file", "one with another checksum"));
    }
    Err(BackupError::damaged(place, format!("format version {VERSION} or older"), format!("version {version}")))
}

/// What stands before an object's bytes: lengths, number, name.
pub fn entry(name: &str, bytes: u64, number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(ENTRY_BYTES + name.len());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(name.len() as u32).to_le_bytes());
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    let crc = crc32c::crc32c(&out[4..]);
    out[..4].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The lengths of the name and of the object that an entry announces. The checksum is checked by [`named`], with the name.
///
/// # Errors
/// A name that is too long.
pub fn lengths(place: &str, bytes: &[u8; ENTRY_BYTES]) -> Result<(usize, u64)> {
    let name = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    if name > NAME_BYTES_MAX {
        let expected = format!("a name of at most {NAME_BYTES_MAX} bytes");
        return Err(BackupError::damaged(place, expected, name.to_string()));
    }
    let object = [bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]];
    Ok((name, u64::from_le_bytes(object)))
}

/// The name of an entry, which is the `number`th of its stream; none: the stream ends here.
///
/// # Errors
/// Damage.
pub fn named(place: &str, head: &[u8; ENTRY_BYTES], name: &[u8], number: u64) -> Result<Option<String>> {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head[4..]), name);
    let damaged = |found: &str| BackupError::damaged(place, format!("the entry of object {number}"), found);
    if crc.to_le_bytes() != head[..4] {
        return Err(damaged("one with another checksum"));
    }
    if number.to_le_bytes() != head[16..] {
        return Err(damaged("one with another number"));
    }
    let text = std::str::from_utf8(name).map_err(|_| damaged("a name that is no text"))?;
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

/// Where a stream goes.
pub trait Sink: Send + Sync {
    /// Writes behind what was written.
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>>;
    /// What was written is of no use.
    fn abandon(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    /// All is written: it is durable, and stands under its name, when this returns.
    fn finish(&self) -> BoxFuture<'_, Result<()>>;
}

/// A target that is written once, from the beginning to the end. Objects are put one after the other.
pub struct StreamWriter {
    place: String,
    sink: Box<dyn Sink>,
    written: Mutex<BTreeSet<String>>,
}

impl StreamWriter {
    /// A stream without objects.
    pub fn new(place: String, sink: Box<dyn Sink>) -> StreamWriter {
        StreamWriter { place, sink, written: Mutex::new("backup/stream", BTreeSet::new()) }
    }

    fn once(&self, what: &str) -> BackupError {
        BackupError::Refused(format!("{}: {what}", self.place))
    }

    async fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let number = {
            let mut written = self.written.lock();
            let number = written.len() as u64;
            if name.is_empty() || name.len() > NAME_BYTES_MAX || !written.insert(name.to_owned()) {
                return Err(self.once(&format!("{name} can't be written again")));
            }
            number
        };
        if number == 0 {
            self.sink.write(&head()).await?;
        }
        self.sink.write(&entry(name, bytes.len() as u64, number)).await?;
        self.sink.write(bytes).await
    }
}

impl Target for StreamWriter {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.append(name, bytes))
    }

    fn put_new<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.append(name, bytes))
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>> {
        Box::pin(async move { Err(BackupError::NotFound(format!("{}: {name}", self.place))) })
    }

    fn list<'a>(&'a self, _prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn remove<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(self.once("nothing can be removed from a backup in one file")) })
    }

    fn abandon(&self) -> BoxFuture<'_, ()> {
        self.sink.abandon()
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let number = self.written.lock().len() as u64;
            self.sink.write(&entry("", 0, number)).await?;
            self.sink.finish().await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_in_a_head_or_an_entry_is_found() {
        for bit in 0..HEAD_BYTES * 8 {
            let mut bytes = head();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check_head("s", &bytes).is_err(), "bit {bit} of the head");
        }
        let whole = entry("backups/x/start", 77, 3);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (entry, name) = bytes.split_at(ENTRY_BYTES);
            let entry: &[u8; ENTRY_BYTES] = entry.try_into().expect("an entry");
            let read = lengths("s", entry).and_then(|_| named("s", entry, name, 3));
            assert!(read.is_err(), "bit {bit} of an entry");
        }
        let newer = {
            let mut bytes = head();
            bytes[8] = 9;
            let crc = crc32c::crc32c(&bytes[..12]);
            bytes[12..].copy_from_slice(&crc.to_le_bytes());
            bytes
        };
        let refused = check_head("s", &newer).expect_err("a newer version").to_string();
        assert!(refused.contains("version 9"), "{refused}");
    }
}
