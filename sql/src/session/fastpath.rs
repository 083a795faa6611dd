//! The function call message of the protocol: a function by its number, with its arguments, without a text of SQL.
//!
//! # Structure
//! A call runs as the statement `SELECT schema.name($1, ...)` with arguments of the function's own types, so that rights, locks, snapshot,
//! timeouts and the transaction are those of any statement. The statement of a function is kept with its plan.
//!
//! Source: PostgreSQL 15's src/backend/tcop/fastpath.c, for the order of the checks, the errors and the log.

use super::client::Client;
use super::parameters::parameters_of;
use super::session::{Block, Prepared, Session};
use crate::context::obstacle;
use crate::error::{Result, SqlError};
use crate::exec::BoxFuture;
use crate::syntax::parse;
use crate::types::user;
use crate::types::{Datum, Oid};
use clearway_base::breath;
use clearway_engine::catalog::{ArgumentMode, Object, RoutineKind};
use clearway_values::builtin;
use std::pin::pin;
use std::sync::Arc;

/// Functions whose statements are kept.
const KEPT_MAX: usize = 100;

/// A function call message.
pub struct FunctionCall<'a> {
    /// The number of the function.
    pub function: Oid,
    /// Forms of the arguments: none (all text), one for all, or one each; 0 or 1.
    pub formats: &'a [i16],
    /// The arguments; None is NULL.
    pub values: &'a [Option<&'a [u8]>],
    /// The form of the result.
    pub result_format: i16,
}

/// A function that can be called so.
pub(super) struct Called {
    /// How the log names it.
    shown: Arc<str>,
    prepared: Arc<Prepared>,
}

/// What is known of a function before its statement is made.
struct Found {
    schema: String,
    name: String,
    arguments: Vec<Oid>,
    variadic: bool,
    callable: bool,
}

/// Takes the one row, and passes on what is told beside it.
struct OneValue<'a> {
    client: &'a mut dyn Client,
    value: Option<Vec<u8>>,
}

