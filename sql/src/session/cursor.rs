//! What a cursor reads, and the statements about cursors: DECLARE, FETCH, MOVE, CLOSE. Which cursors there are is in `cursors`; PL/pgSQL's are opened by
//! `plpgsql/cursor`.
//!
//! # Life of a cursor
//! ```text
//! DECLARE -> rows are read as FETCH asks for them, at the snapshot of DECLARE -> the transaction ends: the cursor is closed,
//!                                             or it is WITH HOLD and all its rows are read and kept at the commit -> CLOSE
//! ```
//! `position` is 0 before the first row, n on row n, and the number of rows plus one behind the last row.
//!
//! A named portal of the protocol (Bind) is a cursor for FETCH and MOVE, too: one that only goes forward. Execute goes on behind the rows that they passed.
//!
//! # Invariants
//! - CUR-1: a cursor reads at the snapshot that DECLARE took, however it moves; a query that is read again from its beginning uses the
//!   same snapshot.

use std::sync::Arc;

use super::client::Client;
use super::current_of::{Identity, Standing, with_identity};
use super::cursors::{Listed, Open, no_cursor};
use super::fresh::same_columns;
use super::run::{self, Execution};
use super::session::{Prepared, Session};
use crate::context::core::{Core, NamedCursor, now};
use crate::context::names::CatalogNames;
use crate::error::{Result, SqlError};
use crate::exec::Row;
use crate::planner::plan::{Action, OutputColumn};
use crate::syntax::ast::Query;
use crate::syntax::stmt::{FetchDirection, Statement};
use crate::types::datetime::Format;
use crate::types::text::Conversion;
use crate::types::{Datum, Oid, SqlType};
use clearway_base::breath;
use clearway_base::memory::{Held, Kind};

/// Rows that are read at a time.
const CHUNK: u64 = 256;

/// What a cursor reads, and where it stands.
pub(super) struct Cursor {
    /// Its columns.
    pub(super) columns: Arc<[OutputColumn]>,
    scroll: Option<bool>,
    /// What it reads; none: all rows are in `kept`.
    source: Option<Execution>,
    /// The rows read so far, of a cursor that may go back to them.
    kept: Option<Vec<Row>>,
    /// How many rows before those of `kept` are not kept.
    passed: u64,
    held: Held,
    /// Rows that `source` has given since it began.
    read: u64,
    /// How many rows there are, once that is known.
    total: Option<u64>,
    position: u64,
    /// What tells the rows of its table apart; the values stand behind the columns.
    identity: Option<Identity>,
    /// Their types.
    identity_types: Vec<SqlType>,
    /// Their values in the row on which it stands.
    here: Option<Vec<Datum>>,
    /// It is a query, and whether that locks the rows.
    locks: Option<bool>,
}

impl Cursor {
    /// A portal that stands behind the rows that it has given; none: all of them.
    fn of_portal(columns: Arc<[OutputColumn]>, source: Option<Execution>) -> Cursor {
        let given = source.as_ref().map_or(0, |execution| execution.count);
        let total = source.is_none().then_some(given);
        Cursor { source, total, read: given, position: given, ..Cursor::new(columns, Some(false), None, false) }
    }

    /// A cursor before its first row; `keeps`: it keeps the rows that it has read.
    fn new(columns: Arc<[OutputColumn]>, scroll: Option<bool>, source: Option<Execution>, keeps: bool) -> Cursor {
        Cursor {
            columns,
            scroll,
            source,
            kept: keeps.then(Vec::new),
            passed: 0,
            held: Held::new(Kind::Results),
            read: 0,
            total: None,
            position: 0,
            identity: None,
            identity_types: Vec::new(),
            here: None,
            locks: Some(false),
        }
    }

    /// A cursor over what has begun to run, of one table if its identity is known.
    fn over(execution: Execution, scroll: Option<bool>, keeps: bool, identity: Option<Identity>) -> Cursor {
        let plan = &execution.cached.plan;
        let all = plan.columns.clone().unwrap_or_default();
        let count = identity.as_ref().map_or(0, |identity| identity.columns.len());
        let (columns, hidden) = all.split_at(all.len() - count);
        let selects = plan.changes.is_empty() && matches!(plan.action, Action::Select(_));
        let locks = selects.then(|| execution.locks_rows());
        let identity_types = hidden.iter().map(|column| column.ty).collect();
        Cursor { identity, identity_types, locks, ..Cursor::new(columns.into(), scroll, Some(execution), keeps) }
    }

