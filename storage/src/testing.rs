//! The simplest implementations of log and space (`seams`), for tests of pages and trees alone.

use crate::btree::{RunChanges, RunPositions, Tree, TreeRedo, root_init};
use crate::buffer::page::{PageBytes, checksum};
use crate::buffer::{DoubleWrite, Pool, PoolOptions, Twins};
use crate::error::StorageError;
use crate::ids::{Lsn, PageId, Tag, TreeId};
use crate::record::Before;
use crate::record::{BeforeImage, LsnRange, PageOp, Record, RecordKind, RecordView, Redo, RowUndo, TxnLog, UndoEntry};
use crate::seams::{
    BoxFuture, Credit, CreditBank, FreeReservation, PageLog, PageReservation, PageSpace, Place, Purpose, SpaceLatch,
    SpaceOp, Versions,
};
use clearway_base::sync::Mutex;
use clearway_base::testkit;
use clearway_base::vfs::{FileKind, IoBuf, MemVfs, OpenHow, Vfs, VfsFile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A record as it was appended.
#[derive(Clone, Debug)]
pub struct Kept {
    pub range: LsnRange,
    pub kind: RecordKind,
    pub previous: Lsn,
    pub ops: Vec<(PageId, u8, Vec<u8>)>,
    pub undo: Option<UndoEntry>,
}

impl Kept {
    /// The changes of its rows, as their undo needs them.
    pub fn changes(&self) -> Vec<UndoEntry> {
        let (RecordKind::Run, [(_, op, payload)]) = (self.kind, &self.ops[..]) else {
            return self.undo.iter().cloned().collect();
        };
        let positions = RunPositions::new(self.range.start, self.previous);
        let changes = RunChanges::of(*op, payload).expect("a run").enumerate();
        let entry = |n: usize, undo: &RowUndo<'_>| {
            let (lsn, undo_next) = positions.of(n);
            entry_of(undo, lsn, undo_next)
        };
        changes.map(|(n, change)| entry(n, &change.expect("as written").undo)).collect()
    }
}

fn entry_of(undo: &RowUndo<'_>, lsn: Lsn, undo_next: Lsn) -> UndoEntry {
    let before = match undo.before {
        Before::Absent => BeforeImage::Absent,
        Before::Row { ghost, overflow, value } => BeforeImage::Row { ghost, overflow, value: value.into() },
    };
    let (tree, key, tag, prev_tag) = (undo.tree, undo.key.into(), undo.tag, undo.prev_tag);
    UndoEntry { lsn, undo_next, tree, key, tag, prev_tag, before }
}

/// A log in memory; what is appended is durable as soon as a caller asks.
pub struct MemLog {
    pub records: Mutex<Vec<Kept>>,
    end: AtomicU64,
    durable: AtomicU64,
}

impl MemLog {
    pub fn new() -> MemLog {
        Self::default()
    }
}

impl Default for MemLog {
    fn default() -> Self {
        MemLog { records: Mutex::new("test/log", Vec::new()), end: AtomicU64::new(8), durable: AtomicU64::new(8) }
    }
}

impl CreditBank for MemLog {
    fn give_back(&self, _bytes: usize) {}
}

const RECORD_BYTES: usize = 48 + 32;
const OP_BYTES: usize = 8;

