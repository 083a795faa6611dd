//! The evaluator: walks the bound tree. Integers and booleans are computed without allocation.

use super::bound::{Bound, BoundKind};
use super::functions::Function;
use super::host::{Host, Session};
use super::long_array;
use super::operators::{self, Op};
use crate::error::{Result, SqlError, code};
use crate::syntax::ast::Truth;
use crate::types::datum::{Array, Record, RowShape, compare};
use crate::types::{Datum, Oid, cast, element_of, oid, size};
use clearway_base::{breath, memory, stack};
use std::future::Future;
use std::pin::Pin;

/// What an expression is evaluated against.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The row; `Column { level: 0 }` indexes it.
    pub row: &'a [Datum],
    /// The rows of enclosing queries, nearest first.
    pub outer: &'a [&'a [Datum]],
    /// The parameters.
    pub params: &'a [Datum],
    /// The values of the query's aggregates.
    pub aggregates: &'a [Datum],
    /// The session.
    pub session: &'a dyn Session,
}

fn slot(values: &[Datum], n: usize) -> Result<Datum> {
    values.get(n).cloned().ok_or_else(|| SqlError::internal("an expression names a slot that its row lacks"))
}

/// Evaluates an expression that can't wait (EXP-2).
pub fn eval(e: &Bound, env: &Env<'_>) -> Result<Datum> {
    use BoundKind as K;
    match &e.kind {
        K::Const(v) => Ok(v.clone()),
        K::Column { index, level: 0 } => slot(env.row, *index),
        K::Column { index, level } => slot(env.outer.get(*level as usize - 1).copied().unwrap_or(&[]), *index),
        K::Param(n) => slot(env.params, (*n as usize).wrapping_sub(1)),
        K::Aggregate(n) => slot(env.aggregates, *n),
        K::Cast { arg, .. } if cast::keeps_values(arg.ty, e.ty) => stack::deeper(|| eval(arg, env)),
        K::Binary { op, left, right } => {
            // Nothing below: no room on the stack has to be asked for.
            if let (Some(l), Some(r)) = (standing(left, env), standing(right, env))
                && !l.is_null()
                && !r.is_null()
            {
                return operators::binary(*op, l, r, env.session);
            }
            stack::deeper(|| eval_below(e, env))
        }
        _ => stack::deeper(|| eval_below(e, env)),
    }
}

/// The value of an operand that stands somewhere.
#[inline]
fn standing<'a>(e: &'a Bound, env: &Env<'a>) -> Option<&'a Datum> {
    match &e.kind {
        BoundKind::Const(v) => Some(v),
        BoundKind::Column { index, level: 0 } => env.row.get(*index),
        BoundKind::Param(n) => env.params.get((*n as usize).wrapping_sub(1)),
        BoundKind::Aggregate(n) => env.aggregates.get(*n),
        BoundKind::Cast { arg, .. } if cast::keeps_values(arg.ty, e.ty) => match &arg.kind {
            BoundKind::Column { index, level: 0 } => env.row.get(*index),
            _ => None,
        },
        _ => None,
    }
}

/// The value of an operand where it stands, or in `place` if it must be computed: a copy of a shared value costs a counted reference.
#[inline]
fn operand<'a>(e: &'a Bound, env: &Env<'a>, place: &'a mut Datum) -> Result<&'a Datum> {
    match standing(e, env) {
        Some(value) => Ok(value),
        None => {
            *place = eval(e, env)?;
            Ok(place)
        }
    }
}