    /// The tables and views of its query.
    fn tables(&self) -> Vec<Oid> {
        let plan = self.source.as_ref().map(|execution| &execution.cached.plan);
        plan.map(|plan| plan.locks.iter().map(|lock| lock.oid).collect()).unwrap_or_default()
    }

    /// Where it stands.
    pub(super) fn standing(&self) -> Standing {
        let row = self.here.as_ref().map(|row| row.iter().cloned().zip(self.identity_types.iter().copied()).collect());
        Standing { identity: self.identity.clone(), row, held: false, locks: self.locks }
    }

    /// It stands on a row, or on none.
    fn stand(&mut self, row: Option<&Row>) {
        let columns = self.columns.len();
        self.here = row.filter(|_| self.identity.is_some()).and_then(|row| row.get(columns..)).map(<[Datum]>::to_vec);
    }

    /// Reads all that is left and keeps it. What was passed is kept, too, unless it is NO SCROLL.
    pub(super) async fn keep_all(&mut self, core: &Core) -> Result<()> {
        if self.kept.is_none() {
            if self.scroll == Some(false) {
                self.passed = self.read;
            } else {
                // What stands before the position is read again: the cursor may go back there after the commit.
                self.begin_anew();
            }
            self.kept = Some(Vec::new());
        }
        let position = self.position;
        self.row(core, u64::MAX).await?;
        self.position = position;
        self.source = None;
        Ok(())
    }

    /// CUR-1
    fn begin_anew(&mut self) {
        if let Some(source) = &mut self.source {
            source.restart();
        }
        self.read = 0;
    }

    /// Row `number`, from 1; none if there are not so many.
    async fn row(&mut self, core: &Core, number: u64) -> Result<Option<Row>> {
        if self.total.is_some_and(|total| number > total) || number == 0 {
            return Ok(None);
        }
        if let Some(kept) = &self.kept
            && let Some(at) = (number - 1).checked_sub(self.passed)
            && let Some(row) = kept.get(usize::try_from(at).unwrap_or(usize::MAX))
        {
            return Ok(Some(row.clone()));
        }
        if self.kept.is_none() && number <= self.read {
            self.begin_anew();
        }
        self.held.resume();
        let found = self.read_to(core, number).await;
        self.held.measure();
        found
    }

    async fn read_to(&mut self, core: &Core, number: u64) -> Result<Option<Row>> {
        let Some(source) = &mut self.source else { return Ok(None) };
        while self.read < number {
            let wanted = (number - self.read).min(CHUNK);
            let rows = source.take(core, wanted).await?;
            let got = rows.len() as u64;
            self.read += got;
            let last = if self.read == number { rows.last().cloned() } else { None };
            if let Some(kept) = &mut self.kept {
                kept.extend(rows);
                self.held.grow()?;
            }
            if got < wanted {
                self.total = Some(self.read);
                return Ok(last);
            }
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(None)
    }

    /// Whether it may go back.
    fn check_back(&self) -> Result<()> {
        if self.scroll == Some(false) {
            return Err(SqlError::new("55000", "cursor can only scan forward")
                .hint("Declare it with SCROLL option to enable backward scan."));
        }
        Ok(())
    }

    /// The next row forward, to which the cursor moves.
    async fn step(&mut self, core: &Core) -> Result<Option<Row>> {
        let found = self.row(core, self.position + 1).await?;
        self.position = match (&found, self.total) {
            (Some(_), _) => self.position + 1,
            (None, total) => total.unwrap_or(self.position) + 1,
        };
        self.stand(found.as_ref());
        Ok(found)
    }

    async fn step_back(&mut self, core: &Core) -> Result<Option<Row>> {
        self.position = self.position.saturating_sub(1);
        let found = self.row(core, self.position).await?;
        self.stand(found.as_ref());
        Ok(found)
    }

    /// To row `number`, counted from the end where negative.
    async fn go_to(&mut self, core: &Core, number: i64) -> Result<Option<Row>> {
        let to = if number >= 0 {
            number.unsigned_abs()
        } else {
            self.check_back()?;
            self.row(core, u64::MAX).await?;
            (self.total.unwrap_or(0) + 1).saturating_sub(number.unsigned_abs())
        };
        if to < self.position {
            self.check_back()?;
        }
        let found = self.row(core, to).await?;
        self.position = match found {
            None if to > 0 => self.total.unwrap_or(to) + 1,
            _ => to,
        };
        self.stand(found.as_ref());
        Ok(found)
    }
}

/// What FETCH and MOVE do with the rows: the rows that the client gets, and how many were passed.
struct Fetching<'a> {
    core: Arc<Core>,
    columns: Arc<[OutputColumn]>,
    formats: Vec<i16>,
    format: Format,
    names: CatalogNames,
    to: To<'a>,
    count: u64,
}

