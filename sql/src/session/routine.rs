//! The bodies of functions and procedures: planned once per session and version of the catalog, run statement by statement.
//!
//! # Life of a call
//! The right to call is checked, and the settings and the role of the function are put in force. Each statement of the body runs with the
//! arguments as its parameters, and the rows of the last one become the result. The statements of a volatile function see what the
//! calling statement has changed so far; those of any other function see what the calling statement sees.
//!
//! Source: PostgreSQL 15's src/backend/executor/functions.c, `check_sql_fn_retval` for the type of the result.

use super::body::BodyContext;
use super::choice::Choice;
use super::run::{self, Cached, Execution, Request};
use super::session::Session;
use crate::context::core::Core;
use crate::context::privileges::{Judge, denied};
use crate::context::routines::{CallFuture, RoutineCall, RoutineRunner, definition_path, signature};
use crate::error::{Result, SqlError, code};
use crate::exec::Row;
use crate::expr::Params;
use crate::expr::bind_routines::ParamNames;
use crate::planner::environment::with_env;
use crate::planner::plan::{Action, OutputColumn};
use crate::syntax::routine_statements;
use crate::syntax::stmt::{Statement, Transaction};
use crate::types::cast::{self, Context};
use crate::types::datum::{Record, RowShape};
use crate::types::text::Conversion;
use crate::types::user::DefinitionPath;
use crate::types::{Datum, Oid, SqlType, format_type, oid, user};
use clearway_base::breath;
use clearway_base::sync::Mutex;
use clearway_engine::catalog::{Catalog, Language, Object, Routine, RoutineKind, ViewMeaning, Volatility};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bodies that a session keeps.
const KEPT_MAX: usize = 200;

/// Rows that are read at once of a statement whose rows are dropped.
const BATCH: u64 = 1_000;

/// Carries out calls.
pub struct Runner;

impl RoutineRunner for Runner {
    fn call<'a>(&'a self, core: &'a Core, call: RoutineCall) -> CallFuture<'a> {
        Box::pin(call_routine(core, call))
    }
}

/// A body that has been read.
struct Body {
    /// The routine, as the catalog had it.
    object: Arc<Object>,
    names: Arc<ParamNames>,
    path: Option<Arc<DefinitionPath>>,
    /// The types of the arguments, and of the result.
    types: Vec<Oid>,
    result: Oid,
    outputs: Option<Arc<RowShape>>,
    parts: Vec<Part>,
}

struct Part {
    statement: Statement,
    text: Arc<str>,
    choice: Choice,
    plan: Mutex<Option<Arc<Cached>>>,
}

/// How the columns of the last statement become the result.
enum Coercion {
    Nothing,
    /// One value of these types: as it is, and as it is to be.
    Value(SqlType, SqlType),
    /// One value that is a row.
    Whole,
    /// A row of this shape, from columns of these types.
    Row(Arc<RowShape>, Vec<SqlType>),
}

fn mismatch(result: Oid, detail: impl Into<String>) -> SqlError {
    let message = format!("return type mismatch in function declared to return {}", format_type(result.into()));
    SqlError::new("42P13", message).detail(detail)
}

