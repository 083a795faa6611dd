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
pub mod render;
mod sample;
mod skip;
mod stages;
mod system;
mod words;

pub use actual::{Actual, Actuals};

use super::apart::Sharing;
use super::cost::Figures;
use super::estimate::Estimate;
use super::facts::is_said_by;
use super::indexes::expression_at;
use super::joins::Joins;
use super::order::relied_on;
use super::plan::{
    Access, Action, Body, Derived, Distinct, Grouping, KeyValues, Node, Plan, Query, Range, Ranges, RowEnd, Scan,
    Select, SortKey, Subplan, TableSlot, split,
};
use super::walk;
use clearway_storage::btree::Direction;
use clearway_syntax::ast::SetOp;
use clearway_values::expr::Bound;
use clearway_values::expr::operators::Op;
use clearway_values::types::text::Conversion;
use clearway_values::types::{SqlType, facts};
use parts::{is_scalar, leaves, node_subqueries, subqueries, table_slots};
use render::{Shown, Value};
use std::cell::RefCell;
use std::collections::HashSet;
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
    /// VERBOSE.
    pub verbose: bool,
    /// Subqueries that have been shown.
    pub told: RefCell<HashSet<usize>>,
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
        self.actuals.map(|all| all.get(&address).copied().unwrap_or_default())
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
            head: format!("{operation} on {}", shown_table(table)),
            identity: vec![
                ("Operation", text(operation)),
                ("Relation Name", text(&table.shape.name)),
                ("Alias", text(&table.name)),
            ],
            estimate: (child.estimate.0, child.estimate.1, 0.0, width),
            actual: child.actual.map(|a| Actual { rows: 0, ..a }),
            ..Shown::default()
        };
        node.children.push(("Outer", None, child));
        node
    }

    fn changed(&self, source: &Arc<Node>, filter: Option<&Bound>) -> Shown {
        let levels = [self.names(source)];
        let mut node = self.node(source, &levels);
        if let Some(filter) = filter {
            node.details.push(("Filter", text(self.words(&levels).expr(filter))));
        }
        let mut ids = Vec::new();
        filter.iter().for_each(|e| subqueries(e, &mut ids));
        node_subqueries(source, &mut ids);
        self.add_subplans(&mut node, &ids, &levels);
        node
    }

    fn words<'w>(&'w self, levels: &'w [Names]) -> Words<'w> {
        let several = |l: &Names| l.slots.iter().map(|s| &s.0).collect::<HashSet<_>>().len() > 1;
        let qualified = self.verbose || levels.len() > 1 || levels.first().is_some_and(several);
        Words { conversion: self.conversion, levels, qualified, own: 0..0, style: Style::Plan }
    }

    fn query(&self, q: &Arc<Query>, outer: &[Names]) -> Shown {
        let rows = self.joins().query(q);
        let width = width_of(q.columns.iter().map(|c| c.ty));
        let mut node = match &q.body {
            Body::Select(s) => self.select(q, s, outer),
            Body::Values(list) => {
                let one = list.len() == 1;
                let kind = if one { "Result" } else { "Values Scan" };
                let head = if one { "Result".to_owned() } else { "Values Scan on \"*VALUES*\"".to_owned() };
                Shown { kind: kind.to_owned(), head, ..Shown::default() }
            }
            Body::SetOp { op, all, left, right } => self.set_operation(*op, *all, left, right, outer),
            Body::Recursive { anchor, step, .. } => Shown {
                kind: "Recursive Union".to_owned(),
                head: "Recursive Union".to_owned(),
                children: vec![("Outer", None, self.query(anchor, outer)), ("Inner", None, self.query(step, outer))],
                ..Shown::default()
            },
        };
        if !matches!(q.body, Body::Select(_)) {
            node.estimate = (0.0, rows.cost * UNIT, rows.rows, width);
            if !q.sort.is_empty() {
                let mut levels = vec![Names { slots: Self::own_names(q), ..Names::default() }];
                levels.extend_from_slice(outer);
                node = self.sorted(node, &q.sort, &levels);
            }
        }
        if q.limit.is_some() || q.offset.is_some() {
            let estimate = (node.estimate.0, node.estimate.1, rows.rows, node.estimate.3);
            node = above("Limit", node, estimate);
        }
        node.estimate.3 = width;
        node.actual = self.actual(Arc::as_ptr(q) as usize);
        node
    }

    fn set_operation(&self, op: SetOp, all: bool, left: &Arc<Query>, right: &Arc<Query>, outer: &[Names]) -> Shown {
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
        let node = Shown { kind: kind.to_owned(), head, estimate, children, ..Shown::default() };
        if op == SetOp::Union && !all {
            let mut unique = above("HashAggregate", node, estimate);
            unique.kind = "Aggregate".to_owned();
            unique.identity = vec![("Strategy", text("Hashed"))];
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
            if super::fold::is_never(filter) {
                node.estimate = (0.0, 0.0, 0.0, 0);
            }
        }
        let from = self.joins().node(&s.source);
        let rows = self.joins().query(q).rows;
        if let Some(g) = &s.grouping {
            node = self.groups(node, s, g, &from, &levels);
        }
        for _ in &s.windows {
            let estimate = node.estimate;
            node = above("WindowAgg", node, estimate);
        }
        if s.sets.is_some() {
            let estimate = node.estimate;
            node = above("ProjectSet", node, estimate);
        }
        if !q.sort.is_empty() && (s.grouping.is_some() || relied_on(&s.source).is_none()) {
            node = self.sorted(node, &q.sort, &levels);
        }
        if !s.locks.is_empty() {
            let estimate = node.estimate;
            node = above("LockRows", node, estimate);
        }
        node = match &s.distinct {
            None => node,
            Some(Distinct::Row) => {
                let mut unique = above("HashAggregate", node, (0.0, 0.0, rows, 0));
                unique.kind = "Aggregate".to_owned();
                unique.identity = vec![("Strategy", text("Hashed"))];
                unique.details.push(("Group Key", Value::List(s.targets.iter().map(|e| words.expr(e)).collect())));
                costs_of_child(&mut unique);
                unique
            }
            Some(Distinct::On(_)) => {
                let estimate = node.estimate;
                above("Unique", node, estimate)
            }
        };
        if self.verbose {
            let output = Value::List(s.targets.iter().map(|e| words.expr(e)).collect());
            node.details.insert(0, ("Output", output));
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

    fn grouped(&self, node: Shown, g: &Grouping, from: &Estimate, levels: &[Names]) -> Shown {
        let plain = g.is_one_group();
        let rows = if plain { 1.0 } else { (from.rows / 10.0).max(1.0) };
        let (head, strategy) = match g.is_in_order {
            _ if plain => ("Aggregate", "Plain"),
            true => ("GroupAggregate", "Sorted"),
            false => ("HashAggregate", "Hashed"),
        };
        let mut out = above(head, node, (0.0, 0.0, rows, 0));
        costs_of_child(&mut out);
        out.kind = "Aggregate".to_owned();
        out.identity = vec![("Strategy", text(strategy)), ("Partial Mode", text("Simple"))];
        let words = self.words(levels);
        if !plain {
            out.details.push(("Group Key", Value::List(g.keys.iter().map(|e| words.expr(e)).collect())));
        }
        if let Some(having) = &g.having {
            out.details.push(("Filter", text(words.expr(having))));
        }
        out
    }

    fn sorted(&self, node: Shown, sort: &[SortKey], levels: &[Names]) -> Shown {
        let words = self.words(levels);
        let key = |k: &SortKey| {
            let nulls = match (k.descending, k.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            format!("{}{}{nulls}", words.expr(&k.expr), if k.descending { " DESC" } else { "" })
        };
        let (_, total, rows, width) = node.estimate;
        let cost = total + rows * (rows + 2.0).log2() * super::cost::SORT * UNIT;
        let mut out = above("Sort", node, (cost, cost, rows, width));
        out.details.push(("Sort Key", Value::List(sort.iter().map(key).collect())));
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
        let Estimate { rows, cost } = self.joins().node(node);
        let width = match &**node {
            Node::Scan(s) => width_of(s.table.types.iter().copied()),
            Node::Sample(s) => width_of(s.scan.table.types.iter().copied()),
            Node::System(s) => width_of(s.view.columns.iter().map(|c| c.1.into())),
            Node::Derived(d) => width_of(d.query.columns.iter().map(|c| c.ty)),
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
        out
    }

    fn derived(&self, d: &Derived, levels: &[Names]) -> Shown {
        let inner = if d.lateral { levels } else { &levels[1..] };
        let child = self.query(&d.query, inner);
        if Self::is_side(&d.query) {
            return child;
        }
        let kept = d.kept.as_ref().is_some_and(|k| k.is_kept());
        let (kind, part) = if kept { ("CTE Scan", "InitPlan") } else { ("Subquery Scan", "Subquery") };
        let name = d.kept.as_ref().filter(|_| kept).map(|k| k.name.clone());
        let head = name.as_ref().map_or_else(|| kind.to_owned(), |name| format!("{kind} on {name}"));
        let identity = name.iter().map(|name| ("CTE Name", text(name))).collect();
        let children = vec![(part, name.map(|name| format!("CTE {name}")), child)];
        Shown { kind: kind.to_owned(), head, identity, children, ..Shown::default() }
    }

    fn scan(&self, s: &Scan, levels: &[Names]) -> Shown {
        let table = &s.table;
        let mut words = self.words(levels);
        if !self.verbose {
            words.own = table.base..table.key_slot() + 1;
        }
        let index_name = |i: Option<usize>| match i {
            Some(i) => table.shape.indexes[i].name.clone(),
            None => table.shape.primary.as_ref().map_or_else(|| table.shape.name.clone(), |p| p.1.clone()),
        };
        let place = match &s.access {
            Access::Full => s.jump.map(|_| vec![None]),
            Access::Tids(_) => None,
            Access::Keys(_) | Access::KeyRange(_) => Some(vec![None]),
            Access::Index(i, _) => Some(vec![Some(*i)]),
            Access::Ranges(r) => Some(r.parts.iter().map(|p| p.index).collect::<Vec<_>>()),
        };
        let mut identity = Vec::new();
        let mut indexes: Vec<String> = place.iter().flatten().map(|i| index_name(*i)).collect();
        indexes.dedup();
        let backward = s.order == Some(Direction::Backward);
        let by_tid = matches!(s.access, Access::Tids(_));
        let (kind, head) = if indexes.is_empty() {
            let kind = if by_tid { "Tid Scan" } else { "Seq Scan" };
            (kind, format!("{kind} on {}", shown_table(table)))
        } else {
            identity.push(("Scan Direction", text(if backward { "Backward" } else { "Forward" })));
            identity.push(("Index Name", text(indexes.join(", "))));
            let way = if backward { " Backward" } else { "" };
            let kind = if s.entries.is_some() || s.jump.is_some() { "Index Only Scan" } else { "Index Scan" };
            (kind, format!("{kind}{way} using {} on {}", indexes.join(", "), shown_table(table)))
        };
        identity.push(("Relation Name", text(&table.shape.name)));
        identity.push(("Alias", text(&table.name)));
        let mut details = Vec::new();
        let condition = self.condition(table, &s.access, &words);
        if !condition.is_empty() {
            details.push((if by_tid { "TID Cond" } else { "Index Cond" }, text(condition)));
        }
        skip::note(s, &words, &mut details);
        // An index leaves its conditions in the filter, where they stand for snapshots that are older than it.
        let guaranteed = |e: &Bound| match &s.access {
            Access::Index(i, r) => is_said_by(e, table, &table.shape.indexes[*i].columns, r),
            _ => false,
        };
        let rest: Vec<Bound> = s.filter.iter().cloned().flat_map(split).filter(|e| !guaranteed(e)).collect();
        if let Some(filter) = super::plan::conjunction(rest) {
            details.push(("Filter", text(words.expr(&filter))));
        }
        Shown { kind: kind.to_owned(), head, identity, details, ..Shown::default() }
    }

    /// What an access looks for.
    fn condition(&self, table: &TableSlot, access: &Access, words: &Words<'_>) -> String {
        let name = |c: &usize| {
            let Some(column) = table.shape.columns.get(*c) else {
                return expression_at(table, *c).map_or_else(String::new, |e| words.expr(&e));
            };
            let column = &column.name;
            if self.verbose { format!("{}.{column}", table.name) } else { column.clone() }
        };
        let all = |list: Vec<String>| if list.len() > 1 { format!("({})", list.join(" AND ")) } else { list.concat() };
        let range = |r: &Range, columns: &[usize]| {
            let mut list: Vec<String> =
                r.equal.iter().zip(columns).map(|(e, c)| format!("({} = {})", name(c), words.expr(e))).collect();
            if let Some(next) = columns.get(r.equal.len()) {
                let low = r.low.iter().map(|(e, with)| (e, if *with { ">=" } else { ">" }));
                let high = r.high.iter().map(|(e, with)| (e, if *with { "<=" } else { "<" }));
                list.extend(low.chain(high).map(|(e, op)| format!("({} {op} {})", name(next), words.expr(e))));
            }
            all(list)
        };
        match access {
            Access::Full => String::new(),
            Access::Keys(keys) => match keys.as_slice() {
                [key] => all(key
                    .iter()
                    .zip(&table.shape.key)
                    .map(|(e, c)| format!("({} = {})", name(c), words.expr(e)))
                    .collect()),
                many => {
                    let list: Vec<String> = many.iter().map(|key| words.list(key)).collect();
                    let column = table.shape.key.first().map_or_else(String::new, name);
                    format!("({column} = ANY ('{{{}}}'))", list.join(","))
                }
            },
            Access::KeyRange(r) => range(r, &table.shape.key),
            Access::Index(i, r) => range(r, &table.shape.indexes[*i].columns),
            Access::Ranges(ranges) => self.ranges(table, ranges, words, &name),
            Access::Tids(tids) => {
                let ctid = if self.verbose { format!("{}.ctid", table.name) } else { "ctid".to_owned() };
                values_shown(tids, &ctid, words).unwrap_or_default()
            }
        }
    }

    fn ranges(&self, table: &TableSlot, ranges: &Ranges, words: &Words<'_>, name: &dyn Fn(&usize) -> String) -> String {
        let part = |p: &super::plan::RangePart| {
            let columns: &[usize] = p.index.map_or(&table.shape.key, |i| &table.shape.indexes[i].columns);
            let value = |(values, c): (&KeyValues, &usize)| values_shown(values, &name(c), words);
            let mut list: Vec<String> = p.columns.iter().zip(columns).filter_map(value).collect();
            if let Some(next) = columns.get(p.columns.len()) {
                let low = p.low.iter().map(|(e, with)| (e, if *with { ">=" } else { ">" }));
                let high = p.high.iter().map(|(e, with)| (e, if *with { "<=" } else { "<" }));
                list.extend(low.chain(high).map(|(e, op)| format!("({} {op} {})", name(next), words.expr(e))));
                let begins = |(op, e): &(Op, Bound)| format!("({} {} {})", name(next), op.name(), words.expr(e));
                list.extend(p.pattern.iter().map(begins));
            }
            let row = |end: &RowEnd, op: &str| {
                let names: Vec<String> =
                    columns.iter().skip(p.columns.len()).take(end.values.len()).map(name).collect();
                let op = if end.inclusive { format!("{op}=") } else { op.to_owned() };
                match (&names[..], &end.values[..]) {
                    ([name], [value]) => format!("({name} {op} {})", words.expr(value)),
                    _ => format!("(ROW({}) {op} ROW({}))", names.join(", "), words.list(&end.values)),
                }
            };
            list.extend(p.row_low.iter().map(|end| row(end, ">")).chain(p.row_high.iter().map(|end| row(end, "<"))));
            if list.len() > 1 { format!("({})", list.join(" AND ")) } else { list.concat() }
        };
        let parts: Vec<String> = ranges.parts.iter().map(part).collect();
        if parts.len() > 1 { format!("({})", parts.join(" OR ")) } else { parts.concat() }
    }
}

/// The condition that a column has one of these values; none: it may have any.
fn values_shown(values: &KeyValues, column: &str, words: &Words<'_>) -> Option<String> {
    Some(match values {
        KeyValues::One(e) => format!("({column} = {})", words.expr(e)),
        KeyValues::List(list) => format!("({column} = ANY (ARRAY[{}]))", words.list(list)),
        KeyValues::Array(e) => format!("({column} = ANY ({}))", words.expr(e)),
        KeyValues::Null => format!("({column} IS NULL)"),
        KeyValues::Each(_) => return None,
    })
}

/// A step above a node.
fn above(kind: &str, node: Shown, estimate: (f64, f64, f64, u32)) -> Shown {
    let actual = node.actual;
    let children = vec![("Outer", None, node)];
    Shown { kind: kind.to_owned(), head: kind.to_owned(), estimate, actual, children, ..Shown::default() }
}

/// A step that reads all of its input before it gives its first row.
fn costs_of_child(node: &mut Shown) {
    if let Some((_, _, child)) = node.children.first() {
        let cost = child.estimate.1 + child.estimate.2 * UNIT;
        (node.estimate.0, node.estimate.1) = (cost, cost + node.estimate.2 * UNIT);
        node.estimate.3 = child.estimate.3;
    }
}

fn shown_table(table: &TableSlot) -> String {
    if table.name == table.shape.name { table.name.clone() } else { format!("{} {}", table.shape.name, table.name) }
}
