//! Turns a plan into the tree that EXPLAIN shows, with PostgreSQL's names for the nodes (`render` writes the tree in the four formats,
//! `words` writes expressions).
//!
//! In Clearway's plan one query level does several steps. EXPLAIN shows each step as a node of its own, in the order in which rows pass
//! them: source, groups, sort, row locks, DISTINCT, LIMIT. Costs are those of
//! `cost` and `joins`; one unit of theirs is shown as 0.01, PostgreSQL's cost of processing one row.

pub mod actual;
pub mod definition;
mod gather;
mod joined;
mod parts;
pub mod places;
pub mod render;
mod sample;
mod scans;
mod skip;
mod stages;
mod steps;
mod system;
mod used;
mod words;

use actual::address;
pub use actual::{Actual, Actuals, Method, Step};
use clearway_base::stack;

use super::apart::Sharing;
use super::cost::Figures;
use super::estimate::{Estimate, is_sorted};
use super::joins::Joins;
use super::plan::{Action, Body, Derived, Distinct, Node, Plan, Query, Select, Subplan};
use super::walk;
use clearway_base::usage::Usage;
use clearway_context::steering::Way;
use clearway_syntax::ast::SetOp;
use clearway_values::expr::Bound;
use clearway_values::types::text::Conversion;
use clearway_values::types::{Oid, SqlType, facts};
use parts::{is_scalar, leaves, node_subqueries, subqueries, table_slots};
use render::{Shown, Value};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use words::{Names, Style, Words};

/// Cost of PostgreSQL's for one of ours.
const UNIT: f64 = 0.01;
/// Bytes of a value whose type has no fixed length.
const WIDTH: u32 = 32;

/// Makes the tree of a plan.
pub struct Explainer<'a> {
    /// How values are shown.
    pub conversion: &'a Conversion<'a>,
    /// The plan.
    pub plan: &'a Plan,
    /// What is known of tables.
    pub figures: Figures<'a>,
    /// What several threads share.
    pub sharing: Sharing<'a>,
    /// What was measured; none: nothing was carried out.
    pub actuals: Option<&'a Actuals>,
    /// What the whole statement has taken, if it was carried out: shown at the node that changes rows.
    pub whole: Option<(u64, Usage)>,
    /// VERBOSE.
    pub verbose: bool,
    /// The schema of a table, for VERBOSE.
    pub schema: &'a dyn Fn(Oid) -> Option<String>,
    /// The columns of the working tables of recursive queries around the node that is shown.
    pub works: RefCell<HashMap<usize, Vec<(String, String)>>>,
    /// Subqueries that have been shown.
    pub told: RefCell<HashSet<usize>>,
    /// Expressions of WITH that have been shown: the scans that follow name them only.
    pub told_with: RefCell<HashSet<usize>>,
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn width_of(types: impl Iterator<Item = SqlType>) -> u32 {
    types.map(|ty| facts(ty.oid).map_or(WIDTH, |f| u32::try_from(f.len).unwrap_or(WIDTH))).sum()
}

