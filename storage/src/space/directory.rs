//! The tree directory: creating, dropping and finding trees by id.
//!
//! # Life of a tree
//! created (root, entry and bitmap bit in one Row record whose undo part names the directory) -> in use -> marked as
//! dropping, by the undo of its creation or once the commit that dropped it is settled -> its pages freed, leaves
//! first -> root freed and entry removed in one record.
//!
//! # Invariants
//! - SPC-8: ids are never reused: each directory page keeps the greatest id that it ever held.

use super::pages::{self, ENTRIES, Entry, TreeKind, TreeState};
use super::{Seat, Space};
use crate::btree;
use crate::buffer::{OwnedPin, Pool};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, Tag, TreeId};
use crate::record::{
    Before, BeforeImage, LsnRange, PageOp, Record, RecordKind, RecordView, Redo, RowUndo, TxnLog, UndoEntry,
};
use crate::seams::{FreeReservation, PageSpace, Purpose};
use std::sync::Arc;

/// The tree id under which the directory itself stands in undo parts.
pub const DIRECTORY_TREE: TreeId = TreeId(0);

/// The first directory page.
pub(super) const FIRST_PAGE: PageId = PageId(1);

/// Log space for undoing a creation: one compensation with one small operation.
const UNDO_BYTES: usize = 128;

impl Space {
    /// Reads the chain of directory pages.
    pub(super) async fn load_directory(&self, pool: &Arc<Pool>) -> Result<(), StorageError> {
        let mut next = Some(FIRST_PAGE);
        while let Some(id) = next {
            let pin = OwnedPin::existing(pool, id).await?;
            let (following, high_water, entries) = self.read_directory(&pin)?;
            let mut state = self.state.lock();
            if state.directory.iter().any(|pin| pin.id() == id) {
                let found = format!("page {id} a second time");
                return Err(Corruption::in_page(id, Lsn::ZERO, "the end of the directory", found).into());
            }
            let page = state.directory.len();
            state.directory.push(Arc::new(pin));
            state.tree_high_water = state.tree_high_water.max(high_water.0);
            for (slot, entry) in entries {
                state.trees.insert(entry.tree, Seat { entry, page, slot });
            }
            next = following;
        }
        Ok(())
    }

    #[allow(clippy::type_complexity, reason = "one use")]
    fn read_directory(&self, pin: &OwnedPin) -> Result<(Option<PageId>, TreeId, Vec<(u32, Entry)>), StorageError> {
        let latched = pin.latch();
        let page = latched.page();
        if page.kind() != crate::buffer::page::kind::DIRECTORY {
            let found = format!("a page of kind {}", page.kind());
            return Err(Corruption::in_page(pin.id(), page.lsn(), "a directory page", found).into());
        }
        let (next, high_water) = pages::directory_header(page);
        let mut entries = Vec::new();
        for slot in 0..ENTRIES {
            entries.extend(pages::entry(page, slot)?.map(|entry| (slot, entry)));
        }
        Ok((next, high_water, entries))
    }

