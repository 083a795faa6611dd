//! What statements that define data ask of the session that runs them, which stands above them.

use crate::context::core::Core;
use crate::error::Result;
use crate::exec::sink::Sink;
use crate::exec::{BoxFuture, Row};
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::Expr;
use crate::syntax::error::Pos;
use crate::syntax::stmt::Statement;
use clearway_engine::catalog::{Catalog, Routine, ViewMeaning};
use std::sync::Arc;

/// The session.
pub trait Session: Send {
    /// What it shares with what is below it.
    fn core(&self) -> &Arc<Core>;
    /// Whether the statement shares its transaction with others.
    fn shares_transaction(&self) -> bool;
    /// What sessions do for any statement of this crate.
    fn server(&self) -> &'static dyn Server;
    /// Prepares a query, whose rows a table is to take.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    fn prepare(&mut self, query: &Statement, text: &Arc<str>) -> Result<Box<dyn Asked + '_>>;
    /// The prepared statement that EXECUTE names, with the values of its parameters.
    fn prepared<'a>(&'a mut self, name: &'a str, args: &'a [Expr]) -> BoxFuture<'a, Result<Box<dyn Asked + 'a>>>;
}

/// A statement that a session has prepared.
pub trait Asked: Send {
    /// Its tree; none: its text is empty.
    fn statement(&self) -> Option<&Statement>;
    /// The columns of its result, as its tables are before they are locked.
    fn columns(&self) -> Option<&[OutputColumn]>;
    /// Begins to run it.
    fn start(&mut self) -> BoxFuture<'_, Result<Box<dyn Begun>>>;
}

/// A statement that has begun to run.
pub trait Begun: Send {
    /// The columns of its result, as its tables are now that they are locked.
    fn columns(&self) -> Option<&[OutputColumn]>;
    /// Gives all rows to a sink; how many there were.
    fn give_to<'a>(&'a mut self, core: &'a Core, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<u64>>;
}

/// What sessions do for a statement that defines data, whichever session it is of.
pub trait Server: Sync {
    /// The rows of a query of our own, which gives few: it reads what is committed now.
    fn rows<'a>(&self, core: &'a Arc<Core>, sql: &'a str) -> BoxFuture<'a, Result<Vec<Row>>>;
    /// Judges the body of a routine in SQL; the meanings of its parts.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    fn judge_body(&self, core: &Core, catalog: &Arc<Catalog>, routine: &Routine) -> Result<Vec<ViewMeaning>>;
    /// Judges the body of a routine in PL/pgSQL; `place`: where it stands in the statement.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    fn judge_plpgsql(&self, core: &Core, routine: &Routine, place: Option<Pos>) -> Result<()>;
    /// Judges a setting of a routine.
    ///
    /// # Errors
    /// Those of SET.
    fn check_setting(&self, core: &Core, name: &str, value: &str) -> Result<()>;
}
