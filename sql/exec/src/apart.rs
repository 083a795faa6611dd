//! Reads a large table in parts: the session's thread and helpers, where processors are idle, take the parts from one list. Each makes of
//! a part what is to be made of its rows; the session's thread takes the results in the order of the parts.
//!
//! # Life of a round
//! Parts are cut -> idle processors are asked for: if there are none, the session's thread does one part alone, and waits as any node does ->
//! else all threads take parts until there are none -> the helpers have ended -> the results are taken in the order of the parts. A round lasts
//! about a slice, so that between two rounds the statement gives way as any long computation.
//!
//! # Invariants
//! - PAR-1: all parts are read at the statement's view, and each row is in exactly one (PTS-1).
//! - PAR-2: results are taken in the order of the parts. So rows come in the order of the key, and an answer does not depend on which
//!   thread did which part.
//! - PAR-3: of several errors the first part's is given, behind the rows before it (EXE-17); parts behind one that failed are not begun.
//! - PAR-4: nothing of a round outlives it (BRE-7): a statement that ends, for whatever reason, has no helper left.
//! - PAR-5: helpers do not touch the engine's session (EXE-1). What they have read is entered there after the round.

use super::row_batch::Batch;
use super::scan::TableRows;
use super::{BoxFuture, Cx};
use clearway_base::breath::{self, Hand};
use clearway_base::sync::{Mutex, block_on};
use clearway_base::usage::{self, Usage};
use clearway_context::errors::from_engine;
use clearway_engine::table::parts::{PartRead, PartScan, Parts};
use clearway_planner::apart::Sharing;
use clearway_planner::cost::Figures;
use clearway_planner::plan::Scan;
use clearway_storage::btree::KeyRange;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::forget_patterns;
use clearway_values::types::{Datum, user};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Parts of the first round with helpers, and of a round at most.
const ROUND_FIRST: usize = 4;
const ROUND_MAX: usize = 16;
/// Rows that wait for their consumer have at most about so many values; a round that would give more has fewer parts.
const VALUES_MAX: usize = 1 << 18;

/// A table that is read in parts.
pub(super) struct Apart {
    parts: Parts,
    workers: u32,
    forced: bool,
    round: usize,
    seeks: bool,
    /// Where what it takes is noted.
    address: usize,
}

/// What became of a part: what was made of it, what was read, and the error that ended it.
pub(super) struct Done<T> {
    /// What was made of the rows before the error.
    pub made: T,
    read: PartRead,
    /// The error.
    pub failed: Option<SqlError>,
}

impl<T> Done<T> {
    /// A part that was read.
    pub fn new(made: T, part: &PartScan, ended: Result<()>) -> Self {
        Self { made, read: part.read, failed: ended.err() }
    }
}

