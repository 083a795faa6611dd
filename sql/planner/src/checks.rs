//! Rules that a level of a query must obey, and the position in the text at which PostgreSQL reports a violation.

use super::from::Layout;
use super::grouping::LevelStages;
use super::plan::{Distinct, Grouping, SortKey, Subplan};
use super::{system_columns, walk};
use clearway_base::stack;
use clearway_syntax::ast::{Expr, ExprKind, Locking, Query as AstQuery, QueryBody, Select as AstSelect, Target};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt;
use clearway_values::expr::bound::Unplaced;
use clearway_values::expr::{Bound, BoundKind, ScopeColumn};
use clearway_values::types::order::need_equality;
use clearway_values::types::{SqlType, format_type};

/// Refuses an order that DISTINCT can't keep.
pub(super) fn check_distinct(
    distinct: Option<&Distinct>,
    targets: &[Bound],
    sort: &[SortKey],
    s: &AstSelect,
    q: &AstQuery,
) -> Result<()> {
    match distinct {
        None => Ok(()),
        Some(Distinct::Row) => {
            let loose = sort.iter().position(|k| !targets.iter().any(|t| walk::same(t, &k.expr)));
            loose.map_or(Ok(()), |at| {
                let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message).at(leftmost(&q.order_by[at].expr)))
            })?;
            targets.iter().try_for_each(|e| need_equality(e.ty, e.pos))
        }
        Some(Distinct::On(on)) => {
            for (at, e) in on.iter().enumerate() {
                let pos = s.distinct.as_ref().and_then(|list| list.get(at)).map_or(q.pos, leftmost);
                need_equality(e.ty, pos)?;
            }
            let member = |k: &SortKey| on.iter().position(|e| walk::same(e, &k.expr));
            let first_loose = sort.iter().position(|k| member(k).is_none()).unwrap_or(sort.len());
            let unsorted = on.iter().position(|e| !sort[..first_loose].iter().any(|k| walk::same(e, &k.expr)));
            match unsorted {
                Some(at) if first_loose < sort.len() => {
                    let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                    let pos = s.distinct.as_ref().and_then(|list| list.get(at)).map_or(q.pos, leftmost);
                    Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message).at(pos))
                }
                _ => Ok(()),
            }
        }
    }
}

/// Where the text of an expression begins; the position of a binary operator is behind its left side.
pub(super) fn leftmost(e: &Expr) -> Pos {
    match &*e.kind {
        ExprKind::Binary { left, .. } => leftmost(left).min(e.pos),
        ExprKind::And(list) | ExprKind::Or(list) => list.first().map_or(e.pos, leftmost),
        _ => e.pos,
    }
}

/// The position of the first target of a query.
pub(super) fn first_target(q: &AstQuery) -> Pos {
    match &q.body {
        QueryBody::Select(s) => match s.targets.first() {
            Some(Target::Expr { expr, .. }) => leftmost(expr),
            Some(Target::Star(pos)) => *pos,
            Some(Target::QualifiedStar(name)) => name.pos,
            None => q.pos,
        },
        QueryBody::Values(rows) => rows.first().and_then(|r| r.first()).map_or(q.pos, leftmost),
        QueryBody::SetOp { left, .. } => first_target(left),
    }
}

/// The columns of a level that stand for one value in a group.
pub(super) struct GroupCheck<'a> {
    pub grouping: &'a Grouping,
    pub layout: &'a Layout,
    pub subplans: &'a [Subplan],
}

