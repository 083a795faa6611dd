//! Row-level security: which rows of a table a statement may see, and which it may write.
//!
//! # Life of a policy's condition
//! A condition over the rows that are read becomes a filter of the table's scan, before any condition of the statement. If a condition
//! can't be evaluated in a scan (PLN-4), the table becomes a subquery of its own. Conditions over new rows are part of INSERT and UPDATE,
//! which evaluate them for each row before its constraints.
//!
//! # Invariants
//! - RLS-1: no condition of a statement is evaluated for a row that a policy hides, unless the condition can't fail and reveals nothing
//!   about the row (`is_leakproof`).
//! - RLS-2: for a table that a view names, the policies of the view's owner apply (PRV-1).
//! - RLS-3: if row-level security applies to a table, and no permissive policy is for the role and the command, there are no rows.
//!
//! Source: PostgreSQL 15's src/backend/rewrite/rowsecurity.c, src/backend/utils/misc/rls.c.

use super::Planner;
use super::from::{Item, Layout, Leaf, Placed};
use super::plan::{Body, Node, OutputColumn, Query, RowLock, Select, TableSlot, conjunction};
use super::through::ChangeTarget;
use super::view::Meaning;
use super::walk;
use clearway_engine::catalog::{Oid, Policy, PolicyCondition, Relation};
use clearway_syntax::ast::{Locking, TableRef};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::{Bound, BoundKind, Params, Scope};
use clearway_values::types::{Datum, SqlType, oid};
use std::sync::Arc;

/// A condition that a new row must meet, or the existing row that ON CONFLICT DO UPDATE changes.
#[derive(Clone, Debug)]
pub struct PolicyCheck {
    /// The restrictive policy; none: no permissive one permits the row.
    pub name: Option<String>,
    /// The condition, over the table's columns from slot 0.
    pub condition: Bound,
}

/// What an INSERT asks of rows.
#[derive(Clone, Debug, Default)]
pub struct InsertGuard {
    /// Of those that it inserts.
    pub inserted: Vec<PolicyCheck>,
    /// Of those that DO UPDATE changes, as they were.
    pub existing: Vec<PolicyCheck>,
    /// And as they become.
    pub updated: Vec<PolicyCheck>,
}

/// How far row-level security holds for what is being planned.
#[derive(Default)]
pub(super) struct Expansion {
    /// It does not: a view or a policy is being made, nothing is read.
    pub off: bool,
    /// The tables whose policies are being bound: their conditions may name others.
    open: Vec<Oid>,
}

/// Whether evaluating an expression tells nothing of the row but by its value: it can't fail.
pub(super) fn is_leakproof(e: &Bound) -> bool {
    let all = || e.children().into_iter().all(is_leakproof);
    match &e.kind {
        BoundKind::Const(_) | BoundKind::Column { .. } | BoundKind::Param(_) => true,
        BoundKind::And(_) | BoundKind::Or(_) | BoundKind::Not(_) | BoundKind::IsNull { .. } => all(),
        BoundKind::IsTruth { .. } => all(),
        BoundKind::Binary { op, left, right } => op.is_comparison() && is_plain(left) && is_plain(right) && all(),
        BoundKind::InList { arg, list, .. } => is_plain(arg) && list.iter().all(is_plain) && all(),
        BoundKind::Cast { arg, explicit: _ } => {
            let integer = |ty: SqlType| match ty.oid {
                oid::INT2 => 2,
                oid::INT4 => 4,
                oid::INT8 => 8,
                _ => 0,
            };
            let text = |ty: SqlType| matches!(ty.oid, oid::TEXT | oid::VARCHAR | oid::NAME) && ty.modifier < 0;
            let widens = integer(arg.ty) > 0 && integer(arg.ty) <= integer(e.ty);
            (widens || (text(arg.ty) && text(e.ty))) && all()
        }
        _ => false,
    }
}

/// Whether values of the type are compared byte by byte or number by number.
fn is_plain(e: &Bound) -> bool {
    matches!(
        e.ty.oid,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::TEXT
            | oid::VARCHAR
            | oid::BPCHAR
            | oid::NAME
            | oid::BYTEA
            | oid::DATE
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::UUID
            | oid::FLOAT4
            | oid::FLOAT8
    )
}

