//! Executes one level of a query: filter, groups, order, locks, target list, DISTINCT, LIMIT.
//!
//! ```text
//! source -> filter -> [groups] -> [windows] -> [sort] -> lock rows -> [functions that give rows] -> targets -> [distinct] -> offset, limit
//! ```
//! Every step after the sort is lazy, so that `FOR UPDATE SKIP LOCKED LIMIT 1` locks one row.

use super::collect::{collect, columns_given, plain};
use super::distinct::FirstRows;
use super::expand::Expansion;
use super::external::Merge;
use super::measure::{Place, place};
use super::nodes::Rows;
use super::recursion::Recursion;
use super::row_batch::{Batch, ROWS};
use super::scan::TableRows;
use super::set_operation::SetRows;
use super::sort::{SortedRows, Sorter, sorted};
use super::ties::Ties;
use super::{BoxFuture, Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_base::waits::now_ns;
use clearway_base::{breath, stack};
use clearway_planner::explain::Step;
use clearway_planner::order::relied_on;
use clearway_planner::passed_over::MANY;
use clearway_planner::plan::{Access, Body, Distinct, Node, Query, Scan, Select};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use std::sync::Arc;

/// A query that is being read.
pub struct QueryRows {
    query: Arc<Query>,
    source: Source,
    /// The row that functions of the select list are expanding.
    expansion: Option<Box<Expansion>>,
    /// DISTINCT.
    first: Option<Box<FirstRows>>,
    skip: i64,
    left: Option<i64>,
    ties: Ties,
    /// What sorting, grouping, a set operation or DISTINCT has of the statement's memory.
    held: Option<Held>,
    /// What failed behind the rows that were given last (EXE-17).
    failed: Option<SqlError>,
    /// Whether its rows can be given without a wait once they are in memory; none: not yet known.
    at_once: Option<bool>,
    /// How many rows SKIP LOCKED has passed over, and since when.
    passed_over: (u32, u64),
}

enum Source {
    Start,
    /// Rows of the source, still to be filtered.
    Stream(Rows),
    /// Rows before the target list.
    Inputs(SortedRows),
    /// Rows of the output.
    Outputs(SortedRows),
    Set(Box<SetRows>),
    /// Rows that DISTINCT put aside.
    Aside(Box<Merge>),
    /// A recursive query.
    Recursion(Box<Recursion>),
}

impl QueryRows {
    /// Begins to read a query.
    pub fn new(query: Arc<Query>) -> Self {
        Self {
            query,
            source: Source::Start,
            expansion: None,
            first: None,
            skip: 0,
            left: None,
            ties: Ties::default(),
            held: None,
            failed: None,
            at_once: None,
            passed_over: (0, 0),
        }
    }

    /// The next row of the output.
    pub fn next<'a>(&'a mut self, cx: Cx<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        let Some(measured) = &cx.run.state.measured else { return self.next_row(cx) };
        let (address, is_first) = (Arc::as_ptr(&self.query) as usize, matches!(self.source, Source::Start));
        measured.row(address, is_first, self.next_row(cx))
    }

    fn next_row<'a>(&'a mut self, cx: Cx<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(stack::deeper_polls(self.advance(cx)))
    }

    /// Appends some `want` rows of the output behind `prefix`, or these columns of them; false: there are no more.
    pub fn fill<'a>(
        &'a mut self,
        cx: Cx<'a>,
        want: usize,
        (prefix, given): (&'a [Datum], Option<&'a [usize]>),
        out: &'a mut Batch,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(stack::deeper_polls(async move {
            if let Some(failed) = self.failed.take() {
                return Err(failed);
            }
            let (mark, mut more) = (out.len(), true);
            let filled = self.fill_outputs(cx, (mark + want, &mut more), (prefix, given), out).await;
            self.failed = out.failed_behind(mark, filled)?;
            Ok(more)
        }))
    }

    async fn fill_outputs(
        &mut self,
        cx: Cx<'_>,
        (enough, more): (usize, &mut bool),
        (prefix, given): (&[Datum], Option<&[usize]>),
        out: &mut Batch,
    ) -> Result<()> {
        while out.len() < enough {
            let row = match self.buffered(cx) {
                Some(row) => Some(row?),
                None if cx.run.state.measured.is_some() => self.next(cx).await?,
                None => self.advance(cx).await?,
            };
            let Some(mut row) = row else {
                *more = false;
                return Ok(());
            };
            let values = out.begin();
            values.extend_from_slice(prefix);
            match given {
                None => values.extend(row),
                Some(given) => values.extend(given.iter().map(|at| std::mem::replace(&mut row[*at], Datum::Null))),
            }
            out.end();
        }
        Ok(())
    }

    async fn advance(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        if matches!(self.source, Source::Start) {
            let query = self.query.clone();
            if cx.run.state.measured.is_none()
                && let Some((select, scan)) = point(&query)
            {
                self.source = Source::Outputs(Vec::new().into());
                if let Some(row) = cx.read_point(select, scan).await? {
                    return Ok(row);
                }
            }
            self.open(cx).await?;
        }
        loop {
            let counted = self.left.is_none_or(|n| n > 0);
            if !counted && (!self.query.ties || self.ties.ended()) {
                return Ok(None);
            }
            let Some(mut row) = self.output(cx).await? else { return Ok(None) };
            if self.query.ties && !self.ties.takes(&self.query, &mut row, counted, cx).await? {
                return Ok(None);
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            if let Some(n) = &mut self.left {
                *n -= 1;
            }
            return Ok(Some(row));
        }
    }

    /// The next row, if it has been read ahead or sorted and nothing about it can wait; none: ask `next`.
    pub fn buffered(&mut self, cx: Cx<'_>) -> Option<Result<Row>> {
        let Body::Select(select) = &self.query.body else { return None };
        let query = &self.query;
        let counted = self.left.is_none_or(|n| n > 0) && self.skip == 0;
        if !counted || cx.run.state.measured.is_some() || !*self.at_once.get_or_insert_with(|| at_once(query, select)) {
            return None;
        }
        let out = match &mut self.source {
            Source::Stream(rows) if select.distinct.is_none() => loop {
                if let Err(stopped) = breath::step(breath::ROW) {
                    break Err(stopped.into());
                }
                let row = rows.ready()?;
                match cx.holds_now(select.filter.as_ref(), row) {
                    Ok(false) => {}
                    Ok(true) => break cx.values_now(&select.targets, row, &[]),
                    Err(e) => break Err(e),
                }
            },
            Source::Inputs(rows @ SortedRows::List(..)) => loop {
                if let Err(stopped) = breath::step(breath::ROW) {
                    break Err(stopped.into());
                }
                if self.first.as_ref().is_some_and(|first| first.is_full()) {
                    return None;
                }
                let row = rows.next_now()?;
                let out = cx.values_now(&select.targets, &row, row.get(select.width..).unwrap_or(&[]));
                let (Ok(values), Some(_)) = (&out, &select.distinct) else { break out };
                let first = self.first.get_or_insert_with(|| Box::new(FirstRows::new(Kind::Distinct)));
                match first.is_first_now(values, cx) {
                    Ok(true) => break out,
                    Ok(false) => {}
                    Err(e) => break Err(e),
                }
            },
            Source::Outputs(rows) => {
                if let Err(stopped) = breath::step(breath::ROW) {
                    return Some(Err(stopped.into()));
                }
                Ok(rows.next_now()?)
            }
            _ => return None,
        };
        if let (Some(n), Ok(_)) = (&mut self.left, &out) {
            *n -= 1;
        }
        Some(out)
    }

    /// All rows, held as `held` says.
    pub async fn all(mut self, cx: Cx<'_>, held: &mut Held) -> Result<Vec<Row>> {
        let mut out = Vec::new();
        while let Some(row) = self.next(cx).await? {
            cx.breathe().await?;
            out.push(row);
            held.grow()?;
        }
        Ok(out)
    }

    async fn open(&mut self, cx: Cx<'_>) -> Result<()> {
        let query = self.query.clone();
        self.left = count(query.limit.as_ref(), "LIMIT", "2201W", cx).await?;
        self.skip = count(query.offset.as_ref(), "OFFSET", "2201X", cx).await?.unwrap_or(0);
        // Nothing below LIMIT 0 is carried out, as in PostgreSQL: nothing fails or changes there.
        self.source = match self.left {
            Some(0) => Source::Outputs(Vec::new().into()),
            _ => self.begin(&query, cx).await?,
        };
        Ok(())
    }

    /// Where the rows of a query of which some are wanted come from.
    async fn begin(&mut self, query: &Query, cx: Cx<'_>) -> Result<Source> {
        Ok(match &query.body {
            Body::Select(select) => {
                let mut source = Rows::new(select.source.clone(), Vec::new());
                let sorted = query.sort.is_empty() || in_order(&select.source, cx);
                let late_order = select.sets.as_ref().is_some_and(|s| s.in_order);
                if select.grouping.is_none() && select.windows.is_empty() && sorted && !late_order {
                    self.pass_over(query, select, &mut source);
                    if let (Some(n), None, false) = (self.left, &select.filter, query.ties) {
                        source.expect(usize::try_from(n.saturating_add(self.skip)).unwrap_or(ROWS));
                    }
                    Source::Stream(source)
                } else {
                    let grouped = select.grouping.is_some();
                    // Only so many rows are asked for, if each row of the order is one of the output.
                    let one_to_one = select.locks.is_empty() && select.distinct.is_none() && select.sets.is_none();
                    let one_to_one = one_to_one && !query.ties;
                    let first = self.left.filter(|_| one_to_one).map(|n| n.saturating_add(self.skip));
                    let first = first.and_then(|n| usize::try_from(n).ok());
                    let held = self.held.insert(Held::new(if grouped { Kind::Groups } else { Kind::Sort }));
                    let began = cx.step_begins();
                    let source = match columns_given(select) {
                        Some(given) => {
                            Source::Outputs(plain(source, select, (&query.sort, first), Some(&given), cx, held).await?)
                        }
                        None => Source::Inputs(collect(source, select, &query.sort, first, cx, held).await?),
                    };
                    cx.note_step(sorted_at(query), began, 0);
                    source
                }
            }
            Body::Values(rows) => {
                let mut out = Vec::new();
                for row in rows {
                    cx.breathe().await?;
                    out.push(cx.values(row, &[], &[]).await?);
                }
                let held = self.held.insert(Held::new(Kind::Sort));
                Source::Outputs(sorted(out, &query.sort, None, None, cx, held).await?)
            }
            Body::Recursive { all, anchor, step, work } => {
                Source::Recursion(Box::new(Recursion::new(*all, anchor.clone(), step.clone(), *work)))
            }
            Body::SetOp { op, all, left, right } => {
                let mut rows = Box::new(SetRows::new(*op, *all, left, right));
                match query.sort.is_empty() {
                    true => Source::Set(rows),
                    false => {
                        let first = self.left.filter(|_| !query.ties).map(|n| n.saturating_add(self.skip));
                        let first = first.and_then(|n| usize::try_from(n).ok());
                        let mut sorter = Sorter::new(&query.sort, None, first, cx).shown_as(query, 0);
                        let (mut held, began) = (Held::new(Kind::Sort), cx.step_begins());
                        while let Some(row) = rows.next(cx).await? {
                            cx.breathe().await?;
                            sorter.push(row, cx, &mut held).await?;
                        }
                        cx.note_method(place(query, Step::Groups), || rows.method());
                        let sorted = sorter.finish(cx, &mut held).await?;
                        cx.note_step(sorted_at(query), began, 0);
                        self.held = Some(held);
                        Source::Outputs(sorted)
                    }
                }
            }
        })
    }

    /// Lets the source step over the rows that OFFSET leaves out, where nothing is to be done with them.
    fn pass_over(&mut self, query: &Query, select: &Select, source: &mut Rows) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX);
        if skipped > 0 && skips_rows(query, select) && source.pass_over(skipped) {
            self.skip = 0;
        }
    }

    /// The next row of the output before LIMIT.
    async fn output(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        let query = self.query.clone();
        let Body::Select(select) = &query.body else {
            return match &mut self.source {
                Source::Outputs(rows) => noted(rows.next().await, &query, cx),
                Source::Set(rows) => {
                    let row = rows.next(cx).await?;
                    if row.is_none() {
                        cx.note_method(place(&*query, Step::Groups), || rows.method());
                    }
                    Ok(row)
                }
                Source::Recursion(rows) => rows.next(cx).await,
                _ => Ok(None),
            };
        };
        loop {
            cx.breathe().await?;
            let expanded = match (&mut self.expansion, &select.sets) {
                (Some(expansion), Some(stage)) => expansion.next(stage, select.width, cx).await?,
                _ => None,
            };
            if let Some(row) = expanded {
                match self.put_out(select, row, false, cx).await? {
                    None => continue,
                    out => return Ok(out),
                }
            }
            let is_aside = matches!(self.source, Source::Aside(_));
            let row = match &mut self.source {
                Source::Stream(rows) => match rows.pull(cx).await? {
                    Some(row) if !cx.holds(select.filter.as_ref(), &row).await? => {
                        cx.note_removed(select.filter.as_ref(), 1);
                        continue;
                    }
                    row => row,
                },
                Source::Inputs(rows) => noted(rows.next().await, &query, cx)?,
                Source::Aside(rows) => rows.next().await?.map(|(_, row)| row),
                Source::Outputs(rows) => return noted(rows.next().await, &query, cx),
                Source::Start | Source::Set(_) | Source::Recursion(_) => None,
            };
            let Some(mut row) = row else {
                let Some(mut first) = self.first.take() else { return Ok(None) };
                cx.note_method(place(&*query, Step::Groups), || first.method());
                let Some(rest) = first.rest(cx).await? else { return Ok(None) };
                self.source = Source::Aside(Box::new(rest));
                continue;
            };
            if is_aside && matches!(select.distinct, Some(Distinct::Row)) {
                return Ok(Some(row));
            }
            if !select.locks.is_empty() && self.passes_over(cx.lock_rows(select, &mut row).await?, cx) {
                continue;
            }
            // A row that was put aside after its functions gave their rows has those already.
            if let Some(stage) = select.sets.as_ref().filter(|s| !(s.in_order || is_aside && s.in_distinct)) {
                if !is_aside && !stage.in_distinct && !self.is_first(select, &row, cx).await? {
                    continue;
                }
                let expansion = self.expansion.get_or_insert_default();
                expansion.start(stage, row, select.width, cx).await?;
                continue;
            }
            match self.put_out(select, row, is_aside, cx).await? {
                None => {}
                out => return Ok(out),
            }
        }
    }

    /// Whether a row is not given, since it is not locked (PSO-1).
    fn passes_over(&mut self, locked: bool, cx: Cx<'_>) -> bool {
        if locked {
            return false;
        }
        let (rows, since_ns) = &mut self.passed_over;
        if *rows == 0 {
            *since_ns = now_ns();
        }
        *rows += 1;
        if rows.is_multiple_of(MANY) && now_ns().saturating_sub(*since_ns) >= breath::FIRST_NS {
            cx.run.plan.passed_over.note();
        }
        true
    }

    /// Whether DISTINCT ON has not met the keys of a row.
    async fn is_first(&mut self, select: &Select, row: &[Datum], cx: Cx<'_>) -> Result<bool> {
        let Some(Distinct::On(keys)) = &select.distinct else { return Ok(true) };
        let key = cx.values(keys, row, row.get(select.width..).unwrap_or(&[])).await?;
        let first = self.first.get_or_insert_with(|| Box::new(FirstRows::new(Kind::Distinct)));
        first.is_first(&key, Some(row), cx).await
    }

    /// The output for a row, if DISTINCT lets it through; `judged`: DISTINCT ON has.
    async fn put_out(&mut self, select: &Select, row: Row, judged: bool, cx: Cx<'_>) -> Result<Option<Row>> {
        let judged = judged || select.sets.as_ref().is_some_and(|s| !s.in_order && !s.in_distinct);
        if !judged && !self.is_first(select, &row, cx).await? {
            return Ok(None);
        }
        let aggregates = row.get(select.width..).unwrap_or(&[]);
        let out = cx.values(&select.targets, &row, aggregates).await?;
        if let Some(Distinct::Row) = &select.distinct {
            let first = self.first.get_or_insert_with(|| Box::new(FirstRows::new(Kind::Distinct)));
            return Ok(first.is_first(&out, None, cx).await?.then_some(out));
        }
        Ok(Some(out))
    }
}