/// How the columns of the last statement become a value of the result's type.
///
/// # Errors
/// 42P13.
fn coercion(result: Oid, outputs: Option<&Arc<RowShape>>, columns: Option<&[OutputColumn]>) -> Result<Coercion> {
    if result == oid::VOID {
        return Ok(Coercion::Nothing);
    }
    let Some(columns) = columns else {
        let detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";
        return Err(mismatch(result, detail));
    };
    let composite = user::shape(result);
    if result != oid::RECORD && composite.is_none() {
        let [only] = columns else {
            return Err(mismatch(result, "Final statement must return exactly one column."));
        };
        let from = settled(only.ty);
        if !cast::can(from.oid, result, Context::Assignment) {
            return Err(mismatch(result, format!("Actual return type is {}.", format_type(from))));
        }
        return Ok(Coercion::Value(from, result.into()));
    }
    if let [only] = columns
        && (only.ty.oid == result || (only.ty.oid == oid::RECORD && composite.is_some()))
    {
        return Ok(Coercion::Whole);
    }
    let types: Vec<SqlType> = columns.iter().map(|c| settled(c.ty)).collect();
    let Some(shape) = composite.or_else(|| outputs.cloned()) else {
        let names = Some(columns.iter().map(|c| c.name.clone()).collect());
        let shape = RowShape { oid: oid::RECORD, names, types: types.clone() };
        return Ok(Coercion::Row(Arc::new(shape), types));
    };
    for (i, (from, to)) in types.iter().zip(&shape.types).enumerate() {
        if !cast::can(from.oid, to.oid, Context::Assignment) {
            let (from, to) = (format_type(*from), format_type(SqlType::new(to.oid)));
            let detail = format!("Final statement returns {from} instead of {to} at column {}.", i + 1);
            return Err(mismatch(result, detail));
        }
    }
    if types.len() != shape.types.len() {
        let what = if types.len() < shape.types.len() { "few" } else { "many" };
        return Err(mismatch(result, format!("Final statement returns too {what} columns.")));
    }
    Ok(Coercion::Row(shape, types))
}

fn settled(ty: SqlType) -> SqlType {
    if ty.oid == oid::UNKNOWN { oid::TEXT.into() } else { ty }
}

/// The command of a statement, for errors.
pub(super) fn command(statement: &Statement) -> String {
    match statement {
        Statement::Query(_) => "SELECT".to_owned(),
        Statement::Insert(_) => "INSERT".to_owned(),
        Statement::Update(_) => "UPDATE".to_owned(),
        Statement::Delete(_) => "DELETE".to_owned(),
        Statement::Merge(_) => "MERGE".to_owned(),
        Statement::Transaction(Transaction::Begin { start: false, .. }) => "BEGIN".to_owned(),
        Statement::Transaction(Transaction::Begin { start: true, .. }) => "START TRANSACTION".to_owned(),
        Statement::Transaction(Transaction::Commit { .. }) => "COMMIT".to_owned(),
        Statement::Transaction(Transaction::Rollback { .. } | Transaction::RollbackTo(_)) => "ROLLBACK".to_owned(),
        Statement::Transaction(Transaction::Savepoint(_)) => "SAVEPOINT".to_owned(),
        Statement::Transaction(Transaction::Release(_)) => "RELEASE".to_owned(),
        Statement::Transaction(_) => "SET TRANSACTION".to_owned(),
        other => {
            let name = format!("{other:?}");
            let word: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
            let mut out = String::new();
            for c in word.chars() {
                if c.is_ascii_uppercase() && !out.is_empty() {
                    out.push(' ');
                }
                out.push(c.to_ascii_uppercase());
            }
            out
        }
    }
}

/// Refuses statements that bodies may not have.
fn may_stand(statement: &Statement, volatility: Volatility) -> Result<()> {
    match statement {
        Statement::Query(_) => Ok(()),
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => match volatility {
            Volatility::Volatile => Ok(()),
            _ => {
                let message = format!("{} is not allowed in a non-volatile function", command(statement));
                Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message))
            }
        },
        Statement::Transaction(_) => {
            let message = format!("{} is not allowed in an SQL function", command(statement));
            Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message))
        }
        other => Err(SqlError::unsupported(format!("{} in an SQL function", command(other)))),
    }
}

fn read_body(catalog: &Catalog, object: &Arc<Object>, r: &Routine, given: Option<&[Oid]>) -> Result<Body> {
    let known = signature(catalog, r);
    let mut types = known.types();
    let mut result = r.result;
    if let Some([given @ .., of_result]) = given {
        types = given.to_vec();
        result = *of_result;
    }
    let parsed = routine_statements(&r.body, r.atomic)?;
    let mut parts = Vec::new();
    for p in parsed {
        let text = r.body.get(p.range.clone()).filter(|_| !r.atomic).unwrap_or(&r.body);
        let (text, plan) = (Arc::from(text), Mutex::new("sql/body/plan", None));
        parts.push(Part { statement: p.statement, text, choice: Choice::default(), plan });
    }
    let path = r.path.as_ref().filter(|_| r.atomic).map(|path| definition_path(catalog, path));
    let names = ParamNames::of(&known);
    Ok(Body { object: object.clone(), names, path, types, result, outputs: known.outputs, parts })
}

