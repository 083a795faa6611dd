//! What is on a simulated disk: for each file and for the names, what readers see, what is durable, and
//! what is pending between the two.

use super::super::names::{Names, Node, normal, parent};
use super::fault::Faults;
use super::{SECTOR, SimDiskOptions};
use crate::testkit::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of a file, whatever its names.
pub(super) type Ino = u64;

/// A change of a file's content.
#[derive(Clone, Debug)]
pub(super) enum DataOp {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen(u64),
    /// At least this long.
    Extend(u64),
}

impl DataOp {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            DataOp::Write { offset, bytes } => write_into(content, *offset, bytes),
            DataOp::SetLen(len) => content.resize(*len as usize, 0),
            DataOp::Extend(len) => content.resize(content.len().max(*len as usize), 0),
        }
    }
}

pub(super) fn write_into(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

/// A change of names. Each belongs to one directory, save a rename within one.
#[derive(Clone, Debug)]
pub(super) enum NameOp {
    Set { path: PathBuf, node: Node<Ino> },
    Unset { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, ino: Ino },
}

impl NameOp {
    fn dir(&self) -> &Path {
        match self {
            NameOp::Set { path, .. } | NameOp::Unset { path } => parent(path),
            NameOp::Rename { to, .. } => parent(to),
        }
    }

    pub(super) fn apply(&self, names: &mut Names<Ino>) {
        match self {
            NameOp::Set { path, node } => names.set(path, node.clone()),
            NameOp::Unset { path } => names.unset(path),
            NameOp::Rename { from, to, ino } => {
                names.unset(from);
                names.set(to, Node::File(*ino));
            }
        }
    }

    fn ino(&self) -> Option<Ino> {
        match self {
            NameOp::Set { node: Node::File(ino), .. } | NameOp::Rename { ino, .. } => Some(*ino),
            NameOp::Set { .. } | NameOp::Unset { .. } => None,
        }
    }
}

/// A file.
#[derive(Default)]
pub(super) struct Inode {
    /// What readers see.
    pub(super) visible: Vec<u8>,
    /// What survives any crash, if nothing pending overwrites it.
    pub(super) durable: Vec<u8>,
    /// Ended, not yet synced; in the order in which they ended.
    pub(super) pending: Vec<DataOp>,
    /// Begun, not yet ended.
    pub(super) in_flight: BTreeMap<u64, DataOp>,
    /// Each handle holds a clone. (A counter that handles lower would need the disk's mutex in `drop`,
    /// which runs wherever a handle happens to die, under that mutex too.)
    pub(super) alive: Arc<()>,
}

impl Inode {
    fn is_open(&self) -> bool {
        Arc::strong_count(&self.alive) > 1
    }
}

/// The whole disk.
pub(super) struct Disk {
    pub(super) rng: Rng,
    pub(super) options: SimDiskOptions,
    pub(super) faults: Faults,
    pub(super) points: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) die_at: Option<u64>,
    pub(super) power_off: bool,
    /// The process is gone, the machine is not.
    pub(super) process_dead: bool,
    /// Total length of all files after each growth.
    pub(super) growths: Vec<u64>,
    pub(super) visible: Names<Ino>,
    pub(super) durable: Names<Ino>,
    pub(super) pending_names: Vec<NameOp>,
    pub(super) inodes: BTreeMap<Ino, Inode>,
    pub(super) locked: BTreeSet<PathBuf>,
    next_id: u64,
}

impl Disk {
    pub(super) fn new(rng: Rng, options: SimDiskOptions) -> Self {
        Disk {
            rng,
            options,
            faults: Faults::default(),
            points: 0,
            crash_at: None,
            die_at: None,
            power_off: false,
            process_dead: false,
            growths: Vec::new(),
            visible: Names::new(),
            durable: Names::new(),
            pending_names: Vec::new(),
            inodes: BTreeMap::new(),
            locked: BTreeSet::new(),
            next_id: 0,
        }
    }

    pub(super) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Goes on numbering where `former` stopped.
    pub(super) fn continue_ids_of(&mut self, former: &Disk) {
        self.next_id = former.next_id;
    }

