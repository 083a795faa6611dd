//! Chooses the order and the method of a level's joins, by estimated cost.
//!
//! # Structure
//! A level's FROM is a tree of joins. Inner joins are split into units (`Unit`): tables, queries, functions, and outer joins, which stay
//! in one piece and are ordered inside. EXISTS and IN that have become joins are units too; such a unit is joined once all units that its
//! condition names have been joined, or at any time as an inner join, if its rows are unique or made distinct (`unique_sides`). The search is dynamic programming over sets of units (Selinger and others, 1979). It considers only
//! trees whose right sides are single units, because the executor builds its hash tables from them. With more units than
//! `Steering::searched` the cheapest next unit is taken step by step; with more than `UNITS_MAX` the order of the text stays.
//!
//! # Invariants
//! - JOI-1: a condition is evaluated at the first join at which all units that it names have been joined.
//! - JOI-2: of orders with equal cost, the order of the text is taken.

use super::access;
use super::collapse::Limits;
use super::cost::{Few, Figures};
use super::differing::Columns;
use super::estimate::{Estimate, SOME};
use super::from::{Item, Leaf, Written};
use super::implied::{Classes, equal_columns, equal_value, implied};
use super::merging::{builds_left, is_looped, item_order, meets, saved_by_keys};
use super::order::RowOrder;
use super::plan::{JoinType, Query, Subplan};
use super::sought::sought;
use super::unique_sides::{Distinctly, semi_to_inner};
use super::{rewrite, walk};
use clearway_base::stack;
use clearway_context::steering::{COLLAPSE, Costs, Way};
use clearway_txn::mvcc::snapshots::Snapshots;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// Units that are ordered at all.
pub(super) const UNITS_MAX: usize = COLLAPSE;
/// Different values of a column of which nothing is known.
pub(super) const DISTINCT: f64 = 200.0;
/// The least share of its rows that an anti join is taken to let through: an estimate of none would hide what follows.
pub(super) const ANTI_LEAST: f64 = 0.1;

/// A part of FROM that is joined in one piece.
pub(super) struct Unit {
    pub item: Item,
    pub kind: JoinType,
    pub on: Vec<Bound>,
}

/// A condition over several units.
struct Condition {
    e: Bound,
    mask: u64,
    /// Units of either side, where it is an equality whose sides share none.
    sides: Option<(u64, u64)>,
    /// The slots that it makes equal belong to this class.
    class: Option<usize>,
    share: f64,
}

impl Condition {
    /// The side of an equality that is of a unit.
    fn side_of(&self, unit: u64) -> Option<&Bound> {
        let BoundKind::Binary { left, right, .. } = &self.e.kind else { return None };
        Some(if self.sides?.0 == unit { left } else { right })
    }
}

/// How a unit is joined.
#[derive(Clone, Copy)]
struct Step {
    unit: usize,
    by_index: Option<bool>,
    /// The rows of EXISTS or IN are made distinct for an inner join (SEM-2).
    is_distinct: bool,
}

/// A set of units joined in some order.
#[derive(Clone)]
struct Joined {
    order: Vec<Step>,
    rows: f64,
    cost: f64,
    /// What of it is spent before the first row.
    startup: f64,
    /// The order in which the rows come.
    row_order: RowOrder,
}

/// The order that is wanted of the first rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedOrder {
    /// The column.
    pub slot: usize,
    /// How many rows will be read.
    pub rows: Few,
}

/// Orders the joins of items.
pub(super) struct Joins<'a> {
    pub figures: Figures<'a>,
    snapshots: Option<&'a Snapshots>,
    pub subplans: &'a [Subplan],
    /// What was estimated of the expressions of WITH. Each may be referred to several times by the next, and so on: without this, a chain of
    /// them would be walked as often as two to the power of its length.
    shared: RefCell<HashMap<*const Query, (Arc<Query>, Estimate)>>,
    /// The first slot of the level that no item has.
    free_slot: Cell<usize>,
}

