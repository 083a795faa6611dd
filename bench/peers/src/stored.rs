//! Clearway's storage as in production: the real log with its flusher, the background loops, and transactions that commit durably.

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{RealVfs, inline_io_here};
use clearway_storage::btree::{Direction, Edit, KeyRange, Lookup, RowBuf, Tree, TryGet};
use clearway_storage::buffer::PoolOptions;
use clearway_storage::ids::{Lsn, Tag, TxnId};
use clearway_storage::record::{Record, RecordKind, TxnLog};
use clearway_storage::recovery::CommitBody;
use clearway_storage::seams::{Purpose, Versions};
use clearway_storage::space::TreeKind;
use clearway_storage::store::{Store, StoreOptions};
use clearway_storage::wal::Wal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

struct AllSettled;

impl Versions for AllSettled {
    fn is_settled(&self, _tag: Tag) -> bool {
        true
    }
    fn horizon(&self) -> Lsn {
        Lsn::MAX
    }
}

/// A store with one tree.
pub struct Stored {
    pub store: Arc<Store>,
    pub tree: Tree,
    txns: AtomicU64,
}

/// Rows of one commit.
const COMMIT_ROWS: usize = 1000;

impl Stored {
    pub fn open(dir: &Path, budget: usize) -> Stored {
        let options = StoreOptions { pool: PoolOptions::for_budget(budget), ..StoreOptions::default() };
        let vfs = Arc::new(RealVfs::inline());
        let (store, _) = block_on(Store::open(vfs, dir, options, Arc::new(AllSettled))).unwrap();
        for (name, task) in store.background() {
            spawn_thread(name, move || {
                let _inline = inline_io_here();
                block_on(task);
            })
            .unwrap();
        }
        let mut log = TxnLog::new(TxnId(1));
        let (id, _) = block_on(store.create_tree(&mut log, TreeKind::Logged)).unwrap();
        let stored = Stored { tree: store.tree(id), store, txns: AtomicU64::new(2) };
        block_on(stored.commit(&mut log));
        stored
    }

    pub fn begin(&self) -> TxnLog {
        TxnLog::new(TxnId(self.txns.fetch_add(1, SeqCst)))
    }

    /// Durable when it returns.
    pub async fn commit(&self, log: &mut TxnLog) {
        let end = self.commit_unsynced(log).await;
        self.store.wal().wait_durable(end).await.unwrap();
    }

    /// In the log when it returns; the flusher makes it durable in its time.
    async fn commit_unsynced(&self, log: &mut TxnLog) -> Lsn {
        let body = CommitBody::default().encode();
        let (txn, undo_next) = (log.txn, Lsn::ZERO);
        let record = Record { kind: RecordKind::Commit, txn, undo_next, undo: None, ops: &[], body: &body };
        let wal = self.store.wal();
        let mut credit = wal.credit(Purpose::System, Wal::record_bytes(&record)).await.unwrap();
        let end = wal.append(&mut credit, &record).end;
        drop(credit);
        wal.release_undo(log);
        self.store.tick();
        end
    }

    /// One transaction.
    pub fn put_rows<const N: usize>(&self, keys: &[u64], value: impl Fn(u64) -> [u8; N], durable: bool) {
        block_on(async {
            let mut log = self.begin();
            for key in keys {
                self.edit(&mut log, *key, &value(*key)).await;
            }
            let end = self.commit_unsynced(&mut log).await;
            if durable {
                self.store.wal().wait_durable(end).await.unwrap();
            }
        });
    }

    /// Ends without writing what is in memory: a measurement is over.
    pub fn abandon(self) {
        self.store.wal().poison("the measurement is over");
        // Fails, and ends the background loops.
        let _ = block_on(self.store.close());
    }

    pub async fn edit(&self, log: &mut TxnLog, key: u64, value: &[u8]) {
        let edit = |_: clearway_storage::btree::LeafRow<'_>| (Edit::put(value, Tag::SETTLED), ());
        self.tree.edit(log, &key.to_be_bytes(), value.len(), edit).await.unwrap();
    }

    pub fn put(&self, rows: impl Iterator<Item = u64> + Send, value: &[u8]) {
        block_on(async {
            let mut log = self.begin();
            for (index, key) in rows.enumerate() {
                self.edit(&mut log, key, value).await;
                if index % COMMIT_ROWS == COMMIT_ROWS - 1 {
                    self.commit(&mut log).await;
                    log = self.begin();
                }
            }
            self.commit(&mut log).await;
        });
    }

    /// A row whose value is too long for a leaf; the chain it had is freed.
    pub fn put_big(&self, key: u64, value: &[u8]) {
        block_on(async {
            let mut log = self.begin();
            let reference = self.tree.write_overflow(&mut log, Tag::SETTLED, value, &mut |_, _| {}).await.unwrap();
            let (old, _) = self
                .tree
                .edit(&mut log, &key.to_be_bytes(), reference.len(), |row| {
                    let put = Edit::Put { value: reference[..].into(), tag: Tag::SETTLED, ghost: false, overflow: true };
                    (put, row.row.filter(|row| row.overflow).map(|row| row.value.to_vec()))
                })
                .await
                .unwrap();
            self.commit(&mut log).await;
            if let Some(old) = old {
                self.tree.free_overflow(&old).await.unwrap();
            }
        });
    }

    pub fn get(&self, key: u64, out: &mut RowBuf) -> bool {
        let key = key.to_be_bytes();
        match self.tree.try_get(&key, out) {
            TryGet::Hit(_) if !out.row().overflow => true,
            TryGet::Absent(_) => false,
            _ => matches!(block_on(self.tree.get(&key, out)).unwrap(), Lookup::Found(_)),
        }
    }
}

/// Gives so many rows from a key on to `each`; how many there were.
pub fn scan(tree: &Tree, key: u64, rows: usize, mut each: impl FnMut(&[u8])) -> usize {
    let mut cursor = tree.cursor(KeyRange::new(key.to_be_bytes(), None), Direction::Forward);
    let mut found = 0;
    while found < rows {
        let Some(leaf) = block_on(cursor.next_leaf()).unwrap() else { break };
        for (_, row) in leaf.iter().take(rows - found) {
            each(row.value);
            found += 1;
        }
    }
    found
}
