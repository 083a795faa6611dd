//! Executes merge joins: both sides come in the order of their keys, so that each is read once.
//!
//! # Life of a left row
//! Its key is compared with that of the group, the right rows that were read last and have one key -> if it is greater, the right side is read
//! on: rows with a lesser key are passed over, rows with this key become the group -> the left row is paired with each row of the group, from
//! the group's first one (mark and restore).
//!
//! A row that is passed over, or paired with no row, is lost in inner and semi joins; left, anti and full joins give it with nulls.
//!
//! The rows of a group beyond `work_mem` are kept in a temporary file, which is read anew for each left row. A side that does not come in the
//! order of its keys, because its index is younger than the snapshot, is sorted first.
//!
//! # Invariants
//! - EXE-24: a row whose key has a null is paired with no row, wherever the order of its side puts it.
//! - EXE-25: rows that do not come in the order of their keys are an error, never a wrong answer.

use super::nodes::Rows;
use super::query::in_order;
use super::row_batch::{Batch, ROWS};
use super::sort::{SortedRows, Sorter, order_of};
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_planner::plan::{Join, JoinType, Merge, Node, SortKey};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::Bound;
use clearway_values::types::Datum;
use std::cmp::Ordering;
use std::sync::Arc;

/// Rows of a group that stay in memory at least.
const ROWS_MIN: usize = 256;

/// Where the rows of a side come from.
enum Input {
    Node(Box<Rows>),
    Sorted { rows: Box<SortedRows>, _held: Held },
}

/// One side.
struct Side {
    input: Input,
    batch: Batch,
    at: usize,
    ended: bool,
    /// The key of the row at hand, if it has been computed.
    key: Row,
    has_key: bool,
    /// Keys must be awaited.
    waits: bool,
}

impl Side {
    async fn open(node: &Arc<Node>, keys: &[Bound], merge: &Merge, prefix: Row, cx: Cx<'_>) -> Result<Self> {
        let mut rows = Box::new(Rows::new(node.clone(), prefix));
        let input = match in_order(node, cx) {
            true => Input::Node(rows),
            false => {
                let sort: Vec<SortKey> = keys.iter().zip(&merge.by).map(sort_key).collect();
                let (mut held, mut batch, mut more) = (Held::new(Kind::Sort), Batch::default(), true);
                let mut sorter = Sorter::new(&sort, None, None, cx);
                while more {
                    batch.clear();
                    more = rows.fill(cx, ROWS, &mut batch).await?;
                    for at in 0..batch.len() {
                        cx.breathe().await?;
                        sorter.push_of(&mut batch, at, None, cx, &mut held).await?;
                    }
                }
                let rows = Box::new(sorter.finish(cx, &mut held).await?);
                Input::Sorted { rows, _held: held }
            }
        };
        let waits = keys.iter().any(Bound::may_wait);
        Ok(Self { input, batch: Batch::default(), at: 0, ended: false, key: Row::new(), has_key: false, waits })
    }

    /// Reads until a row and its key are at hand; false: there is no row left.
    async fn ready(&mut self, keys: &[Bound], cx: Cx<'_>) -> Result<bool> {
        while self.at == self.batch.len() {
            if self.ended {
                return Ok(false);
            }
            self.batch.clear();
            self.at = 0;
            match &mut self.input {
                Input::Node(rows) => self.ended = !rows.fill(cx, ROWS, &mut self.batch).await?,
                Input::Sorted { rows, .. } => match rows.next().await? {
                    Some(row) => self.batch.push(&row, &[]),
                    None => self.ended = true,
                },
            }
        }
        if !self.has_key {
            cx.values_into(keys, self.waits, self.batch.row(self.at), &mut self.key).await?;
            self.has_key = true;
        }
        Ok(true)
    }

    fn row(&self) -> &[Datum] {
        self.batch.row(self.at)
    }

    fn pass(&mut self) {
        self.at += 1;
        self.has_key = false;
    }
}

fn sort_key((expr, (descending, nulls_first)): (&Bound, &(bool, bool))) -> SortKey {
    SortKey { expr: expr.clone(), descending: *descending, nulls_first: *nulls_first }
}

/// Right rows with one key.
struct Group {
    key: Row,
    /// Without the slots to their left.
    rows: Vec<Datum>,
    width: usize,
    count: usize,
    /// Those for which there is no room.
    file: Option<Spilled>,
    reader: Option<SpillReader>,
    /// Full joins: whether a row was met.
    met: Vec<bool>,
    /// The rows from this one on have still to be paired or told.
    next: usize,
    held: Held,
}

impl Group {
    fn new(width: usize) -> Self {
        let held = Held::new(Kind::Hash);
        let (key, rows, met) = (Row::new(), Vec::new(), Vec::new());
        Self { key, rows, width, count: 0, file: None, reader: None, met, next: 0, held }
    }

    fn clear(&mut self) {
        self.held.resume();
        self.rows.clear();
        self.met.clear();
        (self.count, self.next, self.file, self.reader) = (0, 0, None, None);
        self.held.measure();
    }

