//! What a session does for statements that define data (`clearway_ddl`), which stand below it.

use super::routine;
use super::run::{self, Execution};
use super::session::{Prepared, Session};
use crate::context::core::Core;
use crate::error::{Result, SqlError, code};
use crate::exec::sink::Sink;
use crate::exec::{BoxFuture, Row, Run};
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::Expr;
use crate::syntax::error::Pos;
use crate::syntax::parse;
use crate::syntax::stmt::Statement;
use crate::types::Datum;
use clearway_ddl::session::{Asked, Begun, Server};
use clearway_ddl::temporary;
use clearway_engine::catalog::{Catalog, Oid, Routine, ViewMeaning};
use std::sync::Arc;

/// What all sessions do alike.
pub(super) struct Sessions;

impl Server for Sessions {
    fn rows<'a>(&self, core: &'a Arc<Core>, sql: &'a str) -> BoxFuture<'a, Result<Vec<Row>>> {
        Box::pin(rows(core, sql))
    }
    fn judge_body(&self, core: &Core, catalog: &Arc<Catalog>, r: &Routine) -> Result<Vec<ViewMeaning>> {
        routine::judge_body(core, catalog, r)
    }
    fn judge_plpgsql(&self, core: &Core, r: &Routine, place: Option<Pos>) -> Result<()> {
        Session::judge_plpgsql(core, r, place)
    }
    fn check_setting(&self, core: &Core, name: &str, value: &str) -> Result<()> {
        routine::check_setting(core, name, value)
    }
}

impl clearway_ddl::session::Session for Session {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
    fn shares_transaction(&self) -> bool {
        Session::shares_transaction(self)
    }
    fn server(&self) -> &'static dyn Server {
        &Sessions
    }
    fn prepare(&mut self, query: &Statement, text: &Arc<str>) -> Result<Box<dyn Asked + '_>> {
        let mut prepared = self.prepare_statement(query.clone(), text.clone(), &[])?;
        if !prepared.types.is_empty() {
            return Err(SqlError::new(code::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        // The client has not been told of the columns: they may be others when its tables are locked.
        let columns = prepared.columns.take();
        Ok(Box::new(AskedHere {
            session: self,
            prepared: Arc::new(prepared),
            columns,
            query: Some(query.clone()),
            values: Arc::from([]),
        }))
    }
    fn prepared<'a>(&'a mut self, name: &'a str, args: &'a [Expr]) -> BoxFuture<'a, Result<Box<dyn Asked + 'a>>> {
        Box::pin(async {
            let (prepared, values) = self.execute_arguments(name, args).await?;
            let query = prepared.statement.as_deref().cloned();
            let asked: Box<dyn Asked + 'a> =
                Box::new(AskedHere { session: self, columns: prepared.columns.clone(), prepared, query, values });
            Ok(asked)
        })
    }
}

/// A statement that a session has prepared.
struct AskedHere<'a> {
    session: &'a mut Session,
    prepared: Arc<Prepared>,
    columns: Option<Vec<OutputColumn>>,
    query: Option<Statement>,
    values: Arc<[Datum]>,
}

impl Asked for AskedHere<'_> {
    fn statement(&self) -> Option<&Statement> {
        self.query.as_ref()
    }
    fn columns(&self) -> Option<&[OutputColumn]> {
        self.columns.as_deref()
    }
    fn start(&mut self) -> BoxFuture<'_, Result<Box<dyn Begun>>> {
        Box::pin(async {
            let query = self.query.as_ref().ok_or_else(|| SqlError::internal("no query"))?;
            let begun: Box<dyn Begun> = Box::new(self.session.start(&self.prepared, query, self.values.clone()).await?);
            Ok(begun)
        })
    }
}

impl Begun for Execution {
    fn columns(&self) -> Option<&[OutputColumn]> {
        self.cached.plan.columns.as_deref()
    }
    fn give_to<'a>(&'a mut self, core: &'a Core, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<u64>> {
        Box::pin(Execution::give_to(self, core, sink))
    }
}

/// What ON COMMIT asks for, before the transaction commits. Most temporary tables ask for nothing.
pub(super) async fn before_commit(core: &Arc<Core>) -> Result<()> {
    let objects = {
        let mut engine = core.engine.take();
        let changed = engine.is_open() && engine.has_temporary() && engine.txn().id().is_some();
        if changed { engine.temporary_objects() } else { Vec::new() }
    };
    let catalog = core.catalog();
    let asks = |oid: &Oid| catalog.relation(*oid).is_some_and(|relation| relation.on_commit.is_some());
    match objects.iter().any(asks) {
        true => temporary::before_commit(core, &Sessions).await,
        false => Ok(()),
    }
}

/// Runs a statement of our own; its rows.
async fn rows(core: &Arc<Core>, sql: &str) -> Result<Vec<Row>> {
    let parsed = parse(sql)?.pop().ok_or_else(|| SqlError::internal("no query"))?;
    let request = run::Request {
        statement: &parsed.statement,
        text: &Arc::from(sql),
        params: Arc::from([]),
        types: &[],
        columns: None,
        alone: false,
        transaction_started: core.transaction_started(),
        latest: true,
        system: false,
        measured: false,
        custom: false,
        body: None,
        steering: None,
    };
    let (mut execution, _) = run::begin(core, request, None).await?;
    let mut rows = Collected(Vec::new());
    execution.give_to(core, &mut rows).await?;
    Ok(rows.0)
}

/// The rows of a query that gives few.
struct Collected(Vec<Row>);

impl Sink for Collected {
    fn row(&mut self, _: &Run<'_>, row: Row) -> Result<()> {
        self.0.push(row);
        Ok(())
    }
    fn is_full(&self) -> bool {
        false
    }
    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
