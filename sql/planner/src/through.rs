//! Updatable views: INSERT, UPDATE and DELETE of a view over one table, or over another such view, change the table.
//!
//! # Invariants
//! - VIE-2: a view's columns and conditions are bound over the slots of the table, from slot 0 on. A column of the view that is not a
//!   plain column of the table gets a slot from `MADE_SLOT` on while expressions are bound; afterwards its expression replaces that slot.
//! - VIE-3: the table is used with the rights of the view's owner, the view with those of the session's role.
//! - VIE-4: a row that is written meets the condition of each view between the statement and the table that has a check option, and of
//!   each view below one whose check option is cascaded. The innermost view is checked first.

use super::Planner;
use super::leaf::named;
use super::plan::{Columns, conjunction, split};
use super::pushdown::substitute;
use super::view::Meaning;
use super::{VIEW_DEPTH_MAX, walk};
use clearway_context::changeable;
use clearway_context::names::Found;
use clearway_context::views::SystemView;
use clearway_engine::catalog::{Object, Oid, Relation, RelationKind};
use clearway_syntax::ast::{Alias, FromItem, QueryBody, Select as AstSelect, TableRef};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt::Statement;
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::collect::{Collected, Permits};
use clearway_values::expr::{Bound, BoundKind, Params, Scope, ScopeColumn};
use clearway_values::types::SqlType;

/// The first slot of columns that a view makes out of others (VIE-2): no layout is that wide.
const MADE_SLOT: usize = 1 << 24;

/// A view on the way from the statement to the table.
struct Level {
    view: Relation,
    /// What the statement uses of it.
    used: Columns,
    /// Its columns over the table's slots.
    columns: Vec<Bound>,
    /// Its own conditions, over the same.
    conditions: Vec<Bound>,
}

/// The way from a view to its table.
pub(super) struct Through {
    /// The table.
    pub table: Relation,
    /// What the statement uses of the table.
    used: Columns,
    /// From the table's view to the statement's.
    levels: Vec<Level>,
    /// What the table's rows must meet to be the view's.
    pub conditions: Vec<Bound>,
}

/// What a statement does to a view.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Verb {
    sql: &'static str,
    /// `cannot ... view`
    action: &'static str,
    doing: &'static str,
}

impl Verb {
    /// Of the statement that begins with this word.
    pub fn of(sql: &'static str) -> Verb {
        let (action, doing) = match sql {
            "INSERT" => ("insert into", "inserting into"),
            "DELETE" => ("delete from", "deleting from"),
            _ => ("update", "updating"),
        };
        Verb { sql, action, doing }
    }

    pub fn refuses(self, view: &str, why: &str) -> SqlError {
        let Verb { sql, action, doing } = self;
        SqlError::new("55000", format!("cannot {action} view \"{view}\"")).detail(why.to_owned()).hint(format!(
            "To enable {doing} the view, provide an INSTEAD OF {sql} trigger or an unconditional ON {sql} DO INSTEAD rule."
        ))
    }
}

/// What a statement changes: a table, or a view through which it changes one.
pub(super) struct ChangeTarget {
    /// The table; with the names of the view, where the statement names one.
    pub relation: Relation,
    /// What the statement uses of the table.
    pub used: Columns,
    pub verb: Verb,
    pub through: Option<Through>,
    /// The statement names this catalog.
    pub catalog: Option<&'static SystemView>,
}

impl ChangeTarget {
    /// The table under its own names.
    pub fn table(&self) -> &Relation {
        self.through.as_ref().map_or(&self.relation, |through| &through.table)
    }

    /// The owner of the view that names the table; none: the statement does.
    pub fn owner(&self) -> Option<Oid> {
        self.through
            .as_ref()
            .and_then(|through| through.levels.first())
            .and_then(|level| Meaning::of(&level.view).owner)
    }

