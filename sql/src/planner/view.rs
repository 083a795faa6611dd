//! The meaning of a view's text: resolved once, when the view is created, and used whenever the view is read. So a view goes on reading the
//! tables from which it was created, even after they are renamed, and the columns for which its stars stood then.
//!
//! # Invariants
//! - VIE-1: planning the same text meets its stars in the same order each time.
//! - VIE-5: no condition of a statement is evaluated for a row that a view with `security_barrier` hides, unless it can't fail and tells
//!   nothing of the row (`is_leakproof`).
//! - VIE-6: what a view with `security_invoker` names is used with the rights, and under the policies, of the session's role, also where
//!   another view names that view.

use super::from::{Layout, Placed};
use super::leaf::derived_leaf;
use super::plan::{Body, Query};
use super::{Planner, VIEW_DEPTH_MAX};
use crate::context::names::Found;
use crate::error::{Result, SqlError, code};
use crate::expr::{Params, Scope, ScopeColumn};
use crate::syntax::ast::{Alias, Locking, QualName, Query as AstQuery, QueryBody, TableRef};
use crate::syntax::stmt::Statement;
use clearway_engine::catalog::{Catalog, Object, Oid, PolicyCondition, Relation, ViewMeaning};
use std::sync::Arc;

/// The meaning of the text that is being planned.
#[derive(Default)]
pub(crate) struct Meaning {
    /// Whose rights count: the owner of the view; none: the session's role.
    pub owner: Option<Oid>,
    /// Found out so far, or to be followed.
    pub text: ViewMeaning,
    /// It is followed, not found out.
    follows: bool,
    /// Stars met so far.
    stars: usize,
}

impl Meaning {
    /// That of a view (VIE-6).
    pub fn of(view: &Relation) -> Meaning {
        let follows = view.meaning.is_some();
        let owner = (!is_set(view, "security_invoker")).then_some(view.owner);
        Meaning { owner, text: view.meaning.clone().unwrap_or_default(), follows, stars: 0 }
    }

    /// That of a policy's condition, for the role whose rights count.
    pub fn of_policy(owner: Option<Oid>, condition: &PolicyCondition) -> Meaning {
        Meaning { owner, text: condition.meaning.clone(), follows: true, stars: 0 }
    }

    /// The relation that a name stands for, where that is settled.
    pub fn find<'c>(&self, name: &QualName, catalog: &'c Catalog) -> Option<Found<'c>> {
        if !self.follows {
            return None;
        }
        let dotted = name.dotted();
        let (_, oid) = self.text.names.iter().find(|(known, _)| *known == dotted)?;
        catalog.get(*oid).map(Found::Object)
    }

    /// Notes what a name stands for.
    pub fn note(&mut self, name: &QualName, found: &Found<'_>) {
        let Found::Object(object) = found else { return };
        let entry = (name.dotted(), object.oid());
        if !self.follows && !self.text.names.contains(&entry) {
            self.text.names.push(entry);
        }
    }

    /// The columns that a star stands for (VIE-1), out of all that it could.
    pub fn star<'s>(&mut self, columns: Vec<&'s ScopeColumn>) -> Vec<&'s ScopeColumn> {
        let name = |c: &ScopeColumn| (c.relation.clone().unwrap_or_default(), c.name.clone());
        let at = self.stars;
        self.stars += 1;
        if !self.follows {
            self.text.stars.push(columns.iter().map(|c| name(c)).collect());
            return columns;
        }
        match self.text.stars.get(at) {
            Some(known) => columns.into_iter().filter(|c| known.contains(&name(c))).collect(),
            None => columns,
        }
    }
}

/// Whether a boolean option of a view is on.
fn is_set(view: &Relation, name: &str) -> bool {
    view.option(name).is_some_and(|text| crate::types::text::boolean(text) == Ok(true))
}

/// Whether a view is a barrier (VIE-5).
pub(super) fn is_barrier(view: &Relation) -> bool {
    is_set(view, "security_barrier")
}

/// The same query, out of which nothing is pulled up (VIE-5). A query that is no selection is such a barrier by itself.
fn as_barrier(query: Arc<Query>) -> Arc<Query> {
    let mut query = Query::clone(&query);
    if let Body::Select(select) = &mut query.body {
        select.barrier = true;
    }
    Arc::new(query)
}

