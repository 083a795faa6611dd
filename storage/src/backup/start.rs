//! What a copy begins with, and its form on the wire and in a backup.

use crate::error::{Corruption, StorageError};
use crate::ids::Lsn;
use crate::recovery::control::Control;
use crate::wal::format::{BLOCK_BYTES, Bytes};

/// The beginning of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The lease by which pages and log are asked for.
    pub lease: u64,
    /// Pages of each data file, by number.
    pub files: Vec<u32>,
    /// The control block from which recovery of the copy will begin.
    pub control: Control,
    /// The file of the checkpoint that the control block names; empty if there is none.
    pub checkpoint: Vec<u8>,
}

impl Start {
    /// lease u64, files u32, pages u32 each, control block, length u32 and bytes of the checkpoint's file.
    pub fn encode(&self) -> Vec<u8> {
        let longest = self.files.len().max(self.checkpoint.len());
        assert!(u32::try_from(longest).is_ok(), "a part of {longest} bytes or files, whose length has four bytes");
        let mut out = Vec::with_capacity(BLOCK_BYTES + self.checkpoint.len() + 64);
        out.extend_from_slice(&self.lease.to_le_bytes());
        out.extend_from_slice(&(self.files.len() as u32).to_le_bytes());
        self.files.iter().for_each(|pages| out.extend_from_slice(&pages.to_le_bytes()));
        out.extend_from_slice(&self.control.encode());
        out.extend_from_slice(&(self.checkpoint.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.checkpoint);
        out
    }

    /// Takes it apart.
    ///
    /// # Errors
    /// The bytes are no beginning, or one of a newer format.
    pub fn decode(bytes: &[u8]) -> Result<Start, StorageError> {
        let mut at = Bytes::new(bytes);
        let parts = (|| {
            let lease = at.u64()?;
            let count = at.u32()?;
            let files = (0..count).map(|_| at.u32()).collect::<Option<Vec<u32>>>()?;
            let control = at.take(BLOCK_BYTES)?;
            let length = at.u32()? as usize;
            let checkpoint = at.take(length)?;
            at.rest().is_empty().then(|| (lease, files, control, checkpoint.to_vec()))
        })();
        let (lease, files, control, checkpoint) =
            parts.ok_or_else(|| wrong("the parts of a copy's beginning", "bytes that do not fit"))?;
        let control = Control::decode(control).map_err(|(expected, found, _)| wrong(expected, found))?;
        if crc32c::crc32c(&checkpoint) != control.checkpoint_crc && control.checkpoint > 0 {
            return Err(wrong("the checkpoint that the control block names", "another checksum"));
        }
        Ok(Start { lease, files, control, checkpoint })
    }

    /// Recovery of the copy reads the log from here.
    pub fn scan(&self) -> Lsn {
        self.control.scan
    }

    /// Every copied page has all changes below.
    pub fn redo(&self) -> Lsn {
        self.control.redo
    }
}

fn wrong(expected: impl Into<String>, found: impl Into<String>) -> StorageError {
    let (expected, found) = (expected.into(), found.into());
    Corruption { file: "backup".into(), offset: None, page: None, lsn: None, expected, found }.into()
}
