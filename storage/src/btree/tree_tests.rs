//! Whole trees against a map: tasks of the deterministic executor on a simulated file system, with a pool much
//! smaller than the tree, and the log redone afterwards.

use super::{Cursor, Direction, Edit, KeyRange, LeafRow, Lookup, NextLeaf, RowBuf, Tree};
use crate::ids::{Lsn, Tag, TxnId};
use crate::record::{TxnLog, UndoEntry};
use crate::seams::PageLog;
use crate::testing::{Rig, now};
use clearway_base::for_each_seed;
use clearway_base::sync::{Mutex, block_on, spawn_thread};
use clearway_base::testkit::{self, Rng, Sim, Stop};
use clearway_base::vfs::MemVfs;
use clearway_base::vfs::sim::SimDisk;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

pub(super) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) async fn put(tree: &Tree, log: &mut TxnLog, key: &[u8], value: &[u8], tag: u64) {
    tree.edit(log, key, value.len(), |_| (Edit::put(value, Tag(tag)), ())).await.unwrap();
}

pub(super) async fn contents(tree: &Tree, keys: impl Iterator<Item = &Vec<u8>>) -> Model {
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
        assert_eq!((counters.io_under_latch, counters.neighbour_reads), (0, 0));
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
    for_each_seed!(6, against_a_map);
}

fn against_a_map(seed: u64) {
    let sim = Sim::new(seed);
    sim.block_on(async move {
        let rig = Arc::new(Rig::new(&SimDisk::new(seed), 48).await);
        let tree = rig.tree(1).await;
        let cleaner = {
            let rig = rig.clone();
            testkit::spawn("cleaner", async move {
                let _ = rig.pool.run_cleaner(|| false).await;
            })
        };
        let model = Arc::new(Mutex::new("test/model", Model::new()));
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
        let expected = model.lock().clone();
        assert_eq!(contents(&tree, expected.keys()).await, expected);
        scans_agree(&tree, &expected, seed).await;
        let report = tree.check().await.unwrap();
        assert_eq!(report.rows, expected.len() as u64);
        assert_eq!(report.pages, rig.space.used());
        let redone = rig.redone(&MemVfs::new(), 1000, Lsn::MAX).await;
        let twin = Tree::new(tree.id(), redone.pool.clone(), redone.mark.clone());
        let again = twin.check().await.unwrap();
        assert_eq!(again, crate::btree::TreeReport { leaf_bytes_used: again.leaf_bytes_used, ..report });
        assert_eq!(contents(&twin, expected.keys()).await, expected, "BTR-5: redo made another tree");
        let counters = rig.pool.counters().view();
        assert_eq!((counters.io_under_latch, counters.neighbour_reads), (0, 0));
        assert!(counters.leaf_splits > 10 && counters.evictions > 10, "{counters:?}");
    })
    .unwrap();
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
                    reference = tree.write_overflow(&mut log, Tag(tag), &value, &mut |_, _| {}).await.unwrap();
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
                    model.lock().remove(&key);
                } else {
                    model.lock().insert(key, value);
                }
                if let Some(old) = old {
                    tree.free_overflow(&old).await.unwrap();
                }
            }
            7 if rng.chance(1, 10) => {
                let _ = tree.tidy().await.unwrap();
            }
            7 => {
                // Everything is settled now and then: splits may strip.
                let settle = rng.chance(1, 4);
                rig.mark.0.store(if settle { u64::MAX - 1 } else { 0 }, SeqCst);
            }
            _ => {
                let found = matches!(tree.get(&key, &mut out).await.unwrap(), Lookup::Found(_));
                let expected = model.lock().get(&key).cloned();
                assert_eq!(found.then(|| out.row().value.to_vec()), expected);
            }
        }
    }
}

async fn roll_back(rig: &Rig, tree: &Tree, log: &mut TxnLog) {
    rig.mark.0.store(0, SeqCst);
    loop {
        let entry: Option<UndoEntry> = {
            let records = rig.log.records.lock();
            let at = records.iter().rev().find(|record| record.range.start == log.last_lsn);
            at.and_then(|record| record.undo.clone())
        };
        let Some(entry) = entry.filter(|entry| entry.lsn >= log.first_lsn) else {
            break;
        };
        if entry.tree == super::CHAIN_PAGES {
            super::compensate_chain(&rig.pool, log, &entry).await.unwrap();
        } else {
            tree.compensate(log, &entry).await.unwrap();
        }
    }
    assert_eq!(log.undo_reserved, 0);
}