    /// Makes the first file with bitmap and directory, in a database whose log is empty. One record holds all of
    /// it: a crash leaves the empty log, whatever it left of the file, or everything.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn create(&self) -> Result<(), StorageError> {
        let pool = self.pool()?;
        let _turn = self.growing.take().await;
        self.state.lock().files.clear();
        let pages = self.start_file(0).await?;
        let bitmap = Arc::new(OwnedPin::new_page(&pool, PageId(0)).await?);
        let directory = Arc::new(OwnedPin::new_page(&pool, FIRST_PAGE).await?);
        let ops = [
            pages::op(PageId(0), pages::BITMAP_INIT, &[]),
            pages::op(FIRST_PAGE, pages::DIRECTORY_INIT, &[]),
            pages::op(PageId(0), pages::SET, &pages::pair(FIRST_PAGE.0, 1)),
        ];
        self.change_own(&[bitmap.clone(), directory.clone()], &ops).await?;
        let mut state = self.state.lock();
        state.files[0].add(FIRST_PAGE.0 + 1, pages);
        state.bitmaps.push(bitmap);
        state.directory.push(directory);
        Ok(())
    }

    /// Allocates a directory page, makes it, and links it behind `last`, in one record.
    async fn new_directory_page(&self, last: Option<Arc<OwnedPin>>) -> Result<PageId, StorageError> {
        let pool = self.pool()?;
        let taken = self.set_aside(1, Purpose::Change).await?;
        let id = taken[0];
        let (file, index) = self.split(id);
        let made = async {
            let pin = Arc::new(OwnedPin::new_page(&pool, id).await?);
            let bitmap = self.state.lock().bitmaps[file].clone();
            let mut ops = vec![
                pages::op(id, pages::DIRECTORY_INIT, &[]),
                pages::op(bitmap.id(), pages::SET, &pages::pair(index, 1)),
            ];
            let mut pins: Vec<Arc<OwnedPin>> = Vec::new();
            if let Some(last) = &last {
                ops.push(pages::op(last.id(), pages::LINK, &id.0.to_le_bytes()));
                pins.push(last.clone());
            }
            pins.extend([pin.clone(), bitmap]);
            self.change_own(&pins, &ops).await?;
            Ok::<_, StorageError>(pin)
        };
        match made.await {
            Ok(pin) => {
                self.state.lock().directory.push(pin);
                Ok(id)
            }
            Err(err) => {
                self.give_back(&taken);
                Err(err)
            }
        }
    }

    /// Takes an empty slot for `tree`, growing the directory if need be.
    async fn take_slot(&self, tree: TreeId) -> Result<(Arc<OwnedPin>, Seat), StorageError> {
        let entry = Entry { tree, root: PageId(0), kind: TreeKind::Logged, state: TreeState::Dropping };
        let _turn = self.growing_directory.take().await;
        loop {
            let last = {
                let mut state = self.state.lock();
                let taken: std::collections::BTreeSet<(usize, u32)> =
                    state.trees.values().map(|seat| (seat.page, seat.slot)).collect();
                // Newest page first: that is where room is.
                let free = (0..state.directory.len())
                    .rev()
                    .find_map(|page| (0..ENTRIES).find(|slot| !taken.contains(&(page, *slot))).map(|s| (page, s)));
                if let Some((page, slot)) = free {
                    let seat = Seat { entry, page, slot };
                    // No descent finds it by `root` until it is live.
                    let before = state.trees.insert(tree, seat);
                    assert!(before.is_none(), "SPC-8: tree {tree} has a place in the directory already");
                    return Ok((state.directory[page].clone(), seat));
                }
                state.directory.last().cloned()
            };
            self.new_directory_page(last).await?;
        }
    }

    /// Creates an empty tree within a transaction. The entry goes to the transaction's undo.
    ///
    /// # Errors
    /// No space, a failed file operation, poisoned.
    pub async fn create_tree(&self, log: &mut TxnLog, kind: TreeKind) -> Result<(TreeId, UndoEntry), StorageError> {
        if kind != TreeKind::Logged {
            return Err(StorageError::Invalid("only logged trees can be created".into()));
        }
        let tree = {
            let mut state = self.state.lock();
            state.tree_high_water += 1; // SPC-8
            TreeId(state.tree_high_water)
        };
        let made = self.create_seated(log, tree, kind).await;
        if made.is_err() {
            self.state.lock().trees.remove(&tree);
        }
        Ok((tree, made?))
    }

    async fn create_seated(&self, log: &mut TxnLog, tree: TreeId, kind: TreeKind) -> Result<UndoEntry, StorageError> {
        let pool = self.pool()?;
        let (directory, seat) = self.take_slot(tree).await?;
        let mut reservation = self.reserve_for(1, Purpose::Change).await?;
        let root = reservation.pages()[0];
        let root_pin = OwnedPin::new_page(&pool, root).await?;
        let (init_op, init) = btree::root_init(tree, root);
        let mut credit = self.wal.credit(Purpose::Change, 512 + init.len() + UNDO_BYTES).await?;
        let entry = Entry { tree, root, kind, state: TreeState::Live };
        let put = pages::op(directory.id(), pages::PUT, &entry.payload(seat.slot));
        let key = tree.0.to_be_bytes();
        let before = Before::Absent;
        let undo = RowUndo { tree: DIRECTORY_TREE, key: &key, tag: Tag::SETTLED, prev_tag: Tag::SETTLED, before };
        let undo_next = log.last_lsn;

        let mut root_page = root_pin.latch();
        let mut directory_page = directory.latch();
        let bitmaps = reservation.latch(1);
        root_page.will_change();
        directory_page.will_change();
        let set = bitmaps.ops()[0];
        let parts: [[&[u8]; 1]; 3] = [[&init], [put.payload()], [set.payload()]];
        let ops = [
            PageOp { page: root, op: init_op, payload: &parts[0] },
            PageOp { page: put.page, op: put.op, payload: &parts[1] },
            PageOp { page: set.page, op: set.op, payload: &parts[2] },
        ];
        let record = Record { kind: RecordKind::Row, txn: log.txn, undo_next, undo: Some(undo), ops: &ops, body: &[] };
        self.wal.set_aside(&mut credit, log, UNDO_BYTES);
        let range = self.wal.append(&mut credit, &record);
        let view = RecordView { kind: RecordKind::Row, lsn: range, undo: Some(undo) };
        btree::TreeRedo.redo(root_page.page(), init_op, &init, &view).expect("a root is made on any page");
        pages::apply(directory_page.page(), put.op, put.payload()).expect("SPC-1: the entry fits its page");
        root_page.changed(range.end);
        directory_page.changed(range.end);
        bitmaps.commit(range);
        log.appended(range);
        drop((root_page, directory_page));
        self.set_seat(Seat { entry, ..seat });
        Ok(UndoEntry {
            lsn: range.start,
            undo_next,
            tree: DIRECTORY_TREE,
            key: key.into(),
            tag: Tag::SETTLED,
            prev_tag: Tag::SETTLED,
            before: BeforeImage::Absent,
        })
    }

    fn set_seat(&self, seat: Seat) {
        let before = self.state.lock().trees.insert(seat.entry.tree, seat);
        assert!(
            before.is_some_and(|before| (before.page, before.slot) == (seat.page, seat.slot)),
            "SPC-8: tree {} changes its place in the directory",
            seat.entry.tree
        );
    }

    fn seat(&self, tree: TreeId) -> Option<(Seat, Arc<OwnedPin>)> {
        let state = self.state.lock();
        let seat = *state.trees.get(&tree)?;
        Some((seat, state.directory[seat.page].clone()))
    }

    /// Undoes the creation of a tree: marks it as dropping, in a compensation record.
    ///
    /// # Errors
    /// Poisoned; an entry that is no creation.
    pub async fn undo_create(&self, log: &mut TxnLog, entry: &UndoEntry) -> Result<LsnRange, StorageError> {
        let tree = entry.key.as_ref().try_into().map(u64::from_be_bytes).map(TreeId);
        let tree = tree.map_err(|_| StorageError::Invalid("a directory key that is no tree id".into()))?;
        let credit = self.wal.credit_for_undo(UNDO_BYTES).await?;
        let (kind, undo_next) = (RecordKind::Compensation, entry.undo_next);
        let range = self.mark_dropping(tree, credit, |ops| Record {
            kind,
            txn: log.txn,
            undo_next,
            undo: None,
            ops,
            body: &[],
        })?;
        self.wal.undo_spent(log, UNDO_BYTES);
        log.last_lsn = undo_next;
        Ok(range)
    }

    /// Marks a tree as dropping, in a structure record; nothing happens if it is so already.
    ///
    /// # Errors
    /// Poisoned; no such tree.
    pub async fn begin_drop(&self, tree: TreeId) -> Result<(), StorageError> {
        match self.seat(tree) {
            Some((seat, _)) if seat.entry.state == TreeState::Live => {}
            _ => return Ok(()),
        }
        let credit = self.wal.credit(Purpose::Change, UNDO_BYTES).await?;
        self.mark_dropping(tree, credit, |ops| Record::structure(ops))?;
        Ok(())
    }

    fn mark_dropping(
        &self,
        tree: TreeId,
        mut credit: crate::seams::Credit<'_>,
        record: impl for<'r> FnOnce(&'r [PageOp<'r>]) -> Record<'r>,
    ) -> Result<LsnRange, StorageError> {
        let (seat, pin) = self.seat(tree).ok_or(StorageError::NoSuchTree(tree))?;
        let op = pages::op(pin.id(), pages::STATE, &pages::pair(seat.slot, TreeState::Dropping as u32));
        let parts = [op.payload()];
        let ops = [PageOp { page: op.page, op: op.op, payload: &parts }];
        let mut page = pin.latch();
        page.will_change();
        let range = self.wal.append(&mut credit, &record(&ops));
        pages::apply(page.page(), op.op, op.payload()).expect("SPC-1: the slot exists");
        page.changed(range.end);
        drop(page);
        self.set_seat(Seat { entry: Entry { state: TreeState::Dropping, ..seat.entry }, ..seat });
        Ok(range)
    }

    /// Frees pages that nothing refers to any more, in a structure record; with `last_of`, also removes the entry of
    /// the tree whose last page is among them.
    ///
    /// # Errors
    /// Poisoned.
    pub async fn free_pages(&self, freed: &[PageId], last_of: Option<TreeId>) -> Result<(), StorageError> {
        let bytes = 256 + freed.len() * 24;
        let mut credit = self.wal.credit(Purpose::Change, bytes).await?;
        let seat = last_of.and_then(|tree| self.seat(tree));
        let mut directory = seat.as_ref().map(|(_, pin)| pin.latch());
        let mut freeing = super::reservation::Freeing::new(self);
        let bitmaps = freeing.latch(freed);
        let remove = seat.as_ref().map(|(seat, pin)| pages::op(pin.id(), pages::REMOVE, &seat.slot.to_le_bytes()));
        let all: Vec<_> = remove.iter().chain(bitmaps.ops()).copied().collect();
        let payloads: Vec<[&[u8]; 1]> = all.iter().map(|op| [op.payload()]).collect();
        let ops: Vec<PageOp<'_>> =
            all.iter().zip(&payloads).map(|(op, p)| PageOp { page: op.page, op: op.op, payload: p }).collect();
        if let Some(page) = &mut directory {
            page.will_change();
        }
        let range = self.wal.append(&mut credit, &Record::structure(&ops));
        if let (Some(page), Some(op)) = (&mut directory, &remove) {
            pages::apply(page.page(), op.op, op.payload()).expect("SPC-1: the slot exists");
            page.changed(range.end);
        }
        bitmaps.commit(range);
        drop(directory);
        if let Some(tree) = last_of {
            self.state.lock().trees.remove(&tree);
        }
        Ok(())
    }

    /// Every tree, by id.
    pub fn trees(&self) -> Vec<Entry> {
        // A slot that is being filled has no root yet.
        self.state.lock().trees.values().map(|seat| seat.entry).filter(|entry| entry.root.0 != 0).collect()
    }

    /// A tree's entry.
    pub fn tree(&self, tree: TreeId) -> Option<Entry> {
        self.seat(tree).map(|(seat, _)| seat.entry).filter(|entry| entry.root.0 != 0)
    }
}