/// The body of a routine, read anew where the catalog has another.
fn body_of(core: &Core, catalog: &Catalog, oid: Oid, given: Option<&[Oid]>) -> Result<Arc<Body>> {
    let gone = || SqlError::internal(format!("cache lookup failed for function {oid}"));
    let object = catalog.get(oid).ok_or_else(gone)?;
    let Object::Routine(r) = &**object else { return Err(gone()) };
    let key = (oid, given.map_or_else(Vec::new, <[Oid]>::to_vec));
    let kept = core.bodies.lock().get(&key).cloned();
    if let Some(body) = kept.and_then(|body| body.downcast::<Body>().ok())
        && Arc::ptr_eq(&body.object, object)
    {
        return Ok(body);
    }
    let body = Arc::new(read_body(catalog, object, r, given).map_err(|e| e.internal_to(&r.body))?);
    let mut bodies = core.bodies.lock();
    if bodies.len() >= KEPT_MAX {
        bodies.clear();
    }
    bodies.insert(key, body.clone());
    Ok(body)
}

/// A statement that changes or locks rows waits for a function.
struct Changing<'a>(&'a Core);

impl<'a> Changing<'a> {
    fn begin(core: &'a Core) -> Changing<'a> {
        core.changing.fetch_add(1, Relaxed);
        Changing(core)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.changing.fetch_sub(1, Relaxed);
    }
}

/// Settings that hold for a call, and what they were before.
pub(super) struct Settings<'a> {
    core: &'a Core,
    before: Vec<(String, String)>,
}

impl<'a> Settings<'a> {
    pub(super) fn set(core: &'a Core, list: &[(String, String)]) -> Result<Settings<'a>> {
        let mut settings = Settings { core, before: Vec::new() };
        for (name, value) in list {
            let before = core.settings.lock().get(name).to_owned();
            core.set(name, Some(value), true)?;
            settings.before.push((name.clone(), before));
        }
        Ok(settings)
    }
}

impl Drop for Settings<'_> {
    fn drop(&mut self) {
        while let Some((name, value)) = self.before.pop() {
            // What held before was allowed then.
            let _ = self.core.set(&name, Some(&value), true);
        }
    }
}

/// The types of the arguments and of the result, which stand behind the arguments of a polymorphic function.
fn given_types(r: &Routine, args: &mut Vec<Datum>) -> Option<Vec<Oid>> {
    if args.len() <= r.inputs().count() {
        return None;
    }
    match args.pop() {
        Some(Datum::Array(types)) => Some(types.values.iter().filter_map(Datum::as_i64).map(|n| n as Oid).collect()),
        _ => None,
    }
}

/// A row of nulls, or of one.
pub(super) fn no_value(columns: Option<&Vec<SqlType>>) -> Row {
    vec![Datum::Null; columns.map_or(1, Vec::len)]
}

async fn call_routine(core: &Core, mut call: RoutineCall) -> Result<Vec<Row>> {
    let core = &core.own().ok_or_else(|| SqlError::internal("a function outside of a session"))?;
    let catalog = core.catalog();
    let gone = || SqlError::internal(format!("cache lookup failed for function {}", call.oid));
    let object = catalog.get(call.oid).cloned().ok_or_else(gone)?;
    let Object::Routine(r) = &*object else { return Err(gone()) };
    if !Judge::of(core, &catalog).may_with(&object, 'X') {
        return Err(denied(r.kind.name(), &r.name));
    }
    let given = given_types(r, &mut call.args);
    let _changing = call.changes.then(|| Changing::begin(core));
    if r.strict && call.args.iter().any(Datum::is_null) {
        return Ok(if r.gives_rows { Vec::new() } else { vec![no_value(call.columns.as_ref())] });
    }
    let _acting = r.definer.then(|| core.act_as(&catalog, r.owner));
    let settings = Settings::set(core, &r.settings)?;
    if r.language == Language::Plpgsql {
        let rows = Box::pin(Session::call_function(core, (&catalog, &object, r), given, call)).await;
        drop(settings);
        return rows;
    }
    let body = body_of(core, &catalog, call.oid, given.as_deref()).map_err(|e| starting(e, r))?;
    let rows = run_body(core, r, &body, call).await;
    drop(settings);
    rows
}

