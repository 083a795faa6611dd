//! Read-ahead over the leaves of a tree that was filled in the order of its keys, in a pool that begins empty.

use super::*;
use crate::btree::{Direction, Edit, KeyRange, LeafCopy, Tree};
use crate::buffer::{DoubleWrite, Pool, PoolOptions};
use crate::ids::{Tag, TreeId, TxnId};
use crate::record::TxnLog;
use crate::testing::{Rig, now};
use clearway_base::vfs::{FileKind, MemVfs, OpenHow, Vfs};
use std::path::Path;
use std::task::{Context, Waker};

const ROWS: u64 = 4_000;

/// A tree of [`ROWS`] rows on disk, and a pool of so many frames that has none of its pages.
fn cold(vfs: &MemVfs, frames: usize) -> (Rig, Arc<Pool>, Tree) {
    let rig = now(Rig::new(vfs, 512));
    let pool = now(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        for i in 0..ROWS {
            tree.edit(&mut log, &i.to_be_bytes(), 200, |_| (Edit::put(&[7; 200], Tag(0)), ())).await.expect("a row");
        }
        rig.pool.write_all().await.expect("the pages are written");
        let twins = vfs.open(Path::new("/twins"), OpenHow::create(FileKind::Data)).await.expect("the twins");
        let options = PoolOptions { frames, batch_pages: 8.min(frames / 4), free_target: 4, huge_pages: false };
        Pool::new(options, rig.log.clone(), rig.space.clone(), DoubleWrite::new(twins))
    });
    let tree = Tree::new(TreeId(1), pool.clone(), rig.mark.clone());
    (rig, pool, tree)
}

/// The keys of all rows in the order in which a scan gives them.
fn scanned(tree: &Tree, direction: Direction) -> Vec<u64> {
    now(async {
        let mut cursor = tree.cursor(KeyRange::all(), direction);
        let mut keys = Vec::new();
        while let Some(leaf) = cursor.next_leaf().await.expect("a leaf") {
            keys.extend(leaf.iter().map(|(key, _)| u64::from_be_bytes(key.try_into().expect("eight bytes"))));
        }
        keys
    })
}

fn state(pool: &Pool, page: u32) -> State {
    Word(pool.entry(PageId(page)).load(Relaxed)).state()
}

#[test]
fn pages_side_by_side_come_with_one_read() {
    let vfs = MemVfs::new();
    for (direction, frames) in [(Direction::Forward, 512), (Direction::Backward, 512), (Direction::Forward, 64)] {
        let (_rig, pool, tree) = cold(&vfs, frames);
        let mut keys = scanned(&tree, direction);
        if direction == Direction::Backward {
            keys.sort_unstable(); // within a leaf they come in order
        }
        assert!(keys.into_iter().eq(0..ROWS), "each row once, in order");
        let counted = pool.counters().view();
        let (pages, reads) = (counted.ahead_reads, counted.ahead_runs);
        assert!(pages > 60 && 6 * reads <= pages, "{pages} pages by {reads} reads in a pool of {frames}");
    }
}

#[test]
fn leaves_of_many_keys_come_together() {
    let vfs = MemVfs::new();
    let (_rig, pool, tree) = cold(&vfs, 512);
    // Some 110 leaves, of which these keys are in forty.
    let keys: Vec<[u8; 8]> = (0..40).map(|n| (n * 97u64).to_be_bytes()).collect();
    let (mut copy, mut fetched) = (LeafCopy::default(), 0);
    for from in 0..keys.len() {
        let key = |n: usize| keys.get(from + n).map(|key| &key[..]);
        while tree.try_pick(key, &mut copy).is_none() {
            let missing = tree.missing_leaves(key).expect("a page is missing");
            now(tree.fetch_leaves(missing)).expect("the pages");
            fetched += 1;
        }
        assert!(tree.missing_leaves(key).is_none(), "the leaf of the first key is there");
    }
    // The root, its children if it has any, and then all leaves.
    assert!(fetched <= 3, "{fetched} times");
    assert!(pool.counters().view().ahead_reads >= 30);
}

#[test]
fn a_run_goes_around_what_is_in_memory_and_leaves_out_what_is_damaged() {
    let vfs = MemVfs::new();
    let (rig, pool, _tree) = cold(&vfs, 512);
    now(async {
        pool.fetch(PageId(20), ReadReason::Path).await.expect("a page");
        let file = vfs.open(Path::new("/pages"), OpenHow::create(FileKind::Data)).await.expect("the pages");
        let mut spoilt = IoBuf::with_capacity(PAGE_BYTES);
        spoilt.extend_from_slice(&[9; PAGE_BYTES]);
        file.write_at(30 * PAGE_BYTES as u64, spoilt).await.expect("damage");
        let others: Vec<PageId> = (11..=40).map(PageId).collect();
        pool.fetch_all(Miss { page: PageId(10), by: None }, &others).await.expect("the missing page");
    });
    for page in 10..=40 {
        let wanted = if page == 30 { State::Absent } else { State::Resident };
        assert_eq!(state(&pool, page), wanted, "page {page}");
    }
    assert_eq!(pool.counters().view().ahead_runs, 2, "on either side of page 20");
    let last = u32::try_from(rig.space.used().len()).expect("few pages");
    let beyond: Vec<PageId> = (last - 1..last + 20).map(PageId).collect();
    now(pool.fetch_all(Miss { page: PageId(last - 2), by: None }, &beyond)).expect("the missing page");
    assert_eq!((state(&pool, last), state(&pool, last + 5)), (State::Resident, State::Absent), "where the file ends");
}

#[test]
fn a_run_that_is_given_up_leaves_no_page_on_its_way() {
    let vfs = MemVfs::new();
    let (_rig, pool, _tree) = cold(&vfs, 64);
    let others: Vec<PageId> = (2..=14).map(PageId).collect();
    let claimed = pool.claim(&others).expect("free frames");
    assert_eq!(claimed.0.len(), 13);
    assert_eq!((state(&pool, 2), state(&pool, 14)), (State::Loading, State::Loading));
    // Another task that wants one of them waits for it, and reads it by itself when it is given up.
    let mut other = std::pin::pin!(pool.fetch(PageId(9), ReadReason::Path));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(other.as_mut().poll(&mut cx).is_pending());
    drop(claimed);
    assert_eq!(state(&pool, 14), State::Absent, "BUF-13");
    now(other).expect("a page");
    assert_eq!(state(&pool, 9), State::Resident);
}

#[test]
fn no_task_waits_for_a_frame_with_pages_on_their_way() {
    let vfs = MemVfs::new();
    let (_rig, pool, _tree) = cold(&vfs, 16);
    let first: Vec<PageId> = (2..=40).map(PageId).collect();
    let claimed = pool.claim(&first).expect("free frames");
    assert!(claimed.0.len() <= 16, "BUF-18: as many as there are frames, and no wait for more");
    assert!(pool.claim(&first[claimed.0.len()..]).is_none(), "BUF-18: none is free");
    now(pool.read_claimed(claimed)).expect("they are read");
    assert_eq!(state(&pool, 2), State::Resident);
}
