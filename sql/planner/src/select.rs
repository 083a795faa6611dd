//! Plans query levels: target lists, grouping, ordering, set operations, locking clauses.

use super::Planner;
use super::checks::{check_distinct, first_target, leftmost, lockable_side, what_locks_exclude};
use super::from::Layout;
use super::grouping::{LIFTED_SLOT, Level, LevelStages};
use super::plan::{Body, Distinct, Node, OutputColumn, Query, RowLock, Select, SortKey, TableSlot, conjunction, split};
use super::pullup::Raw;
use clearway_base::{breath, stack};
use clearway_syntax::ast::{
    BareFunction, Expr, ExprKind, Literal, Locking, OrderBy, QualName, Query as AstQuery, QueryBody,
    Select as AstSelect, SetOp, Target,
};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_values::expr::collect::{Collected, Permits};
use clearway_values::expr::{Bound, BoundKind, Params, Scope, ScopeColumn};
use clearway_values::types::cast::Context;
use clearway_values::types::order::{need_equality, need_order};
use clearway_values::types::{Datum, SqlType, oid};
use std::sync::Arc;

impl Planner<'_> {
    /// Plans a query whose outer names resolve in `parent`.
    pub(super) fn query(
        &mut self,
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Arc<Query>> {
        stack::deeper(|| self.query_here(q, parent, params))
    }

    fn query_here(&mut self, q: &AstQuery, parent: Option<&Scope<'_>>, params: &mut Params) -> Result<Arc<Query>> {
        breath::step(16 * breath::ROW)?;
        let outer_ctes = self.ctes.len();
        self.level += 1;
        let with = q.with.as_ref().map_or(Ok(()), |with| self.with(with, parent, params));
        let plan = with.and_then(|()| match &q.body {
            QueryBody::Select(s) => self.select(s, q, parent, params),
            QueryBody::Values(rows) => self.values(rows, q, parent, params),
            QueryBody::SetOp { op, all, left, right } => self.set_op((*op, *all, left, right), q, parent, params),
        });
        self.level -= 1;
        self.ctes.truncate(outer_ctes);
        let plan = Arc::new(plan?);
        self.keep_raw(&plan);
        Ok(plan)
    }

    fn limits(&mut self, q: &AstQuery, scope: &Scope<'_>, params: &mut Params) -> Result<[Option<Bound>; 2]> {
        super::ties::check(q)?;
        let mut out = [None, None];
        for (slot, (e, what)) in out.iter_mut().zip([(&q.limit, "LIMIT"), (&q.offset, "OFFSET")]) {
            let Some(e) = e else { continue };
            let bound = self.bind(scope, params, what, None, |b| {
                let bound = b.bind_unsettled(e)?;
                let (from, pos) = (bound.ty.oid, bound.pos);
                b.coerce(bound, oid::INT8.into(), Context::Assignment)?.ok_or_else(|| {
                    let shown = clearway_values::types::format_type(from.into());
                    let message = format!("argument of {what} must be type bigint, not type {shown}");
                    SqlError::new(code::DATATYPE_MISMATCH, message).at(pos)
                })
            })?;
            super::rewrite::without_columns(&bound, what, &self.subplans)?;
            *slot = Some(bound);
        }
        Ok(out)
    }

    /// Plans a level over what its FROM lays out.
    pub(super) fn select_from(
        &mut self,
        mut layout: super::from::Layout,
        s: &AstSelect,
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Query> {
        let mut conditions = Vec::new();
        if let Some(filter) = &s.filter {
            let scope = Scope { decimals: layout.decimals, ..Scope::over(layout.columns.clone(), parent) };
            conditions = split(self.condition(filter, &scope, params, "WHERE")?);
        }
        let mut collected = Collected { named: s.windows.clone(), ..Collected::default() };
        let mut scope = Scope::over(layout.columns.clone(), parent);
        (scope.aggregates, scope.decimals) = (Some((collected.aggregates.clone(), LIFTED_SLOT)), layout.decimals);
        scope.repeats = super::repeated::in_keys(s).then(Default::default);
        let everything = Permits { windows: true, sets: true, is_key: false };
        collected.permits = everything;
        let (mut targets, columns) = self.targets(&s.targets, &scope, params, Some(&mut collected))?;
        self.check_windows(s, &scope, params, &mut collected)?;
        let mut keys = self.group_keys(s, &targets, &columns, &scope, params, &mut collected)?;
        collected.permits = Permits::default();
        let mut having = match &s.having {
            Some(e) => {
                let here = Some(&mut collected);
                Some(self.bind(&scope, params, "HAVING", here, |b| b.bind_condition(e, "HAVING"))?)
            }
            None => None,
        };
        collected.permits = everything;
        let mut sort = Vec::new();
        for o in &q.order_by {
            sort.push(self.sort_key(o, (&s.targets, &targets), &columns, Some((&scope, &mut collected)), params)?);
        }
        let mut distinct = match &s.distinct {
            None => None,
            Some(list) if list.is_empty() => Some(Distinct::Row),
            Some(list) => {
                let on = list.iter().map(|e| self.distinct_key(e, &targets, &columns, &scope, params, &mut collected));
                Some(Distinct::On(on.collect::<Result<_>>()?))
            }
        };
        check_distinct(distinct.as_ref(), &targets, &sort, s, q)?;
        let mut level = Level { targets: &mut targets, having: &mut having, sort: &mut sort, distinct: &mut distinct };
        self.move_set_keys(&mut keys, &mut level, &mut collected, &mut layout)?;
        let mut behind = self.settle_level(collected, keys, level, &layout)?;
        if let Some(grouping) = &mut behind.grouping {
            grouping.having = having;
        }
        let locks = self.row_locks(&q.locking, s, &behind, &layout, &conditions)?;
        // A subquery's conditions are asked for when a row around it has changed (EXE-6).
        let recheck = if locks.is_empty() && parent.is_none() {
            None
        } else {
            conjunction(layout.item.conditions_with(&conditions))
        };
        let [limit, offset] = self.limits(q, &Scope { aggregates: None, ..scope }, params)?;
        let outer = if locks.is_empty() { Vec::new() } else { layout.item.outer_joins() };
        let LevelStages { grouping, windows, sets, lifted } = behind;
        let plain = Select::plain(Arc::new(Node::One), layout.width, targets);
        let body = Select { grouping, windows, sets, locks, recheck, outer, distinct, ..plain };
        let mut query = Query { body: Body::Select(Box::new(body)), sort, limit, offset, ties: q.ties, columns };
        let raw = if self.level > 1 { Raw::of(&query, &layout, &conditions, q, &self.subplans) } else { None };
        self.give_source(&mut query, layout, conditions, !q.locking.is_empty());
        self.place_lifted(&mut query, lifted);
        super::ties::give_keys(&mut query);
        self.raw = raw;
        Ok(query)
    }

    /// Binds a target list, stars expanded.
    pub(super) fn targets(
        &mut self,
        list: &[Target],
        scope: &Scope<'_>,
        params: &mut Params,
        mut collected: Option<&mut Collected>,
    ) -> Result<(Vec<Bound>, Vec<OutputColumn>)> {
        let mut out = (Vec::new(), Vec::new());
        let push = |out: &mut (Vec<Bound>, Vec<OutputColumn>), (bound, shape): (Bound, _), name: String| {
            let origin = origin_of(&bound, scope);
            out.1.push(OutputColumn { name, ty: bound.ty, origin, shape });
            out.0.push(bound);
        };
        for target in list {
            match target {
                Target::Star(pos) => {
                    if scope.columns.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::new(code::SYNTAX_ERROR, message).at(*pos));
                    }
                    for c in self.meaning.star(scope.columns.iter().filter(|c| !c.hidden).collect()) {
                        push(&mut out, (column_ref(c, *pos), c.shape.clone()), c.name.clone());
                    }
                }
                Target::QualifiedStar(name) => {
                    let relation = name.name();
                    let of_it = scope.columns.iter().filter(|c| c.relation.as_deref() == Some(relation));
                    let own = of_it.filter(|c| !c.hidden || !clearway_values::expr::is_system_column(&c.name));
                    let of_it = self.meaning.star(own.collect());
                    for c in &of_it {
                        push(&mut out, (column_ref(c, name.pos), c.shape.clone()), c.name.clone());
                    }
                    for (name, field) in self.fields_of_variable(name, scope, params, of_it.is_empty())? {
                        push(&mut out, (field, None), name);
                    }
                }
                Target::Expr { expr, alias: _ } if matches!(&*expr.kind, ExprKind::AllFields(_)) => {
                    let ExprKind::AllFields(row) = &*expr.kind else { continue };
                    let here = collected.as_deref_mut();
                    for (name, field) in self.bind(scope, params, "RETURNING", here, |b| b.all_fields(row))? {
                        push(&mut out, (field, None), name);
                    }
                }
                Target::Expr { expr, alias } => {
                    let bound = self.bind(scope, params, "RETURNING", collected.as_deref_mut(), |b| {
                        let bound = b.bind(expr)?;
                        let shape = if bound.ty.oid == oid::RECORD { b.shape_of(&bound) } else { None };
                        Ok((bound, shape))
                    })?;
                    let name = alias.clone().unwrap_or_else(|| label_of(expr));
                    push(&mut out, bound, name);
                }
            }
        }
        Ok(out)
    }

    /// An expression of DISTINCT ON.
    fn distinct_key(
        &mut self,
        e: &Expr,
        targets: &[Bound],
        columns: &[OutputColumn],
        scope: &Scope<'_>,
        params: &mut Params,
        collected: &mut Collected,
    ) -> Result<Bound> {
        if let Some(at) = position(e, targets.len(), "DISTINCT ON")? {
            return Ok(targets[at].clone());
        }
        if let ExprKind::Column(name) = &*e.kind
            && name.parts.len() == 1
            && let Some(at) = columns.iter().position(|c| c.name == name.name())
        {
            return Ok(targets[at].clone());
        }
        self.bind(scope, params, "DISTINCT ON", Some(collected), |b| b.bind(e))
    }

    pub(super) fn group_key(
        &mut self,
        e: &Expr,
        (list, targets): (&[Target], &[Bound]),
        columns: &[OutputColumn],
        scope: &Scope<'_>,
        params: &mut Params,
        collected: &mut Collected,
    ) -> Result<Bound> {
        if let Some(at) = position(e, targets.len(), "GROUP BY")? {
            return Ok(targets[at].clone());
        }
        if let ExprKind::Column(name) = &*e.kind
            && name.parts.len() == 1
            && !scope.columns.iter().any(|c| !c.hidden && c.name == name.name())
            && let Some(at) = named(name, targets, columns, "GROUP BY")?
        {
            return Ok(targets[at].clone());
        }
        if let Some(at) = super::repeated::item(e, list, targets) {
            return Ok(targets[at].clone());
        }
        self.bind(scope, params, "GROUP BY", Some(collected), |b| b.bind(e))
    }

    fn sort_key(
        &mut self,
        o: &OrderBy,
        (list, targets): (&[Target], &[Bound]),
        columns: &[OutputColumn],
        scope: Option<(&Scope<'_>, &mut Collected)>,
        params: &mut Params,
    ) -> Result<SortKey> {
        let by_name = || match &*o.expr.kind {
            ExprKind::Column(name) if name.parts.len() == 1 => named(name, targets, columns, "ORDER BY"),
            _ => Ok(None),
        };
        let at = match position(&o.expr, targets.len(), "ORDER BY")? {
            Some(at) => Some(at),
            None => by_name()?.or_else(|| super::repeated::item(&o.expr, list, targets)),
        };
        let expr = match (at, scope) {
            (Some(at), _) => targets[at].clone(),
            (None, Some((scope, collected))) => {
                self.bind(scope, params, "ORDER BY", Some(collected), |b| b.bind(&o.expr))?
            }
            (None, None) => {
                return Err(SqlError::new(
                    code::FEATURE_NOT_SUPPORTED,
                    "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                )
                .detail("Only result column names can be used, not expressions or functions.")
                .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
                .at(leftmost(&o.expr)));
            }
        };
        need_order(expr.ty, leftmost(&o.expr))?;
        Ok(SortKey { expr, descending: o.descending, nulls_first: o.nulls_first.unwrap_or(o.descending) })
    }

    fn values(
        &mut self,
        rows: &[Vec<Expr>],
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Query> {
        let scope = Scope::over(Vec::new(), parent);
        let width = rows.first().map_or(0, Vec::len);
        if let Some(bad) = rows.iter().find(|r| r.len() != width) {
            let pos = bad.first().map_or(q.pos, |e| e.pos);
            return Err(SqlError::new(code::SYNTAX_ERROR, "VALUES lists must all be the same length").at(pos));
        }
        let mut bound: Vec<Vec<Bound>> = Vec::new();
        for row in rows {
            let row = row.iter().map(|e| self.bind(&scope, params, "VALUES", None, |b| b.bind_unsettled(e)));
            bound.push(row.collect::<Result<_>>()?);
        }
        let mut types = Vec::new();
        for i in 0..width {
            let column: Vec<Bound> = bound.iter().map(|r| r[i].clone()).collect();
            let (unified, ty) = self.bind(&scope, params, "VALUES", None, |b| b.unify(column, "VALUES"))?;
            types.push(clearway_values::expr::with_common_modifier(&unified, ty));
            for (row, e) in bound.iter_mut().zip(unified) {
                self.note(&e);
                row[i] = e;
            }
        }
        let columns: Vec<OutputColumn> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| OutputColumn { name: format!("column{}", i + 1), ty: *ty, origin: (0, 0), shape: None })
            .collect();
        self.over_output(Body::Values(bound), columns, q, parent, params)
    }

    /// ORDER BY and LIMIT over a body's output columns.
    fn over_output(
        &mut self,
        body: Body,
        columns: Vec<OutputColumn>,
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Query> {
        if let Some(locking) = q.locking.first() {
            let message = format!("{} is not allowed with UNION/INTERSECT/EXCEPT", locking.strength.sql());
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        let outputs: Vec<Bound> = columns
            .iter()
            .enumerate()
            .map(|(index, c)| Bound { kind: BoundKind::Column { index, level: 0 }, ty: c.ty, pos: q.pos })
            .collect();
        let mut sort = Vec::new();
        for o in &q.order_by {
            sort.push(self.sort_key(o, (&[], &outputs), &columns, None, params)?);
        }
        let [limit, offset] = self.limits(q, &Scope::over(Vec::new(), parent), params)?;
        Ok(Query { body, sort, limit, offset, ties: q.ties, columns })
    }

    fn set_op(
        &mut self,
        (op, all, left, right): (SetOp, bool, &AstQuery, &AstQuery),
        q: &AstQuery,
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<Query> {
        let (l, r) = self.sides(left, right, parent, params)?;
        let name = match op {
            SetOp::Union => "UNION",
            SetOp::Intersect => "INTERSECT",
            SetOp::Except => "EXCEPT",
        };
        if l.columns.len() != r.columns.len() {
            let message = format!("each {name} query must have the same number of columns");
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(first_target(right)));
        }
        let mut columns = Vec::new();
        for (i, (a, b)) in l.columns.iter().zip(&r.columns).enumerate() {
            let slot =
                |c: &OutputColumn| Bound { kind: BoundKind::Column { index: i, level: 0 }, ty: c.ty, pos: q.pos };
            let scope = Scope::default();
            let side = |q: &Query, c: &OutputColumn| match &q.body {
                Body::Select(s) if c.ty.oid == oid::UNKNOWN => s.targets.get(i).cloned().unwrap_or_else(|| slot(c)),
                Body::Select(s) => Bound { pos: s.targets.get(i).map_or(0, |t| t.pos), ..slot(c) },
                _ => slot(c),
            };
            let pair = vec![side(&l, a), side(&r, b)];
            let pos = pair[0].pos;
            let (_, ty) = self.bind(&scope, params, name, None, |b| b.unify(pair, name))?;
            let ty = if a.ty == b.ty && a.ty.oid != oid::UNKNOWN { a.ty } else { SqlType::new(ty) };
            if !(op == SetOp::Union && all) {
                need_equality(ty, pos)?;
            }
            columns.push(OutputColumn { name: a.name.clone(), ty, origin: (0, 0), shape: None });
        }
        let (left, right) = (cast_output(l, &columns, q.pos), cast_output(r, &columns, q.pos));
        self.over_output(Body::SetOp { op, all, left, right }, columns, q, parent, params)
    }

    fn row_locks(
        &mut self,
        list: &[Locking],
        s: &AstSelect,
        behind: &LevelStages,
        layout: &Layout,
        conditions: &[Bound],
    ) -> Result<Vec<RowLock>> {
        let mut out: Vec<RowLock> = Vec::new();
        for locking in list {
            if let Some(what) = what_locks_exclude(s, behind) {
                let message = format!("{} is not allowed with {what}", locking.strength.sql());
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
            }
            let mut named: Vec<&TableSlot> = Vec::new();
            for name in &locking.of {
                let found = layout.tables.iter().find(|t| t.name == name.name());
                if let Some((_, base)) = layout.queries.iter().find(|(query, _)| query == name.name()) {
                    lockable_side(layout, *base, conditions, locking)?;
                    continue;
                }
                if found.is_none() && layout.others.iter().any(|o| o == name.name()) {
                    let named = self.ctes.iter().any(|c| c.cte.name == name.name());
                    let what = if named { "a WITH query" } else { "a function" };
                    let message = format!("{} cannot be applied to {what}", locking.strength.sql());
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(name.pos));
                }
                named.push(found.ok_or_else(|| {
                    let clause = locking.strength.sql();
                    if layout.joins.iter().any(|join| join == name.name()) {
                        let message = format!("{clause} cannot be applied to a join");
                        return SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(name.pos);
                    }
                    let message = format!("relation \"{}\" in {clause} clause not found in FROM clause", name.name());
                    SqlError::new(code::UNDEFINED_TABLE, message).at(name.pos)
                })?);
            }
            if locking.of.is_empty() {
                named.extend(&layout.tables);
                layout.queries.iter().try_for_each(|(_, base)| lockable_side(layout, *base, conditions, locking))?;
            }
            for table in named {
                lockable_side(layout, table.base, conditions, locking)?;
                match out.iter_mut().find(|l| l.table.base == table.base) {
                    Some(l) => {
                        l.strength = l.strength.max(locking.strength);
                        if locking.wait == clearway_syntax::ast::LockWait::NoWait {
                            l.wait = locking.wait;
                        }
                    }
                    None => out.push(RowLock { table: table.clone(), strength: locking.strength, wait: locking.wait }),
                }
            }
        }
        Ok(out)
    }
}

/// A side of a set operation with its columns cast to the common types.
pub(super) fn cast_output(q: Arc<Query>, to: &[OutputColumn], pos: Pos) -> Arc<Query> {
    if q.columns.iter().zip(to).all(|(a, b)| a.ty.oid == b.ty.oid) {
        return q;
    }
    let targets = q.columns.iter().zip(to).enumerate().map(|(index, (from, to))| {
        let column = Bound { kind: BoundKind::Column { index, level: 0 }, ty: from.ty, pos };
        if from.ty.oid == to.ty.oid {
            return column;
        }
        Bound { kind: BoundKind::Cast { arg: Box::new(column), explicit: false }, ty: to.ty, pos }
    });
    let targets = targets.collect();
    let width = q.columns.len();
    let derived = super::plan::Derived { query: q, base: 0, kept: None, lateral: false, filter: None, given: None };
    let select = Select::plain(Arc::new(super::plan::Node::Derived(derived)), width, targets);
    Arc::new(Query::of(Body::Select(Box::new(select)), to.to_vec()))
}

fn column_ref(c: &ScopeColumn, pos: Pos) -> Bound {
    c.read(0, pos)
}

fn origin_of(e: &Bound, scope: &Scope<'_>) -> (u32, i16) {
    let BoundKind::Column { index, level } = e.kind else { return (0, 0) };
    let scope = (0..level).try_fold(scope, |scope, _| scope.parent);
    let column = scope.and_then(|scope| scope.columns.iter().find(|c| c.index == index));
    // A cast that takes the modifier away is more than a column.
    column.filter(|c| c.ty.modifier == e.ty.modifier || c.ty.oid != e.ty.oid).map_or((0, 0), |c| c.origin)
}

/// `ORDER BY total`: the place of the output column with this name. Several are no trouble if they are the same expression.
fn named(name: &QualName, targets: &[Bound], columns: &[OutputColumn], clause: &str) -> Result<Option<usize>> {
    let mut found = columns.iter().enumerate().filter(|(_, c)| c.name == name.name()).map(|(at, _)| at);
    let Some(first) = found.next() else { return Ok(None) };
    if found.any(|at| !super::walk::same(&targets[at], &targets[first])) {
        let message = format!("{clause} \"{}\" is ambiguous", name.name());
        return Err(SqlError::new(code::AMBIGUOUS_COLUMN, message).at(name.pos));
    }
    Ok(Some(first))
}

/// `ORDER BY 2`.
fn position(e: &Expr, columns: usize, clause: &str) -> Result<Option<usize>> {
    match &*e.kind {
        ExprKind::Literal(Literal::Int(n)) => {
            let at = usize::try_from(*n).ok().and_then(|n| n.checked_sub(1)).filter(|at| *at < columns);
            at.map(Some).ok_or_else(|| {
                let message = format!("{clause} position {n} is not in select list");
                SqlError::new(code::INVALID_COLUMN_REFERENCE, message).at(e.pos)
            })
        }
        ExprKind::Literal(Literal::Number(_) | Literal::Str(_) | Literal::Bool(_) | Literal::Null) => {
            Err(SqlError::new(code::SYNTAX_ERROR, format!("non-integer constant in {clause}")).at(e.pos))
        }
        _ => Ok(None),
    }
}

/// The label that PostgreSQL gives a target without AS.
pub fn label_of(e: &Expr) -> String {
    match &*e.kind {
        ExprKind::Column(name) => name.name().to_owned(),
        ExprKind::Call(call) => call.name.name().to_owned(),
        ExprKind::Grouping(_) => "grouping".to_owned(),
        ExprKind::Cast { arg, to } => {
            if arg.pos == to.name.pos {
                // B'101' is a constant, not a cast.
                "?column?".to_owned()
            } else if is_weak(arg) {
                to.name.name().to_owned()
            } else {
                label_of(arg)
            }
        }
        ExprKind::Bare(f) => bare_name(f).to_owned(),
        ExprKind::Case { otherwise: Some(e), .. } if !is_weak(e) => label_of(e),
        ExprKind::Case { .. } => "case".to_owned(),
        ExprKind::Coalesce(_) => "coalesce".to_owned(),
        ExprKind::NullIf(..) => "nullif".to_owned(),
        ExprKind::Greatest(_) => "greatest".to_owned(),
        ExprKind::Least(_) => "least".to_owned(),
        ExprKind::Array(_) | ExprKind::ArrayQuery(_) => "array".to_owned(),
        ExprKind::Row(_) => "row".to_owned(),
        ExprKind::Exists(_) => "exists".to_owned(),
        ExprKind::Subscript { arg, .. } | ExprKind::Collate { arg, .. } => label_of(arg),
        ExprKind::Field { name, .. } => name.clone(),
        ExprKind::Subquery(q) => label_of_query(q),
        _ => "?column?".to_owned(),
    }
}

/// The name of the first column of a query.
fn label_of_query(q: &AstQuery) -> String {
    match &q.body {
        QueryBody::Select(s) => match s.targets.first() {
            Some(Target::Expr { alias: Some(name), .. }) => name.clone(),
            Some(Target::Expr { expr, alias: None }) => label_of(expr),
            _ => "?column?".to_owned(),
        },
        QueryBody::Values(_) => "column1".to_owned(),
        QueryBody::SetOp { left, .. } => label_of_query(left),
    }
}

/// Whether an expression has no name, or one that a cast around it replaces.
fn is_weak(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Cast { arg, .. } => is_weak(arg),
        ExprKind::Case { otherwise, .. } => otherwise.as_ref().is_none_or(is_weak),
        ExprKind::Literal(_) => true,
        // What its column is called counts, whatever that is.
        ExprKind::Subquery(_) => false,
        _ => label_of(e) == "?column?",
    }
}

fn bare_name(f: &BareFunction) -> &'static str {
    match f {
        BareFunction::CurrentDate => "current_date",
        BareFunction::CurrentTimestamp(_) => "current_timestamp",
        BareFunction::LocalTimestamp(_) => "localtimestamp",
        BareFunction::CurrentTime(_) => "current_time",
        BareFunction::LocalTime(_) => "localtime",
        BareFunction::CurrentUser => "current_user",
        BareFunction::CurrentRole => "current_role",
        BareFunction::User => "user",
        BareFunction::SessionUser => "session_user",
        BareFunction::CurrentCatalog => "current_catalog",
        BareFunction::CurrentSchema => "current_schema",
    }
}

/// The whole number that LIMIT or OFFSET says, where it is written out.
pub fn written_count(e: &Bound) -> Option<i64> {
    match &e.kind {
        BoundKind::Const(v) => v.as_i64(),
        BoundKind::Cast { arg, .. } => written_count(arg),
        _ => None,
    }
}

/// The value of a constant expression, where it is one.
pub fn constant(e: &Bound) -> Option<&Datum> {
    match &e.kind {
        BoundKind::Const(v) => Some(v),
        _ => None,
    }
}
