//! Plans what SET assigns: one value to one column, or a row or the one row of a query to several.

use super::Planner;
use clearway_engine::catalog::Relation;
use clearway_syntax::ast::{Expr, ExprKind, Query};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt::Assignment;
use clearway_values::expr::bind::Subqueries;
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::{AggregateUse, Bound, BoundKind, Params, Scope};
use clearway_values::types::cast::Context;
use clearway_values::types::{Datum, SqlType, oid};

/// Columns and their new values. The values of several columns that come from one row of a query stand at the last of them
/// ([`SubqueryUse::Fields`]), the others have a null there that it replaces.
type Set = Vec<(usize, Bound)>;

/// What is assigned to one column.
enum Value<'a> {
    /// An expression.
    Written(&'a Expr),
    /// A field of `x.*` in a row.
    Field(Bound),
}

fn differ_in_number(pos: Pos) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, "number of columns does not match number of values").at(pos)
}

impl Planner<'_> {
    pub(super) fn assignments(
        &mut self,
        set: &[Assignment],
        relation: &Relation,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Set> {
        let mut out = Set::new();
        params.begin_list();
        for a in set {
            let values = match (&*a.value.kind, a.multiple) {
                (_, false) => vec![Value::Written(&a.value)],
                (ExprKind::Row(items), true) => self.items_assigned(items, scope, params)?,
                (ExprKind::Subquery(query), true) => {
                    self.row_assigned(a, query, relation, scope, params, &mut out)?;
                    continue;
                }
                (_, true) => {
                    let what = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, what).at(a.value.pos));
                }
            };
            if values.len() != a.columns.len() {
                return Err(differ_in_number(a.value.pos));
            }
            for (name, value) in a.columns.iter().zip(values) {
                self.value_assigned(a, name, value, relation, scope, params, &mut out)?;
            }
        }
        Ok(out)
    }

    /// The values of ROW(...); `x.*` gives all fields of x.
    fn items_assigned<'a>(
        &mut self,
        items: &'a [Expr],
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Vec<Value<'a>>> {
        let mut out = Vec::new();
        for item in items {
            match &*item.kind {
                ExprKind::AllFields(row) => {
                    let fields = self.bind(scope, params, "UPDATE", None, |b| b.all_fields(row))?;
                    out.extend(fields.into_iter().map(|(_, field)| Value::Field(field)));
                }
                _ => out.push(Value::Written(item)),
            }
        }
        Ok(out)
    }

    #[allow(clippy::too_many_arguments)]
    fn value_assigned(
        &mut self,
        a: &Assignment,
        (name, pos): &(String, Pos),
        value: Value<'_>,
        relation: &Relation,
        scope: &Scope<'_>,
        params: &mut Params,
        out: &mut Set,
    ) -> Result<()> {
        let column = column_set(relation, name, *pos)?;
        if !a.part.is_empty() {
            let before = out.iter().position(|o| o.0 == column);
            let old = before.map(|at| out[at].1.clone());
            let set = self.part_assigned(relation, (column, *pos), old, a, scope, params)?;
            match before {
                Some(at) => out[at].1 = set,
                None => out.push((column, set)),
            }
            return Ok(());
        }
        let to_default = matches!(&value, Value::Written(e) if matches!(&*e.kind, ExprKind::Default));
        let ty = may_be_set(relation, column, to_default, out)?;
        let bound = match value {
            Value::Written(e) => self.assigned(relation, column, ty, e, scope, params, "UPDATE")?,
            Value::Field(field) => {
                let bound = self.field_assigned(field, ty, name, scope, params)?;
                self.note(&bound);
                bound
            }
        };
        out.push((column, bound));
        Ok(())
    }

    fn field_assigned(
        &mut self,
        field: Bound,
        to: SqlType,
        name: &str,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Bound> {
        let (from, pos) = (field.ty, field.pos);
        self.bind(scope, params, "UPDATE", None, |b| {
            b.coerce(field, to, Context::Assignment)?.ok_or_else(|| super::checks::mismatch(name, to, from, pos))
        })
    }

    /// `(a, b) = (SELECT ...)`: the query runs once for a row, and its one row gives all values.
    fn row_assigned(
        &mut self,
        a: &Assignment,
        query: &Query,
        relation: &Relation,
        scope: &Scope<'_>,
        params: &mut Params,
        out: &mut Set,
    ) -> Result<()> {
        let pos = a.value.pos;
        let (mut columns, mut types) = (Vec::new(), Vec::new());
        scope.aggregate_use.set(AggregateUse::Refused("UPDATE"));
        let (id, found, correlated) = Subqueries::bind(self, query, scope, params, false)?;
        if found.len() != a.columns.len() {
            return Err(differ_in_number(pos));
        }
        for (name, pos) in &a.columns {
            let column = column_set(relation, name, *pos)?;
            types.push(may_be_set(relation, column, false, out)?);
            out.push((column, Bound::constant(Datum::Null, oid::UNKNOWN, *pos)));
            columns.push(column);
        }
        let plan = self.subplans[id].query.clone();
        let name = |i: usize| a.columns[i].0.clone();
        self.subplans[id].query = self.assign_query(plan, &types, name, params)?;
        if let Some(last) = out.last_mut() {
            let usage = SubqueryUse::Fields { columns: columns.into() };
            let kind = BoundKind::Subquery { id, usage, args: Vec::new(), correlated };
            last.1 = Bound { kind, ty: oid::RECORD.into(), pos };
        }
        Ok(())
    }
}

fn column_set(relation: &Relation, name: &str, pos: Pos) -> Result<usize> {
    relation.columns.iter().position(|c| c.name == *name && !c.is_dropped()).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
        SqlError::new(code::UNDEFINED_COLUMN, message).at(pos)
    })
}

/// The type of a column that is set; `to_default`: to DEFAULT.
fn may_be_set(relation: &Relation, column: usize, to_default: bool, before: &Set) -> Result<SqlType> {
    let c = &relation.columns[column];
    if before.iter().any(|o| o.0 == column) {
        let message = format!("multiple assignments to same column \"{}\"", c.name);
        return Err(SqlError::new(code::SYNTAX_ERROR, message));
    }
    super::generated::check_set(c, to_default)?;
    if c.identity == Some('a') && !to_default {
        return Err(SqlError::new("428C9", format!("column \"{}\" can only be updated to DEFAULT", c.name))
            .detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", c.name)));
    }
    Ok(SqlType { oid: c.type_oid, modifier: c.type_mod })
}
