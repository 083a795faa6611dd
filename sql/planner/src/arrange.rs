//! Arranges one level of a query: simplifies FROM and WHERE, orders the joins, hands each condition down to the tables that it concerns,
//! and fixes the final layout of the rows.

use super::carried::Named;
use super::cost::{Few, Figures};
use super::extremes::extreme;
use super::from::{Item, Layout, Leaf};
use super::joins::{Joins, WantedOrder};
use super::order::Asked;
use super::plan::{Body, Grouping, JoinType, Node, Query, SortKey, Subplan, conjunction, split};
use super::pullup::Level;
use super::rewrite::{Piece, Rewriter, pieces};
use super::select::written_count;
use super::{Planner, fold, merging, order, walk, wanted};
use clearway_context::steering::Way;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::oid;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Arranged {
    /// Where a slot of the layout as it was has gone.
    pub fn place(&self, slot: usize) -> usize {
        self.moved.get(&slot).copied().unwrap_or(slot)
    }
}

/// What else names columns of a level.
#[derive(Default)]
pub(super) struct Rest<'q> {
    /// The query whose level it is.
    pub query: Option<&'q mut Query>,
    /// Expressions of a change.
    pub exprs: Vec<&'q mut Bound>,
    /// Rows that have changed are judged again by the whole condition, whose subqueries stay (EXE-6).
    pub is_change: bool,
    /// A change has nothing to do where no row meets the conditions.
    pub ends: bool,
    /// The order wanted of the first rows.
    pub few: Option<Few>,
}

impl Rest<'_> {
    fn rewrite(&mut self, rewriter: &mut Rewriter<'_>) {
        if let Some(query) = &mut self.query {
            rewriter.query(query, 0);
        }
        self.exprs.iter_mut().for_each(|e| rewriter.expr(e, 0));
    }

    fn wanted(&self) -> Option<WantedOrder> {
        let first = self.query.as_ref()?.sort.first()?;
        match first.expr.kind {
            BoundKind::Column { index, level: 0 } => Some(WantedOrder { slot: index, rows: self.few? }),
            _ => None,
        }
    }
}

/// A level in order.
pub(super) struct Arranged {
    /// Where its rows come from.
    pub source: Arc<Node>,
    /// What is left of WHERE.
    pub filter: Option<Bound>,
    /// Slots of the layout.
    pub width: usize,
    moved: HashMap<usize, usize>,
}

/// Rows that LIMIT is taken for where its value is not known yet.
const FEW_ROWS: f64 = 100.0;