fn eval_below(e: &Bound, env: &Env<'_>) -> Result<Datum> {
    use BoundKind as K;
    match &e.kind {
        K::Binary { op, left, right } => {
            let (mut l_place, mut r_place) = (Datum::Null, Datum::Null);
            let (l, r) = (operand(left, env, &mut l_place)?, operand(right, env, &mut r_place)?);
            if l.is_null() || r.is_null() {
                if *op == Op::Concat && matches!(e.ty.oid, t if element_of(t).is_some()) {
                    return concat_null(l.clone(), r.clone(), left, right);
                }
                return Ok(Datum::Null);
            }
            operators::binary(*op, l, r, env.session)
        }
        K::Prefix { op, arg } => match eval(arg, env)? {
            Datum::Null => Ok(Datum::Null),
            v => operators::prefix(*op, &v),
        },
        K::And(list) => connective(list, env, false),
        K::Or(list) => connective(list, env, true),
        K::Not(arg) => Ok(eval(arg, env)?.as_bool().map_or(Datum::Null, |b| Datum::Bool(!b))),
        K::IsNull { arg, negated } => {
            let mut place = Datum::Null;
            Ok(Datum::Bool(is_null(operand(arg, env, &mut place)?, *negated)))
        }
        K::IsTruth { arg, truth, negated } => {
            let holds = is_truth(eval(arg, env)?.as_bool(), *truth);
            Ok(Datum::Bool(holds != *negated))
        }
        K::IsDistinct { left, right, negated } => {
            let same = eval(left, env)? == eval(right, env)?;
            Ok(Datum::Bool(same == *negated))
        }
        K::InList { arg, list, negated } => in_list(arg, list, *negated, env),
        K::Quantified { left, op, all, array } => {
            let (mut l_place, mut a_place) = (Datum::Null, Datum::Null);
            let (l, a) = (operand(left, env, &mut l_place)?, operand(array, env, &mut a_place)?);
            quantified(l, *op, *all, a, env.session)
        }
        K::Case { whens, otherwise } => case(whens, otherwise, env),
        K::Coalesce(list) => coalesce(list, env),
        K::MinMax { list, greatest } => min_max(list, *greatest, env),
        K::Cast { arg, explicit } => {
            let v = eval(arg, env)?;
            cast::convert(v, arg.ty, e.ty, *explicit, &env.session.conversion())
        }
        K::Call { function, args } => Ok(of_type(called(function, args, env)?, function, e.ty.oid)),
        K::Array(items) => build_array(items.iter().map(|i| eval(i, env)).collect::<Result<_>>()?, e),
        K::Subscript { arg, index } => {
            let array = eval(arg, env)?;
            let index: Vec<Datum> = index.iter().map(|i| eval(i, env)).collect::<Result<_>>()?;
            Ok(element(&array, &index))
        }
        K::Row(_) | K::Record { .. } | K::Spread { .. } | K::Slice { .. } => composite(e, env),
        K::Unplaced(_) => Err(SqlError::internal("an expression that was not planned to its end")),
        K::Host { .. } | K::Subquery { .. } => {
            Err(SqlError::internal("an expression that can wait was evaluated in place (EXP-2)"))
        }
        K::Const(_) | K::Column { .. } | K::Param(_) | K::Aggregate(_) => {
            Err(SqlError::internal("a value without parts has parts"))
        }
    }
}

fn called(function: &Function, args: &[Bound], env: &Env<'_>) -> Result<Datum> {
    // Few arguments need no list on the heap.
    match args {
        [a] => call_plain(function, &[eval(a, env)?], env),
        [a, b] => call_plain(function, &[eval(a, env)?, eval(b, env)?], env),
        [a, b, c] => call_plain(function, &[eval(a, env)?, eval(b, env)?, eval(c, env)?], env),
        _ => call_plain(function, &args.iter().map(|a| eval(a, env)).collect::<Result<Vec<_>>>()?, env),
    }
}

/// What a function gave, of the type that the call has. A function that makes an array knows its values alone, and a null, a text or a word
/// has no type by itself; a stored array that names another type of elements than its column can't be read any more.
fn of_type(value: Datum, function: &Function, ty: Oid) -> Datum {
    match value {
        Datum::Array(array) if matches!(function.result, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY) => {
            match element_of(ty) {
                Some(element) if element != array.element => Datum::Array(Array { element, ..(*array).clone() }.into()),
                _ => Datum::Array(array),
            }
        }
        value => value,
    }
}

