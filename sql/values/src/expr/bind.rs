//! The binder: resolves names to columns, operators and functions to rows of the tables, and literals to values.

use super::bound::{Bound, BoundKind, SubqueryUse};
use super::collect::Collected;
use super::functions::Function;
use super::operator_table::OPERATORS;
use super::operators::Op;
pub use super::params::{Params, inconsistent};
use super::resolve::{self, Choice};
pub use super::scope::{AggregateUse, Reads, Scope, ScopeColumn};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Expr, ExprKind, Query};
use crate::types::cast::{self, Context};
use crate::types::operator;
use crate::types::order;
use crate::types::text::{self, Conversion};
use crate::types::{Datum, Oid, SqlType, category, element_of, extension, format_type, oid, user};
use clearway_base::stack;

/// Binds subqueries; the planner implements it.
pub trait Subqueries {
    /// Binds a query whose outer names resolve in `scope`; its id, the types of its columns, and whether it refers to
    /// rows of queries around it. One that may be `shared` has no column cast.
    fn bind(
        &mut self,
        query: &Query,
        scope: &Scope<'_>,
        params: &mut Params,
        shared: bool,
    ) -> Result<(usize, Vec<SqlType>, bool)>;

    /// The lowest level around the query of this id whose rows it names, 0 for the nearest.
    fn lowest_level(&self, id: usize) -> Option<u16>;

    /// Casts the columns of a query that was bound under this id.
    fn cast_columns(&mut self, id: usize, to: &[SqlType]);
}

/// Binds expressions of one place in a query.
pub struct Binder<'a> {
    /// What names mean.
    pub scope: &'a Scope<'a>,
    /// The parameters.
    pub params: &'a mut Params,
    /// Where aggregates and the like are collected; none: they are refused in `place`.
    pub collected: Option<&'a mut Collected>,
    /// What binds subqueries; none: they are refused in `place`.
    pub subqueries: Option<&'a mut dyn Subqueries>,
    /// How literals are read.
    pub conversion: Conversion<'a>,
    /// The place for errors: `WHERE`, `DEFAULT expressions`, ...
    pub place: &'static str,
    /// Whether an aggregate's arguments are being bound.
    pub in_aggregate: bool,
}

/// The places that have no subquery; the error says what one of them is.
const WITHOUT_SUBQUERIES: [&str; 6] = [
    "check constraints",
    "column generation expressions",
    "DEFAULT expressions",
    "index expressions",
    "index predicates",
    "transform expressions",
];

fn cannot_cast(from: Oid, to: Oid, pos: Pos) -> SqlError {
    let message = format!("cannot cast type {} to {}", format_type(from.into()), format_type(to.into()));
    SqlError::new(code::CANNOT_COERCE, message).at(pos)
}