impl Planner<'_> {
    /// Gives a query of one level its source. Rows that are to be locked come in the order of the text.
    pub(super) fn give_source(&mut self, query: &mut Query, layout: Layout, conditions: Vec<Bound>, locking: bool) {
        let figures = self.figures();
        pieces(query, &mut |piece| {
            if let Piece::Expr(e) = piece {
                fold::fold(e);
            }
        });
        let Body::Select(select) = &query.body else { return };
        let (locks, all) = (locking || !select.locks.is_empty(), select.makes_groups() || select.distinct.is_some());
        let share = Some(figures.steering.read).filter(|share| self.level == 1 && *share < 1.0);
        let few = few(&query.limit, &query.offset).or(share.map(Few::Share));
        let (source, filter, width) = if locks {
            self.arrange_locking(query, layout, conditions)
        } else {
            let few = few.filter(|_| !all);
            let arranged = self.arrange(layout, conditions, Rest { query: Some(query), few, ..Rest::default() });
            (arranged.source, arranged.filter, arranged.width)
        };
        let Body::Select(select) = &mut query.body else { return };
        (select.source, select.filter, select.width) = (source, filter, width);
        if !locks {
            self.read_ends(query, &figures);
        }
        serve(query, few, &self.subplans, &figures);
        let Body::Select(select) = &mut query.body else { return };
        self.split_extremes(select, &mut query.sort, &figures);
        wanted::narrow(query, &self.subplans, &figures);
    }

    /// Arranges a level.
    pub(super) fn arrange(&mut self, layout: Layout, conditions: Vec<Bound>, mut rest: Rest<'_>) -> Arranged {
        let figures = self.figures();
        let may_be_asked = |q: &&mut Query| matches!(&q.body, Body::Select(s) if s.recheck.is_some());
        let (width, is_rechecked) = (layout.width, rest.is_change || rest.query.as_ref().is_some_and(may_be_asked));
        let items = layout.item.size();
        let mut level = Level { item: layout.item, conditions, width, items, is_rechecked, locks: None };
        self.pull_queries_up(&mut level, &mut |rewriter| rest.rewrite(rewriter));
        level.conditions = level.conditions.into_iter().flat_map(factored).collect();
        level.conditions.iter_mut().for_each(fold::fold);
        rest.exprs.iter_mut().for_each(|e| fold::fold(e));
        level.conditions.retain(|e| !fold::is_always(e));
        if (!is_rechecked || rest.ends)
            && let Some(never) = level.conditions.iter().position(fold::is_never)
        {
            // No row is read; expressions of the level keep their slots, in which nothing ever stands.
            let filter = Some(fold::never(level.conditions.swap_remove(never).pos));
            return Arranged { source: Arc::new(Node::One), filter, width: level.width, moved: HashMap::new() };
        }
        if !rest.is_change {
            self.join_subqueries(&mut level);
        }
        self.hash_subqueries(&mut level, &mut rest);
        reduce(&mut level.item, &level.conditions.iter().collect::<Vec<_>>());
        let Level { item, mut conditions, width, .. } = level;
        narrow_arms(&mut conditions, &item);
        let joins = Joins::new(figures, &self.subplans).ordering(width, self.env.snapshots);
        let (mut item, more) = joins.ordered(item, &conditions, rest.wanted());
        conditions.extend(more);
        let (moved, next) = self.number_slots(&mut item, &mut conditions, &mut rest);
        let (mut source, filter) = handed_down(item, conditions, &figures, &self.subplans);
        if rest.is_change {
            merging::loop_joins(&mut source, &figures);
        }
        Arranged { source, filter, width: next, moved }
    }

    /// Numbers the slots of a level by the order of its items: where each has gone, and how many there are.
    fn number_slots(
        &mut self,
        item: &mut Item,
        conditions: &mut [Bound],
        rest: &mut Rest<'_>,
    ) -> (HashMap<usize, usize>, usize) {
        let (mut moved, mut next) = (HashMap::new(), 0);
        item.place(&mut |base, end| {
            moved.extend((base..end).map(|slot| (slot, next + slot - base)));
            next += end - base;
            next - (end - base)
        });
        if moved.iter().any(|(from, to)| from != to) {
            let mut change = |e: &mut Bound, depth: u16| {
                if let BoundKind::Column { index, level } = &mut e.kind
                    && *level == depth
                    && let Some(to) = moved.get(index)
                {
                    *index = *to;
                }
            };
            let (subplans, seen) = (&mut self.subplans, HashSet::new());
            let mut rewriter = Rewriter { subplans, as_they_were: &[], raws: None, seen, change: &mut change };
            rewriter.item(item);
            conditions.iter_mut().for_each(|e| rewriter.expr(e, 0));
            rest.rewrite(&mut rewriter);
        }
        (moved, next)
    }

    /// Arranges a level that locks rows: it keeps the order of the text, and takes in the queries whose rows it locks (PUL-9).
    fn arrange_locking(
        &mut self,
        query: &mut Query,
        layout: Layout,
        conditions: Vec<Bound>,
    ) -> (Arc<Node>, Option<Bound>, usize) {
        let figures = self.figures();
        let (mut width, items) = (layout.width, layout.item.size());
        let (item, locks) = (layout.item, Some(Vec::new()));
        let mut level = Level { item, conditions, width, items, is_rechecked: true, locks };
        let mut has_queries = false;
        level.item.leaves(&mut |kind, _, _| has_queries |= matches!(kind, Leaf::Derived { .. }));
        let mut rest = Rest { query: Some(query), ..Rest::default() };
        if has_queries {
            reduce(&mut level.item, &level.conditions.iter().collect::<Vec<_>>());
            self.pull_queries_up(&mut level, &mut |rewriter| rest.rewrite(rewriter));
        }
        let Level { mut item, mut conditions, locks, .. } = level;
        if has_queries {
            let moved;
            (moved, width) = self.number_slots(&mut item, &mut conditions, &mut rest);
            if let Body::Select(select) = &mut query.body {
                select.locks.extend(locks.into_iter().flatten());
                for lock in &mut select.locks {
                    lock.table.base = moved.get(&lock.table.base).copied().unwrap_or(lock.table.base);
                }
                if !select.locks.is_empty() || select.recheck.is_some() {
                    select.recheck = conjunction(item.conditions_with(&conditions));
                }
                if !select.locks.is_empty() {
                    select.outer = item.outer_joins();
                }
            }
        }
        let (mut source, filter) = handed_down(item, conditions, &figures, &self.subplans);
        merging::loop_joins(&mut source, &figures);
        (source, filter, width)
    }
}

