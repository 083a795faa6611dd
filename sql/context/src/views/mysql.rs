//! Declares the views under MySQL's names: schemas performance_schema, sys (also as ps_helper), and innodb_trx in information_schema.
//!
//! A query finds them by name and through the search path, but no catalog lists them. A user's own schema with such a name takes
//! precedence.
//!
//! # Structure
//! `mysql.txt` declares them, one line each: schema, name, columns with the oids of their types. The definitions of those that are
//! queries are in `texts/mysql.sql`; `clearway_views::mysql` gives the rows of the others.

use super::SystemView;
use clearway_values::types::Oid;
use std::sync::LazyLock;

/// The oid of the first of them, and one beyond their range.
const OIDS: std::ops::Range<Oid> = 12_950..13_000;

/// All of them.
pub fn all() -> &'static [SystemView] {
    static VIEWS: LazyLock<Vec<SystemView>> = LazyLock::new(|| {
        include_str!("mysql.txt").lines().zip(OIDS).filter_map(|(line, oid)| read(line, oid)).collect()
    });
    &VIEWS
}

fn read(line: &'static str, oid: Oid) -> Option<SystemView> {
    let mut parts = line.split(' ');
    let (schema, name) = (parts.next()?, parts.next()?);
    let columns =
        parts.filter_map(|column| column.split_once(':').and_then(|(name, ty)| Some((name, ty.parse().ok()?))));
    let columns: &'static [(&'static str, Oid)] = columns.collect::<Vec<_>>().leak();
    Some(SystemView { oid, schema, name, columns })
}

/// A view by schema and name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemView> {
    let schema = if schema == "ps_helper" { "sys" } else { schema };
    all().iter().find(|view| view.schema == schema && view.name == name)
}

/// Whether a schema is one of MySQL's.
pub fn is_schema(name: &str) -> bool {
    matches!(name, "performance_schema" | "sys" | "ps_helper")
}

/// Whether a view is one of these: divisions of what they show have decimals, as in MySQL.
pub fn is_one(view: &SystemView) -> bool {
    OIDS.contains(&view.oid)
}

/// A text with `@time(x)` written out: picoseconds as sys shows them.
pub fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("@time(") {
        let (argument, behind) = after.split_once(')').unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(&time(argument));
        rest = behind;
    }
    out + rest
}

fn time(x: &str) -> String {
    let mut out = String::from("CASE");
    for (from, per, unit) in [
        ("604800000000000000", "604800000000000000", "w"),
        ("86400000000000000", "86400000000000000", "d"),
        ("3600000000000000", "3600000000000000", "h"),
        ("60000000000000", "60000000000000", "m"),
        ("1000000000000", "1000000000000", "s"),
        ("1000000000", "1000000000", "ms"),
        ("1000000", "1000000", "us"),
        ("1000", "1000", "ns"),
    ] {
        out += &format!(" WHEN {x} >= {from} THEN round({x}::numeric / {per}, 2) || ' {unit}'");
    }
    out + &format!(" WHEN {x} IS NULL THEN NULL ELSE round({x}) || ' ps' END")
}
