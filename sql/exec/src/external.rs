//! Sorted runs in a temporary file, and their merge.
//!
//! The sort is stable: rows with the same key come out in the order in which they went in, because an earlier run goes first.

use super::sort::order_of;
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::breath;
use clearway_storage::temp_files::WRITE_BYTES;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;
use std::ops::Range;

/// The most runs that are merged at a time.
const RUNS_MAX: usize = 64;

/// Sorted runs. A row is its sort values and then its own.
pub struct Runs {
    file: Spilled,
    parts: Vec<Range<u64>>,
    by: Vec<(bool, bool)>,
    work_bytes: usize,
}

impl Runs {
    /// No runs yet.
    pub async fn create(by: &[(bool, bool)], cx: Cx<'_>) -> Result<Self> {
        let work_bytes = cx.work_bytes();
        let file = Spilled::create_among(cx.temp_files(), 4, work_bytes.min(4 * WRITE_BYTES)).await?;
        Ok(Self { file, parts: Vec::new(), by: by.to_vec(), work_bytes })
    }

    /// Appends a row to the run that is being written: it does not stand before those of the run.
    pub async fn append(&mut self, key: &[Datum], row: &[Datum]) -> Result<()> {
        self.file.append(key, row).await
    }

    /// The run that is being written has no more rows.
    pub fn end_run(&mut self) {
        let from = self.parts.last().map_or(0, |part| part.end);
        if self.file.end() > from {
            self.parts.push(from..self.file.end());
        }
    }

    /// The bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.file.end()
    }

    /// All rows in their order.
    pub async fn merged(mut self) -> Result<Merge> {
        while self.parts.len() > RUNS_MAX {
            let mut longer = Vec::new();
            for parts in std::mem::take(&mut self.parts).chunks(RUNS_MAX) {
                let from = self.file.end();
                let mut merge = self.merge(parts).await?;
                while let Some((key, row)) = merge.next().await? {
                    self.file.append(&key, &row).await?;
                }
                longer.push(from..self.file.end());
            }
            self.parts = longer;
        }
        let parts = std::mem::take(&mut self.parts);
        self.merge(&parts).await
    }

    async fn merge(&mut self, parts: &[Range<u64>]) -> Result<Merge> {
        let mut merge = Merge { heads: Vec::new(), by: self.by.clone() };
        for (number, part) in parts.iter().enumerate() {
            let reader = self.file.reader(part.clone(), self.work_bytes / parts.len()).await?;
            let mut head = Head { key: Row::new(), row: Row::new(), number, reader };
            if head.advance(self.by.len()).await? {
                merge.heads.push(head);
            }
        }
        for at in (0..merge.heads.len() / 2).rev() {
            merge.sink(at);
        }
        Ok(merge)
    }
}

/// The next row of a run.
struct Head {
    key: Row,
    row: Row,
    number: usize,
    reader: SpillReader,
}

impl Head {
    async fn advance(&mut self, keys: usize) -> Result<bool> {
        let Some(mut row) = self.reader.next().await? else { return Ok(false) };
        self.row = row.split_off(keys.min(row.len()));
        self.key = row;
        Ok(true)
    }
}

/// Runs that are being merged: a heap whose first head is the next row.
pub struct Merge {
    heads: Vec<Head>,
    by: Vec<(bool, bool)>,
}

impl Merge {
    /// The next row: its sort values and its own.
    pub async fn next(&mut self) -> Result<Option<(Row, Row)>> {
        breath::breathe(breath::ROW).await?;
        let Some(head) = self.heads.first_mut() else { return Ok(None) };
        let given = (std::mem::take(&mut head.key), std::mem::take(&mut head.row));
        if !head.advance(self.by.len()).await? {
            self.heads.swap_remove(0);
        }
        self.sink(0);
        Ok(Some(given))
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.heads[a], &self.heads[b]);
        order_of(&a.key, &b.key, &self.by).then(a.number.cmp(&b.number)).is_lt()
    }

    /// Moves a head down to its place.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heads.len() && self.is_before(child, first) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heads.swap(at, first);
            at = first;
        }
    }
}