/// Where the rows go.
enum To<'a> {
    Nowhere,
    Client(&'a mut dyn Client),
    List(&'a mut Vec<Row>),
}

impl Fetching<'_> {
    async fn give(&mut self, row: &Row) -> Result<()> {
        self.count += 1;
        breath::breathe(breath::ROW).await?;
        // What tells it apart is not part of it.
        let shown: Row;
        let row = match row.get(..self.columns.len()) {
            Some(columns) if columns.len() < row.len() => {
                shown = columns.to_vec();
                &shown
            }
            _ => row,
        };
        let client = match &mut self.to {
            To::Client(client) => client,
            To::List(list) => {
                list.push(row.clone());
                return Ok(());
            }
            To::Nowhere => return Ok(()),
        };
        {
            let (format, now) = (&self.format, self.core.transaction_started());
            let conversion = Conversion { format, now, names: &self.names };
            run::write_row(&conversion, &self.columns, &self.formats, row, &mut **client)?;
        }
        if client.is_full() {
            self.core.wait_told().await?;
            client.drain().await.map_err(|_| SqlError::new("08006", "connection to client lost"))?;
        }
        Ok(())
    }

    async fn one(&mut self, row: Option<Row>) -> Result<()> {
        match row {
            Some(row) => self.give(&row).await,
            None => Ok(()),
        }
    }
}

async fn fetch(cursor: &mut Cursor, direction: FetchDirection, out: &mut Fetching<'_>) -> Result<()> {
    use FetchDirection as D;
    let core = out.core.clone();
    match direction {
        // The row on which it stands, again.
        D::Forward(0) | D::Backward(0) | D::Relative(0) => {
            let here = cursor.position;
            if cursor.total.is_none_or(|total| here <= total) && here > 0 {
                cursor.check_back()?;
                let row = cursor.row(&core, here).await?;
                out.one(row).await?;
            }
        }
        D::Forward(n) if n < 0 => Box::pin(fetch(cursor, D::Backward(n.saturating_neg()), out)).await?,
        D::Backward(n) if n < 0 => Box::pin(fetch(cursor, D::Forward(n.saturating_neg()), out)).await?,
        D::Forward(n) => {
            for _ in 0..n {
                let Some(row) = cursor.step(&core).await? else { break };
                out.give(&row).await?;
            }
        }
        D::Backward(n) => {
            cursor.check_back()?;
            for _ in 0..n {
                let Some(row) = cursor.step_back(&core).await? else { break };
                out.give(&row).await?;
            }
        }
        D::Absolute(n) => {
            let row = cursor.go_to(&core, n).await?;
            out.one(row).await?;
        }
        D::Relative(n) => {
            let to = i64::try_from(cursor.position).unwrap_or(i64::MAX).saturating_add(n).max(0);
            let row = cursor.go_to(&core, to).await?;
            out.one(row).await?;
        }
    }
    Ok(())
}

/// A query that DECLARE may not have.
fn check_query(query: &Query, hold: bool, scroll: Option<bool>) -> Result<()> {
    let Some(locking) = query.locking.first() else { return Ok(()) };
    let strength = locking.strength.sql();
    let refuse = |what: &str, detail: &str| {
        Err(SqlError::new("0A000", format!("{what} ... {strength} is not supported")).detail(detail))
    };
    if hold {
        return refuse("DECLARE CURSOR WITH HOLD", "Holdable cursors must be READ ONLY.");
    }
    if scroll == Some(true) {
        return refuse("DECLARE SCROLL CURSOR", "Scrollable cursors must be READ ONLY.");
    }
    Ok(())
}

