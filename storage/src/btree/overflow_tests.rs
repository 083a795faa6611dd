//! Tests of overflow chains: the longest chains, and that no page of a chain changes after it was written (BTR-12).

use super::tree_tests::{contents, put, tree_of};
use super::{Edit, Lookup, RowBuf, Tree};
use crate::buffer::page::kind;
use crate::ids::{Lsn, PageId, Tag, TxnId};
use crate::record::TxnLog;
use crate::seams::PageLog;
use crate::testing::Rig;
use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::MemVfs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// So many bytes in which every place can be told from every other.
fn value(len: usize, seed: u64) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).map(|place| (place << 8 | seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(len);
    bytes
}

/// Puts a long value; gives the reference that it replaced.
async fn put_long(tree: &Tree, log: &mut TxnLog, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let reference = tree.write_overflow(log, Tag::SETTLED, value, &mut |_, _| {}).await.unwrap();
    let edit = Edit::Put { value: (&reference[..]).into(), tag: Tag::SETTLED, ghost: false, overflow: true };
    let old = tree.edit(log, key, reference.len(), |leaf| {
        (edit, leaf.row.filter(|row| row.overflow).map(|row| row.value.to_vec()))
    });
    old.await.unwrap().0
}

#[test]
fn a_value_of_100_mb_goes_through_a_pool_of_half_a_megabyte() {
    const LEN: usize = 100_000_000;
    let rig = Arc::new(Rig::in_memory(64));
    let stop = Arc::new(AtomicBool::new(false));
    let cleaner = {
        let (rig, stop) = (rig.clone(), stop.clone());
        spawn_thread("cleaner", move || block_on(rig.pool.run_cleaner(|| stop.load(SeqCst))).unwrap()).unwrap()
    };
    block_on(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        let mut out = RowBuf::default();
        for seed in [1, 2] {
            let long = value(LEN, seed);
            let old = put_long(&tree, &mut log, b"long", &long).await;
            // The log of tests keeps every record.
            rig.log.records.lock().clear();
            assert!(matches!(tree.get(b"long", &mut out).await.unwrap(), Lookup::Found(_)));
            assert!(out.row().value == long, "round {seed}: {} bytes, not the same", out.row().value.len());
            if let Some(old) = old {
                assert_eq!(tree.free_overflow(&old).await.unwrap(), LEN.div_ceil(super::overflow::CHUNK_BYTES));
            }
            let report = tree.check().await.unwrap();
            assert_eq!(report.pages, rig.space.used(), "round {seed}");
        }
        let (last, _) = tree
            .edit(&mut log, b"long", 0, |leaf| (Edit::Remove, leaf.row.map(|row| row.value.to_vec())))
            .await
            .unwrap();
        tree.free_overflow(&last.unwrap()).await.unwrap();
        assert_eq!(rig.space.used().len(), 1, "the root alone");
        let counters = rig.pool.counters().view();
        assert_eq!(counters.io_under_latch, 0);
        assert!(counters.evictions > 20_000, "{counters:?}");
    });
    stop.store(true, SeqCst);
    cleaner.join().unwrap();
}

/// BTR-12: whatever is done to the row, its leaf and its tree, until the chain is freed.
#[test]
fn the_pages_of_a_chain_stay_as_they_were_formatted() {
    let rig = Rig::in_memory(2000);
    block_on(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        let long = value(3_000_000, 7);
        assert_eq!(put_long(&tree, &mut log, b"long", &long).await, None);
        let reference = {
            let mut found = None;
            tree.edit(&mut log, b"long", 0, |leaf| {
                found = leaf.row.map(|row| row.value.to_vec());
                (Edit::Keep, ())
            })
            .await
            .unwrap();
            found.unwrap()
        };
        let pages = tree.overflow_pages(&reference).await.unwrap();
        let copy = |page: PageId| {
            let seen = rig.pool.read(page).expect("in memory");
            let mut bytes = Vec::new();
            seen.page.append_to(0, crate::buffer::PAGE_BYTES, &mut bytes);
            bytes
        };
        let before: Vec<_> = pages.iter().map(|page| copy(*page)).collect();
        // Its leaf splits, the row is replaced and put back, leaves merge, everything is written.
        for number in 0..400_u64 {
            put(&tree, &mut log, &number.to_be_bytes(), &[1; 500], 0).await;
        }
        assert!(put_long(&tree, &mut log, b"long", &value(100_000, 8)).await.is_some());
        for number in 0..400_u64 {
            tree.edit(&mut log, &number.to_be_bytes(), 0, |_| (Edit::Remove, ())).await.unwrap();
        }
        assert!(tree.tidy().await.unwrap().merged > 0);
        rig.log.wait_durable(rig.log.end_lsn()).await.unwrap();
        rig.pool.write_all().await.unwrap();
        for (page, before) in pages.iter().zip(&before) {
            // The checksum is put in on the way to the disk only.
            assert!(copy(*page)[4..] == before[4..], "BTR-12: page {page} of the chain has changed");
        }
        assert!(tree.read_chain(&reference).await.unwrap() == long);
        let redone = rig.redone(&MemVfs::new(), 2000, Lsn::MAX).await;
        assert!(tree_of(&redone).read_chain(&reference).await.unwrap() == long, "BTR-5: redo made another chain");
        assert_eq!(tree.free_overflow(&reference).await.unwrap(), pages.len());
        assert!(pages.iter().all(|page| rig.pool.read(*page).is_none_or(|page| page.page.kind() == kind::FREE)));
        assert!(tree.read_chain(&reference).await.is_err(), "freed, and still read");
        let keys = [b"long".to_vec()];
        assert_eq!(contents(&tree, keys.iter()).await[&keys[0]], value(100_000, 8));
    });
}
