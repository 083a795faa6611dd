//! Keeps the first row of each key: DISTINCT and UNION.
//!
//! # Life of a row
//! ```text
//! its key is new -> the key is kept, the row is given at once
//! the keys exceed their memory (`Cx::hash_bytes`) -> they stay; a row with another key is put aside with its number, in a file chosen by the key's hash
//! the input has ended -> file by file, the first row of each key -> these rows are given in the order of their numbers
//! ```
//!
//! # Invariants
//! - EXE-20: rows come out in the order in which they came in: once a row has been put aside, no later row is given at once. So the order
//!   of the input is kept.
//! - EXE-21: of rows with the same key the first one is given: a file has its rows in the order in which they came.

use super::external::{Merge, Runs};
use super::keys::FoldState;
use super::parts::{LEVELS_MAX, PARTS, Parts, parts_for};
use super::spill::Spilled;
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_planner::explain::Method;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;
use std::collections::HashSet;

/// Keys that are kept in memory at least.
const KEYS_MIN: usize = 64;

/// The keys that have been met, as far as they fit their memory.
struct Seen {
    keys: HashSet<Row, FoldState>,
    held: Held,
}

impl Seen {
    fn new(kind: Kind) -> Self {
        Self { keys: HashSet::default(), held: Held::new(kind) }
    }

    /// Keeps a new key; whether that is enough.
    fn keep(&mut self, key: Row, cx: Cx<'_>) -> Result<bool> {
        self.held.resume();
        self.keys.insert(key);
        self.held.grow()?;
        Ok(self.keys.len() >= KEYS_MIN && self.held.exceeds(cx.hash_bytes() as i64))
    }
}

/// Rows that were put aside.
struct Aside {
    parts: Parts,
    /// Values of a key.
    width: usize,
    /// The key is the row.
    whole: bool,
    numbered: Row,
    rows: i64,
}

/// Tells the first row of each key.
pub(super) struct FirstRows {
    /// Whose the memory is: DISTINCT's, or a set operation's.
    kind: Kind,
    seen: Seen,
    /// The keys exceed their memory: rows with other keys are put aside.
    full: bool,
    aside: Option<Aside>,
}

impl FirstRows {
    /// Nothing has been met.
    pub fn new(kind: Kind) -> Self {
        Self { kind, seen: Seen::new(kind), full: false, aside: None }
    }

    /// Whether a row is to be given: the first one with its key. It may be put aside instead. No row: the key is the row.
    pub async fn is_first(&mut self, key: &[Datum], row: Option<&[Datum]>, cx: Cx<'_>) -> Result<bool> {
        if !self.full {
            return self.is_first_now(key, cx);
        }
        if self.seen.keys.contains(key) {
            return Ok(false);
        }
        let aside = match &mut self.aside {
            Some(aside) => aside,
            None => {
                let parts = Parts::create(0, cx).await?;
                let (width, whole) = (key.len(), row.is_none());
                self.aside.insert(Aside { parts, width, whole, numbered: Row::new(), rows: 0 })
            }
        };
        // EXE-20
        aside.numbered.clear();
        aside.numbered.push(Datum::Int8(aside.rows));
        aside.numbered.extend_from_slice(key);
        aside.rows += 1;
        aside.parts.append(key, &aside.numbered, row.unwrap_or(&[])).await?;
        Ok(false)
    }

    /// Whether there is no room for more keys: `is_first` is to be asked.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether a row is to be given: the first one with its key, for which there is room.
    pub fn is_first_now(&mut self, key: &[Datum], cx: Cx<'_>) -> Result<bool> {
        assert!(!self.full, "EXE-20: rows are put aside by now");
        if self.seen.keys.contains(key) {
            return Ok(false);
        }
        self.full = self.seen.keep(key.to_vec(), cx)?;
        Ok(true)
    }

    /// How the rows were found, before `rest`.
    pub fn method(&self) -> Method {
        let batches = 1 + self.aside.as_ref().map_or(0, |_| PARTS as u64);
        Method::Groups { batches, bytes: self.seen.held.bytes().max(0) as u64, disk_bytes: 0 }
    }

    /// There are no more rows: those that were put aside and are to be given; none: no row was put aside.
    pub async fn rest(&mut self, cx: Cx<'_>) -> Result<Option<Merge>> {
        let Some(Aside { parts, width, whole, .. }) = self.aside.take() else { return Ok(None) };
        (self.seen, self.full) = (Seen::new(self.kind), false);
        let mut runs = Runs::create(&[(false, false)], cx).await?;
        let mut left: Vec<(Spilled, u32)> = parts.into_files().collect();
        while let Some((file, level)) = left.pop() {
            if file.rows() == 0 {
                continue;
            }
            if let Some(parts) = first_of(file, level, (width, whole, self.kind), &mut runs, cx).await? {
                left.extend(parts.into_files());
            }
            runs.end_run();
        }
        runs.merged().await.map(Some)
    }
}

/// Writes the first row of each key of a file to a run; gives the rows of the keys for which there was no room.
async fn first_of(
    mut file: Spilled,
    level: u32,
    (width, whole, kind): (usize, bool, Kind),
    runs: &mut Runs,
    cx: Cx<'_>,
) -> Result<Option<Parts>> {
    let (mut seen, mut others) = (Seen::new(kind), None::<Parts>);
    let end = file.end();
    let (all, mut read) = (file.rows(), 0);
    let mut rows = file.reader(0..end, cx.hash_bytes() / PARTS).await?;
    while let Some(mut number) = rows.next().await? {
        cx.breathe().await?;
        read += 1;
        let mut key = number.split_off(1.min(number.len()));
        let row = key.split_off(width.min(key.len()));
        // EXE-21: the file has its rows in order, so a key that was seen had its first row before.
        if seen.keys.contains(&key) {
            continue;
        }
        if let Some(others) = &mut others {
            number.extend_from_slice(&key);
            others.append(&key, &number, &row).await?;
            continue;
        }
        runs.append(&number, if whole { &key } else { &row }).await?;
        if seen.keep(key, cx)? && level < LEVELS_MAX {
            others = Some(Parts::create_few(parts_for(all, read), level, cx).await?);
        }
    }
    Ok(others)
}