impl Planner<'_> {
    /// The schemas of a new definition: those of the session's path, without that of temporary objects.
    pub(super) fn path_of_definition(&self) -> Vec<Oid> {
        let schemas = crate::context::names::own_path(self.env.path);
        schemas.filter_map(|name| Some(self.env.catalog.schema(self.env.database, name)?.oid)).collect()
    }

    /// Plans a stored text on the path on which it was written (USR-3).
    pub(crate) fn on_path<T>(&mut self, path: Option<&[Oid]>, f: impl FnOnce(&mut Self) -> T) -> T {
        let Some(path) = path else { return f(self) };
        let name = |oid: &Oid| match self.env.catalog.get(*oid).map(|o| &**o) {
            Some(Object::Schema(schema)) => Some(schema.name.clone()),
            _ => None,
        };
        let names = path.iter().filter_map(name).collect();
        crate::types::user::on_path(names, || f(self))
    }

    /// Plans a query whose rows a locking clause around it locks, too, as PostgreSQL does: as if the clause stood in the query itself.
    pub(super) fn locked_query(
        &mut self,
        query: &AstQuery,
        locking: Vec<Locking>,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Arc<Query>> {
        if locking.is_empty() || matches!(query.body, QueryBody::Values(_)) {
            return self.query(query, parent, params);
        }
        let mut locked = query.clone();
        locked.locking.extend(locking);
        self.query(&locked, parent, params)
    }

    /// A sequence is read as a table of one row.
    pub(super) fn sequence(&mut self, out: &mut Layout, oid: u32, t: &TableRef) -> Result<Placed> {
        let text = format!(
            "SELECT s[1]::bigint AS last_value, s[2]::bigint AS log_cnt, s[3]::boolean AS is_called
             FROM (SELECT pg_catalog.clearway_sequence_state({oid}) AS s) AS state"
        );
        let parsed = crate::syntax::parse(&text)?;
        let Some(Statement::Query(query)) = parsed.first().map(|p| &p.statement) else {
            return Err(SqlError::internal("a sequence has no query"));
        };
        let ctes = std::mem::take(&mut self.ctes);
        let plan = self.query(query, None, &mut Params::default());
        self.ctes = ctes;
        let name = t.alias.as_ref().map_or(t.name.name(), |a| &a.name);
        derived_leaf(out, plan?, t.alias.as_ref(), name, None, false)
    }

    /// The rows of a view; with `locking`, those of its tables are locked.
    pub(super) fn view(
        &mut self,
        out: &mut Layout,
        r: &Relation,
        t: &TableRef,
        locking: Vec<Locking>,
    ) -> Result<Placed> {
        if self.view_depth >= VIEW_DEPTH_MAX {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "views are nested too deeply"));
        }
        let text = r.query.as_deref().unwrap_or("");
        let parsed = crate::syntax::parse(text)?;
        let Some(Statement::Query(query)) = parsed.first().map(|p| &p.statement) else {
            return Err(SqlError::internal(format!("view \"{}\" has no query", r.name)));
        };
        let ctes = std::mem::take(&mut self.ctes);
        let outer = std::mem::replace(&mut self.meaning, Meaning::of(r));
        self.view_depth += 1;
        // PostgreSQL locks nothing below a set operation of a view.
        let locking = if matches!(query.body, QueryBody::SetOp { .. }) { Vec::new() } else { locking };
        let path = r.meaning.as_ref().and_then(|meaning| meaning.path.as_deref());
        let plan = self.on_path(path, |p| p.locked_query(query, locking, None, &mut Params::default()));
        let plan = plan.map(|plan| if is_barrier(r) { as_barrier(plan) } else { plan });
        self.view_depth -= 1;
        self.meaning = outer;
        self.ctes = ctes;
        let renamed =
            Alias { name: t.name.name().to_owned(), columns: r.columns.iter().map(|c| c.name.clone()).collect() };
        let mut alias = t.alias.clone().unwrap_or_else(|| renamed.clone());
        for (i, name) in renamed.columns.into_iter().enumerate().skip(alias.columns.len()) {
            debug_assert!(i == alias.columns.len());
            alias.columns.push(name);
        }
        out.queries.push((alias.name.clone(), out.width));
        derived_leaf(out, plan?, Some(&alias), &alias.name, None, false)
    }
}
