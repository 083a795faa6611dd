//! What an archiver asks of an open database.

use crate::archive::{Archive, oldest};
use crate::ids::Lsn;
use crate::store::Store;

impl Store {
    /// The archive.
    pub fn archive(&self) -> &Archive {
        self.archive_state()
    }

    /// The oldest log that is there.
    pub fn oldest_log(&self) -> Lsn {
        oldest(self.wal())
    }

    /// Where the current epoch began.
    pub fn epoch_start(&self) -> Lsn {
        self.checkpoints().control().epoch_start
    }

    /// The number of the database.
    pub fn database(&self) -> u64 {
        self.checkpoints().control().database
    }
}
