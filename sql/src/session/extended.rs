//! The extended protocol: Parse, Bind, Describe, Execute, Close, Sync; and PREPARE and EXECUTE of SQL.

use super::awaited::tag_of;
use super::choice::Choice;
use super::client::Client;
use super::current_of::of_no_row;
use super::cursors::Listed;
use super::parameters::parameters_of;
use super::portals::Portal;
use super::run;
use super::session::{Bind, Block, Prepared, Session, is_planned};
use super::utility;
use crate::context::backend::redacted;
use crate::context::core::{NamedCursor, NamedStatement, now};
use crate::context::obstacle;
use crate::context::statements::Digest;
use crate::context::steering::Steering;
use crate::error::{Result, SqlError, code};
use crate::exec::BoxFuture;
use crate::expr::Params;
use crate::syntax::parse;
use crate::syntax::stmt::Statement;
use crate::types::user;
use crate::types::{Datum, Oid, SqlType, oid};
use clearway_base::breath;
use clearway_base::sync::Mutex;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

impl Session {
    /// Prepares a statement.
    ///
    /// # Errors
    /// Whatever is wrong with the text.
    pub async fn parse(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        self.begin_time();
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(self
                .broken(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")))
                .await);
        }
        self.begin_account();
        self.prepared_held.resume();
        let flag = self.core.backend.interrupt.flag();
        let entered = user::enter(self.core.types.clone());
        let prepared = breath::within_now(flag, || match name.is_empty() {
            true => self.prepare_unnamed(sql, types),
            false => self.prepare(sql, types).map(Arc::new),
        });
        drop(entered);
        match prepared {
            Ok(prepared) => {
                self.recent = None;
                if !name.is_empty() {
                    self.list_prepared(name, &prepared, false);
                }
                let before = self.statements.insert(name.to_owned(), prepared);
                self.forgotten += u64::from(before.is_some());
                self.prepared_held.measure();
                Ok(())
            }
            Err(e) => Err(self.broken(e).await),
        }
    }

    /// A message of the extended protocol has failed.
    pub(super) async fn broken(&mut self, e: SqlError) -> SqlError {
        match self.fail().await {
            Ok(()) => e,
            Err(worse) => worse,
        }
    }

