//! Names in the statements of PL/pgSQL: what is no column may be a variable, or a field of one.
//!
//! Source: PostgreSQL 15's `resolve_column_ref` and `plpgsql_post_column_ref`.

use super::bind::Binder;
use super::bind_rows::field_at;
use super::bound::{Bound, BoundKind};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::QualName;
use crate::syntax::plpgsql::names::{Names, Place, Slot};
use crate::syntax::plpgsql::tree::Conflict;
use crate::types::datum::RowShape;
use crate::types::{oid, user};
use std::collections::HashMap;
use std::sync::Arc;

/// The variables that a statement may name; each is the parameter of its number.
#[derive(Clone, Debug)]
pub struct Variables {
    /// The names of the body.
    pub names: Arc<Names>,
    /// Where the statement stands among them.
    pub at: Place,
    /// How many of the variables are arguments: those alone have numbers.
    pub arguments: usize,
    /// What a name means that is a column, too.
    pub conflict: Conflict,
    /// What records are at the moment; none: nothing has been assigned to one.
    pub records: HashMap<Slot, Option<Arc<RowShape>>>,
}

impl Variables {
    /// What a record is at the moment.
    pub fn shape(&self, slot: Slot) -> Option<Arc<RowShape>> {
        self.records.get(&slot).cloned().flatten()
    }
}

impl Binder<'_> {
    fn variables(&self) -> Option<&Variables> {
        self.params.names.as_ref()?.variables.as_ref()
    }

    /// Whether a parameter can be named by its number.
    pub(super) fn is_numbered(&self, parameter: u32) -> bool {
        self.variables().is_none_or(|variables| parameter as usize <= variables.arguments)
    }

    /// The shape of a record that is a variable.
    pub(super) fn shape_of_variable(&self, parameter: u32) -> Option<Arc<RowShape>> {
        self.variables()?.shape((parameter as usize).checked_sub(1)?)
    }

    /// What a name means in a statement of PL/pgSQL; `column` finds what it means elsewhere.
    pub(super) fn column_or_variable(
        &self,
        name: &QualName,
        column: impl FnOnce(&Self, &QualName) -> Result<Bound>,
    ) -> Result<Bound> {
        let Some(variables) = self.variables() else { return column(self, name) };
        if variables.conflict == Conflict::Variable
            && let Some(variable) = self.variable(variables, name)?
        {
            return Ok(variable);
        }
        match column(self, name) {
            Ok(column) => match self.variable(variables, name) {
                Ok(Some(_)) if variables.conflict == Conflict::Error => {
                    let message = format!("column reference \"{}\" is ambiguous", name.dotted());
                    let detail = "It could refer to either a PL/pgSQL variable or a table column.";
                    Err(SqlError::new(code::AMBIGUOUS_COLUMN, message).detail(detail).at(name.pos))
                }
                _ => Ok(column),
            },
            Err(e) if matches!(e.code(), code::UNDEFINED_COLUMN | code::UNDEFINED_TABLE) => {
                self.variable(variables, name)?.ok_or(e)
            }
            Err(e) => Err(e),
        }
    }

    /// The variable, or the field of one, that a name means.
    fn variable(&self, variables: &Variables, name: &QualName) -> Result<Option<Bound>> {
        let Some(found) = variables.names.find(variables.at, &name.parts) else { return Ok(None) };
        let pos: Pos = name.pos;
        let ty = self.params.types.get(found.slot).copied().flatten().unwrap_or(oid::UNKNOWN);
        let mut value = Bound { kind: BoundKind::Param(found.slot as u32 + 1), ty: user::base(ty.into()), pos };
        if found.used == name.parts.len()
            && let Some(constant) = self.params.values.as_ref().and_then(|values| values.get(found.slot))
        {
            value.kind = constant.kind.clone();
        }
        let record = variables.records.get(&found.slot);
        for (depth, field) in name.parts[found.used..].iter().enumerate() {
            let record = record.filter(|_| depth == 0);
            let shape = match record {
                Some(shape) => {
                    let shown = &name.parts[found.used - 1];
                    let unassigned = || {
                        let detail = "The tuple structure of a not-yet-assigned record is indeterminate.";
                        SqlError::new("55000", format!("record \"{shown}\" is not assigned yet")).detail(detail)
                    };
                    shape.clone().ok_or_else(unassigned)?
                }
                None => match self.shape_of(&value) {
                    Some(shape) => shape,
                    None => return Ok(None),
                },
            };
            let Some(at) = (0..shape.types.len()).find(|i| shape.name(*i) == *field) else {
                return match record {
                    Some(_) => {
                        let shown = &name.parts[found.used - 1];
                        let message = format!("record \"{shown}\" has no field \"{field}\"");
                        Err(SqlError::new(code::UNDEFINED_COLUMN, message))
                    }
                    None => Ok(None),
                };
            };
            value = field_at(&value, at, &shape, pos);
        }
        Ok(Some(value))
    }
}
