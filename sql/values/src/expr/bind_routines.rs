//! The binder for calls of functions that users define: which function is meant, what its arguments are, and when its body is inlined.
//!
//! Source: PostgreSQL 15's `func_get_detail` and `FuncnameGetCandidates` for the choice, `inline_function` for the body.

use super::bind::{Binder, Params, Scope};
use super::bind_variables::Variables;
use super::bound::{Bound, BoundKind};
use super::host::HostFunction;
use super::inlining::{self, DefaultOf, Inlining};
pub use super::inlining::{with_called, without_inlining};
pub use super::resolve::is_polymorphic;
use super::resolve::{self, Choice};
use super::sets::{SetCall, SetFunction};
use crate::builtin;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Call, Expr, ExprKind, QualName, Query, QueryBody, Target};
use crate::syntax::routine_statements;
use crate::syntax::stmt::Statement;
use crate::types::cast::Context;
use crate::types::datum::Array;
use crate::types::routine::{self, Signature};
use crate::types::{Datum, Oid, SqlType, array_of, element_of, format_type, oid, user};
use clearway_base::stack;
use std::cell::Cell;
use std::sync::Arc;

/// The parts of an argument that a body may name more than once, so that nested calls don't double it with each level.
const REPEATED_MAX: u32 = 10;

/// The names of a function's arguments, by which its body may call them.
#[derive(Clone, Debug)]
pub struct ParamNames {
    /// The function.
    pub function: String,
    /// By number minus one.
    pub names: Vec<Option<String>>,
    /// The variables of PL/pgSQL; none: it is a body in SQL.
    pub variables: Option<Variables>,
}

impl ParamNames {
    /// Those of a function.
    pub fn of(signature: &Signature) -> Arc<ParamNames> {
        let names = signature.inputs.iter().map(|i| i.name.clone()).collect();
        Arc::new(ParamNames { function: signature.name.clone(), names, variables: None })
    }
}

/// A function that fits a call.
struct Candidate {
    signature: Arc<Signature>,
    /// For each argument of the call its place among those of the function.
    places: Vec<usize>,
    /// The types for the arguments of the call.
    types: Vec<Oid>,
    /// Its last argument repeats.
    spread: bool,
}

/// A call of a function with all its arguments.
pub struct Called {
    /// The function.
    pub signature: Arc<Signature>,
    /// Its arguments, each of the declared type.
    pub args: Vec<Bound>,
    /// The type of the result.
    pub result: SqlType,
    /// The types that the call gives.
    pub given: Vec<Oid>,
}

/// Whether an expression has more parts than a number.
fn is_larger(e: &Bound, max: u32) -> bool {
    let left = Cell::new(max);
    e.any(&|_| left.replace(left.get().saturating_sub(1)) == 0)
}

/// A function as it is shown in errors: the types of the arguments, with the names of those that are given by name.
fn shown_call(call: &Call, types: &[Oid]) -> String {
    let first_named = types.len() - call.names.len();
    let one = |(i, ty): (usize, &Oid)| {
        let shown = format_type((*ty).into());
        match i.checked_sub(first_named).and_then(|i| call.names.get(i)) {
            Some(name) => format!("{name} => {shown}"),
            None => shown,
        }
    };
    let types: Vec<String> = types.iter().enumerate().map(one).collect();
    format!("{}({})", call.name.dotted(), types.join(", "))
}

/// Whether an argument of a type can be given where another type is wanted.
pub fn takes(given: Oid, wanted: Oid) -> bool {
    !matches!(resolve::choose(&[given], &[&[wanted]]), Choice::None)
}

fn candidate(signature: &Arc<Signature>, call: &Call, given: usize) -> Option<Candidate> {
    let inputs = &signature.inputs;
    let positional = given - call.names.len();
    let whole = Candidate { signature: signature.clone(), places: Vec::new(), types: Vec::new(), spread: false };
    if positional > inputs.len()
        || given > inputs.len()
        || (signature.variadic && !call.variadic && given >= inputs.len())
    {
        let element = inputs.last().and_then(|i| element_of(i.ty)).filter(|_| signature.variadic && !call.variadic)?;
        if !call.names.is_empty() || given < inputs.len() {
            return None;
        }
        let mut types: Vec<Oid> = signature.types();
        types.pop();
        types.resize(given, element);
        return Some(Candidate { places: (0..given).collect(), types, spread: true, ..whole });
    }
    if call.variadic && !signature.variadic {
        return None;
    }
    let mut places: Vec<usize> = (0..positional).collect();
    for name in &call.names {
        let at = inputs.iter().position(|i| i.name.as_ref() == Some(name))?;
        if places.contains(&at) {
            return None;
        }
        places.push(at);
    }
    let missing = (0..inputs.len()).filter(|at| !places.contains(at));
    if missing.into_iter().any(|at| inputs[at].default.is_none()) {
        return None;
    }
    let types = places.iter().map(|at| inputs[*at].ty).collect();
    Some(Candidate { places, types, ..whole })
}

