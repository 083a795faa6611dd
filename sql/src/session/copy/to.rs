//! COPY TO: sends the rows of a query as they are computed.

use super::options::{Form, Format};
use super::write::Writer;
use crate::context::names::quote;
use crate::error::{Result, SqlError};
use crate::exec::sink::Sink;
use crate::exec::{BoxFuture, Row, Run};
use crate::session::client::{Client, CopyFormat};
use crate::session::session::{Prepared, Session};
use crate::syntax::stmt::{Copy, CopySource, Statement};
use crate::types::text::Conversion;
use clearway_engine::progress::Progress;
use std::sync::Arc;

/// The client, as the end of a COPY TO.
struct ToClient<'a> {
    writer: Writer<'a>,
    core: Arc<crate::context::core::Core>,
    client: &'a mut dyn Client,
    line: Vec<u8>,
    /// The header of the binary form stands in `line`: it goes with the first row, as clients know it from PostgreSQL.
    begun: bool,
    progress: Arc<Progress>,
}

impl Sink for ToClient<'_> {
    fn row(&mut self, run: &Run<'_>, row: Row) -> Result<()> {
        let conversion = Conversion { format: &run.format, now: run.transaction_started, names: &run.names };
        if !std::mem::take(&mut self.begun) {
            self.line.clear();
        }
        self.writer.row(&row, &conversion, &mut self.line)?;
        self.client.copy_data(&self.line);
        self.progress.add(1);
        self.progress.add_bytes(self.line.len());
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.client.is_full()
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.core.wait_told().await?;
            self.client.drain().await.map_err(|_| SqlError::new("08006", "connection to client lost"))
        })
    }
}

fn statement_of(session: &Session, c: &Copy) -> Result<Statement> {
    let (name, columns) = match &c.source {
        CopySource::Query(s) if matches!(**s, Statement::Merge(_)) => {
            return Err(SqlError::new("0A000", "MERGE not supported in COPY"));
        }
        CopySource::Query(s) => return Ok((**s).clone()),
        CopySource::Table(name, columns) => (name, columns),
    };
    let (oid, catalog) = crate::planner::environment::relation_oid(&session.core, name)?;
    let mut all = "*";
    if let Some(relation) = catalog.relation(oid) {
        if relation.columns.iter().all(|c| c.is_dropped()) {
            all = "";
        }
        use clearway_engine::catalog::RelationKind;
        let kind = match relation.kind {
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
            _ => "",
        };
        if !kind.is_empty() {
            let message = format!("cannot copy from {kind} \"{}\"", relation.name);
            return Err(SqlError::new("42809", message).hint("Try the COPY (SELECT ...) TO variant."));
        }
    }
    let list: Vec<String> = columns.iter().map(|(n, _)| quote(n)).collect();
    let generated = catalog.relation(oid).filter(|r| columns.is_empty() && r.columns.iter().any(|c| c.generated));
    let list = match generated {
        Some(r) => r.columns.iter().filter(|c| !c.is_dropped() && !c.generated).map(|c| quote(&c.name)).collect(),
        None => list,
    };
    let list = if list.is_empty() { all.to_owned() } else { list.join(", ") };
    let parts: Vec<String> = name.parts.iter().map(|p| quote(p)).collect();
    let select = format!("SELECT {list} FROM ONLY {}", parts.join("."));
    crate::syntax::parse(&select)?.pop().map(|p| p.statement).ok_or_else(|| SqlError::internal("no SELECT"))
}

pub(super) async fn copy_to(
    session: &mut Session,
    prepared: &Arc<Prepared>,
    c: &Copy,
    form: &Form,
    client: &mut dyn Client,
) -> Result<String> {
    let no_rows = || SqlError::new("0A000", "COPY query must have a RETURNING clause");
    let mut execution = loop {
        let statement = statement_of(session, c)?;
        let mut inner = session.prepare_statement(statement.clone(), prepared.text.clone(), &[])?;
        if !inner.types.is_empty() {
            return Err(SqlError::new("42P02", "there is no parameter $1"));
        }
        // The client has not been told of the columns: they may be others when the tables are locked.
        inner.columns.take().ok_or_else(no_rows)?;
        let execution = session.start(&inner, &statement, Arc::from([])).await?;
        if statement_of(session, c)? == statement {
            break execution;
        }
    };
    let columns = execution.cached.plan.columns.clone().ok_or_else(no_rows)?;
    let count = columns.len();
    let writer = Writer::new(form, columns)?;
    let core = session.core.clone();
    core.wait_told().await?;
    client.copy_out(CopyFormat { binary: form.format == Format::Binary, columns: count });
    let progress = core.engine.take().progress().clone();
    let _working = progress.begin(super::shown::now("COPY TO", &core, &c.source));
    let mut out = ToClient { writer, core: core.clone(), client, line: Vec::new(), begun: false, progress };
    out.writer.begin(&mut out.line)?;
    out.begun = form.format == Format::Binary;
    if !out.begun && !out.line.is_empty() {
        out.client.copy_data(&out.line);
    }
    let rows = execution.give_to(&core, &mut out).await?;
    let mut last = if out.begun { std::mem::take(&mut out.line) } else { Vec::new() };
    out.writer.end(&mut last);
    if !last.is_empty() {
        out.client.copy_data(&last);
    }
    out.client.copy_out_done();
    Ok(format!("COPY {rows}"))
}
