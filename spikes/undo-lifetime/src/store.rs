//! Undo chunks in memory and the three ways to name a record in them.
//!
//! Structure: a record is 128 bytes (four words of header, 96 bytes of before-image), a chunk
//! holds 512 of them. A directory maps a chunk number, never used twice, to the chunk, to the
//! forwarding map that an evacuation left behind, or to nothing, and nothing means settled.
//!
//! Invariants
//! UNDO-1 Every record has one referrer at most: the row, or the next younger record of that row.
//! UNDO-2 A record that some snapshot needs is reachable from its row.
//! UNDO-3 A record is skipped only if no active snapshot lies in [prior, commit) and none can
//!        come to lie there, so that the tag of an older record decides alike for every reader.

use crate::snapshots::{OPEN, Snapshots};
use std::collections::VecDeque;

pub const RECORDS: usize = 512;
const WORDS: usize = 16;
const COMMIT: usize = 0;
const PRIOR: usize = 1;
const PREV: usize = 2;
const ORIGIN: usize = 3;
pub const IMAGE: usize = 4;
const LINK: u64 = 1 << 63;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Tag = address; a chunk goes when all its records are dead.
    Physical,
    /// The same, and records that an old snapshot needs go to chunks of their own.
    Segregated,
    /// Tag = address; the live records of a mostly dead chunk move, a map of forwards stays.
    Forwarding,
    /// The same, and records that an old snapshot needs are written to chunks of their own.
    ForwardingSegregated,
    /// Tag = id, looked up in a table; records move freely.
    Indirect,
}

impl Scheme {
    fn moves(self) -> bool {
        !matches!(self, Scheme::Physical | Scheme::Segregated)
    }
    fn segregates(self) -> bool {
        matches!(self, Scheme::Segregated | Scheme::ForwardingSegregated)
    }
}

struct Chunk {
    words: Box<[u64]>,
    /// Set when the referrer went away.
    dropped: [bool; RECORDS],
    len: u16,
    /// Records not known to be dead; valid once `scanned`.
    live: u16,
    scanned: bool,
    newest: u64,
}

/// What an evacuated chunk leaves: offsets in ascending order and where each leads.
struct Forwards {
    offsets: Vec<u16>,
    targets: Vec<u64>,
    live: usize,
}

enum Slot {
    Absent,
    Chunk(Box<Chunk>),
    Forwards(Box<Forwards>),
}

struct Segment {
    entries: Box<[u64]>,
    live: usize,
}

pub struct Store {
    scheme: Scheme,
    dir: Vec<Slot>,
    /// Beside each slot: the newest commit among the chunk's records once all are committed and
    /// the chunk was scanned. A reader at or above it need not look at the record.
    through: Vec<u64>,
    spare: Vec<Box<Chunk>>,
    /// Open chunks: [young, long-lived].
    open: [u64; 2],
    closed: VecDeque<u64>,
    table: Vec<Option<Segment>>,
    next_id: u64,
    pub snapshots: Snapshots,
    pub moved: u64,
    chunks: usize,
    forward_bytes: usize,
    segments: usize,
}

fn tag(chunk: u64, offset: usize) -> u64 {
    chunk << 16 | offset as u64
}

fn place(address: u64) -> (usize, usize) {
    ((address >> 16) as usize, (address & 0xffff) as usize)
}

impl Forwards {
    fn bytes(&self) -> usize {
        64 + self.offsets.len() * 10
    }
    fn find(&self, offset: usize) -> Option<usize> {
        self.offsets.binary_search(&(offset as u16)).ok()
    }
}

impl Store {
    pub fn new(scheme: Scheme) -> Store {
        let mut store = Store {
            scheme,
            dir: vec![Slot::Absent],
            through: vec![0],
            spare: Vec::new(),
            open: [0, 0],
            closed: VecDeque::new(),
            table: Vec::new(),
            next_id: 1,
            snapshots: Snapshots {
                closed_at: OPEN,
                ..Snapshots::default()
            },
            moved: 0,
            chunks: 0,
            forward_bytes: 0,
            segments: 0,
        };
        store.open = [store.new_chunk(), store.new_chunk()];
        store
    }

    /// Bytes that the store occupies: chunks, maps, directory, table.
    pub fn bytes(&self) -> usize {
        self.chunks * (RECORDS * WORDS * 8 + RECORDS / 8 + 64)
            + self.forward_bytes
            + self.dir.len() * 16
            + self.segments * (RECORDS * 8 + 16)
            + self.table.len() * 8
    }

    pub fn index_bytes(&self) -> usize {
        self.bytes() - self.chunks * (RECORDS * WORDS * 8 + RECORDS / 8 + 64)
    }

