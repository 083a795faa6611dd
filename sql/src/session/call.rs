//! CALL of a procedure that a user has defined.

use super::client::Client;
use super::run::{describe, write_row};
use super::session::{Prepared, Session};
use crate::context::core::{Core, now};
use crate::context::routines::{self, RoutineCall};
use crate::error::{Pos, Result, SqlError, code};
use crate::exec::{Cx, Row, Run, RunState};
use crate::expr::bind_routines::{Called, ParamNames, takes};
use crate::expr::{Binder, Params, Scope};
use crate::planner::environment::{bare_plan, with_env};
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::{Call, Expr};
use crate::syntax::routine::RoutineStatement;
use crate::types::cast::Context;
use crate::types::text::Conversion;
use crate::types::{Datum, Oid, format_type, oid, routine};
use clearway_engine::catalog::{Argument, ArgumentMode, Catalog, Language, Routine};
use clearway_values::builtin;
use std::sync::Arc;

/// For each argument of a call the type of the OUT parameter in whose place it stands, if it stands in one's; none where the call does not fit.
fn outputs(call: &Call, r: &Routine) -> Option<Vec<Option<Oid>>> {
    let positional = call.args.len() - call.names.len();
    let last = r.arguments.last().filter(|a| a.mode == ArgumentMode::Variadic && !call.variadic);
    let at = |i: usize| {
        if i < positional {
            return r.arguments.get(i).or(last);
        }
        r.arguments.iter().find(|a| a.name.as_ref() == call.names.get(i - positional))
    };
    let parameters: Vec<_> = (0..call.args.len()).map(at).collect::<Option<_>>()?;
    let out = |a: &&Argument| a.mode == ArgumentMode::Out;
    let given = parameters.iter().copied().filter(out).count();
    let all_given = given == r.arguments.iter().filter(out).count();
    all_given.then(|| parameters.iter().map(|a| Some(*a).filter(out).map(|a| a.type_oid)).collect())
}

/// The call without the arguments in the places of OUT parameters, which are not evaluated; and these, with the types that are wanted.
fn inputs_only(call: &Call, catalog: &Catalog) -> Result<(Call, Vec<(Expr, Oid)>)> {
    let named = routine::named(call.name.schema(), call.name.name())?;
    let procedures = named.iter().filter(|s| s.procedure).filter_map(|s| catalog.routine(s.oid));
    let fitting = procedures.filter_map(|r| Some((r.arguments.len() != call.args.len(), outputs(call, r)?)));
    // One whose parameters are as many as the arguments comes first.
    let Some((_, outputs)) = fitting.min_by_key(|(other, _)| *other) else { return Ok((call.clone(), Vec::new())) };
    let positional = call.args.len() - call.names.len();
    let (mut reduced, mut unused) = (call.clone(), Vec::new());
    reduced.args.clear();
    reduced.names.clear();
    for (i, (arg, output)) in call.args.iter().zip(outputs).enumerate() {
        match output {
            Some(ty) => unused.push((arg.clone(), ty)),
            None => {
                reduced.args.push(arg.clone());
                reduced.names.extend(i.checked_sub(positional).and_then(|n| call.names.get(n)).cloned());
            }
        }
    }
    Ok((reduced, unused))
}

/// What a call may name beside columns.
pub(super) type Names = Option<Arc<ParamNames>>;

fn known(types: &[Oid], names: Names) -> Params {
    Params { types: types.iter().map(|t| Some(*t)).collect(), open: false, names, ..Params::default() }
}

/// Whether a call is of a function of the system, none of which is a procedure.
fn is_of_system(binder: &mut Binder<'_>, call: &Call) -> Result<bool> {
    let types = call.args.iter().map(|arg| binder.bind_unsettled(arg).map(|bound| bound.ty.oid));
    let types: Vec<Oid> = types.collect::<Result<_>>()?;
    let in_catalog = call.name.schema().is_none_or(|schema| schema == "pg_catalog");
    Ok(in_catalog && builtin::procs_named(call.name.name()).iter().any(|p| p.arguments == types))
}

fn bind(core: &Core, call: &Call, pos: Pos, params: &mut Params) -> Result<(Arc<Catalog>, Called)> {
    let catalog = core.catalog();
    let called = with_env(core, &catalog, |env| {
        let scope = Scope::default();
        let mut binder = Binder {
            scope: &scope,
            params,
            collected: None,
            subqueries: None,
            conversion: env.conversion,
            place: "CALL argument",
            in_aggregate: false,
        };
        let (reduced, unused) = inputs_only(call, &catalog)?;
        let mut called = binder.user_function(&reduced, pos)?;
        for (arg, wanted) in &unused {
            let bound = binder.bind_unsettled(arg)?;
            if !takes(bound.ty.oid, *wanted) {
                called = None;
            } else if bound.ty.oid == oid::UNKNOWN {
                // A parameter gets the type of the place where it stands, though its value is not asked for.
                binder.coerce(bound, (*wanted).into(), Context::Implicit)?;
            }
        }
        let shown = |binder: &mut Binder<'_>| -> Result<String> {
            let mut types = Vec::new();
            for arg in &call.args {
                types.push(format_type(binder.bind_unsettled(arg)?.ty));
            }
            Ok(format!("{}({})", call.name.dotted(), types.join(", ")))
        };
        match called {
            Some(called) if called.signature.procedure => Ok(called),
            other if other.is_some() || is_of_system(&mut binder, call)? => {
                let message = format!("{} is not a procedure", shown(&mut binder)?);
                Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).hint("To call a function, use SELECT.").at(pos))
            }
            _ => {
                if let Some(missing) = crate::types::user::missing_schema(call.name.schema()) {
                    return Err(missing.at(pos));
                }
                let message = format!("procedure {} does not exist", shown(&mut binder)?);
                let hint = "No procedure matches the given name and argument types. You might need to add explicit type casts.";
                Err(SqlError::new(code::UNDEFINED_FUNCTION, message).hint(hint).at(pos))
            }
        }
    });
    Ok((catalog.clone(), called?))
}