impl Binder<'_> {
    /// Binds an expression; a literal of unknown type is text.
    pub fn bind(&mut self, e: &Expr) -> Result<Bound> {
        let bound = self.node(e)?;
        self.settle(bound)
    }

    /// Binds an expression to a type by assignment, as INSERT, UPDATE and DEFAULT do.
    pub fn bind_assigned(&mut self, e: &Expr, to: SqlType, column: &str) -> Result<Bound> {
        let bound = self.node(e)?;
        let (from, pos) = (bound.ty.oid, bound.pos);
        self.coerce(bound, to, Context::Assignment)?.ok_or_else(|| {
            let message = format!(
                "column \"{column}\" is of type {} but expression is of type {}",
                format_type(SqlType::new(to.oid)),
                format_type(SqlType::new(from))
            );
            SqlError::new(code::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression.")
                .at(pos)
        })
    }

    /// Binds a condition; `clause` is WHERE, HAVING, JOIN/ON, ...
    pub fn bind_condition(&mut self, e: &Expr, clause: &str) -> Result<Bound> {
        let bound = self.node(e)?;
        self.boolean(bound, clause)
    }

    pub(super) fn boolean(&mut self, bound: Bound, clause: &str) -> Result<Bound> {
        let (from, pos) = (bound.ty.oid, bound.pos);
        let bound = self.coerce(bound, oid::BOOL.into(), Context::Implicit)?.ok_or_else(|| {
            let message = format!("argument of {clause} must be type boolean, not type {}", format_type(from.into()));
            SqlError::new(code::DATATYPE_MISMATCH, message).at(pos)
        })?;
        let sets = self.collected.as_deref().is_some_and(|c| !c.sets.is_empty());
        if sets && super::sets::holds_set(&bound) {
            let message = format!("argument of {clause} must not return a set");
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(bound.leftmost()));
        }
        Ok(bound)
    }

    /// Gives an expression of unknown type the type text.
    pub fn settle(&mut self, bound: Bound) -> Result<Bound> {
        if bound.ty.oid != oid::UNKNOWN {
            return Ok(bound);
        }
        Ok(self.coerce(bound.clone(), oid::TEXT.into(), Context::Implicit)?.unwrap_or(bound))
    }

    /// The same, but a parameter stays without a type in a place that takes any.
    pub(super) fn bind_untold(&mut self, e: &Expr) -> Result<Bound> {
        let bound = self.node(e)?;
        match bound.kind {
            BoundKind::Param(n) if bound.ty.oid == oid::UNKNOWN => {
                self.params.untold.push((n, bound.pos));
                Ok(bound)
            }
            _ => self.settle(bound),
        }
    }

    /// Casts where a cast is needed and allowed; none: there is no such cast.
    pub fn coerce(&mut self, mut bound: Bound, to: SqlType, allowed: Context) -> Result<Option<Bound>> {
        let from = bound.ty.oid;
        if from == oid::UNKNOWN {
            match &bound.kind {
                // A literal that is cast to a domain is cut like one that is cast to the type below.
                BoundKind::Const(Datum::Text(_))
                    if allowed == Context::Explicit && user::base(to) != to && user::base(to).modifier >= 0 =>
                {
                    let Some(value) = self.coerce(bound, user::base(to), allowed)? else { return Ok(None) };
                    return self.coerce(value, to, allowed);
                }
                BoundKind::Const(Datum::Text(s)) => {
                    // Of intervals alone the modifier says how a constant is read.
                    let plain = if to.oid == oid::INTERVAL { to } else { SqlType::new(to.oid) };
                    // A domain's conditions are not a matter of the literal alone.
                    let placed = |e: SqlError| if e.code().starts_with("23") { e } else { e.at(bound.pos) };
                    let value = text::input(plain, s, &self.conversion).map_err(placed)?;
                    let value = cast::fit(value, to, allowed == Context::Explicit).map_err(|e| {
                        if e.code() == code::STRING_DATA_RIGHT_TRUNCATION { e } else { e.at(bound.pos) }
                    })?;
                    return Ok(Some(Bound::constant(value, to, bound.pos)));
                }
                BoundKind::Const(_) => {
                    bound.ty = user::base(to);
                    if bound.ty == to {
                        return Ok(Some(bound));
                    }
                }
                BoundKind::Param(n) => {
                    let (domain, to) = (to, user::base(to));
                    let slot = &mut self.params.types[*n as usize - 1];
                    // A client is told of the domain, as by PostgreSQL.
                    let given = *slot.get_or_insert(domain.oid);
                    if given != domain.oid {
                        return Err(inconsistent(*n, given, domain.oid).at(bound.pos));
                    }
                    bound.ty = SqlType::new(to.oid);
                    if domain != to {
                        let pos = bound.pos;
                        let kind = BoundKind::Cast { arg: Box::new(bound), explicit: allowed == Context::Explicit };
                        return Ok(Some(Bound { kind, ty: domain, pos }));
                    }
                }
                _ => {}
            }
        }
        if bound.ty == to || (bound.ty.oid == to.oid && to.modifier < 0) {
            // What is written as a type without a modifier has none, whatever it is of.
            let shed = allowed == Context::Explicit && bound.ty != to;
            return Ok(Some(match bound.kind {
                _ if !shed => bound,
                BoundKind::Column { .. } | BoundKind::Const(_) => Bound { ty: to, ..bound },
                _ => Bound { pos: bound.pos, kind: BoundKind::Cast { arg: Box::new(bound), explicit: true }, ty: to },
            }));
        }
        if bound.ty.oid != oid::UNKNOWN && !cast::can(bound.ty.oid, to.oid, allowed) {
            return Ok(None);
        }
        if bound.ty.oid == oid::RECORD
            && let Some(row) = self.row_as(&bound, to, allowed)?
        {
            return Ok(Some(row));
        }
        let pos = bound.pos;
        let explicit = allowed == Context::Explicit;
        Ok(Some(Bound { kind: BoundKind::Cast { arg: Box::new(bound), explicit }, ty: to, pos }))
    }

    /// `x::type` and CAST.
    pub(super) fn cast(&mut self, bound: Bound, to: SqlType, pos: Pos) -> Result<Bound> {
        let from = bound.ty.oid;
        let cast = self.coerce(bound, to, Context::Explicit);
        let cast = match from {
            oid::RECORD => cast.map_err(|e| if e.code() == code::CANNOT_COERCE { e.at(pos) } else { e }),
            _ => cast,
        };
        let cast = cast?.ok_or_else(|| cannot_cast(from, to.oid, pos))?;
        let below = user::base(cast.ty);
        if below == cast.ty {
            return Ok(cast);
        }
        // Checked as a value of the domain, used as one of the type below it.
        Ok(Bound { kind: BoundKind::Cast { arg: Box::new(cast), explicit: false }, ty: below, pos })
    }

    pub(super) fn param(&mut self, n: u32, pos: Pos) -> Result<Bound> {
        let i = n as usize - 1;
        if let Some(value) = self.params.values.as_ref().and_then(|values| values.get(i)) {
            return Ok(Bound { pos, ..value.clone() });
        }
        if self.params.types.len() <= i || !self.is_numbered(n) {
            if !self.params.open {
                return Err(SqlError::new(code::UNDEFINED_PARAMETER, format!("there is no parameter ${n}")).at(pos));
            }
            self.params.types.resize(i + 1, None);
        }
        let known = self.params.types[i].filter(|_| self.params.alone != Some(n));
        let ty = known.unwrap_or(oid::UNKNOWN);
        Ok(Bound { kind: BoundKind::Param(n), ty: SqlType::new(user::base(ty.into()).oid), pos })
    }

    /// A binary operator on bound operands.
    pub fn binary(&mut self, name: &str, left: Bound, right: Bound, pos: Pos) -> Result<Bound> {
        if operator::is_any()
            && let Some(found) = self.user_operator(name, &[&left, &right], pos)?
        {
            return Ok(found);
        }
        let (l, r) = (left.ty.oid, right.ty.oid);
        let (written, name) = (name, without_schema(name, &[l, r], pos)?);
        if let Some(plain) = super::bind_bytes::of_patterns(name)
            && !extension::is_one(l)
            && !extension::is_one(r)
        {
            return self.by_bytes((name, plain), left, right, pos);
        }
        let op = Op::from_name(name);
        let called = called_operators(name, 2);
        if let Some(op) = op
            && (element_of(l).is_some() || element_of(r).is_some())
            && !called.iter().any(|f| f.args == [l, r])
        {
            return self.array_operator(op, left, right, pos);
        }
        if let (Some(op), BoundKind::Row(_), BoundKind::Row(_)) = (op, &left.kind, &right.kind) {
            return self.row_comparison(op, left, right, pos);
        }
        if let Some(op) = op
            && let Some(test) = self.whole_rows(op, &left, &right, pos)?
        {
            return Ok(test);
        }
        if name == "#="
            && let Some(row) = super::hstore_record::bind(self, name, &[left.clone(), right.clone()], pos)?
        {
            return Ok(row);
        }
        let mut rows = if op.is_some() { operator_rows(name, false) } else { Vec::new() };
        // No other type becomes one of an extension by itself.
        rows.retain(|row| !extension::is_one(row.1) || extension::is_one(l) || extension::is_one(r));
        // One side unknown: the operator on two of the other side's type, if there is one.
        let assumed = match (l, r) {
            (oid::UNKNOWN, t) if t != oid::UNKNOWN => [t, t],
            (t, oid::UNKNOWN) if t != oid::UNKNOWN => [t, t],
            pair => [pair.0, pair.1],
        };
        let mut pairs: Vec<[Oid; 2]> = rows.iter().map(|row| [row.1, row.2]).collect();
        pairs.extend(called.iter().map(|f| [f.args[0], f.args[1]]));
        let exact = pairs.iter().position(|pair| *pair == assumed);
        let candidates: Vec<&[Oid]> = pairs.iter().map(|p| &p[..]).collect();
        let choice = exact.map_or_else(|| resolve::choose(&[l, r], &candidates), Choice::One);
        if let Choice::One(i) = choice
            && let Some(function) = i.checked_sub(rows.len()).map(|i| called[i])
        {
            return self.call_operator(function, vec![left, right], pos);
        }
        let (op, row) = match (choice, op) {
            (Choice::One(i), Some(op)) => (op, rows[i]),
            (Choice::Many, _) => return Err(many_operators(written, &[l, r], pos)),
            _ => return Err(no_operator(written, &[l, r], pos)),
        };
        self.computed_here(op, row, (left, right), pos)
    }

    /// An operator that the evaluator computes. It wants the operands of some rows of the table alike (EXP-1): text || any casts to text, and a date or
    /// timestamp beside a timestamptz is taken in the session's zone.
    fn computed_here(
        &mut self,
        op: Op,
        row: &(&str, Oid, Oid, Oid),
        (left, right): (Bound, Bound),
        pos: Pos,
    ) -> Result<Bound> {
        let (l, r) = (left.ty.oid, right.ty.oid);
        let to_zoned = op.is_comparison() && (row.1 == oid::TIMESTAMPTZ || row.2 == oid::TIMESTAMPTZ);
        let wanted = |t: Oid| match t {
            oid::ANYNONARRAY => oid::TEXT,
            oid::ANYENUM if category(l) == b'E' => l,
            oid::ANYENUM => r,
            oid::ANYRANGE | oid::ANYMULTIRANGE if l == oid::UNKNOWN => r,
            oid::ANYRANGE | oid::ANYMULTIRANGE => l,
            _ if to_zoned => oid::TIMESTAMPTZ,
            t => t,
        };
        let left = Box::new(self.operand(left, wanted(row.1))?);
        let right = Box::new(self.operand(right, wanted(row.2))?);
        Ok(Bound { kind: BoundKind::Binary { op, left, right }, ty: row.3.into(), pos })
    }

    /// An operator that a function computes.
    fn call_operator(&mut self, function: &'static Function, args: Vec<Bound>, pos: Pos) -> Result<Bound> {
        let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
        let (wanted, result) = resolve::solve(function.args, &types, function.result)
            .ok_or_else(|| no_operator(function.name, &types, pos))?;
        let args = args.into_iter().zip(wanted).map(|(a, t)| self.argument(a, t)).collect::<Result<_>>()?;
        Ok(Bound { kind: BoundKind::Call { function, args }, ty: result.into(), pos })
    }

    /// Casts an operand; what the chosen row takes as any type may become text by assignment.
    pub(super) fn operand(&mut self, arg: Bound, to: Oid) -> Result<Bound> {
        let (from, pos) = (arg.ty.oid, arg.pos);
        self.coerce(arg, to.into(), Context::Assignment)?.ok_or_else(|| cannot_cast(from, to, pos))
    }

    /// Casts an argument to the type that the chosen row wants.
    pub(super) fn argument(&mut self, arg: Bound, to: Oid) -> Result<Bound> {
        let (from, pos) = (arg.ty.oid, arg.pos);
        if to == resolve::ANY {
            return self.settle(arg);
        }
        self.coerce(arg, to.into(), Context::Implicit)?.ok_or_else(|| cannot_cast(from, to, pos))
    }

    fn array_operator(&mut self, op: Op, left: Bound, right: Bound, pos: Pos) -> Result<Bound> {
        let (l, r) = (left.ty.oid, right.ty.oid);
        let fail = || no_operator(op.name(), &[l, r], pos);
        let array = if element_of(l).is_some() { l } else { r };
        let element = element_of(array).unwrap_or(oid::TEXT);
        let is_set = matches!(op, Op::Contains | Op::ContainedBy | Op::Overlaps);
        if !(op.is_comparison() || is_set || op == Op::Concat) {
            return Err(fail());
        }
        let target = |t: Oid| {
            if op == Op::Concat && element_of(t).is_none() && t != oid::UNKNOWN { element } else { array }
        };
        if op != Op::Concat && !order::is_ordered(element) {
            return Err(order::no_equality(element));
        }
        let result = if op == Op::Concat { array } else { oid::BOOL };
        let left = self.coerce(left, target(l).into(), Context::Implicit)?.ok_or_else(fail)?;
        let right = self.coerce(right, target(r).into(), Context::Implicit)?.ok_or_else(fail)?;
        let kind = BoundKind::Binary { op, left: Box::new(left), right: Box::new(right) };
        Ok(Bound { kind, ty: result.into(), pos })
    }

    /// (a, b) = (c, d) and its like, field by field.
    fn row_comparison(&mut self, op: Op, left: Bound, right: Bound, pos: Pos) -> Result<Bound> {
        let (BoundKind::Row(l), BoundKind::Row(r)) = (left.kind, right.kind) else {
            return Err(SqlError::unsupported("a comparison of rows").at(pos));
        };
        if l.len() != r.len() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "unequal number of entries in row expressions").at(pos));
        }
        if l.is_empty() {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").at(pos));
        }
        if !matches!(op, Op::Eq | Op::Ne) {
            return self.row_order(op, l, r, pos);
        }
        let fields: Vec<Bound> =
            l.into_iter().zip(r).map(|(a, b)| self.binary(op.name(), a, b, pos)).collect::<Result<_>>()?;
        let kind = if op == Op::Eq { BoundKind::And(fields) } else { BoundKind::Or(fields) };
        Ok(Bound { kind, ty: oid::BOOL.into(), pos })
    }

    /// (a, b) < (c, d): a < c, or a = c and b < d. Fields are named twice, so they may not change from one look to the next.
    fn row_order(&mut self, op: Op, l: Vec<Bound>, r: Vec<Bound>, pos: Pos) -> Result<Bound> {
        let strict = match op {
            Op::Lt | Op::Le => Op::Lt,
            Op::Gt | Op::Ge => Op::Gt,
            _ => return Err(SqlError::unsupported(format!("operator {} of rows", op.name())).at(pos)),
        };
        if l.iter().chain(&r).any(Bound::is_volatile) {
            return Err(SqlError::unsupported("an ordering comparison of rows with a volatile field").at(pos));
        }
        let mut test: Option<Bound> = None;
        for (a, b) in l.into_iter().zip(r).rev() {
            let Some(rest) = test else {
                test = Some(self.binary(op.name(), a, b, pos)?);
                continue;
            };
            let beyond = self.binary(strict.name(), a.clone(), b.clone(), pos)?;
            let same = self.binary("=", a, b, pos)?;
            let node = |kind| Bound { kind, ty: oid::BOOL.into(), pos };
            test = Some(node(BoundKind::Or(vec![beyond, node(BoundKind::And(vec![same, rest]))])));
        }
        test.ok_or_else(|| SqlError::unsupported("a comparison of rows without fields").at(pos))
    }

    pub(super) fn prefix(&mut self, name: &str, arg: Bound, pos: Pos) -> Result<Bound> {
        if operator::is_any()
            && let Some(found) = self.user_operator(name, &[&arg], pos)?
        {
            return Ok(found);
        }
        let t = arg.ty.oid;
        let (written, name) = (name, without_schema(name, &[t], pos)?);
        let rows = operator_rows(name, true);
        let called = called_operators(name, 1);
        let singles: Vec<[Oid; 1]> = rows.iter().map(|row| [row.2]).chain(called.iter().map(|f| [f.args[0]])).collect();
        let candidates: Vec<&[Oid]> = singles.iter().map(|p| &p[..]).collect();
        match (resolve::choose(&[t], &candidates), Op::from_name(name)) {
            (Choice::One(i), _) if i >= rows.len() => self.call_operator(called[i - rows.len()], vec![arg], pos),
            (Choice::One(i), Some(op)) => {
                let arg = Box::new(self.argument(arg, rows[i].2)?);
                Ok(Bound { kind: BoundKind::Prefix { op, arg }, ty: rows[i].3.into(), pos })
            }
            (Choice::Many, _) => Err(many_operators(written, &[t], pos)),
            _ => Err(no_operator(written, &[t], pos)),
        }
    }

    pub(super) fn subquery(
        &mut self,
        query: &Query,
        usage: SubqueryUse,
        left: Option<Bound>,
        pos: Pos,
    ) -> Result<Bound> {
        let place = self.place;
        let refused = WITHOUT_SUBQUERIES.contains(&place);
        let Some(binder) = self.subqueries.as_deref_mut().filter(|_| !refused) else {
            let shown = if refused { &place[..place.len() - 1] } else { place };
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot use subquery in {shown}")).at(pos));
        };
        self.scope.aggregate_use.set(match self.collected.as_deref() {
            _ if self.in_aggregate => AggregateUse::Nested,
            Some(collected) if !collected.permits.is_key => AggregateUse::Allowed,
            _ => AggregateUse::Refused(place),
        });
        let shared = matches!(usage, SubqueryUse::Scalar | SubqueryUse::Array | SubqueryUse::Exists);
        let (id, columns, correlated) = binder.bind(query, self.scope, self.params, shared)?;
        if let (
            SubqueryUse::Quantified { op, .. } | SubqueryUse::Row { op },
            Some(Bound { kind: BoundKind::Row(fields), .. }),
        ) = (&usage, &left)
        {
            let args = self.row_among(*op, fields.clone(), (id, &columns), pos)?;
            return Ok(Bound { kind: BoundKind::Subquery { id, usage, args, correlated }, ty: oid::BOOL.into(), pos });
        }
        if columns.len() != 1 && !matches!(usage, SubqueryUse::Exists) {
            let message = match usage {
                SubqueryUse::Quantified { .. } => "subquery has too many columns",
                _ => "subquery must return only one column",
            };
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
        }
        let column = columns.first().copied().unwrap_or(oid::TEXT.into());
        let mut args = Vec::new();
        let ty = match usage {
            SubqueryUse::Scalar => column,
            // Arrays become one array of one more dimension.
            SubqueryUse::Array => crate::types::array_of(column.oid)
                .or_else(|| crate::types::element_of(column.oid).map(|_| column.oid))
                .ok_or_else(|| SqlError::unsupported("an array of this type").at(pos))?
                .into(),
            SubqueryUse::Row { .. } | SubqueryUse::Fields { .. } => {
                return Err(SqlError::internal("a row that is bound as one value"));
            }
            SubqueryUse::Exists => oid::BOOL.into(),
            SubqueryUse::Quantified { op, all: _ } => {
                // The comparison is bound against a stand-in for the column; both sides must come out as they are.
                let left = left.ok_or_else(|| SqlError::internal("a quantified subquery without a left side"))?;
                let stand_in = Bound::constant(Datum::Null, column, pos);
                let test = self.binary(op.name(), left, stand_in, pos)?;
                let BoundKind::Binary { op: _, left, right } = test.kind else {
                    return Err(SqlError::unsupported("a subquery that compares rows").at(pos));
                };
                if right.ty.oid != column.oid
                    && let Some(binder) = self.subqueries.as_deref_mut()
                {
                    binder.cast_columns(id, &[right.ty]);
                }
                args.push(*left);
                oid::BOOL.into()
            }
        };
        Ok(Bound { kind: BoundKind::Subquery { id, usage, args, correlated }, ty, pos })
    }

    /// Binds an expression and leaves a literal's type open.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub fn bind_unsettled(&mut self, e: &Expr) -> Result<Bound> {
        self.node(e)
    }

    /// The one node kind whose binding needs no other: a dispatcher kept apart.
    pub(crate) fn node(&mut self, e: &Expr) -> Result<Bound> {
        match &*e.kind {
            ExprKind::Column(name) => self.column(name).or_else(|missing| self.call_by_column(name, missing)),
            ExprKind::Param(n) => self.param(*n, e.pos),
            ExprKind::Call(call) => stack::deeper(|| self.call_node(call, e.pos)),
            _ => stack::deeper(|| self.other_node(e)),
        }
    }
}