    /// Passes a crash point; false if the world ends here (or has ended).
    pub(super) fn pass_point(&mut self) -> bool {
        if !self.stopped() {
            self.points += 1;
            self.power_off = self.crash_at == Some(self.points);
            self.process_dead = self.die_at == Some(self.points);
        }
        !self.stopped()
    }

    /// Whether no process is left to begin or end an operation.
    pub(super) fn stopped(&self) -> bool {
        self.power_off || self.process_dead
    }

    /// What the process had in flight ends or not, any part of it; no caller is told (DISK-5).
    pub(super) fn process_died(&mut self) {
        self.process_dead = false;
        self.die_at = None;
        self.locked.clear();
        let inos: Vec<Ino> = self.inodes.keys().copied().collect();
        for ino in inos {
            for op in std::mem::take(&mut self.inode(ino).in_flight).into_values() {
                let cut = match op {
                    DataOp::Write { offset, mut bytes } => {
                        let sectors = bytes.len().div_ceil(SECTOR) as u64;
                        bytes.truncate(self.rng.below(sectors + 1) as usize * SECTOR);
                        DataOp::Write { offset, bytes }
                    }
                    whole => whole,
                };
                if self.rng.chance(1, 2) {
                    self.make_visible(ino, cut);
                }
            }
        }
    }

    pub(super) fn inode(&mut self, ino: Ino) -> &mut Inode {
        self.inodes.get_mut(&ino).expect("an inode lives while a handle or a name leads to it")
    }

    /// The file's number, created if need be.
    pub(super) fn open(&mut self, path: &Path, create: bool, exclusive: bool) -> io::Result<Ino> {
        let path = normal(path)?;
        let ino = match self.visible.file(&path) {
            Ok(_) if exclusive => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(ino) => ino,
            Err(err) if err.kind() == io::ErrorKind::NotFound && create => {
                let ino = self.fresh_id();
                self.visible.add(&path, Node::File(ino))?;
                self.inodes.insert(ino, Inode::default());
                self.pending_names.push(NameOp::Set { path, node: Node::File(ino) });
                ino
            }
            Err(err) => return Err(err),
        };
        Ok(ino)
    }

    /// Lets go of files that neither a handle nor a name, present or possible, leads to.
    fn forget_unreachable(&mut self) {
        let mut reachable: BTreeSet<Ino> = self.visible.files().copied().collect();
        reachable.extend(self.durable.files());
        reachable.extend(self.pending_names.iter().filter_map(NameOp::ino));
        self.inodes.retain(|ino, inode| inode.is_open() || reachable.contains(ino));
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let path = normal(path)?;
        self.visible.remove_file(&path)?;
        self.pending_names.push(NameOp::Unset { path });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        let (ino, _replaced) = self.visible.rename(&from, &to)?;
        if parent(&from) == parent(&to) {
            self.pending_names.push(NameOp::Rename { from, to, ino });
        } else {
            // Two directories, two syncs (VFS-3): a crash may leave both names, or none.
            self.pending_names.push(NameOp::Set { path: to, node: Node::File(ino) });
            self.pending_names.push(NameOp::Unset { path: from });
        }
        Ok(())
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        let path = normal(path)?;
        self.visible.add(&path, Node::Dir)?;
        self.pending_names.push(NameOp::Set { path, node: Node::Dir });
        Ok(())
    }

    /// How many changes of names a sync that begins now will cover.
    pub(super) fn names_upto(&self) -> usize {
        self.pending_names.len()
    }

    /// Makes the changes of a directory durable that are `kept`, and forgets the others as DISK-3 says.
    /// Concerns the first `upto` pending changes. If another sync has shortened the list meanwhile,
    /// the excess covers later changes, which is allowed: they had ended before this sync did.
    pub(super) fn sync_names(
        &mut self,
        dir: &Path,
        upto: usize,
        mut kept: impl FnMut(&mut Rng) -> bool,
    ) -> io::Result<()> {
        let dir = normal(dir)?;
        self.visible.expect_dir(&dir)?;
        let pending = std::mem::take(&mut self.pending_names);
        for (at, op) in pending.into_iter().enumerate() {
            if at >= upto || op.dir() != dir {
                self.pending_names.push(op);
            } else if kept(&mut self.rng) {
                op.apply(&mut self.durable);
            }
        }
        self.forget_unreachable();
        Ok(())
    }

