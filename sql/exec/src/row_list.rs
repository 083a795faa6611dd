//! Rows that a statement keeps until it has changed all of its rows: what RETURNING gives, and what foreign keys have still to check.
//!
//! # Life of a list
//! rows gather in memory -> they are as many as the account or `work_mem` allows: all of them go to a temporary file -> further rows gather, and follow them in small
//! groups -> readers take what is in the file, then what is in memory
//!
//! # Invariants
//! - RWL-1: the rows in memory come behind those in the file.
//! - RWL-2: before its rows in memory may become twice as many, a list asks whether the account has room for several times as much, since other lists of the statement
//!   grow beside it. Where there is no room the rows go to the file, so a statement of any number of rows does not fail for them.

use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::memory::{self, Held, Kind};
use clearway_syntax::error::{Result, SqlError};

/// Memory that a list may have before it asks for the first time, in bytes.
const BYTES_FIRST: i64 = 64 << 10;
/// How many times the memory that it may then have has to be free (RWL-2).
const ROOM: i64 = 4;
/// So many rows follow those in the file together.
const GROUP: usize = 64;
/// What a reader reads of the file at a time, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// How much of its rows may stay in memory (RWL-2).
pub(super) struct Allowance {
    held: Held,
    granted: i64,
}

impl Allowance {
    /// Of memory of a kind.
    pub(super) fn new(kind: Kind) -> Self {
        Self { held: Held::new(kind), granted: BYTES_FIRST }
    }

    /// Something was added.
    pub(super) fn grow(&mut self) -> Result<()> {
        self.held.grow().map_err(SqlError::from)
    }

    /// Something was taken away.
    pub(super) fn shrink(&mut self) {
        self.held.measure();
    }

    /// Whether what there is has used it up.
    pub(super) fn is_used_up(&mut self, cx: Cx<'_>) -> bool {
        let bytes = self.held.bytes();
        if bytes <= self.granted {
            return false;
        }
        let next = 2 * bytes;
        if bytes > cx.work_bytes() as i64 || !memory::has_room((ROOM * next) as usize) {
            return true;
        }
        self.granted = next;
        false
    }
}

/// Rows in the order in which they were added.
#[derive(Default)]
pub struct RowList {
    file: Option<Spilled>,
    rows: Vec<Row>,
    allowance: Option<Allowance>,
    /// What its memory is for; none: results.
    kind: Option<Kind>,
}

impl RowList {
    /// An empty one, for rows of this kind.
    pub(super) fn of(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// Whether it has no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.file.is_none()
    }

    /// Adds a row; the caller then asks [`RowList::is_full`].
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        let allowance = self.allowance.get_or_insert_with(|| Allowance::new(self.kind.unwrap_or(Kind::Results)));
        self.rows.push(row);
        allowance.grow()
    }

    /// Whether rows are to go to the file.
    pub(super) fn is_full(&mut self, cx: Cx<'_>) -> bool {
        match &self.file {
            Some(_) => self.rows.len() >= GROUP,
            None => self.allowance.as_mut().is_some_and(|allowance| allowance.is_used_up(cx)),
        }
    }

    /// The rows go to the file.
    pub(super) async fn write_out(&mut self, cx: Cx<'_>) -> Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => Spilled::create(cx.temp_files()).await?,
        };
        for row in &self.rows {
            file.append(row, &[]).await?;
        }
        self.rows = Vec::with_capacity(GROUP);
        self.file = Some(file);
        self.allowance.iter_mut().for_each(Allowance::shrink);
        Ok(())
    }

    /// There are no more: they can be read by several readers.
    pub async fn end(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.end_writing().await,
            None => Ok(()),
        }
    }

    /// A reader of all rows, after `end`.
    pub fn reader(&self) -> RowReader {
        RowReader { file: self.file.as_ref().map(|file| Box::new(file.reader_of_all(BLOCK_BYTES))), at: 0 }
    }
}

impl From<Vec<Row>> for RowList {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }
}

/// Reads a list from its beginning.
pub struct RowReader {
    /// None: what is in the file was read.
    file: Option<Box<SpillReader>>,
    /// The next row in memory.
    at: usize,
}

impl RowReader {
    /// Whether there may be more rows.
    pub(super) fn has_more(&self, list: &RowList) -> bool {
        self.file.is_some() || self.at < list.rows.len()
    }

    /// The next row in memory, after those of the file.
    #[inline]
    pub(super) fn buffered<'l>(&mut self, list: &'l RowList) -> Option<&'l Row> {
        let row = list.rows.get(self.at)?;
        self.at += 1;
        Some(row)
    }

    /// The next row of the file; none: the others are in memory (RWL-1).
    #[inline]
    pub(super) async fn next_of_file(&mut self) -> Result<Option<Row>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let row = file.next().await?;
        if row.is_none() {
            self.file = None;
        }
        Ok(row)
    }
}

/// Takes the rows of a list.
#[derive(Default)]
pub struct TakenRows {
    /// None: what is in the file was taken.
    file: Option<Box<SpillReader>>,
    rows: std::vec::IntoIter<Row>,
}

impl TakenRows {
    /// Of a list that has ended.
    pub fn new(list: RowList) -> Self {
        let file = list.file.as_ref().map(|file| Box::new(file.reader_of_all(BLOCK_BYTES)));
        Self { file, rows: list.rows.into_iter() }
    }

    /// The next row.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        if let Some(file) = &mut self.file {
            if let Some(row) = file.next().await? {
                return Ok(Some(row));
            }
            self.file = None;
        }
        Ok(self.rows.next())
    }

    /// Those in memory.
    pub fn in_memory(&self) -> &[Row] {
        self.rows.as_slice()
    }
}
