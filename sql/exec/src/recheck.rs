//! The second judgement of a row that has changed since the statement read it (EXE-2), after PostgreSQL's EvalPlanQual.
//!
//! PostgreSQL makes a join of EXISTS and IN, and judges the new version of the row together with the same rows of the other side. Another
//! row of the other side that would match the new version does not count, nor does one that would now make NOT EXISTS false. So:
//! - EXE-6: a new version is judged with the partner row that the old version had in each `EXISTS` and `= ANY` that WHERE requires; a
//!   `NOT EXISTS` that held is not evaluated again. Subqueries in other places run again, in the statement's snapshot. In an outer join it
//!   keeps the row that the old version had met, or has nulls where it does not meet that row any more.

use super::nodes::Rows;
use super::{Cx, Row};
use clearway_planner::plan::{Body, Select};
use clearway_syntax::error::Result;
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;

/// A condition that PostgreSQL makes a join of.
enum Joined<'e> {
    /// The subquery's number; for `= ANY` the left side.
    Partner(usize, Option<&'e Bound>),
    NoPartner,
}

impl<'a> Cx<'a> {
    /// Whether a row that was read as `old` meets a condition as it is now.
    pub(super) async fn holds_again(self, condition: Option<&Bound>, old: &Row, row: &Row) -> Result<bool> {
        let Some(condition) = condition else { return Ok(true) };
        let one = std::slice::from_ref(condition);
        let list = if let BoundKind::And(list) = &condition.kind { list.as_slice() } else { one };
        for e in list {
            let holds = match self.joined(e) {
                None => self.holds(Some(e), row).await?,
                Some(Joined::NoPartner) => true,
                Some(Joined::Partner(id, left)) => self.partner_fits((id, left), old, row).await?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Replaces by nulls what a changed row had met in outer joins and does not meet any more.
    pub(super) async fn leave_outer(self, select: &Select, row: &mut Row) -> Result<()> {
        for (on, nulls) in &select.outer {
            if !self.holds(Some(on), row).await? {
                row[nulls.clone()].fill(Datum::Null);
            }
        }
        Ok(())
    }

    fn joined<'e>(self, e: &'e Bound) -> Option<Joined<'e>> {
        match &e.kind {
            BoundKind::Subquery { id, usage: SubqueryUse::Exists, correlated: true, .. } => {
                self.plain_select(*id)?.recheck.is_some().then_some(Joined::Partner(*id, None))
            }
            BoundKind::Not(arg) => match self.joined(arg)? {
                Joined::Partner(_, None) => Some(Joined::NoPartner),
                _ => None,
            },
            BoundKind::Subquery { id, usage, args, correlated: false } => match (usage, args.as_slice()) {
                (SubqueryUse::Quantified { op: Op::Eq, all: false }, [left])
                    if !matches!(left.kind, BoundKind::Row(_)) =>
                {
                    self.plain_select(*id).map(|_| Joined::Partner(*id, Some(left)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A subquery that can be one side of a join.
    fn plain_select(self, id: usize) -> Option<&'a Select> {
        let query = &self.run.plan.subqueries.get(id)?.query;
        match &query.body {
            Body::Select(s) if query.limit.is_none() && query.offset.is_none() => {
                (s.grouping.is_none() && s.locks.is_empty()).then_some(&**s)
            }
            _ => None,
        }
    }

    /// Whether the row of a subquery that went with the old version goes with the new one.
    async fn partner_fits(self, (id, left): (usize, Option<&Bound>), old: &Row, row: &Row) -> Result<bool> {
        let Some(select) = self.plain_select(id) else { return Ok(false) };
        let wanted = match left {
            Some(left) => Some(self.value(left, old).await?),
            None => None,
        };
        let outer: Vec<&[Datum]> = std::iter::once(old.as_slice()).chain(self.outer.iter().copied()).collect();
        let cx = Cx { run: self.run, outer: &outer };
        let mut source = Rows::new(select.source.clone(), Vec::new());
        let partner = loop {
            cx.breathe().await?;
            let Some(partner) = source.pull(cx).await? else { return Ok(false) };
            if !cx.holds(select.filter.as_ref(), &partner).await? {
                continue;
            }
            match &wanted {
                Some(wanted) if cx.value(&select.targets[0], &partner).await? != *wanted => {}
                _ => break partner,
            }
        };
        let now: Vec<&[Datum]> = std::iter::once(row.as_slice()).chain(self.outer.iter().copied()).collect();
        let cx = Cx { run: self.run, outer: &now };
        if let (Some(left), Some(wanted)) = (left, &wanted)
            && self.value(left, row).await? != *wanted
        {
            return Ok(false);
        }
        cx.holds(select.recheck.as_ref(), &partner).await
    }
}
