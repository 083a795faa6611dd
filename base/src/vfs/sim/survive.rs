//! What a crash leaves (DISK-2).
//!
//! Of the pending changes of a file a random subset is applied to the durable content, in random order,
//! each write torn at sectors. A change of length is not overtaken by writes: file systems journal
//! lengths in order; it may be lost like any other. Changes of names are applied in order, each lost or
//! not. One crash in eight loses everything pending, one in eight nothing: the extremes find bugs that
//! a coin per write does not.

use super::SECTOR;
use super::state::{DataOp, Disk, Inode, write_into};
use crate::testkit::Rng;
use std::collections::BTreeMap;

/// How kind a crash is.
#[derive(Clone, Copy)]
enum Survival {
    LoseAll,
    KeepAll,
    Toss,
}

impl Survival {
    fn draw(rng: &mut Rng) -> Survival {
        match rng.below(8) {
            0 => Survival::LoseAll,
            1 => Survival::KeepAll,
            _ => Survival::Toss,
        }
    }

    fn keeps(self, rng: &mut Rng) -> bool {
        match self {
            Survival::LoseAll => false,
            Survival::KeepAll => true,
            Survival::Toss => rng.chance(1, 2),
        }
    }
}

impl Disk {
    /// The disk after a crash now.
    pub(super) fn survivor(&mut self) -> Disk {
        let mut rng = self.rng.fork();
        let mut names = self.durable.clone();
        let mood = Survival::draw(&mut rng);
        for op in &self.pending_names {
            if mood.keeps(&mut rng) {
                op.apply(&mut names);
            }
        }
        names.drop_unreachable();
        let mood = Survival::draw(&mut rng);
        let mut inodes = BTreeMap::new();
        for ino in names.files() {
            let Some(inode) = self.inodes.get(ino) else {
                continue;
            };
            let content = survivor_of(inode, mood, &mut rng);
            inodes.insert(*ino, Inode { visible: content.clone(), durable: content, ..Inode::default() });
        }
        let mut survivor = Disk::new(rng, self.options.clone());
        survivor.continue_ids_of(self);
        survivor.visible = names.clone();
        survivor.durable = names;
        survivor.inodes = inodes;
        survivor
    }
}

fn survivor_of(inode: &Inode, mood: Survival, rng: &mut Rng) -> Vec<u8> {
    let mut content = inode.durable.clone();
    let mut changes: Vec<&DataOp> = inode.pending.iter().chain(inode.in_flight.values()).collect();
    if !matches!(mood, Survival::KeepAll) {
        for run in changes.chunk_by_mut(|a, b| !is_set_len(a) && !is_set_len(b)) {
            rng.shuffle(run);
        }
    }
    for op in changes {
        match mood {
            Survival::LoseAll => {}
            Survival::KeepAll => op.apply(&mut content),
            Survival::Toss if rng.chance(1, 2) => apply_torn(op, &mut content, rng),
            Survival::Toss => {}
        }
    }
    content
}

fn is_set_len(op: &DataOp) -> bool {
    matches!(op, DataOp::SetLen(_))
}

/// Applies a change, or some of its sectors, or nothing.
pub(super) fn apply_torn(op: &DataOp, content: &mut Vec<u8>, rng: &mut Rng) {
    let DataOp::Write { offset, bytes } = op else {
        if rng.chance(1, 2) {
            op.apply(content);
        }
        return;
    };
    if rng.chance(1, 2) {
        return op.apply(content);
    }
    let mut done = 0;
    while done < bytes.len() {
        // Sectors are those of the disk, not of the write.
        let at = offset + done as u64;
        let step = (SECTOR - (at as usize % SECTOR)).min(bytes.len() - done);
        if rng.chance(1, 2) {
            write_into(content, at, &bytes[done..done + step]);
        }
        done += step;
    }
}