    /// How many rows are in memory.
    fn in_memory(&self) -> usize {
        self.rows.len().checked_div(self.width).unwrap_or(self.count)
    }

    async fn add(&mut self, row: impl Iterator<Item = Datum>, is_full: bool, cx: Cx<'_>) -> Result<()> {
        self.count += 1;
        if is_full {
            self.met.push(false);
        }
        if let Some(file) = &mut self.file {
            return file.append(&row.collect::<Row>(), &[]).await;
        }
        self.held.resume();
        self.rows.extend(row);
        self.held.grow()?;
        if self.width > 0 && self.count >= ROWS_MIN && self.held.exceeds(cx.work_bytes() as i64) {
            self.file = Some(Spilled::create(cx.temp_files()).await?);
        }
        Ok(())
    }

    /// Goes back to the first row.
    fn restore(&mut self) {
        (self.next, self.reader) = (0, None);
    }

    /// Appends the next row behind `left`; false: there is none.
    async fn append_next(&mut self, left: &[Datum], cx: Cx<'_>, out: &mut Batch) -> Result<bool> {
        if self.next == self.count {
            return Ok(false);
        }
        if self.next < self.in_memory() {
            out.push(left, &self.rows[self.next * self.width..(self.next + 1) * self.width]);
        } else {
            if self.reader.is_none()
                && let Some(file) = &mut self.file
            {
                let end = file.end();
                self.reader = Some(file.reader(0..end, cx.work_bytes() / 16).await?);
            }
            let row = match &mut self.reader {
                Some(reader) => reader.next().await?,
                None => None,
            };
            out.push(left, &row.ok_or_else(|| SqlError::internal("a row of a group is missing"))?);
        }
        self.next += 1;
        Ok(true)
    }
}

/// What is done next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A left row is looked at.
    Left,
    /// It is paired with the group.
    Pairs,
    /// Full joins: the rows of the group that were paired with no left row are given; then the group is cleared.
    Unpaired,
    /// Full joins: there is no left row any more; the rest of the right side is given.
    Rest,
    End,
}

/// A merge join that is being read.
pub(super) struct MergeRows {
    left: Side,
    right: Side,
    group: Group,
    step: Step,
    /// The left row at hand has met a row.
    matched: bool,
    on_waits: bool,
}

impl MergeRows {
    /// Begins to read a join, whose rows begin with `prefix`.
    pub(super) async fn open(join: &Join, merge: &Merge, prefix: &Row, cx: Cx<'_>) -> Result<Self> {
        let (left_keys, right_keys) = keys(join)?;
        let left = Side::open(&join.left, left_keys, merge, prefix.clone(), cx).await?;
        let right = vec![Datum::Null; join.right_base];
        let right = Side::open(&join.right, right_keys, merge, right, cx).await?;
        let group = Group::new(join.end - join.right_base);
        let on_waits = join.on.as_ref().is_some_and(Bound::may_wait);
        Ok(Self { left, right, group, step: Step::Left, matched: false, on_waits })
    }

