//! Divides rows that do not fit a hash's memory (`Cx::hash_bytes`) among temporary files by the hash of their keys: rows with the same key are in one file.

use super::Cx;
use super::keys::hash_of;
use super::spill::Spilled;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;

/// Rows are divided into so many files.
pub(super) const PARTS: usize = 16;
/// Rows are divided at most so often: what is left then has the same hash.
pub(super) const LEVELS_MAX: u32 = 8;

/// Among how many files the rest of a file's rows is divided, once the keys of the rows that were read of it have taken the memory: so that each
/// of them fits it, and no more. Most often a little is left: sixteen files of a few rows each would cost more than to read one again.
pub(super) fn parts_for(rows: u64, read: u64) -> usize {
    let left = rows.saturating_sub(read);
    usize::try_from((2 * left).div_ceil(read.max(1))).unwrap_or(PARTS).next_power_of_two().min(PARTS)
}

/// The files.
pub(super) struct Parts {
    files: Vec<Spilled>,
    level: u32,
}

impl Parts {
    /// Empty ones, for rows that were divided `level` times before.
    pub async fn create(level: u32, cx: Cx<'_>) -> Result<Self> {
        Self::create_few(PARTS, level, cx).await
    }

    /// The same, so many files.
    pub async fn create_few(count: usize, level: u32, cx: Cx<'_>) -> Result<Self> {
        let mut files = Vec::with_capacity(count);
        for _ in 0..count {
            files.push(Spilled::create_among(cx.temp_files(), PARTS, cx.hash_bytes()).await?);
        }
        Ok(Self { files, level })
    }

    /// Appends a row, which may stand in two parts, to the file of its key.
    pub async fn append(&mut self, key: &[Datum], first: &[Datum], second: &[Datum]) -> Result<()> {
        // Each level takes four bits of their own.
        let part = (hash_of(key) >> (28 - 4 * self.level.min(7))) as usize % self.files.len();
        self.files[part].append(first, second).await
    }

    /// The files, and how often their rows have been divided.
    pub fn into_files(self) -> impl Iterator<Item = (Spilled, u32)> {
        self.files.into_iter().map(move |file| (file, self.level + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_divided_so_that_each_part_fits() {
        for (rows, read, count) in
            [(100, 100, 1), (100, 90, 1), (100, 60, 2), (100, 30, 8), (100, 10, 16), (1_000_000, 64, 16), (10, 0, 16)]
        {
            assert_eq!(parts_for(rows, read), count, "{read} of {rows}");
        }
        assert!(parts_for(0, 0) == 1 && parts_for(u64::MAX / 4, 1) == PARTS);
    }
}
