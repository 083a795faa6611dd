//! The hash table of a join's right side, and what happens when it exceeds `work_mem`.
//!
//! # Life of a right side that does not fit
//! The rows go into a table -> the table exceeds `work_mem` -> its rows and all that follow go into files chosen by the hash of the key
//! -> the left side is divided in the same way -> each pair of files is joined by itself. A right file that does not fit is divided
//! again, and its left file with it.
//!
//! A left side is not divided if the plan relies on the order of its rows.

use super::keys::{KeyTable, hash_of};
use super::nodes::Rows;
use super::row_batch::{Batch, ROWS};
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use crate::error::Result;
use crate::expr::Bound;
use crate::planner::order::relied_on;
use crate::planner::plan::{Join, JoinType};
use crate::types::Datum;
use clearway_base::memory::{Held, Kind};

/// A side is divided into so many parts.
const PARTS: usize = 16;
/// Rows that are kept in memory at least.
const ROWS_MIN: usize = 256;
/// Rows are divided at most so often: what is left then has the same hash.
const LEVELS_MAX: u32 = 8;
/// Behind the last row of a chain.
const NONE: u32 = u32::MAX;

/// The right side by its keys.
pub(super) struct Hashed {
    /// Rows without the slots to their left.
    rows: Vec<Datum>,
    width: usize,
    count: usize,
    table: KeyTable,
    /// The distinct keys one after the other, and the first and the last row of each.
    keys: Vec<Datum>,
    ends: Vec<(u32, u32)>,
    /// The next row with the same key.
    next: Vec<u32>,
    /// Full joins: rows with a null in their key, which no row meets, and whether a row was met.
    loose: Vec<u32>,
    met: Vec<bool>,
    /// What it has of the statement's memory.
    held: Held,
}

impl Hashed {
    fn new(width: usize) -> Self {
        Self {
            rows: Vec::new(),
            width,
            count: 0,
            table: KeyTable::default(),
            keys: Vec::new(),
            ends: Vec::new(),
            next: Vec::new(),
            loose: Vec::new(),
            met: Vec::new(),
            held: Held::new(Kind::Hash),
        }
    }

    /// A row.
    pub fn row(&self, at: u32) -> &[Datum] {
        &self.rows[at as usize * self.width..(at as usize + 1) * self.width]
    }

    /// The first row with this key.
    pub fn find(&self, key: &[Datum]) -> Option<u32> {
        if key.iter().any(Datum::is_null) {
            return None;
        }
        let width = key.len();
        let found = self.table.find(hash_of(key), |n| self.keys[n * width..(n + 1) * width] == *key)?;
        Some(self.ends[found].0)
    }

    /// The next row with the key of this one.
    pub fn after(&self, at: u32) -> Option<u32> {
        Some(self.next[at as usize]).filter(|n| *n != NONE)
    }

    /// A left row met this row.
    pub fn meet(&mut self, at: u32) {
        if let Some(met) = self.met.get_mut(at as usize) {
            *met = true;
        }
    }

    /// Full joins: whether a row was met; none: there is no such row.
    pub fn was_met(&self, at: usize) -> Option<bool> {
        self.met.get(at).copied()
    }

    /// Adds a row; one with a null in its key is left out unless the join is a full one.
    fn add(&mut self, key: &[Datum], row: impl Iterator<Item = Datum>, is_full: bool) -> Result<()> {
        let is_loose = key.iter().any(Datum::is_null);
        if is_loose && !is_full {
            return Ok(());
        }
        let (at, width) = (self.count as u32, key.len());
        assert!(at < NONE, "{at} rows in one hash table");
        self.rows.extend(row);
        self.count += 1;
        assert_eq!(self.rows.len(), self.count * self.width, "rows of a side have one width");
        self.next.push(NONE);
        if is_full {
            self.met.push(false);
        }
        if is_loose {
            self.loose.push(at);
            return Ok(self.held.grow()?);
        }
        let hash = hash_of(key);
        let keys = &self.keys;
        match self.table.find(hash, |n| keys[n * width..(n + 1) * width] == *key) {
            Some(found) => {
                let last = std::mem::replace(&mut self.ends[found].1, at);
                self.next[last as usize] = at;
            }
            None => {
                self.table.add(hash, self.ends.len(), |n| hash_of(&keys[n * width..(n + 1) * width]));
                self.keys.extend_from_slice(key);
                self.ends.push((at, at));
            }
        }
        Ok(self.held.grow()?)
    }

