//! The hash table of one side of a join, and what happens when it exceeds its memory (`Cx::hash_bytes`).
//!
//! # Life of a side that does not fit
//! The rows go into a table -> the table exceeds its memory -> its rows and all that follow go into files chosen by the hash of the key
//! -> the other side, whose rows are looked up, is divided in the same way -> each pair of files is joined by itself. A file for the table that
//! does not fit is divided again, and the other file of its pair with it.
//!
//! The keys of the table's rows are gathered for the scan of the other side (GAT-3), also where the rows go into files: rows that will meet none do not.
//!
//! A row in a file is its key and the values that the join carries. The sides are not divided if the plan relies on the order of the left side.

use super::hash_join::{Slots, keys};
use super::keys::{KeyTable, hash_of, look_ahead};
use super::measure::place;
use super::nodes::Rows;
use super::row_batch::{Batch, ROWS};
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_planner::explain::{Method, Step};
use clearway_planner::met_keys::Gathering;
use clearway_planner::order::relied_on;
use clearway_planner::plan::Join;
use clearway_syntax::error::Result;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use std::sync::Arc;

/// A side is divided into so many parts.
const PARTS: usize = 16;
/// Rows that are kept in memory at least.
const ROWS_MIN: usize = 256;
/// Rows are divided at most so often: what is left then has the same hash.
const LEVELS_MAX: u32 = 8;
/// Behind the last row of a chain.
const NONE: u32 = u32::MAX;

/// The rows of one side by their keys.
pub(super) struct Hashed {
    /// What the join carries of each.
    rows: Vec<Datum>,
    width: usize,
    count: usize,
    table: KeyTable,
    /// The distinct keys one after the other, and the first and the last row of each.
    keys: Vec<Datum>,
    ends: Vec<(u32, u32)>,
    /// The next row with the same key.
    next: Vec<u32>,
    /// Rows with a null in their key, which no row meets, if they are given nevertheless; and whether a row was met, if that has to be known.
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

    /// How the rows were found, with the parts into which they were divided.
    fn method(&self, batches: u64) -> Method {
        Method::Hash { buckets: self.table.places() as u64, batches, bytes: self.held.bytes().max(0) as u64 }
    }

    /// There is no row.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What the join carries of a row.
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

    /// Reads what looking for rows with these keys will read.
    pub fn look_ahead<'r>(&self, columns: &[usize], rows: impl Iterator<Item = &'r [Datum]>) {
        let width = columns.len();
        let key = |n: usize| self.ends[n].0 as usize + usize::from(self.keys[n * width].is_null());
        let row =
            |n: usize| self.rows.get(self.ends[n].0 as usize * self.width).map_or(0, |v| usize::from(v.is_null()));
        look_ahead(&self.table, columns, rows, &[&key, &row]);
    }

    /// The next row with the key of this one.
    pub fn after(&self, at: u32) -> Option<u32> {
        Some(self.next[at as usize]).filter(|n| *n != NONE)
    }

    /// A row of the other side met this row.
    pub fn meet(&mut self, at: u32) {
        if let Some(met) = self.met.get_mut(at as usize) {
            *met = true;
        }
    }

    /// Whether a row was met; none: there is no such row, or it does not have to be known.
    pub fn was_met(&self, at: usize) -> Option<bool> {
        self.met.get(at).copied()
    }

    /// Adds a row; one with a null in its key is left out unless the join gives rows that were not met.
    fn add(&mut self, key: &[Datum], row: impl Iterator<Item = Datum>, join: &Join) -> Result<()> {
        let is_loose = key.iter().any(Datum::is_null);
        if is_loose && !join.keeps_built() {
            return Ok(());
        }
        let (at, width) = (self.count as u32, key.len());
        assert!(at < NONE, "{at} rows in one hash table");
        self.rows.extend(row);
        self.count += 1;
        assert_eq!(self.rows.len(), self.count * self.width, "rows of a side have one width");
        self.next.push(NONE);
        if join.marks_built() {
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
            files.push(Spilled::create_among(cx.temp_files(), 2 * PARTS, cx.hash_bytes()).await?);
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
    built: Spilled,
    probed: Spilled,
    level: u32,
}

/// A side that has been read.
enum Side {
    Fits(Box<Hashed>),
    Divided(Parts),
}

/// What is joined next: the table, and the rows of the other side that go with it (none: all of them). None: nothing is left.
pub(super) type Next = Option<(Box<Hashed>, Option<SpillReader>)>;

/// A side on its way into a table or into files.
struct Building<'j> {
    join: &'j Join,
    /// Values that the table has of each row.
    width: usize,
    table: Option<Box<Hashed>>,
    parts: Option<Parts>,
    level: u32,
    hash_bytes: i64,
    may_divide: bool,
}

impl<'j> Building<'j> {
    fn new(join: &'j Join, width: usize, level: u32, cx: Cx<'_>) -> Self {
        let may_divide = level < LEVELS_MAX && !keys(join).0.is_empty() && relied_on(&join.left).is_none();
        let table = Some(Box::new(Hashed::new(width)));
        Self { join, width, table, parts: None, level, hash_bytes: cx.hash_bytes() as i64, may_divide }
    }

