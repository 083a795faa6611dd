//! Clearway's trees over a file, with a log that copies every record into memory and syncs nothing.

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{FileKind, OpenHow, RealVfs, Vfs, VfsFile, inline_io_here};
use clearway_storage::btree::{Edit, LeafRow, Lookup, RowBuf, Tree, TreeRedo, TryGet, root_init};
use clearway_storage::buffer::{DoubleWrite, PAGE_BYTES, Pool, PoolOptions};
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, PageId, Tag, TreeId, TxnId};
use clearway_storage::record::{LsnRange, Record, RecordKind, RecordView, Redo, TxnLog};
use clearway_storage::seams::*;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};

const RING: usize = 16 << 20;

pub struct CopyLog {
    end: AtomicU64,
    ring: Mutex<Vec<u8>>,
}

impl CreditBank for CopyLog {
    fn give_back(&self, _bytes: usize) {}
}

impl PageLog for CopyLog {
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
        log.undo_reserved -= bytes;
    }
    fn append(&self, credit: &mut Credit<'_>, record: &Record<'_>) -> LsnRange {
        let mut ring = self.ring.lock().unwrap();
        let start = ring.len();
        ring.extend_from_slice(&[0; 48]);
        for op in record.ops {
            ring.extend_from_slice(&[op.op; 8]);
            op.payload.iter().for_each(|part| ring.extend_from_slice(part));
        }
        if let Some(undo) = &record.undo {
            ring.extend_from_slice(&[0; 32]);
            ring.extend_from_slice(undo.key);
            if let clearway_storage::record::Before::Row { value, .. } = undo.before {
                ring.extend_from_slice(value);
            }
        }
        let len = ring.len() - start;
        if ring.len() > RING - (1 << 20) {
            ring.clear();
        }
        credit.spend(len);
        let start = self.end.fetch_add(len as u64, SeqCst);
        LsnRange { start: Lsn(start), end: Lsn(start + len as u64) }
    }
    fn overhead_bytes(&self) -> (usize, usize) {
        (80, 8)
    }
    fn durable_lsn(&self) -> Lsn {
        self.end_lsn()
    }
    fn end_lsn(&self) -> Lsn {
        Lsn(self.end.load(SeqCst))
    }
    fn wait_durable(&self, _lsn: Lsn) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async { Ok(()) })
    }
}

pub struct FileSpace {
    file: Arc<dyn VfsFile>,
    next: AtomicU32,
}

struct Reserved(Vec<PageId>);
struct Nothing;

impl SpaceLatch for Nothing {
    fn ops(&self) -> &[SpaceOp] {
        &[]
    }
    fn commit(self: Box<Self>, _lsn: LsnRange) {}
}

impl PageReservation for Reserved {
    fn pages(&self) -> &[PageId] {
        &self.0
    }
    fn latch(&mut self, _count: usize) -> Box<dyn SpaceLatch + '_> {
        Box::new(Nothing)
    }
}

impl FreeReservation for Reserved {
    fn latch(&mut self, _pages: &[PageId]) -> Box<dyn SpaceLatch + '_> {
        Box::new(Nothing)
    }
}

impl PageSpace for FileSpace {
    fn locate(&self, page: PageId) -> Result<Place, StorageError> {
        Ok((self.file.clone(), u64::from(page.0) * PAGE_BYTES as u64))
    }
    fn file_name(&self, _page: PageId) -> String {
        "pages".into()
    }
    fn reserve(&self, pages: usize) -> BoxFuture<'_, Result<Box<dyn PageReservation + '_>, StorageError>> {
        let first = self.next.fetch_add(pages as u32, SeqCst);
        let pages = (first..first + pages as u32).map(PageId).collect();
        Box::pin(async move { Ok(Box::new(Reserved(pages)) as Box<dyn PageReservation>) })
    }
    fn reserve_free(&self, _pages: usize) -> BoxFuture<'_, Result<Box<dyn FreeReservation + '_>, StorageError>> {
        Box::pin(async move { Ok(Box::new(Reserved(Vec::new())) as Box<dyn FreeReservation>) })
    }
    fn root_now(&self, _tree: TreeId) -> Option<PageId> {
        Some(PageId(1))
    }
    fn root(&self, _tree: TreeId) -> BoxFuture<'_, Result<PageId, StorageError>> {
        Box::pin(async { Ok(PageId(1)) })
    }
}

struct AllSettled;

impl Versions for AllSettled {
    fn is_settled(&self, _tag: Tag) -> bool {
        true
    }
    fn horizon(&self) -> Lsn {
        Lsn::ZERO
    }
}

pub struct Clearway {
    pub tree: Tree,
        stop: Arc<AtomicBool>,
}

impl Drop for Clearway {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
    }
}

impl Clearway {
    pub fn open(dir: &Path, budget: usize) -> Clearway {
        let vfs = RealVfs::inline();
        let how = OpenHow::create(FileKind::Data);
        let file = vfs.open(&dir.join("pages"), how).wait().unwrap();
        let twins = vfs.open(&dir.join("twins"), how).wait().unwrap();
        let log = Arc::new(CopyLog { end: AtomicU64::new(8), ring: Mutex::new(Vec::with_capacity(RING)) });
        let space = Arc::new(FileSpace { file, next: AtomicU32::new(2) });
        let options = PoolOptions::for_budget(budget);
        let pool = Pool::new(options, log, space, DoubleWrite::new(twins));
        let root = PageId(1);
        let (op, payload) = root_init(TreeId(1), root);
        {
            let pin = block_on(pool.pin_new(root)).unwrap();
            let mut latched = pin.latch();
            latched.will_change();
            let view = RecordView {
                kind: RecordKind::Structure,
                lsn: LsnRange { start: Lsn(8), end: Lsn(8) },
                undo: None,
            };
            TreeRedo.redo(latched.page(), op, &payload, &view).unwrap();
            latched.changed(Lsn(8));
        }
        let (cleaner, stop) = (pool.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        spawn_thread("cleaner", move || {
            let _inline = inline_io_here();
            let _ = block_on(cleaner.run_cleaner(|| stopped.load(SeqCst)));
        })
        .unwrap();
        Clearway { tree: Tree::new(TreeId(1), pool, Arc::new(AllSettled)), stop }
    }

    pub fn put_rows<const N: usize>(&self, log: &mut TxnLog, keys: &[u64], value: impl Fn(u64) -> [u8; N]) {
        block_on(async {
            for key in keys {
                let value = value(*key);
                let edit = |_: LeafRow<'_>| (Edit::put(&value, Tag::SETTLED), ());
                self.tree.edit(log, &key.to_be_bytes(), N, edit).await.unwrap();
            }
        });
    }

    pub fn log() -> TxnLog {
        TxnLog::new(TxnId(1))
    }

    pub fn get(&self, key: &[u8], out: &mut RowBuf) -> bool {
        match self.tree.try_get(key, out) {
            TryGet::Hit(_) => true,
            TryGet::Absent(_) => false,
            TryGet::Miss => matches!(block_on(self.tree.get(key, out)).unwrap(), Lookup::Found(_)),
        }
    }
}
