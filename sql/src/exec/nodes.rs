//! Sources of rows: scans, functions, derived tables, joins.

use super::expand::SetRows;
use super::query::QueryRows;
use super::scan::{TableRows, row_of};
use super::{BoxFuture, Cx, Row};
use crate::error::Result;
use crate::expr::Bound;
use crate::planner::plan::{Derived, Join, JoinType, Node};
use crate::types::Datum;
use clearway_base::memory::{Held, Kind};
use clearway_base::{breath, stack};
use std::collections::HashMap;
use std::sync::Arc;

/// A node that is being read.
pub struct Rows {
    node: Arc<Node>,
    prefix: Row,
    state: State,
}

enum State {
    Start,
    Table(TableRows),
    List(std::vec::IntoIter<Row>),
    /// Functions side by side, and how many of their rows have been given.
    Functions(Vec<SetRows>, i64),
    Derived(Box<QueryRows>),
    /// An expression of WITH whose rows are kept: its number, and how many have been read.
    Kept(usize, usize),
    Inner(Box<Rows>),
    Join(Box<JoinRows>),
    End,
}

struct JoinRows {
    left: Rows,
    /// The right side by its keys, if it is read once.
    table: Option<Hashed>,
    /// The left row at hand, and what of the right side it has still to meet.
    current: Option<(Row, Right)>,
    matched: bool,
    /// Full joins: right rows that nobody met.
    rest: Option<std::vec::IntoIter<Row>>,
}

enum Right {
    Rows(Box<Rows>),
    List(Arc<Vec<usize>>, usize),
}

struct Hashed {
    /// Right rows without the slots to their left.
    rows: Vec<Row>,
    by_key: HashMap<Row, Arc<Vec<usize>>>,
    none: Arc<Vec<usize>>,
    met: Vec<bool>,
    /// What it has of the statement's memory.
    _held: Held,
}

impl Rows {
    /// Begins to read a node; its rows begin with `prefix`.
    pub fn new(node: Arc<Node>, prefix: Row) -> Self {
        Self { node, prefix, state: State::Start }
    }

    /// The next row of a table, if its leaf has been read and nothing about it can wait; none: ask `next`.
    pub fn buffered(&mut self, cx: Cx<'_>) -> Option<Result<Row>> {
        let State::Table(TableRows::Table(walk)) = &mut self.state else { return None };
        if cx.run.state.measured.is_some() {
            return None;
        }
        let Node::Scan(scan) = &*self.node else { return None };
        if scan.filter.as_ref().is_some_and(Bound::may_wait) {
            return None;
        }
        loop {
            if let Err(stopped) = breath::step(breath::ROW) {
                return Some(Err(stopped.into()));
            }
            let (key, value) = walk.buffered()?;
            let row = match row_of(scan, key, value, &self.prefix) {
                Ok(row) => row,
                Err(e) => return Some(Err(e)),
            };
            match cx.holds_now(scan.filter.as_ref(), &row) {
                Ok(false) => {}
                Ok(true) => return Some(Ok(row)),
                Err(e) => return Some(Err(e)),
            }
        }
    }

    /// The one row of a table that is read by its whole key, if that needs no wait; none: ask `next`.
    fn point(&mut self, cx: Cx<'_>) -> Option<Result<Option<Row>>> {
        let (State::Start, Node::Scan(scan)) = (&self.state, &*self.node) else { return None };
        if cx.run.state.measured.is_some() {
            return None;
        }
        let found = cx.point_now(scan, &self.prefix)?;
        self.state = State::End;
        Some(found)
    }

    /// The next row, by the shortest way.
    pub async fn pull(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        if let Some(row) = self.buffered(cx) {
            return row.map(Some);
        }
        if let Some(row) = self.point(cx) {
            return row;
        }
        match self.state {
            State::End => Ok(None),
            _ => self.next(cx).await,
        }
    }

