//! Executes hash joins: one side is read into a hash table (`hashed`), and each row of the other side is looked up in it.
//!
//! The table has the rows of the right side, or of the left side where the plan says so because they are fewer. Rows of the table that no row
//! met are given at the end, where the kind of the join wants them.
//!
//! A row of the join has values in the slots that the join carries (PLN-9); so has a row of the table, and a row in a file.

use super::hashed::{self, Hashed, Pair};
use super::keys::{AHEAD, columns_of};
use super::nodes::Rows;
use super::row_batch::Batch;
use super::spill::SpillReader;
use super::{Cx, Row};
use clearway_planner::gate::seeks_left;
use clearway_planner::met_keys::MetKeys;
use clearway_planner::plan::{Join, JoinType};
use clearway_syntax::error::Result;
use clearway_values::expr::Bound;
use clearway_values::types::Datum;
use std::sync::Arc;

/// The slots of a row of the join that each side fills.
pub(super) struct Slots {
    /// Those of the rows of the table.
    pub built: Box<[usize]>,
    /// Those of the rows that are looked up.
    pub probed: Box<[usize]>,
}

impl Slots {
    fn of(join: &Join) -> Self {
        let (left, right) = match &join.carried {
            Some(carried) => (carried.left.clone(), carried.right.clone()),
            None => ((0..join.right_base).collect(), (join.right_base..join.end).collect()),
        };
        let (built, probed) = if join.builds_left { (left, right) } else { (right, left) };
        Self { built, probed }
    }
}

/// The expressions by which rows are found: those of the rows of the table, and those of the rows that are looked up.
pub(super) fn keys(join: &Join) -> (&[Bound], &[Bound]) {
    let Some((left, right)) = &join.hash else { return (&[], &[]) };
    if join.builds_left { (left, right) } else { (right, left) }
}

/// Slots, and the keys of which a row must have one there.
type Sought = Vec<(usize, Arc<MetKeys>)>;

/// A hash join that is being read.
pub(super) struct HashRows {
    /// The slots to the left of the join, which its rows begin with.
    prefix: Row,
    slots: Slots,
    /// The side that is looked up, and where both sides were divided into files, that of the pair at hand: its rows are the key and what the
    /// join carries.
    probed: Rows,
    file: Option<SpillReader>,
    pairs: Vec<Pair>,
    /// Rows that are looked up, and which of them is at hand.
    batch: Batch,
    at: usize,
    /// No row is left to look up.
    ended: bool,
    table: Option<Box<Hashed>>,
    /// The next row of the table that the row at hand meets; none outside: its turn has not begun.
    chain: Option<Option<u32>>,
    /// The row at hand met one.
    matched: bool,
    /// The next row of the table that perhaps no row met.
    unmet: Option<usize>,
    /// The condition must be awaited; the keys of the side that is looked up likewise.
    on_waits: bool,
    keys_wait: bool,
    /// The columns of the side that is looked up, if its keys are columns.
    columns: Option<Box<[usize]>>,
    key: Row,
    /// Rows that were looked up, and rows of the table that they were held against, since the last breath.
    steps: usize,
}

/// So many of these steps lie between two breaths. A row costs less than what a breath counts for one, so that a breath for each costs
/// queries that find one row by most look-ups an eighth of their time.
const BURST: usize = 32;

