//! SQL statements, EXECUTE, INTO and GET DIAGNOSTICS.

use super::evaluate::{Begun, in_fragment, is_of_record};
use super::frame::Frame;
use crate::context::names::quote;
use crate::context::statements::Digest;
use crate::error::{Result, SqlError, code};
use crate::exec::Row;
use crate::expr::bind_routines::ParamNames;
use crate::planner::plan::{Action, OutputColumn};
use crate::session::choice::Choice;
use crate::session::client::{Client, ClientFuture, CopyIn};
use crate::session::explain;
use crate::session::routine::command;
use crate::session::run::Execution;
use crate::session::session::{Prepared, is_planned};
use crate::syntax::plpgsql::tree::{Destination, Diagnostic, Fragment, StmtKind, Target};
use crate::syntax::stmt::{Copy, CopyEnd, Statement, Transaction};
use crate::syntax::{Parsed, parse};
use crate::types::datum::Array;
use crate::types::{Datum, Oid, SqlType, array_of, oid};
use clearway_base::sync::Mutex;
use std::sync::{Arc, OnceLock};

/// Rows that a loop reads at once.
pub(super) const FETCHED: u64 = 50;

/// Rows that are read at once of a statement whose rows are dropped.
pub(super) const DROPPED: u64 = 1_000;

/// A client that gets the notices of a statement and nothing else of it; the first column of its rows is kept where it is asked for.
struct NoticesOnly<'a> {
    client: &'a mut dyn Client,
    kept: Option<Vec<Datum>>,
}

impl Client for NoticesOnly<'_> {
    fn row(&mut self, _: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let Some(kept) = &mut self.kept else { return };
        let mut text = Vec::new();
        let some = write(0, &mut text);
        kept.push(if some { Datum::text(String::from_utf8_lossy(&text).into_owned()) } else { Datum::Null });
    }
    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        self.client.notice(severity, message);
    }
    fn notice_now(&mut self, severity: &'static str, message: &SqlError) {
        self.client.notice_now(severity, message);
    }
    fn parameter_status(&mut self, name: &str, value: &str) {
        self.client.parameter_status(name, value);
    }
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async { Ok(CopyIn::Done) })
    }
}

/// What a statement has done.
struct Done {
    rows: Vec<Row>,
    columns: Option<Vec<OutputColumn>>,
    count: u64,
    /// It changes rows.
    changes: bool,
}

/// Refuses what a body may not run; `nested`: the body of a function.
fn may_run(statement: &Statement, dynamic: bool, nested: bool) -> Result<()> {
    use Statement as S;
    match statement {
        S::Prepare { .. } | S::Execute { .. } | S::Deallocate { .. } | S::Discard(_) if nested => {
            Err(SqlError::unsupported("a statement about prepared statements in a function"))
        }
        // PLS-3
        S::Transaction(Transaction::Set(_)) if !nested => Ok(()),
        Statement::Transaction(_) if dynamic => {
            Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "EXECUTE of transaction commands is not implemented"))
        }
        Statement::Transaction(_) => {
            Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL"))
        }
        Statement::Copy(c) if matches!(**c, Copy { end: CopyEnd::Client, .. }) => {
            Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL"))
        }
        _ => Ok(()),
    }
}

/// What PostgreSQL says of a statement that has to be alone in its transaction, where the transaction is none that the client began.
fn not_alone(e: SqlError) -> SqlError {
    match e.message().strip_suffix(" cannot run inside a transaction block") {
        Some(what) if e.code() == "25001" => {
            SqlError::new("25001", format!("{what} cannot be executed from a function"))
        }
        _ => e,
    }
}

