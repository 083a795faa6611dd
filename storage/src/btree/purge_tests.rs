//! Purges beside a map, and the log redone up to each of them.

use super::tree_tests::put;
use super::{Edit, Lookup, RowBuf, Tree};
use crate::ids::{Tag, TxnId};
use crate::record::TxnLog;
use crate::seams::PageLog;
use crate::testing::{Rig, now};
use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;
use clearway_base::vfs::MemVfs;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;

/// Value, tag, whether it is a ghost.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64, bool)>;

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(1_500);
    let mut key = format!("{number:06}").into_bytes();
    key.resize(6 + (number % 5) as usize, b'k');
    key
}

/// Rows and ghosts with the tags after `tag`.
async fn change(tree: &Tree, log: &mut TxnLog, rng: &mut Rng, model: &mut Model, tag: &mut u64) {
    for _ in 0..rng.below(300) {
        let key = random_key(rng);
        *tag += 1;
        let ghost = rng.chance(1, 2);
        let value = if ghost { Vec::new() } else { vec![7; rng.index(60)] };
        match ghost {
            true => _ = tree.edit(log, &key, 0, |_| (Edit::ghost(Tag(*tag)), ())).await.unwrap(),
            false => put(tree, log, &key, &value, *tag).await,
        }
        model.insert(key, (value, *tag, ghost));
    }
}

/// The rows that a tree has.
async fn content(tree: &Tree, known: impl Iterator<Item = &Vec<u8>>) -> Model {
    let (mut out, mut found) = (RowBuf::default(), Model::new());
    for key in known {
        if let Lookup::Found(_) = tree.get(key, &mut out).await.unwrap() {
            let row = out.row();
            found.insert(key.clone(), (row.value.to_vec(), row.tag.0, row.ghost));
        }
    }
    assert_eq!(tree.check().await.unwrap().rows, found.len() as u64);
    found
}

/// Purges at a random key; how many ghosts went.
async fn purge(rig: &Rig, tree: &Tree, rng: &mut Rng, model: &mut Model) -> usize {
    let (key, records) = (random_key(rng), rig.log.records.lock().len());
    let purged = tree.purge(&key, &*rig.mark).await.unwrap();
    let found = content(tree, model.keys()).await;
    let settled = rig.mark.0.load(SeqCst);
    let is_settled = |row: &(Vec<u8>, u64, bool)| row.2 && row.1 <= settled;
    let gone: Vec<_> = model.iter().filter(|(key, _)| !found.contains_key(*key)).collect();
    assert!(gone.iter().all(|(_, row)| is_settled(row)), "a row is gone that is no settled ghost: {gone:?}");
    assert_eq!(gone.len(), purged.count);
    let left = found.iter().find(|(at, row)| **at >= key && purged.reaches(at) && is_settled(row));
    assert_eq!(left, None, "BTR-20: behind {key:?}, before {:?}", purged.end);
    let logged = rig.log.records.lock().len() - records;
    assert_eq!(logged, usize::from(purged.count > 0), "one record for the {} ghosts of a leaf", purged.count);
    *model = found;
    purged.count
}

#[test]
fn a_purge_takes_all_settled_ghosts_of_a_leaf_and_redo_takes_them_again() {
    for_each_seed!(6, |seed| {
        now(async {
            let rig = Rig::in_memory(2_000);
            let tree = rig.tree(1).await;
            let (mut rng, mut model, mut tag, mut log) = (Rng::new(seed), Model::new(), 0, TxnLog::new(TxnId(1)));
            let (mut most, mut states) = (0, Vec::new());
            for _ in 0..12 {
                change(&tree, &mut log, &mut rng, &mut model, &mut tag).await;
                // Making room in a leaf has stripped tags and ghosts.
                model = content(&tree, model.keys()).await;
                let settled = rig.mark.0.load(SeqCst);
                rig.mark.0.store(settled + rng.below(tag - settled + 1), SeqCst);
                for _ in 0..rng.below(8) {
                    most = most.max(purge(&rig, &tree, &mut rng, &mut model).await);
                    states.push((rig.log.end_lsn(), model.clone()));
                }
            }
            assert!(most > 10, "seed {seed}: {most} ghosts in a leaf at most");
            for (end, model) in states {
                let redone = rig.redone(&MemVfs::new(), 2_000, end).await;
                let twin = Tree::new(tree.id(), redone.pool.clone(), redone.mark.clone());
                assert_eq!(content(&twin, model.keys()).await, model, "BTR-5: redone up to {end}");
            }
        });
    });
}