impl GroupCheck<'_> {
    /// Refuses columns that are neither grouped nor in an aggregate.
    pub fn check(&self, e: &Bound) -> Result<()> {
        if self.is_key(e, 0) || matches!(e.kind, BoundKind::Unplaced(Unplaced::Grouping(_))) {
            return Ok(());
        }
        if let Some(shown) = self.ungrouped(e, 0) {
            let message =
                format!("column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function");
            return Err(SqlError::new(code::GROUPING_ERROR, message).at(e.pos));
        }
        self.subquery(e, 0)?;
        e.children().into_iter().try_for_each(|c| self.check(c))
    }

    /// The same of an expression in a subquery so many levels below. An expression of columns counts as a key there too, which it does not in
    /// PostgreSQL: a function that was inlined may have made the subquery.
    fn check_below(&self, e: &Bound, depth: u16) -> Result<()> {
        if self.is_key(e, depth) {
            return Ok(());
        }
        if let Some(shown) = self.ungrouped(e, depth) {
            let message = format!("subquery uses ungrouped column \"{shown}\" from outer query");
            return Err(SqlError::new(code::GROUPING_ERROR, message).at(e.pos));
        }
        self.subquery(e, depth)?;
        stack::deeper(|| e.children().into_iter().try_for_each(|c| self.check_below(c, depth)))
    }

    fn subquery(&self, e: &Bound, depth: u16) -> Result<()> {
        let BoundKind::Subquery { id, correlated: true, .. } = e.kind else { return Ok(()) };
        let Some(sub) = self.subplans.get(id) else { return Ok(()) };
        let mut found = Ok(());
        walk::query_exprs(&sub.query, depth + 1, &mut |e, depth| {
            if found.is_ok() {
                found = self.check_below(e, depth);
            }
        });
        found
    }

    fn is_key(&self, e: &Bound, depth: u16) -> bool {
        let keys = &self.grouping.keys;
        if depth == 0 || keys.is_empty() || e.lowest_level() != Some(depth) {
            return depth == 0 && keys.iter().any(|k| walk::same(k, e));
        }
        let mut here = e.clone();
        here.lift(depth);
        keys.iter().any(|k| walk::same(k, &here))
    }

    /// The name of a column that is not grouped.
    fn ungrouped(&self, e: &Bound, depth: u16) -> Option<String> {
        let Self { grouping, layout, .. } = self;
        let of_system = system_columns::of_call(e);
        let BoundKind::Column { index, level } = of_system.map_or(e, |(_, key)| key).kind else { return None };
        if level != depth || super::grouping::is_lifted(index) {
            return None;
        }
        // What a primary key determines is one value in a group only where each grouping set holds the key.
        let in_all = |at: usize| grouping.sets.as_ref().is_none_or(|sets| sets.iter().all(|set| set.contains(&at)));
        let has = |slot: usize| {
            let is = |k: &Bound| matches!(k.kind, BoundKind::Column { index, level: 0 } if index == slot);
            grouping.keys.iter().enumerate().any(|(at, k)| is(k) && in_all(at))
        };
        let table = layout.tables.iter().find(|t| (t.base..=t.key_slot()).contains(&index));
        if table.is_some_and(|t| !t.shape.key.is_empty() && t.shape.key.iter().all(|c| has(t.base + c))) {
            return None;
        }
        let column = layout.columns.iter().find(|c| c.index == index && c.relation.is_some());
        Some(match (of_system, table, column) {
            (Some((name, _)), Some(table), _) => format!("{}.{name}", table.name),
            (_, _, Some(ScopeColumn { relation: Some(relation), name, .. })) => format!("{relation}.{name}"),
            _ => String::new(),
        })
    }
}

/// Refuses to lock rows of the nullable side of an outer join. Where WHERE looks at that side, rows of nulls may not come through: PostgreSQL
/// makes an inner join of it.
pub(super) fn lockable_side(layout: &Layout, slot: usize, conditions: &[Bound], locking: &Locking) -> Result<()> {
    match layout.item.nullable_side(slot) {
        Some(side) if !conditions.iter().any(|e| mentions(e, &side)) => {
            let clause = locking.strength.sql();
            let message = format!("{clause} cannot be applied to the nullable side of an outer join");
            Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message))
        }
        _ => Ok(()),
    }
}

/// Whether an expression looks at one of these slots.
fn mentions(e: &Bound, slots: &std::ops::Range<usize>) -> bool {
    let mut found = false;
    super::walk::each(e, &mut |e| {
        found |= matches!(&e.kind, BoundKind::Column { index, level: 0 } if slots.contains(index));
    });
    found
}

/// The clause of a query that excludes row locks; none: it has none.
pub(super) fn what_locks_exclude(s: &AstSelect, behind: &LevelStages) -> Option<&'static str> {
    Some(if s.distinct.is_some() {
        "DISTINCT clause"
    } else if !s.group_by.is_empty() {
        "GROUP BY clause"
    } else if s.having.is_some() {
        "HAVING clause"
    } else if behind.grouping.is_some() {
        "aggregate functions"
    } else if !behind.windows.is_empty() {
        "window functions"
    } else if behind.sets.is_some() {
        "set-returning functions in the target list"
    } else {
        return None;
    })
}

/// An expression that does not fit the column to which it goes.
pub(super) fn mismatch(column: &str, to: SqlType, from: SqlType, pos: Pos) -> SqlError {
    let message = format!(
        "column \"{column}\" is of type {} but expression is of type {}",
        format_type(SqlType::new(to.oid)),
        format_type(SqlType::new(from.oid))
    );
    SqlError::new(code::DATATYPE_MISMATCH, message).hint("You will need to rewrite or cast the expression.").at(pos)
}

pub(super) fn same_set(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().all(|x| b.contains(x))
}

/// As many values as columns.
pub(super) fn check_count(columns: usize, values: usize, s: &stmt::Insert, pos: impl Fn(usize) -> Pos) -> Result<()> {
    if values > columns {
        let message = "INSERT has more expressions than target columns";
        return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos(columns)));
    }
    if !s.columns.is_empty() && values < columns {
        let message = "INSERT has more target columns than expressions";
        return Err(SqlError::new(code::SYNTAX_ERROR, message).at(s.columns[values].1));
    }
    Ok(())
}