impl Session {
    /// DECLARE.
    pub(super) async fn declare(
        &mut self,
        prepared: &Arc<Prepared>,
        statement: &Statement,
        params: Arc<[Datum]>,
    ) -> Result<&'static str> {
        let Statement::DeclareCursor { name, query, hold, binary, scroll } = statement else {
            return Err(SqlError::internal("no DECLARE"));
        };
        if !hold && !self.shares_transaction() {
            return Err(SqlError::new("25P01", "DECLARE CURSOR can only be used in transaction blocks"));
        }
        check_query(query, *hold, *scroll)?;
        self.need_free_name(name)?;
        let (execution, identity) = loop {
            let (mut planned, inner, identity) = self.plan_cursor(prepared, query)?;
            if planned.types.len() > params.len() {
                let message = format!("there is no parameter ${}", params.len() + 1);
                return Err(SqlError::new("42P02", message));
            }
            // The client has not been told of the columns: they may be others when the tables are locked, and the row's identity stands elsewhere then.
            let columns = planned.columns.take();
            let execution = self.start_cursor(&planned, &inner, params.clone()).await?;
            if same_columns(columns.as_deref(), execution.cached.plan.columns.as_deref()).is_ok() {
                break (execution, identity);
            }
        };
        if !execution.cached.plan.changes.is_empty() {
            let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(SqlError::new("0A000", message));
        }
        let forward = scroll.is_none() && !query.locking.is_empty();
        let keeps = *scroll == Some(true) || *hold;
        let scroll = if forward { Some(false) } else { *scroll };
        let cursor = Cursor::over(execution, scroll, keeps, identity);
        self.add_cursor(name, cursor, prepared.text.clone(), (*binary, *hold))?;
        Ok("DECLARE CURSOR")
    }

    /// Plans a cursor's query: with what tells its rows, if it can.
    fn plan_cursor(&mut self, prepared: &Prepared, query: &Query) -> Result<(Prepared, Statement, Option<Identity>)> {
        let steering = Some(self.core.settings.lock().steering.of_cursor());
        let (text, types) = (&prepared.text, &prepared.types);
        let identified = with_identity(&self.core, query).and_then(|(query, identity)| {
            let inner = Statement::Query(Box::new(query));
            let planned = self.prepare_by(inner.clone(), text.clone(), types, steering).ok()?;
            Some((planned, inner, Some(identity)))
        });
        if let Some(identified) = identified {
            return Ok(identified);
        }
        let inner = Statement::Query(Box::new(query.clone()));
        Ok((self.prepare_by(inner.clone(), text.clone(), types, steering)?, inner, None))
    }

    /// Adds a cursor. A name may have been taken while its query was planned, which can call functions.
    fn add_cursor(&mut self, name: &str, cursor: Cursor, text: Arc<str>, (binary, hold): (bool, bool)) -> Result<()> {
        self.need_free_name(name)?;
        let (scroll, tables) = (cursor.scroll != Some(false), cursor.tables());
        let shown = NamedCursor { text, hold, binary, scroll, at: now(), tables };
        let listed = Listed::new(&self.core, name, shown);
        self.core.ends_with_work();
        self.cursors.add(name, Open::new(cursor, (binary, hold), self.level(self.savepoints.len()), listed));
        Ok(())
    }

    /// 42P03: a cursor or a portal has the name.
    fn need_free_name(&self, name: &str) -> Result<()> {
        if self.core.cursors.lock().contains_key(name) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        Ok(())
    }

    /// Opens a cursor for a body in PL/pgSQL, under a name of its own if none is given; its name.
    ///
    /// # Errors
    /// 42P03.
    pub(super) fn open_cursor(
        &mut self,
        name: Option<String>,
        mut execution: Execution,
        text: Arc<str>,
        scroll: Option<bool>,
        identity: Option<Identity>,
    ) -> Result<String> {
        let name = name.unwrap_or_else(|| self.cursors.unnamed(&self.core));
        execution.outlive_caller();
        let mut cursor = Cursor::over(execution, scroll, scroll == Some(true), identity);
        if cursor.locks.is_none() {
            cursor.scroll = Some(false);
        }
        self.add_cursor(&name, cursor, text, (false, false))?;
        Ok(name)
    }

    /// FETCH and MOVE.
    pub(super) async fn fetch(
        &mut self,
        name: &str,
        direction: FetchDirection,
        is_move: bool,
        client: &mut dyn Client,
    ) -> Result<String> {
        self.told = true;
        if is_move {
            let (_, count) = self.moved(name, direction, To::Nowhere).await?;
            return Ok(format!("MOVE {count}"));
        }
        let (_, count) = self.moved(name, direction, To::Client(client)).await?;
        Ok(format!("FETCH {count}"))
    }

    /// The same for a body in PL/pgSQL: the rows, with their columns, and how many were passed.
    pub(super) async fn fetch_rows(
        &mut self,
        name: &str,
        direction: FetchDirection,
        is_move: bool,
    ) -> Result<(Vec<Row>, Arc<[OutputColumn]>, u64)> {
        let mut rows = Vec::new();
        let to = if is_move { To::Nowhere } else { To::List(&mut rows) };
        let (columns, count) = self.moved(name, direction, to).await?;
        Ok((rows, columns, count))
    }

    /// Moves a cursor or a portal of the protocol; its columns, and how many rows were passed.
    async fn moved(
        &mut self,
        name: &str,
        direction: FetchDirection,
        mut to: To<'_>,
    ) -> Result<(Arc<[OutputColumn]>, u64)> {
        let core = self.core.clone();
        let mut of_portal = self.portal_as_cursor(name).await?;
        let mut taken = None;
        let cursor = match &mut of_portal {
            Some(cursor) => cursor,
            None => {
                let moved = taken.insert(self.cursors.take(name)?);
                &mut **moved.cursor.as_mut().ok_or_else(|| no_cursor(name))?
            }
        };
        let by_cursor = self.result_formats.is_empty() && self.cursors.columns(name).is_some_and(|(_, binary)| binary);
        let formats = if by_cursor { vec![1] } else { self.result_formats.clone() };
        if let To::Client(client) = &mut to {
            run::describe(&cursor.columns, &formats, &mut **client);
        }
        let columns = cursor.columns.clone();
        let (format, names) = (core.format(), core.names(&core.catalog()));
        let mut out = Fetching { core, columns: columns.clone(), formats, format, names, to, count: 0 };
        fetch(cursor, direction, &mut out).await?;
        if let Some(moved) = taken {
            moved.put_back();
        }
        if let (Some(cursor), Some(portal)) = (of_portal, self.portals.get_mut(name)) {
            portal.finished = cursor.total.is_some();
            portal.running = cursor.source.filter(|_| !portal.finished).map(|mut execution| {
                execution.count = cursor.read;
                Box::new(execution)
            });
        }
        Ok((columns, out.count))
    }

    /// The portal of that name as a cursor, begun if it has not run; none: there is no such portal, or a cursor has the name.
    async fn portal_as_cursor(&mut self, name: &str) -> Result<Option<Cursor>> {
        if name.is_empty() || self.cursors.contains(name) {
            return Ok(None);
        }
        let Some(portal) = self.portals.get_mut(name) else { return Ok(None) };
        let (prepared, finished) = (portal.prepared.clone(), portal.finished);
        let (Some(statement), Some(columns)) = (&prepared.statement, &prepared.columns) else {
            return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")));
        };
        if !matches!(&**statement, Statement::Query(_)) {
            return Err(SqlError::unsupported("FETCH or MOVE of a portal of another statement than a query"));
        }
        if finished {
            return Ok(Some(Cursor::of_portal(columns.clone().into(), None)));
        }
        let (running, params) = (portal.running.take(), Arc::from(portal.params.as_slice()));
        let execution = match running {
            Some(execution) => *execution,
            None => self.start(&prepared, statement, params).await?,
        };
        Ok(Some(Cursor::of_portal(columns.clone().into(), Some(execution))))
    }

    /// The columns of a cursor or portal.
    pub(super) fn fetched_columns(&self, name: &str) -> Option<Vec<OutputColumn>> {
        match self.cursors.columns(name) {
            Some((columns, _)) => Some(columns.to_vec()),
            None => self.portals.get(name).filter(|_| !name.is_empty())?.prepared.columns.clone(),
        }
    }

    /// CLOSE.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<&'static str> {
        let Some(name) = name else {
            self.cursors.close_all();
            self.portals.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        let known = self.cursors.close(name)?;
        let portal = !name.is_empty() && self.portals.get(name).is_some();
        if portal {
            self.portals.remove(name);
        }
        if known || portal { Ok("CLOSE CURSOR") } else { Err(no_cursor(name)) }
    }
}
