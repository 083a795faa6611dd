//! Reads the nodes of a plan: scans, functions, queries in FROM, joins.

use super::expand::SetRows;
use super::hash_join::HashRows;
use super::join::JoinRows;
use super::kept::Place;
use super::merge_join::MergeRows;
use super::query::QueryRows;
use super::row_batch::{Batch, ROWS};
use super::row_list::{RowList, RowReader};
use super::scan::TableRows;
use super::system::SystemRows;
use super::{BoxFuture, Cx, Row};
use clearway_base::stack;
use clearway_base::usage::Counted;
use clearway_planner::gate::{may_seek, with_keys};
use clearway_planner::met_keys::MetKeys;
use clearway_planner::plan::{Derived, Node, Scan};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::Bound;
use clearway_values::types::Datum;
use std::sync::Arc;

/// A node that is being read.
pub struct Rows {
    node: Arc<Node>,
    prefix: Row,
    state: State,
    /// Rows that have been read ahead for a consumer that takes them one at a time, how many it has taken, and how many are asked for next.
    ready: Batch,
    taken: usize,
    ask: usize,
    /// So many of the first rows are still to be stepped over.
    pass: usize,
    /// What failed behind the rows that were given last (EXE-17).
    failed: Option<SqlError>,
    /// Slots in which a row must have one of some keys, or it is not wanted (GAT-3); and the scan that asks for them in the node's place.
    sought: Vec<(usize, Arc<MetKeys>)>,
    seeking: Option<Box<Scan>>,
}

enum State {
    Start,
    Table(TableRows),
    System(Box<SystemRows>),
    List(std::vec::IntoIter<Row>),
    /// The rows of a working table, and what reads them.
    Work(Arc<RowList>, RowReader),
    /// Functions side by side, and how many of their rows have been given.
    Functions(Vec<SetRows>, i64),
    Derived(Box<QueryRows>),
    /// An expression of WITH whose rows are kept: its number, and how many have been read.
    Kept(usize, Place),
    Inner(Box<Rows>),
    Join(Box<JoinRows>),
    Hash(Box<HashRows>),
    Merge(Box<MergeRows>),
    End,
}

impl Rows {
    /// Begins to read a node; its rows begin with `prefix`.
    pub fn new(node: Arc<Node>, prefix: Row) -> Self {
        let (state, ready) = (State::Start, Batch::default());
        let (sought, seeking) = (Vec::new(), None);
        Self { node, prefix, state, ready, taken: 0, ask: 1, pass: 0, failed: None, sought, seeking }
    }

    /// Whether rows may be left out by what they have in a slot.
    pub(super) fn may_seek(&self, slot: usize) -> bool {
        matches!(self.state, State::Start) && may_seek(&self.node, slot)
    }

    /// Says that rows are not wanted that have none of these keys in this slot; some may be given nevertheless.
    pub(super) fn seek(&mut self, slot: usize, keys: Arc<MetKeys>) {
        self.sought.push((slot, keys));
    }

    /// Goes on reading a scan where others have read what came before.
    pub(super) fn of_rest(&self, rest: TableRows) -> Self {
        Self { state: State::Table(rest), ..Self::new(self.node.clone(), self.prefix.clone()) }
    }

    /// Begins with no rows left: others have read them all.
    pub(super) fn of_none(&self) -> Self {
        Self { state: State::End, ..Self::new(self.node.clone(), self.prefix.clone()) }
    }

