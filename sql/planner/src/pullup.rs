//! Merges queries in FROM into the level around them, and turns EXISTS and IN of WHERE into joins.
//!
//! A query that is only a selection is kept (`Raw`) as it was before its conditions were handed down, until the level around it is
//! arranged. Then its items become items of that level, behind the others in the layout, and references to its columns are replaced by
//! the expressions that those columns stand for.
//!
//! # Invariants
//! - PUL-1: from a side of an outer join whose rows may be replaced by nulls, a query is pulled up only if its target list is plain
//!   columns: another expression might not be null for such a row.
//! - PUL-2: a query whose target list is volatile or has a subquery is not pulled up. A function that only tells an object's definition is not
//!   volatile here: views of information_schema have some, and their conditions have to reach the tables of the catalog.
//! - PUL-3: if a query in FROM of a lateral query names the level around the lateral query, it becomes lateral itself when it is pulled up
//!   into that level.
//! - PUL-4: a selection that is kept has its subqueries as they were: its own arrangement moves what they name of it, and the level that takes
//!   the selection in knows nothing of that arrangement. Those of queries in its FROM, too, which that level may not take in as the first one did.
//! - PUL-5: what is kept of a subquery names the levels around it as the subquery does: where the one is changed, so is the other, if no
//!   subquery within it looks out of it; else it is not kept any more, and the subquery stays one.
//! - PUL-6: EXISTS asks only whether there is a row: of its query the target list, ORDER BY, DISTINCT, GROUP BY without aggregates, and a LIMIT of one
//!   row or more say nothing, as in PostgreSQL's `simplify_EXISTS_query`. What is kept of such a query serves EXISTS alone.
//! - PUL-7: a selection is not moved into a level if a subquery anywhere within the selection would be changed by that and stays in use as it was: in a
//!   level whose rows may be judged again, which keeps its conditions as they were bound, and of an expression of WITH, to which other levels may refer.
//! - PUL-9: a query whose rows only a locking clause of the level around it locks is pulled up into that level, and so is a lateral query of such a
//!   level, also one without FROM: as in PostgreSQL, a row is locked if the whole level's conditions leave it, and what is computed from a row that has changed is
//!   computed anew. A query with a locking clause of its own locks its rows first, and stays.
//! - PUL-8: a level that has [`ITEMS_MAX`] items takes in no further selection: expressions of WITH that are planned at each reference to them would
//!   double a level each time that one names the one before twice, and a join of so many items takes more stack than there is.

use super::Planner;
use super::from::{Item, Layout, Leaf, Written};
use super::plan::{Body, Grouping, JoinType, KeptRows, OutputColumn, Query, RowLock, Subplan};
use super::rewrite::Rewriter;
use super::select::written_count;
use super::walk;
use clearway_base::stack;
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// A query that is only a selection, before its conditions are handed down.
#[derive(Clone)]
pub(super) struct Raw {
    pub item: Item,
    pub conditions: Vec<Bound>,
    pub targets: Vec<Bound>,
    pub width: usize,
    /// The statement's subqueries at that time (PUL-4).
    pub subqueries: Vec<Arc<Query>>,
    /// The rows of its own tables that it locks (PUL-9).
    pub locks: Vec<RowLock>,
    /// A locking clause around it locks its rows, those of its own tables or of queries in its FROM.
    pub is_locked: bool,
    /// PUL-6
    pub for_exists: bool,
    /// Whether a query in its FROM has a correlated subquery, once it was asked: levels that take in each other's selections ask each time.
    has_below: OnceLock<bool>,
}

/// Selections that are kept, by the addresses of their queries.
pub(super) type Raws = HashMap<usize, (Arc<Query>, Arc<Raw>)>;

impl Raw {
    /// A selection as it stands.
    pub fn new(layout: &Layout, conditions: &[Bound], targets: &[Bound], subplans: &[Subplan]) -> Raw {
        let (item, conditions, targets) = (layout.item.clone(), conditions.to_vec(), targets.to_vec());
        let subqueries = subplans.iter().map(|s| s.query.clone()).collect();
        Raw {
            item,
            conditions,
            targets,
            width: layout.width,
            subqueries,
            locks: Vec::new(),
            is_locked: false,
            for_exists: false,
            has_below: OnceLock::new(),
        }
    }

    /// Whether it has no FROM.
    fn is_one(&self) -> bool {
        matches!(self.item, Item::Leaf { kind: Leaf::One, .. })
    }

