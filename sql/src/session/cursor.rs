//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE.
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
//! - CUR-2: a rollback of a subtransaction closes the cursors that were declared in it; a cursor that was declared before stays open.

use std::collections::HashMap;
use std::sync::Arc;

use super::client::Client;
use super::run::{self, Execution};
use super::session::{Block, Prepared, Session};
use crate::context::core::{Core, NamedCursor, now};
use crate::context::names::CatalogNames;
use crate::error::{Result, SqlError};
use crate::exec::Row;
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::Query;
use crate::syntax::stmt::{FetchDirection, Statement};
use crate::types::Datum;
use crate::types::datetime::Format;
use crate::types::text::Conversion;
use clearway_base::breath;
use clearway_base::memory::{Held, Kind};

/// Rows that are read at a time.
const CHUNK: u64 = 256;

/// A cursor.
pub(super) struct Cursor {
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    binary: bool,
    scroll: Option<bool>,
    hold: bool,
    /// How many savepoints there were when it was declared.
    level: usize,
    /// What it reads; none: all rows are in `kept`.
    source: Option<Execution>,
    /// The rows read so far, of a cursor that may go back to them.
    kept: Option<Vec<Row>>,
    held: Held,
    /// A FETCH has failed.
    failed: bool,
    /// Rows that `source` has given since it began.
    read: u64,
    /// How many rows there are, once that is known.
    total: Option<u64>,
    position: u64,
    _listed: Option<Listed>,
}

/// The entry in pg_cursors of a cursor, or of a named portal of the protocol, for as long as it is open.
pub(super) struct Listed(Arc<Core>, String);

impl Listed {
    pub(super) fn new(core: &Arc<Core>, name: &str, shown: NamedCursor) -> Listed {
        core.cursors.lock().insert(name.to_owned(), shown);
        Listed(core.clone(), name.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.cursors.lock().remove(&self.1);
    }
}

/// All cursors of a session.
#[derive(Default)]
pub(super) struct Cursors {
    of: HashMap<String, Cursor>,
}

impl Cursors {
    pub(super) fn get(&self, name: &str) -> Option<&Cursor> {
        self.of.get(name)
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        // Every Bind comes here, and an empty map computes the hash, too.
        !self.of.is_empty() && self.of.remove(name).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.of.clear();
    }

    /// CUR-2: a rollback to the savepoint at `at`, or of the transaction (none).
    pub(super) fn roll_back(&mut self, at: Option<usize>) {
        self.of.retain(|_, cursor| cursor.source.is_none() || at.is_some_and(|at| cursor.level <= at));
    }

    /// The savepoint at `at` and those above it are released.
    pub(super) fn release(&mut self, at: usize) {
        self.of.values_mut().for_each(|cursor| cursor.level = cursor.level.min(at));
    }

    /// The transaction is about to commit: cursors WITH HOLD read what is left, the others go.
    pub(super) async fn keep_held(&mut self, core: &Core) -> Result<()> {
        self.of.retain(|_, cursor| cursor.hold || cursor.source.is_none());
        for cursor in self.of.values_mut().filter(|cursor| cursor.source.is_some()) {
            cursor.keep_all(core).await?;
        }
        Ok(())
    }
}

fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

impl Cursor {
    /// A portal that stands behind the rows that it has given; none: all of them.
    fn of_portal(columns: Vec<OutputColumn>, source: Option<Execution>) -> Cursor {
        let given = source.as_ref().map_or(0, |execution| execution.count);
        Cursor {
            columns,
            binary: false,
            scroll: Some(false),
            hold: false,
            level: 0,
            total: source.is_none().then_some(given),
            source,
            kept: None,
            held: Held::new(Kind::Results),
            failed: false,
            read: given,
            position: given,
            _listed: None,
        }
    }

    /// The forms of its columns, where the client has not asked for others.
    pub(super) fn formats(&self) -> Vec<i16> {
        if self.binary { vec![1] } else { Vec::new() }
    }

