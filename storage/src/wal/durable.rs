//! Reading the durable part of a log that is being written.

use super::Wal;
use super::format::BLOCK_BYTES;
use crate::error::StorageError;
use crate::ids::Lsn;
use clearway_base::vfs::IoBuf;

impl Wal {
    /// Reads the stream's durable bytes from `from` to `to`. The caller holds the log from `from` on ([`super::Retention`]).
    ///
    /// # Errors
    /// The bytes are not durable yet, or their segment was recycled; a failed read.
    pub async fn read_stream(&self, from: Lsn, to: Lsn) -> Result<Vec<u8>, StorageError> {
        if to > self.durable_lsn() || from > to {
            let what = format!("the log is durable up to LSN {}: {from} to {to} can't be read", self.durable_lsn());
            return Err(StorageError::Invalid(what.into()));
        }
        let layout = self.segments().layout();
        let mut out = Vec::with_capacity((to.0 - from.0) as usize);
        let mut at = from;
        while at < to {
            let number = layout.number(at);
            let Some(file) = self.segments().file(number) else {
                let what = format!("the log at LSN {at} was released: no holder needed it");
                return Err(StorageError::Invalid(what.into()));
            };
            let stop = layout.first_lsn(number + 1).min(to);
            let skip = at.0 % BLOCK_BYTES as u64;
            let len = ((stop.0 - at.0 + skip) as usize).next_multiple_of(BLOCK_BYTES);
            let block = layout.offset(at) - skip;
            let bytes = file.read_exact_at(block, IoBuf::zeroed(len), len).await?;
            let skip = skip as usize;
            out.extend_from_slice(&bytes[skip..skip + (stop.0 - at.0) as usize]);
            at = stop;
        }
        assert_eq!(out.len() as u64, to.0 - from.0, "WAL-13: the stream has no gaps");
        Ok(out)
    }
}
