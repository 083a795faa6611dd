//! Calls of procedures and functions.

use super::block::placed_in;
use super::compile::{Compiled, Returns, compile};
use super::evaluate::in_fragment;
use super::frame::{Doing, Flow, Frame};
use crate::context::core::Core;
use crate::context::names::quote;
use crate::context::privileges::{Judge, denied};
use crate::context::routines::{Deeper, RoutineCall, signature};
use crate::error::{Pos, Result, SqlError, code};
use crate::exec::Row;
use crate::session::call;
use crate::session::client::Client;
use crate::session::routine::{Settings, no_value};
use crate::session::session::Session;
use crate::syntax::ast::ExprKind;
use crate::syntax::plpgsql::tree::{Fragment, Target};
use crate::syntax::plpgsql::{Gives, Owner, parse};
use crate::syntax::routine::RoutineStatement;
use crate::types::{Datum, Oid, SqlType, format_type, oid};
use clearway_engine::catalog::{Catalog, Object, Routine, RoutineKind, Volatility};
use std::sync::Arc;

/// Bodies that a session keeps.
const KEPT_MAX: usize = 200;

/// A body that has been read.
struct Kept {
    object: Arc<Object>,
    /// The types of its variables are those of this catalog.
    catalog: Arc<Catalog>,
    code: Arc<Compiled>,
}

/// A client whose messages wait for the end of the statement that calls.
struct Within(Arc<Core>);

impl Client for Within {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        self.0.notice(severity, message.clone());
    }
}

/// As CONTEXT shows it.
fn shown(r: &Routine) -> String {
    let types: Vec<String> = r.input_types().iter().map(|ty| format_type((*ty).into())).collect();
    format!("{}({})", quote(&r.name), types.join(","))
}

fn read(core: &Core, catalog: &Catalog, r: &Routine, given: Option<&[Oid]>) -> Result<Compiled> {
    let has_outputs = r.outputs().next().is_some();
    let gives = match r.kind {
        RoutineKind::Procedure => Gives::ByProcedure,
        RoutineKind::Function if r.result == oid::VOID => Gives::Nothing,
        RoutineKind::Function => Gives::Value,
    };
    let arguments = r.arguments.iter().map(|a| a.name.clone()).collect();
    let refcursors = r.arguments.iter().map(|a| a.type_oid == oid::REFCURSOR).collect();
    let function = Some(r.name.clone());
    let owner = Owner { function, arguments, gives, gives_rows: r.gives_rows, has_outputs, refcursors };
    let body = parse(&r.body, &owner)?;
    let (inputs, result) = match given {
        Some([inputs @ .., result]) => (inputs.to_vec(), *result),
        _ => (r.input_types(), r.result),
    };
    let mut inputs = inputs.into_iter();
    let types: Vec<SqlType> = r
        .arguments
        .iter()
        .map(|a| SqlType::new(if a.is_input() { inputs.next().unwrap_or(a.type_oid) } else { a.type_oid }))
        .collect();
    let mut code = compile(core, shown(r), body, &types)?;
    code.outputs = (0..r.arguments.len()).filter(|n| r.arguments[*n].is_output()).collect();
    let shape = signature(catalog, r).outputs;
    code.returns = Some(Returns { ty: result.into(), shape, has_outputs });
    Ok(code)
}

/// The body of a routine, read anew where the catalog is another.
fn compiled(
    core: &Core,
    (catalog, object, r): (&Arc<Catalog>, &Arc<Object>, &Routine),
    given: Option<&[Oid]>,
) -> Result<Arc<Compiled>> {
    let key = (r.oid, given.map_or_else(Vec::new, <[Oid]>::to_vec));
    let kept = core.bodies.lock().get(&key).cloned();
    if let Some(kept) = kept.and_then(|kept| kept.downcast::<Kept>().ok())
        && Arc::ptr_eq(&kept.object, object)
        && Arc::ptr_eq(&kept.catalog, catalog)
    {
        return Ok(kept.code.clone());
    }
    let code = Arc::new(read(core, catalog, r, given).map_err(|e| placed_in(e, &r.body, None, &r.name))?);
    let mut bodies = core.bodies.lock();
    if bodies.len() >= KEPT_MAX {
        bodies.clear();
    }
    let kept = Kept { object: object.clone(), catalog: catalog.clone(), code: code.clone() };
    bodies.insert(key, Arc::new(kept));
    Ok(code)
}

