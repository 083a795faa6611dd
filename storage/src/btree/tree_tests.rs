//! Whole trees against a map: tasks of the deterministic executor on a simulated file system, with a pool much
//! smaller than the tree, and the log redone afterwards.

use super::{Direction, Edit, KeyRange, LeafRow, Lookup, RowBuf, Tree};
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
            scans_agree(&tree, &expected, seed).await;
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
            action @ 0..7 => {
                let removes = action >= 5;
                let value = vec![rng.below(256) as u8; rng.index(300)];
                let reference;
                let edit = if removes {
                    Edit::Remove
                } else if rng.chance(1, 8) {
                    reference = tree.write_overflow(&mut log, Tag(tag), &value, &mut Vec::new()).await.unwrap();
                    Edit::Put { value: (&reference[..]).into(), tag: Tag(tag), ghost: false, overflow: true }
                } else {
                    Edit::put(&value, Tag(tag))
                };
                let old_chain = |row: LeafRow<'_>| row.row.filter(|row| row.overflow).map(|row| row.value.to_vec());
                let max = value.len().max(16);
                let (old, _) = tree.edit(&mut log, &key, max, |row| (edit, old_chain(row))).await.unwrap();
                if rng.chance(1, 4) {
                    roll_back(rig, tree, &mut log).await;
                    continue;
                }
                if removes {
                    model.lock().unwrap().remove(&key);
                } else {
                    model.lock().unwrap().insert(key, value);
                }
                if let Some(old) = old {
                    tree.free_overflow(&old).await.unwrap();
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

/// Ranges both ways, with overflow rows fetched.
async fn scans_agree(tree: &Tree, expected: &Model, seed: u64) {
    let mut rng = Rng::new(seed);
    for round in 0..12 {
        let direction = if round % 2 == 0 { Direction::Forward } else { Direction::Backward };
        let mut range = KeyRange::all();
        if round >= 2 {
            range = KeyRange::new(random_key(&mut rng, 500), Some(random_key(&mut rng, 500)));
        }
        let mut wanted: Vec<_> = expected
            .iter()
            .filter(|(key, _)| **key >= range.from && range.to.as_ref().is_none_or(|to| *key < to))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut cursor = tree.cursor(range, direction);
        let mut found = Vec::new();
        while let Some(leaf) = cursor.next_leaf().await.unwrap() {
            let mut rows: Vec<_> =
                leaf.iter().map(|(key, row)| (key.to_vec(), row.value.to_vec(), row.overflow)).collect();
            if direction == Direction::Backward {
                rows.reverse();
            }
            for (key, value, overflow) in rows {
                let value = if overflow { tree.read_chain(&value).await.unwrap() } else { value };
                found.push((key, value));
            }
        }
        if direction == Direction::Backward {
            wanted.reverse();
        }
        assert_eq!(found, wanted);
    }
}