    pub(super) fn prepare(&mut self, sql: &str, types: &[Oid]) -> Result<Prepared> {
        if let Some(shared) = self.shared_plan(sql, types, false) {
            if let Some(statement) = &shared.statement {
                self.check_block(statement)?;
            }
            return Ok(shared);
        }
        let mut parsed = parse(sql)?;
        if parsed.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(code::SYNTAX_ERROR, message));
        }
        let Some(parsed) = parsed.pop() else {
            return Ok(Prepared {
                text: sql.into(),
                statement: None,
                types: Vec::new(),
                columns: None,
                digest: Digest::of(sql),
                constants: Arc::from([]),
                described: OnceLock::new(),
                choice: Choice::default(),
                shared: None,
                plan: Mutex::new("sql/plan", None),
            });
        };
        self.check_block(&parsed.statement)?;
        self.prepare_statement(parsed.statement, redacted(sql).into(), types)
    }

    /// Prepares a parsed statement.
    pub(super) fn prepare_statement(
        &mut self,
        statement: Statement,
        text: Arc<str>,
        types: &[Oid],
    ) -> Result<Prepared> {
        self.prepare_by(statement, text, types, None)
    }

    /// The same by settings of the planner, if not by the session's.
    pub(super) fn prepare_by(
        &mut self,
        statement: Statement,
        text: Arc<str>,
        types: &[Oid],
        steering: Option<Steering>,
    ) -> Result<Prepared> {
        let given = types.iter().map(|t| if *t == 0 || *t == oid::UNKNOWN { None } else { Some(*t) }).collect();
        let mut params = Params { types: given, open: true, ..Params::default() };
        let of_no_row = of_no_row(&statement)?;
        let asked = of_no_row.as_ref().unwrap_or(&statement);
        let planned = if is_planned(asked) { run::plan(&self.core, asked, &mut params, steering)? } else { None };
        let (types, columns, plan) = match planned {
            Some(cached) => {
                let columns = cached.plan.columns.clone();
                (cached.plan.params.clone(), columns, of_no_row.is_none().then(|| Arc::new(cached)))
            }
            None => {
                let call = match &statement {
                    Statement::Routine(r) => r.as_call(),
                    _ => None,
                };
                let columns = match call {
                    Some(_) => None,
                    None => utility::columns_of(self, &statement)?,
                };
                let (columns, of_call) = match call {
                    Some(call) => super::call::described(&self.core, call, params.clone())?,
                    None => (columns, Vec::new()),
                };
                // A cursor's query may have parameters; the query is planned when the cursor is declared.
                let types = match &statement {
                    Statement::DeclareCursor { query, .. } if !params.types.is_empty() || text.contains('$') => {
                        let inner = Statement::Query(query.clone());
                        run::plan(&self.core, &inner, &mut params, None)?
                            .map_or_else(Vec::new, |p| p.plan.params.clone())
                    }
                    Statement::Explain { statement: inner, options }
                        if text.contains('$')
                            && is_planned(inner)
                            && !options.iter().any(|o| o.name == "generic_plan") =>
                    {
                        run::plan(&self.core, inner, &mut params, None)?
                            .map_or_else(Vec::new, |p| p.plan.params.clone())
                    }
                    _ => of_call,
                };
                (types, columns, None)
            }
        };
        Ok(Prepared {
            digest: Digest::of(&text),
            constants: Arc::from([]),
            described: OnceLock::new(),
            text,
            statement: Some(Arc::new(statement)),
            types,
            columns,
            choice: Choice::default(),
            shared: None,
            plan: Mutex::new("sql/plan", plan),
        })
    }

    pub(super) fn prepared(&self, name: &str) -> Result<Arc<Prepared>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = if name.is_empty() {
                "unnamed prepared statement does not exist".to_owned()
            } else {
                format!("prepared statement \"{name}\" does not exist")
            };
            SqlError::new("26000", message)
        })
    }

    /// Binds parameters to a prepared statement.
    ///
    /// # Errors
    /// 26000, 08P01, 22P02, 22P03.
    pub async fn bind(&mut self, portal: &str, statement: &str, bind: Bind<'_>) -> Result<()> {
        self.in_time().await?;
        let entered = user::enter(self.core.types.clone());
        let bound = self.bind_now(portal, statement, &bind);
        drop(entered);
        match bound {
            Ok(()) => Ok(()),
            Err(e) => Err(self.broken(e).await),
        }
    }

    /// The statement to be bound.
    pub(super) fn bound(&mut self, name: &str) -> Result<Arc<Prepared>> {
        if let Some((recent, prepared)) = &self.recent
            && recent == name
        {
            return Ok(prepared.clone());
        }
        let prepared = self.prepared(name)?;
        match &mut self.recent {
            // In the memory of the name before: a client may bind its statements in turns.
            Some((recent, last)) => {
                recent.clear();
                recent.push_str(name);
                *last = prepared.clone();
            }
            None => self.recent = Some((name.to_owned(), prepared.clone())),
        }
        Ok(prepared)
    }

    pub(super) fn bind_now(&mut self, portal: &str, statement: &str, bind: &Bind<'_>) -> Result<()> {
        let prepared = self.bound(statement)?;
        if let Some(s) = &prepared.statement {
            self.check_block(s)?;
        }
        if bind.values.len() != prepared.types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                bind.values.len(),
                prepared.types.len()
            );
            return Err(SqlError::new("08P01", message));
        }
        if !portal.is_empty() && (self.portals.get(portal).is_some() || self.cursors.contains(portal)) {
            return Err(SqlError::new("42P03", format!("cursor \"{portal}\" already exists")));
        }
        if let (Some(columns), given @ 2..) = (&prepared.columns, bind.result_formats.len())
            && given != columns.len()
        {
            let has = columns.len();
            let message = format!("bind message has {given} result formats but query has {has} columns");
            return Err(SqlError::new("08P01", message));
        }
        let (mut params, mut formats) = if portal.is_empty() { self.portals.lists() } else { Default::default() };
        if !prepared.plain_parameters(&self.core, bind, &mut params) {
            params = parameters_of(&self.core, bind.values, bind.formats, &prepared.types)?;
        }
        formats.extend_from_slice(bind.result_formats);
        prepared.choice.used();
        let bound = Portal { prepared, params, formats, running: None, finished: false };
        if portal.is_empty() {
            self.portals.insert(bound);
        } else {
            let text = bound.prepared.text.clone();
            let shown = NamedCursor { text, hold: false, binary: false, scroll: false, at: now(), tables: Vec::new() };
            self.portals.insert_named(portal, bound, Listed::new(&self.core, portal, shown));
        }
        Ok(())
    }

    /// Tells the client of a statement's parameters and columns.
    ///
    /// # Errors
    /// 26000.
    pub async fn describe_statement(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        self.in_time().await?;
        let prepared = match self.prepared(name) {
            Ok(prepared) => prepared,
            Err(e) => return Err(self.broken(e).await),
        };
        client.parameter_description(&prepared.types);
        match &prepared.columns {
            Some(columns) => run::describe(columns, &[], client),
            None => client.no_data(),
        }
        Ok(())
    }

    /// Tells the client of a portal's columns.
    ///
    /// # Errors
    /// 34000.
    pub async fn describe_portal(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        self.in_time().await?;
        if let Some((columns, binary)) = self.cursors.columns(name) {
            let formats: &[i16] = if binary { &[1] } else { &[] };
            run::describe(&columns, formats, client);
            return Ok(());
        }
        let Some(portal) = self.portals.get(name) else {
            return Err(self.broken(no_portal(name)).await);
        };
        // The cursor of a FETCH may have been declared after the FETCH was prepared.
        let of_cursor = match portal.prepared.statement.as_deref() {
            Some(Statement::Fetch { name, is_move: false, .. }) => self.fetched_columns(name),
            _ => None,
        };
        match of_cursor.as_ref().or(portal.prepared.columns.as_ref()) {
            Some(columns) => run::describe(columns, &portal.formats, client),
            None => client.no_data(),
        }
        Ok(())
    }

    /// Runs a portal, or continues it.
    ///
    /// # Errors
    /// The statement's.
    pub async fn execute(&mut self, portal: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        self.give_turn_back();
        self.begin_account();
        let flag = self.core.backend.interrupt.flag();
        let types = self.core.types.clone();
        let ran = user::within(types, pin!(breath::within(flag, self.executing(portal, max_rows, client)))).await;
        self.parsed_ns = 0;
        match ran {
            Ok(()) => {
                self.deliver(client);
                Ok(())
            }
            Err(e) => self.failed(e, client).await,
        }
    }

    /// The future of `execute_portal`; as that of `run_text`, its code is generated in this crate alone.
    fn executing<'a>(
        &'a mut self,
        portal: &'a str,
        max_rows: u32,
        client: &'a mut dyn Client,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.execute_portal(portal, max_rows, client))
    }

    async fn execute_portal(&mut self, name: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        let Some(prepared) = self.portals.get(name).map(|portal| portal.prepared.clone()) else {
            return Err(no_portal(name));
        };
        self.of_several = false;
        let began_ns = self.watch(&prepared.digest, &prepared.text, Some(name));
        let ran = match self.change_awaited(Some(name), &prepared, began_ns).await {
            Ok(None) => self.run_portal(name, max_rows, client).await,
            Ok(Some(count)) => {
                client.command_complete(tag_of(count));
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.finished = true;
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        self.watched(&prepared.digest, began_ns, ran.as_ref().err(), Some(name));
        ran
    }

    async fn run_portal(&mut self, name: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let prepared = portal.prepared.clone();
        let (params, formats): (Arc<[Datum]>, _) = (Arc::from(portal.params.as_slice()), portal.formats.clone());
        let (mut running, finished) = (portal.running.take(), portal.finished);
        let Some(statement) = prepared.statement.clone() else {
            client.empty_query();
            return Ok(());
        };
        self.core.backend.runs_with(prepared.text.clone(), Some(params.clone()));
        self.check_block(&statement)?;
        if let Statement::Transaction(t) = &*statement {
            let tag = self.transaction(t).await?;
            client.command_complete(&tag);
            return Ok(());
        }
        self.admit(0).await?;
        if !is_planned(&statement) {
            if finished {
                return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")));
            }
            self.begin_implicit();
            // Without a word of the client, as text; none at all is the simple protocol, in which a binary cursor decides.
            self.result_formats = if formats.is_empty() { vec![0] } else { formats };
            let core = self.core.clone();
            // A client of the extended protocol has its columns from Describe.
            let mut quiet = super::quiet::Quiet(client);
            let mut body = Box::pin(self.statement(&prepared, &statement, params, &mut quiet));
            let ended = core.backend.interrupt.guard(body.as_mut()).await;
            let tag = core.backend.interrupt.ended(ended.map_err(|e| obstacle::explained(&core, e)))?;
            drop(body);
            client.command_complete(&tag);
            if let Some(portal) = self.portals.get_mut(name) {
                portal.finished = true;
            }
            return Ok(());
        }
        if finished {
            let tag = if prepared.columns.is_some() { "SELECT 0" } else { "" };
            client.command_complete(tag);
            return Ok(());
        }
        self.begin_implicit();
        let core = self.core.clone();
        let body = async {
            let mut execution = match running.take() {
                Some(execution) => *execution,
                None => self.start(&prepared, &statement, params).await?,
            };
            let done = execution.give(&core, u64::from(max_rows), &formats, client).await?;
            Ok::<_, SqlError>((execution, done))
        };
        let ended = {
            let mut body = pin!(body);
            // The wait still stands when the error is made.
            core.backend.interrupt.guard(body.as_mut()).await.map_err(|e| obstacle::explained(&core, e))
        };
        let (execution, done) = core.backend.interrupt.ended(ended)?;
        self.watch.rows = execution.count;
        if done {
            client.command_complete(&execution.tag());
        } else {
            client.portal_suspended();
        }
        if let Some(portal) = self.portals.get_mut(name) {
            portal.finished = done;
            portal.running = (!done).then(|| Box::new(execution));
        }
        Ok(())
    }

    /// Forgets a prepared statement.
    pub fn close_statement(&mut self, name: &str) {
        (self.recent, self.forgotten) = (None, self.forgotten + 1);
        self.prepared_held.resume();
        self.statements.remove(name);
        if !name.is_empty() {
            self.core.prepared.lock().remove(name);
        }
        self.prepared_held.measure();
    }

    /// Forgets a portal.
    pub fn close_portal(&mut self, name: &str) {
        // One that a loop reads stays.
        let _ = self.cursors.close(name);
        self.portals.remove(name);
    }

    /// Ends a batch: the implicit transaction commits. A client is not told of the settings that it has changed.
    ///
    /// # Errors
    /// The commit's.
    pub async fn sync(&mut self) -> Result<()> {
        let ended = self.end_batch().await;
        if std::mem::take(&mut self.untold) {
            self.core.settings.lock().take_changed();
        }
        ended
    }

    /// The same, and tells the client.
    ///
    /// # Errors
    /// The commit's.
    pub async fn sync_and_tell(&mut self, client: &mut dyn Client) -> Result<()> {
        let ended = self.end_batch().await;
        if self.untold {
            self.deliver(client);
        }
        ended
    }

    async fn end_batch(&mut self) -> Result<()> {
        self.give_turn_back();
        self.parsed_ns = 0;
        if self.block == Block::Implicit
            && let Err(e) = self.commit().await
        {
            return Err(self.broken(e).await);
        }
        if self.block == Block::None {
            self.portals.clear();
            self.rest();
        }
        Ok(())
    }

    /// Has pg_prepared_statements show a statement.
    pub(super) fn list_prepared(&self, name: &str, prepared: &Arc<Prepared>, from_sql: bool) {
        let (text, types) = (prepared.text.clone(), prepared.types.clone());
        let named = NamedStatement { text, types, at: now(), from_sql, uses: prepared.clone() };
        self.core.prepared.lock().insert(name.to_owned(), named);
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        (self.recent, self.forgotten) = (None, self.forgotten + 1);
        self.prepared_held.resume();
        match name {
            None => {
                self.statements.clear();
                self.core.prepared.lock().clear();
            }
            Some(name) => {
                self.prepared(name)?;
                self.statements.remove(name);
                self.core.prepared.lock().remove(name);
            }
        }
        self.prepared_held.measure();
        Ok(())
    }

    pub(super) async fn execute_arguments(
        &mut self,
        name: &str,
        args: &[crate::syntax::ast::Expr],
    ) -> Result<(Arc<Prepared>, Arc<[Datum]>)> {
        let prepared = self.prepared(name)?;
        if args.len() != prepared.types.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {} parameters but got {}.", prepared.types.len(), args.len());
            return Err(SqlError::new(code::SYNTAX_ERROR, message).detail(detail));
        }
        let types: Vec<SqlType> = prepared.types.iter().map(|t| SqlType::new(*t)).collect();
        let params = utility::arguments(&self.core, args, &types).await?;
        prepared.choice.used();
        Ok((prepared, params.into()))
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}
