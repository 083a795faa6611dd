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

/// The files.
pub(super) struct Parts {
    files: Vec<Spilled>,
    level: u32,
}

impl Parts {
    /// Empty ones, for rows that were divided `level` times before.
    pub async fn create(level: u32, cx: Cx<'_>) -> Result<Self> {
        let mut files = Vec::with_capacity(PARTS);
        for _ in 0..PARTS {
            files.push(Spilled::create_among(cx.temp_files(), PARTS, cx.hash_bytes()).await?);
        }
        Ok(Self { files, level })
    }

    /// Appends a row, which may stand in two parts, to the file of its key.
    pub async fn append(&mut self, key: &[Datum], first: &[Datum], second: &[Datum]) -> Result<()> {
        // Each level takes four bits of their own.
        let part = (hash_of(key) >> (28 - 4 * self.level.min(7))) as usize % PARTS;
        self.files[part].append(first, second).await
    }

    /// The files, and how often their rows have been divided.
    pub fn into_files(self) -> impl Iterator<Item = (Spilled, u32)> {
        self.files.into_iter().map(move |file| (file, self.level + 1))
    }
}
