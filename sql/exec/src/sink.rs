//! Where a statement's rows go, when they do not go to the client as a result.

use crate::{BoxFuture, Row, Run};
use clearway_syntax::error::Result;

/// What takes a statement's rows, when it is not the client as a result.
pub trait Sink: Send {
    /// The next row.
    fn row(&mut self, run: &Run<'_>, row: Row) -> Result<()>;
    /// Whether `flush` is due.
    fn is_full(&self) -> bool;
    /// Passes on what was taken; called at the end, too.
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
}