impl PageLog for MemLog {
    fn try_credit(&self, _purpose: Purpose, bytes: usize) -> Option<Credit<'_>> {
        Some(Credit::new(self, bytes))
    }

    fn credit(&self, _purpose: Purpose, bytes: usize) -> BoxFuture<'_, Result<Credit<'_>, StorageError>> {
        Box::pin(async move { Ok(Credit::new(self, bytes)) })
    }

    fn set_aside(&self, credit: &mut Credit<'_>, log: &mut TxnLog, bytes: usize) {
        credit.spend(bytes);
        log.undo_reserved += bytes;
    }

    fn credit_for_undo(&self, bytes: usize) -> BoxFuture<'_, Result<Credit<'_>, StorageError>> {
        Box::pin(async move { Ok(Credit::new(self, bytes)) })
    }

    fn undo_spent(&self, log: &mut TxnLog, bytes: usize) {
        log.undo_reserved = log.undo_reserved.checked_sub(bytes).expect("undo was paid for when the change was made");
    }

    fn append(&self, credit: &mut Credit<'_>, record: &Record<'_>) -> LsnRange {
        let ops: Vec<_> = record.ops.iter().map(|op: &PageOp<'_>| (op.page, op.op, op.payload.concat())).collect();
        let mut bytes = RECORD_BYTES + record.body.len();
        bytes += ops.iter().map(|op| OP_BYTES + op.2.len()).sum::<usize>();
        let mut records = self.records.lock();
        let undo = record.undo.map(|undo| {
            let entry = entry_of(&undo, Lsn(self.end.load(SeqCst)), record.undo_next);
            bytes += undo.key.len();
            if let BeforeImage::Row { value, .. } = &entry.before {
                bytes += value.len();
            }
            entry
        });
        credit.spend(bytes);
        let start = self.end.fetch_add(bytes as u64, SeqCst);
        let range = LsnRange { start: Lsn(start), end: Lsn(start + bytes as u64) };
        records.push(Kept { range, kind: record.kind, previous: record.undo_next, ops, undo });
        range
    }

    fn overhead_bytes(&self) -> (usize, usize) {
        (RECORD_BYTES, OP_BYTES)
    }

    fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(SeqCst))
    }

    fn end_lsn(&self) -> Lsn {
        Lsn(self.end.load(SeqCst))
    }

    fn wait_durable(&self, lsn: Lsn) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            if testkit::in_simulation() {
                testkit::yield_now().await;
            }
            self.durable.fetch_max(lsn.0, SeqCst);
            Ok(())
        })
    }
}

/// Pages of one file, handed out in order; freed ones are handed out again at once, which is harder on trees than
/// any real space may be.
pub struct MemSpace {
    file: Arc<dyn VfsFile>,
    inner: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    next: u32,
    free: Vec<PageId>,
    used: BTreeSet<PageId>,
    roots: BTreeMap<TreeId, PageId>,
}

impl MemSpace {
    pub fn new(file: Arc<dyn VfsFile>) -> MemSpace {
        let pages = Pages { next: 1, ..Pages::default() };
        MemSpace { file, inner: Mutex::new("test/space", pages) }
    }

    pub fn used(&self) -> BTreeSet<PageId> {
        self.inner.lock().used.clone()
    }
}

struct Reserved<'s> {
    space: &'s MemSpace,
    pages: Vec<PageId>,
    taken: usize,
}

impl PageReservation for Reserved<'_> {
    fn pages(&self) -> &[PageId] {
        &self.pages
    }

    fn latch(&mut self, count: usize) -> Box<dyn SpaceLatch + '_> {
        assert!(count <= self.pages.len());
        Box::new(Allocating { reserved: self, count })
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.space.inner.lock().free.extend(&self.pages[self.taken..]);
    }
}

struct Allocating<'r, 's> {
    reserved: &'r mut Reserved<'s>,
    count: usize,
}

impl SpaceLatch for Allocating<'_, '_> {
    fn ops(&self) -> &[SpaceOp] {
        &[]
    }

    fn commit(self: Box<Self>, _lsn: LsnRange) {
        self.reserved.taken = self.count;
        let mut inner = self.reserved.space.inner.lock();
        for page in &self.reserved.pages[..self.count] {
            assert!(inner.used.insert(*page), "{page:?} allocated twice");
        }
    }
}

struct Freeing<'s> {
    space: &'s MemSpace,
    pages: Vec<PageId>,
}

impl FreeReservation for Freeing<'_> {
    fn latch(&mut self, pages: &[PageId]) -> Box<dyn SpaceLatch + '_> {
        self.pages = pages.to_vec();
        Box::new(FreeingLatch(self))
    }
}

