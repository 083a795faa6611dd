//! `clearway check schema`: reports what the tables' data says about their columns' types, their keys and their indexes.
//!
//! A client of Clearway, PostgreSQL, MariaDB or MySQL, read only. Each table is read once with one statement. A text column that looks
//! like numbers, dates or addresses is then read again, and the server casts every value, so that no finding rests on a pattern alone.
//!
//! # Structure
//! `told` (the data of PostgreSQL's catalog about tables), `mysql` (the same of MariaDB and MySQL), `dialect` (types and statements of both
//! languages), `judge` (what the figures of a column mean).
//!
//! # Invariants
//! - SCH-1: a finding about a type names a type that holds every value in the table, and its ALTER statement runs as it is printed.
//! - SCH-2: nothing is changed on the server (CON-1).

mod dialect;
mod judge;
mod mysql;
mod told;

use crate::link::Link;
use crate::options::Work;
use crate::source::{Kind, Source};
use dialect::{Dialect, Sort};
pub use judge::Finding;
use judge::{ColumnFigures, WantedType};
use told::{Column, Table, rows};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaQuestion {
    /// The server, as a URL or as `name=value` pairs.
    pub server: String,
    /// Its password, where the URL has none.
    pub password: Option<String>,
    /// Tables with fewer rows are not judged by their data.
    pub rows_min: u64,
}

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What could be better; what saves most first.
    pub findings: Vec<Finding>,
    /// Tables whose data could not be read, each with what the server said.
    pub unread: Vec<(String, String)>,
}

/// Checks the schema of a server's database, read only (SCH-2).
///
/// # Errors
/// No connection, or a statement that the server refuses; which, in words.
pub fn check(asked: &SchemaQuestion) -> Work<'_, Result<Report, String>> {
    Box::pin(ask(asked))
}

async fn ask(asked: &SchemaQuestion) -> Result<Report, String> {
    let source = Source::of(&asked.server, asked.password.as_deref()).map_err(|error| error.to_string())?;
    let (mut link, kind, version) =
        source.try_attach().await.map_err(|error| format!("{}: {}", source.place(), error.text))?;
    let link = &mut link;
    let (dialect, tables) = match kind {
        Kind::Clearway | Kind::PostgreSql => {
            // Reading whole tables takes as long as it takes.
            rows(link, "SET statement_timeout = 0").await?;
            (Dialect::PostgreSql, told::tables(link).await?)
        }
        Kind::MariaDb | Kind::MySql => {
            let is_mariadb = kind == Kind::MariaDb;
            let unlimited = if is_mariadb { "max_statement_time" } else { "max_execution_time" };
            rows(link, &format!("SET SESSION {unlimited} = 0")).await?;
            let has_types = mysql::has_types(&version);
            (Dialect::MySql { has_types }, mysql::tables(link, is_mariadb).await?)
        }
    };
    let mut findings = of_catalog(link, kind).await?;
    if let Dialect::MySql { .. } = dialect {
        findings = mysql::of_tables(link, &tables, findings).await;
    }
    // PostgreSQL's indexes lead to places of rows; the others' end with the primary key.
    let repeats_key = kind != Kind::PostgreSql;
    let mut unread = Vec::new();
    for table in &tables {
        match of_table(link, (dialect, repeats_key), table, asked.rows_min).await {
            Ok(found) => findings.extend(found),
            Err(error) => unread.push((table.shown.clone(), error)),
        }
    }
    findings.sort_by_key(|found| std::cmp::Reverse(found.bytes_saved));
    Ok(Report { findings, unread })
}

/// What the catalog alone tells.
async fn of_catalog(link: &mut Link, kind: Kind) -> Result<Vec<Finding>, String> {
    let rows = rows(link, crate::panels::schema_findings(kind)).await?;
    let finding = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter();
        let mut next = || fields.next().flatten();
        Finding {
            finding: next().unwrap_or_default(),
            object: next().unwrap_or_default(),
            evidence: next().unwrap_or_default(),
            bytes_saved: next().and_then(|bytes| bytes.parse().ok()),
            ddl: next().unwrap_or_default(),
        }
    };
    Ok(rows.into_iter().map(finding).collect())
}

/// What the data of a table tells; an error if this role may not read it, or if it has been dropped meanwhile.
async fn of_table(
    link: &mut Link,
    (dialect, repeats_key): (Dialect, bool),
    table: &Table,
    rows_min: u64,
) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    let figures: Vec<String> = table.columns.iter().flat_map(|column| judge::figures(column, dialect)).collect();
    let figures: String = figures.iter().map(|figure| format!(", {figure}")).collect();
    let sql = format!("SELECT count(*){figures} FROM {}", dialect.from(table));
    let answer = rows(link, &sql).await?;
    let mut values = answer.into_iter().next().unwrap_or_default().into_iter();
    let rows = values.next().flatten().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    if rows < rows_min {
        return Ok(out);
    }
    let mut key_bytes = 0.0;
    for column in &table.columns {
        let seen = ColumnFigures::read(column, rows, &mut values);
        if table.key.contains(&column.number) {
            key_bytes += seen.mean_bytes(column);
        }
        let Some(mut wanted) = judge::judged(table, column, &seen, dialect) else { continue };
        if wanted.sort.is_text() && !confirm(link, table, column, &mut wanted, dialect).await {
            continue;
        }
        out.push(wanted.finding(table, column, &seen, dialect));
    }
    if repeats_key {
        out.extend(judge::long_key(table, rows, key_bytes, dialect));
    }
    Ok(out)
}

/// Whether the server casts every value (SCH-1); a whole number gets the narrowest type.
async fn confirm(link: &mut Link, table: &Table, column: &Column, wanted: &mut WantedType, dialect: Dialect) -> bool {
    if let Dialect::MySql { .. } = dialect {
        return mysql::confirm(link, table, column, wanted).await;
    }
    let (name, ty) = (&column.name, &wanted.ty);
    let is_whole = wanted.sort == Sort::Whole;
    let range = if is_whole { format!(", min({name}::bigint), max({name}::bigint)") } else { String::new() };
    let Ok(answer) = rows(link, &format!("SELECT count({name}::{ty}){range} FROM {}", table.name)).await else {
        return false;
    };
    let mut values = answer.into_iter().next().unwrap_or_default().into_iter().skip(1);
    let mut number = || values.next().flatten().and_then(|n| n.parse::<i64>().ok());
    if let (Some(low), Some(high)) = (number(), number()) {
        wanted.narrow(low, high, dialect);
    }
    true
}