/// Rows, slices, and calls whose last argument is spread.
fn composite(e: &Bound, env: &Env<'_>) -> Result<Datum> {
    use BoundKind as K;
    match &e.kind {
        K::Row(items) => {
            let values: Vec<Datum> = items.iter().map(|i| eval(i, env)).collect::<Result<_>>()?;
            let types = items.iter().map(|i| i.ty).collect();
            let shape = RowShape { oid: oid::RECORD, names: None, types }.into();
            Ok(Datum::Row(Record::new(shape, values)?.into()))
        }
        K::Record { absent: Some(absent), .. } if eval(absent, env)?.as_bool() == Some(true) => Ok(Datum::Null),
        K::Record { items, shape, .. } => {
            let values: Vec<Datum> = items.iter().map(|i| eval(i, env)).collect::<Result<_>>()?;
            Ok(Datum::Row(Record::new(shape.clone(), values)?.into()))
        }
        K::Spread { function, args } => {
            let mut values: Vec<Datum> = args.iter().map(|a| eval(a, env)).collect::<Result<_>>()?;
            match values.pop() {
                Some(Datum::Array(array)) => values.extend(array.values.iter().cloned()),
                // format() takes no array as one without elements; others have no value then.
                _ if function.name == "format" => {}
                _ => return Ok(Datum::Null),
            }
            if function.strict && values.iter().take(function.args.len() - 1).any(Datum::is_null) {
                return Ok(Datum::Null);
            }
            call(function, &values, env)
        }
        K::Slice { arg, bounds } => {
            let array = eval(arg, env)?;
            let mut given = Vec::new();
            for bound in bounds {
                given.push(match &bound.kind {
                    K::Const(Datum::Null) if bound.ty.oid == oid::UNKNOWN => None,
                    _ => Some(eval(bound, env)?),
                });
            }
            super::array_parts::slice(&array, &given)
        }
        _ => Err(SqlError::internal("an expression of another kind was taken for a composite one")),
    }
}

fn call_plain(function: &Function, values: &[Datum], env: &Env<'_>) -> Result<Datum> {
    if function.strict && values.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    call(function, values, env)
}

/// Most functions make a copy of an argument or two; those that make more claim it themselves.
fn call(function: &Function, values: &[Datum], env: &Env<'_>) -> Result<Datum> {
    memory::claim(2 * values.iter().map(Datum::heap_bytes).sum::<usize>())?;
    (function.body)(values, env)
}

fn case(whens: &[(Bound, Bound)], otherwise: &Bound, env: &Env<'_>) -> Result<Datum> {
    for (when, then) in whens {
        if eval(when, env)?.as_bool() == Some(true) {
            return eval(then, env);
        }
    }
    eval(otherwise, env)
}

fn coalesce(list: &[Bound], env: &Env<'_>) -> Result<Datum> {
    for item in list {
        let v = eval(item, env)?;
        if !v.is_null() {
            return Ok(v);
        }
    }
    Ok(Datum::Null)
}

fn is_truth(v: Option<bool>, truth: Truth) -> bool {
    match truth {
        Truth::True => v == Some(true),
        Truth::False => v == Some(false),
        Truth::Unknown => v.is_none(),
    }
}

/// `row IS NULL` asks for all fields, `row IS NOT NULL` too.
fn is_null(v: &Datum, negated: bool) -> bool {
    match v {
        Datum::Row(row) => row.values.iter().all(|f| f.is_null() != negated),
        v => v.is_null() != negated,
    }
}

/// AND (`decisive` false) and OR (true) of three-valued logic.
fn connective(list: &[Bound], env: &Env<'_>, decisive: bool) -> Result<Datum> {
    let mut unknown = false;
    for item in list {
        match eval(item, env)?.as_bool() {
            Some(v) if v == decisive => return Ok(Datum::Bool(decisive)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!decisive) })
}

fn in_list(arg: &Bound, list: &[Bound], negated: bool, env: &Env<'_>) -> Result<Datum> {
    let mut place = Datum::Null;
    let v = operand(arg, env, &mut place)?;
    if v.is_null() {
        return Ok(Datum::Null);
    }
    let mut unknown = false;
    for item in list {
        breath::step(16)?;
        let mut place = Datum::Null;
        match operand(item, env, &mut place)? {
            Datum::Null => unknown = true,
            x if compare(v, x).is_eq() => return Ok(Datum::Bool(!negated)),
            _ => {}
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(negated) })
}