struct FreeingLatch<'f, 's>(&'f mut Freeing<'s>);

impl SpaceLatch for FreeingLatch<'_, '_> {
    fn ops(&self) -> &[SpaceOp] {
        &[]
    }

    fn commit(self: Box<Self>, _lsn: LsnRange) {
        let mut inner = self.0.space.inner.lock();
        for page in &self.0.pages {
            assert!(inner.used.remove(page), "{page:?} freed twice");
            inner.free.push(*page);
        }
    }
}

impl PageSpace for MemSpace {
    fn locate(&self, page: PageId) -> Result<Place, StorageError> {
        Ok((self.file.clone(), u64::from(page.0) * crate::buffer::PAGE_BYTES as u64))
    }

    fn file_name(&self, _page: PageId) -> String {
        "pages".to_owned()
    }

    fn reserve(&self, pages: usize) -> BoxFuture<'_, Result<Box<dyn PageReservation + '_>, StorageError>> {
        let mut inner = self.inner.lock();
        let mut reserved = Vec::new();
        for _ in 0..pages {
            let next = inner.next;
            reserved.push(inner.free.pop().unwrap_or(PageId(next)));
            if reserved.last() == Some(&PageId(next)) {
                inner.next += 1;
            }
        }
        let reserved: Box<dyn PageReservation> = Box::new(Reserved { space: self, pages: reserved, taken: 0 });
        Box::pin(async move { Ok(reserved) })
    }

    fn reserve_free(&self, _pages: usize) -> BoxFuture<'_, Result<Box<dyn FreeReservation + '_>, StorageError>> {
        let freeing: Box<dyn FreeReservation> = Box::new(Freeing { space: self, pages: Vec::new() });
        Box::pin(async move { Ok(freeing) })
    }

    fn root_now(&self, tree: TreeId) -> Option<PageId> {
        self.inner.lock().roots.get(&tree).copied()
    }

    fn root(&self, tree: TreeId) -> BoxFuture<'_, Result<PageId, StorageError>> {
        let root = self.root_now(tree).ok_or(StorageError::NoSuchTree(tree));
        Box::pin(async move { root })
    }
}

/// Tags at or below a mark are settled.
#[derive(Default)]
pub struct Mark(pub AtomicU64);

impl Versions for Mark {
    fn is_settled(&self, tag: Tag) -> bool {
        tag.0 <= self.0.load(SeqCst)
    }

    fn horizon(&self) -> Lsn {
        Lsn(self.0.load(SeqCst))
    }
}

/// Pool, log and space of one test.
pub struct Rig {
    pub pool: Arc<Pool>,
    pub log: Arc<MemLog>,
    pub space: Arc<MemSpace>,
    pub mark: Arc<Mark>,
}

impl Rig {
    /// A rig on this file system; the caller drives the cleaner.
    pub async fn new(vfs: &dyn Vfs, frames: usize) -> Rig {
        let how = OpenHow::create(FileKind::Data);
        let file = vfs.open(Path::new("/pages"), how).await.unwrap();
        let twins = vfs.open(Path::new("/twins"), how).await.unwrap();
        vfs.sync_dir(Path::new("/")).await.unwrap();
        let log = Arc::new(MemLog::new());
        let space = Arc::new(MemSpace::new(file));
        let options = PoolOptions { frames, batch_pages: 8.min(frames / 4), free_target: 4, huge_pages: false };
        let pool = Pool::new(options, log.clone(), space.clone(), DoubleWrite::new(twins));
        Rig { pool, log, space, mark: Arc::new(Mark::default()) }
    }

    /// In memory.
    pub fn in_memory(frames: usize) -> Rig {
        now(Rig::new(&MemVfs::new(), frames))
    }

