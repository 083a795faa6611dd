//! The right to call the functions of a table's texts: those of its indexes, and of its generated columns.

use super::Planner;
use super::plan::Target;
use clearway_context::index_terms;
use clearway_context::privileges::{Judge, denied};
use clearway_engine::catalog::{Catalog, Index, Relation};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Oid;

/// The error for a function that the role may not call; none if it may.
fn refused(catalog: &Catalog, judge: &Judge<'_>, oid: Oid) -> Option<SqlError> {
    match catalog.get(oid) {
        Some(object) if !judge.may_with(object, 'X') => Some(denied("function", object.name())),
        _ => None,
    }
}

/// Judges the building of an index: the owner of its table computes the terms, also for a superuser's REINDEX (IXT-2).
///
/// # Errors
/// 42501.
pub fn may_build(catalog: &Catalog, table: &Relation, index: &Index) -> Result<()> {
    let owner = Judge::new(catalog, table.database, Some(table.owner));
    let calls = index_terms::calls(catalog, table, index)?;
    calls.iter().find_map(|oid| refused(catalog, &owner, *oid)).map_or(Ok(()), Err)
}

/// Refuses an expression that is evaluated in place, and calls what the role may not call or what only a session can run.
///
/// # Errors
/// 42501, 0A000.
pub fn in_place(catalog: &Catalog, judge: &Judge<'_>, bound: &Bound, what: &str) -> Result<()> {
    let mut found = Ok(());
    super::walk::each(bound, &mut |e| {
        if let BoundKind::Host { function, .. } = e.kind
            && let Some(oid) = function.routine()
            && found.is_ok()
        {
            let other =
                || SqlError::unsupported(format!("{what} over a function whose body is more than one expression"));
            found = Err(refused(catalog, judge, oid).unwrap_or_else(other));
        }
    });
    found
}

impl Planner<'_> {
    /// Notes the columns that a statement writes, of new rows or of rows that stand, and judges the calls in what is computed of them: in the
    /// generated columns, and in the indexes that get entries (IXT-2).
    ///
    /// # Errors
    /// As [`in_place`].
    pub(super) fn writes(&self, target: &mut Target, columns: impl Iterator<Item = usize>, new: bool) -> Result<()> {
        target.written = columns.collect();
        self.may_compute(target, new)
    }

    /// The same judgement for rows that are written anew.
    ///
    /// # Errors
    /// As [`in_place`].
    pub fn may_compute(&self, target: &Target, all: bool) -> Result<()> {
        let (catalog, judge) = (self.env.catalog, &self.env.judge);
        if !catalog.has_routines() {
            return Ok(());
        }
        for (_, bound) in target.generated.iter() {
            in_place(catalog, judge, bound, "a generated column")?;
        }
        for terms in target.table.shape.indexes.iter().filter_map(index_terms::of) {
            let touched = all || terms.has_any(&target.written);
            if touched && let Some(error) = terms.calls.iter().find_map(|oid| refused(catalog, judge, *oid)) {
                return Err(error);
            }
        }
        Ok(())
    }
}