fn columns_of(called: &Called) -> Option<Vec<OutputColumn>> {
    let shape = called.signature.outputs.as_ref()?;
    let column = |(i, ty)| OutputColumn { name: shape.name(i), ty, origin: (0, 0), shape: None };
    Some(shape.types.iter().copied().enumerate().map(column).collect())
}

/// The columns of the row that a call gives, none where it gives no row; and the types of its parameters.
///
/// # Errors
/// Those of the call; 42P18 for a parameter that its place gives no type.
pub fn described(
    core: &Core,
    (call, pos): (&Call, Pos),
    mut params: Params,
) -> Result<(Option<Vec<OutputColumn>>, Vec<Oid>)> {
    let columns = columns_of(&bind(core, call, pos, &mut params)?.1);
    let unknown = |at: usize| {
        let message = format!("could not determine data type of parameter ${}", at + 1);
        SqlError::new(code::INDETERMINATE_DATATYPE, message)
    };
    let types = params.types.iter().enumerate().map(|(at, ty)| ty.ok_or_else(|| unknown(at))).collect::<Result<_>>()?;
    Ok((columns, types))
}

/// Runs a call.
pub async fn run(
    session: &mut Session,
    prepared: &Prepared,
    statement: &RoutineStatement,
    params: &[Datum],
    client: &mut dyn Client,
) -> Result<String> {
    let core = session.core.clone();
    let called = Box::pin(run_with(session, statement, (params, &prepared.types, None), client)).await?;
    if let Some((columns, row)) = called {
        let formats = &session.result_formats;
        describe(&columns, formats, client);
        let (format, names) = (core.format(), core.names(&core.catalog()));
        let conversion = Conversion { format: &format, now: core.transaction_started(), names: &names };
        if let Some(row) = row {
            write_row(&conversion, &columns, formats, &row, client)?;
        }
    }
    Ok("CALL".to_owned())
}

/// For each OUT and INOUT parameter of the procedure that a call means, the argument in its place.
pub(super) fn written(
    core: &Core,
    statement: &RoutineStatement,
    types: &[Oid],
    names: Names,
) -> Result<Vec<(String, Expr)>> {
    let (call, pos) = statement.as_call().ok_or_else(|| SqlError::internal("no call"))?;
    let (catalog, called) = bind(core, call, pos, &mut known(types, names))?;
    let gone = || SqlError::internal("a procedure that is gone");
    let r = catalog.routine(called.signature.oid).ok_or_else(gone)?;
    let positional = call.args.len() - call.names.len();
    let mut out = Vec::new();
    for (i, argument) in r.arguments.iter().enumerate().filter(|(_, a)| a.is_output()) {
        let by_name = call.names.iter().position(|name| argument.name.as_ref() == Some(name));
        let at = if i < positional { Some(i) } else { by_name.map(|n| positional + n) };
        if let Some(arg) = at.and_then(|at| call.args.get(at)) {
            out.push((argument.name.clone().unwrap_or_else(|| format!("${}", i + 1)), arg.clone()));
        } else {
            return Err(SqlError::unsupported("a default of an INOUT parameter in CALL of PL/pgSQL").at(pos));
        }
    }
    Ok(out)
}

/// Runs a call with these parameters; the columns and the values that it gives.
pub(super) async fn run_with(
    session: &mut Session,
    statement: &RoutineStatement,
    (params, types, variables): (&[Datum], &[Oid], Names),
    client: &mut dyn Client,
) -> Result<Option<(Vec<OutputColumn>, Option<Row>)>> {
    let core = session.core.clone();
    let (call, pos) = statement.as_call().ok_or_else(|| SqlError::internal("no call"))?;
    let (catalog, called) = bind(&core, call, pos, &mut known(types, variables))?;
    let columns = columns_of(&called);
    let args = {
        let (plan, state) = (bare_plan(), RunState::new());
        let run = Run {
            core: &core,
            plan: &plan,
            params,
            view: Default::default(),
            isolation: Default::default(),
            format: core.format(),
            names: core.names(&catalog),
            started: now(),
            transaction_started: core.transaction_started(),
            state: &state,
            views: &crate::views::SystemViews,
        };
        Cx { run: &run, outer: &[] }.values(&called.args, &[], &[]).await?
    };
    let wanted = columns.as_ref().map(|list| list.iter().map(|c| c.ty).collect());
    let oid = called.signature.oid;
    let routine = RoutineCall { oid, args, columns: wanted, by_call: true, view: Default::default(), changes: false };
    let of_plpgsql = catalog.routine(oid).is_some_and(|r| r.language == Language::Plpgsql);
    let rows = match of_plpgsql {
        true => Box::pin(session.call_procedure(&catalog, routine, client)).await?,
        false => Box::pin(routines::call(&core, routine)).await?,
    };
    Ok(columns.map(|columns| (columns, rows.into_iter().next())))
}
