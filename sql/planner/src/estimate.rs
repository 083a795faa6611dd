//! Estimates how many rows a source gives, and what reading them costs.

use super::access;
use super::cost::Figures;
use super::differing::Columns;
use super::from::{Item, Leaf};
use super::joins::{ANTI_LEAST, Joins, left_slots, within};
use super::merging::hashing;
use super::order::relied_on;
use super::plan::{Access, Action, Body, Distinct, JoinType, Node, Plan, Query, Select};
use super::sought::sought;
use super::walk;
use clearway_base::{breath, stack};
use clearway_context::steering::Way;
use clearway_syntax::ast::SetOp;
use clearway_values::expr::Bound;

/// Rows of functions and system views.
const ROWS_OTHER: f64 = 100.0;
/// The share of pairs that meets a condition that is not an equality.
pub(super) const SOME: f64 = 1.0 / 3.0;

/// What is estimated of a source of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub rows: f64,
    pub cost: f64,
}

/// What it is estimated to cost to carry out a plan, in the unit of [`cost`](super::cost). The plan is as the planner made it, with all its slots.
pub fn cost_of(plan: &Plan, figures: Figures<'_>) -> f64 {
    let joins = Joins::new(figures, &plan.subqueries);
    let of_action = |action: &Action| match action {
        Action::Select(query) | Action::Settings(query) => joins.query(query).cost,
        Action::Insert(insert) => joins.query(&insert.source).cost,
        Action::Update(update) => joins.node(&update.source).cost,
        Action::Delete(delete) => joins.node(&delete.source).cost,
        Action::Merge(merge) => joins.node(&merge.source).cost,
    };
    let changes: f64 = plan.changes.iter().map(|change| of_action(&change.action)).sum();
    let subqueries: f64 = plan.subqueries.iter().map(|sub| joins.query(&sub.query).cost).sum();
    of_action(&plan.action) + changes + subqueries
}

/// Whether the groups of a level are found by a hash table.
fn is_grouped_by_hash(s: &Select) -> bool {
    s.grouping.as_ref().is_some_and(|g| !g.is_one_group() && !g.is_in_order)
}

/// Whether the rows of a query are sorted: they do not come in its order anyway.
pub(super) fn is_sorted(q: &Query) -> bool {
    let comes = |s: &Select| s.grouping.is_none() && relied_on(&s.source).is_some();
    !q.sort.is_empty() && !matches!(&q.body, Body::Select(s) if comes(s))
}

