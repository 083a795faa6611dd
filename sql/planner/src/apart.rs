//! Which scans and groups of a plan several threads may share, and how many threads are planned for them.
//!
//! # Invariants
//! - APA-1: what threads beside the session's evaluate asks nothing of the session's state: no subquery, no function of the session, no volatile
//!   function. So it has the same value on every thread.
//! - APA-2: a statement that changes rows, locks them, or calls a function that may, is carried out by one thread.

use super::cost::Figures;
use super::differing::Columns;
use super::facts::is_random;
use super::joins::Joins;
use super::plan::{Access, Grouping, Node, Plan, Scan, Select};
use clearway_context::settings::ParallelLimits;
use clearway_engine::table::parts::PART_LEAVES;
use clearway_engine::table::statistics::Statistics;
use clearway_storage::btree::Direction;
use clearway_values::expr::Bound;
use clearway_values::expr::accumulate::Accumulator;
use clearway_values::expr::aggregate::AggregateCall;

/// Bytes of a leaf.
const LEAF_BYTES: u64 = 8_192;

/// Parts for each thread of a table that is small, about.
const PARTS_EACH: u64 = 4;
/// So many rows a group has at least, on the average, where several threads group them.
const ROWS_EACH: f64 = 10.0;

/// How threads share a plan's work.
#[derive(Clone, Copy)]
pub struct Sharing<'a> {
    /// The settings.
    pub limits: ParallelLimits,
    /// What is known of tables.
    pub statistics: &'a Statistics,
}

/// Whether an expression has the same value on every thread (APA-1).
fn is_same_anywhere(e: &Bound) -> bool {
    !e.may_wait() && !is_random(e)
}

/// Whether a whole table is read whose rows may be judged on any thread.
fn is_shareable(scan: &Scan) -> bool {
    let whole = matches!(scan.access, Access::Full) && scan.jump.is_none() && scan.entries.is_none();
    whole
        && scan.wanted.is_some()
        && scan.order != Some(Direction::Backward)
        && scan.filter.as_ref().is_none_or(is_same_anywhere)
}

/// Whether a level reads a whole table and nothing else: a look that costs little.
pub fn may_share(select: &Select) -> bool {
    matches!(&*select.source, Node::Scan(scan) if matches!(scan.access, Access::Full))
}

impl Sharing<'_> {
    /// The threads beside the session's that are planned for a table of this size: as PostgreSQL's compute_parallel_worker, one, and one more for
    /// each three times of `min_parallel_table_scan_size`.
    fn workers(&self, scan: &Scan) -> u32 {
        let Some(known) = self.statistics.of(scan.table.shape.oid) else { return 0 };
        let bytes = known.leaves.saturating_mul(LEAF_BYTES);
        let mut step = self.limits.bytes_min.max(LEAF_BYTES);
        if self.limits.workers == 0 || bytes < self.limits.bytes_min {
            return 0;
        }
        let mut workers = 1;
        while workers < self.limits.workers && bytes / 3 >= step {
            workers += 1;
            step = step.saturating_mul(3);
        }
        workers
    }

    /// Leaves of a part: of a small table as many as leave several parts for each thread.
    pub fn part_leaves(&self, scan: &Scan, workers: u32) -> usize {
        let leaves = self.statistics.of(scan.table.shape.oid).map_or(0, |known| known.leaves);
        let share = leaves / (u64::from(workers) + 1) / PARTS_EACH;
        usize::try_from(share).unwrap_or(PART_LEAVES).clamp(1, PART_LEAVES)
    }

    /// The threads planned for the rows of a scan; 0: the session's thread reads them alone. A scan that keeps all rows gains nothing: to hand a row
    /// over costs as much as to read it.
    pub fn of_scan(&self, plan: &Plan, scan: &Scan) -> u32 {
        let judges = scan.filter.is_some() || scan.gate.as_ref().is_some_and(|gate| gate.has_keys());
        let shares = plan.read_only && judges && is_shareable(scan); // APA-2
        if shares { self.workers(scan) } else { 0 }
    }

    /// The scan below groups whose rows several threads group, each some, and the threads planned for that.
    pub fn of_groups<'s>(&self, plan: &Plan, select: &'s Select, grouping: &Grouping) -> Option<(&'s Scan, u32)> {
        let Node::Scan(scan) = &*select.source else { return None };
        let shares = plan.read_only && select.locks.is_empty() && is_shareable(scan); // APA-2
        // Groups that come in order stream through one thread.
        if !shares || grouping.is_in_order || !grouping.calls.iter().all(Accumulator::joins) {
            return None;
        }
        let exprs = grouping.keys.iter().chain(grouping.calls.iter().flat_map(AggregateCall::exprs));
        if !exprs.chain(&select.filter).all(is_same_anywhere) {
            return None;
        }
        Some((scan, self.workers(scan)))
            .filter(|(_, workers)| *workers > 0 && (self.limits.forced || self.are_few_groups(select, grouping, scan)))
    }

    /// Whether there are far fewer groups than rows. The session's thread joins the groups of the parts, and a group costs it as much as a row.
    fn are_few_groups(&self, select: &Select, grouping: &Grouping, scan: &Scan) -> bool {
        let figures = Figures::of(self.statistics);
        let rows = figures.rows(&scan.table);
        let groups = Joins::new(figures, &[]).groups(&Columns::of_node(&select.source), grouping, rows);
        groups * ROWS_EACH <= rows
    }
}

impl<'a> Sharing<'a> {
    /// By the settings of a session.
    pub fn new(limits: ParallelLimits, figures: Figures<'a>) -> Self {
        Self { limits, statistics: figures.statistics }
    }
}
