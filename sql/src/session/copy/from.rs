//! COPY FROM: reads rows from the client's bytes; one statement inserts them.

use super::binary::Rows;
use super::direct::{Direct, Taken};
use super::lines::{Fields, Line, Lines};
use super::options::{Form, Format, Header, forced_columns};
use crate::context::core::Core;
use crate::error::{Result, SqlError, code};
use crate::exec::Row;
use crate::exec::feed::Feed;
use crate::planner::environment::relation_oid;
use crate::planner::plan::Insert as InsertPlan;
use crate::session::client::{Client, CopyFormat, CopyIn};
use crate::session::run::{Execution, Request};
use crate::session::session::{Prepared, Session};
use crate::syntax::ast::{Expr, ExprKind, Query, QueryBody, TableRef};
use crate::syntax::stmt::{Copy, CopySource, Delete, Insert, Statement};
use crate::types::text::{self, Conversion};
use crate::types::{Datum, SqlType, user};
use clearway_base::memory::{Held, Kind};
use std::sync::Arc;

/// Rows that go into the statement at a time.
const BATCH_ROWS: usize = 512;
/// Rows that are converted and fed together where others are taken as they stand.
const CONVERTED_ROWS: usize = 16;

/// What is copied where.
struct CopyTarget {
    table: String,
    columns: Vec<String>,
    types: Vec<SqlType>,
    /// The columns of FORCE_NOT_NULL.
    not_null: Vec<bool>,
    /// Those of FORCE_NULL.
    null: Vec<bool>,
}

/// Columns by name, with their types.
type NamedColumns = Vec<(String, SqlType)>;

/// The INSERT that a COPY amounts to, of one row of parameters; the table's name, and the columns that it names with their types.
fn as_insert(c: &Copy, session: &Session) -> Result<(Statement, String, NamedColumns)> {
    let CopySource::Table(name, columns) = &c.source else {
        return Err(SqlError::new(code::SYNTAX_ERROR, "COPY FROM needs a table"));
    };
    let (oid, catalog) = relation_oid(&session.core, name)?;
    let relation = catalog.relation(oid).ok_or_else(|| SqlError::internal("a relation that is not there"))?;
    let kind = relation.kind;
    if kind != clearway_engine::catalog::RelationKind::Table {
        let what = if kind == clearway_engine::catalog::RelationKind::View { "view" } else { "materialized view" };
        let message = format!("cannot copy to {what} \"{}\"", relation.name);
        let error = SqlError::new("42809", message);
        let hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger.";
        return Err(if what == "view" { error.hint(hint) } else { error });
    }
    let named =
        |c: &clearway_engine::catalog::Column| (c.name.clone(), SqlType { oid: c.type_oid, modifier: c.type_mod });
    let live = || relation.columns.iter().filter(|c| !c.is_dropped());
    let names: Vec<(String, SqlType)> = if columns.is_empty() {
        live().filter(|c| !c.generated).map(named).collect()
    } else {
        // A name that is none is the planner's to refuse.
        columns.iter().filter_map(|(name, _)| live().find(|c| c.name == *name).map(named)).collect()
    };
    let param = |i| Expr { kind: Box::new(ExprKind::Param(i)), pos: 0, height: 1 };
    let query = Query {
        with: None,
        body: QueryBody::Values(vec![(1..=names.len().max(columns.len()) as u32).map(param).collect()]),
        order_by: Vec::new(),
        limit: None,
        offset: None,
        ties: false,
        locking: Vec::new(),
        height: 1,
        pos: 0,
    };
    let insert = Insert {
        with: None,
        table: TableRef { name: name.clone(), only: false, alias: None },
        columns: if columns.is_empty() && relation.columns.iter().any(|c| c.generated) {
            names.iter().map(|(name, _)| (name.clone(), 0)).collect()
        } else {
            columns.clone()
        },
        overriding_system: Some(true),
        source: Some(Box::new(query)),
        on_conflict: None,
        returning: Vec::new(),
    };
    Ok((Statement::Insert(Box::new(insert)), relation.name.clone(), names))
}

