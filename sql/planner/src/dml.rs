//! Plans INSERT, UPDATE and DELETE.

use super::arrange::{Arranged, Rest};
use super::checks::{check_count, mismatch, same_set};
use super::from::Layout;
use super::insert_rows::{as_query, gave_rows, has_whole_row, refuse_stages};
use super::leaf::table_columns;
use super::plan::{
    Action, Body, Conflict, Delete, Insert, InsertValue, OutputColumn, Query, Reference, Referrer, TableSlot, Target,
    Update, conjunction, split,
};
use super::through::{ChangeTarget, Verb};
use super::{Planned, Planner, entries, system, system_columns, wanted};
use clearway_context::{deferred::Timing, errors::from_engine, names, views};
use clearway_engine::catalog::types::row_type;
use clearway_engine::catalog::{IndexState, Object, Relation, RelationKind, TypeBody, TypeObject};
use clearway_engine::table::shape::TableShape;
use clearway_syntax::ast::{Expr, ExprKind, FromItem, QueryBody, TableRef, Target as AstTarget};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt;
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::{Bound, BoundKind, Params, Scope, ScopeColumn, WholeRow};
use clearway_values::types::cast::Context;
use clearway_values::types::{Datum, SqlType, oid};
use std::sync::Arc;

/// The expressions of RETURNING and the columns that they make; none without the clause.
type Returning = (Option<Vec<Bound>>, Option<Vec<OutputColumn>>);