impl<'a> Joins<'a> {
    /// Nothing has been estimated yet.
    pub fn new(figures: Figures<'a>, subplans: &'a [Subplan]) -> Joins<'a> {
        Joins { figures, snapshots: None, subplans, shared: RefCell::default(), free_slot: Cell::default() }
    }

    /// They are to be ordered: the slots from this one on are free for rows that are made distinct, and these snapshots may read the rows.
    pub fn ordering(self, slot: usize, snapshots: &'a Snapshots) -> Joins<'a> {
        self.free_slot.set(slot);
        Joins { snapshots: Some(snapshots), ..self }
    }

    /// What is estimated of a query that others may share.
    pub fn shared(&self, query: &Arc<Query>) -> Estimate {
        let key = Arc::as_ptr(query);
        if let Some((_, known)) = self.shared.borrow().get(&key) {
            return *known;
        }
        let estimate = self.query(query);
        // The query is kept as long as its address is the key.
        self.shared.borrow_mut().insert(key, (Arc::clone(query), estimate));
        estimate
    }

    /// The tree of an item with its inner joins in the cheapest order under conditions that will be handed down into it; and conditions that
    /// follow from them.
    pub fn ordered(&self, item: Item, conditions: &[Bound], wanted: Option<WantedOrder>) -> (Item, Vec<Bound>) {
        let (mut units, mut own) = (Vec::new(), Vec::new());
        Limits::of(self.figures.steering).flatten(item, &mut units, &mut own);
        semi_to_inner(&mut units, &mut own, self.snapshots);
        let mut all: Vec<Bound> = conditions.iter().filter(|e| !walk::stays_above(e)).cloned().collect();
        all.extend(own.iter().cloned());
        for unit in &mut units {
            self.order_inside(unit, &all);
        }
        if units.len() < 2 || units.len() > UNITS_MAX {
            return (self.rebuilt(units, None, &mut own), own);
        }
        let implied = implied(&all, &units);
        all.extend(implied.iter().cloned());
        own.extend(implied);
        let search = Search::new(self, &units, &all);
        let order = search.best(wanted);
        (self.rebuilt(units, Some(order), &mut own), own)
    }

    /// Joins units in an order, or in that of the text. Conditions of joins that have become inner ones are added to the others.
    fn rebuilt(&self, units: Vec<Unit>, order: Option<Vec<Step>>, conditions: &mut Vec<Bound>) -> Item {
        let order = order.unwrap_or_else(|| in_text_order(units.len()));
        let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
        let mut out: Option<Item> = None;
        for Step { unit, by_index, is_distinct } in order {
            let Some(unit) = units.get_mut(unit).and_then(Option::take) else { continue };
            let distinctly = if is_distinct { Distinctly::of(&unit, self.subplans) } else { None };
            let Unit { mut item, mut kind, mut on } = unit;
            if let Some(distinctly) = distinctly {
                let base = self.free_slot.get();
                self.free_slot.set(base + distinctly.keys.len());
                let made = distinctly.made(item, base, self.subplans, &self.figures);
                (item, kind, on) = (made.0, JoinType::Inner, Vec::new());
                conditions.extend(made.1);
            }
            out = Some(match out {
                None => item,
                Some(left) => {
                    let (left, right, written) = (Box::new(left), Box::new(item), Written::List);
                    Item::Join { kind, left, right, on, by_index, written }
                }
            });
        }
        out.unwrap_or_else(Item::one)
    }

    /// Orders the sides of an outer join.
    fn order_inside(&self, unit: &mut Unit, conditions: &[Bound]) {
        let item = std::mem::replace(&mut unit.item, Item::one());
        unit.item = match item {
            // The tables of an EXISTS or IN, and those of a side that is ordered by itself (COL-1).
            Item::Join { kind: JoinType::Inner | JoinType::Semi | JoinType::Anti, .. } => {
                let known = if unit.kind == JoinType::Inner { conditions } else { &unit.on };
                let own = within(&left_slots(&item), known);
                let (item, more) = stack::deeper(|| self.ordered(item, &own, None));
                with_conditions(item, more)
            }
            Item::Join { kind, left, right, on, by_index, written } => {
                let (of_left, of_right) = (within(&left_slots(&left), conditions), within(&left_slots(&right), &on));
                let (left, more_left) = stack::deeper(|| self.ordered(*left, &of_left, None));
                let (right, more_right) = stack::deeper(|| self.ordered(*right, &of_right, None));
                let left = with_conditions(left, more_left);
                let right = with_conditions(right, more_right);
                Item::Join { kind, left: Box::new(left), right: Box::new(right), on, by_index, written }
            }
            leaf => leaf,
        };
    }
}