impl Binder<'_> {
    /// A call of a function of a user, in an expression; none: no such function fits.
    pub(super) fn user_call(&mut self, call: &Call, pos: Pos) -> Result<Option<Bound>> {
        let Some(called) = self.user_function(call, pos)? else { return Ok(None) };
        if called.signature.procedure {
            let message = format!("{} is a procedure", shown_call(call, &called.given));
            let hint = "To call a procedure, use CALL.";
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).hint(hint).at(pos));
        }
        self.result_of(called, pos).map(Some)
    }

    /// `t.f` where `t` has no column `f`: the function `f` of the whole row, as PostgreSQL reads it; else the error.
    pub(super) fn call_by_column(&mut self, name: &QualName, missing: SqlError) -> Result<Bound> {
        let Some(relation) = name.schema() else { return Err(missing) };
        let relation = QualName { parts: vec![relation.to_owned()], pos: name.pos };
        let row = Expr { kind: Box::new(ExprKind::Column(relation)), pos: name.pos, height: 1 };
        self.call_by_field(&row, name.name(), missing)
    }

    /// `(row).f`, the same.
    pub(super) fn field_or_call(&mut self, row: &Expr, name: &str) -> Result<Bound> {
        self.field(row, name).or_else(|missing| self.call_by_field(row, name, missing))
    }

    fn call_by_field(&mut self, row: &Expr, function: &str, missing: SqlError) -> Result<Bound> {
        if missing.code() != code::UNDEFINED_COLUMN || routine::named(None, function)?.is_empty() {
            return Err(missing);
        }
        let name = QualName { parts: vec![function.to_owned()], pos: row.pos };
        match self.user_call(&Call::new(name, vec![row.clone()]), row.pos) {
            Ok(Some(bound)) => Ok(bound),
            _ => Err(missing),
        }
    }

    fn result_of(&mut self, called: Called, pos: Pos) -> Result<Bound> {
        if called.signature.gives_rows {
            return self.user_set(called, pos);
        }
        match self.inlined(&called, pos) {
            Some(bound) => Ok(bound),
            None => Ok(host_call(called, pos)),
        }
    }

    /// The function of a user that a call means, with its arguments; none: no such function fits.
    ///
    /// # Errors
    /// 42725 where several fit; 42809 for what only aggregates have.
    pub fn user_function(&mut self, call: &Call, pos: Pos) -> Result<Option<Called>> {
        let mut all = routine::named(call.name.schema(), call.name.name())?;
        if all.is_empty() || call.star {
            return Ok(None);
        }
        // Those that need no default and no spreading come first: of several with the same types they are the ones meant.
        all.sort_by_key(|s| (s.variadic, s.inputs.len()));
        let candidates: Vec<Candidate> = all.iter().filter_map(|s| candidate(s, call, call.args.len())).collect();
        if candidates.is_empty() {
            return Ok(None);
        }
        let args: Vec<Bound> = call.args.iter().map(|a| self.node(a)).collect::<Result<_>>()?;
        let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
        // What pg_catalog has is found first.
        let known = builtin::procs_named(call.name.name());
        if call.name.schema().is_none() && call.names.is_empty() && known.iter().any(|p| p.arguments == types) {
            return Ok(None);
        }
        let lists: Vec<&[Oid]> = candidates.iter().map(|c| c.types.as_slice()).collect();
        let chosen = match resolve::choose(&types, &lists) {
            Choice::One(at) => &candidates[at],
            Choice::None => return Ok(None),
            Choice::Many => {
                let message = format!("function {} is not unique", shown_call(call, &types));
                return Err(SqlError::new(code::AMBIGUOUS_FUNCTION, message)
                    .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                    .at(pos));
            }
        };
        let same = candidates.iter().filter(|c| c.types == chosen.types);
        let equally_good = |c: &&Candidate| {
            c.spread == chosen.spread
                && c.signature.inputs.len() > call.args.len()
                && chosen.signature.inputs.len() > call.args.len()
        };
        if same.filter(equally_good).count() > 1 {
            let message = format!("function {} is not unique", shown_call(call, &types));
            return Err(SqlError::new(code::AMBIGUOUS_FUNCTION, message)
                .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                .at(pos));
        }
        if call.distinct || !call.order_by.is_empty() || call.filter.is_some() {
            let what = if call.distinct {
                "DISTINCT"
            } else if call.filter.is_some() {
                "FILTER"
            } else {
                "ORDER BY"
            };
            let message = format!("{what} specified, but {} is not an aggregate function", call.name.dotted());
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        }
        self.called(chosen, args, &types, pos).map(Some)
    }

    /// A call of a function by an operator between operands of these types.
    pub(super) fn routine_call(
        &mut self,
        signature: &Arc<Signature>,
        declared: Vec<Oid>,
        operands: Vec<Bound>,
        types: &[Oid],
        pos: Pos,
    ) -> Result<Bound> {
        let places = (0..operands.len()).collect();
        let chosen = Candidate { signature: signature.clone(), places, types: declared, spread: false };
        let called = self.called(&chosen, operands, types, pos)?;
        self.result_of(called, pos)
    }

    fn called(&mut self, chosen: &Candidate, args: Vec<Bound>, types: &[Oid], pos: Pos) -> Result<Called> {
        let signature = &chosen.signature;
        let result = signature.result;
        // What is anycompatible is a text where nothing is known; any other polymorphic type must be known from an argument.
        let told = |t: Oid| resolve::is_polymorphic(t) && !matches!(t, oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLEARRAY);
        let mut told_by = chosen.types.iter().zip(types).filter(|(t, _)| told(**t)).map(|(_, given)| *given).peekable();
        if told_by.peek().is_some() && told_by.all(|given| given == oid::UNKNOWN) {
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        }
        let solved = resolve::solve(&chosen.types, types, result);
        let (wanted, result) = solved.ok_or_else(|| super::bind_calls::no_function(&signature.name, types, pos))?;
        let mut slots: Vec<Option<Bound>> = signature.inputs.iter().map(|_| None).collect();
        let mut repeated = Vec::new();
        let fixed = if chosen.spread { signature.inputs.len() - 1 } else { usize::MAX };
        for ((arg, place), wanted) in args.into_iter().zip(&chosen.places).zip(&wanted) {
            let arg = self.argument(arg, *wanted)?;
            match *place < fixed {
                true => slots[*place] = Some(arg),
                false => repeated.push(arg),
            }
        }
        if chosen.spread {
            let element = wanted.last().copied().unwrap_or(oid::TEXT);
            let ty = array_of(element).ok_or_else(|| SqlError::unsupported("an array of this type").at(pos))?;
            slots[fixed] = Some(Bound { kind: BoundKind::Array(repeated), ty: ty.into(), pos });
        }
        let mut complete = Vec::new();
        for (slot, input) in slots.into_iter().zip(&signature.inputs) {
            complete.push(match slot {
                Some(arg) => arg,
                None => self.default_of(signature, input.default.as_deref().unwrap_or("NULL"), input.ty)?,
            });
        }
        // A value of a domain is used as one of the type below it.
        let (signature, given) = (signature.clone(), types.to_vec());
        Ok(Called { signature, args: complete, result: user::base(SqlType::new(result)), given })
    }

    /// The default of an argument, on the path on which it was written.
    fn default_of(&mut self, signature: &Signature, text: &str, ty: Oid) -> Result<Bound> {
        // A default may call the function whose argument it is for.
        if inlining::is_deepest_default() || inlining::is_expanded() {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
                .hint("The defaults of the function's arguments call too many functions."));
        }
        let _within = Inlining::of(signature.oid);
        let _deeper = DefaultOf::deeper();
        let expr = crate::syntax::parse_expression(text)?;
        let (scope, conversion) = (Scope::default(), self.conversion);
        let bind = || {
            let mut params = Params::default();
            let mut binder = Binder {
                scope: &scope,
                params: &mut params,
                collected: None,
                subqueries: None,
                conversion,
                place: "DEFAULT expressions",
                in_aggregate: false,
            };
            let bound = binder.node(&expr)?;
            let from = bound.ty.oid;
            binder.coerce(bound, ty.into(), Context::Assignment)?.ok_or_else(|| {
                let (to, from) = (format_type(ty.into()), format_type(from.into()));
                SqlError::new(
                    code::DATATYPE_MISMATCH,
                    format!("argument of DEFAULT must be type {to}, not type {from}"),
                )
            })
        };
        match &signature.path {
            Some(path) => user::on_path(path.clone(), bind),
            None => bind(),
        }
    }

    /// A function that gives rows, in an expression.
    fn user_set(&mut self, called: Called, pos: Pos) -> Result<Bound> {
        let call = set_call(called, pos);
        self.set_in_expression(call, pos)
    }

    /// The body in place of the call; none: the call stays. What is wrong with the body is found where it runs.
    fn inlined(&mut self, called: &Called, pos: Pos) -> Option<Bound> {
        let signature = &called.signature;
        let fits = !signature.apart && signature.result != oid::RECORD && signature.result != oid::VOID;
        let recursive = inlining::is_within(signature.oid) || inlining::is_expanded();
        if !fits || recursive || user::is_domain(signature.result) || !self.conversion.names.may_execute(signature.oid)
        {
            return None;
        }
        let parsed = routine_statements(&signature.body, signature.atomic).ok()?;
        let [only] = parsed.as_slice() else { return None };
        let Statement::Query(query) = &only.statement else { return None };
        let e = only_expression(query)?;
        let bind = || self.body(called, e);
        let body = match &signature.path {
            Some(path) if signature.atomic => user::on_path(path.clone(), bind),
            _ => user::off_path(bind),
        };
        let mut body = body.ok()?;
        let volatile = match signature.volatility {
            'v' => false,
            _ => body.is_volatile(),
        };
        if volatile {
            return None;
        }
        let mut uses = vec![0usize; called.args.len()];
        count_params(&body, &mut uses);
        for (uses, arg) in uses.iter().zip(&called.args) {
            if *uses > 1 && (arg.is_volatile() || arg.may_wait() || is_larger(arg, REPEATED_MAX)) {
                return None;
            }
        }
        let keeps_nulls = !signature.strict || (is_strict(&body) && uses.iter().all(|n| *n > 0));
        if !keeps_nulls && (signature.volatility != 'i' || called.args.iter().any(Bound::is_volatile)) {
            return None;
        }
        substitute(&mut body, &called.args);
        if !keeps_nulls {
            // Only immutable functions: an index over one must be able to compute it.
            let null = |arg: &Bound| Bound {
                kind: BoundKind::IsNull { arg: Box::new(arg.clone()), negated: false },
                ty: oid::BOOL.into(),
                pos,
            };
            let any = BoundKind::Or(called.args.iter().map(null).collect());
            let any = Bound { kind: any, ty: oid::BOOL.into(), pos };
            let nothing = Bound::constant(Datum::Null, body.ty, pos);
            let ty = body.ty;
            body = Bound { kind: BoundKind::Case { whens: vec![(any, nothing)], otherwise: Box::new(body) }, ty, pos };
        }
        body.pos = pos;
        inlining::note_called(signature.oid);
        Some(body)
    }

    fn body(&mut self, called: &Called, e: &Expr) -> Result<Bound> {
        let _inlining = Inlining::of(called.signature.oid);
        let scope = Scope::default();
        let mut params = Params {
            types: called.args.iter().map(|a| Some(a.ty.oid)).collect(),
            open: false,
            names: Some(ParamNames::of(&called.signature)),
            values: None,
            ..Params::default()
        };
        let mut binder = Binder {
            scope: &scope,
            params: &mut params,
            collected: None,
            subqueries: None,
            conversion: self.conversion,
            place: "SELECT",
            in_aggregate: false,
        };
        let bound = stack::deeper(|| binder.node(e))?;
        let (to, pos) = (called.result, bound.pos);
        let bound = binder.coerce(bound, to, Context::Assignment)?;
        let bound = bound.ok_or_else(|| SqlError::new("42P13", "return type mismatch").at(pos))?;
        if bound.ty.oid == to.oid {
            return Ok(bound);
        }
        Ok(Bound { kind: BoundKind::Cast { arg: Box::new(bound), explicit: false }, ty: to, pos })
    }

    /// A name in the body of a function that is no column: an argument, or a field of one.
    pub(super) fn argument_named(&self, parts: &[String], pos: Pos) -> Option<Bound> {
        let names = self.params.names.as_ref()?;
        let of = |name: &String| {
            let at = names.names.iter().position(|n| n.as_ref() == Some(name))?;
            if let Some(value) = self.params.values.as_ref().and_then(|values| values.get(at)) {
                return Some(Bound { pos, ..value.clone() });
            }
            let ty = self.params.types.get(at).copied().flatten().unwrap_or(oid::UNKNOWN);
            Some(Bound { kind: BoundKind::Param(at as u32 + 1), ty: user::base(ty.into()), pos })
        };
        match parts {
            [name] => of(name),
            [function, name] if *function == names.function && of(name).is_some() => of(name),
            [name, field] => self.field_named(of(name)?, field, pos),
            [function, name, field] if *function == names.function => self.field_named(of(name)?, field, pos),
            _ => None,
        }
    }
}