    fn new_chunk(&mut self) -> u64 {
        let mut chunk = self.spare.pop().unwrap_or_else(|| {
            Box::new(Chunk {
                words: vec![0; RECORDS * WORDS].into_boxed_slice(),
                dropped: [false; RECORDS],
                len: 0,
                live: 0,
                scanned: false,
                newest: 0,
            })
        });
        chunk.dropped.fill(false);
        (chunk.len, chunk.live, chunk.scanned, chunk.newest) = (0, 0, false, 0);
        self.dir.push(Slot::Chunk(chunk));
        self.through.push(u64::MAX);
        self.chunks += 1;
        self.dir.len() as u64 - 1
    }

    fn chunk(&mut self, number: usize) -> &mut Chunk {
        match &mut self.dir[number] {
            Slot::Chunk(chunk) => chunk,
            _ => panic!("chunk {number} is gone"),
        }
    }

    #[inline]
    fn record(&self, address: u64) -> &[u64] {
        let (number, offset) = place(address);
        match &self.dir[number] {
            Slot::Chunk(chunk) => &chunk.words[offset * WORDS..][..WORDS],
            _ => panic!("record {address:#x} is gone"),
        }
    }

    /// Where the record that `tag` names stands now; `None` if it is settled.
    #[inline]
    pub fn locate(&self, mut tag: u64) -> Option<u64> {
        if tag == 0 {
            return None;
        }
        if self.scheme == Scheme::Indirect {
            loop {
                let segment = self.table.get(tag as usize / RECORDS)?.as_ref()?;
                let entry = segment.entries[tag as usize % RECORDS];
                match entry {
                    0 => return None,
                    e if e & LINK != 0 => tag = e & !LINK,
                    e => return Some(e),
                }
            }
        }
        loop {
            let (number, offset) = place(tag);
            match &self.dir[number] {
                Slot::Absent => return None,
                Slot::Chunk(_) => return Some(tag),
                Slot::Forwards(map) => match map.find(offset).map(|at| map.targets[at]) {
                    None | Some(0) => return None,
                    Some(target) => tag = target,
                },
            }
        }
    }

    /// The version of a row that a snapshot sees, given the newest one and its tag.
    pub fn read(&self, mut image: u64, mut tag: u64, snapshot: u64) -> u64 {
        while !self.decided(tag, snapshot) {
            let Some(address) = self.locate(tag) else {
                break;
            };
            let record = self.record(address);
            let commit = if record[COMMIT] == OPEN {
                self.snapshots.closed_at
            } else {
                record[COMMIT]
            };
            if commit <= snapshot {
                break;
            }
            image = record[IMAGE];
            tag = record[PREV];
        }
        image
    }

    /// Whether the directory alone tells that `snapshot` sees the version that bears `tag`.
    #[inline]
    fn decided(&self, tag: u64, snapshot: u64) -> bool {
        self.scheme != Scheme::Indirect && self.through[place(tag).0] <= snapshot
    }

    fn append(&mut self, stream: usize, record: &[u64; WORDS], newest: u64) -> u64 {
        let mut number = self.open[stream];
        if self.chunk(number as usize).len as usize == RECORDS {
            self.closed.push_back(number);
            number = self.new_chunk();
            self.open[stream] = number;
        }
        let chunk = self.chunk(number as usize);
        let offset = chunk.len as usize;
        chunk.words[offset * WORDS..][..WORDS].copy_from_slice(record);
        chunk.len += 1;
        chunk.newest = chunk.newest.max(newest);
        tag(number, offset)
    }

    /// Writes the undo record of an update at LSN `now` and returns the row's new tag.
    pub fn update(
        &mut self,
        old_tag: u64,
        image: &[u64; WORDS - IMAGE],
        now: u64,
        commit: u64,
    ) -> u64 {
        let (prior, prev) = match self.locate(old_tag) {
            None => {
                // A table entry or map of a settled record has gone already.
                (0, 0)
            }
            Some(address) => {
                let (commit, prior, prev) = self.header(address);
                let name = self.name(address);
                if name != old_tag {
                    self.release(old_tag);
                }
                if self.snapshots.needs(prior, commit) {
                    (commit, name)
                } else {
                    self.release(name);
                    (commit, prev)
                }
            }
        };
        let long = self.scheme.segregates() && self.snapshots.held_long(prior, now);
        let mut record = [0; WORDS];
        record[COMMIT] = commit;
        record[PRIOR] = prior;
        record[PREV] = prev;
        record[IMAGE..].copy_from_slice(image);
        if self.scheme == Scheme::Indirect {
            record[ORIGIN] = self.next_id;
            let address = self.append(0, &record, now);
            self.enter(record[ORIGIN], address);
            self.next_id += 1;
            record[ORIGIN]
        } else {
            // The address is known before the record is complete in a real store, too.
            let address = self.append(long as usize, &record, now);
            let (number, offset) = place(address);
            self.chunk(number).words[offset * WORDS + ORIGIN] = address;
            address
        }
    }