    /// Total length of all files.
    pub(super) fn used_bytes(&self) -> u64 {
        self.inodes.values().map(|inode| inode.visible.len() as u64).sum()
    }

    /// Whether the file may grow to `len`.
    fn fits(&self, ino: Ino, len: u64) -> bool {
        let grows = self.inodes.get(&ino).map_or(0, |inode| len.saturating_sub(inode.visible.len() as u64));
        grows == 0 || self.used_bytes().saturating_add(grows) <= self.options.capacity_bytes
    }

    /// Ends a change of content: readers see it from now on. A change that fails may be partly there.
    pub(super) fn end_data(&mut self, ino: Ino, id: u64, failed: Option<io::Error>) -> io::Result<()> {
        let op = self.inode(ino).in_flight.remove(&id).expect("an operation ends once");
        let len = match &op {
            DataOp::Write { offset, bytes } => offset + bytes.len() as u64,
            DataOp::SetLen(len) | DataOp::Extend(len) => *len,
        };
        let full = || Some(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"));
        let failed = failed.or_else(|| if self.fits(ino, len) { None } else { full() });
        let Some(err) = failed else {
            self.make_visible(ino, op);
            return Ok(());
        };
        if let DataOp::Write { offset, mut bytes } = op {
            let sectors = bytes.len().div_ceil(SECTOR) as u64;
            bytes.truncate(self.rng.below(sectors + 1) as usize * SECTOR);
            if !bytes.is_empty() && self.fits(ino, offset + bytes.len() as u64) {
                self.make_visible(ino, DataOp::Write { offset, bytes });
            }
        }
        Err(err)
    }

    fn make_visible(&mut self, ino: Ino, op: DataOp) {
        let inode = self.inode(ino);
        let before = inode.visible.len();
        op.apply(&mut inode.visible);
        let grown = inode.visible.len() > before;
        inode.pending.push(op);
        if grown {
            let used = self.used_bytes();
            self.growths.push(used);
        }
    }

    /// Begins a change of content; the result names it to `end_data`.
    pub(super) fn begin_data(&mut self, ino: Ino, op: DataOp) -> u64 {
        let id = self.fresh_id();
        self.inode(ino).in_flight.insert(id, op);
        id
    }

    /// How many changes of content a sync that begins now will cover (VFS-2).
    pub(super) fn data_upto(&mut self, ino: Ino) -> usize {
        self.inode(ino).pending.len()
    }

    /// Ends a sync: what it covers becomes durable, or, if it failed, a random part of it (DISK-3).
    pub(super) fn sync_data(&mut self, ino: Ino, upto: usize, failed: Option<io::Error>) -> io::Result<()> {
        let inode = self.inodes.get_mut(&ino).expect("a sync holds a handle");
        // Another sync may have ended meanwhile and covered some of the same changes.
        let covered: Vec<DataOp> = inode.pending.drain(..upto.min(inode.pending.len())).collect();
        match failed {
            None => {
                for op in covered {
                    op.apply(&mut inode.durable);
                }
                Ok(())
            }
            Some(err) => {
                for op in covered {
                    super::survive::apply_torn(&op, &mut inode.durable, &mut self.rng);
                }
                Err(err)
            }
        }
    }

    pub(super) fn visible_len(&mut self, path: &Path) -> io::Result<u64> {
        let ino = self.visible.file(&normal(path)?)?;
        Ok(self.inode(ino).visible.len() as u64)
    }

    pub(super) fn flip_bit(&mut self, path: &Path, offset: u64, bit: u8) -> io::Result<()> {
        let ino = self.visible.file(&normal(path)?)?;
        let inode = self.inode(ino);
        let at = offset as usize;
        let byte = inode.visible.get_mut(at).ok_or(io::ErrorKind::UnexpectedEof)?;
        *byte ^= 1 << bit;
        if let Some(byte) = inode.durable.get_mut(at) {
            *byte ^= 1 << bit;
        }
        Ok(())
    }
}
