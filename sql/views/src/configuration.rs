//! The rows of pg_settings, pg_file_settings and pg_hba_file_rules.

use super::{ViewOf, opt, text};
use clearway_context::configuration::{Configuration, Shown};
use clearway_context::settings::{Kind, Setting, Settings, all};
use clearway_context::units::shown_real;
use clearway_exec::{Row, Run};
use clearway_values::types::datum::Array;
use clearway_values::types::{Datum, oid};
use std::sync::Arc;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_settings", settings),
    ("pg_catalog", "pg_file_settings", file_settings),
    ("pg_catalog", "pg_hba_file_rules", rules),
];

fn configuration<'a>(run: &'a Run<'_>) -> Option<&'a Arc<dyn Configuration>> {
    run.core.backends.configuration()
}

fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> Datum {
    Datum::Array(Array::one_dimensional(oid::TEXT, items.into_iter().map(text).collect()).into())
}

fn line(number: u32) -> Datum {
    Datum::Int4(i32::try_from(number).unwrap_or(i32::MAX))
}

/// File and line that decide about a setting; for superusers only, as in PostgreSQL.
fn place(run: &Run<'_>, superuser: bool, name: &str) -> [Datum; 2] {
    let place = configuration(run).filter(|_| superuser).and_then(|configuration| configuration.place(name));
    place.map_or([Datum::Null, Datum::Null], |(file, number)| [text(&file), line(number)])
}

fn settings(run: &Run<'_>) -> Vec<Row> {
    let mut values = run.core.settings.lock().clone();
    for setting in all() {
        if let Some(shown) = run.core.limits.shown(run.core, setting.name) {
            values.fix(setting.name, &shown);
        }
    }
    let superuser = run.core.role(&run.names.catalog).is_some_and(|role| role.superuser);
    let of_sessions = all().map(|setting| {
        let mut row = of_sessions(setting, &values);
        row.extend(place(run, superuser, setting.name));
        row.push(Datum::Bool(false));
        row
    });
    let mut rows: Vec<Row> = of_sessions.collect();
    let servers = run.core.server_settings();
    for setting in servers.iter().filter(|setting| superuser || !setting.private) {
        let mut row = of_server(setting);
        row.extend(place(run, superuser, setting.name));
        row.push(Datum::Bool(setting.pending_restart));
        rows.push(row);
    }
    rows
}

/// The type that a value has by its look, its unit, and the value in it: numbers are what monitoring takes.
fn typed(value: &str) -> (&'static str, Option<&'static str>, String) {
    let number = |text: &str| text.parse::<i64>().ok();
    let sized = [("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)];
    let kilobytes = || sized.iter().find_map(|(unit, kib)| number(value.strip_suffix(unit)?)?.checked_mul(*kib));
    let seconds = || number(value.strip_suffix('s').filter(|rest| !rest.ends_with(['m', 'u']))?);
    match value {
        "on" | "off" => ("bool", None, value.to_owned()),
        _ if number(value).is_some() => ("integer", None, value.to_owned()),
        _ => match (kilobytes(), seconds()) {
            (Some(kib), _) => ("integer", Some("kB"), kib.to_string()),
            (None, Some(seconds)) => ("integer", Some("s"), seconds.to_string()),
            (None, None) => ("string", None, value.to_owned()),
        },
    }
}

/// All but the last three columns.
fn of_server(setting: &Shown) -> Row {
    let (mut kind, mut unit, mut value) = typed(&setting.value);
    // What may be a text is one whatever it is now.
    if !setting.default.is_empty() && typed(setting.default).0 != kind {
        (kind, unit, value) = ("string", None, setting.value.clone());
    }
    let in_its_unit = |text: &str| if kind == "integer" { typed(text).2 } else { text.to_owned() };
    let context = if setting.reloads { "sighup" } else { "postmaster" };
    vec![
        text(setting.name),
        text(&value),
        opt(unit),
        text("Server"),
        text(setting.about),
        Datum::Null,
        text(context),
        text(kind),
        text(setting.source),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        text(&in_its_unit(setting.default)),
        text(&value),
    ]
}

/// All but the last three columns.
fn of_sessions(s: &Setting, values: &Settings) -> Row {
    let (kind, unit) = match s.kind {
        Kind::Bool => ("bool", None),
        Kind::Milliseconds | Kind::MillisecondsOrOff => ("integer", Some("ms")),
        Kind::Int(..) => ("integer", None),
        // The value goes with its unit.
        Kind::Bytes | Kind::Kilobytes(_) | Kind::Blocks(..) => ("string", None),
        Kind::RealIn(..) => ("real", None),
        // The value goes with its unit.
        Kind::RealMilliseconds(_) => ("string", None),
        Kind::Enum(_) => ("enum", None),
        Kind::Fixed => (typed(s.default).0, None),
        Kind::Only("on" | "off") => ("bool", None),
        Kind::Text | Kind::Encoding | Kind::Only(_) => ("string", None),
    };
    let value = match s.kind {
        Kind::MillisecondsOrOff if values.get(s.name) == "-1" => "-1".to_owned(),
        Kind::Milliseconds | Kind::MillisecondsOrOff => values.timeout_ms(s.name).to_string(),
        _ => values.get(s.name).to_owned(),
    };
    let range = match s.kind {
        Kind::Int(low, high) => Some((low.to_string(), high.to_string())),
        Kind::RealIn(low, high) => Some((shown_real(low), shown_real(high))),
        Kind::Milliseconds => Some(("0".to_owned(), i32::MAX.to_string())),
        _ => None,
    };
    let words = match s.kind {
        Kind::Enum(words) => list(words.iter().copied()),
        _ => Datum::Null,
    };
    let context = match s.kind {
        Kind::Fixed => "internal",
        _ if s.is_for_superusers() => "superuser",
        _ => "user",
    };
    vec![
        text(s.name),
        text(&value),
        opt(unit),
        text("Client Connection Defaults"),
        text(s.about),
        Datum::Null,
        text(context),
        text(kind),
        text(values.source_of(s.name).name()),
        opt(range.as_ref().map(|r| r.0.as_str())),
        opt(range.as_ref().map(|r| r.1.as_str())),
        words,
        text(s.default),
        text(values.start_of(s.name)),
    ]
}

fn file_settings(run: &Run<'_>) -> Vec<Row> {
    let all = configuration(run).map(|configuration| configuration.file_settings()).unwrap_or_default();
    let rows = all.into_iter().zip(1u32..).map(|(setting, number)| {
        vec![
            text(&setting.file),
            line(setting.line),
            line(number),
            text(&setting.name),
            text(&setting.value),
            Datum::Bool(setting.applied),
            opt(setting.error.as_deref()),
        ]
    });
    rows.collect()
}

fn rules(run: &Run<'_>) -> Vec<Row> {
    let all = configuration(run).map(|configuration| configuration.rules()).unwrap_or_default();
    let rows = all.into_iter().map(|shown| {
        let number = shown.line.map_or(Datum::Null, line);
        let Some(rule) = shown.rule else {
            let mut row = vec![Datum::Null; 9];
            (row[0], row[8]) = (number, opt(shown.error.as_deref()));
            return row;
        };
        vec![
            number,
            text(rule.kind),
            list(rule.databases.iter().map(String::as_str)),
            list(rule.users.iter().map(String::as_str)),
            opt(rule.address.as_deref()),
            opt(rule.mask.as_deref()),
            text(rule.method),
            rule.options.map_or(Datum::Null, |option| list([option])),
            opt(shown.error.as_deref()),
        ]
    });
    rows.collect()
}