impl Joins<'_> {
    /// What is estimated of an item whose rows meet these conditions.
    pub fn estimate(&self, item: &Item, conditions: &[Bound]) -> Estimate {
        match item {
            Item::Leaf { kind: Leaf::Table(table), filters, .. } => {
                let all: Vec<Bound> = filters.iter().chain(conditions).cloned().collect();
                let share = self.figures.share_of_all(table, &all);
                let rows = (self.figures.rows(table) * share).max(1.0);
                Estimate { rows, cost: access::choose(table, &all, &self.figures).cost.max(1.0) }
            }
            Item::Leaf { kind: Leaf::System(view), filters, base, .. }
                if let Some(found) = sought(view, *base, &filters.iter().chain(conditions).collect::<Vec<_>>()) =>
            {
                let others = (filters.len() + conditions.len()).saturating_sub(1).min(4) as i32;
                Estimate {
                    rows: (found.rows * SOME.powi(others)).max(1.0),
                    cost: self.figures.costs().probe + found.rows,
                }
            }
            Item::Leaf { kind, filters, .. } => {
                let inner = match kind {
                    Leaf::Derived { query, .. } => self.shared(query),
                    Leaf::One => Estimate { rows: 1.0, cost: 0.0 },
                    _ => Estimate { rows: ROWS_OTHER, cost: ROWS_OTHER },
                };
                let share = SOME.powi((filters.len() + conditions.len()).min(4) as i32);
                Estimate { rows: (inner.rows * share).max(1.0), cost: inner.cost + inner.rows }
            }
            Item::Join { kind, left, right, on, .. } => {
                let l = stack::deeper(|| self.estimate(left, &within(&left_slots(left), conditions)));
                let is_semi = matches!(kind, JoinType::Semi | JoinType::Anti);
                let of_right = if is_semi { within(&left_slots(right), on) } else { Vec::new() };
                let r = stack::deeper(|| self.estimate(right, &of_right));
                let met = || {
                    let sides = [left, right].map(|side| Columns::of_items(std::iter::once(&**side)));
                    let between = on.iter().filter(|e| !of_right.iter().any(|own| walk::same(own, e)));
                    self.met((&sides[0], &sides[1]), r.rows, between)
                };
                let pairs = if on.is_empty() { l.rows * r.rows } else { l.rows.max(r.rows) };
                let rows = match kind {
                    JoinType::Inner => pairs,
                    JoinType::Left => pairs.max(l.rows),
                    JoinType::Full => l.rows + r.rows,
                    JoinType::Semi => l.rows * met(),
                    JoinType::Anti => l.rows * (1.0 - met()).max(ANTI_LEAST),
                }
                .max(1.0);
                Estimate { rows, cost: l.cost + r.cost + hashing(*kind, (l.rows, r.rows), &self.figures) }
            }
        }
    }

    /// What is estimated of a finished query.
    pub fn query(&self, q: &Query) -> Estimate {
        stack::deeper(|| self.query_here(q))
    }

    fn query_here(&self, q: &Query) -> Estimate {
        let inner = match &q.body {
            Body::Values(rows) => Estimate { rows: rows.len() as f64, cost: rows.len() as f64 },
            Body::SetOp { left, right, .. } => {
                let (l, r) = (self.query(left), self.query(right));
                Estimate { rows: l.rows + r.rows, cost: l.cost + r.cost + l.rows + r.rows }
            }
            Body::Recursive { anchor, .. } => {
                let a = self.query(anchor);
                Estimate {
                    rows: a.rows * self.figures.steering.recursion,
                    cost: a.cost * self.figures.steering.recursion,
                }
            }
            Body::Select(s) => {
                let mut from = self.node(&s.source);
                from.cost += from.rows;
                if s.filter.is_some() {
                    from.rows = (from.rows * SOME).max(1.0);
                }
                match &s.grouping {
                    Some(g) if g.is_one_group() => from.rows = 1.0,
                    Some(g) => from.rows = self.groups(&Columns::of_node(&s.source), g, from.rows),
                    None => {}
                }
                if s.distinct.is_some() {
                    from.rows = self.different_rows(&Columns::of_node(&s.source), &s.targets, from.rows);
                }
                if s.is_side {
                    from.cost += from.rows * self.figures.costs().build;
                    from.rows = self.different_rows(&Columns::of_node(&s.source), &s.targets, from.rows);
                }
                from
            }
        };
        let limit = q.limit.as_ref().and_then(super::select::written_count);
        let sorting = if q.sort.is_empty() { 0.0 } else { self.figures.sorting(inner.rows) };
        let rows = limit.map_or(inner.rows, |n| inner.rows.min(n.max(0) as f64));
        Estimate { rows: rows.max(1.0), cost: inner.cost + sorting + self.disable_costs(q) }
    }

    /// What the steps of a query above its source cost beside their work, where they are not wanted.
    fn disable_costs(&self, q: &Query) -> f64 {
        let by_hash = match &q.body {
            Body::Select(s) => is_grouped_by_hash(s) || matches!(s.distinct, Some(Distinct::Row)) || s.is_side,
            Body::SetOp { op, all, .. } => *op != SetOp::Union || !*all,
            Body::Values(_) | Body::Recursive { .. } => false,
        };
        let hash = if by_hash { self.figures.disable_cost(Way::HashAgg) } else { 0.0 };
        hash + if is_sorted(q) { self.figures.disable_cost(Way::Sort) } else { 0.0 }
    }

    /// What is estimated of a finished source.
    pub fn node(&self, node: &Node) -> Estimate {
        match node {
            Node::One => Estimate { rows: 1.0, cost: 0.0 },
            Node::Scan(s) => {
                let filters: Vec<Bound> = s.filter.iter().cloned().flat_map(super::plan::split).collect();
                let share = self.figures.share_of_all(&s.table, &filters);
                let (found, cost) = self.figures.read(s);
                // An index leaves its conditions in the filter; the key takes them away.
                let is_key = matches!(s.access, Access::Keys(_) | Access::KeyRange(_) | Access::Tids(_));
                let rows = if is_key { found * share } else { self.figures.rows(&s.table) * share };
                let costs = self.figures.costs();
                let by_entries = |each: f64| costs.probe + found * each + self.figures.disable_cost_of(&s.access);
                let cost = s.entries.as_ref().map_or(cost, |e| by_entries(e.each));
                if let Some(jump) = &s.jump {
                    let cost = jump.rows * costs.jump + self.figures.disable_cost(Way::IndexScan);
                    return Estimate { rows: jump.rows.min(rows).max(1.0), cost };
                }
                Estimate { rows: rows.min(found).max(1.0), cost }
            }
            Node::System(s) if let Some(found) = sought(s.view, s.base, &s.filter.iter().collect::<Vec<_>>()) => {
                Estimate { rows: found.rows, cost: self.figures.costs().probe + found.rows }
            }
            Node::Sample(s) => {
                let rows = self.figures.rows(&s.scan.table);
                Estimate { rows: (rows * SOME).max(1.0), cost: rows }
            }
            Node::System(_) | Node::Function(_) | Node::Work(_) => Estimate { rows: ROWS_OTHER, cost: ROWS_OTHER },
            Node::Derived(d) => {
                let q = self.shared(&d.query);
                let rows = if d.filter.is_some() { (q.rows * SOME).max(1.0) } else { q.rows };
                Estimate { rows, cost: q.cost }
            }
            Node::Filter { input, .. } => {
                let i = stack::deeper(|| self.node(input));
                Estimate { rows: (i.rows * SOME).max(1.0), cost: i.cost + i.rows }
            }
            Node::Join(j) => {
                // Each join of a level asks for all joins below it.
                breath::step_on(breath::ROW);
                let (l, r) = stack::deeper(|| (self.node(&j.left), self.node(&j.right)));
                let has_keys = j.hash.as_ref().is_some_and(|(keys, _)| !keys.is_empty());
                let rows = match (j.kind, &j.hash) {
                    (JoinType::Semi, _) => l.rows * self.met_by(j, r.rows),
                    (JoinType::Anti, _) => l.rows * (1.0 - self.met_by(j, r.rows)).max(ANTI_LEAST),
                    (JoinType::Inner, Some(_)) if has_keys => {
                        self.by_side(j, (l.rows, r.rows)).unwrap_or(l.rows.max(r.rows))
                    }
                    (_, Some(_)) if has_keys => l.rows.max(r.rows),
                    (_, Some(_)) => l.rows * r.rows * if j.on.is_some() { SOME } else { 1.0 },
                    (_, None) => l.rows * r.rows,
                };
                let (figures, costs) = (&self.figures, self.figures.costs());
                let (cost, way) = match j.hash {
                    Some(_) if j.merge.is_some() => (l.cost + r.cost + (l.rows + r.rows) * costs.merge, Way::MergeJoin),
                    Some(_) => {
                        let way = if has_keys { Way::HashJoin } else { Way::NestLoop };
                        (l.cost + r.cost + hashing(j.kind, (l.rows, r.rows), figures), way)
                    }
                    None => (l.cost + l.rows * (r.cost + 1.0), Way::NestLoop),
                };
                Estimate { rows: rows.max(1.0), cost: cost + figures.disable_cost(way) + rows * costs.give }
            }
        }
    }
}