/// Makes something of a part.
pub(super) type Make<'m, T> = &'m (dyn Fn(PartScan) -> BoxFuture<'m, Done<T>> + Sync);

impl Apart {
    /// A whole table for so many threads beside the session's.
    pub fn new(scan: &Scan, workers: u32, cx: Cx<'_>) -> Self {
        let sharing = cx.sharing();
        let leaves = sharing.part_leaves(scan, workers);
        let parts = Parts::new(&scan.table.shape, KeyRange::all(), cx.run.view, leaves);
        let (address, forced) = (scan.measured_at().0, sharing.limits.forced);
        Self { parts, workers, forced, round: ROUND_FIRST, seeks: scan.filter.is_some(), address }
    }

    /// The first part, for the session's thread; none: there is none.
    async fn first(&mut self, cx: Cx<'_>) -> Result<Option<PartScan>> {
        let all = cx.run.core.db.transactions();
        self.parts.ready(all, 1).await.map_err(from_engine)?;
        Ok(self.parts.take(1).pop().map(|part| self.parts.walk(all, part)))
    }

    /// Enters what was read in the session.
    fn enter(&mut self, read: PartRead, cx: Cx<'_>) {
        cx.run.core.engine.take().read_apart(&mut self.parts, read, self.seeks); // PAR-5
    }

    /// What no round has taken; none: nothing.
    pub fn rest(&mut self) -> Option<KeyRange> {
        self.parts.rest()
    }

    /// A round of at most so many parts: what was made of them, up to the first that failed (PAR-3). None: there are no more.
    pub async fn round<T: Send>(&mut self, most: usize, make: Make<'_, T>, cx: Cx<'_>) -> Result<Option<Vec<Done<T>>>> {
        let all = cx.run.core.db.transactions();
        let there = self.parts.ready(all, self.round.min(most.max(1))).await.map_err(from_engine)?;
        if there == 0 {
            return Ok(None);
        }
        let team = if there > 1 { breath::team(self.workers as usize, self.forced) } else { None };
        let parts = self.parts.take(if team.is_some() { there } else { 1 });
        let walks = parts.into_iter().map(|part| self.parts.walk(all, part));
        let done = match team {
            None => {
                let mut done = Vec::new();
                for walk in walks {
                    done.push(make(walk).await);
                }
                done
            }
            Some(team) => {
                self.round = (2 * self.round).min(ROUND_MAX);
                let (done, helpers) = together(team, walks.collect(), make, cx);
                if let Some(measured) = &cx.run.state.measured {
                    measured.helped(self.address, helpers);
                }
                done
            }
        };
        let mut read = PartRead::default();
        done.iter().for_each(|part| read.add(part.read));
        self.enter(read, cx);
        Ok(Some(done))
    }
}

/// A part's place in a round: what is still to be read, and what was made of it.
struct Place<T> {
    walk: Option<PartScan>,
    done: Option<Done<T>>,
}

/// A round with helpers; how many there were.
fn together<T: Send>(team: breath::Team, walks: Vec<PartScan>, make: Make<'_, T>, cx: Cx<'_>) -> (Vec<Done<T>>, u32) {
    let place = |walk| Mutex::new("sql/exec/apart", Place { walk: Some(walk), done: None });
    let places: Vec<Mutex<Place<T>>> = walks.into_iter().map(place).collect();
    let (next, first_failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let take_parts = |hand: &Hand<'_>| loop {
        let at = next.fetch_add(1, Relaxed);
        let Some(place) = places.get(at).filter(|_| at < first_failed.load(Relaxed)) else { return };
        let Some(walk) = place.lock().walk.take() else { return };
        let done = block_on(make(walk));
        if done.failed.is_some() {
            first_failed.fetch_min(at, Relaxed); // PAR-3
        }
        place.lock().done = Some(done);
        if !hand.goes_on() {
            return;
        }
    };
    let path = user::definition_path();
    let used = Mutex::new("sql/exec/helpers_usage", Usage::default());
    let helped = team.run(&|hand: &Hand<'_>| {
        if !hand.helps() {
            return take_parts(hand);
        }
        let before = usage::of_thread();
        // Types that users define, and the path of a function's body, are found through the thread.
        let _types = user::enter(cx.run.core.types.clone());
        match path.clone() {
            Some(path) => user::on_path(path, || take_parts(hand)),
            None => take_parts(hand),
        }
        forget_patterns(); // PAR-6
        *used.lock() += usage::of_thread() - before;
    });
    usage::add(used.into_inner()); // USG-2
    // PAR-2
    let done = places.into_iter().map_while(|place| place.into_inner().done).collect();
    (done, helped.helpers)
}

/// The rows of a scan that is read in parts.
pub struct ApartRows {
    apart: Apart,
    /// The first part, which the session's thread reads as far as rows are asked for: often a LIMIT, or EXISTS, wants no more.
    first: Option<PartScan>,
    begun: bool,
    /// Rows that are still to be taken, and how many of the first have been.
    ready: VecDeque<Done<Batch>>,
    taken: usize,
    /// Values that a part gave, at most.
    values: usize,
    read: u64,
    kept: u64,
}

/// What a consumer gets.
enum Given {
    /// Some rows.
    Rows,
    /// There are no more.
    End,
    /// The session's thread reads this range alone.
    Alone(KeyRange),
}

