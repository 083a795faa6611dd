//! Groups of a large table that is read in parts: each thread groups the rows of a part, and the session's thread joins the groups of the parts
//! in their order (PAR-2). So groups come in the order in which one thread would have found them, each with the row that it would have found
//! first.
//!
//! # Invariants
//! - PAR-6: what the parts' groups take counts to the statement's account and, from the end of a round on, to what the groups hold. Where
//!   the groups exceed their memory, no part is begun any more: the session's thread reads the rest, and puts rows aside as without parts.

use super::apart::{Apart, Done};
use super::group::Groups;
use super::nodes::Rows;
use super::row_batch::Batch;
use super::{BoxFuture, Cx};
use clearway_base::memory::Held;
use clearway_base::waits::now_ns;
use clearway_engine::table::parts::PartScan;
use clearway_planner::apart::may_share;
use clearway_planner::plan::{Grouping, Scan, Select};
use clearway_syntax::error::Result;

/// Bytes that the groups of a part have at most, about: the part's own.
const PART_BYTES: i64 = 1 << 20;

/// A part's groups, and how many rows the scan gave.
struct PartGroups<'a> {
    groups: Groups<'a>,
    rows: u64,
}

impl<'a> Groups<'a> {
    /// Takes the rows of a source in parts. None: it is not read in parts; else what is left of it.
    pub(super) async fn take_apart(
        &mut self,
        (source, held): (&Rows, &mut Held),
        hash_bytes: i64,
    ) -> Result<Option<Rows>> {
        let (select, grouping, cx) = (self.select, self.grouping, self.cx);
        if !may_share(select) {
            return Ok(None);
        }
        let sharing = cx.sharing();
        let Some((scan, workers)) = sharing.of_groups(cx.run.plan, select, grouping) else { return Ok(None) };
        let mut apart = Apart::new(scan, workers, cx);
        let began = now_ns();
        let (mut rows, mut partial) = (0, 0);
        let make = |part| -> BoxFuture<'_, Done<PartGroups<'a>>> {
            Box::pin(groups_of_part(part, (select, grouping, scan), cx))
        };
        let most = usize::try_from(hash_bytes / (2 * PART_BYTES)).unwrap_or(1);
        let rest = loop {
            cx.breathe().await?;
            let Some(done) = apart.round(most, &make, cx).await? else { break source.of_none() };
            for part in done {
                rows += part.made.rows;
                partial += part.made.groups.count() as u64;
                self.absorb(part.made.groups)?;
                part.failed.map_or(Ok(()), Err)?; // PAR-3
            }
            held.grow()?;
            if self.lacks_room(held, hash_bytes) {
                let rest = apart.rest(); // PAR-6
                break rest.map_or_else(|| source.of_none(), |range| source.of_rest(cx.walk_rest(scan, range)));
            }
        };
        if let Some(measured) = &cx.run.state.measured {
            measured.grouped((source.address(), std::ptr::from_ref(scan) as usize), began, rows, partial);
        }
        Ok(Some(rest))
    }
}

/// The groups of the rows of a part.
async fn groups_of_part<'a>(
    mut part: PartScan,
    (select, grouping, scan): (&'a Select, &'a Grouping, &'a Scan),
    cx: Cx<'a>,
) -> Done<PartGroups<'a>> {
    let mut made = PartGroups { groups: Groups::new(select, grouping, cx, 0), rows: 0 };
    let mut batch = Batch::default();
    let ended = loop {
        batch.clear();
        let more = cx.next_of_part(&mut part, (scan, &[]), usize::MAX, &mut batch).await;
        // EXE-17: the rows before an error are judged before it.
        if let Err(failed) = made.take(&batch) {
            break Err(failed);
        }
        match more {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(failed) => break Err(failed),
        }
    };
    Done::new(made, &part, ended)
}

impl PartGroups<'_> {
    /// Takes the rows that meet the condition of the level.
    fn take(&mut self, batch: &Batch) -> Result<()> {
        let (filter, cx) = (self.groups.select.filter.as_ref(), self.groups.cx);
        self.rows += batch.len() as u64;
        for at in 0..batch.len() {
            let row = batch.row(at);
            if cx.holds_now(filter, row)? {
                self.groups.take(row, None)?;
            } else {
                cx.note_removed(filter, 1);
            }
        }
        Ok(())
    }
}
