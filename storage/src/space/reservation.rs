//! Pages set aside for one mini-transaction, pages about to be freed, and the latched bitmaps in which both are recorded.

use super::{Space, pages};
use crate::buffer::{Latched, OwnedPin};
use crate::ids::PageId;
use crate::record::LsnRange;
use crate::seams::{FreeReservation, PageReservation, SpaceLatch, SpaceOp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pages set aside.
pub struct Reservation<'s> {
    space: &'s Space,
    pages: Vec<PageId>,
    pins: Vec<Arc<OwnedPin>>,
    /// How many of the first pages are allocated by now.
    committed: usize,
}

impl<'s> Reservation<'s> {
    pub(super) fn new(space: &'s Space, pages: Vec<PageId>) -> Self {
        Reservation { space, pages, pins: Vec::new(), committed: 0 }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.space.give_back(&self.pages[self.committed..]);
    }
}

impl PageReservation for Reservation<'_> {
    fn pages(&self) -> &[PageId] {
        &self.pages
    }

    fn latch(&mut self, count: usize) -> Box<dyn SpaceLatch + '_> {
        assert!(self.committed == 0, "a reservation is used once");
        let changed = self.pages[..count].to_vec();
        let (pins, ops) = self.space.plan(&changed, pages::SET);
        self.pins = pins;
        let latched = latch_all(&self.pins);
        Box::new(Bitmaps { space: self.space, latched, ops, then: AfterRecord::Committed(&mut self.committed, count) })
    }
}

/// Pages about to be freed.
pub struct Freeing<'s> {
    space: &'s Space,
    pins: Vec<Arc<OwnedPin>>,
}

impl<'s> Freeing<'s> {
    pub(super) fn new(space: &'s Space) -> Self {
        Freeing { space, pins: Vec::new() }
    }
}

impl FreeReservation for Freeing<'_> {
    fn latch(&mut self, freed: &[PageId]) -> Box<dyn SpaceLatch + '_> {
        let (pins, ops) = self.space.plan(freed, pages::CLEAR);
        self.pins = pins;
        let latched = latch_all(&self.pins);
        Box::new(Bitmaps { space: self.space, latched, ops, then: AfterRecord::Withhold(freed.to_vec()) })
    }
}

fn latch_all(pins: &[Arc<OwnedPin>]) -> Vec<Latched<'_>> {
    let mut latched: Vec<_> = pins.iter().map(|pin| pin.latch()).collect();
    latched.iter_mut().for_each(|page| page.will_change());
    latched
}

/// What is done in memory once the record is there.
enum AfterRecord<'a> {
    Committed(&'a mut usize, usize),
    Withhold(Vec<PageId>),
}

/// Latched bitmap pages.
struct Bitmaps<'a> {
    space: &'a Space,
    latched: Vec<Latched<'a>>,
    ops: Vec<SpaceOp>,
    then: AfterRecord<'a>,
}

impl SpaceLatch for Bitmaps<'_> {
    /// SPC-3: they go into the caller's record.
    fn ops(&self) -> &[SpaceOp] {
        &self.ops
    }

    fn commit(self: Box<Self>, lsn: LsnRange) {
        let Bitmaps { space, mut latched, ops, then } = *self;
        assert!(lsn.start < lsn.end, "SPC-3: the change of a bitmap is in a record");
        for page in &mut latched {
            let id = page.page().id();
            for op in ops.iter().filter(|op| op.page == id) {
                pages::apply(page.page(), op.op, op.payload()).expect("SPC-1: a change made here fits its page");
            }
            page.changed(lsn.end);
        }
        drop(latched);
        match then {
            AfterRecord::Committed(committed, count) => *committed = count,
            AfterRecord::Withhold(freed) => space.withhold(lsn, freed),
        }
    }
}

impl Space {
    /// The bitmap pages of `changed`, in order of their numbers, and the operations that set or clear its bits.
    fn plan(&self, changed: &[PageId], op: u8) -> (Vec<Arc<OwnedPin>>, Vec<SpaceOp>) {
        let mut by_file: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for page in changed {
            let (file, index) = self.split(*page);
            by_file.entry(file).or_default().push(index);
        }
        let state = self.state.lock();
        let mut pins = Vec::with_capacity(by_file.len());
        let mut ops = Vec::new();
        for (file, mut bits) in by_file {
            let pin = &state.bitmaps[file];
            bits.sort_unstable();
            let mut runs: Vec<(u32, u32)> = Vec::new();
            for bit in bits {
                assert!(bit > 0, "SPC-1: the page of the bitmap is neither allocated nor freed");
                assert!(
                    runs.last().is_none_or(|(first, count)| first + count <= bit),
                    "SPC-2: page {bit} is named twice"
                );
                match runs.last_mut() {
                    Some((first, count)) if *first + *count == bit => *count += 1,
                    _ => runs.push((bit, 1)),
                }
            }
            ops.extend(runs.iter().map(|(first, count)| pages::op(pin.id(), op, &pages::pair(*first, *count))));
            pins.push(pin.clone());
        }
        (pins, ops)
    }

    /// Freed pages wait until SPC-4 holds.
    fn withhold(&self, lsn: LsnRange, freed: Vec<PageId>) {
        let mut state = self.state.lock();
        for page in &freed {
            let (file, _) = self.split(*page);
            let freed_lsn = &mut state.files[file].freed_lsn;
            *freed_lsn = (*freed_lsn).max(lsn.end);
        }
        let at = state.withheld.partition_point(|(end, _)| *end <= lsn.end);
        state.withheld.insert(at, (lsn.end, freed));
    }
}