/// Where the sort for the order of a query's output is measured.
fn sorted_at(query: &Query) -> Place {
    match &query.body {
        Body::Select(select) => place(&**select, Step::Sort(select.windows.len())),
        _ => place(query, Step::Sort(0)),
    }
}

/// A row that a sort gives, noted if the statement is measured.
fn noted(row: Result<Option<Row>>, query: &Query, cx: Cx<'_>) -> Result<Option<Row>> {
    if let (Some(measured), Ok(Some(_))) = (&cx.run.state.measured, &row) {
        measured.gave(sorted_at(query));
    }
    row
}

/// Whether the rows of a query can be given without a wait once they are in memory: there is no lock, function or sub-select to be awaited.
fn at_once(query: &Query, select: &Select) -> bool {
    let plain = select.locks.is_empty() && select.sets.is_none() && !query.ties;
    plain
        && !matches!(select.distinct, Some(Distinct::On(_)))
        && !select.filter.iter().chain(&select.targets).any(Bound::may_wait)
}

/// Whether the first rows of the output that are left out are as many of the source's, and nothing is to be done with them: an expression is evaluated for
/// each of them, since it may fail or have an effect.
fn skips_rows(query: &Query, select: &Select) -> bool {
    at_once(query, select)
        && select.filter.is_none()
        && select.distinct.is_none()
        && select.targets.iter().all(|e| matches!(e.kind, BoundKind::Column { .. } | BoundKind::Const(_)))
}

