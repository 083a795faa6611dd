//! Runs beside a map: rows that a run leaves go one by one; the log is redone afterwards.

use super::tree_tests::put;
use super::{Edit, LeafRow, Lookup, RowBuf, RunEdits, RunGhosts, RunPositions, RunPut, TagRoom, Tree};
use crate::ids::{Lsn, PageId, Tag, TxnId};
use crate::record::{TxnLog, UndoEntry};
use crate::testing::{Kept, Rig, now};
use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;
use clearway_base::vfs::MemVfs;
use std::collections::{BTreeMap, BTreeSet};

/// Value, tag, whether it is a ghost.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64, bool)>;

/// An edit to be made: key, value, tag, whether it leaves a ghost.
type Wanted = (Vec<u8>, Vec<u8>, u64, bool);

struct Edits<'v> {
    wanted: &'v [Wanted],
    /// What the leaf shows has to be what the map says.
    model: &'v mut Model,
    /// Left to the caller.
    refused: u64,
    /// Rows that were absent, or settled, share a tag.
    shares: bool,
    /// Ghosts of settled rows need no decision (BTR-27); how many there were.
    joins: bool,
    joined: u64,
    tag: Option<(PageId, Tag)>,
    logged: Option<(usize, usize, RunPositions)>,
}

impl<'v> RunEdits<'v> for Edits<'v> {
    fn key(&self, n: usize) -> Option<(&'v [u8], usize)> {
        self.wanted.get(n).map(|(key, value, ..)| (&key[..], value.len()))
    }

    fn tag(&self) -> Option<Tag> {
        self.tag.map(|(_, tag)| tag)
    }

    fn decide(&mut self, n: usize, leaf: LeafRow<'_>, fits: TagRoom) -> Option<RunPut<'v>> {
        let (key, value, tag, ghost) = &self.wanted[n];
        let known = self.model.get(key).map(|(value, tag, ghost)| (value.clone(), Tag(*tag), *ghost));
        assert_eq!(leaf.row.map(|row| (row.value.to_vec(), row.tag, row.ghost)), known, "BTR-9");
        if *tag == self.refused {
            return None;
        }
        let gone = |row: crate::btree::Row<'_>| *ghost && row.tag.is_settled() && !row.ghost;
        let shares = self.shares && leaf.row.map_or(!ghost, gone);
        let joined = self.tag.filter(|(page, _)| shares && *page == leaf.page).map(|(_, tag)| tag);
        if joined.is_none() && (fits == TagRoom::Last || fits == TagRoom::Shared && !shares) {
            return None;
        }
        let tag = joined.unwrap_or(Tag(*tag));
        self.tag = shares.then_some((leaf.page, tag));
        self.model.insert(key.clone(), (value.clone(), tag.0, *ghost));
        Some(RunPut { value, tag, ghost: *ghost, shares })
    }

    fn ghost(&self, n: usize) -> Option<&'v [u8]> {
        let (key, _, tag, ghost) = self.wanted.get(n)?;
        (self.joins && self.shares && *ghost && *tag != self.refused).then_some(key)
    }

    fn join_ghosts(&mut self, n: usize, ghosts: RunGhosts<'_>) {
        let (_, tag) = self.tag.expect("BTR-27: an edit before");
        assert_eq!(ghosts.values().count(), ghosts.count());
        for ((key, _, _, ghost), value) in self.wanted[n..].iter().zip(ghosts.values()) {
            assert_eq!(self.model.get(key).map(|(value, ..)| &value[..]), Some(value), "BTR-28");
            self.model.insert(key.clone(), (Vec::new(), tag.0, *ghost));
            self.joined += 1;
        }
    }

    fn logged(&mut self, from: usize, count: usize, positions: RunPositions) {
        assert!(count > 0 && self.logged.is_none(), "BTR-19: once");
        self.logged = Some((from, count, positions));
    }
}

