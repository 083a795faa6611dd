//! The rows of the system views, which are built when a view is read.
//!
//! # Structure
//! `clearway_context::views` declares the views and their columns; for each view a function here gives the rows.
//! ```text
//! catalog, attributes, indexes, constraints    objects of the catalog, their columns and constraints
//! types, routines    types and functions of users         builtin     the rows with which PostgreSQL's catalogs begin
//! dependencies       what objects depend on               comments    what COMMENT adds
//! owners             the roles that objects need         identity    what an object is called
//! rights             memberships, policies, defaults      configuration  settings and rules of access
//! activity           sessions                             functions   set-returning functions over the catalog
//! locks, locked      locks, and the names of what is locked
//! lock_waits         waits for locks, present and past    lock_tree   which session stands behind which
//! deadlocks          the latest deadlocks
//! waits, books       where time goes                      statement_times, statistics   durations; what ANALYZE has counted
//! undo               old versions and their holders       log         the log, its holders, the archive
//! memory             the heap by session                  progress    how far long statements are
//! limits             limits of roles and databases    shared_plans   plans that sessions share
//! table_statistics, server_statistics          PostgreSQL's pg_stat views
//! zones              zones of time
//! mysql              views under MySQL's names
//! ```
//!
//! # Invariants
//! - VRB-1: a loop over the objects of the catalog takes a breath at each of them. Where the statement has to end, the loop ends early, and `Cx::view_rows` fails before anything is
//!   made of the rows.
#![forbid(unsafe_code)]

mod activity;
mod attributes;
mod books;
mod builtin;
mod catalog;
mod comments;
mod configuration;
mod constraints;
mod deadlocks;
mod dependencies;
mod expressions;
mod extensions;
mod functions;
mod identity;
mod indexes;
mod limits;
mod lock_tree;
mod lock_waits;
mod locked;
mod locks;
mod log;
mod memory;
mod mysql;
mod operators;
mod owners;
mod progress;
mod rights;
mod routines;
mod server_statistics;
mod shared_plans;
mod statement_times;
mod statistics;
mod table_statistics;
mod types;
mod undo;
mod waits;
mod zones;

use clearway_base::memory::uncharged;
use clearway_context::views::SystemView;
use clearway_context::views::functions::RowsFunction;
use clearway_engine::catalog::{Acl, AclKind, Index};
use clearway_exec::{Row, Run, SoughtRows, ViewRows};
use clearway_syntax::error::Result;
use clearway_values::types::{Datum, Oid};
use std::sync::{Arc, LazyLock};

pub use builtin::storage_of;