fn starting(e: SqlError, r: &Routine) -> SqlError {
    e.within(format!("SQL function \"{}\" during startup", r.name))
}

async fn run_body(core: &Arc<Core>, r: &Routine, body: &Body, call: RoutineCall) -> Result<Vec<Row>> {
    let params: Arc<[Datum]> = call.args.clone().into();
    let view = (r.volatility != Volatility::Volatile).then_some(call.view);
    let mut out = Vec::new();
    for (at, part) in body.parts.iter().enumerate() {
        breath::breathe(breath::ROW).await?;
        may_stand(&part.statement, r.volatility).map_err(|e| starting(e, r))?;
        let context = BodyContext {
            names: body.names.clone(),
            path: body.path.clone(),
            meaning: r.meanings.get(at).filter(|_| r.atomic).cloned(),
            view,
        };
        let parameters = (params.clone(), body.types.as_slice());
        let kept = part.plan.lock().clone();
        let custom = part.choice.is_custom(core, kept.as_deref());
        let request = Request::in_body(core, (&part.statement, &part.text), parameters, &context);
        let request = Request { custom, ..request };
        let here =
            |e: SqlError| e.internal_to(&part.text).within(format!("SQL function \"{}\" statement {}", r.name, at + 1));
        let kept = kept.filter(|_| !custom).inspect(|kept| kept.stays(core));
        let (mut execution, cached) = Box::pin(run::begin(core, request, kept)).await.map_err(here)?;
        if custom {
            part.choice.made(&cached); // CHO-1
        } else {
            *part.plan.lock() = Some(cached.clone());
        }
        let last = at + 1 == body.parts.len();
        if last && (r.kind == RoutineKind::Function || call.by_call && !body_is_void(body)) {
            let columns = cached.plan.columns.as_deref();
            // What the statement defines is the shape of rows of no known type.
            let defined = call.columns.as_ref().filter(|_| body.outputs.is_none() && body.result == oid::RECORD);
            let defined =
                defined.map(|types| Arc::new(RowShape { oid: oid::RECORD, names: None, types: types.clone() }));
            let outputs = body.outputs.as_ref().or(defined.as_ref());
            let how = coercion(body.result, outputs, columns).map_err(|e| starting(e, r))?;
            if !matches!(how, Coercion::Nothing) {
                let max = if r.gives_rows { u64::MAX } else { 1 };
                let rows = execution.take(core, max).await.map_err(here)?;
                for row in rows {
                    breath::breathe(breath::ROW).await?;
                    out.push(result_row(core, &how, row, &call).map_err(here)?);
                }
                continue;
            }
        }
        to_the_end(core, &mut execution).await.map_err(here)?;
    }
    if body.parts.is_empty() && body.result != oid::VOID {
        return Err(starting(coercion(body.result, None, None).err().unwrap_or_else(|| mismatch(body.result, "")), r));
    }
    if !r.gives_rows && out.is_empty() {
        out.push(no_value(call.columns.as_ref()));
    }
    Ok(out)
}

fn body_is_void(body: &Body) -> bool {
    body.result == oid::VOID
}

/// Runs a statement whose rows are dropped.
async fn to_the_end(core: &Core, execution: &mut Execution) -> Result<()> {
    if !matches!(execution.cached.plan.action, Action::Select(_)) {
        return Ok(());
    }
    while execution.take(core, BATCH).await?.len() as u64 == BATCH {}
    Ok(())
}