    /// What is kept of a query whose source is still to come; none: it is no selection, and EXISTS needs more of it than that, or it has a locking clause
    /// of its own (PUL-9).
    pub fn of(
        query: &Query,
        layout: &Layout,
        conditions: &[Bound],
        text: &clearway_syntax::ast::Query,
        subplans: &[Subplan],
    ) -> Option<Raw> {
        if !text.locking.iter().all(|l| l.is_handed_down) {
            return None;
        }
        let Body::Select(select) = &query.body else { return None };
        let is_limited = query.limit.is_some() || query.offset.is_some();
        let is_plain = select.grouping.is_none() && select.distinct.is_none() && query.sort.is_empty() && !is_limited;
        if !select.windows.is_empty() || select.sets.is_some() {
            return None;
        }
        if is_plain {
            let (locks, is_locked) = (select.locks.clone(), !text.locking.is_empty());
            return Some(Raw { locks, is_locked, ..Raw::new(layout, conditions, &select.targets, subplans) });
        }
        if !text.locking.is_empty() {
            return None;
        }
        // PUL-6
        let gives_rows = select.grouping.as_ref().is_none_or(Grouping::gives_each_key);
        let has_room = query.limit.as_ref().is_none_or(|e| written_count(e).is_some_and(|n| n > 0));
        let is_met = gives_rows && has_room && query.offset.is_none();
        is_met.then(|| Raw { for_exists: true, ..Raw::new(layout, conditions, &[], subplans) })
    }

    /// Whether an expression of it has a subquery that looks at its items or past them.
    fn has_own_correlated(&self) -> bool {
        self.conditions.iter().chain(&self.targets).any(has_correlated) || item_has_correlated(&self.item)
    }

    /// The same of the queries in its FROM.
    pub fn has_correlated_below(&self) -> bool {
        *self.has_below.get_or_init(|| self.has_correlated_in(|_, _| true))
    }

    /// The same of those queries in its FROM that `within` names.
    fn has_correlated_in(&self, within: impl Fn(&Arc<Query>, bool) -> bool) -> bool {
        let mut has = false;
        self.item.leaves(&mut |kind, _, _| {
            if let Leaf::Derived { query, lateral, .. } = kind
                && within(query, *lateral)
            {
                walk::query_exprs(query, 0, &mut |e, _| has |= has_correlated(e));
            }
        });
        has
    }

    /// Whether such a subquery is changed where it is moved into another level (PUL-7): a query in FROM that looks at nothing around it stays as it is.
    fn moves_subquery(&self, subplans: &[Subplan]) -> bool {
        let moves = |query: &Arc<Query>, lateral| lateral || walk::is_correlated(query, subplans);
        self.has_own_correlated() || (self.has_correlated_below() && self.has_correlated_in(moves))
    }

    /// Whether no subquery and no query in FROM looks out of it (PUL-5).
    pub fn is_closed(&self, subplans: &[Subplan]) -> bool {
        let mut is_closed = !self.has_own_correlated();
        self.item.leaves(&mut |kind, _, _| {
            is_closed &= match kind {
                Leaf::Table(_) | Leaf::System(_) | Leaf::One | Leaf::Function { .. } => true,
                Leaf::Derived { query, lateral, .. } => !lateral && !walk::is_correlated(query, subplans),
                Leaf::Sample(_) | Leaf::Work(_) => false,
            };
        });
        is_closed
    }
}

/// PUL-8
const ITEMS_MAX: usize = 1_000;

/// A level that is being arranged.
pub(super) struct Level {
    pub item: Item,
    pub conditions: Vec<Bound>,
    pub width: usize,
    /// Its items so far (PUL-8).
    pub items: usize,
    /// Its rows may be judged again by subqueries, which must stay as they are: nothing is taken in whose move would change one (PUL-7).
    pub is_rechecked: bool,
    /// A level that locks rows, and what it has taken in locks (PUL-9).
    pub locks: Option<Vec<RowLock>>,
}

impl Level {
    /// PUL-9. Where nothing is locked, a query without FROM stays: it is one row.
    fn wants(&self, raw: &Raw, lateral: bool, nullable: bool) -> bool {
        match &self.locks {
            Some(_) => (lateral || raw.is_locked) && !nullable,
            None => !raw.is_one() && !raw.is_locked,
        }
    }
}

fn is_plain_column(e: &Bound) -> bool {
    matches!(e.kind, BoundKind::Column { level: 0, .. })
}