    fn header(&self, address: u64) -> (u64, u64, u64) {
        let record = self.record(address);
        (record[COMMIT], record[PRIOR], record[PREV])
    }

    /// The tag that names the record at `address` without a detour.
    fn name(&self, address: u64) -> u64 {
        if self.scheme == Scheme::Indirect {
            self.record(address)[ORIGIN]
        } else {
            address
        }
    }

    fn enter(&mut self, id: u64, address: u64) {
        let at = id as usize / RECORDS;
        while self.table.len() <= at {
            self.table.push(Some(Segment {
                entries: vec![0; RECORDS].into(),
                live: 0,
            }));
            self.segments += 1;
        }
        let segment = self.table[at]
            .as_mut()
            .expect("a segment outlives its entries");
        segment.live += 1;
        segment.entries[id as usize % RECORDS] = address;
    }

    fn clear(&mut self, id: u64) {
        let at = id as usize / RECORDS;
        let Some(segment) = self.table[at].as_mut() else {
            return;
        };
        let entry = &mut segment.entries[id as usize % RECORDS];
        if *entry != 0 {
            *entry = 0;
            segment.live -= 1;
        }
        // The segment that ids are drawn from stays.
        if segment.live == 0 && (at + 1) * RECORDS <= self.next_id as usize {
            self.table[at] = None;
            self.segments -= 1;
        }
    }

    /// The one referrer of `tag` has let go of it.
    fn release(&mut self, tag: u64) {
        let mut address = tag;
        if self.scheme == Scheme::Indirect {
            let Some(segment) = &self.table[tag as usize / RECORDS] else {
                return;
            };
            address = segment.entries[tag as usize % RECORDS];
            self.clear(tag);
            if address == 0 || address & LINK != 0 {
                return;
            }
        }
        let (number, offset) = place(address);
        match &mut self.dir[number] {
            Slot::Absent => {}
            Slot::Chunk(chunk) => {
                if !std::mem::replace(&mut chunk.dropped[offset], true) && chunk.scanned {
                    chunk.live -= 1;
                    if chunk.live == 0 {
                        self.free(number);
                    }
                }
            }
            Slot::Forwards(map) => {
                if let Some(at) = map.find(offset) {
                    if std::mem::replace(&mut map.targets[at], 0) != 0 {
                        map.live -= 1;
                    }
                    if map.live == 0 || map.live * 2 < map.offsets.len() {
                        self.tighten(number);
                    }
                }
            }
        }
    }

    fn free(&mut self, number: usize) {
        match std::mem::replace(&mut self.dir[number], Slot::Absent) {
            Slot::Chunk(chunk) => {
                self.chunks -= 1;
                self.spare.push(chunk);
            }
            Slot::Forwards(map) => self.forward_bytes -= map.bytes(),
            Slot::Absent => {}
        }
    }

    fn tighten(&mut self, number: usize) {
        let Slot::Forwards(map) = std::mem::replace(&mut self.dir[number], Slot::Absent) else {
            return;
        };
        self.forward_bytes -= map.bytes();
        let kept = map
            .offsets
            .into_iter()
            .zip(map.targets)
            .filter(|&(_, target)| target != 0)
            .collect();
        self.leave_forwards(number, kept);
    }

    fn leave_forwards(&mut self, number: usize, kept: Vec<(u16, u64)>) {
        if kept.is_empty() {
            return;
        }
        let live = kept.len();
        let (offsets, targets) = kept.into_iter().unzip();
        let map = Forwards {
            offsets,
            targets,
            live,
        };
        self.forward_bytes += map.bytes();
        self.dir[number] = Slot::Forwards(Box::new(map));
    }

    /// The nearest older record that a snapshot still needs; those in between lose their referrer.
    fn skip(&mut self, mut prev: u64) -> u64 {
        loop {
            let Some(address) = self.locate(prev) else {
                return 0;
            };
            let (commit, prior, next) = self.header(address);
            let name = self.name(address);
            if name != prev {
                self.release(prev);
            }
            if self.snapshots.needs(prior, commit) {
                return name;
            }
            self.release(name);
            prev = next;
        }
    }

    /// Prunes the closed chunks that have left the fresh window.
    pub fn prune(&mut self) {
        while let Some(&number) = self.closed.front() {
            match &self.dir[number as usize] {
                Slot::Chunk(chunk) if chunk.newest >= self.snapshots.fresh_from => return,
                _ => {}
            }
            self.closed.pop_front();
            self.scan(number as usize);
        }
    }

