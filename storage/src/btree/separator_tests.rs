//! Tests of separators: a parent lists only live nodes (BTR-10), and a descent never waits (BTR-7).

use super::descend::Pending;
use super::edit::remove;
use super::tree_tests::put;
use super::{Edit, Lookup, RowBuf, Tree, TryGet};
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::record::TxnLog;
use crate::seams::Purpose;
use crate::testing::{Rig, now};

const ROWS: u64 = 60;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A tree of some leaves below a root.
async fn leaves(rig: &Rig) -> (Tree, TxnLog) {
    let tree = rig.tree(1).await;
    let mut log = TxnLog::new(TxnId(1));
    for number in 0..ROWS {
        put(&tree, &mut log, &key(number), &[7; 1000], 0).await;
    }
    (tree, log)
}

/// What the root says of its children: keys and pages.
async fn children(tree: &Tree) -> Vec<(Vec<u8>, PageId)> {
    let root = tree.copy_node(tree.root().await.unwrap()).await.unwrap();
    assert_eq!(root.frame.level, 1);
    let child = |value: &[u8]| PageId(u32::from_le_bytes(value.try_into().expect("four bytes")));
    root.rows.iter().map(|row| (row.key.to_vec(), child(row.value))).collect()
}

/// A split whose third step comes so late that its right half has been merged away and its page is another tree's.
async fn late_separator() -> Result<(), StorageError> {
    let rig = Rig::in_memory(200);
    let (tree, mut log) = leaves(&rig).await;
    let before = children(&tree).await;
    let (separator, child) = before[1].clone();
    let by = rig.pool.read(before[0].1).expect("in memory").seen();
    for number in 0..ROWS {
        if number % 3 != 0 {
            tree.edit(&mut log, &key(number), 0, |_| (Edit::Remove, ())).await?;
        }
    }
    tree.tidy().await?;
    let after = children(&tree).await;
    assert!(after.iter().all(|(_, page)| *page != child), "the leaf was to go");
    let mut other = 2;
    while rig.tree(other).await.root().await? != child {
        other += 1;
    }
    tree.put_separator(Pending { separator, child, by, level: 1 }, Purpose::System).await?;
    assert_eq!(children(&tree).await, after, "BTR-10: a parent learnt of a dead node");
    tree.check().await?;
    Ok(())
}

/// The same, so late that the whole tree has become one leaf: there is no parent to be told.
#[test]
fn a_separator_for_a_level_that_is_gone_is_forgotten() {
    let rig = Rig::in_memory(200);
    now(async {
        let (tree, mut log) = leaves(&rig).await;
        let before = children(&tree).await;
        let (separator, child) = before[1].clone();
        let by = rig.pool.read(before[0].1).expect("in memory").seen();
        for number in 1..ROWS {
            tree.edit(&mut log, &key(number), 0, |_| (Edit::Remove, ())).await.unwrap();
        }
        while tree.tidy().await.unwrap().merged > 0 {}
        assert_eq!(tree.check().await.unwrap().levels, 1);
        tree.put_separator(Pending { separator: separator.clone(), child, by, level: 1 }, Purpose::System)
            .await
            .unwrap();
        tree.split(&separator, 4, 1, Purpose::System).await.unwrap();
        let report = tree.check().await.unwrap();
        assert_eq!((report.levels, report.rows), (1, 1));
    });
}

/// Takes a separator out of the root, as a crash between the second and the third step of a split leaves it.
async fn forget(rig: &Rig, tree: &Tree, separator: &[u8]) -> Result<(), StorageError> {
    let pin = rig.pool.pin(tree.root().await?).await?;
    let mut root = pin.latch();
    root.will_change();
    assert!(remove(root.page(), separator));
    let end = root.page().lsn();
    root.changed(end);
    Ok(())
}