    /// Refuses to change columns that a view makes.
    ///
    /// # Errors
    /// 0A000.
    pub fn may_change<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<()> {
        match (&self.through, self.catalog) {
            (Some(through), _) => through.may_change(self.verb, names),
            (None, Some(view)) if self.verb.sql == "UPDATE" => may_change_columns(view, names),
            (None, _) => Ok(()),
        }
    }

    /// Puts the expressions of columns that a view makes in their places; the statement's expressions are all bound by then.
    pub fn settle<'e>(&self, list: impl Iterator<Item = &'e mut Bound>) {
        if let Some(through) = &self.through {
            list.for_each(|e| through.top().settle(e));
            through.note_uses();
        }
    }
}

/// Whether UPDATE may change these columns of a catalog.
fn may_change_columns<'n>(view: &SystemView, mut names: impl Iterator<Item = &'n str>) -> Result<()> {
    let Some(how) = changeable::find(view) else { return Ok(()) };
    let is_fixed = |name: &&str| view.columns.iter().any(|c| c.0 == *name) && !how.columns().contains(name);
    match names.find(is_fixed) {
        Some(name) => Err(changeable::refusal("UPDATE", Some(name), view.name)),
        None => Ok(()),
    }
}

fn plain(e: &Bound) -> Option<usize> {
    match e.kind {
        BoundKind::Column { index, level: 0 } => Some(index),
        _ => None,
    }
}

/// Whether a view has a check option, and whether that is cascaded.
fn check_option(view: &Relation) -> Option<bool> {
    let value = view.option("check_option")?;
    Some(value == "cascaded")
}

impl Through {
    fn top(&self) -> &Level {
        &self.levels[self.levels.len() - 1]
    }

    /// The conditions that a written row has to meet, each with the name of its view (VIE-4).
    pub fn checks(&self) -> Vec<(String, Bound)> {
        let (mut checks, mut cascaded) = (Vec::new(), false);
        for level in self.levels.iter().rev() {
            let own = check_option(&level.view);
            if (cascaded || own.is_some())
                && let Some(condition) = conjunction(level.conditions.clone())
            {
                checks.push((level.view.name.clone(), condition));
            }
            cascaded |= own == Some(true);
        }
        checks.reverse();
        checks
    }

    /// The conditions of the views, each with the name of its view.
    pub fn visible(&self) -> Vec<(String, Bound)> {
        let of = |level: &Level| Some((level.view.name.clone(), conjunction(level.conditions.clone())?));
        self.levels.iter().filter_map(of).collect()
    }

    /// Whether one of the views hides rows also from the statement's conditions (VIE-5).
    pub fn is_barrier(&self) -> bool {
        self.levels.iter().any(|level| super::view::is_barrier(&level.view))
    }

    /// What the statement uses of the table.
    pub fn used(&self) -> &Columns {
        &self.used
    }

    /// The table with the view's names: columns that the view does not show have no name.
    pub fn face(&self) -> Relation {
        let mut face = self.table.clone();
        face.name.clone_from(&self.top().view.name);
        face.columns.iter_mut().for_each(|c| c.name.clear());
        for (column, shown) in self.top().columns.iter().zip(&self.top().view.columns).rev() {
            if let Some(at) = plain(column) {
                face.columns[at].name.clone_from(&shown.name);
            }
        }
        // A default that a view has for its column stands for that of what is below it.
        for level in &self.levels {
            for (column, shown) in level.columns.iter().zip(&level.view.columns) {
                if let (Some(at), Some(default)) = (plain(column), &shown.default) {
                    face.columns[at].default = Some(default.clone());
                    face.columns[at].path.clone_from(&shown.path);
                }
            }
        }
        face
    }

    /// The table's columns in the order of the view's, up to the first that the view makes.
    pub fn order(&self) -> Vec<usize> {
        self.top().columns.iter().map_while(plain).collect()
    }

