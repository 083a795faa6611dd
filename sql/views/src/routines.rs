//! The rows of pg_proc for functions and procedures that users define.

use super::catalog::{acl, int_oid, local};
use super::rights::settings_of;
use super::text;
use clearway_context::routines::{letter, mode};
use clearway_context::views::SystemView;
use clearway_engine::catalog::{AclKind, Argument, ArgumentMode, Language, Object, Routine, RoutineKind};
use clearway_exec::{Row, Run};
use clearway_values::types::datetime::Format;
use clearway_values::types::oid::OID;
use clearway_values::types::text::{Conversion, NoNames, input};
use clearway_values::types::{Datum, SqlType, element_of};

const SQL: u32 = 14;
/// The number of PL/pgSQL in pg_language.
const PLPGSQL: u32 = 13_545;

/// The number of a language.
pub(super) fn language(language: Language) -> u32 {
    match language {
        Language::Sql => SQL,
        Language::Plpgsql => PLPGSQL,
    }
}

/// The rows of a relation for routines, behind those that PostgreSQL begins with.
pub fn extend(view: &SystemView, rows: &mut Vec<Row>, run: &Run<'_>) {
    if view.schema != "pg_catalog" || view.name != "pg_proc" || !run.names.catalog.has_routines() {
        return;
    }
    rows.extend(local(run).filter_map(|o| match o {
        Object::Routine(r) => Some(row(view, r, run)),
        _ => None,
    }));
}

fn row(view: &SystemView, r: &Routine, run: &Run<'_>) -> Row {
    let format = Format::default();
    let conversion = Conversion { format: &format, now: 0, names: &NoNames };
    let typed = |column: &str, shown: Option<String>| {
        let ty = view.columns.iter().find(|c| c.0 == column).map_or(clearway_values::types::oid::TEXT, |c| c.1);
        shown.map_or(Datum::Null, |shown| input(SqlType::new(ty), &shown, &conversion).unwrap_or(Datum::Null))
    };
    let inputs: Vec<&Argument> = r.inputs().collect();
    let numbers =
        |list: &mut dyn Iterator<Item = u32>, by: &str| list.map(|n| n.to_string()).collect::<Vec<_>>().join(by);
    let has_outputs = r.arguments.iter().any(|a| a.mode != ArgumentMode::In);
    let all = has_outputs.then(|| format!("{{{}}}", numbers(&mut r.arguments.iter().map(|a| a.type_oid), ",")));
    let modes: Vec<String> = r.arguments.iter().map(|a| mode(a.mode).to_string()).collect();
    let modes = has_outputs.then(|| format!("{{{}}}", modes.join(",")));
    let names = r.arguments.iter().map(|a| {
        let name = a.name.as_deref().unwrap_or("");
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    });
    let names: Vec<String> = names.collect();
    let has_names = r.arguments.iter().any(|a| a.name.is_some());
    let defaults: Vec<&str> = inputs.iter().filter_map(|a| a.default.as_deref()).collect();
    let variadic = inputs.last().filter(|a| a.mode == ArgumentMode::Variadic);
    let number = |text: &Option<String>, default: &str| text.clone().unwrap_or_else(|| default.to_owned());
    let kind = if r.kind == RoutineKind::Procedure { "p" } else { "f" };
    let mut values: Vec<(&str, Datum)> = vec![
        ("oid", int_oid(r.oid)),
        ("proname", text(&r.name)),
        ("pronamespace", int_oid(r.schema)),
        ("proowner", int_oid(r.owner)),
        ("prolang", int_oid(language(r.language))),
        ("procost", typed("procost", Some(number(&r.cost, "100")))),
        ("prorows", typed("prorows", Some(number(&r.rows, if r.gives_rows { "1000" } else { "0" })))),
        ("provariadic", int_oid(variadic.and_then(|a| element_of(a.type_oid)).unwrap_or(0))),
        ("prosupport", Datum::Oid(0)),
        ("prokind", text(kind)),
        ("prosecdef", Datum::Bool(r.definer)),
        ("proleakproof", Datum::Bool(r.leakproof)),
        ("proisstrict", Datum::Bool(r.strict)),
        ("proretset", Datum::Bool(r.gives_rows)),
        ("provolatile", text(&letter(r.volatility).to_string())),
        ("proparallel", text(&r.parallel.to_string())),
        ("pronargs", Datum::Int2(inputs.len() as i16)),
        ("pronargdefaults", Datum::Int2(defaults.len() as i16)),
        ("prorettype", int_oid(r.result)),
        ("proargtypes", super::indexes::vector(OID, inputs.iter().map(|a| int_oid(a.type_oid)))),
        ("proallargtypes", typed("proallargtypes", all)),
        ("proargmodes", typed("proargmodes", modes)),
        ("proargnames", typed("proargnames", has_names.then(|| format!("{{{}}}", names.join(","))))),
        ("prosrc", text(if r.atomic { "" } else { &r.body })),
    ];
    if !defaults.is_empty() {
        values.push(("proargdefaults", text(&defaults.join(", "))));
    }
    if r.atomic {
        values.push(("prosqlbody", text(&r.body)));
    }
    values.push(("proconfig", settings_of(r.settings.iter().map(|(name, value)| (name, value)))));
    values.push(("proacl", acl(run, r.owner, &r.acl, AclKind::Function)));
    let value = |column: &str| values.iter().find(|(name, _)| *name == column).map_or(Datum::Null, |v| v.1.clone());
    view.columns.iter().map(|(name, _)| value(name)).collect()
}