/// `left op ANY/ALL (values)` over the elements of an array.
pub fn quantified(left: &Datum, op: Op, all: bool, array: &Datum, session: &dyn Session) -> Result<Datum> {
    let Datum::Array(array) = array else {
        return Ok(Datum::Null);
    };
    let sought = matches!((op, all), (Op::Eq, false) | (Op::Ne, true)) && !left.is_null();
    if sought && let Some((is_in, has_null)) = long_array::look_up(array, left)? {
        return Ok(match (is_in, has_null) {
            (true, _) => Datum::Bool(!all),
            (false, true) => Datum::Null,
            (false, false) => Datum::Bool(all),
        });
    }
    let mut unknown = false;
    for item in &array.values {
        breath::step(16)?;
        if left.is_null() || item.is_null() {
            unknown = true;
            continue;
        }
        if operators::binary(op, left, item, session)?.as_bool() == Some(!all) {
            return Ok(Datum::Bool(!all));
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}

fn min_max(list: &[Bound], greatest: bool, env: &Env<'_>) -> Result<Datum> {
    let mut best = Datum::Null;
    for item in list {
        let v = eval(item, env)?;
        if v.is_null() {
            continue;
        }
        if best.is_null() || compare(&v, &best).is_gt() == greatest && compare(&v, &best).is_ne() {
            best = v;
        }
    }
    Ok(best)
}

/// array || NULL keeps the array; an element that is NULL is appended.
fn concat_null(l: Datum, r: Datum, left: &Bound, right: &Bound) -> Result<Datum> {
    let (l_array, r_array) = (element_of(left.ty.oid).is_some(), element_of(right.ty.oid).is_some());
    match (l_array, r_array, l, r) {
        (true, true, Datum::Null, other) | (true, true, other, Datum::Null) => Ok(other),
        (true, false, Datum::Null, item) | (false, true, item, Datum::Null) => {
            let element = if l_array { left } else { right };
            let oid = element_of(element.ty.oid).unwrap_or(0);
            Ok(Datum::Array(Array::one_dimensional(oid, vec![item]).into()))
        }
        (true, false, Datum::Array(a), item) | (false, true, item, Datum::Array(a)) => {
            let mut values = a.values.clone();
            values.insert(if l_array { values.len() } else { 0 }, item);
            size::array(Array::one_dimensional(a.element, values))
        }
        _ => Ok(Datum::Null),
    }
}

fn build_array(values: Vec<Datum>, e: &Bound) -> Result<Datum> {
    memory::check()?;
    let element = element_of(e.ty.oid).unwrap_or(0);
    let inner = values.iter().any(|v| matches!(v, Datum::Array(_)));
    if !inner {
        return size::array(Array::one_dimensional(element, values));
    }
    let mismatch = || {
        SqlError::new(
            code::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    let mut dims: Option<Vec<(i32, i32)>> = None;
    let mut flat = Vec::new();
    let count = values.len() as i32;
    for v in values {
        let Datum::Array(a) = v else {
            return Err(mismatch());
        };
        if dims.get_or_insert_with(|| a.dims.clone()) != &a.dims {
            return Err(mismatch());
        }
        flat.extend(a.values.iter().cloned());
    }
    let mut all = vec![(count, 1)];
    all.extend(dims.unwrap_or_default());
    if flat.is_empty() {
        all.clear();
    }
    size::array(Array { element, dims: all, values: flat })
}

fn element(array: &Datum, index: &[Datum]) -> Datum {
    let Datum::Array(a) = array else {
        return Datum::Null;
    };
    // int2vector and oidvector count from 0 in SQL.
    if index.len() != a.dims.len() {
        return Datum::Null;
    }
    let mut at: usize = 0;
    for (i, (len, low)) in index.iter().zip(&a.dims) {
        let Some(n) = i.as_i64().map(|n| n - i64::from(*low)).filter(|n| (0..i64::from(*len)).contains(n)) else {
            return Datum::Null;
        };
        at = at * *len as usize + n as usize;
    }
    a.values.get(at).cloned().unwrap_or(Datum::Null)
}

/// Evaluates any expression; host calls and subqueries are awaited in order, conditions decide first.
pub fn eval_async<'a>(
    e: &'a Bound,
    env: Env<'a>,
    host: &'a dyn HostSync,
) -> Pin<Box<dyn Future<Output = Result<Datum>> + Send + 'a>> {
    Box::pin(stack::deeper_polls(async move {
        use BoundKind as K;
        if !e.may_wait() {
            return eval(e, &env);
        }
        match &e.kind {
            K::And(list) | K::Or(list) => {
                let decisive = matches!(e.kind, K::Or(_));
                let mut unknown = false;
                for item in list {
                    match eval_async(item, env, host).await?.as_bool() {
                        Some(v) if v == decisive => return Ok(Datum::Bool(decisive)),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                Ok(if unknown { Datum::Null } else { Datum::Bool(!decisive) })
            }
            K::Case { whens, otherwise } => {
                for (when, then) in whens {
                    if eval_async(when, env, host).await?.as_bool() == Some(true) {
                        return eval_async(then, env, host).await;
                    }
                }
                eval_async(otherwise, env, host).await
            }
            K::Coalesce(list) => {
                for item in list {
                    let v = eval_async(item, env, host).await?;
                    if !v.is_null() {
                        return Ok(v);
                    }
                }
                Ok(Datum::Null)
            }
            _ => {
                let mut values = Vec::new();
                for child in e.children() {
                    values.push(eval_async(child, env, host).await?);
                }
                match &e.kind {
                    K::Host { function, .. } => {
                        let strict = super::host::HOST_FUNCTIONS.iter().any(|h| h.0 == *function && h.4);
                        if strict && values.iter().any(Datum::is_null) {
                            return Ok(Datum::Null);
                        }
                        host.call(*function, values).await
                    }
                    K::Subquery { id, usage, .. } => host.subquery(*id, usage, values, env.row).await,
                    _ => {
                        let mut copy = e.clone();
                        for (child, value) in copy.children_mut().into_iter().zip(values) {
                            child.kind = K::Const(value);
                        }
                        eval(&copy, &env)
                    }
                }
            }
        }
    }))
}

/// A host that may be shared between threads.
pub trait HostSync: Host + Send + Sync {}
impl<T: Host + Send + Sync> HostSync for T {}

/// The type of a value by itself: that of the elements of an array that is made of it.
pub(super) fn element_type(value: &Datum) -> Oid {
    match value {
        Datum::Null | Datum::Text(_) | Datum::Void => oid::TEXT,
        Datum::Bool(_) => oid::BOOL,
        Datum::Int2(_) => oid::INT2,
        Datum::Int4(_) => oid::INT4,
        Datum::Int8(_) => oid::INT8,
        Datum::Float4(_) => oid::FLOAT4,
        Datum::Float8(_) => oid::FLOAT8,
        Datum::Oid(_) => oid::OID,
        Datum::Numeric(_) => oid::NUMERIC,
        Datum::Bytea(_) => oid::BYTEA,
        Datum::Date(_) => oid::DATE,
        Datum::Timestamp(_) => oid::TIMESTAMP,
        Datum::TimestampTz(_) => oid::TIMESTAMPTZ,
        Datum::Interval(_) => oid::INTERVAL,
        Datum::Array(a) => a.element,
        Datum::Row(r) => r.shape.oid,
        Datum::Bpchar(_) => oid::BPCHAR,
        Datum::Uuid(_) => oid::UUID,
        Datum::Lsn(_) => oid::PG_LSN,
        Datum::Word(_, ty) => *ty,
        Datum::Time(_) => oid::TIME,
        Datum::TimeTz(..) => oid::TIMETZ,
        Datum::Json(_) => oid::JSON,
        Datum::Jsonb(_) => oid::JSONB,
        Datum::JsonPath(_) => oid::JSONPATH,
        Datum::Enum(e) => e.ty,
        Datum::Bits(_) => oid::VARBIT,
        Datum::Range(r) => r.kind.range,
        Datum::Multirange(m) => m.kind.multirange,
        Datum::Citext(_) => oid::CITEXT,
        Datum::Hstore(_) => oid::HSTORE,
        Datum::Geometry(g) => g.ty(),
        Datum::Inet(_, cidr) => {
            if *cidr {
                oid::CIDR
            } else {
                oid::INET
            }
        }
    }
}
