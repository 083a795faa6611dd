//! What pages and trees ask of the log and of space, as traits, so that each can be tested alone.

use crate::error::StorageError;
use crate::ids::{Lsn, PageId, Tag, TreeId, TxnId};
use crate::record::{LsnRange, Record, TxnLog, UndoEntry};
use crate::wal::UndoRoom;
use clearway_base::vfs::VfsFile;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A future behind a pointer; only slow paths return one.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Room in the log's ring and on its disk, taken before the first latch; what is left goes back on drop.
pub struct Credit<'a> {
    left_bytes: usize,
    bank: &'a dyn CreditBank,
}

/// The taker of credit that is given back.
pub trait CreditBank: Send + Sync {
    /// Takes back `bytes` that were not used.
    fn give_back(&self, bytes: usize);
    /// Learns of `bytes` that were used.
    fn spent(&self, _bytes: usize) {}
}

impl<'a> Credit<'a> {
    /// Credit of `bytes`, already taken from `bank`.
    pub fn new(bank: &'a dyn CreditBank, bytes: usize) -> Self {
        Credit { left_bytes: bytes, bank }
    }

    /// Bytes not yet spent.
    pub fn left_bytes(&self) -> usize {
        self.left_bytes
    }

    /// Spends `bytes`; a mini-transaction that needs more than it asked for is a programmer's error.
    pub fn spend(&mut self, bytes: usize) {
        assert!(bytes <= self.left_bytes, "a record of {bytes} bytes exceeds its credit of {}", self.left_bytes);
        self.left_bytes -= bytes;
        self.bank.spent(bytes);
    }
}

impl Drop for Credit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.left_bytes > 0 {
            self.bank.give_back(self.left_bytes);
        }
    }
}

/// The use of the credit that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A change, and whatever can wait: leaves what is set aside alone.
    Change,
    /// What ends changes, and the structure changes that undo needs: may use what is set aside.
    System,
    /// Compensation, out of the bytes that were set aside when the change was made.
    Undo,
}

