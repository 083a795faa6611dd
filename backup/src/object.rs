//! How pages and log are packed: a header, then a zstd frame.
//!
//! ```text
//!   0 CLRWYLOG or CLRWYPGS   8 version u32   12 checksum u32   16 database u64   24 epoch u32
//!  28 checksum u32 of the packed bytes   32 from u64   40 to u64   48 wall clock, us since 1970, i64
//!  56 length of the packed bytes u64   64 length of what is packed u64   72 the packed bytes
//! ```
//! Checksums are CRC-32C. That at 12 is of bytes 8..12 and 16..72, so that a changed version is found, too; in versions 1 and 2 of bytes 16..72. Log: the stream's bytes from `from` to `to`. Pages: whole pages of the numbers from `from` to `to`, rising.

use crate::error::{BackupError, Result};
use sha2::{Digest as _, Sha256};

/// The version of packed objects, manifests and epochs that this program writes; it refuses newer ones. Versions differ only by
/// the log in them, which an older program can't redo or undo.
pub const FORMAT_VERSION: u32 = 4;
const HEADER_BYTES: usize = 72;
/// The first version whose headers' checksums have the version in them.
const VERSION_IS_CHECKED: u32 = 3;
/// The most that one object unpacks to.
const UNPACKED_MAX: u64 = 1 << 30;
/// Packs quickly: what is saved by higher levels is small beside what they cost.
const LEVEL: i32 = 1;

/// What an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Log.
    Log,
    /// Pages.
    Pages,
}

impl Kind {
    fn mark(self) -> &'static [u8; 8] {
        match self {
            Kind::Log => b"CLRWYLOG",
            Kind::Pages => b"CLRWYPGS",
        }
    }
}

/// What an object's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it holds.
    pub kind: Kind,
    /// The number of the database.
    pub database: u64,
    /// The epoch in which it was made.
    pub epoch: u32,
    /// See the drawing above.
    pub from: u64,
    /// See the drawing above.
    pub to: u64,
    /// When it was made.
    pub wall_us: i64,
}

/// Packs bytes.
///
/// # Errors
/// The packer's.
pub fn pack(header: Header, bytes: &[u8]) -> Result<Vec<u8>> {
    let packed = zstd::bulk::compress(bytes, LEVEL).map_err(|error| BackupError::refused(error.to_string()))?;
    let mut out = Vec::with_capacity(HEADER_BYTES + packed.len());
    out.extend_from_slice(header.kind.mark());
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.database.to_le_bytes());
    out.extend_from_slice(&header.epoch.to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(&packed).to_le_bytes());
    out.extend_from_slice(&header.from.to_le_bytes());
    out.extend_from_slice(&header.to.to_le_bytes());
    out.extend_from_slice(&header.wall_us.to_le_bytes());
    out.extend_from_slice(&(packed.len() as u64).to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    let crc = header_crc(FORMAT_VERSION, &out[16..HEADER_BYTES]);
    out[12..16].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&packed);
    Ok(out)
}

/// Unpacks an object; `name` stands in errors.
///
/// # Errors
/// Damage, a newer version.
pub fn unpack(name: &str, kind: Kind, object: &[u8]) -> Result<(Header, Vec<u8>)> {
    let short = || BackupError::damaged(name, format!("{HEADER_BYTES} bytes or more"), object.len().to_string());
    let (head, packed) = object.split_at_checked(HEADER_BYTES).ok_or_else(short)?;
    let word =
        |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes).ok_or_else(short);
    let long =
        |at: usize| head.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or_else(short);
    if &head[..8] != kind.mark() {
        let expected = String::from_utf8_lossy(kind.mark()).into_owned();
        return Err(BackupError::damaged(name, expected, String::from_utf8_lossy(&head[..8]).into_owned()));
    }
    let version = word(8)?;
    if version == 0 || version > FORMAT_VERSION {
        let (expected, found) = (format!("format version {FORMAT_VERSION} or older"), format!("version {version}"));
        return Err(BackupError::damaged(name, expected, found));
    }
    let same = |what: &str, stored: u32, crc: u32| match crc == stored {
        true => Ok(()),
        false => {
            Err(BackupError::damaged(name, format!("{what} with checksum {stored:#010x}"), format!("{crc:#010x}")))
        }
    };
    same("a header", word(12)?, header_crc(version, &head[16..]))?;
    if long(56)? != packed.len() as u64 {
        return Err(BackupError::damaged(name, format!("{} packed bytes", long(56)?), packed.len().to_string()));
    }
    same("packed bytes", word(28)?, crc32c::crc32c(packed))?;
    let unpacked = long(64)?;
    if unpacked > UNPACKED_MAX {
        return Err(BackupError::damaged(name, format!("at most {UNPACKED_MAX} bytes"), unpacked.to_string()));
    }
    let bytes = zstd::bulk::decompress(packed, unpacked as usize)
        .map_err(|error| BackupError::damaged(name, "a zstd frame", error.to_string()))?;
    if bytes.len() as u64 != unpacked {
        return Err(BackupError::damaged(name, format!("{unpacked} bytes"), bytes.len().to_string()));
    }
    let header = Header {
        kind,
        database: long(16)?,
        epoch: word(24)?,
        from: long(32)?,
        to: long(40)?,
        wall_us: long(48)? as i64,
    };
    Ok((header, bytes))
}

/// The checksum of a header of that version; `rest` is what stands behind the checksum.
fn header_crc(version: u32, rest: &[u8]) -> u32 {
    match version >= VERSION_IS_CHECKED {
        true => crc32c::crc32c_append(crc32c::crc32c(&version.to_le_bytes()), rest),
        false => crc32c::crc32c(rest),
    }
}

/// SHA-256 in hex.
pub fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