impl Planner<'_> {
    /// The table that a statement changes, with its lock noted; by the names of the view, where it is changed through one.
    fn changed(&mut self, t: &TableRef, verb: &'static str, privileges: &'static str) -> Result<ChangeTarget> {
        let relation = match self.env.lookup(&t.name)? {
            names::Found::Object(o) => match &**o {
                Object::Relation(r) => r,
                other => {
                    let message = format!("cannot change {} \"{}\"", other.kind(), other.name());
                    return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(t.name.pos));
                }
            },
            names::Found::System(v) => return self.changed_catalog(v, verb, t.name.pos),
        };
        match relation.kind {
            RelationKind::Table => {}
            RelationKind::View => {
                let verb = Verb::of(verb);
                let through = self.through(&relation.clone(), verb, privileges, t.name.pos)?;
                return Ok(ChangeTarget {
                    relation: through.face(),
                    used: through.used().clone(),
                    verb,
                    through: Some(through),
                    catalog: None,
                });
            }
            RelationKind::MaterializedView => {
                let message = format!("cannot change materialized view \"{}\"", relation.name);
                return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
            }
        }
        let used = self.lock(relation, LockMode::RowExclusive, privileges, t.name.pos);
        Ok(ChangeTarget { relation: relation.clone(), used, verb: Verb::of(verb), through: None, catalog: None })
    }

    pub(super) fn slot(&self, relation: &Relation) -> Result<TableSlot> {
        let shape = match views::by_oid(relation.oid) {
            None => TableShape::new(self.env.catalog, relation.oid),
            Some(_) => TableShape::without_indexes(relation).map(Arc::new),
        };
        let shape = shape.map_err(from_engine)?;
        Ok(TableSlot { shape, types: names::column_types(relation), base: 0, name: relation.name.clone() })
    }

    /// The table that a statement changes, with its checks.
    pub fn target(&mut self, relation: &Relation) -> Result<Target> {
        let table = self.slot(relation)?;
        let scope = Scope::over(table_columns(relation, &relation.name, 0), None);
        let mut checks = Vec::new();
        for check in &relation.checks {
            let e = clearway_syntax::parse_expression(&check.condition)?;
            let place = "check constraints";
            let bound = self.on_path(check.path.as_deref(), |p| {
                p.bind(&scope, &mut Params::default(), place, None, |b| b.bind_condition(&e, "CHECK"))
            })?;
            checks.push((check.name.clone(), bound));
        }
        let mut references = Vec::new();
        for key in &relation.foreign_keys {
            let Some(parent) = self.env.catalog.relation(key.references) else { continue };
            let slot = self.slot(parent)?;
            let by_key =
                parent.key.len() == key.referenced.len() && parent.key.iter().all(|c| key.referenced.contains(c));
            let index = if by_key {
                None
            } else {
                slot.shape.indexes.iter().position(|i| {
                    i.unique && i.is_plain() && i.state == IndexState::Public && same_set(&i.columns, &key.referenced)
                })
            };
            let order = index.map_or(&slot.shape.key, |i| &slot.shape.indexes[i].columns);
            let key_order = order
                .iter()
                .filter_map(|c| key.referenced.iter().position(|r| r == c))
                .map(|p| key.columns[p])
                .collect();
            references.push(Reference {
                name: key.name.clone(),
                columns: key.columns.clone(),
                parent_columns: key.referenced.clone(),
                parent: slot,
                index,
                key_order,
                timing: Timing { deferrable: key.deferrable, deferred: key.deferred },
                full: key.full,
            });
        }
        let mut referrers = Vec::new();
        for child in self.env.catalog.referring(relation.oid) {
            for key in child.foreign_keys.iter().filter(|k| k.references == relation.oid) {
                referrers.push(Referrer {
                    name: key.name.clone(),
                    child: child.oid,
                    child_name: child.name.clone(),
                    child_columns: key.columns.clone(),
                    columns: key.referenced.clone(),
                    on_delete: key.on_delete,
                    delete_columns: key.delete_columns.clone(),
                    on_update: key.on_update,
                    timing: Timing { deferrable: key.deferrable, deferred: key.deferred },
                });
            }
        }
        Ok(Target {
            catalog: views::by_oid(relation.oid),
            table,
            checks_wait: checks.iter().any(|(_, check)| check.may_wait()),
            checks: checks.into(),
            references: references.into(),
            referrers: referrers.into(),
            uniques: self.late_uniques(relation),
            generated: self.generated_columns(relation, &scope)?.into(),
            written: Arc::from([]),
        })
    }

    /// The value of a column that is not given.
    pub fn default_of(&mut self, relation: &Relation, column: usize) -> Result<Option<Bound>> {
        let c = &relation.columns[column];
        // What a column has no default for, its domain may have; NULL is judged by the domain, too.
        let of_domain = match self.env.catalog.get(c.type_oid).map(|o| &**o) {
            Some(Object::Type(TypeObject { body: TypeBody::Domain(d), .. })) => {
                Some((d.default.as_deref().unwrap_or("NULL"), d.default_path.as_deref()))
            }
            _ => None,
        };
        let own = c.default.as_deref().map(|text| (text, c.path.as_deref()));
        let Some((text, path)) = own.or(of_domain).filter(|_| !c.is_dropped() && !c.generated) else {
            return Ok(None);
        };
        let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
        self.on_path(path, |p| p.default_text(text, ty, &c.name)).map(Some)
    }

    fn default_value(&mut self, relation: &Relation, column: usize, pos: Pos) -> Result<Bound> {
        let c = &relation.columns[column];
        let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
        Ok(self.default_of(relation, column)?.unwrap_or_else(|| Bound::constant(Datum::Null, ty, pos)))
    }

    pub(super) fn insert(&mut self, s: &stmt::Insert, params: &mut Params) -> Result<Planned> {
        let privileges = match &s.on_conflict {
            Some(c) if c.update.is_some() => "aw",
            _ => "a",
        };
        let face = self.changed(&s.table, "INSERT", privileges)?;
        let (relation, used, subplans) = (&face.relation, &face.used, self.subplans.len());
        if let Some(c) = s.on_conflict.as_ref().filter(|_| face.catalog.is_some()) {
            let message = "ON CONFLICT is not supported with system catalog tables";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(c.pos));
        }
        face.may_change(s.columns.iter().map(|(name, _)| name.as_str()))?;
        let given = match &face.through {
            Some(through) if s.columns.is_empty() => through.order(),
            _ => given_columns(relation, s)?,
        };
        let (source, count) = self.insert_source(relation, &given, s, params)?;
        let written = &given[..count.min(given.len())];
        super::insert_rows::each_once(relation, written)?;
        written.iter().for_each(|column| used.inserts.note(*column));
        super::generated::check_source(relation, written, s)?;
        let mut values = Vec::new();
        for (i, c) in relation.columns.iter().enumerate() {
            let at = given.iter().take(count).position(|g| *g == i && !super::generated::is_overridden(c, s));
            values.push(match at {
                Some(at) => InsertValue::Source(at),
                None if c.is_dropped() => InsertValue::Null,
                None => self.default_of(relation, i)?.map_or(InsertValue::Null, InsertValue::Default),
            });
        }
        for v in &values {
            if let InsertValue::Default(e) = v {
                self.note(e);
            }
        }
        let mut target = self.target(face.table())?;
        let mut columns = match &face.through {
            Some(through) => through.names(s.table.alias.as_ref())?,
            None => {
                let alias = s.table.alias.as_ref().map_or(relation.name.as_str(), |a| &a.name);
                let mut columns = table_columns(relation, alias, 0);
                super::from::note_reads(&mut columns, 0, &used.reads);
                columns
            }
        };
        let mut conflict = match &s.on_conflict {
            Some(c) => Some(self.conflict(c, &face, &target, &columns, params)?),
            None => None,
        };
        let set = conflict.iter().filter_map(|c| c.update.as_ref()).flat_map(|(set, _)| set.iter().map(|s| s.0));
        self.writes(&mut target, written.iter().copied().chain(set), true)?;
        if face.through.is_none() && face.catalog.is_none() {
            // The executor puts a slot behind that of the key, for RETURNING alone.
            let system = system_columns::of_table(&target.table, Some(target.table.key_slot() + 1));
            WholeRow::note(row_type(relation.oid), Some(system), &mut columns);
        }
        let scope = Scope::over(columns, None);
        let returning = self.returning(&s.returning, &scope, params);
        let (mut returning, out) = returning.map_err(|e| entries::of_target(e, &s.table, &[]))?;
        let update = conflict.iter_mut().filter_map(|c| c.update.as_mut());
        let update = update.flat_map(|(set, filter)| set.iter_mut().map(|(_, e)| e).chain(filter));
        face.settle(update.chain(returning.iter_mut().flatten()));
        self.refuse_made(subplans)?;
        let guard = self.insert_guard(&face, conflict.as_ref().is_some_and(|c| c.update.is_some()))?;
        let nothing = !relation.insert_nothing_rules.is_empty();
        let view_checks = face.through.as_ref().map_or(Vec::new(), |through| through.checks());
        let insert = Insert { target, source, values, conflict, returning, view_checks, nothing, guard };
        Ok((Action::Insert(Box::new(insert)), out))
    }

    fn insert_source(
        &mut self,
        relation: &Relation,
        given: &[usize],
        s: &stmt::Insert,
        params: &mut Params,
    ) -> Result<(Arc<Query>, usize)> {
        let types: Vec<SqlType> = given
            .iter()
            .map(|c| SqlType { oid: relation.columns[*c].type_oid, modifier: relation.columns[*c].type_mod })
            .collect();
        let Some(source) = &s.source else {
            let body = Body::Values(vec![Vec::new()]);
            return Ok((Arc::new(Query::of(body, Vec::new())), 0));
        };
        let spread = if has_whole_row(source) { as_query(source) } else { None };
        let mut source = spread.as_ref().unwrap_or(source);
        let of_sets;
        if let QueryBody::Values(rows) = &source.body
            && source.order_by.is_empty()
            && source.limit.is_none()
            && source.offset.is_none()
            && source.with.is_none()
        {
            match self.insert_rows(relation, (given, &types), rows, s, params) {
                Err(e) if gave_rows(&e) && rows.len() == 1 => {
                    of_sets = as_query(source).ok_or(e)?;
                    source = &of_sets;
                }
                bound => {
                    let bound = bound?;
                    let count = bound.first().map_or(0, Vec::len);
                    return Ok((Arc::new(Query::of(Body::Values(bound), Vec::new())), count));
                }
            }
        }
        super::literals::of_columns(source, &types, params)?;
        let query = self.query(source, None, params)?;
        if s.source.as_ref().is_some_and(|written| matches!(written.body, QueryBody::Values(_))) {
            refuse_stages(&query, source.pos)?;
        }
        check_count(given.len(), query.columns.len(), s, |_| source.pos)?;
        let count = query.columns.len();
        let query = super::literals::opened(query, source);
        let query = self.assign_query(query, &types, |i| relation.columns[given[i]].name.clone(), params)?;
        Ok((query, count))
    }

    /// A query whose columns are cast to the types of the columns they go to.
    pub fn assign_query(
        &mut self,
        query: Arc<Query>,
        types: &[SqlType],
        name: impl Fn(usize) -> String,
        params: &mut Params,
    ) -> Result<Arc<Query>> {
        let mut targets = Vec::new();
        for (i, c) in query.columns.iter().enumerate() {
            let column = match &query.body {
                // A literal takes its type from the column that it goes to.
                Body::Select(s) if c.ty.oid == oid::UNKNOWN => s.targets[i].clone(),
                _ => Bound { kind: BoundKind::Column { index: i, level: 0 }, ty: c.ty, pos: 0 },
            };
            let to = types[i];
            let cast =
                self.bind(&Scope::default(), params, "INSERT", None, |b| b.coerce(column, to, Context::Assignment))?;
            let pos = match &query.body {
                Body::Select(s) => s.targets[i].pos,
                _ => 0,
            };
            targets.push(cast.ok_or_else(|| mismatch(&name(i), to, c.ty, pos))?);
        }
        let width = query.columns.len();
        let columns = query.columns.clone();
        let derived = super::plan::Derived { query, base: 0, kept: None, lateral: false, filter: None, given: None };
        let select = super::plan::Select::plain(Arc::new(super::plan::Node::Derived(derived)), width, targets);
        let body = Body::Select(Box::new(select));
        Ok(Arc::new(Query::of(body, columns)))
    }

    pub(super) fn check_identity(&self, relation: &Relation, column: usize, e: &Expr, s: &stmt::Insert) -> Result<()> {
        let c = &relation.columns[column];
        super::generated::check_given(c, e)?;
        if matches!(&*e.kind, ExprKind::Default) { Ok(()) } else { super::generated::check_identity(c, s) }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn assigned(
        &mut self,
        relation: &Relation,
        column: usize,
        ty: SqlType,
        e: &Expr,
        scope: &Scope<'_>,
        params: &mut Params,
        place: &'static str,
    ) -> Result<Bound> {
        let bound = match &*e.kind {
            ExprKind::Default => self.default_value(relation, column, e.pos)?,
            _ => {
                let name = &relation.columns[column].name;
                params.in_list(e, |params| self.bind(scope, params, place, None, |b| b.bind_assigned(e, ty, name)))?
            }
        };
        self.note(&bound);
        Ok(bound)
    }

    fn conflict(
        &mut self,
        c: &stmt::OnConflict,
        face: &ChangeTarget,
        target: &Target,
        columns: &[ScopeColumn],
        params: &mut Params,
    ) -> Result<Conflict> {
        let (relation, used) = (&face.relation, &face.used);
        let mut late = None;
        let arbiters = match &c.target {
            None if c.update.is_some() => {
                let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(SqlError::new(code::SYNTAX_ERROR, message)
                    .hint("For example, ON CONFLICT (column_name).")
                    .at(c.pos));
            }
            None => {
                let arbiters;
                (arbiters, late) = self.any_arbiter(relation);
                arbiters
            }
            Some(stmt::ConflictTarget::Constraint(name)) => {
                let index = self.env.catalog.indexes(relation.oid).find(|i| i.name == *name && i.unique);
                let index = index.ok_or_else(|| {
                    let message = format!("constraint \"{name}\" for table \"{}\" does not exist", relation.name);
                    SqlError::new(code::UNDEFINED_OBJECT, message)
                })?;
                if index.deferrable {
                    return Err(super::generated::late_arbiter(name));
                }
                vec![index.oid]
            }
            Some(stmt::ConflictTarget::Index(keys, filter)) => self.inferred(keys, filter.as_ref(), relation)?,
        };
        // The columns by which a conflict is found are read.
        for index in arbiters.iter().filter_map(|oid| self.env.catalog.index(*oid)) {
            let columns = index.columns.iter().filter(|c| c.expression.is_none()).map(|c| c.column);
            columns.chain(index.reads.iter().copied()).for_each(|c| used.reads.note(c));
        }
        let update = match &c.update {
            None => None,
            Some((set, filter)) => {
                let excluded_base = target.table.key_slot() + 1;
                let mut all = columns.to_vec();
                all.extend(table_columns(relation, "excluded", excluded_base).into_iter().map(|mut c| {
                    c.reads = Some((used.reads.clone(), c.index - excluded_base));
                    c
                }));
                let scope = Scope::over(all, None);
                face.may_change(set.iter().flat_map(|a| &a.columns).map(|(name, _)| name.as_str()))?;
                let set = self.assignments(set, relation, &scope, params)?;
                set.iter().for_each(|(column, _)| used.updates.note(*column));
                let filter = match filter {
                    Some(e) => Some(self.condition(e, &scope, params, "WHERE")?),
                    None => None,
                };
                Some((set, filter))
            }
        };
        let through = face.through.as_ref().filter(|_| update.is_some());
        let visible = through.map_or(Vec::new(), |through| through.visible());
        Ok(Conflict { arbiters, late, update, visible })
    }

    fn returning(&mut self, list: &[AstTarget], scope: &Scope<'_>, params: &mut Params) -> Result<Returning> {
        if list.is_empty() {
            return Ok((None, None));
        }
        let (targets, columns) = self.targets(list, scope, params, None)?;
        targets.iter().for_each(|e| self.note(e));
        Ok((Some(targets), Some(columns)))
    }

    pub(super) fn update(&mut self, s: &stmt::Update, params: &mut Params) -> Result<Planned> {
        no_cursor(s.current_of.as_ref())?;
        if let Some(view) = super::settings::named(&s.table) {
            return self.update_settings(view, s, params);
        }
        let face = self.changed(&s.table, "UPDATE", "w")?;
        let subplans = self.subplans.len();
        let (layout, mut conditions, target) =
            self.changed_rows(&face, &s.table, &s.from, s.filter.as_ref(), params)?;
        let scope = Scope::over(layout.columns.clone(), None);
        face.may_change(s.set.iter().flat_map(|a| &a.columns).map(|(name, _)| name.as_str()))?;
        let mut set = self.assignments(&s.set, &face.relation, &scope, params)?;
        set.iter().for_each(|(column, _)| face.used.updates.note(*column));
        let (mut returning, out) = self.returning(&s.returning, &scope, params)?;
        face.settle(set.iter_mut().map(|(_, e)| e).chain(returning.iter_mut().flatten()));
        self.refuse_made(subplans)?;
        let guard = self.change_guard(&face, 'w', &mut conditions)?;
        let (mut target, mut recheck) = (target, conjunction(conditions.clone()));
        let mut view_checks = face.through.as_ref().map_or(Vec::new(), |through| through.checks());
        let checks = view_checks.iter_mut().map(|c| &mut c.1);
        let exprs = set.iter_mut().map(|s| &mut s.1).chain(returning.iter_mut().flatten());
        let exprs = exprs.chain(&mut recheck).chain(checks).collect();
        let arranged = self.arrange(layout, conditions, Rest { exprs, is_change: true, ends: true, ..Rest::default() });
        target.table.base = arranged.place(target.table.base);
        self.writes(&mut target, set.iter().map(|s| s.0), false)?;
        let Arranged { mut source, filter, width, .. } = arranged;
        wanted::judge_first(&mut source);
        let update = Update { target, source, width, filter, recheck, set, guard, returning, view_checks };
        Ok((Action::Update(Box::new(update)), out))
    }

    pub(super) fn delete(&mut self, s: &stmt::Delete, params: &mut Params) -> Result<Planned> {
        no_cursor(s.current_of.as_ref())?;
        let face = self.changed(&s.table, "DELETE", "d")?;
        let subplans = self.subplans.len();
        let (layout, mut conditions, target) =
            self.changed_rows(&face, &s.table, &s.using, s.filter.as_ref(), params)?;
        let scope = Scope::over(layout.columns.clone(), None);
        let (mut returning, out) = self.returning(&s.returning, &scope, params)?;
        face.settle(returning.iter_mut().flatten());
        self.refuse_made(subplans)?;
        self.change_guard(&face, 'd', &mut conditions)?;
        let (mut target, mut recheck) = (target, conjunction(conditions.clone()));
        let exprs = returning.iter_mut().flatten().chain(&mut recheck).collect();
        let arranged = self.arrange(layout, conditions, Rest { exprs, is_change: true, ends: true, ..Rest::default() });
        target.table.base = arranged.place(target.table.base);
        let Arranged { mut source, filter, width, .. } = arranged;
        wanted::judge_first(&mut source);
        let delete = Delete { target, source, width, filter, recheck, returning };
        Ok((Action::Delete(Box::new(delete)), out))
    }

    fn changed_rows(
        &mut self,
        face: &ChangeTarget,
        table: &TableRef,
        others: &[clearway_syntax::ast::FromItem],
        filter: Option<&Expr>,
        params: &mut Params,
    ) -> Result<(Layout, Vec<Bound>, Target)> {
        let mut layout = match face.catalog {
            Some(view) => system::target_layout(view, table.alias.as_ref())?,
            None => self.target_table(table, face.table())?,
        };
        match &face.through {
            Some(through) => layout.columns = through.names(table.alias.as_ref())?,
            None if face.catalog.is_some() => {}
            None => super::from::note_reads(&mut layout.columns, 0, &face.used.reads),
        }
        let added = self.add_items(&mut layout, others, None, params);
        added.map_err(|e| entries::out_of_sight(e, [&FromItem::Table(table.clone())]))?;
        let mut conditions = Vec::new();
        if let Some(e) = filter {
            let scope = Scope::over(layout.columns.clone(), None);
            conditions = split(self.condition(e, &scope, params, "WHERE")?);
        }
        face.settle(conditions.iter_mut());
        if let Some(through) = &face.through {
            match through.is_barrier() {
                true => super::policies::put_before(through.conditions.clone(), &mut conditions),
                false => drop(conditions.splice(0..0, through.conditions.iter().cloned())),
            }
        }
        let target = self.target(face.table())?;
        Ok((layout, conditions, target))
    }
}