/// Puts conditions of policies, or of a view that is a barrier, before those of the statement (RLS-1). Where one of them has to wait until all joins are done, the
/// statement's conditions that could tell of hidden rows wait behind it.
pub(super) fn put_before(policies: Vec<Bound>, conditions: &mut Vec<Bound>) {
    if !policies.iter().any(walk::stays_above) {
        conditions.splice(0..0, policies);
        return;
    }
    let (mut safe, leaky): (Vec<Bound>, Vec<Bound>) = conditions.drain(..).partition(is_leakproof);
    let (above, in_scan): (Vec<Bound>, Vec<Bound>) = policies.into_iter().partition(walk::stays_above);
    let all: Vec<Bound> = above.into_iter().chain(leaky).collect();
    conditions.extend(in_scan);
    conditions.append(&mut safe);
    // One condition, so that its parts stay together and in this order.
    conditions.extend(conjunction(all));
}

fn or(mut list: Vec<Bound>) -> Bound {
    if list.len() == 1 {
        return list.swap_remove(0);
    }
    Bound { kind: BoundKind::Or(list), ty: oid::BOOL.into(), pos: 0 }
}

/// Shifts the slots of an expression over a layout that begins at slot 0 to where the layout begins.
pub(super) fn shift(e: &mut Bound, by: usize) {
    if let BoundKind::Column { index, level: 0 } = &mut e.kind {
        *index += by;
    }
    e.children_mut().into_iter().for_each(|child| shift(child, by));
}

