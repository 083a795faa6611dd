//! A batch of redo: records of the log, put in the order of the pages that they change, and applied page by page.
//!
//! # Structure
//! ```text
//!   bytes   the records, as the log has them
//!   steps   one for each page of each record: page, place of the record; in the order of pages, those of a page in the order of the log
//!   parts   ranges of steps that begin and end where a page does: what a thread takes at a time
//! ```
//!
//! # Invariants
//! REC-5, REC-6, REC-14 to REC-16 in [`redo`](super::redo).

use crate::btree::TreeRedo;
use crate::buffer::{Pin, Pool};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::mutation::{self, Mutation};
use crate::record::{LsnRange, Redo};
use crate::space::SpaceRedo;
use crate::wal::format::{self, Decoded};
use clearway_base::sync::Mutex;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Steps from which on a part ends with its page.
const PART_STEPS: usize = 64;

/// What a record does to a page.
#[derive(Clone, Copy, Debug)]
struct Step {
    page: PageId,
    /// Where the record begins among the bytes of the batch, and how long it is.
    at: u32,
    len: u32,
    start: Lsn,
}

/// Records that are gathered.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    steps: Vec<Step>,
    pages: HashSet<PageId>,
}

impl Batch {
    /// Bytes of its records.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many pages its records name.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Adds a record that changes pages, of which `wanted` says which ones may lack it.
    pub(super) fn push(&mut self, lsn: LsnRange, record: &[u8], pages: &[PageId], wanted: impl Fn(PageId) -> bool) {
        let (at, len) = (self.bytes.len(), record.len());
        let fits = u32::try_from(at + len).is_ok();
        assert!(fits, "REC-16: a batch of {at} bytes gets a record of {len}");
        let steps = self.steps.len();
        for (n, page) in pages.iter().enumerate() {
            // One step has all operations of a record on a page.
            if !pages[..n].contains(page) && wanted(*page) {
                self.steps.push(Step { page: *page, at: at as u32, len: len as u32, start: lsn.start });
                self.pages.insert(*page);
            }
        }
        if self.steps.len() > steps {
            self.bytes.extend_from_slice(record);
        }
    }

    /// REC-14: puts the steps in order.
    pub(super) fn sorted(mut self, pool: Arc<Pool>, place: Place) -> Work {
        if mutation::active(Mutation::RedoOutOfOrder) {
            self.steps.reverse();
        }
        self.steps.sort_by_key(|step| step.page);
        let (mut parts, mut from) = (Vec::new(), 0);
        for (n, pair) in self.steps.windows(2).enumerate() {
            if n + 1 - from >= PART_STEPS && pair[0].page != pair[1].page {
                parts.push(from..n + 1);
                from = n + 1;
            }
        }
        if from < self.steps.len() {
            parts.push(from..self.steps.len());
        }
        Work {
            pool,
            place,
            bytes: self.bytes,
            steps: self.steps,
            parts,
            next: AtomicUsize::new(0),
            unreadable: HashSet::new(),
            done: Mutex::new("storage/recovery/redo", Done::default()),
        }
    }
}

/// Names the place of a record in the log, for errors: its file and the offset there.
pub(super) type Place = Arc<dyn Fn(Lsn) -> (String, u64) + Send + Sync>;

/// What the threads that apply a batch found.
#[derive(Default)]
pub(super) struct Done {
    /// Steps that are applied, or found in their page.
    pub(super) steps: usize,
    /// Operations applied.
    pub(super) applied: u64,
    /// Steps whose page was not in memory any more.
    pub(super) left: Vec<Range<usize>>,
    /// Pages that have later changes than any of the batch, and their LSNs.
    pub(super) ahead: HashMap<PageId, Lsn>,
    /// The error of the part that comes first, and which one it is.
    error: Option<(usize, StorageError)>,
}

impl Done {
    /// The error, if there was one.
    pub(super) fn error(&mut self) -> Option<StorageError> {
        self.error.take().map(|(_, error)| error)
    }
}

/// A batch whose steps are in order.
pub(super) struct Work {
    pool: Arc<Pool>,
    place: Place,
    bytes: Vec<u8>,
    steps: Vec<Step>,
    parts: Vec<Range<usize>>,
    /// The part that is to be taken next.
    next: AtomicUsize,
    /// Pages that could not be read (REC-6).
    pub(super) unreadable: HashSet<PageId>,
    pub(super) done: Mutex<Done>,
}

