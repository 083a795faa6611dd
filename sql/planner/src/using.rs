//! JOIN ... USING and NATURAL JOIN: the condition of the named columns, and the columns that it makes of two.

use super::Planner;
use clearway_syntax::ast::JoinKind;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::expr::{Binder, Bound, BoundKind, Params, Scope, ScopeColumn};
use std::sync::Arc;

impl Planner<'_> {
    /// The conditions, and the columns of the join: the merged ones first.
    pub(super) fn using(
        &mut self,
        kind: JoinKind,
        list: &[String],
        mut l: Vec<ScopeColumn>,
        mut r: Vec<ScopeColumn>,
        params: &mut Params,
    ) -> Result<(Vec<Bound>, Vec<ScopeColumn>)> {
        let mut conditions = Vec::new();
        let mut merged = Vec::new();
        for (at, name) in list.iter().enumerate() {
            if list[..at].contains(name) {
                let message = format!("column name \"{name}\" appears more than once in USING clause");
                return Err(SqlError::new("42701", message));
            }
            let find = |side: &[ScopeColumn], which: &str| {
                if side.iter().filter(|c| !c.hidden && c.name == *name).count() > 1 {
                    let message = format!("common column name \"{name}\" appears more than once in {which} table");
                    return Err(SqlError::new(code::AMBIGUOUS_COLUMN, message));
                }
                side.iter().position(|c| !c.hidden && c.name == *name).ok_or_else(|| {
                    let message =
                        format!("column \"{name}\" specified in USING clause does not exist in {which} table");
                    SqlError::new(code::UNDEFINED_COLUMN, message)
                })
            };
            let (i, j) = (find(&l, "left")?, find(&r, "right")?);
            // As in PostgreSQL, errors about the two have no place in the text.
            let (a, b) = (l[i].read(0, 0), r[j].read(0, 0));
            let scope = Scope::default();
            let bound = self.bind(&scope, params, "JOIN/USING", None, |binder| {
                let value = merged_value(binder, kind, a.clone(), b.clone())?;
                Ok((binder.binary("=", a, b, 0)?, value))
            });
            let (condition, value) = bound.map_err(SqlError::nowhere)?;
            conditions.push(condition);
            let (keep, drop) = if kind == JoinKind::Right { (&mut r[j], &mut l[i]) } else { (&mut l[i], &mut r[j]) };
            drop.hidden = true;
            merged.push(keep.clone());
            keep.hidden = true;
            // The merged column answers to the name alone; its own table's name leads to the hidden one.
            if let Some(last) = merged.last_mut() {
                last.relation = None;
                if let Some(value) = value {
                    (last.ty, last.merged) = (value.ty, Some(Arc::new(value)));
                }
            }
        }
        Ok((conditions, merged.into_iter().chain(l).chain(r).collect()))
    }
}

/// The value of the column that USING makes of two, in their common type: that of the side whose rows are all there, and in a FULL JOIN that of either side;
/// none: it is the column of the kept side as it is.
fn merged_value(binder: &mut Binder<'_>, kind: JoinKind, a: Bound, b: Bound) -> Result<Option<Bound>> {
    if kind != JoinKind::Full && a.ty.oid == b.ty.oid {
        return Ok(None);
    }
    let (same, pos) = (a.ty == b.ty, a.pos);
    let ty = a.ty;
    let (mut both, common) = binder.unify(vec![a, b], "JOIN/USING")?;
    let ty = if same { ty } else { common.into() };
    Ok(Some(match kind {
        JoinKind::Full => Bound { kind: BoundKind::Coalesce(both), ty, pos },
        JoinKind::Right => both.swap_remove(1),
        _ => both.swap_remove(0),
    }))
}
