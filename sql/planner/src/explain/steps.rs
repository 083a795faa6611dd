//! EXPLAIN of the steps of a query level above its source: groups, window functions, the sort, DISTINCT; and what was measured of them.

use super::actual::{Actual, Method, Step, address};
use super::render::{Shown, Value};
use super::words::{Names, Words};
use super::{Explainer, UNIT, WIDTH, above, costs_of_child, text, width_of};
use crate::differing::Columns;
use crate::plan::{Body, Grouping, Query, Scan, Select, SortKey};
use clearway_context::steering::Way;
use clearway_values::expr::Bound;
use clearway_values::types::{SqlType, facts};

impl Explainer<'_> {
    /// What was measured of a step of a query level. Pages and files are those of the whole query: a step's are not counted by itself.
    pub(super) fn step_of(&self, at: usize, step: Step, q: &Query) -> Option<Actual> {
        let whole = self.actual(address(q))?;
        let step = self.step(at, step)?;
        Some(Actual { usage: whole.usage, ..step })
    }

    /// Adds how many rows a condition of a node has let not through, of each loop.
    pub(super) fn add_removed(&self, node: &mut Shown, name: &'static str, condition: Option<&Bound>) {
        let Some(condition) = condition else { return };
        let Some(measured) = self.step(address(condition), Step::Filter) else { return };
        let loops = node.actual.map_or(1, |actual| actual.loops.max(1));
        node.details.push((name, Value::Float(measured.removed as f64 / loops as f64, 0)));
    }

    /// Adds how many rows of a scan were turned away for the keys of a join's other side (GAT-3), of each loop: in a line of its own, as PostgreSQL has none.
    pub(super) fn add_unmet(&self, node: &mut Shown, scan: &Scan) {
        let removed = self.step(address(scan), Step::Keys).map_or(0, |measured| measured.removed);
        if removed > 0 {
            let loops = node.actual.map_or(1, |actual| actual.loops.max(1));
            node.details.push(("Rows Removed by Join Keys", Value::Float(removed as f64 / loops as f64, 0)));
        }
    }

    /// The groups of a level above its source.
    pub(super) fn grouped(&self, node: Shown, (q, s): (&Query, &Select), g: &Grouping, levels: &[Names]) -> Shown {
        let plain = g.is_one_group();
        let from = self.joins().node(&s.source);
        let rows = if plain { 1.0 } else { self.joins().groups(&Columns::of_node(&s.source), g, from.rows) };
        let (head, strategy) = match (g.is_in_order, &g.sets) {
            _ if plain => ("Aggregate", "Plain"),
            (true, _) => ("GroupAggregate", "Sorted"),
            (false, Some(sets)) if sets.len() > 1 => ("MixedAggregate", "Mixed"),
            (false, _) => ("HashAggregate", "Hashed"),
        };
        let mut out = above(head, node, (0.0, 0.0, rows, 0));
        costs_of_child(&mut out);
        if head.starts_with("Hash") || head.starts_with("Mixed") {
            self.add_disable_cost(&mut out, Way::HashAgg);
        }
        out.kind = "Aggregate".to_owned();
        out.identity = vec![("Strategy", text(strategy)), ("Partial Mode", text("Simple"))];
        let words = self.words(levels);
        let keys = |places: &[usize]| Value::List(places.iter().map(|at| words.expr(&g.keys[*at])).collect());
        match &g.sets {
            _ if plain => {}
            None => out.details.push(("Group Key", Value::List(g.keys.iter().map(|e| words.expr(e)).collect()))),
            Some(sets) => out.details.extend(sets.iter().map(|set| match set.is_empty() {
                true => ("Group Key", text("()")),
                false => ("Hash Key", keys(set)),
            })),
        }
        out.actual = self.step_of(address(s), Step::Groups, q);
        out.details.extend(g.having.as_ref().map(|having| ("Filter", text(words.expr(having)))));
        out.details.extend(out.actual.and_then(|actual| actual.method).map(told));
        self.add_removed(&mut out, "Rows Removed by Filter", g.having.as_ref());
        out
    }

    /// Adds what a step costs that is not wanted.
    pub(super) fn add_disable_cost(&self, node: &mut Shown, way: Way) {
        let disable_cost = self.figures.disable_cost(way) * UNIT;
        (node.estimate.0, node.estimate.1) = (node.estimate.0 + disable_cost, node.estimate.1 + disable_cost);
    }

    /// The bytes of a row of a query.
    pub(super) fn width_of_query(&self, q: &Query) -> u32 {
        let of_type = |ty: SqlType| facts(ty.oid).map_or(WIDTH, |f| u32::try_from(f.len).unwrap_or(WIDTH));
        let Body::Select(s) = &q.body else { return width_of(q.columns.iter().map(|c| c.ty)) };
        let columns = Columns::of_node(&s.source);
        let targets = s.targets.iter().take(q.columns.len());
        targets.map(|e| self.joins().bytes(&columns, e).map_or_else(|| of_type(e.ty), |bytes| bytes as u32)).sum()
    }

    /// How the different rows of a query were found.
    pub(super) fn distinct_method(&self, q: &Query) -> Option<(&'static str, Value)> {
        self.step(address(q), Step::Groups)?.method.map(told)
    }

    /// What VERBOSE shows of a level's targets: columns without their table's name, if there is one table only.
    pub(super) fn output(&self, targets: &[Bound], levels: &[Names]) -> Vec<String> {
        let words = Words { qualified: self.has_several_tables(levels), ..self.words(levels) };
        targets.iter().map(|e| words.expr(e)).collect()
    }

    /// The window functions of a level, each stage above the sort that it wants.
    pub(super) fn windows(&self, mut node: Shown, (q, s): (&Query, &Select), levels: &[Names]) -> Shown {
        for (at, stage) in s.windows.iter().enumerate() {
            let partition = stage.partition.iter();
            let partition = partition.map(|e| SortKey { expr: e.clone(), descending: false, nulls_first: false });
            let keys: Vec<SortKey> = partition.chain(stage.order.iter().cloned()).collect();
            if !keys.is_empty() {
                node = self.sorted(node, (&keys, address(s), at), q, levels);
            }
            let estimate = node.estimate;
            node = above("WindowAgg", node, estimate);
            node.actual = self.step_of(address(s), Step::Window(at), q);
        }
        node
    }

    /// A sort: its keys, where it is measured, and its number there.
    pub(super) fn sorted(
        &self,
        node: Shown,
        (sort, at, number): (&[SortKey], usize, usize),
        q: &Query,
        levels: &[Names],
    ) -> Shown {
        let is_set = matches!(q.body, Body::SetOp { .. });
        let words =
            Words { qualified: is_set || self.verbose || self.has_several_tables(levels), ..self.words(levels) };
        let key = |k: &SortKey| {
            let nulls = match (k.descending, k.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            format!("{}{}{nulls}", words.sort_key(&k.expr), if k.descending { " DESC" } else { "" })
        };
        let (_, total, rows, width) = node.estimate;
        let cost = total + (self.figures.sorting(rows) + self.figures.disable_cost(Way::Sort)) * UNIT;
        let mut out = above("Sort", node, (cost, cost, rows, width));
        out.details.push(("Sort Key", Value::List(sort.iter().map(key).collect())));
        out.actual = self.step_of(at, Step::Sort(number), q);
        out.details.extend(out.actual.and_then(|actual| actual.method).map(told));
        out
    }
}