/// Makes the source give its rows in the order that the query wants, if it can.
fn serve(query: &mut Query, few: Option<Few>, subplans: &[Subplan], figures: &Figures<'_>) {
    let Body::Select(select) = &query.body else { return };
    if !select.windows.is_empty() || select.sets.as_ref().is_some_and(|s| s.in_order) {
        return;
    }
    let one = select.grouping.as_ref().map(extreme);
    let by_groups = select.grouping.as_ref().map_or_else(Vec::new, |grouping| group_order(grouping, figures));
    if matches!(one, Some(None)) && by_groups.is_empty() || one.is_none() && query.sort.is_empty() {
        return;
    }
    // Whole rows are locked.
    let named = select.locks.is_empty().then(|| Named::in_level(query, select.width, subplans));
    let Body::Select(select) = &mut query.body else { return };
    let asked = Asked { few, named: named.as_ref(), otherwise: Way::Sort };
    match one.flatten() {
        // The rows are not sorted for one extreme.
        Some(key) => {
            let asked = Asked { few: Some(Few::Rows(1.0)), ..asked };
            order::serve(&mut select.source, &[key], asked, figures);
        }
        None if !by_groups.is_empty() => {
            let asked = Asked { few: None, otherwise: Way::HashAgg, ..asked };
            order::serve(&mut select.source, &by_groups, asked, figures);
        }
        None => order::serve(&mut select.source, &query.sort, asked, figures),
    }
}

/// The order in which the rows of each group come one after the other, where a hash table of the groups is not wanted; else empty.
fn group_order(grouping: &Grouping, figures: &Figures<'_>) -> Vec<SortKey> {
    if !figures.steering.is_unwanted(Way::HashAgg) || grouping.sets.is_some() {
        return Vec::new();
    }
    let ascending = |expr: &Bound| SortKey { expr: expr.clone(), descending: false, nulls_first: false };
    grouping.keys.iter().map(ascending).collect()
}

/// How many rows a query gives at most; none: all of them.
fn few(limit: &Option<Bound>, offset: &Option<Bound>) -> Option<Few> {
    let count = |e: &Bound| written_count(e).map_or(FEW_ROWS, |n| n.max(0) as f64);
    let limit = limit.as_ref().map(count)?;
    Some(Few::Rows(limit + offset.as_ref().map_or(0.0, count)))
}

/// Hands conditions down; what has to stay above is given back with the tree.
pub(super) fn handed_down(
    mut item: Item,
    conditions: Vec<Bound>,
    figures: &Figures<'_>,
    subplans: &[Subplan],
) -> (Arc<Node>, Option<Bound>) {
    let mut above = Vec::new();
    for e in conditions {
        if walk::stays_above(&e) {
            above.push(e);
        } else {
            above.extend(item.take(e));
        }
    }
    (Arc::new(item.into_node(figures, subplans)), conjunction(above))
}

/// A condition with what all arms of an OR have in common taken out of it.
fn factored(e: Bound) -> Vec<Bound> {
    let BoundKind::Or(arms) = &e.kind else { return vec![e] };
    let mut arms: Vec<Vec<Bound>> = arms.iter().map(|arm| split(arm.clone())).collect();
    let Some(first) = arms.first() else { return vec![e] };
    let shared = |c: &&Bound| !c.is_volatile() && arms[1..].iter().all(|arm| arm.iter().any(|o| walk::same(o, c)));
    let common: Vec<Bound> = first.iter().filter(shared).cloned().collect();
    if common.is_empty() {
        return vec![e];
    }
    arms.iter_mut().for_each(|arm| arm.retain(|c| !common.iter().any(|o| walk::same(o, c))));
    let mut out = common;
    // An arm of which nothing is left is met by every row.
    if arms.iter().all(|arm| !arm.is_empty()) {
        let arms = arms.into_iter().filter_map(conjunction).collect();
        out.push(Bound { kind: BoundKind::Or(arms), ty: oid::BOOL.into(), pos: e.pos });
    }
    out
}