    /// Writes all rows into parts.
    async fn divide(self, parts: &mut Parts, cx: Cx<'_>) -> Result<()> {
        let width = self.keys.len().checked_div(self.ends.len()).unwrap_or(0);
        for (n, (first, _)) in self.ends.iter().enumerate() {
            let (key, mut next) = (&self.keys[n * width..(n + 1) * width], Some(*first));
            while let Some(at) = next {
                cx.breathe().await?;
                parts.append(key, key, self.row(at)).await?;
                next = self.after(at);
            }
        }
        for at in &self.loose {
            parts.files[0].append(&vec![Datum::Null; parts.keys], self.row(*at)).await?;
        }
        Ok(())
    }
}

/// Files into which a side is divided.
struct Parts {
    files: Vec<Spilled>,
    keys: usize,
    level: u32,
}

impl Parts {
    async fn create(keys: usize, level: u32, cx: Cx<'_>) -> Result<Self> {
        let mut files = Vec::with_capacity(PARTS);
        for _ in 0..PARTS {
            files.push(Spilled::create(cx.temp_files()).await?);
        }
        Ok(Self { files, keys, level })
    }

    /// Appends a row in two parts to the file of its key.
    async fn append(&mut self, key: &[Datum], first: &[Datum], second: &[Datum]) -> Result<()> {
        let shift = 28 - 4 * self.level.min(7);
        let part = if key.iter().any(Datum::is_null) { 0 } else { (hash_of(key) >> shift) as usize % PARTS };
        self.files[part].append(first, second).await
    }
}

/// Both sides of a part of a join, still in files.
pub(super) struct Pair {
    left: Spilled,
    right: Spilled,
    level: u32,
}

/// A side that has been read.
enum Side {
    Fits(Box<Hashed>),
    Divided(Parts),
}

/// What is joined next: the table, and the rows of the left side that go with it (none: all of them). None: nothing is left.
pub(super) type Next = Option<(Box<Hashed>, Option<SpillReader>)>;

/// A right side on its way into a table or into files.
struct Building<'j> {
    join: &'j Join,
    table: Option<Box<Hashed>>,
    parts: Option<Parts>,
    keys: usize,
    level: u32,
    work_bytes: i64,
    may_divide: bool,
}

impl<'j> Building<'j> {
    fn new(join: &'j Join, keys: usize, level: u32, cx: Cx<'_>) -> Self {
        let may_divide = level < LEVELS_MAX && keys > 0 && relied_on(&join.left).is_none();
        let table = Some(Box::new(Hashed::new(join.end - join.right_base)));
        Self { join, table, parts: None, keys, level, work_bytes: cx.work_bytes() as i64, may_divide }
    }

    async fn add(&mut self, key: &[Datum], row: impl Iterator<Item = Datum>, cx: Cx<'_>) -> Result<()> {
        let is_full = self.join.kind == JoinType::Full;
        if let Some(parts) = &mut self.parts {
            if is_full || !key.iter().any(Datum::is_null) {
                parts.append(key, key, &row.collect::<Row>()).await?;
            }
            return Ok(());
        }
        let Some(table) = &mut self.table else { return Ok(()) };
        table.add(key, row, is_full)?;
        if self.may_divide && table.held.bytes() > self.work_bytes && table.count >= ROWS_MIN {
            let mut parts = Parts::create(self.keys, self.level, cx).await?;
            if let Some(table) = self.table.take() {
                table.divide(&mut parts, cx).await?;
            }
            self.parts = Some(parts);
        }
        Ok(())
    }