impl<'a> Explainer<'a> {
    fn subplans(&self) -> &'a [Subplan] {
        &self.plan.subqueries
    }

    fn joins(&self) -> Joins<'a> {
        Joins::new(self.figures, &self.plan.subqueries)
    }

    fn actual(&self, address: usize) -> Option<Actual> {
        self.step(address, Step::All)
    }

    /// What was measured of a step; none: nothing was carried out.
    fn step(&self, address: usize, step: Step) -> Option<Actual> {
        self.actuals.map(|all| all.get(&(address, step)).copied().unwrap_or_default())
    }

    /// The whole plan.
    pub fn tree(&self) -> Shown {
        let mut top = self.action(&self.plan.action);
        for change in &self.plan.changes {
            top.children.push(("InitPlan", Some(format!("CTE {}", change.name)), self.action(&change.action)));
        }
        top
    }

    fn action(&self, action: &Action) -> Shown {
        let (operation, table, child, width) = match action {
            Action::Select(q) | Action::Settings(q) => return self.query(q, &[]),
            Action::Insert(i) => ("Insert", &i.target.table, self.query(&i.source, &[]), 0),
            Action::Update(u) => ("Update", &u.target.table, self.changed(&u.source, u.filter.as_ref()), 0),
            Action::Delete(d) => ("Delete", &d.target.table, self.changed(&d.source, d.filter.as_ref()), 0),
            Action::Merge(m) => ("Merge", &m.target.table, self.changed(&m.source, m.filter.as_ref()), 0),
        };
        let mut node = Shown {
            kind: "ModifyTable".to_owned(),
            head: format!("{operation} on {}", self.shown_table(table)),
            identity: std::iter::once(("Operation", text(operation))).chain(self.identity(table)).collect(),
            estimate: (child.estimate.0, child.estimate.1, 0.0, width),
            actual: self.whole.map(|(total_ns, usage)| Actual {
                first_ns: total_ns,
                total_ns,
                loops: 1,
                usage,
                ..Actual::default()
            }),
            ..Shown::default()
        };
        node.children.push(("Outer", None, child));
        node
    }

    fn changed(&self, source: &Arc<Node>, filter: Option<&Bound>) -> Shown {
        let levels = [self.names(source)];
        let mut node = self.node(source, &levels);
        if let Some(filter) = filter {
            let name = if matches!(&**source, Node::One) { "One-Time Filter" } else { "Filter" };
            node.details.push((name, text(self.words(&levels).expr(filter))));
            if super::fold::is_never(filter) {
                node.estimate = (0.0, 0.0, 0.0, 0);
            }
        }
        let mut ids = Vec::new();
        filter.iter().for_each(|e| subqueries(e, &mut ids));
        node_subqueries(source, &mut ids);
        self.add_subplans(&mut node, &ids, &levels);
        node
    }

    /// Whether columns come from more than one table.
    fn has_several_tables(&self, levels: &[Names]) -> bool {
        let several = |l: &Names| l.slots.iter().map(|s| &s.0).collect::<HashSet<_>>().len() > 1;
        levels.len() > 1 || levels.first().is_some_and(several)
    }

    fn words<'w>(&'w self, levels: &'w [Names]) -> Words<'w> {
        let qualified = self.verbose || self.has_several_tables(levels);
        Words { conversion: self.conversion, levels, qualified, own: 0..0, style: Style::Plan }
    }

    fn query(&self, q: &Arc<Query>, outer: &[Names]) -> Shown {
        stack::deeper(|| self.query_here(q, outer))
    }

    fn query_here(&self, q: &Arc<Query>, outer: &[Names]) -> Shown {
        let rows = self.joins().query(q);
        let width = self.width_of_query(q);
        let mut node = match &q.body {
            Body::Select(s) => self.select(q, s, outer),
            Body::Values(list) => {
                let one = list.len() == 1;
                let kind = if one { "Result" } else { "Values Scan" };
                let head = if one { "Result".to_owned() } else { "Values Scan on \"*VALUES*\"".to_owned() };
                Shown { kind: kind.to_owned(), head, ..Shown::default() }
            }
            Body::SetOp { op, all, left, right } => self.set_operation(q, (*op, *all), (left, right), outer),
            Body::Recursive { anchor, step, work, .. } => {
                self.works.borrow_mut().insert(*work, Self::own_names(anchor));
                let sides = [("Outer", anchor), ("Inner", step)];
                Shown {
                    kind: "Recursive Union".to_owned(),
                    head: "Recursive Union".to_owned(),
                    children: sides.map(|(part, side)| (part, None, self.query(side, outer))).into(),
                    ..Shown::default()
                }
            }
        };
        if !matches!(q.body, Body::Select(_)) {
            node.estimate = (0.0, rows.cost * UNIT, rows.rows, width);
            if !q.sort.is_empty() {
                let mut levels = vec![Names { slots: self.branch_names(q), ..Names::default() }];
                levels.extend_from_slice(outer);
                node = self.sorted(node, (&q.sort, address(&**q), 0), q, &levels);
            }
        }
        if q.limit.is_some() || q.offset.is_some() {
            let estimate = (node.estimate.0, node.estimate.1, rows.rows, node.estimate.3);
            node = above("Limit", node, estimate);
        }
        node.estimate.3 = width;
        node.actual = self.actual(address(&**q));
        node
    }

    fn set_operation(
        &self,
        q: &Query,
        (op, all): (SetOp, bool),
        (left, right): (&Arc<Query>, &Arc<Query>),
        outer: &[Names],
    ) -> Shown {
        let children = vec![("Member", None, self.query(left, outer)), ("Member", None, self.query(right, outer))];
        let (kind, head) = match (op, all) {
            (SetOp::Union, true) => ("Append", "Append".to_owned()),
            (SetOp::Union, false) => ("Append", "Append".to_owned()),
            (SetOp::Intersect, false) => ("SetOp", "HashSetOp Intersect".to_owned()),
            (SetOp::Intersect, true) => ("SetOp", "HashSetOp Intersect All".to_owned()),
            (SetOp::Except, false) => ("SetOp", "HashSetOp Except".to_owned()),
            (SetOp::Except, true) => ("SetOp", "HashSetOp Except All".to_owned()),
        };
        let estimate = children
            .iter()
            .fold((0.0, 0.0, 0.0, 0), |e, c| (0.0, e.1 + c.2.estimate.1, e.2 + c.2.estimate.2, c.2.estimate.3));
        let all_of = |children: &[(_, _, Shown)]| {
            let mut actuals = children.iter().filter_map(|child| child.2.actual);
            let first = actuals.next()?;
            Some(actuals.fold(first, |sum, next| Actual {
                total_ns: sum.total_ns + next.total_ns,
                rows: sum.rows + next.rows,
                usage: sum.usage + next.usage,
                ..sum
            }))
        };
        let actual = all_of(&children);
        let node = Shown { kind: kind.to_owned(), head, estimate, actual, children, ..Shown::default() };
        if op == SetOp::Union && !all {
            let mut unique = above("HashAggregate", node, estimate);
            self.add_disable_cost(&mut unique, Way::HashAgg);
            unique.kind = "Aggregate".to_owned();
            unique.identity = vec![("Strategy", text("Hashed"))];
            let names = [Names { slots: self.branch_names(left), ..Names::default() }];
            let words = Words { qualified: true, ..self.words(&names) };
            let keys = (0..names[0].slots.len()).map(|at| words.column(at, 0)).collect();
            unique.details.push(("Group Key", Value::List(keys)));
            unique.details.extend(self.distinct_method(q));
            return unique;
        }
        node
    }

    fn select(&self, q: &Arc<Query>, s: &Select, outer: &[Names]) -> Shown {
        let mut own = self.names(&s.source);
        let before: Vec<Names> = std::iter::once(own.clone()).chain(outer.iter().cloned()).collect();
        own.aggregates = self.values_behind(s, before);
        let levels: Vec<Names> = std::iter::once(own).chain(outer.iter().cloned()).collect();
        let mut words = self.words(&levels);
        words.qualified |= s.is_side;
        let mut node = self.source(s, &levels);
        if let Some(filter) = &s.filter {
            let name = if matches!(&*s.source, Node::One) { "One-Time Filter" } else { "Filter" };
            node.details.push((name, text(words.expr(filter))));
            self.judged(&mut node, name, filter);
            if super::fold::is_never(filter) {
                node.estimate = (0.0, 0.0, 0.0, 0);
            }
        }
        let rows = self.joins().query(q).rows;
        if let Some(g) = &s.grouping {
            node = self.groups(node, (q, s), g, &levels);
            if self.verbose {
                node.output = self.output(&s.targets, &levels);
            }
        }
        node = self.windows(node, (q, s), &levels);
        if s.sets.is_some() {
            let estimate = node.estimate;
            node = above("ProjectSet", node, estimate);
        }
        if is_sorted(q) {
            node = self.sorted(node, (&q.sort, address(s), s.windows.len()), q, &levels);
        }
        if !s.locks.is_empty() {
            let estimate = node.estimate;
            node = above("LockRows", node, estimate);
        }
        node = match &s.distinct {
            None => node,
            Some(Distinct::Row) => {
                let mut unique = above("HashAggregate", node, (0.0, 0.0, rows, 0));
                unique.actual = self.actual(address(&**q));
                unique.kind = "Aggregate".to_owned();
                unique.identity = vec![("Strategy", text("Hashed"))];
                unique.details.push(("Group Key", Value::List(s.targets.iter().map(|e| words.expr(e)).collect())));
                unique.details.extend(self.distinct_method(q));
                costs_of_child(&mut unique);
                self.add_disable_cost(&mut unique, Way::HashAgg);
                unique
            }
            Some(Distinct::On(_)) => {
                let estimate = node.estimate;
                above("Unique", node, estimate)
            }
        };
        if self.verbose {
            node.output = self.output(&s.targets, &levels);
        }
        let mut ids = Vec::new();
        walk::query_exprs(q, 0, &mut |e, depth| {
            if depth == 0 {
                subqueries(e, &mut ids);
            }
        });
        self.add_subplans(&mut node, &ids, &levels);
        node
    }

    /// The condition of a level, shown at its source: rows that it removes do not count as the source's.
    fn judged(&self, node: &mut Shown, name: &str, filter: &Bound) {
        let removed = self.step(address(filter), Step::Filter).map_or(0, |measured| measured.removed);
        node.actual = node.actual.map(|actual| Actual { rows: actual.rows.saturating_sub(removed), ..actual });
        if name == "Filter" {
            self.add_removed(node, "Rows Removed by Filter", Some(filter));
        }
    }

    /// What the values behind the slots are called, in their order (PLN-8).
    fn values_behind(&self, s: &Select, mut levels: Vec<Names>) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(g) = &s.grouping {
            let words = self.words(&levels);
            out.extend(g.calls.iter().map(|call| stages::aggregate(call, &words)));
            out.extend(g.keys.iter().map(|key| words.expr(key)));
            out.extend(g.sets.as_ref().map(|_| "GROUPING".to_owned()));
        }
        if let Some(own) = levels.first_mut() {
            own.aggregates.clone_from(&out);
        }
        let words = self.words(&levels);
        let mut calls: Vec<_> = s.windows.iter().flat_map(|w| &w.calls).collect();
        calls.sort_by_key(|call| call.place);
        out.extend(calls.into_iter().map(|call| stages::window(call, &words)));
        let mut sets: Vec<_> = s.sets.iter().flat_map(|s| &s.turns).flatten().collect();
        sets.sort_by_key(|(_, place)| *place);
        out.extend(sets.into_iter().map(|(call, _)| stages::set(call, &words)));
        out
    }

    /// Shows the subqueries that have not been shown yet.
    fn add_subplans(&self, node: &mut Shown, ids: &[usize], levels: &[Names]) {
        for id in ids {
            let Some(sub) = self.subplans().get(*id) else { continue };
            if !self.told.borrow_mut().insert(*id) {
                continue;
            }
            let hashed = !sub.correlated;
            let (part, name) = match hashed && is_scalar(self.plan, *id) {
                true => ("InitPlan", format!("InitPlan {} (returns ${id})", id + 1)),
                false => ("SubPlan", format!("SubPlan {}", id + 1)),
            };
            node.children.push((part, Some(name), self.query(&sub.query, levels)));
        }
    }

    /// The names of the slots of a source.
    fn names(&self, node: &Node) -> Names {
        let mut names = Names::default();
        let mut put = |base: usize, list: Vec<(String, String)>| {
            let end = base + list.len();
            if names.slots.len() < end {
                names.slots.resize(end, (String::new(), String::new()));
            }
            names.slots.splice(base..end, list);
        };
        leaves(node, &mut |leaf| match leaf {
            Node::Scan(s) => put(s.table.base, table_slots(&s.table)),
            Node::Sample(s) => put(s.scan.table.base, table_slots(&s.scan.table)),
            Node::System(s) => {
                put(s.base, s.view.columns.iter().map(|c| (s.view.name.to_owned(), c.0.to_owned())).collect());
            }
            Node::Derived(d) => put(d.base, self.derived_names(&d.query)),
            Node::Work(s) => put(s.base, self.works.borrow().get(&s.id).cloned().unwrap_or_default()),
            _ => {}
        });
        names
    }

    fn node_alone(&self, node: &Arc<Node>, levels: &[Names]) -> Shown {
        let mut out = match &**node {
            Node::One => Shown { kind: "Result".to_owned(), head: "Result".to_owned(), ..Shown::default() },
            Node::Scan(s) => self.scan(s, levels),
            Node::Sample(s) => self.sample(s, levels),
            Node::System(s) => self.system_scan(s, levels),
            Node::Function(_) => {
                Shown { kind: "Function Scan".to_owned(), head: "Function Scan".to_owned(), ..Shown::default() }
            }
            Node::Work(_) => {
                Shown { kind: "WorkTable Scan".to_owned(), head: "WorkTable Scan".to_owned(), ..Shown::default() }
            }
            Node::Derived(d) => self.derived(d, levels),
            Node::Filter { input, .. } => self.node(input, levels),
            Node::Join(j) => self.join(j, levels),
        };
        let filter = match &**node {
            Node::Work(s) => s.filter.as_ref(),
            Node::Derived(d) => d.filter.as_ref(),
            Node::Filter { filter, .. } => Some(filter),
            _ => None,
        };
        if let Some(filter) = filter {
            out.details.push(("Filter", text(self.words(levels).expr(filter))));
        }
        let removed = match &**node {
            Node::Scan(s) => s.filter.as_ref(),
            Node::Sample(s) => s.scan.filter.as_ref(),
            _ => filter,
        };
        let Estimate { rows, cost } = self.joins().node(node);
        let width = match &**node {
            Node::Scan(s) => self.width_of_scan(s),
            Node::Sample(s) => self.width_of_scan(&s.scan),
            Node::System(s) => width_of(s.view.columns.iter().map(|c| c.1.into())),
            Node::Derived(d) => self.width_of_query(&d.query),
            Node::Join(_) => out.children.iter().map(|c| c.2.estimate.3).sum(),
            _ => WIDTH,
        };
        let startup = if matches!(&**node, Node::Join(j) if j.hash.is_some() && j.merge.is_none()) {
            out.children.last().map_or(0.0, |c| c.2.estimate.1)
        } else {
            0.0
        };
        out.estimate = (startup, (cost * UNIT).max(startup), rows, width);
        out.actual = self.actual(Arc::as_ptr(node) as usize);
        if let Node::Join(j) = &**node {
            self.add_removed(&mut out, "Rows Removed by Join Filter", j.on.as_ref());
        }
        self.add_removed(&mut out, "Rows Removed by Filter", removed);
        if let Node::Scan(s) = &**node {
            self.add_unmet(&mut out, s);
        }
        out
    }

    fn derived(&self, d: &Derived, levels: &[Names]) -> Shown {
        let inner = if d.lateral { levels } else { &levels[1..] };
        let kept = d.kept.as_ref().filter(|kept| kept.is_kept());
        if let Some(kept) = kept
            && !self.told_with.borrow_mut().insert(kept.id)
        {
            let head = format!("CTE Scan on {}", kept.name);
            let identity = vec![("CTE Name", text(kept.name.clone()))];
            return Shown { kind: "CTE Scan".to_owned(), head, identity, ..Shown::default() };
        }
        let child = self.query(&d.query, inner);
        if Self::is_side(&d.query) {
            return child;
        }
        let (kind, part) = if kept.is_some() { ("CTE Scan", "InitPlan") } else { ("Subquery Scan", "Subquery") };
        let name = kept.map(|kept| kept.name.clone());
        let head = name.as_ref().map_or_else(|| kind.to_owned(), |name| format!("{kind} on {name}"));
        let identity = name.iter().map(|name| ("CTE Name", text(name))).collect();
        let children = vec![(part, name.map(|name| format!("CTE {name}")), child)];
        Shown { kind: kind.to_owned(), head, identity, children, ..Shown::default() }
    }
}

/// A step above a node.
fn above(kind: &str, node: Shown, estimate: (f64, f64, f64, u32)) -> Shown {
    let (actual, output) = (node.actual, node.output.clone());
    let children = vec![("Outer", None, node)];
    Shown { kind: kind.to_owned(), head: kind.to_owned(), estimate, actual, output, children, ..Shown::default() }
}

/// A step that reads all of its input before it gives its first row.
fn costs_of_child(node: &mut Shown) {
    if let Some((_, _, child)) = node.children.first() {
        let cost = child.estimate.1 + child.estimate.2 * UNIT;
        (node.estimate.0, node.estimate.1) = (cost, cost + node.estimate.2 * UNIT);
        node.estimate.3 = child.estimate.3;
    }
}
