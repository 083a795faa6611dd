//! Trees that are loaded in order and trees that shrink.

use super::Edit;
use super::image::{Frame, Image, NodeRow, Rows, rows_that_fit};
use super::node::Node;
use super::tree_tests::{Model, contents, put, tree_of};
use crate::ids::{Lsn, Tag, TxnId};
use crate::record::TxnLog;
use crate::testing::Rig;
use clearway_base::for_each_seed;
use clearway_base::sync::block_on;
use clearway_base::testkit::Rng;
use clearway_base::vfs::MemVfs;
use std::sync::atomic::Ordering::SeqCst;

/// Seven rows of a kilobyte fill a leaf; the fence that the last one gets when it is left behind must not cut it in two.
#[test]
fn long_rows_put_in_order_fill_their_leaves() {
    let rig = Rig::in_memory(2000);
    block_on(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        for i in 0_u64..5000 {
            put(&tree, &mut log, &((i << 20) | (i * 7919 % 1_000_000)).to_be_bytes(), &[1; 1000], 0).await;
        }
        let report = tree.check().await.unwrap();
        assert!(report.leaves <= 5000 / 7 + 1, "{} leaves for 5000 rows", report.leaves);
    });
}

/// A leaf that is full but for some bytes, whose rows are changed again and again: it stays one.
#[test]
fn changes_that_do_not_grow_rows_do_not_split_a_full_leaf() {
    let rig = Rig::in_memory(100);
    block_on(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        let mut load = tree.bulk_load();
        for i in 0..500_u64 {
            load.push(&i.to_be_bytes(), &[1; 100]).await.unwrap();
        }
        load.finish().await.unwrap();
        let before = tree.check().await.unwrap().leaves;
        for round in 1..20_u8 {
            for i in 0..500_u64 {
                put(&tree, &mut log, &i.to_be_bytes(), &[round; 100], 0).await;
            }
        }
        assert_eq!(tree.check().await.unwrap().leaves, before);
    });
}

/// Rows of eighteen bytes and a prelude of one, at random keys: at rest at most six bytes more than the eighteen. Keys of a
/// quarter of the range, so that a leaf shares as much of them as one of 400,000 rows from the whole range does.
#[test]
fn narrow_rows_at_random_keys_take_six_bytes_more_at_rest() {
    let rig = Rig::in_memory(2000);
    block_on(async {
        let tree = rig.tree(1).await;
        let (mut log, mut rng) = (TxnLog::new(TxnId(1)), Rng::new(1));
        let rows = 100_000;
        for _ in 0..rows {
            put(&tree, &mut log, &(rng.next_u64() >> 2).to_be_bytes(), &[1; 11], 0).await;
        }
        let bytes = |report: &super::TreeReport| (report.pages.len() * 8192) as f64 / report.rows as f64;
        let before = tree.check().await.unwrap();
        while tree.tidy().await.unwrap().moved > 0 {}
        let after = tree.check().await.unwrap();
        assert_eq!(after.rows, rows);
        assert!(bytes(&after) <= 24.0, "{} bytes a row, {} before", bytes(&after), bytes(&before));
    });
}

#[test]
fn narrow_rows_in_key_order_take_two_bytes_more_at_rest() {
    // Leaves full of tagged rows below full parents: what the tags leave is packed although no parent has room.
    let rig = Rig::in_memory(2000);
    block_on(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        let rows = 250_000;
        for i in 0_u64..rows {
            put(&tree, &mut log, &i.to_be_bytes(), &[1; 11], i + 1).await;
        }
        rig.mark.0.store(u64::MAX - 1, SeqCst);
        while tree.tidy().await.unwrap().moved > 0 {}
        let after = tree.check().await.unwrap();
        assert_eq!((after.rows, &after.pages), (rows, &rig.space.used()));
        let bytes = (after.pages.len() * 8192) as f64 / rows as f64;
        assert!(bytes <= 20.0, "{bytes} bytes a row");
        let redone = rig.redone(&MemVfs::new(), 2000, Lsn::MAX).await;
        assert_eq!(tree_of(&redone).check().await.unwrap().pages, after.pages);
    });
}

