//! The rows and keys that the DETAIL of an error shows.
//!
//! # Invariants
//! - SHN-1: an error shows no value that the session's role may not read. If policies apply, it shows none; otherwise the columns that
//!   the role may read, and those to which the statement itself gave a value.
//!
//! Source: PostgreSQL 15's `ExecBuildSlotValueDescription`, `BuildIndexValueDescription`, `ri_ReportViolation`.

use super::Cx;
use clearway_context::privileges::Judge;
use clearway_planner::plan::{TableSlot, Target};
use clearway_syntax::error::SqlError;
use clearway_values::types::{Datum, SqlType, text};

/// The bytes that a row's DETAIL shows of a value.
const VALUE_BYTES_MAX: usize = 64;

/// An error with its DETAIL, if it has one.
pub(super) fn detailed(error: SqlError, detail: Option<String>) -> SqlError {
    match detail {
        Some(detail) => error.detail(detail),
        None => error,
    }
}

fn clipped(mut value: String) -> String {
    if value.len() > VALUE_BYTES_MAX {
        let end = (0..=VALUE_BYTES_MAX).rev().find(|at| value.is_char_boundary(*at)).unwrap_or(0);
        value.truncate(end);
        value.push_str("...");
    }
    value
}

impl Cx<'_> {
    /// A value as error details show it.
    pub fn shown(self, v: &Datum, ty: SqlType) -> String {
        if v.is_null() {
            return "null".to_owned();
        }
        let host = super::host::CxHost { cx: self };
        let session: &dyn clearway_values::expr::Session = &host;
        text::output(ty, v, &session.conversion())
    }

    /// `Key (a, b)=(1, 2)`; none where the session's role may not read all of it (SHN-1).
    pub(super) fn key_shown(self, table: &TableSlot, columns: &[usize], row: &[Datum]) -> Option<String> {
        let catalog = &self.run.names.catalog;
        let relation = catalog.relation(table.shape.oid)?;
        let judge = Judge::of(self.run.core, catalog);
        if judge.is_held_by_policies(relation) || !columns.iter().all(|c| judge.may_with_column(relation, *c, 'r')) {
            return None;
        }
        let names: Vec<&str> = columns.iter().map(|c| table.shape.columns[*c].name.as_str()).collect();
        let values: Vec<String> = columns.iter().map(|c| self.shown(&row[*c], table.types[*c])).collect();
        Some(format!("Key ({})=({})", names.join(", "), values.join(", ")))
    }

    /// The row that is refused (SHN-1).
    pub(super) fn failing(self, target: &Target, row: &[Datum]) -> Option<String> {
        let catalog = &self.run.names.catalog;
        let table = &target.table;
        if target.catalog.is_some() {
            // Only superusers get here.
            let values = row.iter().zip(table.types.iter()).map(|(v, ty)| clipped(self.shown(v, *ty)));
            return Some(format!("Failing row contains ({}).", values.collect::<Vec<_>>().join(", ")));
        }
        let relation = catalog.relation(table.shape.oid)?;
        let judge = Judge::of(self.run.core, catalog);
        if judge.is_held_by_policies(relation) {
            return None;
        }
        let whole = catalog.get(relation.oid).is_some_and(|object| judge.may_with(object, 'r'));
        let may = |at: usize| whole || target.written.contains(&at) || judge.may_with_column(relation, at, 'r');
        let live = row.iter().zip(table.types.iter()).zip(&table.shape.columns).enumerate();
        let live = live.filter(|(at, (_, c))| c.dropped.is_none() && may(*at));
        let (names, values): (Vec<&str>, Vec<String>) =
            live.map(|(_, ((v, ty), c))| (c.name.as_str(), clipped(self.shown(v, *ty)))).unzip();
        let values = values.join(", ");
        match (whole, names.is_empty()) {
            (true, _) => Some(format!("Failing row contains ({values}).")),
            (false, true) => None,
            (false, false) => Some(format!("Failing row contains ({}) = ({values}).", names.join(", "))),
        }
    }
}
