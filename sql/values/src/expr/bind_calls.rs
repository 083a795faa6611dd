//! The binder for calls: chooses functions and aggregates.

use super::aggregate::{self, AggregateCall};
use super::bind::{AggregateUse, Binder};
use super::bind_named;
use super::bound::{Bound, BoundKind, Unplaced};
use super::collect::add_aggregate;
use super::functions;
use super::host::HOST_FUNCTIONS;
use super::hstore_record;
use super::inquiries;
use super::json_populate;
use super::range_functions;
use super::resolve::{self, Choice};
use super::sets::SetCall;
use super::{sets, value_size, window};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Call, Expr, ExprKind};
use crate::types::aliases::quoted;
use crate::types::cast::Context;
use crate::types::datum::Array;
use crate::types::order;
use crate::types::text::CatalogRows;
use crate::types::{Datum, Oid, array_of, element_of, extension, format_type, oid, user};
use std::borrow::Cow;
use std::cell::Cell;

impl Binder<'_> {
    /// Whether an argument is `$1::void`, or a parameter to which the client has given that type.
    fn is_void_parameter(&self, e: &Expr) -> bool {
        match &*e.kind {
            ExprKind::Cast { arg, to } => matches!(&*arg.kind, ExprKind::Param(_)) && to.name.name() == "void",
            ExprKind::Param(n) => self.params.types.get(*n as usize - 1) == Some(&Some(oid::VOID)),
            _ => false,
        }
    }

    /// A call without its parameters of type void, which are no arguments, as in PostgreSQL: calls that ODBC and JDBC make have them in the place
    /// of results.
    ///
    /// # Errors
    /// Those of a parameter.
    pub fn without_void<'c>(&mut self, call: &'c Call) -> Result<Cow<'c, Call>> {
        if !call.args.iter().any(|e| self.is_void_parameter(e)) {
            return Ok(Cow::Borrowed(call));
        }
        let mut reduced = call.clone();
        for void in call.args.iter().filter(|e| matches!(&*e.kind, ExprKind::Cast { .. })) {
            if self.is_void_parameter(void) {
                self.node(void)?;
            }
        }
        reduced.args.retain(|e| !self.is_void_parameter(e));
        Ok(Cow::Owned(reduced))
    }

    pub(super) fn call_node(&mut self, call: &Call, pos: Pos) -> Result<Bound> {
        let call = self.without_void(call)?;
        self.call(&call, pos)
    }

    /// A call, of an aggregate or of a function.
    pub(super) fn call(&mut self, call: &Call, pos: Pos) -> Result<Bound> {
        let name = call.name.name();
        let in_catalog = match call.name.schema() {
            Some("information_schema") => name.starts_with("_pg_"),
            None | Some("pg_catalog") => true,
            Some(schema) => self.conversion.names.has_extension_function(schema, name) || is_of_types_in(schema, name),
        };
        if call.over.is_none()
            && !call.within_group
            && let Some(bound) = self.user_call(call, pos)?
        {
            return Ok(bound);
        }
        if !call.names.is_empty() {
            let by_place = bind_named::positional(call)?.ok_or_else(|| self.no_named(call, pos))?;
            return self.call(&by_place, pos);
        }
        if in_catalog && matches!(name, "range_agg" | "range_intersect_agg") && call.args.len() == 1 {
            return self.range_aggregate(call, pos);
        }
        if let Some(over) = &call.over {
            return self.window_call(call, over, pos);
        }
        let ordered_set = call.within_group && aggregate::hypothetical(name).is_some();
        if in_catalog && (aggregate::is_aggregate(name) || (call.star && name == "count") || ordered_set) {
            return self.aggregate(call, pos);
        }
        if in_catalog && window::is_window_function(name) {
            let message = format!("window function {name} requires an OVER clause");
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        }
        if call.within_group {
            return Err(self.not_within_group(call, pos));
        }
        if in_catalog && sets::gives_rows(name) {
            return self.set(call, pos);
        }
        if let Some(rows) = self.conversion.names.catalog_rows(call.name.schema(), name, call.args.len()) {
            self.may_give_rows(pos)?;
            let set = self.catalog_set(call, rows)?;
            return Ok(self.collected_set(set, pos));
        }
        let decorated = call.star || call.distinct || !call.order_by.is_empty() || call.filter.is_some();
        if decorated {
            let message = format!("DISTINCT, ORDER BY, FILTER or * specified, but {name} is not an aggregate function");
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        }
        let args: Vec<Bound> = call.args.iter().map(|a| self.node(a)).collect::<Result<_>>()?;
        let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
        if in_catalog && let Some(bound) = self.system_call(call, args, &types, pos)? {
            return Ok(bound);
        }
        let missing = user::missing_schema(call.name.schema()).map(|missing| missing.at(pos));
        Err(missing.unwrap_or_else(|| no_function(&call.name.dotted(), &types, pos)))
    }

    /// A call of a function of the system that gives one value; none: there is no such function.
    fn system_call(&mut self, call: &Call, args: Vec<Bound>, types: &[Oid], pos: Pos) -> Result<Option<Bound>> {
        let name = call.name.name();
        if name == "pg_typeof" && args.len() == 1 {
            let value = functions::typeof_value(types[0]);
            return Ok(Some(Bound::constant(value, oid::REGTYPE, pos)));
        }
        match (name, args.as_slice()) {
            ("pg_column_size", [value]) => return value_size::bind(self, value.clone(), pos),
            ("pg_collation_for", [value]) => return collation_of(&call.args[0], value, pos).map(Some),
            _ => {}
        }
        if let Some(bound) = self.enum_call(name, &args, pos) {
            return bound.map(Some);
        }
        if let Some(bound) = self.call_of_row(name, &args, pos)? {
            return Ok(Some(bound));
        }
        if call.variadic {
            return self.variadic_call(name, &args, types, pos);
        }
        if let Some(bound) = self.host_call(name, &args, types, pos)? {
            return Ok(Some(bound));
        }
        match self.scalar_call(name, args.clone(), types, pos)? {
            Some(bound) => Ok(Some(bound)),
            None => self.implied_call(name, &args, pos),
        }
    }

    /// A function that makes a row of a document or of pairs, or pairs of a row.
    fn call_of_row(&mut self, name: &str, args: &[Bound], pos: Pos) -> Result<Option<Bound>> {
        match json_populate::bind(self, name, args, None, pos)? {
            Some(bound) => Ok(Some(bound)),
            None => hstore_record::bind(self, name, args, pos),
        }
    }

    fn host_call(&mut self, name: &str, args: &[Bound], types: &[Oid], pos: Pos) -> Result<Option<Bound>> {
        let rows: Vec<_> = HOST_FUNCTIONS.iter().chain(inquiries::all()).filter(|h| h.1 == name).collect();
        let candidates: Vec<&[Oid]> = rows.iter().map(|r| r.2).collect();
        let Choice::One(i) = resolve::choose(types, &candidates) else {
            return Ok(None);
        };
        let row = rows[i];
        let args: Vec<Bound> =
            args.iter().zip(row.2).map(|(a, t)| self.argument(a.clone(), *t)).collect::<Result<_>>()?;
        Ok(Some(Bound { kind: BoundKind::Host { function: row.0, args }, ty: row.3.into(), pos }))
    }

    pub(super) fn scalar_call(
        &mut self,
        name: &str,
        args: Vec<Bound>,
        types: &[Oid],
        pos: Pos,
    ) -> Result<Option<Bound>> {
        // The name of a type with one literal of unknown type is a cast, before any function of that name is looked at.
        if let ([arg], [oid::UNKNOWN], Some(ty)) = (args.as_slice(), types, crate::types::by_name(name))
            && let Some(cast) = self.coerce(arg.clone(), ty.oid.into(), Context::Explicit)?
        {
            return Ok(Some(cast));
        }
        if let ("citext", [arg]) = (name, args.as_slice())
            && extension::is_there(&[oid::CITEXT], oid::CITEXT)
        {
            return self.coerce(arg.clone(), oid::CITEXT.into(), Context::Explicit);
        }
        if let ("hstore", [arg], [oid::UNKNOWN]) = (name, args.as_slice(), types)
            && extension::is_there(&[oid::HSTORE], oid::HSTORE)
        {
            return self.coerce(arg.clone(), oid::HSTORE.into(), Context::Explicit);
        }
        let there = |f: &&functions::Function| extension::is_there(f.args, f.result);
        let rows: Vec<_> = functions::named(name).iter().copied().filter(there).collect();
        let expanded: Vec<Vec<Oid>> = rows
            .iter()
            .map(|f| {
                let mut list = f.args.to_vec();
                if f.variadic && types.len() >= f.args.len() {
                    list.resize(types.len(), f.args.last().copied().unwrap_or(resolve::ANY));
                }
                list
            })
            .collect();
        let candidates: Vec<&[Oid]> = expanded.iter().map(Vec::as_slice).collect();
        let i = match resolve::choose(types, &candidates) {
            Choice::One(i) => i,
            Choice::None => return Ok(None),
            Choice::Many => {
                let shown: Vec<String> = types.iter().map(|t| format_type((*t).into())).collect();
                let message = format!("function {name}({}) is not unique", shown.join(", "));
                return Err(SqlError::new(code::AMBIGUOUS_FUNCTION, message)
                    .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                    .at(pos));
            }
        };
        let Some((wanted, result)) = resolve::solve(&expanded[i], types, rows[i].result) else { return Ok(None) };
        let args: Vec<Bound> = args.into_iter().zip(wanted).map(|(a, t)| self.argument(a, t)).collect::<Result<_>>()?;
        Ok(Some(Bound { kind: BoundKind::Call { function: rows[i], args }, ty: result.into(), pos }))
    }

    /// enum_first, enum_last and enum_range: they go by the type of their argument, whose value may be NULL.
    fn enum_call(&mut self, name: &str, args: &[Bound], pos: Pos) -> Option<Result<Bound>> {
        if !matches!(name, "enum_first" | "enum_last" | "enum_range") {
            return None;
        }
        let ty = args.iter().map(|a| a.ty.oid).find(|t| user::is_enum(*t))?;
        let labels: Vec<Datum> = user::labels(ty)?.into_iter().map(Datum::Enum).collect();
        let constant = |d: Option<&Datum>| Bound::constant(d.cloned().unwrap_or(Datum::Null), ty, pos);
        match (name, args.len()) {
            ("enum_first", 1) => Some(Ok(constant(labels.first()))),
            ("enum_last", 1) => Some(Ok(constant(labels.last()))),
            ("enum_range", 1) => {
                let all = Array::one_dimensional(ty, labels);
                Some(Ok(Bound::constant(Datum::Array(all.into()), array_of(ty)?, pos)))
            }
            ("enum_range", 2) => {
                let all = Array::one_dimensional(ty, labels);
                let mut parts = vec![Bound::constant(Datum::Array(all.into()), array_of(ty)?, pos)];
                for arg in args {
                    match self.argument(arg.clone(), ty) {
                        Ok(arg) => parts.push(arg),
                        Err(e) => return Some(Err(e)),
                    }
                }
                let kind = BoundKind::Call { function: &super::array_functions::ENUM_RANGE, args: parts };
                Some(Ok(Bound { kind, ty: array_of(ty)?.into(), pos }))
            }
            _ => None,
        }
    }

    /// `f(a, VARIADIC array)`.
    fn variadic_call(&mut self, name: &str, args: &[Bound], types: &[Oid], pos: Pos) -> Result<Option<Bound>> {
        let Some(function) = functions::named(name).iter().find(|f| f.variadic && f.args.len() == args.len()) else {
            return Ok(None);
        };
        let repeated = function.args.last().copied().unwrap_or(resolve::ANY);
        let last = types.last().copied().unwrap_or(oid::UNKNOWN);
        if repeated == resolve::ANY && element_of(last).is_none() && last != oid::UNKNOWN {
            return Err(SqlError::new(code::DATATYPE_MISMATCH, "VARIADIC argument must be an array").at(pos));
        }
        let mut wanted = function.args.to_vec();
        if let Some(slot) = wanted.last_mut() {
            *slot = match repeated {
                resolve::ANY if last == oid::UNKNOWN => oid::TEXT_ARRAY,
                resolve::ANY => last,
                t => array_of(t).unwrap_or(oid::TEXT_ARRAY),
            };
        }
        let args = args.iter().zip(wanted).map(|(a, t)| self.argument(a.clone(), t)).collect::<Result<_>>()?;
        Ok(Some(Bound { kind: BoundKind::Spread { function, args }, ty: function.result.into(), pos }))
    }

    /// A function that gives rows, in an expression.
    fn set(&mut self, call: &Call, pos: Pos) -> Result<Bound> {
        self.may_give_rows(pos)?;
        let bound = sets::bind(self, call, pos)?;
        Ok(self.collected_set(bound, pos))
    }

    /// A call of a function over the catalog that gives rows.
    ///
    /// # Errors
    /// 42883.
    pub fn catalog_set(&mut self, call: &Call, rows: CatalogRows) -> Result<SetCall> {
        let mut args = Vec::with_capacity(call.args.len());
        for (arg, ty) in call.args.iter().zip(rows.arguments) {
            let bound = self.bind_unsettled(arg)?;
            let given = bound.ty.oid;
            if *ty == oid::ANYARRAY && element_of(given).is_some() {
                args.push(bound);
                continue;
            }
            let coerced = self.coerce(bound, (*ty).into(), Context::Implicit)?;
            args.push(coerced.ok_or_else(|| no_function(&call.name.dotted(), &[given], call.name.pos))?);
        }
        let element = args.first().and_then(|a| element_of(a.ty.oid)).unwrap_or(oid::TEXT);
        let ty = |ty: Oid| if ty == oid::ANYELEMENT { element } else { ty };
        let columns = rows.columns.iter().map(|(name, of)| ((*name).to_owned(), ty(*of).into())).collect();
        Ok(SetCall { function: sets::SetFunction::Catalog(rows.at), args, columns })
    }

    /// A function of a user that gives rows, in an expression.
    pub(super) fn set_in_expression(&mut self, call: SetCall, pos: Pos) -> Result<Bound> {
        self.may_give_rows(pos)?;
        Ok(self.collected_set(call, pos))
    }

    fn collected_set(&mut self, bound: SetCall, pos: Pos) -> Bound {
        let ty = bound.ty();
        let at = self.collected.as_deref_mut().map_or(0, |c| c.set(bound));
        Bound { kind: BoundKind::Unplaced(Unplaced::Set(at)), ty, pos }
    }

    fn may_give_rows(&mut self, pos: Pos) -> Result<()> {
        let refuse = |message: String| SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos);
        let inside = match self.collected.as_deref() {
            _ if self.in_aggregate => "aggregate",
            Some(c) if c.in_window && !c.in_definition => "window",
            Some(c) if c.permits.sets => "",
            _ => return Err(refuse(format!("set-returning functions are not allowed in {}", self.place))),
        };
        if !inside.is_empty() {
            let message = format!("{inside} function calls cannot contain set-returning function calls");
            return Err(refuse(message).hint(sets::MOVE_TO_LATERAL));
        }
        Ok(())
    }

    /// range_agg and range_intersect_agg, of groups and of windows: a function of the array of the values.
    fn range_aggregate(&mut self, call: &Call, pos: Pos) -> Result<Bound> {
        let mut collected = call.clone();
        collected.name.parts = vec!["array_agg".to_owned()];
        let array = match &call.over {
            Some(over) => self.window_call(&collected, over, pos)?,
            None => self.aggregate(&collected, pos)?,
        };
        let ty = element_of(array.ty.oid).unwrap_or(oid::UNKNOWN);
        let kind = range_functions::kind_of(ty).ok_or_else(|| no_function(call.name.name(), &[ty], pos))?;
        let of_type = Bound::constant(Datum::Oid(ty), oid::OID, pos);
        let (function, result) = match call.name.name() {
            "range_agg" => (&range_functions::AGGREGATE, kind.multirange),
            _ => (&range_functions::COMMON, ty),
        };
        Ok(Bound { kind: BoundKind::Call { function, args: vec![array, of_type] }, ty: result.into(), pos })
    }

    fn aggregate(&mut self, call: &Call, pos: Pos) -> Result<Bound> {
        let name = call.name.name();
        if self.in_aggregate {
            return Err(nested_aggregate(pos));
        }
        self.in_aggregate = true;
        let bound = self.aggregate_parts(call, pos);
        self.in_aggregate = false;
        let mut bound = bound?.ok_or_else(|| {
            let message = format!("function {name}() does not exist");
            SqlError::new(code::UNDEFINED_FUNCTION, message).at(pos)
        })?;
        let ty = bound.ty;
        // An aggregate belongs to the nearest level whose columns it names.
        let in_subqueries = self.lowest_in_subqueries(&bound);
        let level = bound.exprs().filter_map(Bound::lowest_level).chain(in_subqueries).min().unwrap_or(0);
        if level > 0 && in_subqueries.is_some() {
            let what = "an aggregate of an outer query whose argument names that query in a subquery";
            return Err(SqlError::unsupported(what).at(pos));
        }
        if level > 0 {
            let mut scope = Some(self.scope);
            for _ in 0..level {
                scope = scope.and_then(|s| s.parent);
            }
            let Some(scope) = scope else {
                return Err(SqlError::internal("an aggregate of a level that is not there"));
            };
            let (list, first) = match (scope.aggregate_use.get(), &scope.aggregates) {
                (AggregateUse::Allowed, Some(aggregates)) => aggregates,
                (AggregateUse::Allowed, None) => return Err(no_aggregate(self.place, pos)),
                (AggregateUse::Nested, _) => return Err(nested_aggregate(pos)),
                (AggregateUse::Refused(place), _) => return Err(no_aggregate(place, pos)),
            };
            bound.exprs_mut().for_each(|e| e.lift(level));
            let index = first + add_aggregate(list, bound);
            return Ok(Bound { kind: BoundKind::Column { index, level }, ty, pos });
        }
        let Some(collected) = self.collected.as_deref().filter(|c| !c.permits.is_key) else {
            return Err(no_aggregate(self.place, pos));
        };
        let at = add_aggregate(&collected.aggregates, bound);
        Ok(Bound { kind: BoundKind::Aggregate(at), ty, pos })
    }

    /// The lowest level whose columns the subqueries of an aggregate's arguments name.
    fn lowest_in_subqueries(&self, call: &AggregateCall) -> Option<u16> {
        let subqueries = self.subqueries.as_deref()?;
        let lowest = Cell::new(None);
        for e in call.exprs() {
            e.any(&|e| {
                if let BoundKind::Subquery { id, correlated: true, .. } = e.kind {
                    lowest.set(lowest.get().into_iter().chain(subqueries.lowest_level(id)).min());
                }
                false
            });
        }
        lowest.get()
    }

    pub(super) fn aggregate_parts(&mut self, call: &Call, pos: Pos) -> Result<Option<AggregateCall>> {
        let name = call.name.name();
        let filter = match &call.filter {
            Some(f) => Some(self.bind_condition(f, "FILTER")?),
            None => None,
        };
        if call.within_group {
            return self.ordered_set(call, filter, pos).map(Some);
        }
        let mut order_by = Vec::new();
        for o in &call.order_by {
            let key = self.bind(&o.expr)?;
            order::need_order(key.ty, key.pos)?;
            order_by.push((key, o.descending, o.nulls_first.unwrap_or(o.descending)));
        }
        let mut out = AggregateCall {
            kind: aggregate::Kind::CountStar,
            args: Vec::new(),
            direct: Vec::new(),
            distinct: call.distinct,
            filter,
            order_by,
            ty: oid::INT8.into(),
        };
        if call.star {
            return Ok((name == "count").then_some(out));
        }
        let args: Vec<Bound> = call.args.iter().map(|a| self.node(a)).collect::<Result<_>>()?;
        let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
        let Some((kind, wanted, result)) = aggregate::resolve(name, &types) else {
            return Err(no_function(name, &types, pos));
        };
        if matches!(name, "json_agg" | "jsonb_agg") && types == [oid::UNKNOWN] {
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        }
        if kind.is_ordered_set() {
            let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        }
        out.kind = kind;
        out.ty = result.into();
        for (arg, t) in args.into_iter().zip(wanted) {
            out.args.push(if t == oid::UNKNOWN { self.settle(arg)? } else { self.argument(arg, t)? });
        }
        if out.distinct {
            out.args.iter().try_for_each(|arg| order::need_equality(arg.ty, arg.pos))?;
            if let Some((key, ..)) = out.order_by.iter().find(|(key, ..)| !out.args.iter().any(|arg| is_of(arg, key))) {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return Err(SqlError::new("42P10", message).at(key.pos));
            }
        }
        // PostgreSQL sorts to find what is distinct, and where the order is seen it is this one.
        let shows_order = kind.is_json() || matches!(kind, aggregate::Kind::ArrayAgg | aggregate::Kind::StringAgg);
        if out.distinct && out.order_by.is_empty() && shows_order {
            out.order_by = out.args.iter().map(|arg| (arg.clone(), false, false)).collect();
        }
        Ok(Some(out))
    }
}

