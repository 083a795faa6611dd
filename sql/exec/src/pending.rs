//! What foreign keys, and unique constraints that are checked after the statement, have still to do for the rows that a statement has changed: a queue, first in, first
//! out (EXE-5).
//!
//! # Life of an entry
//! its row is changed -> queued in memory -> the queue is as large as its allowance permits (RWL-2): it goes to a temporary file, and entries that follow go there in
//! small groups -> read back in groups, in its turn -> checked, or carried out, which may queue more
//!
//! # Invariants
//! - PEN-1: the entries in `front` come before those in the file, and those in `back` behind them.

use super::foreign_values::{differ, has_null, is_mixed};
use super::row_list::Allowance;
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::memory::Kind;
use clearway_engine::catalog::Catalog;
use clearway_planner::plan::Target;
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::LockMode;
use clearway_values::types::Datum;
use std::collections::VecDeque;
use std::sync::Arc;

/// So many entries are written, or read back, together.
const GROUP: usize = 64;
/// Bytes that are read of the file at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// Kinds of entries in the file, and the values before an entry's rows.
const REFERS: u8 = 0;
const TAKEN: u8 = 1;
const CHANGED: u8 = 2;
const UNIQUE: u8 = 3;
const NUMBERS: usize = 3;

/// A key that a row touched.
pub(super) enum Touched {
    /// A new row refers: place of the foreign key, the row.
    Refers(usize, Row),
    /// A key was taken away: place of the referrer, the old row, the new one if it was an update.
    Taken(usize, Row, Option<Row>),
    /// A row has come under a unique constraint that is checked late: its place, the row.
    Unique(usize, Row),
}

/// The place of its table in [`Pending::targets`], and what was touched.
type Entry = (usize, Touched);

/// Entries in a temporary file.
struct Queued {
    file: Spilled,
    /// What reads those before `read`; none: they have been read.
    reader: Option<SpillReader>,
    read: u64,
}

fn damaged() -> SqlError {
    SqlError::internal("what was read back from a temporary file is no entry of a queue")
}

impl Touched {
    /// As a row of a temporary file.
    fn packed(&self, at: usize) -> Row {
        let (kind, i, row, new) = match self {
            Touched::Refers(i, row) => (REFERS, i, row, None),
            Touched::Taken(i, old, None) => (TAKEN, i, old, None),
            Touched::Taken(i, old, Some(new)) => (CHANGED, i, old, Some(new)),
            Touched::Unique(i, row) => (UNIQUE, i, row, None),
        };
        let numbers = [i64::from(kind), at as i64, *i as i64].map(Datum::Int8);
        numbers.into_iter().chain(row.iter().chain(new.into_iter().flatten()).cloned()).collect()
    }

    /// The entry of such a row.
    fn unpacked(mut packed: Row) -> Option<Entry> {
        let row = packed.split_off(NUMBERS.min(packed.len()));
        let [kind, at, i] = packed.as_slice() else { return None };
        let number = |value: &Datum| value.as_i64().and_then(|n| usize::try_from(n).ok());
        let (at, i) = (number(at)?, number(i)?);
        let touched = match kind.as_i64()? as u8 {
            REFERS => Touched::Refers(i, row),
            TAKEN => Touched::Taken(i, row, None),
            CHANGED => {
                let mut old = row;
                let new = old.split_off(old.len() / 2);
                Touched::Taken(i, old, Some(new))
            }
            UNIQUE => Touched::Unique(i, row),
            _ => return None,
        };
        Some((at, touched))
    }
}

/// What foreign keys still ask of a statement, first in, first out (EXE-5).
#[derive(Default)]
pub struct Pending {
    front: VecDeque<Entry>,
    file: Option<Queued>,
    back: VecDeque<Entry>,
    /// The tables whose rows were touched, as `catalog` knows them.
    pub(super) targets: Vec<Arc<Target>>,
    /// The catalog since the last wait for a lock; none: the plan's.
    pub(super) catalog: Option<Arc<Catalog>>,
    /// Tables that are locked already (EXE-3).
    pub(super) locked: Vec<(u32, LockMode)>,
    /// None before the first entry.
    allowance: Option<Allowance>,
    /// An action has changed rows, which may have checks in the queue.
    pub(super) acted: bool,
}

impl Pending {
    /// Whether no foreign key asks for anything.
    pub fn is_empty(&self) -> bool {
        self.front.is_empty() && self.file.is_none() && self.back.is_empty()
    }

    pub(super) fn target(&self, at: usize) -> Arc<Target> {
        self.targets[at].clone()
    }

    pub(super) fn place_of(&mut self, target: &Target) -> usize {
        let known = self.targets.iter().position(|t| t.table.shape.oid == target.table.shape.oid);
        known.unwrap_or_else(|| {
            self.targets.push(Arc::new(target.clone()));
            self.targets.len() - 1
        })
    }

