//! Functions over the built-in catalog data: what information_schema says about types, and the signatures of PostgreSQL's functions.

use super::eval::Env;
use super::functions::{i, s};
use crate::builtin;
use crate::error::Result;
use crate::types::routine::{self, Signature};
use crate::types::{Datum, Oid, format_type, oid};
use std::sync::Arc;

/// `name_oid`, the name that information_schema gives a function; the name is cut so that all fits into 63 bytes.
pub(super) fn name_and_oid(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let tail = format!("_{}", i(a, 1));
    let name = s(a, 0);
    let mut end = name.len().min(63 - tail.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Ok(Datum::text(format!("{}{tail}", &name[..end])))
}

fn args(a: &[Datum]) -> (Oid, i32) {
    (i(a, 0) as Oid, i(a, 1) as i32)
}

fn int(value: Option<i32>) -> Result<Datum> {
    Ok(value.map_or(Datum::Null, Datum::Int4))
}

/// bit and varbit.
const BIT: [Oid; 2] = [1560, 1562];
/// time and timetz.
const TIME: [Oid; 2] = [1083, 1266];

pub(super) fn char_max_length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    int(length(args(a)))
}

fn length((ty, modifier): (Oid, i32)) -> Option<i32> {
    match ty {
        _ if modifier == -1 => None,
        oid::BPCHAR | oid::VARCHAR => Some(modifier - 4),
        ty if BIT.contains(&ty) => Some(modifier),
        _ => None,
    }
}

pub(super) fn char_octet_length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (ty, modifier) = args(a);
    int(match ty {
        oid::TEXT | oid::BPCHAR | oid::VARCHAR if modifier == -1 => Some(1 << 30),
        oid::TEXT | oid::BPCHAR | oid::VARCHAR => length((ty, modifier)).map(|n| n * 4),
        _ => None,
    })
}

pub(super) fn numeric_precision(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (ty, modifier) = args(a);
    int(match ty {
        oid::INT2 => Some(16),
        oid::INT4 => Some(32),
        oid::INT8 => Some(64),
        oid::NUMERIC if modifier != -1 => Some(((modifier - 4) >> 16) & 65_535),
        oid::FLOAT4 => Some(24),
        oid::FLOAT8 => Some(53),
        _ => None,
    })
}

pub(super) fn numeric_radix(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    int(match args(a).0 {
        oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 => Some(2),
        oid::NUMERIC => Some(10),
        _ => None,
    })
}

pub(super) fn numeric_scale(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (ty, modifier) = args(a);
    int(match ty {
        oid::INT2 | oid::INT4 | oid::INT8 => Some(0),
        oid::NUMERIC if modifier != -1 => Some((modifier - 4) & 65_535),
        _ => None,
    })
}

pub(super) fn datetime_precision(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (ty, modifier) = args(a);
    let given = |modifier: i32| if modifier < 0 { 6 } else { modifier };
    int(match ty {
        oid::DATE => Some(0),
        oid::TIMESTAMP | oid::TIMESTAMPTZ => Some(given(modifier)),
        ty if TIME.contains(&ty) => Some(given(modifier)),
        oid::INTERVAL if modifier < 0 || modifier & 65_535 == 65_535 => Some(6),
        oid::INTERVAL => Some(modifier & 65_535),
        _ => None,
    })
}

/// The fields of an interval's modifier, in capitals.
pub(super) fn interval_type(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (ty, modifier) = args(a);
    if ty != oid::INTERVAL {
        return Ok(Datum::Null);
    }
    let shown = format_type(crate::types::SqlType { oid: ty, modifier });
    let fields = shown.trim_start_matches("interval").trim().trim_matches(|c: char| "()0123456789".contains(c)).trim();
    Ok(Datum::text(fields.to_uppercase()))
}

/// One parameter of a function: its mode, name, type and default.
struct Parameter {
    mode: char,
    name: String,
    ty: Oid,
    default: Option<String>,
}

fn list(field: Option<String>) -> Vec<String> {
    let text = field.unwrap_or_default();
    let inner = text.trim_matches(['{', '}']);
    if inner.is_empty() { Vec::new() } else { inner.split(',').map(|t| t.trim_matches('"').to_owned()).collect() }
}

/// Expressions with commas between them; commas inside of parentheses and quotes separate nothing.
fn expressions(text: &str) -> Vec<String> {
    let (mut out, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        match (c, out.last_mut()) {
            (',', _) if depth == 0 && !quoted => out.push(String::new()),
            (c, Some(last)) => last.push(c),
            _ => {}
        }
    }
    out.iter().map(|e| e.trim().to_owned()).collect()
}

/// The parameters of a function that a user has defined.
fn of_user(oid: Oid) -> Option<(Vec<Parameter>, Arc<Signature>)> {
    let signature = routine::of_oid(oid)?;
    let mut defaults = signature.inputs.iter().map(|i| i.default.clone());
    let parameter = |(mode, name, ty): &(char, Option<String>, Oid)| {
        let default = if matches!(mode, 'i' | 'b' | 'v') { defaults.next().flatten() } else { None };
        // Those of a procedure are marked, all of them.
        let mode = if signature.procedure && *mode == 'i' { 'I' } else { *mode };
        Parameter { mode, name: name.clone().unwrap_or_default(), ty: *ty, default }
    };
    let list = signature.declared.iter().map(parameter).collect();
    Some((list, signature))
}