impl Cx<'_> {
    /// How threads share the plan's work.
    pub(super) fn sharing(&self) -> Sharing<'_> {
        let limits = self.run.core.settings.lock().parallel;
        Sharing::new(limits, Figures::of(self.run.core.db.statistics()))
    }

    /// A scan that is read in parts; none: it is not.
    pub(super) fn open_apart(self, scan: &Scan) -> Option<TableRows> {
        let judges = scan.filter.is_some() || scan.gate.as_ref().is_some_and(|gate| gate.has_keys());
        if !judges || !self.run.plan.read_only {
            return None;
        }
        let workers = self.sharing().of_scan(self.run.plan, scan);
        (workers > 0).then(|| {
            let apart = Apart::new(scan, workers, self);
            let (first, ready) = (None, VecDeque::new());
            let rows = ApartRows { apart, first, begun: false, ready, taken: 0, values: 0, read: 0, kept: 0 };
            TableRows::Apart(Box::new(rows))
        })
    }

    /// Appends some rows of a part that meet the scan's filter; false: there are no more. There are less than `enough` yet.
    pub(super) async fn next_of_part(
        self,
        part: &mut PartScan,
        (scan, prefix): (&Scan, &[Datum]),
        enough: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        let seen = self.walked_now((&mut part.walk, None), (scan, scan.filter.as_ref()), prefix, enough, out)?;
        self.breathe_for(seen).await?;
        Ok(seen > 0 || part.fill(self.run.core.db.transactions()).await.map_err(from_engine)?)
    }

    /// The rows of a part that meet the scan's filter.
    async fn rows_of_part(self, mut part: PartScan, scan: &Scan, prefix: &[Datum]) -> Done<Batch> {
        let mut rows = Batch::default();
        let ended = loop {
            match self.next_of_part(&mut part, (scan, prefix), usize::MAX, &mut rows).await {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(failed) => break Err(failed),
            }
        };
        Done::new(rows, &part, ended)
    }

    /// Appends rows of a scan that is read in parts, at least one unless there are none; false: there are no more.
    pub(super) async fn read_apart(
        self,
        rows: &mut TableRows,
        scan: &Scan,
        prefix: &[Datum],
        enough: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        let TableRows::Apart(apart) = rows else { return Ok(true) };
        match apart.give(self, scan, prefix, (enough, out)).await? {
            Given::Rows => Ok(true),
            Given::End => Ok(false),
            Given::Alone(range) => {
                *rows = self.walk_rest(scan, range);
                Ok(true)
            }
        }
    }

    /// A walk by the session's thread over what is left of a table.
    pub(super) fn walk_rest(self, scan: &Scan, range: KeyRange) -> TableRows {
        let mut rows = self.walk(scan, range);
        if let TableRows::Table(walk) = &mut rows {
            walk.goes_on();
            if scan.filter.is_some() {
                walk.seeks();
            }
        }
        rows
    }
}

impl ApartRows {
    async fn give(
        &mut self,
        cx: Cx<'_>,
        scan: &Scan,
        prefix: &[Datum],
        (enough, out): (usize, &mut Batch),
    ) -> Result<Given> {
        if self.read_first(cx, (scan, prefix), (enough, out)).await? {
            return Ok(Given::Rows);
        }
        loop {
            while let Some(first) = self.ready.front_mut() {
                while self.taken < first.made.len() && out.len() < enough {
                    out.begin().extend(first.made.take_from(self.taken, 0));
                    out.end();
                    self.taken += 1;
                }
                if out.len() >= enough {
                    return Ok(Given::Rows);
                }
                let failed = first.failed.take();
                self.ready.pop_front();
                self.taken = 0;
                if let Some(failed) = failed {
                    return Err(failed); // PAR-3
                }
            }
            // A scan that keeps most rows is read faster by one thread: to hand a row over costs about as much as to read it.
            if self.kept > 1_000 && 2 * self.kept > self.read {
                return Ok(self.alone());
            }
            let most = VALUES_MAX.checked_div(self.values).unwrap_or(ROUND_MAX);
            let make = |part| -> BoxFuture<'_, Done<Batch>> { Box::pin(cx.rows_of_part(part, scan, prefix)) };
            let Some(done) = self.apart.round(most, &make, cx).await? else { return Ok(Given::End) };
            for part in &done {
                let width = prefix.len() + scan.width();
                self.values = self.values.max(part.made.len() * width);
                self.kept += part.made.len() as u64;
                self.read += part.read.rows;
            }
            self.ready = done.into();
        }
    }

    /// Appends rows of the first part; false: it has no more.
    async fn read_first(
        &mut self,
        cx: Cx<'_>,
        of: (&Scan, &[Datum]),
        (enough, out): (usize, &mut Batch),
    ) -> Result<bool> {
        if !std::mem::replace(&mut self.begun, true) {
            self.first = self.apart.first(cx).await?;
        }
        let before = out.len();
        while let Some(first) = &mut self.first {
            let more = cx.next_of_part(first, of, enough, out).await;
            let read = std::mem::take(&mut first.read);
            if read.leaves > 0 || !matches!(more, Ok(true)) {
                self.read += read.rows;
                self.apart.enter(read, cx);
            }
            if !more? {
                self.first = None;
            }
            if out.len() >= enough {
                break;
            }
        }
        self.kept += (out.len() - before) as u64;
        Ok(out.len() >= enough)
    }

    /// What no round has taken is read by the session's thread alone.
    fn alone(&mut self) -> Given {
        match self.apart.rest() {
            Some(range) => Given::Alone(range),
            None => Given::End,
        }
    }
}