/// Schema and name of a view, and what gives its rows.
type ViewOf = (&'static str, &'static str, fn(&Run<'_>) -> Vec<Row>);

const ROWS: &[&[ViewOf]] = &[
    comments::ROWS,
    types::ROWS,
    catalog::ROWS,
    dependencies::ROWS,
    owners::ROWS,
    extensions::ROWS,
    attributes::ROWS,
    constraints::ROWS,
    activity::ROWS,
    locks::ROWS,
    lock_tree::ROWS,
    lock_waits::ROWS,
    waits::ROWS,
    books::ROWS,
    deadlocks::ROWS,
    undo::ROWS,
    log::ROWS,
    memory::ROWS,
    limits::ROWS,
    configuration::ROWS,
    mysql::ROWS,
    progress::ROWS,
    rights::ROWS,
    server_statistics::ROWS,
    shared_plans::ROWS,
    statistics::ROWS,
    statement_times::ROWS,
    table_statistics::ROWS,
    zones::ROWS,
];

/// A table of pg_catalog, and what gives its rows for the objects that are sought; none: all of them have to be built.
type SoughtOf = (&'static str, fn(&Run<'_>, &SoughtRows) -> Option<Vec<Row>>);

const SOUGHT: &[&[SoughtOf]] = &[attributes::SOUGHT, constraints::SOUGHT];

/// The rows that are sought of a table whose rows are found by that column (VKY-1).
fn sought_rows(view: &SystemView, sought: &SoughtRows, run: &Run<'_>) -> Option<Vec<Row>> {
    let (_, rows) = SOUGHT.iter().copied().flatten().find(|(name, _)| view.name == *name)?;
    rows(run, sought)
}

/// A table of pg_catalog of whose rows only the columns that are asked for are built, and what gives the rows.
type PickedOf = (&'static str, fn(&Run<'_>, Option<&SoughtRows>, &Columns<'_>) -> Vec<Row>);

const PICKED: &[&[PickedOf]] =
    &[builtin::PICKED, catalog::PICKED, attributes::PICKED, indexes::PICKED, table_statistics::PICKED];

/// The columns of a view that are asked for.
struct Columns<'c> {
    view: &'c SystemView,
    /// None: all.
    asked: Option<&'c [usize]>,
    /// The rows of the catalog have no versions of their own: each is as old as the catalog.
    version: u32,
}

impl Columns<'_> {
    /// A row, each of whose own columns `column` gives.
    fn row(&self, mut column: impl FnMut(usize) -> Datum) -> Row {
        let own = self.view.columns.len();
        let mut value = |at: usize| if at < own { column(at) } else { self.of_system(at - own) };
        match self.asked {
            Some(asked) => asked.iter().map(|at| value(*at)).collect(),
            None => (0..self.view.width()).map(value).collect(),
        }
    }

    /// The same of a row of all of its own columns.
    fn of(&self, mut row: Row) -> Row {
        debug_assert_eq!(row.len(), self.view.columns.len(), "a row of {}", self.view.name);
        if let (None, false) = (self.asked, self.view.is_table()) {
            return row;
        }
        self.row(|at| std::mem::replace(&mut row[at], Datum::Null))
    }

    /// The n-th column that each table has beside its own.
    fn of_system(&self, at: usize) -> Datum {
        Datum::Oid([self.view.oid, self.version, 0, 0][at])
    }
}

fn rows_of(view: &SystemView) -> Option<&'static ViewOf> {
    ROWS.iter().copied().flatten().find(|(schema, name, _)| view.name == *name && view.schema == *schema)
}

/// What the executor asks of the system views.
pub struct SystemViews;

impl ViewRows for SystemViews {
    fn rows(
        &self,
        view: &SystemView,
        sought: Option<&SoughtRows>,
        columns: Option<&[usize]>,
        run: &Run<'_>,
    ) -> Vec<Row> {
        let columns = Columns { view, asked: columns, version: run.names.catalog.lsn.0 as u32 };
        if view.schema == "pg_catalog"
            && let Some((_, rows)) = PICKED.iter().copied().flatten().find(|(name, _)| *name == view.name)
        {
            return rows(run, sought, &columns);
        }
        let found = sought.and_then(|sought| sought_rows(view, sought, run));
        let rows = found.unwrap_or_else(|| match rows_of(view) {
            Some((_, _, rows)) => rows(run),
            None => {
                let mut rows = builtin::rows(view, sought);
                routines::extend(view, &mut rows, run);
                operators::extend(view, &mut rows, run);
                if view.schema == "pg_catalog" {
                    rows.extend(extensions::rows_of(run, view.name, sought));
                }
                if view.name == "pg_description" {
                    comments::append(run, sought, &mut rows);
                }
                rows
            }
        });
        rows.into_iter().map(|row| columns.of(row)).collect()
    }

    fn function_rows(&self, function: &RowsFunction, args: &[Datum], run: &Run<'_>) -> Result<Vec<Row>> {
        functions::rows(function, args, run)
    }

    fn described(&self, class: Oid, number: Oid, part: i32, run: &Run<'_>) -> Result<Option<String>> {
        identity::described(run, class, number, part)
    }

