//! COPY between a table or a query and the client or a file of the server: text, csv and binary form, row by row in both directions.
//!
//! # Structure
//! ```text
//!   options   the options of the form                from    bytes -> rows -> one statement that inserts them
//!   lines     text and csv, in                       to      one statement's rows -> bytes
//!   binary    the binary form, in                    write   text, csv and the binary form, out
//!   file      a file of the server instead of the client
//!   direct    rows of lines that need no conversion
//! ```
//!
//! # Life of a COPY FROM
//! It is planned as an INSERT of one row of parameters, and begun without rows -> the client is told to send -> the bytes of each message
//! become rows, which the statement inserts -> the client has sent everything -> foreign keys are checked -> the tag.
//!
//! # Invariants
//! - CPY-4: a COPY is one statement with one snapshot, in both directions.
//! - CPY-5: the memory that a COPY takes depends on the longest row, not on the number of rows.
//!
//! # Not here
//! COPY from and to programs of the server: 0A000.

mod binary;
mod direct;
mod file;
mod from;
mod lines;
mod options;
mod shown;
mod to;
mod write;

use super::client::Client;
use super::session::{Prepared, Session};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::QualName;
use crate::syntax::stmt::{Copy, CopyEnd, CopySource};
use std::sync::Arc;

/// COPY.
pub async fn copy(
    session: &mut Session,
    prepared: &Arc<Prepared>,
    c: &Copy,
    client: &mut dyn Client,
) -> Result<String> {
    match &c.end {
        CopyEnd::Client => one(session, prepared, c, client).await,
        CopyEnd::File(path) => {
            file::check_rights(&session.core, c.from, false)?;
            let mut end = file::FileEnd::new(&session.core, path, c.from)?;
            let copied = one(session, prepared, c, &mut end).await;
            end.end(copied).await
        }
        CopyEnd::Program(_) => {
            file::check_rights(&session.core, c.from, true)?;
            Err(SqlError::unsupported("COPY with a program of the server"))
        }
    }
}

/// A copy between its source and the client, or what stands in the client's place.
async fn one(session: &mut Session, prepared: &Arc<Prepared>, c: &Copy, client: &mut dyn Client) -> Result<String> {
    let form = options::form(c, session.core.settings.lock().format.encoding)?;
    if let CopySource::Table(name, columns) = &c.source {
        check_columns(session, name, columns, &form)?;
    }
    if c.from {
        from::copy_from(session, prepared, c, &form, client).await
    } else {
        to::copy_to(session, prepared, c, &form, client).await
    }
}

/// The columns of a table that are named for the copy, and by the FORCE options, are there, and each is named once.
fn check_columns(session: &Session, table: &QualName, columns: &[(String, Pos)], form: &options::Form) -> Result<()> {
    let (oid, catalog) = crate::planner::environment::relation_oid(&session.core, table)?;
    let Some(relation) = catalog.relation(oid) else { return Ok(()) };
    let is_there = |name: &str| relation.columns.iter().any(|c| c.name == name && !c.is_dropped());
    let forced = [&form.force_quote, &form.force_not_null, &form.force_null].into_iter().flat_map(|f| match f {
        options::Forced::Columns(names) => names.as_slice(),
        _ => &[],
    });
    for name in columns.iter().map(|(name, _)| name).chain(forced) {
        if !is_there(name) {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
            return Err(SqlError::new(code::UNDEFINED_COLUMN, message));
        }
    }
    for (name, _) in columns {
        let named = relation.columns.iter().find(|c| c.name == *name && !c.is_dropped());
        named.map_or(Ok(()), crate::planner::generated::check_copied)?;
    }
    for (at, (name, _)) in columns.iter().enumerate() {
        if columns[..at].iter().any(|(other, _)| other == name) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
    }
    Ok(())
}