impl Planner<'_> {
    /// Whether the policies of a table hold for the session's role, or for the owner of the view that names the table (RLS-2).
    ///
    /// # Errors
    /// 42501 where `row_security` is off and they do.
    pub(super) fn is_guarded(&self, r: &Relation, owner: Option<Oid>) -> Result<bool> {
        let judge = self.env.judge.or_owner(owner);
        if !r.security.enabled || self.policies.off || !judge.is_held_by_policies(r) {
            return Ok(false);
        }
        if self.env.row_security {
            return Ok(true);
        }
        let message = format!("query would be affected by row-level security policy for table \"{}\"", r.name);
        let error = SqlError::new("42501", message);
        let hint = "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY.";
        Err(if judge.owns(r.owner) { error.hint(hint) } else { error })
    }

    /// The policies for a command that hold for that role: permissive ones and restrictive ones, by name.
    fn policies_for(&self, r: &Relation, owner: Option<Oid>, command: char) -> (Vec<Policy>, Vec<Policy>) {
        let judge = self.env.judge.or_owner(owner);
        let fits = |p: &&Policy| {
            (p.command == '*' || p.command == command)
                && p.roles.iter().any(|role| *role == 0 || judge.has_rights_of(*role))
        };
        let mut list: Vec<Policy> = r.security.policies.iter().filter(fits).cloned().collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list.into_iter().partition(|p| !p.restrictive)
    }

    /// A condition of a policy over the table's columns from slot 0.
    pub fn policy_condition(&mut self, r: &Relation, owner: Option<Oid>, c: &PolicyCondition) -> Result<Bound> {
        let e = clearway_syntax::parse_expression(&c.text)?;
        let scope = Scope::over(super::leaf::table_columns(r, &c.table, 0), None);
        let ctes = std::mem::take(&mut self.ctes);
        let outer = std::mem::replace(&mut self.meaning, Meaning::of_policy(owner, c));
        self.policies.open.push(r.oid);
        let place = "policy expressions";
        let bound = self.on_path(c.meaning.path.as_deref(), |p| {
            p.bind(&scope, &mut Params::default(), place, None, |b| b.bind_condition(&e, "POLICY"))
        });
        self.policies.open.pop();
        self.meaning = outer;
        self.ctes = ctes;
        let bound = bound?;
        self.note(&bound);
        Ok(bound)
    }

    /// The conditions that rows must meet to be read for a command (RLS-3).
    pub(super) fn visible_rows(&mut self, r: &Relation, owner: Option<Oid>, command: char) -> Result<Vec<Bound>> {
        let (permissive, restrictive) = self.policies_for(r, owner, command);
        let permitted: Vec<&PolicyCondition> = permissive.iter().filter_map(|p| p.using.as_ref()).collect();
        if permitted.is_empty() {
            return Ok(vec![Bound::constant(Datum::Bool(false), oid::BOOL, 0)]);
        }
        let mut out = Vec::new();
        for using in restrictive.iter().filter_map(|p| p.using.as_ref()) {
            out.push(self.policy_condition(r, owner, using)?);
        }
        let any = permitted.into_iter().map(|using| self.policy_condition(r, owner, using));
        out.push(or(any.collect::<Result<_>>()?));
        Ok(out)
    }

    /// The conditions that new rows must meet; with `using`, that rows must meet which are there already.
    pub(super) fn writable_rows(
        &mut self,
        r: &Relation,
        owner: Option<Oid>,
        command: char,
        using: bool,
        out: &mut Vec<PolicyCheck>,
    ) -> Result<()> {
        let (permissive, restrictive) = self.policies_for(r, owner, command);
        let of = |p: &Policy| if using { p.using.clone() } else { p.check.clone().or_else(|| p.using.clone()) };
        let permitted: Vec<PolicyCondition> = permissive.iter().filter_map(of).collect();
        if permitted.is_empty() {
            out.push(PolicyCheck { name: None, condition: Bound::constant(Datum::Bool(false), oid::BOOL, 0) });
            return Ok(());
        }
        let any = permitted.iter().map(|condition| self.policy_condition(r, owner, condition));
        out.push(PolicyCheck { name: None, condition: or(any.collect::<Result<_>>()?) });
        for p in &restrictive {
            if let Some(condition) = of(p) {
                let condition = self.policy_condition(r, owner, &condition)?;
                out.push(PolicyCheck { name: Some(p.name.clone()), condition });
            }
        }
        Ok(())
    }

    /// What the statement asks of the rows of an INSERT; none: nothing.
    pub(super) fn insert_guard(&mut self, face: &ChangeTarget, updates: bool) -> Result<Option<Box<InsertGuard>>> {
        let (table, owner) = (face.table().clone(), face.owner());
        if !self.is_guarded(&table, owner)? {
            return Ok(None);
        }
        let reads = face.used.reads.columns().next().is_some();
        let mut guard = InsertGuard::default();
        self.writable_rows(&table, owner, 'a', false, &mut guard.inserted)?;
        if reads {
            self.writable_rows(&table, owner, 'r', true, &mut guard.inserted)?;
        }
        if updates {
            self.writable_rows(&table, owner, 'w', true, &mut guard.existing)?;
            self.writable_rows(&table, owner, 'w', false, &mut guard.updated)?;
            if reads {
                self.writable_rows(&table, owner, 'r', true, &mut guard.existing)?;
                self.writable_rows(&table, owner, 'r', true, &mut guard.updated)?;
            }
        }
        Ok(Some(Box::new(guard)))
    }

    /// Adds what policies ask of the rows that UPDATE and DELETE look for, and gives what they ask of the new rows of UPDATE. Called when
    /// all of the statement is bound: only what reads columns has to meet the policies for SELECT.
    pub(super) fn change_guard(
        &mut self,
        face: &ChangeTarget,
        command: char,
        conditions: &mut Vec<Bound>,
    ) -> Result<Arc<[PolicyCheck]>> {
        let (table, owner) = (face.table().clone(), face.owner());
        if !self.is_guarded(&table, owner)? {
            return Ok(Arc::from([]));
        }
        let reads = face.used.reads.columns().next().is_some();
        let mut rows = self.visible_rows(&table, owner, command)?;
        if reads {
            rows.extend(self.visible_rows(&table, owner, 'r')?);
        }
        put_before(rows, conditions);
        let mut checks = Vec::new();
        if command == 'w' {
            self.writable_rows(&table, owner, 'w', false, &mut checks)?;
            if reads {
                self.writable_rows(&table, owner, 'r', true, &mut checks)?;
            }
        }
        Ok(checks.into())
    }

    /// A table in FROM, as far as the policies let its rows be seen.
    pub(super) fn guarded_leaf(
        &mut self,
        out: &mut Layout,
        r: &Relation,
        t: &TableRef,
        locking: Vec<Locking>,
    ) -> Result<Placed> {
        let owner = self.meaning.owner;
        if !self.is_guarded(r, owner)? {
            return self.table_leaf(out, r, t.alias.as_ref(), t.name.name());
        }
        if self.policies.open.contains(&r.oid) {
            let message = format!("infinite recursion detected in policy for relation \"{}\"", r.name);
            return Err(SqlError::new("42P17", message));
        }
        // A statement that locks rows needs the right to update them.
        let mut rows = if locking.is_empty() { Vec::new() } else { self.visible_rows(r, owner, 'w')? };
        rows.extend(self.visible_rows(r, owner, 'r')?);
        if rows.iter().any(walk::stays_above) {
            return self.barrier(out, r, t, &locking, rows);
        }
        let (mut item, columns) = self.table_leaf(out, r, t.alias.as_ref(), t.name.name())?;
        let base = item.base();
        rows.iter_mut().for_each(|e| shift(e, base));
        if let Item::Leaf { filters, .. } = &mut item {
            *filters = rows;
        }
        Ok((item, columns))
    }

    /// The rows of a table as a query of its own, which nothing is pulled out of.
    fn barrier(
        &mut self,
        out: &mut Layout,
        r: &Relation,
        t: &TableRef,
        locking: &[Locking],
        conditions: Vec<Bound>,
    ) -> Result<Placed> {
        let mut inner = Layout::empty();
        let (item, _) = self.table_leaf(&mut inner, r, None, &r.name)?;
        inner.item = item;
        let Some(table) = inner.tables.first().cloned() else {
            return Err(SqlError::internal("a leaf without a table"));
        };
        let mut query = inside(&table, r, locking, &conditions);
        self.give_source(&mut query, inner, conditions, !locking.is_empty());
        let (base, name) = (out.width, t.alias.as_ref().map_or(t.name.name(), |a| &a.name));
        out.width += query.columns.len();
        let live = r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped());
        let columns = live.map(|(i, c)| (c.name.as_str(), table.types[i], base + i)).collect();
        let columns = super::leaf::named(columns, name, t.alias.as_ref())?;
        out.others.push(name.to_owned());
        out.queries.push((name.to_owned(), base));
        let kind = Leaf::Derived { query: Arc::new(query), kept: None, lateral: false };
        Ok((Item::Leaf { kind, base, end: out.width, filters: Vec::new() }, columns))
    }
}