impl Binder<'_> {
    /// The error for a call with arguments by name that no function fits.
    pub(super) fn no_named(&mut self, call: &Call, pos: Pos) -> SqlError {
        let args: Result<Vec<Bound>> = call.args.iter().map(|a| self.node(a)).collect();
        let types: Vec<Oid> = match args {
            Ok(args) => args.iter().map(|a| a.ty.oid).collect(),
            Err(e) => return e,
        };
        let message = format!("function {} does not exist", shown_call(call, &types));
        SqlError::new(code::UNDEFINED_FUNCTION, message)
            .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
            .at(pos)
    }
}

/// The call as one that gives rows.
pub fn set_call(called: Called, pos: Pos) -> SetCall {
    let signature = &called.signature;
    let shape = signature.outputs.clone().or_else(|| user::shape(signature.result));
    let (columns, row, named) = match &shape {
        Some(shape)
            if shape.types.len() == 1 && signature.result != oid::RECORD && !user::is_composite(signature.result) =>
        {
            (vec![(shape.name(0), shape.types[0])], 0, true)
        }
        Some(shape) => {
            let columns = shape.types.iter().enumerate().map(|(i, ty)| (shape.name(i), *ty)).collect();
            (columns, called.result.oid, true)
        }
        None => (vec![(signature.name.clone(), called.result)], 0, false),
    };
    let (oid, gives_rows) = (signature.oid, signature.gives_rows);
    let args = with_types(called, pos);
    SetCall { function: SetFunction::Sql { oid, row, named, gives_rows }, args, columns }
}

