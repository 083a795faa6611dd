//! The binder for the kinds of expressions that are neither names nor calls.

use super::bind::Binder;
use super::bound::{Bound, BoundKind, SubqueryUse};
use super::geometry_subscript;
use super::operators::Op;
use super::resolve;
use super::sets;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{AnyOf, BareFunction, Call, Expr, ExprKind, Index, LikeKind, Literal, QualName, TypeName};
use crate::types::cast::Context;
use crate::types::{self, Datum, Numeric, Oid, SqlType, array_of, element_of, format_type, oid};

/// numeric(38,4)
const FOUR_DECIMALS: SqlType = SqlType { oid: oid::NUMERIC, modifier: ((38 << 16) | 4) + 4 };

fn node(kind: BoundKind, ty: Oid, pos: Pos) -> Bound {
    Bound { kind, ty: ty.into(), pos }
}

/// The type of what is one of these: with their modifier, where all have the same.
pub fn with_common_modifier<'b>(list: impl IntoIterator<Item = &'b Bound>, ty: Oid) -> SqlType {
    let mut list = list.into_iter().map(|e| e.ty);
    match list.next() {
        Some(first) if first.oid == ty && list.all(|other| other == first) => first,
        _ => ty.into(),
    }
}

/// The operator of the system of a name.
fn of_system(name: &str) -> Option<Op> {
    Op::from_name(name.strip_prefix("pg_catalog.").unwrap_or(name))
}

