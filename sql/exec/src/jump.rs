//! Reads a key or an index by jumping from one value of its leading columns to the next.
//!
//! A walk reads a leaf at a time. Where the next value is in the same leaf, the walk goes on to it; else a new walk begins behind the value
//! at hand. So a value costs one leaf and one descent at most, however many rows have it; and where few rows have each value, jumps cost little
//! more than a plain walk.
//!
//! # Invariants
//! - EXE-23: of the rows that the view sees in a range, one is given for each list of values that the leading columns have in it: the keys that
//!   are jumped over begin with the bytes of the list at hand, and no list's bytes begin with those of another.

use super::Cx;
use super::row_batch::Batch;
use super::scan::{TableRows, append_entry, append_walked, key_columns};
use clearway_context::errors::from_engine;
use clearway_engine::codec::key::{KeyColumn, decode_value};
use clearway_planner::plan::Scan;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::read::ShownEnd;
use clearway_values::types::Datum;

/// A walk that jumps.
pub struct Jumps {
    index: Option<usize>,
    /// What is still to be read.
    left: KeyRange,
    direction: Direction,
    /// The leading columns, and the bytes of their values in the row at hand; empty: none has been read.
    columns: Vec<KeyColumn>,
    at: Vec<u8>,
    walk: Option<TableRows>,
}

/// Rows behind whose values so many more than expected no jump is worth its cost.
const FACTOR: f64 = 8.0;
const MORE: f64 = 100.0;

impl Jumps {
    /// Begins to read the entries of an index, or the rows of a table, in a range; `columns`: how many of the key tell them apart.
    pub(super) fn new(scan: &Scan, index: Option<usize>, range: KeyRange, columns: usize) -> Jumps {
        let mut of_key = match index {
            Some(place) => scan.table.shape.indexes[place].key.to_vec(),
            None => key_columns(scan),
        };
        of_key.truncate(columns);
        let direction = scan.order.unwrap_or(Direction::Forward);
        Jumps { index, left: range, direction, columns: of_key, at: Vec::new(), walk: None }
    }

    /// Goes behind the values at hand; false: there is nothing behind them.
    fn leap(&mut self) -> bool {
        self.walk = None;
        if self.at.is_empty() {
            return true;
        }
        match self.direction {
            Direction::Backward => self.left.to = Some(self.at.clone()),
            Direction::Forward => match KeyRange::prefix(&self.at).to {
                Some(end) => self.left.from = end,
                None => return false,
            },
        }
        self.left.to.as_ref().is_none_or(|to| self.left.from < *to)
    }

    /// Takes the leading values of a key; false: they are those at hand.
    fn goes_to(columns: &[KeyColumn], at: &mut Vec<u8>, key: &[u8]) -> Result<bool> {
        // EXE-23
        if !at.is_empty() && key.starts_with(at) {
            return Ok(false);
        }
        let mut rest = key;
        for column in columns {
            let Some((_, behind)) = decode_value(*column, rest) else {
                return Err(SqlError::internal("the key of an entry is malformed"));
            };
            rest = behind;
        }
        at.clear();
        at.extend_from_slice(&key[..key.len() - rest.len()]);
        Ok(true)
    }
}

/// A row at which a walk has arrived.
enum Found<'w> {
    Row(&'w [u8], &'w [u8], Option<ShownEnd>),
    Entry(&'w [u8]),
}

impl Cx<'_> {
    /// A walk that jumps as the plan says.
    pub(super) fn jumps(self, scan: &Scan, index: Option<usize>, range: KeyRange) -> TableRows {
        let columns = scan.jump.as_ref().map_or(0, |jump| jump.columns);
        TableRows::Jumps(Box::new(Jumps::new(scan, index, range, columns)))
    }

    /// Goes to a row with other leading values and gives it to `take`; false: there is none.
    async fn jump(
        self,
        jumps: &mut Jumps,
        scan: &Scan,
        mut take: impl FnMut(Found<'_>) -> Result<()> + Send,
    ) -> Result<bool> {
        loop {
            self.breathe().await?;
            let Jumps { columns, at, walk, .. } = &mut *jumps;
            match walk {
                Some(TableRows::Table(walk)) => loop {
                    let shown = walk.next_shown();
                    let Some((key, value)) = walk.buffered() else { break };
                    if Jumps::goes_to(columns, at, key)? {
                        take(Found::Row(key, value, shown))?;
                        return Ok(true);
                    }
                },
                Some(TableRows::Entries(walk)) => {
                    while let Some(entry) = walk.buffered_entry() {
                        if Jumps::goes_to(columns, at, entry)? {
                            take(Found::Entry(entry))?;
                            return Ok(true);
                        }
                    }
                }
                _ => {}
            }
            if !jumps.leap() || !self.begin_walk(jumps, scan).await? {
                return Ok(false);
            }
        }
    }

    /// Reads the first leaf of what is left; false: nothing is there.
    async fn begin_walk(self, jumps: &mut Jumps, scan: &Scan) -> Result<bool> {
        let mut session = self.run.core.engine.take();
        let (shape, range, view) = (&scan.table.shape, jumps.left.clone(), &self.run.view);
        let more = match jumps.index {
            None => {
                let mut walk = Box::new(session.scan(shape, range, jumps.direction, view));
                let more = session.fill(&mut walk).await;
                jumps.walk = Some(TableRows::Table(walk));
                more
            }
            Some(place) => {
                let mut walk = Box::new(session.index_scan(shape, place, range, jumps.direction, view));
                let more = session.fill_entries(&mut walk).await;
                jumps.walk = Some(TableRows::Entries(walk));
                more
            }
        };
        more.map_err(from_engine)
    }

    /// Appends the next row of a walk that jumps, behind `prefix`; false: there is none.
    pub(super) async fn next_jump(
        self,
        jumps: &mut Jumps,
        scan: &Scan,
        prefix: &[Datum],
        out: &mut Batch,
    ) -> Result<bool> {
        let row = out.begin();
        let append = |found: Found<'_>| match found {
            Found::Row(key, value, shown) => append_walked(scan, (key, value, shown), prefix, row),
            Found::Entry(entry) => append_entry(scan, entry, prefix, row),
        };
        let found = self.jump(jumps, scan, append).await?;
        if found {
            out.end();
        }
        Ok(found)
    }

    /// The beginnings of the keys in these ranges, of so many columns, each once. None: there are many more than were expected, and their order is not relied on.
    pub(super) async fn each_value(
        self,
        scan: &Scan,
        index: Option<usize>,
        (columns, expected): (usize, f64),
        ranges: Vec<KeyRange>,
    ) -> Result<Option<Vec<Vec<u8>>>> {
        // RGS-1
        let most = match scan.order {
            None => (ranges.len() as f64 * (expected * FACTOR + MORE)) as usize,
            Some(_) => usize::MAX,
        };
        let mut out = Vec::new();
        for range in ranges {
            let mut jumps = Jumps::new(scan, index, range, columns);
            jumps.direction = Direction::Forward;
            while self.jump(&mut jumps, scan, |_| Ok(())).await? {
                out.push(jumps.at.clone());
                if out.len() > most {
                    return Ok(None);
                }
            }
        }
        Ok(Some(out))
    }
}
