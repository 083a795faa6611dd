//! The limit for commits: how many blocks a second a device makes durable, one after the other.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::LabError;

/// Bytes of a write.
const BLOCK: usize = 4096;
/// Blocks of the file: written once beforehand, then over and over, as a log does that keeps its files.
const BLOCKS: u64 = 2048;

/// Syncs per second: a block written, then `fdatasync`, one after the other, for `length`, in a file under `dir`.
///
/// # Errors
/// The file can't be written.
pub fn syncs(dir: &Path, length: Duration) -> Result<f64, LabError> {
    let path = dir.join("syncs");
    let run = || {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        let block = [7u8; BLOCK];
        for _ in 0..BLOCKS {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        let start = Instant::now();
        let mut done = 0u64;
        while start.elapsed() < length {
            file.seek(SeekFrom::Start(done % BLOCKS * BLOCK as u64))?;
            file.write_all(&block)?;
            file.sync_data()?;
            done += 1;
        }
        let rate = done as f64 / start.elapsed().as_secs_f64();
        std::fs::remove_file(&path)?;
        Ok(rate)
    };
    run().map_err(LabError::file(&path))
}