    /// A new tree.
    pub async fn tree(&self, id: u64) -> Tree {
        let id = TreeId(id);
        let mut reservation = self.space.reserve(1).await.unwrap();
        let root = reservation.pages()[0];
        let pin = self.pool.pin_new(root).await.unwrap();
        let (op, payload) = root_init(id, root);
        {
            let mut latched = pin.latch();
            let space = reservation.latch(1);
            latched.will_change();
            let view = RecordView {
                kind: RecordKind::Structure,
                lsn: LsnRange { start: Lsn::ZERO, end: Lsn::ZERO },
                undo: None,
            };
            TreeRedo.redo(latched.page(), op, &payload, &view).unwrap();
            let mut credit = self.log.try_credit(Purpose::Change, 1000).unwrap();
            let ops = [PageOp { page: root, op, payload: &[&payload] }];
            let range = self.log.append(&mut credit, &Record::structure(&ops));
            latched.changed(range.end);
            space.commit(range);
        }
        self.space.inner.lock().roots.insert(id, root);
        Tree::new(id, self.pool.clone(), self.mark.clone())
    }

    /// Redoes the log up to `until` into a new pool on another file system, and gives that
    /// rig. Its space believes what this one believes.
    pub async fn redone(&self, vfs: &dyn Vfs, frames: usize, until: Lsn) -> Rig {
        let rig = Rig::new(vfs, frames).await;
        let mut records = self.log.records.lock().clone();
        records.retain(|record| record.range.end <= until);
        rig.log.end.store(self.log.end.load(SeqCst), SeqCst);
        rig.log.durable.store(until.0, SeqCst);
        for record in &records {
            let undo = record.undo.as_ref().map(|undo| RowUndo {
                tree: undo.tree,
                key: &undo.key,
                tag: undo.tag,
                prev_tag: undo.prev_tag,
                before: undo.before.as_before(),
            });
            let view = RecordView { kind: record.kind, lsn: record.range, undo };
            // Decided once for each page: its first operation makes its LSN that of the record.
            let mut fresh = BTreeSet::new();
            for (page, op, payload) in &record.ops {
                let (pin, _) = rig.pool.pin_for_redo(*page).await.unwrap();
                let mut latched = pin.latch();
                if latched.page().lsn() < record.range.end || fresh.contains(page) {
                    fresh.insert(*page);
                    TreeRedo.redo(latched.page(), *op, payload, &view).unwrap();
                    latched.redone(record.range.start, record.range.end);
                }
            }
        }
        let pages = {
            let inner = self.space.inner.lock();
            Pages { next: inner.next, free: inner.free.clone(), used: inner.used.clone(), roots: inner.roots.clone() }
        };
        *rig.space.inner.lock() = pages;
        rig
    }
}

impl Rig {
    /// Writes twins over torn pages, as before any redo.
    pub async fn restore(&self, vfs: &dyn Vfs) {
        let how = OpenHow::create(FileKind::Data);
        let twins = vfs.open(Path::new("/twins"), how).await.unwrap();
        let space = MemSpace::new(vfs.open(Path::new("/pages"), how).await.unwrap());
        let found = Twins::read(&twins, Lsn::ZERO, Lsn(u64::MAX)).await.unwrap();
        DoubleWrite::new(twins).restore(&space, found).await.unwrap();
    }

    /// How many pages of the space are on disk with a wrong checksum.
    pub async fn torn(&self, vfs: &dyn Vfs) -> usize {
        let file = vfs.open(Path::new("/pages"), OpenHow::create(FileKind::Data)).await.unwrap();
        let mut torn = 0;
        let end = self.space.inner.lock().next;
        for page in 1..end {
            let at = u64::from(page) * crate::buffer::PAGE_BYTES as u64;
            let read = file.read_at(at, IoBuf::with_capacity(0), crate::buffer::PAGE_BYTES).await.unwrap();
            let Ok(bytes) = <&PageBytes>::try_from(&read[..]) else {
                continue;
            };
            let written = bytes.iter().any(|byte| *byte != 0);
            torn += usize::from(written && bytes[..4] != checksum(bytes).to_le_bytes());
        }
        torn
    }
}

/// Runs a future that never has to wait for another task.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
}