    /// Reads all that is left and keeps it. What was passed is kept, too, unless it is NO SCROLL.
    async fn keep_all(&mut self, core: &Core) -> Result<()> {
        if self.kept.is_none() {
            // What stands before the position is read again: the cursor may go back there after the commit.
            self.begin_anew();
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
            && let Some(row) = kept.get(usize::try_from(number - 1).unwrap_or(usize::MAX))
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
        Ok(found)
    }

    async fn step_back(&mut self, core: &Core) -> Result<Option<Row>> {
        self.position = self.position.saturating_sub(1);
        self.row(core, self.position).await
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
        Ok(found)
    }
}

/// What FETCH and MOVE do with the rows: the rows that the client gets, and how many were passed.
struct Fetching<'a> {
    core: Arc<Core>,
    columns: Vec<OutputColumn>,
    formats: Vec<i16>,
    format: Format,
    names: CatalogNames,
    client: Option<&'a mut dyn Client>,
    count: u64,
}

impl Fetching<'_> {
    async fn give(&mut self, row: &Row) -> Result<()> {
        self.count += 1;
        breath::breathe(breath::ROW).await?;
        let Some(client) = &mut self.client else { return Ok(()) };
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
        if !hold && self.block != Block::Open && self.in_batch <= 1 {
            return Err(SqlError::new("25P01", "DECLARE CURSOR can only be used in transaction blocks"));
        }
        check_query(query, *hold, *scroll)?;
        if self.cursors.get(name).is_some() || (!name.is_empty() && self.portals.get(name).is_some()) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        let inner = Statement::Query(query.clone());
        let planned = self.prepare_statement(inner.clone(), prepared.text.clone(), &prepared.types)?;
        if planned.types.len() > params.len() {
            let message = format!("there is no parameter ${}", params.len() + 1);
            return Err(SqlError::new("42P02", message));
        }
        let columns = planned.columns.clone().unwrap_or_default();
        let execution = self.start(&planned, &inner, params).await?;
        if !execution.cached.plan.changes.is_empty() {
            let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(SqlError::new("0A000", message));
        }
        let forward = scroll.is_none() && !query.locking.is_empty();
        let keeps = *scroll == Some(true) || *hold;
        let cursor = Cursor {
            columns,
            binary: *binary,
            scroll: if forward { Some(false) } else { *scroll },
            hold: *hold,
            level: self.savepoints.len(),
            source: Some(execution),
            kept: keeps.then(Vec::new),
            held: Held::new(Kind::Results),
            failed: false,
            read: 0,
            total: None,
            position: 0,
            _listed: None,
        };
        let (text, scroll) = (prepared.text.clone(), cursor.scroll != Some(false));
        let shown = NamedCursor { text, hold: *hold, binary: *binary, scroll, at: now() };
        let cursor = Cursor { _listed: Some(Listed::new(&self.core, name, shown)), ..cursor };
        self.core.ends_with_work();
        self.cursors.of.insert(name.clone(), cursor);
        Ok("DECLARE CURSOR")
    }

    /// FETCH and MOVE.
    pub(super) async fn fetch(
        &mut self,
        name: &str,
        direction: FetchDirection,
        is_move: bool,
        client: &mut dyn Client,
    ) -> Result<String> {
        let core = self.core.clone();
        self.told = true;
        let mut of_portal = self.portal_as_cursor(name).await?;
        let cursor = match &mut of_portal {
            Some(cursor) => cursor,
            None => self.cursors.of.get_mut(name).ok_or_else(|| no_cursor(name))?,
        };
        if cursor.failed {
            return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")));
        }
        let by_cursor = cursor.binary && self.result_formats.is_empty();
        let formats = if by_cursor { cursor.formats() } else { self.result_formats.clone() };
        if !is_move {
            run::describe(&cursor.columns, &formats, client);
        }
        let columns = cursor.columns.clone();
        let (format, names) = (core.format(), core.names(&core.catalog()));
        let client = if is_move { None } else { Some(client) };
        let mut out = Fetching { core, columns, formats, format, names, client, count: 0 };
        let fetched = fetch(cursor, direction, &mut out).await;
        cursor.failed = fetched.is_err();
        fetched?;
        if let (Some(cursor), Some(portal)) = (of_portal, self.portals.get_mut(name)) {
            portal.finished = cursor.total.is_some();
            portal.running = cursor.source.filter(|_| !portal.finished).map(|mut execution| {
                execution.count = cursor.read;
                Box::new(execution)
            });
        }
        Ok(format!("{} {}", if is_move { "MOVE" } else { "FETCH" }, out.count))
    }

    /// The portal of that name as a cursor, begun if it has not run; none: there is no such portal, or a cursor has the name.
    async fn portal_as_cursor(&mut self, name: &str) -> Result<Option<Cursor>> {
        if name.is_empty() || self.cursors.get(name).is_some() {
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
            return Ok(Some(Cursor::of_portal(columns.clone(), None)));
        }
        let (running, params) = (portal.running.take(), Arc::from(portal.params.as_slice()));
        let execution = match running {
            Some(execution) => *execution,
            None => self.start(&prepared, statement, params).await?,
        };
        Ok(Some(Cursor::of_portal(columns.clone(), Some(execution))))
    }

    /// The columns of a cursor or portal.
    pub(super) fn fetched_columns(&self, name: &str) -> Option<Vec<OutputColumn>> {
        match self.cursors.get(name) {
            Some(cursor) => Some(cursor.columns.clone()),
            None => self.portals.get(name).filter(|_| !name.is_empty())?.prepared.columns.clone(),
        }
    }

    /// CLOSE.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<&'static str> {
        let Some(name) = name else {
            self.cursors.clear();
            self.portals.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        let known = self.cursors.remove(name);
        let portal = !name.is_empty() && self.portals.get(name).is_some();
        if portal {
            self.portals.remove(name);
        }
        if known || portal { Ok("CLOSE CURSOR") } else { Err(no_cursor(name)) }
    }
}