    /// The view's columns as names.
    pub fn names(&self, alias: Option<&Alias>) -> Result<Vec<ScopeColumn>> {
        self.top().names(&self.top().view.name, alias, true)
    }

    /// Refuses to change columns that the view makes.
    ///
    /// # Errors
    /// 0A000.
    pub fn may_change<'n>(&self, verb: Verb, names: impl Iterator<Item = &'n str>) -> Result<()> {
        let view = &self.top().view;
        for name in names {
            let at = view.columns.iter().position(|c| c.name == name);
            let first = |at: usize| {
                let shown = self.top().columns.iter().position(|c| plain(c) == plain(&self.top().columns[at]));
                shown == Some(at)
            };
            if at.is_some_and(|at| plain(&self.top().columns[at]).is_some() && !first(at)) {
                return Err(SqlError::unsupported(format!("the second name of a column of view \"{}\"", view.name)));
            }
            if at.is_some_and(|at| plain(&self.top().columns[at]).is_none()) {
                let into = if verb.sql == "INSERT" { "insert into" } else { "update" };
                let message = format!("cannot {into} column \"{name}\" of view \"{}\"", view.name);
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
                    .detail("View columns that are not columns of their base relation are not updatable."));
            }
        }
        Ok(())
    }

    /// Notes what the statement uses of each view and of the table (VIE-3): reads go down from the view, writes up from the table.
    pub fn note_uses(&self) {
        let top = self.top();
        for at in top.used.reads.columns() {
            note_slots(&top.columns[at], &self.used);
        }
        self.conditions.iter().for_each(|e| note_slots(e, &self.used));
        for level in &self.levels {
            for (i, column) in level.columns.iter().enumerate() {
                let Some(at) = plain(column) else { continue };
                let uses = |list: &clearway_values::expr::Reads| list.columns().any(|c| c == at);
                if uses(&self.used.inserts) {
                    level.used.inserts.note(i);
                }
                if uses(&self.used.updates) {
                    level.used.updates.note(i);
                }
                if level.view.oid != top.view.oid && uses(&self.used.reads) {
                    level.used.reads.note(i);
                }
            }
        }
    }
}

fn note_slots(e: &Bound, used: &Columns) {
    walk::each(e, &mut |e| {
        if let Some(slot) = plain(e) {
            used.reads.note(slot);
        }
    });
}

impl Level {
    fn names(&self, name: &str, alias: Option<&Alias>, noted: bool) -> Result<Vec<ScopeColumn>> {
        let slots = self.columns.iter().enumerate();
        let slots = slots.map(|(i, e)| (plain(e).unwrap_or(MADE_SLOT + i), e.ty));
        let list = self.view.columns.iter().zip(slots).map(|(c, (slot, ty))| (c.name.as_str(), ty, slot)).collect();
        let mut columns = named(list, alias.map_or(name, |a| &a.name), alias)?;
        columns.iter_mut().enumerate().for_each(|(i, c)| c.origin = (self.view.oid, i as i16 + 1));
        for (i, c) in columns.iter_mut().enumerate().filter(|_| noted) {
            c.reads = Some((self.used.reads.clone(), i));
        }
        Ok(columns)
    }

    fn settle(&self, e: &mut Bound) {
        substitute(e, &|index| index.checked_sub(MADE_SLOT).and_then(|i| self.columns.get(i)).cloned());
    }
}

