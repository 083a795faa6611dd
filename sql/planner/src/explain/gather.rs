//! Shows what several threads share as PostgreSQL shows it: a Gather above what each of them does.

use super::actual::Actual;
use super::render::{Shown, Value};
use super::words::Names;
use super::{Explainer, above};
use crate::plan::{Grouping, Node, Query, Scan, Select};
use clearway_base::{breath, stack};
use std::sync::Arc;

impl Explainer<'_> {
    /// A node, below a Gather if several threads share it.
    pub(super) fn node(&self, node: &Arc<Node>, levels: &[Names]) -> Shown {
        breath::step_on(16 * breath::ROW);
        let out = stack::deeper(|| self.node_alone(node, levels));
        let Node::Scan(scan) = &**node else { return out };
        // A scan may be shared for the keys that a join's other side had (GAT-3).
        let helped = self.noted(scan).map_or(0, |actual| actual.helpers);
        match self.sharing.of_scan(self.plan, scan).max(helped) {
            0 => out,
            workers => self.gather(parallel(out), scan, workers),
        }
    }

    /// The source of a level and its groups.
    pub(super) fn source(&self, s: &Select, levels: &[Names]) -> Shown {
        let shared = s.grouping.as_ref().and_then(|g| self.sharing.of_groups(self.plan, s, g));
        if shared.is_some() {
            parallel(stack::deeper(|| self.node_alone(&s.source, levels)))
        } else {
            self.node(&s.source, levels)
        }
    }

    /// The groups above their source.
    pub(super) fn groups(&self, node: Shown, (q, s): (&Query, &Select), g: &Grouping, levels: &[Names]) -> Shown {
        let Some((scan, workers)) = self.sharing.of_groups(self.plan, s, g) else {
            return self.grouped(node, (q, s), g, levels);
        };
        let mode = |mut out: Shown, mode: &str| {
            out.head = format!("{mode} {}", out.head);
            for (name, value) in &mut out.identity {
                if *name == "Partial Mode" {
                    *value = Value::Text(mode.to_owned());
                }
            }
            out
        };
        let of_parts = Grouping { having: None, ..g.clone() };
        let of_source = node.actual;
        let mut partial = mode(self.grouped(node, (q, s), &of_parts, levels), "Partial");
        let groups = self.noted(scan).map_or(0, |actual| actual.partial);
        partial.actual = of_source.map(|actual| Actual { rows: groups, ..actual });
        partial.details.retain(|detail| detail.0 != "HashAgg Batches");
        mode(self.grouped(self.gather(partial, scan, workers), (q, s), g, levels), "Finalize")
    }

    fn gather(&self, node: Shown, scan: &Scan, workers: u32) -> Shown {
        let estimate = node.estimate;
        let mut out = above("Gather", node, estimate);
        out.details.push(("Workers Planned", Value::Int(i64::from(workers))));
        if let Some(noted) = self.noted(scan) {
            out.details.push(("Workers Launched", Value::Int(i64::from(noted.helpers))));
        }
        out
    }

    /// What was noted at a scan itself, not at its node.
    fn noted(&self, scan: &Scan) -> Option<Actual> {
        self.actual(std::ptr::from_ref(scan) as usize)
    }
}

/// The scan of a table that several threads share.
fn parallel(mut node: Shown) -> Shown {
    node.head = format!("Parallel {}", node.head);
    node.parallel = true;
    node
}