fn result_row(core: &Core, how: &Coercion, mut row: Row, call: &RoutineCall) -> Result<Row> {
    let (format, _) = core.format_and_role();
    let catalog = core.catalog();
    let names = core.names(&catalog);
    let conversion = Conversion { format: &format, now: core.transaction_started(), names: &names };
    let convert = |value: Datum, from: SqlType, to: SqlType| match from.oid == to.oid && !user::is_domain(to.oid) {
        true => Ok(value),
        false => cast::convert(value, from, to, false, &conversion),
    };
    match how {
        Coercion::Nothing => Ok(no_value(call.columns.as_ref())),
        Coercion::Value(from, to) => {
            let value = row.pop().unwrap_or(Datum::Null);
            Ok(vec![convert(value, *from, *to)?])
        }
        Coercion::Whole => match (row.pop(), &call.columns) {
            (Some(Datum::Row(record)), Some(columns)) => {
                expected(&record.shape.types, columns)?;
                Ok(record.values.clone())
            }
            (Some(value), None) => Ok(vec![value]),
            _ => Ok(no_value(call.columns.as_ref())),
        },
        Coercion::Row(shape, types) => {
            let mut values = Vec::with_capacity(row.len());
            for ((value, from), to) in row.into_iter().zip(types).zip(&shape.types) {
                values.push(convert(value, *from, *to)?);
            }
            match &call.columns {
                Some(columns) => {
                    expected(&shape.types, columns)?;
                    Ok(values)
                }
                None => Ok(vec![Datum::Row(Arc::new(Record::new(shape.clone(), values)?))]),
            }
        }
    }
}

/// The columns that a statement defines for rows of no known type must be those that come.
fn expected(given: &[SqlType], wanted: &[SqlType]) -> Result<()> {
    let refused = |detail: String| {
        let message = "function return row and query-specified return row do not match";
        Err(SqlError::new(code::DATATYPE_MISMATCH, message).detail(detail))
    };
    if given.len() != wanted.len() {
        let plural = if given.len() == 1 { "" } else { "s" };
        let (given, wanted) = (given.len(), wanted.len());
        return refused(format!("Returned row contains {given} attribute{plural}, but query expects {wanted}."));
    }
    for (i, (given, wanted)) in given.iter().zip(wanted).enumerate() {
        if user::base(*given).oid != user::base(*wanted).oid {
            let (given, wanted) = (format_type(*given), format_type(*wanted));
            return refused(format!(
                "Returned type {given} at ordinal position {}, but query expects {wanted}.",
                i + 1
            ));
        }
    }
    Ok(())
}

/// Whether the last statement has a result where one is wanted; if not, that is what is wrong with the body.
fn last_gives(body: &Body, r: &Routine) -> bool {
    let gives = |part: &Part| {
        matches!(
            part.statement,
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
        )
    };
    r.kind == RoutineKind::Function && r.result != oid::VOID && !body.parts.last().is_some_and(gives)
}

/// Judges the body of a new routine, and says what its statements mean if they are those of a body of the standard.
///
/// # Errors
/// Whatever is wrong with it.
pub fn judge_body(core: &Core, catalog: &Arc<Catalog>, r: &Routine) -> Result<Vec<ViewMeaning>> {
    let object = Arc::new(Object::Routine(r.clone()));
    let body = read_body(catalog, &object, r, None)?;
    let polymorphic = r.inputs().any(|a| crate::expr::bind_routines::is_polymorphic(a.type_oid));
    let mut meanings = Vec::new();
    let mut columns = None;
    for part in &body.parts {
        // The rest is judged when it runs.
        match &part.statement {
            Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Transaction(_) => {}
            other => may_stand(other, r.volatility).or_else(|e| if last_gives(&body, r) { Ok(()) } else { Err(e) })?,
        }
        if polymorphic {
            continue;
        }
        let planned = with_env(core, catalog, |env| {
            let types = body.types.iter().map(|t| Some(*t)).collect();
            let mut params = Params { types, names: Some(body.names.clone()), ..Params::default() };
            crate::planner::Planner::new(env).exempt().plan_body(&part.statement, &mut params)
        });
        let (plan, meaning) = planned?;
        columns = plan.and_then(|plan| plan.columns);
        meanings.push(meaning);
    }
    if r.kind == RoutineKind::Function && !polymorphic {
        coercion(r.result, body.outputs.as_ref(), columns.as_deref())?;
    }
    Ok(if r.atomic { meanings } else { Vec::new() })
}

/// Judges a setting of a routine.
///
/// # Errors
/// Those of SET.
pub fn check_setting(core: &Core, name: &str, value: &str) -> Result<()> {
    let list = [(name.to_owned(), value.to_owned())];
    Settings::set(core, &list).map(drop)
}
