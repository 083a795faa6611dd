//! Rules that a level of a query must obey, and the position in the text at which PostgreSQL reports a violation.

use super::from::Layout;
use super::grouping::LevelStages;
use super::plan::{Distinct, Grouping, SortKey};
use super::{system_columns, walk};
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

/// Refuses columns that are neither grouped nor in an aggregate.
pub(super) fn check_grouped(e: &Bound, grouping: &Grouping, layout: &Layout) -> Result<()> {
    let keys = &grouping.keys;
    if keys.iter().any(|k| walk::same(k, e)) || matches!(e.kind, BoundKind::Unplaced(Unplaced::Grouping(_))) {
        return Ok(());
    }
    let of_system = system_columns::of_call(e);
    if let BoundKind::Column { index, level: 0 } = of_system.map_or(e, |(_, key)| key).kind {
        // What a primary key determines is one value in a group only where each grouping set holds the key.
        let in_all = |at: usize| grouping.sets.as_ref().is_none_or(|sets| sets.iter().all(|set| set.contains(&at)));
        let has = |slot: usize| {
            let is = |k: &Bound| matches!(k.kind, BoundKind::Column { index, level: 0 } if index == slot);
            keys.iter().enumerate().any(|(at, k)| is(k) && in_all(at))
        };
        let table = layout.tables.iter().find(|t| (t.base..=t.key_slot()).contains(&index));
        if table.is_some_and(|t| !t.shape.key.is_empty() && t.shape.key.iter().all(|c| has(t.base + c))) {
            return Ok(());
        }
        let column = layout.columns.iter().find(|c| c.index == index && c.relation.is_some());
        let shown = match (of_system, table, column) {
            (Some((name, _)), Some(table), _) => format!("{}.{name}", table.name),
            (_, _, Some(ScopeColumn { relation: Some(relation), name, .. })) => format!("{relation}.{name}"),
            _ => String::new(),
        };
        let message =
            format!("column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function");
        return Err(SqlError::new(code::GROUPING_ERROR, message).at(e.pos));
    }
    e.children().into_iter().try_for_each(|c| check_grouped(c, grouping, layout))
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
