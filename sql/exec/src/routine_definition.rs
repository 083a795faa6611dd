//! pg_get_functiondef and pg_get_function_sqlbody.

use super::Cx;
use clearway_context::names::quote;
use clearway_context::routines::qualified;
use clearway_context::settings::list_items;
use clearway_engine::catalog::{Argument, ArgumentMode, Routine, RoutineKind, Volatility};
use clearway_values::types::text::Names;
use clearway_values::types::{Datum, Oid, format_type};

/// Settings whose values are lists of names.
const LISTS: [&str; 5] = [
    "search_path",
    "temp_tablespaces",
    "session_preload_libraries",
    "shared_preload_libraries",
    "local_preload_libraries",
];

fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

fn argument(a: &Argument, of_procedure: bool) -> String {
    let mode = match a.mode {
        ArgumentMode::In if of_procedure => "IN ",
        ArgumentMode::In | ArgumentMode::Table => "",
        ArgumentMode::Out => "OUT ",
        ArgumentMode::InOut => "INOUT ",
        ArgumentMode::Variadic => "VARIADIC ",
    };
    let name = a.name.as_ref().map_or(String::new(), |name| format!("{} ", quote(name)));
    let default = a.default.as_ref().map_or(String::new(), |text| format!(" DEFAULT {text}"));
    format!("{mode}{name}{}{default}", format_type(a.type_oid.into()))
}

fn result(r: &Routine) -> String {
    let table: Vec<&Argument> = r.arguments.iter().filter(|a| a.mode == ArgumentMode::Table).collect();
    if !table.is_empty() {
        let columns: Vec<String> = table.into_iter().map(|a| argument(a, false)).collect();
        return format!("TABLE({})", columns.join(", "));
    }
    let set = if r.gives_rows { "SETOF " } else { "" };
    format!("{set}{}", format_type(r.result.into()))
}

/// A tag between dollars that the text does not have.
fn quoted_body(r: &Routine) -> String {
    let mut tag = format!("${}", r.kind.name());
    while r.body.contains(&tag) {
        tag.push('x');
    }
    format!("{tag}${}{tag}$", r.body)
}

/// The attributes that are not the default.
fn attributes(r: &Routine) -> String {
    let mut out = String::new();
    match r.volatility {
        Volatility::Immutable => out += " IMMUTABLE",
        Volatility::Stable => out += " STABLE",
        Volatility::Volatile => {}
    }
    match r.parallel {
        's' => out += " PARALLEL SAFE",
        'r' => out += " PARALLEL RESTRICTED",
        _ => {}
    }
    for (on, word) in [(r.strict, " STRICT"), (r.definer, " SECURITY DEFINER"), (r.leakproof, " LEAKPROOF")] {
        if on {
            out += word;
        }
    }
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f32>().ok());
    if let Some(cost) = number(&r.cost).filter(|cost| *cost != 100.0) {
        out += &format!(" COST {cost}");
    }
    if let Some(rows) = number(&r.rows).filter(|rows| *rows != 1000.0 && *rows > 0.0) {
        out += &format!(" ROWS {rows}");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

impl Cx<'_> {
    /// The statement that creates a routine; NULL if no user has defined it.
    pub(super) fn routine_definition(self, oid: Oid) -> Datum {
        let Some(r) = self.run.names.catalog.routine(oid) else { return Datum::Null };
        let schema = self.run.names.schema_name(r.schema).unwrap_or_default();
        let of_procedure = r.kind == RoutineKind::Procedure;
        let shown = r.arguments.iter().filter(|a| a.mode != ArgumentMode::Table);
        let arguments: Vec<String> = shown.map(|a| argument(a, of_procedure)).collect();
        let kind = r.kind.name().to_uppercase();
        let mut out = format!("CREATE OR REPLACE {kind} {schema}.{}({})\n", quote(&r.name), arguments.join(", "));
        if !of_procedure {
            out += &format!(" RETURNS {}\n", result(r));
        }
        out += &format!(" LANGUAGE {}\n", r.language.name());
        out += &attributes(r);
        for (name, value) in &r.settings {
            let value = match LISTS.contains(&name.as_str()) {
                true => list_items(value).iter().map(|item| literal(item)).collect::<Vec<_>>().join(", "),
                false => literal(value),
            };
            out += &format!(" SET {} TO {value}\n", quote(name));
        }
        match r.atomic {
            true => out += &qualified(&self.run.names, r.path.as_deref().unwrap_or_default(), &r.body),
            false => out += &format!("AS {}", quoted_body(r)),
        }
        out.push('\n');
        Datum::text(out)
    }

    /// The body of the standard; NULL for a routine whose body is a string.
    pub(super) fn routine_body(self, oid: Oid) -> Datum {
        let found = self.run.names.catalog.routine(oid).filter(|r| r.atomic);
        let shown = |r: &Routine| qualified(&self.run.names, r.path.as_deref().unwrap_or_default(), &r.body);
        found.map_or(Datum::Null, |r| Datum::text(shown(r)))
    }
}
