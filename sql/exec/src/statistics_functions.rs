//! `pg_stat_get_*`: single values of the statistics views.

use super::Cx;
use super::sought::{Keys, SoughtRows};
use clearway_context::views;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::builtin;
use clearway_values::expr::statistics_functions::{self, Statistic};
use clearway_values::types::{Datum, oid};

impl Cx<'_> {
    /// Answers one of these functions; none: it is another one.
    pub(super) fn statistic(self, name: &str, args: &[Datum]) -> Option<Result<Datum>> {
        let statistic = statistics_functions::of(name)?;
        let result = builtin::procs_named(name).first().map_or(oid::INT8, |p| p.result);
        Some(self.statistic_of(statistic, args.first(), result))
    }

    fn statistic_of(
        self,
        (_, view, key, columns): &'static Statistic,
        number: Option<&Datum>,
        result: u32,
    ) -> Result<Datum> {
        let view = views::find("pg_catalog", view).ok_or_else(|| SqlError::internal("a statistics view"))?;
        let place = |name: &str| view.columns.iter().position(|(column, _)| *column == name);
        let wanted: Option<Vec<usize>> = columns.iter().map(|column| place(column)).collect();
        let wanted = wanted.ok_or_else(|| SqlError::internal("a column of a statistics view"))?;
        let number = number.and_then(Datum::as_i64);
        let at = place(key);
        let sought = at
            .zip(number)
            .filter(|(at, _)| views::keys::of(view, *at).is_some())
            .map(|(place, number)| SoughtRows { column: key, place, keys: Keys::Oids(vec![number as u32]) });
        let rows = self.run.views.rows(view, sought.as_ref(), None, self.run);
        let row = rows.iter().find(|row| at.is_none_or(|at| row[at].as_i64() == number));
        let first = |row: &Vec<Datum>| row[wanted[0]].clone();
        let value = match (row, wanted.as_slice()) {
            (Some(row), [_]) => first(row),
            (Some(row), all) => Datum::Int8(all.iter().filter_map(|at| row[*at].as_i64()).sum()),
            (None, _) => Datum::Null,
        };
        // What was never counted is 0, as in PostgreSQL, but a moment and what is told of a session or a function are unknown.
        let counted =
            !matches!(view.name, "pg_stat_activity" | "pg_stat_user_functions" | "pg_stat_xact_user_functions");
        Ok(match (value, result) {
            (Datum::Null, oid::INT4) if counted => Datum::Int4(0),
            (Datum::Null, oid::INT8) if counted => Datum::Int8(0),
            (Datum::Null, oid::FLOAT8) if counted => Datum::Float8(0.0),
            (value, _) => value,
        })
    }
}