    /// The address by which the node is measured.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.node) as usize
    }

    /// Says that so many rows will be taken at once.
    pub fn expect(&mut self, rows: usize) {
        self.ask = rows.clamp(1, ROWS);
    }

    /// Says that so many of the first rows are not wanted; false: they are given nevertheless.
    pub fn pass_over(&mut self, rows: usize) -> bool {
        let passes = matches!((&*self.node, &self.state), (Node::Scan(_), State::Start));
        self.pass = if passes { rows } else { 0 };
        passes
    }

    /// The next row that has been read ahead; none: ask `ahead`.
    pub fn ready(&mut self) -> Option<&[Datum]> {
        if self.taken == self.ready.len() {
            return None;
        }
        self.taken += 1;
        Some(self.ready.row(self.taken - 1))
    }

    /// Reads ahead, first little and then more; false: there are no more rows.
    pub async fn ahead(&mut self, cx: Cx<'_>) -> Result<bool> {
        let mut ready = std::mem::take(&mut self.ready);
        let mut more = true;
        ready.clear();
        self.taken = 0;
        while more && ready.len() == 0 {
            more = self.fill(cx, self.ask, &mut ready).await?;
        }
        self.ask = (self.ask * 8).min(ROWS);
        self.ready = ready;
        Ok(self.ready.len() > 0)
    }

    /// The one row of a table that is read by its whole key, if that needs no wait; none: ask `next`.
    fn point(&mut self, cx: Cx<'_>) -> Option<Result<Option<Row>>> {
        let (State::Start, Node::Scan(scan)) = (&self.state, &*self.node) else { return None };
        if cx.run.state.measured.is_some() || self.pass > 0 {
            return None;
        }
        let found = cx.point_now(scan, &self.prefix)?;
        self.state = State::End;
        Some(found)
    }

    /// The next row.
    pub async fn pull(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        if self.taken == self.ready.len() {
            if let Some(row) = self.point(cx) {
                return row;
            }
            if matches!(self.state, State::End) || !self.ahead(cx).await? {
                return Ok(None);
            }
        }
        self.taken += 1;
        Ok(Some(self.ready.take(self.taken - 1)))
    }

    /// Appends the values of the next row; false: there is none.
    pub async fn pull_into(&mut self, cx: Cx<'_>, out: &mut Row) -> Result<bool> {
        if self.taken == self.ready.len() {
            if let Some(row) = self.point(cx) {
                return row.map(|row| row.map(|row| out.extend(row)).is_some());
            }
            if matches!(self.state, State::End) || !self.ahead(cx).await? {
                return Ok(false);
            }
        }
        self.taken += 1;
        out.extend(self.ready.take_from(self.taken - 1, 0));
        Ok(true)
    }

    /// Appends some `want` rows, at least one unless there is none left; false: there are no more behind them.
    pub fn fill<'a>(&'a mut self, cx: Cx<'a>, want: usize, out: &'a mut Batch) -> BoxFuture<'a, Result<bool>> {
        let Some(measured) = &cx.run.state.measured else { return self.fill_rows(cx, want, out) };
        let (address, is_first) = (Arc::as_ptr(&self.node) as usize, matches!(self.state, State::Start));
        Box::pin(async move {
            let (began, before, pass) = (measured.begin(), out.len(), self.pass);
            let (more, usage) = Counted::new(self.fill_rows(cx, want, out)).await;
            let more = more?;
            measured.note(address, is_first, (began, usage), out.len() - before + (pass - self.pass));
            Ok(more)
        })
    }

    fn fill_rows<'a>(&'a mut self, cx: Cx<'a>, want: usize, out: &'a mut Batch) -> BoxFuture<'a, Result<bool>> {
        Box::pin(stack::deeper_polls(async move {
            if let Some(failed) = self.failed.take() {
                return Err(failed);
            }
            let mark = out.len();
            let filled = self.fill_by_kind(cx, want, out).await;
            self.failed = out.failed_behind(mark, filled)?;
            Ok(!matches!(self.state, State::End) || self.failed.is_some())
        }))
    }

    /// The same by the kind of the node. After an error `out` has the rows before it, and no other.
    async fn fill_by_kind(&mut self, cx: Cx<'_>, want: usize, out: &mut Batch) -> Result<()> {
        if matches!(self.state, State::Start) {
            self.state = self.open(cx).await?;
        }
        let node = self.node.clone();
        let mark = out.len();
        let more = match (&mut self.state, &*node) {
            (State::Table(rows), Node::Scan(scan)) => {
                let scan = self.seeking.as_deref().unwrap_or(scan);
                let there = self.pass == 0
                    || Box::pin(cx.pass_over(rows, scan, &mut self.pass, (&self.prefix, &mut *out))).await?;
                there && cx.read_rows(rows, scan, &self.prefix, want, out).await?
            }
            (State::Table(rows), Node::Sample(s)) => cx.read_rows(rows, &s.scan, &self.prefix, want, out).await?,
            (State::System(rows), Node::System(scan)) => cx.read_system(rows, scan, &self.prefix, want, out).await?,
            (State::Join(rows), Node::Join(join)) => rows.fill(join, cx, want, out).await?,
            (State::Hash(rows), Node::Join(join)) => rows.fill(join, cx, want, out).await?,
            (State::Merge(rows), Node::Join(join)) => match &join.merge {
                Some(merge) => Box::pin(rows.fill(join, merge, cx, want, out)).await?,
                None => false,
            },
            (State::Derived(rows), Node::Derived(d)) => {
                let outer: Vec<&[Datum]> = lateral_outer(d, &self.prefix, cx);
                let more =
                    rows.fill(Cx { run: cx.run, outer: &outer }, want, (&self.prefix, d.given.as_deref()), out).await?;
                keep(d.filter.as_ref(), mark, out, cx).await?;
                more
            }
            (State::Inner(rows), Node::Filter { filter, .. }) => {
                let more = rows.fill(cx, want, out).await?;
                keep(Some(filter), mark, out, cx).await?;
                more
            }
            (State::List(rows), _) => {
                for row in rows.take(want) {
                    cx.breathe().await?;
                    out.push_owned(row);
                }
                rows.len() > 0
            }
            (State::Work(rows, reader), Node::Work(scan)) => {
                let more = work_rows((rows, reader), want, &self.prefix, cx, out).await?;
                keep(scan.filter.as_ref(), mark, out, cx).await?;
                more
            }
            (State::Functions(sets, given), Node::Function(_)) => {
                let mut more = true;
                while more && out.len() < mark + want {
                    cx.breathe().await?;
                    match function_row(&node, sets, given, &self.prefix, cx)? {
                        Some(row) => out.push(&row, &[]),
                        None => more = false,
                    }
                }
                more
            }
            (State::Kept(id, place), Node::Derived(d)) => {
                let more = kept_rows(d, (*id, place), want, &self.prefix, cx, out).await?;
                keep(d.filter.as_ref(), mark, out, cx).await?;
                more
            }
            _ => false,
        };
        if !more {
            self.state = State::End;
        }
        Ok(())
    }

    async fn open(&mut self, cx: Cx<'_>) -> Result<State> {
        if let (Node::Scan(scan), false) = (&*self.node, self.sought.is_empty()) {
            self.seeking = with_keys(scan, &self.sought).map(Box::new);
        }
        Ok(match &*self.node {
            Node::One => State::List(vec![self.prefix.clone()].into_iter()),
            Node::Scan(scan) => {
                let scan = self.seeking.as_deref().unwrap_or(scan);
                State::Table(cx.open_scan(scan, &self.prefix).await?)
            }
            Node::System(scan) => State::System(Box::new(cx.open_system(scan, &self.prefix).await?)),
            Node::Work(scan) => {
                let rows = cx.run.state.work(scan.id);
                let reader = rows.reader();
                State::Work(rows, reader)
            }
            Node::Function(f) => {
                let mut sets = Vec::with_capacity(f.calls.len());
                for call in &f.calls {
                    sets.push(SetRows::open(call, &self.prefix, &[], cx).await?);
                }
                State::Functions(sets, 0)
            }
            Node::Sample(sample) => State::Table(cx.open_sample(sample, &self.prefix)?),
            Node::Derived(Derived { kept: Some(kept), .. }) if kept.is_kept() => State::Kept(kept.id, Place::default()),
            Node::Derived(d) => State::Derived(Box::new(QueryRows::new(d.query.clone()))),
            Node::Filter { input, .. } => {
                let mut rows = Rows::new(input.clone(), self.prefix.clone());
                rows.sought = std::mem::take(&mut self.sought);
                State::Inner(Box::new(rows))
            }
            Node::Join(join) => match &join.merge {
                Some(merge) => State::Merge(Box::new(Box::pin(MergeRows::open(join, merge, &self.prefix, cx)).await?)),
                None if join.hash.is_some() => State::Hash(Box::new(
                    HashRows::open(join, &self.prefix, std::mem::take(&mut self.sought), cx).await?,
                )),
                None => State::Join(Box::new(JoinRows::open(join, &self.prefix))),
            },
        })
    }
}