/// The slots of an item, leaf by leaf.
pub(super) fn left_slots(item: &Item) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    item.leaves(&mut |_, base, end| out.push((base, end)));
    out
}

/// The conditions that name slots of these ranges only.
pub(super) fn within(ranges: &[(usize, usize)], conditions: &[Bound]) -> Vec<Bound> {
    let inside = |slot: usize| ranges.iter().any(|(base, end)| (*base..*end).contains(&slot));
    let fits = |e: &&Bound| {
        let (mut any, mut all) = (false, true);
        walk::each(e, &mut |e| {
            if let BoundKind::Column { index, level: 0 } = e.kind {
                any = true;
                all &= inside(index);
            }
        });
        any && all && !walk::stays_above(e)
    };
    conditions.iter().filter(fits).cloned().collect()
}

/// Conditions of inner joins at the top of an item.
fn with_conditions(mut item: Item, conditions: Vec<Bound>) -> Item {
    match &mut item {
        Item::Leaf { filters, .. } => filters.extend(conditions),
        Item::Join { kind: JoinType::Inner, on, .. } => on.extend(conditions),
        Item::Join { .. } => {
            if conditions.is_empty() {
                return item;
            }
            let (left, right) = (Box::new(item), Box::new(Item::one()));
            let (kind, written) = (JoinType::Inner, Written::List);
            return Item::Join { kind, left, right, on: conditions, by_index: None, written };
        }
    }
    item
}

/// The order of the text.
fn in_text_order(units: usize) -> Vec<Step> {
    (0..units).map(|unit| Step { unit, by_index: None, is_distinct: false }).collect()
}