impl Client for OneValue<'_> {
    fn row(&mut self, _: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut out = Vec::new();
        self.value = write(0, &mut out).then_some(out);
    }
    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        self.client.notice(severity, message);
    }
    fn notice_now(&mut self, severity: &'static str, message: &SqlError) {
        self.client.notice_now(severity, message);
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Session {
    /// Calls a function; the value of its result in the form that was asked for, or none for NULL.
    ///
    /// # Errors
    /// 25P02 in a failed block; 42883, 0A000, 08P01 for a call that does not fit; the function's own.
    pub async fn function_call(&mut self, call: &FunctionCall<'_>, client: &mut dyn Client) -> Result<Option<Vec<u8>>> {
        self.parsed_ns = 0;
        self.begin_account();
        let flag = self.core.backend.interrupt.flag();
        let types = self.core.types.clone();
        let called = user::within(types, pin!(breath::within(flag, self.calling(call, client)))).await;
        self.rest();
        called
    }

    /// The future of `answer_call`; as that of `run_text`, its code is generated in this crate alone.
    fn calling<'a>(
        &'a mut self,
        call: &'a FunctionCall<'_>,
        client: &'a mut dyn Client,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>>> {
        Box::pin(self.answer_call(call, client))
    }

    async fn answer_call(&mut self, call: &FunctionCall<'_>, client: &mut dyn Client) -> Result<Option<Vec<u8>>> {
        let prepared = self.callee(call.function).and_then(|called| Ok((self.arguments(&called, call)?, called)));
        let (params, called) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return self.failed(e, client).await,
        };
        self.of_several = false;
        let Called { shown, prepared } = &*called;
        self.watch.called = Some(shown.clone());
        let began_ns = self.watch(&prepared.digest, &prepared.text, None);
        let ran = self.run_call(prepared, params, call.result_format, client).await;
        self.watched(&prepared.digest, began_ns, ran.as_ref().err(), None);
        self.watch.called = None;
        let ended = match ran {
            Ok(value) => self.end_implicit().await.map(|()| value),
            Err(e) => Err(e),
        };
        match ended {
            Ok(value) => {
                self.told = true;
                self.deliver(client);
                Ok(value)
            }
            Err(e) => self.failed(e, client).await,
        }
    }

    async fn run_call(
        &mut self,
        prepared: &Arc<Prepared>,
        params: Arc<[Datum]>,
        format: i16,
        client: &mut dyn Client,
    ) -> Result<Option<Vec<u8>>> {
        let statement = prepared.statement.clone().ok_or_else(|| SqlError::internal("a call without a statement"))?;
        let core = self.core.clone();
        let limit_ms = self.timeouts().statement_ms;
        self.admit(limit_ms).await?;
        self.begin_implicit();
        self.result_formats = vec![format];
        let mut one = OneValue { client, value: None };
        let interrupt = &core.backend.interrupt;
        {
            let body = pin!(self.statement(prepared, &statement, params, &mut one));
            let ended = interrupt.timed(limit_ms, pin!(interrupt.guard(body))).await;
            interrupt.ended(ended.map_err(|e| obstacle::explained(&core, e)))?;
        }
        Ok(one.value)
    }

    /// The function of a number, with its statement.
    fn callee(&mut self, function: Oid) -> Result<Arc<Called>> {
        if self.block == Block::Failed {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        let unknown = || SqlError::new("42883", format!("function with OID {function} does not exist"));
        // One that a user has defined may have been dropped or renamed.
        if let Some(called) = self.called.get(&function)
            && self.find_function(function).is_some_and(|found| found.text() == *called.prepared.text)
        {
            return Ok(called.clone());
        }
        let found = self.find_function(function).ok_or_else(unknown)?;
        if !found.callable {
            let message = format!("cannot call function \"{}\" via fastpath interface", found.name);
            return Err(SqlError::new("0A000", message));
        }
        let text = found.text();
        let parsed = parse(&text)?.pop().ok_or_else(unknown)?;
        let prepared = Arc::new(self.prepare_statement(parsed.statement, text.into(), &found.arguments)?);
        let shown = format!("\"{}\" (OID {function})", found.name).into();
        let called = Arc::new(Called { shown, prepared });
        if self.called.len() >= KEPT_MAX {
            self.called.clear();
        }
        self.called.insert(function, called.clone());
        Ok(called)
    }

    fn find_function(&self, function: Oid) -> Option<Found> {
        let catalog = self.core.catalog();
        if let Some(r) = catalog.routine(function) {
            let Some(Object::Schema(schema)) = catalog.get(r.schema).map(|o| &**o) else { return None };
            return (schema.database == self.core.database).then(|| Found {
                schema: schema.name.clone(),
                name: r.name.clone(),
                arguments: r.input_types(),
                variadic: r.arguments.iter().any(|a| a.mode == ArgumentMode::Variadic),
                callable: r.kind == RoutineKind::Function && !r.gives_rows,
            });
        }
        let p = builtin::proc(function)?;
        Some(Found {
            schema: if p.schema == crate::context::views::PG_CATALOG { "pg_catalog" } else { "information_schema" }
                .to_owned(),
            name: p.name.to_owned(),
            arguments: p.arguments.clone(),
            variadic: false,
            callable: p.kind == 'f' && !p.gives_rows,
        })
    }

    /// The values of the arguments.
    fn arguments(&self, called: &Called, call: &FunctionCall<'_>) -> Result<Arc<[Datum]>> {
        let (given, wanted, formats) = (call.values.len(), called.prepared.types.len(), call.formats.len());
        let refused = |message| Err(SqlError::new("08P01", message));
        if given != wanted {
            return refused(format!("function call message contains {given} arguments but function requires {wanted}"));
        }
        if formats > 1 && formats != given {
            let message = format!("function call message contains {formats} argument formats but {given} arguments");
            return refused(message);
        }
        parameters_of(&self.core, call.values, call.formats, &called.prepared.types).map(Arc::from)
    }
}

impl Found {
    /// The statement that calls it.
    fn text(&self) -> String {
        let count = self.arguments.len();
        let argument = |n: usize| {
            let spread = if self.variadic && n == count { "VARIADIC " } else { "" };
            format!("{spread}${n}")
        };
        let arguments: Vec<String> = (1..=count).map(argument).collect();
        format!("SELECT {}.{}({})", quoted(&self.schema), quoted(&self.name), arguments.join(", "))
    }
}
