//! What the cleaner writes, when, and with how many calls.

use super::super::in_place::runs_of;
use super::*;
use crate::btree::{Edit, Tree};
use crate::buffer::whole;
use crate::ids::{Tag, TxnId};
use crate::record::TxnLog;
use crate::testing::{Rig, now};
use clearway_base::vfs::{FileKind, MemVfs, OpenHow, Vfs, VfsFile};
use std::path::Path;
use std::sync::Arc;

async fn put(tree: &Tree, log: &mut TxnLog, key: u64, value: &[u8]) {
    tree.edit(log, &key.to_be_bytes(), value.len(), |_| (Edit::put(value, Tag(0)), ())).await.expect("a row");
}

/// A tree of so many rows of 200 bytes.
async fn filled(rig: &Rig, id: u64, rows: u64) -> (Tree, TxnLog) {
    let (tree, mut log) = (rig.tree(id).await, TxnLog::new(TxnId(1)));
    for key in 0..rows {
        put(&tree, &mut log, key, &[7; 200]).await;
    }
    (tree, log)
}

#[test]
fn pages_side_by_side_go_out_with_one_write() {
    let vfs = MemVfs::new();
    now(async {
        let rig = Rig::new(&vfs, 512).await;
        let (tree, mut log) = filled(&rig, 1, 4_000).await;
        rig.pool.write_all().await.expect("written");
        let counted = rig.pool.counters().view();
        let (pages, writes) = (counted.pages_written, counted.write_runs);
        assert!(pages > 100 && 4 * writes <= pages, "{pages} pages by {writes} writes");
        // Every third leaf or so alone, then.
        for key in (0..4_000).step_by(100) {
            put(&tree, &mut log, key, &[8; 200]).await;
        }
        rig.pool.write_all().await.expect("written");
        let then = rig.pool.counters().view();
        assert!(then.write_runs - writes > 20, "pages that lie apart by {} writes", then.write_runs - writes);
        // BUF-19: each page stands in its place.
        let file = vfs.open(Path::new("/pages"), OpenHow::create(FileKind::Data)).await.expect("the pages");
        for page in rig.space.used() {
            let at = u64::from(page.0) * PAGE_BYTES as u64;
            let bytes = file.read_at(at, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await.expect("read");
            let lsn = rig.pool.read(page).expect("in memory").page.lsn();
            assert_eq!(whole(&bytes), Some((page, lsn)), "BUF-19");
        }
    });
}

#[test]
fn a_write_ends_where_the_next_page_lies_elsewhere() {
    let vfs = MemVfs::new();
    let open =
        |name: &str| now(async { vfs.open(Path::new(name), OpenHow::create(FileKind::Data)).await }).expect("a file");
    // Pages 0 to 99 in one file, those from 100 on in another.
    let files: [Arc<dyn VfsFile>; 2] = [open("/0"), open("/1")];
    let locate = |page: PageId| {
        let (file, at) = (page.0 / 100, u64::from(page.0 % 100));
        Ok((files[file as usize].clone(), at * PAGE_BYTES as u64))
    };
    let pages: Vec<u32> = [3, 4, 5, 7, 98, 99, 100, 101].into_iter().chain(110..150).collect();
    let runs = runs_of(pages.iter().map(|page| PageId(*page)), locate).expect("places");
    let found: Vec<(u64, usize)> =
        runs.iter().map(|run| (run.offset / PAGE_BYTES as u64, run.bytes().len() / PAGE_BYTES)).collect();
    assert_eq!(found, [(3, 3), (7, 1), (98, 2), (0, 2), (10, 32), (42, 8)], "BUF-19");
    assert!(Arc::ptr_eq(&runs[2].file, &files[0]) && Arc::ptr_eq(&runs[3].file, &files[1]));
    assert_eq!(runs[4].bytes(), 8 * PAGE_BYTES..40 * PAGE_BYTES, "behind those of the runs before");
    assert_eq!(files_of(&runs).len(), 2);
}

/// Runs the cleaner as long as it has something to do.
async fn clean(rig: &Rig) {
    while rig.pool.clean_if_wanted().await.expect("cleaned") > 0 {}
}

#[test]
fn pages_that_are_changed_again_and_again_are_not_written_while_few_are_dirty() {
    let rig = Rig::in_memory(64);
    now(async {
        let (tree, mut log) = filled(&rig, 1, 700).await;
        let dirty = rig.pool.dirty_pages();
        assert!(dirty > 16 && dirty < rig.pool.dirty_goal(), "{dirty} dirty pages");
        for round in 0..50 {
            for key in (0..700).step_by(20) {
                put(&tree, &mut log, key, &[round; 200]).await;
            }
            clean(&rig).await;
        }
        assert_eq!(rig.pool.counters().view().pages_written, 0, "BUF-20");
        // Beyond the goal they go out, down to it and not further.
        let (tree, mut log) = filled(&rig, 2, 600).await;
        assert!(rig.pool.dirty_pages() > rig.pool.dirty_goal());
        clean(&rig).await;
        let left = rig.pool.dirty_pages();
        assert!(left <= rig.pool.dirty_goal() && left + 8 >= rig.pool.dirty_goal(), "{left} dirty pages left");
        put(&tree, &mut log, 5, &[1; 200]).await;
    });
}

#[test]
fn frames_are_won_from_pages_that_nothing_uses() {
    let rig = Rig::in_memory(64);
    now(async {
        // More leaves than there are frames.
        let (large, mut log) = (rig.tree(1).await, TxnLog::new(TxnId(1)));
        for key in 0..4_000 {
            put(&large, &mut log, key, &[7; 200]).await;
            if key % 100 == 0 {
                clean(&rig).await;
            }
        }
        rig.pool.write_all().await.expect("written");
        let (used, mut own) = filled(&rig, 2, 250).await;
        clean(&rig).await;
        let mut out = crate::btree::RowBuf::default();
        let before = rig.pool.counters().view();
        let mut key = 0;
        for round in 0..60 {
            for own_key in (0..250).step_by(10) {
                put(&used, &mut own, own_key, &[round; 200]).await;
            }
            // Rows that come from disk, two leaves' a round, in frames for which others make room.
            for _ in 0..2 {
                key = (key + 337) % 4_000;
                large.get(&u64::to_be_bytes(key), &mut out).await.expect("read");
            }
            clean(&rig).await;
        }
        let during = rig.pool.counters().view();
        assert!(during.evictions > before.evictions, "{} evictions", during.evictions);
        assert_eq!(during.pages_written, before.pages_written, "BUF-20: pages in use were written");
        // What is dirty and not used any more goes out, and gives its frames.
        let dirty = rig.pool.dirty_pages();
        for key in (0..4_000).step_by(7).cycle().take(2_000) {
            large.get(&u64::to_be_bytes(key), &mut out).await.expect("read");
            clean(&rig).await;
        }
        let left = rig.pool.dirty_pages();
        assert!(left < dirty / 2, "BUF-20: {left} of {dirty} pages are still dirty");
        put(&large, &mut log, 5, &[1; 200]).await;
    });
}

#[test]
fn the_last_frames_come_from_pages_that_are_in_use() {
    let rig = Rig::in_memory(64);
    now(async {
        let (large, _) = filled(&rig, 1, 1_000).await;
        rig.pool.write_all().await.expect("written");
        let (used, mut own) = filled(&rig, 2, 500).await;
        // Everything but the dirty pages is pinned, and those were just used.
        let mut pins = Vec::new();
        for page in rig.space.used() {
            if let Some(pin) = rig.pool.try_pin(page).filter(|pin| !rig.pool.is_dirty(&pin.read())) {
                pins.push(pin);
            }
        }
        while rig.pool.free.take().is_some() {}
        for key in 0..500 {
            put(&used, &mut own, key, &[3; 200]).await;
        }
        assert!(!rig.pool.wants_cleaning() && rig.pool.frame_now().is_none());
        for key in 0..500 {
            put(&used, &mut own, key, &[4; 200]).await;
        }
        clean(&rig).await;
        assert!(rig.pool.free.len() > 0, "BUF-20: a task would wait for a frame for ever");
        drop((large, pins));
    });
}