/// One search.
struct Search<'a> {
    joins: &'a Joins<'a>,
    units: &'a [Unit],
    local: Vec<Vec<Bound>>,
    estimates: Vec<Estimate>,
    row_orders: Vec<RowOrder>,
    conditions: Vec<Condition>,
    /// Units without which this one can't be read, and for EXISTS and IN those that its condition names.
    needs: Vec<u64>,
    lateral: Vec<bool>,
    /// Conditions of the joins of EXISTS and IN.
    of_unit: Vec<Vec<usize>>,
    /// The rows of EXISTS and IN where they can be made distinct, and the share of the others that they meet.
    distinct_rows: Vec<Option<Estimate>>,
    met: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(joins: &'a Joins<'a>, units: &'a [Unit], all: &[Bound]) -> Search<'a> {
        let mut place: HashMap<usize, usize> = HashMap::new();
        for (u, unit) in units.iter().enumerate() {
            unit.item.leaves(&mut |_, base, end| place.extend((base..end).map(|slot| (slot, u))));
        }
        let mask = |e: &Bound| {
            let mut mask = 0u64;
            rewrite::expr_slots(e, 0, joins.subplans, &mut |slot| {
                if let Some(u) = place.get(&slot) {
                    mask |= 1 << u;
                }
            });
            mask
        };
        let classes = Classes::of(all);
        let fixed: Vec<usize> = all.iter().filter_map(|e| equal_value(e).map(|(slot, _)| classes.find(slot))).collect();
        let mut search = Search {
            joins,
            units,
            local: vec![Vec::new(); units.len()],
            estimates: Vec::new(),
            row_orders: Vec::new(),
            conditions: Vec::new(),
            needs: vec![0; units.len()],
            lateral: vec![false; units.len()],
            of_unit: vec![Vec::new(); units.len()],
            distinct_rows: Vec::new(),
            met: Vec::new(),
        };
        for e in all {
            let own = mask(e);
            match own.count_ones() {
                0 => {}
                1 => search.local[own.trailing_zeros() as usize].push(e.clone()),
                _ => search.add(e, own, &mask, &classes, &fixed),
            }
        }
        for (u, unit) in units.iter().enumerate() {
            for e in &unit.on {
                let named = mask(e);
                if named == 1 << u {
                    search.local[u].push(e.clone());
                } else {
                    search.needs[u] |= named & !(1 << u);
                    search.of_unit[u].push(search.conditions.len());
                    search.add(e, named, &mask, &classes, &fixed);
                }
            }
            let mut needs = 0;
            rewrite::item_slots(&unit.item, joins.subplans, &mut |slot| {
                if let Some(other) = place.get(&slot).filter(|other| **other != u) {
                    needs |= 1 << other;
                }
            });
            search.lateral[u] = needs != 0;
            search.needs[u] |= needs;
        }
        search.estimates = (0..units.len()).map(|u| joins.estimate(&units[u].item, &search.local[u])).collect();
        let row_order = |u: usize| item_order(&units[u].item, &search.local[u], &joins.figures);
        search.row_orders = (0..units.len()).map(row_order).collect();
        search.distinct_rows = (0..units.len()).map(|u| search.made_distinct(u)).collect();
        search.met = (0..units.len()).map(|u| search.met_by(u)).collect();
        search
    }

    /// The rows of EXISTS or IN made distinct.
    fn made_distinct(&self, u: usize) -> Option<Estimate> {
        let unit = &self.units[u];
        let (keys, own) = (Distinctly::of(unit, self.joins.subplans)?.keys, self.estimates[u]);
        let columns = Columns::of_items(std::iter::once(&unit.item));
        let rows = self.joins.different_rows(&columns, &keys, own.rows);
        Some(Estimate { rows, cost: own.cost + own.rows * self.joins.figures.costs().build })
    }

    /// The share of the other rows that EXISTS or IN meets (SEM-1).
    fn met_by(&self, u: usize) -> f64 {
        let conditions = self.of_unit[u].iter().map(|c| &self.conditions[*c]).filter(|c| c.share < 1.0);
        let lefts = Columns::of_items(self.units.iter().map(|unit| &unit.item));
        let rights = Columns::of_items(std::iter::once(&self.units[u].item));
        self.joins.met((&lefts, &rights), self.estimates[u].rows, conditions.map(|c| &c.e))
    }

    fn add(&mut self, e: &Bound, named: u64, mask: &dyn Fn(&Bound) -> u64, classes: &Classes, fixed: &[usize]) {
        let sides = match &e.kind {
            BoundKind::Binary { op: Op::Eq, left, right } => Some((mask(left), mask(right))),
            _ => None,
        };
        let sides = sides.filter(|(l, r)| l & r == 0 && *l != 0 && *r != 0);
        let class = equal_columns(e).map(|(a, _)| classes.find(a));
        let share = match class {
            Some(class) if fixed.contains(&class) => 1.0,
            _ if sides.is_some() => {
                let BoundKind::Binary { left, right, .. } = &e.kind else { return };
                1.0 / self.distinct(left).max(self.distinct(right)).max(1.0)
            }
            _ => SOME,
        };
        self.conditions.push(Condition { e: e.clone(), mask: named, sides, class, share });
    }

    /// Different values of an expression.
    fn distinct(&self, e: &Bound) -> f64 {
        let columns = Columns::of_items(self.units.iter().map(|unit| &unit.item));
        self.joins.differing(&columns, e).map_or(DISTINCT, |found| found.values)
    }

    /// The order of least cost.
    fn best(&self, wanted: Option<WantedOrder>) -> Vec<Step> {
        let free = self.search(None);
        if let (Some(wanted), Some(free)) = (wanted, &free) {
            let first = self.units.iter().position(|u| {
                matches!(&u.item, Item::Leaf { kind: Leaf::Table(_), base, end, .. } if (*base..*end).contains(&wanted.slot))
            });
            // The rows come in the order of this table if it comes first; then the first rows are had early.
            if let Some(first) = first
                && let Some(bound) = self.search(Some(first))
            {
                let part = wanted.rows.part_of(bound.rows);
                let ordered = bound.startup + self.joins.figures.steering.of_part(bound.cost - bound.startup, part);
                let sorting = self.joins.figures.sorting(free.rows) + self.joins.figures.disable_cost(Way::Sort);
                if ordered < free.cost + sorting {
                    return bound.order;
                }
            }
        }
        free.map_or_else(|| in_text_order(self.units.len()), |free| free.order)
    }

    fn begin(&self, u: usize) -> Option<Joined> {
        let is_distinct = self.units[u].kind != JoinType::Inner;
        let Estimate { rows, cost } = match is_distinct {
            true => self.distinct_rows[u]?,
            false if self.needs[u] != 0 => return None,
            false => self.estimates[u],
        };
        let order = vec![Step { unit: u, by_index: None, is_distinct }];
        let row_order = if is_distinct { RowOrder::new() } else { self.row_orders[u].clone() };
        Some(Joined { order, rows, cost, startup: if is_distinct { cost } else { 0.0 }, row_order })
    }

    fn search(&self, first: Option<usize>) -> Option<Joined> {
        let n = self.units.len();
        let may_begin = |u: &usize| first.is_none_or(|first| first == *u);
        let steering = self.joins.figures.steering;
        if n > steering.searched {
            let mut joined =
                (0..n).filter(may_begin).filter_map(|u| self.begin(u)).min_by(|a, b| a.rows.total_cmp(&b.rows))?;
            while joined.order.len() < n {
                let mask = joined.order.iter().fold(0, |m, step| m | 1 << step.unit);
                let next = (0..n).filter(|u| mask & 1 << u == 0).filter_map(|u| self.step(&joined, mask, u));
                joined = next.min_by(|a, b| a.cost.total_cmp(&b.cost))?;
            }
            return Some(joined);
        }
        let mut sets: Vec<Option<Joined>> = vec![None; 1 << n];
        for u in (0..n).filter(may_begin) {
            sets[1 << u] = self.begin(u);
        }
        for mask in 1..(1usize << n) {
            let Some(joined) = sets[mask].take() else { continue };
            for u in (0..n).filter(|u| mask & 1 << u == 0) {
                let Some(more) = self.step(&joined, mask as u64, u) else { continue };
                let place = &mut sets[mask | 1 << u];
                // JOI-2: what comes later in the text has to cost less.
                if place.as_ref().is_none_or(|known| steering.is_clearly_less(more.cost, known.cost)) {
                    *place = Some(more);
                }
            }
            sets[mask] = Some(joined);
        }
        sets.pop().flatten()
    }

    /// One more unit; none: something is missing that it needs.
    fn step(&self, joined: &Joined, mask: u64, u: usize) -> Option<Joined> {
        let kind = self.units[u].kind;
        let is_ready = self.needs[u] & !mask == 0;
        let plain = is_ready.then(|| self.step_as(joined, mask, u, (kind, self.estimates[u], false)));
        let Some(rows) = self.distinct_rows[u] else { return plain };
        let distinct = self.step_as(joined, mask, u, (JoinType::Inner, rows, true));
        Some(match plain {
            Some(plain) if plain.cost <= distinct.cost => plain,
            _ => distinct,
        })
    }

    /// The conditions that are evaluated where a unit is joined (JOI-1).
    fn fresh(&self, mask: u64, u: usize, kind: JoinType) -> Vec<&Condition> {
        if matches!(kind, JoinType::Semi | JoinType::Anti) {
            return self.of_unit[u].iter().map(|c| &self.conditions[*c]).collect();
        }
        let bit = 1u64 << u;
        let is_new = |c: &Condition| c.mask & bit != 0 && c.mask & mask != 0 && c.mask & !(mask | bit) == 0;
        // Those of rows that are made distinct are like the others: all of them name these rows.
        let lists = self.of_unit.iter().zip(&self.distinct_rows);
        let kept: Vec<&Vec<usize>> = lists.filter(|(_, rows)| rows.is_none()).map(|(list, _)| list).collect();
        let of_others = |i: usize| kept.iter().any(|list| list.contains(&i));
        self.conditions.iter().enumerate().filter(|(i, c)| is_new(c) && !of_others(*i)).map(|(_, c)| c).collect()
    }

    /// One more unit, all that it needs being there.
    fn step_as(
        &self,
        joined: &Joined,
        mask: u64,
        u: usize,
        (kind, r, is_distinct): (JoinType, Estimate, bool),
    ) -> Joined {
        let (bit, unit) = (1u64 << u, &self.units[u]);
        let fresh = self.fresh(mask, u, kind);
        let mut classes: Vec<usize> = Vec::new();
        let mut share = 1.0;
        for c in &fresh {
            match c.class {
                Some(class) if classes.contains(&class) => {}
                class => {
                    classes.extend(class);
                    share *= c.share;
                }
            }
        }
        let l = joined;
        let pairs = l.rows * r.rows * share;
        let rows = match kind {
            JoinType::Semi => l.rows * self.met[u],
            JoinType::Anti => l.rows * (1.0 - self.met[u]).max(ANTI_LEAST),
            _ => pairs,
        }
        .max(1.0);
        let has_key =
            |c: &Condition| c.sides.is_some_and(|(a, b)| (a == bit && b & !mask == 0) || (b == bit && a & !mask == 0));
        let keyed = fresh.iter().any(|c| has_key(c));
        let figures = &self.joins.figures;
        let (costs, loops) = (figures.costs(), figures.disable_cost(Way::NestLoop));
        let (mut startup, mut run) = match () {
            () if self.lateral[u] => (0.0, l.rows * (r.cost + 1.0) + loops),
            () if keyed && !is_looped(kind, figures) => {
                let (startup, run) = hashed(kind, l.rows, r, costs);
                let is_table = matches!(&unit.item, Item::Leaf { kind: Leaf::Table(_), .. }) && !is_distinct;
                let keys = fresh.iter().filter(|c| is_table && has_key(c)).filter_map(|c| c.side_of(bit));
                let saved = saved_by_keys((kind, l.rows, r.rows, pairs), keys, costs);
                (startup + figures.disable_cost(Way::HashJoin), run - saved)
            }
            () => (r.cost + r.rows + loops, l.rows * r.rows * costs.pair),
        };
        let mut by_index = Some(false);
        let merged = self.merged(l, u, &fresh).filter(|merged| keyed && !is_distinct && *merged < startup + run);
        if let Some(merged) = merged {
            (startup, run) = (0.0, merged);
        }
        if !is_distinct
            && let Item::Leaf { kind, filters, base, end } = &unit.item
            && let Some(each) = self.looked_up(kind, (*base, *end), filters, u, &fresh)
        {
            let looked_up = l.rows * (each + 1.0) + loops;
            if looked_up < startup + run {
                (startup, run, by_index) = (0.0, looked_up, Some(true));
            }
        }
        let mut order = joined.order.clone();
        order.push(Step { unit: u, by_index, is_distinct });
        let cost = l.cost + startup + run + pairs.max(rows) * costs.give;
        // A hash join that is divided does not keep the order.
        let row_order = if merged.is_some() || by_index == Some(true) { l.row_order.clone() } else { RowOrder::new() };
        Joined { order, rows, cost, startup: l.startup + startup, row_order }
    }

    /// The cost of reading a unit and merging it with what has been joined; none: they do not come in the order of an equality between them.
    fn merged(&self, l: &Joined, u: usize, fresh: &[&Condition]) -> Option<f64> {
        let r = self.estimates[u];
        let meets = meets(&l.row_order, &self.row_orders[u], fresh.iter().map(|c| &c.e));
        let figures = &self.joins.figures;
        meets.then_some(r.cost + (l.rows + r.rows) * figures.costs().merge + figures.disable_cost(Way::MergeJoin))
    }

    /// The cost of finding the rows of a table for one row of the other side by a key or an index; none: there is no such way.
    fn looked_up(
        &self,
        leaf: &Leaf,
        (base, end): (usize, usize),
        filters: &[Bound],
        u: usize,
        fresh: &[&Condition],
    ) -> Option<f64> {
        let mut all: Vec<Bound> = filters.iter().chain(&self.local[u]).cloned().collect();
        let own = all.len();
        for c in fresh {
            let mut e = c.e.clone();
            known_before(&mut e, base, end);
            all.push(e);
        }
        let table = match leaf {
            Leaf::Table(table) => table,
            Leaf::System(view) => {
                let by_join: Vec<&Bound> = all[own..].iter().collect();
                return sought(view, base, &by_join).map(|found| self.joins.figures.costs().probe + found.rows);
            }
            _ => return None,
        };
        let chosen = access::choose(table, &all, &self.joins.figures);
        (chosen.equal > 0 && chosen.covered.iter().any(|at| *at >= own))
            .then_some(chosen.cost.max(self.joins.figures.costs().probe))
    }
}

/// What it costs to fill the hash table of a join, and then to look rows up in it.
fn hashed(kind: JoinType, lefts: f64, r: Estimate, costs: &Costs) -> (f64, f64) {
    match builds_left(kind, lefts, r.rows) {
        true => (lefts * costs.build, r.cost + r.rows * costs.look_up),
        false => (r.cost + r.rows * costs.build, lefts * costs.look_up),
    }
}

/// Puts parameters in the places of columns outside of a table, which are known when it is read.
fn known_before(e: &mut Bound, base: usize, end: usize) {
    if let BoundKind::Column { index, level: 0 } = e.kind
        && !(base..end).contains(&index)
    {
        e.kind = BoundKind::Param(u32::MAX);
        return;
    }
    e.children_mut().into_iter().for_each(|child| known_before(child, base, end));
}
