//! FETCH FIRST ... WITH TIES: rows that sort as the last one that the count gives are given, too.
//!
//! The executor must compare the keys of the order. Over the output of VALUES and of set operations it has them; a SELECT gives them as further
//! values behind those of its target list, which `exec::ties` takes off.

use super::plan::{Body, OutputColumn, Query};
use clearway_syntax::ast::{ExprKind, Literal, LockWait, Query as AstQuery};
use clearway_syntax::error::{Result, SqlError, code};

impl Query {
    /// All rows of a body, as they come.
    pub fn of(body: Body, columns: Vec<OutputColumn>) -> Query {
        Query { body, sort: Vec::new(), limit: None, offset: None, ties: false, columns }
    }
}

/// Refuses what WITH TIES does not go together with. As in PostgreSQL a count that is written as NULL is refused; another one that is null when the
/// query runs means all rows.
///
/// # Errors
/// 42601, 2201W.
pub(super) fn check(q: &AstQuery) -> Result<()> {
    let refuse = |message: &str| Err(SqlError::new(code::SYNTAX_ERROR, message));
    if !q.ties {
        return Ok(());
    }
    if q.order_by.is_empty() {
        return refuse("WITH TIES cannot be specified without ORDER BY clause");
    }
    if let Some(ExprKind::Literal(Literal::Null)) = q.limit.as_ref().map(|limit| &*limit.kind) {
        return Err(SqlError::new("2201W", "row count cannot be null in FETCH FIRST ... WITH TIES clause"));
    }
    if q.locking.iter().any(|l| l.wait == LockWait::SkipLocked) {
        return refuse("SKIP LOCKED and WITH TIES options cannot be used together");
    }
    Ok(())
}

/// Has a SELECT give the keys of its order behind its values.
pub(super) fn give_keys(query: &mut Query) {
    if let (true, Body::Select(select)) = (query.ties, &mut query.body) {
        select.targets.extend(query.sort.iter().map(|key| key.expr.clone()));
    }
}
