//! The terms of an index: expressions whose values its entries hold, and the condition of a partial index.
//!
//! The engine knows no language. The layer above installs a compiler, once for the process; a table's shape calls it for each index with
//! terms.
//!
//! # Invariants
//! - TRM-1: a term depends on the row only, not on the session or the time. So the entry of a version can be computed again from the version.
//! - TRM-2: as a part of TAB-1, an index has an entry for a version of a row exactly if the version meets the index's condition; the entry begins
//!   with the values that the index's expressions have for the version.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use crate::catalog::{Catalog, Index, Relation};
use crate::error::EngineError;
use crate::value::Value;

/// Expressions and condition of one index.
pub trait Terms: Debug + Send + Sync {
    /// The values of the index's columns for a row; none: the row does not meet the condition.
    ///
    /// # Errors
    /// `Terms`: an expression has no value for the row.
    fn values(&self, row: &[Value]) -> Result<Option<Vec<Value>>, EngineError>;

    /// The table's columns on which the values depend.
    fn reads(&self) -> &[usize];

    /// Itself, for the layer that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Makes [`Terms`].
pub trait Compiler: Send + Sync {
    /// Those of an index.
    ///
    /// # Errors
    /// `Terms`: a text is not understood.
    fn compile(&self, catalog: &Catalog, table: &Relation, index: &Index) -> Result<Arc<dyn Terms>, EngineError>;
}

static COMPILER: OnceLock<&'static dyn Compiler> = OnceLock::new();

/// Makes a compiler known, for the whole process; a second one is not taken.
pub fn install(compiler: &'static dyn Compiler) {
    let _ = COMPILER.set(compiler);
}

/// The terms of an index that computes.
pub(super) fn of(catalog: &Catalog, table: &Relation, index: &Index) -> Result<Option<Arc<dyn Terms>>, EngineError> {
    if !index.is_computed() {
        return Ok(None);
    }
    let compiler = COMPILER.get().ok_or_else(|| EngineError::NoCompiler(index.name.clone()))?;
    compiler.compile(catalog, table, index).map(Some)
}