/// Kilobytes, as PostgreSQL rounds them.
fn kilobytes(bytes: u64) -> i64 {
    bytes.div_ceil(1024).cast_signed()
}

/// How a step did its work: as one line of text, and as properties.
pub(super) fn told(method: Method) -> (&'static str, Value) {
    let int = |n: u64| Value::Int(n.cast_signed());
    match method {
        Method::Sort { name, bytes, on_disk } => {
            let space = if on_disk { "Disk" } else { "Memory" };
            let line = format!("Sort Method: {name}  {space}: {}kB", kilobytes(bytes));
            let parts = vec![
                ("Sort Method", text(name)),
                ("Sort Space Used", Value::Int(kilobytes(bytes))),
                ("Sort Space Type", text(space)),
            ];
            ("Sort Method", Value::Line(line, parts))
        }
        Method::Hash { buckets, batches, bytes } => {
            let line = format!("Buckets: {buckets}  Batches: {batches}  Memory Usage: {}kB", kilobytes(bytes));
            let parts = vec![
                ("Hash Buckets", int(buckets)),
                ("Original Hash Buckets", int(buckets)),
                ("Hash Batches", int(batches)),
                ("Original Hash Batches", Value::Int(1)),
                ("Peak Memory Usage", Value::Int(kilobytes(bytes))),
            ];
            ("Hash Buckets", Value::Line(line, parts))
        }
        Method::Groups { batches, bytes, disk_bytes } => {
            let mut line = format!("Batches: {batches}  Memory Usage: {}kB", kilobytes(bytes));
            if disk_bytes > 0 {
                line.push_str(&format!("  Disk Usage: {}kB", kilobytes(disk_bytes)));
            }
            let parts = vec![
                ("HashAgg Batches", int(batches)),
                ("Peak Memory Usage", Value::Int(kilobytes(bytes))),
                ("Disk Usage", Value::Int(kilobytes(disk_bytes))),
            ];
            ("HashAgg Batches", Value::Line(line, parts))
        }
    }
}
