//! The rows of a system table that a condition selects by a column whose values are known when the table is read (VKY-1).

use super::Cx;
use clearway_planner::plan::SystemScan;
use clearway_planner::sought::Values;
use clearway_syntax::error::Result;
use clearway_values::expr::Bound;
use clearway_values::types::{Datum, Oid};

/// Which rows of a table of the system are asked for.
pub struct SoughtRows {
    /// The name of a column.
    pub column: &'static str,
    /// Its place.
    pub place: usize,
    /// The values that it has in these rows.
    pub keys: Keys,
}

/// Values of a column, each once.
pub enum Keys {
    /// Numbers of objects.
    Oids(Vec<Oid>),
    /// Names.
    Names(Vec<String>),
}

impl Keys {
    /// Whether a column with this value is asked for.
    pub fn have(&self, value: &Datum) -> bool {
        match self {
            Keys::Oids(oids) => value.as_i64().is_some_and(|v| oids.iter().any(|oid| i64::from(*oid) == v)),
            Keys::Names(names) => value.as_str().is_some_and(|v| names.iter().any(|name| name == v)),
        }
    }
}

impl Cx<'_> {
    /// What the conditions of a scan ask for, and the place of the one that says so; none: all rows.
    pub(super) async fn sought(self, scan: &SystemScan, prefix: &[Datum]) -> Result<Option<(SoughtRows, usize)>> {
        let Some((at, place, found)) = scan.found() else { return Ok(None) };
        let mut values = Vec::new();
        match &found {
            Values::Text(text) => values.push(Datum::text(*text)),
            Values::List(list) => {
                for e in *list {
                    self.breathe().await?;
                    values.push(self.value(e, prefix).await?);
                }
            }
            Values::Array(e) => self.elements(e, prefix, &mut values).await?,
            Values::Rows(e) => self.elements(e, prefix, &mut values).await?,
        }
        let (column, ty) = scan.view.columns[at];
        let keys = if matches!(ty, clearway_values::types::oid::NAME | clearway_values::types::oid::TEXT) {
            let mut names: Vec<String> = values.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
            names.sort_unstable();
            names.dedup();
            Keys::Names(names)
        } else {
            // A number that no oid is finds nothing.
            let number = |v: &Datum| v.as_i64().and_then(|v| Oid::try_from(v).ok());
            let mut oids: Vec<Oid> = values.iter().filter_map(number).collect();
            oids.sort_unstable();
            oids.dedup();
            Keys::Oids(oids)
        };
        Ok(Some((SoughtRows { column, place: at, keys }, place)))
    }

    async fn elements(self, e: &Bound, prefix: &[Datum], out: &mut Vec<Datum>) -> Result<()> {
        if let Datum::Array(array) = self.value(e, prefix).await? {
            out.extend(array.values.iter().cloned());
        }
        Ok(())
    }
}
