//! System relations in FROM, and the set-returning functions over the catalog.

use super::from::{Item, Layout, Leaf, Placed};
use super::leaf::{derived_leaf, named, note_origin};
use super::plan::OutputColumn;
use super::through::{ChangeTarget, Verb};
use super::{Planner, VIEW_DEPTH_MAX, select, view};
use clearway_context::changeable;
use clearway_context::privileges::denied;
use clearway_context::views::{SYSTEM_COLUMNS, SystemView};
use clearway_context::views::{functions, mysql};
use clearway_engine::catalog::BOOTSTRAP_ROLE;
use clearway_syntax::ast::{Alias, Call};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt::Statement;
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::{Params, Scope, ScopeColumn};
use clearway_values::types::{SqlType, oid};

impl Planner<'_> {
    /// Whether the session's role may change a relation of the system as far as rights go, and the relation is a table.
    ///
    /// # Errors
    /// 42501; 55000 for a view.
    pub(super) fn may_change_system(&self, view: &SystemView, verb: &'static str) -> Result<()> {
        if !view.is_table() {
            let why = "Views that do not select from a single table or view are not automatically updatable.";
            return Err(Verb::of(verb).refuses(view.name, why));
        }
        match self.env.judge.or_owner(self.meaning.owner).is_superuser() {
            true => Ok(()),
            false => Err(denied("table", view.name)),
        }
    }

    /// A catalog that a statement changes, with its lock noted.
    pub(super) fn changed_catalog(
        &mut self,
        view: &'static SystemView,
        verb: &'static str,
        pos: Pos,
    ) -> Result<ChangeTarget> {
        self.may_change_system(view, verb)?;
        let how = changeable::find(view).filter(|how| verb == "UPDATE" || how.has_free_rows());
        let how = how.ok_or_else(|| changeable::refusal(verb, None, view.name))?;
        let relation = changeable::relation(view, how.nullable());
        let used = self.lock(&relation, LockMode::RowExclusive, "", pos);
        Ok(ChangeTarget { relation, used, verb: Verb::of(verb), through: None, catalog: Some(view) })
    }

    /// A relation of the system: its rows, or the query that it is.
    pub(super) fn system(
        &mut self,
        out: &mut Layout,
        view: &'static SystemView,
        pos: Pos,
        alias: Option<&Alias>,
    ) -> Result<Placed> {
        out.decimals |= mysql::is_one(view) && self.view_depth == 0;
        let judge = self.env.judge.or_owner(self.meaning.owner);
        if view.is_for_superusers() && !judge.is_superuser() {
            let kind = if view.is_table() { "table" } else { "view" };
            return Err(denied(kind, view.name).at(pos));
        }
        match view.text() {
            Some(text) => self.system_query(out, view, text, alias),
            None => system_leaf(out, view, alias),
        }
    }

    /// A view of the system that is a query; its columns have the declared types.
    fn system_query(
        &mut self,
        out: &mut Layout,
        view: &'static SystemView,
        text: &str,
        alias: Option<&Alias>,
    ) -> Result<Placed> {
        if self.view_depth >= VIEW_DEPTH_MAX {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "views are nested too deeply"));
        }
        let parsed = clearway_syntax::parse(text)?;
        let Some(Statement::Query(query)) = parsed.first().map(|p| &p.statement) else {
            return Err(SqlError::internal(format!("view \"{}\" has no query", view.name)));
        };
        let ctes = std::mem::take(&mut self.ctes);
        let mut owned = view::Meaning::default();
        owned.owner = Some(BOOTSTRAP_ROLE);
        owned.system = true;
        let outer = std::mem::replace(&mut self.meaning, owned);
        self.view_depth += 1;
        let plan = self.query(query, None, &mut Params::default());
        self.view_depth -= 1;
        self.meaning = outer;
        self.ctes = ctes;
        let plan = plan?;
        if plan.columns.len() != view.columns.len() {
            return Err(SqlError::internal(format!("view \"{}\" has {} columns", view.name, plan.columns.len())));
        }
        let declared = plan.columns.iter().zip(view.columns);
        let declared = declared.map(|(c, (name, ty))| OutputColumn {
            name: (*name).to_owned(),
            ty: SqlType::new(*ty),
            ..c.clone()
        });
        let declared: Vec<OutputColumn> = declared.collect();
        let cast = select::cast_output(plan.clone(), &declared, 0);
        self.keep_cast(&plan, &cast);
        let names: Vec<String> = view.columns.iter().map(|c| c.0.to_owned()).collect();
        let mut named = alias.cloned().unwrap_or_else(|| Alias {
            name: view.name.to_owned(),
            columns: Vec::new(),
            types: Vec::new(),
        });
        let given = named.columns.len().min(names.len());
        named.columns.extend(names[given..].iter().cloned());
        let (item, mut columns) = derived_leaf(out, cast, Some(&named), &named.name, None, false)?;
        note_origin(&mut columns, view.oid, names.len(), item.base());
        Ok((item, columns))
    }

    /// A function over the catalog that gives rows; none for any other.
    pub(super) fn rows_function(
        &mut self,
        out: &mut Layout,
        call: &Call,
        ordinality: bool,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
        params: &mut Params,
    ) -> Result<Option<Placed>> {
        let name = call.name.name();
        if let Some(view) = functions::view_of(name).filter(|_| call.args.is_empty() && !ordinality) {
            let named = alias.cloned().unwrap_or_else(|| Alias {
                name: name.to_owned(),
                columns: Vec::new(),
                types: Vec::new(),
            });
            return self.system(out, view, call.name.pos, Some(&named)).map(Some);
        }
        let Some(rows) = functions::find(call.name.schema(), name, call.args.len()) else { return Ok(None) };
        let set = self.bind(scope, params, "functions in FROM", None, |b| b.catalog_set(call, rows))?;
        set.args.iter().for_each(|arg| self.note(arg));
        let base = out.width;
        let own = set.columns.iter().enumerate().map(|(i, (name, ty))| (name.as_str(), *ty, base + i));
        let ordinal = ordinality.then(|| ("ordinality", oid::INT8.into(), base + set.columns.len()));
        let columns: Vec<(&str, SqlType, usize)> = own.chain(ordinal).collect();
        out.width += columns.len();
        let relation = alias.map_or(name, |a| &a.name).to_owned();
        let columns = named(columns, &relation, alias)?;
        out.others.push(relation);
        let calls = vec![set];
        let kind = Leaf::Function { calls, ordinality };
        Ok(Some((Item::Leaf { kind, base, end: out.width, filters: Vec::new() }, columns)))
    }
}