impl Frame<'_> {
    /// A statement after which the next one follows.
    pub(super) async fn plain(&mut self, kind: &StmtKind) -> Result<()> {
        match kind {
            StmtKind::Assign { target, parts, value } => {
                let (given, ty) = self.evaluate(value).await?;
                match parts.is_empty() {
                    true => self.assign(*target, given, ty),
                    false => {
                        let assigned = self.assign_part(*target, parts, given, ty).await;
                        assigned.map_err(|e| if is_of_record(&e) { in_fragment(value, e) } else { e })
                    }
                }
            }
            StmtKind::Raise(raise) => self.raise(raise).await,
            StmtKind::Assert { condition, message } => self.assert(condition, message.as_ref()).await,
            StmtKind::Perform(f) => {
                let done = self.run_static(f, 0).await?;
                self.row_count = done.count;
                self.found(done.count > 0);
                Ok(())
            }
            StmtKind::Sql { fragment, into } => self.sql(fragment, into.as_ref()).await,
            StmtKind::Execute { query, into, values } => self.execute(query, into.as_ref(), values).await,
            StmtKind::Diagnostics { stacked, items } => self.diagnostics(*stacked, items).await,
            StmtKind::ReturnNext(returned) => self.return_next(returned).await,
            StmtKind::ReturnQuery(rows) => self.return_query(rows).await,
            StmtKind::Open { cursor, what, scroll } => self.open(*cursor, what, *scroll).await,
            StmtKind::Fetch { cursor, direction, distance, into } => {
                self.fetch(*cursor, (*direction, distance), into.as_deref()).await
            }
            StmtKind::Close(cursor) => self.close(*cursor),
            StmtKind::Commit { chain } => self.end_transaction(true, *chain).await,
            StmtKind::Rollback { chain } => self.end_transaction(false, *chain).await,
            _ => Ok(()),
        }
    }

    /// Runs a statement of the body; `wanted` rows of it are kept, 0: none, and all are read.
    async fn run_static(&mut self, f: &Fragment, wanted: u64) -> Result<Done> {
        may_run(&f.statement, false, self.session.is_nested())?;
        if !is_planned(&f.statement) {
            return self.run_unplanned(&f.statement, f.text.clone()).await.map_err(|e| in_fragment(f, e));
        }
        let execution = self.begin(f).await?;
        self.finish(execution, wanted).await.map_err(|e| in_fragment(f, e))
    }

    /// Reads the rows of a statement that has begun.
    async fn finish(&mut self, mut execution: Execution, wanted: u64) -> Result<Done> {
        let core = self.session.core.clone();
        let columns = execution.cached.plan.columns.clone();
        let selects = matches!(execution.cached.plan.action, Action::Select(_));
        let mut rows = Vec::new();
        let mut count = execution.count;
        if wanted > 0 {
            rows = execution.take(&core, wanted).await?;
            count = if selects { rows.len() as u64 } else { count };
        } else if selects {
            loop {
                let got = execution.take(&core, DROPPED).await?.len() as u64;
                count += got;
                if got < DROPPED {
                    break;
                }
            }
        }
        Ok(Done { rows, columns, count, changes: !selects })
    }

    /// Runs a statement that is not planned: it gets no variables.
    async fn run_unplanned(&mut self, statement: &Statement, text: Arc<str>) -> Result<Done> {
        if self.view.is_some() {
            let message = format!("{} is not allowed in a non-volatile function", command(statement));
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        if let Statement::Fetch { name, direction, is_move } = statement {
            let fetching = self.session.fetch_rows(name, *direction, *is_move);
            let (rows, columns, count) = Box::pin(clearway_base::stack::deeper_polls(fetching)).await?;
            return Ok(Done { rows, columns: (!is_move).then(|| columns.to_vec()), count, changes: false });
        }
        let prepared = unplanned(statement, text, &[]);
        self.session.ran_within(false);
        let mut client = NoticesOnly { client: &mut *self.client, kept: None };
        // PLS-3
        let within_body = std::mem::replace(&mut self.session.within_body, true);
        let run = async {
            match statement {
                Statement::Transaction(t) => self.session.transaction(t).await,
                _ => self.session.statement(&prepared, statement, Arc::from([]), &mut client).await,
            }
        };
        let tag = Box::pin(clearway_base::stack::deeper_polls(run)).await;
        self.session.within_body = within_body;
        let tag = tag.map_err(|e| if self.session.is_atomic() { e } else { not_alone(e) })?;
        let count = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok(Done { rows: Vec::new(), columns: None, count, changes: false })
    }

    /// The lines of EXPLAIN as a query that gives them, with its parameter and the type of that; none: it is another statement.
    async fn explained(
        &mut self,
        statement: &Statement,
        text: &Arc<str>,
        (params, types): (&Arc<[Datum]>, &[Oid]),
    ) -> Result<Option<(Statement, Arc<[Datum]>, [Oid; 1])>> {
        let Statement::Explain { options, .. } = statement else { return Ok(None) };
        if self.view.is_some() {
            let message = format!("{} is not allowed in a non-volatile function", command(statement));
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        let column = explain::column(options);
        let prepared = unplanned(statement, text.clone(), types);
        self.session.ran_within(false);
        let mut client = NoticesOnly { client: &mut *self.client, kept: Some(Vec::new()) };
        let run = self.session.statement(&prepared, statement, params.clone(), &mut client);
        Box::pin(clearway_base::stack::deeper_polls(run)).await?;
        let lines = client.kept.unwrap_or_default();
        let lines = if column.ty.oid == oid::JSON {
            let json = |line| if let Datum::Text(text) = line { Datum::Json(text) } else { line };
            lines.into_iter().map(json).collect()
        } else {
            lines
        };
        let ty = array_of(column.ty.oid).unwrap_or(oid::TEXT_ARRAY);
        let lines = Datum::Array(Array::one_dimensional(column.ty.oid, lines).into());
        let query = format!("SELECT pg_catalog.unnest($1) AS {}", quote(&column.name));
        let query = parse(&query)?.pop().ok_or_else(|| SqlError::internal("no query"))?;
        Ok(Some((query.statement, Arc::from([lines]), [ty])))
    }

    /// A statement of SQL.
    async fn sql(&mut self, f: &Fragment, into: Option<&Destination>) -> Result<()> {
        if into.is_some() && !is_planned(&f.statement) {
            return Err(SqlError::unsupported("INTO of this statement in PL/pgSQL"));
        }
        if let Statement::Routine(r) = &*f.statement
            && r.is_call()
        {
            return self.call(f, r).await;
        }
        let wanted = wanted(into, !matches!(*f.statement, Statement::Query(_)));
        if into.is_none() && matches!(*f.statement, Statement::Query(_)) {
            may_run(&f.statement, false, self.session.is_nested())?;
            // As in PostgreSQL, the statement is planned before this is said of it.
            self.begin(f).await?;
            return Err(no_destination(true));
        }
        let done = self.run_static(f, wanted).await?;
        self.row_count = done.count;
        if done.changes || into.is_some() {
            self.found(done.count > 0);
        }
        match into {
            Some(into) => self.take_into(into, done).await,
            None if done.columns.is_some() => Err(no_destination(false)),
            None => Ok(()),
        }
    }

    /// INTO.
    async fn take_into(&mut self, into: &Destination, done: Done) -> Result<()> {
        let Some(columns) = done.columns else {
            return Err(SqlError::new(code::SYNTAX_ERROR, "INTO used with a command that cannot return data"));
        };
        let mut rows = done.rows.into_iter();
        let first = rows.next();
        if first.is_none() && into.strict {
            return Err(SqlError::new("P0002", "query returned no rows"));
        }
        if rows.next().is_some() && (into.strict || done.changes) {
            let hint = "Make sure the query returns a single row, or use LIMIT 1.";
            return Err(SqlError::new("P0003", "query returned more than one row").hint(hint));
        }
        self.assign_row(&into.targets, first, &columns).await
    }

    /// The text and the parameters of EXECUTE.
    async fn dynamic(&mut self, query: &Fragment, values: &[Fragment]) -> Result<(Arc<str>, Arc<[Datum]>, Vec<Oid>)> {
        let Some(text) = self.text(query).await? else {
            return Err(SqlError::new("22004", "query string argument of EXECUTE is null"));
        };
        let values = self.evaluate_all(values).await?;
        let types = values.iter().map(|(_, ty)| ty.oid).collect();
        Ok((text.into(), values.into_iter().map(|(value, _)| value).collect(), types))
    }

    /// Begins the one statement of EXECUTE that gives rows.
    pub(super) async fn begin_dynamic(
        &mut self,
        query: &Fragment,
        values: &[Fragment],
        for_cursor: bool,
    ) -> Result<Begun> {
        let (text, params, types) = self.dynamic(query, values).await?;
        let mut parsed = parse(&text).map_err(|e| in_text(e, &text))?;
        let (Some(only), true) = (parsed.pop(), parsed.is_empty()) else {
            return Err(SqlError::new("42P11", "cannot open multi-query plan as cursor"));
        };
        may_run(&only.statement, true, self.session.is_nested())?;
        let explained = self.explained(&only.statement, &text, (&params, &types)).await;
        if let Some((query, lines, ty)) = explained.map_err(|e| in_text(e, &text))? {
            let execution = self.begin_with(&query, &text, (lines, &ty, false), no_names(), None).await?.0;
            return Ok(Begun { execution, text, identity: None });
        }
        if !is_planned(&only.statement) {
            return Err(SqlError::unsupported("a loop or a cursor over this statement in PL/pgSQL"));
        }
        if for_cursor && let Some((statement, identity)) = self.identified(&only.statement) {
            let run = self.begin_with(&statement, &text, (params.clone(), &types, true), no_names(), None);
            if let Ok((execution, _)) = run.await {
                return Ok(Begun::identified(execution, text, identity));
            }
        }
        let begun = self.begin_with(&only.statement, &text, (params, &types, true), no_names(), None).await;
        let execution = begun.map_err(|e| in_text(e, &text))?.0;
        Ok(Begun { execution, text, identity: None })
    }

    async fn execute(&mut self, query: &Fragment, into: Option<&Destination>, values: &[Fragment]) -> Result<()> {
        let (text, params, types) = self.dynamic(query, values).await?;
        let parsed = parse(&text).map_err(|e| in_text(e, &text))?;
        let mut done = None;
        for Parsed { statement, range, .. } in &parsed {
            may_run(statement, true, self.session.is_nested())?;
            if matches!(statement, Statement::CreateTableAs(c) if c.text.is_empty() && starts_with_select(&text, range.start))
            {
                let message = "EXECUTE of SELECT ... INTO is not implemented";
                let hint = "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.";
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).hint(hint));
            }
            let explained = match into {
                Some(_) => {
                    let explained = self.explained(statement, &text, (&params, &types)).await;
                    explained.map_err(|e| in_text(e, &text))?
                }
                None => None,
            };
            let ran = if let Some((query, lines, ty)) = explained {
                let execution = self.begin_with(&query, &text, (lines, &ty, false), no_names(), None).await?.0;
                self.finish(execution, wanted(into, false)).await
            } else if is_planned(statement) {
                let begun = self.begin_with(statement, &text, (params.clone(), &types, true), no_names(), None).await;
                let execution = begun.map_err(|e| in_text(e, &text))?.0;
                let changes = !matches!(execution.cached.plan.action, Action::Select(_));
                self.finish(execution, wanted(into, changes)).await
            } else {
                self.run_unplanned(statement, text.get(range.clone()).unwrap_or(&text).into()).await
            };
            done = Some(ran.map_err(|e| in_text(e, &text))?);
        }
        let Some(done) = done else { return Ok(()) };
        self.row_count = done.count;
        match into {
            Some(into) => self.take_into(into, done).await,
            None => Ok(()),
        }
    }

    /// GET DIAGNOSTICS.
    async fn diagnostics(&mut self, stacked: bool, items: &[(Target, Diagnostic)]) -> Result<()> {
        if stacked && self.handled.is_none() {
            let message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
            return Err(SqlError::new("0Z002", message));
        }
        for (target, item) in items {
            let (value, ty): (Datum, SqlType) = match item {
                Diagnostic::RowCount => (Datum::Int8(self.row_count as i64), oid::INT8.into()),
                Diagnostic::Context => (Datum::text(self.context()), oid::TEXT.into()),
                item => {
                    (Datum::text(self.handled.as_ref().map_or(String::new(), |e| told(e, *item))), oid::TEXT.into())
                }
            };
            self.assign_target(target, value, ty).await?;
        }
        Ok(())
    }
}