    fn done(self) -> Side {
        match (self.parts, self.table) {
            (Some(parts), _) => Side::Divided(parts),
            (None, Some(table)) => Side::Fits(table),
            (None, None) => Side::Fits(Box::new(Hashed::new(self.join.end - self.join.right_base))),
        }
    }
}

/// Reads the right side of a join once. Where it is divided the left side is read too; then `pairs` has what is to be joined.
pub(super) async fn open(
    join: &Join,
    (left_keys, right_keys): (&[Bound], &[Bound]),
    left: &mut Rows,
    pairs: &mut Vec<Pair>,
    cx: Cx<'_>,
) -> Result<Next> {
    let waits = right_keys.iter().any(Bound::may_wait);
    let mut building = Building::new(join, right_keys.len(), 0, cx);
    let mut source = Rows::new(join.right.clone(), vec![Datum::Null; join.right_base]);
    let (mut batch, mut key, mut more) = (Batch::default(), Row::new(), true);
    while more {
        batch.clear();
        more = source.fill(cx, ROWS, &mut batch).await?;
        for at in 0..batch.len() {
            cx.breathe().await?;
            cx.values_into(right_keys, waits, batch.row(at), &mut key).await?;
            building.add(&key, batch.take_from(at, join.right_base), cx).await?;
        }
    }
    let parts = match building.done() {
        Side::Fits(table) => return Ok(Some((table, None))),
        Side::Divided(parts) => parts,
    };
    let mut lefts = Parts::create(left_keys.len(), 0, cx).await?;
    let waits = left_keys.iter().any(Bound::may_wait);
    let mut more = true;
    while more {
        batch.clear();
        more = left.fill(cx, ROWS, &mut batch).await?;
        for at in 0..batch.len() {
            cx.breathe().await?;
            cx.values_into(left_keys, waits, batch.row(at), &mut key).await?;
            lefts.append(&key, batch.row(at), &[]).await?;
        }
    }
    add_pairs(pairs, lefts, parts, 1);
    next_pair(join, left_keys, pairs, cx).await
}

fn add_pairs(pairs: &mut Vec<Pair>, lefts: Parts, rights: Parts, level: u32) {
    let files = lefts.files.into_iter().zip(rights.files);
    pairs.extend(files.map(|(left, right)| Pair { left, right, level }));
}

/// The table of the next pair.
pub(super) async fn next_pair(join: &Join, left_keys: &[Bound], pairs: &mut Vec<Pair>, cx: Cx<'_>) -> Result<Next> {
    let waits = left_keys.iter().any(Bound::may_wait);
    while let Some(Pair { mut left, mut right, level }) = pairs.pop() {
        if left.rows() == 0 && (right.rows() == 0 || join.kind != JoinType::Full) {
            continue;
        }
        let block_bytes = cx.work_bytes() / PARTS;
        let mut building = Building::new(join, left_keys.len(), level, cx);
        let end = right.end();
        let mut rows = right.reader(0..end, block_bytes).await?;
        while let Some(mut key) = rows.next().await? {
            cx.breathe().await?;
            let row = key.split_off(left_keys.len().min(key.len()));
            building.add(&key, row.into_iter(), cx).await?;
        }
        let end = left.end();
        let mut lefts = left.reader(0..end, block_bytes).await?;
        match building.done() {
            Side::Fits(table) => return Ok(Some((table, Some(lefts)))),
            Side::Divided(rights) => {
                let (mut parts, mut key) = (Parts::create(left_keys.len(), level, cx).await?, Row::new());
                while let Some(row) = lefts.next().await? {
                    cx.breathe().await?;
                    cx.values_into(left_keys, waits, &row, &mut key).await?;
                    parts.append(&key, &row, &[]).await?;
                }
                add_pairs(pairs, parts, rights, level + 1);
            }
        }
    }
    Ok(None)
}