/// COPY's WHERE over the row to be inserted, planned as that of a DELETE.
fn condition(c: &Copy, session: &mut Session, text: &Arc<str>) -> Result<Option<crate::expr::Bound>> {
    let (Some(filter), CopySource::Table(name, _)) = (&c.filter, &c.source) else { return Ok(None) };
    let delete = Delete {
        with: None,
        table: TableRef { name: name.clone(), only: false, alias: None },
        using: Vec::new(),
        filter: Some(filter.clone()),
        current_of: None,
        returning: Vec::new(),
    };
    let planned = session.prepare_statement(Statement::Delete(Box::new(delete)), text.clone(), &[])?;
    let cached = planned.plan.lock().clone();
    let cached = cached.ok_or_else(|| SqlError::internal("a condition without a plan"))?;
    if !cached.plan.subqueries.is_empty() {
        return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "cannot use subquery in COPY FROM WHERE condition"));
    }
    match &cached.plan.action {
        crate::planner::plan::Action::Delete(delete) => Ok(delete.recheck.clone()),
        _ => Err(SqlError::internal("a condition of no table")),
    }
}

/// The source of rows, by the form.
enum Source<'a> {
    Lines {
        lines: Lines<'a>,
        fields: Fields,
        header: Header,
        /// Of each row of the batch, the number of its line, and the line.
        batch: Vec<(u64, Line)>,
        /// None: every row is converted.
        direct: Option<Box<Direct>>,
    },
    Binary(Rows),
}

