//! Freed pages: a reader that still arrives at a freed page is not misled, and a tree that is half freed is not taken for a tree that is
//! gone.

use clearway_base::testkit::{Sim, yield_now};
use clearway_base::vfs::sim::SimDisk;
use clearway_storage::btree::{Direction, Edit, KeyRange, Lookup, RowBuf};
use clearway_storage::buffer::ReadReason;
use clearway_storage::error::StorageError;
use clearway_storage::ids::{PageId, TreeId, TxnId};
use clearway_storage::record::TxnLog;
use clearway_tests::crash::sweep::Running;
use clearway_tests::crash::txns::Txn;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Six of them fill a leaf.
const VALUE: [u8; 1200] = [1; 1200];

fn key(row: usize) -> Vec<u8> {
    format!("{row:05}").into_bytes()
}

async fn filled_tree(running: &Running, rows: usize) -> Result<TreeId, StorageError> {
    let mut txn = Txn::begin(&running.store, &running.book);
    let tree = txn.create_tree().await?;
    for row in 0..rows {
        txn.write(tree, &key(row), Some(&VALUE)).await?;
    }
    txn.commit(|_| {}).await?;
    Ok(tree)
}

/// The row whose leaf lies last in the files, and that leaf.
async fn last_leaf(running: &Running, tree: TreeId, rows: usize) -> Result<(usize, PageId), StorageError> {
    let mut last = (0, PageId(0));
    for row in 0..rows {
        let found = running.store.tree(tree).get(&key(row), &mut RowBuf::default()).await?;
        if found.seen().page > last.1 {
            last = (row, found.seen().page);
        }
    }
    Ok(last)
}

/// Deletes all rows; merges leave a single leaf.
async fn empty_tree(running: &Running, tree: TreeId, rows: usize) -> Result<(), StorageError> {
    let rows: Vec<usize> = (0..rows).collect();
    for some in rows.chunks(30) {
        let mut txn = Txn::begin(&running.store, &running.book);
        for row in some {
            txn.write(tree, &key(*row), None).await?;
        }
        txn.commit(|_| {}).await?;
        running.store.tree(tree).tidy().await?;
    }
    Ok(())
}

async fn is_waiting<F: Future>(future: &mut Pin<Box<F>>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

/// BUF-17: three descents have read a pointer and wait for a frame; meanwhile the leaf is merged away and cut off its file.
#[test]
fn a_page_that_was_cut_off_its_file_misleads_nobody() {
    const OTHERS: usize = 336;
    const ROWS: usize = 240;
    clearway_base::for_each_seed!(2, |seed| {
        let disk = SimDisk::new(seed);
        let run = Sim::new(seed).block_on(async move {
            let (running, _) = Running::open(&disk).await?;
            let store = &running.store;
            let other = filled_tree(&running, OTHERS).await?;
            let tree = filled_tree(&running, ROWS).await?;
            let (row, leaf) = last_leaf(&running, tree, ROWS).await?;
            store.checkpoint().await?;
            // Every frame holds a page that stays: there is none for the leaf.
            let (mut pins, mut pinned) = (Vec::new(), BTreeSet::new());
            let mut pages = store.space().allocated();
            pages.retain(|page| *page != leaf);
            pages.sort_by_key(|page| page.0.abs_diff(leaf.0));
            pages.splice(0..0, store.space().own_pages());
            pages.splice(0..0, store.space().trees().iter().map(|entry| entry.root));
            for page in pages {
                if pins.len() < store.pool().frames() && pinned.insert(page) {
                    pins.push(store.pool().pin(page).await?);
                }
            }
            assert_eq!((pins.len(), store.pool().read(leaf).is_none()), (store.pool().frames(), true));
            let handle = store.tree(tree);
            let (mut buf, mut log, key) = (RowBuf::default(), TxnLog::new(TxnId(1 << 40)), key(row));
            let mut cursor = handle.cursor(KeyRange::new(key.clone(), None), Direction::Forward);
            let mut reading = Box::pin(handle.get(&key, &mut buf));
            let mut scanning = Box::pin(cursor.next_leaf());
            let mut changing =
                Box::pin(handle.edit(&mut log, &key, 10, |leaf| (Edit::Keep, leaf.row.is_none_or(|row| row.ghost))));
            assert!(
                is_waiting(&mut reading).await && is_waiting(&mut scanning).await && is_waiting(&mut changing).await
            );
            drop(pins);
            empty_tree(&running, tree, ROWS).await?;
            for _ in 0..8 {
                store.space().release_withheld();
                store.checkpoint().await?;
            }
            // Others need its frame.
            last_leaf(&running, other, OTHERS).await?;
            let gone = store.pool().fetch(leaf, ReadReason::Path).await;
            assert!(
                matches!(gone, Err(StorageError::Corruption(_))),
                "the leaf is to be cut off its file: {gone:?}, {:?}",
                store.space().allocated()
            );
            let found = reading.await?;
            assert!(matches!(found, Lookup::Absent(_)) || buf.row().ghost);
            assert!(scanning.await?.is_some_and(|leaf| leaf.iter().all(|(_, row)| row.ghost)));
            assert!(changing.await?.0);
            running.close().await
        });
        run.expect("nothing stops it").unwrap_or_else(|err| panic!("{err}"));
    });
}

/// A tree that is half freed when the database stops still is to be freed.
#[test]
fn a_stopped_database_does_not_say_that_nothing_is_left_to_free() {
    clearway_base::for_each_seed!(2, |seed| {
        let disk = SimDisk::new(seed);
        let run = Sim::new(seed).block_on(async move {
            let (running, _) = Running::open(&disk).await?;
            let store = &running.store;
            let tree = filled_tree(&running, 200).await?;
            let mut txn = Txn::begin(store, &running.book);
            txn.drop_tree(tree);
            txn.commit(|_| {}).await?;
            store.drops_changed();
            let pages = store.space().allocated().len();
            while store.space().allocated().len() == pages {
                yield_now().await;
            }
            assert!(store.space().tree(tree).is_some(), "it is half freed");
            store.wal().poison("somebody stops it");
            let step = store.drop_step().await;
            assert!(matches!(step, Err(StorageError::Poisoned(_))), "{step:?}");
            Ok::<_, StorageError>(())
        });
        run.expect("nothing stops it").unwrap_or_else(|err| panic!("{err}"));
    });
}