/// The query of a barrier: all columns, dropped ones included, so that places stay.
fn inside(table: &TableSlot, r: &Relation, locking: &[Locking], conditions: &[Bound]) -> Query {
    let column = |(index, ty): (usize, &SqlType)| match r.columns[index].is_dropped() {
        true => Bound::constant(Datum::Null, *ty, 0),
        false => Bound { kind: BoundKind::Column { index, level: 0 }, ty: *ty, pos: 0 },
    };
    let targets: Vec<Bound> = table.types.iter().enumerate().map(column).collect();
    let named = r.columns.iter().zip(table.types.iter()).enumerate();
    let columns = named.map(|(i, (c, ty))| OutputColumn {
        name: c.name.clone(),
        ty: *ty,
        origin: (r.oid, i as i16 + 1),
        shape: None,
    });
    let mut locks: Vec<RowLock> = Vec::new();
    for l in locking {
        match locks.first_mut() {
            Some(lock) => lock.strength = lock.strength.max(l.strength),
            None => locks.push(RowLock { table: table.clone(), strength: l.strength, wait: l.wait }),
        }
    }
    let mut select = Select::plain(Arc::new(Node::One), table.key_slot() + 1, targets);
    select.recheck = if locks.is_empty() { None } else { conjunction(conditions.to_vec()) };
    select.locks = locks;
    select.barrier = true;
    Query::of(Body::Select(Box::new(select)), columns.collect())
}
