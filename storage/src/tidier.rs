//! The tidier, a background loop: packs leaves that are no longer written, merges nodes that are nearly empty, and strips settled tags.
//!
//! # Life of a round
//! Each second, the trees that have split or grown sparse since they were last looked at are visited in turn, until the
//! round's budget is spent; the next round goes on where this one stopped. A leaf is at rest when it has not changed
//! for [`QUIET_ROUNDS`] rounds. A tree whose leaves still change is visited again.
//!
//! # Invariants
//! - STO-2: a tree is tidied only under the dropper's turn, while it is live and is not being dismantled. So closing, which
//!   takes the turn, finds no change in progress either.
//!
//! # Not here
//! What is done to a tree (`btree`). The list is in memory: trees that were on it at a crash come back with their next
//! split.

use crate::btree::TidyBudget;
use crate::error::StorageError;
use crate::ids::{Lsn, TreeId};
use crate::rest::Pauses;
use crate::space::TreeState;
use crate::store::Store;
use clearway_base::sync::timeout;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Between two rounds.
const ROUND: Duration = Duration::from_secs(1);
/// Rounds without a change after which a leaf is at rest.
const QUIET_ROUNDS: usize = 3;
/// What a round may cost: at most 16 MiB of log, and some milliseconds to look.
const ROUND_BUDGET: TidyBudget = TidyBudget { quiet_before: Lsn::ZERO, rewrites: 1000, looks: 20_000 };

/// What the loop remembers from round to round.
#[derive(Default)]
struct Memory {
    /// Ends of the log at the last rounds, the oldest first.
    marks: VecDeque<Lsn>,
    /// Where a tree's next visit begins.
    next: BTreeMap<TreeId, Vec<u8>>,
}

impl Store {
    /// The loop, until the store is closed or poisoned.
    pub(crate) async fn run_tidier(self: Arc<Self>) {
        let mut memory = Memory::default();
        let rest = self.rest().clone();
        loop {
            if rest.is_resting() {
                in_wait(WaitEvent::PurgeMain, Object::NONE, rest.ended(Pauses::Tidier)).await;
            }
            let ended = self.tidy_bell.wait_until(|| self.ended());
            let waited = timeout(ROUND, ended);
            if in_wait(WaitEvent::PurgeMain, Object::NONE, waited).await.is_ok() || self.ended() {
                return;
            }
            self.tidy_round(&mut memory).await;
        }
    }

    async fn tidy_round(&self, memory: &mut Memory) {
        memory.marks.push_back(self.wal.end_lsn());
        let quiet_before = match memory.marks.len() > QUIET_ROUNDS {
            true => memory.marks.pop_front().unwrap_or(Lsn::ZERO),
            false => Lsn::ZERO,
        };
        let mut budget = TidyBudget { quiet_before, ..ROUND_BUDGET };
        for tree in self.pool().take_untidy() {
            // STO-2
            let _turn = self.dropping.take().await;
            if self.ended() {
                return;
            }
            let from = memory.next.remove(&tree).unwrap_or_default();
            // What is wrong with a tree is told to the statements that use it, what is wrong with the log to all.
            if let Ok(Some(next)) = self.tidy_tree(tree, &mut budget, from).await {
                memory.next.insert(tree, next);
            }
        }
    }

    async fn tidy_tree(
        &self,
        id: TreeId,
        budget: &mut TidyBudget,
        from: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        if self.space.tree(id).is_none_or(|entry| entry.state != TreeState::Live) {
            return Ok(None);
        }
        if budget.rewrites == 0 || budget.looks == 0 {
            self.pool().note_untidy(id);
            return Ok(Some(from));
        }
        let whole = from.is_empty();
        let tidied = self.tree(id).tidy_within(budget, from).await?;
        if tidied.unquiet || tidied.next.is_some() || !whole {
            self.pool().note_untidy(id);
        }
        Ok(tidied.next)
    }
}
