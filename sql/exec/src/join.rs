//! Executes nested loops: the right side of a join is read anew for each row of the left side.

use super::again::Again;
use super::nodes::Rows;
use super::row_batch::Batch;
use super::scan::TableRows;
use super::system::{SystemRows, is_found_now};
use super::{Cx, Row};
use clearway_planner::plan::{Join, JoinType, Node};
use clearway_syntax::error::Result;
use clearway_values::expr::Bound;
use std::sync::Arc;

/// A nested loop that is being read.
pub(super) struct JoinRows {
    left: Rows,
    /// Rows of the left side, and which of them is at hand.
    lefts: Batch,
    at: usize,
    /// The left side has no more rows.
    left_ended: bool,
    /// What of the right side the row at hand has still to meet; none: its turn has not begun.
    right: Option<Right>,
    /// Memory of the walks over the right side.
    again: Again,
    matched: bool,
    /// The condition must be awaited.
    on_waits: bool,
    /// The rows of the right side are found without a wait (`found_now`).
    is_found_now: bool,
}

/// What a row of the left side has still to meet.
enum Right {
    Scan(TableRows),
    System(Box<SystemRows>),
    /// Rows of a system table, and how many of them it has met.
    Found(Arc<[Row]>, usize),
    Rows(Box<Rows>),
}

impl JoinRows {
    /// Begins to read a join, whose rows begin with `prefix`.
    pub(super) fn open(join: &Join, prefix: &Row) -> Self {
        assert!(
            join.kind != JoinType::Full,
            "the right rows that a full join met are known by a hash table or a merge only"
        );
        Self {
            left: Rows::new(join.left.clone(), prefix.clone()),
            lefts: Batch::default(),
            at: 0,
            left_ended: false,
            right: None,
            again: Again::default(),
            matched: false,
            on_waits: join.on.as_ref().is_some_and(Bound::may_wait),
            is_found_now: matches!(&*join.right, Node::System(scan) if is_found_now(scan)),
        }
    }

    /// Appends some `want` rows; false: there are no more.
    pub(super) async fn fill(&mut self, join: &Join, cx: Cx<'_>, want: usize, out: &mut Batch) -> Result<bool> {
        let enough = out.len() + want;
        while out.len() < enough {
            if self.right.is_none() {
                if self.at == self.lefts.len() {
                    if self.left_ended {
                        return Ok(false);
                    }
                    self.lefts.clear();
                    self.at = 0;
                    self.left_ended = !self.left.fill(cx, want, &mut self.lefts).await?;
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
                if let Some(Right::Scan(rows)) = self.right.take() {
                    self.again.keep(rows);
                }
                self.at += 1;
            }
        }
        Ok(true)
    }

    /// What the row at hand has to meet.
    async fn meet(&mut self, join: &Join, cx: Cx<'_>) -> Result<Right> {
        let left = self.lefts.row(self.at);
        Ok(match &*join.right {
            Node::Scan(scan) if cx.run.state.measured.is_none() => match cx.point_now(scan, left) {
                Some(found) => Right::Scan(TableRows::Found(found?)),
                None => Right::Scan(cx.open_scan_again(scan, left, &mut self.again).await?),
            },
            Node::System(scan) if cx.run.state.measured.is_none() => {
                let found = if self.is_found_now { cx.found_now(scan, left)? } else { None };
                match found {
                    Some(rows) => Right::Found(rows, 0),
                    None => Right::System(Box::new(cx.open_system(scan, left).await?)),
                }
            }
            _ => Right::Rows(Box::new(Rows::new(join.right.clone(), left.to_vec()))),
        })
    }

    /// Appends pairs of the row at hand with rows of the right side that meet the condition; false: it has met all.
    async fn candidates(&mut self, join: &Join, cx: Cx<'_>, enough: usize, out: &mut Batch) -> Result<bool> {
        let left = self.lefts.row(self.at);
        let is_exists = matches!(join.kind, JoinType::Semi | JoinType::Anti);
        let mark = out.len();
        let want = if is_exists { 1 } else { enough - mark };
        let more = match &mut self.right {
            Some(Right::Scan(rows)) => match &*join.right {
                Node::Scan(scan) => cx.read_rows(rows, scan, left, want, out).await?,
                _ => false,
            },
            Some(Right::System(rows)) => match &*join.right {
                Node::System(scan) => cx.read_system(rows, scan, left, want, out).await?,
                _ => false,
            },
            Some(Right::Found(rows, next)) => match &*join.right {
                Node::System(scan) => cx.put_found(scan, (rows, next), left, want, out)?,
                _ => false,
            },
            Some(Right::Rows(rows)) => rows.fill(cx, want, out).await?,
            None => false,
        };
        cx.keep(join.on.as_ref(), self.on_waits, mark, out).await?;
        Ok(more)
    }
}
