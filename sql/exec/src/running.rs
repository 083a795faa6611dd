//! Window functions that need no row after the last peer of the current row: ranks, and aggregates from the first row of the partition to
//! the current row. Rows stream through; only the peers of one group are held, in a temporary file where they exceed `work_mem`.

use super::host::CxHost;
use super::sort::{KeyedRows, put};
use super::spill::Spilled;
use super::window::{Next, Step};
use super::{Cx, Row};
use clearway_planner::plan::{StageCall, WindowStage};
use clearway_syntax::error::Result;
use clearway_syntax::window::{Exclude, FrameBound, FrameMode};
use clearway_values::expr::accumulate::Accumulator;
use clearway_values::expr::aggregate::AggregateCall;
use clearway_values::expr::window::WindowFunction;
use clearway_values::types::Datum;

/// Peers that are kept in memory at least.
const PEERS_MIN: usize = 256;

/// An aggregate over the rows of a partition up to the one at hand.
struct Total<'a> {
    call: &'a AggregateCall,
    place: usize,
    /// All peers of a row count; else none behind it.
    with_peers: bool,
    running: Accumulator,
}

/// A stage.
pub(super) struct Running<'a> {
    totals: Vec<Total<'a>>,
    /// Ranks and their places.
    ranks: Vec<(&'a WindowFunction, usize)>,
    width: usize,
    /// Rows of the partition up to the one at hand, those before its peers, and the number of its group.
    rows: i64,
    rows_before: i64,
    group: i64,
    peers: Vec<Row>,
    spilled: Option<Spilled>,
}

/// Whether an aggregate's frame ends with the row at hand or its peers; says whether with these.
fn ends_here(call: &StageCall) -> Option<bool> {
    let Some(frame) = &call.frame else { return Some(true) };
    let from_first = matches!(frame.start, FrameBound::UnboundedPreceding) && frame.exclude == Exclude::NoOthers;
    let ends = from_first && matches!(frame.end, FrameBound::CurrentRow);
    ends.then_some(frame.mode != FrameMode::Rows)
}

impl<'a> Running<'a> {
    /// None: a function of the stage looks further.
    pub fn new(stage: &'a WindowStage, width: usize) -> Option<Self> {
        let (mut totals, mut ranks) = (Vec::new(), Vec::new());
        for call in &stage.calls {
            let place = width + call.place;
            match &call.function {
                function @ (WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank) => {
                    ranks.push((function, place));
                }
                WindowFunction::Aggregate(aggregate) => {
                    let with_peers = ends_here(call)?;
                    totals.push(Total { call: aggregate, place, with_peers, running: Accumulator::new(aggregate) });
                }
                _ => return None,
            }
        }
        let (peers, spilled) = (Vec::new(), None);
        Some(Self { totals, ranks, width, rows: 0, rows_before: 0, group: 0, peers, spilled })
    }

    /// Computes the stage.
    pub async fn computed(
        mut self,
        mut rows: KeyedRows,
        step: impl Fn(&[Datum], &[Datum]) -> Step,
        (next, held): Next<'_, '_>,
        cx: Cx<'_>,
    ) -> Result<()> {
        let waits_for_peers = self.totals.iter().any(|total| total.with_peers);
        let mut last: Option<Row> = None;
        while let Some((key, mut row)) = rows.next().await? {
            cx.breathe().await?;
            let step = last.as_ref().map_or(Step::Partition, |last| step(last, &key));
            if step != Step::Peer {
                self.give_peers((&mut *next, &mut *held), cx).await?;
                self.begin(step);
            }
            last = Some(key);
            self.add(&mut row, cx).await?;
            if !waits_for_peers {
                next.push(row, cx, held).await?;
                continue;
            }
            self.peers.push(row);
            held.grow()?;
            if self.peers.len() >= PEERS_MIN && held.exceeds(cx.work_bytes() as i64) {
                self.spill(cx).await?;
                held.measure();
            }
        }
        self.give_peers((next, held), cx).await
    }

    fn begin(&mut self, step: Step) {
        self.group += 1;
        self.rows_before = self.rows;
        if step == Step::Partition {
            (self.rows, self.rows_before, self.group) = (0, 0, 1);
            for total in &mut self.totals {
                total.running = Accumulator::new(total.call);
            }
        }
    }

    /// Adds a row to the totals, and puts in what is known of it.
    async fn add(&mut self, row: &mut Row, cx: Cx<'_>) -> Result<()> {
        self.rows += 1;
        for (function, place) in &self.ranks {
            let value = match function {
                WindowFunction::RowNumber => self.rows,
                WindowFunction::Rank => self.rows_before + 1,
                _ => self.group,
            };
            put(row, *place, Datum::Int8(value));
        }
        for total in &mut self.totals {
            let values = row.get(self.width..).unwrap_or(&[]);
            let taken = match &total.call.filter {
                None => true,
                Some(e) => cx.value_with(e, row, values).await?.as_bool() == Some(true),
            };
            if taken {
                let args = cx.values(&total.call.args, row, values).await?;
                total.running.add(&args, &CxHost { cx })?;
            }
            if !total.with_peers {
                let value = total.running.finish(&[])?;
                put(row, total.place, value);
            }
        }
        Ok(())
    }

    async fn spill(&mut self, cx: Cx<'_>) -> Result<()> {
        let file = match &mut self.spilled {
            Some(file) => file,
            None => self.spilled.insert(Spilled::create(cx.temp_files()).await?),
        };
        for row in self.peers.drain(..) {
            cx.breathe().await?;
            file.append(&row, &[]).await?;
        }
        self.peers.shrink_to_fit();
        Ok(())
    }

    /// The group has ended: its rows get the totals and go on.
    async fn give_peers(&mut self, (next, held): Next<'_, '_>, cx: Cx<'_>) -> Result<()> {
        if self.peers.is_empty() && self.spilled.is_none() {
            return Ok(());
        }
        let mut totals = Vec::new();
        for total in self.totals.iter().filter(|total| total.with_peers) {
            totals.push((total.place, total.running.finish(&[])?));
        }
        let complete = |mut row: Row| {
            totals.iter().for_each(|(place, value)| put(&mut row, *place, value.clone()));
            row
        };
        if let Some(mut file) = self.spilled.take() {
            let end = file.end();
            let mut rows = file.reader(0..end, 0).await?;
            while let Some(row) = rows.next().await? {
                cx.breathe().await?;
                next.push(complete(row), cx, held).await?;
            }
        }
        for row in self.peers.drain(..) {
            cx.breathe().await?;
            next.push(complete(row), cx, held).await?;
        }
        Ok(())
    }
}
