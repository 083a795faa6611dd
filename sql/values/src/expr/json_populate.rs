//! Turns JSON into rows: json_populate_record, json_populate_recordset, json_to_record, json_to_recordset, and their jsonb variants.
//!
//! The binder adds a third argument to each call, a row of nulls of the wanted type: `(base, document, nulls)`.

use super::bind::Binder;
use super::bind_rows;
use super::bound::{Bound, BoundKind};
use super::eval::Env;
use super::functions::Function;
use crate::error::{Pos, Result, SqlError, code};
use crate::types::datum::{Array, Record, RowShape};
use crate::types::json::{Json, raw};
use crate::types::{Datum, Oid, SqlType, array_of, element_of, format_type, oid, text, user};
use clearway_base::{breath, memory, stack};
use std::sync::Arc;

static RECORD: Function = function("json_populate_record", record);
static RECORDS: Function = function("json_populate_recordset", records);

const fn function(name: &'static str, body: super::functions::Body) -> Function {
    const ARGS: &[Oid] = &[oid::ANYELEMENT, oid::JSON, oid::RECORD];
    Function { name, args: ARGS, result: oid::ANYELEMENT, strict: false, variadic: false, volatile: false, body }
}

/// What a function of this module is.
#[derive(Clone, Copy)]
struct Form {
    /// Its first argument is a row, whose type is that of the result.
    based: bool,
    /// It gives a row for each object of an array.
    many: bool,
    /// jsonb rather than json.
    binary: bool,
}

fn form(name: &str) -> Option<Form> {
    let (binary, rest) = match name.strip_prefix("jsonb_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("json_")?),
    };
    let (based, many) = match rest {
        "populate_record" => (true, false),
        "populate_recordset" => (true, true),
        "to_record" => (false, false),
        "to_recordset" => (false, true),
        _ => return None,
    };
    Some(Form { based, many, binary })
}

/// Whether a function is one of these and gives several rows.
pub fn gives_rows(name: &str) -> bool {
    form(name).is_some_and(|f| f.many)
}

/// Whether a function is one of these.
pub fn is_one(name: &str) -> bool {
    form(name).is_some()
}

/// Whether a function's row has no fields but those of a column definition list.
pub fn wants_definitions(name: &str) -> bool {
    form(name).is_some_and(|f| !f.based)
}

/// Binds a call; `defined` is what a column definition list says of the row. None: there is no such function.
///
/// # Errors
/// 42601, 42804.
pub(super) fn bind(
    b: &mut Binder<'_>,
    name: &str,
    args: &[Bound],
    defined: Option<Arc<RowShape>>,
    pos: Pos,
) -> Result<Option<Bound>> {
    let Some(form) = form(name) else { return Ok(None) };
    let document = if form.binary { oid::JSONB } else { oid::JSON };
    let (base, given) = match (form.based, args) {
        (true, [base, given] | [base, given, _]) => (Some(base.clone()), given),
        (false, [given]) => (None, given),
        _ => return Ok(None),
    };
    let from = given.ty.oid;
    if from != oid::UNKNOWN && from != document {
        return Ok(None);
    }
    let given = b.argument(given.clone(), document)?;
    let shape = match (&base, defined) {
        (Some(base), None) if bind_rows::is_row(base.ty.oid) => b.shape_of(base),
        (Some(base), None) => {
            if base.ty.oid == oid::UNKNOWN {
                let message = "could not determine polymorphic type because input has type unknown";
                return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
            }
            let message = format!("first argument of {name} must be a row type");
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        }
        (Some(base), Some(defined)) => {
            // The members are looked for under the names of the row that is given.
            let given = b.shape_of(base);
            same_row(given.as_deref(), &defined)?;
            Some(given.unwrap_or(defined))
        }
        (None, defined) => defined,
    };
    let Some(shape) = shape else {
        let message = format!("could not determine row type for result of {name}");
        return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
            .hint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list."));
    };
    let nulls = Bound::constant(bind_rows::nulls(&shape), shape.oid, pos);
    let base = base.unwrap_or_else(|| Bound::constant(Datum::Null, shape.oid, pos));
    let function = if form.many { &RECORDS } else { &RECORD };
    let ty = if form.many { array_of(shape.oid).unwrap_or(oid::RECORD) } else { shape.oid };
    let name = Bound::constant(Datum::text(name), oid::TEXT, pos);
    let kind = BoundKind::Call { function, args: vec![base, given, nulls, name] };
    Ok(Some(Bound { kind, ty: ty.into(), pos }))
}