    async fn add(&mut self, key: &[Datum], row: impl Iterator<Item = Datum>, cx: Cx<'_>) -> Result<()> {
        if let Some(parts) = &mut self.parts {
            if self.join.keeps_built() || !key.iter().any(Datum::is_null) {
                parts.append(key, key, &row.collect::<Row>()).await?;
            }
            return Ok(());
        }
        let Some(table) = &mut self.table else { return Ok(()) };
        table.add(key, row, self.join)?;
        if self.may_divide && table.count >= ROWS_MIN && table.held.exceeds(self.hash_bytes) {
            let mut parts = Parts::create(key.len(), self.level, cx).await?;
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
            (None, None) => Side::Fits(Box::new(Hashed::new(self.width))),
        }
    }
}

/// Reads the side for the table once. Where it is divided the other side is read too; then `pairs` has what is to be joined.
pub(super) async fn open(
    join: &Join,
    slots: &Slots,
    built: &mut Rows,
    probed: &mut Rows,
    pairs: &mut Vec<Pair>,
    cx: Cx<'_>,
) -> Result<Next> {
    let (built_keys, probed_keys) = keys(join);
    let waits = built_keys.iter().any(Bound::may_wait);
    let mut building = Building::new(join, slots.built.len(), 0, cx);
    let mut gathered = gathering(join, probed, cx);
    let (mut batch, mut key, mut more) = (Batch::default(), Row::new(), true);
    while more {
        batch.clear();
        more = built.fill(cx, ROWS, &mut batch).await?;
        for at in 0..batch.len() {
            cx.breathe().await?;
            cx.values_into(built_keys, waits, batch.row(at), &mut key).await?;
            gathered.iter_mut().for_each(|(place, _, keys)| keys.put(&key[*place]));
            building.add(&key, batch.take_columns(at, &slots.built), cx).await?;
        }
    }
    for (_, slot, keys) in gathered {
        keys.finish().into_iter().for_each(|keys| probed.seek(slot, Arc::new(keys)));
    }
    let built = match building.done() {
        Side::Fits(table) => {
            cx.note_method(place(join, Step::Hash), || table.method(1));
            return Ok(Some((table, None)));
        }
        Side::Divided(parts) => parts,
    };
    let mut others = Parts::create(probed_keys.len(), 0, cx).await?;
    let waits = probed_keys.iter().any(Bound::may_wait);
    let (mut row, mut more) = (Row::new(), true);
    while more {
        batch.clear();
        more = probed.fill(cx, ROWS, &mut batch).await?;
        for at in 0..batch.len() {
            cx.breathe().await?;
            cx.values_into(probed_keys, waits, batch.row(at), &mut key).await?;
            row.clear();
            row.extend(batch.take_columns(at, &slots.probed));
            others.append(&key, &key, &row).await?;
        }
    }
    add_pairs(pairs, built, others, 1).await?;
    next_pair(join, pairs, cx).await
}

/// The keys of the table's rows that a scan of the other side may ask for, by their places in the key, and the slots in which it asks for them.
fn gathering(join: &Join, probed: &Rows, cx: Cx<'_>) -> Vec<(usize, usize, Gathering)> {
    if join.keeps_probed() {
        return Vec::new();
    }
    let asked = |(place, key): (usize, &Bound)| match key.kind {
        BoundKind::Column { index, level: 0 } if probed.may_seek(index) => {
            Some((place, index, Gathering::new(cx.hash_bytes() / 4)))
        }
        _ => None,
    };
    keys(join).1.iter().enumerate().filter_map(asked).collect()
}

async fn add_pairs(pairs: &mut Vec<Pair>, built: Parts, probed: Parts, level: u32) -> Result<()> {
    for (mut built, mut probed) in built.files.into_iter().zip(probed.files) {
        built.end_writing().await?;
        probed.end_writing().await?;
        pairs.push(Pair { built, probed, level });
    }
    Ok(())
}

/// The table of the next pair.
pub(super) async fn next_pair(join: &Join, pairs: &mut Vec<Pair>, cx: Cx<'_>) -> Result<Next> {
    let width = keys(join).0.len();
    while let Some(Pair { mut built, mut probed, level }) = pairs.pop() {
        let gives_built = built.rows() > 0 && join.keeps_built();
        let gives_probed = probed.rows() > 0 && (built.rows() > 0 || join.keeps_probed());
        if !gives_built && !gives_probed {
            continue;
        }
        let block_bytes = cx.hash_bytes() / PARTS;
        let end = built.end();
        let mut rows = built.reader(0..end, block_bytes).await?;
        let mut building: Option<Building<'_>> = None;
        let mut values = Row::new();
        while rows.append_next(&mut values).await? {
            cx.breathe().await?;
            let keys = width.min(values.len());
            let (key, row) = values.split_at_mut(keys);
            let building = building.get_or_insert_with(|| Building::new(join, row.len(), level, cx));
            building.add(key, row.iter_mut().map(|value| std::mem::replace(value, Datum::Null)), cx).await?;
            values.clear();
        }
        let end = probed.end();
        let mut others = probed.reader(0..end, block_bytes).await?;
        match building.map_or_else(|| Side::Fits(Box::new(Hashed::new(0))), Building::done) {
            Side::Fits(table) => {
                cx.note_method(place(join, Step::Hash), || table.method((PARTS as u64).pow(level)));
                return Ok(Some((table, Some(others))));
            }
            Side::Divided(built) => {
                let mut parts = Parts::create(width, level, cx).await?;
                while others.append_next(&mut values).await? {
                    cx.breathe().await?;
                    let (key, rest) = values.split_at(width.min(values.len()));
                    parts.append(key, key, rest).await?;
                    values.clear();
                }
                add_pairs(pairs, built, parts, level + 1).await?;
            }
        }
    }
    Ok(None)
}