/// Appends rows of a query of WITH that are kept, from a place on; false: there are no more.
async fn kept_rows(
    d: &Derived,
    (id, place): (usize, &mut Place),
    want: usize,
    prefix: &[Datum],
    cx: Cx<'_>,
    out: &mut Batch,
) -> Result<bool> {
    let enough = out.len() + want;
    while out.len() < enough {
        cx.breathe().await?;
        match (cx.kept_row(d, id, place).await?, &d.given) {
            (Some(columns), None) => out.push(prefix, &columns),
            (Some(columns), Some(given)) => out.push_columns(prefix, &columns, given),
            (None, _) => return Ok(false),
        }
    }
    Ok(true)
}

/// The next rows of a working table, behind the slots to their left; whether there are more.
async fn work_rows(
    (rows, reader): (&RowList, &mut RowReader),
    want: usize,
    prefix: &Row,
    cx: Cx<'_>,
    out: &mut Batch,
) -> Result<bool> {
    for _ in 0..want {
        cx.breathe().await?;
        if let Some(row) = reader.next_of_file().await? {
            out.push(prefix, &row);
            continue;
        }
        let Some(columns) = reader.buffered(rows) else { return Ok(false) };
        out.push(prefix, columns);
    }
    Ok(reader.has_more(rows))
}

/// The next rows of functions, side by side, behind the slots to their left.
fn function_row(node: &Node, sets: &mut [SetRows], given: &mut i64, prefix: &Row, cx: Cx<'_>) -> Result<Option<Row>> {
    let Node::Function(f) = node else { return Ok(None) };
    let mut row = Row::with_capacity(prefix.len() + sets.len() + 1);
    row.extend_from_slice(prefix);
    let mut any = false;
    for (set, call) in sets.iter_mut().zip(&f.calls) {
        match set.next(cx)? {
            Some(values) => {
                any = true;
                row.extend(values);
            }
            None => row.resize(row.len() + call.columns.len(), Datum::Null),
        }
    }
    *given += 1;
    if f.ordinality {
        row.push(Datum::Int8(*given));
    }
    Ok(any.then_some(row))
}

/// Drops rows from `mark` on that do not meet a condition.
async fn keep(filter: Option<&Bound>, mark: usize, out: &mut Batch, cx: Cx<'_>) -> Result<()> {
    cx.keep(filter, filter.is_some_and(Bound::may_wait), mark, out).await
}

fn lateral_outer<'a>(d: &Derived, prefix: &'a [Datum], cx: Cx<'a>) -> Vec<&'a [Datum]> {
    let own = d.lateral.then_some(prefix);
    own.into_iter().chain(cx.outer.iter().copied()).collect()
}