/// Ranges both ways, with overflow rows fetched; whole leaves and parts of them (BTR-13).
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
        let mut expects = |cursor: &mut Cursor| {
            if round % 3 != 0 {
                cursor.expect(1 + rng.index(5));
            }
        };
        expects(&mut cursor);
        loop {
            // What is in memory needs no wait.
            let leaf = match cursor.next_leaf_now().unwrap() {
                NextLeaf::Rows(leaf) => leaf,
                NextLeaf::End => break,
                NextLeaf::Miss => match cursor.next_leaf().await.unwrap() {
                    Some(leaf) => leaf,
                    None => break,
                },
            };
            let mut rows: Vec<_> =
                leaf.iter().map(|(key, row)| (key.to_vec(), row.value.to_vec(), row.overflow)).collect();
            if direction == Direction::Backward {
                rows.reverse();
            }
            for (key, value, overflow) in rows {
                let value = if overflow { tree.read_chain(&value).await.unwrap() } else { value };
                found.push((key, value));
            }
            expects(&mut cursor);
        }
        if direction == Direction::Backward {
            wanted.reverse();
        }
        assert_eq!(found, wanted);
    }
}

/// One run of edits, splits and cleaning on a disk that may crash; gives the rig as it was.
fn run_until_crash(seed: u64, disk: &SimDisk, rig: &Arc<Mutex<Option<Arc<Rig>>>>) -> Result<(), Stop> {
    let (disk, rig) = (disk.clone(), rig.clone());
    Sim::new(seed).block_on(async move {
        let made = Arc::new(Rig::new(&disk, 24).await);
        *rig.lock() = Some(made.clone());
        let tree = made.tree(1).await;
        let cleaner = made.clone();
        testkit::spawn("cleaner", async move {
            let _ = cleaner.pool.run_cleaner(|| false).await;
        });
        let mut rng = Rng::new(seed);
        let mut log = TxnLog::new(TxnId(1));
        for _ in 0..1200 {
            let key = random_key(&mut rng, 3000);
            put(&tree, &mut log, &key, &vec![1; rng.index(200)], 0).await;
        }
    })
}

/// After a crash at any begin or end of an I/O, the pages on disk, the twins and the durable log give the tree of
/// exactly the records that were durable: nothing torn, nothing newer than the log, every split whole.
#[test]
fn a_crash_at_any_io_leaves_a_tree_that_redo_makes_whole() {
    for_each_seed!(2, crash_sweep);
}

fn crash_sweep(seed: u64) {
    let whole = SimDisk::new(seed);
    let rig = Arc::new(Mutex::new("test/rig", None));
    run_until_crash(seed, &whole, &rig).unwrap();
    let points = whole.points();
    assert!(points > 200, "{points} crash points");
    let mut rng = Rng::new(seed);
    let mut torn = 0;
    for _ in 0..40 {
        let disk = SimDisk::new(seed);
        disk.crash_at(rng.range(20..points));
        let rig = Arc::new(Mutex::new("test/rig", None));
        let stopped = run_until_crash(seed, &disk, &rig);
        assert_eq!(stopped, Err(Stop::Crashed));
        let before = rig.lock().take().expect("made before the first crash point");
        torn += after_crash(&before, &disk, seed);
    }
    assert!(torn > 0, "no crash tore a page: the double write was not tried");
}

/// Checks what a crash left; gives the number of pages that were torn.
fn after_crash(before: &Arc<Rig>, disk: &SimDisk, seed: u64) -> usize {
    let durable = before.log.durable_lsn();
    let (before, disk) = (before.clone(), disk.restart());
    Sim::new(seed)
        .block_on(async move {
            let torn = before.torn(&disk).await;
            before.restore(&disk).await;
            assert_eq!(before.torn(&disk).await, 0, "BUF-9: a torn page without a twin");
            // The expected tree: the same records into fresh pages.
            let fresh = before.redone(&MemVfs::new(), 1000, durable).await;
            let redone = before.redone(&disk, 1000, durable).await;
            let (fresh, redone) = (tree_of(&fresh), tree_of(&redone));
            let (expected, report) = (fresh.check().await.unwrap(), redone.check().await.unwrap());
            assert_eq!((expected.rows, expected.pages, expected.levels), (report.rows, report.pages, report.levels));
            let (mut left, mut right) = (String::new(), String::new());
            fresh.print(&mut left).await.unwrap();
            redone.print(&mut right).await.unwrap();
            assert_eq!(left, right);
            torn
        })
        .unwrap()
}

