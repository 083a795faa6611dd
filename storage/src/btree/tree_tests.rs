//! Whole trees against a map: tasks of the deterministic executor on a simulated file system, with a pool much
//! smaller than the tree, and the log redone afterwards.

use super::{Edit, Lookup, RowBuf, Tree};
use crate::ids::{Tag, TxnId};
use crate::record::{TxnLog, UndoEntry};
use crate::testing::{Rig, now};
use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Rng, Sim};
use clearway_base::vfs::MemVfs;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

async fn put(tree: &Tree, log: &mut TxnLog, key: &[u8], value: &[u8], tag: u64) {
    tree.edit(log, key, value.len(), |_| (Edit::put(value, Tag(tag)), ())).await.unwrap();
}

async fn contents(tree: &Tree, keys: impl Iterator<Item = &Vec<u8>>) -> Model {
    let mut out = RowBuf::default();
    let mut found = Model::new();
    for key in keys {
        if let Lookup::Found(_) = tree.get(key, &mut out).await.unwrap() {
            found.insert(key.clone(), out.row().value.to_vec());
        }
    }
    found
}

#[test]
fn rows_put_in_order_fill_their_pages() {
    let rig = Rig::in_memory(512);
    now(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        for i in 0_u64..20_000 {
            put(&tree, &mut log, &i.to_be_bytes(), &[7; 10], 0).await;
        }
        let report = tree.check().await.unwrap();
        assert_eq!((report.rows, report.levels, report.pending_separators), (20_000, 2, 0));
        assert_eq!(report.pages, rig.space.used());
        let bytes = (report.leaves * 8192) as f64 / 20_000.0;
        assert!(bytes < 18.0, "{bytes} bytes for a row of 18");
        let counters = rig.pool.counters().view();
        assert_eq!((counters.io_under_latch, counters.neighbours_read, counters.tree_latches), (0, 0, 0));
    });
}

fn random_key(rng: &mut Rng, keys: u64) -> Vec<u8> {
    let number = rng.below(keys);
    let mut key = format!("{:05}", number * 7919 % 100_000).into_bytes();
    key.resize(5 + (number % 40) as usize * (number % 7) as usize, b'k');
    key
}

#[test]
fn a_tree_agrees_with_a_map_and_its_log_redoes_it() {
    for_each_seed!(6, |seed| {
        let sim = Sim::new(seed);
        sim.block_on(async move {
            let rig = Arc::new(Rig::new(&MemVfs::new(), 48).await);
            let tree = rig.tree(1).await;
            let cleaner = {
                let rig = rig.clone();
                testkit::spawn("cleaner", async move {
                    loop {
                        rig.pool.clean_step().await.unwrap();
                        testkit::sleep(std::time::Duration::from_micros(50)).await;
                    }
                })
            };
            let model = Arc::new(Mutex::new(Model::new()));
            let mut tasks = Vec::new();
            for task in 0..4_u64 {
                let (rig, tree, model) = (rig.clone(), tree.clone(), model.clone());
                tasks.push(testkit::spawn("writer", async move {
                    writer(&rig, &tree, &model, seed * 10 + task, task).await;
                }));
            }
            for task in tasks {
                task.await;
            }
            drop(cleaner);
            let expected = model.lock().unwrap().clone();
            assert_eq!(contents(&tree, expected.keys()).await, expected);
            let report = tree.check().await.unwrap();
            assert_eq!(report.rows, expected.len() as u64);
            assert_eq!(report.pages, rig.space.used());
            let redone = rig.redone(&MemVfs::new(), 1000).await;
            let twin = Tree::new(tree.id(), redone.pool.clone(), redone.mark.clone());
            let again = twin.check().await.unwrap();
            assert_eq!(again, crate::btree::TreeReport { leaf_bytes_used: again.leaf_bytes_used, ..report });
            assert_eq!(contents(&twin, expected.keys()).await, expected);
            let counters = rig.pool.counters().view();
            assert_eq!((counters.io_under_latch, counters.neighbours_read, counters.tree_latches), (0, 0, 0));
            assert!(counters.leaf_splits > 10 && counters.evictions > 10, "{counters:?}");
        })
        .unwrap();
    });
}

/// Puts, removes, reads and rolls back keys of its own, among those of the others.
async fn writer(rig: &Rig, tree: &Tree, model: &Mutex<Model>, seed: u64, task: u64) {
    let mut rng = Rng::new(seed);
    let mut out = RowBuf::default();
    for round in 0..400_u64 {
        let mut log = TxnLog::new(TxnId(task + 1));
        let mut key = random_key(&mut rng, 500);
        key.push(b'A' + task as u8);
        let tag = (task + 1) << 32 | (round + 1);
        match rng.below(10) {
            0..5 => {
                let len = rng.index(300);
                let value = vec![rng.below(256) as u8; len];
                if rng.chance(1, 8) && value.len() > 100 {
                    let reference = tree.write_overflow(&mut log, Tag(tag), &value).await.unwrap();
                    let edit = Edit::Put { value: (&reference[..]).into(), tag: Tag(tag), ghost: false, overflow: true };
                    tree.edit(&mut log, &key, 16, |_| (edit, ())).await.unwrap();
                } else {
                    put(tree, &mut log, &key, &value, tag).await;
                }
                if rng.chance(1, 4) {
                    roll_back(rig, tree, &mut log).await;
                } else {
                    model.lock().unwrap().insert(key, value);
                }
            }
            5..7 => {
                tree.edit(&mut log, &key, 0, |_| (Edit::Remove, ())).await.unwrap();
                if rng.chance(1, 3) {
                    roll_back(rig, tree, &mut log).await;
                } else {
                    model.lock().unwrap().remove(&key);
                }
            }
            7 => {
                // Everything is settled now and then: splits may strip.
                let settle = rng.chance(1, 4);
                rig.mark.0.store(if settle { u64::MAX - 1 } else { 0 }, SeqCst);
            }
            _ => {
                let found = matches!(tree.get(&key, &mut out).await.unwrap(), Lookup::Found(_));
                let expected = model.lock().unwrap().get(&key).cloned();
                assert_eq!(found.then(|| out.row().value.to_vec()), expected);
            }
        }
    }
}

async fn roll_back(rig: &Rig, tree: &Tree, log: &mut TxnLog) {
    rig.mark.0.store(0, SeqCst);
    loop {
        let entry: Option<UndoEntry> = {
            let records = rig.log.records.lock().unwrap();
            let at = records.iter().rev().find(|record| record.range.start == log.last_lsn);
            at.and_then(|record| record.undo.clone())
        };
        let Some(entry) = entry.filter(|entry| entry.lsn >= log.first_lsn) else { break };
        if entry.tree == super::CHAIN_PAGES {
            super::compensate_chain(&rig.pool, log, &entry).await.unwrap();
        } else {
            tree.compensate(log, &entry).await.unwrap();
        }
    }
    assert_eq!(log.undo_reserved, 0);
}