/// A live column by name.
///
/// # Errors
/// 42703.
pub fn column_of(relation: &Relation, name: &str, pos: Pos) -> Result<usize> {
    relation
        .columns
        .iter()
        .position(|c| c.name == name && !c.is_dropped())
        .ok_or_else(|| SqlError::new(code::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")).at(pos))
}

pub(super) fn given_columns(relation: &Relation, s: &stmt::Insert) -> Result<Vec<usize>> {
    if s.columns.is_empty() {
        return Ok((0..relation.columns.len()).filter(|i| !relation.columns[*i].is_dropped()).collect());
    }
    let mut out = Vec::new();
    for (name, pos) in &s.columns {
        let at = relation.columns.iter().position(|c| c.name == *name && !c.is_dropped()).ok_or_else(|| {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
            SqlError::new(code::UNDEFINED_COLUMN, message).at(*pos)
        })?;
        if out.contains(&at) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new("42701", message).at(*pos));
        }
        out.push(at);
    }
    Ok(out)
}

/// CUO-1: the session puts a row in the place of WHERE CURRENT OF before a statement is planned, where it stands by itself.
fn no_cursor(current_of: Option<&String>) -> Result<()> {
    match current_of {
        Some(_) => Err(SqlError::unsupported("WHERE CURRENT OF within another statement")),
        None => Ok(()),
    }
}
