//! A run of a body: its variables, and what CONTEXT says of it.

use super::compile::{Compiled, Kind};
use crate::error::{Result, SqlError};
use crate::exec::{BoxFuture, Row};
use crate::session::client::Client;
use crate::session::session::Session;
use crate::syntax::plpgsql::names::Slot;
use crate::types::{Datum, SqlType, oid};
use clearway_txn::mvcc::book::View;
use std::sync::Arc;

/// What comes behind a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flow {
    /// The next one.
    Next,
    /// EXIT of a loop or a block.
    Exit(Option<String>),
    /// CONTINUE of a loop.
    Continue(Option<String>),
    /// RETURN.
    Return,
}

/// What the run is doing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doing {
    /// The line; 0: none.
    pub(super) line: u32,
    /// `at RAISE`, or a phase.
    pub(super) statement: Option<&'static str>,
    pub(super) phase: &'static str,
}

/// A run.
pub(super) struct Frame<'a> {
    pub(super) session: &'a mut Session,
    pub(super) client: &'a mut dyn Client,
    pub(super) code: Arc<Compiled>,
    pub(super) values: Vec<Datum>,
    /// The types of the variables, as far as they are known.
    pub(super) types: Vec<SqlType>,
    pub(super) doing: Doing,
    /// The error on its way has its CONTEXT.
    pub(super) placed: bool,
    /// The error that a handler handles.
    pub(super) handled: Option<SqlError>,
    /// ROW_COUNT.
    pub(super) row_count: u64,
    /// COMMIT and ROLLBACK are refused.
    pub(super) atomic: bool,
    /// Blocks with EXCEPTION around the statement.
    pub(super) guarded: u32,
    /// What a function that is not volatile sees.
    pub(super) view: Option<View>,
    /// The columns that the call wants.
    pub(super) wanted: Option<Vec<SqlType>>,
    /// What RETURN gave.
    pub(super) returned: Option<(Datum, SqlType)>,
    /// What RETURN NEXT and RETURN QUERY gave.
    pub(super) rows: Vec<Row>,
}

impl<'a> Frame<'a> {
    /// A run whose variables are all NULL.
    pub(super) fn new(session: &'a mut Session, client: &'a mut dyn Client, code: Arc<Compiled>) -> Frame<'a> {
        let types = code.kinds.iter().map(|kind| match kind {
            Kind::Of(ty) => *ty,
            Kind::Record => oid::RECORD.into(),
            Kind::Any => oid::TEXT.into(),
        });
        let types = types.collect();
        let mut values = vec![Datum::Null; code.kinds.len()];
        values[code.body.found] = Datum::Bool(false);
        Frame {
            session,
            client,
            values,
            types,
            doing: Doing { line: 0, statement: None, phase: "during function entry" },
            placed: false,
            handled: None,
            row_count: 0,
            atomic: true,
            guarded: 0,
            view: None,
            wanted: None,
            returned: None,
            rows: Vec::new(),
            code,
        }
    }

    /// What CONTEXT says of the run.
    pub(super) fn context(&self) -> String {
        let shown = &self.code.shown;
        match (self.doing.statement, self.doing.line) {
            (Some(statement), line) => format!("PL/pgSQL function {shown} line {line} at {statement}"),
            (None, 0) => format!("PL/pgSQL function {shown} {}", self.doing.phase),
            (None, line) => format!("PL/pgSQL function {shown} line {line} {}", self.doing.phase),
        }
    }

    /// An error with its CONTEXT, which it gets once.
    pub(super) fn placed(&mut self, e: SqlError) -> SqlError {
        if std::mem::replace(&mut self.placed, true) { e } else { e.within(self.context()) }
    }

    /// Sets `found`.
    pub(super) fn found(&mut self, found: bool) {
        self.values[self.code.body.found] = Datum::Bool(found);
    }

    /// Runs the body; an error has its CONTEXT.
    pub(super) fn run(&mut self) -> BoxFuture<'_, Result<Flow>> {
        Box::pin(async move {
            let code = self.code.clone();
            match self.block(&code.body.block).await {
                Ok(flow) => Ok(flow),
                Err(e) => Err(self.placed(e)),
            }
        })
    }

    pub(super) fn name_of(&self, slot: Slot) -> &str {
        &self.code.body.variables[slot].name
    }
}
