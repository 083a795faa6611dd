//! The rows of the set-returning functions over the catalog (`clearway_context::views::functions`).

use super::{int, text, time};
use clearway_context::privileges::{Judge, role_by_oid};
use clearway_context::views::functions::{RowsFunction, find, view_of};
use clearway_engine::catalog::Object;
use clearway_exec::{Row, Run};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_syntax::keywords::{self, Category};
use clearway_values::builtin::Proc;
use clearway_values::types::Datum;

/// Whether a statement can call a function of PostgreSQL that gives rows.
pub fn gives_rows(p: &Proc) -> bool {
    let named = matches!(p.name, "generate_series" | "unnest" | "pg_partition_ancestors");
    let schema = if p.schema == clearway_context::views::PG_CATALOG { "pg_catalog" } else { "information_schema" };
    let called = find(Some(schema), p.name, p.arguments.len()).is_some() || view_of(p.name).is_some();
    p.gives_rows && (called || named && p.arguments.iter().all(|t| clearway_values::types::facts(*t).is_some()))
}

/// The rows that a call gives; none where an argument is null.
pub fn rows(function: &RowsFunction, args: &[Datum], run: &Run<'_>) -> Result<Vec<Row>> {
    if args.iter().any(Datum::is_null) {
        // These give one row, of nulls.
        let one = function.name.starts_with("pg_identify_object");
        return Ok(if one { vec![vec![Datum::Null; function.columns.len()]] } else { Vec::new() });
    }
    let number = || args.first().and_then(Datum::as_i64).unwrap_or(0) as u32;
    let list = || match args.first() {
        Some(Datum::Array(array)) => array.values.clone(),
        _ => Vec::new(),
    };
    Ok(match function.name {
        "pg_identify_object" => super::identity::identified(run, args)?,
        "pg_identify_object_as_address" => super::identity::as_address(run, args)?,
        "aclexplode" => {
            let mut out = Vec::new();
            for item in list() {
                exploded(item.as_str().unwrap_or(""), run, &mut out)?;
            }
            out
        }
        "pg_get_keywords" => keywords::all().map(keyword).collect(),
        "pg_options_to_table" => list().iter().map(|option| option_row(option.as_str().unwrap_or(""))).collect(),
        "pg_sequence_parameters" => match run.names.catalog.get(number()).map(|o| &**o) {
            Some(Object::Sequence(s)) => {
                let mut row: Row = [s.start, s.min, s.max, s.increment].map(Datum::Int8).into();
                row.extend([Datum::Bool(s.cycle), Datum::Int8(s.cache), Datum::Oid(s.type_oid)]);
                vec![row]
            }
            _ => {
                return Err(SqlError::new(
                    code::UNDEFINED_TABLE,
                    format!("relation with OID {} does not exist", number()),
                ));
            }
        },
        "pg_tablespace_databases" => {
            let databases = run.names.catalog.objects().filter_map(|o| match &**o {
                Object::Database(d) if number() == 1663 => Some(vec![Datum::Oid(d.oid)]),
                _ => None,
            });
            databases.collect()
        }
        "pg_stat_get_backend_idset" => run.core.backends.all().iter().map(|b| vec![Datum::Int4(b.pid)]).collect(),
        "pg_listening_channels" => run.core.notifying.lock().listening().map(|channel| vec![text(channel)]).collect(),
        "pg_ls_tmpdir" => temporary_files(run, args.first().is_none_or(|_| number() == 1663))?,
        "_pg_expandarray" => list().into_iter().zip(1..).map(|(x, n)| vec![x, Datum::Int4(n)]).collect(),
        // Nothing is partitioned, and there are no publications.
        _ => Vec::new(),
    })
}

/// The temporary files that statements have open; all of them are in the default tablespace.
fn temporary_files(run: &Run<'_>, in_default: bool) -> Result<Vec<Row>> {
    use clearway_engine::catalog::predefined::MONITOR;
    if !Judge::of(run.core, &run.names.catalog).has_rights_of(MONITOR) {
        return Err(SqlError::new("42501", "permission denied for function pg_ls_tmpdir"));
    }
    let files = run.core.db.transactions().store().temp_files().open_files();
    let files = files.into_iter().filter(|_| in_default);
    Ok(files.map(|file| vec![text(&file.name), int(file.bytes), time(file.changed_us)]).collect())
}

/// `name=value`, or a name alone.
fn option_row(option: &str) -> Row {
    match option.split_once('=') {
        Some((name, value)) => vec![text(name), text(value)],
        None => vec![text(option), Datum::Null],
    }
}

fn keyword((word, category, bare): (&str, Category, bool)) -> Row {
    let (code, about) = match category {
        Category::Unreserved => ("U", "unreserved"),
        Category::ColumnName => ("C", "unreserved (cannot be function or type name)"),
        Category::TypeOrFunction => ("T", "reserved (can be function or type name)"),
        Category::Reserved => ("R", "reserved"),
    };
    let label = if bare { "can be bare label" } else { "requires AS" };
    vec![text(word), text(code), Datum::Bool(bare), text(about), text(label)]
}

/// The privileges of an entry `role=letters/by`, one row for each.
fn exploded(item: &str, run: &Run<'_>, out: &mut Vec<Row>) -> Result<()> {
    let bad = || SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("invalid aclitem: \"{item}\""));
    let (role, rest) = split_role(item).ok_or_else(bad)?;
    let (letters, by) = rest.split_once('/').ok_or_else(bad)?;
    let oid = |name: &str| -> Result<u32> {
        if name.is_empty() {
            return Ok(0);
        }
        let plain = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).map(|n| n.replace("\"\"", "\""));
        let plain = plain.unwrap_or_else(|| name.to_owned());
        let number = plain.strip_prefix("unknown (OID=").and_then(|n| n.strip_suffix(')')).unwrap_or(&plain).parse();
        let by_number = || number.ok().filter(|oid| role_by_oid(&run.names.catalog, *oid).is_some());
        run.names.catalog.role(&plain).map(|r| r.oid).or_else(by_number).ok_or_else(bad)
    };
    let (role, by) = (oid(role)?, oid(by)?);
    let mut letters = letters.chars().peekable();
    while let Some(letter) = letters.next() {
        let name = match letter {
            'a' => "INSERT",
            'r' => "SELECT",
            'w' => "UPDATE",
            'd' => "DELETE",
            'D' => "TRUNCATE",
            'x' => "REFERENCES",
            't' => "TRIGGER",
            'X' => "EXECUTE",
            'U' => "USAGE",
            'C' => "CREATE",
            'T' => "TEMPORARY",
            'c' => "CONNECT",
            's' => "SET",
            'A' => "ALTER SYSTEM",
            _ => return Err(bad()),
        };
        let grantable = letters.next_if_eq(&'*').is_some();
        out.push(vec![Datum::Oid(by), Datum::Oid(role), text(name), Datum::Bool(grantable)]);
    }
    Ok(())
}

/// The role before the `=`; it may be quoted.
fn split_role(item: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let at = item.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '=' && !quoted
    })?;
    Some((&item[..at.0], &item[at.0 + 1..]))
}