/// The layout of a catalog that is to be changed, at slot 0.
pub(super) fn target_layout(view: &'static SystemView, alias: Option<&Alias>) -> Result<Layout> {
    let mut out = Layout::empty();
    let (item, columns) = system_leaf(&mut out, view, alias)?;
    (out.item, out.columns) = (item, columns);
    Ok(out)
}

/// The rows of a relation of the system, with the columns that each table has beside its own.
fn system_leaf(out: &mut Layout, view: &'static SystemView, alias: Option<&Alias>) -> Result<Placed> {
    let base = out.width;
    let relation = alias.map_or(view.name, |a| &a.name).to_owned();
    let own = view.columns.iter().enumerate().map(|(i, (name, ty))| (*name, SqlType::new(*ty), base + i)).collect();
    let mut columns = named(own, &relation, alias)?;
    note_origin(&mut columns, view.oid, view.columns.len(), base);
    out.width += view.columns.len();
    if view.is_table() {
        columns.extend(SYSTEM_COLUMNS.iter().enumerate().map(|(i, (name, ty))| {
            let (of, ty) = (Some(relation.clone()), SqlType::new(*ty));
            ScopeColumn { hidden: true, ..ScopeColumn::plain(of, (*name).to_owned(), ty, out.width + i) }
        }));
        out.width += SYSTEM_COLUMNS.len();
    }
    out.others.push(relation);
    Ok((Item::Leaf { kind: Leaf::System(view), base, end: out.width, filters: Vec::new() }, columns))
}
