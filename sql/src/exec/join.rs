//! Executes joins: with a hash table of the right side, or by reading the right side anew for each row of the left side.

use super::hashed::{self, Hashed, Pair};
use super::nodes::Rows;
use super::row_batch::Batch;
use super::scan::TableRows;
use super::spill::SpillReader;
use super::{Cx, Row};
use crate::error::Result;
use crate::expr::Bound;
use crate::planner::plan::{Join, JoinType, Node};
use crate::types::Datum;

/// A join that is being read.
pub(super) struct JoinRows {
    left: Rows,
    /// The left side of the pair of files at hand, if the sides were divided, and the pairs that are left.
    left_file: Option<SpillReader>,
    pairs: Vec<Pair>,
    /// Rows of the left side, and which of them is at hand.
    lefts: Batch,
    at: usize,
    /// The left side has no more rows.
    left_ended: bool,
    /// The right side by its keys, if it is read once.
    table: Option<Box<Hashed>>,
    /// What of the right side the row at hand has still to meet; none: its turn has not begun.
    right: Option<Right>,
    matched: bool,
    /// Full joins: the next right row that perhaps no left row met.
    unmet: Option<usize>,
    /// The condition must be awaited; the keys of the left side likewise.
    on_waits: bool,
    keys_wait: bool,
    key: Row,
}

/// What a row of the left side has still to meet.
enum Right {
    Scan(TableRows),
    Rows(Box<Rows>),
    /// The next row of the hash table; none: no more.
    Chain(Option<u32>),
}

impl JoinRows {
    /// Begins to read a join, whose rows begin with `prefix`.
    pub(super) async fn open(join: &Join, prefix: &Row, cx: Cx<'_>) -> Result<Self> {
        let mut left = Rows::new(join.left.clone(), prefix.clone());
        let (mut pairs, mut table, mut left_file, mut left_ended) = (Vec::new(), None, None, false);
        if let Some((left_keys, right_keys)) = &join.hash {
            match hashed::open(join, (left_keys, right_keys), &mut left, &mut pairs, cx).await? {
                Some((side, file)) => (table, left_file) = (Some(side), file),
                None => left_ended = true,
            }
        }
        Ok(Self {
            left,
            left_file,
            pairs,
            lefts: Batch::default(),
            at: 0,
            left_ended,
            table,
            right: None,
            matched: false,
            unmet: None,
            on_waits: join.on.as_ref().is_some_and(Bound::may_wait),
            keys_wait: join.hash.iter().flat_map(|(left, _)| left).any(Bound::may_wait),
            key: Row::new(),
        })
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
            if self.right.is_none() {
                if self.at == self.lefts.len() {
                    if !self.left_ended {
                        self.read_left(cx, want).await?;
                    } else if join.kind == JoinType::Full {
                        self.unmet = Some(0);
                    } else if !self.next_pair(join, cx).await? {
                        return Ok(false);
                    }
                    continue;
                }
                self.matched = false;
                self.right = Some(self.meet(join, cx).await?);
            }
            cx.breathe().await?;
            let mark = out.len();
            let more = match self.candidates(join, cx, enough, out).await {
                Ok(more) => more,
                Err(failed) => {
                    if matches!(join.kind, JoinType::Semi | JoinType::Anti) {
                        out.truncate(mark);
                    }
                    return Err(failed);
                }
            };
            self.matched |= out.len() > mark;
            let decided = self.matched && matches!(join.kind, JoinType::Semi | JoinType::Anti);
            if decided {
                // One match says all.
                out.truncate(mark);
                if join.kind == JoinType::Semi {
                    out.push_extended(self.lefts.row(self.at), join.end);
                }
            } else if !more && !self.matched && !matches!(join.kind, JoinType::Inner | JoinType::Semi) {
                out.push_extended(self.lefts.row(self.at), join.end);
            }
            if decided || !more {
                self.right = None;
                self.at += 1;
            }
        }
        Ok(true)
    }

    /// Reads rows of the left side.
    async fn read_left(&mut self, cx: Cx<'_>, want: usize) -> Result<()> {
        self.lefts.clear();
        self.at = 0;
        let Some(file) = &mut self.left_file else {
            self.left_ended = !self.left.fill(cx, want, &mut self.lefts).await?;
            return Ok(());
        };
        while self.lefts.len() < want {
            cx.breathe().await?;
            match file.next().await? {
                Some(row) => self.lefts.push(&row, &[]),
                None => {
                    self.left_ended = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Goes to the next part of a join whose sides were divided; false: there is none.
    async fn next_pair(&mut self, join: &Join, cx: Cx<'_>) -> Result<bool> {
        let Some((keys, _)) = &join.hash else { return Ok(false) };
        if self.pairs.is_empty() {
            return Ok(false);
        }
        self.table = None;
        match hashed::next_pair(join, keys, &mut self.pairs, cx).await? {
            Some((table, file)) => {
                (self.table, self.left_file, self.left_ended) = (Some(table), file, false);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// What the row at hand has to meet.
    async fn meet(&mut self, join: &Join, cx: Cx<'_>) -> Result<Right> {
        let left = self.lefts.row(self.at);
        if let (Some(table), Some((keys, _))) = (&self.table, &join.hash) {
            cx.values_into(keys, self.keys_wait, left, &mut self.key).await?;
            return Ok(Right::Chain(table.find(&self.key)));
        }
        Ok(match &*join.right {
            Node::Scan(scan) if cx.run.state.measured.is_none() => match cx.point_now(scan, left) {
                Some(found) => Right::Scan(TableRows::Found(found?)),
                None => Right::Scan(cx.open_scan(scan, left).await?),
            },
            _ => Right::Rows(Box::new(Rows::new(join.right.clone(), left.to_vec()))),
        })
    }

    /// Appends pairs of the row at hand with rows of the right side that meet the condition; false: it has met all.
    async fn candidates(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<bool> {
        let left = self.lefts.row(self.at);
        let is_exists = matches!(join.kind, JoinType::Semi | JoinType::Anti);
        let mark = out.len();
        let want = if is_exists { 1 } else { enough - mark };
        let more = match (&mut self.right, &mut self.table) {
            (Some(Right::Scan(rows)), _) => match &*join.right {
                Node::Scan(scan) => cx.read_rows(rows, scan, left, want, out).await?,
                _ => false,
            },
            (Some(Right::Rows(rows)), _) => rows.fill(cx, want, out).await?,
            (Some(Right::Chain(next)), Some(table)) => {
                while let Some(row) = *next {
                    if out.len() >= mark + want {
                        return Ok(true);
                    }
                    cx.breathe().await?;
                    out.push(left, table.row(row));
                    let judged = cx.judge(join.on.as_ref(), self.on_waits, out.last()).await;
                    if !matches!(judged, Ok(true)) {
                        out.truncate(out.len() - 1);
                    }
                    if judged? {
                        table.meet(row);
                    }
                    *next = table.after(row);
                }
                return Ok(false);
            }
            _ => false,
        };
        cx.keep(join.on.as_ref(), self.on_waits, mark, out).await?;
        Ok(more)
    }

    /// Full joins: right rows that no left row met.
    async fn fill_unmet(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<bool> {
        let (Some(at), Some(table)) = (&mut self.unmet, &self.table) else { return Ok(false) };
        while out.len() < enough {
            cx.breathe().await?;
            let Some(met) = table.was_met(*at) else { return Ok(false) };
            if !met {
                let values = out.begin();
                values.resize(values.len() + join.right_base, Datum::Null);
                values.extend_from_slice(table.row(*at as u32));
                out.end();
            }
            *at += 1;
        }
        Ok(true)
    }
}