/// Whether an argument is an expression, but for the cast that the function asks for.
fn is_of(arg: &Bound, e: &Bound) -> bool {
    match &arg.kind {
        BoundKind::Cast { arg: inner, explicit: false } if inner.same(e) => true,
        _ => arg.same(e),
    }
}

/// Whether a function of this name is about types that an extension has put into a schema: texts of indexes are bound without the catalog's names.
fn is_of_types_in(schema: &str, name: &str) -> bool {
    let types = functions::named(name).iter().flat_map(|f| f.args.iter().copied().chain([f.result]));
    let mut own = types.filter(|ty| extension::is_one(*ty));
    own.any(|ty| user::schema(ty).is_some_and(|s| &*s == schema))
}

/// 42883: no function of the name takes arguments of these types.
#[track_caller]
pub(super) fn no_function(name: &str, types: &[Oid], pos: Pos) -> SqlError {
    let shown: Vec<String> = types.iter().map(|t| format_type((*t).into())).collect();
    let message = format!("function {name}({}) does not exist", shown.join(", "));
    SqlError::new(code::UNDEFINED_FUNCTION, message)
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
        .at(pos)
}

/// COLLATION FOR: the collation that an expression has, as SQL writes its name.
fn collation_of(written: &Expr, value: &Bound, pos: Pos) -> Result<Bound> {
    let ty = element_of(value.ty.oid).filter(|_| value.ty.oid != oid::NAME).unwrap_or(value.ty.oid);
    if !matches!(ty, oid::UNKNOWN | oid::NAME) && crate::types::category(ty) != b'S' {
        let message = format!("collations are not supported by type {}", format_type(value.ty));
        return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
    }
    let name = match &*written.kind {
        ExprKind::Collate { collation, .. } => collation.name(),
        _ if ty == oid::NAME => "C",
        _ => "default",
    };
    Ok(Bound::constant(Datum::text(quoted(name)), oid::TEXT, pos))
}

fn no_aggregate(place: &str, pos: Pos) -> SqlError {
    SqlError::new(code::GROUPING_ERROR, format!("aggregate functions are not allowed in {place}")).at(pos)
}

fn nested_aggregate(pos: Pos) -> SqlError {
    SqlError::new(code::GROUPING_ERROR, "aggregate function calls cannot be nested").at(pos)
}