/// The edits of one round: rows of a part of the keys, in their order, or new ones behind all others.
fn round(rng: &mut Rng, tag: &mut u64) -> Vec<Wanted> {
    let long = rng.chance(1, 3);
    let (from, step, count) = (rng.below(4_000), 1 + rng.below(3), rng.below(300));
    let mut wanted = Vec::new();
    for n in 0..count {
        let mut key = format!("{:06}", from + n * step).into_bytes();
        key.resize(6 + ((from + n * step) % 5) as usize, b'k');
        *tag += 1;
        let ghost = rng.chance(1, 5);
        let value = if ghost { Vec::new() } else { vec![7; rng.index(if long { 200 } else { 30 })] };
        wanted.push((key, value, *tag, ghost));
    }
    wanted
}

async fn make(tree: &Tree, log: &mut TxnLog, wanted: &[Wanted], model: &mut Model, refused: u64) -> (u64, u64) {
    // Half of the rounds share tags.
    let (shares, joins) = (wanted.len() % 2 == 0, wanted.len() % 4 == 0);
    let (by_run, alone, _) = made_by((shares, joins), tree, log, wanted, model, refused).await;
    (by_run, alone)
}

/// How many were made by runs and alone, and how many of those by runs without a decision.
async fn made_by(
    (shares, joins): (bool, bool),
    tree: &Tree,
    log: &mut TxnLog,
    wanted: &[Wanted],
    model: &mut Model,
    refused: u64,
) -> (u64, u64, u64) {
    let (mut by_run, mut alone, mut joined, mut done, mut last) = (0, 0, 0, 0, None);
    while done < wanted.len() {
        let before = log.last_lsn;
        let model = &mut *model;
        let mut edits = Edits { wanted, model, refused, shares, joins, joined: 0, tag: last, logged: None };
        let made = tree.edit_run(log, done, &mut edits).await.unwrap();
        joined += edits.joined;
        // BTR-19, BTR-24: one record, whose changes name each the one before.
        let logged =
            edits.logged.map(|(from, count, positions)| (from, count, positions.of(0).1, positions.of(count - 1).0));
        assert_eq!(logged, (made > 0).then_some((done, made, before, log.last_lsn)), "BTR-19");
        last = edits.tag.filter(|_| made > 0);
        (done, by_run) = (done + made, by_run + made as u64);
        if made == 0 {
            let (key, value, tag, ghost) = &wanted[done];
            match ghost {
                true => _ = tree.edit(log, key, 0, |_| (Edit::ghost(Tag(*tag)), ())).await.unwrap(),
                false => put(tree, log, key, value, *tag).await,
            }
            model.insert(key.clone(), (value.clone(), *tag, *ghost));
            (done, alone) = (done + 1, alone + 1);
        }
    }
    (by_run, alone, joined)
}

async fn assert_same(tree: &Tree, model: &Model) {
    let mut out = RowBuf::default();
    for (key, (value, tag, ghost)) in model {
        let found = tree.get(key, &mut out).await.unwrap();
        assert!(matches!(found, Lookup::Found(_)), "{key:?}");
        let row = out.row();
        assert_eq!((row.value, row.tag, row.ghost), (&value[..], Tag(*tag), *ghost), "{key:?}");
    }
    let report = tree.check().await.unwrap();
    assert_eq!(report.rows, model.len() as u64);
    // These trees have no chains.
    let known = (report.leaves + report.inner - report.pending_separators) as u64;
    assert_eq!(tree.count_nodes().await.unwrap(), known, "nodes that the nodes above them know");
}