    /// PEN-1
    fn queue(&mut self, entry: Entry) {
        match &self.file {
            None => self.front.push_back(entry),
            Some(_) => self.back.push_back(entry),
        }
    }

    fn grow(&mut self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.allowance.get_or_insert_with(|| Allowance::new(Kind::ForeignKeys)).grow()
    }

    /// Whether entries are to go to the file; asked after each row.
    #[inline]
    pub(super) fn is_full(&mut self, cx: Cx<'_>) -> bool {
        match &self.file {
            Some(_) => self.back.len() >= GROUP,
            None => self.allowance.as_mut().is_some_and(|allowance| allowance.is_used_up(cx)),
        }
    }

    /// The entries in memory that the file may have go there.
    pub(super) async fn write_out(&mut self, cx: Cx<'_>) -> Result<()> {
        let (mut queued, entries) = match self.file.take() {
            Some(queued) => (queued, std::mem::take(&mut self.back)),
            None => {
                let file = Spilled::create(cx.temp_files()).await?;
                (Queued { file, reader: None, read: 0 }, std::mem::take(&mut self.front))
            }
        };
        for (at, touched) in entries {
            queued.file.append(&touched.packed(at), &[]).await?;
        }
        self.file = Some(queued);
        self.allowance.iter_mut().for_each(Allowance::shrink);
        Ok(())
    }

    /// Takes the first entry.
    pub(super) async fn next(&mut self) -> Result<Option<Entry>> {
        if self.front.is_empty() && self.file.is_some() {
            Box::pin(self.read_back()).await?;
        }
        Ok(self.front.pop_front())
    }

    /// The next entries of the file; it goes when all were read.
    async fn read_back(&mut self) -> Result<()> {
        let Some(mut queued) = self.file.take() else { return Ok(()) };
        while self.front.len() < GROUP {
            let Some(reader) = &mut queued.reader else {
                let end = queued.file.end();
                if queued.read == end {
                    self.front.append(&mut self.back);
                    return Ok(());
                }
                let part = std::mem::replace(&mut queued.read, end)..end;
                queued.reader = Some(queued.file.reader(part, BLOCK_BYTES).await?);
                continue;
            };
            match reader.next().await? {
                Some(row) => self.front.push_back(Touched::unpacked(row).ok_or_else(damaged)?),
                None => queued.reader = None,
            }
        }
        self.file = Some(queued);
        Ok(())
    }

    /// A row was inserted.
    pub fn inserted(&mut self, target: &Target, row: &Row) -> Result<()> {
        for i in 0..target.references.len() {
            let at = self.place_of(target);
            self.queue((at, Touched::Refers(i, row.clone())));
        }
        for i in 0..target.uniques.len() {
            let at = self.place_of(target);
            self.queue((at, Touched::Unique(i, row.clone())));
        }
        self.grow()
    }

    /// A row was updated. A version that the transaction itself had written (`own`) may never have been checked, since its check is left out once
    /// it is replaced: the new one is checked even where the key is the same, as in PostgreSQL.
    pub fn updated(&mut self, target: &Target, old: &[Datum], new: &[Datum], own: bool) -> Result<()> {
        for (i, key) in target.referrers.iter().enumerate() {
            if !has_null(&key.columns, old) && differ(&key.columns, old, new) {
                let at = self.place_of(target);
                self.queue((at, Touched::Taken(i, old.to_vec(), Some(new.to_vec()))));
            }
        }
        for (i, key) in target.references.iter().enumerate() {
            let whole = !has_null(&key.columns, new) && (own || differ(&key.columns, old, new));
            if whole || key.full && is_mixed(&key.columns, new) {
                let at = self.place_of(target);
                self.queue((at, Touched::Refers(i, new.to_vec())));
            }
        }
        for (i, unique) in target.uniques.iter().enumerate() {
            if differ(&unique.columns, old, new) {
                let at = self.place_of(target);
                self.queue((at, Touched::Unique(i, new.to_vec())));
            }
        }
        self.grow()
    }

    /// A row was deleted.
    pub fn deleted(&mut self, target: &Target, old: &[Datum]) -> Result<()> {
        for (i, key) in target.referrers.iter().enumerate() {
            if !has_null(&key.columns, old) {
                let at = self.place_of(target);
                self.queue((at, Touched::Taken(i, old.to_vec(), None)));
            }
        }
        self.grow()
    }
}

impl Cx<'_> {
    /// After a row was noted: entries go to the file if there are too many in memory.
    #[inline]
    pub(super) async fn keep_small(self, pending: &mut Pending) -> Result<()> {
        if pending.is_full(self) { Box::pin(pending.write_out(self)).await } else { Ok(()) }
    }
}