    /// After a long snapshot ended: looks again at everything that is still held.
    pub fn sweep(&mut self) {
        for number in 1..self.dir.len() {
            let done = matches!(&self.dir[number], Slot::Chunk(chunk) if chunk.scanned);
            if done {
                self.scan(number);
            }
        }
        for number in 1..self.dir.len() {
            let Slot::Forwards(map) = &self.dir[number] else {
                continue;
            };
            let gone: Vec<usize> = (0..map.targets.len())
                .filter(|&at| self.locate(map.targets[at]).is_none())
                .collect();
            if gone.is_empty() {
                continue;
            }
            let Slot::Forwards(map) = &mut self.dir[number] else {
                continue;
            };
            gone.iter().for_each(|&at| map.targets[at] = 0);
            self.tighten(number);
        }
        if self.scheme == Scheme::Indirect {
            for id in 1..self.next_id {
                let Some(Some(segment)) = self.table.get(id as usize / RECORDS) else {
                    continue;
                };
                if segment.entries[id as usize % RECORDS] & LINK != 0 && self.locate(id).is_none() {
                    self.clear(id);
                }
            }
        }
    }

    /// Decides each record of a chunk: needed, only a link to an older one, or dead.
    fn scan(&mut self, number: usize) {
        let Slot::Chunk(chunk) = &self.dir[number] else {
            return;
        };
        let len = chunk.len as usize;
        let mut needed: Vec<u16> = Vec::new();
        let mut links: Vec<(u16, u64)> = Vec::new();
        let mut open = false;
        for offset in 0..len {
            let Slot::Chunk(chunk) = &self.dir[number] else {
                unreachable!()
            };
            if chunk.dropped[offset] {
                continue;
            }
            let address = tag(number as u64, offset);
            let (commit, prior, prev) = self.header(address);
            // Held open against a release from `skip` while its own referrer is decided.
            let target = if prev == 0 { 0 } else { self.skip(prev) };
            let chunk = self.chunk(number);
            chunk.words[offset * WORDS + PREV] = target;
            if self.snapshots.needs(prior, commit) {
                open |= commit == OPEN && self.snapshots.closed_at == OPEN;
                needed.push(offset as u16);
            } else if target != 0 {
                links.push((offset as u16, target));
            } else {
                let id = self.record(address)[ORIGIN];
                self.chunk(number).dropped[offset] = true;
                if self.scheme == Scheme::Indirect {
                    self.clear(id);
                }
            }
        }
        if !open {
            let newest = self.chunk(number).newest;
            self.through[number] = newest;
        }
        // A record of this chunk may have been skipped after it was looked at.
        let Slot::Chunk(chunk) = &self.dir[number] else {
            return;
        };
        needed.retain(|&offset| !chunk.dropped[offset as usize]);
        links.retain(|&(offset, _)| !chunk.dropped[offset as usize]);
        if self.scheme.moves() && needed.len() * 2 < RECORDS {
            return self.evacuate(number, &needed, links);
        }
        let live = needed.len() + links.len();
        let chunk = self.chunk(number);
        chunk.live = live as u16;
        chunk.scanned = true;
        if live == 0 {
            self.free(number);
        }
    }

    fn evacuate(&mut self, number: usize, needed: &[u16], mut links: Vec<(u16, u64)>) {
        let indirect = self.scheme == Scheme::Indirect;
        let names: Vec<u64> = if indirect {
            links
                .iter()
                .map(|&(o, _)| self.record(tag(number as u64, o as usize))[ORIGIN])
                .collect()
        } else {
            Vec::new()
        };
        for &offset in needed {
            let mut record = [0; WORDS];
            record.copy_from_slice(self.record(tag(number as u64, offset as usize)));
            let newest = if record[COMMIT] == OPEN {
                0
            } else {
                record[COMMIT]
            };
            let address = self.append(1, &record, newest);
            self.moved += 1;
            if indirect {
                let id = record[ORIGIN] as usize;
                self.table[id / RECORDS]
                    .as_mut()
                    .expect("entry of a live record")
                    .entries[id % RECORDS] = address;
            } else {
                links.push((offset, address));
            }
        }
        self.free(number);
        if indirect {
            for (id, (_, target)) in names.into_iter().zip(links) {
                let segment = self.table[id as usize / RECORDS]
                    .as_mut()
                    .expect("entry of a live link");
                segment.entries[id as usize % RECORDS] = LINK | target;
            }
        } else {
            links.sort_unstable_by_key(|&(offset, _)| offset);
            self.leave_forwards(number, links);
        }
    }
}
