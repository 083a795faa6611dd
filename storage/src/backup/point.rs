//! Restore points: names in the log that a restore can go to.
//!
//! A restore point is a structure record without page operations; its body is `RSTPOINT`, the wall clock in microseconds since
//! 1970 i64, then the name. Every version of the format passes over it.

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::record::Record;
use crate::seams::Purpose;
use crate::store::Store;
use crate::wal::Wal;
use crate::wal::format::Bytes;
use clearway_base::waits::{Object, WaitEvent, in_wait, wall_us};

const MARK: &[u8; 8] = b"RSTPOINT";

/// A name in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// The wall clock, microseconds since 1970.
    pub wall_clock_us: i64,
    /// The name.
    pub name: String,
}

impl RestorePoint {
    fn encode(&self) -> Vec<u8> {
        [&MARK[..], &self.wall_clock_us.to_le_bytes(), self.name.as_bytes()].concat()
    }

    pub(super) fn decode(body: &[u8]) -> Option<RestorePoint> {
        let mut at = Bytes::new(body);
        at.take(MARK.len()).filter(|mark| mark == MARK)?;
        let wall_clock_us = at.u64()? as i64;
        Some(RestorePoint { wall_clock_us, name: std::str::from_utf8(at.rest()).ok()?.to_owned() })
    }
}

impl Store {
    /// Writes a restore point and waits until it is durable; its end is where a restore to it stops.
    ///
    /// # Errors
    /// No space in the log; the database has stopped.
    pub async fn create_restore_point(&self, name: &str) -> Result<Lsn, StorageError> {
        let body = RestorePoint { wall_clock_us: wall_us(), name: name.to_owned() }.encode();
        let record = Record { body: &body, ..Record::structure(&[]) };
        let end = {
            let mut credit = self.wal().credit(Purpose::System, Wal::record_bytes(&record)).await?;
            self.wal().append(&mut credit, &record).end
        };
        in_wait(WaitEvent::WalFlush, Object::NONE, self.wal().wait_durable(end)).await?;
        Ok(end)
    }
}