impl Source<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Source::Lines { lines, .. } => lines.push(bytes),
            Source::Binary(rows) => rows.push(bytes),
        }
    }

    /// Reads the rows of a batch, or those of them that are to be fed before the next one is read. Rows that need no conversion are in already (CPY-6).
    fn read(&mut self, to: &mut To<'_>, conversion: &Conversion<'_>, rows: &mut Vec<Row>) -> Result<()> {
        match self {
            Source::Binary(binary) => {
                while rows.len() < BATCH_ROWS {
                    let row = binary.row(&to.into.types).map_err(|e| located(e, to.into, binary.number + 1, None))?;
                    match row {
                        Some(row) => rows.push(row),
                        None => break,
                    }
                }
            }
            Source::Lines { lines, fields, header, batch, direct } => {
                batch.clear();
                while batch.len() < BATCH_ROWS {
                    let found = lines.line(to.all_here).map_err(|e| located(e, to.into, lines.number + 1, None))?;
                    let Some(line) = found else { break };
                    if *header != Header::None {
                        pass_header(std::mem::take(header), (lines, &line), fields, to.into)?;
                        continue;
                    }
                    let mut fed_next = false;
                    if let (Some(direct), true) = (&mut *direct, rows.is_empty()) {
                        match direct.take((lines, &line), conversion, (to.core, to.insert), to.feed)? {
                            Taken::Done => {
                                batch.push((lines.number, line));
                                continue;
                            }
                            Taken::Unlike => {}
                            Taken::Later => fed_next = true,
                        }
                    }
                    rows.push(converted((lines, &line), fields, to.into, conversion)?);
                    batch.push((lines.number, line));
                    if fed_next || direct.is_some() && rows.len() >= CONVERTED_ROWS {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The error of a row, by its number among all rows; `first` is that of the batch's first one. As in PostgreSQL, the line's text stands beside
    /// what the row's own values violate, and not beside what other rows have to do with.
    fn not_taken(&self, error: SqlError, into: &CopyTarget, (row, first): (u64, u64)) -> SqlError {
        let line = match self {
            Source::Lines { lines, batch, .. } => {
                let place = row.checked_sub(first).and_then(|at| batch.get(usize::try_from(at).ok()?));
                place.map(|(number, line)| (*number, lines.text(line)))
            }
            Source::Binary(_) => None,
        };
        let Some((number, text)) = line else { return located(error, into, row, None) };
        let text = text.filter(|_| error.code() != "23505");
        let shown = text.map(|text| format!(": \"{}\"", shortened(&text)));
        located(error, into, number, shown)
    }
}

/// Where rows go.
struct To<'a> {
    into: &'a CopyTarget,
    core: &'a Core,
    insert: &'a InsertPlan,
    feed: &'a mut Feed,
    /// The client has sent everything.
    all_here: bool,
}

/// An error of a line, with its text.
fn in_line(error: SqlError, (lines, line): (&Lines<'_>, &Line), into: &CopyTarget) -> SqlError {
    let text = lines.text(line);
    located(error, into, lines.number, text.map(|text| format!(": \"{}\"", shortened(&text))))
}

/// A line that has names instead of values.
fn pass_header(
    header: Header,
    (lines, line): (&Lines<'_>, &Line),
    fields: &mut Fields,
    into: &CopyTarget,
) -> Result<()> {
    if header != Header::Match {
        return Ok(());
    }
    let read = lines.fields(line, (&[], &[]), fields).and_then(|()| matched(fields, into, lines.null()));
    read.map_err(|e| in_line(e, (lines, line), into))
}

/// The row of the line that was given last.
fn converted(
    (lines, line): (&Lines<'_>, &Line),
    fields: &mut Fields,
    into: &CopyTarget,
    conversion: &Conversion<'_>,
) -> Result<Row> {
    lines.fields(line, (&into.not_null, &into.null), fields).map_err(|e| in_line(e, (lines, line), into))?;
    values(fields, into, conversion, lines.number)
        .map_err(|(e, of_line)| if of_line { in_line(e, (lines, line), into) } else { e })
}

/// HEADER MATCH.
fn matched(fields: &Fields, into: &CopyTarget, null: &str) -> Result<()> {
    let bad = |message: String| Err(SqlError::new("22P04", message));
    if fields.len() != into.columns.len() {
        let (got, expected) = (fields.len(), into.columns.len());
        return bad(format!("wrong number of fields in header line: got {got}, expected {expected}"));
    }
    for (i, expected) in into.columns.iter().enumerate() {
        let place = format!("column name mismatch in header line field {}: got", i + 1);
        match fields.get(i) {
            None => return bad(format!("{place} null value (\"{null}\"), expected \"{expected}\"")),
            Some(got) if got != expected => return bad(format!("{place} \"{got}\", expected \"{expected}\"")),
            Some(_) => {}
        }
    }
    Ok(())
}

/// A row's values; an error says whether it is of the whole line.
fn values(
    fields: &Fields,
    into: &CopyTarget,
    conversion: &Conversion<'_>,
    number: u64,
) -> std::result::Result<Row, (SqlError, bool)> {
    let of_line = |message: String| (SqlError::new("22P04", message), true);
    // A table without columns has empty lines.
    if into.types.is_empty() && fields.len() == 1 && fields.get(0) == Some("") {
        return Ok(Vec::new());
    }
    if fields.len() > into.types.len() {
        return Err(of_line("extra data after last expected column".to_owned()));
    }
    if let Some(missing) = into.columns.get(fields.len()) {
        return Err(of_line(format!("missing data for column \"{missing}\"")));
    }
    let mut row = Vec::with_capacity(into.types.len());
    for (i, ty) in into.types.iter().enumerate() {
        row.push(match fields.get(i) {
            None if user::is_domain(ty.oid) => {
                user::check(ty.oid, &Datum::Null).map(|()| Datum::Null).map_err(|e| {
                    (located(e, into, number, Some(format!(", column {}: null input", into.columns[i]))), false)
                })?
            }
            None => Datum::Null,
            Some(s) => text::input(*ty, s, conversion).map_err(|e| {
                let place = format!(", column {}: \"{}\"", into.columns[i], shortened(s));
                (located(e, into, number, Some(place)), false)
            })?,
        });
    }
    Ok(row)
}

/// As much of a value as an error shows.
fn shortened(s: &str) -> String {
    const SHOWN: usize = 100;
    match s.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &s[..at]),
        None => s.to_owned(),
    }
}

fn located(error: SqlError, into: &CopyTarget, line: u64, place: Option<String>) -> SqlError {
    error.context(format!("COPY {}, line {line}{}", into.table, place.unwrap_or_default()))
}

pub(super) async fn copy_from(
    session: &mut Session,
    prepared: &Arc<Prepared>,
    c: &Copy,
    form: &Form,
    client: &mut dyn Client,
) -> Result<String> {
    let (statement, table, columns) = as_insert(c, session)?;
    let inner = session.prepare_statement(statement.clone(), prepared.text.clone(), &[])?;
    let filter = condition(c, session, &prepared.text)?;
    let (columns, types): (Vec<String>, Vec<SqlType>) = columns.into_iter().unzip();
    let not_null = forced_columns(&form.force_not_null, &columns, "FORCE_NOT_NULL")?;
    let null = forced_columns(&form.force_null, &columns, "FORCE_NULL")?;
    let into = CopyTarget { table, columns, types, not_null, null };
    let core = session.core.clone();
    let cached = inner.plan.lock().clone();
    let request = Request {
        statement: &statement,
        text: &prepared.text,
        params: Arc::from([]),
        types: &inner.types,
        columns: None,
        alone: false,
        transaction_started: session.core.transaction_started(),
        latest: false,
        system: false,
        measured: false,
        custom: false,
        body: None,
        steering: None,
    };
    let execution = crate::session::run::begin_fed(&core, request, cached).await.map_err(|e| match e.code() {
        "25006" => SqlError::new("25006", "cannot execute COPY FROM in a read-only transaction"),
        _ => e,
    })?;
    if matches!(&execution.cached.plan.action, crate::planner::plan::Action::Insert(insert) if insert.guard.is_some()) {
        let message = "COPY FROM not supported with row-level security";
        return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).hint("Use INSERT statements instead."));
    }
    core.wait_told().await?;
    client.copy_in(CopyFormat { binary: form.format == Format::Binary, columns: into.columns.len() });
    let feed = Feed::new(filter);
    let source = match form.format {
        Format::Binary => Source::Binary(Rows::new(form.encoding)),
        _ => {
            let (lines, fields) = (Lines::new(form), Fields::default());
            let forced = into.not_null.iter().chain(&into.null).any(|forced| *forced);
            let insert = execution.insert()?;
            let direct = if forced { None } else { Direct::new(form, &into.types, &feed, insert).map(Box::new) };
            Source::Lines { lines, fields, header: form.header, batch: Vec::new(), direct }
        }
    };
    let progress = core.engine.take().progress().clone();
    let _working = progress.begin(super::shown::now("COPY FROM", &core, &c.source));
    let copied = pump(&core, source, (&into, feed), execution, client).await?;
    Ok(format!("COPY {copied}"))
}

/// From the client's messages into the statement, until the client is done.
async fn pump(
    core: &Arc<Core>,
    mut source: Source<'_>,
    (into, mut feed): (&CopyTarget, Feed),
    execution: Execution,
    client: &mut dyn Client,
) -> Result<u64> {
    let mut held = Held::new(Kind::Copy);
    let progress = core.engine.take().progress().clone();
    let mut rows = Vec::new();
    let mut done = false;
    while !done {
        match client.copy_next().await.map_err(|_| SqlError::new("08006", "connection to client lost"))? {
            CopyIn::Data(data) => {
                progress.add_bytes(data.len());
                source.push(&data)?;
            }
            CopyIn::Done => done = true,
            CopyIn::Failed(why) => return Err(SqlError::new("57014", format!("COPY from stdin failed: {why}"))),
        }
        held.grow()?;
        loop {
            let first = feed.taken + 1;
            let insert = execution.insert()?;
            let mut to = To { into, core, insert, feed: &mut feed, all_here: done };
            let read = execution.with_run(core, |run| {
                let conversion = Conversion { format: &run.format, now: run.transaction_started, names: &run.names };
                source.read(&mut to, &conversion, &mut rows)
            });
            if rows.is_empty() && feed.taken < first {
                read?;
                break;
            }
            // What the rows before a line violate comes before what is wrong with the line.
            execution
                .feed(core, &mut feed, &mut rows)
                .await
                .map_err(|e| source.not_taken(e, into, (first.max(feed.taken).min(feed.failed().max(1)), first)))?;
            read?;
            progress.reach(feed.taken - feed.left_out);
            progress.leave_out(feed.left_out);
            core.backend.interrupt.check()?;
        }
    }
    if let Source::Binary(rows) = &mut source {
        rows.finish().map_err(|e| located(e, into, rows.number + 1, None))?;
    }
    feed.is_last = true;
    execution.feed(core, &mut feed, &mut rows).await.map_err(|e| located(e, into, feed.failed().max(1), None))?;
    execution.end_feed(core, feed).await
}