/// The parts of a query that reads one row by its whole key and does nothing else; none: the query is of another kind.
fn point(query: &Query) -> Option<(&Select, &Scan)> {
    let Body::Select(select) = &query.body else { return None };
    let whole = select.grouping.is_none() && select.windows.is_empty() && select.sets.is_none();
    let plain = whole && select.locks.is_empty() && select.distinct.is_none();
    match &*select.source {
        Node::Scan(scan) if plain && query.limit.is_none() && query.offset.is_none() => {
            matches!(&scan.access, Access::Keys(keys) if keys.len() == 1).then_some((select, scan))
        }
        _ => None,
    }
}

impl Cx<'_> {
    /// Reads the row of a point query; the inner `None`: there is no such row. The outer one: there are two (RDV-2), and the query runs as any other.
    async fn read_point(self, select: &Select, scan: &Scan) -> Result<Option<Option<Row>>> {
        let (mut rows, mut found) = (self.open_scan(scan, &[]).await?, Batch::default());
        if !self.next_row(&mut rows, scan, &[], None, &mut found).await? {
            return Ok(Some(None));
        }
        if let TableRows::Both(..) = rows {
            return Ok(None);
        }
        let row = found.row(0);
        if !self.holds(scan.filter.as_ref(), row).await? || !self.holds(select.filter.as_ref(), row).await? {
            return Ok(Some(None));
        }
        self.values(&select.targets, row, &[]).await.map(|row| Some(Some(row)))
    }
}

/// Whether a source gives its rows in the order that the plan wants. An index that is younger than the snapshot is not
/// read, and then its order is missing.
pub(super) fn in_order(source: &Node, cx: Cx<'_>) -> bool {
    let readable = |scan: &Scan, place: usize| scan.table.shape.indexes[place].valid_from_lsn <= cx.run.view.read_lsn.0;
    relied_on(source).is_some_and(|scan| match &scan.access {
        Access::Index(place, _) => readable(scan, *place),
        Access::Ranges(ranges) => ranges.parts.iter().all(|p| p.index.is_none_or(|place| readable(scan, place))),
        Access::Full | Access::Keys(_) | Access::KeyRange(_) | Access::Tids(_) => true,
    })
}

async fn count(e: Option<&Bound>, what: &str, code: &'static str, cx: Cx<'_>) -> Result<Option<i64>> {
    let Some(e) = e else { return Ok(None) };
    match cx.value(e, &[]).await?.as_i64() {
        Some(n) if n < 0 => Err(SqlError::new(code, format!("{what} must not be negative"))),
        n => Ok(n),
    }
}