impl Binder<'_> {
    /// A division as MySQL has it: of whole numbers too, and with four decimals.
    fn divide_with_decimals(&mut self, left: Bound, right: Bound, pos: Pos) -> Result<Bound> {
        let whole = |ty: Oid| matches!(ty, oid::INT2 | oid::INT4 | oid::INT8);
        let left = match whole(left.ty.oid) {
            true => self.argument(left, oid::NUMERIC)?,
            false => left,
        };
        let quotient = self.binary("/", left, right, pos)?;
        if quotient.ty.oid != oid::NUMERIC {
            return Ok(quotient);
        }
        let failed = || SqlError::internal("a number can't be read");
        self.coerce(quotient, FOUR_DECIMALS, Context::Explicit)?.ok_or_else(failed)
    }

    pub(super) fn other_node(&mut self, e: &Expr) -> Result<Bound> {
        use ExprKind as K;
        let pos = e.pos;
        match &*e.kind {
            K::Column(_) | K::Param(_) | K::Call(_) => self.node(e),
            K::Literal(literal) => literal_value(literal, pos),
            K::Unary { op, arg } => self.node(arg).and_then(|arg| self.prefix(op, arg, pos)),
            K::Binary { op, left, right } => self.operation(op, left, right, pos),
            K::And(list) => self.connective(list, "AND", pos),
            K::Or(list) => self.connective(list, "OR", pos),
            K::Not(arg) => {
                let arg = self.bind_condition(arg, "NOT")?;
                Ok(node(BoundKind::Not(Box::new(arg)), oid::BOOL, pos))
            }
            K::IsNull { arg, negated } => {
                let (arg, negated) = (Box::new(self.bind_untold(arg)?), *negated);
                Ok(node(BoundKind::IsNull { arg, negated }, oid::BOOL, pos))
            }
            K::IsTruth { arg, truth, negated } => {
                let name = format!("IS {}{:?}", if *negated { "NOT " } else { "" }, truth).to_uppercase();
                let arg = Box::new(self.bind_condition(arg, &name)?);
                Ok(node(BoundKind::IsTruth { arg, truth: *truth, negated: *negated }, oid::BOOL, pos))
            }
            K::IsDistinct { left, right, negated } => {
                let (l, r) = (self.node(left)?, self.node(right)?);
                let test = self.binary("=", l, r, pos)?;
                let BoundKind::Binary { op: _, left, right } = test.kind else {
                    return self.rows_distinct(left, right, *negated, pos);
                };
                Ok(node(BoundKind::IsDistinct { left, right, negated: *negated }, oid::BOOL, pos))
            }
            K::Between { arg, low, high, negated, symmetric } => {
                self.between(arg, low, high, (*negated, *symmetric), pos)
            }
            K::InList { arg, list, negated } => self.in_list(arg, list, *negated, pos),
            K::InQuery { arg, query, negated } => {
                let left = self.node(arg)?;
                let usage = SubqueryUse::Quantified { op: Op::Eq, all: false };
                let test = self.subquery(query, usage, Some(left), pos)?;
                Ok(if *negated { node(BoundKind::Not(Box::new(test)), oid::BOOL, pos) } else { test })
            }
            K::Like { arg, pattern, escape, kind, negated } => {
                let op = match (kind, negated) {
                    (LikeKind::Like, false) => "~~",
                    (LikeKind::Like, true) => "!~~",
                    (LikeKind::ILike, false) => "~~*",
                    (LikeKind::ILike, true) => "!~~*",
                };
                let arg = self.node(arg)?;
                let pattern = match escape {
                    None => self.node(pattern)?,
                    Some(escape) => self.named("like_escape", vec![pattern.clone(), escape.clone()], pos)?,
                };
                self.binary(op, arg, pattern, pos)
            }
            K::Quantified { left, op, all, right } => self.quantified(left, op, *all, right, pos),
            K::Case { arg, whens, otherwise } => self.case(arg.as_ref(), whens, otherwise.as_ref(), pos),
            K::Coalesce(list) => {
                let (list, ty) = self.unified(list, "COALESCE")?;
                sets::refuse_in(&list, "COALESCE")?;
                let ty = with_common_modifier(&list, ty);
                Ok(Bound { kind: BoundKind::Coalesce(list), ty, pos })
            }
            K::Greatest(list) | K::Least(list) => {
                let greatest = matches!(*e.kind, K::Greatest(_));
                let (list, ty) = self.unified(list, if greatest { "GREATEST" } else { "LEAST" })?;
                if !types::order::is_ordered(ty) {
                    let message =
                        format!("could not identify a comparison function for type {}", format_type(ty.into()));
                    return Err(SqlError::new(code::UNDEFINED_FUNCTION, message));
                }
                let ty = with_common_modifier(&list, ty);
                Ok(Bound { kind: BoundKind::MinMax { list, greatest }, ty, pos })
            }
            K::NullIf(left, right) => self.null_if(left, right, pos),
            K::Cast { arg, to } => self.cast_as(arg, to, pos),
            K::Grouping(list) => self.grouping(list, pos),
            K::Bare(function) => self.bare(*function, pos),
            K::Array(items) => self.array(items, pos),
            K::ArrayQuery(query) => self.subquery(query, SubqueryUse::Array, None, pos),
            K::Exists(query) => self.subquery(query, SubqueryUse::Exists, None, pos),
            K::Subquery(query) => self.subquery(query, SubqueryUse::Scalar, None, pos),
            K::Subscript { arg, index } => self.subscript(arg, index, pos),
            K::Row(items) => self.row(items, pos),
            K::Collate { arg, collation } => self.collate(arg, collation, pos),
            K::Field { arg, name } => self.field_or_call(arg, name),
            K::AllFields(arg) => self.all_as_one(arg, pos),
            K::Default => Err(SqlError::new(code::SYNTAX_ERROR, "DEFAULT is not allowed in this context").at(pos)),
        }
    }

    fn null_if(&mut self, left: &Expr, right: &Expr, pos: Pos) -> Result<Bound> {
        let (l, r) = (self.node(left)?, self.node(right)?);
        let written = self.settle(l.clone())?;
        let test = self.binary("=", l, r, pos)?;
        let value = compared_value(&test, written);
        let ty = value.ty;
        let null = Bound::constant(Datum::Null, ty, pos);
        Ok(Bound { kind: BoundKind::Case { whens: vec![(test, null)], otherwise: Box::new(value) }, ty, pos })
    }

    fn named(&mut self, name: &str, args: Vec<Expr>, pos: Pos) -> Result<Bound> {
        self.call(&Call::new(QualName { parts: vec![name.to_owned()], pos }, args), pos)
    }

    fn connective(&mut self, list: &[Expr], name: &str, pos: Pos) -> Result<Bound> {
        let list: Vec<Bound> = list.iter().map(|e| self.bind_condition(e, name)).collect::<Result<_>>()?;
        Ok(node(if name == "AND" { BoundKind::And(list) } else { BoundKind::Or(list) }, oid::BOOL, pos))
    }

    fn between(
        &mut self,
        arg: &Expr,
        low: &Expr,
        high: &Expr,
        (negated, symmetric): (bool, bool),
        pos: Pos,
    ) -> Result<Bound> {
        let arg = self.node(arg)?;
        let (low, high) = (self.node(low)?, self.node(high)?);
        let within = |b: &mut Self, low: &Bound, high: &Bound| -> Result<Bound> {
            // A parameter has its type from the comparison before.
            let [above, low, high] = [&arg, low, high].map(|e| b.looked_at_again(e));
            let above = b.binary(">=", above?, low?, pos)?;
            let arg = b.looked_at_again(&arg)?;
            let below = b.binary("<=", arg, high?, pos)?;
            Ok(node(BoundKind::And(vec![above, below]), oid::BOOL, pos))
        };
        let mut test = within(self, &low, &high)?;
        if symmetric {
            let swapped = within(self, &high, &low)?;
            test = node(BoundKind::Or(vec![test, swapped]), oid::BOOL, pos);
        }
        Ok(if negated { node(BoundKind::Not(Box::new(test)), oid::BOOL, pos) } else { test })
    }

    fn looked_at_again(&mut self, e: &Bound) -> Result<Bound> {
        match e.kind {
            BoundKind::Param(n) if e.ty.oid == oid::UNKNOWN => self.param(n, e.pos),
            _ => Ok(e.clone()),
        }
    }

    fn in_list(&mut self, arg: &Expr, list: &[Expr], negated: bool, pos: Pos) -> Result<Bound> {
        let arg = self.node(arg)?;
        let items: Vec<Bound> = list.iter().map(|e| self.node(e)).collect::<Result<_>>()?;
        // PostgreSQL compares several items without columns in one type, and any other item by an operator of its own.
        let names_row =
            |e: &Bound| e.any(&|e| matches!(e.kind, BoundKind::Column { level: 0, .. } | BoundKind::Subquery { .. }));
        let (mut alone, mut together): (Vec<Bound>, Vec<Bound>) = items.into_iter().partition(names_row);
        let types: Vec<Oid> = std::iter::once(&arg).chain(&together).map(|b| b.ty.oid).collect();
        let common = resolve::common_type(&types).ok().filter(|_| together.len() > 1 && !types.contains(&oid::RECORD));
        let mut tests = Vec::new();
        // A list is looked through by the order of its type; an operator that a function computes is called for each item.
        let mut compares = |ty: &Oid| {
            let test = self.binary("=", with_type(&arg, *ty), with_type(&arg, *ty), pos);
            test.is_ok_and(|test| matches!(test.kind, BoundKind::Binary { .. }))
        };
        match common.filter(|ty| compares(ty)) {
            Some(common) => {
                let list = together.into_iter().map(|i| self.argument(i, common)).collect::<Result<_>>()?;
                let arg = Box::new(self.argument(arg.clone(), common)?);
                tests.push(node(BoundKind::InList { arg, list, negated: false }, oid::BOOL, pos));
            }
            None => alone.append(&mut together),
        }
        for item in alone {
            tests.push(self.binary("=", arg.clone(), item, pos)?);
        }
        let any = match tests.len() {
            1 => tests.remove(0),
            _ => node(BoundKind::Or(tests), oid::BOOL, pos),
        };
        Ok(match any.kind {
            BoundKind::InList { arg, list, .. } => node(BoundKind::InList { arg, list, negated }, oid::BOOL, pos),
            _ if negated => node(BoundKind::Not(Box::new(any)), oid::BOOL, pos),
            _ => any,
        })
    }

    fn operation(&mut self, op: &str, left: &Expr, right: &Expr, pos: Pos) -> Result<Bound> {
        let l = self.node(left)?;
        if let (BoundKind::Row(_), ExprKind::Subquery(query), Some(op)) = (&l.kind, &*right.kind, of_system(op))
            && op.is_comparison()
        {
            return self.subquery(query, SubqueryUse::Row { op }, Some(l), pos);
        }
        let r = self.node(right)?;
        if op == "/" && self.scope.decimals {
            return self.divide_with_decimals(l, r, pos);
        }
        self.binary(op, l, r, pos)
    }

    fn quantified(&mut self, left: &Expr, op: &str, all: bool, right: &AnyOf, pos: Pos) -> Result<Bound> {
        let left = self.node(left)?;
        let array = match right {
            AnyOf::Query(query) => {
                let op = of_system(op).ok_or_else(|| SqlError::unsupported(format!("operator {op}")).at(pos))?;
                return self.subquery(query, SubqueryUse::Quantified { op, all }, Some(left), pos);
            }
            AnyOf::Array(array) => self.node(array)?,
        };
        let array = if array.ty.oid == oid::UNKNOWN {
            let guess = array_of(if left.ty.oid == oid::UNKNOWN { oid::TEXT } else { left.ty.oid });
            self.argument(array, guess.unwrap_or(oid::TEXT_ARRAY))?
        } else {
            array
        };
        let Some(element) = element_of(array.ty.oid) else {
            let message = "op ANY/ALL (array) requires array on right side";
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        };
        // The operator is chosen for one element; the array is cast where the operator wants another type.
        let stand_in = Bound::constant(Datum::Null, element, pos);
        let test = self.binary(op, left, stand_in, pos)?;
        let BoundKind::Binary { op, left, right } = test.kind else {
            let called = matches!(test.kind, BoundKind::Call { .. } | BoundKind::Host { .. });
            let what =
                if called { format!("operator {op} with ANY and ALL") } else { "ANY and ALL with rows".to_owned() };
            return Err(SqlError::unsupported(what).at(pos));
        };
        let wanted = array_of(right.ty.oid).unwrap_or(array.ty.oid);
        let array = Box::new(self.argument(array, wanted)?);
        Ok(node(BoundKind::Quantified { left, op, all, array }, oid::BOOL, pos))
    }

    fn case(
        &mut self,
        arg: Option<&Expr>,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        pos: Pos,
    ) -> Result<Bound> {
        let arg = match arg {
            Some(arg) => Some(self.bind(arg)?),
            None => None,
        };
        let mut tests = Vec::new();
        let mut results = Vec::new();
        for (when, then) in whens {
            tests.push(match &arg {
                None => self.bind_condition(when, "CASE/WHEN")?,
                Some(arg) => {
                    let value = self.node(when)?;
                    self.binary("=", arg.clone(), value, when.pos)?
                }
            });
            results.push(self.node(then)?);
        }
        results.push(match otherwise {
            Some(e) => self.node(e)?,
            None => Bound::constant(Datum::Null, oid::UNKNOWN, pos),
        });
        // PostgreSQL looks at ELSE first.
        results.rotate_right(1);
        let (mut results, ty) = self.unify(results, "CASE")?;
        sets::refuse_in(tests.iter().chain(&results), "CASE")?;
        let ty = with_common_modifier(&results, ty);
        let otherwise = Box::new(results.remove(0));
        let whens = tests.into_iter().zip(results).collect();
        Ok(Bound { kind: BoundKind::Case { whens, otherwise }, ty, pos })
    }

    fn unified(&mut self, list: &[Expr], what: &str) -> Result<(Vec<Bound>, Oid)> {
        let list: Vec<Bound> = list.iter().map(|e| self.node(e)).collect::<Result<_>>()?;
        self.unify(list, what)
    }

    /// Casts all to their common type; `what` names the construct for errors.
    pub fn unify(&mut self, list: Vec<Bound>, what: &str) -> Result<(Vec<Bound>, Oid)> {
        let types: Vec<Oid> = list.iter().map(|b| b.ty.oid).collect();
        let common = resolve::common_type(&types).map_err(|(a, b)| {
            let message =
                format!("{what} types {} and {} cannot be matched", format_type(a.into()), format_type(b.into()));
            let at = list.iter().find(|e| e.ty.oid == b).map_or(0, |e| e.pos);
            SqlError::new(code::DATATYPE_MISMATCH, message).at(at)
        })?;
        let list = list.into_iter().map(|b| self.argument(b, common)).collect::<Result<_>>()?;
        Ok((list, common))
    }

    fn array(&mut self, items: &[Expr], pos: Pos) -> Result<Bound> {
        if items.is_empty() {
            return Err(SqlError::new(code::INDETERMINATE_DATATYPE, "cannot determine type of empty array")
                .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                .at(pos));
        }
        let (items, ty) = self.unified(items, "ARRAY")?;
        let array = if element_of(ty).is_some() { Some(ty) } else { array_of(ty) };
        let array = array.ok_or_else(|| {
            let message = format!("could not find array type for data type {}", format_type(ty.into()));
            SqlError::new(code::UNDEFINED_OBJECT, message).at(pos)
        })?;
        let modifier = with_common_modifier(&items, ty).modifier;
        Ok(Bound { kind: BoundKind::Array(items), ty: SqlType { oid: array, modifier }, pos })
    }

    /// `x::type`.
    fn cast_as(&mut self, arg: &Expr, to: &TypeName, pos: Pos) -> Result<Bound> {
        if to.name.parts == ["anyarray"] {
            return self.any_array(arg, pos);
        }
        let to = types::resolve(to)?;
        if let (ExprKind::Array(items), Some(element)) = (&*arg.kind, element_of(to.oid)) {
            return self.typed_array(items, SqlType { oid: element, modifier: to.modifier }, to, arg.pos);
        }
        let arg = self.node(arg)?;
        self.cast(arg, to, pos)
    }

    /// `x::anyarray` is an array as it is: no value has that type itself.
    fn any_array(&mut self, arg: &Expr, pos: Pos) -> Result<Bound> {
        let arg = self.node(arg)?;
        if element_of(arg.ty.oid).is_some() {
            return Ok(arg);
        }
        if arg.ty.oid == oid::UNKNOWN {
            let message = "cannot accept a value of type anyarray";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(arg.pos));
        }
        let message = format!("cannot cast type {} to anyarray", format_type(arg.ty.oid.into()));
        Err(SqlError::new(code::CANNOT_COERCE, message).at(pos))
    }

    /// ARRAY[...]::type[]: each element is cast by itself.
    fn typed_array(&mut self, items: &[Expr], element: SqlType, to: SqlType, pos: Pos) -> Result<Bound> {
        let mut bound = Vec::new();
        for item in items {
            bound.push(match &*item.kind {
                ExprKind::Array(inner) => {
                    clearway_base::stack::deeper(|| self.typed_array(inner, element, to, item.pos))?
                }
                _ => self.node(item)?,
            });
        }
        // Beside an array each element is one, which a constant does not say of itself.
        let target = if bound.iter().any(|b| element_of(b.ty.oid).is_some()) { to } else { element };
        let cast = |(b, item): (Bound, &Expr)| self.cast(b, target, item.pos);
        let out = bound.into_iter().zip(items).map(cast).collect::<Result<_>>()?;
        Ok(Bound { kind: BoundKind::Array(out), ty: to, pos })
    }

    fn subscript(&mut self, arg: &Expr, index: &[Index], pos: Pos) -> Result<Bound> {
        let arg = self.bind(arg)?;
        if arg.ty.oid == oid::JSONB {
            return self.json_subscript(arg, index, pos);
        }
        if arg.ty.oid == oid::HSTORE {
            return self.hstore_subscript(arg, index, pos);
        }
        if let (oid::NAME, [Index::At(at)]) = (arg.ty.oid, index) {
            return self.byte_of_name(arg, at, pos);
        }
        if let Some(part) = geometry_subscript::part_type(arg.ty.oid) {
            return self.geometry_part(arg, part, index, pos);
        }
        let Some(element) = element_of(arg.ty.oid) else {
            let message =
                format!("cannot subscript type {} because it does not support subscripting", format_type(arg.ty));
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(arg.pos));
        };
        if index.iter().any(|i| matches!(i, Index::Slice(..))) {
            let (ty, bounds) = (arg.ty, self.slice_bounds(index)?);
            return Ok(Bound { kind: BoundKind::Slice { arg: Box::new(arg), bounds }, ty, pos });
        }
        let mut out = Vec::new();
        for i in index {
            if let Index::At(e) = i {
                out.push(self.array_index(e)?);
            }
        }
        let ty = SqlType { oid: element, modifier: arg.ty.modifier };
        Ok(Bound { kind: BoundKind::Subscript { arg: Box::new(arg), index: out }, ty, pos })
    }

    /// A name is also an array of "char" that counts from 0.
    fn byte_of_name(&mut self, name: Bound, at: &Expr, pos: Pos) -> Result<Bound> {
        let at = self.array_index(at)?;
        let (one, text) = (Bound::constant(Datum::Int4(1), oid::INT4, pos), self.cast(name, oid::TEXT.into(), pos)?);
        let from = self.binary("+", at, one.clone(), pos)?;
        let found = self.scalar_call("substr", vec![text, from, one], &[oid::TEXT, oid::INT4, oid::INT4], pos)?;
        let found = found.ok_or_else(|| SqlError::internal("substr is not known"))?;
        self.cast(found, oid::CHAR.into(), pos)
    }

    /// One subscript of an array.
    pub fn array_index(&mut self, e: &Expr) -> Result<Bound> {
        let bound = self.node(e)?;
        let at = bound.pos;
        self.coerce(bound, oid::INT4.into(), Context::Assignment)?
            .ok_or_else(|| SqlError::new(code::DATATYPE_MISMATCH, "array subscript must have type integer").at(at))
    }

    /// The bounds of a slice by twos; where one subscript is a slice, a single one means from 1 up to it.
    pub fn slice_bounds(&mut self, index: &[Index]) -> Result<Vec<Bound>> {
        let left_out = || Bound::constant(Datum::Null, oid::UNKNOWN, 0);
        let mut bounds = Vec::new();
        for i in index {
            match i {
                Index::At(e) => {
                    bounds.push(Bound::constant(Datum::Int4(1), oid::INT4, e.pos));
                    bounds.push(self.array_index(e)?);
                }
                Index::Field(..) => return Err(SqlError::internal("a field among the bounds of a slice")),
                Index::Slice(low, high) => {
                    for side in [low, high] {
                        bounds.push(match side {
                            Some(e) => self.array_index(e)?,
                            None => left_out(),
                        });
                    }
                }
            }
        }
        Ok(bounds)
    }

    fn json_subscript(&mut self, arg: Bound, index: &[Index], pos: Pos) -> Result<Bound> {
        let mut args = vec![arg];
        for i in index {
            let Index::At(e) = i else {
                return Err(SqlError::new(code::DATATYPE_MISMATCH, "jsonb subscript does not support slices").at(pos));
            };
            args.push(self.json_key(e)?);
        }
        Ok(node(BoundKind::Call { function: &super::json_functions::SUBSCRIPT, args }, oid::JSONB, pos))
    }

    fn hstore_subscript(&mut self, arg: Bound, index: &[Index], pos: Pos) -> Result<Bound> {
        let key = self.hstore_key(index)?;
        let kind = BoundKind::Call { function: &super::hstore_functions::SUBSCRIPT, args: vec![arg, key] };
        Ok(node(kind, oid::TEXT, pos))
    }

    /// The one subscript that an hstore takes.
    pub fn hstore_key(&mut self, index: &[Index]) -> Result<Bound> {
        let [Index::At(e)] = index else {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "hstore allows only one subscript"));
        };
        let key = self.bind(e)?;
        let at = key.pos;
        self.coerce(key, oid::TEXT.into(), Context::Assignment)?
            .ok_or_else(|| SqlError::new(code::DATATYPE_MISMATCH, "hstore subscript must have type text").at(at))
    }

    /// One subscript of a document: an integer or a text.
    pub fn json_key(&mut self, e: &Expr) -> Result<Bound> {
        let key = self.bind(e)?;
        let (ty, at) = (key.ty.oid, key.pos);
        for wanted in [oid::INT4, oid::TEXT] {
            if ty == wanted
                || types::cast::can(ty, wanted, Context::Implicit) && (wanted == oid::TEXT || ty != oid::TEXT)
            {
                return self.argument(key, wanted);
            }
        }
        let message = format!("subscript type {} is not supported", format_type(ty.into()));
        Err(SqlError::new(code::DATATYPE_MISMATCH, message)
            .hint("jsonb subscript must be coercible to either integer or text.")
            .at(at))
    }

    fn collate(&mut self, arg: &Expr, collation: &QualName, pos: Pos) -> Result<Bound> {
        match collation.name() {
            "C" | "POSIX" | "default" | "C.UTF-8" | "C.utf8" | "ucs_basic" => {}
            other => return Err(SqlError::unsupported(format!("collation \"{other}\"")).at(pos)),
        }
        let arg = self.bind(arg)?;
        if types::category(arg.ty.oid) != b'S' {
            let message = format!("collations are not supported by type {}", format_type(arg.ty));
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(pos));
        }
        Ok(arg)
    }

    fn bare(&mut self, function: BareFunction, pos: Pos) -> Result<Bound> {
        let (name, to) = match function {
            BareFunction::CurrentDate => ("now", SqlType::new(oid::DATE)),
            BareFunction::CurrentTimestamp(p) => {
                ("now", SqlType { oid: oid::TIMESTAMPTZ, modifier: p.map_or(-1, |p| p.min(6)) })
            }
            BareFunction::LocalTimestamp(p) => {
                ("now", SqlType { oid: oid::TIMESTAMP, modifier: p.map_or(-1, |p| p.min(6)) })
            }
            BareFunction::CurrentTime(p) => ("now", SqlType { oid: oid::TIMETZ, modifier: p.map_or(-1, |p| p.min(6)) }),
            BareFunction::LocalTime(p) => ("now", SqlType { oid: oid::TIME, modifier: p.map_or(-1, |p| p.min(6)) }),
            BareFunction::CurrentUser | BareFunction::CurrentRole | BareFunction::User => {
                ("current_user", SqlType::new(oid::NAME))
            }
            BareFunction::SessionUser => ("session_user", SqlType::new(oid::NAME)),
            BareFunction::CurrentCatalog => ("current_database", SqlType::new(oid::NAME)),
            BareFunction::CurrentSchema => ("current_schema", SqlType::new(oid::NAME)),
        };
        let value = self.named(name, Vec::new(), pos)?;
        self.cast(value, to, pos)
    }
}