#[test]
fn runs_make_what_single_edits_make_and_redo_makes_it_again() {
    for_each_seed!(6, |seed| {
        now(async {
            let rig = Rig::in_memory(2_000);
            let tree = rig.tree(1).await;
            let (mut rng, mut model, mut tag, mut log) = (Rng::new(seed), Model::new(), 0, TxnLog::new(TxnId(1)));
            let (mut by_run, mut alone) = (0, 0);
            for _ in 0..60 {
                let wanted = round(&mut rng, &mut tag);
                let refused = if rng.chance(1, 2) { tag - rng.below(tag.min(200)) } else { 0 };
                let (more, left) = make(&tree, &mut log, &wanted, &mut model, refused).await;
                (by_run, alone) = (by_run + more, alone + left);
            }
            assert_same(&tree, &model).await;
            assert!(by_run > 5 * alone && alone > 10, "seed {seed}: {by_run} by runs, {alone} alone");
            let counters = rig.pool.counters().view();
            assert_eq!((counters.io_under_latch, counters.neighbour_reads), (0, 0));
            let redone = rig.redone(&MemVfs::new(), 2_000, Lsn::MAX).await;
            let twin = Tree::new(tree.id(), redone.pool.clone(), redone.mark.clone());
            assert_same(&twin, &model).await;
        });
    });
}

/// Undoes all changes, latest first.
async fn undo(rig: &Rig, tree: &Tree, log: &mut TxnLog) {
    let entries: Vec<UndoEntry> = rig.log.records.lock().iter().flat_map(Kept::changes).collect();
    for entry in entries.iter().rev() {
        tree.compensate(log, entry).await.unwrap();
    }
}

async fn assert_redone(rig: &Rig, tree: &Tree, model: &Model) {
    let redone = rig.redone(&MemVfs::new(), 2_000, Lsn::MAX).await;
    assert_same(&Tree::new(tree.id(), redone.pool.clone(), redone.mark.clone()), model).await;
}

#[test]
fn rows_that_share_a_tag_take_no_room_for_it_and_neither_does_their_undo() {
    // BTR-23
    for_each_seed!(3, |seed| {
        now(async {
            let rig = Rig::in_memory(2_000);
            let tree = rig.tree(1).await;
            let (mut rng, mut model, mut log) = (Rng::new(seed), Model::new(), TxnLog::new(TxnId(1)));
            // Leaves that are full to the last byte but a few, as an index build leaves them.
            let mut load = tree.bulk_load();
            let (mut key, mut wanted) = (0_u64, Vec::new());
            for n in 0..12_000 {
                key += 1 + rng.below(70_000);
                let mut bytes = key.to_be_bytes().to_vec();
                bytes.resize(8 + (key % 9) as usize, b'k');
                load.push(&bytes, &[]).await.unwrap();
                model.insert(bytes.clone(), (Vec::new(), 0, false));
                if rng.chance(2, 3) {
                    wanted.push((bytes, Vec::new(), 1_000 + n, true));
                }
            }
            wanted.truncate(wanted.len() / 2 * 2);
            load.finish().await.unwrap();
            let (before, leaves) = (model.clone(), tree.check().await.unwrap().leaves);
            let (_, alone) = make(&tree, &mut log, &wanted, &mut model, 0).await;
            assert_eq!((alone, tree.check().await.unwrap().leaves), (0, leaves), "no leaf was split");
            assert_same(&tree, &model).await;
            let tags: BTreeSet<u64> = model.values().map(|(_, tag, _)| *tag).collect();
            assert!(tags.len() <= leaves + 1, "{} tags in {leaves} leaves", tags.len());
            assert_redone(&rig, &tree, &model).await;
            undo(&rig, &tree, &mut log).await;
            assert_eq!((log.last_lsn, log.undo_reserved), (Lsn::ZERO, 0), "all was undone with what was set aside");
            assert_eq!(tree.check().await.unwrap().leaves, leaves, "WAL-20: nor by the undo");
            assert_same(&tree, &before).await;
            assert_redone(&rig, &tree, &before).await;
        });
    });
}