/// A crash between the second and the third step of a split: a node that its parent does not know.
async fn unknown_node() -> Result<(), StorageError> {
    let rig = Rig::in_memory(200);
    let (tree, mut log) = leaves(&rig).await;
    let (separator, child) = children(&tree).await[1].clone();
    forget(&rig, &tree, &separator).await?;
    assert_eq!(tree.check().await?.pending_separators, 1);
    // Its neighbours are nearly empty, and side by side in the parent.
    let unknown: Vec<Vec<u8>> = tree.copy_node(child).await?.rows.iter().map(|row| row.key.to_vec()).collect();
    assert!(!unknown.is_empty());
    for number in (0..ROWS).filter(|number| number % 8 != 0 && !unknown.contains(&key(*number).to_vec())) {
        tree.edit(&mut log, &key(number), 0, |_| (Edit::Remove, ())).await?;
    }
    tree.tidy().await?;
    let mut out = RowBuf::default();
    for row in &unknown {
        let found = tree.get(row, &mut out).await?;
        assert!(matches!(found, Lookup::Found(_)), "BTR-10: row {row:02x?} went with a node that no parent knew");
    }
    assert_eq!(tree.check().await?.pending_separators, 1);
    // A writer that changes something there tells the parent first.
    tree.edit(&mut log, &unknown[0], 0, |_| (Edit::Remove, ())).await?;
    assert_eq!(tree.check().await?.pending_separators, 0);
    Ok(())
}

#[test]
fn a_parent_never_learns_of_a_dead_node() {
    now(late_separator()).unwrap();
}

#[test]
fn a_node_that_no_parent_knows_is_not_merged_away() {
    now(unknown_node()).unwrap();
}

/// The two tests above fail without what they are for: `cargo test -p clearway-storage --features mutations
/// btree::separator_tests::planted -- --test-threads=1`.
#[cfg(feature = "mutations")]
#[test]
fn planted_mistakes_are_found() {
    use crate::mutation::{Mutation, plant};
    use std::panic::catch_unwind;
    plant(Mutation::SeparatorUnseen);
    let late = catch_unwind(|| now(late_separator()));
    plant(Mutation::MergeUnseen);
    let unknown = catch_unwind(|| now(unknown_node()));
    plant(Mutation::None);
    assert!(!matches!(late, Ok(Ok(()))), "a separator for a dead node was not noticed");
    assert!(!matches!(unknown, Ok(Ok(()))), "a merge over an unknown node was not noticed");
}

/// BTR-26: the straight way ends at the left neighbour of a node that no parent knows.
#[test]
fn a_read_ends_at_the_owner_also_where_no_parent_knows_it() {
    let rig = Rig::in_memory(200);
    now(async {
        let (tree, _) = leaves(&rig).await;
        let children = children(&tree).await;
        forget(&rig, &tree, &children[1].0).await.unwrap();
        let mut out = RowBuf::default();
        for number in 0..ROWS {
            let (here, behind) = (key(number), [&key(number)[..], &[0]].concat());
            let owner =
                |key: &[u8]| children.iter().rfind(|(low, _)| low[..] <= *key).expect("the first has no bound").1;
            assert!(
                matches!(tree.try_get(&here, &mut out), TryGet::Hit(seen) if seen.page == owner(&here)),
                "{number}"
            );
            assert_eq!(out.row().value, [7; 1000]);
            let absent = tree.try_get(&behind, &mut out);
            assert!(matches!(absent, TryGet::Absent(seen) if seen.page == owner(&behind)), "{number}: {absent:?}");
        }
        let report = tree.check().await.unwrap();
        assert_eq!(report.pending_separators, 1, "a read tells no parent");
    });
}

/// BTR-7: where a page is missing a descent says so, to a caller that may wait, and reads nothing itself.
#[test]
fn a_descent_tells_of_a_miss_and_reads_nothing() {
    let rig = Rig::in_memory(16);
    now(async {
        let tree = rig.tree(1).await;
        let mut log = TxnLog::new(TxnId(1));
        for number in 0..4 * ROWS {
            while rig.pool.clean_step().await.unwrap() > 0 {}
            put(&tree, &mut log, &key(number), &[7; 1000], 0).await;
        }
        let reads = || {
            let counters = rig.pool.counters().view();
            (counters.misses, counters.new_pages, counters.evictions)
        };
        let before = reads();
        let mut out = RowBuf::default();
        let missed: Vec<u64> =
            (0..4 * ROWS).filter(|number| tree.try_get(&key(*number), &mut out) == TryGet::Miss).collect();
        assert!(!missed.is_empty(), "all leaves are in memory");
        assert_eq!(reads(), before, "BTR-7: a descent read pages");
        assert!(matches!(tree.get(&key(missed[0]), &mut out).await.unwrap(), Lookup::Found(_)));
        assert!(matches!(tree.try_get(&key(missed[0]), &mut out), TryGet::Hit(_)));
    });
}