impl HashRows {
    /// Begins to read a join, whose rows begin with `prefix`, and of which those are not wanted that lack what is `sought`: fills the table.
    pub(super) async fn open(join: &Join, prefix: &Row, sought: Sought, cx: Cx<'_>) -> Result<Self> {
        let slots = Slots::of(join);
        let mut left = Rows::new(join.left.clone(), prefix.clone());
        let mut right = Rows::new(join.right.clone(), vec![Datum::Null; join.right_base]);
        for (slot, keys) in sought {
            let side = if seeks_left(join, slot) { &mut left } else { &mut right };
            side.seek(slot, keys);
        }
        let (mut built, mut probed) = if join.builds_left { (left, right) } else { (right, left) };
        let mut pairs = Vec::new();
        let (table, file) = match hashed::open(join, &slots, &mut built, &mut probed, &mut pairs, cx).await? {
            Some((table, file)) => (Some(table), file),
            None => (None, None),
        };
        // Nothing would be found in an empty table.
        let is_empty = table.as_ref().is_none_or(|table| table.is_empty()) && pairs.is_empty();
        Ok(Self {
            prefix: prefix.clone(),
            slots,
            probed,
            file,
            pairs,
            batch: Batch::default(),
            at: 0,
            ended: table.is_none() || is_empty && !join.keeps_probed(),
            table,
            chain: None,
            matched: false,
            unmet: None,
            on_waits: join.on.as_ref().is_some_and(Bound::may_wait),
            keys_wait: keys(join).1.iter().any(Bound::may_wait),
            columns: columns_of(keys(join).1),
            key: Row::new(),
            steps: 0,
        })
    }

    /// Counts a step; breathes where there have been many.
    #[inline]
    async fn step(&mut self, cx: Cx<'_>) -> Result<()> {
        self.steps += 1;
        if self.steps < BURST {
            return Ok(());
        }
        cx.breathe_for(std::mem::take(&mut self.steps)).await
    }

    /// Appends some `want` rows; false: there are no more.
    pub(super) async fn fill(&mut self, join: &Join, cx: Cx<'_>, want: usize, out: &mut Batch) -> Result<bool> {
        let enough = out.len() + want;
        while out.len() < enough {
            if self.unmet.is_some() {
                if self.fill_unmet(join, cx, enough, out).await? {
                    return Ok(true);
                }
                self.unmet = None;
                if !self.next_pair(join, cx).await? {
                    return Ok(false);
                }
            }
            if self.chain.is_none() {
                if self.at == self.batch.len() {
                    if !self.ended {
                        self.read(join, cx, want).await?;
                    } else if join.keeps_built() {
                        self.unmet = Some(0);
                    } else if !self.next_pair(join, cx).await? {
                        return Ok(false);
                    }
                    continue;
                }
                if self.at.is_multiple_of(AHEAD) {
                    self.look_ahead();
                }
                self.matched = false;
                self.chain = Some(self.look_up(join, cx).await?);
            }
            self.step(cx).await?;
            if self.meet(join, cx, enough, out).await? {
                continue;
            }
            if !self.matched && join.keeps_probed() {
                self.put(join, true, None, out);
            }
            self.chain = None;
            self.at += 1;
        }
        Ok(true)
    }

    /// Reads rows that are looked up.
    async fn read(&mut self, join: &Join, cx: Cx<'_>, want: usize) -> Result<()> {
        self.batch.clear();
        self.at = 0;
        let Some(file) = &mut self.file else {
            self.ended = !self.probed.fill(cx, want, &mut self.batch).await?;
            return Ok(());
        };
        let width = keys(join).1.len() + self.slots.probed.len();
        while self.batch.len() < want {
            cx.breathe().await?;
            let values = self.batch.begin();
            let before = values.len();
            if !file.append_next(values).await? {
                self.ended = true;
                break;
            }
            let added = values.len() - before;
            assert_eq!(added, width, "a row in a file of a join has its key and what the join carries");
            self.batch.end();
        }
        Ok(())
    }

    /// The first row of the table with the key of the row at hand.
    async fn look_up(&mut self, join: &Join, cx: Cx<'_>) -> Result<Option<u32>> {
        let (Some(table), row, (_, keys)) = (&self.table, self.batch.row(self.at), keys(join)) else { return Ok(None) };
        if self.file.is_some() {
            return Ok(table.find(&row[..keys.len()]));
        }
        cx.values_into(keys, self.keys_wait, row, &mut self.key).await?;
        Ok(table.find(&self.key))
    }

