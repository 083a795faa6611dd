//! WITH: the common table expressions (CTEs) of a query.
//!
//! - Plan: a CTE is planned once, and all references share the plan. A CTE that reads rows of an outer query, or a working table, is
//!   planned anew at each reference.
//! - Rows: the rows of a CTE with several references, or with MATERIALIZED, are computed once, only as far as a reference asks for them,
//!   and kept. With NOT MATERIALIZED they are computed at each reference.
//! - Recursion: a recursive CTE reads a working table.
//! - Changes: a CTE that changes rows runs before the rest of the statement; a reference to it reads the rows of its RETURNING.

use super::Planner;
use super::from::{Layout, Placed};
use super::leaf::{derived_leaf, work_leaf};
use super::plan::{Body, OutputColumn, Query, WithChange};
use super::recursion;
use super::walk;
use clearway_syntax::ast::{Alias, Cte, Query as AstQuery, QueryBody, SetOp, TableRef, With};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_syntax::stmt::Statement;
use clearway_values::expr::{Params, Scope};
use clearway_values::types::{SqlType, format_type};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How high plans of expressions of WITH may stand on each other.
const HEIGHT_MAX: usize = 1_000;

/// Rows that a statement computes once for several references.
#[derive(Debug)]
pub struct KeptRows {
    /// Their number in the statement.
    pub id: usize,
    /// The name that WITH gives them.
    pub name: String,
    /// References to them.
    pub uses: AtomicUsize,
    /// What the statement says about it.
    pub materialized: Option<bool>,
}

impl KeptRows {
    /// Whether they are kept; else each reference computes them.
    pub fn is_kept(&self) -> bool {
        self.materialized.unwrap_or(self.uses.load(Relaxed) > 1)
    }
}

/// A plan that all references of an expression share.
#[derive(Clone)]
struct Shared {
    plan: Arc<Query>,
    kept: Arc<KeptRows>,
    /// Such plans that stand on each other up to this one.
    height: usize,
}

/// A name that WITH gives.
#[derive(Clone)]
pub(super) struct Named {
    /// What it stands for.
    pub cte: Arc<Cte>,
    /// WITH RECURSIVE: its query may name itself.
    recursive: bool,
    /// Inside of its own recursive term: the working table and its columns.
    working: Option<(usize, Arc<[OutputColumn]>)>,
    /// It changes rows: where those of its RETURNING are found, and their columns; none without RETURNING.
    returned: Option<Option<(usize, Arc<[OutputColumn]>)>>,
    /// Its plan, if all references can share it.
    planned: Option<Shared>,
}