#[test]
fn a_bulk_load_fills_leaves_and_can_be_added_to() {
    for_each_seed!(6, |seed| {
        let rig = Rig::in_memory(4000);
        let mut rng = Rng::new(seed);
        block_on(async {
            let tree = rig.tree(1).await;
            let mut model = Model::new();
            let mut log = TxnLog::new(TxnId(1));
            for i in 0..rng.below(100) {
                let key = i.to_be_bytes().to_vec();
                put(&tree, &mut log, &key, b"before", 0).await;
                model.insert(key, b"before".to_vec());
            }
            let longest = *rng.pick(&[10, 300, 1300]);
            let mut load = tree.bulk_load();
            for i in 0..3000_u64 {
                let mut key = (1000 + i * 3).to_be_bytes().to_vec();
                key.resize(8 + rng.index(30), b'x');
                let value = vec![i as u8; rng.index(longest)];
                load.push(&key, &value).await.unwrap();
                model.insert(key, value);
            }
            assert!(load.push(b"\0", b"").await.is_err(), "out of order");
            assert_eq!(load.finish().await.unwrap(), 3000);
            let report = tree.check().await.unwrap();
            assert_eq!(
                (report.rows, report.pages, report.pending_separators),
                (model.len() as u64, rig.space.used(), 0)
            );
            let fill = report.leaf_bytes_used as f64 / (report.leaves * 8192) as f64;
            assert!(fill > 0.85, "leaves are {fill:.2} full");
            assert_eq!(contents(&tree, model.keys()).await, model);
            let redone = rig.redone(&MemVfs::new(), 4000, Lsn::MAX).await;
            assert_eq!(contents(&tree_of(&redone), model.keys()).await, model);
        });
    });
}

#[test]
fn tidying_gives_pages_back_until_a_root_is_left() {
    let rig = Rig::in_memory(2000);
    block_on(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        for i in 0_u64..30_000 {
            put(&tree, &mut log, &(i * 7919 % 30_011).to_be_bytes(), &[1; 100], 0).await;
        }
        let before = tree.check().await.unwrap();
        assert!(before.levels >= 3, "{} levels", before.levels);
        for i in 0_u64..30_000 {
            if i % 10 != 0 {
                tree.edit(&mut log, &(i * 7919 % 30_011).to_be_bytes(), 0, |_| (Edit::Remove, ())).await.unwrap();
            }
        }
        let tidied = tree.tidy().await.unwrap();
        let after = tree.check().await.unwrap();
        assert_eq!((after.rows, &after.pages), (3000, &rig.space.used()));
        assert!(after.leaves * 5 < before.leaves && tidied.merged > 0, "{} of {}", after.leaves, before.leaves);
        for i in 0_u64..30_000 {
            tree.edit(&mut log, &(i * 7919 % 30_011).to_be_bytes(), 0, |_| (Edit::Remove, ())).await.unwrap();
        }
        while tree.tidy().await.unwrap().merged > 0 {}
        let empty = tree.check().await.unwrap();
        assert_eq!((empty.rows, empty.levels, rig.space.used().len()), (0, 1, 1));
        let redone = rig.redone(&MemVfs::new(), 2000, Lsn::MAX).await;
        assert_eq!(tree_of(&redone).check().await.unwrap().pages, empty.pages);
        let counters = rig.pool.counters().view();
        assert_eq!((counters.io_under_latch, counters.neighbour_reads), (0, 0));
    });
}

#[test]
fn a_leaf_that_is_loaded_takes_as_many_rows_as_fit() {
    for_each_seed!(40, |seed| {
        let mut rng = Rng::new(seed);
        let (longest_key, longest) = (*rng.pick(&[0, 3, 900]), *rng.pick(&[1, 40, 300]));
        let mut rows = Rows::default();
        for n in 0..900_u64 {
            let mut key = (rng.below(3) + 4 * n).to_be_bytes().to_vec();
            key.resize(8 + rng.index(longest_key + 1), b'k');
            let (tag, value) = (Tag(rng.below(3)), vec![1; rng.index(longest)]);
            rows.insert(rows.len(), &NodeRow { key: &key, value: &value, tag, ghost: false, overflow: false });
        }
        let rig = Rig::in_memory(10);
        let frame = block_on(async {
            let tree = rig.tree(1).await;
            let page = rig.pool.read(tree.root_now().expect("a root")).expect("its page");
            Frame { low: vec![3; rng.index(20)], shared_tag: Tag(1), ..Frame::of(Node(page.page)) }
        });
        let fence = |keep: usize| vec![5; if keep % 7 == 0 { 1_000 } else { keep % 30 }];
        let fits = |keep: &usize| {
            let frame = Frame { high: Some(fence(*keep)), ..frame.clone() };
            Image::new().build(&frame, &rows, 0, *keep)
        };
        let most = (1..=rows.len()).rev().find(fits).expect("one row fits");
        assert_eq!(rows_that_fit(&frame, &rows, |keep| fence(keep).len()), most);
    });
}