/// A statement that is run without a plan of its own.
fn unplanned(statement: &Statement, text: Arc<str>, types: &[Oid]) -> Arc<Prepared> {
    Arc::new(Prepared {
        digest: Digest::of(&text),
        text,
        statement: Some(Arc::new(statement.clone())),
        types: types.to_vec(),
        columns: None,
        constants: Arc::from([]),
        described: OnceLock::new(),
        choice: Choice::default(),
        shared: None,
        plan: Mutex::new("sql/plan", None),
    })
}

fn no_names() -> Arc<ParamNames> {
    Arc::new(ParamNames { function: String::new(), names: Vec::new(), variables: None })
}

/// How many rows tell all that INTO needs; 0: the rows are dropped.
fn wanted(into: Option<&Destination>, changes: bool) -> u64 {
    match into {
        None => 0,
        Some(into) => 1 + u64::from(into.strict || changes),
    }
}

fn no_destination(is_query: bool) -> SqlError {
    let error = SqlError::new(code::SYNTAX_ERROR, "query has no destination for result data");
    match is_query {
        true => error.hint("If you want to discard the results of a SELECT, use PERFORM instead."),
        false => error,
    }
}

fn starts_with_select(text: &str, at: usize) -> bool {
    let word = text.get(at..).unwrap_or("").trim_start();
    word.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"))
}

/// An error in the text of EXECUTE.
fn in_text(e: SqlError, text: &str) -> SqlError {
    match e.fields().at {
        Some(_) => e.internal_to(text),
        None => e.within(format!("SQL statement \"{text}\"")),
    }
}

/// What GET STACKED DIAGNOSTICS tells of an error.
fn told(e: &SqlError, item: Diagnostic) -> String {
    let fields = e.fields();
    let named =
        |field: u8| fields.names.iter().find(|(f, _)| *f == field).map_or(String::new(), |(_, text)| text.clone());
    match item {
        Diagnostic::State => e.code().to_owned(),
        Diagnostic::Message => e.message().to_owned(),
        Diagnostic::Detail => fields.detail.clone().unwrap_or_default(),
        Diagnostic::Hint => fields.hint.clone().unwrap_or_default(),
        Diagnostic::ErrorContext => named(b'W'),
        Diagnostic::Column => named(b'c'),
        Diagnostic::Constraint => named(b'n'),
        Diagnostic::Datatype => named(b'd'),
        Diagnostic::Table => named(b't'),
        Diagnostic::Schema => named(b's'),
        Diagnostic::RowCount | Diagnostic::Context => String::new(),
    }
}