pub(super) fn tree_of(rig: &Rig) -> Tree {
    Tree::new(crate::ids::TreeId(1), rig.pool.clone(), rig.mark.clone())
}

/// Threads that really run at the same time: writers split leaves under readers, the cleaner evicts.
#[test]
fn threads_read_rows_whole_while_others_split() {
    threads_agree();
}

fn threads_agree() {
    let rig = Arc::new(Rig::in_memory(64));
    let tree = block_on(rig.tree(1));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let cleaner = {
        let (rig, stop) = (rig.clone(), stop.clone());
        spawn_thread("cleaner", move || block_on(rig.pool.run_cleaner(|| stop.load(SeqCst))).unwrap()).unwrap()
    };
    let mut threads = Vec::new();
    for task in 0..4_u64 {
        let tree = tree.clone();
        threads.push(
            spawn_thread("worker", move || {
                let mut rng = Rng::new(task);
                let mut log = TxnLog::new(TxnId(task + 1));
                let mut out = RowBuf::default();
                for _ in 0..6000 {
                    let number = rng.below(8000);
                    let key = number.to_be_bytes();
                    if rng.chance(1, 2) {
                        // The whole value says the same byte and length as its key and version.
                        let version = rng.below(200) as u8;
                        let value = vec![version; 20 + usize::from(version)];
                        block_on(put(&tree, &mut log, &key, &value, 0));
                    } else if let Lookup::Found(_) = block_on(tree.get(&key, &mut out)).unwrap() {
                        let value = out.row().value;
                        assert!(value.iter().all(|byte| *byte == value[0]), "a torn row: {value:?}");
                        assert_eq!(value.len(), 20 + usize::from(value[0]));
                    }
                }
            })
            .unwrap(),
        );
    }
    for thread in threads {
        thread.join().unwrap();
    }
    stop.store(true, SeqCst);
    cleaner.join().unwrap();
    let report = block_on(tree.check()).unwrap();
    assert!(report.leaves > 64, "larger than the pool: {report:?}");
    let counters = rig.pool.counters().view();
    assert_eq!(counters.io_under_latch, 0);
    // A thread that stands still between a split and telling the parent may find the new leaf written out: rare, where the runs
    // whose order a seed decides have none.
    assert!(counters.neighbour_reads <= 12, "{} in 12,000 changes", counters.neighbour_reads);
}

/// Readers of rows that stay, with a pool so small that they wait for nearly every leaf, while leaves around those
/// rows split, merge, are freed and used again for other keys and other trees.
#[test]
fn readers_find_their_rows_however_pages_are_used_again() {
    for_each_seed!(6, pages_used_again);
}