/// What NULLIF gives where its sides differ: its first side as the operator takes it, so a varchar is a text and an integer beside a numeric a numeric.
/// PostgreSQL compares a date with a timestamp with time zone as they are.
fn compared_value(test: &Bound, written: Bound) -> Bound {
    match &test.kind {
        BoundKind::Binary { left, .. } if !matches!(written.ty.oid, oid::DATE | oid::TIMESTAMP) => (**left).clone(),
        _ => written,
    }
}

fn with_type(like: &Bound, ty: Oid) -> Bound {
    Bound::constant(Datum::Null, ty, like.pos)
}

/// A constant; numbers take the smallest of integer, bigint and numeric that holds them.
fn literal_value(literal: &Literal, pos: Pos) -> Result<Bound> {
    Ok(match literal {
        Literal::Null => Bound::constant(Datum::Null, oid::UNKNOWN, pos),
        Literal::Bool(b) => Bound::constant(Datum::Bool(*b), oid::BOOL, pos),
        Literal::Int(n) => match i32::try_from(*n) {
            Ok(n) => Bound::constant(Datum::Int4(n), oid::INT4, pos),
            Err(_) => Bound::constant(Datum::Int8(*n), oid::INT8, pos),
        },
        Literal::Number(text) => {
            let n = Numeric::parse(text).unwrap_or_else(|| Err(types::text::invalid("numeric", text)));
            Bound::constant(Datum::numeric(n.map_err(|e| e.at(pos))?), oid::NUMERIC, pos)
        }
        Literal::Str(s) => Bound::constant(Datum::text(s.as_str()), oid::UNKNOWN, pos),
    })
}
