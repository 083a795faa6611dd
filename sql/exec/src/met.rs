//! The rows that a recursive query without ALL has met: says of each further row whether it is new.
//!
//! # Life of a row
//! it is new -> it stays in memory; the rows exceed their memory (`Cx::hash_bytes`) -> all go to a temporary file, and of each its hash and its place there stay -> a row
//! whose hash is known is compared with the row in the file
//!
//! # Invariants
//! - MET-1: a row is new exactly if no equal one was met before, wherever the rows are. So a row is judged when it is asked for (RCW-1), and none is put aside.
//! - MET-2: a row stands under its hash or, where other rows with that hash came first, under one of the next numbers; all numbers from the hash to there are taken.
//!   So a search ends at the first number that is free.
//!
//! # Errors
//! 53200 where not even hashes and places fit: some 24 bytes for each row.

use super::keys::{FoldState, hash_of};
use super::spill::Spilled;
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::Datum;
use std::collections::{BTreeMap, HashSet};

/// Rows that are kept in memory at least.
const ROWS_MIN: usize = 64;

/// See the head of this module.
pub(super) struct MetRows {
    /// All of them, while there is no file.
    rows: HashSet<Row, FoldState>,
    file: Option<InFile>,
    held: Held,
}

/// Rows in a file.
struct InFile {
    rows: Spilled,
    /// By hash (MET-2), where the row begins. A table that doubles would have to have room for both of its sizes.
    places: BTreeMap<u64, u64>,
    hash: fn(&[Datum]) -> u64,
}

impl MetRows {
    /// None.
    pub fn new() -> Self {
        Self { rows: HashSet::default(), file: None, held: Held::new(Kind::Recursion) }
    }

    /// Whether a row is new, which is met now, if the rows are in memory.
    pub fn is_new_now(&mut self, row: &Row) -> Result<Option<bool>> {
        if self.file.is_some() {
            return Ok(None);
        }
        if self.rows.contains(row) {
            return Ok(Some(false));
        }
        self.held.resume();
        self.rows.insert(row.clone());
        self.held.grow()?;
        Ok(Some(true))
    }

    /// Whether a row is new, which is met now (MET-1).
    pub async fn is_new(&mut self, row: &Row) -> Result<bool> {
        let Some(file) = &mut self.file else { return Ok(self.is_new_now(row)?.unwrap_or(true)) };
        self.held.resume();
        let is_new = file.is_new(row).await?;
        self.held.grow()?;
        Ok(is_new)
    }

    /// Whether the rows are to go to a file.
    pub fn is_full(&self, cx: Cx<'_>) -> bool {
        self.rows.len() >= ROWS_MIN && self.held.exceeds(cx.hash_bytes() as i64)
    }

    /// The rows go to a file.
    pub async fn write_out(&mut self, cx: Cx<'_>) -> Result<()> {
        let mut file = InFile::new(Spilled::create(cx.temp_files()).await?, hash_of);
        for row in std::mem::take(&mut self.rows) {
            cx.breathe().await?;
            file.is_new(&row).await?;
        }
        self.file = Some(file);
        self.held.measure();
        Ok(())
    }
}

impl InFile {
    fn new(rows: Spilled, hash: fn(&[Datum]) -> u64) -> Self {
        Self { rows, places: BTreeMap::new(), hash }
    }

    async fn is_new(&mut self, row: &[Datum]) -> Result<bool> {
        let mut number = (self.hash)(row);
        while let Some(from) = self.places.get(&number).copied() {
            let found = self.rows.reader(from..self.rows.end(), 0).await?.next().await?;
            if found.ok_or_else(|| SqlError::internal("a row that was met is missing"))? == *row {
                return Ok(false);
            }
            number = number.wrapping_add(1);
        }
        self.places.insert(number, self.rows.end());
        self.rows.append(row, &[]).await?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::sync::block_on;
    use clearway_base::vfs::MemVfs;
    use clearway_storage::temp_files::TempFiles;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn rows_with_one_hash_are_told_apart() {
        // MET-2
        block_on(async {
            let files = Arc::new(TempFiles::new(Arc::new(MemVfs::new()), Path::new("/")));
            let file = Spilled::create((&files, 1)).await.expect("a file");
            let mut met = InFile::new(file, |row| row[0].as_i64().map_or(0, |n| u64::MAX - n as u64 % 3));
            let row = |n: i32| [Datum::Int4(n), Datum::text(format!("text {n}"))];
            for round in 0..3 {
                for n in 0..50 {
                    assert_eq!(met.is_new(&row(n)).await.expect("read"), round == 0, "{n}");
                }
            }
            assert_eq!(met.rows.rows(), 50);
        });
    }
}