fn pages_used_again(seed: u64) {
    let stays = |number: u64| number % 25 == 0;
    Sim::new(seed)
        .block_on(async move {
            let rig = Arc::new(Rig::new(&SimDisk::new(seed), 12).await);
            let trees = [rig.tree(1).await, rig.tree(2).await];
            let cleaner = rig.clone();
            testkit::spawn("cleaner", async move {
                let _ = cleaner.pool.run_cleaner(|| false).await;
            });
            let mut log = TxnLog::new(TxnId(9));
            for tree in &trees {
                for number in (0..1000_u64).filter(|number| stays(*number)) {
                    put(tree, &mut log, &number.to_be_bytes(), &[tree.id().0 as u8; 400], 0).await;
                }
            }
            let mut tasks = Vec::new();
            let churning = Arc::new(std::sync::atomic::AtomicUsize::new(2));
            for (index, tree) in trees.iter().enumerate() {
                let (tree, churning) = (tree.clone(), churning.clone());
                tasks.push(testkit::spawn("churn", async move {
                    let mut log = TxnLog::new(TxnId(index as u64));
                    for round in 0..6 {
                        let value = vec![round; 700];
                        for number in (0..1000_u64).filter(|number| !stays(*number) && number % 4 == 1) {
                            put(&tree, &mut log, &number.to_be_bytes(), &value, 0).await;
                        }
                        for number in (0..1000_u64).filter(|number| !stays(*number) && number % 4 == 1) {
                            tree.edit(&mut log, &number.to_be_bytes(), 0, |_| (Edit::Remove, ())).await.unwrap();
                            if number % 10 == 1 {
                                tree.tidy().await.unwrap();
                            }
                        }
                    }
                    churning.fetch_sub(1, SeqCst);
                }));
            }
            for (index, tree) in trees.iter().cycle().take(6).enumerate() {
                let (tree, churning) = (tree.clone(), churning.clone());
                tasks.push(testkit::spawn("reader", async move {
                    let mut rng = Rng::new(seed * 100 + index as u64);
                    let mut out = RowBuf::default();
                    while churning.load(SeqCst) > 0 {
                        testkit::yield_now().await;
                        if rng.chance(1, 16) {
                            scan_finds_what_stays(&tree, &mut rng).await;
                        }
                        let key = (rng.below(40) * 25).to_be_bytes();
                        let found = tree.get(&key, &mut out).await.unwrap();
                        assert!(matches!(found, Lookup::Found(_)), "a row that stays is not there");
                        assert_eq!(out.row().value, [tree.id().0 as u8; 400], "the row of another tree");
                    }
                }));
            }
            for task in tasks {
                task.await;
            }
            for tree in &trees {
                tree.check().await.unwrap();
            }
            let resident = rig.space.used().iter().filter(|page| rig.pool.read(**page).is_some()).count();
            assert!(resident <= rig.pool.frames(), "BUF-10: {resident} pages in {} frames", rig.pool.frames());
            let counters = rig.pool.counters().view();
            assert!(counters.merges > 50 && counters.misses > 300, "{counters:?}");
            assert_eq!((counters.io_under_latch, counters.neighbour_reads), (0, 0));
        })
        .unwrap();
}

/// A scan of part of such a tree, either way.
async fn scan_finds_what_stays(tree: &Tree, rng: &mut Rng) {
    let (from, rows) = (rng.below(900), 10 + rng.below(90));
    let bound = |number: u64| number.to_be_bytes().to_vec();
    let direction = if rng.chance(1, 2) { Direction::Forward } else { Direction::Backward };
    let mut cursor = tree.cursor(KeyRange::new(bound(from), Some(bound(from + rows))), direction);
    let mut found: Vec<u64> = Vec::new();
    while let Some(leaf) = cursor.next_leaf().await.unwrap() {
        let mut numbers: Vec<u64> =
            leaf.iter().map(|(key, _)| u64::from_be_bytes(key.try_into().expect("eight bytes"))).collect();
        if direction == Direction::Backward {
            numbers.reverse();
        }
        found.extend(numbers);
        testkit::yield_now().await;
    }
    if direction == Direction::Backward {
        found.reverse();
    }
    assert!(found.is_sorted_by(|a, b| a < b), "BTR-13: not in order, or twice: {found:?}");
    found.retain(|number| number % 25 == 0);
    let stay: Vec<u64> = (from..from + rows).filter(|number| number % 25 == 0).collect();
    assert_eq!(found, stay, "BTR-13: what was there all the time");
}

/// Each planted mistake is found by one of the tests above. Mistakes are planted for the whole process:
/// `cargo test -p clearway-storage --features mutations btree::tree_tests::planted -- --test-threads=1`.
#[cfg(feature = "mutations")]
#[test]
fn planted_mistakes_are_found() {
    use crate::mutation::{Mutation, TREES, plant};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for mutation in TREES {
        plant(mutation);
        let finds = |test: &dyn Fn(u64)| (1..=40).find(|seed| catch_unwind(AssertUnwindSafe(|| test(*seed))).is_err());
        let found = match mutation {
            Mutation::NoValidation => finds(&|_| threads_agree()),
            Mutation::NoTwins | Mutation::PageBeforeLog => finds(&crash_sweep),
            _ => finds(&pages_used_again),
        };
        plant(Mutation::None);
        eprintln!("{mutation:?}: found by seed {found:?}");
        assert!(found.is_some(), "{mutation:?} was not found");
    }
}
