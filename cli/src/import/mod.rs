//! `clearway import sqlite FILE`: imports the tables of a SQLite file, with data, keys, indexes and foreign keys, into a directory.
//!
//! # Life of an import
//! `source` reads the schema and looks at every value once -> `types` chooses each column's type by the values in it -> `target` creates
//! and fills one table after the other, each in a transaction -> keys, indexes, foreign keys, views -> the list of what was not imported.
//!
//! # Invariants
//! - IMP-1: nothing is lost silently: whatever of the file is not in the database is in the list, with its reason.
//! - IMP-2: an existing table is not changed: the import is refused before it changes anything.
//!
//! # Errors
//! Text for the user. A table that can't be filled ends the import; the tables before it remain, and a repeated import refuses them by
//! name.

mod names;
mod rows;
mod source;
mod target;
mod types;

use std::path::PathBuf;

use lexopt::prelude::*;

/// What to import.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    file: PathBuf,
    dir: PathBuf,
    schema: String,
    keep_case: bool,
}

/// Reads `import sqlite FILE [OPTIONS]`; none: help is wanted.
///
/// # Errors
/// What can't be understood.
pub fn parse(mut parser: lexopt::Parser) -> Result<Option<Import>, lexopt::Error> {
    let (mut from, mut file) = (None, None);
    let (mut dir, mut schema, mut keep_case) = (PathBuf::from("clearway-data"), "public".to_owned(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data") => dir = PathBuf::from(parser.value()?),
            Long("schema") => schema = parser.value()?.string()?,
            Long("keep-case") => keep_case = true,
            Value(value) if from.is_none() => from = Some(value.string()?),
            Value(value) if file.is_none() => file = Some(PathBuf::from(value)),
            other => return Err(other.unexpected()),
        }
    }
    match (from.as_deref(), file) {
        (Some("sqlite"), Some(file)) => Ok(Some(Import { file, dir, schema, keep_case })),
        (Some("sqlite"), None) => Err("import sqlite needs a file".into()),
        (Some(other), _) => Err(format!("import supports only sqlite, not {other}").into()),
        (None, _) => Err("import needs what to import from: sqlite FILE".into()),
    }
}

/// Does it; what a user should see goes to `say`.
///
/// # Errors
/// In words.
pub fn run(import: &Import, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let source = source::Source::open(&import.file, import.keep_case)?;
    let mut left_out = source.left_out.clone();
    let db = clearway::Database::open_or_connect(&import.dir).map_err(|error| error.to_string())?;
    let done = target::Target::new(&db, &import.schema).and_then(|target| target.fill(&source, &mut left_out, say));
    let closed = db.close().map_err(|error| error.to_string());
    done?;
    closed?;
    if left_out.is_empty() {
        say("everything was carried over");
    } else {
        say("not carried over, or changed:");
        left_out.iter().for_each(|line| say(&format!("  {line}")));
    }
    let place = import.dir.display();
    say(&format!("look at it: clearway sql --data {place}, or: clearway serve --data {place}"));
    Ok(())
}
