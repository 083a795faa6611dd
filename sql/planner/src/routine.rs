//! Plans the statements in the bodies of functions, and calls of functions in FROM.

use super::plan::{Action, OutputColumn, Plan, Query};
use super::view::Meaning;
use super::{Planned, Planner};
use clearway_engine::catalog::ViewMeaning;
use clearway_syntax::ast::QueryBody;
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::routine_statements;
use clearway_syntax::stmt::Statement;
use clearway_values::expr::bind_routines::{Called, ParamNames, set_call};
use clearway_values::expr::sets::{self, SetCall};
use clearway_values::expr::{Bound, BoundKind, Params};
use clearway_values::types::datum::RowShape;
use clearway_values::types::{SqlType, oid, user};
use std::sync::Arc;

/// How many calls in FROM a statement has in place of which their queries stand.
const INLINED_MAX: u32 = 200;

fn copied(called: &Called) -> Called {
    Called {
        signature: called.signature.clone(),
        args: called.args.clone(),
        result: called.result,
        given: called.given.clone(),
    }
}

impl<'a> Planner<'a> {
    /// For a statement of a body whose meaning is settled.
    #[must_use]
    pub fn of_body(mut self, meaning: &ViewMeaning) -> Self {
        self.meaning = Meaning::of_body(meaning.clone());
        self
    }

    /// Plans a statement of a new function; with what its names and stars mean.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn plan_body(mut self, statement: &Statement, params: &mut Params) -> Result<(Option<Plan>, ViewMeaning)> {
        let planned: Option<Planned> = match statement {
            Statement::Query(q) => {
                let query = self.query(q, None, params)?;
                let columns: Option<Vec<OutputColumn>> = Some(query.columns.clone());
                Some((Action::Select(query), columns))
            }
            _ => self.change(statement, params)?,
        };
        let meaning = self.meaning.text.clone();
        let plan = planned.map(|planned| self.finish(planned, params)).transpose()?;
        Ok((plan, meaning))
    }

    /// The query of a function's body in place of its call in FROM, as PostgreSQL's `inline_set_returning_function` has it; none: the call
    /// stays. Arguments that name columns keep the call, too.
    pub(super) fn inlined_rows(&mut self, called: &Called, pos: Pos) -> Option<Arc<Query>> {
        let s = &called.signature;
        let fits = s.gives_rows && !s.strict && !s.apart && s.volatility != 'v' && !s.procedure;
        let unknown_rows = s.result == oid::RECORD && s.outputs.is_none();
        let plain = |arg: &Bound| !arg.is_volatile() && !arg.any(&|e| matches!(e.kind, BoundKind::Column { .. }));
        if !fits || unknown_rows || self.view_depth >= super::VIEW_DEPTH_MAX || !called.args.iter().all(plain) {
            return None;
        }
        // Each may call two others, and those two more.
        self.inlined += 1;
        if self.inlined > INLINED_MAX {
            return None;
        }
        if !self.env.conversion.names.may_execute(s.oid) {
            return None;
        }
        let parsed = routine_statements(&s.body, s.atomic).ok()?;
        let [only] = parsed.as_slice() else { return None };
        let Statement::Query(query) = &only.statement else { return None };
        if matches!(query.body, QueryBody::Select(_)) && !query.locking.is_empty() {
            return None;
        }
        let mut params = Params {
            types: called.args.iter().map(|a| Some(a.ty.oid)).collect(),
            names: Some(ParamNames::of(s)),
            values: Some(called.args.clone().into()),
            ..Params::default()
        };
        let meaning = self.env.catalog.routine(s.oid).filter(|r| r.atomic).and_then(|r| r.meanings.first());
        let meaning = meaning.map_or_else(Meaning::default, |m| Meaning::of_body(m.clone()));
        let ctes = std::mem::take(&mut self.ctes);
        let outer = std::mem::replace(&mut self.meaning, meaning);
        let (subplans, locks, changes, read_only) =
            (self.subplans.len(), self.locks.len(), self.changes.len(), self.read_only);
        self.view_depth += 1;
        let path = s.path.clone().filter(|_| s.atomic);
        let plan = match path {
            Some(path) => user::on_path(path, || self.query(query, None, &mut params)),
            None => user::off_path(|| self.query(query, None, &mut params)),
        };
        self.view_depth -= 1;
        self.meaning = outer;
        self.ctes = ctes;
        let shape = set_call(copied(called), pos);
        let fits = |plan: &Arc<Query>| {
            let can = |(a, b): (&OutputColumn, &(String, SqlType))| a.ty.oid == b.1.oid;
            plan.columns.len() == shape.columns.len() && plan.columns.iter().zip(&shape.columns).all(can)
        };
        match plan {
            Ok(plan) if fits(&plan) && self.changes.len() == changes => Some(plan),
            // What was noted for it is not needed.
            _ => {
                self.subplans.truncate(subplans);
                self.locks.truncate(locks);
                self.changes.truncate(changes);
                self.read_only = read_only;
                None
            }
        }
    }

    /// A call of a user's function in FROM.
    pub(super) fn called_in_from(&mut self, called: Called, defined: Option<&RowShape>, pos: Pos) -> Result<SetCall> {
        let signature = called.signature.clone();
        if signature.procedure {
            let message = format!("{} is a procedure", signature.name);
            let hint = "To call a procedure, use CALL.";
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).hint(hint).at(pos));
        }
        self.read_only = false;
        let unknown_rows = signature.result == oid::RECORD && signature.outputs.is_none();
        let mut call = set_call(called, pos);
        match defined {
            Some(shape) if unknown_rows => {
                let columns = shape.types.iter().enumerate().map(|(i, ty)| (shape.name(i), *ty));
                call.columns = columns.collect();
                Ok(call)
            }
            Some(_) if signature.outputs.is_some() => {
                let message = "a column definition list is redundant for a function with OUT parameters";
                Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos))
            }
            Some(_) if clearway_values::types::user::is_composite(signature.result) => {
                let message = "a column definition list is redundant for a function returning a named composite type";
                Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos))
            }
            Some(_) => {
                let message = "a column definition list is only allowed for functions returning \"record\"";
                Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos))
            }
            None if unknown_rows => Err(sets::definitions_wanted(pos)),
            None => Ok(call),
        }
    }
}