    /// Reads what the look-ups of the row at hand, and of those behind it, will read.
    fn look_ahead(&self) {
        if let (Some(table), Some(columns), None) = (&self.table, &self.columns, &self.file) {
            table.look_ahead(columns, (self.at..self.batch.len()).map(|at| self.batch.row(at)));
        }
    }

    /// Goes to the next part of a join whose sides were divided; false: there is none.
    async fn next_pair(&mut self, join: &Join, cx: Cx<'_>) -> Result<bool> {
        self.table = None;
        match hashed::next_pair(join, &mut self.pairs, cx).await? {
            Some((table, file)) => {
                (self.table, self.file, self.ended) = (Some(table), file, false);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Appends a row of the join: of the row at hand if `is_probed`, and of this row of the table.
    fn put(&self, join: &Join, is_probed: bool, built: Option<u32>, out: &mut Batch) {
        let slots = out.slots(join.end, std::ptr::from_ref(join) as usize);
        slots[..self.prefix.len()].clone_from_slice(&self.prefix);
        if is_probed {
            let row = self.batch.row(self.at);
            match self.file.is_some() {
                true => {
                    let values = &row[row.len() - self.slots.probed.len()..];
                    self.slots.probed.iter().zip(values).for_each(|(slot, value)| slots[*slot].clone_from(value));
                }
                false => self.slots.probed.iter().for_each(|slot| slots[*slot].clone_from(&row[*slot])),
            }
        } else {
            self.slots.probed.iter().for_each(|slot| slots[*slot] = Datum::Null);
        }
        match (built, &self.table) {
            (Some(at), Some(table)) => {
                self.slots.built.iter().zip(table.row(at)).for_each(|(slot, value)| slots[*slot].clone_from(value));
            }
            _ => self.slots.built.iter().for_each(|slot| slots[*slot] = Datum::Null),
        }
        out.add();
    }

    /// Appends what the row at hand gives with rows of the table that meet the condition; false: it has met all that it has to.
    async fn meet(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<bool> {
        let is_exists = matches!(join.kind, JoinType::Semi | JoinType::Anti);
        while let Some(Some(at)) = self.chain {
            if out.len() >= enough {
                return Ok(true);
            }
            self.step(cx).await?;
            let Some(table) = &self.table else { return Ok(false) };
            let next = table.after(at);
            // A row of the left side counts once, however many rows meet it.
            let is_decided = is_exists && join.builds_left && table.was_met(at as usize) == Some(true);
            if !is_decided && self.meets(join, at, cx, out).await? {
                self.matched = true;
                if let Some(table) = &mut self.table {
                    table.meet(at);
                }
                if is_exists {
                    // The row was put for the condition; the other side of a row that exists stays null.
                    out.truncate(out.len() - 1);
                    if join.kind == JoinType::Semi {
                        let (is_probed, built) = if join.builds_left { (false, Some(at)) } else { (true, None) };
                        self.put(join, is_probed, built, out);
                    }
                    if !join.builds_left {
                        return Ok(false);
                    }
                }
            }
            self.chain = Some(next);
        }
        Ok(false)
    }

    /// Appends the pair of the row at hand and a row of the table; false: it does not meet the condition, and is not there.
    async fn meets(&mut self, join: &Join, at: u32, cx: Cx<'_>, out: &mut Batch) -> Result<bool> {
        self.put(join, true, Some(at), out);
        let judged = cx.judge(join.on.as_ref(), self.on_waits, out.last()).await;
        if !matches!(judged, Ok(true)) {
            out.truncate(out.len() - 1);
            cx.note_removed(join.on.as_ref(), 1);
        }
        judged
    }

    /// Rows of the table that no row met; false: there are no more.
    async fn fill_unmet(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<bool> {
        while out.len() < enough {
            cx.breathe().await?;
            let (Some(at), Some(table)) = (self.unmet, &self.table) else { return Ok(false) };
            let Some(met) = table.was_met(at) else { return Ok(false) };
            if !met {
                self.put(join, false, Some(at as u32), out);
            }
            self.unmet = Some(at + 1);
        }
        Ok(true)
    }
}