#[test]
fn ghosts_that_join_are_those_that_are_decided_on() {
    // BTR-27, BTR-28
    for_each_seed!(3, |seed| {
        now(async {
            let mut changes = Vec::new();
            for joins in [false, true] {
                let rig = Rig::in_memory(2_000);
                let tree = rig.tree(1).await;
                let (mut rng, mut model, mut log) = (Rng::new(seed), Model::new(), TxnLog::new(TxnId(1)));
                let (mut load, mut wanted) = (tree.bulk_load(), Vec::new());
                for n in 0..4_000 {
                    let key = format!("{:06}", n * 7).into_bytes();
                    // Values with a code of one byte and of two; rows that have a tag.
                    let (value, is_long) = (vec![3; rng.index(60)], rng.chance(1, 50));
                    let value = if is_long { vec![4; 300] } else { value };
                    load.push(&key, &value).await.unwrap();
                    model.insert(key.clone(), (value, 0, false));
                    if rng.chance(2, 3) {
                        wanted.push((key, Vec::new(), 10_000 + n, true));
                    }
                }
                load.finish().await.unwrap();
                let tagged: Vec<Wanted> =
                    wanted.iter().step_by(300).map(|(key, _, tag, _)| (key.clone(), vec![5; 9], *tag, false)).collect();
                made_by((false, false), &tree, &mut log, &tagged, &mut model, 0).await;
                let refused = wanted[wanted.len() / 2].2;
                let (by_run, alone, joined) =
                    made_by((true, joins), &tree, &mut log, &wanted, &mut model, refused).await;
                assert_eq!(joined > by_run / 2, joins, "seed {seed}: {joined} of {by_run} joined, {alone} alone");
                assert_same(&tree, &model).await;
                assert_redone(&rig, &tree, &model).await;
                let of_log = rig.log.records.lock().iter().flat_map(Kept::changes).collect::<Vec<_>>();
                changes.push((by_run, alone, model, of_log));
                undo(&rig, &tree, &mut log).await;
                assert_eq!(log.undo_reserved, 0, "what was set aside");
            }
            assert!(changes[0] == changes[1], "seed {seed}: the changes differ");
        });
    });
}

#[test]
fn new_rows_of_one_tag_are_undone_wherever_splits_have_put_them() {
    // BTR-23
    for_each_seed!(4, |seed| {
        now(async {
            let rig = Rig::in_memory(2_000);
            let tree = rig.tree(1).await;
            let (mut rng, mut model, mut tag, mut log) = (Rng::new(seed), Model::new(), 0, TxnLog::new(TxnId(1)));
            for _ in 0..40 {
                let mut wanted = round(&mut rng, &mut tag);
                wanted.truncate(wanted.len() / 2 * 2);
                make(&tree, &mut log, &wanted, &mut model, 0).await;
            }
            assert_same(&tree, &model).await;
            let tags: BTreeSet<u64> = model.values().map(|(_, tag, _)| *tag).collect();
            let (rows, shared) = (model.len(), model.len() - tags.len());
            assert!(shared > rows / 10, "seed {seed}: {shared} of {rows} rows share the tag of another");
            undo(&rig, &tree, &mut log).await;
            assert_eq!(tree.check().await.unwrap().rows, 0);
            assert_redone(&rig, &tree, &Model::new()).await;
        });
    });
}

#[test]
fn a_run_goes_on_behind_a_key_that_lacks_the_prefix_of_its_leaf() {
    now(async {
        let rig = Rig::in_memory(2_000);
        let tree = rig.tree(1).await;
        let (mut model, mut log) = (Model::new(), TxnLog::new(TxnId(1)));
        // Ascending numbers: every 256th has another byte before the last one, and so a shorter prefix with those before it.
        let wanted = |n: u64| (n.to_be_bytes().to_vec(), vec![7; (n % 40) as usize], n, false);
        let wanted: Vec<Wanted> = (1..6_000).map(wanted).collect();
        let (by_run, alone) = make(&tree, &mut log, &wanted, &mut model, 3_000).await;
        assert_same(&tree, &model).await;
        let leaves = tree.check().await.unwrap().leaves as u64;
        // The first row of all, the first one of each further leaf, and the refused one.
        assert!(alone <= leaves + 1 && by_run + alone == 5_999, "{alone} alone, {leaves} leaves");
        let redone = rig.redone(&MemVfs::new(), 2_000, Lsn::MAX).await;
        let twin = Tree::new(tree.id(), redone.pool.clone(), redone.mark.clone());
        assert_same(&twin, &model).await;
    });
}
