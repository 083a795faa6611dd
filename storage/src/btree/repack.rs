//! Background work on leaves: strips settled tags, and moves rows to the left until a leaf is empty and can be freed.
//!
//! # Life of a run
//! A run is `n` neighbouring leaves under one parent whose rows fit into `n - 1` leaves. From the left, each leaf takes rows of its right
//! neighbour until it is well filled; the last leaf ends up empty and is freed. Each step is one record and leaves a whole tree
//! (`tidy`), so a run may stop after any step. Pairs that fit into one leaf come first, then the shortest runs. In the end no sixteen
//! neighbours fit into fifteen, so leaves are at least 15/16 of [`PACKED_BYTES_MAX`] full on average, however they were
//! filled; after inserts in random order they are 69 % full, B-trees' usual figure (Yao 1978).
//!
//! Leaves that have changed lately are not packed, except pairs that are nearly empty: more rows are likely to be inserted,
//! and a packed leaf would split again.
//!
//! # Not here
//! The step itself and its latches (`tidy`). Reading leaves: leaves that are not in memory are left alone.

use super::descend::{Descent, Target};
use super::image::Rows;
use super::node::{GHOST, Node, OWN, SHARED};
use super::tidy::{Joined, MERGED_BYTES_MAX, Tidied, TidyBudget};
use super::tree::Tree;
use crate::buffer::page::{PAGE_BYTES, kind};
use crate::error::StorageError;
use crate::ids::PageId;
use clearway_base::sync::yield_now;

/// Fill limit of leaves at rest; the spare 1/32 holds the tags of about thirty rows while they are being changed.
pub(super) const PACKED_BYTES_MAX: usize = PAGE_BYTES * 31 / 32;
/// Leaves that one run may rewrite to free one.
const RUN_MAX: usize = 16;

/// What a leaf takes of its page, as seen without a latch.
#[derive(Clone, Copy)]
struct LeafState {
    used: usize,
    /// What it would take anywhere: header and fences.
    fixed: usize,
    quiet: bool,
    dirty: bool,
    tagged: bool,
}

/// What a leaf of which nothing has settled costs of the looks: each of its tags was looked up. Else a transaction that changes millions of
/// rows would keep the loop busy all the time.
const VAIN_STRIP_LOOKS: usize = 32;

/// Some of a parent's children to be joined step by step, from the left.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    first: usize,
    leaves: usize,
    /// So many are left.
    into: usize,
    bytes_max: usize,
}

/// The children of one parent.
struct Family {
    rows: Rows,
    next: Option<Vec<u8>>,
}

impl Tree {
    /// Tidies the leaves below the parent that owns `key`; gives the key where the next parent begins.
    pub(super) async fn tidy_family(
        &self,
        root: PageId,
        key: &[u8],
        budget: &mut TidyBudget,
        tidied: &mut Tidied,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(family) = self.family(root, key)? else {
            return Ok(self.next_node(root, key, 1)?.0);
        };
        let mut looks = Vec::with_capacity(family.rows.len());
        for row in family.rows.iter() {
            let Ok(child) = row.value.try_into().map(u32::from_le_bytes) else { break };
            let mut look = self.leaf_state(PageId(child), budget);
            if look.is_some_and(|look| look.tagged && (look.dirty || look.quiet)) && budget.rewrites > 0 {
                if self.strip_leaf(root, row.key).await? {
                    tidied.stripped += 1;
                    budget.rewrites -= 1;
                    // Stripped just now by this run, not changed by another task.
                    let quiet = look.is_some_and(|look| look.quiet);
                    look = self.leaf_state(PageId(child), budget).map(|look| LeafState { quiet, ..look });
                } else {
                    budget.looks = budget.looks.saturating_sub(VAIN_STRIP_LOOKS);
                }
                yield_now().await;
            }
            tidied.unquiet |= look.is_some_and(|look| !look.quiet || look.tagged);
            looks.push(look);
        }
        budget.looks = budget.looks.saturating_sub(looks.len());
        for run in plan(&looks) {
            if budget.rewrites < run.leaves {
                tidied.unquiet = true;
                break;
            }
            self.carry_out(root, &run, &family, budget, tidied).await?;
        }
        yield_now().await;
        Ok(family.next)
    }