/// The row that a call is given must be the one that a column definition list describes.
fn same_row(given: Option<&RowShape>, defined: &RowShape) -> Result<()> {
    let Some(given) = given else { return Ok(()) };
    let refused = |detail: String| {
        let message = "function return row and query-specified return row do not match";
        SqlError::new(code::DATATYPE_MISMATCH, message).detail(detail)
    };
    let (has, wants) = (given.types.len(), defined.types.len());
    if has != wants {
        let attributes = if has == 1 { "attribute" } else { "attributes" };
        return Err(refused(format!("Returned row contains {has} {attributes}, but query expects {wants}.")));
    }
    for (i, (a, b)) in given.types.iter().zip(&defined.types).enumerate() {
        if a.oid != b.oid {
            let (a, b) = (format_type(*a), format_type(*b));
            return Err(refused(format!("Returned type {a} at ordinal position {}, but query expects {b}.", i + 1)));
        }
    }
    Ok(())
}

/// A part of a document, of either type.
#[derive(Clone, Copy)]
enum Part<'a> {
    Text(&'a str),
    Tree(&'a Json),
}

impl<'a> Part<'a> {
    fn of(d: &'a Datum) -> Option<Part<'a>> {
        match d {
            Datum::Json(text) => Some(Part::Text(raw::trimmed(text))),
            Datum::Jsonb(tree) => Some(Part::Tree(tree)),
            _ => None,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Part::Text(text) => raw::type_name(text),
            Part::Tree(tree) => tree.type_name(),
        }
    }

    fn elements(self) -> Result<Vec<Part<'a>>> {
        Ok(match self {
            Part::Text(text) => raw::elements(text)?.into_iter().map(Part::Text).collect(),
            Part::Tree(Json::Array(list)) => list.iter().map(Part::Tree).collect(),
            Part::Tree(_) => Vec::new(),
        })
    }

    /// The members by name; of equal names the last one counts.
    fn member(self, members: &[(String, &'a str)], name: &str) -> Option<Part<'a>> {
        match self {
            Part::Text(_) => members.iter().rev().find(|m| m.0 == name).map(|m| Part::Text(m.1)),
            Part::Tree(tree) => tree.member(name).map(Part::Tree),
        }
    }

    fn members(self) -> Result<Vec<(String, &'a str)>> {
        match self {
            Part::Text(text) => raw::members(text),
            Part::Tree(_) => Ok(Vec::new()),
        }
    }

    /// Its text; that of a string without quotes.
    fn text(self) -> Result<String> {
        Ok(match self {
            Part::Text(text) if raw::type_name(text) == "string" => raw::string(text)?,
            Part::Text(text) => text.to_owned(),
            Part::Tree(Json::String(s)) => s.to_string(),
            Part::Tree(tree) => tree.to_string(),
        })
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn row_of(a: &[Datum]) -> Result<(Option<&Record>, &Arc<RowShape>, &str)> {
    let Datum::Row(nulls) = &a[2] else { return Err(SqlError::internal("a row of JSON without a shape")) };
    let base = match &a[0] {
        Datum::Row(base) => Some(&**base),
        _ => None,
    };
    Ok((base, &nulls.shape, a[3].as_str().unwrap_or("")))
}

fn record(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let (base, shape, _) = row_of(a)?;
    let Some(part) = Part::of(&a[1]) else {
        // Without a document the row is the first argument.
        return Ok(a[0].clone());
    };
    if part.kind() != "object" {
        let what = if part.kind() == "array" { "an array" } else { "a scalar" };
        return Err(invalid(format!("cannot call populate_composite on {what}")));
    }
    memory::claim(2 * a[1].heap_bytes())?;
    populated(part, base, shape, e)
}

fn records(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let (base, shape, name) = row_of(a)?;
    let mut rows = Vec::new();
    if let Some(part) = Part::of(&a[1]) {
        if part.kind() != "array" {
            let what = if part.kind() == "object" { "an object" } else { "a scalar" };
            return Err(invalid(format!("cannot call {name} on {what}")));
        }
        memory::claim(2 * a[1].heap_bytes())?;
        for element in part.elements()? {
            breath::step(16)?;
            if element.kind() != "object" {
                return Err(invalid(format!("argument of {name} must be an array of objects")));
            }
            rows.push(populated(element, base, shape, e)?);
        }
    }
    Ok(Datum::Array(Array::one_dimensional(shape.oid, rows).into()))
}

/// A row of an object; what the object does not name comes from the base.
fn populated(part: Part<'_>, base: Option<&Record>, shape: &Arc<RowShape>, e: &Env<'_>) -> Result<Datum> {
    memory::check()?;
    let members = part.members()?;
    let mut values = Vec::with_capacity(shape.types.len());
    for (i, ty) in shape.types.iter().enumerate() {
        let name = shape.name(i);
        values.push(match part.member(&members, &name) {
            Some(found) => {
                let old = match base.and_then(|b| b.values.get(i)) {
                    Some(Datum::Row(old)) => Some(&**old),
                    _ => None,
                };
                stack::deeper(|| value(found, *ty, old, &name, e))?
            }
            None => match base.and_then(|b| b.values.get(i)) {
                Some(old) => old.clone(),
                None => null(*ty)?,
            },
        });
    }
    Ok(Datum::Row(Record::new(shape.clone(), values)?.into()))
}

fn null(ty: SqlType) -> Result<Datum> {
    if user::is_domain(ty.oid) {
        user::check(ty.oid, &Datum::Null)?;
    }
    Ok(Datum::Null)
}

/// A part of a document as a value of a type; `old` is the row that it changes, `name` the key for errors.
fn value(part: Part<'_>, ty: SqlType, old: Option<&Record>, name: &str, e: &Env<'_>) -> Result<Datum> {
    breath::step(16)?;
    let below = user::base(ty);
    let kind = part.kind();
    let made = match (below.oid, part) {
        _ if kind == "null" => return null(ty),
        (oid::JSON, Part::Text(text)) => Datum::Json(text.into()),
        (oid::JSON, Part::Tree(tree)) => Datum::Json(tree.to_string().into()),
        (oid::JSONB, Part::Tree(tree)) => Datum::Jsonb(tree.clone().into()),
        (oid::JSONB, Part::Text(text)) => Datum::Jsonb(crate::types::json::parse(text)?.into()),
        (_, part) if kind != "string" && element_of(below.oid).is_some() => array(part, below, name, e)?,
        (_, part) if kind != "string" && user::is_composite(below.oid) => {
            if kind != "object" {
                let what = if kind == "array" { "an array" } else { "a scalar" };
                return Err(invalid(format!("cannot call populate_composite on {what}")));
            }
            let shape = user::shape(below.oid).ok_or_else(|| SqlError::internal("a composite type without a shape"))?;
            populated(part, old, &shape, e)?
        }
        (_, part) => text::input(below, &part.text()?, &e.session.conversion())?,
    };
    if ty != below {
        user::check(ty.oid, &made)?;
    }
    Ok(made)
}

fn array(part: Part<'_>, ty: SqlType, name: &str, e: &Env<'_>) -> Result<Datum> {
    let expected = |places: &[usize]| {
        let error = SqlError::new(code::INVALID_TEXT_REPRESENTATION, "expected JSON array");
        let places: String = places.iter().map(|p| format!("[{p}]")).collect();
        match places.is_empty() {
            true => error.hint(format!("See the value of key \"{name}\".")),
            false => error.hint(format!("See the array element {places} of key \"{name}\".")),
        }
    };
    if part.kind() != "array" {
        return Err(expected(&[]));
    }
    let element = SqlType { oid: element_of(ty.oid).unwrap_or(oid::TEXT), modifier: ty.modifier };
    // The first element of each level tells how deep the array is.
    let (mut lengths, mut first) = (Vec::new(), Some(part));
    while let Some(at) = first.filter(|p| p.kind() == "array" && lengths.len() < 6) {
        let list = at.elements()?;
        lengths.push(list.len());
        first = list.first().copied();
    }
    let mut out = Vec::new();
    elements(part, (&lengths, &mut Vec::new()), element, &mut out, &|places| expected(places), (name, e))?;
    if out.is_empty() {
        return Ok(Datum::Array(Array::one_dimensional(element.oid, out).into()));
    }
    let dims = lengths.iter().map(|n| (*n as i32, 1)).collect();
    Ok(Datum::Array(Array { element: element.oid, dims, values: out }.into()))
}

fn elements(
    part: Part<'_>,
    (lengths, places): (&[usize], &mut Vec<usize>),
    element: SqlType,
    out: &mut Vec<Datum>,
    expected: &dyn Fn(&[usize]) -> SqlError,
    (name, e): (&str, &Env<'_>),
) -> Result<()> {
    if places.len() == lengths.len() {
        out.push(value(part, element, None, name, e)?);
        return Ok(());
    }
    if part.kind() != "array" {
        return Err(expected(places));
    }
    let list = part.elements()?;
    if list.len() != lengths[places.len()] {
        return Err(SqlError::new(code::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
            .detail("Multidimensional arrays must have sub-arrays with matching dimensions."));
    }
    for (i, inner) in list.into_iter().enumerate() {
        places.push(i);
        elements(inner, (lengths, places), element, out, expected, (name, e))?;
        places.pop();
    }
    Ok(())
}
