//! Rows of an expression of WITH: made when a reader asks for the first time, and kept for the other readers, in a temporary file where they exceed their memory.
//!
//! # Invariants
//! - KPT-1: a reader gets the rows in the order in which they were made: those of the file come before those in memory. Rows that it has not read when
//!   they go to the file are read there.
//! - KPT-2: one task reads a statement's rows, so nothing looks at them while the next row is made or rows go to the file.

use super::query::QueryRows;
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_planner::plan::Derived;
use clearway_syntax::error::{Result, SqlError};

/// Rows that are kept in memory at least.
const ROWS_MIN: usize = 64;
/// What a reader reads of the file at a time, in bytes.
const BLOCK_BYTES: usize = 32 << 10;

/// Rows that are made once, and what gives the next of them.
pub(super) struct Kept {
    file: Option<Spilled>,
    /// Of each time that rows went to the file: the number of the first one, and where it stands.
    written: Vec<(usize, u64)>,
    /// How many rows are in the file.
    before: usize,
    rows: Vec<Row>,
    held: Held,
    /// None while a node reads from it, and when there are no more.
    source: Option<Box<QueryRows>>,
}

/// What a reader is to read next.
#[derive(Default)]
pub(super) struct Place {
    at: usize,
    /// A reader of the file, and how many rows it has left.
    reader: Option<(Box<SpillReader>, usize)>,
}

/// Where a row is.
enum Found {
    Row(Row),
    /// In the file: a reader, rows to pass over, rows from there on.
    File(SpillReader, usize, usize),
    Nowhere,
    /// It has to be made.
    Source(Box<QueryRows>),
}

impl Kept {
    fn new(d: &Derived) -> Self {
        let source = Some(Box::new(QueryRows::new(d.query.clone())));
        let held = Held::new(Kind::Subqueries);
        Self { file: None, written: Vec::new(), before: 0, rows: Vec::new(), held, source }
    }

    fn find(&mut self, at: usize) -> Found {
        if let Some(file) = self.file.as_ref().filter(|_| at < self.before) {
            let group = self.written.partition_point(|(first, _)| *first <= at).saturating_sub(1);
            let (first, from) = self.written[group];
            return Found::File(file.reader_from(from, BLOCK_BYTES), at - first, self.before - at);
        }
        match (self.rows.get(at - self.before), self.source.take()) {
            (Some(row), source) => {
                self.source = source;
                Found::Row(row.clone())
            }
            (None, Some(source)) => Found::Source(source),
            (None, None) => Found::Nowhere,
        }
    }

    /// Keeps a row; whether rows are to go to the file.
    fn keep(&mut self, row: &Row, most: usize) -> Result<bool> {
        self.held.resume();
        self.rows.push(row.clone());
        self.held.grow()?;
        Ok(self.rows.len() >= ROWS_MIN && (self.file.is_some() || self.held.exceeds(most as i64)))
    }

    async fn write_out(&mut self, cx: Cx<'_>) -> Result<()> {
        self.held.resume();
        let mut file = match self.file.take() {
            Some(file) => file,
            None => Spilled::create(cx.temp_files()).await?,
        };
        self.written.push((self.before, file.end()));
        for row in &self.rows {
            file.append(row, &[]).await?;
        }
        file.end_writing().await?;
        self.before += self.rows.len();
        self.rows = Vec::new();
        self.held.measure();
        self.file = Some(file);
        Ok(())
    }
}

impl Cx<'_> {
    /// The next row of an expression of WITH, whose rows are made once (KPT-1).
    pub(super) async fn kept_row(self, d: &Derived, id: usize, place: &mut Place) -> Result<Option<Row>> {
        let Some(all) = &self.run.state.kept else { return Ok(None) };
        if let Some((reader, left)) = place.reader.as_mut().filter(|(_, left)| *left > 0) {
            (*left, place.at) = (*left - 1, place.at + 1);
            return reader.next().await.and_then(whole);
        }
        place.reader = None;
        let found = all.lock().entry(id).or_insert_with(|| Kept::new(d)).find(place.at);
        let mut source = match found {
            Found::Nowhere => return Ok(None),
            Found::Row(row) => {
                place.at += 1;
                return Ok(Some(row));
            }
            Found::File(mut reader, passed, left) => {
                for _ in 0..passed {
                    reader.next().await.and_then(whole)?;
                }
                let row = reader.next().await.and_then(whole)?;
                place.at += 1;
                place.reader = Some((Box::new(reader), left - 1));
                return Ok(row);
            }
            Found::Source(source) => source,
        };
        let Some(row) = source.next(Cx { run: self.run, outer: &[] }).await? else { return Ok(None) };
        place.at += 1;
        let most = self.work_bytes();
        let full = match all.lock().get_mut(&id) {
            Some(kept) => {
                kept.source = Some(source);
                kept.keep(&row, most)?
            }
            None => false,
        };
        // KPT-2
        let mut full = if full { all.lock().remove(&id) } else { None };
        if let Some(kept) = &mut full {
            kept.write_out(self).await?;
        }
        if let Some(kept) = full {
            all.lock().insert(id, kept);
        }
        Ok(Some(row))
    }
}

/// A row of the file, which has as many as were written.
fn whole(row: Option<Row>) -> Result<Option<Row>> {
    row.map(Some).ok_or_else(|| SqlError::internal("a row that was kept is missing"))
}