    fn access_list(&self, acl: &Acl, owner: Oid, kind: AclKind, run: &Run<'_>) -> Datum {
        catalog::acl(run, owner, acl, kind)
    }

    fn index_definition(&self, index: &Index, pretty: bool, run: &Run<'_>) -> String {
        indexes::index_definition(run, index, pretty)
    }

    fn index_column(&self, index: &Index, at: usize, pretty: bool, run: &Run<'_>) -> Option<String> {
        indexes::index_column(run, index, at, pretty)
    }

    fn pretty_condition(&self, text: &str, table: Oid, run: &Run<'_>) -> Option<String> {
        indexes::pretty_condition(run, text, table).or_else(|| expressions::pretty(run, text, table))
    }

    fn rule_definition(&self, rule: Oid, run: &Run<'_>) -> Option<String> {
        dependencies::rule_definition(run, rule)
    }

    fn reset_shared(&self, name: &str, run: &Run<'_>) -> bool {
        server_statistics::reset_shared(run, name)
    }

    fn constraint_definition(&self, constraint: Oid, pretty: bool, run: &Run<'_>) -> Option<String> {
        constraints::definition(run, constraint, pretty)
    }
}

/// A breath for an object of which rows are built; none: the statement has to end (VRB-1).
fn breathes<'r, T>(run: &'r Run<'_>) -> impl FnMut(T) -> Option<T> + use<'r, T> {
    let state = run.state;
    move |object| state.goes_on().then_some(object)
}

/// 2000-01-01, from which SQL's timestamps count, in microseconds since 1970.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A count; what does not fit a bigint shows as the greatest.
fn int(n: u64) -> Datum {
    Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX))
}

/// A time from microseconds since 1970; 0 stands for none.
fn time(us: i64) -> Datum {
    if us == 0 { Datum::Null } else { Datum::TimestampTz(us - EPOCH_US) }
}

fn text(s: &str) -> Datum {
    Datum::text(s)
}

/// A text of the catalogs that is empty or one letter: all rows share it.
fn letter(s: &str) -> Datum {
    static SHARED: LazyLock<Box<[Arc<str>]>> = LazyLock::new(|| {
        let ascii = (0..128u8).map(|code| Arc::from(char::from(code).to_string()));
        uncharged(|| std::iter::once(Arc::from("")).chain(ascii).collect())
    });
    let place = match s.as_bytes() {
        [] => Some(0),
        [code] => Some(1 + usize::from(*code)),
        _ => None,
    };
    place.and_then(|at| SHARED.get(at)).map_or_else(|| text(s), |shared| Datum::Text(shared.clone()))
}

fn opt(s: Option<&str>) -> Datum {
    s.map_or(Datum::Null, Datum::text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_context::views as declared;

    #[test]
    fn a_letter_is_the_text_that_it_was_made_of() {
        for s in ["", "r", "\u{7f}", "é", "ab"] {
            assert_eq!(letter(s), text(s));
        }
    }

    #[test]
    fn every_view_has_rows_and_all_rows_are_of_a_view() {
        for view in declared::all().chain(declared::mysql::all()) {
            let ways = [
                rows_of(view).is_some(),
                view.schema == "pg_catalog" && PICKED.iter().copied().flatten().any(|(name, _)| *name == view.name),
                view.text().is_some(),
                builtin::has_rows(view),
                declared::declared::EMPTY.contains(&view.name),
                declared::declared::STORED.contains(&view.name),
            ];
            let ways = ways.iter().filter(|way| **way).count();
            assert_eq!(ways, 1, "{}.{}: what gives its rows?", view.schema, view.name);
        }
        for (schema, name) in declared::texts::names() {
            assert!(declared::find(schema, name).is_some(), "{schema}.{name} is not declared");
        }
        for (schema, name, _) in ROWS.iter().copied().flatten() {
            assert!(declared::find(schema, name).is_some(), "{schema}.{name} is not declared");
        }
    }
}