/// An OR over several tables says of each what its arms say of it: (a.x = 1 AND b.y = 1) OR (a.x = 2 AND b.y = 2) says a.x = 1 OR a.x = 2.
fn narrow_arms(conditions: &mut Vec<Bound>, item: &Item) {
    let mut tables = Vec::new();
    item.leaves(&mut |leaf, base, end| {
        if let Leaf::Table(_) = leaf {
            tables.push((base, end));
        }
    });
    let mut more = Vec::new();
    for e in conditions.iter() {
        let BoundKind::Or(arms) = &e.kind else { continue };
        if walk::stays_above(e) || e.is_volatile() || arms.len() > 20 {
            continue;
        }
        for (base, end) in &tables {
            let inside = |c: &Bound| walk::slots(c).is_some_and(|(low, high)| low >= *base && high < *end);
            if inside(e) {
                continue;
            }
            let arm = |arm: &Bound| conjunction(split(arm.clone()).into_iter().filter(|c| inside(c)).collect());
            if let Some(arms) = arms.iter().map(arm).collect::<Option<Vec<_>>>() {
                more.push(Bound { kind: BoundKind::Or(arms), ty: oid::BOOL.into(), pos: e.pos });
            }
        }
    }
    conditions.extend(more);
}

/// Outer joins whose rows of nulls no condition lets through become inner ones (PLN-3).
fn reduce(item: &mut Item, conditions: &[&Bound]) {
    let Item::Join { kind, left, right, on, .. } = item else { return };
    let rejects = |side: &Item| {
        let mut slots = HashSet::new();
        side.leaves(&mut |_, base, end| slots.extend(base..end));
        conditions.iter().any(|e| rejects_nulls(e, &slots))
    };
    match *kind {
        JoinType::Left if rejects(right) => *kind = JoinType::Inner,
        JoinType::Full => match (rejects(left), rejects(right)) {
            (true, true) => *kind = JoinType::Inner,
            (true, false) => *kind = JoinType::Left,
            _ => {}
        },
        _ => {}
    }
    match *kind {
        JoinType::Inner => {
            let all: Vec<&Bound> = conditions.iter().copied().chain(on.iter()).collect();
            reduce(left, &all);
            reduce(right, &all);
        }
        JoinType::Left => {
            reduce(left, conditions);
            reduce(right, &on.iter().collect::<Vec<_>>());
        }
        JoinType::Semi => {
            let all: Vec<&Bound> = conditions.iter().copied().chain(on.iter()).collect();
            reduce(left, &all);
            reduce(right, &on.iter().collect::<Vec<_>>());
        }
        JoinType::Anti => reduce(left, conditions),
        JoinType::Full => {}
    }
}

/// Whether a condition is not true where all of these slots are null.
fn rejects_nulls(e: &Bound, slots: &HashSet<usize>) -> bool {
    match &e.kind {
        BoundKind::And(list) => list.iter().any(|e| rejects_nulls(e, slots)),
        BoundKind::Or(list) => !list.is_empty() && list.iter().all(|e| rejects_nulls(e, slots)),
        BoundKind::IsNull { arg, negated: true } => is_null_with(arg, slots),
        BoundKind::Not(arg) => !matches!(arg.kind, BoundKind::IsNull { .. }) && is_null_with(arg, slots),
        _ => is_null_with(e, slots),
    }
}

/// Whether an expression is null where all of these slots are.
fn is_null_with(e: &Bound, slots: &HashSet<usize>) -> bool {
    match &e.kind {
        BoundKind::Column { index, level: 0 } => slots.contains(index),
        BoundKind::Cast { arg, .. } => is_null_with(arg, slots),
        BoundKind::Binary { op, left, right } => {
            // || of arrays takes null for an empty one.
            *op != Op::Concat && (is_null_with(left, slots) || is_null_with(right, slots))
        }
        BoundKind::Prefix { arg, .. } => is_null_with(arg, slots),
        BoundKind::InList { arg, list, .. } => !list.is_empty() && is_null_with(arg, slots),
        _ => false,
    }
}