impl Planner<'_> {
    /// Takes up the names of a WITH clause.
    pub(super) fn with(&mut self, with: &With, parent: Option<&Scope<'_>>, params: &mut Params) -> Result<()> {
        for (at, cte) in with.ctes.iter().enumerate() {
            if with.ctes[..at].iter().any(|before| before.name == cte.name) {
                let message = format!("WITH query name \"{}\" specified more than once", cte.name);
                return Err(SqlError::new("42712", message).at(cte.pos));
            }
            let returned = match &*cte.statement {
                Statement::Query(_) => None,
                _ => Some(self.with_change(cte, params)?),
            };
            let cte = Arc::new(cte.clone());
            let planned = match &*cte.statement {
                Statement::Query(q) => self.shared(&cte, q, with.recursive, parent, params)?,
                _ => None,
            };
            self.ctes.push(Named { cte, recursive: with.recursive, working: None, returned, planned });
        }
        Ok(())
    }

    /// Plans an expression; none if its references can't share the plan.
    fn shared(
        &mut self,
        cte: &Arc<Cte>,
        q: &AstQuery,
        recursive: bool,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Option<Shared>> {
        let around = std::mem::take(&mut self.height);
        let (known, uses) = (self.ctes.len(), self.working_uses.len());
        let plan = if recursive { self.recursive(cte, q, parent, params) } else { self.query(q, parent, params) };
        self.ctes.truncate(known);
        let height = std::mem::replace(&mut self.height, around) + 1;
        let plan = plan?;
        if self.working_uses.len() != uses || (parent.is_some() && walk::is_correlated(&plan, &self.subplans)) {
            return Ok(None);
        }
        let kept = KeptRows {
            id: self.kept,
            name: cte.name.clone(),
            uses: AtomicUsize::new(0),
            materialized: cte.materialized,
        };
        self.kept += 1;
        Ok(Some(Shared { plan, kept: Arc::new(kept), height }))
    }

    /// A statement in WITH that changes rows.
    fn with_change(&mut self, cte: &Cte, params: &mut Params) -> Result<Option<(usize, Arc<[OutputColumn]>)>> {
        if matches!(&*cte.statement, Statement::Merge(_)) {
            let message = "MERGE not supported in WITH query";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(cte.pos));
        }
        if self.level > 1 {
            let message = "WITH clause containing a data-modifying statement must be at the top level";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(cte.pos));
        }
        let Some((action, columns)) = self.change(&cte.statement, params)? else {
            return Err(SqlError::unsupported("this statement in WITH").at(cte.pos));
        };
        let work = self.works;
        self.works += 1;
        self.changes.push(WithChange { name: cte.name.clone(), action, work });
        Ok(columns.map(|columns| (work, columns.into())))
    }

    /// A reference to the name at this place among those known.
    pub(super) fn cte(
        &mut self,
        out: &mut Layout,
        at: usize,
        t: &TableRef,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Placed> {
        let named = self.ctes[at].clone();
        let cte = named.cte;
        let mut alias =
            t.alias.clone().unwrap_or(Alias { name: cte.name.clone(), columns: Vec::new(), types: Vec::new() });
        if let Some((id, columns)) = named.working {
            self.working_uses.push((id, t.name.pos));
            return work_leaf(out, id, &columns, Some(&alias), &cte.name);
        }
        if alias.columns.is_empty() {
            alias.columns.clone_from(&cte.columns);
        }
        match named.returned {
            None => {}
            Some(Some((id, columns))) => return work_leaf(out, id, &columns, Some(&alias), &cte.name),
            Some(None) => {
                let message = format!("WITH query \"{}\" does not have a RETURNING clause", cte.name);
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(t.name.pos));
            }
        }
        if let Some(Shared { plan, kept, height }) = named.planned {
            if height > HEIGHT_MAX {
                let message = "WITH queries are nested too deeply";
                return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, message).at(cte.pos));
            }
            self.height = self.height.max(height);
            kept.uses.fetch_add(1, Relaxed);
            return derived_leaf(out, plan, Some(&alias), &alias.name, Some(kept), false);
        }
        let later = self.ctes.split_off(at);
        let plan = match &*cte.statement {
            Statement::Query(q) if named.recursive => self.recursive(&cte, q, parent, params),
            Statement::Query(q) => self.query(q, parent, params),
            _ => Err(SqlError::internal("a change in WITH without its rows")),
        };
        self.ctes.truncate(at);
        self.ctes.extend(later);
        derived_leaf(out, plan?, Some(&alias), &alias.name, None, false)
    }

    /// `anchor UNION [ALL] step`, where the step names the whole; any other query as it is.
    fn recursive(
        &mut self,
        cte: &Arc<Cte>,
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Arc<Query>> {
        let QueryBody::SetOp { op: SetOp::Union, all, left, right } = &q.body else {
            return self.query(q, parent, params);
        };
        if q.with.is_some() {
            return self.query(q, parent, params);
        }
        let (known, uses) = (self.ctes.len(), self.working_uses.len());
        let anchor = self.query(left, parent, params)?;
        let mut columns = anchor.columns.clone();
        for (column, name) in columns.iter_mut().zip(&cte.columns) {
            column.name.clone_from(name);
        }
        let work = self.works;
        self.works += 1;
        let working = Some((work, columns.clone().into()));
        self.ctes.push(Named { cte: cte.clone(), recursive: false, working, returned: None, planned: None });
        let step = self.query(right, parent, params);
        self.ctes.truncate(known);
        let step = step?;
        // A recursive query that this one reads is complete in itself: only references to this one's own rows make it recursive.
        let of_this = self.working_uses.split_off(uses);
        let (own, others): (Vec<_>, Vec<_>) = of_this.into_iter().partition(|(id, _)| *id == work);
        self.working_uses.extend(others);
        let Some((_, first)) = own.first() else {
            return self.query(q, parent, params);
        };
        // A reference that is planned more than once is one in the text.
        if let Some((_, second)) = own.iter().find(|(_, pos)| pos != first) {
            return Err(misplaced(cte, "more than once").at(*second));
        }
        check_step(cte, right, &step)?;
        if !q.order_by.is_empty() || q.limit.is_some() || q.offset.is_some() {
            let pos = q.order_by.first().map_or(q.pos, |o| o.expr.pos);
            return Err(SqlError::unsupported("ORDER BY, LIMIT or OFFSET in a recursive query").at(pos));
        }
        if step.columns.len() != columns.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(right.pos));
        }
        for (i, (a, b)) in columns.iter().zip(&step.columns).enumerate() {
            let overall = SqlType { oid: b.ty.oid, modifier: if a.ty == b.ty { a.ty.modifier } else { -1 } };
            if a.ty != overall {
                let message = format!(
                    "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                    cte.name,
                    i + 1,
                    format_type(a.ty),
                    format_type(overall)
                );
                return Err(SqlError::new(code::DATATYPE_MISMATCH, message)
                    .hint("Cast the output of the non-recursive term to the correct type.")
                    .at(right.pos));
            }
        }
        // They are the union's, not the first query's.
        columns.iter_mut().for_each(|c| c.origin = (0, 0));
        let body = Body::Recursive { all: *all, anchor, step, work };
        Ok(Arc::new(Query::of(body, columns)))
    }
}

fn misplaced(cte: &Cte, why: &str) -> SqlError {
    SqlError::new("42P19", format!("recursive reference to query \"{}\" must not appear {why}", cte.name))
}

/// Refuses a step that names the whole on the outer side of a join, or computes aggregates of it.
fn check_step(cte: &Cte, written: &AstQuery, step: &Query) -> Result<()> {
    if let Some(pos) = recursion::within_outer_join(&written.body, &cte.name) {
        return Err(misplaced(cte, "within an outer join").at(pos));
    }
    if has_aggregates(step) {
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        return Err(SqlError::new("42P19", message).at(super::checks::first_target(written)));
    }
    Ok(())
}

/// Whether the query itself computes aggregates.
fn has_aggregates(step: &Query) -> bool {
    let Body::Select(select) = &step.body else { return false };
    select.grouping.as_ref().is_some_and(|grouping| !grouping.calls.is_empty())
}
