//! Plans an assignment to a part of a column: an element, a field or a member.

use super::Planner;
use clearway_engine::catalog::Relation;
use clearway_syntax::ast::{ExprKind, Index};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt::Assignment;
use clearway_values::expr::bind_assign::sets_part;
use clearway_values::expr::{Bound, BoundKind, Params, Scope};
use clearway_values::types::SqlType;

impl Planner<'_> {
    /// The whole column with one more of its parts set; `old` is what the statement has made of it before.
    pub(super) fn part_assigned(
        &mut self,
        relation: &Relation,
        (column, pos): (usize, Pos),
        old: Option<Bound>,
        a: &Assignment,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Bound> {
        let c = &relation.columns[column];
        if c.generated {
            let message = format!("column \"{}\" can only be updated to DEFAULT", c.name);
            let detail = format!("Column \"{}\" is a generated column.", c.name);
            return Err(SqlError::new("428C9", message).detail(detail));
        }
        if matches!(&*a.value.kind, ExprKind::Default) {
            let field = matches!(a.part.last(), Some(Index::Field(..)));
            let message =
                if field { "cannot set a subfield to DEFAULT" } else { "cannot set an array element to DEFAULT" };
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos));
        }
        let base = match old {
            Some(old) if sets_part(&old) => old,
            Some(_) => {
                let message = format!("multiple assignments to same column \"{}\"", c.name);
                return Err(SqlError::new(code::SYNTAX_ERROR, message));
            }
            None => {
                // The table that is changed comes first. Its old value needs no right to read it.
                let found = scope.columns.iter().find(|s| s.name == c.name && !s.hidden);
                let index = found.ok_or_else(|| SqlError::internal("a column that is set is not in scope"))?.index;
                let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
                Bound { kind: BoundKind::Column { index, level: 0 }, ty, pos }
            }
        };
        let base = Bound { pos, ..base };
        let bound = self.bind(scope, params, "UPDATE", None, |b| b.with_part(base, &a.part, &a.value, &c.name))?;
        self.note(&bound);
        Ok(bound)
    }
}