    /// The next row.
    pub fn next<'a>(&'a mut self, cx: Cx<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        let Some(measured) = &cx.run.state.measured else { return self.next_row(cx) };
        let (address, is_first) = (Arc::as_ptr(&self.node) as usize, matches!(self.state, State::Start));
        measured.row(address, is_first, self.next_row(cx))
    }

    fn next_row<'a>(&'a mut self, cx: Cx<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        Box::pin(stack::deeper_polls(async move {
            if matches!(self.state, State::Start) {
                self.state = self.open(cx).await?;
            }
            let node = self.node.clone();
            loop {
                let row = match &mut self.state {
                    State::Start | State::End => None,
                    State::Table(rows) => match &*node {
                        Node::Scan(scan) => match cx.next_row(rows, scan, &self.prefix).await? {
                            Some(row) if !cx.holds(scan.filter.as_ref(), &row).await? => continue,
                            row => row,
                        },
                        _ => None,
                    },
                    State::List(rows) => {
                        cx.breathe().await?;
                        rows.next()
                    }
                    State::Functions(sets, given) => {
                        cx.breathe().await?;
                        function_row(&node, sets, given, &self.prefix, cx)?
                    }
                    State::Kept(id, at) => match &*node {
                        Node::Derived(d) => {
                            cx.breathe().await?;
                            *at += 1;
                            match cx.kept_row(d, *id, *at - 1).await? {
                                Some(columns) => match checked(d, &self.prefix, columns, cx).await? {
                                    None => continue,
                                    row => row,
                                },
                                None => None,
                            }
                        }
                        _ => None,
                    },
                    State::Derived(rows) => match &*node {
                        Node::Derived(d) => {
                            let outer: Vec<&[Datum]> = lateral_outer(d, &self.prefix, cx);
                            match rows.next(Cx { run: cx.run, outer: &outer }).await? {
                                Some(columns) => match checked(d, &self.prefix, columns, cx).await? {
                                    None => continue,
                                    row => row,
                                },
                                None => None,
                            }
                        }
                        _ => None,
                    },
                    State::Inner(rows) => match (rows.next(cx).await?, &*node) {
                        (Some(row), Node::Filter { filter, .. }) => {
                            if !cx.holds(Some(filter), &row).await? {
                                continue;
                            }
                            Some(row)
                        }
                        (row, _) => row,
                    },
                    State::Join(rows) => match &*node {
                        Node::Join(join) => rows.next(join, cx).await?,
                        _ => None,
                    },
                };
                return Ok(self.ended_by(row));
            }
        }))
    }

    fn ended_by(&mut self, row: Option<Row>) -> Option<Row> {
        if row.is_none() {
            self.state = State::End;
        }
        row
    }

    async fn open(&mut self, cx: Cx<'_>) -> Result<State> {
        Ok(match &*self.node {
            Node::One => State::List(vec![self.prefix.clone()].into_iter()),
            Node::Scan(scan) => State::Table(cx.open_scan(scan, &self.prefix).await?),
            Node::System(scan) => {
                let mut out = Vec::new();
                if scan.view.shows_files()
                    && let Some(configuration) = cx.run.core.backends.configuration()
                {
                    configuration.look().await;
                }
                for columns in cx.run.views.rows(scan.view, cx.run) {
                    cx.breathe().await?;
                    let mut row = self.prefix.clone();
                    row.extend(columns);
                    if cx.holds(scan.filter.as_ref(), &row).await? {
                        out.push(row);
                    }
                }
                State::List(out.into_iter())
            }
            Node::Work(scan) => {
                let mut out = Vec::new();
                for columns in cx.run.state.work(scan.id).iter() {
                    cx.breathe().await?;
                    let mut row = self.prefix.clone();
                    row.extend_from_slice(columns);
                    if cx.holds(scan.filter.as_ref(), &row).await? {
                        out.push(row);
                    }
                }
                State::List(out.into_iter())
            }
            Node::Function(f) => {
                let mut sets = Vec::with_capacity(f.calls.len());
                for call in &f.calls {
                    sets.push(SetRows::open(call, &self.prefix, &[], cx).await?);
                }
                State::Functions(sets, 0)
            }
            Node::Derived(Derived { kept: Some(kept), .. }) if kept.is_kept() => State::Kept(kept.id, 0),
            Node::Derived(d) => State::Derived(Box::new(QueryRows::new(d.query.clone()))),
            Node::Filter { input, .. } => State::Inner(Box::new(Rows::new(input.clone(), self.prefix.clone()))),
            Node::Join(join) => {
                let left = Rows::new(join.left.clone(), self.prefix.clone());
                let table = match &join.hash {
                    Some((_, keys)) => Some(hash_side(join, keys, cx).await?),
                    None => None,
                };
                let rows = JoinRows { left, table, current: None, matched: false, rest: None };
                State::Join(Box::new(rows))
            }
        })
    }
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

/// A row of a query in FROM behind the slots to its left, if it meets the condition.
async fn checked(d: &Derived, prefix: &Row, columns: Row, cx: Cx<'_>) -> Result<Option<Row>> {
    let mut row = prefix.clone();
    row.extend(columns);
    Ok(if cx.holds(d.filter.as_ref(), &row).await? { Some(row) } else { None })
}