fn host_call(called: Called, pos: Pos) -> Bound {
    let (oid, ty) = (called.signature.oid, called.result);
    Bound { kind: BoundKind::Host { function: HostFunction::Sql(oid), args: with_types(called, pos) }, ty, pos }
}

/// The arguments; behind those of a polymorphic function stand their types, and that of the result.
fn with_types(called: Called, pos: Pos) -> Vec<Bound> {
    let mut args = called.args;
    if called.signature.inputs.iter().any(|i| resolve::is_polymorphic(i.ty)) {
        let types = args.iter().map(|a| a.ty.oid).chain([called.result.oid]).map(Datum::Oid).collect();
        let types = Datum::Array(Array::one_dimensional(oid::OID, types).into());
        args.push(Bound::constant(types, array_of(oid::OID).unwrap_or(oid::OID), pos));
    }
    args
}

/// The expression of a query that is nothing but SELECT and one expression.
fn only_expression(query: &Query) -> Option<&Expr> {
    let QueryBody::Select(s) = &query.body else { return None };
    let bare = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locking.is_empty()
        && s.distinct.is_none()
        && s.from.is_empty()
        && s.filter.is_none()
        && s.group_by.is_empty()
        && s.having.is_none()
        && s.windows.is_empty();
    match s.targets.as_slice() {
        [Target::Expr { expr, .. }] if bare => Some(expr),
        _ => None,
    }
}

fn count_params(e: &Bound, uses: &mut [usize]) {
    if let BoundKind::Param(n) = &e.kind
        && let Some(count) = uses.get_mut(*n as usize - 1)
    {
        *count += 1;
    }
    stack::deeper(|| e.children().into_iter().for_each(|c| count_params(c, uses)));
}

fn substitute(e: &mut Bound, args: &[Bound]) {
    if let BoundKind::Param(n) = &e.kind {
        if let Some(arg) = args.get(*n as usize - 1) {
            let ty = e.ty;
            *e = arg.clone();
            e.ty = ty;
        }
        return;
    }
    stack::deeper(|| e.children_mut().into_iter().for_each(|c| substitute(c, args)));
}

/// Whether a null among what it is made of makes it null.
fn is_strict(e: &Bound) -> bool {
    let own = match &e.kind {
        BoundKind::Const(_) | BoundKind::Param(_) | BoundKind::Binary { .. } | BoundKind::Prefix { .. } => true,
        BoundKind::Cast { .. } | BoundKind::Subscript { .. } | BoundKind::Not(_) => true,
        BoundKind::Call { function, .. } => function.strict,
        _ => false,
    };
    own && stack::deeper(|| e.children().into_iter().all(is_strict))
}