/// The log, as pages and trees see it.
pub trait PageLog: Send + Sync {
    /// Credit at once, if there is room.
    fn try_credit(&self, purpose: Purpose, bytes: usize) -> Option<Credit<'_>>;
    /// Credit, when there is room. Depends only on background work.
    fn credit(&self, purpose: Purpose, bytes: usize) -> BoxFuture<'_, Result<Credit<'_>, StorageError>>;
    /// Makes `bytes` of an edit's credit the transaction's reserve for undoing that edit. At once.
    fn set_aside(&self, credit: &mut Credit<'_>, log: &mut TxnLog, bytes: usize);
    /// Credit for a compensation record that `undo_spent` will pay for out of the transaction's reserve: room in
    /// the ring only, and what is not used goes back there.
    fn credit_for_undo(&self, bytes: usize) -> BoxFuture<'_, Result<Credit<'_>, StorageError>>;
    /// A compensation record was appended: `bytes`, as told to `set_aside`, leave the transaction's reserve.
    fn undo_spent(&self, log: &mut TxnLog, bytes: usize);
    /// Where changes note the room that they give up and take in leaves; none where space has no end.
    fn undo_room(&self) -> Option<&UndoRoom> {
        None
    }
    /// Appends one record. Neither awaits, nor allocates, nor fails, nor panics.
    fn append(&self, credit: &mut Credit<'_>, record: &Record<'_>) -> LsnRange;
    /// Bytes that appending a record costs over its payloads, keys and images, for estimates of credit: per
    /// record and per page operation.
    fn overhead_bytes(&self) -> (usize, usize);
    /// What is durable, exclusive.
    fn durable_lsn(&self) -> Lsn;
    /// Where the next record will begin.
    fn end_lsn(&self) -> Lsn;
    /// Waits until `durable_lsn >= lsn`.
    fn wait_durable(&self, lsn: Lsn) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// Where a page lies: its file and the offset in bytes.
pub type Place = (Arc<dyn VfsFile>, u64);

/// The space of pages, as pool and trees see it.
pub trait PageSpace: Send + Sync {
    /// Where a page lies. Fails for a page beyond the space.
    fn locate(&self, page: PageId) -> Result<Place, StorageError>;
    /// The name of the file in which a page lies, for errors.
    fn file_name(&self, page: PageId) -> String;
    /// Sets `pages` pages aside for one mini-transaction; later steps can't fail. Before latches.
    fn reserve(&self, pages: usize) -> BoxFuture<'_, Result<Box<dyn PageReservation + '_>, StorageError>>;
    /// The same for `purpose`: only [`Purpose::Change`] leaves alone the pages that are kept for undo.
    fn reserve_for(
        &self,
        pages: usize,
        _purpose: Purpose,
    ) -> BoxFuture<'_, Result<Box<dyn PageReservation + '_>, StorageError>> {
        self.reserve(pages)
    }
    /// Makes sure that there are pages for undoing what active transactions did and any one change more. Before latches.
    fn room_for_undo(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async { Ok(()) })
    }
    /// Prepares the freeing of `pages` in the mini-transaction that unlinks them; before latches.
    fn reserve_free(&self, pages: usize) -> BoxFuture<'_, Result<Box<dyn FreeReservation + '_>, StorageError>>;
    /// Whether a page is allocated: if not, its old content belongs to no tree, and it need not be readable.
    fn in_use(&self, _page: PageId) -> bool {
        true
    }
    /// The root of a tree, if it is known in memory.
    fn root_now(&self, tree: TreeId) -> Option<PageId>;
    /// The root of a tree.
    fn root(&self, tree: TreeId) -> BoxFuture<'_, Result<PageId, StorageError>>;
}

/// Pages set aside. Dropped without a committed latch, they go back.
pub trait PageReservation: Send {
    /// The pages set aside.
    fn pages(&self) -> &[PageId];
    /// Latches space's own pages (last in the latch order) for the allocation of the first `count` pages. The
    /// rest go back when the reservation is dropped.
    fn latch(&mut self, count: usize) -> Box<dyn SpaceLatch + '_>;
}

/// Pages about to be freed.
pub trait FreeReservation: Send {
    /// Latches space's own pages (last in the latch order) for the freeing of `pages`. They are handed out again
    /// only after the record is durable and every reader that began before has left.
    fn latch(&mut self, pages: &[PageId]) -> Box<dyn SpaceLatch + '_>;
}

/// Space's own pages, latched: never held across an await. Dropped without `commit`, nothing has changed.
pub trait SpaceLatch {
    /// The changes of space's pages that go into the record.
    fn ops(&self) -> &[SpaceOp];
    /// The record was appended at `lsn`: the changes are applied.
    fn commit(self: Box<Self>, lsn: LsnRange);
}

/// One change of a page of space, as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceOp {
    /// Space's page.
    pub page: PageId,
    /// Code, 64..=95.
    pub op: u8,
    /// Arguments; the first `len` bytes count.
    pub payload: [u8; 16],
    /// Bytes of `payload` in use.
    pub len: u8,
}

impl SpaceOp {
    /// The arguments.
    pub fn payload(&self) -> &[u8] {
        &self.payload[..usize::from(self.len)]
    }
}

/// An active transaction, as a checkpoint saves it.
#[derive(Clone, Debug, Default)]
pub struct ActiveTxn {
    /// Its place in the log.
    pub log: TxnLog,
    /// What it would have to undo, oldest first: all of it if it was active at the previous checkpoint, else nothing.
    pub undo: Vec<UndoEntry>,
}

/// The transactions that are active at a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct ActiveTxns {
    /// Every transaction that has logged a change and has neither reserved its commit record nor ended its abort.
    pub txns: Vec<ActiveTxn>,
    /// No greater tag was given out.
    pub tag_high_water: Tag,
    /// No greater transaction id was given out.
    pub txn_high_water: TxnId,
}

/// What storage asks about tags of the layer above.
pub trait Versions: Send + Sync {
    /// True when every snapshot that can exist sees the version that carries `tag`, and it is durable: the tag may
    /// be stripped, a ghost purged. Neither waits nor latches pages.
    fn is_settled(&self, tag: Tag) -> bool;
    /// The commit LSN up to which that holds for everything; noted in purge records for replicas.
    fn horizon(&self) -> Lsn;
    /// The active transactions, for a checkpoint; those whose `first_lsn` lies below `previous` with their undo. Asked
    /// for after the checkpoint's begin was noted. A layer that has no transactions has nothing to save.
    fn for_checkpoint(&self, _previous: Lsn) -> ActiveTxns {
        ActiveTxns::default()
    }
    /// The same for a layer that keeps undo in files: the active transactions are taken at one moment, the rest may read.
    fn read_for_checkpoint(&self, previous: Lsn) -> BoxFuture<'_, Result<ActiveTxns, StorageError>> {
        let active = self.for_checkpoint(previous);
        Box::pin(async { Ok(active) })
    }
}
