//! Rows that are asked for by their numbers: those of a partition of a window, what is computed of them.
//!
//! # Life of a list
//! rows are added, in memory -> beyond what the holder may have, all of them go to a temporary file, in blocks -> rows are asked for: those of a few blocks are in memory
//!
//! # Invariants
//! - NBR-1: the rows in memory that were added come behind those in the file. A row is the one that was added with its number, wherever it is.
//! - NBR-2: of a list with a file, no more is in memory than the rows of [`LOADED`] blocks, one group that is to follow, and the places of the blocks. Which blocks those are depends on what is
//!   asked for: readers that go forward through the rows, each at its own place, read each block once.

use super::spill::Spilled;
use super::{Cx, Row};
use clearway_base::memory::Held;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::Datum;

/// Rows of a block at most, and of a group that follows others in the file.
const GROUP: usize = 64;
/// Bytes from which on a block ends.
const BLOCK_BYTES: u64 = 16 << 10;
/// Blocks that were read and are in memory: a frame has a row that enters, one that leaves, and their own.
const LOADED: usize = 8;
/// As many lists write at a time, about.
const LISTS: usize = 4;
/// The least and the most that their buffers have together, in bytes.
const BUFFER_BYTES: std::ops::RangeInclusive<usize> = (32 << 10)..=(1 << 20);

/// A block that was read: the number of its first row, and its rows.
struct Loaded {
    first: usize,
    rows: Vec<Row>,
}

struct Filed {
    file: Spilled,
    /// The number of the first row of each block, and where it stands.
    blocks: Vec<(usize, u64)>,
    rows: usize,
    loaded: Vec<Loaded>,
}

/// See the head of this module.
#[derive(Default)]
pub(super) struct NumberedRows {
    /// All rows; of a list with a file those behind it.
    rows: Vec<Row>,
    file: Option<Box<Filed>>,
}

fn missing() -> SqlError {
    SqlError::internal("a row was asked for that its list lacks")
}

impl NumberedRows {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.rows) + self.rows.len()
    }

    /// Adds a row. `held` has it, and what else its holder has, of which more than `most` bytes go to files.
    pub(super) async fn push(&mut self, row: Row, cx: Cx<'_>, (held, most): (&mut Held, i64)) -> Result<()> {
        self.rows.push(row);
        held.grow()?;
        if self.file.is_some() && self.rows.len() >= GROUP || held.exceeds(most) {
            Box::pin(self.write_out(cx)).await?;
            held.measure();
        }
        Ok(())
    }

    /// The rows in memory go to the file.
    async fn write_out(&mut self, cx: Cx<'_>) -> Result<()> {
        let mut filed = match self.file.take() {
            Some(filed) => filed,
            None => {
                let bytes = cx.work_bytes().clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end());
                let file = Spilled::create_among(cx.temp_files(), LISTS, bytes).await?;
                Box::new(Filed { file, blocks: Vec::new(), rows: 0, loaded: Vec::new() })
            }
        };
        let mut block = filed.blocks.last().copied();
        for row in &self.rows {
            let at = filed.file.end();
            if block.is_none_or(|(first, from)| filed.rows - first >= GROUP || at - from >= BLOCK_BYTES) {
                filed.blocks.push((filed.rows, at));
                block = Some((filed.rows, at));
            }
            filed.file.append(row, &[]).await?;
            filed.rows += 1;
            cx.breathe().await?;
        }
        self.rows = Vec::with_capacity(GROUP);
        self.file = Some(filed);
        Ok(())
    }

    /// No more rows come.
    pub(super) async fn end(&mut self) -> Result<()> {
        match &mut self.file {
            Some(filed) => Box::pin(filed.file.end_writing()).await,
            None => Ok(()),
        }
    }

    #[inline]
    fn at_hand(&self, n: usize) -> Option<&Row> {
        let Some(filed) = &self.file else { return self.rows.get(n) };
        // NBR-1
        match n.checked_sub(filed.rows) {
            Some(behind) => self.rows.get(behind),
            None => filed.loaded.iter().find_map(|block| block.rows.get(n.checked_sub(block.first)?)),
        }
    }

    /// A row, after `end`.
    #[inline]
    pub(super) async fn get(&mut self, n: usize) -> Result<&Row> {
        if self.at_hand(n).is_none() {
            Box::pin(self.load(n)).await?;
        }
        self.at_hand(n).ok_or_else(missing)
    }

    /// A row that is not asked for again.
    pub(super) async fn take(&mut self, n: usize) -> Result<Row> {
        match &self.file {
            None => self.rows.get_mut(n).map(std::mem::take).ok_or_else(missing),
            Some(_) => self.get(n).await.cloned(),
        }
    }

    /// NBR-2: reads the block of a row.
    async fn load(&mut self, n: usize) -> Result<()> {
        let Some(filed) = self.file.as_mut().filter(|filed| n < filed.rows) else { return Err(missing()) };
        let block = filed.blocks.partition_point(|(first, _)| *first <= n).checked_sub(1).ok_or_else(missing)?;
        let ((first, at), end) = (filed.blocks[block], filed.blocks.get(block + 1).map_or(filed.rows, |next| next.0));
        let mut reader = filed.file.reader_from(at, BLOCK_BYTES as usize);
        let mut rows = Vec::with_capacity(end - first);
        for _ in first..end {
            rows.push(reader.next().await?.ok_or_else(missing)?);
        }
        if filed.loaded.len() >= LOADED {
            filed.loaded.remove(0);
        }
        filed.loaded.push(Loaded { first, rows });
        Ok(())
    }
}

/// Single values by their numbers, many of them in a row of a list.
#[derive(Default)]
pub(super) struct NumberedValues {
    full: NumberedRows,
    open: Row,
}

impl NumberedValues {
    /// Adds a value, as [`NumberedRows::push`] does a row.
    pub(super) async fn push(&mut self, value: Datum, cx: Cx<'_>, held: (&mut Held, i64)) -> Result<()> {
        self.open.push(value);
        if self.open.len() < GROUP {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.open, Row::with_capacity(GROUP));
        self.full.push(full, cx, held).await
    }

    /// No more values come.
    pub(super) async fn end(&mut self) -> Result<()> {
        self.full.end().await
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&Datum> {
        self.open.last().or_else(|| self.full.at_hand(self.full.len().checked_sub(1)?)?.last())
    }

    /// A value, after `end`.
    pub(super) async fn get(&mut self, n: usize) -> Result<Datum> {
        let row = match n / GROUP {
            at if at == self.full.len() => &self.open,
            at => self.full.get(at).await?,
        };
        row.get(n % GROUP).cloned().ok_or_else(missing)
    }
}
