//! The columns that every table has beside its own: `tableoid`, `ctid` and `xmax`, computed from the slot that has a row's key.
//!
//! No row stores them, and no list of columns has them: a name that no column of a query has is looked for here, as PostgreSQL looks for its
//! system attributes. Which expressions read them is known to the planner, which knows the form of a key; this module knows the names.

use super::bind::{Scope, ScopeColumn};
use super::bound::{Bound, BoundKind};
use super::functions::Function;
use crate::error::{Pos, Result, SqlError, code};
use crate::types::{Datum, Oid, oid};

/// The columns that every table has beside its own.
pub fn is_system_column(name: &str) -> bool {
    matches!(name, "tableoid" | "ctid" | "xmin" | "xmax" | "cmin" | "cmax")
}

/// What the system columns of a table in FROM are computed from.
#[derive(Debug)]
pub struct SystemColumns {
    /// The table.
    pub table: Oid,
    /// The slot of a row's key; it is NULL on the side of an outer join that has no row.
    pub key: usize,
    /// From a row's key and the table: the table.
    pub tableoid: &'static Function,
    /// From a row's key: its ctid; none: keys of this table are no numbers.
    pub ctid: Option<&'static Function>,
    /// The slot with the number of the transaction that has locked the row's version; none: the statement has no such slot.
    pub xmax: Option<usize>,
}

impl SystemColumns {
    fn column(&self, name: &str, level: u16, pos: Pos) -> Result<Bound> {
        let slot = |index, ty: Oid| Bound { kind: BoundKind::Column { index, level }, ty: ty.into(), pos };
        let call = |function: &'static Function, args| Bound {
            kind: BoundKind::Call { function, args },
            ty: function.result.into(),
            pos,
        };
        let key = slot(self.key, oid::BYTEA);
        match name {
            "tableoid" => {
                let table = Bound::constant(Datum::Oid(self.table), oid::OID, pos);
                Ok(call(self.tableoid, vec![key, table]))
            }
            "ctid" => match self.ctid {
                Some(function) => Ok(call(function, vec![key])),
                None => Err(SqlError::unsupported("ctid of a table whose primary key is not one integer").at(pos)),
            },
            "xmax" => match self.xmax {
                Some(index) => Ok(slot(index, oid::XID)),
                None => Err(SqlError::unsupported("xmax outside of RETURNING of an INSERT").at(pos)),
            },
            _ => Err(SqlError::unsupported(format!("the system column {name}")).at(pos)),
        }
    }
}

/// The system column of a table of this scope, or of the one table that has system columns.
///
/// # Errors
/// 42702, where several tables have it; 0A000 for one that is not computed.
pub(super) fn find(
    scope: &Scope<'_>,
    relation: Option<&str>,
    name: &str,
    level: u16,
    pos: Pos,
) -> Result<Option<Bound>> {
    if !is_system_column(name) {
        return Ok(None);
    }
    let has = |c: &&ScopeColumn| c.relation.is_some() && c.row.as_ref().is_some_and(|row| row.system.is_some());
    let mut with = scope.columns.iter().filter(|c| relation.is_none_or(|r| c.relation.as_deref() == Some(r)) && has(c));
    let Some(first) = with.next() else { return Ok(None) };
    if with.any(|c| c.relation != first.relation) {
        let message = format!("column reference \"{name}\" is ambiguous");
        return Err(SqlError::new(code::AMBIGUOUS_COLUMN, message).at(pos));
    }
    let Some(row) = &first.row else { return Ok(None) };
    // They belong to the table as a whole, so that the right to read all of it is asked for.
    row.note_all(first);
    row.system.as_ref().map(|system| system.column(name, level, pos)).transpose()
}
