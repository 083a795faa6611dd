//! The meaning of a view's text: its names are resolved once, when the view is created, and that resolution is used whenever the view is
//! read. So a view goes on reading the tables from which it was created, even after they are renamed, and the columns that its stars
//! meant then.
//!
//! # Invariants
//! - VIE-1: planning the same text meets its stars in the same order each time.
//! - VIE-5: no condition of a statement is evaluated for a row that a view with `security_barrier` hides, unless the condition can't fail
//!   and reveals nothing about the row (`is_leakproof`).
//! - VIE-6: the relations that a view with `security_invoker` names are used with the rights, and under the policies, of the session's
//!   role, also where another view names that view.
//! - VIE-7: the text names a column by the name that the column had when the text was written, and a column that was added later is not
//!   found. So RENAME COLUMN and ADD COLUMN change nothing for a view.

use super::from::{Layout, Placed};
use super::leaf::{derived_leaf, note_origin};
use super::plan::{Body, Query};
use super::{Planner, VIEW_DEPTH_MAX};
use clearway_context::names::Found;
use clearway_context::routines;
use clearway_engine::catalog::{Catalog, Object, Oid, PolicyCondition, Relation, ViewMeaning};
use clearway_syntax::ast::{Alias, Locking, QualName, Query as AstQuery, QueryBody, TableRef};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::lexer::tokens;
use clearway_syntax::stmt::Statement;
use clearway_values::expr::{Params, Scope, ScopeColumn};
use std::sync::Arc;

/// The meaning of the text that is being planned.
#[derive(Default)]
pub struct Meaning {
    /// Whose rights count: the owner of the view; none: the session's role.
    pub owner: Option<Oid>,
    /// Found out so far, or to be followed.
    pub text: ViewMeaning,
    /// It is followed, not found out.
    follows: bool,
    /// The text is the server's own: its names are those of the system's relations, whatever users call theirs.
    pub system: bool,
    /// Stars met so far.
    stars: usize,
    /// Where the text names relations, if that is asked for.
    pub(super) named: Option<Vec<Named>>,
}

/// A place where the text of a view names a relation.
pub(super) struct Named {
    /// Where the name stands, and of how many parts it is.
    pub at: (Pos, usize),
    /// The last part of the name.
    pub name: String,
    /// Whether another name for the relation follows.
    pub alias: bool,
    /// The relation.
    pub oid: Oid,
}

impl Meaning {
    /// That of a view (VIE-6).
    pub fn of(view: &Relation) -> Meaning {
        let follows = view.meaning.is_some();
        let owner = (!is_set(view, "security_invoker")).then_some(view.owner);
        Meaning { owner, text: view.meaning.clone().unwrap_or_default(), follows, ..Meaning::default() }
    }

    /// That of a statement in a function's body.
    pub fn of_body(text: ViewMeaning) -> Meaning {
        Meaning { text, follows: true, ..Meaning::default() }
    }

    /// That of a policy's condition, for the role whose rights count.
    pub fn of_policy(owner: Option<Oid>, condition: &PolicyCondition) -> Meaning {
        Meaning { owner, text: condition.meaning.clone(), follows: true, ..Meaning::default() }
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
    pub fn note(&mut self, t: &TableRef, found: &Found<'_>) {
        let Found::Object(object) = found else { return };
        let (name, oid) = (&t.name, object.oid());
        if let Some(named) = &mut self.named {
            let (at, alias) = ((name.pos, name.parts.len()), t.alias.is_some());
            named.push(Named { at, name: name.name().to_owned(), alias, oid });
        }
        if self.follows {
            return;
        }
        let entry = (name.dotted(), oid);
        if !self.text.names.contains(&entry) {
            self.text.names.push(entry);
        }
        if let Object::Relation(r) = &***object
            && !self.text.columns.iter().any(|(known, _)| *known == oid)
        {
            let live = r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped());
            self.text.columns.push((oid, live.map(|(at, c)| (at as u32, c.name.clone())).collect()));
        }
    }