impl Work {
    /// The pages that it changes, in their order.
    pub(super) fn pages(&self) -> Vec<PageId> {
        self.steps.chunk_by(|a, b| a.page == b.page).map(|steps| steps[0].page).collect()
    }

    /// How many parts there are.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// How many steps there are.
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The page of the step with this number.
    pub(super) fn page_of(&self, step: usize) -> PageId {
        self.steps[step].page
    }

    /// Applies parts until none is left. Several threads may be in it.
    pub(super) fn run(&self) {
        let mut done = Done::default();
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            let Some(part) = self.parts.get(number) else { break };
            if let Err(error) = self.run_part(part, &mut done) {
                done.error = Some((number, error));
                // The opening fails: no more has to be done.
                self.next.store(self.parts.len(), Relaxed);
                break;
            }
        }
        let mut all = self.done.lock();
        all.steps += done.steps;
        all.applied += done.applied;
        all.left.append(&mut done.left);
        all.ahead.extend(done.ahead);
        if let Some((number, error)) = done.error
            && all.error.as_ref().is_none_or(|(first, _)| number < *first)
        {
            all.error = Some((number, error));
        }
    }

    fn run_part(&self, part: &Range<usize>, done: &mut Done) -> Result<(), StorageError> {
        let mut from = part.start;
        for steps in self.steps[part.clone()].chunk_by(|a, b| a.page == b.page) {
            let range = from..from + steps.len();
            from = range.end;
            match self.pool.try_pin(steps[0].page) {
                Some(pin) => self.apply(&pin, !self.unreadable.contains(&steps[0].page), range, done)?,
                None => done.left.push(range),
            }
        }
        Ok(())
    }

    /// Applies steps, all of one page, which is `whole` if it could be read.
    pub(super) fn apply(
        &self,
        pin: &Pin<'_>,
        mut whole: bool,
        steps: Range<usize>,
        done: &mut Done,
    ) -> Result<(), StorageError> {
        let page = pin.id();
        let mut latched = pin.latch();
        for step in &self.steps[steps.clone()] {
            assert_eq!(step.page, page, "REC-14: a step of another page");
            let record = self.record(step)?;
            let ops = || record.ops.iter().filter(|op| op.page == page);
            let redo_of = |op: u8| -> Result<&'static dyn Redo, StorageError> {
                match op {
                    1..=63 => Ok(&TreeRedo),
                    64..=95 => Ok(&SpaceRedo),
                    _ => Err(self.damaged(page, step.start, format!("operation {op}"))),
                }
            };
            // REC-6
            for (n, op) in ops().enumerate() {
                whole |= redo_of(op.op)?.is_init(op.op) && n == 0;
            }
            if !whole {
                let found = format!("{:?} on a page that can't be read", ops().collect::<Vec<_>>());
                return Err(self.damaged(page, step.start, found));
            }
            // REC-5
            if latched.page().lsn() >= record.lsn.end && !mutation::active(Mutation::RedoAlways) {
                continue;
            }
            let view = record.view();
            for op in ops() {
                redo_of(op.op)?
                    .redo(latched.page(), op.op, op.payload, &view)
                    .map_err(|damage| damage.in_file(self.pool.space().file_name(page)))?;
                done.applied += 1;
            }
            latched.redone(record.lsn.start, record.lsn.end);
        }
        // REC-15
        done.steps += steps.len();
        let (lsn, last) = (latched.page().lsn(), &self.steps[steps.end - 1]);
        if lsn.0 > last.start.0 + u64::from(last.len) {
            done.ahead.insert(page, lsn);
        }
        Ok(())
    }

    fn record(&self, step: &Step) -> Result<Decoded<'_>, StorageError> {
        let (at, len) = (step.at as usize, step.len as usize);
        format::decode(&self.bytes[at..at + len], step.start, "", 0).map_err(|damage| {
            let (file, offset) = (self.place)(step.start);
            Corruption { file, offset: Some(offset), ..damage }.into()
        })
    }

    fn damaged(&self, page: PageId, lsn: Lsn, found: String) -> StorageError {
        let file = self.pool.space().file_name(page);
        Corruption::in_page(page, lsn, "an operation that can be applied", found).in_file(file).into()
    }
}