/// The name of an operator without its schema: that is pg_catalog, or an extension that brings one of the operands' types has put it there.
fn without_schema<'n>(name: &'n str, operands: &[Oid], pos: Pos) -> Result<&'n str> {
    let Some((schema, own)) = name.rsplit_once('.') else { return Ok(name) };
    if schema == "pg_catalog" {
        return Ok(own);
    }
    let here = |ty: &Oid| extension::is_one(*ty) && user::schema(*ty).is_some_and(|s| &*s == schema);
    if operands.iter().any(here) { Ok(own) } else { Err(no_operator(name, operands, pos)) }
}

/// The operators of a name that functions compute.
fn called_operators(name: &str, operands: usize) -> Vec<&'static Function> {
    let fits = |f: &&&Function| f.args.len() == operands && extension::is_there(f.args, f.result);
    super::called_operators::named(name).iter().filter(fits).copied().collect()
}

fn operator_rows(name: &str, prefix: bool) -> Vec<&'static (&'static str, Oid, Oid, Oid)> {
    OPERATORS.iter().filter(|o| o.0 == name && (o.1 == 0) == prefix).collect()
}

pub(super) fn shown_operands(name: &str, types: &[Oid]) -> String {
    let shown: Vec<String> = types.iter().map(|t| format_type((*t).into())).collect();
    match shown.as_slice() {
        [l, r] => format!("{l} {name} {r}"),
        _ => format!("{name} {}", shown.join(" ")),
    }
}

pub(super) fn no_operator(name: &str, types: &[Oid], pos: Pos) -> SqlError {
    let one = if types.len() == 1 {
        "argument type. You might need to add an explicit type cast."
    } else {
        "argument types. You might need to add explicit type casts."
    };
    SqlError::new(code::UNDEFINED_FUNCTION, format!("operator does not exist: {}", shown_operands(name, types)))
        .hint(format!("No operator matches the given name and {one}"))
        .at(pos)
}

pub(super) fn many_operators(name: &str, types: &[Oid], pos: Pos) -> SqlError {
    SqlError::new(code::AMBIGUOUS_FUNCTION, format!("operator is not unique: {}", shown_operands(name, types)))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
        .at(pos)
}