    /// The name that a column had when the text was written (VIE-7); none: it is younger.
    pub fn column<'c>(&'c self, r: &'c Relation, at: usize) -> Option<&'c str> {
        if self.follows { self.text.column(r, at) } else { r.columns.get(at).map(|c| &*c.name) }
    }

    /// The columns of a relation as they were when the text was written (VIE-7); `aliased`: so many have been named otherwise.
    pub fn columns(&self, r: &Relation, base: usize, aliased: usize, columns: &mut Vec<ScopeColumn>) {
        if !self.follows {
            return;
        }
        let mut met = 0;
        columns.retain_mut(|c| {
            let Some(at) = c.index.checked_sub(base).filter(|at| !c.hidden && *at < r.columns.len()) else {
                return true;
            };
            let Some(then) = self.column(r, at) else { return false };
            if met >= aliased && c.name != then {
                c.name = then.to_owned();
            }
            met += 1;
            true
        });
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

/// Whether a view may read a column: its query says the name, or a star that stood for it.
pub fn may_read_column(view: &Relation, r: &Relation, at: usize) -> bool {
    let Some(query) = &view.query else { return false };
    let then = match &view.meaning {
        Some(meaning) => meaning.column(r, at),
        None => r.columns.get(at).map(|c| &*c.name),
    };
    let Some(name) = then else { return false };
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let star = match &view.meaning {
        Some(meaning) => meaning.stars.iter().flatten().any(|(_, column)| column == name),
        None => query.contains('*'),
    };
    // A natural join names its columns nowhere.
    star || query.split(|c| !word(c)).any(|w| w.eq_ignore_ascii_case(name) || w.eq_ignore_ascii_case("natural"))
}

/// Whether a boolean option of a view is on.
fn is_set(view: &Relation, name: &str) -> bool {
    view.option(name).is_some_and(|text| clearway_values::types::text::boolean(text) == Ok(true))
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

/// The text of a query with each relation written as what it is now: under its present name, and where its columns have changed since, as a
/// query that names them as the text does. `visible`: whether the name of a relation alone leads to it.
fn rewritten(text: &str, meaning: &Meaning, catalog: &Catalog, visible: &dyn Fn(&Relation) -> bool) -> Result<String> {
    use clearway_context::names::quote;
    let mut places: Vec<&Named> = meaning.named.iter().flatten().collect();
    places.sort_by_key(|n| n.at);
    places.dedup_by_key(|n| n.at);
    let tokens = tokens(text)?;
    let (mut out, mut copied) = (String::new(), 0);
    for named in places {
        let Some(r) = catalog.relation(named.oid) else { continue };
        let (begin, parts) = named.at;
        let Some(first) = tokens.iter().position(|t| t.start == begin) else { continue };
        let Some(last) = tokens.get(first + 2 * parts.max(1) - 2) else { continue };
        let schema = catalog.get(r.schema).map_or("", |o| o.name());
        let full = match visible(r) {
            true => quote(&r.name),
            false => format!("{}.{}", quote(schema), quote(&r.name)),
        };
        let live: Vec<usize> = (0..r.columns.len()).filter(|at| !r.columns[*at].is_dropped()).collect();
        let same = live.iter().all(|at| meaning.column(r, *at) == Some(&*r.columns[*at].name));
        out.push_str(text.get(copied..begin as usize).unwrap_or_default());
        if same {
            out.push_str(&full);
        } else {
            let column = |at: &usize| {
                let (now, then) = (&r.columns[*at].name, meaning.column(r, *at)?);
                Some(if now == then { quote(now) } else { format!("{} AS {}", quote(now), quote(then)) })
            };
            let columns: Vec<String> = live.iter().filter_map(column).collect();
            out.push_str(&format!("(SELECT {} FROM {full})", columns.join(", ")));
        }
        if !named.alias && (!same || r.name != named.name) {
            out.push_str(&format!(" {}", quote(&named.name)));
        }
        copied = last.end as usize;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

impl Planner<'_> {
    /// The query of a view as it would be written now (VIE-7). `path`: a name that leads to the relation on it is not qualified.
    ///
    /// # Errors
    /// The text can't be planned any more.
    pub fn present_text(&mut self, view: &Relation, path: &[String]) -> Result<String> {
        let text = view.query.as_deref().unwrap_or("").trim().trim_end_matches(';').trim_end();
        let parsed = clearway_syntax::parse(text)?;
        let (Some(Statement::Query(query)), Some(meaning)) = (parsed.first().map(|p| &p.statement), &view.meaning)
        else {
            return Ok(text.to_owned());
        };
        let (catalog, database) = (self.env.catalog, self.env.database);
        let outer = std::mem::replace(&mut self.meaning, Meaning::of(view));
        self.meaning.named = Some(Vec::new());
        let planned = self.on_path(meaning.path.as_deref(), |p| p.query(query, None, &mut Params::default()));
        let met = std::mem::replace(&mut self.meaning, outer);
        let columns = planned?.columns.clone();
        let visible = |r: &Relation| {
            let found = clearway_context::names::find(catalog, database, path, None, &r.name);
            matches!(found, Some(Found::Object(object)) if object.oid() == r.oid)
        };
        let present = rewritten(text, &met, catalog, &visible)?;
        if columns.iter().map(|c| &c.name).eq(view.columns.iter().map(|c| &c.name)) {
            return Ok(present);
        }
        // The view calls its columns otherwise than its query does.
        let quote = clearway_context::names::quote;
        let names: Vec<String> = view.columns.iter().map(|c| quote(&c.name)).collect();
        Ok(format!("SELECT * FROM ({present}) {}({})", quote(&view.name), names.join(", ")))
    }

    /// The schemas of a new definition: those of the session's path, without that of temporary objects.
    pub(super) fn path_of_definition(&self, text: &str) -> Option<Vec<Oid>> {
        let schemas = clearway_context::names::own_path(self.env.path);
        let (catalog, database) = (self.env.catalog, self.env.database);
        let mut path = Some(schemas.filter_map(|name| Some(catalog.schema(database, name)?.oid)).collect());
        routines::settle(catalog, database, &mut path, [text]);
        path
    }

    /// Plans a stored text on the path on which it was written (USR-3).
    pub fn on_path<T>(&mut self, path: Option<&[Oid]>, f: impl FnOnce(&mut Self) -> T) -> T {
        let Some(path) = path else { return f(self) };
        clearway_values::types::user::on_path(routines::definition_path(self.env.catalog, path), || f(self))
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
        let parsed = clearway_syntax::parse(&text)?;
        let Some(Statement::Query(query)) = parsed.first().map(|p| &p.statement) else {
            return Err(SqlError::internal("a sequence has no query"));
        };
        let ctes = std::mem::take(&mut self.ctes);
        let plan = self.query(query, None, &mut Params::default());
        self.ctes = ctes;
        let name = t.alias.as_ref().map_or(t.name.name(), |a| &a.name);
        let (item, mut columns) = derived_leaf(out, plan?, t.alias.as_ref(), name, None, false)?;
        let width = columns.len();
        note_origin(&mut columns, oid, width, item.base());
        Ok((item, columns))
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
        let parsed = clearway_syntax::parse(text)?;
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
        let renamed = Alias {
            name: t.name.name().to_owned(),
            columns: r.columns.iter().map(|c| c.name.clone()).collect(),
            types: Vec::new(),
        };
        let mut alias = t.alias.clone().unwrap_or_else(|| renamed.clone());
        for (i, name) in renamed.columns.into_iter().enumerate().skip(alias.columns.len()) {
            debug_assert!(i == alias.columns.len());
            alias.columns.push(name);
        }
        out.queries.push((alias.name.clone(), out.width));
        derived_leaf(out, plan?, Some(&alias), &alias.name, None, false)
    }
}