fn lateral_outer<'a>(d: &Derived, prefix: &'a [Datum], cx: Cx<'a>) -> Vec<&'a [Datum]> {
    let own = d.lateral.then_some(prefix);
    own.into_iter().chain(cx.outer.iter().copied()).collect()
}

/// Reads the right side of a join once.
async fn hash_side(join: &Join, keys: &[Bound], cx: Cx<'_>) -> Result<Hashed> {
    let mut lists: HashMap<Row, Vec<usize>> = HashMap::new();
    let mut rows = Vec::new();
    let mut held = Held::new(Kind::Hash);
    let mut source = Rows::new(join.right.clone(), vec![Datum::Null; join.right_base]);
    while let Some(row) = source.pull(cx).await? {
        cx.breathe().await?;
        let key = cx.values(keys, &row, &[]).await?;
        if !key.iter().any(Datum::is_null) {
            lists.entry(key).or_default().push(rows.len());
        }
        rows.push(row[join.right_base..].to_vec());
        held.grow()?;
    }
    let by_key = lists.into_iter().map(|(k, v)| (k, Arc::new(v))).collect();
    Ok(Hashed { met: vec![false; rows.len()], rows, by_key, none: Arc::new(Vec::new()), _held: held })
}

impl JoinRows {
    async fn next(&mut self, join: &Join, cx: Cx<'_>) -> Result<Option<Row>> {
        loop {
            if let Some(rest) = &mut self.rest {
                return Ok(rest.next());
            }
            let Some((left, right)) = &mut self.current else {
                match self.left.next(cx).await? {
                    Some(row) => {
                        let right = match (&self.table, &join.hash) {
                            (Some(table), Some((keys, _))) => {
                                let key = cx.values(keys, &row, &[]).await?;
                                Right::List(table.by_key.get(&key).unwrap_or(&table.none).clone(), 0)
                            }
                            _ => Right::Rows(Box::new(Rows::new(join.right.clone(), row.clone()))),
                        };
                        self.current = Some((row, right));
                        self.matched = false;
                        continue;
                    }
                    None if join.kind == JoinType::Full => {
                        self.rest = Some(self.unmet(join)?.into_iter());
                        continue;
                    }
                    None => return Ok(None),
                }
            };
            cx.breathe().await?;
            let candidate = match right {
                Right::Rows(rows) => rows.next(cx).await?.map(|row| (row, None)),
                Right::List(list, at) => match (list.get(*at), &self.table) {
                    (Some(i), Some(table)) => {
                        *at += 1;
                        let mut row = Vec::with_capacity(join.end);
                        row.extend_from_slice(left);
                        row.extend_from_slice(&table.rows[*i]);
                        Some((row, Some(*i)))
                    }
                    _ => None,
                },
            };
            match candidate {
                Some((row, met)) => {
                    if cx.holds(join.on.as_ref(), &row).await? {
                        self.matched = true;
                        if matches!(join.kind, JoinType::Semi | JoinType::Anti) {
                            // One match says all.
                            let left = self.current.take().map(|(left, _)| left);
                            match left.filter(|_| join.kind == JoinType::Semi) {
                                Some(left) => return Ok(Some(extended(left, join.end))),
                                None => continue,
                            }
                        }
                        if let (Some(i), Some(table)) = (met, &mut self.table) {
                            table.met[i] = true;
                        }
                        return Ok(Some(row));
                    }
                }
                None => {
                    let Some((left, _)) = self.current.take() else { continue };
                    if !self.matched && !matches!(join.kind, JoinType::Inner | JoinType::Semi) {
                        return Ok(Some(extended(left, join.end)));
                    }
                }
            }
        }
    }

    fn unmet(&self, join: &Join) -> Result<Vec<Row>> {
        let Some(table) = &self.table else { return Ok(Vec::new()) };
        let mut unmet = Vec::new();
        for (row, _) in table.rows.iter().zip(&table.met).filter(|(_, met)| !**met) {
            breath::step(breath::ROW)?;
            let mut out = vec![Datum::Null; join.right_base];
            out.extend_from_slice(row);
            unmet.push(out);
        }
        Ok(unmet)
    }
}

/// A left row with nulls in the slots of the right side.
fn extended(mut left: Row, end: usize) -> Row {
    left.resize(end, Datum::Null);
    left
}