    async fn carry_out(
        &self,
        root: PageId,
        run: &Run,
        family: &Family,
        budget: &mut TidyBudget,
        tidied: &mut Tidied,
    ) -> Result<(), StorageError> {
        // What has been packed may make further runs.
        tidied.unquiet = true;
        let mut at = family.rows.get(run.first).key.to_vec();
        for _ in 1..run.leaves {
            match self.join_at(root, &at, 0, run.bytes_max, run.into > 1).await? {
                Joined::Merged => {
                    tidied.merged += 1;
                    budget.rewrites = budget.rewrites.saturating_sub(1);
                    if run.into > 1 {
                        return Ok(());
                    }
                }
                Joined::Moved(separator) => {
                    tidied.moved += 1;
                    budget.rewrites = budget.rewrites.saturating_sub(1);
                    at = separator;
                }
                Joined::Full(next) => at = next,
                Joined::Left => return Ok(()),
            }
            yield_now().await;
        }
        Ok(())
    }

    /// The children of the parent of `key`; none if it is not in memory.
    fn family(&self, root: PageId, key: &[u8]) -> Result<Option<Family>, StorageError> {
        loop {
            let Descent::At(parent, _) = self.descend(root, Target::Key(key), 1)? else {
                return Ok(None);
            };
            let node = Node(parent.page);
            let family = Family { rows: Rows::of(node, 0, node.count()), next: node.high() };
            if parent.validate() {
                return Ok(Some(family));
            }
        }
    }

    fn leaf_state(&self, page: PageId, budget: &TidyBudget) -> Option<LeafState> {
        let leaf = self.pool().read(page)?;
        let node = Node(leaf.page);
        let is_ours = node.0.kind() == kind::NODE && node.0.tree() == self.id() && node.is_leaf();
        let look = LeafState {
            used: node.used_bytes(),
            fixed: node.fixed_bytes(),
            quiet: node.0.lsn() < budget.quiet_before,
            dirty: self.pool().is_dirty(&leaf),
            tagged: (0..node.count()).any(|index| node.slot(index) & (OWN | SHARED | GHOST) != 0),
        };
        (leaf.validate() && is_ours).then_some(look)
    }
}

/// Which neighbours to join: first those that fit into one, then the shortest runs that free a leaf.
fn plan(looks: &[Option<LeafState>]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut taken = vec![false; looks.len()];
    let mut first = 0;
    while first < looks.len() {
        let run = (first + 2..=looks.len()).map_while(|end| run_of(looks, first, end - first, 1)).last();
        if let Some(run) = &run {
            taken[first..first + run.leaves].fill(true);
        }
        first += run.as_ref().map_or(1, |run| run.leaves);
        runs.extend(run);
    }
    for leaves in 3..=RUN_MAX.min(looks.len()) {
        for first in 0..=looks.len() - leaves {
            if taken[first..first + leaves].contains(&true) {
                continue;
            }
            if let Some(run) = run_of(looks, first, leaves, leaves - 1) {
                taken[first..first + leaves].fill(true);
                runs.push(run);
            }
        }
    }
    runs
}

/// The run of these leaves into so many, if they fit.
fn run_of(looks: &[Option<LeafState>], first: usize, leaves: usize, into: usize) -> Option<Run> {
    let run = &looks[first..first + leaves];
    let (mut rows, mut fixed, mut quiet) = (0, 0, true);
    for look in run {
        let look = (*look)?;
        rows += look.used.saturating_sub(look.fixed);
        fixed = fixed.max(look.fixed);
        quiet &= look.quiet;
    }
    let bytes_max = match (quiet, into) {
        (true, _) => PACKED_BYTES_MAX,
        (false, 1) => MERGED_BYTES_MAX,
        (false, _) => return None,
    };
    (rows + into * fixed <= into * bytes_max).then_some(Run { first, leaves, into, bytes_max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(percent: usize, quiet: bool) -> Option<LeafState> {
        let used = 100 + (PAGE_BYTES - 100) * percent / 100;
        Some(LeafState { used, fixed: 100, quiet, dirty: false, tagged: false })
    }

    #[test]
    fn runs_are_as_short_as_they_can_be_and_never_without_gain() {
        let of = |fills: &[usize], quiet| {
            let looks: Vec<_> = fills.iter().map(|fill| look(*fill, quiet)).collect();
            plan(&looks).iter().map(|run| (run.first, run.leaves)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[40, 40, 90, 20, 60], true), [(0, 2), (3, 2)]);
        assert_eq!(of(&[10, 10, 10, 10, 90], true), [(0, 4)]);
        assert_eq!(of(&[60, 60, 60, 95], true), [(0, 3)]);
        assert_eq!(of(&[69; 8], true), [(0, 4), (4, 4)]);
        assert_eq!(of(&[92; 20], true), []);
        // Leaves that change: only what is nearly empty.
        assert_eq!(of(&[60, 60, 60, 30, 30], false), [(3, 2)]);
        // What is not in memory parts runs.
        assert_eq!(plan(&[look(10, true), None, look(10, true)]), []);
    }
}