/// The parameters of a function, and the fields of its row in pg_proc.
fn parameters(oid: Oid) -> Option<(Vec<Parameter>, Vec<Option<String>>)> {
    if let Some((list, _)) = of_user(oid) {
        return Some((list, Vec::new()));
    }
    let known = builtin::proc(oid)?;
    let start = format!("{oid}\t");
    let own = builtin::extension_rows().filter(|(_, catalog, _)| *catalog == "pg_proc").map(|(_, _, row)| row);
    let line = builtin::rows_of("pg_proc")?.lines().chain(own).find(|l| l.starts_with(&start))?;
    let fields: Vec<Option<String>> = builtin::fields(line).collect();
    let field = |at: usize| fields.get(at).cloned().flatten();
    let all: Vec<Oid> = list(field(20)).iter().filter_map(|t| t.parse().ok()).collect();
    let types = if all.is_empty() { known.arguments.clone() } else { all };
    let (modes, names) = (list(field(21)), list(field(22)));
    let defaults = field(23).map(|text| expressions(&text)).unwrap_or_default();
    let mut out: Vec<Parameter> = (types.iter().enumerate())
        .map(|(at, ty)| {
            let mode = modes.get(at).and_then(|m| m.chars().next()).unwrap_or('i');
            Parameter { mode, name: names.get(at).cloned().unwrap_or_default(), ty: *ty, default: None }
        })
        .collect();
    // Defaults are those of the last input parameters.
    let inputs: Vec<usize> = (0..out.len()).filter(|at| matches!(out[*at].mode, 'i' | 'b' | 'v')).collect();
    for (at, default) in inputs.iter().rev().zip(defaults.into_iter().rev()) {
        out[*at].default = Some(default);
    }
    Some((out, fields))
}

fn shown(p: &Parameter, with_default: bool) -> String {
    let mode = match p.mode {
        'I' => "IN ",
        'o' => "OUT ",
        'b' => "INOUT ",
        'v' => "VARIADIC ",
        _ => "",
    };
    let name = if p.name.is_empty() { String::new() } else { format!("{} ", quoted(&p.name)) };
    let default = p.default.as_ref().filter(|_| with_default).map_or(String::new(), |d| format!(" DEFAULT {d}"));
    format!("{mode}{name}{}{default}", format_type(p.ty.into()))
}

fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit());
    let reserved =
        crate::syntax::keywords::lookup(name).is_some_and(|k| k.0 != crate::syntax::keywords::Category::Unreserved);
    if plain && !reserved { name.to_owned() } else { format!("\"{name}\"") }
}

/// pg_get_function_arguments: as CREATE FUNCTION writes them. NULL for a function that does not exist.
pub(super) fn function_arguments(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Some((list, _)) = parameters(i(a, 0) as Oid) else { return Ok(Datum::Null) };
    let list: Vec<String> = list.iter().filter(|p| p.mode != 't').map(|p| shown(p, true)).collect();
    Ok(Datum::text(list.join(", ")))
}

/// pg_get_function_identity_arguments: what tells it from others of its name.
pub(super) fn function_identity_arguments(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Some((list, _)) = parameters(i(a, 0) as Oid) else { return Ok(Datum::Null) };
    let list: Vec<String> = list.iter().filter(|p| p.mode != 't').map(|p| shown(p, false)).collect();
    Ok(Datum::text(list.join(", ")))
}

/// pg_get_function_arg_default: the default of one parameter.
pub(super) fn function_arg_default(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let found = parameters(i(a, 0) as Oid).map(|(list, _)| list);
    let at = usize::try_from(i(a, 1) - 1).ok();
    let default = found.zip(at).and_then(|(mut list, at)| list.get_mut(at).and_then(|p| p.default.take()));
    Ok(default.map_or(Datum::Null, Datum::text))
}

/// pg_get_function_result: the type of its result, with SETOF or TABLE.
pub(super) fn function_result(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let oid = i(a, 0) as Oid;
    if let Some((list, signature)) = of_user(oid) {
        return Ok(result_of(&list, signature.procedure, signature.gives_rows, signature.result));
    }
    let (Some((list, _)), Some(known)) = (parameters(oid), builtin::proc(oid)) else { return Ok(Datum::Null) };
    Ok(result_of(&list, known.kind == 'p', known.gives_rows, known.result))
}

fn result_of(list: &[Parameter], procedure: bool, gives_rows: bool, result: Oid) -> Datum {
    if procedure {
        return Datum::Null;
    }
    let columns: Vec<String> = list.iter().filter(|p| p.mode == 't').map(|p| shown(p, false)).collect();
    if !columns.is_empty() {
        return Datum::text(format!("TABLE({})", columns.join(", ")));
    }
    let set = if gives_rows { "SETOF " } else { "" };
    Datum::text(format!("{set}{}", format_type(result.into())))
}