impl Session {
    /// Judges the body of a new routine.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub(in crate::session) fn judge_plpgsql(core: &Core, r: &Routine, place: Option<Pos>) -> Result<()> {
        read(core, &core.catalog(), r, None).map(drop).map_err(|e| placed_in(e, &r.body, place, &r.name))
    }

    /// Runs a function, or a procedure that a function in SQL calls; its right to run, its role and settings are seen to.
    ///
    /// # Errors
    /// Those of its statements.
    pub(in crate::session) async fn call_function(
        core: &Arc<Core>,
        (catalog, object, r): (&Arc<Catalog>, &Arc<Object>, &Routine),
        given: Option<Vec<Oid>>,
        call: RoutineCall,
    ) -> Result<Vec<Row>> {
        let code = compiled(core, (catalog, object, r), given.as_deref())?;
        let mut session = Session::nested(core);
        let mut client = Within(core.clone());
        let mut frame = Frame::new(&mut session, &mut client, code);
        frame.view = (r.volatility != Volatility::Volatile).then_some(call.view);
        frame.called(r, call).await
    }

    /// Runs a procedure that CALL calls.
    ///
    /// # Errors
    /// 42501; those of its statements.
    pub(in crate::session) async fn call_procedure(
        &mut self,
        catalog: &Arc<Catalog>,
        call: RoutineCall,
        client: &mut dyn Client,
    ) -> Result<Vec<Row>> {
        let core = self.core.clone();
        let gone = || SqlError::internal(format!("cache lookup failed for function {}", call.oid));
        let object = catalog.get(call.oid).cloned().ok_or_else(gone)?;
        let Object::Routine(r) = &*object else { return Err(gone()) };
        if !Judge::of(&core, catalog).may_with(&object, 'X') {
            return Err(denied(r.kind.name(), &r.name));
        }
        let _deeper = Deeper::into(&core)?;
        let _acting = r.definer.then(|| core.act_as(catalog, r.owner));
        let _settings = Settings::set(&core, &r.settings)?;
        let code = compiled(&core, (catalog, &object, r), None)?;
        let atomic = self.is_atomic() || r.definer || !r.settings.is_empty();
        let mut frame = Frame::new(self, client, code);
        frame.atomic = atomic;
        frame.called(r, call).await
    }
}

impl Frame<'_> {
    /// Runs the body of a call; its rows.
    async fn called(&mut self, r: &Routine, call: RoutineCall) -> Result<Vec<Row>> {
        self.doing = Doing { line: 0, statement: None, phase: "while storing call arguments into local variables" };
        self.wanted.clone_from(&call.columns);
        let inputs = (0..r.arguments.len()).filter(|n| r.arguments[*n].is_input());
        for (slot, value) in inputs.zip(call.args) {
            self.assign(slot, value, self.types[slot]).map_err(|e| self.placed(e))?;
        }
        for slot in (0..r.arguments.len()).filter(|n| !r.arguments[*n].is_input()) {
            self.assign(slot, Datum::Null, self.types[slot]).map_err(|e| self.placed(e))?;
        }
        let flow = self.run().await?;
        self.doing = Doing { line: 0, statement: None, phase: "while casting return value to function\'s return type" };
        if r.kind == RoutineKind::Procedure {
            let has_outputs = r.outputs().next().is_some();
            return Ok(if has_outputs { vec![self.outputs()] } else { vec![no_value(call.columns.as_ref())] });
        }
        if r.gives_rows {
            return Ok(std::mem::take(&mut self.rows));
        }
        let ended = self.ended(flow != Flow::Return);
        ended.map(|row| vec![row]).map_err(|e| match e.code() {
            "2F005" => e.within(format!("PL/pgSQL function {}", self.code.shown)),
            _ => self.placed(e),
        })
    }

    /// CALL in a body: what the procedure gives goes to the variables in the places of its parameters.
    pub(super) async fn call(&mut self, f: &Fragment, statement: &RoutineStatement) -> Result<()> {
        let core = self.session.core.clone();
        let names = self.names_for(f);
        let types: Vec<Oid> = self.types.iter().map(|ty| ty.oid).collect();
        let written = call::written(&core, statement, &types, Some(names.clone()))?;
        let mut targets = Vec::new();
        for (parameter, arg) in written {
            let found = match &*arg.kind {
                ExprKind::Column(name) => {
                    let found = self.code.body.names.find(f.at, &name.parts);
                    found.map(|found| Target { slot: found.slot, fields: name.parts[found.used..].to_vec() })
                }
                _ => None,
            };
            let Some(target) = found.filter(|t| !self.code.body.variables[t.slot].constant) else {
                let message = format!(
                    "procedure parameter \"{parameter}\" is an output parameter but corresponding argument is not writable"
                );
                return Err(SqlError::new(code::SYNTAX_ERROR, message));
            };
            targets.push(target);
        }
        let params: Vec<Datum> = self.values.clone();
        self.session.ran_within(false);
        let run = call::run_with(self.session, statement, (&params, &types, Some(names)), self.client);
        let called = Box::pin(clearway_base::stack::deeper_polls(run)).await.map_err(|e| in_fragment(f, e))?;
        if let Some((columns, Some(row))) = called {
            for ((value, column), target) in row.into_iter().zip(&columns).zip(&targets) {
                self.assign_target(target, value, column.ty).await?;
            }
        }
        Ok(())
    }
}