/// Whether an expression of an item, but for those of queries in FROM, has a subquery that looks at the level around it.
fn item_has_correlated(item: &Item) -> bool {
    match item {
        Item::Leaf { kind, filters, .. } => {
            filters.iter().any(has_correlated)
                || match kind {
                    Leaf::Function { calls, .. } => calls.iter().flat_map(|call| &call.args).any(has_correlated),
                    Leaf::Sample(sampled) => sampled.1.exprs().any(has_correlated),
                    Leaf::Table(_) | Leaf::System(_) | Leaf::Work(_) | Leaf::One | Leaf::Derived { .. } => false,
                }
        }
        Item::Join { left, right, on, .. } => {
            on.iter().any(has_correlated) || item_has_correlated(left) || item_has_correlated(right)
        }
    }
}

/// Puts the subqueries of a query in FROM back to what they were (PUL-4).
fn restore(query: &Query, were: &[Arc<Query>], subplans: &mut [Subplan], done: &mut HashSet<usize>) {
    let mut named = Vec::new();
    walk::query_exprs(query, 0, &mut |e, _| {
        walk::each(e, &mut |e| {
            if let BoundKind::Subquery { id, correlated: true, .. } = e.kind {
                named.push(id);
            }
        });
    });
    for id in named {
        let (Some(was), true) = (were.get(id), done.insert(id)) else { continue };
        subplans[id].query = was.clone();
        stack::deeper(|| restore(was, were, subplans, done));
    }
}

fn has_subquery(e: &Bound) -> bool {
    e.any(&|e| matches!(e.kind, BoundKind::Subquery { .. }))
}

fn has_correlated(e: &Bound) -> bool {
    e.any(&|e| matches!(e.kind, BoundKind::Subquery { correlated: true, .. }))
}

/// Whether an expression may give another value each time it is evaluated, or do more than give one (PUL-2).
fn is_restless(e: &Bound) -> bool {
    e.any(&|e| match &e.kind {
        BoundKind::Call { function, .. } | BoundKind::Spread { function, .. } => function.volatile,
        BoundKind::Host { function, .. } => !function.tells_definitions(),
        _ => false,
    })
}

/// Columns of an expression are named from `depth` levels below.
fn lower(e: &mut Bound, depth: u16) {
    if let BoundKind::Column { level, .. } = &mut e.kind {
        *level += depth;
    }
    e.children_mut().into_iter().for_each(|child| lower(child, depth));
}

/// Puts what columns stand for in their places.
fn replace(e: &mut Bound, depth: u16, by: &HashMap<usize, Bound>) {
    let BoundKind::Column { index, level } = e.kind else {
        e.children_mut().into_iter().for_each(|child| replace(child, depth, by));
        return;
    };
    if level == depth
        && let Some(new) = by.get(&index)
    {
        let mut new = new.clone();
        lower(&mut new, depth);
        replace(&mut new, depth, by);
        *e = Bound { pos: e.pos, ..new };
    }
}

impl Item {
    /// Every leaf, from left to right.
    pub(super) fn leaves<'i>(&'i self, f: &mut dyn FnMut(&'i Leaf, usize, usize)) {
        match self {
            Item::Leaf { kind, base, end, .. } => f(kind, *base, *end),
            Item::Join { left, right, .. } => {
                left.leaves(f);
                right.leaves(f);
            }
        }
    }

    /// How many leaves it has.
    pub(super) fn size(&self) -> usize {
        let mut leaves = 0;
        self.leaves(&mut |_, _, _| leaves += 1);
        leaves
    }

    /// PUL-3: inside such a query the level was the one around its own level, and is that when it is lateral.
    fn become_lateral(&mut self, subplans: &[Subplan]) {
        match self {
            Item::Leaf { kind: Leaf::Derived { query, lateral, .. }, .. } => {
                *lateral |= walk::is_correlated(query, subplans)
            }
            Item::Leaf { .. } => {}
            Item::Join { left, right, .. } => {
                left.become_lateral(subplans);
                right.become_lateral(subplans);
            }
        }
    }

    /// Moves every leaf to where `place` says.
    pub(super) fn place(&mut self, place: &mut dyn FnMut(usize, usize) -> usize) {
        match self {
            Item::Leaf { kind, base, end, .. } => {
                let to = place(*base, *end);
                (*base, *end) = (to, to + (*end - *base));
                match kind {
                    Leaf::Table(table) => table.base = to,
                    Leaf::Sample(sampled) => sampled.0.base = to,
                    _ => {}
                }
            }
            Item::Join { left, right, .. } => {
                left.place(place);
                right.place(place);
            }
        }
    }
}