    /// Appends some `want` rows; false: there are no more.
    pub(super) async fn fill(
        &mut self,
        join: &Join,
        merge: &Merge,
        cx: Cx<'_>,
        want: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        let enough = out.len() + want;
        while out.len() < enough {
            cx.breathe().await?;
            match self.step {
                Step::Left => self.next_left_row(join, merge, cx, enough, out).await?,
                Step::Pairs => self.pair(join, cx, enough, out).await?,
                Step::Unpaired => self.give_unpaired_group(join, cx, enough, out).await?,
                Step::Rest => {
                    let (_, right_keys) = keys(join)?;
                    match self.right.ready(right_keys, cx).await? {
                        true => self.give_unpaired_right(join, out),
                        false => self.step = Step::End,
                    }
                }
                Step::End => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Compares the next left row with the group, and goes on with the right side if need be.
    async fn next_left_row(
        &mut self,
        join: &Join,
        merge: &Merge,
        cx: Cx<'_>,
        enough: usize,
        out: &mut Batch,
    ) -> Result<()> {
        let ((left_keys, right_keys), is_full) = (keys(join)?, join.kind == JoinType::Full);
        if !self.left.ready(left_keys, cx).await? {
            match (is_full, self.group.count) {
                (false, _) => self.step = Step::End,
                (true, 0) => self.step = Step::Rest,
                (true, _) => self.begin_unpaired(),
            }
            return Ok(());
        }
        // EXE-24
        if self.left.key.iter().any(Datum::is_null) {
            self.give_unpaired_left(join, out);
            return Ok(());
        }
        if self.group.count > 0 {
            match order_of(&self.left.key, &self.group.key, &merge.by) {
                Ordering::Equal => {
                    self.begin_pairs();
                    return Ok(());
                }
                Ordering::Less => return Err(disorder()),
                Ordering::Greater if is_full => {
                    self.begin_unpaired();
                    return Ok(());
                }
                Ordering::Greater => self.group.clear(),
            }
        }
        while self.right.ready(right_keys, cx).await? {
            let order = match self.right.key.iter().any(Datum::is_null) {
                true => Ordering::Less,
                false => order_of(&self.right.key, &self.left.key, &merge.by),
            };
            match order {
                Ordering::Greater => break,
                Ordering::Equal => return self.gather(join, merge, cx).await,
                Ordering::Less => {
                    cx.breathe().await?;
                    match is_full {
                        true => self.give_unpaired_right(join, out),
                        false => self.right.pass(),
                    }
                    if out.len() >= enough {
                        return Ok(());
                    }
                }
            }
        }
        let is_over = self.right.ended && self.right.at == self.right.batch.len();
        if is_over && matches!(join.kind, JoinType::Inner | JoinType::Semi) {
            self.step = Step::End;
            return Ok(());
        }
        self.give_unpaired_left(join, out);
        Ok(())
    }

    /// Makes a group of the right rows with the key of the left row at hand.
    async fn gather(&mut self, join: &Join, merge: &Merge, cx: Cx<'_>) -> Result<()> {
        let ((_, right_keys), is_full) = (keys(join)?, join.kind == JoinType::Full);
        // One row says all to EXISTS.
        let one = matches!(join.kind, JoinType::Semi | JoinType::Anti) && join.on.is_none();
        self.group.key.clone_from(&self.left.key);
        loop {
            cx.breathe().await?;
            if !(one && self.group.count > 0) {
                let row = self.right.batch.take_from(self.right.at, join.right_base);
                self.group.add(row, is_full, cx).await?;
            }
            self.right.pass();
            if !self.right.ready(right_keys, cx).await? {
                break;
            }
            match order_of(&self.right.key, &self.group.key, &merge.by) {
                Ordering::Equal => {}
                // EXE-25: a null in a later column may stand before as well as behind.
                Ordering::Less if !self.right.key.iter().any(Datum::is_null) => return Err(disorder()),
                _ => break,
            }
        }
        self.begin_pairs();
        Ok(())
    }

    fn begin_pairs(&mut self) {
        self.group.restore();
        (self.matched, self.step) = (false, Step::Pairs);
    }

    fn begin_unpaired(&mut self) {
        self.group.restore();
        self.step = Step::Unpaired;
    }

    /// Appends pairs of the left row at hand with rows of the group.
    async fn pair(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<()> {
        let is_exists = matches!(join.kind, JoinType::Semi | JoinType::Anti);
        while out.len() < enough {
            cx.breathe().await?;
            let left = self.left.batch.row(self.left.at);
            if !self.group.append_next(left, cx, out).await? {
                match self.matched {
                    true => self.next_left(),
                    false => self.give_unpaired_left(join, out),
                }
                return Ok(());
            }
            let judged = cx.judge(join.on.as_ref(), self.on_waits, out.last()).await;
            if is_exists || !matches!(judged, Ok(true)) {
                out.truncate(out.len() - 1);
            }
            if !judged? {
                continue;
            }
            self.matched = true;
            if let Some(met) = self.group.met.get_mut(self.group.next - 1) {
                *met = true;
            }
            if is_exists {
                if join.kind == JoinType::Semi {
                    out.push_extended(self.left.row(), join.end);
                }
                self.next_left();
                return Ok(());
            }
        }
        Ok(())
    }

    fn next_left(&mut self) {
        self.left.pass();
        self.step = Step::Left;
    }

    /// The left row at hand was paired with no row.
    fn give_unpaired_left(&mut self, join: &Join, out: &mut Batch) {
        if !matches!(join.kind, JoinType::Inner | JoinType::Semi) {
            out.push_extended(self.left.row(), join.end);
        }
        self.next_left();
    }

    /// Full joins: the right row at hand was paired with no row.
    fn give_unpaired_right(&mut self, join: &Join, out: &mut Batch) {
        let values = out.begin();
        values.resize(values.len() + join.right_base, Datum::Null);
        values.extend_from_slice(&self.right.row()[join.right_base..]);
        out.end();
        self.right.pass();
    }

    /// Full joins: the rows of the group that have met nothing.
    async fn give_unpaired_group(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<()> {
        let nulls = vec![Datum::Null; join.right_base];
        while out.len() < enough {
            cx.breathe().await?;
            if !self.group.append_next(&nulls, cx, out).await? {
                self.group.clear();
                self.step = Step::Left;
                return Ok(());
            }
            if self.group.met[self.group.next - 1] {
                out.truncate(out.len() - 1);
            }
        }
        Ok(())
    }
}

/// The keys of both sides.
fn keys(join: &Join) -> Result<(&[Bound], &[Bound])> {
    let keys = join.hash.as_ref().map(|(left, right)| (&left[..], &right[..]));
    keys.ok_or_else(|| SqlError::internal("a merge join without keys"))
}

/// EXE-25
fn disorder() -> SqlError {
    SqlError::internal("the rows of a merge join do not come in the order of their keys")
}
