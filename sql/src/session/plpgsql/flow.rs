//! Blocks, conditions and loops.

use super::evaluate::Begun;
use super::frame::{Doing, Flow, Frame};
use super::statement::FETCHED;
use crate::error::{Result, SqlError, code};
use crate::exec::BoxFuture;
use crate::planner::plan::{Action, OutputColumn};
use crate::syntax::plpgsql::tree::{Block, Fragment, Handlers, Rows, Stmt, StmtKind, Target};
use crate::types::datum::Array;
use crate::types::{Datum, SqlType, element_of, format_type, oid};
use clearway_base::breath;
use std::sync::Arc;

/// What a loop does after its body.
pub(super) enum Turn {
    Next,
    Ends(Flow),
}

pub(super) fn after(flow: Flow, label: Option<&str>) -> Turn {
    let ours = |given: &Option<String>| given.is_none() || given.as_deref() == label;
    match flow {
        Flow::Next => Turn::Next,
        Flow::Continue(given) if ours(&given) => Turn::Next,
        Flow::Exit(given) if ours(&given) => Turn::Ends(Flow::Next),
        other => Turn::Ends(other),
    }
}

impl Frame<'_> {
    /// Runs a block.
    pub(super) async fn block(&mut self, block: &Block) -> Result<Flow> {
        for slot in &block.variables {
            let code = self.code.clone();
            let variable = &code.body.variables[*slot];
            self.doing = Doing {
                line: variable.line,
                statement: None,
                phase: "during statement block local variable initialization",
            };
            self.values[*slot] = Datum::Null;
            match &variable.default {
                Some(default) => {
                    let (value, ty) = self.evaluate(default).await?;
                    self.assign(*slot, value, ty)?;
                }
                // As PostgreSQL 15 has it, the name of a bound cursor is that of its variable.
                None if variable.query.is_some() => self.values[*slot] = Datum::text(variable.name.clone()),
                // A domain may not take NULL.
                None => self.assign(*slot, Datum::Null, self.types[*slot])?,
            }
        }
        let flow = match &block.handlers {
            None => self.statements(&block.body).await?,
            Some(handlers) => self.guarded(&block.body, handlers).await?,
        };
        Ok(match flow {
            Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Flow::Next,
            other => other,
        })
    }

    /// Runs a block with EXCEPTION (PLS-1).
    async fn guarded(&mut self, body: &[Stmt], handlers: &Handlers) -> Result<Flow> {
        let (doing, guarded) = (self.doing, self.guarded);
        let at = self.session.begin_subtransaction();
        self.guarded += 1;
        let ran = self.statements(body).await;
        self.guarded = guarded;
        let error = match ran {
            Ok(flow) => {
                self.session.release_subtransaction(at);
                self.doing = doing;
                return Ok(flow);
            }
            Err(e) => self.placed(e),
        };
        self.session.undo_subtransaction(at).await?;
        let handler = handlers.list.iter().find(|(conditions, _)| conditions.iter().any(|c| c.takes(error.code())));
        let Some((_, body)) = handler.filter(|_| may_be_handled(&error)) else { return Err(error) };
        self.placed = false;
        self.doing = doing;
        self.values[handlers.state] = Datum::text(error.code());
        self.values[handlers.message] = Datum::text(error.message());
        let outer = self.handled.replace(error);
        let flow = self.statements(body).await?;
        self.handled = outer;
        Ok(flow)
    }

    /// Runs statements one after the other.
    pub(super) fn statements<'f>(&'f mut self, list: &'f [Stmt]) -> BoxFuture<'f, Result<Flow>> {
        Box::pin(clearway_base::stack::deeper_polls(async move {
            let before = self.doing;
            for stmt in list {
                // PLS-2
                breath::breathe(breath::ROW).await?;
                clearway_base::memory::check()?;
                self.doing = Doing { line: stmt.line, statement: Some(stmt.kind.name()), phase: "" };
                let flow = self.statement(&stmt.kind).await?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
            }
            self.doing = before;
            Ok(Flow::Next)
        }))
    }

    async fn statement(&mut self, kind: &StmtKind) -> Result<Flow> {
        match kind {
            StmtKind::Block(block) => Box::pin(self.block(block)).await,
            StmtKind::If { arms, otherwise } => {
                for (condition, body) in arms {
                    if self.holds(condition).await? {
                        return self.statements(body).await;
                    }
                }
                self.statements(otherwise).await
            }
            StmtKind::Case { .. } => Box::pin(self.case(kind)).await,
            StmtKind::Loop { label, body } => Box::pin(self.repeat(label.as_deref(), None, body)).await,
            StmtKind::While { label, condition, body } => {
                Box::pin(self.repeat(label.as_deref(), Some(condition), body)).await
            }
            StmtKind::ForInteger { .. } => Box::pin(self.for_integer(kind)).await,
            StmtKind::ForRows { label, targets, rows, body } => {
                Box::pin(self.for_rows(label.as_deref(), targets, rows, body)).await
            }
            StmtKind::ForCursor { .. } => Box::pin(self.for_cursor(kind)).await,
            StmtKind::Foreach { .. } => Box::pin(self.foreach(kind)).await,
            StmtKind::Exit { ends, label, when } => {
                if let Some(condition) = when
                    && !self.holds(condition).await?
                {
                    return Ok(Flow::Next);
                }
                Ok(if *ends { Flow::Exit(label.clone()) } else { Flow::Continue(label.clone()) })
            }
            StmtKind::Return(returned) => {
                Box::pin(self.give(returned)).await?;
                Ok(Flow::Return)
            }
            other => {
                Box::pin(self.plain(other)).await?;
                Ok(Flow::Next)
            }
        }
    }

    async fn case(&mut self, kind: &StmtKind) -> Result<Flow> {
        let StmtKind::Case { subject, arms, otherwise } = kind else { return Ok(Flow::Next) };
        if let Some((f, slot)) = subject {
            let (value, ty) = self.evaluate(f).await?;
            self.assign(*slot, value, ty)?;
        }
        for (condition, body) in arms {
            if self.holds(condition).await? {
                return self.statements(body).await;
            }
        }
        match otherwise {
            Some(body) => self.statements(body).await,
            None => Err(SqlError::new("20000", "case not found").hint("CASE statement is missing ELSE part.")),
        }
    }

    async fn repeat(&mut self, label: Option<&str>, condition: Option<&Fragment>, body: &[Stmt]) -> Result<Flow> {
        loop {
            breath::breathe(breath::ROW).await?;
            if let Some(condition) = condition
                && !self.holds(condition).await?
            {
                return Ok(Flow::Next);
            }
            if let Turn::Ends(flow) = after(self.statements(body).await?, label) {
                return Ok(flow);
            }
        }
    }

    async fn bound(&mut self, f: &Fragment, what: &str) -> Result<i32> {
        let (value, ty) = self.evaluate(f).await?;
        match self.converted(value, ty, oid::INT4.into())?.as_i64() {
            Some(n) => Ok(n as i32),
            None => Err(SqlError::new("22004", format!("{what} of FOR loop cannot be null"))),
        }
    }

    async fn for_integer(&mut self, kind: &StmtKind) -> Result<Flow> {
        let StmtKind::ForInteger { label, variable, bounds, step, reverse, body } = kind else { return Ok(Flow::Next) };
        let low = self.bound(&bounds[0], "lower bound").await?;
        let high = self.bound(&bounds[1], "upper bound").await?;
        let step = match step {
            Some(f) => self.bound(f, "BY value").await?,
            None => 1,
        };
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
        let (mut at, mut turned, mut flow) = (low, false, Flow::Next);
        while if *reverse { at >= high } else { at <= high } {
            breath::breathe(breath::ROW).await?;
            turned = true;
            self.values[*variable] = Datum::Int4(at);
            if let Turn::Ends(ended) = after(self.statements(body).await?, label.as_deref()) {
                flow = ended;
                break;
            }
            let next = if *reverse { at.checked_sub(step) } else { at.checked_add(step) };
            let Some(next) = next else { break };
            at = next;
        }
        self.found(turned);
        Ok(flow)
    }

    async fn for_rows(&mut self, label: Option<&str>, targets: &[Target], rows: &Rows, body: &[Stmt]) -> Result<Flow> {
        let Begun { mut execution, .. } = self.rows_of(rows, false).await?;
        let core = self.session.core.clone();
        // PostgreSQL reads these rows through a cursor that has a name, too.
        self.session.cursors.skip_unnamed();
        let plan = &execution.cached.plan;
        let selects = plan.changes.is_empty() && matches!(plan.action, Action::Select(_));
        let _changing = (!selects).then(|| self.session.cursors.changing_loop());
        let columns: Arc<[OutputColumn]> = execution.cached.plan.columns.clone().unwrap_or_default().into();
        // A COMMIT in the body ends the snapshot: the rows are read before.
        let batch = if self.atomic { FETCHED } else { u64::MAX };
        let (mut turned, mut flow) = (false, Flow::Next);
        'rows: loop {
            let list = execution.take(&core, batch).await.map_err(|e| self.in_rows(rows, e))?;
            let last = (list.len() as u64) < batch;
            for row in list {
                breath::breathe(breath::ROW).await?;
                turned = true;
                self.assign_row(targets, Some(row), &columns).await?;
                if let Turn::Ends(ended) = after(self.statements(body).await?, label) {
                    flow = ended;
                    break 'rows;
                }
            }
            if last {
                break;
            }
        }
        if !turned {
            self.assign_row(targets, None, &columns).await?;
        }
        self.found(turned);
        Ok(flow)
    }

    fn in_rows(&self, rows: &Rows, e: SqlError) -> SqlError {
        match rows {
            Rows::Query(f) => super::evaluate::in_fragment(f, e),
            Rows::Dynamic(..) => e,
        }
    }

    /// Begins the query of a loop, or of a cursor.
    pub(super) async fn rows_of(&mut self, rows: &Rows, for_cursor: bool) -> Result<Begun> {
        let begun = match rows {
            Rows::Query(f) => {
                if !crate::session::session::is_planned(&f.statement) {
                    return Err(SqlError::unsupported("a loop or a cursor over this statement in PL/pgSQL"));
                }
                self.begin_query(f, for_cursor).await?
            }
            Rows::Dynamic(f, values) => self.begin_dynamic(f, values, for_cursor).await?,
        };
        let execution = &begun.execution;
        if execution.cached.plan.columns.is_none() {
            let tag = execution.tag();
            let command = tag.split(' ').next().unwrap_or("").to_owned();
            let message = format!("cannot open {command} query as cursor");
            return Err(SqlError::new("42P11", message));
        }
        Ok(begun)
    }

    async fn foreach(&mut self, kind: &StmtKind) -> Result<Flow> {
        let StmtKind::Foreach { label, targets, slice, array, body } = kind else { return Ok(Flow::Next) };
        let (value, ty) = self.evaluate(array).await?;
        if value.is_null() {
            return Err(SqlError::new("22004", "FOREACH expression must not be null"));
        }
        let Datum::Array(array) = value else {
            let message = format!("FOREACH expression must yield an array, not type {}", format_type(ty));
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        };
        let dims = array.dims.len();
        if *slice as usize > dims {
            let message = format!("slice dimension ({slice}) is out of the valid range 0..{dims}");
            return Err(SqlError::new("2202E", message));
        }
        let element = element_of(ty.oid).unwrap_or(array.element);
        let kept = &array.dims[dims - *slice as usize..];
        let size: usize = kept.iter().map(|(length, _)| *length as usize).product();
        let part: SqlType = if *slice == 0 { element.into() } else { ty };
        let (mut turned, mut flow) = (false, Flow::Next);
        for values in array.values.chunks(size.max(1)) {
            breath::breathe(breath::ROW).await?;
            turned = true;
            let value = match slice {
                0 => values[0].clone(),
                _ => Datum::Array(Arc::new(Array { element, dims: kept.to_vec(), values: values.to_vec() })),
            };
            match (targets.as_slice(), &value) {
                ([only], _) => self.assign_target(only, value, part).await?,
                (_, Datum::Row(row)) => {
                    for (i, target) in targets.iter().enumerate() {
                        let value = row.values.get(i).cloned().unwrap_or(Datum::Null);
                        let ty = row.shape.types.get(i).copied().unwrap_or(oid::TEXT.into());
                        self.assign_target(target, value, ty).await?;
                    }
                }
                _ => {
                    let message = "cannot assign non-composite value to a row variable";
                    return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
                }
            }
            if let Turn::Ends(ended) = after(self.statements(body).await?, label.as_deref()) {
                flow = ended;
                break;
            }
        }
        self.found(turned);
        Ok(flow)
    }
}

/// Whether a handler may go on after an error: the session is not about to end.
fn may_be_handled(e: &SqlError) -> bool {
    !matches!(e.code(), "57P01" | "57P05" | "25P03")
}