impl Planner<'_> {
    /// Keeps a selection until the level around it is arranged.
    pub(super) fn keep_raw(&mut self, query: &Arc<Query>) {
        if let Some(raw) = self.raw.take() {
            self.raws.insert(Arc::as_ptr(query) as usize, (query.clone(), Arc::new(raw)));
        }
    }

    /// The same of a query that gives the columns of a kept selection as other types (`select::cast_output`).
    pub(super) fn keep_cast(&mut self, query: &Arc<Query>, cast: &Arc<Query>) {
        let Some(raw) = self.raw_of(query).filter(|raw| raw.targets.len() == cast.columns.len()) else { return };
        let as_type = |(target, to): (&Bound, &OutputColumn)| match target.ty.oid == to.ty.oid {
            true => target.clone(),
            false => {
                let (ty, pos, arg) = (to.ty, target.pos, Box::new(target.clone()));
                Bound { kind: BoundKind::Cast { arg, explicit: false }, ty, pos }
            }
        };
        let targets = raw.targets.iter().zip(&cast.columns).map(as_type).collect();
        self.raws.insert(Arc::as_ptr(cast) as usize, (cast.clone(), Arc::new(Raw { targets, ..Raw::clone(&raw) })));
    }

    pub(super) fn raw_of(&self, query: &Arc<Query>) -> Option<Arc<Raw>> {
        self.raws.get(&(Arc::as_ptr(query) as usize)).map(|(_, raw)| raw.clone())
    }

    fn rewriter<'r>(&'r mut self, change: &'r mut dyn FnMut(&mut Bound, u16)) -> Rewriter<'r> {
        let raws = Some(&mut self.raws);
        Rewriter { subplans: &mut self.subplans, as_they_were: &[], raws, seen: HashSet::new(), change }
    }

    /// Moves a selection into a level, whose slots up to `offset` are taken; `inside`: it was one level below.
    fn moved(&mut self, raw: &Raw, offset: usize, inside: bool) -> Raw {
        let mut raw = raw.clone();
        let mut change = |e: &mut Bound, depth: u16| {
            if let BoundKind::Column { index, level } = &mut e.kind {
                if *level == depth {
                    *index += offset;
                } else if inside && *level > depth {
                    *level -= 1;
                }
            }
        };
        // PUL-4
        if raw.has_correlated_below() {
            raw.item.leaves(&mut |kind, _, _| {
                if let Leaf::Derived { query, lateral: false, .. } = kind {
                    restore(query, &raw.subqueries, &mut self.subplans, &mut HashSet::new());
                }
            });
        }
        let mut rewriter = self.rewriter(&mut change);
        rewriter.as_they_were = &raw.subqueries;
        rewriter.item(&mut raw.item);
        raw.conditions.iter_mut().chain(&mut raw.targets).for_each(|e| rewriter.expr(e, 0));
        raw.item.place(&mut |base, _| base + offset);
        raw.locks.iter_mut().for_each(|lock| lock.table.base += offset);
        raw
    }

    /// Pulls queries in FROM up; `rest` changes what else names columns of the level.
    pub(super) fn pull_queries_up(&mut self, level: &mut Level, rest: &mut dyn FnMut(&mut Rewriter<'_>)) {
        let item = std::mem::replace(&mut level.item, Item::one());
        let mut by = HashMap::new();
        level.item = self.pulled(item, false, level, &mut by);
        if by.is_empty() {
            return;
        }
        let mut change = |e: &mut Bound, depth: u16| replace(e, depth, &by);
        let mut rewriter = self.rewriter(&mut change);
        rewriter.item(&mut level.item);
        level.conditions.iter_mut().for_each(|e| rewriter.expr(e, 0));
        rest(&mut rewriter);
    }

    fn pulled(&mut self, item: Item, nullable: bool, level: &mut Level, by: &mut HashMap<usize, Bound>) -> Item {
        match item {
            Item::Join { kind, left, right, on, by_index, written } => {
                let (l, r) = match kind {
                    JoinType::Inner => (nullable, nullable),
                    JoinType::Full => (true, true),
                    JoinType::Left | JoinType::Semi | JoinType::Anti => (nullable, true),
                };
                let left = Box::new(stack::deeper(|| self.pulled(*left, l, level, by)));
                let right = Box::new(stack::deeper(|| self.pulled(*right, r, level, by)));
                Item::Join { kind, left, right, on, by_index, written }
            }
            Item::Leaf { kind: Leaf::Derived { query, kept, lateral }, base, end, filters } => {
                let raw = self.raw_of(&query).filter(|raw| self.may_be_pulled(raw, kept.as_deref(), nullable, level));
                let raw = raw.filter(|raw| !lateral || !self.keeps_correlated(raw));
                let raw = raw.filter(|raw| level.wants(raw, lateral, nullable));
                let Some(raw) = raw else {
                    return Item::Leaf { kind: Leaf::Derived { query, kept, lateral }, base, end, filters };
                };
                let offset = level.width;
                level.width += raw.width;
                level.items += raw.item.size() - 1;
                let Raw { mut item, conditions, targets, locks, .. } = self.moved(&raw, offset, lateral);
                level.locks.iter_mut().for_each(|all| all.extend(locks.iter().cloned()));
                if lateral {
                    item.become_lateral(&self.subplans);
                }
                by.extend(targets.into_iter().enumerate().map(|(i, target)| (base + i, target)));
                let mut item = stack::deeper(|| self.pulled(item, nullable, level, by));
                if let Item::Join { written: written @ Written::List, .. } = &mut item {
                    *written = Written::Query;
                }
                match &mut item {
                    Item::Leaf { filters, .. } if nullable => filters.extend(conditions),
                    Item::Join { on, .. } if nullable => on.extend(conditions),
                    // They stood before those of the level.
                    _ => drop(level.conditions.splice(0..0, conditions)),
                }
                item
            }
            leaf => leaf,
        }
    }

    /// Whether an item is a common table expression that looks past the selection: its rows are kept, so it can't become lateral (PUL-3).
    fn keeps_correlated(&self, raw: &Raw) -> bool {
        let mut keeps = false;
        raw.item.leaves(&mut |kind, _, _| {
            if let Leaf::Derived { query, kept: Some(_), .. } = kind {
                keeps |= walk::is_correlated(query, &self.subplans);
            }
        });
        keeps
    }

    /// PUL-1, PUL-2.
    fn may_be_pulled(&self, raw: &Raw, kept: Option<&KeptRows>, nullable: bool, level: &Level) -> bool {
        let shared = kept
            .is_some_and(|k| k.materialized == Some(true) || (k.materialized.is_none() && k.uses.load(Relaxed) > 1));
        if shared
            || level.items >= ITEMS_MAX
            || raw.for_exists
            || (kept.is_some() && (raw.has_own_correlated() || raw.has_correlated_below()))
            || raw.targets.iter().any(|e| has_subquery(e) || is_restless(e))
        {
            return false;
        }
        if level.is_rechecked && raw.moves_subquery(&self.subplans) {
            return false;
        }
        // A common table expression is looked into only where each look gives the same.
        if kept.is_some() && raw.conditions.iter().any(|e| !has_subquery(e) && e.is_volatile()) {
            return false;
        }
        let simple = match &raw.item {
            Item::Leaf { kind, .. } => !matches!(kind, Leaf::Function { .. } | Leaf::Derived { .. } | Leaf::Sample(_)),
            Item::Join { kind, .. } => *kind == JoinType::Inner,
        };
        !nullable
            || (simple && raw.targets.iter().all(is_plain_column) && !raw.conditions.iter().any(walk::stays_above))
    }

    /// EXISTS and IN of WHERE become joins.
    pub(super) fn join_subqueries(&mut self, level: &mut Level) {
        if matches!(level.item, Item::Leaf { kind: Leaf::One, .. }) {
            return;
        }
        let mut left = Vec::new();
        for e in std::mem::take(&mut level.conditions) {
            left.extend(self.join_subquery(level, e));
        }
        // Those of the queries that were taken in have come to the level as conditions of joins.
        level.conditions = left;
    }

    /// Makes a join of a condition, or gives it back.
    fn join_subquery(&mut self, level: &mut Level, e: Bound) -> Option<Bound> {
        let (kind, sub) = match &e.kind {
            BoundKind::Not(arg) => (JoinType::Anti, &**arg),
            _ => (JoinType::Semi, &e),
        };
        let BoundKind::Subquery { id, usage, args, correlated } = &sub.kind else { return Some(e) };
        let compared = match (usage, args.as_slice()) {
            (SubqueryUse::Exists, _) if *correlated => Vec::new(),
            (SubqueryUse::Quantified { op: Op::Eq, all: false }, args)
                if kind == JoinType::Semi
                    && !args.iter().any(|arg| has_subquery(arg) || arg.is_volatile())
                    && args.iter().any(|arg| walk::slots(arg).is_some()) =>
            {
                args.to_vec()
            }
            _ => return Some(e),
        };
        let Some(query) = self.subplans.get(*id).map(|s| s.query.clone()) else { return Some(e) };
        let offset = level.width;
        let is_exists = matches!(usage, SubqueryUse::Exists);
        let raw = self.raw_of(&query).filter(|raw| is_exists || !raw.for_exists);
        let Some(raw) = raw.filter(|raw| self.may_be_joined(raw, level, compared.len())) else {
            return if *correlated { Some(e) } else { Self::join_rows(level, query, compared, e) };
        };
        level.width += raw.width;
        level.items += raw.item.size();
        let Raw { item, mut conditions, targets, .. } = self.moved(&raw, offset, true);
        conditions.extend(compared.into_iter().zip(targets).map(|(arg, target)| equal(arg, target)));
        let Level { width, items, is_rechecked, .. } = *level;
        let mut inner = Level { item, conditions, width, items, is_rechecked, locks: None };
        self.pull_queries_up(&mut inner, &mut |_| {});
        stack::deeper(|| self.join_subqueries_inside(&mut inner));
        (level.width, level.items) = (inner.width, inner.items);
        let outer = std::mem::replace(&mut level.item, Item::one());
        let (left, right) = (Box::new(outer), Box::new(inner.item));
        level.item = Item::Join { kind, left, right, on: inner.conditions, by_index: None, written: Written::List };
        None
    }

    /// Subqueries of a query that has become the right side of a join: those that name its own items only.
    fn join_subqueries_inside(&mut self, inner: &mut Level) {
        let mut own: HashSet<usize> = HashSet::new();
        inner.item.leaves(&mut |_, base, end| own.extend(base..end));
        let mut rest = Vec::new();
        for e in std::mem::take(&mut inner.conditions) {
            let mut is_own = true;
            super::rewrite::expr_slots(&e, 0, &self.subplans, &mut |slot| is_own &= own.contains(&slot));
            rest.extend(if is_own { self.join_subquery(inner, e) } else { Some(e) });
        }
        inner.conditions = rest;
    }

    /// The rows of a query that depends on nothing, as the right side of a join.
    fn join_rows(level: &mut Level, query: Arc<Query>, compared: Vec<Bound>, e: Bound) -> Option<Bound> {
        if compared.is_empty() || compared.len() > query.columns.len() {
            return Some(e);
        }
        let (base, end) = (level.width, level.width + query.columns.len());
        level.width = end;
        let target = |i: usize, ty| Bound { kind: BoundKind::Column { index: base + i, level: 0 }, ty, pos: e.pos };
        let pairs = compared.into_iter().zip(&query.columns).enumerate();
        let on = pairs.map(|(i, (arg, column))| equal(arg, target(i, column.ty))).collect();
        let kind = Leaf::Derived { query, kept: None, lateral: false };
        let right = Box::new(Item::Leaf { kind, base, end, filters: Vec::new() });
        let left = Box::new(std::mem::replace(&mut level.item, Item::one()));
        level.item = Item::Join { kind: JoinType::Semi, left, right, on, by_index: None, written: Written::List };
        None
    }

    /// Whether a query can become a side of a join, of which so many columns are compared.
    fn may_be_joined(&self, raw: &Raw, level: &Level, compared: usize) -> bool {
        let all = || raw.conditions.iter().chain(raw.targets.iter().take(compared));
        if level.items >= ITEMS_MAX
            || raw.is_one()
            || raw.is_locked
            || all().any(|e| e.any(&|e| matches!(&e.kind, BoundKind::Host { .. })))
            || (level.is_rechecked && raw.moves_subquery(&self.subplans))
        {
            return false;
        }
        if compared > 0 && raw.targets.iter().any(|e| has_subquery(e) || e.is_volatile()) {
            return false;
        }
        // A query in FROM that looks past its own level would look past another number of levels.
        let mut fits = true;
        raw.item.leaves(&mut |kind, _, _| {
            if let Leaf::Derived { query, lateral: false, .. } = kind {
                fits &= !walk::is_correlated(query, &self.subplans);
            }
        });
        fits
    }
}

fn equal(left: Bound, right: Bound) -> Bound {
    let pos = left.pos;
    let kind = BoundKind::Binary { op: Op::Eq, left: Box::new(left), right: Box::new(right) };
    Bound { kind, ty: oid::BOOL.into(), pos }
}