/// Why a view can't be changed through; none: it can, as far as its text says.
fn obstacle(query: &clearway_syntax::ast::Query) -> std::result::Result<(&AstSelect, &TableRef), &'static str> {
    let QueryBody::Select(s) = &query.body else {
        let values = matches!(query.body, QueryBody::Values(_));
        return Err(match values {
            true => "Views that do not select from a single table or view are not automatically updatable.",
            false => "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        });
    };
    if s.distinct.is_some() {
        return Err("Views containing DISTINCT are not automatically updatable.");
    }
    if !s.group_by.is_empty() {
        return Err("Views containing GROUP BY are not automatically updatable.");
    }
    if s.having.is_some() {
        return Err("Views containing HAVING are not automatically updatable.");
    }
    if query.with.is_some() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if query.limit.is_some() || query.offset.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    match s.from.as_slice() {
        [FromItem::Table(table)] => Ok((s, table)),
        [FromItem::Sample(_)] => Err("Views containing TABLESAMPLE are not automatically updatable."),
        _ => Err("Views that do not select from a single table or view are not automatically updatable."),
    }
}

/// What can be done to a view's rows, as `pg_relation_is_updatable` says it: sums of 4 (UPDATE), 8 (INSERT) and 16 (DELETE).
pub struct Updatable {
    /// The sum.
    pub events: i32,
    /// Whether each of its columns can be changed.
    pub columns: Vec<bool>,
}

impl Updatable {
    /// Whether the column at a place, from 1, can be changed.
    pub fn changes(&self, place: i64) -> bool {
        usize::try_from(place - 1).is_ok_and(|at| self.columns.get(at) == Some(&true))
    }
}

impl Planner<'_> {
    /// What can be done to a view's rows.
    pub fn updatable(&mut self, view: &Relation) -> Updatable {
        let (update, delete) = (Verb::of("UPDATE"), Verb::of("DELETE"));
        if let Ok(way) = self.through(view, update, "w", 0) {
            return Updatable { events: 28, columns: way.top().columns.iter().map(|c| plain(c).is_some()).collect() };
        }
        let events = if self.through(view, delete, "d", 0).is_ok() { 16 } else { 0 };
        Updatable { events, columns: Vec::new() }
    }

    /// Why a view can't be changed through, by its own query; none: it can, as far as that query says.
    ///
    /// # Errors
    /// If the query can't be planned.
    pub fn obstacle_of(&mut self, view: &Relation) -> Result<Option<String>> {
        let verb = Verb::of("UPDATE");
        match self.through(view, verb, "w", 0) {
            Ok(_) => Ok(None),
            Err(e) if e.code() == "55000" => {
                let own = e.message() == verb.refuses(&view.name, "").message();
                Ok(e.fields().detail.clone().filter(|_| own))
            }
            Err(e) => Err(e),
        }
    }

    /// The way from a view that a statement changes to the table.
    ///
    /// # Errors
    /// 55000: the view is none that can be changed through.
    pub(super) fn through(
        &mut self,
        view: &Relation,
        verb: Verb,
        privileges: &'static str,
        pos: Pos,
    ) -> Result<Through> {
        if self.view_depth >= VIEW_DEPTH_MAX {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "views are nested too deeply"));
        }
        let used = self.lock(view, LockMode::RowExclusive, privileges, pos);
        let parsed = clearway_syntax::parse(view.query.as_deref().unwrap_or(""))?;
        let Some(Statement::Query(query)) = parsed.first().map(|p| &p.statement) else {
            return Err(SqlError::internal(format!("view \"{}\" has no query", view.name)));
        };
        let (select, from) = obstacle(query).map_err(|why| verb.refuses(&view.name, why))?;
        let ctes = std::mem::take(&mut self.ctes);
        let outer = std::mem::replace(&mut self.meaning, Meaning::of(view));
        self.view_depth += 1;
        let path = view.meaning.as_ref().and_then(|meaning| meaning.path.as_deref());
        let found = self.on_path(path, |p| p.way((view, &used), select, from, verb, privileges));
        self.view_depth -= 1;
        self.meaning = outer;
        self.ctes = ctes;
        found
    }

    fn way(
        &mut self,
        (view, used): (&Relation, &Columns),
        select: &AstSelect,
        from: &TableRef,
        verb: Verb,
        privileges: &'static str,
    ) -> Result<Through> {
        let found = match self.meaning.find(&from.name, self.env.catalog) {
            Some(found) => found,
            None => self.env.lookup(&from.name)?,
        };
        self.meaning.note(from, &found);
        let relation = match found {
            Found::Object(object) => match &**object {
                Object::Relation(r) if r.kind != RelationKind::MaterializedView => Some(r.clone()),
                _ => None,
            },
            Found::System(system) if system.is_table() => {
                return Err(SqlError::unsupported(format!(
                    "a change of the catalog \"{}\" through a view",
                    system.name
                )));
            }
            Found::System(_) => None,
        };
        let Some(relation) = relation else {
            let why = "Views that do not select from a single table or view are not automatically updatable.";
            return Err(verb.refuses(&view.name, why));
        };
        let mut through = match relation.kind {
            RelationKind::View => self.through(&relation, verb, privileges, from.name.pos)?,
            _ => {
                let used = self.lock(&relation, LockMode::RowExclusive, privileges, from.name.pos);
                Through { table: relation.clone(), used, levels: Vec::new(), conditions: Vec::new() }
            }
        };
        let columns = self.columns_below(&through, &relation, from)?;
        let (scope, subplans) = (Scope::over(columns, None), self.subplans.len());
        let permits = Permits { windows: true, sets: true, is_key: false };
        let mut collected = Collected { permits, named: select.windows.clone(), ..Collected::default() };
        let mut params = Params::default();
        let conditions = match &select.filter {
            Some(filter) => split(self.condition(filter, &scope, &mut params, "WHERE")?),
            None => Vec::new(),
        };
        let (mut targets, _) = self.targets(&select.targets, &scope, &mut params, Some(&mut collected))?;
        if let Some(what) = collected.made() {
            let why = format!("Views that return {what} are not automatically updatable.");
            return Err(verb.refuses(&view.name, &why));
        }
        let mut conditions = conditions;
        if let Some(level) = through.levels.last() {
            targets.iter_mut().chain(&mut conditions).for_each(|e| level.settle(e));
        }
        self.refuse_made(subplans)?;
        if verb.sql != "DELETE" && !targets.iter().any(|e| plain(e).is_some()) {
            return Err(
                verb.refuses(&view.name, "Views that have no updatable columns are not automatically updatable.")
            );
        }
        through.conditions.extend(conditions.iter().cloned());
        through.levels.push(Level { view: view.clone(), used: used.clone(), columns: targets, conditions });
        Ok(through)
    }

    /// The columns that the text of a view finds in the relation below it (VIE-7).
    fn columns_below(&self, through: &Through, relation: &Relation, from: &TableRef) -> Result<Vec<ScopeColumn>> {
        let (name, alias) = (from.name.name(), from.alias.as_ref());
        let Some(level) = through.levels.last() else {
            let live = relation.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped());
            let live = live.filter_map(|(i, c)| {
                let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
                self.meaning.column(relation, i).map(|name| (name, ty, i))
            });
            return named(live.collect(), alias.map_or(name, |a| &a.name), alias);
        };
        let mut names = level.names(name, alias, false)?;
        for (i, c) in names.iter_mut().enumerate().skip(alias.map_or(0, |a| a.columns.len())) {
            if let Some(then) = self.meaning.column(&level.view, i) {
                c.name = then.to_owned();
            }
        }
        Ok(names)
    }

    /// Refuses subqueries, from this one on, that name a column which a view makes: nothing can be put in its place there.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn refuse_made(&self, from: usize) -> Result<()> {
        let mut made = false;
        for sub in self.subplans.get(from..).unwrap_or(&[]) {
            walk::query_exprs(&sub.query, 0, &mut |e, _| {
                walk::each(e, &mut |e| {
                    made |= matches!(&e.kind, BoundKind::Column { index, .. } if *index >= MADE_SLOT);
                });
            });
        }
        if made {
            return Err(SqlError::unsupported("a subquery over a column that a view makes, where the view is changed"));
        }
        Ok(())
    }
}
